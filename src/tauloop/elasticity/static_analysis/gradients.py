"""Derivatives of a machine's compliance with respect to its elastic parameters, at fixed poses.

C = Jᵀ K⁻¹ J depends on elastic parameters only through the stiffness: dC = -Xᵀ dK X with X = K⁻¹ J.
The stiffness of an item is a function of constants, such as E A of a section or the stiffness of a
drive. CasADi differentiates the expressions of these constants.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import casadi as ca
import numpy as np

from tauloop.common.errors import InputError, Problems
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.elasticity.frame.assembled import AssembledStructure
from tauloop.elasticity.frame.beams import Array, BeamMotion, BeamProperties, element_matrices
from tauloop.elasticity.frame.structure import Element
from tauloop.elasticity.machine.beams import piece_sections
from tauloop.equations.values import Values
from tauloop.mechanism.elastic.beams import Beam, Compliance
from tauloop.mechanism.elastic.sections import SectionProperties
from tauloop.mechanism.expression import ZERO, Expression, add, leaves
from tauloop.mechanism.model import Mechanism

#: The expression of a constant of an item, and the derivative (..., k, k) of the item's stiffness
#: with respect to this constant.
Sensitivity = tuple[Expression, Array]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ElasticLaw:
    """The expressions of the stiffness of an item.

    Attributes:
        item: name of an element, a joint or a combination of motions.
        beams: beams along an element; the second is the upper part of a telescopic rod.
        springs: springs in series along an element, or the stiffness of a combination.
        motions: indices of single motions of a joint, and their stiffness.
        bearings: compliance of a joint's bearings, in the axes of its parent's frame.
        bearing_twists: (N, 6, e) twists in which the bearings yield, in these axes.
        are_directions_fixed: whether the directions in which the bearings yield are independent of
            their compliance.
    """

    item: str
    beams: tuple[Beam, ...] = ()
    springs: tuple[Expression, ...] = ()
    motions: tuple[tuple[int, Expression], ...] = ()
    bearings: Compliance | None = None
    bearing_twists: Array | None = None
    are_directions_fixed: bool = True


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ElasticGradient(ReprMixin):
    """Derivatives of the compliance with respect to parameters, at fixed independent coordinates.

    Attributes:
        parameters: names of the p independent parameters.
        compliance: (N, 6, 6, p) derivatives of the compliance, each per SI unit of its parameter.
        error: relative difference between the compliance and the value of the differentiated
            expressions; with loads, the estimated relative error of the finite differences.
    """

    parameters: tuple[str, ...]
    compliance: np.ndarray
    error: float = 0.0


def elastic_parameters(mechanism: Mechanism, laws: Collection[ElasticLaw]) -> tuple[str, ...]:
    """Return the names of parameters that change only stiffnesses, not the geometry."""
    names = frozenset().union(*(_law_leaves(law) for law in laws)) - geometric_parameters(mechanism)
    return tuple(name for name in mechanism.parameters.names if name in names)


def compliance_parameters(mechanism: Mechanism, laws: Collection[ElasticLaw]) -> tuple[str, ...]:
    """Return the names of the parameters of geometry and elasticity."""
    names = frozenset().union(*(_law_leaves(law) for law in laws)) | geometric_parameters(mechanism)
    return tuple(name for name in mechanism.parameters.names if name in names)


def require_parameters(mechanism: Mechanism, names: Sequence[str]) -> None:
    """Check that parameters exist.

    Raises:
        InputError: parameters are unknown; all are listed.
    """
    problems = Problems()
    for name in names:
        if name not in mechanism.parameters.names:
            what = "is not an independent parameter"
            problems.add(name, what, mechanism.parameters.near(name))
    InputError.raise_if_any(problems)


def geometric_parameters(mechanism: Mechanism) -> frozenset[str]:
    """Return the names of the parameters of positions, directions and lengths."""
    parts: list[object] = [mechanism.platform.tool, mechanism.couplings]
    parts += [(joint.parent, joint.child) for joint in mechanism.joints]
    parts += [item.nodes for item in mechanism.structures]
    beams = []
    for rod in mechanism.rods:
        parts.append((rod.start, rod.end, rod.length, rod.first_axis, rod.drum))
        beams += [beam for beam in (rod.lower_beam, rod.upper_beam) if beam is not None]
    for body in mechanism.bodies:
        parts += [(item.start, item.end) for item in body.beams]
        beams += [item.beam for item in body.beams]
    for beam in beams:
        parts += [beam.length, *(segment.length for segment in beam.segments)]
    return frozenset().union(*map(leaves, parts))


def stiffness_gradient(
    mechanism: Mechanism,
    assembled: AssembledStructure,
    laws: Collection[ElasticLaw],
    names: Sequence[str],
    left: Mapping[str, Array],
    right: Mapping[str, Array],
) -> Array:
    """Return Σ aᵀ (dK/dp) b (N, c, d, p) over all items, with deformations a and b.

    Args:
        mechanism: the machine.
        assembled: its structure in minimal coordinates.
        laws: expressions of all elastic items.
        names: parameters p that change stiffnesses.
        left: deformations a (N, k, c) of each item, by name.
        right: deformations b (N, k, d) of each item, by name.
    """
    elements = {element.name: element for element in assembled.structure.elements}
    joints = {joint.name: joint for joint in assembled.structure.joints}
    length = assembled.structure.length
    expressions: list[Expression] = []
    weights: list[Array] = []
    for law in laws:
        if not _law_leaves(law).intersection(names):
            continue
        if law.item in elements:
            sensitivities = _of_element(mechanism, elements[law.item], law)
        elif law.item in joints:
            stiffness = joints[law.item].stiffness
            assert stiffness is not None
            sensitivities = _of_joint(law, stiffness, length, names)
        else:
            sensitivities = iter([(law.springs[0], np.ones((1, 1)))])
        for expression, derivative in sensitivities:
            expressions.append(expression)
            transposed = np.swapaxes(left[law.item], -1, -2)
            weights.append(transposed @ (derivative @ right[law.item]))
    jacobian = _expression_jacobian(mechanism, expressions, names)
    columns = [next(iter(side.values())).shape[-1] if side else 0 for side in (left, right)]
    total = np.zeros((assembled.samples, *columns, len(names)))
    for weight, row in zip(weights, jacobian, strict=True):
        total += weight[..., None] * row
    return total


def is_diagonal(compliance: Compliance) -> bool:
    """Return whether a compliance or stiffness has no entries outside its diagonal."""
    return all(
        expression == ZERO
        for i, row in enumerate(compliance.matrix)
        for j, expression in enumerate(row)
        if i != j
    )


def _law_leaves(law: ElasticLaw) -> frozenset[str]:
    """Return the names of the parameters that the stiffness of an item depends on."""
    sections = [
        tuple(_constants(section.properties).values())
        for beam in law.beams
        for segment in beam.segments
        for section in (segment.start, segment.end)
    ]
    matrix = () if law.bearings is None else law.bearings.matrix
    springs = tuple(expression for _, expression in law.motions) + law.springs
    return leaves((tuple(sections), matrix, springs))


def item_motions(assembled: AssembledStructure) -> dict[str, Array]:
    """Return the matrices (N, k, n) from minimal to local coordinates for all items, by name."""
    structure = assembled.structure
    rows = {
        element.name: motion
        for element, motion in zip(structure.elements, assembled.element_motion, strict=True)
    }
    for joint, motion in zip(structure.joints, assembled.joint_motion, strict=True):
        rows[joint.name] = motion
    elastic = [item for item in structure.combinations if item.stiffness]
    for combination, motion in zip(elastic, assembled.combination_motion, strict=True):
        rows[combination.name] = motion
    return rows


def _expression_jacobian(
    mechanism: Mechanism, expressions: Sequence[Expression], names: Sequence[str]
) -> Array:
    """Return the derivatives (c, p) of expressions at the nominal values of the parameters."""
    theta = ca.SX.sym("theta", len(names))
    values: dict[str, object] = dict(mechanism.parameters.values)
    values |= {name: theta[i] for i, name in enumerate(names)}
    symbolic = Values(values)
    column = ca.vertcat(ca.SX(0, 1), *(ca.SX(symbolic.scalar(item)) for item in expressions))
    function = ca.Function("derivatives", [theta], [ca.densify(ca.jacobian(column, theta))])
    nominal = mechanism.parameters.vector(names)
    return np.asarray(function(nominal)).reshape(len(expressions), len(names))


def _of_joint(
    law: ElasticLaw, stiffness: Array, length: float, names: Sequence[str]
) -> Iterator[Sensitivity]:
    """Yield the constants of a joint and the derivatives of its stiffness.

    Args:
        law: expressions of the joint's stiffness.
        stiffness: (N, f, f) or (f, f) stiffness of the joint's motions.
        length: length that makes rotations comparable with translations, see `elastic_directions`.
        names: parameters with respect to which the stiffness is differentiated.

    Raises:
        InputError: the directions in which bearings yield change with their compliance.
    """
    size = stiffness.shape[-1]
    for index, expression in law.motions:
        derivative = np.zeros((size, size))
        derivative[index, index] = 1.0
        yield expression, derivative
    twists = law.bearing_twists
    if law.bearings is None or twists is None or not leaves(law.bearings.matrix) & set(names):
        return
    if not law.are_directions_fixed:
        what = (
            "bearings are rigid in some directions, and these directions change with the compliance"
        )
        raise InputError.of(
            f"joints.{law.item}", what, "give the bearing a positive definite 6x6 compliance"
        )
    bearing = slice(size - twists.shape[-1], size)
    K = stiffness[..., bearing, bearing]
    directions = twists
    if not law.bearings.is_stiffness:
        # Compliances multiply forces: K⁻¹ = Fᵀ C F with the forces F that belong to the twists.
        directions = (twists * np.repeat([1.0, length**2], 3)[:, None]) @ K
    for i, row in enumerate(law.bearings.matrix):
        for j, expression in enumerate(row):
            if not leaves(expression) & set(names):
                continue
            product = directions[:, i, :, None] * directions[:, j, None, :]
            derivative = np.zeros((*product.shape[:-2], size, size))
            derivative[..., bearing, bearing] = product if law.bearings.is_stiffness else -product
            yield expression, derivative


def _of_element(mechanism: Mechanism, element: Element, law: ElasticLaw) -> Iterator[Sensitivity]:
    """Yield the constants of a beam or of axial springs, and the derivatives of its stiffness."""
    difference = np.array([[1.0, -1.0], [-1.0, 1.0]])
    size = element.matrices.stiffness.shape[-1]
    compliances = [1.0 / mechanism.value(spring) for spring in law.springs]
    total = element.matrices.stiffness[..., 0, 0]
    if element.beam is not None:
        total = _stretch_stiffness(element)
        softening = 1.0 - total * sum(compliances)
        yield from _of_sections(element, law.beams, softening)
    for spring, compliance in zip(law.springs, compliances, strict=True):
        derivative = np.zeros((*total.shape, size, size))
        ends = np.array([0, element.external // 2])
        if element.beam is not None:
            ends = element.beam.indices_and_signs[BeamMotion.STRETCH][0][:2]
        scale = (total * compliance) ** 2
        derivative[..., ends[:, None], ends] = scale[..., None, None] * difference
        yield spring, derivative


def _stretch_stiffness(element: Element) -> Array:
    """Return the axial stiffness (...) of a beam with springs in series."""
    assert element.beam is not None
    first = element.beam.indices_and_signs[BeamMotion.STRETCH][0][0]
    return element.matrices.stiffness[..., first, first]


def _of_sections(
    element: Element, beams: Sequence[Beam], softening: Array
) -> Iterator[Sensitivity]:
    """Yield the section constants of a beam and the derivatives of its stiffness.

    There is one constant per piece and motion. The derivative of a reduced stiffness Ψᵀ K Ψ is
    Ψᵀ dK Ψ, because the static shapes Ψ minimize the energy.

    Args:
        element: the beam.
        beams: beams of the file; two for a telescopic rod.
        softening: (...) axial stiffness with springs in series, relative to the one without
            springs.
    """
    beam = element.beam
    assert beam is not None
    pieces = _piece_constants(beams)
    index = beam.segment_index
    size = element.matrices.stiffness.shape[-1]
    unit = BeamProperties(axial=1.0, torsional=1.0, bending_y=1.0, bending_z=1.0)
    for motion, item in beam.motions.items():
        count = len(item.ends)
        positions, signs = (array[:count] for array in beam.indices_and_signs[motion])
        single = element_matrices(motion, beam.lengths, unit).stiffness
        block, step = single.shape[-1], len(motion.freedoms)
        nodes = step * np.arange(len(index))[:, None] + np.arange(block)
        shapes = item.basis[..., nodes, :count]
        energies = np.swapaxes(shapes, -1, -2) @ single @ shapes
        if motion is BeamMotion.STRETCH:
            energies = softening[..., None, None, None] ** 2 * energies
        for piece, constants in enumerate(pieces):
            energy = energies[..., index == piece, :, :].sum(axis=-3)
            derivative = np.zeros((*energy.shape[:-2], size, size))
            derivative[..., positions[:, None], positions] = np.outer(signs, signs) * energy
            yield constants[motion], derivative


def _piece_constants(beams: Sequence[Beam]) -> list[dict[BeamMotion, Expression]]:
    """Return for each piece of constant section its stiffness against each motion."""
    chains = [list(map(_constants, piece_sections(beam))) for beam in beams]
    if len(chains) == 1:
        return chains[0]
    (lower,), (upper,) = chains
    both = {motion: add(lower[motion], upper[motion]) for motion in BeamMotion}
    return [lower, both, upper]


def _constants(section: SectionProperties) -> dict[BeamMotion, Expression]:
    """Return the stiffness of a section against each motion."""
    return {
        BeamMotion.STRETCH: section.axial_stiffness,
        BeamMotion.TWIST: section.torsional_stiffness,
        BeamMotion.BEND_XY: section.bending_stiffness[1],
        BeamMotion.BEND_XZ: section.bending_stiffness[0],
    }
