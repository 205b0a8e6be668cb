"""Fit of parameters of a drive line to measured steps.

An example of a file of steps:

    format: tauloop-steps/1
    steps:
      slow:
        step: 100 mm  # step of the reference
        set: {kp: 200, ti: 1.5 s}  # values of parameters in this step
        measured: {rise_time: 1.75 s, settling_time: 3.96 s, overshoot: 0.1 mm}
        tolerances: {overshoot: 0.05 mm}  # default: a fraction of the measured value
      judge: {step: 50 mm, measured: {rise_time: 1.7 s}, held_out: yes}
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field as dataclass_field, fields, replace
from pathlib import Path

import numpy as np

from tauloop.common.datasets import Variable, rows
from tauloop.common.errors import InputError, Problem, Problems
from tauloop.common.keywords import keywords
from tauloop.common.options import Options, option
from tauloop.common.plain import json_keys
from tauloop.common.progress import Progress
from tauloop.common.records import dataclass
from tauloop.common.result import Result, diagnostic, plain, provenance
from tauloop.drives.axis.simulation import LINE_INTEGRATOR, Axis
from tauloop.drives.criteria import NAMES, criteria_units
from tauloop.drives.machine.lines import MOTORS, with_motors
from tauloop.drives.parameter_values import (
    ParameterRange,
    ranges_in_si,
    ranges_reader,
    values_in_si,
)
from tauloop.drives.plant_search import (
    DETERMINED,
    Observation,
    PlantFit,
    PlantUnknown,
    search_plant,
)
from tauloop.mechanism.description.cursor import Choice, MapOf, Shape, Text, Value, field, need
from tauloop.mechanism.description.documents import Amount, contents, open_document
from tauloop.mechanism.description.units import TIME, si_unit
from tauloop.mechanism.description.values import ValueReader
from tauloop.mechanism.drive_line import DriveLine
from tauloop.mechanism.suggestions import suggestion

STEPS_FORMAT = "tauloop-steps/1"
#: The fit is doubtful if a criterion, held-out or not, deviates from its measured value by more than
#: this number of tolerances.
MAX_DEVIATION = 3.0
_ANY = Value(linear=None)
_TIME = Value(linear=TIME, sign="positive")
CRITERIA = Shape(
    name="criteria",
    doc="Criteria of a step response.",
    fields=tuple(
        field(name, _TIME if name.endswith("_time") else _ANY, name.replace("_", " "))
        for name in NAMES
    ),
)
STEP = Shape(
    name="step",
    doc="A measured step of the reference.",
    fields=(
        need("step", _ANY, "size of the step"),
        need("measured", CRITERIA, "measured values of the criteria"),
        field(
            "tolerances",
            CRITERIA,
            "tolerances of the measured values; default: a fraction of the value (an option)",
        ),
        field("set", MapOf(item=_ANY, key="parameter", is_known=True), "parameters in this step"),
        field(
            "held_out",
            Choice(options=("yes", "no")),
            "whether the step only validates the fit, without entering it",
        ),
    ),
)
STEPS = Shape(
    name="measured steps",
    doc="Measured steps of a drive line.",
    fields=(
        need("format", Choice(options=(STEPS_FORMAT,)), "format and version"),
        field("description", Text(), "what was measured"),
        need("steps", MapOf(item=STEP, key="step", may_be_empty=False), "the steps"),
    ),
)


def load_steps(path: str | Path, tolerance: float = 0.01) -> tuple[Observation, ...]:
    """Return the measured steps of a file (see the head of this module for an example).

    Args:
        path: the YAML file.
        tolerance: tolerance of a measured value without one in the file, as a fraction of the
            value.

    Raises:
        InputError: the file is invalid; all problems are listed with line numbers.
    """
    root = open_document(path, STEPS)
    content = contents(root, ValueReader(None)) or {}
    root.collector.raise_any(InputError)

    def numbers(pairs: Mapping[str, float | Amount]) -> dict[str, float]:
        return {
            name: value.value if isinstance(value, Amount) else value
            for name, value in pairs.items()
        }

    steps = []
    for name, step in content["steps"].items():
        measured = numbers(step["measured"])
        tolerances = {criterion: tolerance * abs(value) for criterion, value in measured.items()}
        steps.append(
            Observation(
                name=name,
                parameters=numbers(step.get("set", {})),
                step=numbers(step)["step"],
                measured=measured,
                tolerances=tolerances | numbers(step.get("tolerances", {})),
                scales={},
                held_out=step.get("held_out") == "yes",
            )
        )
    return tuple(steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class DriveLineFitOptions(Options):
    """Unknown parameters of a drive line, and options of their search.

    Attributes:
        bounds: range of each unknown parameter of the drive line, such as 'cart_viscous=10:100'
            (SI) or 'gap=0.1mm:2mm'; searched on a log scale if both limits are positive.
        values: change parameters for this run, such as 'gap=1mm,kp=250' (SI, or with units).
        motor_setup: how the motors are used: `as-written` (as in the file), `preloaded` (the slave
            always pulls against the master) or `one` (without the slave).
        value_tolerance: tolerance of a measured value, as a fraction of it, for steps without
            tolerances.
        generations: number of generations of the global search; with 0 only the local fit, from the
            drive line's own values.
        population: number of members of a generation.
        local_evaluations: maximum number of evaluations of the local fit.
        seed: seed of all random numbers.
        tolerance: relative tolerance of an integration step.
        workers: number of parallel workers; no result depends on it.

    Examples:
        >>> import tauloop as tl
        >>> tl.DriveLineFitOptions(bounds={"preload": (5.0, 12.0)}, generations=0).bounds
        {'preload': (5.0, 12.0)}
    """

    bounds: Mapping[str, ParameterRange] = option(
        factory=dict,
        read=ranges_reader("bounds", "cart_viscous=10:100"),
        repeated=True,
        metavar="NAME=LOW:HIGH",
    )
    values: Mapping[str, float | str] = option(factory=dict, flag="--set")
    motor_setup: str = option(MOTORS[0], choices=MOTORS)
    value_tolerance: float = option(0.01, least=1e-12)
    generations: int = option(60, least=0)
    population: int = option(40, least=5)
    local_evaluations: int = option(50, least=1)
    seed: int = option(0, least=0)
    tolerance: float = option(
        1e-7,
        above=0.0,
        most=1e-3,
        remedy="give at most 1e-3, or value_tolerance for measured values",
    )
    workers: int = option(1, least=1, flag="--workers -j", metavar="N")

    def _note_mismatches(self, problems: Problems) -> None:
        """Add problems for missing or invalid ranges, and for unknowns that also have a value."""
        if not self.bounds:
            problems.add(
                "bounds", "no parameter is given", "name the parameters to fit, with their ranges"
            )
        problems += _range_problems(_numbers_only(self.bounds))
        for name in self.bounds:
            if name in self.values:
                problems.add(
                    "values",
                    f"{name} has both bounds and a fixed value",
                    "remove the bounds to fix it, or the value to fit it",
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedPlant(Result):
    """Parameters of a drive line identified from measured steps.

    Attributes:
        drive_line: name of the drive line.
        before: values of the unknowns in the file, SI.
        fit: fitted values, criteria with their measured values, and how well the steps determine
            the unknowns.
        findings: directions of the unknowns that the steps do not determine.
        units: SI units of the unknowns and of the criteria.
    """

    drive_line: str
    before: Mapping[str, float]
    fit: PlantFit = dataclass_field(
        metadata=json_keys(
            values="values",
            loss="loss",
            plants_tried="evaluations",
            sensitivities="sensitivities",
            directions="directions",
            figures="named_rows",
        )
    )
    findings: tuple[Problem, ...]
    units: Mapping[str, str]

    def variables(self) -> Iterator[Variable]:
        """Yield measured and fitted criteria, and parameters before and after the fit."""
        steps, criteria, measured, fitted, _ = zip(*self.fit.rows, strict=True)
        labels = map(": ".join, zip(steps, criteria, strict=True))
        units = [self.units.get(name, "") for name in criteria]
        yield from rows("figure", labels, units, measured=measured, fitted=fitted)
        names = list(self.fit.values)
        before, values = [self.before.get(name) for name in names], list(self.fit.values.values())
        yield from rows(
            "parameter", names, [self.units.get(n, "") for n in names], before=before, value=values
        )


def _numbers_only(ranges: Mapping[str, ParameterRange]) -> dict[str, tuple[float, float]]:
    """Return the ranges whose limits are numbers; strings are read with their units later."""
    numbers: dict[str, tuple[float, float]] = {}
    for name, limits in ranges.items():
        if not isinstance(limits, str):
            low, high = limits
            if not isinstance(low, str) and not isinstance(high, str):
                numbers[name] = (low, high)
    return numbers


def _range_problems(ranges: Mapping[str, tuple[float, float]]) -> Problems:
    """Return a problem for each range that is not finite or whose limits are in the wrong order."""
    problems = Problems()
    for name, (low, high) in ranges.items():
        if not (np.isfinite([low, high]).all() and low < high):
            problems.add(
                "bounds",
                f"{name} ranges from {low:g} to {high:g}",
                "give two finite limits, the lower one first",
            )
    return problems


@keywords(DriveLineFitOptions)
def fit_drive_line(
    line: DriveLine,
    steps: Sequence[Observation] | str | Path,
    options: DriveLineFitOptions,
    *,
    progress: Progress | None = None,
) -> FittedPlant:
    """Fit unknown parameters of a drive line to criteria of measured steps.

    Args:
        line: the drive line.
        steps: measured steps, or a file of them (see `load_steps`).
        options: unknown parameters, and options of their search.
        progress: called with the work done and the total work.

    Returns:
        Values of the unknowns before and after, every criterion with its measured value (`fit`),
        and the directions of the unknowns that the steps do not determine (`findings`).

    Raises:
        InputError: unknown parameters, empty ranges, or measured values without a tolerance.

    Source: Storn and Price 1997 (differential evolution), then least squares with the soft L1 loss.

    Examples:
        >>> import tauloop as tl
        >>> line = tl.drives.load_drive("dual_motor_axis")
        >>> changed = {"cart_viscous": 40.0}
        >>> slow = tl.simulate_drive_line(line, step=0.1, duration=6.0, values=changed)
        >>> seen = slow.record.criteria
        >>> step = tl.drives.Observation(
        ...     name="slow",
        ...     parameters={},
        ...     step=0.1,
        ...     scales={},
        ...     measured={"rise_time": float(seen.rise_time[0])},
        ...     tolerances={"rise_time": 1e-4},
        ... )
        >>> options = tl.DriveLineFitOptions(bounds={"cart_viscous": (10.0, 100.0)}, generations=0)
        >>> fitted = tl.fit_drive_line(line, [step], options)
        >>> round(fitted.fit.values["cart_viscous"])
        40
    """
    if isinstance(steps, str | Path):
        steps = load_steps(steps, options.value_tolerance)
    others = values_in_si(line.parameters, options.values, "values")
    ranges = ranges_in_si(line.parameters, options.bounds, "bounds")
    InputError.raise_if_any(_range_problems(ranges))
    options = replace(options, values=others, bounds=ranges)
    line = with_motors(line, options.motor_setup)
    known = line.parameters.values
    InputError.raise_if_any(_unknown_parameters(known, options, steps))
    runs = options.generations * options.population * len(steps)
    axis = Axis(line, threads=options.workers, runs=runs)
    unknowns = [
        PlantUnknown(name=name, lower=low, upper=high, logarithmic=low > 0.0)
        for name, (low, high) in ranges.items()
    ]
    start = np.clip(
        [unknown.share(max(known[unknown.name], unknown.lower)) for unknown in unknowns], 0.0, 1.0
    )
    fit = search_plant(
        axis,
        unknowns,
        [replace(step, parameters={**others, **step.parameters}) for step in steps],
        seed=options.seed,
        generations=options.generations,
        population=options.population,
        polish=options.local_evaluations,
        start=start,
        integrator=replace(LINE_INTEGRATOR, rtol=options.tolerance, atol=1e-2 * options.tolerance),
        progress=progress,
    )
    return FittedPlant(
        diagnostics=(
            diagnostic(
                "largest deviation from a measured value, held-out values included, in tolerances",
                _largest_deviation(fit, steps),
                at_most=MAX_DEVIATION,
                advice="raise the number of evaluations, or change the structure of the drive line, "
                "which may not be able to reproduce these steps",
            ),
        ),
        provenance=provenance(
            packages=("numpy", "scipy", "casadi"),
            options={item.name: plain(getattr(options, item.name)) for item in fields(options)},
            inputs={"drive_line": line.name, "steps": len(steps)},
        ),
        drive_line=line.name,
        before={name: known[name] for name in options.bounds},
        units={name: si_unit(line.parameters[name].unit) for name in options.bounds}
        | criteria_units(line),
        fit=fit,
        findings=_undetermined(fit),
    )


def _unknown_parameters(
    known: Mapping[str, float], options: DriveLineFitOptions, steps: Sequence[Observation]
) -> Problems:
    """Return a problem for each name in options and steps that is not a parameter of the line."""
    named = [
        ("bounds", options.bounds),
        ("values", options.values),
        *((step.name, step.parameters) for step in steps),
    ]
    problems = Problems()
    for where, names in named:
        for name in names:
            if name not in known:
                remedy = suggestion(name, known) or f"choose one of {', '.join(known)}"
                problems.add(where, f"no parameter {name!r}", remedy)
    return problems


def _largest_deviation(fit: PlantFit, steps: Sequence[Observation]) -> float:
    """Return the largest difference between a fitted and a measured criterion, in tolerances."""
    tolerances = [step.tolerances[name] for step in steps for name in step.measured]
    return max(
        abs(fitted - measured) / tolerance
        for (_, _, measured, fitted, _), tolerance in zip(fit.rows, tolerances, strict=True)
    )


def _undetermined(fit: PlantFit) -> tuple[Problem, ...]:
    """Return a finding for each direction of the unknowns that the steps do not determine."""
    findings = Problems()
    for direction in fit.undetermined:
        # a direction and its negative are equivalent; make the largest component positive
        largest = direction[np.abs(direction).argmax()]
        findings.add(
            fit.named(direction * np.sign(largest)),
            f"is not determined: over its range the criteria change by less than {DETERMINED:g} "
            "tolerance",
            "measure other steps, or take a value from another source",
        )
    return tuple(findings)
