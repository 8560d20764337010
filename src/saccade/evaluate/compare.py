"""Systems side by side on one test set: runs of ours, or what any other system wrote, as plain text."""

import html
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from saccade.data import Pair
from saccade.evaluate.report import Report, evaluate, references_of, report, share
from saccade.metrics import bleu_of, bleu_parts, paired, plain
from saccade.search import Options, Translator
from saccade.see import Prediction
from saccade.see.chart import Series, chart
from saccade.see.page import sections, whole
from saccade.see.views import view

SHOWN = 8  # sentences of each kind
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


def of_outputs(name: str, outputs: Sequence[str], pairs: Sequence[Pair], symbols: bool) -> System:
    """What another system wrote: a line for each source of the test set, in its order, repeated ones counted once."""
    sources, references = references_of(pairs)
    if len(outputs) == len(pairs) != len(sources):  # a line for each pair: the first for each source counts
        first = {p.source: i for i, p in reversed(list(enumerate(pairs)))}
        outputs = [outputs[first[s]] for s in sources]
    if len(outputs) != len(sources):
        raise ValueError(f"{name}: {len(outputs)} lines, expected one for each of {len(sources)} sources")
    said = [Prediction(s, o, 0.0) for s, o in zip(sources, outputs, strict=True)]
    return System(name, report(said, references, symbols))


def of_run(name: str, translator: Translator, pairs: Sequence[Pair], options: Options, curve: Any = ()) -> System:
    return System(name, evaluate(translator, pairs, options, look=True), translator, list(curve))


def against(systems: Sequence[System]) -> list[Against]:
    """Every pair of systems, the best first, by bootstrap over the same sentences for both (Koehn 2004)."""
    symbols = systems[0].report.symbols
    parts = [_parts(s.report, symbols) for s in systems]
    score = share if symbols else bleu_of
    totals = [score(p.sum(0)) for p in parts]
    ranked = sorted(range(len(systems)), key=lambda i: -totals[i])
    return [
        Against(systems[i].name, systems[j].name, totals[i] - totals[j], paired(parts[i], parts[j], score))
        for i, j in itertools.combinations(ranked, 2)
    ]


def agreements(systems: Sequence[System], pairs: Sequence[Pair]) -> list[tuple[str, str, float]]:
    """How much of their attention two systems share, in percent, when both are made to write the reference.

    Over words, so that systems that cut words differently can be compared.
    """
    few = [(p.source, p.target) for p in pairs[:FORCED]]
    seen: list[tuple[str, list[NDArray[np.float32] | None]]] = [
        (s.name, [_looked(p) for p in s.translator.score_all(few)]) for s in systems if s.translator is not None
    ]
    found = []
    for i, (name, mine) in enumerate(seen):
        for other, theirs in seen[i + 1 :]:
            shared = [
                float(np.minimum(a, b).sum(-1).mean())
                for a, b in zip(mine, theirs, strict=True)
                if a is not None and b is not None and a.size and a.shape == b.shape
            ]
            if shared:
                found.append((name, other, 100 * float(np.mean(shared))))
    return found


def _looked(p: Prediction) -> NDArray[np.float32] | None:
    """Where each word of a target looked: [words, words of the source], or [words, cells] of a picture."""
    return None if p.weights is None or not p.weights.size else view(p, "words" if p.grid is None else "pieces").weights


def comparison(systems: Sequence[System], pairs: Sequence[Pair], title: str) -> str:
    """A page: scores, curves by length, differences, and sentences with their glances; also for a single system."""
    first = systems[0].report
    parts = [_scores(systems)]
    if len(systems) > 1:
        parts.append(_differences(against(systems), "exact" if first.symbols else "BLEU"))
        if alike := agreements(systems, pairs):
            rows = "".join(f"<tr><th>{_e(a)} and {_e(b)}</th><td class=n>{x:.1f}</td></tr>" for a, b, x in alike)
            head = "<caption>Attention that two share, in percent, when both write the reference</caption>"
            parts.append(_plain(f"{head}<tbody>{rows}</tbody>".replace("class=n", 'class="n"')))
    parts.append(_by_length(systems))
    parts.append(_learning(systems))
    chosen, labels, told = _sentences(systems)
    body = "".join(parts) + f"<h2>{told}</h2>" + sections(chosen, labels)
    return whole(title, body, chosen)


def comparison_record(systems: Sequence[System], pairs: Sequence[Pair]) -> dict[str, Any]:
    """The same figures as plain JSON values."""
    return {
        "systems": [{"name": s.name, **s.report.record()} for s in systems],
        "against": [a._asdict() for a in against(systems)] if len(systems) > 1 else [],
        "shared_attention": [{"one": a, "other": b, "percent": round(x, 2)} for a, b, x in agreements(systems, pairs)],
    }


def _parts(found: Report, symbols: bool) -> NDArray[np.float64]:
    if not symbols:
        return bleu_parts([p.text for p in found.predictions], found.references)
    rows = [
        [float(plain(p.text) in map(plain, known)), 1.0]
        for p, known in zip(found.predictions, found.references, strict=True)
    ]
    return np.array(rows).reshape(-1, 2)


def _e(text: str) -> str:
    return html.escape(text)


def _scores(systems: Sequence[System]) -> str:
    names = [n for n in systems[0].report.scores if all(n in s.report.scores for s in systems)]
    head = "".join(f'<th scope="col">{_e(s.name)}</th>' for s in systems)
    rows = []
    for name in names:
        cells = []
        for s in systems:
            ends = s.report.intervals.get(name)
            between = f" <small>{ends[0]:.1f} – {ends[1]:.1f}</small>" if ends else ""
            cells.append(f'<td class="n">{s.report.scores[name]:.2f}{between}</td>')
        rows.append(f'<tr><th scope="row">{_e(name)}</th>{"".join(cells)}</tr>')
    signed = "".join(f"<li>{_e(name)}: {_e(text)}</li>" for name, text in systems[0].report.signatures.items())
    count = systems[0].report.counts["sources"]
    told = f"In percent, of {count:,} sources; small: the middle 95% of test sets like this one"
    table = f"<caption>{told}</caption><thead><tr><td></td>{head}</tr></thead><tbody>{''.join(rows)}</tbody>"
    return f"{_plain(table)}<ul>{signed}</ul>"


def _differences(found: Sequence[Against], what: str) -> str:
    rows = "".join(
        f'<tr><th scope="row">{_e(a.better)} over {_e(a.worse)}</th><td class="n">{a.difference:+.2f}</td>'
        f'<td class="n">{likely(a.chance)}</td></tr>'
        for a in found
    )
    return _plain(
        f"<caption>Paired bootstrap of {what}</caption><thead><tr><td></td>"
        '<th scope="col">difference</th><th scope="col">p</th></tr></thead>'
        f"<tbody>{rows}</tbody>"
    )


def _plain(table: str) -> str:
    """A table of figures, which scrolls where there is too little room."""
    return f'<div class="scroll" tabindex="0"><table class="plain">{table}</table></div>'


def likely(chance: float) -> str:
    """A p-value, as far as a thousand draws can tell."""
    return f"{chance:.3f}" if chance >= 0.001 else "< 0.001"


def _by_length(systems: Sequence[System]) -> str:
    if not systems[0].report.by_length:
        return ""
    counts = "".join(
        f"<tr><th>{b.first}–{b.last}</th><td>{b.sources:,}</td></tr>" for b in systems[0].report.by_length
    ).replace("<td>", '<td class="n">')
    unit, charts = systems[0].report.unit, []
    for name, shown in (("bleu", "BLEU"), ("exact", "exact, %")):
        curves = []
        for s in systems:
            buckets = s.report.by_length
            low, high = zip(*(getattr(b, f"{name}_interval") for b in buckets), strict=True)
            middle = [(b.first + b.last) / 2 for b in buckets]
            curves.append(Series(s.name, middle, [getattr(b, name) for b in buckets], low, high))
        charts.append(chart(curves, f"{unit} in the source", shown))
    table = f"<caption>How many sources of each length</caption><tbody>{counts}</tbody>"
    return f"<h2>By length</h2>{''.join(charts)}{_plain(table)}"


def _learning(systems: Sequence[System]) -> str:
    curves = [
        Series(s.name, [row["step"] for row in s.curve], [row["score"] for row in s.curve])
        for s in systems
        if len(s.curve) > 1
    ]
    return f"<h2>While learning</h2>{chart(curves, 'step', 'dev score')}" if curves else ""


def _sentences(systems: Sequence[System]) -> tuple[list[Prediction], list[str], str]:
    """Sentences worth seeing: of one system its best and worst, of several those where they differ most; whose each is
    and what was wanted; and a title.
    """
    found = systems[0].report
    scores = np.array([[_score(p, known) for p, known in _lines(s.report)] for s in systems])  # [systems, sentences]
    if len(systems) == 1:
        order = np.argsort(scores[0], kind="stable")
        count = min(SHOWN, len(order) // 2 or 1)
        rows = {"among the best": order[::-1][:count], "among the worst": order[:count]}
        labelled = [(i, f"{which}; wanted: {found.references[i][0]}") for which, some in rows.items() for i in some]
        return [found.predictions[i] for i, _ in labelled], [told for _, told in labelled], "The best and the worst"
    apart = scores.max(0) - scores.min(0)
    most = np.argsort(-apart, kind="stable")[:SHOWN]
    shown = [(s, i) for i in most for s in systems]
    labels = [f"{s.name}; wanted: {found.references[i][0]}" for s, i in shown]
    return [s.report.predictions[i] for s, i in shown], labels, "Where they differ most"


def _lines(found: Report) -> list[tuple[Prediction, list[str]]]:
    return list(zip(found.predictions, found.references, strict=True))


def _score(p: Prediction, known: list[str]) -> float:
    """How near an output is to its nearest reference: words of both that the other has, F1."""
    mine = plain(p.text).split()
    best = 0.0
    for reference in known:
        theirs = plain(reference).split()
        common = sum(min(mine.count(w), theirs.count(w)) for w in set(mine))
        best = max(best, 2 * common / max(1, len(mine) + len(theirs)))
    return best


def read_outputs(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")  # other breaks may stand in a line
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: cannot be read ({error})") from None
