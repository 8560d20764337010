"""Where claims are tested: data, repeated runs, and figures that are kept, so that an interrupted book goes on."""

import contextlib
import datetime
import hashlib
import json
import multiprocessing
import os
import platform
import random
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import torch

import saccade
from saccade.data import Pair, read_pairs
from saccade.evaluate import Report, evaluate
from saccade.files import write_whole
from saccade.lab.claim import Figure
from saccade.search import Options, Translator

Settings = dict[str, dict[str, Any]]
SEEDS = (0, 1, 2)
UNGUIDED = {"diagonal": 0.0}  # nobody tells attention where to look, as the defaults do where targets keep step
TOY: Settings = {  # what the small models of the lab have in common
    "model": {"dropout": 0.0},
    "train": {
        "batch_tokens": 2000,
        "learning_rate": 4e-3,
        "label_smoothing": 0.0,
        "evaluations": 2,
        "average": 0.9,
        "precision": "float32",  # so that every machine measures the same
        **UNGUIDED,
    },
    "source": {"kind": "symbols"},
    "target": {"kind": "symbols"},
}
FEW_TOKENS = 600  # of a batch, where it is only to be seen which way a claim points
ENOUGH = 100  # sources of somebody's own
TEST = 0.05  # share of somebody's own pairs that is kept for the test, and as much again to choose the weights
LETTERS = "abcdefghijklmnopqrstuvwxyz"
T = TypeVar("T")
Job = tuple[Any, ...]  # a name, what measures, and what it is given


def quiet(_: str) -> None:
    """Says nothing."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Three files of pairs that share nothing."""

    train: Path
    dev: Path
    test: Path
    toy: bool  # made here, of symbols between blanks

    def tests(self) -> list[Pair]:
        return list(read_pairs(self.test).pairs)


@dataclass(frozen=True)
class Bench:
    """A place to work: a folder, and how much may be spent."""

    folder: Path
    quick: bool = False  # toy sizes, to see that a claim still runs and still points the same way
    share: float = 1.0  # of the usual steps
    data: Path | None = None  # somebody's own pairs
    mark: str = ""  # tells figures of another version of a claim apart
    say: Callable[[str], None] = quiet
    workers: int = 1  # processes that measure side by side
    minutes: float | None = None  # for all runs, where the pairs are somebody's own
    each_minutes: float | None = None  # for one of them
    again: bool = False  # measure anew whatever is known
    measured: list[dict[str, Any]] = field(default_factory=list, repr=False, compare=False)  # when, where, how long

    @property
    def seeds(self) -> tuple[int, ...]:
        return SEEDS[:1] if self.quick else SEEDS

    def pick(self, full: T, quick: T) -> T:
        return quick if self.quick else full

    def steps(self, full: int, quick: int) -> int:
        return quick if self.quick else max(1, round(full * self.share))

    def once(self, name: str, measure: Callable[..., list[Figure]], *given: Any) -> list[Figure]:
        """What `measure` finds; if that was done before, what was found then."""
        if self.again or not self._kept(name).exists():
            self.say(name)
            self._keep(name, *_timed(measure, *given))
        known = json.loads(self._kept(name).read_text(encoding="utf-8"))
        figures: list[Figure] = known.pop("figures")
        self.measured.append(known)
        return figures

    def each(self, jobs: Sequence[Job]) -> list[Figure]:
        """The same of many, side by side: models this small are no quicker with two cores, but two of them are.

        What measures time has a core to itself here, and not the machine: leave that to `once`.
        """
        todo = [job for job in jobs if self.again or not self._kept(job[0]).exists()]
        began = time.perf_counter()
        for done, (name, found, seconds) in enumerate(self._finished(todo), 1):
            self._keep(name, found, seconds)
            left = (time.perf_counter() - began) * (len(todo) - done) / done
            self.say(f"{name}: {done} of {len(todo)}" + (f", about {left / 60:.1f} min left" if left else ""))
        return [figure for job in jobs for figure in replace(self, again=False).once(*job)]

    def _finished(self, todo: Sequence[Job]) -> Iterator[tuple[str, list[Figure], float]]:
        """Name, figures and seconds of each, as they come."""
        shared = all(job[1].__module__ != "__main__" for job in todo)  # what a notebook changed is known to it alone
        workers = min(self.workers, len(todo)) if shared else 1
        if todo:
            self.say(f"{len(todo)} to measure" + (f", {workers} at a time" if workers > 1 else ""))
        if workers <= 1:
            for name, *job in todo:
                yield name, *_timed(*job)
            return
        with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _alone) as pool:
            try:
                running = {pool.submit(_timed, *job): name for name, *job in todo}
                for done in as_completed(running):
                    yield running[done], *done.result()
            except BaseException:
                for process in multiprocessing.active_children():
                    process.terminate()  # what is half measured is measured anew next time
                raise

    def _kept(self, name: str) -> Path:
        key = repr((name, self.quick, self.share, self.given, self.minutes, self.mark))
        return self.folder / "figures" / f"{hashlib.sha256(key.encode()).hexdigest()[:20]}.json"

    def _keep(self, name: str, found: list[Figure], seconds: float) -> None:
        date = datetime.datetime.now(datetime.UTC).date().isoformat()
        machine = f"{os.cpu_count()} cores, {processor()}, torch {torch.__version__}"
        known = {"figures": found, "seconds": seconds, "date": date, "machine": machine}
        _write(self._kept(name), json.dumps(known))

    @cached_property
    def given(self) -> str | None:
        """What the pairs are that somebody gave, by their content."""
        return None if self.data is None else hashlib.sha256(self.data.read_bytes()).hexdigest()[:12]

    def made(self, name: str, make: Callable[[random.Random], tuple[str, str]], train: int, test: int = 200) -> Pairs:
        """Pairs of a toy task, or those that were given in its place."""
        folder = self.folder / "data" / (name if self.given is None else f"given-{self.given}")
        names = [folder / f"{part}.tsv" for part in ("train", "dev", "test")]
        if self.data is not None:
            rows = [(_line(pair.source), _line(pair.target)) for pair in read_pairs(self.data).pairs]
            sources = sorted({source for source, _ in rows})
            if len(sources) < ENOUGH:
                raise ValueError(f"{self.data}: {len(sources)} sources; to learn and to test takes at least {ENOUGH}")
            random.Random(0).shuffle(sources)
            kept = max(1, round(TEST * len(sources)))
            dev, held = set(sources[:kept]), set(sources[kept : 2 * kept])
            parts = [
                [row for row in rows if row[0] not in dev | held],
                [row for row in rows if row[0] in dev],
                [row for row in rows if row[0] in held],
            ]
        else:
            chance = random.Random(name)
            parts = [[make(chance) for _ in range(count)] for count in (train, min(test, 200), test)]
        for file, part in zip(names, parts, strict=True):
            _write(file, "".join(f"{source}\t{target}\n" for source, target in part))
        return Pairs(names[0], names[1], names[2], toy=self.data is None)

    def learn(self, pairs: Pairs, settings: Settings, seed: int, steps: int) -> Translator:
        """A trained model; nothing of it stays on the disk."""
        toy = TOY if pairs.toy else {"train": UNGUIDED}
        merged = {part: {**toy.get(part, {}), **settings.get(part, {})} for part in {*toy, *settings, "train"}}
        budget = {"steps": steps} if self.each_minutes is None else {"minutes": self.each_minutes}
        merged["train"] |= {"seed": seed, **budget}
        if self.quick and "batch_tokens" in merged["train"]:
            merged["train"]["batch_tokens"] = min(FEW_TOKENS, merged["train"]["batch_tokens"])
        with tempfile.TemporaryDirectory() as folder:
            return saccade.train(pairs.train, f"{folder}/run", dev=pairs.dev, settings=merged, quiet=True)

    def score(self, translator: Translator, pairs: Sequence[Pair]) -> Report:
        """Greedily: the same search for all."""
        return evaluate(translator, pairs, Options(beam=1))

    def right(self, translator: Translator, pairs: Sequence[Pair]) -> float:
        """Percent of the symbols that are right or, of sentences, BLEU."""
        report = self.score(translator, pairs)
        return max(0.0, 100 - report.scores["per"]) if report.symbols else report.scores["bleu"]

    def by_length(self, translator: Translator, pairs: Pairs) -> list[tuple[float, float]]:
        """Of somebody's own pairs: about how long the sources of a bucket are, and BLEU."""
        buckets = self.score(translator, pairs.tests()).by_length
        if len(buckets) < 2:
            raise ValueError("--data: too few sentences, or too much alike in length, to tell the short from the long")
        return [((bucket.first + bucket.last) / 2, bucket.bleu) for bucket in buckets]

    def within(self, minutes: float, usual: float) -> "Bench":
        """The same with another budget."""
        return replace(self, share=minutes / usual) if self.data is None else replace(self, minutes=minutes)

    def among(self, runs: int) -> "Bench":
        """The same, its minutes shared by so many runs, if there are somebody's own pairs: the same time for all."""
        if self.minutes is None or self.quick:
            return self
        return replace(self, each_minutes=self.minutes * self.workers / runs)


def processor() -> str:
    """What computes here, as the system calls it."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _timed(measure: Callable[..., list[Figure]], *given: Any) -> tuple[list[Figure], float]:
    began = time.perf_counter()
    return measure(*given), time.perf_counter() - began


def _alone() -> None:
    """A process of several: on one core, and stopped by the one that started it."""
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, text.encode())


def _line(text: str) -> str:
    """Without the tabs and breaks that would end a field of a table."""
    return " ".join(text.split())


def letters(chance: random.Random, least: int, most: int, kinds: int = 26) -> list[str]:
    """So many letters, by chance."""
    return chance.choices(LETTERS[:kinds], k=chance.randint(least, most))
