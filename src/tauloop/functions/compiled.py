"""Compiled functions in Python: the same ports, called on batches or bound to fixed arrays for single calls."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from tauloop.functions.compiler import Compiler, build
from tauloop.functions.source import HEALTH, CFunction, c_source

#: Threads start to pay for themselves above this many samples.
SAMPLES_PER_THREAD = 1024


class CompiledFunction:
    """A program as machine code."""

    def __init__(
        self, function: CFunction, compiler: Compiler, *, threads: bool = False, folder: Path | None = None
    ) -> None:
        """Compile (or find in the cache) and load.

        Raises:
            EngineError: the library cannot be made.
        """
        self.function = function
        self.source = c_source([function], f"{function.name}: made by Tauloop, do not edit")
        self.library = build(self.source, compiler, threads=threads, folder=folder)
        loaded = ctypes.CDLL(str(self.library))
        count = len(function.arguments)
        self._scalar = getattr(loaded, function.name)
        self._scalar.argtypes = [ctypes.c_void_p] * count
        self._scalar.restype = None
        self._batch = getattr(loaded, f"{function.name}_batch")
        self._batch.argtypes = [ctypes.c_size_t, *[ctypes.c_void_p] * count]
        self._batch.restype = None

    def __call__(self, inputs: Mapping[str, np.ndarray], n: int) -> dict[str, np.ndarray]:
        """Outputs (N, n) by port, `health` among them; inputs are contiguous float arrays (N, n), already checked."""
        arrays = [np.ascontiguousarray(inputs[port.name], dtype=float) for port in self.function.inputs]
        outputs = {port.name: np.empty((n, port.size)) for port in self.function.outputs}
        outputs["health"] = np.empty((n, HEALTH))
        self._batch(n, *(array.ctypes.data for array in (*arrays, *outputs.values())))
        return outputs

    def bind(self) -> tuple[dict[str, np.ndarray], Callable[[], None]]:
        """Arrays by port and a call without arguments that reads and writes them: for control loops."""
        arrays = {port.name: np.zeros(port.size) for port in self.function.arguments}
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in arrays.values()]
        scalar = self._scalar

        def call() -> None:
            scalar(*pointers)

        return arrays, call
