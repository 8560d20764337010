"""Long batches: a line of JSON in for every text, a line of JSON out for every answer, as they come."""

import asyncio
import json
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from fastapi import Request, Response
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from saccade.serve.desk import Desk
from saccade.serve.limits import Limits, Refused

LINES = "application/x-ndjson"
OFTEN = 0.2  # seconds between two looks whether a client is still there
T = TypeVar("T")


class Lines(Response):
    """Writes while the body is still being read, which Starlette's own streaming response does not allow."""

    media_type = LINES

    def __init__(self, lines: AsyncIterator[bytes] | None = None, status_code: int = 200) -> None:
        super().__init__(status_code=status_code)
        self.lines = lines
        del self.headers["content-length"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        with suppress(ClientDisconnect, OSError):
            if self.lines is not None:
                async for line in self.lines:
                    await send({"type": "http.response.body", "body": line, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})


async def while_there(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """What the work gives, unless the client leaves; then nobody goes on with it."""
    task = asyncio.ensure_future(work)
    try:
        while not (await asyncio.wait({task}, timeout=OFTEN))[0]:
            if await request.is_disconnected():
                raise Refused(499, "gone", "the client has left")
        return task.result()
    finally:
        task.cancel()


async def streamed(
    chunks: AsyncIterator[bytes], desk: Desk, how: dict[str, Any], limits: Limits
) -> AsyncIterator[bytes]:
    """As many lines as a request may have texts are under way at a time; they come back in order, one for one."""
    window: list[bytes] = []
    async for line in _lines(chunks, 8 * limits.characters + 1000):
        window.append(line)
        if len(window) == limits.texts:
            yield await _answered(window, desk, how, limits)
            window = []
    if window:
        yield await _answered(window, desk, how, limits)


async def _lines(chunks: AsyncIterator[bytes], most: int) -> AsyncIterator[bytes]:
    """Lines of a body; one that does not end is given up as an empty one, so that memory stays bounded."""
    rest = b""
    async for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line
        if len(rest) > most:
            yield b""
            rest = b""
    if rest.strip():
        yield rest


async def _answered(lines: Sequence[bytes], desk: Desk, how: dict[str, Any], limits: Limits) -> bytes:
    texts = [_text(line, limits.characters) for line in lines]
    try:
        found = iter(await desk.ask("translate", [t for t in texts if t is not None], **how))
    except Refused as refused:
        return b"".join(_line(refused.record()) for _ in texts)
    told = f'expected a line of JSON, a text or {{"text": …}}, of at most {limits.characters} characters'
    wrong = Refused(422, "wrong_input", told, "characters", limits.characters).record()
    return b"".join(_line(wrong if text is None else next(found)) for text in texts)


def _text(line: bytes, most: int) -> str | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    text = found.get("text") if isinstance(found, dict) else found
    return text if isinstance(text, str) and len(text) <= most else None


def _line(record: dict[str, Any]) -> bytes:
    return json.dumps(record).encode() + b"\n"
