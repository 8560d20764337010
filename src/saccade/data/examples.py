"""Examples as numbers: two long rows of tokens and where each example ends in them, in memory or in a file.

A corpus too large for memory is tokenised once, in pieces, into a folder of the cache; the folder's name is a hash of
the content and the tokenisers, and it appears only when it is whole. What is read from it is mapped, not loaded.
"""

import hashlib
import itertools
import json
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from saccade.data.cache import cache_folder, make_once
from saccade.data.pairs import Corpus, Pair, Skipped
from saccade.data.pictures import Pictures
from saccade.data.tokenisers import Tokeniser

MOST_TOKENS = 1024  # of a source or an output, unless the model knows fewer; to learn from longer ones is of no use
GROWN = 18  # symbols that a character may fall apart into: Hangul into three jamo, and a ligature into eighteen letters
CHUNK = 10_000  # pairs that are tokenised at once
LEFT_OUT = "left_out.json"
ROWS = {"source": np.int32, "source_ends": np.int64, "target": np.int32, "target_ends": np.int64}

Numbers = tuple[list[int], list[int]]  # a source and a target


@dataclass(frozen=True, slots=True)
class Examples(Sequence[Numbers]):
    """Numbers of many examples, end to end: example i of a side is row[ends[i − 1] : ends[i]]."""

    source: NDArray[np.int32]
    source_ends: NDArray[np.int64]
    target: NDArray[np.int32]
    target_ends: NDArray[np.int64]
    pictures: Pictures | None = None  # if the source of an example is a picture, its one number is its place in these

    @classmethod
    def of(cls, numbers: Iterable[Numbers], pictures: Pictures | None = None) -> "Examples":
        """In memory."""
        rows = (array("i"), array("i"))
        ends = (array("q"), array("q"))
        for example in numbers:
            for row, end, ids in zip(rows, ends, example, strict=True):
                row.extend(ids)
                end.append(len(row))
        found = [np.array(x, dtype=d) for x, d in zip((rows[0], ends[0], rows[1], ends[1]), ROWS.values(), strict=True)]
        return cls(found[0], found[1], found[2], found[3], pictures)

    @classmethod
    def open(cls, folder: Path) -> "Examples":
        """Mapped from a folder that `cached` made."""
        return cls(*(np.load(folder / f"{name}.npy", mmap_mode="r") for name in ROWS))

    def __len__(self) -> int:
        return len(self.source_ends)

    def __getitem__(self, i: int) -> Numbers:  # type: ignore[override]  # nobody cuts slices
        return self._side(self.source, self.source_ends, i), self._side(self.target, self.target_ends, i)

    @staticmethod
    def _side(row: NDArray[np.int32], ends: NDArray[np.int64], i: int) -> list[int]:
        ids: list[int] = row[ends[i - 1] if i else 0 : ends[i]].tolist()
        return ids

    def lengths(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Of every source and every target."""
        return np.diff(self.source_ends, prepend=0), np.diff(self.target_ends, prepend=0)


def tokenise(pairs: Iterable[Pair], source: Tokeniser, target: Tokeniser) -> Iterator[Numbers]:
    """Pairs as numbers, many at once, never all."""
    rest = iter(pairs)
    while chunk := list(itertools.islice(rest, CHUNK)):
        sides = source.encode_all([p.source for p in chunk]), target.encode_all([p.target for p in chunk])
        yield from zip(*sides, strict=True)


def fits(pair: Pair, source: Tokeniser, target: Tokeniser, most: int) -> bool:
    """Whether neither side has more symbols than that, STOP among them; most are so short that nobody has to count."""
    sides = ((pair.source, source), (pair.target, target))
    return all(GROWN * len(text) < most or len(symbols.encode(text).ids) < most for text, symbols in sides)


def cached(
    pairs: Iterable[Pair | Skipped], source: Tokeniser, target: Tokeniser, key: str
) -> tuple[Examples, list[Skipped]]:
    """The same, and what was left out, from a folder of the cache that is made once; `key` says what the pairs are."""
    settings = json.dumps([key, source.fingerprint(), target.fingerprint()])
    folder = cache_folder() / hashlib.sha256(settings.encode()).hexdigest()[:32]

    def fill(beside: Path) -> None:
        corpus = Corpus()
        _write(tokenise(corpus.sift(pairs), source, target), beside)
        (beside / LEFT_OUT).write_text(json.dumps(corpus.skipped))

    make_once(folder, fill)
    left_out = folder / LEFT_OUT  # of older caches nobody knows
    return Examples.open(folder), [Skipped(*s) for s in json.loads(left_out.read_text())] if left_out.exists() else []


def _write(numbers: Iterator[Numbers], folder: Path) -> None:
    """Raw rows as they come, then the same as .npy files once their lengths are known."""
    counts = [0, 0]
    files = {name: (folder / name).open("wb") for name in ROWS}
    try:
        for example in numbers:
            for i, (side, ids) in enumerate(zip(("source", "target"), example, strict=True)):
                counts[i] += len(ids)
                files[side].write(np.array(ids, dtype=np.int32).tobytes())
                files[f"{side}_ends"].write(np.int64(counts[i]).tobytes())
    finally:
        for file in files.values():
            file.close()
    for name, kind in ROWS.items():
        raw = folder / name
        rows = np.memmap(raw, dtype=kind, mode="r") if raw.stat().st_size else np.empty(0, kind)
        np.save(folder / f"{name}.npy", rows)
        del rows
        raw.unlink()
