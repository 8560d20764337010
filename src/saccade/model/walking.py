"""A decoder that walks over the source: it looks at one place for each word, and every walk is reckoned with."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from saccade.config import ModelConfig
from saccade.model.decoder import Look, Outputs, State, Step, flat
from saccade.model.memory import Memory
from saccade.model.recurrent_decoders import LuongDecoder, read_all

REACH = 3  # a longer jump counts as one of so many places
HELD = 64_000_000  # numbers of [B, M, N, D] that are held at a time


class WalkingDecoder(LuongDecoder):
    """Luong's decoder, but it looks at one place alone, and which one depends on where it looked before.

        a = attention(s_t, memory)    p(n | m) ∝ a_n e^{jump(s_t)_{n − m}}    p(y | n) = softmax(W_o tanh(W [v_n; s_t]))

    Nobody knows the place, so all of them are summed, which is exact (Wu & Cotterell 2019; the forward algorithm):

        w_n = Σ_m b_m p(n | m)    p(y_t) = Σ_n w_n p(y_t | n)    b_n ∝ w_n p(y_t | n)

    The weights w are where it probably looks for the next word; b is what is known of that once the word is written.
    It comes from before the first place.
    """

    def __init__(self, config: ModelConfig, vocabulary: int) -> None:
        super().__init__(config, vocabulary)
        self.jump = nn.Linear(config.width, 2 * REACH + 1)
        nn.init.zeros_(self.jump.weight)  # at first it goes wherever attention likes
        nn.init.zeros_(self.jump.bias)

    def step(
        self, memory: Memory, state: State, tokens: Tensor, *, need_weights: bool = True, look: Look = None
    ) -> Step:
        hidden, cells = self.cells.step(self.embed(tokens), state["cells"], state.written)  # [B, K, D]
        ways, said = self._ways(memory, hidden, look)  # said [B, K, N, V]
        came = state.written > 0
        weights = ways.on(_told(state["said"], tokens)) if came else ways.first()  # [B, K, N]
        said = weights.unsqueeze(-1) * said  # [B, K, N, V]: of each place and each word
        return Step(_log(said.sum(-2)), state.next(cells=cells, said=said), weights[:, :, None, None])

    def read(self, memory: Memory, targets: Tensor, need_weights: bool, look: Look) -> Outputs:
        words = self.drop_words(self.embed(targets))  # [B, K, T, E]
        hidden = read_all(self.cells, words, self.init(memory, targets.shape[1])["cells"]).flatten(1, 2)  # [B, K·T, D]
        ways, said = self._ways(memory, hidden, flat(look, targets))
        said = said.view(*targets.shape, *said.shape[2:])  # [B, K, T, N, V]
        told = _told(said[:, :, :-1], targets[:, :, 1:])  # [B, K, T - 1, N]
        first, *later = ways.each(targets.shape)
        walk = [first.first()]  # [B, K, N]
        for time, way in enumerate(later):  # sequential, but small: all that is wide was done above
            walk.append(way.on(walk[-1] * told[:, :, time]))
        weights = torch.stack(walk, 2)  # [B, K, T, N]
        return Outputs(_log((weights.unsqueeze(-1) * said).sum(-2)), weights[:, :, :, None, None])

    def readout(self, hidden: Tensor) -> Tensor:
        """What `read` returns are logits already: logarithms of probabilities, summed over all places."""
        return hidden

    def _ways(self, memory: Memory, hidden: Tensor, look: Look) -> tuple["Ways", Tensor]:
        """For states [B, M, D]: where to, and what would be written at each place, [B, M, N, V]."""
        glance = self.attention(hidden, memory.prepared[0], mask=memory.mask, need_weights=True, look=look)
        assert glance.weights is not None
        liked = glance.weights.squeeze(1)  # [B, M, N]
        ease = self.jump(hidden).to(liked.dtype).softmax(-1)  # [B, M, 2·REACH + 1]
        if look is not None and look.dtype is not torch.bool:
            ways = Ways(liked)  # somebody else decides, wherever it was
        else:
            ways = Ways(liked, ease, _reached(liked, ease))

        width = memory.values.shape[-1]
        seen = F.linear(memory.values, self.join.weight[:, :width])  # [B, N, D]
        state = F.linear(hidden, self.join.weight[:, width:], self.join.bias)  # [B, M, D]
        parts = torch.split(state, max(1, HELD // seen.numel()), 1)
        if len(parts) == 1 or not torch.is_grad_enabled():
            said = [self._said(seen, part, liked.dtype) for part in parts]
        else:  # a long pair is worked out again on the way back: M·N·D numbers would not fit
            said = [checkpoint(self._said, seen, part, liked.dtype, use_reentrant=False) for part in parts]
        return ways, torch.cat(said, 1)

    def _said(self, seen: Tensor, state: Tensor, dtype: torch.dtype) -> Tensor:
        """What states [B, m, D] would write at each place, seen [B, N, D]: probabilities [B, m, N, V]."""
        joined = torch.tanh(seen.unsqueeze(1) + state.unsqueeze(2))  # [B, m, N, D]
        return super().readout(joined).softmax(-1, dtype=dtype)


class Ways(NamedTuple):
    """Where to go from any place: p(n | m) = a_n e_{n − m} / Σ_k a_k e_{k − m}, never written out for all n and m."""

    liked: Tensor  # a [.., N]: what attention would like to look at
    ease: Tensor | None = None  # e [.., 2·REACH + 1]: of a jump by so many places; None: wherever it was, it looks at a
    total: Tensor | None = None  # [.., N]: the sum below, for every m

    def first(self) -> Tensor:
        """From before the first place, which is no place of the source: [.., N]."""
        if self.ease is None:
            return self.liked
        far = torch.arange(1, self.liked.shape[-1] + 1, device=self.liked.device).clamp(max=REACH)
        return _shares(self.liked * self.ease[..., far + REACH])

    def on(self, told: Tensor) -> Tensor:
        """From where it probably was, as far as is told [.., N], to where it probably looks next: [.., N]."""
        if self.ease is None or self.total is None:
            return self.liked
        lost = told.sum(-1, keepdim=True) < torch.finfo(told.dtype).tiny  # no place explains what was written
        came = _divided(_shares(torch.where(lost, self.liked, told)), self.total)
        return self.liked * _reached(came, self.ease.flip(-1))

    def each(self, shape: torch.Size) -> Iterator["Ways"]:
        """Those of K·T states, one after the other: T times those of [B, K]."""
        parts = [[None] * shape[2] if x is None else x.view(*shape, -1).unbind(2) for x in self]
        return (Ways(*part) for part in zip(*parts, strict=True))


def _reached(x: Tensor, ease: Tensor) -> Tensor:
    """Σ_k x_k e_{k − m} for every m: x [.., N], ease [.., 2·REACH + 1] → [.., N].

    All jumps of REACH or more are alike, so of those only sums are needed: N places cost N, not N².
    """
    before, after = x.cumsum(-1), x.flip(-1).cumsum(-1).flip(-1)  # Σ up to each place, and from each on
    count = x.shape[-1]
    back = F.pad(before, (REACH, 0))[..., :count, None]
    ahead = F.pad(after, (0, REACH))[..., REACH:, None]
    near = F.pad(x, (REACH - 1, REACH - 1)).unfold(-1, 2 * REACH - 1, 1)  # [.., N, 2·REACH - 1]
    return (torch.cat([back, near, ahead], -1) * ease.unsqueeze(-2)).sum(-1)  # no product of matrices: those round


def _told(said: Tensor, tokens: Tensor) -> Tensor:
    """How each place explains the word that was written: said [.., N, V], tokens [..] → [.., N]."""
    places = tokens[..., None, None].expand(*said.shape[:-1], 1)
    return said.gather(-1, places).squeeze(-1)


def _shares(x: Tensor) -> Tensor:
    """Shares of their sum; of nothing, nothing."""
    return _divided(x, x.sum(-1, keepdim=True))


def _divided(x: Tensor, by: Tensor) -> Tensor:
    return x / by.clamp(min=torch.finfo(x.dtype).tiny)


def _log(x: Tensor) -> Tensor:
    return x.clamp(min=torch.finfo(x.dtype).tiny).log()
