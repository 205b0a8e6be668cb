"""Fit of a calibration: checks of the measurements, identifiable unknowns, solution, assessment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace

import numpy as np

from tauloop.calibration.judging.base_combinations import base_combinations
from tauloop.calibration.judging.curvature import second_order_share
from tauloop.calibration.judging.deflection_change import deflection_change
from tauloop.calibration.judging.encoder_misfits import encoder_misfits
from tauloop.calibration.judging.hanging import hanging
from tauloop.calibration.judging.identifiability import identifiability
from tauloop.calibration.judging.prior_tightness import prior_tightness
from tauloop.calibration.judging.statistics import (
    correlations,
    covariance,
    degrees_of_freedom,
    error_statistics,
    interval_factor,
    outliers,
    undetermined,
    variance_factor,
    variance_range,
)
from tauloop.calibration.problem.pose_equations import independent_rows
from tauloop.calibration.problem.problem import CalibrationProblem, Evaluation
from tauloop.calibration.problem.unknowns import Bounds, Corrected, Unknown, read_bounds
from tauloop.calibration.result import Calibration, EstimatedUnknown
from tauloop.calibration.solving.checks import measurement_problems
from tauloop.calibration.solving.exchanges import DEFAULT_SEARCH_TIME
from tauloop.calibration.solving.losses import LOSSES, Loss, Squares
from tauloop.calibration.solving.solver import SQUARES, Solution, bounds_met, solve_calibration
from tauloop.common.errors import IdentificationError, solving
from tauloop.common.options import Options, option
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, Provenance, diagnostic, plain, provenance
from tauloop.elasticity.heat.expansion import rise_diagnostics
from tauloop.equations.assembly.limits import limits_of
from tauloop.mechanism.description import units

#: Largest accepted loop residual at the optimum, relative to the characteristic length (10 nm for a
#: machine of 0.2 m), or as a plain number.
LOOP_TOLERANCE = 5e-8
#: Largest cosine between the residuals and a column of the Jacobian at an optimum.
STATIONARITY_TOLERANCE = 1e-4
#: The stated noise is accepted if the reduced chi-square (weighted sum of squares divided by the
#: degrees of freedom) is in this range. The range is wider for few degrees of freedom.
VARIANCE_FACTOR_RANGE = (0.25, 4.0)
#: A correction of the machine is doubtful if it exceeds this number of tolerances. A tolerance is
#: the expected magnitude of a correction; prototypes differ from nominal drawings by about ten
#: tolerances.
MAX_RELATIVE_CORRECTION = 30.0
#: A trend of the residuals with a smaller p-value than this indicates an error of the model.
MIN_TREND_P = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class FitOptions(Options):
    """Options of the fit of a calibration.

    Attributes:
        bounds: range of unknowns by name or pattern, such as 'track1.length=1.2 m:1.3 m' or
            'tower*.angle=:1 deg', separated by commas.
        loss: loss function of the residuals.
        leave_out_weak: also leave out unknowns whose standard deviation would exceed their
            tolerance.
        swap_search_time: CPU time of the search for swapped encoder columns, s; 0 for no search.
        scale_covariance: estimate the size of the noise from the residuals instead of the given
            noise.
        reject_implausible: raise an error for implausible measurements.
    """

    bounds: Mapping[str, Bounds] = option(
        factory=dict, read=read_bounds, repeated=True, metavar="NAME=LOW:HIGH"
    )
    loss: Loss = option(SQUARES, named=LOSSES)
    leave_out_weak: bool = False
    swap_search_time: float = option(
        DEFAULT_SEARCH_TIME, least=0.0, metavar="TIME", unit=units.TIME
    )
    scale_covariance: bool = option(True, flag="")
    reject_implausible: bool = option(True, flag="")


@solving(IdentificationError)
def fit_geometry(
    problem: CalibrationProblem,
    rng: np.random.Generator,
    *,
    options: FitOptions | None = None,
    start: np.ndarray | None = None,
) -> Calibration:
    """Fit the geometry of a machine to measurements.

    Args:
        problem: measurements and unknowns.
        rng: draws the geometry at which gauge freedoms are found.
        options: bounds, loss, choice of unknowns and covariance.
        start: corrections of the free unknowns (n,) to start from, SI; zeros by default.

    Returns:
        The corrected geometry with standard deviations, residuals and diagnostics.

    Raises:
        InputError: bounds are empty or do not contain the start values.
        IdentificationError: the data cannot support the calibration, with all reasons.
        PoseError: poses are out of reach.
    """
    options = options or FitOptions()
    problem = problem.bounded(options.bounds)
    at_start = problem.predicting().evaluate(np.zeros(len(problem.free)))
    findings = measurement_problems(
        problem,
        gross=isinstance(options.loss, Squares),
        start=at_start,
        exchanges=options.swap_search_time,
    )
    if findings and options.reject_implausible:
        raise IdentificationError(findings)
    # With residuals of forward kinematics, the evaluation at the start can be reused.
    is_forward = problem.predicting() is problem
    near = problem.linearized(at_start if is_forward else problem.evaluate(at_start.correction))
    identified = identifiability(problem, rng, leave_out_weak=options.leave_out_weak, near=near)
    reduced = problem.only(identified.subset)
    near = near.only([problem.names.index(name) for name in reduced.names])
    reduced_start = None
    if start is not None:
        reduced_start = np.array([start[problem.names.index(name)] for name in reduced.names])
    solution = solve_calibration(reduced, reduced_start, loss=options.loss, near=near)
    tightness = prior_tightness(reduced, solution, known_noise=not options.scale_covariance)
    uncertainty = _uncertainty(reduced, solution, scale_covariance=options.scale_covariance)
    forward = reduced.predicting()
    before = error_statistics(forward, at_start)
    at_end = solution.evaluation if is_forward else forward.evaluate(solution.correction)
    errors = tuple(state.errors for state in at_end.states)
    estimates = tuple(
        _estimated(unknown, float(step), deviation, uncertainty.factor_95, bound)
        for unknown, step, deviation, bound in zip(
            reduced.estimated,
            solution.correction,
            uncertainty.deviations,
            bounds_met(reduced, solution),
            strict=True,
        )
    )
    has_deviations = any(deviation is not None for deviation in uncertainty.deviations)
    result = Calibration(
        problem=reduced,
        solution=solution,
        estimates=estimates,
        covariance=uncertainty.covariance if has_deviations else None,
        correlations=correlations(uncertainty.covariance),
        degrees_of_freedom=uncertainty.degrees_of_freedom,
        variance_factor=uncertainty.variance_factor,
        identifiability=identified,
        findings=findings,
        before=before,
        after=error_statistics(forward, at_end),
        errors=errors,
        outliers=outliers(reduced, solution, errors),
        diagnostics=(),
        prior_tightness=tightness,
        base_combinations=base_combinations(
            reduced, solution.correction, uncertainty.covariance, uncertainty.factor_95
        ),
        provenance=_provenance(problem, options),
    )
    priors = (tightness.diagnostic(),) if tightness is not None else ()
    return replace(
        result,
        diagnostics=(
            *_diagnostics(result, at_end),
            *_uncertainty_diagnostics(result, has_noise_estimate=uncertainty.factor_95 is not None),
            *_corrections(result),
            *_trends(result),
            *hanging(forward, at_end),
            *deflection_change(forward, at_end),
            *_temperatures(forward),
            *encoder_misfits(reduced, solution),
            *priors,
        ),
    )


def _temperatures(problem: CalibrationProblem) -> Iterator[Diagnostic]:
    """Yield the largest temperature rise of the readings; nothing without thermometers."""
    readings = [
        measured_pose.series.temperatures
        for measured_pose in problem.measured_poses
        if measured_pose.series.temperatures is not None
    ]
    if readings:
        yield from rise_diagnostics(np.concatenate([values.ravel() for values in readings]))


@dataclass(frozen=True, slots=True, kw_only=True)
class _ErrorBars:
    """Uncertainty of the estimates.

    Attributes:
        covariance: covariance (n, n) of the corrections, SI.
        deviations: standard deviation of each correction; None if it is not determined.
        factor_95: half-width of the 95 % interval, in standard deviations; None if the readings
            are too few to estimate the noise.
        degrees_of_freedom: number of readings and priors minus the number of unknowns.
        variance_factor: reduced chi-square (weighted sum of squares divided by the degrees of
            freedom); None if there are no degrees of freedom.
    """

    covariance: np.ndarray
    deviations: tuple[float | None, ...]
    factor_95: float | None
    degrees_of_freedom: int
    variance_factor: float | None


def _uncertainty(
    problem: CalibrationProblem, solution: Solution, *, scale_covariance: bool
) -> _ErrorBars:
    """Return the uncertainty of a solution, from the stated noise or the residuals."""
    factor = variance_factor(solution)
    scale = factor if scale_covariance and factor is not None else 1.0
    C = covariance(solution, scale, problem.tolerances)
    dof = degrees_of_freedom(solution)
    factor_95 = interval_factor(dof, known_noise=not scale_covariance)
    is_undetermined = undetermined(solution, problem.tolerances)
    return _ErrorBars(
        covariance=C,
        deviations=tuple(
            None if factor_95 is None or has_no_deviation else float(np.sqrt(variance))
            for has_no_deviation, variance in zip(is_undetermined, np.diag(C), strict=True)
        ),
        factor_95=factor_95,
        degrees_of_freedom=dof,
        variance_factor=factor,
    )


def _provenance(problem: CalibrationProblem, options: FitOptions) -> Provenance:
    """Return the provenance of a fit."""
    return provenance(
        packages=("numpy", "scipy", "casadi"),
        options={
            "loss": {"name": type(options.loss).__name__, **plain(options.loss)},
            "residuals": type(problem.residuals).__name__,
            "leave_out_weak": options.leave_out_weak,
            "scale_covariance": options.scale_covariance,
            "encoder_noise": problem.encoder_noise,
            "equilibrium": problem.equilibrium is not None,
            "bounds": {
                name: [_finite(b.lower), _finite(b.upper)] for name, b in options.bounds.items()
            },
        },
        inputs={
            "machine": problem.mechanism.name,
            "series": [
                {
                    "instrument": type(series.instrument).__name__,
                    "name": series.instrument.name,
                    "poses": len(series),
                    "noise": series.sigma,
                }
                for series in problem.series
            ],
        },
    )


def _estimated(
    unknown: Unknown,
    step: float,
    deviation: float | None,
    factor_95: float | None,
    bound: float | None,
) -> EstimatedUnknown:
    """Return an unknown with its correction (SI) and error bar."""
    return EstimatedUnknown(
        **{item.name: getattr(unknown, item.name) for item in fields(Corrected)},
        nominal=unknown.value,
        value=unknown.value + step,
        correction=step,
        deviation=deviation,
        half_width=None if deviation is None or factor_95 is None else factor_95 * deviation,
        bound=bound,
    )


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _uncertainty_diagnostics(
    result: Calibration, *, has_noise_estimate: bool
) -> tuple[Diagnostic, ...]:
    """Return diagnostics of the uncertainty.

    They check degrees of freedom, rank at the optimum and second-order effects.
    """
    without_deviation = [
        estimate.name for estimate in result.estimates if estimate.deviation is None
    ]
    undetermined_names = without_deviation if has_noise_estimate else []
    name_list = f" ({', '.join(undetermined_names)})" if undetermined_names else ""
    relative_shift = None
    if not without_deviation:
        half_widths = np.array([estimate.half_width for estimate in result.estimates], dtype=float)
        relative_shift = second_order_share(result.problem, result.solution, half_widths)
    return (
        diagnostic(
            "degrees of freedom: readings and priors less unknowns",
            result.degrees_of_freedom,
            at_least=None if has_noise_estimate else 1.0,
            advice="no redundant reading remains to check the fit or to estimate the noise, so there are no standard "
            "deviations: measure more poses, estimate fewer parameters, or use tolerances as priors",
        ),
        diagnostic(
            f"unknowns that are not determined at the fitted geometry{name_list}",
            len(undetermined_names),
            at_most=0.0,
            advice="the search ended at a singular geometry, so these unknowns have no standard deviations: measure "
            "more or better chosen poses, give priors, or estimate fewer parameters",
        ),
        diagnostic(
            "second-order effect over the 95 % interval, along the least certain direction",
            relative_shift,
            at_most=1.0,
            advice="standard deviations assume a linear problem, but this problem is nonlinear: do not rely on them, "
            "measure more or better chosen poses, or give priors",
        ),
    )


def _corrections(result: Calibration) -> tuple[Diagnostic, ...]:
    """Return a diagnostic of the largest correction of the machine relative to its tolerance.

    Frames and targets of instruments are not checked, because they may start anywhere.
    """
    relative = {
        e.name: abs(e.correction) / e.tolerance for e in result.estimates if not e.is_nuisance
    }
    if not relative:
        return ()
    worst = max(relative, key=lambda name: relative[name])
    return (
        diagnostic(
            f"largest correction of the machine relative to its tolerance ({worst})",
            relative[worst],
            at_most=MAX_RELATIVE_CORRECTION,
            advice="the correction is implausibly large: the search may have ended at another solution, or a reading, "
            "a unit or the machine file is wrong; if the correction is real, give a larger tolerance",
        ),
    )


def _trends(result: Calibration) -> tuple[Diagnostic, ...]:
    """Return a diagnostic of the most significant trend of the residuals."""
    trends = [
        (item, trend) for item in result.residual_analysis.quantities for trend in item.trends
    ]
    if not trends:
        return ()
    item, trend = min(trends, key=lambda pair: pair[1].p)
    return (
        diagnostic(
            f"p-value of the most significant trend of the residuals ({item.quantity} of "
            f"{item.series} with {trend.against}, {100 * trend.share:.0f} % of its sum of squares)",
            trend.p,
            at_least=MIN_TREND_P,
            advice="the model lacks an effect that depends on this quantity: estimate more parameters, or check the "
            "machine for deflection, backlash and thermal expansion",
        ),
    )


def _largest_loop_residual(problem: CalibrationProblem, x: np.ndarray, at: Evaluation) -> float:
    """Return the largest residual of the loops at an evaluation by forward kinematics, m."""
    largest = 0.0
    loops = problem.assembly.loops
    factors = loops.length * loops.row_scale[list(independent_rows(problem.assembly))]
    for measured_pose, state in zip(problem.predicting().measured_poses, at.states, strict=True):
        f, _ = measured_pose.evaluate(x, state.q)
        n_loops = measured_pose.n_equations[0]
        # Equations of equilibrium come after those of the loops and are already lengths.
        row_factors = np.ones(n_loops // measured_pose.poses)
        row_factors[: len(factors)] = factors
        residuals = np.tile(row_factors, measured_pose.poses) * f[:, :n_loops]
        largest = max(largest, float(np.abs(residuals).max(initial=0.0)))
    return largest


def _diagnostics(result: Calibration, predicted: Evaluation) -> tuple[Diagnostic, ...]:
    """Return the diagnostics of the solution: loops, optimality, noise, error bars and bounds."""
    problem = result.problem
    solution = result.solution
    estimates = result.estimates
    x = problem.whole(solution.correction)
    columns = solution.jacobian * problem.tolerances
    gradient = problem.tolerances * solution.gradient
    names_at_bounds = [estimate.name for estimate in estimates if estimate.bound is not None]
    gradient[[estimate.bound is not None for estimate in estimates]] = 0.0
    residual_norm = float(np.linalg.norm(solution.residual))
    norms = np.linalg.norm(columns, axis=0) * max(residual_norm, 1e-9)
    cosine = float((np.abs(gradient) / np.maximum(norms, 1e-300)).max(initial=0.0))
    accepted = variance_range(result.degrees_of_freedom, VARIANCE_FACTOR_RANGE)
    is_noiseless = residual_norm < 1e-6
    relative = {e.name: e.deviation / e.tolerance for e in estimates if e.deviation is not None}
    weakest = max(relative, key=lambda name: relative[name], default=None)
    name_list = f" ({', '.join(names_at_bounds)})" if names_at_bounds else ""
    return (
        diagnostic(
            "largest loop residual",
            _largest_loop_residual(problem, x, predicted),
            at_most=LOOP_TOLERANCE * problem.assembly.loops.length,
            unit="m",
            advice="check the measured poses",
        ),
        diagnostic(
            "largest cosine between the residuals and a column of the Jacobian",
            None if is_noiseless else cosine,
            at_most=STATIONARITY_TOLERANCE,
            advice="the search has not converged: use other start values or give priors",
        ),
        diagnostic(
            "weighted sum of squares over degrees of freedom",
            result.variance_factor,
            at_least=accepted[0],
            at_most=accepted[1],
            advice="the residuals are not consistent with the given noise: state the actual noise, or find the effect "
            "that the model lacks",
        ),
        diagnostic(
            "largest standard deviation over tolerance" + (f" ({weakest})" if weakest else ""),
            relative[weakest] if weakest else None,
            at_most=1.0,
            advice="measure more or better chosen poses, give priors, or do not estimate these unknowns",
        ),
        diagnostic(
            f"unknowns at a bound{name_list}",
            len(names_at_bounds),
            at_most=0.0,
            advice="the best fit is outside the bounds, which standard deviations do not account for: widen the "
            "bounds, or find the effect that the model lacks",
        ),
        diagnostic(
            "outliers",
            len(result.outliers),
            at_most=0.0,
            advice="measure these poses again, remove them, or use a robust loss",
        ),
        *limits_of(problem.assembly.mechanism, problem.assembly.topology).diagnostics(
            np.concatenate([state.q for state in predicted.states])
        ),
    )
