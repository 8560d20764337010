"""The alignment picture of the papers: source above, what was written on the left."""

import io
import warnings
from typing import Any

import numpy as np

from saccade.see.prediction import Prediction
from saccade.see.terminal import printable

FONTS = [
    "Noto Sans CJK KR",
    "Noto Sans CJK JP",
    "NanumGothic",
    "Malgun Gothic",
    "AppleGothic",
    "Unifont",
    "DejaVu Sans",
]


def picture(prediction: Prediction, kind: str) -> bytes:
    """PNG, SVG or PDF of the weights [T, N]."""
    import matplotlib as mpl  # noqa: PLC0415  (half a second, only where a picture is drawn)
    from matplotlib.figure import Figure  # noqa: PLC0415

    if prediction.weights is None:
        raise ValueError("this model has no attention to draw")
    if prediction.grid is not None:
        return _overlay(prediction, kind)
    rows, columns = prediction.weights.shape
    names = [f.name for f in mpl.font_manager.fontManager.ttflist]
    settings: Any = {
        "font.family": [f for f in FONTS if f in names] or ["sans-serif"],
        "svg.fonttype": "none",  # text stays text: the reader's fonts draw it
    }
    with mpl.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure = Figure(figsize=(1.5 + 0.32 * columns, 1.2 + 0.32 * rows), layout="constrained")
        axes = figure.add_subplot()
        axes.imshow(prediction.weights, cmap="Greys", vmin=0, vmax=1, aspect="equal")
        axes.set_xticks(range(columns), [_label(t.text) for t in prediction.source_tokens], rotation=90)
        axes.set_yticks(range(rows), [_label(t.text) for t in prediction.target_tokens])
        axes.xaxis.tick_top()
        axes.tick_params(length=0)
        out = io.BytesIO()
        figure.savefig(out, format=kind, dpi=150, metadata={"Date": None} if kind == "svg" else None)
    return out.getvalue()


def _overlay(prediction: Prediction, kind: str) -> bytes:
    """The picture once for each word, dark but for where the model looked: the true grid, one scale for all words."""
    from matplotlib.figure import Figure  # noqa: PLC0415

    assert prediction.grid is not None
    assert prediction.weights is not None
    if prediction.picture is None:
        raise ValueError("the record of a prediction has no picture to draw upon; give the picture to the model again")
    height, width = prediction.picture.shape[:2]
    grids = prediction.weights.reshape(-1, *prediction.grid)
    most, cells = max(1e-9, float(grids.max())), grids[0].size
    columns = min(5, len(grids) + 1)
    rows = -(-(len(grids) + 1) // columns)
    shape = (2.2 * columns, rows * (0.5 + 2.2 * height / width))
    figure = Figure(figsize=shape, layout="constrained")
    for i in range(rows * columns):
        axes = figure.add_subplot(rows, columns, i + 1)
        axes.axis("off")
        if i > len(grids):
            continue
        axes.imshow(prediction.picture, extent=(0, width, height, 0))
        if i == 0:
            continue
        dark = np.zeros((*grids[i - 1].shape, 4), np.float32)  # black, and less of it where it looked more
        dark[..., 3] = 0.8 * (1 - grids[i - 1] / most)
        axes.imshow(dark, extent=(0, width, height, 0), interpolation="nearest")
        peak = float(grids[i - 1].max()) * cells
        axes.set_title(f"{_label(prediction.target_tokens[i - 1].text)}\n{peak:.0f}× uniform", fontsize=9)
    out = io.BytesIO()
    figure.savefig(out, format=kind, dpi=120, metadata={"Date": None} if kind == "svg" else None)
    return out.getvalue()


def _label(text: str) -> str:
    return printable(text.strip()).replace("$", r"\$") or "␣"
