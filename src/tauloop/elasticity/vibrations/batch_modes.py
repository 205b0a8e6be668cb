"""Natural frequencies of many machines that differ in their parameters, from one function.

The function covers rigid bodies, springs, and straight rods of one section between ball ends. The
coordinates are those of the tree, and the amplitudes of the rods' bending modes sin(k π s), where s
is the fraction of the length. A rod contributes to the matrices

    motion of its two ends       M = m [1/3, 1/6; 1/6, 1/3],
    bending mode k               M_kk = m / 2, K_kk = (k π)⁴ E I / (2 L³),
    coupling of mode and ends    M = m / (k π) and -(-1)^k m / (k π).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import casadi as ca
import numpy as np

from tauloop.common.records import dataclass
from tauloop.elasticity.frame.beams import Array
from tauloop.elasticity.machine.constants import machine_constants
from tauloop.elasticity.machine.symbolic_structure import SymbolicStructure
from tauloop.elasticity.static_analysis.batch_compliance import (
    ParametricFunction,
    SymbolicStiffness,
    symbolic_stiffness,
)
from tauloop.elasticity.vibrations.machine_modes import (
    VibrationOptions,
    link_mode_counts,
    machine_modes,
)
from tauloop.equations.operators import fast_operators
from tauloop.mechanism.model import MOMENT_ENTRIES, Inertia, Rod
from tauloop.model import Model

#: Largest relative difference from the lowest frequency of `machine_modes` at the reference pose.
#: `machine_modes` uses finite elements.
MODE_TOLERANCE = 1e-4


def parametric_frequencies(
    model: Model, names: Sequence[str], q: Array, theta: Array, count: int
) -> Array | None:
    """Return the lowest natural frequencies (N, count) of N machines, Hz, with motors held.

    The machines have the coordinates and the structure of one model. The number of modes of each
    link is that of `vibration` for a single frequency at the reference pose. The result is NaN
    where coordinates are not finite, or where a part can move without any deformation. Frequencies
    are bitwise identical for any batch size.

    Args:
        model: the machine at its nominal parameters.
        names: t independent parameters that differ.
        q: coordinates (N, n_q), at which the loops of each machine close.
        theta: parameters (N, t), SI.
        count: number of frequencies; at most the number of modes.

    Returns:
        The frequencies; None where the function does not cover the machine.

    Raises:
        InputError: the machine has no elastic data.
    """
    names = tuple(names)
    function = machine_constants(model).stored(
        ("frequencies", names), lambda: _checked_function(model, names)
    )
    return None if function is None else function(q, theta, count)


class _FrequencyFunction:
    """Natural frequencies from a function (q, theta) -> lower triangles of K and M."""

    def __init__(self, function: ParametricFunction, size: int) -> None:
        """Store the function and the number of rows of K and M."""
        self._function, self._size = function, size

    def __call__(self, q: Array, theta: Array, count: int) -> Array:
        """Return frequencies (N, count), Hz, by M x = μ K x with μ = 1/ω²."""
        frequencies = np.full((len(q), count), np.nan)
        is_known = np.isfinite(q).all(axis=1) & np.isfinite(theta).all(axis=1)
        K, M = (self._symmetric(flat) for flat in self._function(q[is_known], theta[is_known]))
        with np.errstate(divide="ignore", invalid="ignore"):
            scale = 1.0 / np.sqrt(np.diagonal(K, axis1=1, axis2=2))
            K = K * scale[:, :, None] * scale[:, None, :]
        is_positive_definite = np.array(
            np.isfinite(K).all(axis=(1, 2)) & np.isfinite(M).all(axis=(1, 2))
        )
        is_positive_definite[is_positive_definite] = (
            np.linalg.eigvalsh(K[is_positive_definite])[:, 0] > self._size * np.finfo(float).eps
        )
        mu = np.full((len(K), count), np.nan)
        L_inverse = np.linalg.inv(np.linalg.cholesky(K[is_positive_definite]))
        scaled = (M * scale[:, :, None] * scale[:, None, :])[is_positive_definite]
        values = np.linalg.eigvalsh(L_inverse @ scaled @ np.swapaxes(L_inverse, 1, 2))
        mu[is_positive_definite] = values[:, ::-1][:, :count]
        frequencies[is_known] = 1.0 / (2.0 * np.pi * np.sqrt(mu))
        return frequencies

    def _symmetric(self, flat: Array) -> Array:
        """Return symmetric matrices (N, n, n) from their lower triangles."""
        matrices = np.empty((len(flat), self._size, self._size))
        rows, columns = np.tril_indices(self._size)
        matrices[:, rows, columns] = flat
        matrices[:, columns, rows] = flat
        return matrices


def _checked_function(model: Model, names: Sequence[str]) -> _FrequencyFunction | None:
    """Return the function; None if it does not cover the machine or fails the comparison."""
    q = model.assembly.q[None]
    expected = machine_modes(model, q, VibrationOptions(count=1), None)
    modes = {max(pair) for pair in link_mode_counts(expected.built).values()}
    if len(modes) > 1 or not _is_covered(model):
        return None
    function = _function(model, q, names, max(modes, default=0))
    if function is None:
        return None
    theta = np.array([model.mechanism.parameters.vector(names)], dtype=float).reshape(1, -1)
    frequency = float(function(q, theta, 1)[0, 0])
    reference = float(expected.modes.frequencies[0, 0])
    return function if abs(frequency - reference) <= MODE_TOLERANCE * reference else None


def _is_covered(model: Model) -> bool:
    """Return whether all masses are those of rigid bodies and of uniform rods with ball ends."""
    mechanism = model.mechanism
    has_beams = any(body.beams for body in mechanism.bodies)
    return not (
        mechanism.structures or has_beams or any(not _is_uniform(rod) for rod in mechanism.rods)
    )


def _is_uniform(rod: Rod) -> bool:
    """Return whether a rod is a beam of one section without springs and fittings."""
    beam = rod.lower_beam
    if beam is None or rod.telescope is not None or rod.tension is not None:
        return False
    is_simple = len(beam.segments) == 1 and not beam.segments[0].is_tapered
    return is_simple and beam.fittings is None and not any(rod.contact)


@fast_operators()
def _function(
    model: Model, q: Array, names: Sequence[str], modes: int
) -> _FrequencyFunction | None:
    """Return the function for a number of modes of each rod in both planes."""
    static = symbolic_stiffness(model, q, names, has_shear=False)
    if static is None:
        return None
    symbolic = static.symbolic
    rods = list(_rods(model, static))
    first = static.motion.shape[1]
    size = first + 2 * modes * len(rods)
    K, M = ca.SX(size, size), ca.SX(size, size)
    K[:first, :first] = static.stiffness
    M[:first, :first] = _rigid_mass(symbolic, static.motion)
    column = first
    for rod in rods:
        M[:first, :first] += rod.rigid_mass
        for k in range(1, modes + 1):
            for direction in rod.transverse:
                coupling = direction.T @ (rod.start - (-1) ** k * rod.end)
                M[column, :first] = rod.mass / (k * math.pi) * coupling
                M[:first, column] = M[column, :first].T
                M[column, column] = 0.5 * rod.mass
                K[column, column] = (k * math.pi) ** 4 * rod.bending / (2.0 * rod.length**3)
                column += 1
    outputs = [_lower_triangle(matrix) for matrix in (K, M)]
    function = ca.Function("modes", [symbolic.q, symbolic.theta], outputs, {"cse": True})
    return _FrequencyFunction(ParametricFunction(model, function, ("stiffness", "mass"), 1), size)


def _lower_triangle(matrix: ca.SX) -> ca.SX:
    """Return the entries of the lower triangle of a matrix, row by row, as a dense column."""
    pairs = [(i, j) for i in range(matrix.shape[0]) for j in range(i + 1)]
    return ca.densify(ca.vertcat(*(matrix[i, j] for i, j in pairs)))


def _rigid_mass(symbolic: SymbolicStructure, motion: ca.SX) -> ca.SX:
    """Return the mass matrix (n, n) of the rigid bodies in the coordinates of the tree."""
    M = ca.SX(motion.shape[1], motion.shape[1])
    for body in symbolic.mechanism.bodies:
        if body.inertia is not None and body.name in symbolic.body_columns:
            column = symbolic.body_columns[body.name]
            twist = motion[column : column + 6, :]
            R = symbolic.motion.bodies[body.name].R
            M += twist.T @ _spatial_inertia(symbolic, body.inertia, R) @ twist
    return M


def _spatial_inertia(symbolic: SymbolicStructure, inertia: Inertia, R: ca.SX) -> ca.SX:
    """Return the inertia (6, 6) of a body about its origin in the axes of the base."""
    m, *moments = (ca.SX(symbolic.values.scalar(item)) for item in inertia.parameters)
    J = ca.SX(3, 3)
    for (i, j), moment in zip(MOMENT_ENTRIES, moments[3:], strict=True):
        J[i, j] = J[j, i] = moment
    cross = ca.skew(R @ ca.vertcat(*moments[:3]))
    top = ca.horzcat(m * ca.SX.eye(3), -cross)
    return ca.vertcat(top, ca.horzcat(cross, R @ J @ R.T))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _SymbolicRod:
    """A uniform rod between ball ends.

    Attributes:
        start, end: Jacobians (3, n) of the positions of the ends, in the coordinates of the tree.
        transverse: two unit vectors (3,) perpendicular to the rod.
        mass, length, bending: m, L and E I.
    """

    start: ca.SX
    end: ca.SX
    transverse: tuple[ca.SX, ca.SX]
    mass: ca.SX
    length: ca.SX
    bending: ca.SX

    @property
    def rigid_mass(self) -> ca.SX:
        """Mass matrix (n, n) of the rod without bending."""
        a, b = self.start, self.end
        return self.mass / 6.0 * (2.0 * (a.T @ a) + a.T @ b + b.T @ a + 2.0 * (b.T @ b))


def _rods(model: Model, static: SymbolicStiffness) -> Iterator[_SymbolicRod]:
    """Yield all rods."""
    symbolic = static.symbolic
    attachments = {item.name: item.attachments for item in symbolic.assembled.structure.elements}
    scalar = symbolic.values.scalar
    for rod in model.mechanism.rods:
        positions = symbolic.position(rod.start), symbolic.position(rod.end)
        ends = [
            (symbolic.point_jacobian(attachment.body, position) @ static.motion)[:3, :]
            for attachment, position in zip(attachments[rod.name], positions, strict=True)
        ]
        beam = rod.lower_beam
        assert beam is not None
        section = beam.segments[0].start.properties
        length = ca.SX(scalar(beam.length))
        mass = ca.SX(scalar(section.mass_per_length)) * length
        if rod.lower is not None:
            mass = ca.SX(scalar(rod.lower.mass))
        bending = section.bending_stiffness[0]
        yield _SymbolicRod(
            start=ends[0],
            end=ends[1],
            transverse=_transverse(model, symbolic, positions[1] - positions[0]),
            mass=mass,
            length=length,
            bending=ca.SX(scalar(bending)),
        )


def _transverse(model: Model, symbolic: SymbolicStructure, rod_axis: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return two unit vectors (3,) perpendicular to a rod.

    The first is perpendicular to the axis of the base with the largest angle to the rod at the
    reference pose.
    """
    theta = ca.DM(model.mechanism.parameters.vector(symbolic.names))
    at_reference = ca.Function("rod_axis", [symbolic.q, symbolic.theta], [rod_axis])
    direction = np.array(at_reference(model.assembly.q, theta)).ravel()
    axis = ca.SX(np.eye(3)[int(np.argmin(np.abs(direction)))])
    first = ca.cross(axis, rod_axis)
    first = first / ca.norm_2(first)
    second = ca.cross(rod_axis, first)
    return first, second / ca.norm_2(second)
