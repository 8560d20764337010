"""Did the glance matter? Hide what a word looked at, and see what becomes of its probability."""

import math
from dataclasses import replace

import numpy as np
import torch

from saccade.data import START
from saccade.search.force import force
from saccade.search.translator import Translator
from saccade.see import Prediction
from saccade.see.prediction import Occluded

DRAWS = 5  # of other places; one alone may happen to hide what matters
HIDDEN = 0.5  # share of a word's attention that is hidden: as few places as hold it


@torch.inference_mode()
def occlude(translator: Translator, source: str, text: str | Prediction, seed: int = 0) -> Prediction:
    """A text, written for a source, with what is left of each word when what it looked at is hidden: `p.occluded`.

    A prediction of this model is judged by the very pieces in which it was written; a text may be cut otherwise.

    Only the look of that one word is interfered with; what was written before it was written with all in sight. Each
    word is a row of its own, so this costs six forced decodings of as many rows as there are words.
    """
    prediction = text if isinstance(text, Prediction) and text.numbers else translator.score(source, _text(text))
    if prediction.weights is None:
        raise ValueError("this model has no attention to interfere with")
    if not translator.alike:
        raise ValueError("these runs cut the source into different pieces, so that no place can be hidden from all")
    weights = torch.from_numpy(np.ascontiguousarray(prediction.weights))  # [T, N]
    written, places = weights.shape
    ids = prediction.numbers
    chance = torch.Generator().manual_seed(seed)
    order = weights.argsort(-1, descending=True)
    held = weights.gather(1, order).cumsum(-1) - weights.gather(1, order) < HIDDEN * weights.sum(-1, keepdim=True)
    counts = held.sum(-1).clamp(1, max(1, places - 1))  # [T]: at least one is hidden, at least one stays
    rank = order.argsort(-1)  # [T, N]: 0 for the place looked at most
    most = rank < counts.unsqueeze(1)
    draws = torch.rand(DRAWS, written, places, generator=chance).masked_fill(
        most, 2.0
    )  # others first, those if need be
    others = draws.argsort(-1).argsort(-1) < counts.unsqueeze(1)  # [draws, T, N]

    memories = translator.memories(source)
    rows = torch.zeros(written, dtype=torch.long)
    memories = [memory.select(rows.to(memory.mask.device)) for memory in memories]
    device = memories[0].mask.device
    targets = torch.tensor([ids]).expand(written, -1).to(device)  # [T, T]
    real = memories[0].mask[0].cpu().nonzero().squeeze(1)  # places of the padded memory that `weights` counts
    steps = torch.arange(written)

    def probabilities(hide: torch.Tensor) -> list[float]:
        look = torch.ones(written, written, memories[0].mask.shape[1], dtype=torch.bool)
        shown = look[steps, steps]
        shown[:, real] = ~hide
        look[steps, steps] = shown
        said = force(translator.models, memories, targets, start=START, look=look.to(device))
        return [math.exp(p) for p in said.log_probabilities.diagonal().tolist()]

    by_chance = np.mean([probabilities(some) for some in others], 0).tolist()
    found = zip(counts.tolist(), probabilities(most), by_chance, strict=True)
    return replace(prediction, occluded=tuple(Occluded(*row) for row in found))


def _text(given: str | Prediction) -> str:
    return given if isinstance(given, str) else given.text
