"""Identification of a machine with parallel cranks by its reduced model.

The plant is the unreduced machine with the effects that the reduced model neglects. The model is
written in products of the paper's parameters and regrouped analytically. Its forces with the
parameters of the full machine are compared with those of the estimated parameters.
"""

from __future__ import annotations

import numpy as np

from tauloop.common.errors import IdentificationError
from tauloop.common.result import Diagnostic, diagnostic, plain, provenance
from tauloop.identification import (
    AnalyticRegrouping,
    BaseEstimates,
    BaseParameters,
    Conditions,
    ExcitationLimits,
    ExcitationOptions,
    ExcitationProblem,
    ExcitationTask,
    Identification,
    OrdinaryLeastSquares,
    ProductColumns,
    SetColumns,
    analytic_regrouping,
    base_parameters,
    fit_regression,
    plan_excitation,
    random_search,
)
from tauloop.motion import FourierSeries
from tauloop_papers.reproduction import EXPERIMENTS, Progress
from tauloop_papers.spidermill.models import Fit, Plant, Reduced, Trajectory, counted, mean_relative
from tauloop_papers.spidermill.read_out import read_out
from tauloop_papers.spidermill.results import (
    Excited,
    Findings,
    Growth,
    ReducedIdentification,
    Regrouped,
)
from tauloop_papers.spidermill.settings import SETTINGS, ReducedSettings
from tauloop_papers.spidermill.table import choices, comparisons, printed_tables

#: Largest difference of model and plant without neglected effects, relative to the largest force.
EXACT_TOLERANCE = 1e-9


def run(progress: Progress, settings: ReducedSettings = SETTINGS) -> ReducedIdentification:
    """Plan the excitation, identify, verify, and compare.

    Raises:
        IdentificationError: the limits cannot be met, or a regrouping has no formulas.
        PoseError: a trajectory leaves the workspace of the plant.
    """
    rng = np.random.default_rng(settings.seed)
    progress("reducing the machine")
    reduced, plant = Reduced(settings), Plant(settings)
    progress("regrouping its parameters")
    regrouped = _regrouped(settings, reduced)
    progress("optimizing the excitation")
    excited = motions(settings, reduced, rng)
    first, second = (
        reduced.trajectory(name, series)
        for name, series in zip(("identification", "verification"), excited.series, strict=True)
    )
    progress("identifying")
    forces = [plant.forces(case)[0] for case in (first, second)]
    training, held_out = (
        reduced.data(case, u) for case, u in zip((first, second), forces, strict=True)
    )
    base = base_parameters(training.regressor, training.parameters, training.parameter_units)
    estimate = fit_regression(training, held_out, OrdinaryLeastSquares(), base=base)
    identification, verification = (
        _fit(settings, reduced, case, u, base, estimate)
        for case, u in zip((first, second), forces, strict=True)
    )
    progress("varying the neglected effects")
    growth = _growth(settings, reduced, first, second, base)
    values = reduced.products.values()
    estimated = {**reduced.mechanism.parameters.values, **settings.stated.estimated}
    other = [
        mean_relative(
            case.measured, reduced.columns(case.trajectory, reduced.other) @ values, case.counted
        )
        for case in (identification, verification)
    ]
    progress("computing masses and centers from the parameters")
    calculated = base.regroup(values)
    matrix = regrouped.other.matrix()
    printed = matrix @ reduced.products.values(estimated)
    ours, theirs = (
        BaseEstimates(
            parameters=settings.products, regrouping=rows, values=numbers, covariance=errors
        )
        for rows, numbers, errors in (
            (base.regrouping, estimate.values, estimate.estimate.covariance),
            (matrix, printed, np.diag((settings.stated.rounding * printed) ** 2)),
        )
    )
    findings = Findings(
        excited=excited,
        identification=identification,
        verification=verification,
        estimate=estimate,
        regrouped=regrouped,
        calculated=calculated,
        elsewhere=matrix @ values,
        printed=printed,
        read_out=read_out(settings, reduced, ours, theirs, second),
        other_errors=np.array(other),
        growth=growth,
        actuators=training.outputs,
    )
    return ReducedIdentification(
        experiment=EXPERIMENTS["spidermill"],
        settings=settings,
        findings=findings,
        comparisons=comparisons(settings, findings),
        choices=choices(settings, findings),
        printed=printed_tables(settings, findings),
        diagnostics=_diagnostics(settings, findings, base),
        provenance=provenance(
            packages=("numpy", "scipy", "casadi"), options=plain(settings), inputs={}
        ),
    )


def _regrouped(settings: ReducedSettings, reduced: Reduced) -> Regrouped:
    """Regroup the model, its other reading, and the printed set."""
    printed = SetColumns.of(reduced.other, settings.printed.members, settings.printed.units)
    in_model = SetColumns.of(reduced.products, settings.printed.members, settings.printed.units)

    def regrouping(columns: ProductColumns | SetColumns) -> AnalyticRegrouping:
        # the same geometries for all, to avoid repeated assembly
        rng = np.random.default_rng(settings.seed)
        return analytic_regrouping(columns, columns.quantities, reduced.lengths, rng)

    return Regrouped(
        model=regrouping(reduced.products),
        other=regrouping(reduced.other),
        printed=regrouping(printed),
        misfits=(in_model.misfit(reduced.lengths), printed.misfit(reduced.lengths)),
    )


def _task(settings: ReducedSettings) -> ExcitationTask:
    limits = ExcitationLimits(
        stroke=settings.stroke, max_velocity=settings.speed, max_acceleration=settings.acceleration
    )
    return ExcitationTask(
        harmonics=settings.harmonics,
        period=settings.period,
        limits=limits,
        preferred_parameters=settings.representatives,
    )


def motions(settings: ReducedSettings, reduced: Reduced, rng: np.random.Generator) -> Excited:
    """Return the motions of the settings, or optimized ones without them or for another machine.

    An optimized series is a local optimum, which differs between versions and processors and
    changes the second digit of the errors. Therefore the settings store it.
    """
    task = _task(settings)
    problem = ExcitationProblem(reduced.driven_mechanism, task)
    is_kept = bool(settings.series) and settings.machine == SETTINGS.machine
    starts = 0 if is_kept else settings.starts
    options = ExcitationOptions(task=task, random=settings.random, starts=starts)
    search = plan_excitation(reduced.driven_mechanism, options, rng=rng)
    if is_kept:
        first, second = (
            FourierSeries.of(np.array(rows), settings.period) for rows in settings.series
        )
    else:
        first, second = search.series, _test_series(settings, reduced, task, rng)
    regressor = problem.evaluate(first.sample(problem.fine_grid)).regressor
    return Excited(
        series=(first, second),
        conditions=Conditions.of(regressor, problem.before, problem.base(regressor)),
        search=search,
    )


def _test_series(
    settings: ReducedSettings, reduced: Reduced, task: ExcitationTask, rng: np.random.Generator
) -> FourierSeries:
    """Return the random series within limits with the largest accelerations (RMS)."""
    problem = ExcitationProblem(reduced.driven_mechanism, task)
    search = [
        problem.series(coefficient)
        for coefficient in random_search(problem, settings.random, rng).coefficients
    ]
    return max(
        search, key=lambda series: float((series.sample(problem.grid).acceleration ** 2).mean())
    )


def _fit(
    settings: ReducedSettings,
    reduced: Reduced,
    trajectory: Trajectory,
    forces: np.ndarray,
    base: BaseParameters,
    estimate: Identification,
) -> Fit:
    columns = reduced.columns(trajectory, reduced.products)
    return Fit(
        trajectory=trajectory,
        measured=forces,
        before=columns @ reduced.products.values(),
        after=columns @ base.spread(estimate.values),
        counted=counted(forces, settings.least_force),
    )


def _growth(
    settings: ReducedSettings,
    reduced: Reduced,
    first: Trajectory,
    second: Trajectory,
    base: BaseParameters,
) -> Growth:
    """Return the errors on the verification trajectory by the size of the neglected effects."""
    training, held_out = (reduced.columns(case, reduced.products) for case in (first, second))
    before = held_out @ reduced.products.values()
    Y = training[..., base.independent].reshape(-1, base.rank)

    def errors(plant: Plant, factors: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
        seen, judged = plant.forces(first, factors), plant.forces(second, factors)
        values = np.linalg.lstsq(Y, seen.reshape(len(seen), -1).T, rcond=None)[0]
        after = np.moveaxis(held_out[..., base.independent] @ values, -1, 0)
        counts = counted(judged, settings.least_force)
        return mean_relative(judged, before, counts), mean_relative(judged, after, counts)

    aligned = Plant(settings, 0.0)
    by_factor = errors(aligned, settings.spindle_factors)
    by_size = [
        errors(Plant(settings, size) if size else aligned, (1.0,)) for size in settings.offset_sizes
    ]
    bare = aligned.forces(second, (0.0,))[0]
    return Growth(
        factors=np.array(settings.spindle_factors),
        before_by_factor=by_factor[0],
        after_by_factor=by_factor[1],
        sizes=np.array(settings.offset_sizes),
        before_by_size=np.concatenate([case[0] for case in by_size]),
        after_by_size=np.concatenate([case[1] for case in by_size]),
        bare=float(np.abs(before - bare).max() / np.abs(bare).max()),
    )


def _diagnostics(
    settings: ReducedSettings, findings: Findings, base: BaseParameters
) -> tuple[Diagnostic, ...]:
    """Return diagnostics of the reduction of errors, and of the model without neglected effects."""
    matrix = findings.regrouped.model.matrix()
    same = (
        np.abs(matrix - base.regrouping).max() if matrix.shape == base.regrouping.shape else np.inf
    )
    if not np.isfinite(same):
        what = f"the trajectory determines {base.rank} parameters, random states {len(matrix)}"
        raise IdentificationError.of("excitation", what, "wider limits")
    cuts = [
        diagnostic(
            f"share of the relative error cut on the verification trajectory, {name}",
            cut,
            at_least=least,
            advice="excite more, or include neglected effects in the model: the estimates do not generalize",
        )
        for name, cut, least in zip(
            findings.actuators, findings.verification.cuts, settings.cuts, strict=True
        )
    ]
    return (
        *cuts,
        diagnostic(
            "model against the unreduced machine without neglected effects, share of the largest force",
            findings.growth.bare,
            at_most=EXACT_TOLERANCE,
            advice="report this fault of Tauloop: the reduction is not exact",
        ),
        diagnostic(
            "regrouping by formulas against that of the trajectory's regressor",
            same,
            at_most=EXACT_TOLERANCE,
            advice="use a trajectory with more excitation; otherwise a formula is wrong",
        ),
        *findings.regrouped.model.diagnostics[:1],
    )
