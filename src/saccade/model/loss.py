"""Cross-entropy with label smoothing, in fewer passes over the logits.

    loss = log Σ e^z − (1 − ε) z[y] − ε/V Σ z    p = softmax(z)    ∂loss/∂z = p − (1 − ε) onehot(y) − ε/V

torch takes the two terms of smoothing one by one, each with a gradient as large as the logits, and goes through
logarithms and back; with thousands of symbols every step feels that. Here p is computed once, and log Σ e^z is read
off its largest share: max z − log max p.
"""

from typing import Any

import torch
from torch import Tensor


class _Smoothed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, wanted: Tensor, smoothing: float) -> Tensor:
        exact = torch.promote_types(logits.dtype, torch.float32)  # sums over thousands of words are not for bf16
        shares = logits.softmax(-1, dtype=exact)  # [R, V]
        log_total = logits.amax(-1).to(exact) - shares.amax(-1).log()  # [R]
        loss = log_total.sum() + (smoothing - 1) * logits.gather(-1, wanted.unsqueeze(-1)).sum(dtype=exact)
        if smoothing:
            loss = loss - smoothing / logits.shape[-1] * logits.sum(dtype=exact)
        ctx.save_for_backward(shares, wanted)
        ctx.smoothing, ctx.dtype = smoothing, logits.dtype
        return loss

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        shares, wanted = ctx.saved_tensors
        slope = shares - ctx.smoothing / shares.shape[-1]  # [R, V]
        slope.scatter_add_(-1, wanted.unsqueeze(-1), slope.new_full((len(wanted), 1), ctx.smoothing - 1))
        return slope.mul_(grad).to(ctx.dtype), None, None


def summed_loss(logits: Tensor, wanted: Tensor, smoothing: float = 0.0) -> Tensor:
    """The summed loss of wanting symbols [R], given logits [R, V].

    >>> summed_loss(torch.zeros(3, 4), torch.tensor([0, 1, 2]))
    tensor(4.1589)
    """
    loss: Tensor = _Smoothed.apply(logits, wanted, smoothing)  # type: ignore[no-untyped-call]
    return loss
