"""Evaluation of CasADi functions on batches: arrays (N, n) in and out, without copies."""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca
import numpy as np


def evaluate_batch(function: ca.Function, arrays: Sequence[np.ndarray], n: int) -> list[np.ndarray]:
    """Values of a function of column vectors at n samples.

    A C-contiguous array (n, k) is laid out as the (k, n) matrix that CasADi's map wants, so buffers are shared.

    Args:
        function: dense inputs and outputs, each a column vector.
        arrays: one array (n, k) per input.
        n: number of samples.

    Returns:
        One array (n, k) per output.
    """
    mapped = function.map(n) if n > 1 else function
    buffer, trigger = mapped.buffer()
    inputs = [np.ascontiguousarray(array, dtype=float) for array in arrays]
    for i, array in enumerate(inputs):
        buffer.set_arg(i, memoryview(array.reshape(-1)))  # type: ignore[call-arg]
    outputs = [np.zeros((n, function.numel_out(i))) for i in range(function.n_out())]
    for i, array in enumerate(outputs):
        buffer.set_res(i, memoryview(array.reshape(-1)))  # type: ignore[call-arg]
    trigger()
    return outputs
