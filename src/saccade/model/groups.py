"""Vectors for groups of neighbouring symbols, added to those of the symbols themselves."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade.data import PAD

FACTOR, PRIME = 1_000_003, 2_147_483_647  # of the hash; their product is below 2^63, so nothing overflows


class Groups(nn.Module):
    """What is to be known of "igh" or "tion" stands in a table, so that no state has to work it out.

        x_n = e(s_n) + Σ_k g(s_{n−⌊k/2⌋} … s_{n−⌊k/2⌋+k−1})        k = 2 … largest

    A group finds its row by a hash (Tito Svenstrup et al. 2017), so nobody has to list those that there are; few share
    a row with another that matters. Looking up costs no products, which a wider state would.

    Training leaves out a share of the groups, each as a whole: most of them are met so seldom that they would be
    learned by heart, and the symbols alone must do where a group is new.
    """

    def __init__(self, largest: int, rows: int, width: int, dropout: float) -> None:
        super().__init__()
        self.largest, self.dropout = largest, dropout
        self.table = nn.Embedding(rows, width)
        nn.init.normal_(self.table.weight, std=0.1 * width**-0.5)  # small: a group that was never met says little

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """Tokens [B, N] → the sum of the vectors of all groups around each: [B, N, E]."""
        found = self.table(torch.stack(self.rows(tokens, mask)))  # [G, B, N, E]: at once, or each would clear the table
        if self.training and self.dropout:
            kept = torch.rand(*found.shape[:-1], 1, device=tokens.device) >= self.dropout
            found = found * (kept / (1 - self.dropout))
        total: Tensor = found.sum(0)
        return total

    def rows(self, tokens: Tensor, mask: Tensor) -> list[Tensor]:
        """The row of each group: [B, N] for each size. What lies beyond a text is PAD, whoever stands beside it."""
        length = tokens.shape[1]
        found = []
        for size in range(2, self.largest + 1):
            before = size // 2
            around = F.pad(tokens.masked_fill(~mask, PAD), (before, size - 1 - before), value=PAD)
            number = torch.full_like(tokens, size)
            for k in range(size):
                number = (number * FACTOR + around[:, k : k + length] + 1) % PRIME
            found.append(number % self.table.num_embeddings)
        return found
