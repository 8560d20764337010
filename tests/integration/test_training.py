"""Training: a run resumes bit for bit, keeps plain files, and learns."""

import itertools
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

import saccade.train.loop as loop_module
import saccade.train.run as run_module
from saccade.config import RunConfig, TrainConfig
from saccade.data import START, STOP, TASKS, Batch, Examples, Pair, Tokeniser, tokenise
from saccade.search import beam_search
from saccade.train import Plan, Run, Stopped
from saccade.train import train as train_examples
from saccade.train.loop import Judged
from saccade.train.plan import Speed
from saccade.train.run import load_tensors, save_tensors

PAIRS = TASKS["reverse"].pairs("train", size=300)
DEV = TASKS["reverse"].pairs("dev", size=40)
SETTINGS = {
    "model": {"family": "luong", "cell": "gru", "width": 16, "feed": False, "dropout": 0.2},
    "train": {"steps": 24, "batch_tokens": 600, "evaluations": 4},
    "source": {"kind": "symbols"},
    "target": {"kind": "symbols"},
}


def start(path: Path, **changes) -> Run:
    config = RunConfig.read({**SETTINGS, **changes})
    source, target = (Tokeniser.train([p[side] for p in PAIRS], "symbols") for side in (0, 1))
    return Run.create(path, config, source, target)


def train(run: Run, pairs=PAIRS, dev=DEV, *say, **options) -> None:
    train_examples(run, Examples.of(tokenise(pairs, run.source, run.target)), dev, *say, **options)


def weights(path: Path) -> dict[str, torch.Tensor]:
    return load_tensors(path / "model.safetensors")[0]


def assert_same_bits(one: Path, other: Path) -> None:
    mine, theirs = weights(one), weights(other)
    assert mine.keys() == theirs.keys()
    assert all(torch.equal(mine[name], theirs[name]) for name in mine)


@pytest.fixture
def straight(tmp_path) -> Path:
    """A run that was never interrupted."""
    train(start(tmp_path / "straight"), PAIRS, DEV)
    return tmp_path / "straight"


class InterruptedHereError(Exception):
    pass


def interrupt(run: Run, moments: list[int], dev=DEV) -> None:
    """Trains it up to each of these steps, every time as a new process would that knows nothing of the last."""
    for moment in moments:

        def stop(progress, moment=moment):
            if progress.step == moment:
                raise InterruptedHereError

        with pytest.raises(InterruptedHereError):
            train(Run.open(run.path), PAIRS, dev, stop)
        torch.manual_seed(time.time_ns() % 2**31)


@pytest.mark.parametrize("moments", [[1], [5], [6], [7], [13, 14, 20], [23]])
def test_a_run_resumes_bit_for_bit(tmp_path, straight, moments):
    """Stopped between checkpoints, at one, before the first, again and again."""
    interrupt(start(tmp_path / "again"), moments)
    train(Run.open(tmp_path / "again"), PAIRS, DEV)
    assert_same_bits(straight, tmp_path / "again")


def test_a_run_with_products_in_bfloat16_resumes_bit_for_bit_and_keeps_float32(tmp_path):
    runs = [
        start(tmp_path / name, train={**SETTINGS["train"], "precision": precision})
        for name, precision in (("straight", "bfloat16"), ("again", "bfloat16"), ("exact", "float32"))
    ]
    interrupt(runs[1], [7, 13])
    for run in runs:
        train(Run.open(run.path), PAIRS, DEV)
    assert_same_bits(tmp_path / "straight", tmp_path / "again")
    rounded, exact = weights(tmp_path / "again"), weights(tmp_path / "exact")
    assert {x.dtype for x in rounded.values()} == {torch.float32}
    assert any(not torch.equal(rounded[name], exact[name]) for name in exact)


def test_a_real_kill(tmp_path, straight):
    """SIGKILL, whenever it comes, and a new process each time."""
    start(tmp_path / "again")
    code = (
        "import sys, torch; sys.path.insert(0, sys.argv[2]); torch.set_num_threads(1)\n"
        "from pathlib import Path; from test_training import PAIRS, DEV, train; from saccade.train import Run\n"
        "train(Run.open(Path(sys.argv[1])), PAIRS, DEV, lambda p: (print(p.step, flush=True)))\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "again"), str(Path(__file__).parent)]
    for moment in ("4", "11"):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        for line in process.stdout:
            if line.strip() == moment:
                process.send_signal(signal.SIGKILL)
                break
        process.stdout.close()
        assert process.wait() == -signal.SIGKILL
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    assert_same_bits(straight, tmp_path / "again")


def test_a_torn_checkpoint_is_passed_over(tmp_path, straight):
    start(tmp_path / "again")

    def stop(progress):
        if progress.step == 20:
            raise InterruptedHereError

    with pytest.raises(InterruptedHereError):
        train(Run.open(tmp_path / "again"), PAIRS, DEV, stop)
    older, newest = Run.open(tmp_path / "again").checkpoints()
    newest.write_bytes(newest.read_bytes()[:-100])
    with pytest.warns(UserWarning, match=f"{newest.name}.*torn, so the run goes on from the checkpoint before it"):
        train(Run.open(tmp_path / "again"), PAIRS, DEV)
    assert_same_bits(straight, tmp_path / "again")


@pytest.mark.parametrize("told", [True, False])
def test_where_every_checkpoint_is_torn_the_run_begins_again_and_keeps_better_weights(tmp_path, straight, told):
    run = start(tmp_path / "again", train={**SETTINGS["train"], "patience": 2})  # also what it waits for begins again
    interrupt(run, [20])
    if not told:  # as older files were
        tensors, _ = load_tensors(run.path / "model.safetensors")
        save_tensors(run.path / "model.safetensors", tensors, {"step": 18})
    best = (run.path / "model.safetensors").read_bytes()
    for path in run.checkpoints():
        path.write_bytes(path.read_bytes()[:-100])
    (run.path / "checkpoints" / "mine.safetensors").write_bytes(b"no checkpoint")
    with pytest.warns(
        UserWarning, match=r"set aside as 0000000\d\d.torn, so the run begins again at its first step"
    ) as said:
        interrupt(run, [7])
    assert len(said) == 2
    assert run.facts()["steps"] == 6
    interrupt(run, [13] if told else [])
    assert (run.path / "model.safetensors").read_bytes() == best
    train(Run.open(run.path))
    assert_same_bits(straight, run.path)
    assert sorted(p.name for p in (run.path / "checkpoints").iterdir()) == [
        "000000012.torn", "000000018.safetensors", "000000018.torn", "000000024.safetensors", "mine.safetensors",
    ]  # fmt: skip


@pytest.mark.parametrize("what", ["a weight of another size", "a fact that is missing"])
def test_a_checkpoint_that_does_not_fit_is_as_good_as_torn(tmp_path, straight, what):
    run = start(tmp_path / "again")
    interrupt(run, [7])
    (path,) = run.checkpoints()
    tensors, facts = load_tensors(path)
    if what == "a weight of another size":
        name = max(name for name in tensors if name.startswith("model."))  # those before it do fit
        tensors[name] = tensors[name][..., :-1]
    else:
        del facts["stale"]
    save_tensors(path, tensors, facts)
    with pytest.warns(UserWarning, match="does not fit config.toml.*so the run begins again at its first step"):
        train(Run.open(run.path))
    assert_same_bits(straight, run.path)


def test_weights_that_do_not_fit_are_not_kept(tmp_path, straight):
    """Whoever changes a size by hand gets a run that begins again, and that can be read in the end."""
    text = (straight / "config.toml").read_text()
    (straight / "config.toml").write_text(text.replace("width = 16", "width = 8"))
    (straight / "plan.json").unlink()
    with pytest.warns(UserWarning, match="does not fit"):
        train(Run.open(straight))
    assert Run.open(straight).model() is not None


def test_a_finished_run_is_left_as_it_is(straight):
    before = {p: p.stat().st_mtime_ns for p in straight.rglob("*")}
    train(Run.open(straight), PAIRS, DEV, lambda _: pytest.fail("there was nothing to do"))
    assert {p: p.stat().st_mtime_ns for p in straight.rglob("*")} == before


def test_a_run_is_a_folder_of_plain_files(straight):
    assert sorted(p.name for p in straight.iterdir()) == [
        "checkpoints", "config.toml", "metrics.jsonl", "model.safetensors", "plan.json", "source.json", "target.json",
    ]  # fmt: skip
    assert json.loads((straight / "plan.json").read_text()) == {
        "steps": 24, "evaluate_every": 6, "dev_sources": 40, "reported": 40, "start": 0, "end": None, "threads": None,
        "turns": [], "version": 1,
    }  # fmt: skip
    lines = [json.loads(line) for line in (straight / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [6, 12, 18, 24]
    assert len(Run.open(straight).checkpoints()) == 2
    moved = straight.rename(straight.with_name("moved"))
    assert Run.open(moved).model() is not None
    weights, settings = (moved / name for name in ("model.safetensors", "config.toml"))
    assert weights.stat().st_mode == settings.stat().st_mode  # who may read one may read the other


def test_bad_folders(tmp_path, straight):
    with pytest.raises(ValueError, match="exists already; choose another folder"):
        start(straight)
    with pytest.raises(ValueError, match="is no run of saccade"):
        Run.open(tmp_path)
    (straight / "model.safetensors").write_bytes(b"torn")
    with pytest.raises(ValueError, match=r"model.safetensors: cannot be read"):
        Run.open(straight).model()
    text = (straight / "config.toml").read_text()
    (straight / "config.toml").write_text(text.replace("width", "widht"))
    with pytest.raises(ValueError, match=r"config.toml: .*widht"):
        Run.open(straight)
    (straight / "plan.json").write_text('{"steps": 3, "evaluate_every": 1, "version": 99}')
    with pytest.raises(ValueError, match="version 99, newer than this saccade knows"):
        Plan.load(straight / "plan.json")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("5", "expected settings by name, found 5"),
        ('{"steps": 3, "evaluate_every": 0}', "evaluate_every: 0, expected a whole number from 1"),
        ('{"steps": -3, "evaluate_every": 1}', "steps: -3, expected a whole number from 1"),
        ('{"steps": 3, "evaluate_every": null}', "evaluate_every: None, expected"),
        ('{"steps": 3, "evaluate_every": 1, "turns": [[1, 2, 0]]}', "turns: expected three whole numbers"),
    ],
)
def test_what_is_no_plan(tmp_path, text, says):
    (tmp_path / "plan.json").write_text(text)
    with pytest.raises(ValueError, match=rf"plan.json: not a plan \({re.escape(says)}"):
        Plan.load(tmp_path / "plan.json")


def test_a_loss_that_is_not_finite_stops_the_run(tmp_path):
    run = start(tmp_path / "wild", train={**SETTINGS["train"], "learning_rate": 1e30})
    with pytest.raises(ValueError, match=r"step \d+: the loss is (nan|inf)"):
        train(run, PAIRS, DEV)


def test_minutes_become_steps_once(tmp_path):
    """The clock is read before the first step and never again; how many steps fit is the machine's business."""
    run = start(tmp_path / "timed", train={"minutes": 0.02, "batch_tokens": 600, "evaluations": 2})
    train(run, PAIRS, DEV)
    plan = Plan.load(run.path / "plan.json")
    assert plan.steps >= plan.last >= 1  # a machine that turns slow meanwhile has it cut
    assert json.loads((run.path / "metrics.jsonl").read_text().splitlines()[-1])["step"] == plan.last


def test_a_short_run_learns_to_copy(tmp_path):
    pairs, unseen = TASKS["copy"].pairs("train", size=4000), TASKS["copy"].pairs("test", size=100)
    config = RunConfig.read({
        "model": {"family": "luong", "cell": "gru", "width": 64, "feed": False, "dropout": 0.1},
        "train": {"steps": 300, "batch_tokens": 2500, "learning_rate": 5e-3, "evaluations": 3, "seed": os.getpid()},
    })  # fmt: skip
    source, target = (Tokeniser.train([p[side] for p in pairs], "symbols") for side in (0, 1))
    run = Run.create(tmp_path / "copy", config, source, target)
    train(run, pairs, unseen)
    model = Run.open(run.path).model()
    batch = Batch.of([(run.source.encode(p.source).ids, []) for p in unseen])
    with torch.inference_mode():
        memory = model.encode(batch.source, batch.mask)
    found = beam_search([model], [memory], batch.mask.sum(1) + 5, start=START, stop=STOP)
    right = sum(run.target.decode(f[0].tokens) == p.target for f, p in zip(found, unseen, strict=True))
    assert right > 80


def test_a_stop_is_written_down_and_changes_no_bit(tmp_path, straight):
    run = start(tmp_path / "stopped")
    steps = []
    with pytest.raises(Stopped):
        train(run, PAIRS, DEV, lambda p: steps.append(p.step), stop=lambda: len(steps) == 9)
    assert [int(c.stem) for c in run.checkpoints()] == [6, 9]
    train(Run.open(run.path))
    assert_same_bits(straight, run.path)


def test_what_was_measured_after_the_last_checkpoint_is_measured_again(tmp_path, straight):
    run = start(tmp_path / "again")

    def stop(progress):
        if progress.step == 20:
            raise InterruptedHereError

    with pytest.raises(InterruptedHereError):
        train(run, PAIRS, DEV, stop)
    run.checkpoints()[-1].unlink()
    train(Run.open(run.path))
    assert [n["step"] for n in run.notes()] == [6, 12, 18, 24]


@pytest.mark.parametrize("end", [b'\n{"step": 12, "dev_l', b"", b"\n\xff\x00\n"])
def test_a_torn_line_does_not_swallow_the_next_measurement(tmp_path, end):
    run = start(tmp_path / "again")
    interrupt(run, [7])
    metrics = run.path / "metrics.jsonl"
    metrics.write_bytes(metrics.read_bytes().rstrip() + end)
    train(Run.open(run.path))
    assert [json.loads(line)["step"] for line in metrics.read_text().splitlines()] == [6, 12, 18, 24]


def test_info_calls_the_score_what_training_called_it(tmp_path):
    run = start(tmp_path / "run", target={"kind": "words"})  # which are judged by BLEU, if there are four of them
    train(run, dev=[Pair("a b c", "c b a")])
    assert "dev_chrf" in run.facts()
    metrics = run.path / "metrics.jsonl"
    metrics.write_text(metrics.read_text().replace('"metric": "chrf", ', ""))
    assert "dev_bleu" in run.facts()  # as older files are read, which do not tell


def test_lines_that_are_no_measurements_are_left_out(straight):
    run = Run.open(straight)
    facts = run.facts()
    with (straight / "metrics.jsonl").open("ab") as file:
        for line in (
            b'{"step": 30, "dev_loss": 0.1, "score": null}',
            b'{"step": "30", "dev_loss": 0, "score": 99}',
            b"\xff",
        ):
            file.write(line + b"\n")
    assert [n["step"] for n in run.notes()] == [6, 12, 18, 24]
    assert run.facts() == facts


def test_another_length_starts_a_new_plan_from_where_it_is(straight):
    run = Run.open(straight)
    longer = run.replan({"steps": 12})
    assert not longer.finished()
    train(longer)
    plan = Plan.load(straight / "plan.json")
    assert (plan.start, plan.steps) == (24, 36)
    assert Run.open(straight).config.train.steps == 12
    assert [n["step"] for n in longer.notes()][:4] == [6, 12, 18, 24]
    assert longer.notes()[-1]["step"] == 36


def test_patience_ends_a_run_that_no_longer_improves(tmp_path):
    run = start(
        tmp_path / "patient",
        train={**SETTINGS["train"], "steps": 60, "evaluations": 20, "patience": 2, "learning_rate": 1e-9},
    )
    train(run)
    assert Plan.load(run.path / "plan.json").last < 60
    assert run.finished()


def test_an_overrun_is_cut_and_becomes_part_of_the_plan(tmp_path):
    run = start(tmp_path / "late", train={"minutes": 0.05, "batch_tokens": 600, "evaluations": 2})
    steps = []

    def slow(progress):
        steps.append(progress.step)
        time.sleep(0.4)

    train(run, PAIRS, DEV, slow)
    plan = Plan.load(run.path / "plan.json")
    assert plan.last == steps[-1] < plan.steps
    assert run.finished()
    assert run.model() is not None


@pytest.mark.parametrize("settings", [{"scheduled_sampling": 0.5}, {"schedule": "inverse_sqrt"}, {"average": 0.0}])
def test_every_way_of_training_runs(tmp_path, settings):
    run = start(tmp_path / "other", train={**SETTINGS["train"], **settings})
    train(run)
    assert run.finished()


def test_figures_for_tensorboard(tmp_path):
    run = start(tmp_path / "board", train={**SETTINGS["train"], "tensorboard": True})
    train(run)
    assert len(list((run.path / "tensorboard").glob("events.*"))) == 1


def test_tied_and_shared_words_are_saved_and_read_back(tmp_path):
    run = start(tmp_path / "tied", model={**SETTINGS["model"], "tied": True}, shared=True)
    train(run)
    model = run.model()
    assert model.encoder.embed.weight is model.decoder.embed.weight is model.decoder.output.weight


def test_a_full_disk_loses_nothing(tmp_path, straight, monkeypatch):
    """What was saved before stays as it was, and nothing half-written is left."""
    from safetensors import SafetensorError

    import saccade.train.run as run_module

    before = {p.name: p.read_bytes() for p in straight.iterdir() if p.is_file()}

    def full(tensors, path, facts):
        Path(path).write_bytes(b"half")
        raise SafetensorError("No space left on device")

    monkeypatch.setattr(run_module, "save_file", full)
    longer = Run.open(straight).replan({"steps": 12})
    with pytest.raises(ValueError, match=r"cannot be written .*No space left on device.*what was written before"):
        train(longer)
    assert (straight / "model.safetensors").read_bytes() == before["model.safetensors"]
    assert not list(straight.rglob("*.part"))


@pytest.mark.parametrize("name", ["checkpoints/000000012.safetensors", "model.safetensors", "metrics.jsonl"])
def test_a_run_goes_on_once_there_is_room_again_and_says_how(tmp_path, straight, name):
    run = start(tmp_path / "full")
    path, aside = run.path / name, tmp_path / "aside"

    def block(progress):
        if progress.step == 7:
            if path.exists():
                path.rename(aside)
            path.mkdir()  # where no file can be written, like on a full disk

    with pytest.raises(ValueError) as error:
        train(run, PAIRS, DEV, block)
    said = str(error.value)
    assert said.startswith(f"{path}: cannot be written (")
    assert said.endswith(f"what was written before is as it was; go on with: saccade train --resume {run.path}")
    assert not list(run.path.rglob("*.part"))
    path.rmdir()
    if aside.exists():
        aside.rename(path)
    train(Run.open(run.path))
    assert_same_bits(straight, run.path)
    assert [n["step"] for n in run.notes()] == [6, 12, 18, 24]


@pytest.mark.parametrize(("limit", "name"), [(100, "source.json"), (1_000, "first.safetensors")])
def test_a_new_run_that_cannot_be_written_leaves_no_folder(tmp_path, limit, name):
    config, symbols = RunConfig.read(SETTINGS), Tokeniser.train(["a b"], "symbols")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))  # bytes of a file: a disk that is nearly full
    try:
        with pytest.raises(ValueError, match=f"{name}: cannot be written .*File too large"):
            Run.create(
                tmp_path / "full", config, symbols, symbols, {"first.safetensors": {"weights": torch.zeros(1_000)}}
            )
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not (tmp_path / "full").exists()


def test_a_cut_changes_no_learning_rate_before_it():
    plan, config = Plan(1000, 100), TrainConfig()
    assert [plan.cut(500).learning_rate(s, config) for s in (1, 450)] == [
        plan.learning_rate(s, config) for s in (1, 450)
    ]
    assert plan.cut(500).evaluates(500)
    assert Plan(1000, 100, start=20).learning_rate(18, config) > 0  # an older checkpoint than where the plan began


def test_a_plan_of_another_pace_comes_to_the_same_end_without_a_jump():
    config = TrainConfig()
    plan = Plan(1000, 100)
    short = plan.repaced(200, 300)
    assert (short.steps, short.last) == (500, 500)
    assert short.learning_rate(200, config) == pytest.approx(plan.learning_rate(200, config))
    assert short.learning_rate(500, config) == pytest.approx(plan.learning_rate(1000, config))
    rates = [short.learning_rate(s, config) for s in range(200, 501)]
    assert rates == sorted(rates, reverse=True)
    assert [s for s in range(201, 501) if short.evaluates(s)] == [238, 276, 314, 352, 390, 428, 466, 500]
    again = short.repaced(390, 10)
    assert again.progress(390) == pytest.approx(short.progress(390))
    assert again.progress(400) == 1
    assert [again.learning_rate(s, config) for s in (50, 200, 300)] == [
        p.learning_rate(s, config) for p, s in ((plan, 50), (plan, 200), (short, 300))
    ]
    assert again.evaluates(100)
    assert again.evaluates(238)


@pytest.mark.parametrize("seconds", [0.2, 0.05])
def test_a_machine_slower_or_quicker_than_measured_has_its_plan_changed_not_cut(tmp_path, monkeypatch, seconds):
    settings = {"minutes": 0.05, "batch_tokens": 600, "evaluations": 6}
    run = start(tmp_path / "slow", train=settings)
    clock = [0.0]
    monkeypatch.setattr(loop_module.time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(loop_module.Learner, "_measure", lambda *_: Speed(step=0.1, loss=0, source=0, before=0))
    slow_update = loop_module.update

    def update(*given):
        clock[0] += seconds  # twice or half of what was measured
        return slow_update(*given)

    monkeypatch.setattr(loop_module, "update", update)
    heard = []
    train(run, say=heard.append)
    plan = Plan.load(run.path / "plan.json")
    assert plan.end is None
    assert plan.turns
    assert heard[-1].step == plan.steps
    assert (plan.steps < heard[0].steps) == (seconds > 0.1)
    assert 2.5 <= clock[0] <= 3.0
    again = start(tmp_path / "again", train=settings)  # who follows the same plan comes to the same bits
    plan.save(again.path / "plan.json")
    train(again)
    assert_same_bits(run.path, again.path)


def test_a_budget_leaves_room_for_looks_and_the_report():
    config = TrainConfig(minutes=10, evaluations=10)
    plan = Plan.make(config, 100, 1000, Speed(step=0.1, loss=1.0, source=0.01, before=20.0))
    spent = 20 + plan.steps * 0.1 + 10 * (1.0 + 0.01 * plan.dev_sources) + 3 * 0.01 * 1000
    assert 0.9 * 600 < spent <= 600
    slow = Plan.make(config, 100, 1000, Speed(step=0.1, loss=1.0, source=0.4, before=20.0))
    assert 20 < slow.reported < 1000  # no more are told of in the end than there is time for
    assert 20 + slow.steps * 0.1 + 10 * (1.0 + 0.4 * slow.dev_sources) + 3 * 0.4 * slow.reported <= 600
    blind = Plan.make(
        TrainConfig(minutes=2, evaluations=10), 100, 1000, Speed(step=0.1, loss=20.0, source=0.1, before=20.0)
    )
    assert blind.steps > 400  # rather one look than ten, and no time to learn
    assert blind.evaluate_every == blind.steps
    capped = Plan.make(TrainConfig(minutes=10, most_epochs=40), 100, 1000, Speed(0.1, 1.0, 0.01, 20.0))
    assert capped.steps == 4000


def test_a_new_plan_has_its_own_patience(tmp_path):
    run = start(tmp_path / "run", train={"steps": 60, "learning_rate": 1e-9, "patience": 2, "evaluations": 20})
    train(run)
    assert Plan.load(run.path / "plan.json").end is not None  # it stopped early
    steps = run.facts()["steps"]
    assert steps < 15  # after a few looks
    train(run.replan({"steps": 60}))
    assert run.facts()["steps"] >= steps + 2 * 3


def test_few_dev_sources_do_not_choose_the_weights(tmp_path, monkeypatch):
    """Their score is mostly chance, so the loss decides."""
    scores = iter([50.0, *[10.0] * 100])
    monkeypatch.setattr(loop_module.Learner, "_score", lambda *_: next(scores))
    monkeypatch.setattr(loop_module, "TELLING", 10**9)
    many = [*DEV, *TASKS["reverse"].pairs("test", size=1100)]  # of which 1,000 are written
    run = start(tmp_path / "run")
    train(run, PAIRS, many)
    _, facts = load_tensors(run.path / "model.safetensors")
    best = min(run.notes(), key=lambda note: note["dev_loss"])
    assert facts["step"] == best["step"]
    assert best["score"] == 10


def test_of_many_dev_pairs_the_loss_is_of_some_from_all_over(tmp_path, monkeypatch):
    monkeypatch.setattr(loop_module, "DEV_PAIRS", 10)
    run = start(tmp_path / "run")
    learner = loop_module.Learner(run, Examples.of(tokenise(PAIRS, run.source, run.target)), DEV)
    some = Examples.of(tokenise(DEV[::4], run.source, run.target))  # DEV has 40
    assert [learner.dev_examples[i] for i in range(len(learner.dev_examples))] == [some[i] for i in range(10)]


def test_scores_of_other_dev_sources_are_not_compared():
    """A resumed run with less time looks at fewer of them: whoever was lucky there would win, or lose, for good."""
    before = Judged(90.0, -0.5, 1000)
    assert Judged(91.0, -0.6, 1000).beats(before, 1000)
    assert not Judged(89.0, -0.4, 1000).beats(before, 1000)
    assert not Judged(95.0, -0.6, 200).beats(before, 1000)  # by the loss: it is of all of them in both
    assert Judged(85.0, -0.4, 200).beats(before, 1000)
    assert not Judged(95.0, -0.6, 20).beats(Judged(90.0, -0.5, 20), 1000)  # too few to choose by
    assert Judged(95.0, -0.6, 20).beats(Judged(90.0, -0.5, 20), 20)  # all that there are
    assert Judged(0.0, -9.0, 20).beats(Judged(), 1000)  # better than nothing


def test_a_new_plan_of_other_dev_sources_keeps_the_same_weights_however_often_it_is_killed(tmp_path, monkeypatch):
    pairs = [Pair(" ".join(w), " ".join(w)) for w in itertools.permutations("abcdef", 3)]
    first = start(tmp_path / "straight", train={"steps": 2, "batch_tokens": 600, "evaluations": 1})
    found = {2: (0.8, 20.0), 3: (0.7, 30.0), 4: (0.75, 25.0), 5: (0.85, 40.0), 6: (0.9, 45.0)}  # loss and score
    monkeypatch.setattr(loop_module.Learner, "evaluate", lambda learner: found[learner.step])
    Plan(2, 2, dev_sources=100, reported=100).save(first.path / "plan.json")
    train(first, PAIRS, pairs)
    again = first.replan({"steps": 4})
    Plan(6, 1, dev_sources=120, reported=120, start=2).save(again.path / "plan.json")
    shutil.copytree(first.path, tmp_path / "killed")
    train(Run.open(again.path), PAIRS, pairs)
    interrupt(Run.open(tmp_path / "killed"), [3, 4, 5, 6], pairs)
    assert_same_bits(again.path, tmp_path / "killed")
    assert load_tensors(again.path / "model.safetensors")[1]["step"] == 6  # the best by its score


def test_what_a_run_is_told_to_be_is_of_the_weights_that_are_kept(tmp_path, monkeypatch):
    scores = iter([50.0, *[10.0] * 100])
    monkeypatch.setattr(loop_module.Learner, "_score", lambda *_: next(scores))
    monkeypatch.setattr(loop_module, "TELLING", 10**9)
    run = start(tmp_path / "run")
    train(run, PAIRS, [*DEV, *TASKS["reverse"].pairs("test", size=1100)])  # so the loss chooses, not the score
    assert run.facts()["dev_exact"] == 10
    assert run.facts()["dev_sources"] == 1_000  # that this score is of


def test_a_checkpoint_that_cannot_be_read_this_time_is_left_where_it_is(tmp_path, monkeypatch):
    run = start(tmp_path / "run")
    interrupt(run, [7])
    before = {p: p.read_bytes() for p in run.checkpoints()}

    def busy(*_):
        raise OSError("Too many open files")

    monkeypatch.setattr(run_module, "safe_open", busy)
    with pytest.raises(ValueError, match=r"cannot be read \(Too many open files\)"):
        train(Run.open(run.path))
    assert {p: p.read_bytes() for p in run.checkpoints()} == before


def test_a_gradient_that_is_not_finite_spoils_no_weights(tmp_path, monkeypatch):
    run = start(tmp_path / "wild")
    monkeypatch.setattr(torch.nn.utils, "clip_grad_norm_", lambda *_: torch.tensor(float("nan")))
    with pytest.raises(ValueError, match="step 1: the loss is inf; go on from the last checkpoint"):
        train(run)


def test_learned_positions_are_never_asked_for_more_than_they_have(tmp_path):
    model = {"family": "transformer", "width": 16, "heads": 2, "layers": 1, "positions": "learned", "max_length": 22}
    run = start(tmp_path / "learned", model=model)
    train(run)
    assert run.finished()


def test_attention_that_does_not_move_is_told_of_from_half_way_on(tmp_path):
    said = []
    still = {**SETTINGS["train"], "learning_rate": 1e-9}  # so that it never learns to look
    train(start(tmp_path / "run", train=still), PAIRS, DEV, said.append)
    judged = [p.ailing for p in said if p.score is not None]
    assert judged[0] is None  # too early to say
    assert judged[-1] is not None
    assert judged[-1].startswith("attention does not move from word to word, in ")
    assert all(p.ailing is None for p in said if p.score is None)
