"""The alignment picture of the papers: source above, what was written on the left."""

import io
import logging
import warnings
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from saccade.see.prediction import Prediction
from saccade.see.terminal import printable, width_of
from saccade.see.views import LEAST, Others, View, digits, unseen, view

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_SIDE = 400  # tokens on a side: more would be a picture that nobody can read, and gigabytes
UPRIGHT = 3  # columns of a terminal: labels no wider than a cell stand as they are read
FAINT = 0.2  # weights that are all below it would hardly be seen on a scale up to 1
FONTS = [  # the first of these that has a character draws it
    "DejaVu Sans",
    "Noto Sans CJK KR",
    "Noto Sans CJK JP",
    "NanumGothic",
    "Malgun Gothic",
    "AppleGothic",
    "Unifont",
]


def picture(prediction: Prediction, kind: str, name: str | None = None) -> bytes:
    """PNG, SVG or PDF of the weights [T, N]."""
    import matplotlib as mpl  # noqa: PLC0415  (half a second, only where a picture is drawn)

    if (why := unseen(prediction)) is not None:
        raise ValueError(f"there is nothing to draw: {why}")
    shown = view(prediction, name)
    if max(shown.weights.shape) > MOST_SIDE and shown.columns:
        rows, columns = shown.weights.shape
        raise ValueError(f"{rows} by {columns} tokens are too many for a picture; save as .html or .csv")
    others = [text for row in shown.instead for text, _ in row]
    families, missing = fonts_for("".join(map(_label, (*shown.columns, *shown.rows, *others))))
    if missing and kind != "svg":  # whose text stays text: the reader's fonts draw it
        told = "".join(missing[:10]) + ("…" if len(missing) > 10 else "")
        warnings.warn(
            f"no font on this machine has {told}, drawn as boxes: install one, such as Debian's fonts-noto-cjk or "
            "fonts-noto-core, or save as .svg or .html",
            stacklevel=2,
        )
    settings: Any = {"font.family": families, "svg.fonttype": "none"}
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)  # which weight of a font it took is no news
    with mpl.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure = _heatmap(shown) if shown.columns else _overlay(prediction, shown)
        out = io.BytesIO()
        dated = {"Date": None} if kind == "svg" else None
        figure.savefig(out, format=kind, dpi=150, metadata=dated, bbox_inches="tight")  # however long its labels are
    return out.getvalue()


def fonts_for(text: str) -> tuple[list[str], list[str]]:
    """Families that together can draw a text, those we know to be good first, and the characters that none has."""
    from matplotlib.font_manager import findSystemFonts, fontManager  # noqa: PLC0415

    wanted = {ord(c) for c in text if not c.isspace()}
    families, missing = _drawn_by(wanted)
    if missing:  # a font that was installed since matplotlib last looked?
        known = {font.fname for font in fontManager.ttflist}
        new = [path for path in findSystemFonts() if path not in known]
        for path in new:
            with suppress(RuntimeError, OSError):  # one that it cannot read
                fontManager.addfont(path)
        families, missing = _drawn_by(wanted) if new else (families, missing)
    return families or ["sans-serif"], [chr(c) for c in sorted(missing)]


def _drawn_by(wanted: set[int]) -> tuple[list[str], set[int]]:
    from matplotlib.font_manager import fontManager  # noqa: PLC0415
    from matplotlib.ft2font import FT2Font  # noqa: PLC0415

    known = {name: n for n, name in enumerate(FONTS)}
    upright = {f.name: f for f in fontManager.ttflist if f.style == "normal" and not f.name.startswith("Last Resort")}
    families = []
    for name in sorted(upright, key=lambda n: (known.get(n, len(known)), n)):
        found = wanted & FT2Font(upright[name].fname, face_index=upright[name].index).get_charmap().keys()
        if found:
            families.append(name)
        wanted = wanted - found
        if not wanted:
            break
    return families, wanted


def _heatmap(shown: View) -> "Figure":
    """The weights, and beside each row how likely it was, how scattered its look, and what might have stood there."""
    from matplotlib.figure import Figure  # noqa: PLC0415

    rows, columns = shown.weights.shape
    told = [_told(shown, t) for t in range(rows)]
    figure = Figure(
        figsize=(1.5 + 0.32 * columns + 0.075 * max(map(len, told)), 1.8 + 0.32 * rows), layout="constrained"
    )
    axes = figure.add_subplot()
    most = float(shown.weights.max())
    most = 1.0 if most > FAINT else max(most, 1e-9)  # the legend tells which
    drawn = axes.imshow(shown.weights, cmap="Greys", vmin=0, vmax=most, aspect="equal")
    legend = figure.colorbar(drawn, ax=axes, location="bottom", shrink=min(1.0, 8 / columns), aspect=25, pad=0.02)
    legend.set_label(f"attention ({shown.title})" if shown.title else "attention", fontsize=8)
    legend.ax.tick_params(labelsize=8)
    names = [_label(c) for c in shown.columns]
    upright = max(map(width_of, names)) <= UPRIGHT
    axes.set_xticks(range(columns), names, rotation=0 if upright else 90)
    axes.set_yticks(range(rows), [_label(r) for r in shown.rows])
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    beside = axes.secondary_yaxis("right")
    beside.set_yticks(range(rows), told, fontsize=8)
    beside.tick_params(length=0)
    return figure


def _told(shown: View, t: int) -> str:
    """How likely a row was, the entropy of its look, β, and what might have stood there."""
    told = [f"p {shown.probabilities[t]:.2f}"] if shown.probabilities else []
    told.append(f"H {digits(shown.entropy(t))}")
    if shown.gates:
        told.append(f"β {shown.gates[t]:.2f}")
    if shown.instead and (others := _instead(shown.instead[t])):
        told.append(others)
    return "  ".join(told)


def _instead(others: Others) -> str:
    """Each isolated, so that one that is written leftward does not take the number of another."""
    return ", ".join(f"\u2068{_label(text)}\u2069 {share:.2f}" for text, share in others[:2] if share >= LEAST)


def _overlay(prediction: Prediction, shown: View) -> "Figure":
    """The picture once for each word, dark but for where the model looked: the true grid, one scale for all words."""
    from matplotlib.figure import Figure  # noqa: PLC0415

    assert prediction.grid is not None
    blank = np.full((*prediction.grid, 3), 255, np.uint8)  # where the record has no picture
    seen = blank if prediction.picture is None else prediction.picture
    height, width = seen.shape[:2]
    grids = shown.weights.reshape(-1, *prediction.grid)
    most, cells = max(1e-9, float(grids.max())), grids[0].size
    columns = min(5, len(grids) + 1)
    rows = -(-(len(grids) + 1) // columns)
    shape = (2.2 * columns, rows * (0.65 + 2.2 * height / width))
    figure = Figure(figsize=shape, layout="constrained")
    for i in range(rows * columns):
        axes = figure.add_subplot(rows, columns, i + 1)
        axes.axis("off")
        if i > len(grids):
            continue
        axes.imshow(seen, extent=(0, width, height, 0))
        if i == 0:
            continue
        dark = np.zeros((*grids[i - 1].shape, 4), np.float32)  # black, and less of it where it looked more
        dark[..., 3] = 0.8 * (1 - grids[i - 1] / most)
        across, down = prediction.cell_size()
        reach = (0, across * prediction.grid[1], down * prediction.grid[0], 0)  # the last cells may lie half outside
        axes.imshow(dark, extent=reach, interpolation="nearest")
        axes.set(xlim=(0, width), ylim=(height, 0))
        told = f"{float(grids[i - 1].max()) * cells:.0f}× uniform, {_told(replace(shown, instead=()), i - 1)}"
        axes.set_title(f"{_label(shown.rows[i - 1])}\n{told}", fontsize=8)
    scale = f"bright is where it looked; white would be {most * cells:.0f}× uniform"
    figure.supxlabel(f"{scale} ({shown.title})" if shown.title else scale, fontsize=8)
    return figure


def _label(text: str) -> str:
    return printable(text.strip()).replace("$", r"\$") or "␣"
