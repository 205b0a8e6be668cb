"""The system's C compiler, and a cache of what it has made, named by content.

A library is named by the hash of its source, the compiler, the flags and the processor's features, written beside and
then renamed: two processes may build the same one at once, a killed compiler leaves nothing, and a library at a
given path never changes (loading a changed one again would give the old code).
"""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import signal
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from tauloop.errors import EngineError, Problem

COMPILERS = ("cc", "gcc", "clang")
#: -O2 with vectorised loops gives the same speed as -O3 here, and is sooner done.
#: No fast-math: sums and products keep their order. These flags let loops with sqrt and select be vectorised, and a
#: product and a sum be rounded once instead of twice (7 to 20 % faster, and no less accurate).
FLAGS = (
    *(
        "-std=c99",
        "-O2",
        "-ftree-vectorize",
        "-march=native",
        "-fno-math-errno",
        "-fno-trapping-math",
        "-ffp-contract=fast",
    ),
    *("-fPIC", "-shared"),
)
#: Compilers prefer half of AVX-512's registers unless told otherwise.
WIDE_FLAGS = ("-mprefer-vector-width=512",)
#: Longest time for one file, s; a machine with large Newton blocks takes seconds.
TIMEOUT = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiler:
    """A C compiler.

    Attributes:
        path: the executable.
        identity: what it prints of its version and of the features that ``-march=native`` stands for.
    """

    path: str
    identity: str


def find_compiler() -> Compiler | None:
    """The first C compiler on the path, or None."""
    for name in COMPILERS:
        path = shutil.which(name)
        if path is not None:
            return Compiler(path=path, identity=_identity(path, Path(path).stat().st_mtime_ns))
    return None


@functools.cache
def _identity(path: str, changed: int) -> str:
    """Version, and the resolved meaning of -march=native (an empty file is preprocessed for its macros).

    Args:
        path: the compiler; asked once in a process, for two programs have to start.
        changed: when it was written, so that a newer one is asked again.
    """
    version = _output([path, "--version"])
    features = _output([path, "-march=native", "-dM", "-E", "-x", "c", os.devnull])
    return version + features


def _output(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout


def cache_folder() -> Path:
    """Where compiled libraries are kept: the user's cache folder."""
    return Path(platformdirs.user_cache_dir("tauloop"))


def build(
    source: str, compiler: Compiler, *, threads: bool = False, folder: Path | None = None, timeout: float = TIMEOUT
) -> Path:
    """Compile a source to a shared library, or find it in the cache.

    Args:
        source: C text.
        compiler: the compiler.
        threads: whether OpenMP's pragmas shall work.
        folder: the cache; the user's own without it.
        timeout: longest time for the compiler, s.

    Returns:
        Path of the library.

    Raises:
        EngineError: the folder cannot be written, or the compiler fails; with what it said.
    """
    flags = (
        *FLAGS,
        *(WIDE_FLAGS if "__AVX512F__" in compiler.identity else ()),
        *(("-fopenmp",) if threads else ()),
    )
    key = hashlib.sha256("\0".join((source, compiler.identity, *flags)).encode()).hexdigest()[:24]
    folder = cache_folder() if folder is None else folder
    library = folder / f"{key}.so"
    try:
        if library.exists():
            return library
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".build-") as scratch:
            text, result = Path(scratch) / f"{key}.c", Path(scratch) / f"{key}.so"
            text.write_text(source, encoding="ascii")
            _compile([compiler.path, *flags, str(text), "-o", str(result), "-lm"], timeout)
            result.replace(library)
    except OSError as error:
        raise EngineError(
            Problem(
                where=str(folder),
                what=f"compiled code cannot be written: {error.strerror or error}",
                remedy="make room, or allow writing there; without it everything runs interpreted, "
                "some tens of times slower",
            )
        ) from error
    return library


def _compile(command: list[str], timeout: float) -> None:
    """Run the compiler; whatever ends the wait early ends it with all its parts (the driver starts others)."""
    try:
        started = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        what = f"the compiler cannot be started: {error.strerror or error}"
        raise EngineError(Problem(where=command[0], what=what, remedy="run interpreted")) from error
    with started as process:
        try:
            _, said = process.communicate(timeout=timeout)
        except BaseException as error:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            what = f"the compiler took more than {timeout:g} s"
            raise EngineError(Problem(where=command[0], what=what, remedy="run interpreted")) from None
    if process.returncode:
        end = f"signal {-process.returncode}" if process.returncode < 0 else f"status {process.returncode}"
        what = f"the compiler failed: {' '.join(said.split())[:500] or end}"
        raise EngineError(Problem(where=command[0], what=what, remedy="run interpreted"))
