"""One step of training, and how long it takes on this machine."""

import math
import time
from collections.abc import Iterable, Iterator
from typing import Any

import torch

from saccade.config import TrainConfig
from saccade.data import Batch
from saccade.errors import UsageError
from saccade.model import Model

MEASURED = 8  # steps that are timed, if they are quick; they are not part of a run
LONGEST = 10  # seconds that this may take


def optimiser_of(model: Model, config: TrainConfig) -> torch.optim.AdamW:
    rate, decay = config.learning_rate, config.weight_decay
    return torch.optim.AdamW(model.parameters(), rate, (0.9, 0.98), weight_decay=decay, fused=True)


def update(
    model: Model, optimiser: torch.optim.Optimizer, batch: Batch, config: TrainConfig, progress: float
) -> tuple[float, int]:
    """One step; returns the loss of a real token, and how many there were."""
    model.train()
    optimiser.zero_grad(set_to_none=True)
    sampling = config.scheduled_sampling * progress
    guided = config.diagonal * (1 - progress)
    told = (config.label_smoothing, sampling, config.consistency, config.doubly_stochastic, guided, config.word_dropout)
    with torch.autocast(batch.given.device.type, torch.bfloat16, enabled=config.precision == "bfloat16"):
        total = model(batch.source, batch.mask, batch.given, batch.wanted, batch.real, *told)
    tokens = int(batch.real.sum())
    loss = total / tokens
    loss.backward()
    length = float(torch.nn.utils.clip_grad_norm_(model.parameters(), config.clip))
    if not math.isfinite(length):
        return math.inf, tokens  # a step along such a gradient would spoil the weights for good
    optimiser.step()
    return float(loss.detach()), tokens


def timed(model: Model, config: TrainConfig, batches: Iterable[Batch]) -> Iterator[float]:
    """Seconds that a step takes with each of these batches, made on the way. Give a copy of the model: it learns."""
    optimiser = optimiser_of(model, config)
    before = time.perf_counter()
    for batch in batches:
        update(model, optimiser, batch, config, 0.5)
        yield time.perf_counter() - before
        before = time.perf_counter()


def quickest(model: Model, config: TrainConfig, endless: Iterable[Batch], share: float) -> tuple[int, float]:
    """Threads and seconds of a step: on a busy machine, or with a small model, one thread may outrun two by far.

    About this share of a budget in minutes is spent on each. Give a copy of the model, and batches without end; chance
    goes on as if nothing had been.
    """
    allowed = min(LONGEST, share * 60 * (config.minutes or 0))
    steps, found = timed(model, config, endless), []
    usual, chance = torch.get_num_threads(), torch.get_rng_state()
    for threads in dict.fromkeys((1, usual)):
        torch.set_num_threads(threads)
        times: list[float] = []
        while len(times) < MEASURED or sum(times) < allowed / 2:
            times.append(next(steps))
            if sum(times) > allowed and (len(times) >= 3 or times[0] > allowed):
                break
        settled = times[1:] or times  # the first warms up
        found.append((sum(settled) / len(settled), threads))
    torch.set_num_threads(usual)
    torch.set_rng_state(chance)
    step, threads = min(found)
    return threads, step


def find_board() -> Any:
    """What writes for TensorBoard."""
    try:
        from torch.utils.tensorboard import SummaryWriter  # noqa: PLC0415  (an extra)
    except ImportError:
        raise ValueError(
            "train.tensorboard: needs the package tensorboard: pip install 'saccade[tensorboard]'"
        ) from None
    return SummaryWriter


def find_device(name: str) -> torch.device:
    try:
        device = torch.device(name)
        torch.zeros(1, device=device).item()  # what is put there can be read back
    except (RuntimeError, AssertionError, NotImplementedError):
        raise UsageError(f"train.device: {name!r} is not there; this torch has the cpu") from None
    return device
