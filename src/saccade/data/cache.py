"""Where what is made once is kept."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """SACCADE_CACHE, or saccade/ in the user's cache."""
    own = os.environ.get("SACCADE_CACHE")
    return Path(own) if own else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "saccade"
