"""What is chosen, and checked, where the source is a picture: its frame, who looks at it, and how it is read."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from saccade.config import RunConfig
from saccade.config.image import WIDE
from saccade.data import Material, Pair, Tokeniser, measure
from saccade.data.backbones import EXTRA, LITE, load_backbone
from saccade.data.cache import cache_folder
from saccade.errors import UsageError

PHOTOGRAPHS = 50_000  # fewer teach little of what can be in one: docs/experiments.md, Flickr8k
READING, CAPTIONING = 1_200, 4_000  # target tokens a second on two cores, roughly: of lines of writing, and of captions
MEASURED = 200  # pictures whose shape decides that of the frame
MOST_PIXELS = 128 * 128  # of a frame, unless another is asked for
BACKBONE_PIXELS = 224 * 224  # of one that a pretrained network looks at: what most of them are used to
SIDES = re.compile(
    r"\b(left|right|links?|rechts?|gauche|droite|izquierd\w+|derech\w+|sinistr\w|destr\w)\b|왼|오른|左|右",
    re.IGNORECASE,
)
MOST_SIDED = 0.02  # share of the captions that may tell left from right where pictures are turned round


def picked_image(sources: list[str], asked: dict[str, Any], say: Callable[[str], None]) -> dict[str, Any]:
    """How pictures are read, where that was left open."""
    if Path(str(asked.get("backbone"))).is_dir():
        asked["backbone"] = str(Path(asked["backbone"]).resolve())  # wherever the run is used from
    return {**_picked_frame(sources, asked, say), **asked}


def likely_frame(asked: dict[str, Any]) -> dict[str, Any]:
    """What is known of how pictures will be read before any was seen: a frame, where none is given, that nothing asked
    for speaks against.
    """
    stride = asked.get("stride", 1 if "backbone" in asked else 8)  # a backbone has its own
    try:
        line = {"stride": stride, "height": stride, "width": WIDE * max(int(stride), int(asked.get("height", 1)))}
    except (TypeError, ValueError):  # which is told when the settings are read
        line = {}
    return {**line, **asked}


def guessed_passes(train: dict[str, Any], texts: list[str], kind: str) -> float:
    """About how often every picture will be seen. Known before any picture was read, so no more than a guess."""
    if train.get("epochs") is not None:
        return float(train["epochs"])
    spelt = kind in ("characters", "symbols")
    words = sum(len(text.split()) for text in texts)
    tokens = max(
        1, sum(map(len, texts)) if kind == "characters" else words if spelt or kind == "words" else 1.3 * words
    )
    if train.get("steps") is not None:
        seen = train["steps"] * train.get("batch_tokens", 100 if spelt else 1000) / 2
        return float(min(seen / tokens, train["steps"]))  # few pictures do not fill a batch: an epoch is one
    return float(60 * train["minutes"] * (READING if spelt else CAPTIONING) / tokens)


def near(image: dict[str, Any], family: str) -> dict[str, Any]:
    """A CNN of our own whose cells tell little of their neighbours, for Luong's decoder: it looks where it should then.

    A Transformer, which looks with several heads and layers, gains nothing by it (docs/experiments.md, Scenes).
    """
    own = image.get("encoder", "cnn") in ("cnn", "attentive_cnn")
    return {"near": True, **image} if own and family == "luong" else image


def _picked_frame(sources: list[str], asked: dict[str, Any], say: Callable[[str], None]) -> dict[str, Any]:
    """A frame of the pictures' own shape, in the middle of them, with about as many pixels as a CPU can bear, or as a
    backbone is used to.
    """
    picked: dict[str, Any] = {}
    stride, most = asked.get("stride", 8), MOST_PIXELS
    if asked.get("backbone") is not None:
        eyes = load_backbone(asked["backbone"])
        stride, most = eyes.stride, BACKBONE_PIXELS
        picked = {"encoder": "pretrained", "stride": stride, "channels": eyes.width, "weights": eyes.fingerprint}
        for name, value in picked.items():
            if asked.get(name, value) != value:
                raise UsageError(f"image.{name}: {asked[name]}, but {eyes.name} has {value}")
    if {"height", "width"} <= set(asked):
        return picked
    few = list(dict.fromkeys(sources))
    shapes, wrong = [], ""
    for source in few[:: max(1, len(few) // MEASURED)]:
        try:
            shapes.append(measure(source)[::-1])
        except ValueError as error:
            wrong = str(error)  # it will be left out, and said to be
    if not shapes:
        raise ValueError(f"no picture can be read: {wrong}")
    height, width = (sorted(side)[len(side) * 9 // 10] for side in zip(*shapes, strict=True))
    own = [asked[n] / x for n, x in (("height", height), ("width", width)) if n in asked]  # one side decides the other
    share = own[0] if own else (most / (height * width)) ** 0.5
    share = share if picked or own else min(1.0, share)
    frame = {n: max(stride, -(-round(x * share) // stride) * stride) for n, x in (("height", height), ("width", width))}
    frame |= {n: asked[n] for n in frame if n in asked}
    size = f"{frame['height']}×{frame['width']} (nine in ten are no more than {height}×{width})"
    say(f"pictures: brought to {size}, and kept so in {cache_folder()}")
    return {**picked, **frame}


def read_along(config: RunConfig, asked: dict[str, dict[str, Any]], say: Callable[[str], None]) -> RunConfig:
    """Wide pictures whose text is spelt are lines of writing, read from the left."""
    assert config.image is not None
    spelt = config.image.wide and config.target.spelt
    if not spelt or config.model.family == "seq2seq" or "diagonal" in asked["train"]:
        return config
    say("pictures: wide, and their text is spelt, so attention begins to read them from left to right")
    return config.model_copy(update={"train": config.train.model_copy(update={"diagonal": 1.0})})


def check_grid(config: RunConfig, target: Tokeniser, pairs: list[Pair]) -> None:
    """Of pictures the cells are looked at; learned positions count the words of the target."""
    longest, image = config.model.longest_source, config.image
    if longest is None or image is None:
        return
    needed = (image.height // image.stride) * (image.width // image.stride)
    if config.model.family == "transformer":
        needed = 1 + max(map(len, target.encode_all([p.target for p in pairs])))
    if needed > longest:
        raise UsageError(f"model.max_length={longest}, but the data needs {needed}: --set model.max_length={needed}")


def check_eyes(config: RunConfig, material: Material, say: Callable[[str], None]) -> None:
    """Whether there is enough to learn to see from; drawn pictures are simple, and letters soon known."""
    count = len({p.source for p in material.sample})
    lent = config.image is not None and config.image.backbone is not None
    if not lent and material.source.task is None and not config.target.spelt and count < PHOTOGRAPHS:
        say(
            f"pictures: if they are photographs, {count:,} are few to learn to see from; a network that learned it "
            f"elsewhere can lend its eyes: --set image.backbone={LITE} ({EXTRA})"
        )


def check_mirror(config: RunConfig, captions: list[str], say: Callable[[str], None]) -> None:
    """Pictures may be turned round in training only where that leaves true what is said of them."""
    if config.image is None or not config.image.flip:
        return
    if config.target.spelt:
        raise UsageError("image.flip: the text of these pictures is spelt, and writing in a mirror is another")
    sided = sum(bool(SIDES.search(caption)) for caption in captions)
    if sided > MOST_SIDED * len(captions):
        raise UsageError(f"image.flip: {sided:,} of {len(captions):,} captions tell left from right")
    if sided:
        say(f"image.flip: {sided:,} of {len(captions):,} captions tell left from right: wrong half of the time")
