"""Local attention (Luong et al. 2015, section 3.2): look only near one position."""

from contextlib import nullcontext
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from saccade.attention.checks import check_whole
from saccade.attention.scores import matrix, per_head
from saccade.errors import unknown

LocalKind = Literal["m", "p"]


class Nearby(NamedTuple):
    """The window as a mask, and what the weights in it are multiplied by."""

    mask: Tensor  # [.., H|1, M, N]
    focus: Tensor | None  # [.., H, M, N]


class Local(nn.Module):
    """A window of ±D positions around p_t.

        local-m    p_t = t, the position of the query
        local-p    p_t = S σ(vᵀ tanh(W q_t)), and the weights are multiplied by exp(−(n − p_t)² / 2σ²), σ = D/2

    In local-p, S and n count only the positions that the query may look at, so padding does not move the window.
    """

    def __init__(self, kind: LocalKind, window: int, heads: int, query_width: int) -> None:
        super().__init__()
        if kind not in ("m", "p"):
            raise unknown("local attention", kind, ("m", "p"))
        check_whole(window=window)
        self.kind, self.window = kind, window
        if kind == "p":
            self.weight = matrix(heads, query_width, query_width)
            self.direction = matrix(heads, query_width, 1)

    def forward(self, query: Tensor, positions: Tensor, mask: Tensor | None, keys: int) -> Nearby:
        """For query [.., H, M, D] at positions [.., 1, M], under a mask with the axes of the scores."""
        exact = torch.float64 if query.dtype is torch.float64 else torch.float32  # bf16 cannot count to a thousand
        places = torch.arange(keys, device=query.device, dtype=exact)  # [N]
        if self.kind == "m":
            return Nearby((places - positions.unsqueeze(-1)).abs() <= self.window, None)  # [.., 1, M, N]
        length = torch.full((1,), keys, device=query.device, dtype=exact)
        if mask is not None:
            counted = (mask if mask.dtype is torch.bool else mask > -torch.inf).cumsum(-1).to(exact)
            places, length = counted - 1, counted[..., -1:]  # [.., H|1, M|1, N], [.., H|1, M|1, 1]
        centre = length * torch.sigmoid(self._aim(query.to(exact)))  # [.., H, M, 1]
        distance = places - centre  # [.., H, M, N]
        near = distance.detach().abs() <= self.window
        return Nearby(near, torch.exp(-distance.square() / (2 * (self.window / 2) ** 2)))

    def _aim(self, query: Tensor) -> Tensor:
        with torch.autocast(query.device.type, enabled=False) if query.is_cpu or query.is_cuda else nullcontext():
            hidden = torch.tanh(per_head(query, self.weight.to(query.dtype)))
            return per_head(hidden, self.direction.to(query.dtype))  # [.., H, M, 1]
