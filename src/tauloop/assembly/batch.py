"""Evaluation of CasADi functions on batches: arrays (N, n) in and out, without copies."""

from __future__ import annotations

import os
from collections.abc import Sequence

import casadi as ca
import numpy as np

#: Samples that one call of a mapped function takes; maps of these widths are made once and put together to any N.
WIDTHS = (512, 64, 8, 1)
#: Instructions of one call above which starting threads (some tens of microseconds) is worth it; and how many at most.
WORTH_THREADS = 400_000
MOST_THREADS = 8


class BatchFunction:
    """A CasADi function of column vectors, ready for any number of samples.

    A C-contiguous array (N, k) is laid out as the (k, N) matrix that CasADi's map wants, so buffers are shared.
    """

    __slots__ = ("_maps", "function")

    def __init__(self, function: ca.Function) -> None:
        """Keep the function; its inputs and outputs must be dense columns."""
        self.function = function
        self._maps: dict[int, ca.Function] = {1: function}

    def __call__(self, arrays: Sequence[np.ndarray], n: int) -> list[np.ndarray]:
        """Values at n samples: one array (n, k) per input, one per output."""
        inputs = [np.ascontiguousarray(array, dtype=float) for array in arrays]
        outputs = [np.zeros((n, self.function.numel_out(i))) for i in range(self.function.n_out())]
        first = 0
        for width in WIDTHS:
            if n - first < width:
                continue
            buffer, trigger = self._map(width).buffer()
            while n - first >= width:
                for i, array in enumerate(inputs):
                    buffer.set_arg(i, _window(array, first, width))  # type: ignore[call-arg]
                for i, array in enumerate(outputs):
                    buffer.set_res(i, _window(array, first, width))  # type: ignore[call-arg]
                trigger()
                first += width
        return outputs

    def _map(self, width: int) -> ca.Function:
        if width not in self._maps:
            cores = os.cpu_count() or 1
            if cores > 1 and width * self.instructions > WORTH_THREADS:
                self._maps[width] = self.function.map(width, "thread", min(cores, MOST_THREADS))
            else:
                self._maps[width] = self.function.map(width)
        return self._maps[width]

    @property
    def output_sizes(self) -> tuple[int, ...]:
        """Numbers per sample of every output."""
        return tuple(self.function.numel_out(i) for i in range(self.function.n_out()))

    @property
    def instructions(self) -> int:
        """Number of instructions of the function."""
        return int(self.function.n_instructions())


def _window(array: np.ndarray, first: int, width: int) -> memoryview:
    return memoryview(array[first : first + width].reshape(-1))
