"""Planning of optimized excitation motions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from tauloop.common.errors import IdentificationError, InputError, solving
from tauloop.common.execution.interrupts import run_in_abandonable_thread
from tauloop.common.keywords import keywords
from tauloop.common.result import Diagnostic, diagnostic, plain, provenance
from tauloop.formats.library import mechanism_of
from tauloop.identification.excitation.criteria import ConditionNumber
from tauloop.identification.excitation.drives import driven_at
from tauloop.identification.excitation.limits import Bound
from tauloop.identification.excitation.options import ExcitationOptions
from tauloop.identification.excitation.problem import (
    ExcitationProblem,
    ExcitationTask,
    MotionEvaluation,
)
from tauloop.identification.excitation.progress import Search
from tauloop.identification.excitation.result import Conditions, Excitation, LimitUse, Start
from tauloop.identification.excitation.solver import StartOutcome
from tauloop.identification.excitation.starts import Report
from tauloop.logs import read_log, samples
from tauloop.logs.log import TIME
from tauloop.logs.matching import channel_problems
from tauloop.mechanism.model import Mechanism, omission_diagnostics
from tauloop.model import Model
from tauloop.model.model import MachineSource
from tauloop.motion.sampled import SampledMotion

#: Limits may be exceeded by this fraction, due to rounding.
LIMIT_ROUNDING = 1e-9


@keywords(ExcitationOptions)
@solving(IdentificationError)
def plan_excitation(
    machine: MachineSource,
    options: ExcitationOptions | None = None,
    *,
    rng: np.random.Generator | None = None,
    progress: Report | None = None,
) -> Excitation:
    """Plan the motion that excites the base parameters best.

    The search starts with random series within the limits. The best random series are starts of an
    interior-point method with exact gradients, in which loops without a closed form are
    constraints. An interrupt (Ctrl-C) during the search returns the best series so far, within two
    seconds. The result is evaluated on a finer grid by the model's compiled functions. Its
    amplitude is reduced if a limit is violated between the samples of the optimization.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        options: series, space, limits, criterion, and the extent of the search.
        rng: random generator that replaces the options' seed.
        progress: called from another thread with the phase ("random", "optimizing", "polishing"),
            and the completed and total number of steps.

    Returns:
        The excitation: the best series, its condition numbers, and its use of each limit.

    Raises:
        InputError, LogError: the task does not match the machine, or a previous data set cannot be
            read.
        IdentificationError: limits cannot be met, or the rank is ambiguous.
        PoseError: the center, or a previous motion, is out of reach.
        KeyboardInterrupt: an interrupt before any series was found.

    Examples:
        >>> import tauloop as tl
        >>> excitation = tl.plan_excitation("delta", random=10, starts=0)
        >>> excitation.to_pandas()["position.leg1.motor"].shape
        (1200,)
    """
    mechanism = mechanism_of(machine)
    options = options or ExcitationOptions()
    mechanism = driven_at(mechanism, options.direct_drives) if options.direct_drives else mechanism
    before = _previous_motions(mechanism, options)
    problem = ExcitationProblem(
        mechanism, options.task, _previous_triangle(mechanism, options.task, before)
    )
    rng = np.random.default_rng(options.seed) if rng is None else rng
    search = Search(problem, options, rng, progress or (lambda phase, done, total: None))
    is_interrupted = run_in_abandonable_thread(search.run)
    value, coefficients, evaluation, base, random = search.best(is_interrupted)
    outcomes, polished = search.outcomes(is_interrupted, coefficients, value)
    result = Excitation(
        machine=mechanism.name,
        options=replace(options, task=problem.task),
        series=problem.series(coefficients),
        ports=problem.functions.ports.motion,
        outputs=problem.model.output_ports(problem.output),
        model=problem.model,
        base=base,
        conditions=Conditions.of(evaluation.regressor, problem.before, base),
        random=random,
        limits=_limit_use(problem, evaluation),
        starts=tuple(map(Start.of, outcomes)),
        polished=tuple(map(Start.of, polished)),
        diagnostics=(),
        provenance=provenance(
            packages=("numpy", "scipy", "casadi"),
            options={
                "criterion": {"name": type(options.criterion).__name__, **plain(options.criterion)},
                "task": plain(options.task) | {"channels": options.task.channels.name},
                "random": options.random,
                "starts": options.starts,
                "polish": options.polish,
                "solver": plain(options.solver),
            },
            inputs={"machine": mechanism.name, "data_sets_before": len(before)},
        ),
    )
    diagnostics = (*_diagnostics(result, evaluation, outcomes), *omission_diagnostics(mechanism))
    return replace(result, diagnostics=diagnostics)


def _previous_motions(mechanism: Mechanism, options: ExcitationOptions) -> list[SampledMotion]:
    """Return the motions of previous data sets; files are read."""
    if not options.previous_motions:
        return []
    ports = Model(mechanism).functions(options.task.channels).ports.motion
    units = {
        quantity: dict(zip(port.columns, port.units, strict=True))
        for quantity, port in ports.items()
    }
    motions = []
    for item in options.previous_motions:
        if not isinstance(item, SampledMotion):
            log = read_log(item)
            InputError.raise_if_any(channel_problems(log, units, str(item)))
            rates = {
                quantity: samples(log, quantity, tuple(columns))
                for quantity, columns in units.items()
            }
            item = SampledMotion(time=log[TIME].to_numpy(), **rates)
        motions.append(item)
    return motions


def _previous_triangle(
    mechanism: Mechanism, task: ExcitationTask, before: Sequence[SampledMotion]
) -> np.ndarray | None:
    """Return a QR factor R of the previous data sets' regressor; None if there are none."""
    if not before:
        return None
    problem = ExcitationProblem(mechanism, task)
    rows = [problem.evaluate(motion).regressor for motion in before]
    return np.asarray(np.linalg.qr(np.concatenate(rows), mode="r"))


def _limit_use(problem: ExcitationProblem, evaluation: MotionEvaluation) -> tuple[LimitUse, ...]:
    """Return every finite limit with the extremes of its quantity."""
    limited = []
    units = problem.functions.ports.position.units
    for level, (quantity, suffix) in enumerate(
        (("stroke", ""), ("speed", "/s"), ("acceleration", "/s^2"))
    ):
        values = evaluation.channels[level] - (problem.center if level == 0 else 0.0)
        for i in problem.free[np.isfinite(problem.limits[level, problem.free])]:
            limit = float(problem.limits[level, i])
            bound = Bound.up_to(quantity, problem.channels[i], units[i] + suffix, limit)
            limited.append((bound, values[:, i]))
    limited += zip(problem.bounds, evaluation.values.T, strict=True)
    return tuple(
        LimitUse(
            name=bound.name,
            unit=bound.unit,
            least=float(values.min()),
            greatest=float(values.max()),
            lower=bound.lower if np.isfinite(bound.lower) else None,
            upper=bound.upper if np.isfinite(bound.upper) else None,
        )
        for bound, values in limited
    )


def _diagnostics(
    result: Excitation, evaluation: MotionEvaluation, outcomes: Sequence[StartOutcome]
) -> Iterator[Diagnostic]:
    """Yield diagnostics of the limits, of the condition number and of the search."""
    criterion = result.options.criterion
    conditions = result.conditions
    random = result.random
    yield diagnostic(
        "largest fraction of a limit, on the finer grid",
        evaluation.largest_share,
        at_most=1.0 + LIMIT_ROUNDING,
        advice="the motion violates a limit between samples: reduce its limits",
    )
    if result.task.rests:
        peaks = np.abs(evaluation.channels[1:]).max(axis=(1, 2))
        start = np.abs(evaluation.channels[1:, 0]).max(axis=1)
        yield diagnostic(
            "speed or acceleration at the start, fraction of the largest",
            (start / np.maximum(peaks, np.finfo(float).tiny)).max(),
            at_most=LIMIT_ROUNDING,
            advice="the motion does not start at rest: increase the number of harmonics, or repeat "
            "the search with another seed",
        )
    if isinstance(criterion, ConditionNumber):
        condition, best_random = conditions.si, random.best_si
        if criterion.unit_norm:
            condition, best_random = conditions.unit_norm, random.best_unit_norm
        yield diagnostic(
            "condition number over that of the best random series",
            condition / best_random,
            at_most=1.05,
            advice="the optimization did not improve the motion: allow more starts, or more time",
        )
    requested = result.options.random
    if random.tried < requested:
        yield diagnostic(
            "random series that were tried before an interrupt",
            random.tried,
            at_least=float(requested),
            unit=f"of {requested}",
            advice="the result is the best of these series and was not optimized: run the search to its end",
        )
    if outcomes:
        statuses = ", ".join(sorted({outcome.status for outcome in outcomes}))
        yield diagnostic(
            "starts that ended at an optimum",
            sum(outcome.converged for outcome in outcomes),
            at_least=1.0,
            unit=f"of {len(outcomes)}",
            advice=f"the result is the best feasible motion, but not an optimum: allow more iterations or time; "
            f"solver status: {statuses}",
        )
