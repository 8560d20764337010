"""Who may look where: masks are read by rank, checked once, and combined into one.

For a query of shape [B, M, D] a mask is [B, N], [B, M, N] or [B, H, M, N], an axis of 1 standing for any size; with
more or fewer leading axes on the query, so on the mask. Boolean: True = may look. Float: added to the scores.
"""

import torch
from torch import Size, Tensor


def read_mask(mask: Tensor, lead: Size, heads: int, queries: int, keys: int) -> Tensor:
    """Checks a mask and gives it the axes of the scores: → [.., H|1, M|1, N|1]."""
    if mask.dtype is not torch.bool and not mask.is_floating_point():
        raise ValueError(f"mask: dtype {mask.dtype}, expected torch.bool (True = may look) or a float that is added")
    rank = len(lead)
    match mask.dim() - rank:
        case 1:
            expected, axes = (*lead, keys), mask.unsqueeze(-2).unsqueeze(-2)
        case 2:
            expected, axes = (*lead, queries, keys), mask.unsqueeze(-3)
        case 3:
            expected, axes = (*lead, heads, queries, keys), mask
        case _:
            shapes = [[*lead, keys], [*lead, queries, keys], [*lead, heads, queries, keys]]
            raise ValueError(f"mask: shape {list(mask.shape)}, expected {shapes[0]}, {shapes[1]} or {shapes[2]}")
    if any(came not in (1, wanted) for came, wanted in zip(mask.shape, expected, strict=True)):
        raise ValueError(f"mask: shape {list(mask.shape)}, expected {list(expected)}, or 1 in place of an axis")
    return axes


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
    """Scores with −∞ where nobody may look, and the rows that may look nowhere: [.., H|1, M|1, 1].

    Such rows keep finite scores here, so that no NaN ever enters a gradient; their weights are put to 0 afterwards.
    """
    if mask is None:
        return scores, None
    if mask.dtype is torch.bool:
        empty = ~mask.any(-1, keepdim=True)
        return scores.masked_fill(~(mask | empty), -torch.inf), empty
    empty = (mask == -torch.inf).all(-1, keepdim=True)
    return scores + mask.masked_fill(empty, 0), empty
