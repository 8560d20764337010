"""How many steps, and what happens at each: decided once, before the first."""

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path

from saccade.config import TrainConfig

VERSION = 1


@dataclass(frozen=True, slots=True)
class Plan:
    """A run's timetable. No decision after it reads the clock."""

    steps: int
    evaluate_every: int
    version: int = VERSION

    @classmethod
    def make(cls, config: TrainConfig, seconds_per_step: float | None) -> "Plan":
        """As many steps as asked for or, with a budget in minutes, as fit into it at the speed that was measured."""
        if config.minutes is not None and seconds_per_step is not None:
            steps = max(1, int(config.minutes * 60 / seconds_per_step))
        else:
            steps = config.steps or 1000
        return cls(steps, max(1, math.ceil(steps / config.evaluations)))

    def learning_rate(self, step: int, config: TrainConfig) -> float:
        """Of step 1, 2, …: a straight line up, then a cosine down to nearly 0 at the last."""
        warm = max(1, round(config.warmup * self.steps))
        if step <= warm:
            return config.learning_rate * step / warm
        done = (step - warm) / max(1, self.steps - warm)
        return config.learning_rate * 0.5 * (1 + math.cos(math.pi * min(1.0, done) * 0.99))

    def evaluates(self, step: int) -> bool:
        return step % self.evaluate_every == 0 or step == self.steps

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self), indent=2) + "\n")

    @classmethod
    def load(cls, path: Path) -> "Plan":
        try:
            plan = cls(**json.loads(path.read_text()))
        except (OSError, TypeError, json.JSONDecodeError) as error:
            raise ValueError(f"{path}: not a plan ({error})") from None
        if plan.version > VERSION:
            raise ValueError(f"{path}: version {plan.version}, newer than this saccade knows ({VERSION})")
        return plan
