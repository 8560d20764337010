"""What the weights themselves tell of a glance, without anybody's gold (Rikters & Fishel 2017).

All take weights [T, N]: for each word that was written, where it looked.
"""

import numpy as np
from numpy.typing import NDArray

Weights = NDArray[np.floating]


def entropy(weights: Weights) -> NDArray[np.float64]:
    """Of every row, in nats: 0 looks at one place, log N everywhere alike. Rows that do not add up to one are made to.

    >>> entropy(np.array([[1.0, 0.0], [0.5, 0.5]])).round(3)
    array([0.   , 0.693])
    """
    w = weights.astype(np.float64)
    total = w.sum(-1, keepdims=True)
    w = w / np.where(total > 0, total, 1.0)
    return np.asarray((w * -np.log(np.where(w > 0, w, 1.0))).sum(-1) + 0.0)


def coverage_deviation(weights: Weights) -> float:
    """How far each place is from being looked at once in all: mean of log(1 + (1 − Σ_t a_tn)²); 0 is best."""
    return float(np.log1p((1 - weights.sum(0, dtype=np.float64)) ** 2).mean()) if weights.size else 0.0


def absentminded_out(weights: Weights) -> float:
    """How scattered the looks of the written words are: their mean entropy."""
    return float(entropy(weights).mean()) if weights.size else 0.0


def absentminded_in(weights: Weights) -> float:
    """The same from the source: how scattered over what was written is the attention that each place got."""
    if not weights.size:
        return 0.0
    got = weights.T.astype(np.float64)  # [N, T]
    total = got.sum(-1, keepdims=True)
    return float(entropy(got / np.where(total > 0, total, 1.0)).mean())


def ailments(weights: Weights) -> list[str]:
    """What is wrong with how a model looked, if anything plainly is.

    >>> ailments(np.array([[0.9, 0.05, 0.05]] * 4))
    ['looks at one place for every word']
    """
    found: list[str] = []
    if not len(weights):
        return found
    off = np.abs(weights.sum(-1, dtype=np.float64) - 1)
    if (off > 1e-3).any():
        found.append(f"does not add up to one for {int((off > 1e-3).sum())} of {len(weights)} words")
    if len(weights) < 3 or weights.shape[1] < 3:
        return found
    moved = 0.5 * np.abs(np.diff(weights.astype(np.float64), axis=0)).sum(-1)  # the share that went elsewhere
    mean = weights.mean(0)
    if float(mean.max()) > 0.8:
        found.append("looks at one place for every word")
    elif float(moved.max()) < 0.05:
        found.append("does not move from word to word")
    return found
