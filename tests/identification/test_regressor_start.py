"""The regressor of a closed form needs no start values, unless a force depends on revolutions of an angle."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import tauloop
from tauloop import Model
from tauloop.formats import loads
from tauloop.identification.regression.from_log import regressor_rows, regressor_start

MACHINES = Path(tauloop.__file__).parent / "mechanism" / "machines"
PIN = "    reference: -31.555829187136734 deg\n"
SPRING = "    spring: {stiffness: 0.3 N m/rad, rest: 20 deg}\n"
TIME = np.linspace(0.0, 4.0, 400)
#: The crank turns 1.5 times, and the angle of the coupler against it as often backwards.
POSITION = (1.0 + 2.4 * TIME)[:, None]
VELOCITY = np.full((400, 1), 2.4)
ACCELERATION = 0.5 * np.sin(3.0 * TIME)[:, None]


def four_bar(addition: str = "") -> Model:
    text = (MACHINES / "four_bar.yaml").read_text(encoding="utf-8")
    assert text.count(PIN) == 1
    return Model(loads(text.replace(PIN, PIN + addition)))


def test_a_closed_form_is_not_tracked() -> None:
    model = four_bar()
    assert not model.actuators.regressor_reads_start()
    assert regressor_start(model, POSITION, "actuators") is None
    motion = (POSITION, VELOCITY, ACCELERATION)
    tracked = model.actuators.track(POSITION).q
    assert np.array_equal(
        regressor_rows(model, motion, "actuators", None),
        regressor_rows(model, motion, "actuators", tracked),
    )


def test_a_spring_on_an_angle_that_turns_is_tracked() -> None:
    model = four_bar(SPRING)
    assert model.actuators.regressor_reads_start()
    start = regressor_start(model, POSITION, "actuators")
    assert start is not None
    angle = start[:, list(model.topology.coordinate_names).index("coupler_pin")]
    assert np.ptp(angle) > 2.0 * np.pi
    column = [parameter.name for parameter in model.parameters].index("coupler_pin.stiffness")
    motion = (POSITION, VELOCITY, ACCELERATION)
    stiffness = regressor_rows(model, motion, "actuators", start)[:, 0, column]
    # power of the spring: its torque times the velocity of its own angle
    rate = np.gradient(angle, TIME)
    assert np.allclose(stiffness * 2.4, angle * rate, rtol=1e-3, atol=1e-3 * np.ptp(angle * rate))


def test_newtons_method_is_tracked() -> None:
    assert Model(tauloop.load("five_bar")).actuators.regressor_reads_start()
