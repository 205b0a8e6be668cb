"""Known surfaces that a tool touches: signed distances, and unknowns of their location."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import casadi as ca
import numpy as np

from tauloop.common.records import dataclass

Vector3 = tuple[float, float, float]
#: An invalid attribute: its name, what is wrong, and what to do.
Fault = tuple[str, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Surface(ABC):
    """A surface that can be touched."""

    @abstractmethod
    def unknowns(self) -> tuple[tuple[str, float, str], ...]:
        """Return name, start value and unit of the unknowns of its location."""

    @abstractmethod
    def distance(self, point: ca.SX, location: Mapping[str, Any]) -> ca.SX:
        """Return the signed distance of a point (3,) in the base frame, m, positive outside.

        Args:
            point: the point, m.
            location: values or symbols of the unknowns by name.
        """

    @abstractmethod
    def faults(self) -> tuple[Fault, ...]:
        """Return invalid attributes, each with what is wrong and what to do."""


def _direction_faults(name: str, vector: Vector3) -> tuple[Fault, ...]:
    """Return the fault of a vector of length zero."""
    if np.linalg.norm(vector) > 0:
        return ()
    what = "has no direction: all three numbers are zero"
    return ((name, what, "give a vector other than zero"),)


def _radius_faults(radius: float) -> tuple[Fault, ...]:
    """Return the fault of a radius that is not positive."""
    if radius > 0:
        return ()
    remedy = "give the radius of the surface plus that of the probe tip"
    return (("radius", f"must be positive, got {radius:g} m", remedy),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plane(Surface):
    """A plane n.(p - point) = 0.

    The unknowns translate it along n and tilt it about two axes through the point, perpendicular
    to n.

    Attributes:
        point: a point of the plane, m.
        normal: direction towards the tool, of any length.
    """

    point: Vector3 = (0.0, 0.0, 0.0)
    normal: Vector3 = (0.0, 0.0, 1.0)

    def unknowns(self) -> tuple[tuple[str, float, str], ...]:
        """Return the offset along the normal (m) and two slopes of the plane (rad)."""
        return (("offset", 0.0, "m"), ("slope_u", 0.0, "rad"), ("slope_w", 0.0, "rad"))

    def faults(self) -> tuple[Fault, ...]:
        """Return the fault of a normal of length zero."""
        return _direction_faults("normal", self.normal)

    def directions(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return unit vectors u, w in the plane and the normal n; u and w are x and y if n is z."""
        n = np.asarray(self.normal) / np.linalg.norm(self.normal)
        first = np.eye(3)[0] if abs(n[0]) < 0.9 else np.eye(3)[1]
        u = first - n * (first @ n)
        u /= np.linalg.norm(u)
        return u, np.cross(n, u), n

    def distance(self, point: ca.SX, location: Mapping[str, Any]) -> ca.SX:
        """Return the signed distance of a point.

        The distance is the following, with the vector d from the plane's point to the given point:

            (n.d - offset - slope_u u.d - slope_w w.d) / sqrt(1 + slope_u^2 + slope_w^2).
        """
        u, w, n = (ca.DM(e) for e in self.directions())
        d = point - ca.DM(list(self.point))
        slope_u, slope_w = location["slope_u"], location["slope_w"]
        height = location["offset"] + slope_u * ca.dot(u, d) + slope_w * ca.dot(w, d)
        return (ca.dot(n, d) - height) / ca.sqrt(1 + ca.SX(slope_u) ** 2 + ca.SX(slope_w) ** 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sphere(Surface):
    """A sphere touched from outside.

    Attributes:
        center: center of the sphere, m.
        radius: radius of the sphere plus radius of the probe's ball, m.
    """

    center: Vector3 = (0.0, 0.0, 0.0)
    radius: float

    def faults(self) -> tuple[Fault, ...]:
        """Return the fault of a radius that is not positive."""
        return _radius_faults(self.radius)

    def unknowns(self) -> tuple[tuple[str, float, str], ...]:
        """Return center (3) and radius, m."""
        center = tuple(
            (f"center.{letter}", value, "m")
            for letter, value in zip("xyz", self.center, strict=True)
        )
        return (*center, ("radius", self.radius, "m"))

    def distance(self, point: ca.SX, location: Mapping[str, Any]) -> ca.SX:
        """Return the signed distance |p - c| - r of a point."""
        d = point - ca.vertcat(*(location[f"center.{letter}"] for letter in "xyz"))
        return ca.sqrt(ca.dot(d, d)) - location["radius"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cylinder(Surface):
    """A cylinder touched from outside.

    Attributes:
        point: a point on the axis, m.
        axis: direction of the axis, of any length.
        radius: radius of the cylinder plus radius of the probe's ball, m.
    """

    point: Vector3 = (0.0, 0.0, 0.0)
    axis: Vector3 = (0.0, 0.0, 1.0)
    radius: float

    def faults(self) -> tuple[Fault, ...]:
        """Return the faults of an axis of length zero and of a radius that is not positive."""
        return (*_direction_faults("axis", self.axis), *_radius_faults(self.radius))

    def unknowns(self) -> tuple[tuple[str, float, str], ...]:
        """Return the radius, m; the axis is assumed to be known."""
        return (("radius", self.radius, "m"),)

    def distance(self, point: ca.SX, location: Mapping[str, Any]) -> ca.SX:
        """Return the distance of a point from the axis minus the radius."""
        e = ca.DM(np.asarray(self.axis) / np.linalg.norm(self.axis))
        d = point - ca.DM(list(self.point))
        radial = d - e * ca.dot(e, d)
        return ca.sqrt(ca.dot(radial, radial)) - location["radius"]


#: Surfaces by the names that files use.
SURFACES: dict[str, type[Surface]] = {"plane": Plane, "sphere": Sphere, "cylinder": Cylinder}
