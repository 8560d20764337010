"""Seven ways to compare a query with a key: each can learn where to look; they differ in what they cost."""

import itertools
import random
import time
from collections.abc import Sequence

import torch
from torch import Tensor

from saccade.attention import Attention
from saccade.attention.scores import SCORES
from saccade.lab.bench import Bench, Pairs, letters
from saccade.lab.claim import Chart, Claim, Figure, Verdict, Words, above, every, values

NONE = "none"
SHAPE = (8, 40, 40, 64)  # batch, queries, keys, width for time and memory


def reverse(chance: random.Random) -> tuple[str, str]:
    row = letters(chance, 3, 16)
    return " ".join(row), " ".join(row[::-1])


def measure(bench: Bench) -> list[Figure]:
    pairs = bench.made("reverse", reverse, bench.pick(20_000, 3_000))
    bench = bench.among((len(SCORES) + 1) * len(bench.seeds))
    each = itertools.product((*SCORES, NONE), bench.seeds)
    found = bench.each([(f"scores: {arm}, seed {seed}", run, bench, pairs, arm, seed) for arm, seed in each])
    return [*found, *(f for seed in bench.seeds for f in bench.once(f"scores: cost, round {seed}", costs, seed))]


def run(bench: Bench, pairs: Pairs, arm: str, seed: int) -> list[Figure]:
    model = {"family": "seq2seq"} if arm == NONE else {"family": "bahdanau", "score": arm}
    size = {"width": 64, "cell": "gru"} if pairs.toy else {}
    translator = bench.learn(pairs, {"model": {**model, **size}}, seed, bench.steps(700, 250))
    return [{"arm": arm, "seed": seed, "right": bench.right(translator, pairs.tests())}]


def costs(seed: int) -> list[Figure]:
    """Milliseconds of a look and its gradient, the best of five, and megabytes that are kept for the gradient."""
    return [{"arm": score, "seed": seed, **cost(score)} for score in SCORES]


def cost(score: str) -> dict[str, float]:
    batch, queries, keys, width = SHAPE
    layer = Attention(width, score=score, max_length=keys if score == "location" else None)
    query, memory = torch.randn(batch, queries, width), torch.randn(batch, keys, width, requires_grad=True)
    kept = 0

    def keep(tensor: Tensor) -> Tensor:
        nonlocal kept
        kept += tensor.numel() * tensor.element_size()
        return tensor

    times = []
    for _ in range(5):
        kept, began = 0, time.perf_counter()
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            torch.autograd.backward(layer(query, memory).context.sum())
        times.append(time.perf_counter() - began)
    return {"milliseconds": 1e3 * min(times), "megabytes": kept / 1e6}


def judge(figures: Sequence[Figure]) -> Verdict:
    blind = values(figures, "right", arm=NONE)
    return every(*(above(values(figures, "right", arm=score), blind) for score in SCORES))


CLAIM = Claim(
    "scores",
    ("000", "001", "003"),
    Words("Seven score functions", "일곱 가지 점수 함수"),
    Words(
        "Attention can compare query and key in many ways (dot, scaled, general, additive, concat, by angle, by place "
        "alone); with each of them a model learns where to look.",
        "질의와 키를 비교하는 방법은 여럿이다(내적, 축척 내적, general, 가산, concat, 각도, 위치). 어느 것으로도 어디를 볼지 배운다.",
    ),
    Words(
        "3 to 16 letters are to be reversed: the same Bahdanau decoder with each score and, beside them, one without "
        "attention; same width, same steps. Time and memory of a look and its gradient are those of the layer alone. The "
        "cosine lies between −1 and 1 and has no scale to learn here, so its softmax cannot look at one place alone.",
        "글자 3–16개를 거꾸로 쓴다. 같은 바다나우 복호기에 점수 함수만 바꾸고, 어텐션이 없는 모형을 곁에 둔다. 폭과 단계 수는 "
        "같다. 시간과 메모리는 층 하나의 것이다. 코사인은 −1과 1 사이에 있고 여기서는 배울 배율이 없어 한 곳만 볼 수 없다.",
    ),
    Words(
        "With every score every seed is above every seed without attention. Time and memory are shown, not judged.",
        "모든 점수 함수에서 모든 시드가 어텐션이 없는 모든 시드보다 높다. 시간과 메모리는 보여 주기만 한다.",
    ),
    7,
    (
        Chart("right", Words("symbols right, %", "맞은 기호, %")),
        Chart("milliseconds", Words("milliseconds", "밀리초")),
        Chart("megabytes", Words("megabytes kept for the gradient", "기울기를 위해 남기는 MB")),
    ),
    measure,
    judge,
    pairs=True,
)
