"""C source of a machine with its drive lines and their sampled controls: one library, exact events in every line.

Between samples the state is integrated by Dormand and Prince's pair under constant modes; a step at whose middle or end
a guard is violated is cut at the first violation, as for a drive line of its own (`tauloop.drives.stepping_source`).
"""

from __future__ import annotations

import casadi as ca
import numpy as np
from scipy.integrate import RK45

from tauloop.codegen.evaluator import c_function
from tauloop.codegen.signature import HEALTH
from tauloop.codegen.source import CFunction, c_source, number
from tauloop.drives.event_source import CROWDED, MOST_CROWDED, located_event
from tauloop.drives.machine_system import MACHINE_INPUTS, LineSystem, MachineSystem
from tauloop.programs.state import CONVERGED, SMALLEST_PIVOT

#: What a run comes to: all is well, a pose out of reach or singular, steps too small, too many steps, events pile up.
OK, UNHEALTHY, TOO_SMALL, TOO_LONG, CHATTERING = range(5)
#: Figures of health that a run reports: least discriminant, least pivot, largest residual.
WORST = 3
#: Shortest step, s.
SMALLEST_STEP = 1e-13


def machine_source(system: MachineSystem) -> str:
    """C text of `drive_machine`."""
    plant = system.plant
    kinematics = plant.platform.source_function("kinematics_1", ("q", "v"))
    entry, shape = plant.platform.entry, plant.topology
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
        _definitions(system),
        _rates(system, rate, kinematics),
        _of_lines(system, "tl_reset", "reset", "double *y, const double *s, const double *z"),
        _of_lines(system, "tl_hold", "hold", "const double *y, const double *s, double *z"),
        _TAIL.replace("NORMALISED", _normalised(system)),
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


def _definitions(system: MachineSystem) -> str:
    entry = system.plant.platform.entry
    sizes = {
        "NY": system.size,
        "NP": entry.position.size,
        "NV": entry.velocity.size,
        "NQ": system.plant.topology.n_q,
        "NF": system.plant.topology.n_v,
        "NU": len(system.lines),
        "NI": len(MACHINE_INPUTS),
        "NS": sum(len(line.mode_names) for line in system.lines),
        "NZ": sum(line.held_size for line in system.lines),
    }
    lines = [f"#define {name} {value}" for name, value in sizes.items()]
    lines += [f"#define {name}A {max(sizes[name], 1)}" for name in ("NS", "NZ")]
    A = np.zeros((7, 7))
    A[:6, :5], A[6, :6] = RK45.A, RK45.B
    for name, table in (("A", A), ("E", RK45.E), ("P", RK45.P)):
        body = ", ".join(number(float(value)) for value in np.ravel(table))
        lines.append(f"static const double rk_{name}[{np.size(table)}] = {{{body}}};")
    starts = [number(value) for line in system.lines for value in line.mode_starts]
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
        "static void tl_note(const double *health, double *worst)",
        "{",
        "    worst[0] = health[0] >= worst[0] ? worst[0] : health[0];",
        "    worst[1] = health[1] >= worst[1] ? worst[1] : health[1];",
        "    worst[2] = health[2] <= worst[2] ? worst[2] : health[2];",
        "}",
        "",
        "static void tl_at(const double *y, const double *start, const double *p, double at[NU][2], double *worst)",
        "{",
        f"    double q[NQ], v[NF], health[{HEALTH}];",
        "    (void)start; (void)p;",
        _call(kinematics, state | {"q": "q", "v": "v"}),
        "    tl_note(health, worst);",
        *measured,
        "}",
        "",
        "static void tl_rates(const double *y, const double *s, const double *z, const double *in, const double *p,",
        "    double *start, double *dy, double *g, double *worst)",
        "{",
        f"    double at[NU][2], u[NU], q[NQ], health[{HEALTH}], w[8];",
        "    int iw[8];",
        "    tl_at(y, start, p, at, worst);",
    ]
    for i, (y, s, z) in enumerate(_offsets(system)):
        arguments = f"{{y + {y}, at[{i}], s + {s}, z + {z}, in + NI * {i}, p}}"
        name = system.lines[i].rate.name()
        slope = system.lines[i].slope.name()
        lines += [
            "    {",
            f"        const double *arg[6] = {arguments};",
            f"        double *with[3] = {{dy + {y}, g ? g + {s} : 0, u + {i}}}, *without[2] = {{dy + {y}, u + {i}}};",
            f"        if (g) {name}(arg, with, iw, w, 0);",
            f"        else {slope}(arg, without, iw, w, 0);",
            "    }",
        ]
    lines += [
        _call(rate, state | {"force": "u", "rate": "dy", "all_q": "q"}),
        "    tl_note(health, worst);",
        f"    if (health[0] >= 0.0 && health[1] > {number(SMALLEST_PIVOT)} && health[2] < {number(CONVERGED)})",
        "        memcpy(start, q, sizeof q);",
        "}",
        "",
    ]
    return "\n".join(lines)


def _of_lines(system: MachineSystem, name: str, function: str, arguments: str) -> str:
    """The same function of all lines, one after the other, in place."""
    lines = [
        f"static void {name}({arguments}, const double *in, const double *p,",
        "    const double *start)",
        "{",
        "    double at[NU][2], worst[3] = {1.0, 1e300, 0.0}, next[NY + NZA], w[8];",
        "    int iw[8];",
        "    tl_at(y, start, p, at, worst);",
    ]
    for i, (y, s, z) in enumerate(_offsets(system)):
        line = system.lines[i]
        place, size = (f"y + {y}", len(line.start)) if function == "reset" else (f"z + {z}", line.held_size)
        lines += [
            "    {",
            f"        const double *arg[6] = {{y + {y}, at[{i}], s + {s}, z + {z}, in + NI * {i}, p}};",
            "        double *res[1] = {next};",
            f"        {getattr(line, function).name()}(arg, res, iw, w, 0);",
            f"        memcpy({place}, next, sizeof(double) * {size});",
            "    }",
        ]
    return "\n".join([*lines, "}", ""])


def _normalised(system: MachineSystem) -> str:
    """Whole quaternions among the machine's positions, brought back to unit length."""
    lines = []
    for k in system.rate.quaternions:
        square = " + ".join(f"y[{k + i}] * y[{k + i}]" for i in range(4))
        lines.append(f"    const double norm_{k} = sqrt({square});")
        lines += [f"    y[{k + i}] /= norm_{k};" for i in range(4)]
    return "\n".join(lines) or "    (void)y;"


_TAIL = f"""\
static void normalise(double *y)
{{
NORMALISED
}}

static double violation(const double *g, const double *s)
{{
    double most = -HUGE_VAL;
    for (int i = 0; i < NS; ++i) {{
        const double over = s[i] != 0.0 ? -g[i] : g[i];
        if (over > most) most = over;
    }}
    return most;
}}

static double along(double y0, const double *Q, double x)
{{
    return y0 + x * (Q[0] + x * (Q[1] + x * (Q[2] + x * Q[3])));
}}

static void agree(double *y, double *s, const double *z, const double *in, const double *p, double *start, double *dy,
    double *g, double *worst)
{{
    for (int k = 0; k < 40; ++k) {{
        int flips = 0;
        tl_rates(y, s, z, in, p, start, dy, g, worst);
        for (int i = 0; i < NS; ++i) if (s[i] != 0.0 ? g[i] < 0.0 : g[i] > 0.0) {{
            s[i] = 1.0 - s[i];
            ++flips;
        }}
        if (!flips) return;
        tl_reset(y, s, z, in, p, start);
    }}
    tl_rates(y, s, z, in, p, start, dy, g, worst);
}}

/* From sample to sample: reference (n, NU, 4) holds position, position before its step, speed and torque to feed
   forward. Returns the number of samples that were reached; report: outcome, time, steps, events. */
size_t drive_machine(size_t n, double period, double rtol, double atol, double max_steps, const double *reference,
    const double *p, double *start, double *y, double *z, double *ys, double *ss, double *zs, double *worst,
    double *report)
{{
    double next[NY], K[7][NY], Q[NY][4], s[NSA], g[NSA], g_end[NSA], gx[NSA], dx[NY], in[NU * NI];
    double h = 1e-2 * period, steps = 0.0, events = 0.0, last = 1e-4;
    int outcome = {OK}, crowded = 0;
    size_t k = 0;
    for (int i = 0; i < NSA; ++i) s[i] = first_modes[i];
    for (int i = 0; i < NU * NI; ++i) in[i] = 0.0;
    for (; k < n; ++k) {{
        for (int i = 0; i < NU; ++i) {{
            const double *r = reference + (k * NU + i) * 4;
            in[i * NI] = r[0], in[i * NI + 1] = r[1], in[i * NI + 2] = 0.0;
            in[i * NI + 3] = atol, in[i * NI + 4] = r[2], in[i * NI + 5] = r[3];
        }}
        tl_hold(y, s, z, in, p, start);
        agree(y, s, z, in, p, start, K[0], g, worst);
        memcpy(ys + k * NY, y, sizeof(double) * NY);
        memcpy(ss + k * NS, s, sizeof(double) * NS);
        memcpy(zs + k * NZ, z, sizeof(double) * NZ);
        double t = 0.0;
        if (k + 1 == n) {{
            ++k;
            break;
        }}
        while (t < period && outcome == {OK}) {{
            if (++steps > max_steps) {{
                outcome = {TOO_LONG};
                break;
            }}
            const int is_last = t + 1.01 * h >= period;
            const double taken = is_last ? period - t : h;
            double health[3] = {{1.0, 1e300, 0.0}};
            for (int j = 1; j < 7; ++j) {{
                double sum[NY] = {{0}};
                for (int l = 0; l < j; ++l) {{
                    const double a = rk_A[j * 7 + l];
                    for (int i = 0; i < NY; ++i) sum[i] += a * K[l][i];
                }}
                for (int i = 0; i < NY; ++i) next[i] = y[i] + taken * sum[i];
                tl_rates(next, s, z, in, p, start, K[j], j < 6 ? 0 : g_end, health);
            }}
            double total = 0.0;
            int finite = 1;
            for (int i = 0; i < NY; ++i) {{
                double error = 0.0;
                for (int j = 0; j < 7; ++j) error += rk_E[j] * K[j][i];
                const double size = fabs(y[i]) > fabs(next[i]) ? fabs(y[i]) : fabs(next[i]);
                error *= taken / (atol + rtol * size);
                total += error * error;
                finite = finite && next[i] - next[i] == 0.0;
            }}
            const int healthy = health[0] >= 0.0 && health[1] > {number(SMALLEST_PIVOT)}
                && health[2] < {number(CONVERGED)};
            const double norm = sqrt(total / NY);
            if (!(norm <= 1.0) || !finite || !healthy) {{
                const double shorter = finite && healthy && norm - norm == 0.0 ? 0.9 * pow(norm, -0.2) : 0.1;
                h = taken * (shorter > 0.1 ? shorter : 0.1);
                if (h < {SMALLEST_STEP!r}) outcome = healthy ? {TOO_SMALL} : {UNHEALTHY};
                continue;
            }}
            {located_event("tl_rates(next, s, z, in, p, start, dx, gx, health);", 12)}
            for (int i = 0; i < NY; ++i) y[i] = along(y[i], Q[i], x);
            normalise(y);
            tl_note(health, worst);
            t = !is_event && is_last ? period : t + x * taken;
            if (is_event) {{
                ++events;
                crowded = x * taken < {CROWDED!r} ? crowded + 1 : 0;
                if (crowded > {MOST_CROWDED}) outcome = {CHATTERING};
                h = taken;
                agree(y, s, z, in, p, start, K[0], g, worst);
            }} else {{
                double growth = norm > 0.0 ? 0.9 * pow(norm, -0.17) * pow(last, 0.04) : 5.0;
                growth = growth > 5.0 ? 5.0 : growth < 0.2 ? 0.2 : growth;
                last = norm > 1e-4 ? norm : 1e-4;
                if (!is_last || growth < 1.0) h = taken * growth;
                memcpy(K[0], K[6], sizeof K[0]);
                memcpy(g, g_end, sizeof g);
            }}
        }}
        if (outcome != {OK}) {{
            report[1] = (double)k * period + t;
            ++k;
            break;
        }}
    }}
    if (outcome == {OK}) report[1] = (double)(k - 1) * period;
    report[0] = outcome, report[2] = steps, report[3] = events;
    return k;
}}
"""
