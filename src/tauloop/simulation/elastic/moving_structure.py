"""Matrices of a structure along a motion, in coordinates that are continuous over time."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from tauloop.common.records import dataclass
from tauloop.elasticity.frame.assembled import AssembledStructure
from tauloop.elasticity.frame.beams import NODE_FREEDOMS, Array
from tauloop.elasticity.frame.modes import VibrationModes, natural_modes
from tauloop.elasticity.frame.statics import gravity_load
from tauloop.elasticity.frame.structure import Element
from tauloop.elasticity.machine.rigid_motion import (
    RigidRates,
    inertia_forces,
    velocity_terms,
)
from tauloop.elasticity.machine.structure import MachineStructure
from tauloop.elasticity.machine.telescopic_rods import TelescopicRod


@dataclass(frozen=True, kw_only=True, eq=False)
class SampledStructure:
    """An elastic machine at P times of its rigid motion.

    Attributes:
        time: times (P,) of the poses, s.
        machine, assembled: the structure at these poses.
        rates: rigid motion of the machine without independent accelerations.
        directions: rigid accelerations per unit of each of the m independent accelerations, at rest.
        independent: independent accelerations (P, m), m/s^2 or rad/s^2.
    """

    time: Array
    machine: MachineStructure
    assembled: AssembledStructure
    rates: RigidRates
    directions: tuple[RigidRates, ...]
    independent: Array

    @cached_property
    def basis(self) -> Array:
        """Map (P, n, n) from coordinates that are continuous over time to those of the structure.

        Each displacement is projected onto the displacements that the next pose allows, by least
        squares of the twists of all bodies.
        """
        assembled, samples = self.assembled, len(self.time)
        internal = sum(element.internal for element in self.machine.structure.elements)
        kinematic = assembled.size - internal
        weight = np.repeat([1.0, self.machine.structure.length], 3)[:, None]
        basis = np.broadcast_to(np.eye(assembled.size), (samples, assembled.size, assembled.size))
        basis = basis.copy()
        basis[:, range(kinematic, assembled.size), range(kinematic, assembled.size)] = (
            self._mode_signs()
        )
        if samples < 2 or not kinematic:
            return basis
        names = [body.name for body in self.machine.structure.bodies]
        twists = np.concatenate(
            [assembled.body_motion[name][..., :kinematic] * weight for name in names], axis=1
        )
        steps = np.linalg.pinv(twists[1:]) @ twists[:-1]
        for i, step in enumerate(steps, start=1):
            basis[i, :kinematic, :kinematic] = step @ basis[i - 1, :kinematic, :kinematic]
        return basis

    def _mode_signs(self) -> Array:
        """Return signs (P, i) that make the modes of links of variable length continuous."""
        signs = []
        for element in self.machine.structure.elements:
            element_signs = np.ones((len(self.time), element.internal))
            if element.internal and element.name in self.machine.telescopes:
                shapes = self.machine.telescopes[element.name].shapes
                modes = shapes[..., shapes.shape[-1] - element.internal :]
                overlap = np.sum(modes[1:] * modes[:-1], axis=(1, 2))
                element_signs[1:] = np.cumprod(np.where(overlap < 0.0, -1.0, 1.0), axis=0)
            signs.append(element_signs)
        return np.concatenate([np.ones((len(self.time), 0)), *signs], axis=1)

    def congruent(self, matrix: Array) -> Array:
        """Return a matrix (P, n, n) of the structure in continuous coordinates."""
        return np.asarray(np.swapaxes(self.basis, -1, -2) @ matrix @ self.basis)

    def projected(self, force: Array) -> Array:
        """Return forces (P, n, k) on the structure in continuous coordinates."""
        return np.asarray(np.swapaxes(self.basis, -1, -2) @ force)

    @cached_property
    def mass(self) -> Array:
        """Mass (P, n, n)."""
        return self.congruent(self.assembled.mass)

    @cached_property
    def stiffness(self) -> Array:
        """Elastic stiffness (P, n, n)."""
        return self.congruent(self.assembled.stiffness)

    @cached_property
    def modes(self) -> VibrationModes:
        """All modes of the structure; controlled motors are free."""
        return natural_modes(self.assembled, may_be_free=bool(self.machine.drives))

    def damping(self, ratios: Callable[[Array], Array]) -> Array:
        """Return the damping (P, n, n) of all modes: M Φ diag(2 ζ ω) Φᵀ M.

        Args:
            ratios: angular frequencies (P, k) -> damping ratios (P, k).
        """
        modes = self.modes
        momentum = self.assembled.mass @ modes.shapes
        factors = 2.0 * ratios(modes.angular) * modes.angular
        return self.congruent((momentum * factors[:, None, :]) @ np.swapaxes(momentum, -1, -2))

    @cached_property
    def inertial(self) -> Array:
        """Forces (P, n, m) required per unit of each independent acceleration."""
        parts = [
            inertia_forces(self.machine, self.assembled, direction) for direction in self.directions
        ]
        empty = np.zeros((len(self.time), self.assembled.size, 0))
        return self.projected(np.concatenate([empty, *(x[..., None] for x in parts)], axis=-1))

    @cached_property
    def centrifugal(self) -> Array:
        """Forces (P, n) that the velocities need without independent accelerations."""
        force = inertia_forces(self.machine, self.assembled, self.rates)
        return self.projected(force[..., None])[..., 0]

    def weight(self, gravity: Array) -> Array:
        """Return the forces (P, n) of the weight."""
        return self.projected(gravity_load(self.assembled, gravity)[..., None])[..., 0]

    @cached_property
    def tool(self) -> Array:
        """Twist (P, 6, n) of the tool."""
        machine = self.machine
        motion = self.assembled.point_motion(machine.tool_body, machine.tool_point)
        return np.asarray(motion @ self.basis)

    @cached_property
    def gyroscopic(self) -> Array:
        """Forces (P, n, n) per elastic velocity while the pose changes: 2 Bᵀ M dB/dt.

        Forces along a beam that come from the speed of its bending modes are neglected. The axial
        stiffness of the beam resists them, so that their effect is of second order in the rotation
        rate.
        """
        size = self.assembled.size
        total = np.zeros((len(self.time), size, size))
        if len(self.time) < 2:
            return total
        structure = self.machine.structure
        for body in structure.bodies:
            if body.inertia is not None:
                motion = self.assembled.body_motion[body.name] @ self.basis
                inertia = np.asarray(body.inertia)
                terms = velocity_terms(self.machine, self.rates, body.name, inertia)
                force = 2.0 * inertia @ self.rate(motion) + terms @ motion
                total += np.swapaxes(motion, -1, -2) @ force
        for element, rows in zip(structure.elements, self.assembled.element_motion, strict=True):
            rod = self.machine.telescopes.get(element.name)
            if rod is not None:
                total += self._rod_terms(rod, rows @ self.basis)
            elif element.matrices.mass.any():
                motion = rows @ self.basis
                rate = self.rate(motion) + self._rotation_terms(element, motion)
                total += 2.0 * np.swapaxes(motion, -1, -2) @ (element.matrices.mass @ rate)
        for joint, rows in zip(structure.joints, self.assembled.joint_motion, strict=True):
            if joint.inertia is not None:
                motion = rows @ self.basis
                total += 2.0 * np.swapaxes(motion, -1, -2) @ (joint.inertia @ self.rate(motion))
        return total

    def _rod_terms(self, rod: TelescopicRod, motion: Array) -> Array:
        """Return 2 Σ m Yᵀ dY/dt (P, n, n) for the displacements Y of a telescopic rod's points."""
        displacement = rod.axes[:, None] @ (rod.shapes @ motion[:, None])
        weighted = rod.masses[:, None, None] * self.rate(displacement)
        return np.asarray(2.0 * np.einsum("npxi,npxj->nij", displacement, weighted))

    def rate(self, values: Array) -> Array:
        """Return the derivatives of arrays (P, ...) with respect to time."""
        from scipy.interpolate import CubicSpline  # of an extra

        return np.asarray(CubicSpline(self.time, values, axis=0)(self.time, 1))

    def _rotation_terms(self, element: Element, motion: Array) -> Array:
        """Return ω × y for the coordinates y (P, k, n) of an element, in its local axes.

        ω is the angular velocity of the local axes.
        """
        parts = []
        offset = 0
        for item in element.attachments:
            size = len(item.freedoms)
            axes = np.broadcast_to(item.axes, (len(self.time), 3, 3))
            spin = np.swapaxes(axes, -1, -2) @ self.rate(axes)
            twist = np.zeros((len(self.time), NODE_FREEDOMS, motion.shape[-1]))
            twist[:, list(item.freedoms)] = motion[:, offset : offset + size]
            product = np.concatenate([spin @ twist[:, :3], spin @ twist[:, 3:]], axis=1)
            parts.append(product[:, list(item.freedoms)])
            offset += size
        parts.append(np.zeros_like(motion[:, offset:]))
        return np.concatenate(parts, axis=1)

    def turning_rate(self) -> float:
        """Return the largest rotation rate of a body or element, or relative rate of a rod's length, 1/s."""
        largest = max(np.abs(omega).max() for omega in self.rates.angular_velocity.values())
        if len(self.time) > 1:
            for element in self.machine.structure.elements:
                for item in element.attachments:
                    axes = np.broadcast_to(item.axes, (len(self.time), 3, 3))
                    # The Frobenius norm of the derivative of a rotation matrix is ω √2.
                    omega = np.linalg.norm(self.rate(axes), axis=(1, 2)) / np.sqrt(2.0)
                    largest = max(largest, omega.max())
        for rod in self.machine.telescopes.values():
            if len(self.time) > 1:
                largest = max(largest, np.abs(self.rate(rod.lengths) / rod.lengths).max())
        return float(largest)

    def axial(self) -> tuple[tuple[str, ...], Array]:
        """Return names of b beams, and their mean axial forces per coordinate (P, b, n)."""
        names, rows = [], []
        for element, motion in zip(
            self.machine.structure.elements, self.assembled.element_motion, strict=True
        ):
            beam = element.beam
            if beam is None or beam.start[:1] != (0,):
                continue
            K = element.matrices.stiffness[..., :1, :]
            names.append(element.name)
            rows.append(-(K @ motion)[:, 0])
        if not rows:
            return (), np.zeros((len(self.time), 0, self.assembled.size))
        return tuple(names), np.asarray(np.stack(rows, axis=1) @ self.basis)
