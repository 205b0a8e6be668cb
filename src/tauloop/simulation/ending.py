"""Explanation of an early end of a simulation, based on the last state."""

from __future__ import annotations

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import Problem
from tauloop.compiler.state import CONVERGED, SolveDiagnostics, solve_diagnostics
from tauloop.equations.assembly.singular_kinds import singular_kind
from tauloop.integrate.integrators import Integrator
from tauloop.simulation.stepping.steps import Ending, Steps
from tauloop.simulation.system import System

#: Pivot or discriminant, relative to its typical magnitude, below which it is the cause of the end.
CAUSE_RATIO = 0.1
#: Number of steps at the end in which sign changes of velocities are counted. Many sign changes
#: mean that dry friction holds the velocity.
STICKING_STEPS = 1000
#: Number of sign changes per step above which dry friction holds a velocity at zero.
STICKING_SIGN_CHANGES = 0.1


def why_ended(
    system: System,
    ending: Ending,
    steps: Steps,
    q: np.ndarray,
    v: np.ndarray,
    acting: np.ndarray,
    integrator: Integrator,
) -> Problem | None:
    """Return the problem of a simulation that ended early; None if it was successful.

    Args:
        system: the equations.
        ending: reason why the integration ended.
        steps: all steps.
        q: coordinates (n_q,) at the end.
        v: velocities at all steps (N, n_v).
        acting: forces and wrench at the end (n_acting,).
        integrator: integrator with its limits of steps.
    """
    if ending.is_success:
        return None
    if ending is Ending.MAX_STEPS:
        return _too_many_steps(system, steps, v)
    end_time = f"at {steps.time[-1]:.6g} s"
    cause, condition = _weakest_solve(system, steps.y[-1, : system.size], q, acting)
    if ending is Ending.SINGULAR:
        remedy = "keep the machine in its workspace by forces or springs"
        if system.route.is_independent:
            remedy += "; full coordinates (`Projected`) pass through leg-side singularities"
        return Problem(
            where=cause or system.model.mechanism.name,
            what=f"the motion reaches a singular or unreachable pose {end_time}: {condition}",
            remedy=remedy,
        )
    failure = "no step is short enough for the tolerances"
    if ending is Ending.LOOPS_LOST:
        failure = "the projection onto the loops does not converge"
    return Problem(
        where=cause or type(integrator).__name__,
        what=f"{failure} {end_time}: {condition}",
        remedy="first check for forces that are not smooth and for a singularity near the pose; "
        "otherwise give larger tolerances",
    )


def _too_many_steps(system: System, steps: Steps, v: np.ndarray) -> Problem:
    """Return the problem of a simulation that reached its maximum number of steps."""
    what = f"{counted(len(steps), 'step', 'reach')} only {steps.time[-1]:.6g} s"
    remedy = (
        "allow more steps or larger errors, or use an implicit integrator if the machine is stiff"
    )
    if stuck := _sticking_velocities(system, v):
        names = ", ".join(stuck)
        what += f": Coulomb friction holds {names} at rest, and its sign changes at every step"
        remedy = (
            "use fixed steps (`fixed_step`, such as 0.1 ms), with which the joint creeps slightly; or "
            "omit this friction"
        )
    return Problem(where="integrator", what=what, remedy=remedy)


def _sticking_velocities(system: System, v: np.ndarray) -> list[str]:
    """Return the names of the velocities whose signs alternate at the end due to Coulomb friction.

    Args:
        system: the equations.
        v: velocities at all steps (N, n_v).
    """
    names = system.model.topology.velocity_names
    with_friction = {
        parameter.name.removesuffix(".coulomb")
        for parameter in system.model.parameters
        if parameter.role == "coulomb"
    }
    last = v[-STICKING_STEPS:]
    sign_changes = (np.diff(np.sign(last), axis=0) != 0.0).sum(axis=0)
    is_stuck = sign_changes > STICKING_SIGN_CHANGES * len(last)
    return [
        name for name, stuck in zip(names, is_stuck, strict=True) if stuck and name in with_friction
    ]


def _weakest_solve(
    system: System, y: np.ndarray, q: np.ndarray, acting: np.ndarray
) -> tuple[str, str]:
    """Return the name of the element or loop whose equations are closest to failing at a state.

    The second result describes the condition numbers, for the message.
    """
    with np.errstate(all="ignore"):
        outputs, run_diagnostics = system.rate.program.run(
            system.inputs(y[None, :], acting[None, :], q[None, :]), 1
        )
        diagnostics = solve_diagnostics(system.rate.program, run_diagnostics)
        condition = _condition(system, outputs["all_q"])
    pivots = run_diagnostics.pivots[0]
    cause = _near_singular_element(system, diagnostics) or _open_loop(diagnostics)
    if not len(pivots):
        return cause, condition
    smallest = float(np.nanmin(pivots))
    if not cause and smallest < CAUSE_RATIO:
        cause = system.rate.program.all_pivots[int(np.nanargmin(pivots))].what
    return cause, f"{condition}, smallest pivot {smallest:.2g} of its usual size"


def _near_singular_element(system: System, health: SolveDiagnostics) -> str:
    """Return the element of the closed form whose two solutions nearly coincide, or "" if none.

    At such a pose the leg is stretched or folded.
    """
    typical = _typical_discriminants(system)
    if not len(typical):
        return ""
    ratio = health.discriminants[0] / typical
    worst = int(np.argmin(ratio))
    return health.closed_forms[worst].element if ratio[worst] < CAUSE_RATIO else ""


def _typical_discriminants(system: System) -> np.ndarray:
    """Return the median magnitude of each closed form's discriminant over the known states."""
    if not system.rate.program.closed_forms:
        return np.empty(0)
    states = system.model.assembly.states
    y = np.zeros((len(states), system.size))
    y[:, : system.rate.state[0][1]] = system.model.platform.ports.at(states)
    rates = system.rates(y, np.zeros((1, system.acting)), states)
    return np.asarray(np.median(np.abs(rates.health.discriminants), axis=0) + 1e-300)


def _open_loop(health: SolveDiagnostics) -> str:
    """Return the loop with the largest residual if it does not close, or ""."""
    residuals = {name: abs(float(value[0])) for name, value in health.residuals.items()}
    worst = max(residuals, key=residuals.__getitem__, default="")
    return worst if worst and not residuals[worst] < CONVERGED else ""


def _condition(system: System, q: np.ndarray) -> str:
    """Return a description of the condition numbers of the loops, and of the nearest singularity.

    The condition numbers are for a fixed platform and for fixed actuators.
    """
    assembly = system.model.assembly
    if not np.isfinite(q).all():
        return "no coordinates at this state"
    legs = assembly.loop_conditions(q, assembly.independent)[0]
    driven = assembly.loop_conditions(q, assembly.driven)[0]
    text = f"condition number {legs:.3g} of the loops with the platform held"
    if system.model.topology.n_v - len({*assembly.driven, *assembly.frozen}) == len(assembly.rows):
        text += f", {driven:.3g} with the actuators held"
    return f"{text}; nearest singularity: {singular_kind(assembly, q[0])}"
