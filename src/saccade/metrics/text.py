"""BLEU, chrF and TER, by sacrebleu, with the signatures that make them comparable."""

from collections.abc import Sequence
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


METRICS = {"bleu": BLEU, "chrf": CHRF, "ter": TER}


def text_scores(
    outputs: Sequence[str], references: Sequence[Sequence[str]], only: Sequence[str] = tuple(METRICS)
) -> dict[str, Scored]:
    """Corpus BLEU, chrF and TER; each output may have its own number of references.

    >>> text_scores(["a small house"], [["a small house"]])["chrf"].score
    100.0
    """
    most = max(map(len, references), default=1)
    streams: list[Any] = [[r[i] if i < len(r) else None for r in references] for i in range(most)]
    found = {}
    for name in only:
        metric = METRICS[name]()
        score = metric.corpus_score(list(outputs), streams).score if outputs else 0.0
        signature = str(metric.get_signature()) if outputs else ""
        found[name] = Scored(float(score), signature)
    return found


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
