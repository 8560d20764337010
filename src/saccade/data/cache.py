"""Where what is made once is kept."""

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from saccade.files import forsaken, part

IDLE = 24 * 3600  # seconds after which nobody writes there any more, also on another machine with the same cache


def cache_folder() -> Path:
    """SACCADE_CACHE, or saccade/ in the user's cache."""
    own = os.environ.get("SACCADE_CACHE")
    return Path(own) if own else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "saccade"


def make_once(folder: Path, fill: Callable[[Path], None]) -> None:
    """A folder that `fill` writes into, unless it is there: it appears when it is whole, or not at all."""
    if folder.exists():
        return
    for left in forsaken(folder.parent):
        if _idle(left):
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


def _idle(folder: Path) -> bool:
    try:
        return time.time() - max(p.stat().st_mtime for p in (folder, *folder.iterdir())) > IDLE
    except OSError:  # another process was just quicker
        return False
