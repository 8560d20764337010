"""A heatmap of block characters: darker is more; colour helps, but is not needed."""

import unicodedata
from typing import TYPE_CHECKING

from saccade.see.views import LEAST, View, digits, unseen, view, warnings_of

if TYPE_CHECKING:
    from saccade.see.prediction import Prediction

SHADES = " ·░▒▓█"
EDGES = (0.05, 0.15, 0.35, 0.6, 0.85)  # weights at which a cell grows darker
JOINERS = "\u200c\u200d"  # as in Persian, in the scripts of India, and in emoji
COLOURS = (236, 238, 24, 31, 38, 51)  # of 256, from dim grey to bright cyan


def heatmap(prediction: "Prediction", colour: bool = True, width: int = 80, name: str | None = None) -> str:
    """Rows are what was written, columns the source, in slices that fit the width; the last tells more of each row."""
    if (why := unseen(prediction)) is not None:
        return f"{printable(prediction.source)} → {printable(prediction.text)}\n({why})"
    shown = view(prediction, name)
    if not shown.columns:
        return _glances(prediction, shown, colour, width)
    columns, rows = [_cell(c) for c in shown.columns], [_cell(r) for r in shown.rows]
    margin = min(16, max((width_of(r) for r in rows), default=0))
    blocks: list[list[int]] = [[]]
    room = width - margin - 1
    for n, label in enumerate(columns):
        if blocks[-1] and sum(max(2, width_of(columns[m])) + 1 for m in blocks[-1]) + width_of(label) + 1 > room:
            blocks.append([])
        blocks[-1].append(n)
    titles, beside = _beside(shown)
    lines = []
    for block in blocks:
        head = " ".join(_pad(columns[n], max(2, width_of(columns[n]))) for n in block)
        taken = width_of(head) + margin + 1
        more = titles if block is blocks[-1] and taken + max(map(width_of, beside), default=0) < width else ""
        lines.append(" " * (margin + 1) + head + more)
        for t, label in enumerate(rows):
            cells = (_shade(float(shown.weights[t, n]), max(2, width_of(columns[n])), colour) for n in block)
            lines.append(f"{_pad(label, margin, right=True)} " + " ".join(cells) + (beside[t] if more else ""))
        lines.append("")
    if not more:
        told = zip(rows, beside, strict=True)
        lines += [" " * margin + titles, *(_pad(r, margin, right=True) + b for r, b in told), ""]
    return "\n".join([*(line.rstrip() for line in lines[:-1]), *warnings_of(prediction)])


def _beside(shown: View) -> tuple[str, list[str]]:
    """How likely each row was, how scattered its look in nats, β, and what might have stood there: a title and a line
    for each row.
    """
    titles = ("   p  " if shown.probabilities else "") + " entropy" + ("   β  " if shown.gates else "")
    lines = []
    for t in range(len(shown.rows)):
        line = f"  {shown.probabilities[t]:.2f}" if shown.probabilities else ""
        line += f"    {digits(shown.entropy(t)):>4}" + (f"  {shown.gates[t]:.2f}" if shown.gates else "")
        if shown.instead and shown.instead[t] and shown.instead[t][0][1] >= LEAST:
            text, share = shown.instead[t][0]
            line += f"  {_cell(text)} {share:.2f}"
        lines.append(line)
    return titles + ("  instead" if shown.instead else ""), lines


def _glances(prediction: "Prediction", shown: View, colour: bool, width: int) -> str:
    """The grid of a picture for each word, side by side: dark where the model looked, on one scale for all words."""
    assert prediction.grid is not None
    rows, columns = prediction.grid
    across = max(2 * columns, 20)
    each = max(1, (width + 2) // (across + 2))
    lines = []
    words = list(enumerate(zip(shown.rows, shown.weights.reshape(-1, rows, columns), strict=True)))
    most = max(1e-9, float(shown.weights.max(initial=0)))
    for start in range(0, len(words), each):
        some = words[start : start + each]
        lines.append("  ".join(_pad(_cell(word), across) for _, (word, _) in some))
        for r in range(rows):
            cells = ("".join(_shade(float(w) / most, 2, colour) for w in grid[r]) for _, (_, grid) in some)
            lines.append("  ".join(cell + " " * (across - 2 * columns) for cell in cells))
        lines += ["  ".join(_pad(_told(shown, t), across) for t, _ in some), ""]
    return "\n".join([*(line.rstrip() for line in lines[:-1]), *warnings_of(prediction)])


def _told(shown: View, t: int) -> str:
    """Of a word that looked at a picture: how many times more than everywhere alike at its peak, entropy, β, p."""
    told = [f"{float(shown.weights[t].max()) * shown.weights.shape[1]:.0f}×", f"H {digits(shown.entropy(t))}"]
    told += [f"β {shown.gates[t]:.2f}"] if shown.gates else []
    told += [f"p {shown.probabilities[t]:.2f}"] if shown.probabilities else []
    return " ".join(told)


def _shade(weight: float, width: int, colour: bool) -> str:
    level = sum(weight >= edge for edge in EDGES)
    cell = SHADES[level] * width
    return f"\x1b[38;5;{COLOURS[level]}m{cell}\x1b[0m" if colour and level else cell


def printable(text: str) -> str:
    """No control character, no lone direction mark reaches the terminal; what joins letters is part of the writing."""
    bad = ("Cc", "Cf", "Cs", "Zl", "Zp")
    return "".join("�" if unicodedata.category(c) in bad and c not in JOINERS else c for c in text)


def _cell(text: str) -> str:
    shown = printable(text.strip()) or "␣"
    while width_of(shown) > 16:
        shown = shown[:-2] + "…"
    leftward = any(unicodedata.bidirectional(c) in ("R", "AL", "AN") for c in shown)
    return f"\u2068{shown}\u2069" if leftward else shown  # isolated, so that columns stay where they are


def width_of(text: str) -> int:
    """Columns of a terminal that a text takes: wide characters take two; marks, joiners and the vowels and finals of a
    Hangul syllable that is spelt out stand upon others.
    """
    none = ("Mn", "Me", "Cf")
    return sum(
        0
        if unicodedata.category(c) in none or 0x1160 <= ord(c) <= 0x11FF
        else 2
        if unicodedata.east_asian_width(c) in "WF"
        else 1
        for c in text
    )


def _pad(text: str, width: int, right: bool = False) -> str:
    gap = " " * max(0, width - width_of(text))
    return gap + text if right else text + gap
