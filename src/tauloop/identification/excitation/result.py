"""The result of an optimized excitation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from tauloop.common.datasets import Variable, columns, time_axis
from tauloop.common.errors import InputError, Problem
from tauloop.common.plain import OMITTED, in_json, json_keys, records
from tauloop.common.records import dataclass
from tauloop.common.result import Result
from tauloop.equations.ports import Port
from tauloop.identification.excitation.options import ExcitationOptions
from tauloop.identification.excitation.problem import ExcitationTask
from tauloop.identification.excitation.solver import StartOutcome
from tauloop.identification.regression.base_parameters import BaseParameters
from tauloop.logs.files.writing import write_log
from tauloop.model import Model
from tauloop.motion.excitation.fourier import FourierSeries
from tauloop.motion.sampled import SampledMotion

#: First entry of the JSON document. The number increases when the meaning of an entry changes.
EXCITATION_FORMAT = "tauloop-excitation/1"


def slow_sampling(frequency: float, harmonics: int, period: float) -> Problem | None:
    """Return a problem if a sampling frequency is too low for the highest harmonic.

    More than two samples per period of this harmonic are needed.

    Args:
        frequency: sampling frequency, Hz.
        harmonics: number of harmonics.
        period: period of the series, s.
    """
    minimum = 2 * harmonics / period
    if minimum < frequency < np.inf:
        return None
    return Problem(
        "frequency",
        f"is {frequency:g} Hz, but the fastest term of the series needs more than {minimum:.4g} Hz",
        "give a frequency such as 1000 Hz",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """Condition numbers of a regressor; they depend on units, rows, limits and base parameters.

    Attributes:
        si: condition number in SI units.
        unit_norm: condition number with unit-norm columns.
        log_determinant: log det(Y^T Y) / (2 r), for one sample on average and Y in SI units.
    """

    si: float
    unit_norm: float
    log_determinant: float

    @staticmethod
    def of(rows: np.ndarray, before: np.ndarray, base: BaseParameters) -> Conditions:
        """Return the condition numbers of regressor rows together with previous data sets.

        Args:
            rows: (m, n_unknowns).
            before: rows of previous data sets.
            base: the base parameters.
        """
        Y = np.concatenate([rows, before])[:, base.independent]
        sigma = np.linalg.svd(Y, compute_uv=False)
        return Conditions(
            si=float(np.linalg.cond(Y)),
            unit_norm=float(np.linalg.cond(Y / np.linalg.norm(Y, axis=0))),
            log_determinant=float(np.log(sigma).mean()),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomSummary:
    """Summary of random series under the same limits.

    Attributes:
        tried: number of series.
        kept: number of series that meet all limits, after a reduction if necessary.
        best_si, median_si: condition numbers in SI units.
        best_unit_norm, median_unit_norm: the same with unit-norm columns.
    """

    tried: int
    kept: int
    best_si: float
    median_si: float
    best_unit_norm: float
    median_unit_norm: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitUse:
    """A limit and the extreme values of its quantity along the motion.

    Attributes:
        name: name of the quantity.
        unit: unit of the quantity.
        least, greatest: smallest and largest value of the quantity along the motion.
        lower, upper: limits of the quantity; None if there is no limit on this side.
    """

    name: str
    unit: str
    least: float
    greatest: float
    lower: float | None
    upper: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Summary of one run of the optimizer.

    Attributes:
        started: criterion before the optimization; None if not known.
        reached: criterion after the optimization; None if not known.
        status: status of the solver.
        converged: whether the solver converged.
        iterations: number of iterations.
    """

    started: float | None
    reached: float | None
    status: str
    converged: bool
    iterations: int

    @staticmethod
    def of(outcome: StartOutcome) -> Start:
        """Return the summary of one run of the optimizer."""
        return Start(
            started=outcome.started if np.isfinite(outcome.started) else None,
            reached=outcome.value if np.isfinite(outcome.value) else None,
            status=outcome.status,
            converged=outcome.converged,
            iterations=outcome.iterations,
        )


#: Number of points of a period in tables and plots.
PLOT_POINTS = 1200


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Excitation(Result):
    """A planned excitation, with its condition and its use of the limits.

    Attributes:
        machine: name of the machine.
        options: options of the planning.
        series: the motion of all channels.
        ports: names and units of the channels' positions, velocities and accelerations.
        outputs: names and units of the regressor's rows.
        base: the base parameters that the motion and previous data sets together determine.
        conditions: condition numbers of the regressor of the motion and previous data sets
            together.
        random: summary of the random series.
        limits: all limits and their use, on the finer grid.
        starts: runs of the optimizer; empty if it did not run.
        polished: runs that optimized the best results further on a finer grid.
        model: model of the machine, for displays.
    """

    json_format: ClassVar[str] = EXCITATION_FORMAT
    machine: str
    options: ExcitationOptions = field(
        metadata=json_keys(
            space="task.channels.name", seed="seed", stated_elsewhere="stated_condition"
        )
    )
    series: FourierSeries = field(metadata=json_keys(period_s="period", harmonics="harmonics"))
    ports: Mapping[str, Port] = field(metadata=OMITTED)
    outputs: tuple[tuple[str, ...], tuple[str, ...]] = field(metadata=OMITTED)
    base: BaseParameters = field(metadata=json_keys(no_effect="no_effect"))
    conditions: Conditions = field(metadata=json_keys("condition"))
    random: RandomSummary
    limits: tuple[LimitUse, ...]
    starts: tuple[Start, ...]
    polished: tuple[Start, ...] = ()
    model: Model | None = field(default=None, metadata=OMITTED)

    def variables(self) -> Iterator[Variable]:
        """Yield positions, velocities and accelerations of all channels over one period."""
        motion = self.series.sample(np.linspace(0.0, self.series.period, PLOT_POINTS))
        yield time_axis(motion.time)
        for kind, port in self.ports.items():
            yield from columns(kind, port.columns, port.units, getattr(motion, kind))

    @property
    def task(self) -> ExcitationTask:
        """Task of the options: series, channels and limits."""
        return self.options.task

    @property
    def channels(self) -> tuple[str, ...]:
        """Names of the channels."""
        return self.ports["position"].columns

    @property
    def units(self) -> tuple[str, ...]:
        """Units of the channels' positions."""
        return self.ports["position"].units

    def sample(self, frequency: float) -> SampledMotion:
        """Return one period at the times k / frequency.

        The end of the period is not included, because it equals the start.

        Raises:
            InputError: the frequency is not positive, or gives at most two samples of the shortest
                period.
        """
        if problem := slow_sampling(frequency, self.series.harmonics, self.series.period):
            raise InputError(problem)
        count = int(np.ceil(self.series.period * frequency - 1e-9))
        return self.series.sample(np.arange(count) / frequency)

    def write_log(self, path: str | Path, frequency: float) -> Path:
        """Write one period of the motion as a log (CSV or Parquet).

        Returns:
            Path of the log.

        Raises:
            InputError: see `sample`; or the file cannot be written.
        """
        return write_log(path, self.sample(frequency).log(self.ports))

    @property
    @in_json()
    def output(self) -> dict[str, Any]:
        """Kind of the regressor's rows, with their names and units."""
        names, units = self.outputs
        return {"rows": self.task.output, "names": names, "units": units}

    @property
    @in_json("channels")
    def channel_rows(self) -> list[dict[str, Any]]:
        """Center and coefficients of every channel."""
        series = self.series
        return records(
            name=self.channels, unit=self.units, center=series.center, mu=series.mu, nu=series.nu
        )

    @property
    @in_json()
    def base_parameters(self) -> list[dict[str, str]]:
        """Names and units of the base parameters."""
        return records(name=self.base.names, unit=self.base.units)
