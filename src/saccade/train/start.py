"""From what was asked for to a run that is ready to train: what was read, what was checked, the new folder."""

import itertools
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from saccade.config import RunConfig
from saccade.config.presets import Amount, automatic
from saccade.config.train import LENGTHS
from saccade.data import (
    MOST_TOKENS,
    TASKS,
    UNKNOWN,
    Frame,
    Material,
    Pair,
    Source,
    Tokeniser,
    Watch,
    gather,
    swapped,
    tokenise,
    unwatched,
)
from saccade.errors import UsageError
from saccade.model import Counts, build
from saccade.search import GROWTH, PICTURED, ROOM
from saccade.train.choices import ORDERED, Asked, choose, set_length
from saccade.train.memory import check_room
from saccade.train.pictures import check_eyes, check_grid, check_mirror, likely_frame
from saccade.train.run import Run, source_size
from saccade.train.step import find_board, find_device

STRANGE = 0.1  # share of targets with symbols that a lender cannot write: more is another task
NEARLY_ALL = 0.999  # share of the pairs whose length an output may have


def start(
    output: Path,
    asked: Asked,
    *,
    preset: str = "auto",
    init: Path | None = None,
    force: bool = False,
    say: Callable[[str], None],
    watch: Watch = unwatched,
) -> tuple[Run, Material]:
    """A new run folder for what was asked, as config.toml would have it, and the material to train it on.

    Nothing is written before everything was read and checked. A folder that exists is replaced only with `force`, and
    only if it is a run. `watch` is told how far the reading of pictures is.
    """
    asked = check(asked, preset)
    if output.exists() and not force:
        if not (output / "config.toml").exists():
            raise ValueError(f"{output}: exists already, and is no run of saccade; choose another folder")
        raise ValueError(
            f"{output}: exists already; choose another folder, go on with --resume {output}, or replace it with --force"
        )
    if output.exists():
        try:
            Run.open(output)
        except ValueError as error:
            why = f"cannot be read ({error})" if (output / "config.toml").exists() else "is no run of saccade"
            raise ValueError(f"{output}: {why}, so --force will not remove it") from None
    if init is not None and preset != "auto":
        raise UsageError("--preset: the run given by --init lends its size")
    lends = None if init is None else _lent(asked, Run.open(init))
    material = load(asked["data"], say, watch)
    pairs = material.sample
    texts = {"source": [p.source for p in pairs], "target": [p.target for p in pairs]}
    if init is not None and lends is not None:
        config, source, target, lent = lends
        say(f"starting from {init}: {config.model.family} with its symbols and sizes")
        _check_known(init, target, texts["target"], say)
    else:
        config, source, target = choose(asked, texts, material, preset, say)
        lent = None
    if isinstance(source, Frame) != material.source.pictures:
        raise UsageError(f"--init {init}: reads {'pictures' if isinstance(source, Frame) else 'text'}, unlike the data")
    if isinstance(source, Frame):
        check_grid(config, target, [*pairs, *material.dev])
        check_mirror(config, texts["target"], say)
        check_eyes(config, material, say)
        material.look(source)
    else:
        material.shorten(source, target, max(MOST_TOKENS, config.model.longest_source or 0))
        pairs = material.sample
        _check_lengths(config, source, target, [*pairs, *material.dev])
        _check_counted(config, source, target, pairs, say)
    for line in (*material.untold(), *_idle(asked, config)):
        say(line)
    own = asked["data"].get("growth")
    growth = _growth(source, target, pairs, say) if own is None else own
    with torch.device("meta"):  # what cannot be built, or cannot learn, leaves no folder behind
        check_room(build(config.model, source_size(config, source), len(target), config.shared))
    found = {
        "content": material.content,
        "growth": growth,
        "names": material.source.names and tuple(material.source.names),
    }
    data = config.data.model_copy(update=found)
    return _replace(output, say, config.model_copy(update={"data": data}), source, target, lent), material


def _replace(
    output: Path,
    say: Callable[[str], None],
    config: RunConfig,
    source: Tokeniser | Frame,
    target: Tokeniser,
    lent: dict[str, dict[str, Tensor]] | None,
) -> Run:
    """A new run; one that stood there is gone only when the new one is whole."""
    if not output.exists():
        return Run.create(output, config, source, target, lent)
    output, here = output.resolve(), Path.cwd()  # "." has no name that another could stand beside
    names = (output.with_name(f"{output.name}.old{n or ''}") for n in itertools.count())
    while (old := next(names)).exists():
        say(f"{old}: is left as it is, perhaps from a --force that was killed")
    output.rename(old)
    try:
        run = Run.create(output, config, source, target, lent)
    except BaseException:
        shutil.rmtree(output, ignore_errors=True)
        old.rename(output)
        raise
    shutil.rmtree(old)
    if here.is_relative_to(output):
        os.chdir(output)  # whoever works inside is not left in a folder that is gone
    return run


def load(data: dict[str, Any], say: Callable[[str], None], watch: Watch = unwatched) -> Material:
    """The pairs that a [data] section names; what was left out is said."""
    if not data.get("train"):
        raise UsageError(f"nothing to train on: give pairs, pictures with captions, or one of {', '.join(TASKS)}")

    def source(part: str) -> Source:
        read = {name: data[name] for name in ("columns", "langs", "strict", "names") if data.get(name)}
        return Source(data[part], part, **read)

    train, dev = source("train"), source("dev") if data.get("dev") else None
    material = gather(train, dev)
    material.watch = watch
    for line in (*train.recognised(), *(dev.recognised() if dev else [])):
        say(line)
    if data.get("content") not in (None, material.content):
        raise ValueError(f"{data['train'][0]}: holds other pairs than when the run began; start a new run, or --init")
    for line in material.untold():
        say(line)
    if material.leaked:
        say(f"{material.leaked} of {len({p.source for p in material.dev})} dev sources stand in train too")
    if data.get("dev") and not material.source.pictures and swapped(material.sample, material.dev):
        say(f"{data['dev'][0]}: its sides seem to stand the other way round than those of {data['train'][0]}")
    return material


def check(asked: Asked, preset: str) -> Asked:
    """What can be wrong before any file is read; returns the settings as they were understood, such as "2" for 2; what
    is None was left open.
    """
    check_sections(asked)
    asked = {
        name: {key: value for key, value in part.items() if value is not None} if isinstance(part, dict) else part
        for name, part in asked.items()
    }
    model = asked.get("model", {})
    family = automatic(Amount(1, True), model, model.get("family"), preset).family
    settings = {**asked, "model": {"family": family, **model}}
    if "image" in asked:
        settings["image"] = likely_frame(asked["image"])
    config = RunConfig.read(settings)
    find_device(config.train.device)
    if config.train.tensorboard:
        find_board()
    read = config.model_dump()
    return {
        name: {key: read[name][key] for key in part} if isinstance(part, dict) else read[name]
        for name, part in asked.items()
    }


def check_sections(asked: Asked, where: str = "settings") -> None:
    """Whether what is merged and looked into has the form for it."""
    for name, section in asked.items():
        if not isinstance(section, dict) and name in ("data", "model", "train", "source", "target", "image"):
            raise UsageError(f"{where}: {name}: expected a section of settings, found {section!r}")
    for part in ("train", "dev"):
        files = asked.get("data", {}).get(part, [])
        if not (isinstance(files, str) or (isinstance(files, list | tuple) and all(isinstance(f, str) for f in files))):
            raise UsageError(f"{where}: data.{part}: expected a file or a list of files, found {files!r}")


def _lent(asked: Asked, lender: Run) -> tuple[RunConfig, Tokeniser | Frame, Tokeniser, dict[str, dict[str, Tensor]]]:
    for section in ("model", "source", "target", "shared", "image"):
        if asked.get(section):
            raise UsageError(f"--init: the run lends its {section}, so nothing of it can be changed")
    lent = lender.config.settings()
    train = dict(asked.get("train", {}))
    set_length(train)
    kept = {k: v for k, v in lent["train"].items() if k not in LENGTHS}
    config = RunConfig.read({**lent, "data": asked["data"], "train": {**kept, **train}})
    return config, lender.source, lender.target, lender.lends()


def _check_known(init: Path, target: Tokeniser, texts: list[str], say: Callable[[str], None]) -> None:
    """What a lender cannot write it cannot be taught: no output ever holds an unknown symbol."""
    strange = [text for text, ids in zip(texts, target.encode_all(texts), strict=True) if UNKNOWN in ids]
    if not strange:
        return
    what = f"--init {init}: {len(strange):,} of {len(texts):,} targets have symbols that it cannot write, such as"
    encoded = target.encode(strange[0])
    what += next(f" {strange[0][a:b]!r}" for n, (a, b) in zip(encoded.ids, encoded.spans, strict=True) if n == UNKNOWN)
    if len(strange) > STRANGE * len(texts):
        raise ValueError(f"{what}; train a new run without it")
    say(what)


def _check_counted(
    config: RunConfig, source: Tokeniser, target: Tokeniser, pairs: list[Pair], say: Callable[[str], None]
) -> None:
    sizes, asked = (len(source), len(target)), "relatives" if config.model.relatives else "counts"
    if config.model.counts and not Counts.listable(sizes):
        raise UsageError(f"model.{asked}: so many symbols make too many pieces to be listed; leave it out")
    if config.model.relatives:
        few = list(tokenise(pairs[:: max(1, len(pairs) // ORDERED)], source, target))
        if not Counts.can(few, sizes):
            say("model.relatives: many pairs are too long, or cannot be cut into pieces, so little is known of them")


def _check_lengths(config: RunConfig, source: Tokeniser, target: Tokeniser, pairs: list[Pair]) -> None:
    longest = config.model.longest_source
    if longest is None:
        return
    needed = 1 + max(max(map(len, numbers)) for numbers in tokenise(pairs, source, target))
    if needed > longest:
        raise UsageError(f"model.max_length={longest}, but the data needs {needed}: --set model.max_length={needed}")


def _idle(asked: Asked, config: RunConfig) -> list[str]:
    """What was asked for and changes nothing."""
    model = config.model
    idle = {
        ("model", "group_rows"): "there are no model.groups" if not model.groups else "",
        ("model", "max_length"): "this model reads any length" if model.longest_source is None else "",
        ("model", "residual"): "there is one layer" if model.layers == 1 else "",
        ("train", "most_epochs"): "no train.minutes are to be filled" if config.train.minutes is None else "",
    }
    return [
        f"{section}.{name}: changes nothing here, since {why}"
        for (section, name), why in idle.items()
        if why and asked.get(section, {}).get(name)
    ]


def _growth(source: Tokeniser | Frame, target: Tokeniser, pairs: list[Pair], say: Callable[[str], None]) -> float:
    """How many tokens an output may have for each of its source: what nearly all pairs have, and a quarter more.

    A few strange pairs do not count: the limit is there to end what goes round in circles.
    """
    written = np.array([len(ids) + 1 for ids in target.encode_all([p.target for p in pairs])])
    read: NDArray[np.int64] | int = PICTURED
    if isinstance(source, Tokeniser):
        read = np.array([len(ids) + 1 for ids in source.encode_all([p.source for p in pairs])])
    growth = round(1.25 * float(np.quantile((written - ROOM) / read, NEARLY_ALL)), 2)
    if growth <= GROWTH:
        return GROWTH
    say(f"length: targets are long, so an output may have {growth:g} tokens for each of its source (data.growth)")
    return growth


def merge(asked: Asked, more: Asked) -> Asked:
    """Settings of both, those of `more` where they differ."""
    merged: Asked = {name: dict(part) if isinstance(part, dict) else part for name, part in asked.items()}
    for name, part in more.items():
        both = isinstance(part, dict) and isinstance(merged.get(name, {}), dict)
        merged[name] = {**merged.get(name, {}), **part} if both else part
    return merged


def placed(asked: Asked) -> Asked:
    """Settings whose files are found from wherever the run is resumed."""
    check_sections(asked)
    data = asked.get("data", {})
    found = {part: place(data[part]) for part in ("train", "dev") if data.get(part)}
    return merge(asked, {"data": found}) if found else asked


def place(paths: str | Sequence[str]) -> list[str]:
    """Paths that still lead to their files when the run is resumed from elsewhere; a task is its name."""
    return [p if p in TASKS else os.path.realpath(p) for p in ([paths] if isinstance(paths, str) else paths)]
