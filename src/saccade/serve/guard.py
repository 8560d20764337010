"""What stands between a client and an answer: who may come in, how refusals look, what is logged and counted."""

import asyncio
import hmac
import json
import logging
import re
import secrets
import time
import traceback
from collections.abc import Sequence
from functools import partial
from typing import NoReturn

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from saccade.serve import libre
from saccade.serve.desk import Desk
from saccade.serve.limits import Limits, Refused, over
from saccade.serve.page import PARTS

LOG = logging.getLogger("saccade.serve")
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": "default-src 'none'; style-src 'self' 'unsafe-inline'; frame-ancestors 'none'; "
    "base-uri 'none'; form-action 'none'",
}
HOST = re.compile(r"(?P<name>[a-z0-9._-]+|\[[0-9a-f:.]+\])(:\d+)?")
INTERNAL = "an error of the service's own; its log has more"
OPEN = ("/healthz", "/health", "/docs", "/openapi.json", *PARTS)  # may be asked without a key: they tell nothing


class Meters:
    """What /metrics tells."""

    def __init__(self, desks: Sequence[Desk]) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter("saccade_requests", "Requests", ["path", "status"], registry=self.registry)
        self.seconds = Histogram("saccade_request_seconds", "Time to an answer", ["path"], registry=self.registry)
        self.batch = Histogram(
            "saccade_batch_texts", "Texts in a batch", ["model"], registry=self.registry, buckets=(1, 2, 4, 8, 16, 32)
        )
        waiting = Gauge("saccade_waiting_texts", "Texts that wait", ["model"], registry=self.registry)
        for desk in desks:
            waiting.labels(desk.name).set_function(partial(_waiting, desk))
            desk.on_batch = self.batch.labels(desk.name).observe


def _waiting(desk: Desk) -> float:
    return desk.waiting


class Guard:
    """Lets in who may come, and gives every answer its headers, its number and its line in the log."""

    def __init__(self, app: ASGIApp, limits: Limits, hosts: Sequence[str], key: str | None, meters: Meters) -> None:
        self.app, self.limits, self.hosts, self.key, self.meters = app, limits, hosts, key, meters
        self.inside = 0  # requests at a time

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, identity, status, path = time.perf_counter(), secrets.token_hex(8), 0, scope["path"]
        body = _Body(receive, self.limits, path)

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers["X-Request-Id"] = identity
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        async def answering(message: Message) -> None:
            if body.refused is None or status:
                await sending(message)

        self.inside += 1
        try:
            if self.inside > (most := self.limits.requests):
                raise Refused(503, "busy", "too many ask at the same time; try again later", "requests", most)
            _admit(Request(scope), self.limits, self.hosts, self.key)
            await self.app(scope, body.receive, answering)
            if body.refused is not None and not status:  # whatever was made of half a body
                raise body.refused
        except Refused as refused:
            await _refusal(refused, path)(scope, receive, sending)
        except ClientDisconnect:
            status = status or 499  # who has left needs no answer
        except Exception as error:
            where = [
                f"{f.filename.rpartition('/')[2]}:{f.lineno} {f.name}"
                for f in traceback.extract_tb(error.__traceback__)
            ]
            LOG.error(json.dumps({"id": identity, "error": type(error).__name__, "at": where}))  # no text of a client
            if not status:
                await _refusal(Refused(500, "internal", INTERNAL), path)(scope, receive, sending)
        finally:
            self.inside -= 1
        took = time.perf_counter() - began
        route = getattr(scope.get("route"), "path", "other")
        self.meters.requests.labels(route, status).inc()
        self.meters.seconds.labels(route).observe(took)
        told = {"id": identity, "method": scope["method"], "path": route, "status": status, "ms": round(1e3 * took, 1)}
        LOG.info(json.dumps(told))


class _Body:
    """What a client sends: counted as it comes, whatever its headers say, and waited for no longer than allowed."""

    def __init__(self, receive: Receive, limits: Limits, path: str) -> None:
        self.wait, self.limits, self.ended, self.size = receive, limits, False, 0
        self.name = "picture_bytes" if path == "/v1/caption" else "bytes"
        self.most = None if path == "/v1/stream" else getattr(limits, self.name)  # whose lines are counted one by one
        self.refused: Refused | None = None

    async def receive(self) -> Message:
        if self.ended:  # who is still there?
            return await self.wait()
        try:
            message = await asyncio.wait_for(self.wait(), self.limits.seconds)
        except TimeoutError:
            self._refuse(Refused(408, "too_slow", "the body took too long", "seconds", self.limits.seconds))
        self.size += len(message.get("body", b""))
        self.ended = message["type"] != "http.request" or not message.get("more_body", False)
        if self.most is not None and self.size > self.most:
            self._refuse(over(self.name, self.size, self.most, 413))
        return message

    def _refuse(self, why: Refused) -> NoReturn:
        self.refused = why
        raise why


def guard(app: FastAPI, limits: Limits, hosts: Sequence[str], key: str | None, meters: Meters) -> None:
    """Puts the guard before an application, and gives refusals their shape."""
    app.add_middleware(Guard, limits=limits, hosts=hosts, key=key, meters=meters)

    @app.exception_handler(Refused)
    async def refused(request: Request, error: Refused) -> Response:
        return _refusal(error, request.scope["path"])

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"] if part not in ("body", "query"))
        if first["type"] == "json_invalid":
            where, first["msg"] = "body", f"is no JSON, at character {where}"
        return _refusal(Refused(422, "wrong_input", f"{where or 'body'}: {first['msg']}"), request.scope["path"])

    @app.exception_handler(HTTPException)
    async def failed(request: Request, error: HTTPException) -> Response:
        code = {404: "not_found", 405: "wrong_method"}.get(error.status_code, "wrong_input")
        return _refusal(Refused(error.status_code, code, str(error.detail)), request.scope["path"])


def _admit(request: Request, limits: Limits, hosts: Sequence[str], key: str | None) -> None:
    """Who may come in: to this host, from this origin, with the key, with a body that is not too large."""
    host = request.headers.get("host", "").lower()
    name = HOST.fullmatch(host)
    if name is None or name["name"] not in [known.lower() for known in hosts]:
        raise Refused(421, "wrong_host", "this service is not known by that name; its operator can say --allow-host")
    origin = request.headers.get("origin")
    if origin is not None and origin.partition("://")[2].lower() != host:
        raise Refused(403, "wrong_origin", "pages of other sites may not ask")
    path = request.scope["path"]
    if key is not None and path not in OPEN and not libre.brings_key(path):
        given = request.headers.get("authorization", "").removeprefix("Bearer ") or request.headers.get("x-api-key", "")
        if not hmac.compare_digest(given.encode(), key.encode()):
            raise Refused(401, "no_key", "an API key is needed: Authorization: Bearer KEY")
    if path != "/v1/stream":
        most = limits.picture_bytes if path == "/v1/caption" else limits.bytes
        length = request.headers.get("content-length", "")
        if request.method == "POST" and not length.isdecimal() and "transfer-encoding" in request.headers:
            raise Refused(411, "no_length", "say how long the body is: Content-Length")
        if length.isdecimal() and int(length) > most:
            raise over("picture_bytes" if path == "/v1/caption" else "bytes", int(length), most, 413)


def _refusal(refused: Refused, path: str) -> JSONResponse:
    record = libre.refusal(refused) if libre.speaks(path) else refused.record()
    headers = {"Retry-After": "1"} if refused.status in (429, 503) else {}
    return JSONResponse(record, refused.status, headers)
