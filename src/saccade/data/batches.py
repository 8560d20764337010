"""Batches of about equal work, sentences of like length together, all that is said of a picture with it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from saccade.data.examples import Examples, Numbers
from saccade.data.pictures import Pictures
from saccade.data.tokenisers import PAD, START, STOP


@dataclass(frozen=True, slots=True)
class Batch:
    """Sources that end with STOP, and targets as they are given (after START) and as they are wanted (up to STOP).

    Pictures have no end: beside their pixels stands how high and how wide each really is. A picture stands there once,
    with the K things, at most, that are said of it, from the longest to the shortest; a picture with fewer has rows of
    which nothing is real.
    """

    source: Tensor  # [B, N], or uint8 [B, 3, H, W], or of a backbone float16 [B, C, h, w]
    mask: Tensor  # [B, N], or [B, 2]
    given: Tensor  # [B, T], or [B, K, T]
    wanted: Tensor  # the same
    real: Tensor  # the same

    @classmethod
    def of(cls, examples: Sequence[Numbers], pictures: Pictures | None = None) -> "Batch":
        given, wanted = pad([[START, *t] for _, t in examples]), pad([[*t, STOP] for _, t in examples])
        lengths = torch.tensor([len(t) + 1 for _, t in examples])
        real = torch.arange(given.shape[1]) < lengths.unsqueeze(1)
        if pictures is not None:
            numbers = np.array([s[0] for s, _ in examples])
            groups = [torch.tensor(sorted(g, key=lambda i: -len(examples[i][1]))) for g in _groups(numbers)]
            rows = torch.nn.utils.rnn.pad_sequence(groups, batch_first=True, padding_value=-1)  # [B, K]
            places = [int(numbers[g[0]]) for g in groups]
            pixels = stack(pictures.seen[places], pictures.sizes[places])
            return cls(*pixels, given[rows], wanted[rows], real[rows] & (rows >= 0).unsqueeze(-1))
        source = pad([[*s, STOP] for s, _ in examples])
        sizes = torch.tensor([len(s) + 1 for s, _ in examples])
        return cls(source, torch.arange(source.shape[1]) < sizes.unsqueeze(1), given, wanted, real)

    def to(self, device: torch.device) -> "Batch":
        if device.type == "cpu":
            return self
        moved = (x.to(device) for x in (self.source, self.mask, self.given, self.wanted, self.real))
        return Batch(*moved)


def stack(seen: NDArray[Any], sizes: NDArray[np.int32]) -> tuple[Tensor, Tensor]:
    """Pictures [B, H, W, 3], or features, and their sizes [B, 2] as an encoder reads them: [B, 3, H, W], [B, 2]."""
    return torch.from_numpy(seen).permute(0, 3, 1, 2), torch.from_numpy(sizes).long()


def pad(rows: Sequence[Sequence[int]]) -> Tensor:
    """Rows of numbers as one tensor [B, longest]."""
    longest = max(map(len, rows), default=0)
    return torch.tensor([[*row, *[PAD] * (longest - len(row))] for row in rows], dtype=torch.long)


def batches(examples: Examples, tokens: int, seed: int, epoch: int) -> list[NDArray[np.int64]]:
    """Which examples go into each batch of an epoch: about `tokens` tokens of source and target, padding counted.

    A pure function of (seed, epoch): the order is drawn first, lengths are sorted within it (ties fall as drawn), and
    the batches are shuffled. What is said of one picture stays together, so that the picture is read once.
    """
    chance = np.random.default_rng([seed, epoch])
    sources, targets = (lengths + 1 for lengths in examples.lengths())
    groups = None if examples.pictures is None else _groups(examples.source)
    counts = np.ones(len(examples), np.int64)
    if groups is not None:
        counts = np.array([len(g) for g in groups])
        sources, targets = (np.array([side[g].max() for g in groups], np.int64) for side in (sources, targets))
    order = chance.permutation(len(counts))
    order = order[np.lexsort((sources[order], targets[order]))]
    made: list[NDArray[np.int64]] = []
    start = source = rows = 0
    for i, (count, source_length, target_length) in enumerate(
        zip(counts[order].tolist(), sources[order].tolist(), targets[order].tolist(), strict=True)
    ):
        source, rows = max(source, source_length), rows + count
        if i > start and rows * (source + target_length) > tokens:
            made.append(order[start:i])
            start, source, rows = i, source_length, count
    if len(order):
        made.append(order[start:])
    if groups is not None:
        made = [np.concatenate([groups[i] for i in batch]) for batch in made]
    return [made[i] for i in chance.permutation(len(made))]


def _groups(pictures: NDArray[np.integer[Any]]) -> list[NDArray[np.int64]]:
    """The examples of each picture, given the picture of each example."""
    order = np.argsort(pictures, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(pictures[order])) + 1) if len(order) else []
