"""Programs on a graphics processor: as an evaluator of models, and as functions of arrays that stay there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, final

import numpy as np

from tauloop.common.errors import InputError, Problems
from tauloop.common.records import dataclass
from tauloop.compiler.c.calling.compiled import Way, require_health
from tauloop.compiler.c.calling.evaluator import LARGEST_PROGRAM, Evaluator
from tauloop.compiler.c.printing.precision import Precision
from tauloop.compiler.limits import FEW_STEPS
from tauloop.gpu.devices import BLOCK, Device, Gpu, Launch
from tauloop.gpu.source import Argument, arguments, kernel_name, kernels_text, walks
from tauloop.model.runner import WAY

if TYPE_CHECKING:
    from tauloop.compiler.c.calling.tracking import Tracker
    from tauloop.compiler.c.printing.source import CFunction
    from tauloop.compiler.program import Program
    from tauloop.model import Motion

#: Samples from which on the way to the device and back is sooner done than the work here.
WORTH_THE_WAY = 100_000


class DeviceInputs:
    """The inputs of a kernel: arrays of all kinds, brought to the device and checked.

    Attributes:
        nominal: values of inputs that need not be given.
    """

    def __init__(
        self,
        function: CFunction,
        device: Device,
        precision: Precision,
        nominal: Mapping[str, np.ndarray],
    ) -> None:
        """Take the ports of a function."""
        self._arguments = [each for each in arguments(function) if each.is_input]
        self._device, self.nominal = device, nominal
        self._dtype = precision.dtype

    def read(self, inputs: Mapping[str, Any], n: int | None = None) -> tuple[int, int, list[Any]]:
        """Number of samples, a bit for each held input that has a row for each of them, and arrays on the device.

        Args:
            inputs: arrays (N, n) by port; held ones may be (n,), or lack.
            n: number of samples N; that of the first input without it.

        Raises:
            InputError: an input is missing, or has a wrong shape or type.
        """
        ready, each, held, problems = [], 0, 0, Problems()
        for argument in self._arguments:
            name, size = argument.port.name, argument.port.size
            array = self._on_device(argument, inputs, problems)
            if array is None:
                continue
            if argument.is_held:
                each |= (array.ndim == 2) << held
                held += 1
            elif n is None:
                n = len(array)
            if array.shape != ((size,) if array.ndim == 1 else (n, size)):
                what = f"has shape {array.shape}, needs ({n}, {size})"
                problems.add(name, what, "one row of numbers for each sample")
            ready.append(array)
        InputError.raise_if_any(problems)
        assert n is not None
        return n, each, ready

    def _on_device(self, argument: Argument, inputs: Mapping[str, Any], problems: Problems) -> Any:
        """An input on the device: (N, n), or (n,) where one row serves all samples; None where something is wrong."""
        name = argument.port.name
        array = inputs.get(name, self.nominal.get(name) if argument.is_held else None)
        if array is None:
            problems.add(name, "is missing", f"give an array (N, {argument.port.size})")
            return None
        if (
            argument.is_held
            and isinstance(array, np.ndarray)
            and array.ndim == 2
            and not array.strides[0]
        ):
            # one row, seen as many
            array = array[0] if len(array) else np.zeros(argument.port.size)
        try:
            ready = self._device.columns(name, array, self._dtype)
        except InputError as error:
            problems.extend(error.problems)
            return None
        if ready.ndim != 2 and not (argument.is_held and ready.ndim == 1):
            problems.add(name, f"has {ready.ndim} axes", f"give an array (N, {argument.port.size})")
            return None
        return ready


class DeviceFunction:
    """A program as a kernel: one thread a sample, on arrays that stay on the device.

    Attributes:
        function: the program and its ports.
        text: of the kernel.
        inputs: what it reads, with nominal values.
        device: where it runs.
        precision: of its numbers.
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
        """Compile it, or find it in the cache (see `Cuda.function`).

        Calls go by a way from the nominal start, which belongs to the position `origin`, where one
        is given.

        Raises:
            EngineError: it cannot be compiled or loaded; what is missing.
        """
        self.function, self.device, self.precision = function, device, precision
        self.inputs = DeviceInputs(function, device, precision, nominal)
        self.text = kernels_text(
            [function], f"{function.name}: made by Tauloop, do not edit", precision
        )
        self._arguments = arguments(function)
        self._origin = origin
        letters = "nn" + "*" * len(self._arguments) + "n*" * walks(function)
        self._launch: Launch = device.kernel(self.text, kernel_name(function), letters, folder)

    def __call__(self, *motion: Any, **held: Any) -> Any:
        """Return checked outputs at N samples; only the diagnostics come back from the device.

        Args:
            motion: arrays (N, n) in the order of the inputs, on the device (CuPy, or anything with
                DLPack: JAX, PyTorch), or NumPy's, which are copied there. Those in column order are
                read as they are.
            held: `start`, `theta`, ... by name, (n,) for all samples or (N, n); nominal values
                without them.

        Returns:
            The output (N, n), in column order on the device; or a tuple of several.

        Raises:
            InputError: wrong names, shapes or types.
            PoseError: out of reach or singular.
        """
        named = [each.port.name for each in self._arguments if each.is_input and not each.is_held]
        if len(motion) != len(named):
            what = f"{len(motion)} arrays are not {len(named)}"
            raise InputError.of(self.function.name, what, f"give {', '.join(named)}")
        inputs = dict(zip(named, motion, strict=True)) | held
        way = None if self._origin is None or "start" in held else (self._origin, WAY)
        outputs = self.batch(inputs, way=way)
        if way and bool((outputs["health"][:, 3] > FEW_STEPS).any()):  # it may have strayed
            outputs = self.batch(inputs, way=(way[0], WAY**2))
        precision = self.precision
        require_health(
            outputs.pop("health"), precision.smallest_pivot, precision.converged, self.device.arrays
        )
        return tuple(outputs.values()) if len(outputs) > 1 else next(iter(outputs.values()))

    def batch(
        self, inputs: Mapping[str, Any], n: int | None = None, way: Way = None
    ) -> dict[str, Any]:
        """Outputs (N, n) by port, `health` among them, on the device; nothing is checked but shapes.

        Args:
            inputs: arrays (N, n) by port; held ones may be (n,), or lack.
            n: number of samples N; that of the first input without it.
            way: the position where `start` is, and by how many steps of a straight line others are
                reached from there.

        Raises:
            InputError: an input is missing, or has a wrong shape or type.
        """
        n, each, ready = self.inputs.read(inputs, n)
        xp = self.device.arrays
        outputs = {
            argument.port.name: xp.empty(
                (n, argument.port.size), dtype=self.precision.dtype, order="F"
            )
            for argument in self._arguments
            if not argument.is_input
        }
        origin, parts = way or (np.zeros(1), 1)
        by = (parts, xp.asarray(origin, dtype=self.precision.dtype)) if walks(self.function) else ()
        if n:
            self._launch(-(-n // BLOCK), BLOCK, 0, (n, each, *ready, *outputs.values(), *by))
        return outputs


@final
class DeviceKernel:
    """A function on a device as models call it: arrays of the computer's go there and come back."""

    def __init__(self, function: DeviceFunction) -> None:
        """Take a function that is there."""
        self.function = function

    @property
    def nominal(self) -> Mapping[str, np.ndarray]:
        """Values of inputs that need not be given."""
        return self.function.inputs.nominal

    @nominal.setter
    def nominal(self, values: Mapping[str, np.ndarray]) -> None:
        self.function.inputs.nominal = values

    @property
    def reads(self) -> tuple[str, ...]:
        """Names of the inputs."""
        return tuple(port.name for port in self.function.function.inputs)

    def run(
        self, inputs: Mapping[str, np.ndarray], n: int, *, way: Way = None
    ) -> tuple[dict[str, np.ndarray], bool]:
        """Outputs (N, n) by port, `health` among them, at which nobody has looked yet."""
        outputs = self.function.batch(inputs, n, way)
        numbers = self.function.device.numbers
        return {
            name: np.ascontiguousarray(numbers(array)) for name, array in outputs.items()
        }, False


@final
class DeviceRows:
    """A kernel over rows: arrays of the computer's go to the device and come back."""

    def __init__(self, device: Device, launch: Launch, precision: Precision) -> None:
        """Take a kernel that is there."""
        self._device, self._launch, self._dtype = device, launch, precision.dtype

    def __call__(
        self,
        n: int,
        numbers: Sequence[int],
        arrays: Sequence[np.ndarray],
        shapes: Sequence[tuple[int, ...]],
    ) -> list[np.ndarray]:
        """See `codegen.rows.RowKernel`."""
        xp = self._device.arrays
        read = [xp.asarray(np.ascontiguousarray(array, dtype=self._dtype)) for array in arrays]
        written = [xp.empty(shape, dtype=self._dtype) for shape in shapes]
        if n:
            self._launch(-(-n // BLOCK), BLOCK, 0, (n, 0, n, *numbers, *read, *written))
        return [self._device.numbers(array).astype(float, copy=False) for array in written]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Cuda(Evaluator):
    """Kernels on an NVIDIA graphics processor: compiled at run time, kept in the cache of compiled code.

    What cannot run there is refused, not run elsewhere.

    Attributes:
        device: where kernels run: `Gpu()`, or `Processor()`, the computer's own, for tests.
        precision: of the functions that `function` makes, and of the steps of `simulate_many`,
            `follow_many` and `ControlKernel`; all else that models compute is in double precision.
        at_least: samples below which models interpret a run.
        folder: the cache; the user's own without it.

    Examples:
        >>> import numpy as np
        >>> import tauloop as tl
        >>> model = tl.Model(tl.load("delta"))
        >>> inverse = tl.gpu.Cuda(device=tl.gpu.Processor()).function(model.platform, "inverse_dynamics", ("force",))
        >>> inverse([[0.0, 0.0, -0.5]], np.zeros((1, 3)), np.zeros((1, 3))).shape
        (1, 3)
    """

    device: Device = field(default_factory=Gpu)
    precision: Precision = Precision.DOUBLE
    at_least: int = WORTH_THE_WAY
    folder: Path | None = None

    def wants_code(self, program: Program, samples: int) -> bool:
        """From `at_least` samples on, unless the program is too large."""
        return samples >= max(self.at_least, 2) and program.operations <= LARGEST_PROGRAM

    def kernel(self, function: CFunction) -> DeviceKernel:
        """A kernel for batches.

        Raises:
            EngineError: it cannot be compiled or loaded; what is missing.
        """
        return DeviceKernel(DeviceFunction(function, self.device, folder=self.folder))

    def tracker(self, function: CFunction, *, in_lanes: bool) -> Tracker | None:
        """None: motions are followed on the computer's own processor."""
        return None

    def rows(
        self, text: str, name: str, letters: str, precision: Precision = Precision.DOUBLE
    ) -> DeviceRows:
        """A kernel over rows.

        Raises:
            EngineError: it cannot be compiled or loaded; what is missing.
        """
        return DeviceRows(
            self.device, self.device.kernel(text, name, letters, self.folder), precision
        )

    def function(self, motion: Motion, program: str, outputs: tuple[str, ...]) -> DeviceFunction:
        """A function of arrays that live on the device.

        Args:
            motion: `model.platform` or `model.actuators`.
            program: name of a program of the catalogue, such as "inverse_dynamics".
            outputs: names among its outputs, such as ("force",).

        Raises:
            InputError: no such program or output.
            EngineError: it cannot be compiled or loaded; what is missing.
        """
        return DeviceFunction(
            motion.source_function(program, outputs),
            self.device,
            self.precision,
            nominal=motion.runner.nominal,
            origin=motion.ports.at(motion.runner.nominal["start"])
            if motion.runner.walks_in_code
            else None,
            folder=self.folder,
        )
