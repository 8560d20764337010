"""The loop: a batch, a step, now and then a look at the dev set and a checkpoint."""

import copy
import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from saccade.config import TrainConfig
from saccade.data import Batch, Pair, batches
from saccade.model import Model
from saccade.train.plan import Plan
from saccade.train.run import Run, load_tensors, save_tensors

Numbers = tuple[list[int], list[int]]
MEASURED = 8  # steps that are timed to plan a budget in minutes; they are not part of the run
KEPT = 2  # checkpoints


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a run is."""

    step: int
    steps: int
    loss: float  # of the last step, for each real token
    dev_loss: float | None = None  # set when the dev set was looked at


def train(
    run: Run, pairs: Sequence[Pair], dev: Sequence[Pair], say: Callable[[Progress], None] = lambda _: None
) -> None:
    """Trains a run from where it is to the end of its plan; a finished one is left as it is."""
    learner = Learner(run, _numbers(run, pairs), _numbers(run, dev))
    learner.resume()
    while learner.step < learner.plan.steps:
        say(learner.advance())


class Learner:
    """Everything that changes while a run learns, and how it is written down and read back."""

    def __init__(self, run: Run, examples: list[Numbers], dev: list[Numbers]) -> None:
        self.run, self.config, self.examples, self.dev = run, run.config.train, examples, dev
        self.model = run.build()
        self.optimiser = _optimiser(self.model, self.config)
        self.average = copy.deepcopy(self.model)
        self.plan = self._plan()
        self.step = self.epoch = self.place = 0  # place: batches of this epoch that were done
        self.best = math.inf
        self.todo: Iterator[list[int]] = iter(())
        torch.manual_seed(self.config.seed)  # what dropout leaves out

    def advance(self) -> Progress:
        """One step and, where the plan says so, a look at the dev set and a checkpoint."""
        batch = Batch.of([self.examples[i] for i in self._next_batch()])
        self.step += 1
        for group in self.optimiser.param_groups:
            group["lr"] = self.plan.learning_rate(self.step, self.config)
        loss = _update(self.model, self.optimiser, batch, self.config)
        if not math.isfinite(loss):
            raise ValueError(
                f"step {self.step}: the loss is {loss}; go on from the last checkpoint with a smaller learning rate"
            )
        decay = min(self.config.average, self.step / (self.step + 10))  # young weights are worth little
        with torch.no_grad():
            for kept, learning in zip(self.average.parameters(), self.model.parameters(), strict=True):
                kept.lerp_(learning, 1 - decay)
        if not self.plan.evaluates(self.step):
            return Progress(self.step, self.plan.steps, loss)
        dev_loss = self.evaluate()
        if dev_loss < self.best:
            self.best = dev_loss
            save_tensors(self.run.path / "model.safetensors", self.average.state_dict(), {"step": self.step})
        self.run.note(step=self.step, loss=loss, dev_loss=dev_loss, learning_rate=group["lr"])
        self.save()
        return Progress(self.step, self.plan.steps, loss, dev_loss)

    @torch.no_grad()
    def evaluate(self) -> float:
        """The loss on the dev set, for each real token, of the averaged weights."""
        self.average.eval()
        total = count = 0.0
        for chosen in batches(self.dev, 4 * self.config.batch_tokens, 0, 0):
            batch = Batch.of([self.dev[i] for i in chosen])
            total += float(self.average(batch.source, batch.mask, batch.given, batch.wanted, batch.real))
            count += int(batch.real.sum())
        return total / max(1, count)

    def save(self) -> None:
        tensors = {f"model.{k}": v for k, v in self.model.state_dict().items()}
        tensors |= {f"average.{k}": v for k, v in self.average.state_dict().items()}
        for i, state in self.optimiser.state_dict()["state"].items():
            tensors |= {f"optimiser.{i}.{k}": v for k, v in state.items()}
        tensors["chance"] = torch.get_rng_state()
        facts = {"step": self.step, "epoch": self.epoch, "place": self.place, "best": self.best}
        save_tensors(self.run.path / "checkpoints" / f"{self.step:09d}.safetensors", tensors, facts)
        for old in self.run.checkpoints()[:-KEPT]:
            old.unlink()

    def resume(self) -> None:
        """Goes on from the newest checkpoint that can be read; without one, from the start."""
        for path in reversed(self.run.checkpoints()):
            try:
                tensors, facts = load_tensors(path)
            except ValueError:
                continue  # torn: the one before it will do
            self.model.load_state_dict(_under("model.", tensors))
            self.average.load_state_dict(_under("average.", tensors))
            state: dict[int, dict[str, Tensor]] = {}
            for name, tensor in _under("optimiser.", tensors).items():
                index, _, key = name.partition(".")
                state.setdefault(int(index), {})[key] = tensor
            groups = self.optimiser.state_dict()["param_groups"]
            self.optimiser.load_state_dict({"state": state, "param_groups": groups})
            torch.set_rng_state(tensors["chance"])
            self.step, self.epoch, self.place, self.best = (facts[k] for k in ("step", "epoch", "place", "best"))
            self.todo = itertools.islice(self._epoch(self.epoch), self.place, None)
            return

    def _plan(self) -> Plan:
        path = self.run.path / "plan.json"
        if path.exists():
            return Plan.load(path)
        plan = Plan.make(self.config, self._seconds_per_step() if self.config.minutes else None)
        plan.save(path)
        return plan

    def _seconds_per_step(self) -> float:
        """Of a copy of the model, on batches of the first epoch."""
        model = copy.deepcopy(self.model)
        optimiser = _optimiser(model, self.config)
        times = []
        for chosen in itertools.islice(itertools.cycle(self._epoch(0)), MEASURED + 2):
            start = time.perf_counter()
            _update(model, optimiser, Batch.of([self.examples[i] for i in chosen]), self.config)
            times.append(time.perf_counter() - start)
        return sum(times[2:]) / MEASURED  # the first two warm up

    def _epoch(self, epoch: int) -> Iterator[list[int]]:
        return batches(self.examples, self.config.batch_tokens, self.config.seed, epoch)

    def _next_batch(self) -> list[int]:
        chosen = next(self.todo, None)
        if chosen is None:
            if self.step:
                self.epoch += 1
            self.place, self.todo = 0, self._epoch(self.epoch)
            chosen = next(self.todo)
        self.place += 1
        return chosen


def _optimiser(model: Model, config: TrainConfig) -> torch.optim.AdamW:
    return torch.optim.AdamW(model.parameters(), config.learning_rate, (0.9, 0.98), weight_decay=config.weight_decay)


def _update(model: Model, optimiser: torch.optim.Optimizer, batch: Batch, config: TrainConfig) -> float:
    """One step; returns the loss of a real token."""
    model.train()
    optimiser.zero_grad(set_to_none=True)
    total = model(batch.source, batch.mask, batch.given, batch.wanted, batch.real, config.label_smoothing)
    loss = total / batch.real.sum()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), config.clip)
    optimiser.step()
    return float(loss.detach())


def _numbers(run: Run, pairs: Sequence[Pair]) -> list[Numbers]:
    sources = run.source.encode_all([p.source for p in pairs])
    targets = run.target.encode_all([p.target for p in pairs])
    return list(zip(sources, targets, strict=True))


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)}
