"""How the service holds up: latency and throughput for 1 to 128 clients, beside the same sentences without a service.

    python benchmarks/serve.py RUN SENTENCES [--seconds 10] [--soak MINUTES]

The ratio is that of throughput with 32 clients to `translate` on the same sentences in batches of 32, both with one
thread; the two take turns. A soak keeps 32 clients busy and tells how the memory of all processes grew.
"""

import argparse
import asyncio
import os
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

import httpx
import torch

import saccade
from saccade.search import Options

CLIENTS = (1, 8, 32, 128)


def alone(run: Path, sentences: list[str], seconds: float) -> float:
    """Sentences a second in batches of 32, without a service."""
    torch.set_num_threads(1)
    translator = saccade.load(run)
    done, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        batch = [sentences[(done + i) % len(sentences)] for i in range(32)]
        translator.translate(batch, Options(), look=True)
        done += 32
    return done / (time.perf_counter() - began)


async def load(url: str, sentences: list[str], clients: int, seconds: float) -> tuple[float, list[float]]:
    """Sentences a second, and how long each client waited, all asking for one sentence at a time."""
    waited: list[float] = []
    end = time.perf_counter() + seconds

    async def one(client: httpx.AsyncClient, number: int) -> None:
        while time.perf_counter() < end:
            began = time.perf_counter()
            text = sentences[(number * 37 + len(waited)) % len(sentences)]
            response = await client.post("/v1/translate", json={"texts": [text]})
            response.raise_for_status()
            waited.append(time.perf_counter() - began)

    limits = httpx.Limits(max_connections=clients)
    async with httpx.AsyncClient(base_url=url, timeout=60, limits=limits) as client:
        began = time.perf_counter()
        await asyncio.gather(*(one(client, n) for n in range(clients)))
        return len(waited) / (time.perf_counter() - began), waited


def memory(pid: int) -> float:
    """Megabytes of a process and its children."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    pages = (int(Path(f"/proc/{p}/statm").read_text().split()[1]) for p in (pid, *children))
    return sum(pages) * os.sysconf("SC_PAGE_SIZE") / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("sentences", type=Path)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--soak", type=float, default=0, help="minutes")
    asked = parser.parse_args()
    sentences = asked.sentences.read_text(encoding="utf-8").splitlines()[:500]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "saccade", "serve", str(asked.run), "--port", str(port)]
    service = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        while True:
            try:
                if httpx.get(f"{url}/healthz").status_code == 200:
                    break
            except httpx.TransportError:
                time.sleep(0.2)
        print("clients  sentences/s  p50 ms  p95 ms  p99 ms")
        for clients in CLIENTS:
            speed, waited = asyncio.run(load(url, sentences, clients, asked.seconds))
            half, most, nearly_all = (1e3 * statistics.quantiles(waited, n=100)[i] for i in (49, 94, 98))
            print(f"{clients:7}  {speed:11.1f}  {half:6.0f}  {most:6.0f}  {nearly_all:6.0f}", flush=True)
        ratios = []
        for _ in range(3):
            without = alone(asked.run, sentences, asked.seconds)
            served, _ = asyncio.run(load(url, sentences, 32, asked.seconds))
            ratios.append(served / without)
        told = ", ".join(f"{r:.2f}" for r in ratios)
        print(f"32 clients against batches of 32: {statistics.median(ratios):.2f} of the throughput ({told})")
        if asked.soak:
            grown = [memory(service.pid)]
            for _ in range(10):
                asyncio.run(load(url, sentences, 32, 6 * asked.soak))
                grown.append(memory(service.pid))
            print(f"memory in {asked.soak:g} minutes with 32 clients, MB: {' '.join(f'{m:.0f}' for m in grown)}")
    finally:
        service.terminate()
        service.wait(60)


if __name__ == "__main__":
    main()
