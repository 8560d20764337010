"""Readers: the content decides, a bad line is skipped and named, and no bytes do harm."""

import gzip
import json
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saccade.data import Pair, Source, read_pairs, split
from saccade.data.pairs import Corpus, Skipped
from saccade.errors import UsageError

PAIRS = [Pair("하나", "one"), Pair("둘", "two, too"), Pair('"셋"', "three")]
TMX = """<?xml version="1.0"?><tmx version="1.4"><body>{}</body></tmx>""".format(
    "".join(f"<tu><tuv><seg>{s}</seg></tuv><tuv><seg>{t}</seg></tuv></tu>" for s, t in PAIRS)
)
PO = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n' + "\n".join(
    f"msgid {json.dumps(s, ensure_ascii=False)}\nmsgstr {json.dumps(t)}\n" for s, t in PAIRS
)
FORMATS = {
    "tsv": "".join(f"{s}\t{t}\n" for s, t in PAIRS),
    "tsv with a header": "source\ttarget\n" + "".join(f"{s}\t{t}\n" for s, t in PAIRS),
    "tsv from Windows": "\ufeff" + "".join(f"{s}\t{t}\r\n" for s, t in PAIRS),
    "tsv from an old Mac": "\ufeff" + "".join(f"{s}\t{t}\r" for s, t in PAIRS),
    "csv": '하나,one\n둘,"two, too"\n"""셋""",three\n',
    "csv from where commas are decimal points": '하나;one\n둘;"two, too"\n"""셋""";three\n',
    "csv with columns in any order": 'target,id,source\none,1,하나\n"two, too",2,둘\nthree,3,"""셋"""\n',
    "json lines": "".join(json.dumps({"source": s, "target": t}, ensure_ascii=False) + "\n" for s, t in PAIRS),
    "json lines with other names": "".join(json.dumps({"src": s, "tgt": t}) + "\n" for s, t in PAIRS),
    "json lines of two texts": "".join(json.dumps({"ko": s, "id": 7, "en": t}) + "\n" for s, t in PAIRS),
    "json lines of lists": "".join(json.dumps(pair) + "\n" for pair in PAIRS),
    "json lines of Hugging Face": "".join(json.dumps({"translation": {"ko": s, "en": t}}) + "\n" for s, t in PAIRS),
    "tmx": TMX,
    "po": PO,
}


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("zipped", [False, True])
def test_every_format_by_its_content(tmp_path, kind, zipped):
    data = FORMATS[kind].encode()
    file = tmp_path / "data.bin"  # the name says nothing
    file.write_bytes(gzip.compress(data) if zipped else data)
    corpus = read_pairs(file)
    assert corpus.pairs == PAIRS
    assert corpus.skipped == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('Well, yes.\nNo, no.\nOh, "so, so", then.\n', "CSV, 2 columns"),
        ("a;1,5\nb;2,5\n", "CSV, 2 columns between semicolons"),
        ("a\tb\tc\nd\te\tf\ng\th\n", "TSV, 3 columns"),
        ('{"source": "a", "target": "b"}\n', "JSON Lines"),
        ("a ||| b\n", "pairs with |||"),
        ('msgid "a"\nmsgstr "b"\n', "PO"),
    ],
)
def test_what_a_file_was_taken_for_is_told(tmp_path, text, told):
    (tmp_path / "x").write_text(text)
    assert Source([str(tmp_path / "x")]).recognised() == [f"{tmp_path / 'x'}: read as {told}"]
    assert Source([str(tmp_path / "x")] * 2).recognised() == Source(["copy"]).recognised() == []


def test_ever_other_reasons_are_summed_up():
    wide = [Skipped("x.tsv", n, f"expected 2 columns, found {3 + n % 3000}") for n in range(1, 6001)]
    *told, rest = Corpus(skipped=[*wide, *[Skipped("x.tsv", n, "empty target") for n in range(7, 9)]] * 2).report()
    assert len(told) == 10
    assert told[0] == "skipped 4 lines: expected 2 columns, found 4 (x.tsv:1, x.tsv:3001, x.tsv:1, …)"
    assert rest == "skipped 11,964 more, for 2,991 other reasons"


def test_two_parallel_files(tmp_path):
    (tmp_path / "a").write_text("하나\n둘\n")
    (tmp_path / "b").write_text("one\ntwo\n")
    assert read_pairs(tmp_path / "a", tmp_path / "b").pairs == [Pair("하나", "one"), Pair("둘", "two")]
    (tmp_path / "b").write_bytes(b"one\rtwo\r")
    assert read_pairs(tmp_path / "a", tmp_path / "b").pairs == [Pair("하나", "one"), Pair("둘", "two")]
    (tmp_path / "b").write_text("one\n")
    with pytest.raises(ValueError, match="2 and 1 lines, expected as many in both"):
        read_pairs(tmp_path / "a", tmp_path / "b")


def test_bad_lines_are_skipped_counted_and_named(tmp_path):
    file = tmp_path / "pairs.tsv"
    file.write_bytes(b"a\tb\nc\n\nd\t\n\xff\xfe\tx\ne\tf\tg\n" + b"h" * 30_000 + b"\ti\nj\tk\n")
    corpus = read_pairs(file)
    assert corpus.pairs == [Pair("a", "b"), Pair("j", "k")]
    assert [(s.line, s.why) for s in corpus.skipped] == [
        (2, "expected 2 columns, found 1"),
        (4, "empty target"),
        (5, "source is not UTF-8"),
        (6, "expected 2 columns, found 3"),
        (7, "source is longer than 20,000 characters"),
    ]
    assert "skipped 1 line: empty target (" in "\n".join(corpus.report())
    with pytest.raises(ValueError, match=r"pairs.tsv:2: expected 2 columns, found 1"):
        read_pairs(file, strict=True)
    assert read_pairs(file, columns=(1, 3)).pairs == [Pair("e", "g")]


@pytest.mark.parametrize(
    ("columns", "sources"),
    [
        (((1, 3), 2), ["run V;PST", "V;PRS"]),
        (((3, 1), 2), ["V;PST run", "V;PRS"]),
        ((3, 2), ["V;PST", "V;PRS"]),
    ],
)
def test_columns_of_one_side_are_joined(tmp_path, columns, sources):
    """Inflection comes as lemma, form, tags: what is asked for is the form of a lemma with these tags."""
    file = tmp_path / "verbs.tsv"
    file.write_text("run\tran\tV;PST\n\tgoes\tV;PRS\nbe\twas\n")
    corpus = read_pairs(file, columns=columns)
    assert corpus.pairs == [Pair(sources[0], "ran"), Pair(sources[1], "goes")]
    assert [s.why for s in corpus.skipped] == ["expected 3 columns, found 2"]


@pytest.mark.parametrize("columns", [(1, 1), ((1, 3), 3), ((1, 2), (2, 3))])
def test_no_column_is_source_and_target(tmp_path, columns):
    (tmp_path / "a.tsv").write_text("a\tb\tc\n")
    with pytest.raises(UsageError, match="no column can be source and target"):
        read_pairs(tmp_path / "a.tsv", columns=columns)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "is empty"),
        (b"  \n\n", "is empty"),
        (b"\x00\x01\x02", "is a binary file"),
        ("a\tb\n".encode("utf-16"), "is UTF-16, expected UTF-8"),
        ("a\tb\n".encode("utf-32"), "is UTF-32, expected UTF-8: iconv -f UTF-32"),
        (b'[\n{"source": "a", "target": "b"}\n]\n', "is one JSON array, expected JSON Lines"),
        (b"a\tb\tc\nd\te\tf\n", r"expected 2 columns, found 3 \(choose with --columns 1,2 or, if two"),
        (b"m\t\xe4\n", r"target is not UTF-8 \(convert it with iconv\)"),
        (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR a\tb\n", "is a binary file"),  # its first line is only a name
        (b"one column\nonly\n", "expected two columns, separated by a tab or a comma, found one"),
        (b"a\t\nb\t\n", "no pairs found; the first problem: .*:1: empty target"),
        (b"\x1f\x8bbroken", "broken gzip file"),
        (b"<!DOCTYPE html><html><body>", "not TMX"),
        (b"<?XML", "not TMX"),
        (b"<!-- a, b -->\n<html></html>", "XML without <tu>, expected TMX"),
        (b"<html></html>", "expected two columns, separated by a tab or a comma, found one"),
        (b'{"a": 1}\n', "no pairs found; the first problem: .*:1: expected text under 'source'"),
        (b'{"source": "a", "target": true}\n', r"the first problem: .*:1: 'target' is no text$"),  # and no --langs
        (b'{"source": "a", "tgt": null}\n', r"the first problem: .*:1: 'tgt' is no text$"),
        (b"{broken\n", "no pairs found; the first problem: .*:1: not JSON"),
    ],
)
def test_files_that_hold_no_pairs(tmp_path, data, says):
    file = tmp_path / "x"
    file.write_bytes(data)
    with pytest.raises(ValueError, match=says):
        read_pairs(file)


def test_a_bad_byte_costs_one_unit_of_a_tmx_file(tmp_path):
    unit = "<tu><tuv xml:lang='en'><seg>{}</seg></tuv><tuv xml:lang='de'><seg>{}</seg></tuv></tu>\n"
    units = "".join(unit.format(*words) for words in (("one", "eins"), ("two\udcff", "zwei"), ("three", "drei")))
    file = tmp_path / "x.tmx"
    file.write_bytes(f"<tmx><body>\n{units}</body></tmx>".encode("utf-8", "surrogateescape"))
    corpus = read_pairs(file)
    assert corpus.pairs == [Pair("one", "eins"), Pair("three", "drei")]
    assert [(s.line, s.why) for s in corpus.skipped] == [(3, "not UTF-8")]


def test_a_bad_byte_costs_one_message_of_a_po_file(tmp_path):
    file = tmp_path / "x.po"
    file.write_bytes(PO.encode().replace(b"two, too", b"two \xff"))
    corpus = read_pairs(file)
    assert corpus.pairs == [PAIRS[0], PAIRS[2]]
    assert [s.why for s in corpus.skipped] == ["target is not UTF-8"]
    file.write_bytes(PO.replace("UTF-8", "ISO-8859-1").replace("three", "drüben").encode("latin-1", "replace"))
    assert read_pairs(file).pairs[-1].target == "drüben"  # what a file says of itself is believed


FORMS = """
msgid "a file"
msgid_plural "files"
msgstr[0] "{}"
msgstr[1] "{}"
msgstr[2] "{}"

#, fuzzy
msgid "a dog"
msgid_plural "dogs"
msgstr[0] "pies"

msgid "cat"
msgstr "kot"

#~| msgid "oxen"
#~ msgid "ox"
#~ msgstr "wół"

#~ msgid "cow"
#~ msgstr "krowa"
"""


@pytest.mark.parametrize(
    ("forms", "pairs", "skipped"),
    [
        (("plik", "", "plików"), [("a file", "plik"), ("files", "plików")], []),
        (("파일", "", ""), [("a file", "파일"), ("files", "파일")], []),
        (
            ("plik", "pliki", "plików"),
            [("a file", "plik"), ("files", "plików")],
            ["plural form between the first and the last"],
        ),
        (("", "", ""), [], ["empty target", "empty target"]),
    ],
)
def test_plurals_are_pairs_and_what_a_po_file_leaves_behind_is_said(tmp_path, forms, pairs, skipped):
    header = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\nPlural-Forms: nplurals=3; plural=0;\\n"\n'
    (tmp_path / "x.po").write_text(header + FORMS.format(*forms))
    corpus = read_pairs(tmp_path / "x.po")
    assert corpus.pairs == [*pairs, ("cat", "kot")]
    assert [(s.line, s.why) for s in corpus.skipped] == [
        *((4, why) for why in skipped),
        (11, "fuzzy translation"),
        (19, "obsolete message"),
        (22, "obsolete message"),
    ]


def test_what_a_po_file_leaves_behind_is_no_mistake(tmp_path):
    (tmp_path / "x.po").write_text(PO + '\n#~ msgid "ox"\n#~ msgstr "wół"\n')
    corpus = read_pairs(tmp_path / "x.po", strict=True)
    assert corpus.pairs == PAIRS
    assert [s.why for s in corpus.skipped] == ["obsolete message"]


def test_several_targets_of_a_record_are_several_pairs(tmp_path):
    (tmp_path / "x").write_text('{"source": "a", "target": ["b", "c"]}\n{"source": "d", "target": []}\n')
    corpus = read_pairs(tmp_path / "x")
    assert corpus.pairs == [Pair("a", "b"), Pair("a", "c")]
    assert [s.line for s in corpus.skipped] == [2]


def test_a_number_of_a_record_is_text(tmp_path):
    records = [{"source": "12 + 34", "target": 46}, {"source": 0.5, "target": ["half", 50]}, ["1 > 2", False]]
    (tmp_path / "x").write_text("".join(json.dumps(record) + "\n" for record in records))
    corpus = read_pairs(tmp_path / "x")
    assert corpus.pairs == [Pair("12 + 34", "46"), Pair("0.5", "half"), Pair("0.5", "50")]
    assert [(s.line, s.why) for s in corpus.skipped] == [(3, "'target' is no text")]


@pytest.mark.parametrize("wrap", [lambda record: record, lambda record: {"translation": record}])
def test_the_order_of_keys_never_swaps_the_sides_of_a_record(tmp_path, wrap):
    records = [{"id": 0}, {"ko": "a", "en": "b"}, {"en": "d", "ko": "c", "id": "x"}, {"de": "e", "en": "f"}]
    records += [{"source": "g", "target": "h"}, {"en": ["j", "k"], "ko": "i"}]
    (tmp_path / "x").write_text("".join(json.dumps(wrap(record)) + "\n" for record in records))
    corpus = read_pairs(tmp_path / "x")
    assert corpus.pairs == [Pair("a", "b"), Pair("c", "d"), Pair("i", "j"), Pair("i", "k")]
    assert [(s.line, s.why) for s in corpus.skipped] == [
        (1, "expected text under 'source'"),
        (4, "expected text under 'ko'"),
        (5, "expected text under 'ko'"),
    ]


def test_two_texts_of_any_name_are_no_source_and_target_where_others_are(tmp_path):
    records = [{"source": "a", "target": "b"}, {"tgt": "d", "src": "c"}, {"en": "f", "ko": "e"}, ["g", "h"]]
    (tmp_path / "x").write_text("".join(json.dumps(record) + "\n" for record in records))
    corpus = read_pairs(tmp_path / "x")
    assert corpus.pairs == [Pair("a", "b"), Pair("c", "d"), Pair("g", "h")]
    assert [(s.line, s.why) for s in corpus.skipped] == [(3, "expected text under 'source'")]


def tmx(*units, header=""):
    """A file of these units, a line each, of variants (language, text)."""
    variants = ("".join(f'<tuv xml:lang="{lang}"><seg>{text}</seg></tuv>' for lang, text in unit) for unit in units)
    return f"<tmx>{header}<body>\n" + "".join(f"<tu>{unit}</tu>\n" for unit in variants) + "</body></tmx>"


def test_the_order_of_variants_never_swaps_the_sides_of_a_unit(tmp_path):
    units = [("ko-KR", "a"), ("en", "b")], [("en_US", "d"), ("ko", "c")], [("de", "e"), ("en", "f")]
    file = tmp_path / "x.tmx"
    for header in ("", '<header srclang="*all*"/>', '<header srclang="ko"/>'):
        file.write_text(tmx(*units, header=header))
        corpus = read_pairs(file)
        assert corpus.pairs == [Pair("a", "b"), Pair("c", "d")]
        assert [(s.line, s.why) for s in corpus.skipped] == [(4, "no segment in 'ko'")]
    file.write_text(tmx(*units, header='<header srclang="en-US"/>'))  # what a file says of itself is believed
    assert read_pairs(file).pairs == [Pair("b", "a"), Pair("d", "c")]


def test_inline_code_of_a_segment_is_no_text(tmp_path):
    coded = '<bpt i="1">&lt;b&gt;<sub>note</sub></bpt>A <hi>dear<ph>%s</ph></hi><ept i="1">&lt;/b&gt;</ept> <it>x</it>dog<ut>y</ut>.'
    for langs in (None, ("en", "de")):
        (tmp_path / "x").write_text(tmx([("en", coded), ("de", "Ein <hi>lieber</hi> Hund.")]))
        assert read_pairs(tmp_path / "x", langs=langs).pairs == [Pair("A dear dog.", "Ein lieber Hund.")]


@pytest.mark.parametrize(("one", "other"), [("en-US", "en-GB"), ("zh", "zh-TW"), ("", ""), ("en", "en"), ("en", "")])
def test_variants_that_are_hardly_told_apart(tmp_path, one, other):
    (tmp_path / "x").write_text(tmx([(one, "a"), (other, "b")], [(other, "d"), (one, "c")]))
    told = one and other and one != other
    assert read_pairs(tmp_path / "x").pairs == [Pair("a", "b"), Pair("c", "d") if told else Pair("d", "c")]


@pytest.mark.parametrize("names", ["word\tpronunciation", "Korean\tEnglish", "한국어\t영어", "ko\ten"])
def test_a_row_that_names_the_columns_is_no_pair_and_that_is_said(tmp_path, names):
    (tmp_path / "t").write_text(f"{names}\n나무\ttree\n가다\tgo\n")
    for strict in (False, True):
        corpus = read_pairs(tmp_path / "t", strict=strict)
        assert corpus.pairs == [Pair("나무", "tree"), Pair("가다", "go")]
        assert [(s.line, s.why) for s in corpus.skipped] == [(1, "taken for the names of the columns")]


def test_short_words_are_no_names_of_languages(tmp_path):
    (tmp_path / "t").write_text("to\tzu\nof\tvon\nit\tes\nhouse\tHaus\n")  # Tongan and Zulu, they might be
    assert len(read_pairs(tmp_path / "t").pairs) == 4


def test_files_that_are_none(tmp_path):
    with pytest.raises(ValueError, match="no such file"):
        read_pairs(tmp_path / "nothing")
    with pytest.raises(ValueError, match="is a folder"):
        read_pairs(tmp_path)
    with pytest.raises(ValueError, match="expected one file of pairs or two parallel files, found 3"):
        read_pairs("a", "b", "c")


@given(st.binary(max_size=400) | st.text(alphabet='{}[]<>"\t\n,msgidstr \\:', max_size=200).map(str.encode))
def test_no_bytes_do_harm(tmp_path_factory, data):
    file = tmp_path_factory.mktemp("bytes") / "x"
    file.write_bytes(data)
    try:
        corpus = read_pairs(file)
    except ValueError as error:
        assert str(file) in str(error)
    else:
        assert all(p.source.strip() and p.target.strip() for p in corpus.pairs)


@given(st.lists(st.tuples(st.text(min_size=1, max_size=3), st.text(min_size=1, max_size=3)), min_size=2, max_size=60))
def test_a_split_never_lets_a_source_leak(rows):
    pairs = [Pair(*row) for row in rows]
    train, dev = split(pairs, share=0.3)
    assert sorted(train + dev) == sorted(pairs)
    assert not {p.source for p in train} & {p.source for p in dev}
    assert dev
    again, _ = split(pairs[::-1], share=0.3)
    assert sorted(again) == sorted(train)  # whatever the order


def test_a_split_keeps_together_what_is_composed_otherwise():
    words = ["각", "café", "über", "naïve", "한글", "ångström", "Škoda", "piñata"]
    pairs = [Pair(unicodedata.normalize(form, w), "x") for w in words for form in ("NFC", "NFD")]
    train, dev = split(pairs, share=0.4)
    assert train
    assert dev
    assert not {unicodedata.normalize("NFC", p.source) for p in train} & {
        unicodedata.normalize("NFC", p.source) for p in dev
    }


DATA = Path(__file__).parents[3] / "shared" / "data"


@pytest.mark.skipif(not DATA.exists(), reason=f"real data is not here: {DATA}")
def test_real_files():
    assert len(read_pairs(DATA / "g2p/medium/kor/train.tsv").pairs) == 8000
    assert len(read_pairs(DATA / "multi30k/val.de", DATA / "multi30k/val.en").pairs) == 1014
    assert len(read_pairs(DATA / "koen-bible/dev.tsv").pairs) == 1521


def test_an_odd_line_does_not_decide_what_a_file_is(tmp_path):
    rows = "".join(f"{i}\tx{i}\n" for i in range(20))
    for odd in ("My pairs, as they are", "a title", "<3 you\tme", "{name} hi\tyou"):
        (tmp_path / "t").write_text(odd + "\n" + rows)
        assert len(read_pairs(tmp_path / "t").pairs) >= 20


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ('"a ""b"""', 'a "b"'),
        ('"""Yes."""', '"Yes."'),
        ('"5"" pipe"', '5" pipe'),
        *((text, text) for text in ('"Yes."', '"Hello," he said.', '"Yes" or "no"', '""Yes""', '"', '""', '"5""')),
    ],
)
def test_quotes_of_a_spreadsheet_go_and_those_of_a_writer_stay(tmp_path, cell, text):
    (tmp_path / "t").write_text(f"{cell}\t{cell}\n")
    assert read_pairs(tmp_path / "t").pairs == [Pair(text, text)]


@pytest.mark.parametrize("within", ['""no""', '\\"no\\"'])
def test_quotes_around_every_cell_are_those_of_a_program(tmp_path, within):
    rows = "".join(f'{i}\t"word {i}"\t"Wort {i}"\n' for i in range(20))  # no quotes around numbers
    (tmp_path / "t").write_text(f'"id"\t"source"\t"target"\n{rows}20\t"he said {within}"\t""\n21\t"{within}"\tNA\n')
    corpus = read_pairs(tmp_path / "t")
    assert corpus.pairs == [*(Pair(f"word {i}", f"Wort {i}") for i in range(20)), Pair('"no"', "NA")]
    assert [(s.line, s.why) for s in corpus.skipped] == [(22, "empty target")]


def test_quotes_around_some_cells_are_the_writer_s(tmp_path):
    rows = [Pair('"Yes."', '"Ja."'), Pair('"No."', '"Nein."'), Pair("Hm.", '"Hm."')]
    (tmp_path / "t").write_text("".join(f"{s}\t{t}\n" for s, t in rows))
    assert read_pairs(tmp_path / "t").pairs == rows


def test_a_header_is_known_in_any_columns_and_after_an_empty_line(tmp_path):
    (tmp_path / "t").write_text("\nid\tsource\ttarget\n1\ta\tb\n")
    assert read_pairs(tmp_path / "t", columns=(2, 3)).pairs == [Pair("a", "b")]


def test_one_bad_field_of_csv_costs_one_line(tmp_path):
    rows = "".join(f"s{i},t{i}\n" for i in range(50))
    (tmp_path / "t").write_text("a,b\n" + "x" * 300_000 + ",y\n" + rows)
    corpus = read_pairs(tmp_path / "t")
    assert len(corpus.pairs) == 51
    assert [s.line for s in corpus.skipped] == [2]
    (tmp_path / "t").write_text('a,b\n"open,y\n' + rows * 10)
    with pytest.raises(ValueError, match=r"t:2: a quote opens here and is not closed within 100 lines"):
        read_pairs(tmp_path / "t")


def test_half_a_character_is_skipped(tmp_path):
    (tmp_path / "t").write_text('{"source": "\\ud800", "target": "x"}\n{"source": "a", "target": "b"}\n')
    corpus = read_pairs(tmp_path / "t")
    assert corpus.pairs == [Pair("a", "b")]
    assert corpus.skipped[0].why == "source is not UTF-8"


def test_a_decimal_comma_separates_nothing(tmp_path):
    (tmp_path / "t").write_text("12,5;12.5\n7,25;7.25\n")
    assert read_pairs(tmp_path / "t").pairs == [Pair("12,5", "12.5"), Pair("7,25", "7.25")]


@pytest.mark.parametrize("between", [",", ";"])
def test_lines_inside_a_quoted_cell_do_not_say_what_a_file_is(tmp_path, between):
    (tmp_path / "t").write_text(f'"one\n\nmore""s"{between}"eins\nmehr\ndrei"\n"5"" a"{between}"b"\n' * 3)
    corpus = read_pairs(tmp_path / "t")
    assert corpus.pairs == [Pair('one\n\nmore"s', "eins\nmehr\ndrei"), Pair('5" a', "b")] * 3
    assert corpus.skipped == []


def test_a_quote_within_a_cell_opens_nothing(tmp_path):
    (tmp_path / "t").write_text('5" pipe,Rohr; fünf\n6" pipe,Rohr; sechs\nhe said "no",nein\n')
    assert [p.target for p in read_pairs(tmp_path / "t").pairs] == ["Rohr; fünf", "Rohr; sechs", "nein"]


def test_text_may_begin_with_a_tag(tmp_path):
    (tmp_path / "t").write_text("<b>abc</b>,abc\n<i>de</i>,de\n")
    assert read_pairs(tmp_path / "t").pairs == [Pair("<b>abc</b>", "abc"), Pair("<i>de</i>", "de")]


def test_three_named_columns_are_not_read_as_two(tmp_path):
    from saccade.data import Source, gather

    path = tmp_path / "three.tsv"
    path.write_text("en\tde\tfr\n" + "".join(f"one {n}\teins {n}\tun {n}\n" for n in range(9)))
    for read in (lambda: read_pairs(path), lambda: gather(Source([str(path)]), None)):
        with pytest.raises(
            ValueError, match=r"no pairs found; the first problem: .*expected 2 columns, found 3 .*--columns"
        ):
            read()
