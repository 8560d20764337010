"""Predictions as files: the ending says how they are written, and a file is whole or not there."""

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from saccade.errors import unknown
from saccade.files import write_whole
from saccade.see.interchange import write_links, write_soft
from saccade.see.page import page
from saccade.see.views import places_of, view

if TYPE_CHECKING:
    from saccade.see.prediction import Prediction

ENDINGS = (".json", ".csv", ".txt", ".soft", ".pharaoh", ".html", ".png", ".svg", ".pdf")
SEVERAL = (".html", ".json", ".txt", ".soft", ".pharaoh")  # which can hold several predictions
VIEWED = (".csv", ".txt", ".png", ".svg", ".pdf")  # which show one view of them


def save(predictions: Sequence["Prediction"], path: Path, name: str | None = None) -> None:
    """Writes predictions as the ending says; `name` is that of a view."""
    kind = check_ending(path)
    if name is not None and kind not in VIEWED:
        raise ValueError(f"view: is for {' '.join(VIEWED)}; {kind} holds every view")
    if len(predictions) > 1 and kind not in SEVERAL:
        raise ValueError(f"{path}: one fits into {kind}, and these are {len(predictions)}; use {' '.join(SEVERAL)}")
    write_whole(path, _content(predictions, path, name))  # all of it is made before the file is touched


def check_ending(path: Path) -> str:
    """How a file is to be written, by its ending."""
    kind = path.suffix.lower()
    if kind not in ENDINGS:
        raise unknown("ending", kind, ENDINGS)
    return kind


def _content(predictions: Sequence["Prediction"], path: Path, name: str | None) -> bytes:
    match kind := path.suffix.lower():
        case ".json":  # a record a line
            lines = (json.dumps(p.record(picture=True), ensure_ascii=False) + "\n" for p in predictions)
            return "".join(lines).encode()
        case ".txt":
            return ("\n\n".join(p.drawn(colour=False, view=name) for p in predictions) + "\n").encode()
        case ".csv":
            return _table(predictions[0], name).encode()
        case ".soft":
            return write_soft(predictions).encode()
        case ".pharaoh":
            return write_links(predictions).encode()
        case ".html":
            sources = {p.source for p in predictions}
            return page(predictions, title=sources.pop() if len(sources) == 1 else path.stem).encode()
    from saccade.see.picture import picture  # noqa: PLC0415  (matplotlib, only where a picture is drawn)

    return picture(predictions[0], kind[1:], name)


def _table(p: "Prediction", name: str | None) -> str:
    """The weights with their labels: the first row is the source, the first column what was written; then what is known
    of each row.
    """
    out = io.StringIO()
    writer = csv.writer(out)
    if p.weights is None:
        writer.writerows([["", *(t.text for t in p.source_tokens)], *([t.text] for t in p.target_tokens)])
        return out.getvalue()
    shown = view(p, name)
    known: dict[str, Sequence[Any]] = {
        "p": shown.probabilities,
        "entropy": [shown.entropy(i) for i in range(len(shown.rows))],
        "β": shown.gates,
        "p hidden": [hidden for hidden, _ in shown.occluded],
        "p others hidden": [others for _, others in shown.occluded],
        "instead": ["; ".join(f"{text.strip()} {share:.3f}" for text, share in row) for row in shown.instead],
    }
    known = {column: values for column, values in known.items() if values}
    writer.writerow(["", *(shown.columns or places_of(p)), *known])
    for i, (row, weights) in enumerate(zip(shown.rows, shown.weights, strict=True)):
        cells = (*weights.tolist(), *(values[i] for values in known.values()))
        writer.writerow([row, *(x if isinstance(x, str) else f"{x:.6g}" for x in cells)])
    return out.getvalue()
