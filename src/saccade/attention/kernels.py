"""The compiled part, built when saccade is installed; without a C compiler it is left out, and torch does its work."""

import ctypes
import importlib.machinery
from pathlib import Path


def _load() -> ctypes.CDLL | None:
    for suffix in importlib.machinery.EXTENSION_SUFFIXES:
        path = Path(__file__).with_name("_kernels" + suffix)
        if path.exists():
            try:
                return ctypes.CDLL(str(path))
            except OSError:  # built against libraries that are not here
                return None
    return None


library = _load()


def compiled() -> bool:
    """Whether it was built."""
    return library is not None
