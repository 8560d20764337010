"""Local attention (Luong et al. 2015, section 3.2): look only near one position."""

from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

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

    S counts the positions that the query may look at, so padding does not move the window.
    """

    def __init__(self, kind: LocalKind, window: int, heads: int, query_width: int) -> None:
        super().__init__()
        if kind not in ("m", "p"):
            raise unknown("local attention", kind, ("m", "p"))
        if window < 1:
            raise ValueError(f"window: {window}, expected at least 1")
        self.kind, self.window = kind, window
        if kind == "p":
            self.weight = matrix(heads, query_width, query_width)
            self.direction = matrix(heads, query_width, 1)

    def forward(self, query: Tensor, positions: Tensor, mask: Tensor | None, keys: int) -> Nearby:
        """For query [.., H, M, D] at positions [.., 1, M], under a mask with the axes of the scores."""
        places = torch.arange(keys, device=query.device, dtype=torch.float32)  # [N]
        if self.kind == "m":
            return Nearby((places - positions.unsqueeze(-1)).abs() <= self.window, None)  # [.., 1, M, N]
        visible = torch.full((), keys, device=query.device) if mask is None else _count(mask)  # [.., H|1, M|1, 1]
        aim = per_head(torch.tanh(per_head(query, self.weight)), self.direction)  # [.., H, M, 1]
        centre = visible * torch.sigmoid(aim)
        distance = places.to(centre.dtype) - centre  # [.., H, M, N]
        near = distance.detach().abs() <= self.window
        return Nearby(near, torch.exp(-distance.square() / (2 * (self.window / 2) ** 2)))


def _count(mask: Tensor) -> Tensor:
    return (mask if mask.dtype is torch.bool else mask > -torch.inf).sum(-1, keepdim=True)
