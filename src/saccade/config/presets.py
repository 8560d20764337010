"""Sizes by name, and which of them suits how much data.

What was measured of these choices so far, on dates and on words to phones, is in docs/experiments.md.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

from saccade.config.model import FAMILIES, OWNERS, Family
from saccade.errors import unknown

Settings = dict[str, dict[str, Any]]

_RECURRENT: dict[str, Settings] = {
    "tiny": {
        "model": {"width": 128, "embedding": 64},
        "train": {"batch_tokens": 700, "learning_rate": 5e-3},
    },
    "small": {
        "model": {"width": 256, "embedding": 64},
        "train": {"batch_tokens": 1000, "learning_rate": 5e-3},
    },
    "base": {
        "model": {"width": 512, "embedding": 256},
        "train": {"batch_tokens": 3000, "learning_rate": 1e-3},
    },
}
_TRANSFORMER: dict[str, Settings] = {
    "tiny": {
        "model": {"width": 128, "layers": 2, "heads": 4, "hidden": 256},
        "train": {"batch_tokens": 1500, "learning_rate": 2e-3},
    },
    "small": {
        "model": {"width": 256, "layers": 3, "heads": 8, "hidden": 512, "tied": True},
        "train": {"batch_tokens": 1500, "learning_rate": 1e-3},
    },
    "base": {
        "model": {"width": 512, "layers": 4, "heads": 8, "hidden": 2048, "tied": True},
        "train": {"batch_tokens": 8000, "learning_rate": 5e-4},
    },
}
PRESETS: dict[Family, dict[str, Settings]] = {
    "seq2seq": _RECURRENT,
    "bahdanau": {name: {**p, "model": {**p["model"], "score": "additive"}} for name, p in _RECURRENT.items()},
    "luong": {  # on dates additive learned sooner where to look; without feeding, training needs no loop over time
        name: {**p, "model": {**p["model"], "score": "additive", "feed": False}} for name, p in _RECURRENT.items()
    },
    "transformer": _TRANSFORMER,
}
MANY = 300_000  # pairs of sentences, for which a large model is worth its hunger
FEW = 2_000  # pairs, which want smaller batches
MANY_WORDS = 20_000  # that are spelt: 33,000 and more gained by relatives, or groups; 8,000 by neither
GROUPS = {"groups": 5, "group_rows": 65_536}  # for those where nothing can be counted, and so no relatives be known
PLENTY = 50_000  # words that are spelt, for which steps are many enough to be large: twice as many tokens a second
HURRIED = 15  # epochs: with fewer a walk has learned more, with more it is as well to write both ways
LEISURE = 25  # epochs, in whose time a wider model that walks both ways sees some ten, and does better
ENOUGH = 15  # epochs after which what was seen begins to be known by heart
FORGET = 0.5  # weight decay for pictures: what words alone foretell is learned first, and fades when sight tells more
FORGET_BY_TRANSFORMER = 0.3  # measured with half the learning rate, and more steps
DROPOUT = {  # for fewer pairs than that; for more, 0.1
    True: ((20_000, 0.4), (200_000, 0.2)),
    False: ((10_000, 0.3), (100_000, 0.2)),
}


@dataclass(frozen=True, slots=True)
class Amount:
    """How much there is to learn from, and how long."""

    pairs: int
    spelt: bool  # words that are spelt, not sentences
    passes: float = ENOUGH  # how often every pair will be seen by a model of the usual size, about
    minutes: float | None = None  # if there is a budget
    pictures: bool = False  # in place of a text as the source
    lent: bool = False  # pictures, seen by a network that learned it elsewhere


class Automatic(NamedTuple):
    """What was picked, and why."""

    family: Family
    preset: str
    settings: Settings
    why: str


def automatic(amount: Amount, asked: dict[str, Any], family: Family | None = None, preset: str = "auto") -> Automatic:
    """Family, size and dropout for so much data.

    `asked` are the model's settings that were asked for; a family is picked that has all of them. Dropout is for those
    who see the same pairs again and again: the fewer pairs and the more often, the more of it.
    """
    if family is not None and family not in FAMILIES:
        raise unknown("model", family, FAMILIES)
    if preset not in (*PRESETS["luong"], "auto"):
        raise unknown("preset", preset, [*PRESETS["luong"], "auto"])
    own_eyes = amount.pictures and not amount.lent  # Luong learns sooner to look, and to say what is true
    wish: Family = "luong" if amount.spelt or own_eyes else "transformer"
    order = [wish, *(f for f in FAMILIES if f != wish)]
    fitting = [f for f in order if all(f in OWNERS.get(name, FAMILIES) for name in asked)]
    chosen: Family = family or (fitting[0] if fitting else wish)
    if preset != "auto":
        size = preset
    elif amount.pictures:
        size = "tiny"
    elif amount.spelt:
        size = "tiny" if amount.passes < 2 else "small"
    else:
        little = amount.pairs < 5_000 or (amount.minutes is not None and amount.minutes < 3)
        size = "tiny" if little else "small" if amount.pairs < MANY else "base"
    settings = {name: dict(part) for name, part in PRESETS[chosen][size].items()}
    if not amount.spelt and chosen != "transformer":  # words need wider vectors than letters, and a gentler rate
        width = asked.get("width", settings["model"]["width"])
        settings["model"] |= {"embedding": width, "tied": asked.get("embedding", width) == width}
        settings["train"] = {"batch_tokens": 3000, "learning_rate": 2e-3}
    if amount.pictures:
        _see(settings, amount, chosen, asked.get("width"))
    elif amount.spelt and chosen != "transformer":
        _spell(settings, amount, size == "small" and preset == "auto")
    most = next((share for pairs, share in DROPOUT[amount.spelt] if amount.pairs < pairs), 0.1)
    dropout = round(most * min(1.0, amount.passes / ENOUGH), 2)
    settings["model"] = {"family": chosen, "dropout": dropout, **settings["model"]}
    if amount.spelt:
        settings["train"]["most_epochs"] = 4 * ENOUGH
    if amount.passes < 2 and not amount.pictures:
        settings["train"]["label_smoothing"] = 0.0  # nothing is seen often enough to be too sure of
    kind = "pictures" if amount.pictures else "words that are spelt" if amount.spelt else "sentences"
    return Automatic(
        chosen,
        size,
        settings,
        f"{amount.pairs:,} pairs of {kind}, time for some {amount.passes:.{0 if amount.passes >= 2 else 1}f} epochs: "
        f"dropout {settings['model']['dropout']}",
    )


def _spell(settings: Settings, amount: Amount, free: bool) -> None:
    """What is other where there are few words to be spelt or, if we are free to choose the size, plenty."""
    model, train = settings["model"], settings["train"]
    if amount.pairs < FEW:
        train |= {"batch_tokens": 500, "learning_rate": 3e-3}
    elif amount.pairs >= PLENTY and free:
        model["embedding"], train["batch_tokens"] = 128, 3000
        if amount.passes >= LEISURE:
            model |= {"width": 384, "dropout": 0.3}
            train |= {"learning_rate": 3e-3, "weight_decay": 0.1}


def _see(settings: Settings, amount: Amount, family: Family, width: int | None) -> None:
    """What is other where the source is a picture."""
    model = settings["model"]
    if family != "transformer":
        model["embedding"] = model["width"] if width is None else width
    if family == "luong":  # which thing was looked at last matters for what is said next of another
        model |= {"feed": True, "score": "scaled_dot"}
    rate, forget = (1e-3, FORGET_BY_TRANSFORMER) if family == "transformer" else (2e-3, FORGET)
    if amount.spelt:  # one text a picture: few tokens are many pictures, and no letter foretells the next
        settings["train"] = {"batch_tokens": 100, "learning_rate": 1e-3, "label_smoothing": 0.0}
    else:
        settings["train"] = {"batch_tokens": 1000, "learning_rate": rate, "weight_decay": forget}
