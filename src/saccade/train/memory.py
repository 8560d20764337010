"""How much memory a process that learns asks the system for, and how often."""

import ctypes
import os

TRIM_THRESHOLD, TOP_PAD, MMAP_MAX = -1, -2, -4  # as malloc.h names them
MIB = 1024 * 1024
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
