"""Pairs of a source and a target, and what was left out on the way to them."""

import hashlib
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

MOST_SHOWN = 60  # characters of a name in a message
BY_CHANCE, SIZEABLE = 0.01, 0.2  # share of words that look like those of the other side, and that says something


Item = TypeVar("Item")


class Pair(NamedTuple):
    """One example: the source, and what should be written for it."""

    source: str
    target: str


class Skipped(NamedTuple):
    """A line that could not be used."""

    file: str
    line: int
    why: str
    what: str = ""  # is meant, where the line alone does not say it

    def __str__(self) -> str:
        return f"{self.place}: {self.why}{f': {self.shown}' if self.what else ''}"

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file

    @property
    def shown(self) -> str:
        return repr(f"{self.what[:MOST_SHOWN]}…" if len(self.what) > MOST_SHOWN else self.what)[1:-1]


@dataclass(slots=True)
class Corpus:
    """Pairs in the order of their files, and every line that was left out."""

    pairs: list[Pair] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)

    def sift(self, stream: Iterable[Pair | Skipped]) -> Iterator[Pair]:
        """The pairs as they come; what was left out is noted."""
        for found in stream:
            if isinstance(found, Pair):
                yield found
            else:
                self.skipped.append(found)

    def report(self, examples: int = 3, most: int = 10) -> list[str]:
        """What was skipped, by reason, with the first places of each: the rest, if there are many, in one line."""
        reasons: dict[str, list[Skipped]] = {}
        for line in self.skipped:
            reasons.setdefault(line.why, []).append(line)
        ordered = sorted(reasons.items(), key=lambda reason: -len(reason[1]))
        lines = []
        for why, found in ordered[:most]:
            count = len(found)
            more = "" if count <= examples else ", …"
            kind = "line" if found[0].line else "pair" if found[0].what else "picture"
            places = ", ".join(f"{s.place} {s.shown}".strip() for s in found[:examples])
            lines.append(f"skipped {count} {kind}{'s' * (count > 1)}: {why} ({places}{more})")
        if rest := ordered[most:]:
            lines.append(f"skipped {sum(len(found) for _, found in rest):,} more, for {len(rest):,} other reasons")
        return lines


def split(
    pairs: list[Pair], share: float = 0.05, most: int = 2000, name: Callable[[str], str] = str
) -> tuple[list[Pair], list[Pair]]:
    """Training and development pairs, by a hash of the source: all pairs of one source fall on the same side.

    It depends on nothing but the sources themselves, so a file gives the same split in any order and on any machine;
    `name` says what a source is called everywhere, if it is a path.
    """
    share = min(share, most / max(1, len(pairs)))
    dev = [p for p in pairs if fraction(name(p.source)) < share]
    train = [p for p in pairs if fraction(name(p.source)) >= share]
    if not dev or not train:  # too few for the hash to find both: the source with the lowest hash is the dev set
        lowest = min((fraction(name(p.source)) for p in pairs), default=0.0)
        dev = [p for p in pairs if fraction(name(p.source)) == lowest]
        train = [p for p in pairs if fraction(name(p.source)) != lowest]
    return train, dev


def swapped(train: Sequence[Pair], dev: Sequence[Pair]) -> bool:
    """Whether the sides of dev seem to stand the other way round than those of train: of the words of one side most are
    known from the other side of train, and nothing speaks against it on the other.

    >>> swapped([Pair("ein Hund", "a dog"), Pair("ein Rad", "a bike")], [Pair("a dog", "ein Rad")])
    True
    """
    known, asked = ([{word for pair in pairs for word in pair[i].split()} for i in (0, 1)] for pairs in (train, dev))
    shares = [[len(words & known[j]) / max(1, len(words)) for j in (i, 1 - i)] for i, words in enumerate(asked)]
    return any(other > max(2 * own, SIZEABLE) for own, other in shares) and all(
        other > own - BY_CHANCE for own, other in shares
    )


def fraction(text: str) -> float:
    """A number between 0 and 1 that is the same for a text everywhere and always, however its letters are composed."""
    composed = unicodedata.normalize("NFC", text)
    return int.from_bytes(hashlib.sha256(composed.encode()).digest()[:8], "big") / 2**64


def spread(items: Sequence[Item], most: int) -> list[Item]:
    """So many of them at most, from all over: a sorted file begins alike.

    >>> spread("abcdefgh", 3)
    ['a', 'c', 'f']
    """
    count = min(most, len(items))
    return [items[i * len(items) // count] for i in range(count)]
