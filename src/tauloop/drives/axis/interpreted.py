"""Runs of a single drive line in Python with its criteria: equal to the compiled ones, but slow."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tauloop.drives.axis.source import MARKS, REPORT
from tauloop.drives.criteria import Outcome
from tauloop.drives.equations.system import INPUTS, AxisSystem
from tauloop.integrate.integrators import Integrator
from tauloop.integrate.interpreted import Run, StepOutcome
from tauloop.integrate.system import HybridSystem, RoutineProblem

#: As in `axis.c`; and halvings that find where the judged position passes a level or turns.
FAR, HUGE, LATE, HALVINGS = 1e3, 1e12, 0.75, 50


class InterpretedAxis:
    """What the compiled library does, one step after the other."""

    def __init__(self, system: AxisSystem, routines: HybridSystem) -> None:
        """Keep the equations."""
        self._system, self._routines = system, routines

    def run(
        self,
        parameters: np.ndarray,
        fixed: np.ndarray,
        integrator: Integrator,
        times: np.ndarray,
        kept: tuple[np.ndarray, np.ndarray, np.ndarray],
        happened: np.ndarray,
        marks: np.ndarray | None = None,
    ) -> np.ndarray:
        """Reports (N, k) of runs one after the other.

        Args:
            parameters: (N, n_p).
            fixed: figures of each run (N, 8), as the library takes them.
            integrator: of the equations.
            times: at which the states of a run are kept (T,).
            kept: takes states, modes and held numbers (T, n).
            happened: takes number, time and state of events (most, 2 + n); none where it is empty.
            marks: takes the states (N, 5, n) at the places `MARKS`.
        """
        reports = np.empty((len(parameters), len(REPORT)))
        for i, (p, f) in enumerate(zip(parameters, fixed, strict=True)):
            step = _Step(self._system, self._routines, p, f, integrator)
            reports[i] = step.to_the_end(times, kept)
            if marks is not None:
                step.marks["last"] = step.run.y
                for name, states in step.marks.items():
                    marks[i, MARKS.index(name)] = states
            if len(happened):
                happened[: len(step.happened)] = step.happened[: len(happened)]
        return reports


class _Step:
    """One step of the reference, with the criteria on the way."""

    def __init__(
        self,
        system: AxisSystem,
        routines: HybridSystem,
        p: np.ndarray,
        fixed: np.ndarray,
        integrator: Integrator,
    ) -> None:
        method, self.most = integrator.method, integrator.max_steps
        self.system, self.line = system, RoutineProblem(routines, p, np.zeros(routines.held))
        self.inputs, self.z = np.zeros(len(INPUTS)), self.line.arrays["z"]
        self.line.arrays |= {"in": self.inputs, "held": self.z}
        self.run = Run(
            self.line, method, np.zeros(routines.states), modes=np.array(system.mode_starts)
        )
        (
            self.factor,
            self.band,
            self.period,
            self.before,
            self.to,
            self.load,
            self.load_time,
            self.duration,
        ) = fixed
        self.inputs[[0, 1, 3]] = self.to, self.before, method.atol
        self.n_q, self.size = system.coordinates, len(system.state_names)
        self.rise_start = self.rise_end = -1.0
        self.overshoot = self.settled_at = 0.0
        self.lowest, self.highest = np.inf, -np.inf
        self.inside = abs(self.before - self.to) <= self.band
        self.happened: list[np.ndarray] = []
        self.marks: dict[str, np.ndarray] = {}

    def to_the_end(
        self, times: np.ndarray, kept: tuple[np.ndarray, np.ndarray, np.ndarray]
    ) -> np.ndarray:
        """Return the report of the run (k,)."""
        run = self.run
        tick, sample, out = 1, 0, self.system.output
        outcome = int(Outcome.SUCCESS)
        size = abs(self.to - self.before) or 1.0
        if self.load_time <= 0:
            self.inputs[2] = self.load
        if self.period > 0:
            self.line.sample(run)
        while True:
            if self.system.watched and not run.is_known:
                outcome = self._look()
            if outcome != Outcome.SUCCESS or run.time >= self.duration:
                break
            limit = self.duration
            if run.time < self.load_time < limit:
                limit = self.load_time
            if self.period > 0 and tick * self.period < limit:
                limit = tick * self.period
            if run.steps + run.rejected >= self.most:
                outcome = Outcome.MAX_STEPS
                break
            code = run.next(limit)
            if code != StepOutcome.SUCCESS:
                outcome = Outcome.CHATTERING if code == StepOutcome.CHATTERING else Outcome.DIVERGED
                break
            self._watch()
            while sample < len(times) and times[sample] <= run.time:
                at = (times[sample] - run.origin) / run.length if run.length > 0 else 0.0
                for array, row in zip(kept, (run.along(at), run.s, self.z), strict=True):
                    array[sample] = row
                sample += 1
            if (
                np.abs(run.y[: self.size]).max() > HUGE
                or abs(self.factor * run.y[out] - self.to) > FAR * size
            ):
                outcome = Outcome.DIVERGED
                break
            if run.time >= self.load_time and self.inputs[2] != self.load:
                self.inputs[2], run.is_known = self.load, False
            if self.period > 0 and run.time >= tick * self.period:
                self.line.sample(run)
                tick, run.is_known = tick + 1, False
        return self._report(outcome)

    def _look(self) -> int:
        """Add events after a cut step and at jumps of a force or the control."""
        run, watched, outcome = self.run, self.system.watched, Outcome.SUCCESS
        before = run.s
        run.agree()
        flips = (run.s - before)[-len(watched) :]
        for i, (event, flip) in enumerate(zip(watched, flips, strict=True)):
            if run.steps and flip * event.direction > 0:
                self.happened.append(np.array([i, run.time, *run.y]))
                outcome = Outcome.EVENT if event.is_terminal else outcome
        return outcome

    def _report(self, outcome: int) -> np.ndarray:
        settled = outcome == Outcome.SUCCESS and self.inside
        risen = self.rise_start >= 0 and self.rise_end >= 0
        rise = 0.0 if self.before == self.to else self.duration
        if risen:
            rise = self.rise_end - self.rise_start
        values = {
            "rise_time": rise,
            "overshoot": self.overshoot,
            "settling_time": self.settled_at if settled else self.duration,
            "energy": self.run.y[self.size - 1],
            "final_error": abs(self.factor * self.run.y[self.system.output] - self.to),
            "lowest": self.lowest,
            "highest": self.highest,
            "settled": settled,
            "outcome": outcome,
            "end": self.run.time,
            "steps": self.run.steps + self.run.rejected,
            "events": self.run.events,
            "rise_start": self.rise_start,
            "happened": len(self.happened),
        }
        return np.array([float(values[name]) for name in REPORT])

    # The judged position within a step

    def _at(self, k: int, x: float) -> float:
        return float(self.run.along(x)[k])

    def _watch(self) -> None:
        """Look at a step, in two pieces where the position turns."""
        speed, x = self.n_q + self.system.output, self.run.share
        first = self.run.start[speed]
        if first * self._at(speed, x) < 0:
            turn = _halved(lambda place: self._at(speed, place) * first > 0, 0.0, x)[1]
            self._watch_piece(0.0, turn)
            self._watch_piece(turn, x)
        else:
            self._watch_piece(0.0, x)

    def _watch_piece(self, a: float, b: float) -> None:
        """Look at a piece in which the position goes one way."""
        out, step, t, h = (
            self.system.output,
            self.to - self.before,
            self.run.origin,
            self.run.length,
        )
        way = -1.0 if step < 0 else 1.0
        pa, pb = (self.factor * self._at(out, place) for place in (a, b))

        def passing(level: float, mark: str) -> float:
            rises = pb > level
            at = _halved(lambda x: (self.factor * self._at(out, x) > level) != rises, a, b)[1]
            self.marks[mark] = self.run.along(at)
            return t + h * at

        for name, share, mark in (("rise_start", 0.1, "begin"), ("rise_end", 0.9, "risen")):
            level = self.before + share * step
            if getattr(self, name) < 0 and way * (pb - level) >= 0 and step != 0:
                setattr(self, name, passing(level, mark))
        if way * (pb - self.to) > self.overshoot:
            self.overshoot, self.marks["peak"] = way * (pb - self.to), self.run.along(b)
        was, self.inside = abs(pa - self.to) <= self.band, abs(pb - self.to) <= self.band
        if self.inside and not was:
            self.settled_at = passing(
                self.to + (self.band if pa > self.to else -self.band), "settled"
            )
        if t + h * b >= LATE * self.duration:
            late = (LATE * self.duration - t) / h
            pl = self.factor * self._at(out, late) if late > a else pa
            self.lowest, self.highest = min(self.lowest, pl, pb), max(self.highest, pl, pb)


def _halved(holds: Callable[[float], bool], a: float, b: float) -> tuple[float, float]:
    """Return the place in [a, b] up to which a condition holds, from both sides."""
    for _ in range(HALVINGS):
        x = 0.5 * (a + b)
        if holds(x):
            a = x
        else:
            b = x
    return a, b
