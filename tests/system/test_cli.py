"""The command line as a person meets it."""

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import saccade
from saccade.cli import app
from saccade.cli.training import collect


def run(*words, **options):
    return subprocess.run(
        [sys.executable, "-m", "saccade", *words], capture_output=True, text=True, check=False, **options
    )


def test_help_and_import_do_not_load_torch():
    code = (
        "import sys, saccade\n"
        "assert 'torch' not in sys.modules and 'numpy' not in sys.modules\n"
        "from typer.testing import CliRunner\n"
        "from saccade.cli import app\n"
        "result = CliRunner().invoke(app, ['--help'])\n"
        "assert result.exit_code == 0 and 'demo' in result.output\n"
        "assert 'torch' not in sys.modules and 'numpy' not in sys.modules\n"
        "saccade.attend\n"
        "assert 'torch' in sys.modules\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


def test_help():
    ran = run("--help")
    assert ran.returncode == 0
    assert "demo" in ran.stdout


def test_version():
    assert run("--version").stdout == f"saccade {saccade.__version__}\n"


def test_an_unknown_command_is_a_usage_error():
    ran = run("dmeo")
    assert ran.returncode == 2
    assert "dmeo" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_the_lab_walks_from_the_dictionary_to_attention(tmp_path):
    ran = run("lab", "dictionary", "-o", tmp_path / "lab")
    assert ran.returncode == 0, ran.stderr
    assert "answer 3.2" in ran.stdout
    assert [line[0] for line in ran.stdout.splitlines() if line[:2] in ("1.", "2.", "3.", "4.", "5.")] == list("12345")


def test_every_public_name_is_there():
    for name in saccade.__all__:
        assert callable(getattr(saccade, name))
    assert set(saccade.__all__) <= set(dir(saccade))


@pytest.mark.parametrize("name", saccade.__all__)
def test_every_public_name_has_a_docstring(name):
    assert getattr(saccade, name).__doc__


KNOWN = "(known: additive, concat, cosine, dot, general, location, scaled_dot)"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("train copy -o x --preset huge", "unknown preset 'huge' (known: auto, base, small, tiny)"),
        ("train copy -o x --model foo", "unknown model 'foo' (known: bahdanau, luong, seq2seq, transformer)"),
        ("train copy -o x --score aditive", f"unknown score 'aditive'; did you mean 'additive'? {KNOWN}"),
        ("train copy -o x --set model.widht=1", "unknown key 'model.widht'; did you mean 'model.width'?"),
        ("train copy -o x --set image.widht=1", "unknown key 'image.widht'; did you mean 'image.width'?"),
        ("train copy -o x --set train.clip=0", "settings: train.clip: Input should be greater than 0"),
        ("train -o x --set data.train=5", "data.train: expected a file or a list of files, found 5"),
        (
            "train copy -o x --set shared=true --set shared.x=1",
            "--set shared.x=1: shared is True, which has no settings",
        ),
        ("train copy -o x --set train.epochs=inf", "train.epochs: Input should be a finite number"),
        ("train copy -o x --set train.epochs=1e300", "train.epochs: Input should be less than or equal to 1000000"),
        (f"train copy -o x --set train.seed={10**25}", "train.seed: Input should be less than 9223372036854775808"),
        (f"train copy -o x --set model.layers={10**25}", "model.layers: Input should be less than or equal to 1000"),
        (f"train copy -o x --set source.size={10**25}", "source.size: Input should be less than or equal to"),
        ("train a b c -o x", "expected one file of pairs or two parallel files, found 3"),
        ("evaluate x copy --part foo", "unknown part 'foo' (known: dev, test, train)"),
        ("evaluate x ../pairs.tsv --part dev", "--part dev: ../pairs.tsv has no parts, unlike a built-in task"),
        ("compare x ../pairs.tsv --part dev -o y.html", "--part dev: ../pairs.tsv has no parts"),
        ("train ../pairs.tsv -o x --columns 1,1", "columns 1 and 1: no column can be source and target"),
        ("train copy -o x --device nonsense", "train.device: 'nonsense' is not there"),
        ("train copy -o x --device meta", "train.device: 'meta' is not there"),
        ("evaluate x copy --length-penalty 99", "--length-penalty: 99.0, expected a number up to 10"),
        ("translate x a --beam 1 --length-penalty 2", "change nothing with --beam 1"),
        ("translate x a --show --view foo", "view: 'foo'"),
        ("demo foo", "unknown demo 'foo' (known: dates, scenes)"),
        ("lab foo", "unknown claim 'foo'"),
        ("lab bottleneck --minutes 0.01", "--minutes 0.01: bottleneck needs about"),
    ],
)
def test_what_is_asked_for_wrongly_is_a_usage_error(tmp_path, monkeypatch, words, says):
    (tmp_path / "pairs.tsv").write_text("a\tb\n")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    asked = CliRunner().invoke(app, words.split())
    assert (asked.exit_code, asked.stdout) == (2, "")
    assert asked.stderr.startswith("error: ")
    assert says in asked.stderr
    assert len(asked.stderr.splitlines()) == 1
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("--columns 1,2", "copy: a built-in task has no columns or languages to choose from"),
        ("--set source.size=50", "source.size: is for words, bpe and unigram, but the source is symbols"),
        ("--set image.height=64", "image: is for pictures, but the sources are text"),
        ("--set shared=true --set source.kind=words", "shared: both sides have the same symbols, so"),
        (
            "--model transformer --set model.positions=learned --set model.max_length=3",
            "model.max_length=3, but the data",
        ),
    ],
)
def test_what_does_not_go_with_the_data_is_a_usage_error_and_leaves_no_run(tmp_path, words, says):
    asked = CliRunner().invoke(app, ["train", "copy", "-o", str(tmp_path / "x"), "--minutes", "1", *words.split()])
    assert asked.exit_code == 2
    assert asked.stderr.splitlines()[-1].startswith(f"error: {says}")
    assert list(tmp_path.iterdir()) == []


def test_links_that_lead_round_in_a_circle_are_one_line(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    one.symlink_to(other)
    other.symlink_to(one)
    asked = CliRunner().invoke(app, ["train", str(one), "-o", str(tmp_path / "x")])
    assert asked.exit_code == 1
    assert asked.stderr.startswith(f"error: {one}")
    assert len(asked.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("train = 5", "train: expected a section of settings, found 5"),
        ('data = "x"', "data: expected a section of settings, found 'x'"),
        ("[data]\ntrain = 5", "data.train: expected a file or a list of files, found 5"),
        ("[data]\ntrain = [1]", "data.train: expected a file or a list of files, found [1]"),
    ],
)
def test_a_config_file_of_another_form_is_a_usage_error(tmp_path, text, says):
    (tmp_path / "own.toml").write_text(text)
    words = ["train", "copy", "-o", str(tmp_path / "x"), "--config", str(tmp_path / "own.toml"), "--minutes", "1"]
    asked = CliRunner().invoke(app, words)
    assert (asked.exit_code, asked.stderr) == (2, f"error: {tmp_path / 'own.toml'}: {says}\n")


def test_one_file_of_pairs_is_a_list_of_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.toml").write_text("shared = true\n")
    asked = collect([], [], {}, None, ["data.train=pairs.tsv", "data.dev=copy"])
    assert asked == {"data": {"train": [str(tmp_path / "pairs.tsv")], "dev": ["copy"]}}
    assert collect([], [], {}, Path("own.toml"), ["shared.x=1"])["shared"] == {"x": 1}  # what is wrong is told with all


def test_sampling_does_not_search(tmp_path):
    ran = run("translate", tmp_path, "text", "--sample", "--beam", "3")
    assert ran.returncode == 2
    assert ran.stderr.strip().splitlines()[-1].endswith("--sample draws in place of searching; leave out one of them")


def test_who_reads_may_stop_reading(letters):
    command = f"yes 'a b c' | head -3000 | {sys.executable} -m saccade translate {letters} - | head -1"
    ran = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=200, check=False)
    assert len(ran.stdout.splitlines()) == 1
    assert ran.stderr == ""
