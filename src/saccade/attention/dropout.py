"""Dropout that costs little: one random byte decides for each number.

torch draws a whole random float for each, one after the other, on a CPU a quarter of the time of training a small
Transformer. A byte knows shares in steps of 1/256, near enough for what is picked by hand, and what is kept is divided
by the share that was really kept, so the mean is exact.
"""

import torch
from torch import Tensor, nn

LOWEST, HIGHEST = -(2**63), 2**63 - 1
BYTES = 8  # of a random int64


def drop(x: Tensor, share: float) -> Tensor:
    """x with about so great a share of its numbers left out, and the others enlarged to keep the mean."""
    if not share:
        return x
    threshold = min(255, max(1, round(256 * share)))  # bytes under this leave out
    words = -(-x.numel() // BYTES)
    chance = torch.randint(LOWEST, HIGHEST, (words,), dtype=torch.int64, device=x.device).view(torch.uint8)
    kept = (chance[: x.numel()] >= threshold).to(x.dtype).mul_(256 / (256 - threshold))
    return x * kept.view(x.shape)


class Dropout(nn.Module):
    """`drop` while training, nothing afterwards.

    `constant`: of [.., T, D] the same features are left out at every one of T places (Gal & Ghahramani 2016).
    """

    def __init__(self, share: float = 0.0, *, constant: bool = False) -> None:
        super().__init__()
        if not 0 <= share < 1:
            raise ValueError(f"dropout: {share}, expected a share, 0 ≤ dropout < 1")
        self.share, self.constant = share, constant

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or not self.share:
            return x
        return x * drop(torch.ones_like(x[..., :1, :]), self.share) if self.constant else drop(x, self.share)

    def extra_repr(self) -> str:
        return f"{self.share}{', constant' if self.constant else ''}"
