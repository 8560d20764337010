"""What several heads buy: two looks at once, kept apart."""

import itertools
import random
from collections.abc import Sequence

from saccade.lab.bench import Bench, Pairs, Settings, letters
from saccade.lab.claim import Chart, Claim, Figure, Verdict, Words, above, values

HEADS = (1, 2, 4, 8)
KINDS = 4  # letters


def mirrored(chance: random.Random) -> tuple[str, str]:
    """Each letter joined to the one that stands as far from the other end: a b c → ac bb ca."""
    row = letters(chance, 2, 8, KINDS)
    return " ".join(row), " ".join(a + b for a, b in zip(row, row[::-1], strict=True))


def measure(bench: Bench) -> list[Figure]:
    pairs = bench.made("mirrored", mirrored, bench.pick(20_000, 3_000))
    several = bench.pick(HEADS, (1, 4))
    each, bench = itertools.product(several, bench.seeds), bench.among(len(several) * len(bench.seeds))
    return bench.each([(f"heads: {heads}, seed {seed}", run, bench, pairs, heads, seed) for heads, seed in each])


def run(bench: Bench, pairs: Pairs, heads: int, seed: int) -> list[Figure]:
    settings: Settings = {"model": {"family": "transformer", "heads": heads}}
    if pairs.toy:
        settings["model"] |= {"width": 32, "layers": 1, "hidden": 64}
        settings["train"] = {"learning_rate": 3e-3}
    translator = bench.learn(pairs, settings, seed, bench.steps(1500, 600))
    return [{"arm": f"{heads}", "seed": seed, "heads": heads, "right": bench.right(translator, pairs.tests())}]


def judge(figures: Sequence[Figure]) -> Verdict:
    return above(values(figures, "right", heads=4), values(figures, "right", heads=1))


CLAIM = Claim(
    "heads",
    ("003",),
    Words("Several heads", "여러 개의 헤드"),
    Words(
        "Several heads at the same width look at several places at once and keep apart what they saw there.",
        "폭이 같을 때 헤드가 여럿이면 여러 곳을 동시에 보고 본 것을 섞지 않는다.",
    ),
    Words(
        "Each letter is to be written together with its mirror image in the row, so every word needs two looks. A "
        "Transformer of one layer and width 32, with 1 to 8 heads.",
        "글자마다 줄에서 거울상 자리에 있는 글자와 함께 쓴다. 단어마다 두 곳을 보아야 한다. 1층, 폭 32, 헤드 1–8개의 트랜스포머.",
    ),
    Words("Every seed with 4 heads is above every seed with one.", "헤드 4개의 모든 시드가 1개의 모든 시드보다 높다."),
    5,
    (Chart("right", Words("words right, %, by heads", "헤드의 수에 따라 맞은 단어, %")),),
    measure,
    judge,
    pairs=True,
)
