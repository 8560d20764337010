"""Is the picture true? Links read from attention, against those that the task itself knows."""

import random
from collections.abc import Sequence

import numpy as np

from saccade.lab.bench import Bench, letters
from saccade.lab.claim import Chart, Claim, Figure, Verdict, Words, above, every, values
from saccade.metrics import Gold, agreement, entropy

ARTICLE = "the"  # stands before every third word, and matches nothing in particular
ERROR = 15.0  # percent


def turned(chance: random.Random) -> tuple[str, str]:
    """Letters, from the last to the first, in capitals; an article before every third of them."""
    row = letters(chance, 3, 12)
    return " ".join(row), " ".join(word for word, _ in _written(row))


def _written(row: list[str]) -> list[tuple[str, int | None]]:
    """Each word that is to be written, and which letter it comes from."""
    found: list[tuple[str, int | None]] = []
    for j, i in enumerate(reversed(range(len(row)))):
        found += [(ARTICLE, None)] if j % 3 == 0 else []
        found.append((row[i].upper(), i))
    return found


def measure(bench: Bench) -> list[Figure]:
    return bench.each([(f"alignment: seed {seed}", run, bench, seed) for seed in bench.seeds])


def run(bench: Bench, seed: int) -> list[Figure]:
    pairs = bench.made("turned", turned, bench.pick(20_000, 3_000))
    model = {"family": "bahdanau", "score": "additive", "width": 64, "cell": "gru"}
    translator = bench.learn(pairs, {"model": model}, seed, bench.steps(800, 400))
    tests = pairs.tests()
    predictions = translator.score_all([(p.source, p.target) for p in tests])
    written = [_written(p.source.split()) for p in tests]
    gold = [{(i, j) for j, (_, i) in enumerate(words) if i is not None} for words in written]
    drawn = [
        {(i, j) for i, j in p.alignment if words[j][1] is not None}
        for p, words in zip(predictions, written, strict=True)
    ]
    agreed = agreement(drawn, [Gold(frozenset(links), frozenset(links)) for links in gold])
    scattered: dict[str, list[float]] = {"article": [], "letters": []}
    for p, words in zip(predictions, written, strict=True):
        assert p.weights is not None
        for (word, _), value in zip(words, entropy(p.weights).tolist(), strict=False):
            scattered["article" if word == ARTICLE else "letters"].append(value)
    return [
        {"arm": "article", "seed": seed, "entropy": float(np.mean(scattered["article"]))},
        {"arm": "letters", "seed": seed, "entropy": float(np.mean(scattered["letters"])), "aer": agreed.aer},
    ]


def judge(figures: Sequence[Figure]) -> Verdict:
    return every(
        above([ERROR], values(figures, "aer", arm="letters")),
        above(values(figures, "entropy", arm="article"), values(figures, "entropy", arm="letters")),
    )


CLAIM = Claim(
    "alignment",
    ("000", "002"),
    Words("Is the alignment true?", "정렬 그림은 참인가"),
    Words(
        "The weights of attention show which source word each word came from. A word such as 'a', which matches nothing "
        "in particular, has scattered weights.",
        "어텐션 가중치는 각 단어가 원문의 어느 단어에서 왔는지 보여 준다. 'a'처럼 짝이 없는 단어의 가중치는 흩어진다.",
    ),
    Words(
        "Letters are to be written from the last to the first, in capitals, with an article before every third; nobody "
        "tells the model the true links. Links by argmax of forced decoding on 200 unseen rows; entropy in nats.",
        "글자를 끝에서 처음으로, 대문자로, 세 글자마다 관사를 붙여 쓴다. 참된 연결은 알려 주지 않는다. 처음 보는 200줄에서 강제 "
        "복호의 최댓값으로 연결을 읽는다. 엔트로피는 nat.",
    ),
    Words(
        f"For every seed the alignment error rate of letters is below {ERROR:g}%, and the articles of every seed are more "
        "scattered than the letters of every seed.",
        f"모든 시드에서 글자의 정렬 오류율(AER)이 {ERROR:g}%보다 낮고, 관사의 엔트로피가 글자의 것보다 높다.",
    ),
    2,
    (
        Chart("entropy", Words("mean entropy, nats", "평균 엔트로피, nat")),
        Chart("aer", Words("alignment error rate of letters, %", "글자의 AER, %")),
    ),
    measure,
    judge,
)
