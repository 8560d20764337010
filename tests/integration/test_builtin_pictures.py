"""The built-in tasks of pictures, by the command line: few of them, and hardly any learning."""

import json

import pytest
from typer.testing import CliRunner

from saccade.cli import app
from saccade.cli.demo import DEMOS
from saccade.data import TASKS

TINY = ["--set", "model.width=16", "--set", "image.channels=16", "--set", "train.batch_tokens=200"]


@pytest.fixture(autouse=True)
def few(monkeypatch, tmp_path):
    monkeypatch.setenv("SACCADE_CACHE", str(tmp_path / "cache"))
    for task in ("scenes", "plates"):
        for part, count in (("train", 40), ("dev", 10), ("test", 12)):
            monkeypatch.setitem(TASKS[task].sizes, part, count)


def saccade(*words):
    ran = CliRunner().invoke(app, [str(word) for word in words])
    assert ran.exit_code == 0, ran.output
    return ran.stdout


@pytest.mark.parametrize(
    ("task", "told"),
    [
        ("scenes", {"true", "true_unseen", "named_unseen", "pointing", "mass", "pointing_chance", "mass_chance"}),
        ("plates", {"exact", "cer"}),
    ],
)
def test_a_built_in_task_of_pictures_is_trained_and_judged(tmp_path, task, told):
    saccade("train", task, "-o", tmp_path / "run", "--set", "train.steps=3", *TINY)
    found = json.loads(saccade("evaluate", tmp_path / "run", task, "--json"))
    assert told <= found.keys()
    assert all(0 <= found[name] <= 100 for name in told - {"cer"})  # more may be written than there is
    assert found["cer"] >= 0
    assert found["counts"]["sources"] == 12


def test_the_demo_of_scenes_shows_its_glances(tmp_path, monkeypatch):
    quick = {"train": {"steps": 3, "batch_tokens": 200}, "model": {"width": 16}, "image": {"channels": 16}}
    monkeypatch.setitem(DEMOS, "scenes", DEMOS["scenes"]._replace(settings=quick))
    out = saccade("demo", "scenes", "-o", tmp_path / "run")
    assert out.count("scenes:test:") == 3
    page = (tmp_path / "run" / "glances.html").read_text(encoding="utf-8")
    assert "sentences about unseen pictures are true" in page
