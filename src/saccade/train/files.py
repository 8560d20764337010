"""How the files of a run are written: beside and renamed, so that a reader sees the old one or the new, never half."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from safetensors import SafetensorError


class UnwrittenError(ValueError):
    """A file could not be written, on a full disk for example."""

    def __init__(self, path: Path, why: Exception) -> None:
        super().__init__(f"{path}: cannot be written ({why}); what was written before is as it was")


@contextmanager
def written(path: Path) -> Iterator[Path]:
    """Another path to write to; what stands there in the end takes the file's place."""
    beside = path.with_suffix(".part")
    try:
        yield beside
        beside.replace(path)
    except (OSError, SafetensorError) as error:
        beside.unlink(missing_ok=True)
        raise UnwrittenError(path, error) from None
