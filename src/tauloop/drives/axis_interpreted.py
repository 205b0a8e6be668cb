"""Runs of a drive line of its own in Python, with the criteria on the way: the same as the compiled ones, slowly."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tauloop.assembly.batch import BatchFunction
from tauloop.drives.interpreted import HybridRun
from tauloop.drives.stepping_source import CHATTERING, DIVERGED, FAR, HUGE, LATE, OK, REPORT, TOO_LONG
from tauloop.drives.system import INPUTS, System

#: First step and shortest, s; halvings that find where the judged position passes a level or turns.
FIRST_STEP, SMALLEST_STEP, HALVINGS = 1e-6, 1e-13, 50


class InterpretedAxis:
    """What the compiled library does, one step after the other."""

    def __init__(self, system: System) -> None:
        """Keep the equations."""
        self._system = system
        self._calls = tuple(BatchFunction(f) for f in (system.rate, system.reset, system.hold))

    def run(
        self,
        parameters: np.ndarray,
        fixed: np.ndarray,
        tolerances: tuple[float, float, int],
        times: np.ndarray,
        kept: tuple[np.ndarray, np.ndarray, np.ndarray],
    ) -> np.ndarray:
        """Reports (N, k) of runs one after the other.

        Args:
            parameters: (N, n_p).
            fixed: figures of each run (N, 8), as the library takes them.
            tolerances: relative, absolute, and most steps.
            times: at which the states of a run are kept (T,).
            kept: takes states, modes and held numbers (T, n).
        """
        reports = np.empty((len(parameters), len(REPORT)))
        for i, (p, f) in enumerate(zip(parameters, fixed, strict=True)):
            run = _Run(self._system, self._calls, p, f, tolerances)
            reports[i] = run.to_the_end(times, kept)
        return reports


class _Run(HybridRun):
    """One run."""

    def __init__(
        self,
        system: System,
        calls: tuple[BatchFunction, ...],
        p: np.ndarray,
        fixed: np.ndarray,
        tolerances: tuple[float, float, int],
    ) -> None:
        rtol, atol, self.most = tolerances
        super().__init__(np.zeros(len(system.state_names)), np.array(system.mode_starts), FIRST_STEP, rtol, atol)
        self.system, self.calls, self.p = system, calls, p
        self.factor, self.band, self.period, self.before, self.to, self.load, self.load_time, self.duration = fixed
        self.inputs = np.zeros(len(INPUTS))
        self.inputs[[0, 1, 3]] = self.to, self.before, atol
        self.z = np.zeros(system.held_size)
        self.n_q = sum(name.endswith(".velocity") for name in system.state_names)
        self.rise_start = self.rise_end = -1.0
        self.overshoot = self.overshoot_at = self.settled_at = 0.0
        self.lowest, self.highest = np.inf, -np.inf
        self.inside = abs(self.before - self.to) <= self.band

    def _call(self, which: int, y: np.ndarray) -> list[np.ndarray]:
        arrays = [part[None] for part in (y, self.s, self.z, self.inputs, self.p)]
        return [part[0] for part in self.calls[which](arrays, 1)]

    def rates(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rates and guards."""
        self.healthy = bool((np.abs(y) < HUGE).all())
        dy, g = self._call(0, y)
        return dy, g

    def reset(self) -> None:
        """States as the modes prescribe them."""
        self.y = self._call(1, self.y)[0]

    def _hold(self) -> None:
        if self.period > 0:
            self.z = self._call(2, self.y)[0]

    def to_the_end(self, times: np.ndarray, kept: tuple[np.ndarray, np.ndarray, np.ndarray]) -> np.ndarray:
        """The report of the run (k,)."""
        t, tick, sample, outcome, out = 0.0, 1, 0, OK, self.system.output
        size = abs(self.to - self.before) or 1.0
        if self.load_time <= 0:
            self.inputs[2] = self.load
        self._hold()
        self.agree()
        while t < self.duration and outcome == OK:
            limit = self.duration
            if t < self.load_time < limit:
                limit = self.load_time
            if self.period > 0 and tick * self.period < limit:
                limit = tick * self.period
            if self.steps >= self.most:
                outcome = TOO_LONG
                break
            is_last = t + 1.01 * self.h >= limit
            step = self.attempt(limit - t if is_last else self.h)
            if step is None:
                outcome = DIVERGED if self.h < SMALLEST_STEP else OK
                continue
            self._watch(t, step.taken, step.Q, step.x)
            end = limit if is_last and not step.is_event else t + step.x * step.taken
            while sample < len(times) and times[sample] <= end:
                at = (times[sample] - t) / step.taken if step.taken > 0 else 0.0
                for array, row in zip(kept, (self.along(step.Q, at), self.s, self.z), strict=True):
                    array[sample] = row
                sample += 1
            self.take(step, is_last=is_last)
            t, is_new = end, step.is_event
            if abs(self.factor * self.y[out] - self.to) > FAR * size:
                outcome = DIVERGED
                break
            if self.crowds:
                outcome = CHATTERING
                break
            if t >= self.load_time and self.inputs[2] != self.load:
                self.inputs[2], is_new = self.load, True
            if self.period > 0 and t >= tick * self.period:
                self._hold()
                tick, is_new = tick + 1, True
            if is_new:
                self.agree()
        return self._report(outcome, t)

    def _report(self, outcome: int, t: float) -> np.ndarray:
        settled = outcome == OK and self.inside
        risen = self.rise_start >= 0 and self.rise_end >= 0
        rise = self.rise_end - self.rise_start if risen else 0.0 if self.before == self.to else self.duration
        found = {
            "rise_time": rise,
            "overshoot": self.overshoot,
            "settling_time": self.settled_at if settled else self.duration,
            "energy": self.y[-1],
            "final_error": abs(self.factor * self.y[self.system.output] - self.to),
            "lowest": self.lowest,
            "highest": self.highest,
            "settled": settled,
            "outcome": outcome,
            "end": t,
            "steps": self.steps,
            "events": self.events,
            "rise_start": self.rise_start,
            "overshoot_at": self.overshoot_at,
        }
        return np.array([float(found[name]) for name in REPORT])

    # The judged position within a step

    def _at(self, Q: np.ndarray, k: int, x: float) -> float:
        return float(self.y[k] + Q[k] @ np.array([x, x**2, x**3, x**4]))

    def _watch(self, t: float, h: float, Q: np.ndarray, x: float) -> None:
        """Look at a step, in two pieces where the position turns."""
        out = self.system.output
        speed = self.n_q + out
        first = self.y[speed]
        if first * self._at(Q, speed, x) < 0:
            turn = _halved(lambda place: self._at(Q, speed, place) * first > 0, 0.0, x)[1]
            self._watch_piece(t, h, Q, 0.0, turn)
            self._watch_piece(t, h, Q, turn, x)
        else:
            self._watch_piece(t, h, Q, 0.0, x)

    def _watch_piece(self, t: float, h: float, Q: np.ndarray, a: float, b: float) -> None:
        """Look at a piece in which the position goes one way."""
        out, step = self.system.output, self.to - self.before
        way = -1.0 if step < 0 else 1.0
        pa, pb = (self.factor * self._at(Q, out, place) for place in (a, b))

        def passing(level: float) -> float:
            rises = pb > level
            return t + h * _halved(lambda x: (self.factor * self._at(Q, out, x) > level) != rises, a, b)[1]

        for name, share in (("rise_start", 0.1), ("rise_end", 0.9)):
            level = self.before + share * step
            if getattr(self, name) < 0 and way * (pb - level) >= 0 and step != 0:
                setattr(self, name, passing(level))
        if way * (pb - self.to) > self.overshoot:
            self.overshoot, self.overshoot_at = way * (pb - self.to), t + h * b
        was, self.inside = abs(pa - self.to) <= self.band, abs(pb - self.to) <= self.band
        if self.inside and not was:
            self.settled_at = passing(self.to + (self.band if pa > self.to else -self.band))
        if t + h * b >= LATE * self.duration:
            late = (LATE * self.duration - t) / h
            pl = self.factor * self._at(Q, out, late) if late > a else pa
            self.lowest, self.highest = min(self.lowest, pl, pb), max(self.highest, pl, pb)


def _halved(holds: Callable[[float], bool], a: float, b: float) -> tuple[float, float]:
    """The place in [a, b] up to which a condition holds, from both sides."""
    for _ in range(HALVINGS):
        x = 0.5 * (a + b)
        if holds(x):
            a = x
        else:
            b = x
    return a, b
