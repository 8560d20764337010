"""One look in one call: what a decoder's step costs is mostly calling torch, some ten times for few numbers.

`_glance.c` goes from prepared keys to the context at once. It has no gradient and shows no weights, so it is for steps
of a search alone; everywhere else, and where it was not compiled, torch's operations do the same.
"""

import ctypes
from collections.abc import Callable

import torch
from torch import Tensor, empty, get_num_threads, is_grad_enabled
from torch import is_autocast_enabled as autocasts
from torch._C import _get_tracing_state as tracing
from torch._C import _len_torch_dispatch_stack as modes
from torch.autograd import forward_ad
from torch.compiler import is_compiling

from saccade.attention.kernels import library

FLOAT, BOOL = torch.float32, torch.bool
LONGEST = 4096  # keys
PARALLEL = 64 * 1024  # tanh or products: under this waking a thread costs more than it saves


def _find() -> Callable[..., None] | None:
    if library is None or not library.saccade_glance_runs():
        return None
    function = library.saccade_glance
    function.argtypes = [ctypes.c_void_p] * 6 + [ctypes.c_int64] * 6 + [ctypes.c_float, ctypes.c_int]
    function.restype = None
    return function


_kernel = _find()


def can_glance(query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> bool:
    """Whether the kernel can take these: [B, M, Dq], [B, 1, N, P], [B, 1, N, D] and [B, N], without a gradient."""
    if _kernel is None or is_grad_enabled() or is_compiling() or forward_ad._current_level >= 0:
        return False
    if tracing() is not None or modes():
        return False  # somebody records operations, and this would be none
    if not type(query) is type(keys) is type(values) is Tensor:
        return False  # a subclass may have no numbers in memory
    for x in (query, keys, values):
        if x.dtype is not FLOAT or not x.is_cpu or not x.is_contiguous() or x.is_neg():
            return False
    shape = keys.shape
    if query.dim() != 3 or values.shape[:-1] != shape[:-1] or shape[-2] > LONGEST or autocasts("cpu"):
        return False
    return mask is None or (
        mask.dtype is BOOL
        and mask.shape == shape[::2]
        and mask.is_cpu
        and mask.is_contiguous()
        and type(mask) is Tensor
    )


def glance(
    query: Tensor,
    keys: Tensor | None,
    weight: Tensor | None,
    values: Tensor,
    mask: Tensor | None,
    factor: float = 1.0,
) -> Tensor | None:
    """The context [B, M, D] of `query` [B, M, P], or None where somebody maps it, or the weights are of another type.

    The score is a dot product with the keys, times `factor`; or additive, with `weight` [P] for its direction; or,
    without keys, location, with `weight` [P, at least N].
    """
    if weight is not None and not (weight.dtype is FLOAT and weight.is_cpu and weight.is_contiguous()):
        return None
    batch, queries, width = query.shape
    length, value_width = values.shape[-2:]
    context = empty(batch, queries, value_width)
    threads = get_num_threads() if queries * values.numel() > PARALLEL else 1
    try:
        _kernel(  # type: ignore[misc]  # there is one, or nobody would call this
            query.data_ptr(),
            None if keys is None else keys.data_ptr(),
            None if weight is None else weight.data_ptr(),
            None if mask is None else mask.data_ptr(),
            values.data_ptr(),
            context.data_ptr(),
            *(batch, queries, length, width, value_width, 0 if weight is None else weight.shape[-1], factor, threads),
        )
    except RuntimeError:  # under vmap and its like
        return None
    return context
