"""A run is a folder of plain files.

RUN/config.toml          every setting
RUN/plan.json            how many steps, when to evaluate
RUN/source.json          tokenisers
RUN/target.json
RUN/model.safetensors    the best weights
RUN/checkpoints/         where to go on from, the last two
RUN/metrics.jsonl        what was measured on the way
"""

import json
import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from saccade.config import RunConfig
from saccade.data import Tokeniser
from saccade.model import Model, build
from saccade.train.plan import Plan


@dataclass(frozen=True, slots=True)
class Run:
    """A folder and what it holds."""

    path: Path
    config: RunConfig
    source: Tokeniser
    target: Tokeniser

    @classmethod
    def create(cls, path: Path, config: RunConfig, source: Tokeniser, target: Tokeniser) -> "Run":
        """A new folder; one that exists is never written over."""
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            raise ValueError(f"{path}: exists already; choose another folder, or go on with --resume") from None
        (path / "checkpoints").mkdir()
        settings = config.model_dump(exclude_none=True)
        (path / "config.toml").write_text(tomli_w.dumps(settings))
        source.save(path / "source.json")
        target.save(path / "target.json")
        return cls(path, config, source, target)

    @classmethod
    def open(cls, path: Path) -> "Run":
        """A folder that is there, checked before use."""
        try:
            settings = tomllib.loads((path / "config.toml").read_text())
        except OSError:
            raise ValueError(f"{path}: is no run of saccade: it has no config.toml") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"{path / 'config.toml'}: {error}") from None
        config = RunConfig.read(settings, str(path / "config.toml"))
        return cls(path, config, Tokeniser.load(path / "source.json"), Tokeniser.load(path / "target.json"))

    def build(self) -> Model:
        """The model with its first weights, which the seed decides."""
        torch.manual_seed(self.config.train.seed)
        return build(self.config.model, len(self.source), len(self.target))

    def model(self) -> Model:
        """The model with its best weights."""
        model = self.build()
        tensors, _ = load_tensors(self.path / "model.safetensors")
        try:
            model.load_state_dict(tensors)
        except RuntimeError as error:
            raise ValueError(f"{self.path / 'model.safetensors'}: does not fit config.toml ({error})") from None
        return model.eval()

    def note(self, **figures: Any) -> None:
        """A line in metrics.jsonl."""
        with (self.path / "metrics.jsonl").open("a") as file:
            file.write(json.dumps(figures) + "\n")

    def finished(self) -> bool:
        """Whether the plan was carried out to its last step."""
        plan, done = self.path / "plan.json", self.checkpoints()
        return plan.exists() and bool(done) and int(done[-1].stem) >= Plan.load(plan).steps

    def checkpoints(self) -> list[Path]:
        """From the oldest to the newest."""
        return sorted((self.path / "checkpoints").glob("*.safetensors"))


def save_tensors(path: Path, tensors: dict[str, Tensor], facts: dict[str, Any] | None = None) -> None:
    """Written beside and renamed: a reader sees the old file or the new one, never half of one."""
    beside = path.with_suffix(".part")
    save_file({k: t.contiguous() for k, t in tensors.items()}, beside, {"facts": json.dumps(facts or {})})
    with beside.open("rb") as file:
        os.fsync(file.fileno())
    beside.replace(path)


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    try:
        with safe_open(path, "pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, json.loads((file.metadata() or {})["facts"])  # noqa: SIM118
    except (OSError, SafetensorError, KeyError, json.JSONDecodeError) as error:
        raise ValueError(f"{path}: cannot be read ({error})") from None
