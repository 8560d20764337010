"""The tree that a beam grows: everything it ever kept, also what it gave up. Only who wants to see it pays for it."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from torch import Tensor

from saccade.data import STOP
from saccade.see import Branch
from saccade.see.alignment import END


class Kept(NamedTuple):
    """One word that was kept: who follows its parents reads the hypothesis up to here."""

    parent: int  # the one that it continues, by its place among all of its sentence; -1: nothing yet
    token: int
    score: float  # of all up to here, summed natural-log probability


class Grown:
    """The trees of a batch of sentences, while a search goes on."""

    def __init__(self, batch: int, beam: int) -> None:
        self.trees: list[list[Kept]] = [[] for _ in range(batch)]
        self.tips = [[-1] * beam for _ in range(batch)]  # where in its tree each hypothesis has arrived

    def add(self, rows: Tensor, *offers: tuple[Tensor, Tensor, Tensor]) -> None:
        """What ended, and then what goes on: scores, parents and words [b, k] of each, -inf where there is none."""
        for b, row in enumerate(rows.tolist()):
            tree, tips = self.trees[row], self.tips[row]
            for scores, parents, words in offers:
                self.tips[row] = []
                for score, parent, word in zip(*(x[b].tolist() for x in (scores, parents, words)), strict=True):
                    self.tips[row].append(len(tree) if score > -math.inf else -1)
                    if score > -math.inf:
                        tree.append(Kept(tips[parent], word, score))


def branches(tree: Sequence[Kept], decode: Callable[[Sequence[int]], str]) -> tuple[Branch, ...]:
    """The same in words: what each number added to the text before it."""
    ids: list[list[int]] = []
    texts: list[str] = []
    found = []
    for parent, token, score in tree:
        before, text = ([], "") if parent < 0 else (ids[parent], texts[parent])
        ids.append([*before, token])
        texts.append(text if token == STOP else decode(ids[-1]))
        added = END if token == STOP else texts[-1][len(text) :] or "␣"
        found.append(Branch(parent, added, score, math.exp(score - (0.0 if parent < 0 else tree[parent].score))))
    return tuple(found)
