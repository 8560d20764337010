"""Where what is made once is kept."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from saccade.files import forsaken, part


def cache_folder() -> Path:
    """SACCADE_CACHE, or saccade/ in the user's cache."""
    own = os.environ.get("SACCADE_CACHE")
    return Path(own) if own else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "saccade"


def make_once(folder: Path, fill: Callable[[Path], None]) -> None:
    """A folder that `fill` writes into, unless it is there: it appears when it is whole, or not at all."""
    if folder.exists():
        return
    for left in forsaken(folder.parent):
        shutil.rmtree(left, ignore_errors=True)
    beside = folder.with_name(part(folder.name))
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    try:
        fill(beside)
        beside.rename(folder)
    except OSError:
        if not folder.exists():  # another process was not just quicker
            raise
    finally:
        shutil.rmtree(beside, ignore_errors=True)
