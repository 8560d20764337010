"""Readers of pictures with captions: what is in a folder, or in a JSON file, decides what it is.

captions.tsv .csv .jsonl       two columns, or columns or keys named image, caption and, perhaps, split
captions.txt                   the same, as Flickr8k has it today
Flickr8k.token.txt             name.jpg#0 TAB caption, as it had it before
COCO                           JSON files with images and annotations: captions_train2017.json and so on
Karpathy's splits              a JSON file with images, their sentences and their split

The source of a pair is the path of its picture. Where parts are named (train, dev, test), they are kept: by what is
said above, or by lists of pictures (Flickr_8k.trainImages.txt and so on).
"""

import csv
import json
import os
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from saccade.data.pairs import Pair, Skipped
from saccade.data.readers import stream_rows

TABLES = ("captions.tsv", "captions.csv", "captions.jsonl", "captions.txt")
FLICKR, LISTS = "Flickr8k.token.txt", "Flickr_8k.*Images.txt"
NAMED = ("image", "file_name", "filename", "file", "picture")  # what a column of pictures is called
SAID = ("caption", "text", "sentence")
PARTED = ("split", "part")
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
        if path.is_file() and self.folder.name == "annotations":
            self.folder = self.folder.parent  # COCO's pictures are beside the folder of what is said of them

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
            if wanted is not None and own != wanted and not (why and own is None and wanted == "train"):
                continue
            picture = None if why else self._find(name)
            text = " ".join(caption.split())
            why = why or (None if picture else "no such picture" if name else "no picture named")  # noqa: PLW2901
            if why is None and text:
                any_pair = True
                yield Pair(str(picture), text)
                continue
            skipped = Skipped(str(self.listing), line, why or "empty caption", name)
            if strict:
                raise ValueError(f"{skipped} (leave out --strict to skip such lines)")
            first = first or skipped
            yield skipped
        if wanted is not None and wanted not in self.parts():
            raise ValueError(f"{self.path}: has no part named {wanted}; there are: {', '.join(sorted(self.parts()))}")
        if not any_pair:
            raise ValueError(f"{self.path}: no captions found{f'; the first problem: {first}' if first else ''}")

    def pairs(self) -> Iterator[Pair]:
        """All that can be used, whatever their part."""
        for _, name, caption, _, why in self._all:
            if why is None and caption.strip() and (picture := self._find(name)) is not None:
                yield Pair(str(picture), " ".join(caption.split()))

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
        for line, sides in stream_rows(self.listing, self._columns()):
            if isinstance(sides, str):
                yield Captioned(line, "", "", why=sides)
                continue
            name, caption, *split = sides
            known = PARTS.get(split[0].strip().lower(), "") if split else self._part(name.strip())
            if known is not None:
                yield Captioned(line, name.strip(), caption, known or None)

    def _columns(self) -> tuple[str, ...] | None:
        """What the columns of pictures, captions and parts are called, if they have names."""
        with self.listing.open(encoding="utf-8-sig", errors="replace") as file:
            start = file.readline()
        if self.listing.suffix.lower() == ".jsonl":
            try:
                names = list(json.loads(start))
            except (ValueError, TypeError, RecursionError):
                names = [NAMED[0], SAID[0]]
        else:
            cells = next(csv.reader([start], delimiter="\t" if "\t" in start else ","), [])
            names = [cell.strip().lower() for cell in cells]
        found = [next((k for k in keys if k in names), None) for keys in (NAMED, SAID, PARTED)]
        return tuple(name for name in found if name) if all(found[:2]) else None

    def _flickr(self) -> Iterator[Captioned]:
        for number, line in enumerate(self.listing.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            name, _, caption = line.partition("\t")
            name = name.partition("#")[0]
            if (part := self._part(name)) is not None:
                yield Captioned(number, name, caption, part or None)

    def _part(self, name: str) -> str | None:
        """In which list a picture stands: "" if there are no lists, None if it stands in none of them."""
        return self._lists.get(name) if self._lists else ""

    @cached_property
    def _lists(self) -> dict[str, str]:
        parts: dict[str, str] = {}
        for file in sorted(self.folder.glob(LISTS)):
            part = PARTS.get(file.name.split(".")[1].removesuffix("Images"))
            if part is not None:
                parts |= dict.fromkeys(file.read_text(encoding="utf-8", errors="replace").split(), part)
        return parts

    def _json(self, file: Path) -> Iterator[Captioned]:
        words = re.split(r"[^a-z]+", file.stem.lower())
        part = next((PARTS[word] for word in words if word in PARTS), None) if len(self.listings) > 1 else None
        try:
            found = json.loads(file.read_text(encoding="utf-8"))
            images: list[Any] = list(found["images"])
            if "annotations" in found:
                names = {_of(image, "id"): _of(image, "file_name") for image in images}
                for number, note in enumerate(found["annotations"], 1):
                    yield _captioned(number, names.get(_of(note, "image_id")), _of(note, "caption"), part)
                return
            if not any(_of(image, "sentences") for image in images):
                raise KeyError("sentences")
            for number, image in enumerate(images, 1):
                name = "/".join(filter(None, (_of(image, "filepath"), _of(image, "filename"))))
                for sentence in _of(image, "sentences") or [None]:
                    said = _of(sentence, "raw") or " ".join(_of(sentence, "tokens") or []) or None
                    yield _captioned(number, name, said, PARTS.get(_of(image, "split") or ""))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            what = f"{type(error).__name__} {error}"
            raise ValueError(f"{file}: neither COCO captions nor Karpathy's splits: {what[:200]}") from None

    def _find(self, name: str) -> Path | None:
        """The picture: at that place in the folder or, named alone, the only one so named in the folders under it.

        A picture that was saved in another format may have another ending.
        """
        top = self.folder.absolute()
        direct = Path(os.path.normpath(top / name))
        try:
            if name and direct.is_relative_to(top) and direct.is_file():
                return direct
        except (OSError, ValueError):
            return None  # no file has such a name
        if not name or len(Path(name).parts) > 1:
            return None
        found = self._files.get(name) or self._files.get(Path(name).stem) or []
        return found[0] if len(found) == 1 else None

    @cached_property
    def _files(self) -> dict[str, list[Path]]:
        """By their names, and by their names without the ending."""
        files: dict[str, list[Path]] = {}
        for path in pictures_in(self.folder):
            for name in (path.name, path.stem):
                files.setdefault(name, []).append(path)
        return files


def pictures_in(folder: Path) -> list[Path]:
    """Every picture in a folder and in those under it, links followed, in the order of their names."""
    found, been = [], set()
    for top, folders, names in os.walk(folder.absolute(), followlinks=True):
        if (real := os.path.realpath(top)) in been:  # a link that leads back
            folders.clear()
            continue
        been.add(real)
        found += [Path(top, name) for name in names if Path(name).suffix.lower() in PICTURES]
    return sorted(found)


def _of(record: object, key: str) -> Any:
    """What a record that somebody else wrote says under a key, if it is one."""
    return record.get(key) if isinstance(record, dict) else None


def _captioned(line: int, name: object, caption: object, part: str | None) -> Captioned:
    if isinstance(name, str) and isinstance(caption, str):
        return Captioned(line, name, caption, part)
    return Captioned(line, "", "", part, "expected a picture's name and its caption")
