"""Devices that run kernels: graphics processors through CuPy, or the host processor in C loops."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, final

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import EngineError, InputError
from tauloop.common.records import dataclass
from tauloop.compiler.c.calling.compiler import Compiler
from tauloop.compiler.c.calling.library import Library
from tauloop.export.gpu.nvrtc import INSTALL, DeviceCode, compile_cuda

#: Threads per block, for kernels with one sample per thread. Threads use many registers, and a
#: block needs the registers of all its threads at once.
THREADS_PER_BLOCK = 128

#: A function that launches a kernel. It takes the number of blocks, the threads per block, the shared
#: memory per block in bytes, and the arguments: numbers, and arrays on the device.
Launch = Callable[[int, int, int, Sequence[Any]], None]


class Device(ABC):
    """A device that runs kernels on its arrays."""

    @property
    @abstractmethod
    def arrays(self) -> Any:
        """Array module of the device, with NumPy's names."""

    @abstractmethod
    def kernel(self, text: str, name: str, letters: str, folder: Path | None) -> Launch:
        """Return a kernel, compiled or from the cache.

        Args:
            text: source of the kernel, such as from `kernels_text`.
            name: name of the kernel.
            letters: types of the kernel's arguments: n is a size, d a double, * an array.
            folder: folder of the cache; by default the user's cache.

        Raises:
            EngineError: the kernel cannot be compiled or loaded.
        """

    def columns(self, where: str, array: Any, dtype: Any) -> Any:
        """Return an array (N, n) in column-major order on this device. Copy it only if necessary.

        Args:
            where: name of the array, for errors.
            array: NumPy array, or an array on this device (also of another library with DLPack).
            dtype: type of the numbers in the result.

        Raises:
            InputError: `array` is not an array of numbers, or is on another device.
        """
        xp = self.arrays
        try:
            if not isinstance(array, xp.ndarray | np.ndarray) and hasattr(array, "__dlpack__"):
                array = xp.from_dlpack(array)
            array = xp.asarray(array)
            if array.dtype.kind not in "fiu":
                raise TypeError(f"numbers of type {array.dtype} are not real")
            return xp.asfortranarray(array, dtype=dtype)
        except (TypeError, ValueError, BufferError, RuntimeError) as error:
            raise InputError.of(
                where, f"cannot be read on this device: {error}", "give an array of numbers"
            ) from error

    def numbers(self, array: Any) -> np.ndarray:
        """Return a NumPy array with the contents of an array on this device."""
        return np.asarray(array)


@final
@dataclass(frozen=True, kw_only=True)
class Processor(Device):
    """The host processor, which runs kernels as C loops. For tests and computers without a GPU.

    Attributes:
        compiler: C compiler; by default the system's compiler.

    Examples:
        >>> import tauloop as tl
        >>> tl.export.gpu.Processor().arrays.__name__
        'numpy'
    """

    compiler: Compiler | None = None

    @property
    def arrays(self) -> Any:
        """NumPy."""
        return np

    def kernel(self, text: str, name: str, letters: str, folder: Path | None) -> Launch:
        """Return a C function with loops in place of blocks and threads."""
        function = Library.create(text, self.compiler, folder=folder).function(name, letters)

        def launch(blocks: int, threads: int, shared: int, arguments: Sequence[Any]) -> None:
            function(*arguments)

        return launch


@final
@dataclass(frozen=True, kw_only=True)
class Gpu(Device):
    """An NVIDIA graphics processor, accessed through CuPy (extra ``gpu``).

    Attributes:
        number: number of the device.
        registers: maximum number of registers per thread; by default the compiler chooses it.

    Examples:
        >>> import tauloop as tl
        >>> tl.export.gpu.Gpu().number
        0
    """

    number: int = 0
    registers: int | None = None

    @cached_property
    def arrays(self) -> Any:
        """The module CuPy.

        Raises:
            EngineError: CuPy, a driver or a device is missing; the error states what to install.
        """
        try:
            cupy = importlib.import_module("cupy")
        except ImportError as error:
            raise EngineError.of("CuPy", f"cannot be imported ({error})", INSTALL) from error
        try:
            count = int(cupy.cuda.runtime.getDeviceCount())
        except (
            Exception
        ) as error:  # an exception class of CuPy: no driver, an old driver, no device
            what = f"no CUDA driver or no device: {str(error)[:200]}"
            remedy = "install NVIDIA's driver (525 or newer), or use the host processor: `Compiled()`, `Processor()`"
            raise EngineError.of("GPU", what, remedy) from error
        if self.number >= count:
            problem = f"does not exist; this computer has {counted(count, 'GPU')}"
            raise EngineError.of(
                f"GPU {self.number}", problem, f"use a number from 0 to {count - 1}"
            )
        return cupy

    @property
    def architecture(self) -> str:
        """Architecture for which kernels are compiled."""
        return f"sm_{self.arrays.cuda.Device(self.number).compute_capability}"

    def code(self, text: str, folder: Path | None) -> DeviceCode:
        """Return the machine code of a source text for this device."""
        return compile_cuda(
            text, architecture=self.architecture, registers=self.registers, folder=folder
        )

    def kernel(self, text: str, name: str, letters: str, folder: Path | None) -> Launch:
        """Return a function of a module loaded by CuPy."""
        cupy = self.arrays
        with cupy.cuda.Device(self.number):
            function = cupy.RawModule(path=str(self.code(text, folder).path)).get_function(name)
        types = {"n": np.uint64, "d": np.float64}

        def launch(blocks: int, threads: int, shared: int, arguments: Sequence[Any]) -> None:
            kernel_arguments = tuple(
                argument if letter == "*" else types[letter](argument)
                for letter, argument in zip(letters, arguments, strict=True)
            )
            with cupy.cuda.Device(self.number):
                if shared > function.max_dynamic_shared_size_bytes:
                    function.max_dynamic_shared_size_bytes = shared
                function((blocks,), (threads,), kernel_arguments, shared_mem=shared)

        return launch

    def numbers(self, array: Any) -> np.ndarray:
        """Return a copy of an array in host memory."""
        return np.asarray(self.arrays.asnumpy(array))
