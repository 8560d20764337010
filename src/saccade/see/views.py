"""Which glances of a prediction are shown, and what stands beside each row: whatever draws attention draws a View.

A view has a name: `pieces`, `mean` (of all layers), a layer `1`, a head `1.3`; each of them in words: `words`,
`words:mean`, `words:1.3`; and what the source or the target saw in itself: `encoder`, `encoder:1`, `decoder:1.3`.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from saccade.errors import UsageError
from saccade.metrics import ailments, entropy
from saccade.see.alignment import END, Span, words

if TYPE_CHECKING:
    from saccade.see.prediction import Prediction

Others = tuple[tuple[str, float], ...]
_NAME = re.compile(r"(?:(?P<kind>words|encoder|decoder)(?::|$))?(?P<layer>-?\d+|mean)?(?:\.(?P<head>\d+))?")
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
    occluded: tuple[tuple[float, float], ...] = ()  # its probability with its look hidden, and with other places hidden
    title: str = ""  # which layer and head, if not those that are usually shown

    def entropy(self, row: int) -> float:
        """In nats: 0 looks at one place; a row that looks nowhere has none."""
        looked = self.weights[row]
        return float(entropy(looked)) if looked.any() else math.nan


@dataclass(frozen=True, slots=True, eq=False)
class Words:
    """Which words the pieces of a prediction make; the ends are words too, so rows add up."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    wrote: tuple[int, ...]  # of each piece that was written, its word
    read: tuple[int, ...]  # of each piece of the source

    def merge(self, weights: NDArray[np.float32]) -> NDArray[np.float32]:
        """[T, N] over pieces: added over those of a source word, averaged over those of a written one."""
        rows, columns = (np.eye(len(of), dtype=np.float32)[list(i)] for of, i in self._sides())  # [pieces, words]
        merged: NDArray[np.float32] = (rows / rows.sum(0)).T @ weights @ columns
        return merged

    def pieces(self) -> list[NDArray[np.int64]]:
        """Those of each word that was written."""
        return [np.flatnonzero(np.array(self.wrote) == j) for j in range(len(self.rows))]

    def _sides(self) -> tuple[tuple[tuple[str, ...], tuple[int, ...]], ...]:
        return (self.rows, self.wrote), (self.columns, self.read)


def digits(value: float) -> str:
    """With two digits; a dash where there is none."""
    return "–" if math.isnan(value) else f"{value:.2f}"


def warnings_of(p: "Prediction") -> list[str]:
    """What a reader has to know of the glances: they do not move, sit on one place, or do not add up to one.

    Links that somebody drew are all or nothing, and need not add up.
    """
    if p.weights is None or np.isin(p.weights, (0, 1)).all():
        return []
    return [f"attention {what}" for what in ailments(p.weights)]


def unseen(p: "Prediction") -> str | None:
    """Why there is nothing to draw, if so."""
    if p.wrong:
        return p.wrong
    if not p.source.strip():
        return "the source is empty, so nothing was written"
    if p.weights is None:  # a prediction that was looked at has tokens
        return "this model has no attention to show" if p.target_tokens else "where it looked is not known"
    return None if p.weights.size else "nothing was written, so nothing was looked at"


def usual(p: "Prediction") -> str:
    """Words, where the model reads or writes them in pieces; else the pieces, which are words or symbols already."""
    sides = [
        (words(text), [t.text.strip() for t in tokens if t.text.strip() and t.text != END])
        for text, tokens in ((p.source, p.source_tokens), (p.text, p.target_tokens))
    ]
    in_pieces = any(len(pieces) > len(whole) for whole, pieces in sides) and all(len(whole) > 1 for whole, _ in sides)
    spelt = any(all(len(piece) == 1 for piece in pieces) for _, pieces in sides)
    return "words" if in_pieces and not spelt and p.grid is None else "pieces"


def check_name(name: str) -> None:
    """Whether there is such a view at all, before anything is computed."""
    if not name or (name != "pieces" and _NAME.fullmatch(name) is None):
        raise UsageError(
            f"view: {name!r}, expected words, pieces, mean, LAYER, LAYER.HEAD, or words:…, encoder:… or decoder:…"
        )


def view(p: "Prediction", name: str | None = None) -> View:
    """The view of that name; the usual one, without a name."""
    if p.weights is None:
        raise ValueError("view: there is no attention to show")
    name = usual(p) if name is None else name
    columns = () if p.grid is not None else tuple(t.text for t in p.source_tokens)
    rows = tuple(t.text for t in p.target_tokens)
    hidden = tuple((o.hidden, o.by_chance) for o in p.occluded)
    beside = (tuple(map(math.exp, p.log_probabilities)), p.gates, p.runners_up, hidden)
    if name == "pieces":
        return View(rows, columns, p.weights, *beside)
    if name == "words":
        return _in_words(p, p.weights)
    check_name(name)
    found = _NAME.fullmatch(name)
    assert found is not None
    kind = found["kind"] or "cross"
    weights = _picked(p, "cross" if kind == "words" else kind, found["layer"], found["head"])
    title = _title(found["layer"], found["head"])
    match kind:
        case "words":
            return _in_words(p, weights, title)
        case "encoder":
            return View(places_of(p), places_of(p), weights, title=f"the source at itself, {title}")
        case "decoder":
            title = f"what was written at itself, {title}"
            return View(rows, (START, *rows[:-1]), weights, *beside, title=title)
    return View(rows, columns, weights, *beside, title=title)


def _title(layer: str | None, head: str | None) -> str:
    if layer in (None, "mean"):
        return "mean of all layers"
    return f"layer {layer}, " + ("mean of its heads" if head is None else f"head {head}")


def places_of(p: "Prediction") -> tuple[str, ...]:
    """Names for what was read: tokens, or the rows and columns of a picture."""
    if p.grid is None:
        return tuple(t.text for t in p.source_tokens)
    return tuple(f"{r + 1},{c + 1}" for r in range(p.grid[0]) for c in range(p.grid[1]))


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


def _in_words(p: "Prediction", weights: NDArray[np.float32], title: str = "") -> View:
    """A word is as likely as all of its pieces; what might have stood there is told of its first."""
    made = words_of(p)
    pieces = made.pieces()
    costs, gates = np.array(p.log_probabilities), np.array(p.gates)
    hidden = np.array([(o.hidden, o.by_chance) for o in p.occluded])
    return View(
        made.rows,
        made.columns,
        made.merge(weights),
        tuple(math.exp(costs[i].sum()) for i in pieces) if len(costs) else (),
        tuple(float(gates[i].mean()) for i in pieces) if len(gates) else (),
        tuple(_starts(p.runners_up[i[0]], len(i)) for i in pieces) if p.runners_up else (),
        tuple((float(a), float(b)) for a, b in (hidden[i].prod(0) for i in pieces)) if len(hidden) else (),
        title,
    )


def _starts(others: Others, pieces: int) -> Others:
    """Where a word has several pieces, another first piece is only the start of another word."""
    return others if pieces == 1 else tuple((f"{text}…", share) for text, share in others)


def words_of(p: "Prediction") -> Words:
    if p.grid is not None:
        raise ValueError("view: a picture has no words; expected pieces, mean, LAYER or LAYER.HEAD")
    rows, wrote = _belong(p.text, [t.span for t in p.target_tokens])
    columns, read = _belong(p.source, [t.span for t in p.source_tokens])
    return Words(rows, columns, wrote, read)


def _belong(text: str, spans: Sequence[Span]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """The words that have a piece, and the word of each piece.

    A piece belongs to the word of its last visible character; blanks alone belong to the next word, the end to itself.
    """
    found = words(text)
    ends = [end for _, end in found]
    names = [*(text[a:b] for a, b in found), END]
    places = []
    for start, end in spans:
        last = start + len(text[start:end].rstrip())
        wanted = last if last > start else end + 1
        places.append(int(np.searchsorted(ends, wanted)) if end > start else len(found))
    kept = sorted(set(places))
    return tuple(names[k] for k in kept), tuple(kept.index(k) for k in places)
