"""Systems side by side on one test set: runs of ours, or what any other system wrote, as plain text."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from saccade.data import Pair, Watch, unwatched
from saccade.evaluate.report import Report, evaluate, references_of, report, share
from saccade.metrics import Parts, bleu_of, bleu_parts, paired, plain, text_parts
from saccade.search import Options, Translator
from saccade.see import Prediction
from saccade.see.views import view

FORCED = 200  # sentences on which attentions are compared


@dataclass(frozen=True)
class System:
    """One of those that are compared."""

    name: str
    report: Report
    translator: Translator | None = None  # None, if only its outputs are known
    curve: list[dict[str, Any]] = field(default_factory=list)  # what was measured while it learned


class Against(NamedTuple):
    """Two systems on the same sentences."""

    better: str
    worse: str
    difference: float  # of their scores
    chance: float  # the share of test sets, drawn from this one, on which it would not be so


def of_outputs(
    name: str, outputs: Sequence[str], pairs: Sequence[Pair], symbols: bool, pictures: bool = False
) -> System:
    """What another system wrote: a line for each source of the test set, in its order, repeated ones counted once."""
    sources, references = references_of(pairs)
    if len(outputs) == len(pairs) != len(sources):  # a line for each pair: the first for each source counts
        first = {p.source: i for i, p in reversed(list(enumerate(pairs)))}
        outputs = [outputs[first[s]] for s in sources]
    if len(outputs) != len(sources):
        raise ValueError(f"{name}: {len(outputs)} lines, expected one for each of {len(sources)} sources")
    said = [Prediction(s, o, 0.0) for s, o in zip(sources, outputs, strict=True)]
    return System(name, report(said, references, symbols, pictures))


def of_run(
    name: str,
    translator: Translator,
    pairs: Sequence[Pair],
    options: Options,
    curve: Any = (),
    watch: Watch = unwatched,
) -> System:
    return System(name, evaluate(translator, pairs, options, look=True, watch=watch), translator, list(curve))


def against(systems: Sequence[System]) -> list[Against]:
    """Every pair of systems, the best first, by bootstrap over the same sentences for both (Koehn 2004)."""
    found = [_parts(s.report, systems[0].report.main) for s in systems]
    parts, score = [f.rows for f in found], found[0].score
    totals = [score(p.sum(0)) for p in parts]
    ranked = sorted(range(len(systems)), key=lambda i: -totals[i])
    return [
        Against(systems[i].name, systems[j].name, totals[i] - totals[j], paired(parts[i], parts[j], score))
        for i, j in itertools.combinations(ranked, 2)
    ]


class Shared(NamedTuple):
    """How much of their attention two systems share when both are made to write the reference."""

    one: str
    other: str
    percent: float
    sentences: list[tuple[float, Pair]]  # the same of each, from the least


def agreements(systems: Sequence[System], pairs: Sequence[Pair]) -> list[Shared]:
    """Of every two systems that look, over words, so that those that cut words differently can be compared."""
    few = [(p.source, p.target) for p in pairs[:FORCED]]
    seen: list[tuple[str, list[NDArray[np.float32] | None]]] = [
        (s.name, [_looked(p) for p in s.translator.score_all(few)]) for s in systems if s.translator is not None
    ]
    found = []
    for (name, mine), (other, theirs) in itertools.combinations(seen, 2):
        shared = [
            (100 * float(np.minimum(a, b).sum(-1).mean()), pair)
            for a, b, pair in zip(mine, theirs, pairs[:FORCED], strict=True)
            if a is not None and b is not None and a.size and a.shape == b.shape
        ]
        if shared:
            mean = float(np.mean([x for x, _ in shared]))
            found.append(Shared(name, other, mean, sorted(shared, key=lambda row: row[0])))
    return found


def _looked(p: Prediction) -> NDArray[np.float32] | None:
    """Where each word of a target looked: [words, words of the source], or [words, cells] of a picture."""
    return None if p.weights is None or not p.weights.size else view(p, "words" if p.grid is None else "pieces").weights


def comparison_record(systems: Sequence[System], pairs: Sequence[Pair]) -> dict[str, Any]:
    """The same figures as plain JSON values."""
    return {
        "systems": [{"name": s.name, **s.report.record()} for s in systems],
        "against": [a._asdict() for a in against(systems)] if len(systems) > 1 else [],
        "shared_attention": [
            {"one": a.one, "other": a.other, "percent": round(a.percent, 2)} for a in agreements(systems, pairs)
        ],
    }


def _parts(found: Report, main: str) -> Parts:
    """What each output adds to the figure by which systems are compared."""
    outputs = [p.text for p in found.predictions]
    if main == "bleu":
        return Parts(bleu_parts(outputs, found.references), bleu_of, "")
    if main != "exact":
        return text_parts(main, outputs, found.references)
    rows = [[float(plain(o) in map(plain, known)), 1.0] for o, known in zip(outputs, found.references, strict=True)]
    return Parts(np.array(rows).reshape(-1, 2), share, "")


def likely(chance: float) -> str:
    """A p-value, as far as a thousand draws can tell."""
    return f"{chance:.3f}" if chance >= 0.001 else "< 0.001"


def read_outputs(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")  # other breaks may stand in a line
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: cannot be read ({error})") from None
