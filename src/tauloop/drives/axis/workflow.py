"""Simulate a step of a drive line with options; return its criteria and its limit cycle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields, replace
from typing import Any

from tauloop.common.datasets import tabulated
from tauloop.common.errors import InputError, Problems
from tauloop.common.keywords import keywords
from tauloop.common.options import Options, option, pairs_reader
from tauloop.common.plain import OMITTED, in_json, json_keys
from tauloop.common.records import dataclass
from tauloop.common.result import Result, diagnostic, provenance
from tauloop.drives.axis.limit_cycle import (
    LimitCycle,
    measure_limit_cycle,
    predict_limit_cycles,
)
from tauloop.drives.axis.simulation import LINE_INTEGRATOR, Axis, Record, record_axis
from tauloop.drives.criteria import Outcome
from tauloop.drives.machine.lines import MOTORS, with_motors
from tauloop.drives.parameter_values import values_in_si
from tauloop.integrate.events import ValuePassed, comparison
from tauloop.integrate.integrators import Integrator, described
from tauloop.mechanism.description import units
from tauloop.mechanism.drive_line import DriveLine

#: Sampling rate of a record, Hz.
SAMPLING_RATE = 400
#: Maximum number of samples of a record.
MAX_RECORDED_SAMPLES = 1_000_000


@dataclass(frozen=True, kw_only=True)
class DriveOptions(Options):
    """Options of a simulated step of a drive line.

    Attributes:
        step: size of the reference step, such as 0.1 (m or rad) or 5mm.
        duration: duration of the simulation, such as 10 or 10s.
        values: change parameters for this run, such as 'gap=1mm,kp=250' (SI, or with units).
        motor_setup: how the motors are used: `as-written` (as in the file), `preloaded` (the slave
            always pulls against the master) or `one` (without the slave).
        load: load on the controlled body, N or N m.
        load_time: start time of the load, such as 0.5s.
        cycle: measure the limit cycle, in addition to the prediction of the describing function.
        tolerance: relative tolerance of an integration step.
        integrator: integrator that replaces the explicit one with the tolerance above.
        until: end at this event: a signal passes a value, such as 'cart.position>0.05' (SI).
        record: record the times of this event, written as for --until, and continue.

    Examples:
        >>> import tauloop as tl
        >>> tl.DriveOptions(step=0.05, duration=2.0, values={"kp": 250.0}).step
        0.05
    """

    step: float = option(0.1, metavar="QUANTITY", unit=units.POSITIONS)
    duration: float = option(10.0, metavar="TIME", unit=units.TIME)
    values: Mapping[str, float | str] = option(
        flag="--set",
        factory=dict,
        read=pairs_reader("values", "gap=1mm"),
        metavar="NAME=VALUE",
    )
    motor_setup: str = option(MOTORS[0], choices=MOTORS)
    load: float = option(0.0, metavar="QUANTITY", unit=units.FORCES)
    load_time: float = option(0.0, metavar="TIME", unit=units.TIME)
    cycle: bool = False
    tolerance: float = option(LINE_INTEGRATOR.rtol)
    integrator: Integrator | None = option(None, flag="")
    until: tuple[str, ...] = option((), metavar="EVENT")
    record: tuple[str, ...] = option((), metavar="EVENT")

    def _note_mismatches(self, problems: Problems) -> None:
        """Add problems for an invalid integrator and for invalid events."""
        with problems.collecting(InputError):
            _ = self.chosen, self.events

    @property
    def events(self) -> tuple[ValuePassed, ...]:
        """Events of `until` and `record`.

        Raises:
            InputError: strings that are not a comparison; all problems at once.
        """
        problems = Problems()
        events = []
        for where in ("until", "record"):
            for text in getattr(self, where):
                with problems.collecting(InputError):
                    events.append(comparison(where, text, is_terminal=where == "until"))
        InputError.raise_if_any(problems)
        return tuple(events)

    @property
    def chosen(self) -> Integrator:
        """Integrator of the run: `integrator`, or the default one with the tolerance."""
        return self.integrator or replace(
            LINE_INTEGRATOR, rtol=self.tolerance, atol=1e-2 * self.tolerance
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DriveStep(Result):
    """Result of a simulated step of a drive line.

    Attributes:
        line: the drive line.
        options: options of the simulation.
        record: signals and criteria of the run.
        measured: limit cycle in the simulated record; None if there is none or none was requested.
        predicted: limit cycles that the describing function predicts; None unless requested.
    """

    line: DriveLine = field(metadata=json_keys(name="name"))
    options: DriveOptions = field(
        metadata=json_keys(
            step="step", duration="duration", parameters="values", motors="motor_setup"
        )
    )
    record: Record = field(metadata=json_keys(events="occurrences") | tabulated())
    measured: LimitCycle | None = field(default=None, metadata=OMITTED)
    predicted: tuple[LimitCycle, ...] | None = field(default=None, metadata=OMITTED)

    @property
    def outcome(self) -> Outcome:
        """Reason why the run ended."""
        return Outcome(int(self.record.criteria.outcome[0]))

    @property
    @in_json()
    def criteria(self) -> dict[str, Any]:
        """Criteria of the step by name, and the reason why the run ended."""
        criteria = self.record.criteria
        values = {item.name: getattr(criteria, item.name)[0] for item in fields(criteria)}
        return values | {"outcome": self.outcome.label}

    @property
    @in_json(optional=True)
    def limit_cycle(self) -> dict[str, Any] | None:
        """Limit cycle as simulated and as predicted; None unless requested."""
        if self.predicted is None:
            return None
        return {"simulated": self.measured, "describing_function": self.predicted}


@keywords(DriveOptions)
def simulate_drive_line(line: DriveLine, options: DriveOptions | None = None) -> DriveStep:
    """Simulate the step response of a drive line with its control, and compute its criteria.

    Args:
        line: the drive line (`load_drive`).
        options: the step, its load, and changed parameters.

    Returns:
        Signals over time, criteria, and the reason why the run ended (`outcome`).

    Raises:
        InputError: unknown parameters or invalid numbers.

    Examples:
        >>> import tauloop as tl
        >>> line = tl.drives.load_drive("dual_motor_axis")
        >>> step = tl.simulate_drive_line(line, step="50 mm", duration="2 s")
        >>> step.outcome.name
        'SUCCESS'
        >>> step.to_xarray()["position.cart"].attrs["units"]
        'm'
    """
    options = options or DriveOptions()
    values = values_in_si(line.parameters, options.values, "values")
    options = replace(options, values=values)
    line = with_motors(line, options.motor_setup)
    intervals = max(SAMPLING_RATE * options.duration, 1) if options.duration > 0 else 1
    record = record_axis(
        Axis(line, events=options.events),
        values,
        step=options.step,
        duration=options.duration,
        load=options.load,
        load_time=options.load_time,
        samples=int(min(intervals, MAX_RECORDED_SAMPLES)) + 1,
        integrator=options.chosen,
    )
    is_done = not record.criteria.failed[0]
    completed = 1.0
    if not is_done:
        completed = min(float(record.criteria.end[0] / options.duration), 1.0 - 1e-9)
    outcome = Outcome(int(record.criteria.outcome[0])).label.replace("_", " ")
    return DriveStep(
        diagnostics=(
            diagnostic(
                "completed fraction of the step",
                completed,
                at_least=1.0,
                advice=outcome,
            ),
        ),
        provenance=provenance(
            options={
                "integrator": described(options.chosen),
                "step": options.step,
                "motor_setup": options.motor_setup,
            },
            inputs={"drive": line.name},
        ),
        line=line,
        options=options,
        record=record,
        measured=measure_limit_cycle(record, line.performance.of)
        if options.cycle and is_done
        else None,
        predicted=predict_limit_cycles(line, values) if options.cycle else None,
    )
