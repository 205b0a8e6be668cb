"""Fixed-interface reduction of beams to their ends and a few fixed-end modes.

u = Ψ_c u_ends + Φ η with static shapes Ψ_c for unit displacements of the ends, and fixed-end modes
Φ. Source: Craig, Bampton 1968, Coupling of substructures for dynamic analyses, AIAA Journal 6, eqs.
3-18.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field, replace

import numpy as np

from tauloop.common.errors import InputError
from tauloop.common.records import dataclass
from tauloop.elasticity.frame.beams import (
    Array,
    BeamMotion,
    BeamProperties,
    Indices,
    Matrices,
    chain_matrices,
    joined,
)

#: Minimum number of elements of a chain. With e elements, the relative error of the frequency of mode
#: n is about (nπ/e)^4 / 1440, which is 2e-7 for the first mode. The error of Euler's buckling load is
#: 4e-7.
MIN_ELEMENTS = 24
#: Minimum number of elements per mode of a bending plane. The error of the highest mode is then at
#: most 2e-5.
ELEMENTS_PER_MODE = 8
#: Degrees of freedom of a node that a ball joint releases.
BALL = (3, 4, 5)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReducedMotion:
    """An uncoupled motion of a reduced beam: axial, twist or bending in a plane.

    Attributes:
        ends: retained degrees of freedom as pairs (end 0 or 1, index of the degree of freedom at
            its node).
        frequencies: (..., modes) frequencies of the fixed-end modes, Hz.
        basis: matrix (..., n, k) from the degrees of freedom of the ends and modes to those
            of the chain.
    """

    ends: tuple[tuple[int, int], ...]
    frequencies: Array
    basis: Array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReducedBeam:
    """A chain of beam elements, reduced to its ends and a few modes.

    The coordinates are the retained degrees of freedom of the start, those of the end, and the
    modes.

    Attributes:
        matrices: (..., k, k) matrices in these coordinates.
        start, end: retained degrees of freedom of the end nodes (0 to 5: u_x ... θ_z, local axes).
        motions: reduced motions, without the twist if both ends release it.
        indices_and_signs: indices of a motion's coordinates in the matrices, and their signs.
        lengths: (..., e) lengths of the elements, m.
        properties: section of the elements.
        segment_index: (e,) index of the segment to which each element belongs.
    """

    matrices: Matrices
    start: tuple[int, ...]
    end: tuple[int, ...]
    motions: Mapping[BeamMotion, ReducedMotion] = field(repr=False)
    indices_and_signs: Mapping[BeamMotion, tuple[Indices, Array]] = field(repr=False)
    lengths: Array
    properties: BeamProperties
    segment_index: Indices

    @property
    def mode_counts(self) -> dict[BeamMotion, int]:
        """Number of modes of each motion."""
        return {motion: item.frequencies.shape[-1] for motion, item in self.motions.items()}

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return int(self.matrices.stiffness.shape[-1])


def reduced_beam(
    lengths: Array,
    properties: BeamProperties,
    *,
    released: tuple[Collection[int], Collection[int]] = ((), ()),
    modes: int | None = None,
    max_frequency: float = 0.0,
) -> ReducedBeam:
    """Return a beam that is reduced to its ends and to fixed-end modes.

    If both ends release the twist, the beam carries no torsion, and its spin about its own axis is
    locked.

    Args:
        lengths: lengths (..., s) of segments with a constant section, m.
        properties: section properties of the segments.
        released: degrees of freedom (0 to 5, local axes) that start and end do not transmit.
        modes: number of modes of each bending plane; by default all modes below
            `max_frequency`, at least one.
        max_frequency: frequency (Hz) below which all fixed-end modes are included.

    Raises:
        InputError: the ends do not constrain the beam.
    """
    elements = MIN_ELEMENTS
    while True:
        fine_lengths, fine_properties, index = _refined(lengths, properties, elements)
        reduced = {}
        for motion in BeamMotion:
            ends = _retained_ends(motion, released)
            if motion is BeamMotion.TWIST and not ends:
                continue
            count = modes if motion.is_bending else None
            chain = chain_matrices(motion, fine_lengths, fine_properties)
            total = fine_lengths.sum(axis=-1)
            reduced[motion] = _reduced_motion(motion, chain, total, ends, count, max_frequency)
        mode_count = max(item.frequencies.shape[-1] for _, item in reduced.values())
        if mode_count * ELEMENTS_PER_MODE <= fine_lengths.shape[-1]:
            break
        elements = 2 * mode_count * ELEMENTS_PER_MODE
    start, end = (_end_coordinates(side, reduced) for side in (0, 1))
    order = [(0, index) for index in start] + [(1, index) for index in end]
    indices_and_signs: dict[BeamMotion, tuple[Indices, Array]] = {}
    size = len(order)
    for motion, (_, item) in reduced.items():
        sign_of = dict(motion.value)
        count = item.frequencies.shape[-1]
        positions = [order.index(entry) for entry in item.ends] + list(range(size, size + count))
        signs = [sign_of[index] for _, index in item.ends] + [1.0] * count
        indices_and_signs[motion] = (np.array(positions), np.array(signs))
        size += count
    return ReducedBeam(
        matrices=joined(
            {motion: item[0] for motion, item in reduced.items()}, indices_and_signs, size
        ),
        start=start,
        end=end,
        motions={motion: item for motion, (_, item) in reduced.items()},
        indices_and_signs=indices_and_signs,
        lengths=fine_lengths,
        properties=fine_properties,
        segment_index=index,
    )


def _end_coordinates(
    side: int, reduced: Mapping[BeamMotion, tuple[Matrices, ReducedMotion]]
) -> tuple[int, ...]:
    """Return the degrees of freedom of an end that are coordinates of a reduced motion."""
    coordinates = []
    for _, item in reduced.values():
        coordinates += [index for end, index in item.ends if end == side]
    return tuple(sorted(coordinates))


def _retained_ends(
    motion: BeamMotion, released: tuple[Collection[int], Collection[int]]
) -> tuple[tuple[int, int], ...]:
    """Return the degrees of freedom of the ends that a motion uses and that are not released.

    Raises:
        InputError: the ends do not constrain the beam.
    """
    ends = tuple(
        (side, index) for side in (0, 1) for index in motion.freedoms if index not in released[side]
    )
    is_constrained = any(index == motion.freedoms[0] for _, index in ends)
    min_count = 2 if motion.is_bending else 1
    if motion is not BeamMotion.TWIST and (not is_constrained or len(ends) < min_count):
        name = motion.name.lower().replace("_", " ")
        what = (
            f"the ends do not constrain the motion {name!r}: they release the degrees of freedom "
            f"{sorted(released[0])} and {sorted(released[1])}"
        )
        remedy = (
            f"retain at least {min_count} of the degrees of freedom {list(motion.freedoms)} of the "
            f"two ends, including {motion.freedoms[0]}"
        )
        raise InputError.of("released", what, remedy)
    return ends


def _refined(
    lengths: Array, properties: BeamProperties, elements: int
) -> tuple[Array, BeamProperties, Indices]:
    """Return lengths and sections of elements, and the segment index of each element.

    The number of elements of a segment is proportional to its length.
    """
    lengths = np.atleast_1d(np.asarray(lengths, dtype=float))
    fractions = lengths / lengths.sum(axis=-1, keepdims=True)
    largest = fractions.reshape(-1, lengths.shape[-1]).max(axis=0)
    counts = np.maximum(1, np.ceil(elements * largest - 1e-9)).astype(int)
    index = np.repeat(np.arange(lengths.shape[-1]), counts)
    names = BeamProperties.__dataclass_fields__
    values = {}
    for name in names:
        value = np.asarray(getattr(properties, name), dtype=float)
        values[name] = value[..., index] if value.ndim and value.shape[-1] > 1 else value
    return lengths[..., index] / counts[index], BeamProperties(**values), index


def _reduced_motion(
    motion: BeamMotion,
    chain: Matrices,
    length: Array,
    ends: tuple[tuple[int, int], ...],
    count: int | None,
    max_frequency: float,
) -> tuple[Matrices, ReducedMotion]:
    """Return the matrices of a reduced motion, and its ends, frequencies and basis.

    In exact arithmetic, the stiffness does not couple static shapes and modes, and rigid-body motions
    have no stiffness. Both properties are imposed, because rounding errors of a fine chain could hide
    a mechanism of the structure.
    """
    size = chain.stiffness.shape[-1]
    step = len(motion.freedoms)
    interface = [(size - step) * side + motion.freedoms.index(freedom) for side, freedom in ends]
    inner = np.setdiff1d(np.arange(size), interface)
    basis, omega = fixed_interface_basis(chain, np.array(interface, dtype=np.intp), inner)
    frequencies = omega / (2.0 * np.pi)
    automatic = int((frequencies < max_frequency).sum(axis=-1).max(initial=0))
    chosen = max(automatic, int(motion.is_bending)) if count is None else count
    chosen = min(chosen, int(np.isfinite(frequencies).sum(axis=-1).min(initial=size)))
    basis = basis[..., : len(ends) + chosen]
    matrices = chain.projected(basis)
    stiffness = np.zeros_like(matrices.stiffness)
    block = (..., slice(len(ends)), slice(len(ends)))
    projector = _strain_projector(motion, length, ends)
    stiffness[block] = projector @ matrices.stiffness[block] @ np.swapaxes(projector, -1, -2)
    modal = np.arange(len(ends), len(ends) + chosen)
    stiffness[..., modal, modal] = matrices.stiffness[..., modal, modal]
    reduced = ReducedMotion(ends=ends, frequencies=frequencies[..., :chosen], basis=basis)
    return replace(matrices, stiffness=stiffness), reduced


def _strain_projector(
    motion: BeamMotion, length: Array, ends: tuple[tuple[int, int], ...]
) -> Array:
    """Return P (..., c, c) such that Pᵀ u has no rigid-body motion, for displacements u of the ends."""
    L = np.asarray(length)[..., None]
    rigid = []
    for side, index in ends:
        is_slope = index != motion.freedoms[0]
        # Displacements due to a translation, and due to a rotation by 1 / L about the start.
        translation, rotation = np.ones_like(L), np.full_like(L, side)
        if is_slope:
            translation, rotation = np.zeros_like(L), 1.0 / L
        columns = [translation, rotation] if motion.is_bending else [translation]
        rigid.append(np.concatenate(columns, axis=-1))
    R = np.stack(rigid, axis=-2)
    # Slopes are multiplied by the length, so that all numbers are lengths.
    scale = np.concatenate(
        [L if index != motion.freedoms[0] else np.ones_like(L) for _, index in ends], axis=-1
    )
    scaled = scale[..., None] * R
    if R.shape[-1] >= len(ends):
        return np.zeros((*R.shape[:-2], len(ends), len(ends)))
    projector = np.eye(len(ends)) - scaled @ np.linalg.pinv(scaled)
    return np.asarray(scale[..., :, None] * projector / scale[..., None, :])


def fixed_interface_basis(
    matrices: Matrices, interface: Indices, inner: Indices
) -> tuple[Array, Array]:
    """Return the basis (..., n, n) of static shapes and modes, and the modes' ω (..., n_i), rad/s.

    The first columns are the static shapes for unit displacements of the interface, the other
    columns the fixed-interface modes in ascending order. The ω of a massless shape is infinite.

    Args:
        matrices: stiffness and mass (..., n, n).
        interface: indices of the interface.
        inner: all other indices.
    """
    K, M = matrices.stiffness, matrices.mass
    size, batch = K.shape[-1], K.shape[:-2]
    basis = np.zeros((*batch, size, size))
    basis[..., interface, np.arange(len(interface))] = 1.0
    if not len(inner):
        return basis, np.zeros((*batch, 0))
    K_ii = K[..., inner[:, None], inner]
    M_ii = M[..., inner[:, None], inner]
    L = np.linalg.cholesky(K_ii)
    L_inverse = np.linalg.inv(L)
    if len(interface):
        K_ic = K[..., inner[:, None], interface]
        shapes = -np.swapaxes(L_inverse, -1, -2) @ (L_inverse @ K_ic)
        basis[..., inner[:, None], np.arange(len(interface))] = shapes
    mu, vectors = np.linalg.eigh(L_inverse @ M_ii @ np.swapaxes(L_inverse, -1, -2))
    mu, vectors = mu[..., ::-1], vectors[..., ::-1]
    is_massive = mu > len(inner) * np.finfo(float).eps * mu[..., :1]
    omega = np.where(is_massive, 1.0 / np.sqrt(np.where(is_massive, mu, 1.0)), np.inf)
    modes = np.swapaxes(L_inverse, -1, -2) @ vectors
    basis[..., inner[:, None], np.arange(len(interface), size)] = modes
    return basis, omega
