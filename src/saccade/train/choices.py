"""What was left open is chosen here, from the data and from how often there is time to see it, and said."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch

from saccade.config import ModelConfig, RunConfig
from saccade.config.presets import (
    FEW,
    GROUPS,
    HURRIED,
    LEISURE,
    MANY_WORDS,
    PLENTY,
    Amount,
    Automatic,
    automatic,
)
from saccade.config.train import LENGTHS
from saccade.data import (
    MOST_TOKENS,
    Batch,
    Examples,
    Frame,
    Material,
    Numbers,
    Tokeniser,
    batches,
    choose_tokenisers,
    tokenise,
)
from saccade.data.order import order, recurring
from saccade.errors import UsageError
from saccade.model import Counts, build
from saccade.train.memory import check_room, mind_memory
from saccade.train.pictures import guessed_passes, near, picked_image, read_along
from saccade.train.plan import most_steps
from saccade.train.run import frame_of
from saccade.train.step import find_device, quickest

ORDERED = 1_000  # pairs whose order is looked at
IN_STEP = {True: 0.8, False: 0.7}  # from which correlation on it is kept: of words that are spelt, and of sentences
RECURRING = 0.4  # share of three symbols in a row from which on groups are worth remembering: random letters have less
SHORT, WALKABLE = 40, 250_000  # symbols of a source, and of source times target at most: so much is counted, or walked
WALKED, CHOSEN = 20, 4_000  # symbols of a source that is walked over, and of the target at all its places, in the mean
ROUNDED = 250_000  # numbers that a layer makes of a batch: bfloat16 is 1.1 times as quick there, and no quicker at half
TRIED = 5_000  # pairs on which the time of a step is measured
STEPPING = 0.8  # share of a budget that goes into steps
TRYING = 0.005  # share of it that goes into this measurement, and as much again for another number of threads
MINUTES = 5.0  # of training, unless something else is asked for
Asked = dict[str, dict[str, Any]]  # settings by section
Say = Callable[[str], None]


def choose(
    asked: Asked, texts: dict[str, list[str]], material: Material, preset: str, say: Say
) -> tuple[RunConfig, Tokeniser | Frame, Tokeniser]:
    """Every setting of a run, and its tokenisers or, in place of the source's, the frame of its pictures."""
    asked = {name: dict(part) if isinstance(part, dict) else part for name, part in asked.items()}
    seen = material.source.pictures
    if seen:
        for name in ("source", "shared"):
            if asked.get(name):
                raise UsageError(f"{name}: is for text, but the sources are pictures; see the section image")
        asked["image"] = picked_image(texts["source"], dict(asked.get("image", {})), say)
        texts = {"target": texts["target"]}
    elif asked.pop("image", None):
        raise UsageError("image: is for pictures, but the sources are text")
    _choose_symbols(asked, texts, say)
    asked.setdefault("model", {})
    train = asked.setdefault("train", {})
    set_length(train)
    spelt = any(asked[side]["kind"] in ("characters", "symbols") for side in texts)
    lent = seen and asked["image"].get("backbone") is not None
    amount = Amount(material.count, spelt, minutes=train.get("minutes"), pictures=seen, lent=lent)
    if seen:
        amount = replace(amount, passes=guessed_passes(train, texts["target"], asked["target"]["kind"]))
    config, picked = _drafted(asked, amount, preset)
    learnt = _learnt(config, texts)
    if not seen:
        material.shorten(learnt["source"], learnt["target"], max(MOST_TOKENS, config.model.longest_source or 0))
        usual, amount = picked.preset, replace(amount, passes=_passes(config, learnt, material))
        config, picked = _drafted(asked, amount, preset)
        if picked.preset != usual:  # a smaller model sees more
            amount = replace(amount, passes=_passes(config, learnt, material))
            config, picked = _drafted(asked, amount, picked.preset)
    own = ((part, asked[part]) for part in ("model", "train"))
    others = "".join(_instead(picked.settings[part], given) for part, given in own)
    say(f"model: {picked.family}, {picked.preset} ({picked.why}){others}")
    if config.train.precision != "float32" and "precision" not in train:
        say("precision: products in bfloat16, since this processor is made for them (train.precision=float32: without)")
    if (frame := frame_of(config)) is not None:
        return read_along(config, asked, say), frame, learnt["target"]
    config = _ordered(config, asked, learnt, material, amount.passes, say)
    if config.shared and config.source != config.target:
        raise UsageError("shared: both sides have the same symbols, so [source] and [target] must be alike")
    return config, learnt["source"], learnt["target"]


def _choose_symbols(asked: Asked, texts: dict[str, list[str]], say: Say) -> None:
    """Fills in what each side is cut into, where that was left open."""
    found = choose_tokenisers(texts.get("source"), texts["target"], shared=bool(asked.get("shared")))
    choices = {side: choice for side, choice in zip(("source", "target"), found, strict=True) if side in texts}
    for side, choice in choices.items():
        kind = asked.get(side, {}).get("kind", choice.config.kind)
        if "size" in asked.get(side, {}) and kind in ("characters", "symbols"):
            raise UsageError(f"{side}.size: is for words, bpe and unigram, but the {side} is {kind}")
        if "kind" not in asked.setdefault(side, {}):
            chosen, own = choice.config.model_dump(), asked[side]
            asked[side] = {**chosen, **own}
            say(f"{side}: {choice.config.kind} ({choice.why}){_instead(chosen, own)}")


def _learnt(config: RunConfig, texts: dict[str, list[str]]) -> dict[str, Tokeniser]:
    """A tokeniser for each side that has texts."""
    every = [t for both in texts.values() for t in both] if config.shared else []
    sides = ((side, config.source if side == "source" else config.target) for side in texts)
    return {
        side: Tokeniser.train(every or texts[side], c.kind, size=c.size, form=c.form, lower=c.lower)
        for side, c in sides
    }


def _drafted(asked: Asked, amount: Amount, preset: str) -> tuple[RunConfig, Automatic]:
    """The settings that suit so much, but for those that were asked for."""
    picked = automatic(amount, asked["model"], asked["model"].get("family"), preset)
    settings = {**asked, **{part: {**picked.settings[part], **asked[part]} for part in ("model", "train")}}
    if amount.pictures:
        settings["image"] = near(asked["image"], picked.family)
    config = RunConfig.read(settings)
    if "precision" not in settings["train"]:
        config = config.model_copy(update={"train": config.train.model_copy(update={"precision": precision(config)})})
    return config, picked


def _passes(config: RunConfig, learnt: dict[str, Tokeniser], material: Material) -> float:
    """How often every pair will be seen: as was asked for or, of a budget in minutes, as this machine turns out to be.

    It is measured on a walk where words are spelt, as one it may become; to write both ways takes as long.
    """
    if config.train.epochs is not None:
        return config.train.epochs
    few = material.sample[:: max(1, len(material.sample) // TRIED)]
    longest = config.model.longest_source or MOST_TOKENS
    numbers = [n for n in tokenise(few, learnt["source"], learnt["target"]) if max(map(len, n)) < longest]
    examples = Examples.of(numbers)
    rows = batches(examples, config.train.batch_tokens, config.train.seed, 0)
    epoch = max(1.0, len(rows) * material.count / max(1, len(numbers)))  # steps
    if config.train.steps is not None or not numbers:
        return (config.train.steps or epoch) / epoch
    assert config.train.minutes is not None
    sizes = len(learnt["source"]), len(learnt["target"])
    walks = config.source.spelt and config.target.spelt and config.model.can_walk and _walkable(numbers, sizes[1])
    tried = config.model.model_copy(update={"counts": False, "relatives": False, "walk": config.model.walk or walks})
    device = find_device(config.train.device)
    mind_memory()
    with torch.device("meta"):
        check_room(build(tried, *sizes, config.shared))
    with torch.random.fork_rng(devices=[]):
        model = build(tried, *sizes, config.shared).to(device)
    endless = (Batch.of([examples[i] for i in row]).to(device) for row in itertools.cycle(rows))
    _, seconds = quickest(model, config.train, endless, TRYING)
    steps = STEPPING * 60 * config.train.minutes / seconds
    return min(steps, most_steps(config.train, round(epoch))) / epoch


def set_length(train: dict[str, Any]) -> None:
    """Who says nothing of how long to train gets the usual budget."""
    if all(train.get(name) is None for name in LENGTHS):
        train["minutes"] = MINUTES


def precision(config: RunConfig) -> str:
    """What products are computed in: bfloat16 where a processor has instructions for it and they are large enough."""
    told = getattr(torch.cpu, "get_capabilities", dict[str, Any])()  # since torch 2.9
    able = config.train.device == "cpu" and (told.get("avx512_bf16") or told.get("amx_bf16"))
    size = config.train.batch_tokens * config.model.width
    pixels = config.image is not None and config.image.backbone is None  # convolutions are no quicker for it
    return "bfloat16" if able and not pixels and size >= ROUNDED else "float32"


def _instead(chosen: dict[str, Any], own: dict[str, Any]) -> str:
    """Which of the automatic choices somebody knew better."""
    return "".join(f", {name}={own[name]}" for name in own if name in chosen and own[name] != chosen[name])


def _ordered(
    config: RunConfig, asked: Asked, learnt: dict[str, Tokeniser], material: Material, passes: float, say: Say
) -> RunConfig:
    """Where the target keeps step with the source, attention is told so from the start; where words are spelt, more
    follows from it.

    Of sentences only a recurrent decoder is told, which has one look at them; a Transformer has many, and needs them.
    """
    spelt = config.source.spelt and config.target.spelt
    told = ("luong", "bahdanau", "transformer") if spelt else ("luong", "bahdanau")
    if config.model.family not in told:
        return config
    few = material.sample[:: max(1, len(material.sample) // ORDERED)]
    numbers = list(tokenise(few, learnt["source"], learnt["target"]))
    found = order(numbers)
    if found < IN_STEP[spelt]:
        return config
    if "diagonal" in asked["train"]:
        say(f"order: the target keeps step with the source ({found:.2f}); as train.diagonal was given, nothing follows")
        return config
    train = config.train.model_copy(update={"diagonal": 1.0})
    short = _short(numbers) and max(len(p.source) * len(p.target) for p in material.sample) <= WALKABLE
    walks, both = config.model.walk, config.model.both_ways
    if spelt:
        walkable = short and _walkable(numbers, len(learnt["target"]))
        walks, both = _ways(config.model, asked["model"], material.count, passes, walkable)
    along = "walks along it and " if walks else ""
    say(f"order: the target keeps step with the source ({found:.2f}), so attention {along}begins near the diagonal")
    model = config.model.model_copy(update={"walk": walks, "both_ways": both})
    if spelt:
        countable = short and Counts.can(numbers, (len(learnt["source"]), len(learnt["target"])))
        again = recurring([source for source, _ in numbers]) if material.count >= MANY_WORDS else 0.0
        model = _known(model, asked["model"], countable, again, say)
    if both and not config.model.both_ways:
        say("both ways: a second decoder writes from the end (model.both_ways=false: without)")
    return config.model_copy(update={"model": model, "train": train})


def _walkable(numbers: Sequence[Numbers], symbols: int) -> bool:
    """Whether a walk costs no more than it is worth: at every place of a source it chooses among all symbols."""
    places = sum(len(source) for source, _ in numbers) / len(numbers)
    return places < WALKED and places * symbols < CHOSEN and _short(numbers)


def _short(numbers: Sequence[Numbers]) -> bool:
    """Whether pairs are short enough for what looks at all symbols of both sides together."""
    short = sum(len(source) for source, _ in numbers) < SHORT * len(numbers)
    return short and max(len(source) * len(target) for source, target in numbers) <= WALKABLE


def _ways(model: ModelConfig, own: dict[str, Any], count: int, passes: float, walkable: bool) -> tuple[bool, bool]:
    """Whether attention walks, as it does where words are few, or plenty, or there is time for few passes, and whether
    a second decoder writes from the end, for which there must be time. A walk gains by it only where words are plenty.

    Other families were not measured with a second decoder.
    """
    few, plenty = count < FEW, count >= PLENTY
    walks, both = model.walk, model.both_ways
    if "walk" not in own and model.can_walk and walkable:
        walks = few or plenty or passes < HURRIED
    if "both_ways" not in own and model.family == "luong":
        both = passes >= (LEISURE if walks else HURRIED) and not few and (plenty or not walks)
    return walks, both


def _known(model: ModelConfig, own: dict[str, Any], countable: bool, again: float, say: Say) -> ModelConfig:
    """What stands together is counted, where it can be; of many words of which so much stands `again` elsewhere, each
    is told of its relatives or, where nothing can be counted, groups of symbols have a vector of their own.
    """
    if countable and not model.counts and "counts" not in own:
        model = model.model_copy(update={"counts": True})
        say("counts: which symbols stand together is counted too, and has a say (model.counts=false: without)")
    if again < RECURRING or model.family == "transformer":
        return model
    recur = f"{100 * again:.0f}% of three symbols in a row stand elsewhere too, so"
    if model.counts and not ("relatives" in own or own.get("groups") or "group_rows" in own):
        say(
            f"relatives: {recur} a word is told what its symbols stood for in others that begin or end alike "
            "(model.relatives=false: without)"
        )
        return model.model_copy(update={"relatives": True})
    if ("group_rows" in own or not countable) and not (model.relatives or "groups" in own):
        model = model.model_copy(update={name: n for name, n in GROUPS.items() if name not in own})
        say(f"groups: {recur} up to {model.groups} have a vector of their own (model.groups=0: none)")
    return model
