"""Equations of motion of an elastic machine whose motors have position loops."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tauloop.common.records import dataclass
from tauloop.elasticity.frame.beams import Array
from tauloop.elasticity.machine.rigid_motion import coordinate_sum
from tauloop.elasticity.vibrations.servo_control import ServoLaw
from tauloop.elasticity.vibrations.servo_drives import Terms, motion_row, rigid_terms
from tauloop.elasticity.vibrations.servo_modes import servo_rows
from tauloop.integrate.linear import LinearMotion, LinearTerms
from tauloop.simulation.elastic.moving_structure import SampledStructure
from tauloop.simulation.elastic.time_course import Sampled, TimeCourse

#: Feed-forward of the reference. "none": nothing; "speed": its speed is added to the output of the
#: position loop; "force": the force of the undeformed machine is also added.
FEEDFORWARDS = ("none", "speed", "force")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SampledLoops:
    """Position loops of u motors at P times of a motion, in continuous coordinates.

    Attributes:
        torque: motions that the motors drive, as rows of the coordinates (P, u, n).
        position, speed: motions that the position and speed encoders measure (P, u, n).
        speed_rate: time derivative of `speed` (P, u, n).
        dampers: motions with viscous friction (P, d, n).
        reference_speed: speeds at the encoders per independent velocity (P, u, m).
        damper_speed: speeds of the dampers per independent velocity (P, d, m).
        holding: motor forces that hold the undeformed machine, per generalized force (P, u, n).
    """

    torque: Array
    position: Array
    speed: Array
    speed_rate: Array
    dampers: Array
    reference_speed: Array
    damper_speed: Array
    holding: Array


#: Quantities of the loops that are interpolated.
LOOP_QUANTITIES = tuple(SampledLoops.__dataclass_fields__)


def sampled_loops(structure: SampledStructure) -> SampledLoops:
    """Return the position loops of a machine along its motion."""
    machine, assembled = structure.machine, structure.assembled
    rows = servo_rows(assembled, machine.lengths, machine.drives)
    torque, position, speed = (row @ structure.basis for row in rows)
    dampers = [terms for item in machine.drives for terms, _ in item.dampers]
    empty = np.zeros((assembled.samples, 0, assembled.size))
    damper_rows = [motion_row(assembled, machine.lengths, terms)[:, None] for terms in dampers]
    rigid_modes = np.linalg.solve(structure.basis, assembled.mechanisms)
    rigid_modes_T = np.swapaxes(rigid_modes, -1, -2)
    motor_forces = np.linalg.pinv(rigid_modes_T @ np.swapaxes(torque, -1, -2))
    return SampledLoops(
        torque=torque,
        position=position,
        speed=speed,
        speed_rate=structure.rate(speed) if len(structure.time) > 1 else np.zeros_like(speed),
        dampers=np.concatenate([empty, *damper_rows], axis=1) @ structure.basis,
        reference_speed=_rigid_speeds(structure, [item.speed for item in machine.drives]),
        damper_speed=_rigid_speeds(structure, dampers),
        holding=np.asarray(-motor_forces @ rigid_modes_T, dtype=float),
    )


def _rigid_speeds(structure: SampledStructure, motions: list[Terms]) -> Array:
    """Return the speeds (P, k, m) of motions of the undeformed machine per independent velocity."""
    count = len(structure.directions)
    speeds = np.zeros((len(structure.time), len(motions), count))
    for column, direction in enumerate(structure.directions):
        for row, terms in enumerate(motions):
            rigid = rigid_terms(terms, structure.machine.rotors)
            speeds[:, row, column] = coordinate_sum(direction.coordinate_acceleration, rigid)
    return speeds


class ControlledCourse(TimeCourse):
    """A machine with its position loops.

    The states of the loops come after the coordinates of the structure in the state vector. The law
    ż = A z + B_y y + B_v v, u = C z + D_y y + D_v v of each motor acts on deviations y = P x and
    v = S ẋ + Ṡ x from the reference, which the undeformed machine follows exactly.
    """

    def __init__(
        self,
        time: Array,
        sampled: Sampled,
        motion: tuple[Callable[[Array], Array], Callable[[Array], Array]],
        wrench: Callable[[Array], Array],
        loops: SampledLoops,
        laws: tuple[tuple[ServoLaw, ...], Array],
        feedforward: str,
    ) -> None:
        """Fit the splines.

        Args:
            time, sampled, wrench: as for `TimeCourse`.
            motion: times (N,) -> independent velocities and accelerations (N, m).
            loops: position loops at the times of the samples.
            laws: laws of the u motors, and coefficients (d,) of the dampers.
            feedforward: one of `FEEDFORWARDS`.
        """
        velocity, acceleration = motion
        super().__init__(time, sampled, acceleration, wrench)
        self._velocity = velocity
        self._feedforward = feedforward
        self._laws, self._damping = laws
        self.add_samples({name: getattr(loops, name) for name in LOOP_QUANTITIES})
        states = [law.states for law in self._laws]
        self._offsets = np.concatenate([[0], np.cumsum(states)]).astype(int)

    @property
    def states(self) -> int:
        """Number of states of all laws."""
        return int(self._offsets[-1])

    def damping(self, time: Array) -> Array:
        """Return the damping (N, n, n) of modes and of viscous friction in the drives."""
        rows = self.at("dampers", time)
        friction = np.swapaxes(rows, -1, -2) @ (self._damping[:, None] * rows)
        return super().damping(time) + friction

    def speeds(self, name: str, time: Array) -> Array:
        """Return speeds (N, k) of the undeformed machine; zero after its motion."""
        velocity = np.where(self.is_moving(time)[:, None], self._velocity(time), 0.0)
        return np.einsum("nkm,nm->nk", self.at(name, time), velocity)

    def rigid(self, time: Array) -> Array:
        """Return the forces (N, n) due to the rigid-body motion: inertia and viscous friction."""
        resistance = self._damping * self.speeds("damper_speed", time)
        friction = np.einsum("nki,nk->ni", self.at("dampers", time), resistance)
        return super().rigid(time) - friction

    def fed_forward(self, time: Array) -> Array:
        """Return the forces (N, u) that are fed forward: those of the undeformed machine."""
        if self._feedforward != "force":
            return np.zeros((len(time), len(self._laws)))
        needed = self.rigid(time) + self.at("weight", time)
        return np.einsum("nui,ni->nu", self.at("holding", time), needed)

    def _lag(self, time: Array) -> Array:
        """Return the reference speeds (N, u) that are not fed forward, so that they act as errors."""
        speeds = self.speeds("reference_speed", time)
        return speeds if self._feedforward == "none" else np.zeros_like(speeds)

    def loop_gains(self, time: Array) -> tuple[Array, Array, Array]:
        """Return the derivatives of the motor forces (N, u, ·) with respect to x, ẋ and the states."""
        D = np.array([law.D for law in self._laws])
        by_position = D[:, 1, None] * self.at("position", time)
        by_position = by_position + D[:, 2, None] * self.at("speed_rate", time)
        by_speed = D[:, 2, None] * self.at("speed", time)
        by_states = np.zeros((len(self._laws), self.states))
        for k, law in enumerate(self._laws):
            by_states[k, self._offsets[k] : self._offsets[k + 1]] = law.C
        return by_position, by_speed, by_states

    def _state_rates(self, time: Array) -> tuple[Array, Array, Array, Array]:
        """Return the terms of the laws' state equations.

        Returns:
            Factors of x, ẋ (N, s, n) and of the states (s, s), and constant terms (N, s).
        """
        n = self.at("position", time).shape[-1]
        by_position = np.zeros((len(time), self.states, n))
        by_speed = np.zeros((len(time), self.states, n))
        by_states = np.zeros((self.states, self.states))
        constant = np.zeros((len(time), self.states))
        position, speed, rate = (self.at(k, time) for k in ("position", "speed", "speed_rate"))
        lag = self._lag(time)
        for k, law in enumerate(self._laws):
            rows = slice(self._offsets[k], self._offsets[k + 1])
            B_y, B_v = law.B[:, 1, None], law.B[:, 2, None]
            by_position[:, rows] = B_y * position[:, k, None] + B_v * rate[:, k, None]
            by_speed[:, rows] = B_v * speed[:, k, None]
            by_states[rows, rows] = law.A
            constant[:, rows] = law.B[:, 2] * lag[:, k, None]
        return by_position, by_speed, by_states, constant

    def terms(self, time: Array) -> LinearTerms:
        """Return the equations of motion of machine and loops at times (N,)."""
        plain = super().terms(time)
        poses = self.poses(time)
        push = np.swapaxes(self.at("torque", poses), -1, -2)
        by_position, by_speed, by_states = self.loop_gains(poses)
        rates = self._state_rates(poses)
        n, s = plain.mass.shape[-1], self.states
        mass, damping, stiffness = (np.zeros((len(poses), n + s, n + s)) for _ in range(3))
        mass[:, :n, :n] = plain.mass
        damping[:, :n, :n] = plain.damping - push @ by_speed
        damping[:, n:, :n] = -rates[1]
        damping[:, range(n, n + s), range(n, n + s)] = 1.0
        stiffness[:, :n, :n] = plain.stiffness - push @ by_position
        stiffness[:, :n, n:] = -push @ by_states
        stiffness[:, n:, :n] = -rates[0]
        stiffness[:, n:, n:] = -rates[2]
        return LinearTerms(
            mass=mass, damping=damping, stiffness=stiffness, force=self._loop_forces(time)
        )

    def _loop_forces(self, time: Array, loads: Array | None = None) -> Array:
        """Return all forces (N, n + s) on machine and loops.

        Args:
            time: (N,).
            loads: forces (N, n) on the machine; default: those at these times.
        """
        D = np.array([law.D[2] for law in self._laws])
        motors = self.fed_forward(time) + D * self._lag(time)
        force = self.force(time) if loads is None else loads
        force = force + np.einsum("nui,nu->ni", self.at("torque", time), motors)
        return np.concatenate([force, self._state_rates(time)[3]], axis=1)

    def equilibrium(self, time: Array, force: Array) -> Array:
        """Return the coordinates and states (N, n + s) at rest under forces (N, n)."""
        forces = self._loop_forces(time, force)
        return np.asarray(np.linalg.solve(self.terms(time).stiffness, forces[..., None])[..., 0])

    def motor_forces(self, time: Array, motion: LinearMotion) -> Array:
        """Return the forces (N, u) of the motors at times of a motion."""
        by_position, by_speed, by_states = self.loop_gains(time)
        n = by_position.shape[-1]
        D = np.array([law.D[2] for law in self._laws])
        return (
            np.einsum("nui,ni->nu", by_position, motion.position[:, :n])
            + np.einsum("nui,ni->nu", by_speed, motion.velocity[:, :n])
            + motion.position[:, n:] @ by_states.T
            + D * self._lag(time)
            + self.fed_forward(time)
        )
