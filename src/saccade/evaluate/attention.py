"""Judging attention: against links that people drew, and by itself."""

import itertools
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from saccade.data import Pair, Watch, unwatched
from saccade.metrics import (
    Agreement,
    Gold,
    absentminded_in,
    absentminded_out,
    agreement,
    ailments,
    coverage_deviation,
    entropy,
)
from saccade.search import Translator
from saccade.see import Prediction
from saccade.see.alignment import END
from saccade.see.views import view

THRESHOLDS = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)
COMMON = 20  # of the commonest words, which often match nothing in particular
SHOWN = 10


class Judged(NamedTuple):
    """How one way of reading links from weights agrees with people."""

    way: str
    agreement: Agreement


def judge(
    translator: Translator, pairs: Sequence[Pair], gold: Sequence[Gold], watch: Watch = unwatched
) -> list[Judged]:
    """The links of given pairs, by forced decoding, against gold: by argmax, and by the best way there is.

    The layer, the head and the threshold are picked on every other sentence; every figure is that of the rest.
    """
    if len(pairs) != len(gold):
        raise ValueError(f"{len(pairs)} pairs, but gold for {len(gold)}; expected as many")
    predictions = translator.score_all([(p.source, p.target) for p in pairs], watch=watch)
    if any(p.cross is None for p in predictions):
        raise ValueError("this model has no attention to judge")
    for number, (p, known) in enumerate(zip(predictions, gold, strict=True), 1):
        words = len(p.source.split()), len(p.text.split())
        for link in known.possible:
            if not all(0 <= i < n for i, n in zip(link, words, strict=True)):
                raise ValueError(
                    f"gold of sentence {number}: a link to words {link}, counted from 0, but there are {words}"
                )
    first = predictions[0].cross
    assert first is not None
    layers, heads = first.shape[:2]
    tuned, rest = slice(0, None, 2), slice(1, None, 2)
    if len(pairs) < 2:
        tuned = rest = slice(None)

    def links(way: tuple[int, int | None, float | None], part: slice) -> Agreement:
        layer, head, threshold = way
        found = []
        for p in predictions[part]:
            assert p.cross is not None
            weights = p.cross[layer].mean(0) if head is None else p.cross[layer, head]
            found.append(p.align(weights, threshold))
        return agreement(found, gold[part])

    shown = predictions[0].layer % layers
    several = [None] if heads == 1 else [None, *range(heads)]
    everywhere = list(itertools.product(range(layers), several))
    ways = {
        "the most, shown layer": (shown, None, None),
        "at least a threshold, shown layer": min(
            ((shown, None, t) for t in THRESHOLDS), key=lambda way: links(way, tuned).aer
        ),
        "the most, best layer and head": min(
            ((layer, head, None) for layer, head in everywhere), key=lambda way: links(way, tuned).aer
        ),
    }
    return [Judged(_named(name, way, layers, heads), links(way, rest)) for name, way in ways.items()]


def _named(name: str, way: tuple[int, int | None, float | None], layers: int, heads: int) -> str:
    layer, head, threshold = way
    told = []
    if layers > 1:
        told.append(f"layer {layer}")
    if heads > 1:
        told.append("mean of heads" if head is None else f"head {head}")
    if threshold is not None:
        told.append(f"{threshold:g}")
    return f"{name} ({', '.join(told)})" if told else name


class Health(NamedTuple):
    """What the weights of many predictions tell; entropies in nats."""

    figures: dict[str, float]
    classes: list[tuple[str, int, float]]  # kind of word, how many, mean entropy
    words: list[tuple[str, int, float]]  # the commonest words, from the most scattered
    worst: list[tuple[float, Prediction]]  # the most scattered sentences
    ailments: list[tuple[str, int]]  # what is plainly wrong, and with how many

    def record(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {
            **{name: round(value, 4) for name, value in self.figures.items()},
            "by_class": [{"class": c, "words": n, "entropy": round(e, 4)} for c, n, e in self.classes],
            "by_word": [{"word": w, "times": n, "entropy": round(e, 4)} for w, n, e in self.words],
            "worst": [{"entropy": round(e, 4), "source": p.source, "text": p.text} for e, p in self.worst],
            "ailments": [{"what": what, "sources": n} for what, n in self.ailments],
        }


def health(predictions: Sequence[Prediction]) -> Health | None:
    """None where nothing looked at anything."""
    looked = [p for p in predictions if p.weights is not None and p.weights.size]
    if not looked:
        return None
    by_word: dict[str, list[float]] = defaultdict(list)
    ends: list[float] = []
    sentences, wrong = [], Counter[str]()
    for p in looked:
        assert p.weights is not None
        shown = view(p)  # of words, where the model cuts them into pieces
        rows = entropy(shown.weights)
        for word, value in zip(shown.rows, rows.tolist(), strict=True):
            if word == END:
                ends.append(value)
            else:
                by_word[_bare(word)].append(value)
        sentences.append((float(rows.mean()), p))
        wrong.update(ailments(p.weights))
    common = sorted(by_word, key=lambda word: -len(by_word[word]))[:COMMON]
    classes: dict[str, list[float]] = defaultdict(list)
    for word, values in by_word.items():
        classes[_kind(word, word in common)] += values
    if ends:
        classes["the end"] = ends
    weights = [p.weights for p in looked if p.weights is not None]
    figures = {
        "entropy": float(np.mean([*itertools.chain(*by_word.values()), *ends])),  # of a word
        "coverage_deviation": float(np.mean([coverage_deviation(w) for w in weights])),
        "absentminded_out": float(np.mean([absentminded_out(w) for w in weights])),
        "absentminded_in": float(np.mean([absentminded_in(w) for w in weights])),
    }
    words = [(word, len(by_word[word]), float(np.mean(by_word[word]))) for word in common]
    return Health(
        figures,
        sorted(((kind, len(v), float(np.mean(v))) for kind, v in classes.items()), key=lambda row: -row[2]),
        sorted(words, key=lambda row: -row[2]),
        sorted(sentences, key=lambda row: -row[0])[:SHOWN],
        wrong.most_common(),
    )


def _bare(word: str) -> str:
    """A word without its case and what stands at its edges; of punctuation alone, that."""
    inner = word.strip().casefold()
    marks = "".join(c for c in inner if unicodedata.category(c)[0] in "PS")
    return inner.strip(marks) or inner or "␣"


def _kind(word: str, common: bool) -> str:
    if all(unicodedata.category(c)[0] in "PSZ" for c in word):
        return "punctuation"
    if any(c.isdigit() for c in word):
        return "numbers"
    return f"the {COMMON} commonest words" if common else "other words"
