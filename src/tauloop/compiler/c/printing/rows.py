"""Hand-written row kernels: each thread processes one row of arrays, on the CPU or a device.

The text is valid C99 and CUDA (`kernels.h`). The parameters of a kernel are the number of rows n,
the first row of a call, the row after its last, further integers, and arrays. Arrays are either
structures of arrays (k, n) or shared by all rows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from tauloop.compiler.c.calling.compiler import Compiler
from tauloop.compiler.c.calling.embedded import EmbeddedCompiler
from tauloop.compiler.c.calling.library import Library
from tauloop.compiler.c.calling.threads import share_out, shares
from tauloop.compiler.c.printing.c_helpers import c_file, used_helpers
from tauloop.compiler.c.printing.precision import Precision

_INCLUDE = re.compile(r"^#include .*\n", re.MULTILINE)
#: Number of parts per thread; more than one, because the time per row varies.
ROW_PARTS = 8


class RowKernel(Protocol):
    """A kernel over rows with integers and arrays as inputs and arrays as outputs."""

    def __call__(
        self,
        n: int,
        numbers: Sequence[int],
        arrays: Sequence[np.ndarray],
        shapes: Sequence[tuple[int, ...]],
    ) -> list[np.ndarray]:
        """Return outputs of the given shapes.

        Args:
            n: number of rows.
            numbers: integer arguments after the range of rows.
            arrays: inputs, which are converted to doubles.
            shapes: shapes of the outputs, which are doubles and follow the inputs.
        """
        ...


def row_kernel_text(body: str) -> str:
    """Return the text of a whole file: definitions for both compilers, helpers, and the kernel."""
    return "\n".join(
        [c_file("tauloop.compiler.c.printing", "kernels.h"), *used_helpers(body), body]
    )


def without_headers(text: str) -> str:
    """Return a text whose included headers are replaced by definitions for both compilers."""
    return c_file("tauloop.compiler.c.printing", "kernels.h") + _INCLUDE.sub("", text)


def row_kernel_letters(numbers: int, arrays: int) -> str:
    """Return the argument signature of a kernel: one letter per argument (see `Library.function`).

    Args:
        numbers: number of further integers.
        arrays: number of arrays.
    """
    return "nnn" + "n" * numbers + "*" * arrays


class CompiledRows:
    """A compiled `RowKernel` that runs on several threads.

    Results do not depend on the number of threads.
    """

    def __init__(
        self,
        text: str,
        name: str,
        letters: str,
        threads: int,
        folder: Path | None,
        precision: Precision = Precision.DOUBLE,
        compiler: Compiler | EmbeddedCompiler | None = None,
    ) -> None:
        """Compile the kernel, unless it is in the cache.

        Raises:
            EngineError: there is no compiler, the compiler fails, or the cache cannot be written.
        """
        self._run = Library.create(text, compiler, folder=folder).function(name, letters)
        self._threads, self._dtype = threads, precision.dtype

    def __call__(
        self,
        n: int,
        numbers: Sequence[int],
        arrays: Sequence[np.ndarray],
        shapes: Sequence[tuple[int, ...]],
    ) -> list[np.ndarray]:
        """See `RowKernel`."""
        read = [np.ascontiguousarray(array, dtype=self._dtype) for array in arrays]
        written = [np.empty(shape, dtype=self._dtype) for shape in shapes]

        def run(part: slice) -> None:
            self._run(n, part.start, part.stop, *numbers, *read, *written)

        if n:
            share_out(shares(n, ROW_PARTS * self._threads, least=1, block=1), self._threads, run)
        return [array.astype(float, copy=False) for array in written]
