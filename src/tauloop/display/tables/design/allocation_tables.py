"""Tables of chosen tolerances: tolerances with grades, costs, and errors against limits."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tauloop.design.tolerances.allocation import ToleranceAllocation
from tauloop.display.pieces import Printed
from tauloop.display.tables import doubts, table
from tauloop.display.tables.design.tolerance_tables import DISPLAY_UNITS
from tauloop.elasticity.static_analysis.stiffness import DIRECTIONS
from tauloop.mechanism.description.units import si_unit


def allocation_tables(result: ToleranceAllocation) -> Iterator[Printed]:
    """Yield the chosen tolerances, their cost, and the errors of the tool."""
    yield _tolerances_table(result)
    yield _cost_table(result)
    yield _limits_table(result)
    if result.active:
        yield f"active limits: {', '.join(result.active)}"
    for note in result.map.notes:
        yield f"note: {note}"
    yield from doubts(result)


def _tolerances_table(result: ToleranceAllocation) -> Printed:
    """Return a table of the chosen tolerances, and of the tolerances of calibrated parameters."""
    parameters = result.map.model.mechanism.parameters
    rows: list[tuple[object, ...]] = []
    for name, tolerance, grade in zip(
        result.names, result.tolerances, result.chosen_grades, strict=True
    ):
        tolerance_text = _with_display_unit(tolerance, si_unit(parameters[name].unit))
        rows.append((name, tolerance_text, _grade(grade)))
    for name, tolerance in result.calibrated.items():
        rows.append(
            (name, _with_display_unit(tolerance, si_unit(parameters[name].unit)), "calibrated")
        )
    return table(
        f"Tolerances of {result.map.model.mechanism.name}",
        "parameter",
        "tolerance ±",
        "grade",
        rows=rows,
    )


def _grade(grade: int) -> str:
    """Return the name of a standard grade, or the number of a choice that the user defined."""
    if grade < 0:
        return f"choice {-grade}"
    return f"IT{grade}" if grade else ""


def _with_display_unit(tolerance: float, unit: str) -> str:
    factor, display_unit = DISPLAY_UNITS.get(unit, (1.0, unit))
    return f"{factor * tolerance:.4g} {display_unit}"


def _cost_table(result: ToleranceAllocation) -> Printed:
    """Return a table with the cost of the choice and of its alternatives."""
    rows: list[tuple[object, ...]] = [
        ("this choice", result.cost),
        ("no choice costs less than", result.lower_bound),
        ("stated tolerances", result.stated_cost),
        ("limits 5 % tighter", _finite(result.tighter_cost)),
        ("limits 5 % looser", result.looser_cost),
        (
            "relative change of the cost per relative change of the limits",
            _finite(result.cost_sensitivity),
        ),
    ]
    if result.calibrated:
        rows.append(("without the calibration", _finite(result.uncalibrated_cost)))
        rows.append(("saved by the calibration", _finite(result.saving)))
    return table("Cost", "", ("cost", ".4g"), rows=rows)


def _finite(value: float) -> float | str:
    """Return a cost, or a text if no tolerances satisfy the limits."""
    return value if np.isfinite(value) else "no choice keeps the limits"


def _limits_table(result: ToleranceAllocation) -> Printed:
    """Return a table of the largest errors over all poses, and of their limits."""
    rows: list[tuple[object, ...]] = []
    for k, direction in enumerate(DIRECTIONS):
        limit = float(result.limits[k])
        unit = "um" if k < 3 else "urad"
        finite_limit = 1e6 * limit if np.isfinite(limit) else None
        rows.append((direction, 1e6 * float(result.largest_error[k]), finite_limit, unit))
    return table(
        "Largest error of the tool",
        "direction",
        ("worst case", ".4g"),
        ("limit", ".4g"),
        "unit",
        rows=rows,
    )
