"""The command line: words to stderr, data to stdout; exit codes 0, 1 failure, 2 usage, 130 interrupted.

It may import every room, but does so inside the commands: `saccade --help` must not wait for torch.
"""

import os
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import saccade
from saccade.cli.options import (
    Beam,
    Columns,
    CoveragePenalty,
    Force,
    Inside,
    Json,
    Languages,
    LengthPenalty,
    NBest,
    Occlude,
    Output,
    Part,
    Prefix,
    RunFolder,
    Sample,
    Save,
    Seed,
    Show,
    Strict,
    Temperature,
    TopK,
    TopP,
    View,
    Whole,
    Width,
    With,
)
from saccade.cli.words import say
from saccade.errors import UsageError, too_large

if TYPE_CHECKING:
    from saccade.data import Source
    from saccade.data.records import Columns as Chosen

BEGAN = time.perf_counter()  # a budget in minutes counts from here, before torch is loaded
# Threads that wait for each other give way soon: nearly as quick on a quiet machine, many times quicker on one that has
# other work (docs/benchmarks.md). Read when torch is loaded.
os.environ.setdefault("GOMP_SPINCOUNT", "1000")

app = typer.Typer(
    name="saccade",
    help="Sequence-to-sequence models with attention that show every glance.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _version(asked: bool) -> None:
    if asked:
        print(f"saccade {saccade.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


@app.command()
def train(
    data: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PAIRS | SRC TGT | PICTURES | TASK",
            help="A file of pairs, two parallel files, a folder of pictures with captions, or a built-in task.",
        ),
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="RUN", help="Folder for the run.")] = None,
    dev: Annotated[
        list[str] | None, typer.Option(help="Pairs to measure progress on; twice for parallel files.")
    ] = None,
    minutes: Annotated[
        float | None, typer.Option(help="Wall-clock budget of the whole command; 5 if nothing else says how long.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="seq2seq, bahdanau, luong or transformer; if not given, what suits the data.")
    ] = None,
    score: Annotated[str | None, typer.Option(help="How bahdanau and luong compare state and memory.")] = None,
    preset: Annotated[str, typer.Option(help="tiny, small or base; auto picks by the amount of data.")] = "auto",
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Settings as TOML; `saccade config` prints them all.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Any setting, such as model.width=128; repeatable."),
    ] = None,
    init: Annotated[Path | None, typer.Option(metavar="RUN", help="Start from the weights of this run.")] = None,
    resume: Annotated[Path | None, typer.Option(metavar="RUN", help="Go on with a run where it stopped.")] = None,
    force: Annotated[bool, typer.Option(help="Replace a run that stands where the new one should go.")] = False,
    columns: Columns = None,
    langs: Annotated[
        str | None,
        typer.Option(metavar="KO-EN", help="Languages, for who serves it; they choose in TMX, JSON or a header."),
    ] = None,
    strict: Strict = False,
    device: Annotated[str | None, typer.Option(help="cpu, or what torch knows of besides, such as cuda.")] = None,
) -> None:
    """Train a model on pairs, of texts or of pictures and what is said of them."""
    with plainly():
        from saccade.cli.training import collect, train_command

        options = {
            "model.family": model,
            "model.score": score,
            "train.minutes": minutes,
            "train.device": device,
            "data.columns": _columns(columns),
            "data.langs": _langs(langs),
            "data.strict": strict or None,
        }
        asked = collect(data or [], dev or [], options, config, settings or [])
        train_command(asked, output, preset, init, resume, force, BEGAN)


def _columns(columns: str | None) -> "Chosen | None":
    if columns is None:
        return None
    try:
        first, second = (tuple(int(c) for c in side.split("+")) for side in columns.split(","))
        if min(*first, *second) < 1:
            raise ValueError
    except ValueError:
        raise UsageError(f"--columns {columns}: expected two numbers from 1, such as 1,3 or 1+3,2") from None
    return first if len(first) > 1 else first[0], second if len(second) > 1 else second[0]


def _langs(langs: str | None) -> tuple[str, str] | None:
    if langs is None:
        return None
    first, _, second = langs.partition("-")
    if not (first and second):
        raise UsageError(f"--langs {langs}: expected two names, such as ko-en")
    return first, second


@app.command("config")
def show_config() -> None:
    """Print every setting with its meaning, as a file for `saccade train --config`."""
    from saccade.config.manual import manual

    print(manual())


def _test(paths: list[str], part: str | None, columns: str | None, langs: str | None, strict: bool) -> "Source":
    """What is measured on; a part is only of what has parts."""
    from saccade.data import Source
    from saccade.errors import unknown

    if part not in (None, "train", "dev", "test"):
        raise unknown("part", part, ("train", "dev", "test"))
    test = Source(paths, part or "test", _columns(columns), _langs(langs), strict)
    there = all(Path(path).exists() for path in paths)
    if part is not None and there and test.task is None and not (test.album and test.album.parts()):
        raise UsageError(f"--part {part}: {' and '.join(paths)} has no parts, unlike a built-in task; leave it out")
    return test


@app.command()
def evaluate(
    run: RunFolder,
    test: Annotated[
        list[str],
        typer.Argument(
            metavar="TEST | SRC REF", help="Pairs, two parallel files, pictures with captions, or a task's test part."
        ),
    ],
    beam: Width = 5,
    length_penalty: LengthPenalty = None,
    as_json: Whole = False,
    together: With = None,
    columns: Columns = None,
    langs: Languages = None,
    strict: Strict = False,
    part: Part = None,
    gold: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Links that people drew, i-j and ipj: AER of the attention.")
    ] = None,
    attention: Annotated[bool, typer.Option(help="Also tell how it looked: entropy, coverage, the worst.")] = False,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also a page: scores, curves, the best and the worst.")
    ] = None,
) -> None:
    """Measure a run on pairs it has not seen: scores with intervals, by length."""
    with plainly():
        from saccade.cli.evaluation import evaluate_command
        from saccade.cli.translation import check_penalties, options_of

        check_penalties(beam, (length_penalty, 0.0))
        options = options_of(beam, length_penalty=length_penalty)
        source = _test(test, part, columns, langs, strict)
        evaluate_command([run, *(together or [])], source, options, as_json, gold, attention, report)


@app.command()
def compare(
    systems: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN… TEST", help="Runs, or files with a line for each output, and the test at the end."
        ),
    ],
    reference: Annotated[
        str | None, typer.Option("--ref", metavar="FILE", help="The targets, if TEST holds just the sources.")
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="A page, .html.")] = None,
    beam: Width = 5,
    as_json: Whole = False,
    columns: Columns = None,
    langs: Languages = None,
    part: Part = None,
) -> None:
    """Systems side by side: scores and their differences, by length, and where they look."""
    with plainly():
        from saccade.cli.evaluation import compare_command
        from saccade.search import Options

        if len(systems) < 2:
            raise UsageError("give the systems to compare, and then the test")
        paths = [systems[-1], *([reference] if reference else [])]
        test = _test(paths, part, columns, langs, False)
        compare_command(systems[:-1], test, Options(beam), output, as_json)


@app.command()
def info(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")],
    as_json: Whole = False,
) -> None:
    """Tell what a run is, what it was trained on, how good it is."""
    with plainly():
        from saccade.cli.evaluation import info_command

        info_command(run, as_json)


@app.command()
def translate(
    run: RunFolder,
    texts: Annotated[list[str] | None, typer.Argument(metavar="TEXT", help="What to translate.")] = None,
    input_file: Annotated[
        Path | None,
        typer.Option("--input", metavar="FILE", help="A text a line, gzipped or not; - reads standard input."),
    ] = None,
    output: Output = None,
    beam: Beam = None,
    nbest: NBest = 1,
    as_json: Json = False,
    alignments: Annotated[
        bool, typer.Option(help="After each output a tab and i-j: its word j came from the text's word i, from 0.")
    ] = False,
    show: Show = False,
    occlude: Occlude = False,
    inside: Inside = False,
    save: Save = None,
    view: View = None,
    length_penalty: LengthPenalty = None,
    coverage_penalty: CoveragePenalty = 0.0,
    sample: Sample = False,
    temperature: Temperature = 1.0,
    top_k: TopK = 0,
    top_p: TopP = 1.0,
    seed: Seed = 0,
    prefix: Prefix = "",
    force: Force = None,
    together: With = None,
) -> None:
    """Write the target for each source: one line for each, in order."""
    with plainly():
        from saccade.cli.translation import Views, search_options, translate_command

        penalties, draws = (length_penalty, coverage_penalty), (temperature, top_k, top_p, seed)
        options = search_options(beam, nbest, penalties, sample, draws, prefix, force)
        views = Views(as_json, alignments, show, save, occlude, inside, view)
        translate_command([run, *(together or [])], texts or [], input_file, output, options, prefix, force, views)


@app.command()
def caption(
    run: RunFolder,
    pictures: Annotated[list[str] | None, typer.Argument(metavar="IMAGE", help="Pictures to describe.")] = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--input", metavar="FOLDER", help="All pictures of a folder: in the order of its captions, then by name."
        ),
    ] = None,
    output: Output = None,
    beam: Beam = None,
    nbest: NBest = 1,
    as_json: Json = False,
    names: Annotated[
        bool | None,
        typer.Option(
            "--names/--no-names", help="Before each caption its picture and a tab.", show_default="names for a folder"
        ),
    ] = None,
    show: Show = False,
    occlude: Occlude = False,
    inside: Inside = False,
    save: Save = None,
    view: View = None,
    length_penalty: LengthPenalty = None,
    coverage_penalty: CoveragePenalty = 0.0,
    sample: Sample = False,
    temperature: Temperature = 1.0,
    top_k: TopK = 0,
    top_p: TopP = 1.0,
    seed: Seed = 0,
    prefix: Prefix = "",
    force: Force = None,
    together: With = None,
) -> None:
    """Say what is in each picture, or read what is written there: one line for each, in order."""
    with plainly():
        from saccade.cli.translation import Views, caption_command, search_options

        penalties, draws = (length_penalty, coverage_penalty), (temperature, top_k, top_p, seed)
        options = search_options(beam, nbest, penalties, sample, draws, prefix, force)
        views = Views(as_json, False, show, save, occlude, inside, view, names)
        caption_command([run, *(together or [])], pictures or [], folder, output, options, prefix, force, views)


@app.command()
def see(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="What --json or --save wrote, soft alignments, or links.")
    ],
    pairs: Annotated[
        list[str] | None,
        typer.Option(metavar="PAIRS", help="The sentences that links i-j belong to; twice for two files."),
    ] = None,
    save: Save = None,
    view: View = None,
) -> None:
    """Look at attention that was saved, by saccade or by another system: Nematus' soft alignments, Pharaoh's links."""
    with plainly():
        from saccade.cli.seeing import see_command
        from saccade.data import Source

        see_command(file, Source(pairs, "test", None, None, True) if pairs else None, save, view)


@contextmanager
def plainly() -> Iterator[None]:
    """A mistake is one line on stderr and exit code 1, an interruption 130; never a traceback. A warning is a line."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_, **__: say(str(message))
            yield
    except ValueError as error:
        say(f"error: {error}")
        raise typer.Exit(2 if isinstance(error, UsageError) else 1) from None
    except BrokenPipeError:  # who reads has seen enough, as in `… | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing is left to fail at the end
        raise typer.Exit(1) from None
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        say(f"error: {where}{error.strerror}")
        raise typer.Exit(1) from None
    except (MemoryError, RuntimeError) as error:
        if not too_large(error):
            raise
        say("error: not enough memory: shorter texts, a smaller --beam or a smaller model need less")
        raise typer.Exit(1) from None
    except KeyboardInterrupt as stopped:
        if type(stopped) is KeyboardInterrupt:  # a run that was stopped has said so
            say("interrupted")
        raise typer.Exit(130) from None


@app.command()
def demo(
    task: Annotated[str, typer.Argument(metavar="[dates|scenes]", help="What to learn.")] = "dates",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="RUN", help="Folder for the run; an earlier demo is replaced."),
    ] = None,
) -> None:
    """Train the built-in reader of dates in about a minute, or of scenes in twelve, and show where it looks."""
    with plainly():
        from saccade.cli.demo import demo_command

        where = output or Path("saccade-demo" if task == "dates" else f"saccade-demo-{task}")
        demo_command(task, where, sys.stdout.isatty() and "NO_COLOR" not in os.environ, BEGAN)


@app.command()
def lab(
    claim: Annotated[str | None, typer.Argument(help="Which experiment; without it, all are listed.")] = None,
    every: Annotated[bool, typer.Option("--all", help="All of them, as a book.")] = False,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where the book is kept.")] = Path(
        "lab"
    ),
    minutes: Annotated[float | None, typer.Option(min=0, help="Train longer or shorter than usual.")] = None,
    quick: Annotated[bool, typer.Option(help="At toy size, one seed: which way it points.")] = False,
    data: Annotated[
        Path | None, typer.Option(metavar="PAIRS", help="Your own pairs in place of the built-in task.")
    ] = None,
) -> None:
    """Test what the lecture notes claim: measured, judged by a rule that stands in code, written as pages."""
    with plainly():
        from saccade.cli.laboratory import lab_command

        lab_command(claim, every, output, minutes, quick, data)


@app.command()
def serve(
    runs: Annotated[
        list[str], typer.Argument(metavar="RUN", help="Runs to serve, by their folder's name or NAME=RUN.")
    ],
    host: Annotated[str, typer.Option(help="Address; another than loopback needs SACCADE_API_KEY.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535)] = 8000,
    no_auth: Annotated[bool, typer.Option("--no-auth", help="Serve others without a key.")] = False,
    allow_host: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Names it may be called by.")] = None,
    langs: Annotated[
        list[str] | None, typer.Option(metavar="SRC-TGT", help="Languages for LibreTranslate's clients; NAME=ko-en.")
    ] = None,
    limit: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=NUMBER", help="Another ceiling than those at /v1/limits, such as characters=20000."),
    ] = None,
    threads: Annotated[int, typer.Option(min=1, help="Threads of each model.")] = 1,
) -> None:
    """Serve runs over HTTP: a page, an API, LibreTranslate's too. The key, if any, is SACCADE_API_KEY."""
    with plainly():
        try:
            from saccade.serve.limits import Limits
            from saccade.serve.run import serve as run_service
        except ModuleNotFoundError as error:
            raise UsageError(f"{error.name} is not installed: pip install 'saccade[serve]'") from None
        key = os.environ.get("SACCADE_API_KEY") or None
        run_service(
            runs,
            host,
            port,
            key=key,
            no_auth=no_auth,
            allow=allow_host or [],
            langs=langs or [],
            threads=threads,
            limits=Limits.given(limit or []),
        )


def main() -> None:
    app()
