"""The service's page in a real browser that reaches the service and nothing else."""

import base64
import re
import shutil
import subprocess
import sys
from xml.etree import ElementTree

import httpx
import numpy as np
import pytest
from PIL import Image
from services import free_port, started, until_ready

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytest.importorskip("axe_core_python", reason="axe-core-python is not installed")
from browsing import CHROMIUM, FLAGS, serious  # noqa: E402  (needs both)

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed (Debian: apt install chromium)"),
    pytest.mark.filterwarnings("ignore"),
]
expect = sync_api.expect
DROP = """
([kind, type, encoded]) => {
  const bytes = Uint8Array.from(atob(encoded), (c) => c.charCodeAt(0));
  const files = new DataTransfer();
  files.items.add(new File([bytes], "there.png", { type }));
  const given = kind === "drop" ? { dataTransfer: files } : { clipboardData: files };
  document.dispatchEvent(new (kind === "drop" ? DragEvent : ClipboardEvent)(kind, { bubbles: true, cancelable: true, ...given }));
}
"""


@pytest.fixture(scope="module")
def service(letters, more_letters, colours):
    with started(letters, more_letters, colours[0]) as (_, client):
        yield str(client.base_url)


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS.split())
        yield opened
        opened.close()


@pytest.fixture
def tab(service, browser, request):
    complaints = []
    context = browser.new_context(**{"locale": "en-US", **getattr(request, "param", {})})
    opened = context.new_page()
    opened.on("console", lambda m: complaints.append(m.text) if m.type == "error" else None)
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on("request", lambda r: None if r.url.startswith((service, "data:", "blob:")) else complaints.append(r.url))
    opened.goto(service)
    opened.wait_for_selector("#model option", state="attached")
    yield opened
    context.close()
    assert complaints == []


def looks(tab, panel=0) -> list[float]:
    source = tab.locator(".source").nth(panel).locator("button")
    return source.evaluate_all("all => all.map(e => Number(e.style.getPropertyValue('--w')))")


@pytest.mark.parametrize("tab", [{"color_scheme": "light"}, {"color_scheme": "dark"}], indirect=True)
def test_the_answer_comes_as_you_pause_and_shows_its_glances(tab):
    expect(tab.locator("#state")).to_contain_text("Type something")
    tab.fill("#text", "a b c d")
    tab.wait_for_selector(".output button")
    tab.locator(".output button").first.focus()
    assert sum(looks(tab)) == pytest.approx(1, abs=0.02)
    assert tab.locator(".glances tbody tr").count() == tab.locator(".output button").count()
    tab.click(".tree summary")
    assert serious(tab) == []


def test_another_word_in_its_place_is_what_the_answer_begins_with(tab):
    tab.fill("#text", "a b c d")
    tab.wait_for_selector(".output button")
    tab.locator(".output button").first.focus()
    choice = tab.locator(".instead button:not([disabled])").first
    word = choice.inner_text().split()[0]
    choice.click()
    expect(tab.locator(".output button").first).to_have_text(word)


def test_another_answer_is_shown_with_its_own_glances(tab):
    tab.fill("#text", "a b c d")
    tab.wait_for_selector(".nbest button", state="attached")
    tab.click(".others summary")
    wanted = tab.locator(".nbest button").last.inner_text()
    tab.locator(".nbest button").last.click()
    expect(tab.locator(".output")).to_have_text(f"{wanted}∎")
    expect(tab.locator(".nbest [aria-current]")).to_have_text(wanted)
    tab.locator(".nbest button").first.click()  # and back to the best
    expect(tab.locator(".nbest [aria-current]")).to_have_text(tab.locator(".nbest button").first.inner_text())


def test_the_beam_is_a_tree_and_a_word_in_it_forces_what_comes_before(tab):
    tab.fill("#text", "a b c d")
    tab.wait_for_selector(".branches button", state="attached")
    tab.click(".tree summary")
    answer = tab.locator(".output").inner_text()
    best = tab.locator(".branches button.best").evaluate_all("all => all.map(e => e.firstChild.textContent)")
    assert "".join(best).replace("␣", "") == answer.replace(" ", "")
    other = tab.locator(".branches button:not(.best):not(.turn)").first
    begins = tab.locator(".branches button").evaluate_all(
        """(all, chosen) => {
      const here = all[chosen].at, at = (row, column) => all.find((e) => `${e.at}` === `${[row, column]}`);
      const words = [];
      for (let [row, column] = here; column >= 0; column--) {
        while (row && !at(row, column)) row--;
        words.unshift(at(row, column).firstChild.textContent);
      }
      return words;
    }""",
        other.evaluate("e => [...e.parentElement.children].indexOf(e)"),
    )
    with tab.expect_download() as saved:
        tab.click(".save-tree")
    drawn = ElementTree.parse(saved.value.path())
    assert len(drawn.findall(".//{*}text")) == 2 * tab.locator(".branches button").count()  # words and probabilities
    assert len(drawn.findall(".//{*}path")) == tab.locator(".branches button.turn").count()
    assert tab.locator(".before").count() == tab.locator(".branches button.turn").count()  # each row can be read alone
    other.focus()
    tab.keyboard.press("Enter")
    expect(tab.locator(".output button").first).to_have_text(re.compile(re.escape(begins[0])))
    expect(tab.locator(".output")).to_have_text(re.compile(r"\s*".join(map(re.escape, begins))))


def test_what_if_it_looked_there(tab):
    tab.fill("#text", "a b c d")
    tab.wait_for_selector(".output button")
    tab.locator(".glances tbody tr").first.locator("button").first.focus()
    for key in ("ArrowRight", "ArrowRight", "Enter"):  # the keyboard alone suffices
        tab.keyboard.press(key)
    expect(tab.locator(".steered")).to_contain_text("Looking there alone it would write")
    assert tab.locator(".steered button").count() == 4
    assert tab.locator(".glances .pressed").count() == 1
    with tab.expect_download() as saved:
        tab.click(".export")
    svg = saved.value.path().read_text(encoding="utf-8")
    words = tab.locator(".output button").count()
    assert svg.count("<rect") == words * tab.locator(".source button").count()


def test_two_models_side_by_side(tab):
    tab.fill("#text", "a b c")
    tab.wait_for_selector(".output button")
    tab.select_option("#beside", "more")
    expect(tab.locator(".panel")).to_have_count(2)
    expect(tab.locator(".whose").nth(1)).to_have_text("Answer · more")
    tab.locator(".output").nth(1).locator("button").first.focus()
    assert sum(looks(tab, 1)) == pytest.approx(1, abs=0.02)
    assert serious(tab) == []
    other = tab.context.new_page()
    other.goto(tab.url)  # the link holds both
    expect(other.locator(".panel")).to_have_count(2)


@pytest.mark.parametrize("way", ["choose", "drop", "paste"])
def test_a_picture_is_looked_at(tab, colours, way):
    tab.select_option("#model", "colours")
    expect(tab.locator("#state")).to_contain_text("Choose, drop or paste")
    assert tab.locator("#text").is_hidden()
    picture = colours[1] / "5.png"
    if way == "choose":
        tab.set_input_files("#file", picture)
    else:
        tab.evaluate(DROP, [way, "image/png", base64.b64encode(picture.read_bytes()).decode()])
    tab.wait_for_selector(".output button")
    tab.locator(".output button").last.focus()
    assert tab.locator(".overlay").evaluate("e => [e.width, e.height]") == [45, 32]
    assert tab.locator(".glass button").count() == 4 * 6  # cells of eight pixels
    tab.locator(".glass button").nth(7).click()
    expect(tab.locator(".steered")).to_contain_text("Looking there alone it would write")
    assert "row 2, column 2" in tab.locator(".glass button").nth(7).get_attribute("aria-label")
    with tab.expect_download() as saved:
        tab.click(".export")
    assert saved.value.path().read_bytes().startswith(b"\x89PNG")
    expect(tab.locator("#history button")).to_have_count(1)
    if way == "choose":
        assert serious(tab) == []


def test_no_picture_is_said_to_be_none(service, browser, tmp_path):
    tab = browser.new_context(locale="en-US").new_page()
    tab.goto(f"{service}/#model=colours")
    expect(tab.locator("#state")).to_contain_text("Choose, drop or paste")
    (tmp_path / "x.png").write_text("no picture")
    tab.set_input_files("#file", tmp_path / "x.png")
    expect(tab.locator("#state.bad")).to_contain_text("is no picture")
    tab.click("#language")
    (tmp_path / "y.png").write_text("no picture either")
    tab.set_input_files("#file", tmp_path / "y.png")
    expect(tab.locator("#state.bad")).to_contain_text("입력이 맞지 않습니다")
    tab.goto(f"{service}/?again#model=colours&picture=half!")  # an address that was cut
    expect(tab.locator("#state")).to_contain_text("그림을 고르거나")
    tab.context.close()


@pytest.mark.parametrize("large", [False, True])
def test_a_link_holds_a_picture(tab, colours, tmp_path, large):
    picture = colours[1] / "5.png"
    if large:  # of which the link holds a smaller copy
        noise = np.random.default_rng(0).integers(0, 256, (900, 1200, 3), dtype=np.uint8)
        picture = tmp_path / "large.png"
        Image.fromarray(noise).save(picture)
    tab.select_option("#model", "colours")
    tab.set_input_files("#file", picture)
    tab.wait_for_selector(".output button")
    tab.wait_for_url("**picture=**")
    other = tab.context.new_page()
    other.goto(tab.url)
    other.wait_for_selector(".output button")
    size = other.locator(".overlay").evaluate("e => [e.width, e.height]")
    assert size == ([448, 336] if large else [45, 32])
    if not large:
        assert other.locator(".output").inner_text() == tab.locator(".output").inner_text()


def test_too_long_is_counted_before_it_happens(tab):
    tab.fill("#text", "a b")
    tab.wait_for_selector(".output button")
    tab.fill("#text", "a " * 3000)
    tab.wait_for_selector("#count.over")
    assert "6000 / 5000" in tab.locator("#count").inner_text()
    expect(tab.locator("#state.bad")).to_have_text("too long")
    assert tab.locator(".panel").evaluate("e => e.inert")  # the old answer is not that of this text
    tab.fill("#text", "\U0001f600" * 2600)
    expect(tab.locator("#count")).to_have_text("2600 / 5000")  # characters, as the service counts them


def test_the_keyboard_alone_reaches_the_words_that_might_stand_there(tab):
    tab.fill("#text", "a b c d")
    tab.wait_for_selector(".output button")
    tab.locator(".output button").first.focus()
    tab.keyboard.press("ArrowRight")
    second = tab.locator(".output button").nth(1)
    expect(second).to_be_focused()
    offered = tab.locator(".instead button").first.inner_text()
    for _ in range(2):  # past the source, of which one piece can be reached too
        tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.textContent") == offered
    tab.keyboard.press("Enter")
    expect(tab.locator(".begins")).to_contain_text("Begins with")
    expect(tab.locator(".output button").first).to_be_focused()
    tab.click(".begins button")
    expect(tab.locator(".begins")).to_be_hidden()


def test_a_piece_of_the_source_shows_who_looked_at_it(tab):
    tab.fill("#text", "a b c d")
    tab.wait_for_selector(".source button")
    tab.locator(".source button").nth(2).focus()
    marked = tab.locator(".output button").evaluate_all("all => all.map(e => e.style.getPropertyValue('--w'))")
    column = tab.locator(".glances tbody tr").evaluate_all("all => all.map(r => r.cells[3].title)")
    assert marked == column


def test_a_late_answer_does_not_overwrite_a_newer_one(tab):
    tab.fill("#text", "a b c d")
    tab.wait_for_selector(".nbest button", state="attached")
    tab.click(".others summary")
    tab.evaluate("""() => {
      const real = window.fetch;
      const late = (...asked) => new Promise((done) => { setTimeout(() => done(real(...asked)), 1500); });
      window.fetch = (path, how) => (path === "/v1/align" ? late : real)(path, how);
    }""")
    tab.locator(".nbest button").last.click()
    tab.fill("#text", "b")
    expect(tab.locator(".source")).to_have_text("b∎")
    answer = tab.locator(".output").inner_text()
    with tab.expect_response("**/v1/align"):
        pass
    tab.wait_for_timeout(300)
    assert tab.locator(".output").inner_text() == answer


def test_what_is_asked_of_an_answer_is_about_its_own_text(tab):
    tab.fill("#text", "a b")
    tab.wait_for_selector(".glances td button")
    with tab.expect_request("**/v1/align") as asked:
        tab.evaluate("document.getElementById('text').value = 'x y z'")
        tab.locator(".glances td button").first.click()
    assert asked.value.post_data_json["pairs"][0]["source"] == "a b"


def test_the_visit_holds_pictures_and_texts_and_who_was_asked(tab, colours):
    tab.fill("#text", "a b")
    tab.wait_for_selector(".output button")
    picture = base64.b64encode((colours[1] / "5.png").read_bytes()).decode()
    tab.evaluate(DROP, ["drop", "image/png", picture])  # a model that reads pictures is chosen
    expect(tab.locator("#model")).to_have_value("colours")
    expect(tab.locator("#history button")).to_have_count(2)
    tab.locator("main > details summary").click()
    tab.locator("#history button").last.click()
    expect(tab.locator("#model")).to_have_value("letters")
    expect(tab.locator(".source")).to_have_text("a b∎")
    tab.locator("#history button").filter(has_text="there.png").click()
    expect(tab.locator("#model")).to_have_value("colours")
    expect(tab.locator(".overlay")).to_be_visible()


def test_the_same_text_of_two_models_is_remembered_twice(tab):
    tab.fill("#text", "a b c")
    expect(tab.locator("#history button")).to_have_count(1)
    tab.select_option("#model", "more")
    expect(tab.locator("#history button")).to_have_count(2)


def test_a_picture_stays_while_texts_are_asked_about(tab, colours):
    tab.select_option("#model", "colours")
    for _ in range(2):  # the same may be chosen again
        tab.set_input_files("#file", colours[1] / "5.png")
        tab.wait_for_selector(".overlay")
    expect(tab.locator("#history button")).to_have_count(2)  # two pictures of one name
    said = tab.locator(".output").inner_text()
    tab.select_option("#model", "letters")
    expect(tab.locator("#state")).to_contain_text("Type something")
    tab.select_option("#model", "colours")
    expect(tab.locator(".output")).to_have_text(said)


def record(source, text, **more):
    """An answer as the service gives it, every word looking everywhere alike."""
    tokens = [[{"text": c, "span": [i, i + 1]} for i, c in enumerate(t)] for t in (source, text)]
    for made, t in zip(tokens, (source, text), strict=True):
        made.append({"text": "∎", "span": [len(t), len(t)]})
    many, words = len(tokens[0]), len(tokens[1])
    return {
        "text": text, "score": -1.0, "layer": 0, "unknown": [], "cut_source": False, "cut_output": False,
        "source_tokens": tokens[0], "target_tokens": tokens[1], "log_probabilities": [-1.0] * words, "runners_up": [[]] * words,
        "attention": {"cross": [[[[1 / many] * many] * words]]}, **more,
    }  # fmt: skip


def say(tab, *records):
    """The service says these, one after the other, whatever it is asked."""
    left = list(records)

    def answer(route):
        told = left.pop(0) if len(left) > 1 else left[0]
        wrong = (
            {"status": 503, "json": told} if "error" in told else {"json": {"model": "letters", "predictions": [told]}}
        )
        route.fulfill(**wrong)

    tab.route(re.compile("/v1/(translate|align)$"), answer)


def test_letters_that_are_several_pieces_are_written_once(tab):
    """Of what the model does not know, bytes may be pieces."""
    pieces = [{"text": "x", "span": [0, 1]}, {"text": "y", "span": [0, 1]}, {"text": "∎", "span": [1, 1]}]
    say(tab, {**record("xy", "a"), "source_tokens": pieces})
    tab.fill("#text", "한")
    expect(tab.locator(".source")).to_have_text("한·∎")


def test_dragging_over_cells_makes_it_look_at_all_of_them(tab):
    tab.fill("#text", "a b c d")
    tab.wait_for_selector(".glances td button")
    cells = tab.locator(".glances tbody tr").nth(1).locator("button")
    with tab.expect_request("**/v1/align") as asked:
        cells.nth(1).hover()
        tab.mouse.down()
        cells.nth(3).hover()
        tab.mouse.up()
    assert asked.value.post_data_json["steer"] == {"word": 1, "places": [1, 2, 3]}
    expect(tab.locator(".glances .pressed")).to_have_count(3)
    expect(tab.locator(".steered")).to_contain_text("fter it")  # what becomes of the words after it, if anything
    with tab.expect_request("**/v1/align") as asked:
        cells.nth(0).focus()
        tab.keyboard.press("Shift+Enter")  # the keyboard adds one
    assert sorted(asked.value.post_data_json["steer"]["places"]) == [0, 1, 2, 3]


def test_a_large_map_is_drawn_and_can_be_pointed_at(tab):
    say(tab, record("x" * 150, "y" * 120))
    tab.fill("#text", "x" * 150)
    tab.wait_for_selector(".output button")
    assert tab.evaluate("document.querySelectorAll('*').length") < 1000
    tab.click(".whole summary")
    drawn = tab.locator(".map canvas")
    assert drawn.evaluate("e => [e.width, e.height]") == [151, 121]
    box = drawn.bounding_box()
    with tab.expect_request("**/v1/align") as asked:
        drawn.click(position={"x": box["width"] * 7.5 / 151, "y": box["height"] * 5.5 / 121})
    assert asked.value.post_data_json["steer"] == {"word": 5, "places": [7]}
    assert serious(tab) == []


@pytest.fixture
def refused(service, browser):
    """A tab that may hear refusals, which a browser writes to its console."""
    with browser.new_context(locale="en-US") as context:
        opened = context.new_page()
        opened.goto(service)
        opened.wait_for_selector("#model option", state="attached")
        yield opened


def test_an_answer_that_is_too_large_with_its_glances_comes_without_them(refused):
    limit = {"error": {"code": "too_much", "message": "too large", "limit": "answer_bytes", "most": 1}}
    plain = record("a b", "c")
    plain.pop("attention")
    say(refused, limit, plain)
    refused.fill("#text", "a b")
    expect(refused.locator(".output")).to_have_text("c∎")
    expect(refused.locator(".note")).to_have_text("The answer is too long to show its glances.")


def test_who_is_interrupted_is_asked_again(refused):
    say(refused, {"error": {"code": "interrupted", "message": "ask again"}}, record("a b", "c"))
    refused.fill("#text", "a b")
    expect(refused.locator(".output")).to_have_text("c∎")
    expect(refused.locator("#state")).to_have_text("")


def test_the_end_is_an_alternative_too(tab):
    say(tab, record("a b", "cd", runners_up=[[], [{"text": "∎", "probability": 0.2}], []]))
    tab.fill("#text", "a b")
    tab.wait_for_selector(".output button")
    tab.locator(".output button").nth(1).focus()
    with tab.expect_request("**/v1/align") as asked:
        tab.click(".instead button")
    assert asked.value.post_data_json["pairs"] == [{"source": "a b", "target": "c"}]


def test_what_a_model_does_not_read_is_counted_too(service, browser):
    tab = browser.new_context(locale="en-US").new_page()
    told = {"name": "letters", "ready": True, "unfit": None, "reads": "text", "characters": 10}
    tab.route("**/v1/models", lambda route: route.fulfill(json={"models": [told]}))
    tab.goto(service)
    expect(tab.locator("#count")).to_have_text("0 / 10")
    tab.fill("#text", "a b c d e f g")
    expect(tab.locator("#count.over")).to_have_text("13 / 10 · the model does not read on")
    tab.wait_for_selector(".output button")  # it is answered all the same
    tab.context.close()


@pytest.mark.parametrize("tab", [{"permissions": ["clipboard-read", "clipboard-write"]}], indirect=True)
def test_a_link_can_be_copied(tab):
    assert tab.locator("#link").is_hidden()
    tab.fill("#text", "a b")
    tab.click("#link")
    expect(tab.locator("#state")).to_have_text("The link is copied.")
    assert tab.evaluate("navigator.clipboard.readText()") == tab.url


@pytest.mark.parametrize("tab", [{"has_touch": True, "is_mobile": True}], indirect=True)
def test_a_phone_can_photograph(tab, colours):
    tab.select_option("#model", "colours")
    expect(tab.locator("#camera")).to_be_visible()
    assert tab.locator("#camera").get_attribute("capture") == "environment"
    tab.set_input_files("#camera", colours[1] / "5.png")
    tab.wait_for_selector(".output button")
    assert serious(tab) == []


def test_a_link_waits_for_its_model(service, browser):
    tab = browser.new_context(locale="en-US").new_page()
    real = httpx.get(f"{service}/v1/models").json()
    late = {"models": [{**m, "ready": m["name"] != "more"} for m in real["models"]]}
    answers = [late, late, real]
    tab.route("**/v1/models", lambda route: route.fulfill(json=answers.pop(0) if len(answers) > 1 else answers[0]))
    tab.goto(f"{service}/#model=more&text=a+b")
    expect(tab.locator("#state")).to_contain_text("still loading")
    tab.wait_for_selector(".output button")
    assert tab.input_value("#model") == "more"
    assert tab.input_value("#text") == "a b"
    tab.context.close()


def test_another_language_changes_nothing_else(tab):
    tab.fill("#text", "a b c d")
    tab.wait_for_selector(".nbest button", state="attached")
    tab.click(".others summary")
    tab.locator(".nbest button").last.click()
    expect(tab.locator(".nbest li").last.locator("[aria-current]")).to_have_count(1)
    answer = tab.locator(".output").inner_text()
    tab.click("#language")
    expect(tab.locator(".whose")).to_have_text("답")
    assert tab.locator(".output").inner_text() == answer
    tab.reload()
    expect(tab.locator(".whose")).to_have_text("답")


@pytest.mark.parametrize("tab", [{"locale": "ko-KR", "viewport": {"width": 360, "height": 740}}], indirect=True)
def test_in_korean_on_a_phone(tab):
    tab.fill("#text", "a b c")
    tab.wait_for_selector(".output button")
    tab.select_option("#beside", "more")
    expect(tab.locator(".whose").first).to_have_text("답 · letters")
    tab.locator(".tree summary").first.click()
    assert tab.evaluate("document.documentElement.lang") == "ko"
    assert tab.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    tab.select_option("#model", "colours")
    expect(tab.locator("#input-name")).to_have_text("그림")
    assert tab.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    tab.select_option("#model", "letters")
    tab.select_option("#beside", "more")
    tab.click("#language")
    expect(tab.locator(".whose").first).to_have_text("Answer · letters")
    expect(tab.locator(".panel[inert]")).to_have_count(0)
    assert serious(tab) == []


def test_a_link_holds_what_was_asked_and_the_visit_is_remembered(tab):
    tab.fill("#text", "a b")
    tab.wait_for_selector("#history button", state="attached")
    link = tab.url
    assert "text=a+b" in link
    other = tab.context.new_page()
    other.goto(link)
    other.wait_for_selector(".output button")
    assert other.input_value("#text") == "a b"


def test_a_service_that_is_gone_or_still_loading_is_said_to_be(service, browser):
    tab = browser.new_context(locale="en-US").new_page()
    loading = {"models": [{"name": "letters", "ready": False, "unfit": None}]}
    tab.route("**/v1/models", lambda route: route.fulfill(json=loading))
    tab.goto(service)
    expect(tab.locator("#state")).to_have_text("The model is still loading …")
    some = {"models": [*loading["models"], {"name": "more", "ready": True, "unfit": None, "reads": "text"}]}
    tab.unroute("**/v1/models")
    tab.route("**/v1/models", lambda route: route.fulfill(json=some))
    expect(tab.locator("#model")).to_have_value("more")  # who is ready answers
    expect(tab.locator("#model option").first).to_contain_text("still loading")
    tab.unroute("**/v1/models")
    expect(tab.locator("#model option").first).to_have_text("letters")
    tab.route("**/v1/translate", lambda route: route.abort())
    tab.fill("#text", "a b")
    expect(tab.locator("#state.bad")).to_contain_text("cannot be reached")
    tab.unroute("**/v1/translate")
    tab.wait_for_selector(".output button")  # it was tried again
    expect(tab.locator("#state")).to_have_text("")
    tab.context.close()


def test_a_model_that_fails_after_another_is_ready_is_said_to_have_failed(service, browser):
    tab = browser.new_context(locale="en-US").new_page()
    more = {"name": "more", "ready": True, "unfit": None, "reads": "text"}
    answers = [[{"name": "letters", "ready": False, "unfit": why}, more] for why in (None, None, "torn")]
    tab.route(
        "**/v1/models", lambda route: route.fulfill(json={"models": answers.pop(0) if len(answers) > 1 else answers[0]})
    )
    tab.goto(service)
    expect(tab.locator("#model")).to_have_value("more")
    expect(tab.locator("#model option").first).to_contain_text("cannot be loaded")
    tab.context.close()


def test_a_model_that_cannot_be_loaded_is_said_to_be_and_the_other_answers(letters, tmp_path, browser):
    broken = tmp_path / "broken"
    shutil.copytree(letters, broken)
    next(broken.glob("*.safetensors")).write_bytes(b"torn")
    port = free_port()
    command = [sys.executable, "-m", "saccade", "serve", str(broken), str(letters), "--port", str(port)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    tab = browser.new_context(locale="en-US").new_page()
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}") as client:
            until_ready(client, "/")
        tab.goto(f"http://127.0.0.1:{port}")
        expect(tab.locator("#model option").first).to_contain_text("cannot be loaded", timeout=30000)
        tab.fill("#text", "a b")
        tab.wait_for_selector(".output button")
    finally:
        tab.context.close()
        process.terminate()
        process.wait(30)


def test_a_key_is_asked_for_and_a_wrong_one_can_be_mended(letters, browser):
    with started(letters, SACCADE_API_KEY="secret") as (_, client):
        tab = browser.new_context(locale="en-US").new_page()
        tab.goto(str(client.base_url))
        expect(tab.locator("#secret")).to_be_focused()
        for key, says in (("ключ", "plain letters"), ("wrong", "wants a key")):
            tab.fill("#secret", key)
            tab.click("#key button")
            expect(tab.locator("#state.bad")).to_contain_text(says)
        tab.fill("#secret", "secret")
        tab.keyboard.press("Enter")
        expect(tab.locator("#key")).to_be_hidden()
        tab.fill("#text", "a b")
        tab.wait_for_selector(".output button")
        tab.context.close()
