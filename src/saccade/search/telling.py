"""From what was written to what is told of it: a hypothesis, and what forced decoding finds, as a Prediction."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from saccade.data import START, STOP, Encoded, Tokeniser
from saccade.data.batches import pad
from saccade.model import Memory
from saccade.model.images import ImageEncoder
from saccade.search.beam import Hypothesis
from saccade.search.force import force
from saccade.search.reading import Reading, Voice, spread_onto_first
from saccade.see import Prediction, Token
from saccade.see.alignment import END

RUNNERS = 3  # words told of that might have stood in place of one


class Looked(NamedTuple):
    """What forced decoding tells of an output."""

    costs: list[float]  # of each word
    attention: dict[str, Tensor]  # by kind, as a Prediction has it
    beside: tuple[tuple[tuple[int, float], ...], ...]  # other words and their probabilities
    gates: tuple[float, ...]  # how much of what was seen was let in, if there is a gate


def look_at(
    voices: Sequence[Voice],
    sources: Sequence[Reading],
    memories: Sequence[Memory],
    written: Sequence[Hypothesis],
    inside: bool = False,
    steer: tuple[int, ...] | None = None,
) -> list[Looked]:
    """Forced decoding of what was written: what each word cost, and weights [L, H, T, N] without the padding."""
    targets = pad([h.tokens for h in written]).to(memories[0].mask.device)  # [B, T]
    spread = [
        None if voice.reader is voices[0].reader else spread_onto_first(sources, i, memory.mask.shape[1])
        for i, (voice, memory) in enumerate(zip(voices, memories, strict=True))
    ]
    look = None if steer is None else _steered(memories[0].mask, targets, steer)
    models = [voice.model for voice in voices]
    forced = force(models, memories, targets, start=START, spread=spread, look=look, beside=RUNNERS + 1)
    looks = []
    for b, hypothesis in enumerate(written):
        words, real = len(hypothesis.tokens), memories[0].mask[b]
        attention: dict[str, Tensor] = {}
        if forced.weights is not None:
            attention["cross"] = forced.weights[b, :words].permute(1, 2, 0, 3)[..., real]  # [L, H, T, N]
        if inside and memories[0].itself is not None:
            attention["encoder"] = memories[0].itself[b][:, :, real][..., real]  # [L, H, N, N]
        if inside and forced.itself is not None:
            attention["decoder"] = forced.itself[b, :words, ..., :words].permute(1, 2, 0, 3)  # [L, H, T, T]
        rows = zip(hypothesis.tokens, forced.numbers[b].tolist(), forced.likely[b].exp().tolist(), strict=False)
        beside = tuple(
            tuple((n, share) for n, share in zip(numbers, shares, strict=True) if n != token)[:RUNNERS]
            for token, numbers, shares in rows
        )
        gates = () if forced.gates is None else tuple(forced.gates[b, :words].tolist())
        looks.append(Looked(forced.log_probabilities[b, :words].tolist(), attention, beside, gates))
    return looks


def _steered(mask: Tensor, targets: Tensor, steer: tuple[int, ...]) -> Tensor:
    """Where each word may look, [B, T, N]: everywhere, but for one word, which may look at some places alone."""
    (word, *places), many = steer, mask.sum(1).min().item()
    if not 0 <= word < targets.shape[1] or not places or not all(0 <= place < many for place in places):
        told = ", ".join(map(str, steer))
        raise ValueError(f"steer: ({told}), but there are {targets.shape[1]} words and {many} places")
    look = mask.unsqueeze(1).repeat(1, targets.shape[1], 1)
    order = mask.cumsum(1) - 1  # the cells of a small picture are not the frame's first ones
    look[:, word] = mask & torch.isin(order, torch.tensor(places, device=mask.device))
    return look


def tell(source: Reading, hypothesis: Hypothesis, target: Tokeniser) -> Prediction:
    """What was written, in words."""
    shown = None
    if source.picture is not None:
        height, width = source.picture.size
        shown = source.picture.pixels[:height, :width]
    return Prediction(
        source.text,
        target.decode(hypothesis.tokens),
        hypothesis.score,
        unknown=source.unknown,
        cut_source=source.cut,
        cut_output=hypothesis.cut,
        picture=shown,
    )


def tell_more(
    source: Reading, hypothesis: Hypothesis, seen: Looked, voices: Sequence[Voice], target: Tokeniser, layer: int
) -> Prediction:
    """The same, and where it was looked for; of several layers this one is shown first."""
    ids, encoder = hypothesis.tokens, voices[0].model.encoder
    glances = {kind: weights.float().cpu().numpy() for kind, weights in seen.attention.items()}
    grid = cell = None
    if source.picture is not None:
        assert isinstance(encoder, ImageEncoder)
        cell = encoder.stride
        grid = -(-source.picture.size[0] // cell), -(-source.picture.size[1] // cell)  # with something of it in them
    return replace(
        tell(source, hypothesis, target),
        source_tokens=source.tokens,
        target_tokens=tuple(_pieces(ids, target)),
        numbers=tuple(ids),
        log_probabilities=tuple(seen.costs),
        cross=glances.get("cross"),
        encoder=glances.get("encoder"),
        decoder=glances.get("decoder"),
        layer=layer if "cross" in glances and len(glances["cross"]) > 1 else 0,
        grid=grid,
        cell=cell,
        runners_up=tuple(
            tuple((_added(ids[:t], n, target), share) for n, share in row) for t, row in enumerate(seen.beside)
        ),
        gates=seen.gates,
    )


def as_given(found: Prediction, text: str, encoded: Encoded) -> Prediction:
    """With the words of a target as they were given, also those that the model itself cannot write."""
    if not found.target_tokens:
        return found
    pieces = [Token(text[a:b], (a, b)) for a, b in encoded.spans[: len(found.target_tokens) - 1]]
    ended = (*pieces, Token(END, (len(text), len(text))))
    return replace(found, text=text, score=sum(found.log_probabilities), target_tokens=ended)


def _pieces(ids: Sequence[int], target: Tokeniser) -> list[Token]:
    """What each number added to the text; one that only changed its last character stands for that one."""
    pieces, end, text = [], 0, ""
    for i, number in enumerate(ids):
        if number == STOP:
            pieces.append(Token(END, (end, end)))
            continue
        text = target.decode(ids[: i + 1])
        start, end = min(end, max(0, len(text) - 1)), len(text)
        pieces.append(Token(text[start:end], (start, end)))
    return pieces


def _added(before: Sequence[int], number: int, target: Tokeniser) -> str:
    """What a number would have added to what stood before it, with the blank between them if there is one."""
    if number == STOP:
        return END
    last = list(before[-1:])  # enough to tell whether a word goes on
    return target.decode([*last, number])[len(target.decode(last)) :] or "␣"
