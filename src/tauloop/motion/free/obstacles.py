"""Obstacles that a motion must avoid: spheres, and boxes aligned with the base frame."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import casadi as ca
import numpy as np

from tauloop.common.errors import InputError
from tauloop.common.names.deprecated import old_attribute
from tauloop.common.options import Options, option
from tauloop.common.records import dataclass

#: Smoothing radius of the distance function at edges and vertices, m: small enough to be
#: negligible, large enough to keep derivatives finite.
CORNER_RADIUS = 1e-6
#: Number of points of the outline of a sphere.
CIRCLE_POINTS = 73


class Obstacle(Options, ABC):
    """A body at rest that a motion must avoid."""

    #: Name used in messages.
    kind: ClassVar[str]

    @abstractmethod
    def expression(self, p: ca.SX) -> ca.SX:
        """Return the signed distance of a point p (3,) as an expression, m; negative inside."""

    @abstractmethod
    def projection_target(self, p: ca.SX) -> ca.SX:
        """Return the point (3,) of the obstacle toward which an outside point is projected."""

    nearest = old_attribute("nearest", "projection_target")

    @abstractmethod
    def distances(self, points: np.ndarray) -> np.ndarray:
        """Return the distances (...) of points (..., 3), m; negative inside."""

    @abstractmethod
    def outline(self, i: int, j: int) -> np.ndarray:
        """Return the outline (N, 2) in the plane of the base's axes i and j, m."""


@dataclass(frozen=True, kw_only=True)
class BoxObstacle(Obstacle):
    """A box whose edges are parallel to the axes of the base frame.

    Attributes:
        center: center of the box (3,), m.
        size: edge lengths of the box (3,), m.

    Examples:
        >>> from tauloop.motion import BoxObstacle
        >>> tray = BoxObstacle(center=(0.0, 0.0, -0.5), size=(0.02, 0.02, 0.1))
        >>> tray.distances([[0.03, 0.0, -0.5]]).round(3).tolist()
        [0.02]
    """

    kind: ClassVar[str] = "box"
    center: tuple[float, float, float]
    size: tuple[float, float, float] = option(above=0.0)

    def expression(self, p: ca.SX) -> ca.SX:
        """Return |max(d, 0)| + min(max d, 0) with d = |p - c| - size / 2, smoothed at edges."""
        d = ca.fabs(p - ca.DM(self.center)) - 0.5 * ca.DM(self.size)
        outside = ca.fmax(d, 0.0)
        return ca.SX(
            ca.sqrt(ca.dot(outside, outside) + CORNER_RADIUS**2)
            - CORNER_RADIUS
            + ca.fmin(ca.mmax(d), 0.0)
        )

    def projection_target(self, p: ca.SX) -> ca.SX:
        """Return the point (3,) of the box that is nearest to p."""
        center, half = ca.DM(self.center), 0.5 * ca.DM(self.size)
        return ca.SX(ca.fmin(ca.fmax(p, center - half), center + half))

    def distances(self, points: np.ndarray) -> np.ndarray:
        """Return the distances (...) of points (..., 3), m; negative inside."""
        d = np.abs(np.asarray(points) - self.center) - 0.5 * np.array(self.size)
        return np.asarray(
            np.linalg.norm(np.maximum(d, 0.0), axis=-1) + np.minimum(d.max(axis=-1), 0.0)
        )

    def outline(self, i: int, j: int) -> np.ndarray:
        """Return the vertices of the outline (5, 2), m; the last vertex repeats the first."""
        vertices = 0.5 * np.array([(-1, -1), (1, -1), (1, 1), (-1, 1), (-1, -1)])
        return np.array(self.center)[[i, j]] + vertices * np.array(self.size)[[i, j]]


@dataclass(frozen=True, kw_only=True)
class SphereObstacle(Obstacle):
    """A sphere.

    Attributes:
        center: center of the sphere (3,), m.
        radius: radius of the sphere, m.

    Examples:
        >>> from tauloop.motion import SphereObstacle
        >>> SphereObstacle(center=(0.0, 0.0, -0.5), radius=0.02).distances([[0.03, 0.0, -0.5]]).round(3).tolist()
        [0.01]
    """

    kind: ClassVar[str] = "sphere"
    center: tuple[float, float, float]
    radius: float = option(above=0.0)

    def expression(self, p: ca.SX) -> ca.SX:
        """Return the smoothed signed distance |p - c| - radius."""
        d = p - ca.DM(self.center)
        return ca.SX(ca.sqrt(ca.dot(d, d) + CORNER_RADIUS**2) - self.radius)

    def projection_target(self, _: ca.SX) -> ca.SX:
        """Return the center (3,) of the sphere."""
        return ca.SX(ca.DM(self.center))

    def distances(self, points: np.ndarray) -> np.ndarray:
        """Return the distances (...) of points (..., 3), m; negative inside."""
        return np.asarray(np.linalg.norm(np.asarray(points) - self.center, axis=-1) - self.radius)

    def outline(self, i: int, j: int) -> np.ndarray:
        """Return the points of a circle (N, 2), m."""
        angle = np.linspace(0.0, 2.0 * np.pi, CIRCLE_POINTS)
        return np.array(self.center)[[i, j]] + self.radius * np.stack(
            [np.cos(angle), np.sin(angle)], axis=1
        )


def box(text: str) -> BoxObstacle:
    """Return the box of a text with its center and edge lengths in m: 0.1,0,-0.5:0.02,0.02,0.1.

    Raises:
        InputError: the text does not have this form.
    """
    (x, y, z), (dx, dy, dz) = _numbers("box", text, (3, 3), "x,y,z:dx,dy,dz in m")
    return BoxObstacle(center=(x, y, z), size=(dx, dy, dz))


def sphere(text: str) -> SphereObstacle:
    """Return the sphere of a text with its center and radius in m: 0.1,0,-0.5:0.02.

    Raises:
        InputError: the text does not have this form.
    """
    (x, y, z), (radius,) = _numbers("sphere", text, (3, 1), "x,y,z:radius in m")
    return SphereObstacle(center=(x, y, z), radius=radius)


def _numbers(
    where: str, text: str, counts: tuple[int, int], form: str
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the numbers before and after the colon of a text."""
    try:
        before, after = text.split(":")
        first = tuple(map(float, before.split(",")))
        second = tuple(map(float, after.split(",")))
    except ValueError:
        first = second = ()
    if (len(first), len(second)) != counts or not np.isfinite([*first, *second]).all():
        raise InputError.of(where, f"{text!r} is not a {where}", f"write {form}")
    return first, second
