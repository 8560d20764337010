"""Counts: which symbols of a source go with which of its target, and in what company; a judge of what others wrote.

A pair is cut into small pieces of both sides, sight|S AY T into s|S, i|AY, g|, h|, t|T, and how likely a piece is after
those before it is counted: a joint n-gram model (Bisani & Ney 2008), smoothed as Kneser and Ney do.

    p(source, target) = Π_i p(piece_i | piece_{i−n+1} … piece_{i−1})

Counts know by heart what a network has to work out, and have other doubts than it: together they are wrong less often
than two networks are. NumPy alone; pairs of the same lengths are worked on all at once.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from saccade.data import Numbers

ORDER = 6  # pieces that are seen together
ROUNDS = 6  # of EM
SHAPES = ((1, 1), (1, 0), (1, 2), (2, 1))  # symbols of source and target in a piece
LIKELY = (1.0, 0.1, 0.01, 0.01)  # how likely they are before anything is known; EM finds out more
LEAST = 1e-12  # chance of a piece that was never met
MOST_PAIRS = 0.9  # share of them that must be short enough, and not longer in the target than pieces are
MOST_KINDS = 10_000_000  # of pieces that there might be
MOST_PLACES = 1_600  # symbols of a source times those of its target: what is longer is not judged
DOUBT = 0.05  # chance that nothing is known of a source: a letter may stand for more than a piece can hold
MOST_COUNTED, AT_ONCE = 500_000, 8_192  # pairs: of more, every other; and how many are worked on together
GIVEN_UP = 0.1, 0.9  # of each count, at least and at most, for what was never counted
KEPT = 60_000_000  # numbers of pieces that are kept from one round of EM to the next, rather than made anew
HELD = 30_000_000  # numbers: of each pair, at every place, a row
BEFORE, AFTER = -1, -2  # what stands before the first piece, and behind the last
MIX = (np.int64(-7046029254386353131), np.int64(-4658895280553007687))  # odd, and their bits as if drawn by chance

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Place = tuple[int, int]  # where so many symbols of source and target are done
Pieces = dict[Place, list[tuple[Place, Ints]]]  # that end at a place: where they begin, and their numbers [B]


class Table(NamedTuple):
    """All groups of k pieces, by their hash: p_k(piece | before) = share(group) + rest(before) p_{k−1}(piece | …)."""

    groups: Ints  # sorted
    shares: NDArray[np.float32]
    before: Ints  # sorted
    rests: NDArray[np.float32]


class Counts:
    """What was counted in pairs of numbers.

    >>> counts = Counts.learn([([1, 2], [3, 4]), ([2, 1], [4, 3]), ([1, 1], [3, 3])], sizes=(5, 5))
    >>> one, other = counts.judge([([2, 2], [4, 4]), ([2, 2], [4, 3])])
    >>> bool(one > other)
    True
    """

    def __init__(self, sizes: tuple[int, int], chances: Floats, tables: Sequence[Table] = ()) -> None:
        self.sizes, self.tables = sizes, tuple(tables)  # how many symbols there are; groups of 1, 2, … pieces
        self.chances = chances  # [P]: of each piece, wherever it stands
        self.costs = np.log(np.maximum(chances, LEAST))

    @staticmethod
    def can(some: Sequence[Numbers], sizes: tuple[int, int]) -> bool:
        """Whether most pairs like these can be cut, and so many symbols make no more pieces than can be listed."""
        cut = sum(len(numbers) for numbers, _, _ in _alike(some))
        return cut >= MOST_PAIRS * len(some) and Counts.listable(sizes)

    @staticmethod
    def listable(sizes: tuple[int, int]) -> bool:
        """The second half of that, which no length of the pairs can mend."""
        return sum(_kinds(sizes)) <= MOST_KINDS

    @classmethod
    def learn(cls, examples: Sequence[Numbers], sizes: tuple[int, int]) -> "Counts":
        """From pairs that nobody aligned: pieces by EM; then each pair is cut as is likeliest, and groups counted."""
        kinds = _kinds(sizes)
        counts = cls(sizes, np.concatenate([np.full(n, likely / n) for n, likely in zip(kinds, LIKELY, strict=True)]))
        alike = list(_alike(counted(examples)))
        room = sum(s.size * t.shape[1] for _, s, t in alike) * len(SHAPES) <= KEPT
        pieces = [counts._pieces(s, t) if room else None for _, s, t in alike]  # the same in every round
        for _ in range(ROUNDS):
            expected = np.zeros(sum(kinds))
            for (_, sources, targets), kept in zip(alike, pieces, strict=True):
                counts._expect(kept or counts._pieces(sources, targets), sources, targets, expected)
            counts = cls(sizes, expected / max(LEAST, expected.sum()))
        none = np.empty((0, 0), np.int64)
        parts = [list(_groups(rows)) for rows in (none, *(counts._cut(s, t) for _, s, t in alike))]
        groups = [[np.concatenate(each) for each in zip(*of_size, strict=True)] for of_size in zip(*parts, strict=True)]
        return cls(sizes, counts.chances, tuple(_tables(groups)))

    def judge(self, pairs: Sequence[Numbers]) -> Floats:
        """log p(source, target) of each pair; −∞ where it cannot be cut, or is too long to be."""
        found = np.full(len(pairs), -np.inf)
        for numbers, sources, targets in _alike(pairs):
            rows = self._cut(sources, targets)
            chance = np.full(1, 1 / len(self.chances))  # of a piece that was never met
            for table, (groups, before) in zip(self.tables, _groups(rows), strict=True):
                share, _ = _found(table.groups, table.shares, groups)
                rest, known = _found(table.before, table.rests, before)
                chance = np.where(known, share + rest * chance, chance)
            whose = np.nonzero(_ended(rows) != BEFORE)[0]
            found[numbers] = np.bincount(whose, np.log(chance), minlength=len(numbers))
        return found

    def spelt(self, pairs: Sequence[Numbers]) -> Iterator[tuple[Ints, Ints, Ints]]:
        """What each symbol of a source stands for: pairs of the same lengths together, if they can be cut; which they
        are [B], sources [B, N], and the number of the piece that each symbol is part of [B, N].
        """
        ends = np.cumsum(_kinds(self.sizes))
        many = np.array([symbols for symbols, _ in SHAPES])
        for numbers, sources, targets in _alike(pairs):
            rows = self._cut(sources, targets)
            often = np.where(rows == BEFORE, 0, many[np.searchsorted(ends, rows, side="right").clip(max=len(many) - 1)])
            yield numbers, sources, np.repeat(rows.ravel(), often.ravel()).reshape(sources.shape)

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """All of it, by name, to be written down."""
        met = np.flatnonzero(self.chances > LEAST)
        tables = {f"{k}.{name}": array for k, t in enumerate(self.tables, 1) for name, array in t._asdict().items()}
        return {"sizes": np.array(self.sizes), "pieces": met, "chances": self.chances[met], **tables}

    @classmethod
    def of(cls, arrays: dict[str, NDArray[np.generic]]) -> "Counts":
        """The same, read back."""
        source, target = arrays["sizes"].tolist()
        chances = np.zeros(sum(_kinds((source, target))))
        chances[arrays["pieces"].astype(np.int64)] = arrays["chances"]
        tables = [Table(*(arrays[f"{k}.{name}"] for name in Table._fields)) for k in range(1, ORDER + 1)]  # type: ignore[arg-type]
        return cls((source, target), chances, tables)

    def _pieces(self, sources: Ints, targets: Ints) -> Pieces:
        """Sources [B, N], targets [B, T] → for each place on some way from the start to the end the pieces that end
        there.
        """
        (_, length), (_, most) = sources.shape, targets.shape
        first = np.cumsum([0, *_kinds(self.sizes)])
        found: Pieces = {(0, 0): []}
        for i in range(1, length + 1):
            for j in range(max(0, most - 2 * (length - i)), min(most, 2 * i) + 1):
                ending = []
                for kind, (a, b) in enumerate(SHAPES):
                    if (i - a, j - b) in found:
                        number = _read(sources[:, i - a : i], self.sizes[0], np.zeros(len(sources), np.int64))
                        number = _read(targets[:, j - b : j], self.sizes[1], number)
                        ending.append(((i - a, j - b), first[kind] + number))
                if ending:
                    found[i, j] = ending
        return found

    def _expect(self, pieces: Pieces, sources: Ints, targets: Ints, expected: Floats) -> None:
        """Adds how often each piece stands in these pairs, over all ways to cut them, to [P] (forward and backward)."""
        end = sources.shape[1], targets.shape[1]
        ahead = {(0, 0): np.ones(len(sources))}  # [B]: of all ways to a place
        for place, ending in pieces.items():
            if ending:
                ahead[place] = sum((ahead[at] * self.chances[n] for at, n in ending), np.zeros(len(sources)))
        back: dict[Place, Floats] = defaultdict(lambda: np.zeros(len(sources)))  # of all ways from it
        back[end] = 1 / np.maximum(ahead[end], np.finfo(np.float64).tiny)
        for place, ending in reversed(pieces.items()):
            for at, n in ending:
                way = self.chances[n] * back[place]
                back[at] = back[at] + way
                np.add.at(expected, n, ahead[at] * way)

    def _cut(self, sources: Ints, targets: Ints) -> Ints:
        """The likeliest pieces of each pair, at the end of its row: [B, N], BEFORE in front of them (Viterbi)."""
        best = {(0, 0): np.zeros(len(sources))}
        ways = {(0, 0): np.full(sources.shape, BEFORE)}  # [B, N]: each piece where its last symbol of the source is
        everyone = np.arange(len(sources))
        for (i, j), ending in self._pieces(sources, targets).items():
            if ending:
                scores = np.stack([best[at] + self.costs[n] for at, n in ending])  # [A, B]
                chosen = scores.argmax(0)
                best[i, j] = scores[chosen, everyone]
                ways[i, j] = np.stack([ways[at] for at, _ in ending])[chosen, everyone]
                ways[i, j][:, i - 1] = np.stack([n for _, n in ending])[chosen, everyone]
        rows = ways[sources.shape[1], targets.shape[1]]
        return np.take_along_axis(rows, np.argsort(rows != BEFORE, axis=1, kind="stable"), 1)


def log_shares(logs: Floats, whose: Ints) -> Floats:
    """Each of several log probabilities as its share among those of the same owner, doubted a little: so none is ruled
    out. Of an owner without any, 0.

    >>> log_shares(np.log([0.02, 0.06, 0.5]), np.array([0, 0, 1])).round(3).tolist()
    [-1.338, -0.304, 0.0]
    """
    count = int(whose.max(initial=-1)) + 1
    most = np.full(count, -np.inf)
    np.maximum.at(most, whose, logs)
    known = np.isfinite(most)
    likely = np.exp(logs - np.where(known, most, 0.0)[whose])
    total = np.where(known, np.bincount(whose, likely, count), 1.0)
    share = (1 - DOUBT) * likely / total[whose] + DOUBT / np.bincount(whose, minlength=count)[whose]
    return np.where(known[whose], np.log(share), 0.0)


def counted(examples: Sequence[Numbers]) -> list[Numbers]:
    """All of them, or of very many as many as can be worked on."""
    return [examples[i] for i in range(0, len(examples), 1 + len(examples) // MOST_COUNTED)]


def mixed(before: Ints, symbols: Ints) -> Ints:
    """Hashes of what came before and one symbol more, of 64 bits: two are hardly ever the same by chance."""
    hashed = before * MIX[0]
    hashed = ((hashed ^ (hashed >> 29)) + symbols) * MIX[1]
    hashed ^= hashed >> 32
    return hashed


def _read(symbols: Ints, size: int, number: Ints) -> Ints:
    """Symbols [B, S] as more digits of a number [B]."""
    for symbol in symbols.T:
        number = number * size + symbol
    return number


def _kinds(sizes: tuple[int, int]) -> list[int]:
    """How many pieces of each shape there might be."""
    return [sizes[0] ** a * sizes[1] ** b for a, b in SHAPES]


def _alike(pairs: Sequence[Numbers]) -> Iterator[tuple[Ints, Ints, Ints]]:
    """Pairs of the same lengths together, if they can be cut: which they are [B], sources [B, N], targets [B, T]."""
    lengths: dict[tuple[int, int], list[int]] = defaultdict(list)
    for number in range(len(pairs)):
        source, target = pairs[number]
        if source and len(target) <= 2 * len(source) and len(source) * len(target) <= MOST_PLACES:
            lengths[len(source), len(target)].append(number)
    for (length, most), numbers in lengths.items():
        at_once = max(1, min(AT_ONCE, HELD // (length * length * max(1, most))))
        for at in range(0, len(numbers), at_once):
            some = numbers[at : at + at_once]
            sides = ([pairs[n][side] for n in some] for side in (0, 1))
            sources, targets = (
                np.array(s, np.int64).reshape(len(some), n) for s, n in zip(sides, (length, most), strict=True)
            )
            yield np.array(some), sources, targets


def _ended(rows: Ints) -> Ints:
    return np.concatenate([rows, np.full((len(rows), 1), AFTER)], 1)


def _groups(rows: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Rows of pieces [B, N] → hashes of the groups of 1, 2, … that end with each piece, and of what is before it."""
    ended = np.concatenate([np.full((len(rows), ORDER), BEFORE), _ended(rows)], 1)
    real = _ended(rows) != BEFORE
    hashed = np.zeros_like(ended)
    for size in range(1, ORDER + 1):
        before = np.roll(hashed, 1, 1)  # what ended one place ahead; what comes round is never looked at
        hashed = mixed(before + size, ended)
        yield hashed[:, ORDER:][real], before[:, ORDER:][real]


def _tables(sizes: Sequence[Sequence[Ints]]) -> Iterator[Table]:
    """Hashes of groups of 1, 2, … pieces, and of what is before the last of them → how likely that is.

    The longest groups count as often as they stand there, a shorter one once for each that it is the end of.
    """
    for size, (hashed, before) in enumerate(sizes, 1):
        some = slice(None) if size == ORDER else np.unique(sizes[size][0], return_index=True)[1]
        kinds, place, count = np.unique(hashed[some], return_index=True, return_counts=True)
        contexts, whose = np.unique(before[some][place], return_inverse=True)
        total, different = np.bincount(whose, count), np.bincount(whose)
        once, twice = int((count == 1).sum()), int((count == 2).sum())
        less = float(np.clip(once / max(1, once + 2 * twice), *GIVEN_UP))
        shares, rests = (count - less) / total[whose], less * different / total
        yield Table(kinds, shares.astype(np.float32), contexts, rests.astype(np.float32))


def _found(keys: Ints, values: NDArray[np.float32], wanted: Ints) -> tuple[Floats, NDArray[np.bool_]]:
    """What stands under each key, 0 if nothing, and whether there is something."""
    if not len(keys):
        return np.zeros(len(wanted)), np.zeros(len(wanted), bool)
    place = np.searchsorted(keys, wanted).clip(max=len(keys) - 1)
    known = keys[place] == wanted
    return np.where(known, values[place], 0), known
