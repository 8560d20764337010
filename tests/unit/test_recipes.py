"""Recipes: every one is a config that can be read, and the demo is the recipe of the same name."""

import random
import string
import tomllib
from pathlib import Path

import pytest
import torch
from PIL import Image

from saccade.config import ModelConfig, RunConfig
from saccade.config.image import ImageConfig
from saccade.config.manual import manual
from saccade.config.presets import FAMILIES, PRESETS, Amount, automatic
from saccade.errors import UsageError
from saccade.model import build
from saccade.model.walking import WalkingDecoder
from saccade.train import Run, choices, start
from saccade.train.choices import _ways, precision
from saccade.train.start import check, load

RECIPES = sorted((Path(__file__).parents[2] / "recipes").glob("*.toml"))


@pytest.mark.parametrize("path", RECIPES, ids=lambda p: p.stem)
def test_a_recipe_can_be_read(path):
    assert RunConfig.read(tomllib.loads(path.read_text()), str(path))


def test_the_demo_is_its_recipe():
    from saccade.cli.demo import DEMOS

    (recipe,) = (p for p in RECIPES if p.stem == "dates")
    assert tomllib.loads(recipe.read_text()) == {"data": {"train": ["dates"]}, **DEMOS["dates"].settings}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("preset", PRESETS["luong"])
@pytest.mark.parametrize("spelt", [True, False])
def test_every_preset_is_a_config(family, preset, spelt):
    for pairs in (100, 10_000, 1_000_000):
        picked = automatic(Amount(pairs, spelt, minutes=5), {}, family, preset)
        assert RunConfig.read(picked.settings).model.family == family


def test_a_family_is_picked_that_has_what_was_asked_for():
    amount = Amount(10_000, True, minutes=5)
    assert automatic(amount, {}).family == "luong"
    assert automatic(amount, {"norm": "post"}).family == "transformer"
    assert automatic(amount, {"cell": "gru"}).family == "luong"
    sentences = Amount(10_000, False, minutes=5)
    plenty = Amount(100_000, True, minutes=30)
    assert automatic(plenty, {}).settings["train"]["batch_tokens"] == 3000
    assert automatic(amount, {}).settings["train"]["batch_tokens"] == 1000
    assert automatic(sentences, {}).family == "transformer"
    assert automatic(sentences, {"score": "dot"}).family == "bahdanau"
    assert automatic(Amount(10_000, False, minutes=5, pictures=True), {}).family == "luong"
    assert automatic(Amount(10_000, False, minutes=5, pictures=True, lent=True), {}).family == "transformer"
    assert automatic(Amount(10_000, True, minutes=5, pictures=True), {}).family == "luong"


def test_the_more_often_a_pair_is_seen_the_more_dropout():
    shares = [automatic(Amount(8_000, True, n), {}).settings["model"]["dropout"] for n in (1, 5, 30, 300)]
    assert shares == sorted(shares)
    assert shares[0] < 0.1
    assert shares[-1] == 0.4


def test_the_manual_is_itself_a_config():
    lines = [line.removeprefix("# ") for line in manual().splitlines() if line.startswith(("# ", "["))]
    settings = [line for line in lines if line.startswith("[") or (" = " in line and "…" not in line.split(" = ")[1])]
    section, read = "", {}
    for line in settings:
        if line.startswith("["):
            section = line[1 : line.index("]")]
            continue
        key, _, value = line.partition(" = ")
        read.setdefault(section, {})[key] = tomllib.loads(f"x = {value}")["x"]
    read.pop("", None)
    read["model"] = {k: v for k, v in read["model"].items() if k in ("family", "width", "dropout")}
    assert RunConfig.read(read)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"model": {"family": "seq2seq"}, "train": {"diagonal": 1.0}}, "train.diagonal: is about where a model looks"),
        ({"model": {"family": "seq2seq"}, "train": {"doubly_stochastic": 1.0}}, "train.doubly_stochastic: is about"),
        ({"image": {}, "train": {"diagonal": 1.0}}, "train.diagonal: is about lines of writing"),
        ({"image": {}, "model": {"walk": True}}, "model.walk: is about places in a row"),
        ({"model": {"groups": 1}}, "groups: 1, but a group has at least two symbols"),
        ({"image": {}, "model": {"groups": 3}}, "model.groups: is about places in a row"),
        ({"image": {}, "model": {"counts": True}}, "model.counts: is about places in a row"),
        ({"image": {}, "model": {"relatives": True}}, "model.relatives: is about places in a row"),
        ({"model": {"family": "transformer", "relatives": True}}, "relatives: only for seq2seq and bahdanau and luong"),
        ({"model": {"family": "transformer", "groups": 3}}, "groups: only for seq2seq and bahdanau and luong"),
    ],
)
def test_settings_that_would_do_nothing_are_refused(settings, says):
    with pytest.raises(ValueError, match=says):
        RunConfig.read(settings)


@pytest.mark.parametrize("family", [None, *FAMILIES])
@pytest.mark.parametrize("spelt", [True, False])
def test_every_family_has_settings_for_pictures(family, spelt):
    picked = automatic(Amount(5_000, spelt, minutes=10, pictures=True), {}, family)
    config = RunConfig.read({**picked.settings, "image": {}})
    assert build(config.model, config.image, 30)


@pytest.mark.parametrize("asked", [{"width": 128}, {"embedding": 128}, {"width": 96, "embedding": 96}, {"tied": False}])
@pytest.mark.parametrize("pictures", [True, False])
def test_what_is_asked_for_fits_what_is_picked(asked, pictures):
    picked = automatic(Amount(20_000, False, minutes=10, pictures=pictures), asked, "bahdanau")
    settings = {"model": {**picked.settings["model"], **asked}, "train": picked.settings["train"]}
    assert RunConfig.read(settings).model.family == "bahdanau"


def test_what_was_asked_for_is_said_beside_the_choices(tmp_path):
    heard = []
    own = {
        "model": {"width": 24, "dropout": 0.3},
        "train": {"steps": 50, "batch_tokens": 600},
        "target": {"form": "NFD"},
    }
    start(tmp_path / "run", {"data": {"train": ["copy"], "dev": ["copy"]}, **own}, say=heard.append)
    said = {line.split(":")[0]: line for line in heard}
    assert said["model"].endswith(", width=24, dropout=0.3, batch_tokens=600")
    assert said["target"].endswith(", form=NFD")
    assert "form" not in said["source"]


@pytest.mark.parametrize(
    ("task", "model", "epochs", "walks"),
    [
        ("copy", {}, 5, True),
        ("copy", {}, 50, False),
        ("copy", {"walk": True}, 50, True),
        ("reverse", {}, 5, False),
        ("copy", {"feed": True}, 5, False),
        ("copy", {"walk": False}, 5, False),
        ("copy", {"family": "bahdanau"}, 5, False),
    ],
)
def test_attention_walks_where_the_target_keeps_step_and_time_is_short(tmp_path, task, model, epochs, walks):
    heard = []
    asked = {"data": {"train": [task], "dev": [task]}, "model": {"width": 24, **model}, "train": {"epochs": epochs}}
    run, _ = start(tmp_path / "run", asked, say=heard.append)
    assert run.config.model.walk is walks
    assert any(line.startswith("order:") and "walks" in line for line in heard) is walks
    assert run.config.train.diagonal == (1.0 if task == "copy" else 0.0)


@pytest.mark.parametrize(
    ("task", "model", "epochs", "both"),
    [
        ("copy", {}, 50, True),
        ("copy", {}, 5, False),
        ("copy", {"both_ways": False}, 50, False),
        ("copy", {"both_ways": True}, 5, True),
        ("copy", {"family": "transformer"}, 50, False),
        ("copy", {"walk": True}, 50, False),
        ("reverse", {}, 50, False),
    ],
)
def test_words_that_keep_step_are_written_both_ways_where_there_is_time(tmp_path, task, model, epochs, both):
    heard = []
    asked = {"data": {"train": [task], "dev": [task]}, "model": {"width": 24, **model}, "train": {"epochs": epochs}}
    run, _ = start(tmp_path / "run", asked, say=heard.append)
    assert run.config.model.both_ways is both
    assert (run.first_model().mirrored is not None) is both
    assert any(line.startswith("both ways:") for line in heard) is (both and "both_ways" not in model)


SYLLABLES = ["ka", "to", "min", "sel", "dor"]


@pytest.mark.parametrize(
    ("words", "parts", "model", "found"),
    [
        (20_000, SYLLABLES, {}, (True, 0, 32_768)),
        (20_000, SYLLABLES, {"relatives": False}, (False, 0, 32_768)),
        (20_000, SYLLABLES, {"counts": False}, (False, 0, 32_768)),
        (20_000, SYLLABLES, {"group_rows": 500}, (False, 5, 500)),
        (900, SYLLABLES, {"groups": 2, "group_rows": 500}, (False, 2, 500)),
        (900, SYLLABLES, {"relatives": True}, (True, 0, 32_768)),
        (20_000, SYLLABLES, {"groups": 0}, (True, 0, 32_768)),
        (20_000, SYLLABLES, {"groups": 0, "relatives": False}, (False, 0, 32_768)),
        (20_000, string.ascii_letters, {}, (False, 0, 32_768)),
        (8_000, SYLLABLES, {}, (False, 0, 32_768)),
    ],
)
def test_many_words_that_have_much_in_common_are_told_of_relatives_or_have_vectors_for_groups(
    tmp_path, words, parts, model, found
):
    rows = ["".join(random.Random(i).choices(parts, k=2 + i % 5)) for i in range(words)]
    train, dev = tmp_path / "train.tsv", tmp_path / "dev.tsv"
    for path, some in ((train, rows), (dev, rows[:20])):
        path.write_text("".join(f"{row}\t{' '.join(row)}\n" for row in some), encoding="utf-8")
    heard = []
    data = {"train": [str(train)], "dev": [str(dev)]}
    asked = {"data": data, "model": {"width": 24, **model}, "train": {"epochs": 5}}
    run, _ = start(tmp_path / "run", asked, say=heard.append)
    assert run.config.train.diagonal == 1.0
    chosen = run.config.model
    assert (chosen.relatives, chosen.groups, chosen.group_rows) == found
    assert any(line.startswith("relatives:") for line in heard) is (chosen.relatives and "relatives" not in model)
    assert any(line.startswith("groups:") for line in heard) is (chosen.groups > 0 and "groups" not in model)


def test_groups_have_vectors_where_nothing_can_be_counted(tmp_path):
    rows = ["".join(random.Random(i).choices(SYLLABLES, k=2 + i % 3)) for i in range(25_000)]
    (tmp_path / "a.tsv").write_text("".join(f"{row}\t{' '.join(c * 4 for c in row)}\n" for row in rows), "utf-8")
    asked = {"data": {"train": [str(tmp_path / "a.tsv")]}, "target": {"kind": "characters"}, "train": {"epochs": 5}}
    run, _ = start(tmp_path / "run", asked, say=print)
    assert (run.config.model.counts, run.config.model.relatives, run.config.model.groups) == (False, False, 5)


def test_plenty_of_words_have_wider_vectors_and_with_time_a_wider_model():
    def picked(pairs, passes):
        return automatic(Amount(pairs, True, passes), {}).settings["model"]

    assert [picked(n, 10)["embedding"] for n in (8_000, 100_000)] == [64, 128]
    assert [picked(100_000, n)["width"] for n in (10, 60)] == [256, 384]
    assert picked(8_000, 60)["width"] == 256


def test_few_words_are_walked_over_and_written_one_way(tmp_path):
    rows = ["".join(random.Random(i).choices("abcdefgh", k=3 + i % 5)) for i in range(900)]
    (tmp_path / "few.tsv").write_text("".join(f"{row}\t{' '.join(row.upper())}\n" for row in rows), encoding="utf-8")
    asked = {"data": {"train": [str(tmp_path / "few.tsv")]}, "model": {"width": 24}, "train": {"epochs": 100}}
    run, _ = start(tmp_path / "run", asked, say=print)
    assert run.config.train.diagonal == 1.0
    assert not run.config.model.both_ways
    assert run.config.model.walk  # however much time there is


def test_an_output_may_be_as_long_as_targets_are(tmp_path):
    pairs, heard = tmp_path / "pairs.tsv", []
    pairs.write_text("".join(f"{n}\t{' '.join(['seven'] * 15)} {n}\n" for n in range(100, 400)))
    run, material = start(tmp_path / "run", {"data": {"train": [str(pairs)]}}, say=heard.append)
    longest = max(len(p.target) for p in material.sample) + 1  # and STOP
    assert run.translator(run.build()).limit(4) >= longest > 2 * 4 + 20
    assert any("data.growth" in line for line in heard)
    own, _ = start(tmp_path / "own", {"data": {"train": [str(pairs)], "growth": 3.0}}, say=heard.append)
    assert own.translator(own.build()).limit(4) == 3 * 4 + 20


def test_a_run_remembers_what_its_sides_are_called(tmp_path):
    train, dev, heard = tmp_path / "train.csv", tmp_path / "dev.csv", []
    train.write_text("Korean,English\n" + "".join(f"가{n},a {n}\n" for n in range(100)))
    dev.write_text("English,Korean\na 100,가100\n")
    _, material = start(tmp_path / "run", {"data": {"train": [str(train)], "dev": [str(dev)]}}, say=heard.append)
    again = Run.open(tmp_path / "run").config.data
    assert again.names == ("Korean", "English")
    assert load(again.model_dump(), heard.append).dev == material.dev == [("가100", "a 100")]
    assert sum("taken for the names of the columns (" in line for line in heard) == 2  # each time it is said
    assert not any("other way round" in line for line in heard)


def test_a_few_strange_pairs_do_not_lengthen_every_output(tmp_path):
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("".join(f"a{n}\tb{n}\n" for n in range(3000)) + f"x\t{'y' * 900}\n")
    run, _ = start(tmp_path / "run", {"data": {"train": [str(pairs)]}}, say=lambda _: None)
    assert run.config.data.growth == 2


@pytest.mark.parametrize(
    ("section", "setting"),
    [
        ("model", {"group_rows": 10}),
        ("model", {"max_length": 30}),
        ("model", {"residual": True}),
        ("train", {"most_epochs": 3.0}),
    ],
)
def test_a_setting_that_changes_nothing_is_said_to(tmp_path, section, setting):
    heard = []
    asked = {"data": {"train": ["sort"]}, "model": {"family": "luong"}, "train": {"steps": 5}}
    start(tmp_path / "run", {**asked, section: {**asked[section], **setting}}, say=heard.append)
    (name,) = setting
    assert any(line.startswith(f"{section}.{name}: changes nothing here") for line in heard)


def test_a_preset_that_was_asked_for_is_that_preset():
    plenty = Amount(60_000, True, 60)
    assert automatic(plenty, {}, None, "small").settings["model"]["width"] == 256
    assert automatic(plenty, {}).settings["model"]["width"] == 384


def test_one_long_pair_keeps_attention_from_walking(tmp_path):
    words = [f"{a}{b}{c}" for a in "abcdefgh" for b in "ijklmnop" for c in "qrstuvwx"]
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("".join(f"{w}\t{w.upper()}\n" for w in words))
    short, _ = start(tmp_path / "short", {"data": {"train": [str(pairs)]}}, say=lambda _: None)
    with pairs.open("a") as file:
        file.write(f"{'abc' * 300}\t{'ABC' * 300}\n")
    long, _ = start(tmp_path / "long", {"data": {"train": [str(pairs)]}}, say=lambda _: None)
    assert (short.config.model.walk, long.config.model.walk) == (True, False)


def test_attention_does_not_walk_over_long_sources(tmp_path):
    rows = [" ".join(random.Random(i).choices(string.printable[:62], k=5 + i % 90)) for i in range(400)]
    (tmp_path / "long.tsv").write_text("".join(f"{row}\t{row}\n" for row in rows), encoding="utf-8")
    asked = {"data": {"train": [str(tmp_path / "long.tsv")]}, "model": {"width": 24}, "train": {"epochs": 5}}
    run, _ = start(tmp_path / "run", asked, say=print)
    assert run.config.train.diagonal == 1.0
    assert not run.config.model.walk


@pytest.mark.parametrize(
    ("family", "turned", "guided"),
    [("bahdanau", False, 1.0), ("luong", False, 1.0), ("transformer", False, 0.0), ("bahdanau", True, 0.0)],
)
def test_of_sentences_that_keep_step_a_recurrent_decoder_is_told_so(tmp_path, family, turned, guided):
    words = [f"{first}{second}" for first in "bdgklm" for second in ("ana", "era", "ilo", "omu")]
    rows = [random.Random(i).sample(words, 5 + i % 4) for i in range(400)]
    sides = [(" ".join(row), " ".join(w.upper() for w in (row[::-1] if turned else row))) for row in rows]
    (tmp_path / "a.tsv").write_text("".join(f"{one}\t{other}\n" for one, other in sides), encoding="utf-8")
    asked = {"data": {"train": [str(tmp_path / "a.tsv")]}, "model": {"width": 24, "family": family}}
    run, _ = start(tmp_path / "run", {**asked, "train": {"epochs": 5}}, say=print)
    assert run.config.target.kind == "bpe"
    assert run.config.train.diagonal == guided
    assert not (family == "luong" and run.config.model.walk)


@pytest.mark.parametrize(
    ("train", "batches", "passes"),
    [
        ({"epochs": 7.0}, 1, 7),
        ({"steps": 100, "batch_tokens": 40}, 50, 2),  # two pairs of 10 tokens on each side in a batch
        ({"steps": 100, "batch_tokens": 100}, 20, 5),
        ({"steps": 30, "batch_tokens": 100_000}, 1, 30),  # an epoch is a step at least
    ],
)
def test_how_often_a_pair_is_seen_is_counted(tmp_path, train, batches, passes):
    pairs, heard = tmp_path / "pairs.tsv", []
    pairs.write_text("".join(f"{n:09d}\t{n:09d}\n" for n in range(100)))
    asked = {"data": {"train": [str(pairs)], "dev": [str(pairs)]}, "model": {"width": 16}, "train": train}
    start(tmp_path / "run", asked, say=heard.append)
    assert any(f"time for some {passes} epochs" in line for line in heard)


@pytest.mark.parametrize(("seconds", "ways"), [(0.001, (False, True)), (0.5, (True, False))])
def test_a_slow_machine_is_asked_for_less(tmp_path, monkeypatch, seconds, ways):
    """What suits a budget in minutes is chosen by how long a step takes here, and not by how long it takes elsewhere."""
    rows = ["".join(random.Random(i).choices("abcdefgh", k=4 + i % 5)) for i in range(4000)]
    (tmp_path / "a.tsv").write_text("".join(f"{row}\t{' '.join(row.upper())}\n" for row in rows), encoding="utf-8")
    monkeypatch.setattr(choices, "quickest", lambda *_: (1, seconds))
    asked = {"data": {"train": [str(tmp_path / "a.tsv")]}, "model": {"width": 24}, "train": {"minutes": 2}}
    heard = []
    run, _ = start(tmp_path / "run", asked, say=heard.append)
    assert (run.config.model.walk, run.config.model.both_ways) == ways
    assert (run.config.model.dropout == 0.4) == (seconds < 0.01)
    if seconds < 0.01:  # no more epochs are planned, however quick it is
        assert any("time for some 60 epochs" in line for line in heard)


def test_what_is_measured_is_what_may_be_trained(tmp_path, monkeypatch):
    """Of words that are spelt a walk, which takes longer than to look softly, and only what there is room for."""
    tried = []

    def quickest(model, *_):
        tried.append(model.decoder)
        return 1, 0.1

    def no_room(_):
        raise ValueError("no room")

    asked = {"data": {"train": ["sort"]}, "train": {"minutes": 0.2}}
    monkeypatch.setattr(choices, "quickest", quickest)
    start(tmp_path / "run", asked, say=print)
    assert tried
    assert all(isinstance(decoder, WalkingDecoder) for decoder in tried)
    tried.clear()
    monkeypatch.setattr(choices, "check_room", no_room)
    with pytest.raises(ValueError, match="no room"):
        start(tmp_path / "large", asked, say=print)
    assert not tried


def test_a_smaller_model_is_measured_anew(tmp_path, monkeypatch):
    rows = ["".join(random.Random(i).choices("abcdefgh", k=4 + i % 5)) for i in range(4000)]
    (tmp_path / "a.tsv").write_text("".join(f"{row}\t{' '.join(row.upper())}\n" for row in rows), encoding="utf-8")

    def quickest(model, *_):
        return 1, 1.0 if sum(p.numel() for p in model.parameters()) > 500_000 else 0.25

    monkeypatch.setattr(choices, "quickest", quickest)
    heard = []
    start(tmp_path / "run", {"data": {"train": [str(tmp_path / "a.tsv")]}, "train": {"minutes": 2}}, say=heard.append)
    (said,) = (line for line in heard if line.startswith("model:"))
    assert "tiny" in said
    assert "time for some 5 epochs" in said  # 96 steps of the usual one would be 1.8


def test_measuring_leaves_chance_and_threads_as_they_were(tmp_path):
    torch.manual_seed(3)
    chance, threads = torch.get_rng_state(), torch.get_num_threads()
    start(tmp_path / "run", {"data": {"train": ["sort"]}, "train": {"minutes": 0.05}}, say=print)
    assert torch.equal(torch.get_rng_state(), chance)
    assert torch.get_num_threads() == threads


@pytest.mark.parametrize("told", [True, False])
def test_plenty_of_words_with_plenty_of_time_are_walked_over_both_ways(told):
    own = {} if not told else {"walk": False, "both_ways": False}
    model = ModelConfig(family="luong", feed=False)
    assert _ways(model, own, 100_000, 60, True) == (not told, not told)
    assert _ways(model, {}, 100_000, 10, True) == (True, False)
    assert _ways(model, {}, 100_000, 20, True) == (True, False)
    assert _ways(model, {}, 10_000, 60, True) == (False, True)
    assert _ways(model, {}, 10_000, 60, False) == (False, True)
    assert _ways(model, {}, 1_000, 60, True) == (True, False)


@pytest.mark.parametrize(("places", "symbols", "walks"), [(10, 60, True), (30, 60, False), (10, 2_000, False)])
def test_a_walk_is_for_short_words_and_small_alphabets(places, symbols, walks):
    """At every place of a source it chooses among all symbols of the target: 6,780 pinyin had one step in two minutes."""
    assert choices._walkable([([4] * places, [5] * 8)] * 10, symbols) is walks


class TestFrames:
    @pytest.fixture
    def album(self, tmp_path, monkeypatch):
        monkeypatch.setenv("SACCADE_CACHE", str(tmp_path / "cache"))
        folder = tmp_path / "album"
        folder.mkdir()
        for i in range(4):
            Image.new("RGB", (150, 32), (50 * i, 0, 0)).save(folder / f"{i}.png")
        return folder

    def started(self, album, said="a wall of one colour, seen on the {}", family="transformer", **image):
        (album / "captions.tsv").write_text("".join(f"{i}.png\t{said.format(i)}\n" for i in range(4)))
        heard = []
        own = {"image": {"channels": 16, **image}, "model": {"family": family, "width": 16}, "train": {"steps": 1}}
        run, _ = start(album.parent / "run", {"data": {"train": [str(album)], "dev": []}, **own}, say=heard.append)
        return run.config.image, heard

    @pytest.mark.parametrize(
        ("asked", "found"),
        [({"height": 16}, (16, 80)), ({"height": "16"}, (16, 80)), ({"width": 80}, (24, 80)), ({}, (32, 152))],
    )
    def test_one_side_decides_the_other(self, album, asked, found):
        image, _ = self.started(album, **asked)
        assert (image.height, image.width) == found

    @pytest.mark.parametrize(
        ("asked", "family", "near"),
        [
            ({}, "luong", True),
            ({"encoder": "attentive_cnn"}, "luong", True),
            ({}, "transformer", False),
            ({"near": False}, "luong", False),
            ({"encoder": "patches"}, "luong", False),
        ],
    )
    def test_cells_tell_little_of_their_neighbours_to_luongs_decoder(self, album, asked, family, near):
        image, _ = self.started(album, family=family, **asked)
        assert image.near is near
        assert not ImageConfig().near  # as runs were that do not say

    def test_what_is_asked_of_a_frame_waits_for_the_frame(self, album):
        (album / "captions.tsv").write_text("".join(f"{i}.png\tno{i}\n" for i in range(4)))
        own = {"image": {"channels": 16, "shift": 0.05}, "model": {"width": 16}}
        guided = {"data": {"train": [str(album)]}, "train": {"steps": 1, "diagonal": 1.0}, **own}
        run, _ = start(album.parent / "run", guided, say=lambda _: None)
        assert run.config.image.wide
        with pytest.raises(UsageError, match="not wide enough"):
            start(album.parent / "square", {**guided, "image": {"height": 32, "width": 32}}, say=lambda _: None)
        check({"image": {"backbone": "facebook/dinov2-small", "height": 518, "width": 518}}, "auto")  # its cells are 14

    @pytest.mark.parametrize("said", ["a wall on the left", "벽이 왼쪽에 있다 하나", "{}{}4{}"])
    def test_what_a_mirror_makes_untrue_is_not_mirrored(self, album, said):
        with pytest.raises(ValueError, match=r"image.flip: .*(left from right|in a mirror)"):
            self.started(album, said.replace("{}{}4{}", "{0}{0}4{0}"), flip=True)
        assert not (album.parent / "run").exists()

    def test_who_mirrors_what_may_be_mirrored_is_not_bothered(self, album):
        _, heard = self.started(album, flip=True)
        assert not [line for line in heard if "flip" in line]

    def test_pictures_that_cannot_be_read_leave_no_run_behind(self, album):
        for file in album.glob("*.png"):
            file.write_text("no picture")
        with pytest.raises(ValueError, match="no picture can be read"):
            self.started(album, height=32, width=32)
        assert not (album.parent / "run").exists()


@pytest.mark.parametrize(
    ("told", "width", "picked"),
    [({"avx512_bf16": True}, 256, "bfloat16"), ({"avx512_bf16": True}, 32, "float32"), ({}, 256, "float32")],
)
def test_products_are_rounded_only_where_that_is_quicker(monkeypatch, told, width, picked):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: told, raising=False)
    asked = {"model": {"width": width}, "train": {"batch_tokens": "1000"}}  # as a file may have it
    assert precision(RunConfig.read(asked)) == picked
    assert precision(RunConfig.read({**asked, "image": {}})) == "float32"
    eyes = {"encoder": "pretrained", "backbone": "efficientnet_lite0", "stride": 32, "channels": 1280, "weights": "w"}
    assert precision(RunConfig.read({**asked, "image": eyes})) == picked


def test_none_leaves_a_setting_open(tmp_path):
    """As from Python, where one may hand on what one was not told."""
    left_open = {"minutes": None, "epochs": None, "steps": 3}
    run, _ = start(tmp_path / "run", {"data": {"train": ["copy"]}, "train": left_open}, say=lambda _: None)
    assert (run.config.train.steps, run.config.train.minutes) == (3, None)
    train: dict[str, object] = {"minutes": None}
    choices.set_length(train)
    assert train == {"minutes": choices.MINUTES}
    settings = {"model": {"family": None, "width": None, "cell": "gru"}, "train": {"steps": 3, "precision": None}}
    run, _ = start(tmp_path / "other", {"data": {"train": ["copy"]}, **settings}, say=lambda _: None)
    assert (run.config.model.family, run.config.model.width) == ("luong", 128)


def test_a_setting_means_what_it_is_read_as(tmp_path):
    """In a file numbers may stand in quotes, and --set hands on words."""
    told = {"model": {"width": "16", "counts": "no"}, "train": {"minutes": "0.02", "batch_tokens": "300"}}
    words = ["".join(random.Random(i).choices(string.ascii_letters, k=4)) for i in range(200)]
    (tmp_path / "a.tsv").write_text("".join(f"{word}\t{word[0]}\n" for word in words))
    asked = {"data": {"train": [str(tmp_path / "a.tsv")]}, "shared": "no", **told}
    run, _ = start(tmp_path / "run", asked, say=lambda _: None)
    assert (run.config.shared, run.config.model.counts, run.config.model.width) == (False, False, 16)
    assert run.config.source.kind == "characters"
