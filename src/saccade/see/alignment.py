"""From weights over tokens to links between words."""

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Span = tuple[int, int]


def words(text: str) -> list[Span]:
    """The spans of a text between its blanks.

    >>> words("two words")
    [(0, 3), (4, 9)]
    """
    return [match.span() for match in re.finditer(r"\S+", text)]


def align(weights: NDArray[np.float32], source: list[Span], target: list[Span], text: str, written: str) -> list[Span]:
    """Links (i, j) from 0: for each word j that was written, the source word i that was looked at most.

    `weights` [T, N] are over tokens, whose spans in `text` and `written` are given; what is beyond them (the ends)
    belongs to no word. The weights of a word's tokens are added on the side of the source and averaged on the other.

    >>> weights = np.array([[0.9, 0.1], [0.2, 0.8]], dtype=np.float32)
    >>> align(weights, [(0, 1), (2, 3)], [(0, 1), (2, 3)], "a b", "A B")
    [(0, 0), (1, 1)]
    """
    rows, columns = _membership(written, target, len(weights)), _membership(text, source, weights.shape[1])
    if not rows.shape[1] or not columns.shape[1]:
        return []
    mass = rows.T @ weights @ columns  # [words of the target, words of the source]
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
