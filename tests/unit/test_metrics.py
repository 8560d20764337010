"""Metrics: against sacrebleu itself, definitions of the shared tasks, and intervals that mean something."""

import io
import random

import numpy as np
import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from saccade.cli.evaluation import print_report, print_score
from saccade.evaluate import NAMES, System, against
from saccade.evaluate.report import report
from saccade.metrics import bleu_of, bleu_parts, confusions, edits, interval, judged_by, text_scores, wilson
from saccade.see import Prediction

OUTPUTS = ["the cat sat on the mat", "a dog runs fast in the park", "hello there my old friend"]
REFERENCES = [
    ["the cat sat on a mat", "a cat was on the mat"],
    ["a dog is running in the park"],
    ["hello my old friend"],
]


def test_scores_and_signatures_are_those_of_sacrebleu():
    found = text_scores(OUTPUTS, [r[:1] for r in REFERENCES])
    streams = [[r[0] for r in REFERENCES]]
    assert found["bleu"].score == sacrebleu.corpus_bleu(OUTPUTS, streams).score
    assert found["chrf"].score == sacrebleu.corpus_chrf(OUTPUTS, streams).score
    assert found["ter"].score == sacrebleu.corpus_ter(OUTPUTS, streams).score
    assert found["bleu"].signature.startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:")


def test_several_references_for_some():
    assert (
        text_scores(OUTPUTS, REFERENCES)["bleu"].score > text_scores(OUTPUTS, [r[:1] for r in REFERENCES])["bleu"].score
    )
    assert "nrefs:var" in text_scores(OUTPUTS, REFERENCES)["bleu"].signature


def test_the_parts_of_bleu_add_up():
    assert bleu_of(bleu_parts(OUTPUTS, REFERENCES).sum(0)) == pytest.approx(
        text_scores(OUTPUTS, REFERENCES)["bleu"].score
    )


def test_the_nearest_reference_counts():
    assert edits(["a", "b"], [["x", "y"], ["a", "b", "c"]])[:2] == (1, 3)


@given(st.lists(st.sampled_from("ab"), max_size=8), st.lists(st.sampled_from("ab"), max_size=8))
def test_edits_and_confusions_agree(output, reference):
    found = confusions([(output, reference)], most=100)
    assert sum(count for *_, count in found) == edits(output, [reference]).wrong


def test_an_interval_covers_what_it_should():
    """Of 100 samples from a coin of 0.7, about 95 intervals hold it; fewer than 85 would be a mistake (6 sigma)."""
    chance = np.random.default_rng(0)
    held = 0
    for trial in range(100):
        parts = np.stack([chance.random(200) < 0.7, np.ones(200)], 1).astype(float)
        low, high = interval(parts, lambda total: total[0] / total[1], seed=trial, samples=200)
        held += low <= 0.7 <= high
    assert held >= 85


def test_a_share_is_never_certain():
    """Of a share of 0.95 and 20 outputs, all are right in a third of the tests; the interval holds it all the same."""
    chance = np.random.default_rng(0)
    ends = [wilson((chance.random(20) < 0.95).sum(), 20) for _ in range(1000)]
    assert 920 <= sum(low <= 95 <= high for low, high in ends) <= 990
    for right in (0, 1):
        said = [Prediction("w", "x" if right else "y", -1)] * 3
        found = report(said, [["x"]] * 3, symbols=True)
        for low, high in (found.intervals["exact"], found.intervals["wer"], found.by_length[0].exact_interval):
            assert 0 <= low < high <= 100
        assert found.intervals["exact"][right] == found.scores["exact"]


@pytest.mark.parametrize(
    ("spelt", "wanted", "main"),
    [(True, "a b c d", "exact"), (False, "a red wall", "chrf"), (False, "a red wall again", "bleu")],
)
def test_all_judge_by_the_same_figure(spelt, wanted, main):
    """Also where nothing is right: a BLEU of 0 is no reason to tell chrF in its place."""
    found = report([Prediction("w", "x", -1)], [[wanted]], symbols=spelt)
    console = Console(file=io.StringIO())
    print_score(found, console)
    assert found.main == judged_by(spelt, [wanted]) == main
    assert f"dev: {NAMES[main]} 0.00" in console.file.getvalue()
    near, far = (System(said, report([Prediction("w", said, -1)] * 9, [[wanted]] * 9, spelt)) for said in (wanted, "x"))
    (a,) = against([far, near])
    assert (a.better, round(a.difference)) == (wanted, 100)


def test_one_source_is_one_source():
    console = Console(file=io.StringIO())
    print_score(report([Prediction("w", "x", -1)], [["x"]], symbols=True), console)
    assert "of 1 source, beam 5" in console.file.getvalue()


def test_a_report_counts_words_and_symbols_as_the_shared_tasks_do():
    said = [Prediction("ab", "a b", -1), Prediction("cd", "c x", -1), Prediction("ef", "e f g", -1)]
    found = report(said, [["a b"], ["c d", "c d d"], ["e f"]], symbols=True)
    assert found.scores["wer"] == pytest.approx(100 * 2 / 3)
    assert found.scores["exact"] == pytest.approx(100 / 3)
    assert found.scores["per"] == pytest.approx(
        100 * 2 / 6
    )  # one wrong of "c d" (or two of three), one too many of "e f"
    assert ("d", "x", 1) in found.confusions
    assert ("∅", "g", 1) in found.confusions
    assert found.counts["references"] == 4
    record = found.record()
    assert {"bleu", "chrf", "ter", "exact", "wer", "per", "signatures", "by_length", "counts"} <= set(record)


def test_lengths_are_shared_out_into_buckets_that_are_large_enough():
    said = [Prediction(" ".join(["w"] * n), "x", -1) for n in range(1, 41) for _ in range(10)]
    found = report(said, [["x"]] * len(said), symbols=False)
    assert sum(b.sources for b in found.by_length) == 400
    assert all(b.sources >= 20 for b in found.by_length)
    assert found.by_length[0].first == 1
    assert found.by_length[-1].last == 40
    assert found.unit == "words"


def test_nothing_to_evaluate():
    assert report([], [], symbols=True).record()["counts"]["sources"] == 0


def test_one_very_long_source_does_not_flatten_the_buckets():
    said = [Prediction(" ".join(["w"] * (5 + i % 40)), "x", -1) for i in range(2000)]
    said.append(Prediction(" ".join(["w"] * 900), "x", -1))
    found = report(said, [["x"]] * len(said), symbols=False)
    assert len(found.by_length) >= 4
    assert found.by_length[-1].last == 900
    assert sum(b.sources for b in found.by_length) == 2001


def test_what_looks_the_same_is_the_same():
    said = [Prediction("a", "한 국", -1)]
    assert report(said, [["\u1112\u1161\u11ab  \u1100\u116e\u11a8"]], symbols=True).scores["wer"] == 0


def test_long_rows_of_symbols_are_not_searched_for_shifts():
    """TER would take minutes for a hundred of these, and tells nothing that the share of wrong symbols does not."""
    chance = random.Random(0)
    said = [Prediction("x", " ".join(chance.choices("abcdef", k=60)), -1) for _ in range(50)]
    wanted = [[" ".join(chance.choices("abcdef", k=60))] for _ in said]
    found = report(said * 4, wanted * 4, symbols=True)
    assert "ter" not in found.scores
    assert found.record()["ter"] is None  # there, and not counted
    console = Console(file=io.StringIO())
    print_report(found, console)
    assert "TER: not counted" in console.file.getvalue()
    assert "ter" in report(said[:1], [["a b"]], symbols=False).scores
    looping = [Prediction("x", "a b c", -1)] * 99 + [Prediction("x", "a " * 60, -1)]
    assert "ter" in report(looping, [["a b c"]] * 100, symbols=True).scores  # one that went astray decides nothing


def test_every_score_of_a_report_has_an_interval_around_it():
    said = [Prediction("w", "the cat sat" if i % 3 else "a dog sat there", -1) for i in range(60)]
    found = report(said, [["the cat sat"]] * 60, symbols=False)
    for name in ("bleu", "chrf", "ter", "exact", "wer", "per", "cer"):
        low, high = found.intervals[name]
        assert low < found.scores[name] < high, name


def test_scores_from_parts_are_those_of_sacrebleu():
    said = [Prediction("w", "the cat sat" if i % 3 else "a dog sat there", -1) for i in range(30)]
    known = [["the cat sat", "a cat sat"], ["the dog sat"]] * 15
    found, whole = report(said, known, symbols=False), text_scores([p.text for p in said], known)
    for name, scored in whole.items():
        assert found.scores[name] == pytest.approx(scored.score)
        assert found.signatures[name] == scored.signature


def test_an_interval_where_nothing_is_right():
    said = [Prediction("w", "", -1), Prediction("w", "x", -1)]
    found = report(said, [["the cat"], ["sat down"]], symbols=False)
    assert found.intervals["chrf"][0] == 0
    assert found.intervals["ter"] == (100, 100)
