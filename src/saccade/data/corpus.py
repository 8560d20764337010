"""What a run learns from: files or a built-in task, split into what is trained on and what is held back."""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path

from saccade.data.captions import Album
from saccade.data.examples import MOST_TOKENS, Examples, cached, fits, tokenise
from saccade.data.pairs import MOST_SHOWN, Corpus, Pair, Skipped, fraction, split
from saccade.data.pictures import Frame, Pictures, Watch, load_pictures, unwatched
from saccade.data.readers import recognised, side_names, stream_pairs
from saccade.data.records import Columns, Languages
from saccade.data.tasks import TASKS, PictureTask, load_source, source_key
from saccade.data.tokenisers import Tokeniser
from saccade.errors import UsageError

LARGE = 256 * 1024 * 1024  # bytes of files: above this pairs are not kept in memory
SAMPLE = 500_000  # pairs of a large corpus from which tokenisers and sizes are chosen
DEV_SHARE, DEV_MOST = 0.05, 2000


@dataclass(slots=True)
class Source:
    """Where pairs come from: files, and how to read them, or the part of a task."""

    paths: list[str]
    part: str = "train"  # of a task
    columns: Columns | None = None
    langs: Languages | None = None
    strict: bool = False
    names: Languages | None = None  # of the sides in another file: they choose where this one has them too

    @property
    def task(self) -> str | None:
        return self.paths[0] if len(self.paths) == 1 and self.paths[0] in TASKS else None

    @property
    def album(self) -> Album | None:
        """Pictures with captions, if that is what it is."""
        alone = len(self.paths) == 1 and self.task is None
        return Album(Path(self.paths[0])) if alone and Album.is_one(Path(self.paths[0])) else None

    @property
    def pictures(self) -> bool:
        """Whether its sources are pictures."""
        return self.album is not None if self.task is None else isinstance(TASKS[self.task], PictureTask)

    def naming(self) -> Callable[[str], str]:
        """What a source is called wherever its files are: of a picture, the path from its album's folder."""
        album = self.album
        return str if album is None else partial(os.path.relpath, start=album.folder.absolute())

    def held_back(self) -> "Source | None":
        """The part of the same source to measure progress on, if it names one."""
        album = self.album
        named = self.task is not None or (album is not None and "dev" in album.parts())
        return replace(self, part="dev") if named else None

    def stream(self) -> Iterator[Pair | Skipped]:
        if self.task is not None:
            if self.columns or self.langs:
                raise UsageError(f"{self.task}: a built-in task has no columns or languages to choose from")
            return iter(TASKS[self.task].pairs(self.part))
        if (album := self.album) is not None:
            if self.columns or self.langs:
                raise UsageError(f"{self.paths[0]}: pictures have no columns or languages to choose from")
            return album.stream(self.part, self.strict)
        return stream_pairs(
            *self._files(), columns=self.columns, langs=self.langs, names=self.names, strict=self.strict
        )

    def recognised(self) -> list[str]:
        """What its file was taken for: who gives prose with commas may not have meant a table."""
        alone = len(self.paths) == 1 and self.task is None and self.album is None and Path(self.paths[0]).is_file()
        return [f"{self.paths[0]}: read as {recognised(self.paths[0])}"] if alone else []

    def side_names(self) -> Languages | None:
        """What it calls its sides, if it is one file of texts that does."""
        told = len(self.paths) > 1 or self.langs is not None or self.task is not None or self.album is not None
        return None if told else side_names(self._files()[0], self.columns)

    def _files(self) -> list[str]:
        """Its paths, unless there is nothing and a task was meant."""
        near = get_close_matches(Path(self.paths[0]).name, TASKS, n=1)
        if len(self.paths) == 1 and near and not Path(self.paths[0]).exists():
            raise ValueError(f"{self.paths[0]}: no such file; did you mean the built-in task '{near[0]}'?")
        return self.paths

    def size(self) -> int:
        """Bytes; those of zipped files are fewer than what is in them, so they count for more."""
        if self.task is not None:
            return 0
        return sum(Path(p).stat().st_size * (5 if p.endswith(".gz") else 1) for p in self.paths if Path(p).is_file())


@dataclass(slots=True)
class Material:
    """Pairs to learn from, and pairs to measure progress on that share no source with them unless a file says so."""

    source: Source
    dev: list[Pair]
    count: int  # pairs to learn from
    sample: list[Pair]  # all of them, unless they are too many
    skipped: Corpus = field(default_factory=Corpus)
    told: int = 0  # of these, so many were told of
    leaked: int = 0  # sources of a given dev file that stand in train too
    share: float = 0.0  # of sources, by their hash, that is held back
    content: str = ""  # a hash of everything
    held: str | None = None  # the file or task that dev is from, if it is another
    pictures: Pictures | None = None  # those to learn from, once they were looked at
    watch: Watch = unwatched  # is told how far that is

    def __iter__(self) -> Iterator[Pair]:
        """Every pair to learn from."""
        if self.count == len(self.sample):
            return iter(self.sample)
        pairs = (p for p in self.source.stream() if isinstance(p, Pair))
        return (p for p in pairs if fraction(p.source) >= self.share)

    def examples(self, source: Tokeniser | Frame, target: Tokeniser, most: int = MOST_TOKENS) -> Examples:
        """As numbers: in memory, or from the cache. A picture that cannot be read is left out, here and from `dev`, and
        so is a pair with more symbols on a side than `most`, which no model of it will ever read or write.
        """
        if isinstance(source, Frame):
            pictures = self.look(source)
            return numbered(self.sample, source, target, pictures)
        self.shorten(source, target, most)
        if self.count == len(self.sample):
            return Examples.of(tokenise(self, source, target))
        file, key = self.source.paths[0], f"{self.content} {self.share} {most}"
        examples, found = cached(self._short(self, file, source, target, most), source, target, key)
        known = set(self.skipped.skipped)
        left_out = [left for line in found if (left := line._replace(file=file)) not in known]  # wherever it was then
        if left_out and self.source.strict:
            raise ValueError(f"{left_out[0]} (leave out --strict to skip such pairs)")
        self.skipped.skipped += left_out
        return examples

    def shorten(self, source: Tokeniser, target: Tokeniser, most: int = MOST_TOKENS) -> None:
        """Leaves such pairs out of what is at hand; of a corpus larger than memory they are told of as it is read."""
        file, long = self.source.paths[0], Corpus()
        if held := list(long.sift(self._short(self.dev, self.held or file, source, target, most))):
            self.dev = held
            self.skipped.skipped += long.skipped
        whole, long = self.count == len(self.sample), Corpus()
        self.sample = list(long.sift(self._short(self.sample, file, source, target, most)))
        if whole:
            self.count = len(self.sample)
            self.skipped.skipped += long.skipped
        if not self.sample:
            raise ValueError(f"{self.source.paths[0]}: every pair has more than {most:,} symbols on a side")

    def untold(self) -> list[str]:
        """What was left out since it was last asked."""
        lines = Corpus(skipped=self.skipped.skipped[self.told :]).report()
        self.told = len(self.skipped.skipped)
        return lines

    def _short(
        self, pairs: Iterable[Pair], file: str, source: Tokeniser, target: Tokeniser, most: int
    ) -> Iterator[Pair | Skipped]:
        for pair in pairs:
            if fits(pair, source, target, most):
                yield pair
                continue
            long = Skipped(file, 0, f"more than {most:,} symbols", pair.source[: MOST_SHOWN + 1])
            if self.source.strict:
                raise ValueError(f"{long} (leave out --strict to skip such pairs)")
            yield long

    def look(self, frame: Frame) -> Pictures:
        """All pictures to learn from, looked up once. What cannot be read is left out, or an error (`strict`)."""
        if self.pictures is not None:
            return self.pictures
        self.dev, _ = self._readable(self.dev, frame)
        self.sample, self.pictures = self._readable(self.sample, frame)
        if not self.dev and len({p.source for p in self.sample}) > 1:
            self.sample, self.dev = split(self.sample, DEV_SHARE, DEV_MOST, self.source.naming())  # those are of no use
        self.count = len(self.sample)
        if not self.sample or not self.dev:
            raise ValueError(f"{self.source.paths[0]}: no picture can be read; the first: {self.skipped.skipped[0]}")
        return self.pictures

    def _readable(self, pairs: list[Pair], frame: Frame) -> tuple[list[Pair], Pictures]:
        found, pictures = readable(Corpus(pairs), frame, self.watch)
        if found.skipped and self.source.strict:
            raise ValueError(f"{found.skipped[0]} (leave out --strict to skip such pictures)")
        self.skipped.skipped += found.skipped
        return found.pairs, pictures


def readable(corpus: Corpus, frame: Frame, watch: Watch = unwatched) -> tuple[Corpus, Pictures]:
    """Pairs whose pictures can be read, these pictures, and why others were left out."""
    pictures, broken = _load(corpus.pairs, frame, watch)
    left_out = [
        Skipped(file, 0, why.removeprefix(f"{file}: ")) for file, why in broken.items()
    ]  # alike, counted as one
    kept = [p for p in corpus.pairs if p.source not in broken]
    return Corpus(kept, [*corpus.skipped, *left_out]), pictures


def _load(pairs: Sequence[Pair], frame: Frame, watch: Watch = unwatched) -> tuple[Pictures, dict[str, str]]:
    return load_pictures((p.source for p in pairs), frame, partial(load_source, side=frame.side), source_key, watch)


def numbered(
    pairs: Sequence[Pair], source: Tokeniser | Frame, target: Tokeniser, pictures: Pictures | None = None
) -> Examples:
    """Pairs as numbers, in memory; of pictures all that can be read. Those that are at hand need not be read again."""
    if not isinstance(source, Frame):
        return Examples.of(tokenise(pairs, source, target))
    if pictures is None:
        pictures, _ = _load(pairs, source)
    seen = [p for p in pairs if p.source in pictures.places]
    texts = target.encode_all([p.target for p in seen])
    places = ([pictures.places[p.source]] for p in seen)
    return Examples.of(zip(places, texts, strict=True), pictures)


def gather(source: Source, dev: Source | None, large: int = LARGE) -> Material:
    """Reads everything once: counts, keeps what fits, holds back what progress is measured on."""
    skipped = Corpus()
    dev = dev or source.held_back()
    if dev is not None and dev.pictures != source.pictures:
        raise ValueError(f"{dev.paths[0]}: pictures and text do not go together")
    names = source.names or source.side_names()  # they decide, not the order in which another file has them
    source, dev = replace(source, names=names), dev and replace(dev, names=names)
    held = [] if dev is None else list(skipped.sift(dev.stream()))
    wanted, found = {p.source for p in held}, set()
    keep_all, hashed = source.size() <= large, hashlib.sha256()
    sample: list[Pair] = []
    count = 0
    for pair in skipped.sift(source.stream()):
        count += 1
        if keep_all or len(sample) < SAMPLE:
            sample.append(pair)
        hashed.update(f"{pair.source}\t{pair.target}\n".encode("utf-8", "surrogatepass"))
        if pair.source in wanted:
            found.add(pair.source)
    if held:
        material = Material(source, held, count, sample, skipped, leaked=len(found))
    elif keep_all or count == len(sample):
        if len({p.source for p in sample}) < 2:
            raise ValueError(f"{source.paths[0]}: only one source; a second is needed to measure progress on")
        train, held = split(sample, DEV_SHARE, DEV_MOST, source.naming())
        material = Material(source, held, len(train), train, skipped)
    else:
        share = min(DEV_SHARE, DEV_MOST / count)
        held = [p for p in Corpus().sift(source.stream()) if fraction(p.source) < share]
        kept = [p for p in sample if fraction(p.source) >= share]
        material = Material(source, held, count - len(held), kept, skipped, share=share)
    for pair in held:
        hashed.update(f"{pair.source}\t{pair.target}\n".encode("utf-8", "surrogatepass"))
    material.held = None if dev is None else dev.paths[0]
    if source.pictures:
        for name in sorted({p.source for p in (*material.sample, *held)}):
            hashed.update(source_key(name))
    material.content = hashed.hexdigest()[:32]
    return material
