"""The logs that ``tauloop identify`` is given, each with its own preparation, as regression data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from tauloop.cli.identify_repairs import Repairs
from tauloop.cli.output import table
from tauloop.errors import AssemblyError, InputError, LogError, PoseError, Problem, Problems
from tauloop.identification import RegressionData, Ties, average_periods, regression_data
from tauloop.identification.preparation.periodic_data import periodic_motion_regressor, periodic_regression
from tauloop.identification.preparation.periods import FORCE_NOISE, PeriodAverage
from tauloop.identification.regression.from_log import force_mixing, motion_regressor, require_positions
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
from tauloop.logs.channels import TIME
from tauloop.logs.known_forces import KnownForce
from tauloop.model import Model

#: Commanded positions that differ by this share of the stroke (RMS) from the measured ones belong to another motion.
ANOTHER_MOTION = 0.5
#: Positions that differ by this share of the largest stroke (RMS) from their mean over all periods do not repeat.
NOT_REPEATED = 0.1


@dataclass(frozen=True, kw_only=True, eq=False)
class MeasuredLog:
    """One log of the command line.

    Attributes:
        name: its file.
        log: the channels.
        preparation: of its own recording, under what the command line says.
        known_forces: that its recording states, still among the forces.
        repairs: what the command line has put into it.
    """

    name: str
    log: Signals
    preparation: Preparation
    known_forces: tuple[KnownForce, ...] = ()
    repairs: Repairs = field(default_factory=Repairs)

    @cached_property
    def prepared(self) -> Signals:
        """As its preparation says."""
        return prepared_signals(self.log, self.preparation)


@dataclass(frozen=True, slots=True, kw_only=True)
class Periodicity:
    """How a periodic log is averaged.

    Attributes:
        period: s.
        highest: highest frequency of the motion, Hz.
    """

    period: float
    highest: float


def measured_logs(
    paths: Sequence[Path], folder: Path | None, chosen: Mapping[str, Any], repairs: Repairs
) -> list[MeasuredLog]:
    """Read logs; one that states no preparation is prepared as the first.

    Args:
        paths: tables, or YAML files that describe recordings.
        folder: where the files lie that a YAML names.
        chosen: parts of the preparation that win over what the recordings say.
        repairs: what is put into each.
    """
    logs: list[MeasuredLog] = []
    for path in paths:
        log, own, known = recording(path, folder, repairs)
        if own is None:
            own = logs[0].preparation if logs else Preparation(cutoff=None)
        made = replace(own, **chosen)
        logs.append(MeasuredLog(name=path.name, log=log, preparation=made, known_forces=known, repairs=repairs))
    _require_different(logs)
    return logs


def _require_different(logs: Sequence[MeasuredLog]) -> None:
    """Refuse a log that is another over again: samples would count twice, or a fit be judged by its own data.

    Raises:
        InputError: each of them, with the other.
    """
    InputError.raise_if_any(
        Problem(
            where=f"{two.name} (log {k + 1})",
            what=f"is {one.name} (log {i + 1}) over again, in all {len(one.log.time)} samples",
            remedy="give each log once, and judge by another",
        )
        for (i, one), (k, two) in combinations(enumerate(logs), 2)
        if _same(one.log, two.log)
    )


def _same(one: Signals, two: Signals) -> bool:
    """Whether two logs have the same channels with the same samples."""
    names = [channel.name for channel in one.channels]
    if len(one.time) != len(two.time) or names != [channel.name for channel in two.channels]:
        return False
    return all(np.array_equal(a.values, b.values) for a, b in zip(one.channels, two.channels, strict=True))


@contextmanager
def naming_log(log: MeasuredLog, count: int) -> Iterator[None]:
    """Put the name of one log of several before the problems that it raises."""
    try:
        yield
    except (InputError, LogError, PoseError, AssemblyError) as error:
        raise type(error)(of_log(log, count, problem) for problem in error.problems) from error


def recording(
    path: Path, folder: Path | None, repairs: Repairs
) -> tuple[Signals, Preparation | None, tuple[KnownForce, ...]]:
    """A log, with what is put into it, and the preparation and the known forces that its YAML file states."""
    if path.suffix.lower() not in (".yaml", ".yml"):
        return repairs.made(read_signals(path, gaps=repairs.gaps)), None, ()
    described = load_recording(path, folder)
    log = read_signals(*described.files, sample_rate=described.sample_rate, gaps=repairs.gaps)
    return repairs.made(log), described.preparation, described.known_forces


def prepared(log: MeasuredLog, model: Model, output: str, ties: Ties | None) -> RegressionData:
    """Regression data of a log that is filtered and decimated.

    Raises:
        LogError: channels are missing, misspelt or in another unit than the machine's.
    """
    return regression_data(model, log.log, log.preparation, output=output, ties=ties, prepared=log.prepared)


def averaged(log: MeasuredLog, how: Periodicity) -> PeriodAverage:
    """Average over the periods of a log, less the samples that its preparation trims at both ends.

    A log of one period is an average already, such as `tauloop subtract` writes, which says how noisy forces are.
    """
    trim = log.preparation.trim
    kept = log.log.dataset().isel({TIME: slice(trim, len(log.log.time) - trim)})
    if round(how.period / sample_period(kept)) == len(kept[TIME]):
        noise = {f"force.{name}": float(kept[f"{FORCE_NOISE}.{name}"].mean()) for name in channels(kept, FORCE_NOISE)}
        return PeriodAverage(log=kept, periods=1, noise=noise, covariance=np.diag(np.square(list(noise.values()))))
    return average_periods(kept, how.period)


def periodic(
    log: MeasuredLog, average: PeriodAverage, model: Model, how: Periodicity, output: str, ties: Ties | None
) -> RegressionData:
    """Regression data of an averaged period."""
    standstill = log.preparation.standstill
    return periodic_regression(model, average.log, highest=how.highest, output=output, standstill=standstill, ties=ties)


def commanded_regressor(
    path: Path, folder: Path | None, log: MeasuredLog, model: Model, output: str, how: Periodicity | None
) -> np.ndarray:
    """Regressor of a recording of the commanded positions, prepared or averaged as the measured log is."""
    commanded = replace(log, name=path.name, log=recording(path, folder, log.repairs)[0])
    require_positions(model, commanded.log, output)
    _require_same_motion(log, commanded, model)
    if how is None:
        derived = replace(log.preparation, velocity=None, velocities={})
        return motion_regressor(model, commanded.log, derived, output=output)
    standstill = log.preparation.standstill
    motion = averaged(commanded, how).log
    return periodic_motion_regressor(model, motion, highest=how.highest, output=output, standstill=standstill)


def _require_same_motion(log: MeasuredLog, commanded: MeasuredLog, model: Model) -> None:
    """Refuse commanded positions that are not those of the measured motion, sample by sample.

    Raises:
        InputError: another number of samples, or positions as far from the measured ones as those are from their mean.
    """
    names = model.actuators.ports.position.columns
    measured, given = (samples(one.log, "position", names) for one in (log, commanded))
    problems = Problems()
    if len(measured) != len(given):
        what = f"has {len(given)} samples, and {log.name} has {len(measured)}"
        problems.add(commanded.name, what, "give the commanded motion sample by sample")
    else:
        apart = np.sqrt(np.mean((given - measured) ** 2, axis=0))
        far = apart > ANOTHER_MOTION * np.maximum(measured.std(axis=0), given.std(axis=0))
        problems += [
            Problem(
                where=f"{commanded.name}: position.{name}",
                what=f"differs by {distance:.3g} (RMS) from that of {log.name}, which moves by {size:.3g}",
                remedy="give what was commanded in this log, in the log's order and zero",
            )
            for name, distance, size, is_far in zip(names, apart, measured.std(axis=0), far, strict=True)
            if is_far and distance > 0.0
        ]
    InputError.raise_if_any(problems)


def not_repeated(log: MeasuredLog, average: PeriodAverage) -> tuple[Problem, ...]:
    """Positions that differ so much from period to period that the motion has another period."""
    if average.periods == 1:
        return ()
    moves = [name for name in average.noise if name.startswith("position.")]
    stroke = {name: float(average.log[name].std()) for name in moves}
    largest: dict[str, float] = {}  # by unit; beside it, since a channel that is held moves by its noise alone
    for name in moves:
        unit, whole = average.log[name].attrs["unit"], float(np.hypot(stroke[name], average.noise[name]))
        largest[unit] = max(largest.get(unit, 0.0), whole)
    return tuple(
        Problem(
            where=name,
            what=f"moves by {stroke[name]:.3g} in the mean of {average.periods} periods (RMS), and differs from it by "
            f"{noise:.3g}: it does not repeat after the given period",
            remedy="correct --period, or trim the start and the end of the log",
        )
        for name in moves
        if (noise := average.noise[name]) > NOT_REPEATED * largest[average.log[name].attrs["unit"]]
    )


def force_noise(averages: Sequence[PeriodAverage], model: Model, output: str) -> np.ndarray | None:
    """Standard deviation of the averaged forces, pooled over logs, of the measured outputs (n_kept,), SI.

    Of joints it is that of A^T u, with the covariance of the actuators' forces u that the periods show; of the
    resultants of redundant actuators R^T u it is the root of the mean over the samples. None where a log is
    one period without a stated noise.
    """
    names = [a.name for a in model.mechanism.actuators if a.name in channels(averages[0].log, "force")]
    wanted = [f"force.{name}" for name in names]
    if model.assembly.is_redundant or any(name not in one.noise for one in averages for name in wanted):
        return None  # rows of redundant actuation mix the forces otherwise at every sample
    covariances = []
    for one in averages:
        places = [list(one.noise).index(name) for name in wanted]
        covariances.append(one.covariance[np.ix_(places, places)] / one.periods)
    pooled = np.average(covariances, axis=0, weights=[len(one.log[TIME]) for one in averages])
    if output == "actuators" and not model.assembly.is_redundant:
        return np.sqrt(np.diag(pooled))
    mixing = np.concatenate([force_mixing(model, one.log, output) for one in averages])
    return np.sqrt(np.einsum("nik,ij,njk->k", mixing, pooled, mixing) / len(mixing))


def require_same_forces(logs: Sequence[MeasuredLog], parts: Sequence[RegressionData]) -> None:
    """Refuse logs of which not all have the forces of the same actuators.

    Raises:
        InputError: each log that differs from the first, with what it has more or less.
    """
    present = [{part.outputs[k] for k in part.kept} for part in parts]
    InputError.raise_if_any(
        Problem(
            where=log.name,
            what=f"has {'no' if part < present[0] else 'a'} force of {', '.join(sorted(part ^ present[0]))}, and "
            f"{logs[0].name} {'has' if part < present[0] else 'has not'}",
            remedy="give logs with the same forces, or leave the columns that not all have out of their YAML files",
        )
        for log, part in zip(logs, present, strict=True)
        if part != present[0]
    )


def require_forces_of_all(logs: Sequence[MeasuredLog], parts: Sequence[RegressionData]) -> None:
    """Refuse a log to judge by, the last, that has not the forces of exactly the actuators of all other logs together.

    Raises:
        InputError: with the actuators.
    """
    *fitted, judged = ({part.outputs[k] for k in part.kept} for part in parts)
    apart = set().union(*fitted) ^ judged
    if apart:
        what = f"has {'not' if apart - judged else 'more than'} all forces that the fitted logs have: "
        what += ", ".join(sorted(apart))
        remedy = "judge by a log with the same forces, or leave --validation out: then each log's end is held out"
        raise InputError(Problem(where=logs[-1].name, what=what, remedy=remedy))


def one_decimation(logs: Sequence[MeasuredLog]) -> int:
    """The factor by which all logs are decimated.

    Raises:
        InputError: they are decimated by different factors.
    """
    factors = sorted({log.preparation.decimation for log in logs})
    if len(factors) > 1:
        what = f"logs are decimated by {' and '.join(map(str, factors))}, so their errors correlate differently"
        raise InputError(Problem(where="--errors", what=what, remedy="give one --decimation, or take autocorrelated"))
    return factors[0]


def periodicity(
    period: float | None, highest: float | None, scan: str | None, chosen: Mapping[str, Any]
) -> Periodicity | None:
    """How to average, or None; refused beside whatever belongs to a filter."""
    if period is None and highest is None:
        return None
    problems = Problems()
    if period is None or highest is None:
        what = "one of --period and --highest is given without the other"
        problems.add("--period", what, "give both")
    beside = [f"--{name}" for name in chosen if name not in ("trim", "standstill")]
    beside += ["--scan-cutoffs"] if scan is not None else []
    if beside:
        what = "whole periods are averaged and cut off at --highest without a filter, and their samples are few: "
        what += f"{', '.join(beside)} has no meaning"
        problems.add("--period", what, "leave it out, or filter without --period")
    if period is None or highest is None or problems:
        raise InputError(problems)
    return Periodicity(period=period, highest=highest)


def of_log(log: MeasuredLog, count: int, problem: Problem) -> Problem:
    """The problem, with the log's name where there are several."""
    return problem if count == 1 else replace(problem, where=f"{log.name}: {problem.where}")


def periods(logs: Sequence[MeasuredLog], averages: Sequence[PeriodAverage]) -> list[dict[str, object]]:
    """How many periods every log has and the noise of its channels, for JSON."""
    pairs = zip(logs, averages, strict=True)
    return [{"log": one.name, "periods": mean.periods, "noise": mean.noise} for one, mean in pairs]


def period_table(logs: Sequence[MeasuredLog], averages: Sequence[PeriodAverage]) -> Table:
    """Noise of every channel from the scatter of the periods about their mean."""
    columns = ("log", "channel", "periods", "noise of a sample", "of the average", "unit")
    rows = table("Averages over periods, and the noise that they show", *columns, numeric=(2, 3, 4))
    for one, mean in zip(logs, averages, strict=True):
        for name, noise in mean.noise.items():
            figures = (f"{noise:.3g}", f"{noise / np.sqrt(mean.periods):.3g}")
            rows.add_row(one.name, name, str(mean.periods), *figures, mean.log[name].attrs["unit"])
    return rows
