"""How a run begins: what it is lent, what is left out, and on what it is judged on the way."""

import itertools
import sys
from functools import partial

import pytest

import saccade
from saccade.data import gather
from saccade.search import Translator
from saccade.train import start, train
from saccade.train.loop import Learner


def test_a_lender_is_taught_nothing_that_it_cannot_write(tmp_path):
    words = ["".join(w) for w in itertools.permutations("abcd", 3)]
    for name, strange in (("first", 0), ("few", 1), ("many", 24)):
        rows = (f"{w}\t{w.upper()}{'é' * (n < strange)}\n" for n, w in enumerate(words))
        (tmp_path / f"{name}.tsv").write_text("".join(rows))
    small = {"model": {"width": 16}, "train": {"steps": 2}}
    run, material = start(
        tmp_path / "a", {"data": {"train": [str(tmp_path / "first.tsv")]}, **small}, say=lambda _: None
    )
    train(run, material.examples(run.source, run.target), material.dev)
    said: list[str] = []
    for name in ("few", "many"):
        asked = {"data": {"train": [str(tmp_path / f"{name}.tsv")]}, "train": {"steps": 2}}
        if name == "few":
            start(tmp_path / name, asked, init=run.path, say=said.append)
            assert any("1 of 2" in line and "symbols that it cannot write, such as 'é'" in line for line in said)
        else:
            with pytest.raises(ValueError, match="targets have symbols that it cannot write, such as 'é'; train a new"):
                start(tmp_path / name, asked, init=run.path, say=said.append)
            assert not (tmp_path / name).exists()


def test_what_is_not_there_is_told_before_anything_is_read(tmp_path, monkeypatch):
    asked = {"data": {"train": [str(tmp_path / "gone.tsv")]}}
    with pytest.raises(ValueError, match="nosuch: no such run"):
        start(tmp_path / "a", asked, init=tmp_path / "nosuch", say=lambda _: None)
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(ValueError, match=r"train\.tensorboard: needs the package tensorboard"):
        start(tmp_path / "a", {**asked, "train": {"tensorboard": True}}, say=lambda _: None)
    with pytest.raises(ValueError, match=r"gone\.tsv: no such file"):
        start(tmp_path / "a", asked, say=lambda _: None)
    assert not (tmp_path / "a").exists()


def test_scores_on_the_way_are_of_sources_from_all_over_the_dev_set(tmp_path, monkeypatch):
    words = ["".join(w) for w in itertools.permutations("abcdef", 3)]
    (tmp_path / "train.tsv").write_text("".join(f"{w}\t{w.upper()}\n" for w in words))
    asked = {"data": {"train": [str(tmp_path / "train.tsv")]}, "model": {"width": 16}, "train": {"steps": 2}}
    run, material = start(tmp_path / "a", asked, say=lambda _: None)
    learner = Learner(run, material.examples(run.source, run.target), material.sample[:100])
    seen = []
    translate = Translator.translate
    monkeypatch.setattr(
        Translator,
        "translate",
        lambda self, texts, *a, **k: seen.append(list(texts)) or translate(self, texts, *a, **k),
    )
    every = [p.source for p in material.sample[:100]]
    learner._score(10)
    learner._score(1000)
    assert seen == [every[::10], every]


def test_a_pair_that_no_model_will_read_is_left_out_and_named(tmp_path):
    words = ["".join(w) for w in itertools.permutations("abcdef", 3)]
    (tmp_path / "train.tsv").write_text("".join(f"{w}\t{w.upper()}\n" for w in words) + f"{'abc' * 400}\tABC\n")
    asked = {"data": {"train": [str(tmp_path / "train.tsv")]}, "model": {"width": 16}, "train": {"steps": 2}}
    said: list[str] = []
    run, material = start(tmp_path / "a", asked, say=said.append)
    assert said.count(f"{tmp_path / 'train.tsv'}: read as TSV, 2 columns") == 1
    (named,) = (line for line in said if "more than 1,024 symbols" in line)
    assert named.startswith("skipped 1 pair: ")
    assert "train.tsv abcabc" in named
    examples = material.examples(run.source, run.target, run.most_tokens)
    assert len(examples) == material.count == len(material.sample)
    assert max(map(max, examples.lengths())) < 10
    assert material.untold() == []  # said once
    asked["data"]["strict"] = True
    with pytest.raises(ValueError, match=r"more than 1,024 symbols: abcabc.*leave out --strict"):
        start(tmp_path / "b", asked, say=said.append)
    (tmp_path / "long.tsv").write_text(f"{'abc' * 400}\tABC\n{'abd' * 400}\tABD\n")
    spelt = {side: {"kind": "characters"} for side in ("source", "target")}
    with pytest.raises(ValueError, match="every pair has more than 1,024 symbols on a side"):
        start(tmp_path / "c", {**asked, **spelt, "data": {"train": [str(tmp_path / "long.tsv")]}}, say=said.append)
    assert not (tmp_path / "b").exists()
    assert not (tmp_path / "c").exists()


def test_what_a_cache_leaves_out_is_said_in_python_too(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SACCADE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("saccade.data.corpus.SAMPLE", 50)
    monkeypatch.setitem(start.__globals__, "gather", partial(gather, large=0))
    words = ["".join(w) for w in itertools.permutations("abcdef", 3)]
    (tmp_path / "train.tsv").write_text("".join(f"{w}\t{w.upper()}\n" for w in words) + f"{'abc' * 400}\tABC\n")
    saccade.train(tmp_path / "train.tsv", tmp_path / "a", settings={"model": {"width": 16}, "train": {"steps": 1}})
    assert "skipped 1 pair: more than 1,024 symbols" in capsys.readouterr().err


def test_a_long_pair_is_left_out_also_where_positions_have_an_end(tmp_path):
    words = ["".join(w) for w in itertools.permutations("abcdef", 3)]
    (tmp_path / "train.tsv").write_text("".join(f"{w}\t{w.upper()}\n" for w in words) + f"{'abc' * 900}\tABC\n")
    model = {"family": "transformer", "positions": "learned", "width": 16, "heads": 2}
    said: list[str] = []
    asked = {"data": {"train": [str(tmp_path / "train.tsv")]}, "model": model, "train": {"steps": 2}}
    start(tmp_path / "a", asked, say=said.append)
    assert any("skipped 1 pair: more than 1,024 symbols" in line for line in said)


def test_a_list_both_ways_needs_no_dev_file(tmp_path):
    pairs = [(f"hot{n}", f"cold{n}") for n in range(60)]
    rows = [f"{a}\t{b}\n{b}\t{a}\n" for a, b in pairs]
    (tmp_path / "train.tsv").write_text("".join(rows))
    said: list[str] = []
    asked = {"data": {"train": [str(tmp_path / "train.tsv")]}, "model": {"width": 16}, "train": {"steps": 2}}
    start(tmp_path / "a", asked, say=said.append)
    assert not any("other way round" in line for line in said)


@pytest.mark.parametrize("name", ["counts", "relatives"])
def test_counts_of_too_many_symbols_are_refused_before_anything_is_written(tmp_path, name):
    rows = [f"{chr(0x4E00 + n)}{chr(0x5E00 + n)}\t{chr(0x6E00 + n)}{chr(0x7E00 + n)}\n" for n in range(200)]
    (tmp_path / "train.tsv").write_text("".join(rows))
    asked = {"data": {"train": [str(tmp_path / "train.tsv")]}, "model": {"width": 16, name: True}}
    with pytest.raises(ValueError, match=rf"model\.{name}: so many symbols make too many pieces"):
        start(tmp_path / "a", asked, say=lambda _: None)
    assert not (tmp_path / "a").exists()


def test_relatives_of_whom_little_can_be_known_are_said_to_be(tmp_path):
    (tmp_path / "train.tsv").write_text("".join(f"{n}\t{' '.join('abcdef' * len(str(n)))}\n" for n in range(300)))
    said: list[str] = []
    asked = {"data": {"train": [str(tmp_path / "train.tsv")]}, "model": {"width": 16, "relatives": True}}
    start(tmp_path / "a", asked, say=said.append)
    assert any(line.startswith("model.relatives: many pairs are too long") for line in said)
