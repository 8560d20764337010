"""Training from Python: what `saccade train` does, without a terminal."""

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from saccade.search import Translator
from saccade.train.choices import Asked
from saccade.train.loop import train as learn
from saccade.train.run import load
from saccade.train.start import check_sections, merge, placed, start


def train(
    data: str | Path | Sequence[str | Path],
    output: str | Path,
    *,
    dev: str | Path | Sequence[str | Path] = (),
    model: str | None = None,
    score: str | None = None,
    minutes: float | None = None,
    preset: str = "auto",
    settings: dict[str, dict[str, Any]] | None = None,
    init: str | Path | None = None,
    force: bool = False,
    quiet: bool = False,
) -> Translator:
    """Trains on pairs into the folder `output`; returns the model.

    `data` is a file of pairs, two parallel files, a folder of pictures with captions, or a built-in task.

    `settings` are those of config.toml, by section: `{"model": {"width": 128}}`.
    """
    began = time.perf_counter()
    check_sections(settings or {})
    asked: Asked = {"data": {"train": _paths(data), "dev": _paths(dev)}}
    for section, name, value in (("model", "family", model), ("model", "score", score), ("train", "minutes", minutes)):
        if value is not None:
            asked.setdefault(section, {})[name] = value

    def say(words: str) -> None:
        if not quiet:
            print(words, file=sys.stderr)  # noqa: T201

    merged = placed(merge(asked, settings or {}))
    where = None if init is None else Path(init)
    run, material = start(Path(output), merged, preset=preset, init=where, force=force, say=say)
    examples = material.examples(run.source, run.target, run.most_tokens)
    for line in material.untold():
        say(line)
    learn(run, examples, material.dev, began=began)
    return load(run.path)


def _paths(paths: str | Path | Sequence[str | Path]) -> list[str]:
    return [str(paths)] if isinstance(paths, str | Path) else [str(p) for p in paths]
