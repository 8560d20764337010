"""Does the target follow the source in order, as sounds follow letters? Found out from the pairs alone."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from saccade.data.examples import Numbers

PAIRS, ROUNDS = 1_000, 4
SURE = 0.5  # share of a target symbol that one source symbol must account for, to be counted


def order(examples: Sequence[Numbers]) -> float:
    """The correlation between where symbols of the target stand and where those of the source stand that they go with.

    Which go with which is learned by EM from how often they meet, wherever they stand (IBM's model 1).

    >>> letters = [[1, 2, 3], [3, 4, 5], [5, 1, 6], [2, 6, 4], [4, 1], [6, 3], [5, 2], [1, 5, 3]]
    >>> round(order([(s, s) for s in letters]), 2), round(order([(s, s[::-1]) for s in letters]), 2)
    (1.0, -1.0)
    """
    step = max(1, len(examples) // PAIRS)
    given = [(s, t) for s, t in (examples[i] for i in range(0, len(examples), step)) if s and t]
    if not given:
        return 0.0
    (sources, kinds), (targets, others) = (_renumbered(side) for side in zip(*given, strict=True))
    some, shape = list(zip(sources, targets, strict=True)), (kinds, others)
    chances: NDArray[np.float64] = np.ones(shape)  # how likely a source symbol brings about each target symbol
    for _ in range(ROUNDS):
        counts = np.full(shape, 1e-9)
        for source, target in some:
            np.add.at(counts, np.ix_(source, target), _shares(chances, source, target))
        chances = counts / counts.sum(1, keepdims=True)
    found, wanted = [], []
    for source, target in some:
        shares = _shares(chances, source, target)
        sure = shares.max(0) >= SURE
        places = (np.arange(len(source)) + 0.5) / len(source)
        found += (places @ shares)[sure].tolist()
        wanted += ((np.arange(len(target)) + 0.5) / len(target))[sure].tolist()
    if len(found) < 2 or np.std(found) == 0 or np.std(wanted) == 0:
        return 0.0
    return float(np.corrcoef(found, wanted)[0, 1])


def _renumbered(texts: Sequence[Sequence[int]]) -> tuple[list[NDArray[np.int64]], int]:
    """The same with numbers for those symbols alone that stand in them, and how many there are: tables stay small."""
    symbols, numbers = np.unique(np.concatenate(texts), return_inverse=True)
    return np.split(numbers, np.cumsum([len(text) for text in texts])[:-1]), len(symbols)


def _shares(chances: NDArray[np.float64], source: NDArray[np.int64], target: NDArray[np.int64]) -> NDArray[np.float64]:
    """How much each source symbol accounts for each target symbol: [N, T], columns that add up to 1."""
    meet = chances[np.ix_(source, target)]
    return np.asarray(meet / meet.sum(0, keepdims=True))


def recurring(sources: Sequence[Sequence[int]]) -> float:
    """Of three symbols in a row in every other source, the share that stands in the rest of them too.

    >>> recurring([[1, 2, 3], [1, 2, 3], [2, 3, 4], [5, 6, 7]])
    0.5
    """
    known, asked = (
        [tuple(s[i : i + 3]) for s in some for i in range(len(s) - 2)] for some in (sources[::2], sources[1::2])
    )
    return sum(map(set(known).__contains__, asked)) / max(1, len(asked))
