"""The interface of every decoder: what has been written so far and a Memory → the next word.

`init` makes the first state for K hypotheses a sentence, `step` writes one word, `forward` reads a whole given target
at once where the mathematics allows. Hypotheses are the query axis of attention: the memory is never copied for them.
Nothing about a sentence is kept on `self`.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from saccade.attention import Dropout
from saccade.config import ModelConfig
from saccade.model.memory import Memory

Look = Tensor | None  # how somebody interferes with where a decoder looks


@dataclass(frozen=True, slots=True)
class State:
    """What a decoder carries from word to word: named tensors [B, K, ..], and how many words were written."""

    tensors: dict[str, Tensor]
    written: int = 0

    def __getitem__(self, name: str) -> Tensor:
        return self.tensors[name]

    def next(self, **tensors: Tensor) -> "State":
        return State(tensors, self.written + 1)

    def reorder(self, index: Tensor) -> "State":
        """Hypothesis k continues what hypothesis index[b, k] was: index [B, K]."""
        rows = torch.arange(len(index), device=index.device).unsqueeze(1)  # [B, 1]
        return State({name: x[rows, index] for name, x in self.tensors.items()}, self.written)

    def select(self, rows: Tensor) -> "State":
        """Only these sentences."""
        return State({name: x[rows] for name, x in self.tensors.items()}, self.written)


class Step(NamedTuple):
    """One word further."""

    logits: Tensor  # [B, K, V]
    state: State
    weights: Tensor | None  # [B, K, L, H, N]: where each layer and head looked; None without attention


class Outputs(NamedTuple):
    """Whole targets, read at once; `readout` turns hidden vectors into logits."""

    hidden: Tensor  # [B, K, T, D]
    weights: Tensor | None  # [B, K, T, L, H, N], if asked for
    itself: Tensor | None = None  # [B, K, T, L, H, T]: where it looked among the words before, if that is how it works
    gates: Tensor | None = None  # [B, K, T]: how much of what was seen it let in, if it has a gate


class Decoder(nn.Module):
    """The words of the target: their vectors, and the layer that chooses the next one."""

    def __init__(self, config: ModelConfig, vocabulary: int, embedding: int, output: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, embedding)
        nn.init.normal_(self.embed.weight, std=embedding**-0.5)
        self.drop = Dropout(config.dropout)
        self.drop_words = Dropout(config.dropout, constant=config.variational)
        self.output = nn.Linear(output, vocabulary)
        nn.init.zeros_(self.output.bias)
        if config.tied:
            self.output.weight = self.embed.weight

    def readout(self, hidden: Tensor) -> Tensor:
        """[.., D] → logits [.., V]"""
        logits: Tensor = self.output(self.drop(hidden))
        return logits

    @abstractmethod
    def prepare(self, memory: Memory) -> Memory:
        """Does once per source what does not depend on what is written."""

    @abstractmethod
    def init(self, memory: Memory, hypotheses: int = 1) -> State: ...

    @abstractmethod
    def step(
        self, memory: Memory, state: State, tokens: Tensor, *, need_weights: bool = True, look: Look = None
    ) -> Step:
        """Tokens [B, K] were just written: what comes next?

        `look` [B, K, N] interferes with the glance: a boolean one hides places, a float one is where to look instead.
        """

    def forward(self, memory: Memory, targets: Tensor, need_weights: bool = False, *, look: Look = None) -> Outputs:
        """Targets [B, K, T], each word of which is given: what would come after each? `look` is [B, K, T, N].

        Those who have one target for each source leave K out everywhere.
        """
        if targets.dim() == 3:
            return self.read(memory, targets, need_weights, look)
        found = self.read(memory, targets.unsqueeze(1), need_weights, None if look is None else look.unsqueeze(1))
        return Outputs(found.hidden.squeeze(1), *(None if x is None else x.squeeze(1) for x in found[1:]))

    @abstractmethod
    def read(self, memory: Memory, targets: Tensor, need_weights: bool, look: Look) -> Outputs:
        """What `forward` does, with K."""


def flat(look: Look, targets: Tensor) -> Look:
    """How somebody interferes with all K·T looks: [B, K, T, N] → [B, K·T, N]."""
    return None if look is None else look.expand(*targets.shape, -1).flatten(1, 2)
