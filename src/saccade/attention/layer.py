"""The attention layer: any score, any mask, any number of heads."""

from typing import TYPE_CHECKING, Literal, NamedTuple

import torch
from torch import Tensor, nn

from saccade.attention.checks import check_whole
from saccade.attention.functional import Glance, How, check_memory, check_query, explain_dtype
from saccade.attention.functional import look as look_once
from saccade.attention.glance import can_glance
from saccade.attention.local import Local, LocalKind
from saccade.attention.masks import both, causal_mask, read_mask
from saccade.attention.normalisers import NORMALISERS
from saccade.attention.positions import Rotary
from saccade.attention.scores import Score, ScoreFunction, build_score
from saccade.errors import unknown


class Prepared(NamedTuple):
    """Keys and values after everything that does not depend on the query: computed once, asked many times."""

    keys: Tensor  # [.., H, N, P]
    values: Tensor  # [.., H, N, Dv/H]

    def grow(self, more: "Prepared") -> "Prepared":
        """These positions followed by `more`, as a decoder's own past grows word by word."""
        for mine, theirs in zip(self, more, strict=True):
            if mine.shape[:-2] != theirs.shape[:-2] or mine.shape[-1] != theirs.shape[-1]:
                raise ValueError(f"more: shape {list(theirs.shape)}, expected that of {list(mine.shape)} but for N")
        return Prepared(torch.cat([self.keys, more.keys], -2), torch.cat([self.values, more.values], -2))


class Attention(nn.Module):
    """Queries [.., M, Dq] look at keys [.., N, Dk] and take a weighted sum of values [.., N, Dv].

        E = f(Q, K)    A = softmax(E + mask)    C = A·V

    With one head the score is the whole mechanism, as in Bahdanau's and Luong's models, and the context is a mean of
    the raw values. With several, as in the Transformer, each head has projections W_Q, W_K, W_V of its own, and W_O
    joins what they saw. `project` overrides that choice.

    Args:
        query_width: Dq.
        key_width: Dk, if it is not Dq.
        value_width: Dv, if it is not Dk.
        score: dot, scaled_dot, general, additive, concat, cosine, location, or a callable `(Q, K) → [.., M, N]`.
        heads: how many looks are taken side by side.
        project: whether there are W_Q, W_K, W_V and W_O; by default, if there are several heads.
        width: D, where projected queries, keys and values meet, all heads together; by default Dq.
        bias: whether the projections have one.
        hidden: width of the hidden layer of additive and concat, for each head.
        beta: sharpness of cosine; 1 by default, and learned from there with `learn_beta`.
        max_length: the most keys that location will ever see.
        normalise: softmax, sparsemax, entmax15 or hard.
        temperature: divides the scores; small looks sharply, large looks everywhere.
        local: "m" looks around the query's own position, "p" around one that it predicts.
        window: how far local attention reaches to each side.
        rotary: turn projected queries and keys by their positions.
        coverage: add to each score a learned multiple of how much was looked at that position before.
        dropout: share of the weights that training leaves out.

    >>> layer = Attention(query_width=6, key_width=4, score="general")
    >>> glance = layer(torch.randn(2, 3, 6), torch.randn(2, 5, 4), need_weights=True)
    >>> glance.context.shape, glance.weights.shape  # [B, M, Dv], [B, H, M, N]
    (torch.Size([2, 3, 4]), torch.Size([2, 1, 3, 5]))
    """

    def __init__(
        self,
        query_width: int,
        key_width: int | None = None,
        value_width: int | None = None,
        *,
        score: str | ScoreFunction = "scaled_dot",
        heads: int = 1,
        project: bool | None = None,
        width: int | None = None,
        bias: bool = False,
        hidden: int | None = None,
        beta: float | None = None,
        learn_beta: bool = False,
        max_length: int | None = None,
        normalise: Literal["softmax", "sparsemax", "entmax15", "hard"] = "softmax",
        temperature: float = 1.0,
        local: LocalKind | None = None,
        window: int | None = None,
        rotary: bool = False,
        coverage: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        check_whole(query_width=query_width, key_width=key_width, value_width=value_width, width=width, heads=heads)
        self.query_width = query_width
        self.key_width = query_width if key_width is None else key_width
        self.value_width = self.key_width if value_width is None else value_width
        self.heads = heads
        self.project = heads > 1 if project is None else project
        if normalise not in NORMALISERS:
            raise unknown("normaliser", normalise, NORMALISERS)
        if not temperature > 0:
            raise ValueError(f"temperature: {temperature}, expected a number above 0")
        if not 0 <= dropout < 1:
            raise ValueError(f"dropout: {dropout}, expected a share, 0 ≤ dropout < 1")
        if not self.project and (width is not None or bias):
            raise ValueError(f"{'bias' if width is None else 'width'}: only with projections; add project=True")
        if window is not None and local is None:
            raise ValueError("window: only with local='m' or local='p'")

        if self.project:
            width = query_width if width is None else width
            meet_query = meet_keys = meet_values = width
            self._divide(width=width)
            self.project_query = nn.Linear(query_width, width, bias)
            self.project_keys = nn.Linear(self.key_width, width, bias)
            self.project_values = nn.Linear(self.value_width, width, bias)
            self.project_output = nn.Linear(width, query_width, bias)
            for matrix in (self.project_query, self.project_keys, self.project_values, self.project_output):
                nn.init.xavier_uniform_(matrix.weight)
        else:
            meet_query, meet_keys, meet_values = query_width, self.key_width, self.value_width
            self._divide(query_width=query_width, key_width=self.key_width, value_width=self.value_width)
        head_query, head_keys, head_values = meet_query // heads, meet_keys // heads, meet_values // heads

        self.score = build_score(
            score,
            heads,
            head_query,
            head_keys,
            hidden=hidden,
            beta=beta,
            learn_beta=learn_beta,
            max_length=max_length,
        )
        if rotary and head_query != head_keys:
            raise ValueError(
                f"rotary: queries of width {head_query}, keys of {head_keys}: expected one; add project=True"
            )
        self.prepared_width = self.score.prepared_width(head_keys)
        self.rotary = Rotary(head_query) if rotary else None
        self.local = None if local is None else Local(local, 10 if window is None else window, heads, head_query)
        self.coverage_weight = nn.Parameter(torch.zeros(heads, 1, 1)) if coverage else None
        self.how = How.build(self.score, head_query, head_values, NORMALISERS[normalise], temperature)
        self.dropout = dropout
        plain = self.score.has_kernel and heads == 1 and not (self.project or rotary or local or coverage)
        self.in_one_call = plain and normalise == "softmax" and (self.score.dot_like or temperature == 1)

    def prepare(self, keys: Tensor, values: Tensor | None = None, *, start: int = 0) -> Prepared:
        """Everything that does not depend on the query, to be computed once and asked at every step.

        `start` is the position of the first key, for rotary positions.
        """
        values = keys if values is None else values
        check_memory(keys, values)
        if keys.shape[-1] != self.key_width:
            raise ValueError(f"keys: width {keys.shape[-1]}, expected {self.key_width}")
        if values.shape[-1] != self.value_width:
            raise ValueError(f"values: width {values.shape[-1]}, expected {self.value_width}")
        own = next(self.parameters(), keys)
        if own.dtype != keys.dtype:
            explain_dtype("keys", keys, "the layer", own)
        if self.project:
            keys, values = self.project_keys(keys), self.project_values(values)
        keys, values = self._split(keys), self._split(values)  # [.., H, N, D/H]
        if self.rotary is not None:
            keys = self.rotary(keys, torch.arange(start, start + keys.shape[-2], device=keys.device))
        return Prepared(self.score.prepare(keys), values)

    def forward(  # noqa: PLR0912  (each option is one branch, and a step cannot afford a call for each)
        self,
        query: Tensor,
        keys: Tensor | Prepared,
        values: Tensor | None = None,
        *,
        mask: Tensor | None = None,
        causal: bool = False,
        need_weights: bool = False,
        positions: Tensor | int | None = None,
        coverage: Tensor | None = None,
        look: Tensor | None = None,
    ) -> Glance:
        """One look: context [.., M, Dv], or [.., M, Dq] with projections, and weights [.., H, M, N] if asked for.

        `keys` may be what `prepare` returned. `positions [.., M]` says where the queries stand, for local and rotary
        attention: 0, 1, 2, … or, if `causal`, so that the last query stands at the last key; a number is where they all
        stand, as hypotheses of a beam do. `coverage`, [.., M, N] or [.., H, M, N], is the sum of the weights of earlier
        looks; None: nothing was looked at yet. `look`, read by rank as masks are, interferes: a boolean one is a second
        mask (what if it could not see this?), a float one the weights, in place of its own (what if it looked here?)
        """
        if not isinstance(keys, Prepared):
            keys = self.prepare(keys, values)
        elif values is not None:
            raise ValueError("values: prepared keys bring their own")
        memory, values = keys
        heads, kept = self.heads, memory.shape  # [.., H, N, P]
        if kept[-3] != heads or kept[-1] != self.prepared_width:
            came, expected = list(kept[-3::2]), [heads, self.prepared_width]
            raise ValueError(f"keys: prepared by another layer: heads and width {came}, expected {expected}")
        lead, queries = check_query(query, self.query_width, memory, kept[:-3])
        length = kept[-2]
        score: Score = self._modules["score"]  # type: ignore[assignment]  # self.score costs a microsecond a step
        asked_more = need_weights or causal or look is not None or positions is not None or coverage is not None
        if self.in_one_call and not (asked_more or self.training):
            at_once = (
                score.glance(query, memory, values, mask, self.how.factor)
                if can_glance(query, memory, values, mask)
                else None
            )
            if at_once is not None:
                return Glance(at_once, None)
        if mask is not None:
            mask = read_mask(mask, lead, heads, queries, length)
        if look is not None:
            look = read_mask(look, lead, heads, queries, length, "look")
            if look.dtype is not torch.bool:
                return self._given(look, values, lead, queries)
            mask = both(mask, look)
        if self.project:
            query = self.project_query(query)
        query = query.unsqueeze(-3) if heads == 1 else self._split(query)  # [.., H, M, D/H]

        focus = bias = None
        if self.rotary is not None or self.local is not None:
            where = _positions(positions, lead, queries, length - queries if causal else 0, query.device)  # [.., 1, M]
            if self.rotary is not None:
                query = self.rotary(query, where)
            if self.local is not None:
                if causal:
                    mask, causal = both(mask, causal_mask(queries, length, query.device)), False
                near, focus = self.local(query, where, mask, length)
                mask = both(mask, near)
        if positions is not None and self.rotary is None and (self.local is None or self.local.kind != "m"):
            raise ValueError("positions: this layer does not use them; build it with rotary=True or local='m'")
        if coverage is not None:
            bias = self._coverage_bias(coverage, lead, queries, length)
        dropout = self.dropout if self.training else 0.0

        asked = score.ask(query)
        context, weights = look_once(
            score, self.how, asked, memory, values, mask, causal, need_weights, dropout, bias, focus
        )
        context = context.squeeze(-3) if heads == 1 else context.transpose(-2, -3).flatten(-2)  # [.., M, D]
        return Glance(self.project_output(context) if self.project else context, weights)

    def _given(self, weights: Tensor, values: Tensor, lead: torch.Size, queries: int) -> Glance:
        """The context of weights that somebody else decided, [.., H|1, M|1, N]."""
        weights = weights.to(values.dtype).expand(*lead, self.heads, queries, -1)
        context = weights @ values  # [.., H, M, Dv/H]
        context = context.squeeze(-3) if self.heads == 1 else context.transpose(-2, -3).flatten(-2)
        return Glance(self.project_output(context) if self.project else context, weights)

    def extra_repr(self) -> str:
        widths = f"{self.query_width}, {self.key_width}, {self.value_width}, heads={self.heads}, project={self.project}"
        return f"{widths}, normalise={self.how.normalise.__name__}, dropout={self.dropout}"

    if TYPE_CHECKING:  # what a call returns, for those who check types
        __call__ = forward

    def _divide(self, **widths: int) -> None:
        for name, width in widths.items():
            if width % self.heads:
                raise ValueError(f"heads: {self.heads}, expected a number that divides {name}={width}")

    def _split(self, x: Tensor) -> Tensor:
        """[.., M, D] → [.., H, M, D/H]"""
        if self.heads == 1:
            return x.unsqueeze(-3)
        return x.view(*x.shape[:-1], self.heads, x.shape[-1] // self.heads).transpose(-2, -3)

    def _coverage_bias(self, coverage: Tensor, lead: torch.Size, queries: int, length: int) -> Tensor:
        if self.coverage_weight is None:
            raise ValueError("coverage: this layer was built without it; add coverage=True")
        if not coverage.is_floating_point() or coverage.dim() - len(lead) not in (2, 3):
            shape = [*lead, queries, length]
            raise ValueError(f"coverage: {coverage.dtype} of shape {list(coverage.shape)}, expected float of {shape}")
        return self.coverage_weight * read_mask(coverage, lead, self.heads, queries, length, "coverage")


def _positions(
    positions: Tensor | int | None, lead: torch.Size, queries: int, start: int, device: torch.device
) -> Tensor:
    """Where the queries of every head stand: → [.., 1, M]"""
    if positions is None:
        return torch.arange(start, start + queries, device=device).unsqueeze(0)
    positions = torch.as_tensor(positions, device=device)
    wanted = (*lead, queries)
    if positions.dim() > len(wanted) or any(
        came not in (1, size) for came, size in zip(reversed(positions.shape), reversed(wanted), strict=False)
    ):
        raise ValueError(f"positions: shape {list(positions.shape)}, expected {list(wanted)}, or 1 in place of an axis")
    return positions.expand(wanted).unsqueeze(-2)
