"""The logs of an identification, read from files or given, each with its own preparation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tauloop.errors import AssemblyError, InputError, LogError, PoseError, Problem, Problems
from tauloop.identification.preparation.periodic import periodic_signals
from tauloop.identification.preparation.periods import FORCE_NOISE, PeriodAverage, average_periods
from tauloop.identification.preparation.repairs import Repairs
from tauloop.identification.preparation.two_runs import SubtractionOptions, TwoRuns, subtract
from tauloop.identification.regression.data import RegressionData
from tauloop.identification.regression.from_log import motion_regressor, require_positions
from tauloop.logs import (
    Preparation,
    Signals,
    channels,
    load_recording,
    prepared_signals,
    read_signals,
    sample_period,
    samples,
)
from tauloop.logs.channels import TIME, as_signals
from tauloop.logs.known_forces import KnownForce
from tauloop.logs.saturation import LEFT_OUT, left_out
from tauloop.model import Model
from tauloop.records import dataclass
from tauloop.shown import Shown

if TYPE_CHECKING:
    from tauloop.identification.options import IdentificationOptions, LogSource

#: Commanded positions that differ by this share of the stroke (RMS) from the measured ones belong to another motion.
ANOTHER_MOTION = 0.5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MeasuredLog(Shown):
    """A log with its name, and what its recording says of it.

    Attributes:
        name: of its file, or any other.
        log: the channels.
        preparation: filters, trimming, decimation; None where it is to be prepared as the first log.
        known_forces: what forces hold for things that the machine's description has not, to be taken off.
        average: of its periods, where these are averaged.
        highest: highest frequency, Hz, of the averaged motion.
        runs: what was subtracted, with the two-run method.
    """

    name: str
    log: Signals
    preparation: Preparation | None = None
    known_forces: tuple[KnownForce, ...] = ()
    average: PeriodAverage | None = None
    highest: float = np.inf
    runs: TwoRuns | None = None

    @property
    def how(self) -> Preparation:
        """The preparation; nothing is filtered without one."""
        return self.preparation or Preparation(cutoff=None)

    @property
    def factor(self) -> int:
        """By which regressor and forces are decimated."""
        return 1 if self.average is not None else self.how.decimation

    @property
    def source(self) -> Signals:
        """What is prepared: the channels, or their average period."""
        return self.log if self.average is None else as_signals(self.average.log)

    def prepared(self) -> Signals:
        """Filtered as the preparation says, or the average period by its Fourier series."""
        if self.average is None:
            return prepared_signals(self.log, self.how)
        return periodic_signals(self.average.log, highest=self.highest, standstill=self.how.standstill)

    def averaged(self, period: float, highest: float) -> MeasuredLog:
        """With the average over its periods, less the samples that its preparation trims at both ends.

        A log of one period is an average already, such as `tauloop subtract` writes, which says how noisy forces are.
        """
        trim = self.how.trim
        kept = self.log.dataset().isel({TIME: slice(trim, len(self.log.time) - trim)})
        if round(period / sample_period(kept)) == len(kept[TIME]):
            stated = channels(kept, FORCE_NOISE)
            noise = {f"force.{name}": float(kept[f"{FORCE_NOISE}.{name}"].mean()) for name in stated}
            covariance = np.diag(np.square(list(noise.values())))
            average = PeriodAverage(log=kept, periods=1, noise=noise, covariance=covariance)
        else:
            average = average_periods(kept, period)
        return replace(self, average=average, highest=highest)

    def as_dict(self) -> dict[str, Any]:
        """How its channels are prepared, for JSON."""
        names = channels(self.log, "position")
        return {
            "log": self.name,
            "channels": [
                {"channel": name, "velocity": self.how.source_of(name), "cutoff": self.how.cutoff_of(name)}
                for name in names
            ],
            "left_out": left_out_counts(self.log),
        }


def left_out_counts(log: Signals) -> dict[str, int]:
    """How many samples of each force a limit holds, so that they are left out."""
    return {name: int(samples(log, LEFT_OUT, (name,)).sum()) for name in left_out(log)}


def measured_logs(sources: Sequence[LogSource], options: IdentificationOptions, repairs: Repairs) -> list[MeasuredLog]:
    """Read logs and repair them; one that states no preparation is prepared as the first.

    Raises:
        InputError: a log is another over again.
    """
    logs: list[MeasuredLog] = []
    for number, source in enumerate(sources, start=1):
        log = recorded(source, f"log {number}", options.data, repairs)
        if options.disconnected:
            own = recorded(options.disconnected[number - 1], f"disconnected {number}", options.data, repairs)
            log = _structure_alone(log, own, options.preparation.period)
        if log.preparation is None:
            log = replace(log, preparation=logs[0].preparation if logs else log.how)
        logs.append(replace(log, preparation=replace(log.how, **options.preparation.stated)))
    _require_different(logs)
    return logs


def _structure_alone(connected: MeasuredLog, disconnected: MeasuredLog, period: float | None) -> MeasuredLog:
    """The connected run less the actuators' own forces (see `subtract`)."""
    logs = (connected.log.dataset(), disconnected.log.dataset())
    runs = subtract(*logs, SubtractionOptions(period=period))
    return replace(connected, log=as_signals(runs.log_with_noise()), runs=runs)


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
        return MeasuredLog(name=path.name, log=repairs.made(read_signals(path, gaps=repairs.gaps)))
    stated = load_recording(path, folder)
    log = read_signals(*stated.files, sample_rate=stated.sample_rate, gaps=repairs.gaps)
    return MeasuredLog(
        name=path.name,
        log=repairs.made(log),
        preparation=stated.preparation,
        known_forces=stated.known_forces,
    )


def of_log(name: str, count: int, problem: Problem) -> Problem:
    """The problem, with the log's name where there are several."""
    return problem if count == 1 else replace(problem, where=f"{name}: {problem.where}")


@contextmanager
def naming_log(log: MeasuredLog, count: int) -> Iterator[None]:
    """Put the name of one log of several before the problems that it raises."""
    try:
        yield
    except (InputError, LogError, PoseError, AssemblyError) as error:
        raise type(error)(of_log(log.name, count, problem) for problem in error.problems) from error


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
    if len(first.time) != len(second.time) or names != [channel.name for channel in second.channels]:
        return False
    return all(np.array_equal(a.values, b.values) for a, b in zip(first.channels, second.channels, strict=True))


def commanded_regressor(
    source: LogSource, log: MeasuredLog, model: Model, options: IdentificationOptions, repairs: Repairs
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
    return motion_regressor(model, commanded.source, with_factor, output=options.output, prepared=commanded.prepared())


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
        for name, distance, size, is_far in zip(names, apart, measured.std(axis=0), far, strict=True):
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
        what = f"has {'not' if apart - judged else 'more than'} all forces that the fitted logs have: "
        what += ", ".join(sorted(apart))
        remedy = "judge by a log with the same forces, or by the end of each log, which is then held out"
        raise InputError.of(logs[-1].name, what, remedy)
