"""Why divide by √d: without it the softmax saturates, and its gradient is gone."""

import math
from collections.abc import Sequence

import torch

import saccade
from saccade.lab.bench import Bench
from saccade.lab.claim import Chart, Claim, Figure, Verdict, Words, above, every, values

WIDTHS = (4, 16, 64, 256, 1024)
KEYS, QUERIES = 32, 200
ARMS = ("dot", "scaled_dot")


def measure(bench: Bench) -> list[Figure]:
    return [figure for seed in range(5) for figure in bench.once(f"scaling: seed {seed}", run, seed)]


def run(seed: int) -> list[Figure]:
    chance = torch.Generator().manual_seed(seed)
    found = []
    for width in WIDTHS:
        query, keys = (torch.randn(QUERIES, n, width, generator=chance) for n in (1, KEYS))  # [Q, 1, D], [Q, N, D]
        values_ = torch.randn(QUERIES, KEYS, 1, generator=chance)  # [Q, N, 1]
        for arm in ARMS:
            added = torch.zeros(QUERIES, 1, KEYS, requires_grad=True)  # to the scores, so its gradient is theirs
            glance = saccade.attend(query, keys, values_, score=arm, mask=added, need_weights=True)
            assert glance.weights is not None
            (slope,) = torch.autograd.grad(glance.context.sum(), added)  # [Q, 1, N]
            entropy = float(torch.special.entr(glance.weights.detach()).sum(-1).mean()) / math.log(KEYS)
            measured = {"entropy": 100 * entropy, "gradient": float(slope.norm(dim=-1).mean())}
            found.append({"arm": arm, "seed": seed, "width": width, **measured})
    return found


def judge(figures: Sequence[Figure]) -> Verdict:
    slopes = {arm: [values(figures, "gradient", arm=arm, width=w) for w in (WIDTHS[0], WIDTHS[-1])] for arm in ARMS}
    kept = {arm: [b / a for a, b in zip(*both, strict=True)] for arm, both in slopes.items()}
    return every(above([0.5], kept["dot"]), above(kept["scaled_dot"], [0.7]), above([1.4], kept["scaled_dot"]))


CLAIM = Claim(
    "scaling",
    ("000",),
    Words("Why divide by √d", "왜 √d로 나누는가"),
    Words(
        "Dot products of wide vectors are large, so their softmax looks at one place alone and passes on hardly any "
        "gradient. Divided by √d they stay as they are, however wide.",
        "벡터가 넓어지면 내적이 커져 소프트맥스가 한 곳만 보게 되고 기울기가 거의 사라진다. √d로 나누면 폭과 상관없이 유지된다.",
    ),
    Words(
        f"Random queries and {KEYS} random keys of width 4 to 1024, 5 seeds: the entropy of the weights, as a share of "
        "the largest possible, and the length of the gradient at the scores.",
        f"폭 4–1024의 무작위 질의와 키 {KEYS}개, 시드 5개: 가중치의 엔트로피(최댓값 대비)와 점수에 대한 기울기의 크기.",
    ),
    Words(
        "From width 4 to 1024 the gradient falls below a half without the division, and stays within 0.7 to 1.4 times "
        "with it, for every seed.",
        "폭 4에서 1024까지 모든 시드에서, 나누지 않으면 기울기가 절반 아래로 줄고, 나누면 0.7–1.4배 안에 머문다.",
    ),
    0.1,
    (
        Chart(
            "gradient",
            Words("gradient at the scores", "점수에 대한 기울기"),
            "width",
            Words("width", "폭"),
            log=True,
        ),
        Chart(
            "entropy",
            Words("entropy, % of the largest", "엔트로피, 최댓값의 %"),
            "width",
            Words("width", "폭"),
            log=True,
        ),
    ),
    measure,
    judge,
    fixed=True,
)
