"""Limits along a path as rows: p x + q a + g sqrt(x) <= r in the speed sqrt(x) = du/dt and a = d2u/dt2.

Forces of motors and rods are affine in a and x, with viscous friction in sqrt(x): four batches of inverse dynamics give
all coefficients, exactly. Coulomb friction stands in the constant, with the sign that the motion has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from tauloop.assembly.ports import ACTUATORS, PLATFORM
from tauloop.errors import InputError, PoseError, Problems
from tauloop.mechanism.bodies import cables
from tauloop.model import Model
from tauloop.model.tool import Payload
from tauloop.motion.laws import Progress
from tauloop.motion.stroke import Stroke
from tauloop.options import Options, option
from tauloop.records import dataclass
from tauloop.shown import Shown

#: Directions in which the tool's acceleration is bounded on one side of its path: a circle, but for 0.02 % of it.
DIRECTIONS = 65
#: Change of the path's parameter over which its curvature at the tool is taken.
STEP = 1e-5
#: A viscous part below this share of a limit is rounding.
ROUNDING = 1e-11
#: What cables can do instead.
OTHER_LAW = "plan each path with another law, which keeps cables within bounds: `tauloop motion --law 3-4-5`"


@lru_cache(maxsize=4)
def _without_jumps(model: Model) -> Model:
    """The machine without what jumps where a motion turns; itself where nothing does.

    Beside a joint that stays at rest, rounding alone would decide which way its Coulomb friction acts.
    """
    mechanism = model.mechanism.without_jumps()
    if mechanism == model.mechanism:
        return model
    other = Model(mechanism, model.free, formulation=model.formulation, evaluator=model.given_evaluator)
    return other.at(model.assembly.q)


@dataclass(frozen=True, slots=True, kw_only=True)
class PathLimits(Options):
    """What a motion along a path keeps, beside the limits of force and speed in the machine file.

    Attributes:
        force: share of the largest forces that may be used.
        speed: share of the largest speeds.
        payload: the heaviest that the tool carries; the motion keeps all limits with it and without.
        motor_curve: pairs of a motor's speed (rad/s, m/s) and the share of its largest force that is left there,
            straight between them and bent one way, such as ((0, 1), (20, 1), (40, 0.3)).
        tension: largest pull in a rod, N.
        compression: largest push in a rod, N.
        tool_acceleration: of the tool centre point, m/s^2.
        tool_jerk: likewise of its jerk, m/s^3.
        reversal: time that motors need from their largest force to that of the other sign, s; zero for none.
        ends: with a reversal or a jerk: whether the motion begins and ends with the forces that hold the machine
            (held), or brakes hold it while motors build forces up and take them away (braked).

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
        """Note a curve of motors that is none."""
        if not self.motor_curve:
            return
        points = np.array(self.motor_curve, dtype=float)
        if points.ndim != 2 or points.shape[1] != 2 or len(points) < 2 or not np.isfinite(points).all():
            problems.add("motor_curve", "is not two pairs of numbers or more", "such as ((0, 1), (20, 1), (40, 0.3))")
            return
        steps = np.diff(points, axis=0)
        if (steps[:, 0] <= 0).any() or (points < 0).any() or points[0, 0] != 0.0:
            problems.add("motor_curve", "speeds do not rise from zero, or a share is negative", "pairs in order")
        elif (np.diff(steps[:, 1] / steps[:, 0]) > 0).any():
            problems.add("motor_curve", "is bent upwards", "its largest part that is bent one way")

    @property
    def bounds_changes(self) -> bool:
        """Whether forces or accelerations may change so fast and no faster."""
        return self.reversal > 0 or self.tool_jerk < np.inf

    def segments(self) -> list[tuple[float, float]]:
        """Lines c - k w of the motors' curve over speed w: (c, k) of each; (1, 0) without one."""
        if not self.motor_curve:
            return [(1.0, 0.0)]
        points = np.array(self.motor_curve, dtype=float)
        slopes = -np.diff(points[:, 1]) / np.diff(points[:, 0])
        return [(float(p[1] + k * p[0]), float(k)) for p, k in zip(points, slopes, strict=False)]


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitRows(Shown):
    """Rows at N points: p x + q a + g sqrt(x) <= r, scaled so that a limit is 1.

    Attributes:
        names: of the limits (m,).
        p, q, g, r: (N, m).
        top: largest squared speeds (N,).
    """

    names: tuple[str, ...]
    p: np.ndarray
    q: np.ndarray
    g: np.ndarray
    r: np.ndarray
    top: np.ndarray

    def excess(self, x: np.ndarray, a: np.ndarray) -> np.ndarray:
        """By how much squared speeds and accelerations (N,) exceed each row (N, m)."""
        x, a = x[:, None], a[:, None]
        over = self.p * x
        over += self.q * a
        if self.g.any():
            over += self.g * np.sqrt(x)
        over -= self.r
        return np.asarray(over)

    def three(self, x: np.ndarray) -> np.ndarray:
        """Rows (N, m, 3) without the root, which is put as its tangent at squared speeds x (N,)."""
        root = np.sqrt(x)[:, None]
        slope = np.divide(self.g, 2.0 * root, out=np.zeros_like(self.g), where=root > 0)
        return np.stack([self.p + slope, self.q, self.r - 0.5 * self.g * root], axis=-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class PathForces(Shown):
    """A force along a path, y = alpha a + beta x + gamma sqrt(x) + rest.

    Attributes:
        names: of its columns (m,).
        alpha, beta, gamma, rest: (N, m).
        rates: speeds of motors and coordinates per unit of du/dt (N, k).
    """

    names: tuple[str, ...]
    alpha: np.ndarray
    beta: np.ndarray
    gamma: np.ndarray
    rest: np.ndarray
    rates: np.ndarray


class PathRows:
    """All limits along a stroke."""

    def __init__(self, stroke: Stroke, limits: PathLimits, *, returns: bool = False) -> None:
        """Look at what the machine has.

        Raises:
            InputError: cables, passive freedoms, or nothing that limits the acceleration.
        """
        self.stroke, self.limits, model = stroke, limits, stroke.model
        self.directions = (1.0, -1.0) if returns else (1.0,)
        self.payloads: tuple[Payload | None, ...] = (None,) if limits.payload is None else (None, limits.payload)
        self.names, self.units = model.output_ports("actuators")
        self.full = np.array([actuator.force for actuator in model.mechanism.actuators])
        self.size = limits.force * self.full
        sizes = [actuator.speed for actuator in model.mechanism.actuators]
        sizes += [freedom.speed for freedom in model.topology.freedoms]
        self.speeds = limits.speed * np.array(sizes)
        self.speed_names = tuple(f"{name} speed" for name in (*self.names, *model.topology.velocity_names))
        problems = Problems()
        if cables(model.mechanism):
            problems.add(model.mechanism.name, "hangs on cables, whose tensions have no fastest law", OTHER_LAW)
        self._rods = self._rod_columns() if min(limits.tension, limits.compression) < np.inf else {}
        if not np.isfinite(self.size).any() and not self._rods and not np.isfinite(limits.tool_acceleration):
            problems.add("limits", "nothing limits the acceleration", "give 'force' to actuators, or tool_acceleration")
        InputError.raise_if_any(problems)

    @property
    def count(self) -> int:
        """Number of forces: of motors, and of rods that have limits."""
        return len(self.names) + len(self._rods)

    def _rod_columns(self) -> dict[str, int]:
        """Columns of the closure forces that are forces of rods."""
        model = self.stroke.model
        rods = {rod.name for rod in model.mechanism.rods}
        kept = (model.assembly.loops.names[i].partition(":")[0] for i in model.assembly.rows)
        return {name: i for i, name in enumerate(kept) if name in rods}

    def forces(self, u: np.ndarray, speed: np.ndarray, pull: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
        """Forces of motors and rods, then speeds of motors and coordinates (K, N, m), for every direction and payload.

        Args:
            u: parameters (N,).
            speed, pull: du/dt and d2u/dt2, (K, 1) or (K, N).
        """
        stroke, columns = self.stroke, list(self._rods.values())
        transmission = stroke.model.assembly.loops.transmission
        for direction in self.directions:
            motion = stroke.under(u, direction * speed, pull)
            for payload in self.payloads:
                solution = stroke.functions.inverse_dynamics(*motion[:3], start=motion[3], payload=payload)
                v = np.asarray(solution.state.v)
                parts = [
                    solution.force,
                    solution.closure_force[:, columns],
                    direction * v @ transmission.T,
                    direction * v,
                ]
                word = " back" * (direction < 0) + " with payload" * (payload is not None)
                yield word, np.concatenate(parts, axis=1).reshape(len(speed), len(u), -1)

    def quantities(self, u: np.ndarray, unit: float) -> Iterator[PathForces]:
        """Coefficients of forces of motors and rods, for every direction and payload.

        Args:
            u: parameters (N,).
            unit: a rate (1/s) of the size of the motion's.
        """
        n = self.count
        speeds = unit * np.array([[0.5], [1.0], [1.5], [1.0]])
        for word, values in self.forces(u, speeds, unit**2 * np.array([[0.0], [0.0], [0.0], [1.0]])):
            slow, middle, quick, pulled = values[:, :, :n]
            first = (middle - slow) / (0.5 * unit)
            beta = ((quick - middle) / (0.5 * unit) - first) / unit
            gamma = first - 1.5 * unit * beta
            yield PathForces(
                names=tuple(name + word for name in (*self.names, *self._rods)),
                alpha=(pulled - middle) / unit**2,
                beta=beta,
                gamma=gamma,
                rest=slow - gamma * 0.5 * unit - beta * 0.25 * unit**2,
                rates=values[1][:, n:] / unit,
            )

    def even_quantities(self, u: np.ndarray, unit: float) -> list[PathForces]:
        """As `quantities`, of the machine without Coulomb friction."""
        model = _without_jumps(self.stroke.model)
        entry = PLATFORM if self.stroke.functions is self.stroke.model.platform else ACTUATORS
        even = replace(self.stroke, model=model, functions=model.motion(entry))
        return list(PathRows(even, self.limits, returns=len(self.directions) > 1).quantities(u, unit))

    def unit(self) -> float:
        """A rate (1/s) of the size of the fastest motion's, from what motors and tool can accelerate."""
        u, best = np.linspace(0.0, 1.0, 17), []
        n = len(self.names)
        for quantity in self.quantities(u, 1.0):
            with np.errstate(divide="ignore", invalid="ignore"):
                best.append(np.nanmin(self.size / np.abs(quantity.alpha[:, :n]), axis=1))
        if np.isfinite(self.limits.tool_acceleration):
            tangent, _ = self.tool(u)
            with np.errstate(divide="ignore"):
                best.append(self.limits.tool_acceleration / np.linalg.norm(tangent, axis=1))
        least = float(np.median(np.min(best, axis=0)))
        return float(np.sqrt(least)) / 2.0 if 0 < least < np.inf else 1.0

    def at(self, u: np.ndarray, unit: float) -> LimitRows:
        """Rows at parameters u (N,), for speeds and accelerations in units of a rate (1/s).

        Raises:
            PoseError: a singular pose.
        """
        names: list[str] = []
        parts: list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]] = []

        def add(name: str, p: np.ndarray, q: np.ndarray, g: np.ndarray, r: np.ndarray) -> None:
            names.append(name)
            parts.append((p, q, g, r))

        n, ones, rates = len(self.names), np.ones(len(u)), np.zeros((len(u), 0))
        for y in self.quantities(u, unit):
            rates = np.abs(y.rates)
            for column, name, sign, size in self._bounds(y.names):
                i, k = column, sign * unit / size
                viscous = np.where(np.abs(k * y.gamma[:, i]) > ROUNDING, k * y.gamma[:, i], 0.0)
                for share, slope in self.limits.segments() if i < n else [(1.0, 0.0)]:
                    lost = slope * rates[:, i] * unit if i < n else 0.0
                    p, q, r = k * unit * y.beta[:, i], k * unit * y.alpha[:, i], share - k / unit * y.rest[:, i]
                    add(name, p, q, viscous + lost, r)
        if np.isfinite(self.limits.tool_acceleration):
            tangent, normal = self.tool(u)
            along = np.linalg.norm(tangent, axis=1)
            ahead = (tangent * normal).sum(axis=1) / np.where(along > 0, along, 1.0)
            aside = np.sqrt(np.maximum((normal**2).sum(axis=1) - ahead**2, 0.0))
            k = unit**2 / self.limits.tool_acceleration
            for angle in np.linspace(0.0, np.pi, DIRECTIONS):
                c, s = np.cos(angle), np.sin(angle)
                add("tool acceleration", k * (c * ahead + s * aside), k * c * along, 0.0 * ones, ones)
        p, q, g, r = (np.stack(part, axis=1) for part in zip(*parts, strict=True))
        with np.errstate(divide="ignore"):
            top = ((self.speeds / rates).min(axis=1) / unit) ** 2
        return LimitRows(names=tuple(names), p=p, q=q, g=g, r=r, top=top)

    def _bounds(self, names: Sequence[str]) -> Iterator[tuple[int, str, float, float]]:
        """Finite bounds of forces: column, name, sign and size."""
        n, limits = len(self.names), self.limits
        for i, name in enumerate(names):
            bounds = (self.size[i],) * 2 if i < n else (limits.compression, limits.tension)
            for sign, size, side in zip((1.0, -1.0), bounds, (" pushed", " pulled"), strict=True):
                if np.isfinite(size):
                    yield i, name + (side if i >= n else ""), sign, float(size)

    def shares(self, progress: Progress, rate: float) -> tuple[np.ndarray, tuple[str, ...]]:
        """Shares of all limits (N, k) that a motion takes at a rate (1/s), by its inverse dynamics, and their names.

        Shares of one sign, so that they are quadratic in the rate: what acts the other way is negative.
        """
        names: list[str] = []
        columns: list[np.ndarray] = []
        u, n, count = progress.s, len(self.names), self.count
        speed, pull = np.abs(progress.first) * rate, progress.second * rate**2
        for word, (values,) in self.forces(u, speed[None], pull[None]):
            rates = np.abs(values[:, count:])
            for i, name, sign, size in self._bounds([name + word for name in (*self.names, *self._rods)]):
                for share, slope in self.limits.segments() if i < n else [(1.0, 0.0)]:
                    names.append(name)
                    columns.append((sign * values[:, i] / size + (slope * rates[:, i] if i < n else 0.0)) / share)
            if word == "":
                kept = np.isfinite(self.speeds)
                names += [name for name, is_kept in zip(self.speed_names, kept, strict=True) if is_kept]
                columns += list((rates / self.speeds)[:, kept].T)
        if np.isfinite(self.limits.tool_acceleration):
            tangent, normal = self.tool(u)
            acceleration = np.linalg.norm(tangent * pull[:, None] + normal * speed[:, None] ** 2, axis=1)
            names.append("tool acceleration")
            columns.append(acceleration / self.limits.tool_acceleration)
        return np.stack(columns, axis=1), tuple(names)

    def tool(self, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """First and second derivatives of the tool's place in u (N, 3)."""
        low, high = np.clip(u - STEP, 0.0, 1.0), np.clip(u + STEP, 0.0, 1.0)
        position, velocity, _, start = self.stroke.under(
            np.concatenate([u, low, high]), np.ones((1, 1)), np.zeros((1, 1))
        )
        twist = np.asarray(self.stroke.functions.tool(position, velocity, start=start).twist)
        here, before, behind = np.split(twist[:, :3], 3)
        return here, (behind - before) / (high - low)[:, None]


def unmet(stroke: Stroke, rows: LimitRows, grid: np.ndarray, place: int) -> PoseError:
    """Why nothing keeps all rows at a place of the grid."""
    k = min(place, len(grid) - 1)
    still = -rows.r[k]
    i = int(still.argmax())
    alone = (
        f"; {rows.names[i]} alone takes {100 * (1 + still[i]):.4g} % of its limit at rest there" if still[i] > 0 else ""
    )
    what = f"no speed keeps all limits at {stroke.place(float(grid[k]))}{alone}"
    return PoseError.of("limits", what, "a lighter load, another path, or wider limits")
