"""Tauloop beside the engines: inverse dynamics of one machine over random consistent states."""

from __future__ import annotations

import numpy as np

from tauloop.engines.motion import Motion
from tauloop.engines.verify import Verification, compare, frictionless
from tauloop.functions import Model
from tauloop.kinematics import random_states
from tauloop.mechanism.model import Mechanism


def check_inverse_dynamics(mechanism: Mechanism, states: int, rng: np.random.Generator) -> Verification:
    """Compare Tauloop's actuator forces with those of every engine that is installed.

    The engines get positions, velocities and accelerations of the coordinates, close all loops by themselves, and know
    nothing of Tauloop's equations. Friction is left out on both sides.

    Args:
        mechanism: the machine.
        states: number of random states.
        rng: their source.

    Raises:
        AssemblyError: the machine does not work as described.
        EngineError: no engine could be run.
    """
    smooth = frictionless(mechanism)
    model = Model(smooth)
    chosen = random_states(model, states, rng)
    forces = model.platform.inverse_dynamics(
        chosen.position, chosen.velocity, chosen.acceleration, start=chosen.q
    ).force
    shape = model.topology
    motion = Motion(
        q={name: chosen.q[:, i] for i, name in enumerate(shape.coordinate_names)},
        v={name: chosen.v[:, i] for i, name in enumerate(shape.velocity_names)},
        a={name: chosen.a[:, i] for i, name in enumerate(shape.velocity_names)},
    )
    return compare(smooth, motion, forces)
