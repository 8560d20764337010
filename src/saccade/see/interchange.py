"""Other systems' attention, in and out, as text.

The soft alignments of Nematus, which SoftAlignments draws too: a head line, then a row for each word that was written.

    0 ||| target words ||| score ||| source words ||| N T
    0.7 0.2 0.1

N and T count the end of each side, if the matrix has it. And Pharaoh's links, `0-0 1-2`, a line for each sentence;
read, they are weights of 0 and 1.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from saccade.see.alignment import END
from saccade.see.prediction import Prediction, Token

BARS = " ||| "


def read_soft(path: Path) -> list[Prediction]:
    """Every sentence of a file of soft alignments."""
    return list(_soft(path, _lines(path)))


def write_soft(predictions: Iterable[Prediction]) -> str:
    """The same from predictions; one without attention, or of a picture, has no place in it."""
    parts = []
    for number, p in enumerate(predictions):
        if p.weights is None or p.grid is not None:
            raise ValueError(f"sentence {number + 1}: soft alignments hold texts with attention only")
        written, read = (" ".join(_word(t.text) for t in side if t.span[0] < t.span[1]) for side in _sides(p))
        rows = "\n".join(" ".join(f"{w:.6g}" for w in row) for row in p.weights.tolist())
        counts = f"{p.weights.shape[1]} {p.weights.shape[0]}"
        parts.append(f"{BARS.join((str(number), written, f'{p.score:.6g}', read, counts))}\n{rows}\n")
    return "\n".join(parts)


def write_links(predictions: Iterable[Prediction]) -> str:
    """Pharaoh's links, a line for each prediction; that of an empty text is empty."""
    lines = []
    for number, p in enumerate(predictions):
        if p.grid is not None or (p.weights is None and p.text):
            raise ValueError(f"sentence {number + 1}: links are between the words of texts with attention")
        lines.append(p.pharaoh() + "\n")
    return "".join(lines)


def from_links(pairs: Sequence[tuple[str, str]], lines: Sequence[str]) -> list[Prediction]:
    """Pairs of source and target with Pharaoh's links, a line for each."""
    if len(pairs) != len(lines):
        raise ValueError(f"{len(lines)} lines of links for {len(pairs)} pairs; expected as many")
    found = []
    for number, ((source, target), line) in enumerate(zip(pairs, lines, strict=True), 1):
        words = source.split(), target.split()
        weights = np.zeros((len(words[1]), len(words[0])), np.float32)
        for link in line.split():
            ends = link.split("-")
            if len(ends) != 2 or not all(e.isdecimal() for e in ends):
                raise ValueError(f"line {number}: {link!r} is no link; expected i-j, from 0")
            i, j = map(int, ends)
            if i >= len(words[0]) or j >= len(words[1]):
                raise ValueError(
                    f"line {number}: a link {link}, but there are {len(words[0])} and {len(words[1])} words"
                )
            weights[j, i] = 1
        found.append(_prediction(words[0], words[1], weights, 0.0))
    return found


def _sides(p: Prediction) -> tuple[tuple[Token, ...], tuple[Token, ...]]:
    return p.target_tokens, p.source_tokens


def _word(text: str) -> str:
    """A token as one word of the format."""
    return "_".join(text.split()).replace("|||", "¦¦¦") or "␣"


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        with path.open(encoding="utf-8") as file:
            yield from enumerate((line.rstrip("\n") for line in file), 1)
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path}: is no text in UTF-8") from None


def _soft(path: Path, lines: Iterator[tuple[int, str]]) -> Iterator[Prediction]:
    some = False
    for number, line in lines:
        if not line.strip():
            continue
        where = f"{path}:{number}"
        parts = [part.strip() for part in line.split("|||")]
        if len(parts) != 5:
            raise ValueError(f"{where}: expected 'id ||| target ||| score ||| source ||| N T'")
        written, read = parts[1].split(), parts[3].split()
        try:
            score = float(parts[2])
            columns, rows = map(int, parts[4].split())
            if not np.isfinite(score):
                raise ValueError
        except ValueError:
            raise ValueError(f"{where}: the score, N and T must be numbers") from None
        for name, count, words in (("N", columns, read), ("T", rows, written)):
            if count not in (len(words), len(words) + 1):
                raise ValueError(f"{where}: {name} is {count}, but there are {len(words)} words (and an end, perhaps)")
        found = list(itertools.islice(lines, rows))
        if len(found) < rows:
            raise ValueError(f"{where}: {rows} rows of weights should follow, but the file ends after {len(found)}")
        weights = np.array([_row(path, row, columns) for row in found], np.float32)
        some = True
        yield _prediction(read, written, weights.reshape(rows, columns), score)
    if not some:
        raise ValueError(f"{path}: has no soft alignments")


def _row(path: Path, line: tuple[int, str], columns: int) -> list[float]:
    try:
        row = [float(x) for x in line[1].split()]
    except ValueError:
        raise ValueError(f"{path}:{line[0]}: expected {columns} numbers") from None
    if len(row) != columns:
        raise ValueError(f"{path}:{line[0]}: {len(row)} numbers, expected {columns}: the matrix does not fit its words")
    if not all(np.isfinite(row)):
        raise ValueError(f"{path}:{line[0]}: a weight is not a finite number")
    return row


def _prediction(read: Sequence[str], written: Sequence[str], weights: NDArray[np.float32], score: float) -> Prediction:
    sides = []
    for words, count in ((read, weights.shape[1]), (written, weights.shape[0])):
        tokens, start = [], 0
        for word in words:
            tokens.append(Token(word, (start, start + len(word))))
            start += len(word) + 1
        if count > len(words):
            tokens.append(Token(END, (max(0, start - 1),) * 2))
        sides.append(tuple(tokens))
    return Prediction(" ".join(read), " ".join(written), score, sides[0], sides[1], cross=weights[None, None], layer=0)
