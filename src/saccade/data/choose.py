"""Which symbols suit a text: chosen from the data, with the reason said."""

import statistics
from collections.abc import Sequence
from typing import NamedTuple

from saccade.config import TokeniserConfig

LOOKED_AT = 5000  # texts


class Choice(NamedTuple):
    """A tokeniser and why."""

    config: TokeniserConfig
    why: str


def choose_tokeniser(texts: Sequence[str]) -> Choice:
    """Symbols between blanks if the texts are spelt in them, characters if they are short, learned pieces if not.

    >>> choose_tokeniser(["k a d a", "s o"]).config.kind
    'symbols'
    >>> choose_tokeniser(["May 3, 2019", "1 June 1987"]).config.kind
    'characters'
    """
    texts = texts[:LOOKED_AT]
    words = [text.split() for text in texts]
    lengths = [len(w) for ws in words for w in ws]
    short = statistics.mean(lengths) if lengths else 0
    if short <= 2.5 and statistics.mean(map(len, words)) > 1.5:
        return Choice(TokeniserConfig(kind="symbols"), f"blanks separate symbols of {short:.1f} characters")
    typical = statistics.median(map(len, texts))
    if typical <= 40:
        hangul = sum("가" <= c <= "힣" for text in texts for c in text) / max(1, sum(map(len, texts)))
        if hangul > 0.2:
            return Choice(TokeniserConfig(kind="characters", form="NFD"), f"short texts, {hangul:.0%} Hangul: jamo")
        return Choice(TokeniserConfig(kind="characters"), f"short texts of {typical:.0f} characters")
    size = 2000 if len(texts) < LOOKED_AT else 6000
    return Choice(TokeniserConfig(kind="bpe", size=size), f"texts of {typical:.0f} characters: {size} learned pieces")
