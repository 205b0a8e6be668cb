"""The five-bar of docs/identification/identifiability.md: its base parameters by point masses, and by the program."""

from __future__ import annotations

import numpy as np
import pytest

import tauloop as tl
from tauloop.identification import base_parameters
from tauloop.kinematics import random_states

#: Forces of some N m, sums of a few terms.
ROUNDING = 1e-12
CRANK, LINK = 0.25, 0.35


@pytest.fixture(scope="module")
def model() -> tl.Model:
    return tl.Model(tl.load("five_bar"))


@pytest.fixture(scope="module")
def regressor(model: tl.Model) -> np.ndarray:
    states = random_states(model, 50, np.random.default_rng(0))
    return model.platform.regressor(
        states.position, states.velocity, states.acceleration, start=states.q
    )


def parameters(model: tl.Model, values: dict[str, float]) -> np.ndarray:
    names = [parameter.name for parameter in model.parameters]
    assert set(values) <= set(names)
    return np.array([values.get(name, 0.0) for name in names])


def test_a_mass_at_a_joint_may_sit_on_either_body(model: tl.Model, regressor: np.ndarray) -> None:
    """100 g at the tip from link 1 to link 2; at elbow 2 from link 2 to the crank; on a motor axis from anywhere."""
    tip = {"link_1.m": -0.1, "link_2.m": 0.1, "link_2.mcx": 0.1 * LINK, "link_2.Izz": 0.1 * LINK**2}
    elbow = {
        "link_2.m": -0.1,
        "crank_2.m": 0.1,
        "crank_2.mcx": 0.1 * CRANK,
        "crank_2.Izz": 0.1 * CRANK**2,
    }
    for moved in (tip, elbow, {"crank_1.m": 0.1}):
        assert np.abs(regressor @ parameters(model, moved)).max() < ROUNDING
    assert np.abs(regressor @ parameters(model, {"link_1.m": 0.1})).max() > 0.01


def test_point_masses_at_the_joints_are_the_base_parameters(
    model: tl.Model, regressor: np.ndarray
) -> None:
    """16 numbers in the plane, less two on motor axes and one at each of three joints; the program names the same."""
    names = [parameter.name for parameter in model.parameters]
    base = base_parameters(regressor, names, [parameter.unit for parameter in model.parameters])
    inertial = [
        parameter
        for parameter in base.base
        if parameter.representative.partition(".")[0][:5] in "crank link_"
    ]
    assert len(inertial) == 16 - 2 - 3
    assert base.rank == len(inertial) + 4
    value = dict(zip(names, model.pi, strict=True))
    tip = value["link_1.m"] + value["link_1.mcx"] / LINK + value["link_2.mcx"] / LINK
    far, near = -value["link_1.mcx"] / LINK, value["link_2.m"] - value["link_2.mcx"] / LINK
    by_hand = {
        "crank_1.mcx": value["crank_1.mcx"] + CRANK * far,
        "crank_1.Izz": value["crank_1.Izz"] + value["motor_1.inertia"] + CRANK**2 * far,
        "crank_2.mcx": value["crank_2.mcx"] + CRANK * near,
        "crank_2.Izz": value["crank_2.Izz"] + value["motor_2.inertia"] + CRANK**2 * near,
        "link_1.m": tip,
        "link_1.Izz": value["link_1.Izz"] + LINK * value["link_1.mcx"],
        "link_2.Izz": value["link_2.Izz"] - LINK * value["link_2.mcx"],
    }
    regrouped = dict(
        zip((single.representative for single in base.base), base.regroup(model.pi), strict=True)
    )
    assert {name: regrouped[name] for name in by_hand} == pytest.approx(by_hand, rel=1e-9)
