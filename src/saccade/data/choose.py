"""Which symbols suit a text: chosen from the data, with the reason said."""

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from saccade.config import TokeniserConfig

LOOKED_AT = 20_000  # pairs


class Choice(NamedTuple):
    """A tokeniser and why."""

    config: TokeniserConfig
    why: str


def choose_tokenisers(sources: Sequence[str], targets: Sequence[str]) -> tuple[Choice, Choice]:
    """Symbols between blanks where a side is spelt in them; characters where single words are spelt; learned pieces
    where both sides are sentences.

    >>> [choice.config.kind for choice in choose_tokenisers(["cat", "so"], ["k a t", "s o"])]
    ['characters', 'symbols']
    >>> [choice.config.kind for choice in choose_tokenisers(["May 3, 2019", "1 June 87"], ["2019-05-03", "1987-06-01"])]
    ['characters', 'characters']
    """
    total = len(sources)
    step = max(1, total // LOOKED_AT)
    sides = [_Side(list(side[::step][:LOOKED_AT]), total) for side in (sources, targets)]
    spelt = any(not side.symbols and side.words <= 2 for side in sides) or all(side.symbols for side in sides)
    return sides[0].choose(spelt), sides[1].choose(spelt)


class _Side:
    """What the texts of one side look like."""

    def __init__(self, texts: list[str], total: int) -> None:
        words = [text.split() for text in texts]
        lengths = [len(w) for ws in words for w in ws]
        characters = sum(map(len, texts))
        self.letters = statistics.mean(lengths) if lengths else 0.0  # of a word
        self.words = statistics.median(map(len, words)) if words else 0  # of a text
        self.length = statistics.median(map(len, texts)) if texts else 0  # of a text, in characters
        self.symbols = self.letters <= 2.5 and (sum(map(len, words)) / max(1, len(words))) > 1.5
        self.hangul = sum("가" <= c <= "힣" for text in texts for c in text) / max(1, characters)
        self.running = sum(map(len, words)) * total / max(1, len(texts))  # words of the whole corpus

    def choose(self, spelt: bool) -> Choice:
        if self.symbols:
            return Choice(TokeniserConfig(kind="symbols"), f"blanks separate symbols of {self.letters:.1f} characters")
        if spelt and self.length <= 100:
            if self.hangul > 0.2:
                return Choice(
                    TokeniserConfig(kind="characters", form="NFD"), f"spelling, {self.hangul:.0%} Hangul: jamo"
                )
            return Choice(TokeniserConfig(kind="characters"), f"spelling, texts of {self.length:.0f} characters")
        size = int(min(16_000, max(500, 10 * math.sqrt(self.running)))) // 100 * 100
        return Choice(
            TokeniserConfig(kind="bpe", size=size),
            f"sentences of {self.words:.0f} words, {self.running:,.0f} in all: {size:,} learned pieces",
        )
