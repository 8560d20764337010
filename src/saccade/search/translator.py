"""Runs at work: text in, text out, one for one."""

from collections.abc import Sequence
from typing import NamedTuple

import torch

from saccade.data import START, STOP, UNKNOWN, Tokeniser
from saccade.data.batches import pad
from saccade.model import Model
from saccade.search.beam import Hypothesis, beam_search

MOST_TOKENS = 1024  # of a source or an output, unless the model knows fewer; what is longer is cut, and said to be
AT_ONCE = 64  # sources in a batch


class Translation(NamedTuple):
    """What was written for a source."""

    text: str
    score: float  # summed natural-log probability
    unknown: list[str]  # parts of the source that the model does not know
    cut_source: bool  # the source was too long, and its end was not read
    cut_output: bool  # the output reached its limit


class Translator:
    """Models that write as one, with the tokenisers that they share."""

    def __init__(
        self, models: Sequence[Model], source: Tokeniser, target: Tokeniser, most_tokens: int = MOST_TOKENS
    ) -> None:
        self.models, self.source, self.target = [m.eval() for m in models], source, target
        self.most = most_tokens - 1  # STOP is one of them

    def __call__(self, texts: Sequence[str], *, beam: int = 5, length_penalty: float = 1.0) -> list[Translation]:
        """One translation for each text, in their order; an empty text stays empty."""
        encoded = [self.source.encode(text) for text in texts]
        done: list[Translation | None] = [None if e.ids else Translation("", 0.0, [], False, False) for e in encoded]
        order = sorted((i for i, d in enumerate(done) if d is None), key=lambda i: len(encoded[i].ids))
        for start in range(0, len(order), AT_ONCE):
            rows = order[start : start + AT_ONCE]
            best = self._search([encoded[i].ids[: self.most] for i in rows], beam, length_penalty)
            for i, hypothesis in zip(rows, best, strict=True):
                ids, spans = encoded[i].ids, encoded[i].spans
                unknown = [texts[i][a:b] for n, (a, b) in zip(ids, spans, strict=True) if n == UNKNOWN]
                text = self.target.decode(hypothesis.tokens)
                done[i] = Translation(text, hypothesis.score, unknown, len(ids) > self.most, hypothesis.cut)
        return [d for d in done if d is not None]

    def _search(self, sources: list[list[int]], beam: int, length_penalty: float) -> list[Hypothesis]:
        tokens = pad([[*ids, STOP] for ids in sources])
        lengths = torch.tensor([len(ids) + 1 for ids in sources])
        mask = torch.arange(tokens.shape[1]) < lengths.unsqueeze(1)
        beam = min(beam, len(self.target))
        limits = (2 * lengths + 20).clamp(max=self.most)
        with torch.inference_mode():
            memories = [model.encode(tokens, mask) for model in self.models]
        found = beam_search(
            self.models, memories, limits, start=START, stop=STOP, beam=beam, length_penalty=length_penalty
        )
        return [hypotheses[0] for hypotheses in found]
