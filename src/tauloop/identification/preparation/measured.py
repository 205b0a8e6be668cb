"""Reading of logs for an identification, from files or memory, each with its preparation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import InputError, Problem, Problems
from tauloop.identification.options import IdentificationOptions, LogSource
from tauloop.identification.preparation.measured_log import MeasuredLog
from tauloop.identification.preparation.repairs import Repairs
from tauloop.identification.preparation.two_runs import SubtractionOptions, subtract_actuator_forces
from tauloop.identification.regression.data import RegressionData
from tauloop.identification.regression.from_log import motion_regressor, require_positions
from tauloop.logs import Signals, load_recording, samples
from tauloop.logs.files.opening import is_frame
from tauloop.logs.log import as_signals
from tauloop.model import Model

#: Largest RMS difference of commanded from measured positions of the same motion, as a fraction of
#: their standard deviation.
MAX_COMMAND_DIFFERENCE = 0.5


def measured_logs(
    sources: Sequence[LogSource], options: IdentificationOptions, repairs: Repairs
) -> list[MeasuredLog]:
    """Return the logs, read and repaired, each with its preparation.

    A log without a given preparation is prepared like the first log.

    Raises:
        InputError: two logs are identical.
    """
    logs: list[MeasuredLog] = []
    for number, source in enumerate(sources, start=1):
        log = recorded(source, f"log {number}", options.data, repairs)
        if options.disconnected:
            disconnected = recorded(
                options.disconnected[number - 1], f"disconnected {number}", options.data, repairs
            )
            runs = subtract_actuator_forces(
                log.log.dataset(),
                disconnected.log.dataset(),
                SubtractionOptions(period=options.preparation.period),
            )
            log = replace(log, log=as_signals(runs.log_with_noise()), runs=runs)
        if log.preparation is None:
            as_first = (
                logs[0]
                if logs
                else replace(log, preparation=log.effective_preparation, is_prepared=False)
            )
            log = replace(log, preparation=as_first.preparation, is_prepared=as_first.is_prepared)
        logs.append(
            replace(
                log, preparation=replace(log.effective_preparation, **options.preparation.stated)
            )
        )
    _require_different(logs)
    return logs


def recorded(source: LogSource, name: str, folder: Path | None, repairs: Repairs) -> MeasuredLog:
    """Return a repaired log from a file or from memory.

    Args:
        source: a table, a YAML file that describes a recording, or data.
        name: name that is used for data without a name.
        folder: folder of the files that a YAML file refers to.
        repairs: repairs that are applied.
    """
    if isinstance(source, MeasuredLog):
        return replace(source, log=repairs.apply(source.log))
    if is_frame(source):
        return MeasuredLog(name=name, log=repairs.read(source))
    if not isinstance(source, str | Path):
        return MeasuredLog(name=name, log=repairs.apply(as_signals(source)))
    path = Path(source)
    if path.suffix.lower() not in (".yaml", ".yml"):
        return MeasuredLog(name=path.name, log=repairs.read(path))
    recording = load_recording(path, folder)
    return MeasuredLog(
        name=path.name,
        log=repairs.read(*recording.files, sample_rate=recording.sample_rate),
        preparation=recording.preparation,
        known_forces=recording.known_forces,
    )


def _require_different(logs: Sequence[MeasuredLog]) -> None:
    """Reject identical logs.

    Otherwise samples would count twice, or a fit would be evaluated on the fitted data.
    """
    InputError.raise_if_any(
        Problem(
            f"{second.name} (log {k + 1})",
            f"is identical to {first.name} (log {i + 1}) in all {len(first.log.time)} samples",
            "give each log once, and use another log for validation",
        )
        for (i, first), (k, second) in combinations(enumerate(logs), 2)
        if _are_identical(first.log, second.log)
    )


def _are_identical(first: Signals, second: Signals) -> bool:
    """Return whether two logs have the same channels with the same samples."""
    first_names = [channel.name for channel in first.channels]
    second_names = [channel.name for channel in second.channels]
    if len(first.time) != len(second.time) or first_names != second_names:
        return False
    return all(
        np.array_equal(a.values, b.values)
        for a, b in zip(first.channels, second.channels, strict=True)
    )


def commanded_regressor(
    source: LogSource,
    log: MeasuredLog,
    model: Model,
    options: IdentificationOptions,
    repairs: Repairs,
) -> np.ndarray:
    """Return the regressor of the commanded positions, prepared or averaged like the measured log.

    Raises:
        InputError: the commanded positions have another number of samples than the measured log, or
            belong to another motion.
    """
    record = recorded(source, f"commanded motion of {log.name}", options.data, repairs)
    derived = replace(log.effective_preparation, velocity=None, velocities={})
    commanded = replace(log, name=record.name, log=record.log, preparation=derived)
    require_positions(model, commanded.log, options.output)
    _require_same_motion(log, commanded, model)
    if log.average is not None:
        commanded = commanded.averaged(options.preparation.period or np.inf, log.highest)
    with_factor = replace(derived, decimation=log.factor)
    return motion_regressor(
        model, commanded.source, with_factor, output=options.output, prepared=commanded.prepared()
    )


def _require_same_motion(log: MeasuredLog, commanded: MeasuredLog, model: Model) -> None:
    """Reject commanded positions that do not belong to the measured motion, sample by sample.

    Positions belong to another motion if they differ from the measured positions by a large
    fraction of the standard deviation (`MAX_COMMAND_DIFFERENCE`).
    """
    names = model.actuators.ports.position.columns
    measured = samples(log.log, "position", names)
    commands = samples(commanded.log, "position", names)
    problems = Problems()
    if len(measured) != len(commands):
        count = f"has {counted(len(commands), 'sample')}, and {log.name} has {len(measured)}"
        problems.add(commanded.name, count, "give the commanded motion sample by sample")
    else:
        differences = np.sqrt(np.mean((commands - measured) ** 2, axis=0))
        deviations = measured.std(axis=0)
        limits = MAX_COMMAND_DIFFERENCE * np.maximum(deviations, commands.std(axis=0))
        rows = zip(names, differences, deviations, limits, strict=True)
        for name, difference, deviation, limit in rows:
            if difference > limit:
                problems.add(
                    f"{commanded.name}: position.{name}",
                    f"differs by {difference:.3g} (RMS) from the measured position in {log.name}, "
                    f"which varies by {deviation:.3g} (RMS)",
                    "give the positions that were commanded in this log, in the same order and "
                    "with the same zero",
                )
    InputError.raise_if_any(problems)


def _outputs_of(data: RegressionData) -> set[str]:
    """Return the names of the outputs whose forces are measured in the data."""
    return {data.outputs[k] for k in data.kept}


def require_same_outputs(logs: Sequence[MeasuredLog], data: Sequence[RegressionData]) -> None:
    """Reject logs that do not all have the forces of the same actuators.

    Raises:
        InputError: lists each log that differs from the first, with its missing or additional
            forces.
    """
    outputs = [_outputs_of(entry) for entry in data]
    first = outputs[0]
    problems = Problems()
    for log, present in zip(logs, outputs, strict=True):
        if present == first:
            continue
        names = ", ".join(sorted(present ^ first))
        if present < first:
            what = f"does not contain the force of {names}, but {logs[0].name} does"
        else:
            what = f"contains the force of {names}, but {logs[0].name} does not"
        problems.add(
            log.name,
            what,
            "give logs with the same forces, or omit the columns that some logs lack in their YAML files",
        )
    InputError.raise_if_any(problems)


def require_all_outputs(logs: Sequence[MeasuredLog], data: Sequence[RegressionData]) -> None:
    """Reject a validation log whose forces are not exactly those of all fitted logs together.

    Args:
        logs: the fitted logs, followed by the validation log.
        data: the regression data of each.

    Raises:
        InputError: names the actuators whose forces are missing or additional.
    """
    *fitted, validation = (_outputs_of(entry) for entry in data)
    different = set().union(*fitted) ^ validation
    if different:
        names = ", ".join(sorted(different))
        if different - validation:
            what = f"lacks forces that the fitted logs contain: {names}"
        else:
            what = f"contains forces that the fitted logs do not contain: {names}"
        remedy = (
            "use a validation log with the same forces, or omit it, so that the end of each log is "
            "held out"
        )
        raise InputError.of(logs[-1].name, what, remedy)
