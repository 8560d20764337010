"""The command line: words to stderr, data to stdout; exit codes 0, 1 failure, 2 usage, 130 interrupted.

It may import every room, but does so inside the commands: `saccade --help` must not wait for torch.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

import saccade

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
            metavar="PAIRS | SRC TGT | TASK", help="A file of pairs, two parallel files, or a built-in task."
        ),
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="RUN", help="Folder for the run.")] = None,
    dev: Annotated[
        list[str] | None, typer.Option(help="Pairs to measure progress on; twice for parallel files.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="seq2seq, bahdanau, luong or transformer.")] = None,
    minutes: Annotated[
        float | None, typer.Option(help="About how long to train; the steps are planned for it.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Any setting, such as model.width=128; repeatable."),
    ] = None,
    resume: Annotated[Path | None, typer.Option(metavar="RUN", help="Go on with a run where it stopped.")] = None,
) -> None:
    """Train a model on pairs."""
    from saccade.cli.training import train_command

    with plainly():
        train_command(data or [], output, dev or [], model, minutes, settings or [], resume)


@app.command()
def translate(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a trained run.")],
    texts: Annotated[list[str] | None, typer.Argument(metavar="TEXT", help="What to translate.")] = None,
    input_file: Annotated[
        Path | None, typer.Option("--input", metavar="FILE", help="A text a line; - reads standard input.")
    ] = None,
    beam: Annotated[int, typer.Option(min=1, max=100, help="Hypotheses kept while searching.")] = 5,
    together: Annotated[
        list[Path] | None, typer.Option("--with", metavar="RUN", help="More runs to decode with as one; repeatable.")
    ] = None,
) -> None:
    """Write the target for each source: one line for each, in order."""
    from saccade.cli.training import translate_command

    with plainly():
        translate_command([run, *(together or [])], texts or [], input_file, beam)


@contextmanager
def plainly() -> Iterator[None]:
    """A mistake is one line on stderr and exit code 1, an interruption 130; never a traceback."""
    try:
        yield
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        raise typer.Exit(1) from None
    except OSError as error:
        print(f"error: {error.filename or ''}: {error.strerror}", file=sys.stderr)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        raise typer.Exit(130) from None


@app.command()
def demo() -> None:
    """Walk from a Python dictionary to attention in five steps."""
    from saccade.lab.dictionary import tour

    tour()


def main() -> None:
    app()
