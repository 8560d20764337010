"""What an encoder leaves behind for the decoder to look at."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from saccade.attention import Prepared


@dataclass(frozen=True, slots=True)
class Memory:
    """A source, read: N vectors to look at, which of them are real, and the whole in one vector.

    The decoder that will look at it adds what its attention layers make of the keys (`prepared`), once per source.
    """

    keys: Tensor  # [B, N, D]
    values: Tensor  # [B, N, D]
    mask: Tensor  # [B, N]: True where there is something
    summary: Tensor  # [B, D]
    prepared: tuple[Prepared, ...] = ()
    itself: Tensor | None = None  # [B, L, H, N, N]: where its places looked among themselves, if asked for
    along: Tensor | None = None  # [B, N]: how far along a line of writing, 0 to 1, each place is; None: as they stand

    def select(self, rows: Tensor) -> "Memory":
        """Only these sentences: finished ones leave the batch."""
        prepared = tuple(Prepared(p.keys[rows], p.values[rows]) for p in self.prepared)
        along, itself = (None if x is None else x[rows] for x in (self.along, self.itself))
        return Memory(self.keys[rows], self.values[rows], self.mask[rows], self.summary[rows], prepared, itself, along)

    def mirrored(self) -> "Memory":
        """The same, its real places from the last to the first; the cells of a picture stay, but are read from the
        right.
        """
        if self.along is not None:
            return replace(self, prepared=(), along=1 - self.along)
        ends = self.mask.sum(1, keepdim=True)  # [B, 1]
        places = torch.arange(self.mask.shape[1], device=self.mask.device).expand_as(self.mask)
        turned = torch.where(places < ends, ends - 1 - places, places)  # [B, N]
        keys, values = (x.gather(1, turned.unsqueeze(-1).expand_as(x)) for x in (self.keys, self.values))
        return Memory(keys, values, self.mask, self.summary)

    def with_prepared(self, *prepared: Prepared) -> "Memory":
        return replace(self, prepared=prepared)
