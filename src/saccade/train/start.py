"""From what was asked for to a run that is ready to train: every choice that was left open is made here, and said."""

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
from saccade.config.presets import FEW, GROUPS, HURRIED, MANY_WORDS, Amount, automatic
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
    choose_tokenisers,
    gather,
    swapped,
    tokenise,
    unwatched,
)
from saccade.data.order import order, recurring
from saccade.model import Counts, build
from saccade.search import GROWTH, PICTURED, ROOM
from saccade.train.loop import find_device
from saccade.train.memory import check_room
from saccade.train.pictures import check_eyes, check_grid, check_mirror, near, picked_image, read_along
from saccade.train.run import Run, frame_of, source_size

ORDERED = 1_000  # pairs whose order is looked at
IN_STEP = {True: 0.8, False: 0.7}  # from which correlation on it is kept: of words that are spelt, and of sentences
RECURRING = 0.4  # share of three symbols in a row from which on groups are worth remembering: random letters have less
SHORT, WALKABLE = 40, 250_000  # symbols of a source, and of source times target at most: so much does a walk compute
ROUNDED = 250_000  # numbers that a layer makes of a batch: bfloat16 is 1.1 times as quick there, and no quicker at half
STRANGE = 0.1  # share of targets with symbols that a lender cannot write: more is another task
NEARLY_ALL = 0.999  # share of the pairs whose length an output may have
MINUTES = 5.0  # of training, unless something else is asked for
Asked = dict[str, dict[str, Any]]  # settings by section


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
    check(asked, preset)
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
        raise ValueError("--preset: the run given by --init lends its size")
    material = load(asked["data"], say, watch)
    pairs = material.sample
    texts = {"source": [p.source for p in pairs], "target": [p.target for p in pairs]}
    if init is not None:
        config, source, target, lent = _lent(asked, Run.open(init))
        say(f"starting from {init}: {config.model.family} with its symbols and sizes")
        _check_known(init, target, texts["target"], say)
    else:
        config, source, target = _chosen(asked, texts, material, preset, say)
        lent = None
    if isinstance(source, Frame) != material.source.pictures:
        raise ValueError(f"--init {init}: reads {'pictures' if isinstance(source, Frame) else 'text'}, unlike the data")
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
        raise ValueError(f"nothing to train on: give pairs, pictures with captions, or one of {', '.join(TASKS)}")

    def source(part: str) -> Source:
        read = {name: data[name] for name in ("columns", "langs", "strict", "names") if data.get(name)}
        return Source(data[part], part, **read)

    material = gather(source("train"), source("dev") if data.get("dev") else None)
    material.watch = watch
    if data.get("content") not in (None, material.content):
        raise ValueError(f"{data['train'][0]}: holds other pairs than when the run began; start a new run, or --init")
    for line in material.untold():
        say(line)
    if material.leaked:
        say(f"{material.leaked} of {len({p.source for p in material.dev})} dev sources stand in train too")
    if data.get("dev") and not material.source.pictures and swapped(material.sample, material.dev):
        say(f"{data['dev'][0]}: its sides seem to stand the other way round than those of {data['train'][0]}")
    return material


def check(asked: Asked, preset: str) -> None:
    """What can be wrong before any file is read."""
    for name, section in asked.items():
        if not isinstance(section, dict) and name in ("data", "model", "train", "source", "target", "image"):
            raise ValueError(f"settings: {name}: expected a section of settings, found {section!r}")
    family = asked.get("model", {}).get("family")
    picked = automatic(Amount(1, 1, True), asked.get("model", {}), family, preset).family
    config = RunConfig.read({**asked, "model": {**asked.get("model", {}), "family": family or picked}}, "settings")
    find_device(config.train.device)


def _chosen(
    asked: Asked, texts: dict[str, list[str]], material: Material, preset: str, say: Callable[[str], None]
) -> tuple[RunConfig, Tokeniser | Frame, Tokeniser]:
    asked = {name: dict(part) if isinstance(part, dict) else part for name, part in asked.items()}
    count, seen = material.count, material.source.pictures
    if seen:
        for name in ("source", "shared"):
            if asked.get(name):
                raise ValueError(f"{name}: is for text, but the sources are pictures; see the section image")
        asked["image"] = picked_image(texts["source"], dict(asked.get("image", {})), say)
        texts = {"target": texts["target"]}
    elif asked.pop("image", None):
        raise ValueError("image: is for pictures, but the sources are text")
    found = choose_tokenisers(texts.get("source"), texts["target"], shared=bool(asked.get("shared")))
    choices = {side: choice for side, choice in zip(("source", "target"), found, strict=True) if side in texts}
    for side, choice in choices.items():
        kind = asked.get(side, {}).get("kind", choice.config.kind)
        if "size" in asked.get(side, {}) and kind in ("characters", "symbols"):
            raise ValueError(f"{side}.size: is for words, bpe and unigram, but the {side} is {kind}")
        if "kind" not in asked.setdefault(side, {}):
            chosen, own = choice.config.model_dump(), asked[side]
            asked[side] = {**chosen, **own}
            say(f"{side}: {choice.config.kind} ({choice.why}){_instead(chosen, own)}")
    spelt = any(asked[side]["kind"] in ("characters", "symbols") for side in texts)
    model, train = asked.setdefault("model", {}), asked.setdefault("train", {})
    if not set(LENGTHS) & set(train):
        train["minutes"] = MINUTES
    lengths = {name: train[name] for name in LENGTHS if name in train}
    tokens = _about_tokens(texts["target"], asked["target"]["kind"]) * count // max(1, len(texts["target"]))
    lent = seen and asked["image"].get("backbone") is not None
    amount = Amount(count, tokens, spelt, **lengths, pictures=seen, lent=lent, batch_tokens=train.get("batch_tokens"))
    picked = automatic(amount, model, model.get("family"), preset)
    others = "".join(_instead(picked.settings[part], own) for part, own in (("model", model), ("train", train)))
    say(f"model: {picked.family}, {picked.preset} ({picked.why}){others}")
    asked["model"] = {**picked.settings["model"], **model}
    asked["train"] = {**picked.settings["train"], **train}
    if seen:
        asked["image"] = near(asked["image"], picked.family)
    asked["train"]["precision"] = _precision(asked, say)
    config = RunConfig.read(asked, "settings")
    learnt = {
        side: Tokeniser.train(
            [t for both in texts.values() for t in both] if config.shared else texts[side],
            c.kind,
            size=c.size,
            form=c.form,
            lower=c.lower,
        )
        for side, c in (("source", config.source), ("target", config.target))
        if side in texts
    }
    if (frame := frame_of(config)) is not None:
        return read_along(config, asked, say), frame, learnt["target"]
    material.shorten(learnt["source"], learnt["target"], max(MOST_TOKENS, config.model.longest_source or 0))
    config = _ordered(config, asked, learnt, material, amount.passes(config.train.batch_tokens), say)
    if config.shared and config.source != config.target:
        raise ValueError("shared: both sides have the same symbols, so [source] and [target] must be alike")
    return config, learnt["source"], learnt["target"]


def _precision(asked: Asked, say: Callable[[str], None]) -> str:
    """What products are computed in: bfloat16 where a processor has instructions for it and they are large enough."""
    if "precision" in asked["train"]:
        return str(asked["train"]["precision"])
    told = getattr(torch.cpu, "get_capabilities", dict[str, Any])()  # since torch 2.9
    able = asked["train"].get("device", "cpu") == "cpu" and (told.get("avx512_bf16") or told.get("amx_bf16"))
    size = asked["train"]["batch_tokens"] * asked["model"]["width"]
    pixels = "image" in asked and asked["image"].get("backbone") is None  # convolutions are no quicker for it
    if not able or pixels or size < ROUNDED:
        return "float32"
    say("precision: products in bfloat16, for which this processor has instructions (train.precision=float32: without)")
    return "bfloat16"


def _instead(chosen: dict[str, Any], own: dict[str, Any]) -> str:
    """Which of the automatic choices somebody knew better."""
    return "".join(f", {name}={own[name]}" for name in own if name in chosen and own[name] != chosen[name])


def _ordered(
    config: RunConfig,
    asked: Asked,
    learnt: dict[str, Tokeniser],
    material: Material,
    passes: float,
    say: Callable[[str], None],
) -> RunConfig:
    """Where the target keeps step with the source, attention is told so from the start. Where words are spelt, it also
    walks, if there are few words or time for few passes; if there is time for many, they are written both ways. What
    stands together is counted; of many words that have much in common, each is told of its relatives.

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
    model, few_words = config.model, material.count < FEW
    short = sum(len(source) for source, _ in numbers) < SHORT * len(numbers)
    short &= max(len(p.source) * len(p.target) for p in material.sample) <= WALKABLE
    if spelt and "walk" not in asked["model"] and model.can_walk and (passes < HURRIED or few_words) and short:
        model = model.model_copy(update={"walk": True})
    walks = "walks along it and " if model.walk else ""
    say(f"order: the target keeps step with the source ({found:.2f}), so attention {walks}begins near the diagonal")
    sizes = len(learnt["source"]), len(learnt["target"])
    if spelt and short and not model.counts and "counts" not in asked["model"] and Counts.can(numbers, sizes):
        model = model.model_copy(update={"counts": True})
        say("counts: which symbols stand together is counted too, and has a say (model.counts=false: without)")
    again = recurring([source for source, _ in numbers])
    many = spelt and material.count >= MANY_WORDS and again >= RECURRING and model.family != "transformer"
    recur = f"{100 * again:.0f}% of three symbols in a row stand elsewhere too, so"
    own = "relatives" in asked["model"] or asked["model"].get("groups") or "group_rows" in asked["model"]
    if many and model.counts and not own:
        model = model.model_copy(update={"relatives": True})
        say(
            f"relatives: {recur} a word is told what its symbols stood for in others that begin or end alike "
            "(model.relatives=false: without)"
        )
    elif many and not model.relatives and "groups" not in asked["model"]:
        model = model.model_copy(update={name: n for name, n in GROUPS.items() if name not in asked["model"]})
        say(f"groups: {recur} up to {model.groups} have a vector of their own (model.groups=0: none)")
    alone = model.family != "luong" or model.walk  # a walk gained nothing by it; the others were not measured
    if spelt and not few_words and not alone and "both_ways" not in asked["model"] and passes >= HURRIED:
        model = model.model_copy(update={"both_ways": True})
        say("both ways: a second decoder writes from the end (model.both_ways=false: without)")
    return config.model_copy(update={"model": model, "train": config.train.model_copy(update={"diagonal": 1.0})})


def _about_tokens(texts: list[str], kind: str) -> int:
    """How many symbols texts have, before any tokeniser was learned."""
    if kind == "characters":
        return sum(map(len, texts))
    words = sum(len(text.split()) for text in texts)
    return words if kind in ("symbols", "words") else int(1.3 * words)


def _lent(asked: Asked, lender: Run) -> tuple[RunConfig, Tokeniser | Frame, Tokeniser, dict[str, dict[str, Tensor]]]:
    for section in ("model", "source", "target", "shared", "image"):
        if asked.get(section):
            raise ValueError(f"--init: the run lends its {section}, so nothing of it can be changed")
    lent = lender.config.settings()
    train = dict(asked.get("train", {}))
    if not set(LENGTHS) & set(train):
        train["minutes"] = MINUTES
    kept = {k: v for k, v in lent["train"].items() if k not in LENGTHS}
    config = RunConfig.read({**lent, "data": asked["data"], "train": {**kept, **train}}, "settings")
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
        raise ValueError(f"model.{asked}: so many symbols make too many pieces to be listed; leave it out")
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
        raise ValueError(f"model.max_length={longest}, but the data needs {needed}: --set model.max_length={needed}")


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
        merged[name] = {**merged.get(name, {}), **part} if isinstance(part, dict) else part
    return merged


def place(paths: Sequence[str]) -> list[str]:
    """Paths that still lead to their files when the run is resumed from elsewhere; a task is its name."""
    return [p if p in TASKS else str(Path(p).resolve()) for p in paths]
