"""A loop in C around a function of the generated code: the cost of a call without Python."""

from __future__ import annotations

import ctypes
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from peers.cache import NotBuilt, built
from peers.computer import compiler_version
from peers.states import NotComparable
from tauloop.mechanism.poses import Array

#: Copies of a library that are timed.
COPIES = 3


def c_loop(function: Any, arrays: Sequence[Array]) -> Callable[[], None]:
    """Return a function that runs a C function on every row of its arrays (N, n), one after the other.

    The rows are all different, as in the peers' loops, so that branch prediction is as in real use.

    Raises:
        NotComparable: there is no C compiler, or it failed.
    """
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None:
        raise NotComparable("there is no C compiler")
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "loop.c"
        source.write_text(_source(len(arrays)), encoding="ascii")
        try:
            library = built(
                "loop", [compiler, "-O2", "-fPIC", "-shared"], source, compiler_version(compiler)
            )
        except NotBuilt as error:
            raise NotComparable(str(error)) from error
    loop = ctypes.CDLL(str(library)).loop
    loop.argtypes, loop.restype = [ctypes.c_size_t, *[ctypes.c_void_p] * 3], None
    rows = (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))
    widths = (ctypes.c_size_t * len(arrays))(*(array.shape[1] for array in arrays))
    address, n = ctypes.cast(function, ctypes.c_void_p), len(arrays[0])

    def work(arrays: Sequence[Array] = arrays) -> None:
        # the default keeps the arrays alive, because `rows` points into them
        loop(n, address, rows, widths)

    return work


def loaded_copies(library: Path) -> list[ctypes.CDLL]:
    """Return a library loaded from several copies, each in other pages of memory."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{i}.so" for i in range(COPIES)]
        for path in paths:
            shutil.copy(library, path)
        return [ctypes.CDLL(str(path)) for path in paths]


def _source(arguments: int) -> str:
    kinds = ", ".join(["double *"] * arguments)
    values = ", ".join(f"a[{i}] + k * n[{i}]" for i in range(arguments))
    return (
        "#include <stddef.h>\n"
        f"void loop(size_t samples, void (*f)({kinds}), double **a, const size_t *n)\n"
        f"{{\n    for (size_t k = 0; k < samples; ++k)\n        f({values});\n}}\n"
    )
