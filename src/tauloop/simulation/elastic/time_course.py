"""Equations of motion of an elastic machine at any time, interpolated between poses of its path."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
        self._time, self._end = time, float(time[-1])
        self._acceleration, self._wrench = acceleration, wrench
        self._splines: dict[str, Any] = {}
        self._constants: dict[str, Array] = {}
        self.add_samples({name: getattr(sampled, name) for name in INTERPOLATED})

    def add_samples(self, values: Mapping[str, Array]) -> None:
        """Fit splines of quantities (P, ...) by name."""
        self._constants |= {name: samples[0] for name, samples in values.items()}
        if len(self._time) > 1:
            from scipy.interpolate import CubicSpline  # of an extra

            self._splines |= {
                name: CubicSpline(self._time, samples, axis=0) for name, samples in values.items()
            }

    @property
    def states(self) -> int:
        """Number of states in addition to the coordinates of the structure."""
        return 0

    def is_moving(self, time: Array) -> NDArray[np.bool_]:
        """Return whether each of the times (N,) is before the end of the motion."""
        return time <= self._end

    def at(self, name: str, time: Array) -> Array:
        """Return a quantity (N, ...) at times (N,)."""
        spline = self._splines.get(name)
        if spline is None:
            constant = self._constants[name]
            return np.broadcast_to(constant, (len(time), *constant.shape))
        return np.asarray(spline(np.minimum(time, self._end)))

    def rate(self, name: str, time: Array) -> Array:
        """Return the derivative (N, ...) of a quantity with respect to time."""
        spline = self._splines.get(name)
        if spline is None:
            return np.zeros_like(self.at(name, time))
        values = np.asarray(spline(np.minimum(time, self._end), 1))
        values[time > self._end] = 0.0
        return values

    def rigid(self, time: Array) -> Array:
        """Return the inertial forces (N, n) of the rigid motion."""
        during = self.is_moving(time)
        acceleration = np.where(during[:, None], self._acceleration(time), 0.0)
        force = np.einsum("nij,nj->ni", self.at("inertial", time), acceleration)
        return np.asarray(-force - np.where(during[:, None], self.at("centrifugal", time), 0.0))

    def force(self, time: Array) -> Array:
        """Return the sum (N, n) of the inertial forces, the weight and the wrench."""
        return self.rigid(time) + self.loads(time)

    def loads(self, time: Array) -> Array:
        """Return the forces (N, n) of weight and wrench."""
        tool = np.einsum("nki,nk->ni", self.at("tool", time), self._wrench(time))
        return np.asarray(self.at("weight", time) + tool)

    def damping(self, time: Array) -> Array:
        """Return the damping (N, n, n)."""
        return self.at("damping", time)

    def gyroscopic(self, time: Array) -> Array:
        """Return the forces (N, n, n) per elastic velocity; zero after the motion."""
        values = self.at("gyroscopic", time)
        return np.where((time < self._end)[:, None, None], values, 0.0)

    def poses(self, time: Array) -> Array:
        """Return the times at which matrices differ; one time after the motion, when all are constant."""
        return time if time.min() < self._end else time[:1]

    def equilibrium(self, time: Array, force: Array) -> Array:
        """Return the coordinates and states (N, n) at rest under forces (N, n)."""
        return np.asarray(np.linalg.solve(self.at("stiffness", time), force[..., None])[..., 0])

    def terms(self, time: Array) -> LinearTerms:
        """Return the equations of motion at times (N,)."""
        poses = self.poses(time)
        return LinearTerms(
            mass=self.at("mass", poses),
            damping=self.damping(poses) + self.gyroscopic(poses),
            stiffness=self.at("stiffness", poses),
            force=self.force(time),
        )
