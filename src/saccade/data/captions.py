"""Readers of pictures with captions: what is in a folder, or in a JSON file, decides what it is.

captions.tsv .csv .jsonl       two columns, or the keys image and caption; also captions.txt, as Flickr8k has it
Flickr8k.token.txt             name.jpg#0 TAB caption, with Flickr_8k.trainImages.txt and so on
COCO                           JSON files with images and annotations: captions_train2017.json and so on
Karpathy's splits              a JSON file with images, their sentences and their split

The source of a pair is the path of its picture. Where parts are named (train, dev, test), they are kept.
"""

import json
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from saccade.data.pairs import Pair, Skipped
from saccade.data.readers import stream_rows

TABLES = ("captions.tsv", "captions.csv", "captions.jsonl", "captions.txt")
FLICKR = "Flickr8k.token.txt"
PICTURES = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".ppm", ".pgm")
PARTS = {"train": "train", "restval": "train", "val": "dev", "dev": "dev", "test": "test"}


class Captioned(NamedTuple):
    """A line that names a picture: where it stands, the picture, its caption, and its part if one is named."""

    line: int
    name: str
    caption: str
    part: str | None = None
    why: str | None = None  # why it cannot be used, if so


class Album:
    """A folder of pictures, or a JSON file beside them, and what is said of each."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.folder = path if path.is_dir() else path.parent

    @staticmethod
    def is_one(path: Path) -> bool:
        """Whether a path is to be read as pictures with captions."""
        if path.is_dir():
            return True
        if path.suffix.lower() != ".json" or not path.is_file():
            return False
        with path.open(encoding="utf-8", errors="replace") as file:
            start = file.read(10_000_000)
        return re.search(r'"images"\s*:\s*\[', start) is not None

    def stream(self, part: str, strict: bool = False) -> Iterator[Pair | Skipped]:
        """The pairs of a part, or all where no parts are named, and every line that was left out."""
        wanted = part if any(c.part for c in self._all) else None
        any_pair, first = False, None
        for line, name, caption, own, why in self._all:
            if wanted is not None and own != wanted:
                continue
            picture = None if why else self._find(name)
            text = " ".join(caption.split())
            why = why or (None if picture else f"no such picture: {name}" if name else "no picture named")  # noqa: PLW2901
            if why is None and text:
                any_pair = True
                yield Pair(str(picture), text)
                continue
            skipped = Skipped(str(self.listing), line, why or "empty caption")
            if strict:
                raise ValueError(f"{skipped} (leave out --strict to skip such lines)")
            first = first or skipped
            yield skipped
        if wanted is not None and wanted not in self.parts():
            raise ValueError(f"{self.path}: has no part named {wanted}; there are: {', '.join(sorted(self.parts()))}")
        if not any_pair:
            raise ValueError(f"{self.path}: no captions found{f'; the first problem: {first}' if first else ''}")

    def parts(self) -> set[str]:
        """The parts that are named."""
        return {c.part for c in self._all if c.part}

    @property
    def listing(self) -> Path:
        """The file that has the captions, or the first of them."""
        return self.listings[0]

    @cached_property
    def listings(self) -> list[Path]:
        """The files that have the captions."""
        if self.path.is_file():
            return [self.path]
        for name in (*TABLES, FLICKR):
            if (self.path / name).is_file():
                return [self.path / name]
        found = [*sorted(self.path.glob("*.json")), *sorted(self.path.glob("annotations/*.json"))]
        found = [file for file in found if self.is_one(file)]
        named = [file for file in found if file.stem.startswith("captions")]  # COCO has others, of boxes, beside them
        if not found:
            known = ", ".join((*TABLES, FLICKR))
            raise ValueError(
                f"{self.path}: a folder without captions; expected one of {known}, or a COCO or Karpathy JSON"
            )
        return named or found

    @cached_property
    def _all(self) -> list[Captioned]:
        if self.listing.name == FLICKR:
            return list(self._flickr())
        if self.listing.suffix.lower() == ".json":
            return [c for file in self.listings for c in self._json(file)]
        return list(self._table())

    def _table(self) -> Iterator[Captioned]:
        keys = ("image", "caption")
        with self.listing.open(encoding="utf-8-sig", errors="replace") as file:
            start = file.readline()
        named = self.listing.suffix.lower() == ".jsonl" or all(k in re.split(r"[,\t]", start.strip()) for k in keys)
        for line, sides in stream_rows(self.listing, keys if named else None):
            if isinstance(sides, str):
                yield Captioned(line, "", "", why=sides)
            else:
                yield Captioned(line, sides[0].strip(), sides[1])

    def _flickr(self) -> Iterator[Captioned]:
        parts: dict[str, str | None] = {}
        for file in sorted(self.folder.glob("Flickr_8k.*Images.txt")):
            part = PARTS.get(file.name.split(".")[1].removesuffix("Images"))
            parts |= dict.fromkeys(file.read_text(encoding="utf-8").split(), part)
        for number, line in enumerate(self.listing.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            name, _, caption = line.partition("\t")
            name = name.partition("#")[0]
            if not parts or name in parts:
                yield Captioned(number, name, caption, parts.get(name))

    def _json(self, file: Path) -> Iterator[Captioned]:
        words = re.split(r"[^a-z]+", file.stem.lower())
        part = next((PARTS[word] for word in words if word in PARTS), None) if len(self.listings) > 1 else None
        try:
            found = json.loads(file.read_text(encoding="utf-8"))
            images: list[dict[str, Any]] = found["images"]
            if "annotations" in found:
                names = {image["id"]: image["file_name"] for image in images}
                for number, note in enumerate(found["annotations"], 1):
                    yield _captioned(number, names.get(note["image_id"]), note["caption"], part)
                return
            for number, image in enumerate(images, 1):
                name = "/".join(filter(None, (image.get("filepath"), image["filename"])))
                for sentence in image["sentences"]:
                    said = sentence.get("raw") or " ".join(sentence["tokens"])
                    yield _captioned(number, name, said, PARTS.get(image.get("split", "")))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            what = f"{type(error).__name__} {error}"
            raise ValueError(f"{file}: neither COCO captions nor Karpathy's splits: {what}") from None

    def _find(self, name: str) -> Path | None:
        """The picture: at that place in the folder or, named alone, the only one so named in the folders under it.

        A picture that was saved in another format may have another ending.
        """
        direct = (self.folder / name).resolve()
        if name and direct.is_file() and direct.is_relative_to(self.folder.resolve()):
            return direct
        if not name or len(Path(name).parts) > 1:
            return None
        found = self._files.get(name) or self._files.get(Path(name).stem) or []
        return found[0] if len(found) == 1 else None

    @cached_property
    def _files(self) -> dict[str, list[Path]]:
        """By their names, and by their names without the ending."""
        files: dict[str, list[Path]] = {}
        for path in sorted(self.folder.rglob("*")):
            if path.suffix.lower() in PICTURES:
                for name in (path.name, path.stem):
                    files.setdefault(name, []).append(path.resolve())
        return files


def _captioned(line: int, name: object, caption: object, part: str | None) -> Captioned:
    if isinstance(name, str) and isinstance(caption, str):
        return Captioned(line, name, caption, part)
    return Captioned(line, "", "", part, f"expected a picture's name and its caption, found {name!r} and {caption!r}")
