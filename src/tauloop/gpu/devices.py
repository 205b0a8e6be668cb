"""Where kernels run: on a graphics processor by CuPy, or, the same text as loops, on the computer's own processor."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, final

import numpy as np

from tauloop.common.errors import EngineError, InputError
from tauloop.common.records import dataclass
from tauloop.compiler.c.calling.compiler import Compiler
from tauloop.compiler.c.calling.library import Library
from tauloop.gpu.nvrtc import INSTALL, DeviceCode, compile_cuda

#: Threads of a block where each has a sample of its own: registers are few, and a block needs all
#: of its at once.
BLOCK = 128

#: (blocks, threads of a block, bytes that a block shares, arguments): whole numbers, and arrays of
#: the device.
Launch = Callable[[int, int, int, Sequence[Any]], None]


class Device(ABC):
    """Runs kernels on arrays that live on it."""

    @property
    @abstractmethod
    def arrays(self) -> Any:
        """The module of its arrays, with NumPy's names."""

    @abstractmethod
    def kernel(self, text: str, name: str, letters: str, folder: Path | None) -> Launch:
        """A kernel of a text, compiled or out of the cache.

        Args:
            text: as `kernels_text` prints it.
            name: of the kernel.
            letters: of its arguments: n a size, d a double, * an array.
            folder: the cache; the user's own without it.

        Raises:
            EngineError: it cannot be made.
        """

    def columns(self, where: str, array: Any, dtype: Any) -> Any:
        """An array (N, n) as a structure of arrays on this device: itself where it is one, else a copy.

        Args:
            where: its name, for errors.
            array: of this device's, NumPy's, or anything with DLPack on this device.
            dtype: of its numbers.

        Raises:
            InputError: it is not an array of numbers, or lives elsewhere.
        """
        xp = self.arrays
        try:
            if not isinstance(array, xp.ndarray | np.ndarray) and hasattr(array, "__dlpack__"):
                array = xp.from_dlpack(array)
            array = xp.asarray(array)
            if array.dtype.kind not in "fiu":
                raise TypeError(f"{array.dtype} are no real numbers")
            return xp.asfortranarray(array, dtype=dtype)
        except (TypeError, ValueError, BufferError, RuntimeError) as error:
            raise InputError.of(
                where, f"cannot be read on this device: {error}", "give an array of numbers"
            ) from error

    def numbers(self, array: Any) -> np.ndarray:
        """An array of this device's as NumPy's."""
        return np.asarray(array)


@final
@dataclass(frozen=True, kw_only=True)
class Processor(Device):
    """The computer's own processor: kernels as loops, compiled by its C compiler. For tests, and where no GPU is.

    Attributes:
        compiler: the system's without it.

    Examples:
        >>> import tauloop as tl
        >>> tl.gpu.Processor().arrays.__name__
        'numpy'
    """

    compiler: Compiler | None = None

    @property
    def arrays(self) -> Any:
        """NumPy."""
        return np

    def kernel(self, text: str, name: str, letters: str, folder: Path | None) -> Launch:
        """A C function, whose loops stand for blocks and threads."""
        function = Library.made(text, self.compiler, folder=folder).function(name, letters)

        def launch(blocks: int, threads: int, shared: int, arguments: Sequence[Any]) -> None:
            function(*arguments)

        return launch


@final
@dataclass(frozen=True, kw_only=True)
class Gpu(Device):
    """An NVIDIA graphics processor, by CuPy (extra ``gpu``).

    Attributes:
        number: which, where there are several.
        registers: most of a thread; as the compiler likes without it.

    Examples:
        >>> import tauloop as tl
        >>> tl.gpu.Gpu().number
        0
    """

    number: int = 0
    registers: int | None = None

    @cached_property
    def arrays(self) -> Any:
        """CuPy, where a driver and a device are there.

        Raises:
            EngineError: something is missing: what, and what to install.
        """
        try:
            cupy = importlib.import_module("cupy")
        except ImportError as error:
            raise EngineError.of("CuPy", f"cannot be imported ({error})", INSTALL) from error
        try:
            count = int(cupy.cuda.runtime.getDeviceCount())
        except Exception as error:  # of CuPy's own kind: no driver, one that is too old, no device
            what = f"no CUDA driver or no device: {str(error)[:200]}"
            remedy = "install NVIDIA's driver (525 or newer), or run on the processor: `Compiled()`, `Processor()`"
            raise EngineError.of("GPU", what, remedy) from error
        if self.number >= count:
            raise EngineError.of(
                f"GPU {self.number}", f"is not there: this computer has {count}", "take another"
            )
        return cupy

    @property
    def architecture(self) -> str:
        """What kernels are compiled for."""
        return f"sm_{self.arrays.cuda.Device(self.number).compute_capability}"

    def code(self, text: str, folder: Path | None) -> DeviceCode:
        """A text's machine code for this device."""
        return compile_cuda(
            text, architecture=self.architecture, registers=self.registers, folder=folder
        )

    def kernel(self, text: str, name: str, letters: str, folder: Path | None) -> Launch:
        """A function of a module that CuPy loads."""
        cupy = self.arrays
        with cupy.cuda.Device(self.number):
            function = cupy.RawModule(path=str(self.code(text, folder).path)).get_function(name)
        kinds = {"n": np.uint64, "d": np.float64}

        def launch(blocks: int, threads: int, shared: int, arguments: Sequence[Any]) -> None:
            passed = tuple(
                argument if letter == "*" else kinds[letter](argument)
                for letter, argument in zip(letters, arguments, strict=True)
            )
            with cupy.cuda.Device(self.number):
                if shared > function.max_dynamic_shared_size_bytes:
                    function.max_dynamic_shared_size_bytes = shared
                function((blocks,), (threads,), passed, shared_mem=shared)

        return launch

    def numbers(self, array: Any) -> np.ndarray:
        """A copy in the computer's memory."""
        return np.asarray(self.arrays.asnumpy(array))
