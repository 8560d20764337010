"""The lab at toy size: every claim runs, points the way the book says, and is written as pages, figures and a notebook."""

import html
import json
import random
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch.overrides import TorchFunctionMode

import saccade
from saccade.cli import laboratory
from saccade.cli.laboratory import lab_command
from saccade.config import ModelConfig
from saccade.lab import cost, order, scaling
from saccade.lab.bench import Bench
from saccade.lab.book import NAMES, _marked, claim_of, page, publish, run_claim, write_index
from saccade.lab.claim import Verdict, above, values
from saccade.lab.notebook import notebook
from saccade.model import build
from saccade.model.walking import WalkingDecoder

TIMED = ("cost", "order")  # rules about seconds, which a busy machine may break; the book is their test


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("name", NAMES)
def test_every_claim_still_points_the_same_way(tmp_path, monkeypatch, name):
    """By its notebook, cell by cell, as a student would; then its pages, from the same figures."""
    monkeypatch.chdir(tmp_path)
    shown: list[str] = []
    for module in ("IPython", "IPython.display"):  # what draws in a notebook, in none
        monkeypatch.setitem(sys.modules, module, SimpleNamespace(HTML=shown.append, version_info=(9, 0)))
    claim = claim_of(name)
    cells: dict = {"__name__": "notebook"}
    for cell in notebook(claim)["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), cells)
    verdict = str(cells["judge"](cells["figures"]))
    assert verdict == "holds" or name in TIMED
    if name == "order":
        assert min(values(cells["figures"], "right")) > 90  # whoever asks, and whenever, it learns
    assert "<svg" in html.unescape(shown[-1])

    record = publish(claim, Bench(tmp_path, quick=True), cells["figures"])
    assert (claim.name, record["verdict"]) == (name, verdict)
    written = json.loads((tmp_path / f"{name}.json").read_text())
    assert {"claim", "verdict", "rule", "figures", "seeds"} <= written.keys()
    for language in ("en", "ko"):
        drawn = page(claim, record, language)
        assert f'<html lang="{language}">' in drawn
        assert drawn.count("<svg") == len(claim.charts)
        assert _marked(getattr(claim.rule, language)) in drawn
        assert ", ".join(claim.notes) in drawn  # whose claim it is


class Counted(TorchFunctionMode):
    """How often torch is asked for something: a measure of waiting that no busy machine changes."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_function__(self, operation, types, args=(), kwargs=None):
        self.count += 1
        return operation(*args, **(kwargs or {}))


def _operations(given, length):
    model = build(ModelConfig.model_validate({"width": 16, **given}), cost.SYMBOLS, cost.SYMBOLS)
    with Counted() as counted:
        cost.step(model, torch.randint(4, cost.SYMBOLS, (4, length)))
    return counted.count


def test_what_waits_for_the_word_before_is_asked_for_more_the_longer_sentences_are():
    """What `cost` and `order` find in seconds, in a measure that a test can rely on."""
    grown = {arm: _operations(given, 64) / _operations(given, 8) for arm, given in cost.ARMS.items()}
    assert grown["Bahdanau"] > 3
    assert grown["Luong"] < 1.5
    assert grown["Transformer"] < 1.5
    asked = {arm: _operations(given, 16) for arm, given in order.ARMS.items()}
    assert asked["Bahdanau"] > 2 * asked["Luong"]
    assert asked["Luong, feeding"] > 2 * asked["Luong"]


def test_two_files_of_one_name_are_two_books(tmp_path, monkeypatch):
    folders = []
    monkeypatch.setattr(
        laboratory, "run_claim", lambda claim, bench, minutes: folders.append(bench.folder) or {"verdict": ""}
    )
    monkeypatch.setattr(laboratory, "write_index", lambda folder: None)
    for name in ("kor", "fre"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.tsv").write_text(f"{name}\tx\n", encoding="utf-8")
        lab_command("heads", False, tmp_path / "lab", None, False, tmp_path / name / "train.tsv")
    assert len(set(folders)) == 2
    assert all(folder.name.startswith("train-") for folder in folders)


def test_an_interrupted_claim_goes_on_where_it_was(tmp_path, monkeypatch):
    claim, learned, real = claim_of("bottleneck"), [], Bench.learn

    def learn(self, pairs, settings, seed, steps):
        if len(learned) == 1:
            raise KeyboardInterrupt
        learned.append(settings)
        return real(self, pairs, settings, seed, 3)

    monkeypatch.setattr(Bench, "learn", learn)
    with pytest.raises(KeyboardInterrupt):
        run_claim(claim, Bench(tmp_path, quick=True))
    assert not (tmp_path / "bottleneck.json").exists()
    monkeypatch.setattr(Bench, "learn", lambda *given: (learned.append(given[2]), real(*given[:-1], 3))[1])
    run_claim(claim, Bench(tmp_path, quick=True))
    assert len(learned) == 2  # with attention and without: each once
    assert (tmp_path / "bottleneck.json").exists()


def test_figures_are_measured_once(tmp_path):
    """An interrupted claim goes on where it was; another version of it starts afresh."""
    bench, calls = Bench(tmp_path), []

    def look(value):
        calls.append(value)
        return [{"arm": "a", "seed": 0, "x": value}]

    assert bench.once("one", look, 1) == bench.once("one", look, 2) == [{"arm": "a", "seed": 0, "x": 1}]
    assert calls == [1]
    assert Bench(tmp_path, mark="changed").once("one", look, 3) == [{"arm": "a", "seed": 0, "x": 3}]
    assert Bench(tmp_path, quick=True).once("one", look, 4) == [{"arm": "a", "seed": 0, "x": 4}]
    assert Bench(tmp_path, again=True).once("one", look, 5) == [{"arm": "a", "seed": 0, "x": 5}]
    assert "again=True" in json.dumps(notebook(claim_of("mask"))["cells"])  # a student's change is measured


def test_side_by_side_gives_what_one_after_the_other_gives(tmp_path):
    jobs = [(f"seed {seed}", scaling.run, seed) for seed in range(3)]
    several, said = Bench(tmp_path / "several", workers=2, say=lambda name: None), []
    assert several.each(jobs) == Bench(tmp_path / "one").each(jobs)
    again = Bench(tmp_path / "several", workers=2, say=said.append)
    assert again.each(jobs) == several.each(jobs)
    assert said == []  # it was known
    with pytest.raises(ZeroDivisionError):
        again.each([("fails", divmod, 1, 0), ("fails too", divmod, 1, 0)])
    assert not list(tmp_path.rglob("*.part"))


def test_a_page_that_is_written_again_tells_when_and_where_it_was_measured(tmp_path):
    run_claim(claim_of("dictionary"), Bench(tmp_path))
    (kept,) = (tmp_path / "figures").iterdir()
    kept.write_text(
        json.dumps(json.loads(kept.read_text()) | {"date": "2020-02-20", "machine": "an abacus", "seconds": 90})
    )
    record = run_claim(claim_of("dictionary"), Bench(tmp_path))
    assert (record["date"], record["machine"], record["minutes"]) == ("2020-02-20", "an abacus", 1.5)
    assert "2020-02-20, an abacus" in (tmp_path / "dictionary.html").read_text(encoding="utf-8")


def test_who_waits_hears_how_much_is_left(tmp_path):
    said = []
    Bench(tmp_path, say=said.append).each([(f"seed {seed}", scaling.run, seed) for seed in range(3)])
    assert said[0] == "3 to measure"
    assert [line.partition(", about")[0] for line in said[1:]] == [f"seed {i}: {i + 1} of 3" for i in range(3)]
    assert "left" in said[2]
    assert "left" not in said[3]


def test_a_verdict_is_what_the_figures_say():
    def told(with_attention, without):
        figures = []
        for arm, ends in (("attention", with_attention), ("no attention", without)):
            for seed, (short, long) in enumerate(ends):
                figures += [{"arm": arm, "seed": seed, "length": x, "right": y} for x, y in ((5, short), (60, long))]
        return claim_of("bottleneck").judge(figures)

    assert told([(100, 99), (100, 95)], [(90, 20), (80, 30)]) is Verdict.HOLDS
    assert told([(100, 99), (100, 25)], [(90, 20), (80, 30)]) is Verdict.NOISE
    assert told([(100, 10), (100, 15)], [(90, 20), (80, 30)]) is Verdict.FAILS
    with pytest.raises(ValueError, match="nothing was measured"):
        above(values([], "right"), [1.0])


def test_the_book_has_an_index_in_both_languages(tmp_path):
    run_claim(claim_of("dictionary"), Bench(tmp_path))
    write_index(tmp_path)
    english, korean = ((tmp_path / name).read_text(encoding="utf-8") for name in ("index.html", "index.ko.html"))
    assert 'href="dictionary.html"' in english
    assert "not run yet" in english
    assert 'href="dictionary.ko.html"' in korean
    assert "성립한다" in korean
    assert "| `dictionary` |" in (tmp_path / "summary.md").read_text(encoding="utf-8")


def test_somebody_s_own_pairs(tmp_path):
    pairs = tmp_path / "pairs.tsv"
    rows = (f"{'x ' * (i % 9)}a b {i}\t{'y ' * (i % 9)}c d {i}\n" for i in range(400))
    pairs.write_text("".join(rows), encoding="utf-8")
    made = Bench(tmp_path / "lab", data=pairs).made("copy", lambda chance: ("", ""), 10)
    assert not made.toy
    parts = [set(Path(p).read_text(encoding="utf-8").splitlines()) for p in (made.train, made.dev, made.test)]
    assert list(map(len, parts)) == [360, 20, 20]
    assert len(set.union(*parts)) == 400
    one, two = (Bench(tmp_path, data=pairs, minutes=m, workers=2) for m in (6, 12))
    assert one.among(6).each_minutes == 2
    assert one._kept("a") != two._kept("a")  # another budget, other figures
    before = Bench(tmp_path, data=pairs)._kept("a")
    pairs.write_text(pairs.read_text(encoding="utf-8").replace("c d", "c e"), encoding="utf-8")
    assert Bench(tmp_path, data=pairs)._kept("a") != before  # and so have other pairs under the same name
    pairs.write_text("a\tb\n" * 50, encoding="utf-8")
    with pytest.raises(ValueError, match="1 sources; to learn and to test takes at least 100"):
        Bench(tmp_path, data=pairs).made("copy", lambda chance: ("", ""), 10)
    with pytest.raises(ValueError, match="--data: mask has a task of its own; pairs can be given to bottleneck"):
        run_claim(claim_of("mask"), Bench(tmp_path, data=pairs))


@pytest.mark.parametrize("own", [False, True])
def test_nobody_tells_attention_where_to_look(tmp_path, monkeypatch, own):
    """Letters that are copied keep step, and the defaults would say so; a claim about attention must find it out."""
    rows = [" ".join(random.Random(i).choices("abcdefghij", k=2 + i % 5)) for i in range(400)]
    (tmp_path / "pairs.tsv").write_text(
        "".join(f"{row} {i}\t{row} {i}\n" for i, row in enumerate(rows)), encoding="utf-8"
    )
    asked, real = [], saccade.train
    monkeypatch.setattr(saccade, "train", lambda *a, **k: asked.append(k["settings"]) or real(*a, **k))
    bench = Bench(tmp_path / "lab", quick=True, data=tmp_path / "pairs.tsv" if own else None)
    pairs = bench.made("same", lambda chance: (chance.choice(rows),) * 2, 200)
    settings = {"model": {"family": "luong", "feed": False, "width": 16}, "train": {"batch_tokens": 200}}
    translator = bench.learn(pairs, settings, 0, 3)
    assert asked[0]["train"]["diagonal"] == 0
    assert not isinstance(translator.models[0].decoder, WalkingDecoder)


def test_a_page_says_whose_pairs_it_is_about(tmp_path):
    claim, pairs = claim_of("bottleneck"), tmp_path / "mine <b>.tsv"
    pairs.write_text("a\tb\n", encoding="utf-8")
    arms = (("attention", 9.0), ("no attention", 1.0))
    figures = [{"arm": arm, "seed": 0, "length": x, "right": y} for arm, y in arms for x in (5, 9)]
    record = publish(claim, Bench(tmp_path, data=pairs, minutes=7.5), figures)
    drawn = page(claim, record, "en")
    assert "the pairs of mine &lt;b&gt;.tsv take the place" in drawn
    assert "Random letters" not in drawn
    assert f"saccade lab bottleneck --data {html.escape(shlex.quote(str(pairs)))} --minutes 7.5" in drawn
    assert "어텐션 없음" in page(claim, record, "ko")


def test_too_little_was_learned_from_somebody_s_pairs(tmp_path):
    pairs, said = tmp_path / "mine.tsv", []
    pairs.write_text("a\tb\n", encoding="utf-8")
    figures = [
        {"arm": arm, "seed": 0, "length": x, "right": 3.0} for arm in ("attention", "no attention") for x in (5, 9)
    ]
    claim = replace(claim_of("bottleneck"), measure=lambda bench: figures)
    run_claim(claim, Bench(tmp_path / "lab", data=pairs, say=said.append))
    assert said == ["No model got beyond 3.0: give them more --minutes before you believe the verdict."]
    assert said[0] in (tmp_path / "lab" / "bottleneck.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ((None, False, None, True, None), "say which claim, or --all"),
        (("mask", False, 3.0, True, None), "leave one of them out"),
        (("mask", True, None, False, None), "leave out the name"),
        ((None, True, 5.0, False, None), "--minutes: for one claim"),
        (("scaling", False, 5.0, False, None), "takes as long as it takes"),
        (("bottleneck", False, None, False, Path("/")), "/: is no file"),
    ],
)
def test_what_does_not_go_together_is_said(tmp_path, given, says):
    name, every, minutes, quick, data = given
    with pytest.raises(ValueError, match=says):
        lab_command(name, every, tmp_path / "lab", minutes, quick, data)
    assert not list(tmp_path.rglob("*.json"))


def test_a_quick_run_does_not_take_the_place_of_the_book(tmp_path, capsys):
    for quick in (False, True):
        lab_command("dictionary", False, tmp_path, None, quick, None)
    assert json.loads((tmp_path / "dictionary.json").read_text())["quick"] is False
    assert "Toy sizes" in (tmp_path / "quick" / "dictionary.html").read_text()
    assert "softmax make the weights sum to one" in (tmp_path / "dictionary.html").read_text()  # the five steps, live


def test_too_little_time_says_what_is_needed(tmp_path):
    with pytest.raises(ValueError, match=r"--minutes 1: bottleneck needs about \d+, and at least"):
        run_claim(claim_of("bottleneck"), Bench(tmp_path), minutes=1)
    assert not list(tmp_path.iterdir())


def test_an_unknown_claim_names_the_nearest():
    with pytest.raises(ValueError, match="did you mean 'bottleneck'"):
        claim_of("botleneck")
