"""Series of measurements: encoder and instrument readings at N poses, with the noise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tauloop.calibration.measurements.instruments import Instrument
from tauloop.common.counts import counted
from tauloop.common.errors import InputError, Problems
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.equations.ports import numbers
from tauloop.mechanism.suggestions import listing


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Series(ReprMixin):
    """N readings of one instrument, each at one or several poses (`Instrument.poses`).

    A calibration uses one or several series, of one or several instruments. The series need not
    have poses in common.

    Attributes:
        instrument: instrument of all readings.
        encoders: encoder readings of all actuators at every pose (N * poses, n_u), in the order of
            the machine file, with the poses of one reading in consecutive rows; m or rad.
        readings: readings of the instrument (N, n_columns), SI; the columns are
            `instrument.columns`.
        noise: standard deviation of the instrument's errors, SI: one number, or one for each of
            `instrument.errors`.
        labels: a name for each reading in messages; by default its number from 1.
        loads: wrench (N * poses, 6) at the tool center point at every pose, in the axes of the
            base, N and N m, in addition to the machine's weight; None for no load.
        thermometers: names of the k parts whose temperature is measured. ``leg`` also stands for
            all parts whose names begin with ``leg.``.
        temperatures: temperatures of these parts (N * poses, k) above the reference at every pose,
            K; None if there are no thermometers.
        temperature_noise: standard deviation of the temperatures, K.
    """

    instrument: Instrument
    encoders: np.ndarray
    readings: np.ndarray
    noise: float | tuple[float, ...]
    labels: tuple[str, ...] = ()
    loads: np.ndarray | None = None
    thermometers: tuple[str, ...] = ()
    temperatures: np.ndarray | None = None
    temperature_noise: float = 0.0

    def __post_init__(self) -> None:
        """Check shapes, finiteness and noise."""
        name = self.instrument.name
        encoders = np.atleast_2d(numbers(self.encoders, f"{name}.encoders"))
        readings = numbers(self.readings, f"{name}.readings")
        poses = self.instrument.poses
        if readings.ndim == 1 and len(self.instrument.columns) == 1:
            readings = readings[:, None]
        object.__setattr__(self, "encoders", encoders)
        object.__setattr__(self, "readings", readings)
        problems = Problems()

        def add_problem(where: str, what: str, remedy: str) -> None:
            """Record a problem of an attribute of the series."""
            problems.add(f"{name}.{where}", what, remedy)

        count, rest = divmod(len(encoders), poses)
        if rest:
            what = f"have {counted(len(encoders), 'row')}, but each reading belongs to {counted(poses, 'pose')}"
            remedy = f"give {counted(poses, 'consecutive row')} for each reading"
            add_problem("encoders", what, remedy)
        expected = (count, len(self.instrument.columns))
        if readings.shape != expected:
            columns = ", ".join(column for column, _ in self.instrument.columns)
            add_problem(
                "readings",
                f"have shape {readings.shape} instead of {expected}",
                f"give columns {columns}",
            )
        arrays = [("encoders", encoders), ("readings", readings), *self._conditions(problems)]
        for where, values in arrays:
            non_finite = np.argwhere(~np.isfinite(values))
            if len(non_finite):
                add_problem(
                    where,
                    f"contain {counted(len(non_finite), 'non-finite number')}, the first in row "
                    f"{non_finite[0, 0] + 1}",
                    "remove these poses",
                )
        noise = np.atleast_1d(numbers(self.noise, f"{name}.noise"))
        if (
            noise.shape not in ((1,), (len(self.instrument.errors),))
            or not (np.isfinite(noise) & (noise > 0)).all()
        ):
            remedy = (
                "give one positive standard deviation, or one for each of the "
                f"{counted(len(self.instrument.errors), 'error')}, in SI units"
            )
            add_problem("noise", f"is {self.noise}", remedy)
        if self.labels and len(self.labels) != count:
            add_problem(
                "labels",
                f"has {counted(len(self.labels), 'entry')} for {counted(count, 'reading')}",
                "give one for each reading, or none",
            )
        InputError.raise_if_any(problems)

    def _conditions(self, problems: Problems) -> list[tuple[str, np.ndarray]]:
        """Convert loads and temperatures to arrays, and return those whose shape is correct."""
        name, count = self.instrument.name, len(self.encoders)
        result = []
        columns = {"loads": 6, "temperatures": len(self.thermometers)}
        for key, width in columns.items():
            values = getattr(self, key)
            if values is None:
                if key == "temperatures" and width:
                    what = f"are missing for {listing(self.thermometers)}"
                    problems.add(
                        f"{name}.temperatures", what, "give one column in K for each thermometer"
                    )
                continue
            values = np.atleast_2d(numbers(values, f"{name}.{key}"))
            object.__setattr__(self, key, values)
            if values.shape == (count, width):
                result.append((key, values))
                continue
            what = f"have shape {values.shape} instead of {(count, width)}"
            remedy = (
                "give fx, fy, fz, mx, my, mz for every pose"
                if key == "loads"
                else "give a column for each of the thermometers"
            )
            problems.add(f"{name}.{key}", what, remedy)
        noise = self.temperature_noise
        if not (np.isfinite(noise) and noise >= 0.0):
            remedy = "give a standard deviation of zero or more, K"
            problems.add(f"{name}.temperature_noise", f"is {noise:g}", remedy)
        return result

    def __len__(self) -> int:
        """Number of readings."""
        return len(self.readings)

    @property
    def sigma(self) -> np.ndarray:
        """`noise` as an array with one standard deviation for each error (n_errors,), SI."""
        return np.broadcast_to(np.asarray(self.noise, dtype=float), (len(self.instrument.errors),))

    def label(self, reading: int) -> str:
        """Return the name of a reading in messages."""
        if self.labels:
            return self.labels[reading]
        return f"pose {reading + 1}" if self.instrument.poses == 1 else f"reading {reading + 1}"

    def rows(self, readings: np.ndarray) -> np.ndarray:
        """Return the encoder rows (indices) of some readings (indices or a mask)."""
        rows = np.arange(len(self.encoders)).reshape(len(self), self.instrument.poses)
        return rows[readings].ravel()

    def take(self, readings: np.ndarray) -> Series:
        """Return the series with some of its readings (indices or a mask)."""
        chosen = np.arange(len(self))[readings]
        labels = tuple(self.label(int(i)) for i in chosen)
        encoders = self.encoders[self.rows(chosen)]
        rows = self.rows(chosen)
        return replace(
            self,
            encoders=encoders,
            readings=self.readings[chosen],
            labels=labels,
            loads=None if self.loads is None else self.loads[rows],
            temperatures=None if self.temperatures is None else self.temperatures[rows],
        )
