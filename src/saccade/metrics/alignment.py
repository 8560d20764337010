"""Links between words against those that people drew (Och & Ney 2003)."""

import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

Link = tuple[int, int]  # source word, target word, from 0
_LINK = re.compile(r"(\d+)([-p?])(\d+)")


class Gold(NamedTuple):
    """What people drew for one sentence: links that must be there, and those that may."""

    sure: frozenset[Link]
    possible: frozenset[Link]  # the sure ones among them


class Agreement(NamedTuple):
    """In percent; the error rate (AER) is the better the smaller."""

    aer: float
    precision: float  # of the links that were found, those that may be there
    recall: float  # of the links that must be there, those that were found


def agreement(found: Sequence[Collection[Link]], gold: Sequence[Gold]) -> Agreement:
    """AER = 1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|), over all sentences together.

    >>> agreement([{(0, 0), (1, 1)}], [Gold(frozenset({(0, 0), (2, 2)}), frozenset({(0, 0), (2, 2)}))])
    Agreement(aer=50.0, precision=50.0, recall=50.0)
    """
    hits = sure = links = wanted = 0
    for mine, known in zip(found, gold, strict=True):
        hits += sum(link in known.possible for link in mine)
        sure += sum(link in known.sure for link in mine)
        links += len(mine)
        wanted += len(known.sure)
    total = links + wanted
    error = 1 - (hits + sure) / total if total else 0.0
    return Agreement(100 * error, 100 * hits / links if links else 0.0, 100 * sure / wanted if wanted else 0.0)


def read_gold(path: Path) -> tuple[list[Gold], int]:
    """A file with a line for each sentence: `i-j` for sure links, `ipj` (or `i?j`) for possible ones.

    Words count from 0, as in Pharaoh's format, if any link of the file has a 0; else from 1. Which, is returned too.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: cannot be read ({error})") from None
    rows = []
    for number, line in enumerate(lines, 1):
        links = [_LINK.fullmatch(word) for word in line.split()]
        if not all(links):
            wrong = next(w for w, m in zip(line.split(), links, strict=True) if m is None)
            raise ValueError(f"{path}:{number}: {wrong!r} is no link; expected i-j or ipj")
        rows.append([(int(m[1]), int(m[3]), m[2] == "-") for m in links if m is not None])
    first = 0 if any(0 in link[:2] for row in rows for link in row) else 1
    gold = [
        Gold(
            frozenset((i - first, j - first) for i, j, sure in row if sure),
            frozenset((i - first, j - first) for i, j, _ in row),
        )
        for row in rows
    ]
    return gold, first
