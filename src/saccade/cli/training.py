"""What `saccade train` does once torch may be loaded."""

import signal
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from saccade.cli.evaluation import print_samples, print_score, say_lost
from saccade.cli.words import Meter, say
from saccade.config.train import LENGTHS
from saccade.data import TASKS, UNKNOWN, Frame, Material, Pair, spread
from saccade.errors import UsageError
from saccade.evaluate import NAMES, counted, evaluate
from saccade.metrics import judged_by
from saccade.search import Options
from saccade.train import Plan, Run, Stopped, load, start, train
from saccade.train import Progress as Step
from saccade.train.choices import Asked
from saccade.train.loop import Learner, quick_beam
from saccade.train.start import check_sections, merge, placed
from saccade.train.start import load as load_material

CHANGEABLE = ("learning_rate", *LENGTHS)  # settings that a resumed run may change
TINY = 128  # the width of the smallest preset
TOLD = 0.1  # share of a plan by which it must change to be told of; plan.json tells of every turn
FEW_STEPS = 200  # a plan of fewer is not enough to learn anything


def train_command(
    asked: Asked, output: Path | None, preset: str, init: Path | None, resume: Path | None, force: bool, began: float
) -> None:
    changes: dict[str, Any] = {}
    if resume is not None:
        if output or init or force or preset != "auto":
            raise UsageError("--resume goes on with a run where it is: leave out -o, --init, --preset and --force")
        run, changes = Run.open(resume), _changes(asked)
        run.changed(changes)  # a mistake in them is told before anything long is read
        if not changes and run.finished():
            say(f"{run.path}: is finished; there is nothing to resume")
            return
        material = load_material(run.config.data.model_dump(), say, Meter("pictures"))
    else:
        if not asked.get("data", {}).get("train"):
            raise UsageError(f"nothing to train on: give pairs, pictures with captions, or one of {', '.join(TASKS)}")
        if output is None:
            raise UsageError("-o RUN: where should the run go?")
        meter = Meter("pictures")
        run, material = start(output, asked, preset=preset, init=init, force=force, say=say, watch=meter)
    train_only(run, material, began, changes)
    _report(run, material)


def collect(
    data: list[str],
    dev: list[str],
    options: dict[str, Any],
    config: Path | None,
    settings: list[str],
) -> Asked:
    """What a config file and the command line ask for; the command line wins."""
    asked = {} if config is None else _read_config(config)
    line: Asked = {}
    for key, value in options.items():
        if value is not None:
            section, _, name = key.partition(".")
            line.setdefault(section, {})[name] = value
    if data:
        line.setdefault("data", {})["train"] = data
    if dev:
        line.setdefault("data", {})["dev"] = dev
    for setting in settings:
        _set(line, setting)
    check_sections(line)
    if set(LENGTHS) & set(line.get("train", {})):  # one length replaces another
        for name in LENGTHS:
            asked.get("train", {}).pop(name, None)
    return placed(merge(asked, line))


def _read_config(path: Path) -> Asked:
    """A config file; files that it names stand beside it, if they are there."""
    try:
        asked: Asked = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: {error}") from None
    check_sections(asked, str(path))
    data = asked.get("data", {})
    for part in ("train", "dev"):
        if part in data:
            files = [data[part]] if isinstance(data[part], str) else data[part]
            data[part] = [str(path.parent / f) if (path.parent / f).exists() else f for f in files]
    return asked


def _set(chosen: Asked, setting: str) -> None:
    """model.width=128 puts 128 under width under model."""
    key, equals, value = setting.partition("=")
    section, _, name = key.strip().partition(".")
    if not equals or not (name or section == "shared"):
        raise UsageError(f"--set {setting}: expected SECTION.KEY=VALUE, such as model.width=128")
    try:
        parsed = tomllib.loads(f"x = {value}")["x"]
    except tomllib.TOMLDecodeError:
        parsed = value.strip()  # a word needs no quotes
    if name:
        part = chosen.setdefault(section, {})
        if not isinstance(part, dict):
            raise UsageError(f"--set {setting}: {section} is {part!r}, which has no settings within")
        part[name] = parsed
    else:
        chosen[section] = parsed


def _changes(asked: Asked) -> dict[str, Any]:
    """What a resumed run is to do otherwise: only its length and learning rate can change."""
    others = [f"{s}.{k}" for s, part in asked.items() for k in (part if isinstance(part, dict) else [s])]
    others = [key for key in others if key.removeprefix("train.") not in CHANGEABLE or not key.startswith("train.")]
    if others:
        raise UsageError(f"--resume: {others[0]} cannot change; only {', '.join(CHANGEABLE)} can")
    return dict(asked.get("train", {}))


def train_only(run: Run, material: Material, began: float, changes: dict[str, Any] | None = None) -> None:
    """Trains it, with a table before and a bar on the way; with `changes`, under a new plan from where it is."""
    examples = material.examples(run.source, run.target, run.most_tokens)
    for line in material.untold():
        say(line)
    if changes:  # not before everything was read: what fails leaves the plan as it was
        run = run.replan(changes)
        say(f"{run.path}: a new plan from here, with {', '.join(f'{k}={v}' for k, v in changes.items())}")
    with _stoppable() as asked_to_stop, _progress(run, material.dev) as bar:

        def ready(learner: Learner) -> None:
            _summary(run, material, learner)
            few = learner.plan.steps - learner.plan.start
            if few < FEW_STEPS and run.config.train.minutes is not None:
                smaller = ", or --preset tiny" if run.config.model.width > TINY else ""
                say(
                    f"only {counted(few, 'step')} fit into the time, too few to learn much: try more --minutes{smaller}"
                )
            looked, sources = learner.plan.dev_sources, len({p.source for p in material.dev})
            if looked < sources:
                say(f"scores on the way are of {looked:,} of the {sources:,} dev sources, to keep within the time")
            if learner.step:
                say(f"going on from step {learner.step:,}")

        try:
            train(run, examples, material.dev, bar, stop=asked_to_stop, began=began, ready=ready)
        except Stopped:
            say(f"stopped; go on with: saccade train --resume {run.path}")
            raise


def _summary(run: Run, material: Material, learner: Learner) -> None:
    """One table before it starts."""
    plan, lengths = learner.plan, learner.examples.lengths()
    batches = len(learner._epoch(0))
    table = Table(show_header=False, title=str(run.path), title_justify="left")
    table.add_row("pairs", f"{material.count:,} to learn from, {len(material.dev):,} held back")
    for side, found in zip(("source", "target"), lengths, strict=True):
        if isinstance(run.source, Frame) and side == "source":
            table.add_row(side, run.reads())
            continue
        config = run.config.source if side == "source" else run.config.target
        tokens = run.target if side == "target" or isinstance(run.source, Frame) else run.source
        middle, most = (int(np.median(found)), int(found.max())) if len(found) else (0, 0)
        table.add_row(side, f"{config.kind}, {len(tokens):,} symbols; texts of {middle} in the middle, {most} at most")
    parameters = sum(p.numel() for p in learner.model.parameters())
    table.add_row("model", f"{run.config.model.family}, {parameters:,} parameters")
    sides = (1,) if isinstance(run.source, Frame) else (0, 1)  # of a picture there is only its place
    unknown = sum(any(UNKNOWN in example[side] for side in sides) for example in learner.dev_examples)
    if unknown:
        say(f"{unknown:,} of {len(learner.dev_examples):,} dev pairs have symbols that the model does not know")
    steps = plan.steps - plan.start
    table.add_row("plan", f"{steps:,} steps, {steps / max(1, batches):.1f} epochs of {batches:,} batches")
    if run.config.train.minutes is not None:
        table.add_row("time", f"{run.config.train.minutes:g} min in all")
    else:
        seconds = learner.seconds_per_step() * (plan.last - learner.step)
        table.add_row("time", f"about {seconds / 60:.1f} min of training, if the machine stays as quick")
    Console(stderr=True).print(table)


@contextmanager
def _progress(run: Run, held: list[Pair]) -> Iterator[Callable[[Step], None]]:
    """A bar in a terminal; elsewhere a line for each look at the dev set."""
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total}"))
    quiet = not sys.stderr.isatty()
    name = NAMES[judged_by(run.config.target.spelt, (p.target for p in held))]
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), disable=quiet) as bar:
        task = bar.add_task("training", total=None)
        how = "greedy" if quick_beam(run.config.model) == 1 else "beam 2"
        clock, tokens, dev, ailing = time.perf_counter(), 0, "", ""

        def show(step: Step) -> None:
            nonlocal clock, tokens, dev, ailing
            clock = clock if tokens else time.perf_counter()
            tokens += step.tokens
            elapsed = time.perf_counter() - clock
            speed = f", {tokens / elapsed:,.0f} tokens/s" if elapsed > 0.5 else ""
            if step.cut:
                say(f"the time ran out: cut at step {step.step} of {step.planned}")
            elif step.score is not None and abs(step.steps - step.planned) > TOLD * step.planned:
                pace = "longer" if step.steps < step.planned else "less"
                say(f"steps take {pace} than measured: the plan goes from {step.planned} to {step.steps} of them")
            if step.score is not None:
                dev = f", dev {name} {step.score:.1f} ({how})"
                if quiet:
                    losses = f"loss {step.loss:.3f}, dev loss {step.dev_loss:.3f}"
                    say(f"step {step.step}/{step.steps}: {losses}{dev}{speed}")
            if step.ailing is not None and step.ailing.split(",")[0] != ailing:  # said once
                ailing = step.ailing.split(",")[0]
                say(f"{step.ailing}: it may still learn to look; if not, try another --score, --model or seed")
            words = f"loss {step.loss:.3f}{dev}{speed}"
            bar.update(task, completed=step.step, total=step.steps, description=words)

        yield show


@contextmanager
def _stoppable() -> Iterator[Callable[[], bool]]:
    """Ctrl-C and SIGTERM ask for a stop after the current step; a second one does not wait."""
    asked = False

    def ask(number: int, frame: object) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True
        say("stopping after this step …")

    before = {s: signal.signal(s, ask) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _report(run: Run, material: Material) -> None:
    """The score, ten samples with their alignment, and where everything is."""
    translator, plan = load(run.path), Plan.load(run.path / "plan.json")
    every = list(dict.fromkeys(p.source for p in material.dev))
    sources = spread(every, plan.reported)
    kept = set(sources)
    report = evaluate(translator, [p for p in material.dev if p.source in kept], Options())
    console = Console(stderr=True)
    print_samples(translator, sources[:10], console)
    print_score(report, console)
    say_lost(report)
    if len(sources) < len(every):
        say(f"the score is of {len(sources):,} of the {len(every):,} dev sources; saccade evaluate takes all of a file")
    say(f"{run.path}: {plan.last:,} steps done")
    use = f"caption {run.path} IMAGE" if isinstance(run.source, Frame) else f"translate {run.path} TEXT"
    say(f"next: saccade {use} --show, or saccade evaluate {run.path} TEST")
