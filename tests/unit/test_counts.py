"""Counts: pieces by EM, cuts and joint n-grams as plain Python has them, and their say in what a beam chose."""

import itertools
import math
import random
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from reference.counts import KneserNey, expected, likeliest, ways
from test_both_ways import LETTERS, SOUNDS, TEXTS, translator

import saccade.model.counts as counts_module
import saccade.search.agreement as agreement_module
from saccade.config import ModelConfig
from saccade.data import STOP, Tokeniser
from saccade.model import Counts, build
from saccade.model.counts import GIVEN_UP, ORDER, SHAPES, log_shares
from saccade.search import Options, Translator
from saccade.search.agreement import COUNTED
from saccade.train import Run, load, start, train

SIZES = (4, 5)
PAIRS = st.lists(
    st.tuples(st.lists(st.integers(0, 3), min_size=1, max_size=4), st.lists(st.integers(0, 4), max_size=4)).filter(
        lambda pair: len(pair[1]) <= 2 * len(pair[0])
    ),
    min_size=1,
    max_size=6,
)


SOME = [(random.Random(i).choices(range(4), k=3 + i % 2), random.Random(-i).choices(range(5), k=3)) for i in range(50)]


def numbered(pieces, counts):
    """The number of each piece, as `Counts` lists them: all of one shape after all of another."""
    first = np.cumsum([0, *(SIZES[0] ** a * SIZES[1] ** b for a, b in SHAPES)])
    numbers = []
    for source, target in pieces:
        number = 0
        for symbols, size in ((source, SIZES[0]), (target, SIZES[1])):
            for symbol in symbols:
                number = number * size + symbol
        numbers.append(int(first[SHAPES.index((len(source), len(target)))]) + number)
    assert max(numbers) < len(counts.chances)
    return numbers


def some(seed=0):
    chance = np.random.default_rng(seed)
    return Counts(SIZES, chance.dirichlet(np.ones(sum(SIZES[0] ** a * SIZES[1] ** b for a, b in SHAPES))))


def chances_of(counts):
    class Chances(dict):
        def __missing__(self, piece):
            return float(counts.chances[numbered([piece], counts)[0]])

    return Chances()


@given(PAIRS)
def test_pieces_are_expected_over_all_ways_to_cut(pairs):
    counts = some()
    found = np.zeros(len(counts.chances))
    for s, t in pairs:
        sides = np.array([s]), np.array([t], dtype=np.int64).reshape(1, -1)
        counts._expect(counts._pieces(*sides), *sides, found)
    wanted = expected(pairs, chances_of(counts))
    assert found.sum() == pytest.approx(sum(wanted.values()))
    for piece, share in wanted.items():
        assert found[numbered([piece], counts)[0]] == pytest.approx(share)


def test_pieces_that_are_not_kept_from_round_to_round_are_the_same(monkeypatch):
    kept = Counts.learn(SOME, SIZES).arrays()
    monkeypatch.setattr(counts_module, "KEPT", 0)
    again = Counts.learn(SOME, SIZES).arrays()
    assert all(np.array_equal(kept[name], again[name]) for name in kept)


@given(PAIRS)
def test_a_pair_is_cut_as_is_likeliest(pairs):
    counts = some()
    for source, target in pairs:
        row = counts._cut(np.array([source]), np.array([target], dtype=np.int64).reshape(1, -1))[0]
        found, best = [n for n in row.tolist() if n >= 0], likeliest(source, target, chances_of(counts))
        cuts = [numbered(way, counts) for way in ways(source, target)]
        assert found in cuts
        assert math.prod(counts.chances[found]) == pytest.approx(math.prod(counts.chances[numbered(best, counts)]))


@given(PAIRS, PAIRS)
def test_groups_are_counted_as_kneser_and_ney_do(pairs, others):
    counts = Counts.learn(pairs, SIZES)
    rows = [likeliest(s, t, chances_of(counts)) for s, t in pairs]
    cuts = [numbered(row, counts) for row in rows]
    mine = [
        [n for n in counts._cut(np.array([s]), np.array([t], dtype=np.int64).reshape(1, -1))[0].tolist() if n >= 0]
        for s, t in (*pairs, *others)
    ]
    for row, cut in zip(mine, cuts, strict=False):  # two cuts may be equally likely
        assert math.prod(counts.chances[row]) == pytest.approx(math.prod(counts.chances[cut]))
    reference = KneserNey(mine[: len(pairs)], ORDER, *GIVEN_UP, unmet=1 / len(counts.chances))
    found = counts.judge([*pairs, *others])
    assert found == pytest.approx([reference.log(row) for row in mine], rel=1e-4)
    again = Counts.of(counts.arrays())  # as it is read back
    assert again.judge(others) == pytest.approx(counts.judge(others))


@given(PAIRS, st.randoms())
def test_company_and_order_change_no_judgement(pairs, chance):
    counts = Counts.learn(pairs, SIZES)
    alone = [float(counts.judge([pair])[0]) for pair in pairs]
    order = list(range(len(pairs)))
    chance.shuffle(order)
    assert counts.judge([pairs[i] for i in order]).tolist() == [alone[i] for i in order]


def test_what_was_never_aligned_is_found_out():
    """Two letters for a sound, a silent one and two sounds of one letter: 1 2 → 1, 3 → nothing, 4 → 2 3."""
    chance = random.Random(0)
    parts = [([1, 2], [1]), ([3], []), ([4], [2, 3]), ([5], [4]), ([6], [5])]
    pairs = []
    for _ in range(300):
        drawn = [parts[4], *chance.choices(parts, k=4)]  # something is always heard
        pairs.append(tuple([n for part in drawn for n in part[side]] for side in (0, 1)))
    counts = Counts.learn(pairs, (7, 6))
    right, *wrong = counts.judge(
        [([6, 1, 2, 3, 4], [5, 1, 2, 3]), ([6, 1, 2, 3, 4], [5, 1, 3, 2]), ([6, 1, 2, 3, 4], [5, 1, 1, 2])]
    )
    assert all(right > other + 3 for other in wrong)


def test_what_cannot_be_cut_is_no_pair():
    counts = Counts.learn([([1, 2], [1, 2])], SIZES)
    assert list(ways([1], [1, 2, 3])) == []
    assert counts.judge([([1], [1, 2, 3]), ([], [1]), ([1] * 50, [1] * 50)]).tolist() == [-math.inf] * 3
    assert np.isfinite(counts.judge([([3, 0], [4])])).all()  # never met, but it can be
    assert Counts.learn([], SIZES).judge([([1], [1])]) < 0
    assert Counts.can([([1, 2], [1])] * 9 + [([1], [1, 2, 3])], SIZES)
    assert not Counts.can([([1, 2], [1])] * 8 + [([1], [1, 2, 3])], SIZES)
    assert not Counts.can([([1, 2], [1])], (5_000, 100))
    nothing = np.array([-math.inf, -math.inf, -3.0, -math.inf])
    assert np.exp(log_shares(nothing, np.array([0, 0, 1, 1]))) == pytest.approx([1, 1, 0.975, 0.025])


@given(st.lists(st.floats(-60, 0) | st.just(-math.inf), min_size=1, max_size=10))
def test_counts_overrule_nobody_who_is_fifty_times_as_sure(logs):
    """Where a letter stands for more than a piece can hold, what is right is cut badly, or not at all."""
    opinions = COUNTED * log_shares(np.array(logs), np.zeros(len(logs), int))
    assert opinions.max() - opinions.min() < (1 - COUNTED) * math.log(50)


@pytest.mark.parametrize("both", [True, False])
def test_a_beam_weighs_what_is_counted(both, monkeypatch):
    torch.manual_seed(0)
    settings = {"family": "luong", "width": 8, "feed": False, "both_ways": both}
    model = build(ModelConfig.read(settings), len(LETTERS) + 4, len(SOUNDS.split()) + 4)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    with torch.no_grad():
        model.decoder.output.bias[STOP] += 3  # its texts end
    blind = translator(model)
    pairs = [([4 + n for n in row], [5 + n for n in row]) for row in itertools.permutations(range(4), 3)]
    counts = Counts.learn(pairs, (len(blind.source), len(blind.target)))
    seeing = translator(model, counts=counts)
    asked = [t.translate(TEXTS, Options(beam=4, nbest=4), look=False) for t in (blind, seeing)]
    assert [p.text for p in asked[0]] != [p.text for p in asked[1]]
    assert [t.text for t in (seeing(text, beam=4, look=False) for text in TEXTS)] == [p.text for p in asked[1]]
    for p in asked[1]:
        assert p.score == pytest.approx(seeing.score(p.source, p.text).score, abs=1e-4)  # as it is written
    several = Translator([*seeing.voices, replace(seeing.voices[0], counts=None)], seeing.target)
    for share, like in ((0.0, asked[0]), (COUNTED, asked[1])):  # beside several networks they have a share of their own
        monkeypatch.setattr(agreement_module, "COUNTED_BESIDE_SEVERAL", share)
        assert [p.text for p in several.translate(TEXTS, Options(beam=4), look=False)] == [p.text for p in like]
    if both:
        return
    for one, other in zip(*asked, strict=True):  # the same texts, in another order, by sums by hand
        texts = [one, *one.alternatives]
        ids = [seeing.target.encode(p.text).ids for p in texts]
        source = seeing.source.encode(one.source).ids
        shares = log_shares(counts.judge([(source, written) for written in ids]), np.zeros(len(ids), int))
        ranks = [
            ((1 - COUNTED) * p.score + COUNTED * share) / (len(written) + 1)
            for p, share, written in zip(texts, shares, ids, strict=True)
        ]
        best = max(range(len(texts)), key=ranks.__getitem__)
        assert other.text == texts[best].text
    for options in (Options(beam=1), Options(sample=True, seed=3), Options(beam=4, coverage_penalty=0.1)):
        asked = [t.translate(TEXTS, options, look=False) for t in (blind, seeing)]
        assert [p.text for p in asked[0]] == [p.text for p in asked[1]]  # greed and chance ask nobody else


def test_a_run_keeps_what_it_counted(tmp_path):
    words = ["".join(w) for w in itertools.permutations("abcde", 4)]
    (tmp_path / "pairs.tsv").write_text("".join(f"{w}\t{' '.join(w.upper())}\n" for w in words))
    said = []
    asked = {"data": {"train": [str(tmp_path / "pairs.tsv")]}, "model": {"width": 16}, "train": {"steps": 2}}
    run, material = start(tmp_path / "run", asked, say=said.append)
    assert run.config.model.counts
    assert any(line.startswith("counts: ") for line in said)
    train(run, material.examples(run.source, run.target), material.dev)
    file = tmp_path / "run" / "counts.safetensors"
    before = file.read_bytes()
    again = Run.open(tmp_path / "run")
    again.count(material.examples(run.source, run.target))
    assert file.read_bytes() == before
    model = load(tmp_path / "run")
    (counts,) = (voice.counts for voice in model.voices)
    source, target = model.source.encode("abcd").ids, [model.target.encode(t).ids for t in ("A B C D", "A B D C")]
    right, wrong = counts.judge([(source, target[0]), (source, target[1])])
    assert right > wrong
    moved = tmp_path / "moved"
    shutil.copytree(tmp_path / "run", moved)
    (moved / "counts.safetensors").write_bytes(before[: len(before) // 2])
    with pytest.raises(ValueError, match=r"counts.safetensors: cannot be read"):
        load(moved)
    Tokeniser.train(["xyz"], "characters").save(moved / "source.json")
    (moved / "counts.safetensors").write_bytes(before)
    with pytest.raises(
        ValueError, match=r"model.safetensors: does not fit|counts.safetensors: does not fit the symbols"
    ):
        load(moved)
