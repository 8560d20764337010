"""How far a figure would move with another test set of the same kind."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

SAMPLES = 1000
Z = 1.96  # of the normal distribution 95% lie within so many standard deviations


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


def wilson(right: float, total: float) -> tuple[float, float]:
    """Between which shares, in percent, the true one lies with 95% (Wilson 1927), if so many of all were right. Of none
    or all no other test set can be drawn, and yet the next one may be otherwise.

        (p + z²/2n ± z √(p(1 − p)/n + z²/4n²)) / (1 + z²/n)

    >>> [[round(end, 1) for end in wilson(right, 10)] for right in (0, 5, 10)]
    [[0.0, 27.8], [23.7, 76.3], [72.2, 100.0]]
    """
    if not total:
        return 0.0, 100.0
    p, n = right / total, total
    middle, half = p + Z**2 / (2 * n), Z * math.sqrt(p * (1 - p) / n + Z**2 / (4 * n**2))
    low, high = ((middle + side) / (1 + Z**2 / n) for side in (-half, half))
    return 100 * max(0.0, low), 100 * min(1.0, high)


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
