"""Who asks first: Bahdanau's previous state, or Luong's current one, with or without feeding its answer back."""

import itertools
import statistics
from collections.abc import Sequence
from typing import Any

import torch

from saccade.config import ModelConfig
from saccade.lab.bench import Bench, Pairs
from saccade.lab.claim import Chart, Claim, Figure, Verdict, Words, above, every, values
from saccade.lab.cost import step
from saccade.lab.scores import reverse
from saccade.model import build

ARMS: dict[str, dict[str, Any]] = {
    "Bahdanau": {"family": "bahdanau"},
    "Luong, feeding": {"family": "luong", "feed": True},
    "Luong": {"family": "luong", "feed": False},
}
ROUNDS = 15
NEAR = 5.0  # points that count as the same quality


def measure(bench: Bench) -> list[Figure]:
    pairs = bench.made("reverse", reverse, bench.pick(20_000, 3_000))
    bench = bench.among(len(ARMS) * len(bench.seeds))
    each = itertools.product(ARMS, bench.seeds)
    found = bench.each([(f"order: {arm}, seed {seed}", run, bench, pairs, arm, seed) for arm, seed in each])
    return [*found, *(f for seed in bench.seeds for f in bench.once(f"order: time, round {seed}", timed, seed))]


def run(bench: Bench, pairs: Pairs, arm: str, seed: int) -> list[Figure]:
    size = {"width": 64, "cell": "gru", "score": "general"} if pairs.toy else {}
    translator = bench.learn(pairs, {"model": {**ARMS[arm], **size}}, seed, bench.steps(1000, 450))
    return [{"arm": arm, "seed": seed, "right": bench.right(translator, pairs.tests())}]


def timed(seed: int) -> list[Figure]:
    """Milliseconds of a step, forward and backward; the arms take turns, so that a busy machine is busy for all."""
    torch.manual_seed(seed)
    size = {"width": 64, "cell": "gru", "score": "general"}
    models = {arm: build(ModelConfig.model_validate({**given, **size}), 30, 30) for arm, given in ARMS.items()}
    words = torch.randint(4, 30, (90, 11))
    times: dict[str, list[float]] = {arm: [] for arm in ARMS}
    for _ in range(ROUNDS):
        for arm, model in models.items():
            times[arm].append(step(model, words))
    return [{"arm": arm, "seed": seed, "milliseconds": 1e3 * statistics.median(t)} for arm, t in times.items()]


def judge(figures: Sequence[Figure]) -> Verdict:
    right = {arm: values(figures, "right", arm=arm) for arm in ARMS}
    took = {arm: values(figures, "milliseconds", arm=arm) for arm in ARMS}
    as_good = above([r + NEAR for r in right["Luong"]], [statistics.mean(right["Bahdanau"])])
    return every(as_good, above(took["Bahdanau"], took["Luong"]))


CLAIM = Claim(
    "order",
    ("003",),
    Words("Bahdanau and Luong", "바다나우와 루옹"),
    Words(
        "The notes tell the two orders apart; this is what follows from them. Where the current state asks, after the cell has "
        "run (Luong), nothing but the cell is sequential, unless its answer is fed back: training is quicker than where the "
        "previous state asks first (Bahdanau), and quality is as good.",
        "노트는 두 순서를 구별할 뿐이고, 이것은 거기서 따라 나오는 것이다. 셀이 돈 뒤 현재 상태가 물으면(루옹) 답을 되먹이지 않는 한 셀만 "
        "순차적이라, 이전 상태가 먼저 묻는 것(바다나우)보다 학습이 빠르고 품질은 비슷하다.",
    ),
    Words(
        "3 to 16 letters are to be reversed: three decoders with the same encoder, score (general), width and steps. "
        "Time is that of a step, forward and backward: medians of 15, the decoders taking turns, three rounds.",
        "글자 3–16개를 거꾸로 쓴다. 부호기, 점수 함수(general), 폭, 단계 수가 같은 세 복호기. "
        "시간은 한 단계의 순전파와 역전파: 번갈아 잰 15번의 중앙값, 세 차례.",
    ),
    Words(
        f"Every round of Luong without feeding takes less time a step than every one of Bahdanau, and every seed of it "
        f"is less than {NEAR:g} points below Bahdanau's mean. Luong with feeding is shown, not judged.",
        f"되먹임 없는 루옹의 모든 측정이 바다나우의 모든 측정보다 단계당 시간이 짧고, 모든 시드가 바다나우 평균보다 낮아도 "
        f"{NEAR:g}점 미만이다. 되먹임 있는 루옹은 보여 주기만 한다.",
    ),
    6,
    (
        Chart("right", Words("symbols right, %", "맞은 기호, %")),
        Chart("milliseconds", Words("milliseconds a step", "단계당 밀리초")),
    ),
    measure,
    judge,
    pairs=True,
    tried=Words(
        "A first run took the time of whole trainings in place of steps in turns; beside other work that was within noise, "
        "so the measurement was changed, not the rule.",
        "첫 실행은 번갈아 잰 단계가 아니라 학습 전체의 시간을 쟀고, 다른 일 곁에서는 잡음 안이었다. 그래서 규칙이 아니라 측정을 바꾸었다.",
    ),
)
