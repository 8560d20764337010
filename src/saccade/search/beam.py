"""Beam search over all sentences and hypotheses at once; with a beam of one it is greedy, with draws it samples."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from saccade.data import PAD
from saccade.model import Memory, Model, State
from saccade.search.tree import Grown


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """Something written: token numbers that end with STOP, unless it was cut off."""

    tokens: tuple[int, ...]
    score: float  # summed natural-log probability
    cut: bool  # it reached the limit before it ended


@dataclass(frozen=True, slots=True)
class Sampling:
    """Words drawn by chance, from the likeliest ones: each hypothesis is a draw of its own."""

    draws: Tensor  # [B, K, T]: numbers between 0 and 1, one for each word that may be written
    temperature: float = 1.0  # small: nearly always the likeliest word
    top_k: int = 0  # only among so many words; 0: all
    top_p: float = 1.0  # only among the likeliest words that have this probability together

    def draw(self, log_probabilities: Tensor, time: int) -> Tensor:
        """[b, K, V] → a word for each hypothesis: [b, K]."""
        scaled = (log_probabilities / self.temperature).softmax(-1)
        if self.top_k or self.top_p < 1:
            most = min(self.top_k or scaled.shape[-1], scaled.shape[-1])
            ordered, words = scaled.topk(most, -1) if most < scaled.shape[-1] else scaled.sort(-1, descending=True)
        else:  # among all words any order will do, and sorting would take most of the time
            ordered, words = scaled, torch.arange(scaled.shape[-1], device=scaled.device).expand_as(scaled)
        before = ordered.cumsum(-1) - ordered  # what those that come first have together
        allowed = before < self.top_p
        shares = (ordered * allowed).cumsum(-1)
        point = self.draws[:, :, time, None].to(shares) * shares[..., -1:]
        place = (shares <= point).sum(-1, keepdim=True).clamp(max=ordered.shape[-1] - 1)
        place = torch.minimum(place, allowed.sum(-1, keepdim=True) - 1)  # where rounding ran past the end
        return words.gather(-1, place).squeeze(-1)


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
    coverage_penalty: float = 0.0,
    prefix: Tensor | None = None,
    sampling: Sampling | None = None,
    never: Sequence[int] = (),
    grown: Grown | None = None,
) -> list[list[Hypothesis]]:
    """The best hypotheses for each sentence, the best first: at most `beam` of them.

    Several models write as one: their probabilities are averaged. `limits` [B] is the most words a sentence may get.
    Hypotheses are ranked by their score over (their length)^length_penalty plus, for each place of the source,
    coverage_penalty · log(min(1, what was looked at it altogether)) (Wu et al. 2016). `prefix` [B, P] is what each must
    begin with, PAD where it is free. With `sampling` the hypotheses are drawn, not sought. Words of `never` are not
    written, however likely they are. Into `grown`, where it is wanted, goes everything that was ever kept.
    """
    search = _Search(
        models, memories, limits, start, stop, beam, length_penalty, coverage_penalty, prefix, sampling, never
    )
    while search.running():
        search.step(grown)
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
        coverage_penalty: float,
        prefix: Tensor | None,
        sampling: Sampling | None,
        never: Sequence[int],
    ) -> None:
        batch, device = len(limits), memories[0].keys.device
        self.models, self.stop, self.beam, self.penalty = models, stop, beam, penalty
        self.coverage_penalty, self.prefix, self.sampling = coverage_penalty, prefix, sampling
        self.never = torch.tensor(list(never), dtype=torch.long, device=device)
        self.memories = list(memories)
        self.states: list[State] = [m.decoder.init(memory, beam) for m, memory in zip(models, memories, strict=True)]
        self.rows = torch.arange(batch, device=device)  # [b]: which sentences are still being written
        self.limits = limits.to(device)
        self.words = torch.full((batch, beam, 1), start, device=device)  # [b, K, t]
        self.scores = torch.full((batch, beam), -torch.inf, device=device, dtype=memories[0].keys.dtype)
        self.scores[:, : 1 if sampling is None else beam] = 0  # hypotheses of a beam are still the same one
        self.seen = self.scores.new_zeros(batch, beam, memories[0].keys.shape[1])  # [b, K, N]
        self.ended = _Ended(batch, beam, int(limits.max()) + 1 if batch else 1, self.scores)

    def running(self) -> bool:
        return len(self.rows) > 0

    def step(self, grown: Grown | None = None) -> None:
        batch, _, written = self.words.shape
        values, parents, words = self._candidates()  # [b, 2K], or [b, K] that were drawn
        ends = words == self.stop

        # Those that end, if they are among the K best, are done; they compete by length-normalised score.
        first = torch.arange(words.shape[1], device=words.device) < self.beam
        done = torch.where(ends & first, values, -torch.inf)
        self.ended.offer(self.rows, done, self._rank(done, parents), self._spell(parents, words), False)

        # The K best of the others go on.
        going, offered = values.masked_fill(ends, -torch.inf), (parents, words)
        if self.sampling is None:  # those that were drawn stay where they are
            going, best = going.topk(self.beam)
            parents, words = parents.gather(1, best), words.gather(1, best)
        if grown is not None:
            grown.add(self.rows, (done, *offered), (going, parents, words))
        spelt = self._spell(parents, words)

        # As long as one of them ranks above the worst that ended, and is likelier than one of those: scores only fall.
        ended = self.ended.ranks[self.rows].amin(1)  # -inf, until there are K
        wanting = self._rank(going, parents).amax(1) > ended
        wanting &= going.amax(1) > self.ended.scores[self.rows].amin(1)
        cut = wanting & (self.limits[self.rows] <= written)
        few = (cut & (ended == -torch.inf)).unsqueeze(1)  # what goes round in circles ranks well, but never ends
        unfinished = torch.where(few, going, -torch.inf)
        self.ended.offer(self.rows, unfinished, self._rank(unfinished, parents), spelt, True)
        keep = (wanting & ~cut).nonzero().squeeze(1)  # [b']
        self.rows, self.scores, self.words = self.rows[keep], going[keep], spelt[keep]
        if self.coverage_penalty:
            self.seen = self.seen[keep.unsqueeze(1), parents[keep]]
        if len(keep) == batch:
            self.states = [state.reorder(parents) for state in self.states]
            return
        self.states = [state.select(keep).reorder(parents[keep]) for state in self.states]
        self.memories = [memory.select(keep) for memory in self.memories]
        self.prefix = None if self.prefix is None else self.prefix[keep]
        if self.sampling is not None:
            self.sampling = replace(self.sampling, draws=self.sampling.draws[keep])

    def _candidates(self) -> tuple[Tensor, Tensor, Tensor]:
        """What may come next: scores, which hypothesis each continues, and with which word."""
        log_probabilities = self._log_probabilities()  # [b, K, V]
        vocabulary, time = log_probabilities.shape[-1], self.words.shape[-1] - 1
        if len(self.never):
            log_probabilities = log_probabilities.index_fill(-1, self.never, -torch.inf)
        if self.prefix is not None and time < self.prefix.shape[1]:
            asked = self.prefix[:, time].view(-1, 1, 1)  # [b, 1, 1]
            other = (torch.arange(vocabulary, device=asked.device) != asked) & (asked != PAD)
            log_probabilities = log_probabilities.masked_fill(other, -torch.inf)
        total = self.scores.unsqueeze(-1) + log_probabilities
        if self.sampling is not None:
            words = self.sampling.draw(log_probabilities, time)  # [b, K]
            parents = torch.arange(self.beam, device=words.device).expand_as(words)
            return total.gather(2, words.unsqueeze(-1)).squeeze(-1), parents, words
        if vocabulary < 2:
            raise ValueError("beam: there is only one word to choose from")
        best = total.flatten(1).topk(2 * self.beam)  # twice the beam: half of it may end
        return best.values, best.indices // vocabulary, best.indices % vocabulary

    def _rank(self, scores: Tensor, parents: Tensor) -> Tensor:
        ranks: Tensor = scores / self.words.shape[-1] ** self.penalty
        if self.coverage_penalty:
            seen = self.seen.gather(1, parents.unsqueeze(-1).expand(-1, -1, self.seen.shape[-1]))  # [b, k, N]
            real = self.memories[0].mask.unsqueeze(1)
            covered = seen.clamp(1e-9, 1).log().masked_fill(~real, 0).sum(-1)
            ranks = ranks + self.coverage_penalty * covered
        return ranks

    def results(self) -> list[list[Hypothesis]]:
        return self.ended.read()

    def _log_probabilities(self) -> Tensor:
        """What the models say of the next word, together: [b, K, V]."""
        said, looked = [], []
        for i, (model, memory, state) in enumerate(zip(self.models, self.memories, self.states, strict=True)):
            step = model.decoder.step(memory, state, self.words[:, :, -1], need_weights=self.coverage_penalty > 0)
            self.states[i] = step.state
            said.append(step.logits.log_softmax(-1))
            if self.coverage_penalty:
                if step.weights is None:
                    raise ValueError("coverage_penalty: a model without attention covers nothing; leave it out")
                looked.append(step.weights.mean((2, 3)))  # [b, K, N]
        if looked:
            self.seen = self.seen + torch.stack(looked).mean(0)
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
