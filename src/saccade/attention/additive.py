"""The kernel behind additive and concat attention: e[m, n] = vᵀ tanh(q[m] + k[n]), without the M×N×P tensor.

Written plainly, every pair of a query and a key needs a tanh over P features, and autograd keeps all M·N·P of them.
Two facts save both the time and the memory:

    tanh(q + k) = 1 − 2 r,   r = 1 / (1 + e^{2q} e^{2k})    one exp a query and a key, one division a pair
    tanh'       = 4 (r − r²)                                so backward computes r anew and keeps nothing

`_additive.c` does this in registers. Where it was not compiled, on another device, and where e^{2q} would leave the
range of its type, torch takes the tanh in blocks that fit the cache. Whichever runs, torch sees one operation,
`saccade::additive_scores`.
"""

import ctypes
import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from saccade.attention.kernels import library

BLOCK = 512 * 1024  # elements: 2 MiB of fp32, the L2 caches of two cores
PARALLEL = 64 * 1024  # elements: 10 µs of work; under this waking a thread costs more than it saves
RANGE = {torch.float32: 43.0, torch.float64: 353.0}  # |q| for which e^{±2q} is a normal number of the type


def additive_scores(query: Tensor, keys: Tensor, direction: Tensor) -> Tensor:
    """vᵀ tanh(q + k) for every pair: [.., H, M, P], [.., H, N, P], [H, P] or, for one head, [P] → [.., H, M, N]."""
    if direction.dtype is not query.dtype:
        direction = direction.to(query.dtype)  # fp32 or fp64, however few bits the parameters have
    if not torch.compiler.is_compiling() and query.numel() * keys.shape[-2] <= BLOCK:
        return _plain(query, keys, direction)  # a single block: nothing to save by cutting it up
    direction = direction.view(-1, direction.shape[-1])  # [H, P]
    if query.dim() == 4:
        return _in_blocks(query, keys, direction)
    scores = _in_blocks(query.reshape(-1, *query.shape[-3:]), keys.reshape(-1, *keys.shape[-3:]), direction)
    return scores.reshape(*query.shape[:-1], keys.shape[-2])


def _plain(query: Tensor, keys: Tensor, direction: Tensor) -> Tensor:
    if direction.dim() == 1 and query.shape[-2] == 1:  # one head, one query: a decoder's step, which should cost little
        return (torch.tanh(query + keys) @ direction).unsqueeze(-2)  # [.., 1, 1, N]
    hidden = torch.tanh(query.unsqueeze(-2) + keys.unsqueeze(-3))  # [.., H, M, N, P]
    if direction.dim() == 1:
        return hidden @ direction  # [.., 1, M, N]
    return (hidden * direction[:, None, None]).sum(-1)  # [.., H, M, N]


@torch.library.custom_op("saccade::additive_scores", mutates_args=())
def _scores(query: Tensor, keys: Tensor, direction: Tensor) -> Tensor:
    scores = query.new_empty(*query.shape[:3], keys.shape[2])  # [B, H, M, N]
    if _in_registers(query, keys, direction):
        x, y = torch.exp(2 * query).contiguous(), torch.exp(2 * keys).contiguous()
        _run("forward", (x, y, direction.contiguous(), scores), (*scores.shape, query.shape[3]))
        return scores
    for h, v in enumerate(direction):
        for b, m, tanh in _blocks(query[:, h], keys[:, h]):
            scores[b, h, m] = tanh @ v
    return scores


@torch.library.custom_op("saccade::additive_scores_backward", mutates_args=())
def _scores_backward(grad: Tensor, query: Tensor, keys: Tensor, direction: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    if _in_registers(query, keys, direction):
        x, y = torch.exp(2 * query).contiguous(), torch.exp(2 * keys).contiguous()
        grad_query, grad_keys = torch.empty_like(x), torch.zeros_like(y)
        each = query.new_empty(*query.shape[:2], query.shape[3])  # [B, H, P]
        tensors = (grad.contiguous(), x, y, direction.contiguous(), grad_query, grad_keys, each)
        _run("backward", tensors, (*grad.shape, query.shape[3]))
        return grad_query, grad_keys, each.sum(0)
    grad_query, grad_keys, grad_direction = (torch.zeros_like(x) for x in (query, keys, direction))
    one = query.new_ones(())
    for h, v in enumerate(direction):
        for b, m, tanh in _blocks(query[:, h], keys[:, h]):
            g = grad[b, h, m]  # [b, m, N]
            grad_direction[h] += g.reshape(-1) @ tanh.flatten(0, 2)
            slope = torch.addcmul(one, tanh, tanh, value=-1, out=tanh).mul_(g.unsqueeze(-1))  # g (1 − tanh²)
            grad_query[b, h, m] = slope.sum(2) * v
            grad_keys[b, h] += slope.sum(1) * v
    return grad_query, grad_keys, grad_direction


def _blocks(query: Tensor, keys: Tensor) -> Iterator[tuple[slice, slice, Tensor]]:
    """tanh(q + k) = 2 σ(2 (q + k)) − 1 of one head, in blocks of examples × queries, all in one piece of memory."""
    rows = BLOCK // max(1, keys.shape[1] * keys.shape[2])
    queries = max(1, min(rows, query.shape[1]))
    examples = max(1, min(rows // queries, query.shape[0]))
    space = query.new_empty(examples, queries, *keys.shape[1:])  # [b, m, N, P]
    for b in range(0, query.shape[0], examples):
        for m in range(0, query.shape[1], queries):
            here = slice(b, b + examples), slice(m, m + queries)
            left, right = 2 * query[here].unsqueeze(2), 2 * keys[here[0]].unsqueeze(1)
            block = torch.add(left, right, out=space[: left.shape[0], : left.shape[1]])
            yield *here, block.sigmoid_().mul_(2).sub_(1)  # torch's sigmoid is up to three times as fast as its tanh


def _in_registers(query: Tensor, keys: Tensor, direction: Tensor) -> bool:
    """Whether the C kernel can take these; it trusts their sizes, so they are checked here, whoever calls."""
    (_, heads, _, width), groups = query.shape, query.shape[:2]
    if keys.shape[:2] != groups or keys.shape[3] != width or direction.shape != (heads, width):
        shapes = [list(x.shape) for x in (query, keys, direction)]
        raise ValueError(f"query, keys, direction: shapes {shapes}, expected [B, H, M, P], [B, H, N, P], [H, P]")
    if not query.dtype == keys.dtype == direction.dtype:
        raise ValueError(f"query, keys, direction: {query.dtype}, {keys.dtype}, {direction.dtype}; expected one dtype")
    if library is None or query.device.type != "cpu" or not query.numel() or not keys.numel():
        return False
    largest = torch.maximum(query.abs().amax(), keys.abs().amax())
    return bool(largest < RANGE[query.dtype])


def _run(name: str, tensors: tuple[Tensor, ...], sizes: tuple[int, ...]) -> None:
    """Calls the C kernel on contiguous tensors; sizes are B, H, M, N, P."""
    examples, heads, queries, keys, width = sizes
    threads = torch.get_num_threads() if math.prod(sizes) >= PARALLEL else 1
    real = "f32" if tensors[0].dtype is torch.float32 else "f64"
    getattr(library, f"saccade_additive_{name}_{real}")(
        *[ctypes.c_void_p(t.data_ptr()) for t in tensors],
        *map(ctypes.c_int64, (examples * heads, heads, queries, keys, width)),
        ctypes.c_int(threads),
    )


@_scores.register_fake
def _(query: Tensor, keys: Tensor, direction: Tensor) -> Tensor:
    return query.new_empty(*query.shape[:3], keys.shape[2])


@_scores_backward.register_fake
def _(grad: Tensor, query: Tensor, keys: Tensor, direction: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return query.new_empty(query.shape), keys.new_empty(keys.shape), direction.new_empty(direction.shape)


class _Additive(torch.autograd.Function):
    """The gradient of the operation; as a Function, since torch.func.grad passes through no other kind."""

    generate_vmap_rule = True

    @staticmethod
    def forward(query: Tensor, keys: Tensor, direction: Tensor) -> Tensor:
        scores: Tensor = _scores(query, keys, direction)
        return scores

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return _in_blocks_backward(grad, *ctx.saved_tensors)


class _AdditiveBackward(torch.autograd.Function):
    """The gradient of the gradient, which few ask for, goes through the plain formula."""

    generate_vmap_rule = True

    @staticmethod
    def forward(grad: Tensor, query: Tensor, keys: Tensor, direction: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        grads: tuple[Tensor, Tensor, Tensor] = _scores_backward(grad, query, keys, direction)
        return grads

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, ...]) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        def first(grad: Tensor, *inputs: Tensor) -> Any:
            return torch.func.vjp(_plain, *inputs)[1](grad)

        return torch.func.vjp(first, *ctx.saved_tensors)[1](grads)


_in_blocks: Callable[[Tensor, Tensor, Tensor], Tensor] = _Additive.apply
_in_blocks_backward: Callable[..., tuple[Tensor, Tensor, Tensor]] = _AdditiveBackward.apply


def _fold(x: Tensor, dim: int | None, size: int, heads: int) -> Tensor:
    """A vmapped axis becomes more heads, since each of its entries may have a direction of its own."""
    x = x.unsqueeze(0).expand(size, *x.shape) if dim is None else x.movedim(dim, 0)
    return x.movedim(0, heads).flatten(heads, heads + 1)


def _unfold(x: Tensor, size: int, heads: int) -> Tensor:
    return x.reshape(*x.shape[:heads], size, x.shape[heads] // size, *x.shape[heads + 1 :])


@_scores.register_vmap
def _(info: Any, in_dims: tuple[int | None, ...], *inputs: Tensor) -> tuple[Tensor, int]:
    folded = [_fold(x, d, info.batch_size, h) for x, d, h in zip(inputs, in_dims, (1, 1, 0), strict=True)]
    scores: Tensor = _scores(*folded)
    return _unfold(scores, info.batch_size, 1), 1


@_scores_backward.register_vmap
def _(info: Any, in_dims: tuple[int | None, ...], *inputs: Tensor) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
    folded = [_fold(x, d, info.batch_size, h) for x, d, h in zip(inputs, in_dims, (1, 1, 1, 0), strict=True)]
    grads: tuple[Tensor, ...] = _scores_backward(*folded)
    return tuple(_unfold(g, info.batch_size, h) for g, h in zip(grads, (1, 1, 0), strict=True)), (1, 1, 0)
