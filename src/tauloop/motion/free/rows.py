"""Limits of a motion at a point, as expressions in free coordinates and their rates.

Each limit is a row with a lower and an upper bound. Rows are the forces of motors (with their
torque-speed curve) and rods, speeds, the tool's acceleration, ranges of coordinates, distances from
obstacles and between rods, and a bound on the condition number,

    kappa(A) <= 2 / |det A| (|A|_F / sqrt(m))^m.

A is the dimensionless matrix from velocities of the platform to velocities of the actuators. The
bound grows to infinity both where the actuators lose control of the platform and where legs are
stretched.

Source: Guggenheimer, Edelman, Johnson 1995, A simple estimate of the condition number of a linear
system.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import casadi as ca
import numpy as np

from tauloop.common.errors import InputError
from tauloop.common.options import Options, option
from tauloop.common.records import dataclass
from tauloop.compiler.catalogue import (
    EMBEDDING,
    INVERSE_DYNAMICS,
    KINEMATICS,
    LOADED_INVERSE_DYNAMICS,
    TERMS,
)
from tauloop.compiler.expressions import ProgramSpec
from tauloop.equations.assembly.freedoms.coordinates import unit_free
from tauloop.equations.assembly.loops import nominal
from tauloop.equations.tree import Configuration, symbolic_motion, tree_motion
from tauloop.geometry.clearance import RodClearance, rod_clearance
from tauloop.model import Model
from tauloop.model.faces.casadi_face import unfolded
from tauloop.model.tool import Payload
from tauloop.motion.fastest.limits import CABLE_REMEDY, PathLimits
from tauloop.motion.free.chart import Chart, PartOfRotation
from tauloop.motion.free.costs import power, wear
from tauloop.motion.free.jumps import smooth_at_jumps
from tauloop.motion.free.loops import IteratedLoops
from tauloop.motion.free.obstacles import Obstacle

#: Number of projections that locate the point of a rod nearest to an obstacle.
PROJECTIONS = 4
#: Number of points of a rod at which a planned motion is checked.
ROD_POINTS = 129
#: Fraction of a rod's squared length that is added so that the distance of two rods is smooth where
#: they cross or are parallel.
SQUARED_LENGTH_SHARE = 1e-12
#: Unit of distances in the rows, m.
DISTANCE_UNIT = 0.01


@dataclass(frozen=True, kw_only=True)
class Surroundings(Options):
    """Obstacles, and the clearance of the machine from them.

    Attributes:
        obstacles: boxes and spheres.
        tool_radius: radius of a sphere at the tool center point that avoids the obstacles, m.
        rod_radius: radius of the rods, m. Rods avoid the obstacles and each other; without a radius
            they are ignored.
        clearance: smallest allowed distance, m.

    Examples:
        >>> from tauloop.motion import SphereObstacle, Surroundings
        >>> Surroundings(obstacles=(SphereObstacle(center=(0.0, 0.0, -0.5), radius=0.02),), clearance=0.002).tool_radius
        0.0
    """

    obstacles: tuple[Obstacle, ...] = ()
    tool_radius: float = option(0.0, least=0.0, below=np.inf)
    rod_radius: float | None = option(None, least=0.0, below=np.inf)
    clearance: float = option(0.002, least=0.0, below=np.inf)

    def distances(self, model: Model, q: np.ndarray, tool: np.ndarray) -> dict[str, np.ndarray]:
        """Return the distances from each obstacle and between rods (N,), m, by name.

        Args:
            model: the machine.
            q: coordinates (N, n_q).
            tool: positions of the tool center point (N, 3), m.
        """
        distances = {}
        rods = rod_clearance(model) if self.rod_radius is not None else None
        rod_points = None
        if rods is not None and rods.rods:
            ends = rods.segments(q)
            fraction = np.linspace(0.0, 1.0, ROD_POINTS)[:, None]
            rod_points = ends[:, :, None, 0] * (1.0 - fraction) + ends[:, :, None, 1] * fraction
        for name, obstacle in zip(names_of(self.obstacles), self.obstacles, strict=True):
            distances[name] = obstacle.distances(tool) - self.tool_radius
            if rod_points is not None:
                rod = obstacle.distances(rod_points).min(axis=(1, 2)) - float(
                    self.rod_radius or 0.0
                )
                distances[f"{name} to rods"] = rod
        if rods is not None and len(rods.pairs):
            diameter = 2.0 * float(self.rod_radius or 0.0)
            distances["rod to rod"] = rods.distances(q).min(axis=1) - diameter
        return distances


def require_no_cables(model: Model) -> None:
    """Reject machines with cables.

    Raises:
        InputError: the machine has cables.
    """
    if model.mechanism.cables:
        what = "has cables, whose tension bounds transfers do not support"
        raise InputError.of(model.mechanism.name, what, CABLE_REMEDY)


def names_of(obstacles: tuple[Obstacle, ...]) -> list[str]:
    """Return the names of obstacles, formed from kind and index, such as box 1, sphere 2."""
    return [f"{type(obstacle).kind} {i + 1}" for i, obstacle in enumerate(obstacles)]


@dataclass(frozen=True, slots=True, kw_only=True)
class PointRows:
    """Limits at a point.

    Attributes:
        y: free coordinates, their velocities and accelerations (3 m,).
        loops: loops that are closed by iteration. All expressions below depend on their symbols.
        values: values of the rows (k,).
        lower, upper: bounds of the rows (k,).
        names: names of the rows.
        distances: names of the rows that are distances.
        forces: forces of motors without payload (n_u,), as fractions of their limits.
        power: power lost in motors and friction, W.
        wear: rate of the motors' equivalent travel at full force, rad/s or m/s: a smooth
            approximation, and the exact expression.
        measure: logarithm of the bound on the condition number.
    """

    y: ca.SX
    loops: IteratedLoops
    values: ca.SX
    lower: np.ndarray
    upper: np.ndarray
    names: tuple[str, ...]
    distances: frozenset[str]
    forces: ca.SX
    power: ca.SX
    wear: tuple[ca.SX, ca.SX]
    measure: ca.SX

    def smooth_at_jumps(self, y: np.ndarray, loops: np.ndarray) -> PointRows:
        """Return the rows with jumps of friction replaced, for a given initial motion.

        The initial motion has y (N, 3 m) and values of the loops' symbols (N, k).
        """
        values = [self.values, self.forces, self.power, *self.wear]
        rows, forces, power, wear, exact_wear = smooth_at_jumps(
            values, [self.y, self.loops.symbols], [y, loops]
        )
        return replace(self, values=rows, forces=forces, power=power, wear=(wear, exact_wear))

    @property
    def is_distance(self) -> np.ndarray:
        """Whether each row is a distance (k,)."""
        return np.array([name in self.distances for name in self.names], dtype=bool)


class _Point:
    """The machine's expressions at a point."""

    def __init__(
        self, model: Model, chart: Chart, loops: IteratedLoops, payload: Payload | None
    ) -> None:
        runner = model.platform.runner
        m = chart.freedoms
        self.model = model
        self.loops = loops
        self.y = ca.SX.sym("y", 3 * m)
        free = [self.y[:m], self.y[m : 2 * m], self.y[2 * m :]]
        position, self._velocity, acceleration = chart.expressions(*free)
        self._inputs = {name: ca.SX(ca.DM(numbers)) for name, numbers in runner.nominal.items()}
        self._inputs |= {
            "position": position,
            "velocity": self._velocity,
            "acceleration": acceleration,
        }
        if chart.parts:
            self._set_partial_rotations(chart.parts, *free[1:])
        if payload:
            load = {"wrench": ca.SX(6, 1), "payload": ca.SX(ca.DM(payload.parameters))}
            self.values = self._of(LOADED_INVERSE_DYNAMICS, **load)
        else:
            self.values = self._of(INVERSE_DYNAMICS)

    def _of(self, spec: ProgramSpec, **inputs: ca.SX) -> dict[str, ca.SX]:
        """Return the values of a program from some of its inputs."""
        return unfolded(
            self.model.platform.runner.program(spec),
            {**self._inputs, **inputs},
            self.loops.solution,
        )

    def _embedding(self) -> ca.SX:
        """Return the matrix (n_v, m) from platform velocities to all velocities."""
        zero = ca.SX(self._velocity.numel(), 1)
        return ca.reshape(self._of(EMBEDDING, velocity=zero)["G"], -1, self._velocity.numel())

    def _set_partial_rotations(
        self, parts: tuple[PartOfRotation, ...], first: ca.SX, second: ca.SX
    ) -> None:
        """Set velocities and accelerations of rotations with only some prescribed components.

        The method is that of `velocities_from_position_rates`. The given rows of p' = E(p) w / 2, with w = G v_given,
        are solved for the angular velocities, and those of p'' for the angular accelerations.
        """
        q = self._of(KINEMATICS[0])["q"]
        G = self._embedding()
        columns = [column for part in parts for column in part.columns]
        numbers = [i for part in parts for i in part.free]

        def rows(p: ca.SX, part: PartOfRotation) -> ca.SX:
            """Return the given rows of E(p) / 2."""
            w = p[0]
            xyz = p[1:]
            return (
                0.5 * ca.vertcat(-xyz.T, w * ca.SX.eye(3) - ca.skew(xyz))[list(part.components), :]
            )

        rotations = [(part, q[part.q : part.q + 4], slice(part.v, part.v + 3)) for part in parts]
        given_rows = ca.vertcat(*(rows(p, part) @ G[w, :] for part, p, w in rotations))
        inverse = ca.inv_minor(given_rows[:, columns])
        v = self._velocity
        a = self._inputs["acceleration"]
        v[columns] = inverse @ (first[numbers] - given_rows @ v)
        without_acceleration = self._of(KINEMATICS[2], velocity=v, acceleration=ca.SX(v.numel(), 1))
        bias = []
        for part, p, at in rotations:
            w = without_acceleration["v"][at]
            x = p[0]
            xyz = p[1:]
            rate = 0.5 * ca.vertcat(-ca.dot(xyz, w), x * w + ca.cross(w, xyz))
            bias.append(rows(rate, part) @ w + rows(p, part) @ without_acceleration["a"][at])
        a[columns] = inverse @ (second[numbers] - ca.vertcat(*bias) - given_rows @ a)

    def friction_power(self) -> ca.SX:
        """Return the power lost in friction, W.

        The forces at rest (springs, and the constant term of friction, which does not depend on the
        velocity) are subtracted because their work over a cycle is zero.
        """
        at_rest = self._of(TERMS, velocity=ca.SX(self._velocity.numel(), 1))["losses"]
        return ca.SX(ca.dot(self._of(TERMS)["losses"] - at_rest, self._velocity))

    def measure(self) -> ca.SX:
        """Return the logarithm of the bound on the condition number."""
        loops = self.model.assembly.loops
        ports = self.model.platform.ports
        m = ports.velocity.size
        A = (
            ca.SX(ca.DM(unit_free(loops) / loops.velocity_scale))
            @ self._embedding()
            @ ca.DM(np.diag(loops.velocity_scale[list(ports.v)]))
        )
        _, R = ca.qr(A)
        size = ca.log(ca.sumsqr(A) / m)
        return ca.SX(np.log(2.0) + 0.5 * m * size - 0.5 * ca.sum1(ca.log(ca.diag(R) ** 2)))

    def bodies(self, rods: RodClearance | None) -> tuple[ca.SX, list[tuple[ca.SX, ca.SX]]]:
        """Return the tool's position (3,), and the positions of both ends of each rod (3,)."""
        mechanism = self.model.mechanism
        q = self.values["q"]
        motion = symbolic_motion(self.model.topology, nominal(mechanism), is_moving=False)
        points = [motion.point(mechanism.platform.tool).p]
        if rods is not None:
            points += [
                motion.point(end).p for rod in mechanism.rods for end in (rod.start, rod.end)
            ]
        tool, *ends = ca.substitute(points, [motion.q], [q])
        return tool, list(zip(ends[0::2], ends[1::2], strict=True))

    def tool_acceleration(self) -> ca.SX:
        """Return the acceleration of the tool (3,), m/s^2."""
        parts = (self.model.topology, nominal(self.model.mechanism))
        values = self.values
        motion = tree_motion(*parts, Configuration(values["q"], {}), values["v"], values["a"])
        return motion.point(self.model.mechanism.platform.tool).a


def rows_at(
    model: Model,
    chart: Chart,
    limits: PathLimits,
    surroundings: Surroundings,
    ends: np.ndarray,
    condition: float,
    copper_loss: np.ndarray | float,
    exponent: float = 3.0,
) -> PointRows:
    """Return all limits at a point.

    Args:
        model: the machine.
        chart: free coordinates of the motion.
        limits: limits of forces, speeds and accelerations.
        surroundings: obstacles and clearances.
        ends: all coordinates at both ends of the motion (2, n_q); ranges are widened to include
            them.
        condition: largest bound on the condition number.
        copper_loss: winding loss per squared force (n_u,), W/N^2 or W/(N m)^2.
        exponent: exponent of the forces in the wear.
    """
    loops = IteratedLoops(model, chart, ends)
    point = _Point(model, chart, loops, None)
    mechanism = model.mechanism
    values = point.values
    size = limits.force * np.array([actuator.force for actuator in mechanism.actuators])
    speed_sizes = [actuator.speed for actuator in mechanism.actuators]
    speed_sizes += [freedom.speed for freedom in model.topology.freedoms]
    speeds = ca.vertcat(ca.DM(model.assembly.loops.transmission) @ values["v"], values["v"])
    rows: list[tuple[str, ca.SX, float, float]] = []

    def forces(point: _Point, suffix: str) -> Iterator[tuple[str, ca.SX, float, float]]:
        """Yield name, expression, lower and upper bound of each force limit at a point."""
        for i, actuator in enumerate(mechanism.actuators):
            if not np.isfinite(size[i]):
                continue
            share = point.values["force"][i] / size[i]
            if not limits.motor_curve:
                yield actuator.name + suffix, share, -1.0, 1.0
                continue
            for available, slope in limits.segments():
                signs = (1.0, -1.0) if slope else (0.0,)
                for sign in signs:
                    lost = sign * slope * speeds[i]
                    yield actuator.name + suffix, (lost + share) / available, -np.inf, 1.0
                    yield actuator.name + suffix, (lost - share) / available, -np.inf, 1.0
        for name, i in _rods(model, limits).items():
            share = point.values["closure_force"][i] / min(limits.tension, limits.compression)
            scale = min(limits.tension, limits.compression)
            yield name + suffix, share, -limits.tension / scale, limits.compression / scale

    rows += forces(point, "")
    if limits.payload is not None:
        loaded = _Point(model, chart, loops, limits.payload)
        rows += [
            (name, ca.substitute(row, loaded.y, point.y), low, high)
            for name, row, low, high in forces(loaded, " with payload")
        ]
    names = (*(a.name for a in mechanism.actuators), *model.topology.velocity_names)
    for i, max_speed in enumerate(limits.speed * np.array(speed_sizes)):
        if np.isfinite(max_speed):
            rows.append((f"{names[i]} speed", speeds[i] / max_speed, -1.0, 1.0))
    rods = rod_clearance(model) if surroundings.rod_radius is not None else None
    tool, rod_ends = point.bodies(rods)
    if np.isfinite(limits.tool_acceleration):
        share = point.tool_acceleration() / limits.tool_acceleration
        rows.append(("tool acceleration", ca.dot(share, share), -np.inf, 1.0))
    rows += _ranges(model, values["q"], ends)
    distances = list(_distances(surroundings, tool, rod_ends, rods))
    rows += distances
    measure = point.measure()
    rows.append(("singularity", measure, -np.inf, float(np.log(condition))))
    force = values["force"]
    motor_speeds = speeds[: len(size)]
    motor_accelerations = ca.DM(model.assembly.loops.transmission) @ values["a"]
    return PointRows(
        y=point.y,
        loops=loops,
        values=ca.vertcat(*(row for _, row, _, _ in rows)),
        lower=np.array([low for *_, low, _ in rows]),
        upper=np.array([high for *_, high in rows]),
        names=tuple(name for name, *_ in rows),
        distances=frozenset(name for name, *_ in distances),
        forces=force / ca.DM(np.where(np.isfinite(size), size, 1e300)),
        power=power(
            model, force, motor_speeds, motor_accelerations, point.friction_power(), copper_loss
        ),
        wear=wear(
            force / ca.DM(np.where(np.isfinite(size), size / limits.force, 1e300)),
            motor_speeds,
            exponent,
        ),
        measure=measure,
    )


def _rods(model: Model, limits: PathLimits) -> dict[str, int]:
    """Return the columns of rod forces in the closure forces by name; empty without limits."""
    if min(limits.tension, limits.compression) == np.inf:
        return {}
    rods = {rod.name for rod in model.mechanism.rods} - set(model.mechanism.cables)
    elements = (model.assembly.loops.names[i].partition(":")[0] for i in model.assembly.rows)
    return {name: i for i, name in enumerate(elements) if name in rods}


def _ranges(model: Model, q: ca.SX, ends: np.ndarray) -> Iterator[tuple[str, ca.SX, float, float]]:
    """Yield the rows of the coordinates' ranges, widened to include the ends of the motion."""
    limits = model.limits
    for name, column, low, high in zip(
        limits.names, limits.columns, limits.lower, limits.upper, strict=False
    ):
        at_ends = ends[:, column]
        bounds = min(low, at_ends.min()), max(high, at_ends.max())
        if np.isfinite(bounds).any():
            yield f"{name} range", q[column], float(bounds[0]), float(bounds[1])


def _distances(
    surroundings: Surroundings,
    tool: ca.SX,
    rod_ends: list[tuple[ca.SX, ca.SX]],
    rods: RodClearance | None,
) -> Iterator[tuple[str, ca.SX, float, float]]:
    """Yield the rows of the distances from obstacles and between rods."""
    clearance = surroundings.clearance
    radius = float(surroundings.rod_radius or 0.0)
    for name, obstacle in zip(
        names_of(surroundings.obstacles), surroundings.obstacles, strict=True
    ):
        min_distance = (clearance + surroundings.tool_radius) / DISTANCE_UNIT
        yield name, obstacle.expression(tool) / DISTANCE_UNIT, min_distance, np.inf
        for a, b in rod_ends:
            distance = obstacle.expression(_nearest(obstacle, a, b))
            yield (
                f"{name} to rods",
                distance / DISTANCE_UNIT,
                (clearance + radius) / DISTANCE_UNIT,
                np.inf,
            )
    pairs = [] if rods is None else rods.pairs.tolist()
    for i, k in pairs:
        yield (
            "rod to rod",
            _between(*rod_ends[i], *rod_ends[k]) / DISTANCE_UNIT,
            (clearance + 2.0 * radius) / DISTANCE_UNIT,
            np.inf,
        )


def _nearest(obstacle: Obstacle, a: ca.SX, b: ca.SX) -> ca.SX:
    """Return the point of segment ab nearest to an obstacle, by alternating projections."""
    u = b - a
    x = 0.5 * (a + b)
    for _ in range(PROJECTIONS):
        fraction = ca.dot(obstacle.projection_target(x) - a, u) / ca.dot(u, u)
        x = a + ca.fmin(ca.fmax(fraction, 0.0), 1.0) * u
    return x


def _between(a: ca.SX, b: ca.SX, c: ca.SX, d: ca.SX) -> ca.SX:
    """Return the distance between segments ab and cd (see `segment_distances` for the source)."""
    u, w, r = b - a, d - c, a - c
    uu = ca.dot(u, u)
    ww = ca.dot(w, w)
    uw = ca.dot(u, w)
    ur = ca.dot(u, r)
    wr = ca.dot(w, r)

    def clip(value: ca.SX) -> ca.SX:
        """Return a value limited to the range 0 to 1."""
        return ca.fmin(ca.fmax(value, 0.0), 1.0)

    s = clip((uw * wr - ww * ur) / (uu * ww - uw**2 + SQUARED_LENGTH_SHARE * uu * ww))
    t = clip((uw * s + wr) / ww)
    s = clip((uw * t - ur) / uu)
    difference = r + s * u - t * w
    return ca.SX(ca.sqrt(ca.dot(difference, difference) + SQUARED_LENGTH_SHARE * uu))
