"""Sources as those who write read them: numbers, what they stand for in the text, memories, and batches of them.

Several may write as one that cut a text into different pieces; the pieces of the first are those that are shown.
"""

import hashlib
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from saccade.data import STOP, UNKNOWN, Encoded, Fitted, Frame, Pictures, Tokeniser, load_source
from saccade.data.batches import pad, stack
from saccade.model import Counts, Memory, Model
from saccade.see import Token
from saccade.see.alignment import END

AT_ONCE, TOKENS_AT_ONCE = 64, 8192  # sources in a batch, and tokens of them with padding: long ones go a few at a time
WIDE = 5  # hypotheses for each source that so many are meant for; of sources with more of them, fewer


@dataclass(frozen=True, slots=True, eq=False)
class Voice:
    """One of those who write as one: a model, how it reads a source, and what its run counted, if it did."""

    model: Model
    reader: Tokeniser | Frame  # the same object for all who read alike
    counts: Counts | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """A text as each voice reads it, or a picture, which they all see alike."""

    text: str
    encoded: tuple[Encoded, ...] = ()  # by each voice
    tokens: tuple[Token, ...] = ()  # of the first one, with the end
    unknown: tuple[str, ...] = ()
    cut: bool = False
    picture: Fitted | None = None
    wrong: str = ""  # why it cannot be read, if so

    @property
    def ids(self) -> list[int]:
        """The numbers of the first voice; a picture has none."""
        return self.encoded[0].ids if self.encoded else []

    @property
    def empty(self) -> bool:
        """Whether there is nothing to write of."""
        return self.picture is None and not self.ids


def read_text(text: str, readers: Sequence[Tokeniser], most: int) -> Reading:
    """A text, as far as models read: so many tokens."""
    whole = {id(reader): _stripped(reader, text) for reader in readers}
    unknown = [text[a:b] for e in whole.values() for n, (a, b) in zip(e.ids, e.spans, strict=True) if n == UNKNOWN]
    cut = any(len(e.ids) > most for e in whole.values())
    encoded = tuple(Encoded(e.ids[:most], e.spans[:most]) for e in (whole[id(reader)] for reader in readers))
    tokens = (*(Token(text[a:b], (a, b)) for a, b in encoded[0].spans), Token(END, (len(text), len(text))))
    return Reading(text, encoded, tokens, tuple(unknown), cut)


def _stripped(reader: Tokeniser, text: str) -> Encoded:
    """A text without the blanks around it, as it was learned; where its tokens stand is told of the whole."""
    before = len(text) - len(text.lstrip())
    encoded = reader.encode(text.strip())
    return Encoded(encoded.ids, [(a + before, b + before) for a, b in encoded.spans])


def read_picture(source: str, frame: Frame, known: Pictures | dict[str, Fitted] | None) -> Reading:
    """A picture that is known, or by its file."""
    if not source:
        return Reading(source)
    fitted = known.get(source) if known is not None else None
    try:
        return Reading(source, picture=fitted or frame.fit(load_source(source, frame.side)))
    except ValueError as error:
        return Reading(source, wrong=str(error))


@torch.inference_mode()
def encode(voices: Sequence[Voice], sources: Sequence[Reading], inside: bool = False) -> list[Memory]:
    """What each voice makes of a batch of sources."""
    device = next(voices[0].model.parameters()).device
    fitted = [s.picture for s in sources if s.picture is not None]
    if fitted:
        pixels, sizes = stack(np.stack([f.seen for f in fitted]), np.array([f.size for f in fitted], np.int32))
        return [voice.model.encode(pixels.to(device), sizes.to(device), inside) for voice in voices]
    rows = ([s.encoded[i].ids for s in sources] for i in range(len(voices)))
    return [voice.model.encode(*padded(row, device), inside) for voice, row in zip(voices, rows, strict=True)]


def padded(rows: list[list[int]], device: torch.device) -> tuple[Tensor, Tensor]:
    """Numbers that end with STOP, and which of them are real: [B, N] each."""
    tokens = pad([[*row, STOP] for row in rows]).to(device)
    lengths = torch.tensor([len(row) + 1 for row in rows], device=device)
    return tokens, torch.arange(tokens.shape[1], device=device) < lengths.unsqueeze(1)


def together(order: Sequence[int], lengths: Sequence[int], beam: int = 1) -> Iterator[Sequence[int]]:
    """Rows from the shortest to the longest in batches, given their lengths; fewer where they are long, and fewer where
    each has many hypotheses.

    >>> [len(rows) for rows in together(range(100), [10] * 80 + [1000] * 20)]
    [64, 8, 8, 8, 8, 4]
    >>> [len(rows) for rows in together(range(20), [10] * 20, beam=40)]
    [8, 8, 4]
    """
    start, share = 0, min(1.0, WIDE / beam)
    most, tokens = max(1, int(AT_ONCE * share)), int(TOKENS_AT_ONCE * share)
    while start < len(order):
        longest = lengths[min(start + most, len(order)) - 1]
        count = max(1, min(most, tokens // max(1, longest)))
        yield order[start : start + count]
        start += count


def spread_onto_first(sources: Sequence[Reading], voice: int, length: int) -> Tensor:
    """How the pieces of a voice lie on those of the first, by the characters they share: [B, N, N of the first].

    Rows add up to 1, so weights that are spread still do; the end lies on the end.
    """
    widest = max(len(s.tokens) for s in sources)
    onto = torch.zeros(len(sources), length, widest)
    for b, source in enumerate(sources):
        spans, end = source.encoded[voice].spans, len(source.tokens) - 1
        for n, (start, stop) in enumerate(spans):
            for m, (_, (first, last)) in enumerate(source.tokens[:-1]):
                onto[b, n, m] = max(0, min(stop, last) - max(start, first))
        onto[b, len(spans), end] = 1
        lost = onto[b].sum(-1) == 0  # a piece that shares no character with any, such as one of a cut source
        onto[b, lost, end] = 1
    return onto / onto.sum(-1, keepdim=True)


def chances(source: list[int] | str, seed: int, samples: int, longest: int) -> Tensor:
    """Chance that depends on the source and the seed alone, so that the company of others changes nothing."""
    return torch.tensor([_numbers(repr((seed, sample, source)), longest) for sample in range(samples)])


def _numbers(key: str, count: int) -> list[float]:
    chance = random.Random(hashlib.sha256(key.encode()).digest())
    return [chance.random() for _ in range(count)]
