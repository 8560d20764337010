"""Readers of pairs: the content decides what a file is, not its name.

TSV, CSV, JSON Lines, gettext PO, TMX, and two parallel plain files, each also gzipped. Every reader yields either a
pair or a reason for leaving a line out.
"""

import csv
import gzip
import io
import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree

from saccade.data.pairs import Corpus, Pair, Skipped

MOST_CHARACTERS = 20_000  # of one side of a pair
SOURCE_KEYS, TARGET_KEYS = ("source", "src", "input", "question"), ("target", "tgt", "output", "answer")

Row = tuple[int, Sequence[str] | str]  # line number, then the two sides, or why there are none


def read_pairs(*paths: Path | str, columns: tuple[int, int] = (1, 2), strict: bool = False) -> Corpus:
    """Pairs from one file, or from two parallel ones.

    `columns`, counted from 1, says where source and target stand in a TSV or CSV file. With `strict` the first line
    that cannot be used is an error.
    """
    files = [Path(p) for p in paths]
    if len(files) not in (1, 2):
        raise ValueError(f"expected one file of pairs or two parallel files, found {len(files)}")
    corpus = Corpus()
    texts = [_text(path) for path in files]
    rows = _parallel(files, texts) if len(files) == 2 else _rows(files[0], texts[0], columns)
    for line, sides in rows:
        why = sides if isinstance(sides, str) else _problem(sides)
        if why is None:
            corpus.pairs.append(Pair(sides[0].strip(), sides[1].strip()))
        elif strict:
            raise ValueError(f"{Skipped(str(files[0]), line, why)}\n  leave out --strict to skip such lines")
        else:
            corpus.skipped.append(Skipped(str(files[0]), line, why))
    if not corpus.pairs:
        first = f"; the first problem: {corpus.skipped[0]}" if corpus.skipped else ""
        raise ValueError(f"{files[0]}: no pairs found{first}")
    return corpus


def _text(path: Path) -> list[str]:
    """The lines of a file; those that are not UTF-8 carry a mark that `_problem` finds."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise ValueError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise ValueError(f"{path}: is a folder, expected a file") from None
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from None
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError) as error:
            raise ValueError(f"{path}: broken gzip file ({error})") from None
    if not data.strip():
        raise ValueError(f"{path}: is empty")
    if b"\x00" in data[:8192]:
        raise ValueError(f"{path}: is a binary file, expected text in UTF-8")
    text = data.decode("utf-8", errors="surrogateescape").removeprefix("\ufeff")
    return text.replace("\r\n", "\n").removesuffix("\n").split("\n")


def _problem(sides: Sequence[str]) -> str | None:
    for name, text in zip(("source", "target"), sides, strict=True):
        if not text.strip():
            return f"empty {name}"
        if any("\udc80" <= c <= "\udcff" for c in text):
            return f"{name} is not UTF-8"
        if len(text) > MOST_CHARACTERS:
            return f"{name} is longer than {MOST_CHARACTERS:,} characters"
    return None


def _rows(path: Path, lines: list[str], columns: tuple[int, int]) -> Iterator[Row]:
    start = next((line.lstrip() for line in lines if line.strip()), "")
    if start.startswith("{"):
        return _json_lines(lines)
    if start.startswith("<"):
        return _tmx(path, lines)
    if any(line.startswith("msgid ") for line in itertools.islice(lines, 500)):
        return _po(path, lines)
    if "\t" in start:
        return _columns(enumerate((line.split("\t") for line in lines), 1), columns)
    if "," in start:
        return _csv(lines, columns)
    raise ValueError(f"{path}:1: expected two columns, separated by a tab or a comma, found one")


def _parallel(files: list[Path], texts: list[list[str]]) -> Iterator[Row]:
    if len(texts[0]) != len(texts[1]):
        counts = f"{len(texts[0])} and {len(texts[1])} lines"
        raise ValueError(f"{files[0]} and {files[1]}: {counts}, expected as many in both")
    return enumerate(zip(*texts, strict=True), 1)


def _columns(rows: Iterable[tuple[int, Sequence[str]]], columns: tuple[int, int]) -> Iterator[Row]:
    """The two columns that are asked for; a first row that names them is a header."""
    first, second = columns
    for line, row in rows:
        if not any(cell.strip() for cell in row):
            continue  # an empty line separates nothing
        if line == 1 and tuple(cell.strip().lower() for cell in row[:2]) in _headers():
            continue
        if len(row) < max(columns) or (columns == (1, 2) and len(row) != 2):
            yield line, f"expected {max(columns)} columns, found {len(row)}"
        else:
            yield line, (row[first - 1], row[second - 1])


def _headers() -> set[tuple[str, str]]:
    return {(s, t) for s in SOURCE_KEYS for t in TARGET_KEYS}


def _csv(lines: list[str], columns: tuple[int, int]) -> Iterator[Row]:
    reader = csv.reader(io.StringIO("\n".join(lines)))
    try:
        yield from _columns(((reader.line_num, row) for row in reader), columns)
    except csv.Error as error:
        yield reader.line_num, f"not CSV: {error}"


def _json_lines(lines: list[str]) -> Iterator[Row]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (json.JSONDecodeError, RecursionError):
            yield number, "not JSON"
            continue
        yield number, _record(record)


def _record(record: object) -> Sequence[str] | str:
    if not isinstance(record, dict):
        return "expected a JSON object"
    sides = [next((record[k] for k in keys if k in record), None) for keys in (SOURCE_KEYS, TARGET_KEYS)]
    for keys, side in zip((SOURCE_KEYS, TARGET_KEYS), sides, strict=True):
        if not isinstance(side, str):
            return f"expected text under '{keys[0]}'"
    return [side for side in sides if isinstance(side, str)]


def _po(path: Path, lines: list[str]) -> Iterator[Row]:
    from babel.messages.pofile import PoFileError, read_po  # noqa: PLC0415  (only for such files)

    try:
        catalog = read_po(io.BytesIO("\n".join(lines).encode("utf-8", "surrogateescape")), abort_invalid=True)
    except (PoFileError, UnicodeError, ValueError) as error:
        raise ValueError(f"{path}: not a PO file ({error})") from None
    for message in catalog:
        line = message.lineno or 0
        singular, translation = _first(message.id), _first(message.string)
        if singular:  # the header has none
            yield line, ("fuzzy translation" if message.fuzzy else (singular, translation))


def _first(forms: str | Sequence[str] | None) -> str:
    """The singular, where a message has several forms."""
    if not forms:
        return ""
    return forms if isinstance(forms, str) else forms[0]


def _tmx(path: Path, lines: list[str]) -> Iterator[Row]:
    try:
        root = ElementTree.fromstring("\n".join(lines))
    except ElementTree.ParseError as error:
        raise ValueError(f"{path}:{error.position[0]}: not TMX: {error}") from None
    units = root.findall(".//tu")
    if not units:
        raise ValueError(f"{path}: XML without <tu>, expected TMX")
    for number, unit in enumerate(units, 1):
        sides = ["".join(segment.itertext()) for segment in unit.findall("./tuv/seg")]
        yield number, sides if len(sides) == 2 else f"expected 2 languages, found {len(sides)}"
