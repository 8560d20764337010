"""Scenes: a few coloured shapes on a background, drawn, and sentences that are true of them.

Everything about a scene follows from its name, `scenes:PART:NUMBER`. What is in it is known, so a caption can be read
by its grammar and checked, and so can where a model looked while it named a thing. Some pairs of a colour and a shape
are kept for the test part alone: who describes them rightly has learned colours and shapes, not pairs.
"""

import itertools
import math
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from PIL import Image, ImageDraw, ImageFilter

SIDE = 64  # pixels
FINE = 3  # times as many to draw on, for smooth edges
SIZES = {"small": (11, 13), "medium": (16, 18), "large": (21, 24)}  # pixels across
COLOURS = {
    "red": (214, 39, 40),
    "green": (44, 150, 60),
    "blue": (40, 90, 210),
    "yellow": (240, 205, 30),
    "purple": (140, 60, 175),
    "orange": (250, 130, 20),
}
SHAPES = ("circle", "square", "triangle", "star", "cross")
KEPT = frozenset(
    {("red", "star"), ("green", "circle"), ("blue", "cross"), ("purple", "triangle"), ("orange", "square")}
)
OPPOSITE = {"left of": "right of", "right of": "left of", "above": "below", "below": "above"}
BESIDE = {"left of": "to its left", "right of": "to its right", "above": "above it", "below": "below it"}
NUMBERS = {2: "two", 3: "three", 4: "four"}
CLEAR = 6  # pixels by which one direction must outdo the other before a sentence speaks of it

_THING = rf"(?:(?P<size>{'|'.join(SIZES)}) )?(?P<colour>{'|'.join(COLOURS)}) (?P<shape>{'|'.join(SHAPES)})"
_NAMED = re.sub(r"\?P<\w+>", "?:", _THING)
_A = r"(?:an (?=[aeiou])|a (?![aeiou]))"
_WHERE = f"({'|'.join(OPPOSITE)})"
_RELATED = (
    re.compile(rf"{_A}({_NAMED}) is {_WHERE} {_A}({_NAMED})"),
    re.compile(rf"there is {_A}({_NAMED}) {_WHERE} {_A}({_NAMED})"),
    re.compile(rf"the ({_NAMED}) is {_WHERE} the ({_NAMED})"),
)
_BESIDE = re.compile(rf"{_A}({_NAMED}) has {_A}({_NAMED}) ({'|'.join(BESIDE.values())})")
_LISTED = re.compile(rf"({'|'.join(NUMBERS.values())}) things : {_A}{_NAMED}(?: , {_A}{_NAMED})*? and {_A}{_NAMED}")


class Box(NamedTuple):
    """Where a thing is, in shares of the picture's height and width."""

    top: float
    left: float
    bottom: float
    right: float

    @property
    def area(self) -> float:
        return (self.bottom - self.top) * (self.right - self.left)


class Thing(NamedTuple):
    """One shape of a scene."""

    size: str
    colour: str
    shape: str
    box: Box

    def is_called(self, words: str) -> bool:
        found = re.fullmatch(_THING, words)
        return found is not None and all(v in (None, getattr(self, k)) for k, v in found.groupdict().items())

    @property
    def unseen(self) -> bool:
        """Whether training never shows this colour of this shape."""
        return (self.colour, self.shape) in KEPT

    @property
    def centre(self) -> tuple[float, float]:
        """From the left, from the top."""
        return (self.box.left + self.box.right) / 2, (self.box.top + self.box.bottom) / 2


class Mention(NamedTuple):
    """Words of a caption, by their place in its characters, that name a thing."""

    start: int
    end: int
    thing: Thing


@dataclass(frozen=True, slots=True)
class Scene:
    """What is in a picture."""

    name: str
    things: tuple[Thing, ...]

    def captions(self, count: int) -> list[str]:
        """So many different sentences, all true."""
        chance = random.Random(f"captions {self.name}")
        found: dict[str, None] = {}
        for _ in range(20 * count):
            found[_say(self.things, chance)] = None
            if len(found) == count:
                break
        return list(found)

    def mentions(self, caption: str) -> list[Mention] | None:
        """Which thing each part of a caption names, if the caption is true of the scene; None if it is not."""
        spans, claims = _read(caption)
        if not spans:
            return None
        for things in itertools.permutations(self.things, len(spans)):
            named = all(t.is_called(caption[a:b]) for t, (a, b) in zip(things, spans, strict=True))
            if named and all(holds(things[i], r, things[j]) for i, r, j in claims.related):
                if claims.number is not None and claims.number != len(self.things):
                    return None
                return [Mention(a, b, t) for t, (a, b) in zip(things, spans, strict=True)]
        return None

    def is_true(self, caption: str) -> bool:
        return self.mentions(caption) is not None

    @property
    def unseen(self) -> bool:
        """Whether it has a pair of colour and shape that training never shows."""
        return any(t.unseen for t in self.things)

    def draw(self) -> Image.Image:
        chance = random.Random(f"drawing {self.name}")
        canvas = _background(chance)
        pen = ImageDraw.Draw(canvas)
        for thing in self.things:
            colour = tuple(max(0, min(255, c + chance.randint(-18, 18))) for c in COLOURS[thing.colour])
            _draw(pen, thing, colour)
        return canvas.resize((SIDE, SIDE), Image.Resampling.BOX)


class Claims(NamedTuple):
    """What a caption says beside the names of things, which are numbered as they are named."""

    related: tuple[tuple[int, str, int], ...] = ()  # the first is left of (and so on) the second
    number: int | None = None  # of things in all


def holds(one: Thing, relation: str, other: Thing) -> bool:
    """Whether one thing stands so to another, by their centres."""
    (x, y), (u, v) = one.centre, other.centre
    return {"left of": x < u, "right of": x > u, "above": y < v, "below": y > v}[relation]


@lru_cache(50_000)
def scene(name: str) -> Scene:
    """The scene of that name: `scenes:train:17`."""
    part = name.split(":")[1]
    chance = random.Random(name)
    while True:
        things: list[Thing] = []
        for _ in range(chance.choice((2, 2, 3, 3, 4))):
            thing = _place(things, part, chance)
            if thing is not None:
                things.append(thing)
        if len(things) > 1 and any(_clear(a, b) for a, b in itertools.combinations(things, 2)):
            return Scene(name, tuple(things))


def _place(things: Sequence[Thing], part: str, chance: random.Random) -> Thing | None:
    """A new thing where there is room for it, unlike the others."""
    for _ in range(40):
        size, colour, shape = chance.choice(list(SIZES)), chance.choice(list(COLOURS)), chance.choice(SHAPES)
        if (part != "test" and (colour, shape) in KEPT) or any((t.colour, t.shape) == (colour, shape) for t in things):
            continue
        across = chance.randint(*SIZES[size])
        left, top = (chance.randint(1, SIDE - across - 1) for _ in range(2))
        if all(
            left > SIDE * t.box.right + 2
            or left + across < SIDE * t.box.left - 2
            or top > SIDE * t.box.bottom + 2
            or top + across < SIDE * t.box.top - 2
            for t in things
        ):
            box = Box(top / SIDE, left / SIDE, (top + across) / SIDE, (left + across) / SIDE)
            return Thing(size, colour, shape, box)
    return None


def _clear(one: Thing, other: Thing) -> str | None:
    """How one stands to the other, if nobody would doubt it."""
    (x, y), (u, v) = one.centre, other.centre
    across, down = SIDE * (x - u), SIDE * (y - v)
    if abs(across) - abs(down) > CLEAR:
        return "left of" if across < 0 else "right of"
    if abs(down) - abs(across) > CLEAR:
        return "above" if down < 0 else "below"
    return None


def _say(things: Sequence[Thing], chance: random.Random) -> str:
    """One true sentence, in one of several phrasings.

    A sentence starts from what stands out, the largest thing (of equals the leftmost), and a list goes from left to
    right: a speaker who named any thing at random would have to say how large it is before anyone could tell which is
    meant, and nobody could look at what is meant.
    """
    one = min(things, key=_stands_out)
    related = [(r, t) for t in things if t is not one and (r := _clear(one, t))]
    phrasing = chance.randrange(5)
    if phrasing == 4 or not related:
        listed = [_a(t, chance) for t in sorted(things, key=lambda t: t.centre)]
        return f"{NUMBERS[len(listed)]} things : {' , '.join(listed[:-1])} and {listed[-1]}"
    relation, other = chance.choice(related)
    match phrasing:
        case 0:
            return f"{_a(one, chance)} is {relation} {_a(other, chance)}"
        case 1:
            return f"there is {_a(one, chance)} {relation} {_a(other, chance)}"
        case 2:
            return f"the {_name(one, chance)} is {relation} the {_name(other, chance)}"
        case _:
            return f"{_a(one, chance)} has {_a(other, chance)} {BESIDE[OPPOSITE[relation]]}"


def _stands_out(thing: Thing) -> tuple[int, tuple[float, float]]:
    """The lower, the more: first by size, then from the left."""
    return -list(SIZES).index(thing.size), thing.centre


def _name(thing: Thing, chance: random.Random) -> str:
    size = f"{thing.size} " if chance.random() < 0.7 else ""
    return f"{size}{thing.colour} {thing.shape}"


def _a(thing: Thing, chance: random.Random) -> str:
    name = _name(thing, chance)
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def _read(caption: str) -> tuple[list[tuple[int, int]], Claims]:
    """Where a caption names things, and what it claims of them; nothing, if it is no sentence of the grammar."""
    if found := next(filter(None, (pattern.fullmatch(caption) for pattern in _RELATED)), None):
        return [found.span(1), found.span(3)], Claims(((0, found[2], 1),))
    if found := _BESIDE.fullmatch(caption):
        relation = next(r for r, words in BESIDE.items() if words == found[3])
        return [found.span(1), found.span(2)], Claims(((1, relation, 0),))
    if found := _LISTED.fullmatch(caption):
        spans = [m.span() for m in re.finditer(_NAMED, caption)]
        number = next(n for n, word in NUMBERS.items() if word == found[1])
        return (spans, Claims((), number)) if len(spans) == number else ([], Claims())
    return [], Claims()


def _background(chance: random.Random) -> Image.Image:
    """Plain, fading, striped or speckled, and pale, so that no shape is lost in it."""
    side = SIDE * FINE
    first, second = (tuple(chance.randint(170, 250) for _ in range(3)) for _ in range(2))
    canvas = Image.new("RGB", (side, side), first)
    match chance.randrange(4):
        case 0:
            fade = Image.linear_gradient("L").rotate(90 * chance.randrange(4)).resize((side, side))
            canvas.paste(second, mask=fade)
        case 1:
            pen, step = ImageDraw.Draw(canvas), FINE * chance.randint(4, 10)
            for start in range(0, side, 2 * step):
                pen.rectangle((start, 0, start + step, side), fill=second)
        case 2:
            speckles = Image.frombytes("L", (SIDE, SIDE), chance.randbytes(SIDE * SIDE))
            canvas.paste(second, mask=speckles.filter(ImageFilter.GaussianBlur(1)).resize((side, side)))
    return canvas


def _draw(pen: ImageDraw.ImageDraw, thing: Thing, colour: tuple[int, ...]) -> None:
    top, left, bottom, right = (SIDE * FINE * x for x in thing.box)
    x, y, radius = (left + right) / 2, (top + bottom) / 2, (right - left) / 2
    match thing.shape:
        case "circle":
            pen.ellipse((left, top, right, bottom), fill=colour)
        case "square":
            pen.rectangle((left, top, right, bottom), fill=colour)
        case "triangle":
            pen.polygon([(x, top), (right, bottom), (left, bottom)], fill=colour)
        case "star":
            rays = (radius if i % 2 == 0 else 0.42 * radius for i in range(10))
            turns = (math.pi * (i / 5 - 0.5) for i in range(10))
            pen.polygon(
                [(x + r * math.cos(a), y + r * math.sin(a)) for r, a in zip(rays, turns, strict=True)], fill=colour
            )
        case "cross":
            third = radius / 3
            pen.rectangle((x - third, top, x + third, bottom), fill=colour)
            pen.rectangle((left, y - third, right, y + third), fill=colour)
