"""How this process asks the system for memory: arrays of some hundred kilobytes come and go thousands of times.

By itself glibc gives much of what is freed back at once and gets it again, page by page, for the next array: a third of
the time that it takes to check and score a placement of 150,000 replicas, an eighth of that of small solved plans.
"""

from __future__ import annotations

import ctypes

# Larger arrays are given back when they are freed; of the others, so much is kept.
MAPPED_BYTES, KEPT_BYTES = 32 << 20, 128 << 20
# What glibc reads when a process starts, for processes that others start for us: Spark's workers.
ENVIRONMENT = {"MALLOC_MMAP_THRESHOLD_": str(MAPPED_BYTES), "MALLOC_TRIM_THRESHOLD_": str(KEPT_BYTES)}
# From glibc's malloc.h.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3


def keep_freed() -> bool:
    """Keep freed memory for the next array in this process; False where the C library isn't glibc."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # TypeError: Windows
        return False
    return bool(mallopt(_MMAP_THRESHOLD, MAPPED_BYTES)) and bool(mallopt(_TRIM_THRESHOLD, KEPT_BYTES))
