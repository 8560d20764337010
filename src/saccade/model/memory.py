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
        order = turned(self.mask)
        keys = in_order(self.keys, order)
        values = keys if self.values is self.keys else in_order(self.values, order)
        return Memory(keys, values, self.mask, self.summary)

    def with_prepared(self, *prepared: Prepared) -> "Memory":
        return replace(self, prepared=prepared)


def turned(real: Tensor) -> Tensor:
    """In which order the real places of each row come from the last to the first, and the others as they stand; twice
    is as before: [.., N].

    >>> turned(torch.tensor([True, True, True, False]))
    tensor([2, 1, 0, 3])
    """
    places = torch.arange(real.shape[-1], device=real.device)
    return torch.where(real, real.sum(-1, keepdim=True) - 1 - places, places)


def in_order(x: Tensor, order: Tensor) -> Tensor:
    """x [B, N, D] in the order [B, N]."""
    return x.gather(1, order.unsqueeze(-1).expand(-1, -1, x.shape[-1]))
