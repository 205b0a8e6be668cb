"""The workflow from logs to parameters: `identify`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import IdentificationError, InputError, Problem, Problems, solving
from tauloop.common.keywords import keywords
from tauloop.common.progress import Progress, Stages
from tauloop.common.records import dataclass
from tauloop.compiler.c.calling.evaluator import default_evaluator
from tauloop.formats.library import mechanism_of
from tauloop.identification.chosen import chosen_estimator
from tauloop.identification.estimation.bending import Bending
from tauloop.identification.estimation.block_fits import MAX_SAMPLES_PER_LOG
from tauloop.identification.estimation.clustered_errors import ClusteredErrors
from tauloop.identification.estimation.error_models import AutocorrelatedErrors
from tauloop.identification.estimation.evaluation import overall
from tauloop.identification.estimation.fitting import fit_regression
from tauloop.identification.estimation.log_comparison import LogComparison, compare_logs
from tauloop.identification.estimation.result import Identification
from tauloop.identification.faults.missing_laws import MissingLaw
from tauloop.identification.faults.recording.position_unit import with_unit_problems
from tauloop.identification.faults.search import (
    FitFaults,
    SearchMotion,
    driven_friction,
    fault_diagnostic,
    faults_first,
    faults_of_fit,
    faults_of_log,
    reported_faults,
    search_motion,
    wrong_scales,
)
from tauloop.identification.faults.unexcited import unexcited_directions
from tauloop.identification.friction.choice import CUTOFF_FACTORS, TermsFit, choose_friction
from tauloop.identification.friction.element_motion import ElementMotion, element_motion
from tauloop.identification.friction.presliding_lengths import (
    PreslidingChoice,
    RepeatedMeasurement,
)
from tauloop.identification.friction.stated import StatedFriction, presliding_notes, stated_friction
from tauloop.identification.machine_result import MachineIdentification
from tauloop.identification.options import IdentificationOptions, LogSource, TermOptions
from tauloop.identification.parameters.cones import consistency_cones
from tauloop.identification.parameters.consistency import ConsistentIdentification, fit_consistent
from tauloop.identification.parameters.essential import essential_parameters
from tauloop.identification.parameters.known import DriveGains, drive_gains, scaled
from tauloop.identification.parameters.prior import compare_with_prior
from tauloop.identification.parameters.stated import known_leaves, require_logs, with_stated
from tauloop.identification.preparation.choice.trials import decimated_cutoff
from tauloop.identification.preparation.measured import (
    commanded_regressor,
    measured_logs,
    require_all_outputs,
    require_same_outputs,
)
from tauloop.identification.preparation.measured_log import MeasuredLog, naming_log
from tauloop.identification.preparation.periodic import force_noise
from tauloop.identification.preparation.prepare import (
    PreparedLogs,
    prepare_logs,
    prepared_again,
    usable_names,
)
from tauloop.identification.preparation.repairs import Repairs, repairs
from tauloop.identification.regression.base_parameters import BaseParameters
from tauloop.identification.regression.data import RegressionData
from tauloop.identification.regression.from_log import (
    dynamic_parameters,
    held_lengths,
    parameter_ties,
    regression_data,
)
from tauloop.identification.regression.streaming import merge_data, split_each
from tauloop.identification.regression.ties import Ties
from tauloop.identification.regrouping.formula_values import formula_values
from tauloop.identification.regrouping.regroup import symbolic_base_parameters
from tauloop.identification.regrouping.regrouping import AnalyticRegrouping
from tauloop.logs import Preparation, Signals, sample_period, samples, with_cutoffs
from tauloop.logs.repeated import measured_again
from tauloop.mechanism.model import omission_diagnostics
from tauloop.model import Model
from tauloop.model.model import MachineSource

#: Maximum number of samples of the motion that are stored in a result for display.
MAX_DISPLAYED_SAMPLES = 4_000
#: Maximum number of samples, from the beginning of each log, for the choice of friction laws and
#: for the fit of a single log.
MAX_FRICTION_SAMPLES = 32_000
#: Number of simulated measurements that show the effect of motion errors on presliding lengths.
SIMULATED_MEASUREMENTS = 3
#: Number of stages of the fits and of their evaluation (`_fit_and_evaluate`).
FIT_STAGES = 4


def identification_model(
    machine: MachineSource, options: IdentificationOptions | None = None, *, threads: int = 1
) -> Model:
    """Return the model that `identify` uses: the machine with the known independent parameters.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        options: options with the known parameters.
        threads: number of threads for batches if a new model is created; it does not affect
            results.

    Raises:
        InputError: a known value has another unit than its parameter.
    """
    options = options or IdentificationOptions()
    mechanism = mechanism_of(machine)
    leaves = known_leaves(mechanism, options.terms.known) if options.unknowns == "file" else {}
    known = mechanism.with_values(leaves)
    if isinstance(machine, Model) and known == mechanism:
        return machine
    return Model(known, evaluator=default_evaluator(threads=threads))


@keywords(IdentificationOptions)
@solving(IdentificationError)
def identify(
    machine: MachineSource,
    logs: LogSource | Sequence[LogSource],
    options: IdentificationOptions | None = None,
    *,
    progress: Progress | None = None,
) -> MachineIdentification:
    """Identify the base parameters of a machine from logs, and evaluate them on held-out data.

    Logs are repaired, prepared (filters, velocities, averages of periods) and checked for faults.
    They are then fitted together as f = Y(q, v, a) p + e, where f are the measured forces. The last
    part of each log is held out. A log without a given preparation is prepared like the first log.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        logs: one log or several: files (CSV, Parquet or others with columns time, position.NAME,
            force.NAME, or a YAML file that describes files, columns and preparation), logs in
            memory (an `xarray.Dataset`, or a `pandas.DataFrame` with the headers of a CSV file), or
            `MeasuredLog`.
        options: options of the identification.
        progress: called with the completed and the total number of stages.

    Returns:
        The identification: base parameters with standard deviations, errors on held-out data,
        findings about the logs, and the requested additional fits.

    Raises:
        InputError: options have no meaning for these logs or this machine.
        LogError: a log is damaged or lacks channels.
        PoseError: a log leaves the workspace of the machine.
        IdentificationError: the data do not support the identification; faults of the logs are
            listed first.

    Source: Gautier and Khalil 1990, Direct calculation of minimum set of inertial parameters of
        serial robots; Gautier and Poignet 2001, Extended Kalman filtering and weighted least
        squares dynamic identification of robot.

    Examples:
        >>> import tauloop as tl
        >>> import numpy as np
        >>> model = tl.Model(tl.load("four_bar"))
        >>> time = np.linspace(0.0, 4.0, 801)
        >>> angle = np.pi * np.sin(2.0 * time) + 0.5 * np.sin(7.0 * time)
        >>> speed = 2.0 * np.pi * np.cos(2.0 * time) + 3.5 * np.cos(7.0 * time)
        >>> rate = -4.0 * np.pi * np.sin(2.0 * time) - 24.5 * np.sin(7.0 * time)
        >>> motion = angle[:, None], speed[:, None], rate[:, None]
        >>> forces = model.actuators.inverse_dynamics(*motion).force
        >>> sensors = tl.logs.Sensors(resolution=[0.0], force_noise=[1e-3])
        >>> rng = np.random.default_rng(1)
        >>> log = tl.logs.measure(time, motion[0], forces, ["motor"], ["rad"], ["N m"], sensors, rng)
        >>> result = tl.identify(model, log)
        >>> result.status.value
        'ok'
        >>> result.advice
        ()
        >>> result.to_pandas().loc["crank_pin.coulomb", ["value", "machine_file"]].round(3).tolist()
        [0.01, 0.01]
    """
    options = options or IdentificationOptions()
    sources: list[LogSource]
    if isinstance(logs, str | Path) or not isinstance(logs, Sequence):
        sources = [logs]
    else:
        sources = list(logs)
    _require_suitable(options, len(sources))
    validation = [] if options.validation is None else [options.validation]
    stages = Stages(progress, 3 + len(sources) + len(validation) + FIT_STAGES)
    model = identification_model(machine, options)
    if options.terms.gains and model.assembly.is_redundant:
        what = "the actuators are redundant: every equation contains the forces of several drives"
        raise InputError.of("gains", what, "give the forces in N or N m")
    ties = _ties(model, options)
    regrouping = None
    if options.regroup:
        regrouping = symbolic_base_parameters(model.mechanism, progress=stages.part)
    stages.done()
    # Names of elements are checked before the logs are read.
    stated_friction(model, options.terms)
    log_repairs = repairs(model, options.preparation)
    measured = measured_logs([*sources, *validation], options, log_repairs)
    require_logs(options.terms.payload_body, [log.name for log in measured])
    stages.done()
    with with_unit_problems(model, [log.log for log in measured]):
        prepared = prepare_logs(model, measured, options, ties, len(sources))
        del measured
        stages.done()
        prepared, options = _with_chosen_friction(model, prepared, options, ties, log_repairs)
        friction = stated_friction(model, options.terms)
        data = _identification_data(model, prepared, options, ties, friction, log_repairs, stages)
    # Release the memory of the samples, which are no longer needed.
    prepared = replace(prepared, logs=())
    return _fit_and_evaluate(model, prepared, data, options, regrouping, stages)


def log_data(
    model: Model,
    log: LogSource,
    options: IdentificationOptions,
    *,
    may_choose: bool = False,
) -> tuple[RegressionData, PreparedLogs, tuple[Problem, ...]]:
    """Return the regression data of one log, its preparation and its problems, as in `identify`.

    Args:
        model: see `identification_model`.
        log: the log: a file, a log in memory, or `MeasuredLog`.
        options: options of the identification.
        may_choose: whether validation may choose options that are not given, as in `identify`. Use
            False if several logs must be treated in the same way.

    Raises:
        InputError, LogError, PoseError, IdentificationError: as for `identify`.
    """
    data, prepared, _ = _data_of_log(model, log, options, may_choose=may_choose)
    return data.parts[0], prepared, (*prepared.bad_samples, *data.faults)


def fitted_log_data(
    model: Model, log: LogSource, options: IdentificationOptions
) -> tuple[RegressionData, PreparedLogs, tuple[Problem, ...], Identification | None]:
    """Return the data, preparation and problems of one log, and a fit to the beginning of this log.

    The problems include the faults that the fit shows. The fit is None if faults are found before
    the fit, or if the log does not determine the parameters.

    Args:
        model, log, options: as for `log_data`.

    Raises:
        InputError, LogError, PoseError, IdentificationError: as for `identify`.
    """
    data, prepared, options = _data_of_log(model, log, options, may_choose=False)
    problems = data.faults
    fit: Identification | None = None
    if not problems:
        beginning = data
        if len(prepared.logs[0].log.time) > MAX_FRICTION_SAMPLES:
            part = prepared.part(1.0, MAX_FRICTION_SAMPLES)
            beginning = _data_of_prepared_log(model, part, options)
        fit, problems = _fit_of_log(model, prepared, beginning, options)
    return data.parts[0], prepared, (*prepared.bad_samples, *problems), fit


def _data_of_log(
    model: Model, log: LogSource, options: IdentificationOptions, *, may_choose: bool
) -> tuple[_IdentificationData, PreparedLogs, IdentificationOptions]:
    """Return the data and the preparation of one log, and the options with chosen friction laws."""
    ties = _ties(model, options)
    log_repairs = repairs(model, options.preparation)
    measured = measured_logs([log], options, log_repairs)
    prepared = prepare_logs(model, measured, options, ties, 1, may_choose=may_choose)
    prepared, options = _with_chosen_friction(model, prepared, options, ties, log_repairs)
    return _data_of_prepared_log(model, prepared, options), prepared, options


def _data_of_prepared_log(
    model: Model, prepared: PreparedLogs, options: IdentificationOptions
) -> _IdentificationData:
    """Return the data of one log."""
    return _identification_data(
        model,
        prepared,
        options,
        _ties(model, options),
        stated_friction(model, options.terms),
        repairs(model, options.preparation),
        Stages(None, 1),
    )


def _fit_of_log(
    model: Model, prepared: PreparedLogs, data: _IdentificationData, options: IdentificationOptions
) -> tuple[Identification | None, tuple[Problem, ...]]:
    """Return the fit of a single log and its faults; the fit is None if it is not possible.

    For a single log, the error model "logs" is replaced by autocorrelated errors.
    """
    if prepared.errors == ClusteredErrors(by="log"):
        prepared = replace(prepared, errors=AutocorrelatedErrors())
    fitted, held_out = _split(data.parts, options)
    training = merge_data(fitted)
    bending = _bending(model, data, options)
    try:
        result = _fit(prepared, data, options, training, held_out, data.instruments, bending)
    except IdentificationError:
        return None, ()
    faults = _faults_of_fit(model, data, options, result, training)
    return result, reported_faults(result, faults.problems)


def _ties(model: Model, options: IdentificationOptions) -> Ties | None:
    """Return the ties of the columns if the unknowns are parameters of the file; None otherwise."""
    if options.unknowns != "file":
        return None
    known = known_leaves(model.mechanism, options.terms.known)
    return parameter_ties(model, dynamic_parameters(model, known))


def _may_choose_friction(model: Model, options: IdentificationOptions) -> bool:
    """Return whether validation may choose friction laws: no law is given, and forces show laws."""
    terms = options.terms
    are_stated = bool(terms.asymmetric or terms.stribeck or terms.presliding)
    are_undetermined = bool(
        terms.gains or terms.payload_body or options.commanded or model.assembly.is_redundant
    )
    return not (are_stated or are_undetermined)


def _with_chosen_friction(
    model: Model,
    prepared: PreparedLogs,
    options: IdentificationOptions,
    ties: Ties | None,
    log_repairs: Repairs,
) -> tuple[PreparedLogs, IdentificationOptions]:
    """Return the logs, and the options with the friction laws that validation chose.

    Options of the preparation also change if other values are better with the chosen laws, or with
    known delays of the forces. Nothing is chosen if validation chose no option of the preparation,
    or if the options state friction laws.
    """
    if not (prepared.is_chosen and _may_choose_friction(model, options)):
        return prepared, options
    part = prepared.part(options.share, MAX_FRICTION_SAMPLES)
    trials = _FrictionTrials(model, part, options, ties, log_repairs)
    choice = choose_friction(
        part,
        options.terms,
        trials.identify_with,
        trials.fit_with,
        elements=driven_friction(model, options.output),
        velocities=usable_names(model, part, options),
    )
    if not (choice.terms_changed or choice.changes):
        return prepared, options
    changed = prepared_again(model, prepared, options, ties, choice.changes)
    channels = replace(changed.channels, notes=(*changed.channels.notes, *choice.notes))
    return replace(changed, channels=channels), replace(options, terms=choice.terms)


class _FrictionTrials:
    """Identifications and fits of a part of the logs with friction laws, to choose among the laws.

    Presliding lengths are those that predict forces best along the measured motion. Only the final
    fit corrects these lengths for errors of the motion: the correction takes most of the time of a
    search and hardly changes the errors that trials compare. Trials of the same logs and terms are
    computed once.
    """

    def __init__(
        self,
        model: Model,
        part: PreparedLogs,
        options: IdentificationOptions,
        ties: Ties | None,
        log_repairs: Repairs,
    ) -> None:
        """Store the arguments; nothing is fitted yet.

        Args:
            model: the machine.
            part: the part of the logs that is used for the choice.
            options, ties, log_repairs: as for `_identification_data`.
        """
        self._model = model
        self._ties = ties
        self._log_repairs = log_repairs
        self._options = replace(
            options,
            validation=None,
            hold_out=0.3,
            compare_logs=False,
            essential=None,
            regroup=False,
            consistent=False,
            disconnected=(),
        )
        self._band = min(part.possible_cutoffs({}, CUTOFF_FACTORS), default=None)
        self._searched: list[tuple[PreparedLogs, TermOptions, dict[str, float]]] = []
        self._fitted: list[tuple[PreparedLogs, TermOptions, TermsFit | None]] = []
        self._motions: list[tuple[PreparedLogs, tuple[SearchMotion, ...]]] = []

    def identify_with(self, logs: PreparedLogs, terms: TermOptions) -> MachineIdentification | None:
        """Return the identification of logs with terms; None if the data do not support it."""
        options = replace(self._options, terms=terms)
        try:
            data = self._data(logs, options, searches_faults=True)
            self._motions.append((logs, data.motions))
            if data.presliding is not None:
                self._searched.append((logs, terms, dict(data.presliding.lengths)))
            without_samples = replace(logs, logs=())
            stages = Stages(None, FIT_STAGES)
            return _fit_and_evaluate(
                self._model, without_samples, data, options, None, stages, fits_complete_logs=False
            )
        except (IdentificationError, InputError):
            return None

    def fit_with(self, logs: PreparedLogs, terms: TermOptions) -> TermsFit | None:
        """Return the fit without a search for faults; None if the data do not support it.

        Its error is evaluated at frequencies that all cutoffs pass. At higher frequencies the
        regressor contains noise of the motion, which would favor the lowest cutoff.
        """
        for known_logs, known_terms, known_fit in self._fitted:
            if known_terms == terms and known_logs.is_prepared_as(logs):
                return known_fit
        try:
            fitted = self._fit(logs, terms)
        except (IdentificationError, InputError):
            fitted = None
        self._fitted.append((logs, terms, fitted))
        return fitted

    def _fit(self, logs: PreparedLogs, terms: TermOptions) -> TermsFit:
        """Return the fit of `fit_with`."""
        if "" in terms.presliding.values():
            terms = replace(terms, presliding=self._lengths(logs, terms))
        options = replace(self._options, terms=terms)
        data = self._data(logs, options, searches_faults=False, common_filter=False)
        training, held_out = _split(data.parts, options)
        cutoffs = [decimated_cutoff(log.source, log.effective_preparation) for log in logs.logs]
        filtered = [part.low_passed(cutoff) for part, cutoff in zip(training, cutoffs, strict=True)]
        if self._band is not None:
            rate = 1.0 / (sample_period(logs.logs[0].log) * logs.logs[0].factor)
            held_out = held_out.low_passed(self._band / rate)
        estimator = chosen_estimator(options, (), data.noise)
        fitted = fit_regression(merge_data(filtered), held_out, estimator, errors=logs.errors)
        percent = np.array([output.rmse_percent for output in fitted.held_out])
        lengths = {} if data.presliding is None else data.presliding.lengths
        return TermsFit(error=overall(percent), lengths=lengths)

    def _lengths(self, logs: PreparedLogs, terms: TermOptions) -> dict[str, float]:
        """Return the presliding lengths of logs, searched unless a trial has determined them."""
        for known_logs, known_terms, lengths in self._searched:
            if known_terms == terms and known_logs.is_prepared_as(logs):
                return lengths
        options = replace(self._options, terms=terms)
        data = self._data(logs, options, searches_faults=False)
        lengths = {} if data.presliding is None else dict(data.presliding.lengths)
        self._searched.append((logs, terms, lengths))
        return lengths

    def _data(
        self,
        logs: PreparedLogs,
        options: IdentificationOptions,
        *,
        searches_faults: bool,
        common_filter: bool = True,
    ) -> _IdentificationData:
        """Return the regression data of logs with the terms of the options."""
        motions: tuple[SearchMotion, ...] = ()
        for known_logs, known_motions in self._motions:
            if known_logs.is_prepared_as(logs):
                motions = known_motions
        return _identification_data(
            self._model,
            logs,
            options,
            self._ties,
            stated_friction(self._model, options.terms),
            self._log_repairs,
            Stages(None, 1),
            searches_faults=searches_faults,
            common_filter=common_filter,
            corrects_lengths=False,
            known_motions=motions,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _IdentificationData:
    """Regression data of all logs, with the results of their checks.

    Attributes:
        parts: regression data of the fitted logs, followed by those of the validation log if there
            is one, with all columns.
        machine: the same data with only the columns of the machine.
        faults: problems of the logs.
        laws: friction laws that explain faults of the logs.
        delays: delays of forces that explain faults of the logs, s, by output.
        motions: motions of the logs; empty for averaged periods.
        presliding: the chosen presliding lengths.
        gains: gains of the drives, if they are estimated.
        instruments: instruments of each fitted log, from the commanded motion.
        noise: standard deviation of the averaged forces.
        repairs: notes on repairs and subtracted forces.
        motion: times and actuator positions of the first log.
    """

    parts: list[RegressionData]
    machine: list[RegressionData]
    faults: tuple[Problem, ...]
    laws: tuple[MissingLaw, ...]
    delays: Mapping[str, float]
    motions: tuple[SearchMotion, ...]
    presliding: PreslidingChoice | None
    gains: DriveGains | None
    instruments: list[np.ndarray]
    noise: np.ndarray | None
    repairs: tuple[str, ...]
    motion: tuple[np.ndarray, np.ndarray] | None


def _require_suitable(options: IdentificationOptions, count: int) -> None:
    """Reject options that do not match the number of logs."""
    problems = Problems()
    if options.compare_logs and count < 2:
        what = "there is only one log, so there is nothing to compare"
        problems.add("compare_logs", what, "give several logs")
    recordings = {"commanded": options.commanded, "disconnected": options.disconnected}
    for name, entries in recordings.items():
        if entries and len(entries) != count:
            what = f"{counted(len(entries), 'recording')} for {counted(count, 'log')}"
            problems.add(name, what, "give one for each log, in the order of the logs")
    InputError.raise_if_any(problems)


@dataclass(slots=True, kw_only=True, eq=False)
class _CollectedLogs:
    """Regression data, motions and faults of the logs, in the order of the logs.

    Attributes:
        parts: regression data with only the columns of the machine.
        elements: motions of the elements with stated friction; empty without stated friction.
        repeated: further measurements of these motions, which correct presliding lengths.
        motions: see `_IdentificationData`.
        faults, delays: see `_IdentificationData`.
        laws: friction laws by element.
        motion: see `_IdentificationData`.
    """

    parts: list[RegressionData] = field(default_factory=list)
    elements: list[ElementMotion] = field(default_factory=list)
    repeated: list[RepeatedMeasurement] = field(default_factory=list)
    motions: list[SearchMotion] = field(default_factory=list)
    faults: list[Problem] = field(default_factory=list)
    delays: dict[str, float] = field(default_factory=dict)
    laws: dict[str, MissingLaw] = field(default_factory=dict)
    motion: tuple[np.ndarray, np.ndarray] | None = None

    def add_faults(
        self,
        model: Model,
        log: MeasuredLog,
        signals: Signals,
        count: int,
        options: IdentificationOptions,
        ties: Ties | None,
    ) -> None:
        """Add the faults of one of several logs, with the laws and delays that explain them."""
        of_log = faults_of_log(model, log, signals, count, options, ties)
        self.faults += of_log.problems
        for law in of_log.laws:
            self.laws.setdefault(law.element, law)
        self.delays |= of_log.delays


def _collected_logs(
    model: Model,
    prepared: PreparedLogs,
    options: IdentificationOptions,
    ties: Ties | None,
    friction: StatedFriction,
    stages: Stages,
    *,
    searches_faults: bool,
    common_filter: bool,
    corrects_lengths: bool,
    known_motions: Sequence[SearchMotion],
) -> _CollectedLogs:
    """Return the data of all logs. Only one log is prepared and in memory at a time."""
    logs, output = prepared.logs, options.output
    collected = _CollectedLogs()
    parts, motions = collected.parts, collected.motions
    for log in stages.over(logs):
        with naming_log(log, len(logs)):
            signals = log.prepared()
        if searches_faults:
            collected.add_faults(model, log, signals, len(logs), options, ties)
        with naming_log(log, len(logs)):
            how = replace(log.effective_preparation, decimation=log.factor)
            part = regression_data(
                model,
                log.source,
                how,
                output=output,
                ties=ties,
                prepared=signals,
                common_filter=common_filter,
            )
            if friction:
                motion = element_motion(model, log.source, how, output=output, prepared=signals)
                collected.elements.append(motion if common_filter else replace(motion, cutoff=None))
                if corrects_lengths and friction.searched and len(parts) < prepared.fitted:
                    collected.repeated += _measured_again(
                        model, log, signals, how, output, ties, common_filter
                    )
        parts.append(part)
        collected.motion = collected.motion or _displayed_motion(model, signals)
        if log.average is None and searches_faults:
            searched = known_motions[len(motions) : len(motions) + 1]
            motions += searched or [search_motion(model, log, signals, part)]
        del signals
    return collected


def _identification_data(
    model: Model,
    prepared: PreparedLogs,
    options: IdentificationOptions,
    ties: Ties | None,
    friction: StatedFriction,
    log_repairs: Repairs,
    stages: Stages,
    *,
    searches_faults: bool = True,
    common_filter: bool = True,
    corrects_lengths: bool = True,
    known_motions: Sequence[SearchMotion] = (),
) -> _IdentificationData:
    """Return the regression data of all logs, with the results of their checks.

    Args:
        model: the machine.
        prepared: the logs with their preparations.
        options: options of the identification.
        ties: relations between the parameters.
        friction: friction laws of the options.
        log_repairs: repairs of the logs.
        stages: progress; one stage for each log.
        searches_faults: whether to search faults of the logs.
        common_filter: whether to apply the filter of forces and regressor.
        corrects_lengths: whether to correct searched presliding lengths for errors of the motion.
        known_motions: motions from the same preparations, which are used again with their late
            forces.
    """
    collected = _collected_logs(
        model,
        prepared,
        options,
        ties,
        friction,
        stages,
        searches_faults=searches_faults,
        common_filter=common_filter,
        corrects_lengths=corrects_lengths,
        known_motions=known_motions,
    )
    averages = [log.average for log in prepared.logs[: prepared.fitted] if log.average is not None]
    if averages or options.output == "joints":
        require_same_outputs(prepared.logs, collected.parts)
    elif options.validation is not None:
        require_all_outputs(prepared.logs, collected.parts)
    parts = friction.add_columns(collected.parts, collected.elements)
    parts, presliding = friction.add_presliding(
        parts,
        collected.elements,
        repeated=collected.repeated,
        fitted=prepared.fitted,
        share=options.share,
    )
    has_file_unknowns = options.unknowns == "file"
    known = known_leaves(model.mechanism, options.terms.known) if has_file_unknowns else ()
    parts = with_stated(parts, prepared.names, options.terms, known)
    gains = None
    if options.terms.gains:
        gains = drive_gains(merge_data(_split(parts, options)[0]))
        parts = [scaled(part, gains) for part in parts]
    instruments = [
        commanded_regressor(source, log, model, options, log_repairs)
        for source, log in zip(options.commanded, prepared.logs, strict=False)
    ]
    is_weighted = bool(averages) and options.estimator == "wls"
    return _IdentificationData(
        parts=parts,
        machine=collected.parts,
        faults=tuple(collected.faults),
        laws=tuple(collected.laws.values()),
        delays=collected.delays,
        motions=tuple(collected.motions),
        presliding=presliding,
        gains=gains,
        instruments=instruments,
        noise=force_noise(averages, model, options.output) if is_weighted else None,
        repairs=_data_notes(
            prepared, log_repairs, held_lengths(model, known) if has_file_unknowns else ()
        ),
        motion=collected.motion,
    )


def _data_notes(
    prepared: PreparedLogs, log_repairs: Repairs, lengths: Sequence[str]
) -> tuple[str, ...]:
    """Return the notes on repairs, on lengths that are not estimated, and on repeated runs."""
    notes = log_repairs.lines(prepared.names, [log.log for log in prepared.logs])
    if lengths:
        notes += (
            f"{', '.join(lengths)}: value from the machine file, not estimated, because forces "
            "depend on products with unknown masses; give the masses (--known NAME=VALUE) to "
            "estimate distances",
        )
    return notes + tuple(f"{log.name}: {log.runs}" for log in prepared.logs if log.runs is not None)


def _measured_again(
    model: Model,
    log: MeasuredLog,
    signals: Signals,
    preparation: Preparation,
    output: str,
    ties: Ties | None,
    common_filter: bool,
) -> list[RepeatedMeasurement]:
    """Return simulated measurements of the beginning of a log."""
    preparation = with_cutoffs(log.source, preparation)
    beginning = signals.part(slice(MAX_SAMPLES_PER_LOG * preparation.decimation))

    def data_of(motion: Signals) -> tuple[RegressionData, ElementMotion]:
        """Return the regression data and the motion of the elements."""
        part = regression_data(
            model,
            log.source,
            preparation,
            output=output,
            ties=ties,
            prepared=motion,
            common_filter=common_filter,
        )
        elements = element_motion(model, log.source, preparation, output=output, prepared=motion)
        return part, elements if common_filter else replace(elements, cutoff=None)

    rng = np.random.default_rng(0)
    logs = [
        measured_again(log.source, beginning, preparation, rng)
        for _ in range(SIMULATED_MEASUREMENTS)
    ]
    exact = data_of(logs[0][0])
    return [RepeatedMeasurement(exact=exact, measured=data_of(measured)) for _, measured in logs]


def _displayed_motion(model: Model, signals: Signals) -> tuple[np.ndarray, np.ndarray]:
    """Return the times and actuator positions of a log, with enough samples for display."""
    stride = math.ceil(len(signals.time) / MAX_DISPLAYED_SAMPLES)
    displayed = signals.part(slice(None, None, stride))
    return displayed.time, samples(displayed, "position", model.actuators.ports.position.columns)


def _split(
    parts: list[RegressionData], options: IdentificationOptions
) -> tuple[list[RegressionData], RegressionData]:
    """Return the fitted part of each log, and the held-out data."""
    if options.validation is not None:
        return parts[:-1], parts[-1]
    fitted, held_out = split_each(parts, options.share)
    return fitted, merge_data(held_out)


def _fit_and_evaluate(
    model: Model,
    logs: PreparedLogs,
    data: _IdentificationData,
    options: IdentificationOptions,
    regrouping: AnalyticRegrouping | None,
    stages: Stages,
    *,
    fits_complete_logs: bool = True,
) -> MachineIdentification:
    """Return the identification from regression data, with checks and further fits.

    Without a validation log, the complete logs are fitted as well unless the caller declines it.
    """
    bending = _bending(model, data, options)
    whole = None
    if options.validation is None and fits_complete_logs:
        whole = _fit(logs, data, options, merge_data(data.parts), None, data.instruments, bending)
    stages.done()
    fitted, held_out = _split(data.parts, options)
    training = merge_data(fitted)
    instruments = [rows[: len(part)] for rows, part in zip(data.instruments, fitted, strict=False)]
    result = _fit(logs, data, options, training, held_out, instruments, bending)
    stages.done()
    best = result if whole is None else whole
    fit_faults = _faults_of_fit(model, data, options, result, training)
    comparison = None
    if options.compare_logs:
        comparison = _compare_logs(logs, data, options, best.base)
    machine_file = compare_with_prior(model, result, training.unknowns)
    not_excited = _unexcited(model, logs, data, options, training)
    stages.done()
    findings = (*logs.bad_samples, *logs.channels.problems)
    findings += reported_faults(result, fit_faults.problems)
    if data.gains is None:
        findings += machine_file.findings
    if comparison is not None:
        findings += comparison.problems
    notes = data.repairs
    if options.preparation.hold:
        notes += tuple(f"because of held axes, {problem.what}" for problem in not_excited)
    else:
        findings += not_excited
    result = replace(
        result,
        diagnostics=(
            *result.diagnostics,
            fault_diagnostic(findings),
            *logs.beyond,
            *omission_diagnostics(model.mechanism),
        ),
    )
    essential = None
    if options.essential is not None:
        essential = essential_parameters(
            result, training, held_out, largest_deviation=options.essential
        )
    consistent = None
    if options.consistent:
        consistent = _consistent(model, fitted, training, held_out)
    notes_on_presliding: tuple[str, ...] = ()
    if data.presliding is not None:
        notes_on_presliding = presliding_notes(data.presliding, model)
    formulas = None
    if regrouping is not None:
        formulas = formula_values(best, regrouping)
    stages.done()
    return MachineIdentification(
        diagnostics=result.diagnostics,
        provenance=result.provenance,
        model=model,
        logs=logs.names[: logs.fitted],
        hold_out=options.hold_out,
        identification=result,
        whole_log=whole,
        data_findings=findings,
        repairs=notes,
        not_shown=fit_faults.not_shown,
        machine_file=machine_file,
        log_comparison=comparison,
        filter_scan=logs.scan,
        presliding=data.presliding,
        presliding_notes=notes_on_presliding,
        known_forces=logs.known_forces,
        channels=logs.channels,
        periods=logs.periods,
        gains=data.gains,
        essential=essential,
        formulas=formulas,
        consistent=consistent,
        training=training,
        held_out=held_out,
        motion=data.motion,
        friction_laws=fit_faults.laws,
        force_delays=fit_faults.delays,
        late_outputs=fit_faults.late_outputs,
        terms=options.terms,
    )


def _fit(
    logs: PreparedLogs,
    data: _IdentificationData,
    options: IdentificationOptions,
    fitted: RegressionData,
    held_out: RegressionData | None,
    instruments: Sequence[np.ndarray],
    bending: Bending | None,
) -> Identification:
    """Return the fit of the logs; an error of the fit lists the faults of the logs first."""
    with faults_first((*logs.bad_samples, *data.faults)):
        estimator = chosen_estimator(options, instruments, data.noise)
        return fit_regression(fitted, held_out, estimator, errors=logs.errors, bending=bending)


def _faults_of_fit(
    model: Model,
    data: _IdentificationData,
    options: IdentificationOptions,
    result: Identification,
    training: RegressionData,
) -> FitFaults:
    """Return the faults of the logs or, if the logs have none, the faults that the fit shows.

    A friction law that explains faults of a log is only reported if no wrong zero or gear ratio
    explains the log, because these can look like friction in a search that only shifts channels.
    """
    if data.laws:
        scales = wrong_scales(model, data.motions, data.parts, output=options.output)
        if scales.problems:
            return FitFaults(problems=scales.problems, not_shown=scales.not_shown)
    if data.faults:
        return FitFaults(problems=data.faults, laws=data.laws, delays=data.delays)
    return faults_of_fit(
        model,
        data.motions,
        data.parts,
        result,
        training,
        output=options.output,
        presliding=data.presliding,
    )


def _unexcited(
    model: Model,
    logs: PreparedLogs,
    data: _IdentificationData,
    options: IdentificationOptions,
    training: RegressionData,
) -> tuple[Problem, ...]:
    """Return problems of the machine's parameters that the fitted motion does not excite."""
    has_more_columns = training.parameters != data.machine[0].parameters
    machine_data = merge_data(data.machine[: logs.fitted]) if has_more_columns else training
    return unexcited_directions(model, machine_data, output=options.output)


def _bending(
    model: Model, data: _IdentificationData, options: IdentificationOptions
) -> Bending | None:
    """Return the effect of compliant transmissions; None if it cannot be computed.

    The outputs must be the forces of the actuators whose motions are known. Forces of unknown scale
    and of payloads are excluded, because the model does not describe them.
    """
    actuators = tuple(actuator.name for actuator in model.mechanism.actuators)
    positions = tuple(model.actuators.ports.position.columns)
    if options.output != "actuators" or model.assembly.is_redundant or positions != actuators:
        return None
    if options.terms.gains or options.terms.payload_body or len(data.motions) != len(data.parts):
        return None
    motions = [(x.position, x.velocity[: len(x.position)], x.acceleration) for x in data.motions]
    return Bending(model, motions)


def _compare_logs(
    logs: PreparedLogs,
    data: _IdentificationData,
    options: IdentificationOptions,
    base: BaseParameters,
) -> LogComparison:
    """Return the comparison of separate fits of the logs.

    In the fit of a single log, the error model "logs" is replaced by autocorrelated errors.
    """
    errors = AutocorrelatedErrors() if logs.errors == ClusteredErrors(by="log") else logs.errors
    estimator = chosen_estimator(options, (), data.noise)
    return compare_logs(
        data.parts[: logs.fitted], logs.names[: logs.fitted], base, estimator, errors=errors
    )


def _consistent(
    model: Model,
    fitted: Sequence[RegressionData],
    training: RegressionData,
    held_out: RegressionData,
) -> ConsistentIdentification:
    """Return the physically consistent parameters, with the samples grouped by log."""
    groups = None
    if len(fitted) > 1:
        groups = np.repeat(np.arange(len(fitted)), [len(part) for part in fitted])
    return fit_consistent(
        training, held_out, consistency_cones(model.parameters), model.pi, groups=groups
    )
