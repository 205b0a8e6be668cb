"""What the forces of a machine could tell and a log does not: the directions that its motion leaves out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tauloop.common.errors import Problem, Problems
from tauloop.identification.regression.base_parameters import base_parameters
from tauloop.identification.regression.data import RegressionData
from tauloop.identification.regression.from_log import leading_transmission
from tauloop.model import Model

#: Random states that stand for all motions of the machine.
STATES = 200
#: A direction is left out when a log shows it less than this share of the best, columns of unit
#: norm.
LEFT_OUT = 1e-8
#: Parameters named of each direction, with at least this share of the largest.
NAMED, SHARE = 3, 0.3


def unexcited(
    model: Model, data: RegressionData, rng: np.random.Generator, *, output: str = "actuators"
) -> tuple[Problem, ...]:
    """Directions of the base parameters that random motions of the machine tell, and these data do not.

    The base parameters of random states are those of the machine itself, for the outputs that were
    measured. Of their columns in the data, each of unit norm in random states, singular vectors
    with (nearly) no singular value are named.

    Args:
        model: the machine.
        data: its regression data.
        rng: source of the states.
        output: that of the data.

    Returns:
        One problem for each direction: which parameters, and how far the data are from showing
        them.
    """
    regressor = _of_random_states(model, rng, output)
    everything = replace(
        data,
        regressor=regressor,
        forces=np.zeros(regressor.shape[:2]),
        time=None,
        present=None,
        logs=None,
    )
    rich, own = (
        part.triangles[:, :, :-1].reshape(-1, len(data.unknowns)) for part in (everything, data)
    )
    base = base_parameters(rich, data.unknowns, data.unknown_units)
    norms = np.linalg.norm(rich[:, base.independent], axis=0)
    _, sizes, directions = np.linalg.svd(own[:, base.independent] / norms, full_matrices=False)
    problems = Problems()
    for size, direction in zip(sizes, directions, strict=True):
        if size > LEFT_OUT * sizes[0]:
            continue
        shares = np.abs(direction)
        named = [
            base.base[i].short_name()
            for i in np.argsort(-shares)[:NAMED]
            if shares[i] >= SHARE * shares.max()
        ]
        what = (
            f"its motion says nothing of {' with '.join(named)}: forces show it "
            f"{size / sizes[0]:.1g} times as much as "
        )
        remedy = "record a motion in which these axes move with changing speeds, directions and accelerations"
        problems.add("log", f"{what}the best direction (above {LEFT_OUT:g} is asked)", remedy)
    return tuple(problems)


def _of_random_states(model: Model, rng: np.random.Generator, output: str) -> np.ndarray:
    """Regressor (STATES, n_out, n_pi) of random motions."""
    leading, driven = list(model.assembly.leading), list(model.assembly.leading_driven)
    transmission = leading_transmission(model)
    if model.assembly.rows:
        # a tenth of a second that serial arms need not wait
        from tauloop.kinematics.states import random_states

        states = random_states(model, STATES, rng)
        start, position = states.q, model.actuator_position(states.q)[:, leading]
        rates = [part[:, driven] for part in (states.v, states.a)]
    else:  # any positions will do
        scale = model.assembly.loops.velocity_scale[driven]
        moves, *rates = (rng.normal(size=(STATES, len(driven))) * scale for _ in range(3))
        start, position = (
            None,
            model.actuator_position(model.assembly.q)[leading] + moves @ transmission.T,
        )
    velocity, acceleration = (part @ transmission.T for part in rates)
    return model.actuators.regressor(
        position, velocity, acceleration, output=model.determined(output), start=start
    )
