"""BLEU, chrF and TER, by sacrebleu, with the signatures that make them comparable."""

import json
from collections.abc import Sequence
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
    interval: tuple[float, float] | None = None  # where it would be with 95 of 100 test sets of the same kind


METRICS: dict[str, Any] = {  # force: that a text ends in " ." is the data's affair, and no warning of ours
    "bleu": partial(BLEU, force=True),
    "chrf": CHRF,
    "ter": TER,
}


def text_scores(
    outputs: Sequence[str],
    references: Sequence[Sequence[str]],
    only: Sequence[str] = tuple(METRICS),
    samples: int = 0,
) -> dict[str, Scored]:
    """Corpus BLEU, chrF and TER; each output may have its own number of references. With samples, also an interval.

    >>> text_scores(["a small house"], [["a small house"]])["chrf"].score
    100.0
    """
    most = max(map(len, references), default=1)
    streams: list[Any] = [[r[i] if i < len(r) else None for r in references] for i in range(most)]
    found = {}
    for name in only:
        metric = METRICS[name]()
        if not outputs:
            found[name] = Scored(0.0, "")
            continue
        drawn = samples if len(outputs) > 1 else 0
        told = metric.corpus_score(list(outputs), streams, n_bootstrap=drawn or 1)
        signature = str(metric.get_signature())
        found[name] = Scored(float(told.score), signature, _interval(told, signature) if drawn else None)
    return found


def _interval(told: Any, signature: str) -> tuple[float, float]:
    """From sacrebleu's own bootstrap, as it tells it in JSON."""
    record = json.loads(told.format(width=4, is_json=True, signature=signature))
    mean, half = record.get("confidence_mean", told.score), record.get("confidence_var", 0.0)  # left out where 0
    return mean - half, mean + half


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
