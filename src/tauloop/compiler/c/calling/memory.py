"""Memory of large results, used again when no result holds it any more.

The first touch of fresh memory takes the system longer than many functions take to fill it, and is
done by one thread at a time.
"""

from __future__ import annotations

import sys
from threading import Lock

import numpy as np

#: Bytes from which on memory is kept, and most that is kept where no result uses it. Smaller
#: results come from the C library's own pool, which returns larger ones to the system after each
#: use.
LEAST, MOST = 1 << 17, 1 << 28
#: Most pieces of memory that are looked through for a free one. A caller that keeps more results
#: gets fresh memory.
MOST_PIECES = 64

_KEPT: list[np.ndarray] = []
_LOCK = Lock()


def _is_free(k: int) -> bool:
    """Whether no result lies in kept memory: each is a view, which holds it."""
    return sys.getrefcount(_KEPT[k]) <= _HELD


def _held() -> int:
    """Count of references to memory that only the list holds."""
    _KEPT.append(np.empty(0))
    count = sys.getrefcount(_KEPT[-1])
    _KEPT.clear()
    return count


_HELD = _held()


def empty(n: int, size: int, dtype: np.dtype | type = float) -> np.ndarray:
    """An array (n, size) of any numbers; kept memory is of floats."""
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
            for k in reversed(free):  # from the last on, whose places do not move
                if spare <= MOST and len(_KEPT) < MOST_PIECES:
                    break
                spare -= _KEPT.pop(k).nbytes
            memory = np.empty(wanted // 8)
        if len(_KEPT) < MOST_PIECES:
            _KEPT.append(memory)
    return memory[: wanted // 8].reshape(n, size)
