"""Distribution of a batch over threads; Python's lock is released during each call.

The same machine code runs for any number of threads, and parts start at block boundaries, so
results do not depend on the number of threads. Threads are started for each call, because a forked
process would wait forever for threads that exist only in its parent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from threading import Thread, local

import numpy as np

from tauloop.compiler.c.calling.memory import empty
from tauloop.compiler.c.printing.batch_source import LANES

#: Minimum number of samples per thread; starting and ending a thread takes about 0.1 ms.
MIN_SHARE = 4096
#: Number of slices of work done in Python. Many slices whose arrays fit into a core's cache are
#: faster than a few large ones, because threads wait for each other between calls.
PIECES = 16
#: Minimum and maximum number of samples per slice.
SMALLEST_PIECE, LARGEST_PIECE = 512, 32768


class _Here(local):
    """State of this thread: whether it already works on a part, which must not be divided again."""

    is_busy = False


_HERE = _Here()


def shares(n: int, threads: int, least: int = MIN_SHARE, block: int = LANES) -> list[slice]:
    """Return slices that divide n samples among threads; one slice if this thread works on a slice.

    Args:
        n: number of samples.
        threads: maximum number of parts.
        least: minimum number of samples in a part.
        block: the size of every part except the last one is a multiple of this number.
    """
    count = 1 if _HERE.is_busy else max(min(threads, n // least), 1)
    size = -(-n // (count * block)) * block
    if n == 0:
        return [slice(0, 0)]
    return [slice(first, min(first + size, n)) for first in range(0, n, size)]


def share_out(parts: Sequence[slice], threads: int, work: Callable[[slice], object]) -> None:
    """Process all parts in this thread and in others; idle threads take the next part.

    Args:
        parts: parts of the batch.
        threads: maximum number of threads.
        work: function to call with each part.

    Raises:
        Exception: the exception of the first part that failed.
    """
    errors: dict[int, BaseException] = {}
    numbers = iter(range(len(parts)))

    def run() -> None:
        was_busy = _HERE.is_busy
        _HERE.is_busy = len(parts) > 1
        for number in numbers:
            try:
                work(parts[number])
            except BaseException as error:  # raised again in the waiting thread
                errors[number] = error
        _HERE.is_busy = was_busy

    count = 0 if _HERE.is_busy else min(threads, len(parts)) - 1
    others = [Thread(target=run, daemon=True) for _ in range(count)]
    for thread in others:
        thread.start()
    run()
    for thread in others:
        thread.join()
    if errors:
        raise errors[min(errors)]


def in_pieces(
    n: int,
    threads: int,
    work: Callable[[slice], Sequence[np.ndarray]],
    least: int = SMALLEST_PIECE,
    most: int = LARGEST_PIECE,
) -> Sequence[np.ndarray]:
    """Return arrays (n, ...) computed in slices that do not depend on the number of threads.

    The first slice is computed before the others, because it creates objects that all slices use,
    such as machine code, and defines the shape of a row.

    Args:
        n: number of samples.
        threads: maximum number of threads.
        work: function that returns the rows of a slice.
        least, most: minimum and maximum number of samples in a slice.

    Raises:
        Exception: as `share_out`.
    """
    size = max(min(max(n // (PIECES * LANES) * LANES, least), most), LANES)
    if n <= size:
        return work(slice(0, n))
    first = work(slice(0, LANES))
    whole = [
        empty(n, math.prod(part.shape[1:]), part.dtype).reshape(n, *part.shape[1:])
        for part in first
    ]

    def fill(piece: slice) -> None:
        _put(whole, piece, work(piece))

    _put(whole, slice(0, LANES), first)
    share_out([slice(k, min(k + size, n)) for k in range(LANES, n, size)], threads, fill)
    return whole


def _put(whole: Sequence[np.ndarray], piece: slice, parts: Sequence[np.ndarray]) -> None:
    for array, part in zip(whole, parts, strict=True):
        array[piece] = part
