"""Search for faults in logs, first in each log separately, then with the fit to all logs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from functools import cached_property

import numpy as np

from tauloop.common.errors import IdentificationError, Problem, Problems
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, diagnostic
from tauloop.identification.estimation.block_fits import MAX_SAMPLES_PER_LOG
from tauloop.identification.estimation.result import Identification
from tauloop.identification.faults.channels import ChannelFault, channel_faults
from tauloop.identification.faults.forces import unexplained, worse_than_comparable, wrong_signs
from tauloop.identification.faults.late_forces import (
    EARLY_FRICTION,
    MAX_DELAY_SPREAD,
    MAX_LATE_SAMPLES,
    LateForce,
    late_forces,
    possibly_late_outputs,
)
from tauloop.identification.faults.measured_motion import LogMotion, measured_motion
from tauloop.identification.faults.missing_laws import MissingLaw, missing_laws
from tauloop.identification.faults.preparation_error import (
    MIN_PREPARATION_ERRORS,
    length_errors,
    preparation_errors,
)
from tauloop.identification.faults.recording.dead_channels import copied, dead
from tauloop.identification.faults.recording.held_positions import held_positions
from tauloop.identification.faults.recording.signals import clipped_channels
from tauloop.identification.faults.recording.time_stamps import jitter
from tauloop.identification.faults.recording.time_unit import wrong_time_unit
from tauloop.identification.faults.residual_trends import (
    ResidualTrend,
    residual_trends,
    trend_problems,
)
from tauloop.identification.faults.zeros_and_scales import wrong_scale_problem, zeros_and_scales
from tauloop.identification.friction.element_motion import (
    ElementMotion,
    elements,
    motion_of_elements,
)
from tauloop.identification.friction.presliding import PRESLIDING
from tauloop.identification.friction.presliding_lengths import PreslidingChoice
from tauloop.identification.options import IdentificationOptions
from tauloop.identification.preparation.channels import force_limits
from tauloop.identification.preparation.measured_log import MeasuredLog, naming_log, of_log
from tauloop.identification.preparation.periodic import cut_off, not_repeated
from tauloop.identification.regression.data import RegressionData
from tauloop.identification.regression.ties import Ties
from tauloop.logs import (
    Preparation,
    Signals,
    butterworth,
    channels,
    common_cutoff,
    sample_period,
    samples,
)
from tauloop.logs.rates import cutoff_for_accelerations
from tauloop.model import Model

#: Last components of the names of friction coefficients, which cannot be negative.
FRICTION_COEFFICIENTS = ("viscous", "coulomb")
#: A friction coefficient that is fitted together with a presliding column counts as negative if it
#: is this number of standard deviations below zero.
MIN_NEGATIVE_DEVIATIONS = 4.0
#: Kinds of causes in `late_forces` that are friction.
FRICTION_KINDS = ("presliding", EARLY_FRICTION)
#: Kinds of trends that `late_forces` explains.
LATE_TRENDS = ("delay", "compliance")
#: Laws of friction that options can add to the fit; the remedy of each problem names the option.
FITTED_LAWS = ("stribeck", "asymmetric", PRESLIDING)
#: Filters with a cutoff above this fraction of the decimated rate do not affect decimated samples.
MAX_EFFECTIVE_CUTOFF = 0.45


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SearchMotion:
    """The part of a log's motion that the search needs after the log has been freed from memory.

    Attributes:
        name: name of the log.
        velocity: velocities (N, n) at the times of the log's regression data, SI.
        position, acceleration: positions and accelerations at the first `MAX_SAMPLES_PER_LOG` of
            these times.
        period: sampling period of the log, s.
        factor: factor of the decimation.
        cutoff: cutoff of the filter of the positions, Hz; infinite without a filter.
        order: order of the filter of the positions.
        beginning: motion and forces of the first samples, at the log's sampling rate.
        preparation: preparation of the log.
        prepared_again: the first samples, prepared twice, to estimate the error that the preparation
            causes; None for averaged periods.
        common_cutoff: cutoff of the filter of forces and regressor, as a fraction of the rate of
            the regression data; None for no filter.
        late: cached results of `late_forces`, by the checked outputs (None for all).
    """

    name: str
    velocity: np.ndarray
    position: np.ndarray
    acceleration: np.ndarray
    period: float
    factor: int
    cutoff: float
    order: int
    beginning: LogMotion
    preparation: Preparation
    prepared_again: Signals | None
    common_cutoff: float | None
    late: dict[frozenset[str] | None, tuple[LateForce, ...]] = field(default_factory=dict)

    def late_forces(
        self, model: Model, output: str, only: frozenset[str] | None
    ) -> tuple[LateForce, ...]:
        """Return the forces of the log that lag or lead the motion, with the likely causes.

        Causes are delays, holds, bending and presliding friction. The result does not depend on the
        terms of a fit.

        Args:
            model: the machine.
            output: output of the fit, the same in all calls.
            only: names of the outputs to check; None for all.
        """
        if only is not None and only.issuperset(model.output_ports(output)[0]):
            only = None
        if only not in self.late:
            again = None
            if self.prepared_again is not None:
                again = measured_motion(model, self.prepared_again)
            self.late[only] = late_forces(
                model, self.beginning, prepared_again=again, output=output, only=only
            )
        return self.late[only]

    def acceleration_filter(
        self, data: RegressionData
    ) -> Callable[[np.ndarray], np.ndarray] | None:
        """Return the filter of the accelerations, for signals at the times of the data."""
        if data.time is None or len(data) < 2:
            return None
        step = float(data.time[-1] - data.time[0]) / (len(data) - 1)
        cutoff = np.inf
        if np.isfinite(self.cutoff):
            cutoff = cutoff_for_accelerations(self.cutoff, 1.0 / self.period)

        def filtered(x: np.ndarray) -> np.ndarray:
            if cutoff * step < MAX_EFFECTIVE_CUTOFF:
                x = butterworth(x, rate=1.0 / step, cutoff=cutoff, order=self.order)
            return x

        return filtered


def search_motion(
    model: Model, log: MeasuredLog, prepared: Signals, data: RegressionData
) -> SearchMotion:
    """Return the motion of a log at the times of its regression data."""
    names = model.actuators.ports.position.columns
    count = len(data)
    decimated = prepared.part(slice(None, None, log.factor))
    beginning = decimated.part(slice(None, MAX_SAMPLES_PER_LOG))
    cutoffs = [log.effective_preparation.cutoff_of(name) for name in channels(log.log, "position")]
    shared = common_cutoff(prepared, replace(log.effective_preparation, decimation=log.factor))
    return SearchMotion(
        name=log.name,
        velocity=samples(decimated, "velocity", names)[:count],
        position=samples(beginning, "position", names)[:count],
        acceleration=samples(beginning, "acceleration", names)[:count],
        period=sample_period(log.log),
        factor=log.factor,
        cutoff=min((cutoff for cutoff in cutoffs if cutoff is not None), default=np.inf),
        order=log.effective_preparation.order,
        beginning=measured_motion(model, prepared.part(slice(None, MAX_LATE_SAMPLES))),
        preparation=replace(log.effective_preparation, decimation=log.factor),
        prepared_again=log.prepared_again(MAX_LATE_SAMPLES),
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
    """Return the faults of the channels of one log.

    If gains of the forces are estimated, single channels are not tested with the model, because the
    scale of the forces is unknown. If a channel is clipped, dead, a copy or held, or a periodic
    motion does not repeat, no other fault is searched for, because this fault may cause the misfit.

    Args:
        model: the machine.
        log: the log as measured, with its preparation.
        prepared: the prepared log.
        count: number of logs. If there are several, the problems contain the name of the log.
        options: options of the identification.
        ties: relations between the parameters.
    """
    names = model.actuators.ports.position.columns
    is_periodic = log.average is not None
    laws: tuple[MissingLaw, ...] = ()
    delays: dict[str, float] = {}
    driven = [name for name in names if name not in options.preparation.hold]
    problems = (
        *clipped_channels(log.log, limits=force_limits(model)),
        *dead(log.log, driven),
        *copied(log.log, driven),
        *held_positions(log.log, driven),
    )
    if log.average is not None:
        problems += (*not_repeated(log.average), *cut_off(log.average, log.highest))
    if not options.terms.gains and not problems and not model.assembly.is_redundant:
        with naming_log(log, count):
            motion = measured_motion(model, prepared, decimation=log.factor, periodic=is_periodic)
        problems = wrong_time_unit(model, motion, output=options.output)
        if not problems:
            faults = channel_faults(
                model,
                motion,
                output=options.output,
                ties=ties,
                step=log.factor,
                presliding=bool(options.terms.presliding),
            )
            problems = tuple(fault.problem for fault in faults)
            if faults and all(fault.is_late for fault in faults):
                beginning = measured_motion(
                    model, prepared.part(slice(None, MAX_LATE_SAMPLES)), periodic=is_periodic
                )
                again = log.prepared_again(MAX_LATE_SAMPLES)
                motion_again = None if again is None else measured_motion(model, again)
                explained = late_forces(
                    model, beginning, prepared_again=motion_again, output=options.output
                )
                problems, late = _explain_late_channels(model, faults, explained)
                laws = presliding_laws(model, late)
                delays = {force.output: force.delay for force in explained if force.delay}
    problems += jitter(log.log, names)
    return LogFaults(
        problems=tuple(of_log(log.name, count, problem) for problem in problems),
        laws=laws,
        delays=delays,
    )


def _explain_late_channels(
    model: Model, faults: Sequence[ChannelFault], late: Sequence[LateForce]
) -> tuple[tuple[Problem, ...], tuple[LateForce, ...]]:
    """Return a problem for each late channel, or the cause of its late force if it is known.

    The causes of `late_forces` are preferred: they are selected by validation, and their magnitudes
    are more accurate. The problem of a position that leads is also replaced if a delay of the force
    explains the log equally well. The problem of the force then mentions the position.

    Args:
        model: the machine.
        faults: faults of the channels, all of which are late.
        late: late forces with their causes.

    Returns:
        The problems to report, and the late forces that replace problems of channels.
    """
    other_causes = tuple(force for force in late if force.kind != EARLY_FRICTION)
    early: set[str] = set()
    for force in late:
        if force not in other_causes:
            early.update((f"force.{force.output}", f"position.{force.output}"))
    faults = [fault for fault in faults if fault.problem.where not in early]
    explained = {f"force.{force.output}" for force in other_causes}
    positions: dict[str, list[str]] = {}
    are_forces = True
    for fault in faults:
        texts = {fault.problem.where: fault.text, **fault.alternatives}
        forces = explained.intersection(texts)
        are_forces = are_forces and (fault.problem.where.startswith("force.") or bool(forces))
        for name in forces:
            positions[name] = [
                text for channel, text in texts.items() if channel.startswith("position.")
            ]
    if not other_causes or not (are_forces or _have_common_delay(model, other_causes)):
        return tuple(fault.problem for fault in faults), ()
    causes = []
    for force in other_causes:
        problem = force.problem(friction_element(model, force.output))
        rivals = positions.get(problem.where, []) if force.delay else []
        if rivals:
            what = f"{problem.what}; equally good explanation: {', or '.join(rivals)}"
            problem = replace(problem, what=what)
        causes.append(problem)
    return tuple(causes), other_causes


def _have_common_delay(model: Model, late: Sequence[LateForce]) -> bool:
    """Return whether the forces of all actuators have nearly the same delay.

    A lead of the whole motion is equivalent, but leads are tested in whole samples and channel by
    channel, which is less accurate. The result is False for a single actuator.
    """
    delays = [force.delay for force in late]
    actuators = [actuator.name for actuator in model.mechanism.actuators]
    if len(delays) < 2 or {force.output for force in late} != set(actuators) or 0.0 in delays:
        return False
    return max(delays) - min(delays) <= MAX_DELAY_SPREAD * abs(float(np.mean(delays)))


def presliding_laws(model: Model, late: Sequence[LateForce]) -> tuple[MissingLaw, ...]:
    """Return the presliding friction of late forces as laws; none if a force has another cause."""
    if any(force.kind != "presliding" for force in late):
        return ()
    laws = []
    for force in late:
        element = friction_element(model, force.output)
        laws.append(_presliding_law(element, force, force.problem(element)))
    return tuple(laws)


def _presliding_law(element: str, force: LateForce, problem: Problem) -> MissingLaw:
    """Return the presliding friction that explains a late force as a law."""
    return MissingLaw(element=element, kind=PRESLIDING, problem=problem, size=force.ranked[0].size)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFaults:
    """The faults of one log, found without the fit to all logs.

    Attributes:
        problems: the problems to report.
        laws: friction laws that explain all of the problems.
        delays: delays of forces, s, by output.
    """

    problems: tuple[Problem, ...] = ()
    laws: tuple[MissingLaw, ...] = ()
    delays: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class FitFaults:
    """The faults that the residuals of a fit show.

    Attributes:
        problems: the problems to report.
        not_shown: descriptions of zero offsets and factors that the forces do not determine.
        laws: friction laws that can be added to the fit.
        delays: delays of forces, s, by output.
        late_outputs: outputs whose force is late for a reason other than friction.
    """

    problems: tuple[Problem, ...] = ()
    not_shown: tuple[str, ...] = ()
    laws: tuple[MissingLaw, ...] = ()
    delays: Mapping[str, float] = field(default_factory=dict)
    late_outputs: tuple[str, ...] = ()


def faults_of_fit(
    model: Model,
    motions: Sequence[SearchMotion],
    parts: Sequence[RegressionData],
    result: Identification,
    training: RegressionData,
    *,
    output: str,
    presliding: PreslidingChoice | None = None,
) -> FitFaults:
    """Return the faults that the fit shows: wrong signs, offsets, scales, trends, late forces, laws.

    The channels must have no other fault. If the model lacks a friction law, the coefficient of
    another law can be negative, so missing laws take precedence over wrong signs of their drives.
    Late forces resemble missing friction laws, so laws are only reported after `late_forces` has
    been applied. Without motions, as for averaged periods, only the signs are checked.

    Args:
        model: the machine.
        motions, parts: motion and regression data of each log.
        result: the fit to the training data.
        training: the training data.
        output: output of the fit.
        presliding: presliding lengths that were chosen for the fit.
    """
    unknowns, drives = friction(model, training)
    sign_problems = wrong_signs(training, unknowns, drives)
    if not motions:
        return FitFaults(problems=sign_problems or result.timing_problems)
    preparation = _PreparationErrors(model, motions, parts, result, output, presliding)
    trends: list[tuple[ResidualTrend, ...]] = []
    for motion, part in zip(motions, parts, strict=True):
        unknowns, _ = friction(model, part)
        acceleration_filter = motion.acceleration_filter(part)
        log_trends = residual_trends(
            part, unknowns, passed=acceleration_filter, speeds=motion.velocity
        )
        trends.append(
            tuple(
                trend
                for trend in log_trends
                if preparation.is_exceeded_by({trend.output: trend.force})
            )
        )
    scales = WrongScales()
    if not sign_problems:
        scales = wrong_scales(model, motions, parts, output=output)
    laws: tuple[MissingLaw, ...] = ()
    if sign_problems or not (scales.problems or any(trends)):
        element_motions = [
            _element_motion(model, motion, part, output)
            for motion, part in zip(motions, parts, strict=True)
        ]
        laws = tuple(
            law
            for law in missing_laws(
                parts, element_motions, _friction_owners(model, parts[0]), result
            )
            if preparation.is_exceeded_by({law.output: law.force})
        )
    lengths = {} if presliding is None else dict(presliding.lengths)
    is_suspicious = bool(sign_problems or laws or lengths)
    late: list[tuple[SearchMotion, LateForce]] = []
    for motion, part, log_trends in zip(motions, parts, trends, strict=True):
        outputs = {trend.output for trend in log_trends if trend.kind in LATE_TRENDS}
        outputs.update(possibly_late_outputs(part))
        if is_suspicious or outputs:
            only = None if is_suspicious else frozenset(outputs)
            late += [(motion, force) for force in motion.late_forces(model, output, only)]
    if scales.problems and all(force.kind in FRICTION_KINDS for _, force in late):
        return FitFaults(problems=scales.problems, not_shown=scales.not_shown)
    faults = _ranked_faults(model, late, trends, laws, sign_problems, result, motions, lengths)
    problems = faults.problems or _timing_problems(result, preparation)
    delays = {force.output: force.delay for _, force in late if force.delay}
    late_outputs = dict.fromkeys(
        force.output for _, force in late if force.kind not in FRICTION_KINDS
    )
    return replace(
        faults,
        problems=problems,
        not_shown=scales.not_shown,
        delays=delays,
        late_outputs=tuple(late_outputs),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongScales:
    """The wrong zero offsets, gear ratios and torque constants of all logs.

    Attributes:
        problems: a problem for each log with a wrong zero offset, ratio or constant.
        not_shown: descriptions of zero offsets and factors that the forces do not determine.
    """

    problems: tuple[Problem, ...] = ()
    not_shown: tuple[str, ...] = ()


def wrong_scales(
    model: Model,
    motions: Sequence[SearchMotion],
    parts: Sequence[RegressionData],
    *,
    output: str,
) -> WrongScales:
    """Return the wrong zero offsets, gear ratios and torque constants that the forces show.

    Args:
        model: the machine.
        motions, parts: motion and regression data of each log.
        output: output of the fit.
    """
    count = len(motions)
    problems = Problems()
    not_shown: list[str] = []
    for motion, part in zip(motions, parts, strict=True):
        cutoff = None
        if motion.common_cutoff is not None:
            cutoff = motion.common_cutoff / motion.factor
        search = zeros_and_scales(
            model, motion.beginning, part, factor=motion.factor, cutoff=cutoff, output=output
        )
        place = "" if count == 1 else f"{motion.name}: "
        not_shown += (f"{place}{text}" for text in search.not_shown)
        if search.causes:
            problems.append(of_log(motion.name, count, wrong_scale_problem(search.causes)))
    return WrongScales(problems=tuple(problems), not_shown=tuple(not_shown))


class _PreparationErrors:
    """Force errors due to the preparation and to wrong presliding lengths, computed on demand."""

    def __init__(
        self,
        model: Model,
        motions: Sequence[SearchMotion],
        parts: Sequence[RegressionData],
        result: Identification,
        output: str,
        presliding: PreslidingChoice | None,
    ) -> None:
        """Store the arguments of `preparation_errors` and `length_errors`."""
        self._model = model
        self._motions = motions
        self._parts = parts
        self._result = result
        self._output = output
        self._presliding = presliding

    def is_exceeded_by(self, explained: Mapping[str, float]) -> bool:
        """Return whether a fault explains clearly more in an output than the preparation's error.

        Args:
            explained: RMS forces that the fault explains, SI, by output.
        """
        return any(
            force > MIN_PREPARATION_ERRORS * self._errors.get(name, 0.0)
            for name, force in explained.items()
        )

    def is_length_error_exceeded_by(self, explained: Mapping[str, float]) -> bool:
        """Return whether a fault explains more in an output than wrong presliding lengths.

        Args:
            explained: RMS forces that the fault explains, SI, by output.
        """
        return any(force > self._length_errors.get(name, 0.0) for name, force in explained.items())

    @cached_property
    def _length_errors(self) -> dict[str, float]:
        """Largest error of all logs due to the chosen presliding lengths, SI, by output."""
        largest: dict[str, float] = {}
        if self._presliding is None:
            return largest
        for motion, part in zip(self._motions, self._parts, strict=True):
            element_motion = _element_motion(self._model, motion, part, self._output)
            errors = length_errors(element_motion, part, self._result, self._presliding)
            for name, error in errors.items():
                largest[name] = max(error, largest.get(name, 0.0))
        return largest

    @cached_property
    def _errors(self) -> dict[str, float]:
        """Largest error of all logs due to the preparation, SI, by output."""
        largest: dict[str, float] = {}
        for motion, part in zip(self._motions, self._parts, strict=True):
            if motion.prepared_again is None:
                continue
            errors = preparation_errors(
                self._model,
                motion.prepared_again,
                motion.preparation,
                part,
                self._result,
                output=self._output,
            )
            for name, error in errors.items():
                largest[name] = max(error, largest.get(name, 0.0))
        return largest


def _timing_problems(result: Identification, errors: _PreparationErrors) -> tuple[Problem, ...]:
    """Return problems of timing terms that preparation and presliding lengths do not explain."""
    names = [fitted.output for fitted in result.training]
    problems = []
    for term in result.timing:
        explained = dict(zip(names, term.explained.tolist(), strict=True))
        is_shown = term.is_shown and errors.is_exceeded_by(explained)
        if is_shown and errors.is_length_error_exceeded_by(explained):
            problems.append(term.problem(result.base, result.values, result.standard_deviations))
    return tuple(problems)


def _element_motion(
    model: Model, motion: SearchMotion, part: RegressionData, output: str
) -> ElementMotion:
    """Return the motion of all elements at the times of regression data, with the same filter."""
    velocity = motion.velocity[:MAX_SAMPLES_PER_LOG]
    elements_motion = motion_of_elements(
        model, motion.position, velocity, period=motion.period * motion.factor, output=output
    )
    present = None if part.present is None else part.present[: len(velocity)]
    return replace(elements_motion, cutoff=motion.common_cutoff, present=present)


def _ranked_faults(
    model: Model,
    late: Sequence[tuple[SearchMotion, LateForce]],
    trends: Sequence[Sequence[ResidualTrend]],
    laws: Sequence[MissingLaw],
    sign_problems: Sequence[Problem],
    result: Identification,
    motions: Sequence[SearchMotion],
    lengths: Mapping[str, float],
) -> FitFaults:
    """Return the faults to report: late forces, trends, laws, and wrong signs that no law explains.

    Presliding friction is only reported if `missing_laws` reports no other law of its element,
    because Stribeck friction, or friction that the machine file lacks, has a similar effect.
    """
    count = len(motions)
    drives_of = _acting_drives(model)
    certain: set[str] = set()
    early: set[str] = set()
    for _, force in late:
        if force.kind == "presliding":
            certain.update(
                name for name, drives in drives_of.items() if force.output in (name, *drives)
            )
        elif force.kind == EARLY_FRICTION:
            early.add(friction_element(model, force.output))
    problems = Problems(presliding_problems(result, lengths, certain, motions, model))
    other_laws = {law.element for law in laws if law.kind != "presliding"}
    # Causes of late forces are compared without the friction curves that are already in the fit.
    # Such curves explain a late force unless the element also lacks presliding friction.
    lacking = {law.element for law in laws if law.kind == "presliding"}
    other_laws |= _elements_with_friction_curves(result) - lacking
    offered: list[MissingLaw] = []
    for motion, force in late:
        element = friction_element(model, force.output)
        is_fitted = any(force.output in (name, *drives_of.get(name, ())) for name in lengths)
        if force.kind == "presliding" and (is_fitted or element in other_laws):
            continue
        problem = force.problem(element)
        problems.append(of_log(motion.name, count, problem))
        if force.kind == "presliding":
            offered.append(_presliding_law(element, force, problem))
    explained = {(motion.name, force.output) for motion, force in late}
    for motion, log_trends in zip(motions, trends, strict=True):
        unexplained_trends = [
            trend
            for trend in log_trends
            if trend.kind not in LATE_TRENDS or (motion.name, trend.output) not in explained
        ]
        if not sign_problems:
            problems += (
                of_log(motion.name, count, problem)
                for problem in trend_problems(unexplained_trends)
            )
    is_late = any(force.kind not in FRICTION_KINDS for _, force in late)
    if is_late or (any(trends) and not sign_problems):
        return FitFaults(problems=tuple(problems))
    explained_forces = {f"force.{force.output}" for _, force in late}
    for law in laws:
        drives = [f"force.{drive}" for drive in drives_of[law.element]]
        explained_forces.update(drives)
        is_early_friction = law.kind == "stribeck" and law.element in early
        is_reported = law.kind == "presliding" or is_early_friction
        if not (is_reported and drives):
            problems.append(law.problem)
            offered += [law] if law.kind in FITTED_LAWS else []
    remaining_signs = tuple(
        problem for problem in sign_problems if problem.where not in explained_forces
    )
    return FitFaults(problems=(*remaining_signs, *problems), laws=tuple(offered))


def _elements_with_friction_curves(result: Identification) -> set[str]:
    """Return the elements whose friction has columns of Stribeck friction or of an asymmetry."""
    endings = (".stribeck", ".coulomb_asymmetry", ".viscous_asymmetry")
    return {
        name.rpartition(".")[0] for name in result.regressor_parameters if name.endswith(endings)
    }


def presliding_problems(
    result: Identification,
    lengths: Mapping[str, float],
    certain: Collection[str],
    motions: Sequence[SearchMotion],
    model: Model,
) -> tuple[Problem, ...]:
    """Return a problem for each presliding column that describes an effect other than presliding.

    Such a column has a negative coefficient, or a length below the travel between two samples.

    Args:
        result: the fit with the columns.
        lengths: presliding length, m or rad, by element.
        certain: elements whose presliding friction `late_forces` distinguishes from a delay.
        motions: motions of the logs.
        model: the machine.
    """
    problems = Problems()
    drives_of = _acting_drives(model)
    port = model.actuators.ports.position
    units = dict(zip(port.columns, port.units, strict=True))
    estimates = list(zip(result.base.base, result.values, result.standard_deviations, strict=True))
    for element, length in lengths.items():
        for coefficient in (f"{element}.coulomb", f"{element}.{PRESLIDING}"):
            for parameter, value, deviation in estimates:
                is_negative = value < -MIN_NEGATIVE_DEVIATIONS * deviation
                if parameter.representative == coefficient and is_negative:
                    problems.add(
                        coefficient,
                        "is negative in a fit with presliding friction: "
                        f"{value:.3g} +- {deviation:.2g} {parameter.unit}, so the presliding "
                        "column describes another effect",
                        f"align force and motion in time, and do not use --presliding {element}",
                    )
        if element in certain:
            continue
        for motion in motions:
            travel, drive = _largest_travel(model, motion, drives_of.get(element, ()))
            if length < travel:
                unit = units[drive]
                problems.add(
                    f"{element}.{PRESLIDING}",
                    f"the presliding length of {length:.2g} {unit} is shorter than the {travel:.2g} {unit} "
                    f"that {drive} moves between samples: a force that is late by a fraction of a "
                    "sample has the same effect",
                    "align force and motion in time, or sample faster",
                )
                break
    return tuple(problems)


def _largest_travel(model: Model, motion: SearchMotion, drives: Sequence[str]) -> tuple[float, str]:
    """Return the largest RMS travel between two samples among the drives, and its drive.

    The travel is zero if none of the drives is in the log.
    """
    names = list(model.actuators.ports.position.columns)
    travel = [(0.0, "")]
    for drive in drives:
        if drive in names:
            speed = motion.velocity[:, names.index(drive)]
            travel.append((float(np.sqrt(np.mean(speed**2))) * motion.period, drive))
    return max(travel)


def friction_element(model: Model, output: str) -> str:
    """Return the element with Coulomb friction on which only the drive of an output acts.

    The option `--presliding` refers to this friction by the name of the element. Without such an
    element, the result is the output itself.
    """
    with_friction = {
        parameter.name.rpartition(".")[0]
        for parameter in model.parameters
        if parameter.role == "coulomb"
    }
    if output in with_friction:
        return output
    for element, drives in _acting_drives(model).items():
        if drives == (output,) and element in with_friction:
            return element
    return output


def driven_friction(model: Model, output: str) -> tuple[str, ...]:
    """Return the elements whose Coulomb friction acts on single outputs."""
    names = {parameter.name for parameter in model.parameters if parameter.role == "coulomb"}
    with_friction = [friction_element(model, name) for name in model.output_ports(output)[0]]
    return tuple(dict.fromkeys(name for name in with_friction if f"{name}.coulomb" in names))


def _friction_owners(model: Model, data: RegressionData) -> tuple[str, ...]:
    """Return the elements with Coulomb friction, and the drives that act on none of them."""
    drives_of = _acting_drives(model)
    owners = {name.rpartition(".")[0] for name in data.parameters if name.endswith(".coulomb")}
    owners &= set(elements(model))
    covered = {drive for owner in owners for drive in drives_of[owner]}
    drives = (actuator.name for actuator in model.mechanism.actuators)
    return (*sorted(owners), *(name for name in drives if name not in covered))


@contextmanager
def faults_first(faults: Sequence[Problem]) -> Iterator[None]:
    """List the faults before the problems of a rejected fit, because they may be the cause."""
    try:
        yield
    except IdentificationError as error:
        raise IdentificationError([*faults, *error.problems]) from error


def reported_faults(result: Identification, faults: Sequence[Problem]) -> tuple[Problem, ...]:
    """Return the faults, or if there are none, outputs that the model hardly explains.

    If there are no such outputs either, outputs that are explained far worse than comparable ones
    are returned.
    """
    if faults:
        return tuple(faults)
    problems = unexplained(result.training, result.held_out)
    return problems or worse_than_comparable(result.training, result.held_out)


def fault_diagnostic(faults: Sequence[Problem]) -> Diagnostic:
    """Return the number of faults as a diagnostic, which makes a result with faults doubtful."""
    names = ", ".join(dict.fromkeys(problem.where for problem in faults))
    advice = f"see the findings on {names}; correct the log or the machine file first"
    return diagnostic("faults of the data", len(faults), at_most=0.0, advice=advice)


def friction(
    model: Model, data: RegressionData
) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
    """Return the unknowns that are friction coefficients, and the drives that act on each joint.

    Friction of a drive with presliding columns is left out: its coefficient can be negative,
    because only the sum of both kinds of friction must dissipate energy.
    """
    drives_of = _acting_drives(model)
    with_presliding: set[str] = set()
    for name in data.parameters:
        if name.endswith(f".{PRESLIDING}"):
            with_presliding.update(drives_of.get(name.removesuffix(f".{PRESLIDING}"), ()))
    matrix = np.eye(len(data.parameters)) if data.ties is None else data.ties.matrix
    unknowns: dict[str, tuple[str, ...]] = {}
    for unknown, column in zip(data.unknowns, matrix.T, strict=True):
        names = [data.parameters[i].rpartition(".") for i in np.flatnonzero(column)]
        drives = [drive for owner, _, _ in names for drive in drives_of.get(owner, ())]
        if with_presliding.intersection(drives):
            continue
        is_friction = all(role in FRICTION_COEFFICIENTS for _, _, role in names)
        if names and column.min() >= 0.0 and is_friction:
            unknowns[unknown] = tuple(dict.fromkeys(drives))
    return tuple(unknowns), {unknown: drives for unknown, drives in unknowns.items() if drives}


def _acting_drives(model: Model) -> dict[str, tuple[str, ...]]:
    """Return the drives that act on each element: joints, losses, and the drives themselves."""
    transmission = model.assembly.loops.transmission
    names = [actuator.name for actuator in model.mechanism.actuators]
    drives_of: dict[str, tuple[str, ...]] = {name: (name,) for name in names}
    for loss in model.mechanism.losses:
        columns = [model.topology.velocity_names.index(name) for name, _ in loss.terms]
        drives_of[loss.name] = tuple(
            name for name, row in zip(names, transmission, strict=True) if row[columns].any()
        )
    for k, joint in enumerate(model.topology.velocity_names):
        drives_of[joint] = tuple(
            name for name, ratio in zip(names, transmission[:, k], strict=True) if ratio
        )
    return drives_of
