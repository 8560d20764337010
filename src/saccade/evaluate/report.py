"""Scores of a run on pairs, with intervals, by length."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saccade.data import Pair, Watch, unwatched
from saccade.evaluate.scenes import is_scene, scene_scores
from saccade.metrics import (
    bleu_of,
    bleu_parts,
    caption_scores,
    caption_signatures,
    confusions,
    edits,
    interval,
    judged_by,
    plain,
    text_parts,
    text_scores,
    wilson,
)
from saccade.search import Options, Translator
from saccade.see import Prediction

VERSION = 1
FEW = 20  # sources: fewer do not make a bucket of their own
MOST_SHIFTS = 300_000  # TER tries every shift of every block, some 100 µs for each two symbols of wrong rows of symbols
TEXT = ("bleu", "chrf", "ter", "exact", "wer", "per", "cer")  # figures of any report
NAMES = {
    "bleu": "BLEU",
    "chrf": "chrF2",
    "ter": "TER",
    "exact": "exact",
    "wer": "WER (outputs not exact)",
    "per": "PER (tokens wrong)",
    "cer": "CER (characters wrong)",
    "bleu1": "BLEU-1",
    "bleu2": "BLEU-2",
    "bleu3": "BLEU-3",
    "bleu4": "BLEU-4",
    "rouge_l": "ROUGE-L",
    "cider": "CIDEr-D",
    "true": "true of the picture",
    "true_unseen": "the same, of pictures with pairs unseen in training",
    "named_unseen": "of these pictures, captions that truly name such a pair",
    "pointing": "looks at what it names",
    "pointing_chance": "the same, by chance",
    "mass": "attention on what it names",
    "mass_chance": "the same, by chance",
}
STEPS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


@dataclass(frozen=True, slots=True)
class Bucket:
    """Sources from `first` to `last` words (or characters) long."""

    first: int
    last: int
    sources: int
    bleu: float
    bleu_interval: tuple[float, float]
    exact: float
    exact_interval: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Report:
    """How good a run is on a test set; every figure in percent."""

    symbols: bool  # the task writes symbols, not sentences: words right and wrong say more than BLEU
    scores: dict[str, float]
    intervals: dict[str, tuple[float, float]]
    signatures: dict[str, str]
    unit: str  # what lengths are counted in
    by_length: list[Bucket]
    confusions: list[tuple[str, str, int]]
    counts: dict[str, int]
    predictions: list[Prediction] = field(repr=False)
    references: list[list[str]] = field(repr=False)

    @property
    def main(self) -> str:
        """The figure that says most."""
        return judged_by(self.symbols, (r for known in self.references for r in known))

    def record(self) -> dict[str, Any]:
        """One JSON object."""
        return {
            "version": VERSION,
            **dict.fromkeys(TEXT),  # null: not counted
            **{name: round(score, 4) for name, score in self.scores.items()},
            "intervals": {name: [round(x, 4) for x in ends] for name, ends in self.intervals.items()},
            "signatures": self.signatures,
            "length_unit": self.unit,
            "by_length": [
                {
                    "from": b.first,
                    "to": b.last,
                    "sources": b.sources,
                    "bleu": round(b.bleu, 4),
                    "bleu_interval": [round(x, 4) for x in b.bleu_interval],
                    "exact": round(b.exact, 4),
                    "exact_interval": [round(x, 4) for x in b.exact_interval],
                }
                for b in self.by_length
            ],
            "confusions": [{"wanted": w, "written": g, "count": n} for w, g, n in self.confusions],
            "counts": self.counts,
        }


def evaluate(
    translator: Translator,
    pairs: Sequence[Pair],
    options: Options | None = None,
    look: bool = False,
    watch: Watch = unwatched,
) -> Report:
    """Translates every source once and compares with all of its targets; `look` keeps where each word looked."""
    sources, references = references_of(pairs)
    drawn = translator.reads_pictures and all(map(is_scene, sources))
    predictions = translator.translate(sources, options or Options(), look=look or drawn, watch=watch)
    found = report(predictions, references, translator.symbols, translator.reads_pictures)
    return replace(found, scores=found.scores | scene_scores(predictions)) if drawn else found


def references_of(pairs: Sequence[Pair]) -> tuple[list[str], list[list[str]]]:
    """Every source once, and all of its targets."""
    known: dict[str, list[str]] = {}
    for source, target in pairs:
        targets = known.setdefault(source, [])
        if target not in targets:
            targets.append(target)
    return list(known), list(known.values())


def report(
    predictions: Sequence[Prediction], references: Sequence[Sequence[str]], symbols: bool, pictures: bool = False
) -> Report:
    """Scores of predictions against the references of each; those of captions too, if the sources are `pictures`, which
    have no length.
    """
    raw, outputs = [p.text for p in predictions], [plain(p.text) for p in predictions]
    wanted = [[plain(r) for r in known] for known in references]
    right = np.array([[float(o in known), 1.0] for o, known in zip(outputs, wanted, strict=True)]).reshape(-1, 2)
    tokens = [edits(o.split(), [r.split() for r in known]) for o, known in zip(outputs, wanted, strict=True)]
    letters = [edits(o, known) for o, known in zip(outputs, wanted, strict=True)]
    parts = {
        "bleu": bleu_parts(raw, references),
        "per": np.array([[e.wrong, e.length] for e in tokens], dtype=np.float64).reshape(-1, 2),
        "cer": np.array([[e.wrong, e.length] for e in letters], dtype=np.float64).reshape(-1, 2),
    }
    wrong = ((o, r) for o, known in zip(outputs, wanted, strict=True) for r in known if o != r)
    shifts = sum(len(o.split()) * len(r.split()) for o, r in wrong)
    shifted = not symbols or shifts <= MOST_SHIFTS
    bleu = text_scores(raw, references, ("bleu",))["bleu"]
    text = {name: text_parts(name, raw, references) for name in (("chrf", "ter") if shifted else ("chrf",))}
    scores = {"bleu": bleu.score, **{name: found.score(found.rows.sum(0)) for name, found in text.items()}}
    scores |= {"exact": share(right.sum(0)), **{name: share(parts[name].sum(0)) for name in ("per", "cer")}}
    scores["wer"] = 100 - scores["exact"]
    scores |= caption_scores(raw, references) if pictures else {}
    intervals = {name: interval(rows, bleu_of if name == "bleu" else share) for name, rows in parts.items()}
    intervals |= {name: interval(found.rows, found.score) for name, found in text.items()}
    intervals["exact"] = wilson(*right.sum(0))
    intervals["wer"] = 100 - intervals["exact"][1], 100 - intervals["exact"][0]
    several = sum(" " in p.source.strip() for p in predictions)
    unit = "words" if 2 * several > len(predictions) else "characters"
    return Report(
        symbols,
        scores,
        intervals,
        {
            "bleu": bleu.signature,
            **{name: found.signature for name, found in text.items()},
            **(caption_signatures(references) if pictures else {}),
        },
        unit,
        [] if pictures else _by_length([_length(p.source, unit) for p in predictions], parts["bleu"], right),
        _confusions(outputs, wanted) if symbols else [],
        {
            "sources": len(predictions),
            "references": sum(map(len, references)),
            "unknown": sum(bool(p.unknown) for p in predictions),
            "cut_source": sum(p.cut_source for p in predictions),
            "cut_output": sum(p.cut_output for p in predictions),
        },
        list(predictions),
        [list(known) for known in references],
    )


def _confusions(outputs: list[str], wanted: list[list[str]]) -> list[tuple[str, str, int]]:
    """Of symbols between blanks or, where outputs are single words, of their characters."""
    words = sum(len(o.split()) for o in outputs) > 1.5 * len(outputs)
    pairs = []
    for output, known in zip(outputs, wanted, strict=True):
        written: Sequence[str] = output.split() if words else output
        targets: list[Sequence[str]] = [r.split() if words else r for r in known]
        pairs.append((written, targets[edits(written, targets).nearest]))
    return confusions(pairs)


def share(total: NDArray[np.float64]) -> float:
    """Percent, from (how many, of how many)."""
    return 100 * float(total[0]) / max(1.0, float(total[1]))


def counted(number: int, what: str) -> str:
    """
    >>> counted(1, "source"), counted(1200, "source")
    ('1 source', '1,200 sources')
    """
    return f"{number:,} {what}{'s' if number != 1 else ''}"


def _length(text: str, unit: str) -> int:
    return len(text.split()) if unit == "words" else len(text.strip())


def _by_length(lengths: list[int], bleu: NDArray[np.float64], right: NDArray[np.float64]) -> list[Bucket]:
    """About eight buckets of equal width, joined until each has enough sources; the last takes all that is longer."""
    if not lengths:
        return []
    usual = float(np.percentile(lengths, 99))
    width = next((s for s in STEPS if usual <= 8 * s), STEPS[-1])
    starts = list(range(1, max(2, int(usual) + 1), width))
    groups: list[tuple[int, int, list[int]]] = []
    for first in starts:
        end = max(lengths) + 1 if first == starts[-1] else first + width
        rows = [i for i, n in enumerate(lengths) if first <= max(1, n) < end]
        if groups and len(groups[-1][2]) < FEW:
            groups[-1] = (groups[-1][0], end - 1, groups[-1][2] + rows)
        else:
            groups.append((first, end - 1, rows))
    if len(groups) > 1 and len(groups[-1][2]) < FEW:  # the longest of all, too few for themselves
        (first, _, rows), (_, last, more) = groups[-2:]
        groups[-2:] = [(first, last, rows + more)]

    found = []
    for first, last, rows in groups:
        total = right[rows].sum(0)
        figures = bleu_of(bleu[rows].sum(0)), interval(bleu[rows], bleu_of), share(total), wilson(*total)
        top = min(last, max(lengths[i] for i in rows)) if rows else last
        found.append(Bucket(first, top, len(rows), *figures))
    return found
