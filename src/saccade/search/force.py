"""Forced decoding: given what was written, what did each word cost, and where did the model look for it?

The attention that is shown for a hypothesis is always this one, so it is the attention of just that hypothesis, however
it was found.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from saccade.data.batches import pad
from saccade.model import Memory, Model

AT_ONCE = 8  # texts of a sentence that are read together
LOGITS = 4_000_000  # numbers of logits that are held at a time


class Forced(NamedTuple):
    """What the models say of given targets [B, T]."""

    log_probabilities: Tensor  # [B, T]: of each word
    likely: Tensor  # [B, T, R]: those of the likeliest words in its place, as many as were asked for
    numbers: Tensor  # [B, T, R]: and which words these are
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
    beside: int = 0,
) -> Forced:
    """Reads targets [B, T], each word after START and the words before it. Several models speak as one.

    Of what might have stood in the place of each word so many of the likeliest are told (`beside`), and never all: of a
    batch of long targets and a large vocabulary that is gigabytes.

    `spread` [B, N, N of the first] says, for a model that cuts the source into other pieces, how these lie on those.
    `look` [B, T, N] interferes with where they look, as it does in a decoder.
    """
    given = torch.cat([torch.full_like(targets[:, :1], start), targets[:, :-1]], 1)
    hidden, looked, itself, gates = [], [], [], []
    for model, memory, onto in zip(models, memories, spread or [None] * len(models), strict=True):
        outputs = model.decoder(memory, given, need_weights=need_weights, look=look)
        hidden.append(outputs.hidden.flatten(0, 1))  # [B·T, D]
        weights = outputs.weights
        if weights is not None and onto is not None:
            weights = weights @ onto.to(weights)[:, None, None]  # [B, T, L, H, N of the first]
        looked.append(weights)
        itself.append(outputs.itself)
        gates.append(outputs.gates)
    said, likely, numbers = _said(models, hidden, targets.flatten(), beside)  # [B·T], [B·T, R]
    shown = [w for w in looked if w is not None]
    same = len(shown) == len(looked) and len({w.shape for w in shown}) == 1
    if not same:  # layers and heads that do not correspond are averaged away first
        shown = [w.mean((2, 3), keepdim=True) for w in shown]
    let_in = [g for g in gates if g is not None]
    return Forced(
        said.view(targets.shape),
        likely.view(*targets.shape, likely.shape[1]),
        numbers.view(*targets.shape, likely.shape[1]),
        torch.stack(shown).mean(0) if shown else None,
        itself[0] if len(itself) == 1 else None,
        torch.stack(let_in).mean(0) if len(let_in) == len(gates) else None,
    )


@torch.inference_mode()
def costs(
    models: Sequence[Model], memories: Sequence[Memory], texts: Sequence[Sequence[Sequence[int]]], *, start: int
) -> list[list[float]]:
    """The summed log probability of each of several texts of each sentence. Several models speak as one.

    Nothing is kept of what might have stood in their place, so many texts take little memory.
    """
    found: list[list[float]] = [[] for _ in texts]
    for first in range(0, max(map(len, texts), default=0), AT_ONCE):
        some = [each[first : first + AT_ONCE] for each in texts]
        most = max(map(len, some))
        filled = [text for each in some for text in (*each, *[()] * (most - len(each)))]  # B·K
        targets = pad(filled).view(len(texts), most, -1).to(memories[0].mask.device)  # [B, K, T]
        lengths = torch.tensor([len(text) for text in filled], device=targets.device).view(len(texts), most, 1)
        real = torch.arange(targets.shape[2], device=targets.device) < lengths
        given = torch.cat([torch.full_like(targets[..., :1], start), targets[..., :-1]], -1)
        pairs = zip(models, memories, strict=True)
        hidden = [model.decoder(memory, given).hidden[real] for model, memory in pairs]  # [R, D]
        each_word, *_ = _said(models, hidden, targets[real])  # [R]
        totals = torch.zeros(real.shape, dtype=each_word.dtype, device=real.device)
        totals = totals.masked_scatter(real, each_word).sum(-1)  # [B, K]
        for mine, each, scores in zip(found, some, totals.tolist(), strict=True):
            mine.extend(scores[: len(each)])
    return found


def _said(
    models: Sequence[Model], hidden: Sequence[Tensor], words: Tensor, beside: int = 0
) -> tuple[Tensor, Tensor, Tensor]:
    """What words [R] cost after hidden vectors [R, D] of each model, and the likeliest words there with what they cost,
    [R, beside] each. Of all logits [R, V] only a piece is there at a time.
    """
    vocabulary = models[0].decoder.output.out_features
    rows, beside = max(1, LOGITS // vocabulary), min(beside, vocabulary)
    own = hidden[0].new_empty(len(words))  # made first: small pieces left between large ones would keep these apart
    likely, numbers = own.new_empty(len(words), beside), words.new_empty(len(words), beside)
    for first in range(0, len(words), rows):
        piece = slice(first, first + rows)
        each = [m.decoder.readout(h[piece]).log_softmax(-1) for m, h in zip(models, hidden, strict=True)]  # [r, V]
        said = each[0] if len(each) == 1 else torch.stack(each).logsumexp(0) - math.log(len(each))
        own[piece] = said.gather(1, words[piece].unsqueeze(1)).squeeze(1)
        likely[piece], numbers[piece] = said.topk(beside)
    return own, likely, numbers
