"""C source of the loop over steps of an explicit integrator, around the generated right-hand side of one machine.

The caller owns all memory, so that an integration can be continued: `memory` holds the proposed step, whether the rate
at the state is known, the next sample's number, evaluations and rejections, and then that rate; `guess` holds the
coordinates from which Newton's method starts.
"""

from __future__ import annotations

import numpy as np

from tauloop.codegen.evaluator import c_function
from tauloop.codegen.signature import HEALTH
from tauloop.codegen.source import CFunction, c_source, number
from tauloop.programs.state import CONVERGED
from tauloop.simulate.system import PROJECTED, PROJECTION_STEPS, System
from tauloop.simulate.tableaus import Tableau

#: Numbers at the front of `memory`: proposed step, known rate, next sample, evaluations, rejections.
MEMORY = 5
#: Steps of one start that are at hand at once in `tl_many`.
PART = 64
#: Codes that `advance` returns.
DONE, FULL, UNHEALTHY, TOO_SMALL, LOOPS_LOST = range(5)
#: No step shorter than this is tried, s: below it a second's time stamps have lost most of their digits.
SMALLEST_STEP = 1e-13
#: A step as short as this, s, that still leads into a singular pose is the last one. Where a motion creeps up to such a
#: pose a shorter one would not move it by a unit in the last place, and the pose would never be reached.
SMALLEST_RETREAT = 1e-10
#: A step is shortened to a share of what the error estimate allows, and changes by these factors at most.
SAFETY, LEAST_FACTOR, GREATEST_FACTOR = 0.9, 0.2, 10.0
#: After a stage that could not be computed the step is shortened by this.
RETREAT = 0.25
#: A step that ends within this share of its length before the end is stretched to it.
STRETCH = 0.01
#: An adaptive step is given up where the way back onto the loops is this many times as long as its error may be. On
#: regular motions that way is as short as the error itself (measured: below 0.4); near a pose where the loops lose rank
#: it is 1e4 and more, and each step that were accepted there would throw energy away.
FARTHEST_RETURN = 10.0


def stepping_source(system: System, tableau: Tableau) -> tuple[str, CFunction]:
    """C text of right-hand side, projection and `advance`, and the function of the right-hand side."""
    empty = {name: np.empty((0, array.shape[1])) for name, array in _inputs(system).items()}
    rate = c_function(system.rate.program, empty, ("rate", "all_q", "all_v"))
    functions = [rate]
    if system.projection is not None:
        functions.append(c_function(system.projection, empty, ("projected_q", "projected_v", "gap")))
    parts = [
        c_source(functions, "made by Tauloop, do not edit", with_batch=False, includes=("<string.h>",)),
        _tables(system, tableau),
        _rate(system, rate),
        _return_to_loops(system, functions[-1]),
        _ADVANCE,
        _EVALUATE,
        _many(tableau),
    ]
    return "\n".join(parts), rate


def _inputs(system: System) -> dict[str, np.ndarray]:
    shape = system.model.topology
    found = system.inputs(np.zeros((1, system.size)), np.zeros((1, system.acting)), np.zeros((1, shape.n_q)))
    return {"v": np.zeros((1, shape.n_v))} | {"q": np.zeros((1, shape.n_q))} | found


def _tables(system: System, tableau: Tableau) -> str:
    shape = system.model.topology
    sizes = {
        "TL_N": system.size,
        "TL_Q": shape.n_q,
        "TL_V": shape.n_v,
        "TL_ACTING": max(system.acting, 1),
        "TL_STAGES": len(tableau.c),
        "TL_ADAPTIVE": int(tableau.is_adaptive),
    }
    lines = [f"#define {name} {value}" for name, value in sizes.items()]
    lines.append(f"#define TL_SMALLEST_PIVOT {number(system.smallest_pivot)}")
    lines += [
        f"#define TL_MEMORY {MEMORY}",
        f"#define TL_HEALTH {HEALTH}",
        "typedef void (*tl_law)(double time, const double *state, double *acting);",
    ]
    for name, table in (("A", tableau.A.ravel()), ("C", tableau.c), ("E", tableau.error)):
        body = ", ".join(number(value) for value in table)
        lines.append(f"static const double tl_{name}[{len(table)}] = {{{body}}};")
    return "\n".join([*lines, ""])


def _rate(system: System, rate: CFunction) -> str:
    """The right-hand side with its law and its health; a good evaluation moves Newton's start along."""
    places, at = {"start": "guess", "theta": "acting", "force": "acting"}, 0
    places["wrench"] = f"acting + {len(system.model.mechanism.actuators)}"
    for name, size in system.rate.state:
        places[name] = f"y + {at}"
        at += size
    arguments = ", ".join([*(places[port.name] for port in rate.inputs), "rate", "q", "v", "health"])
    move = "    if (good) memcpy(guess, q, sizeof(double) * TL_Q);" if system.reads_start else "    (void)guess;"
    return f"""\
static int tl_rate(double time, const double *y, double *acting, tl_law law, double *guess,
    double *rate, double *q, double *v, double *health, double *memory)
{{
    if (law) law(time, y, acting);
    {rate.name}({arguments});
    memory[3] += 1.0;
    int good = health[0] >= 0.0 && health[1] > TL_SMALLEST_PIVOT && health[2] < {CONVERGED!r};
    for (int i = 0; i < TL_N; ++i) good = good && rate[i] - rate[i] == 0.0;
{move}
    return good;
}}
"""


def _return_to_loops(system: System, projection: CFunction) -> str:
    """Unit quaternions or the projection; says whether the state has changed (1), not (0), or is lost (-1)."""
    lines = ["static int tl_return(double *y)", "{"]
    if system.projection is not None:
        n_q, n_v = (size for _, size in system.rate.state)
        places = {"q": "y", "v": f"y + {n_q}"}
        arguments = ", ".join([*(places[port.name] for port in projection.inputs), "q", "v", "&gap", "health"])
        lines += [
            f"    double q[{n_q}], v[{n_v}], gap, health[{HEALTH}];",
            f"    for (int k = 0; k < {PROJECTION_STEPS}; ++k) {{",
            f"        {projection.name}({arguments});",
            f"        memcpy(y, q, sizeof q); memcpy(y + {n_q}, v, sizeof v);",
            f"        if (gap < {PROJECTED!r}) return 1;",
            "    }",
            "    return -1;",
        ]
    else:
        for i in system.rate.quaternions:
            terms = " + ".join(f"y[{i + k}] * y[{i + k}]" for k in range(4))
            lines += ["    {", f"        const double length = sqrt({terms});"]
            lines += [f"        for (int k = {i}; k < {i + 4}; ++k) y[k] /= length;", "    }"]
        lines += ["    (void)y;", f"    return {int(bool(system.rate.quaternions))};"]
    return "\n".join([*lines, "}", ""])


_ADVANCE = f"""\
static double tl_norm(const double *error, const double *from, const double *to, double rtol, double atol)
{{
    double total = 0.0;
    for (int i = 0; i < TL_N; ++i) {{
        const double size = fabs(from[i]) > fabs(to[i]) ? fabs(from[i]) : fabs(to[i]);
        const double share = error[i] / (atol + rtol * size);
        total += share * share;
    }}
    return sqrt(total / TL_N);
}}

int tl_advance(double *time, double *y, double end, double *memory, double *guess, double *acting, tl_law law,
    double period, double rtol, double atol, double max_step, size_t capacity, size_t *count,
    double *times, double *states, double *known, double *acted, double *stages, double *health)
{{
    double K[TL_STAGES][TL_N], next[TL_N], q[TL_Q], v[TL_V + 1], q0[TL_Q], v0[TL_V + 1];
    const tl_law continuous = period > 0.0 ? 0 : law;
    memcpy(K[0], memory + TL_MEMORY, sizeof K[0]);
    while (*time < end) {{
        if (*count == capacity) return {FULL};
        double limit = end;
        if (law && period > 0.0) {{
            if (*time >= memory[2] * period) {{
                law(*time, y, acting);
                memory[2] += 1.0;
                memory[1] = 0.0;
            }}
            if (memory[2] * period < limit) limit = memory[2] * period;
        }}
        if (memory[1] == 0.0) {{
            if (!tl_rate(*time, y, acting, continuous, guess, K[0], q, v, health, memory)) return {UNHEALTHY};
            memory[1] = 1.0;
        }} else {{
            memcpy(q, memory + TL_MEMORY + TL_N, sizeof(double) * TL_Q);
            memcpy(v, memory + TL_MEMORY + TL_N + TL_Q, sizeof(double) * TL_V);
        }}
        memcpy(q0, q, sizeof q);
        memcpy(v0, v, sizeof v);
        double acting0[TL_ACTING];
        memcpy(acting0, acting, sizeof acting0);
        int is_after_rejection = 0;
        for (;;) {{
            double h = memory[0] < max_step ? memory[0] : max_step;
            const int is_last = *time + h * {1.0 + STRETCH!r} >= limit;
            if (is_last) h = limit - *time;
            int good = 1;
            for (int s = 1; s < TL_STAGES && good; ++s) {{
                for (int i = 0; i < TL_N; ++i) {{
                    double sum = 0.0;
                    for (int j = 0; j < s; ++j) sum += tl_A[s * TL_STAGES + j] * K[j][i];
                    next[i] = y[i] + h * sum;
                }}
                good = tl_rate(*time + tl_C[s] * h, next, acting, continuous, guess, K[s], q, v, health, memory);
            }}
            double factor = {RETREAT!r};
            if (good && TL_ADAPTIVE) {{
                double error[TL_N];
                for (int i = 0; i < TL_N; ++i) {{
                    error[i] = 0.0;
                    for (int s = 0; s < TL_STAGES; ++s) error[i] += tl_E[s] * K[s][i];
                    error[i] *= h;
                }}
                const double norm = tl_norm(error, y, next, rtol, atol);
                good = norm < 1.0;
                factor = norm > 0.0 ? {SAFETY!r} * pow(norm, -0.2) : {GREATEST_FACTOR!r};
                factor = factor > {LEAST_FACTOR!r} ? factor : {LEAST_FACTOR!r};
                factor = factor < {GREATEST_FACTOR!r} ? factor : {GREATEST_FACTOR!r};
                if (is_after_rejection && factor > 1.0) factor = 1.0;
                if (!good) health[0] = health[1] = 1.0;
            }}
            int changed = 0;
            double back[TL_N];
            if (good) {{
                memcpy(back, next, sizeof back);
                changed = tl_return(back);
                if (TL_ADAPTIVE && changed) {{
                    double way[TL_N];
                    for (int i = 0; i < TL_N; ++i) way[i] = back[i] - next[i];
                    good = changed > 0 && tl_norm(way, y, next, rtol, atol) < {FARTHEST_RETURN!r};
                    if (!good) {{
                        factor = {RETREAT!r};
                        health[0] = -1.0;
                    }}
                }}
            }}
            if (good) {{
                memcpy(times + *count, time, sizeof(double));
                memcpy(states + *count * TL_N, y, sizeof(double) * TL_N);
                memcpy(known + *count * (TL_Q + TL_V), q0, sizeof(double) * TL_Q);
                memcpy(known + *count * (TL_Q + TL_V) + TL_Q, v0, sizeof(double) * TL_V);
                memcpy(acted + *count * TL_ACTING, acting0, sizeof acting0);
                memcpy(stages + *count * TL_STAGES * TL_N, K, sizeof K);
                *count += 1;
                *time = is_last ? limit : *time + h;
                memcpy(y, back, sizeof back);
                if (TL_ADAPTIVE && (!is_last || factor < 1.0)) memory[0] = h * factor;
                if (changed < 0) return {LOOPS_LOST};
                memory[1] = changed ? 0.0 : 1.0;
                memcpy(K[0], K[TL_STAGES - 1], sizeof K[0]);
                memcpy(memory + TL_MEMORY, K[0], sizeof K[0]);
                memcpy(memory + TL_MEMORY + TL_N, q, sizeof(double) * TL_Q);
                memcpy(memory + TL_MEMORY + TL_N + TL_Q, v, sizeof(double) * TL_V);
                break;
            }}
            memory[4] += 1.0;
            if (!TL_ADAPTIVE) return {UNHEALTHY};
            const int is_healthy = health[0] >= 0.0 && health[1] > TL_SMALLEST_PIVOT && health[2] < {CONVERGED!r};
            const double smallest = is_healthy ? {SMALLEST_STEP!r} : {SMALLEST_RETREAT!r};
            if (h < smallest) return changed < 0 ? {LOOPS_LOST} : is_healthy ? {TOO_SMALL} : {UNHEALTHY};
            is_after_rejection = 1;
            memcpy(guess, q0, sizeof(double) * TL_Q);
            memory[0] = h * factor;
        }}
    }}
    return {DONE};
}}
"""

_EVALUATE = """\
int tl_evaluate(const double *y, double *acting, double *guess, double *rate, double *q, double *v)
{
    double health[TL_HEALTH], memory[TL_MEMORY] = {0.0};
    return tl_rate(0.0, y, acting, 0, guess, rate, q, v, health, memory);
}
"""


def _many(tableau: Tableau) -> str:
    """C text of `tl_many`: many starts one after the other (or side by side), and their states at given times."""
    dense = ", ".join(number(value) for value in tableau.dense.ravel())
    return f"""\
static const double tl_dense[] = {{{dense}}};

static void tl_state(const double *y, double h, const double *K, double x, double *state)
{{
    for (int i = 0; i < TL_N; ++i) {{
        double sum = 0.0;
        for (int s = 0; s < TL_STAGES; ++s) {{
            double power = x, weight = 0.0;
            for (int k = 0; k < {tableau.dense.shape[1]}; ++k, power *= x)
                weight += tl_dense[s * {tableau.dense.shape[1]} + k] * power;
            sum += weight * K[s * TL_N + i];
        }}
        state[i] = y[i] + h * sum;
    }}
}}

void tl_many(size_t n, size_t n_times, const double *wanted, double duration, double first_step, double rtol,
    double atol, double max_step, size_t max_steps, const double *starts, const double *near, const double *held,
    double *found, double *known_q, double *reached, long *code, long *taken)
{{
#ifdef _OPENMP
#pragma omp parallel for schedule(dynamic)
#endif
    for (size_t i = 0; i < n; ++i) {{
        double times[{PART} + 1], states[{PART} * TL_N], known[{PART} * (TL_Q + TL_V)], acted[{PART} * TL_ACTING];
        double stages[{PART} * TL_STAGES * TL_N], memory[TL_MEMORY + TL_N + TL_Q + TL_V] = {{first_step}};
        double y[TL_N], guess[TL_Q], acting[TL_ACTING], health[TL_HEALTH], time = 0.0;
        memcpy(y, starts + i * TL_N, sizeof y);
        memcpy(guess, near + i * TL_Q, sizeof guess);
        memcpy(acting, held + i * TL_ACTING, sizeof acting);
        size_t total = 0, next = 0;
        int ended = {FULL};
        while (ended == {FULL} && total < max_steps) {{
            size_t count = 0;
            const size_t room = max_steps - total < {PART} ? max_steps - total : {PART};
            ended = tl_advance(&time, y, duration, memory, guess, acting, 0, 0.0, rtol, atol, max_step, room,
                &count, times, states, known, acted, stages, health);
            times[count] = time;
            total += count;
            for (size_t step = 0; next < n_times && wanted[next] <= time && count; ++next) {{
                while (step + 1 < count && wanted[next] > times[step + 1]) ++step;
                const double h = times[step + 1] - times[step];
                tl_state(states + step * TL_N, h, stages + step * TL_STAGES * TL_N, (wanted[next] - times[step]) / h,
                    found + (i * n_times + next) * TL_N);
                memcpy(known_q + (i * n_times + next) * TL_Q, known + step * (TL_Q + TL_V), sizeof(double) * TL_Q);
            }}
        }}
        reached[i] = time;
        code[i] = ended;
        taken[i] = (long)total;
    }}
}}
"""
