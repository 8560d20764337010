"""Forced decoding: given what was written, what did each word cost, and where did the model look for it?

The attention that is shown for a hypothesis is always this one, so it is the attention of just that hypothesis, however
it was found.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from saccade.model import Memory, Model


class Forced(NamedTuple):
    """What the models say of given targets [B, T]."""

    log_probabilities: Tensor  # [B, T, V]
    weights: Tensor | None  # [B, T, L, H, N]: the mean over the models; None without attention
    itself: Tensor | None  # [B, T, L, H, T]: where one Transformer alone looked among the words before
    gates: Tensor | None  # [B, T]: how much of what they saw was let in, the mean over the models; None without gates


@torch.inference_mode()
def force(
    models: Sequence[Model],
    memories: Sequence[Memory],
    targets: Tensor,
    *,
    start: int,
    spread: Sequence[Tensor | None] | None = None,
    look: Tensor | None = None,
    need_weights: bool = True,
) -> Forced:
    """Reads targets [B, T], each word after START and the words before it. Several models speak as one.

    `spread` [B, N, N of the first] says, for a model that cuts the source into other pieces, how these lie on those.
    `look` [B, T, N] interferes with where they look, as it does in a decoder.
    """
    given = torch.cat([torch.full_like(targets[:, :1], start), targets[:, :-1]], 1)
    said, looked, itself, gates = [], [], [], []
    for model, memory, onto in zip(models, memories, spread or [None] * len(models), strict=True):
        outputs = model.decoder(memory, given, need_weights=need_weights, look=look)
        said.append(model.decoder.readout(outputs.hidden).log_softmax(-1))
        weights = outputs.weights
        if weights is not None and onto is not None:
            weights = weights @ onto.to(weights)[:, None, None]  # [B, T, L, H, N of the first]
        looked.append(weights)
        itself.append(outputs.itself)
        gates.append(outputs.gates)
    log_probabilities = torch.stack(said).logsumexp(0) - math.log(len(said))
    shown = [w for w in looked if w is not None]
    same = len(shown) == len(looked) and len({w.shape for w in shown}) == 1
    if not same:  # layers and heads that do not correspond are averaged away first
        shown = [w.mean((2, 3), keepdim=True) for w in shown]
    let_in = [g for g in gates if g is not None]
    return Forced(
        log_probabilities,
        torch.stack(shown).mean(0) if shown else None,
        itself[0] if len(itself) == 1 else None,
        torch.stack(let_in).mean(0) if len(let_in) == len(gates) else None,
    )
