"""What takes long says how far it is."""

import io

import pytest

from saccade.cli import words
from saccade.cli.words import Meter


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch):
    """Seconds that pass when they are told to."""
    now = [0.0]
    monkeypatch.setattr(words.time, "monotonic", lambda: now[0])

    def pass_by(seconds: float) -> None:
        now[0] += seconds

    return pass_by


def watched(meter: Meter, clock, seconds: float) -> None:
    for done in range(0, 1001, 100):
        meter(done, 1000)
        clock(seconds)


def test_in_a_log_there_is_a_line_now_and_then(monkeypatch, clock):
    monkeypatch.setattr("sys.stderr", log := io.StringIO())
    watched(Meter("pictures"), clock, 11)
    assert log.getvalue().splitlines()[:2] == [
        "pictures: 200 of 1,000, about 88 s to go",
        "pictures: 400 of 1,000, about 66 s to go",
    ]
    assert len(log.getvalue().splitlines()) == 4


def test_in_a_terminal_there_is_one_line_and_in_the_end_none(monkeypatch, clock):
    monkeypatch.setattr("sys.stderr", screen := Terminal())
    watched(Meter("pictures"), clock, 60)
    assert "\n" not in screen.getvalue()
    assert "\rpictures: 100 of 1,000, about 9 min to go" in screen.getvalue()
    assert screen.getvalue().endswith("\r\033[K")


@pytest.mark.parametrize("screen", [io.StringIO, Terminal])
def test_what_is_quick_says_nothing(monkeypatch, clock, screen):
    monkeypatch.setattr("sys.stderr", shown := screen())
    watched(Meter("pictures"), clock, 0.1)
    assert shown.getvalue() == ""
