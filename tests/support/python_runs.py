"""Runs in Python that machine code is compared with: simulations, sampled loops, and drive lines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import final

import numpy as np
from python_integrator import RoutineProblem, Run

from tauloop.drives.axis.simulation import Axis
from tauloop.drives.axis.source import MARKS, REPORT
from tauloop.drives.criteria import Outcome
from tauloop.drives.equations.system import INPUTS, AxisSystem
from tauloop.integrate.events import Occurrence
from tauloop.integrate.integrators import Integrator
from tauloop.integrate.outcome import StepOutcome
from tauloop.integrate.sampled import (
    MAX_EVENTS,
    SampledRun,
    SampledTrace,
    _event_function,
    _occurrence,
)
from tauloop.integrate.sensitivity import sensitive
from tauloop.integrate.system import HybridSystem
from tauloop.simulation.controllers.laws import Loop
from tauloop.simulation.controllers.loop import Trace, _in_place, _sampled_run, _trace
from tauloop.simulation.controllers.system import ControlLayouts, control_system
from tauloop.simulation.stepping.stepper import CAPACITY, ENDING_OF_OUTCOME, Stepper, SteppingState
from tauloop.simulation.stepping.steps import Ending, Steps

#: As in `axis.c`; and halvings that find where the judged position passes a level or turns.
FAR, HUGE, LATE, HALVINGS = 1e3, 1e12, 0.75, 50


class InterpretedAxis(Axis):
    """A drive line that runs as the compiled library does, one step after the other."""

    def run(
        self,
        parameters: np.ndarray,
        fixed: np.ndarray,
        integrator: Integrator,
        times: np.ndarray | None = None,
        marks: np.ndarray | None = None,
    ) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray, np.ndarray], np.ndarray]:
        """See `Axis.run`."""
        sizes = (self._routines.states, len(self._routines.modes), self._routines.held)
        times = np.zeros(0) if times is None else times
        states, modes, held = (np.full((len(times), size), np.nan) for size in sizes)
        most = MAX_EVENTS if self.system.watched and len(times) else 0
        happened = np.zeros((most, 2 + sizes[0]))
        reports = np.empty((len(parameters), len(REPORT)))
        for i, (p, f) in enumerate(zip(parameters, fixed, strict=True)):
            step = _Step(self.system, self._routines, p, f, integrator)
            reports[i] = step.to_the_end(times, (states, modes, held))
            if marks is not None:
                step.marks["last"] = step.run.y
                for name, marked in step.marks.items():
                    marks[i, MARKS.index(name)] = marked
            if len(happened):
                happened[: len(step.happened)] = step.happened[: len(happened)]
        return reports, (states, modes, held), happened


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


@final
class InterpretedStepper(Stepper):
    """A stepper in Python."""

    def _begin_integration(self, progress: SteppingState, duration: float) -> Run:
        problem = RoutineProblem(self.routines, progress.p, np.zeros(0))
        problem.arrays["in"], problem.law = progress.acting, progress.laws.law
        return Run(problem, self.method, progress.y, guess=progress.guess)

    def advance(self, progress: SteppingState, end: float) -> Steps:
        """Return the next steps, computed one at a time."""
        run, laws = progress.own, progress.laws
        assert isinstance(run, Run)
        rows: list[tuple[object, ...]] = []
        evaluations, rejected, ending = run.evaluations, run.rejected, None
        with np.errstate(all="ignore"):
            while ending is None and run.time < end and len(rows) < CAPACITY:
                limit = end
                if laws.sampled is not None:
                    if run.time >= progress.samples * laws.period:
                        laws.sampled(run.time, run.y[: self.system.size], progress.acting)
                        progress.samples, run.is_known = progress.samples + 1, False
                    limit = min(end, progress.samples * laws.period)
                steps = run.steps
                code = run.next(limit)
                if run.steps > steps:
                    rows.append((run.origin, run.start, run.start_known, run.Q))
                ending = None if code == StepOutcome.SUCCESS else ENDING_OF_OUTCOME[code]
        progress.time, progress.guess[:], progress.y[:] = run.time, run.guess, run.y
        m = len(rows)
        times, states, known, polynomials = (
            np.array(column, dtype=float)
            for column in (zip(*rows, strict=True) if rows else [()] * 4)
        )
        n, acting = (
            self.routines.states,
            self.routines.coordinates + self.routines.velocities + self.routines.inputs,
        )
        columns = (
            times,
            states.reshape(m, n),
            known.reshape(m, acting),
            polynomials.reshape(m, len(run.Q), n),
        )
        spent = run.evaluations - evaluations, run.rejected - rejected
        return self._steps(
            progress,
            columns,
            spent,
            Ending.SUCCESS if ending is None and run.time >= end else ending,
        )


@final
class InterpretedSamples:
    """Runs of a system in Python, without a compiler or as a reference for machine code."""

    def __init__(self, system: HybridSystem) -> None:
        """Keep the equations."""
        self.system = system

    def __call__(self, course: SampledRun) -> SampledTrace:
        """Run it."""
        values, count, n = (
            _event_function(self.system, course.events),
            len(course.events),
            len(course.inputs),
        )
        problem = RoutineProblem(self.system, course.p, course.held, values, count)
        modes_then = np.array([*self.system.modes, *np.zeros(count)])
        run = Run(problem, course.method, course.y, modes=modes_then, guess=course.q)
        states: list[np.ndarray] = []
        modes: list[np.ndarray] = []
        held: list[np.ndarray] = []
        happened: list[Occurrence] = []
        code, own = int(StepOutcome.SUCCESS), len(self.system.modes)
        begins = 0 if course.change > 0 else 1
        for k in range(n):
            problem.arrays["in"] = course.inputs[k]
            if not problem.sample(run, course.own):
                code = StepOutcome.SINGULAR
            if code != StepOutcome.SUCCESS:
                break
            states.append(run.y.copy())
            held.append(problem.arrays["z"][: self.system.held].copy())
            for part in range(begins, 2):
                acts = k - course.whole - 1 + part
                limit = (k + 1) * course.period if part else k * course.period + course.change
                problem.arrays["held"] = course.held if acts < 0 else held[acts]
                run.is_known = False
                if len(run.s) and code == StepOutcome.SUCCESS and not run.agree():
                    code = StepOutcome.SINGULAR
                if part == begins:
                    modes.append(run.s[:own].copy())
                while k + 1 < n and code == StepOutcome.SUCCESS and run.time < limit:
                    code = self._stepped(run, limit, course, happened)
        reached = len(states)
        return SampledTrace(
            states=np.array(states).reshape(reached, self.system.states),
            modes=np.array(modes).reshape(reached, own),
            held=np.array(held).reshape(reached, self.system.held),
            outcome=int(code),
            end=run.time,
            steps=run.steps + run.rejected,
            events=run.events,
            worst=problem.worst[:3],
            failed=problem.worst[3:],
            occurrences=tuple(happened),
        )

    def _stepped(
        self, run: Run, limit: float, course: SampledRun, happened: list[Occurrence]
    ) -> int:
        """Take a step and handle the events at its end; return the outcome."""
        before = run.s
        code = (
            int(run.next(limit))
            if run.steps + run.rejected < course.max_steps
            else int(StepOutcome.MAX_STEPS)
        )
        if not course.events or code != StepOutcome.SUCCESS or not run.is_event:
            return code
        if not run.agree():
            return int(StepOutcome.SINGULAR)
        flips = (run.s - before)[len(self.system.modes) :]
        for event, flip in zip(course.events, flips, strict=True):
            if flip == 0 or event.direction * flip < 0:
                continue
            if len(happened) == MAX_EVENTS:
                return int(StepOutcome.CHATTERING)
            happened.append(_occurrence(self.system, event, run.time, np.asarray(run.known)))
            code = int(StepOutcome.EVENT) if event.is_terminal else code
        return code


class InterpretedLoop:
    """The control loop in Python, for use without a compiler and to verify machine code."""

    def __call__(self, loop: Loop) -> Trace:
        """Run the loop."""
        machines, loaded = (loop.plant, loop.model, loop.controller), loop.load is not None
        system = sensitive(control_system(*machines, loaded=loaded), len(loop.directions))
        layouts = ControlLayouts(*machines, loaded=loaded)
        run = replace(_sampled_run(loop, layouts), own=_in_place(loop))
        return _trace(loop, layouts, InterpretedSamples(system)(run), run.own)
