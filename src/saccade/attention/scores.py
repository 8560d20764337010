"""The score functions f(q, k): how well a query matches a key.

Each is three small steps, so that what concerns the keys alone is done once per source, never once per word:

    prepare(keys)            what the keys bring, computed once
    ask(query)               what the query brings
    compare(asked, prepared) the scores E

All tensors carry a head axis: query [.., H, M, Dq], keys [.., H, N, Dk], E [.., H, M, N]. A score that is a dot
product once both sides are prepared is `dot_like`; one fused kernel then serves them all.
"""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade.attention.additive import additive_scores
from saccade.attention.checks import check_whole
from saccade.attention.glance import glance
from saccade.errors import unknown

ScoreFunction = Callable[[Tensor, Tensor], Tensor]
FEW = 8  # queries, such as the hypotheses of a beam


class Score(nn.Module):
    """What the seven scores have in common: with nothing changed, this is the dot product."""

    dot_like = True  # a dot product, once both sides are prepared
    has_kernel = True  # which goes straight to the context: `glance`

    def scale(self, width: int) -> float:
        """What that dot product is multiplied by."""
        return 1.0

    def prepare(self, keys: Tensor) -> Tensor:
        return keys

    def prepared_width(self, width: int) -> int:
        """How wide keys of this width are once they are prepared."""
        return width

    def ask(self, query: Tensor) -> Tensor:
        return query

    def compare(self, query: Tensor, keys: Tensor) -> Tensor:
        return query @ keys.mT  # [.., H, M, N]

    def glance(self, query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, factor: float) -> Tensor | None:
        """The context [B, M, D] of query [B, M, Dq] and prepared keys, if the kernel can."""
        if query.shape[1] > FEW:
            return None  # torch multiplies matrices faster
        return glance(self.ask(query), keys, None, values, mask, factor)


class Dot(Score):
    """q·k (Luong et al. 2015)."""


class ScaledDot(Score):
    """q·k / √D (Vaswani et al. 2017): without the root, wide vectors saturate the softmax."""

    def scale(self, width: int) -> float:
        return 1 / math.sqrt(width)


class General(Score):
    """qᵀ W k (Luong et al. 2015): a bridge between the space of the queries and that of the keys."""

    def __init__(self, heads: int, query_width: int, key_width: int) -> None:
        super().__init__()
        self.weight = matrix(heads, query_width, key_width)

    def prepare(self, keys: Tensor) -> Tensor:
        return per_head(keys, self.weight.mT)  # W k: [.., H, N, Dq]

    def prepared_width(self, width: int) -> int:
        return self.weight.shape[-2]


class Cosine(Score):
    """β cos(q, k): content-based addressing (Graves et al. 2014)."""

    def __init__(self, heads: int = 1, beta: float = 1.0, learned: bool = False) -> None:
        super().__init__()
        self.beta = nn.Parameter(torch.full((heads, 1, 1), float(beta))) if learned else float(beta)

    def scale(self, width: int) -> float:
        return self.beta if isinstance(self.beta, float) else 1.0

    def prepare(self, keys: Tensor) -> Tensor:
        return F.normalize(keys, dim=-1)

    def ask(self, query: Tensor) -> Tensor:
        query = F.normalize(query, dim=-1)
        return query if isinstance(self.beta, float) else query * self.beta


class Additive(Score):
    """vᵀ tanh(W_q q + W_k k) (Bahdanau et al. 2015)."""

    dot_like = False

    def __init__(self, heads: int, query_width: int, key_width: int, hidden: int) -> None:
        super().__init__()
        self.query_weight = matrix(heads, query_width, hidden)
        self.key_weight = matrix(heads, key_width, hidden)
        self.direction = _direction(heads, hidden)

    def prepare(self, keys: Tensor) -> Tensor:
        return per_head(keys, self.key_weight)  # [.., H, N, P]

    def ask(self, query: Tensor) -> Tensor:
        return per_head(query, self.query_weight)  # [.., H, M, P]

    def prepared_width(self, width: int) -> int:
        return self.direction.shape[-1]

    def compare(self, query: Tensor, keys: Tensor) -> Tensor:
        return additive_scores(query, keys, self.direction)

    def glance(self, query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, factor: float) -> Tensor | None:
        return glance(self.ask(query), keys, self.direction, values, mask)


class Concat(Score):
    """vᵀ tanh(W [q; k]): one matrix over the joined vector, which is the sum of what its two parts do."""

    dot_like = False

    def __init__(self, heads: int, query_width: int, key_width: int, hidden: int) -> None:
        super().__init__()
        self.query_width = query_width
        self.weight = matrix(heads, query_width + key_width, hidden)
        self.direction = _direction(heads, hidden)

    def prepare(self, keys: Tensor) -> Tensor:
        return per_head(keys, self.weight[..., self.query_width :, :])  # [.., H, N, P]

    def ask(self, query: Tensor) -> Tensor:
        return per_head(query, self.weight[..., : self.query_width, :])  # [.., H, M, P]

    def prepared_width(self, width: int) -> int:
        return self.direction.shape[-1]

    def compare(self, query: Tensor, keys: Tensor) -> Tensor:
        return additive_scores(query, keys, self.direction)

    def glance(self, query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, factor: float) -> Tensor | None:
        return glance(self.ask(query), keys, self.direction, values, mask)


class Location(Score):
    """(W q)_n (Luong et al. 2015): the query alone says which positions it wants."""

    dot_like = False

    def __init__(self, heads: int, query_width: int, max_length: int) -> None:
        super().__init__()
        self.max_length = max_length
        self.weight = matrix(heads, query_width, max_length)

    def ask(self, query: Tensor) -> Tensor:
        return per_head(query, self.weight)  # [.., H, M, max_length]

    def compare(self, query: Tensor, keys: Tensor) -> Tensor:
        length, built = keys.shape[-2], query.shape[-1]
        if length > built:
            raise ValueError(f"keys: {length} positions, but score 'location' was built with max_length={built}")
        return query[..., :length] if length < built else query

    def glance(self, query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, factor: float) -> Tensor | None:
        if keys.shape[-2] > self.max_length:
            return None  # where they are compared, they are counted
        return glance(query, None, self._parameters["weight"], values, mask)


class Custom(Score):
    """Any callable (Q [.., M, Dq], K [.., N, Dk]) → [.., M, N]."""

    dot_like = has_kernel = False

    def __init__(self, function: ScoreFunction) -> None:
        super().__init__()
        self.function = function  # a module among these is registered, and so trained

    def compare(self, query: Tensor, keys: Tensor) -> Tensor:
        scores = self.function(query, keys)
        expected = (*query.shape[:-1], keys.shape[-2])
        if not isinstance(scores, Tensor) or scores.shape != expected or not scores.is_floating_point():
            came = f"{scores.dtype} {list(scores.shape)}" if isinstance(scores, Tensor) else type(scores).__name__
            raise ValueError(f"score: the callable returned {came}, expected a float tensor of shape {list(expected)}")
        return scores


SCORES = ("additive", "concat", "cosine", "dot", "general", "location", "scaled_dot")
OPTIONS = {  # which scores an option belongs to
    "hidden": ("additive", "concat"),
    "beta": ("cosine",),
    "learn_beta": ("cosine",),
    "max_length": ("location",),
}


def build_score(
    score: str | ScoreFunction,
    heads: int,
    query_width: int,
    key_width: int,
    *,
    hidden: int | None = None,
    beta: float | None = None,
    learn_beta: bool = False,
    max_length: int | None = None,
) -> Score:
    """The score by its name, for heads whose queries and keys have these widths."""
    _check_options(score, hidden=hidden, beta=beta, learn_beta=learn_beta or None, max_length=max_length)
    check_whole(hidden=hidden, max_length=max_length)
    if beta is not None and not math.isfinite(beta):
        raise ValueError(f"beta: {beta}, expected a finite number")
    if callable(score):
        return Custom(score)
    if score in ("dot", "scaled_dot", "cosine") and query_width != key_width:
        raise ValueError(
            f"score '{score}' needs queries and keys of one width, not {query_width} and {key_width}: "
            "use project=True, or score='general'"
        )
    match score:
        case "dot":
            return Dot()
        case "scaled_dot":
            return ScaledDot()
        case "cosine":
            return Cosine(heads, 1.0 if beta is None else beta, learn_beta)
        case "general":
            return General(heads, query_width, key_width)
        case "additive":
            return Additive(heads, query_width, key_width, hidden or query_width)
        case "concat":
            return Concat(heads, query_width, key_width, hidden or query_width)
        case "location":
            if max_length is None:
                raise ValueError("max_length: score 'location' needs it: the most keys it will ever see")
            return Location(heads, query_width, max_length)
    raise unknown("score", score, SCORES)


def _check_options(score: str | ScoreFunction, **given: float | None) -> None:
    for option, value in given.items():
        owners = OPTIONS[option]
        if value is not None and score not in owners:
            name = "a callable" if callable(score) else f"'{score}'"
            raise ValueError(f"{option}: only for score {' or '.join(map(repr, owners))}, not for {name}")


def per_head(x: Tensor, weight: Tensor) -> Tensor:
    """x W for each head: [.., H, M, D], [H, D, P] or, for one head, [D, P] → [.., H, M, P]."""
    if weight.dim() == 2:
        return x @ weight
    return torch.einsum("...hmd,hdp->...hmp", x, weight)


def matrix(heads: int, rows: int, columns: int) -> nn.Parameter:
    """W as the papers have it, [rows, columns], and one for each head if there are several."""
    bound = (6 / (rows + columns)) ** 0.5  # Glorot
    shape = (rows, columns) if heads == 1 else (heads, rows, columns)
    return nn.Parameter(torch.empty(shape).uniform_(-bound, bound))


def _direction(heads: int, hidden: int) -> nn.Parameter:
    bound = hidden**-0.5
    return nn.Parameter(torch.empty(hidden if heads == 1 else (heads, hidden)).uniform_(-bound, bound))
