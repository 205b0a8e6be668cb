"""A machine with its drive lines, stepped in Python: without a compiler, and to check machine code against."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tauloop.assembly.batch import BatchFunction
from tauloop.drives.interpreted import HybridRun
from tauloop.drives.machine_run import MachineTrace, Start
from tauloop.drives.machine_source import CHATTERING, OK, SMALLEST_STEP, TOO_LONG, TOO_SMALL, UNHEALTHY
from tauloop.drives.machine_system import LineSystem, MachineSystem
from tauloop.drives.simulation import Stepping
from tauloop.programs.state import CONVERGED, SMALLEST_PIVOT, health


class InterpretedMachine:
    """The steps of `tauloop.drives.machine_source`, one by one."""

    def __init__(self, system: MachineSystem) -> None:
        """Keep the equations."""
        self._system = system
        self._calls = [_Calls.of(line) for line in system.lines]

    def __call__(self, start: Start, reference: np.ndarray, stepping: Stepping) -> MachineTrace:
        """Run it."""
        run = _Run(self._system, self._calls, start, stepping)
        for k in range(len(reference)):
            run.sample(reference[k])
            if k + 1 < len(reference):
                run.advance()
            if run.outcome != OK:
                break
        return run.trace()


@dataclass(frozen=True, slots=True)
class _Calls:
    """The functions of one line on rows of numbers."""

    rate: BatchFunction
    reset: BatchFunction
    hold: BatchFunction

    @classmethod
    def of(cls, line: LineSystem) -> _Calls:
        return cls(BatchFunction(line.rate), BatchFunction(line.reset), BatchFunction(line.hold))


class _Run(HybridRun):
    """State of one run."""

    def __init__(self, system: MachineSystem, calls: list[_Calls], start: Start, stepping: Stepping) -> None:
        modes = np.array([value for line in system.lines for value in line.mode_starts])
        super().__init__(start.states.copy(), modes, 1e-2 * system.period, stepping.rtol, stepping.atol)
        self.system, self.calls, self.stepping = system, calls, stepping
        self.z, self.q, self.p = start.held.copy(), start.q.copy(), start.parameters
        self.inputs = np.zeros((len(system.lines), 6))
        self.inputs[:, 3] = stepping.atol
        self.time, self.outcome, self.pivot, self.residual = 0.0, OK, 1e300, 0.0
        self.kept: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    def trace(self) -> MachineTrace:
        """What was reached."""
        states, modes, held = (np.array(part) for part in zip(*self.kept, strict=True))
        return MachineTrace(
            states=states,
            modes=modes,
            held=held,
            outcome=self.outcome,
            end=self.time,
            steps=self.steps,
            events=self.events,
            pivot=self.pivot,
            residual=self.residual,
        )

    # Equations

    def _parts(self) -> Iterator[tuple[int, slice, slice, slice]]:
        """Index of each line, and its places among states (with work and loss), modes and held numbers."""
        y, s, z = self.system.machine_size, 0, 0
        for i, line in enumerate(self.system.lines):
            ends = (y + len(line.start) + 2, s + len(line.mode_names), z + line.held_size)
            yield i, slice(y, ends[0]), slice(s, ends[1]), slice(z, ends[2])
            y, s, z = ends

    def _loads(self, y: np.ndarray) -> np.ndarray:
        """Positions and speeds of the actuators (n_u, 2)."""
        plant = self.system.plant
        n_p = plant.platform.entry.position.size
        position, velocity = y[:n_p], y[n_p : n_p + plant.platform.entry.velocity.size]
        state = plant.platform.evaluate(position[None], velocity[None], start=self.q)
        speeds = plant.assembly.loops.transmission @ np.asarray(state.v)[0]
        return np.stack([plant.actuator_position(state.q)[0], speeds], axis=1)

    def _arguments(self, i: int, x: np.ndarray, load: np.ndarray, s: np.ndarray, z: np.ndarray) -> list[np.ndarray]:
        x = x[: len(self.system.lines[i].start)]
        return [row[None] for row in (x, load[i], s, z, self.inputs[i], self.p)]

    def rates(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rates of all states, and guards."""
        load = self._loads(y)
        dy, g, u = np.empty_like(y), np.empty_like(self.s), np.empty(len(self.calls))
        for i, at_y, at_s, at_z in self._parts():
            found = self.calls[i].rate(self._arguments(i, y[at_y], load, self.s[at_s], self.z[at_z]), 1)
            dy[at_y], g[at_s], u[i] = found[0][0], found[1][0], found[2][0, 0]
        inputs, at = {"force": u[None], "start": self.q[None], "theta": np.empty((1, 0))}, 0
        for name, size in self.system.rate.state:
            inputs[name] = y[None, at : at + size]
            at += size
        outputs, evidence = self.system.rate.program.run(inputs, 1)
        judged = health(self.system.rate.program, evidence)
        dy[: self.system.machine_size] = outputs["rate"][0]
        pivot = float(judged.smallest_pivot.min())
        residual = max((float(np.abs(r).max()) for r in judged.residuals.values()), default=0.0)
        self.healthy = bool(judged.is_reached.all()) and pivot > SMALLEST_PIVOT and residual < CONVERGED
        if self.healthy:
            self.q = outputs["all_q"][0]
            self.pivot, self.residual = min(self.pivot, pivot), max(self.residual, residual)
        return dy, g

    def reset(self) -> None:
        """Put the states of the lines where their modes prescribe them."""
        load = self._loads(self.y)
        for i, at_y, at_s, at_z in self._parts():
            arguments = self._arguments(i, self.y[at_y], load, self.s[at_s], self.z[at_z])
            size = len(self.system.lines[i].start)
            self.y[at_y.start : at_y.start + size] = self.calls[i].reset(arguments, 1)[0][0]

    def normalise(self) -> None:
        """Quaternions of the machine, back to unit length."""
        for k in self.system.rate.quaternions:
            self.y[k : k + 4] /= np.linalg.norm(self.y[k : k + 4])

    # Time

    def sample(self, reference: np.ndarray) -> None:
        """Measure, find the torques of one sample, and keep the state."""
        self.inputs[:, [0, 1, 4, 5]] = reference
        load = self._loads(self.y)
        for i, at_y, at_s, at_z in self._parts():
            found = self.calls[i].hold(self._arguments(i, self.y[at_y], load, self.s[at_s], self.z[at_z]), 1)
            self.z[at_z] = found[0][0]
        self.agree()
        self.kept.append((self.y.copy(), self.s.copy(), self.z.copy()))

    def advance(self) -> None:
        """Integrate to the next sample."""
        t, period, begin = 0.0, self.system.period, self.time
        while t < period and self.outcome == OK:
            if self.steps >= self.stepping.max_steps:
                self.outcome = TOO_LONG
                return
            is_last = t + 1.01 * self.h >= period
            step = self.attempt(period - t if is_last else self.h)
            if step is None:
                if self.h < SMALLEST_STEP:
                    self.outcome = TOO_SMALL if self.healthy else UNHEALTHY
                continue
            self.take(step, is_last=is_last)
            t = period if is_last and not step.is_event else t + step.x * step.taken
            self.time = begin + t
            if step.is_event:
                if self.crowds:
                    self.outcome = CHATTERING
                self.agree()
