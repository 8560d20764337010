"""What a training step costs as sentences grow: a recurrent decoder goes word by word, a Transformer all at once."""

import os
import statistics
import time
from collections.abc import Sequence
from typing import Any

import torch

from saccade.config import ModelConfig
from saccade.lab.bench import Bench
from saccade.lab.claim import Chart, Claim, Figure, Verdict, Words, above, every, values
from saccade.model import Model, build

LENGTHS, TOKENS, SYMBOLS, WIDTH = (8, 16, 32, 64, 128, 256), 2048, 100, 128
ARMS: dict[str, dict[str, Any]] = {
    "Bahdanau": {"family": "bahdanau", "cell": "gru", "score": "additive"},
    "Luong": {"family": "luong", "cell": "gru", "feed": False},
    "Transformer": {"family": "transformer", "layers": 2, "heads": 4, "hidden": 256},
}


def measure(bench: Bench) -> list[Figure]:
    lengths, repeats = bench.pick(LENGTHS, (8, 64)), bench.pick(5, 3)
    before = torch.get_num_threads()
    torch.set_num_threads(
        bench.pick(os.cpu_count() or 1, 1)
    )  # what can be done all at once shall be: that is the claim
    try:
        return [f for seed in bench.seeds for f in bench.once(f"cost: round {seed}", run, lengths, repeats, seed)]
    finally:
        torch.set_num_threads(before)


def run(lengths: Sequence[int], repeats: int, seed: int) -> list[Figure]:
    """Microseconds for each word of the target, forward and backward; the arms take turns."""
    torch.manual_seed(seed)
    models = {
        arm: build(ModelConfig.model_validate({"width": WIDTH, **given}), SYMBOLS, SYMBOLS)
        for arm, given in ARMS.items()
    }
    found = []
    for length in lengths:
        words = torch.randint(4, SYMBOLS, (max(1, TOKENS // length), length))
        times: dict[str, list[float]] = {arm: [] for arm in models}
        for _ in range(repeats + 1):
            for arm, model in models.items():
                times[arm].append(step(model, words))
        for arm, taken in times.items():
            each = 1e6 * statistics.median(taken[1:]) / words.numel()  # the first warms up
            found.append({"arm": arm, "seed": seed, "length": length, "microseconds": each})
    return found


def step(model: Model, words: torch.Tensor) -> float:
    began = time.perf_counter()
    everywhere = torch.ones_like(words, dtype=torch.bool)
    model.zero_grad()
    (model(words, everywhere, words, words, everywhere) / words.numel()).backward()
    return time.perf_counter() - began


def judge(figures: Sequence[Figure]) -> Verdict:
    far = max(f["length"] for f in figures)
    transformer = values(figures, "microseconds", arm="Transformer", length=far)
    recurrent = ("Bahdanau", "Luong")
    return every(*(above(values(figures, "microseconds", arm=arm, length=far), transformer) for arm in recurrent))


CLAIM = Claim(
    "cost",
    ("002",),
    Words("The cost of going word by word", "한 단어씩 가는 값"),
    Words(
        "Recurrent attention computes one word after the other; a Transformer computes all words of a training step at "
        "once and is quicker, above all for long sentences.",
        "순환 어텐션은 단어를 하나씩 계산한다. 트랜스포머는 학습 단계의 모든 단어를 한꺼번에 계산하므로, 특히 긴 문장에서 더 빠르다.",
    ),
    Words(
        f"Forward and backward of about {TOKENS} words at a time, width {WIDTH}, 8 to 256 words a sentence; medians of "
        "five, the arms taking turns, three rounds, on all cores. In Bahdanau's decoder everything waits for the word before; in Luong's "
        "without feeding only the cell does, and that is one operation of the library.",
        f"한 번에 약 {TOKENS}단어의 순전파와 역전파, 폭 {WIDTH}, 문장당 8–256단어. 모든 코어로 번갈아 잰 다섯 번의 중앙값, 세 차례. "
        "바다나우의 복호기에서는 모두가 앞 단어를 기다리지만, 되먹임 없는 루옹에서는 셀만 기다리고 셀은 연산 하나다.",
    ),
    Words(
        "At the longest length every round of the Transformer takes less time a word than every round of Bahdanau, and of "
        "Luong.",
        "가장 긴 길이에서 트랜스포머의 모든 측정이 바다나우와 루옹의 모든 측정보다 단어당 시간이 짧다.",
    ),
    2,
    (
        Chart(
            "microseconds",
            Words("microseconds for a word", "단어당 마이크로초"),
            "length",
            Words("words in a sentence", "문장의 단어 수"),
            log=True,
        ),
    ),
    measure,
    judge,
    tried=Words(
        "Against Bahdanau's decoder it holds for long sentences, against Luong's without feeding at no length: on a "
        "processor with few cores, one operation that runs word by word inside the library costs less than two layers that "
        "do all words at once. The first version of the rule asked of Bahdanau alone.",
        "긴 문장에서 바다나우에 대해서는 성립하지만, 되먹임 없는 루옹에 대해서는 어느 길이에서도 성립하지 않는다. 코어가 적은 "
        "프로세서에서는 라이브러리 안에서 단어마다 도는 연산 하나가 모든 단어를 한꺼번에 하는 두 층보다 싸다. 규칙의 첫 판은 바다나우만 "
        "물었다.",
    ),
    fixed=True,
)
