"""A heatmap of block characters: darker is more; colour helps, but is not needed."""

import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from saccade.see.prediction import Prediction

SHADES = " ·░▒▓█"
EDGES = (0.05, 0.15, 0.35, 0.6, 0.85)  # weights at which a cell grows darker
COLOURS = (236, 238, 24, 31, 38, 51)  # of 256, from dim grey to bright cyan


def heatmap(prediction: "Prediction", colour: bool = True, width: int = 80) -> str:
    """Rows are the tokens that were written, columns those of the source, in slices that fit the width."""
    weights = prediction.weights
    if not prediction.source.strip():
        return "(an empty text)"
    if weights is None:
        return f"{printable(prediction.source)} → {printable(prediction.text)}\n(this model has no attention to show)"
    if prediction.grid is not None:
        return _glances(prediction, colour, width)
    columns = [_cell(t.text) for t in prediction.source_tokens]
    rows = [_cell(t.text) for t in prediction.target_tokens]
    margin = min(16, max((_width(r) for r in rows), default=0))
    blocks: list[list[int]] = [[]]
    room = width - margin - 1
    for n, label in enumerate(columns):
        if blocks[-1] and sum(max(2, _width(columns[m])) + 1 for m in blocks[-1]) + _width(label) + 1 > room:
            blocks.append([])
        blocks[-1].append(n)
    lines = []
    for block in blocks:
        lines.append(" " * (margin + 1) + " ".join(_pad(columns[n], max(2, _width(columns[n]))) for n in block))
        for t, label in enumerate(rows):
            cells = (_shade(float(weights[t, n]), max(2, _width(columns[n])), colour) for n in block)
            lines.append(f"{_pad(label, margin, right=True)} " + " ".join(cells))
        lines.append("")
    return "\n".join(line.rstrip() for line in lines[:-1])


def _glances(prediction: "Prediction", colour: bool, width: int) -> str:
    """The grid of a picture for each word, side by side: dark where the model looked, on one scale for all words."""
    assert prediction.grid is not None
    assert prediction.weights is not None
    rows, columns = prediction.grid
    across = max(2 * columns, 8)
    each = max(1, (width + 2) // (across + 2))
    lines = []
    words = list(zip(prediction.target_tokens, prediction.weights.reshape(-1, rows, columns), strict=True))
    most = max(1e-9, float(prediction.weights.max()))
    for start in range(0, len(words), each):
        some = words[start : start + each]
        lines.append("  ".join(_pad(_cell(token.text), across) for token, _ in some))
        for r in range(rows):
            cells = ("".join(_shade(float(w) / most, 2, colour) for w in grid[r]) for _, grid in some)
            lines.append("  ".join(cell + " " * (across - 2 * columns) for cell in cells))
        lines.append("")
    return "\n".join(line.rstrip() for line in lines[:-1])


def _shade(weight: float, width: int, colour: bool) -> str:
    level = sum(weight >= edge for edge in EDGES)
    cell = SHADES[level] * width
    return f"\x1b[38;5;{COLOURS[level]}m{cell}\x1b[0m" if colour and level else cell


def printable(text: str) -> str:
    """No control character, no lone direction mark reaches the terminal."""
    return "".join("�" if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") else c for c in text)


def _cell(text: str) -> str:
    shown = printable(text.strip()) or "␣"
    while _width(shown) > 16:
        shown = shown[:-2] + "…"
    return shown


def _width(text: str) -> int:
    """Columns of a terminal that a text takes: wide characters take two, marks upon others none."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _pad(text: str, width: int, right: bool = False) -> str:
    gap = " " * max(0, width - _width(text))
    return gap + text if right else text + gap
