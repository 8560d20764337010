"""`saccade serve`: safe by default. Loopback only; elsewhere a key is needed, unless it is said aloud that none is."""

import logging
import sys
from collections.abc import Sequence
from pathlib import Path

import uvicorn

from saccade.errors import UsageError
from saccade.serve.app import build_app
from saccade.serve.desk import Desk
from saccade.serve.limits import Limits

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
    limits: Limits | None = None,
) -> None:
    limits = limits or Limits()
    if host not in LOOPBACK and key is None and not no_auth:
        raise UsageError(f"--host {host}: others could reach it, so set SACCADE_API_KEY or, if you must, say --no-auth")
    desks = [Desk(name, [path], limits, threads) for name, path in named(runs).items()]
    spoken = languages(langs, [d.name for d in desks])
    hosts = [*LOOPBACK, host, *allow]
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(message)s")
    app = build_app(desks, limits, hosts=hosts, key=key, langs=spoken)
    config = uvicorn.Config(
        app,
        host,
        port,
        access_log=False,
        log_level="warning",
        server_header=False,
        timeout_graceful_shutdown=int(limits.seconds),
    )
    Server(config, desks).run()


class Server(uvicorn.Server):
    """One that refuses new work as soon as it is told to stop, and finishes what it has."""

    def __init__(self, config: uvicorn.Config, desks: Sequence[Desk]) -> None:
        super().__init__(config)
        self.desks = desks

    def handle_exit(self, sig: int, frame: object) -> None:
        for desk in self.desks:
            desk.closing = True
        super().handle_exit(sig, frame)  # type: ignore[arg-type]


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
