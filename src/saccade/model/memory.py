"""What an encoder leaves behind for the decoder to look at."""

from dataclasses import dataclass, replace

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

    def with_prepared(self, *prepared: Prepared) -> "Memory":
        return replace(self, prepared=prepared)
