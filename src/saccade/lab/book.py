"""The lab's book: a page for each claim in two languages, its figures as JSON, a notebook to change, and an index."""

import contextlib
import hashlib
import html
import importlib
import inspect
import io
import json
import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import saccade
from saccade.config import presets
from saccade.errors import UsageError, unknown
from saccade.files import write_whole
from saccade.lab.bench import Bench
from saccade.lab.claim import Chart, Claim, Figure, Verdict, values
from saccade.lab.notebook import notebook
from saccade.lab.words import LANGUAGES, TOLD, told
from saccade.see.chart import Series, bars, chart, picture_file
from saccade.see.page import whole

NAMES = (
    "bottleneck", "scores", "order", "direction", "alignment", "captions", "scaling", "norms", "positions", "mask",
    "heads", "cost", "bridge", "dictionary",
)  # fmt: skip
LITTLE = 10.0  # BLEU, or percent, below which nothing was learned from somebody's pairs
LEAST = 0.3  # share of its usual time that a claim needs at least


def claim_of(name: str) -> Claim:
    if name not in NAMES:
        raise unknown("claim", name, NAMES)
    found: Claim = importlib.import_module(f"saccade.lab.{name}").CLAIM
    return found


def run_claim(claim: Claim, bench: Bench, minutes: float | None = None) -> dict[str, Any]:
    """Measures, judges, and writes into the bench's folder NAME.json, .html, .ko.html, .ipynb and, of a curve, .svg.

    What an interrupted run measured is not measured again.
    """
    if bench.data is not None and not claim.pairs:
        raise UsageError(
            f"--data: {claim.name} has a task of its own; pairs can be given to {', '.join(_with_pairs())}"
        )
    if minutes is not None and claim.fixed:
        raise UsageError(f"--minutes: {claim.name} takes as long as it takes, about {claim.minutes:g}")
    if minutes is not None and minutes < LEAST * claim.minutes:
        raise UsageError(
            f"--minutes {minutes:g}: {claim.name} needs about {claim.minutes:g}, and at least {LEAST * claim.minutes:.1f}"
        )
    if minutes is not None or bench.data is not None:
        bench = bench.within(minutes or claim.minutes, claim.minutes)
    bench.folder.mkdir(parents=True, exist_ok=True)
    figures = claim.measure(replace(bench, mark=_mark(claim.name)))
    if bench.data is not None and (little := _little(figures, "en")):
        bench.say(little)
    return publish(claim, bench, figures)


def _little(figures: Sequence[Figure], language: str) -> str:
    """What is to be said where nothing was learned from somebody's pairs."""
    best = max(values(figures, "right"), default=0.0)
    return told(TOLD["little"], language).format(best) if best < LITTLE else ""


def _mark(name: str) -> str:
    """What a claim's figures depend on: its module, what that has from other claims, what all have in common, and what
    is chosen for them.
    """
    module = importlib.import_module(f"saccade.lab.{name}")
    owners = {getattr(value, "__module__", None) for value in vars(module).values()} & {
        f"saccade.lab.{other}" for other in NAMES
    }
    others: list[ModuleType] = [sys.modules[o] for o in sorted(str(o) for o in owners - {module.__name__})]
    modules = [module, *others, sys.modules[Bench.__module__], presets]
    measuring = [inspect.getsource(m).partition("\nCLAIM = ")[0] for m in modules]  # other words change no figure
    return hashlib.sha256("".join([saccade.__version__, *measuring]).encode()).hexdigest()


def publish(claim: Claim, bench: Bench, figures: list[Figure]) -> dict[str, Any]:
    """Judges what was measured, and writes it down; returns the record."""
    record = {
        "claim": claim.name,
        "says": claim.says.en,
        "verdict": str(claim.judge(figures)),
        "rule": claim.rule.en,
        "figures": figures,
        "seeds": sorted({f["seed"] for f in figures}),
        "quick": bench.quick,
        "share": bench.share,
        "data": None if bench.data is None else str(bench.data),
        "minutes": round(sum(m["seconds"] for m in bench.measured) / 60, 1),  # had it been one after the other
        "asked_minutes": bench.minutes,
        "date": max((m["date"] for m in bench.measured), default=""),  # of measuring, whenever the page was written
        "machine": "; ".join(sorted({m["machine"] for m in bench.measured})),
    }
    _write(bench.folder / f"{claim.name}.json", json.dumps(record, ensure_ascii=False, indent=1) + "\n")
    for language in LANGUAGES:
        _write(bench.folder / _file(claim.name, language), page(claim, record, language))
    first = claim.charts[0]
    if first.across is not None:
        drawn = picture_file(curves(figures, first), first.along.en, first.says.en, first.log)
        _write(bench.folder / f"{claim.name}.svg", drawn)
    _write(bench.folder / f"{claim.name}.ipynb", json.dumps(notebook(claim), ensure_ascii=False, indent=1) + "\n")
    return record


def write_index(folder: Path) -> None:
    """The book's first page, in both languages, and its summary for a document."""
    found = {}
    for name in NAMES:
        file = folder / f"{name}.json"
        found[name] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else None
    for language in LANGUAGES:
        rows = []
        for name, record in found.items():
            claim, said = claim_of(name), told(TOLD["not yet"], language)
            title = html.escape(told(claim.title, language))
            if record is not None:
                title = f'<a href="{_file(name, language)}">{title}</a>'
                said = told(TOLD[Verdict(record["verdict"])], language)
            rows.append(f"<tr><td>{title}</td><td>{_marked(told(claim.says, language))}</td><td>{said}</td></tr>")
        heads = "".join(f'<th scope="col">{told(TOLD[x], language)}</th>' for x in ("experiment", "claim", "verdict"))
        table = f'<table class="plain"><thead><tr>{heads}</tr></thead><tbody>{"".join(rows)}</tbody></table>'
        body = _other("index", language) + table
        _write(folder / _file("index", language), whole(told(TOLD["book"], language), body, language=language))
    _write(folder / "summary.md", document(found))


def document(found: dict[str, dict[str, Any] | None]) -> str:
    """The book as Markdown, which docs/lab.md is: all verdicts, then each claim with its figures."""
    run = {name: record for name, record in found.items() if record is not None}
    lines = [
        "# What the lab found",
        "",
        "`saccade lab --all -o lab` makes the book: a page for each claim, in English and Korean, with its charts, its",
        "figures as JSON and a notebook; and this, `lab/summary.md`. Each verdict is by the rule that stands in the claim's",
        "module and on its page. Figures are means over the seeds, with the lowest and the highest; minutes are those of",
        "measuring, had everything been measured one after the other.",
        "",
        "| claim | what is claimed | verdict | seeds | minutes | date |",
        "|---|---|---|---|---|---|",
    ]
    for name, r in run.items():
        verdict = f"**{r['verdict']}**" + (" (quick)" if r["quick"] else "")
        seeds = len(r["seeds"])
        lines.append(f"| `{name}` | {r['says']} | {verdict} | {seeds} | {r['minutes']:g} | {r['date']} |")
    total = sum(r["minutes"] for r in run.values())
    machines = "; ".join(sorted({r["machine"] for r in run.values()}))
    lines += ["", f"{total:.0f} minutes in all. {told(TOLD['meaning'], 'en')} Machine: {machines}.", ""]
    for name, r in run.items():
        claim = claim_of(name)
        lines += [f"## {claim.title.en}", "", f"{_from(claim, 'en')}. {claim.setup.en}", ""]
        lines += [f"Rule: {claim.rule.en} **{r['verdict'].capitalize()}.**", ""]
        lines += [line for drawn in claim.charts for line in _table(curves(r["figures"], drawn), drawn)]
        lines += [f"`{_command(claim, r)}`", "", *([claim.tried.en, ""] if claim.tried.en else [])]
    return "\n".join(lines).rstrip() + "\n"


def _table(series: Sequence[Series], drawn: Chart) -> list[str]:
    """A chart as a table in Markdown."""
    if not series:
        return []
    if drawn.across is None:
        return [f"| | {drawn.says.en} |", "|---|---|", *(f"| {s.name} | {_cell(s, 0)} |" for s in series), ""]
    places = sorted({x for s in series for x in s.x})
    head = f"| {drawn.says.en}, by {drawn.along.en} | {' | '.join(f'{x:g}' for x in places)} |"
    rows = [f"| {s.name} | {' | '.join(_cell(s, x) for x in places)} |" for s in series]
    return [head, "|---" * (len(places) + 1) + "|", *rows, ""]


def page(claim: Claim, record: dict[str, Any], language: str) -> str:
    """One claim: what it says, how it was tested, what came out."""
    figures: list[Figure] = record["figures"]
    verdict = Verdict(record["verdict"])
    parts = [_other(claim.name, language)]
    parts.append(f"<h2>{told(TOLD['claim'], language)}</h2><p>{_marked(told(claim.says, language))}</p>")
    parts.append(f"<p>{html.escape(_from(claim, language))}.</p>")
    parts.append(f"<h2>{told(TOLD['setup'], language)}</h2>")
    if record["quick"]:
        parts.append(f"<p><strong>{told(TOLD['quick'], language)}</strong></p>")
    if record["data"] is not None:
        given = told(TOLD["given"], language).format(Path(record["data"]).name)
        parts.append(f"<p><strong>{html.escape(given)} {_little(figures, language)}</strong></p>")
    else:
        parts.append(f"<p>{_marked(told(claim.setup, language))}</p>")
    if claim.live is not None:
        watched = io.StringIO()
        with contextlib.redirect_stdout(watched):
            claim.live(language)
        parts.append(f"<h2>{told(TOLD['live'], language)}</h2><pre>{html.escape(watched.getvalue().strip())}</pre>")
    parts.append(f"<h2>{told(TOLD['figures'], language)}</h2><p>{told(TOLD['range'], language)}</p>")
    shown = claim if record["data"] is None else replace(claim, charts=tuple(_of_quality(c) for c in claim.charts))
    parts.append(charts(shown, figures, language))
    parts.append(f"<h2>{told(TOLD['verdict'], language)}: {told(TOLD[verdict], language)}</h2>")
    parts.append(f"<p>{told(TOLD['rule'], language)}: {_marked(told(claim.rule, language))}</p>")
    parts.append(f"<p>{told(TOLD['meaning'], language)}</p><p>{_marked(told(claim.tried, language))}</p>")
    seeds = f"{told(TOLD['seeds'], language)} {', '.join(map(str, record['seeds']))}"
    took = f"{told(TOLD['took'], language)}: {record['minutes']:g}"
    when = f"{record['date']}, {record['machine']}, {seeds}; {took}"
    command = html.escape(_command(claim, record))
    parts.append(f"<h2>{told(TOLD['again'], language)}</h2><p><code>{command}</code></p><p>{html.escape(when)}</p>")
    files = ", ".join(f'<a href="{claim.name}.{kind}">{claim.name}.{kind}</a>' for kind in ("json", "ipynb"))
    parts.append(f"<p>{told(TOLD['files'], language)}: {files}</p>")
    return whole(told(claim.title, language), "".join(parts), language=language)


def _marked(text: str) -> str:
    """As HTML; what stands between `backticks` is code."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", html.escape(text))


def _from(claim: Claim, language: str) -> str:
    """Which of the notes a claim is from."""
    return f"{told(TOLD['notes'], language)}: {', '.join(claim.notes)}"


def _of_quality(drawn: Chart) -> Chart:
    return drawn._replace(says=TOLD["quality"]) if drawn.up == "right" else drawn


def _command(claim: Claim, record: dict[str, Any]) -> str:
    words = ["saccade lab", claim.name]
    words += ["--quick"] if record["quick"] else []
    words += [f"--data {shlex.quote(record['data'])}"] if record["data"] is not None else []
    asked = record["asked_minutes"] or (None if record["share"] == 1 else record["share"] * claim.minutes)
    return " ".join(words + ([f"--minutes {asked:g}"] if asked is not None else []))


def charts(claim: Claim, figures: Sequence[Figure], language: str = "en") -> str:
    """Every chart of a claim, as HTML."""
    return "".join(_drawn(figures, drawn, language) for drawn in claim.charts)


def _drawn(figures: Sequence[Figure], drawn: Chart, language: str) -> str:
    """A chart, and the same as a table."""
    series = [
        s._replace(name=told(TOLD[s.name], language) if s.name in TOLD else s.name) for s in curves(figures, drawn)
    ]
    if not series:
        return ""
    along, up = told(drawn.along, language), told(drawn.says, language)
    if drawn.across is None:
        shown = bars(series, up)
        heads = f'<th scope="col">{html.escape(up)}</th>'
        rows = [f'<tr><th scope="row">{html.escape(s.name)}</th><td class="n">{_cell(s, 0)}</td></tr>' for s in series]
    else:
        shown = chart(series, along, up, drawn.log)
        heads = "".join(f'<th scope="col">{html.escape(s.name)}</th>' for s in series)
        rows = []
        for x in sorted({x for s in series for x in s.x}):
            cells = "".join(f'<td class="n">{_cell(s, x)}</td>' for s in series)
            rows.append(f'<tr><th scope="row">{x:g}</th>{cells}</tr>')
    corner = f'<th scope="col">{html.escape(along)}</th>' if along else "<td></td>"
    return (
        f'{shown}<table class="plain"><caption>{html.escape(up)}</caption><thead><tr>{corner}{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


def curves(figures: Sequence[Figure], drawn: Chart) -> list[Series]:
    """For every arm the mean over its seeds, and the range; without anything across, at 0."""
    found = []
    for arm in dict.fromkeys(f["arm"] for f in figures):
        points: dict[float, list[float]] = {}
        for f in figures:
            if f["arm"] == arm and drawn.up in f and (drawn.across is None or drawn.across in f):
                points.setdefault(0 if drawn.across is None else f[drawn.across], []).append(f[drawn.up])
        if points:
            places = sorted(points)
            each = [points[x] for x in places]
            means = [sum(v) / len(v) for v in each]
            found.append(Series(arm, places, means, [min(v) for v in each], [max(v) for v in each]))
    return found


def _cell(series: Series, x: float) -> str:
    if x not in series.x:
        return ""
    i = list(series.x).index(x)
    several = series.low[i] != series.high[i]
    return f"{series.y[i]:.4g}" + (f" ({series.low[i]:.4g}–{series.high[i]:.4g})" if several else "")


def _file(name: str, language: str) -> str:
    return f"{name}.ko.html" if language == "ko" else f"{name}.html"


def _other(name: str, language: str) -> str:
    """A link to the same page in the other language and, from a claim, to the index."""
    to = "en" if language == "ko" else "ko"
    home = "" if name == "index" else f'<a href="{_file("index", language)}">{told(TOLD["book"], language)}</a> · '
    return f'<p>{home}<a href="{_file(name, to)}" lang="{to}">{told(TOLD["other"], language)}</a></p>'


def _with_pairs() -> list[str]:
    return [name for name in NAMES if claim_of(name).pairs]


def _write(path: Path, text: str) -> None:
    write_whole(path, text.encode())
