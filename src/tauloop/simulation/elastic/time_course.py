"""Equations of motion of an elastic machine at any time, interpolated between poses of its path."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tauloop.common.records import dataclass
from tauloop.elasticity.frame.beams import Array
from tauloop.integrate.linear import LinearTerms

#: Quantities of the structure that are interpolated.
INTERPOLATED = (
    "mass",
    "stiffness",
    "damping",
    "gyroscopic",
    "inertial",
    "centrifugal",
    "weight",
    "tool",
    "axial",
    "drives",
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sampled:
    """Quantities of a structure at P times of its motion; see `SampledStructure`."""

    mass: Array
    stiffness: Array
    damping: Array
    gyroscopic: Array
    inertial: Array
    centrifugal: Array
    weight: Array
    tool: Array
    axial: Array
    drives: Array

    def every_second(self) -> Sampled:
        """Return the quantities at every second time."""
        return Sampled(**{name: getattr(self, name)[::2] for name in INTERPOLATED})


class TimeCourse:
    """Quantities at any time: cubic splines during the motion, constant after its end."""

    def __init__(
        self,
        time: Array,
        sampled: Sampled,
        acceleration: Callable[[Array], Array],
        wrench: Callable[[Array], Array],
    ) -> None:
        """Fit the splines.

        Args:
            time: (P,) of the samples, s.
            sampled: quantities at these times.
            acceleration: times (N,) -> independent accelerations (N, m) of the rigid machine.
            wrench: times (N,) -> force and moment at the tool (N, 6).
        """
        self._end, self._sampled = float(time[-1]), sampled
        self._acceleration, self._wrench = acceleration, wrench
        self._splines = {}
        if len(time) > 1:
            from scipy.interpolate import CubicSpline  # of an extra

            self._splines = {
                name: CubicSpline(time, getattr(sampled, name), axis=0) for name in INTERPOLATED
            }

    def at(self, name: str, time: Array) -> Array:
        """Return a quantity (N, ...) at times (N,)."""
        spline = self._splines.get(name)
        if spline is None:
            constant = getattr(self._sampled, name)[0]
            return np.broadcast_to(constant, (len(time), *constant.shape))
        return np.asarray(spline(np.minimum(time, self._end)))

    def rate(self, name: str, time: Array) -> Array:
        """Return the derivative (N, ...) of a quantity by time."""
        spline = self._splines.get(name)
        if spline is None:
            return np.zeros_like(self.at(name, time))
        values = np.asarray(spline(np.minimum(time, self._end), 1))
        values[time > self._end] = 0.0
        return values

    def rigid(self, time: Array) -> Array:
        """Return the forces (N, n) by the rigid motion."""
        during = time <= self._end
        acceleration = np.where(during[:, None], self._acceleration(time), 0.0)
        force = np.einsum("nij,nj->ni", self.at("inertial", time), acceleration)
        return np.asarray(-force - np.where(during[:, None], self.at("centrifugal", time), 0.0))

    def force(self, time: Array) -> Array:
        """Return the forces (N, n) by the rigid motion, weight and wrench."""
        return self.rigid(time) + self.loads(time)

    def loads(self, time: Array) -> Array:
        """Return the forces (N, n) of weight and wrench."""
        tool = np.einsum("nki,nk->ni", self.at("tool", time), self._wrench(time))
        return np.asarray(self.at("weight", time) + tool)

    def terms(self, time: Array) -> LinearTerms:
        """Return the equations of motion at times (N,)."""
        # After the motion, and without one, all matrices are constant.
        poses = time if time.min() < self._end else time[:1]
        gyroscopic = self.at("gyroscopic", poses)
        gyroscopic = np.where((poses < self._end)[:, None, None], gyroscopic, 0.0)
        return LinearTerms(
            mass=self.at("mass", poses),
            damping=self.at("damping", poses) + gyroscopic,
            stiffness=self.at("stiffness", poses),
            force=self.force(time),
        )
