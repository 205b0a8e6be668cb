"""Calls of machine code from Python by a small extension module, which is faster than ctypes.

The system's C compiler compiles the module once, together with the first machine code, if Python's
headers are installed. Without the module, ctypes makes the same calls, about 0.2 us slower. The
module uses only Python's stable interface.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.machinery
import importlib.util
import math
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from tauloop.common.errors import EngineError, InputError
from tauloop.compiler.c.calling.cache import cache_folder, is_intact, store_with_checksum
from tauloop.compiler.c.calling.compiler import (
    build,
    compiler_stamp,
    find_compiler,
    processor_stamp,
)
from tauloop.compiler.c.calling.library import Library
from tauloop.compiler.c.printing.c_helpers import c_file
from tauloop.compiler.limits import CONVERGED, SMALLEST_PIVOT
from tauloop.equations.ports import is_masked

#: Runs the machine code. An argument with contiguous float64 numbers (not a masked array, whose
#: mask would be ignored) is first copied to the front of the inputs.
Call = Callable[..., None]

_MODULE = "tauloop_caller"
#: A function of a table of pointers, called without releasing the interpreter's lock.
_LOCKED = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
#: Maximum number of arrays in a batch call of the extension module, as in `caller.c`.
MAX_ARRAYS = 64


def prepare() -> None:
    """Compile the extension module, if possible, so that later calls need not wait for it."""
    _binding()


def bound_call(
    library: Library, name: str, arrays: Sequence[np.ndarray], inputs: np.ndarray
) -> Call:
    """Return a call of `void name(double *const *arrays)` that keeps its arrays alive.

    Args:
        library, name: the machine code.
        arrays: float arrays in the order of the pointer table; empty ones have no address.
        inputs: array to whose front a state is copied.
    """
    code, table = _code(library, name, arrays)
    module = _binding_for(library)
    if module is None:
        return functools.partial(_called, code, ctypes.byref(table), inputs)
    kept = (code, table, inputs, library)
    call: Call = module.bind(
        library.address(name),
        ctypes.addressof(table),
        inputs.ctypes.data,
        inputs.size,
        np.ndarray,
        kept,
    )
    return call


class CallArrays(NamedTuple):
    """Arrays of a call of one sample.

    Attributes:
        arrays: arrays as in `bound_call`; the last one receives the diagnostics.
        buffers: those that receive the arguments of a call.
        result: array whose copy the call returns.
    """

    arrays: Sequence[np.ndarray]
    buffers: Sequence[np.ndarray]
    result: np.ndarray


def checked_call(
    library: Library,
    name: str,
    new_arrays: Callable[[], CallArrays],
    otherwise: Callable[..., Any],
) -> Callable[..., Any]:
    """Return a call of one sample, `call(*given)`, that checks the inputs and the diagnostics.

    Several threads may call it. The call returns a copy of the result if its arguments are finite
    float64 arrays of the right sizes and the diagnostics pass.

    Args:
        library, name: the machine code.
        new_arrays: returns new arrays of the call.
        otherwise: function that is called with the same arguments in all other cases; the call
            returns its result.
    """

    def by_ctypes() -> Callable[..., Any]:
        bound = new_arrays()
        code, table = _code(library, name, bound.arrays)
        return functools.partial(_checked, Lock(), code, table, bound, otherwise)

    def by_module() -> Callable[..., Any]:
        module = _binding_for(library)
        if module is None:
            return by_ctypes()
        arrays, buffers, result = new_arrays()
        code, table = _code(library, name, arrays)
        parts = tuple((array.ctypes.data, array.size) for array in buffers)
        # The call of the module does not release the interpreter's lock.
        call: Callable[..., Any] = module.bind_checked(
            library.address(name),
            ctypes.addressof(table),
            arrays[-1].ctypes.data,
            SMALLEST_PIVOT,
            CONVERGED,
            np.ndarray,
            result,
            otherwise,
            (code, table, tuple(arrays), library),
            parts,
        )
        return call

    return by_module() if library.path is not None else _FirstCalls(by_ctypes(), by_module)


#: Number of calls of code in memory before the extension module is used. Finding the module takes
#: as long as it saves in this number of calls.
FIRST_CALLS = 1000


class _FirstCalls:
    """A call of code in memory that is replaced by a faster call if it is used often."""

    __slots__ = ("call", "faster", "remaining")

    def __init__(self, call: Callable[..., Any], faster: Callable[[], Callable[..., Any]]) -> None:
        self.call = call
        self.faster: Callable[[], Callable[..., Any]] | None = faster
        self.remaining = FIRST_CALLS

    def __call__(self, *arguments: Any) -> Any:
        faster = self.faster
        if faster is not None:
            if self.remaining <= 0:  # threads may count below zero
                self.faster = None
                self.call = faster()
            self.remaining -= 1
        return self.call(*arguments)


def counted_call(
    library: Library, name: str, sizes: Sequence[int], n_inputs: int, block: int
) -> Callable[..., int | None] | None:
    """Return a call of a batch, `call(first, count, n, *arrays)`; None without the module.

    The call runs samples `first` to `first + count` of n and returns the number of failed samples.
    It runs nothing and returns None unless all arrays are plain float64 arrays (n, size). Inputs
    must be contiguous or views of one repeated row, and outputs contiguous and writable. Other
    Python threads can run during the call.

    Args:
        library, name: the machine code, `size_t name(size_t n, double *const *arrays, const size_t
            *steps)`.
        sizes: number of values per sample of each array.
        n_inputs: number of arrays that are inputs; these come first.
        block: number of samples in the largest block of lanes; a row that all samples share is
            repeated this many times.
    """
    module = _binding_for(library)
    if module is None or len(sizes) > MAX_ARRAYS:
        return None
    call: Callable[..., int | None] = module.bind_counted(
        library.address(name), np.ndarray, library, tuple(sizes), n_inputs, block
    )
    return call


def _code(library: Library, name: str, arrays: Sequence[np.ndarray]) -> tuple[Any, Any]:
    """Return the machine code and the table of its pointers."""
    pointer = ctypes.POINTER(ctypes.c_double)
    table = (pointer * len(arrays))()
    for i, array in enumerate(arrays):
        # this pointer keeps the array alive, and the table keeps the pointers
        if array.size:
            table[i] = ctypes.cast((ctypes.c_double * array.size).from_buffer(array), pointer)
    # The interpreter's lock is not released, which would take as long as the machine code.
    code: Any = _LOCKED(library.address(name))
    code.library = library  # keep the library loaded as long as its code
    return code, table


def _checked(
    lock: Lock,
    code: Any,
    table: Any,
    bound: CallArrays,
    otherwise: Callable[..., Any],
    *arguments: Any,
) -> Any:
    """Call machine code; see `checked_call`."""
    with lock:  # the arrays are those of all threads
        result = _run_checked(code, table, bound, arguments)
    return otherwise(*arguments) if result is None else result


def copy_arguments(arguments: Sequence[object], buffers: Sequence[np.ndarray]) -> bool:
    """Copy arguments into buffers; return False unless they are float64 arrays of these shapes."""
    if len(arguments) != len(buffers):
        return False
    for buffer, argument in zip(buffers, arguments, strict=True):
        if (
            type(argument) is not np.ndarray
            or argument.dtype != np.float64
            or argument.shape != buffer.shape
        ):
            return False
        buffer[:] = argument
    return True


def _run_checked(
    code: Any, table: Any, bound: CallArrays, arguments: tuple[Any, ...]
) -> np.ndarray | None:
    """Return a copy of the result; None if a check of the arguments or diagnostics fails."""
    if not copy_arguments(arguments, bound.buffers):
        return None
    for array in bound.buffers:
        # a sum of finite but very large numbers may overflow too
        if not math.isfinite(array.sum()):
            return None
    code(ctypes.byref(table))
    least, pivot, residual, _ = bound.arrays[-1].tolist()
    is_sound = least >= 0 and pivot > SMALLEST_PIVOT and abs(residual) < CONVERGED
    return bound.result.copy() if is_sound else None


def _called(code: Any, table: Any, inputs: np.ndarray, state: Any = None) -> None:
    if state is not None:
        if is_masked(state):
            raise TypeError("a state cannot be a masked array")
        view = memoryview(state)
        if view.format != "d" or not view.c_contiguous or view.nbytes > inputs.nbytes:
            raise ValueError(
                f"a state must be a contiguous float64 array of at most {inputs.size} numbers"
            )
        memoryview(inputs).cast("B")[: view.nbytes] = view.cast("B")
    code(table)


def _binding_for(library: Library) -> ModuleType | None:
    """Return the extension module, or None; code in memory does not wait for its compilation."""
    return _binding() if library.path is not None else _binding(is_made=False)


@functools.cache
def _binding(*, is_made: bool = True) -> ModuleType | None:
    """Return the extension module, or None without a compiler, headers or disk space.

    Args:
        is_made: whether to compile the module if it is not in the cache.
    """
    import hashlib  # the import takes 2 ms, and the first calls of code in memory do not need it

    source = c_file("tauloop.compiler.c.calling", "caller.c")
    parts = (source, sys.version, sys.base_prefix, *compiler_stamp(), *processor_stamp())
    module = (
        cache_folder() / f"caller-{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:24]}.so"
    )
    with suppress(ImportError, OSError):
        if is_intact(module):
            return _loaded(module)
    if is_made:
        with suppress(ImportError, OSError, EngineError, InputError):  # missing, or damaged
            return _loaded(_made(source, module))
    return None


def _made(source: str, module: Path) -> Path:
    """Compile the module under a name that does not depend on the compiler, and return it."""
    import sysconfig  # the import takes 5 ms, and a module from the cache does not need it

    headers = Path(sysconfig.get_path("include"))
    compiler = find_compiler()
    if compiler is None or not (headers / "Python.h").exists():
        raise ImportError("there is no compiler, or Python's headers are not installed")
    library = build(source, compiler, further=("-std=c11", f"-I{headers}"))
    return store_with_checksum(library, module)


def _loaded(library: Path) -> ModuleType:
    loader = importlib.machinery.ExtensionFileLoader(_MODULE, str(library))
    module = importlib.util.module_from_spec(
        importlib.machinery.ModuleSpec(_MODULE, loader, origin=str(library))
    )
    loader.exec_module(module)
    return module
