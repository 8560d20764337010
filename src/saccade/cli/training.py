"""What `saccade train` and `saccade translate` do once torch may be loaded."""

import sys
import tomllib
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from saccade.config import RunConfig
from saccade.data import TASKS, Pair, Tokeniser, choose_tokeniser, read_pairs, split
from saccade.search import MOST_TOKENS, Translator
from saccade.train import Plan, Run, train
from saccade.train import Progress as Step

MINUTES = 5.0  # of training, unless something else is asked for


def say(words: str) -> None:
    print(words, file=sys.stderr)


def train_command(
    data: list[str],
    output: Path | None,
    dev: list[str],
    family: str | None,
    minutes: float | None,
    settings: list[str],
    resume: Path | None,
) -> None:
    if resume is not None:
        if data or output or dev or family or minutes or settings:
            raise ValueError("--resume goes on with a run as it is: leave out the other options")
        run = Run.open(resume)
        if run.finished():
            say(f"{run.path}: is finished; there is nothing to resume")
            return
        pairs, held = _load(run.config.data.train, run.config.data.dev)
    else:
        if not data:
            raise ValueError(f"nothing to train on: give a file of pairs, or one of {', '.join(TASKS)}")
        if output is None:
            raise ValueError("-o RUN: where should the run go?")
        if output.exists():
            raise ValueError(f"{output}: exists already; choose another folder, or go on with --resume {output}")
        asked = _asked(data, dev, family, minutes, settings)
        pairs, held = _load(data, dev)
        run = _create(output, asked, pairs)
    parameters = sum(p.numel() for p in run.build().parameters())
    say(f"{len(pairs):,} pairs, {len(held):,} held back; {parameters:,} parameters, {run.config.model.family}")
    _train(run, pairs, held)
    plan = Plan.load(run.path / "plan.json")
    say(f"{run.path}: {plan.steps:,} steps done. Next: saccade translate {run.path} TEXT")


def _asked(
    data: list[str], dev: list[str], family: str | None, minutes: float | None, settings: list[str]
) -> dict[str, Any]:
    """What the command line says, checked before any file is read."""
    asked: dict[str, Any] = {"data": {"train": [_where(d) for d in data], "dev": [_where(d) for d in dev]}}
    asked |= {"model": {}, "train": {}, "source": {}, "target": {}}
    if family is not None:
        asked["model"]["family"] = family
    if family == "transformer":
        asked["model"] |= {"heads": 4, "layers": 3}
    if minutes is not None:
        asked["train"]["minutes"] = minutes
    for setting in settings:
        _set(asked, setting)
    if not {"minutes", "steps"} & set(asked["train"]):
        asked["train"]["minutes"] = MINUTES
    RunConfig.read(asked, "settings")
    return asked


def _create(output: Path, asked: dict[str, Any], pairs: list[Pair]) -> Run:
    """A run folder; the symbols of each side are chosen from the data where nothing was asked for."""
    texts = {"source": [p.source for p in pairs], "target": [p.target for p in pairs]}
    for side, sentences in texts.items():
        if not asked[side]:
            choice = choose_tokeniser(sentences)
            asked[side] = choice.config.model_dump()
            say(f"{side}: {choice.config.kind} ({choice.why})")
    config = RunConfig.read(asked, "settings")
    source, target = (
        Tokeniser.train(texts[side], c.kind, size=c.size, form=c.form, lower=c.lower)
        for side, c in (("source", config.source), ("target", config.target))
    )
    longest = config.model.longest_source
    if longest is not None:
        needed = 1 + max(
            len(ids)
            for tokens, side in ((source, "source"), (target, "target"))
            for ids in tokens.encode_all(texts[side])
        )
        if needed > longest:
            raise ValueError(
                f"model.max_length={longest}, but the data needs {needed}: --set model.max_length={needed}"
            )
    return Run.create(output, config, source, target)


def _set(chosen: dict[str, Any], setting: str) -> None:
    """model.width=128 puts 128 under width under model."""
    key, equals, value = setting.partition("=")
    section, dot, name = key.strip().partition(".")
    if not (equals and dot and name):
        raise ValueError(f"--set {setting}: expected SECTION.KEY=VALUE, such as model.width=128")
    try:
        parsed = tomllib.loads(f"x = {value}")["x"]
    except tomllib.TOMLDecodeError:
        parsed = value.strip()  # a word needs no quotes
    chosen.setdefault(section, {})[name] = parsed


def _where(path: str) -> str:
    """A path that still leads to the file when the run is resumed from elsewhere; a task is its name."""
    return path if path in TASKS else str(Path(path).resolve())


def _load(data: list[str], dev: list[str]) -> tuple[list[Pair], list[Pair]]:
    if len(data) == 1 and data[0] in TASKS:
        task = TASKS[data[0]]
        return task.pairs("train"), task.pairs("dev")
    corpus = read_pairs(*data)
    for line in corpus.report():
        say(line)
    if not dev:
        if len({p.source for p in corpus.pairs}) < 2:
            raise ValueError(f"{data[0]}: only one source; a second is needed to measure progress on")
        return split(corpus.pairs)
    held = read_pairs(*dev)
    for line in held.report():
        say(line)
    known = {p.source for p in corpus.pairs}
    leaked = sum(p.source in known for p in held.pairs)
    if leaked:
        say(f"{leaked} of {len(held.pairs)} dev sources stand in train too")
    return corpus.pairs, held.pairs


def _train(run: Run, pairs: list[Pair], held: list[Pair]) -> None:
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total}"))
    quiet = not sys.stderr.isatty()
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), disable=quiet) as bar:
        task = bar.add_task("training", total=None)

        def show(step: Step) -> None:
            bar.update(task, completed=step.step, total=step.steps, description=f"loss {step.loss:.3f}")
            if step.dev_loss is not None and quiet:
                say(f"step {step.step}/{step.steps}: loss {step.loss:.3f}, dev loss {step.dev_loss:.3f}")

        try:
            train(run, pairs, held, show)
        except KeyboardInterrupt:
            say(f"stopped; go on with: saccade train --resume {run.path}")
            raise


def translate_command(runs: list[Path], texts: list[str], file: Path | None, beam: int) -> None:
    opened = [Run.open(path) for path in runs]
    first = opened[0]
    for other in opened[1:]:
        if any((other.path / n).read_bytes() != (first.path / n).read_bytes() for n in ("source.json", "target.json")):
            raise ValueError(f"{other.path}: has other symbols than {first.path}; runs that write as one share them")
    if file is not None:
        if texts:
            raise ValueError("--input: give texts or a file, not both")
        raw = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8", errors="replace")
        texts = raw.removesuffix("\n").split("\n") if raw else []
    elif not texts:
        raise ValueError("nothing to translate: give TEXT, or --input FILE")
    limits = [limit for run in opened if (limit := run.config.model.longest_source) is not None]
    translator = Translator(
        [run.model() for run in opened], first.source, first.target, min(limits, default=MOST_TOKENS)
    )
    for number, (text, done) in enumerate(zip(texts, translator(texts, beam=beam), strict=True), 1):
        print(done.text)
        where = f"text {number}"
        if done.unknown:
            say(f"{where}: unknown symbols {' '.join(map(repr, dict.fromkeys(done.unknown)))}")
        if done.cut_source:
            say(f"{where}: {len(text)} characters are more than the model reads; the end was left out")
        if done.cut_output:
            say(f"{where}: the output reached its limit and was cut")
