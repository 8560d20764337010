"""From pairs to a model to translations, on the command line."""

import gzip
import json
import os
import signal
import subprocess
import sys
import time

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
    assert r"text 1: unknown symbols 'Ж' 'b\x07\u202e'" in ran.stderr
    ran = run("translate", folder / "a", "--input", "-", input="a b " * 2000 + "\n")
    assert "text 1: 7999 characters are more than the model reads" in ran.stderr or "8000 characters" in ran.stderr


def test_files_of_texts_as_people_have_them(folder):
    """Zipped, with a mark at the beginning; and as many outputs of each as are asked for."""
    (folder / "marked.txt").write_bytes(b"\xef\xbb\xbfa b c\r\n\nd e\r\n")
    (folder / "zipped").write_bytes(gzip.compress(b"a b c\n\nd e\n"))
    plain = run("translate", folder / "a", "a b c", "", "d e")
    for name in ("marked.txt", "zipped"):
        ran = run("translate", folder / "a", "--input", folder / name)
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, plain.stdout, plain.stderr)
    (folder / "torn").write_bytes(gzip.compress(b"a b c\n" * 99)[:-9])
    assert "torn: broken gzip file" in run("translate", folder / "a", "--input", folder / "torn").stderr
    assert len(run("translate", folder / "a", "a b c", "--nbest", "7").stdout.splitlines()) == 7


def test_a_line_with_a_nul_has_its_output_and_a_file_that_is_no_text_is_refused(folder):
    texts = "\0a b\nc\nd \0\n"
    (folder / "nul").write_text(texts)
    for words, given in ((("--input", folder / "nul"), None), (("-",), texts)):
        ran = run("translate", folder / "a", *words, input=given)
        assert ran.returncode == 0, ran.stderr
        assert len(ran.stdout.split("\n")) == 4
    for data, says in (
        ("\ufeffa b".encode("utf-32-be"), "is UTF-32, expected UTF-8: iconv"),
        (b"PK\x03\x04\x14\0a b\n", "is a binary file, expected text"),
    ):
        (folder / "other").write_bytes(data)
        ran = run("translate", folder / "a", "--input", folder / "other")
        assert (ran.returncode, ran.stdout) == (1, "")
        assert f"other: {says}" in ran.stderr


def test_runs_write_as_one(folder):
    pairs = folder / "pairs.tsv"
    assert run("train", pairs, "-o", folder / "b", "--model", "luong", *SMALL).returncode == 0
    ran = run("translate", folder / "a", "a b c", "--with", folder / "b")
    assert ran.returncode == 0, ran.stderr
    assert run("train", "copy", "-o", folder / "c", *SMALL, "--set", "target.kind=characters").returncode == 0
    ran = run("translate", folder / "a", "a b c", "--with", folder / "c")
    assert ran.returncode == 1
    assert "writes other symbols than" in ran.stderr


def test_a_finished_run_has_nothing_to_resume(folder):
    before = (folder / "a" / "model.safetensors").read_bytes()
    moved = (folder / "pairs.tsv").rename(folder / "elsewhere.tsv")  # what it learnt from may be gone
    ran = run("train", "--resume", folder / "a")
    moved.rename(folder / "pairs.tsv")
    assert ran.returncode == 0, ran.stderr
    assert "is finished; there is nothing to resume" in ran.stderr
    assert (folder / "a" / "model.safetensors").read_bytes() == before


@pytest.mark.parametrize(
    ("change", "says", "code"),
    [("train.steps=50", "pairs.tsv: no such file", 1), ("train.steps=-1", "settings: train.steps: ", 2)],
)
def test_a_change_on_resume_that_fails_leaves_the_run_as_it_was(folder, change, says, code):
    kept = {p: p.read_bytes() for p in (folder / "a").rglob("*") if p.is_file()}
    moved = (folder / "pairs.tsv").rename(folder / "elsewhere.tsv")
    ran = run("train", "--resume", folder / "a", "--set", change)
    moved.rename(folder / "pairs.tsv")
    assert ran.returncode == code
    assert ran.stderr.startswith("error: ")
    assert says in ran.stderr
    assert {p: p.read_bytes() for p in (folder / "a").rglob("*") if p.is_file()} == kept


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
    assert ran.returncode == 2
    assert "model.max_length=4, but the data needs 21: --set model.max_length=21" in ran.stderr
    assert not (folder / "x").exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["train"], "nothing to train on: give pairs, pictures with captions, or one of copy, reverse, sort, dates"),
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
        (["train", "--resume", "{}/nothing"], "nothing: no such run"),
        (["train", "copy", "--resume", "{}/a"], "--resume: data.train cannot change; only learning_rate"),
        (["train", "copy", "-o", "{}/x", "--model", "luong", "--set", "model.norm=post"], "norm: only for transformer"),
        (["train", "copy", "-o", "{}/x", "--preset", "huge"], "unknown preset 'huge'"),
        (["train", "copy", "-o", "{}/x", "--columns", "one"], "--columns one: expected two numbers from 1"),
        (["train", "copy", "-o", "{}/x", "--device", "gpu"], "train.device: 'gpu' is not there"),
        (["train", "{}/pairs.tsv", "-o", "{}/x", "--strict"], "pairs.tsv:201: expected 2 columns, found 1"),
        (["train", "{}/pairs.tsv", "-o", "{}/x", "--langs", "ko"], "--langs ko: expected two names, such as ko-en"),
        (["translate", "{}/a", "x", "--save", "{}/x.pmg"], "unknown ending '.pmg'"),
        (["evaluate", "{}/a", "{}/nothing.tsv"], "no such file"),
        (["info", "{}"], "is no run of saccade"),
        (["translate", "{}", "hello"], "is no run of saccade"),
        (["translate", "{}/a"], "nothing to translate: give TEXT, or --input FILE"),
        (["translate", "{}/a", "--input", "{}/nothing"], "No such file"),
        (["translate", "{}/a", "b", "--force", "b", "--nbest", "2"], "--force: scores a target as it is; leave out"),
        (["translate", "{}/a", "b", "--force", "b", "--prefix", "b"], "--force: scores a target as it is; leave out"),
        (["translate", "{}/a", "b", "--top-k", "2"], "--temperature, --top-k, --top-p and --seed are for sampling"),
        (["translate", "{}/a", "b", "--sample", "--top-p", "2"], "--top-p: 2.0, expected a share"),
        (["translate", "{}/a", "b", "--beam", "2", "--nbest", "3"], "--nbest: 3, expected a number from 1 to beam=2"),
        (
            ["translate", "{}/a", "b", "--beam", "1", "--length-penalty", "2"],
            "--length-penalty and --coverage-penalty ch",
        ),
        (
            ["evaluate", "{}/a", "copy", "--beam", "1", "--length-penalty", "2"],
            "--length-penalty and --coverage-penalty",
        ),
    ],
)
def test_a_mistake_gets_one_line(folder, words, says):
    ran = run(*(word.format(folder) for word in words))
    usage = (
        "-o RUN",
        "nothing to",
        "--",
        "expected SECTION",
        "unknown",
        "one of them decides",
        "norm: only for",
        "train.device",
    )
    assert ran.returncode == (2 if says.startswith(usage) else 1)
    assert ran.stderr.startswith("error: ")
    assert says in ran.stderr
    assert len(ran.stderr.strip().splitlines()) == 1
    assert "Traceback" not in ran.stderr
    assert ran.stdout == ""
    assert not (folder / "x").exists()


@pytest.mark.parametrize(
    ("width", "says"),
    [(200_000, "model: learning takes "), (2**40, "model: too large for this machine's memory (width=1099511627776,")],
)
def test_a_model_that_does_not_fit_into_memory_leaves_nothing_behind(folder, width, says):
    wide = [*SMALL, "--set", f"model.width={width}"]
    ran = run("train", folder / "pairs.tsv", "-o", folder / "x", "--model", "bahdanau", *wide)
    assert ran.returncode == 1
    assert f"\nerror: {says}" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert not (folder / "x").exists()


def test_dev_pairs_the_other_way_round_are_said(folder):
    (folder / "turned.tsv").write_text("".join(f"{n} {n}\tx{n} y{n}\n" for n in range(3)))
    (folder / "straight.tsv").write_text("".join(f"x{n} y{n}\t{n} {n}\n" for n in range(9)))
    ran = run("train", folder / "straight.tsv", "--dev", folder / "turned.tsv", "-o", folder / "turned", *SMALL)
    assert ran.returncode == 0
    assert "turned.tsv: its sides seem to stand the other way round than those of" in ran.stderr


def test_views_of_a_translation(folder):
    ran = run("translate", folder / "a", "a b c", "--json")
    record = json.loads(ran.stdout)
    assert record["version"] == 1
    assert record["source"] == "a b c"
    assert len(record["attention"]["cross"][0][0][0]) == 4
    assert record["source_tokens"][1] == {"text": "b", "span": [2, 3]}
    ran = run("translate", folder / "a", "a b c", "--alignments", "--show", "--save", folder / "glance.svg")
    assert ran.returncode == 0, ran.stderr
    first, *rest = ran.stdout.splitlines()
    text, links = first.split("\t")
    assert [link.split("-")[1] for link in links.split()] == [str(j) for j in range(len(text.split()))] or links
    assert rest[0].split()[:3] == ["a", "b", "c"]
    assert "\x1b" not in ran.stdout
    assert (folder / "glance.svg").read_text().startswith("<?xml")
    assert f"saved: {folder / 'glance.svg'}" in ran.stderr
    ran = run("translate", folder / "a", "a b c", "", " ", "--alignments")
    assert ran.stdout == f"{first}\n\n\n"  # nothing for nothing
    ran = run("translate", folder / "a", "a b", "c d", "--nbest", "3", "-o", folder / "out.tsv")
    assert ran.stdout == ""
    rows = [line.split("\t") for line in (folder / "out.tsv").read_text().splitlines()]
    assert [row[0] for row in rows] == ["1"] * 3 + ["2"] * 3
    ran = run("translate", folder / "a", "a b", "--nbest", "2", "--show", "--save", folder / "both.soft")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.count("entropy") == 2  # each is drawn,
    assert (folder / "both.soft").read_text().count("|||") == 8  # and kept
    ran = run("translate", folder / "a", "a b", "--force", "b a", "--json")
    assert json.loads(ran.stdout)["text"] == "b a"


def test_evaluate_info_and_config(folder):
    test = folder / "test.tsv"
    test.write_text("".join(f"{s}\t{t}\n" for s, t in TASKS["reverse"].pairs("test", size=60)) + "bad\n")
    ran = run("evaluate", folder / "a", test, "--json", "--beam", "1")
    assert ran.returncode == 0, ran.stderr
    assert "skipped 1 line" in ran.stderr
    record = json.loads(ran.stdout)
    assert {"bleu", "chrf", "ter", "exact", "wer", "per"} <= set(record)
    assert record["exact"] + record["wer"] == pytest.approx(100)
    assert record["signatures"]["bleu"].startswith("nrefs:1|")
    assert record["counts"]["sources"] == 60
    assert record["counts"]["skipped"] == 1
    assert sum(b["sources"] for b in record["by_length"]) == 60
    ran = run("evaluate", folder / "a", "reverse", "--beam", "1")  # the test part of a task
    assert "998 sources" in ran.stdout  # two of a thousand came twice
    facts = json.loads(run("info", folder / "a", "--json").stdout)
    assert facts["family"] == "bahdanau"
    assert facts["finished"] is True
    assert facts["steps"] == 12
    assert "bahdanau" in run("info", folder / "a").stdout
    (folder / "c.toml").write_text(run("config").stdout.replace("# width = 256", "width = 24"))
    ran = run(
        "train",
        "copy",
        "-o",
        folder / "configured",
        "--config",
        folder / "c.toml",
        "--model",
        "seq2seq",
        *SMALL[:2],
        *SMALL[4:],
    )
    assert ran.returncode == 0, ran.stderr
    assert json.loads(run("info", folder / "configured", "--json").stdout)["model"]["width"] == 24


def test_a_run_lends_its_weights_and_goes_on_under_a_new_plan(folder):
    more = folder / "more.tsv"
    more.write_text("".join(f"{s}\t{t}\n" for s, t in TASKS["reverse"].pairs("train", seed=9, size=100)))
    ran = run("train", more, "-o", folder / "tuned", "--init", folder / "a", "--set", "train.steps=4")
    assert ran.returncode == 0, ran.stderr
    assert "starting from" in ran.stderr
    assert (folder / "tuned" / "source.json").read_bytes() == (folder / "a" / "source.json").read_bytes()
    ran = run("train", more, "-o", folder / "x", "--init", folder / "a", "--set", "model.width=8")
    assert ran.returncode == 2
    assert "the run lends its model" in ran.stderr
    ran = run("train", "--resume", folder / "tuned", "--set", "train.steps=6")
    assert ran.returncode == 0, ran.stderr
    assert "a new plan from here, with steps=6" in ran.stderr
    assert json.loads(run("info", folder / "tuned", "--json").stdout)["steps"] == 10
    ran = run("train", more, "-o", folder / "tuned", "--force", *SMALL)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("config.toml", "# somebody else's", "source.json: not a tokeniser"),
        ("config.toml", "format = 2", "a run of format 2, newer than this saccade knows (1)), so --force will not remove"),
        ("thesis.txt", "", "precious: is no run of saccade, so --force will not remove it"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_as_a_run_is_not_removed_and_the_reason_told(folder, tmp_path, name, text, says):
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / name).write_text(text)
    ran = run("train", folder / "pairs.tsv", "-o", precious, "--force", *SMALL)
    assert ran.returncode == 1
    assert says in ran.stderr
    assert (precious / name).read_text() == text


def test_a_run_is_replaced_also_from_inside_and_beside_what_a_killed_one_left(folder):
    again = folder / "again"
    words = ["train", folder / "pairs.tsv", "--force", "--model", "luong", *SMALL]
    assert run(*words, "-o", again).returncode == 0
    (folder / "again.old").mkdir()
    (folder / "again.old" / "config.toml").write_text("of a run that somebody may still want")
    (again / "mine.txt").write_text("of the old run")
    ran = run(*words, "-o", ".", cwd=again)
    assert ran.returncode == 0, ran.stderr
    assert f"{again}.old: is left as it is" in ran.stderr
    assert f"next: saccade translate {again} TEXT" in ran.stderr
    assert (again / "model.safetensors").exists()
    assert not (again / "mine.txt").exists()
    assert sorted(p.name for p in folder.glob("again*")) == ["again", "again.old"]
    assert (folder / "again.old" / "config.toml").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_a_run_cleanly(folder, number):
    output = folder / f"signal{int(number)}"
    words = [
        "train",
        folder / "pairs.tsv",
        "-o",
        output,
        "--model",
        "bahdanau",
        *SMALL[2:],
        "--set",
        "train.steps=5000",
    ]
    command = [sys.executable, "-m", "saccade", *map(str, words)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while "plan" not in (line := process.stderr.readline()):
        assert line, "it ended before it was stopped"
    time.sleep(1)
    process.send_signal(number)
    _, said = process.communicate()
    assert process.returncode == 130
    assert f"stopped; go on with: saccade train --resume {output}" in said
    assert "Traceback" not in said
    assert len(list((output / "checkpoints").iterdir())) >= 1
    ran = run("train", "--resume", output, "--set", "train.steps=3")
    assert ran.returncode == 0, ran.stderr


def test_a_run_without_weights_says_so(folder):
    (folder / "young").mkdir(exist_ok=True)
    for name in ("config.toml", "source.json", "target.json"):
        (folder / "young" / name).write_bytes((folder / "a" / name).read_bytes())
    ran = run("translate", folder / "young", "a")
    assert ran.returncode == 1
    assert "has no weights yet" in ran.stderr


def test_data_that_changed_is_noticed_on_resume(folder):
    pairs = folder / "changing.tsv"
    pairs.write_text(
        (folder / "more.tsv").read_text() if (folder / "more.tsv").exists() else "a b\tb a\nc d\td c\n" * 9
    )
    ran = run("train", pairs, "-o", folder / "changed", "--model", "luong", *SMALL)
    assert ran.returncode == 0, ran.stderr
    pairs.write_text(pairs.read_text().upper())
    ran = run("train", "--resume", folder / "changed", "--set", "train.steps=3")
    assert ran.returncode == 1
    assert "holds other pairs than when the run began" in ran.stderr


def test_outputs_go_to_whatever_stands_there(folder, tmp_path):
    """To a pipe by name or by number, and through a link; a folder is refused before anything is translated."""
    told = run("translate", folder / "a", "a b c").stdout
    pipe, link, kept = tmp_path / "pipe", tmp_path / "link.txt", tmp_path / "kept.txt"
    os.mkfifo(pipe)
    reader = subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE, text=True)
    ran = run("translate", folder / "a", "a b c", "-o", pipe)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert reader.communicate(timeout=60)[0] == told
    assert pipe.is_fifo()
    reading, writing = os.pipe()
    ran = run("translate", folder / "a", "a b c", "-o", f"/dev/fd/{writing}", pass_fds=(writing,))
    assert (ran.returncode, ran.stderr) == (0, "")
    os.close(writing)
    with os.fdopen(reading) as read:
        assert read.read() == told
    link.symlink_to(kept)
    kept.write_text("old")
    assert run("translate", folder / "a", "a b c", "-o", link).returncode == 0
    assert link.is_symlink()
    assert kept.read_text() == told
    ran = run("translate", tmp_path / "no run", "a b c", "-o", tmp_path)
    assert (ran.returncode, ran.stderr) == (2, f"error: {tmp_path}: is a folder, expected a file\n")
    ran = run("translate", folder / "a", "--input", tmp_path / "gone", "-o", kept)
    assert ran.stderr == f"error: {tmp_path / 'gone'}: No such file or directory\n"
    assert sorted(tmp_path.iterdir()) == [kept, link, pipe]
    assert kept.read_text() == told


def test_forced_and_odd_texts(folder):
    ran = run("translate", folder / "a", "a b", "--force", "b a")
    score, text = ran.stdout.strip().split("\t")
    assert float(score) < 0
    assert text == "b a"
    assert "the model cannot write 'Ж'" in run("translate", folder / "a", "a b", "--prefix", "Ж").stderr
    assert run("translate", folder / "a", "-", input="a b\n").stdout == run("translate", folder / "a", "a b").stdout
    ran = run("translate", folder / "a", os.fsdecode(b"a \xff b"))
    assert ran.returncode == 0, ran.stderr
