"""How the service holds up: latency and throughput for 1 to 128 clients, beside the same sentences without a service.

    python benchmarks/serve.py RUN SENTENCES [--seconds 10] [--soak MINUTES] [--kill]

The ratio is that of throughput with 32 clients to `translate` in batches of 32, both of the same sentences, each once,
with one thread; the two take turns. A soak keeps 32 clients busy and tells how the memory of all processes grew. --kill
ends the model's process with SIGKILL while 32 clients ask, and counts what became of every request.
"""

import argparse
import asyncio
import os
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path

import httpx
import torch

import saccade
from saccade.search import Options, Translator

CLIENTS = (1, 8, 32, 128)
TURNS, BATCH = 3, 32
KILLS = 3


def alone(translator: Translator, sentences: list[str]) -> float:
    """Sentences a second in batches of 32, without a service."""
    began = time.perf_counter()
    for start in range(0, len(sentences), BATCH):
        translator.translate(sentences[start : start + BATCH], Options(), look=True)
    return len(sentences) / (time.perf_counter() - began)


async def load(url: str, sentences: Iterator[str], clients: int) -> tuple[float, list[float], Counter[int | str]]:
    """Sentences a second, how long each client waited, and what came back; all ask for one sentence at a time."""
    waited: list[float] = []
    answers: Counter[int | str] = Counter()

    async def one(client: httpx.AsyncClient) -> None:
        for text in sentences:  # of all clients together
            began = time.perf_counter()
            try:
                answers[(await client.post("/v1/translate", json={"texts": [text]})).status_code] += 1
            except httpx.TransportError as error:
                answers[type(error).__name__] += 1
            waited.append(time.perf_counter() - began)

    limits = httpx.Limits(max_connections=clients)
    async with httpx.AsyncClient(base_url=url, timeout=120, limits=limits) as client:
        began = time.perf_counter()
        await asyncio.gather(*(one(client) for _ in range(clients)))
        return len(waited) / (time.perf_counter() - began), waited, answers


def during(seconds: float, sentences: list[str]) -> Iterator[str]:
    """Sentences again and again, for so long."""
    end = time.perf_counter() + seconds
    for text in cycle(sentences):
        if time.perf_counter() > end:
            return
        yield text


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def memory(pid: int) -> float:
    """Megabytes of a process and its children."""
    pages = (int(Path(f"/proc/{p}/statm").read_text().split()[1]) for p in (pid, *children(pid)))
    return sum(pages) * os.sysconf("SC_PAGE_SIZE") / 1e6


@contextmanager
def served(run: Path) -> Iterator[tuple[str, int]]:
    """A service of one run, once it is ready: its address and its process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "saccade", "serve", str(run), "--port", str(port)]
    service = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        while service.poll() is None:
            try:
                if httpx.get(f"{url}/healthz").status_code == 200:
                    break
            except httpx.TransportError:
                pass
            time.sleep(0.2)
        else:
            raise SystemExit(f"the service ended: {' '.join(command)}")
        yield url, service.pid
    finally:
        service.terminate()
        service.wait(60)


def latency(url: str, sentences: list[str], seconds: float) -> None:
    print("clients  sentences/s  p50 ms  p95 ms  p99 ms")
    for clients in CLIENTS:
        speed, waited, answers = asyncio.run(load(url, during(seconds, sentences), clients))
        assert set(answers) == {200}, answers
        half, most, nearly_all = (1e3 * statistics.quantiles(waited, n=100)[i] for i in (49, 94, 98))
        print(f"{clients:7}  {speed:11.1f}  {half:6.0f}  {most:6.0f}  {nearly_all:6.0f}", flush=True)


def ratio(url: str, run: Path, sentences: list[str]) -> None:
    torch.set_num_threads(1)
    translator = saccade.load(run)
    alone(translator, sentences[:BATCH])  # both have been at work before they are timed
    ratios = []
    for _ in range(TURNS):
        without = alone(translator, sentences)
        speed, _, answers = asyncio.run(load(url, iter(sentences), BATCH))
        assert answers == {200: len(sentences)}, answers
        ratios.append(speed / without)
    told = ", ".join(f"{r:.2f}" for r in ratios)
    print(f"32 clients against batches of 32, {len(sentences)} sentences: {statistics.median(ratios):.2f} ({told})")


def soak(url: str, pid: int, sentences: list[str], minutes: float) -> None:
    grown = []
    for _ in range(10):
        asyncio.run(load(url, during(6 * minutes, sentences), BATCH))
        grown.append(memory(pid))
    first, second = (statistics.median(half) for half in (grown[:5], grown[5:]))
    print(f"memory in {minutes:g} minutes with 32 clients, MB: {' '.join(f'{m:.0f}' for m in grown)}")
    print(f"the second half against the first: {second / first - 1:+.1%}")


def kill(url: str, pid: int, sentences: list[str]) -> None:
    """Every request is answered: with a result, or with 503 and why."""
    asked, over = 0, False

    def until_over() -> Iterator[str]:
        nonlocal asked
        for text in cycle(sentences):
            if over:
                return
            asked += 1
            yield text

    async def scene() -> Counter[int | str]:
        nonlocal over
        asking = asyncio.create_task(load(url, until_over(), BATCH))
        for _ in range(KILLS):
            await asyncio.sleep(5)  # of load: by then the process is at a batch, or is being loaded anew
            for worker in children(pid):
                if b"spawn_main" in Path(f"/proc/{worker}/cmdline").read_bytes():
                    os.kill(worker, signal.SIGKILL)
        over = True
        return (await asking)[2]

    answers = asyncio.run(scene())
    told = ", ".join(f"{many} × {what}" for what, many in answers.most_common())
    lost = asked - answers[200] - answers[503]
    print(f"SIGKILL {KILLS} times while 32 clients ask {asked} times: {told}; without an answer: {lost}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("sentences", type=Path)
    parser.add_argument("--seconds", type=float, default=10, help="of asking for each number of clients")
    parser.add_argument("--many", type=int, default=480, help="sentences, for the ratio")
    parser.add_argument("--soak", type=float, default=0, help="minutes")
    parser.add_argument("--kill", action="store_true")
    asked = parser.parse_args()
    sentences = asked.sentences.read_text(encoding="utf-8").splitlines()[: asked.many]
    with served(asked.run) as (url, pid):
        latency(url, sentences, asked.seconds)
        ratio(url, asked.run, sentences)
        if asked.soak:
            soak(url, pid, sentences, asked.soak)
        if asked.kill:
            kill(url, pid, sentences)


if __name__ == "__main__":
    main()
