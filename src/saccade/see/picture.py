"""The alignment picture of the papers: source above, what was written on the left."""

import io
import warnings
from typing import Any

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


def _label(text: str) -> str:
    return printable(text.strip()).replace("$", r"\$") or "␣"
