"""One page of HTML that needs nothing beside it: every glance as a table that can be read, heard and pointed at.

Nothing is loaded from anywhere: the page's own policy forbids it, and allows just the style and the script that are in
it, by their hashes. Without the script the page still shows everything once; with it, other layers and heads, words in
place of pieces, and a picture to step through by the arrow keys.
"""

import base64
import hashlib
import html
import json
from collections.abc import Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from saccade.see.prediction import packed
from saccade.see.views import View, digits, unseen, usual, view, warnings_of, words_of

if TYPE_CHECKING:
    from saccade.see.prediction import Prediction

LEVELS = 20  # shades between nothing and all
MOST_NUMBERS = 3_000_000  # of a page; with more, what is inside is left to .json
MOST_CELLS = 20_000  # of a table; a larger matrix is drawn as one image
MOST_ROWS = 500  # of it that are also told of in words
LONG, TITLE = 1000, 80  # characters of texts that are folded away, and of what stands for them
HIDDEN, OTHERS = "p, its look hidden", "p, others hidden"  # columns of the check by occlusion
SIDE = 15  # pixels of a cell in such an image, as page.css has it for the labels


def page(predictions: Sequence["Prediction"], title: str = "saccade", lead: str = "") -> str:
    """A whole page with every glance of each prediction."""
    told = f"<p>{html.escape(lead)}</p>" if lead else ""
    return whole(title, told + sections(predictions), predictions)


def sections(predictions: Sequence["Prediction"], labels: Sequence[str] = ()) -> str:
    """The part of a page that shows predictions; they are numbered, so a page has one such part.

    A label stands above each, such as who wrote it and what was wanted. Pictures have one scale, so that the glances of
    several models can be compared.
    """
    above = [f'<p class="score">{html.escape(label)}</p>' for label in labels] or [""] * len(predictions)
    brightest = max((_peak(p) for p in predictions), default=0.0)
    numbered = enumerate(zip(predictions, above, strict=True))
    return "".join(label + _one(p, number, brightest) for number, (p, label) in numbered)


def _peak(p: "Prediction") -> float:
    """How many times more than everywhere alike the place of a picture was looked at that was looked at most."""
    if p.grid is None or p.weights is None or not p.weights.size:
        return 0.0
    return float(p.weights.max() * p.weights.shape[1])


def whole(title: str, body: str, predictions: Sequence["Prediction"] = (), language: str = "en") -> str:
    """A page around a body that is HTML already; the predictions are those whose `sections` stand in it."""
    style, script = (
        files("saccade.see").joinpath(f"page.{kind}").read_text(encoding="utf-8") for kind in ("css", "js")
    )
    style += "".join(f".w{i}{{--w:{i / LEVELS:g}}}" for i in range(1, LEVELS + 1))
    policy = (
        f"default-src 'none'; img-src data:; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    shown = html.escape(_short(" ".join(title.split()))) or "saccade"
    return (
        f'<!doctype html><html lang="{language}"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}"><title>{shown}</title>'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<style>{style}</style></head><body><main class="saccade"><h1><bdi>{shown}</bdi></h1>{body}'
        f'<script type="application/json" id="predictions">{_data([_told(p) for p in predictions])}</script>'
        f"<script>{script}</script></main></body></html>\n"
    )


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _data(value: Any) -> str:
    """JSON that cannot end the element it stands in."""
    return json.dumps(value, ensure_ascii=True).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _told(p: "Prediction") -> dict[str, Any]:
    """What the script needs: the record, and which words its pieces make."""
    if _large(p):
        return {"large": True}
    told = p.record()
    if _heavy(p):
        told["attention"] = {"cross": told["attention"]["cross"]}
    if p.weights is None or not p.weights.size or p.grid is not None:
        return told
    shown = view(p, "words")
    if shown.weights.shape != p.weights.shape:  # else every piece is a word
        made = words_of(p)
        told["words"] = {
            "source": shown.columns,
            "target": shown.rows,
            "read": made.read,
            "wrote": made.wrote,
            "p": [round(x, 5) for x in shown.probabilities],
            "gates": [round(x, 5) for x in shown.gates],
            "instead": [[{"text": text, "probability": round(x, 5)} for text, x in row] for row in shown.instead],
            "occluded": [[round(x, 5) for x in row] for row in shown.occluded],
            "first": usual(p) == "words",
        }
    return told


def _large(p: "Prediction") -> bool:
    """Whether there are too many weights for tables that the script draws."""
    return p.weights is not None and p.weights.size > MOST_CELLS


def _heavy(p: "Prediction") -> bool:
    """Whether what the model saw in itself would make the page a burden."""
    return sum(w.size for w in p.attention.values()) > MOST_NUMBERS


def _one(p: "Prediction", number: int, brightest: float) -> str:
    said = (
        f'<p><bdi>{html.escape(p.source)}</bdi> → <bdi class="out">{html.escape(p.text)}</bdi>{_score(p)}</p>{_said(p)}'
    )
    if len(p.source) + len(p.text) > LONG:
        said = f"<details><summary><bdi>{html.escape(_short(p.text))}</bdi></summary>{said}</details>"
    head = f'<section id="p{number}" aria-label="{number + 1}: {html.escape(_short(p.text))}">{said}'
    if (why := unseen(p)) is not None:
        return f"{head}<p>{html.escape(why)}</p></section>"
    if p.grid is not None:
        return f"{head}{_glances(p, number, brightest)}</section>"
    shown = view(p)
    if shown.weights.size > MOST_CELLS:
        return f"{head}{_image(shown)}</section>"
    return f'{head}<div class="controls"></div><div class="scroll" tabindex="0">{_table(shown)}</div></section>'


def _score(p: "Prediction") -> str:
    return f' <span class="score">log-probability {p.score:.3f}</span>' if p.log_probabilities else ""


def _said(p: "Prediction") -> str:
    """What a reader has to know of this one."""
    told = []
    if p.unknown:
        told.append(f"symbols that the model does not know: {' '.join(dict.fromkeys(p.unknown))}")
    if p.cut_source:
        told.append("the end of the source was not read: it is too long for the model")
    if p.cut_output:
        told.append("the output reached its limit and was cut")
    told += warnings_of(p)
    if _large(p):
        told.append(
            "too much for a page to choose from: other layers, heads and pieces are in .json and, by --view, in .csv"
        )
    elif _heavy(p):
        told.append("too much for a page: what the model saw in itself is in .json and, by --view, in .csv")
    return "".join(f'<p class="score">{html.escape(line)}</p>' for line in told)


def _table(shown: View) -> str:
    columns = "".join(f'<th scope="col"><bdi>{_label(c)}</bdi></th>' for c in shown.columns)
    rows = []
    for i, (name, row) in enumerate(zip(shown.rows, shown.weights.tolist(), strict=True)):
        cells = "".join(f'<td class="w{_level(w)}"><span>{w:.2f}</span></td>' for w in row)
        rows.append(f'<tr><th scope="row"><bdi>{_label(name)}</bdi></th>{cells}{_beside(shown, i)}</tr>')
    more = _heads(*_known(shown))
    return (
        "<table><caption>Rows: what was written. Columns: the source. The stronger the colour, the more it was looked "
        "at; full colour is a weight of 1.</caption>"
        f"<thead><tr><td></td>{columns}{more}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    )


def _known(shown: View) -> list[str]:
    """What stands beside each row: how likely the word was, how scattered its look, β, how likely it is when its look,
    or others, are hidden from it, and what might have stood there.
    """
    hidden = [HIDDEN, OTHERS] if shown.occluded else []
    return ["p", *hidden, "entropy", *(["β"] if shown.gates else []), "instead"]


def _heads(*names: str) -> str:
    return "".join(f'<th scope="col">{name}</th>' for name in names)


def _beside(shown: View, i: int) -> str:
    chance = f"{shown.probabilities[i]:.2f}" if shown.probabilities else ""
    hidden = [f"{x:.2f}" for x in shown.occluded[i]] if shown.occluded else []
    others = [f"<bdi>{_label(text)}</bdi> {share:.2f}" for text, share in shown.instead[i]] if shown.instead else []
    numbers = (chance, *hidden, digits(shown.entropy(i)), *([f"{shown.gates[i]:.2f}"] if shown.gates else []))
    return "".join(f'<td class="n">{x}</td>' for x in numbers) + f'<td class="t">{", ".join(others)}</td>'


def _image(shown: View) -> str:
    """A matrix too large for cells of its own: an image between labels that stay, and what each row looked at most."""
    rows, columns = shown.weights.shape
    most = max(1e-9, float(shown.weights.max()))
    shades = (255 * (1 - shown.weights.clip(0, None) / most)).astype(np.uint8)
    scale = f"Strongest is a weight of {most:.3g}, {most * columns:.0f} times what looking everywhere alike gives."
    above, left = ("".join(f"<bdi>{_label(name)}</bdi>" for name in names) for names in (shown.columns, shown.rows))
    words = []
    for i, (name, row) in enumerate(list(zip(shown.rows, shown.weights, strict=True))[:MOST_ROWS]):
        best = np.argsort(-row)[:5]
        looks = ", ".join(f"<bdi>{_label(shown.columns[n])}</bdi> {row[n]:.2f}" for n in best)
        words.append(
            f'<tr><th scope="row"><bdi>{_label(name)}</bdi></th><td class="t">{looks}</td>{_beside(shown, i)}</tr>'
        )
    return (
        f'<p class="score">{scale}</p>'
        f'<div class="scroll" tabindex="0"><table class="large"><thead><tr><td></td><th scope="col">{above}</th></tr>'
        f'</thead><tbody><tr><th scope="row">{left}</th><td><img width="{SIDE * columns}" height="{SIDE * rows}" '
        f'alt="Attention of {rows} that were written over {columns} of the source" '
        f'src="data:image/png;base64,{packed(shades)}"></td></tr></tbody></table></div>'
        f"<details><summary>What the first {len(words)} looked at most</summary>"
        f'<div class="scroll" tabindex="0"><table><thead><tr>{_heads("", "looks most at", *_known(shown))}</tr></thead>'
        f"<tbody>{''.join(words)}</tbody></table></div></details>"
    )


def _glances(p: "Prediction", number: int, brightest: float) -> str:
    """The picture as it was seen, and once for each word, dark but for where the model looked: one scale for all, whose
    white is so many times what looking everywhere alike gives.
    """
    assert p.grid is not None
    shown = view(p)
    rows, columns = p.grid
    height, width = (rows, columns) if p.picture is None else p.picture.shape[:2]
    across, down = p.cell_size()
    cells = rows * columns
    most = max(1e-9, brightest / cells)
    svg = f'<svg role="img" viewBox="0 0 {width} {height}" aria-label='
    figures, table, defined = [], [], ""
    use = f'<rect class="blank" width="{width}" height="{height}"/>'  # where the record has no picture
    if p.picture is not None:
        href = f"data:image/png;base64,{packed(p.picture)}"
        picture = f'<image id="i{number}" href="{href}" width="{width}" height="{height}" preserveAspectRatio="none"/>'
        defined = f'<svg class="defs" aria-hidden="true"><defs>{picture}</defs></svg>'
        use = f'<use href="#i{number}"/>'
        seen = "the picture as it was seen"
        figures.append(f'<figure>{svg}"{seen}">{use}</svg><figcaption><small>{seen}</small></figcaption></figure>')
    for i, (word, weights) in enumerate(zip(map(_label, shown.rows), shown.weights, strict=True)):
        boxes = "".join(
            _box(divmod(n, columns), (rows, columns), (down, across), _level(w / most))
            for n, w in enumerate(weights.tolist())
        )
        peak = divmod(int(weights.argmax()), columns)
        where = f"row {peak[0] + 1}, column {peak[1] + 1} of {rows} by {columns}"
        told = [f"{float(weights.max()) * cells:.0f}× uniform", f"entropy {digits(shown.entropy(i))}"]
        told += [f"β {shown.gates[i]:.2f}"] if shown.gates else []
        told += [f"p {shown.probabilities[i]:.2f}"] if shown.probabilities else []
        figures.append(
            f'<figure class="glance" tabindex="0">{svg}"{word}: looks most at {where}">{use}<g class="dark">{boxes}</g>'
            f"</svg><figcaption><bdi>{word}</bdi><small>{', '.join(told)}</small></figcaption></figure>"
        )
        table.append(
            f'<tr><th scope="row"><bdi>{word}</bdi></th><td class="t">{where}</td>'
            f'<td class="t">{float(weights.max()):.2f}</td>{_beside(shown, i)}</tr>'
        )
    scale = f"Bright is where it looked; white would be {brightest:.0f} times what looking everywhere alike gives."
    heads = _heads("word", "looks most at", "with", *_known(shown))
    return (
        f'{defined}<p class="score scale">{scale}</p><div class="controls"></div>'
        f'<div class="glances" data-brightest="{brightest:.6g}">{"".join(figures)}</div>'
        '<details><summary>As a table</summary><div class="scroll" tabindex="0">'
        f'<table class="plain"><thead><tr>{heads}</tr></thead>'
        f"<tbody>{''.join(table)}</tbody></table></div></details>{_inside(p)}"
    )


def _inside(p: "Prediction") -> str:
    """What a model of pictures saw in itself, as a table that the script fills by layer and head."""
    if not ({"encoder", "decoder"} & p.attention.keys()) or _large(p) or _heavy(p):
        return ""
    table = "<table><caption></caption><thead></thead><tbody></tbody></table>"
    return (
        '<details class="inside"><summary>What it saw in itself</summary><div class="controls"></div>'
        f'<div class="scroll" tabindex="0">{table}</div></details>'
    )


def _box(place: tuple[int, int], grid: tuple[int, int], cell: tuple[float, float], level: int) -> str:
    """A cell. Those at the edge reach beyond the picture, unseen, so that smoothing lets no light in from outside."""
    (y, x), (height, width) = ([p * size for p, size in zip(place, cell, strict=True)], list(cell))
    beyond = max(cell)
    if place[0] == 0:
        y, height = y - beyond, height + beyond
    if place[1] == 0:
        x, width = x - beyond, width + beyond
    height += beyond if place[0] == grid[0] - 1 else 0
    width += beyond if place[1] == grid[1] - 1 else 0
    return f'<rect class="w{level}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"/>'


def _level(weight: float) -> int:
    return min(LEVELS, max(0, round(LEVELS * weight)))


def _short(text: str) -> str:
    return text if len(text) <= TITLE else text[: TITLE - 1] + "…"


def _label(text: str) -> str:
    return html.escape(text.strip()) or "␣"
