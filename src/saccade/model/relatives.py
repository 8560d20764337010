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
from saccade.model.counts import Counts, mixed

LEAST, MOST = 2, 11  # symbols that relatives share: fewer are not worth mentioning, more are all the same
ROWS = 4_093  # vectors for pieces: a prime, so that few share one
DROPPED = 0.1  # how often training tells nothing of a relative
SIDES = 2  # who begins alike, and who ends alike

Ints = NDArray[np.int64]


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

    def __init__(self, pieces: NDArray[np.int16], starts: Ints, sides: Sequence[Side]) -> None:
        self.pieces, self.starts = pieces, starts  # of all words in a row, and where each begins, W + 1 numbers
        self.sides = tuple(sides)
        self.lengths = np.diff(starts)  # [W]

    def __deepcopy__(self, memo: dict[int, Any]) -> "Lexicon":
        return self  # it never changes, so copies of a model share it

    @classmethod
    def learn(cls, examples: Sequence[Numbers], counts: Counts) -> "Lexicon":
        """All words that can be cut; of several targets the first tells how."""
        places, texts, pieces = [], [], []
        for numbers, sources, cut in counts.spelt(examples):
            places += numbers.tolist()
            texts += list(sources)
            pieces += list(1 + cut % (ROWS - 1))
        first: dict[bytes, int] = {}
        for at in np.argsort(places):
            first.setdefault(texts[at].tobytes(), int(at))
        kept = list(first.values())
        starts = np.cumsum([0, *(len(texts[at]) for at in kept)], dtype=np.int64)
        said = np.concatenate([np.empty(0, np.int64), *(pieces[at] for at in kept)]).astype(np.int16)
        words = [texts[at] for at in kept]
        return cls(said, starts, [_side(words), _side([word[::-1] for word in words])])

    def find(self, texts: Ints, lengths: Ints) -> Found:
        """The nearest relatives of words [B, N] with so many symbols [B]: those who share most, of several the
        shortest.
        """
        at = np.arange(texts.shape[1])
        real = at < lengths[:, None]  # [B, N]
        order = np.where(real, lengths[:, None] - 1 - at, at)  # [B, N]: from the last to the first
        ahead = self._said(self.sides[0], texts, lengths, real, False)
        back = self._said(self.sides[1], np.take_along_axis(texts, order, 1), lengths, real, True)
        pieces = np.stack([ahead[0], np.take_along_axis(back[0], order, 1)])
        return Found(pieces, np.stack([ahead[1], back[1]]))

    def _said(self, side: Side, texts: Ints, lengths: Ints, real: NDArray[np.bool_], turned: bool) -> tuple[Ints, Ints]:
        count, longest = texts.shape
        if not (len(side.keys) and count and longest):
            return np.zeros(texts.shape, np.int64), np.zeros(count, np.int64)
        hashed = np.stack(list(_beginnings(texts)), 1)  # [B, N]
        place = np.searchsorted(side.keys, hashed).clip(max=len(side.keys) - 1)
        known = (side.keys[place] == hashed) & real & (np.arange(longest) >= LEAST - 1)
        one, other = side.words[place, 0], side.words[place, 1]  # [B, N]
        last, everyone = (lengths - 1).clip(min=0), np.arange(count)
        whole = known[everyone, last] & (self.lengths[one[everyone, last]] == lengths)  # the word itself is known
        itself = np.where(whole, one[everyone, last], -1)[:, None]
        who = np.where(one != itself, one, other)  # [B, N]
        found = known & (who >= 0)  # who shares more symbols shares these too, so it is true up to some place
        shared = np.where(found.any(1), found.sum(1) + LEAST - 1, 0)  # [B]
        who = who[everyone, (shared - 1).clip(min=0)]
        told = np.arange(longest) < shared[:, None]
        at = np.arange(longest)
        at = self.lengths[who][:, None] - 1 - at if turned else at
        pieces = np.where(told, self.pieces[np.where(told, self.starts[who][:, None] + at, 0)], 0)
        all_of_it = (shared > 0) & (self.lengths[who] == shared)
        return pieces.astype(np.int64), shared.clip(max=MOST) + all_of_it * (MOST + 1)

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """All of it, by name, to be written down."""
        sides = {f"{i}.{name}": array for i, side in enumerate(self.sides) for name, array in side._asdict().items()}
        return {"pieces": self.pieces, "starts": self.starts, **sides}

    @classmethod
    def of(cls, arrays: dict[str, NDArray[Any]]) -> "Lexicon":
        """The same, read back; what does not belong together is refused."""
        sides = [Side(*(arrays[f"{i}.{name}"] for name in Side._fields)) for i in range(SIDES)]
        lexicon = cls(arrays["pieces"], arrays["starts"], sides)
        words = len(lexicon.lengths)
        fits = lexicon.starts[0] == 0 and lexicon.starts[-1] == len(lexicon.pieces) and (lexicon.lengths >= 0).all()
        fits &= bool(((lexicon.pieces >= 0) & (lexicon.pieces < ROWS)).all())
        for side in sides:
            fits &= side.words.shape == (len(side.keys), 2) and bool((np.diff(side.keys) > 0).all())
            fits &= bool(((side.words >= -1) & (side.words < words)).all()) and bool((side.words[:, 0] >= 0).all())
        if not fits:
            raise ValueError("its parts do not belong together")
        return lexicon


class Relatives(nn.Module):
    """What is said of each symbol by who begins alike, and by who ends alike.

        x_n = Σ_side a(piece of n in the relative) + b(how many symbols they share, and whether that is all of it)

    Where nobody is known, nothing is said.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.lexicon: Lexicon | None = None
        self.pieces = nn.ModuleList(nn.Embedding(ROWS, width) for _ in range(SIDES))
        self.shared = nn.ModuleList(nn.Embedding(2 * (MOST + 1), width) for _ in range(SIDES))
        for table in (*self.pieces, *self.shared):
            assert isinstance(table, nn.Embedding)
            nn.init.normal_(table.weight, std=0.3 * width**-0.5)

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """Tokens [B, N] → what their relatives say of each: [B, N, E]."""
        real = mask & (tokens != STOP)
        found = (self.lexicon or NOBODY).find(tokens.cpu().numpy(), real.sum(1).cpu().numpy())
        pieces, shared = (torch.from_numpy(x).to(tokens.device) for x in found)
        said = []
        for side in range(SIDES):
            each = self.pieces[side](pieces[side]) + self.shared[side](shared[side]).unsqueeze(1)  # [B, N, E]
            told = (pieces[side] > 0).unsqueeze(-1)  # [B, N, 1]
            if self.training:
                told = told & (torch.rand(len(tokens), 1, 1, device=tokens.device) >= DROPPED)
            said.append(each * told)
        return torch.stack(said).sum(0)


def _side(words: Sequence[Ints]) -> Side:
    """Words by their beginnings."""
    longest = max(map(len, words), default=0)
    padded = np.zeros((len(words), longest), np.int64)
    lengths = np.array([len(word) for word in words], np.int64)
    for row, word in zip(padded, words, strict=True):
        row[: len(word)] = word
    hashed, whose = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for at, beginning in enumerate(_beginnings(padded)):
        if at >= LEAST - 1:
            there = np.flatnonzero(lengths > at)
            hashed.append(beginning[there])
            whose.append(there)
    keys, owners = np.concatenate(hashed), np.concatenate(whose)
    order = np.lexsort((owners, lengths[owners], keys))
    keys, owners = keys[order], owners[order]
    unique, first = np.unique(keys, return_index=True)
    second = np.minimum(first + 1, max(0, len(keys) - 1))
    another = (keys[second] == unique) & (second > first)
    return Side(unique, np.stack([owners[first], np.where(another, owners[second], -1)], 1).astype(np.int32))


def _beginnings(texts: Ints) -> Iterator[Ints]:
    """Of texts [B, N] the hashes of their first 1, 2, … symbols: N times [B]."""
    hashed = np.zeros(len(texts), np.int64)
    for symbols in texts.T:
        hashed = mixed(hashed, symbols)
        yield hashed


NOBODY = Lexicon(
    np.zeros(1, np.int16), np.zeros(1, np.int64), [Side(np.empty(0, np.int64), np.empty((0, 2), np.int32))] * 2
)
