"""Runs at work: text in, predictions out, one for one."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, overload

import torch
from torch import Tensor

from saccade.attention import TransformerBlock
from saccade.data import MOST_TOKENS, PAD, START, STOP, UNKNOWN, Encoded, Fitted, Frame, Pictures, Tokeniser
from saccade.data.batches import pad
from saccade.model import Memory
from saccade.model.images import ImageEncoder
from saccade.search.agreement import agree
from saccade.search.beam import Hypothesis, Sampling, beam_search
from saccade.search.force import force
from saccade.search.options import LENGTH_PENALTY, Options
from saccade.search.reading import (
    Reading,
    Voice,
    chances,
    encode,
    read_picture,
    read_text,
    spread_onto_first,
    together,
)
from saccade.search.tree import Grown, Kept, branches
from saccade.see import Prediction, Token
from saccade.see.alignment import END

GROWTH, ROOM = 2.0, 20  # an output has at most so many tokens for each of its source, and so many more
PICTURED = 40  # tokens that a picture counts as, whose size says nothing of what is written of it
RUNNERS = 3  # words told of that might have stood in place of one


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
    ) -> list[Prediction]:
        """The same for texts alone; the alternatives are looked at only if the `others` are asked for."""
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
        found = self._all(sources, write, looked, options.nbest, inside, beam=options.hypotheses)
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
        self, pairs: Sequence[tuple[str, str]], inside: bool = False, steer: tuple[int, ...] | None = None
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

        found = self._all(sources, write, 1, 1, inside, steer)
        return [_as_given(p, text, t) for p, (_, text), t in zip(found, pairs, targets, strict=True)]

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
    ) -> list[Prediction]:
        """Sources of like length together, and their predictions back in order; so many of the best are looked at."""
        done = {i: Prediction(s.text, "", 0.0, wrong=s.wrong) for i, s in enumerate(sources) if s.empty}
        order = sorted((i for i in range(len(sources)) if i not in done), key=lambda i: len(sources[i].ids))
        for rows in together(order, [len(sources[i].ids) for i in order], beam):
            chosen = [sources[i] for i in rows]
            memories = encode(self.voices, chosen, inside)
            found = write(chosen, memories)
            looks = [  # one rank at a time: many alternatives take no more memory than one
                self._look(chosen, memories, [h[min(k, len(h) - 1)] for h in found], inside, steer)
                for k in range(looked)
            ]
            for b, i in enumerate(rows):
                ranked = enumerate(found[b][:nbest])
                best, *others = (self._say(sources[i], h, looks[k][b] if k < looked else None) for k, h in ranked)
                done[i] = replace(best, alternatives=tuple(others))
        return [done[i] for i in range(len(sources))]

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

    def _look(
        self,
        sources: list[Reading],
        memories: list[Memory],
        best: list[Hypothesis],
        inside: bool,
        steer: tuple[int, ...] | None,
    ) -> list["_Looked | None"]:
        """Forced decoding of what was written: what each word cost, and weights [L, H, T, N] without the padding."""
        targets = pad([h.tokens for h in best]).to(memories[0].mask.device)  # [B, T]
        pairs = enumerate(zip(self.voices, memories, strict=True))
        spread = [
            None if voice.reader is self.source else spread_onto_first(sources, i, memory.mask.shape[1])
            for i, (voice, memory) in pairs
        ]
        look = None if steer is None else _steered(memories[0].mask, targets, steer)
        forced = force(self.models, memories, targets, start=START, spread=spread, look=look, beside=RUNNERS + 1)
        looks: list[_Looked | None] = []
        for b, hypothesis in enumerate(best):
            written, real = len(hypothesis.tokens), memories[0].mask[b]
            attention: dict[str, Tensor] = {}
            if forced.weights is not None:
                attention["cross"] = forced.weights[b, :written].permute(1, 2, 0, 3)[..., real]  # [L, H, T, N]
            if inside and memories[0].itself is not None:
                attention["encoder"] = memories[0].itself[b][:, :, real][..., real]  # [L, H, N, N]
            if inside and forced.itself is not None:
                attention["decoder"] = forced.itself[b, :written, ..., :written].permute(1, 2, 0, 3)  # [L, H, T, T]
            rows = zip(hypothesis.tokens, forced.numbers[b].tolist(), forced.likely[b].exp().tolist(), strict=False)
            beside = tuple(
                tuple((n, share) for n, share in zip(ids, chances, strict=True) if n != token)[:RUNNERS]
                for token, ids, chances in rows
            )
            gates = () if forced.gates is None else tuple(forced.gates[b, :written].tolist())
            looks.append(_Looked(forced.log_probabilities[b, :written].tolist(), attention, beside, gates))
        return looks

    def _say(self, source: Reading, hypothesis: Hypothesis, seen: "_Looked | None") -> Prediction:
        text = self.target.decode(hypothesis.tokens)
        said = Prediction(
            source.text,
            text,
            hypothesis.score,
            unknown=source.unknown,
            cut_source=source.cut,
            cut_output=hypothesis.cut,
            picture=None
            if source.picture is None
            else source.picture.pixels[: source.picture.size[0], : source.picture.size[1]],
        )
        if seen is None:
            return said
        glances = {kind: weights.float().cpu().numpy() for kind, weights in seen.attention.items()}
        return replace(
            said,
            source_tokens=source.tokens,
            target_tokens=tuple(self._pieces(hypothesis.tokens)),
            numbers=tuple(hypothesis.tokens),
            log_probabilities=tuple(seen.costs),
            cross=glances.get("cross"),
            encoder=glances.get("encoder"),
            decoder=glances.get("decoder"),
            layer=self.layer if "cross" in glances and len(glances["cross"]) > 1 else 0,
            grid=None if source.picture is None else self._grid(source.picture.size),
            cell=None if source.picture is None else self._cell(),
            runners_up=tuple(
                tuple((self._added(hypothesis.tokens[:t], n), share) for n, share in row)
                for t, row in enumerate(seen.beside)
            ),
            gates=seen.gates,
        )

    def _added(self, before: Sequence[int], number: int) -> str:
        """What a number would have added to what stood before it, with the blank between them if there is one."""
        if number == STOP:
            return END
        last = list(before[-1:])  # enough to tell whether a word goes on
        return self.target.decode([*last, number])[len(self.target.decode(last)) :] or "␣"

    def _grid(self, size: tuple[int, int]) -> tuple[int, int]:
        """Rows and columns of cells that have something of a picture in them."""
        return -(-size[0] // self._cell()), -(-size[1] // self._cell())

    def _cell(self) -> int:
        encoder = self.models[0].encoder
        assert isinstance(encoder, ImageEncoder)
        return encoder.stride

    def _pieces(self, ids: Sequence[int]) -> list[Token]:
        """What each number added to the text; one that only changed its last character stands for that one."""
        pieces, end, text = [], 0, ""
        for i, number in enumerate(ids):
            if number == STOP:
                pieces.append(Token(END, (end, end)))
                continue
            text = self.target.decode(ids[: i + 1])
            start, end = min(end, max(0, len(text) - 1)), len(text)
            pieces.append(Token(text[start:end], (start, end)))
        return pieces


class _Looked(NamedTuple):
    """What forced decoding tells of an output."""

    costs: list[float]  # of each word
    attention: dict[str, Tensor]  # by kind, as a Prediction has it
    beside: tuple[tuple[tuple[int, float], ...], ...]  # other words and their probabilities
    gates: tuple[float, ...]  # how much of what was seen was let in, if there is a gate


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


def _as_given(found: Prediction, text: str, encoded: Encoded) -> Prediction:
    """With the words of a target as they were given, also those that the model itself cannot write."""
    if not found.target_tokens:
        return found
    pieces = [Token(text[a:b], (a, b)) for a, b in encoded.spans[: len(found.target_tokens) - 1]]
    ended = (*pieces, Token(END, (len(text), len(text))))
    return replace(found, text=text, score=sum(found.log_probabilities), target_tokens=ended)
