"""Records: JSON Lines, gettext's PO and TMX, where names or languages tell one side from the other.

Each yields rows: a line number with its two sides, or with why it has none.
"""

import io
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

SOURCE_KEYS, TARGET_KEYS = ("source", "src", "input", "question"), ("target", "tgt", "output", "answer")
OBSOLETE, BETWEEN = "obsolete message", "plural form between the first and the last"
LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
INLINE = ("bpt", "ept", "ph", "it", "ut")  # of TMX: code for a layout, which nobody said

Row = tuple[int, Sequence[str] | str]  # line number, then the two sides, or why there are none
Languages = tuple[str, str]
Column = int | tuple[int, ...]  # from 1, or several that are joined
Columns = tuple[Column, Column]


class Names(NamedTuple):
    """What a file calls its sides, in words of its own: a row before the first pair."""

    source: str
    target: str


Keys = list[tuple[str, ...]]  # of a record in JSON: for each side what it may be called
KNOWN: Keys = [SOURCE_KEYS, TARGET_KEYS]
Variant = tuple[str, str]  # of a unit of TMX: its language, and its text


def parsed(lines: Iterator[str]) -> Iterator[tuple[int, dict[str, Any] | list[Any] | str]]:
    """Line numbers, each with what stands there in JSON, or with why there is nothing."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            yield number, "not JSON"
            continue
        yield number, record if isinstance(record, dict | list) else "expected a JSON object"


def json_lines(lines: Iterator[str], langs: tuple[str, ...] | None, names: Languages | None) -> Iterator[Row]:
    """The first record that can be used fixes the keys: in what order others have them says nothing of their sides."""
    fixed: Keys | None = [(lang,) for lang in langs] if langs else None
    for number, found in parsed(lines):
        record = found if isinstance(found, str) else _record(found)
        if isinstance(record, str):
            yield number, record
            continue
        keys = fixed or _keys(record, names)
        pairs = _sides(record, keys)
        if isinstance(pairs, str):
            yield number, pairs
            continue
        if fixed is None and keys != KNOWN:
            yield number, Names(*(key for (key,) in keys))
        fixed = keys
        yield from ((number, sides) for sides in pairs)


def _record(record: dict[str, Any] | list[Any]) -> dict[str, Any] | str:
    if isinstance(record, dict) and isinstance(record.get("translation"), dict):
        return dict(record["translation"])  # as data sets of Hugging Face have it
    if isinstance(record, list) and len(record) == 2:
        return dict(zip(("source", "target"), record, strict=True))
    return record if isinstance(record, dict) else "expected a JSON object"


def _keys(record: dict[str, Any], names: Languages | None) -> Keys:
    """What the sides are called in a record: as they are elsewhere, by names that we know or, where it has none, as its
    only two texts are.
    """
    elsewhere: Keys = [(name,) for name in names or ()]
    if elsewhere and not isinstance(_sides(record, elsewhere), str):
        return elsewhere
    texts = [key for key, value in record.items() if isinstance(value, str)]
    known = any(record.get(key) is not None for key in (*SOURCE_KEYS, *TARGET_KEYS))
    return KNOWN if known or len(texts) != 2 else [(key,) for key in texts]


def _sides(record: dict[str, Any], wanted: Keys) -> list[list[str]] | str:
    """The pairs of a record, by its keys; a list of targets is one pair for each."""
    found = [next((key for key in keys if key in record), None) for keys in wanted]
    sides: list[Any] = [None if key is None else _written(record[key]) for key in found]
    targets = [_written(target) for target in sides[1]] if isinstance(sides[1], list) else [sides[1]]
    pairs = [[sides[0], target, *sides[2:]] for target in targets]
    for pair in pairs or [sides]:
        for keys, key, side in zip(wanted, found, pair, strict=True):
            if not isinstance(side, str):
                return f"expected text under '{keys[0]}'" if key is None else f"'{key}' is no text"
    return pairs


def _written(value: Any) -> Any:
    """A number as JSON writes it, 1.50 as 1.5, since it is plainly meant as text: 12 + 34 is 46."""
    return json.dumps(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def po(path: Path, lines: Iterable[str]) -> Iterator[Row]:
    from babel.messages.pofile import PoFileError, read_po  # noqa: PLC0415  (only for such files)

    text = "\n".join("#" if line.startswith("#~|") else line for line in lines)  # babel knows no former msgid
    declared = re.search(r"charset=([\w-]+)", text)
    other = declared is not None and declared[1].lower() not in ("utf-8", "utf8", "ascii", "us-ascii", "charset")
    try:
        file: Any = io.BytesIO(text.encode("utf-8", "surrogateescape")) if other else io.StringIO(text)
        catalog = read_po(file, abort_invalid=True)  # read as text, a bad byte costs one message
    except (PoFileError, UnicodeError, ValueError) as error:
        raise ValueError(f"{path}: not a PO file ({error})") from None
    for message in catalog:
        if message.id:  # the header has none
            yield from ((message.lineno or 0, sides) for sides in _message(message))
    for message in catalog.obsolete.values():
        yield message.lineno or 0, OBSOLETE


def _message(message: Any) -> Iterator[Sequence[str] | str]:
    """Singular and plural are a pair each; of several forms for many, the last stands for the plural."""
    if message.fuzzy:
        yield "fuzzy translation"
    elif not message.pluralizable:
        yield message.id, message.string
    else:
        one, *many = message.string
        yield message.id[0], one
        filled = [form for form in many if form] or [one]  # some languages have but one form
        yield message.id[1], filled[-1]
        yield from [BETWEEN] * len(filled[:-1])


def tmx(path: Path, lines: Iterator[str], langs: tuple[str, ...] | None, names: Languages | None) -> Iterator[Row]:
    parser: Any = ElementTree.XMLPullParser(["end"])
    number, units, broken = 0, 0, False
    source, order = "", langs
    try:
        for number, line in enumerate(lines, 1):
            whole = line.encode("utf-8", "surrogateescape").decode(
                "utf-8", "replace"
            )  # XML bears no marks of bad bytes
            broken = broken or whole != line
            parser.feed(whole + "\n")
            for _, element in parser.read_events():
                if element.tag == "header":
                    source = _code(element.get("srclang"))
                if element.tag == "tu":
                    units += 1
                    variants = _variants(element)
                    if broken:
                        yield number, "not UTF-8"
                    elif langs is None and len(variants) != 2:
                        yield number, f"expected 2 languages, found {len(variants)}: choose with --langs"
                    else:
                        if order is None and (found := _order(variants, source, names)):
                            order = found
                            yield number, Names(*found)
                        yield number, _unit(variants, order)
                    element.clear()
                    broken = False
        parser.close()
    except (ElementTree.ParseError, UnicodeError) as error:
        raise ValueError(f"{path}:{number}: not TMX: {error}") from None
    if not units:
        raise ValueError(f"{path}: XML without <tu>, expected TMX")


def _variants(unit: ElementTree.Element) -> list[Variant]:
    return [
        (_code(variant.get(LANGUAGE) or variant.get("lang")), _text(segment))
        for variant in unit.findall("./tuv")
        for segment in variant.findall("./seg")
    ]


def _text(segment: ElementTree.Element) -> str:
    """What is said in a segment: without inline code, with what is marked (<hi>)."""
    for element in list(segment.iter()):
        if element.tag in INLINE:
            after = element.tail
            element.clear()
            element.tail = after
    return "".join(segment.itertext())


def _code(lang: str | None) -> str:
    return (lang or "").lower().replace("_", "-")


def _is_in(code: str, lang: str) -> bool:
    """Whether a code is that of a language, or of what is spoken of it somewhere: en-GB is in en."""
    return code == lang or code.startswith(f"{lang}-")


def _order(variants: list[Variant], source: str, names: Languages | None) -> Languages | None:
    """The languages of all units, from the two variants of the first: as they are elsewhere, or that of the source, if
    the header names it, is first. Without two languages there is no order but that of the file.
    """
    if names is not None and not isinstance(_unit(variants, names), str):
        return names
    codes = [code for code, _ in variants]
    short = [code.partition("-")[0] for code in codes]
    first, second = short if short[0] != short[1] else codes  # en-US and en-GB are told apart by all they have
    if not first or not second or first == second:
        return None
    return (second, first) if _is_in(source, second) else (first, second)


def _unit(variants: list[Variant], order: tuple[str, ...] | None) -> Sequence[str] | str:
    if order is None:
        return [text for _, text in variants]
    found = []
    for lang in order:
        fitting = [(code != _code(lang), text) for code, text in variants if _is_in(code, _code(lang))]
        if not fitting:
            return f"no segment in '{lang}'"
        found.append(min(fitting, key=lambda fit: fit[0])[1])  # zh itself rather than zh-TW, else the first
    return found
