"""The system's C compiler, and libraries named by their content.

The name of a library is the hash of its source, the compiler, the flags and the processor's
features. The library is written under a temporary name and renamed (`cache`). So two processes may
build the same library at once, and a killed compiler leaves no broken library. A library at a given
path never changes, because loading a changed library again would return the old code.
"""

from __future__ import annotations

import errno
import functools
import os
import platform
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tauloop.common.errors import EngineError, InputError
from tauloop.common.execution.interrupts import deferred
from tauloop.common.execution.processes import lifeline, tied_to_process
from tauloop.common.files import TEMPORARY_REMEDY
from tauloop.common.records import dataclass
from tauloop.compiler.c.calling.cache import (
    cache_folder,
    ensure_private_folder,
    is_intact,
    scratch,
    storage_remedy,
    store_with_checksum,
)

if TYPE_CHECKING:
    import subprocess

COMPILERS = ("cc", "gcc", "clang")
#: -O2 with vectorized loops gives code as fast as -O3 does, and compiles faster. Without
#: -ffast-math, sums and products keep their order. -fno-math-errno and -fno-trapping-math allow
#: vectorized loops with square roots and selections. -ffp-contract=fast rounds a product and a sum
#: once (7 to 20 % faster, and not less accurate).
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
#: Flags for any processor of the same architecture, with the same rounding on all of them.
PORTABLE_FLAGS = (
    *(flag for flag in FLAGS if not flag.startswith(("-march", "-ffp"))),
    "-ffp-contract=off",
)
#: By default, gcc spends half of its time on optimizing addresses and reusing values of earlier
#: iterations, although these loops have only two iterations. The flags avoid this.
GCC_FLAGS = ("-fno-predictive-commoning", "--param", "iv-max-considered-uses=50")
#: Flags for kernels in pieces: gcc schedules instructions before register allocation (RCID's
#: forward dynamics takes 72 instead of 85 ns, gantry_tau_5dof's inverse dynamics 117 instead of
#: 130 ns). With 16 registers, they make kernels in one piece slower (RCID's inverse dynamics 48
#: instead of 43 ns), and code for single samples too.
GCC_LANE_FLAGS = ("-fschedule-insns", "-fsched-pressure")
#: Use the full width of AVX-512 registers; by default compilers use half of it.
WIDE_FLAGS = ("-mprefer-vector-width=512",)
#: Number of concurrent compilers per core; more than one keeps all cores busy, as compile times
#: vary.
COMPILERS_PER_CORE = 3
#: Time limit for one file, s; a machine with large Newton blocks takes seconds.
TIMEOUT = 600.0
#: Time limit for a compiler to print its version, s.
VERSION_TIMEOUT = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiler:
    """A C compiler.

    Attributes:
        path: path of the executable.
        identity: version of the compiler and the features that ``-march=native`` enables.
        flags: command-line flags.
        timeout: time limit for one file, s.
    """

    path: str
    identity: str
    flags: tuple[str, ...] = FLAGS
    timeout: float = TIMEOUT

    @property
    def is_gcc(self) -> bool:
        """Whether it is GNU's compiler; other compilers only define GNU's macro."""
        return "__GNUC__" in self.identity and "__clang__" not in self.identity


def compiler_path() -> str | None:
    """Return the path of the first C compiler on the search path, or None."""
    if os.name != "posix":
        import shutil

        return next(filter(None, map(shutil.which, COMPILERS)), None)
    # The import of `shutil` takes longer than calling a function from the cache.
    folders = os.get_exec_path() if os.environ.get("PATH") != "" else []
    paths = (os.path.join(folder, name) for name in COMPILERS for folder in folders)
    return next(filter(_is_program, paths), None)


def _is_program(path: str) -> bool:
    """Return whether a file may be executed."""
    return os.access(path, os.X_OK) and not os.path.isdir(path)


def find_compiler() -> Compiler | None:
    """Return the first C compiler on the search path with its identity, or None."""
    path = compiler_path()
    if path is None:
        return None
    return Compiler(path=path, identity=_identity(path, Path(path).stat().st_mtime_ns))


def file_stamp(path: Path | str) -> str:
    """Return size, modification time, change time and inode number of a file as text.

    Writing changes the modification time. Resetting the modification time changes the third value.
    """
    state = os.stat(path)
    return f"{state.st_size} {state.st_mtime_ns} {state.st_ctime_ns} {state.st_ino}"


def compiler_stamp() -> list[str]:
    """Return the identity of the compiler without starting it."""
    path = compiler_path()
    return [] if path is None else [path, file_stamp(os.path.realpath(path))]


def processor_stamp() -> list[str]:
    """Return the properties of the processor on which ``-march=native`` depends.

    These are the features of the first processor in the system's list, or the machine type if the
    system has no such list.
    """
    try:
        with Path("/proc/cpuinfo").open(encoding="ascii", errors="replace") as lines:
            first = []
            for line in lines:
                if not line.strip():
                    break
                if not line.startswith(
                    ("cpu MHz", "bogomips", "processor", "apicid", "core id", "BogoMIPS")
                ):
                    first.append(line)
            return first
    except OSError:
        return [platform.node(), platform.machine(), platform.processor()]


@functools.cache
def _identity(path: str, changed: int) -> str:
    """Return the compiler's version and the macros that -march=native defines.

    Args:
        path: the compiler; the result is cached, because two programs have to start.
        changed: time of the compiler's last change, so that a new compiler is checked again.
    """
    version = _output([path, "--version"])
    features = _output([path, "-march=native", "-dM", "-E", "-x", "c", os.devnull])
    return version + features


def _output(command: list[str]) -> str:
    import subprocess  # the import takes milliseconds, and code in memory does not need it

    try:
        return run_program(command, VERSION_TIMEOUT).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""


def run_program(
    command: Sequence[str], timeout: float, folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program and return its output; an interruption also ends its child processes.

    Raises:
        OSError: the program cannot be started.
        subprocess.TimeoutExpired: the program exceeds the timeout, s.
    """
    import subprocess

    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        cwd=folder,
        start_new_session=True,
    )
    try:
        output, errors = process.communicate(timeout=timeout)
    except BaseException:
        _end(process)
        raise
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


def _end(process: subprocess.Popen[str]) -> None:
    """End a process group: a program with all its child processes."""
    import signal

    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def build(
    source: str | Sequence[str],
    compiler: Compiler,
    *,
    threads: bool = False,
    further: Sequence[str] = (),
    folder: Path | None = None,
) -> Path:
    """Compile a source to a shared library, unless it is in the cache.

    Args:
        source: one C text, or several that are compiled in parallel. Then the last text contains
            the functions of one sample, and the others contain the kernel: one text for a kernel in
            one piece, more for a kernel in pieces (`c_units`).
        compiler: C compiler with its options.
        threads: whether to enable OpenMP's pragmas.
        further: additional flags.
        folder: folder of the cache; by default the user's cache.

    Returns:
        Path of the library.

    Raises:
        EngineError: the folder cannot be written, or the compiler fails or exceeds the time limit.
    """
    sources = [source] if isinstance(source, str) else list(source)
    is_wide = compiler.flags == FLAGS and "__AVX512F__" in compiler.identity
    flags = (
        *compiler.flags,
        *(GCC_FLAGS if compiler.is_gcc else ()),
        *(WIDE_FLAGS if is_wide else ()),
        *(("-fopenmp",) if threads else ()),
        *further,
    )
    lane_flags = GCC_LANE_FLAGS if compiler.is_gcc and (is_wide or len(sources) > 2) else ()
    import hashlib  # the import takes 2 ms, and code in memory does not need it

    key = hashlib.sha256(
        "\0".join((*sources, compiler.identity, *flags, *lane_flags)).encode()
    ).hexdigest()[:24]
    folder = cache_folder() if folder is None else folder
    library = folder / f"{key}.so"
    try:
        if is_intact(library):
            return library
        with scratch(ensure_private_folder(folder)) as temporary:
            result = temporary / f"{key}.so"
            texts = [temporary / f"{key}_{i}.c" for i in range(len(sources))]
            for path, text in zip(texts, sources, strict=True):
                path.write_text(text, encoding="ascii")
            _compile(compiler, flags, lane_flags, texts, result)
            return store_with_checksum(result, library)
    except InputError as error:
        problem = error.problems[0]
        raise _unwritable(folder, problem.what, problem.remedy) from error
    except OSError as error:
        what = f"cannot be stored: {error.strerror or error}"
        raise _unwritable(folder, what, storage_remedy(error)) from error


def build_without_cache(
    source: str,
    compiler: Compiler,
    *,
    further: Sequence[str] = (),
    folder: Path | None = None,
) -> Path:
    """Compile a source like `build`, even if the cache cannot be written.

    In that case the library is in a temporary folder, which this process removes when it ends.

    Args:
        source: C text.
        compiler: C compiler with its options.
        further: additional flags.
        folder: folder of the cache; by default the user's cache.

    Returns:
        Path of the library.

    Raises:
        EngineError: neither folder can be written, or the compiler fails.
    """
    try:
        return build(source, compiler, further=further, folder=folder)
    except CodeCacheError as error:
        try:
            temporary = _temporary_cache()
        except OSError:
            raise error from None
    return build(source, compiler, further=further, folder=temporary)


@functools.cache
def _temporary_cache() -> Path:
    """Return a folder that exists until this process ends.

    Raises:
        OSError: no folder for temporary files can be written.
    """
    # needed only without a cache
    import atexit
    import shutil
    import tempfile

    place = Path(tempfile.mkdtemp(prefix="tauloop-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return place


class CodeCacheError(EngineError):
    """Compiled code cannot be stored: its folder cannot be written, or a disk has no free space."""


def _unwritable(folder: Path, what: str, remedy: str) -> CodeCacheError:
    without = "without compiled code, calculations are interpreted, which is tens of times slower"
    return CodeCacheError.of(str(folder), f"compiled code {what}", f"{remedy}; {without}")


def _compile(
    compiler: Compiler,
    flags: Sequence[str],
    lane_flags: Sequence[str],
    texts: Sequence[Path],
    result: Path,
) -> None:
    """Compile one file to a library; or several in parallel to object files, and link these."""
    command = [compiler.path, *flags]
    if len(texts) > 1:
        objects = [path.with_suffix(".o") for path in texts]
        compile_only = [compiler.path, *(flag for flag in flags if flag != "-shared"), "-c"]
        commands = []
        for i, (text, object_file) in enumerate(zip(texts, objects, strict=True)):
            # the last text contains the functions of one sample
            file_flags = lane_flags if i < len(texts) - 1 else ()
            commands.append([*compile_only, *file_flags, str(text), "-o", str(object_file)])
        _run(commands, compiler.timeout)
        texts = objects
    _run([[*command, *map(str, texts), "-o", str(result), "-lm"]], compiler.timeout)


def _run(commands: Sequence[list[str]], timeout: float) -> None:
    """Run compilers in parallel; an interruption also ends their child processes."""
    waiting = deque(commands)
    running: deque[tuple[list[str], subprocess.Popen[str]]] = deque()
    try:
        while waiting or running:
            while waiting and len(running) < COMPILERS_PER_CORE * (os.cpu_count() or 1):
                command = waiting.popleft()
                with deferred():
                    running.append((command, _started(command)))
            _require_success(*running[0], timeout)
            running.popleft()
    finally:
        for _, process in running:
            _end(process)


def _started(command: list[str]) -> subprocess.Popen[str]:
    import shutil
    import subprocess

    try:
        if shutil.which(command[0]) is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        return subprocess.Popen(
            tied_to_process(command),
            stdin=lifeline(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        what = f"the compiler cannot be started: {error.strerror or error}"
        raise EngineError.of(command[0], what, "run interpreted") from error


def _require_success(
    command: Sequence[str], process: subprocess.Popen[str], timeout: float
) -> None:
    """Wait for a compiler and raise an error if it failed."""
    import shlex
    import subprocess

    compiler = command[0]
    try:
        _, output = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        what = f"the compiler was stopped after {timeout:g} s: {shlex.join(command)}"
        raise EngineError.of(compiler, what, _MORE_TIME) from None
    if process.returncode:
        reason = " ".join(output.split())[:500] or f"status {process.returncode}"
        # a signal ended the compiler, and the output does not explain it
        if process.returncode < 0:
            reason = f"signal {-process.returncode}"
        what = f"the compiler failed: {reason}"
        if any(os.strerror(number) in output for number in _NO_SPACE):
            raise CodeCacheError.of(compiler, what, TEMPORARY_REMEDY)
        raise EngineError.of(compiler, what, "run interpreted")


#: Errors of a disk without free space.
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
_MORE_TIME = (
    "if this command also hangs in a terminal, install another compiler; if it is slow, allow more "
    "time: Model(machine, evaluator=tl.compiler.c.Compiled(timeout=1800)), or run interpreted: "
    "tl.compiler.c.Interpreted()"
)
