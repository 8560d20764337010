"""Every score learns: a layer alone must find the position that its query names.

Bounds, not exact figures, and a random seed each time: what is tested is that learning works, not one run of it.
"""

import pytest
import torch
from problems import SCORES

from saccade import Attention, TransformerBlock

N = 6


def lookup(batch):
    """The query names a position one-hot; keys carry their position, values a random bit: answer the bit named."""
    wanted = torch.randint(N, (batch, 1))
    bits = torch.randint(2, (batch, N, 1)).float() * 2 - 1
    query = torch.nn.functional.one_hot(wanted, N).float()  # [B, 1, N]
    keys = torch.eye(N).expand(batch, N, N)
    return query, keys, bits, bits.gather(1, wanted.unsqueeze(-1))


@pytest.mark.parametrize("normalise", ["softmax", "entmax15", "hard"])
@pytest.mark.parametrize("score", SCORES)
def test_a_layer_learns_where_to_look(score, normalise):
    """Within three tries: hard looks are sometimes stuck at a wrong place, one run in about a hundred."""
    torch.seed()
    found: list[float] = []
    while len(found) < 3 and not any(right > 0.85 for right in found):  # guessing gives 0.5
        found.append(learned(score, normalise))
    assert max(found) > 0.85, found


def learned(score: str, normalise: str) -> float:
    """The share of answers that are right after 400 steps."""
    own = {"location": {"max_length": N}, "cosine": {"learn_beta": True}}
    layer = Attention(N, N, 1, score=score, normalise=normalise, **own.get(score, {}))
    bridge = torch.nn.Linear(N, N)  # dot and its kin have nothing of their own to learn
    optimiser = torch.optim.Adam([*layer.parameters(), *bridge.parameters()], 0.03)
    for _ in range(400):
        query, keys, values, answer = lookup(64)
        loss = (layer(bridge(query), keys, values).context - answer).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    query, keys, values, answer = lookup(500)
    return float((layer(bridge(query), keys, values).context.sign() == answer).float().mean())


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_two_blocks_learn_to_copy_the_first_word(norm):
    torch.seed()
    embed, output = torch.nn.Embedding(5, 16), torch.nn.Linear(16, 5)
    blocks = torch.nn.ModuleList(TransformerBlock(16, heads=2, norm=norm, rotary=True) for _ in range(2))
    optimiser = torch.optim.Adam([*embed.parameters(), *blocks.parameters(), *output.parameters()], 5e-3)

    def forward(words):
        x = embed(words)
        for block in blocks:
            x = block(x, causal=True).output
        return output(x)

    for _ in range(300):
        words = torch.randint(5, (32, 7))
        loss = torch.nn.functional.cross_entropy(forward(words).flatten(0, 1), words[:, :1].expand(-1, 7).flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    words = torch.randint(5, (200, 7))
    assert (forward(words).argmax(-1) == words[:, :1]).float().mean() > 0.95  # guessing gives 0.2 plus the first
