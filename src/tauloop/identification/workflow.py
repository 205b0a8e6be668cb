"""The whole way from logs to parameters: `identify`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from tauloop.common.errors import IdentificationError, InputError, Problem, Problems, solving
from tauloop.common.keywords import keywords
from tauloop.common.progress import Progress, Stages
from tauloop.common.records import dataclass
from tauloop.compiler.c import Compiled
from tauloop.formats.library import mechanism_of
from tauloop.identification.chosen import chosen_estimator
from tauloop.identification.estimation.bending import Bending
from tauloop.identification.estimation.clustered_errors import ClusteredErrors
from tauloop.identification.estimation.error_models import AutocorrelatedErrors
from tauloop.identification.estimation.fitting import fit
from tauloop.identification.estimation.log_comparison import LogComparison, compare_logs
from tauloop.identification.estimation.result import Identification
from tauloop.identification.faults.missing_laws import MissingLaw
from tauloop.identification.faults.search import (
    FitFaults,
    FoundMotion,
    fault_diagnostic,
    faults_of_fit,
    faults_of_log,
    found_motion,
    judged_faults,
    naming,
)
from tauloop.identification.faults.unexcited import unexcited
from tauloop.identification.friction.choice import choose_friction
from tauloop.identification.friction.element_motion import ElementMotion, element_motion
from tauloop.identification.friction.presliding import PreslidingChoice
from tauloop.identification.friction.stated import StatedFriction, presliding_notes, stated_friction
from tauloop.identification.machine_result import MachineIdentification
from tauloop.identification.options import IdentificationOptions, LogSource, TermOptions
from tauloop.identification.parameters.cones import cones
from tauloop.identification.parameters.consistency import ConsistentIdentification, fit_consistent
from tauloop.identification.parameters.essential import essential_parameters
from tauloop.identification.parameters.formula_values import formula_values
from tauloop.identification.parameters.known import DriveGains, drive_gains, scaled
from tauloop.identification.parameters.prior import compare_with_prior
from tauloop.identification.parameters.regroup import symbolic_base_parameters
from tauloop.identification.parameters.regrouping import AnalyticRegrouping
from tauloop.identification.parameters.stated import known_leaves, require_logs, with_stated
from tauloop.identification.preparation.measured import (
    commanded_regressor,
    measured_logs,
    require_all_outputs,
    require_same_outputs,
)
from tauloop.identification.preparation.measured_log import naming_log
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
    dynamic_leaves,
    held_lengths,
    leaf_ties,
    regression_data,
)
from tauloop.identification.regression.streaming import merge, split_each
from tauloop.identification.regression.ties import Ties
from tauloop.logs import Signals, samples
from tauloop.mechanism.omissions import omission_diagnostics
from tauloop.model import Model
from tauloop.model.model import MachineSource

#: Samples from which on the regressor is compiled: it takes seconds, but once for a machine whose
#: logs are identified again and again.
WORTH_COMPILING = 5_000
#: Samples of the motion that a result keeps, at most, to be shown.
SHOWN = 4_000
#: Samples of each log by which laws of friction are chosen, at most: its first ones.
SEARCHED = 32_000
#: Stages of fits and of judging them (`_fitted`).
FITS = 4


def identification_model(
    machine: MachineSource, options: IdentificationOptions | None = None, *, threads: int = 1
) -> Model:
    """The model that `identify` works on: the machine with the leaf parameters that the options know.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        options: what is known of it.
        threads: how many a batch is shared out over, where the model is made here; no number
            depends on it.

    Raises:
        InputError: a known value has another unit than its parameter.
    """
    options = options or IdentificationOptions()
    mechanism = mechanism_of(machine)
    leaves = known_leaves(mechanism, options.terms.known) if options.parameters == "file" else {}
    known = mechanism.with_values(leaves)
    if isinstance(machine, Model) and known == mechanism:
        return machine
    return Model(known, evaluator=Compiled(at_least=WORTH_COMPILING, threads=threads))


@keywords(IdentificationOptions)
@solving(IdentificationError)
def identify(
    machine: MachineSource,
    logs: LogSource | Sequence[LogSource],
    options: IdentificationOptions | None = None,
    *,
    progress: Progress | None = None,
) -> MachineIdentification:
    """Identify base parameters of a machine from logs, and judge them on data that were not fitted.

    Logs are repaired and prepared (filters, velocities, averages of periods), looked through for
    faults, and fitted together as f = Y(q, v, a) p + e, f the measured forces; of each the last
    part is held out. One that states no preparation is prepared as the first.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        logs: one or several: files (CSV, Parquet or others with columns time, position.NAME,
            force.NAME; or a YAML that describes files and columns, and says how this one is
            prepared), logs in memory, or `MeasuredLog`.
        options: how; the defaults without.
        progress: called with what is done and what there is to do.

    Raises:
        InputError: options that have no meaning for these logs or this machine.
        LogError: a log is damaged or lacks channels.
        PoseError: a log leaves the workspace of the machine.
        IdentificationError: the data do not support the identification; faults of the logs first.

    Source: Gautier and Khalil 1990, Direct calculation of minimum set of inertial parameters of
        serial robots; Gautier
    and Poignet 2001, Extended Kalman filtering and weighted least squares dynamic identification of
    robot.

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
    sources = (
        [logs] if isinstance(logs, str | Path) or not isinstance(logs, Sequence) else list(logs)
    )
    _require_suitable(options, len(sources))
    stages = Stages(progress, 3 + len(sources) + (options.validation is not None) + FITS)
    model = identification_model(machine, options)
    if options.terms.gains and model.assembly.is_redundant:
        what = "the actuators are redundant: every equation holds the forces of several drives"
        raise InputError.of("gains", what, "give the forces in N or N m")
    ties = _ties(model, options)
    regrouping = (
        symbolic_base_parameters(model.mechanism, progress=stages.part) if options.regroup else None
    )
    stages.done()
    friction, repaired = stated_friction(model, options.terms), repairs(model, options.preparation)
    validation = [] if options.validation is None else [options.validation]
    measured = measured_logs([*sources, *validation], options, repaired)
    require_logs(options.terms.payload, [log.name for log in measured])
    stages.done()
    prepared = prepare_logs(model, measured, options, ties, len(sources))
    del measured
    stages.done()
    if prepared.is_chosen and _may_choose_friction(model, options):
        prepared, terms = _with_chosen_friction(model, prepared, options, ties, repaired)
        options, friction = replace(options, terms=terms), stated_friction(model, terms)
    data = _logged(model, prepared, options, ties, friction, repaired, stages)
    prepared = replace(prepared, logs=())  # their samples leave the memory
    return _fitted(model, prepared, data, options, regrouping, stages)


def log_data(
    model: Model, log: LogSource, options: IdentificationOptions
) -> tuple[RegressionData, PreparedLogs, tuple[Problem, ...]]:
    """Regression data of one log by itself, how it was prepared, and what is wrong with it: as `identify` has them.

    Args:
        model: see `identification_model`.
        log: a file, or data.
        options: of the identification.

    Raises:
        InputError, LogError, PoseError, IdentificationError: as `identify`.
    """
    ties, friction = _ties(model, options), stated_friction(model, options.terms)
    repaired = repairs(model, options.preparation)
    prepared = prepare_logs(
        model, measured_logs([log], options, repaired), options, ties, 1, may_choose=False
    )
    data = _logged(model, prepared, options, ties, friction, repaired, Stages(None, 1))
    return data.parts[0], prepared, (*prepared.bad_samples, *data.faults)


def _ties(model: Model, options: IdentificationOptions) -> Ties | None:
    """Known relations of the columns, where named parameters of the machine file are the unknowns."""
    if options.parameters != "file":
        return None
    return leaf_ties(
        model, dynamic_leaves(model, known_leaves(model.mechanism, options.terms.known))
    )


def _may_choose_friction(model: Model, options: IdentificationOptions) -> bool:
    """Whether laws of friction may be chosen: the options name none, and forces tell them."""
    terms = options.terms
    names_none = not (terms.asymmetric or terms.stribeck or terms.presliding)
    return names_none and not (
        terms.gains or terms.payload or options.commanded or model.assembly.is_redundant
    )


def _with_chosen_friction(
    model: Model,
    prepared: PreparedLogs,
    options: IdentificationOptions,
    ties: Ties | None,
    repaired: Repairs,
) -> tuple[PreparedLogs, TermOptions]:
    """Return the logs and terms with the laws of friction that validation chose, and what else is better with them."""
    tried = replace(
        options,
        validation=None,
        hold_out=0.3,
        compare_logs=False,
        essential=None,
        regroup=False,
        consistent=False,
        disconnected=(),
    )

    def identified(logs: PreparedLogs, terms: TermOptions) -> MachineIdentification | None:
        """Return the identification of some logs with some terms; None where the data do not support it."""
        of_terms = replace(tried, terms=terms)
        try:
            data = _logged(
                model,
                logs,
                of_terms,
                ties,
                stated_friction(model, terms),
                repaired,
                Stages(None, 1),
            )
            return _fitted(model, replace(logs, logs=()), data, of_terms, None, Stages(None, FITS))
        except (IdentificationError, InputError):
            return None

    def fitted_alone(logs: PreparedLogs, terms: TermOptions) -> Identification | None:
        """Return the fit alone, without a search for faults."""
        of_terms = replace(tried, terms=terms)
        try:
            friction, stages = stated_friction(model, terms), Stages(None, 1)
            data = _logged(
                model, logs, of_terms, ties, friction, repaired, stages, searches_faults=False
            )
            training, held_out = _split(data.parts, of_terms)
            return fit(
                merge(training),
                held_out,
                chosen_estimator(of_terms, (), data.noise),
                errors=logs.errors,
            )
        except (IdentificationError, InputError):
            return None

    part = prepared.part(options.share, SEARCHED)
    velocities = usable_names(model, part, options)
    choice = choose_friction(part, options.terms, identified, fitted_alone, velocities=velocities)
    if not choice.terms_changed:
        return prepared, options.terms
    changed = prepared_again(model, prepared, options, ties, choice.changes)
    channels = replace(changed.channels, notes=(*changed.channels.notes, *choice.notes))
    return replace(changed, channels=channels), choice.terms


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Logged:
    """Regression data of all logs, and what belongs to them.

    Attributes:
        parts: of the logs that are fitted, and then the one to judge by, with all columns.
        machine: the same with the columns of the machine alone.
        faults: of the logs.
        laws: of friction that explain faults of the logs.
        motions: of the logs; none of averaged periods.
        presliding: what was chosen.
        gains: of the drives, where they are sought.
        instruments: of each fitted log, of the commanded motion.
        noise: of the averaged forces.
        repairs: what was put into the logs or taken off, in sentences.
        motion: times and actuator positions of the beginning of the first log.
    """

    parts: list[RegressionData]
    machine: list[RegressionData]
    faults: tuple[Problem, ...]
    laws: tuple[MissingLaw, ...]
    motions: tuple[FoundMotion, ...]
    presliding: PreslidingChoice | None
    gains: DriveGains | None
    instruments: list[np.ndarray]
    noise: np.ndarray | None
    repairs: tuple[str, ...]
    motion: tuple[np.ndarray, np.ndarray] | None


def _require_suitable(options: IdentificationOptions, count: int) -> None:
    """Refuse options that need another number of logs."""
    problems = Problems()
    if options.compare_logs and count < 2:
        what = "is given with one log, which has no other to be compared with"
        problems.add("compare_logs", what, "give several logs")
    for name, beside in (("commanded", options.commanded), ("disconnected", options.disconnected)):
        if beside and len(beside) != count:
            what = f"is given {len(beside)} times for {count} logs"
            problems.add(name, what, "give one for each log, in their order")
    InputError.raise_if_any(problems)


def _logged(
    model: Model,
    prepared: PreparedLogs,
    options: IdentificationOptions,
    ties: Ties | None,
    friction: StatedFriction,
    repaired: Repairs,
    stages: Stages,
    *,
    searches_faults: bool = True,
) -> _Logged:
    """Return regression data of all logs; each log is prepared once, and only one at a time is in memory so."""
    logs, output = prepared.logs, options.output
    faults: list[Problem] = []
    laws: list[MissingLaw] = []
    parts: list[RegressionData] = []
    motions: list[FoundMotion] = []
    elements: list[ElementMotion] = []
    shown: tuple[np.ndarray, np.ndarray] | None = None
    for log in stages.over(logs):
        with naming_log(log, len(logs)):
            signals = log.prepared()
        if searches_faults:
            of_log = faults_of_log(model, log, signals, len(logs), options, ties)
            faults += of_log.problems
            laws += (
                law for law in of_log.laws if law.element not in {other.element for other in laws}
            )
        with naming_log(log, len(logs)):
            how = replace(log.how, decimation=log.factor)
            part = regression_data(
                model, log.source, how, output=output, ties=ties, prepared=signals
            )
            if friction:
                elements.append(
                    element_motion(model, log.source, how, output=output, prepared=signals)
                )
        parts.append(part)
        shown = shown or _shown(model, signals)
        if log.average is None and searches_faults:
            motions.append(found_motion(model, log, signals, part))
        del signals
    averages = [log.average for log in logs[: prepared.fitted] if log.average is not None]
    if averages or output == "joints":
        require_same_outputs(logs, parts)
    elif options.validation is not None:
        require_all_outputs(logs, parts)
    machine = parts
    parts = friction.beside(parts, elements)
    parts, presliding = friction.presliding(
        parts, elements, fitted=prepared.fitted, share=options.share
    )
    taken = (
        known_leaves(model.mechanism, options.terms.known) if options.parameters == "file" else ()
    )
    parts = with_stated(parts, prepared.names, options.terms, taken)
    gains = None
    if options.terms.gains:
        gains = drive_gains(merge(_split(parts, options)[0]))
        parts = [scaled(part, gains) for part in parts]
    instruments = [
        commanded_regressor(source, log, model, options, repaired)
        for source, log in zip(options.commanded, logs, strict=False)
    ]
    lines = repaired.lines(prepared.names, [log.log for log in logs])
    if options.parameters == "file" and (lengths := held_lengths(model, taken)):
        lines += (
            f"{', '.join(lengths)}: of the machine file, not sought, since forces depend on products with masses that "
            "are; give the masses (--known NAME=VALUE) to seek a distance",
        )
    return _Logged(
        parts=parts,
        machine=machine,
        faults=tuple(faults),
        laws=tuple(laws),
        motions=tuple(motions),
        presliding=presliding,
        gains=gains,
        instruments=instruments,
        noise=force_noise(averages, model, output)
        if averages and options.estimator == "wls"
        else None,
        repairs=lines + tuple(f"{log.name}: {log.runs}" for log in logs if log.runs is not None),
        motion=shown,
    )


def _shown(model: Model, signals: Signals) -> tuple[np.ndarray, np.ndarray]:
    """Times and actuator positions of a log, as many as a film needs to be followed."""
    kept = signals.part(slice(None, None, -(-len(signals.time) // SHOWN)))
    return kept.time, samples(kept, "position", model.actuators.ports.position.columns)


def _split(
    parts: list[RegressionData], options: IdentificationOptions
) -> tuple[list[RegressionData], RegressionData]:
    """What of each log is fitted, and what it is judged by."""
    if options.validation is not None:
        return parts[:-1], parts[-1]
    fitted, judged = split_each(parts, options.share)
    return fitted, merge(judged)


def _fitted(
    model: Model,
    logs: PreparedLogs,
    data: _Logged,
    options: IdentificationOptions,
    regrouping: AnalyticRegrouping | None,
    stages: Stages,
) -> MachineIdentification:
    """Fit regression data, and judge them and the fit."""
    errors, parts = logs.errors, data.parts
    bending = _bending(model, data, options)
    whole: Identification | None = None
    if options.validation is None:
        with naming((*logs.bad_samples, *data.faults)):
            estimator = chosen_estimator(options, data.instruments, data.noise)
            whole = fit(merge(parts), None, estimator, errors=errors, bending=bending)
    stages.done()
    fitted, held_out = _split(parts, options)
    training = merge(fitted)
    instruments = [rows[: len(part)] for rows, part in zip(data.instruments, fitted, strict=False)]
    with naming((*logs.bad_samples, *data.faults)):
        estimator = chosen_estimator(options, instruments, data.noise)
        result = fit(training, held_out, estimator, errors=errors, bending=bending)
    stages.done()
    of_fit = FitFaults(problems=data.faults, laws=data.laws)
    if not data.faults:
        of_fit = faults_of_fit(
            model,
            data.motions,
            parts,
            result,
            training,
            output=options.output,
            presliding=data.presliding,
        )
    comparison = None
    if options.compare_logs:
        comparison = _compared(logs, data, options, (result if whole is None else whole).base)
    beside_file = compare_with_prior(model, result, training.unknowns)
    with_payload = training.parameters != data.machine[0].parameters
    alone = merge(data.machine[: logs.fitted]) if with_payload else training
    left_out = unexcited(model, alone, np.random.default_rng(0), output=options.output)
    stages.done()
    lines, is_held = data.repairs, bool(options.preparation.hold)
    if is_held:
        lines += tuple(f"what held axes leave out: {problem.what}" for problem in left_out)
    findings = (
        *logs.bad_samples,
        *logs.channels.problems,
        *judged_faults(result, of_fit.problems or result.timing_problems),
        *(beside_file.findings if data.gains is None else ()),
        *(comparison.problems if comparison is not None else ()),
        *(() if is_held else left_out),
    )
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
    consistent = _consistent(model, fitted, training, held_out) if options.consistent else None
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
        repairs=lines,
        not_shown=of_fit.not_shown,
        machine_file=beside_file,
        log_comparison=comparison,
        filter_scan=logs.scan,
        presliding=data.presliding,
        presliding_notes=presliding_notes(data.presliding, model)
        if data.presliding is not None
        else (),
        known_forces=logs.known_forces,
        channels=logs.channels,
        periods=logs.periods,
        gains=data.gains,
        essential=essential,
        formulas=None
        if regrouping is None
        else formula_values(result if whole is None else whole, regrouping),
        consistent=consistent,
        training=training,
        held_out=held_out,
        motion=data.motion,
        friction_laws=of_fit.laws,
        terms=options.terms,
    )


def _bending(model: Model, data: _Logged, options: IdentificationOptions) -> Bending | None:
    """Return what bending transmissions change; None where outputs are not the forces of the actuators in the motions.

    Forces of unknown scale and of payloads, which the model does not have, are none of these.
    """
    actuators = tuple(actuator.name for actuator in model.mechanism.actuators)
    are_outputs = options.output == "actuators" and not model.assembly.is_redundant
    is_known = not (options.terms.gains or options.terms.payload) and len(data.motions) == len(
        data.parts
    )
    if not (
        are_outputs and is_known and tuple(model.actuators.ports.position.columns) == actuators
    ):
        return None
    motions = [(x.position, x.velocity[: len(x.position)], x.acceleration) for x in data.motions]
    return Bending(model, motions)


def _compared(
    logs: PreparedLogs, data: _Logged, options: IdentificationOptions, base: BaseParameters
) -> LogComparison:
    """The logs fitted apart; where errors are clustered by log, each log's own bars are those of autocorrelation."""
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
    groups = (
        np.repeat(np.arange(len(fitted)), [len(part) for part in fitted])
        if len(fitted) > 1
        else None
    )
    return fit_consistent(training, held_out, cones(model.parameters), model.pi, groups=groups)
