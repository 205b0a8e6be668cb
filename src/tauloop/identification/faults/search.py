"""The search for what is wrong with logs: of each by itself, then what the fit shows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from tauloop.common.errors import IdentificationError, Problem, Problems
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, diagnostic
from tauloop.identification.estimation.block_fits import LONGEST
from tauloop.identification.estimation.result import Identification
from tauloop.identification.faults.channels import channel_faults
from tauloop.identification.faults.dead_channels import copied, dead
from tauloop.identification.faults.forces import unexplained, worse_than_twins, wrong_signs
from tauloop.identification.faults.late_forces import (
    EARLY_FRICTION,
    LONGEST as LONGEST_LATE,
    LateForce,
    late_forces,
    seem_late,
)
from tauloop.identification.faults.measured_motion import Measured, measured
from tauloop.identification.faults.missing_laws import MissingLaw, missing_laws
from tauloop.identification.faults.residual_trends import (
    ResidualTrend,
    residual_trends,
    trend_problems,
)
from tauloop.identification.faults.signals import clipped
from tauloop.identification.faults.time_stamps import jitter
from tauloop.identification.faults.time_unit import wrong_time_unit
from tauloop.identification.faults.zeros_and_scales import wrong_scale_problem, zeros_and_scales
from tauloop.identification.friction.element_motion import (
    ElementMotion,
    elements,
    motion_of_elements,
)
from tauloop.identification.friction.presliding import PRESLIDING, PreslidingChoice
from tauloop.identification.options import IdentificationOptions
from tauloop.identification.preparation.channels import force_limits
from tauloop.identification.preparation.measured_log import MeasuredLog, naming_log, of_log
from tauloop.identification.preparation.periodic import cut_off, not_repeated
from tauloop.identification.regression.data import RegressionData
from tauloop.identification.regression.ties import Ties
from tauloop.logs import Signals, butterworth, channels, common_cutoff, sample_period, samples
from tauloop.logs.rates import wider
from tauloop.model import Model

#: Last parts of the names of friction coefficients, which cannot be negative.
FRICTION = ("viscous", "coulomb")
#: A friction coefficient next to a presliding column is negative beyond this many standard
#: deviations.
NEGATIVE = 4.0
#: Explanations of `late_forces` that are of friction alone.
FRICTION_KINDS = ("presliding", EARLY_FRICTION)
#: Kinds of trends that `late_forces` explains.
LATE_TRENDS = ("delay", "compliance")
#: Laws of friction that options name, as their finding's remedy does.
FITTED_LAWS = ("stribeck", "asymmetric", PRESLIDING)
#: A filter whose cut-off is no smaller than this share of the decimated rate has no effect on what
#: is left.
NYQUIST = 0.45


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FoundMotion:
    """What of a log's motion the search needs once the log itself is gone.

    Attributes:
        name: of the log.
        velocity: (N, n) at the times of its regression data, SI.
        position, acceleration: of the first `LONGEST` of them.
        period: between two samples of the log, s.
        factor: of the decimation.
        cutoff, order: of the filter of its positions; infinite for none.
        beginning: motion and forces of its first samples, at its own rate.
        common_cutoff: of the filter that forces and regressor pass, as a share of the rate of the
            regression data; None for none.
    """

    name: str
    velocity: np.ndarray
    position: np.ndarray
    acceleration: np.ndarray
    period: float
    factor: int
    cutoff: float
    order: int
    beginning: Measured
    common_cutoff: float | None

    def passed(self, part: RegressionData) -> Callable[[np.ndarray], np.ndarray] | None:
        """Return what the filter of the accelerations makes of a signal at the times of the regression data."""
        if part.time is None or len(part) < 2:
            return None
        step = float(part.time[-1] - part.time[0]) / (len(part) - 1)
        cutoff = wider(self.cutoff, 1.0 / self.period) if np.isfinite(self.cutoff) else np.inf

        def passed(x: np.ndarray) -> np.ndarray:
            if cutoff * step < NYQUIST:
                x = butterworth(x, rate=1.0 / step, cutoff=cutoff, order=self.order)
            return x

        return passed


def found_motion(
    model: Model, log: MeasuredLog, prepared: Signals, part: RegressionData
) -> FoundMotion:
    """Motion of a log at the times of its regression data."""
    names = model.actuators.ports.position.columns
    kept = prepared.part(slice(None, None, log.factor))
    cutoffs = [log.how.cutoff_of(name) for name in channels(log.log, "position")]
    shared = common_cutoff(prepared, replace(log.how, decimation=log.factor))
    return FoundMotion(
        name=log.name,
        velocity=samples(kept, "velocity", names)[: len(part)],
        position=samples(kept.part(slice(None, LONGEST)), "position", names)[: len(part)],
        acceleration=samples(kept.part(slice(None, LONGEST)), "acceleration", names)[: len(part)],
        period=sample_period(log.log),
        factor=log.factor,
        cutoff=min((cutoff for cutoff in cutoffs if cutoff is not None), default=np.inf),
        order=log.how.order,
        beginning=measured(model, prepared.part(slice(None, LONGEST_LATE))),
        common_cutoff=None if shared is None else shared * log.factor,
    )


def faults_of_log(
    model: Model,
    log: MeasuredLog,
    prepared: Signals,
    count: int,
    options: IdentificationOptions,
    ties: Ties | None,
) -> LogFaults:
    """Return faults of the channels of a log, with its name where it is one of several (`count`).

    Forces of unknown scale, whose gains are sought, tell nothing of single channels. Where a
    channel is clipped, dead or a copy, or the motion does not repeat, no other fault is looked for:
    the misfit is no sign of it.
    """
    names = model.actuators.ports.position.columns
    laws: tuple[MissingLaw, ...] = ()
    moved = [name for name in names if name not in options.preparation.hold]
    own = (
        *clipped(log.log, limits=force_limits(model)),
        *dead(log.log, moved),
        *copied(log.log, moved),
    )
    if log.average is not None:
        own += (*not_repeated(log.average), *cut_off(log.average, log.highest))
    if not options.terms.gains and not own and not model.assembly.is_redundant:
        with naming_log(log, count):
            motion = measured(
                model, prepared, decimation=log.factor, periodic=log.average is not None
            )
        output, slides = options.output, bool(options.terms.presliding)
        own = wrong_time_unit(model, motion, output=output)
        if not own:
            own, late = _wrong_channels(
                model, motion, prepared, output=output, ties=ties, log=log, slides=slides
            )
            laws = offered_presliding(model, late)
    own += jitter(log.log, names)
    return LogFaults(problems=tuple(of_log(log.name, count, problem) for problem in own), laws=laws)


def _wrong_channels(
    model: Model,
    motion: Measured,
    prepared: Signals,
    *,
    output: str,
    ties: Ties | None,
    log: MeasuredLog,
    slides: bool,
) -> tuple[tuple[Problem, ...], tuple[LateForce, ...]]:
    """Return channels that are wrong, or the causes of late forces, which compete where nothing else is wrong."""
    faults = channel_faults(
        model, motion, output=output, ties=ties, step=log.factor, presliding=slides
    )
    if faults and all(fault.is_late for fault in faults):
        beginning = measured(
            model, prepared.part(slice(None, LONGEST_LATE)), periodic=log.average is not None
        )
        late = late_forces(model, beginning, output=output)
        named = [force for force in late if force.kind != EARLY_FRICTION]
        early = {
            f"{kind}.{force.output}"
            for force in late
            if force not in named
            for kind in ("force", "position")
        }
        faults = tuple(fault for fault in faults if fault.problem.where not in early)
        if named and all(fault.problem.where.startswith("force.") for fault in faults):
            return tuple(
                force.problem(rubbing_element(model, force.output)) for force in named
            ), tuple(named)
    return tuple(fault.problem for fault in faults), ()


def offered_presliding(model: Model, late: Sequence[LateForce]) -> tuple[MissingLaw, ...]:
    """Return presliding friction of late forces as laws, where nothing else makes a force late."""
    if any(force.kind != "presliding" for force in late):
        return ()
    laws = []
    for force in late:
        element = rubbing_element(model, force.output)
        length = force.ranked[0].size
        laws.append(
            MissingLaw(
                element=element, kind=PRESLIDING, problem=force.problem(element), size=length
            )
        )
    return tuple(laws)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFaults:
    """What is wrong with a log by itself.

    Attributes:
        problems: the findings.
        laws: of friction that explain all of them.
    """

    problems: tuple[Problem, ...] = ()
    laws: tuple[MissingLaw, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FitFaults:
    """What a fit shows.

    Attributes:
        problems: the findings.
        not_shown: zeros and factors that the forces do not show, in words.
        laws: of friction that the fit may have as well.
    """

    problems: tuple[Problem, ...] = ()
    not_shown: tuple[str, ...] = ()
    laws: tuple[MissingLaw, ...] = ()


def faults_of_fit(
    model: Model,
    motions: Sequence[FoundMotion],
    parts: Sequence[RegressionData],
    result: Identification,
    training: RegressionData,
    *,
    output: str,
    presliding: PreslidingChoice | None = None,
) -> FitFaults:
    """What the fit shows where channels have no other fault: drives that gain energy from friction, trends, laws.

    Friction of a shape that the model lacks can come out negative, so that laws go before the signs
    of their drives. Late forces look like friction of another shape, so that no law is named before
    `late_forces` has been asked. Without motions, of periods that are averaged, only the signs are
    checked.

    Args:
        model: the machine.
        motions, parts: of the logs.
        result: the fit to their training data.
        training: these.
        output: of the fit.
        presliding: lengths that were chosen for it.
    """
    mine, drives = friction(model, training)
    turned = wrong_signs(training, mine, drives)
    if not motions:
        return FitFaults(problems=turned)
    trends: list[list[ResidualTrend]] = []
    for moved, part in zip(motions, parts, strict=True):
        rubbing = friction(model, part)[0]
        trends.append(
            list(residual_trends(part, rubbing, passed=moved.passed(part), speeds=moved.velocity))
        )
    scales, not_shown = Problems(), list[str]()
    for moved, part in () if turned else zip(motions, parts, strict=True):
        search = zeros_and_scales(model, moved.beginning, part, factor=moved.factor, output=output)
        not_shown += (
            text if len(motions) == 1 else f"{moved.name}: {text}" for text in search.not_shown
        )
        if search.causes:
            scales.append(of_log(moved.name, len(motions), wrong_scale_problem(search.causes)))
    laws: tuple[MissingLaw, ...] = ()
    if turned or not (scales or any(trends)):
        along = [
            _element_motion(model, moved, part, output)
            for moved, part in zip(motions, parts, strict=True)
        ]
        laws = missing_laws(parts, along, _rubbing(model, parts[0]), result)
    fitted_lengths = {} if presliding is None else dict(presliding.lengths)
    late: list[tuple[FoundMotion, LateForce]] = []
    for moved, part, followed in zip(motions, parts, trends, strict=True):
        is_suspicious = bool(turned or laws or fitted_lengths)
        only = {trend.output for trend in followed if trend.kind in LATE_TRENDS} | {
            *seem_late(part)
        }
        if is_suspicious or only:
            explained = late_forces(
                model, moved.beginning, output=output, only=None if is_suspicious else only
            )
            late += [(moved, force) for force in explained]
    if scales and all(force.kind in FRICTION_KINDS for _, force in late):
        return FitFaults(problems=tuple(scales), not_shown=tuple(not_shown))
    judged = _judged(model, late, trends, laws, turned, result, motions, fitted_lengths)
    return replace(judged, not_shown=tuple(not_shown))


def _element_motion(
    model: Model, moved: FoundMotion, part: RegressionData, output: str
) -> ElementMotion:
    """Return the motion of all elements at the times of regression data, with the filter that these have passed."""
    velocity = moved.velocity[:LONGEST]
    motion = motion_of_elements(
        model, moved.position, velocity, period=moved.period * moved.factor, output=output
    )
    present = None if part.present is None else part.present[: len(velocity)]
    return replace(motion, cutoff=moved.common_cutoff, present=present)


def _judged(
    model: Model,
    late: Sequence[tuple[FoundMotion, LateForce]],
    trends: Sequence[Sequence[ResidualTrend]],
    laws: Sequence[MissingLaw],
    turned: Sequence[Problem],
    result: Identification,
    motions: Sequence[FoundMotion],
    lengths: Mapping[str, float],
) -> FitFaults:
    """The findings: late forces first, then trends, then laws, and signs of drives that no law explains.

    Presliding friction is named where `missing_laws` names no other law of its element: Stribeck's
    curve, or friction that the machine file has not at all, looks like it as well.
    """
    count, problems = len(motions), Problems()
    acting = _acting(model)
    sliding = {
        name
        for _, force in late
        if force.kind == "presliding"
        for name, drives in acting.items()
        if force.output in (name, *drives)
    }
    problems += presliding_problems(result, lengths, sliding, motions, model)
    soft = {
        rubbing_element(model, force.output) for _, force in late if force.kind == EARLY_FRICTION
    }
    other_laws = {law.element for law in laws if law.kind != "presliding"}
    # a shape of friction that is fitted already explains what a late force is compared without
    lacking = {law.element for law in laws if law.kind == "presliding"}
    other_laws |= _shaped(result) - lacking
    offered: list[MissingLaw] = []
    for moved, force in late:
        element = rubbing_element(model, force.output)
        is_fitted = any(force.output in (name, *acting.get(name, ())) for name in lengths)
        if force.kind == "presliding" and (is_fitted or element in other_laws):
            continue
        problem = force.problem(element)
        problems.append(of_log(moved.name, count, problem))
        if force.kind == "presliding":
            offered.append(
                MissingLaw(
                    element=element, kind=PRESLIDING, problem=problem, size=force.ranked[0].size
                )
            )
    explained = {(moved.name, force.output) for moved, force in late}
    for moved, followed in zip(motions, trends, strict=True):
        left = [
            trend
            for trend in followed
            if not turned
            and not (trend.kind in LATE_TRENDS and (moved.name, trend.output) in explained)
        ]
        problems += (of_log(moved.name, count, problem) for problem in trend_problems(left))
    is_late = any(force.kind not in FRICTION_KINDS for _, force in late)
    if is_late or (any(trends) and not turned):
        return FitFaults(problems=tuple(problems))
    named: set[str] = set()
    for law in laws:
        drives = [f"force.{drive}" for drive in acting[law.element]]
        named.update(drives)
        is_explained = law.kind == "presliding" or (law.kind == "stribeck" and law.element in soft)
        if not (is_explained and drives):
            problems.append(law.problem)
            offered += [law] if law.kind in FITTED_LAWS else []
    named.update(f"force.{force.output}" for _, force in late)
    kept = tuple(problem for problem in turned if problem.where not in named)
    return FitFaults(problems=(*kept, *problems), laws=tuple(offered))


def _shaped(result: Identification) -> set[str]:
    """Return the elements whose friction has columns of Stribeck's curve or of an asymmetry."""
    endings = (".stribeck", ".coulomb_asymmetry", ".viscous_asymmetry")
    return {
        name.rpartition(".")[0] for name in result.regressor_parameters if name.endswith(endings)
    }


def presliding_problems(
    result: Identification,
    lengths: Mapping[str, float],
    certain: Collection[str],
    motions: Sequence[FoundMotion],
    model: Model,
) -> tuple[Problem, ...]:
    """Presliding columns that stand for something else: a coefficient below zero, or a length of less than a sample.

    Args:
        result: the fit with the columns.
        lengths: over which friction turns round, m or rad, by element.
        certain: elements whose presliding friction `late_forces` has told from a delay.
        motions: of the logs.
        model: the machine.
    """
    problems = Problems()
    names = model.actuators.ports.position.columns
    acting = _acting(model)
    for element, length in lengths.items():
        for kind in (FRICTION[1], PRESLIDING):
            for parameter, value, deviation in zip(
                result.base.base, result.values, result.standard_deviations, strict=True
            ):
                if (
                    parameter.representative == f"{element}.{kind}"
                    and value < -NEGATIVE * deviation
                ):
                    what = (
                        f"comes out negative next to the column of presliding friction: {value:.3g} +- {deviation:.2g} "
                        f"{parameter.unit}, so that this column stands for something else"
                    )
                    remedy = f"align force and motion in time, and leave out --presliding {element}"
                    problems.add(f"{element}.{kind}", what, remedy)
        for moved in motions if element not in certain else ():
            own = [list(names).index(drive) for drive in acting.get(element, ()) if drive in names]
            travel = [
                float(np.sqrt(np.mean(moved.velocity[:, k] ** 2))) * moved.period for k in own
            ]
            if travel and length < max(travel):
                what = (
                    f"turns round over {length:.2g}, less than the {max(travel):.2g} that its drive moves from one "
                    "sample to the next: a force that is late by part of a sample looks the same"
                )
                problems.add(
                    f"{element}.{PRESLIDING}",
                    what,
                    "align force and motion in time, or sample faster",
                )
                break
    return tuple(problems)


def rubbing_element(model: Model, output: str) -> str:
    """The element with dry friction that an output's drive alone acts on, by which `--presliding` names it."""
    rubbing = {
        parameter.name.rpartition(".")[0]
        for parameter in model.parameters
        if parameter.role == FRICTION[1]
    }
    if output in rubbing:
        return output
    own = [
        element
        for element, drives in _acting(model).items()
        if drives == (output,) and element in rubbing
    ]
    return own[0] if own else output


def _rubbing(model: Model, data: RegressionData) -> tuple[str, ...]:
    """Elements with friction of their own, and the drives that act on none of them."""
    acting = _acting(model)
    owners = {
        name.rpartition(".")[0] for name in data.parameters if name.endswith(f".{FRICTION[1]}")
    }
    owners &= set(elements(model))
    covered = {drive for owner in owners for drive in acting[owner]}
    drives = (actuator.name for actuator in model.mechanism.actuators)
    return (*sorted(owners), *(name for name in drives if name not in covered))


@contextmanager
def naming(faults: Sequence[Problem]) -> Iterator[None]:
    """Put the faults before the problems of a fit that is refused: they may be its cause."""
    try:
        yield
    except IdentificationError as error:
        raise IdentificationError([*faults, *error.problems]) from error


def judged_faults(result: Identification, faults: Sequence[Problem]) -> tuple[Problem, ...]:
    """The faults; where there are none, outputs that the model explains hardly, or far worse than their twins."""
    if faults:
        return tuple(faults)
    return unexplained(result.training, result.held_out) or worse_than_twins(
        result.training, result.held_out
    )


def fault_diagnostic(faults: Sequence[Problem]) -> Diagnostic:
    """The faults as a figure of the result, so that it is doubtful where there are any."""
    names = ", ".join(dict.fromkeys(problem.where for problem in faults))
    advice = f"see the findings on {names}; mend the log or the machine file first"
    return diagnostic("faults of the data", len(faults), at_most=0.0, advice=advice)


def friction(
    model: Model, data: RegressionData
) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
    """Unknowns that are friction coefficients, and the drives that act on the joint of each."""
    acting = _acting(model)
    sliding = [
        name.removesuffix(f".{PRESLIDING}")
        for name in data.parameters
        if name.endswith(f".{PRESLIDING}")
    ]
    turning = {drive for name in sliding for drive in acting.get(name, ())}
    matrix = np.eye(len(data.parameters)) if data.ties is None else data.ties.matrix
    unknowns: dict[str, tuple[str, ...]] = {}
    for unknown, column in zip(data.unknowns, matrix.T, strict=True):
        parts = [data.parameters[i].rpartition(".") for i in np.flatnonzero(column)]
        if any(set(acting.get(owner, ())) & turning for owner, _, _ in parts):
            continue  # only both together lose energy
        if parts and column.min() >= 0.0 and all(kind in FRICTION for _, _, kind in parts):
            unknowns[unknown] = tuple(
                dict.fromkeys(drive for owner, _, _ in parts for drive in acting.get(owner, ()))
            )
    return tuple(unknowns), {unknown: drives for unknown, drives in unknowns.items() if drives}


def _acting(model: Model) -> dict[str, tuple[str, ...]]:
    """The drives that act on each element: joints, losses, and the drives themselves."""
    transmission = model.assembly.loops.transmission
    names = [actuator.name for actuator in model.mechanism.actuators]
    acting: dict[str, tuple[str, ...]] = {name: (name,) for name in names}
    for loss in model.mechanism.losses:
        places = [model.topology.velocity_names.index(name) for name, _ in loss.terms]
        acting[loss.name] = tuple(
            name for name, row in zip(names, transmission, strict=True) if row[places].any()
        )
    for k, joint in enumerate(model.topology.velocity_names):
        acting[joint] = tuple(
            name for name, ratio in zip(names, transmission[:, k], strict=True) if ratio
        )
    return acting
