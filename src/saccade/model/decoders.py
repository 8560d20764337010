"""Decoders: what has been written so far and a Memory → the next word. The order of the lines tells them apart.

All share one interface: `init` makes the first state for K hypotheses a sentence, `step` writes one word, `forward`
reads a whole given target at once where the mathematics allows. Hypotheses are the query axis of attention: the memory
is never copied for them. Nothing about a sentence is kept on `self`.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from saccade.attention import Attention, Dropout, Glance, Prepared, TransformerBlock
from saccade.config import ModelConfig
from saccade.model.encoders import position_code, transformer_block
from saccade.model.memory import Memory
from saccade.model.recurrent import Ahead, Recurrent, each

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
        hidden, weights = self.read(
            memory, targets.unsqueeze(1), need_weights, None if look is None else look.unsqueeze(1)
        )
        return Outputs(hidden.squeeze(1), None if weights is None else weights.squeeze(1))

    @abstractmethod
    def read(self, memory: Memory, targets: Tensor, need_weights: bool, look: Look) -> Outputs:
        """What `forward` does, with K."""


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
        hidden = _read_all(self.cells, torch.cat([words, context], -1), self.init(memory, targets.shape[1])["cells"])
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
        hidden, cells, glance, seen = self._read(
            memory, words, state["cells"], state.tensors, state.written, need_weights, look
        )
        output = self._output(hidden, glance.context, words)
        return Step(self.readout(output), state.next(cells=cells, **seen), _layers(glance.weights))

    def read(self, memory: Memory, targets: Tensor, need_weights: bool, look: Look) -> Outputs:
        words = self.drop_words(self.embed(targets))  # [B, K, T, E]
        state = self.init(memory, targets.shape[1])
        cells, seen = state["cells"], state.tensors
        states, contexts, weights = [], [], []
        ahead = self.cells.ahead(words)
        for time, word in enumerate(words.unbind(2)):  # truly sequential: each query is the state before
            given = ahead or word
            hidden, cells, glance, seen = self._read(memory, given, cells, seen, time, need_weights, _at(look, time))
            states.append(hidden)
            contexts.append(glance.context)
            weights.append(_layers(glance.weights))
        return Outputs(self._output(torch.stack(states, 2), torch.stack(contexts, 2), words), _join(weights))

    def _read(
        self,
        memory: Memory,
        words: Tensor | Ahead,
        cells: Tensor,
        seen: dict[str, Tensor],
        time: int,
        need_weights: bool,
        look: Look,
    ) -> tuple[Tensor, Tensor, Glance, dict[str, Tensor]]:
        query = cells[..., -1, 0, :]  # [B, K, D]: the top layer's hidden state
        glance, seen = _look(self.attention, query, memory, seen, need_weights, look)
        glance = _let_in(self.gate, query, glance)
        hidden, cells = _step(self.cells, words, glance.context, cells, time)  # [B, K, D]
        return hidden, cells, glance, seen

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
        output, tensors, glance = self._write(memory, words, state.tensors, state.written, need_weights, look)
        return Step(self.readout(output), state.next(**tensors), _layers(glance.weights))

    def read(self, memory: Memory, targets: Tensor, need_weights: bool, look: Look) -> Outputs:
        words = self.drop_words(self.embed(targets))  # [B, K, T, E]
        tensors = self.init(memory, targets.shape[1]).tensors
        if not self.feed and "seen" not in tensors:
            hidden = _read_all(self.cells, words, tensors["cells"]).flatten(1, 2)  # [B, K·T, D]
            glance: Glance = self.attention(
                hidden, memory.prepared[0], mask=memory.mask, need_weights=need_weights, look=_flat(look, targets)
            )
            glance = _let_in(self.gate, hidden, glance)
            output = torch.tanh(self.join(torch.cat([glance.context, hidden], -1)))
            looked = _layers(glance.weights)  # [B, K·T, 1, H, N]
            return Outputs(
                output.view(*targets.shape, -1),
                None if looked is None else looked.reshape(*targets.shape, *looked.shape[2:]),
            )
        outputs, weights = [], []
        ahead = self.cells.ahead(words) if self.feed else None
        for time, word in enumerate(words.unbind(2)):
            output, tensors, glance = self._write(memory, ahead or word, tensors, time, need_weights, _at(look, time))
            outputs.append(output)
            weights.append(_layers(glance.weights))
        return Outputs(torch.stack(outputs, 2), _join(weights))

    def _write(
        self,
        memory: Memory,
        words: Tensor | Ahead,
        tensors: dict[str, Tensor],
        time: int,
        need_weights: bool,
        look: Look,
    ) -> tuple[Tensor, dict[str, Tensor], Glance]:
        hidden, cells = _step(self.cells, words, tensors.get("fed"), tensors["cells"], time)  # [B, K, D]
        glance, seen = _look(self.attention, hidden, memory, tensors, need_weights, look)
        glance = _let_in(self.gate, hidden, glance)
        output = torch.tanh(self.join(torch.cat([glance.context, hidden], -1)))  # [B, K, D]
        return output, {"cells": cells, **({"fed": self.drop(output)} if self.feed else {}), **seen}, glance


class TransformerDecoder(Decoder):
    """Vaswani et al. 2017: every word looks back at the words before it, then at the memory, layer after layer."""

    def __init__(self, config: ModelConfig, vocabulary: int) -> None:
        super().__init__(config, vocabulary, config.width, config.width)
        self.positions = position_code(config)
        self.blocks = nn.ModuleList(transformer_block(config, cross=True) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width) if config.norm == "pre" else nn.Identity()
        self.scale = config.width**0.5

    def prepare(self, memory: Memory) -> Memory:
        return memory.with_prepared(
            *(block.memory.prepare(memory.keys, memory.values) for block in each(self.blocks, TransformerBlock))
        )

    def init(self, memory: Memory, hypotheses: int = 1) -> State:
        heads, width = each(self.blocks, TransformerBlock)[0].itself.heads, self.embed.embedding_dim
        nothing = memory.keys.new_zeros(len(memory.keys), hypotheses, heads, 0, width // heads)
        return State({f"{part}{i}": nothing for i in range(len(self.blocks)) for part in ("keys", "values")})

    def step(
        self, memory: Memory, state: State, tokens: Tensor, *, need_weights: bool = True, look: Look = None
    ) -> Step:
        here = torch.full((1,), state.written, device=tokens.device)
        x = self.positions(self.embed(tokens).unsqueeze(2) * self.scale, here)  # [B, K, 1, D]
        tensors, weights = {}, []
        for i, block in enumerate(each(self.blocks, TransformerBlock)):
            past = Prepared(state[f"keys{i}"], state[f"values{i}"])  # [B, K, H, t, D/H]
            x, past, _, cross = block(
                x,
                memory.prepared[i],
                causal=True,
                memory_mask=memory.mask,
                memory_look=look,
                past=past,
                need_weights=need_weights,
            )
            tensors[f"keys{i}"], tensors[f"values{i}"] = past
            weights.append(cross)  # [B, K, H, 1, N]
        output = self.norm(x).squeeze(2)  # [B, K, D]
        stacked = [w.squeeze(-2) for w in weights if w is not None]  # [B, K, H, N]
        return Step(self.readout(output), state.next(**tensors), torch.stack(stacked, 2) if stacked else None)

    def read(self, memory: Memory, targets: Tensor, need_weights: bool, look: Look) -> Outputs:
        x = self.drop(self.positions(self.embed(targets) * self.scale))  # [B, K, T, D]
        weights = []
        for i, block in enumerate(each(self.blocks, TransformerBlock)):
            x, _, _, cross = block(
                x,
                memory.prepared[i],
                causal=True,
                memory_mask=memory.mask,
                memory_look=_flat(look, targets),
                need_weights=need_weights,
            )
            weights.append(cross)  # [B, K, H, T, N]
        stacked = [w.transpose(2, 3) for w in weights if w is not None]  # [B, K, T, H, N]
        return Outputs(self.norm(x), torch.stack(stacked, 3) if stacked else None)


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


def _let_in(gate: nn.Linear | None, query: Tensor, glance: Glance) -> Glance:
    """How much of what was seen matters for the next word: β = σ(w·q), context ← β context (Xu et al. 2015)."""
    return glance if gate is None else glance._replace(context=gate(query).sigmoid() * glance.context)


def _look(
    attention: Attention, query: Tensor, memory: Memory, tensors: dict[str, Tensor], need_weights: bool, look: Look
) -> tuple[Glance, dict[str, Tensor]]:
    """One look, and what has been seen after it if the attention minds that: seen [B, K, H, N]."""
    if "seen" not in tensors:
        return attention(query, memory.prepared[0], mask=memory.mask, need_weights=need_weights, look=look), {}
    seen = tensors["seen"]
    glance: Glance = attention(
        query, memory.prepared[0], mask=memory.mask, need_weights=True, coverage=seen.transpose(1, 2), look=look
    )
    assert glance.weights is not None  # it was asked for
    return glance, {"seen": seen + glance.weights.transpose(1, 2)}


def _at(look: Look, time: int) -> Look:
    """How somebody interferes at one time: [B, K, T, N] → [B, K, N]."""
    return None if look is None else look[:, :, 0 if look.shape[2] == 1 else time]


def _flat(look: Look, targets: Tensor) -> Look:
    """How somebody interferes with all K·T looks: [B, K, T, N] → [B, K·T, N]."""
    return None if look is None else look.expand(*targets.shape, -1).flatten(1, 2)


def _read_all(cells: Recurrent, x: Tensor, state: Tensor) -> Tensor:
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


def _join(weights: list[Tensor | None]) -> Tensor | None:
    given = [w for w in weights if w is not None]
    return torch.stack(given, 2) if len(given) == len(weights) and given else None
