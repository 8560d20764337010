"""A bridge between two domains; and why what asks and what is asked need maps of their own."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade.attention import Attention
from saccade.lab.bench import Bench
from saccade.lab.claim import Chart, Claim, Figure, Verdict, Words, above, every, values

WIDTH, WORDS, CLEAR = 16, 24, 5.0


def measure(bench: Bench) -> list[Figure]:
    steps = bench.steps(400, 300)
    return [
        figure
        for seed in bench.seeds
        for figure in bench.once(
            f"bridge: seed {seed}", lambda seed: [*languages(seed, steps), *repelled(seed, steps)], seed
        )
    ]


def languages(seed: int, steps: int) -> list[Figure]:
    """Words of one language ask for the same words of another, whose space is turned: with and without a W between."""
    torch.manual_seed(seed)
    turn = torch.linalg.qr(torch.randn(WIDTH, WIDTH)).Q
    found = []
    for arm, layer in (("dot", Attention(WIDTH, score="dot")), ("general", Attention(WIDTH, score="general"))):
        scale = nn.Parameter(torch.tensor(1.0))  # even a dot product may learn how sharply to look

        def ask(layer: Attention = layer, scale: Tensor = scale) -> tuple[Tensor, Tensor]:
            meaning = torch.randn(8, WORDS, WIDTH)
            keys = meaning[:, order := torch.randperm(WORDS)] @ turn  # [B, N, D]
            glance = layer(CLEAR * scale * F.normalize(meaning, dim=-1), keys, need_weights=True)
            assert glance.weights is not None
            return glance.weights[:, 0], order.argsort().expand(8, -1)  # [B, M, N], [B, M]

        found.append({"arm": arm, "seed": seed, "right": _learn(ask, [*layer.parameters(), scale], steps)})
    return found


def repelled(seed: int, steps: int) -> list[Figure]:
    """Every word asks for its opposite. With one map for both, a word fits itself best, whatever is learned."""
    found = []
    for arm in ("W_Q = W_K", "W_Q ≠ W_K"):
        torch.manual_seed(seed)
        queries = nn.Linear(WIDTH, WIDTH, bias=False)
        keys = queries if arm == "W_Q = W_K" else nn.Linear(WIDTH, WIDTH, bias=False)
        layer = Attention(WIDTH, score="dot")

        def ask(
            layer: Attention = layer, queries: nn.Linear = queries, keys: nn.Linear = keys
        ) -> tuple[Tensor, Tensor]:
            half = F.normalize(torch.randn(8, WORDS // 2, WIDTH), dim=-1) * CLEAR
            words = torch.cat([half, -half], 1)  # [B, N, D]
            glance = layer(queries(words), keys(words), need_weights=True)
            assert glance.weights is not None
            return glance.weights[:, 0], torch.arange(WORDS).roll(WORDS // 2).expand(8, -1)

        right = _learn(ask, [*queries.parameters(), *keys.parameters()], steps)
        found.append({"arm": arm, "seed": seed, "right": right})
    return found


def _learn(ask, parameters: Sequence[Tensor], steps: int) -> float:  # type: ignore[no-untyped-def]
    """Percent of the words that look at the right one, after learning to."""
    optimiser = torch.optim.AdamW(list(dict.fromkeys(parameters)), 0.01)
    for _ in range(steps):
        weights, wanted = ask()
        loss = -weights.gather(-1, wanted.unsqueeze(-1)).clamp(min=1e-9).log().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    with torch.no_grad():
        weights, wanted = ask()
    return 100 * float((weights.argmax(-1) == wanted).float().mean())


def judge(figures: Sequence[Figure]) -> Verdict:
    right = {arm: values(figures, "right", arm=arm) for arm in ("dot", "general", "W_Q = W_K", "W_Q ≠ W_K")}
    return every(above(right["general"], right["dot"], by=30), above(right["W_Q ≠ W_K"], right["W_Q = W_K"], by=30))


CLAIM = Claim(
    "bridge",
    ("003", "004"),
    Words("A bridge between domains", "두 영역 사이의 다리"),
    Words(
        "States of two languages lie in different spaces, so a linear map between them must come before the dot "
        "product. And where likeness should repel, queries and keys need maps of their own.",
        "두 언어의 상태는 서로 다른 공간에 있으므로 내적 전에 선형 변환이라는 다리가 필요하다. 닮은 것끼리 밀어내야 할 때는 질의와 "
        "키의 변환이 서로 달라야 한다.",
    ),
    Words(
        "24 random words ask for themselves among keys in a rotated space, by dot and by general; 24 words ask "
        "for their opposites, with one map for queries and keys and with two. 400 steps each.",
        "무작위 단어 24개가 회전된 공간의 키에서 자기 자신을 찾는다(dot과 general). 단어 24개가 자기의 반대를 찾는다(변환 하나와 둘). "
        "각 400단계.",
    ),
    Words(
        "With the map every seed is more than 30 points above every seed without; so is every seed with two maps above "
        "every seed with one.",
        "변환이 있는 모든 시드가 없는 모든 시드보다, 변환이 둘인 모든 시드가 하나인 모든 시드보다 30점 넘게 높다.",
    ),
    0.5,
    (Chart("right", Words("words that look at the right one, %", "맞는 곳을 본 단어, %")),),
    measure,
    judge,
)
