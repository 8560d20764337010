"""Recurrent layers, over a whole sentence at once or one word at a time."""

from typing import NamedTuple, TypeVar, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade.attention import Dropout
from saccade.config import Cell
from saccade.config.model import CellNorm

M = TypeVar("M", bound=nn.Module)


def each(modules: nn.ModuleList, kind: type[M]) -> list[M]:
    """A list of modules with their type, which nn.ModuleList forgets."""
    return cast(list[M], list(modules))


MODULES = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}


class Recurrent(nn.Module):
    """A stack of recurrent layers, read from the left.

    Its state is one tensor, [.., L, S, D]: for each layer the hidden state, and for an LSTM the cell beside it (S = 2).
    With `norm` the sums inside the cells are normalised; with `between_norm`, what each layer puts out.
    """

    def __init__(
        self,
        cell: Cell,
        input_width: int,
        width: int,
        *,
        layers: int = 1,
        dropout: float = 0.0,
        residual: bool = False,
        norm: CellNorm = "none",
        between_norm: bool = False,
    ) -> None:
        super().__init__()
        self.cell, self.width, self.residual = cell, width, residual
        self.parts = 2 if cell == "lstm" else 1
        self.layers = nn.ModuleList(
            MODULES[cell](input_width if i == 0 else width, width, batch_first=True) for i in range(layers)
        )
        self.drop = Dropout(dropout)
        for layer in each(self.layers, nn.RNNBase):
            _initialise(layer, forget_bias=cell == "lstm")
        self.norms = nn.ModuleList(Norms(norm, cell, width) for _ in range(layers)) if norm != "none" else None
        self.after = nn.ModuleList(nn.LayerNorm(width) if between_norm else nn.Identity() for _ in range(layers))

    def start(self, *lead: int, like: Tensor) -> Tensor:
        """The state before the first word: [.., L, S, D]."""
        return like.new_zeros(*lead, len(self.layers), self.parts, self.width)

    def forward(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """A whole sentence: x [B, T, Dx], state [B, L, S, D] → every output [B, T, D], the last state."""
        ends = []
        for i, layer in enumerate(each(self.layers, nn.RNNBase)):
            if self.norms is not None:
                y, end = self._read_normed(i, layer, x, state[:, i])
            else:
                y, end = self._read(layer, x, state[:, i])
            ends.append(end)
            x = self._between(i, x, y)
        return x, torch.stack(ends, 1)

    def ahead(self, words: Tensor) -> "Ahead | None":
        """What known words [B, K, T, E] will bring to the first layer, beside an input that each step has yet to find.

        None where torch's fused cells allow no bias of our own for each sentence: elsewhere than on a CPU.
        """
        if not words.is_cpu:
            return None
        weight, _, bias, _ = _weights(each(self.layers, nn.RNNBase)[0])
        own, rest = weight.tensor_split([words.shape[-1]], 1)
        brought = F.linear(words, own, bias if self.norms is None else None)  # [B, K, T, gates]
        return Ahead(brought.flatten(0, 1).unbind(1), rest)

    def step(self, x: Tensor, state: Tensor, time: int = 0, ahead: "Ahead | None" = None) -> tuple[Tensor, Tensor]:
        """One word, the `time`-th from 0: x [.., Dx], state [.., L, S, D] → output [.., D], state.

        With `ahead`, x is only what the word does not bring.
        """
        lead = x.shape[:-1]
        x, flat = x.flatten(0, -2), state.reshape(-1, *state.shape[-3:])  # [R, Dx], [R, L, S, D]
        ends = []
        for i, layer in enumerate(each(self.layers, nn.RNNBase)):
            weights = _weights(layer)
            if ahead is not None and i == 0:  # in place of the bias: it is added, whatever its shape
                bias = ahead.brought[time] if self.norms is None else weights[2]
                weights = (ahead.weight, weights[1], bias, weights[3])
            if self.norms is not None:
                norms = each(self.norms, Norms)[i]
                given = F.linear(x, weights[0])  # [R, gates]
                if ahead is not None and i == 0:
                    given = given + ahead.brought[time]
                given = norms.input(given.unsqueeze(1), time).squeeze(1) + weights[2]
                end = self._step_normed(norms, layer, given, flat[:, i], time)
                hidden = end[:, 0]
            elif self.cell == "lstm":
                hidden, cell = torch.lstm_cell(x, (flat[:, i, 0], flat[:, i, 1]), *weights)
                end = torch.stack([hidden, cell], 1)
            else:
                function = torch.gru_cell if self.cell == "gru" else torch.rnn_tanh_cell
                hidden = function(x, flat[:, i, 0], *weights)
                end = hidden.unsqueeze(1)
            ends.append(end)
            x = self._between(i, x, hidden)
        return x.view(*lead, -1), torch.stack(ends, 1).view(*lead, *state.shape[-3:])

    def _read(self, layer: nn.RNNBase, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """One layer over a sentence by torch's fused recurrence: x [B, T, Dx], state [B, S, D] → [B, T, D], [B, S, D].

        That knows bfloat16 on some processors only; on the others autocast has to leave it alone.
        """
        if torch.is_autocast_enabled("cpu") and x.is_cpu and not torch.ops.mkldnn._is_mkldnn_bf16_supported():
            with torch.autocast("cpu", enabled=False):
                return self._read(layer, x.float(), state.float())
        before = state.transpose(0, 1).unsqueeze(1).contiguous()  # [S, 1, B, D]
        if self.cell == "lstm":
            y, (hidden, cell) = layer(x, (before[0], before[1]))
            return y, torch.stack([hidden[0], cell[0]], 1)
        y, hidden = layer(x, before[0])
        return y, hidden[0].unsqueeze(1)

    def _read_normed(self, i: int, layer: nn.RNNBase, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """One layer over a sentence, x [B, T, Dx]: what the words bring is one product, the rest is sequential."""
        assert self.norms is not None
        norms, weights = each(self.norms, Norms)[i], _weights(layer)
        given = norms.input(F.linear(x, weights[0]), 0) + weights[2]  # [B, T, gates]
        outputs = []
        for time in range(x.shape[1]):
            state = self._step_normed(norms, layer, given[:, time], state, time)
            outputs.append(state[:, 0])
        return torch.stack(outputs, 1), state

    def _step_normed(self, norms: "Norms", layer: nn.RNNBase, given: Tensor, state: Tensor, time: int) -> Tensor:
        """One word of one layer: what it brings [R, gates], state [R, S, D] → state."""
        weights, hidden = _weights(layer), state[:, 0]
        kept = norms.hidden(F.linear(hidden, weights[1]).unsqueeze(1), time).squeeze(1) + weights[3]  # [R, gates]
        if self.cell == "lstm":
            entry, forget, new, exit_ = (given + kept).chunk(4, -1)
            cell = forget.sigmoid() * state[:, 1] + entry.sigmoid() * new.tanh()
            hidden = exit_.sigmoid() * norms.cell(cell.unsqueeze(1), time).squeeze(1).tanh()
            return torch.stack([hidden, cell], 1)
        if self.cell == "gru":
            (reset_x, update_x, new_x), (reset_h, update_h, new_h) = given.chunk(3, -1), kept.chunk(3, -1)
            update = (update_x + update_h).sigmoid()
            new = (new_x + (reset_x + reset_h).sigmoid() * new_h).tanh()
            hidden = new + update * (hidden - new)
        else:
            hidden = (given + kept).tanh()
        return torch.stack([hidden], 1)

    def _between(self, i: int, x: Tensor, y: Tensor) -> Tensor:
        """What goes from layer i to the next."""
        y = self.after[i](y)
        if self.residual and i > 0:
            y = y + x
        return self.drop(y) if i + 1 < len(self.layers) else y


class Ahead(NamedTuple):
    """The share of a cell's input that is known for a whole sentence, in one product; the rest comes step by step."""

    brought: tuple[Tensor, ...]  # T times [B·K, gates]: W_words x, with the bias unless that follows a normalisation
    weight: Tensor  # [gates, Dx − E]: for the rest of the input


class Norms(nn.Module):
    """The normalisations inside one cell (Ba et al. 2016; Cooijmans et al. 2016): of what the word brings, of what the
    state brings, and of an LSTM's cell before it is let out.
    """

    def __init__(self, norm: CellNorm, cell: Cell, width: int) -> None:
        super().__init__()
        kind = StepBatchNorm if norm == "batch" else StepLayerNorm
        gates = {"lstm": 4, "gru": 3, "rnn": 1}[cell] * width
        self.input, self.hidden = kind(gates), kind(gates)
        self.cell = kind(width) if cell == "lstm" else nn.Identity()


class StepLayerNorm(nn.LayerNorm):
    """Over the features: each word and each sentence for itself, whatever the time."""

    def forward(self, x: Tensor, time: int = 0) -> Tensor:
        return super().forward(x)


class StepBatchNorm(nn.Module):
    """Over the sentences of a batch, with statistics of its own for each time step, as the notes describe it.

    It shows why that fails: sentences end at different times, so late steps know few of them; beyond the last step that
    was kept, its statistics serve; and what comes out in training depends on the other sentences.
    """

    def __init__(self, width: int, steps: int = 100, momentum: float = 0.1) -> None:
        super().__init__()
        self.steps, self.momentum = steps, momentum
        self.weight, self.bias = nn.Parameter(torch.full((width,), 0.1)), nn.Parameter(torch.zeros(width))
        self.register_buffer("mean", torch.zeros(steps, width))
        self.register_buffer("variance", torch.ones(steps, width))

    def forward(self, x: Tensor, time: int = 0) -> Tensor:
        """x [R, T, W], whose first column is step `time`."""
        times = torch.arange(time, time + x.shape[1], device=x.device).clamp(max=self.steps - 1)  # [T]
        kept, spread = cast(Tensor, self.mean), cast(Tensor, self.variance)
        if self.training:
            mean, variance = x.mean(0), x.var(0, unbiased=False)  # [T, W]
            with torch.no_grad():
                kept[times] = kept[times].lerp(mean, self.momentum)
                spread[times] = spread[times].lerp(variance, self.momentum)
        else:
            mean, variance = kept[times], spread[times]
        return (x - mean) * (variance + 1e-5).rsqrt() * self.weight + self.bias


def _initialise(layer: nn.RNNBase, forget_bias: bool) -> None:
    """Orthogonal recurrence keeps the gradient's length; an open forget gate lets an LSTM remember from the start."""
    width = layer.hidden_size
    with torch.no_grad():
        for name, parameter in layer.named_parameters():
            if name.startswith("weight_hh"):
                for gate in torch.split(parameter, width):
                    nn.init.orthogonal_(gate)
            elif name.startswith("weight_ih"):
                for gate in torch.split(parameter, width):
                    nn.init.xavier_uniform_(gate)
            else:
                parameter.zero_()
        if forget_bias:
            _weights(layer)[2][width : 2 * width] = 1.0


def _weights(layer: nn.RNNBase) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """W_x, W_h and the two biases."""
    return cast(
        tuple[Tensor, Tensor, Tensor, Tensor],
        (layer.weight_ih_l0, layer.weight_hh_l0, layer.bias_ih_l0, layer.bias_hh_l0),
    )
