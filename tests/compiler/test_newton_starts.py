"""Where Newton's method begins: predicted by the tangent at the reference, whatever turns angles have made."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np
import pytest

from tauloop import Model, load
from tauloop.compiler.c.calling.evaluator import Interpreted
from tauloop.compiler.solving import position
from tauloop.kinematics import random_states

#: Newton's method ends at rounding, through the conditioning of regular states; a few turns cost a
#: digit of an angle.
SAME = 1e-12
#: States stay this near to the reference (unit-free), where the tangent is a fair guess.
STEP = 0.05


def interpreted(name: str) -> Model:
    return Model(load(name), evaluator=Interpreted())


def iterations(model: Model, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    state = model.actuators.kinematics(u)
    return state.q, state.health.iterations


@pytest.mark.parametrize("name", ["five_bar", "rcid"])
def test_the_prediction_saves_steps_and_leads_to_the_same_pose(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    predicted = interpreted(name)
    states = random_states(predicted, 30, np.random.default_rng(1), step=STEP)
    u = predicted.actuator_position(states.q)
    q, steps = iterations(predicted, u)

    def plain(self: Any, rows: list[int], unknown: tuple[int, ...]) -> ca.SX:
        return ca.vertcat(*(self._start[i] for i in unknown))

    monkeypatch.setattr(position._Solver, "_predicted", plain)
    q_plain, steps_plain = iterations(interpreted(name), u)
    assert np.abs(q - states.q).max() < SAME
    assert np.abs(q - q_plain).max() < SAME
    assert steps.sum() < steps_plain.sum()


@pytest.mark.parametrize("turns", [(1, -3), (5, 0)])
def test_turns_of_known_angles_lead_nowhere_else(turns: tuple[int, int]) -> None:
    """Cranks that have turned several times: the same pose in as many steps, only their own angles differ."""
    model = interpreted("five_bar")
    states = random_states(model, 20, np.random.default_rng(1))
    u = model.actuator_position(states.q)
    q, steps = iterations(model, u)
    q_turned, steps_turned = iterations(model, u + 2 * np.pi * np.array(turns))
    driven = [model.topology.coordinate_names.index(name) for name in ("shoulder_1", "shoulder_2")]
    others = [i for i in range(q.shape[1]) if i not in driven]
    assert np.abs(q_turned[:, driven] - q[:, driven] - 2 * np.pi * np.array(turns)).max() < SAME
    assert np.abs(q_turned[:, others] - q[:, others]).max() < SAME
    assert np.array_equal(steps, steps_turned)


def test_a_start_that_is_the_solution_takes_one_step() -> None:
    model = interpreted("five_bar")
    states = random_states(model, 10, np.random.default_rng(2))
    state = model.actuators.kinematics(model.actuator_position(states.q), start=states.q)
    assert (state.health.iterations == 1).all()
