"""A run is a folder of plain files.

RUN/config.toml          every setting
RUN/plan.json            how many steps, when to evaluate
RUN/source.json          tokenisers
RUN/target.json
RUN/model.safetensors    the best weights
RUN/counts.safetensors   which symbols stand together, if they were counted
RUN/relatives.safetensors  the words that it learned from, if others are told of them
RUN/first.safetensors    the first weights, if another run lent them
RUN/checkpoints/         where to go on from, the last two
RUN/metrics.jsonl        what was measured on the way
"""

import json
import os
import shutil
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import tomli_w
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from saccade.config import RunConfig
from saccade.config.image import ImageConfig
from saccade.config.train import LENGTHS
from saccade.data import MOST_TOKENS, Frame, Numbers, Tokeniser
from saccade.files import UnwrittenError, written
from saccade.model import Counts, Lexicon, Model, build
from saccade.model.recurrent_encoder import RecurrentEncoder
from saccade.search import Translator, Voice
from saccade.train.plan import Plan

FIRST, COUNTS, RELATIVES = "first.safetensors", "counts.safetensors", "relatives.safetensors"
FORMAT = 1  # of the folder: older ones are read, newer ones refused
Noted = TypeVar("Noted")
FIGURES = ("step", "dev_loss", "score")  # that every line of metrics.jsonl has


class TornError(ValueError):
    """A file that was read, and does not hold what it should; not one that could not be read this time."""


@dataclass(frozen=True, slots=True)
class Run:
    """A folder and what it holds."""

    path: Path
    config: RunConfig
    source: Tokeniser | Frame
    target: Tokeniser

    @classmethod
    def create(
        cls,
        path: Path,
        config: RunConfig,
        source: Tokeniser | Frame,
        target: Tokeniser,
        lent: dict[str, dict[str, Tensor]] | None = None,
    ) -> "Run":
        """A new folder; one that exists is never written over. `lent` are files of another run to begin with."""
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            raise ValueError(f"{path}: exists already; choose another folder, or go on with --resume") from None
        (path / "checkpoints").mkdir()
        run = cls(path, config, source, target)
        try:
            for name, side in (("source.json", source), ("target.json", target)):
                if isinstance(side, Tokeniser):
                    with written(path / name) as beside:
                        side.save(beside)
            for name, tensors in (lent or {}).items():
                save_tensors(path / name, tensors)
            run._save_config()  # last: a folder without it is no run
        except UnwrittenError:
            shutil.rmtree(path, ignore_errors=True)
            raise
        return run

    def _save_config(self) -> None:
        with written(self.path / "config.toml") as beside:
            beside.write_text(tomli_w.dumps(self.config.settings()))

    @classmethod
    def open(cls, path: Path) -> "Run":
        """A folder that is there, checked before use."""
        try:
            settings = tomllib.loads((path / "config.toml").read_text())
        except OSError:
            why = "is no run of saccade: it has no config.toml" if path.is_dir() else "no such run"
            raise ValueError(f"{path}: {why}") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"{path / 'config.toml'}: {error}") from None
        if isinstance(version := settings.get("format"), int) and version > FORMAT:
            raise ValueError(f"{path}: a run of format {version}, newer than this saccade knows ({FORMAT})")
        config = RunConfig.read(settings, str(path / "config.toml"))
        return cls(
            path, config, frame_of(config) or Tokeniser.load(path / "source.json"), Tokeniser.load(path / "target.json")
        )

    def build(self) -> Model:
        """The model with its first weights, which the seed decides."""
        torch.manual_seed(self.config.train.seed)
        return build(self.config.model, source_size(self.config, self.source), len(self.target), self.config.shared)

    def first_model(self) -> Model:
        """The model that training begins with."""
        model = self._told(self.build())
        if (self.path / FIRST).exists():
            self._fill(model, FIRST)
        return model

    def lends(self) -> dict[str, dict[str, Tensor]]:
        """What another run can begin with, by the names that it has there: the best weights, and what they are used
        to be told.
        """
        weights, _ = self.model().state_dict(), self.counts()  # both are checked here, where they lie
        told = {COUNTS: self.config.model.counts, RELATIVES: self.config.model.relatives}
        return {FIRST: weights, **{name: load_tensors(self.path / name)[0] for name, lent in told.items() if lent}}

    def changed(self, changes: dict[str, Any]) -> "Run":
        """The same run with another learning rate or length; nothing is written."""
        train = {
            k: v
            for k, v in self.config.train.model_dump().items()
            if k not in LENGTHS or not set(LENGTHS) & set(changes)
        }
        config = RunConfig.read({**self.config.settings(), "train": {**train, **changes}})
        return replace(self, config=config)

    def replan(self, changes: dict[str, Any]) -> "Run":
        """The same run with another learning rate or length: from where it is, a new plan will be made."""
        run = self.changed(changes)
        run._save_config()
        (self.path / "plan.json").unlink(missing_ok=True)
        return run

    def model(self) -> Model:
        """The model with its best weights."""
        if not (self.path / "model.safetensors").exists():
            raise ValueError(
                f"{self.path}: has no weights yet: it stopped before the dev set was first looked at; "
                f"go on with: saccade train --resume {self.path}"
            )
        model = self._told(self.build())
        self._fill(model, "model.safetensors")
        return model.eval()

    @property
    def most_tokens(self) -> int:
        """Of a source or an output: what is longer is cut, and said to be; nothing is learned from it."""
        return self.config.model.longest_source or MOST_TOKENS

    def translator(self, model: Model) -> Translator:
        """A model of this run at work."""
        return _at_work([self], [model])

    def count(self, examples: Sequence[Numbers]) -> None:
        """Counts what stands together in these pairs, and notes the words, if the run is to know that and does not
        yet.
        """
        model, counts = self.config.model, None
        for name, wanted in ((COUNTS, model.counts), (RELATIVES, model.relatives)):
            if wanted and (self.path / FIRST).exists() and not (self.path / name).exists():
                raise ValueError(f"{self.path / name}: is gone, and was lent (--init); begin again, or copy it back")
        if model.counts and not (self.path / COUNTS).exists():
            assert isinstance(self.source, Tokeniser)
            counts = Counts.learn(examples, (len(self.source), len(self.target)))
            self._note_down(COUNTS, counts.arrays())
        if model.relatives and not (self.path / RELATIVES).exists():
            counts = counts or self.counts()
            assert counts is not None
            self._note_down(RELATIVES, Lexicon.learn(examples, counts).arrays())

    def counts(self) -> Counts | None:
        """What was counted, if anything."""
        if not self.config.model.counts:
            return None
        return self._noted(COUNTS, Counts.of)

    def _told(self, model: Model) -> Model:
        """A model with the words that it is to be told of, if any."""
        if self.config.model.relatives:
            assert isinstance(model.encoder, RecurrentEncoder)
            assert model.encoder.relatives is not None
            model.encoder.relatives.lexicon = self._noted(RELATIVES, Lexicon.of)
        return model

    def _note_down(self, file: str, arrays: dict[str, NDArray[np.generic]]) -> None:
        save_tensors(self.path / file, {name: torch.from_numpy(array) for name, array in arrays.items()})

    def _noted(self, file: str, read: Callable[[dict[str, NDArray[Any]]], Noted]) -> Noted:
        """What was noted down of the pairs, if it is of this run's symbols."""
        assert isinstance(self.source, Tokeniser)
        arrays = {name: tensor.numpy() for name, tensor in load_tensors(self.path / file)[0].items()}
        try:
            if arrays["sizes"].tolist() == [len(self.source), len(self.target)]:
                return read(arrays)
        except (KeyError, IndexError, TypeError, ValueError):
            pass
        raise ValueError(f"{self.path / file}: does not fit the symbols of the run")

    def _fill(self, model: Model, name: str) -> None:
        tensors, _ = load_tensors(self.path / name)
        try:
            model.load_state_dict(tensors)
        except RuntimeError:
            raise ValueError(f"{self.path / name}: does not fit config.toml: other sizes or other names") from None

    def note(self, **figures: Any) -> None:
        """A line in metrics.jsonl."""
        path = self.path / "metrics.jsonl"
        try:
            with path.open("a") as file:
                file.write(json.dumps(figures) + "\n")
        except OSError as error:
            raise UnwrittenError(path, error) from None

    def notes(self) -> list[dict[str, Any]]:
        """What was measured on the way, line by line; one that is torn or lacks a figure is left out."""
        path, found = self.path / "metrics.jsonl", []
        for line in path.read_text("utf-8", "replace").splitlines() if path.exists() else []:
            try:
                note = json.loads(line)
            except ValueError:
                continue
            if isinstance(note, dict) and all(isinstance(note.get(k), int | float) for k in FIGURES):
                found.append(note)
        return found

    def forget_after(self, step: int) -> None:
        """Leaves out what was measured after this step, and will be again, and torn lines: they swallow the next."""
        path = self.path / "metrics.jsonl"
        kept = "".join(json.dumps(n) + "\n" for n in self.notes() if n["step"] <= step)
        if path.exists() and path.read_bytes() != kept.encode():
            with written(path) as beside:
                beside.write_text(kept)

    def facts(self) -> dict[str, Any]:
        """What the run is, what it learned from, how good it is."""
        model, notes = self.build(), self.notes()
        done = self.checkpoints()
        plan = Plan.load(self.path / "plan.json") if (self.path / "plan.json").exists() else None
        usual = "exact" if self.config.target.spelt else "bleu"  # older files do not tell
        metric = next((n["metric"] for n in notes if "metric" in n), usual)
        kept, sources = self._kept()
        likely = [n for n in notes if n["step"] == kept] or notes
        best = max(likely, key=lambda n: (n["score"], -n["dev_loss"]), default=None)
        return {
            "family": self.config.model.family,
            "parameters": sum(p.numel() for p in model.parameters()),
            "source": self.reads(),
            "target": f"{self.config.target.kind}, {len(self.target):,} symbols",
            "trained_on": self.config.data.train,
            "measured_on": self.config.data.dev or ["a part of it, held back"],
            "steps": int(done[-1].stem) if done else 0,
            "planned": plan.last if plan else 0,
            "finished": self.finished(),
            **({"dev_loss": best["dev_loss"], f"dev_{metric}": best["score"]} if best else {}),
            **({"dev_sources": sources} if best and sources else {}),
            "model": self.config.model.settings(),
        }

    def _kept(self) -> tuple[int | None, int]:
        """The step whose weights are kept as the best, and of how many dev sources their score is; older files do not
        tell.
        """
        try:
            with safe_open(self.path / "model.safetensors", "pt") as file:
                facts = json.loads((file.metadata() or {})["facts"])
            step, (*_, sources) = facts["step"], facts.get("best", [0])
            return step if isinstance(step, int) else None, sources if isinstance(sources, int) else 0
        except (OSError, SafetensorError, KeyError, TypeError, ValueError):
            return None, 0

    def reads(self) -> str:
        """What its sources are."""
        if isinstance(self.source, Frame):
            image = self.config.image
            assert image is not None
            eyes = image.backbone or image.encoder
            return f"pictures of {image.height}×{image.width}, {eyes}, cells of {image.stride} pixels"
        return f"{self.config.source.kind}, {len(self.source):,} symbols"

    def finished(self) -> bool:
        """Whether the plan was carried out to its last step."""
        plan, done = self.path / "plan.json", self.checkpoints()
        return plan.exists() and bool(done) and int(done[-1].stem) >= Plan.load(plan).last

    def checkpoints(self) -> list[Path]:
        """From the oldest to the newest; each is named by its step."""
        return sorted(p for p in (self.path / "checkpoints").glob("*.safetensors") if p.stem.isdecimal())


def load(path: Path | str, *others: Path | str) -> Translator:
    """A run, ready to write: `load(RUN)("text")` is a Prediction. Several that write the same symbols write as one."""
    runs = [Run.open(Path(p)) for p in (path, *others)]
    first = runs[0]
    for other in runs[1:]:
        if other.config.image != first.config.image:
            raise ValueError(
                f"{other.path}: reads other sources than {first.path}; runs that write as one read the same"
            )
        if (other.path / "target.json").read_bytes() != (first.path / "target.json").read_bytes():
            raise ValueError(f"{other.path}: writes other symbols than {first.path}; runs that write as one share them")
    if isinstance(first.source, Frame):
        first.source.eyes()  # who is gone, or has changed, is told now and not of every picture
    return _at_work(runs, [run.model() for run in runs])


def _at_work(runs: Sequence[Run], models: Sequence[Model]) -> Translator:
    """Models of runs that write the same symbols, each with what its run reads and counted."""
    first, sources = runs[0], [run.source for run in runs]
    marks = [source.fingerprint() if isinstance(source, Tokeniser) else "" for source in sources]  # one frame for all
    readers = [sources[marks.index(mark)] for mark in marks]  # who reads alike is one reader
    limits = [limit for run in runs if (limit := run.config.model.longest_source) is not None]
    layers = {run.config.model.glances for run in runs}
    return Translator(
        [Voice(model, reader, run.counts()) for run, model, reader in zip(runs, models, readers, strict=True)],
        first.target,
        min(limits, default=MOST_TOKENS),
        layers.pop() if len(layers) == 1 else 0,
        first.config.target.spelt,
        max(run.config.data.growth for run in runs),
    )


def save_tensors(path: Path, tensors: dict[str, Tensor], facts: dict[str, Any] | None = None) -> None:
    seen: set[int] = set()
    apart = {}
    for name, tensor in tensors.items():  # the format has no word for a tensor with two names
        apart[name] = tensor.detach().clone() if tensor.data_ptr() in seen else tensor.detach().contiguous()
        seen.add(tensor.data_ptr())
    with written(path) as beside:
        beside.touch()
        mode = beside.stat().st_mode  # safetensors writes files that nobody else may read: a service could not
        try:
            save_file(apart, beside, {"facts": json.dumps(facts or {})})
        except SafetensorError as error:  # which is its word for every reason
            raise OSError(error) from None
        beside.chmod(mode)
        with beside.open("rb") as file:
            os.fsync(file.fileno())


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    try:
        with safe_open(path, "pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, json.loads((file.metadata() or {})["facts"])  # noqa: SIM118
    except (SafetensorError, KeyError, json.JSONDecodeError) as error:
        raise TornError(f"{path}: cannot be read ({error})") from None
    except OSError as error:
        raise ValueError(f"{path}: cannot be read ({error})") from None


def frame_of(config: RunConfig) -> Frame | None:
    image = config.image
    return None if image is None else Frame(image.height, image.width, image.backbone, image.weights)


def source_size(config: RunConfig, source: Tokeniser | Frame) -> int | ImageConfig:
    """What a model must know of its source: how many symbols it has, or how its pictures are read."""
    if isinstance(source, Tokeniser):
        return len(source)
    assert config.image is not None
    return config.image
