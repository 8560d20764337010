"""The lab's book: a page for each claim in two languages, its figures as JSON, a notebook to change, and an index."""

import contextlib
import datetime
import hashlib
import html
import importlib
import inspect
import io
import json
import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from saccade.errors import unknown
from saccade.lab.bench import TOY, Bench
from saccade.lab.claim import Chart, Claim, Figure, Verdict, Words
from saccade.see.chart import Series, bars, chart, picture_file
from saccade.see.page import whole

NAMES = (
    "bottleneck", "scores", "order", "direction", "alignment", "captions", "scaling", "norms", "positions", "mask",
    "heads", "cost", "bridge", "dictionary",
)  # fmt: skip
LEAST = 0.3  # share of its usual time that a claim needs at least
LANGUAGES = ("en", "ko")
CELLS, WAYS = ("rnn", "gru", "lstm"), {"one direction": "한 방향", "two directions": "두 방향"}
ARMS = {  # that have a name in Korean
    "no attention": "어텐션 없음",
    "attention": "어텐션",
    "one vector": "벡터 하나",
    "none": "없음",
    "causal mask": "인과 마스크",
    "no mask": "마스크 없음",
    "batch norm": "배치 정규화",
    "layer norm": "층 정규화",
    "residual": "잔차 연결",
    "no residual": "잔차 연결 없음",
    "Bahdanau": "바다나우",
    "Luong": "루옹",
    "Luong, feeding": "루옹, 되먹임",
    "Transformer": "트랜스포머",
    "article": "관사",
    "letters": "글자",
    "permuted": "뒤섞음",
    "learned": "배운 위치",
    "sinusoidal": "사인파",
    "rotary": "회전",
    "answer": "답",
    **{f"{cell}, {way}": f"{cell}, {told}" for cell in CELLS for way, told in WAYS.items()},
}
TOLD = {
    "claim": Words("The claim", "주장"),
    "setup": Words("The set-up", "실험"),
    "figures": Words("What was measured", "측정"),
    "verdict": Words("The verdict", "판정"),
    "rule": Words("The rule, decided before", "미리 정한 규칙"),
    "again": Words("To run it again", "다시 해 보기"),
    "notes": Words("Lecture notes", "강의 노트"),
    "range": Words(
        "Points are means over the seeds; bands, and what stands in brackets, reach from the lowest to the highest.",
        "점은 시드의 평균이고, 띠와 괄호는 가장 낮은 값에서 가장 높은 값까지다.",
    ),
    "meaning": Words(
        "It holds if every seed is as the rule says, it does not hold if every seed is the other way round, and all between is "
        "within noise.",
        "모든 시드가 규칙대로이면 성립하고, 모든 시드가 거꾸로이면 성립하지 않으며, 그 사이는 모두 잡음 안이다.",
    ),
    "quick": Words(
        "Toy sizes and one seed: this shows only that the claim still runs. The sizes below are those of the book.",
        "장난감 크기와 시드 하나: 이 주장이 아직 돌아간다는 것만 보여 준다. 아래의 크기는 책의 것이다.",
    ),
    "given": Words(
        "Here the pairs of {} take the place of the built-in task: models of the default size for such pairs, the same "
        "minutes for each, quality in BLEU (of spelt words: symbols right, %).",
        "여기서는 {}의 쌍이 내장 과제를 대신한다. 그런 쌍에 맞는 기본 크기의 모형, 모형마다 같은 시간, 품질은 BLEU(철자로 쓴 단어는 "
        "맞은 기호, %).",
    ),
    "quality": Words("quality", "품질"),
    "live": Words("Watch it", "직접 보기"),
    "took": Words("minutes of measuring", "측정한 분"),
    "seeds": Words("seeds", "시드"),
    "book": Words("The lab: what the notes claim, tested", "실험실: 강의 노트의 주장을 시험하다"),
    "experiment": Words("Experiment", "실험"),
    "other": Words("한국어", "English"),
    "not yet": Words("not run yet", "아직 실행하지 않음"),
    **{english: Words(english, korean) for english, korean in ARMS.items()},
    Verdict.HOLDS: Words("holds", "성립한다"),
    Verdict.FAILS: Words("does not hold", "성립하지 않는다"),
    Verdict.NOISE: Words("within noise", "잡음 안에 있다"),
}


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
        raise ValueError(
            f"--data: {claim.name} has a task of its own; pairs can be given to {', '.join(_with_pairs())}"
        )
    if minutes is not None and claim.fixed:
        raise ValueError(f"--minutes: {claim.name} takes as long as it takes, about {claim.minutes:g}")
    if minutes is not None and minutes < LEAST * claim.minutes:
        raise ValueError(
            f"--minutes {minutes:g}: {claim.name} needs about {claim.minutes:g}, and at least {LEAST * claim.minutes:.1f}"
        )
    if minutes is not None or bench.data is not None:
        bench = bench.within(minutes or claim.minutes, claim.minutes)
    bench.folder.mkdir(parents=True, exist_ok=True)
    return publish(claim, bench, claim.measure(replace(bench, mark=_mark(claim.name))))


def _mark(name: str) -> str:
    """What a claim's figures depend on: its module, what that has from other claims, what all toy models share."""
    module = importlib.import_module(f"saccade.lab.{name}")
    owners = {getattr(value, "__module__", None) for value in vars(module).values()} & {
        f"saccade.lab.{other}" for other in NAMES
    }
    modules: list[ModuleType] = [module, *(sys.modules[o] for o in sorted(str(o) for o in owners - {module.__name__}))]
    return hashlib.sha256("".join([repr(TOY), *map(inspect.getsource, modules)]).encode()).hexdigest()


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
        "data": None if bench.data is None else str(bench.data.name),
        "minutes": round(sum(bench.spent) / 60, 1),  # of measuring, had it been one after the other
        "asked_minutes": bench.minutes,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, torch {torch.__version__}",
    }
    _write(bench.folder / f"{claim.name}.json", json.dumps(record, ensure_ascii=False, indent=1) + "\n")
    for language in LANGUAGES:
        _write(bench.folder / _file(claim.name, language), page(claim, record, language))
    first = claim.charts[0]
    if first.across is not None:
        _write(bench.folder / f"{claim.name}.svg", picture_file(curves(figures, first), first.along.en, first.says.en))
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
            claim, said = claim_of(name), _in(TOLD["not yet"], language)
            title = html.escape(_in(claim.title, language))
            if record is not None:
                title = f'<a href="{_file(name, language)}">{title}</a>'
                said = _in(TOLD[Verdict(record["verdict"])], language)
            rows.append(f"<tr><td>{title}</td><td>{html.escape(_in(claim.says, language))}</td><td>{said}</td></tr>")
        heads = "".join(f'<th scope="col">{_in(TOLD[x], language)}</th>' for x in ("experiment", "claim", "verdict"))
        table = f'<table class="plain"><thead><tr>{heads}</tr></thead><tbody>{"".join(rows)}</tbody></table>'
        body = _other("index", language) + table
        _write(folder / _file("index", language), whole(_in(TOLD["book"], language), body, language=language))
    _write(folder / "summary.md", summary(found))


def page(claim: Claim, record: dict[str, Any], language: str) -> str:
    """One claim: what it says, how it was tested, what came out."""
    figures: list[Figure] = record["figures"]
    verdict = Verdict(record["verdict"])
    parts = [_other(claim.name, language)]
    parts.append(f"<h2>{_in(TOLD['claim'], language)}</h2><p>{html.escape(_in(claim.says, language))}</p>")
    parts.append(f"<h2>{_in(TOLD['setup'], language)}</h2>")
    if record["quick"]:
        parts.append(f"<p><strong>{_in(TOLD['quick'], language)}</strong></p>")
    if record["data"] is not None:
        given = _in(TOLD["given"], language).format(record["data"])
        parts.append(f"<p><strong>{html.escape(given)}</strong></p>")
    else:
        parts.append(f"<p>{html.escape(_in(claim.setup, language))}</p>")
    if claim.live is not None:
        watched = io.StringIO()
        with contextlib.redirect_stdout(watched):
            claim.live(language)
        parts.append(f"<h2>{_in(TOLD['live'], language)}</h2><pre>{html.escape(watched.getvalue().strip())}</pre>")
    parts.append(f"<h2>{_in(TOLD['figures'], language)}</h2><p>{_in(TOLD['range'], language)}</p>")
    shown = claim if record["data"] is None else replace(claim, charts=tuple(_of_quality(c) for c in claim.charts))
    parts.append(charts(shown, figures, language))
    parts.append(f"<h2>{_in(TOLD['verdict'], language)}: {_in(TOLD[verdict], language)}</h2>")
    parts.append(f"<p>{_in(TOLD['rule'], language)}: {html.escape(_in(claim.rule, language))}</p>")
    parts.append(f"<p>{_in(TOLD['meaning'], language)}</p>")
    seeds = f"{_in(TOLD['seeds'], language)} {', '.join(map(str, record['seeds']))}"
    took = f"{_in(TOLD['took'], language)}: {record['minutes']:g}"
    told = f"{record['date']}, {record['machine']}, {seeds}; {took}"
    command = html.escape(_command(claim, record))
    parts.append(f"<h2>{_in(TOLD['again'], language)}</h2><p><code>{command}</code></p><p>{html.escape(told)}</p>")
    files = ", ".join(f'<a href="{claim.name}.{kind}">{claim.name}.{kind}</a>' for kind in ("json", "ipynb"))
    parts.append(f"<p>{_in(TOLD['notes'], language)}: {', '.join(claim.notes)}. {files}</p>")
    return whole(_in(claim.title, language), "".join(parts), language=language)


def _of_quality(drawn: Chart) -> Chart:
    return drawn._replace(says=TOLD["quality"]) if drawn.up == "right" else drawn


def _command(claim: Claim, record: dict[str, Any]) -> str:
    words = ["saccade lab", claim.name]
    words += ["--quick"] if record["quick"] else []
    words += [f"--data {record['data']}"] if record["data"] is not None else []
    asked = record["asked_minutes"] or (None if record["share"] == 1 else record["share"] * claim.minutes)
    return " ".join(words + ([f"--minutes {asked:g}"] if asked is not None else []))


def charts(claim: Claim, figures: Sequence[Figure], language: str = "en") -> str:
    """Every chart of a claim, as HTML."""
    return "".join(_drawn(figures, drawn, language) for drawn in claim.charts)


def _drawn(figures: Sequence[Figure], drawn: Chart, language: str) -> str:
    """A chart, and the same as a table."""
    series = [
        s._replace(name=_in(TOLD[s.name], language) if s.name in TOLD else s.name) for s in curves(figures, drawn)
    ]
    if not series:
        return ""
    along, up = _in(drawn.along, language), _in(drawn.says, language)
    if drawn.across is None:
        shown = bars(series, up)
        heads = f'<th scope="col">{html.escape(up)}</th>'
        rows = [f'<tr><th scope="row">{html.escape(s.name)}</th><td class="n">{_cell(s, 0)}</td></tr>' for s in series]
    else:
        shown = chart(series, along, up)
        heads = "".join(f'<th scope="col">{html.escape(s.name)}</th>' for s in series)
        rows = []
        for x in sorted({x for s in series for x in s.x}):
            cells = "".join(f'<td class="n">{_cell(s, x)}</td>' for s in series)
            rows.append(f'<tr><th scope="row">{x:g}</th>{cells}</tr>')
    return (
        f'{shown}<table class="plain"><caption>{html.escape(up)}</caption><thead><tr><th scope="col">'
        f"{html.escape(along)}</th>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
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


def notebook(claim: Claim) -> dict[str, Any]:
    """The claim's own module in cells that a student can change, small enough to run at once."""
    source = inspect.getsource(importlib.import_module(f"saccade.lab.{claim.name}"))
    setup = (
        "from pathlib import Path\nfrom saccade.lab.bench import Bench\n\n"
        "bench = Bench(Path('lab-notebook'), quick=True, again=True)  # quick=False for the sizes of the book\n"
        "figures = measure(bench)\nfigures[:5]"
    )
    shown = (
        "from IPython.display import HTML\nfrom saccade.lab.book import charts\nfrom saccade.see.page import whole\n\n"
        "HTML(whole(CLAIM.title.en, charts(CLAIM, figures)))"
    )
    cells = [
        _text(f"# {claim.title.en} · {claim.title.ko}\n\n{claim.says.en}\n\n{claim.says.ko}"),
        _text(f"{claim.setup.en}\n\n{claim.setup.ko}"),
        _code(source),
        *([] if claim.live is None else [_code(f"{claim.live.__name__}()")]),
        _code(setup),
        _text(f"**Rule.** {claim.rule.en}\n\n**규칙.** {claim.rule.ko}"),
        _code("str(judge(figures))"),
        _code(shown),
    ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def summary(found: dict[str, dict[str, Any] | None]) -> str:
    """A table of all verdicts, as Markdown."""
    lines = ["| claim | what the notes say | verdict | seeds | minutes | date |", "|---|---|---|---|---|---|"]
    for name, record in found.items():
        if record is not None:
            seeds = len(record["seeds"])
            what = f"**{record['verdict']}**" + (" (quick)" if record["quick"] else "")
            lines.append(
                f"| `{name}` | {record['says']} | {what} | {seeds} | {record['minutes']:g} | {record['date']} |"
            )
    machines = sorted({record["machine"] for record in found.values() if record is not None})
    return "\n".join(lines) + f"\n\nMachine: {'; '.join(machines)}.\n"


def _text(text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "id": _id(text), "metadata": {}, "source": text.splitlines(keepends=True)}


def _code(code: str) -> dict[str, Any]:
    lines = code.splitlines(keepends=True)
    empty: dict[str, Any] = {"execution_count": None, "metadata": {}, "outputs": []}
    return {"cell_type": "code", "id": _id(code), **empty, "source": lines}


def _id(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _in(words: Words, language: str) -> str:
    return words.ko if language == "ko" else words.en


def _file(name: str, language: str) -> str:
    return f"{name}.ko.html" if language == "ko" else f"{name}.html"


def _other(name: str, language: str) -> str:
    """A link to the same page in the other language and, from a claim, to the index."""
    to = "en" if language == "ko" else "ko"
    home = "" if name == "index" else f'<a href="{_file("index", language)}">{_in(TOLD["book"], language)}</a> · '
    return f'<p>{home}<a href="{_file(name, to)}" lang="{to}">{_in(TOLD["other"], language)}</a></p>'


def _with_pairs() -> list[str]:
    return [name for name in NAMES if claim_of(name).pairs]


def _write(path: Path, text: str) -> None:
    beside = path.with_name(path.name + ".part")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)
