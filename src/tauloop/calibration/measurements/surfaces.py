"""Known surfaces that a tool touches: signed distance, and where the surface may lie otherwise than stated."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import casadi as ca
import numpy as np

from tauloop.common.records import dataclass

Vector3 = tuple[float, float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Surface(ABC):
    """A surface that can be touched."""

    @abstractmethod
    def unknowns(self) -> tuple[tuple[str, float, str], ...]:
        """Name, start value and unit of what a calibration may find about its place."""

    @abstractmethod
    def distance(self, point: ca.SX, place: Mapping[str, Any]) -> ca.SX:
        """Signed distance of a point (3,) in the base frame, m, positive outside."""

    @abstractmethod
    def faults(self) -> tuple[tuple[str, str], ...]:
        """Attributes that cannot be, each with what is wrong."""


def _no_direction(name: str, vector: Vector3) -> tuple[tuple[str, str], ...]:
    return (
        ()
        if np.linalg.norm(vector) > 0
        else ((name, "has no direction: all three numbers are zero"),)
    )


def _no_size(radius: float) -> tuple[tuple[str, str], ...]:
    return () if radius > 0 else (("radius", f"is {radius:g} m"),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plane(Surface):
    """A plane n.(p - point) = 0; the unknowns shift it along n and tilt it about two axes across n through the point.

    Attributes:
        point: a point of the plane, m.
        normal: direction towards the tool, of any length.
    """

    point: Vector3 = (0.0, 0.0, 0.0)
    normal: Vector3 = (0.0, 0.0, 1.0)

    def unknowns(self) -> tuple[tuple[str, float, str], ...]:
        """Offset along the normal (m) and slopes along the two directions across it (rad)."""
        return (("offset", 0.0, "m"), ("slope_u", 0.0, "rad"), ("slope_w", 0.0, "rad"))

    def faults(self) -> tuple[tuple[str, str], ...]:
        """A normal of no length."""
        return _no_direction("normal", self.normal)

    def directions(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Unit vectors u, w across the normal, and the normal n; u and w are x and y for a level plane."""
        n = np.asarray(self.normal) / np.linalg.norm(self.normal)
        first = np.eye(3)[0] if abs(n[0]) < 0.9 else np.eye(3)[1]
        u = first - n * (first @ n)
        u /= np.linalg.norm(u)
        return u, np.cross(n, u), n

    def distance(self, point: ca.SX, place: Mapping[str, Any]) -> ca.SX:
        """(n.d - offset - slope_u u.d - slope_w w.d) / sqrt(1 + slope_u^2 + slope_w^2), d from the plane's point."""
        u, w, n = (ca.DM(e) for e in self.directions())
        d = point - ca.DM(list(self.point))
        height = place["offset"] + place["slope_u"] * ca.dot(u, d) + place["slope_w"] * ca.dot(w, d)
        return (ca.dot(n, d) - height) / ca.sqrt(
            1 + ca.SX(place["slope_u"]) ** 2 + ca.SX(place["slope_w"]) ** 2
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sphere(Surface):
    """A sphere touched from outside.

    Attributes:
        center: its centre, m.
        radius: its radius, with that of the probe's ball, m.
    """

    center: Vector3 = (0.0, 0.0, 0.0)
    radius: float

    def faults(self) -> tuple[tuple[str, str], ...]:
        """A radius that is not positive."""
        return _no_size(self.radius)

    def unknowns(self) -> tuple[tuple[str, float, str], ...]:
        """Centre (3) and radius, m."""
        centre = tuple(
            (f"center.{letter}", value, "m")
            for letter, value in zip("xyz", self.center, strict=True)
        )
        return (*centre, ("radius", self.radius, "m"))

    def distance(self, point: ca.SX, place: Mapping[str, Any]) -> ca.SX:
        """|p - c| - r."""
        d = point - ca.vertcat(*(place[f"center.{letter}"] for letter in "xyz"))
        return ca.sqrt(ca.dot(d, d)) - place["radius"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cylinder(Surface):
    """A cylinder touched from outside.

    Attributes:
        point: a point of its axis, m.
        axis: direction of its axis, of any length.
        radius: its radius, with that of the probe's ball, m.
    """

    point: Vector3 = (0.0, 0.0, 0.0)
    axis: Vector3 = (0.0, 0.0, 1.0)
    radius: float

    def faults(self) -> tuple[tuple[str, str], ...]:
        """An axis of no length, or a radius that is not positive."""
        return (*_no_direction("axis", self.axis), *_no_size(self.radius))

    def unknowns(self) -> tuple[tuple[str, float, str], ...]:
        """Radius, m; its axis is taken as known."""
        return (("radius", self.radius, "m"),)

    def distance(self, point: ca.SX, place: Mapping[str, Any]) -> ca.SX:
        """Distance from the axis less the radius."""
        e = ca.DM(np.asarray(self.axis) / np.linalg.norm(self.axis))
        d = point - ca.DM(list(self.point))
        across = d - e * ca.dot(e, d)
        return ca.sqrt(ca.dot(across, across)) - place["radius"]


#: Surfaces by the names that files use.
SURFACES: dict[str, type[Surface]] = {"plane": Plane, "sphere": Sphere, "cylinder": Cylinder}
