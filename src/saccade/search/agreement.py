"""Agreement: of what is written from the start and what is written from the end, the text that both like best, and that
counts like too.

Who writes one way has doubts late, when what led there can no longer be changed; who writes the other way has them
elsewhere (Liu et al. 2016, Agreement on target-bidirectional LSTMs for sequence-to-sequence learning); who only counts
has them elsewhere again (Rao et al. 2015).
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from saccade.model import Counts, Memory, Model
from saccade.model.counts import log_shares
from saccade.search.beam import Hypothesis, beam_search
from saccade.search.force import costs

COUNTED = 0.4  # how much counts have to say: between 0.3 and 0.5 it hardly mattered (docs/experiments.md)
COUNTED_BESIDE_SEVERAL = 0.3  # and beside several networks, which together are surer of what is right

Text = tuple[int, ...]
Judge = tuple[Counts, list[list[int]]]  # what was counted, and the sources in the numbers that it knows


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
    judges: Sequence[Judge] = (),
) -> list[list[Hypothesis]]:
    """What was found from the start, and what the models find from the end, those that can, ranked by the mean of the
    two scores, and what the `judges` counted, over (their length)^length_penalty; as many as were found. The score of
    each is that of writing it from the start.

    Where the beginning is not `free`, nothing is sought from the end, which cannot know it; but it has its say.
    """
    pairs = zip(models, memories, strict=True)
    behind = [model.turned(memory) for model, memory in pairs if model.mirrored is not None]
    writers, mirrored = [model for model, _ in behind], [memory for _, memory in behind]
    others: list[list[Hypothesis]] = [[] for _ in found]
    if free and writers:
        options = {"start": start, "stop": stop, "beam": beam, "length_penalty": length_penalty}
        others = beam_search(writers, mirrored, limits, never=never, **options)  # type: ignore[arg-type]
    offers = [offered(mine, theirs, stop) for mine, theirs in zip(found, others, strict=True)]
    texts = [list(offer) for offer in offers]
    ahead = _judged(models, memories, texts, found, start)
    liked = [[one[text] for text in each] for one, each in zip(ahead, texts, strict=True)]
    if writers:
        back = _judged(writers, mirrored, [[turned(text, stop) for text in each] for each in texts], others, start)
        heard = [[other[turned(text, stop)] for text in each] for other, each in zip(back, texts, strict=True)]
        liked = _weighed(liked, heard, 0.5)
    if judges:
        share = COUNTED if len(models) == 1 else COUNTED_BESIDE_SEVERAL
        liked = _weighed(liked, _counted(judges, texts, stop), share)
    agreed = []
    for mine, offer, one, each, scores in zip(found, offers, ahead, texts, liked, strict=True):
        ranks = {text: score / len(text) ** length_penalty for text, score in zip(each, scores, strict=True)}
        best = sorted(offer, key=ranks.__getitem__, reverse=True)[: len(mine)]
        agreed.append([Hypothesis(text, one[text], offer[text]) for text in best])
    return agreed


def _weighed(mine: list[list[float]], theirs: list[list[float]], share: float) -> list[list[float]]:
    """Two opinions of every text as one, theirs with this share."""
    both = (zip(one, other, strict=True) for one, other in zip(mine, theirs, strict=True))
    return [[(1 - share) * a + share * b for a, b in each] for each in both]


def _counted(judges: Sequence[Judge], texts: list[list[Text]], stop: int) -> list[list[float]]:
    """The log share that each of several texts of each source has among them, as all that was counted judges."""
    whose = np.repeat(np.arange(len(texts)), [len(each) for each in texts])
    written = [[n for n in text if n != stop] for each in texts for text in each]
    opinions = [
        log_shares(counts.judge([(sources[w], text) for w, text in zip(whose, written, strict=True)]), whose)
        for counts, sources in judges
    ]
    mean = np.mean(opinions, 0)
    return [mean[whose == i].tolist() for i in range(len(texts))]


def offered(mine: list[Hypothesis], theirs: list[Hypothesis], stop: int) -> dict[Text, bool]:
    """What is to be judged, and whether it was cut off: that is only if none came to its end."""
    both = [*mine, *(Hypothesis(turned(h.tokens, stop), h.score, h.cut) for h in theirs)]
    return {h.tokens: h.cut for h in both if not h.cut} or {h.tokens: h.cut for h in mine}


def turned(tokens: Text, stop: int) -> Text:
    """The same text written the other way; its STOP, if it has one, stays at the end."""
    ended = len(tokens) > 0 and tokens[-1] == stop
    return (*reversed(tokens[:-1] if ended else tokens), *([stop] if ended else []))


def _judged(
    models: Sequence[Model],
    memories: Sequence[Memory],
    texts: list[list[Text]],
    found: list[list[Hypothesis]],
    start: int,
) -> list[dict[Text, float]]:
    """What each text of each sentence costs these models; of what they found themselves that is known."""
    known = [{h.tokens: h.score for h in mine} for mine in found]
    new = [[text for text in each if text not in mine] for each, mine in zip(texts, known, strict=True)]
    for mine, each, scores in zip(known, new, costs(models, memories, new, start=start), strict=True):
        mine.update(zip(each, scores, strict=True))
    return known
