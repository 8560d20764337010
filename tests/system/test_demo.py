"""`saccade demo`, all of it: a minute of training, which is why it stands alone."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from services import started

from saccade.cli.demo import DEMOS, demo_command
from saccade.train import start
from saccade.train.start import merge

COMMAND = [sys.executable, "-m", "saccade"]
DRAWN = Path(__file__).parents[2] / "docs" / "page.png"


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """Where the demo ran, and what it said."""
    folder = tmp_path_factory.mktemp("demo")
    ran = subprocess.run([*COMMAND, "demo"], cwd=folder, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return folder, ran.stdout


def test_the_demo_reads_dates_of_days_it_never_saw(shown):
    folder, said = shown
    assert "2019년 5월 3일 금요일 → 2019-05-03" in said
    assert said.count("∎") == 6  # three heatmaps, each with both ends
    page = (folder / "saccade-demo" / "glances.html").read_text()
    assert page.count("<table>") == 3
    ran = subprocess.run(
        [*COMMAND, "evaluate", "saccade-demo", "dates", "--json"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert json.loads(ran.stdout)["exact"] >= 99  # 99.4 to 99.6 where it was tried


class BeforeTrainingError(Exception):
    pass


def test_only_an_earlier_demo_is_replaced(tmp_path, monkeypatch, capsys):
    """Not somebody's own run of the same task, which may have taken hours."""

    def train_only(*_):
        raise BeforeTrainingError

    monkeypatch.setitem(demo_command.__globals__, "train_only", train_only)  # `saccade.cli.demo` is the command
    for said in ("", "demo: the run of an earlier demo is replaced"):
        with pytest.raises(BeforeTrainingError):
            demo_command("dates", tmp_path / "demo", False, 0.0)
        assert said in capsys.readouterr().err
    wider = merge(DEMOS["dates"].settings, {"model": {"width": 256}})
    for name, settings in (("longer", {"train": {"minutes": 60.0}}), ("wider", wider)):
        run, _ = start(tmp_path / name, {"data": {"train": ["dates"]}, **settings}, say=lambda _: None)
        config = (run.path / "config.toml").read_bytes()
        with pytest.raises(ValueError, match=f"{name}: is a run of something else than this demo; choose another"):
            demo_command("dates", run.path, False, 0.0)
        assert (run.path / "config.toml").read_bytes() == config


def test_its_service_page_as_the_readme_shows_it(shown, tmp_path):
    """`SACCADE_DRAW=1 pytest tests/system/test_demo.py` draws the picture of the README anew."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    browsing = pytest.importorskip("browsing", reason="axe-core-python is not installed")
    if browsing.CHROMIUM is None:
        pytest.skip("chromium is not installed (Debian: apt install chromium)")
    drawn = DRAWN if os.environ.get("SACCADE_DRAW") else tmp_path / "page.png"
    with started(shown[0] / "saccade-demo") as (_, client), sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browsing.CHROMIUM, args=browsing.FLAGS.split())
        tab = browser.new_page(
            viewport={"width": 900, "height": 1300}, locale="en-US", color_scheme="light", device_scale_factor=1.5
        )
        tab.goto(str(client.base_url))
        tab.fill("#text", "2019년 5월 3일 금요일")
        expect = sync_api.expect
        expect(tab.locator(".output")).to_have_text("2019-05-03∎")
        tab.click(".tree summary")
        tab.locator(".output button").nth(6).focus()
        looked = tab.locator(".source button").evaluate_all(
            "all => all.map(e => [e.textContent, Number(e.style.getPropertyValue('--w'))])"
        )
        assert max(looked, key=lambda piece: piece[1])[0] in "5월"  # the month's digit looks at the month
        tab.screenshot(path=drawn)
        browser.close()
    assert drawn.stat().st_size > 20_000
