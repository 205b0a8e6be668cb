"""Identifiability of the unknowns by joint model, held positions, measured forces and motions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tauloop.common.errors import PoseError
from tauloop.identification import (
    Conditions,
    ExcitationLimits,
    ExcitationProblem,
    ExcitationTask,
    LogDeterminant,
    base_parameters,
    parameter_ties,
    plan_excitation,
)
from tauloop.mechanism import Mechanism
from tauloop.model import Model
from tauloop.motion import FourierSeries
from tauloop_papers.gantry_tau.fits import multisine
from tauloop_papers.gantry_tau.results import Motion, Told
from tauloop_papers.gantry_tau.settings import Case, Design, TwoRunSettings, by_name

#: Number of samples of one period, for ranks and for designs.
SAMPLES = 60
#: Weight of forces that are not measured, relative to measured ones; effectively zero.
UNMEASURED_WEIGHT = 1e-12
#: Share of a limit above which it counts as reached.
REACHED_SHARE = 0.99
#: Largest relative excess of a limit by rounding.
LIMIT_TOLERANCE = 1e-9


def tellable(settings: TwoRunSettings, mechanism: Mechanism) -> tuple[Told, ...]:
    """Return the table of identifiability, from exact regressors of motions by eq. 2."""
    still = replace(mechanism, rods=tuple(replace(rod, spin="none") for rod in mechanism.rods))
    rows = []
    models = ((False, Model(still)), (True, Model(mechanism)))
    for case in settings.cases:
        for spins, model in models:
            for everything in (False, True):
                rows.append(_told(settings, model, case, spins, everything))
    return tuple(rows)


def _told(
    settings: TwoRunSettings, model: Model, case: Case, spins: bool, everything: bool
) -> Told:
    rng = np.random.default_rng(settings.seed)
    period = settings.recording.period
    ties = parameter_ties(model, settings.parameters)
    names = tuple(actuator.name for actuator in model.mechanism.actuators)
    kept = [k for k, name in enumerate(names) if everything or name in settings.measured]
    rows = []
    for held in case.held:
        motion = multisine(settings, model, held, rng).sample(np.arange(SAMPLES) * period / SAMPLES)
        start = model.forward_kinematics(motion.position).q
        regressor = model.actuators.regressor(
            motion.position, motion.velocity, motion.acceleration, start=start
        )
        rows.append((regressor @ ties.matrix)[:, kept].reshape(-1, len(ties.parameters)))
    base = base_parameters(np.concatenate(rows), ties.parameters, ties.units)
    return Told(
        case=case.name,
        spins=spins,
        measured=len(kept),
        rank=base.rank,
        stated=case.stated[2 * spins + everything] if case.stated else None,
        together=tuple(parameter.name for parameter in base.base if parameter.terms),
        lost=base.no_effect,
    )


def designed(
    settings: TwoRunSettings, mechanism: Mechanism, design: Design
) -> tuple[FourierSeries, ...]:
    """Return the motions of a design: those of the settings, or D-optimal ones without valid ones.

    Every data set is optimized together with the previous ones. This takes minutes, so that the
    settings may store the result.

    Raises:
        IdentificationError: no motion satisfies the limits.
    """
    period = settings.limits.period
    stored = tuple(
        FourierSeries.of(np.array(coefficients), period) for coefficients in design.series
    )
    if stored and _keeps_limits(settings, mechanism, stored):
        return stored
    chosen: list[FourierSeries] = []
    for held in design.held:
        task = _task(settings, mechanism)
        if held is not None:
            task = replace(task, hold=dict(zip(settings.multisine.held, held, strict=True)))
        time = np.arange(SAMPLES) * period / SAMPLES
        before = tuple(series.sample(time) for series in chosen)
        search = replace(
            settings.search,
            task=task,
            criterion=LogDeterminant(),
            solver=replace(settings.search.solver, iterations=design.iterations),
            previous_motions=before,
            seed=settings.search_seed,
        )
        excitation = plan_excitation(mechanism, search)
        chosen.append(excitation.series)
    return tuple(chosen)


def _keeps_limits(
    settings: TwoRunSettings, mechanism: Mechanism, motions: tuple[FourierSeries, ...]
) -> bool:
    """Return whether a machine can perform these motions, which may be out of reach of others."""
    try:
        return judged(settings, mechanism, "", motions).used <= 1.0 + LIMIT_TOLERANCE
    except PoseError:
        return False


def judged(
    settings: TwoRunSettings, mechanism: Mechanism, name: str, motions: tuple[FourierSeries, ...]
) -> Motion:
    """Return the identifiability and the reached limits of a design, without the optimization.

    Args:
        settings: settings of the experiment.
        mechanism: the machine without removed parts.
        name: name of the design.
        motions: motions of the design.
    """
    problem = ExcitationProblem(mechanism, _task(settings, mechanism))
    judgments = [problem.evaluate(series.sample(problem.fine_grid)) for series in motions]
    names = [
        f"{what} of {channel}"
        for what in ("stroke", "speed", "acceleration")
        for channel in problem.channels
    ]
    names += [bound.name for bound in problem.bounds]
    shares = np.max([judgment.shares for judgment in judgments], axis=0)
    rows = np.concatenate([judgment.regressor for judgment in judgments])
    return Motion(
        name=name,
        conditions=Conditions.of(rows, np.zeros((0, rows.shape[1])), problem.base(rows)),
        used=float(shares.max()),
        limits=tuple(
            limit for limit, share in zip(names, shares, strict=True) if share > REACHED_SHARE
        ),
    )


def _task(settings: TwoRunSettings, mechanism: Mechanism) -> ExcitationTask:
    """Return the task: measured forces, unknowns and limits, with all actuators moving."""
    limits = settings.limits
    names = tuple(actuator.name for actuator in mechanism.actuators)
    return ExcitationTask(
        harmonics=limits.harmonics,
        period=limits.period,
        limits=ExcitationLimits(
            stroke=by_name(limits.stroke, names),
            max_acceleration=by_name(limits.acceleration, names),
        ),
        rests=False,
        weights={name: UNMEASURED_WEIGHT for name in names if name not in settings.measured},
        unknowns=settings.parameters,
    )
