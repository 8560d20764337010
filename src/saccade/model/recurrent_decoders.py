"""Decoders with recurrent cells: none that looks, Bahdanau's and Luong's. The order of the lines tells them apart."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from saccade.attention import Attention, Glance
from saccade.config import ModelConfig
from saccade.model.decoder import Decoder, Look, Outputs, State, Step, flat
from saccade.model.memory import Memory
from saccade.model.recurrent import Ahead, Recurrent


class Gaze(NamedTuple):
    """What was seen, after the gate."""

    context: Tensor  # [B, K, D]
    weights: Tensor | None  # [B, H, K, N]
    beta: Tensor | None  # [B, K]: how much of it was let in


class Bridge(nn.Module):
    """From the summary of the source to the first state: s_0 = tanh(W summary), [B, D] → [B, L, S, D]."""

    def __init__(self, width: int, cells: Recurrent) -> None:
        super().__init__()
        self.shape = (len(cells.layers), cells.parts, cells.width)
        self.map = nn.Linear(width, len(cells.layers) * cells.parts * cells.width)

    def forward(self, summary: Tensor) -> Tensor:
        return torch.tanh(self.map(summary)).view(-1, *self.shape)


class Seq2SeqDecoder(Decoder):
    """No attention: one vector holds the whole source, as the first state and as the context at every step.

    s_0 = tanh(W c)    s_t = cell([y_{t-1}; c], s_{t-1})    o_t = tanh(W [s_t; c])
    """

    def __init__(self, config: ModelConfig, vocabulary: int) -> None:
        embedding = config.embedding or config.width
        super().__init__(config, vocabulary, embedding, config.width)
        self.cells = _cells(config, embedding + config.width)
        self.bridge = Bridge(config.width, self.cells)
        self.join = nn.Linear(2 * config.width, config.width)

    def prepare(self, memory: Memory) -> Memory:
        return memory

    def init(self, memory: Memory, hypotheses: int = 1) -> State:
        return State({"cells": _repeat(self.bridge(memory.summary), hypotheses)})

    def step(
        self, memory: Memory, state: State, tokens: Tensor, *, need_weights: bool = True, look: Look = None
    ) -> Step:
        words = self.embed(tokens)  # [B, K, E]
        context = memory.summary.unsqueeze(1).expand(-1, tokens.shape[1], -1)  # [B, K, D]
        hidden, cells = self.cells.step(torch.cat([words, context], -1), state["cells"], state.written)
        output = torch.tanh(self.join(torch.cat([hidden, context], -1)))  # [B, K, D]
        return Step(self.readout(output), state.next(cells=cells), None)

    def read(self, memory: Memory, targets: Tensor, need_weights: bool, look: Look) -> Outputs:
        words = self.drop_words(self.embed(targets))  # [B, K, T, E]
        context = memory.summary[:, None, None].expand(*targets.shape, -1)
        hidden = read_all(self.cells, torch.cat([words, context], -1), self.init(memory, targets.shape[1])["cells"])
        return Outputs(torch.tanh(self.join(torch.cat([hidden, context], -1))), None)


class BahdanauDecoder(Decoder):
    """Bahdanau et al. 2015: the previous state asks, and what it saw joins the word that goes in.

    c_t = attention(s_{t-1}, memory)    s_t = cell([y_{t-1}; c_t], s_{t-1})    o_t = tanh(W [s_t; c_t; y_{t-1}])
    """

    def __init__(self, config: ModelConfig, vocabulary: int) -> None:
        embedding = config.embedding or config.width
        super().__init__(config, vocabulary, embedding, config.width)
        self.attention, self.gate = _attention(config), _gate(config)
        self.cells = _cells(config, embedding + config.width)
        self.bridge = Bridge(config.width, self.cells)
        self.join = nn.Linear(2 * config.width + embedding, config.width)

    def prepare(self, memory: Memory) -> Memory:
        return memory.with_prepared(self.attention.prepare(memory.keys, memory.values))

    def init(self, memory: Memory, hypotheses: int = 1) -> State:
        cells = _repeat(self.bridge(memory.summary), hypotheses)
        return State({"cells": cells, **_first_coverage(self.attention, memory, hypotheses)})

    def step(
        self, memory: Memory, state: State, tokens: Tensor, *, need_weights: bool = True, look: Look = None
    ) -> Step:
        words = self.embed(tokens)  # [B, K, E]
        hidden, cells, gaze, seen = self._read(
            memory, words, state["cells"], state.tensors, state.written, need_weights, look
        )
        output = self._output(hidden, gaze.context, words)
        return Step(self.readout(output), state.next(cells=cells, **seen), _layers(gaze.weights))

    def read(self, memory: Memory, targets: Tensor, need_weights: bool, look: Look) -> Outputs:
        words = self.drop_words(self.embed(targets))  # [B, K, T, E]
        state = self.init(memory, targets.shape[1])
        cells, seen = state["cells"], state.tensors
        states, gazes = [], []
        ahead = self.cells.ahead(words)
        for time, word in enumerate(words.unbind(2)):  # truly sequential: each query is the state before
            given = ahead or word
            hidden, cells, gaze, seen = self._read(memory, given, cells, seen, time, need_weights, _at(look, time))
            states.append(hidden)
            gazes.append(gaze)
        contexts = torch.stack([gaze.context for gaze in gazes], 2)
        output = self._output(torch.stack(states, 2), contexts, words)
        return Outputs(output, _weights(gazes), gates=_gates(gazes))

    def _read(
        self,
        memory: Memory,
        words: Tensor | Ahead,
        cells: Tensor,
        seen: dict[str, Tensor],
        time: int,
        need_weights: bool,
        look: Look,
    ) -> tuple[Tensor, Tensor, Gaze, dict[str, Tensor]]:
        query = cells[..., -1, 0, :]  # [B, K, D]: the top layer's hidden state
        gaze, seen = _look(self.attention, self.gate, query, memory, seen, need_weights, look)
        hidden, cells = _step(self.cells, words, gaze.context, cells, time)  # [B, K, D]
        return hidden, cells, gaze, seen

    def _output(self, hidden: Tensor, context: Tensor, words: Tensor) -> Tensor:
        return torch.tanh(self.join(torch.cat([hidden, context, words], -1)))  # [B, K, D]


class LuongDecoder(Decoder):
    """Luong et al. 2015: the current state asks, and what it saw is joined to it before the word is chosen.

        s_t = cell(y_{t-1}, s_{t-1})    c_t = attention(s_t, memory)    h_t = tanh(W [c_t; s_t])

    With input feeding, h_{t-1} goes in beside the word. Without it nothing but the cell is sequential.
    """

    def __init__(self, config: ModelConfig, vocabulary: int) -> None:
        embedding = config.embedding or config.width
        super().__init__(config, vocabulary, embedding, config.width)
        self.feed = config.feed
        self.attention, self.gate = _attention(config), _gate(config)
        self.cells = _cells(config, embedding + config.width if config.feed else embedding)
        self.bridge = Bridge(config.width, self.cells)
        self.join = nn.Linear(2 * config.width, config.width)

    def prepare(self, memory: Memory) -> Memory:
        return memory.with_prepared(self.attention.prepare(memory.keys, memory.values))

    def init(self, memory: Memory, hypotheses: int = 1) -> State:
        tensors = {"cells": _repeat(self.bridge(memory.summary), hypotheses)}
        if self.feed:
            tensors["fed"] = memory.summary.new_zeros(len(memory.summary), hypotheses, self.join.out_features)
        return State({**tensors, **_first_coverage(self.attention, memory, hypotheses)})

    def step(
        self, memory: Memory, state: State, tokens: Tensor, *, need_weights: bool = True, look: Look = None
    ) -> Step:
        words = self.embed(tokens)  # [B, K, E]
        output, tensors, gaze = self._write(memory, words, state.tensors, state.written, need_weights, look)
        return Step(self.readout(output), state.next(**tensors), _layers(gaze.weights))

    def read(self, memory: Memory, targets: Tensor, need_weights: bool, look: Look) -> Outputs:
        words = self.drop_words(self.embed(targets))  # [B, K, T, E]
        tensors = self.init(memory, targets.shape[1]).tensors
        if not self.feed and "seen" not in tensors:
            hidden = read_all(self.cells, words, tensors["cells"]).flatten(1, 2)  # [B, K·T, D]
            gaze, _ = _look(self.attention, self.gate, hidden, memory, {}, need_weights, flat(look, targets))
            output = torch.tanh(self.join(torch.cat([gaze.context, hidden], -1)))
            looked = _layers(gaze.weights)  # [B, K·T, 1, H, N]
            return Outputs(
                output.view(*targets.shape, -1),
                None if looked is None else looked.reshape(*targets.shape, *looked.shape[2:]),
                gates=None if gaze.beta is None else gaze.beta.view(targets.shape),
            )
        outputs, gazes = [], []
        ahead = self.cells.ahead(words) if self.feed else None
        for time, word in enumerate(words.unbind(2)):
            output, tensors, gaze = self._write(memory, ahead or word, tensors, time, need_weights, _at(look, time))
            outputs.append(output)
            gazes.append(gaze)
        return Outputs(torch.stack(outputs, 2), _weights(gazes), gates=_gates(gazes))

    def _write(
        self,
        memory: Memory,
        words: Tensor | Ahead,
        tensors: dict[str, Tensor],
        time: int,
        need_weights: bool,
        look: Look,
    ) -> tuple[Tensor, dict[str, Tensor], Gaze]:
        hidden, cells = _step(self.cells, words, tensors.get("fed"), tensors["cells"], time)  # [B, K, D]
        gaze, seen = _look(self.attention, self.gate, hidden, memory, tensors, need_weights, look)
        output = torch.tanh(self.join(torch.cat([gaze.context, hidden], -1)))  # [B, K, D]
        return output, {"cells": cells, **({"fed": self.drop(output)} if self.feed else {}), **seen}, gaze


def _cells(config: ModelConfig, input_width: int) -> Recurrent:
    return Recurrent(
        config.cell,
        input_width,
        config.width,
        layers=config.layers,
        dropout=config.dropout,
        residual=config.residual,
        norm=config.cell_norm,
        between_norm=config.between_norm,
    )


def _attention(config: ModelConfig) -> Attention:
    max_length = config.max_length if config.score == "location" else None
    return Attention(
        config.width,
        score=config.score,
        heads=config.heads,
        max_length=max_length,
        normalise=config.normalise,
        coverage=config.coverage,
    )


def _gate(config: ModelConfig) -> nn.Linear | None:
    return nn.Linear(config.width, 1) if config.gate else None


def _look(
    attention: Attention,
    gate: nn.Linear | None,
    query: Tensor,
    memory: Memory,
    tensors: dict[str, Tensor],
    need_weights: bool,
    look: Look,
) -> tuple[Gaze, dict[str, Tensor]]:
    """One look, and what has been seen after it if the attention minds that: seen [B, K, H, N].

    A gate says how much of it matters for the next word: β = σ(w·q), context ← β context (Xu et al. 2015).
    """
    seen = tensors.get("seen")
    glance: Glance = attention(
        query,
        memory.prepared[0],
        mask=memory.mask,
        need_weights=need_weights or seen is not None,
        coverage=None if seen is None else seen.transpose(1, 2),
        look=look,
    )
    beta = None if gate is None else gate(query).sigmoid()  # [B, K, 1]
    context = glance.context if beta is None else beta * glance.context
    gaze = Gaze(context, glance.weights, None if beta is None else beta.squeeze(-1))
    if seen is None or glance.weights is None:
        return gaze, {}
    return gaze, {"seen": seen + glance.weights.transpose(1, 2)}


def _at(look: Look, time: int) -> Look:
    """How somebody interferes at one time: [B, K, T, N] → [B, K, N]."""
    return None if look is None else look[:, :, 0 if look.shape[2] == 1 else time]


def read_all(cells: Recurrent, x: Tensor, state: Tensor) -> Tensor:
    """Every output of cells for known inputs: x [B, K, T, E], state [B, K, L, S, D] → [B, K, T, D]."""
    outputs: Tensor = cells(x.flatten(0, 1), state.flatten(0, 1))[0]  # [B·K, T, D]
    return outputs.view(*x.shape[:3], -1)


def _first_coverage(attention: Attention, memory: Memory, hypotheses: int) -> dict[str, Tensor]:
    if attention.coverage_weight is None:
        return {}
    batch, length = memory.mask.shape
    return {"seen": memory.keys.new_zeros(batch, hypotheses, attention.heads, length)}


def _step(
    cells: Recurrent, words: Tensor | Ahead, beside: Tensor | None, state: Tensor, time: int
) -> tuple[Tensor, Tensor]:
    """One step of cells that take in a word [B, K, E] and, beside it, something that only the last step could know."""
    if isinstance(words, Ahead):
        assert beside is not None
        return cells.step(beside, state, time, words)
    return cells.step(words if beside is None else torch.cat([words, beside], -1), state, time)


def _repeat(x: Tensor, hypotheses: int) -> Tensor:
    """[B, ..] → [B, K, ..]"""
    return x.unsqueeze(1).expand(-1, hypotheses, *x.shape[1:])


def _layers(weights: Tensor | None) -> Tensor | None:
    """One layer's [B, H, K, N] → [B, K, 1, H, N]"""
    return None if weights is None else weights.transpose(1, 2).unsqueeze(2)


def _weights(gazes: Sequence[Gaze]) -> Tensor | None:
    """Of every step: [B, K, T, 1, H, N]."""
    given = [w for gaze in gazes if (w := _layers(gaze.weights)) is not None]
    return torch.stack(given, 2) if given else None


def _gates(gazes: Sequence[Gaze]) -> Tensor | None:
    """Of every step: [B, K, T]."""
    given = [gaze.beta for gaze in gazes if gaze.beta is not None]
    return torch.stack(given, 2) if given else None
