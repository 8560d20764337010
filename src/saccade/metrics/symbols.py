"""Edit distances: how many symbols are wrong, and which are taken for which."""

import unicodedata
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import NamedTuple

from rapidfuzz.distance import Levenshtein

NOTHING = "∅"


def plain(text: str) -> str:
    """A text in one Unicode form with single blanks, so that what looks the same is the same."""
    return unicodedata.normalize("NFC", " ".join(text.split()))


class Edits(NamedTuple):
    """How many edits lead from an output to the nearest of its references, and how long that one is."""

    wrong: int
    length: int
    nearest: int  # which reference


def edits(output: Sequence[Hashable], references: Sequence[Sequence[Hashable]]) -> Edits:
    """The nearest reference, by the share of symbols that are wrong.

    >>> edits("kitten", ["sitting", "mitten"])
    Edits(wrong=1, length=6, nearest=1)
    """
    found = [Edits(Levenshtein.distance(r, output), len(r), i) for i, r in enumerate(references)]
    return min(found, key=lambda e: (e.wrong / max(1, e.length), e.wrong))


def confusions(pairs: Sequence[tuple[Sequence[str], Sequence[str]]], most: int = 10) -> list[tuple[str, str, int]]:
    """The commonest mistakes over (output, reference) pairs: what was wanted, what was written, how often.

    >>> confusions([("bat", "cat"), ("cats", "cat")])
    [('c', 'b', 1), ('∅', 's', 1)]
    """
    counted: Counter[tuple[str, str]] = Counter()
    for output, reference in pairs:
        for edit in Levenshtein.editops(reference, output):
            wanted = NOTHING if edit.tag == "insert" else reference[edit.src_pos]
            written = NOTHING if edit.tag == "delete" else output[edit.dest_pos]
            counted[wanted, written] += 1
    return [(wanted, written, count) for (wanted, written), count in counted.most_common(most)]
