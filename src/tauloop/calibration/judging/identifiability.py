"""What measurements can tell about the unknowns, before anything is fitted.

Unknowns are compared in units of their tolerances, residuals in standard deviations: with the
scaled Jacobian J diag(tolerance) = U S V^T, a direction v of size one tolerance moves the residuals
by s, so its standard deviation is 1/s tolerances. Directions that move nothing at *any* geometry
are gauge freedoms; those that move nothing at the nominal geometry only, or less than the noise,
are practically unobservable, which is another thing: more poses, less noise or a prior mend them.

Source: Golub and Van Loan 2013, Matrix Computations: rank by singular values.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.linalg

from tauloop.calibration.judging.gauges import gauges, leading_rows
from tauloop.calibration.judging.observability import NULL
from tauloop.calibration.problem.problem import CalibrationProblem, Evaluation, Linearised
from tauloop.common.errors import PoseError
from tauloop.common.records import dataclass
from tauloop.common.shown import Shown

#: Terms of a direction below this share of its largest are not told.
SMALL_TERM = 0.02
#: Poses named in an error.
MOST_POSES = 5
#: A column below this share of the largest has no effect.
NO_EFFECT = 1e-10
#: How the reason begins why an unknown is left out that takes part in a gauge freedom.
NOT_TOLD_APART = "cannot be told from others"
#: Tried sizes (in tolerances) of the random geometry at which gauge freedoms are told from
#: accidents of the nominal.
SIZES = (1.0, 0.3, 0.1, 0.03)


@dataclass(frozen=True, slots=True, kw_only=True)
class Direction:
    """A combination of unknowns.

    Attributes:
        terms: (unknown, change in SI) for one tolerance of the first, largest first.
        deviation: standard deviation along it, in tolerances; None where the data say nothing at
            all.
        name: of a gauge freedom: the motion that it is, such as "translation of the base frame
            along x"; empty where it is none of the known ones
            (`tauloop.calibration.judging.gauges`).
        explained: share of that motion which the freedom is, 1 for all; without a name, share of
            what it moves that known motions explain; None where nothing moves or nobody asked.
    """

    terms: tuple[tuple[str, float], ...]
    deviation: float | None
    name: str = ""
    explained: float | None = None

    def __str__(self) -> str:
        return ", ".join(f"{value:+.3g} {name}" for name, value in self.terms)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """An unknown that is kept at its start value, and why."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Identifiability(Shown):
    """What the measurements can tell.

    Attributes:
        unknowns: names (n,).
        equations: number of residuals.
        singular_values: of the scaled Jacobian at the given geometry, in standard deviations per
            tolerance.
        rank: how many are not zero there.
        generic_rank: the same at a geometry some tolerances away; what is missing are gauge
            freedoms.
        gauge: combinations that no geometry shows.
        silent: combinations that this geometry does not show, beyond the gauge freedoms' number.
        weak: combinations that are seen, with a standard deviation above the tolerance, at the
            geometry away.
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
    leave_out_weak: bool = False,
    near: Linearised | None = None,
) -> Identifiability:
    """Rank, null directions and an identifiable subset of the free unknowns.

    Args:
        problem: the calibration; priors are not counted, but unknowns with a prior are never left
            out.
        rng: draws the geometry away from the nominal one.
        leave_out_weak: also leave out unknowns, the worst first, until all standard deviations are
            below tolerances.
        near: the problem at the geometry to look at; at the start values without it.
    """
    tolerances = problem.tolerances
    here = (
        problem.linearised(problem.evaluate(np.zeros(len(problem.free)))) if near is None else near
    )
    J = here.jacobian * tolerances
    sizes, directions = _directions(J)
    rank = _rank(sizes)
    there = _away(problem, here, rng)
    away = there.jacobian * tolerances
    sizes_away, V_away = _directions(away)
    generic = max(_rank(sizes_away), rank)
    null = V_away[:, generic:]
    apart, pivots = _readable(problem, null)
    freedoms = gauges(problem, there, null)
    gauge = tuple(
        replace(
            _direction(problem, null @ freedom.direction, None),
            name=freedom.name,
            explained=freedom.explained,
        )
        for freedom in freedoms
    )
    silent, _ = _readable(problem, directions[:, rank:]) if rank < generic else ((), ())
    weak = tuple(
        _direction(problem, V_away[:, i], float(1.0 / sizes_away[i]))
        for i in range(generic - 1, -1, -1)
        if sizes_away[i] < 1.0
    )
    with_prior = [unknown.has_prior for unknown in problem.estimated]
    left: dict[int, str] = {}
    norms = np.linalg.norm(away, axis=0)
    for direction, pivot in zip(apart, pivots, strict=True):
        if not with_prior[pivot]:
            own = problem.names[pivot]
            motions = [
                freedom.name for freedom in gauge if freedom.name and own in dict(freedom.terms)
            ]
            because = f": {'; '.join(motions)}" if motions else ""
            left[pivot] = (
                "has no effect on any of these measurements"
                if norms[pivot] <= NO_EFFECT * norms.max()
                else f"{NOT_TOLD_APART}: ({direction}) leaves all measurements as they are{because}"
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


def _away(problem: CalibrationProblem, here: Linearised, rng: np.random.Generator) -> Linearised:
    """The problem at a random geometry some tolerances away where all poses are still reached."""
    at = here.evaluation.correction
    draw = rng.standard_normal(len(at)) * problem.tolerances
    unreached = ""
    for size in SIZES:
        evaluation = problem.evaluate(at + size * draw, here)
        if evaluation.is_reached:
            return problem.linearised(evaluation)
        unreached = _unreached(evaluation)
    what = (
        f"{unreached} cannot be reached when unknowns change by {SIZES[-1]:g} of their tolerances"
    )
    remedy = (
        "leave them out: they lie at the edge of the work volume or in a singularity (`tauloop workspace`); "
        "or state smaller tolerances"
    )
    if problem.assembly.passive and problem.equilibrium is None:
        remedy += "; if the machine hangs still in its passive freedoms, say so: `--equilibrium`"
    raise PoseError.of("poses", what, remedy)


def _unreached(evaluation: Evaluation) -> str:
    """The poses whose loops do not close, the first few by number."""
    texts = []
    for state in evaluation.states:
        poses = np.flatnonzero(~state.is_reached) + 1
        if len(poses):
            more = f" and {len(poses) - MOST_POSES} more" if len(poses) > MOST_POSES else ""
            texts.append(
                f"no. {', '.join(map(str, poses[:MOST_POSES]))}{more} of {len(state.is_reached)}"
            )
    return "; ".join(texts)


def _readable(
    problem: CalibrationProblem, null: np.ndarray
) -> tuple[tuple[Direction, ...], tuple[int, ...]]:
    """A null space (n, k) by directions that each have an unknown of their own, and these unknowns."""
    if not null.shape[1]:
        return (), ()
    own = leading_rows(null)
    basis = null @ np.linalg.inv(null[own])
    order = np.argsort(own)
    return tuple(_direction(problem, basis[:, i], None) for i in order), tuple(
        own[i] for i in order
    )


def _direction(
    problem: CalibrationProblem, scaled: np.ndarray, deviation: float | None
) -> Direction:
    """A direction in tolerances as changes in SI, the largest term one tolerance."""
    largest = int(np.abs(scaled).argmax())
    shares = scaled / scaled[largest]
    terms = tuple(
        (problem.names[i], float(shares[i] * problem.tolerances[i]))
        for i in np.argsort(-np.abs(shares), kind="stable")
        if abs(shares[i]) >= SMALL_TERM
    )
    return Direction(terms=terms, deviation=deviation)


def _leave_out_weak(
    problem: CalibrationProblem, J: np.ndarray, with_prior: list[bool], left: dict[int, str]
) -> None:
    """Leave out the unknown with the largest standard deviation over tolerance until all are below one."""
    kept = [i for i in range(J.shape[1]) if i not in left]
    information = J.T @ J + np.diag([1.0 if prior else 0.0 for prior in with_prior])
    while kept:
        deviations = np.sqrt(
            np.abs(np.diag(np.linalg.pinv(information[np.ix_(kept, kept)], hermitian=True)))
        )
        deviations[[with_prior[i] for i in kept]] = 0.0
        worst = int(deviations.argmax())
        if deviations[worst] <= 1.0:
            return
        i = kept.pop(worst)
        unknown = problem.estimated[i]
        left[i] = (
            f"its standard deviation beside the others would be {deviations[worst] * unknown.tolerance:.3g} "
            f"{unknown.unit}, above its tolerance of {unknown.tolerance:.3g} {unknown.unit}"
        )
