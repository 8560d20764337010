"""Relatives: who begins and ends alike as plain Python finds it, never the word itself, and where a run keeps them."""

import copy
import itertools
import random
import shutil

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from problems import assert_equal

from saccade.config import ModelConfig
from saccade.data import STOP
from saccade.model import Counts, Lexicon, build
from saccade.model.relatives import DROPPED, LEAST, MOST, NOBODY, ROWS, Relatives
from saccade.train import Run, load, start, train
from saccade.train.loop import Stopped
from saccade.train.run import load_tensors, save_tensors

SIZES = (70, 70)  # so many that two pieces may share a vector
SYMBOLS = st.sampled_from([4, 5, 69])
WORDS = st.lists(
    st.one_of(st.lists(SYMBOLS, min_size=1, max_size=6), st.lists(st.just(4), min_size=11, max_size=14)),
    min_size=1,
    max_size=12,
)


def learned(words):
    """A lexicon in which every symbol stands for itself."""
    pairs = [(word, word) for word in words]
    return Lexicon.learn(pairs, Counts.learn(pairs, SIZES))


def found(lexicon, *words):
    longest = max(map(len, words))
    texts = np.array([[*word, *[7] * (longest - len(word))] for word in words])
    return lexicon.find(texts, np.array([len(word) for word in words]))


def alike(one, other):
    """How many symbols two words begin with."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def nearest(word, words):
    """How many symbols the nearest relative shares, whether that is all of it, and who it may be."""
    others = [other for other in words if other != word]
    most = max((alike(word, other) for other in others), default=0)
    if most < LEAST:
        return 0, False, []
    length = min(len(other) for other in others if alike(word, other) == most)
    return most, length == most, [o for o in others if alike(word, o) == most and len(o) == length]


@given(WORDS, WORDS)
def test_the_nearest_relative_shares_most_and_is_the_shortest_of_those(words, strangers):
    pairs = [(word, word) for word in words]
    counts = Counts.learn(pairs, SIZES)
    cut = {tuple(s): p.tolist() for _, sources, rows in counts.spelt(pairs) for s, p in zip(sources, rows, strict=True)}
    asked = [*words, *strangers]
    pieces, shared = found(Lexicon.learn(pairs, counts), *asked)
    for b, word in enumerate(asked):
        for side, way in enumerate((slice(None), slice(None, None, -1))):
            most, whole, who = nearest(word[way], [w[way] for w in words])
            assert shared[side, b] == min(most, MOST) + whole * (MOST + 1)
            said = pieces[side, b, : len(word)][way].tolist()
            told = [[1 + n % (ROWS - 1) for n in cut[tuple(w[way])][way][:most]] for w in who] or [[]]
            assert [*said[:most]] in told
            assert not any(said[most:])


def test_a_word_is_never_its_own_relative():
    lexicon = learned([[4, 5, 6], [4, 5, 6], [6, 6, 6, 6]])
    assert found(lexicon, [4, 5, 6]).shared.tolist() == [[0], [0]]
    assert found(lexicon, [4, 5, 6, 4]).shared[0].tolist() == [3 + MOST + 1]


def test_of_several_targets_the_first_tells():
    pairs = [([4, 5], [4, 5]), ([6, 4], [6, 4]), ([4, 5], [6, 5])] + [([4], [4]), ([5], [5]), ([6], [6])] * 5
    counts = Counts.learn(pairs, SIZES)
    one, other = (Lexicon.learn(some, counts) for some in (pairs, [pairs[2], *pairs[:2]]))
    assert found(one, [4, 5, 6]).pieces[0].tolist() != found(other, [4, 5, 6]).pieces[0].tolist()


def test_every_symbol_is_part_of_one_piece():
    pairs = [([4, 5, 6], [4, 6]), ([4, 4], [4, 4]), ([5, 6], [6]), ([6], [6]), ([4], [4])] * 3
    counts = Counts.learn(pairs, SIZES)
    for _, sources, pieces in counts.spelt(pairs):
        assert pieces.shape == sources.shape
        assert (counts.chances[pieces] > 0).all()


@given(WORDS, st.data())
def test_whoever_stands_beside_a_word_changes_nothing(words, data):
    lexicon = learned(words)
    relatives = Relatives(3).double().eval()
    relatives.lexicon = lexicon
    word, longer = data.draw(st.sampled_from(words)), [4, 5, 6] * 5
    texts = torch.tensor([[*word, STOP, *[0] * (len(longer) - len(word))], [*longer, STOP]])
    mask = torch.arange(texts.shape[1]) <= torch.tensor([[len(word)], [len(longer)]])
    alone = relatives(texts[:1, : len(word) + 1], mask[:1, : len(word) + 1])
    assert_equal(relatives(texts, mask)[:1, : len(word) + 1], alone)
    assert not alone[:, len(word)].any(), "the end of a word has no relatives"


def test_nobody_is_known_before_anything_was_learned():
    relatives = Relatives(3)
    tokens = torch.tensor([[4, 5, STOP]])
    assert not relatives(tokens, tokens > 0).any()


def test_how_much_is_shared_is_told_beside_what_the_symbols_stood_for():
    relatives = Relatives(3).double().eval()
    relatives.lexicon = learned([[4, 5, 6], [6, 5]])
    tokens = torch.tensor([[4, 5, 6, 6, STOP]])
    pieces, shared = found(relatives.lexicon, [4, 5, 6, 6])
    assert shared.tolist() == [[3 + MOST + 1], [0]]
    told = relatives.pieces[0].weight[pieces[0, 0, :3]] + relatives.shared[0].weight[3 + MOST + 1]
    assert_equal(relatives(tokens, tokens > 0)[0, :3], told)


def test_training_leaves_a_relative_out_as_a_whole():
    torch.manual_seed(0)
    relatives = Relatives(3).train()
    relatives.lexicon = learned([[4, 5, 6]])
    tokens = torch.tensor([[4, 5, 4, STOP]]).expand(20_000, -1)
    said = relatives(tokens, tokens > 0)
    told = (said != 0).any(-1)  # [20,000, N]
    assert torch.equal(told[:, 0], told[:, 1])
    assert abs((~told[:, 0]).double().mean() - DROPPED) < 0.02


def test_what_was_written_down_is_read_back():
    lexicon = learned([[4, 5, 6], [4, 5], [6, 5, 4, 4]])
    arrays = lexicon.arrays()
    again = Lexicon.of(arrays)
    for one, other in zip(found(lexicon, [4, 5, 5]), found(again, [4, 5, 5]), strict=True):
        assert np.array_equal(one, other)
    for name, bad in (
        ("pieces", arrays["pieces"][:-1]),
        ("pieces", arrays["pieces"] - 20_000),
        ("starts", arrays["starts"][::-1]),
        ("0.keys", arrays["0.keys"][::-1]),
        ("1.words", arrays["1.words"] + 1_000),
        ("1.words", arrays["1.words"][:, :1]),
        ("starts", arrays["starts"].astype(float)),
        ("pieces", arrays["pieces"][None]),
    ):
        with pytest.raises(ValueError, match="do not belong together"):
            Lexicon.of({**arrays, name: bad})


def test_relatives_go_with_counts():
    assert ModelConfig.read({"relatives": True}, "model").counts
    with pytest.raises(ValueError, match="relatives: goes with counts=true"):
        ModelConfig.read({"relatives": True, "counts": False}, "model")


def test_a_copy_of_a_model_shares_its_words():
    model = build(ModelConfig(width=16, relatives=True, counts=True), 9, 9)
    model.encoder.relatives.lexicon = learned([[4, 5, 6]])
    assert copy.deepcopy(model).encoder.relatives.lexicon is model.encoder.relatives.lexicon


def begun(folder, steps=2):
    """A run over words of three different letters, each of which stands for itself."""
    words = ["".join(w) for w in itertools.product("abc", repeat=4)]
    random.Random(0).shuffle(words)
    folder.mkdir(exist_ok=True)
    (folder / "pairs.tsv").write_text("".join(f"{w}\t{' '.join(w.upper())}\n" for w in words))
    model = {"width": 16, "counts": True, "relatives": True}
    asked = {"data": {"train": [str(folder / "pairs.tsv")]}, "model": model, "train": {"steps": steps}}
    run, material = start(folder / "run", asked, say=lambda _: None)
    return run, (material.examples(run.source, run.target), material.dev)


def test_a_run_that_was_stopped_comes_to_the_same_end(tmp_path):
    whole, data = begun(tmp_path / "one", 4)
    train(whole, *data)
    run, data = begun(tmp_path / "other", 4)
    with pytest.raises(Stopped):
        train(run, *data, stop=lambda: True)
    (run.path / "relatives.safetensors").unlink()  # as if it was killed before they were written
    train(Run.open(run.path), *data)
    for name in ("model.safetensors", "relatives.safetensors"):
        assert (run.path / name).read_bytes() == (whole.path / name).read_bytes()


def test_a_run_keeps_its_words(tmp_path):
    run, data = begun(tmp_path)
    train(run, *data)
    assert len(run.first_model().encoder.relatives.lexicon.lengths) > 0, "what it is told while it learns"
    told = load(run.path)
    assert len(told.models[0].encoder.relatives.lexicon.lengths) > 0

    lent = {"data": {"train": [str(tmp_path / "pairs.tsv")]}, "train": {"steps": 1}}
    other, _ = start(tmp_path / "other", lent, init=run.path, say=lambda _: None)
    for name in ("counts.safetensors", "relatives.safetensors"):
        assert (other.path / name).read_bytes() == (run.path / name).read_bytes(), "what its weights are used to"
    (other.path / "relatives.safetensors").unlink()
    with pytest.raises(ValueError, match=r"other/relatives\.safetensors: is gone, and was lent"):
        train(other, *data)

    moved = shutil.copytree(run.path, tmp_path / "moved")
    texts = ["abca", "abcab", "cc"]
    scores = [p.score for p in told(texts)]
    assert [p.score for p in load(moved)(texts)] == scores
    told.models[0].encoder.relatives.lexicon = NOBODY
    assert [p.score for p in told(texts)] != scores

    (moved / "relatives.safetensors").write_bytes(b"torn")
    with pytest.raises(ValueError, match=r"relatives\.safetensors: cannot be read"):
        load(moved)
    shutil.copy(run.path / "counts.safetensors", moved / "relatives.safetensors")
    with pytest.raises(ValueError, match=r"moved/relatives\.safetensors: does not fit the symbols"):
        load(moved)
    words = load_tensors(run.path / "relatives.safetensors")[0]
    for damage in ({"pieces": words["pieces"][1:]}, {"sizes": words["sizes"] + 1}):
        save_tensors(moved / "relatives.safetensors", {**words, **damage})
        with pytest.raises(ValueError, match=r"moved/relatives\.safetensors: does not fit the symbols"):
            load(moved)
    (moved / "relatives.safetensors").unlink()
    with pytest.raises(ValueError, match=r"relatives\.safetensors: cannot be read"):
        load(moved)
    assert Run.open(moved).facts()["family"] == "luong"  # what it is can be told without them
