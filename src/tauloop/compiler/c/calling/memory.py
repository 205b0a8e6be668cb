"""Memory of large results, which is reused when no result refers to it any more.

The first access to new memory often takes longer than computing the results, and only one thread at
a time can do it.
"""

from __future__ import annotations

import sys
from threading import Lock

import numpy as np

#: Minimum size of memory that is reused, bytes. The C library reuses smaller blocks, but returns
#: larger ones to the system after each use.
LEAST = 1 << 17
#: Maximum total size of unused memory blocks that are not returned to the system, bytes.
MAX_KEPT_BYTES = 1 << 28
#: Maximum number of memory blocks to search for a free one. A caller that keeps more results gets
#: new memory.
MOST_PIECES = 64

_KEPT: list[np.ndarray] = []
_LOCK = Lock()


def _is_free(k: int) -> bool:
    """Return whether no result refers to a memory block; each result is a view of its block."""
    return sys.getrefcount(_KEPT[k]) <= _UNUSED_COUNT


def _unused_count() -> int:
    """Return the reference count of a memory block to which only the list refers."""
    _KEPT.append(np.empty(0))
    count = sys.getrefcount(_KEPT[-1])
    _KEPT.clear()
    return count


_UNUSED_COUNT = _unused_count()


def empty(n: int, size: int, dtype: np.dtype | type = float) -> np.ndarray:
    """Return an uninitialized array (n, size) of floats, in reused memory if possible."""
    wanted = 8 * n * size
    if wanted < LEAST or np.dtype(dtype) != np.float64:
        return np.empty((n, size), dtype)
    with _LOCK:
        free = [k for k in range(len(_KEPT)) if _is_free(k)]
        fitting = [k for k in free if wanted <= _KEPT[k].nbytes <= 2 * wanted]
        if fitting:
            memory = _KEPT.pop(min(fitting, key=lambda k: _KEPT[k].nbytes))
        else:
            spare = sum(_KEPT[k].nbytes for k in free)
            for k in reversed(free):  # in reverse order, so that the other indices stay valid
                if spare <= MAX_KEPT_BYTES and len(_KEPT) < MOST_PIECES:
                    break
                spare -= _KEPT.pop(k).nbytes
            memory = np.empty(wanted // 8)
        if len(_KEPT) < MOST_PIECES:
            _KEPT.append(memory)
    return memory[: wanted // 8].reshape(n, size)
