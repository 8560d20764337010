"""How fast and how small the attention layer is, as ratios to the bare tensor operations it replaces.

    python benchmarks/attention.py                 prints the tables (about three minutes)
    python benchmarks/attention.py --write FILE    also puts them into a Markdown file, between its markers

Contenders of a row take turns in one process on two threads; times are medians, and a ratio compares two medians.
Memory is the growth of the resident set at its peak, read in a fresh process for each contender. Absolute times say
more about the machine than about the code: compare the ratios.
"""

import argparse
import gc
import os
import platform
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

import saccade
from saccade import Attention
from saccade.attention import kernels

Contenders = dict[str, Callable[[], object]]  # name → one run; the last is what the others are compared with


def leaf(*shape: int) -> Tensor:
    return torch.randn(*shape).requires_grad_()


def forward_backward(compute: Callable[[], Tensor], inputs: list[Tensor]) -> Callable[[], object]:
    def run() -> None:
        for x in inputs:
            x.grad = None
        output = compute()
        output.backward(torch.ones_like(output))

    return run


def forward_only(compute: Callable[[], Tensor]) -> Callable[[], object]:
    def run() -> None:
        with torch.no_grad():
            compute()

    return run


# --- Additive and concat against the broadcast that builds B×M×N×H ----------------------------------------------------


def additive_attention(score: str, B: int, M: int, N: int, H: int, backward: bool) -> Contenders:
    layer = Attention(H, score=score, hidden=H)
    query, keys = leaf(B, M, H), leaf(B, N, H)
    if score == "additive":
        query_weight, key_weight = layer.score.query_weight, layer.score.key_weight
    else:
        query_weight, key_weight = layer.score.weight[:H], layer.score.weight[H:]
    query_weight, key_weight = query_weight.detach().requires_grad_(), key_weight.detach().requires_grad_()
    direction = layer.score.direction.detach().requires_grad_()

    def broadcast() -> Tensor:
        hidden = torch.tanh((query @ query_weight).unsqueeze(2) + (keys @ key_weight).unsqueeze(1))  # [B, M, N, H]
        return torch.softmax(hidden @ direction, -1) @ keys

    def ours() -> Tensor:
        return layer(query, keys).context

    inputs = [query, keys, query_weight, key_weight, direction, *layer.parameters()]
    wrap = (lambda f: forward_backward(f, inputs)) if backward else forward_only
    return {"saccade": wrap(ours), "broadcast": wrap(broadcast)}


# --- Scores that are a dot product once both sides are prepared -------------------------------------------------------


def dot_like(score: str, shape: tuple[int, int, int, int], backward: bool, weights: bool = False) -> Contenders:
    B, M, N, D = shape
    layer = Attention(D, score=score)
    query, prepared = leaf(B, M, D), layer.prepare(torch.randn(B, N, D), torch.randn(B, N, D))
    keys, values = (x.detach().requires_grad_() for x in prepared)
    prepared = saccade.Prepared(keys, values)
    scale = D**-0.5 if score == "scaled_dot" else 1.0

    def ours() -> Tensor:
        return layer(query, prepared, need_weights=weights).context

    def bare() -> Tensor:
        asked = F.normalize(query, dim=-1) if score == "cosine" else query
        if not weights:
            return F.scaled_dot_product_attention(asked.unsqueeze(1), keys, values, scale=scale).squeeze(1)
        scores = asked.unsqueeze(1) @ keys.mT
        return (torch.softmax(scores if scale == 1 else scores * scale, -1) @ values).squeeze(1)

    wrap = (lambda f: forward_backward(f, [query, keys, values])) if backward else forward_only
    return {"saccade": wrap(ours), "bare": wrap(bare)}


# --- Layers of others -------------------------------------------------------------------------------------------------


def keras_additive(shape: tuple[int, int, int, int]) -> Contenders:
    from keras import layers  # noqa: PLC0415  (with its torch backend; see main)

    B, M, N, D = shape
    theirs = layers.AdditiveAttention()
    query, keys = leaf(B, M, D), leaf(B, N, D)
    theirs([query, keys])  # builds it
    ours = Attention(D, score="additive", hidden=D)
    return {
        "saccade": forward_backward(lambda: ours(query, keys).context, [query, keys, *ours.parameters()]),
        "Keras": forward_backward(lambda: theirs([query, keys]), [query, keys]),
    }


def multi_head(shape: tuple[int, int, int, int], weights: bool) -> Contenders:
    B, M, N, D = shape
    theirs = torch.nn.MultiheadAttention(D, 8, batch_first=True)
    ours = Attention(D, heads=8, bias=True)
    query, keys = leaf(B, M, D), leaf(B, N, D)
    inputs = [query, keys, *ours.parameters(), *theirs.parameters()]
    return {
        "saccade": forward_backward(lambda: ours(query, keys, need_weights=weights).context, inputs),
        "torch": forward_backward(lambda: theirs(query, keys, keys, need_weights=weights)[0], inputs),
    }


# --- One decoding step: M = 1, keys prepared before -------------------------------------------------------------------


def step(score: str, B: int, masked: bool, N: int = 25, D: int = 256) -> Contenders:
    """From the same query, prepared keys and mask [B, N] to a context that is 0 where nothing may be looked at."""
    layer = Attention(D, score=score, **({"max_length": N} if score == "location" else {})).eval()
    query, memory = torch.randn(B, 1, D), torch.randn(B, N, D)
    mask = torch.arange(N) < torch.randint(N // 2, N + 1, (B, 1)) if masked else None
    with torch.no_grad():
        prepared = layer.prepare(memory)
        keys, values = (x.squeeze(1) for x in prepared)
        if score in ("additive", "concat"):
            query_weight = layer.score.query_weight if score == "additive" else layer.score.weight[:D]
            direction = layer.score.direction
        elif score == "location":
            query_weight = layer.score.weight

    def ours() -> Tensor:
        return layer(query, prepared, mask=mask).context

    def fused() -> Tensor:
        asked = F.normalize(query, dim=-1) if score == "cosine" else query
        scale = D**-0.5 if score == "scaled_dot" else 1.0
        seen = mask.view(B, 1, 1, N) if masked else None
        return F.scaled_dot_product_attention(asked.unsqueeze(1), *prepared, seen, scale=scale).squeeze(1)

    def plain() -> Tensor:
        if score == "location":
            scores = query @ query_weight  # [B, 1, N]
        else:
            scores = (torch.tanh(query @ query_weight + keys) @ direction).unsqueeze(1)
        if not masked:
            return torch.softmax(scores, -1) @ values
        hidden = ~mask.unsqueeze(1)
        return torch.softmax(scores.masked_fill(hidden, -1e30), -1).masked_fill(hidden, 0) @ values

    bare = plain if score in ("additive", "concat", "location") else fused
    return {"saccade": _inference(ours), "bare": _inference(bare)}


def _inference(compute: Callable[[], Tensor]) -> Callable[[], object]:
    def run() -> None:
        with torch.inference_mode():
            compute()

    return run


# --- Measuring --------------------------------------------------------------------------------------------------------

DOT_LIKE = ["dot", "scaled_dot", "general", "cosine"]
LARGE, SMALL = (8, 512, 512, 256), (64, 25, 25, 256)

TIMED: dict[str, tuple[str, Callable[[], Contenders], str]] = {}  # key → (row label, contenders, target)
for _score in ("additive", "concat"):
    for _shape, _target in ((LARGE, "≥ 6× faster"), (SMALL, "≥ 2.5× faster")):
        for _backward in (False, True):
            TIMED[f"{_score} {_shape} {'forward+backward' if _backward else 'forward'}"] = (
                "additive",
                lambda s=_score, x=_shape, b=_backward: additive_attention(s, *x, backward=b),
                _target if _backward else "",
            )
for _score in DOT_LIKE:
    for _backward in (False, True):
        for _shape in (LARGE, SMALL):
            TIMED[f"{_score} {_shape} {'forward+backward' if _backward else 'forward'}"] = (
                "dot",
                lambda s=_score, x=_shape, b=_backward: dot_like(s, x, b),
                "≤ 1.1×",
            )
for _score in DOT_LIKE:
    for _backward in (False, True):
        for _shape in (LARGE, SMALL):
            TIMED[f"{_score} {_shape} {'forward+backward' if _backward else 'forward'}, with weights"] = (
                "weights",
                lambda s=_score, x=_shape, b=_backward: dot_like(s, x, b, weights=True),
                "≤ 1.1×",
            )
for _score in [*DOT_LIKE, "additive", "concat", "location"]:
    for _size, _target in ((64, "≤ 1.2×"), (1, "≤ 1.5×")):
        for _masked in (False, True):
            TIMED[f"{_score} B={_size}{', masked' if _masked else ''}"] = (
                "step",
                lambda s=_score, b=_size, m=_masked: step(s, b, m),
                _target,
            )

for _shape in (LARGE, SMALL):
    TIMED[f"Keras AdditiveAttention {_shape}"] = ("peers", lambda x=_shape: keras_additive(x), "")
    for _weights in (False, True):
        TIMED[f"torch.nn.MultiheadAttention, 8 heads {_shape}{', with weights' if _weights else ''}"] = (
            "peers",
            lambda x=_shape, w=_weights: multi_head(x, w),
            "",
        )

PEAKS: dict[str, Callable[[], Contenders]] = {}
for _score in ("additive", "concat"):
    PEAKS[f"{_score} {LARGE} forward+backward"] = lambda s=_score: additive_attention(s, *LARGE, backward=True)
for _score in DOT_LIKE:
    for _n in (4096, 8192):
        _shape = (1, _n, _n, 64)
        PEAKS[f"{_score} {_shape} forward+backward"] = lambda s=_score, x=_shape: dot_like(s, x, True)


def times(contenders: Contenders, seconds: float) -> dict[str, float]:
    """Median milliseconds of each, all taking turns."""
    repeats = {}
    for name, run in contenders.items():
        run()
        start = time.perf_counter()
        run()
        repeats[name] = max(1, int(0.01 / (time.perf_counter() - start)))  # a sample lasts at least 10 ms
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    end = time.perf_counter() + seconds
    gc.disable()
    while time.perf_counter() < end or len(next(iter(samples.values()))) < 5:
        for name, run in contenders.items():
            start = time.perf_counter()
            for _ in range(repeats[name]):
                run()
            samples[name].append((time.perf_counter() - start) / repeats[name])
    gc.enable()
    return {name: 1e3 * statistics.median(s) for name, s in samples.items()}


def peak(key: str, name: str) -> float:
    """Megabytes that the resident set grows by at its peak, in a fresh process."""
    command = [sys.executable, __file__, "--peak-of", key, name]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def measure_peak_here(key: str, name: str) -> float:
    def read(field: str) -> int:
        return int(re.search(rf"{field}:\s+(\d+)", Path("/proc/self/status").read_text()).group(1))

    warm = additive_attention("additive", 1, 2, 2, 4, True) | dot_like("dot", (1, 2, 2, 4), True)
    for run in warm.values():
        run()
    run = PEAKS[key]()[name]
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # the high-water mark starts again from here
    before = read("VmRSS")
    run()
    return (read("VmHWM") - before) / 1024


def report(seconds: float) -> str:
    torch.set_num_threads(2)
    torch.manual_seed(0)
    kernel = "compiled" if kernels.compiled() else "not compiled: torch blocks"
    lines = [
        f"torch {torch.__version__}, {torch.get_num_threads()} threads, {_processor()}, C kernel {kernel}.",
        "Shapes are (B, M, N, D).",
    ]
    titles = {
        "additive": ("Additive and concat, against the broadcast that builds B×M×N×H", "times faster"),
        "dot": ("Dot-like scores without weights, against bare `scaled_dot_product_attention`", "times as long"),
        "weights": ("With weights, against plain softmax(QKᵀ)V", "times as long"),
        "peers": ("Against layers of others, forward+backward", "times faster"),
        "step": (
            "One decoding step with prepared keys, M=1, N=25, D=256, against the bare operations",
            "times as long",
        ),
    }
    for kind, (title, unit) in titles.items():
        lines += ["", f"### {title}", "", f"| | saccade ms | other ms | {unit} | target |", "|---|---|---|---|---|"]
        for key, (row_kind, make, target) in TIMED.items():
            if row_kind != kind:
                continue
            ours, other = times(make(), seconds).values()
            ratio = other / ours if unit == "times faster" else ours / other
            lines.append(f"| {key} | {ours:.3f} | {other:.3f} | {ratio:.2f} | {target} |")
            print(lines[-1], file=sys.stderr)
    lines += ["", "### Peak extra memory, MB", "", "| | saccade | other | ratio | target |", "|---|---|---|---|---|"]
    for key, make in PEAKS.items():
        first, second = (peak(key, name) for name in make())
        target = "≥ 20× less" if key.startswith(("additive", "concat")) else "8192 about twice 4096"
        lines.append(f"| {key} | {first:.0f} | {second:.0f} | {second / max(first, 0.1):.1f} | {target} |")
        print(lines[-1], file=sys.stderr)
    return "\n".join(lines)


def _processor() -> str:
    try:
        return re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text()).group(1)
    except (OSError, AttributeError):
        return platform.processor()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=2.0, help="time for each row")
    parser.add_argument("--write", type=Path, help="Markdown file with <!-- attention --> markers to fill")
    parser.add_argument("--peak-of", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peak_of:
        print(measure_peak_here(*arguments.peak_of))
        return
    table = report(arguments.seconds)
    print(table)
    if arguments.write:
        text = arguments.write.read_text()
        marked = re.compile(r"(<!-- attention -->\n).*?(<!-- /attention -->)", re.DOTALL)
        arguments.write.write_text(marked.sub(lambda m: f"{m.group(1)}{table}\n{m.group(2)}", text))


if __name__ == "__main__":
    os.environ.setdefault("KERAS_BACKEND", "torch")
    main()
