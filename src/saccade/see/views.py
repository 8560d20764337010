"""Which glances of a prediction are shown, and what stands beside each row: whatever draws attention draws a View.

A view has a name: `words`, `pieces`, `mean` (of all layers), a layer `1`, a head `1.3`, and the same of what the source
or the target saw in itself: `encoder`, `encoder:1`, `decoder:1.3`.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from saccade.see.alignment import END, Span, words

if TYPE_CHECKING:
    from saccade.see.prediction import Prediction

Others = tuple[tuple[str, float], ...]
_NAME = re.compile(r"(?:(?P<kind>encoder|decoder)(?::|$))?(?P<layer>-?\d+|mean)?(?:\.(?P<head>\d+))?")
LEAST = 0.005  # what is less likely is not told of where there is little room
START = "START"  # what a decoder has written before anything


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """Rows that looked, columns that were looked at, and what is known of each row."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]  # of a picture none: its cells have no names
    weights: NDArray[np.float32]  # [rows, columns]
    probabilities: tuple[float, ...] = ()  # of what was written, if known
    gates: tuple[float, ...] = ()
    instead: tuple[Others, ...] = ()  # what might have been written there, and its probability

    def entropy(self, row: int) -> float:
        """In nats: 0 looks at one place."""
        w = self.weights[row].astype(np.float64)
        return float((w * -np.log(np.where(w > 0, w, 1.0))).sum() + 0.0)


def usual(p: "Prediction") -> str:
    """Words, where the model reads or writes them in pieces; else the pieces, which are words or symbols already."""
    sides = [
        (words(text), [t.text.strip() for t in tokens if t.text.strip() and t.text != END])
        for text, tokens in ((p.source, p.source_tokens), (p.text, p.target_tokens))
    ]
    in_pieces = any(len(pieces) > len(whole) for whole, pieces in sides) and all(len(whole) > 1 for whole, _ in sides)
    spelt = any(sum(map(len, pieces)) < 1.5 * len(pieces) for _, pieces in sides)
    return "words" if in_pieces and not spelt and p.grid is None else "pieces"


def check_name(name: str) -> None:
    """Whether there is such a view at all, before anything is computed."""
    if not name or (name not in ("words", "pieces") and _NAME.fullmatch(name) is None):
        raise ValueError(f"view: {name!r}, expected words, pieces, mean, LAYER, LAYER.HEAD or encoder:… or decoder:…")


def view(p: "Prediction", name: str | None = None) -> View:
    """The view of that name; the usual one, without a name."""
    if p.weights is None:
        raise ValueError("view: there is no attention to show")
    name = usual(p) if name is None else name
    columns = () if p.grid is not None else tuple(t.text for t in p.source_tokens)
    rows = tuple(t.text for t in p.target_tokens)
    beside = (tuple(map(math.exp, p.log_probabilities)), p.gates, p.runners_up)
    if name == "pieces":
        return View(rows, columns, p.weights, *beside)
    if name == "words":
        return _in_words(p)
    check_name(name)
    found = _NAME.fullmatch(name)
    assert found is not None
    weights = _picked(p, found["kind"] or "cross", found["layer"], found["head"])
    match found["kind"]:
        case "encoder":
            return View(columns, columns, weights)
        case "decoder":
            return View(rows, (START, *rows[:-1]), weights, *beside)
    return View(rows, columns, weights, *beside)


def _picked(p: "Prediction", kind: str, layer: str | None, head: str | None) -> NDArray[np.float32]:
    """[T, N]: the mean of all layers and heads, of one layer, or one head."""
    if kind not in p.attention:
        raise ValueError(f"view: the {kind} told nothing of itself; ask with inside=True (--inside), of a Transformer")
    weights = p.attention[kind]  # [L, H, T, N]
    if head is not None and layer in (None, "mean"):
        raise ValueError("view: a head belongs to a layer: LAYER.HEAD")
    if layer in (None, "mean"):
        mean: NDArray[np.float32] = weights.mean((0, 1))
        return mean
    for what, number, count in (("layers", int(layer), len(weights)), ("heads", int(head or 0), weights.shape[1])):
        if not -count <= number < count:
            raise ValueError(f"view: {number}, but there are {count} {what}, from 0")
    found: NDArray[np.float32] = weights[int(layer)].mean(0) if head is None else weights[int(layer), int(head)]
    return found


def _in_words(p: "Prediction") -> View:
    """Added over the pieces of a source word, averaged over those of a written one; the ends are words too, so rows add
    up. A word is as likely as all of its pieces; what might have stood there is told of its first.
    """
    if p.grid is not None:
        raise ValueError("view: a picture has no words; expected pieces, mean, LAYER or LAYER.HEAD")
    assert p.weights is not None
    rows, wrote = _belong(p.text, [t.span for t in p.target_tokens])  # [T, words]
    columns, read = _belong(p.source, [t.span for t in p.source_tokens])  # [N, words]
    weights = (rows / rows.sum(0)).T @ p.weights @ columns
    pieces = [np.flatnonzero(column) for column in rows.T]
    costs, gates = np.array(p.log_probabilities), np.array(p.gates)
    return View(
        wrote,
        read,
        weights.astype(np.float32),
        tuple(math.exp(costs[i].sum()) for i in pieces) if len(costs) else (),
        tuple(float(gates[i].mean()) for i in pieces) if len(gates) else (),
        tuple(p.runners_up[i[0]] for i in pieces) if p.runners_up else (),
    )


def _belong(text: str, spans: Sequence[Span]) -> tuple[NDArray[np.float32], tuple[str, ...]]:
    """Which piece belongs to which word, [pieces, words], and the words; only those that have a piece.

    A piece belongs to the word of its last visible character; blanks alone belong to the next word, the end to itself.
    """
    found = words(text)
    ends = np.array([end for _, end in found], dtype=np.int64)
    member = np.zeros((len(spans), len(found) + 1), dtype=np.float32)
    for piece, (start, end) in enumerate(spans):
        last = start + len(text[start:end].rstrip())
        member[piece, np.searchsorted(ends, last if last > start else end + 1) if end > start else len(found)] = 1
    names = [*(text[a:b] for a, b in found), END]
    kept = member.sum(0) > 0
    return member[:, kept], tuple(name for name, k in zip(names, kept, strict=True) if k)
