"""Curves as SVG, drawn by hand: few lines, bands for doubt, colours that everybody can tell apart."""

import html
import math
from collections.abc import Sequence
from typing import NamedTuple

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 300, 52, 12, 12, 44
STYLE = (
    "text{font:12px sans-serif;fill:#556}.rule{stroke:#8886}.line{fill:none;stroke:var(--c);stroke-width:2}"
    ".dot{fill:var(--c)}.band{fill:var(--c);fill-opacity:.15}.name{fill:var(--c);font-weight:bold}"
    ".c0{--c:#0072b2}.c1{--c:#d55e00}.c2{--c:#009e73}.c3{--c:#cc79a7}.c4{--c:#56b4e9}.c5{--c:#e69f00}"
)
BAR = 26  # how high a bar is, with its surroundings
COLOURS = 6  # classes c0 … c5 of the page's style (Okabe & Ito)


class Series(NamedTuple):
    """One curve, and how sure it is."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()


def chart(series: Sequence[Series], across: str, up: str) -> str:
    """An SVG with every series in one frame; what it shows is also told in words for those who cannot see it.

    The n-th series has the n-th colour. One without points is left out, and keeps its colour from the others.
    """
    points = [(x, y) for s in series for x, y in zip(s.x, s.y, strict=True)]
    if not points:
        return ""
    every = [*(y for _, y in points), *(y for s in series for y in (*s.low, *s.high))]
    left, right = min(x for x, _ in points), max(x for x, _ in points)
    ticks = _ticks(min(0.0, *every) if min(every) < 0.3 * max(every) else min(every), max(every))
    low, high = ticks[0], ticks[-1]

    def place(x: float, y: float) -> tuple[float, float]:
        width, height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
        return LEFT + width * (x - left) / (right - left or 1), TOP + height * (high - y) / (high - low or 1)

    parts = []
    for tick in ticks:
        _, y = place(left, tick)
        parts.append(f'<line class="rule" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
    for tick in _ticks(left, right):
        if left <= tick <= right:
            x, _ = place(tick, low)
            parts.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{tick:g}</text>')
    parts.append(f'<text x="{(LEFT + WIDTH) / 2}" y="{HEIGHT - 6}" text-anchor="middle">{html.escape(across)}</text>')
    drawn = [(f"c{i % COLOURS}", s) for i, s in enumerate(series) if s.y]
    for colour, s in drawn:
        if s.low and s.high:
            edge = [place(x, y) for x, y in zip(s.x, s.high, strict=True)]
            edge += reversed([place(x, y) for x, y in zip(s.x, s.low, strict=True)])
            parts.append(f'<polygon class="{colour} band" points="{_points(edge)}"/>')
        line = [place(x, y) for x, y in zip(s.x, s.y, strict=True)]
        parts.append(f'<polyline class="{colour} line" points="{_points(line)}"/>')
        parts += [f'<circle class="{colour} dot" cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in line]
    told = "; ".join(
        f"{s.name}: {', '.join(f'{x:g} → {y:.4g}' for x, y in zip(s.x, s.y, strict=True))}" for _, s in drawn
    )
    legend = "".join(f'<li class="{colour}">{html.escape(s.name)}</li>' for colour, s in drawn)
    return (
        f'<figure class="chart"><svg role="img" viewBox="0 0 {WIDTH} {HEIGHT}" aria-label="{html.escape(up)} by '
        f'{html.escape(across)}. {html.escape(told)}">{"".join(parts)}</svg>'
        f'<figcaption>{html.escape(up)}<ul class="legend">{legend}</ul></figcaption></figure>'
    )


def picture_file(series: Sequence[Series], across: str, up: str) -> str:
    """The same chart as an SVG file, which needs no page around it."""
    drawn = chart(series, across, up)
    start, end = drawn.index("<svg") + len("<svg"), drawn.index("</svg>")
    body = drawn[start:end].replace(">", f' xmlns="http://www.w3.org/2000/svg"><style>{STYLE}</style>', 1)
    body = body.replace(f'viewBox="0 0 {WIDTH} {HEIGHT}"', f'viewBox="0 -20 {WIDTH} {HEIGHT + 44}"', 1)
    names = "".join(
        f'<text class="c{i % COLOURS} name" x="{LEFT + (WIDTH - LEFT) * i / len(series):.0f}" y="{HEIGHT + 16}">'
        f"{html.escape(s.name)}</text>"
        for i, s in enumerate(series)
    )
    return f'<svg{body}{names}<text x="{LEFT}" y="-6">{html.escape(up)}</text></svg>\n'


def bars(rows: Sequence[Series], across: str) -> str:
    """An SVG with a bar for the one value of each series, and a line from its lowest to its highest."""
    rows = [row for row in rows if row.y]
    if not rows:
        return ""
    ticks = _ticks(min(0.0, *(min(row.low or row.y) for row in rows)), max(max(row.high or row.y) for row in rows))
    left, height = 8 * max(len(row.name) for row in rows) + 12, TOP + BAR * len(rows) + BOTTOM

    def place(value: float) -> float:
        return left + (WIDTH - RIGHT - left) * (value - ticks[0]) / (ticks[-1] - ticks[0])

    parts = []
    for tick in ticks:
        parts.append(
            f'<line class="rule" x1="{place(tick):.1f}" x2="{place(tick):.1f}" y1="{TOP}" y2="{height - BOTTOM}"/>'
        )
        parts.append(f'<text x="{place(tick):.1f}" y="{height - BOTTOM + 18}" text-anchor="middle">{tick:g}</text>')
    for i, row in enumerate(rows):
        y, (start, end) = TOP + BAR * i, sorted((place(0.0), place(row.y[0])))
        parts.append(f'<text x="{left - 6}" y="{y + BAR / 2 + 4}" text-anchor="end">{html.escape(row.name)}</text>')
        parts.append(f'<rect class="c0 bar" x="{start:.1f}" y="{y + 4}" width="{end - start:.1f}" height="{BAR - 8}"/>')
        if row.low and row.high:
            low, high = place(row.low[0]), place(row.high[0])
            parts.append(f'<line class="range" x1="{low:.1f}" x2="{high:.1f}" y1="{y + BAR / 2}" y2="{y + BAR / 2}"/>')
    told = "; ".join(f"{row.name}: {row.y[0]:.4g}" for row in rows)
    return (
        f'<figure class="chart"><svg role="img" viewBox="0 0 {WIDTH} {height}" aria-label="{html.escape(across)}. '
        f'{html.escape(told)}">{"".join(parts)}</svg><figcaption>{html.escape(across)}</figcaption></figure>'
    )


def _points(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers, about five, that reach from one to the other."""
    span = (high - low) or max(abs(high), 1.0)
    rough = span / 4
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * m for m in (1, 2, 5, 10) if power * m >= rough)
    first = math.floor(low / step)
    last = math.ceil(high / step - 1e-9)
    return [float(f"{step * i:.10g}") for i in range(first, max(last, first + 1) + 1)]  # 0.3, not 0.30000000000000004
