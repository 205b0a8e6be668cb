"""Validation of a calibration with held-out poses: leave-one-out, k-fold, comparison, bootstrap.

Source: Efron and Tibshirani 1993, An Introduction to the Bootstrap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

import numpy as np
from scipy.optimize import lsq_linear

from tauloop.calibration.problem.problem import CalibrationProblem
from tauloop.calibration.solving.solver import Solution, limits, solve_calibration
from tauloop.common.counts import counted
from tauloop.common.errors import IdentificationError, InputError, solving
from tauloop.common.execution.processes import SharedWork
from tauloop.common.plain import OMITTED, in_json, json_keys
from tauloop.common.progress import Progress
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin

#: A bootstrap fit ends when its step is below this fraction of a standard deviation.
BOOTSTRAP_STEP_TOLERANCE = 1e-2
#: Maximum number of Gauss-Newton steps of a bootstrap fit.
MAX_BOOTSTRAP_STEPS = 4
#: Default of arguments that share work between processes: all work is done in this process.
THIS_PROCESS = SharedWork()


def _no_progress(done: int, total: int) -> None:
    """Report nothing."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HeldOut(ReprMixin):
    """Prediction errors at held-out poses.

    Attributes:
        residuals: whitened residuals, one row (r,) for each pose; padded with NaN if series differ
            in the number of residuals.
        errors: errors of the instruments, SI, in the same form.
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
        """Root mean square of all errors, SI; meaningful if all errors have the same unit."""
        return float(np.sqrt(np.nanmean(self.errors**2)))

    @property
    def rms_whitened(self) -> float:
        """Root mean square of the whitened residuals, in standard deviations."""
        return float(np.sqrt(np.nanmean(self.residuals**2)))


@solving(IdentificationError)
def held_out(
    problem: CalibrationProblem,
    solution: Solution,
    parts: Sequence[np.ndarray],
    progress: Progress = _no_progress,
    processes: SharedWork = THIS_PROCESS,
) -> HeldOut:
    """Return the errors at the poses of each part, predicted by a fit to all other poses.

    Args:
        problem: the calibration.
        solution: optimum of the calibration, from which each fit starts.
        parts: indices of the poses of each part; every pose belongs to one part.
        progress: called after every fit.
        processes: processes that share the fits.
    """
    return _held_out(problem, solution, [parts], progress, processes)[0]


def _held_out(
    problem: CalibrationProblem,
    solution: Solution,
    splits: Sequence[Sequence[np.ndarray]],
    progress: Progress,
    processes: SharedWork,
) -> tuple[HeldOut, ...]:
    """Return the held-out errors for several splits of all poses."""
    rows = max(measured_pose.n_rows for measured_pose in problem.measured_poses)
    width = max(
        len(measured_pose.series.instrument.errors) for measured_pose in problem.measured_poses
    )
    parts = [part for split in splits for part in split]
    work = (_at_solution(problem, solution), solution.correction)
    predictions = enumerate(processes.results(_predict_part, work, parts), 1)
    result = []
    for split in splits:
        residuals = np.full((problem.n_poses, rows), np.nan)
        errors = np.full((problem.n_poses, width), np.nan)
        for part in split:
            done, states = next(predictions)
            order = np.sort(part)
            first = 0
            for residual, error in states:
                poses = order[first : first + len(residual)]
                residuals[poses, : residual.shape[1]] = residual
                errors[poses, : error.shape[1]] = error
                first += len(residual)
            progress(done, len(parts))
        result.append(HeldOut(residuals=residuals, errors=errors))
    return tuple(result)


def _predict_part(
    work: tuple[CalibrationProblem, np.ndarray], part: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return whitened residuals and errors of each series at some poses, after a fit to all others.

    Args:
        work: the calibration, and the corrections from which the fit starts.
        part: indices of the poses.
    """
    problem, start = work
    training_poses = np.setdiff1d(np.arange(problem.n_poses), part)
    fitted = solve_calibration(problem.take(training_poses), start)
    return [
        (state.residual, state.errors)
        for state in problem.take(part).evaluate(fitted.correction).states
    ]


def _at_solution(problem: CalibrationProblem, solution: Solution) -> CalibrationProblem:
    """Return the same problem with the coordinates at the optimum as start values."""
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
    progress: Progress = _no_progress,
    processes: SharedWork = THIS_PROCESS,
) -> HeldOut:
    """Return the errors at every pose, predicted by a fit to all other poses."""
    return held_out(problem, solution, _single_poses(problem.n_poses), progress, processes)


def _single_poses(n_poses: int) -> list[np.ndarray]:
    """Return parts of one pose each."""
    return [np.array([i]) for i in range(n_poses)]


def folds(n_poses: int, count: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Split poses at random into parts of nearly equal size.

    Returns:
        Sorted indices of the poses of each part.

    Raises:
        InputError: there are more parts than poses, or fewer than two parts.
    """
    if not 2 <= count <= n_poses:
        raise InputError.of(
            "folds",
            f"cannot split {counted(n_poses, 'pose')} into {counted(count, 'fold')}",
            f"give a number from 2 to {n_poses}",
        )
    return [np.sort(part) for part in np.array_split(rng.permutation(n_poses), count)]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModelScore:
    """Prediction errors of one set of unknowns.

    Attributes:
        name: name of the set.
        unknowns: number of unknowns.
        leave_one_out: errors of leave-one-out validation.
        fold_rms: whitened RMS of each random draw of folds (draws,).
        fold_errors: RMS errors of each draw (draws,), SI.
    """

    name: str
    unknowns: int
    leave_one_out: HeldOut = field(metadata=json_keys(leave_one_out_rms="rms"))
    fold_rms: np.ndarray = field(metadata=OMITTED)
    fold_errors: np.ndarray = field(metadata=json_keys("fold_rms"))


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedDifference:
    """Squared held-out residuals of the second model minus those of the first, at the same poses.

    Attributes:
        first, second: names of the models.
        leave_one_out: mean difference, in variances of the noise; negative if the second model
            predicts better.
        leave_one_out_error: standard error of this mean over the poses.
        folds: mean difference over the draws.
        folds_spread: standard deviation over the draws. It is not the error of the mean, because
            all draws use the same poses.
        folds_won: fraction of draws in which the second model predicts better.
    """

    first: str
    second: str
    leave_one_out: float
    leave_one_out_error: float
    folds: float
    folds_spread: float
    folds_won: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UnknownsComparison(ReprMixin):
    """Sets of unknowns compared on the same held-out poses.

    Attributes:
        models: scores, sorted by the number of unknowns.
        differences: difference between each later model and the first.
        recommended: name of the set to use.
        reason: reason of the recommendation.
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
    progress: Progress = _no_progress,
    processes: SharedWork = THIS_PROCESS,
) -> UnknownsComparison:
    """Compare sets of unknowns by leave-one-out and repeated k folds, on the same poses and folds.

    The larger set is recommended only if both methods agree: it must be better in leave-one-out by
    more than a standard error, and in most of the k-fold draws. Otherwise the smaller set is
    recommended.

    Args:
        problems: calibrations by name, with the same measurements.
        rng: random generator of the folds.
        draws: number of random splits of all poses.
        count: number of parts of each split.
        progress: called after every fit.
        processes: processes that share the fits.

    Returns:
        Scores of every set, their differences from the first set, and the recommended set.

    Raises:
        InputError: fewer than two problems, or different measurements.
    """
    order = sorted(problems, key=lambda name: len(problems[name].free))
    pose_counts = {problem.n_poses for problem in problems.values()}
    if len(order) < 2 or len(pose_counts) > 1:
        what = f"{counted(len(order), 'set')} of unknowns on {' and '.join(map(str, sorted(pose_counts)))} poses"
        raise InputError.of("compare", what, "give two or more sets for the same measurements")
    n = pose_counts.pop()
    splits = [folds(n, count, rng) for _ in range(draws)]
    total = len(order) * (n + draws * count)
    done = 0
    scores: list[ModelScore] = []
    for name in order:
        problem = problems[name]
        solution = solve_calibration(problem)

        def tick(_: int, __: int) -> None:
            nonlocal done
            done += 1
            progress(done, total)

        all_splits = [_single_poses(n), *splits]
        single, *repeated = _held_out(problem, solution, all_splits, tick, processes)
        scores.append(
            ModelScore(
                name=name,
                unknowns=len(problem.free),
                leave_one_out=single,
                fold_rms=np.array([draw.rms_whitened for draw in repeated]),
                fold_errors=np.array([draw.rms for draw in repeated]),
            )
        )
    differences = tuple(_paired(scores[0], other) for other in scores[1:])
    recommended, reason = _recommended(scores)
    return UnknownsComparison(
        models=tuple(scores), differences=differences, recommended=recommended, reason=reason
    )


def _paired(first: ModelScore, second: ModelScore) -> PairedDifference:
    """Return the paired difference of two models."""
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
    """Return the name of the recommended model and the reason."""
    best = scores[0]
    reasons = []
    for other in scores[1:]:
        pair = _paired(best, other)
        is_better = (
            -pair.leave_one_out > pair.leave_one_out_error
            and pair.folds < 0
            and pair.folds_won > 0.5
        )
        percent = 100 / best.leave_one_out.pose_squares.mean()
        scores_in_words = (
            f"leave-one-out {percent * pair.leave_one_out:+.0f} % of the mean square "
            f"(standard error {percent * pair.leave_one_out_error:.0f} %), "
            f"repeated folds {100 * pair.folds / np.mean(best.fold_rms**2):+.0f} %, "
            f"better in {100 * pair.folds_won:.0f} % of the draws"
        )
        if is_better:
            reasons.append(f"{other.name} predicts better than {best.name} ({scores_in_words})")
            best = other
        else:
            reasons.append(
                f"{other.name} does not predict better than the smaller {best.name} ({scores_in_words})"
            )
    return best.name, "; ".join(reasons)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bootstrap(ReprMixin):
    """Corrections refitted to resampled poses.

    Attributes:
        names: names of the unknowns (n,).
        corrections: corrections of every replicate (replicates, n), SI.
        standard_deviations: standard deviations of the corrections (n,), SI.
        intervals: 2.5 % and 97.5 % quantiles of the corrections (n, 2), SI.
    """

    names: tuple[str, ...] = field(metadata=OMITTED)
    corrections: np.ndarray = field(metadata=OMITTED)
    standard_deviations: np.ndarray = field(metadata=OMITTED)
    intervals: np.ndarray = field(metadata=OMITTED)

    @property
    @in_json()
    def replicates(self) -> int:
        """Number of replicates."""
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
    progress: Progress = _no_progress,
    processes: SharedWork = THIS_PROCESS,
) -> Bootstrap:
    """Fit the unknowns to poses drawn with replacement within each series.

    The standard deviation of the replicates estimates the uncertainty without an assumption about
    the noise. Each replicate is fitted by Gauss-Newton steps from the optimum; the first step uses
    the Jacobian at the optimum.

    Returns:
        Corrections of all refits, and their standard deviations.

    Raises:
        InputError: fewer than two replicates.
        IdentificationError: too few poses to determine the unknowns of a replicate.
    """
    n_rows, n = solution.jacobian.shape
    if replicates < 2:
        raise InputError.of("replicates", f"is {replicates}", "give at least 2; 1000 is usual")
    distinct = 0.63 * n_rows + float((solution.prior > 0).sum())
    if distinct < n:
        what = f"a draw has about {distinct:.0f} different residuals for {counted(n, 'unknown')}"
        raise IdentificationError.of(
            "bootstrap", what, "measure more poses, or rely on the covariance"
        )
    draws = [_draw_poses(problem, rng) for _ in range(replicates)]
    corrections = np.empty((replicates, n))
    work = (problem, solution, np.sqrt(np.diag(solution.inverse(problem.tolerances))))
    for k, correction in enumerate(processes.results(_refit_corrections, work, draws)):
        corrections[k] = correction
        progress(k + 1, replicates)
    return Bootstrap(
        names=problem.names,
        corrections=corrections,
        standard_deviations=corrections.std(axis=0, ddof=1),
        intervals=np.quantile(corrections, [0.025, 0.975], axis=0).T,
    )


def _draw_poses(problem: CalibrationProblem, rng: np.random.Generator) -> np.ndarray:
    """Return the number of times (N,) that each pose is drawn, with replacement in each series."""
    counts = []
    for series in problem.series:
        n = len(series)
        counts.append(rng.multinomial(n, np.full(n, 1.0 / n)))
    return np.concatenate(counts)


def _refit_corrections(
    work: tuple[CalibrationProblem, Solution, np.ndarray], counts: np.ndarray
) -> np.ndarray:
    """Return the corrections (n,) of a fit with poses repeated `counts` times (N,).

    Args:
        work: the calibration, its optimum, and the standard deviations of the unknowns, in
            tolerances.
        counts: number of times that each pose is used.
    """
    problem, solution, deviations = work
    scale = problem.tolerances
    prior = solution.prior
    penalty = np.diag((prior * scale) ** 2)
    lower, upper = limits(problem)
    lower = lower / scale
    upper = upper / scale
    weights = counts[problem.pose_of_row] * solution.weights
    s = solution.correction / scale
    r = solution.residual
    near = solution.evaluation
    J = solution.jacobian * scale
    for iteration in range(MAX_BOOTSTRAP_STEPS):
        weighted = J.T * weights
        gradient = weighted @ r + (prior * scale) ** 2 * s
        step = -np.linalg.lstsq(weighted @ J + penalty, gradient, rcond=1e-14)[0]
        if ((s + step < lower) | (s + step > upper)).any():
            rows = np.concatenate([np.sqrt(weights)[:, None] * J, np.diag(prior * scale)])
            residual = np.concatenate([np.sqrt(weights) * r, prior * scale * s])
            step = lsq_linear(rows, -residual, bounds=(lower - s, upper - s)).x
        s = s + step
        if iteration and (np.abs(step) <= BOOTSTRAP_STEP_TOLERANCE * deviations).all():
            break
        if iteration < MAX_BOOTSTRAP_STEPS - 1:
            near = problem.evaluate(s * scale, near)
            if not near.is_reached:
                break
            r = near.residual
            J = problem.jacobian(near) * scale
    return np.asarray(s * scale)
