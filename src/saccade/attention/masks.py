"""Who may look where: masks are read by rank, checked once, and combined into one.

For a query of shape [B, M, D] a mask is [B, N], [B, M, N] or [B, H, M, N], an axis of 1 standing for any size; with
more or fewer leading axes on the query, so on the mask. Boolean: True = may look. Float: added to the scores.
"""

import torch
from torch import Size, Tensor

from saccade.attention.checks import check_tensor


def read_mask(mask: Tensor, lead: Size, heads: int, queries: int, keys: int, name: str = "mask") -> Tensor:
    """Checks a mask and gives it the axes of the scores: → [.., H|1, M|1, N]."""
    if not isinstance(mask, Tensor):
        check_tensor(name, mask)
    shape, rank = mask.shape, len(lead)
    if mask.dtype is torch.bool and shape == (*lead, keys):  # the usual one, at every step of a decoder
        return mask.view(*lead, 1, 1, keys)
    if mask.dtype is not torch.bool and not mask.is_floating_point():
        raise ValueError(f"{name}: dtype {mask.dtype}, expected torch.bool (True = may look) or a float that is added")
    match len(shape) - rank:
        case 1:
            expected, axes = (*lead, keys), (*shape[:rank], 1, 1, shape[-1])
        case 2:
            expected, axes = (*lead, queries, keys), (*shape[:rank], 1, *shape[rank:])
        case 3:
            expected, axes = (*lead, heads, queries, keys), shape
        case _:
            shapes = [[*lead, keys], [*lead, queries, keys], [*lead, heads, queries, keys]]
            raise ValueError(f"{name}: shape {list(shape)}, expected {shapes[0]}, {shapes[1]} or {shapes[2]}")
    if shape != expected and any(came not in (1, wanted) for came, wanted in zip(shape, expected, strict=True)):
        raise ValueError(f"{name}: shape {list(shape)}, expected {list(expected)}, or 1 in place of an axis")
    mask = mask.view(axes)
    return mask if mask.shape[-1] == keys else mask.expand(*axes[:-1], keys)


def causal_mask(queries: int, keys: int, device: torch.device) -> Tensor:
    """Query m sees n ≤ m + N − M: the last query sees everything. → [M, N]"""
    return torch.ones(queries, keys, dtype=torch.bool, device=device).tril(keys - queries)


def both(one: Tensor | None, other: Tensor | None) -> Tensor | None:
    """What both masks allow."""
    if one is None or other is None:
        return other if one is None else one
    if one.dtype is torch.bool and other.dtype is torch.bool:
        return one & other
    if one.dtype is torch.bool:
        one, other = other, one
    if other.dtype is torch.bool:
        return torch.where(other, one, -torch.inf)
    return one + other


def hide(scores: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """Scores with −∞ where nobody may look, and where that is: [.., H|1, M|1, N].

    A row that may look nowhere has NaN for weights; but whoever calls this puts the weights to 0 where nobody may look,
    which is the whole of that row, and the gradient is stopped at the same places: no NaN gets out either way.
    """
    if mask is None:
        return scores, None
    if mask.dtype is torch.bool:
        hidden = ~mask
    else:
        hidden, scores = mask == -torch.inf, scores + mask
    return scores.masked_fill(hidden, -torch.inf), hidden
