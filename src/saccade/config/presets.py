"""Sizes by name, and which of them suits how much data.

The figures behind these choices are in docs/recipes.md, with the commands that make them.
"""

from typing import Any, Literal, NamedTuple

from saccade.config.model import FAMILIES, OWNERS, Family
from saccade.errors import unknown

Preset = Literal["tiny", "small", "base"]
Settings = dict[str, dict[str, Any]]

_RECURRENT: dict[str, Settings] = {
    "tiny": {
        "model": {"width": 128, "embedding": 64, "layers": 1},
        "train": {"batch_tokens": 1000, "learning_rate": 2e-3},
    },
    "small": {
        "model": {"width": 256, "embedding": 64, "layers": 1},
        "train": {"batch_tokens": 1500, "learning_rate": 2e-3},
    },
    "base": {
        "model": {"width": 512, "embedding": 256, "layers": 1},
        "train": {"batch_tokens": 4000, "learning_rate": 1e-3},
    },
}
_TRANSFORMER: dict[str, Settings] = {
    "tiny": {
        "model": {"width": 128, "layers": 2, "heads": 4, "hidden": 512},
        "train": {"batch_tokens": 1500, "learning_rate": 2e-3},
    },
    "small": {
        "model": {"width": 256, "layers": 3, "heads": 4, "hidden": 1024, "tied": True},
        "train": {"batch_tokens": 4000, "learning_rate": 1e-3},
    },
    "base": {
        "model": {"width": 512, "layers": 4, "heads": 8, "hidden": 2048, "tied": True},
        "train": {"batch_tokens": 8000, "learning_rate": 5e-4},
    },
}
PRESETS: dict[Family, dict[str, Settings]] = {
    "seq2seq": _RECURRENT,
    "bahdanau": {name: {**p, "model": {**p["model"], "score": "additive"}} for name, p in _RECURRENT.items()},
    "luong": _RECURRENT,
    "transformer": _TRANSFORMER,
}


DROPOUT = ((2_000, 0.5), (20_000, 0.4), (50_000, 0.3), (200_000, 0.2))  # for fewer pairs than that


class Automatic(NamedTuple):
    """What was picked, and why."""

    family: Family
    preset: Preset
    settings: Settings
    why: str


def automatic(
    pairs: int, spelt: bool, asked: dict[str, Any], family: Family | None = None, preset: str = "auto"
) -> Automatic:
    """Family, size and dropout for so many pairs of words that are spelt, or of sentences.

    `asked` are the model's settings that were asked for; a family is picked that has all of them.
    """
    if family is not None and family not in FAMILIES:
        raise unknown("model", family, FAMILIES)
    if preset not in (*PRESETS["luong"], "auto"):
        raise unknown("preset", preset, [*PRESETS["luong"], "auto"])
    wish: Family = "luong" if spelt else "transformer"
    order = [wish, *(f for f in FAMILIES if f != wish)]
    fitting = [f for f in order if all(f in OWNERS.get(name, FAMILIES) for name in asked)]
    chosen: Family = family or (fitting[0] if fitting else wish)
    if preset == "auto":
        size: Preset = ("tiny" if pairs < 2_000 else "small") if spelt else ("small" if pairs < 300_000 else "base")
    else:
        size = preset  # type: ignore[assignment]
    dropout = next((share for most, share in DROPOUT if pairs < most), 0.1)
    settings = {name: dict(part) for name, part in PRESETS[chosen][size].items()}
    settings["model"] |= {"family": chosen, "dropout": dropout}
    return Automatic(chosen, size, settings, f"{pairs:,} pairs of {'words that are spelt' if spelt else 'sentences'}")
