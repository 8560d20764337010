"""Readers of pairs: the content decides what a file is, not its name.

TSV, CSV, JSON Lines, gettext PO, TMX, `source ||| target`, and two parallel plain files, each also gzipped. Every
reader yields either a pair or a reason for leaving a line out, line by line: a file may be larger than memory (a PO
file may not).
"""

import csv
import gzip
import io
import itertools
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from saccade.data.pairs import Corpus, Pair, Skipped
from saccade.data.records import (
    BETWEEN,
    OBSOLETE,
    SOURCE_KEYS,
    TARGET_KEYS,
    Column,
    Columns,
    Languages,
    Names,
    Row,
    json_lines,
    parsed,
    po,
    tmx,
)
from saccade.errors import UsageError

MOST_CHARACTERS = 20_000  # of one side of a pair
PEEKED = 8192  # bytes of the first line, in which a NUL is looked for
SIGNATURE = 13  # bytes: those of GIF are the most
MARKS = {  # at the beginning of what is not UTF-8; the longer first, as UTF-16 begins one of UTF-32
    b"\xff\xfe\0\0": "UTF-32",
    b"\0\0\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
XML = ("<?xml", "<!doctype", "<!--", "<tmx")  # how TMX begins; text may begin with any other tag
NEARLY_ALL, FEWEST = 0.9, 3  # share of quoted cells, in so many lines, from which on a program put them all in quotes
MOST_LINES = 100  # of one record of a CSV file
QUOTED = re.compile(r'(?:^|(?<=[,;]))(?:"[^"]*")+', re.MULTILINE)  # a cell of CSV, over as many lines as it has
TITLES = {  # what people call their columns; names of languages besides
    *SOURCE_KEYS, *TARGET_KEYS, "word", "text", "sentence", "phrase", "original", "spelling", "graphemes",
    "pronunciation", "phones", "phonemes", "ipa", "translation", "transcription", "transliteration",
}  # fmt: skip
CODE = re.compile(r"[a-z]{2,3}")  # of a language, if it is no short word
NUMBER = re.compile(r"[\d.,+-]*|NA")  # or nothing, in a table of R
TITLED = "taken for the names of the columns"
BLAMELESS = (TITLED, OBSOLETE, BETWEEN)  # left out and said, but nobody's mistake
HINTS = {  # how to mend what is wrong with every line, by how its reason begins
    "expected 2 columns": "choose with --columns 1,2 or, if two of them are one side, --columns 1+3,2",
    "expected text under": "name them with --langs, such as --langs ko-en",
    "source is not UTF-8": "convert it with iconv",
    "target is not UTF-8": "convert it with iconv",
}


def read_pairs(
    *paths: Path | str, columns: Columns | None = None, langs: Languages | None = None, strict: bool = False
) -> Corpus:
    """Pairs from one file, or from two parallel ones, all at once."""
    corpus = Corpus()
    corpus.pairs.extend(corpus.sift(stream_pairs(*paths, columns=columns, langs=langs, strict=strict)))
    return corpus


def stream_pairs(
    *paths: Path | str,
    columns: Columns | None = None,
    langs: Languages | None = None,
    names: Languages | None = None,
    strict: bool = False,
) -> Iterator[Pair | Skipped]:
    """Pairs, and every line that was left out, one by one. A file without any pair is an error.

    `columns`, counted from 1, says where source and target stand in a TSV or CSV file, several of a side with a blank
    between them: ((1, 3), 2); `langs` chooses them where a
    file names its languages: in TMX, by the keys of JSON Lines, by the header of a table. Where there is nothing to
    choose, they say what stands there. `names` are what another file calls its sides: where this one calls them so too,
    they choose, and elsewhere they mean nothing. With `strict` the first line that cannot be used is an error.
    """
    files = [Path(p) for p in paths]
    if len(files) not in (1, 2):
        raise UsageError(f"expected one file of pairs or two parallel files, found {len(files)}")
    if columns is not None and langs is not None:
        raise UsageError("columns and languages: one of them says where source and target stand")
    if columns is not None and set(_joined(columns[0])) & set(_joined(columns[1])):
        raise UsageError(f"columns {columns[0]} and {columns[1]}: no column can be source and target")
    if len(files) == 2 and columns:
        raise UsageError("columns: only for one file, not for two parallel ones")
    rows = _parallel(files) if len(files) == 2 else _rows(files[0], columns, langs, names)
    any_pair, first = False, None
    for line, sides in rows:
        if isinstance(sides, Names):
            continue
        why = sides if isinstance(sides, str) else problem(sides)
        if why is None:
            any_pair = True
            yield Pair(sides[0].strip(), sides[1].strip())
            continue
        skipped = Skipped(str(files[-1] if why.startswith(("target", "empty target")) else files[0]), line, why)
        if strict and why not in BLAMELESS:
            raise ValueError(f"{skipped} (leave out --strict to skip such lines)")
        first = first or (skipped if why not in BLAMELESS else None)
        yield skipped
    if not any_pair:
        hint = next((f" ({h})" for begin, h in HINTS.items() if first and first.why.startswith(begin)), "")
        raise ValueError(f"{files[0]}: no pairs found{f'; the first problem: {first}{hint}' if first else ''}")


def side_names(path: Path | str, columns: Columns | None = None) -> Languages | None:
    """What a file of pairs calls its sides, if it does and not just source and target."""
    for _, sides in _rows(Path(path), columns, None):
        if not isinstance(sides, str):
            return sides if isinstance(sides, Names) else None  # the first pair
    return None


BARS = " ||| "  # between source and target, as aligners of words write them


def stream_rows(path: Path, names: tuple[str, ...] | None = None) -> Iterator[Row]:
    """Line numbers of one file, with the two sides, or the columns of these names, or with why there are none."""
    for line, sides in _rows(path, None, names):
        if isinstance(sides, Names):
            continue
        why = sides if isinstance(sides, str) else problem(sides)
        yield line, sides if why is None else why


def stream_records(path: Path) -> Iterator[tuple[int, dict[str, Any] | str]]:
    """Line numbers of a file of JSON Lines, each with its record, or with why there is none."""
    for line, record in parsed(_lines(path)):
        yield line, "expected a JSON object" if isinstance(record, list) else record


def _lines(path: Path) -> Iterator[str]:
    """The lines of a file; those that are not UTF-8 carry a mark that `problem` finds."""
    try:
        with path.open("rb") as raw:
            zipped = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            file = gzip.open(raw) if zipped else raw  # noqa: SIM115  (it lives and dies with raw)
            _check_text(file, path)
            for line in _ended(file):
                yield line.decode("utf-8", errors="surrogateescape")
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path}: broken gzip file ({error})") from None
    except FileNotFoundError:
        raise ValueError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise ValueError(f"{path}: is a folder, expected a file") from None
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from None


def _ended(file: Iterable[bytes]) -> Iterator[bytes]:
    """Lines without their ends. A file that has no end of a line is one, or comes from an old Mac, which wrote CR."""
    for number, line in enumerate(file):
        text = line if number else line.removeprefix(b"\xef\xbb\xbf")
        if number or line.endswith(b"\n"):
            yield text.rstrip(b"\n").removesuffix(b"\r")
        else:
            yield from text.removesuffix(b"\r").split(b"\r")


def _check_text(file: io.BufferedReader | gzip.GzipFile, path: Path) -> None:
    """No text has a NUL in its first line, and no picture lacks one in its signature and size; one further down is no
    more than a bad line.
    """
    check_coding(file, path)
    head = file.peek(PEEKED)[:PEEKED]
    if b"\0" in head[:SIGNATURE] or b"\0" in head.partition(b"\n")[0]:
        raise ValueError(f"{path}: is a binary file, expected text in UTF-8")


def check_coding(file: io.BufferedReader | gzip.GzipFile, path: Path) -> None:
    """A file that says itself that it is not UTF-8 is not read as if it were."""
    head = file.peek(PEEKED)
    if coding := next((MARKS[mark] for mark in MARKS if head.startswith(mark)), None):
        raise ValueError(f"{path}: is {coding}, expected UTF-8: iconv -f {coding} -t UTF-8")


def problem(sides: Sequence[str], names: tuple[str, str] = ("source", "target")) -> str | None:
    """Why two texts are no pair, if so."""
    for name, text in zip(names, sides, strict=False):  # what else there is may be anything
        if not text.strip():
            return f"empty {name}"
        if any("\ud800" <= c <= "\udfff" for c in text):
            return f"{name} is not UTF-8"
        if len(text) > MOST_CHARACTERS:
            return f"{name} is longer than {MOST_CHARACTERS:,} characters"
    return None


class _Recognised(NamedTuple):
    """What a file is, by its first lines: those that are not empty, its records bare of quoted cells."""

    kind: str
    lines: Iterator[str]
    full: list[str]
    bare: list[str]
    between: str


def _recognise(path: Path) -> _Recognised:
    lines = _lines(path)
    head = list(itertools.islice(lines, 500))
    full = [line.lstrip() for line in head if line.strip()]
    if not full:
        if next(lines, None) is None:
            raise ValueError(f"{path}: is empty")
        raise ValueError(f"{path}: begins with 500 empty lines")
    bare = QUOTED.sub("", "\n".join(full)).split("\n")
    between = _between(bare)

    def most(sign: Callable[[str], bool], asked: Sequence[str] = full) -> bool:
        return 2 * sum(map(sign, asked)) > len(asked)  # one odd line does not decide

    if any(line.startswith("msgid ") for line in head):
        kind = "PO"
    elif most(lambda line: "\t" in line):
        kind = "TSV"
    elif most(lambda line: BARS in line):
        kind = "pairs with |||"
    elif most(lambda line: line.startswith(("{", '["'))) and not full[0].startswith("[{"):
        kind = "JSON Lines"
    elif full[0].lower().startswith(XML):
        kind = "TMX"
    elif full[0].startswith("[{") or full[0].strip() == "[":
        raise ValueError(f"{path}: is one JSON array, expected JSON Lines, an object a line: jq -c '.[]' {path.name}")
    elif most(lambda line: between in line, bare):
        kind = "CSV"
    else:
        raise ValueError(
            f"{path}:1: expected two columns, separated by a tab or a comma, found one; name both of parallel files"
        )
    return _Recognised(kind, itertools.chain(head, lines), full, bare, between)


def recognised(path: Path | str) -> str:
    """What a file of pairs is read as, in words: CSV, 2 columns."""
    found = _recognise(Path(path))
    if found.kind not in ("CSV", "TSV"):
        return found.kind
    sign, lines = (found.between, found.bare) if found.kind == "CSV" else ("\t", found.full)
    ((wide, _),) = Counter(line.count(sign) + 1 for line in lines).most_common(1)
    return f"{found.kind}, {wide} columns{' between semicolons' if sign == ';' else ''}"


def _rows(
    path: Path, columns: Columns | None, langs: tuple[str, ...] | None, names: Languages | None = None
) -> Iterator[Row]:
    kind, lines, full, _, between = _recognise(path)
    if columns is not None and kind not in ("TSV", "CSV"):
        raise ValueError(f"{path}: columns are for TSV and CSV, but this is {kind}")
    match kind:
        case "PO":
            return po(path, lines)
        case "TSV":
            unquote = _bare if _all_quoted(full) else _unquoted
            rows_of = enumerate(([unquote(cell) for cell in line.split("\t")] for line in lines), 1)
            return _columns(path, rows_of, columns, langs, names)
        case "JSON Lines":
            return json_lines(lines, langs, names)
        case "TMX":
            return tmx(path, lines, langs, names)
        case "CSV":
            return _columns(path, _records(path, lines, between), columns, langs, names)
    return _columns(path, enumerate((line.split(BARS) for line in lines), 1), None, None, names)


def _parallel(files: list[Path]) -> Iterator[Row]:
    counts = [0, 0]
    for number, sides in enumerate(itertools.zip_longest(*map(_lines, files)), 1):
        counts = [c + (s is not None) for c, s in zip(counts, sides, strict=True)]
        if counts[0] == counts[1]:
            yield number, sides
    if counts[0] != counts[1]:
        both = f"{counts[0]} and {counts[1]} lines"
        raise ValueError(f"{files[0]} and {files[1]}: {both}, expected as many in both (--dev FILE measures progress)")


def _columns(
    path: Path,
    rows: Iterable[tuple[int, Sequence[str]]],
    columns: Columns | None,
    langs: tuple[str, ...] | None,
    names: Languages | None,
) -> Iterator[Row]:
    """The two sides that are asked for; a first row that names their columns is a header."""
    sides = [_joined(column) for column in columns or (1, 2)]
    wanted = tuple(itertools.chain(*sides))
    fixed, width = columns is None, None
    full = ((line, row) for line, row in rows if any(cell.strip() for cell in row))  # an empty line separates nothing
    head = list(itertools.islice(full, 20))
    titles = [cell.strip() for cell in head[0][1]] if head else []
    lower = [title.lower() for title in titles]
    places = [[i for i, title in enumerate(lower, 1) if title in keys] for keys in (SOURCE_KEYS, TARGET_KEYS)]
    if columns is None and langs is None and names is not None and all(name.lower() in lower for name in names):
        yield head[0][0], TITLED
        langs = names
    missing = [lang for lang in langs or () if lang.lower() not in lower]
    if langs is not None and head and not len(lower) == len(missing) == 2:  # two columns that nobody named are theirs
        if missing:
            raise ValueError(f"{path}:{head[0][0]}: no column is named '{missing[0]}' (there are: {', '.join(lower)})")
        wanted, fixed, width = tuple(lower.index(lang.lower()) + 1 for lang in langs), False, len(lower)
        sides = [(i,) for i in wanted]
        head = head[1:]
    elif columns is None and all(len(place) == 1 for place in places):
        wanted, fixed = (places[0][0], places[1][0]), len(lower) == 2
        sides = [(i,) for i in wanted]
        head = head[1:]
    elif len(titles) >= max(wanted) and _titles([[row[i - 1] for i in wanted if i <= len(row)] for _, row in head]):
        yield head[0][0], TITLED
        if len(wanted) == len({lower[i - 1] for i in wanted}) == 2 and (columns is not None or len(titles) == 2):
            yield head[0][0], Names(*(titles[i - 1] for i in wanted))
        head = head[1:]
    for line, row in itertools.chain(head, full):
        if len(row) < max(wanted) or (fixed and len(row) != 2):
            yield line, f"expected {max(wanted)} columns, found {len(row)}"
        elif width is not None and any(cell.strip() for cell in row[width:]):  # a comma that nobody quoted
            yield line, f"expected {width} columns, found {len(row)}"
        else:
            yield line, tuple(" ".join(cell for i in side if (cell := row[i - 1]).strip()) for side in sides)


def _joined(column: Column) -> tuple[int, ...]:
    return (column,) if isinstance(column, int) else column


def _all_quoted(lines: list[str]) -> bool:
    """Whether every cell of TSV is in quotes, as R and pandas write them; R has none around numbers."""
    cells = [cell for line in lines for cell in line.split("\t") if not NUMBER.fullmatch(cell)]
    return len(lines) >= FEWEST and sum(map(_wrapped, cells)) > NEARLY_ALL * len(cells)


def _wrapped(cell: str) -> bool:
    return len(cell) > 1 and cell.startswith('"') and cell.endswith('"')


def _bare(cell: str) -> str:
    """What is in the quotes of a cell; quotes within are doubled or, by R, escaped."""
    if not _wrapped(cell):
        return cell
    return cell[1:-1].replace('""' if '""' in cell[1:-1] else '\\"', '"')


def _unquoted(cell: str) -> str:
    """A cell of TSV as a spreadsheet had it, if it doubled quotes within; quotes around all else are the writer's."""
    within = cell[1:-1]
    doubled = '""' in within and '"' not in within.replace('""', "")
    return _bare(cell) if _wrapped(cell) and doubled else cell


def _titles(rows: list[list[str]]) -> bool:
    """Whether the first of these rows names the columns: word and pronunciation, Korean and English, ko and en.

    Codes of languages are words too, to and zu: in a list of such words they name nothing.
    """
    first, *others = rows
    if all(cell.strip().lower() in _names() for cell in first):
        return True
    codes = all(CODE.fullmatch(cell) and cell in _codes() for cell in first) and len(set(first)) == 2
    return codes and not any(all(map(CODE.fullmatch, row)) for row in others)


@cache
def _names() -> set[str]:
    """What columns are called, languages in English and in Korean among it."""
    from babel import Locale  # noqa: PLC0415  (only for tables)

    return TITLES | {name.lower() for told in ("en", "ko") for name in Locale(told).languages.values()}


@cache
def _codes() -> set[str]:
    from babel import Locale  # noqa: PLC0415

    return set(Locale("en").languages)


def _between(bare: list[str]) -> str:
    """What separates the columns of a CSV file: what stands equally often in most of its records, bare of quoted cells.

    If both do, it is the semicolon: it is chosen where commas are decimal points.
    """
    counts = {sign: Counter(record.count(sign) for record in bare if sign in record) for sign in ";,"}
    return max(counts, key=lambda sign: max(counts[sign].values(), default=0))


def _records(path: Path, lines: Iterator[str], between: str) -> Iterator[tuple[int, Sequence[str]]]:
    """Rows of a CSV file, with the lines they begin at; a record of many lines is a quote that somebody forgot."""
    csv.field_size_limit(10 * MOST_CHARACTERS)  # a longer field is an error of its line, not of the file
    number = first = 0

    def numbered() -> Iterator[str]:
        nonlocal number
        for number, line in enumerate(lines, 1):
            if number - first > MOST_LINES:
                raise ValueError(f"{path}:{first + 1}: a quote opens here and is not closed within {MOST_LINES} lines")
            yield line + "\n"

    reader = csv.reader(numbered(), delimiter=between)
    while True:
        first = number
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error:
            row = ["not CSV"]  # one column, so it will be skipped with its line
        yield first + 1, row
