"""Compiled functions in Python: the same ports, called on batches or bound to fixed arrays for single calls."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

import numpy as np

from tauloop.errors import EngineError, Problem
from tauloop.functions.compiler import Compiler, build
from tauloop.functions.source import HEALTH, CFunction, c_source


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
        self.library, library = loaded(self.source, compiler, threads, folder)
        count = len(function.arguments)
        self._scalar = getattr(library, function.name)
        self._scalar.argtypes = [ctypes.c_void_p] * count
        self._scalar.restype = None
        self._batch = getattr(library, f"{function.name}_batch")
        self._batch.argtypes = [ctypes.c_size_t, *[ctypes.c_void_p] * count]
        self._batch.restype = None

    def __call__(self, inputs: Mapping[str, np.ndarray], n: int) -> dict[str, np.ndarray]:
        """Outputs (N, n) by port, `health` among them; inputs are contiguous float arrays (N, n), already checked."""
        arrays = [np.ascontiguousarray(inputs[port.name], dtype=float) for port in self.function.inputs]
        outputs = {port.name: np.empty((n, port.size)) for port in self.function.outputs}
        outputs["health"] = np.empty((n, HEALTH))
        self._batch(n, *(array.ctypes.data for array in (*arrays, *outputs.values())))
        return outputs

    def bind(self) -> tuple[Mapping[str, np.ndarray], Callable[[], None]]:
        """Arrays by port and a call without arguments that reads and writes them: for control loops.

        The arrays are filled in place; they live as long as the call does.
        """
        arrays = {port.name: np.zeros(port.size) for port in self.function.arguments}
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in arrays.values()]
        scalar = self._scalar

        def call(_kept: object = tuple(arrays.values())) -> None:
            scalar(*pointers)

        return MappingProxyType(arrays), call


def loaded(source: str, compiler: Compiler, threads: bool, folder: Path | None) -> tuple[Path, ctypes.CDLL]:
    """A library and its code; a damaged file in the cache is made anew.

    Raises:
        EngineError: it cannot be made, or not be loaded.
    """
    library = build(source, compiler, threads=threads, folder=folder)
    try:
        return library, ctypes.CDLL(str(library))
    except OSError:
        library.unlink(missing_ok=True)
    library = build(source, compiler, threads=threads, folder=folder)
    try:
        return library, ctypes.CDLL(str(library))
    except OSError as error:
        raise EngineError(
            Problem(
                where=str(library),
                what=f"compiled code cannot be loaded: {error}",
                remedy="keep the cache where programs may be run; without it everything runs interpreted",
            )
        ) from error
