"""What a motion keeps at one point, as expressions in free coordinates and their rates, and its derivatives.

Each row lies between bounds: forces of motors (with their curve over speed) and rods, speeds, the tool's acceleration,
ranges of coordinates, distances from obstacles and between rods, and a bound of the condition number,

    kappa(A) <= 2 / |det A| (|A|_F / sqrt(m))^m,

A being the actuators' velocities per unit of the platform's, free of units: it grows without end both where actuators
lose the platform and where legs are stretched.

Source: Guggenheimer, Edelman, Johnson 1995, A simple estimate of the condition number of a linear system.
"""

from __future__ import annotations

from collections.abc import Iterator

import casadi as ca
import numpy as np

from tauloop.assembly.coordinates import unit_free
from tauloop.assembly.loops import nominal
from tauloop.equations.tree import symbolic_motion
from tauloop.errors import InputError
from tauloop.kinematics.clearance import RodClearance, rod_clearance
from tauloop.mechanism.bodies import cables
from tauloop.model import Model
from tauloop.model.casadi_face import unfolded
from tauloop.model.tool import Payload
from tauloop.motion.fastest.limits import PathLimits
from tauloop.motion.free.chart import Chart
from tauloop.motion.free.costs import power, wear
from tauloop.motion.free.obstacles import Obstacle
from tauloop.options import Options, option
from tauloop.programs.catalogue import EMBEDDING, INVERSE_DYNAMICS, LOADED_INVERSE_DYNAMICS, TERMS
from tauloop.programs.program import Evaluate
from tauloop.records import dataclass

#: Projections that find where a rod is nearest to an obstacle, and points of it that are looked at afterwards.
PROJECTIONS, LOOKS_ON_RODS = 4, 129
#: Distances are counted in this, m.
FAR = 0.01


@dataclass(frozen=True, kw_only=True)
class Surroundings(Options):
    """What stands in the way, and how far the machine keeps from it.

    Attributes:
        obstacles: boxes and spheres.
        tool_radius: of a ball about the tool centre point that keeps off them, m.
        rod_radius: of the rods, which then keep off them and off each other, m; rods are not looked at without it.
        clearance: least distance, m.

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
        """Distances (N,) of what is nearest, at coordinates (N, n_q) with the tool at (N, 3), m; by name."""
        table = {}
        rods = rod_clearance(model) if self.rod_radius is not None else None
        on_rods = None
        if rods is not None and rods.rods:
            ends = rods.segments(q)
            share = np.linspace(0.0, 1.0, LOOKS_ON_RODS)[:, None]
            on_rods = ends[:, :, None, 0] * (1.0 - share) + ends[:, :, None, 1] * share
        for name, obstacle in zip(names_of(self.obstacles), self.obstacles, strict=True):
            table[name] = obstacle.distances(tool) - self.tool_radius
            if on_rods is not None:
                rod = obstacle.distances(on_rods).min(axis=(1, 2)) - float(self.rod_radius or 0.0)
                table[f"{name} to rods"] = rod
        if rods is not None and len(rods.pairs):
            table["rod to rod"] = rods.distances(q).min(axis=1) - 2.0 * float(self.rod_radius or 0.0)
        return table


def require_closed(model: Model) -> None:
    """Refuse machines whose motion is no expression.

    Raises:
        InputError: cables, or loops that close by iteration.
    """
    if cables(model.mechanism):
        what = "hangs on cables, whose tensions are no expression"
        raise InputError.of(model.mechanism.name, what, "a law along a path, by `motion`")
    if not all(isinstance(step, Evaluate) for step in model.platform.runner.program(INVERSE_DYNAMICS).steps):
        raise InputError.of(model.mechanism.name, "closes loops by iteration", "plan along a path, by `fastest`")


def names_of(obstacles: tuple[Obstacle, ...]) -> list[str]:
    """Names of obstacles by kind and order: box 1, sphere 2."""
    return [f"{type(obstacle).kind} {i + 1}" for i, obstacle in enumerate(obstacles)]


@dataclass(frozen=True, slots=True, kw_only=True)
class PointRows:
    """What is kept at one point.

    Attributes:
        y: free coordinates, their velocities and accelerations (3 m,).
        values: (k,).
        lower, upper: their bounds (k,).
        names: of the rows.
        distances: names of those that are distances.
        forces: forces of motors without payload (n_u,) as shares of their sizes.
        power: heat of motors and friction, W.
        wear: motors' travel at full force a second, without edges, rad/s or m/s; and as it is.
        measure: the bound of the condition number, as a logarithm.
    """

    y: ca.SX
    values: ca.SX
    lower: np.ndarray
    upper: np.ndarray
    names: tuple[str, ...]
    distances: frozenset[str]
    forces: ca.SX
    power: ca.SX
    wear: tuple[ca.SX, ca.SX]
    measure: ca.SX

    @property
    def far(self) -> np.ndarray:
        """Which rows are distances (k,)."""
        return np.array([name in self.distances for name in self.names], dtype=bool)


class _Point:
    """The machine's expressions at one point."""

    def __init__(self, model: Model, chart: Chart, payload: Payload | None) -> None:
        runner, m = model.platform.runner, chart.freedoms
        self.model, self.y = model, ca.SX.sym("y", 3 * m)
        self.free = [self.y[:m], self.y[m : 2 * m], self.y[2 * m :]]
        entry = dict(zip(("position", "velocity", "acceleration"), chart.expressions(*self.free), strict=True))
        inputs = {name: ca.SX(ca.DM(numbers)) for name, numbers in runner.nominal.items()}
        loaded = {"wrench": ca.SX(6, 1), "payload": ca.SX(ca.DM(payload.parameters))} if payload else {}
        spec = LOADED_INVERSE_DYNAMICS if payload else INVERSE_DYNAMICS
        self.values = unfolded(runner.program(spec), {**inputs, **entry, **loaded})
        still = {"velocity": ca.SX(entry["velocity"].numel(), 1)}
        self._embedding = lambda: unfolded(runner.program(EMBEDDING), {**inputs, **entry, **still})["G"]
        self._losses = lambda: unfolded(runner.program(TERMS), {**inputs, **entry})["losses"]
        self._velocity = entry["velocity"]

    def lost(self) -> ca.SX:
        """Power that friction (and springs) take, W."""
        return ca.SX(ca.dot(self._losses(), self._velocity))

    def measure(self) -> ca.SX:
        """Logarithm of the bound of the condition number."""
        loops, ports = self.model.assembly.loops, self.model.platform.ports
        m = ports.velocity.size
        G = ca.reshape(self._embedding(), -1, m)
        A = (
            ca.SX(ca.DM(unit_free(loops) / loops.velocity_scale))
            @ G
            @ ca.DM(np.diag(loops.velocity_scale[list(ports.v)]))
        )
        _, R = ca.qr(A)
        size = ca.log(ca.sumsqr(A) / m)
        return ca.SX(np.log(2.0) + 0.5 * m * size - 0.5 * ca.sum1(ca.log(ca.diag(R) ** 2)))

    def bodies(self, rods: RodClearance | None) -> tuple[ca.SX, list[tuple[ca.SX, ca.SX]]]:
        """The tool's place (3,) and both ends of each rod."""
        mechanism, q = self.model.mechanism, self.values["q"]
        motion = symbolic_motion(self.model.topology, nominal(mechanism), is_moving=False)
        places = [motion.point(mechanism.platform.tool).p]
        if rods is not None:
            places += [motion.point(end).p for rod in mechanism.rods for end in (rod.start, rod.end)]
        tool, *ends = ca.substitute(places, [motion.q], [q])
        return tool, list(zip(ends[0::2], ends[1::2], strict=True))

    def rate(self, expression: ca.SX) -> ca.SX:
        """Derivative in time of what depends on coordinates and velocities."""
        rate = ca.jtimes(expression, self.free[0], self.free[1])
        return ca.SX(rate + ca.jtimes(expression, self.free[1], self.free[2]))


def rows_at(
    model: Model,
    chart: Chart,
    limits: PathLimits,
    surroundings: Surroundings,
    ends: np.ndarray,
    condition: float,
    copper: np.ndarray | float,
    exponent: float = 3.0,
) -> PointRows:
    """All that is kept at one point.

    Args:
        model: the machine.
        chart: its free coordinates.
        limits: of forces, speeds and accelerations.
        surroundings: obstacles.
        ends: full coordinates (2, n_q) of the motion's ends, which ranges are widened to.
        condition: largest bound of the condition number.
        copper: heat per squared force of motors (n_u,), W/N^2 or W/(N m)^2.
        exponent: of the forces in the wear.
    """
    point = _Point(model, chart, None)
    mechanism, values = model.mechanism, point.values
    size = limits.force * np.array([actuator.force for actuator in mechanism.actuators])
    speed_sizes = [actuator.speed for actuator in mechanism.actuators]
    speed_sizes += [freedom.speed for freedom in model.topology.freedoms]
    speeds = ca.vertcat(ca.DM(model.assembly.loops.transmission) @ values["v"], values["v"])
    rows: list[tuple[str, ca.SX, float, float]] = []

    def forces(point: _Point, word: str) -> Iterator[tuple[str, ca.SX, float, float]]:
        for i, actuator in enumerate(mechanism.actuators):
            if not np.isfinite(size[i]):
                continue
            share = point.values["force"][i] / size[i]
            if not limits.motor_curve:
                yield actuator.name + word, share, -1.0, 1.0
            for left, slope in limits.segments() if limits.motor_curve else []:
                for sign in (1.0, -1.0) if slope else (0.0,):
                    lost = sign * slope * speeds[i]
                    yield actuator.name + word, (lost + share) / left, -np.inf, 1.0
                    yield actuator.name + word, (lost - share) / left, -np.inf, 1.0
        for name, i in _rods(model, limits).items():
            share = point.values["closure_force"][i] / min(limits.tension, limits.compression)
            scale = min(limits.tension, limits.compression)
            yield name + word, share, -limits.tension / scale, limits.compression / scale

    rows += forces(point, "")
    if limits.payload is not None:
        loaded = _Point(model, chart, limits.payload)
        rows += [
            (name, ca.substitute(row, loaded.y, point.y), low, high)
            for name, row, low, high in forces(loaded, " with payload")
        ]
    names = (*(a.name for a in mechanism.actuators), *model.topology.velocity_names)
    for i, most in enumerate(limits.speed * np.array(speed_sizes)):
        if np.isfinite(most):
            rows.append((f"{names[i]} speed", speeds[i] / most, -1.0, 1.0))
    rods = rod_clearance(model) if surroundings.rod_radius is not None else None
    tool, bars = point.bodies(rods)
    if np.isfinite(limits.tool_acceleration):
        pull = point.rate(point.rate(tool)) / limits.tool_acceleration
        rows.append(("tool acceleration", ca.dot(pull, pull), -np.inf, 1.0))
    rows += _ranges(model, values["q"], ends)
    distances = list(_distances(surroundings, tool, bars, rods))
    rows += distances
    measure = point.measure()
    rows.append(("singularity", measure, -np.inf, float(np.log(condition))))
    force, motor_speeds = values["force"], speeds[: len(size)]
    pulls = ca.DM(model.assembly.loops.transmission) @ values["a"]
    return PointRows(
        y=point.y,
        values=ca.vertcat(*(row for _, row, _, _ in rows)),
        lower=np.array([low for *_, low, _ in rows]),
        upper=np.array([high for *_, high in rows]),
        names=tuple(name for name, *_ in rows),
        distances=frozenset(name for name, *_ in distances),
        forces=force / ca.DM(np.where(np.isfinite(size), size, 1e300)),
        power=power(model, force, motor_speeds, pulls, point.lost(), copper),
        wear=wear(force / ca.DM(np.where(np.isfinite(size), size / limits.force, 1e300)), motor_speeds, exponent),
        measure=measure,
    )


def _rods(model: Model, limits: PathLimits) -> dict[str, int]:
    """Columns of the closure forces that are forces of rods, where these have limits."""
    if min(limits.tension, limits.compression) == np.inf:
        return {}
    rods = {rod.name for rod in model.mechanism.rods} - set(cables(model.mechanism))
    kept = (model.assembly.loops.names[i].partition(":")[0] for i in model.assembly.rows)
    return {name: i for i, name in enumerate(kept) if name in rods}


def _ranges(model: Model, q: ca.SX, ends: np.ndarray) -> Iterator[tuple[str, ca.SX, float, float]]:
    """Ranges of coordinates that the tree has, widened to the ends of the motion."""
    limits = model.limits
    for name, column, low, high in zip(limits.names, limits.columns, limits.lower, limits.upper, strict=False):
        here = ends[:, column]
        bounds = min(low, here.min()), max(high, here.max())
        if np.isfinite(bounds).any():
            yield f"{name} range", q[column], float(bounds[0]), float(bounds[1])


def _distances(
    surroundings: Surroundings, tool: ca.SX, bars: list[tuple[ca.SX, ca.SX]], rods: RodClearance | None
) -> Iterator[tuple[str, ca.SX, float, float]]:
    """Distances from obstacles, and between rods."""
    free, radius = surroundings.clearance, float(surroundings.rod_radius or 0.0)
    for name, obstacle in zip(names_of(surroundings.obstacles), surroundings.obstacles, strict=True):
        least = (free + surroundings.tool_radius) / FAR
        yield name, obstacle.expression(tool) / FAR, least, np.inf
        for a, b in bars:
            distance = obstacle.expression(_nearest(obstacle, a, b))
            yield f"{name} to rods", distance / FAR, (free + radius) / FAR, np.inf
    for i, k in rods.pairs.tolist() if rods is not None else []:
        yield "rod to rod", _between(*bars[i], *bars[k]) / FAR, (free + 2.0 * radius) / FAR, np.inf


def _nearest(obstacle: Obstacle, a: ca.SX, b: ca.SX) -> ca.SX:
    """The point of segment ab that is nearest to an obstacle, by projections to and fro."""
    u, x = b - a, 0.5 * (a + b)
    for _ in range(PROJECTIONS):
        share = ca.dot(obstacle.nearest(x) - a, u) / ca.dot(u, u)
        x = a + ca.fmin(ca.fmax(share, 0.0), 1.0) * u
    return x


def _between(a: ca.SX, b: ca.SX, c: ca.SX, d: ca.SX) -> ca.SX:
    """Distance of segments ab and cd; as `segment_distances`, whose source it has."""
    u, w, r = b - a, d - c, a - c
    uu, ww, uw, ur, wr = ca.dot(u, u), ca.dot(w, w), ca.dot(u, w), ca.dot(u, r), ca.dot(w, r)

    def clip(value: ca.SX) -> ca.SX:
        return ca.fmin(ca.fmax(value, 0.0), 1.0)

    s = clip((uw * wr - ww * ur) / (uu * ww - uw**2 + 1e-12 * uu * ww))
    t = clip((uw * s + wr) / ww)
    s = clip((uw * t - ur) / uu)
    difference = r + s * u - t * w
    return ca.SX(ca.sqrt(ca.dot(difference, difference) + 1e-12))
