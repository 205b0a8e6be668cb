"""What residuals look like after a fit: trends, correlation from pose to pose, and their distribution.

Noise has none of these. What the model lacks (deflection, heat, a swapped sign) shows as a trend
against the place or the time; standard deviations then say too little.

- trend against a coordinate u: share of the residuals' square that a + b P1(u) + c P2(u) takes
  (Legendre polynomials), with the F test of b = c = 0;
- correlation of neighbours in the order of measurement, r1 = sum(e_i e_(i+1)) / sum(e_i^2), and
  Ljung and Box's Q of the first lags against chi square (Ljung and Box 1978);
- skewness, excess kurtosis, and Shapiro and Wilk's test of a normal distribution.

All are of the instruments' errors over the standard deviation that leverage leaves them, so that
poses which fits bend to do not look better than others. Least squares have taken out what the
parameters can mimic: these tests are cautious, not keen.
"""

from __future__ import annotations

import numpy as np
import scipy.stats

from tauloop.calibration.problem.problem import CalibrationProblem
from tauloop.calibration.solving.solver import Solution
from tauloop.common.errors import IdentificationError, solving
from tauloop.common.records import dataclass
from tauloop.common.shown import Shown

#: Chance that any of all tests says something about residuals that are noise.
FALSE_ALARM = 0.01
#: Fewer residuals of a quantity than this are not looked at.
LEAST = 12
#: Lags of Ljung and Box's test, at most.
LAGS = 8
#: Most residuals for which Shapiro and Wilk's p is good (SciPy says so).
MOST_SHAPIRO = 5000
#: A coordinate that spreads less than this share of the largest of its unit is none to trend
#: against.
SPREAD = 1e-3
#: Residuals of which less than this is free (1 - leverage) say nothing about noise.
FREE = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """A quadratic trend of one quantity's residuals.

    Attributes:
        against: a coordinate of the target, an actuator, or ``order`` of measurement.
        share: of the sum of squares about the mean that the trend takes.
        slope, curvature: factors of P1 and P2 over the range of the coordinate, SI unit of the
            quantity.
        p: chance of such a share without a trend.
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
        series, quantity, unit: such as ``tracker``, ``x``, ``m``.
        number: of residuals looked at.
        trends: all that were looked for.
        correlation: of neighbours in the order of measurement; None where too few.
        correlation_p: of Ljung and Box's test.
        skewness, kurtosis: the latter in excess of a normal distribution's.
        normality_p: of Shapiro and Wilk's test.
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
class ResidualAnalysis(Shown):
    """What was seen in all residuals.

    Attributes:
        quantities: series by series.
        level: p below which a single test counts: `FALSE_ALARM` over the number of tests
            (Bonferroni).
        remarks: what chance does not make, in words; empty for noise.
    """

    quantities: tuple[QuantityResiduals, ...]
    level: float
    remarks: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """In one sentence."""
        if self.remarks:
            return "; ".join(self.remarks)
        looked = [item for item in self.quantities if item.correlation is not None]
        if not looked:
            return f"too few to look for trends ({LEAST} of a quantity are needed)"
        return f"no trend, no correlation, no other distribution than noise's beyond chance (p < {self.level:.1g})"


@solving(IdentificationError)
def analyse_residuals(
    problem: CalibrationProblem, solution: Solution, errors: tuple[np.ndarray, ...]
) -> ResidualAnalysis:
    """Look for trends, correlation and another distribution than a normal one.

    Args:
        problem: the calibration; poses of each series are in the order of measurement.
        solution: its optimum.
        errors: the instruments' errors there (N, n_errors), series by series, SI.
    """
    shares = _free_shares(problem, solution)
    start = np.zeros(len(problem.unknowns))
    rows: list[QuantityResiduals] = []
    for measured_pose, own, free in zip(
        problem.predicting().measured_poses, errors, shares, strict=True
    ):
        points, encoders = (
            measured_pose.points(start, measured_pose.q),
            measured_pose.series.encoders,
        )
        if measured_pose.poses > 1:  # of a reading between poses: the middle of them
            points, encoders = (
                rows.reshape(len(own), measured_pose.poses, -1).mean(axis=1)
                for rows in (points, encoders)
            )
        against = _coordinates(problem, points, encoders)
        scale = np.sqrt(np.maximum(free, FREE))
        sound = free > FREE
        for k, (name, unit) in enumerate(measured_pose.series.instrument.errors):
            e = own[sound, k] / scale[sound]
            places = {coordinate: u[sound] for coordinate, u in against.items()}
            rows.append(_quantity(measured_pose.series.instrument.name, name, unit, e, places))
    tests = sum(len(item.trends) + 2 for item in rows if item.correlation is not None)
    level = FALSE_ALARM / max(tests, 1)
    return ResidualAnalysis(
        quantities=tuple(rows),
        level=level,
        remarks=tuple(line for item in rows for line in _remarks(item, level)),
    )


def _free_shares(problem: CalibrationProblem, solution: Solution) -> list[np.ndarray]:
    """Mean of 1 - leverage over the residuals of every pose, series by series."""
    scale = problem.tolerances
    J = solution.jacobian * scale
    free = 1.0 - solution.weights * ((J @ solution.inverse(scale)) * J).sum(axis=1)
    counts = np.bincount(problem.pose_of_row, minlength=problem.n_poses)
    of_pose = np.bincount(
        problem.pose_of_row, weights=free, minlength=problem.n_poses
    ) / np.maximum(counts, 1)
    return np.split(of_pose, np.cumsum([len(series) for series in problem.series])[:-1])


def _coordinates(
    problem: CalibrationProblem, points: np.ndarray, encoders: np.ndarray
) -> dict[str, np.ndarray]:
    """What residuals may trend against, each scaled to -1..1; what hardly varies is left out."""
    named = {}
    groups = (
        {f"target {letter}": points[:, i] for i, letter in enumerate("xyz")},
        {actuator.name: encoders[:, i] for i, actuator in enumerate(problem.mechanism.actuators)},
        {"order": np.arange(len(points), dtype=float)},
    )
    for group in groups:
        widest = max((float(np.ptp(values)) for values in group.values()), default=0.0)
        for name, values in group.items():
            width = float(np.ptp(values))
            if width > SPREAD * widest:
                named[name] = 2.0 * (values - values.min()) / width - 1.0
    return named


def _quantity(
    series: str, quantity: str, unit: str, e: np.ndarray, against: dict[str, np.ndarray]
) -> QuantityResiduals:
    about = {"series": series, "quantity": quantity, "unit": unit, "number": len(e)}
    d = e - e.mean() if len(e) else e
    if len(e) < LEAST or not float(d @ d) > 0.0:
        nothing = dict.fromkeys(
            ("correlation", "correlation_p", "skewness", "kurtosis", "normality_p")
        )
        return QuantityResiduals(**about, trends=(), **nothing)  # type: ignore[arg-type]
    lags = min(LAGS, len(e) // 5)
    r = np.array([float(d[: len(d) - j] @ d[j:]) for j in range(1, lags + 1)]) / float(d @ d)
    Q = len(e) * (len(e) + 2) * float((r**2 / (len(e) - np.arange(1, lags + 1))).sum())
    return QuantityResiduals(
        **about,  # type: ignore[arg-type]
        trends=tuple(_trend(name, u, e) for name, u in against.items()),
        correlation=float(r[0]),
        correlation_p=float(scipy.stats.chi2.sf(Q, lags)),
        skewness=float(scipy.stats.skew(e)),
        kurtosis=float(scipy.stats.kurtosis(e)),
        normality_p=float(scipy.stats.shapiro(e[:MOST_SHAPIRO]).pvalue),
    )


def _trend(name: str, u: np.ndarray, e: np.ndarray) -> Trend:
    """Least squares of Legendre polynomials up to the second, and the F test of the last two."""
    basis = np.polynomial.legendre.legvander(u, 2)
    coefficients = np.linalg.lstsq(basis, e, rcond=None)[0]
    total, left = float(((e - e.mean()) ** 2).sum()), float(((e - basis @ coefficients) ** 2).sum())
    freedom = len(e) - 3
    F = (max(total - left, 0.0) / 2) / max(left / freedom, np.finfo(float).tiny)
    return Trend(
        against=name,
        share=max(total - left, 0.0) / total,
        slope=float(coefficients[1]),
        curvature=float(coefficients[2]),
        p=float(scipy.stats.f.sf(F, 2, freedom)),
    )


def _remarks(item: QuantityResiduals, level: float) -> list[str]:
    what = f"{item.quantity} of {item.series}"
    lines = []
    clear = sorted((trend for trend in item.trends if trend.p < level), key=lambda trend: trend.p)
    for trend in clear[:1]:
        more = (
            f" (and against {', '.join(other.against for other in clear[1:])})" if clear[1:] else ""
        )
        cause = (
            "heat, or something that came loose"
            if trend.against == "order"
            else "the model lacks something that depends on the place: parameters left out, or deflection"
        )
        lines.append(
            f"{what} trends with {trend.against}{more}, which takes {100 * trend.share:.0f} % of its square "
            f"(p {trend.p:.1g}): {cause}"
        )
    if item.correlation_p is not None and item.correlation_p < level:
        lines.append(
            f"{what} is correlated from pose to pose ({item.correlation or 0:+.2f} between neighbours, "
            f"p {item.correlation_p:.1g}): standard deviations are too small"
        )
    if item.normality_p is not None and item.normality_p < level:
        lines.append(
            f"{what} is not normally distributed (skewness {item.skewness:+.2f}, excess kurtosis {item.kurtosis:+.2f}, "
            f"p {item.normality_p:.1g}): look at the outliers, or use a robust loss"
        )
    return lines
