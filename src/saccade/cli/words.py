"""Words go to stderr; stdout is for data."""

import os
import sys
from pathlib import Path


def say(words: str) -> None:
    print(words, file=sys.stderr)


def check_place(path: Path) -> None:
    """Whether a file can be written there, before anything is computed."""
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise ValueError(f"{path}: cannot be written there")
