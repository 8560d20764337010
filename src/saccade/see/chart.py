"""Charts as SVG, drawn by matplotlib and made part of a page: few lines, bands for doubt, colours that everybody can
tell apart.

What matplotlib draws brings a style of its own on every element, which the policy of our pages forbids, and black
letters, which a dark page hides. `_plain` makes attributes of the one and leaves the other to whatever is around.
"""

import html
import io
import math
import re
import unicodedata
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 300, 52, 16, 12, 44
BAR = 26  # how high a bar is, with its surroundings
LETTER = 6.5  # about how wide one is; a Korean one is two. What fonts this machine has changes no chart
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")  # Okabe & Ito; c0 … c5 of the page's style
NAMED = 3  # curves in a line of the legend of a file
DASHES = ("-", "--", ":")  # where there are more curves than colours
ALONE = (
    "svg{color:#456}text{fill:currentColor;font-family:sans-serif}@media(prefers-color-scheme:dark){svg{color:#abc}}"
)


class Series(NamedTuple):
    """One curve, and how sure it is."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()


def chart(series: Sequence[Series], across: str, up: str, log: bool = False) -> str:
    """An SVG with every series in one frame; what it shows is also told in words for those who cannot see it.

    The n-th series has the n-th colour. One without points is left out, and keeps its colour from the others. With
    `log`, every doubling across is as wide as any other.
    """
    drawn = _curves(series, across, log)
    if not drawn:
        return ""
    named = ((i % len(COLOURS), s.name) for i, s in enumerate(series) if s.y)
    legend = "".join(f'<li class="c{colour}">{html.escape(name)}</li>' for colour, name in named)
    return _figure(drawn, _read(series, across, up), f'{html.escape(up)}<ul class="legend">{legend}</ul>')


def picture_file(series: Sequence[Series], across: str, up: str, log: bool = False) -> str:
    """The same chart as an SVG file, which needs no page around it."""
    drawn = _labelled(_curves(series, across, log, title=up), _read(series, across, up))
    return drawn.replace(">", f"><style>{ALONE}</style>", 1) + "\n"


def bars(rows: Sequence[Series], across: str) -> str:
    """An SVG with a bar for the one value of each series, and a line from its lowest to its highest."""
    rows = [row for row in rows if row.y]
    if not rows:
        return ""
    left = 20 + LETTER * max(_letters(row.name) for row in rows)

    def draw(axes: "Axes") -> None:
        at, means = range(len(rows)), [row.y[0] for row in rows]
        axes.barh(at, means, height=0.7, color=COLOURS[0])
        for i, row in enumerate(rows):
            if row.low and row.high:
                axes.plot([row.low[0], row.high[0]], [i, i], color="black", linewidth=2, solid_capstyle="butt")
        axes.set_yticks(at, [row.name for row in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)  # the first on top
        axes.grid(axis="x", color="#888888", alpha=0.3)

    drawn = _drawn(draw, repr((rows, across)), left, TOP + BAR * len(rows) + BOTTOM)
    return _figure(drawn, _read(rows, "", across), html.escape(across))


def _curves(series: Sequence[Series], across: str, log: bool, title: str = "") -> str:
    """With a title it also names its curves, as a page would around it."""
    places = sorted({x for s in series for x in s.x})
    every = [y for s in series for y in (*s.y, *s.low, *s.high)]
    if not every:
        return ""

    def draw(axes: "Axes") -> None:
        for i, s in enumerate(series):
            if not s.y:
                continue
            colour, dash = COLOURS[i % len(COLOURS)], DASHES[i // len(COLOURS) % len(DASHES)]
            if s.low and s.high:
                axes.fill_between(s.x, s.low, s.high, color=colour, alpha=0.2, linewidth=0, clip_on=False)
                axes.vlines(s.x, s.low, s.high, color=colour, alpha=0.6, clip_on=False)  # seen also of a single point
            axes.plot(s.x, s.y, dash, marker="o", markersize=5, color=colour, clip_on=False, linewidth=2, label=s.name)
        if log:
            axes.set_xscale("log", base=2)
            axes.set_xticks(places, [f"{x:g}" for x in places])
            axes.minorticks_off()
        if 0 <= min(every) < 0.3 * max(every):  # from nothing on, unless that would hide what differs
            axes.set_ylim(bottom=0)
        axes.grid(axis="y", color="#888888", alpha=0.3)
        axes.set_xlabel(across)
        if title:
            axes.set_title(title, loc="left", fontsize=12)
            axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=NAMED, frameon=False)

    above, below = (20, 24 * math.ceil(len(series) / NAMED)) if title else (0, 0)
    return _drawn(draw, repr((series, across)), LEFT, HEIGHT + above + below, above, below)


def _drawn(
    draw: Callable[["Axes"], None], salt: str, left: float, high: float, above: float = 0, below: float = 0
) -> str:
    """What is drawn on axes with such margins, as SVG that can stand in a page; another salt gives it other ids."""
    import matplotlib as mpl  # noqa: PLC0415  (half a second, only where a chart is drawn)
    from matplotlib.figure import Figure  # noqa: PLC0415

    settings: Any = {"svg.fonttype": "none", "svg.hashsalt": salt, "font.size": 12, "text.parse_math": False}
    with mpl.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # text stays text: the reader's fonts draw it
        figure = Figure(figsize=(WIDTH / 72, high / 72))  # at 72 to an inch a unit is a unit
        width, height = WIDTH - left - RIGHT, high - (TOP + above) - (BOTTOM + below)
        axes = figure.add_axes((left / WIDTH, (BOTTOM + below) / high, width / WIDTH, height / high))
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0)
        axes.set_axisbelow(True)
        draw(axes)
        out = io.StringIO()
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(out, format="svg", transparent=True, metadata=nothing)
    return _plain(out.getvalue())


def _plain(drawn: str) -> str:
    """Without style and names of its own: what it said of an element in a style becomes attributes of the element."""
    drawn = drawn[drawn.index("<svg") :].strip()
    drawn = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", drawn, flags=re.DOTALL)
    drawn = re.sub(r' (?:width|height)="[\d.]+pt"| version="1.1"| xmlns:xlink="[^"]*"', "", drawn)
    drawn = re.sub(r'<g id="[^"]*"', "<g", drawn).replace("xlink:href", "href").replace("#000000", "currentColor")
    drawn = re.sub(r' transform="rotate\(-?0 [^"]*\)"', "", drawn)
    drawn = re.sub(r' style="([^"]*)"', lambda found: _attributes(found[1]), drawn)
    return re.sub(r"\s*\n\s*", " ", drawn)


def _attributes(style: str) -> str:
    said = (part.split(":", 1) for part in style.split(";"))
    return "".join(f' {name.strip()}="{value.strip()}"' for name, value in said if name.strip() != "font-family")


def _labelled(drawn: str, told: str) -> str:
    return drawn.replace("<svg", f'<svg role="img" aria-label="{html.escape(told)}"', 1)


def _figure(drawn: str, told: str, caption: str) -> str:
    return f'<figure class="chart">{_labelled(drawn, told)}<figcaption>{caption}</figcaption></figure>'


def _read(series: Sequence[Series], across: str, up: str) -> str:
    """A chart in words, of whatever language its own are."""
    if not across:
        return f"{up}. " + "; ".join(f"{s.name}: {s.y[0]:.4g}" for s in series)
    each = (f"{s.name}: {', '.join(f'{x:g} → {y:.4g}' for x, y in zip(s.x, s.y, strict=True))}" for s in series if s.y)
    return f"{up} ({across}). " + "; ".join(each)


def _letters(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
