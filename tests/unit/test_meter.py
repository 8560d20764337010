"""What takes long says how far it is."""

import io

import pytest
from typer import Exit

from saccade.cli import plainly, words
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
    assert "\r\033[Kpictures: 100 of 1,000, about 9 min to go " in screen.getvalue()
    assert screen.getvalue().endswith("\r\033[K")


def test_a_bar_grows_within_the_width_of_its_terminal(monkeypatch, clock):
    monkeypatch.setattr("sys.stderr", screen := Terminal())
    monkeypatch.setenv("NO_COLOR", "1")
    for columns in (100, 60, 30):
        monkeypatch.setenv("COLUMNS", str(columns))
        watched(Meter("pictures"), clock, 60)
    lines = [line for line in screen.getvalue().replace("\r", "").split("\033[K") if line]
    assert [line.count("━") for line in lines[:9]] == [4 * n for n in range(1, 10)]
    assert all(len(line) < columns for line, columns in zip(lines, [100] * 9 + [60] * 9, strict=False))
    assert not any("━" in line for line in lines[18:])


def test_what_is_not_for_a_log_is_for_a_terminal_alone(monkeypatch, clock):
    for screen, lines in ((io.StringIO(), 0), (Terminal(), 9)):
        monkeypatch.setattr("sys.stderr", screen)
        watched(Meter("texts", logged=False), clock, 60)
        assert screen.getvalue().count("texts: ") == lines


def test_a_line_is_left_to_others_and_drawn_anew(monkeypatch, clock):
    monkeypatch.setattr("sys.stderr", screen := Terminal())
    meter = Meter("texts", logged=False)
    meter(0, 10)
    words.say("before")
    assert screen.getvalue() == "before\n"
    clock(60)
    meter(5, 10)
    words.say("said")
    clock(60)
    meter(6, 10)
    assert "\r\033[Ksaid\n\r\033[Ktexts: 6 of 10, about 80 s to go" in screen.getvalue()
    with pytest.raises(Exit), plainly():
        raise KeyboardInterrupt
    assert screen.getvalue().endswith("\r\033[Kinterrupted\n")


@pytest.mark.parametrize("screen", [io.StringIO, Terminal])
def test_what_is_quick_says_nothing(monkeypatch, clock, screen):
    monkeypatch.setattr("sys.stderr", shown := screen())
    watched(Meter("pictures"), clock, 0.1)
    assert shown.getvalue() == ""
