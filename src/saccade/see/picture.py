"""The alignment picture of the papers: source above, what was written on the left."""

import io
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from saccade.see.prediction import Prediction
from saccade.see.terminal import printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_SIDE = 400  # tokens on a side: more would be a picture that nobody can read, and gigabytes
FONTS = [  # the first of these that has a character draws it
    "DejaVu Sans",
    "Noto Sans CJK KR",
    "Noto Sans CJK JP",
    "NanumGothic",
    "Malgun Gothic",
    "AppleGothic",
    "Unifont",
]


def picture(prediction: Prediction, kind: str) -> bytes:
    """PNG, SVG or PDF of the weights [T, N]."""
    import matplotlib as mpl  # noqa: PLC0415  (half a second, only where a picture is drawn)

    if not prediction.source.strip():
        raise ValueError("the source is empty: there is nothing to draw")
    if prediction.weights is None:
        raise ValueError("there is no attention to draw")
    if max(prediction.weights.shape) > MOST_SIDE and prediction.grid is None:
        rows, columns = prediction.weights.shape
        raise ValueError(f"{rows} by {columns} tokens are too many for a picture; save as .html or .csv")
    texts = [t.text for t in (*prediction.source_tokens, *prediction.target_tokens)]
    families, missing = fonts_for("".join(map(_label, texts)))
    if missing and kind != "svg":  # whose text stays text: the reader's fonts draw it
        told = "".join(missing[:10]) + ("…" if len(missing) > 10 else "")
        warnings.warn(
            f"no font on this machine has {told}, drawn as boxes: install one, such as Debian's fonts-noto-cjk or "
            "fonts-noto-core, or save as .svg or .html",
            stacklevel=2,
        )
    settings: Any = {"font.family": families, "svg.fonttype": "none"}
    with mpl.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure = _heatmap(prediction) if prediction.grid is None else _overlay(prediction)
        out = io.BytesIO()
        figure.savefig(out, format=kind, dpi=150, metadata={"Date": None} if kind == "svg" else None)
    return out.getvalue()


def fonts_for(text: str) -> tuple[list[str], list[str]]:
    """Families that together can draw a text, those we know to be good first, and the characters that none has."""
    from matplotlib.font_manager import fontManager  # noqa: PLC0415
    from matplotlib.ft2font import FT2Font  # noqa: PLC0415

    wanted = {ord(c) for c in text if not c.isspace()}
    known = {name: n for n, name in enumerate(FONTS)}
    upright = {f.name: f for f in fontManager.ttflist if f.style == "normal" and not f.name.startswith("Last Resort")}
    families = []
    for name in sorted(upright, key=lambda n: (known.get(n, len(known)), n)):
        found = wanted & FT2Font(upright[name].fname, face_index=upright[name].index).get_charmap().keys()
        if found:
            families.append(name)
        wanted -= found
        if not wanted:
            break
    return families or ["sans-serif"], [chr(c) for c in sorted(wanted)]


def _heatmap(prediction: Prediction) -> "Figure":
    """The weights [T, N]."""
    from matplotlib.figure import Figure  # noqa: PLC0415

    assert prediction.weights is not None
    rows, columns = prediction.weights.shape
    figure = Figure(figsize=(1.5 + 0.32 * columns, 1.2 + 0.32 * rows), layout="constrained")
    axes = figure.add_subplot()
    axes.imshow(prediction.weights, cmap="Greys", vmin=0, vmax=1, aspect="equal")
    axes.set_xticks(range(columns), [_label(t.text) for t in prediction.source_tokens], rotation=90)
    axes.set_yticks(range(rows), [_label(t.text) for t in prediction.target_tokens])
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    return figure


def _overlay(prediction: Prediction) -> "Figure":
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
        across, down = prediction.cell_size()
        reach = (0, across * prediction.grid[1], down * prediction.grid[0], 0)  # the last cells may lie half outside
        axes.imshow(dark, extent=reach, interpolation="nearest")
        axes.set(xlim=(0, width), ylim=(height, 0))
        told = f"{float(grids[i - 1].max()) * cells:.0f}× uniform"
        if prediction.gates:
            told += f", β {prediction.gates[i - 1]:.2f}"
        axes.set_title(f"{_label(prediction.target_tokens[i - 1].text)}\n{told}", fontsize=9)
    return figure


def _label(text: str) -> str:
    return printable(text.strip()).replace("$", r"\$") or "␣"
