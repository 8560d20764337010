"""What every room says when a name is wrong."""

from collections.abc import Iterable
from difflib import get_close_matches

TOO_LARGE = ("allocate memory", "enough memory", "out of memory", "overflow")  # what torch says of what it cannot make


class UsageError(ValueError):
    """What was asked for cannot be, or does not go with the data: ask otherwise."""


def unknown(what: str, name: object, known: Iterable[str]) -> UsageError:
    """An error that names the nearest known name.

    >>> unknown("score", "aditive", ["additive", "dot"])
    UsageError("unknown score 'aditive'; did you mean 'additive'? (known: additive, dot)")
    """
    names = sorted(known)
    nearest = get_close_matches(str(name), names, n=1)
    hint = f"; did you mean '{nearest[0]}'?" if nearest else ""
    return UsageError(f"unknown {what} {name!r}{hint} (known: {', '.join(names)})")


def too_large(error: Exception) -> bool:
    """Whether there was not enough memory for it: torch has no finer errors for that."""
    told = isinstance(error, RuntimeError | TypeError) and any(words in str(error).lower() for words in TOO_LARGE)
    return told or isinstance(error, MemoryError)
