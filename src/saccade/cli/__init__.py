"""The command line: words to stderr, data to stdout; exit codes 0, 1 failure, 2 usage, 130 interrupted.

It may import every room, but does so inside the commands: `saccade --help` must not wait for torch.
"""

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
def demo() -> None:
    """Walk from a Python dictionary to attention in five steps."""
    from saccade.lab.dictionary import tour

    tour()


def main() -> None:
    app()
