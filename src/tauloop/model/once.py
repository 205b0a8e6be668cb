"""One sample of a program at nominal parameters from the reference pose: the short way, without a batch around it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from tauloop.codegen.compiled import CompiledFunction
from tauloop.programs.limits import SMALLEST_PIVOT
from tauloop.programs.program import Evaluate, Program
from tauloop.programs.state import Health

#: Outputs by name (n,) and the evidence; None where the long way must say what is wrong, or knows how to go on.
Outcome = tuple[dict[str, np.ndarray], Health] | None
Once = Callable[..., Outcome]


_FINITE, _NONE, _NO_STEPS = np.ones(1, dtype=bool), np.zeros(1), np.zeros(1, dtype=int)
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
    parts = [(port.name, slice(end - port.size, end)) for port, end in zip(ports[:-1], ends, strict=False)]
    first = ends[-2]  # of the health

    def once(*motion: object) -> Outcome:
        whole = call(*motion)
        if whole is None:
            return None
        evidence = Health(
            closed_forms=(),
            discriminants=whole[first : first + 1].reshape(1, 1),
            smallest_pivot=whole[first + 1 : first + 2],
            residuals={"loops": whole[first + 2 : first + 3]},
            iterations=whole[first + 3 :].astype(int),
            finite=_FINITE,
            missed=_NONE,
        )
        return {name: whole[part] for name, part in parts}, evidence

    return once


def interpreted_once(program: Program, names: tuple[str, ...], nominal: Mapping[str, np.ndarray]) -> Once:
    """The short way through CasADi's virtual machine; there is none for programs that iterate.

    Args:
        program: what is run.
        names: of the inputs that are given.
        nominal: values of the other inputs, and anything of the right size for those that are given.
    """
    (step, *others) = program.steps
    return nothing if others or not isinstance(step, Evaluate) else _Interpreted(program, step, names, nominal)


class _Interpreted:
    """One stretch of straight-line code between two arrays, which CasADi's buffer reads and writes in place."""

    def __init__(
        self, program: Program, step: Evaluate, names: tuple[str, ...], nominal: Mapping[str, np.ndarray]
    ) -> None:
        sizes = step.function.output_sizes
        self._arrays = {name: np.array(nominal[name], dtype=float) for name in step.inputs}
        size = [len(nominal[name]) for name in names]
        self._motion = np.zeros(sum(size))
        self._given = np.split(self._motion, np.cumsum(size)[:-1])
        self._arrays |= {name: part for name, part in zip(names, self._given, strict=True) if name in self._arrays}
        self._whole = np.zeros(sum(sizes))
        ends = np.cumsum(sizes).tolist()
        parts = {name: slice(end - size, end) for name, end, size in zip(step.outputs, ends, sizes, strict=True)}
        self._buffer, self._trigger = step.function.function.buffer()  # which live no longer than the former
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
            if type(argument) is not np.ndarray or argument.dtype != np.float64 or argument.shape != array.shape:
                return None
            array[:] = argument
        self._trigger()
        found = self._whole.copy()
        least = found[self._discriminants]
        smallest = (np.abs(found[self._pivots]) / self._typical).min(initial=np.inf)
        # sums are not finite either where numbers are finite, but beyond all use; the long way knows
        if not (
            math.isfinite(self._motion.sum() + found.sum())
            and least.min(initial=1.0) >= 0.0
            and smallest > SMALLEST_PIVOT
        ):
            return None
        evidence = Health(
            closed_forms=self._closed_forms,
            discriminants=least[None],
            smallest_pivot=np.array([smallest]),
            residuals={},
            iterations=_NO_STEPS,
            finite=_FINITE,
            missed=_NONE,
        )
        return {name: found[part] for name, part in self._wanted}, evidence
