"""Springs in series along a rod: contacts at its ends, and the drive between its parts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tauloop.elasticity.frame.beams import Array, BeamMotion, Matrices
from tauloop.elasticity.frame.reduction import ReducedBeam
from tauloop.elasticity.machine.telescopic_rods import stretch_field
from tauloop.mechanism.model import Rod


def in_series(stiffnesses: list[float | None]) -> float | None:
    """Return the stiffness of springs in series; None if all of them are rigid (None)."""
    compliant = [stiffness for stiffness in stiffnesses if stiffness is not None]
    return 1.0 / sum(1.0 / stiffness for stiffness in compliant) if compliant else None


def rigid_fractions(
    contacts: list[float | None], drive: float | None
) -> tuple[float, float] | None:
    """Return the fractions of the displacement of end B by which the lower and upper part move.

    End A is fixed and the parts are rigid. Return None if the length of the rod is fixed.

    Args:
        contacts: stiffness of the contacts at A and B; None for a rigid contact.
        drive: stiffness of the drive between the parts; None if it is rigid.
    """
    total = in_series([drive, *contacts])
    if total is None:
        return None
    start, end = contacts
    lower_fraction = 0.0 if start is None else total / start
    upper_fraction = 1.0 if end is None else 1.0 - total / end
    return lower_fraction, upper_fraction


def spring_compliances(
    contacts: list[float | None], drive: float | None
) -> tuple[float, float, float]:
    """Return the compliances of the springs at A, between the parts of a rod, and at B, m/N."""
    return _compliance(contacts[0]), _compliance(drive), _compliance(contacts[1])


def _compliance(stiffness: float | None) -> float:
    """Return the inverse of a stiffness; zero for a rigid spring (None)."""
    return 0.0 if stiffness is None else 1.0 / stiffness


def softened_rod(
    beam: ReducedBeam,
    compliances: tuple[float, float, float],
    upper_pieces: tuple[Array, Array] | None,
) -> ReducedBeam:
    """Return a rod with springs in series along its axis, at both ends and between its parts.

    The springs reduce the axial stiffness. They also change the axial displacements due to a
    stretch, and thus the mass matrix: with a soft drive the lower part moves with end A, and the
    upper part with end B.

    Args:
        beam: the rod.
        compliances: compliances of the springs at A, between the parts, and at B, m/N.
        upper_pieces: lengths (N, s) of pieces of constant section, and the fraction (s,) of their
            mass that moves with the upper part; None for a rod that is not telescopic.
    """
    if not any(compliances):
        return beam
    positions, signs = beam.indices_and_signs[BeamMotion.STRETCH]
    mass = np.broadcast_to(beam.properties.mass, beam.lengths.shape)
    element_starts, element_ends, drive_stretch = stretch_field(beam, compliances)
    upper_shift = drive_stretch[..., None]
    upper_fraction = np.zeros_like(element_ends)
    if upper_pieces is not None:
        upper_fraction = upper_fraction + _fraction_of_elements(beam.lengths, *upper_pieces)
    basis = beam.motions[BeamMotion.STRETCH].basis
    M = np.array(beam.matrices.mass)
    size = len(positions)
    stretch = np.zeros((*M.shape[:-2], size, size))
    for fraction, shift in ((1.0 - upper_fraction, 0.0), (upper_fraction, upper_shift)):
        shapes = []
        for displacement, rows in (
            (element_starts, basis[..., :-1, 2:]),
            (element_ends, basis[..., 1:, 2:]),
        ):
            field = (displacement + shift)[..., None]
            modes = np.broadcast_to(rows, (*field.shape[:-1], rows.shape[-1]))
            shapes.append(np.concatenate([1.0 - field, field, modes], axis=-1))
        weight = (fraction * mass * beam.lengths / 6.0)[..., None]
        for i, j, factor in ((0, 0, 2.0), (1, 1, 2.0), (0, 1, 1.0), (1, 0, 1.0)):
            stretch += factor * np.swapaxes(weight * shapes[i], -1, -2) @ shapes[j]
    M[..., positions[:, None], positions] = stretch * np.outer(signs, signs)
    axial = np.broadcast_to(beam.properties.axial, beam.lengths.shape)
    rod_compliance = (beam.lengths / axial).sum(axis=-1)
    stiffness_factor = rod_compliance / (rod_compliance + sum(compliances))
    K = np.array(beam.matrices.stiffness)
    K[..., positions[:2, None], positions[:2]] *= stiffness_factor[..., None, None]
    matrices = Matrices(stiffness=K, mass=M, geometric=beam.matrices.geometric)
    return replace(beam, matrices=matrices)


def _fraction_of_elements(lengths: Array, pieces: Array, fractions: Array) -> Array:
    """Return for each element (..., e) of a chain the fraction of the piece that contains it.

    Args:
        lengths: (..., e) lengths of the elements.
        pieces: (N, s) lengths of the pieces.
        fractions: (s,) fraction of each piece.
    """
    midpoints = np.cumsum(lengths, axis=-1) - 0.5 * lengths
    starts = np.cumsum(pieces, axis=-1) - pieces
    index = np.sum(midpoints[..., None] > starts[..., None, :], axis=-1) - 1
    return np.asarray(fractions[index])


def has_elastic_part(rod: Rod) -> bool:
    """Return whether a telescopic rod has an elastic part along its axis other than its drive."""
    return (
        rod.lower_beam is not None
        or any(item is not None for item in rod.contact)
        or (rod.tension is not None and rod.tension.stiffness is not None)
    )
