"""One page of HTML that needs nothing beside it: point at a word and see where it looked."""

import base64
import html
import io
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from saccade.see.prediction import Prediction

STYLE = """
.saccade{font:16px/1.5 system-ui,sans-serif;color:#123;background:#fff;max-width:70em;margin:1em auto;padding:0 1em}
.saccade table{border-collapse:collapse;margin:.5em 0 2em}
.saccade th{font-weight:400;padding:.1em .35em;white-space:pre}
.saccade thead th{vertical-align:bottom}
.saccade tbody th{text-align:right}
.saccade td{width:1.6em;height:1.6em;border:1px solid #fff;background:rgb(0 90 140/var(--w))}
.saccade td:hover,.saccade tr:hover th{outline:2px solid #e60;outline-offset:-1px}
.saccade .glances{display:flex;flex-wrap:wrap;gap:.6em;margin:.5em 0 2em}
.saccade figure{margin:0;width:9em}.saccade figcaption{text-align:center}
.saccade .grid{display:grid;background-size:100% 100%}
.saccade .grid i{background:rgb(0 0 0/calc(.75 - .75*var(--w)))}
.saccade .out{font-size:1.3em}.saccade .score{color:#678;font-size:.85em}
@media(prefers-color-scheme:dark){.saccade{background:#111;color:#dde}
.saccade td{border-color:#111;background:rgb(80 190 255/var(--w))}}
"""


def page(predictions: Sequence["Prediction"], title: str = "saccade", lead: str = "") -> str:
    """A whole page with a heatmap for each prediction, readable by the keyboard and without scripts."""
    parts = [_one(p) for p in predictions]
    records = json.dumps([p.record() for p in predictions], ensure_ascii=False).replace("<", "\\u003c")
    shown = html.escape(title)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{shown}</title>'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<style>{STYLE}</style></head><body><main class="saccade">'
        f"{f'<h1>{shown}</h1><p>{html.escape(lead)}</p>' if lead else ''}{''.join(parts)}"
        f'<script type="application/json" id="predictions">{records}</script></main></body></html>\n'
    )


def _one(prediction: "Prediction") -> str:
    head = (
        f"<section><p><bdi>{html.escape(prediction.source)}</bdi> → "
        f'<bdi class="out">{html.escape(prediction.text)}</bdi> '
        f'<span class="score">log-probability {prediction.score:.3f}</span></p>'
    )
    if prediction.weights is None:
        return head + "<p>This model has no attention to show.</p></section>"
    if prediction.grid is not None:
        return f"{head}{_glances(prediction)}</section>"
    columns = "".join(f'<th scope="col">{_label(t.text)}</th>' for t in prediction.source_tokens)
    rows = []
    for token, row in zip(prediction.target_tokens, prediction.weights, strict=True):
        cells = (
            f'<td style="--w:{w:.3f}" title="{_label(token.text)} ← {_label(s.text)}: {w:.3f}"></td>'
            for w, s in zip(row.tolist(), prediction.source_tokens, strict=True)
        )
        rows.append(f'<tr><th scope="row">{_label(token.text)}</th>{"".join(cells)}</tr>')
    return f"{head}<table><thead><tr><th></th>{columns}</tr></thead><tbody>{''.join(rows)}</tbody></table></section>"


def _glances(prediction: "Prediction") -> str:
    """The picture once for each word, dark but for where the model looked."""
    assert prediction.grid is not None
    assert prediction.weights is not None
    image = ""
    if prediction.picture is not None:
        image = f"background-image:url(data:image/png;base64,{_png(prediction.picture)});"
    rows, columns = prediction.grid
    shown = []
    for token, weights in zip(prediction.target_tokens, prediction.weights, strict=True):
        most = max(1e-9, float(weights.max()))
        cells = "".join(f'<i style="--w:{w / most:.3f}" title="{w:.3f}"></i>' for w in weights.tolist())
        style = f"{image}grid-template-columns:repeat({columns},1fr);aspect-ratio:{columns}/{rows}"
        word = _label(token.text)
        shown.append(f'<figure><div class="grid" style="{style}">{cells}</div><figcaption>{word}</figcaption></figure>')
    return f'<div class="glances">{"".join(shown)}</div>'


def _png(pixels: NDArray[np.uint8]) -> str:
    from PIL import Image  # noqa: PLC0415  (only where there is a picture)

    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG")
    return base64.b64encode(out.getvalue()).decode()


def _label(text: str) -> str:
    return html.escape(text.strip() or "␣")
