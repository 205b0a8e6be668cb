"""C source of runs of one drive line: its equations, the integrator, and the loop with the criteria (`axis.c`)."""

from __future__ import annotations

import casadi as ca

from tauloop.codegen.c_helpers import c_file
from tauloop.codegen.source import number
from tauloop.drives.equations.system import INPUTS, AxisSystem

#: What a run comes to, as in `axis.c`: all is well, the state grows without bound, the steps ran out, events pile up, a
#: terminal event took place.
OK, DIVERGED, TOO_LONG, CHATTERING, ENDED = 0, 1, 2, 3, 5
#: Numbers that a run reports.
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
    "overshoot_at",
    "happened",
)


def axis_source(system: AxisSystem, integrator: str) -> str:
    """C text of `drive_batch` for a drive line; the integrator's as of `integrator_source`."""
    generator = ca.CodeGenerator("drive.c", {"with_header": False, "casadi_int": "int", "include_math": True})
    for function in (system.rate, _without_guards(system.rate), system.reset, system.hold):
        generator.add(function)
    # functions of one file only: exported ones would not be put in line, for others could take their place
    equations = ["#define CASADI_SYMBOL_EXPORT static", generator.dump()]
    return "\n".join([*equations, _sizes(system), integrator, c_file("tauloop.drives.axis", "axis.c")])


def _without_guards(rate: ca.Function) -> ca.Function:
    """The rates alone, for stages inside a step."""
    arguments = rate.sx_in()
    return ca.Function("drive_slope", arguments, [rate(*arguments)[0]])


def _sizes(system: AxisSystem) -> str:
    sizes = {
        "NY": len(system.state_names),
        "NS": len(system.mode_names),
        "NE": len(system.watched),
        "NZ": system.held_size,
        "NI": len(INPUTS),
        "NP": len(system.line.parameters),
        "NQ": len([name for name in system.state_names if name.endswith(".velocity")]),
        "OUT": system.output,
        "REPORT": len(REPORT),
    }
    lines = [f"#define {name} {value}" for name, value in sizes.items()]
    # arrays of no length are not C; one idle place does no harm
    lines += [f"#define {name}A {max(sizes[name], 1)}" for name in ("NS", "NZ")]
    starts = ", ".join(number(value) for value in system.mode_starts) or "0.0"
    asked = ", ".join(f"{event.direction}.0, {int(event.is_terminal)}.0" for event in system.watched) or "0.0"
    lines.append(f"static const double events[] = {{{asked}}};")
    return "\n".join([*lines, f"static const double first_modes[NSA] = {{{starts}}};", ""])
