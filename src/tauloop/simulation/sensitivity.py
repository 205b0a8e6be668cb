"""Sensitivities of a simulation to machine parameters and to the platform's start."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tauloop.common.errors import InputError, Problems
from tauloop.compiler.catalogue import KINEMATICS
from tauloop.compiler.derivatives.tangents import moved, tangent_program
from tauloop.compiler.program import Program
from tauloop.integrate.sensitivity import (
    SensitivityDirection,
    by_parameter,
    require_known,
    require_smooth_friction,
    starts,
)
from tauloop.simulation.forces import ForceLaw, ToolForce, Wrench
from tauloop.simulation.system import N_ENERGY_STATES, System


def simulation_directions(
    system: System, names: Sequence[str], q: np.ndarray, v: np.ndarray
) -> tuple[SensitivityDirection, ...]:
    """Return the directions along which a simulation is differentiated.

    Parameters among the names must be free in the system's model. The initial position and velocity
    of the platform do not depend on a parameter. All other initial coordinates follow from them.

    Args:
        system: the equations.
        names: names of parameters and of start values.
        q, v: coordinates (n_q,) and velocities (n_v,) at the start.

    Raises:
        InputError: a name is unknown, or the platform does not determine the other coordinates at
            the start.
    """
    if not names:
        return ()
    model = system.model
    m = len(system.theta)
    position, velocity = model.platform.ports.position, model.platform.ports.velocity
    n_inputs = position.size + velocity.size
    available = starts((position, velocity), n_inputs + m, m)
    require_known(names, (*available, *model.mechanism.parameters.names))
    unit_vectors = np.eye(n_inputs + m)
    for name, vector in zip(model.free, unit_vectors[n_inputs:], strict=True):
        parameter = model.mechanism.parameters[name]
        available[name] = by_parameter(parameter, vector, vector[n_inputs:])
    directions = [available[name] for name in names]
    by = np.array([direction.start for direction in directions])
    start_derivatives = _start_derivatives(system, by, position.size, q, v)
    if not np.isfinite(start_derivatives).all():
        problem = (
            "the platform does not determine the other coordinates at the start, which is singular"
        )
        raise InputError.of("sensitivities", problem, "start away from singularities")
    return tuple(
        SensitivityDirection(
            name=d.name, unit=d.unit, start=start, constants=d.constants, scale=d.scale
        )
        for d, start in zip(directions, start_derivatives, strict=True)
    )


def _start_derivatives(
    system: System, by: np.ndarray, n_p: int, q: np.ndarray, v: np.ndarray
) -> np.ndarray:
    """Return the derivatives of the start state along each direction (d, n).

    Args:
        system: the equations.
        by: derivatives of the platform's position and velocity and of the parameters
            (d, n_p + n_v + m).
        n_p: number of the platform's positions.
        q, v: coordinates (n_q,) and velocities (n_v,) at the start.
    """
    model, count = system.model, len(by)
    runner = next(runner for runner, _ in model.platform.runner.by_branch(q[None]))
    n_v = model.platform.ports.velocity.size
    derivatives = {
        "position": by[:, :n_p],
        "velocity": by[:, n_p : n_p + n_v],
        "theta": by[:, n_p + n_v :],
    }
    program = tangent_program(
        runner.program(KINEMATICS[1]),
        {name: array.shape[1] for name, array in derivatives.items()},
    )
    ports = model.platform.ports
    values = {
        "position": ports.at(q),
        "velocity": np.linalg.solve(ports.to_v, v[list(ports.v)]),
        "start": q,
        "theta": system.theta,
    }
    inputs = {name: np.tile(value, (count, 1)) for name, value in values.items()}
    with np.errstate(all="ignore"):
        outputs, _ = program.run(
            inputs | {moved(name): array.copy() for name, array in derivatives.items()}, count
        )
    changes = {
        "q_by": outputs["q_by"],
        "v_by": outputs["v_by"],
        "theta_by": derivatives["theta"].copy(),
    }
    parts = system.route.encoder_along(model)(
        np.tile(q, (count, 1)), np.tile(v, (count, 1)), changes
    )
    return np.concatenate([*parts, np.zeros((count, N_ENERGY_STATES))], axis=1)


def motion_along(
    system: System,
    program: Program,
    y: np.ndarray,
    q: np.ndarray,
    by: np.ndarray,
    theta_by: np.ndarray,
) -> np.ndarray:
    """Return derivatives (N, n, d) of the platform's positions, followed by its velocities.

    Args:
        system: the equations.
        program: the tangent program of the right-hand side.
        y: states (N, n).
        q: coordinates near the states (N, n_q).
        by: derivatives of the states (N, n, d).
        theta_by: derivatives of the parameters (d, m).
    """
    n, count = len(y), by.shape[2]
    rows = system.inputs(
        np.repeat(y, count, axis=0),
        np.zeros((n * count, system.acting)),
        np.repeat(q, count, axis=0),
    )
    tangents = np.moveaxis(by, 2, 1).reshape(n * count, -1)
    offset = 0
    for name, size in system.rate.state:
        rows[moved(name)] = np.ascontiguousarray(tangents[:, offset : offset + size])
        offset += size
    outputs, _ = program.run(rows | {moved("theta"): np.tile(theta_by, (n, 1))}, n * count)
    ports = system.model.platform.ports
    position = outputs[moved("all_q")][:, list(ports.q)]
    velocity = np.linalg.solve(ports.to_v, outputs[moved("all_v")][:, list(ports.v)].T).T
    return np.moveaxis(np.hstack([position, velocity]).reshape(n, count, -1), 1, 2)


def require_differentiable(
    system: System, force: ForceLaw | None, wrench: Wrench | ToolForce | None
) -> None:
    """Reject forces, wrenches and friction that cannot be differentiated.

    Raises:
        InputError: forces or a wrench are computed from the motion in Python, or the machine has
            Coulomb friction; all problems are reported together.
    """
    problems = Problems()
    remedy = "use finite differences of simulations instead"
    if force is not None and (force.needs_state or force.period):
        what = f"{type(force).__name__} is computed from the motion in Python, which cannot be differentiated"
        problems.add(
            "sensitivities",
            what,
            f"give forces as functions of time only, use a built-in control law, or {remedy}",
        )
    if isinstance(wrench, ToolForce):
        problems.add(
            "sensitivities",
            "a wrench that depends on the tool's motion is computed in Python",
            remedy,
        )
    require_smooth_friction(system.model.mechanism, problems)
    InputError.raise_if_any(problems)
