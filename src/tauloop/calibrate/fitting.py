"""Fit a calibration: check, choose what can be told, solve, and judge."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tauloop.calibrate.checks import inspect
from tauloop.calibrate.identifiability import identifiability
from tauloop.calibrate.losses import Loss, Squares
from tauloop.calibrate.problem import CalibrationProblem
from tauloop.calibrate.result import Calibration, Estimate
from tauloop.calibrate.solving import SQUARES, Solution, solve
from tauloop.calibrate.statistics import correlations, covariance, error_figures, outliers, variance_factor
from tauloop.errors import IdentificationError
from tauloop.result import Evidence, plain, provenance

#: Loops are closed to this at the optimum, m.
CLOSED = 1e-8
#: At an optimum, the residuals' share along any direction of the Jacobian (a cosine).
STATIONARY = 1e-4
#: Weighted sums of squares over degrees of freedom within which the stated noise is believed.
BELIEVED = (0.25, 4.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class FitOptions:
    """How a calibration is fitted.

    Attributes:
        loss: how residuals count: `Squares()`, `Huber(2.0)` or `Cauchy(3.0)`.
        leave_out_weak: also leave out unknowns that the data tell less well than their tolerance.
        scale_covariance: take the noise's size from the residuals instead of the stated one.
        refuse: raise on measurements that cannot be what they claim.
    """

    loss: Loss = SQUARES
    leave_out_weak: bool = False
    scale_covariance: bool = True
    refuse: bool = True


def fit(
    problem: CalibrationProblem,
    rng: np.random.Generator,
    *,
    options: FitOptions | None = None,
    start: np.ndarray | None = None,
) -> Calibration:
    """Calibrate.

    Args:
        problem: measurements and unknowns.
        rng: draws the geometry at which gauge freedoms are found.
        options: loss, subset, covariance.
        start: corrections of the free unknowns (n,) to start from, SI; zeros without it.

    Raises:
        IdentificationError: the data cannot support the calibration, with all reasons.
        PoseError: poses are out of reach.
    """
    options = options or FitOptions()
    findings = inspect(problem, gross=isinstance(options.loss, Squares))
    if findings and options.refuse:
        raise IdentificationError(findings)
    told = identifiability(problem, rng, leave_out_weak=options.leave_out_weak)
    reduced = problem.only(told.subset)
    begin = None
    if start is not None:
        begin = np.array([start[problem.names.index(name)] for name in reduced.names])
    solution = solve(reduced, begin, loss=options.loss)
    factor = variance_factor(solution)
    used = factor if options.scale_covariance and factor is not None else 1.0
    C = covariance(solution, used, reduced.tolerances)
    forward = reduced.predicting()
    before = error_figures(forward, forward.evaluate(np.zeros(len(reduced.free))))
    after_evaluation = forward.evaluate(solution.correction)
    errors = tuple(state.errors for state in after_evaluation.states)
    found = outliers(reduced, solution, errors)
    estimates = tuple(
        Estimate(
            name=unknown.name,
            members=unknown.members,
            unit=unknown.unit,
            nominal=unknown.value,
            value=unknown.value + float(step),
            correction=float(step),
            deviation=float(np.sqrt(C[k, k])),
            tolerance=unknown.tolerance,
            has_prior=unknown.has_prior,
            is_nuisance=unknown.is_nuisance,
        )
        for k, (unknown, step) in enumerate(
            zip((reduced.unknowns[i] for i in reduced.free), solution.correction, strict=True)
        )
    )
    return Calibration(
        problem=reduced,
        solution=solution,
        estimates=estimates,
        covariance=C,
        correlations=correlations(C),
        variance_factor=factor,
        identifiability=told,
        findings=findings,
        before=before,
        after=error_figures(forward, after_evaluation),
        errors=errors,
        outliers=found,
        evidence=_evidence(reduced, solution, estimates, factor, len(found)),
        provenance=provenance(
            packages=("numpy", "scipy", "casadi"),
            options={
                "loss": {"name": type(options.loss).__name__, **_plain(options.loss)},
                "residuals": type(problem.residuals).__name__,
                "leave_out_weak": options.leave_out_weak,
                "scale_covariance": options.scale_covariance,
                "encoder_noise": problem.encoder_noise,
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
        ),
    )


def _plain(loss: Loss) -> dict[str, object]:
    return {} if isinstance(loss, Squares) else dict(plain(loss))


def _evidence(
    problem: CalibrationProblem,
    solution: Solution,
    estimates: tuple[Estimate, ...],
    factor: float | None,
    n_outliers: int,
) -> tuple[Evidence, ...]:
    open_loops = 0.0
    for station, state in zip(problem.predicting().stations, solution.evaluation.states, strict=True):
        x = np.zeros(len(problem.unknowns))
        x[list(problem.free)] = solution.correction
        q = station.state(x, state.q).q
        f, _ = station.evaluate(x, q)
        open_loops = max(open_loops, float(np.abs(f[:, : station.n_equations[0]]).max(initial=0.0)))
    columns = solution.jacobian * problem.tolerances
    gradient = columns.T @ (solution.weights * solution.residual)
    gradient += problem.tolerances * solution.prior**2 * solution.correction
    size = np.linalg.norm(columns, axis=0) * max(float(np.linalg.norm(solution.residual)), 1e-9)
    cosine = float((np.abs(gradient) / np.maximum(size, 1e-300)).max(initial=0.0))
    noiseless = float(np.linalg.norm(solution.residual)) < 1e-6
    weakest = max(estimates, key=lambda e: e.deviation / e.tolerance, default=None)
    return (
        Evidence(name="largest loop residual", value=open_loops, unit="m", upper=CLOSED, advice="look at the poses"),
        Evidence(
            name="largest cosine of residuals and a column of the Jacobian",
            value=None if noiseless else cosine,
            upper=STATIONARY,
            advice="the search has not arrived; start elsewhere or give priors",
        ),
        Evidence(
            name="weighted sum of squares over degrees of freedom",
            value=factor,
            lower=BELIEVED[0],
            upper=BELIEVED[1],
            advice="the stated noise is not that of the residuals: state another, or look for what the model lacks",
        ),
        Evidence(
            name="largest standard deviation over tolerance" + (f" ({weakest.name})" if weakest else ""),
            value=weakest.deviation / weakest.tolerance if weakest else None,
            upper=1.0,
            advice="measure more or better chosen poses, give priors, or leave such unknowns out",
        ),
        Evidence(
            name="outliers",
            value=float(n_outliers),
            upper=0.0,
            advice="measure these poses again or leave them out, or use a robust loss",
        ),
    )
