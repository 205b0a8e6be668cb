"""CUDA text to machine code of a graphics processor by NVRTC, which needs none; and what it says of kernels."""

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
from tauloop.compiler.c.calling.cache import cache_folder, is_intact, keep, private, scratch

#: The processor that is compiled for where none is here to be asked: Hopper (H100, H200).
ARCHITECTURE = "sm_90"
#: Text is C that C++ understands too; what is not said to be a kernel is called by kernels. A
#: product and a sum are rounded once, as in C.
FLAGS = ("--device-as-default-execution-space", "--std=c++20", "--fmad=true", "--ptxas-options=-v")
INSTALL = "pip install tauloop[gpu]"
_ARCHITECTURE = re.compile(r"sm_[0-9]{2,3}[a-z]?")
_KERNEL = re.compile(
    r"Compiling entry function '(?P<name>\w+)'(?P<said>.*?Used (?P<registers>\d+) registers.*)"
)
_STACK = re.compile(r"(\d+) bytes (?:cumulative stack size|stack frame)")
_SPILLED = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")
#: Of one multiprocessor from Ampere's large ones on: registers, threads, warps' registers come in
#: so many, and blocks.
REGISTERS, THREADS, REGISTERS_AT_ONCE, BLOCKS = 65536, 2048, 256, 32


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelFigures:
    """What the compiler says of a kernel.

    Attributes:
        name: of the kernel.
        registers: of a thread, 32 bits each.
        stack: bytes of a thread's local memory, with that of the functions it calls.
        spill_stores, spill_loads: bytes that a thread moves there and back for want of registers,
            likewise.
    """

    name: str
    registers: int
    stack: int
    spill_stores: int
    spill_loads: int

    def occupancy(self, threads: int) -> float:
        """Share of a multiprocessor's threads that can be at work, in blocks of so many, as far as registers allow."""
        warps = -(-threads // 32)
        for_a_warp = -(-self.registers * 32 // REGISTERS_AT_ONCE) * REGISTERS_AT_ONCE
        blocks = min(REGISTERS // for_a_warp // warps, THREADS // (32 * warps), BLOCKS)
        return blocks * warps * 32 / THREADS


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceCode(ReprMixin):
    """Machine code of kernels.

    Attributes:
        path: of the file in the cache.
        kernels: what the compiler said of each.
    """

    path: Path
    kernels: tuple[KernelFigures, ...]

    def kernel(self, name: str) -> KernelFigures:
        """Figures of a kernel."""
        return next(kernel for kernel in self.kernels if kernel.name == name)


def compile_cuda(
    text: str,
    *,
    architecture: str = ARCHITECTURE,
    registers: int | None = None,
    folder: Path | None = None,
) -> DeviceCode:
    """Compile CUDA text, or find it in the cache: named by the hash of the text, the compiler's version and its flags.

    Args:
        text: the kernels.
        architecture: the processor, such as "sm_90".
        registers: most of a thread; as the compiler likes without it. Fewer let more threads be at
            work, which spill.
        folder: the cache; the user's own without it.

    Raises:
        InputError: no such architecture.
        EngineError: NVRTC is not installed or fails, with what it said; or the cache cannot be
            written.
    """
    if not _ARCHITECTURE.fullmatch(architecture):
        raise InputError.of("architecture", f"{architecture!r:.40} is none", "such as sm_90")
    compiler = nvrtc()
    limit = () if registers is None else (f"--maxrregcount={registers:d}",)
    options = (f"--gpu-architecture={architecture}", *FLAGS, *limit)
    key = hashlib.sha256("\0".join((text, compiler.version, *options)).encode()).hexdigest()[:24]
    folder = cache_folder() if folder is None else folder
    path, log = folder / f"{key}.cubin", folder / f"{key}.ptxas"
    try:
        if not (is_intact(path) and is_intact(log)):
            image, report = compiler.compile(text, options)
            with scratch(private(folder)) as place:
                for target, content in ((path, image), (log, report.encode())):
                    (place / target.name).write_bytes(content)
                    keep(place / target.name, target)
        return DeviceCode(path=path, kernels=figures(log.read_text(encoding="utf-8")))
    except InputError as error:
        raise EngineError(error.problems) from error
    except OSError as error:
        what = f"device code cannot be kept: {error.strerror or error}"
        raise EngineError.of(str(folder), what, "make room, or allow writing there") from error


def figures(log: str) -> tuple[KernelFigures, ...]:
    """What a log of the assembler's says of each kernel, and behind it of the functions that the kernel calls."""
    kernels = []
    for part in re.split("(?=Compiling entry function)", " ".join(log.split())):
        if match := _KERNEL.match(part):
            spilled = [
                (int(stores), int(loads)) for stores, loads in _SPILLED.findall(match["said"])
            ]
            stores, loads = (sum(bytes) for bytes in zip(*spilled, strict=True))
            stack = max(int(size) for size in _STACK.findall(match["said"]))
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
        """Take the library."""
        self._library = library
        major, minor = ctypes.c_int(), ctypes.c_int()
        library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        self.version = f"NVRTC {major.value}.{minor.value}"

    def compile(self, text: str, options: Sequence[str]) -> tuple[bytes, str]:
        """Machine code of a text, and what the compiler says.

        Raises:
            EngineError: it fails.
        """
        made = ctypes.c_void_p()
        self._library.nvrtcCreateProgram(
            ctypes.byref(made), text.encode(), b"tauloop.cu", 0, None, None
        )
        try:
            encoded = [option.encode() for option in options]
            result = self._library.nvrtcCompileProgram(
                made, len(encoded), (ctypes.c_char_p * len(encoded))(*encoded)
            )
            log = self._bytes("nvrtcGetProgramLog", made).rstrip(b"\0").decode(errors="replace")
            if result:
                what = f"the compiler failed: {' '.join(log.split())[:500] or f'status {result}'}"
                raise EngineError.of(self.version, what, "run on the processor (`Compiled()`)")
            return self._bytes("nvrtcGetCUBIN", made), log
        finally:
            self._library.nvrtcDestroyProgram(ctypes.byref(made))

    def _bytes(self, name: str, made: ctypes.c_void_p) -> bytes:
        size = ctypes.c_size_t()
        getattr(self._library, f"{name}Size")(made, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        getattr(self._library, name)(made, buffer)
        return buffer.raw


@functools.cache
def nvrtc() -> Nvrtc:
    """The run-time compiler of the wheel, or of the system.

    Raises:
        EngineError: there is none.
    """
    for candidate in (
        *_of_wheels(),
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


def _of_wheels() -> list[Path]:
    """Libraries that NVIDIA's wheels have brought, the oldest first: any driver of today runs what it makes."""
    spec = importlib.util.find_spec("nvidia")
    folders = (spec.submodule_search_locations or []) if spec else []
    return sorted(
        path for folder in folders for path in Path(folder).glob("*/lib/libnvrtc.so.1[0-9]")
    )
