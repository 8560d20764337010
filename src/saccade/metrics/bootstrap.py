"""How far a figure would move with another test set of the same kind."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

SAMPLES = 1000


def interval(
    parts: NDArray[np.float64], score: Callable[[NDArray[np.float64]], float], seed: int = 0, samples: int = SAMPLES
) -> tuple[float, float]:
    """The middle 95% of a score over test sets drawn, with replacement, from this one.

    `parts` [S, P] has a row of numbers that add up for each sentence; `score` turns their sum into the figure.

    >>> low, high = interval(np.array([[1.0, 1.0], [0.0, 1.0]] * 50), lambda total: 100 * total[0] / total[1])
    >>> low < 50 < high
    True
    """
    if not len(parts):
        return 0.0, 0.0
    chance = np.random.default_rng(seed)
    found = [score(parts[chance.integers(len(parts), size=len(parts))].sum(0)) for _ in range(samples)]
    low, high = np.percentile(found, [2.5, 97.5])
    return float(low), float(high)


def paired(
    better: NDArray[np.float64],
    worse: NDArray[np.float64],
    score: Callable[[NDArray[np.float64]], float],
    seed: int = 0,
    samples: int = SAMPLES,
) -> float:
    """The share of test sets, drawn from this one, on which the better of two is not better (Koehn 2004).

    Both have a row [S, P] for the same sentences, and the same sentences are drawn for both.

    >>> good, fair = (np.array([[1.0, 1.0]] * n + [[0.0, 1.0]] * (100 - n)) for n in (90, 60))
    >>> paired(good, fair, lambda total: float(total[0] / total[1])) < 0.05
    True
    """
    if not len(better):
        return 1.0
    chance = np.random.default_rng(seed)
    lost = 0
    for _ in range(samples):
        rows = chance.integers(len(better), size=len(better))
        lost += score(better[rows].sum(0)) <= score(worse[rows].sum(0))
    return float(lost / samples)
