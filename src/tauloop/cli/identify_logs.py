"""The logs that ``tauloop identify`` is given, each with its own preparation, as regression data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from rich.table import Table

from tauloop.cli.output import table
from tauloop.errors import InputError, Problem
from tauloop.functions import Model
from tauloop.identify import RegressionData, Ties, average_periods, regression_data
from tauloop.identify.periodic_data import periodic_regression
from tauloop.identify.periods import PeriodAverage
from tauloop.logs import Preparation, channels, load_recording, read_log
from tauloop.logs.channels import TIME


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MeasuredLog:
    """One log of the command line.

    Attributes:
        name: its file.
        log: the channels.
        preparation: of its own recording, under what the command line says.
    """

    name: str
    log: xr.Dataset
    preparation: Preparation


@dataclass(frozen=True, slots=True, kw_only=True)
class Periodicity:
    """How a periodic log is averaged.

    Attributes:
        period: s.
        highest: highest frequency of the motion, Hz.
    """

    period: float
    highest: float


def measured_logs(paths: Sequence[Path], folder: Path | None, chosen: Mapping[str, Any]) -> list[MeasuredLog]:
    """Read logs; one that states no preparation is prepared as the first.

    Args:
        paths: tables, or YAML files that describe recordings.
        folder: where the files lie that a YAML names.
        chosen: parts of the preparation that win over what the recordings say.
    """
    logs: list[MeasuredLog] = []
    for path in paths:
        log, own = recording(path, folder)
        if own is None:
            own = logs[0].preparation if logs else Preparation(cutoff=None)
        logs.append(MeasuredLog(name=path.name, log=log, preparation=replace(own, **chosen)))
    return logs


def recording(path: Path, folder: Path | None) -> tuple[xr.Dataset, Preparation | None]:
    """A log and the preparation that its YAML file states."""
    if path.suffix.lower() not in (".yaml", ".yml"):
        return read_log(path), None
    described = load_recording(path, folder)
    return read_log(*described.files, sample_rate=described.sample_rate), described.preparation


def prepared(log: MeasuredLog, model: Model, output: str, ties: Ties | None) -> RegressionData:
    """Regression data of a log that is filtered and decimated."""
    return regression_data(model, log.log, log.preparation, output=output, ties=ties)


def averaged(log: MeasuredLog, how: Periodicity) -> PeriodAverage:
    """Average over the periods of a log, less the samples that its preparation trims at both ends."""
    trim = log.preparation.trim
    return average_periods(log.log.isel({TIME: slice(trim, len(log.log[TIME]) - trim)}), how.period)


def periodic(average: PeriodAverage, model: Model, how: Periodicity, ties: Ties | None) -> RegressionData:
    """Regression data of an averaged period."""
    return periodic_regression(model, average.log, highest=how.highest, ties=ties)


def force_noise(averages: Sequence[PeriodAverage], model: Model) -> np.ndarray:
    """Standard deviation of the averaged forces, pooled over logs, of the measured actuators (n_kept,), SI."""
    names = [a.name for a in model.mechanism.actuators if a.name in channels(averages[0].log, "force")]
    squares = np.array([[one.noise[f"force.{name}"] ** 2 / one.periods for name in names] for one in averages])
    return np.sqrt(np.average(squares, axis=0, weights=[len(one.log[TIME]) for one in averages]))


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
    period: float | None,
    highest: float | None,
    output: str,
    estimator: str,
    scan: str | None,
    chosen: Mapping[str, Any],
) -> Periodicity | None:
    """How to average, or None; refused beside whatever belongs to a filter."""
    if period is None and highest is None:
        return None
    problems = []
    if period is None or highest is None:
        what = "one of --period and --highest is given without the other"
        problems.append(Problem(where="--period", what=what, remedy="give both"))
    beside = [f"--{name}" for name in chosen if name != "trim"]
    beside += ["--scan-cutoffs"] if scan is not None else []
    beside += ["--output joints"] if output == "joints" else []
    beside += ["--estimator iv"] if estimator == "iv" else []
    if beside:
        what = f"whole periods need no filter, and go with forces of actuators: {', '.join(beside)} has no meaning"
        problems.append(Problem(where="--period", what=what, remedy="leave it out"))
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
            rows.add_row(one.name, name, str(mean.periods), *figures, one.log[name].attrs["unit"])
    return rows
