"""Pictures: opened with care, brought to one size, and decoded once into a cache that is mapped, not loaded.

A picture is known by its source: the path of a file, or the name that a built-in task gave it (`scenes:train:17`).
Where a network learned to see elsewhere, what it makes of a picture is kept beside the pixels.
"""

import hashlib
import io
import json
import math
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import ExifTags, Image, ImageOps, UnidentifiedImageError

from saccade.data.backbones import Backbone, Features, load_backbone
from saccade.data.cache import cache_folder, make_once

FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "PPM")
MOST_PIXELS = 50_000_000  # of one picture; more is refused before it is decoded
AT_ONCE = 32  # pictures that a backbone is shown
Pixels = NDArray[np.uint8]


class Fitted(NamedTuple):
    """A picture in its frame: what is beyond its own height and width is empty."""

    pixels: Pixels  # [H, W, 3]
    size: tuple[int, int]
    features: Features | None = None  # [h, w, C], if a backbone makes them

    @property
    def seen(self) -> Pixels | Features:
        """What a model gets to see."""
        return self.pixels if self.features is None else self.features


@dataclass(frozen=True, slots=True)
class Frame:
    """The one size that all pictures of a run are brought to, each with its own aspect kept."""

    height: int
    width: int
    backbone: str | None = None  # who looks at them first
    weights: str | None = None  # which it must have, as a fingerprint

    def eyes(self) -> Backbone | None:
        """Who looks at them first, as it was when the run learned."""
        if self.backbone is None:
            return None
        found = load_backbone(self.backbone)
        if self.weights not in (None, found.fingerprint):
            raise ValueError(f"image.backbone: {self.backbone} has changed: other weights than the run learned with")
        return found

    @property
    def side(self) -> int:
        """Of how many pixels, each way, nothing is lost in the frame."""
        return 2 * max(self.height, self.width)

    def fit(self, picture: Image.Image) -> Fitted:
        return self.fit_all([picture])[0]

    def fit_all(self, pictures: Sequence[Image.Image]) -> list[Fitted]:
        fitted = [self._scaled(picture) for picture in pictures]
        if (eyes := self.eyes()) is None:
            return fitted
        found = eyes(np.stack([f.pixels for f in fitted]))
        return [f._replace(features=x) for f, x in zip(fitted, found, strict=True)]

    def key(self) -> list[object]:
        """What tells it from another."""
        eyes = self.eyes()
        return [self.height, self.width, FORMATS, *([] if eyes is None else [eyes.fingerprint])]

    def _scaled(self, picture: Image.Image) -> Fitted:
        """In its upper left corner."""
        share = min(self.height / picture.height, self.width / picture.width)
        height = max(1, min(self.height, round(picture.height * share)))
        width = max(1, min(self.width, round(picture.width * share)))
        if (width, height) != picture.size:
            picture = picture.resize((width, height), Image.Resampling.BILINEAR, reducing_gap=3.0)
        pixels = np.zeros((self.height, self.width, 3), np.uint8)
        pixels[:height, :width] = np.asarray(picture)
        return Fitted(pixels, (height, width))


class TooLargeError(ValueError):
    """A picture of more pixels than one wants to decode."""

    def __init__(self, name: str, size: tuple[int, ...], most: int) -> None:
        super().__init__(f"{name}: {'×'.join(f'{n:,}' for n in size)} pixels, more than {most:,}")
        self.pixels = math.prod(size)


def open_picture(source: str | Path | bytes, most: int | None = None, side: int | None = None) -> Image.Image:
    """A picture in RGB, upright; whatever is wrong with it is a ValueError of one line.

    One of more than `most` pixels (MOST_PIXELS, if nothing else is said) is not decoded. Where `side` pixels are enough
    both ways, a JPEG is decoded at an eighth, a quarter or a half of its size: a photograph then takes a fifth as long.
    """
    with _opened(source, most) as picture:
        if side is not None:
            picture.draft(None, (side, side))
        several = picture.format != "MPO" and getattr(picture, "is_animated", False)  # cameras hide previews in those
        found = _rgb(_upright(picture), picture.format)
    if several:
        warnings.warn(f"{_name(source)}: has several frames, of which the first is read", stacklevel=2)
    return found


def size_of(source: str | Path | bytes) -> tuple[int, int]:
    """Width and height of a picture when it stands upright, by its header alone."""
    with _opened(source) as picture:
        lying = picture.getexif().get(ExifTags.Base.Orientation) in (5, 6, 7, 8)
        return picture.size[::-1] if lying else picture.size


@contextmanager
def _opened(source: str | Path | bytes, most: int | None = None) -> Iterator[Image.Image]:
    """A picture whose header was read and found to be in order; what goes wrong with it then is told in one line."""
    most = MOST_PIXELS if most is None else most
    name = _name(source)
    file = io.BytesIO(source) if isinstance(source, bytes) else source
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what Pillow warns of is checked here
            with Image.open(file, formats=FORMATS) as picture:
                if picture.width * picture.height > most:
                    raise TooLargeError(name, picture.size, most)
                yield picture
    except UnidentifiedImageError:
        raise ValueError(f"{name}: is no picture ({', '.join(FORMATS)})") from None
    except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
        raise ValueError(f"{name}: {error.strerror}") from None
    except Image.DecompressionBombError as error:  # Pillow has a ceiling of its own, and tells the product alone
        raise TooLargeError(name, tuple(map(int, re.findall(r"\d+", str(error))[:1])), most) from None
    except (TooLargeError, MemoryError):
        raise
    except Exception as error:
        raise ValueError(f"{name}: cannot be read: {' '.join(str(error).split())}") from None


def _name(source: str | Path | bytes) -> str:
    return "the picture" if isinstance(source, bytes) else str(source)


def _upright(picture: Image.Image) -> Image.Image:
    try:
        return ImageOps.exif_transpose(picture)
    except Exception:
        return picture


def _rgb(picture: Image.Image, kind: str | None) -> Image.Image:
    """Of an animation the first frame, of 16 bits the upper 8, and white behind what is transparent."""
    if picture.mode.startswith("I") or picture.mode == "F":
        picture = Image.fromarray(_bytes(np.asarray(picture), kind))
    if picture.mode in ("RGBA", "LA", "PA") or "transparency" in picture.info:
        picture = picture.convert("RGBA")
        behind = Image.new("RGBA", picture.size, "white")
        picture = Image.alpha_composite(behind, picture)
    return picture.convert("RGB")


def _bytes(numbers: NDArray[Any], kind: str | None) -> Pixels:
    """Greys of more than 8 bits. What is white, 16 bits say themselves; of 32, and of fractions, it is guessed from the
    lightest place: 1, 255, 65535, or that place itself.
    """
    if numbers.dtype.itemsize == 2 or kind in ("PNG", "PPM"):  # these have no more than 16, whatever holds them
        return np.asarray(numbers.clip(0, 65535).astype(np.uint16) >> 8, np.uint8)
    lightest = float(np.nan_to_num(numbers.max(initial=0)))
    white = next(w for w in (1.0, 255.0, 65535.0, math.inf) if lightest <= w)
    white = lightest if white == math.inf else white
    return np.asarray(np.nan_to_num(numbers.astype(np.float32) * (255 / white)).clip(0, 255), np.uint8)


@dataclass(frozen=True, slots=True)
class Pictures:
    """Many pictures in one frame, by the names of their sources."""

    pixels: NDArray[np.uint8]  # [P, H, W, 3]
    sizes: NDArray[np.int32]  # [P, 2]: heights and widths
    places: dict[str, int]  # where each source is
    features: Features | None = None  # [P, h, w, C], if a backbone makes them

    @property
    def seen(self) -> NDArray[np.uint8] | Features:
        """What a model gets to see."""
        return self.pixels if self.features is None else self.features

    def __len__(self) -> int:
        return len(self.pixels)

    def get(self, source: str) -> Fitted | None:
        if (place := self.places.get(source)) is None:
            return None
        height, width = self.sizes[place].tolist()
        return Fitted(self.pixels[place], (height, width), None if self.features is None else self.features[place])


Loader = Callable[[str], Image.Image]
Watch = Callable[[int, int], None]  # is told how many are done, and of how many


def unwatched(_done: int, _all: int) -> None:
    """Nobody wants to know."""


def load_pictures(
    sources: Iterable[str], frame: Frame, load: Loader, key: Callable[[str], bytes], watch: Watch = unwatched
) -> tuple[Pictures, dict[str, str]]:
    """Every source in the frame, from the cache or decoded into it, and what was wrong with those that are left out.

    The folder's name is a hash of what the pictures hold (`key`) and of the frame, and it appears when it is whole.
    """
    wanted = list(dict.fromkeys(sources))
    hashed = hashlib.sha256(json.dumps(frame.key()).encode())
    for source in wanted:
        hashed.update(hashlib.sha256(key(source)).digest())
    folder = cache_folder() / f"pictures-{hashed.hexdigest()[:32]}"
    make_once(folder, lambda beside: _decode(wanted, frame, load, beside, watch))
    try:
        broken = {wanted[int(i)]: why for i, why in _told(folder / "broken.json").items()}
        warned = _told(folder / "warned.json") if (folder / "warned.json").exists() else {}  # not in older ones
        pixels, sizes = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("pixels", "sizes"))
        features = None if frame.backbone is None else np.load(folder / "features.npy", mmap_mode="r")
    except (OSError, ValueError, IndexError) as error:
        raise ValueError(f"{folder}: is damaged ({error}); remove it, and it will be made anew") from None
    if warned:  # each time, and once for all of them
        place, why = next(iter(warned.items()))
        more = f" (and {len(warned) - 1:,} more)" if len(warned) > 1 else ""
        warnings.warn(f"{wanted[int(place)]}: {why}{more}", stacklevel=2)
    places = {s: i for i, s in enumerate(s for s in wanted if s not in broken)}
    return Pictures(pixels, sizes, places, features), {s: f"{s}: {why}" for s, why in broken.items()}


def _decode(sources: Sequence[str], frame: Frame, load: Loader, folder: Path, watch: Watch) -> None:
    sizes: list[tuple[int, int]] = []
    broken: dict[int, str] = {}  # by their places: the same pictures may have other names tomorrow
    warned: dict[int, str] = {}
    shape: tuple[int, ...] = (0, 0, 0)  # of one picture's features
    with (folder / "pixels").open("wb") as pixels, (folder / "features").open("wb") as features:
        for start in range(0, len(sources), AT_ONCE):
            watch(start, len(sources))
            loaded: list[Image.Image] = []
            for i, source in enumerate(sources[start : start + AT_ONCE], start):
                with warnings.catch_warnings(record=True) as told:
                    warnings.simplefilter("always")
                    try:
                        loaded.append(load(source))
                    except ValueError as error:
                        broken[i] = str(error).removeprefix(f"{source}: ")
                if told:
                    warned[i] = str(told[0].message).removeprefix(f"{source}: ")
            for fitted in frame.fit_all(loaded) if loaded else []:
                pixels.write(fitted.pixels.tobytes())
                sizes.append(fitted.size)
                if fitted.features is not None:
                    features.write(fitted.features.tobytes())
                    shape = fitted.features.shape
    watch(len(sources), len(sources))
    _keep(folder / "pixels", np.uint8, (len(sizes), frame.height, frame.width, 3))
    if frame.backbone is None:
        (folder / "features").unlink()
    else:
        _keep(folder / "features", np.float16, (len(sizes), *shape))
    np.save(folder / "sizes.npy", np.array(sizes, np.int32).reshape(-1, 2))
    for name, told_of in (("broken", broken), ("warned", warned)):
        (folder / f"{name}.json").write_text(json.dumps(told_of), encoding="utf-8")


def _told(file: Path) -> dict[str, str]:
    """What was said of pictures, by their places."""
    found: dict[str, str] = json.loads(file.read_text("utf-8"))
    return found


def _keep(raw: Path, kind: type[np.generic], shape: tuple[int, ...]) -> None:
    """What was written as it came, as an .npy file beside it."""
    rows = np.memmap(raw, kind, "r", shape=shape) if shape[0] else np.empty(shape, kind)
    np.save(raw.with_suffix(".npy"), rows)
    del rows
    raw.unlink()


def file_key(source: str) -> bytes:
    """What a file holds, as a hash; nothing for one that cannot be read."""
    try:
        return hashlib.sha256(Path(source).read_bytes()).digest()
    except OSError:
        return b""
