"""Identifiability of the unknowns from the measurements, before anything is fitted.

Unknowns are in units of their tolerances, residuals in standard deviations. With the scaled
Jacobian J diag(tolerance) = U S V^T, a direction v of size one tolerance changes the residuals by
s, so its standard deviation is 1/s tolerances. Directions that do not change the residuals at *any*
geometry are gauge freedoms. Other directions have no effect at the nominal geometry alone, or an
effect below the noise. They are practically unobservable; more poses, less noise or a prior
resolve them.

Source: Golub and Van Loan 2013, Matrix Computations: rank by singular values.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.linalg

from tauloop.calibration.judging.gauges import gauges, leading_rows
from tauloop.calibration.judging.observability import NULL_TOLERANCE
from tauloop.calibration.problem.problem import CalibrationProblem, Evaluation, Linearized
from tauloop.common.errors import PoseError
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.mechanism.suggestions import listing

#: Terms of a direction below this fraction of its largest term are not listed.
MIN_LISTED_FRACTION = 0.02
#: Maximum number of poses listed in an error.
MAX_LISTED_POSES = 5
#: An unknown whose column is below this fraction of the largest column has no effect.
NO_EFFECT_TOLERANCE = 1e-10
#: Beginning of the reason why an unknown is not estimated if it belongs to a gauge freedom.
INDISTINGUISHABLE = "cannot be distinguished from others"
#: A null direction does not contain an offset of a thermometer if its component is below this
#: value.
OFFSET_TOLERANCE = 1e-6
#: Standard deviations (in tolerances) of the random change of geometry, in the order in which they
#: are tried. Rank deficiencies of the changed geometry are gauge freedoms; those of the nominal
#: geometry may be accidental.
GEOMETRY_CHANGES = (1.0, 0.3, 0.1, 0.03)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterDirection:
    """A combination of unknowns.

    Attributes:
        terms: pairs (unknown, change in SI), largest first; the first changes by one tolerance.
        deviation: standard deviation of the combination, in tolerances; None if the data do not
            depend on it.
        name: motion that a gauge freedom corresponds to, such as "translation of the base frame
            along x"; empty for an unknown motion (`tauloop.calibration.judging.gauges`).
        explained: fraction of this motion that the freedom contains; 1 for the whole motion. If the
            name is empty, fraction of the freedom's motion that known motions explain. None if
            nothing moves or the direction is not a gauge freedom.
    """

    terms: tuple[tuple[str, float], ...]
    deviation: float | None
    name: str = ""
    explained: float | None = None

    def __str__(self) -> str:
        return ", ".join(f"{value:+.3g} {name}" for name, value in self.terms)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """An unknown that is not estimated, with the reason; it keeps its start value."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Identifiability(ReprMixin):
    """Identifiability of the unknowns of a calibration.

    Attributes:
        unknowns: names of the unknowns (n,).
        equations: number of residuals.
        singular_values: singular values of the scaled Jacobian at the given geometry, in standard
            deviations per tolerance.
        rank: number of nonzero singular values at the given geometry.
        generic_rank: rank at a geometry some tolerances away; n minus this rank is the number of
            gauge freedoms.
        gauge: combinations that do not affect the measurements at any geometry.
        silent: further combinations that do not affect the measurements at the given geometry.
        weak: combinations with a standard deviation above the tolerance, at the changed geometry.
        subset: identifiable unknowns.
        left_out: the other unknowns, with the reason.
    """

    unknowns: tuple[str, ...]
    equations: int
    singular_values: tuple[float, ...]
    rank: int
    generic_rank: int
    gauge: tuple[ParameterDirection, ...]
    silent: tuple[ParameterDirection, ...]
    weak: tuple[ParameterDirection, ...]
    subset: tuple[str, ...]
    left_out: tuple[LeftOut, ...]


def identifiability(
    problem: CalibrationProblem,
    rng: np.random.Generator,
    *,
    leave_out_weak: bool = False,
    near: Linearized | None = None,
) -> Identifiability:
    """Return rank, null directions and an identifiable subset of the free unknowns.

    Args:
        problem: the calibration. Priors do not count as data, but unknowns with a prior are never
            left out.
        rng: random generator of the changed geometry.
        leave_out_weak: also leave out unknowns, the worst first, until all standard deviations are
            below the tolerances.
        near: the problem linearized at the given geometry; by default at the start values.
    """
    tolerances = problem.tolerances
    if near is None:
        near = problem.linearized(problem.evaluate(np.zeros(len(problem.free))))
    J = near.jacobian * tolerances
    singular_values, directions = _directions(J)
    rank = _rank(singular_values)
    changed = _at_changed_geometry(problem, near, rng)
    J_changed = changed.jacobian * tolerances
    changed_values, V_changed = _directions(J_changed)
    generic = max(_rank(changed_values), rank)
    null = V_changed[:, generic:]
    offsets, other_directions = _thermometer_freedoms(problem, null)
    gauge = tuple(
        replace(
            _direction(problem, other_directions @ freedom.direction, None),
            name=freedom.name,
            explained=freedom.explained,
        )
        for freedom in gauges(problem, changed, other_directions)
    )
    gauge += tuple(_offset_gauge(problem, column, index) for index, column in offsets.items())
    silent: tuple[ParameterDirection, ...] = ()
    if rank < generic:
        silent, _ = _sparse_directions(problem, directions[:, rank:])
    weak = tuple(
        _direction(problem, V_changed[:, i], float(1.0 / changed_values[i]))
        for i in range(generic - 1, -1, -1)
        if changed_values[i] < 1.0
    )
    has_prior = [unknown.has_prior for unknown in problem.estimated]
    reasons = _undetermined(problem, J_changed, other_directions, gauge)
    for index, direction in zip(offsets, gauge[len(gauge) - len(offsets) :], strict=True):
        if not has_prior[index]:
            reasons[index] = f"{INDISTINGUISHABLE}: ({direction}) has no effect: {direction.name}"
    if leave_out_weak:
        _leave_out_weak(problem, J_changed, has_prior, reasons)
    names = problem.names
    return Identifiability(
        unknowns=names,
        equations=len(J),
        singular_values=tuple(float(value) for value in singular_values),
        rank=rank,
        generic_rank=generic,
        gauge=gauge,
        silent=silent,
        weak=weak,
        subset=tuple(name for i, name in enumerate(names) if i not in reasons),
        left_out=tuple(
            LeftOut(name=names[i], reason=reason) for i, reason in sorted(reasons.items())
        ),
    )


def _thermometer_freedoms(
    problem: CalibrationProblem, null: np.ndarray
) -> tuple[dict[int, np.ndarray], np.ndarray]:
    """Split a null space (n, k) into gauges of thermometers and other directions.

    Args:
        problem: the calibration.
        null: orthonormal null directions, in tolerances.

    Returns:
        Directions (n,) by the index of a thermometer's offset, for offsets that other unknowns can
        replace; each direction contains no other offset. Also the directions without any offset.
    """
    is_offset = np.array([unknown.unit == "K" for unknown in problem.estimated], dtype=bool)
    if not null.shape[1] or not is_offset.any():
        return {}, null
    _, singular_values, rows = np.linalg.svd(null[is_offset])
    count = int((singular_values > OFFSET_TOLERANCE).sum())
    direction_of_offset = null @ rows[:count].T
    other_directions = null @ rows[count:].T
    if not count:
        return {}, other_directions
    if other_directions.shape[1]:
        # The gauges must not contain the unknowns that resolve the other directions.
        resolving = leading_rows(other_directions)
        direction_of_offset = direction_of_offset - other_directions @ np.linalg.solve(
            other_directions[resolving], direction_of_offset[resolving]
        )
    pivots = np.flatnonzero(is_offset)[leading_rows(direction_of_offset[is_offset])]
    basis = direction_of_offset @ np.linalg.inv(direction_of_offset[pivots])
    return {int(index): basis[:, k] for k, index in enumerate(pivots)}, other_directions


def _offset_gauge(
    problem: CalibrationProblem, scaled: np.ndarray, offset: int
) -> ParameterDirection:
    """Return the gauge of a thermometer's offset, with the unknowns that have the same effect."""
    direction = _direction(problem, scaled, None, min_fraction=OFFSET_TOLERANCE)
    name = problem.names[offset]
    equivalent_unknowns = [unknown for unknown, _ in direction.terms if unknown != name]
    text = (
        f"{name} cannot be distinguished from {listing(equivalent_unknowns)}"
        if equivalent_unknowns
        else f"{name} has no effect"
    )
    return replace(direction, name=text)


def _undetermined(
    problem: CalibrationProblem,
    J: np.ndarray,
    null: np.ndarray,
    gauge: tuple[ParameterDirection, ...],
) -> dict[int, str]:
    """Return the reasons for leaving out unknowns that resolve the null space, by their index.

    Args:
        problem: the calibration.
        J: scaled Jacobian (R, n).
        null: null space of the Jacobian (n, k).
        gauge: gauge freedoms with their names.
    """
    reasons: dict[int, str] = {}
    norms = np.linalg.norm(J, axis=0)
    for direction, pivot in zip(*_sparse_directions(problem, null), strict=True):
        if problem.estimated[pivot].has_prior:
            continue
        if norms[pivot] <= NO_EFFECT_TOLERANCE * norms.max():
            reasons[pivot] = "has no effect on any of these measurements"
            continue
        name = problem.names[pivot]
        motions = [
            freedom.name for freedom in gauge if freedom.name and name in dict(freedom.terms)
        ]
        cause = f": {'; '.join(motions)}" if motions else ""
        reasons[pivot] = (
            f"{INDISTINGUISHABLE}: ({direction}) does not change any measurement{cause}"
        )
    return reasons


def _directions(J: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the singular values (n,) and right singular vectors (n, n) of a Jacobian.

    With fewer equations than unknowns, the missing singular values are zeros.
    """
    n = J.shape[1]
    triangle = scipy.linalg.qr(J, mode="r")[0][:n] if len(J) > n else J
    _, singular_values, Vt = np.linalg.svd(triangle, full_matrices=True)
    padding = np.zeros(n - len(singular_values))
    return np.concatenate([singular_values, padding]), Vt.T


def _rank(singular_values: np.ndarray) -> int:
    """Return the number of singular values that are not zero up to rounding."""
    largest = singular_values.max(initial=0.0)
    return int((singular_values > NULL_TOLERANCE * largest).sum())


def _at_changed_geometry(
    problem: CalibrationProblem, near: Linearized, rng: np.random.Generator
) -> Linearized:
    """Linearize the problem at a random geometry, some tolerances away, that reaches all poses."""
    correction = near.evaluation.correction
    draw = rng.standard_normal(len(correction)) * problem.tolerances
    unreached = ""
    for factor in GEOMETRY_CHANGES:
        evaluation = problem.evaluate(correction + factor * draw, near)
        if evaluation.is_reached:
            return problem.linearized(evaluation)
        unreached = _unreached_poses(evaluation)
    what = (
        f"{unreached} cannot be reached when unknowns change by {GEOMETRY_CHANGES[-1]:g} of their "
        "tolerances"
    )
    remedy = (
        "remove these poses, which are at the edge of the workspace or in a singularity (`tauloop workspace`), "
        "or give smaller tolerances"
    )
    if problem.assembly.passive and problem.equilibrium is None:
        remedy += (
            "; if the machine hangs freely in its passive degrees of freedom, use `--equilibrium`"
        )
    raise PoseError.of("poses", what, remedy)


def _unreached_poses(evaluation: Evaluation) -> str:
    """Return text with the numbers of the first few poses whose loops do not close."""
    texts = []
    for state in evaluation.states:
        poses = np.flatnonzero(~state.is_reached) + 1
        if len(poses):
            numbers = ", ".join(map(str, poses[:MAX_LISTED_POSES]))
            unlisted = len(poses) - MAX_LISTED_POSES
            more = f" and {unlisted} more" if unlisted > 0 else ""
            texts.append(f"no. {numbers}{more} of {len(state.is_reached)}")
    return "; ".join(texts)


def _sparse_directions(
    problem: CalibrationProblem, null: np.ndarray
) -> tuple[tuple[ParameterDirection, ...], tuple[int, ...]]:
    """Return a basis of a null space (n, k) and the index of the pivot unknown of each direction.

    Each pivot unknown is in only one direction.
    """
    if not null.shape[1]:
        return (), ()
    pivots = leading_rows(null)
    basis = null @ np.linalg.inv(null[pivots])
    order = np.argsort(pivots)
    directions = tuple(_direction(problem, basis[:, i], None) for i in order)
    return directions, tuple(pivots[i] for i in order)


def _direction(
    problem: CalibrationProblem,
    scaled: np.ndarray,
    deviation: float | None,
    min_fraction: float = MIN_LISTED_FRACTION,
) -> ParameterDirection:
    """Convert a direction from tolerances to SI; its largest term is one tolerance.

    Terms below a fraction `min_fraction` of the largest are left out.
    """
    largest = int(np.abs(scaled).argmax())
    relative = scaled / scaled[largest]
    terms = tuple(
        (problem.names[i], float(relative[i] * problem.tolerances[i]))
        for i in np.argsort(-np.abs(relative), kind="stable")
        if abs(relative[i]) >= min_fraction
    )
    return ParameterDirection(terms=terms, deviation=deviation)


def _leave_out_weak(
    problem: CalibrationProblem, J: np.ndarray, has_prior: list[bool], reasons: dict[int, str]
) -> None:
    """Add weak unknowns to those left out, with the reason.

    The unknown with the largest ratio of standard deviation to tolerance is left out repeatedly,
    until this ratio is at most one for all others.
    """
    remaining = [i for i in range(J.shape[1]) if i not in reasons]
    information = J.T @ J + np.diag([1.0 if prior else 0.0 for prior in has_prior])
    while remaining:
        submatrix = information[np.ix_(remaining, remaining)]
        covariance = np.linalg.pinv(submatrix, hermitian=True)
        deviations = np.sqrt(np.abs(np.diag(covariance)))
        deviations[[has_prior[i] for i in remaining]] = 0.0
        worst = int(deviations.argmax())
        if deviations[worst] <= 1.0:
            return
        i = remaining.pop(worst)
        unknown = problem.estimated[i]
        deviation = deviations[worst] * unknown.tolerance
        reasons[i] = (
            f"estimated with the others, its standard deviation would be {deviation:.3g} {unknown.unit}, "
            f"above its tolerance of {unknown.tolerance:.3g} {unknown.unit}"
        )
