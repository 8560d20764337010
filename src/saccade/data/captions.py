"""Readers of pictures with captions: what is in a folder, or in a file beside the pictures, decides what it is.

captions.tsv .csv .jsonl       two columns, or columns or keys named image, caption and, perhaps, split
captions.txt                   the same, as Flickr8k has it today
metadata.csv .jsonl            the same, as folders of pictures have it on the hub
Flickr8k.token.txt             name.jpg#0 TAB caption, as it had it before
COCO                           JSON files with images and annotations: captions_train2017.json and so on
Karpathy's splits              a JSON file with images, their sentences and their split

A file may have another name, if it is named itself. The source of a pair is the path of its picture. Where parts are
named (train, dev, test), they are kept: by what is said above, or by lists of pictures (Flickr_8k.trainImages.txt and
so on). In JSON Lines one picture may have a list of captions.
"""

import csv
import itertools
import json
import os
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from saccade.data.pairs import Pair, Skipped
from saccade.data.readers import problem, stream_records, stream_rows
from saccade.data.records import SOURCE_KEYS, TARGET_KEYS

TABLES = (
    *("captions.tsv", "captions.csv", "captions.jsonl", "captions.txt"),
    *("metadata.csv", "metadata.jsonl", "Flickr8k.token.txt"),
)
LISTS = "Flickr_8k.*Images.txt"
NAMED = ("image", "file_name", "filename", "file", "picture", "image_name")  # what a column of pictures is called
SAID = ("caption", "text", "sentence", "captions", "sentences", "comment")
PARTED = ("split", "part")
KEYS = ((*NAMED, *SOURCE_KEYS), (*SAID, *TARGET_KEYS), PARTED)  # of a record
PICTURES = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".ppm", ".pgm")
UNREAD = (".heic", ".heif", ".avif", ".jp2", ".psd", ".svg", ".cr2", ".nef", ".dng")  # pictures too, but not for us
PARTS = {
    **dict.fromkeys(("train", "training", "restval"), "train"),
    **dict.fromkeys(("dev", "val", "valid", "validation"), "dev"),
    **dict.fromkeys(("test", "testing"), "test"),
}
PEEKED = 20  # rows of a file, which tell whether it speaks of pictures


class Captioned(NamedTuple):
    """A line that names a picture: where it stands, the picture, its caption, and its part if one is named."""

    line: int
    name: str
    caption: str
    part: str | None = None
    why: str | None = None  # why it cannot be used, if so
    file: Path | None = None  # which it stands in, where there are several


class Album:
    """A folder of pictures, or a file beside them, and what is said of each."""

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
        if not path.is_file():
            return False
        with path.open("rb") as file:
            start = file.read(10_000_000 if path.suffix.lower() == ".json" else 100_000)
        if path.suffix.lower() == ".json":
            return re.search(rb'"images"\s*:\s*\[', start) is not None
        if not any(ending.encode() in start.lower() for ending in (*PICTURES, *UNREAD)):
            return False  # and no more is read of what may be large, and of another kind
        try:
            first = list(itertools.islice(Album(path)._rows(), PEEKED))
        except ValueError:
            return False
        return 2 * sum(row.name.lower().endswith((*PICTURES, *UNREAD)) for row in first) > len(first)

    def stream(self, part: str, strict: bool = False) -> Iterator[Pair | Skipped]:
        """The pairs of a part, or all where no parts are named, and every line that was left out."""
        wanted = part if any(c.part for c in self._all) else None
        any_pair, first = False, None
        for row in self._all:
            if wanted not in (None, row.part or "train"):  # what is of no part is said with train
                continue
            line, name, caption, own, why, file = row
            apart = wanted is not None and own is None and why is None
            picture = None if why else self._find(name)
            why = why or ("is in no part, but others are" if apart else None)
            why = why or (None if picture else "no such picture" if name else "no picture named")
            why = why or problem((name, caption), ("name", "caption"))
            if why is None:
                any_pair = True
                yield Pair(str(picture), " ".join(caption.split()))
                continue
            skipped = Skipped(str(file or self.listing), line, why, name)
            if strict and not apart:  # who made the parts left it out on purpose
                raise ValueError(f"{skipped} (leave out --strict to skip such lines)")
            first = first or skipped
            yield skipped
        if wanted is not None and wanted not in self.parts():
            known = ", ".join(sorted(self.parts()))
            hint = " (choose with --part)" if wanted == "test" else ""
            raise ValueError(f"{self.path}: has no part named {wanted}; there are: {known}{hint}")
        if not any_pair:
            raise ValueError(f"{self.path}: no captions found{f'; the first problem: {first}' if first else ''}")

    def pairs(self) -> Iterator[Pair]:
        """All that can be used, whatever their part."""
        for row in self._all:
            if row.why is None and row.caption.strip() and (picture := self._find(row.name)) is not None:
                yield Pair(str(picture), " ".join(row.caption.split()))

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
        for name in TABLES:
            if (self.path / name).is_file():
                return [self.path / name]
            if len(below := sorted(self.path.glob(f"*/{name}"))) == 1:  # as Flickr8k comes: texts here, pictures there
                return below
        found = [*sorted(self.path.glob("*.json")), *sorted(self.path.glob("annotations/*.json"))]
        found = [file for file in found if self.is_one(file)]
        named = [file for file in found if file.stem.startswith("captions")]  # COCO has others, of boxes, beside them
        if not found:
            raise ValueError(
                f"{self.path}: a folder without captions; expected one of {', '.join(TABLES)}, or a COCO or Karpathy "
                "JSON, or the path of a file beside the pictures"
            )
        return named or found

    @cached_property
    def _all(self) -> list[Captioned]:
        return list(self._rows())

    def _rows(self) -> Iterator[Captioned]:
        if self.listing.suffix.lower() == ".json":
            return (row._replace(file=file) for file in self.listings for row in self._json(file))
        return self._records() if self.listing.suffix.lower() == ".jsonl" else self._table()

    def _table(self) -> Iterator[Captioned]:
        for line, sides in stream_rows(self.listing, self._columns()):
            if isinstance(sides, str):
                yield Captioned(line, "", "", why=sides)
                continue
            name, caption, *split = sides
            name = re.sub(r"#\d+$", "", name.strip())  # Flickr's captions are numbered
            yield self._told(line, name, caption, split[0] if split else None)

    def _columns(self) -> tuple[str, ...] | None:
        """What the columns of pictures, captions and parts are called, if they have names."""
        with self.listing.open(encoding="utf-8-sig", errors="replace") as file:
            start = file.readline()
        cells = next(csv.reader([start], delimiter="\t" if "\t" in start else ","), [])
        names = [cell.strip().lower() for cell in cells]
        found = [next((k for k in keys if k in names), None) for keys in (NAMED, SAID, PARTED)]
        return tuple(name for name in found if name) if all(found[:2]) else None

    def _records(self) -> Iterator[Captioned]:
        """JSON Lines."""
        for line, record in stream_records(self.listing):
            name, said, split = (next((_of(record, k) for k in keys if _of(record, k)), None) for keys in KEYS)
            if isinstance(record, str):
                yield Captioned(line, "", "", why=record)
                continue
            for caption in said if isinstance(said, list) else [said]:
                if isinstance(name, str) and isinstance(caption, str):
                    yield self._told(line, name.strip(), caption, split)
                else:
                    yield Captioned(line, "", "", why=f"expected text under '{NAMED[0]}' and '{SAID[0]}'")

    def _told(self, line: int, name: str, caption: str, split: object) -> Captioned:
        """A picture's part is what stands beside it or, where nothing does, the list that it stands in."""
        if split is None:
            return Captioned(line, name, caption, self._lists.get(name))
        word = str(split).strip().lower()
        why = f"unknown part '{word}'" if word and word not in PARTS else None
        return Captioned(line, name, caption, PARTS.get(word), why)

    @cached_property
    def _lists(self) -> dict[str, str]:
        parts: dict[str, str] = {}
        for file in sorted(self.listing.parent.glob(LISTS)):
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
                    yield _captioned(number, name, said, PARTS.get(str(_of(image, "split"))))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            what = f"{type(error).__name__} {error}"
            raise ValueError(f"{file}: neither COCO captions nor Karpathy's splits: {what[:200]}") from None

    def _find(self, name: str) -> Path | None:
        """The picture: at that place in the folder or, named alone, the only one so named in the folders under it.

        A picture that was saved in another format may have another ending, and one that was moved between systems other
        capitals, or strokes that lean the other way.
        """
        top = self.folder.absolute()
        direct = Path(os.path.normpath(top / name))
        try:
            if name and direct.is_relative_to(top) and direct.is_file():
                return direct
        except (OSError, ValueError):
            return None  # no file has such a name
        if "\\" in name:
            return self._find(name.replace("\\", "/"))
        if not name or len(Path(name).parts) > 1:
            return None
        keys = (name, name.casefold(), Path(name).stem, Path(name).stem.casefold())  # the likeliest first
        found = next((self._files[key] for key in keys if key in self._files), [])
        return found[0] if len(found) == 1 else None

    @cached_property
    def _files(self) -> dict[str, list[Path]]:
        """By their names, and by their names without the ending, with the capitals they have and without."""
        files: dict[str, list[Path]] = {}
        for path in pictures_in(self.folder):
            for name in {path.name, path.stem, path.name.casefold(), path.stem.casefold()}:
                files.setdefault(name, []).append(path)
        return files


def pictures_in(folder: Path, endings: tuple[str, ...] = PICTURES) -> list[Path]:
    """Every picture in a folder and in those under it, links followed, in the order of their names."""
    found, been = [], set()
    for top, folders, names in os.walk(folder.absolute(), followlinks=True):
        if (real := os.path.realpath(top)) in been:  # a link that leads back
            folders.clear()
            continue
        been.add(real)
        found += [Path(top, name) for name in names if Path(name).suffix.lower() in endings]
    return sorted(found)


def _of(record: object, key: str) -> Any:
    """What a record that somebody else wrote says under a key, if it is one."""
    return record.get(key) if isinstance(record, dict) else None


def _captioned(line: int, name: object, caption: object, part: str | None) -> Captioned:
    if isinstance(name, str) and isinstance(caption, str):
        return Captioned(line, name, caption, part)
    return Captioned(line, "", "", part, "expected a picture's name and its caption")
