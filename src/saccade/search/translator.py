"""Runs at work: text in, predictions out, one for one."""

import math
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, overload

import torch

from saccade.attention import TransformerBlock
from saccade.data import MOST_TOKENS, PAD, START, STOP, UNKNOWN, Fitted, Frame, Pictures, Tokeniser, Watch, unwatched
from saccade.errors import unknown
from saccade.model import Memory
from saccade.search.agreement import agree
from saccade.search.beam import Hypothesis, Sampling, beam_search
from saccade.search.options import LENGTH_PENALTY, Options
from saccade.search.reading import Reading, Voice, chances, encode, read_picture, read_text, together
from saccade.search.telling import Looked, as_given, look_at, tell, tell_more
from saccade.search.tree import Grown, Kept, branches
from saccade.see import Prediction

GROWTH, ROOM = 2.0, 20  # an output has at most so many tokens for each of its source, and so many more
OPTIONS = [field.name for field in fields(Options)]
PICTURED = 40  # tokens that a picture counts as, whose size says nothing of what is written of it


class Translator:
    """Voices that write the same symbols, as one.

    Call it with a text for a `Prediction`, with a list of texts for a list. Looking (`look=True`) costs a second, quick
    pass over what was written and never changes it.
    """

    def __init__(
        self,
        voices: Sequence[Voice],
        target: Tokeniser,
        most_tokens: int = MOST_TOKENS,
        layer: int = -1,
        symbols: bool = False,
        growth: float = GROWTH,
    ) -> None:
        self.voices, self.target, self.layer = voices, target, layer
        self.models = [voice.model.eval() for voice in voices]
        self.symbols = symbols  # whether it writes characters or other symbols, rather than sentences
        self.growth = growth  # tokens of an output for each of its source, at most
        self.most = most_tokens - 1  # STOP is one of them
        self.pictures: Pictures | dict[str, Fitted] | None = None  # that are at hand already, by their sources

    @property
    def source(self) -> Tokeniser | Frame:
        """How the first voice reads; what is shown of a source is in its pieces."""
        return self.voices[0].reader

    @property
    def alike(self) -> bool:
        """Whether all voices cut a source into the same pieces."""
        return all(voice.reader is self.source for voice in self.voices)

    @property
    def reads_pictures(self) -> bool:
        return isinstance(self.source, Frame)

    @property
    def agrees(self) -> bool:
        """Whether a beam asks others too: some voice also writes from the end, or counted something."""
        return any(v.model.mirrored is not None or v.counts is not None for v in self.voices)

    @overload
    def __call__(
        self, texts: str | Path, *, look: bool = True, inside: bool = False, prefix: str = "", **options: float
    ) -> Prediction: ...
    @overload
    def __call__(
        self,
        texts: list[str] | list[Path],
        *,
        look: bool = True,
        inside: bool = False,
        prefix: str = "",
        **options: float,
    ) -> list[Prediction]: ...
    def __call__(
        self,
        texts: str | Path | list[str] | list[Path],
        *,
        look: bool = True,
        inside: bool = False,
        prefix: str = "",
        **options: float,
    ) -> Prediction | list[Prediction]:
        """One prediction for each text, or picture, in their order; an empty text stays empty, and of a picture that
        cannot be read the prediction tells what is `wrong`.

        `options` are those of `Options`: beam, nbest, length_penalty, coverage_penalty, sample, temperature, top_k,
        top_p, seed, tree. `prefix` is what every output must begin with. With `inside`, predictions also tell where
        encoder and decoder looked at themselves, if that is how they work.
        """
        for name in options:
            if name not in OPTIONS:
                raise unknown("option", name, OPTIONS)
        chosen = Options(**options)  # type: ignore[arg-type]
        alone, kinds = not isinstance(texts, list), (str, Path) if self.reads_pictures else (str,)
        several: list[Any] = [texts] if not isinstance(texts, list) else [*texts]
        if not all(isinstance(t, kinds) for t in several):
            one, many = ("the path of a picture", "paths") if self.reads_pictures else ("a string", "strings")
            raise ValueError(f"texts: {type(texts).__name__}, expected {one} or a list of {many}")
        found = self.translate([str(t) for t in several], chosen, look, prefix, inside, others=look)
        if alone and found[0].wrong:
            raise ValueError(found[0].wrong)
        return found[0] if alone else found

    def translate(
        self,
        texts: Sequence[str],
        options: Options,
        look: bool = True,
        prefix: str = "",
        inside: bool = False,
        others: bool = False,
        watch: Watch = unwatched,
    ) -> list[Prediction]:
        """The same for texts alone; the alternatives are looked at only if the `others` are asked for. Whoever wants to
        `watch` is told how many sources are done, and of how many.
        """
        self._check_inside(inside)
        sources = [self._read(text) for text in texts]
        self.check_writable("prefix", prefix)
        begin = self.target.encode(prefix).ids if prefix else []

        kept: dict[int, list[Kept]] = {}

        def write(rows: list[Reading], memories: list[Memory]) -> list[list[Hypothesis]]:
            grown = Grown(len(rows), options.hypotheses) if options.tree else None
            found = self._search(rows, memories, options, begin, grown)
            if grown is not None:
                kept.update(zip(map(id, rows), grown.trees, strict=True))
            return found

        looked = options.nbest if others else int(look or inside)
        found = self._all(sources, write, looked, options.nbest, inside, beam=options.hypotheses, watch=watch)
        if not options.tree:
            return found
        trees = [branches(kept.get(id(source), []), self.target.decode) for source in sources]
        return [replace(p, tree=tree) for p, tree in zip(found, trees, strict=True)]

    def score(self, source: str, target: str, inside: bool = False, steer: tuple[int, ...] | None = None) -> Prediction:
        """What this target costs as the output for this source, and where the models look for each of its words.

        `steer` (t, n, …) makes them look at place n, or these places, alone for word t: what would they rather write
        there then?
        """
        if not self.reads_pictures and not source.strip():
            raise ValueError("source: is empty, so there is nothing to score a target by")
        found = self.score_all([(source, target)], inside, steer)[0]
        if found.wrong:
            raise ValueError(found.wrong)
        return found

    def score_all(
        self,
        pairs: Sequence[tuple[str, str]],
        inside: bool = False,
        steer: tuple[int, ...] | None = None,
        watch: Watch = unwatched,
    ) -> list[Prediction]:
        """Forced decoding of many pairs: (source, target)."""
        self._check_inside(inside)
        sources = [self._read(source) for source, _ in pairs]
        targets = [self.target.encode(target) for _, target in pairs]
        wanted = {
            id(s): Hypothesis((*t.ids[: self.most], STOP), 0.0, len(t.ids) > self.most)
            for s, t in zip(sources, targets, strict=True)
        }

        def write(rows: list[Reading], memories: list[Memory]) -> list[list[Hypothesis]]:
            return [[wanted[id(s)]] for s in rows]

        found = self._all(sources, write, 1, 1, inside, steer, watch=watch)
        return [as_given(p, text, t) for p, (_, text), t in zip(found, pairs, targets, strict=True)]

    def check_writable(self, name: str, text: str) -> None:
        """Is there anything in a text that no output can hold?"""
        encoded = self.target.encode(text)
        strange = [text[a:b] for n, (a, b) in zip(encoded.ids, encoded.spans, strict=True) if n == UNKNOWN]
        if strange:
            raise ValueError(f"{name} {text}: the model cannot write {' '.join(map(repr, dict.fromkeys(strange)))}")

    def _check_inside(self, inside: bool) -> None:
        if inside and len(self.models) > 1:
            raise ValueError("inside: for one run alone; what several see in themselves does not correspond")
        if inside and not any(isinstance(part, TransformerBlock) for part in self.models[0].modules()):
            raise ValueError("inside: nothing in this model looks at itself; that is what a Transformer does")

    def limit(self, read: float, begun: int = 0) -> int:
        """How many tokens an output may have, whose source has so many, if so many of them are given."""
        tokens = PICTURED if self.reads_pictures else read
        return min(math.ceil(self.growth * tokens) + ROOM + begun, self.most)

    def memories(self, source: str) -> list[Memory]:
        """What each model makes of a source, before anything is written."""
        read = self._read(source)
        if read.wrong:
            raise ValueError(read.wrong)
        return encode(self.voices, [read])

    def _all(
        self,
        sources: list[Reading],
        write: Callable[[list[Reading], list[Memory]], list[list[Hypothesis]]],
        looked: int,
        nbest: int,
        inside: bool = False,
        steer: tuple[int, ...] | None = None,
        beam: int = 1,
        watch: Watch = unwatched,
    ) -> list[Prediction]:
        """Sources of like length together, and their predictions back in order; so many of the best are looked at."""
        done = {i: Prediction(s.text, "", 0.0, wrong=s.wrong) for i, s in enumerate(sources) if s.empty}
        order = sorted((i for i in range(len(sources)) if i not in done), key=lambda i: len(sources[i].ids))
        watch(0, len(sources))
        for rows in together(order, [len(sources[i].ids) for i in order], beam):
            chosen = [sources[i] for i in rows]
            memories = encode(self.voices, chosen, inside)
            found = write(chosen, memories)
            looks = [  # one rank at a time: many alternatives take no more memory than one
                look_at(self.voices, chosen, memories, [h[min(k, len(h) - 1)] for h in found], inside, steer)
                for k in range(looked)
            ]
            for b, i in enumerate(rows):
                told = [
                    self._told(sources[i], h, looks[k][b] if k < looked else None)
                    for k, h in enumerate(found[b][:nbest])
                ]
                done[i] = replace(told[0], alternatives=tuple(told[1:]))
            watch(len(done), len(sources))
        return [done[i] for i in range(len(sources))]

    def _told(self, source: Reading, hypothesis: Hypothesis, seen: Looked | None) -> Prediction:
        if seen is None:
            return tell(source, hypothesis, self.target)
        return tell_more(source, hypothesis, seen, self.voices, self.target, self.layer)

    def _read(self, text: str) -> Reading:
        if isinstance(self.source, Frame):
            return read_picture(text, self.source, self.pictures)
        return read_text(text, [v.reader for v in self.voices if isinstance(v.reader, Tokeniser)], self.most)

    def _search(
        self,
        sources: list[Reading],
        memories: list[Memory],
        options: Options,
        begin: list[int],
        grown: Grown | None,
    ) -> list[list[Hypothesis]]:
        if options.coverage_penalty and not self.alike:
            raise ValueError("coverage_penalty: these runs cut the source into different pieces; leave it out")
        limits = torch.tensor([max(self.limit(len(s.ids) + 1, len(begin)), len(begin) + 1) for s in sources])
        sampling, beam = None, options.hypotheses
        if options.sample:
            longest = int(limits.max())
            draws = torch.stack([chances(s.text if s.picture else s.ids, options.seed, beam, longest) for s in sources])
            sampling = Sampling(draws, options.temperature, options.top_k, options.top_p)
        never = (PAD, START, UNKNOWN)  # what no reader could read
        usual: dict[str, Any] = {"start": START, "stop": STOP, "beam": beam, "never": never}
        usual["length_penalty"] = self._length_penalty(options)
        found = beam_search(
            self.models,
            memories,
            limits,
            coverage_penalty=options.coverage_penalty,
            prefix=torch.tensor([begin]).expand(len(sources), -1) if begin else None,
            sampling=sampling,
            grown=grown,
            **usual,
        )
        if not self.agrees or beam == 1 or options.sample or options.coverage_penalty:
            return found
        known = ((i, v.counts) for i, v in enumerate(self.voices) if v.counts is not None)
        judges = [(counts, [s.encoded[i].ids for s in sources]) for i, counts in known]
        return agree(self.models, memories, found, limits, free=not begin, judges=judges, **usual)

    def _length_penalty(self, options: Options) -> float:
        return LENGTH_PENALTY[self.reads_pictures] if options.length_penalty is None else options.length_penalty
