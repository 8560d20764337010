"""From scores to weights: each normaliser turns a row of scores into shares of one.

A score of −∞ gets the weight 0. What comes out of a row of nothing but −∞ means nothing (see masks.py).
"""

from collections.abc import Callable

import torch
from torch import Tensor

Normaliser = Callable[[Tensor], Tensor]


def softmax(scores: Tensor) -> Tensor:
    """e^x over its sum: every position gets something."""
    return torch.softmax(scores, -1)


def sparsemax(scores: Tensor) -> Tensor:
    """The nearest point of the simplex (Martins & Astudillo 2016): max(x − τ, 0), and most positions get nothing."""
    if scores.shape[-1] == 0:
        return scores
    x, support = _support(scores, lambda total, _squares, count: (total - 1) / count)
    tau = (torch.where(support, x, 0).sum(-1, keepdim=True) - 1) / support.sum(-1, keepdim=True)
    return torch.where(support, x - tau, 0)


def entmax15(scores: Tensor) -> Tensor:
    """Half-way between the two (Peters et al. 2019): max(x/2 − τ, 0)²."""
    if scores.shape[-1] == 0:
        return scores
    x, support = _support(scores / 2, _tau15)
    kept = torch.where(support, x, 0)
    tau = _tau15(kept.sum(-1, keepdim=True), kept.square().sum(-1, keepdim=True), support.sum(-1, keepdim=True))
    return torch.where(support, x - tau, 0).square()


def hard(scores: Tensor) -> Tensor:
    """All on the best position; the gradient is that of the softmax (straight-through)."""
    if scores.shape[-1] == 0:
        return scores
    soft = softmax(scores)
    best = torch.zeros_like(soft).scatter(-1, scores.argmax(-1, keepdim=True), 1.0)
    return best + (soft - soft.detach())  # the bracket is exactly 0


def _tau15(total: Tensor, squares: Tensor, count: Tensor) -> Tensor:
    """τ with Σ (x − τ)² = 1 over the `count` largest, from their sum and their sum of squares."""
    mean = total / count
    return mean - ((1 - (squares - total * mean)) / count).clamp(min=torch.finfo(total.dtype).tiny).sqrt()


def _support(scores: Tensor, threshold: Callable[[Tensor, Tensor, Tensor], Tensor]) -> tuple[Tensor, Tensor]:
    """Scores shifted so that the largest is 0, and which of them get any weight.

    The k largest are the support while the smallest of them lies above the threshold that they alone would give.
    Only that choice is made without gradients: the closed forms above, written over the support, have the right ones.
    """
    x = (scores - scores.detach().amax(-1, keepdim=True)).clamp(min=-2)  # nothing 1 under the largest ever gets weight
    with torch.no_grad():
        ordered = x.sort(-1, descending=True).values
        count = torch.arange(1, x.shape[-1] + 1, device=x.device, dtype=x.dtype)
        tau = threshold(ordered.cumsum(-1), ordered.square().cumsum(-1), count)
        size = (ordered > tau).sum(-1, keepdim=True).clamp(min=1)  # a row of NaN has none
        smallest = ordered.gather(-1, size - 1)
    return x, x >= smallest


NORMALISERS: dict[str, Normaliser] = {"softmax": softmax, "sparsemax": sparsemax, "entmax15": entmax15, "hard": hard}
