"""Entries: the motion that is given (of the platform, or of the actuators), from which everything else follows."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from tauloop.equations.topology import Topology
from tauloop.errors import AssemblyError, Problem
from tauloop.functions.assembly import Assembly
from tauloop.functions.ports import Port


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Which motion is given.

    Attributes:
        name: "platform" or "actuators".
        position, velocity: ports of the given positions and velocities; accelerations have the velocity's columns.
        q, v: indices of the coordinates and velocities that the given motion determines at once.
        to_q, to_v: matrices from the given numbers to those coordinates and velocities.
    """

    name: str
    position: Port
    velocity: Port
    q: tuple[int, ...]
    v: tuple[int, ...]
    to_q: np.ndarray
    to_v: np.ndarray

    @property
    def acceleration(self) -> Port:
        """Port of the given accelerations."""
        units = tuple(unit + "^2" for unit in self.velocity.units)
        return Port(name="acceleration", columns=self.velocity.columns, units=units)

    def at(self, q: np.ndarray) -> np.ndarray:
        """The given positions (..., n) at full coordinates (..., n_q)."""
        return np.asarray(q[..., list(self.q)] @ np.linalg.inv(self.to_q).T)

    def given(self, position: ca.SX) -> dict[int, ca.SX]:
        """Coordinates by index, from the given positions."""
        values = ca.DM(self.to_q) @ position
        return {i: values[k] for k, i in enumerate(self.q)}


def platform_entry(assembly: Assembly) -> Entry:
    """Motion of the independent coordinates (the platform's).

    A rotation of a free body enters with its quaternion: all four numbers where all three rotations are independent,
    else the vector components that belong to the independent ones (the others follow).
    """
    shape = assembly.loops.topology
    independent = assembly.independent
    q: list[int] = []
    for iv in independent:
        if shape.q_of_v[iv] >= 0:
            q.append(shape.q_of_v[iv])
    for q0, v0 in shape.quaternions:
        turning = [iv for iv in independent if v0 <= iv < v0 + 3]
        q += range(q0, q0 + 4) if len(turning) == 3 else [q0 + 1 + iv - v0 for iv in turning]
    q.sort()
    return Entry(
        name="platform",
        position=_position_port(shape, q),
        velocity=_velocity_port(shape, independent),
        q=tuple(q),
        v=independent,
        to_q=np.eye(len(q)),
        to_v=np.eye(len(independent)),
    )


def actuator_entry(assembly: Assembly) -> Entry:
    """Motion of the actuators: positions p = A q over the coordinates that they drive.

    Raises:
        AssemblyError: the actuators do not determine the coordinates that they drive.
    """
    shape, mechanism = assembly.loops.topology, assembly.loops.mechanism
    driven = list(assembly.driven)
    A = assembly.loops.transmission[:, driven]
    if A.shape[0] != A.shape[1] or np.linalg.matrix_rank(A) < A.shape[0]:
        raise AssemblyError(
            Problem(
                where="actuators",
                what=f"{A.shape[0]} actuators drive {A.shape[1]} coordinates, so their positions do not give these",
                remedy="drive as many coordinates as there are actuators, with independent transmissions",
                file=mechanism.file,
            )
        )
    names = tuple(actuator.name for actuator in mechanism.actuators)
    rotary = [shape.motor_turns(actuator) for actuator in mechanism.actuators]
    inverse = np.linalg.inv(A)
    inverse[np.abs(inverse) < 1e-15 * np.abs(inverse).max()] = 0.0
    return Entry(
        name="actuators",
        position=Port(name="position", columns=names, units=tuple("rad" if r else "m" for r in rotary)),
        velocity=Port(name="velocity", columns=names, units=tuple("rad/s" if r else "m/s" for r in rotary)),
        q=tuple(shape.q_of_v[i] for i in driven),
        v=tuple(driven),
        to_q=inverse,
        to_v=inverse,
    )


def _position_port(shape: Topology, q: list[int]) -> Port:
    return Port(
        name="position",
        columns=tuple(shape.coordinate_names[i] for i in q),
        units=coordinate_units(shape, q),
    )


def coordinate_units(shape: Topology, q: list[int] | None = None) -> tuple[str, ...]:
    """Units of coordinates: rad for angles, 1 for quaternions, m for the rest."""
    quaternion = {j for q0, _ in shape.quaternions for j in range(q0, q0 + 4)}
    indices = range(shape.n_q) if q is None else q
    return tuple("1" if i in quaternion else "rad" if shape.is_angle[i] else "m" for i in indices)


def velocity_units(shape: Topology, v: tuple[int, ...] | None = None) -> tuple[str, ...]:
    """Units of velocities."""
    indices = range(shape.n_v) if v is None else v
    return tuple("rad/s" if shape.angular[i] else "m/s" for i in indices)


def _velocity_port(shape: Topology, v: tuple[int, ...]) -> Port:
    return Port(name="velocity", columns=tuple(shape.velocity_names[i] for i in v), units=velocity_units(shape, v))
