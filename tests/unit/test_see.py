"""Predictions: links between words, records that come back as they went, views that harm nobody."""

import html
import json
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saccade.see import Prediction, Token, align, from_links, page, read_soft, write_soft
from saccade.see.alignment import END
from saccade.see.files import ENDINGS, SEVERAL, save
from saccade.see.picture import fonts_for
from saccade.see.prediction import Occluded
from saccade.see.terminal import printable, width_of
from saccade.see.views import usual, view


def tokens(*pieces):
    """Pieces of one text, one after the other, and the end."""
    found, place = [], 0
    for piece in pieces:
        found.append(Token(piece, (place, place + len(piece))))
        place += len(piece)
    return (*found, Token(END, (place, place)))


def prediction(**changes):
    source, target = tokens("the", " ca", "t"), tokens("die", " Kat", "ze")
    weights = np.array([[8, 1, 1, 0], [1, 4, 4, 1], [1, 3, 5, 1], [0, 0, 1, 9]], dtype=np.float32) / 10
    given = {
        "source": "the cat",
        "text": "die Katze",
        "score": -1.5,
        "source_tokens": source,
        "target_tokens": target,
        "log_probabilities": (-0.5, -0.5, -0.25, -0.25),
        "cross": weights[None, None],
        "layer": 0,
    }
    return Prediction(**{**given, **changes})


def test_links_are_between_words_not_pieces():
    assert prediction().alignment == [(0, 0), (1, 1)]
    assert prediction().pharaoh() == "0-0 1-1"


def test_weights_are_the_mean_over_heads_of_the_layer_shown():
    cross = np.arange(2 * 3 * 4 * 4, dtype=np.float32).reshape(2, 3, 4, 4)
    shown = prediction(cross=cross, layer=1)
    assert np.array_equal(shown.weights, cross[1].mean(0))
    assert np.array_equal(shown.attention["cross"], cross)


def test_no_attention_is_no_failure():
    blind = prediction(cross=None)
    assert blind.weights is None
    assert blind.alignment == []
    assert "no attention" in blind.drawn()
    assert "no attention" in page([blind])
    unseen = Prediction("the cat", "die Katze", -1.5)  # the model may well have attention
    assert "(where it looked is not known)" in unseen.drawn()
    assert "where it looked is not known" in page([unseen])


def test_a_link_goes_to_no_word_of_an_empty_text():
    assert align(np.ones((1, 1), dtype=np.float32), [], [(0, 1)], "", "x") == []


def test_a_record_comes_back_as_it_went():
    for original in (
        prediction(),
        prediction(cross=None),
        prediction(encoder=np.ones((1, 2, 4, 4), np.float32), decoder=np.ones((1, 2, 4, 4), np.float32) / 8),
        prediction(gates=(0.5, 0.25, 1.0, 0.0), grid=(2, 2), cell=8),
        prediction(alternatives=(Prediction("the cat", "x", -3.0),)),
        prediction(occluded=(Occluded(2, 0.25, 0.5),) * 4),
        prediction(text="", target_tokens=(), log_probabilities=(), cross=np.zeros((2, 3, 0, 4), np.float32)),
    ):
        back = Prediction.read(json.loads(json.dumps(original.record())))
        assert back.record() == original.record()
        assert back.alignment == original.alignment


def test_a_saved_record_holds_its_picture(tmp_path):
    seen = np.random.default_rng(0).integers(0, 256, (6, 9, 3), dtype=np.uint8)
    cross = np.full((1, 1, 4, 6), 1 / 6, np.float32)
    prediction(source_tokens=(), cross=cross, grid=(2, 3), cell=3, picture=seen).save(tmp_path / "x.json")
    record = json.loads((tmp_path / "x.json").read_text())
    back = Prediction.read(record)
    assert np.array_equal(back.picture, seen)
    back.save(tmp_path / "x.png")
    for wrong in ("no base64", "AAAA", 5, "R0lGODdhAQABAIAAAP///////ywAAAAAAQABAAACAkQBADs="):  # the last is a GIF
        with pytest.raises(ValueError, match="picture"):
            Prediction.read({**record, "picture": wrong})
    del record["picture"]
    Prediction.read(record).save(tmp_path / "without.png")  # its grid on white


def test_a_row_that_looks_nowhere_has_no_entropy():
    cross = prediction().cross.copy()
    cross[0, 0, 3] = 0
    said = prediction(cross=cross)
    assert np.isnan(view(said).entropy(2))
    assert "–" in said.drawn(colour=False)
    assert "–" in page([said])
    twice = prediction(cross=2 * prediction().cross)  # rows need not add up: shares are what scatters
    assert view(twice).entropy(0) == pytest.approx(view(prediction()).entropy(0))


def test_a_view_says_what_ails_the_glances():
    stuck = np.zeros((1, 1, 4, 4), np.float32)
    stuck[..., 1] = 0.95
    stuck[..., 2] = 0.05
    said = prediction(cross=stuck)
    for told in (said.drawn(colour=False), page([said])):
        assert "attention looks at one place for every word" in told
    (links,) = from_links([("a b c", "x y z")], ["0-0 1-0"])
    assert "attention" not in links.drawn(colour=False)  # links need not add up


def test_what_is_too_much_for_a_page_is_said_there():
    n = 150
    many = tuple(Token(str(i), (2 * i, 2 * i + 1)) for i in range(n))
    cross = np.full((2, 2, n, n), 1 / n, np.float32)
    text = "x " * n
    large = Prediction(text, text, 0.0, many, many, cross=cross)
    assert "other layers, heads and pieces are in .json" in page([large])
    assert "times what looking everywhere alike gives" in page([large])
    heavy = prediction(decoder=np.zeros((800_000, 1, 4, 4), np.float32) + 0.25)
    assert "what the model saw in itself is in .json" in page([heavy])


@pytest.mark.parametrize(
    ("record", "says"),
    [
        ({}, "no version"),
        ({"version": 99}, "newer than this saccade knows"),
        ({"version": 1}, "not the record of a prediction"),
        ([], "no version"),
        ({**prediction().record(), "source_tokens": 3}, "not the record of a prediction"),
        ({**prediction().record(), "source": 5}, "must be texts"),
        ({**prediction().record(), "layer": 9}, "layer: 9, but there are 1"),
        ({**prediction().record(), "layer": 0.5}, "layer must be a number"),
        ({**prediction().record(), "unknown": [1]}, "what is unknown texts"),
        ({**prediction().record(), "text": "\ud800"}, "half of a surrogate pair"),
        ({**prediction().record(), "alternatives": [{"text": "x", "score": "y"}]}, "must be numbers"),
        ({**prediction().record(), "log_probabilities": "x"}, "log_probabilities: 1 for 4 tokens"),
        ({**prediction().record(), "target_tokens": []}, r"cross: shape \[1, 1, 4, 4\], expected \[L, H, 0, 4\]"),
        ({**prediction().record(), "attention": {"cross": [[[[1], [1, 2]]]]}}, "rows are of different lengths"),
    ],
)
def test_what_is_no_record_is_said(record, says):
    with pytest.raises(ValueError, match=says):
        Prediction.read(record)


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_ending(tmp_path, ending):
    file = tmp_path / f"glance{ending}"
    prediction().save(file)
    content = file.read_bytes()
    begins = {".png": b"\x89PNG", ".pdf": b"%PDF", ".html": b"<!doctype html>", ".svg": b"<?xml", ".json": b"{"}
    assert content.startswith(begins.get(ending, b""))
    if ending == ".pharaoh":
        assert content == b"0-0 1-1\n"
    if ending == ".csv":
        assert content.decode().splitlines()[1] == "die,0.8,0.2,0,0.606531,0.500402"  # words; then p and entropy


@pytest.mark.parametrize("ending", SEVERAL)
def test_files_that_hold_several(tmp_path, ending):
    file = tmp_path / f"glances{ending}"
    other = prediction(text="ein Hund", score=-3.0, target_tokens=tokens("ein", " Hu", "nd"))
    save([prediction(), other], file)
    content = file.read_text()
    if ending == ".pharaoh":
        assert content.splitlines() == ["0-0 1-1", "0-0 1-1"]
        assert [p.pharaoh() for p in from_links([("the cat", "x y")] * 2, content.splitlines())] == ["0-0 1-1"] * 2
    elif ending == ".json":
        assert [Prediction.read(json.loads(line)).text for line in content.splitlines()] == ["die Katze", "ein Hund"]
    else:
        assert 0 < content.index("Kat") < content.index("Hu")


def test_files_that_hold_one_refuse_several_and_links_need_words(tmp_path):
    with pytest.raises(ValueError, match=r"one fits into .png, and these are 2; use .html .json"):
        save([prediction(), prediction()], tmp_path / "x.png")
    picture = prediction(source_tokens=(), grid=(2, 2))
    for wrong in (picture, prediction(cross=None)):
        with pytest.raises(ValueError, match="sentence 2: links are between the words of texts with attention"):
            save([prediction(), wrong], tmp_path / "x.pharaoh")
    save([prediction(), Prediction("", "", 0.0)], tmp_path / "x.pharaoh")  # a line for each, as the sources have
    assert (tmp_path / "x.pharaoh").read_text() == "0-0 1-1\n\n"


def test_characters_that_no_font_has_are_told_of(tmp_path):
    strange = "\U000f0000"  # of private use: nobody draws it
    families, missing = fonts_for(f"abc é {strange}")
    assert families[0] == "DejaVu Sans"
    assert missing == [strange]
    said = prediction(source_tokens=tokens("the", strange, "t"))
    with pytest.warns(UserWarning, match="no font on this machine has \U000f0000"):
        said.save(tmp_path / "x.png", view="pieces")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        said.save(tmp_path / "x.svg", view="pieces")  # text stays text
        prediction(text="äß", target_tokens=tokens("ä", "ש", "م")).save(tmp_path / "y.png")


def test_letters_above_a_picture_stand_upright_and_words_lie(tmp_path):
    letters = prediction(source_tokens=tokens("t", "한", "e\u0301"))
    for said, turned in ((letters, False), (prediction(source_tokens=tokens("the", "long", "way")), True)):
        said.save(tmp_path / "x.svg", view="pieces")
        drawn = (tmp_path / "x.svg").read_text()
        assert ("rotate(-90" in drawn) is turned


def test_too_many_tokens_for_a_picture_are_said_to_be(tmp_path):
    many = tuple(Token("w", (2 * i, 2 * i + 1)) for i in range(500))
    long = prediction(source_tokens=many, cross=np.full((1, 1, 4, 500), 1 / 500, np.float32))
    with pytest.raises(ValueError, match="4 by 500 tokens are too many for a picture"):
        long.save(tmp_path / "x.png", view="pieces")
    with pytest.raises(ValueError, match="the source is empty"):
        Prediction("", "", 0.0).save(tmp_path / "x.png")
    assert not list(tmp_path.iterdir())


def test_strange_tokens_survive_the_soft_format(tmp_path):
    said = prediction(source_tokens=tokens("|||", "∎", "t"))
    said.save(tmp_path / "x.soft")
    (back,) = read_soft(tmp_path / "x.soft")
    assert np.allclose(back.weights, said.weights, atol=1e-5)
    assert [t.text for t in back.source_tokens] == ["¦¦¦", "∎", "t", END]


def test_show_prints(capsys):
    prediction().show()
    assert "█" in capsys.readouterr().out


def test_a_notebook_shows_the_page_in_a_frame_of_its_own():
    shown = prediction()._repr_html_()
    assert shown.startswith("<iframe ")
    assert 'sandbox="allow-scripts"' in shown
    inside = html.unescape(shown.partition('srcdoc="')[2].partition('"></iframe>')[0])
    assert inside == page([prediction()], title="the cat")


def test_another_ending_is_an_error_and_writes_nothing(tmp_path):
    with pytest.raises(ValueError, match=r"unknown ending '.pmg'; did you mean '.png'"):
        prediction().save(tmp_path / "x.pmg")
    assert not list(tmp_path.iterdir())


def test_a_heatmap_is_read_without_colour():
    lines = prediction().drawn(colour=False, view="pieces").splitlines()
    assert lines[0].split() == ["the", "ca", "t", END, "p", "entropy"]
    assert lines[1].split()[:2] == ["die", "▓▓▓"]
    assert lines[1].split()[-2:] == ["0.61", "0.64"]
    assert "\x1b" not in "".join(lines)
    assert "\x1b[38;5;" in prediction().drawn(colour=True)


def test_words_come_first_where_they_are_in_pieces():
    said = prediction(runners_up=((("der", 0.1),), (("Hu", 0.2),), (("x", 0.3),), ()), gates=(0.1, 0.2, 0.4, 1.0))
    shown = view(said)
    assert (shown.rows, shown.columns) == (("die", "Katze", END), ("the", "cat", END))
    assert np.allclose(shown.weights, [[0.8, 0.2, 0], [0.1, 0.8, 0.1], [0, 0.1, 0.9]])
    assert shown.probabilities == pytest.approx((np.exp(-0.5), np.exp(-0.75), np.exp(-0.25)))
    assert shown.gates == pytest.approx((0.1, 0.3, 1.0))
    assert shown.instead[0] == (("der", 0.1),)
    assert shown.instead[1] == (("Hu…", 0.2),)  # the start of another word
    assert "Katze" in said.drawn(colour=False)
    assert "Katze" not in said.drawn(colour=False, view="pieces")
    table = page([said]).partition("<tbody>")[2].partition("</tbody>")[0]
    assert "Katze" in table
    assert ">ze<" not in table
    letters = prediction(source_tokens=tokens(*"the cat"), target_tokens=tokens(*"die Katze"), cross=None)
    assert usual(letters) == "pieces"  # spelt: a row of whole words would hide the letters
    short = prediction(
        source="톰은 집에 갔어.",
        source_tokens=tokens("톰은", " ", "집", "에", " ", "갔", "어."),
        text="Tom went home.",
        target_tokens=tokens("Tom", " went", " ho", "me."),
        cross=None,
    )
    assert usual(short) == "words"  # pieces of syllables are short, and pieces all the same


def test_a_font_installed_since_is_found(monkeypatch):
    """matplotlib remembers the fonts that it found once, for ever."""
    from matplotlib.font_manager import fontManager

    name = fonts_for("a")[0][0]
    known = fontManager.ttflist
    monkeypatch.setattr(fontManager, "ttflist", [f for f in known if f.name != name])
    assert name not in {f.name for f in fontManager.ttflist}
    monkeypatch.setattr("matplotlib.font_manager.findSystemFonts", lambda: [f.fname for f in known if f.name == name])
    monkeypatch.setattr("saccade.see.picture.FONTS", [name])
    families, missing = fonts_for("a\N{SNOWMAN}\U0010ffff")  # the last has no font anywhere
    assert families[0] == name
    assert missing == ["\U0010ffff"]


@given(st.text("ab ", max_size=12), st.text("ab ", max_size=12), st.data())
def test_rows_of_words_add_up_however_they_are_cut(source, text, data):
    def cut(whole):
        ends = sorted(data.draw(st.sets(st.integers(1, max(1, len(whole))))) | {len(whole)})
        spans = zip([0, *ends], [e for e in ends if e <= len(whole)], strict=False)
        return (*(Token(whole[a:b], (a, b)) for a, b in spans if b > a), Token(END, (len(whole), len(whole))))

    read, wrote = cut(source), cut(text)
    weights = np.random.default_rng(0).dirichlet(np.ones(len(read)), len(wrote)).astype(np.float32)
    shown = view(Prediction(source, text, 0.0, read, wrote, cross=weights[None, None], layer=0), "words")
    assert np.allclose(shown.weights.sum(1), 1, atol=1e-5)
    assert shown.rows[-1] == shown.columns[-1] == END


def test_views_by_name(tmp_path):
    cross = np.random.default_rng(0).dirichlet(np.ones(4), (2, 3, 4)).astype(np.float32)
    said = prediction(cross=cross, layer=-1, decoder=cross)
    assert np.allclose(view(said, "mean").weights, cross.mean((0, 1)))
    assert np.allclose(view(said, "0").weights, cross[0].mean(0))
    assert np.allclose(view(said, "1.2").weights, cross[1, 2])
    assert view(said, "decoder:1.2").columns == ("START", "die", " Kat", "ze")
    in_words = view(said, "words:1.2")
    assert np.allclose(in_words.weights[1, 1], cross[1, 2, 1:3, 1:3].sum(-1).mean())  # Katze at cat
    assert in_words.title == "layer 1, head 2"
    assert np.allclose(view(said, "words:mean").weights.sum(-1), 1)
    for wrong, why in (
        ("2", "there are 2 layers"),
        ("0.3", "there are 3 heads"),
        ("mean.1", "belongs to a layer"),
        ("encoder", "told nothing of itself"),
        ("heads", "expected words, pieces"),
        ("", "expected words, pieces"),
    ):
        with pytest.raises(ValueError, match=why):
            view(said, wrong)
    said.save(tmp_path / "x.csv", view="1.2")
    assert (tmp_path / "x.csv").read_text().splitlines()[1].split(",")[1] == f"{cross[1, 2, 0, 0]:.6g}"
    with pytest.raises(ValueError, match="holds every view"):
        said.save(tmp_path / "x.html", view="1.2")


def test_what_joins_letters_is_shown_and_marks_take_no_room():
    assert printable("می\u200cروم") == "می\u200cروم"
    assert printable("a\u202eb") == "a�b"
    assert width_of("\u1112\u1161\u11ab") == 2  # 한, spelt out
    assert width_of("क्‍ष") == 2


def test_a_long_source_is_cut_into_slices():
    source = tokens(*[f" word{i}" for i in range(40)])
    wide = prediction(source_tokens=source, cross=np.full((1, 1, 4, 41), 1 / 41, dtype=np.float32))
    assert max(map(len, wide.drawn(colour=False, width=60).splitlines())) <= 60


@given(st.text(max_size=30), st.text(max_size=30))
def test_no_text_harms_a_view(source, text):
    """Control characters, bidi marks, markup and surrogates of any kind."""
    clean = Prediction(
        source, text, -1.0, tokens(source), tokens(text), (-0.5, -0.5), np.full((1, 1, 2, 2), 0.5, dtype=np.float32), 0
    )
    shown = clean.drawn(colour=False)
    assert not any(ord(c) < 32 and c != "\n" for c in shown)
    assert not {"\u202e", "\u2066", "\x9b"} & set(shown)
    shown = page([clean])
    assert shown.count("<script") == shown.count("</script") == 2  # the data, and what draws it
    assert " style=" not in shown  # which the page's own policy would forbid


NEMATUS = """0 ||| Obama welcomes Netanyahu ||| 0 ||| Obama empfängt Net@@ any@@ ah@@ u ||| 7 4
0.723834 0.0471278 0.126415 0.000413103 0.000774298 0.000715227 0.10072
0.00572539 0.743366 0.0342341 0.000315413 0.00550132 0.00150629 0.209351
0.0122618 0.0073559 0.909192 0.000606444 0.00614908 0.00256837 0.0618667
0.00110054 0.0214063 0.0759918 0.000446028 0.104856 0.0435644 0.752634

1 ||| yes ||| -0.5 ||| ja ||| 1 1
1.0
"""


class TestInterchange:
    def test_soft_alignments_of_others_come_in_and_go_out(self, tmp_path):
        (tmp_path / "a.soft").write_text(NEMATUS)
        first, second = read_soft(tmp_path / "a.soft")
        assert first.weights.shape == (4, 7)
        assert first.target_tokens[-1].text == first.source_tokens[-1].text == END
        assert first.pharaoh() == "0-0 1-1 2-2"
        assert second.score == -0.5
        assert [t.text for t in second.target_tokens] == ["yes"]  # this matrix has no ends
        (tmp_path / "b.soft").write_text(write_soft([first, second]))
        again = read_soft(tmp_path / "b.soft")
        for one, other in zip((first, second), again, strict=True):
            np.testing.assert_allclose(one.weights, other.weights, rtol=1e-5)
            assert (one.source_tokens, one.target_tokens) == (other.source_tokens, other.target_tokens)
        first.save(tmp_path / "c.soft")
        assert read_soft(tmp_path / "c.soft")[0].text == "Obama welcomes Netanyahu"

    @pytest.mark.parametrize(
        ("change", "says"),
        [
            (("0.10072\n", "\n"), r":2: 6 numbers, expected 7: the matrix does not fit its words"),
            (("0.723834", "nan"), ":2: a weight is not a finite number"),
            (("0.723834", "much"), ":2: expected 7 numbers"),
            (("7 4", "9 4"), ":1: N is 9, but there are 6 words"),
            (("||| 7 4", ""), r":1: expected 'id \|\|\| target"),
            (("||| 7 4", "||| seven"), ":1: the score, N and T must be numbers"),
            ((NEMATUS, "\n"), "has no soft alignments"),
        ],
    )
    def test_what_does_not_fit_is_said(self, tmp_path, change, says):
        (tmp_path / "a").write_text(NEMATUS.replace(*change))
        with pytest.raises(ValueError, match=says):
            read_soft(tmp_path / "a")

    def test_links_become_weights(self):
        (found,) = from_links([("a b c", "C A")], ["2-0 0-1"])
        assert found.weights.tolist() == [[0, 0, 1], [1, 0, 0]]
        assert found.pharaoh() == "0-1 2-0"
        for line, says in (("2:0", "is no link"), ("7-0", "a link 7-0, but there are 3 and 2 words")):
            with pytest.raises(ValueError, match=says):
                from_links([("a b c", "C A")], [line])
        with pytest.raises(ValueError, match="2 lines of links for 1 pairs"):
            from_links([("a", "b")], ["", ""])


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("log_probabilities", [1e9, -1, -1, -1]),
        ("score", float("nan")),
        ("source_tokens", [{"text": "the", "span": ["a", "b"]}] * 4),
        ("source_tokens", [{"text": "the", "span": [1]}] * 4),
        ("runners_up", [[{"text": 3, "probability": "x"}]] * 4),
        ("runners_up", [[{"text": "x", "probability": float("inf")}]] * 4),
        ("grid", [-1, -4]),
        ("attention", {"cross": [[[[float("nan")] * 4] * 4]]}),
        ("attention", {"cross": [[[[-3.0] * 4] * 4]]}),
    ],
)
def test_a_record_that_cannot_be_is_refused_in_one_line(field, value):
    record = prediction().record()
    with pytest.raises(ValueError, match="not the record of a prediction: TypeError"):
        Prediction.read({**record, field: value})


def test_a_picture_s_view_of_itself_has_its_own_columns(tmp_path):
    cross, itself = np.full((1, 1, 4, 6), 1 / 6, np.float32), np.full((1, 1, 4, 4), 0.25, np.float32)
    said = prediction(source_tokens=(), cross=cross, decoder=itself, grid=(2, 3))
    said.save(tmp_path / "x.csv", view="decoder:0")
    assert (tmp_path / "x.csv").read_text().splitlines()[0] == ",START,die, Kat,ze,p,entropy"
    said.save(tmp_path / "y.csv")
    assert (tmp_path / "y.csv").read_text().splitlines()[0].startswith(',"1,1","1,2","1,3","2,1"')


def test_words_written_leftward_are_isolated_so_that_columns_stay():
    said = prediction(source="אבג דה", source_tokens=tokens("אבג", " דה", "ו"))
    lines = said.drawn(colour=False, view="pieces").splitlines()
    assert lines[0].count("\u2068") == lines[0].count("\u2069") == 3
    assert "\u2068" not in lines[1]


def test_a_soft_file_that_ends_early_is_said_to(tmp_path):
    prediction().save(tmp_path / "x.soft")
    lines = (tmp_path / "x.soft").read_text().splitlines()
    (tmp_path / "y.soft").write_text("\n".join(lines[:-2]) + "\n")
    with pytest.raises(ValueError, match=r"y.soft:1: 4 rows of weights should follow, but the file ends after \d"):
        read_soft(tmp_path / "y.soft")


def test_samples_of_what_is_spelt_link_symbols():
    """A word that is spelt is one word: `0-0` would say nothing."""
    from saccade.cli.evaluation import _symbol_links

    weights = np.array([[0.9, 0.1, 0], [0.2, 0.8, 0], [0, 0.1, 0.9]], dtype=np.float32)
    said = prediction(
        source="ca",
        text="k a",
        source_tokens=tokens("c", "a"),
        target_tokens=tokens("k", " a"),
        cross=weights[None, None],
    )
    assert _symbol_links(said) == ["c→k", "a→a"]
    assert _symbol_links(prediction(cross=None)) == []
