"""Planning of free motions: start motions, checks between points, and repeated planning.

Source: Betts 2010, Practical Methods for Optimal Control, chapter 4; Wachter, Biegler 2006 (IPOPT).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import casadi as ca
import numpy as np
from scipy.interpolate import BSpline

from tauloop.common.errors import AssemblyError, PoseError, Problems
from tauloop.common.names.deprecated import old_attribute, with_old_keywords
from tauloop.common.options import Options, option
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.model import Model
from tauloop.motion.fastest.changes import slowed
from tauloop.motion.fastest.limits import PathLimits, PathRows
from tauloop.motion.fastest.planning import FastestLaw, law_rate
from tauloop.motion.free.chart import DEGREE, SplinePath, chart, knots
from tauloop.motion.free.costs import copper_losses, require_goal
from tauloop.motion.free.program import FreeProgram, Guess
from tauloop.motion.free.rows import PointRows, Surroundings, require_no_cables, rows_at
from tauloop.motion.laws import POLYNOMIAL_345, POLYNOMIAL_4567, Uniform
from tauloop.motion.rate_limits.stroke_limits import fastest_rate
from tauloop.motion.strokes.stroke import Stroke, stroke

#: Number of intervals of the spline.
INTERVALS = 24
#: Default limit of the bound on the condition number, as a multiple of the larger bound at the
#: ends.
CONDITION_FACTOR = 3.0
#: Sideways distances of initial paths, as fractions of the straight line's length.
SIDE_FRACTIONS = np.linspace(0.05, 1.0, 20)
#: Exponents of the shapes of initial paths.
SHAPE_POWERS = (2, 8)
#: Number of points at which initial paths are checked.
START_POINTS = 65
#: Maximum number of solutions with bounds reduced by the violations between points.
MAX_ROUNDS = 4
#: Tolerance of violations between points.
VIOLATION_TOLERANCE = 1e-3
#: Number of points per interval at which a replanned motion is checked.
CHECKS_PER_INTERVAL = 20
#: Permitted relative excess between the checked points.
GRID_TOLERANCE = 1e-4
#: When the end has moved, distance bounds are reduced at all points by their largest reduction times
#: this factor.
BOUND_FACTOR = 1.2
#: Relative reduction of a rate per relative excess of a force; it would be 0.5 if inertia caused the
#: whole force.
RATE_EXPONENT = 0.8
#: Smallest rate relative to the planned rate.
MIN_RATE = 0.1
#: Tolerance of clearances between collocation points, m.
CLEARANCE_TOLERANCE = 1e-4
#: Relative tolerance of condition bounds between collocation points.
CONDITION_TOLERANCE = 1e-2
#: Duration of an initial motion, as a multiple of the shortest feasible duration.
START_SLOWDOWN = 1.2


@dataclass(frozen=True, kw_only=True)
class Objective(Options):
    """The objective of a free motion.

    Attributes:
        optimize: quantity to minimize: time, energy or wear.
        max_duration: largest duration, s.
        copper_loss: winding loss per squared force, W/N^2 or W/(N m)^2; by default the values of the
            machine file.
        exponent: exponent of forces in the wear.
        max_condition: largest bound on the condition number (dimensionless); by default three times
            the larger bound at the ends.
        intervals: number of intervals of the spline.

    Examples:
        >>> from tauloop.motion import Objective
        >>> Objective(optimize="energy", copper_loss=0.5).intervals
        24
    """

    optimize: str = option("time", choices=("time", "energy", "wear"))
    max_duration: float = option(np.inf, above=0.0)
    copper_loss: float = option(0.0, least=0.0, below=np.inf)
    exponent: float = option(3.0, least=1.0, most=12.0)
    max_condition: float | None = option(None, above=2.0)
    intervals: int = option(INTERVALS, least=6, most=400)


@dataclass(frozen=True, slots=True, kw_only=True)
class FreeMotion(ReprMixin):
    """A free motion from rest to rest.

    Attributes:
        law: motion law with the path, the limits and the duration.
        guess: solution of the program, from which further plans start.
        energy: energy lost in motors and friction, J.
        wear: motor travel at full force that causes the same wear, rad or m.
        measure: largest bound on the condition number along the path.
        allowed: limit of this bound.
    """

    law: FastestLaw
    guess: Guess
    energy: float
    wear: float
    measure: float
    allowed: float

    @property
    def stroke(self) -> Stroke:
        """The path of the machine's coordinates."""
        return self.law.rows.stroke


class FreePlanner:
    """Planner of free motions, which can replan quickly when the end has moved.

    Examples:
        >>> import tauloop as tl
        >>> from tauloop.motion import FreePlanner, PathLimits
        >>> planner = FreePlanner(tl.Model(tl.load("delta")), PathLimits(force=0.9))
        >>> first = planner.plan([-0.1, 0.0, -0.5], [0.1, 0.0, -0.5])
        >>> moved = planner.replan([0.1, 0.02, -0.5])
        >>> abs(moved.law.duration - first.law.duration) < 0.01
        True
    """

    objective: Objective
    aim = old_attribute("aim", "objective")
    again = old_attribute("again", "replan")

    @with_old_keywords
    def __init__(
        self,
        model: Model,
        limits: PathLimits,
        *,
        surroundings: Surroundings | None = None,
        objective: Objective | None = None,
        compiled: bool = False,
    ) -> None:
        """Store the task.

        Args:
            model: the machine.
            limits: limits of motions.
            surroundings: obstacles and clearances.
            objective: quantity to minimize, and its limits; by default the duration.
            compiled: whether the program is compiled to machine code. This takes seconds once and
                halves the planning time.
        """
        self.model = model
        self.limits = limits
        self.objective = objective or Objective()
        self.surroundings = surroundings or Surroundings()
        self._compiled = compiled
        self._last: FreeMotion | None = None

    def plan(self, start: object, end: object) -> FreeMotion:
        """Return the best motion between two positions of the platform.

        Args:
            start, end: positions (n,) in the columns of `Model.platform.ports`.

        Raises:
            InputError: the planner does not support the machine.
            PoseError: an end is out of reach or too close to an obstacle, or no motion is within
                all limits.
        """
        platform = self.model.platform
        require_no_cables(self.model)
        require_goal(self.model, self.objective.optimize, self.objective.copper_loss)
        ends = np.array([np.asarray(start, dtype=float), np.asarray(end, dtype=float)])
        problems = Problems()
        for word, position in zip(("start", "end"), ends, strict=True):
            try:
                platform.follow(position)
            except PoseError as error:
                problems += [
                    replace(p, where=word, what=f"{p.where} is {p.what}") for p in error.problems
                ]
        PoseError.raise_if_any(problems)
        q = platform.follow(ends).q
        self._first = q[0]
        self._require_clear(q, ends)
        self._chart = chart(self.model.topology, platform.ports, ends)
        self._rows = self._rows_between(q, ends)
        free = self._chart.free(ends)
        motions = []
        failures = []
        for k, (guess, initial_path) in enumerate(self._initial_motions(free)):
            if k == 0:
                self._program = self._program_from(guess)
            try:
                motion, reductions = self._solve(guess, free)
                motions.append((motion, reductions, initial_path))
            except PoseError as error:
                failures.append(error)
        if not motions:
            raise failures[0]
        self._last, self._reductions, self._initial_path = min(
            motions, key=lambda item: _cost(item[0], self.objective.optimize)
        )
        return self._last

    def start_path(self) -> Stroke:
        """Return the initial path of the last plan, with a uniform parameter, for other laws."""
        return self._checked_stroke(self._initial_path)

    def replan(self, end: object) -> FreeMotion:
        """Return the best motion near the last one after its end has moved.

        Args:
            end: position (n,).

        Raises:
            PoseError: see `plan`; or nothing was planned before.
        """
        if self._last is None:
            raise PoseError.of("end", "nothing was planned before", "plan first")
        guess = self._last.guess
        m = self._chart.freedoms
        self._loops.follow(self._last.stroke.grid, self._last.stroke.q)
        new_end = self._chart.free(np.asarray(end, dtype=float)[None])[0]
        fraction = POLYNOMIAL_345.at(np.linspace(0.0, 1.0, len(guess.coefficients))).s[:, None]
        coefficients = guess.coefficients + fraction * (new_end - guess.coefficients[-1])
        ends = np.array([guess.coefficients[0], new_end]).reshape(2, m)
        nearby_guess = Guess(
            coefficients=coefficients, duration=guess.duration, multipliers=guess.multipliers
        )
        self._last = self._replanned(nearby_guess, ends)
        return self._last

    def restart(self, motion: FreeMotion) -> None:
        """Set a motion of this planner as the start of the next plan."""
        self._last = motion

    def _require_clear(self, q: np.ndarray, ends: np.ndarray) -> None:
        """Reject ends that are too close to an obstacle."""
        tool = self.model.platform.tool(ends, start=q).place
        for name, values in self.surroundings.distances(self.model, q, tool).items():
            for word, value in zip(("start", "end"), values, strict=True):
                if value < self.surroundings.clearance:
                    least = f"the clearance of {1e3 * self.surroundings.clearance:.3g} mm"
                    what = f"is {1e3 * value:.3g} mm from {name}, closer than {least}"
                    raise PoseError.of(word, what, f"move the {word}, or allow a smaller clearance")

    def _rows_between(self, q: np.ndarray, ends: np.ndarray) -> PointRows:
        """Return the limits at a point; ranges and condition bound include both ends."""
        arguments = self.model, self._chart, self.limits, self.surroundings, q
        copper_loss = copper_losses(self.model.mechanism, self.objective.copper_loss)
        rows = rows_at(*arguments, 1.0, copper_loss, self.objective.exponent)
        self._loops = rows.loops
        free = self._chart.free(ends)
        inputs = [rows.y, self._loops.symbols]
        loop_values = self._loops.at(np.array([0.0, 1.0]), free)
        if not np.isfinite(loop_values).all():
            what = "lies in another assembly mode than the start: a singularity separates the two"
            raise PoseError.of("end", what, "choose an end pose in the assembly mode of the start")
        measure = ca.Function("measure", inputs, [rows.measure])
        measure_at_ends = max(
            float(measure(np.append(row, np.zeros(2 * len(row))), loop))
            for row, loop in zip(free, loop_values, strict=True)
        )
        allowed = np.log(CONDITION_FACTOR) + measure_at_ends
        if self.objective.max_condition is not None:
            allowed = np.log(self.objective.max_condition)
        if measure_at_ends > allowed:
            what = (
                f"the bound on the condition number is {np.exp(measure_at_ends):.3g} at an end (limit "
                f"{np.exp(allowed):.3g})"
            )
            raise PoseError.of(
                "condition", what, "choose other ends, or allow a larger condition number"
            )
        rows.upper[list(rows.names).index("singularity")] = allowed
        self._costs_at = ca.Function("figures", inputs, [rows.power, rows.wear[1], rows.measure])
        self._allowed = float(np.exp(allowed))
        return rows

    def _program_from(self, guess: Guess) -> FreeProgram:
        """Return the program for an initial motion, at which jumps of friction are smoothed."""
        u = np.linspace(0.0, 1.0, START_POINTS)
        spline = self._spline(guess)
        y = np.concatenate([spline(u, k) / guess.duration**k for k in range(3)], axis=1)
        rows = self._rows.smooth_at_jumps(y, self._loops.at(u, spline(u)))
        limits = self.limits
        return FreeProgram(
            rows,
            self.objective.intervals,
            rate={"energy": rows.power, "wear": rows.wear[0]}.get(self.objective.optimize),
            change=2.0 / limits.reversal / limits.force if limits.reversal > 0 else np.inf,
            is_held=limits.bounds_changes and limits.ends == "held",
            compiled=self._compiled,
            exact=self._rows.values,
        )

    def _initial_motions(self, free: np.ndarray) -> Iterator[tuple[Guess, np.ndarray]]:
        """Yield initial motions: a straight line if it is clear, else motions around the obstacles.

        Each motion is followed by the control points of the same path at a uniform rate.
        """
        # fractions of the line at the control points: for a uniform rate, and from rest to rest
        means = np.convolve(knots(self.objective.intervals), np.full(DEGREE, 1.0 / DEGREE))
        uniform = means[DEGREE:-DEGREE]
        smooth = POLYNOMIAL_4567.at(np.linspace(0.0, 1.0, len(uniform))).s
        smooth[:2] = 0.0
        smooth[-2:] = 1.0
        port = self.model.platform.ports.position
        lengths = [i for i, k in enumerate(self._chart.plain) if port.units[k] == "m"]
        size = (
            float(np.linalg.norm((free[1] - free[0])[lengths])) or self.model.assembly.loops.length
        )
        self._margin = np.ones(free.shape[1])
        self._margin[lengths] = size
        sideways = np.zeros((2 * len(lengths), free.shape[1]))
        for i, column in enumerate(lengths):
            sideways[2 * i, column] = size
            sideways[2 * i + 1, column] = -size
        straight = np.zeros(free.shape[1]), SHAPE_POWERS[0]
        bumps = []
        if not self._gap(_bulged_path(free, smooth, *straight)) >= 0:
            for displacement in sideways:
                bumps += self._first_clear_bump(free, smooth, displacement)
        for bump, power in bumps or [straight]:
            coefficients = _bulged_path(free, smooth, bump, power)
            path_stroke = self._checked_stroke(coefficients)
            self._loops.follow(path_stroke.grid, path_stroke.q)
            guess = Guess(coefficients=coefficients, duration=self._feasible_duration(path_stroke))
            yield guess, _bulged_path(free, uniform, bump, power)

    def _first_clear_bump(
        self, free: np.ndarray, fraction: np.ndarray, bump: np.ndarray
    ) -> list[tuple[np.ndarray, int]]:
        """Return the smallest multiple of a sideways displacement whose path is clear.

        Returns:
            Displacement and exponent of the shape in a list; an empty list if no path is clear.
        """
        for size in SIDE_FRACTIONS:
            for power in SHAPE_POWERS:
                if self._gap(_bulged_path(free, fraction, size * bump, power)) >= 0:
                    return [(size * bump, power)]
        return []

    def _gap(self, coefficients: np.ndarray) -> float:
        """Return clearance minus required clearance of an initial path, m; -inf if out of reach."""
        curve = SplinePath(chart=self._chart, coefficients=coefficients).at(
            np.linspace(0.0, 1.0, START_POINTS)
        )
        platform = self.model.platform
        try:
            state = platform.track(curve.position, self._first)
            tool = platform.tool(curve.position, start=state.q).place
        except (PoseError, AssemblyError):
            return -np.inf
        gaps = self.surroundings.distances(self.model, state.q, tool).values()
        return min((float(gap.min()) for gap in gaps), default=np.inf) - self.surroundings.clearance

    def _feasible_duration(self, path_stroke: Stroke) -> float:
        """Return a feasible duration of an initial motion, s."""
        try:
            return START_SLOWDOWN / law_rate(PathRows(path_stroke, self.limits), Uniform(), 1.0)
        except PoseError:
            return START_SLOWDOWN / fastest_rate(
                path_stroke, Uniform(), force=self.limits.force, speed=self.limits.speed
            )

    def _checked_stroke(self, coefficients: np.ndarray) -> Stroke:
        """Return the path with given control points, checked along its whole length."""
        path = SplinePath(chart=self._chart, coefficients=coefficients)
        return stroke(self.model, path, self.model.platform.ports.position.columns, ranges=False)

    def _spline(self, solution: Guess) -> BSpline:
        """Return the path of a solution in free coordinates."""
        return SplinePath(chart=self._chart, coefficients=solution.coefficients).spline

    def _solve(self, guess: Guess, free: np.ndarray) -> tuple[FreeMotion, np.ndarray]:
        """Return a feasible motion, and the reductions of the bounds for which it was computed.

        The bounds are reduced by the excess between the collocation points.
        """
        program = self._program
        reductions = np.zeros((len(program.u), self._rows.lower.size))
        solution = program.solved(guess, free, self.objective.max_duration, self._margin)
        for _ in range(MAX_ROUNDS):
            excess = program.excess(solution)
            if excess.max() < VIOLATION_TOLERANCE:
                break
            reductions += excess
            try:
                solution = program.solved(
                    solution, free, self.objective.max_duration, self._margin, reductions
                )
            except PoseError:
                if excess[:, self._rows.is_distance].max(initial=0.0) < VIOLATION_TOLERANCE:
                    break  # a slower motion satisfies the limits that are exceeded
                raise
        path_stroke = self._checked_stroke(solution.coefficients)
        self._loops.require_same_assembly_mode(
            path_stroke, program.u, self._spline(solution)(program.u)
        )
        rows = PathRows(path_stroke, self.limits)
        unit = 1.0 / solution.duration
        return self._timed(solution, rows, min(unit, law_rate(rows, Uniform(), unit))), reductions

    def _replanned(self, guess: Guess, free: np.ndarray) -> FreeMotion:
        """Return a motion with the reduced bounds of the last plan.

        The motion is checked on a grid and slowed down if it exceeds limits. The condition bound
        replaces the check for singularities by `stroke`.
        """
        is_distance = self._rows.is_distance
        reductions = self._reductions.copy()
        reductions[:, is_distance] = BOUND_FACTOR * reductions[:, is_distance].max(axis=0)
        solution = self._program.solved_nearby(
            guess, free, self.objective.max_duration, self._margin, reductions
        )
        for _ in range(MAX_ROUNDS if is_distance.any() else 0):
            excess = self._program.excess(solution)
            if excess[:, is_distance].max() <= VIOLATION_TOLERANCE:
                break
            reductions += excess
            solution = self._program.solved_nearby(
                solution, free, self.objective.max_duration, self._margin, reductions
            )
        path = SplinePath(chart=self._chart, coefficients=solution.coefficients)
        columns = self.model.platform.ports.position.columns
        unit = 1.0 / solution.duration
        base = path.at(np.zeros(1)).position[0]
        path_stroke = Stroke(
            model=self.model, functions=self.model.platform, path=path, columns=columns, base=base
        )
        self._loops.require_same_assembly_mode(
            path_stroke, self._program.u, np.asarray(path.spline(self._program.u))
        )
        progress = Uniform().at(
            np.linspace(0.0, 1.0, CHECKS_PER_INTERVAL * self.objective.intervals + 1)
        )
        rows = PathRows(path_stroke, self.limits)
        rate = unit
        while (share := float(rows.shares(progress, rate)[0].max())) > 1.0:
            rate *= max(1.0 - RATE_EXPONENT * (share - 1.0), 0.5)
            if rate < MIN_RATE * unit:
                raise PoseError.of(
                    "motion", f"exceeds a limit at rest ({100 * share:.4g} %)", "plan again"
                )
        motion = self._timed(solution, rows, rate * (1.0 - GRID_TOLERANCE))
        q = path_stroke.q
        tool = q[:, :3]  # without obstacles the position of the tool is not used
        if self._rows.distances:
            tool = self.model.platform.tool(path_stroke.position(path_stroke.grid), start=q).place
        for name, values in self.surroundings.distances(self.model, q, tool).items():
            if values.min() < self.surroundings.clearance - CLEARANCE_TOLERANCE:
                raise PoseError.of(
                    "motion", f"comes within {1e3 * values.min():.3g} mm of {name}", "plan again"
                )
        if not motion.measure < self._allowed * (1.0 + CONDITION_TOLERANCE):
            raise PoseError.of(
                "motion",
                f"has a bound on the condition number of {motion.measure:.3g}",
                "plan again",
            )
        return motion

    def _timed(self, solution: Guess, rows: PathRows, rate: float) -> FreeMotion:
        """Return a motion at a rate (1/s), or at a lower rate if forces change too fast."""
        unit = 1.0 / solution.duration
        if self.limits.bounds_changes:
            rate = slowed(rows, Uniform(), rate, unit)
        law = FastestLaw(
            law=Uniform(), duration=1.0 / rate, rows=rows, unit=unit, sweeps=solution.steps
        )
        energy, wear, measure = self._costs(solution, 1.0 / rate)
        return FreeMotion(
            law=law,
            guess=solution,
            energy=energy,
            wear=wear,
            measure=measure,
            allowed=self._allowed,
        )

    def _costs(self, solution: Guess, duration: float) -> tuple[float, float, float]:
        """Return the energy (J), wear (rad or m) and the largest bound on the condition number."""
        u = np.linspace(0.0, 1.0, 8 * self.objective.intervals + 1)
        spline = self._spline(solution)
        y = np.concatenate([spline(u, k) / duration**k for k in range(3)], axis=1)
        loop_values = self._loops.at(u, spline(u))
        power, wear_rate, measure = (
            np.asarray(values).ravel() for values in self._costs_at.map(len(u))(y.T, loop_values.T)
        )
        energy = float(np.trapezoid(power, u) * duration)
        wear = float(np.trapezoid(wear_rate, u) * duration)
        return energy, wear, float(np.exp(measure.max()))


def _bulged_path(
    free: np.ndarray, fraction: np.ndarray, bump: np.ndarray, power: int
) -> np.ndarray:
    """Return points (n, m) at fractions (n,) of a line between two points, moved sideways."""
    s = fraction[:, None]
    return np.asarray(free[0] + s * (free[1] - free[0]) + bump * (1.0 - (2.0 * s - 1.0) ** power))


def _cost(motion: FreeMotion, objective: str) -> float:
    """Return the objective value of a motion."""
    return {"time": motion.law.duration, "energy": motion.energy, "wear": motion.wear}[objective]
