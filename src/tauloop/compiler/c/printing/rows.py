"""Kernels of other text than programs: one row of arrays a thread, run here or on a device by the same call.

The text is C99 and CUDA at once (`kernels.h`). A kernel's parameters are the number of rows n, the
first and the last of those that a call does, further whole numbers, and arrays: structures of
arrays (k, n), or whole ones.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from tauloop.compiler.c.calling.library import Library
from tauloop.compiler.c.calling.threads import share_out, shares
from tauloop.compiler.c.printing.c_helpers import c_file, used_helpers
from tauloop.compiler.c.printing.precision import Precision

_INCLUDE = re.compile(r"^#include .*\n", re.MULTILINE)
#: Parts for each thread: rows take different times.
PARTS = 8


class RowKernel(Protocol):
    """A kernel over rows: whole numbers and arrays in, arrays out."""

    def __call__(
        self,
        n: int,
        numbers: Sequence[int],
        arrays: Sequence[np.ndarray],
        shapes: Sequence[tuple[int, ...]],
    ) -> list[np.ndarray]:
        """Outputs of these shapes.

        Args:
            n: rows.
            numbers: whole numbers behind the range of rows.
            arrays: read, as doubles; so are outputs.
            shapes: of the arrays that are written, behind the others.
        """
        ...


def row_kernel_text(body: str) -> str:
    """A whole file: the words for both compilers, helpers as the text needs them, and the text."""
    return "\n".join(
        [c_file("tauloop.compiler.c.printing", "kernels.h"), *used_helpers(body), body]
    )


def without_headers(text: str) -> str:
    """A text with the words for both compilers in front, in place of the headers that it includes."""
    return c_file("tauloop.compiler.c.printing", "kernels.h") + _INCLUDE.sub("", text)


def row_kernel_letters(numbers: int, arrays: int) -> str:
    """Letters of a kernel's arguments (see `Library.function`)."""
    return "nnn" + "n" * numbers + "*" * arrays


class CompiledRows:
    """A `RowKernel` in machine code of this computer's, shared out over threads; no number depends on them."""

    def __init__(
        self,
        text: str,
        name: str,
        letters: str,
        threads: int,
        folder: Path | None,
        precision: Precision = Precision.DOUBLE,
    ) -> None:
        """Compile, or find in the cache.

        Raises:
            EngineError: there is no compiler, it fails, or the cache cannot be written.
        """
        self._run = Library.made(text, folder=folder).function(name, letters)
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
            share_out(shares(n, PARTS * self._threads, least=1, block=1), self._threads, run)
        return [array.astype(float, copy=False) for array in written]
