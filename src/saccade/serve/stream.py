"""Long batches: a line of JSON in for every text, a line of JSON out for every answer, as they come."""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from fastapi import Request, Response
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from saccade.serve.desk import Desk, refusal
from saccade.serve.limits import Limits, Refused, whole

LINES = "application/x-ndjson"
SOON = 0.05  # seconds without another line, after which those that came are answered
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
        with suppress(ClientDisconnect, OSError, Refused):
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


async def streamed(request: Request, desk: Desk, how: dict[str, Any], limits: Limits) -> AsyncIterator[bytes]:
    """As many lines as a request may have texts are under way at a time; they come back in order, one for one.

    The body is read on while answers are made, as far as memory allows, so that it is noticed when the client leaves.
    """
    waiting: deque[bytes] = deque()
    news, room = asyncio.Event(), asyncio.Event()
    room.set()

    async def read() -> None:
        size = 0
        async for line in _lines(request.stream(), 8 * limits.characters + 1000):
            waiting.append(line)
            size = sum(map(len, waiting)) if size > limits.bytes else size + len(line)
            news.set()
            if size > limits.bytes:
                room.clear()
                await room.wait()

    reading = asyncio.ensure_future(read())
    try:
        while True:
            while not reading.done() and len(waiting) < limits.texts:
                news.clear()
                ended = not await _soon(news, reading, SOON if waiting else OFTEN)
                if ended and (waiting or desk.closing):
                    break  # nothing more for now: who waits gets an answer
            if reading.done():
                reading.result()  # the client has left
            elif not waiting:
                return  # the service stops, and nobody asks for anything
            if not waiting:
                return
            window = [waiting.popleft() for _ in range(min(limits.texts, len(waiting)))]
            room.set()
            answering = asyncio.ensure_future(_answered(window, desk, how, limits))
            try:
                while not (await asyncio.wait({answering}, timeout=OFTEN))[0]:
                    if reading.done() and (reading.exception() is not None or await request.is_disconnected()):
                        return
                yield answering.result()
            finally:
                answering.cancel()
    finally:
        reading.cancel()


async def _soon(news: asyncio.Event, reading: asyncio.Future[None], seconds: float) -> bool:
    """Whether something came, or all has, within so many seconds."""
    heard: asyncio.Future[Any] = asyncio.ensure_future(news.wait())
    both: set[asyncio.Future[Any]] = {heard, reading}
    try:
        return bool((await asyncio.wait(both, timeout=seconds, return_when=asyncio.FIRST_COMPLETED))[0])
    finally:
        heard.cancel()


async def _lines(chunks: AsyncIterator[bytes], most: int) -> AsyncIterator[bytes]:
    """Lines of a body; of one that is far too long only the start is kept, so that memory stays bounded."""
    rest = b""
    async for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line
        rest = rest[: most + 1]  # too long to be taken, however it goes on
    if rest.strip():
        yield rest


async def _answered(lines: Sequence[bytes], desk: Desk, how: dict[str, Any], limits: Limits) -> bytes:
    texts = [_text(line, limits.characters) for line in lines]
    try:
        found = iter(await desk.ask("translate", [t for t in texts if t is not None], **how))
    except Refused as refused:
        return b"".join(_line(refused) for _ in texts)
    told = f'expected a line of JSON, a text or {{"text": …}}, of at most {limits.characters} characters'
    wrong = Refused(422, "wrong_input", told, "characters", limits.characters)
    answers = [None if text is None else next(found) for text in texts]
    return b"".join(_line(wrong if a is None else (refusal(a) or a)) for a in answers)


def _text(line: bytes, most: int) -> str | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    text = found.get("text") if isinstance(found, dict) else found
    return whole(text) if isinstance(text, str) and len(text) <= most else None


def _line(told: dict[str, Any] | Refused) -> bytes:
    return json.dumps(told.record() if isinstance(told, Refused) else told).encode() + b"\n"
