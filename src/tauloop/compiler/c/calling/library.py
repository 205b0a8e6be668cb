"""Machine code in Python: C text is compiled once, loaded, and called with numbers and arrays.

Everything that Tauloop knows of ctypes, and of computers without a C compiler, stands here and in
`caller`.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tauloop.common.errors import EngineError
from tauloop.compiler.c.calling.compiler import Compiler, build, find_compiler

#: The process that has imported this; any other is a fork of it.
_PROCESS = os.getpid()
#: Arguments and results of C functions, by letter: a size, an int, a long, a double, the address of
#: an array.
_KINDS = {
    "n": ctypes.c_size_t,
    "i": ctypes.c_int,
    "l": ctypes.c_long,
    "d": ctypes.c_double,
    "*": ctypes.c_void_p,
    "": None,
}


def is_forked() -> bool:
    """Whether this process is a fork of the one that imported Tauloop."""
    return os.getpid() != _PROCESS


def require_compiler() -> Compiler:
    """The system's C compiler.

    Raises:
        EngineError: there is none.
    """
    compiler = find_compiler()
    if compiler is None:
        what = "none was found (cc, gcc, clang)"
        raise EngineError.of("C compiler", what, "install one")
    return compiler


class Library:
    """A library of machine code."""

    def __init__(self, path: Path) -> None:
        """Load one that is there.

        Raises:
            EngineError: it cannot be loaded.
        """
        self.path = path
        try:
            self._code = ctypes.CDLL(str(path))
        except OSError as error:
            remedy = (
                "keep the cache where programs may be run; without it everything runs interpreted"
            )
            what = f"compiled code cannot be loaded: {error}"
            raise EngineError.of(str(path), what, remedy) from error

    @classmethod
    def made(
        cls,
        source: str | Sequence[str],
        compiler: Compiler | None = None,
        *,
        threads: bool = False,
        folder: Path | None = None,
    ) -> Library:
        """Compile C text, or find it in the cache; what is damaged there has been made anew (`cache.is_intact`).

        Args:
            source: one or more units.
            compiler: the system's without it.
            threads: whether it is compiled with OpenMP.
            folder: the cache; the user's own without it.

        Raises:
            EngineError: there is no compiler, it fails, or the library cannot be loaded.
        """
        return cls(build(source, compiler or require_compiler(), threads=threads, folder=folder))

    def function(self, name: str, arguments: str, result: str = "") -> Callable[..., Any]:
        """A C function, called with numbers and with contiguous arrays, whose addresses it gets.

        Args:
            name: of the function.
            arguments: a letter for each: n size_t, i int, l long, d double, * array.
            result: likewise; nothing without it.
        """
        code = getattr(self._code, name)
        code.argtypes = [_KINDS[letter] for letter in arguments]
        code.restype = _KINDS[result]

        def call(*arguments: Any) -> Any:
            return code(
                *(address(value) if isinstance(value, np.ndarray) else value for value in arguments)
            )

        return call


#: Stands for an array without numbers.
_NUMBER = ctypes.c_double()


def address(array: np.ndarray) -> int:
    """Where the numbers of an array lie; of one that may be written to in a third of NumPy's own time."""
    if not array.size:
        return ctypes.addressof(_NUMBER)
    flags = array.flags
    if array.dtype == np.float64 and flags.c_contiguous and flags.writeable:
        return ctypes.addressof(ctypes.c_double.from_buffer(array))
    return array.ctypes.data


_LAW = ctypes.CFUNCTYPE(
    None, ctypes.c_double, ctypes.POINTER(ctypes.c_double), ctypes.POINTER(ctypes.c_double)
)


class Callback:
    """A function of Python as C calls it: (time, state, acting), which fills in the last; what it raises is kept."""

    def __init__(
        self, law: Callable[[float, np.ndarray, np.ndarray], None] | None, n: int, n_acting: int
    ) -> None:
        """Wrap a law of n states and n_acting forces; none is a null pointer."""
        self._error: Exception | None = None

        def call(time: float, state: Any, acting: Any) -> None:
            y, filled = (
                np.ctypeslib.as_array(state, (n,)),
                np.ctypeslib.as_array(acting, (n_acting,)),
            )
            try:
                law(time, y, filled)  # type: ignore[misc]
            except Exception as error:
                self._error = self._error or error
                filled[:] = np.nan

        self._law = _LAW(call) if law is not None else _LAW()
        self.pointer = ctypes.cast(self._law, ctypes.c_void_p)

    def raise_error(self) -> None:
        """Raise what the law raised, for C could not pass it on."""
        if self._error is not None:
            raise self._error
