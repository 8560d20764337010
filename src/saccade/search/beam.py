"""Beam search over all sentences and hypotheses at once; with a beam of one it is greedy."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from saccade.model import Memory, Model, State


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """Something written: token numbers that end with STOP, unless it was cut off."""

    tokens: tuple[int, ...]
    score: float  # summed natural-log probability
    cut: bool  # it reached the limit before it ended


@torch.inference_mode()
def beam_search(
    models: Sequence[Model],
    memories: Sequence[Memory],
    limits: Tensor,
    *,
    start: int,
    stop: int,
    beam: int = 1,
    length_penalty: float = 1.0,
) -> list[list[Hypothesis]]:
    """The best hypotheses for each sentence, the best first: at most `beam` of them.

    Several models write as one: their probabilities are averaged. `limits` [B] is the most words a sentence may get.
    Hypotheses are ranked by their score over (their length)^length_penalty.
    """
    search = _Search(models, memories, limits, start, stop, beam, length_penalty)
    while search.running():
        search.step()
    return search.results()


class _Search:
    """K hypotheses for each sentence that is still being written, and the K best that ended.

    Hypotheses are rows of tensors; no loop runs over them or over sentences.
    """

    def __init__(
        self,
        models: Sequence[Model],
        memories: Sequence[Memory],
        limits: Tensor,
        start: int,
        stop: int,
        beam: int,
        penalty: float,
    ) -> None:
        batch, device = len(limits), memories[0].keys.device
        self.models, self.stop, self.beam, self.penalty = models, stop, beam, penalty
        self.memories = list(memories)
        self.states: list[State] = [m.decoder.init(memory, beam) for m, memory in zip(models, memories, strict=True)]
        self.rows = torch.arange(batch, device=device)  # [b]: which sentences are still being written
        self.limits = limits.to(device)
        self.words = torch.full((batch, beam, 1), start, device=device)  # [b, K, t]
        self.scores = torch.full((batch, beam), -torch.inf, device=device, dtype=memories[0].keys.dtype)
        self.scores[:, 0] = 0  # all hypotheses are still the same one
        self.ended = _Ended(batch, beam, int(limits.max()) + 1 if batch else 1, self.scores)
        self.found = torch.zeros(batch, dtype=torch.long, device=device)

    def running(self) -> bool:
        return len(self.rows) > 0

    def step(self) -> None:
        batch, beam, written = self.words.shape
        total = self.scores.unsqueeze(-1) + self._log_probabilities()  # [b, K, V]
        vocabulary = total.shape[-1]
        best = total.flatten(1).topk(min(2 * beam, beam * vocabulary))  # twice the beam: half of it may end
        parents, words = best.indices // vocabulary, best.indices % vocabulary  # [b, 2K]
        ends = words == self.stop

        # Those that end, if they are among the K best, are done; they compete by length-normalised score.
        first = torch.arange(words.shape[1], device=words.device) < beam
        done = torch.where(ends & first, best.values, -torch.inf)
        self.ended.offer(self.rows, done, done / written**self.penalty, self._spell(parents, words), False)
        self.found[self.rows] += (done > -torch.inf).sum(1)

        # The K best of the others go on.
        going = best.values.masked_fill(ends, -torch.inf).topk(min(beam, words.shape[1]))
        parents, words = parents.gather(1, going.indices), words.gather(1, going.indices)
        if words.shape[1] < beam:  # a vocabulary smaller than the beam
            raise ValueError(f"beam: {beam}, but there are only {vocabulary} words to choose from")
        spelt = self._spell(parents, words)

        wanting = self.found[self.rows] < beam
        cut = wanting & (self.limits[self.rows] <= written)
        unfinished = torch.where(cut.unsqueeze(1), going.values, -torch.inf)
        self.ended.offer(self.rows, unfinished, unfinished / written**self.penalty, spelt, True)
        keep = (wanting & ~cut).nonzero().squeeze(1)  # [b']
        self.rows, self.scores, self.words = self.rows[keep], going.values[keep], spelt[keep]
        if len(keep) == batch:
            self.states = [state.reorder(parents) for state in self.states]
        else:
            self.states = [state.select(keep).reorder(parents[keep]) for state in self.states]
            self.memories = [memory.select(keep) for memory in self.memories]

    def results(self) -> list[list[Hypothesis]]:
        return self.ended.read()

    def _log_probabilities(self) -> Tensor:
        """What the models say of the next word, together: [b, K, V]."""
        said = []
        for i, (model, memory, state) in enumerate(zip(self.models, self.memories, self.states, strict=True)):
            step = model.decoder.step(memory, state, self.words[:, :, -1], need_weights=False)
            self.states[i] = step.state
            said.append(step.logits.log_softmax(-1))
        if len(said) == 1:
            return said[0]
        return torch.stack(said).logsumexp(0) - math.log(len(said))

    def _spell(self, parents: Tensor, words: Tensor) -> Tensor:
        """Each hypothesis with its new word: [b, k, t + 1]."""
        history = self.words.gather(1, parents.unsqueeze(-1).expand(-1, -1, self.words.shape[-1]))
        return torch.cat([history, words.unsqueeze(-1)], -1)


class _Ended:
    """The K best hypotheses that ended, for each sentence."""

    def __init__(self, batch: int, beam: int, longest: int, like: Tensor) -> None:
        device = like.device
        self.ranks = torch.full((batch, beam), -torch.inf, device=device, dtype=like.dtype)
        self.scores = self.ranks.clone()
        self.words = torch.zeros(batch, beam, longest, dtype=torch.long, device=device)
        self.lengths = torch.zeros(batch, beam, dtype=torch.long, device=device)
        self.cut = torch.zeros(batch, beam, dtype=torch.bool, device=device)

    def offer(self, rows: Tensor, scores: Tensor, ranks: Tensor, words: Tensor, cut: bool) -> None:
        """Takes those that rank among the best: scores and ranks [b, k], words [b, k, t + 1] with START."""
        words = words[:, :, 1:]
        length = words.shape[-1]
        padded = torch.nn.functional.pad(words, (0, self.words.shape[-1] - length))
        order = torch.cat([self.ranks[rows], ranks], 1).topk(self.ranks.shape[1])
        pick = order.indices

        def best(mine: Tensor, theirs: Tensor) -> Tensor:
            joined = torch.cat([mine[rows], theirs], 1)
            index = pick.view(*pick.shape, *[1] * (joined.dim() - 2)).expand(*pick.shape, *joined.shape[2:])
            return joined.gather(1, index)

        self.words[rows] = best(self.words, padded)
        self.scores[rows] = best(self.scores, scores)
        self.lengths[rows] = best(self.lengths, torch.full_like(words[:, :, 0], length))
        self.cut[rows] = best(self.cut, torch.full_like(words[:, :, 0], cut, dtype=torch.bool))
        self.ranks[rows] = order.values

    def read(self) -> list[list[Hypothesis]]:
        rows = zip(*(x.tolist() for x in (self.words, self.lengths, self.scores, self.cut)), strict=True)
        return [
            [
                Hypothesis(tuple(words[:length]), score, cut)
                for words, length, score, cut in zip(*sentence, strict=True)
                if score > -torch.inf
            ]
            for sentence in rows
        ]
