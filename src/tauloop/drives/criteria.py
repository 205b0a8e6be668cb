"""Criteria of a step response, for many parameter sets at once, and their combinations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

import numpy as np

from tauloop.common.errors import InputError, Problems
from tauloop.common.execution.stopping import StopCode
from tauloop.common.names.deprecated import with_old_keywords
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.mechanism.description.units import parse_unit, quantity
from tauloop.mechanism.drive_line import DriveLine

#: Penalty that replaces the criteria of a failed run: this value for a failure at the end, twice
#: this value for a failure at the start. It is larger than any real criterion, and it is lower for a
#: later failure, so that an optimizer can return to stable parameters.
FAILURE_PENALTY = 1e6


class Outcome(StopCode):
    """Why a run ended, as numbered in `axis.c`."""

    SUCCESS = 0
    #: Unstable gains.
    DIVERGED = 1
    MAX_STEPS = 2
    CHATTERING = 3
    #: For example: switch_min is not below switch_max.
    INVALID_PARAMETERS = 4
    #: A terminal event; the criteria are those of the run up to the event.
    EVENT = 5

    @property
    def label(self) -> str:
        """Name of the outcome in JSON."""
        labels = {"SUCCESS": "ok", "MAX_STEPS": "too_long", "EVENT": "ended"}
        return labels.get(self.name, self.name.partition("_")[0].lower())


def criteria_units(line: DriveLine) -> dict[str, str]:
    """Return the SI unit of every criterion of a drive line's steps."""
    position = "rad" if line.inertia(line.performance.of).is_rotary else "m"
    energy = " + ".join(_energy_units(line))
    return {
        name: {"rise_time": "s", "settling_time": "s", "energy": energy}.get(name, position)
        for name in NAMES
    }


def _energy_units(line: DriveLine) -> list[str]:
    """Return the units of the criterion `energy`: of rotary motors, of linear motors, or both."""
    is_rotary = [line.inertia(motor.on).is_rotary for motor in line.motors]
    units = []
    if any(is_rotary):
        units.append("(N m)^2 s")
    if not all(is_rotary):
        units.append("N^2 s")
    return units


def scales_in_si(line: DriveLine, scales: Mapping[str, float | str]) -> dict[str, float]:
    """Return the scales (divisors) of criteria in SI units.

    Args:
        line: the drive line.
        scales: numbers in SI units, or strings with a unit of the criterion, by criterion.

    Raises:
        InputError: a scale does not have a unit of its criterion; all problems at once.
    """
    problems, numbers = Problems(), dict[str, float]()
    units_of = criteria_units(line)
    for name, scale in scales.items():
        units = _energy_units(line) if name == "energy" else [units_of[name]]
        plain_units = [unit.replace("(N m)^2", "N^2 m^2") for unit in units]
        with problems.collecting(InputError):
            text = scale if isinstance(scale, str) else f"{scale:.17g}"
            dimensions = [parse_unit(unit).dimension for unit in plain_units]
            numbers[name] = quantity(f"scales {name}", text, *dimensions)
    InputError.raise_if_any(problems)
    return numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Criteria(ReprMixin):
    """Criteria of N step responses; all arrays have the shape (N,) and are finite.

    If a run does not reach 90 % of the step, its rise time is the whole duration. If it does not
    end inside the band, its settling time is the whole duration.

    Attributes:
        rise_time: time from 10 % to 90 % of the step, s.
        overshoot: largest excess of the position over the reference, m or rad; zero if there is
            none.
        settling_time: time after which the position stays inside the band, s.
        energy: integral of the sum of all motors' torques squared, (N m)^2 s or N^2 s.
        final_error: absolute value of the error at the end, m or rad.
        swing: largest minus smallest position in the last quarter of the run, m or rad.
        settled: whether the position is inside the band at the end.
        outcome: `Outcome` of each run.
        end: time at which the run ended, s.
        steps, events: numbers of steps and events of the integrator.
    """

    rise_time: np.ndarray
    overshoot: np.ndarray
    settling_time: np.ndarray
    energy: np.ndarray
    final_error: np.ndarray
    swing: np.ndarray
    settled: np.ndarray
    outcome: np.ndarray
    end: np.ndarray
    steps: np.ndarray
    events: np.ndarray

    def __len__(self) -> int:
        return len(self.outcome)

    @property
    def failed(self) -> np.ndarray:
        """Whether each run failed: it ended before its duration without a terminal event (N,)."""
        return ~np.isin(self.outcome, (Outcome.SUCCESS, Outcome.EVENT))


#: Names of the criteria that can be part of a cost.
NAMES = ("rise_time", "overshoot", "settling_time", "energy", "final_error", "swing")


def scaled(criteria: Criteria, scales: Mapping[str, float]) -> np.ndarray:
    """Return the criteria divided by their scales (N, k), in the order of the scales.

    Args:
        criteria: criteria of N runs.
        scales: divisors of the criteria: their acceptable values, SI, by name. A larger scale
            lowers the influence of a criterion.

    Raises:
        InputError: a criterion is unknown, or a scale is not positive and finite.
    """
    problems = Problems()
    for name, scale in scales.items():
        if name not in NAMES:
            problems.add(name, "no such criterion", f"use one of {', '.join(NAMES)}")
        elif not (np.isfinite(scale) and scale > 0):
            problems.add(
                name,
                f"the scale {scale} is not positive and finite",
                "give a finite scale above zero",
            )
    if not scales:
        problems.add("scales", "no scale is given", "give a scale for at least one criterion")
    InputError.raise_if_any(problems)
    return np.column_stack([getattr(criteria, name) / scale for name, scale in scales.items()])


@with_old_keywords
def scaled_sum(criteria: Criteria, scales: Mapping[str, float]) -> np.ndarray:
    """Return the sum (N,) of the criteria, each divided by its scale (see `scaled`).

    Source: Gantry-Tau paper, eq. 2 and the cost before it.
    """
    return scaled(criteria, scales).sum(axis=1)


@with_old_keywords
def scaled_worst(criteria: Criteria, scales: Mapping[str, float]) -> np.ndarray:
    """Return the largest (N,) of the criteria, each divided by its scale (see `scaled`).

    Source: Gantry-Tau paper, eq. 3.
    """
    return scaled(criteria, scales).max(axis=1)


def with_failure_penalty(criteria: Criteria, duration: np.ndarray) -> Criteria:
    """Return the criteria with the penalty in place of the values of failed runs.

    Args:
        criteria: criteria of the runs; values of failed runs are arbitrary.
        duration: duration of each run (N,), s.
    """
    penalty = FAILURE_PENALTY * (2.0 - np.clip(criteria.end / duration, 0.0, 1.0))
    arrays = {item.name: getattr(criteria, item.name) for item in fields(criteria)}
    arrays |= {name: np.where(criteria.failed, penalty, arrays[name]) for name in NAMES}
    return Criteria(**arrays)
