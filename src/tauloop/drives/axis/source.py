"""Routines of a drive line, and the C source of its runs with the criteria (`axis.c`)."""

from __future__ import annotations

import casadi as ca

from tauloop.compiler.c.printing.c_helpers import c_file
from tauloop.compiler.c.printing.source import number
from tauloop.drives.equations.system import INPUTS, AxisSystem
from tauloop.integrate.routine import Routine, RoutineCall
from tauloop.integrate.system import HybridSystem
from tauloop.integrate.tableau import Tableau

#: Points of a run at which all states are recorded: start and end of the rise, peak beyond the
#: reference, last entry into the settling band, and end.
MARKS = ("begin", "risen", "peak", "settled", "last")
#: Columns of the report of a run.
REPORT = (
    "rise_time",
    "overshoot",
    "settling_time",
    "energy",
    "final_error",
    "lowest",
    "highest",
    "settled",
    "outcome",
    "end",
    "steps",
    "events",
    "rise_start",
    "happened",
)


def axis_routines(system: AxisSystem) -> HybridSystem:
    """Return the equations of a drive line as routines.

    The routine of a sample computes the values that the control holds.
    """
    arguments = system.rate.sx_in()
    slope = ca.Function("drive_slope", arguments, [system.rate(*arguments)[0]])

    def routine(
        function: ca.Function, held: str, *outputs: str, without: ca.Function | None = None
    ) -> Routine:
        brief = None if without is None else (without, outputs[:1])
        inputs = ("y", "s", held, "in", "p")
        return Routine(
            calls=(RoutineCall(function=function, inputs=inputs, outputs=outputs, brief=brief),)
        )

    return HybridSystem(
        states=len(system.state_names),
        held=system.held_size,
        inputs=len(INPUTS),
        modes=system.mode_starts,
        rate=routine(system.rate, "held", "rate", "guards", without=slope),
        reset=routine(system.reset, "held", "y"),
        sample=routine(system.hold, "z", "z"),
        constants=len(system.line.parameters),
    )


def axis_source(system: AxisSystem, routines: HybridSystem, method: Tableau | None) -> str:
    """Return the C source of `drive_batch`, with an explicit method or, if None, with Radau IIA."""
    sizes = {
        "N": len(system.state_names),
        "NC": system.coordinates,
        "NE": len(system.watched),
        "OUT": system.output,
        "REPORT": len(REPORT),
    }
    # C does not allow arrays without elements: such an array gets one unused element
    starts = ", ".join(number(value) for value in system.mode_starts) or "0.0"
    events = (
        ", ".join(f"{event.direction}.0, {int(event.is_terminal)}.0" for event in system.watched)
        or "0.0"
    )
    lines = [
        *(f"#define {name} {value}" for name, value in sizes.items()),
        f"static const double events[] = {{{events}}};",
        f"static const double first_modes[] = {{{starts}}};",
        c_file("tauloop.drives.axis", "axis.c"),
    ]
    return routines.source(method, "\n".join(lines))
