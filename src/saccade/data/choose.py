"""Which symbols suit a text: chosen from the data, with the reason said."""

import math
import re
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from saccade.config import TokeniserConfig
from saccade.data.tokenisers import OWN

LOOKED_AT = 20_000  # pairs
UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")  # no blanks between words
MOST_SOUNDS = 1_000  # kinds of symbols longer than a character: more are words
LINE = 16  # numbers of a cache line: logits are 1.4 times as quick to compute if each row of them begins with one
PER_WORD = 2  # characters of a word in such a script, about
SENTENCE = 6  # characters that a sentence in such a script has at least, in the middle


class Choice(NamedTuple):
    """A tokeniser and why."""

    config: TokeniserConfig
    why: str


def choose_tokenisers(sources: Sequence[str], targets: Sequence[str]) -> tuple[Choice, Choice]:
    """Symbols between blanks where a side is spelt in them; characters where single words are spelt; learned pieces
    where both sides are sentences. Where a script has no blanks between words, the other side tells which it is.

    >>> [choice.config.kind for choice in choose_tokenisers(["cat", "so"], ["k a t", "s o"])]
    ['characters', 'symbols']
    >>> [choice.config.kind for choice in choose_tokenisers(["May 3, 2019", "1 June 87"], ["2019-05-03", "1987-06-01"])]
    ['characters', 'characters']
    >>> [choice.config.kind for choice in choose_tokenisers(["私は学校に行く。"], ["I go to school."])]
    ['bpe', 'bpe']
    """
    total = len(sources)
    step = max(1, total // LOOKED_AT)
    sides = [_Side(list(side[::step][:LOOKED_AT]), total) for side in (sources, targets)]
    told = any(side.sentences for side in sides)  # by blanks, that this is about sentences
    single = (not s.symbols and s.words <= 2 and not (told and s.unspaced and s.length >= SENTENCE) for s in sides)
    spelt = any(single) or all(side.symbols for side in sides)
    return sides[0].choose(spelt), sides[1].choose(spelt)


class _Side:
    """What the texts of one side look like."""

    def __init__(self, texts: list[str], total: int) -> None:
        self.total = total
        words = [text.split() for text in texts]
        lengths = [len(w) for ws in words for w in ws]
        characters = sum(map(len, texts))
        self.letters = statistics.mean(lengths) if lengths else 0.0  # of a word
        self.words = statistics.median(map(len, words)) if words else 0  # of a text
        self.length = statistics.median(map(len, texts)) if texts else 0  # of a text, in characters
        self.hangul = sum("가" <= c <= "힣" for text in texts for c in text) / max(1, characters)
        short = self.letters <= 2.5 and (sum(map(len, words)) / max(1, len(words))) > 1.5
        sounds = self.letters <= 1.2 or (self.hangul <= 0.2 and len({w for ws in words for w in ws}) <= MOST_SOUNDS)
        self.symbols = short and sounds  # short words are not: those of Korean have two or three syllables
        self.running = sum(map(len, words)) * total / max(1, len(texts))  # words of the whole corpus
        self.unspaced = sum(len(UNSPACED.findall(text)) for text in texts) > 0.5 * max(1, characters)
        self.sentences = not self.symbols and not self.unspaced and self.words > 2
        self.kinds = len({c for text in texts for c in text}) if self.unspaced else 0  # of characters

    def choose(self, spelt: bool) -> Choice:
        if self.symbols:
            return Choice(TokeniserConfig(kind="symbols"), f"blanks separate symbols of {self.letters:.1f} characters")
        if spelt and self.length <= 100:
            if self.hangul > 0.2:
                return Choice(
                    TokeniserConfig(kind="characters", form="NFD"), f"spelling, {self.hangul:.0%} Hangul: jamo"
                )
            return Choice(TokeniserConfig(kind="characters"), f"spelling, texts of {self.length:.0f} characters")
        words, running = self.words, self.running
        if self.unspaced:
            words, running = self.length / PER_WORD, self.total * self.length / PER_WORD
        size = int(min(16_000, max(500, 7 * math.sqrt(running)) + self.kinds)) // LINE * LINE - OWN
        return Choice(
            TokeniserConfig(kind="bpe", size=size),
            f"sentences of {words:.0f} words, {running:,.0f} in all: at most {size:,} learned pieces",
        )
