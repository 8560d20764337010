"""How every room writes a file: beside it and renamed, so that a reader sees the old one or the new, never half."""

import errno
import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

IDLE = 24 * 3600  # seconds after which nobody writes there any more: of another machine's processes nothing is known


class UnwrittenError(ValueError):
    """A file could not be written, on a full disk for example."""

    def __init__(self, path: Path, why: OSError) -> None:
        told = why.strerror or why
        super().__init__(f"{path}: cannot be written ({told}); what was written before is as it was")


@contextmanager
def written(path: Path) -> Iterator[Path]:
    """Where to write: beside the file, though several processes write the same at once; what stands there in the end
    takes its place, or that of the file that a link leads to. A pipe or a device is written to as it is.
    """
    if path.exists() and not (path.is_file() or path.is_dir()):
        with _told(path, path):
            yield path
        return
    place = led_to(path)
    for left in forsaken(place.parent, place.name):
        with suppress(OSError):  # somebody else's
            left.unlink()
    beside = place.with_name(part(place.name))
    try:
        with _told(path, beside):
            yield beside
            beside.replace(place)
    finally:
        with suppress(OSError):  # where there is no such folder
            beside.unlink(missing_ok=True)


@contextmanager
def _told(path: Path, beside: Path) -> Iterator[None]:
    """Why it could not be written names the file."""
    try:
        yield
    except BrokenPipeError:  # who reads has seen enough
        raise
    except OSError as error:
        if error.filename not in (None, str(beside)):
            raise  # what was to be written could not be read
        raise UnwrittenError(path, error) from None


def led_to(path: Path) -> Path:
    """The file itself, wherever links lead; those that lead round in a circle lead nowhere."""
    try:
        return path.resolve()
    except RuntimeError:
        raise UnwrittenError(path, OSError(errno.ELOOP, os.strerror(errno.ELOOP))) from None


def write_whole(path: Path, content: bytes) -> None:
    """All of a file, or nothing of it."""
    with written(path) as beside:
        beside.write_bytes(content)


def part(name: str) -> str:
    """What a file or folder is called while this process makes it: as no other is, however long its name."""
    return f".saccade-{_short(name)}.{os.getpid()}.part"


def forsaken(folder: Path, name: str | None = None) -> list[Path]:
    """Parts, of this name or of any, whose process was killed."""
    named = "*" if name is None else _short(name)
    return [path for path in folder.glob(f".saccade-{named}.*.part") if _gone(path.name.split(".")[-2]) and _idle(path)]


def _short(name: str) -> str:
    return hashlib.sha256(os.fsencode(name)).hexdigest()[:16]


def _gone(process: str) -> bool:
    if os.name != "posix" or not process.isdecimal():
        return False
    try:
        os.kill(int(process), 0)
    except (ProcessLookupError, OverflowError):
        return True
    except PermissionError:
        pass  # somebody else's
    return False


def _idle(path: Path) -> bool:
    try:
        touched: float = max(p.stat().st_mtime for p in (path, *(path.iterdir() if path.is_dir() else ())))
        return time.time() - touched > IDLE
    except OSError:  # another process was just quicker
        return False
