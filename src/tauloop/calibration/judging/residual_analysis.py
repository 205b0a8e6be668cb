"""Tests of the residuals after a fit: trends, correlation from pose to pose, and distribution.

White noise has no trends and no correlation. Effects that the model lacks (deflection, thermal
expansion, a wrong sign) appear as a trend with position or time; standard deviations are then too
small.

- Trend with a coordinate u: the fraction of the sum of squares that a + b P1(u) + c P2(u) explains
  (Legendre polynomials), with the F test of b = c = 0.
- Lag-1 autocorrelation in the order of measurement, r1 = sum(e_i e_(i+1)) / sum(e_i^2), and the
  Ljung-Box statistic Q of the first lags, which is chi-squared distributed (Ljung and Box 1978).
- Skewness, excess kurtosis, and the Shapiro-Wilk test of a normal distribution.

The tests use the instruments' errors divided by sqrt(1 - leverage), so that errors at poses with
high leverage are comparable with the others. The tests are conservative, because the fitted
parameters absorb part of any trend.
"""

from __future__ import annotations

import numpy as np
import scipy.stats

from tauloop.calibration.problem.problem import CalibrationProblem
from tauloop.calibration.solving.solver import Solution
from tauloop.common.errors import IdentificationError, solving
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin

#: Probability that at least one of all tests fails for residuals that are white noise.
ANALYSIS_FALSE_ALARM = 0.01
#: Minimum number of residuals of a quantity for these tests.
MIN_RESIDUALS = 12
#: Maximum number of lags of Ljung and Box's test.
MAX_LAGS = 8
#: Maximum number of residuals for which Shapiro and Wilk's p-value is accurate (SciPy).
MAX_SHAPIRO_SAMPLES = 5000
#: Trends are not fitted for a coordinate whose range is below this fraction of the largest range
#: of its group.
MIN_RELATIVE_RANGE = 1e-3
#: Residuals with a smaller 1 - leverage than this do not contain information about noise.
MIN_FREE_FRACTION = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """A quadratic trend of one quantity's residuals.

    Attributes:
        against: a coordinate of the target, an actuator, or ``order`` of measurement.
        share: fraction of the sum of squares about the mean that the trend explains.
        slope: coefficient of P1 over the range of the coordinate, SI unit of the quantity.
        curvature: coefficient of P2 over the range of the coordinate, SI unit of the quantity.
        p: p-value of the F test of both coefficients.
    """

    against: str
    share: float
    slope: float
    curvature: float
    p: float


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantityResiduals:
    """Residuals of one quantity of one series.

    Attributes:
        series: name of the instrument, such as ``tracker``.
        quantity: name of the quantity, such as ``x``.
        unit: SI unit of the quantity.
        number: number of residuals tested.
        trends: a trend with each coordinate.
        correlation: lag-1 autocorrelation in the order of measurement. This value and those below
            are None if there are too few residuals.
        correlation_p: p-value of the Ljung-Box test.
        skewness: skewness of the distribution.
        kurtosis: excess kurtosis of the distribution.
        normality_p: p-value of the Shapiro-Wilk test.
    """

    series: str
    quantity: str
    unit: str
    number: int
    trends: tuple[Trend, ...]
    correlation: float | None
    correlation_p: float | None
    skewness: float | None
    kurtosis: float | None
    normality_p: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResidualAnalysis(ReprMixin):
    """Results of the tests of all residuals.

    Attributes:
        quantities: results for each quantity, series by series.
        level: p-value below which a test is significant: `ANALYSIS_FALSE_ALARM` divided by the
            number of tests (Bonferroni).
        remarks: descriptions of the significant results; empty for white noise.
    """

    quantities: tuple[QuantityResiduals, ...]
    level: float
    remarks: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """All results in one sentence."""
        if self.remarks:
            return "; ".join(self.remarks)
        if all(item.correlation is None for item in self.quantities):
            return (
                f"too few residuals to test for trends ({MIN_RESIDUALS} of a quantity are needed)"
            )
        return (
            "no significant trend, correlation or deviation from a normal distribution "
            f"(p < {self.level:.1g})"
        )


@solving(IdentificationError)
def analyse_residuals(
    problem: CalibrationProblem, solution: Solution, errors: tuple[np.ndarray, ...]
) -> ResidualAnalysis:
    """Test residuals for trends, correlation and deviations from a normal distribution.

    Args:
        problem: the calibration; poses of each series are in the order of measurement.
        solution: optimum of the calibration.
        errors: errors of the instruments at the optimum (N, n_errors), series by series, SI.

    Returns:
        Results of the tests for each measured quantity, with remarks on the tests that fail.
    """
    free_fractions = _free_fractions(problem, solution)
    start = np.zeros(len(problem.unknowns))
    series_of_poses = problem.predicting().measured_poses
    quantities: list[QuantityResiduals] = []
    for measured_poses, series_errors, free_fraction in zip(
        series_of_poses, errors, free_fractions, strict=True
    ):
        points = measured_poses.points(start, measured_poses.q)
        encoders = measured_poses.series.encoders
        if measured_poses.poses > 1:
            # A reading that belongs to several poses is located at their mean.
            shape = (len(series_errors), measured_poses.poses, -1)
            points = points.reshape(shape).mean(axis=1)
            encoders = encoders.reshape(shape).mean(axis=1)
        coordinates = _coordinates(problem, points, encoders)
        scale = np.sqrt(np.maximum(free_fraction, MIN_FREE_FRACTION))
        is_used = free_fraction > MIN_FREE_FRACTION
        used_coordinates = {coordinate: u[is_used] for coordinate, u in coordinates.items()}
        instrument = measured_poses.series.instrument
        for k, (name, unit) in enumerate(instrument.errors):
            e = series_errors[is_used, k] / scale[is_used]
            quantities.append(_quantity(instrument.name, name, unit, e, used_coordinates))
    tests = sum(len(item.trends) + 2 for item in quantities if item.correlation is not None)
    level = ANALYSIS_FALSE_ALARM / max(tests, 1)
    return ResidualAnalysis(
        quantities=tuple(quantities),
        level=level,
        remarks=tuple(remark for item in quantities for remark in _remarks(item, level)),
    )


def _free_fractions(problem: CalibrationProblem, solution: Solution) -> list[np.ndarray]:
    """Return the mean of 1 - leverage over the residuals of every pose, series by series."""
    scale = problem.tolerances
    J = solution.jacobian * scale
    free = 1.0 - solution.weights * ((J @ solution.inverse(scale)) * J).sum(axis=1)
    counts = np.bincount(problem.pose_of_row, minlength=problem.n_poses)
    sums = np.bincount(problem.pose_of_row, weights=free, minlength=problem.n_poses)
    means = sums / np.maximum(counts, 1)
    return np.split(means, np.cumsum([len(series) for series in problem.series])[:-1])


def _coordinates(
    problem: CalibrationProblem, points: np.ndarray, encoders: np.ndarray
) -> dict[str, np.ndarray]:
    """Return the coordinates for trends, scaled to [-1, 1], without nearly constant ones."""
    scaled = {}
    groups = (
        {f"target {letter}": points[:, i] for i, letter in enumerate("xyz")},
        {actuator.name: encoders[:, i] for i, actuator in enumerate(problem.mechanism.actuators)},
        {"order": np.arange(len(points), dtype=float)},
    )
    for group in groups:
        largest_range = max((float(np.ptp(values)) for values in group.values()), default=0.0)
        for name, values in group.items():
            value_range = float(np.ptp(values))
            if value_range > MIN_RELATIVE_RANGE * largest_range:
                scaled[name] = 2.0 * (values - values.min()) / value_range - 1.0
    return scaled


def _quantity(
    series: str, quantity: str, unit: str, e: np.ndarray, against: dict[str, np.ndarray]
) -> QuantityResiduals:
    """Return the tests of the residuals e (N,) of one quantity, with trends over coordinates."""
    n = len(e)
    deviations = e - e.mean() if n else e
    sum_of_squares = float(deviations @ deviations)
    if n < MIN_RESIDUALS or not sum_of_squares > 0.0:
        return QuantityResiduals(
            series=series,
            quantity=quantity,
            unit=unit,
            number=n,
            trends=(),
            correlation=None,
            correlation_p=None,
            skewness=None,
            kurtosis=None,
            normality_p=None,
        )
    lags = np.arange(1, min(MAX_LAGS, n // 5) + 1)
    products = [float(deviations[: n - lag] @ deviations[lag:]) for lag in lags]
    r = np.array(products) / sum_of_squares
    Q = n * (n + 2) * float((r**2 / (n - lags)).sum())
    return QuantityResiduals(
        series=series,
        quantity=quantity,
        unit=unit,
        number=n,
        trends=tuple(_trend(name, u, e) for name, u in against.items()),
        correlation=float(r[0]),
        correlation_p=float(scipy.stats.chi2.sf(Q, len(lags))),
        skewness=float(scipy.stats.skew(e)),
        kurtosis=float(scipy.stats.kurtosis(e)),
        normality_p=float(scipy.stats.shapiro(e[:MAX_SHAPIRO_SAMPLES]).pvalue),
    )


def _trend(name: str, u: np.ndarray, e: np.ndarray) -> Trend:
    """Fit Legendre polynomials up to degree two, with the F test of degrees one and two."""
    basis = np.polynomial.legendre.legvander(u, 2)
    coefficients = np.linalg.lstsq(basis, e, rcond=None)[0]
    total = float(((e - e.mean()) ** 2).sum())
    remainder = float(((e - basis @ coefficients) ** 2).sum())
    explained = max(total - remainder, 0.0)
    dof = len(e) - 3
    F = (explained / 2) / max(remainder / dof, np.finfo(float).tiny)
    return Trend(
        against=name,
        share=explained / total,
        slope=float(coefficients[1]),
        curvature=float(coefficients[2]),
        p=float(scipy.stats.f.sf(F, 2, dof)),
    )


def _remarks(item: QuantityResiduals, level: float) -> list[str]:
    """Return descriptions of the significant results of a quantity."""
    name = f"{item.quantity} of {item.series}"
    remarks = []
    significant = sorted(
        (trend for trend in item.trends if trend.p < level), key=lambda trend: trend.p
    )
    if significant:
        strongest = significant[0]
        others = ", ".join(trend.against for trend in significant[1:])
        also = f" (and with {others})" if others else ""
        if strongest.against == "order":
            cause = "thermal drift, or a loose part"
        else:
            cause = "the model lacks an effect that depends on position: missing parameters, or deflection"
        remarks.append(
            f"{name} has a trend with {strongest.against}{also}, which explains {100 * strongest.share:.0f} % of its "
            f"sum of squares (p {strongest.p:.1g}): {cause}"
        )
    if item.correlation_p is not None and item.correlation_p < level:
        remarks.append(
            f"{name} is correlated from pose to pose ({item.correlation or 0:+.2f} between neighbors, "
            f"p {item.correlation_p:.1g}): standard deviations are too small"
        )
    if item.normality_p is not None and item.normality_p < level:
        remarks.append(
            f"{name} is not normally distributed (skewness {item.skewness:+.2f}, excess kurtosis {item.kurtosis:+.2f}, "
            f"p {item.normality_p:.1g}): check the outliers, or use a robust loss"
        )
    return remarks
