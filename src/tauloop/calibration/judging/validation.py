"""Judging a calibration by poses that it has not seen: leave-one-out, k folds, bootstrap, nested models in pairs.

Source: Efron and Tibshirani 1993, An Introduction to the Bootstrap.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace

import numpy as np
from scipy.optimize import lsq_linear

from tauloop.calibration.problem.problem import CalibrationProblem
from tauloop.calibration.solving.solver import Solution, limits, solve
from tauloop.common.errors import IdentificationError, InputError, solving
from tauloop.common.plain import OMITTED, in_json, json_keys
from tauloop.common.processes import SharedWork
from tauloop.common.records import dataclass
from tauloop.common.shown import Shown

#: Called after each piece of work with how many are done and how many there are.
Progress = Callable[[int, int], None]
#: A bootstrap fit ends when the next step is below this share of a standard deviation.
ENOUGH = 1e-2
#: This process.
ALONE = SharedWork()


def _silent(done: int, total: int) -> None:
    pass


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HeldOut(Shown):
    """Errors at poses by fits that had not seen them.

    Attributes:
        residuals: whitened, one row (r,) for each pose; padded with NaN where series differ in
            length.
        errors: the instruments' errors in SI, likewise.
    """

    residuals: np.ndarray = field(metadata=OMITTED)
    errors: np.ndarray = field(metadata=json_keys(nullable=True))

    @property
    def pose_squares(self) -> np.ndarray:
        """Mean squared whitened residual of every pose (N,)."""
        return np.asarray(np.nanmean(self.residuals**2, axis=1))

    @property
    @in_json()
    def rms(self) -> float:
        """Root mean square of all errors, SI; only of one unit when all series are of one instrument's kind."""
        return float(np.sqrt(np.nanmean(self.errors**2)))

    @property
    def rms_whitened(self) -> float:
        """Root mean square in standard deviations."""
        return float(np.sqrt(np.nanmean(self.residuals**2)))


@solving(IdentificationError)
def held_out(
    problem: CalibrationProblem,
    solution: Solution,
    parts: Sequence[np.ndarray],
    progress: Progress = _silent,
    processes: SharedWork = ALONE,
) -> HeldOut:
    """Errors at each part's poses by a fit to all other poses.

    Args:
        problem: the calibration.
        solution: its optimum, from which each fit starts.
        parts: indices of poses; every pose in one part.
        progress: told of every fit.
        processes: among which the fits are shared out.
    """
    return _held_out(problem, solution, [parts], progress, processes)[0]


def _held_out(
    problem: CalibrationProblem,
    solution: Solution,
    splits: Sequence[Sequence[np.ndarray]],
    progress: Progress,
    processes: SharedWork,
) -> tuple[HeldOut, ...]:
    """The same for several ways to split all poses."""
    rows = max(measured_pose.n_rows for measured_pose in problem.measured_poses)
    width = max(
        len(measured_pose.series.instrument.errors) for measured_pose in problem.measured_poses
    )
    parts = [part for split in splits for part in split]
    work = (_at_solution(problem, solution), solution.correction)
    outcomes = enumerate(processes.results(_tested, work, parts), 1)
    result = []
    for split in splits:
        residuals = np.full((problem.n_poses, rows), np.nan)
        errors = np.full((problem.n_poses, width), np.nan)
        for part in split:
            done, states = next(outcomes)
            first, order = 0, np.sort(part)
            for residual, error in states:
                mine = order[first : first + len(residual)]
                residuals[mine, : residual.shape[1]] = residual
                errors[mine, : error.shape[1]] = error
                first += len(residual)
            progress(done, len(parts))
        result.append(HeldOut(residuals=residuals, errors=errors))
    return tuple(result)


def _tested(
    work: tuple[CalibrationProblem, np.ndarray], part: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Whitened residuals and errors of each series at a part's poses, by a fit to all other poses from a correction."""
    problem, start = work
    fitted = solve(problem.take(np.setdiff1d(np.arange(problem.n_poses), part)), start)
    return [
        (state.residual, state.errors)
        for state in problem.take(part).evaluate(fitted.correction).states
    ]


def _at_solution(problem: CalibrationProblem, solution: Solution) -> CalibrationProblem:
    """The same problem whose coordinates start at the optimum."""
    measured_poses = tuple(
        replace(measured_pose, q=state.q)
        for measured_pose, state in zip(
            problem.measured_poses, solution.evaluation.states, strict=True
        )
    )
    return replace(problem, measured_poses=measured_poses)


def leave_one_out(
    problem: CalibrationProblem,
    solution: Solution,
    progress: Progress = _silent,
    processes: SharedWork = ALONE,
) -> HeldOut:
    """Every pose judged by a fit to all the others."""
    return held_out(problem, solution, _alone(problem.n_poses), progress, processes)


def _alone(n_poses: int) -> list[np.ndarray]:
    """Parts of one pose each."""
    return [np.array([i]) for i in range(n_poses)]


def folds(n_poses: int, count: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Random parts of nearly equal size.

    Raises:
        InputError: more parts than poses, or fewer than two.
    """
    if not 2 <= count <= n_poses:
        raise InputError.of(
            "folds", f"{count} folds of {n_poses} poses", f"give a number from 2 to {n_poses}"
        )
    return [np.sort(part) for part in np.array_split(rng.permutation(n_poses), count)]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModelScore:
    """How one set of unknowns predicts.

    Attributes:
        name: of the set.
        unknowns: their number.
        leave_one_out: errors by leave-one-out.
        fold_rms: (draws,) whitened RMS of each repeated k-fold draw.
        fold_errors: (draws,) the same in SI.
    """

    name: str
    unknowns: int
    leave_one_out: HeldOut = field(metadata=json_keys(leave_one_out_rms="rms"))
    fold_rms: np.ndarray = field(metadata=OMITTED)
    fold_errors: np.ndarray = field(metadata=json_keys("fold_rms"))


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedDifference:
    """The second model's squared held-out residuals less the first's, pose by pose or draw by draw.

    Attributes:
        first, second: names.
        leave_one_out: mean difference, in variances of the noise; negative where the second
            predicts better.
        leave_one_out_error: its standard error over poses.
        folds: mean difference over the draws.
        folds_spread: standard deviation over the draws (same poses: not an error of the mean).
        folds_won: share of draws in which the second predicts better.
    """

    first: str
    second: str
    leave_one_out: float
    leave_one_out_error: float
    folds: float
    folds_spread: float
    folds_won: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Comparison(Shown):
    """Sets of unknowns compared on the same held-out poses.

    Attributes:
        models: in the order of their size.
        differences: every later one against the first.
        recommended: name of the set to use.
        reason: why.
    """

    models: tuple[ModelScore, ...]
    differences: tuple[PairedDifference, ...]
    recommended: str
    reason: str

    @property
    @in_json()
    def draws(self) -> int:
        """Number of draws of the folds."""
        return len(self.models[0].fold_errors)


@solving(IdentificationError)
def compare_unknowns(
    problems: Mapping[str, CalibrationProblem],
    rng: np.random.Generator,
    *,
    draws: int = 30,
    count: int = 5,
    progress: Progress = _silent,
    processes: SharedWork = ALONE,
) -> Comparison:
    """Compare sets of unknowns by leave-one-out and repeated k folds, all on the same poses and the same folds.

    The larger set is recommended only where both ways agree: it must win leave-one-out by more than
    a standard error and most of the k-fold draws; else the smaller one.

    Args:
        problems: by name, with the same measurements.
        rng: draws the folds.
        draws, count: how often all poses are split, and into how many parts.
        progress: told of every fit.
        processes: among which the fits are shared out.

    Raises:
        InputError: fewer than two problems, or different measurements.
    """
    order = sorted(problems, key=lambda name: len(problems[name].free))
    sizes = {problem.n_poses for problem in problems.values()}
    if len(order) < 2 or len(sizes) > 1:
        what = f"{len(order)} sets of unknowns on {sorted(sizes)} poses"
        raise InputError.of("compare", what, "give two or more sets on the same measurements")
    n = sizes.pop()
    splits = [folds(n, count, rng) for _ in range(draws)]
    total, done = len(order) * (n + draws * count), 0
    scores: list[ModelScore] = []
    for name in order:
        problem = problems[name]
        solution = solve(problem)

        def tick(_: int, __: int) -> None:
            nonlocal done
            done += 1
            progress(done, total)

        alone, *repeated = _held_out(problem, solution, [_alone(n), *splits], tick, processes)
        scores.append(
            ModelScore(
                name=name,
                unknowns=len(problem.free),
                leave_one_out=alone,
                fold_rms=np.array([part.rms_whitened for part in repeated]),
                fold_errors=np.array([part.rms for part in repeated]),
            )
        )
    differences = tuple(_paired(scores[0], other) for other in scores[1:])
    recommended, reason = _recommended(scores)
    return Comparison(
        models=tuple(scores), differences=differences, recommended=recommended, reason=reason
    )


def _paired(first: ModelScore, second: ModelScore) -> PairedDifference:
    per_pose = second.leave_one_out.pose_squares - first.leave_one_out.pose_squares
    per_draw = second.fold_rms**2 - first.fold_rms**2
    return PairedDifference(
        first=first.name,
        second=second.name,
        leave_one_out=float(per_pose.mean()),
        leave_one_out_error=float(per_pose.std(ddof=1) / np.sqrt(len(per_pose))),
        folds=float(per_draw.mean()),
        folds_spread=float(per_draw.std(ddof=1)) if len(per_draw) > 1 else 0.0,
        folds_won=float((per_draw < 0).mean()),
    )


def _recommended(scores: list[ModelScore]) -> tuple[str, str]:
    best = scores[0]
    reasons = []
    for other in scores[1:]:
        pair = _paired(best, other)
        wins = (
            -pair.leave_one_out > pair.leave_one_out_error
            and pair.folds < 0
            and pair.folds_won > 0.5
        )
        share = 100 / best.leave_one_out.pose_squares.mean()
        figures = (
            f"leave-one-out {share * pair.leave_one_out:+.0f} % of the mean square "
            f"(standard error {share * pair.leave_one_out_error:.0f} %), "
            f"repeated folds {100 * pair.folds / np.mean(best.fold_rms**2):+.0f} %, "
            f"better in {100 * pair.folds_won:.0f} % of the draws"
        )
        if wins:
            reasons.append(f"{other.name} predicts better than {best.name} ({figures})")
            best = other
        else:
            reasons.append(
                f"{other.name} does not predict better than the smaller {best.name} ({figures})"
            )
    return best.name, "; ".join(reasons)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bootstrap(Shown):
    """Corrections refitted to resampled poses.

    Attributes:
        names: unknowns (n,).
        corrections: (replicates, n), SI.
        standard_deviations: (n,), SI.
        intervals: 2.5 % and 97.5 % quantiles (n, 2), SI.
    """

    names: tuple[str, ...] = field(metadata=OMITTED)
    corrections: np.ndarray = field(metadata=OMITTED)
    standard_deviations: np.ndarray = field(metadata=OMITTED)
    intervals: np.ndarray = field(metadata=OMITTED)

    @property
    @in_json()
    def replicates(self) -> int:
        """Number of draws."""
        return len(self.corrections)

    @property
    @in_json("standard_deviations")
    def named_deviations(self) -> dict[str, float]:
        """Standard deviations by unknown, SI."""
        return dict(zip(self.names, self.standard_deviations, strict=True))

    @property
    @in_json("intervals_95")
    def named_intervals(self) -> dict[str, np.ndarray]:
        """Intervals (2,) by unknown, SI."""
        return dict(zip(self.names, self.intervals, strict=True))


@solving(IdentificationError)
def bootstrap(
    problem: CalibrationProblem,
    solution: Solution,
    rng: np.random.Generator,
    *,
    replicates: int = 1000,
    progress: Progress = _silent,
    processes: SharedWork = ALONE,
) -> Bootstrap:
    """Refit to poses drawn with replacement, within each series: accuracy without assuming the noise.

    Every replicate is found by Gauss-Newton steps from the optimum, the first of them with the
    Jacobian there.

    Raises:
        InputError: fewer than two replicates.
        IdentificationError: fewer poses than unknowns, so that replicates are not determined.
    """
    n_rows, n = solution.jacobian.shape
    if replicates < 2:
        raise InputError.of("replicates", f"is {replicates}", "give at least 2; 1000 is usual")
    distinct = 0.63 * n_rows + float((solution.prior > 0).sum())
    if distinct < n:
        what = f"a draw holds about {distinct:.0f} different residuals for {n} unknowns"
        raise IdentificationError.of(
            "bootstrap", what, "measure more poses, or rely on the covariance"
        )
    counts_of = [len(measured_pose.series) for measured_pose in problem.measured_poses]
    drawn = [
        np.concatenate([rng.multinomial(count, np.full(count, 1.0 / count)) for count in counts_of])
        for _ in range(replicates)
    ]
    corrections = np.empty((replicates, n))
    work = (problem, solution, np.sqrt(np.diag(solution.inverse(problem.tolerances))))
    for k, correction in enumerate(processes.results(_refitted, work, drawn)):
        corrections[k] = correction
        progress(k + 1, replicates)
    return Bootstrap(
        names=problem.names,
        corrections=corrections,
        standard_deviations=corrections.std(axis=0, ddof=1),
        intervals=np.quantile(corrections, [0.025, 0.975], axis=0).T,
    )


def _refitted(
    work: tuple[CalibrationProblem, Solution, np.ndarray], counts: np.ndarray
) -> np.ndarray:
    """Corrections (n,) refitted with every pose so often: Gauss-Newton steps from the optimum."""
    problem, solution, deviations = work
    scale, prior = problem.tolerances, solution.prior
    penalty = np.diag((prior * scale) ** 2)
    lower, upper = (limit / scale for limit in limits(problem))
    weights = counts[problem.pose_of_row] * solution.weights
    s, r, near = solution.correction / scale, solution.residual, solution.evaluation
    J = solution.jacobian * scale
    for iteration in range(4):
        weighted = J.T * weights
        gradient = weighted @ r + (prior * scale) ** 2 * s
        step = -np.linalg.lstsq(weighted @ J + penalty, gradient, rcond=1e-14)[0]
        if ((s + step < lower) | (s + step > upper)).any():
            rows = np.concatenate([np.sqrt(weights)[:, None] * J, np.diag(prior * scale)])
            left = np.concatenate([np.sqrt(weights) * r, prior * scale * s])
            step = lsq_linear(rows, -left, bounds=(lower - s, upper - s)).x
        s = s + step
        if iteration and (np.abs(step) <= ENOUGH * deviations).all():
            break
        if iteration < 3:
            near = problem.evaluate(s * scale, near)
            if not near.is_reached:
                break
            r, J = near.residual, problem.jacobian(near) * scale
    return np.asarray(s * scale)
