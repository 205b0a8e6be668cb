"""Paths with arc length as parameter: clothoids, chains, and polylines with blended corners."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from tauloop.common.errors import InputError, Problem, Problems
from tauloop.common.records import dataclass
from tauloop.equations.ports import numbers
from tauloop.motion.paths.curves import Curve, Line, Path, point

#: Angle below which two directions are equal and do not form a corner, rad.
STRAIGHT_ANGLE = 1e-9
#: Difference of a corner's angle from a reversal (180 deg) below which it cannot be blended, rad.
REVERSAL_ANGLE = 1e-3
#: Largest distance of a clothoid's end from the given end, relative to the chord.
END_TOLERANCE = 1e-9
#: Largest deviation of unit vectors from unit length and orthogonality.
ORTHONORMAL_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Clothoid(Path):
    """A plane curve whose curvature is linear in its arc length, sigma = u length.

    The heading is theta = k_0 sigma + (k_1 - k_0) sigma^2 / (2 length), and the tangent is
    p' = length (d cos theta + n sin theta). The position is its integral from `start`, computed by
    Gauss-Legendre quadrature to rounding.

    Attributes:
        start: point at u = 0 (n,).
        direction, normal: orthonormal vectors d and n (n,): the tangent at u = 0, and the direction
            towards which a positive curvature bends.
        length: arc length.
        curvature: curvatures k_0 and k_1 at both ends, in the inverse unit of length.
    """

    start: np.ndarray
    direction: np.ndarray
    normal: np.ndarray
    length: float
    curvature: tuple[float, float]

    def __post_init__(self) -> None:
        """Check the arguments.

        Raises:
            InputError: rows have different sizes, vectors are not orthonormal, or the length is not
                positive.
        """
        problems = Problems()
        start = point(self.start, "start", problems)
        direction = point(self.direction, "direction", problems, start.size)
        normal = point(self.normal, "normal", problems, start.size)
        if not problems:
            error = np.abs(
                [direction @ direction - 1, normal @ normal - 1, direction @ normal]
            ).max()
            if error > ORTHONORMAL_TOLERANCE:
                what = f"direction and normal are not orthonormal (off by {error:.2g})"
                problems.add("normal", what, "give two unit vectors at right angles")
        if not 0 < self.length < np.inf:
            problems.add("length", f"must be positive, got {self.length:g}")
        if not np.isfinite(self.curvature).all():
            problems.add("curvature", f"is not finite: {self.curvature}")
        InputError.raise_if_any(problems)
        for name, value in (("start", start), ("direction", direction), ("normal", normal)):
            object.__setattr__(self, name, value)

    def heading(self, arc: np.ndarray) -> np.ndarray:
        """Return the angle between the tangent and `direction` at arc lengths, rad."""
        k0, k1 = self.curvature
        return k0 * arc + (k1 - k0) * arc**2 / (2 * self.length)

    def at(self, u: np.ndarray) -> Curve:
        """Return the points at parameters u (N,)."""
        k0, k1 = self.curvature
        most = (abs(k0) + abs(k1)) * self.length
        nodes, weights = _gauss(16 + int(np.ceil(most)))
        arc = self.length * u[:, None]
        along = self.heading(0.5 * arc * (1 + nodes))
        x, y = (
            0.5 * arc[:, 0] * (np.cos(along) @ weights),
            0.5 * arc[:, 0] * (np.sin(along) @ weights),
        )
        theta = self.heading(arc)
        bend = k0 + (k1 - k0) * u[:, None]
        tangent = self.direction * np.cos(theta) + self.normal * np.sin(theta)
        inward = self.normal * np.cos(theta) - self.direction * np.sin(theta)
        return Curve(
            position=self.start + x[:, None] * self.direction + y[:, None] * self.normal,
            derivative=self.length * tangent,
            second_derivative=self.length**2 * bend * inward,
        )

    def end(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the point, direction and normal at u = 1."""
        last = self.at(np.ones(1))
        c, s = (
            np.cos(self.heading(np.array(self.length))),
            np.sin(self.heading(np.array(self.length))),
        )
        return (
            last.position[0],
            c * self.direction + s * self.normal,
            c * self.normal - s * self.direction,
        )


def clothoid_between(start: np.ndarray, end: np.ndarray, headings: tuple[float, float]) -> Clothoid:
    """Return the clothoid between two points with given directions in a plane.

    Let a and b be the headings relative to the chord. A clothoid of length 1 has the curvatures
    b - a - A and b - a + A at its ends. Its end lies on the chord if the integral of
    sin(A t^2 + (b - a - A) t + a) dt over [0, 1] is zero. The root A near 3 (a + b) is the clothoid
    without loops. It is then scaled and moved to the points.

    Args:
        start, end: distinct points (2,).
        headings: angles of the tangent at the start and the end, from the first coordinate towards
            the second, rad.

    Raises:
        InputError: the points are not two distinct points of a plane, or Newton's method finds no
            clothoid for these headings.

    Source: Bertolazzi and Frego 2015, G1 fitting with clothoids.
    """
    chord = point(end, "end", problems := Problems()) - point(start, "start", problems, 2)
    if problems or chord.shape != (2,) or not chord.any() or not np.isfinite(headings).all():
        problems.add("end", "two distinct points in a plane and two finite headings are needed")
    InputError.raise_if_any(problems)
    along = np.arctan2(chord[1], chord[0])
    a, b = (np.angle(np.exp(1j * (heading - along))) for heading in headings)

    def laid(bend: float, length: float, at: np.ndarray, angle: float) -> Clothoid:
        direction = np.array([np.cos(angle), np.sin(angle)])
        normal = np.array([-direction[1], direction[0]])
        curvature = ((b - a - bend) / length, (b - a + bend) / length)
        return Clothoid(
            start=at, direction=direction, normal=normal, length=length, curvature=curvature
        )

    def last(bend: float) -> np.ndarray:
        return laid(bend, 1.0, np.zeros(2), a).at(np.ones(1)).position[0]

    from scipy.optimize import newton  # SciPy is an optional dependency

    bend, run = newton(
        lambda x: last(x)[1], 3.0 * (a + b), tol=1e-14, maxiter=100, full_output=True, disp=False
    )
    reach, off = last(bend)
    if not (run.converged or abs(off) < END_TOLERANCE) or not reach > END_TOLERANCE:
        what = f"no clothoid leaves at {headings[0]:.4g} rad and arrives at {headings[1]:.4g} rad without a loop"
        raise InputError.of(
            "headings", what, "choose headings closer to the direction of the chord, or a polyline"
        )
    return laid(
        bend, float(np.linalg.norm(chord) / reach), np.asarray(start, dtype=float), along + a
    )


#: Gauss-Legendre nodes and weights, by the number of nodes.
_gauss = functools.cache(np.polynomial.legendre.leggauss)


@dataclass(frozen=True, slots=True)
class Chain(Path):
    """Pieces in sequence. Each has a share of the parameter in proportion to its length.

    Attributes:
        pieces: paths with arc length as parameter (`Line`, `Clothoid`). Each starts at the end of
            the previous piece.
        lengths: arc lengths of the pieces.
    """

    pieces: tuple[Path, ...]
    lengths: tuple[float, ...]

    @property
    def kinks(self) -> tuple[float, ...]:
        """Parameters at which pieces meet."""
        return tuple((np.cumsum(self.lengths)[:-1] / sum(self.lengths)).tolist())

    def at(self, u: np.ndarray) -> Curve:
        """Return the points at parameters u (N,)."""
        shares = np.array(self.lengths) / sum(self.lengths)
        knots = np.concatenate([[0.0], np.cumsum(shares)])
        piece = np.clip(np.searchsorted(knots, u, side="right") - 1, 0, len(self.pieces) - 1)
        used = np.unique(piece).tolist() or [0]
        places = [piece == k for k in used]
        curves = [
            self.pieces[k].at(np.clip((u[here] - knots[k]) / shares[k], 0.0, 1.0))
            for k, here in zip(used, places, strict=True)
        ]
        size = curves[0].position.shape[1]
        position, first, second = (np.empty((len(u), size)) for _ in range(3))
        for k, here, curve in zip(used, places, curves, strict=True):
            position[here] = curve.position
            first[here] = curve.derivative / shares[k]
            second[here] = curve.second_derivative / shares[k] ** 2
        return Curve(position=position, derivative=first, second_derivative=second)


def polyline(
    points: Sequence[Sequence[float]] | np.ndarray, blend: float | Sequence[float]
) -> Chain:
    """Return a polyline through points, with corners replaced by pairs of clothoids.

    The curvature is continuous.

    Args:
        points: points (K, n), K at least 2, with all coordinates in the same unit.
        blend: distance from a corner at which its blend starts, in this unit, for all or one for
            each corner. Blends that are too long for a segment are an error; they are not
            shortened.

    Raises:
        InputError: there are too few points, points coincide, the path turns back at a corner, or
            blends overlap; all problems are reported together.
    """
    corners = numbers(points, "points")
    if corners.ndim != 2 or len(corners) < 2 or not np.isfinite(corners).all():
        what = f"need at least two rows of finite numbers, got shape {corners.shape}"
        raise InputError.of("points", what, "give one row per point and one column per coordinate")
    blends = numbers(blend, "blend")
    if (
        blends.shape not in ((), (max(len(corners) - 2, 0),))
        or not ((blends > 0) & np.isfinite(blends)).all()
    ):
        remedy = "without blends, the motion must stop at each corner: use separate lines"
        what = f"must be positive: one value for all corners, or one per corner; got {blend}"
        raise InputError.of("blend", what, remedy)
    sides = np.diff(corners, axis=0)
    lengths = np.linalg.norm(sides, axis=1)
    if not lengths.all():
        raise InputError(
            Problem(
                where=f"points[{i + 1}]",
                what="coincides with the previous point",
                remedy="leave it out",
            )
            for i in np.flatnonzero(lengths == 0)
        )
    directions = sides / lengths[:, None]
    turns = 2 * np.arctan2(
        np.linalg.norm(directions[1:] - directions[:-1], axis=1),
        np.linalg.norm(directions[1:] + directions[:-1], axis=1),
    )
    cut = np.concatenate([[0.0], np.where(turns > STRAIGHT_ANGLE, blends, 0.0), [0.0]])
    problems = Problems()
    for i in np.flatnonzero(turns > np.pi - REVERSAL_ANGLE).tolist():
        what = f"the path turns back by {np.degrees(turns[i]):.6g} deg"
        problems.add(f"points[{i + 1}]", what, "stop at this point: use two separate paths")
    for i in np.flatnonzero(cut[:-1] + cut[1:] > lengths * (1 + ORTHONORMAL_TOLERANCE)).tolist():
        what = f"is {lengths[i]:.6g} long, but its blends need {cut[i] + cut[i + 1]:.6g}"
        problems.add(
            f"points[{i}] to points[{i + 1}]",
            what,
            "choose a smaller blend, or points farther apart",
        )
    InputError.raise_if_any(problems)
    pieces: list[tuple[Path, float]] = []
    for i, direction in enumerate(directions):
        left = lengths[i] - cut[i] - cut[i + 1]
        if left > ORTHONORMAL_TOLERANCE * lengths[i]:
            start = corners[i] + cut[i] * direction
            pieces.append((Line(start, start + left * direction), left))
        if i + 1 < len(directions) and cut[i + 1]:
            start = corners[i + 1] - cut[i + 1] * direction
            pieces += [
                (c, c.length)
                for c in _corner(start, direction, directions[i + 1], turns[i], cut[i + 1])
            ]
    return Chain(tuple(piece for piece, _ in pieces), tuple(float(length) for _, length in pieces))


def _corner(
    start: np.ndarray, incoming: np.ndarray, outgoing: np.ndarray, turn: float, blend: float
) -> tuple[Clothoid, Clothoid]:
    """Return two clothoids that leave a line at `blend` before a corner and join the next line."""
    normal = outgoing - (outgoing @ incoming) * incoming
    normal /= np.linalg.norm(normal)
    unit = Clothoid(
        start=np.zeros(2),
        direction=np.eye(2)[0],
        normal=np.eye(2)[1],
        length=1.0,
        curvature=(0.0, turn),
    )
    x, y = unit.at(np.ones(1)).position[0]
    length = blend / (x + y * np.tan(turn / 2))
    peak = turn / length
    rising = Clothoid(
        start=start, direction=incoming, normal=normal, length=length, curvature=(0.0, peak)
    )
    middle, direction, across = rising.end()
    return rising, Clothoid(
        start=middle, direction=direction, normal=across, length=length, curvature=(peak, 0.0)
    )
