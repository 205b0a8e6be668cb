"""How programs are evaluated: interpreted by CasADi's virtual machine, or compiled by the system's C compiler."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import final

import casadi as ca
import numpy as np

from tauloop.codegen.compiled import CompiledFunction, compile_function
from tauloop.codegen.signature import CPort
from tauloop.codegen.source import CFunction, c_name
from tauloop.codegen.straight import instructions
from tauloop.codegen.tracking import Tracker
from tauloop.errors import EngineError
from tauloop.programs.bounded import Bounded
from tauloop.programs.program import Evaluate, Newton, Program, Step
from tauloop.programs.state import Health
from tauloop.records import dataclass

_LOGGER = logging.getLogger("tauloop")
#: Samples from which on compiling is sooner done than interpreting: about 1 ms against 10 ns for an operation.
WORTH_COMPILING = 100_000
#: Operations above which compilers take more than some ten seconds, at about 0.7 ms for each.
LARGEST_PROGRAM = 20_000


class Evaluator(ABC):
    """Decides how programs are run."""

    @abstractmethod
    def wants_code(self, program: Program, samples: int) -> bool:
        """Whether a run of so many samples is worth machine code."""

    @abstractmethod
    def kernel(self, function: CFunction) -> CompiledFunction | None:
        """Machine code for batches, or None where there is none to be had."""

    @abstractmethod
    def tracker(self, function: CFunction, *, in_lanes: bool) -> Tracker | None:
        """Machine code that follows motions, in lanes or sample by sample; None where there is none to be had."""


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


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled(Evaluator):
    """Machine code from the system's C compiler, kept in a cache: tens of nanoseconds a sample.

    What cannot be compiled (no compiler, or it fails) is interpreted, with a warning in the log: one for each reason.

    Attributes:
        at_least: samples below which a run is interpreted all the same; zero compiles always.
        largest: programs of more operations are interpreted all the same.
        threads: whether batches are shared out over the processor's cores.
        folder: the cache; the user's own without it.
    """

    at_least: int = WORTH_COMPILING
    largest: int = LARGEST_PROGRAM
    threads: bool = False
    folder: Path | None = None
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
            return Tracker(function, self.folder, in_lanes=in_lanes)
        except EngineError as error:
            self._warn(f"the samples of a motion are reached one by one, not followed: {error}")
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
        return compile_function(function, threads=self.threads, folder=self.folder)


def run_kernel(
    kernel: CompiledFunction, inputs: Mapping[str, np.ndarray], n: int
) -> tuple[dict[str, np.ndarray], Health]:
    """Outputs by name and the evidence; memory stays within inputs and outputs."""
    outputs = kernel.batch(inputs, n)
    return outputs, compiled_health(outputs.pop("health"))


def c_function(program: Program, inputs: Mapping[str, np.ndarray], outputs: tuple[str, ...] | None = None) -> CFunction:
    """The C function of a program with all its outputs, or some; `inputs` tell the sizes of the ports."""
    produced = {"health"}
    needed: list[str] = []
    sizes: dict[str, int] = {}
    wanted = set(program.outputs if outputs is None else outputs)
    for step in program.steps:
        for name in (*_read(step, program, wanted), *((step.start,) if isinstance(step, Newton) else ())):
            if name not in produced and name not in needed:
                needed.append(name)
        if isinstance(step, Newton | Bounded):
            produced.add(step.solution)
        else:
            produced |= set(step.outputs)
            sizes |= dict(zip(step.outputs, step.function.output_sizes, strict=True))
    needed.sort(key=lambda name: name == "start")  # behind the motion, which callers put in front in one piece
    return CFunction(
        name=c_name(program.name),
        program=program,
        inputs=tuple(CPort(name=name, size=inputs[name].shape[1]) for name in needed),
        outputs=tuple(CPort(name=name, size=sizes[name]) for name in outputs or program.outputs),
    )


#: The least discriminant that compiled code reports where an input or a result is not finite, or beyond all bounds.
NOT_FINITE = -1e300


def reads_start(program: Program, outputs: tuple[str, ...]) -> bool:
    """Whether some outputs depend on start values: of Newton's method, or for the turns of angles."""
    return any("start" in _read(step, program, set(outputs)) for step in program.steps)


def _read(step: Step, program: Program, wanted: set[str]) -> tuple[str, ...]:
    """Names that a step reads; `start`, which also tells the turns of angles, only where an output wants it."""
    unused = set(program.outputs) - wanted
    if not isinstance(step, Evaluate) or "start" not in step.inputs or not unused & set(step.outputs):
        return step.inputs
    code = instructions(step.function.function, [name not in unused for name in step.outputs])
    ports = {one.port[0] for one in code if one.operation == ca.OP_INPUT and one.port is not None}
    return tuple(name for i, name in enumerate(step.inputs) if name != "start" or i in ports)


def compiled_health(numbers: np.ndarray) -> Health:
    """Evidence from the four numbers that compiled code reports."""
    least, pivot, residual, iterations = numbers.T
    return Health(
        closed_forms=(),
        discriminants=np.where(np.isnan(least), -1.0, least)[:, None],
        smallest_pivot=np.where(np.isnan(pivot), 0.0, pivot),
        residuals={"loops": np.where(np.isfinite(residual), residual, np.inf)},
        iterations=iterations.astype(int),
        finite=~(least <= NOT_FINITE),
        missed=np.zeros(len(iterations)),  # the residual holds it
    )
