"""Static deformation of a structure: tool compliance, energy shares, element loads and buckling."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tauloop.common.records import dataclass
from tauloop.elasticity.frame.assembled import AssembledStructure
from tauloop.elasticity.frame.beams import Array
from tauloop.elasticity.frame.structure import Element


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ToolCompliance:
    """The elastic motion of the tool under unit wrenches at N poses.

    Attributes:
        matrix: (N, 6, 6) twist (u, θ) of the tool per wrench (f, m): m/N, rad/N, m/(N m), rad/(N
            m).
        displacement: (N, n, 6) coordinates of the structure for each unit wrench.
        shares: (N, 6, s) fraction of the deformation energy in each elastic item for each unit
            wrench; the fractions sum to one.
        items: names of the s elastic items: elements, joints with stiffness, and combinations.
    """

    matrix: Array
    displacement: Array
    shares: Array
    items: tuple[str, ...]


def tool_compliance(
    assembled: AssembledStructure,
    body: str,
    point: Array,
    axes: Array | None = None,
    *,
    geometric: Array | None = None,
) -> ToolCompliance:
    """Return the compliance C = J K⁻¹ Jᵀ at a point of a body with the Jacobian J.

    Args:
        assembled: the structure.
        body: name of the body.
        point: (N, 3) or (3,) position in the base frame, m.
        axes: (N, 3, 3) axes of twist and wrench as columns; default: the axes of the base.
        geometric: (N, n, n) geometric stiffness that is added; the shares do not include its
            energy.

    Raises:
        AssemblyError: a motion causes no deformation.
    """
    assembled.require_no_mechanism()
    motion = assembled.point_motion(body, point, axes)
    K = assembled.stiffness if geometric is None else assembled.stiffness + geometric
    displacement = np.asarray(np.linalg.solve(K, np.swapaxes(motion, -1, -2)), dtype=float)
    items, shares = energy_shares(assembled, displacement)
    return ToolCompliance(
        matrix=motion @ displacement, displacement=displacement, shares=shares, items=items
    )


def energy_shares(
    assembled: AssembledStructure, displacement: Array
) -> tuple[tuple[str, ...], Array]:
    """Return the names of s elastic items, and the fraction (N, c, s) of the energy in each item.

    Args:
        assembled: the structure.
        displacement: c displacements (N, n, c) of the structure.
    """
    energies = []
    for _, rows, stiffness in assembled.elastic_items:
        local = rows @ displacement
        energies.append(np.sum(local * (stiffness @ local), axis=1))
    energy = np.stack(energies, axis=-1) if energies else np.zeros((*displacement.shape[::2], 0))
    total = energy.sum(axis=-1, keepdims=True)
    shares = np.divide(energy, total, out=np.zeros_like(energy), where=total > 0.0)
    return tuple(name for name, _, _ in assembled.elastic_items), shares


def gravity_load(assembled: AssembledStructure, gravity: Array) -> Array:
    """Return the generalized forces (N, n) due to the weight of bodies and elements.

    Args:
        assembled: the structure.
        gravity: (3,) acceleration in the axes of the base, m/s^2.
    """
    load = np.zeros((assembled.samples, assembled.size))
    field = np.concatenate([gravity, np.zeros(3)])
    for body in assembled.structure.bodies:
        if body.inertia is not None:
            motion = assembled.body_motion[body.name]
            load += np.einsum("...ki,...k->...i", motion, body.inertia @ field)
    for element, motion in zip(assembled.structure.elements, assembled.element_motion, strict=True):
        load += np.einsum("...ki,...k->...i", motion, element_weight(element, gravity))
    return load


def element_weight(element: Element, gravity: Array) -> Array:
    """Return the forces (..., k) due to an element's weight in its coordinates.

    They are the mass matrix times the acceleration of a translation. A translation does not change
    the internal coordinates of a reduced beam.
    """
    columns = []
    for attachment in element.attachments:
        local = np.swapaxes(attachment.axes, -1, -2) @ gravity
        twist = np.concatenate([local, np.zeros_like(local)], axis=-1)
        columns.append(twist[..., list(attachment.freedoms)])
    shape = np.broadcast_shapes(*(column.shape[:-1] for column in columns))
    columns = [np.broadcast_to(column, (*shape, column.shape[-1])) for column in columns]
    columns.append(np.zeros((*shape, element.internal)))
    acceleration = np.concatenate(columns, axis=-1)
    return np.asarray((element.matrices.mass @ acceleration[..., None])[..., 0])


def end_loads(
    assembled: AssembledStructure, displacement: Array, gravity: Array | None = None
) -> dict[str, Array]:
    """Return the forces and moments (N, external) on the attachments of each element.

    They act on the element, in its local axes and in the order of its freedoms.

    Args:
        assembled: the structure.
        displacement: (N, n) coordinates.
        gravity: (3,) acceleration in the axes of the base, m/s^2; None to neglect the weight of the
            elements.
    """
    loads = {}
    for element, rows in zip(assembled.structure.elements, assembled.element_motion, strict=True):
        local = (rows @ displacement[..., None])[..., 0]
        load = (element.matrices.stiffness @ local[..., None])[..., 0]
        if gravity is not None:
            load = load - element_weight(element, gravity)
        loads[element.name] = load[..., : element.external]
    return loads


def axial_forces(assembled: AssembledStructure, loads: Mapping[str, Array]) -> dict[str, Array]:
    """Return the mean axial forces (N,) of beams by name, N; tension is positive.

    Args:
        assembled: the structure.
        loads: (N, external) loads on the attachments of each element, see `end_loads`.
    """
    forces = {}
    for element in assembled.structure.elements:
        beam = element.beam
        if beam is None or beam.start[:1] != (0,):
            continue
        load = loads[element.name]
        if beam.end[:1] == (0,):
            forces[element.name] = 0.5 * (load[..., len(beam.start)] - load[..., 0])
        else:
            forces[element.name] = -load[..., 0]
    return forces


def section_loads(element: Element, load: Array, gravity: Array | None = None) -> Array:
    """Return the forces and moments (N, e + 1, 6) in the sections at the nodes of a beam.

    They act on the part of the beam between its start and the section: tension, shear along y and
    z, torsion, bending about y and z. They follow from the loads at the start and the weight of
    this part.

    Args:
        element: a beam.
        load: (N, external) loads on its attachments, see `end_loads`.
        gravity: (3,) acceleration in the axes of the base, m/s^2; None to neglect the weight.
    """
    beam = element.beam
    if beam is None:
        raise ValueError(f"{element.name} is not a beam")
    start = np.zeros((*load.shape[:-1], 6))
    start[..., list(beam.start)] = load[..., : len(beam.start)]
    lengths = beam.lengths
    position = np.concatenate(
        [np.zeros((*lengths.shape[:-1], 1)), np.cumsum(lengths, axis=-1)], axis=-1
    )
    local_gravity = np.zeros(3)
    mass, first_moment = np.zeros_like(position), np.zeros_like(position)
    if gravity is not None:
        mass, first_moment = _mass_before(beam.lengths, np.asarray(beam.properties.mass))
        local_gravity = np.swapaxes(element.attachments[0].axes, -1, -2) @ gravity
    force, moment = start[..., None, :3], start[..., None, 3:]
    local_gravity = local_gravity[..., None, :]
    # First moment of the mass before the section about the section.
    section_moment = first_moment - mass * position
    loads = np.empty((*np.broadcast_shapes(force.shape[:-1], position.shape), 6))
    loads[..., :3] = -(force + mass[..., None] * local_gravity)
    # The lever arms of the force at the start and of the weight are along x.
    loads[..., 3] = -moment[..., 0]
    loads[..., 4] = (
        section_moment * local_gravity[..., 2] - position * force[..., 2] - moment[..., 1]
    )
    loads[..., 5] = (
        position * force[..., 1] - section_moment * local_gravity[..., 1] - moment[..., 2]
    )
    return loads


def _mass_before(lengths: Array, density: Array) -> tuple[Array, Array]:
    """Return mass (..., e + 1) before each node of a chain, and its first moment about the start.

    Args:
        lengths: (..., e) lengths of the elements, m.
        density: mass per length of the elements, kg/m.
    """
    masses = lengths * density
    ends = np.cumsum(lengths, axis=-1)
    moments = masses * (ends - 0.5 * lengths)
    zero = np.zeros((*lengths.shape[:-1], 1))
    return (
        np.concatenate([zero, np.cumsum(masses, axis=-1)], axis=-1),
        np.concatenate([zero, np.cumsum(moments, axis=-1)], axis=-1),
    )


def buckling_factors(assembled: AssembledStructure, geometric: Array, count: int = 1) -> Array:
    """Return the smallest positive load factors (N, count) at which the structure buckles.

    The factors λ solve (K + λ K_g) x = 0; they are infinite if there is no solution.

    Args:
        assembled: the structure.
        geometric: (N, n, n) geometric stiffness K_g due to the loads.
        count: number of factors.

    Raises:
        AssemblyError: a motion causes no deformation.
    """
    assembled.require_no_mechanism()
    return load_factors(assembled.stiffness, geometric, count)


def load_factors(stiffness: Array, geometric: Array, count: int = 1) -> Array:
    """Return the smallest positive λ (N, count) of (K + λ K_g) x = 0; infinite if there are fewer.

    Args:
        stiffness: K (N, n, n), positive definite.
        geometric: K_g (N, n, n).
        count: number of factors.
    """
    L_inverse = np.linalg.inv(np.linalg.cholesky(stiffness))
    scaled = L_inverse @ geometric @ np.swapaxes(L_inverse, -1, -2)
    mu = np.linalg.eigvalsh(scaled)[:, :count]
    # The scaled stiffness is the identity. Values below its rounding errors count as no load.
    largest = np.abs(mu).max(axis=1, keepdims=True, initial=1.0)
    floor = stiffness.shape[-1] * np.finfo(float).eps * largest
    negative = mu < -floor
    factors = np.where(negative, -1.0 / np.where(negative, mu, -1.0), np.inf)
    missing = count - factors.shape[1]
    return np.pad(factors, ((0, 0), (0, max(missing, 0))), constant_values=np.inf)


def rod_buckling_load(element: Element) -> Array:
    """Return Euler's buckling load (N,) of a beam with ball joints at both ends, N.

    It follows from stiffness and geometric stiffness; for a uniform tube it is π² E I / L².
    """
    beam = element.beam
    if beam is None:
        raise ValueError(f"{element.name} is not a beam")
    largest = []
    for motion, (positions, _) in beam.indices_and_signs.items():
        inner = positions[len(beam.motions[motion].ends) :]
        if not motion.is_bending or not len(inner):
            continue
        matrices = beam.matrices.part(tuple(int(position) for position in inner))
        scale = 1.0 / np.sqrt(np.diagonal(matrices.stiffness, axis1=-2, axis2=-1))
        scaled = scale[..., :, None] * matrices.geometric * scale[..., None, :]
        largest.append(np.linalg.eigvalsh(scaled)[..., -1])
    return np.asarray(1.0 / np.max(largest, axis=0))
