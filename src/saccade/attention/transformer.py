"""Layer normalisation, residual connections, and the Transformer block made of them and of attention."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, NamedTuple

import torch
from torch import Tensor, nn

from saccade.attention.dropout import Dropout
from saccade.attention.functional import Glance
from saccade.attention.layer import Attention, Prepared
from saccade.attention.scores import ScoreFunction
from saccade.errors import unknown

Norm = Literal["pre", "post"]


class Residual(nn.Module):
    """Adds what a layer says to what went in, and normalises over the features, before the layer or after the sum.

        pre     x + f(norm(x))        the gradient of the sum always has a straight way down
        post    norm(x + f(x))        as in Vaswani et al. 2017

    >>> import torch
    >>> Residual(4)(torch.ones(2, 4), lambda x: 0 * x).detach()
    tensor([[1., 1., 1., 1.],
            [1., 1., 1., 1.]])
    """

    def __init__(self, width: int, *, norm: Norm = "pre", dropout: float = 0.0) -> None:
        super().__init__()
        if norm not in ("pre", "post"):
            raise unknown("norm", norm, ("pre", "post"))
        self.pre = norm == "pre"
        self.norm = nn.LayerNorm(width)
        self.drop = Dropout(dropout)

    def before(self, x: Tensor) -> Tensor:
        """What the layer gets to see."""
        return self.norm(x) if self.pre else x

    def after(self, x: Tensor, said: Tensor) -> Tensor:
        """What goes on, given what the layer said."""
        total: Tensor = x + self.drop(said)
        return total if self.pre else self.norm(total)

    def forward(self, x: Tensor, layer: Callable[[Tensor], Tensor]) -> Tensor:
        return self.after(x, layer(self.before(x)))


class Block(NamedTuple):
    """What a Transformer block returns."""

    output: Tensor  # [.., M, D]
    past: Prepared  # the block's own keys and values, to be given back at the next step
    self_weights: Tensor | None  # [.., H, M, N]
    cross_weights: Tensor | None  # [.., H, M, N of the memory]


class TransformerBlock(nn.Module):
    """Looks at itself, then at a memory if it has one, then thinks: each step wrapped in a residual connection.

    An encoder block has no memory; a decoder block is built with `cross=True`, and asked with `causal=True`.

    >>> import torch
    >>> block = TransformerBlock(8, heads=2)
    >>> block(torch.randn(3, 5, 8)).output.shape
    torch.Size([3, 5, 8])
    """

    def __init__(
        self,
        width: int,
        *,
        heads: int = 4,
        hidden: int | None = None,
        cross: bool = False,
        memory_width: int | None = None,
        norm: Norm = "pre",
        score: str | ScoreFunction = "scaled_dot",
        max_length: int | None = None,
        rotary: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if memory_width is not None and not cross:
            raise ValueError("memory_width: only with cross=True")
        hidden = 4 * width if hidden is None else hidden

        def attention(key_width: int, rotary: bool) -> Attention:
            return Attention(
                width,
                key_width,
                heads=heads,
                project=True,
                bias=True,
                score=score,
                max_length=max_length,
                rotary=rotary,
                dropout=dropout,
            )

        self.itself = attention(width, rotary)
        self.itself_residual = Residual(width, norm=norm, dropout=dropout)
        self.cross = cross
        if cross:
            self.memory = attention(width if memory_width is None else memory_width, rotary=False)
            self.memory_residual = Residual(width, norm=norm, dropout=dropout)
        self.think = nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), Dropout(dropout), nn.Linear(hidden, width))
        self.think_residual = Residual(width, norm=norm, dropout=dropout)

    def forward(
        self,
        x: Tensor,
        memory: Tensor | Prepared | None = None,
        *,
        mask: Tensor | None = None,
        causal: bool = False,
        memory_mask: Tensor | None = None,
        memory_look: Tensor | None = None,
        past: Prepared | None = None,
        need_weights: bool = False,
    ) -> Block:
        """x [.., M, D] → output of the same shape.

        With `past`, x holds only the new positions. Axes of x that the memory does not have, such as the hypotheses
        of a beam in [B, K, M, D] against a memory [B, N, D], are more queries to it: the memory is never copied.
        `memory_look` interferes with how the memory is looked at, as `look` does in `Attention`.
        """
        if self.cross and memory is None:
            raise ValueError("memory: a block built with cross=True needs one")
        if memory is not None and not self.cross:
            raise ValueError("memory: this block looks at itself alone; build it with cross=True")
        for name, given in (("memory_mask", memory_mask), ("memory_look", memory_look)):
            if given is not None and not self.cross:
                raise ValueError(f"{name}: this block has no memory; build it with cross=True")
        if x.dim() < 2 or x.shape[-1] != self.itself.query_width:
            raise ValueError(f"x: shape {list(x.shape)}, expected [.., M, {self.itself.query_width}]")
        here = self.itself_residual.before(x)
        start = 0 if past is None else past.keys.shape[-2]
        own = self.itself.prepare(here, start=start)
        own = own if past is None else past.grow(own)
        places = None if self.itself.rotary is None else torch.arange(start, start + x.shape[-2], device=x.device)
        at_itself: Glance = self.itself(
            here, own, mask=mask, causal=causal, need_weights=need_weights, positions=places
        )
        x = self.itself_residual.after(x, at_itself.context)

        cross_weights = None
        if memory is not None:
            at_memory = self._look_at(memory, self.memory_residual.before(x), memory_mask, memory_look, need_weights)
            x = self.memory_residual.after(x, at_memory.context)
            cross_weights = at_memory.weights
        return Block(self.think_residual(x, self.think), own, at_itself.weights, cross_weights)

    if TYPE_CHECKING:  # what a call returns, for those who check types
        __call__ = forward

    def _look_at(
        self,
        memory: Tensor | Prepared,
        query: Tensor,
        mask: Tensor | None,
        look: Tensor | None,
        need_weights: bool,
    ) -> Glance:
        rank = memory.keys.dim() - 1 if isinstance(memory, Prepared) else memory.dim()
        if not 2 <= rank <= query.dim():
            raise ValueError(f"memory: {rank} axes, expected from 2 to {query.dim()}, those of x")
        extra = query.shape[rank - 2 : -1]  # [K, M], or just [M]
        flat = query.flatten(rank - 2, -2)  # [B, K·M, D]
        try:
            context, weights = self.memory(flat, memory, mask=mask, look=look, need_weights=need_weights)
        except ValueError as error:
            named = str(error).startswith(("mask", "look"))
            raise ValueError(f"{'memory_' if named else 'memory: '}{error}") from None
        if len(extra) > 1:
            context = context.view(query.shape)
            if weights is not None:  # [B, H, K·M, N] → [B, K, H, M, N]
                weights = weights.view(*weights.shape[:-2], *extra, weights.shape[-1]).movedim(rank - 2, -3)
        return Glance(context, weights)
