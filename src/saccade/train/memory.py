"""How much memory a process that learns asks the system for, and how often."""

import ctypes
import os

from torch import nn

TRIM_THRESHOLD, TOP_PAD, MMAP_MAX = -1, -2, -4  # as malloc.h names them
MIB = 1024 * 1024
COPIES = 5  # of each weight while it learns: itself, its average, its gradient, and two of AdamW
COMPILED = 64  # products: about those of two steps


def mind_memory() -> None:
    """For this process, from now on.

    What is freed is kept for the next step: glibc gives large blocks back to the system, a step asks for the same ones
    again, and the system has to clear each of their pages anew. That was a fifth of the time of a small Transformer. No
    threshold keeps blocks above 32 MiB, such as the logits of 1,500 words among 6,000; mapping none at all does.

    Few compiled products are kept: in bfloat16 oneDNN compiles one for every shape that it meets, and batches of
    sentences have ever other shapes. The 1,024 that it keeps by itself take gigabytes and are hardly ever met again.
    """
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", str(COMPILED))  # read when the first one is compiled
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return  # no glibc
    mallopt(MMAP_MAX, 0)
    mallopt(TRIM_THRESHOLD, 2**31 - 1)
    mallopt(TOP_PAD, 64 * MIB)


def check_room(model: nn.Module) -> None:
    """Whether a model, of which no more than the sizes need be there, can learn in this machine's memory at all.

    Where it cannot, the system would end the process without a word.
    """
    try:
        room = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return  # not told here
    needed = COPIES * sum(p.numel() * p.element_size() for p in model.parameters())
    if needed > room:
        raise ValueError(
            f"model: learning takes {needed / 1024**3:,.0f} GiB of memory and this machine has {room / 1024**3:,.0f}; "
            "make model.width or another of its sizes smaller"
        )
