"""Without positions, self-attention sees a bag of words."""

import itertools
from collections.abc import Sequence

import torch

from saccade.attention import TransformerBlock
from saccade.lab.bench import Bench
from saccade.lab.claim import Chart, Claim, Figure, Verdict, Words, above, every, values
from saccade.lab.scores import reverse

ARMS = ("none", "sinusoidal", "learned", "rotary")
COSTS = 30.0  # points


def measure(bench: Bench) -> list[Figure]:
    each = itertools.product(bench.pick(ARMS, ("none", "sinusoidal")), bench.seeds)
    found = bench.each([(f"positions: {arm}, seed {seed}", run, bench, arm, seed) for arm, seed in each])
    return [
        *found,
        *(f for seed in bench.seeds for f in bench.once(f"positions: permuted, seed {seed}", permuted, seed)),
    ]


def run(bench: Bench, arm: str, seed: int) -> list[Figure]:
    pairs = bench.made("reverse", reverse, bench.pick(20_000, 3_000))
    model = {"family": "transformer", "width": 64, "layers": 2, "heads": 4, "hidden": 128, "positions": arm}
    translator = bench.learn(pairs, {"model": model, "train": {"learning_rate": 2e-3}}, seed, bench.steps(1200, 400))
    return [{"arm": arm, "seed": seed, "right": bench.right(translator, pairs.tests())}]


def permuted(seed: int) -> list[Figure]:
    """How far a block's output for permuted words is from its permuted output."""
    torch.manual_seed(seed)
    block, words, order = TransformerBlock(32).double().eval(), torch.randn(9, 32).double(), torch.randperm(9)
    away = (block(words[order]).output - block(words).output[order]).abs().max()
    return [{"arm": "permuted", "seed": seed, "away": float(away.detach())}]


def judge(figures: Sequence[Figure]) -> Verdict:
    blind = values(figures, "right", arm="none")
    knowing = {f["arm"] for f in figures if "right" in f} - {"none"}
    return every(
        above([1e-10], values(figures, "away")),
        *(above(values(figures, "right", arm=arm), blind, by=COSTS) for arm in knowing),
    )


CLAIM = Claim(
    "positions",
    ("000", "002"),
    Words("Positions", "위치"),
    Words(
        "Self-attention by itself does not know the order of its words: permute them, and its answers are permuted, no "
        "more. So positions have to be put in.",
        "셀프 어텐션은 단어의 순서를 모른다. 입력을 뒤섞으면 출력도 똑같이 뒤섞일 뿐이다. 그래서 위치를 넣어 주어야 한다.",
    ),
    Words(
        "Letters are to be reversed by a Transformer of two layers, with three kinds of positions and with none. Beside "
        "it, in double precision: a block's output for permuted words against its permuted output.",
        "2층 트랜스포머가 글자를 거꾸로 쓴다. 위치 표현 세 가지와 위치 없음. 그 옆에, 배정밀도로 뒤섞은 입력의 출력과 출력을 뒤섞은 "
        "것을 비교한다.",
    ),
    Words(
        f"The two outputs differ by less than 1e-10, and with every kind of positions every seed is more than {COSTS:g} "
        "points above every seed without.",
        f"두 출력의 차이가 1e-10보다 작고, 어느 위치 표현이든 모든 시드가 위치 없는 모든 시드보다 {COSTS:g}점 넘게 높다.",
    ),
    9,
    (
        Chart("right", Words("symbols right, %", "맞은 기호, %")),
        Chart("away", Words("difference of the two outputs", "두 출력의 차이")),
    ),
    measure,
    judge,
)
