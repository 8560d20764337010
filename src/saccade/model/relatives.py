"""Relatives: what the symbols of a word stood for in another that begins, or ends, as it does.

Who has heard COAL can say COAL'S. Of every word that a model learns from it is written down what each symbol stands for
(the pieces of `Counts`), and of any other word the model is told what its nearest relatives say. A word is never its
own relative: what training is told of a word is what would be known of it if it were new. So training finds out how far
relatives can be trusted, which it cannot of what it knows by heart.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from saccade.data import STOP, Numbers
from saccade.model.counts import Counts, counted, mixed

LEAST, MOST = 2, 11  # symbols that relatives share: fewer are not worth mentioning, more are all the same
ROWS = 4_093  # vectors for pieces: a prime, so that few share one
DROPPED = 0.1  # how often training tells nothing of a relative
SIDES = 2  # who begins alike, and who ends alike

Ints = NDArray[np.int64]
NONE = np.empty(0, np.int64)


class Side(NamedTuple):
    """Who begins alike, or, of words that are turned round, ends alike."""

    keys: Ints  # [K]: hashes of beginnings, sorted
    words: NDArray[np.int32]  # [K, 2]: the two shortest words that begin so; −1: there is one


class Found(NamedTuple):
    """What relatives tell of B words with up to N symbols."""

    pieces: Ints  # [2, B, N]: which vector each symbol gets from each side; 0: none
    shared: Ints  # [2, B]: how many symbols are shared, at most MOST; and MOST + 1 more if that is all of the relative


class Lexicon:
    """The words that were learned from, to be found by how they begin and end.

    >>> words = [[5, 6, 7], [5, 6, 8]]
    >>> lexicon = Lexicon.learn([(w, w) for w in words], Counts.learn([(w, w) for w in words], (9, 9)))
    >>> pieces, shared = lexicon.find(np.array([[5, 6, 7, 9], [5, 6, 8, 0]]), np.array([4, 3]))
    >>> (pieces[0] > 0).astype(int).tolist(), shared[0].tolist()
    ([[1, 1, 1, 0], [1, 1, 0, 0]], [15, 2])
    """

    def __init__(self, sizes: tuple[int, int], pieces: NDArray[np.int16], starts: Ints, sides: Sequence[Side]) -> None:
        self.sizes = sizes  # how many symbols there are
        self.pieces, self.starts = pieces, starts  # of all words in a row, and where each begins, W + 1 numbers
        self.sides = tuple(sides)
        self.lengths = np.diff(starts)  # [W]

    def __deepcopy__(self, memo: dict[int, Any]) -> "Lexicon":
        return self  # it never changes, so copies of a model share it

    @classmethod
    def learn(cls, examples: Sequence[Numbers], counts: Counts) -> "Lexicon":
        """All words that can be cut; of several targets the first tells how."""
        alike = [(*group, list(_beginnings(group[1]))[-1]) for group in counts.spelt(counted(examples))]
        numbers, wholes = (np.concatenate([NONE, *(group[i] for group in alike)]) for i in (0, 3))
        order = np.lexsort((numbers, wholes))
        again = np.zeros(len(order), bool)
        again[order[1:]] = wholes[order[1:]] == wholes[order[:-1]]
        kept = np.split(~again, np.cumsum([len(group[0]) for group in alike])[:-1])
        words = [sources[keep] for (_, sources, _, _), keep in zip(alike, kept, strict=False)]
        pieces = [cut[keep].ravel() for (_, _, cut, _), keep in zip(alike, kept, strict=False)]
        starts = np.cumsum(np.concatenate([[0], *(np.full(len(some), some.shape[1]) for some in words)]))
        told = (1 + np.concatenate([NONE, *pieces]) % (ROWS - 1)).astype(np.int16)
        return cls(
            counts.sizes, told, starts.astype(np.int64), [_side(words), _side([some[:, ::-1] for some in words])]
        )

    def find(self, texts: Ints, lengths: Ints) -> Found:
        """The nearest relatives of words [B, N] with so many symbols [B]: those who share most, of several the
        shortest.
        """
        at = np.arange(texts.shape[1])
        order = np.where(at < lengths[:, None], lengths[:, None] - 1 - at, at)  # [B, N]: from the last to the first
        ahead, shared = self._said(self.sides[0], texts, lengths, False)
        back, also = self._said(self.sides[1], np.take_along_axis(texts, order, 1), lengths, True)
        return Found(np.stack([ahead, np.take_along_axis(back, order, 1)]), np.stack([shared, also]))

    def _said(self, side: Side, texts: Ints, lengths: Ints, turned: bool) -> tuple[Ints, Ints]:
        """What who begins alike says of each symbol [B, N], and how much of it is shared [B]."""
        if not (len(side.keys) and texts.size):
            return np.zeros(texts.shape, np.int64), np.zeros(len(texts), np.int64)
        at, everyone, last = np.arange(texts.shape[1]), np.arange(len(texts)), (lengths - 1).clip(min=0)
        hashed = np.stack(list(_beginnings(texts)), 1)  # [B, N]
        place = np.searchsorted(side.keys, hashed).clip(max=len(side.keys) - 1)
        known = (side.keys[place] == hashed) & (at < lengths[:, None]) & (at >= LEAST - 1)
        one, other = side.words[place, 0], side.words[place, 1]  # [B, N]
        there = one[everyone, last]  # [B]: the shortest that begins with all of the word: itself, if it is known
        itself = np.where(known[everyone, last] & (self.lengths[there] == lengths), there, -1)
        who = np.where(one != itself[:, None], one, other)  # [B, N]
        found = known & (who >= 0)  # from LEAST symbols on, up to the most that are shared
        shared = np.where(found.any(1), found.sum(1) + LEAST - 1, 0)  # [B]
        relative = who[everyone, (shared - 1).clip(min=0)]  # [B]
        length = self.lengths[relative]
        told = at < shared[:, None]  # [B, N]
        index = self.starts[relative][:, None] + (length[:, None] - 1 - at if turned else at)
        pieces = np.where(told, self.pieces[index.clip(0, len(self.pieces) - 1)], 0)  # [B, N]
        return pieces.astype(np.int64), shared.clip(max=MOST) + ((shared > 0) & (length == shared)) * (MOST + 1)

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """All of it, by name, to be written down."""
        sides = {f"{i}.{name}": array for i, side in enumerate(self.sides) for name, array in side._asdict().items()}
        return {"sizes": np.array(self.sizes), "pieces": self.pieces, "starts": self.starts, **sides}

    @classmethod
    def of(cls, arrays: dict[str, NDArray[Any]]) -> "Lexicon":
        """The same, read back; what does not belong together is refused."""
        source, target = arrays["sizes"].tolist()
        sides = [Side(*(arrays[f"{i}.{name}"] for name in Side._fields)) for i in range(SIDES)]
        rows = [arrays["pieces"], arrays["starts"], *(side.keys for side in sides)]
        if all(row.ndim == 1 for row in rows) and all(array.dtype.kind == "i" for array in arrays.values()):
            lexicon = cls((source, target), arrays["pieces"], arrays["starts"], sides)
            if lexicon._sound():
                return lexicon
        raise ValueError("its parts do not belong together")

    def _sound(self) -> bool:
        """Whether every number is the number of something."""
        words, pieces = len(self.lengths), len(self.pieces)
        found = [self.starts[:1].tolist() == [0], self.starts[-1:].tolist() == [pieces], (self.lengths >= 0).all()]
        found.append(_within(self.pieces, 1, ROWS))
        for keys, owners in self.sides:
            found += [owners.shape == (len(keys), 2), (np.diff(keys) > 0).all()]
            found += [_within(owners, -1, words), _within(owners[..., 0], 0, words)]
        return all(found)


class Relatives(nn.Module):
    """What is said of each symbol by who begins alike, and by who ends alike.

        x_n = Σ_side a(piece of n in the relative) + b(how many symbols they share, and whether that is all of it)

    Where nobody is known, nothing is said.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.lexicon = NOBODY
        self.pieces = nn.ModuleList(nn.Embedding(ROWS, width) for _ in range(SIDES))
        self.shared = nn.ModuleList(nn.Embedding(2 * (MOST + 1), width) for _ in range(SIDES))
        for table in (*self.pieces, *self.shared):
            assert isinstance(table, nn.Embedding)
            nn.init.normal_(table.weight, std=0.3 * width**-0.5)

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """Tokens [B, N] → what their relatives say of each: [B, N, E]."""
        real = mask & (tokens != STOP)
        found = self.lexicon.find(tokens.cpu().numpy(), real.sum(1).cpu().numpy())
        pieces, shared = (torch.from_numpy(x).to(tokens.device) for x in found)
        said = []
        for side in range(SIDES):
            each = self.pieces[side](pieces[side]) + self.shared[side](shared[side]).unsqueeze(1)  # [B, N, E]
            told = (pieces[side] > 0).unsqueeze(-1)  # [B, N, 1]
            if self.training:
                told = told & (torch.rand(len(tokens), 1, 1, device=tokens.device) >= DROPPED)
            said.append(each * told)
        return torch.stack(said).sum(0)


def _side(alike: Sequence[Ints]) -> Side:
    """Words by their beginnings: groups of words of the same length [B, N], numbered through."""
    hashed, whose, lengths, first = [NONE], [NONE], [NONE], 0
    for words in alike:
        for beginning in list(_beginnings(words))[LEAST - 1 :]:
            hashed.append(beginning)
            whose.append(first + np.arange(len(words)))
            lengths.append(np.full(len(words), words.shape[1]))
        first += len(words)
    keys, owners = np.concatenate(hashed), np.concatenate(whose)
    order = np.lexsort((owners, np.concatenate(lengths), keys))
    keys, owners = keys[order], owners[order]
    unique, one = np.unique(keys, return_index=True)
    other = np.minimum(one + 1, max(0, len(keys) - 1))
    another = (keys[other] == unique) & (other > one)
    return Side(unique, np.stack([owners[one], np.where(another, owners[other], -1)], 1).astype(np.int32))


def _beginnings(texts: Ints) -> Iterator[Ints]:
    """Of texts [B, N] the hashes of their first 1, 2, … symbols: N times [B]."""
    hashed = np.zeros(len(texts), np.int64)
    for symbols in texts.T:
        hashed = mixed(hashed, symbols)
        yield hashed


def _within(numbers: NDArray[np.integer[Any]], least: int, below: int) -> bool:
    return not numbers.size or bool(numbers.min() >= least and numbers.max() < below)


NOBODY = Lexicon((0, 0), np.empty(0, np.int16), np.zeros(1, np.int64), [_side([]), _side([])])
