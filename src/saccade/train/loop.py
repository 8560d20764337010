"""The loop: a batch, a step, now and then a look at the dev set and a checkpoint."""

import copy
import itertools
import math
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from saccade.config import ModelConfig
from saccade.data import Batch, Examples, Frame, Pair, batches, numbered, spread
from saccade.files import UnwrittenError
from saccade.metrics import ailments, judged_by, plain, text_scores
from saccade.search import Options, Translator
from saccade.train.memory import mind_memory
from saccade.train.plan import SAFETY, Plan, Speed, most_steps
from saccade.train.run import Run, TornError, load_tensors, save_tensors
from saccade.train.step import find_board, find_device, optimiser_of, quickest, timed, update

MEASURING = 0.02  # share of a budget in minutes in which its steps are timed
SLOWER, QUICKER = 0.97, 1.1  # of the steps that are left: if fewer or more fit into the budget, the plan is changed
KEPT = 2  # checkpoints
TELLING = 100  # dev sources: of fewer, the luckiest of ten looks would be taken for the best
DEV_PAIRS = 5_000  # of which the loss on the dev set is taken, at most
GROWN, LOOKED_AT = 0.5, 16  # how far a plan must have come before attention is judged, and on how many dev sources


class Stopped(KeyboardInterrupt):
    """Someone asked the run to stop; where it was is written down."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a run is."""

    step: int
    steps: int
    loss: float  # of the last step, for each real token
    tokens: int  # real tokens of the target in that step
    dev_loss: float | None = None  # set when the dev set was looked at
    score: float | None = None  # of the task: sources exactly right, BLEU or chrF, in percent
    planned: int = 0  # steps of the plan before it was changed
    cut: bool = False  # the time ran out at this step
    ailing: str | None = None  # what is plainly wrong with how most dev sources are looked at, once that can be asked


def train(
    run: Run,
    examples: Examples,
    dev: Sequence[Pair],
    say: Callable[[Progress], None] = lambda _: None,
    *,
    stop: Callable[[], bool] = lambda: False,
    began: float | None = None,
    ready: Callable[["Learner"], None] = lambda _: None,
) -> None:
    """Trains a run from where it is to the end of its plan; a finished one is left as it is.

    `stop` is asked after every step; `began` is when the budget in minutes began, as time.perf_counter has it; `ready`
    hears of the plan before the first step.
    """
    try:
        learner = Learner(run, examples, dev, began)
        ready(learner)
        while not learner.finished():
            say(learner.advance())
            if stop() and not learner.finished():
                learner.save()
                raise Stopped
    except UnwrittenError as error:
        raise ValueError(f"{error}; go on with: saccade train --resume {run.path}") from None


class Judged(NamedTuple):
    """How good weights are; the more, the better."""

    score: float = -math.inf
    loss: float = -math.inf  # on the dev set, negated
    sources: int = 0  # dev sources that the score is of; 0: older files do not tell

    def beats(self, other: "Judged", all_sources: int) -> bool:
        """By the score, and of equal ones by the loss; where scores are of other dev sources, or of too few to choose
        among weights, by the loss alone, which is always of the same.
        """
        if other.score == -math.inf:
            return True
        telling = self.sources >= min(TELLING, all_sources) and other.sources in (0, self.sources)
        return self > other if telling else self.loss > other.loss


class Learner:
    """Everything that changes while a run learns, and how it is written down and read back."""

    def __init__(self, run: Run, examples: Examples, dev: Sequence[Pair], began: float | None = None) -> None:
        mind_memory()
        self.run, self.config, self.examples, self.dev = run, run.config.train, examples, list(dev)
        pictures = numbered(dev, run.source, run.target).pictures if isinstance(run.source, Frame) else None
        self.dev_examples = numbered(spread(self.dev, DEV_PAIRS), run.source, run.target, pictures)
        self.metric = judged_by(run.config.target.spelt, (p.target for p in self.dev))
        run.count(examples)
        self.model = run.first_model().to(find_device(self.config.device))
        self.optimiser = optimiser_of(self.model, self.config)
        self.average = copy.deepcopy(self.model)
        self.step = self.epoch = self.place = 0  # place: batches of this epoch that were done
        self.best, self.stale = Judged(), 0  # and looks at the dev set since then
        self.kept = self._kept()
        self.todo: Iterator[NDArray[np.int64]] = iter(())
        self.ordered: tuple[int, list[NDArray[np.int64]]] = (-1, [])  # the batches of the last epoch that was asked for
        torch.manual_seed(self.config.seed)  # what dropout leaves out
        self._resume()
        self.deadline: float | None = None
        self.report = 0.0  # seconds that the end will take
        self.most = sys.maxsize  # steps that a budget may be filled with
        if self.config.minutes is not None and not (run.path / "plan.json").exists():
            self.deadline = (time.perf_counter() if began is None else began) + 60 * self.config.minutes
        self.plan = self._plan(began)
        if self.step == self.plan.start:
            self.stale = 0  # another plan has its own patience
        self.began = (time.perf_counter(), self.step)  # since the last look at the dev set
        self.board = find_board()(run.path / "tensorboard") if self.config.tensorboard else None

    def finished(self) -> bool:
        return self.step >= self.plan.last

    def advance(self) -> Progress:
        """One step and, where the plan says so, a look at the dev set and a checkpoint."""
        batch = self._batch(self._next_batch())
        self.step += 1
        rate = self.plan.learning_rate(self.step, self.config)
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        loss, tokens = update(self.model, self.optimiser, batch, self.config, self.plan.progress(self.step))
        if not math.isfinite(loss):
            raise ValueError(
                f"step {self.step}: the loss is {loss}; go on from the last checkpoint with a smaller learning rate: "
                f"saccade train --resume {self.run.path} --set train.learning_rate={self.config.learning_rate / 3:.1g}"
            )
        self._follow()
        late = self.deadline is not None and self.step < self.plan.last and time.perf_counter() > self.deadline
        if late:
            self._end_here()
        if not self.plan.evaluates(self.step):
            return Progress(self.step, self.plan.last, loss, tokens)
        looked = time.perf_counter()
        dev_loss, score = self.evaluate()
        self.stale += 1
        judged, everyone = Judged(score, -dev_loss, self.plan.dev_sources), len({p.source for p in self.dev})
        if judged.beats(self.best, everyone):
            self.best, self.stale = judged, 0
            if judged.beats(self.kept, everyone):
                self.kept = judged  # as a run that was killed would read it back
                facts = {"step": self.step, "best": self.best}
                save_tensors(self.run.path / "model.safetensors", self.average.state_dict(), facts)
        if self.config.patience is not None and self.stale >= self.config.patience and self.step < self.plan.last:
            self._end_here()
        figures = {"loss": loss, "dev_loss": dev_loss, "score": score, "learning_rate": rate}
        self.run.note(step=self.step, epoch=self.epoch, metric=self.metric, **figures)
        if self.board is not None:
            for name, value in figures.items():
                self.board.add_scalar(name, value, self.step)
            self.board.flush()
        self.save()
        planned = self.plan.steps
        if not self.finished():
            self._repace(looked)
        ailing = self.ailing() if self.plan.progress(self.step) >= GROWN else None
        return Progress(self.step, self.plan.last, loss, tokens, dev_loss, score, planned, late, ailing)

    def evaluate(self) -> tuple[float, float]:
        """The loss on the dev set, for each real token, and the task's score, both of the averaged weights."""
        self.average.eval()
        return self._dev_loss(), self._score(self.plan.dev_sources)

    @torch.no_grad()
    def _dev_loss(self) -> float:
        total = count = 0.0
        for chosen in batches(self.dev_examples, 4 * self.config.batch_tokens, 0, 0):
            batch = Batch.of([self.dev_examples[i] for i in chosen], self.dev_examples.pictures).to(self._device())
            total += float(self.average(batch.source, batch.mask, batch.given, batch.wanted, batch.real))
            count += int(batch.real.sum())
        return total / max(1, count)

    def _score(self, sources: int) -> float:
        """Percent of so many dev sources that are written exactly right or, of text, BLEU or chrF; quickly."""
        known: dict[str, list[str]] = {}
        for source, target in self.dev:
            known.setdefault(source, []).append(target)
        texts = spread(list(known), sources)
        options = Options(beam=quick_beam(self.run.config.model))
        outputs = [p.text for p in self._translator().translate(texts, options, look=False)]
        if self.metric == "exact":
            right = sum(plain(o) in map(plain, known[text]) for o, text in zip(outputs, texts, strict=True))
            return 100 * right / max(1, len(texts))
        return text_scores(outputs, [known[text] for text in texts], only=(self.metric,))[self.metric].score

    def _translator(self) -> Translator:
        translator = self.run.translator(self.average)
        translator.pictures = self.dev_examples.pictures
        return translator

    def ailing(self) -> str | None:
        """What is plainly wrong with attention, if it is so with most of some dev sources."""
        texts = spread(list(dict.fromkeys(p.source for p in self.dev)), LOOKED_AT)
        found = self._translator().translate(texts, Options(beam=1))
        wrong = Counter(what for p in found if p.weights is not None for what in ailments(p.weights))
        what, count = next(iter(wrong.most_common(1)), ("", 0))
        return f"attention {what}, in {count} of {len(texts)} dev sources" if 2 * count > len(texts) else None

    def save(self) -> None:
        tensors = {f"model.{k}": v for k, v in self.model.state_dict().items()}
        tensors |= {f"average.{k}": v for k, v in self.average.state_dict().items()}
        for i, state in self.optimiser.state_dict()["state"].items():
            tensors |= {f"optimiser.{i}.{k}": v for k, v in state.items()}
        tensors["chance"] = torch.get_rng_state()
        facts = {k: getattr(self, k) for k in ("step", "epoch", "place", "best", "stale")}
        save_tensors(self.run.path / "checkpoints" / f"{self.step:09d}.safetensors", tensors, facts)
        for old in self.run.checkpoints()[:-KEPT]:
            old.unlink()

    def _resume(self) -> None:
        """Goes on from the newest checkpoint that can be read; without one, from the start.

        Others are set aside: they would count as newer than those that are still to come.
        """
        torn, goes = [], "begins again at its first step"
        for path in reversed(self.run.checkpoints()):
            try:
                self._load(path)
            except TornError as error:
                aside = path.rename(path.with_suffix(".torn"))
                torn.append(f"{error}: set aside as {aside.name}")
                continue
            goes = "goes on from the checkpoint before it"
            break
        for what in torn:
            warnings.warn(f"{what}, so the run {goes}", stacklevel=2)
        self.run.forget_after(self.step)

    def _load(self, path: Path) -> None:
        """Takes over a checkpoint or, if it does not fit, nothing of it."""
        tensors, facts = load_tensors(path)
        model, average, now = _under("model.", tensors), _under("average.", tensors), self.model.state_dict()
        whole = "chance" in tensors and {"step", "epoch", "place", "best", "stale"} <= set(facts)
        if not (whole and _alike(model, now) and _alike(average, now)):
            raise TornError(f"{path}: does not fit config.toml: other sizes or other names")
        self.model.load_state_dict(model)
        self.average.load_state_dict(average)
        state: dict[int, dict[str, Tensor]] = {}
        for name, tensor in _under("optimiser.", tensors).items():
            index, _, key = name.partition(".")
            state.setdefault(int(index), {})[key] = tensor
        groups = self.optimiser.state_dict()["param_groups"]
        self.optimiser.load_state_dict({"state": state, "param_groups": groups})
        torch.set_rng_state(tensors["chance"])
        self.step, self.epoch, self.place, self.stale = (facts[k] for k in ("step", "epoch", "place", "stale"))
        self.best = Judged(*facts["best"])
        self.todo = itertools.islice(iter(self._epoch(self.epoch)), self.place, None)

    def _kept(self) -> Judged:
        """How good the weights in model.safetensors are, as `best` has it.

        A run that had to go back keeps them until it has better ones; what it follows besides starts anew, so that it
        comes to the same end.
        """
        path = self.run.path / "model.safetensors"
        if not path.exists():
            return Judged()
        try:
            tensors, facts = load_tensors(path)
        except TornError:
            return Judged()
        if not _alike(tensors, self.model.state_dict()):
            return Judged()
        noted = {n["step"]: Judged(n["score"], -n["dev_loss"]) for n in self.run.notes()}
        best = facts.get("best")  # older files tell only the step
        return noted.get(facts.get("step"), Judged()) if best is None else Judged(*best)

    def _plan(self, began: float | None) -> Plan:
        path = self.run.path / "plan.json"
        if path.exists():
            plan = Plan.load(path)
            if plan.threads is not None:
                torch.set_num_threads(plan.threads)
            return plan
        speed = None if self.config.minutes is None else self._measure(began)
        sources = len({p.source for p in self.dev})
        each = len(self._epoch(0))
        self.most = most_steps(self.config, each)
        plan = Plan.make(self.config, each, sources, speed, self.step)
        self.report = 0.0 if speed is None else speed.report(plan.reported)
        plan.save(path)
        return plan

    def _measure(self, began: float | None) -> Speed:
        """How long a step takes, of a copy of the model on batches of the first epoch, and a look at the dev set."""
        start = time.perf_counter()
        chance = torch.get_rng_state()
        threads, step = quickest(copy.deepcopy(self.model), self.config, self._first_batches(), MEASURING)
        torch.set_num_threads(threads)
        self.average.eval()
        before = time.perf_counter()
        self._dev_loss()
        loss = time.perf_counter() - before
        sources = min(len(self.dev), 64)
        before = time.perf_counter()
        self._score(sources)
        source = (time.perf_counter() - before) / max(1, sources)
        read, written = (lengths.mean() + 1 for lengths in self.dev_examples.lengths())
        source *= min(
            1.0, float(written / self._translator().limit(read))
        )  # a model that knows nothing writes up to the limit
        torch.set_rng_state(chance)
        return Speed(step, loss, source, time.perf_counter() - (start if began is None else began), threads)

    def seconds_per_step(self) -> float:
        """About how long a step takes, tried on a copy."""
        chance = torch.get_rng_state()
        seconds = min(itertools.islice(timed(copy.deepcopy(self.model), self.config, self._first_batches()), 3))
        torch.set_rng_state(chance)
        return seconds

    def _first_batches(self) -> Iterator[Batch]:
        return (self._batch(chosen) for chosen in itertools.cycle(self._epoch(0)))

    def _repace(self, looked: float) -> None:
        """Changes the plan if its steps turn out slower or quicker than measured: it is to end in time, annealed."""
        now, (began, since) = time.perf_counter(), self.began
        self.began = now, self.step
        if self.deadline is None:
            return
        step, look = (looked - began) / (self.step - since), now - looked
        left = self.plan.steps - self.step
        looks = math.ceil(left / self.plan.evaluate_every)
        fit = int(SAFETY * (self.deadline - self.report - now - looks * look) / step)
        fit = max(1, min(fit, self.most - (self.step - self.plan.start)))
        if not SLOWER * left < fit < QUICKER * left:
            self.plan = self.plan.repaced(self.step, fit)
            self.plan.save(self.run.path / "plan.json")

    def _end_here(self) -> None:
        self.plan = self.plan.cut(self.step)
        self.plan.save(self.run.path / "plan.json")

    @torch.no_grad()
    def _follow(self) -> None:
        """The averaged weights follow those that learn, at first closely: young weights are worth little."""
        decay = min(self.config.average, self.step / (self.step + 10))
        kept: list[Tensor] = list(self.average.parameters())
        learning: list[Tensor] = list(self.model.parameters())
        torch._foreach_lerp_(kept, learning, 1 - decay)
        for mine, theirs in zip(self.average.buffers(), self.model.buffers(), strict=True):
            mine.copy_(theirs)

    def _epoch(self, epoch: int) -> list[NDArray[np.int64]]:
        if self.ordered[0] != epoch:
            self.ordered = epoch, batches(self.examples, self.config.batch_tokens, self.config.seed, epoch)
        return self.ordered[1]

    def _next_batch(self) -> NDArray[np.int64]:
        chosen = next(self.todo, None)
        if chosen is None:
            if self.step:
                self.epoch += 1
            self.place, self.todo = 0, iter(self._epoch(self.epoch))
            chosen = next(self.todo)
        self.place += 1
        return chosen

    def _batch(self, chosen: NDArray[np.int64]) -> Batch:
        return Batch.of([self.examples[i] for i in chosen], self.examples.pictures).to(self._device())

    def _device(self) -> torch.device:
        return next(self.model.parameters()).device


def quick_beam(config: ModelConfig) -> int:
    """How the dev set is written on the way: greedily or, where several have to agree, with the least beam.

    Judged by the way from the start alone, weights would be kept whose other way is still young.
    """
    return 2 if config.both_ways or config.counts else 1


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)}


def _alike(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    """Whether names and sizes are the same."""
    return {name: t.shape for name, t in one.items()} == {name: t.shape for name, t in other.items()}
