"""The page in a real browser, with the network cut: it draws, it obeys the keyboard, it harms nobody.

Needs Debian's chromium and Playwright; where they are missing, the tests say so and are skipped.
"""

from dataclasses import replace

import numpy as np
import pytest

from saccade.see import Prediction, Token, page
from saccade.see.alignment import END

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytest.importorskip("axe_core_python", reason="axe-core-python is not installed")
from browsing import CHROMIUM, FLAGS, serious  # noqa: E402  (needs both)

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed (Debian: apt install chromium)"),
    pytest.mark.filterwarnings("ignore"),
]
HARM = "</script><script>document.title='harmed'</script>\u2028'\"&<img src=x onerror=alert(1)>"


def spoken(text: str, *, layers: int = 1, heads: int = 1, seed: int = 0) -> Prediction:
    words = text.split()
    tokens, start = [], 0
    for word in words:
        tokens.append(Token(word, (start, start + len(word))))
        start += len(word) + 1
    ended = (*tokens, Token(END, (len(text), len(text))))
    n = len(ended)
    cross = np.random.default_rng(seed).dirichlet(np.full(n, 0.3), (layers, heads, n)).astype(np.float32)
    others = tuple((("instead", 0.2), ("else", 0.1)) for _ in ended)
    return Prediction(text, text, -1.0, ended, ended, (-0.1,) * n, cross, 0, runners_up=others)


def drawn() -> Prediction:
    words = ("a", "red", "square")
    tokens = (*(Token(w, (i, i + 1)) for i, w in enumerate(words)), Token(END, (9, 9)))
    cross = np.random.default_rng(1).dirichlet(np.full(12, 0.2), (1, 1, 4)).astype(np.float32)
    picture = np.random.default_rng(2).integers(0, 255, (30, 40, 3), dtype=np.uint8)
    return Prediction("x.png", "a red square", -1.0, (), tokens, (-0.1,) * 4, cross, 0, grid=(3, 4), picture=picture)


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS.split())
        yield started
        started.close()


@pytest.fixture
def open_page(browser, tmp_path):
    complaints: list[str] = []

    def show(predictions, **options):
        file = tmp_path / "page.html"
        file.write_text(page(predictions, **options), encoding="utf-8")
        context = browser.new_context(offline=True)
        tab = context.new_page()
        tab.on("console", lambda message: complaints.append(message.text))
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        tab.on("request", lambda r: None if r.url.startswith(("file:", "data:")) else complaints.append(r.url))
        tab.goto(file.as_uri())
        return tab

    yield show
    assert complaints == []


def test_a_translation_is_drawn_and_other_layers_are_a_choice_away(open_page):
    said = spoken("zwei Männer im Freien", layers=2, heads=3)
    tab = open_page([said], title="Where it looked")
    assert tab.locator("tbody tr").count() == 5
    assert tab.locator("tbody tr").first.locator("td[class^=w]").count() == 5
    cell = tab.locator("tbody tr").nth(1).locator("td").nth(2)
    assert float(cell.inner_text()) == pytest.approx(float(said.weights[1, 2]), abs=0.006)
    tab.select_option("select", label="layer 1, head 2")
    assert float(cell.inner_text()) == pytest.approx(float(said.cross[1, 2, 1, 2]), abs=0.006)
    assert tab.locator("input").count() == 0  # every piece is a word
    assert serious(tab) == []


def test_words_come_first_and_pieces_are_one_key_away(open_page):
    whole = spoken("zwei Männer im Freien")
    pieces = (Token("zwei", (0, 4)), Token("Männ", (5, 9)), Token("er", (9, 11)), *whole.target_tokens[2:])
    cross = np.random.default_rng(3).dirichlet(np.ones(5), (2, 2, 6)).astype(np.float32)
    others = (*whole.runners_up, whole.runners_up[0])
    said = replace(whole, target_tokens=pieces, cross=cross, log_probabilities=(-0.5,) * 6, runners_up=others)
    tab = open_page([said])
    names = tab.locator("tbody th")
    assert names.all_inner_texts() == ["zwei", "Männer", "im", "Freien", END]
    assert tab.locator("tbody tr").nth(1).locator("td.n").first.inner_text() == "0.37"  # both of its pieces
    tab.keyboard.press("w")  # as soon as the page is there
    assert names.all_inner_texts() == ["zwei", "Männ", "er", "im", "Freien", END]
    tab.keyboard.press("w")
    assert names.count() == 5
    tab.select_option("select", label="layer 0, head 1")  # of which words are shown too
    assert names.count() == 5
    cell = tab.locator("tbody tr").nth(1).locator("td").nth(2)
    assert float(cell.inner_text()) == pytest.approx(float(cross[0, 1, 1:3, 2].mean()), abs=0.006)
    assert "layer 0, head 1" in tab.locator("option:checked").inner_text()
    assert serious(tab) == []


def test_layers_and_heads_of_a_picture_are_a_choice_away_and_a_table_stands_in(open_page):
    said = drawn()
    cross = np.random.default_rng(4).dirichlet(np.full(12, 0.2), (2, 2, 4)).astype(np.float32)
    said = replace(said, cross=cross, layer=-1)
    tab = open_page([said])
    tab.select_option("select", label="layer 0, head 1")
    weights = cross[0, 1]
    peak = tab.locator("figure.glance").nth(2).locator("rect").nth(int(weights[2].argmax()))
    shown = 0.8 - 0.8 * float(weights[2].max() / weights.max())
    assert float(peak.evaluate("e => getComputedStyle(e).fillOpacity")) == pytest.approx(shown, abs=0.025)
    assert tab.locator(".glances figure").first.locator("rect").count() == 0  # the picture as it was seen
    tab.click("summary")
    rows = tab.locator("table tbody tr")
    assert rows.count() == 4
    assert rows.nth(2).locator("td").nth(1).inner_text() == f"{weights[2].max():.2f}"  # of the head that is shown
    assert f"{12 * weights.max():.0f} times" in tab.locator(".scale").inner_text()
    assert "of 3 by 4" in tab.locator("table tbody tr").first.inner_text()
    assert serious(tab) == []


def test_what_a_model_of_pictures_saw_in_itself_is_a_table(open_page):
    encoder, decoder = (np.random.default_rng(s).dirichlet(np.ones(n), (2, 2, n)) for s, n in ((1, 12), (2, 4)))
    said = replace(drawn(), encoder=encoder.astype(np.float32), decoder=decoder.astype(np.float32))
    tab = open_page([said])
    tab.click(".inside summary")
    cell = tab.locator(".inside tbody tr").nth(1).locator("td").nth(2)
    tab.select_option(".inside select", label="the source at itself: layer 1, head 0")
    assert float(cell.inner_text()) == pytest.approx(float(encoder[1, 0, 1, 2]), abs=0.006)
    assert tab.locator(".inside thead th").first.inner_text() == "1,1"
    tab.select_option(".inside select", label="what was written at itself: layer 0, head 1")
    assert float(cell.inner_text()) == pytest.approx(float(decoder[0, 1, 1, 2]), abs=0.006)
    assert serious(tab) == []


def test_what_a_transformer_sees_in_itself_is_a_choice_away(open_page):
    said = spoken("zwei Männer im Freien", layers=2, heads=3)
    encoder, decoder = (spoken(said.source, layers=2, heads=3, seed=s).cross for s in (5, 6))
    tab = open_page([replace(said, encoder=encoder, decoder=decoder, gates=(0.25,) * 5)])
    cell = tab.locator("tbody tr").nth(1).locator("td").nth(2)
    tab.select_option("select", label="the source at itself: layer 0, head 1")
    assert float(cell.inner_text()) == pytest.approx(float(encoder[0, 1, 1, 2]), abs=0.006)
    assert tab.locator("thead th").all_inner_texts() == ["zwei", "Männer", "im", "Freien", END, "entropy"]
    tab.select_option("select", label="what was written at itself: mean of all layers")
    assert float(cell.inner_text()) == pytest.approx(float(decoder.mean((0, 1))[1, 2]), abs=0.006)
    columns = ["START", "zwei", "Männer", "im", "Freien", "p", "entropy", "β", "instead"]
    assert tab.locator("thead th").all_inner_texts() == columns
    assert tab.locator("tbody tr").nth(1).locator("td.n").all_inner_texts()[-1] == "0.25"
    assert serious(tab) == []


def test_a_notebook_shows_it_too(browser, tmp_path):
    """In a frame that may run its own script and nothing else."""
    file = tmp_path / "notebook.html"
    file.write_text(
        f"<!doctype html><meta charset=utf-8>{spoken('eins zwei', heads=2)._repr_html_()}", encoding="utf-8"
    )
    tab = browser.new_context(offline=True).new_page()
    complaints = []
    tab.on("console", lambda message: complaints.append(message.text))
    tab.goto(file.as_uri())
    frame = tab.frame_locator("iframe")
    frame.locator("select").select_option(label="layer 0, head 1")
    assert frame.locator("tbody tr").count() == 3
    assert complaints == []


def test_colours_are_the_weights(open_page):
    sharp = spoken("a b c")
    sharp = Prediction(*[getattr(sharp, f) for f in ("source", "text", "score", "source_tokens", "target_tokens")],
                       sharp.log_probabilities, np.eye(4, dtype=np.float32)[None, None], 0)  # fmt: skip
    tab = open_page([sharp])
    colour = "e => getComputedStyle(e).backgroundColor"
    row = tab.locator("tbody tr").nth(1).locator("td")
    assert row.nth(1).evaluate(colour) == "rgb(0, 70, 120)"
    assert row.nth(0).evaluate(colour) == "rgba(0, 70, 120, 0)"
    assert "full colour is a weight of 1" in tab.locator("caption").inner_text()  # one scale, whatever is shown


def test_the_keyboard_alone_suffices(open_page):
    tab = open_page([spoken("eins zwei drei"), drawn()])
    tab.locator("#p0 .scroll").focus()
    for _ in range(2):
        tab.keyboard.press("ArrowDown")
    assert tab.locator("tr.here th").inner_text() == "zwei"
    tab.locator("#p1 figure.glance").first.focus()
    tab.keyboard.press("ArrowRight")
    assert tab.locator("#p1 .stage bdi").inner_text() == "red"
    assert serious(tab) == []


def test_no_word_of_a_picture_moves_from_under_the_pointer(open_page):
    words = tuple(Token(f"w{i}", (i, i + 1)) for i in range(14))
    cross = np.random.default_rng(0).dirichlet(np.ones(12), (1, 1, 14)).astype(np.float32)
    tab = open_page([replace(drawn(), target_tokens=words, cross=cross, log_probabilities=(), runners_up=())])
    figures = tab.locator("figure.glance")
    where = "all => all.map((e) => [e.offsetLeft, e.offsetTop])"
    places = figures.evaluate_all(where)
    for i in (3, 4, 9, 10):
        figures.nth(i).hover()
        assert tab.locator(".stage bdi").inner_text() == f"w{i}"
        assert figures.evaluate_all(where) == places
    assert serious(tab) == []


def test_the_row_that_is_stepped_to_is_seen_and_kept(open_page):
    words = " ".join(f"wort{i}" for i in range(40))
    whole = spoken(words, layers=2)
    tab = open_page([whole])
    tab.locator("#p0 .scroll").focus()
    for key in ["ArrowDown"] * 35 + ["ArrowUp"] * 25:
        tab.keyboard.press(key)
    row, head = (tab.locator(at).bounding_box() for at in ("tr.here", "thead th >> nth=1"))
    assert row["y"] >= head["y"] + head["height"] - 1  # not under the labels that stay
    here = tab.locator("tr.here th").inner_text()
    tab.select_option("select", label="layer 0, mean of its heads")
    assert tab.locator("tr.here th").inner_text() == here


def test_pages_of_much_step_too_and_complain_of_nothing(open_page):
    words = tuple(Token(f"w{i}", (2 * i, 2 * i + 1)) for i in range(25))
    grid = np.full((1, 1, 25, 1024), 1 / 1024, np.float32)
    picture = replace(
        drawn(),
        target_tokens=words,
        cross=grid,
        grid=(32, 32),
        decoder=np.full((1, 1, 25, 25), 0.04, np.float32),
        log_probabilities=(),
        runners_up=(),
    )
    heavy = replace(drawn(), decoder=np.full((50, 4000, 4, 4), 0.25, np.float32))
    tab = open_page([picture, heavy])
    assert tab.locator(".inside").count() == 0
    assert "in .json" in tab.locator("#p1").inner_text()
    tab.locator("#p0 figure.glance").nth(1).focus()
    tab.keyboard.press("ArrowRight")
    assert tab.locator("#p0 .stage bdi").inner_text() == "w2"


def test_a_glance_lies_over_its_picture(open_page):
    said = drawn()
    tab = open_page([said])
    figure = tab.locator("figure.glance").nth(1)
    boxes = figure.locator("rect")
    assert boxes.count() == 12
    most = said.weights.max()
    for n in (0, 5, 11):
        opacity = float(boxes.nth(n).evaluate("e => getComputedStyle(e).fillOpacity"))
        assert opacity == pytest.approx(0.8 - 0.8 * float(said.weights[1, n] / most), abs=0.025)  # one scale for all
    outer, inner = figure.locator("svg").bounding_box(), boxes.nth(7).bounding_box()  # the second row's last cell
    assert inner["x"] - outer["x"] == pytest.approx(0.75 * outer["width"], abs=1)
    assert inner["y"] - outer["y"] == pytest.approx(outer["height"] / 3, abs=1)


def test_pictures_of_a_page_have_one_scale(open_page):
    """Also if one model looks sharply, the other hardly anywhere, and their grids differ: times uniform is the unit."""
    sharp, dull = np.full((1, 1, 4, 12), 0.02, np.float32), np.full((1, 1, 4, 6), 0.14, np.float32)
    sharp[..., 3], dull[..., 2] = 0.78, 0.3  # 9.36 and 1.8 times uniform
    other = replace(drawn(), cross=np.concatenate([dull, sharp[..., :6]]), grid=(2, 3))
    tab = open_page([replace(drawn(), cross=sharp), other])
    scales = tab.locator(".scale").all_inner_texts()
    assert scales == ["Bright is where it looked; white would be 9 times what looking everywhere alike gives."] * 2
    brightness = "e => getComputedStyle(e).fillOpacity"
    peak = tab.locator("#p1 figure.glance").first.locator("rect").nth(2)
    assert float(peak.evaluate(brightness)) == pytest.approx(0.8 - 0.8 * 1.8 / 9.36, abs=0.025)
    tab.select_option("#p1 select", label="mean of all layers")  # weaker than what is usually shown, and drawn so
    weaker = 6 * float(other.cross.mean((0, 1))[0, 2])
    assert float(peak.evaluate(brightness)) == pytest.approx(0.8 - 0.8 * weaker / 9.36, abs=0.025)


def test_cells_that_reach_beyond_the_picture_are_not_squeezed_into_it(open_page):
    tab = open_page([replace(drawn(), cell=12)])  # 3×4 cells of 12 pixels over 30×40
    figure = tab.locator("figure.glance").nth(1)
    box, whole = figure.locator("rect").nth(6), figure.locator("svg")  # the second row's third cell
    share = whole.bounding_box()["width"] / 40
    assert box.bounding_box()["x"] - whole.bounding_box()["x"] == pytest.approx(24 * share, abs=1)
    assert box.bounding_box()["y"] - whole.bounding_box()["y"] == pytest.approx(12 * share, abs=1)


def test_no_token_does_harm(open_page):
    said = spoken(f"a {HARM} b", heads=2)
    tab = open_page([said, spoken("שלום עולם"), spoken("안녕 세상")], title=HARM, lead=HARM)
    assert tab.title() != "harmed"
    assert tab.locator("img").count() == 0
    tab.select_option("#p0 select", label="layer 0, head 1")
    assert tab.title() != "harmed"
    assert serious(tab) == []


def test_a_source_of_two_thousand_tokens_is_still_a_picture(open_page):
    tokens = tuple(Token(f"w{i}", (3 * i, 3 * i + 2)) for i in range(2000))
    cross = np.full((1, 1, 40, 2000), 1 / 2000, dtype=np.float32)
    long = Prediction("x", "y", -1.0, tokens, tokens[:40], (), cross, 0)
    tab = open_page([long, Prediction("", "", 0.0), Prediction("a", "b", -1.0)])
    picture = tab.locator("#p0 img")
    assert picture.evaluate("e => [e.naturalWidth, e.naturalHeight]") == [2000, 40]
    column, whole = tab.locator("#p0 .large thead bdi").nth(7).bounding_box(), picture.bounding_box()
    assert column["x"] - whole["x"] == pytest.approx(7 * whole["width"] / 2000, abs=1)  # labels stand over their cells
    row = tab.locator("#p0 .large tbody bdi").nth(30).bounding_box()
    assert row["y"] - whole["y"] == pytest.approx(30 * whole["height"] / 40, abs=1)
    tab.locator("#p0 .scroll").first.evaluate("e => { e.scrollLeft = 9000; }")
    assert tab.locator("#p0 .large tbody bdi").first.bounding_box()["x"] >= 0  # and stay
    assert tab.locator("#p0 details tbody tr").count() == 40
    assert "where it looked is not known" in tab.locator("#p2").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_both_schemes_have_enough_contrast(browser, tmp_path, scheme):
    file = tmp_path / "page.html"
    file.write_text(page([spoken("eins zwei drei"), drawn()], title="Where it looked", lead="Words."), encoding="utf-8")
    tab = browser.new_context(offline=True, color_scheme=scheme).new_page()
    tab.goto(file.as_uri())
    assert serious(tab) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["bottleneck", "bridge"])  # curves, and bars
def test_a_page_of_the_lab_obeys_its_own_policy_and_is_read_in_any_light(browser, tmp_path, name, scheme):
    from saccade.lab.bench import Bench
    from saccade.lab.book import claim_of, publish

    arms = {"bottleneck": ("attention", "no attention"), "bridge": ("dot", "general", "W_Q = W_K", "W_Q ≠ W_K")}[name]
    figures = [{"arm": a, "seed": s, "length": x, "right": 50.0 + s} for a in arms for s in (0, 1) for x in (5, 60)]
    publish(claim_of(name), Bench(tmp_path), figures)
    complaints: list[str] = []
    for file in (f"{name}.html", f"{name}.ko.html"):
        tab = browser.new_context(offline=True, color_scheme=scheme).new_page()
        tab.on("console", lambda message: complaints.append(message.text))
        tab.goto((tmp_path / file).as_uri())
        label = tab.locator(".chart svg text").first
        assert label.evaluate("x => getComputedStyle(x).fill") == tab.locator("main").evaluate(
            "x => getComputedStyle(x).color"
        )
        assert serious(tab) == []
    assert complaints == []
