"""Cross-entropy with label smoothing, in fewer passes over the logits.

    loss = −(1 − ε) log p[y] − ε/V Σ log p    p = softmax(z)    ∂loss/∂z = p − (1 − ε) onehot(y) − ε/V

torch takes the two terms one by one, each with a gradient as large as the logits; with thousands of symbols every step
feels that.
"""

from typing import Any

import torch
from torch import Tensor


class _Smoothed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, wanted: Tensor, smoothing: float) -> Tensor:
        log_shares = logits.log_softmax(-1)  # [R, V]
        loss = (smoothing - 1) * log_shares.gather(-1, wanted.unsqueeze(-1)).sum()
        if smoothing:
            loss = loss - smoothing / logits.shape[-1] * log_shares.sum()
        ctx.save_for_backward(log_shares, wanted)
        ctx.smoothing = smoothing
        return loss

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        log_shares, wanted = ctx.saved_tensors
        slope = log_shares.exp()  # [R, V]
        torch.addcmul(-grad * ctx.smoothing / slope.shape[-1], slope, grad, out=slope)
        told = (grad * (ctx.smoothing - 1)).expand(len(wanted), 1)
        return slope.scatter_add_(-1, wanted.unsqueeze(-1), told), None, None


def summed_loss(logits: Tensor, wanted: Tensor, smoothing: float = 0.0) -> Tensor:
    """The summed loss of wanting symbols [R], given logits [R, V].

    >>> summed_loss(torch.zeros(3, 4), torch.tensor([0, 1, 2]))
    tensor(4.1589)
    """
    loss: Tensor = _Smoothed.apply(logits, wanted, smoothing)  # type: ignore[no-untyped-call]
    return loss
