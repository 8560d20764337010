"""Memory that is freed is kept for the next step.

glibc gives large freed blocks back to the system, and a training step asks for the same blocks again: the system has to
clear each of their pages anew. That was a fifth of the time of a small Transformer (docs/benchmarks.md).
"""

import ctypes

TRIM_THRESHOLD, TOP_PAD, MMAP_THRESHOLD = -1, -2, -3  # as malloc.h names them
MIB = 1024 * 1024


def keep_freed_memory() -> None:
    """For this process, from now on; where there is no glibc, nothing."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    mallopt(MMAP_THRESHOLD, 32 * MIB)  # the most it takes: blocks above are the system's all the same
    mallopt(TRIM_THRESHOLD, 2**31 - 1)
    mallopt(TOP_PAD, 64 * MIB)
