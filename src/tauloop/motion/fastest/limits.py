"""Limits along a path as inequalities p x + q a + g sqrt(x) <= r, the rows of a matrix.

Here u is the parameter of the path, x = (du/dt)^2 its squared speed, and a = d2u/dt2. Forces of
motors and rods are affine in a and x, plus viscous friction, which is linear in sqrt(x).
Four batches of inverse dynamics give all coefficients exactly. Coulomb friction is part of the
constant; its sign follows from the direction of motion along the path. The additional static
friction decreases with speed as exp(-c x) and is a separate term.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from tauloop.common.errors import InputError, PoseError, Problems
from tauloop.common.options import Options, option
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.compiler.state import Forces
from tauloop.model.tool import Payload
from tauloop.motion.laws import LawSample
from tauloop.motion.strokes.stroke import Stroke

#: Number of directions that bound the tool's acceleration on one side of its path. They approximate
#: a circle within 0.02 %.
CONE_DIRECTIONS = 65
#: Step of the path's parameter for the finite difference that gives the curvature at the tool.
CURVATURE_STEP = 1e-5
#: Fraction of a limit below which a viscous term counts as zero.
VISCOUS_TOLERANCE = 1e-11
#: Remedy for machines with cables.
CABLE_REMEDY = (
    "plan each path with another law, which keeps tensions within their bounds: "
    "`tauloop plan stroke --law 3-4-5`"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PathLimits(Options):
    """Limits of a motion along a path, in addition to those of the machine file.

    Attributes:
        force: fraction of the largest forces that may be used.
        speed: fraction of the largest speeds.
        payload: heaviest payload of the tool; the motion satisfies all limits with it and without
            it.
        motor_curve: pairs of a motor speed (rad/s, m/s) and the fraction of the largest force that
            is available at this speed, linear between the pairs and concave, such as ((0, 1),
            (20, 1), (40, 0.3)).
        tension: largest tension of a rod, N.
        compression: largest compression of a rod, N.
        tool_acceleration: largest acceleration of the tool center point, m/s^2.
        tool_jerk: largest jerk of the tool center point, m/s^3.
        reversal: time that motors need for a full reversal of their force, s; zero for no limit.
        ends: with a limit of reversal or jerk: whether the motors hold the machine at the start and
            the end (held), or brakes hold it while the motor forces build up and decay (braked).

    Examples:
        >>> from tauloop.model.tool import Payload
        >>> from tauloop.motion import PathLimits
        >>> PathLimits(force=0.9, payload=Payload(mass=0.5), tool_acceleration=100.0).force
        0.9
    """

    force: float = option(1.0, above=0.0, below=np.inf)
    speed: float = option(1.0, above=0.0, below=np.inf)
    payload: Payload | None = None
    motor_curve: tuple[tuple[float, float], ...] = option((), flag="")
    tension: float = option(np.inf, above=0.0)
    compression: float = option(np.inf, above=0.0)
    tool_acceleration: float = option(np.inf, above=0.0)
    tool_jerk: float = option(np.inf, above=0.0)
    reversal: float = option(0.0, least=0.0, below=np.inf)
    ends: str = option("held", choices=("held", "braked"))

    def _note_mismatches(self, problems: Problems) -> None:
        """Report an invalid motor curve."""
        if not self.motor_curve:
            return
        points = np.array(self.motor_curve, dtype=float)
        if (
            points.ndim != 2
            or points.shape[1] != 2
            or len(points) < 2
            or not np.isfinite(points).all()
        ):
            problems.add(
                "motor_curve",
                "does not have two or more pairs of numbers",
                "give pairs of speed and fraction, such as ((0, 1), (20, 1), (40, 0.3))",
            )
            return
        steps = np.diff(points, axis=0)
        if (steps[:, 0] <= 0).any() or (points < 0).any() or points[0, 0] != 0.0:
            problems.add(
                "motor_curve",
                "speeds do not increase from zero, or a fraction is negative",
                "give the pairs in the order of their speeds",
            )
        elif (np.diff(steps[:, 1] / steps[:, 0]) > 0).any():
            problems.add(
                "motor_curve", "is not concave", "use a concave curve below this motor curve"
            )

    @property
    def bounds_changes(self) -> bool:
        """Whether rates of change of forces or accelerations are limited."""
        return self.reversal > 0 or self.tool_jerk < np.inf

    def segments(self) -> list[tuple[float, float]]:
        """Return the lines c - k w of the motor curve over speed w as pairs (c, k).

        Without a motor curve, the only pair is (1, 0).
        """
        if not self.motor_curve:
            return [(1.0, 0.0)]
        points = np.array(self.motor_curve, dtype=float)
        slopes = -np.diff(points[:, 1]) / np.diff(points[:, 0])
        return [(float(p[1] + k * p[0]), float(k)) for p, k in zip(points, slopes, strict=False)]


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitRows(ReprMixin):
    """Inequalities at N points: p x + q a + g sqrt(x) + sum of e_j exp(-c_j x) <= r.

    The rows are divided by the limits. The squared speed of the path's parameter is x, its
    acceleration a.

    Attributes:
        names: names of the limits (m,).
        p, q, g, r: coefficients (N, m).
        e: additional static friction of k elements, above their Coulomb friction (N, m, k).
        c: decay of this friction with x (N, k).
        top: largest squared speeds (N,).
    """

    names: tuple[str, ...]
    p: np.ndarray
    q: np.ndarray
    g: np.ndarray
    r: np.ndarray
    e: np.ndarray
    c: np.ndarray
    top: np.ndarray

    def falling(self, x: np.ndarray) -> np.ndarray:
        """Return the friction term that decreases with speed (N, m), at squared speeds (N,)."""
        return np.asarray(np.einsum("nmk,nk->nm", self.e, np.exp(-self.c * x[:, None])))

    def excess(self, x: np.ndarray, a: np.ndarray) -> np.ndarray:
        """Return the excess of each row (N, m) at squared speeds and accelerations (N,)."""
        falling = self.falling(x) if self.e.size else None
        x = x[:, None]
        a = a[:, None]
        # in-place sums, because the arrays are large
        excess = self.p * x
        excess += self.q * a
        if self.g.any():
            excess += self.g * np.sqrt(x)
        if falling is not None:
            excess += falling
        excess -= self.r
        return np.asarray(excess)

    def linearized(self, x: np.ndarray) -> np.ndarray:
        """Return the coefficients p, q and r of linear rows (N, m, 3) near squared speeds x (N,).

        The square root is replaced by its tangent at x, and the term that decreases with speed by
        its value.
        """
        root = np.sqrt(x)[:, None]
        slope = np.divide(self.g, 2.0 * root, out=np.zeros_like(self.g), where=root > 0)
        rhs = self.r - 0.5 * self.g * root
        if self.e.size:
            rhs = rhs - self.falling(x)
        return np.stack([self.p + slope, self.q, rhs], axis=-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class PathForces(ReprMixin):
    """Forces y = alpha a + beta x + gamma sqrt(x) + rest + sum of falling_j exp(-fall_j x).

    The squared speed of the path's parameter is x, its acceleration a.

    Attributes:
        names: names of the forces (m,).
        alpha, beta, gamma, rest: coefficients (N, m).
        falling: additional static friction of k elements, above their Coulomb friction (N, m, k).
        fall: decay of this friction with x (N, k).
        rates: speeds of motors and coordinates per unit of du/dt (N, k).
    """

    names: tuple[str, ...]
    alpha: np.ndarray
    beta: np.ndarray
    gamma: np.ndarray
    rest: np.ndarray
    falling: np.ndarray
    fall: np.ndarray
    rates: np.ndarray


class PathRows:
    """All limits along a stroke."""

    def __init__(self, stroke: Stroke, limits: PathLimits, *, returns: bool = False) -> None:
        """Determine the limits of the machine.

        Raises:
            InputError: the machine has cables, or nothing limits the acceleration.
        """
        self.stroke = stroke
        self.limits = limits
        model = stroke.model
        self.directions = (1.0, -1.0) if returns else (1.0,)
        self.payloads: tuple[Payload | None, ...] = (None,)
        if limits.payload is not None:
            self.payloads = (None, limits.payload)
        self.names, self.units = model.output_ports("actuators")
        self.full = np.array([actuator.force for actuator in model.mechanism.actuators])
        self.size = limits.force * self.full
        sizes = [actuator.speed for actuator in model.mechanism.actuators]
        sizes += [freedom.speed for freedom in model.topology.freedoms]
        self.speeds = limits.speed * np.array(sizes)
        self.speed_names = tuple(
            f"{name} speed" for name in (*self.names, *model.topology.velocity_names)
        )
        problems = Problems()
        if model.mechanism.cables:
            problems.add(
                model.mechanism.name,
                "has cables, which time-optimal timing does not support",
                CABLE_REMEDY,
            )
        self._rods = self._rod_columns() if min(limits.tension, limits.compression) < np.inf else {}
        if (
            not np.isfinite(self.size).any()
            and not self._rods
            and not np.isfinite(limits.tool_acceleration)
        ):
            problems.add(
                "limits",
                "nothing limits the acceleration",
                "specify `force` of actuators in the machine file, or give tool_acceleration",
            )
        InputError.raise_if_any(problems)

    @property
    def count(self) -> int:
        """Number of forces: of all motors, and of rods with limits."""
        return len(self.names) + len(self._rods)

    def _rod_columns(self) -> dict[str, int]:
        """Return the columns of the closure forces that are rod forces, by name of the rod."""
        model = self.stroke.model
        rods = {rod.name for rod in model.mechanism.rods}
        elements = (model.assembly.loops.names[i].partition(":")[0] for i in model.assembly.rows)
        return {name: i for i, name in enumerate(elements) if name in rods}

    def forces(
        self, u: np.ndarray, speed: np.ndarray, pull: np.ndarray, *, falls: bool = True
    ) -> Iterator[tuple[str, np.ndarray]]:
        """Yield a suffix of names, and forces and speeds (K, N, m), for each direction and payload.

        The columns are forces of motors and rods, followed by speeds of motors and coordinates.

        Args:
            u: parameters (N,).
            speed, pull: speeds du/dt, not negative, and accelerations d2u/dt2, (K, 1) or (K, N).
            falls: whether to include the friction term that decreases with speed.
        """
        stroke = self.stroke
        parameters = np.tile(u, len(speed))
        for direction in self.directions:
            *motion, start = stroke.under(u, direction * speed, pull)
            for payload in self.payloads:
                solution = stroke.forces(
                    parameters, direction, motion, start=start, payload=payload, falls=falls
                )
                suffix = " back" if direction < 0 else ""
                if payload is not None:
                    suffix += " with payload"
                yield suffix, self._columns(solution, direction).reshape(len(speed), len(u), -1)

    def _columns(self, solution: Forces, direction: float) -> np.ndarray:
        """Return forces of motors and rods, followed by speeds of motors and coordinates (N, m)."""
        v = np.asarray(solution.state.v)
        parts = [
            solution.force,
            solution.closure_force[:, list(self._rods.values())],
            direction * v @ self.stroke.model.assembly.loops.transmission.T,
            direction * v,
        ]
        return np.concatenate(parts, axis=1)

    def quantities(self, u: np.ndarray, unit: float) -> Iterator[PathForces]:
        """Yield the coefficients of the forces of motors and rods, for each direction and payload.

        Args:
            u: parameters (N,).
            unit: a rate of the same magnitude as the motion's rate, 1/s.
        """
        n = self.count
        speeds = unit * np.array([[0.5], [1.0], [1.5], [1.0]])
        pulls = unit**2 * np.array([[0.0], [0.0], [0.0], [1.0]])
        # static friction does not depend on the payload
        falling = [terms for terms in self._falling(u) for _ in self.payloads]
        for (suffix, values), (friction, fall) in zip(
            self.forces(u, speeds, pulls, falls=False), falling, strict=True
        ):
            # forces at three speeds, and at the middle speed with an acceleration
            slow, middle, fast, accelerated = values[:, :, :n]
            slope = (middle - slow) / (0.5 * unit)
            beta = ((fast - middle) / (0.5 * unit) - slope) / unit
            gamma = slope - 1.5 * unit * beta
            yield PathForces(
                names=tuple(name + suffix for name in (*self.names, *self._rods)),
                alpha=(accelerated - middle) / unit**2,
                beta=beta,
                gamma=gamma,
                rest=slow - gamma * 0.5 * unit - beta * 0.25 * unit**2,
                falling=friction,
                fall=fall,
                rates=values[1][:, n:] / unit,
            )

    def _falling(self, u: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield additional static friction (N, m, k) and its decay (N, k) for each direction."""
        stroke = self.stroke
        friction = self.stroke.dry_friction
        if friction is None or not friction.depends_on_speed:
            for _ in self.directions:
                yield np.zeros((len(u), self.count, 0)), np.zeros((len(u), 0))
            return
        elements = np.flatnonzero(friction.excess).tolist()
        position, velocity, acceleration, start = stroke.under(u, np.ones((1, 1)), np.zeros((1, 1)))
        motion = position, velocity, acceleration
        for direction in self.directions:
            side = direction * stroke.friction_sides.at(u)
            frictionless = stroke.with_dry_friction(np.zeros_like(side), start, motion)
            reference = self._columns(frictionless, direction)
            contributions = []
            for j in elements:
                single = np.zeros_like(side)
                single[:, j] = friction.excess[j] * side[:, j]
                forces = self._columns(stroke.with_dry_friction(single, start, motion), direction)
                contributions.append((forces - reference)[:, : self.count])
            speeds = np.asarray(frictionless.state.v) @ friction.terms[elements].T
            yield np.stack(contributions, axis=2), (speeds / friction.stribeck[elements]) ** 2

    def even_quantities(self, u: np.ndarray, unit: float) -> list[PathForces]:
        """Return `quantities` of the machine without dry friction."""
        friction = self.stroke.dry_friction
        if friction is None:
            return list(self.quantities(u, unit))
        functions = friction.model.functions(self.stroke.functions.ports.entry)
        smooth = replace(self.stroke, model=friction.model, functions=functions)
        rows = PathRows(smooth, self.limits, returns=len(self.directions) > 1)
        return list(rows.quantities(u, unit))

    def unit(self) -> float:
        """Return a rate of the same magnitude as the fastest motion's rate, 1/s."""
        u = np.linspace(0.0, 1.0, 17)
        accelerations = []
        n = len(self.names)
        for quantity in self.quantities(u, 1.0):
            with np.errstate(divide="ignore", invalid="ignore"):
                accelerations.append(np.nanmin(self.size / np.abs(quantity.alpha[:, :n]), axis=1))
        if np.isfinite(self.limits.tool_acceleration):
            tangent, _ = self.tool(u)
            with np.errstate(divide="ignore"):
                accelerations.append(
                    self.limits.tool_acceleration / np.linalg.norm(tangent, axis=1)
                )
        typical = float(np.median(np.min(accelerations, axis=0)))
        return float(np.sqrt(typical)) / 2.0 if 0 < typical < np.inf else 1.0

    def at(self, u: np.ndarray, unit: float) -> LimitRows:
        """Return the rows at parameters u (N,).

        Speeds and accelerations of the parameter are in units of the rate `unit` (1/s).

        Raises:
            PoseError: a pose is singular.
        """
        names: list[str] = []
        parts: list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]] = []

        def add(
            name: str, p: np.ndarray, q: np.ndarray, g: np.ndarray, r: np.ndarray, e: np.ndarray
        ) -> None:
            """Add a row p x + q a + g sqrt(x) + e exp(-c x) <= r."""
            names.append(name)
            parts.append((p, q, g, r, e))

        n = len(self.names)
        ones = np.ones(len(u))
        rates = np.zeros((len(u), 0))
        fall = np.zeros((len(u), 0))
        for y in self.quantities(u, unit):
            rates = np.abs(y.rates)
            fall = unit**2 * y.fall
            for column, name, sign, size in self._bounds(y.names):
                i = column
                k = sign * unit / size
                viscous = np.where(
                    np.abs(k * y.gamma[:, i]) > VISCOUS_TOLERANCE, k * y.gamma[:, i], 0.0
                )
                p = k * unit * y.beta[:, i]
                q = k * unit * y.alpha[:, i]
                segments = self.limits.segments() if i < n else [(1.0, 0.0)]
                for share, slope in segments:
                    # the available force decreases with the speed of the motor
                    lost = slope * rates[:, i] * unit if i < n else 0.0
                    r = share - k / unit * y.rest[:, i]
                    add(name, p, q, viscous + lost, r, k / unit * y.falling[:, i])
        if np.isfinite(self.limits.tool_acceleration):
            tangent, normal = self.tool(u)
            # The tool's acceleration is tangent a + normal x. Directions in the plane of both
            # vectors bound its magnitude.
            length = np.linalg.norm(tangent, axis=1)
            tangential = (tangent * normal).sum(axis=1) / np.where(length > 0, length, 1.0)
            perpendicular = np.sqrt(np.maximum((normal**2).sum(axis=1) - tangential**2, 0.0))
            k = unit**2 / self.limits.tool_acceleration
            for angle in np.linspace(0.0, np.pi, CONE_DIRECTIONS):
                c, s = np.cos(angle), np.sin(angle)
                centripetal = k * (c * tangential + s * perpendicular)
                add(
                    "tool acceleration",
                    centripetal,
                    k * c * length,
                    0.0 * ones,
                    ones,
                    np.zeros((len(u), fall.shape[1])),
                )
        with np.errstate(divide="ignore"):
            top = ((self.speeds / rates).min(axis=1) / unit) ** 2
        if np.isfinite(self.speeds).any():  # between points of a grid, only rows are checked
            add("speed", 1.0 / top, 0.0 * ones, 0.0 * ones, ones, np.zeros((len(u), fall.shape[1])))
        p, q, g, r, e = (np.stack(part, axis=1) for part in zip(*parts, strict=True))
        return LimitRows(names=tuple(names), p=p, q=q, g=g, r=r, e=e, c=fall, top=top)

    def _bounds(self, names: Sequence[str]) -> Iterator[tuple[int, str, float, float]]:
        """Yield the finite bounds of forces: column, name, sign and size."""
        n = len(self.names)
        limits = self.limits
        for i, name in enumerate(names):
            bounds = (self.size[i],) * 2 if i < n else (limits.compression, limits.tension)
            for sign, size, side in zip((1.0, -1.0), bounds, (" pushed", " pulled"), strict=True):
                if np.isfinite(size):
                    yield i, name + (side if i >= n else ""), sign, float(size)

    @property
    def are_quadratic(self) -> bool:
        """Whether the fractions of all limits are quadratic in the rate."""
        friction = self.stroke.dry_friction
        return friction is None or not friction.depends_on_speed

    def shares(self, progress: LawSample, rate: float) -> tuple[np.ndarray, tuple[str, ...]]:
        """Return the used fractions of all limits (N, k) at a rate (1/s), and the limits' names.

        The fractions are computed by inverse dynamics. They have a sign, so that they are quadratic
        in
        the rate: forces in the direction opposite to a limit give negative fractions.
        """
        (values,), names = self.shares_at(progress, (rate,))
        return values, names

    def shares_at(
        self, progress: LawSample, rates: Sequence[float]
    ) -> tuple[np.ndarray, tuple[str, ...]]:
        """Return the `shares` at K rates (K, N, k), and the names of the limits.

        The path is evaluated once for all rates.
        """
        names: list[str] = []
        columns: list[np.ndarray] = []
        u = progress.s
        n = len(self.names)
        count = self.count
        scale = np.array(rates)[:, None]
        speed = np.abs(progress.derivative) * scale
        pull = progress.second_derivative * scale**2
        for suffix, values in self.forces(u, speed, pull):
            speeds = np.abs(values[..., count:])
            for i, name, sign, size in self._bounds(
                [name + suffix for name in (*self.names, *self._rods)]
            ):
                used = sign * values[..., i] / size
                segments = self.limits.segments() if i < n else [(1.0, 0.0)]
                for share, slope in segments:
                    lost = slope * speeds[..., i] if i < n else 0.0
                    names.append(name)
                    columns.append((used + lost) / share)
            if suffix == "":
                limited = np.flatnonzero(np.isfinite(self.speeds)).tolist()
                names += [self.speed_names[i] for i in limited]
                columns += [speeds[..., i] / self.speeds[i] for i in limited]
        if np.isfinite(self.limits.tool_acceleration):
            tangent, normal = self.tool(u)
            acceleration = np.linalg.norm(
                tangent * pull[..., None] + normal * speed[..., None] ** 2, axis=2
            )
            names.append("tool acceleration")
            columns.append(acceleration / self.limits.tool_acceleration)
        return np.stack(columns, axis=-1), tuple(names)

    def tool(self, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return first and second derivatives of the tool's position with respect to u (N, 3)."""
        low = np.clip(u - CURVATURE_STEP, 0.0, 1.0)
        high = np.clip(u + CURVATURE_STEP, 0.0, 1.0)
        position, velocity, _, start = self.stroke.under(
            np.concatenate([u, low, high]), np.ones((1, 1)), np.zeros((1, 1))
        )
        twist = np.asarray(self.stroke.functions.tool(position, velocity, start=start).twist)
        tangent, tangent_low, tangent_high = np.split(twist[:, :3], 3)
        return tangent, (tangent_high - tangent_low) / (high - low)[:, None]


def infeasible_error(stroke: Stroke, rows: LimitRows, grid: np.ndarray, index: int) -> PoseError:
    """Return the error for a point of the grid at which no speed satisfies all limits."""
    k = min(index, len(grid) - 1)
    excess_at_rest = rows.e[k].sum(axis=1) - rows.r[k]
    i = int(excess_at_rest.argmax())
    what = f"no speed satisfies all limits at {stroke.place(float(grid[k]))}"
    if excess_at_rest[i] > 0:
        percentage = 100 * (1 + excess_at_rest[i])
        what += f"; even at rest there, {rows.names[i]} needs {percentage:.4g} % of its limit"
    return PoseError.of("limits", what, "use a lighter load, another path or wider limits")
