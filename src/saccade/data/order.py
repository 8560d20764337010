"""Does the target follow the source in order, as sounds follow letters? Found out from the pairs alone."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from saccade.data.examples import Numbers

PAIRS, ROUNDS = 1_000, 4
CELLS = 1_000_000  # meetings of two symbols that are enough to learn from: long texts are many at once
TINY = 1e-12
SURE = 0.5  # share of a target symbol that one source symbol must account for, to be counted


def order(examples: Sequence[Numbers]) -> float:
    """The correlation between where symbols of the target stand and where those of the source stand that they go with.

    Which go with which is learned by EM from how often they meet, wherever they stand (IBM's model 1).

    >>> letters = [[1, 2, 3], [3, 4, 5], [5, 1, 6], [2, 6, 4], [4, 1], [6, 3], [5, 2], [1, 5, 3]]
    >>> round(order([(s, s) for s in letters]), 2), round(order([(s, s[::-1]) for s in letters]), 2)
    (1.0, -1.0)
    """
    step = max(1, len(examples) // PAIRS)
    given, cells = [], 0
    for i in range(0, len(examples), step):
        source, target = (np.array(side) for side in examples[i])
        more = len(source) * len(target)
        if more > 0 and cells + more <= CELLS:
            given.append((source, target))
            cells += more
    if not given:
        return 0.0
    meetings = np.concatenate([(s[:, None].astype(np.int64) << 32 | t).ravel() for s, t in given])
    kinds, numbers = np.unique(meetings, return_inverse=True)  # which symbols meet at all, and who does in each cell
    meet = np.split(numbers, np.cumsum([len(s) * len(t) for s, t in given])[:-1])
    _, whose = np.unique(kinds >> 32, return_inverse=True)  # the source symbol of each kind
    chances = np.ones(len(kinds))  # how likely a source symbol brings about a target symbol
    for _ in range(ROUNDS):
        shares = [_shares(chances[m].reshape(len(s), len(t))) for m, (s, t) in zip(meet, given, strict=True)]
        counts = np.bincount(numbers, np.concatenate([found.ravel() for found in shares]))
        chances = counts / np.bincount(whose, counts)[whose]
    found, wanted = [], []
    for m, (source, target) in zip(meet, given, strict=True):
        shares_of = _shares(chances[m].reshape(len(source), len(target)))
        sure = shares_of.max(0) >= SURE
        places = (np.arange(len(source)) + 0.5) / len(source)
        found += (places @ shares_of)[sure].tolist()
        wanted += ((np.arange(len(target)) + 0.5) / len(target))[sure].tolist()
    if len(found) < 2 or np.std(found) == 0 or np.std(wanted) == 0:
        return 0.0
    return float(np.corrcoef(found, wanted)[0, 1])


def _shares(meet: NDArray[np.float64]) -> NDArray[np.float64]:
    """How much each source symbol accounts for each target symbol: [N, T], columns that add up to 1."""
    return np.asarray(meet / np.maximum(meet.sum(0, keepdims=True), TINY))


def recurring(sources: Sequence[Sequence[int]]) -> float:
    """Of three symbols in a row in every other source, the share that stands in the rest of them too.

    >>> recurring([[1, 2, 3], [1, 2, 3], [2, 3, 4], [5, 6, 7]])
    0.5
    """
    known, asked = (
        [tuple(s[i : i + 3]) for s in some for i in range(len(s) - 2)] for some in (sources[::2], sources[1::2])
    )
    return sum(map(set(known).__contains__, asked)) / max(1, len(asked))
