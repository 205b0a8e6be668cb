"""Detection of parameters that a log does not excite, although other motions of the machine do."""

from __future__ import annotations

from dataclasses import replace
from weakref import WeakKeyDictionary

import numpy as np

from tauloop.common.errors import Problem, Problems
from tauloop.identification.regression.base_parameters import base_parameters
from tauloop.identification.regression.data import RegressionData
from tauloop.identification.regression.from_log import leading_transmission
from tauloop.model import Model

#: Number of random states that represent all motions of the machine.
RANDOM_STATES = 200
#: Seed of the random states.
STATE_SEED = 0
#: Regressors of random motions with this seed, by model and output. Their computation takes longer
#: than a fit.
_RANDOM_REGRESSORS: WeakKeyDictionary[Model, dict[str, np.ndarray]] = WeakKeyDictionary()
#: A direction is unexcited if its singular value is below this fraction of the largest one, for
#: columns of unit norm.
MIN_EXCITED_SHARE = 1e-8
#: Maximum number of parameters that are reported for each direction.
MAX_REPORTED_PARAMETERS = 3
#: Smallest reported component of a direction, as a fraction of the largest component.
MIN_REPORTED_SHARE = 0.3


def unexcited_directions(
    model: Model,
    data: RegressionData,
    rng: np.random.Generator | None = None,
    *,
    output: str = "actuators",
) -> tuple[Problem, ...]:
    """Return a problem for each direction of the base parameters that the data do not excite.

    Random states determine the base parameters of the machine for the measured outputs. The columns
    of these parameters in the data are divided by the norms of the same columns in random states.
    The directions are singular vectors of the scaled columns whose singular values are nearly zero.

    Args:
        model: the machine.
        data: regression data of the machine.
        rng: random number generator for the states. None uses a fixed seed, and computes the states
            once for every model.
        output: output of the data.

    Returns:
        One problem for each direction, with its parameters and its relative effect on the forces.
    """
    regressor = _random_regressor(model, rng, output)
    random_data = replace(
        data,
        regressor=regressor,
        forces=np.zeros(regressor.shape[:2]),
        time=None,
        present=None,
        logs=None,
    )
    machine_rows = random_data.triangles[:, :, :-1].reshape(-1, len(data.unknowns))
    data_rows = data.triangles[:, :, :-1].reshape(-1, len(data.unknowns))
    base = base_parameters(machine_rows, data.unknowns, data.unknown_units)
    norms = np.linalg.norm(machine_rows[:, base.independent], axis=0)
    _, singular_values, directions = np.linalg.svd(
        data_rows[:, base.independent] / norms, full_matrices=False
    )
    problems = Problems()
    for singular_value, direction in zip(singular_values, directions, strict=True):
        if singular_value > MIN_EXCITED_SHARE * singular_values[0]:
            continue
        components = np.abs(direction)
        reported = [
            base.base[i].short_name()
            for i in np.argsort(-components)[:MAX_REPORTED_PARAMETERS]
            if components[i] >= MIN_REPORTED_SHARE * components.max()
        ]
        what = (
            f"the motion does not excite {' with '.join(reported)}: the effect on the forces is "
            f"{singular_value / singular_values[0]:.1g} times that of the best direction "
            f"(limit: {MIN_EXCITED_SHARE:g})"
        )
        remedy = (
            "record a motion in which these axes move with changing speeds, directions and "
            "accelerations"
        )
        problems.add("log", what, remedy)
    return tuple(problems)


def _random_regressor(model: Model, rng: np.random.Generator | None, output: str) -> np.ndarray:
    """Return the regressor (RANDOM_STATES, n_out, n_pi) of random motions."""
    if rng is None:
        regressors = _RANDOM_REGRESSORS.setdefault(model, {})
        if output not in regressors:
            seeded = np.random.default_rng(STATE_SEED)
            regressors[output] = _random_regressor(model, seeded, output)
        return regressors[output]
    leading = list(model.assembly.leading)
    driven = list(model.assembly.leading_driven)
    transmission = leading_transmission(model)
    start: np.ndarray | None
    if model.assembly.rows:
        # Imported here because the import takes a tenth of a second, and serial arms do not need
        # it.
        from tauloop.kinematics.states import random_states

        states = random_states(model, RANDOM_STATES, rng)
        start = states.q
        position = model.actuator_position(states.q)[:, leading]
        driven_velocity = states.v[:, driven]
        driven_acceleration = states.a[:, driven]
    else:
        # Without loops, all positions are possible.
        shape = (RANDOM_STATES, len(driven))
        scale = model.assembly.loops.velocity_scale[driven]
        offset = rng.normal(size=shape) * scale
        driven_velocity = rng.normal(size=shape) * scale
        driven_acceleration = rng.normal(size=shape) * scale
        start = None
        reference = model.actuator_position(model.assembly.q)[leading]
        position = reference + offset @ transmission.T
    velocity = driven_velocity @ transmission.T
    acceleration = driven_acceleration @ transmission.T
    return model.actuators.regressor(
        position, velocity, acceleration, output=model.measurable_output(output), start=start
    )
