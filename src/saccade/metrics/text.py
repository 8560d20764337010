"""BLEU, chrF and TER, by sacrebleu, with the signatures that make them comparable."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

BleuParts = NDArray[np.float64]  # [S, 10]: matches and totals of 1- to 4-grams, then the two lengths
ORDER = 4


class Scored(NamedTuple):
    """A figure and how it was computed."""

    score: float
    signature: str


METRICS: dict[str, Any] = {  # force: that a text ends in " ." is the data's affair, and no warning of ours
    "bleu": partial(BLEU, force=True),
    "chrf": CHRF,
    "ter": TER,
}


def text_scores(
    outputs: Sequence[str], references: Sequence[Sequence[str]], only: Sequence[str] = tuple(METRICS)
) -> dict[str, Scored]:
    """Corpus BLEU, chrF and TER; each output may have its own number of references.

    >>> text_scores(["a small house"], [["a small house"]])["chrf"].score
    100.0
    """
    found = {}
    for name in only:
        metric = METRICS[name]()
        score = metric.corpus_score(list(outputs), _streams(references)).score if outputs else 0.0
        signature = str(metric.get_signature()) if outputs else ""
        found[name] = Scored(float(score), signature)
    return found


def too_short(references: Iterable[str]) -> bool:
    """Whether no reference has the four words that BLEU's longest phrases need: it is 0 then, whatever was written, and
    chrF tells more.

    >>> too_short(["a red wall", "blue"])
    True
    """
    return not any(len(r.split()) >= ORDER for r in references)


def judged_by(spelt: bool, references: Iterable[str]) -> str:
    """The figure that says most of outputs: exact, where words are spelt; else BLEU or, of short texts, chrF.

    >>> judged_by(True, ["k a t"]), judged_by(False, ["a red wall"]), judged_by(False, ["a red wall and a blue one"])
    ('exact', 'chrf', 'bleu')
    """
    return "exact" if spelt else "chrf" if too_short(references) else "bleu"


class Parts(NamedTuple):
    """What each sentence adds to a score of the whole."""

    rows: NDArray[np.float64]  # [S, P]
    score: Callable[[NDArray[np.float64]], float]  # of their sum
    signature: str


def text_parts(name: str, outputs: Sequence[str], references: Sequence[Sequence[str]]) -> Parts:
    """chrF or TER from what each sentence adds, so that test sets can be drawn without counting anew.

    sacrebleu draws test sets by itself, but stumbles over sums of its own two kinds of numbers where some score is 0.
    """
    metric = METRICS[name]()

    def score(total: NDArray[np.float64]) -> float:
        return float(metric._compute_score_from_stats(total.tolist()).score)

    if not outputs:
        return Parts(np.zeros((0, 0)), lambda _: 0.0, "")
    rows = metric._extract_corpus_statistics(list(outputs), _streams(references))
    return Parts(np.array(rows, dtype=np.float64), score, str(metric.get_signature()))


def _streams(references: Sequence[Sequence[str]]) -> list[list[str | None]]:
    """As sacrebleu wants them: the first reference of each, the second of those that have one, and so on."""
    most = max(map(len, references), default=1)
    return [[r[i] if i < len(r) else None for r in references] for i in range(most)]


def bleu_parts(outputs: Sequence[str], references: Sequence[Sequence[str]]) -> BleuParts:
    """What each sentence adds to the BLEU of the whole."""
    metric = BLEU(effective_order=True)  # which changes the score of a sentence, not the counts that we take
    rows = []
    for output, known in zip(outputs, references, strict=True):
        found = metric.sentence_score(output, list(known))
        rows.append([*found.counts, *found.totals, found.sys_len, found.ref_len])
    return np.array(rows, dtype=np.float64).reshape(-1, 2 * ORDER + 2)


def bleu_of(total: NDArray[np.float64]) -> float:
    """BLEU from the sum of its parts."""
    counts = [int(x) for x in total]
    score = BLEU.compute_bleu(
        correct=counts[:ORDER],
        total=counts[ORDER : 2 * ORDER],
        sys_len=counts[-2],
        ref_len=counts[-1],
        smooth_method="exp",
    )
    return float(score.score)
