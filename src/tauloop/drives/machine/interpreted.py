"""A machine with its drive lines, stepped in Python: without a compiler, and to check machine code against."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tauloop.assembly.batch import BatchFunction
from tauloop.drives.machine.run import MachineTrace, RunStart
from tauloop.drives.machine.source import CHATTERING, OK, TOO_LONG, TOO_SMALL, UNHEALTHY
from tauloop.drives.machine.system import LineSystem, MachineSystem
from tauloop.integrate.integrators import Integrator
from tauloop.integrate.interpreted import InterpretedProblem, Run, Stepped
from tauloop.programs.state import CONVERGED, SMALLEST_PIVOT, health
from tauloop.records import dataclass

_OUTCOMES = {
    Stepped.STEPPED: OK,
    Stepped.UNHEALTHY: UNHEALTHY,
    Stepped.TOO_SMALL: TOO_SMALL,
    Stepped.ASTRAY: UNHEALTHY,
    Stepped.CROWDED: CHATTERING,
}


class InterpretedMachine:
    """What `machine.c` does, one step after the other."""

    def __init__(self, system: MachineSystem) -> None:
        """Keep the equations."""
        self._system = system
        self._calls = [_Calls.of(line) for line in system.lines]

    def __call__(self, start: RunStart, reference: np.ndarray, integrator: Integrator) -> MachineTrace:
        """Run it."""
        method = integrator.method
        machine = _DrivenMachine(self._system, self._calls, start, integrator)
        run = Run(
            machine,
            method.tableau,
            start.states,
            modes=np.array([value for line in self._system.lines for value in line.mode_starts]),
            guess=start.q,
            step=method.first,
            rtol=method.rtol,
            atol=method.atol,
            longest=method.longest,
        )
        outcome, kept = OK, []
        for k in range(len(reference)):
            machine.sample(run, reference[k])
            if not run.agree():
                outcome = UNHEALTHY
            kept.append((run.y.copy(), run.s.copy(), machine.z.copy()))
            end = (k + 1) * self._system.period
            while k + 1 < len(reference) and run.time < end and outcome == OK:
                outcome = _OUTCOMES[run.next(end)]
                if outcome == OK and run.steps + run.rejected >= integrator.max_steps:
                    outcome = TOO_LONG
            if outcome != OK:
                break
        states, modes, held = (np.array(part) for part in zip(*kept, strict=True))
        return MachineTrace(
            states=states,
            modes=modes,
            held=held,
            outcome=outcome,
            end=run.time,
            steps=run.steps + run.rejected,
            events=run.events,
            pivot=machine.pivot,
            residual=machine.residual,
        )


@dataclass(frozen=True, slots=True)
class _Calls:
    """The functions of one line on rows of numbers."""

    rate: BatchFunction
    reset: BatchFunction
    hold: BatchFunction

    @classmethod
    def of(cls, line: LineSystem) -> _Calls:
        return cls(BatchFunction(line.rate), BatchFunction(line.reset), BatchFunction(line.hold))


class _DrivenMachine(InterpretedProblem):
    """The equations of machine and lines, and what their controls hold."""

    def __init__(self, system: MachineSystem, calls: list[_Calls], start: RunStart, integrator: Integrator) -> None:
        self.system, self.calls, self.p = system, calls, start.parameters
        self.z = start.held.copy()
        self.inputs = np.zeros((len(system.lines), 6))
        self.inputs[:, 3] = integrator.method.atol
        self.pivot, self.residual = 1e300, 0.0

    def _parts(self) -> Iterator[tuple[int, slice, slice, slice]]:
        """Index of each line, and its places among states (with work and loss), modes and held numbers."""
        y, s, z = self.system.machine_size, 0, 0
        for i, line in enumerate(self.system.lines):
            ends = (y + len(line.start) + 2, s + len(line.mode_names), z + line.held_size)
            yield i, slice(y, ends[0]), slice(s, ends[1]), slice(z, ends[2])
            y, s, z = ends

    def _loads(self, run: Run, y: np.ndarray) -> np.ndarray:
        """Positions and speeds of the actuators (n_u, 2)."""
        plant = self.system.plant
        n_p = plant.platform.ports.position.size
        position, velocity = y[:n_p], y[n_p : n_p + plant.platform.ports.velocity.size]
        state = plant.platform.evaluate(position[None], velocity[None], start=run.guess)
        speeds = plant.assembly.loops.transmission @ np.asarray(state.v)[0]
        return np.stack([plant.actuator_position(state.q)[0], speeds], axis=1)

    def _arguments(self, i: int, x: np.ndarray, load: np.ndarray, s: np.ndarray, z: np.ndarray) -> list[np.ndarray]:
        x = x[: len(self.system.lines[i].start)]
        return [row[None] for row in (x, load[i], s, z, self.inputs[i], self.p)]

    def rate(self, run: Run, time: float, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
        """Rates of all states, and guards."""
        load = self._loads(run, y)
        dy, g, u = np.empty_like(y), np.empty_like(run.s), np.empty(len(self.calls))
        for i, at_y, at_s, at_z in self._parts():
            found = self.calls[i].rate(self._arguments(i, y[at_y], load, run.s[at_s], self.z[at_z]), 1)
            dy[at_y], g[at_s], u[i] = found[0][0], found[1][0], found[2][0, 0]
        inputs, at = {"force": u[None], "start": run.guess[None], "theta": np.empty((1, 0))}, 0
        for name, size in self.system.rate.state:
            inputs[name] = y[None, at : at + size]
            at += size
        outputs, evidence = self.system.rate.program.run(inputs, 1)
        judged = health(self.system.rate.program, evidence)
        dy[: self.system.machine_size] = outputs["rate"][0]
        pivot = float(judged.smallest_pivot.min())
        residual = max((float(np.abs(r).max()) for r in judged.residuals.values()), default=0.0)
        good = bool(judged.is_reached.all()) and pivot > SMALLEST_PIVOT and residual < CONVERGED
        if good:
            run.guess = outputs["all_q"][0]
            self.pivot, self.residual = min(self.pivot, pivot), max(self.residual, residual)
        return dy, g, good

    def reset(self, run: Run, y: np.ndarray) -> np.ndarray:
        """The states of the lines where their modes prescribe them."""
        load, y = self._loads(run, y), y.copy()
        for i, at_y, at_s, at_z in self._parts():
            arguments = self._arguments(i, y[at_y], load, run.s[at_s], self.z[at_z])
            size = len(self.system.lines[i].start)
            y[at_y.start : at_y.start + size] = self.calls[i].reset(arguments, 1)[0][0]
        return y

    def back(self, run: Run, y: np.ndarray) -> tuple[np.ndarray, int]:
        """Quaternions of the machine, back to unit length."""
        y = y.copy()
        for k in self.system.rate.quaternions:
            y[k : k + 4] /= np.linalg.norm(y[k : k + 4])
        return y, int(bool(self.system.rate.quaternions))

    def sample(self, run: Run, reference: np.ndarray) -> None:
        """Measure, and find the torques of one sample."""
        self.inputs[:, [0, 1, 4, 5]] = reference
        load = self._loads(run, run.y)
        for i, at_y, at_s, at_z in self._parts():
            arguments = self._arguments(i, run.y[at_y], load, run.s[at_s], self.z[at_z])
            self.z[at_z] = self.calls[i].hold(arguments, 1)[0][0]
