"""Attention itself, once: E = f(Q, K), A = normalise(E + mask), C = A·V.

`look` is the one place where this happens; `attend` is its parameter-free form, `layer.Attention` the trained one.
"""

import contextlib
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Size, Tensor

from saccade.attention.masks import both, causal_mask, hide, read_mask
from saccade.attention.normalisers import Normaliser, softmax
from saccade.attention.scores import SCORES, Cosine, Custom, Dot, ScaledDot, Score, ScoreFunction
from saccade.errors import unknown

HALF = (torch.float16, torch.bfloat16)
LARGE = 1024 * 1024  # pairs: above this the weights leave the cache, and it pays to pad widths for the fused kernel


class Glance(NamedTuple):
    """What one look brought back: the context, and where it came from if that was asked for."""

    context: Tensor
    weights: Tensor | None


def attend(
    query: Tensor,
    keys: Tensor,
    values: Tensor | None = None,
    *,
    score: str | ScoreFunction = "scaled_dot",
    mask: Tensor | None = None,
    causal: bool = False,
    need_weights: bool = False,
) -> Glance:
    """Attention without parameters: query [.., M, D], keys [.., N, D], values [.., N, Dv] → context [.., M, Dv].

    `score` is dot, scaled_dot, cosine or a callable `(Q, K) → [.., M, N]`; the weights are `[.., M, N]`.
    Without `values`, the keys are the values. Masks are read by rank: `[.., N]` or `[.., M, N]`.

    >>> query, keys, values = torch.zeros(1, 4), torch.ones(3, 4), torch.tensor([[1.0], [2.0], [6.0]])
    >>> attend(query, keys, values, need_weights=True)
    Glance(context=tensor([[3.]]), weights=tensor([[0.3333, 0.3333, 0.3333]]))
    """
    values = keys if values is None else values
    function = _score_without_parameters(score)
    check_memory(keys, values)
    width = query.shape[-1] if isinstance(function, Custom) and query.dim() else keys.shape[-1]
    lead = check_query(query, width, keys, keys.shape[:-2])
    query, keys, values = query.unsqueeze(-3), keys.unsqueeze(-3), values.unsqueeze(-3)  # one head
    if mask is not None:
        mask = read_mask(mask, lead, 1, query.shape[-2], keys.shape[-2])
    asked, prepared = function.ask(query), function.prepare(keys)
    context, weights = look(function, asked, prepared, values, mask=mask, causal=causal, need_weights=need_weights)
    return Glance(context.squeeze(-3), None if weights is None else weights.squeeze(-3))


def look(
    score: Score,
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    *,
    mask: Tensor | None = None,
    causal: bool = False,
    need_weights: bool = False,
    temperature: float = 1.0,
    normalise: Normaliser = softmax,
    dropout: float = 0.0,
    bias: Tensor | None = None,
    focus: Tensor | None = None,
) -> Glance:
    """One look, with query asked and keys prepared by the score, all with a head axis: [.., H, M, .], [.., H, N, .].

    `bias` is added to the scores; `focus` multiplies the weights after they were normalised. Both are [.., H, M, N].
    """
    queries, length = query.shape[-2], keys.shape[-2]
    if length == 0:
        weights = query.new_zeros(*query.shape[:-1], 0) if need_weights else None
        return Glance(values.new_zeros(*query.shape[:-1], values.shape[-1]), weights)
    if causal and queries == 1:
        causal = False  # aligned at the end, a single query sees everything
    scale = score.scale(query.shape[-1])
    if scale is not None and not need_weights and normalise is softmax and bias is None and focus is None:
        return Glance(_fused(query, keys, values, mask, causal, scale=scale / temperature, dropout=dropout), None)

    if causal:
        mask = both(mask, causal_mask(queries, length, query.device))
    scores = _scores(score, query, keys, scale, temperature)  # [.., H, M, N]
    if bias is not None:
        scores = scores + bias
    scores, empty = hide(scores, mask)
    weights = normalise(scores)
    if focus is not None:
        weights = weights * focus
    if empty is not None:
        weights = weights.masked_fill(empty, 0)
    weights = weights.to(values.dtype)
    dropped = F.dropout(weights, dropout) if dropout else weights
    return Glance(dropped @ values, weights if need_weights else None)


def _scores(score: Score, query: Tensor, keys: Tensor, scale: float | None, temperature: float) -> Tensor:
    """E, in fp32 where the inputs have fewer bits: a softmax of rounded scores would not be the fused kernel's."""
    rounding = not isinstance(score, Custom) and _autocasts(query)
    with torch.autocast(query.device.type, enabled=False) if rounding else contextlib.nullcontext():
        if query.dtype in HALF or keys.dtype in HALF:
            query, keys = query.float(), keys.float()
        if scale is None:
            scores = score.compare(query, keys)
            return scores if temperature == 1 else scores / temperature
        factor = scale / temperature
        return score.compare(query if factor == 1 else query * factor, keys)


def _fused(
    query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, causal: bool, *, scale: float, dropout: float
) -> Tensor:
    """scaled_dot_product_attention, which never builds the weights; a row that may look nowhere gives 0 there too."""
    queries, length, width, value_width = query.shape[-2], keys.shape[-2], query.shape[-1], values.shape[-1]
    if causal and (mask is not None or queries != length):  # torch would align the corner at the start
        mask, causal = both(mask, causal_mask(queries, length, query.device)), False
    if mask is not None and mask.dtype is not torch.bool:
        mask = mask.to(query.dtype)
    if width != value_width and queries * length > LARGE:  # the fused kernel wants one width; zeros change nothing
        wide = max(width, value_width)
        query, keys, values = (F.pad(x, (0, wide - x.shape[-1])) for x in (query, keys, values))
    lead = query.shape[:-3]
    if len(lead) != 1:  # it also wants exactly four axes
        query, keys, values = (x.reshape(-1, *x.shape[-3:]) for x in (query, keys, values))
        if mask is not None and mask.dim() > 2:
            mask = mask.expand(*lead, *mask.shape[-3:]).reshape(-1, *mask.shape[-3:])
    if mask is not None and mask.shape[-1] != length:
        mask = mask.expand(*mask.shape[:-1], length)
    context = F.scaled_dot_product_attention(query, keys, values, mask, dropout, causal, scale=scale)
    if len(lead) != 1:
        context = context.reshape(*lead, *context.shape[-3:])
    return context if context.shape[-1] == value_width else context[..., :value_width]


def check_memory(keys: Tensor, values: Tensor) -> None:
    """Keys and values must be vectors in the same places."""
    for name, x in (("keys", keys), ("values", values)):
        if x.dim() < 2:
            raise ValueError(f"{name}: shape {list(x.shape)}, expected at least two axes, [.., N, width]")
        if not x.is_floating_point():
            raise ValueError(f"{name}: dtype {x.dtype}, expected a floating-point tensor")
    if values.shape[:-1] != keys.shape[:-1]:
        raise ValueError(f"values: axes {list(values.shape[:-1])}, expected {list(keys.shape[:-1])}, those of the keys")
    _check_dtype("values", values, keys)


def check_query(query: Tensor, width: int, keys: Tensor, keys_lead: Size) -> Size:
    """A query must have this width and the keys' leading axes, which are returned."""
    if query.dim() < 2 or query.shape[-1] != width:
        raise ValueError(f"query: shape {list(query.shape)}, expected [.., M, {width}]")
    if not query.is_floating_point():
        raise ValueError(f"query: dtype {query.dtype}, expected a floating-point tensor")
    _check_dtype("query", query, keys)
    lead = query.shape[:-2]
    if keys_lead != lead:
        raise ValueError(f"keys: leading axes {list(keys_lead)}, expected {list(lead)}, those of the query")
    return lead


def _check_dtype(name: str, x: Tensor, keys: Tensor) -> None:
    if x.dtype != keys.dtype and not _autocasts(x):
        raise ValueError(f"{name}: dtype {x.dtype}, keys {keys.dtype}: expected one dtype")


def _autocasts(x: Tensor) -> bool:
    return torch.amp.is_autocast_available(x.device.type) and torch.is_autocast_enabled(x.device.type)


_FREE: dict[str, Score] = {"dot": Dot(), "scaled_dot": ScaledDot(), "cosine": Cosine()}


def _score_without_parameters(score: str | ScoreFunction) -> Score:
    if callable(score):
        return Custom(score)
    if score in _FREE:
        return _FREE[score]
    if score in SCORES:
        raise ValueError(f"score '{score}' has parameters to learn: use saccade.Attention(..., score='{score}')")
    raise unknown("score", score, SCORES)
