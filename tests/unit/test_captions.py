"""Caption metrics against the package of the COCO evaluation."""

import random

import pytest

from saccade.metrics.captions import caption_scores, caption_words, cider_d, rouge_l

WORDS = ["a", "the", "dog", "cat", "man", "runs", "sits", "on", "grass", "water", "with", "red", "ball", "two", "near"]


def captions(seed: int, count: int = 40) -> tuple[list[str], list[list[str]]]:
    chance = random.Random(seed)
    known = [
        [" ".join(chance.choices(WORDS, k=chance.randint(1, 14))) for _ in range(chance.randint(1, 5))]
        for _ in range(count)
    ]
    written = [
        chance.choice(k) if chance.random() < 0.4 else " ".join(chance.choices(WORDS, k=chance.randint(1, 14)))
        for k in known
    ]
    return written, known


@pytest.mark.parametrize("seed", range(5))
def test_the_figures_are_those_of_the_coco_evaluation(seed):
    bleu = pytest.importorskip("pycocoevalcap.bleu.bleu")
    cider = pytest.importorskip("pycocoevalcap.cider.cider")
    rouge = pytest.importorskip("pycocoevalcap.rouge.rouge")
    written, known = captions(seed)
    ours = caption_scores(written, known)
    references = dict(enumerate(known))
    outputs = {i: [w] for i, w in enumerate(written)}
    theirs, _ = bleu.Bleu(4).compute_score(references, outputs, verbose=0)
    assert [ours[f"bleu{n}"] for n in range(1, 5)] == pytest.approx([100 * x for x in theirs], abs=0.01)
    assert ours["rouge_l"] == pytest.approx(100 * rouge.Rouge().compute_score(references, outputs)[0], abs=1e-6)
    assert ours["cider"] == pytest.approx(100 * cider.Cider().compute_score(references, outputs)[0], abs=1e-6)


def test_words():
    assert caption_words("Two dogs , one ball .") == ["two", "dogs", "one", "ball"]
    assert caption_words("") == []


def test_marks_belong_to_their_letters_and_signs_are_words():
    assert caption_words("लड़का फुटबॉल") == ["लड़का", "फुटबॉल"]
    assert caption_words("Cafe\u0301, niño!") == ["café", "niño"]
    assert caption_words("1 + 2 = 3, x-y") == ["1", "+", "2", "=", "3", "x-y"]
    assert caption_words("½ ＋ 2 € — ja") == ["½", "＋", "2", "€", "ja"]
    assert caption_scores(["कका"], [["ककि"]])["bleu1"] == 0


def test_nothing_written_and_nothing_known():
    assert rouge_l([], [["a"]]) == 0
    assert rouge_l(["a"], []) == 0
    assert cider_d([["a"]], [[]]) == [0.0]
    assert set(caption_scores([], []).values()) == {0.0}


def test_a_phrase_said_twice_gains_nothing():
    known = [[["a", "red", "ball"]], [["two", "dogs", "run"]], [["the", "sea"]]]
    once, twice = (cider_d([w, ["x"], ["y"]], known)[0] for w in (["a", "red", "ball"], ["a", "red", "ball"] * 2))
    assert once == pytest.approx(7.5)  # of four lengths of phrases it has three
    assert twice < once
