"""Captions against several references: BLEU-1 to 4, ROUGE-L and CIDEr-D, as the COCO evaluation defines them.

Words are lower-cased and cut at blanks and punctuation, which is left out; signs such as + and = are words. (COCO's own
tokeniser is Java; on captions of plain words the two agree.) CIDEr-D weighs phrases by how rare they are in the
references of the whole test set, so it means nothing for a handful of pictures.
"""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import cache

from sacrebleu.metrics.bleu import BLEU

ORDER = 4
BETA = 1.2  # ROUGE-L: how much more recall counts than precision
SIGMA = 6.0  # CIDEr-D: by how many words a caption may be too long or too short before it costs much

Words = list[str]
Phrases = Counter[tuple[str, ...]]


def caption_words(text: str) -> Words:
    """
    >>> caption_words("A man's dog, running.")
    ['a', 'man', "'s", 'dog', 'running']
    """
    if text.isascii():
        return _WORD.findall(text.lower())
    return _marked().findall(unicodedata.normalize("NFC", text).lower())


def _pattern(letter: str, signs: str) -> re.Pattern[str]:
    return re.compile(rf"'s|{letter}+(?:[-'](?!s\b){letter}+)*|[{signs}]")


_WORD = _pattern(r"[^\W_]", re.escape("$+<=>^`|~"))


@cache
def _marked() -> re.Pattern[str]:
    """The same for all of Unicode, where letters have marks above and below them, no part of a word to Python."""
    kinds: dict[str, list[str]] = {}
    for character in map(chr, range(0x20000)):
        kinds.setdefault(unicodedata.category(character)[0], []).append(character)
    marks, signs = (re.escape("".join(kinds[kind])) for kind in "MS")
    return _pattern(rf"(?:[^\W_][{marks}]*)", signs)


def caption_scores(outputs: Sequence[str], references: Sequence[Sequence[str]]) -> dict[str, float]:
    """All of them, in percent; of CIDEr-D, which may be more than 1, that is 100 where others say 1."""
    written = [caption_words(o) for o in outputs]
    known = [[caption_words(r) for r in some] for some in references]
    found = {f"bleu{n}": score for n, score in enumerate(_bleu(written, known), 1)}
    found["rouge_l"] = 100 * _mean([rouge_l(w, k) for w, k in zip(written, known, strict=True)])
    found["cider"] = 100 * _mean(cider_d(written, known))
    return found


def caption_signatures(references: Sequence[Sequence[str]]) -> dict[str, str]:
    """How they were counted, in the manner of sacrebleu; BLEU-1 to 3 as BLEU-4."""
    counts = {len(some) for some in references}
    told = f"nrefs:{counts.pop() if len(counts) == 1 else 'var'}|case:lc|tok:words|punct:no"
    return {
        "bleu4": f"{told}|smooth:none",
        "rouge_l": f"{told}|beta:{BETA}",
        "cider": f"{told}|n:{ORDER}|sigma:{SIGMA:g}|idf:these references",
    }


def _bleu(written: list[Words], known: list[list[Words]]) -> list[float]:
    most = max(map(len, known), default=1)
    streams = [[" ".join(k[i]) if i < len(k) else None for k in known] for i in range(most)]
    lines = [" ".join(w) for w in written]
    scores = []
    for order in range(1, ORDER + 1):
        metric = BLEU(max_ngram_order=order, tokenize="none", smooth_method="none", force=True)
        scores.append(float(metric.corpus_score(lines, streams).score) if lines else 0.0)  # type: ignore[arg-type]
    return scores


def rouge_l(written: Words, known: Sequence[Words]) -> float:
    """By the longest common subsequence, with the best precision and the best recall over the references."""
    longest = [_common(written, k) for k in known]
    precision = max((n / len(written) for n in longest), default=0.0) if written else 0.0
    recall = max((n / len(k) for n, k in zip(longest, known, strict=True) if k), default=0.0)
    if not precision or not recall:
        return 0.0
    return (1 + BETA**2) * precision * recall / (recall + BETA**2 * precision)


def _common(one: Words, other: Words) -> int:
    row = [0] * (len(other) + 1)
    for a in one:
        corner = 0
        for j, b in enumerate(other, 1):
            corner, row[j] = row[j], corner + 1 if a == b else max(row[j], row[j - 1])
    return row[-1]


def cider_d(written: Sequence[Words], known: Sequence[Sequence[Words]]) -> list[float]:
    """CIDEr-D of each caption (Vedantam et al. 2015), with the factor of ten that COCO gives it."""
    phrases = [[_phrases(k) for k in some] for some in known]
    seen: Phrases = Counter()
    for some in phrases:
        seen.update(set().union(*some))
    pictures = math.log(max(1, len(known)))
    scores = []
    for words, some in zip(written, phrases, strict=True):
        mine = _weighed(_phrases(words), seen, pictures)
        scores.append(10 * _mean([_alike(mine, _weighed(other, seen, pictures)) for other in some]))
    return scores


Weighed = tuple[list[dict[tuple[str, ...], float]], list[float], int]  # weights and norm by order, and the length


def _phrases(words: Words) -> Phrases:
    return Counter(tuple(words[i : i + n]) for n in range(1, ORDER + 1) for i in range(len(words) - n + 1))


def _weighed(phrases: Phrases, seen: Phrases, pictures: float) -> Weighed:
    weights: list[dict[tuple[str, ...], float]] = [{} for _ in range(ORDER)]
    for phrase, count in phrases.items():
        weights[len(phrase) - 1][phrase] = count * (pictures - math.log(max(1, seen[phrase])))
    norms = [math.sqrt(sum(w * w for w in some.values())) for some in weights]
    return weights, norms, sum(count for phrase, count in phrases.items() if len(phrase) == 2)


def _alike(one: Weighed, other: Weighed) -> float:
    """The cosine of the two, clipped so that repeating a phrase gains nothing, and less for another length."""
    total = 0.0
    for mine, theirs, norm, their_norm in zip(one[0], other[0], one[1], other[1], strict=True):
        if norm and their_norm:
            shared = sum(min(w, theirs[p]) * theirs[p] for p, w in mine.items() if p in theirs)
            total += shared / (norm * their_norm)
    return total / ORDER * math.exp(-((one[2] - other[2]) ** 2) / (2 * SIGMA**2))


def _mean(numbers: Sequence[float]) -> float:
    return sum(numbers) / len(numbers) if numbers else 0.0
