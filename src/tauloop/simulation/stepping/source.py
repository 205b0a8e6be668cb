"""C source of integrations of one machine: its equations, the integrator, and what ties them (`steps.c`)."""

from __future__ import annotations

import numpy as np

from tauloop.codegen.c_helpers import c_file
from tauloop.codegen.evaluator import c_function
from tauloop.codegen.signature import HEALTH
from tauloop.codegen.source import CFunction, c_source, number
from tauloop.integrate.routine import unit_quaternions_text
from tauloop.integrate.source import integrator_source
from tauloop.integrate.tableau import Tableau
from tauloop.programs.state import CONVERGED
from tauloop.simulation.system import PROJECTED, PROJECTION_STEPS, System


def stepping_source(system: System, method: Tableau | None) -> str:
    """C text of `steps.c` for a system; the method as of `integrator_source`."""
    empty = {name: np.empty((0, array.shape[1])) for name, array in _inputs(system).items()}
    rate = c_function(system.rate.program, empty, ("rate", "all_q", "all_v"))
    functions = [rate]
    if system.projection is not None:
        functions.append(c_function(system.projection, empty, ("projected_q", "projected_v", "gap")))
    parts = [
        c_source(functions, "made by Tauloop, do not edit", with_batch=False, includes=("<string.h>",)),
        _sizes(system),
        integrator_source(method),
        c_file("tauloop.simulation.stepping", "steps.c"),
        _rate(system, rate),
        unit_quaternions_text("machine_back", system.rate.quaternions)
        if system.projection is None
        else _projected(system, functions[-1]),
    ]
    return "\n".join(parts)


def _inputs(system: System) -> dict[str, np.ndarray]:
    shape = system.model.topology
    inputs = system.inputs(np.zeros((1, system.size)), np.zeros((1, system.acting)), np.zeros((1, shape.n_q)))
    return {"v": np.zeros((1, shape.n_v))} | {"q": np.zeros((1, shape.n_q))} | inputs


def _sizes(system: System) -> str:
    shape = system.model.topology
    sizes = {"TL_N": system.size, "TL_Q": shape.n_q, "TL_V": shape.n_v, "TL_ACTING": max(system.acting, 1)}
    return "\n".join([*(f"#define {name} {value}" for name, value in sizes.items()), ""])


def _rate(system: System, rate: CFunction) -> str:
    """The right-hand side with its law and its health; a good evaluation moves Newton's start along."""
    places, at = {"start": "run->guess", "theta": "acting", "force": "acting"}, 0
    places["wrench"] = f"acting + {len(system.model.mechanism.actuators)}"
    for name, size in system.rate.state:
        places[name] = f"y + {at}"
        at += size
    arguments = ", ".join([*(places[port.name] for port in rate.inputs), "rate", "q", "v", "health"])
    move = "memcpy(run->guess, q, sizeof(double) * TL_Q);" if system.reads_start else "(void)run->guess;"
    return f"""\
static int machine_rate(tl_run *run, double time, const double *y, double *rate, double *guards)
{{
    const acts *what = run->data;
    double *acting = what->acting, *q = run->known, *v = q + TL_Q, health[{HEALTH}];
    (void)guards;
    if (what->law) what->law(time, y, acting);
    {rate.name}({arguments});
    if (!(health[0] >= 0.0 && health[1] > {number(system.route.smallest_pivot)} && health[2] < {CONVERGED!r})) return 0;
    memcpy(v + TL_V, acting, sizeof(double) * TL_ACTING);
    {move}
    return 1;
}}
"""


def _projected(system: System, projection: CFunction) -> str:
    """The way back onto the loops."""
    lines = ["static int machine_back(tl_run *run, double time, double *y)", "{", "    (void)run; (void)time; (void)y;"]
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
    return "\n".join([*lines, "}", ""])
