"""Attention itself, once: E = f(Q, K), A = normalise(E + mask), C = A·V.

`look` is the one place where this happens; `attend` is its parameter-free form, `layer.Attention` the trained one.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Size, Tensor

from saccade.attention.checks import check_tensor
from saccade.attention.dropout import drop
from saccade.attention.masks import both, causal_mask, hide, read_mask
from saccade.attention.normalisers import Normaliser, softmax
from saccade.attention.scores import SCORES, Cosine, Custom, Dot, ScaledDot, Score, ScoreFunction
from saccade.errors import unknown

HALF = (torch.float16, torch.bfloat16)
LARGE = 4 * 1024 * 1024  # weights: 16 MiB of fp32; above this it pays to pad widths for the fused kernel


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
    check_memory(keys, values)
    check_tensor("query", query)
    width = query.shape[-1] if callable(score) and query.dim() else keys.shape[-1]
    function = _score_without_parameters(score)
    lead, queries = check_query(query, width, keys, keys.shape[:-2])
    if mask is not None:
        mask = read_mask(mask, lead, 1, queries, keys.shape[-2])
    asked, prepared = function.ask(query.unsqueeze(-3)), function.prepare(keys.unsqueeze(-3))  # one head
    how = How.build(function, width, values.shape[-1])
    context, weights = look(function, how, asked, prepared, values.unsqueeze(-3), mask, causal, need_weights)
    return Glance(context.squeeze(-3), None if weights is None else weights.squeeze(-3))


@dataclass(frozen=True, slots=True)
class How:
    """What stays the same from look to look, computed when a layer is built: a step should cost little."""

    factor: float  # what the score is multiplied by before it is normalised
    normalise: Normaliser
    fused: bool  # whether torch's fused kernel computes just this
    one_width: bool  # whether queries and values are as wide as each other, as that kernel wants them

    @classmethod
    def build(
        cls, score: Score, width: int, value_width: int, normalise: Normaliser = softmax, temperature: float = 1.0
    ) -> "How":
        """For queries and values of these widths, those of one head."""
        fused = score.dot_like and normalise is softmax
        return cls(score.scale(width) / temperature, normalise, fused, width == value_width)


def look(
    score: Score,
    how: How,
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    mask: Tensor | None = None,
    causal: bool = False,
    need_weights: bool = False,
    dropout: float = 0.0,
    bias: Tensor | None = None,
    focus: Tensor | None = None,
) -> tuple[Tensor, Tensor | None]:
    """One look, with query asked and keys prepared by the score, all with a head axis: [.., H, M, .], [.., H, N, .].

    `bias` is added to the scores; `focus` multiplies the weights after they were normalised. Both are [.., H, M, N].
    """
    exact = mask is None or mask.dtype is torch.bool  # the fused kernel rounds float masks
    fused = how.fused and exact and not (dropout and query.is_cpu)  # on a CPU torch fuses nothing where it drops
    if fused and not need_weights and bias is None and focus is None:
        if causal or not how.one_width or query.dim() != 4:
            return _fused(how.factor, query, keys, values, mask, causal, dropout), None
        return F.scaled_dot_product_attention(query, keys, values, mask, dropout, scale=how.factor), None

    if causal:
        mask = both(mask, causal_mask(query.shape[-2], keys.shape[-2], query.device))
    scores = _scores(score, how.factor, query, keys)  # [.., H, M, N]
    if bias is not None:
        scores = scores + bias
    scores, hidden = hide(scores, mask)
    weights = how.normalise(scores)
    if hidden is not None:
        weights = weights.masked_fill(hidden, 0)  # first of all: what it replaces may be NaN
    if focus is not None:
        weights = weights * focus
    if weights.dtype is not values.dtype:
        weights = weights.to(values.dtype)
    dropped = drop(weights, dropout)
    return dropped @ values, weights if need_weights else None


def _scores(score: Score, factor: float, query: Tensor, keys: Tensor) -> Tensor:
    """E, in fp32 where the inputs have fewer bits: a softmax of rounded scores would not be the fused kernel's."""
    if not isinstance(score, Custom) and _autocasts(query):
        with torch.autocast(query.device.type, enabled=False):
            return _scores(score, factor, query, keys)
    if query.dtype in HALF or keys.dtype in HALF:
        query, keys = query.float(), keys.float()
    if factor != 1 and score.dot_like and query.shape[-1] < keys.shape[-2]:
        return score.compare(query * factor, keys)  # fewer numbers to multiply than the scores
    scores = score.compare(query, keys)
    if scores.dtype in HALF:
        scores = scores.float()
    return scores if factor == 1 else scores * factor


def _fused(
    factor: float, query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, causal: bool, dropout: float
) -> Tensor:
    """scaled_dot_product_attention, which never builds the weights; a row that may look nowhere gives 0 there too."""
    shape, value_width = query.shape, values.shape[-1]
    if causal:
        queries, length = shape[-2], keys.shape[-2]
        if queries == 1 and length:
            causal = False  # aligned at the end, a single query sees everything
        elif mask is not None or queries != length:  # torch would align the corner at the start
            mask, causal = both(mask, causal_mask(queries, length, query.device)), False
    if shape[-1] != value_width and shape[:-1].numel() * keys.shape[-2] > LARGE:  # it wants one width
        wide = max(shape[-1], value_width)
        query, keys, values = (F.pad(x, (0, wide - x.shape[-1])) for x in (query, keys, values))  # 0 changes nothing
    if len(shape) == 4:
        context = F.scaled_dot_product_attention(query, keys, values, mask, dropout, causal, scale=factor)
    else:  # it also wants four axes
        lead = shape[:-3]
        if mask is not None and mask.dim() > 2:
            mask = mask.expand(*lead, *mask.shape[-3:]).reshape(lead.numel(), *mask.shape[-3:])
        query, keys, values = (x.reshape(lead.numel(), *x.shape[-3:]) for x in (query, keys, values))
        context = F.scaled_dot_product_attention(query, keys, values, mask, dropout, causal, scale=factor)
        context = context.reshape(*lead, *context.shape[-3:])
    return context[..., :value_width] if shape[-1] > value_width else context


def check_memory(keys: Tensor, values: Tensor) -> None:
    """Keys and values must be vectors in the same places."""
    for name, x in (("keys", keys), ("values", values)):
        check_tensor(name, x)
        if x.dim() < 2:
            raise ValueError(f"{name}: shape {list(x.shape)}, expected at least two axes, [.., N, width]")
        if not x.is_floating_point():
            raise ValueError(f"{name}: dtype {x.dtype}, expected a floating-point tensor")
    if values.shape[:-1] != keys.shape[:-1]:
        raise ValueError(f"values: axes {list(values.shape[:-1])}, expected {list(keys.shape[:-1])}, those of the keys")
    if values.dtype != keys.dtype:
        explain_dtype("values", values, "keys", keys)


def check_query(query: Tensor, width: int, keys: Tensor, keys_lead: Size) -> tuple[Size, int]:
    """A query must have this width and the keys' leading axes. Returns these, and how many queries there are."""
    if not isinstance(query, Tensor):
        check_tensor("query", query)
    shape = query.shape
    lead = shape[:-2]
    if len(shape) < 2 or shape[-1] != width:
        raise ValueError(f"query: shape {list(shape)}, expected [.., M, {width}]")
    if query.dtype is not keys.dtype:
        explain_dtype("query", query, "keys", keys)
    if keys_lead != lead:
        raise ValueError(f"keys: leading axes {list(keys_lead)}, expected {list(lead)}, those of the query")
    return lead, shape[-2]


def explain_dtype(name: str, x: Tensor, other: str, y: Tensor) -> None:
    """Two dtypes that differ are a mistake, unless autocast is there to deal with them."""
    if not x.is_floating_point():
        raise ValueError(f"{name}: dtype {x.dtype}, expected a floating-point tensor")
    if not _autocasts(x):
        raise ValueError(f"{name}: dtype {x.dtype}, {other} {y.dtype}: expected one dtype")


def _autocasts(x: Tensor) -> bool:
    if x.is_cpu:
        return torch.is_autocast_enabled("cpu")
    device = x.device.type
    return torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)


_FREE: dict[str, Score] = {"dot": Dot(), "scaled_dot": ScaledDot(), "cosine": Cosine()}


def _score_without_parameters(score: str | ScoreFunction) -> Score:
    if callable(score):
        return Custom(score)
    if score in _FREE:
        return _FREE[score]
    if score in SCORES:
        raise ValueError(f"score '{score}' has parameters to learn: use saccade.Attention(..., score='{score}')")
    raise unknown("score", score, SCORES)
