"""Optimised excitation: motions that tell the parameters best, under all limits of the machine, from several starts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tauloop.errors import IdentificationError, Problem, solving
from tauloop.identification.excitation.criteria import ConditionNumber, Criterion
from tauloop.identification.excitation.problem import ExcitationProblem, ExcitationTask, Judgement
from tauloop.identification.excitation.result import Conditions, Excitation, LimitUse, RandomSummary, Start
from tauloop.identification.excitation.search import RandomSearch, random_search, shrunk
from tauloop.identification.excitation.solver import STOPPED, Outcome, SolverOptions
from tauloop.identification.excitation.starts import solve_all
from tauloop.identification.regression.base_parameters import BaseParameters
from tauloop.mechanism.model import Mechanism
from tauloop.motion.sampled import SampledMotion
from tauloop.result import Evidence, plain, provenance

#: Random series from whose regressors the base parameters are found.
FOR_BASE = 20
#: Attempts at shrinking a series until limits hold between the samples of the optimisation too.
SHRINKS = 40
#: Random series that are judged on the fine grid too, of those best in SI units and those best with unit-norm columns.
JUDGED_RANDOM = 5
#: Limits may be exceeded by this share: rounding.
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class ExcitationOptions:
    """How an excitation is searched for.

    Attributes:
        random: random series that are tried first; the best of them are the starts.
        starts: starts of the optimiser; 0 keeps the best random series.
        polished: outcomes, the best, that are followed on a finer grid.
        processes: among which the starts are shared out.
        solver: options of the optimiser.
    """

    random: int = 1000
    starts: int = 4
    polished: int = 2
    processes: int = 1
    solver: SolverOptions = field(default_factory=SolverOptions)

    def problems(self) -> list[Problem]:
        """What is out of range."""
        given = (
            ("random", self.random, 1),
            ("starts", self.starts, 0),
            ("polished", self.polished, 0),
            ("processes", self.processes, 1),
            ("solver.iterations", self.solver.iterations, 1),
        )
        problems = [
            Problem(where=f"options.{name}", what=f"must be at least {least}, got {value}", remedy="see the defaults")
            for name, value, least in given
            if value < least
        ]
        problems += [
            Problem(
                where=f"options.solver.{name}", what=f"must be above zero, got {value:g}", remedy="see the defaults"
            )
            for name, value in (("tolerance", self.solver.tolerance), ("seconds", self.solver.seconds))
            if not value > 0.0
        ]
        return problems


@solving(IdentificationError)
def excite(
    mechanism: Mechanism,
    task: ExcitationTask,
    rng: np.random.Generator,
    *,
    criterion: Criterion | None = None,
    before: Sequence[SampledMotion] = (),
    options: ExcitationOptions | None = None,
    progress: Callable[[str, float, float], None] | None = None,
) -> Excitation:
    """Find a motion that tells the base parameters best.

    Random series under the limits come first; the best of them are starts of an interior point method with exact
    gradients, in which loops that have no closed form are constraints. An interrupt (Ctrl-C) while it runs keeps the
    best feasible series so far. The result is judged on a finer grid by the functions that all applications use, and
    made smaller where a limit breaks between the samples of the optimisation.

    Args:
        mechanism: the machine.
        task: series, space, limits.
        rng: source of randomness.
        criterion: what is made small; the condition number in SI units without it.
        before: motions of data sets that come before, all channels of one whole period each: sequential design.
        options: numbers of random series and starts, and the solver's.
        progress: called with the phase ("random", "optimising"), what is done and what there is to do.

    Raises:
        InputError: the task does not fit the machine.
        IdentificationError: limits that cannot be met, or no clear rank.
        PoseError: the centre, or a motion before, is out of reach.
    """
    criterion = criterion or ConditionNumber()
    options = options or ExcitationOptions()
    if wrong := options.problems():
        raise IdentificationError(wrong)
    problem = ExcitationProblem(mechanism, task, _triangle(mechanism, task, before))
    report = progress or (lambda phase, done, total: None)
    search = random_search(problem, options.random, rng, lambda done, total: report("random", done, total))
    if search.is_interrupted:
        options = replace(options, starts=0)  # the best of the random series is what there is
    base = problem.base(search.triangles[:FOR_BASE].reshape(-1, search.triangles.shape[-1]))
    values = np.array([criterion.value(_normal(problem, base, R)) for R in search.triangles])
    best = np.argsort(values, kind="stable")[: max(options.starts, 1)]
    starts = [search.coefficients[k] for k in best]
    outcomes = _unoptimised(starts, values[best])
    if options.starts:
        outcomes = solve_all(problem, base.independent, criterion, starts, options.solver, options.processes, report)
    polished = _polished(problem, base, criterion, outcomes, options, report) if options.starts else []
    found = [*outcomes, *polished, *_unoptimised(starts[:1], values[best[:1]])]
    coefficients, judged = _best(problem, base, criterion, found)
    conditions = Conditions.of(judged.regressor, problem.before, base)
    random = _summary(problem, base, search)
    fits = task.rests
    return Excitation(
        machine=mechanism.name,
        task=task,
        series=problem.series(coefficients),
        channels=problem.channels,
        units=problem.functions.ports.position.units,
        velocity_units=problem.functions.ports.velocity.units,
        outputs=problem.model.output_ports(problem.output),
        base=base,
        conditions=conditions,
        random=random,
        limits=_limits(problem, judged),
        starts=tuple(map(Start.of, outcomes)) if options.starts else (),
        polished=tuple(map(Start.of, polished)),
        evidence=_evidence(
            judged, conditions, random, outcomes if options.starts else [], criterion, fits, options.random
        ),
        provenance=provenance(
            packages=("numpy", "scipy", "casadi"),
            options={
                "criterion": {"name": type(criterion).__name__, **plain(criterion)},
                "task": plain(task),
                "random": options.random,
                "starts": options.starts,
                "polished": options.polished,
                "solver": plain(options.solver),
            },
            inputs={"machine": mechanism.name, "data_sets_before": len(before)},
        ),
    )


def _triangle(mechanism: Mechanism, task: ExcitationTask, before: Sequence[SampledMotion]) -> np.ndarray | None:
    """Triangle with the normal matrix of the data sets before."""
    if not before:
        return None
    problem = ExcitationProblem(mechanism, task)
    rows = [problem.judge(motion).regressor for motion in before]
    return np.asarray(np.linalg.qr(np.concatenate(rows), mode="r"))


def _normal(problem: ExcitationProblem, base: BaseParameters, rows: np.ndarray) -> np.ndarray:
    stacked = np.concatenate([rows, problem.before])[:, base.independent]
    return np.asarray(stacked.T @ stacked)


def _unoptimised(starts: list[np.ndarray], values: np.ndarray) -> list[Outcome]:
    return [
        Outcome(coefficients=start, value=value, started=value, status="random", converged=True, iterations=0)
        for start, value in zip(starts, values.tolist(), strict=True)
    ]


def _polished(
    problem: ExcitationProblem,
    base: BaseParameters,
    criterion: Criterion,
    outcomes: list[Outcome],
    options: ExcitationOptions,
    report: Callable[[str, float, float], None],
) -> list[Outcome]:
    """The best outcomes, followed on a finer grid; none after an interrupt."""
    done = [outcome for outcome in outcomes if np.isfinite(outcome.value)]
    if len(done) < options.starts or any(outcome.status == STOPPED for outcome in done):
        return []
    best = [outcome.coefficients for outcome in sorted(done, key=lambda outcome: outcome.value)[: options.polished]]
    if not best:
        return []
    return solve_all(
        problem, base.independent, criterion, best, options.solver, options.processes, report, polishes=True
    )


def _best(
    problem: ExcitationProblem, base: BaseParameters, criterion: Criterion, outcomes: list[Outcome]
) -> tuple[np.ndarray, Judgement]:
    """The best of all outcomes once all limits hold on the fine grid."""
    found = []
    for outcome in outcomes:
        if (kept := _kept(problem, outcome.coefficients)) is not None:
            found.append((criterion.value(_normal(problem, base, kept[1].regressor)), *kept))
    if not found:
        what = f"none of {len(outcomes)} motions keeps them between the samples, even {SHRINKS} times made smaller"
        raise IdentificationError(Problem(where="limits", what=what, remedy="a centre farther from the limits"))
    _, coefficients, judged = min(found, key=lambda item: item[0])
    return coefficients, judged


def _kept(problem: ExcitationProblem, coefficients: np.ndarray) -> tuple[np.ndarray, Judgement] | None:
    """A series, as much nearer to its centre as it takes to keep all limits on the fine grid; None if that fails."""
    for _ in range(SHRINKS):
        judged = problem.judge(problem.series(coefficients).sample(problem.fine_grid))
        if judged.largest_share <= 1.0:
            return coefficients, judged
        coefficients = shrunk(problem, coefficients, min(0.9995, 1.0 / judged.largest_share))
    return None


def _summary(problem: ExcitationProblem, base: BaseParameters, search: RandomSearch) -> RandomSummary:
    """Condition numbers of all random series; the best are judged as the result is, on the fine grid."""
    before = np.broadcast_to(problem.before, (len(search.triangles), *problem.before.shape))
    R = np.concatenate([search.triangles, before], axis=1)[:, :, base.independent]
    si = np.linalg.cond(R)
    unit = np.linalg.cond(R / np.maximum(np.linalg.norm(R, axis=1, keepdims=True), np.finfo(float).tiny))
    best = {int(k) for values in (si, unit) for k in np.argsort(values, kind="stable")[:JUDGED_RANDOM]}
    kept = [found[1] for k in sorted(best) if (found := _kept(problem, search.coefficients[k])) is not None]
    judged = [Conditions.of(one.regressor, problem.before, base) for one in kept]
    return RandomSummary(
        tried=search.tried,
        kept=len(R),
        best_si=min((one.si for one in judged), default=float(si.min())),
        median_si=float(np.median(si)),
        best_unit_norm=min((one.unit_norm for one in judged), default=float(unit.min())),
        median_unit_norm=float(np.median(unit)),
    )


def _limits(problem: ExcitationProblem, judged: Judgement) -> tuple[LimitUse, ...]:
    """Every finite limit with the extremes of its quantity."""
    found = []
    units = problem.functions.ports.position.units
    for level, (what, suffix) in enumerate((("stroke", ""), ("speed", "/s"), ("acceleration", "/s^2"))):
        moved = judged.channels[level] - (problem.center if level == 0 else 0.0)
        for i in problem.free:
            limit = float(problem.limits[level, i])
            if np.isfinite(limit):
                low, high = float(moved[:, i].min()), float(moved[:, i].max())
                name, unit = f"{what} of {problem.channels[i]}", units[i] + suffix
                found.append(LimitUse(name=name, unit=unit, least=low, greatest=high, lower=-limit, upper=limit))
    for bound, values in zip(problem.bounds, judged.values.T, strict=True):
        found.append(
            LimitUse(
                name=bound.name,
                unit=bound.unit,
                least=float(values.min()),
                greatest=float(values.max()),
                lower=bound.lower if np.isfinite(bound.lower) else None,
                upper=bound.upper if np.isfinite(bound.upper) else None,
            )
        )
    return tuple(found)


def _evidence(
    judged: Judgement,
    conditions: Conditions,
    random: RandomSummary,
    outcomes: list[Outcome],
    criterion: Criterion,
    rests: bool,
    asked: int,
) -> tuple[Evidence, ...]:
    found = [
        Evidence(
            name="largest share of a limit, on the finer grid",
            value=judged.largest_share,
            upper=1.0 + ROUNDING,
            advice="the motion breaks a limit between samples",
        )
    ]
    if rests:
        peaks = np.abs(judged.channels[1:]).max(axis=(1, 2))
        start = np.abs(judged.channels[1:, 0]).max(axis=1)
        found.append(
            Evidence(
                name="speed or acceleration at the start, share of the largest",
                value=float((start / np.maximum(peaks, np.finfo(float).tiny)).max()),
                upper=ROUNDING,
                advice="the motion does not start at rest",
            )
        )
    if isinstance(criterion, ConditionNumber):
        pair = (conditions.unit_norm, random.best_unit_norm) if criterion.unit_norm else (conditions.si, random.best_si)
        found.append(
            Evidence(
                name="condition number over that of the best random series",
                value=pair[0] / pair[1],
                upper=1.05,
                advice="the optimisation has not helped: more starts, or more time",
            )
        )
    if random.tried < asked:
        found.append(
            Evidence(
                name="random series that were tried before an interrupt",
                value=float(random.tried),
                unit=f"of {asked}",
                lower=float(asked),
                advice="the best of these is kept, and nothing was optimised",
            )
        )
    if outcomes:
        found.append(
            Evidence(
                name="starts that ended at an optimum",
                value=float(sum(outcome.converged for outcome in outcomes)),
                unit=f"of {len(outcomes)}",
                lower=1.0,
                advice=f"the best feasible motion is kept, no optimum; the solver says {_statuses(outcomes)}",
            )
        )
    return tuple(found)


def _statuses(outcomes: list[Outcome]) -> str:
    return ", ".join(sorted({outcome.status for outcome in outcomes}))
