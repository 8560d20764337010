"""Which symbols suit a text: chosen from the data, with the reason said."""

import math
import re
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from rapidfuzz.distance import Levenshtein

from saccade.config import TokeniserConfig
from saccade.data.tokenisers import OWN

LOOKED_AT = 20_000  # pairs
UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")  # no blanks between words
MOST_SOUNDS = 1_000  # kinds of symbols longer than a character: more are words
MOST_NUMBERS = 20  # kinds of numbers of two or more digits: tones such as 214 have fewer
LINE = 16  # numbers of a cache line: logits are 1.4 times as quick to compute if each row of them begins with one
PER_WORD = 2  # characters of a word in such a script, about
SENTENCE = 6  # characters that a sentence in such a script has at least, in the middle
SPELT = 100  # characters of a text, in the middle, at most: in longer ones attention finds its way too late
COMPARED = 500  # pairs
CORRECTED = 0.8  # share of the characters that stay: 0.98 where a letter is mended; translations keep 0.3, at most 0.5


class Choice(NamedTuple):
    """A tokeniser and why."""

    config: TokeniserConfig
    why: str


def choose_tokenisers(
    sources: Sequence[str] | None, targets: Sequence[str], *, shared: bool = False
) -> tuple[Choice, Choice]:
    """Symbols between blanks where a side is spelt in them; characters where single words are spelt, or where sentences
    are corrected: to copy what is right, and mend a letter, is hard in pieces. Learned pieces where both sides are
    sentences. Where a script has no blanks between words, the other side tells which it is.

    Without sources, which are pictures then, targets alone decide; symbols that are `shared` are chosen once for both.

    >>> [choice.config.kind for choice in choose_tokenisers(["cat", "so"], ["k a t", "s o"])]
    ['characters', 'symbols']
    >>> [choice.config.kind for choice in choose_tokenisers(["May 3, 2019", "1 June 87"], ["2019-05-03", "1987-06-01"])]
    ['characters', 'characters']
    >>> [choice.config.kind for choice in choose_tokenisers(["私は学校に行く。"], ["I go to school."])]
    ['bpe', 'bpe']
    >>> [choice.config.kind for choice in choose_tokenisers(["I go to shool."], ["I go to school."])]
    ['characters', 'characters']
    """
    kept = 0.0 if sources is None else _kept(sources, targets)
    texts = [targets if sources is None else sources, targets]
    if shared:
        texts = [[*texts[0], *texts[1]]] * 2
    total = len(texts[0])
    step = max(1, total // LOOKED_AT)
    sides = [_Side(list(side[::step][:LOOKED_AT]), total) for side in texts]
    moved = all(side.symbols for side in sides)
    for side in sides:  # numbers that are moved are symbols; of those that are reckoned with, each digit counts
        side.symbols &= moved or not side.numbers
    told = any(side.sentences for side in sides)  # by blanks, that this is about sentences
    single = (not s.symbols and s.words <= 2 and not (told and s.unspaced and s.length >= SENTENCE) for s in sides)
    spelt = moved or any(single) or any(side.numbers for side in sides)
    if spelt or kept < CORRECTED or max(side.length for side in sides) > SPELT:
        kept = 0.0  # no corrections, or none that are learned in time
    return sides[0].choose(spelt, kept), sides[1].choose(spelt, kept)


def _kept(sources: Sequence[str], targets: Sequence[str]) -> float:
    """The share of its characters that a text keeps, from source to target, in the middle of some pairs."""
    step = max(1, len(sources) // COMPARED)
    pairs = list(zip(sources[::step], targets[::step], strict=True))
    return statistics.median(Levenshtein.normalized_similarity(*pair) for pair in pairs) if pairs else 0.0


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
        kinds = {w for ws in words for w in ws}
        short = self.letters <= 2.5 and (sum(map(len, words)) / max(1, len(words))) > 1.5
        self.numbers = short and sum(len(kind) > 1 and kind.isdecimal() for kind in kinds) > MOST_NUMBERS
        sounds = self.letters <= 1.2 or (self.hangul <= 0.2 and len(kinds) <= MOST_SOUNDS)
        self.symbols = short and sounds  # short words are not: those of Korean have two or three syllables
        self.running = sum(map(len, words)) * total / max(1, len(texts))  # words of the whole corpus
        self.unspaced = sum(len(UNSPACED.findall(text)) for text in texts) > 0.5 * max(1, characters)
        self.sentences = not self.symbols and not self.numbers and not self.unspaced and self.words > 2
        self.kinds = len({c for text in texts for c in text}) if self.unspaced else 0  # of characters

    def choose(self, spelt: bool, kept: float) -> Choice:
        """For words that are spelt, or sentences of which so much is `kept` that they are corrected, or other ones."""
        if self.symbols:
            return Choice(TokeniserConfig(kind="symbols"), f"blanks separate symbols of {self.letters:.1f} characters")
        if kept or (spelt and self.length <= SPELT):
            why = f"corrections, {kept:.0%} of a text stays as it is" if kept else "spelling"
            if self.hangul > 0.2:
                return Choice(TokeniserConfig(kind="characters", form="NFD"), f"{why}, {self.hangul:.0%} Hangul: jamo")
            return Choice(TokeniserConfig(kind="characters"), f"{why}, texts of {self.length:.0f} characters")
        words, running = self.words, self.running
        if self.unspaced:
            words, running = self.length / PER_WORD, self.total * self.length / PER_WORD
        size = int(min(16_000, max(500, 7 * math.sqrt(running)) + self.kinds)) // LINE * LINE - OWN
        return Choice(
            TokeniserConfig(kind="bpe", size=size),
            f"sentences of {words:.0f} words, {running:,.0f} in all: at most {size:,} learned pieces",
        )
