"""Sensitivities of a control loop to parameters of the simulated machine, gains and the start."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tauloop.common.errors import InputError, Problems
from tauloop.compiler.catalogue import KINEMATICS
from tauloop.compiler.derivatives.tangents import tangent_program
from tauloop.integrate.sensitivity import (
    SensitivityDirection,
    by_parameter,
    require_known,
    require_smooth_friction,
    starts,
)
from tauloop.model import Model
from tauloop.simulation.controllers.laws import Loop
from tauloop.simulation.controllers.system import ControlLayouts

#: Parameters of a controller, with their units.
_GAINS = {"bandwidth": "rad/s", "damping": "1"}


def directions(loop: Loop, names: Sequence[str]) -> tuple[SensitivityDirection, ...]:
    """Return the directions along which a loop is differentiated.

    Parameters among the names must be free in the plant's model.

    Raises:
        InputError: a name is unknown; or the loop has a law in Python, quantized encoders or
            Coulomb friction, which have no derivatives.
    """
    if not names:
        return ()
    problems = Problems()
    if loop.controller.force_callback(loop) is not None:
        what = f"{type(loop.controller).__name__} computes forces in Python, which cannot be differentiated"
        problems.add("sensitivities", what, "use finite differences of simulations instead")
    if loop.resolution.any():
        what = f"encoders count in steps of {loop.resolution.max():g}, and forces jump at each step"
        problems.add("sensitivities", what, "set the resolution to zero")
    require_smooth_friction(loop.plant.mechanism, problems)
    InputError.raise_if_any(problems)
    plant = loop.plant
    layouts = ControlLayouts(plant, loop.model, loop.controller, loaded=loop.load is not None)
    ports = plant.platform.ports
    n_states = len(loop.position) + len(loop.velocity)
    available = starts((ports.position, ports.velocity), n_states, layouts.constants.size)
    table = plant.mechanism.parameters
    require_known(names, (*available, *_GAINS, *table.names))
    at_rest = np.zeros(n_states)
    free = plant.free
    proportional, derivative = loop.gains
    w, z = loop.controller.bandwidth, loop.controller.damping
    gains = {
        "bandwidth": {"proportional": 2 * proportional / w, "derivative": derivative / w},
        "damping": {"derivative": derivative / z},
    }
    for name, unit in _GAINS.items():
        row = layouts.constants.rows(1, dict(gains[name]))[0]
        available[name] = SensitivityDirection(name=name, unit=unit, start=at_rest, constants=row)
    for unit_row, name, q_by in zip(
        np.eye(len(free)), free, _start_derivatives(plant, loop.q), strict=True
    ):
        start = np.concatenate([ports.at(q_by), np.zeros(len(loop.velocity))])
        constants = layouts.constants.rows(1, {"plant": unit_row})[0]
        available[name] = by_parameter(table[name], start, constants)
    return tuple(available[name] for name in names)


def _start_derivatives(plant: Model, q: np.ndarray) -> np.ndarray:
    """Return derivatives of the start coordinates with respect to the free parameters (m, n_q).

    The actuator positions are fixed.
    """
    free = plant.free
    theta = plant.mechanism.parameters.vector(free)
    program = tangent_program(plant.actuators.runner.program(KINEMATICS[0]), {"theta": len(free)})
    inputs = {"position": plant.actuators.ports.at(q), "start": q, "theta": theta}
    rows = {name: np.tile(value, (len(free), 1)) for name, value in inputs.items()}
    return program.run(rows | {"theta_by": np.eye(len(free))}, len(free))[0]["q_by"]
