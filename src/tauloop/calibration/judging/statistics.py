"""Statistics after a fit: uncertainty of the parameters, errors by instrument, and outliers."""

from __future__ import annotations

import numpy as np
import scipy.special

from tauloop.calibration.problem.problem import CalibrationProblem, Evaluation
from tauloop.calibration.solving.solver import Solution
from tauloop.common.names.deprecated import old_attribute
from tauloop.common.records import dataclass

#: Family-wise false-alarm probability of the outlier test.
OUTLIER_FALSE_ALARM = 0.01
#: Outliers are removed one after the other, up to this fraction of the poses.
MAX_OUTLIER_FRACTION = 0.1
#: Probability with which an interval covers the true value.
CONFIDENCE = 0.95
#: Probability that the variance factor is below (or above) the accepted range although the given
#: noise is correct.
VARIANCE_FALSE_ALARM = 1e-3
#: Eigenvalues of the scaled information below this fraction of the largest are rounding errors.
#: Errors of the Jacobian of up to 1e-8, from Newton's method, are squared in the information.
INFORMATION_TOLERANCE = 1e-14
#: A unit direction contains an unknown if the absolute value of its component is above this.
MIN_UNKNOWN_COMPONENT = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorStatistics:
    """Errors of one quantity that an instrument reads, SI.

    Attributes:
        instrument: name of the instrument, such as ``tracker``.
        quantity: name of the quantity, such as ``x``.
        unit: SI unit of the quantity.
        n_poses: number of measured poses of the instrument.
        rms: root mean square.
        mean_absolute: mean absolute value.
        largest: largest absolute value.
        bias: mean.
    """

    instrument: str
    quantity: str
    unit: str
    n_poses: int
    rms: float
    mean_absolute: float
    largest: float
    bias: float

    series = old_attribute("series", "instrument")
    poses = old_attribute("poses", "n_poses")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlier:
    """A pose with an outlying residual.

    Attributes:
        pose_index: index of the measured pose, counted from zero over all series.
        label: name of the pose.
        quantity: quantity with the outlying error.
        error: error of the quantity, SI (m or rad).
        deviations: absolute externally studentized residual: the number of standard deviations.
    """

    pose_index: int
    label: str
    quantity: str
    error: float
    deviations: float

    pose = old_attribute("pose", "pose_index")


def error_statistics(
    problem: CalibrationProblem, evaluation: Evaluation
) -> tuple[ErrorStatistics, ...]:
    """Return the statistics of errors (predicted minus measured) of all series and quantities."""
    statistics: list[ErrorStatistics] = []
    for measured_poses, state in zip(problem.measured_poses, evaluation.states, strict=True):
        instrument = measured_poses.series.instrument
        statistics += [
            _statistics(instrument.name, name, unit, state.errors[:, k])
            for k, (name, unit) in enumerate(instrument.errors)
        ]
    return tuple(statistics)


def _statistics(instrument: str, quantity: str, unit: str, errors: np.ndarray) -> ErrorStatistics:
    """Return the statistics of errors (N,)."""
    return ErrorStatistics(
        instrument=instrument,
        quantity=quantity,
        unit=unit,
        n_poses=len(errors),
        rms=float(np.sqrt(np.mean(errors**2))),
        mean_absolute=float(np.abs(errors).mean()),
        largest=float(np.abs(errors).max()),
        bias=float(errors.mean()),
    )


def degrees_of_freedom(solution: Solution) -> int:
    """Return the number of residuals and priors minus the number of unknowns."""
    return len(solution.residual) + int((solution.prior > 0).sum()) - len(solution.correction)


def interval_factor(dof: int, *, known_noise: bool) -> float | None:
    """Return the half-width of an interval at `CONFIDENCE`, in standard deviations.

    This is Student's quantile if the noise is estimated from the residuals, and the normal quantile
    if it is known.

    Args:
        dof: degrees of freedom of the fit.
        known_noise: whether the given noise is used.

    Returns:
        The factor; None if there are no degrees of freedom to estimate the noise.
    """
    if known_noise:
        return float(scipy.special.ndtri(0.5 + CONFIDENCE / 2))
    if dof <= 0:
        return None
    return float(scipy.special.stdtrit(dof, 0.5 + CONFIDENCE / 2))


def undetermined(solution: Solution, scale: np.ndarray) -> np.ndarray:
    """Return a mask (n,) of unknowns with a component along an undetermined direction.

    The eigenvalue of the information (in units of `scale`) for such a direction is a rounding
    error. The pseudo-inverse would assign zero variance to it.

    Args:
        solution: optimum of the calibration.
        scale: expected magnitudes of the unknowns (n,), such as their tolerances.
    """
    eigenvalues, directions = np.linalg.eigh(solution.information * np.outer(scale, scale))
    is_undetermined = eigenvalues <= INFORMATION_TOLERANCE * eigenvalues.max(initial=0.0)
    return np.asarray((np.abs(directions[:, is_undetermined]) > MIN_UNKNOWN_COMPONENT).any(axis=1))


def variance_factor(solution: Solution) -> float | None:
    """Return the reduced chi-square: weighted sum of squares divided by the degrees of freedom.

    The squares are those of residuals and priors; priors count as measurements of zero. The value
    is about one if the given noise is correct, and None if there are no degrees of freedom.
    """
    prior = solution.prior * solution.correction
    dof = degrees_of_freedom(solution)
    if dof <= 0:
        return None
    return float((np.sum(solution.weights * solution.residual**2) + prior @ prior) / dof)


def variance_range(dof: int, base_range: tuple[float, float]) -> tuple[float, float]:
    """Return the smallest and largest variance factor that is consistent with the given noise.

    Args:
        dof: degrees of freedom of the fit.
        base_range: the range for many degrees of freedom. For few degrees of freedom, quantiles of
            the chi-squared distribution widen it.
    """
    if dof <= 0:
        return base_range
    smallest = float(scipy.special.chdtri(dof, 1.0 - VARIANCE_FALSE_ALARM)) / dof
    largest = float(scipy.special.chdtri(dof, VARIANCE_FALSE_ALARM)) / dof
    return min(base_range[0], smallest), max(base_range[1], largest)


def covariance(solution: Solution, factor: float, scale: np.ndarray) -> np.ndarray:
    """Return the covariance (n, n), SI: factor times the inverse information.

    The inverse is computed in units of `scale` (n,).
    """
    return np.asarray(factor * solution.inverse(scale) * np.outer(scale, scale))


def correlations(covariance: np.ndarray) -> np.ndarray:
    """Return the correlation matrix (n, n) of a covariance."""
    deviations = np.sqrt(np.diag(covariance))
    return np.asarray(
        covariance / np.maximum(np.outer(deviations, deviations), np.finfo(float).tiny)
    )


def outliers(
    problem: CalibrationProblem, solution: Solution, errors: tuple[np.ndarray, ...]
) -> tuple[Outlier, ...]:
    """Return the poses with outlying residuals, the worst first.

    The externally studentized residual is t_i = r_i / (s_(i) sqrt(1 - h_i)), with the leverage h_i
    and the standard deviation s_(i) without that residual. A residual is an outlier if |t_i|
    exceeds Student's quantile at the family-wise level `OUTLIER_FALSE_ALARM` (Bonferroni). The pose
    of each outlier is removed from the linearized fit, so that a gross error does not hide a
    smaller one.

    Args:
        problem: the calibration.
        solution: optimum of the calibration.
        errors: errors of the instruments at the optimum (N, n_errors), series by series.
    """
    J = solution.jacobian
    r = np.array(solution.residual)
    pose_of_row = problem.pose_of_row
    prior = np.diag(solution.prior**2)
    scale = problem.tolerances
    Js = J * scale
    is_used = np.ones(len(r), dtype=bool)
    outlying: list[Outlier] = []
    for _ in range(max(1, int(MAX_OUTLIER_FRACTION * problem.n_poses))):
        n_free = J.shape[1] - int((solution.prior > 0).sum())
        dof = int(is_used.sum()) - n_free - 1
        if dof < 2:
            break
        J_used = Js[is_used]
        inverse = np.linalg.pinv(J_used.T @ J_used + prior * np.outer(scale, scale), hermitian=True)
        # Change of the linearized fit without the poses of the outliers.
        correction = inverse @ (
            J_used.T @ r[is_used] + scale * solution.prior**2 * solution.correction
        )
        new_residual = r - Js @ correction
        leverage = np.einsum("ij,jk,ik->i", Js, inverse, Js)
        free_fraction = np.clip(1.0 - leverage, 1e-9, 1.0)
        total = float(new_residual[is_used] @ new_residual[is_used])
        deviation = np.sqrt(np.maximum(total - new_residual**2 / free_fraction, 1e-300) / dof)
        studentized = np.abs(new_residual) / (deviation * np.sqrt(free_fraction))
        t = np.where(is_used & (free_fraction > 1e-6), studentized, 0.0)
        worst = int(t.argmax())
        if t[worst] <= -scipy.special.stdtrit(dof, OUTLIER_FALSE_ALARM / (2 * len(r))):
            break
        outlying.append(_outlier(problem, errors, worst, float(t[worst])))
        is_used &= pose_of_row != pose_of_row[worst]
    return tuple(outlying)


def _outlier(
    problem: CalibrationProblem, errors: tuple[np.ndarray, ...], row: int, deviations: float
) -> Outlier:
    """Return the outlier for the residual with index `row`.

    Its quantity is the one with the largest error, in standard deviations of the instrument, at the
    pose of this residual.
    """
    pose = int(problem.pose_of_row[row])
    index_in_series = pose
    for series, series_errors in zip(problem.series, errors, strict=True):
        if index_in_series < len(series):
            k = int(np.abs(series_errors[index_in_series] / series.sigma).argmax())
            name, _ = series.instrument.errors[k]
            return Outlier(
                pose_index=pose,
                label=f"{series.instrument.name}, {series.label(index_in_series)}",
                quantity=name,
                error=float(series_errors[index_in_series, k]),
                deviations=deviations,
            )
        index_in_series -= len(series)
    raise IndexError(row)
