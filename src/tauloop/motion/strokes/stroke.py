"""A path of the coordinates of a machine, checked for reach, ranges and singularities."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import InputError, PoseError, Problem, Problems
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.compiler.state import Forces
from tauloop.equations.assembly.singular_kinds import singular_kind
from tauloop.equations.ports import PLATFORM, Entry, numbers
from tauloop.mechanism.suggestions import unknown_names
from tauloop.model import Model, Motion
from tauloop.model.tool import Payload
from tauloop.motion.laws import LawSample
from tauloop.motion.paths.curves import Path
from tauloop.motion.rate_limits.peaks import refined
from tauloop.motion.sampled import SampledMotion
from tauloop.motion.strokes.dry_friction import (
    FrictionSides,
    JumpingFriction,
    dry_friction,
    friction_sides,
)
from tauloop.motion.strokes.rates import velocities_from_position_rates

#: Dimensionless condition number above which a stroke passes through a singularity.
SINGULAR_CONDITION = 1e6
#: Minimum number of points at which the directions of elements with dry friction are evaluated.
MIN_SIDE_POINTS = 1025
#: Fraction of the largest position along the path below which a position counts as zero.
ZERO_POSITION = 1e-12


@dataclass(frozen=True, kw_only=True)
class Stroke(ReprMixin):
    """A path in the coordinates of the platform or the actuators, checked by `stroke`.

    Attributes:
        model: the machine.
        functions: functions that take these coordinates: `model.platform` or `model.actuators`.
        path: curve of the positions in `columns`.
        columns: names of the positions that the path moves.
        base: all positions (n_position,); positions that the path does not move keep these values.
    """

    model: Model
    functions: Motion
    path: Path
    columns: tuple[str, ...]
    base: np.ndarray

    @cached_property
    def grid(self) -> np.ndarray:
        """Path parameters (M,), from 0 to 1, at which the path is checked."""
        return np.union1d(np.linspace(0.0, 1.0, self.path.n_shape_points), self.path.breaks)

    @cached_property
    def q(self) -> np.ndarray:
        """All coordinates at the checked parameters (M, n_q).

        Raises:
            PoseError: the path leaves the reach of the machine. The message states where.
        """
        functions = self.functions
        grid = self.grid
        position = self.position(self.grid)
        try:
            return functions.track(position).q
        except PoseError as error:
            zero = np.zeros((len(grid), functions.ports.velocity.size))
            is_reached = functions.evaluate(position, zero, zero).health.is_reached
            unreachable = np.flatnonzero(~is_reached)
            where = (
                f"from {self.place(grid[unreachable[0]])} on" if len(unreachable) else "somewhere"
            )
            what = (
                f"leaves the reach of the machine {where}: {len(unreachable)} of {len(grid)} points "
                "are out of reach"
            )
            remedy = "move or shrink the path; the distances are listed below"
            raise PoseError(
                [Problem(where="path", what=what, remedy=remedy), *error.problems]
            ) from error

    @cached_property
    def dry_friction(self) -> JumpingFriction | None:
        """Friction that depends on the direction of motion; None if there is none."""
        return dry_friction(self.model)

    @cached_property
    def friction_sides(self) -> FrictionSides:
        """Directions in which the elements with dry friction move along the path."""
        friction = self.dry_friction
        if friction is None:
            return FrictionSides(reversals=np.zeros(0), sides=np.zeros((1, 0)))
        terms = friction.terms

        def speeds(u: np.ndarray) -> np.ndarray:
            position, velocity, _, start = self.under(u, np.ones((1, 1)), np.zeros((1, 1)))
            state = self.functions.kinematics(position, velocity, start=start)
            return np.asarray(state.v) @ terms.T

        uniform = np.linspace(0.0, 1.0, max(self.path.n_shape_points, MIN_SIDE_POINTS))
        return friction_sides(speeds, np.union1d(uniform, self.grid), self.path.breaks)

    @property
    def breaks(self) -> tuple[float, ...]:
        """Parameters inside (0, 1) at which forces jump, because of the path or dry friction."""
        return tuple(sorted({*self.path.breaks, *self.friction_sides.reversals.tolist()}))

    @property
    def kinks(self) -> tuple[float, ...]:
        """Parameters inside (0, 1) at which forces jump or have a kink."""
        return tuple(sorted({*self.path.kinks, *self.friction_sides.reversals.tolist()}))

    @property
    def condition(self) -> float:
        """Largest condition number along the path, also between the checked points."""
        return self._worst[0]

    @property
    def worst(self) -> float:
        """Parameter of the largest condition number."""
        return self._worst[1]

    @cached_property
    def _worst(self) -> tuple[float, float]:
        """Largest condition number along the path, and its path parameter."""
        functions = self.functions

        def logarithm(u: np.ndarray) -> np.ndarray:
            state = functions.kinematics(self.position(u), start=self.start(u))
            return np.log(np.minimum(functions.condition(state.q), 1e300))

        values = np.log(np.minimum(functions.condition(self.q), 1e300))
        parameters, heights = refined(logarithm, self.grid, values)
        return float(np.exp(heights[0])), float(parameters[0])

    def start(self, u: np.ndarray) -> np.ndarray:
        """Return coordinates (N, n_q) near parameters u (N,) as start values of Newton's method."""
        return np.stack([np.interp(u, self.grid, column) for column in self.q.T], axis=1)

    def position(self, u: np.ndarray) -> np.ndarray:
        """Return all positions (N, n_position) at parameters u (N,)."""
        position = np.tile(self.base, (len(u), 1))
        position[:, self._moving] = self.path.at(u).position
        return position

    @property
    def _moving(self) -> list[int]:
        """Indices of the positions that the path moves."""
        return [self.functions.ports.position.columns.index(name) for name in self.columns]

    def motion(self, progress: LawSample, rate: float, time: np.ndarray) -> SampledMotion:
        """Return the motion along the path.

        Args:
            progress: progress along the path (N,), with derivatives in normalized time.
            rate: normalized time per second, 1/s.
            time: times (N,), s.

        Returns:
            Positions, velocities and accelerations (N, n), in the columns of `functions.ports`.
        """
        curve = self.path.at(progress.s)
        speed = progress.derivative[:, None] * rate
        acceleration = progress.second_derivative[:, None] * rate**2
        first = np.zeros((len(time), len(self.base)))
        first[:, self._moving] = curve.derivative * speed
        second = np.zeros((len(time), len(self.base)))
        second[:, self._moving] = (
            curve.second_derivative * speed**2 + curve.derivative * acceleration
        )
        position = self.position(progress.s)
        velocities, accelerations = velocities_from_position_rates(
            self.model, self.functions, position, first, second, self.start(progress.s)
        )
        return SampledMotion(
            time=time, position=position, velocity=velocities, acceleration=accelerations
        )

    def under(
        self, u: np.ndarray, speed: np.ndarray, pull: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return the motions at path parameters u (N,) for K speeds and accelerations of u.

        Args:
            u: parameters (N,).
            speed: speeds du/dt, 1/s, (K, 1) or (K, N).
            pull: accelerations d2u/dt2 of the path parameter, 1/s^2, (K, 1) or (K, N).

        Returns:
            Positions, velocities, accelerations and start values (K N, n), in K blocks of N rows.
        """
        curve = self.path.at(u)
        k, n = len(speed), len(u)
        v = np.broadcast_to(speed, (k, n)).reshape(-1, 1)
        a = np.broadcast_to(pull, (k, n)).reshape(-1, 1)
        position = np.tile(self.base, (n, 1))
        position[:, self._moving] = curve.position
        position = np.tile(position, (k, 1))
        start = np.tile(self.start(u), (k, 1))
        tangent = np.tile(curve.derivative, (k, 1))
        first = np.zeros((k * n, len(self.base)))
        first[:, self._moving] = tangent * v
        second = np.zeros((k * n, len(self.base)))
        second[:, self._moving] = np.tile(curve.second_derivative, (k, 1)) * v**2 + tangent * a
        velocity, acceleration = velocities_from_position_rates(
            self.model, self.functions, position, first, second, start
        )
        return position, velocity, acceleration, start

    def forces(
        self,
        u: np.ndarray,
        direction: np.ndarray | float,
        motion: Sequence[np.ndarray],
        *,
        start: np.ndarray | None = None,
        payload: Payload | None = None,
        falls: bool = True,
    ) -> Forces:
        """Return the forces of a motion along the path.

        At rest, dry friction has the direction of the adjoining motion.

        Args:
            u: parameters (N,).
            direction: direction of the motion along the path (N,): forward (1), backward (-1) or at
                rest (0).
            motion: positions, velocities and accelerations (N, n).
            start: start values of Newton's method (N, n_q); default `start` at the parameters.
            payload: payload at the tool.
            falls: whether to include the friction term that decreases with speed (Stribeck).

        Raises:
            PoseError: a pose is out of reach or singular.
        """
        start = self.start(u) if start is None else start
        friction = self.dry_friction
        if friction is None:
            return self.functions.inverse_dynamics(*motion, start=start, payload=payload)
        side = self.friction_sides.at(u) * np.broadcast_to(direction, u.shape)[:, None]
        dry = friction.sliding(side)
        if falls and friction.depends_on_speed:
            v = np.asarray(self.functions.kinematics(*motion[:2], start=start).v)
            dry = friction.forces(side, v @ friction.terms.T)
        return self.with_dry_friction(dry, start, motion, payload=payload)

    def with_dry_friction(
        self,
        dry: np.ndarray,
        start: np.ndarray,
        motion: Sequence[np.ndarray],
        *,
        payload: Payload | None = None,
    ) -> Forces:
        """Return the forces of a motion with given dry friction of the elements (N, k).

        Raises:
            PoseError: a pose is out of reach or singular.
        """
        friction = self.dry_friction
        if friction is None:
            return self.functions.inverse_dynamics(*motion, start=start, payload=payload)
        functions = friction.model.functions(self.functions.ports.entry)
        return functions.inverse_dynamics(*motion, start=start, theta=dry, payload=payload)

    def place(self, u: float) -> str:
        """Return a description of a point of the path: its percentage, and its positions."""
        port = self.functions.ports.position
        units = dict(zip(port.columns, port.units, strict=True))
        values = self.path.at(np.array([u])).position[0]
        largest = np.abs(self.path.at(np.linspace(0.0, 1.0, 17)).position).max()
        values = np.where(np.abs(values) > ZERO_POSITION * largest, values, 0.0)
        positions = ", ".join(
            f"{name} = {value:.5g}" + (f" {units[name]}" if units[name] != "1" else "")
            for name, value in zip(self.columns, values, strict=True)
        )
        return f"{100 * u:.1f} % of the path ({positions})"


def stroke(
    model: Model,
    path: Path,
    columns: Sequence[str],
    *,
    entry: Entry = PLATFORM,
    base: object | None = None,
    ranges: bool = True,
) -> Stroke:
    """Return a path of the coordinates of a machine, checked along its whole length.

    Args:
        model: the machine.
        path: path in the units of the columns: m, rad or quaternions.
        columns: names of the positions that the path moves, in the order of its coordinates, such
            as ``platform.x``.
        entry: `PLATFORM` for a path of the platform, `ACTUATORS` for a path in joint space.
        base: values of the positions that the path does not move (n_position,); by default those of
            the reference pose.
        ranges: whether to check the coordinate ranges of the machine file.

    Raises:
        InputError: a column is unknown, or the number of columns differs from the path's.
        PoseError: the path is out of reach, leaves a coordinate's range, or passes through a
            singularity. The message states where and by how much.
    """
    functions = model.functions(entry)
    names = tuple(columns)
    _check_columns(functions, path, names)
    fixed = functions.ports.at(model.assembly.q) if base is None else numbers(base, "base")
    if fixed.shape != (functions.ports.position.size,) or not np.isfinite(fixed).all():
        remedy = f"give {', '.join(functions.ports.position.columns)}"
        raise InputError.of(
            "base", "must be a vector with one finite number per coordinate", remedy
        )
    result = Stroke(model=model, functions=functions, path=path, columns=names, base=fixed)
    if ranges:
        _require_within_limits(result)
    _require_regular(result)
    return result


def _require_within_limits(stroke: Stroke) -> None:
    """Reject a stroke that leaves the range of a coordinate."""
    problems = Problems()
    for item in stroke.model.limits.beyond(stroke.q):
        what = (
            f"reaches {item.value:.6g} {item.unit}, {item.by:.4g} beyond its stop at "
            f"{item.stop:.6g}, at {stroke.place(stroke.grid[item.sample])}"
        )
        remedy = "move or shrink the path, or correct the limits in the machine file"
        problems.add(item.coordinate, what, remedy)
    PoseError.raise_if_any(problems)


def _require_regular(stroke: Stroke) -> None:
    """Reject a stroke that passes through a singularity."""
    if stroke.condition <= SINGULAR_CONDITION:
        return
    u = np.array([stroke.worst])
    functions = stroke.functions
    near = stroke.start(u)
    q = functions.evaluate(stroke.position(u), start=near).q[0]
    kind = singular_kind(functions.assembly, np.where(np.isfinite(q), q, near[0]))
    what = (
        f"passes through a singularity ({kind}) at {stroke.place(stroke.worst)}: condition number "
    )
    remedy = (
        "stay away from poses where the actuators lose control of the platform, or the platform no "
        "longer determines the legs"
    )
    raise PoseError.of("path", f"{what}{stroke.condition:.3g}", remedy)


def _check_columns(functions: Motion, path: Path, columns: tuple[str, ...]) -> None:
    """Reject names that are not positions, that occur twice, or whose number is wrong."""
    what = f"is not a position of the {functions.ports.name}"
    problems = Problems(unknown_names(columns, functions.ports.position.columns, what))
    if len(set(columns)) < len(columns):
        problems.add(
            "columns", f"a name occurs twice: {', '.join(columns)}", "name each column once"
        )
    if len(columns) != path.size:
        what = f"{len(columns)} for a path in {counted(path.size, 'coordinate')}"
        problems.add("columns", what, "name one column for each coordinate of the path")
    InputError.raise_if_any(problems)
