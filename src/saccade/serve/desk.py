"""A desk for each model: requests queue, fairly, and go to the model's own process in batches.

Whenever the process is free it gets as many waiting texts as fit into a batch, one from each request in turn, so that a
large request delays a small one by a batch at most. Requests of another kind (another beam, say) cannot share it; the
kinds take turns. While the process works, the next batch gathers by itself.
"""

import asyncio
import contextlib
import json
import multiprocessing
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

from saccade.serve.limits import Limits, Refused, over
from saccade.serve.worker import Message, work

AT_ONCE = 32  # texts in a batch
COST = 16_000  # of a batch, in characters times hypotheses: about 32 sentences with a beam of 5
PICTURE = 100  # characters that a picture costs
TRIES = 3  # times in a row that a process may die before it has answered anything


@dataclass(eq=False)
class _Request:
    """What one client waits for."""

    key: str  # what must be alike within a batch, as JSON
    waiting: deque[tuple[int, Any]]
    answers: list[Message | None]
    done: asyncio.Future[None]
    left: int
    size: float = 0.0  # bytes of its answers so far


@dataclass(eq=False)
class _Child:
    """A process, and the pipe to it."""

    process: Any
    pipe: Connection
    fate: asyncio.Future[str | None]  # done once it works; or why it never will
    facts: Message = field(default_factory=dict)

    def ends(self, why: str | None) -> None:
        if not self.fate.done():
            self.fate.set_result(why)


class Desk:
    """One model and those who wait for it."""

    def __init__(self, name: str, paths: Sequence[str], limits: Limits, threads: int) -> None:
        self.name, self.paths, self.limits, self.threads = name, list(paths), limits, threads
        self.child: _Child | None = None
        self.next: _Child | None = None  # a newer one that takes over between two batches
        self.requests: deque[_Request] = deque()
        self.sent: list[tuple[_Request, int]] = []  # the batch that the process is at
        self.unfit: str | None = None  # why it will never be ready
        self.closing = self.reloading = False
        self.deaths = 0
        self.bytes = 0  # of what clients wait for
        self.facts: Message = {}
        self.on_batch: Callable[[int], None] = lambda size: None

    @property
    def ready(self) -> bool:
        return self.child is not None

    @property
    def busy(self) -> bool:
        return bool(self.sent or self.waiting)

    @property
    def waiting(self) -> int:
        return sum(len(r.waiting) for r in self.requests)

    def start(self) -> _Child:
        """Starts the process; `ready` once it has its model."""
        self.loop = asyncio.get_running_loop()
        ours, theirs = multiprocessing.get_context("spawn").Pipe()
        process = multiprocessing.get_context("spawn").Process(
            target=work, args=(self.paths, theirs, self.threads, self.limits), daemon=True
        )
        process.start()
        theirs.close()
        child = _Child(process, ours, self.loop.create_future())
        threading.Thread(target=self._listen, args=(child,), daemon=True).start()
        return child

    def _listen(self, child: _Child) -> None:
        """What the process says, brought into the event loop; in a thread of its own, since reading blocks."""
        with contextlib.suppress(EOFError, OSError):
            while True:
                content = child.pipe.recv_bytes()
                self.loop.call_soon_threadsafe(self._heard, child, json.loads(content), len(content))
        with contextlib.suppress(RuntimeError):  # the loop is gone
            self.loop.call_soon_threadsafe(self._died, child)

    def _heard(self, child: _Child, message: Message, size: int = 0) -> None:
        if "ready" in message:
            child.facts = message["ready"]
            if self.child is None:
                self._take(child)
            else:
                self.next = child
        elif "unfit" in message:
            child.ends(message["unfit"])
            if self.child is None:  # else it was to take over, and the old one goes on
                self._give_up(message["unfit"])
        elif "found" in message:
            self.deaths = 0
            for (request, place), answer in zip(self.sent, message["found"], strict=True):
                request.answers[place] = answer
                request.left -= 1
                request.size += size / len(self.sent)
                if request.size > self.limits.answer_bytes and not request.done.done():
                    most = self.limits.answer_bytes
                    request.done.set_exception(over("answer_bytes", round(request.size), most))
                if not request.left and not request.done.done():
                    request.done.set_result(None)
            self.sent = []
        self._dispatch()

    def _take(self, child: _Child) -> None:
        self.child, self.facts, self.unfit = child, child.facts, None
        child.ends(None)

    def _died(self, child: _Child) -> None:
        """A process ended. What it was at gets an error; what waits goes to the next one."""
        child.ends("its process ended")
        if child is self.next:
            self.next = None
        if child is not self.child:
            if self.child is None and not self.closing and self.unfit is None:
                self._again()
            return
        self.child = None
        for request, _ in self.sent:
            if not request.done.done():
                request.done.set_exception(
                    Refused(503, "interrupted", f"{self.name}: the model was interrupted; ask again")
                )
        self.requests = deque(r for r in self.requests if not r.done.done())
        self.sent = []
        if not self.closing:
            self._again()

    def _again(self) -> None:
        self.deaths += 1
        if self.deaths <= TRIES:
            self.start()
            return
        self._give_up("its process ends again and again")

    def _give_up(self, why: str) -> None:
        """Nobody waits for a model that will never be ready."""
        self.unfit = why
        for request in self.requests:
            if not request.done.done():
                request.done.set_exception(Refused(503, "unfit", f"{self.name}: {self.unfit}"))
        self.requests.clear()

    def _dispatch(self) -> None:
        """Sends a batch, if the process is free and anybody waits."""
        if self.sent or self.child is None:
            return
        if self.next is not None:
            old, new, self.next = self.child, self.next, None
            self._take(new)
            _tell_end(old)
        while self.requests and not self.requests[0].waiting:
            self.requests.popleft()
        if not self.requests:
            return
        key = self.requests[0].key
        alike = [r for r in self.requests if r.key == key]
        batch: list[Any] = []
        cost, each = 0, json.loads(key).get("options", {}).get("beam", 1)
        while len(batch) < AT_ONCE and cost < COST and any(r.waiting for r in alike):
            for request in alike:
                if request.waiting and len(batch) < AT_ONCE and cost < COST:
                    place, item = request.waiting.popleft()
                    batch.append(item)
                    cost += each * self._length(item)
                    self.sent.append((request, place))
        # Next time another kind of request comes first, and of this kind those that had to stand back.
        served = {request for request, _ in self.sent}
        self.requests = deque(
            sorted((r for r in self.requests if r.waiting), key=lambda r: (r.key == key, r in served))
        )
        self.on_batch(len(batch))
        with contextlib.suppress(OSError):  # if it has just died, the listener tells
            self.child.pipe.send_bytes(json.dumps({**json.loads(key), "items": batch}).encode())

    def _length(self, item: Any) -> int:
        return PICTURE if self.facts.get("reads") == "pictures" else _size(item)

    async def ask(self, kind: str, items: Sequence[Any], **how: Any) -> list[Message]:
        """An answer for each item, in their order."""
        if self.unfit is not None:
            raise Refused(503, "unfit", f"{self.name}: {self.unfit}")
        if self.closing:
            raise Refused(503, "closing", "the service is stopping")
        if self.waiting + len(items) > self.limits.queue:
            raise Refused(429, "busy", "too many texts are waiting; try again later", "queue", self.limits.queue)
        if not items:
            return []
        size = sum(_size(item) for item in items)
        if self.bytes + size > self.limits.queue_bytes:
            most = self.limits.queue_bytes
            raise Refused(429, "busy", "too much is waiting; try again later", "queue_bytes", most)
        key = json.dumps({"kind": kind, **how}, sort_keys=True)
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        request = _Request(key, deque(enumerate(items)), [None] * len(items), done, len(items))
        self.requests.append(request)
        self.bytes += size
        self._dispatch()
        try:
            await asyncio.wait_for(done, self.limits.seconds)
        except TimeoutError:
            raise Refused(
                503, "too_slow", "the answer took too long; ask for less", "seconds", self.limits.seconds
            ) from None
        finally:  # whether it was answered, refused, or the client has left
            request.waiting.clear()
            self.bytes -= size
        return [answer for answer in request.answers if answer is not None]

    async def reload(self) -> None:
        """A new process with what the folder holds now; the old one, if there is one, works until it is ready."""
        if self.reloading:
            raise Refused(409, "busy", f"{self.name}: is being loaded already")
        self.reloading, self.unfit, self.deaths = True, None, 0
        try:
            why = await asyncio.wait_for(self.start().fate, self.limits.seconds)
        except TimeoutError:
            told = f"{self.name}: did not load in time"
            raise Refused(503, "too_slow", told, "seconds", self.limits.seconds) from None
        finally:
            self.reloading = False
        if why is not None:
            raise Refused(409, "unfit", f"{self.name}: {why}{'; the old one goes on' if self.ready else ''}")

    async def close(self) -> None:
        """No new requests; what was accepted is finished, as far as the time allows."""
        self.closing = True
        waiting = [r.done for r in self.requests] + [r.done for r, _ in self.sent]
        if waiting:
            await asyncio.wait(waiting, timeout=self.limits.seconds)
        for child in (self.child, self.next):
            if child is not None:
                _end(child)
        self.child = self.next = None


def refusal(answer: Message) -> Refused | None:
    """Why there is no result, if the process could give none."""
    if "failed" in answer:
        return Refused(422, "wrong_input", answer["failed"])
    if "over" in answer:
        limit, found, most = answer["over"]
        return over(limit, found, most, 413)
    if "broken" in answer:
        return Refused(500, "internal", "an error of the service's own; its log has more")
    return None


def _size(item: Any) -> int:
    return len(item) if isinstance(item, str) else sum(map(len, item))


def _tell_end(child: _Child) -> None:
    with contextlib.suppress(OSError):
        child.pipe.send_bytes(b'{"kind": "end"}')


def _end(child: _Child) -> None:
    _tell_end(child)
    child.process.join(2)
    if child.process.is_alive():
        child.process.kill()
