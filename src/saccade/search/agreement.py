"""Agreement: of what is written from the start and what is written from the end, the text that both like best.

Who writes one way has doubts late, when what led there can no longer be changed; who writes the other way has them
elsewhere (Liu et al. 2016, Agreement on target-bidirectional LSTMs for sequence-to-sequence learning).
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from saccade.data.batches import pad
from saccade.model import Memory, Model
from saccade.search.beam import Hypothesis, beam_search
from saccade.search.force import force


@torch.inference_mode()
def agree(
    models: Sequence[Model],
    memories: Sequence[Memory],
    found: list[list[Hypothesis]],
    limits: Tensor,
    *,
    start: int,
    stop: int,
    beam: int,
    length_penalty: float,
    never: Sequence[int] = (),
    free: bool = True,
) -> list[list[Hypothesis]]:
    """What was found from the start, and what the models find from the end, ranked by the mean of the two scores over
    (their length)^length_penalty; as many as were found. The score of each is that of writing it from the start.

    Where the beginning is not `free`, nothing is sought from the end, which cannot know it; but it has its say.
    """
    behind = [model.turned(memory) for model, memory in zip(models, memories, strict=True)]
    writers, mirrored = [model for model, _ in behind], [memory for _, memory in behind]
    others: list[list[Hypothesis]] = [[] for _ in found]
    if free:
        options = {"start": start, "stop": stop, "beam": beam, "length_penalty": length_penalty}
        others = beam_search(writers, mirrored, limits, never=never, **options)  # type: ignore[arg-type]
    offers = [offered(mine, theirs, stop) for mine, theirs in zip(found, others, strict=True)]
    ranked: list[list[tuple[float, Hypothesis]]] = [[] for _ in offers]
    for k in range(max(map(len, offers), default=0)):  # one of each at a time: many take no more memory than one
        texts = [offer[k if k < len(offer) else 0].tokens for offer in offers]
        one = _costs(models, memories, texts, start)
        other = _costs(writers, mirrored, [turned(text, stop) for text in texts], start)
        for b, offer in enumerate(offers):
            if k < len(offer):
                rank = (one[b] + other[b]) / 2 / len(texts[b]) ** length_penalty
                ranked[b].append((rank, Hypothesis(texts[b], one[b], offer[k].cut)))
    best = [sorted(each, key=lambda r: -r[0]) for each in ranked]
    return [[h for _, h in each[: len(mine)]] for each, mine in zip(best, found, strict=True)]


def offered(mine: list[Hypothesis], theirs: list[Hypothesis], stop: int) -> list[Hypothesis]:
    """What is to be judged: each text once, those that were cut off only if none came to its end."""
    both = [*mine, *(Hypothesis(turned(h.tokens, stop), h.score, h.cut) for h in theirs)]
    return list({h.tokens: h for h in both if not h.cut}.values()) or mine


def turned(tokens: Sequence[int], stop: int) -> tuple[int, ...]:
    """The same text written the other way; its STOP, if it has one, stays at the end."""
    ended = len(tokens) > 0 and tokens[-1] == stop
    return (*reversed(tokens[:-1] if ended else tokens), *([stop] if ended else []))


def _costs(
    models: Sequence[Model], memories: Sequence[Memory], texts: Sequence[Sequence[int]], start: int
) -> list[float]:
    """The summed log probability of a text for each sentence."""
    targets = pad(texts).to(memories[0].mask.device)  # [B, T]
    lengths = torch.tensor([len(text) for text in texts], device=targets.device)
    real = torch.arange(targets.shape[1], device=targets.device) < lengths.unsqueeze(1)
    said = force(models, memories, targets, start=start, need_weights=False).log_probabilities  # [B, T, V]
    costs: list[float] = said.gather(2, targets.unsqueeze(-1)).squeeze(-1).masked_fill(~real, 0).sum(1).tolist()
    return costs
