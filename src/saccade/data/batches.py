"""Batches of about equal work, sentences of like length together."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from saccade.data.tokenisers import PAD, START, STOP

Numbers = tuple[list[int], list[int]]  # a source and a target


@dataclass(frozen=True, slots=True)
class Batch:
    """Sources that end with STOP, and targets as they are given (after START) and as they are wanted (up to STOP)."""

    source: Tensor  # [B, N]
    mask: Tensor  # [B, N]
    given: Tensor  # [B, T]
    wanted: Tensor  # [B, T]
    real: Tensor  # [B, T]

    @classmethod
    def of(cls, examples: Sequence[Numbers]) -> "Batch":
        source = pad([[*s, STOP] for s, _ in examples])
        given, wanted = pad([[START, *t] for _, t in examples]), pad([[*t, STOP] for _, t in examples])
        lengths = torch.tensor([len(t) + 1 for _, t in examples])
        real = torch.arange(given.shape[1]) < lengths.unsqueeze(1)
        sizes = torch.tensor([len(s) + 1 for s, _ in examples])
        return cls(source, torch.arange(source.shape[1]) < sizes.unsqueeze(1), given, wanted, real)


def pad(rows: Sequence[Sequence[int]]) -> Tensor:
    """Rows of numbers as one tensor [B, longest]."""
    longest = max(map(len, rows), default=0)
    return torch.tensor([[*row, *[PAD] * (longest - len(row))] for row in rows], dtype=torch.long)


def batches(examples: Sequence[Numbers], tokens: int, seed: int, epoch: int) -> Iterator[list[int]]:
    """Which examples go into each batch of an epoch: about `tokens` tokens of source and target, padding counted.

    A pure function of (seed, epoch): the order is drawn first, lengths are sorted within it (ties fall as drawn), and
    the batches are shuffled.
    """
    chance = random.Random(f"{seed} {epoch}")
    order = list(range(len(examples)))
    chance.shuffle(order)
    order.sort(key=lambda i: (len(examples[i][1]), len(examples[i][0])))
    made: list[list[int]] = []
    batch: list[int] = []
    source = target = 0
    for i in order:
        wider = max(source, len(examples[i][0]) + 1), max(target, len(examples[i][1]) + 1)
        if batch and (len(batch) + 1) * sum(wider) > tokens:
            made.append(batch)
            batch, wider = [], (len(examples[i][0]) + 1, len(examples[i][1]) + 1)
        batch.append(i)
        source, target = wider
    if batch:
        made.append(batch)
    chance.shuffle(made)
    return iter(made)
