"""Pictures: opened with care, brought to one size, and decoded once into a cache that is mapped, not loaded.

A picture is known by its source: the path of a file, or the name that a built-in task gave it (`scenes:train:17`).
"""

import hashlib
import io
import json
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from saccade.data.cache import cache_folder, make_once

FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "PPM")
MOST_PIXELS = 50_000_000  # of one picture; more is refused before it is decoded
Pixels = NDArray[np.uint8]


class Fitted(NamedTuple):
    """A picture in its frame: what is beyond its own height and width is empty."""

    pixels: Pixels  # [H, W, 3]
    size: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Frame:
    """The one size that all pictures of a run are brought to, each with its own aspect kept."""

    height: int
    width: int

    def fit(self, picture: Image.Image) -> Fitted:
        """Scaled to the frame, in its upper left corner."""
        share = min(self.height / picture.height, self.width / picture.width)
        height = max(1, min(self.height, round(picture.height * share)))
        width = max(1, min(self.width, round(picture.width * share)))
        if (width, height) != picture.size:
            picture = picture.resize((width, height), Image.Resampling.BILINEAR, reducing_gap=3.0)
        pixels = np.zeros((self.height, self.width, 3), np.uint8)
        pixels[:height, :width] = np.asarray(picture)
        return Fitted(pixels, (height, width))


def open_picture(source: str | Path | bytes) -> Image.Image:
    """A picture in RGB, upright; whatever is wrong with it is a ValueError of one line."""
    name = "the picture" if isinstance(source, bytes) else str(source)
    file = io.BytesIO(source) if isinstance(source, bytes) else source
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what Pillow warns of is checked here
            with Image.open(file, formats=FORMATS) as picture:
                width, height = picture.size
                if width * height > MOST_PIXELS:
                    raise ValueError(f"{name}: {width}×{height} pixels, more than {MOST_PIXELS:,}")
                return _rgb(_upright(picture))
    except UnidentifiedImageError:
        raise ValueError(f"{name}: is no picture ({', '.join(FORMATS)})") from None
    except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
        raise ValueError(f"{name}: {error.strerror}") from None
    except (ValueError, MemoryError):
        raise
    except Exception as error:
        raise ValueError(f"{name}: cannot be read: {' '.join(str(error).split())}") from None


def _upright(picture: Image.Image) -> Image.Image:
    try:
        return ImageOps.exif_transpose(picture)
    except Exception:
        return picture


def _rgb(picture: Image.Image) -> Image.Image:
    """Of an animation the first frame, of 16 bits the upper 8, and white behind what is transparent."""
    if picture.mode.startswith("I") or picture.mode == "F":
        numbers = np.asarray(picture).astype(np.float64)
        deep = numbers.max(initial=0) > 255
        picture = Image.fromarray((numbers / (257 if deep else 1)).clip(0, 255).astype(np.uint8))
    if picture.mode in ("RGBA", "LA", "PA") or "transparency" in picture.info:
        picture = picture.convert("RGBA")
        behind = Image.new("RGBA", picture.size, "white")
        picture = Image.alpha_composite(behind, picture)
    return picture.convert("RGB")


@dataclass(frozen=True, slots=True)
class Pictures:
    """Many pictures in one frame, by the names of their sources."""

    pixels: NDArray[np.uint8]  # [P, H, W, 3]
    sizes: NDArray[np.int32]  # [P, 2]: heights and widths
    places: dict[str, int]  # where each source is

    def __len__(self) -> int:
        return len(self.pixels)

    def get(self, source: str) -> Fitted | None:
        if (place := self.places.get(source)) is None:
            return None
        height, width = self.sizes[place].tolist()
        return Fitted(self.pixels[place], (height, width))


Loader = Callable[[str], Image.Image]


def load_pictures(
    sources: Iterable[str], frame: Frame, load: Loader, key: Callable[[str], bytes]
) -> tuple[Pictures, dict[str, str]]:
    """Every source in the frame, from the cache or decoded into it, and what was wrong with those that are left out.

    The folder's name is a hash of what the pictures hold (`key`) and of the frame, and it appears when it is whole.
    """
    wanted = list(dict.fromkeys(sources))
    hashed = hashlib.sha256(json.dumps([frame.height, frame.width, FORMATS]).encode())
    for source in wanted:
        hashed.update(f"{source}\n".encode("utf-8", "surrogatepass"))
        hashed.update(key(source))
    folder = cache_folder() / f"pictures-{hashed.hexdigest()[:32]}"
    make_once(folder, lambda beside: _decode(wanted, frame, load, beside))
    facts = json.loads((folder / "sources.json").read_text(encoding="utf-8"))
    pixels, sizes = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("pixels", "sizes"))
    return Pictures(pixels, sizes, {s: i for i, s in enumerate(facts["kept"])}), facts["broken"]


def _decode(sources: Sequence[str], frame: Frame, load: Loader, folder: Path) -> None:
    kept: list[str] = []
    sizes: list[tuple[int, int]] = []
    broken: dict[str, str] = {}
    with (folder / "raw").open("wb") as raw:
        for source in sources:
            try:
                fitted = frame.fit(load(source))
            except ValueError as error:
                broken[source] = str(error)
                continue
            raw.write(fitted.pixels.tobytes())
            kept.append(source)
            sizes.append(fitted.size)
    shape = (len(kept), frame.height, frame.width, 3)
    rows = np.memmap(folder / "raw", np.uint8, "r", shape=shape) if kept else np.empty(shape, np.uint8)
    np.save(folder / "pixels.npy", rows)
    del rows
    (folder / "raw").unlink()
    np.save(folder / "sizes.npy", np.array(sizes, np.int32).reshape(-1, 2))
    (folder / "sources.json").write_text(json.dumps({"kept": kept, "broken": broken}), encoding="utf-8")


def file_key(source: str) -> bytes:
    """What a file holds, as a hash; nothing for one that cannot be read."""
    try:
        return hashlib.sha256(Path(source).read_bytes()).digest()
    except OSError:
        return b""
