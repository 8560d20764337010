"""The recurrent encoder: token numbers [B, N] and a mask [B, N] → a Memory."""

import torch
from torch import Tensor, nn

from saccade.attention import Dropout
from saccade.config import ModelConfig
from saccade.model.groups import Groups
from saccade.model.memory import Memory, in_order, turned
from saccade.model.recurrent import Recurrent, each
from saccade.model.relatives import Relatives


class RecurrentEncoder(nn.Module):
    """Reads the source from the left and, if it has two directions, from the right.

        h_j = [forward h_j; backward h_j]        the summary: both readers' last states

    The reader from the right gets each sentence turned round within its own length, so padding comes last for both of
    them and touches nothing.
    """

    def __init__(self, config: ModelConfig, vocabulary: int) -> None:
        super().__init__()
        embedding = config.embedding or config.width
        self.embed = nn.Embedding(vocabulary, embedding)
        nn.init.normal_(self.embed.weight, std=embedding**-0.5)
        self.groups = Groups(config.groups, config.group_rows, embedding, config.dropout) if config.groups else None
        self.relatives = Relatives(embedding) if config.relatives else None
        directions = 2 if config.bidirectional else 1
        self.residual = config.residual
        self.layers = nn.ModuleList(
            nn.ModuleList(
                Recurrent(
                    config.cell,
                    embedding if i == 0 else config.width,
                    config.width // directions,
                    norm=config.cell_norm,
                )
                for _ in range(directions)
            )
            for i in range(config.layers)
        )
        self.after = nn.ModuleList(
            nn.LayerNorm(config.width) if config.between_norm else nn.Identity() for _ in range(config.layers)
        )
        self.drop = Dropout(config.dropout, constant=config.variational)
        self.drop_summary = Dropout(config.dropout)

    def forward(self, tokens: Tensor, mask: Tensor, need_weights: bool = False) -> Memory:
        lengths = mask.sum(1)  # [B]
        order = turned(mask)  # [B, N]
        last = (lengths - 1).clamp(min=0)

        x = self.embed(tokens)  # [B, N, E]
        if self.groups is not None:
            x = x + self.groups(tokens, mask)
        if self.relatives is not None:
            x = x + self.relatives(tokens, mask)
        x = self.drop(x)
        y = x
        for i, readers in enumerate(each(self.layers, nn.ModuleList)):
            heard = []
            for direction, reader in enumerate(each(readers, Recurrent)):
                given = x if direction == 0 else in_order(x, order)
                read, _ = reader(given, reader.start(len(tokens), like=given))  # [B, N, D]
                heard.append(read if direction == 0 else in_order(read, order))
            y = self.after[i](torch.cat(heard, -1))
            x = self.drop(y + x if self.residual and i > 0 else y)  # [B, N, D]
        ends = [y[torch.arange(len(tokens), device=y.device), last], y[:, 0]]  # where each reader finished
        parts = [end.chunk(len(heard), -1)[i] for i, end in enumerate(ends[: len(heard)])]
        states = x * mask.unsqueeze(-1)
        return Memory(states, states, mask, self.drop_summary(torch.cat(parts, -1)))
