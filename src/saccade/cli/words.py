"""Words go to stderr; stdout is for data."""

import os
import sys
import time
from pathlib import Path
from typing import ClassVar

from saccade.errors import UsageError
from saccade.files import led_to

SOON = 2.0  # seconds: what is done by then needs no meter
OFTEN = 0.1  # between two looks of one in a terminal
SELDOM = 20.0  # between two lines of one, where they stay
WIDTH = 40  # of its bar
WIPED = "\r\033[K"  # at the beginning of a line that is empty now


def say(words: str) -> None:
    Meter.wipe()
    print(words, file=sys.stderr)


class Meter:
    """How far something long is: in a terminal a bar, drawn over and over; elsewhere, if it is `logged`, a line now and
    then.
    """

    drawn: ClassVar[bool] = False  # whether the terminal's last line is a bar, whoever drew it

    def __init__(self, what: str, logged: bool = True) -> None:
        self.what, self.logged = what, logged
        self.began = self.told = 0.0

    def __call__(self, done: int, total: int) -> None:
        now, alive = time.monotonic(), sys.stderr.isatty()
        soon = now - self.began > SOON and now - self.told > OFTEN
        seldom = self.logged and now - self.told > SELDOM
        if not done:
            self.began = self.told = now
        elif done >= total:
            self.wipe()
        elif soon if alive else seldom:
            self.told, Meter.drawn = now, alive
            left = (now - self.began) * (total - done) / done
            about = f"{left / 60:.0f} min" if left > 90 else f"{left:.0f} s"
            line = f"{self.what}: {done:,} of {total:,}, about {about} to go"
            line = f"{WIPED}{line} {_bar(done, total, len(line) + 2)}" if alive else f"{line}\n"
            print(line, end="", file=sys.stderr, flush=True)

    @classmethod
    def wipe(cls) -> None:
        """Leaves the line to what is said or written next."""
        if Meter.drawn:
            print(WIPED, end="", file=sys.stderr, flush=True)
            Meter.drawn = False


def _bar(done: int, total: int, taken: int) -> str:
    """A bar as this terminal shows it, beside what the line has taken already."""
    from rich.console import Console
    from rich.progress_bar import ProgressBar

    console = Console(file=sys.stderr)
    with console.capture() as shown:
        if console.width > taken:
            console.print(ProgressBar(total, done, width=min(WIDTH, console.width - taken)), end="")
    return shown.get()


def check_place(path: Path) -> None:
    """Whether a file can be written there, before anything is computed."""
    if path.is_dir():
        raise UsageError(f"{path}: is a folder, expected a file")
    pipe = path.exists() and not path.is_file()  # which is written to as it is
    there = path if pipe else led_to(path).parent
    if not (pipe or there.is_dir()) or not os.access(there, os.W_OK):
        raise ValueError(f"{path}: cannot be written there")
