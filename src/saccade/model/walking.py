"""A decoder that walks over the source: it looks at one place for each word, and every walk is reckoned with."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade.config import ModelConfig
from saccade.model.decoder import Look, Outputs, State, Step, flat
from saccade.model.memory import Memory
from saccade.model.recurrent_decoders import LuongDecoder, read_all

REACH = 3  # a longer jump counts as one of so many places


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
        jumps, said = self._ways(memory, hidden, look)  # [B, K, N + 1, N], [B, K, N, V]
        came = state.written > 0
        weights = _walk(_told(state["said"], tokens), jumps) if came else jumps[..., 0, :]  # [B, K, N]
        said = weights.unsqueeze(-1) * said  # [B, K, N, V]: of each place and each word
        return Step(_log(said.sum(-2)), state.next(cells=cells, said=said), weights[:, :, None, None])

    def read(self, memory: Memory, targets: Tensor, need_weights: bool, look: Look) -> Outputs:
        words = self.drop_words(self.embed(targets))  # [B, K, T, E]
        hidden = read_all(self.cells, words, self.init(memory, targets.shape[1])["cells"]).flatten(1, 2)  # [B, K·T, D]
        jumps, said = (x.view(*targets.shape, *x.shape[2:]) for x in self._ways(memory, hidden, flat(look, targets)))
        told = _told(said[:, :, :-1], targets[:, :, 1:])  # [B, K, T - 1, N]
        walk = [jumps[:, :, 0, 0]]  # [B, K, N]
        for time in range(1, targets.shape[2]):  # sequential, but small: all that is wide was done above
            walk.append(_walk(walk[-1] * told[:, :, time - 1], jumps[:, :, time]))
        weights = torch.stack(walk, 2)  # [B, K, T, N]
        return Outputs(_log((weights.unsqueeze(-1) * said).sum(-2)), weights[:, :, :, None, None])

    def readout(self, hidden: Tensor) -> Tensor:
        """What `read` returns are logits already: logarithms of probabilities, summed over all places."""
        return hidden

    def _ways(self, memory: Memory, hidden: Tensor, look: Look) -> tuple[Tensor, Tensor]:
        """For states [B, M, D]: where to from each place, and from before the first, [B, M, N + 1, N], and what would
        be written at each, [B, M, N, V].
        """
        glance = self.attention(hidden, memory.prepared[0], mask=memory.mask, need_weights=True, look=look)
        assert glance.weights is not None
        liked = glance.weights.transpose(1, 2)  # [B, M, 1, N]
        places = torch.arange(liked.shape[-1], device=hidden.device)
        if look is None or look.dtype is torch.bool:
            distance = places - F.pad(places, (1, 0), value=-1).unsqueeze(1)  # [N + 1, N]: to n, from m
            ease = self.jump(hidden).to(liked.dtype).softmax(-1)  # [B, M, 2·REACH + 1]
            jumps = liked * ease[..., distance.clamp(-REACH, REACH) + REACH]  # [B, M, N + 1, N]
            jumps = _shares(jumps)
        else:  # somebody else decides, wherever it was
            jumps = liked.expand(-1, -1, len(places) + 1, -1)

        width = memory.values.shape[-1]
        seen = F.linear(memory.values, self.join.weight[:, :width])  # [B, N, D]
        state = F.linear(hidden, self.join.weight[:, width:], self.join.bias)  # [B, M, D]
        joined = torch.tanh(seen.unsqueeze(1) + state.unsqueeze(2))  # [B, M, N, D]
        said = super().readout(joined)  # [B, M, N, V]
        return jumps, said.softmax(-1, dtype=liked.dtype)


def _told(said: Tensor, tokens: Tensor) -> Tensor:
    """How each place explains the word that was written: said [.., N, V], tokens [..] → [.., N]."""
    places = tokens[..., None, None].expand(*said.shape[:-1], 1)
    return said.gather(-1, places).squeeze(-1)


def _walk(told: Tensor, jumps: Tensor) -> Tensor:
    """From where it probably was, as far as is told [.., N], to where it probably looks next: [.., N]."""
    return (_shares(told).unsqueeze(-1) * jumps[..., 1:, :]).sum(-2)  # no product of matrices: those may be rounded


def _shares(x: Tensor) -> Tensor:
    """Shares of their sum; of nothing, nothing."""
    return x / x.sum(-1, keepdim=True).clamp(min=torch.finfo(x.dtype).tiny)


def _log(x: Tensor) -> Tensor:
    return x.clamp(min=torch.finfo(x.dtype).tiny).log()
