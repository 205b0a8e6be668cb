"""The logs of an identification, read from files or given, each with its own preparation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np

from tauloop.common.errors import InputError, Problem, Problems
from tauloop.identification.options import IdentificationOptions, LogSource
from tauloop.identification.preparation.measured_log import MeasuredLog
from tauloop.identification.preparation.repairs import Repairs
from tauloop.identification.preparation.two_runs import SubtractionOptions, subtract_actuator_forces
from tauloop.identification.regression.data import RegressionData
from tauloop.identification.regression.from_log import motion_regressor, require_positions
from tauloop.logs import Signals, load_recording, samples
from tauloop.logs.log import as_signals
from tauloop.model import Model

#: Commanded positions that differ by this share of the stroke (RMS) from the measured ones belong
#: to another motion.
ANOTHER_MOTION = 0.5


def measured_logs(
    sources: Sequence[LogSource], options: IdentificationOptions, repairs: Repairs
) -> list[MeasuredLog]:
    """Read logs and repair them; one that states no preparation is prepared as the first.

    Raises:
        InputError: a log is another over again.
    """
    logs: list[MeasuredLog] = []
    for number, source in enumerate(sources, start=1):
        log = recorded(source, f"log {number}", options.data, repairs)
        if options.disconnected:
            own = recorded(
                options.disconnected[number - 1], f"disconnected {number}", options.data, repairs
            )
            runs = subtract_actuator_forces(
                log.log.dataset(),
                own.log.dataset(),
                SubtractionOptions(period=options.preparation.period),
            )
            log = replace(log, log=as_signals(runs.log_with_noise()), runs=runs)
        if log.preparation is None:
            as_first = logs[0] if logs else replace(log, preparation=log.how, is_prepared=False)
            log = replace(log, preparation=as_first.preparation, is_prepared=as_first.is_prepared)
        logs.append(replace(log, preparation=replace(log.how, **options.preparation.stated)))
    _require_different(logs)
    return logs


def recorded(source: LogSource, name: str, folder: Path | None, repairs: Repairs) -> MeasuredLog:
    """A log of a file or from memory, with what is put into it.

    Args:
        source: a table, a YAML that describes a recording, or data.
        name: of data without one.
        folder: where the files lie that a YAML names.
        repairs: what is put into it.
    """
    if isinstance(source, MeasuredLog):
        return replace(source, log=repairs.made(source.log))
    if not isinstance(source, str | Path):
        return MeasuredLog(name=name, log=repairs.made(as_signals(source)))
    path = Path(source)
    if path.suffix.lower() not in (".yaml", ".yml"):
        return MeasuredLog(name=path.name, log=repairs.read(path))
    stated = load_recording(path, folder)
    return MeasuredLog(
        name=path.name,
        log=repairs.read(*stated.files, sample_rate=stated.sample_rate),
        preparation=stated.preparation,
        known_forces=stated.known_forces,
    )


def _require_different(logs: Sequence[MeasuredLog]) -> None:
    """Refuse a log that is another over again: samples would count twice, or a fit be judged by its own data."""
    InputError.raise_if_any(
        Problem(
            f"{second.name} (log {k + 1})",
            f"is {first.name} (log {i + 1}) over again, in all {len(first.log.time)} samples",
            "give each log once, and judge by another",
        )
        for (i, first), (k, second) in combinations(enumerate(logs), 2)
        if _same(first.log, second.log)
    )


def _same(first: Signals, second: Signals) -> bool:
    """Whether two logs have the same channels with the same samples."""
    names = [channel.name for channel in first.channels]
    if len(first.time) != len(second.time) or names != [
        channel.name for channel in second.channels
    ]:
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
    """Regressor of a recording of the commanded positions, prepared or averaged as the measured log is.

    Raises:
        InputError: another number of samples than the measured log, or another motion.
    """
    record = recorded(source, f"commanded motion of {log.name}", options.data, repairs)
    derived = replace(log.how, velocity=None, velocities={})
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
    """Refuse commanded positions that are not those of the measured motion, sample by sample.

    They are as far from the measured ones as those are from their mean.
    """
    names = model.actuators.ports.position.columns
    measured, commands = (samples(source.log, "position", names) for source in (log, commanded))
    problems = Problems()
    if len(measured) != len(commands):
        what = f"has {len(commands)} samples, and {log.name} has {len(measured)}"
        problems.add(commanded.name, what, "give the commanded motion sample by sample")
    else:
        apart = np.sqrt(np.mean((commands - measured) ** 2, axis=0))
        far = apart > ANOTHER_MOTION * np.maximum(measured.std(axis=0), commands.std(axis=0))
        for name, distance, size, is_far in zip(
            names, apart, measured.std(axis=0), far, strict=True
        ):
            if is_far and distance > 0.0:
                what = f"differs by {distance:.3g} (RMS) from that of {log.name}, which moves by {size:.3g}"
                remedy = "give what was commanded in this log, in the log's order and zero"
                problems.add(f"{commanded.name}: position.{name}", what, remedy)
    InputError.raise_if_any(problems)


def require_same_outputs(logs: Sequence[MeasuredLog], parts: Sequence[RegressionData]) -> None:
    """Refuse logs of which not all have the forces of the same actuators.

    Raises:
        InputError: each log that differs from the first, with what it has more or less.
    """
    present = [{part.outputs[k] for k in part.kept} for part in parts]
    InputError.raise_if_any(
        Problem(
            log.name,
            f"has {'no' if part < present[0] else 'a'} force of {', '.join(sorted(part ^ present[0]))}, and "
            f"{logs[0].name} {'has' if part < present[0] else 'has not'}",
            "give logs with the same forces, or leave the columns that not all have out of their YAML files",
        )
        for log, part in zip(logs, present, strict=True)
        if part != present[0]
    )


def require_all_outputs(logs: Sequence[MeasuredLog], parts: Sequence[RegressionData]) -> None:
    """Refuse a log to judge by, the last, that has not the forces of exactly the actuators of all other logs together.

    Raises:
        InputError: with the actuators.
    """
    *fitted, judged = ({part.outputs[k] for k in part.kept} for part in parts)
    apart = set().union(*fitted) ^ judged
    if apart:
        what = (
            f"has {'not' if apart - judged else 'more than'} all forces that the fitted logs have: "
        )
        what += ", ".join(sorted(apart))
        remedy = (
            "judge by a log with the same forces, or by the end of each log, which is then held out"
        )
        raise InputError.of(logs[-1].name, what, remedy)
