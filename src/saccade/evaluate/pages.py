"""A report and a comparison as one page: scores, curves, what attention tells, and sentences with their glances."""

import html
from collections.abc import Sequence

import numpy as np

from saccade.data import Pair
from saccade.evaluate.attention import Health, Judged, health
from saccade.evaluate.compare import Shared, System, against, agreements, likely
from saccade.evaluate.report import NAMES, Report, counted
from saccade.metrics import plain, text_parts
from saccade.see import Prediction
from saccade.see.chart import Series, chart
from saccade.see.page import sections, whole

SHOWN = 8  # sentences of each kind


def comparison_page(systems: Sequence[System], pairs: Sequence[Pair], title: str) -> str:
    """A page: scores, differences, curves by length, shared attention, and sentences with their glances."""
    return _page(systems, title, _differences(systems), _alike(agreements(systems, pairs)))


def report_page(system: System, title: str, judged: Sequence[Judged] | None = None) -> str:
    """The same page of a single system, with what is to be said of its attention."""
    looked = health(system.report.predictions)
    return _page([system], title, "" if judged is None else _gold(judged), "" if looked is None else _health(looked))


def _page(systems: Sequence[System], title: str, above: str, below: str) -> str:
    chosen, labels, told = _sentences(systems)
    parts = [_scores(systems), above, _by_length(systems), _learning(systems), below]
    return whole(title, "".join(parts) + f"<h2>{told}</h2>" + sections(chosen, labels), chosen)


def _by_length(systems: Sequence[System]) -> str:
    buckets = systems[0].report.by_length
    if not buckets:
        return ""
    if len(buckets) == 1:
        return f"<p>By length: all {buckets[0].sources:,} sources are in one bucket, too few or too much alike.</p>"
    unit, charts = f"{systems[0].report.unit} in the source", []
    for name, shown in (("bleu", "BLEU"), ("exact", "exact, %")):
        curves = []
        for s in systems:
            low, high = zip(*(getattr(b, f"{name}_interval") for b in s.report.by_length), strict=True)
            middle = [(b.first + b.last) / 2 for b in s.report.by_length]
            curves.append(Series(s.name, middle, [getattr(b, name) for b in s.report.by_length], low, high))
        charts.append(chart(curves, unit, shown))
    heads = [f"{s.name}: {shown}" if len(systems) > 1 else shown for s in systems for shown in ("BLEU", "exact")]
    rows = []
    for same in zip(*(s.report.by_length for s in systems), strict=True):  # one bucket, of each system
        figures = [_with(*f) for b in same for f in ((b.bleu, b.bleu_interval), (b.exact, b.exact_interval))]
        rows.append((f"{same[0].first}–{same[0].last}", f"{same[0].sources:,}", *figures))
    table = _rows("In percent; in brackets 95% intervals", (unit, "sources", *heads), rows)
    return f"<h2>By length</h2>{''.join(charts)}{table}"


def _with(score: float, ends: tuple[float, float]) -> str:
    return f"{score:.1f} ({ends[0]:.1f} – {ends[1]:.1f})"


def _learning(systems: Sequence[System]) -> str:
    """The curves of each run, in the colour that it has everywhere: its score and its loss on the dev set; of a single
    run also the loss of what it was learning from.
    """
    if not any(len(s.curve) > 1 for s in systems):
        return ""
    scores, losses = ([_curve(s, kind) for s in systems] for kind in ("score", "dev_loss"))
    if len(systems) == 1:
        losses = [losses[0]._replace(name="dev set"), _curve(systems[0], "loss")._replace(name="last batch")]
    charts = chart(scores, "step", "dev score") + chart(losses, "step", "loss of a token, in nats")
    return f"<h2>While learning</h2>{charts}"


def _curve(system: System, kind: str) -> Series:
    known = [row for row in system.curve if kind in row]
    return Series(system.name, [row["step"] for row in known], [row[kind] for row in known])


def _sentences(systems: Sequence[System]) -> tuple[list[Prediction], list[str], str]:
    """Sentences worth seeing: of one system its best and worst, of several those where they differ most; whose each is
    and what was wanted; and a title.
    """
    found = systems[0].report
    scores = np.array([_scored(s.report) for s in systems])  # [systems, sentences]
    if len(systems) == 1:
        order = np.argsort(scores[0], kind="stable")
        count = min(SHOWN, len(order) // 2 or 1)
        rows = {"among the best": order[::-1][:count], "among the worst": order[:count]}
        shown = [(0, i, f"{which}, ") for which, some in rows.items() for i in some]
        title = "The best and the worst, by the chrF of each"
    else:
        most = np.argsort(scores.min(0) - scores.max(0), kind="stable")[:SHOWN]
        shown = [(k, i, f"{s.name}, ") for i in most for k, s in enumerate(systems)]
        title = "Where they differ most, by the chrF of each"
    labels = [f"{told}chrF {scores[k, i]:.0f}; wanted: {found.references[i][0]}" for k, i, told in shown]
    return [systems[k].report.predictions[i] for k, i, _ in shown], labels, title


def _scored(found: Report) -> list[float]:
    """How near each output is to its references: chrF, which tells near from far also of single words, and of writing
    without blanks.
    """
    parts = text_parts("chrf", [plain(p.text) for p in found.predictions], [[*map(plain, r)] for r in found.references])
    return [parts.score(row) for row in parts.rows]


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
        rows.append(f'<tr><th scope="row">{_e(NAMES[name])}</th>{"".join(cells)}</tr>')
    signed = "".join(f"<li>{_e(NAMES[name])}: {_e(text)}</li>" for name, text in systems[0].report.signatures.items())
    count = systems[0].report.counts["sources"]
    told = f"In percent, of {counted(count, 'source')}; small: 95% intervals"
    table = f"<caption>{told}</caption><thead><tr><td></td>{head}</tr></thead><tbody>{''.join(rows)}</tbody>"
    return f"{_plain(table)}<ul>{signed}</ul>"


def _differences(systems: Sequence[System]) -> str:
    if len(systems) < 2:
        return ""
    told = f"Paired bootstrap of {NAMES[systems[0].report.main]}"
    rows = [(f"{a.better} over {a.worse}", f"{a.difference:+.2f}", likely(a.chance)) for a in against(systems)]
    return _rows(told, ("", "difference", "p"), rows)


def _alike(found: Sequence[Shared]) -> str:
    """How much of their attention two share, and the sentences in which they share least."""
    if not found:
        return ""
    told = "Attention that two share, in percent, when both write the reference"
    parts = [_rows(told, ("", "shared"), [(f"{a.one} and {a.other}", f"{a.percent:.1f}") for a in found])]
    for a in found:
        least = [(pair.source, pair.target, f"{x:.1f}") for x, pair in a.sentences[:SHOWN]]
        table = _rows(f"Where {a.one} and {a.other} share least", ("source", "reference", "shared"), least)
        parts.append(f"<details><summary>{_e(f'Where {a.one} and {a.other} share least')}</summary>{table}</details>")
    return f"<h2>Shared attention</h2>{''.join(parts)}"


def _gold(judged: Sequence[Judged]) -> str:
    told = "Links against the gold ones, in percent, on every other sentence; what is best was picked on the rest"
    return _rows(told, ("links by", "AER", "precision", "recall"), [(w, *(f"{x:.1f}" for x in a)) for w, a in judged])


def _health(looked: Health) -> str:
    """Whether its glances move, gather and cover the source; in which words they scatter."""
    figures = [(name.replace("_", " "), f"{x:.3f}") for name, x in looked.figures.items()]
    classes, words = ([(what, f"{n:,}", f"{x:.3f}") for what, n, x in some] for some in (looked.classes, looked.words))
    parts = [
        _rows("Entropies in nats", ("", ""), figures),
        _rows("Entropy by kind of word", ("kind of word", "times", "entropy"), classes),
        _rows("Entropy of common words", ("word", "times", "entropy"), words[:SHOWN]),
        _rows(
            "The most scattered sentences",
            ("entropy", "source", "output"),
            [(f"{x:.3f}", p.source, p.text) for x, p in looked.worst[:SHOWN]],
        ),
        "".join(f"<p>{n:,} of the outputs: {_e(what)}</p>" for what, n in looked.ailments),
    ]
    return f"<h2>What its attention tells</h2>{''.join(parts)}"


def _rows(caption: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of texts; the first of each row is its name."""
    head = "".join(f'<th scope="col">{_e(h)}</th>' for h in heads)
    body = "".join(
        f'<tr><th scope="row"><bdi>{_e(first)}</bdi></th>{"".join(f"<td><bdi>{_e(x)}</bdi></td>" for x in rest)}</tr>'
        for first, *rest in rows
    )
    return _plain(f"<caption>{_e(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody>")


def _plain(table: str) -> str:
    """A table of figures, which scrolls where there is too little room."""
    return f'<div class="scroll" tabindex="0"><table class="plain">{table}</table></div>'
