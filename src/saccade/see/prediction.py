"""What was written for a source, and where it came from."""

import base64
import html
import io
import math
import os
import shutil
import sys
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from saccade.see.alignment import Span, align

VERSION = 1  # of the record: a reader refuses a newer one; fields are only ever added under one number
MOST_PIXELS = 16_000_000  # of a picture in a record
LIKELIEST = 1e-3  # a log-probability: above 0 only by rounding


class Token(NamedTuple):
    """A piece of a text, and its span in code points; the end has an empty one."""

    text: str
    span: Span


class Branch(NamedTuple):
    """A word that the beam kept at some time, whether or not anything came of it."""

    parent: int  # the branch that it continues, by its place in the tree; -1: nothing yet
    text: str
    score: float  # of all up to here, summed natural-log probability
    probability: float  # of this word after its parent


class Occluded(NamedTuple):
    """What is left of a word's probability when the places that it looked at are hidden from it."""

    places: int  # that were hidden, those most looked at
    hidden: float  # without them
    by_chance: float  # without as many others, drawn by chance; the mean of some draws


@dataclass(frozen=True)
class Prediction:
    """What was written for a source.

    `source_tokens` and `target_tokens` end with the end of the source and with STOP (unless the output was cut), so
    `weights` has a row for each of the one and a column for each of the other.
    """

    source: str
    text: str
    score: float  # summed natural-log probability
    source_tokens: tuple[Token, ...] = ()
    target_tokens: tuple[Token, ...] = ()
    log_probabilities: tuple[float, ...] = ()  # of each target token
    cross: NDArray[np.float32] | None = None  # [L, H, T, N]: where each layer and head looked; None without attention
    layer: int = -1  # whose glances `weights` shows
    unknown: tuple[str, ...] = ()  # parts of the source that the model does not know
    cut_source: bool = False  # the source was too long, and its end was not read
    cut_output: bool = False  # the output reached its limit
    alternatives: tuple["Prediction", ...] = field(default=(), repr=False)  # the next best, if asked for
    tree: tuple[Branch, ...] = field(default=(), repr=False)  # all that the beam ever kept, if asked for
    grid: tuple[int, int] | None = None  # rows and columns of the cells that N counts, if the source is a picture
    runners_up: tuple[tuple[tuple[str, float], ...], ...] = ()  # for each target token, others and their probabilities
    encoder: NDArray[np.float32] | None = None  # [L, H, N, N]: where the source looked at itself, if asked for
    decoder: NDArray[np.float32] | None = None  # [L, H, T, T]: where what is written did; column 0 is START
    cell: int | None = None  # pixels of the picture that a cell is high and wide; the last ones may reach beyond it
    numbers: tuple[int, ...] = field(default=(), repr=False)  # of the target tokens, as the model wrote them
    gates: tuple[float, ...] = ()  # β of each target token: how much of what was seen was let in, if there is a gate
    picture: NDArray[np.uint8] | None = field(default=None, repr=False)  # [height, width, 3], as the model saw it
    occluded: tuple[Occluded, ...] = ()  # of each target token, if asked for
    wrong: str = ""  # why the source could not be read, and nothing was written, if so

    @property
    def attention(self) -> dict[str, NDArray[np.float32]]:
        """Every glance by kind: cross [L, H, T, N] and, on request, encoder [L, H, N, N] and decoder [L, H, T, T]."""
        kinds = {"cross": self.cross, "encoder": self.encoder, "decoder": self.decoder}
        return {kind: weights for kind, weights in kinds.items() if weights is not None}

    @cached_property
    def weights(self) -> NDArray[np.float32] | None:
        """[T, N]: where each token looked, the mean over the heads of the layer that is shown."""
        if self.cross is None:
            return None
        mean: NDArray[np.float32] = self.cross[self.layer].mean(0)
        return mean

    @cached_property
    def alignment(self) -> list[Span]:
        """Links (i, j) between words, from 0: written word j came from source word i."""
        return [] if self.weights is None else self.align(self.weights)

    def align(self, weights: NDArray[np.float32], threshold: float | None = None) -> list[Span]:
        """The same by other weights [T, N], such as those of one head, and by what got at least a threshold."""
        return [] if self.grid is not None else align(weights, *self._spans(), self.source, self.text, threshold)

    def cell_size(self) -> tuple[float, float]:
        """How wide and how high a cell is on the picture, in its pixels; without a picture, 1 by 1."""
        if self.grid is None or self.picture is None:
            return 1.0, 1.0
        (rows, columns), (height, width) = self.grid, self.picture.shape[:2]
        return (width / columns, height / rows) if self.cell is None else (self.cell, self.cell)

    def _spans(self) -> tuple[list[Span], list[Span]]:
        return [t.span for t in self.source_tokens], [t.span for t in self.target_tokens]

    def pharaoh(self) -> str:
        """The alignment as other tools read it: `0-0 1-2`."""
        return " ".join(f"{i}-{j}" for i, j in sorted(self.alignment))

    def record(self, picture: bool = False) -> dict[str, Any]:
        """Everything as plain JSON values, under a version number; `picture` packs that in too, as PNG."""
        record: dict[str, Any] = {
            "version": VERSION,
            "source": self.source,
            "text": self.text,
            "score": _short(self.score),
            "source_tokens": [{"text": t.text, "span": list(t.span)} for t in self.source_tokens],
            "target_tokens": [{"text": t.text, "span": list(t.span)} for t in self.target_tokens],
            "log_probabilities": [_short(p) for p in self.log_probabilities],
            "layer": self.layer,
            "attention": {k: _nested(w) for k, w in self.attention.items()},
            "alignment": [list(link) for link in self.alignment],
            "unknown": list(self.unknown),
            "cut_source": self.cut_source,
            "cut_output": self.cut_output,
        }
        if self.wrong:
            record |= {"error": self.wrong, "score": None}
        if self.grid is not None:
            record |= {"grid": list(self.grid), "cell": self.cell}
            if self.picture is not None:
                record["size"] = list(self.picture.shape[:2])  # of the picture as it was seen, in the cells' pixels
                record |= {"picture": packed(self.picture)} if picture else {}
        if self.gates:
            record["gates"] = [_short(g) for g in self.gates]
        if self.occluded:
            record["occluded"] = [
                {"places": o.places, "hidden": _short(o.hidden), "by_chance": _short(o.by_chance)}
                for o in self.occluded
            ]
        if self.runners_up:
            record["runners_up"] = [
                [{"text": text, "probability": _short(share)} for text, share in row] for row in self.runners_up
            ]
        if self.tree:
            record["tree"] = [
                {"parent": b.parent, "text": b.text, "score": _short(b.score), "probability": _short(b.probability)}
                for b in self.tree
            ]
        if self.alternatives:
            record["alternatives"] = [{"text": a.text, "score": _short(a.score)} for a in self.alternatives]
        return record

    @classmethod
    def read(cls, record: dict[str, Any]) -> "Prediction":
        """A prediction from its record."""
        if not isinstance(record, dict) or not isinstance(version := record.get("version"), int):
            raise ValueError("not the record of a prediction: it has no version")
        if version > VERSION:
            raise ValueError(f"a record of version {version}, newer than this saccade knows ({VERSION})")
        try:
            tokens = [
                tuple(Token(t["text"], tuple(t["span"])) for t in record[side])
                for side in ("source_tokens", "target_tokens")
            ]
            glances = {kind: _matrix(kind, weights) for kind, weights in record["attention"].items()}
            if "cross" in glances and not glances["cross"].size:  # nothing written: lists do not tell how much was read
                read = math.prod(record["grid"]) if "grid" in record else len(tokens[0])
                glances["cross"] = glances["cross"].reshape(*glances["cross"].shape[:2], 0, read)
            found = cls(
                record["source"],
                record["text"],
                0.0 if record.get("error") else record["score"],
                tokens[0],
                tokens[1],
                tuple(record["log_probabilities"]),
                glances.get("cross"),
                encoder=glances.get("encoder"),
                decoder=glances.get("decoder"),
                layer=record["layer"],
                unknown=tuple(record["unknown"]),
                cut_source=record["cut_source"],
                cut_output=record["cut_output"],
                cell=record.get("cell"),
                gates=tuple(record.get("gates", ())),
                grid=tuple(record["grid"]) if "grid" in record else None,
                picture=unpacked(record["picture"]) if "picture" in record else None,
                occluded=tuple(Occluded(**o) for o in record.get("occluded", [])),
                wrong=record.get("error", ""),
                tree=tuple(Branch(**branch) for branch in record.get("tree", [])),
                runners_up=tuple(
                    tuple((r["text"], r["probability"]) for r in row) for row in record.get("runners_up", [])
                ),
            )
            others = tuple(cls(found.source, a["text"], a["score"]) for a in record.get("alternatives", []))
            for one in (found, *others):
                one._check()
        except (KeyError, TypeError, AttributeError, IndexError) as error:
            raise ValueError(f"not the record of a prediction: {type(error).__name__} {error}") from None
        return replace(found, alternatives=others)

    def _check(self) -> None:
        """Whether its parts fit together; somebody else may have written them."""
        written, read = len(self.target_tokens), len(self.source_tokens)
        tokens = (*self.source_tokens, *self.target_tokens)
        if not all(isinstance(t, str) for t in (self.source, self.text, self.wrong, *(t.text for t in tokens))):
            raise TypeError("source, text and tokens must be texts")
        if any("\ud800" <= c <= "\udfff" for text in (self.source, self.text) for c in text):
            raise TypeError("half of a surrogate pair stands in a text")
        places = read if self.grid is None else self.grid[0] * self.grid[1]
        shapes = {"cross": (written, places), "encoder": (places, places), "decoder": (written, written)}
        for kind, weights in self.attention.items():
            if weights.ndim != 4 or weights.shape[2:] != shapes[kind]:
                raise TypeError(
                    f"{kind}: shape {list(weights.shape)}, expected [L, H, {', '.join(map(str, shapes[kind]))}]"
                )
        if not isinstance(self.layer, int) or not all(isinstance(u, str) for u in self.unknown):
            raise TypeError("layer must be a number, and what is unknown texts")
        if self.cross is not None and not -len(self.cross) <= self.layer < len(self.cross):
            raise TypeError(f"layer: {self.layer}, but there are {len(self.cross)}")
        for name in ("log_probabilities", "runners_up", "gates", "occluded"):
            if len(getattr(self, name)) not in (0, written):
                raise TypeError(f"{name}: {len(getattr(self, name))} for {written} tokens")
        self._check_values()

    def _check_values(self) -> None:
        numbers = (self.score, *self.log_probabilities, *self.gates, *(x for row in self.runners_up for _, x in row))
        numbers += tuple(x for row in self.occluded for x in row)
        if not all(isinstance(x, int | float) and math.isfinite(x) for x in numbers):
            raise TypeError("scores and probabilities must be numbers")
        if any(p > LIKELIEST for p in self.log_probabilities):
            raise TypeError("log_probabilities: above 0")
        if not all(isinstance(text, str) for row in self.runners_up for text, _ in row):
            raise TypeError("runners_up: must be texts with their probabilities")
        for token in (*self.source_tokens, *self.target_tokens):
            if len(token.span) != 2 or not all(isinstance(x, int) and x >= 0 for x in token.span):
                raise TypeError(f"span: {token.span}, expected two places in the text")
        if self.grid is not None and not all(isinstance(x, int) and x > 0 for x in self.grid):
            raise TypeError(f"grid: {self.grid}, expected rows and columns")
        if not all(np.isfinite(w).all() and (w >= 0).all() for w in self.attention.values()):
            raise TypeError("attention: weights must be numbers of at least 0")

    def save(self, path: Path | str, view: str | None = None) -> None:
        """Writes it as its ending says: .html .json .csv .txt, a picture: .png .svg .pdf, or what other tools read:
        .soft as Nematus does, .pharaoh.

        `view` says which glances a .csv, a .txt or a picture shows: words, pieces, mean, LAYER, LAYER.HEAD, or the last
        three with words:, encoder: or decoder: before them. The others hold them all.
        """
        from saccade.see.files import save  # noqa: PLC0415  (views know predictions, not the other way round)

        save([self], Path(path), view)

    def show(self, view: str | None = None) -> None:
        """Draws a heatmap in the terminal; `view` as for `save`."""
        colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        sys.stdout.write(self.drawn(colour, shutil.get_terminal_size((100, 24)).columns, view) + "\n")

    def drawn(self, colour: bool = True, width: int = 80, view: str | None = None) -> str:
        """The heatmap that a terminal shows."""
        from saccade.see.terminal import heatmap  # noqa: PLC0415

        return heatmap(self, colour, width, view)

    def _repr_html_(self) -> str:
        """How it draws itself in a notebook: the page, in a frame of its own, so that several do not meet."""
        from saccade.see.page import page  # noqa: PLC0415

        height = min(900, 240 + 30 * len(self.target_tokens))
        inside = html.escape(page([self], title=self.source))
        return (
            f'<iframe title="Where it looked" sandbox="allow-scripts" width="100%" height="{height}" srcdoc="{inside}">'
            "</iframe>"
        )


def _matrix(kind: str, weights: Any) -> NDArray[np.float32]:
    try:
        return np.array(weights, np.float32)
    except ValueError:
        raise TypeError(f"{kind}: its rows are of different lengths, or no numbers") from None


def packed(pixels: NDArray[np.uint8]) -> str:
    """A picture as PNG, in base64."""
    from PIL import Image  # noqa: PLC0415  (only where there is a picture)

    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG")
    return base64.b64encode(out.getvalue()).decode()


def unpacked(text: str) -> NDArray[np.uint8]:
    """The same, back; somebody else may have written it."""
    from PIL import Image  # noqa: PLC0415

    if not isinstance(text, str):
        raise TypeError("picture: is no PNG in base64")
    try:
        with Image.open(io.BytesIO(base64.b64decode(text, validate=True)), formats=["PNG"]) as image:
            if image.width * image.height > MOST_PIXELS:
                raise TypeError(f"picture: {image.width} by {image.height} pixels are too many")
            return np.asarray(image.convert("RGB"))
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        raise TypeError("picture: is no PNG in base64") from None


def _short(number: float) -> float:
    return float(f"{number:.7g}")


def _nested(weights: NDArray[np.float32]) -> Any:
    return np.round(weights.astype(np.float64), 7).tolist()
