"""Paths between stations: lifts, via points, rotations, and motions of conveyors.

A leg of a cycle moves the tool from a position that moves with velocity v_A to a position that
moves with v_B. With x = t/T, the path p, the motion law s and S = 10 x^3 - 15 x^4 + 6 x^5, its
positions are

    p(s(x)) + T ((1 - S) x v_A - S (1 - x) v_B).

For any duration, it starts and ends with the velocities of the conveyors and without acceleration.
"""

from __future__ import annotations

import numpy as np

from tauloop.common.records import dataclass
from tauloop.motion.laws import POLYNOMIAL_345, Law
from tauloop.motion.paths.clothoids import Chain
from tauloop.motion.paths.curves import SHAPE_POINTS, AxisTurn, Curve, Path


@dataclass(frozen=True, slots=True, kw_only=True)
class WayPath(Path):
    """Positions on a straight line, with a separate path and a rotation for some columns.

    Attributes:
        start, end: positions at the ends (n,); they may be equal.
        way: path of the coordinates `lengths`, such as a lift; None for a straight line.
        lengths: indices of the columns that follow `way`.
        turn: rotation of the quaternion whose first column is `first`; None if it does not rotate.
        first: first column of the quaternion.
    """

    start: np.ndarray
    end: np.ndarray
    way: Path | None = None
    lengths: tuple[int, ...] = ()
    turn: AxisTurn | None = None
    first: int = 0

    @property
    def kinks(self) -> tuple[float, ...]:
        """Parameters of the kinks of the path `way`."""
        return () if self.way is None else self.way.kinks

    def at(self, u: np.ndarray) -> Curve:
        """Return the points at parameters u (N,)."""
        chord = self.end - self.start
        position = self.start + u[:, None] * chord
        derivative = np.tile(chord, (len(u), 1))
        second_derivative = np.zeros((len(u), len(self.start)))
        separate_paths = [
            (self.way, list(self.lengths)),
            (self.turn, list(range(self.first, self.first + 4))),
        ]
        for path, columns in separate_paths:
            if path is not None:
                curve = path.at(u)
                position[:, columns] = curve.position
                derivative[:, columns] = curve.derivative
                second_derivative[:, columns] = curve.second_derivative
        return Curve(position=position, derivative=derivative, second_derivative=second_derivative)


@dataclass(frozen=True, slots=True, kw_only=True)
class LegPath(Path):
    """A leg over its normalized time: a path with a motion law between stations that may move.

    Attributes:
        way: path from the position at which the tool leaves a station to the position at which it
            meets the next station.
        law: motion law from rest to rest.
        duration: duration, s.
        leaves, arrives: velocities of the stations at the start and the end (n,), per second.
    """

    way: Path
    law: Law
    duration: float
    leaves: np.ndarray
    arrives: np.ndarray

    def at(self, u: np.ndarray) -> Curve:
        """Return the points at normalized times u (N,)."""
        law = self.law.at(u)
        curve = self.way.at(law.s)
        blend = POLYNOMIAL_345.at(u)
        x = u[:, None]
        S, dS = blend.s[:, None], blend.derivative[:, None]
        ddS = blend.second_derivative[:, None]
        first, second = law.derivative[:, None], law.second_derivative[:, None]
        a, b = self.duration * self.leaves, self.duration * self.arrives
        path_acceleration = curve.second_derivative * first**2 + curve.derivative * second
        blend_acceleration = (2 * dS - (1 - x) * ddS) * b
        leaving_velocity = (1 - S - x * dS) * a
        arriving_velocity = (S - (1 - x) * dS) * b
        return Curve(
            position=curve.position + (1 - S) * x * a - S * (1 - x) * b,
            derivative=curve.derivative * first + leaving_velocity + arriving_velocity,
            second_derivative=path_acceleration - (2 * dS + x * ddS) * a + blend_acceleration,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunIn(Path):
    """The motion before the first cycle, from rest to a moving station, over normalized time.

    Attributes:
        end: position at which the tool meets the station (n,).
        velocity: velocity of the station (n,), per second.
        duration: duration, s.
    """

    end: np.ndarray
    velocity: np.ndarray
    duration: float

    def at(self, u: np.ndarray) -> Curve:
        """Return the points at normalized times u (N,)."""
        blend = POLYNOMIAL_345.at(u)
        run = self.duration * self.velocity
        # Integral of the polynomial from u to 1.
        remaining = 0.5 - (2.5 * u**4 - 3.0 * u**5 + u**6)
        return Curve(
            position=self.end - remaining[:, None] * run,
            derivative=blend.s[:, None] * run,
            second_derivative=blend.derivative[:, None] * run,
        )


@dataclass(frozen=True, slots=True)
class CyclePath(Chain):
    """Legs and stops in sequence over normalized time. `lengths` are their durations."""

    @property
    def n_shape_points(self) -> int:
        """Number of evenly spaced points that resolve the path's shape."""
        return SHAPE_POINTS * len(self.pieces)
