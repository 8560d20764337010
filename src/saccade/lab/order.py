"""Who asks first: Bahdanau's previous state, or Luong's current one, with or without feeding its answer back."""

import time
from collections.abc import Sequence
from typing import Any

from saccade.lab.bench import Bench, Pairs
from saccade.lab.claim import Chart, Claim, Figure, Verdict, Words, above, every, values
from saccade.lab.scores import reverse

ARMS: dict[str, dict[str, Any]] = {
    "Bahdanau": {"family": "bahdanau"},
    "Luong, feeding": {"family": "luong", "feed": True},
    "Luong": {"family": "luong", "feed": False},
}
NEAR = 5.0  # points that count as the same quality


def measure(bench: Bench) -> list[Figure]:
    pairs = bench.made("reverse", reverse, bench.pick(20_000, 3_000))
    return [
        figure
        for seed in bench.seeds
        for arm in ARMS
        for figure in bench.once(f"order: {arm}, seed {seed}", run, bench, pairs, arm, seed)
    ]


def run(bench: Bench, pairs: Pairs, arm: str, seed: int) -> list[Figure]:
    steps = bench.steps(1000, 450)
    size = {"width": 64, "cell": "gru", "score": "general"} if pairs.toy else {}
    began = time.perf_counter()
    translator = bench.learn(pairs, {"model": {**ARMS[arm], **size}}, seed, steps)
    took = time.perf_counter() - began
    return [
        {
            "arm": arm,
            "seed": seed,
            "right": bench.right(translator, pairs.tests()),
            "milliseconds": 1e3 * took / steps,
        }
    ]


def judge(figures: Sequence[Figure]) -> Verdict:
    right = {arm: values(figures, "right", arm=arm) for arm in ARMS}
    took = {arm: values(figures, "milliseconds", arm=arm) for arm in ARMS}
    as_good = above([max(r) + NEAR for r in [right["Luong"]]], [sum(right["Bahdanau"]) / len(right["Bahdanau"])])
    return every(as_good, above(took["Bahdanau"], took["Luong"]))


CLAIM = Claim(
    "order",
    ("003",),
    Words("Bahdanau and Luong", "바다나우와 루옹"),
    Words(
        "Luong's order, in which the current state asks after the cell has run, is simpler: without input feeding "
        "nothing but the cell is sequential, so training is quicker, and quality is as good.",
        "현재 상태가 묻는 루옹의 순서가 더 단순하다. 입력 되먹임이 없으면 셀만 순차적이라 학습이 빠르고 품질은 비슷하다.",
    ),
    Words(
        "3 to 16 letters are to be reversed: three decoders with the same encoder, score (general), width and steps.",
        "글자 3–16개를 거꾸로 쓴다. 부호기, 점수 함수(general), 폭, 단계 수가 같은 세 복호기.",
    ),
    Words(
        f"Every run of Luong without feeding takes less time a step than every one of Bahdanau, and its best seed is at "
        f"most {NEAR:g} points below Bahdanau's mean.",
        f"되먹임 없는 루옹의 모든 시드가 바다나우의 모든 시드보다 단계당 시간이 짧고, 가장 나은 시드가 바다나우 평균보다 "
        f"{NEAR:g}점 넘게 낮지 않다.",
    ),
    7,
    (
        Chart("right", Words("symbols right, %", "맞은 기호, %")),
        Chart("milliseconds", Words("milliseconds a step", "단계당 밀리초")),
    ),
    measure,
    judge,
    pairs=True,
)
