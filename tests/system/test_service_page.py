"""The service's page in a real browser that reaches the service and nothing else."""

import pytest
from services import started

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytest.importorskip("axe_core_python", reason="axe-core-python is not installed")
from browsing import CHROMIUM, FLAGS, serious  # noqa: E402  (needs both)

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed (Debian: apt install chromium)"),
    pytest.mark.filterwarnings("ignore"),
]


@pytest.fixture(scope="module")
def service(letters):
    with started(letters) as (process, client):
        yield process, str(client.base_url)


@pytest.fixture
def tab(service, request):
    complaints = []
    options = getattr(request, "param", {})
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS.split())
        opened = browser.new_context(**{"locale": "en-US", **options}).new_page()
        opened.on("console", lambda m: complaints.append(m.text) if m.type == "error" else None)
        opened.on("pageerror", lambda error: complaints.append(str(error)))
        opened.on("request", lambda r: None if r.url.startswith((service[1], "data:")) else complaints.append(r.url))
        opened.goto(service[1])
        opened.wait_for_selector("#model option", state="attached")
        yield opened
        browser.close()
    assert complaints == []


@pytest.mark.parametrize("tab", [{"color_scheme": "light"}, {"color_scheme": "dark"}], indirect=True)
def test_the_answer_comes_as_you_pause_and_shows_its_glances(tab):
    assert "Type something" in tab.locator("#state").inner_text()
    tab.fill("#text", "a b c d")
    tab.wait_for_selector("#output button")
    tab.locator("#output button").first.focus()
    marked = tab.locator("#source span").evaluate_all("all => all.map(e => Number(e.style.getPropertyValue('--w')))")
    assert sum(marked) == pytest.approx(1, abs=0.02)
    tab.click("#whole summary")
    assert tab.locator("#table tbody tr").count() == tab.locator("#output button").count()
    assert serious(tab) == []


def test_another_word_in_its_place_is_what_the_answer_begins_with(tab):
    tab.fill("#text", "a b c d")
    tab.wait_for_selector("#output button")
    tab.locator("#output button").first.focus()
    choice = tab.locator("#instead button:not([disabled])").first
    word = choice.inner_text().split()[0]
    choice.click()
    sync_api.expect(tab.locator("#output button").first).to_have_text(word)


def test_another_answer_is_shown_with_its_own_glances(tab):
    tab.fill("#text", "a b c d")
    tab.wait_for_selector("#nbest button", state="attached")
    tab.click("#others summary")
    wanted = tab.locator("#nbest button").last.inner_text()
    tab.locator("#nbest button").last.click()
    sync_api.expect(tab.locator("#output")).to_have_text(f"{wanted}∎")


def test_what_if_it_looked_there(tab):
    tab.fill("#text", "a b c d")
    tab.wait_for_selector("#output button")
    tab.click("#whole summary")
    tab.locator("#table tbody tr").first.locator("button").nth(2).press("Enter")
    sync_api.expect(tab.locator("#instead")).to_contain_text("Looking there alone it would write")
    assert tab.locator("#instead button").count() == 4
    with tab.expect_download() as saved:
        tab.click("#export")
    svg = saved.value.path().read_text(encoding="utf-8")
    words = tab.locator("#output button").count()
    assert svg.count("<rect") == words * tab.locator("#source span").count()


def test_too_long_is_counted_before_it_happens(tab):
    tab.fill("#text", "a " * 3000)
    tab.wait_for_selector("#count.over")
    assert "6000 / 5000" in tab.locator("#count").inner_text()


@pytest.mark.parametrize("tab", [{"locale": "ko-KR", "viewport": {"width": 360, "height": 740}}], indirect=True)
def test_in_korean_on_a_phone(tab):
    assert tab.locator("#output-name").inner_text() == "답"
    assert tab.evaluate("document.documentElement.lang") == "ko"
    assert tab.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    tab.click("#language")
    assert tab.locator("#output-name").inner_text() == "Answer"
    assert serious(tab) == []


def test_a_link_holds_what_was_asked_and_the_visit_is_remembered(tab):
    tab.fill("#text", "a b")
    tab.wait_for_selector("#history button", state="attached")
    link = tab.url
    assert "text=a+b" in link
    other = tab.context.new_page()
    other.goto(link)
    other.wait_for_selector("#output button")
    assert other.input_value("#text") == "a b"
