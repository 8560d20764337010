"""What `saccade see` does: attention that was saved, by us or by others, looked at again. No model is needed."""

import json
import os
import re
import shutil
import sys
from pathlib import Path

from saccade.cli.words import check_place, say
from saccade.data import Pair, Source
from saccade.errors import UsageError
from saccade.see import Prediction, from_links, read_soft
from saccade.see.files import SEVERAL, VIEWED, check_ending
from saccade.see.files import save as save_all
from saccade.see.views import warnings_of


def see_command(file: Path, pairs: Source | None, save: Path | None, view: str | None) -> None:
    if save is not None:
        if check_ending(save) not in VIEWED and view is not None:
            raise UsageError(f"--view: {save.suffix} holds every view")
        check_place(save)
    predictions = _read(file, pairs)
    for number, p in enumerate(predictions, 1):
        for what in warnings_of(p):
            say(f"sentence {number}: {what}")
    if save is None:
        colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        width = shutil.get_terminal_size((100, 24)).columns
        print("\n\n".join(p.drawn(colour, width, view) for p in predictions))
    elif len(predictions) > 1 and save.suffix.lower() not in SEVERAL:
        raise UsageError(f"--save {save}: {len(predictions)} sentences fit into {' '.join(SEVERAL)} only")
    else:
        save_all(predictions, save, view)
        say(f"saved: {save}")


def _read(file: Path, pairs: Source | None) -> list[Prediction]:
    """Records of ours, a line each; soft alignments; or, with the pairs they belong to, links."""
    try:
        with file.open(encoding="utf-8", errors="replace") as opened:
            start = opened.read(1000)
    except OSError as error:
        raise ValueError(f"{file}: {error.strerror}") from None
    if pairs is not None:
        found = [p for p in pairs.stream() if isinstance(p, Pair)]
        try:
            return from_links(found, file.read_text(encoding="utf-8").splitlines())
        except ValueError as error:
            raise ValueError(f"{file}: {error}") from None
    if start.lstrip().startswith("{"):
        return _records(file, file.read_text(encoding="utf-8", errors="replace"))
    if "|||" in start:
        return read_soft(file)
    raise ValueError(f"{file}: neither records of predictions nor soft alignments; links i-j need --pairs")


def _records(file: Path, text: str) -> list[Prediction]:
    """One after the other, a line each or however they are laid out."""
    predictions, place, decoder = [], 0, json.JSONDecoder()
    while start := re.compile(r"\S").search(text, place):
        try:
            record, place = decoder.raw_decode(text, start.start())
            predictions.append(Prediction.read(record))
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{file}:{text.count(chr(10), 0, start.start()) + 1}: {error}") from None
    return predictions
