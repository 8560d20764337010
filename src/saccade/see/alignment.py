"""From weights over tokens to links between words."""

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Span = tuple[int, int]
END = "∎"  # shown where the source ends and where writing stopped


def words(text: str) -> list[Span]:
    """The spans of a text between its blanks.

    >>> words("two words")
    [(0, 3), (4, 9)]
    """
    return [match.span() for match in re.finditer(r"\S+", text)]


def merge(
    weights: NDArray[np.float32], source: Sequence[Span], target: Sequence[Span], text: str, written: str
) -> NDArray[np.float32]:
    """Weights over tokens [T, N] as weights over words [words of `written`, words of `text`].

    The weights of a word's tokens are added on the side of the source and averaged on the other; what is beyond the
    words (the ends) belongs to none, so a row need not add up to one.

    >>> merge(np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]]), [(0, 1), (1, 2), (3, 4)], [(0, 1), (1, 2)], "ab c", "AB")
    array([[0.65, 0.35]])
    """
    rows, columns = _membership(written, target, len(weights)), _membership(text, source, weights.shape[1])
    pieces = np.maximum(rows.sum(0), 1)  # of each word that was written
    merged: NDArray[np.float32] = (rows / pieces).T @ weights @ columns
    return merged


def align(
    weights: NDArray[np.float32],
    source: Sequence[Span],
    target: Sequence[Span],
    text: str,
    written: str,
    threshold: float | None = None,
) -> list[Span]:
    """Links (i, j) from 0: for each word j that was written, the source word i that was looked at most.

    `weights` [T, N] are over tokens, whose spans in `text` and `written` are given. With a `threshold`, every word that
    got at least so much is linked, in place of the one that got most.

    >>> weights = np.array([[0.9, 0.1], [0.2, 0.8]], dtype=np.float32)
    >>> align(weights, [(0, 1), (2, 3)], [(0, 1), (2, 3)], "a b", "A B")
    [(0, 0), (1, 1)]
    """
    mass = merge(weights, source, target, text, written)
    if not mass.size:
        return []
    if threshold is not None:
        return [(int(i), int(j)) for j, i in np.argwhere(mass >= threshold)]
    return [(int(i), j) for j, i in enumerate(mass.argmax(1)) if mass[j, i] > 0]


def _membership(text: str, spans: Sequence[Span], tokens: int) -> NDArray[np.float32]:
    """Which token belongs to which word: [tokens, words]. A token belongs to the word of its last visible character."""
    found = words(text)
    member = np.zeros((tokens, len(found)), dtype=np.float32)
    ends = np.array([end for _, end in found])
    for token, (start, end) in enumerate(spans[:tokens]):
        last = start + len(text[start:end].rstrip())
        if last > start:
            member[token, int(np.searchsorted(ends, last))] = 1
    return member
