"""A service with a small model, as a process, for the tests that talk to one."""

import os
import socket
import subprocess
import sys
import time
from contextlib import contextmanager, suppress

import httpx


@contextmanager
def started(*options, **environment):
    """A service of runs, with options, on a free port, once it is ready: its process, and a client."""
    port = free_port()
    command = [sys.executable, "-m", "saccade", "serve", *map(str, options), "--port", str(port)]
    process = subprocess.Popen(command, env={**os.environ, **environment}, stderr=subprocess.PIPE, text=True)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
            until_ready(client)
            yield process, client
    finally:
        process.terminate()
        process.communicate(timeout=30)


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def until_ready(client, path="/healthz") -> None:
    for _ in range(600):
        with suppress(httpx.TransportError):
            if client.get(path).status_code == 200:
                return
        time.sleep(0.1)
    raise AssertionError("it never became ready")
