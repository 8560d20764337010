"""What `saccade evaluate` and `saccade info` do once torch may be loaded."""

import json
import sys
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from saccade.cli.words import Meter, check_place, say
from saccade.data import Corpus, Frame, Source, readable
from saccade.errors import UsageError
from saccade.evaluate import (
    NAMES,
    TEXT,
    Health,
    Judged,
    Report,
    System,
    against,
    comparison_page,
    comparison_record,
    counted,
    evaluate,
    health,
    judge,
    likely,
    of_outputs,
    of_run,
    read_outputs,
    report_page,
)
from saccade.files import write_whole
from saccade.metrics import read_gold
from saccade.search import Options, Translator
from saccade.see import Prediction
from saccade.see.terminal import printable
from saccade.train import Run, load
from saccade.train.start import place

CAPTIONS = tuple(NAMES)[len(TEXT) :]
SHOWN_WORDS, SHOWN_SENTENCES = 10, 5
MOST_LINKS = 20  # of a sample
SYMBOLS = ("exact", "wer", "per", "cer", "bleu", "chrf", "ter")  # what says most stands first


def evaluate_command(
    runs: list[Path],
    test: Source,
    options: Options,
    as_json: bool,
    gold: Path | None = None,
    attention: bool = False,
    page: Path | None = None,
) -> None:
    check_page(page)
    links = None
    if gold is not None:
        links, first = read_gold(gold)
        say(f"{gold}: words count from {first}, as {'a' if first == 0 else 'no'} link has a 0")
    translator, test = _loaded(*runs), _as_called(test, runs)
    corpus = _corpus(translator, test, runs)
    if links is not None and corpus.skipped:
        raise ValueError(f"{gold}: has a line for each pair, but {len(corpus.skipped)} lines of the test were left out")
    judged = None if links is None else judge(translator, corpus.pairs, links, Meter("pairs", logged=False))
    meter = Meter("sources", logged=False)
    report = evaluate(translator, corpus.pairs, options, look=attention or page is not None, watch=meter)
    looked = health(report.predictions) if attention else None
    if attention and looked is None:
        raise ValueError(f"{runs[0]}: has no attention to judge")
    if as_json:
        record = {"run": [str(r) for r in runs], "test": test.paths, "beam": options.beam, **report.record()}
        record["counts"]["skipped"] = len(corpus.skipped)
        if judged is not None:
            record["gold"] = [{"by": way, **found._asdict()} for way, found in judged]
        if looked is not None:
            record["attention"] = looked.record()
        print(json.dumps(record, ensure_ascii=False))
    else:
        console = Console(file=sys.stdout)
        print_report(report, console)
        if judged is not None:
            print_judged(judged, console)
        if looked is not None:
            print_health(looked, console)
    if page is not None:
        shown = System(" + ".join(r.name for r in runs), report, translator, Run.open(runs[0]).notes())
        write_whole(page, report_page(shown, f"{runs[0].name} on {test.paths[0]}", judged).encode())
    say_lost(report)


def compare_command(systems: list[str], test: Source, options: Options, output: Path | None, as_json: bool) -> None:
    if output is None and not as_json:
        raise UsageError("say where to: -o report.html, or --json")
    check_page(output)
    runs = _runs(systems)
    test = _as_called(test, list(runs.values()))
    found: dict[str, System] = {}
    if not runs:
        corpus = _read(test)
        if test.pictures:
            raise ValueError(f"{systems[0]}: is no run of saccade; of pictures, one of those compared must be")
        _say_skipped(corpus, test)
    for name, path in runs.items():
        translator = _loaded(path)
        corpus = _corpus(translator, test, [path])
        say(f"{name}: {counted(len({p.source for p in corpus.pairs}), 'source')}")
        meter = Meter("sources", logged=False)
        found[name] = of_run(name, translator, corpus.pairs, options, Run.open(path).notes(), meter)
    kinds = {s.report.symbols for s in found.values()}
    spelt = not any(len(p.target.split()) > 1 for p in corpus.pairs)  # where no run says it, or each its own
    symbols = kinds.pop() if len(kinds) == 1 else spelt
    found = {name: replace(s, report=replace(s.report, symbols=symbols)) for name, s in found.items()}
    for name in systems:
        if name not in runs:
            found[name] = of_outputs(name, read_outputs(Path(name)), corpus.pairs, symbols, test.pictures)
    ordered = [found[name] for name in systems]
    if output is not None:
        told = comparison_page(ordered, corpus.pairs, f"{len(ordered)} systems on {test.paths[0]}")
        write_whole(output, told.encode())
    if as_json:
        print(json.dumps(comparison_record(ordered, corpus.pairs), ensure_ascii=False))
        return
    console = Console(file=sys.stdout)
    main = ordered[0].report.main
    table = Table("system", NAMES[main], "95% interval", title=_title(ordered[0].report), title_justify="left")
    for s in ordered:
        low, high = s.report.intervals[main]
        table.add_row(escape(s.name), f"{s.report.scores[main]:.2f}", f"{low:.1f} – {high:.1f}")
    console.print(table)
    for a in against(ordered):
        told = f"{a.better} over {a.worse}: {a.difference:+.2f} (p {likely(a.chance)}, paired bootstrap)"
        console.print(told, highlight=False, markup=False)


def check_page(path: Path | None) -> None:
    """Whether a page can be written there, before anything is computed."""
    if path is None:
        return
    if path.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"{path}: a page is HTML; call it {path.with_suffix('.html')}")
    check_place(path)


def _as_called(test: Source, runs: list[Path]) -> Source:
    """The test with what the data of a run called its sides: in what order a file has them says nothing; what it was
    taken for is said.
    """
    for line in test.recognised():
        say(line)
    sections = [Run.open(path).config.data for path in runs]
    return replace(test, names=next((names for s in sections if (names := s.names or s.langs)), None))


def _corpus(translator: Translator, test: Source, runs: list[Path]) -> Corpus:
    """What is measured on; what was left out is said, and so is what flatters."""
    corpus = _read(test)
    if translator.reads_pictures != test.pictures:
        reads = "pictures" if translator.reads_pictures else "text"
        raise ValueError(f"{test.paths[0]}: the run reads {reads}, and this is something else")
    if isinstance(translator.source, Frame):
        corpus, translator.pictures = readable(corpus, translator.source, Meter("pictures"))
    _say_skipped(corpus, test)
    parts = {test.part} if test.task else test.album.parts() if test.album else set()
    if test.part not in parts and any(_files(Source(Run.open(r).config.data.train)) == _files(test) for r in runs):
        say(f"{test.paths[0]}: the run was trained on these, so the figures flatter it")
    return corpus


def _files(source: Source) -> list[str]:
    """What a source is read from, whether its album was named by its folder or by the file in it."""
    try:
        album = source.album
        return place(source.paths if album is None else [str(file) for file in album.listings])
    except ValueError:  # its captions are gone
        return place(source.paths)


def _read(test: Source) -> Corpus:
    corpus = Corpus()
    corpus.pairs += corpus.sift(test.stream())
    return corpus


def _say_skipped(corpus: Corpus, test: Source) -> None:
    for line in corpus.report():
        say(line)
    if not corpus.pairs:
        raise ValueError(f"{test.paths[0]}: nothing to measure on")


def print_report(report: Report, console: Console) -> None:
    names = [n for n in (*CAPTIONS, *(SYMBOLS if report.symbols else TEXT)) if n in report.scores]
    table = Table("", "score", "95% interval", title=_title(report), title_justify="left")
    for name in names:
        ends = report.intervals.get(name)
        between = f"{ends[0]:.1f} – {ends[1]:.1f}" if ends else ""
        table.add_row(NAMES[name], f"{report.scores[name]:.2f}", between)
    console.print(table)
    for name, signature in report.signatures.items():
        console.print(f"{NAMES[name]}: {signature}", highlight=False, soft_wrap=True)
    if "ter" not in report.scores:
        console.print("TER: not counted, since trying every shift of so many wrong symbols takes minutes")
    if len(report.by_length) > 1:
        main = "exact" if report.symbols else "BLEU"
        table = Table(f"{report.unit} in the source", "sources", main, "95% interval")
        for b in report.by_length:
            score, (low, high) = (b.exact, b.exact_interval) if report.symbols else (b.bleu, b.bleu_interval)
            between = f"{b.first}–{b.last}" if b.last > b.first else f"{b.first}"
            table.add_row(between, f"{b.sources:,}", f"{score:.1f}", f"{low:.1f} – {high:.1f}")
        console.print(table)
    if report.confusions:
        table = Table("wanted", "written", "times")
        for wanted, written, count in report.confusions:
            table.add_row(escape(wanted), escape(written), str(count))
        console.print(table)


def print_judged(judged: list[Judged], console: Console) -> None:
    table = Table(
        "links by",
        "AER",
        "precision",
        "recall",
        title="against the gold links, in percent, on every other sentence; what is best was picked on the rest",
    )
    for way, found in judged:
        table.add_row(way, *(f"{x:.1f}" for x in found))
    console.print(table)


def print_health(looked: Health, console: Console) -> None:
    table = Table("what the attention tells", "", title="entropies in nats")
    for name, value in looked.figures.items():
        table.add_row(name.replace("_", " "), f"{value:.3f}")
    console.print(table)
    table = Table("kind of word", "times", "entropy")
    for kind, times, value in looked.classes:
        table.add_row(kind, f"{times:,}", f"{value:.3f}")
    console.print(table)
    table = Table("common word", "times", "entropy")
    for word, times, value in looked.words[:SHOWN_WORDS]:
        table.add_row(escape(printable(word)), f"{times:,}", f"{value:.3f}")
    console.print(table)
    table = Table("most scattered", "source", "output")
    for value, p in looked.worst[:SHOWN_SENTENCES]:
        table.add_row(f"{value:.3f}", escape(printable(p.source[:60])), escape(printable(p.text[:60])))
    console.print(table)
    for what, sources in looked.ailments:
        console.print(f"{sources:,} of the outputs: {what}")


def print_score(report: Report, console: Console, where: str = "dev:") -> None:
    """One line: the figure that says most, its interval, and how it was computed."""
    main = report.main
    low, high = report.intervals[main]
    signature = report.signatures.get(main) or "percent of outputs that are right in every symbol"
    console.print(
        f"{where} {NAMES[main]} {report.scores[main]:.2f} (95%: {low:.1f} – {high:.1f}) "
        f"of {counted(report.counts['sources'], 'source')}, beam 5; {signature}",
        highlight=False,
        soft_wrap=True,
    )


def say_lost(report: Report) -> None:
    """What of the sources or outputs fell by the wayside."""
    for name, what in (
        ("unknown", "had symbols that the model does not know"),
        ("cut_source", "were longer than the model reads, and cut"),
        ("cut_output", "reached the limit of the output, and were cut"),
    ):
        if report.counts[name]:
            say(f"{report.counts[name]} of {counted(report.counts['sources'], 'source')} {what}")


def print_samples(translator: Translator, sources: list[str], console: Console) -> None:
    """What it writes and, of texts, which word came from which or, where words are spelt, which symbol."""
    table = Table("source", "output", *([] if translator.reads_pictures else ["alignment"]))
    for p in translator(sources):
        links = _symbol_links(p) if translator.symbols else p.pharaoh().split()
        told = " ".join([*links[:MOST_LINKS], *(["…"] if len(links) > MOST_LINKS else [])])
        cells = (p.source, p.text, told)[: len(table.columns)]
        table.add_row(*(escape(printable(x)) for x in cells))
    console.print(table)


def _loaded(*paths: Path) -> Translator:
    """Runs to be measured; one that was stopped on its way is said to be."""
    translator = load(*paths)
    for run in map(Run.open, paths):
        if run.checkpoints() and not run.finished():
            say(f"{run.path}: its training is not finished; these are its best weights so far")
    return translator


def _runs(systems: list[str]) -> dict[str, Path]:
    """Those of the systems that are runs; that the others are files is found out before anything is translated."""
    if len(set(systems)) < len(systems):
        raise UsageError("a system stands there twice")
    runs = {name: Path(name) for name in systems if (Path(name) / "config.toml").exists()}
    for name in systems:
        if name not in runs and not Path(name).is_file():
            raise ValueError(f"{name}: neither a run nor a file of outputs")
    return runs


def _symbol_links(p: Prediction) -> list[str]:
    """For each symbol that was written, the one of the source that was looked at most: `c→k`."""
    if p.weights is None or not p.source_tokens:
        return []
    seen = [p.source_tokens[n].text for n in p.weights[:-1].argmax(1)]  # the end is no symbol
    return [f"{s.strip() or '␣'}→{t.text.strip() or '␣'}" for s, t in zip(seen, p.target_tokens, strict=False)]


def _title(report: Report) -> str:
    told = (counted(report.counts[f"{what}s"], what) for what in ("source", "reference"))
    return f"{', '.join(told)}; all figures in percent"


def info_command(path: Path, as_json: bool) -> None:
    """What a run is, what it was trained on, how good it was."""
    run = Run.open(path)
    facts = run.facts()
    if as_json:
        print(json.dumps(facts, ensure_ascii=False))
        return
    console = Console(file=sys.stdout)
    table = Table(show_header=False, title=str(path), title_justify="left")
    for name, value in facts.items():
        table.add_row(name.replace("_", " "), escape(_shown(value)))
    console.print(table)


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return "\n".join(f"{k} = {_shown(v)}" for k, v in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
