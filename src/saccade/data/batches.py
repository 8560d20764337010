"""Batches of about equal work, sentences of like length together."""

from collections.abc import Sequence
from dataclasses import dataclass

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

    Pictures have no end: beside their pixels stands how high and how wide each really is.
    """

    source: Tensor  # [B, N], or uint8 [B, 3, H, W]
    mask: Tensor  # [B, N], or [B, 2]
    given: Tensor  # [B, T]
    wanted: Tensor  # [B, T]
    real: Tensor  # [B, T]

    @classmethod
    def of(cls, examples: Sequence[Numbers], pictures: Pictures | None = None) -> "Batch":
        given, wanted = pad([[START, *t] for _, t in examples]), pad([[*t, STOP] for _, t in examples])
        lengths = torch.tensor([len(t) + 1 for _, t in examples])
        real = torch.arange(given.shape[1]) < lengths.unsqueeze(1)
        if pictures is not None:
            places = [s[0] for s, _ in examples]
            return cls(*stack(pictures.pixels[places], pictures.sizes[places]), given, wanted, real)
        source = pad([[*s, STOP] for s, _ in examples])
        sizes = torch.tensor([len(s) + 1 for s, _ in examples])
        return cls(source, torch.arange(source.shape[1]) < sizes.unsqueeze(1), given, wanted, real)

    def to(self, device: torch.device) -> "Batch":
        if device.type == "cpu":
            return self
        moved = (x.to(device) for x in (self.source, self.mask, self.given, self.wanted, self.real))
        return Batch(*moved)


def stack(pixels: NDArray[np.uint8], sizes: NDArray[np.int32]) -> tuple[Tensor, Tensor]:
    """Pictures [B, H, W, 3] and their sizes [B, 2] as an encoder reads them: [B, 3, H, W], [B, 2]."""
    return torch.from_numpy(pixels).permute(0, 3, 1, 2), torch.from_numpy(sizes).long()


def pad(rows: Sequence[Sequence[int]]) -> Tensor:
    """Rows of numbers as one tensor [B, longest]."""
    longest = max(map(len, rows), default=0)
    return torch.tensor([[*row, *[PAD] * (longest - len(row))] for row in rows], dtype=torch.long)


def batches(examples: Examples, tokens: int, seed: int, epoch: int) -> list[NDArray[np.int64]]:
    """Which examples go into each batch of an epoch: about `tokens` tokens of source and target, padding counted.

    A pure function of (seed, epoch): the order is drawn first, lengths are sorted within it (ties fall as drawn), and
    the batches are shuffled.
    """
    chance = np.random.default_rng([seed, epoch])
    order = chance.permutation(len(examples))
    sources, targets = (lengths[order] + 1 for lengths in examples.lengths())
    by_length = np.lexsort((sources, targets))
    order, sources, targets = order[by_length], sources[by_length].tolist(), targets[by_length].tolist()
    made: list[NDArray[np.int64]] = []
    start = source = 0
    for i, (source_length, target_length) in enumerate(zip(sources, targets, strict=True)):
        source = max(source, source_length)
        if i > start and (i + 1 - start) * (source + target_length) > tokens:
            made.append(order[start:i])
            start, source = i, source_length
    if len(order):
        made.append(order[start:])
    return [made[i] for i in chance.permutation(len(made))]
