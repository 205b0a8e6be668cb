"""Fit a calibration: check, choose what can be told, solve, and judge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace

import numpy as np

from tauloop.assembly.limits import limits_of
from tauloop.calibration.judging.encoder_misfits import encoder_misfits
from tauloop.calibration.judging.identifiability import identifiability
from tauloop.calibration.judging.prior_tightness import prior_tightness
from tauloop.calibration.judging.statistics import correlations, covariance, error_figures, outliers, variance_factor
from tauloop.calibration.problem.problem import CalibrationProblem, Evaluation
from tauloop.calibration.problem.unknowns import Bounds, Corrected, read_bounds
from tauloop.calibration.result import Calibration, EstimatedUnknown
from tauloop.calibration.solving.checks import inspect
from tauloop.calibration.solving.exchanges import SECONDS
from tauloop.calibration.solving.losses import LOSSES, Loss, Squares
from tauloop.calibration.solving.solver import SQUARES, bounds_met, solve
from tauloop.errors import IdentificationError, solving
from tauloop.options import Options, option
from tauloop.records import dataclass
from tauloop.result import Evidence, plain, provenance

#: Loops are closed to this at the optimum, m.
CLOSED = 1e-8
#: At an optimum, the residuals' share along any direction of the Jacobian (a cosine).
STATIONARY = 1e-4
#: Weighted sums of squares over degrees of freedom within which the stated noise is believed.
BELIEVED = (0.25, 4.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class FitOptions(Options):
    """How a calibration is fitted.

    Attributes:
        bounds: least and largest value of unknowns by name or pattern, such as 'track1.length=1.2 m:1.3 m' or
            'tower*.angle=:1 deg', with commas between them.
        loss: how residuals count.
        leave_out_weak: also leave out unknowns that the data tell less well than their tolerance.
        exchanges: processor time for the search for exchanged encoder columns, s; none for 0.
        scale_covariance: take the noise's size from the residuals instead of the stated one.
        refuse: raise on measurements that cannot be what they claim.
    """

    bounds: Mapping[str, Bounds] = option(factory=dict, read=read_bounds, repeated=True, metavar="NAME=LOW:HIGH")
    loss: Loss = option(SQUARES, named=LOSSES)
    leave_out_weak: bool = False
    exchanges: float = option(SECONDS, least=0.0)
    scale_covariance: bool = option(True, flag="")
    refuse: bool = option(True, flag="")


@solving(IdentificationError)
def fit_geometry(
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
        InputError: bounds that cannot be.
        IdentificationError: the data cannot support the calibration, with all reasons.
        PoseError: poses are out of reach.
    """
    options = options or FitOptions()
    problem = problem.bounded(options.bounds)
    at_start = problem.predicting().evaluate(np.zeros(len(problem.free)))
    findings = inspect(problem, gross=isinstance(options.loss, Squares), start=at_start, exchanges=options.exchanges)
    if findings and options.refuse:
        raise IdentificationError(findings)
    # where residuals are those of forward kinematics, what was evaluated already serves again
    is_forward = problem.predicting() is problem
    near = problem.linearised(at_start if is_forward else problem.evaluate(at_start.correction))
    identified = identifiability(problem, rng, leave_out_weak=options.leave_out_weak, near=near)
    reduced = problem.only(identified.subset)
    near = near.only([problem.names.index(name) for name in reduced.names])
    begin = None
    if start is not None:
        begin = np.array([start[problem.names.index(name)] for name in reduced.names])
    solution = solve(reduced, begin, loss=options.loss, near=near)
    factor = variance_factor(solution)
    tightness = prior_tightness(reduced, solution, known_noise=not options.scale_covariance)
    used = factor if options.scale_covariance and factor is not None else 1.0
    C = covariance(solution, used, reduced.tolerances)
    forward = reduced.predicting()
    before = error_figures(forward, at_start)
    after_evaluation = solution.evaluation if is_forward else forward.evaluate(solution.correction)
    errors = tuple(state.errors for state in after_evaluation.states)
    outlying = outliers(reduced, solution, errors)
    at_bounds = bounds_met(reduced, solution)
    estimates = tuple(
        EstimatedUnknown(
            **{item.name: getattr(unknown, item.name) for item in fields(Corrected)},
            nominal=unknown.value,
            value=unknown.value + float(step),
            correction=float(step),
            deviation=float(np.sqrt(C[k, k])),
            bound=at_bounds[k],
        )
        for k, (unknown, step) in enumerate(zip(reduced.estimated, solution.correction, strict=True))
    )
    result = Calibration(
        problem=reduced,
        solution=solution,
        estimates=estimates,
        covariance=C,
        correlations=correlations(C),
        variance_factor=factor,
        identifiability=identified,
        findings=findings,
        before=before,
        after=error_figures(forward, after_evaluation),
        errors=errors,
        outliers=outlying,
        evidence=(),
        prior_tightness=tightness,
        provenance=provenance(
            packages=("numpy", "scipy", "casadi"),
            options={
                "loss": {"name": type(options.loss).__name__, **plain(options.loss)},
                "residuals": type(problem.residuals).__name__,
                "leave_out_weak": options.leave_out_weak,
                "scale_covariance": options.scale_covariance,
                "encoder_noise": problem.encoder_noise,
                "bounds": {name: [_finite(b.lower), _finite(b.upper)] for name, b in options.bounds.items()},
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
    priors = (tightness.evidence(),) if tightness is not None else ()
    misfits = encoder_misfits(reduced, solution)
    return replace(result, evidence=(*_evidence(result, after_evaluation), *misfits, *priors))


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _evidence(result: Calibration, predicted: Evaluation) -> tuple[Evidence, ...]:
    problem, solution, estimates = result.problem, result.solution, result.estimates
    open_loops, x = 0.0, problem.whole(solution.correction)
    for station, state in zip(problem.predicting().stations, predicted.states, strict=True):
        f, _ = station.evaluate(x, state.q)
        open_loops = max(open_loops, float(np.abs(f[:, : station.n_equations[0]]).max(initial=0.0)))
    columns = solution.jacobian * problem.tolerances
    gradient = problem.tolerances * solution.gradient
    held = [estimate.bound is not None for estimate in estimates]
    gradient[held] = 0.0
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
            value=result.variance_factor,
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
            name="unknowns at a bound"
            + (f" ({', '.join(e.name for e in estimates if e.bound is not None)})" if any(held) else ""),
            value=float(sum(held)),
            upper=0.0,
            advice="the data want values beyond the bounds, and error bars do not count these: widen the bounds, or "
            "look for what the model lacks",
        ),
        Evidence(
            name="outliers",
            value=float(len(result.outliers)),
            upper=0.0,
            advice="measure these poses again or leave them out, or use a robust loss",
        ),
        *limits_of(problem.assembly.mechanism, problem.assembly.topology).evidence(
            np.concatenate([state.q for state in predicted.states])
        ),
    )
