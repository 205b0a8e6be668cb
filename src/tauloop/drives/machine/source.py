"""C source of a machine with its drive lines: their equations, the integrator, and what ties them (`machine.c`)."""

from __future__ import annotations

import casadi as ca
import numpy as np

from tauloop.codegen.evaluator import c_function
from tauloop.codegen.signature import HEALTH
from tauloop.codegen.source import CFunction, c_source, number
from tauloop.drives.machine.system import MACHINE_INPUTS, LineSystem, MachineSystem
from tauloop.integrate.source import c_text
from tauloop.programs.catalogue import KINEMATICS
from tauloop.programs.state import CONVERGED, SMALLEST_PIVOT

#: What a run comes to: all is well, a pose out of reach or singular, steps too small, too many steps, events pile up.
OK, UNHEALTHY, TOO_SMALL, TOO_LONG, CHATTERING = range(5)
#: Figures of health that a run reports: least discriminant, least pivot, largest residual.
WORST = 3


def machine_source(system: MachineSystem, integrator: str) -> str:
    """C text of `drive_machine`; the integrator's as of `integrator_source`."""
    plant = system.plant
    kinematics = plant.platform.source_function(KINEMATICS[1], ("q", "v"))
    entry, shape = plant.platform.ports, plant.topology
    sizes = {
        "position": entry.position.size,
        "velocity": entry.velocity.size,
        "force": len(plant.mechanism.actuators),
        "start": shape.n_q,
        "theta": 0,
    }
    rate = c_function(system.rate.program, {name: np.empty((0, n)) for name, n in sizes.items()}, ("rate", "all_q"))
    generator = ca.CodeGenerator("lines.c", {"with_header": False, "casadi_int": "int", "include_math": True})
    for line in system.lines:
        for function in (line.rate, line.slope, line.reset, line.hold):
            generator.add(function)
    parts = [
        c_source([rate, kinematics], "made by Tauloop, do not edit", with_batch=False, includes=("<string.h>",)),
        "#define CASADI_SYMBOL_EXPORT static",
        generator.dump(),
        _sizes(system),
        integrator,
        _rates(system, rate, kinematics),
        _of_lines(system, "reset", "tl_run *run, double time, double *y"),
        _of_lines(system, "hold", "tl_run *run"),
        _back(system),
        c_text("tauloop.drives.machine", "machine.c"),
    ]
    return "\n".join(parts)


def _offsets(system: MachineSystem) -> list[tuple[int, int, int]]:
    """Where each line's states, modes and held numbers begin."""
    found, at = [], (system.machine_size, 0, 0)
    for line in system.lines:
        found.append(at)
        at = (at[0] + _states(line), at[1] + len(line.mode_names), at[2] + line.held_size)
    return found


def _states(line: LineSystem) -> int:
    return len(line.start) + 2


def _sizes(system: MachineSystem) -> str:
    entry = system.plant.platform.ports
    sizes = {
        "NY": system.size,
        "NP": entry.position.size,
        "NQ": system.plant.topology.n_q,
        "NF": system.plant.topology.n_v,
        "NU": len(system.lines),
        "NI": len(MACHINE_INPUTS),
        "NS": sum(len(line.mode_names) for line in system.lines),
        "NZ": sum(line.held_size for line in system.lines),
    }
    starts = [number(value) for line in system.lines for value in line.mode_starts]
    lines = [f"#define {name} {value}" for name, value in sizes.items()]
    # arrays of no length are not C; one idle place does no harm
    lines += [f"#define {name}A {max(sizes[name], 1)}" for name in ("NS", "NZ")]
    lines.append(f"static const double first_modes[NSA] = {{{', '.join(starts) or '0.0'}}};")
    return "\n".join([*lines, ""])


def _call(function: CFunction, places: dict[str, str]) -> str:
    ports = (*function.inputs, *function.outputs)
    return f"    {function.name}({', '.join([*(places[port.name] for port in ports), 'health'])});"


def _rates(system: MachineSystem, rate: CFunction, kinematics: CFunction) -> str:
    """Rates of all states and, where wanted, guards; positions and speeds of the actuators come first."""
    plant = system.plant
    shape, transmission = plant.topology, plant.assembly.loops.transmission
    measured = []
    for i, row in enumerate(transmission):
        driven = [(j, float(r)) for j, r in enumerate(row) if r]
        measured.append(f"    at[{i}][0] = {' + '.join(f'{number(r)} * q[{shape.q_of_v[j]}]' for j, r in driven)};")
        measured.append(f"    at[{i}][1] = {' + '.join(f'{number(r)} * v[{j}]' for j, r in driven)};")
    state = {"position": "y", "velocity": "y + NP", "start": "start", "theta": "p"}
    lines = [
        "typedef struct {",
        "    double *z, in[NU * NI], *worst;",
        "    const double *p;",
        "} lines;",
        "",
        "static void actuators(const double *y, const double *start, const double *p, double at[NU][2])",
        "{",
        f"    double q[NQ], v[NF], health[{HEALTH}];",
        "    (void)start; (void)p;",
        _call(kinematics, state | {"q": "q", "v": "v"}),
        *measured,
        "}",
        "",
        "static int machine_rate(tl_run *run, double time, const double *y, double *rate, double *guards)",
        "{",
        "    (void)time;",
        *_OPENED,
        f"    double u[NU], q[NQ], health[{HEALTH}];",
    ]
    for i, (y, s, z) in enumerate(_offsets(system)):
        arguments = f"{{y + {y}, at[{i}], s + {s}, z + {z}, in + NI * {i}, p}}"
        name = system.lines[i].rate.name()
        slope = system.lines[i].slope.name()
        lines += [
            "    {",
            f"        const double *arg[6] = {arguments};",
            f"        double *without[2] = {{rate + {y}, u + {i}}};",
            f"        double *with[3] = {{rate + {y}, guards ? guards + {s} : 0, u + {i}}};",
            f"        if (guards) {name}(arg, with, iw, w, 0);",
            f"        else {slope}(arg, without, iw, w, 0);",
            "    }",
        ]
    healthy = f"health[0] >= 0.0 && health[1] > {number(SMALLEST_PIVOT)} && health[2] < {number(CONVERGED)}"
    lines += [
        _call(rate, state | {"force": "u", "rate": "rate", "all_q": "q"}),
        f"    if (!({healthy})) return 0;",
        "    l->worst[0] = fmin(l->worst[0], health[0]);",
        "    l->worst[1] = fmin(l->worst[1], health[1]);",
        "    l->worst[2] = fmax(l->worst[2], health[2]);",
        "    memcpy(start, q, sizeof q);",
        "    return 1;",
        "}",
        "",
    ]
    return "\n".join(lines)


#: What every function of a run begins with: the lines' numbers, and where their loads are.
_OPENED = (
    "    lines *l = run->data;",
    "    const double *s = run->s, *z = l->z, *in = l->in, *p = l->p;",
    "    double *start = run->guess, at[NU][2], w[8];",
    "    int iw[8];",
    "    actuators(y, start, p, at);",
    "    (void)s; (void)z; (void)in; (void)w; (void)iw;",
)


def _of_lines(system: MachineSystem, function: str, arguments: str) -> str:
    """The same function of all lines, one after the other, in place."""
    lines = [f"static void machine_{function}({arguments})", "{"]
    lines.append("    double *y = run->y;" if function == "hold" else "    (void)time;")
    lines += [*_OPENED, "    double next[NY + NZA];", "    (void)next;"]
    for i, (y, s, z) in enumerate(_offsets(system)):
        line = system.lines[i]
        place, size = (f"y + {y}", len(line.start)) if function == "reset" else (f"l->z + {z}", line.held_size)
        lines += [
            "    {",
            f"        const double *arg[6] = {{y + {y}, at[{i}], s + {s}, z + {z}, in + NI * {i}, p}};",
            "        double *res[1] = {next};",
            f"        {getattr(line, function).name()}(arg, res, iw, w, 0);",
            f"        memcpy({place}, next, sizeof(double) * {size});",
            "    }",
        ]
    return "\n".join([*lines, "}", ""])


def _back(system: MachineSystem) -> str:
    """Whole quaternions among the machine's positions, brought back to unit length."""
    lines = ["static int machine_back(tl_run *run, double time, double *y)", "{", "    (void)run; (void)time; (void)y;"]
    for k in system.rate.quaternions:
        square = " + ".join(f"y[{k + i}] * y[{k + i}]" for i in range(4))
        lines.append(f"    const double norm_{k} = sqrt({square});")
        lines += [f"    y[{k + i}] /= norm_{k};" for i in range(4)]
    return "\n".join([*lines, f"    return {int(bool(system.rate.quaternions))};", "}", ""])
