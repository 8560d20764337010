"""Recurrent layers, over a whole sentence at once or one word at a time."""

from typing import TypeVar, cast

import torch
from torch import Tensor, nn

from saccade.config import Cell

M = TypeVar("M", bound=nn.Module)


def each(modules: nn.ModuleList, kind: type[M]) -> list[M]:
    """A list of modules with their type, which nn.ModuleList forgets."""
    return cast(list[M], list(modules))


MODULES = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}


class Recurrent(nn.Module):
    """A stack of recurrent layers, read from the left.

    Its state is one tensor, [.., L, S, D]: for each layer the hidden state, and for an LSTM the cell beside it (S = 2).
    """

    def __init__(
        self, cell: Cell, input_width: int, width: int, *, layers: int = 1, dropout: float = 0.0, residual: bool = False
    ) -> None:
        super().__init__()
        self.cell, self.width, self.residual = cell, width, residual
        self.parts = 2 if cell == "lstm" else 1
        self.layers = nn.ModuleList(
            MODULES[cell](input_width if i == 0 else width, width, batch_first=True) for i in range(layers)
        )
        self.drop = nn.Dropout(dropout)
        for layer in each(self.layers, nn.RNNBase):
            _initialise(layer, forget_bias=cell == "lstm")

    def start(self, *lead: int, like: Tensor) -> Tensor:
        """The state before the first word: [.., L, S, D]."""
        return like.new_zeros(*lead, len(self.layers), self.parts, self.width)

    def forward(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """A whole sentence: x [B, T, Dx], state [B, L, S, D] → every output [B, T, D], the last state."""
        after = []
        for i, layer in enumerate(each(self.layers, nn.RNNBase)):
            before = state[:, i].transpose(0, 1).unsqueeze(1).contiguous()  # [S, 1, B, D]
            if self.cell == "lstm":
                y, (hidden, cell) = layer(x, (before[0], before[1]))
                after.append(torch.stack([hidden[0], cell[0]], 1))  # [B, S, D]
            else:
                y, hidden = layer(x, before[0])
                after.append(hidden[0].unsqueeze(1))
            x = self._between(i, x, y)
        return x, torch.stack(after, 1)

    def step(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """One word: x [.., Dx], state [.., L, S, D] → output [.., D], state."""
        lead = x.shape[:-1]
        x, flat = x.flatten(0, -2), state.reshape(-1, *state.shape[-3:])  # [R, Dx], [R, L, S, D]
        after = []
        for i, layer in enumerate(each(self.layers, nn.RNNBase)):
            weights = _weights(layer)
            if self.cell == "lstm":
                hidden, cell = torch.lstm_cell(x, (flat[:, i, 0], flat[:, i, 1]), *weights)
                after.append(torch.stack([hidden, cell], 1))
            else:
                function = torch.gru_cell if self.cell == "gru" else torch.rnn_tanh_cell
                hidden = function(x, flat[:, i, 0], *weights)
                after.append(hidden.unsqueeze(1))
            x = self._between(i, x, hidden)
        return x.view(*lead, -1), torch.stack(after, 1).view(*lead, *state.shape[-3:])

    def _between(self, i: int, x: Tensor, y: Tensor) -> Tensor:
        """What goes from layer i to the next."""
        if self.residual and i > 0:
            y = y + x
        return self.drop(y) if i + 1 < len(self.layers) else y


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
