"""Why a simulation ended: what went wrong at the last state that was reached, in words."""

from __future__ import annotations

import numpy as np

from tauloop.common.errors import Problem
from tauloop.compiler.state import CONVERGED, SolveDiagnostics, solve_diagnostics
from tauloop.equations.assembly.singular_kinds import singular_kind
from tauloop.integrate.integrators import Integrator
from tauloop.simulation.stepping.steps import Ending, Steps
from tauloop.simulation.system import System

#: The worst pivot or discriminant below this, of its typical size, is what the integration fails
#: at.
NEAR = 0.1
#: Steps at the end over which a velocity changes its sign again and again where dry friction holds
#: it.
LAST = 1000


def why_ended(
    system: System,
    ending: Ending,
    steps: Steps,
    q: np.ndarray,
    v: np.ndarray,
    acting: np.ndarray,
    integrator: Integrator,
) -> Problem | None:
    """The problem of a simulation that did not come to its end; None for one that did.

    Args:
        system: the equations.
        ending: how it ended.
        steps: all steps.
        q: coordinates (n_q,) at the end.
        v: velocities at all steps (N, n_v).
        acting: what acts there (n_acting,).
        integrator: that gave up.
    """
    if ending.is_success:
        return None
    at = f"at {steps.time[-1]:.6g} s"
    if ending is Ending.MAX_STEPS:
        what = f"{len(steps)} steps were not enough: {at} the end is not reached"
        remedy = "allow more steps or larger errors, or take an implicit integrator if the machine is stiff"
        if stuck := _stuck(system, v):
            what += f": Coulomb friction holds {', '.join(stuck)} at rest, and changes its sign at every step there"
            remedy = "take fixed steps (`step`, such as 0.1 ms), which creep a little; or leave that friction out"
        return Problem(where="integrator", what=what, remedy=remedy)
    place, condition = _weakest(system, steps.y[-1, : system.size], q, acting)
    if ending is Ending.SINGULAR:
        return Problem(
            where=place or system.model.mechanism.name,
            what=f"the motion runs into a singular or unreachable pose {at}: {condition}",
            remedy="hold the machine in its workspace by forces or springs"
            + (
                "; full coordinates (`Projected`) pass through leg-side singularities"
                if system.route.is_independent
                else ""
            ),
        )
    failed = "no step is short enough for the tolerances"
    failed = (
        "the projection onto the loops does not converge" if ending is Ending.LOOPS_LOST else failed
    )
    remedy = "give larger tolerances; if forces are not smooth, or the pose is near a singularity, look there first"
    return Problem(
        where=place or type(integrator).__name__, what=f"{failed} {at}: {condition}", remedy=remedy
    )


def _stuck(system: System, v: np.ndarray) -> list[str]:
    """Velocities with Coulomb friction that were at rest at the end, to and fro: v (N, n_v) at all steps."""
    names = system.model.topology.velocity_names
    rubbing = {
        p.name.removesuffix(".coulomb") for p in system.model.parameters if p.role == "coulomb"
    }
    last = v[-LAST:]
    turns = (np.diff(np.sign(last), axis=0) != 0.0).sum(axis=0) > 0.1 * len(last)
    return [name for name, turned in zip(names, turns, strict=True) if turned and name in rubbing]


def _weakest(system: System, y: np.ndarray, q: np.ndarray, acting: np.ndarray) -> tuple[str, str]:
    """The loop or elimination that is nearest to failing at a state, and the condition numbers there in words."""
    with np.errstate(all="ignore"):
        outputs, diagnostics = system.rate.program.run(
            system.inputs(y[None, :], acting[None, :], q[None, :]), 1
        )
        checked = solve_diagnostics(system.rate.program, diagnostics)
        condition = _condition(system, outputs["all_q"])
    pivots = diagnostics.pivots[0]
    place = _nearest_form(system, checked) or _open_loop(checked)
    if not place and len(pivots) and np.nanmin(pivots) < NEAR:
        place = system.rate.program.all_pivots[int(np.nanargmin(pivots))].what
    smallest = f", smallest pivot {np.nanmin(pivots):.2g} of its usual size" if len(pivots) else ""
    return place, condition + smallest


def _nearest_form(system: System, health: SolveDiagnostics) -> str:
    """Element of the closed form whose two solutions are about to meet: there the leg is stretched or folded."""
    typical = _typical_discriminants(system)
    if not len(typical):
        return ""
    share = health.discriminants[0] / typical
    worst = int(np.argmin(share))
    return health.closed_forms[worst].element if share[worst] < NEAR else ""


def _typical_discriminants(system: System) -> np.ndarray:
    if not system.rate.program.closed_forms:
        return np.empty(0)
    states = system.model.assembly.states
    y = np.zeros((len(states), system.size))
    y[:, : system.rate.state[0][1]] = system.model.platform.ports.at(states)
    rates = system.rates(y, np.zeros((1, system.acting)), states)
    return np.asarray(np.median(np.abs(rates.health.discriminants), axis=0) + 1e-300)


def _open_loop(health: SolveDiagnostics) -> str:
    residuals = {name: abs(float(value[0])) for name, value in health.residuals.items()}
    worst = max(residuals, key=residuals.__getitem__, default="")
    return worst if worst and not residuals[worst] < CONVERGED else ""


def _condition(system: System, q: np.ndarray) -> str:
    """Condition numbers of the loops (platform motion given), and of the map from platform to actuators."""
    assembly = system.model.assembly
    if not np.isfinite(q).all():
        return "no coordinates there"
    legs, driven = (
        assembly.loop_conditions(q, known)[0] for known in (assembly.independent, assembly.driven)
    )
    text = f"condition number {legs:.3g} of the loops in the legs"
    if system.model.topology.n_v - len({*assembly.driven, *assembly.frozen}) == len(assembly.rows):
        text += f", {driven:.3g} with the actuators held"
    return f"{text}; nearest kind, {singular_kind(assembly, q[0])}"
