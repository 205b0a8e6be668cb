"""C text of the sampled control loop: a machine, a controller with its own model, and the integrator in between."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tauloop.codegen.source import CFunction, c_source, number
from tauloop.integrate.source import c_text, integrator_source
from tauloop.integrate.tableau import Tableau
from tauloop.model import Model
from tauloop.programs.catalogue import EMBEDDING, FORWARD_DYNAMICS, INVERSE_DYNAMICS, KINEMATICS
from tauloop.programs.state import CONVERGED, SMALLEST_PIVOT
from tauloop.simulation.controllers.laws import Compensation, Controller

#: Figures of health that the loop reports: least discriminant, least pivot, largest residual.
WORST = 3

_SOLVE = """\
static void solve(double *A, double *b)
{
    for (int c = 0; c < NU; ++c) {
        int best = c;
        for (int r = c + 1; r < NU; ++r) best = fabs(A[r * NU + c]) > fabs(A[best * NU + c]) ? r : best;
        for (int k = 0; k < NU; ++k) {
            const double t = A[c * NU + k];
            A[c * NU + k] = A[best * NU + k];
            A[best * NU + k] = t;
        }
        const double t = b[c];
        b[c] = b[best];
        b[best] = t;
        for (int r = c + 1; r < NU; ++r) {
            const double f = A[r * NU + c] / A[c * NU + c];
            for (int k = c; k < NU; ++k) A[r * NU + k] -= f * A[c * NU + k];
            b[r] -= f * b[c];
        }
    }
    for (int c = NU - 1; c >= 0; --c) {
        for (int k = c + 1; k < NU; ++k) b[c] -= A[c * NU + k] * b[k];
        b[c] /= A[c * NU + c];
    }
}
"""

_NOTE = f"""\
static int healthy(const double *health)
{{
    return health[0] >= 0.0 && health[1] > {number(SMALLEST_PIVOT)} && health[2] < {number(CONVERGED)};
}}

static void note(const double *health, double *worst)
{{
    worst[0] = health[0] >= worst[0] ? worst[0] : health[0];
    worst[1] = health[1] >= worst[1] ? worst[1] : health[1];
    worst[2] = health[2] <= worst[2] ? worst[2] : health[2];
}}

typedef struct {{
    const double *u, *theta;
    double *worst;
}} acts;
"""


def loop_source(plant: Model, model: Model, controller: Controller, method: Tableau | None) -> str:
    """C text of `tl_control` for a machine, the controller's model of it, a controller and an integrator.

    Args:
        plant: the machine that moves.
        model: the machine that the controller believes in, of the same structure.
        controller: the law; its numbers are arguments of the C function.
        method: the integrator between samples.
    """
    functions = {
        "plant_forward": plant.platform.source_function(FORWARD_DYNAMICS, ("acceleration", "q", "v")),
        "plant_kinematics": plant.platform.source_function(KINEMATICS[1], ("q", "v")),
    } | _law_functions(model, controller)
    named = {name: replace(function, name=name) for name, function in functions.items()}
    entry = plant.platform.ports
    reference = plant.topology.n_q if controller.space == "platform" else len(plant.mechanism.actuators)
    sizes = {
        "NP": entry.position.size,
        "NV": entry.velocity.size,
        "NQ": plant.topology.n_q,
        "NF": plant.topology.n_v,
        "NU": len(plant.mechanism.actuators),
        "NR": reference,
    }
    parts = [
        c_source(
            list(named.values()),
            "sampled control loop: made by Tauloop, do not edit",
            with_batch=False,
            includes=("<string.h>",),
        ),
        *(f"#define {name} {size}" for name, size in sizes.items()),
        "#define TL_TOO_LONG 20",
        integrator_source(method),
        _NOTE,
        _rate(plant, named["plant_forward"]),
        _back(plant),
        _measure(plant, named["plant_kinematics"]),
        *([_SOLVE] if "model_embedding" in named else []),
        _law(model, controller, named),
        c_text("tauloop.simulation.controllers", "control.c"),
    ]
    return "\n".join(parts)


def _law_functions(model: Model, controller: Controller) -> dict[str, CFunction]:
    platform = controller.space == "platform"
    functions = {}
    if platform:
        functions["model_pose"] = model.actuators.source_function(KINEMATICS[1], ("q", "v"))
    if controller.compensation is not Compensation.NONE:
        entry = model.platform if platform else model.actuators
        functions["model_inverse"] = entry.source_function(INVERSE_DYNAMICS, ("force", "q"))
    if platform and controller.compensation is not Compensation.ACCELERATION:
        functions["model_embedding"] = model.platform.source_function(EMBEDDING, ("G",))
    return functions


def _call(function: CFunction, inputs: Mapping[str, str], outputs: Mapping[str, str]) -> str:
    arguments = [inputs[port.name] for port in function.inputs] + [outputs[port.name] for port in function.outputs]
    return f"    {function.name}({', '.join([*arguments, 'health'])});"


def _rate(plant: Model, forward: CFunction) -> str:
    """dp/dt and dv/dt of the platform's coordinates."""
    entry, shape = plant.platform.ports, plant.topology
    rates = {iq: f"full[{iv}]" for iv, iq in enumerate(shape.q_of_v) if iq >= 0}
    for q0, v0 in shape.quaternions:
        w, x, y, z = (f"q[{q0 + k}]" for k in range(4))
        a, b, c = (f"full[{v0 + k}]" for k in range(3))
        rates[q0] = f"-0.5 * ({x} * {a} + {y} * {b} + {z} * {c})"
        rates[q0 + 1] = f"0.5 * ({w} * {a} + {z} * {b} - {y} * {c})"
        rates[q0 + 2] = f"0.5 * ({w} * {b} + {x} * {c} - {z} * {a})"
        rates[q0 + 3] = f"0.5 * ({w} * {c} + {y} * {a} - {x} * {b})"
    places = {
        "position": "y",
        "velocity": "y + NP",
        "force": "what->u",
        "start": "run->guess",
        "theta": "what->theta",
        "acceleration": "rate + NP",
        "q": "q",
        "v": "full",
    }
    lines = [
        "static int plant_rate(tl_run *run, double time, const double *y, double *rate, double *guards)",
        "{",
        "    const acts *what = run->data;",
        "    double q[NQ], full[NF], health[4];",
        "    (void)time; (void)guards;",
        _call(forward, places, places),
        "    note(health, what->worst);",
        "    memcpy(run->guess, q, sizeof q);",
        *(f"    rate[{k}] = {rates[iq]};" for k, iq in enumerate(entry.q)),
        "    return healthy(health);",
        "}",
        "",
    ]
    return "\n".join(lines)


def _back(plant: Model) -> str:
    """Whole quaternions among the platform's positions, brought back to unit length."""
    entry, moved = plant.platform.ports, 0
    lines = ["static int plant_back(tl_run *run, double time, double *y)", "{", "    (void)run; (void)time; (void)y;"]
    for q0, _ in plant.topology.quaternions:
        k = [entry.q.index(q0 + i) for i in range(4) if q0 + i in entry.q]
        if len(k) == 4:
            moved = 1
            square = " + ".join(f"y[{i}] * y[{i}]" for i in k)
            lines.append(f"    const double norm_{q0} = sqrt({square});")
            lines += [f"    y[{i}] /= norm_{q0};" for i in k]
    return "\n".join([*lines, f"    return {moved};", "}", ""])


def _measure(plant: Model, kinematics: CFunction) -> str:
    """Actuators' positions and speeds of a platform motion."""
    shape, transmission = plant.topology, plant.assembly.loops.transmission

    def sums(row: int, name: str, index: Mapping[int, int]) -> str:
        terms = [f"{number(r)} * {name}[{index[j]}]" for j, r in enumerate(transmission[row]) if r]
        return " + ".join(terms) or "0.0"

    places = {j: j for j in range(shape.n_v)}
    coordinates = dict(enumerate(shape.q_of_v))
    inputs = {"position": "p", "velocity": "v", "start": "start", "theta": "theta"}
    return "\n".join(
        [
            "static void measure(const double *p, const double *v, const double *start, const double *theta,",
            "    double *measured, double *speed, double *worst)",
            "{",
            "    double q[NQ], full[NF], health[4];",
            "    (void)start;",
            "    (void)theta;",
            _call(kinematics, inputs, {"q": "q", "v": "full"}),
            "    note(health, worst);",
            *(f"    measured[{i}] = {sums(i, 'q', coordinates)};" for i in range(len(transmission))),
            *(f"    speed[{i}] = {sums(i, 'full', places)};" for i in range(len(transmission))),
            "}",
            "",
        ]
    )


def _law(model: Model, controller: Controller, named: Mapping[str, CFunction]) -> str:
    """The forces of one sample, without feed-forward and limits."""
    platform = controller.space == "platform"
    entry = model.platform.ports
    x, y = ("x", "y") if platform else ("measured", "speed")
    lines = [
        "static void law(const double *measured, const double *speed, const double *p_ref, const double *v_ref,",
        "    const double *a_ref, const double *kp, const double *kd, double *estimate, const double *theta,",
        "    double *u, double *worst)",
        "{",
        "    double push[NV], q[NQ], full[NF], health[4], x[NP], y[NV], zero[NV] = {0.0};",
        "    (void)theta; (void)estimate; (void)worst; (void)a_ref; (void)x; (void)y; (void)zero; (void)q; (void)full;",
        "    (void)health;",
    ]
    if platform:
        given = {"position": "measured", "velocity": "speed", "start": "estimate", "theta": "theta"}
        lines += [
            _call(named["model_pose"], given, {"q": "q", "v": "full"}),
            "    note(health, worst);",
            "    for (int i = 0; i < NQ; ++i) estimate[i] = q[i];",
            *(f"    x[{k}] = q[{iq}];" for k, iq in enumerate(entry.q)),
            *(f"    y[{k}] = full[{iv}];" for k, iv in enumerate(entry.v)),
            *_pose_errors(model),
        ]
    else:
        lines.append("    for (int i = 0; i < NV; ++i) push[i] = p_ref[i] - measured[i];")
    lines.append(f"    for (int i = 0; i < NV; ++i) push[i] = kp[i] * push[i] + kd[i] * (v_ref[i] - {y}[i]);")
    given = {"position": x, "velocity": y, "acceleration": "push", "start": "estimate", "theta": "theta"}
    known = ["    note(health, worst);", "    for (int i = 0; i < NQ; ++i) estimate[i] = q[i];"]
    if controller.compensation is Compensation.ACCELERATION:
        lines.append("    for (int i = 0; i < NV; ++i) push[i] += a_ref[i];")
        lines += [_call(named["model_inverse"], given, {"force": "u", "q": "q"}), *known, "}", ""]
        return "\n".join(lines)
    if controller.compensation is Compensation.GRAVITY:
        still = given | {"velocity": "zero", "acceleration": "zero"}
        lines += [_call(named["model_inverse"], still, {"force": "u", "q": "q"}), *known]
    else:
        lines.append("    for (int i = 0; i < NU; ++i) u[i] = 0.0;")
    if platform:
        lines += _platform_force(model, named["model_embedding"], given)
    lines += ["    for (int i = 0; i < NU; ++i) u[i] += push[i];", "}", ""]
    return "\n".join(lines)


def _pose_errors(model: Model) -> list[str]:
    """Errors of a platform pose, from all coordinates; rotations by twice the vector part of q_ref q*."""
    entry, shape = model.platform.ports, model.topology
    lines = []
    for column, iv in enumerate(entry.v):
        iq = shape.q_of_v[iv]
        if iq >= 0:
            lines.append(f"    push[{column}] = p_ref[{iq}] - q[{iq}];")
    for q0, v0 in shape.quaternions:
        columns = {iv - v0: column for column, iv in enumerate(entry.v) if v0 <= iv < v0 + 3}
        if not columns:
            continue
        (a0, a1, a2, a3), (b0, b1, b2, b3) = ([f"{name}[{q0 + i}]" for i in range(4)] for name in ("p_ref", "q"))
        dot = f"{a0} * {b0} + {a1} * {b1} + {a2} * {b2} + {a3} * {b3}"
        turned = (
            f"{a1} * {b0} - {a0} * {b1} - ({a2} * {b3} - {a3} * {b2})",
            f"{a2} * {b0} - {a0} * {b2} - ({a3} * {b1} - {a1} * {b3})",
            f"{a3} * {b0} - {a0} * {b3} - ({a1} * {b2} - {a2} * {b1})",
        )
        lines.append(f"    const double side_{q0} = {dot} >= 0.0 ? 2.0 : -2.0;")
        lines += [f"    push[{column}] = side_{q0} * ({turned[axis]});" for axis, column in columns.items()]
    return lines


def _platform_force(model: Model, embedding: CFunction, given: Mapping[str, str]) -> list[str]:
    """Actuator forces u of a force on the platform: J^T u = f, J = A G; G comes by columns."""
    transmission = model.assembly.loops.transmission
    inputs = {**given, "velocity": "zero"}
    lines = ["    double G[NF * NV], A[NU * NU];", _call(embedding, inputs, {"G": "G"}), "    note(health, worst);"]
    lines.append("    for (int c = 0; c < NV; ++c) {")
    for i, row in enumerate(transmission):
        terms = " + ".join(f"{number(r)} * G[c * NF + {j}]" for j, r in enumerate(row) if r) or "0.0"
        lines.append(f"        A[c * NU + {i}] = {terms};")
    return [*lines, "    }", "    solve(A, push);"]
