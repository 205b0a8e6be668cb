"""Calls of machine code from Python at the cost of a call: a small extension module instead of ctypes.

It is made once by the C compiler that makes the machine code, where Python's headers are there;
without them ctypes does the same, some two tenths of a microsecond slower. It uses only Python's
stable interface.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import importlib.machinery
import importlib.util
import math
import sys
import sysconfig
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from tauloop.common.errors import EngineError, InputError
from tauloop.compiler.c.calling.cache import cache_folder, is_intact, keep
from tauloop.compiler.c.calling.compiler import (
    build,
    compiler_stamp,
    find_compiler,
    processor_stamp,
)
from tauloop.compiler.c.printing.c_helpers import c_file
from tauloop.compiler.limits import CONVERGED, SMALLEST_PIVOT
from tauloop.equations.ports import is_masked

#: Runs the machine code; with an argument, contiguous float64 numbers (no masked array, whose mask
#: would be dropped), these are put at the front of the inputs first.
Call = Callable[..., None]

_MODULE = "tauloop_caller"
#: Most arrays of a batch that the extension module takes, as in `caller.c`.
MOST_ARRAYS = 64


def prepare() -> None:
    """Make the extension module, if it can be made, while there is other work to wait for."""
    _binding()


def bound_call(library: Path, name: str, arrays: Sequence[np.ndarray], inputs: np.ndarray) -> Call:
    """A call of `void name(double *const *arrays)` on arrays that live as long as the call does.

    Args:
        library, name: the machine code.
        arrays: float arrays, in the order of the table of pointers; empty ones have none.
        inputs: the array at whose front a state is put.
    """
    code, table = _code(library, name, arrays)
    module = _binding()
    if module is None:
        return functools.partial(_called, code, ctypes.byref(table), inputs)
    address = ctypes.cast(code, ctypes.c_void_p).value
    kept = (code, table, inputs)
    call: Call = module.bind(
        address, ctypes.addressof(table), inputs.ctypes.data, inputs.size, np.ndarray, kept
    )
    return call


def checked_call(
    library: Path,
    name: str,
    arrays: Sequence[np.ndarray],
    buffers: Sequence[np.ndarray],
    result: np.ndarray,
    otherwise: Callable[..., Any],
) -> Callable[..., Any]:
    """A call of one sample, `call(*given)`, that looks at the numbers before and at the health behind.

    Args:
        library, name: the machine code.
        arrays: as of `bound_call`; the last one is the health.
        buffers: those of them that the arguments of a call go to.
        result: what a call gives a copy of, where its arguments are float64 arrays of the right
            sizes, all finite, and the health is good.
        otherwise: is called with the same arguments where anything else is the case; what it gives,
            the call gives.
    """
    code, table = _code(library, name, arrays)
    module, health = _binding(), arrays[-1]
    if module is None:
        return functools.partial(
            _checked, code, ctypes.byref(table), buffers, health, result, otherwise
        )
    address = ctypes.cast(code, ctypes.c_void_p).value
    parts = tuple((array.ctypes.data, array.size) for array in buffers)
    call: Callable[..., Any] = module.bind_checked(
        address,
        ctypes.addressof(table),
        health.ctypes.data,
        SMALLEST_PIVOT,
        CONVERGED,
        np.ndarray,
        result,
        otherwise,
        (code, table, tuple(arrays)),
        parts,
    )
    return call


def counted_call(
    library: Path, name: str, sizes: Sequence[int], n_inputs: int, block: int
) -> Callable[..., int | None] | None:
    """Return a call of a batch, `call(first, count, n, *arrays)`; None where the extension module cannot be made.

    The call runs samples `first` to `first + count` of n and returns the number of those that
    failed. It returns None, and runs nothing, unless all arrays are plain float64 arrays (n, size):
    inputs contiguous or one row seen as many, outputs contiguous and writable. Other threads of
    Python run in the meantime.

    Args:
        library, name: the machine code, `size_t name(size_t n, double *const *arrays, const size_t
            *steps)`.
        sizes: numbers per sample of each array.
        n_inputs: how many of the arrays are inputs, the first ones.
        block: samples of the largest block of lanes, for which a row that all samples share is laid
            out.
    """
    module = _binding()
    if module is None or len(sizes) > MOST_ARRAYS:
        return None
    code = ctypes.CDLL(str(library))[name]
    address = ctypes.cast(code, ctypes.c_void_p).value
    call: Callable[..., int | None] = module.bind_counted(
        address, np.ndarray, code, tuple(sizes), n_inputs, block
    )
    return call


def _code(library: Path, name: str, arrays: Sequence[np.ndarray]) -> tuple[Any, Any]:
    """The machine code, and the table of pointers that it takes."""
    pointer = ctypes.POINTER(ctypes.c_double)
    table = (pointer * len(arrays))()
    for i, array in enumerate(arrays):
        # a pointer made in this way keeps the array alive, and the table keeps the pointers
        if array.size:
            table[i] = ctypes.cast((ctypes.c_double * array.size).from_buffer(array), pointer)
    # Without a release of the interpreter's lock, which would cost as much as the code that runs
    # under it.
    code = ctypes.PyDLL(str(library))[name]
    code.restype = None
    return code, table


def _checked(
    code: Any,
    table: Any,
    buffers: Sequence[np.ndarray],
    health: np.ndarray,
    result: np.ndarray,
    otherwise: Callable[..., Any],
    *arguments: Any,
) -> Any:
    if len(arguments) != len(buffers):
        return otherwise(*arguments)
    for array, argument in zip(buffers, arguments, strict=True):
        if (
            type(argument) is not np.ndarray
            or argument.dtype != np.float64
            or argument.shape != array.shape
        ):
            return otherwise(*arguments)
        array[:] = argument
        # of finite numbers too, beyond all use, if they are huge
        if not math.isfinite(array.sum()):
            return otherwise(*arguments)
    code(table)
    least, pivot, residual, _ = health.tolist()
    if least >= 0 and pivot > SMALLEST_PIVOT and abs(residual) < CONVERGED:
        return result.copy()
    return otherwise(*arguments)


def _called(code: Any, table: Any, inputs: np.ndarray, state: Any = None) -> None:
    if state is not None:
        if is_masked(state):
            raise TypeError("a state cannot be a masked array")
        view = memoryview(state)
        if view.format != "d" or not view.c_contiguous or view.nbytes > inputs.nbytes:
            raise ValueError(f"a state is at most {inputs.size} float64 numbers")
        memoryview(inputs).cast("B")[: view.nbytes] = view.cast("B")
    code(table)


@functools.cache
def _binding() -> ModuleType | None:
    """The extension module, or None where there is no compiler, no header, or no room."""
    headers, source = (
        Path(sysconfig.get_path("include")),
        c_file("tauloop.compiler.c.calling", "caller.c"),
    )
    parts = (source, sys.version, str(headers), *compiler_stamp(), *processor_stamp())
    module = (
        cache_folder() / f"caller-{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:24]}.so"
    )
    with suppress(ImportError, OSError):
        if is_intact(module):
            return _loaded(module)
    with suppress(ImportError, OSError, EngineError, InputError):  # missing, or damaged
        return _loaded(_made(source, module, headers))
    return None


def _made(source: str, module: Path, headers: Path) -> Path:
    """Compile the module, and keep it under a name that is known without starting the compiler."""
    compiler = find_compiler()
    if compiler is None or not (headers / "Python.h").exists():
        raise ImportError("there is no compiler, or there are no headers of Python")
    library = build(source, compiler, further=("-std=c11", f"-I{headers}"))
    return keep(library, module)


def _loaded(library: Path) -> ModuleType:
    loader = importlib.machinery.ExtensionFileLoader(_MODULE, str(library))
    module = importlib.util.module_from_spec(
        importlib.machinery.ModuleSpec(_MODULE, loader, origin=str(library))
    )
    loader.exec_module(module)
    return module
