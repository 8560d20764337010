"""Words go to stderr; stdout is for data."""

import sys


def say(words: str) -> None:
    print(words, file=sys.stderr)
