"""Built-in tasks, generated, no download: dates in many languages, the toys copy, reverse and sort, and pictures.

Each is a pure function of its seed. The toys know which source position each target position came from, so that an
alignment can be checked against the truth.
"""

import datetime
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from PIL import Image

from saccade.data import plates, scenes
from saccade.data.pairs import Pair
from saccade.data.pictures import file_key, open_picture, size_of

# Languages of CLDR with a Gregorian calendar, from many families and scripts.
LANGUAGES = (  # noqa: SIM905
    "af am ar az be bg bn ca cs cy da de el en es et eu fa fi fil fr ga gl gu he hi hr hu hy id is it ja ka kk km kn "
    "ko ky lo lt lv mk ml mn mr ms my nb ne nl pa pl pt ro ru si sk sl sq sr sv sw ta te th tr uk ur uz vi zh zu"
).split()
STYLES = ("full", "long", "medium", "yMMMEd", "yMMMd", "yMMMMd", "short")
ZEROS = {  # the digit 0 of languages that have digits of their own beside the usual ones
    "ar": "٠", "bn": "০", "fa": "۰", "gu": "૦", "hi": "०", "km": "០", "kn": "೦", "lo": "໐", "ml": "൦", "mr": "०",
    "my": "၀", "ne": "०", "pa": "੦", "ta": "௦", "te": "౦", "th": "๐", "ur": "۰",
}  # fmt: skip
FIRST, LAST = datetime.date(1900, 1, 1), datetime.date(2099, 12, 31)


class Example(NamedTuple):
    """A pair, and where each target token came from: (source, target) positions over tokens; None if nobody knows."""

    pair: Pair
    alignment: list[tuple[int, int]] | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """A generator of examples: `train`, `dev` and `test` never share a source."""

    name: str
    says: str
    make: Callable[[random.Random, str], Example]
    sizes: dict[str, int]

    def examples(self, part: str, seed: int = 0, size: int | None = None) -> list[Example]:
        """The examples of a part: train, dev or test."""
        if part not in self.sizes:
            raise ValueError(f"part: {part!r}, expected one of {', '.join(self.sizes)}")
        chance = random.Random(f"{self.name} {part} {seed}")
        return [self.make(chance, part) for _ in range(self.sizes[part] if size is None else size)]

    def pairs(self, part: str, seed: int = 0, size: int | None = None) -> list[Pair]:
        return [example.pair for example in self.examples(part, seed, size)]


@dataclass(frozen=True, slots=True)
class PictureTask:
    """A generator of pictures with what may be said of each; a picture's name decides all of it."""

    name: str
    says: str
    draw: Callable[[str], Image.Image]
    write: Callable[[str], list[str]]
    sizes: dict[str, int]  # pictures

    def pairs(self, part: str, seed: int = 0, size: int | None = None) -> list[Pair]:
        if part not in self.sizes:
            raise ValueError(f"part: {part!r}, expected one of {', '.join(self.sizes)}")
        count = self.sizes[part] if size is None else size
        names = (f"{self.name}:{part}:{i}" for i in range(seed * MANY, seed * MANY + count))
        return [Pair(name, text) for name in names for text in self.write(name)]


def load_source(source: str, side: int | None = None) -> Image.Image:
    """The picture that a source names: drawn, or from a file, of which `side` pixels both ways may be enough."""
    task = _drawn(source)
    return open_picture(source, side=side) if task is None else task.draw(source)


def measure(source: str) -> tuple[int, int]:
    """The width and height of the picture that a source names; a file need not be decoded for that."""
    return size_of(source) if _drawn(source) is None else load_source(source).size


def source_key(source: str) -> bytes:
    """What tells one picture from another: its name, if it is drawn, or what is in its file."""
    return f"{source} {DRAWING}".encode() if _drawn(source) else file_key(source)


def _drawn(source: str) -> PictureTask | None:
    task = TASKS.get(source.partition(":")[0])
    parts = source.split(":")
    known = isinstance(task, PictureTask) and len(parts) == 3 and parts[1] in task.sizes and parts[2].isdecimal()
    return task if known and isinstance(task, PictureTask) else None


def _toy(order: Callable[[list[str]], list[int]]) -> Callable[[random.Random, str], Example]:
    """A task that puts letters into another order: order[j] is the source position of target position j."""

    def make(chance: random.Random, part: str) -> Example:
        while True:
            letters = chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(3, 20))
            if _part_of(" ".join(letters)) == part:
                break
        moved = order(letters)
        pair = Pair(" ".join(letters), " ".join(letters[i] for i in moved))
        return Example(pair, [(i, j) for j, i in enumerate(moved)])

    return make


def _part_of(text: str) -> str:
    """Where a source belongs, so that no part ever sees another's."""
    return {0: "dev", 1: "test"}.get(random.Random(text).randrange(10), "train")


def _date(chance: random.Random, part: str) -> Example:
    """A calendar day as people write it → ISO 8601. Each day belongs to one part only."""
    while True:
        day = FIRST + datetime.timedelta(days=chance.randrange((LAST - FIRST).days + 1))
        if _part_of(day.isoformat()) == part:
            break
    language = chance.choice(LANGUAGES)
    text = _write(day, language, chance.choice(STYLES), chance)
    return Example(Pair(text, day.isoformat()))


def _write(day: datetime.date, language: str, style: str, chance: random.Random) -> str:
    from babel import Locale, dates  # noqa: PLC0415  (its data is needed by this task alone)

    locale = Locale.parse(language)
    if style == "short":
        pattern = locale.date_formats["short"].pattern
        text = dates.format_date(day, pattern if "yyyy" in pattern else pattern.replace("yy", "y"), locale)
    elif style in ("full", "long", "medium"):
        text = dates.format_date(day, style, locale)
    else:
        text = dates.format_skeleton(style, day, locale=locale)
    text = _native_digits(_noise(text, chance), language) if chance.random() < 0.5 else _noise(text, chance)
    if not any(c.isalpha() for c in text):  # numbers alone: which of them is the month is a matter of language
        text = f"[{language}] {text}"
    return text


def _native_digits(text: str, language: str) -> str:
    zero = ZEROS.get(language)
    return text if zero is None else "".join(chr(ord(zero) + int(c)) if c in "0123456789" else c for c in text)


def _noise(text: str, chance: random.Random) -> str:
    """Light noise in case and spacing."""
    match chance.randrange(8):
        case 0:
            return text.lower()
        case 1:
            return text.upper()
        case 2:
            return text.replace(" ", "  ", 1)
        case 3:
            return text.replace(", ", ",")
    return text


MANY = 10**9  # pictures of one seed, at most
DRAWING = 2  # version of how pictures are drawn: another one makes the cache draw them anew
_SIZES = {"train": 20_000, "dev": 1_000, "test": 1_000}
TASKS: dict[str, Task | PictureTask] = {
    task.name: task
    for task in (
        Task("copy", "letters, as they are", _toy(lambda s: list(range(len(s)))), _SIZES),
        Task("reverse", "letters, from the last to the first", _toy(lambda s: list(range(len(s)))[::-1]), _SIZES),
        Task(
            "sort",
            "letters, in the order of the alphabet",
            _toy(lambda s: sorted(range(len(s)), key=s.__getitem__)),
            _SIZES,
        ),
        Task("dates", "dates as people write them, in many languages → ISO 8601", _date, {**_SIZES, "train": 60_000}),
        PictureTask(
            "scenes",
            "pictures of coloured shapes → sentences that are true of them",
            lambda name: scenes.scene(name).draw(),
            lambda name: scenes.scene(name).captions(5),
            {**_SIZES, "train": 20_000},
        ),
        PictureTask(
            "plates",
            "pictures of a line of text → the text",
            plates.draw,
            lambda name: [plates.text_of(name)],
            _SIZES,
        ),
    )
}
