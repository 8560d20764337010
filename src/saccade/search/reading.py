"""Sources as models read them: numbers, where they lie in the text, and chance that belongs to each."""

import hashlib
import random
from dataclasses import dataclass

import torch
from torch import Tensor

from saccade.data import STOP, Encoded, Fitted
from saccade.data.batches import pad
from saccade.see import Token


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """A text, or a picture, as the models read it."""

    text: str
    ids: list[int]
    tokens: tuple[Token, ...]  # with the end
    unknown: tuple[str, ...]
    cut: bool
    picture: Fitted | None = None
    readings: tuple[Encoded, ...] = ()  # one for each model, where they differ
    wrong: str = ""  # why it cannot be read, if so

    def numbers(self, model: int) -> list[int]:
        return self.readings[model].ids if self.readings else self.ids


def padded(rows: list[list[int]], device: torch.device) -> tuple[Tensor, Tensor]:
    """Numbers that end with STOP, and which of them are real: [B, N] each."""
    tokens = pad([[*row, STOP] for row in rows]).to(device)
    lengths = torch.tensor([len(row) + 1 for row in rows], device=device)
    return tokens, torch.arange(tokens.shape[1], device=device) < lengths.unsqueeze(1)


def spread_onto_first(sources: list[Reading], model: int, length: int) -> Tensor:
    """How the pieces of a model lie on those of the first, by the characters they share: [B, N, N of the first].

    Rows add up to 1, so weights that are spread still do; the end lies on the end.
    """
    widest = max(len(s.tokens) for s in sources)
    onto = torch.zeros(len(sources), length, widest)
    for b, source in enumerate(sources):
        spans, end = source.readings[model].spans[: length - 1], len(source.tokens) - 1
        for n, (start, stop) in enumerate(spans):
            for m, (_, (first, last)) in enumerate(source.tokens[:-1]):
                onto[b, n, m] = max(0, min(stop, last) - max(start, first))
        onto[b, len(spans), end] = 1
        lost = onto[b].sum(-1) == 0  # a piece that shares no character with any, such as one of a cut source
        onto[b, lost, end] = 1
    return onto / onto.sum(-1, keepdim=True)


def chances(source: list[int] | str, seed: int, samples: int, longest: int) -> Tensor:
    """Chance that depends on the source and the seed alone, so that the company of others changes nothing."""
    return torch.tensor([_numbers(repr((seed, sample, source)), longest) for sample in range(samples)])


def _numbers(key: str, count: int) -> list[float]:
    chance = random.Random(hashlib.sha256(key.encode()).digest())
    return [chance.random() for _ in range(count)]
