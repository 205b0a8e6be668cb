"""FMUs without a plant: inverse dynamics, and inverse and forward kinematics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np

from tauloop.compiler.catalogue import INVERSE_DYNAMICS, KINEMATICS
from tauloop.compiler.expressions import ProgramSpec
from tauloop.compiler.functions.rates import actuator_motion
from tauloop.equations.ports import EntryPorts
from tauloop.export.fmu.plant import FmuFunctions, actuator_motion_variables, diagnosis_of, loops_of
from tauloop.export.fmu.variables import (
    FmuVariable,
    FmuVariables,
    named_variables,
    parameter_variable,
)
from tauloop.integrate.routine import Routine, RoutineCall, program_call, straight
from tauloop.integrate.system import HybridSystem
from tauloop.model import Model
from tauloop.model.motion import Motion


def inverse_dynamics_functions(model: Model) -> FmuFunctions:
    """Return the FMU functions of inverse dynamics: actuator forces for a platform motion."""
    ports, n_q = model.platform.ports, model.topology.n_q
    starts = np.concatenate([ports.at(model.assembly.q), np.zeros(2 * ports.velocity.size)])
    calls, own = _forces(model, _places(ports, "in"), "p", "rate")
    inputs = motion_inputs(ports, starts)
    outputs = Routine(calls=(*_followed(model), *calls), own=own | {"q": n_q})
    return _block(model, inputs, _force_outputs(model), outputs, n_q, model.assembly.q)


def kinematics_functions(model: Model) -> FmuFunctions:
    """Return the FMU functions of kinematics, with outputs `inverse.` and `forward.`."""
    shape, platform, actuators = model.topology, model.platform.ports, model.actuators.ports
    first_actuator = platform.position.size + platform.velocity.size
    inverse = program_call(
        *("inverse_pose", *_program(model.platform, KINEMATICS[1])),
        {
            "position": "in",
            "velocity": f"in + {platform.position.size}",
            "start": "start",
            "theta": "p",
        },
        {"q": "q", "v": "v"},
    )
    forward = program_call(
        *("forward_pose", *_program(model.actuators, KINEMATICS[1])),
        {
            "position": f"in + {first_actuator}",
            "velocity": f"in + {first_actuator + actuators.position.size}",
            "start": f"start + {shape.n_q}",
            "theta": "p",
        },
        {"q": "q_there", "v": "v_there"},
    )

    def motion(q: ca.SX, v: ca.SX, q_there: ca.SX, v_there: ca.SX) -> dict[str, ca.SX]:
        moved = ca.vertcat(*actuator_motion(model.assembly, q, v))
        reached = ca.vertcat(q_there[list(platform.q)], v_there[list(platform.v)])
        return {"rate": ca.vertcat(moved, reached), "start": ca.vertcat(q, q_there)}

    own = {"q": shape.n_q, "v": shape.n_v, "q_there": shape.n_q, "v_there": shape.n_v}
    q = model.assembly.q
    inputs = (
        *motion_inputs(
            platform, np.concatenate([platform.at(q), np.zeros(platform.velocity.size)])
        ),
        *motion_inputs(
            actuators, np.concatenate([actuators.at(q), np.zeros(actuators.velocity.size)])
        ),
    )
    outputs = (
        *_prefixed("inverse", actuator_motion_variables(model)),
        *_prefixed("forward", named_variables(platform.position.columns, platform.position.units)),
        *_prefixed("forward", named_variables(velocity_names(platform), platform.velocity.units)),
    )
    routine = Routine(calls=(inverse, forward, straight("both_ways", own, motion)), own=own)
    return _block(model, inputs, outputs, routine, 2 * shape.n_q, np.concatenate([q, q]))


def _block(
    model: Model,
    inputs: tuple[FmuVariable, ...],
    outputs: tuple[FmuVariable, ...],
    routine: Routine,
    coordinates: int,
    guess: np.ndarray,
) -> FmuFunctions:
    """Return the functions of an FMU without states.

    Args:
        model: the machine; its free parameters stay parameters.
        inputs, outputs: variables.
        routine: routine that computes the outputs.
        coordinates: number of start coordinates of Newton's method.
        guess: their first values.
    """
    leaves = tuple(parameter_variable(model.mechanism.parameters[name]) for name in model.free)
    return FmuFunctions(
        system=HybridSystem(
            states=0,
            inputs=len(inputs),
            coordinates=coordinates,
            rate=Routine(),
            constants=len(model.free),
        ),
        outputs=routine,
        **diagnosis_of(model, "p", "in"),  # type: ignore[arg-type]
        loops=loops_of(model.platform.program(KINEMATICS[1])),
        variables=FmuVariables(parameters=leaves, inputs=inputs, outputs=outputs),
        constants=model.free,
        guess=guess,
    )


def _program(motion: Motion, spec: ProgramSpec) -> tuple[Any, dict[str, int]]:
    """Return a program, and the sizes of its inputs by name."""
    sizes = {key: array.shape[1] for key, array in motion.runner.empty_inputs().items()}
    return motion.runner.program(spec), sizes


def _places(ports: EntryPorts, array: str) -> dict[str, str]:
    """Return C expressions for a motion's position, velocity and acceleration in an array."""
    n, m = ports.position.size, ports.velocity.size
    return {"position": array, "velocity": f"{array} + {n}", "acceleration": f"{array} + {n + m}"}


def _forces(
    model: Model, motion: Mapping[str, str], theta: str, to: str
) -> tuple[tuple[RoutineCall, ...], dict[str, int]]:
    """Return the calls of inverse dynamics, and the sizes of their own arrays.

    Redundant actuators share forces so that the sum of squares is smallest.
    """
    program, sizes = _program(model.platform, INVERSE_DYNAMICS)
    shares = {"weight": sizes["weight"], "preload": sizes["preload"]}
    places = {**motion, "start": "start", "theta": theta, "weight": "weight", "preload": "preload"}
    call = program_call("inverse_dynamics", program, sizes, places, {"force": to})
    if not {"weight", "preload"} & set(call.inputs):
        return (call,), {}
    alike = {"weight": ca.DM.ones(shares["weight"]), "preload": ca.DM.zeros(shares["preload"])}
    share = straight(
        "shares",
        {next(iter(motion.values())): 1},
        lambda _: {k: ca.SX(v) for k, v in alike.items()},
    )
    return (share, call), {name: max(size, 1) for name, size in shares.items()}


def _followed(model: Model) -> tuple[RoutineCall, ...]:
    """Return the calls that set the start of Newton's method to the solution of this step."""
    program, sizes = _program(model.platform, KINEMATICS[0])
    places = {"position": "in", "start": "start", "theta": "p"}
    pose = program_call("pose", program, sizes, places, {"q": "q"})
    return pose, straight("moved", {"q": model.topology.n_q}, lambda q: {"start": q})


def velocity_names(ports: EntryPorts) -> tuple[str, ...]:
    """Return the names of the velocity variables of a motion's ports."""
    return tuple(f"{name}.velocity" for name in ports.velocity.columns)


def motion_inputs(ports: EntryPorts, starts: np.ndarray) -> tuple[FmuVariable, ...]:
    """Return input variables for positions and velocities.

    Accelerations follow if there are start values for them.
    """
    name = "" if ports.entry.name == "platform" else ".position"
    names = [f"{column}{name}" for column in ports.position.columns] + [*velocity_names(ports)]
    units = [*ports.position.units, *ports.velocity.units]
    if len(starts) > len(names):
        names += [f"{column}.acceleration" for column in ports.velocity.columns]
        units += ports.acceleration.units
    return tuple(
        FmuVariable(name=name, unit=unit, causality="input", start=float(start))
        for name, unit, start in zip(names, units, starts, strict=True)
    )


def _force_outputs(model: Model) -> tuple[FmuVariable, ...]:
    names, units = model.output_ports("actuators")
    return named_variables((f"{name}.force" for name in names), units)


def _prefixed(prefix: str, variables: tuple[FmuVariable, ...]) -> tuple[FmuVariable, ...]:
    return tuple(replace(variable, name=f"{prefix}.{variable.name}") for variable in variables)
