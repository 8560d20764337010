"""How fast whole models learn and write, on a made-up corpus.

    python benchmarks/models.py                 prints the table (some five minutes)
    python benchmarks/models.py --write FILE    also puts it into a Markdown file, between its markers

Sentences of 5 to 25 words (13.6 in the mean) from a vocabulary of 8,004, turned round; about 64 of them in a batch, no
dropout. RNN: BiLSTM 2×256, LSTM 512, embedding 256, Luong's attention with the general score. Transformer: 3+3 layers,
width 256, 4 heads, 1,024 hidden. Two threads. The models are untrained, so they are kept from stopping: each
sentence gets as many words as are wanted, and what counts is words written in a second.
"""

import argparse
import platform
import re
import statistics
import time
from pathlib import Path

import numpy as np
import torch

from saccade.config import ModelConfig
from saccade.config.train import TrainConfig
from saccade.data import START, STOP, Batch, Examples, batches
from saccade.model import Model, build
from saccade.search.beam import beam_search
from saccade.train.memory import mind_memory
from saccade.train.step import optimiser_of, update

VOCABULARY, PAIRS, STEPS, WRITTEN = 8004, 4000, 12, 256
PRECISIONS = ("float32", "bfloat16")
MODELS = {
    "RNN, input feeding": {"family": "luong", "score": "general", "feed": True, "width": 512, "embedding": 256},
    "RNN, no feeding": {"family": "luong", "score": "general", "feed": False, "width": 512, "embedding": 256},
    "RNN, Bahdanau": {"family": "bahdanau", "score": "additive", "width": 512, "embedding": 256},
    "Transformer": {"family": "transformer", "width": 256, "layers": 3, "heads": 4, "hidden": 1024},
}


def corpus() -> Examples:
    chance = np.random.default_rng(0)
    sources = [chance.integers(4, VOCABULARY, n).tolist() for n in chance.integers(5, 23, PAIRS)]
    return Examples.of((s, s[::-1]) for s in sources)


def training(model: Model, examples: Examples) -> tuple[dict[str, float], float]:
    """Target tokens a second in each precision, whose steps take turns, and the share of a batch that is real."""
    told = {p: TrainConfig(batch_tokens=1900, label_smoothing=0.0, precision=p) for p in PRECISIONS}
    optimiser = optimiser_of(model, told["float32"])
    speeds: dict[str, list[float]] = {p: [] for p in PRECISIONS}
    shares = []
    for rows in batches(examples, 1900, 0, 0)[: STEPS + 2]:
        for precision, config in told.items():
            start = time.perf_counter()
            batch = Batch.of([examples[i] for i in rows])
            _, tokens = update(model, optimiser, batch, config, 1.0)
            speeds[precision].append(tokens / (time.perf_counter() - start))
        shares.append(float(torch.cat([batch.mask.flatten(), batch.real.flatten()]).float().mean()))
    return {p: statistics.median(found[2:]) for p, found in speeds.items()}, statistics.mean(shares)


@torch.inference_mode()
def writing(model: Model, examples: Examples, beam: int, at_once: int) -> float:
    """Words of the best hypotheses a second; or, one at a time, seconds a sentence of 14 words."""
    model.eval()
    rows = np.argsort(examples.lengths()[0])
    rows = rows[len(rows) // 2 :][:WRITTEN] if at_once == 1 else rows[:: max(1, len(rows) // WRITTEN)]
    rows = rows[:8] if at_once == 1 else rows
    words, start = 0, time.perf_counter()
    for first in range(0, len(rows), at_once):
        batch = Batch.of([examples[i] for i in rows[first : first + at_once]])
        limits = batch.mask.sum(1)  # as many words as are wanted
        memory = model.encode(batch.source, batch.mask)
        found = beam_search([model], [memory], limits, start=START, stop=STOP, beam=beam, never=(STOP,))
        words += sum(len(hypotheses[0].tokens) for hypotheses in found)
    elapsed = time.perf_counter() - start
    return elapsed / len(rows) if at_once == 1 else words / elapsed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path)
    asked = parser.parse_args()
    torch.set_num_threads(2)
    mind_memory()
    examples = corpus()
    lines = [
        f"torch {torch.__version__}, 2 threads, {_processor()}.",
        "",
        "| | parameters | training tokens/s | in bfloat16 | real tokens | greedy words/s | beam 5 words/s "
        "| one sentence, ms |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, settings in MODELS.items():
        torch.manual_seed(0)
        model = build(ModelConfig.read({**settings, "dropout": 0.0}), VOCABULARY, VOCABULARY)
        size = sum(p.numel() for p in model.parameters()) / 1e6
        speed, share = training(model, examples)
        greedy, five = (writing(model, examples, beam, 64) for beam in (1, 5))
        one = 1000 * writing(model, examples, 1, 1)
        lines.append(
            f"| {name} | {size:.1f} M | {speed['float32']:,.0f} | {speed['bfloat16']:,.0f} | {share:.2f} "
            f"| {greedy:,.0f} | {five:,.0f} | {one:.0f} |"
        )
        print(lines[-1], flush=True)
    table = "\n".join(lines)
    if asked.write is not None:
        text = asked.write.read_text(encoding="utf-8")
        pattern = r"<!-- models -->\n.*?<!-- /models -->"
        replaced = re.sub(pattern, lambda _: f"<!-- models -->\n{table}\n<!-- /models -->", text, flags=re.DOTALL)
        asked.write.write_text(replaced, encoding="utf-8")
    else:
        print(table)


def _processor() -> str:
    cpus = Path("/proc/cpuinfo")
    names = re.findall(r"model name\s*: (.*)", cpus.read_text()) if cpus.exists() else []
    return names[0] if names else platform.processor()


if __name__ == "__main__":
    main()
