"""Loads of the motors of a machine over a motion: forces, speeds, power, energy, inertia."""

from __future__ import annotations

import numpy as np

from tauloop.common.names.deprecated import old_attribute
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.dynamics.machine_dynamics import MotionForces
from tauloop.model import Model

#: Revolutions per minute of 1 rad/s.
RPM_PER_RAD_S = 30.0 / np.pi


@dataclass(frozen=True, slots=True, kw_only=True)
class ActuatorLoad(ReprMixin):
    """The load of one motor over a motion of N samples.

    Attributes:
        name: name of the actuator.
        is_rotary: whether the actuator is rotary (rad, N m) rather than linear (m, N).
        time: (N,) times, s; with a pause, two more samples than the motion.
        speed: (N,) speeds of the actuator, rad/s or m/s.
        acceleration: (N,) accelerations of the actuator, rad/s^2 or m/s^2.
        force: (N,) forces of the actuator without the inertia of the present rotor, N m or N.
        rotor_inertia: rotor inertia in the machine file, on the actuator's side, kg m^2 or kg; None
            if the file has none.
        load_inertia: inertia that the motor moves at every sample of the motion while the other
            motors rest, without its rotor, kg m^2 or kg; None for machines with passive degrees of
            freedom or redundant motors.
    """

    name: str
    is_rotary: bool
    time: np.ndarray
    speed: np.ndarray
    acceleration: np.ndarray
    force: np.ndarray
    rotor_inertia: float | None
    load_inertia: np.ndarray | None

    turns = old_attribute("turns", "is_rotary")

    @property
    def total_force(self) -> np.ndarray:
        """Force (N,) with the rotor of the machine file, N m or N."""
        return self.force + (self.rotor_inertia or 0.0) * self.acceleration

    @property
    def peak_force(self) -> float:
        """Largest magnitude of the total force, N m or N."""
        return float(np.abs(self.total_force).max())

    @property
    def rms_force(self) -> float:
        """Root mean square of the total force over time, N m or N."""
        return root_mean_square(self.time, self.total_force)

    @property
    def peak_speed(self) -> float:
        """Largest speed, rad/s or m/s."""
        return float(np.abs(self.speed).max())

    @property
    def mean_speed(self) -> float:
        """Mean magnitude of the speed over time, rad/s or m/s."""
        return mean(self.time, np.abs(self.speed))

    @property
    def power(self) -> np.ndarray:
        """Mechanical power (N,) of the total force, W."""
        return self.total_force * self.speed

    @property
    def peak_power(self) -> float:
        """Largest power from the motor to the machine, W."""
        return float(self.power.max(initial=0.0))

    @property
    def work(self) -> float:
        """Work from the motor to the machine over the motion, J."""
        return mean(self.time, np.maximum(self.power, 0.0)) * self._duration

    @property
    def returned_work(self) -> float:
        """Work from the machine to the motor over the motion, J."""
        return mean(self.time, np.maximum(-self.power, 0.0)) * self._duration

    @property
    def inertia_ratio(self) -> float | None:
        """Ratio of the largest load inertia to the rotor inertia; None if one is unknown."""
        if self.load_inertia is None or not self.rotor_inertia:
            return None
        return float(self.load_inertia.max() / self.rotor_inertia)

    @property
    def _duration(self) -> float:
        return float(self.time[-1] - self.time[0])


def mean(time: np.ndarray, values: np.ndarray) -> float:
    """Return the mean of values (N,) over time by the trapezoidal rule; a single value as it is."""
    if len(time) < 2:
        return float(values[0])
    return float(np.trapezoid(values, time) / (time[-1] - time[0]))


def root_mean_square(time: np.ndarray, values: np.ndarray) -> float:
    """Return the root mean square of values (N,) over time."""
    return float(np.sqrt(mean(time, values**2)))


def motor_loads(motion: MotionForces, pause: float = 0.0) -> tuple[ActuatorLoad, ...]:
    """Return the loads of all motors over a motion with solved inverse dynamics.

    Args:
        motion: the motion with its forces.
        pause: time after the motion in which the motors hold the machine at the end pose, s.
    """
    model = motion.model
    mechanism, topology = model.mechanism, model.topology
    state = motion.forces.state
    v, a = np.atleast_2d(np.asarray(state.v)), np.atleast_2d(np.asarray(state.a))
    A = model.assembly.loops.transmission
    speed, acceleration = v @ A.T, a @ A.T
    force = np.atleast_2d(motion.forces.force)
    inertia = _load_inertia(model, motion)
    time = motion.time
    if pause > 0.0:
        time = np.append(time, [time[-1], time[-1] + pause])
        at_rest = np.zeros((2, len(mechanism.actuators)))
        speed, acceleration = np.append(speed, at_rest, 0), np.append(acceleration, at_rest, 0)
        force = np.append(force, force[[-1, -1]], 0)
    loads = []
    for i, actuator in enumerate(mechanism.actuators):
        rotor = None if actuator.inertia is None else mechanism.value(actuator.inertia)
        loads.append(
            ActuatorLoad(
                name=actuator.name,
                is_rotary=topology.is_rotary(actuator),
                time=time,
                speed=speed[:, i],
                acceleration=acceleration[:, i],
                force=force[:, i] - (rotor or 0.0) * acceleration[:, i],
                rotor_inertia=rotor,
                load_inertia=None if inertia is None else inertia[:, i] - (rotor or 0.0),
            )
        )
    return tuple(loads)


def _load_inertia(model: Model, motion: MotionForces) -> np.ndarray | None:
    """Return the inertias (N, n_u) that the motors move one at a time; None if undefined."""
    assembly = model.assembly
    if assembly.passive or assembly.is_redundant:
        return None
    q = np.atleast_2d(np.asarray(motion.forces.state.q))
    position = model.actuators.ports.at(q)
    masses = model.actuators.mass_matrix(position, start=q)
    return np.asarray(np.diagonal(np.asarray(masses), axis1=-2, axis2=-1))
