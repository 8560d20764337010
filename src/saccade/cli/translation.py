"""What `saccade translate` does once torch may be loaded."""

import gzip
import json
import math
import os
import shutil
import sys
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from io import BufferedReader
from pathlib import Path
from typing import Any, TextIO, cast

from saccade.cli.words import Meter, check_place, say
from saccade.data import Watch, unwatched
from saccade.data.captions import PICTURES, UNREAD, Album, pictures_in
from saccade.data.readers import check_coding
from saccade.errors import UsageError
from saccade.files import written
from saccade.search import AT_ONCE, Options, Translator, occlude
from saccade.see import Prediction
from saccade.see.files import SEVERAL, VIEWED, check_ending, save
from saccade.see.terminal import printable
from saccade.see.views import check_name, warnings_of
from saccade.train import load

OCCLUDED = (".html", ".json", ".csv")  # files that tell what is left of a word when its look is hidden
INSIDE = (".html", ".json")  # files that can hold what a model sees in itself
BEAM = 5  # hypotheses, if nobody says how many
CHUNK = 1024  # texts read, translated and written at a time
BINARY = (b"\x89PNG", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"%PDF-", b"PK\x03\x04")  # begins no text


def search_options(
    beam: int | None,
    nbest: int,
    penalties: tuple[float | None, float],
    sample: bool,
    draws: tuple[float, int, float, int],
    prefix: str,
    force: str | None,
) -> Options:
    """How to search; what would change nothing is a mistake, and said to be one."""
    if force is not None and (beam is not None or nbest > 1 or sample or prefix or penalties != (None, 0.0)):
        raise UsageError("--force: scores a target as it is; leave out what is about searching, such as --beam")
    if sample and beam is not None:
        raise UsageError("--beam: --sample draws in place of searching; leave out one of them")
    if not sample and draws != (1.0, 0, 1.0, 0):
        raise UsageError("--temperature, --top-k, --top-p and --seed are for sampling: add --sample")
    check_penalties(beam, penalties)
    return options_of(beam or max(BEAM, nbest), nbest, *penalties, sample, *draws)


def options_of(*told: Any, **more: Any) -> Options:
    """How to search; a mistake is told in the words of the command line."""
    try:
        return Options(*told, **more)
    except UsageError as error:
        raise UsageError(f"--{str(error).replace('_', '-', 1)}") from None


def check_penalties(beam: int | None, penalties: tuple[float | None, float]) -> None:
    """Penalties choose among hypotheses, and greed has one."""
    if beam == 1 and penalties != (None, 0.0):
        raise UsageError("--length-penalty and --coverage-penalty change nothing with --beam 1; leave out one of them")


def translate_command(
    runs: list[Path],
    texts: list[str],
    file: Path | None,
    output: Path | None,
    options: Options,
    prefix: str,
    force: str | None,
    views: "Views",
) -> None:
    piped = not texts and file is None and not sys.stdin.isatty()
    if piped or (texts == ["-"] and file is None):
        texts, file = [], Path("-")
    _check(texts, file, output, options, force, views)
    translator = load(*runs)
    if options.coverage_penalty and translator.agrees:
        say("--coverage-penalty: is about writing from the start, so nobody else is asked to agree")
    if translator.reads_pictures:
        raise ValueError(f"{runs[0]}: reads pictures: saccade caption {runs[0]} IMAGE")
    pictures = {text for text in texts if _is_picture(text)}  # of arguments alone: a line of a file is text
    chunks, total = _chunks(texts, file), _count(texts, file)
    written = _write(translator, chunks, output, options, prefix, force, views, pictures, total)
    if piped and not written:
        raise UsageError("nothing to translate: give TEXT, or --input FILE, or lines on standard input")


def caption_command(
    runs: list[Path],
    sources: list[str],
    folder: Path | None,
    output: Path | None,
    options: Options,
    prefix: str,
    force: str | None,
    views: "Views",
) -> None:
    if views.save is not None and views.save.suffix.lower() in (".soft", ".pharaoh"):
        raise UsageError(f"--save {views.save}: {views.save.suffix} holds texts, not pictures")
    if (folder is None) == (not sources):
        raise UsageError("--input: give pictures or a folder of them, one of the two")
    if folder is not None:
        if not folder.is_dir():
            raise ValueError(f"{folder}: is no folder")
        sources = _listed(folder)
        if unread := pictures_in(folder, UNREAD):
            more = ", …" if len(unread) > 1 else ""
            say(f"{folder}: left out {len(unread):,} of kinds that are not read ({unread[0].name}{more})")
        if not sources:
            raise ValueError(f"{folder}: has no pictures ({' '.join(PICTURES)})")
        views.named = views.named is not False
        views.under = folder.absolute()
    _check(sources, None, output, options, force, views)
    translator = load(*runs)
    if not translator.reads_pictures:
        raise ValueError(f"{runs[0]}: reads text: saccade translate {runs[0]} TEXT")
    alone = output is None and sys.stdout.isatty()  # who sees the lines come needs no meter
    _write(
        translator, _several(sources, unwatched if alone else Meter("pictures")), output, options, prefix, force, views
    )


def _is_picture(text: str) -> bool:
    try:
        return text.lower().endswith(PICTURES) and Path(text).is_file()
    except (OSError, ValueError):  # no name of a file
        return False


def _listed(folder: Path) -> list[str]:
    """The pictures of a folder: in the order of their captions, if it has them, and then of their names."""
    try:
        parts = [pair.source for pair in Album(folder).pairs() if not pair.source.lower().endswith(UNREAD)]
    except ValueError:
        parts = []
    return list(dict.fromkeys([*parts, *map(str, pictures_in(folder))]))


def _several(sources: list[str], watch: Watch) -> Iterator[list[str]]:
    for start in range(0, len(sources), AT_ONCE):
        watch(start, len(sources))
        yield sources[start : start + AT_ONCE]
    watch(len(sources), len(sources))


def _write(
    translator: Translator,
    chunks: Iterator[list[str]],
    output: Path | None,
    options: Options,
    prefix: str,
    force: str | None,
    views: "Views",
    pictures: Collection[str] = (),
    total: int | None = None,
) -> int:
    """One output for each source, in order, empty for `pictures` given to a model of text; returns how many.

    If it is known how many there will be, a meter tells of them.
    """
    for name, text in (("--prefix", prefix), ("--force", force or "")):
        translator.check_writable(name, text)
    look = views.look or force is not None
    kept: list[Prediction] = []
    number = broken = 0
    meter = Meter("texts", logged=False)
    with _written(output) as out:
        for chunk in chunks:
            texts = ["" if text in pictures else text for text in chunk]
            if force is not None and texts[0]:
                found = translator.score_all([(texts[0], force)], views.inside)
            else:
                watch = unwatched if total is None else _beyond(meter, number, total)
                found = translator.translate(texts, options, look, prefix, views.inside, views.each, watch)
            Meter.wipe()
            for i, text in enumerate(chunk):
                if text in pictures:
                    wrong = f"{printable(text)}: is a picture, but the model reads text"
                    found[i] = replace(found[i], source=text, wrong=wrong)
            if views.occlude:
                found = [occlude(translator, p.source, p) if p.text else p for p in found]
            for prediction in found:
                number += 1
                broken += bool(prediction.wrong)
                views.print(prediction, number, options.nbest, out, scored=force is not None)
                _warn(printable(prediction.source) if translator.reads_pictures else f"text {number}", prediction)
            if views.save is not None:
                kept += found
    if views.save is not None and kept:
        listed = views.save.suffix.lower() == ".json"  # a record lists its alternatives itself
        save(kept if listed else [p for best in kept for p in (best, *best.alternatives)], views.save, views.view)
        say(f"saved: {views.save}")
    if broken:
        what = "pictures could not be read; their lines have no caption"
        what = what if translator.reads_pictures else "texts are pictures; their lines are empty: saccade caption"
        raise ValueError(f"{broken} of {number} {what}")
    return number


def _beyond(watch: Watch, before: int, total: int) -> Watch:
    """Who watches all, where so many were done before."""
    return lambda done, _: watch(before + done, total)


def _check(
    texts: list[str], file: Path | None, output: Path | None, options: Options, force: str | None, views: "Views"
) -> None:
    """What does not go together, before anything is loaded."""
    if file is not None and texts:
        raise UsageError("--input: give texts or a file, not both")
    if file is None and not texts:
        raise UsageError("nothing to translate: give TEXT, or --input FILE, or - for standard input")
    if force is not None and (file is not None or len(texts) != 1 or not texts[0].strip()):
        raise UsageError("--force: scores one target for one TEXT")
    if views.alignments and options.nbest > 1:
        raise UsageError("--alignments: of one output for each text; leave out --nbest, or use --json")
    if output is not None:
        check_place(output)
    to = views.save
    if to is not None and (len(texts) != 1 or options.nbest > 1) and to.suffix.lower() not in SEVERAL:
        raise UsageError(f"--save {to}: several fit into {' '.join(SEVERAL)} only; ask for one for {to.suffix}")


class Views:
    """What is printed for each prediction."""

    def __init__(
        self,
        as_json: bool,
        alignments: bool,
        show: bool,
        save: Path | None,
        occlude: bool = False,
        inside: bool = False,
        view: str | None = None,
        named: bool | None = None,
    ) -> None:
        if view is not None and not show and (save is None or save.suffix.lower() not in VIEWED):
            raise UsageError(f"--view: is for --show, and for --save FILE with {' '.join(VIEWED)}")
        if view is not None and save is not None and save.suffix.lower() not in VIEWED:
            raise UsageError(f"--view: {save.suffix} holds every view")
        if view is not None:
            check_name(view)
        if inside and view is None and not as_json and (save is None or save.suffix.lower() not in INSIDE):
            raise UsageError(f"--inside: is shown by --json and --save FILE with {' or '.join(INSIDE)}")
        if as_json and (alignments or show):
            raise UsageError("--json: prints records alone; leave out --alignments and --show")
        if save is not None:
            check_ending(save)
            check_place(save)
        self.json, self.alignments, self.show, self.save = as_json, alignments, show, save
        self.occlude, self.inside = occlude, inside or (view or "").startswith(("encoder", "decoder"))
        self.view = view
        self.named, self.under = named, Path.cwd()  # whether a picture's name stands before its caption, and from where
        self.look = as_json or alignments or show or occlude or save is not None
        self.each = show or (save is not None and save.suffix.lower() != ".json")  # also of alternatives

    def name(self, prediction: Prediction) -> str | None:
        """Which picture is meant, as a file of captions would say it, if it is to be said."""
        source = Path(prediction.source)
        told = source.relative_to(self.under) if source.is_relative_to(self.under) else source
        return printable(str(told)) if self.named else None

    def print(self, prediction: Prediction, number: int, nbest: int, out: TextIO, scored: bool = False) -> None:
        name = self.name(prediction)
        before = "" if name is None else f"{name}\t"
        before += f"{prediction.score:.4f}\t" if scored and not prediction.wrong else ""
        if self.json:
            print(json.dumps(prediction.record(), ensure_ascii=False), file=out)
        elif nbest > 1:
            for other in (prediction, *prediction.alternatives):
                score = "" if other.wrong else f"{other.score:.4f}"
                print(f"{name or number}\t{score}\t{_line(other.text)}", file=out)
                self._draw(other, out)
        else:
            links = f"\t{prediction.pharaoh()}" if self.alignments and prediction.text else ""  # an empty line is empty
            print(f"{before}{_line(prediction.text)}{links}", file=out)
        if nbest == 1:
            self._draw(prediction, out)
        if prediction.occluded and not self.json and (self.save is None or self.save.suffix.lower() not in OCCLUDED):
            _print_occluded(prediction, out)

    def _draw(self, prediction: Prediction, out: TextIO) -> None:
        if self.show:
            colour = out.isatty() and "NO_COLOR" not in os.environ
            width = shutil.get_terminal_size((100, 24)).columns
            print(prediction.drawn(colour, width, self.view), end="\n\n", file=out)


def _print_occluded(p: Prediction, out: TextIO) -> None:
    """A line for each word: how likely it was, without what it looked at, and without other places."""
    print("word\tplaces hidden\tprobability\twithout them\twithout others", file=out)
    for token, cost, o in zip(p.target_tokens, p.log_probabilities, p.occluded, strict=True):
        told = f"{o.places}\t{math.exp(cost):.3f}\t{o.hidden:.3f}\t{o.by_chance:.3f}"
        print(f"{printable(token.text.strip())}\t{told}", file=out)


def _line(text: str) -> str:
    """One output, one line, whatever was written."""
    return " ".join(text.splitlines())


def _chunks(texts: list[str], file: Path | None) -> Iterator[list[str]]:
    """Texts as they were given, or lines of a file as they come."""
    if file is None:
        yield texts
        return
    chunk: list[str] = []
    for raw in _raw_lines(file):
        chunk.append(raw.decode("utf-8", "replace").rstrip("\n").removesuffix("\r"))
        if len(chunk) == CHUNK:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _count(texts: list[str], file: Path | None) -> int | None:
    """How many there will be, if that is known: lines are counted for a terminal, and where they can be read twice."""
    if file is None:
        return len(texts)
    if not sys.stderr.isatty() or str(file) == "-" or not file.is_file():
        return None
    try:
        return sum(1 for _ in _raw_lines(file))
    except ValueError:  # what is wrong with it is told when it is read
        return None


def _raw_lines(file: Path) -> Iterator[bytes]:
    """As they come, unzipped, without the mark that some editors put at the beginning.

    A NUL, even in the first line, is a sign like any other: each line has its output.
    """
    given = nullcontext(cast(BufferedReader, sys.stdin.buffer)) if str(file) == "-" else file.open("rb")
    try:
        with given as raw:
            stream = gzip.GzipFile(fileobj=raw) if raw.peek(2)[:2] == b"\x1f\x8b" else raw
            check_coding(stream, file)
            if stream.peek(max(map(len, BINARY))).startswith(BINARY):
                raise ValueError(f"{file}: is a binary file, expected text in UTF-8")
            for number, line in enumerate(stream):
                yield line if number else line.removeprefix(b"\xef\xbb\xbf")
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{file}: broken gzip file ({error})") from None


@contextmanager
def _written(output: Path | None) -> Iterator[TextIO]:
    """Standard output, or a file that appears only when it is whole."""
    if output is None:
        yield sys.stdout
        return
    with written(output) as beside, beside.open("w", encoding="utf-8") as file:
        yield file


def _warn(where: str, done: Prediction) -> None:
    if done.wrong:
        say(done.wrong)
    if done.unknown:
        kinds = list(dict.fromkeys(done.unknown))
        listed = " ".join(repr(u[:20]) for u in kinds[:10])  # a tab as \t
        say(f"{where}: unknown symbols {listed}{f' and {len(kinds) - 10} more' if len(kinds) > 10 else ''}")
    if done.cut_source:
        say(f"{where}: {len(done.source)} characters are more than the model reads; the end was left out")
    if done.cut_output:
        say(f"{where}: the output reached its limit and was cut")
    for what in warnings_of(done):
        say(f"{where}: {what}")
