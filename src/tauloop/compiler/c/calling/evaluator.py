"""Evaluation of programs: interpreted by CasADi's virtual machine, or compiled by a C compiler.

A single sample at nominal parameters and from the reference pose is evaluated without the overhead
of a batch (`SampleCall`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import field, replace
from pathlib import Path
from threading import Lock
from typing import Protocol, final

import casadi as ca
import numpy as np

from tauloop.common.errors import EngineError
from tauloop.common.records import dataclass
from tauloop.compiler.c.calling.caller import copy_arguments
from tauloop.compiler.c.calling.compiled import CompiledFunction, Continuation, compile_function
from tauloop.compiler.c.calling.compiler import TIMEOUT, Compiler
from tauloop.compiler.c.calling.embedded import EmbeddedCompiler
from tauloop.compiler.c.calling.library import WORTH_OPTIMIZING, compiler_for, is_stored_only
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

#: Number of operations above which compiling takes more than ten seconds (about 0.7 ms each).
MAX_PROGRAM_SIZE = 20_000


class Kernel(Protocol):
    """Machine code of a program for batches.

    Attributes:
        nominal: values of optional inputs by name.
    """

    nominal: Mapping[str, np.ndarray]

    @property
    def reads(self) -> Collection[str]:
        """Names of the inputs that the code reads."""
        ...

    def run(
        self, inputs: Mapping[str, np.ndarray], n: int, *, continuation: Continuation = None
    ) -> tuple[dict[str, np.ndarray], bool]:
        """Return outputs (N, n) by port, and whether all samples are within reach and regular."""
        ...


class Evaluator(ABC):
    """Strategy for running programs, with its number of threads.

    Attributes:
        threads: maximum number of threads for a batch.
        precision: precision of simulations and control loops over many initial states.
    """

    threads: int = 1
    precision: Precision = Precision.DOUBLE

    @abstractmethod
    def wants_code(self, program: Program, samples: int) -> bool:
        """Return whether a run with this number of samples justifies machine code."""

    def is_large(self, samples: float) -> bool:
        """Return whether a run with this number of samples uses the code for long runs."""
        return False

    @abstractmethod
    def kernel(self, function: CFunction, samples: float = math.inf) -> Kernel | None:
        """Return machine code for batches with a number of samples, or None if there is none."""

    @abstractmethod
    def tracker(
        self, function: CFunction, samples: float = math.inf, *, in_lanes: bool
    ) -> Tracker | None:
        """Return machine code that follows motions with this number of samples, or None."""

    @abstractmethod
    def rows(
        self,
        text: str,
        name: str,
        letters: str,
        precision: Precision = Precision.DOUBLE,
        evaluations: float = math.inf,
    ) -> RowKernel:
        """Return a kernel over rows from a text for all compilers.

        Raises:
            EngineError: there is no compiler, or the compiler fails. Kernels over rows cannot be
                interpreted.
        """


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreted(Evaluator):
    """Evaluation by CasADi's virtual machine: microseconds per sample, without a compiler."""

    def wants_code(self, program: Program, samples: int) -> bool:
        """Return False."""
        return False

    def kernel(self, function: CFunction, samples: float = math.inf) -> CompiledFunction | None:
        """Return None."""
        return None

    def tracker(
        self, function: CFunction, samples: float = math.inf, *, in_lanes: bool
    ) -> Tracker | None:
        """Return None."""
        return None

    def rows(
        self,
        text: str,
        name: str,
        letters: str,
        precision: Precision = Precision.DOUBLE,
        evaluations: float = math.inf,
    ) -> RowKernel:
        """Return machine code over rows, because only programs can be interpreted.

        Raises:
            EngineError: there is no compiler, or the compiler fails.
        """
        return default_evaluator().rows(text, name, letters, precision, evaluations)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled(Evaluator):
    """Evaluation by machine code, which a C compiler produces when a program first runs.

    The system's compiler is used for long runs; its code is cached and takes tens of nanoseconds
    per sample. The embedded compiler is used for short runs; it compiles in milliseconds, but its
    code is ten times slower. If one compiler is missing, the other is used. Without both, or if
    compiling fails, programs are interpreted; each reason is logged once as a warning.

    Attributes:
        at_least: number of samples from which the system's compiler is used; by default one.
        largest: maximum number of operations; larger programs are interpreted.
        threads: number of threads for batches and simulations; it does not affect the results.
        folder: folder of the cache; by default the user's cache.
        timeout: time limit of the compiler for one file, s.
    """

    at_least: int = 1
    largest: int = MAX_PROGRAM_SIZE
    threads: int = 1
    folder: Path | None = None
    timeout: float = TIMEOUT
    _logged: set[str] = field(default_factory=set, init=False, repr=False, compare=False)

    def wants_code(self, program: Program, samples: int) -> bool:
        """Return True for any samples, unless the program is too large."""
        return samples >= 1 and program.operations <= self.largest

    def is_large(self, samples: float) -> bool:
        """Return whether the system's compiler is used, from `at_least` samples on."""
        return samples >= self.at_least

    def kernel(self, function: CFunction, samples: float = math.inf) -> CompiledFunction | None:
        """Return machine code for batches; None, with a warning in the log, if that fails."""
        try:
            return self.build(function, samples)
        except EngineError as error:
            if is_stored_only():
                raise
            self._warn(f"running interpreted, which is tens of times slower: {error}")
            return None

    def tracker(
        self, function: CFunction, samples: float = math.inf, *, in_lanes: bool
    ) -> Tracker | None:
        """Return machine code that follows motions; None, with a logged warning, if that fails."""
        try:
            compiler = self.compiler(samples)
            return Tracker(function, self.folder, in_lanes=in_lanes, compiler=compiler)
        except EngineError as error:
            if is_stored_only():
                raise
            self._warn(
                "each sample of a motion is solved independently instead of from the previous sample, "
                f"which is slower: {error}"
            )
            return None

    def rows(
        self,
        text: str,
        name: str,
        letters: str,
        precision: Precision = Precision.DOUBLE,
        evaluations: float = math.inf,
    ) -> RowKernel:
        """Return machine code over rows.

        Raises:
            EngineError: there is no compiler, or the compiler fails.
        """
        compiler = self.compiler(evaluations)
        return CompiledRows(text, name, letters, self.threads, self.folder, precision, compiler)

    def _warn(self, text: str) -> None:
        if text not in self._logged:
            self._logged.add(text)
            import logging  # the import takes milliseconds

            logging.getLogger("tauloop").warning("%s", text)

    def build(self, function: CFunction, samples: float = math.inf) -> CompiledFunction:
        """Compile a function for runs with this number of samples, unless it is in the cache.

        Returns:
            The compiled function.

        Raises:
            EngineError: there is no compiler, the compiler fails, or the cache cannot be written.
        """
        compiler = self.compiler(samples)
        return compile_function(function, compiler, threads=self.threads, folder=self.folder)

    def compiler(self, evaluations: float = math.inf) -> Compiler | EmbeddedCompiler:
        """Return the compiler for a run; the system's has the time limit of this evaluator.

        Raises:
            EngineError: there is no compiler.
        """
        compiler = compiler_for(evaluations, self.at_least)
        if isinstance(compiler, EmbeddedCompiler):
            return compiler
        return replace(compiler, timeout=self.timeout)


def default_evaluator(*, threads: int = 1, folder: Path | None = None) -> Compiled:
    """Return the default evaluator, which uses the faster compiler for each run."""
    return Compiled(at_least=WORTH_OPTIMIZING, threads=threads, folder=folder)


def run_kernel(
    kernel: Kernel, inputs: Mapping[str, np.ndarray], n: int
) -> tuple[dict[str, np.ndarray], SolveDiagnostics]:
    """Return outputs by name and the diagnostics of a run of machine code."""
    outputs, is_sound = kernel.run(inputs, n)
    return outputs, compiled_diagnostics(outputs.pop("health"), is_sound)


def interpreted_run(
    program: Program, inputs: Mapping[str, np.ndarray], n: int
) -> tuple[dict[str, np.ndarray], SolveDiagnostics]:
    """Return outputs by name and the diagnostics of every loop."""
    results, diagnostics = program.run(
        {name: np.ascontiguousarray(array) for name, array in inputs.items()}, n
    )
    return results, solve_diagnostics(program, diagnostics)


class BatchRuns:
    """Runs of programs, with machine code created once per program and set of outputs."""

    def __init__(self, evaluator: Evaluator) -> None:
        """Store the evaluator."""
        self._evaluator = evaluator
        self._kernels: dict[tuple[Program, tuple[str, ...] | None, bool], Kernel | None] = {}

    def __call__(
        self,
        program: Program,
        inputs: Mapping[str, np.ndarray],
        n: int,
        outputs: tuple[str, ...] | None = None,
        work: int = 0,
    ) -> tuple[dict[str, np.ndarray], SolveDiagnostics]:
        """Return the outputs by name (all, or at least the requested ones) and the diagnostics.

        Args:
            program: program to run.
            inputs: arrays (N, n), already checked.
            n: number of samples.
            outputs: names of the requested outputs; the default is all.
            work: number of samples of the whole run, of which these samples are a part.
        """
        samples = max(n, work)
        key = program, outputs, self._evaluator.is_large(samples)
        if key not in self._kernels and self._evaluator.wants_code(program, samples):
            function = c_function(program, inputs, outputs)
            self._kernels[key] = self._evaluator.kernel(function, samples)
        kernel = self._kernels.get(key)
        if kernel is None:
            return interpreted_run(program, inputs, n)
        return run_kernel(kernel, inputs, n)


def c_function(
    program: Program, inputs: Mapping[str, np.ndarray], outputs: tuple[str, ...] | None = None
) -> CFunction:
    """Return the C function of a program with all or some outputs; `inputs` define port sizes."""
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
    # `start` comes after the motion, which callers copy to the front as one block
    needed.sort(key=lambda name: name == "start")
    results = tuple(outputs or program.outputs)
    symbol = c_name(program.name)
    if symbol in (*needed, *results):  # In C, a parameter of this name hides the function.
        symbol = f"{symbol}_function"
    return CFunction(
        name=symbol,
        program=program,
        inputs=tuple(CPort(name=name, size=inputs[name].shape[1]) for name in needed),
        outputs=tuple(CPort(name=name, size=sizes[name]) for name in results),
    )


#: Value that compiled code reports as the smallest discriminant if an input or a result is not
#: finite or too large.
NOT_FINITE = -1e300


def reads_start(program: Program, outputs: tuple[str, ...]) -> bool:
    """Return whether outputs depend on the start of Newton's method or of angles' revolutions."""
    return any("start" in _read(step, program, set(outputs)) for step in program.steps)


def _read(step: Step, program: Program, wanted: set[str]) -> tuple[str, ...]:
    """Return the names that a step reads; `start` only if an output needs it."""
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
    """Return diagnostics from the four numbers that compiled code reports."""
    least, pivot, residual, steps = numbers.T
    if not is_sound:
        least = np.where(np.isnan(least), -1.0, least)
        pivot = np.where(np.isnan(pivot), 0.0, pivot)
        residual = np.where(np.isfinite(residual), residual, np.inf)
    return SolveDiagnostics(
        closed_forms=(),
        discriminants=least[:, None],
        smallest_pivot=pivot,
        residuals={"loops": residual},
        steps=steps,
        finite=np.broadcast_to(True, len(steps)) if is_sound else ~(least <= NOT_FINITE),
        missed=np.broadcast_to(0.0, len(steps)),  # the residual contains it
        is_sound=is_sound,
    )


#: Outputs by name (n,) and the diagnostics of one sample. None if the sample failed; the caller
#: then runs a batch of one sample, which recovers from the failure or explains it.
Outcome = tuple[dict[str, np.ndarray], SolveDiagnostics] | None
SampleCall = Callable[..., Outcome]


# diagnostics (1,) of one sound sample
_FINITE = np.ones(1, dtype=bool)
_NO_VIOLATION = np.zeros(1)
_NO_STEPS = np.zeros(1)
for _array in (_FINITE, _NO_VIOLATION, _NO_STEPS):
    _array.flags.writeable = False


def nothing(*motion: object) -> None:
    """Return None; used as the evaluation of one sample if none is available."""


def compiled_once(kernel: CompiledFunction, names: tuple[str, ...]) -> SampleCall:
    """Return the evaluation of one sample by machine code.

    Args:
        kernel: machine code with its nominal values.
        names: names of the inputs that are given.
    """
    call = kernel.checked(names, nothing, whole=True)
    ports = kernel.function.arguments[len(kernel.function.inputs) :]
    ends = np.cumsum([port.size for port in ports]).tolist()
    parts = [
        (port.name, slice(end - port.size, end))
        for port, end in zip(ports[:-1], ends, strict=False)
    ]
    first = ends[-2]  # start of the health

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
            missed=_NO_VIOLATION,
        )
        return {name: whole[part] for name, part in parts}, diagnostics

    return once


def interpreted_once(
    program: Program, names: tuple[str, ...], nominal: Mapping[str, np.ndarray]
) -> SampleCall:
    """Return the evaluation of one sample by CasADi; `nothing` for programs that iterate.

    Args:
        program: program to run.
        names: names of the inputs that are given.
        nominal: values of the other inputs, and placeholders with the sizes of the given inputs.
    """
    step, *others = program.steps
    if others or not isinstance(step, Evaluate):
        return nothing
    return _Interpreted(program, step, names, nominal)


class _Interpreted:
    """Straight-line code that CasADi evaluates in place on two arrays, inputs and outputs."""

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
        self._lock = Lock()
        self._whole = np.zeros(sum(sizes))
        ends = np.cumsum(sizes).tolist()
        parts = {
            name: slice(end - size, end)
            for name, end, size in zip(step.outputs, ends, sizes, strict=True)
        }
        # the buffer's views must not outlive the arrays
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
        with self._lock:  # the arrays are those of all threads
            values = self._values(motion)
        # a sum of very large finite terms may overflow too; then the caller runs a batch
        if values is None or not math.isfinite(values.sum()):
            return None
        least = values[self._discriminants]
        smallest = (np.abs(values[self._pivots]) / self._typical).min(initial=np.inf)
        if not (least.min(initial=1.0) >= 0.0 and smallest > SMALLEST_PIVOT):
            return None
        diagnostics = SolveDiagnostics(
            closed_forms=self._closed_forms,
            discriminants=least[None],
            smallest_pivot=np.array([smallest]),
            residuals={},
            steps=_NO_STEPS,
            finite=_FINITE,
            missed=_NO_VIOLATION,
        )
        return {name: values[part] for name, part in self._wanted}, diagnostics

    def _values(self, motion: tuple[object, ...]) -> np.ndarray | None:
        """Return a copy of all outputs; None unless the motion consists of finite plain arrays."""
        if not copy_arguments(motion, self._given):
            return None
        if not math.isfinite(self._motion.sum()):
            return None
        self._trigger()
        return self._whole.copy()
