"""Ceilings, on by default, published at /v1/limits; an answer that refuses names the one that was met."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from saccade.errors import UsageError, unknown


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that a client may ask for."""

    bytes: int = 1_000_000  # of a body
    picture_bytes: int = 10_000_000  # of one that is a picture
    pixels: int = 20_000_000  # of a picture
    characters: int = 5_000  # of a text; a model may read fewer, and then says so
    tokens: int = 1_024  # of a text or an output; what is longer is cut, and said to be
    prefix: int = 1_000  # characters of what an output must begin with, or of a caption that is given
    texts: int = 128  # of a request; of a stream, at a time
    beam: int = 10
    nbest: int = 10
    queue: int = 2_000  # texts that wait for a model, of all clients
    queue_bytes: int = 100_000_000  # of all that waits for a model
    answer_bytes: int = 50_000_000  # of an answer: attention of long texts is large
    requests: int = 1_000  # at a time
    seconds: float = 60.0  # from a request to its answer

    @classmethod
    def given(cls, settings: Sequence[str]) -> "Limits":
        """The usual ones, but for those that are said: `characters=20000`."""
        usual = cls()
        known: dict[str, Any] = {name: type(getattr(usual, name)) for name in cls.__slots__}
        found: dict[str, Any] = {}
        for text in settings:
            name, _, value = text.partition("=")
            if name not in known:
                raise UsageError(f"--limit {text}: {unknown('limit', name, known)}")
            try:
                found[name] = known[name](value)
            except ValueError:
                raise UsageError(f"--limit {text}: expected NAME=NUMBER, such as characters=20000") from None
            if not 0 < found[name] < float("inf"):
                raise UsageError(f"--limit {text}: expected a number above 0")
        return cls(**found)


class Refused(Exception):  # noqa: N818  (an answer, rather than an error)
    """A request that gets no result: why, under which status, and which limit it met."""

    def __init__(
        self, status: int, code: str, message: str, limit: str | None = None, most: float | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.limit, self.most = status, code, message, limit, most

    def record(self) -> dict[str, object]:
        told: dict[str, object] = {"code": self.code, "message": self.message}
        if self.limit is not None:
            told |= {"limit": self.limit, "most": self.most}
        return {"error": told}


def whole(text: str) -> str:
    """A text that can be written down: half of a surrogate pair becomes the sign for what cannot be read."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def over(limit: str, found: float, most: float, status: int = 422) -> Refused:
    """What a client gets who asks for too much."""
    return Refused(status, "too_much", f"{limit}: {found:,}, but at most {most:,} are allowed", limit, most)
