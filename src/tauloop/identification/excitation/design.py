"""Optimised excitation: motions that tell the parameters best, under all limits of the machine, from several starts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from tauloop.common.errors import IdentificationError, InputError, solving
from tauloop.common.interrupts import leavable
from tauloop.common.keywords import keywords
from tauloop.common.result import Diagnostic, diagnostic, plain, provenance
from tauloop.formats.library import mechanism_of
from tauloop.identification.excitation.criteria import ConditionNumber
from tauloop.identification.excitation.drives import driven_at
from tauloop.identification.excitation.limits import Bound
from tauloop.identification.excitation.options import ExcitationOptions
from tauloop.identification.excitation.problem import ExcitationProblem, ExcitationTask, Judgement
from tauloop.identification.excitation.progress import Search
from tauloop.identification.excitation.result import Conditions, Excitation, LimitUse, Start
from tauloop.identification.excitation.solver import StartOutcome
from tauloop.identification.excitation.starts import Report
from tauloop.logs import read_log, samples
from tauloop.logs.log import TIME
from tauloop.logs.matching import channel_problems
from tauloop.mechanism.model import Mechanism
from tauloop.mechanism.omissions import omission_diagnostics
from tauloop.model import Model
from tauloop.model.model import MachineSource
from tauloop.motion.sampled import SampledMotion

#: Limits may be exceeded by this share: rounding.
ROUNDING = 1e-9


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

    Random series under the limits come first; the best of them are starts of an interior point
    method with exact gradients, in which loops that have no closed form are constraints. An
    interrupt (Ctrl-C) while it runs keeps the best series so far, within two seconds. The result is
    judged on a finer grid by the functions that all applications use, and made smaller where a
    limit breaks between the samples of the optimisation.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        options: series, space, limits, criterion, and how long is searched.
        rng: source of randomness in place of the options' seed.
        progress: called with the phase ("random", "optimising", "polishing"), what is done and what
            there is to do; from another thread than the caller's.

    Raises:
        InputError, LogError: the task does not fit the machine; data sets before that cannot be
            read.
        IdentificationError: limits that cannot be met, or no clear rank.
        PoseError: the centre, or a motion before, is out of reach.
        KeyboardInterrupt: an interrupt before there is any series.

    Examples:
        >>> import tauloop as tl
        >>> excitation = tl.plan_excitation("delta", random=10, starts=0)
        >>> excitation.to_pandas()["position.leg1.motor"].shape
        (1200,)
    """
    mechanism = mechanism_of(machine)
    options = options or ExcitationOptions()
    mechanism = driven_at(mechanism, options.drive) if options.drive else mechanism
    before = _motions(mechanism, options)
    problem = ExcitationProblem(mechanism, options.task, _triangle(mechanism, options.task, before))
    rng = np.random.default_rng(options.seed) if rng is None else rng
    search = Search(problem, options, rng, progress or (lambda phase, done, total: None))
    is_interrupted = leavable(search.run)
    value, coefficients, judged, base, random = search.best(is_interrupted)
    outcomes, polished = search.outcomes(is_interrupted, coefficients, value)
    result = Excitation(
        machine=mechanism.name,
        options=replace(options, task=problem.task),
        series=problem.series(coefficients),
        ports=problem.functions.ports.motion,
        outputs=problem.model.output_ports(problem.output),
        model=problem.model,
        base=base,
        conditions=Conditions.of(judged.regressor, problem.before, base),
        random=random,
        limits=_limits(problem, judged),
        starts=tuple(map(Start.of, outcomes)),
        polished=tuple(map(Start.of, polished)),
        diagnostics=(),
        provenance=provenance(
            packages=("numpy", "scipy", "casadi"),
            options={
                "criterion": {"name": type(options.criterion).__name__, **plain(options.criterion)},
                "task": plain(options.task) | {"space": options.task.space.name},
                "random": options.random,
                "starts": options.starts,
                "polished": options.polished,
                "solver": plain(options.solver),
            },
            inputs={"machine": mechanism.name, "data_sets_before": len(before)},
        ),
    )
    return replace(
        result,
        diagnostics=(*_diagnostics(result, judged, outcomes), *omission_diagnostics(mechanism)),
    )


def _motions(mechanism: Mechanism, options: ExcitationOptions) -> list[SampledMotion]:
    """The motions of the data sets before; of files, those of the channels' columns."""
    if not options.after:
        return []
    ports = Model(mechanism).motion(options.task.space).ports.motion
    wanted = {
        kind: dict(zip(port.columns, port.units, strict=True)) for kind, port in ports.items()
    }
    motions = []
    for item in options.after:
        if not isinstance(item, SampledMotion):
            log = read_log(item)
            InputError.raise_if_any(channel_problems(log, wanted, str(item)))
            parts = {kind: samples(log, kind, tuple(columns)) for kind, columns in wanted.items()}
            item = SampledMotion(time=log[TIME].to_numpy(), **parts)
        motions.append(item)
    return motions


def _triangle(
    mechanism: Mechanism, task: ExcitationTask, before: Sequence[SampledMotion]
) -> np.ndarray | None:
    """Triangle with the normal matrix of the data sets before."""
    if not before:
        return None
    problem = ExcitationProblem(mechanism, task)
    rows = [problem.judge(motion).regressor for motion in before]
    return np.asarray(np.linalg.qr(np.concatenate(rows), mode="r"))


def _limits(problem: ExcitationProblem, judged: Judgement) -> tuple[LimitUse, ...]:
    """Every finite limit with the extremes of its quantity."""
    limited = []
    units = problem.functions.ports.position.units
    for level, (what, suffix) in enumerate(
        (("stroke", ""), ("speed", "/s"), ("acceleration", "/s^2"))
    ):
        moved = judged.channels[level] - (problem.center if level == 0 else 0.0)
        for i in problem.free[np.isfinite(problem.limits[level, problem.free])]:
            limit = float(problem.limits[level, i])
            limited.append(
                (Bound.up_to(what, problem.channels[i], units[i] + suffix, limit), moved[:, i])
            )
    return tuple(
        LimitUse(
            name=bound.name,
            unit=bound.unit,
            least=float(values.min()),
            greatest=float(values.max()),
            lower=bound.lower if np.isfinite(bound.lower) else None,
            upper=bound.upper if np.isfinite(bound.upper) else None,
        )
        for bound, values in [*limited, *zip(problem.bounds, judged.values.T, strict=True)]
    )


def _diagnostics(
    result: Excitation, judged: Judgement, outcomes: Sequence[StartOutcome]
) -> Iterator[Diagnostic]:
    criterion, conditions, random = result.options.criterion, result.conditions, result.random
    yield diagnostic(
        "largest share of a limit, on the finer grid",
        judged.largest_share,
        at_most=1.0 + ROUNDING,
        advice="the motion breaks a limit between samples",
    )
    if result.task.rests:
        peaks = np.abs(judged.channels[1:]).max(axis=(1, 2))
        start = np.abs(judged.channels[1:, 0]).max(axis=1)
        yield diagnostic(
            "speed or acceleration at the start, share of the largest",
            (start / np.maximum(peaks, np.finfo(float).tiny)).max(),
            at_most=ROUNDING,
            advice="the motion does not start at rest",
        )
    if isinstance(criterion, ConditionNumber):
        pair = (
            (conditions.unit_norm, random.best_unit_norm)
            if criterion.unit_norm
            else (conditions.si, random.best_si)
        )
        yield diagnostic(
            "condition number over that of the best random series",
            pair[0] / pair[1],
            at_most=1.05,
            advice="the optimisation has not helped: more starts, or more time",
        )
    asked = result.options.random
    if random.tried < asked:
        yield diagnostic(
            "random series that were tried before an interrupt",
            random.tried,
            at_least=float(asked),
            unit=f"of {asked}",
            advice="the best of these is kept, and nothing was optimised",
        )
    if outcomes:
        yield diagnostic(
            "starts that ended at an optimum",
            sum(outcome.converged for outcome in outcomes),
            at_least=1.0,
            unit=f"of {len(outcomes)}",
            advice="the best feasible motion is kept, no optimum; the solver says "
            + ", ".join(sorted({outcome.status for outcome in outcomes})),
        )
