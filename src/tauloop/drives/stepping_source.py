"""C source of the hybrid integrator of one drive line: Dormand and Prince's pair, exact events, criteria on the way.

Modes are constant within a step. A step at whose middle or end a guard is violated is cut at the first violation, found
on the dense output to the last digits of time; there modes flip until all guards hold, and the state is reset as they
say.
"""

from __future__ import annotations

import casadi as ca
import numpy as np
from scipy.integrate import RK45

from tauloop.codegen.source import number
from tauloop.drives.event_source import CROWDED, MOST_CROWDED, located_event
from tauloop.drives.system import INPUTS, System

#: What a run comes to: all is well, the state grows without bound, the steps ran out, events pile up.
OK, DIVERGED, TOO_LONG, CHATTERING = range(4)
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
)
#: The output has diverged when its error is this many steps of the reference, or a state beyond the second figure.
FAR, HUGE = 1e3, 1e12
#: Share of the run after which the swing is measured.
LATE = 0.75


def stepping_source(system: System) -> str:
    """C text of `drive_batch` for a drive line."""
    generator = ca.CodeGenerator("drive.c", {"with_header": False, "casadi_int": "int", "include_math": True})
    for function in (system.rate, _without_guards(system.rate), system.reset, system.hold):
        generator.add(function)
    # functions of one file only: exported ones would not be put in line, for others could take their place
    return "\n".join(["#define CASADI_SYMBOL_EXPORT static", generator.dump(), _definitions(system), _RUN])


def _without_guards(rate: ca.Function) -> ca.Function:
    """The rates alone, for stages inside a step."""
    arguments = rate.sx_in()
    return ca.Function("drive_slope", arguments, [rate(*arguments)[0]])


def _definitions(system: System) -> str:
    sizes = {
        "NY": len(system.state_names),
        "NS": len(system.mode_names),
        "NZ": system.held_size,
        "NI": len(INPUTS),
        "NP": len(system.line.parameters),
        "NQ": (len([name for name in system.state_names if name.endswith(".velocity")])),
        "OUT": system.output,
        "REPORT": len(REPORT),
    }
    lines = ["#include <stddef.h>", "#include <string.h>"]
    # arrays of no length are not C; one idle place does no harm
    lines += [f"#define {name} {value}" for name, value in sizes.items()]
    lines += [f"#define {name}A {max(sizes[name], 1)}" for name in ("NS", "NZ", "NP")]
    A = np.zeros((7, 7))
    A[:6, :5], A[6, :6] = RK45.A, RK45.B
    for name, table in (("A", A), ("E", RK45.E), ("P", RK45.P)):
        body = ", ".join(number(float(value)) for value in np.ravel(table))
        lines.append(f"static const double rk_{name}[{np.size(table)}] = {{{body}}};")
    starts = ", ".join(number(value) for value in system.mode_starts) or "0.0"
    lines.append(f"static const double first_modes[NSA] = {{{starts}}};")
    return "\n".join(lines)


_RUN = f"""\
static void rate(const double *y, const double *s, const double *z, const double *in, const double *p,
    double *dy, double *g)
{{
    const double *arg[5] = {{y, s, z, in, p}};
    double *res[2] = {{dy, g}};
    int iw[8];
    double w[8];
    drive_rate(arg, res, iw, w, 0);
}}

static void slope(const double *y, const double *s, const double *z, const double *in, const double *p, double *dy)
{{
    const double *arg[5] = {{y, s, z, in, p}};
    double *res[1] = {{dy}};
    int iw[8];
    double w[8];
    drive_slope(arg, res, iw, w, 0);
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

static void agree(double *y, double *s, const double *z, const double *in, const double *p, double *dy, double *g)
{{
    for (int k = 0; k < 40; ++k) {{
        int flips = 0;
        rate(y, s, z, in, p, dy, g);
        for (int i = 0; i < NS; ++i) if (s[i] != 0.0 ? g[i] < 0.0 : g[i] > 0.0) {{
            s[i] = 1.0 - s[i];
            ++flips;
        }}
        if (!flips) return;
        double next[NY];
        const double *arg[5] = {{y, s, z, in, p}};
        double *res[1] = {{next}};
        int iw[8];
        double w[8];
        drive_reset(arg, res, iw, w, 0);
        memcpy(y, next, sizeof next);
    }}
    rate(y, s, z, in, p, dy, g);
}}

static void hold(const double *y, const double *s, double *z, const double *in, const double *p)
{{
    double next[NZA];
    const double *arg[5] = {{y, s, z, in, p}};
    double *res[1] = {{next}};
    int iw[8];
    double w[8];
    drive_hold(arg, res, iw, w, 0);
    memcpy(z, next, sizeof(double) * NZ);
}}

static double along(double y0, const double *Q, double x)
{{
    return y0 + x * (Q[0] + x * (Q[1] + x * (Q[2] + x * Q[3])));
}}

typedef struct {{
    double factor, from, to, band, duration;
    double rise_start, rise_end, overshoot, overshoot_at, settled_at, lowest, highest;
    int inside;
}} monitor;

/* Place in [a, b] where the judged position passes a level: it is on one side at a and on the other at b. */
static double passing(const monitor *m, double y0, const double *Q, double a, double b, double level)
{{
    const int rises = m->factor * along(y0, Q, b) > level;
    for (int k = 0; k < 50; ++k) {{
        const double x = 0.5 * (a + b);
        if ((m->factor * along(y0, Q, x) > level) == rises) b = x;
        else a = x;
    }}
    return b;
}}

static void watch_piece(monitor *m, double t, double h, double y0, const double *Q, double a, double b)
{{
    const double step = m->to - m->from, pa = m->factor * along(y0, Q, a), pb = m->factor * along(y0, Q, b);
    const double ten = m->from + 0.1 * step, ninety = m->from + 0.9 * step, way = step < 0.0 ? -1.0 : 1.0;
    if (m->rise_start < 0.0 && way * (pb - ten) >= 0.0 && step != 0.0)
        m->rise_start = t + h * passing(m, y0, Q, a, b, ten);
    if (m->rise_end < 0.0 && way * (pb - ninety) >= 0.0 && step != 0.0)
        m->rise_end = t + h * passing(m, y0, Q, a, b, ninety);
    if (way * (pb - m->to) > m->overshoot) {{
        m->overshoot = way * (pb - m->to);
        m->overshoot_at = t + h * b;
    }}
    const int was = fabs(pa - m->to) <= m->band, is = fabs(pb - m->to) <= m->band;
    if (is && !was) m->settled_at = t + h * passing(m, y0, Q, a, b, pa > m->to ? m->to + m->band : m->to - m->band);
    m->inside = is;
    if (t + h * b >= {LATE} * m->duration) {{
        const double late = ({LATE} * m->duration - t) / h, pl = late > a ? m->factor * along(y0, Q, late) : pa;
        m->lowest = fmin(m->lowest, fmin(pl, pb));
        m->highest = fmax(m->highest, fmax(pl, pb));
    }}
}}

/* The judged position within a step, in two pieces where it turns. */
static void watch(monitor *m, double t, double h, const double *y, double Q[NY][4], double x)
{{
    const double v0 = y[NQ + OUT], v1 = along(v0, Q[NQ + OUT], x);
    double turn = x;
    if (v0 * v1 < 0.0) {{
        double a = 0.0, b = x;
        for (int k = 0; k < 50; ++k) {{
            turn = 0.5 * (a + b);
            if (along(v0, Q[NQ + OUT], turn) * v0 > 0.0) a = turn;
            else b = turn;
        }}
        watch_piece(m, t, h, y[OUT], Q[OUT], 0.0, turn);
        watch_piece(m, t, h, y[OUT], Q[OUT], turn, x);
    }} else watch_piece(m, t, h, y[OUT], Q[OUT], 0.0, x);
}}

static void run(const double *p, double factor, double band, double period, double from, double to, double load,
    double load_time, double duration, double rtol, double atol, double max_steps, double *report,
    size_t samples, const double *times, double *ys, double *ss, double *zs)
{{
    double y[NY], next[NY], K[7][NY], Q[NY][4], s[NSA], z[NZA], g[NSA], g_end[NSA], gx[NSA], dx[NY];
    double in[NI] = {{to, from, 0.0, atol}};
    double t = 0.0, h = 1e-6, steps = 0.0, events = 0.0, last = 1e-4, tick = 1.0;
    size_t sample = 0;
    int outcome = {OK}, crowded = 0;
    memset(y, 0, sizeof y);
    memset(z, 0, sizeof z);
    for (int i = 0; i < NSA; ++i) s[i] = first_modes[i];
    monitor m = {{factor, from, to, band, duration, -1.0, -1.0, 0.0, 0.0, 0.0, HUGE_VAL, -HUGE_VAL, 0}};
    m.inside = fabs(from - to) <= band;
    if (load_time <= 0.0) in[2] = load;
    if (period > 0.0) hold(y, s, z, in, p);
    agree(y, s, z, in, p, K[0], g);
    while (t < duration) {{
        double limit = duration;
        if (load_time > t && load_time < limit) limit = load_time;
        if (period > 0.0 && tick * period < limit) limit = tick * period;
        if (++steps > max_steps) {{
            outcome = {TOO_LONG};
            break;
        }}
        const int is_last = t + 1.01 * h >= limit;
        const double taken = is_last ? limit - t : h;
        for (int k = 1; k < 7; ++k) {{
            double sum[NY] = {{0}};
            for (int j = 0; j < k; ++j) {{
                const double a = rk_A[k * 7 + j];
                for (int i = 0; i < NY; ++i) sum[i] += a * K[j][i];
            }}
            for (int i = 0; i < NY; ++i) next[i] = y[i] + taken * sum[i];
            if (k < 6) slope(next, s, z, in, p, K[k]);
            else rate(next, s, z, in, p, K[k], g_end);
        }}
        double total = 0.0;
        int finite = 1;
        for (int i = 0; i < NY; ++i) {{
            double error = 0.0;
            for (int k = 0; k < 7; ++k) error += rk_E[k] * K[k][i];
            const double size = fabs(y[i]) > fabs(next[i]) ? fabs(y[i]) : fabs(next[i]);
            error *= taken / (atol + rtol * size);
            total += error * error;
            finite = finite && next[i] - next[i] == 0.0 && fabs(next[i]) < {HUGE!r};
        }}
        const double norm = sqrt(total / NY);
        if (!(norm <= 1.0) || !finite) {{
            const double shorter = finite && norm - norm == 0.0 ? 0.9 * pow(norm, -0.2) : 0.1;
            h = taken * (shorter > 0.1 ? shorter : 0.1);
            if (h < 1e-13) {{
                outcome = {DIVERGED};
                break;
            }}
            continue;
        }}
        {located_event("rate(next, s, z, in, p, dx, gx);", 8)}
        watch(&m, t, taken, y, Q, x);
        const double end = !is_event && is_last ? limit : t + x * taken;
        while (sample < samples && times[sample] <= end) {{
            const double at = taken > 0.0 ? (times[sample] - t) / taken : 0.0;
            for (int i = 0; i < NY; ++i) ys[sample * NY + i] = along(y[i], Q[i], at);
            memcpy(ss + sample * NS, s, sizeof(double) * NS);
            memcpy(zs + sample * NZ, z, sizeof(double) * NZ);
            ++sample;
        }}
        for (int i = 0; i < NY; ++i) y[i] = along(y[i], Q[i], x);
        t = end;
        const double error = fabs(factor * y[OUT] - to), step = fabs(to - from);
        if (error > {FAR!r} * (step > 0.0 ? step : 1.0)) {{
            outcome = {DIVERGED};
            break;
        }}
        int is_new = is_event;
        if (is_event) {{
            ++events;
            crowded = x * taken < {CROWDED!r} ? crowded + 1 : 0;
            if (crowded > {MOST_CROWDED}) {{
                outcome = {CHATTERING};
                break;
            }}
            h = taken;
        }} else {{
            double growth = norm > 0.0 ? 0.9 * pow(norm, -0.17) * pow(last, 0.04) : 5.0;
            growth = growth > 5.0 ? 5.0 : growth < 0.2 ? 0.2 : growth;
            last = norm > 1e-4 ? norm : 1e-4;
            if (!is_last || growth < 1.0) h = taken * growth;
        }}
        if (t >= load_time && in[2] != load) {{
            in[2] = load;
            is_new = 1;
        }}
        if (period > 0.0 && t >= tick * period) {{
            hold(y, s, z, in, p);
            ++tick;
            is_new = 1;
        }}
        if (is_new) agree(y, s, z, in, p, K[0], g);
        else {{
            memcpy(K[0], K[6], sizeof K[0]);
            memcpy(g, g_end, sizeof g);
        }}
    }}
    const int settled = outcome == {OK} && m.inside;
    const int risen = m.rise_start >= 0.0 && m.rise_end >= 0.0;
    const double report_[REPORT] = {{risen ? m.rise_end - m.rise_start : from == to ? 0.0 : duration, m.overshoot,
        settled ? m.settled_at : duration, y[NY - 1], fabs(factor * y[OUT] - to), m.lowest, m.highest, settled,
        outcome, t, steps, events, m.rise_start, m.overshoot_at}};
    memcpy(report, report_, sizeof report_);
}}

void drive_batch(size_t n, int threads, const double *p, const double *fixed, double rtol, double atol,
    double max_steps, double *report, size_t samples, const double *times, double *ys, double *ss, double *zs)
{{
    (void)threads;
#ifdef _OPENMP
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads) if (threads > 1 && n > 1)
#endif
    for (size_t i = 0; i < n; ++i) {{
        const double *f = fixed + 8 * i;
        run(p + i * NP, f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7], rtol, atol, max_steps, report + i * REPORT,
            samples, times, ys, ss, zs);
    }}
}}
"""
