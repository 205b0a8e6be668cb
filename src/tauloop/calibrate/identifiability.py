"""What measurements can tell about the unknowns, before anything is fitted.

Unknowns are compared in units of their tolerances, residuals in standard deviations: with the scaled Jacobian
J diag(tolerance) = U S V^T, a direction v of size one tolerance moves the residuals by s, so its standard deviation
is 1/s tolerances. Directions that move nothing at *any* geometry are gauge freedoms; those that move nothing at the
nominal geometry only, or less than the noise, are practically unobservable, which is another thing: more poses, less
noise or a prior mend them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from tauloop.calibrate.problem import CalibrationProblem
from tauloop.errors import PoseError, Problem

#: Singular values below this share of the largest are zero; Jacobians are exact to about 1e-13.
NULL = 1e-10
#: Terms of a direction below this share of its largest are not told.
SMALL_TERM = 0.02
#: A column below this share of the largest has no effect.
NO_EFFECT = 1e-10
#: Tried sizes (in tolerances) of the random geometry at which gauge freedoms are told from accidents of the nominal.
SIZES = (1.0, 0.3, 0.1, 0.03)


@dataclass(frozen=True, slots=True, kw_only=True)
class Direction:
    """A combination of unknowns.

    Attributes:
        terms: (unknown, change in SI) for one tolerance of the first, largest first.
        deviation: standard deviation along it, in tolerances; None where the data say nothing at all.
    """

    terms: tuple[tuple[str, float], ...]
    deviation: float | None

    def __str__(self) -> str:
        return ", ".join(f"{value:+.3g} {name}" for name, value in self.terms)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """An unknown that is kept at its start value, and why."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Identifiability:
    """What the measurements can tell.

    Attributes:
        unknowns: names (n,).
        equations: number of residuals.
        singular_values: of the scaled Jacobian at the given geometry, in standard deviations per tolerance.
        rank: how many are not zero there.
        generic_rank: the same at a geometry some tolerances away; what is missing are gauge freedoms.
        gauge: combinations that no geometry shows.
        silent: combinations that this geometry does not show, beyond the gauge freedoms' number.
        weak: combinations that are seen, with a standard deviation above the tolerance, at the geometry away.
        subset: unknowns that can be told.
        left_out: the others, with the reason.
    """

    unknowns: tuple[str, ...]
    equations: int
    singular_values: tuple[float, ...]
    rank: int
    generic_rank: int
    gauge: tuple[Direction, ...]
    silent: tuple[Direction, ...]
    weak: tuple[Direction, ...]
    subset: tuple[str, ...]
    left_out: tuple[LeftOut, ...]


def identifiability(
    problem: CalibrationProblem,
    rng: np.random.Generator,
    *,
    correction: np.ndarray | None = None,
    leave_out_weak: bool = False,
) -> Identifiability:
    """Rank, null directions and an identifiable subset of the free unknowns.

    Args:
        problem: the calibration; priors are not counted, but unknowns with a prior are never left out.
        rng: draws the geometry away from the nominal one.
        correction: geometry to look at (n,), SI; the start values without it.
        leave_out_weak: also leave out unknowns, the worst first, until all standard deviations are below tolerances.
    """
    n, tolerances = len(problem.free), problem.tolerances
    at = np.zeros(n) if correction is None else np.asarray(correction, dtype=float)
    evaluation = problem.evaluate(at)
    J = problem.jacobian(evaluation) * tolerances
    sizes, V = _directions(J)
    rank = _rank(sizes)
    away = _away(problem, at, rng)
    sizes_away, V_away = _directions(away)
    generic = max(_rank(sizes_away), rank)
    gauge, pivots = _readable(problem, V_away[:, generic:], away)
    silent, _ = _readable(problem, V[:, rank:], J) if rank < generic else ((), ())
    weak = tuple(
        _direction(problem, V_away[:, i], float(1.0 / sizes_away[i]))
        for i in range(generic - 1, -1, -1)
        if sizes_away[i] < 1.0
    )
    with_prior = [problem.unknowns[i].has_prior for i in problem.free]
    left: dict[int, str] = {}
    norms = np.linalg.norm(away, axis=0)
    for direction, pivot in zip(gauge, pivots, strict=True):
        if not with_prior[pivot]:
            left[pivot] = (
                "has no effect on any of these measurements"
                if norms[pivot] <= NO_EFFECT * norms.max()
                else f"cannot be told from others: ({direction}) leaves all measurements as they are"
            )
    if leave_out_weak:
        _leave_out_weak(problem, away, with_prior, left)
    names = problem.names
    return Identifiability(
        unknowns=names,
        equations=len(J),
        singular_values=tuple(float(size) for size in sizes),
        rank=rank,
        generic_rank=generic,
        gauge=gauge,
        silent=silent,
        weak=weak,
        subset=tuple(name for i, name in enumerate(names) if i not in left),
        left_out=tuple(LeftOut(name=names[i], reason=reason) for i, reason in sorted(left.items())),
    )


def _directions(J: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Singular values (n,), zeros added where there are fewer equations, and right singular vectors (n, n)."""
    n = J.shape[1]
    triangle = scipy.linalg.qr(J, mode="r")[0][:n] if len(J) > n else J
    _, sizes, Vt = np.linalg.svd(triangle, full_matrices=True)
    return np.concatenate([sizes, np.zeros(n - len(sizes))]), Vt.T


def _rank(sizes: np.ndarray) -> int:
    return int((sizes > NULL * sizes.max(initial=0.0)).sum())


def _away(problem: CalibrationProblem, at: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Scaled Jacobian at a random geometry some tolerances away where all poses are still reached."""
    draw = rng.standard_normal(len(at)) * problem.tolerances
    for size in SIZES:
        evaluation = problem.evaluate(at + size * draw)
        if evaluation.is_reached:
            return problem.jacobian(evaluation) * problem.tolerances
    raise PoseError(
        Problem(
            where="poses",
            what=f"some are out of reach when unknowns change by {SIZES[-1]:g} of their tolerances",
            remedy="leave out the poses at the edge of the work volume, or state smaller tolerances",
        )
    )


def _readable(
    problem: CalibrationProblem, null: np.ndarray, J: np.ndarray
) -> tuple[tuple[Direction, ...], tuple[int, ...]]:
    """A null space (n, k) by directions that each have an unknown of their own, and these unknowns."""
    k = null.shape[1]
    if not k:
        return (), ()
    _, _, pivots = scipy.linalg.qr(null.T, pivoting=True, mode="economic")
    own = [int(i) for i in pivots[:k]]
    basis = null @ np.linalg.inv(null[own])
    order = np.argsort(own)
    return tuple(_direction(problem, basis[:, i], None) for i in order), tuple(own[i] for i in order)


def _direction(problem: CalibrationProblem, scaled: np.ndarray, deviation: float | None) -> Direction:
    """A direction in tolerances as changes in SI, the largest term one tolerance."""
    largest = int(np.abs(scaled).argmax())
    shares = scaled / scaled[largest]
    terms = tuple(
        (problem.names[i], float(shares[i] * problem.tolerances[i]))
        for i in np.argsort(-np.abs(shares), kind="stable")
        if abs(shares[i]) >= SMALL_TERM
    )
    return Direction(terms=terms, deviation=deviation)


def _leave_out_weak(problem: CalibrationProblem, J: np.ndarray, with_prior: list[bool], left: dict[int, str]) -> None:
    """Leave out the unknown with the largest standard deviation over tolerance until all are below one."""
    kept = [i for i in range(J.shape[1]) if i not in left]
    information = J.T @ J + np.diag([1.0 if prior else 0.0 for prior in with_prior])
    while kept:
        deviations = np.sqrt(np.abs(np.diag(np.linalg.pinv(information[np.ix_(kept, kept)], hermitian=True))))
        deviations[[with_prior[i] for i in kept]] = 0.0
        worst = int(deviations.argmax())
        if deviations[worst] <= 1.0:
            return
        i = kept.pop(worst)
        unknown = problem.unknowns[problem.free[i]]
        left[i] = (
            f"its standard deviation beside the others would be {deviations[worst] * unknown.tolerance:.3g} "
            f"{unknown.unit}, above its tolerance of {unknown.tolerance:.3g} {unknown.unit}"
        )
