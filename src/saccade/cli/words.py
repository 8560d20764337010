"""Words go to stderr; stdout is for data."""

import os
import sys
import time
from pathlib import Path

from saccade.errors import UsageError

SOON = 2.0  # seconds: what is done by then needs no meter
SELDOM = 20.0  # between two lines of one, where they stay


def say(words: str) -> None:
    print(words, file=sys.stderr)


class Meter:
    """How far something long is: in a terminal one line, written over and over; elsewhere a line now and then."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.began = self.told = 0.0

    def __call__(self, done: int, total: int) -> None:
        now, alive = time.monotonic(), sys.stderr.isatty()
        if not done:
            self.began = self.told = now
        elif done >= total:
            if alive and self.told > self.began:
                print("\r\033[K", end="", file=sys.stderr, flush=True)
        elif now - (self.began if alive else self.told) > (SOON if alive else SELDOM):
            self.told = now
            left = (now - self.began) * (total - done) / done
            about = f"{left / 60:.0f} min" if left > 90 else f"{left:.0f} s"
            line = f"{self.what}: {done:,} of {total:,}, about {about} to go"
            print(f"\r{line}\033[K" if alive else line, end="" if alive else "\n", file=sys.stderr, flush=True)


def check_place(path: Path) -> None:
    """Whether a file can be written there, before anything is computed."""
    if path.is_dir():
        raise UsageError(f"{path}: is a folder, expected a file")
    there = path if path.exists() and not path.is_file() else path.resolve().parent  # a pipe is written to as it is
    if not there.exists() or not os.access(there, os.W_OK):
        raise ValueError(f"{path}: cannot be written there")
