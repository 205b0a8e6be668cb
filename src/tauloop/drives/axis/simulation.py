"""Simulation of drive lines: criteria of batches of parameter sets, and signals of single runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.datasets import (
    OVER_TIME,
    TIME_DIMENSIONS,
    Tabular,
    Variable,
    tabulated_by,
)
from tauloop.common.errors import InputError, Problem, Problems
from tauloop.common.records import dataclass
from tauloop.compiler.c.calling.evaluator import default_evaluator
from tauloop.compiler.c.calling.library import Library, is_forked
from tauloop.drives.axis.source import REPORT, axis_routines, axis_source
from tauloop.drives.criteria import NAMES, Criteria, Outcome, with_failure_penalty
from tauloop.drives.equations.system import AxisSystem, build_system, sign_problems
from tauloop.drives.machine.lines import MOTORS, with_motors
from tauloop.equations.ports import numbers
from tauloop.integrate.events import Occurrence, ValuePassed
from tauloop.integrate.integrators import DormandPrince, Integrator
from tauloop.integrate.sampled import MAX_EVENTS
from tauloop.integrate.sensitivity import sensitive
from tauloop.integrate.tableau import Tableau
from tauloop.mechanism.drive_line import DriveLine
from tauloop.mechanism.suggestions import unknown_names

#: Default integrator of drive lines.
LINE_INTEGRATOR = DormandPrince(rtol=1e-7, atol=1e-9, max_steps=2_000_000)


class Axis:
    """Compiled simulation of a drive line: compiled once, run any number of times.

    Attributes:
        line: the drive line.
        runs: expected total number of runs.
    """

    def __init__(
        self,
        line: DriveLine,
        *,
        threads: int = 1,
        folder: Path | None = None,
        events: Sequence[ValuePassed] = (),
        directions: int = 0,
        runs: int = 1,
    ) -> None:
        """Build the equations; the first run compiles them.

        Args:
            line: the drive line.
            threads: number of threads that share a batch.
            folder: folder of compiled code; default: the user's cache.
            events: events to detect in runs: signals that pass values.
            directions: number of directional derivatives. They are stored after the states,
                parameters and held numbers in the respective arrays.
            runs: expected total number of runs. If it is large, the code is compiled with more
                optimization, which takes longer.

        Raises:
            DescriptionError: the rigid connections are invalid.
        """
        self.line = line
        self.system: AxisSystem = build_system(line, events)
        self._routines = sensitive(axis_routines(self.system), directions)
        self.threads = threads
        self.names = line.parameters.names
        self.nominal = line.parameters.vector()
        self.runs = runs
        self._evaluator = default_evaluator(threads=threads, folder=folder)
        #: Axes of the same line with other setups of the motors, by setup.
        self._axes_by_setup: dict[str, Axis] = {}
        #: Compiled functions by the tableau of the integrator and whether the code is for many
        #: runs.
        self._compiled: dict[tuple[Tableau | None, bool], Callable[..., None]] = {}

    def _code(self, integrator: Integrator, runs: int, duration: float) -> Callable[..., None]:
        """Return the compiled function that runs a batch with an integrator.

        Raises:
            EngineError: there is no compiler, or it fails.
        """
        method = integrator.method
        work = max(runs, self.runs) * method.evaluations(duration)
        key = method.tableau, self._evaluator.is_large(work)
        if key not in self._compiled:
            source = axis_source(self.system, self._routines, method.tableau)
            compiler, folder = self._evaluator.compiler(work), self._evaluator.folder
            library = Library.create(source, compiler, threads=self.threads > 1, folder=folder)
            self._compiled[key] = library.function("drive_batch", "ni**ddddd*n****n*i*")
        return self._compiled[key]

    def with_motors(self, motors: str) -> Axis:
        """Return this axis with one of the motor setups in `MOTORS`; results are cached.

        Raises:
            InputError: as in the function `with_motors`.
        """
        if motors == MOTORS[0]:
            return self
        if motors not in self._axes_by_setup:
            self._axes_by_setup[motors] = Axis(
                with_motors(self.line, motors),
                threads=self.threads,
                folder=self._evaluator.folder,
                runs=self.runs,
            )
        return self._axes_by_setup[motors]

    def parameters(
        self, values: Mapping[str, float | np.ndarray], n: int | None = None
    ) -> np.ndarray:
        """Return complete parameter sets (N, n_p), with nominal values for the other parameters.

        Args:
            values: numbers or arrays (N,) by name of the parameter, SI.
            n: number of sets; default: the length of the arrays, or one.

        Raises:
            InputError: unknown names, shapes that do not fit, or numbers that are not finite; all
                problems at once.
        """
        problems = Problems(unknown_names(values, self.names, "no such parameter"))
        columns = {}
        for name in values:
            if name not in self.names:
                continue
            array = numbers(values[name], name)
            columns[name] = array
            if array.ndim > 1:
                problems.add(
                    name, f"has the shape {array.shape}", "give a number, or an array (N,)"
                )
            elif not np.isfinite(array).all():
                row = int(np.flatnonzero(~np.isfinite(np.atleast_1d(array)))[0])
                problems.add(name, f"is not finite in row {row}", "give finite numbers")
        InputError.raise_if_any(problems)
        lengths = {len(array) for array in columns.values() if array.ndim}
        if n is not None:
            lengths.add(n)
        # arrays of length one apply to all runs
        lengths = lengths - {1} or lengths or {1}
        if len(lengths) > 1:
            what = f"arrays of different lengths: {', '.join(map(str, sorted(lengths)))}"
            raise InputError.of(
                "parameters", what, "give arrays of equal length, one row for each run"
            )
        rows = np.tile(self.nominal, (lengths.pop(), 1))
        for name, array in columns.items():
            rows[:, self.names.index(name)] = array
        return np.ascontiguousarray(rows)

    def figures(self, parameters: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Check parameter sets; return their validity (N,), and the scales of their criteria (N, 3).

        The scales are the position factor, the settling band and the sample time. A parameter set
        is invalid if switch_max is not above switch_min.

        Raises:
            InputError: a value that must be positive (an inertia, stiffness, gap or time) is not, or
                a value that must not be negative is; all problems at once.
        """
        checks, signs, order, scales = self.system.parameter_checks([parameters], len(parameters))
        InputError.raise_if_any(sign_problems(self.system.checked_names, (checks, signs)))
        return order[:, 0] > 0, scales

    def run(
        self,
        parameters: np.ndarray,
        fixed: np.ndarray,
        integrator: Integrator,
        times: np.ndarray | None = None,
        marks: np.ndarray | None = None,
    ) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray, np.ndarray], np.ndarray]:
        """Run a batch of N parameter sets.

        Args:
            parameters: parameter sets (N, n_p).
            fixed: fixed values of the runs (N, 8), as from `prepared_runs`.
            integrator: integrator of the equations.
            times: times (T,) at which a single run is recorded, s; default: none.
            marks: array (N, 5, n) that receives the states at the points `MARKS` that each run
                reaches.

        Returns:
            Reports (N, k) with the columns `REPORT`; states, modes and held values of a single run
            at `times` (T, n); and its events: number, time and state.

        Raises:
            EngineError: there is no C compiler, or it fails.
        """
        sizes = (self._routines.states, len(self._routines.modes), self._routines.held)
        times = np.zeros(0) if times is None else np.ascontiguousarray(times)
        record = tuple(np.full((len(times), size), np.nan) for size in sizes)
        n_occurrences = MAX_EVENTS if self.system.watched and len(times) else 0
        occurrences = np.zeros((n_occurrences, 2 + sizes[0]))
        method, duration = integrator.method, float(fixed[:, 7].max(initial=0.0))
        run = self._code(integrator, len(parameters), duration)
        report = np.empty((len(parameters), len(REPORT)))
        run(
            len(parameters),
            1 if is_forked() else self.threads,
            parameters,
            fixed,
            *method.numbers,
            integrator.max_steps,
            report,
            len(times),
            times,
            *record,
            len(occurrences),
            occurrences,
            marks is not None,
            np.zeros(0) if marks is None else marks,
        )
        states, modes, held = record
        return report, (states, modes, held), occurrences


def simulate_axis(
    axis: Axis,
    parameters: Mapping[str, float | np.ndarray] | None = None,
    *,
    step: float | np.ndarray = 0.1,
    start: float | np.ndarray = 0.0,
    duration: float = 10.0,
    load: float | np.ndarray = 0.0,
    load_time: float = 0.0,
    integrator: Integrator | None = None,
) -> Criteria:
    """Return the criteria of a step of the reference from `start` to `start + step` at t = 0.

    The line starts at rest at zero.

    Args:
        axis: the compiled drive line.
        parameters: parameters that differ from the file: numbers or arrays (N,) by name, SI.
        step: step of the reference, m or rad: a number or (N,).
        start: reference before the step, m or rad.
        duration: simulated time, s.
        load: force on the evaluated inertia from `load_time` on, N or N m: a number or (N,).
        load_time: start time of the load, s.
        integrator: integrator of the equations.

    Returns:
        Criteria (N,); runs that fail have a penalty (`FAILURE_PENALTY` of
        `tauloop.drives.criteria`), so every number is finite.

    Raises:
        InputError: invalid arguments; all problems at once.
    """
    p, fixed, is_valid = prepared_runs(
        axis, parameters or {}, step, start, duration, load, load_time
    )
    report, *_ = axis.run(p, fixed, integrator or LINE_INTEGRATOR)
    return criteria_of(report, is_valid, duration)


def prepared_runs(
    axis: Axis,
    parameters: Mapping[str, float | np.ndarray],
    step: float | np.ndarray,
    start: float | np.ndarray,
    duration: float,
    load: float | np.ndarray,
    load_time: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the parameter sets (N, n_p), fixed values of each run (N, 8), and validity (N,).

    The fixed values are: position factor, settling band, sample time, reference before and after
    the step, load, its start time, and duration.
    """
    quantities = {
        "step": step,
        "start": start,
        "load": load,
        "duration": duration,
        "load_time": load_time,
    }
    arrays = {name: numbers(value, name) for name, value in quantities.items()}
    problems = Problems(
        Problem(
            where=name,
            what="is not a finite number or an array (N,) of finite numbers",
            remedy="give one finite number, or one for each run",
        )
        for name, array in arrays.items()
        if array.ndim > 1 or not np.isfinite(array).all()
    )
    if np.any(arrays["duration"] <= 0):
        problems.add("duration", f"{duration} s is not positive", "give a time above zero")
    InputError.raise_if_any(problems)
    lengths = {len(array) for array in arrays.values() if array.ndim}
    if len(lengths) > 1:
        what = (
            f"step, start and load have different lengths: {', '.join(map(str, sorted(lengths)))}"
        )
        raise InputError.of("step", what, "give arrays of equal length, one row for each run")
    p = axis.parameters(parameters, lengths.pop() if lengths else None)
    fixed = np.empty((len(p), 8))
    is_valid, fixed[:, :3] = axis.figures(p)
    fixed[:, 3] = arrays["start"]
    fixed[:, 4] = arrays["start"] + arrays["step"]
    fixed[:, 5] = arrays["load"]
    fixed[:, 6] = load_time
    fixed[:, 7] = duration
    return p, fixed, is_valid


def criteria_of(report: np.ndarray, is_valid: np.ndarray, duration: float) -> Criteria:
    """Return the criteria (N,) from the reports of runs (N, k)."""
    column = dict(zip(REPORT, report.T, strict=True))
    outcome = np.where(is_valid, column["outcome"].astype(int), int(Outcome.INVALID_PARAMETERS))
    with np.errstate(invalid="ignore"):
        # a run that ends before the last quarter has no extremes: its swing is zero
        swing = np.maximum(column["highest"] - column["lowest"], 0.0)
    criteria = Criteria(
        **{name: column[name] for name in NAMES if name != "swing"},
        swing=swing,
        settled=(column["settled"] > 0) & (outcome == Outcome.SUCCESS),
        outcome=outcome,
        end=np.where(outcome == Outcome.INVALID_PARAMETERS, 0.0, column["end"]),
        steps=column["steps"].astype(int),
        events=column["events"].astype(int),
    )
    return with_failure_penalty(criteria, np.full(len(report), duration))


def signal_variables(signals: Mapping[str, np.ndarray]) -> Iterator[Variable]:
    """Yield signals such as ``cart.position [m]`` as variables over time (``position.cart``)."""
    for name, values in signals.items():
        channel, _, quantity = name.partition(" [")[0].rpartition(".")
        unit = name.partition(" [")[2].removesuffix("]")
        yield Variable(
            name=f"{quantity}.{channel}" if channel else quantity,
            values=values,
            over=TIME_DIMENSIONS,
            unit=unit,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Record(Tabular):
    """Signals and criteria of one run.

    Attributes:
        time: times (T,), s, up to the end of the run.
        signals: values (T,) by name with unit, such as ``cart.position [m]``.
        criteria: criteria of this run (1,).
        reference: reference after the step, m or rad.
        before: reference before the step, m or rad.
        occurrences: events in the order of time, with positions and velocities of the line's
            coordinates.
    """

    time: np.ndarray = field(metadata=OVER_TIME)
    signals: Mapping[str, np.ndarray] = field(metadata=tabulated_by(signal_variables))
    criteria: Criteria
    reference: float
    before: float
    occurrences: tuple[Occurrence, ...]

    def signal(self, name: str) -> np.ndarray:
        """Return the values (T,) of a signal by its name without unit.

        Raises:
            InputError: there is no such signal.
        """
        known = {full.split(" [")[0]: values for full, values in self.signals.items()}
        InputError.raise_if_any(
            unknown_names([name], known, "no such signal", remedy=f"use one of {', '.join(known)}")
        )
        return known[name]


def record_axis(
    axis: Axis,
    parameters: Mapping[str, float] | None = None,
    *,
    step: float = 0.1,
    start: float = 0.0,
    duration: float = 10.0,
    load: float = 0.0,
    load_time: float = 0.0,
    samples: int = 2001,
    integrator: Integrator | None = None,
) -> Record:
    """Simulate one run and return all signals at uniformly spaced times.

    Args:
        axis, parameters, step, start, duration, load, load_time, integrator: as in `simulate_axis`.
        samples: number of times from zero to the end.

    Raises:
        InputError: invalid arguments.
    """
    p, fixed, is_valid = prepared_runs(
        axis, parameters or {}, step, start, duration, load, load_time
    )
    if len(p) != 1 or samples < 2:
        what = (
            "needs exactly one parameter set and at least two samples, got "
            f"{counted(len(p), 'parameter set')} and {counted(samples, 'sample')}"
        )
        raise InputError.of("record", what, "simulate several parameter sets with simulate_axis")
    times = np.linspace(0.0, duration, samples)
    report, (y, s, z), event_rows = axis.run(p, fixed, integrator or LINE_INTEGRATOR, times)
    # the rows after the end of a run that ends early are NaN
    is_recorded = np.isfinite(y).all(axis=1)
    n = len(times) if is_recorded.all() else int(is_recorded.argmin())
    inputs = np.tile(
        [start + step, start, 0.0, (integrator or LINE_INTEGRATOR).method.atol], (n, 1)
    )
    inputs[:, 2] = np.where(times[:n] >= load_time, load, 0.0)
    values = axis.system.signals([y[:n], s[:n], z[:n], inputs, np.tile(p, (n, 1))], n)[0]
    signals = dict(zip(axis.system.signal_names, values.T, strict=True))
    criteria = criteria_of(report, is_valid, duration)
    count = axis.system.coordinates
    occurrences = []
    for row in event_rows[: int(report[0, REPORT.index("happened")])]:
        (i, time), state = row[:2], row[2:]
        occurrences.append(
            Occurrence(
                name=axis.system.watched[int(i)].label,
                time=float(time),
                q=state[:count],
                v=state[count : 2 * count],
                is_terminal=axis.system.watched[int(i)].is_terminal,
            )
        )
    return Record(
        time=times[:n],
        signals=signals,
        criteria=criteria,
        reference=start + step,
        before=start,
        occurrences=tuple(occurrences),
    )
