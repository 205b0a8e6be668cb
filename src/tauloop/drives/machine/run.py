"""Runs of a machine with its drive lines from sample to sample: as machine code, or step by step in Python."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import numpy as np

from tauloop.codegen.library import Library
from tauloop.drives.machine.source import OK, WORST, machine_source
from tauloop.drives.machine.system import MachineSystem
from tauloop.integrate.integrators import DormandPrince, Integrator
from tauloop.integrate.source import integrator_source
from tauloop.integrate.tableau import Tableau
from tauloop.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStart:
    """Where a run begins.

    Attributes:
        states: of machine and lines (n,).
        held: by the controls before their first sample (n_z,).
        q: full coordinates (n_q,).
        parameters: of the lines (n_p,), SI.
    """

    states: np.ndarray
    held: np.ndarray
    q: np.ndarray
    parameters: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineTrace:
    """What a run has done, for the samples that it reached.

    Attributes:
        states, modes, held: at each sample (N, n).
        outcome: one of the codes of `machine_source`.
        end: time that was reached, s.
        steps, events: of the integrator.
        pivot, residual: the worst on the way.
    """

    states: np.ndarray
    modes: np.ndarray
    held: np.ndarray
    outcome: int
    end: float
    steps: int
    events: int
    pivot: float
    residual: float


class MachineRunner(Protocol):
    """Runs a machine with its drive lines."""

    def __call__(self, start: RunStart, reference: np.ndarray, integrator: Integrator) -> MachineTrace:
        """The trace under a reference (N, n_u, 4): position, that before its step, speed, torque fed forward."""
        ...


class CompiledMachine:
    """The machine, its lines and their controls as one library."""

    def __init__(self, system: MachineSystem, folder: Path | None = None) -> None:
        """Compile, or find in the cache.

        Args:
            system: the equations; other values of the lines' parameters need no new compilation.
            folder: the cache; the user's own without it.

        Raises:
            EngineError: there is no compiler, or it fails.
        """
        self.system, self._folder = system, folder
        #: Compiled runs by the tableau of their integrator.
        self._compiled: dict[Tableau | None, Callable[..., int]] = {}
        self._prepare(DormandPrince())

    def _prepare(self, integrator: Integrator) -> Callable[..., int]:
        tableau = integrator.method.tableau
        if tableau not in self._compiled:
            library = Library.made(machine_source(self.system, integrator_source(tableau)), folder=self._folder)
            self._compiled[tableau] = library.function("drive_machine", "ndddddd**********", "n")
        return self._compiled[tableau]

    def __call__(self, start: RunStart, reference: np.ndarray, integrator: Integrator) -> MachineTrace:
        """Run it."""
        n, lines = len(reference), self.system.lines
        y, z, q = (np.array(part, dtype=float) for part in (start.states, start.held, start.q))
        p, reference = np.ascontiguousarray(start.parameters), np.ascontiguousarray(reference)
        ys = np.empty((n, self.system.size))
        ss = np.empty((n, sum(len(line.mode_names) for line in lines)))
        zs = np.empty((n, sum(line.held_size for line in lines)))
        worst, report = np.array([1.0, 1e300, 0.0]), np.zeros(4)
        arrays = (reference, p, q, y, z, ys, ss, zs, worst, report)
        method = integrator.method
        numbers = (method.first, method.rtol, method.atol, method.longest, float(integrator.max_steps))
        reached = self._prepare(integrator)(n, self.system.period, *numbers, *arrays)
        return MachineTrace(
            states=ys[:reached],
            modes=ss[:reached],
            held=zs[:reached],
            outcome=int(report[0]),
            end=float(report[1]),
            steps=int(report[2]),
            events=int(report[3]),
            pivot=float(worst[1]),
            residual=float(worst[2]),
        )


__all__ = ["OK", "WORST", "CompiledMachine", "MachineRunner", "MachineTrace", "RunStart"]
