"""The result of an optimised excitation."""

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
from tauloop.motion.fourier import FourierSeries
from tauloop.motion.sampled import SampledMotion

#: First entry of the JSON document; a change of its meaning changes the number.
FORMAT = "tauloop-excitation/1"


def slow_sampling(frequency: float, harmonics: int, period: float) -> Problem | None:
    """What is wrong with a sampling frequency, Hz, of which the shortest period needs more than two samples."""
    least = 2 * harmonics / period
    if least < frequency < np.inf:
        return None
    what = f"{frequency:g} Hz; the fastest term of the series needs more than {least:.4g} Hz"
    return Problem("frequency", what, "such as 1000 Hz")


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """How well a regressor is conditioned; all depend on units, output, limits and base parameters.

    Attributes:
        si: condition number in SI units as they are.
        unit_norm: with unit-norm columns.
        log_determinant: log det(Y^T Y) / (2 r), Y in SI units per sample.
    """

    si: float
    unit_norm: float
    log_determinant: float

    @staticmethod
    def of(rows: np.ndarray, before: np.ndarray, base: BaseParameters) -> Conditions:
        """Those of regressor rows (m, n_unknowns), beside the rows of data sets before."""
        Y = np.concatenate([rows, before])[:, base.independent]
        sigma = np.linalg.svd(Y, compute_uv=False)
        return Conditions(
            si=float(np.linalg.cond(Y)),
            unit_norm=float(np.linalg.cond(Y / np.linalg.norm(Y, axis=0))),
            log_determinant=float(np.log(sigma).mean()),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomSummary:
    """Random series under the same limits.

    Attributes:
        tried, kept: how many there were, and how many could be made to keep all limits.
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
    """A limit and the extremes of its quantity along the motion; None where a side is open."""

    name: str
    unit: str
    least: float
    greatest: float
    lower: float | None
    upper: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """One start of the optimiser: its criterion before and after (None without), and what the solver says."""

    started: float | None
    reached: float | None
    status: str
    converged: bool
    iterations: int

    @staticmethod
    def of(outcome: StartOutcome) -> Start:
        """That of an outcome."""
        started, reached = (
            value if np.isfinite(value) else None for value in (outcome.started, outcome.value)
        )
        status, converged = outcome.status, outcome.converged
        return Start(
            started=started,
            reached=reached,
            status=status,
            converged=converged,
            iterations=outcome.iterations,
        )


#: Points that a period is tabulated and drawn by.
POINTS = 1200


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Excitation(Result):
    """An excitation, how good it is, and which limits it takes up.

    Attributes:
        machine: name of the machine.
        options: what was asked for.
        series: the motion of all channels.
        ports: names and units of the channels' positions, velocities and accelerations.
        outputs: names and units of the regressor's rows.
        base: the base parameters that it tells, with the data sets before.
        conditions: with the data sets before.
        random: what random series reach.
        limits: all limits and their use, on the finer grid.
        starts: of the optimiser; none where it did not run.
        polished: the best of them, followed on a finer grid.
        model: of the machine, to show it.
    """

    json_format: ClassVar[str] = FORMAT
    machine: str
    options: ExcitationOptions = field(
        metadata=json_keys(space="task.space.name", seed="seed", stated_elsewhere="beside")
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
        """Positions, velocities and accelerations of all channels over one period."""
        motion = self.series.sample(np.linspace(0.0, self.series.period, POINTS))
        yield time_axis(motion.time)
        for kind, port in self.ports.items():
            yield from columns(kind, port.columns, port.units, getattr(motion, kind))

    @property
    def task(self) -> ExcitationTask:
        """Series, space and limits that were asked for."""
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
        """One whole period at k / frequency; the sample at its end, equal to the first, is left out.

        Raises:
            InputError: the frequency is not positive, or gives fewer than two samples of the
                shortest period.
        """
        if problem := slow_sampling(frequency, self.series.harmonics, self.series.period):
            raise InputError(problem)
        return self.series.sample(
            np.arange(int(np.ceil(self.series.period * frequency - 1e-9))) / frequency
        )

    def write_log(self, path: str | Path, frequency: float) -> Path:
        """Write one period of the motion as a log (CSV or Parquet).

        Raises:
            InputError: as `sample`; or the file cannot be written.
        """
        return write_log(path, self.sample(frequency).log(self.ports))

    @property
    @in_json()
    def output(self) -> dict[str, Any]:
        """Rows of the regressor, with names and units."""
        names, units = self.outputs
        return {"rows": self.task.output, "names": names, "units": units}

    @property
    @in_json("channels")
    def channel_rows(self) -> list[dict[str, Any]]:
        """Centre and coefficients of every channel."""
        series = self.series
        return records(
            name=self.channels, unit=self.units, center=series.center, mu=series.mu, nu=series.nu
        )

    @property
    @in_json()
    def base_parameters(self) -> list[dict[str, str]]:
        """Names and units of the base parameters."""
        return records(name=self.base.names, unit=self.base.units)
