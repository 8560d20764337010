"""Layer normalisation inside the cell against batch normalisation; residual connections as depth grows."""

import itertools
import random
from collections.abc import Sequence
from functools import partial

from saccade.data import Pair
from saccade.lab.bench import Bench, Pairs, letters
from saccade.lab.claim import Chart, Claim, Figure, Verdict, Words, above, every, values

ROWS, LAYERS = (1, 4, 32), (1, 3, 6)


LENGTHS = (3, 6, 10)  # from the shortest to the longest that are learned from


def copied(least: int, most: int, chance: random.Random) -> tuple[str, str]:
    row = " ".join(letters(chance, least, most))
    return row, row


def mixed(bench: Bench) -> Pairs:
    return bench.made("copied", partial(copied, LENGTHS[0], LENGTHS[-1]), bench.pick(20_000, 3_000))


def measure(bench: Bench) -> list[Figure]:
    cells = itertools.product(("layer", "batch"), bench.pick(ROWS, (1, 16)), bench.seeds)
    stacks = itertools.product(("residual", "no residual"), bench.pick(LAYERS, (1, 6)), bench.seeds)
    return bench.each(
        [
            *((f"norms: {norm}, {rows} rows, seed {s}", normalised, bench, norm, rows, s) for norm, rows, s in cells),
            *((f"norms: {arm}, {layers} layers, seed {s}", deep, bench, arm, layers, s) for arm, layers, s in stacks),
        ]
    )


def normalised(bench: Bench, norm: str, rows: int, seed: int) -> list[Figure]:
    model = {"family": "luong", "feed": False, "width": 48, "cell": "gru", "cell_norm": norm}
    train = {"batch_tokens": 16 * rows, "learning_rate": 4e-3 if rows > 1 else 2e-3}
    pairs, arm = mixed(bench), f"{norm} norm"
    translator = bench.learn(pairs, {"model": model, "train": train}, seed, bench.steps(600, 250))
    found = [{"arm": arm, "seed": seed, "rows": rows, "right": bench.right(translator, pairs.tests())}]
    for length in LENGTHS if rows > 1 else ():  # the longer, the fewer rows there are to tell of its last steps
        chance = random.Random(f"{length}")
        tests = [Pair(*copied(length, length, chance)) for _ in range(100)]
        by_length = bench.right(translator, tests)
        found.append({"arm": f"{arm}, {rows} rows", "seed": seed, "length": length, "by_length": by_length})
    return found


def deep(bench: Bench, arm: str, layers: int, seed: int) -> list[Figure]:
    model = {"family": "luong", "feed": False, "width": 48, "cell": "gru"}
    model |= {"layers": layers, "residual": arm == "residual"}
    pairs = mixed(bench)
    translator = bench.learn(pairs, {"model": model}, seed, bench.steps(300, 150))
    return [{"arm": arm, "seed": seed, "layers": layers, "deep_right": bench.right(translator, pairs.tests())}]


def judge(figures: Sequence[Figure]) -> Verdict:
    deepest = max(f["layers"] for f in figures if "layers" in f)
    return every(
        above(values(figures, "right", arm="layer norm", rows=1), values(figures, "right", arm="batch norm", rows=1)),
        above(
            values(figures, "deep_right", arm="residual", layers=deepest),
            values(figures, "deep_right", arm="no residual", layers=deepest),
        ),
    )


CLAIM = Claim(
    "norms",
    ("002",),
    Words("Normalisation and residual connections", "정규화와 잔차 연결"),
    Words(
        "Batch normalisation in a recurrent cell needs statistics of every step and large batches; layer normalisation "
        "needs neither. Residual connections let deep stacks learn.",
        "순환 셀의 배치 정규화는 단계마다 통계가 필요하고 배치가 커야 한다. 층 정규화는 그렇지 않다. 잔차 연결이 있으면 깊게 쌓아도 "
        "배운다.",
    ),
    Words(
        "3 to 10 letters are to be copied (Luong, GRU, width 48). Norms inside the cell, with batches of 16, 64 and 512 "
        "tokens, about 1, 4 and 32 rows of different lengths, the same number of steps, half the rate for the smallest; 1, 3 "
        "and 6 layers with and without residual connections.",
        "글자 3–10개를 옮겨 쓴다(루옹, GRU, 폭 48). 셀 안의 정규화를 배치 16, 64, 512토큰(길이가 다른 약 1, 4, 32줄)에서, 단계 수는 같고 "
        "가장 작은 배치만 학습률 절반, 그리고 1, 3, 6층을 잔차 연결 유무로 비교.",
    ),
    Words(
        "With batches of one row every seed of layer normalisation is above every seed of batch normalisation; at the "
        "greatest depth every seed with residual connections is above every seed without. Length by length it is shown, not "
        "judged.",
        "한 줄짜리 배치에서 층 정규화의 모든 시드가 배치 정규화의 모든 시드보다 높고, 가장 깊은 곳에서 잔차 연결이 있는 모든 시드가 "
        "없는 모든 시드보다 높다. 길이별로는 보여 주기만 한다.",
    ),
    7,
    (
        Chart(
            "right",
            Words("symbols right, %", "맞은 기호, %"),
            "rows",
            Words("rows in a batch, about", "배치의 줄 수, 대략"),
            log=True,
        ),
        Chart(
            "by_length",
            Words("symbols right, %, of rows of one length", "길이가 같은 줄에서 맞은 기호, %"),
            "length",
            Words("length of the source", "원문의 길이"),
        ),
        Chart("deep_right", Words("symbols right, %", "맞은 기호, %"), "layers", Words("layers", "층의 수")),
    ),
    measure,
    judge,
)
