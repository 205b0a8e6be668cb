"""Compilation of CUDA source by NVRTC, which works without a GPU, and its reports on kernels."""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import hashlib
import importlib.util
import re
from collections.abc import Sequence
from pathlib import Path

from tauloop.common.errors import EngineError, InputError
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.compiler.c.calling.cache import (
    cache_folder,
    ensure_private_folder,
    is_intact,
    scratch,
    storage_remedy,
    store_with_checksum,
)

#: Default architecture without a device: Hopper (H100, H200).
ARCHITECTURE = "sm_90"
#: The source is C that is also valid C++; functions are device functions unless marked as kernels.
#: --fmad=true fuses a product and a sum, as -ffp-contract=fast does on the host.
NVRTC_FLAGS = (
    "--device-as-default-execution-space",
    "--std=c++20",
    "--fmad=true",
    "--ptxas-options=-v",
)
INSTALL = "pip install 'tauloop[gpu]'"
_ARCHITECTURE = re.compile(r"sm_[0-9]{2,3}[a-z]?")
_KERNEL = re.compile(
    r"Compiling entry function '(?P<name>\w+)'(?P<report>.*?Used (?P<registers>\d+) registers.*)"
)
_STACK = re.compile(r"(\d+) bytes (?:cumulative stack size|stack frame)")
_SPILLED = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")
# The constants describe a multiprocessor of the data-center architectures since Ampere.
#: Number of registers.
REGISTERS = 65536
#: Maximum number of resident threads.
THREADS = 2048
#: Maximum number of resident blocks.
MAX_BLOCKS = 32
#: Number of registers that are allocated at a time.
REGISTER_UNIT = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelFigures:
    """Resource usage of a kernel, reported by the compiler.

    Attributes:
        name: name of the kernel.
        registers: 32-bit registers per thread.
        stack: local memory per thread in bytes, including called functions.
        spill_stores, spill_loads: register spills per thread in bytes, including called functions.
    """

    name: str
    registers: int
    stack: int
    spill_stores: int
    spill_loads: int

    def occupancy(self, threads: int) -> float:
        """Return the occupancy of a multiprocessor for this block size, limited by registers."""
        warps = -(-threads // 32)
        registers_per_warp = -(-self.registers * 32 // REGISTER_UNIT) * REGISTER_UNIT
        blocks = min(REGISTERS // registers_per_warp // warps, THREADS // (32 * warps), MAX_BLOCKS)
        return blocks * warps * 32 / THREADS


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceCode(ReprMixin):
    """Machine code of kernels.

    Attributes:
        path: file in the cache.
        kernels: resource usage of each kernel.
    """

    path: Path
    kernels: tuple[KernelFigures, ...]

    def kernel(self, name: str) -> KernelFigures:
        """Return the resource usage of a kernel."""
        return next(kernel for kernel in self.kernels if kernel.name == name)


def compile_cuda(
    text: str,
    *,
    architecture: str = ARCHITECTURE,
    registers: int | None = None,
    folder: Path | None = None,
) -> DeviceCode:
    """Compile CUDA source, or load the code from the cache.

    The cache key is a hash of source, compiler version and flags.

    Args:
        text: source of the kernels.
        architecture: the processor, such as "sm_90".
        registers: maximum number of registers per thread; by default the compiler chooses it. Fewer
            registers allow more threads at a time but cause spills.
        folder: folder of the cache; by default the user's cache.

    Returns:
        The machine code, with the resource usage of each kernel.

    Raises:
        InputError: the architecture is unknown.
        EngineError: NVRTC is not installed or fails, or the cache cannot be written.
    """
    if not _ARCHITECTURE.fullmatch(architecture):
        raise InputError.of(
            "architecture", f"{architecture!r:.40} is unknown", "use a name such as sm_90"
        )
    compiler = nvrtc()
    limit = () if registers is None else (f"--maxrregcount={registers:d}",)
    options = (f"--gpu-architecture={architecture}", *NVRTC_FLAGS, *limit)
    key = hashlib.sha256("\0".join((text, compiler.version, *options)).encode()).hexdigest()[:24]
    folder = cache_folder() if folder is None else folder
    path, log = folder / f"{key}.cubin", folder / f"{key}.ptxas"
    try:
        if not (is_intact(path) and is_intact(log)):
            image, report = compiler.compile(text, options)
            with scratch(ensure_private_folder(folder)) as place:
                for target, content in ((path, image), (log, report.encode())):
                    (place / target.name).write_bytes(content)
                    store_with_checksum(place / target.name, target)
        return DeviceCode(path=path, kernels=parse_kernel_report(log.read_text(encoding="utf-8")))
    except InputError as error:
        raise EngineError(error.problems) from error
    except OSError as error:
        what = f"device code cannot be stored: {error.strerror or error}"
        raise EngineError.of(str(folder), what, storage_remedy(error)) from error


def parse_kernel_report(log: str) -> tuple[KernelFigures, ...]:
    """Return the resource usage of each kernel, including called functions, from a compiler log."""
    kernels = []
    for part in re.split("(?=Compiling entry function)", " ".join(log.split())):
        if match := _KERNEL.match(part):
            spilled = [
                (int(stores), int(loads)) for stores, loads in _SPILLED.findall(match["report"])
            ]
            stores, loads = (sum(sizes) for sizes in zip(*spilled, strict=True))
            stack = max(int(size) for size in _STACK.findall(match["report"]))
            kernels.append(
                KernelFigures(
                    name=match["name"],
                    registers=int(match["registers"]),
                    stack=stack,
                    spill_stores=stores,
                    spill_loads=loads,
                )
            )
    return tuple(kernels)


class Nvrtc:
    """NVIDIA's run-time compiler."""

    def __init__(self, library: ctypes.CDLL) -> None:
        """Store the library."""
        self._library = library
        major, minor = ctypes.c_int(), ctypes.c_int()
        library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        self.version = f"NVRTC {major.value}.{minor.value}"

    def compile(self, text: str, options: Sequence[str]) -> tuple[bytes, str]:
        """Return the machine code of a source text, and the compiler's log.

        Raises:
            EngineError: compilation fails.
        """
        program = ctypes.c_void_p()
        self._library.nvrtcCreateProgram(
            ctypes.byref(program), text.encode(), b"tauloop.cu", 0, None, None
        )
        try:
            encoded = [option.encode() for option in options]
            result = self._library.nvrtcCompileProgram(
                program, len(encoded), (ctypes.c_char_p * len(encoded))(*encoded)
            )
            log = self._bytes("nvrtcGetProgramLog", program).rstrip(b"\0").decode(errors="replace")
            if result:
                what = f"the compiler failed: {' '.join(log.split())[:500] or f'status {result}'}"
                raise EngineError.of(self.version, what, "use the host processor (`Compiled()`)")
            return self._bytes("nvrtcGetCUBIN", program), log
        finally:
            self._library.nvrtcDestroyProgram(ctypes.byref(program))

    def _bytes(self, name: str, program: ctypes.c_void_p) -> bytes:
        size = ctypes.c_size_t()
        getattr(self._library, f"{name}Size")(program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        getattr(self._library, name)(program, buffer)
        return buffer.raw


@functools.cache
def nvrtc() -> Nvrtc:
    """Return NVRTC from NVIDIA's pip package, or from the system.

    Raises:
        EngineError: it is not installed.
    """
    for candidate in (
        *_wheel_libraries(),
        ctypes.util.find_library("nvrtc"),
        "libnvrtc.so.13",
        "libnvrtc.so.12",
    ):
        try:
            if candidate is not None:
                return Nvrtc(ctypes.CDLL(str(candidate)))
        except (OSError, AttributeError):
            continue
    raise EngineError.of(
        "NVRTC", "NVIDIA's run-time compiler is not installed, or cannot be loaded", INSTALL
    )


def _wheel_libraries() -> list[Path]:
    """Return the NVRTC libraries of NVIDIA's pip packages, oldest first.

    The oldest comes first because every driver supports it.
    """
    spec = importlib.util.find_spec("nvidia")
    folders = (spec.submodule_search_locations or []) if spec else []
    return sorted(
        path for folder in folders for path in Path(folder).glob("*/lib/libnvrtc.so.1[0-9]")
    )
