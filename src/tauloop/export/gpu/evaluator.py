"""Programs on a graphics processor, as an evaluator of models and as functions of device arrays."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, final

import numpy as np

from tauloop.common.errors import InputError, Problems
from tauloop.common.records import dataclass
from tauloop.compiler.c.calling.compiled import Continuation, require_health
from tauloop.compiler.c.calling.evaluator import MAX_PROGRAM_SIZE, Evaluator
from tauloop.compiler.c.printing.precision import Precision
from tauloop.compiler.limits import FEW_STEPS
from tauloop.export.gpu.devices import THREADS_PER_BLOCK, Device, Gpu, Launch
from tauloop.export.gpu.source import (
    Argument,
    arguments,
    can_approach_in_steps,
    kernel_name,
    kernels_text,
)
from tauloop.model.runner import CONTINUATION_STEPS

if TYPE_CHECKING:
    from tauloop.compiler.c.calling.tracking import Tracker
    from tauloop.compiler.c.printing.source import CFunction
    from tauloop.compiler.program import Program
    from tauloop.model import Motion

#: Number of samples above which computation on the device, including transfers, is faster.
MIN_DEVICE_SAMPLES = 100_000


class DeviceInputs:
    """The inputs of a kernel: arrays of any kind, checked and copied to the device.

    Attributes:
        nominal: default values of held inputs.
    """

    def __init__(
        self,
        function: CFunction,
        device: Device,
        precision: Precision,
        nominal: Mapping[str, np.ndarray],
    ) -> None:
        """Store the ports of a function."""
        self._arguments = [each for each in arguments(function) if each.is_input]
        self._device, self.nominal = device, nominal
        self._dtype = precision.dtype

    def read(self, inputs: Mapping[str, Any], n: int | None = None) -> tuple[int, int, list[Any]]:
        """Return the number of samples, bits of the held inputs, and the arrays on the device.

        Bit k is set if held input k has one row per sample.

        Args:
            inputs: arrays (N, n) by port; held inputs may be (n,) or missing.
            n: number of samples N; by default that of the first input.

        Raises:
            InputError: an input is missing, or has a wrong shape or type.
        """
        ready, row_bits, held, problems = [], 0, 0, Problems()
        for argument in self._arguments:
            name, size = argument.port.name, argument.port.size
            array = self._on_device(argument, inputs, problems)
            if array is None:
                continue
            if argument.is_held:
                row_bits |= (array.ndim == 2) << held
                held += 1
            elif n is None:
                n = len(array)
            if array.shape != ((size,) if array.ndim == 1 else (n, size)):
                what = f"has shape {array.shape}, needs ({n}, {size})"
                problems.add(name, what, "give one row of numbers for each sample")
            ready.append(array)
        InputError.raise_if_any(problems)
        assert n is not None
        return n, row_bits, ready

    def _on_device(self, argument: Argument, inputs: Mapping[str, Any], problems: Problems) -> Any:
        """Return an input on the device, (N, n), or (n,) for all samples; None if it is invalid."""
        name = argument.port.name
        array = inputs.get(name, self.nominal.get(name) if argument.is_held else None)
        if array is None:
            problems.add(name, "is missing", f"give an array of shape (N, {argument.port.size})")
            return None
        if (
            argument.is_held
            and isinstance(array, np.ndarray)
            and array.ndim == 2
            and not array.strides[0]
        ):
            # one row with zero stride: broadcast to many
            array = array[0] if len(array) else np.zeros(argument.port.size)
        try:
            ready = self._device.columns(name, array, self._dtype)
        except InputError as error:
            problems.extend(error.problems)
            return None
        if ready.ndim != 2 and not (argument.is_held and ready.ndim == 1):
            problems.add(
                name, f"has {ready.ndim} axes", f"give an array of shape (N, {argument.port.size})"
            )
            return None
        return ready


class DeviceFunction:
    """A program as a kernel with one thread per sample, on arrays of the device.

    Attributes:
        function: the program and its ports.
        text: source of the kernel.
        inputs: inputs of the kernel, with nominal values.
        device: GPU that runs the function.
        precision: precision of the numbers.
    """

    def __init__(
        self,
        function: CFunction,
        device: Device,
        precision: Precision = Precision.DOUBLE,
        *,
        nominal: Mapping[str, np.ndarray] = MappingProxyType({}),
        origin: np.ndarray | None = None,
        folder: Path | None = None,
    ) -> None:
        """Compile the kernel, or load it from the cache (see `Cuda.function`).

        `origin` is the position of the nominal start. If it is given, calls approach their
        positions on straight lines from there.

        Raises:
            EngineError: the kernel cannot be compiled or loaded; reports what is missing.
        """
        self.function, self.device, self.precision = function, device, precision
        self.inputs = DeviceInputs(function, device, precision, nominal)
        self.text = kernels_text(
            [function], f"{function.name}: generated by Tauloop, do not edit", precision
        )
        self._arguments = arguments(function)
        self._origin = origin
        letters = "nn" + "*" * len(self._arguments) + "n*" * can_approach_in_steps(function)
        self._launch: Launch = device.kernel(self.text, kernel_name(function), letters, folder)

    def __call__(self, *motion: Any, **held: Any) -> Any:
        """Return checked outputs at N samples; only the diagnostics are copied to the host.

        Args:
            motion: arrays (N, n) in the order of the inputs. Arrays on the device (CuPy, or any
                array with DLPack: JAX, PyTorch) in column order are used without a copy. NumPy
                arrays are copied to the device.
            held: `start`, `theta`, ... by name, (n,) for all samples or (N, n); nominal values by
                default.

        Returns:
            The output (N, n), in column order on the device; a tuple if there are several outputs.

        Raises:
            InputError: wrong names, shapes or types.
            PoseError: a pose is out of reach or singular.
        """
        named = [each.port.name for each in self._arguments if each.is_input and not each.is_held]
        if len(motion) != len(named):
            problem = f"needs {len(named)} arrays, got {len(motion)}"
            raise InputError.of(self.function.name, problem, f"give {', '.join(named)}")
        inputs = dict(zip(named, motion, strict=True)) | held
        continuation = (
            None if self._origin is None or "start" in held else (self._origin, CONTINUATION_STEPS)
        )
        outputs = self.batch(inputs, continuation=continuation)
        if continuation and bool(
            (outputs["health"][:, 3] > FEW_STEPS).any()
        ):  # Newton's method may have left the branch
            outputs = self.batch(inputs, continuation=(continuation[0], CONTINUATION_STEPS**2))
        precision = self.precision
        require_health(
            outputs.pop("health"), precision.smallest_pivot, precision.converged, self.device.arrays
        )
        return tuple(outputs.values()) if len(outputs) > 1 else next(iter(outputs.values()))

    def batch(
        self, inputs: Mapping[str, Any], n: int | None = None, continuation: Continuation = None
    ) -> dict[str, Any]:
        """Return outputs (N, n) by port on the device, with `health`. Only shapes are checked.

        Args:
            inputs: arrays (N, n) by port; held inputs may be (n,) or missing.
            n: number of samples N; by default that of the first input.
            continuation: position of `start`, and number of steps on straight lines from there.

        Raises:
            InputError: an input is missing, or has a wrong shape or type.
        """
        n, row_bits, ready = self.inputs.read(inputs, n)
        xp = self.device.arrays
        outputs = {
            argument.port.name: xp.empty(
                (n, argument.port.size), dtype=self.precision.dtype, order="F"
            )
            for argument in self._arguments
            if not argument.is_input
        }
        origin, steps = continuation or (np.zeros(1), 1)
        path: tuple[Any, ...] = ()
        if can_approach_in_steps(self.function):
            path = (steps, xp.asarray(origin, dtype=self.precision.dtype))
        if n:
            blocks = -(-n // THREADS_PER_BLOCK)
            arrays = (*ready, *outputs.values())
            self._launch(blocks, THREADS_PER_BLOCK, 0, (n, row_bits, *arrays, *path))
        return outputs


@final
class DeviceKernel:
    """A device function with the interface that models call, with arrays in host memory."""

    def __init__(self, function: DeviceFunction) -> None:
        """Store the function."""
        self.function = function

    @property
    def nominal(self) -> Mapping[str, np.ndarray]:
        """Default values of held inputs."""
        return self.function.inputs.nominal

    @nominal.setter
    def nominal(self, values: Mapping[str, np.ndarray]) -> None:
        self.function.inputs.nominal = values

    @property
    def reads(self) -> tuple[str, ...]:
        """Names of the inputs."""
        return tuple(port.name for port in self.function.function.inputs)

    def run(
        self, inputs: Mapping[str, np.ndarray], n: int, *, continuation: Continuation = None
    ) -> tuple[dict[str, np.ndarray], bool]:
        """Return unchecked outputs (N, n) by port, with `health`."""
        outputs = self.function.batch(inputs, n, continuation)
        to_host = self.function.device.numbers
        arrays = {name: np.ascontiguousarray(to_host(array)) for name, array in outputs.items()}
        return arrays, False


@final
class DeviceRows:
    """A kernel with one thread per row, with arrays in host memory."""

    def __init__(self, device: Device, launch: Launch, precision: Precision) -> None:
        """Store the kernel."""
        self._device, self._launch, self._dtype = device, launch, precision.dtype

    def __call__(
        self,
        n: int,
        numbers: Sequence[int],
        arrays: Sequence[np.ndarray],
        shapes: Sequence[tuple[int, ...]],
    ) -> list[np.ndarray]:
        """Run the kernel; see `RowKernel`."""
        xp = self._device.arrays
        read = [xp.asarray(np.ascontiguousarray(array, dtype=self._dtype)) for array in arrays]
        written = [xp.empty(shape, dtype=self._dtype) for shape in shapes]
        if n:
            blocks = -(-n // THREADS_PER_BLOCK)
            self._launch(blocks, THREADS_PER_BLOCK, 0, (n, 0, n, *numbers, *read, *written))
        return [self._device.numbers(array).astype(float, copy=False) for array in written]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Cuda(Evaluator):
    """Kernels on an NVIDIA graphics processor, compiled at run time and cached.

    Calculations that cannot run on it are rejected.

    Attributes:
        device: device of the kernels: `Gpu()`; or `Processor()`, the host processor, for tests.
        precision: precision of the functions that `function` returns, and of the steps of
            `simulate_many`, `follow_many` and `ControlKernel`; everything else is in double
            precision.
        at_least: number of samples below which models do not use the device.
        folder: folder of the cache; by default the user's cache.

    Examples:
        >>> import numpy as np
        >>> import tauloop as tl
        >>> model = tl.Model(tl.load("delta"))
        >>> cuda = tl.export.gpu.Cuda(device=tl.export.gpu.Processor())
        >>> inverse = cuda.function(model.platform, "inverse_dynamics", ("force",))
        >>> inverse([[0.0, 0.0, -0.5]], np.zeros((1, 3)), np.zeros((1, 3))).shape
        (1, 3)
    """

    device: Device = field(default_factory=Gpu)
    precision: Precision = Precision.DOUBLE
    at_least: int = MIN_DEVICE_SAMPLES
    folder: Path | None = None

    def wants_code(self, program: Program, samples: int) -> bool:
        """Return whether there are at least `at_least` samples and the program is not too large."""
        return self.is_large(samples) and program.operations <= MAX_PROGRAM_SIZE

    def is_large(self, samples: float) -> bool:
        """Return whether there are at least `at_least` samples, and more than one."""
        return samples >= max(self.at_least, 2)

    def kernel(self, function: CFunction, samples: float = math.inf) -> DeviceKernel:
        """Return a kernel for batches.

        Raises:
            EngineError: the kernel cannot be compiled or loaded; reports what is missing.
        """
        return DeviceKernel(DeviceFunction(function, self.device, folder=self.folder))

    def tracker(
        self, function: CFunction, samples: float = math.inf, *, in_lanes: bool
    ) -> Tracker | None:
        """Return None: motions are tracked on the host processor."""
        return None

    def rows(
        self,
        text: str,
        name: str,
        letters: str,
        precision: Precision = Precision.DOUBLE,
        evaluations: float = math.inf,
    ) -> DeviceRows:
        """Return a kernel with one thread per row.

        Raises:
            EngineError: the kernel cannot be compiled or loaded; reports what is missing.
        """
        return DeviceRows(
            self.device, self.device.kernel(text, name, letters, self.folder), precision
        )

    def function(self, motion: Motion, program: str, outputs: tuple[str, ...]) -> DeviceFunction:
        """Return a function of arrays on the device.

        Args:
            motion: `model.platform` or `model.actuators`.
            program: name of a program in the catalogue, such as "inverse_dynamics".
            outputs: names of outputs, such as ("force",).

        Raises:
            InputError: no such program or output.
            EngineError: the kernel cannot be compiled or loaded; reports what is missing.
        """
        runner = motion.runner
        origin = motion.ports.at(runner.nominal["start"]) if runner.walks_in_code else None
        return DeviceFunction(
            motion.source_function(program, outputs),
            self.device,
            self.precision,
            nominal=runner.nominal,
            origin=origin,
            folder=self.folder,
        )
