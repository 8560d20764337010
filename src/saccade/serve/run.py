"""`saccade serve`: safe by default. Loopback only; elsewhere a key is needed, unless it is said aloud that none is."""

import json
import logging
import math
import socket
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

import uvicorn

from saccade.errors import UsageError
from saccade.serve.app import build_app
from saccade.serve.desk import Desk
from saccade.serve.limits import Limits

LOG = logging.getLogger("saccade.serve")
IDLE = 4  # connections for each request at a time; uvicorn itself refuses more, since they too cost memory
GRACE = 0.3  # seconds in which answers go out
LOOPBACK = ("127.0.0.1", "localhost", "::1", "[::1]")


def serve(
    runs: Sequence[str],
    host: str,
    port: int,
    *,
    key: str | None,
    no_auth: bool,
    allow: Sequence[str],
    langs: Sequence[str],
    threads: int,
    limits: Limits,
) -> None:
    if host not in LOOPBACK and key is None and not no_auth:
        raise UsageError(f"--host {host}: others could reach it, so set SACCADE_API_KEY or, if you must, say --no-auth")
    desks = [Desk(name, [path], limits, threads) for name, path in named(runs).items()]
    spoken = languages(langs, [d.name for d in desks])
    hosts = [*LOOPBACK, host, *allow]
    logs = logging.StreamHandler(sys.stderr)
    logs.setFormatter(Lines())
    logging.basicConfig(level=logging.INFO, handlers=[logs])
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    app = build_app(desks, limits, hosts=hosts, key=key, langs=spoken)
    config = uvicorn.Config(
        app,
        host,
        port,
        access_log=False,
        log_config=None,
        server_header=False,
        limit_concurrency=IDLE * limits.requests,
        timeout_graceful_shutdown=math.ceil(limits.seconds),
    )
    Server(config, desks).run()


class Lines(logging.Formatter):
    """JSON, a line each, whoever speaks."""

    def format(self, record: logging.LogRecord) -> str:
        told = record.getMessage()
        return told if told.startswith("{") else json.dumps({"level": record.levelname, "message": told})


class Server(uvicorn.Server):
    """One that says where it is and, told to stop, refuses new work, finishes what it has, and only then closes."""

    def __init__(self, config: uvicorn.Config, desks: Sequence[Desk]) -> None:
        super().__init__(config)
        self.desks, self.leaving = desks, False

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            at = f"[{host}]" if ":" in host else host
            LOG.info(json.dumps({"serving": f"http://{at}:{port}", "models": [desk.name for desk in self.desks]}))

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.leaving:  # told twice: at once
            super().handle_exit(sig, frame)
            return
        self.leaving = True
        for desk in self.desks:
            desk.closing = True
        threading.Thread(target=self._leave, args=(sig, frame), daemon=True).start()

    def _leave(self, sig: int, frame: FrameType | None) -> None:
        """While there is work, others can still come in and be refused."""
        latest = time.monotonic() + (self.config.timeout_graceful_shutdown or 0)
        while any(desk.busy for desk in self.desks) and time.monotonic() < latest:
            time.sleep(0.05)
        time.sleep(GRACE)
        super().handle_exit(sig, frame)


def named(runs: Sequence[str]) -> dict[str, str]:
    """Models by name: that of their folder, or NAME=FOLDER."""
    found: dict[str, str] = {}
    for given in runs:
        name, equals, path = given.partition("=")
        path = path if equals else given
        name = name if equals else Path(given).resolve().name
        if not (Path(path) / "config.toml").is_file():
            raise ValueError(f"{path}: no run of saccade there")
        if name in found:
            raise UsageError(f"{given}: there is a model {name} already; call one of them otherwise: NAME={path}")
        found[name] = path
    return found


def languages(given: Sequence[str], names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """--langs ko-en, for the only model, or NAME=ko-en."""
    found = {}
    for text in given:
        name, equals, codes = text.rpartition("=")
        name = name if equals else names[0]
        source, dash, target = codes.partition("-")
        if not (dash and source and target) or name not in names or (not equals and len(names) > 1):
            raise UsageError(f"--langs {text}: expected SOURCE-TARGET, such as ko-en, or NAME=ko-en for one of several")
        found[name] = (source, target)
    return found
