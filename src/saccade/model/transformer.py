"""The Transformer, both halves: everything looks at everything, layer after layer (Vaswani et al. 2017)."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from saccade.attention import Dropout, Learned, Prepared, Sinusoidal, TransformerBlock
from saccade.config import ModelConfig
from saccade.model.decoder import Decoder, Look, Outputs, State, Step, flat
from saccade.model.memory import Memory
from saccade.model.recurrent import each


class TransformerEncoder(nn.Module):
    """Every word looks at every other, layer after layer; the summary is the mean of what came out."""

    def __init__(self, config: ModelConfig, vocabulary: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, config.width)
        nn.init.normal_(self.embed.weight, std=config.width**-0.5)
        self.positions = position_code(config)
        self.blocks = nn.ModuleList(transformer_block(config, cross=False) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width) if config.norm == "pre" else nn.Identity()
        self.drop = Dropout(config.dropout)
        self.scale = config.width**0.5

    def forward(self, tokens: Tensor, mask: Tensor, need_weights: bool = False) -> Memory:
        x = self.drop(self.positions(self.embed(tokens) * self.scale))  # [B, N, D]
        itself = []
        for block in each(self.blocks, TransformerBlock):
            x, _, weights, _ = block(x, mask=mask, need_weights=need_weights)
            itself.append(weights)  # [B, H, N, N]
        states = self.norm(x) * mask.unsqueeze(-1)
        summary = states.sum(1) / mask.sum(1, keepdim=True).clamp(min=1)
        return Memory(states, states, mask, summary, itself=stacked(itself, 1))


class TransformerDecoder(Decoder):
    """Vaswani et al. 2017: every word looks back at the words before it, then at the memory, layer after layer."""

    def __init__(self, config: ModelConfig, vocabulary: int) -> None:
        super().__init__(config, vocabulary, config.width, config.width)
        self.positions = position_code(config)
        self.blocks = nn.ModuleList(transformer_block(config, cross=True) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width) if config.norm == "pre" else nn.Identity()
        self.scale = config.width**0.5

    def prepare(self, memory: Memory) -> Memory:
        return memory.with_prepared(
            *(block.memory.prepare(memory.keys, memory.values) for block in each(self.blocks, TransformerBlock))
        )

    def init(self, memory: Memory, hypotheses: int = 1) -> State:
        heads, width = each(self.blocks, TransformerBlock)[0].itself.heads, self.embed.embedding_dim
        nothing = memory.keys.new_zeros(len(memory.keys), hypotheses, heads, 0, width // heads)
        return State({f"{part}{i}": nothing for i in range(len(self.blocks)) for part in ("keys", "values")})

    def step(
        self, memory: Memory, state: State, tokens: Tensor, *, need_weights: bool = True, look: Look = None
    ) -> Step:
        here = torch.full((1,), state.written, device=tokens.device)
        x = self.positions(self.embed(tokens).unsqueeze(2) * self.scale, here)  # [B, K, 1, D]
        tensors, weights = {}, []
        for i, block in enumerate(each(self.blocks, TransformerBlock)):
            past = Prepared(state[f"keys{i}"], state[f"values{i}"])  # [B, K, H, t, D/H]
            x, past, _, cross = block(
                x,
                memory.prepared[i],
                causal=True,
                memory_mask=memory.mask,
                memory_look=look,
                past=past,
                need_weights=need_weights,
            )
            tensors[f"keys{i}"], tensors[f"values{i}"] = past
            weights.append(cross)  # [B, K, H, 1, N]
        output = self.norm(x).squeeze(2)  # [B, K, D]
        looked = stacked(weights, 2)  # [B, K, L, H, 1, N]
        return Step(self.readout(output), state.next(**tensors), None if looked is None else looked.squeeze(-2))

    def read(self, memory: Memory, targets: Tensor, need_weights: bool, look: Look) -> Outputs:
        x = self.drop(self.positions(self.embed(targets) * self.scale))  # [B, K, T, D]
        weights, itself = [], []
        for i, block in enumerate(each(self.blocks, TransformerBlock)):
            x, _, own, cross = block(
                x,
                memory.prepared[i],
                causal=True,
                memory_mask=memory.mask,
                memory_look=flat(look, targets),
                need_weights=need_weights,
            )
            weights.append(cross)  # [B, K, H, T, N]
            itself.append(own)  # [B, K, H, T, T]
        looks = (stacked(x, 2) for x in (weights, itself))  # [B, K, L, H, T, ..]
        return Outputs(self.norm(x), *(None if x is None else x.movedim(4, 2) for x in looks))


def stacked(layers: Sequence[Tensor | None], axis: int) -> Tensor | None:
    """What the layers looked at, along a new axis, if it was asked for."""
    given = [x for x in layers if x is not None]
    return torch.stack(given, axis) if given else None


def transformer_block(config: ModelConfig, cross: bool) -> TransformerBlock:
    return TransformerBlock(
        config.width,
        heads=config.heads,
        hidden=config.hidden,
        cross=cross,
        norm=config.norm,
        rotary=config.positions == "rotary",
        dropout=config.dropout,
    )


def position_code(config: ModelConfig) -> nn.Module:
    match config.positions:
        case "sinusoidal":
            return Sinusoidal(config.width)
        case "learned":
            return Learned(config.width, config.max_length)
    return Unplaced()


class Unplaced(nn.Module):
    """Rotary positions are put in by the attention layers themselves; and some want none."""

    def forward(self, x: Tensor, positions: Tensor | None = None) -> Tensor:
        return x
