"""Straight beam elements in space, and their chains: stiffness, mass and geometric stiffness.

Local axes: x along the beam, y and z the principal axes of its section. A node has the degrees of
freedom u_x, u_y, u_z, θ_x, θ_y, θ_z. Bending in two planes, stretch and twist of a straight beam are
independent. Therefore all matrices are computed separately for each of these four `BeamMotion`s.

The shape functions are those of Timoshenko's beam with interdependent deflection and rotation; they
become Hermite's (Euler-Bernoulli) where the shear stiffness is infinite. Source: Friedman, Kosmatka
1993, An improved two-node Timoshenko beam finite element, Computers & Structures 47, eqs. 13-20;
Przemieniecki 1968, Theory of matrix structural analysis, sections 5.6, 11.4 and 15.2.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from tauloop.common.errors import InputError, Problems
from tauloop.common.records import dataclass

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

#: Number of degrees of freedom of a node.
NODE_FREEDOMS = 6
#: Points and weights of Gauss-Legendre integration on [0, 1], exact to degree 7. Products of two
#: shape functions have degree 6.
_GAUSS_POINTS, _GAUSS_WEIGHTS = np.polynomial.legendre.leggauss(4)
_GAUSS_POINTS, _GAUSS_WEIGHTS = 0.5 * (_GAUSS_POINTS + 1.0), 0.5 * _GAUSS_WEIGHTS


class BeamMotion(enum.Enum):
    """The four independent motions of a straight beam.

    Each value contains the degrees of freedom of a node that belong to the motion, and their signs:
    the slope in the x-z plane is w' = -θ_y.
    """

    STRETCH = ((0, 1.0),)
    TWIST = ((3, 1.0),)
    BEND_XY = ((1, 1.0), (5, 1.0))
    BEND_XZ = ((2, 1.0), (4, -1.0))

    @property
    def freedoms(self) -> tuple[int, ...]:
        """Indices of the degrees of freedom of a node that belong to the motion."""
        return tuple(index for index, _ in self.value)

    @property
    def signs(self) -> Array:
        """Signs of these degrees of freedom in the coordinates of the motion."""
        return np.array([sign for _, sign in self.value])

    @property
    def is_bending(self) -> bool:
        """Whether the motion is bending."""
        return len(self.value) > 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BeamProperties:
    """Stiffness and mass of a beam's section; every value may be an array over elements.

    Attributes:
        axial: E A, N.
        torsional: G J, N m^2.
        bending_y: E I_y, against rotation about y (deflection along z), N m^2.
        bending_z: E I_z, against rotation about z (deflection along y), N m^2.
        mass: mass per length, kg/m.
        polar_inertia: rotary inertia per length about the beam's axis, kg m.
        shear_y, shear_z: shear stiffness κ G A for deflection along y and z, N; infinite for
            Euler-Bernoulli.
        rotary_y, rotary_z: rotary inertia per length about y and z, kg m; zero for Euler-Bernoulli.
    """

    axial: Array | float
    torsional: Array | float
    bending_y: Array | float
    bending_z: Array | float
    mass: Array | float = 0.0
    polar_inertia: Array | float = 0.0
    shear_y: Array | float = np.inf
    shear_z: Array | float = np.inf
    rotary_y: Array | float = 0.0
    rotary_z: Array | float = 0.0

    def __post_init__(self) -> None:
        """Check that stiffness is positive and that mass is not negative.

        Raises:
            InputError: a value is outside its range.
        """
        problems = Problems()
        for name in ("axial", "torsional", "bending_y", "bending_z", "shear_y", "shear_z"):
            lowest = np.min(getattr(self, name))
            if not lowest > 0.0:
                problems.add(name, f"must be positive, got {lowest:g}", "give a positive stiffness")
        for name in ("mass", "polar_inertia", "rotary_y", "rotary_z"):
            lowest = np.min(getattr(self, name))
            if not lowest >= 0.0:
                what = f"must not be negative, got {lowest:g}"
                problems.add(name, what, "give zero or a positive number")
        InputError.raise_if_any(problems)

    def as_bytes(self) -> tuple[bytes, ...]:
        """Return all values as a dictionary key; equal sections have equal keys."""
        names = BeamProperties.__dataclass_fields__
        return tuple(np.asarray(getattr(self, name), dtype=float).tobytes() for name in names)

    def for_motion(self, motion: BeamMotion) -> MotionProperties:
        """Return the stiffness and mass for a single motion."""
        infinite, zero = np.asarray(np.inf), np.asarray(0.0)
        stiffness, inertia, shear, rotary = {
            BeamMotion.STRETCH: (self.axial, self.mass, infinite, zero),
            BeamMotion.TWIST: (self.torsional, self.polar_inertia, infinite, zero),
            BeamMotion.BEND_XY: (self.bending_z, self.mass, self.shear_y, self.rotary_z),
            BeamMotion.BEND_XZ: (self.bending_y, self.mass, self.shear_z, self.rotary_y),
        }[motion]
        return MotionProperties(
            stiffness=np.asarray(stiffness, dtype=float),
            inertia=np.asarray(inertia, dtype=float),
            shear=np.asarray(shear, dtype=float),
            rotary=np.asarray(rotary, dtype=float),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MotionProperties:
    """Stiffness (E A, G J or E I), inertia per length, shear stiffness and rotary inertia."""

    stiffness: Array
    inertia: Array
    shear: Array
    rotary: Array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Matrices:
    """Matrices (..., n, n) of an element, a chain of elements or a reduced chain.

    Attributes:
        stiffness: elastic stiffness.
        mass: consistent mass.
        geometric: geometric stiffness per unit axial force (tension is positive), 1/m.
    """

    stiffness: Array
    mass: Array
    geometric: Array

    def projected(self, basis: Array) -> Matrices:
        """Return the matrices in new coordinates: Bᵀ K B for a basis B (..., n, m)."""
        left = np.swapaxes(basis, -1, -2)
        return Matrices(
            stiffness=left @ self.stiffness @ basis,
            mass=left @ self.mass @ basis,
            geometric=left @ self.geometric @ basis,
        )

    def at(self, sample: int) -> Matrices:
        """Return the matrices of a single sample of a batch."""
        return Matrices(
            stiffness=self.stiffness[sample],
            mass=self.mass[sample],
            geometric=self.geometric[sample],
        )

    def part(self, indices: Indices | tuple[int, ...]) -> Matrices:
        """Return the submatrices of the rows and columns with these indices."""
        columns = np.asarray(indices, dtype=np.intp)
        rows = columns[:, None]
        return Matrices(
            stiffness=self.stiffness[..., rows, columns],
            mass=self.mass[..., rows, columns],
            geometric=self.geometric[..., rows, columns],
        )


def element_matrices(
    motion: BeamMotion, length: Array | float, properties: BeamProperties
) -> Matrices:
    """Return the matrices (..., n, n) of elements for a single motion.

    Args:
        motion: the motion; n is 2 (u_1, u_2), or 4 for bending (v_1, v'_1, v_2, v'_2).
        length: lengths (...) of the elements, m.
        properties: section properties of the elements, broadcast with the lengths.
    """
    L = np.asarray(length, dtype=float)
    section = properties.for_motion(motion)
    L, EI, rho, GA, rho_I = np.broadcast_arrays(
        L, section.stiffness, section.inertia, section.shear, section.rotary
    )
    if not motion.is_bending:
        return _two_node_matrices(L, EI, rho)
    return _bending_matrices(L, EI, rho, 12.0 * EI / (GA * L**2), rho_I)


def _two_node_matrices(L: Array, EA: Array, rho: Array) -> Matrices:
    """Return the matrices (..., 2, 2) of stretching or twisting elements."""
    difference = np.array([[1.0, -1.0], [-1.0, 1.0]])
    mean = np.array([[2.0, 1.0], [1.0, 2.0]])
    return Matrices(
        stiffness=(EA / L)[..., None, None] * difference,
        mass=(rho * L / 6.0)[..., None, None] * mean,
        geometric=np.zeros((*L.shape, 2, 2)),
    )


def _bending_matrices(
    L: Array, EI: Array, rho: Array, shear_ratio: Array, rho_I: Array
) -> Matrices:
    """Return the matrices (..., 4, 4) of bending elements.

    Args:
        L: lengths, m.
        EI: bending stiffness, N m^2.
        rho: mass per length, kg/m.
        shear_ratio: Φ = 12 E I / (κ G A L²).
        rho_I: rotary inertia per length, kg m.
    """
    force, moment = 12.0 * np.ones_like(L), 6.0 * L
    near = (4.0 + shear_ratio) * L**2
    far = (2.0 - shear_ratio) * L**2
    rows = [
        [force, moment, -force, moment],
        [moment, near, -moment, far],
        [-force, -moment, force, -moment],
        [moment, far, -moment, near],
    ]
    shape = np.moveaxis(np.array(rows), (0, 1), (-2, -1))
    stiffness = (EI / (L**3 * (1.0 + shear_ratio)))[..., None, None] * shape
    mass, geometric = np.zeros_like(stiffness), np.zeros_like(stiffness)
    for xi, weight in zip(_GAUSS_POINTS, _GAUSS_WEIGHTS, strict=True):
        deflection, slope, rotation = bending_shapes(xi, L, shear_ratio)
        scale = weight * L[..., None, None]
        mass += scale * rho[..., None, None] * _outer(deflection)
        mass += scale * rho_I[..., None, None] * _outer(rotation)
        geometric += scale * _outer(slope)
    return Matrices(stiffness=stiffness, mass=mass, geometric=geometric)


def _outer(vector: Array) -> Array:
    """Return the products x xᵀ (..., n, n) of vectors (..., n)."""
    return np.asarray(vector[..., :, None] * vector[..., None, :])


def bending_shapes(xi: Array | float, L: Array, shear_ratio: Array) -> tuple[Array, Array, Array]:
    """Return deflection v, slope dv/dx and section rotation (..., 4) for unit end displacements.

    Args:
        xi: position along the element (...), from 0 to 1.
        L: lengths (...), m.
        shear_ratio: Φ = 12 E I / (κ G A L²) (...).
    """
    x, phi = xi, shear_ratio
    mu = 1.0 / (1.0 + phi)
    # v = mu (cubic of a beam without shear deformation + phi times a linear or quadratic term)
    step = 3.0 * x**2 - 2.0 * x**3
    start_bend = x - 2.0 * x**2 + x**3
    end_bend = x**3 - x**2
    shear_bend = 0.5 * phi * (x - x**2)
    deflection = [
        mu * (1.0 - step + phi * (1.0 - x)),
        mu * L * (start_bend + shear_bend),
        mu * (step + phi * x),
        mu * L * (end_bend - shear_bend),
    ]
    step_slope = 6.0 * x - 6.0 * x**2
    start_slope = 1.0 - 4.0 * x + 3.0 * x**2
    end_slope = 3.0 * x**2 - 2.0 * x
    shear_slope = 0.5 * phi * (1.0 - 2.0 * x)
    slope = [
        -mu / L * (step_slope + phi),
        mu * (start_slope + shear_slope),
        mu / L * (step_slope + phi),
        mu * (end_slope - shear_slope),
    ]
    rotation = [
        -mu / L * step_slope,
        mu * (start_slope + phi * (1.0 - x)),
        mu / L * step_slope,
        mu * (end_slope + phi * x),
    ]
    return np.stack(deflection, axis=-1), np.stack(slope, axis=-1), np.stack(rotation, axis=-1)


def chain_matrices(motion: BeamMotion, lengths: Array, properties: BeamProperties) -> Matrices:
    """Return the matrices (..., n, n) of a chain of elements for a single motion.

    Args:
        motion: the motion; n is the number of nodes, or twice this number for bending.
        lengths: lengths (..., e) of the elements in their order, m.
        properties: section properties of the elements, broadcast with the lengths.
    """
    single = element_matrices(motion, lengths, properties)
    count, block = single.stiffness.shape[-3], single.stiffness.shape[-1]
    step = block // 2
    size = (count + 1) * step
    batch = single.stiffness.shape[:-3]
    assembled = []
    for matrices in (single.stiffness, single.mass, single.geometric):
        total = np.zeros((*batch, size, size))
        for i in range(count):
            indices = slice(i * step, i * step + block)
            total[..., indices, indices] += matrices[..., i, :, :]
        assembled.append(total)
    stiffness, mass, geometric = assembled
    return Matrices(stiffness=stiffness, mass=mass, geometric=geometric)


def beam_matrices(lengths: Array, properties: BeamProperties) -> Matrices:
    """Return the matrices (..., n, n) of a chain of elements in all degrees of freedom of its nodes.

    Args:
        lengths: lengths (..., e) of the elements in their order, m.
        properties: section properties of the elements, broadcast with the lengths.
    """
    by_motion = {motion: chain_matrices(motion, lengths, properties) for motion in BeamMotion}
    nodes = np.shape(lengths)[-1] + 1
    indices_and_signs = {motion: node_indices(motion, nodes) for motion in BeamMotion}
    return joined(by_motion, indices_and_signs, nodes * NODE_FREEDOMS)


def node_indices(motion: BeamMotion, nodes: int) -> tuple[Indices, Array]:
    """Return the indices of a motion's degrees of freedom among those of nodes, and their signs."""
    first = NODE_FREEDOMS * np.arange(nodes)
    positions = (first[:, None] + np.array(motion.freedoms)).ravel()
    return positions, np.tile(motion.signs, nodes)


def joined(
    by_motion: Mapping[BeamMotion, Matrices],
    indices_and_signs: Mapping[BeamMotion, tuple[Indices, Array]],
    size: int,
) -> Matrices:
    """Return matrices (..., size, size) that combine the matrices of all motions.

    Args:
        by_motion: matrices (..., n, n) of the motions.
        indices_and_signs: indices (n,) of each motion's degrees of freedom among all of them, and their signs
            (n,).
        size: number of all degrees of freedom.
    """
    batch = np.broadcast_shapes(*(item.stiffness.shape[:-2] for item in by_motion.values()))
    stiffness, mass, geometric = (np.zeros((*batch, size, size)) for _ in range(3))
    for motion, item in by_motion.items():
        positions, signs = indices_and_signs[motion]
        rows = positions[:, None]
        sign = np.outer(signs, signs)
        stiffness[..., rows, positions] += sign * item.stiffness
        mass[..., rows, positions] += sign * item.mass
        geometric[..., rows, positions] += sign * item.geometric
    return Matrices(stiffness=stiffness, mass=mass, geometric=geometric)
