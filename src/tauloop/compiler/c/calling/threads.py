"""A batch shared out over threads: machine code lets other threads of Python run, and every share is a call of it.

The same machine code runs whatever the number of threads, and shares begin where a block of lanes
does: no number depends on how many there are. Threads are started for each call, so that a forked
process has none that it waits for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from threading import Thread, local

import numpy as np

from tauloop.compiler.c.calling.memory import empty
from tauloop.compiler.c.printing.batch_source import LANES

#: Samples of a share below which it is not worth a thread, whose start and end take about 0.1 ms.
LEAST_SHARE = 4096
#: Pieces of work that Python does itself, and the least and most samples of one. Threads wait for
#: each other between its calls: few large ones gain more than many whose arrays stay in a core's
#: cache.
PIECES, SMALLEST_PIECE, LARGEST_PIECE = 16, 512, 32768


class _Here(local):
    """This thread, and whether it has a share already: what that calls is not shared out once more."""

    is_busy = False


_HERE = _Here()


def shares(n: int, threads: int, least: int = LEAST_SHARE, block: int = LANES) -> list[slice]:
    """Shares of n samples, one for each thread, of about the same size; the whole for a thread that has a share.

    Args:
        n: number of samples.
        threads: most shares.
        least: samples of a share.
        block: every share but the last is a multiple of this.
    """
    count = 1 if _HERE.is_busy else max(min(threads, n // least), 1)
    size = -(-n // (count * block)) * block
    return (
        [slice(first, min(first + size, n)) for first in range(0, n, size)] if n else [slice(0, 0)]
    )


def share_out(parts: Sequence[slice], threads: int, work: Callable[[slice], object]) -> None:
    """Do the work of every part, in this thread and in others beside it; who is done takes the next part.

    Args:
        parts: of the batch.
        threads: most that are at work.
        work: called with each part.

    Raises:
        Exception: what the work of the first part that failed has raised.
    """
    errors: dict[int, BaseException] = {}
    numbers = iter(range(len(parts)))

    def run() -> None:
        was_busy, _HERE.is_busy = _HERE.is_busy, len(parts) > 1
        for number in numbers:
            try:
                work(parts[number])
            except BaseException as error:  # raised again where it is waited for
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
    """Arrays (n, ...), made in pieces that are the same for any number of threads.

    The first of several is a block alone: it makes what is made once, such as machine code, and
    tells what rows are.

    Args:
        n: number of samples.
        threads: most that are at work.
        work: called with each piece; gives its rows.
        least, most: samples of a piece.

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
