"""How programs are evaluated: interpreted by CasADi's virtual machine, or compiled by the system's C compiler.

A single sample at nominal parameters from the reference pose takes a short way (`Once`), without a
batch around it.
"""

from __future__ import annotations

import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Protocol, final

import casadi as ca
import numpy as np

from tauloop.common.errors import EngineError
from tauloop.common.records import dataclass
from tauloop.compiler.c.calling.compiled import CompiledFunction, Way, compile_function
from tauloop.compiler.c.calling.compiler import TIMEOUT, Compiler
from tauloop.compiler.c.calling.library import require_compiler
from tauloop.compiler.c.calling.signature import CPort
from tauloop.compiler.c.calling.tracking import Tracker
from tauloop.compiler.c.printing.precision import Precision
from tauloop.compiler.c.printing.rows import CompiledRows, RowKernel
from tauloop.compiler.c.printing.source import CFunction, c_name
from tauloop.compiler.c.printing.straight import instructions
from tauloop.compiler.limits import FEW_STEPS, SMALLEST_PIVOT
from tauloop.compiler.program import Evaluate, Newton, Program, Step
from tauloop.compiler.solving.bounded import Bounded
from tauloop.compiler.state import SolveDiagnostics, solve_diagnostics

_LOGGER = logging.getLogger("tauloop")
#: Samples from which on the default evaluator of a model compiles: compiling is then faster than
#: interpreting, at about 1 ms against 10 ns for an operation.
WORTH_COMPILING = 100_000
#: Operations above which compilers take more than some ten seconds, at about 0.7 ms for each.
LARGEST_PROGRAM = 20_000


class Kernel(Protocol):
    """Machine code of a program for batches; `nominal` holds values of inputs that need not be given."""

    nominal: Mapping[str, np.ndarray]

    @property
    def reads(self) -> Collection[str]:
        """Names of the inputs that it reads."""
        ...

    def run(
        self, inputs: Mapping[str, np.ndarray], n: int, *, way: Way = None
    ) -> tuple[dict[str, np.ndarray], bool]:
        """Outputs (N, n) by port, `health` among them, and whether it is known that all samples are sound."""
        ...


class Evaluator(ABC):
    """Decides how programs are run, and over how many threads.

    Attributes:
        threads: most that work on a batch.
        precision: of the steps of simulations and control loops over many starts.
    """

    threads: int = 1
    precision: Precision = Precision.DOUBLE

    @abstractmethod
    def wants_code(self, program: Program, samples: int) -> bool:
        """Whether a run of so many samples is worth machine code."""

    @abstractmethod
    def kernel(self, function: CFunction) -> Kernel | None:
        """Machine code for batches, or None where there is none to be had."""

    @abstractmethod
    def tracker(self, function: CFunction, *, in_lanes: bool) -> Tracker | None:
        """Machine code that follows motions, in lanes or sample by sample; None where there is none to be had."""

    @abstractmethod
    def rows(
        self, text: str, name: str, letters: str, precision: Precision = Precision.DOUBLE
    ) -> RowKernel | None:
        """A kernel over rows, of a text for both compilers in a precision; None where there is none to be had."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreted(Evaluator):
    """CasADi's virtual machine: no compiler needed, microseconds a sample."""

    def wants_code(self, program: Program, samples: int) -> bool:
        """Never."""
        return False

    def kernel(self, function: CFunction) -> CompiledFunction | None:
        """No machine code."""
        return None

    def tracker(self, function: CFunction, *, in_lanes: bool) -> Tracker | None:
        """No machine code."""
        return None

    def rows(
        self, text: str, name: str, letters: str, precision: Precision = Precision.DOUBLE
    ) -> RowKernel | None:
        """No machine code."""
        return None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled(Evaluator):
    """Machine code from the system's C compiler, kept in a cache: tens of nanoseconds a sample.

    Programs are compiled when they are first run. What cannot be compiled (no compiler, or it
    fails) is interpreted, with a warning in the log: one for each reason.

    Attributes:
        at_least: samples below which a run is interpreted all the same; by default the first sample
            is compiled.
        largest: programs of more operations are interpreted all the same.
        threads: how many a batch is shared out over, and runs of simulations; no number depends on
            it.
        folder: the cache; the user's own without it.
        timeout: longest time that the compiler may take for one file, s.
    """

    at_least: int = 1
    largest: int = LARGEST_PROGRAM
    threads: int = 1
    folder: Path | None = None
    timeout: float = TIMEOUT
    _said: set[str] = field(default_factory=set, init=False, repr=False, compare=False)

    def wants_code(self, program: Program, samples: int) -> bool:
        """From `at_least` samples on, unless the program is too large."""
        return samples >= self.at_least and program.operations <= self.largest

    def kernel(self, function: CFunction) -> CompiledFunction | None:
        """Machine code for batches; None, and a warning in the log, where it cannot be made."""
        try:
            return self.build(function)
        except EngineError as error:
            self._warn(f"running interpreted, which is some tens of times slower: {error}")
            return None

    def tracker(self, function: CFunction, *, in_lanes: bool) -> Tracker | None:
        """Machine code that follows motions; None, and a warning in the log, where it cannot be made."""
        try:
            return Tracker(function, self.folder, in_lanes=in_lanes, compiler=self._compiler())
        except EngineError as error:
            self._warn(f"the samples of a motion are reached one by one, not followed: {error}")
            return None

    def rows(
        self, text: str, name: str, letters: str, precision: Precision = Precision.DOUBLE
    ) -> RowKernel | None:
        """Machine code over rows; None, and a warning in the log, where it cannot be made."""
        try:
            return CompiledRows(text, name, letters, self.threads, self.folder, precision)
        except EngineError as error:
            self._warn(f"running interpreted, which is some tens of times slower: {error}")
            return None

    def _warn(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            _LOGGER.warning("%s", text)

    def build(self, function: CFunction) -> CompiledFunction:
        """Compile a function, or find it in the cache.

        Raises:
            EngineError: there is no compiler, it fails, or the cache cannot be written.
        """
        return compile_function(
            function, self._compiler(), threads=self.threads, folder=self.folder
        )

    def _compiler(self) -> Compiler:
        """Return the system's compiler with the limit of time of this evaluator."""
        return replace(require_compiler(), timeout=self.timeout)


def run_kernel(
    kernel: Kernel, inputs: Mapping[str, np.ndarray], n: int
) -> tuple[dict[str, np.ndarray], SolveDiagnostics]:
    """Outputs by name and the diagnostics; memory stays within inputs and outputs."""
    outputs, is_sound = kernel.run(inputs, n)
    return outputs, compiled_diagnostics(outputs.pop("health"), is_sound)


def interpreted_run(
    program: Program, inputs: Mapping[str, np.ndarray], n: int
) -> tuple[dict[str, np.ndarray], SolveDiagnostics]:
    """Outputs by name and the diagnostics of every loop."""
    results, diagnostics = program.run(
        {name: np.ascontiguousarray(array) for name, array in inputs.items()}, n
    )
    return results, solve_diagnostics(program, diagnostics)


class BatchRuns:
    """Runs of programs, as machine code where an evaluator wants it, made once for a program and its outputs."""

    def __init__(self, evaluator: Evaluator) -> None:
        """Keep what decides."""
        self._evaluator = evaluator
        self._kernels: dict[tuple[Program, tuple[str, ...] | None], Kernel | None] = {}

    def __call__(
        self,
        program: Program,
        inputs: Mapping[str, np.ndarray],
        n: int,
        outputs: tuple[str, ...] | None = None,
        work: int = 0,
    ) -> tuple[dict[str, np.ndarray], SolveDiagnostics]:
        """Outputs by name, all or at least some, and the diagnostics.

        Args:
            program: what is run.
            inputs: arrays (N, n), already checked.
            n: number of samples.
            outputs: those that are wanted; all without it.
            work: samples of which these are a piece.
        """
        key = program, outputs
        if key not in self._kernels and self._evaluator.wants_code(program, max(n, work)):
            self._kernels[key] = self._evaluator.kernel(c_function(program, inputs, outputs))
        kernel = self._kernels.get(key)
        return (
            interpreted_run(program, inputs, n) if kernel is None else run_kernel(kernel, inputs, n)
        )


def c_function(
    program: Program, inputs: Mapping[str, np.ndarray], outputs: tuple[str, ...] | None = None
) -> CFunction:
    """The C function of a program with all its outputs, or some; `inputs` tell the sizes of the ports."""
    produced = {"health"}
    needed: list[str] = []
    sizes: dict[str, int] = {}
    wanted = set(program.outputs if outputs is None else outputs)
    for step in program.steps:
        for name in (
            *_read(step, program, wanted),
            *((step.start,) if isinstance(step, Newton) else ()),
        ):
            if name not in produced and name not in needed:
                needed.append(name)
        if isinstance(step, Newton | Bounded):
            produced.add(step.solution)
            if isinstance(step, Newton):
                sizes[step.residual_values] = step.size
        else:
            produced |= set(step.outputs)
            sizes |= dict(zip(step.outputs, step.function.output_sizes, strict=True))
    # behind the motion, which callers put in front in one piece
    needed.sort(key=lambda name: name == "start")
    return CFunction(
        name=c_name(program.name),
        program=program,
        inputs=tuple(CPort(name=name, size=inputs[name].shape[1]) for name in needed),
        outputs=tuple(CPort(name=name, size=sizes[name]) for name in outputs or program.outputs),
    )


#: The least discriminant that compiled code reports where an input or a result is not finite, or
#: beyond all bounds.
NOT_FINITE = -1e300


def reads_start(program: Program, outputs: tuple[str, ...]) -> bool:
    """Whether some outputs depend on start values: of Newton's method, or for the turns of angles."""
    return any("start" in _read(step, program, set(outputs)) for step in program.steps)


def _read(step: Step, program: Program, wanted: set[str]) -> tuple[str, ...]:
    """Names that a step reads; `start`, which also tells the turns of angles, only where an output wants it."""
    unused = set(program.outputs) - wanted
    if (
        not isinstance(step, Evaluate)
        or "start" not in step.inputs
        or not unused & set(step.outputs)
    ):
        return step.inputs
    code = instructions(step.function.function, [name not in unused for name in step.outputs])
    ports = {
        instruction.port[0]
        for instruction in code
        if instruction.operation == ca.OP_INPUT and instruction.port is not None
    }
    return tuple(name for i, name in enumerate(step.inputs) if name != "start" or i in ports)


def compiled_diagnostics(numbers: np.ndarray, is_sound: bool = False) -> SolveDiagnostics:
    """Return diagnostics from the four numbers per sample that compiled code reports."""
    least, pivot, residual, steps = numbers.T
    if not is_sound:
        least, pivot = np.where(np.isnan(least), -1.0, least), np.where(np.isnan(pivot), 0.0, pivot)
        residual = np.where(np.isfinite(residual), residual, np.inf)
    return SolveDiagnostics(
        closed_forms=(),
        discriminants=least[:, None],
        smallest_pivot=pivot,
        residuals={"loops": residual},
        steps=steps,
        finite=np.broadcast_to(True, len(steps)) if is_sound else ~(least <= NOT_FINITE),
        missed=np.broadcast_to(0.0, len(steps)),  # the residual holds it
        is_sound=is_sound,
    )


#: Outputs by name (n,) and the diagnostics; None where the long way must say what is wrong, or knows
#: how to go on.
Outcome = tuple[dict[str, np.ndarray], SolveDiagnostics] | None
Once = Callable[..., Outcome]


_FINITE, _NONE, _NO_STEPS = np.ones(1, dtype=bool), np.zeros(1), np.zeros(1)
for _array in (_FINITE, _NONE, _NO_STEPS):
    _array.flags.writeable = False


def nothing(*motion: object) -> None:
    """What the short way gives where there is none."""


def compiled_once(kernel: CompiledFunction, names: tuple[str, ...]) -> Once:
    """The short way through machine code.

    Args:
        kernel: the code, with its nominal values.
        names: of the inputs that are given.
    """
    call = kernel.checked(names, nothing, whole=True)
    ports = kernel.function.arguments[len(kernel.function.inputs) :]
    ends = np.cumsum([port.size for port in ports]).tolist()
    parts = [
        (port.name, slice(end - port.size, end))
        for port, end in zip(ports[:-1], ends, strict=False)
    ]
    first = ends[-2]  # of the health

    def once(*motion: object) -> Outcome:
        whole = call(*motion)
        if whole is None or whole[first + 3] > FEW_STEPS:
            return None
        diagnostics = SolveDiagnostics(
            closed_forms=(),
            discriminants=whole[first : first + 1].reshape(1, 1),
            smallest_pivot=whole[first + 1 : first + 2],
            residuals={"loops": whole[first + 2 : first + 3]},
            steps=whole[first + 3 :],
            finite=_FINITE,
            missed=_NONE,
        )
        return {name: whole[part] for name, part in parts}, diagnostics

    return once


def interpreted_once(
    program: Program, names: tuple[str, ...], nominal: Mapping[str, np.ndarray]
) -> Once:
    """The short way through CasADi's virtual machine; there is none for programs that iterate.

    Args:
        program: what is run.
        names: of the inputs that are given.
        nominal: values of the other inputs, and anything of the right size for those that are
            given.
    """
    (step, *others) = program.steps
    return (
        nothing
        if others or not isinstance(step, Evaluate)
        else _Interpreted(program, step, names, nominal)
    )


class _Interpreted:
    """One stretch of straight-line code between two arrays, which CasADi's buffer reads and writes in place."""

    def __init__(
        self,
        program: Program,
        step: Evaluate,
        names: tuple[str, ...],
        nominal: Mapping[str, np.ndarray],
    ) -> None:
        sizes = step.function.output_sizes
        self._arrays = {name: np.array(nominal[name], dtype=float) for name in step.inputs}
        size = [len(nominal[name]) for name in names]
        self._motion = np.zeros(sum(size))
        self._given = np.split(self._motion, np.cumsum(size)[:-1])
        self._arrays |= {
            name: part
            for name, part in zip(names, self._given, strict=True)
            if name in self._arrays
        }
        self._whole = np.zeros(sum(sizes))
        ends = np.cumsum(sizes).tolist()
        parts = {
            name: slice(end - size, end)
            for name, end, size in zip(step.outputs, ends, sizes, strict=True)
        }
        # which live no longer than the former
        self._buffer, self._trigger = step.function.function.buffer()
        for i, array in enumerate(self._arrays.values()):
            self._buffer.set_arg(i, memoryview(array))  # type: ignore[call-arg]
        for i, name in enumerate(step.outputs):
            self._buffer.set_res(i, memoryview(self._whole[parts[name]]))  # type: ignore[call-arg]
        self._typical = np.array([max(record.typical, 1e-300) for record in program.pivots])
        self._wanted = [(name, parts[name]) for name in program.outputs]
        self._closed_forms = program.closed_forms
        self._discriminants = parts["discriminants"] if program.closed_forms else slice(0, 0)
        self._pivots = parts["pivots"] if program.pivots else slice(0, 0)

    def __call__(self, *motion: object) -> Outcome:
        if len(motion) != len(self._given):
            return None
        for array, argument in zip(self._given, motion, strict=True):
            if (
                type(argument) is not np.ndarray
                or argument.dtype != np.float64
                or argument.shape != array.shape
            ):
                return None
            array[:] = argument
        self._trigger()
        values = self._whole.copy()
        least = values[self._discriminants]
        smallest = (np.abs(values[self._pivots]) / self._typical).min(initial=np.inf)
        # sums are not finite either where numbers are finite, but beyond all use; the long way
        # knows
        if not (
            math.isfinite(self._motion.sum() + values.sum())
            and least.min(initial=1.0) >= 0.0
            and smallest > SMALLEST_PIVOT
        ):
            return None
        diagnostics = SolveDiagnostics(
            closed_forms=self._closed_forms,
            discriminants=least[None],
            smallest_pivot=np.array([smallest]),
            residuals={},
            steps=_NO_STEPS,
            finite=_FINITE,
            missed=_NONE,
        )
        return {name: values[part] for name, part in self._wanted}, diagnostics
