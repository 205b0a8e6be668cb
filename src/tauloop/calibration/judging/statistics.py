"""After a fit: accuracy of the parameters, residuals by instrument, and poses that do not belong."""

from __future__ import annotations

import numpy as np
import scipy.special

from tauloop.calibration.problem.problem import CalibrationProblem, Evaluation
from tauloop.calibration.solving.solver import Solution
from tauloop.common.records import dataclass

#: Chance that a sound set of measurements has any residual named an outlier.
FALSE_ALARM = 0.01
#: Outliers taken out one after the other, at most this share of the residuals.
MOST_OUTLIERS = 0.1
#: Probability with which an interval covers the true value.
CONFIDENCE = 0.95
#: Chance that sound noise has a variance factor below, or above, the range that is believed.
BY_CHANCE = 1e-3
#: Eigenvalues of the scaled information below this share of the largest are rounding: the
#: information squares the Jacobian, whose entries have 1e-8 from Newton's method at worst.
UNDETERMINED = 1e-14
#: An unknown takes part in a direction of length one when its share is at least this.
SMALL_SHARE = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorFigures:
    """Errors of one quantity that an instrument reads, SI.

    Attributes:
        series, quantity, unit: such as ``tracker``, ``x``, ``m``.
        poses: how many.
        rms, mean_absolute, largest, bias: root mean square, mean size, largest size, and mean.
    """

    series: str
    quantity: str
    unit: str
    poses: int
    rms: float
    mean_absolute: float
    largest: float
    bias: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlier:
    """A pose whose residual does not belong to the others.

    Attributes:
        pose: number of the pose, counted from zero over all series.
        label: its name.
        quantity: what is off.
        error: how far it is from the others' fit, SI unit of the quantity (m or rad).
        deviations: the same in standard deviations (externally studentised residual).
    """

    pose: int
    label: str
    quantity: str
    error: float
    deviations: float


def error_figures(problem: CalibrationProblem, evaluation: Evaluation) -> tuple[ErrorFigures, ...]:
    """Errors of all series and quantities: predicted less measured."""
    return tuple(
        summarised(measured_pose.series.instrument.name, name, unit, state.errors[:, k])
        for measured_pose, state in zip(problem.measured_poses, evaluation.states, strict=True)
        for k, (name, unit) in enumerate(measured_pose.series.instrument.errors)
    )


def summarised(series: str, quantity: str, unit: str, errors: np.ndarray) -> ErrorFigures:
    """Figures of errors (N,)."""
    return ErrorFigures(
        series=series,
        quantity=quantity,
        unit=unit,
        poses=len(errors),
        rms=float(np.sqrt(np.mean(errors**2))),
        mean_absolute=float(np.abs(errors).mean()),
        largest=float(np.abs(errors).max()),
        bias=float(errors.mean()),
    )


def degrees_of_freedom(solution: Solution) -> int:
    """Number of residuals and priors less the number of unknowns."""
    return len(solution.residual) + int((solution.prior > 0).sum()) - len(solution.correction)


def interval_factor(freedom: int, *, known_noise: bool) -> float | None:
    """Half-width of a 95 % interval over the standard deviation; None where nothing sizes the noise.

    Student's quantile where the noise is found from the residuals, the normal one where it is
    known.

    Args:
        freedom: degrees of freedom of the fit.
        known_noise: whether the stated noise is believed.
    """
    if known_noise:
        return float(scipy.special.ndtri(0.5 + CONFIDENCE / 2))
    if freedom <= 0:
        return None
    return float(scipy.special.stdtrit(freedom, 0.5 + CONFIDENCE / 2))


def undetermined(solution: Solution, scale: np.ndarray) -> np.ndarray:
    """Which unknowns (n,) take part in a direction that nothing determines at the optimum.

    A direction counts where its eigenvalue of the information (in units of `scale`) is lost in
    rounding: the pseudo-inverse would give such a direction no variance at all.

    Args:
        solution: the optimum.
        scale: sizes of the unknowns (n,).
    """
    sizes, directions = np.linalg.eigh(solution.information * np.outer(scale, scale))
    is_lost = sizes <= UNDETERMINED * sizes.max(initial=0.0)
    return np.asarray((np.abs(directions[:, is_lost]) > SMALL_SHARE).any(axis=1))


def variance_factor(solution: Solution) -> float | None:
    """Weighted sum of squares (residuals and priors) over degrees of freedom: one where noise is as stated.

    Priors count as measurements of zero. None without degrees of freedom.
    """
    prior = solution.prior * solution.correction
    freedom = degrees_of_freedom(solution)
    if freedom <= 0:
        return None
    return float((np.sum(solution.weights * solution.residual**2) + prior @ prior) / freedom)


def variance_range(freedom: int, usual: tuple[float, float]) -> tuple[float, float]:
    """Least and largest variance factor that stated noise explains: the usual ones, wider where chance goes further.

    Args:
        freedom: degrees of freedom of the fit.
        usual: the range where they are many.
    """
    if freedom <= 0:
        return usual
    least, largest = (
        float(scipy.special.chdtri(freedom, p)) / freedom for p in (1.0 - BY_CHANCE, BY_CHANCE)
    )
    return min(usual[0], least), max(usual[1], largest)


def covariance(solution: Solution, factor: float, scale: np.ndarray) -> np.ndarray:
    """Covariance (n, n), SI: factor times the inverse information, worked out in units of `scale` (n,)."""
    return np.asarray(factor * solution.inverse(scale) * np.outer(scale, scale))


def correlations(covariance: np.ndarray) -> np.ndarray:
    """Correlation matrix (n, n)."""
    deviations = np.sqrt(np.diag(covariance))
    return np.asarray(
        covariance / np.maximum(np.outer(deviations, deviations), np.finfo(float).tiny)
    )


def outliers(
    problem: CalibrationProblem, solution: Solution, errors: tuple[np.ndarray, ...]
) -> tuple[Outlier, ...]:
    """Poses whose externally studentised residuals are too large, the worst first.

    t_i = r_i / (s_(i) sqrt(1 - h_i)) with the leverage h_i and the standard deviation s_(i) without
    that residual; named when beyond Student's quantile for a false alarm in one of a hundred sound
    sets (Bonferroni). After each find, its pose leaves the (linearised) fit, so that a gross error
    does not hide a smaller one.

    Args:
        problem: the calibration.
        solution: its optimum.
        errors: the instruments' errors there (N, n_errors), series by series, to be told.
    """
    J, r = solution.jacobian, np.array(solution.residual)
    pose_of_row = problem.pose_of_row
    prior = np.diag(solution.prior**2)
    kept = np.ones(len(r), dtype=bool)
    outlying: list[Outlier] = []
    for _ in range(max(1, int(MOST_OUTLIERS * problem.n_poses))):
        n = J.shape[1] - int((solution.prior > 0).sum())
        freedom = int(kept.sum()) - n - 1
        if freedom < 2:
            break
        scale = problem.tolerances
        Js = J * scale
        inverse = np.linalg.pinv(
            Js[kept].T @ Js[kept] + prior * np.outer(scale, scale), hermitian=True
        )
        step = inverse @ (Js[kept].T @ r[kept] + scale * solution.prior**2 * solution.correction)
        now = r - Js @ step
        leverage = np.einsum("ij,jk,ik->i", Js, inverse, Js)
        share = np.clip(1.0 - leverage, 1e-9, 1.0)
        total = float(now[kept] @ now[kept])
        without = np.sqrt(np.maximum(total - now**2 / share, 1e-300) / freedom)
        t = np.where(kept & (share > 1e-6), np.abs(now) / (without * np.sqrt(share)), 0.0)
        worst = int(t.argmax())
        if t[worst] <= -scipy.special.stdtrit(freedom, FALSE_ALARM / (2 * len(r))):
            break
        outlying.append(_outlier(problem, errors, worst, float(t[worst])))
        kept &= pose_of_row != pose_of_row[worst]
    return tuple(outlying)


def _outlier(
    problem: CalibrationProblem, errors: tuple[np.ndarray, ...], row: int, deviations: float
) -> Outlier:
    pose = local = int(problem.pose_of_row[row])
    for series, of_series in zip(problem.series, errors, strict=True):
        if local < len(series):
            k = int(np.abs(of_series[local] / series.sigma).argmax())
            name, _ = series.instrument.errors[k]
            return Outlier(
                pose=pose,
                label=f"{series.instrument.name}, {series.label(local)}",
                quantity=name,
                error=float(of_series[local, k]),
                deviations=deviations,
            )
        local -= len(series)
    raise IndexError(row)
