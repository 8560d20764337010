"""From pairs to a model to translations, on the command line."""

import subprocess
import sys

import pytest

from saccade.data import TASKS

SMALL = [
    "--set",
    "train.steps=12",
    "--set",
    "model.width=16",
    "--set",
    "train.evaluations=2",
    "--set",
    "train.batch_tokens=500",
]


def run(*words, **options):
    command = [sys.executable, "-m", "saccade", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run, badly trained: what it writes is nonsense, that it writes is what counts."""
    base = tmp_path_factory.mktemp("runs")
    rows = "".join(f"{s}\t{t}\n" for s, t in TASKS["reverse"].pairs("train", size=200))
    (base / "pairs.tsv").write_text(rows + "one column\n")
    ran = run("train", base / "pairs.tsv", "-o", base / "a", "--model", "bahdanau", *SMALL)
    assert ran.returncode == 0, ran.stderr
    assert "skipped 1 line: expected 2 columns, found 1" in ran.stderr
    assert "source: symbols (blanks separate symbols of 1.0 characters)" in ran.stderr
    assert "step 12/12" in ran.stderr
    assert ran.stdout == ""
    return base


def test_one_output_for_each_input_in_order(folder):
    texts = ["a b c", "", "c b a", "a b c"]
    ran = run("translate", folder / "a", "--input", "-", "--beam", "2", input="\n".join(texts) + "\n")
    assert ran.returncode == 0, ran.stderr
    lines = ran.stdout.split("\n")
    assert len(lines) == 5
    assert lines[1] == lines[4] == ""
    assert lines[0] == lines[3]
    assert run("translate", folder / "a", "a b c", "--beam", "2").stdout.strip() == lines[0]


def test_what_is_unknown_or_harmful_is_said_and_survived(folder):
    ran = run("translate", folder / "a", "a Ж b\x07\u202e c")
    assert ran.returncode == 0, ran.stderr
    assert "text 1: unknown symbols 'Ж'" in ran.stderr
    ran = run("translate", folder / "a", "--input", "-", input="a b " * 2000 + "\n")
    assert "text 1: 7999 characters are more than the model reads" in ran.stderr or "8000 characters" in ran.stderr


def test_runs_write_as_one(folder):
    pairs = folder / "pairs.tsv"
    assert run("train", pairs, "-o", folder / "b", "--model", "luong", *SMALL).returncode == 0
    ran = run("translate", folder / "a", "a b c", "--with", folder / "b")
    assert ran.returncode == 0, ran.stderr
    assert run("train", "copy", "-o", folder / "c", *SMALL, "--set", "source.kind=characters").returncode == 0
    ran = run("translate", folder / "a", "a b c", "--with", folder / "c")
    assert ran.returncode == 1
    assert "has other symbols than" in ran.stderr


def test_a_finished_run_has_nothing_to_resume(folder):
    before = (folder / "a" / "model.safetensors").read_bytes()
    moved = (folder / "pairs.tsv").rename(folder / "elsewhere.tsv")  # what it learnt from may be gone
    ran = run("train", "--resume", folder / "a")
    moved.rename(folder / "pairs.tsv")
    assert ran.returncode == 0, ran.stderr
    assert "is finished; there is nothing to resume" in ran.stderr
    assert (folder / "a" / "model.safetensors").read_bytes() == before


def test_a_model_of_limited_length_cuts_what_is_longer_and_says_so(folder):
    limited = ["--set", "model.score=location", "--set", "model.max_length=30"]
    assert run("train", folder / "pairs.tsv", "-o", folder / "l", *SMALL, *limited).returncode == 0
    ran = run("translate", folder / "l", "--input", "-", input="a b\n" + "a " * 60 + "\nc\n")
    assert ran.returncode == 0, ran.stderr
    assert len(ran.stdout.split("\n")) == 4
    assert "text 2: 120 characters are more than the model reads" in ran.stderr
    ran = run(
        "train",
        folder / "pairs.tsv",
        "-o",
        folder / "x",
        *SMALL,
        "--set",
        "model.score=location",
        "--set",
        "model.max_length=4",
    )
    assert ran.returncode == 1
    assert "model.max_length=4, but the data needs 21: --set model.max_length=21" in ran.stderr
    assert not (folder / "x").exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["train"], "nothing to train on: give a file of pairs, or one of copy, reverse, sort, dates"),
        (["train", "{}/pairs.tsv"], "-o RUN: where should the run go?"),
        (["train", "{}/nothing.tsv", "-o", "{}/x"], "nothing.tsv: no such file"),
        (["train", "{}/pairs.tsv", "-o", "{}/a"], "exists already; choose another folder, go on with --resume"),
        (["train", "copy", "-o", "{}/x", "--model", "bahdanaw"], "unknown model 'bahdanaw'; did you mean 'bahdanau'?"),
        (
            ["train", "copy", "-o", "{}/x", "--set", "model.widht=3"],
            "unknown key 'model.widht'; did you mean 'model.width'",
        ),
        (["train", "copy", "-o", "{}/x", "--set", "width=3"], "expected SECTION.KEY=VALUE, such as model.width=128"),
        (["train", "copy", "-o", "{}/x", "--minutes", "1", "--set", "train.steps=3"], "one of them decides"),
        (["train", "--resume", "{}/nothing"], "is no run of saccade"),
        (["train", "copy", "--resume", "{}/a"], "--resume: data.train cannot change; only learning_rate"),
        (["translate", "{}", "hello"], "is no run of saccade"),
        (["translate", "{}/a"], "nothing to translate: give TEXT, or --input FILE"),
        (["translate", "{}/a", "--input", "{}/nothing"], "No such file"),
    ],
)
def test_a_mistake_gets_one_line(folder, words, says):
    ran = run(*(word.format(folder) for word in words))
    assert ran.returncode == 1
    assert ran.stderr.startswith("error: ")
    assert says in ran.stderr
    assert len(ran.stderr.strip().splitlines()) == 1
    assert "Traceback" not in ran.stderr
    assert ran.stdout == ""
    assert not (folder / "x").exists()
