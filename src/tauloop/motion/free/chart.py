"""Free coordinates of a platform's pose, and paths that are splines in them.

Lengths and angles are free coordinates themselves. A quaternion is p = N / |N| with
N = middle (1, r), where r are three free Gibbs-Rodrigues parameters relative to a middle
orientation. These parameters represent all rotations of less than 180 degrees from the middle
orientation.
"""

from __future__ import annotations

from dataclasses import field

import casadi as ca
import numpy as np
from scipy.interpolate import BSpline

from tauloop.common.errors import InputError
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.equations.ports import EntryPorts
from tauloop.equations.topology import Topology
from tauloop.motion.paths.curves import Curve, Path, quaternion_product

#: Degree of the splines. Accelerations are continuous, and linear between knots.
DEGREE = 3
#: Smallest cosine of half the rotation angle from the middle orientation; 0.5 for 120 degrees.
MIN_HALF_ANGLE_COSINE = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class PartOfRotation:
    """Independent components of a quaternion whose other components the loops determine.

    Attributes:
        q, v: indices of the quaternion's first component among the machine's coordinates, and of
            its angular velocity among the machine's velocities.
        components: indices of the independent components of the quaternion.
        free: indices of these components among the free coordinates.
        columns: indices of the corresponding velocities of the platform.
    """

    q: int
    v: int
    components: tuple[int, ...]
    free: tuple[int, ...]
    columns: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart(ReprMixin):
    """Free coordinates of the platform's positions.

    Attributes:
        size: number of positions.
        plain: columns of positions that are free coordinates themselves.
        quaternions: first columns of the quaternions among the positions.
        middles: middle orientation of each quaternion (k, 4).
        columns: columns of the velocities of plain positions, followed by those of each quaternion.
        parts: quaternions with only some independent components. These components are the last
            entries of `plain`.
    """

    size: int
    plain: tuple[int, ...]
    quaternions: tuple[int, ...]
    middles: np.ndarray
    columns: tuple[tuple[int, ...], ...]
    parts: tuple[PartOfRotation, ...] = ()

    @property
    def freedoms(self) -> int:
        """Number of free coordinates m."""
        return len(self.plain) + 3 * len(self.quaternions)

    def free(self, position: np.ndarray) -> np.ndarray:
        """Return the free coordinates (N, m) of positions (N, size).

        Raises:
            InputError: an orientation is too far from the middle orientation.
        """
        parts = [position[:, list(self.plain)]]
        for k, middle in zip(self.quaternions, self.middles, strict=True):
            n = quaternion_product(
                np.broadcast_to(_inverse(middle), (len(position), 4)), position[:, k : k + 4]
            )
            if (np.abs(n[:, 0]) < MIN_HALF_ANGLE_COSINE).any():
                raise InputError.of(
                    "end",
                    "rotates the platform by more than 240 degrees",
                    "divide the motion into smaller rotations",
                )
            parts.append(n[:, 1:] / n[:, :1])
        return np.concatenate(parts, axis=1)

    def curve(self, free: np.ndarray, first: np.ndarray, second: np.ndarray) -> Curve:
        """Return positions and derivatives (N, size) from those of free coordinates (N, m)."""
        position = np.zeros((len(free), self.size))
        derivative = np.zeros((len(free), self.size))
        second_derivative = np.zeros((len(free), self.size))
        n = len(self.plain)
        plain = list(self.plain)
        position[:, plain] = free[:, :n]
        derivative[:, plain] = first[:, :n]
        second_derivative[:, plain] = second[:, :n]
        for i, (k, middle) in enumerate(zip(self.quaternions, self.middles, strict=True)):
            rows = slice(n + 3 * i, n + 3 * i + 3)
            columns = slice(k, k + 4)
            middles = np.broadcast_to(middle, (len(free), 4))

            def product(
                scalar: float, vector: np.ndarray, middles: np.ndarray = middles
            ) -> np.ndarray:
                scalars = np.full((len(vector), 1), scalar)
                return quaternion_product(middles, np.concatenate([scalars, vector], axis=1))

            # the quaternion N = middle (1, free) before normalization, and its derivatives
            N = product(1.0, free[:, rows])
            dN = product(0.0, first[:, rows])
            ddN = product(0.0, second[:, rows])
            length = np.linalg.norm(N, axis=1, keepdims=True)
            p = N / length
            d_length = (p * dN).sum(axis=1, keepdims=True)
            dp = (dN - d_length * p) / length
            dd_length = (dp * dN + p * ddN).sum(axis=1, keepdims=True)
            position[:, columns] = p
            derivative[:, columns] = dp
            second_derivative[:, columns] = (ddN - dd_length * p - 2.0 * d_length * dp) / length
        return Curve(position=position, derivative=derivative, second_derivative=second_derivative)

    def expressions(self, free: ca.SX, first: ca.SX, second: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
        """Return positions (size,), velocities and accelerations as expressions.

        They depend on free coordinates and their rates (m,). Velocities and accelerations of
        partly independent rotations are zero; the loops determine them.
        """
        n = len(self.plain)
        position = ca.SX(self.size, 1)
        count = n + 3 * len(self.quaternions)
        velocity = ca.SX(count, 1)
        acceleration = ca.SX(count, 1)
        position[list(self.plain)] = free[:n]
        plain_columns = list(self.columns[0])
        velocity[plain_columns] = first[: len(plain_columns)]
        acceleration[plain_columns] = second[: len(plain_columns)]
        for i, (k, middle) in enumerate(zip(self.quaternions, self.middles, strict=True)):
            r = free[n + 3 * i : n + 3 * i + 3]
            N = _product(ca.SX(ca.DM(middle)), ca.vertcat(1.0, r))
            p = N / ca.sqrt(1.0 + ca.dot(r, r))
            dp = ca.jtimes(p, free, first)
            ddp = ca.jtimes(dp, free, first) + ca.jtimes(p, free, second)
            conjugate = ca.vertcat(p[0], -p[1:])
            position[list(range(k, k + 4))] = p
            velocity[list(self.columns[1 + i])] = 2.0 * _product(dp, conjugate)[1:]
            acceleration[list(self.columns[1 + i])] = 2.0 * _product(ddp, conjugate)[1:]
        return position, velocity, acceleration


def chart(topology: Topology, ports: EntryPorts, ends: np.ndarray) -> Chart:
    """Return the chart of the positions of `ports`, about the middle of two positions (2, size)."""
    plain = []
    columns = []
    quaternions = []
    middles = []
    rotation_columns = list[tuple[int, ...]]()
    parts = list[PartOfRotation]()
    for column, iv in enumerate(ports.v):
        if topology.q_of_v[iv] >= 0:
            plain.append(ports.q.index(topology.q_of_v[iv]))
            columns.append(column)
    for q0, v0 in topology.quaternions:
        angular_columns = tuple(column for column, iv in enumerate(ports.v) if v0 <= iv < v0 + 3)
        if angular_columns and len(angular_columns) < 3:
            numbers = tuple(i for i in ports.q if q0 <= i < q0 + 4)
            free = tuple(range(len(plain), len(plain) + len(numbers)))
            plain += [ports.q.index(i) for i in numbers]
            components = tuple(i - q0 for i in numbers)
            parts.append(
                PartOfRotation(
                    q=q0, v=v0, components=components, free=free, columns=angular_columns
                )
            )
        elif angular_columns:
            k = ports.q.index(q0)
            a, b = ends[:, k : k + 4]
            middle = a + (b if a @ b >= 0 else -b)
            quaternions.append(k)
            middles.append(middle / np.linalg.norm(middle))
            rotation_columns.append(angular_columns)
    return Chart(
        size=ports.position.size,
        plain=tuple(plain),
        quaternions=tuple(quaternions),
        middles=np.array(middles).reshape(-1, 4),
        columns=(tuple(columns), *rotation_columns),
        parts=tuple(parts),
    )


def _inverse(q: np.ndarray) -> np.ndarray:
    """Return the inverse of a unit quaternion."""
    return q * np.array([1.0, -1.0, -1.0, -1.0])


def _product(a: ca.SX, b: ca.SX) -> ca.SX:
    """Return Hamilton's product a b of two quaternions."""
    return ca.SX(
        ca.vertcat(
            a[0] * b[0] - ca.dot(a[1:], b[1:]), a[0] * b[1:] + b[0] * a[1:] + ca.cross(a[1:], b[1:])
        )
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SplinePath(Path):
    """A spline in free coordinates with evenly spaced knots, from rest to rest in u.

    Attributes:
        chart: chart of the coordinates.
        coefficients: control points (n + 3, m) of n intervals.
    """

    chart: Chart
    coefficients: np.ndarray
    spline: BSpline = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Create the spline."""
        object.__setattr__(
            self,
            "spline",
            BSpline(knots(len(self.coefficients) - DEGREE), self.coefficients, DEGREE),
        )

    @property
    def kinks(self) -> tuple[float, ...]:
        """Parameters of the inner knots."""
        return tuple(self.spline.t[DEGREE + 1 : -DEGREE - 1].tolist())

    def at(self, u: np.ndarray) -> Curve:
        """Return the points at parameters u (N,)."""
        return self.chart.curve(*(np.asarray(self.spline(u, k)) for k in range(3)))


def knots(intervals: int) -> np.ndarray:
    """Return evenly spaced knots for a number of intervals, with full multiplicity at the ends."""
    return np.concatenate([np.zeros(DEGREE), np.linspace(0.0, 1.0, intervals + 1), np.ones(DEGREE)])


def bases(u: np.ndarray, intervals: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of the first control points at parameters u (N,), and the weights.

    The weights (N, 3, 4) are those of four control points in the position and two derivatives.
    """
    spline = BSpline(knots(intervals), np.eye(intervals + DEGREE), DEGREE)
    span = np.minimum((u * intervals).astype(int), intervals - 1)
    columns = span[:, None] + np.arange(DEGREE + 1)
    return span, np.stack(
        [np.take_along_axis(np.asarray(spline(u, k)), columns, axis=1) for k in range(3)], axis=1
    )
