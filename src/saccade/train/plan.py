"""How many steps, and what happens at each: decided once, before the first."""

import json
import math
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from saccade.config import TrainConfig
from saccade.files import written

VERSION = 1
DEV_SOURCES = 1000  # that are translated at each look at the dev set, if no budget asks for fewer
FEWEST_SOURCES = 20
LOOKING, REPORTING = 0.06, 0.2  # shares of a budget in minutes that may go into these looks, and into the last report
MOST_LOOKING = 0.25  # share of it that they may never take: rather there are fewer of them
FEWEST = 3000  # steps that a limit in epochs leaves to a small corpus
SAFETY = 0.97  # share of the rest that is planned with: a machine is not equally fast all the time


@dataclass(frozen=True, slots=True)
class Speed:
    """What was measured before the plan was made, in seconds."""

    step: float  # one update
    loss: float  # the loss of the whole dev set
    source: float  # one dev source, written quickly
    before: float  # since the command began
    threads: int | None = None  # with how many threads

    def report(self, sources: int) -> float:
        """What a report of so many dev sources will take at the end, with a beam."""
        return 3 * self.source * sources


def most_steps(config: TrainConfig, batches: int) -> int:
    """That a budget in minutes may be filled with: seen more often than that, pairs are only known by heart."""
    return sys.maxsize if config.most_epochs is None else max(FEWEST, round(config.most_epochs * batches))


@dataclass(frozen=True, slots=True)
class Plan:
    """A run's timetable. No decision after it reads the clock, but to repace or cut it, which becomes part of it."""

    steps: int
    evaluate_every: int
    dev_sources: int = DEV_SOURCES  # that are translated at each look
    reported: int = DEV_SOURCES  # that are translated in the end, with a beam
    start: int = 0  # the step at which it begins: a resumed run with other settings has a new plan
    end: int | None = None  # the step at which it was cut, if it was
    threads: int | None = None  # how many were quickest; the same on resume, since sums depend on it
    turns: tuple[tuple[int, int, int], ...] = ()  # at which steps its pace changed; `steps` and `evaluate_every` before
    version: int = VERSION

    @classmethod
    def make(cls, config: TrainConfig, batches: int, dev: int, speed: Speed | None = None, start: int = 0) -> "Plan":
        """As many steps as asked for or, with a budget in minutes, as fit into it at the speed that was measured.

        `batches` are those of an epoch, `dev` the sources that progress is measured on.
        """
        sources = reported = min(dev, DEV_SOURCES)
        evaluations = config.evaluations
        if config.minutes is not None and speed is not None:
            budget = 60 * config.minutes - speed.before
            looks = LOOKING * budget / config.evaluations - speed.loss
            sources = min(sources, max(FEWEST_SOURCES, int(looks / max(speed.source, 1e-6))))
            reported = min(reported, max(FEWEST_SOURCES, int(REPORTING * budget / max(speed.report(1), 1e-6))))
            look = speed.loss + speed.source * sources
            evaluations = max(1, min(evaluations, int(MOST_LOOKING * budget / max(look, 1e-6))))
            looking = evaluations * look + speed.report(reported)
            steps = int(SAFETY * (budget - looking) / speed.step)
            steps = min(steps, most_steps(config, batches))
        elif config.epochs is not None:
            steps = round(config.epochs * batches)
        else:
            steps = config.steps or 1000
        steps = max(1, steps)
        every = max(1, math.ceil(steps / evaluations))
        return cls(start + steps, every, sources, reported, start, threads=None if speed is None else speed.threads)

    def learning_rate(self, step: int, config: TrainConfig) -> float:
        """Of step 1, 2, …: a straight line up, then a cosine down to nearly 0 at the last, or an inverse root."""
        first = self.progress(self.start + 1)
        done, warm = max(first, self.progress(step)), max(first, config.warmup)
        if done <= warm:
            return config.learning_rate * done / warm
        if config.schedule == "inverse_sqrt":
            return config.learning_rate * math.sqrt(warm / done)
        past = (done - warm) / max(1e-9, 1 - warm)
        return config.learning_rate * 0.5 * (1 + math.cos(math.pi * min(1.0, past) * 0.99))

    def progress(self, step: int) -> float:
        """From 0 to 1."""
        since, come, steps, _ = self._stretch(step)
        return max(0.0, come + (1 - come) * (step - since) / max(1, steps - since))

    def _stretch(self, step: int) -> tuple[int, float, int, int]:
        """The stretch between two turns that a step lies in: its start, how far the plan had come, steps, every."""
        since, come = self.start, 0.0
        for turn, steps, every in self.turns:
            if step <= turn:
                return since, come, steps, every
            come += (1 - come) * (turn - since) / max(1, steps - since)
            since = turn
        return since, come, self.steps, self.evaluate_every

    @property
    def last(self) -> int:
        """The step after which there is nothing to do."""
        return self.steps if self.end is None else self.end

    def evaluates(self, step: int) -> bool:
        since, _, _, every = self._stretch(step)
        return (step - since) % every == 0 or step == self.last

    def repaced(self, step: int, left: int) -> "Plan":
        """The same with so many steps after this one: what was still to come comes sooner or later, to the same end.

        What was before stays part of it, so that who follows the plan from its start goes the same way.
        """
        looks = max(1, round((self.steps - step) / self.evaluate_every))
        turns = (*self.turns, (step, self.steps, self.evaluate_every))
        return replace(self, steps=step + left, evaluate_every=max(1, math.ceil(left / looks)), turns=turns)

    def cut(self, step: int) -> "Plan":
        """The same, ended at this step; the learning rates up to it stay what they were, also for who resumes."""
        return replace(self, end=step)

    def save(self, path: Path) -> None:
        with written(path) as beside:
            beside.write_text(json.dumps(asdict(self), indent=2) + "\n")

    @classmethod
    def load(cls, path: Path) -> "Plan":
        try:
            found = json.loads(path.read_text("utf-8", "replace"))
            if not isinstance(found, dict):
                raise TypeError(f"expected settings by name, found {found!r}")
            if _counts(found.get("version"), VERSION + 1):
                raise ValueError(f"{path}: version {found['version']}, newer than this saccade knows ({VERSION})")
            turns = tuple(tuple(turn) for turn in found.pop("turns", ()))
            plan = cls(**found, turns=turns)
            for name, value in found.items():
                least = LEAST.get(name, 1)
                if not (_counts(value, least) or (value is None and name in ("end", "threads"))):
                    raise TypeError(f"{name}: {value!r}, expected a whole number from {least}")
            if not all(len(turn) == 3 and all(map(_counts, turn, (0, 1, 1))) for turn in turns):
                raise TypeError("turns: expected three whole numbers each")
        except (OSError, TypeError, json.JSONDecodeError) as error:
            raise ValueError(f"{path}: not a plan ({error})") from None
        return plan


LEAST = {"start": 0, "dev_sources": 0}  # of the others 1


def _counts(value: object, least: int) -> bool:
    return type(value) is int and value >= least
