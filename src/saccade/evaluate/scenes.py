"""Does it say what is there, and look at what it says? Both can be checked on scenes, whose content is known."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from saccade.data.scenes import Box, Scene, scene
from saccade.see import Prediction


class Pointing(NamedTuple):
    """One word that names a thing: whether attention was greatest in its box, and how much of it lay there."""

    hit: float
    mass: float
    chance: float  # the share of the picture that the box takes


def is_scene(source: str) -> bool:
    return source.startswith("scenes:")


def scene_scores(predictions: Sequence[Prediction]) -> dict[str, float]:
    """In percent: captions true of their scenes, also of those with pairs of colour and shape that training never
    showed; of the latter, captions that truly name such a pair; and pointing.
    """
    scenes = [scene(p.source) for p in predictions]
    true = [s.is_true(p.text) for s, p in zip(scenes, predictions, strict=True)]
    unseen = [(s, p.text) for s, p in zip(scenes, predictions, strict=True) if s.unseen]
    found = {"true": _percent(true)}
    if unseen:
        found["true_unseen"] = _percent([s.is_true(text) for s, text in unseen])
        found["named_unseen"] = _percent([any(m.thing.unseen for m in s.mentions(text) or ()) for s, text in unseen])
    looks = [look for s, p in zip(scenes, predictions, strict=True) for look in pointing(s, p)]
    if any(p.weights is not None for p in predictions):  # if no caption was true, it pointed at nothing
        hits, masses, chances = (
            zip(*looks, strict=True) if looks else ((), (), [t.box.area for s in scenes for t in s.things])
        )
        found |= {"pointing": _percent(hits), "mass": _percent(masses)}
        found |= {"pointing_chance": _percent(chances), "mass_chance": _percent(chances)}
    return found


def pointing(what: Scene, prediction: Prediction) -> list[Pointing]:
    """One for each word of a true caption that tells the colour, the size or the shape of a thing."""
    mentions = what.mentions(prediction.text)
    if mentions is None or prediction.weights is None or prediction.grid is None:
        return []
    looks = []
    for token, weights in zip(prediction.target_tokens, prediction.weights, strict=True):
        start, end = token.span
        start += len(prediction.text[start:end]) - len(prediction.text[start:end].lstrip())
        for mention in mentions:
            if mention.start <= start < end <= mention.end:
                inside = cells_in(mention.thing.box, prediction.grid)
                best = divmod(int(weights.argmax()), prediction.grid[1])
                centre = (best[0] + 0.5) / prediction.grid[0], (best[1] + 0.5) / prediction.grid[1]
                box = mention.thing.box
                hit = box.top <= centre[0] <= box.bottom and box.left <= centre[1] <= box.right
                looks.append(Pointing(float(hit), float((weights.reshape(prediction.grid) * inside).sum()), box.area))
    return looks


def cells_in(box: Box, grid: tuple[int, int]) -> NDArray[np.float64]:
    """The share of every cell that lies in a box: [rows, columns]."""

    def shares(low: float, high: float, count: int) -> NDArray[np.float64]:
        edges = np.arange(count + 1) / count
        return np.asarray(np.clip(np.minimum(edges[1:], high) - np.maximum(edges[:-1], low), 0, None) * count)

    return np.outer(shares(box.top, box.bottom, grid[0]), shares(box.left, box.right, grid[1]))


def _percent(numbers: Sequence[float]) -> float:
    return 100 * sum(numbers) / len(numbers) if numbers else 0.0
