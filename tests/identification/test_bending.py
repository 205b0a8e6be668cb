"""Transmissions that bend: the column along the loads' motion, the stiffness that it finds, and where there is none."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import tauloop as tl
from tauloop.compiler.c import Interpreted
from tauloop.formats import loads
from tauloop.identification import PreparationOptions
from tauloop.identification.estimation.bending import Bending, bending_columns
from tauloop.logs.log import Channel, Signals

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
#: A link that a motor turns, with an inertia of its own that is as large as the link's.
ARM = """
format: tauloop-machine/1
name: arm
provenance: {status: chosen, source: this test}
gravity: [0, 0, -9.81 m/s^2]
bodies:
  link: {mass: 2 kg, first_moment: [0.4 kg m, 0, 0], inertia: {xx: 0.001 kg m^2, yy: 0.12 kg m^2, zz: 0.12 kg m^2},
    about: origin}
joints:
  pivot: {type: revolute, axis: y, parent: base, child: link, friction: {viscous: 0.1 N m s/rad, coulomb: 0.2 N m}}
actuators:
  motor: {on: pivot, inertia: 0.12 kg m^2}
platform: {body: link, independent: [pivot]}
"""
INERTIA, MOTOR, MOMENT, VISCOUS, COULOMB = 0.12, 0.12, 0.4, 0.1, 0.2


@pytest.fixture
def closed_form(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module("closed_form")


def test_columns_are_what_loads_on_springs_change(closed_form: ModuleType) -> None:
    """Exact positions of motors: those of the loads and the torque over the stiffness."""
    truth = closed_form.delta()
    model = tl.Model(truth.mechanism, evaluator=Interpreted())
    period, stiffness = 0.01, closed_form.stiffness_of(truth, 60.0)
    time = np.arange(0.0, 4.0, period)
    wound = [
        truth.smooth(truth.motion.at(time + shift)) / stiffness for shift in (-1e-3, 0.0, 1e-3)
    ]
    load = truth.motion.at(time)
    first, second = (wound[2] - wound[0]) / 2e-3, (wound[0] - 2.0 * wound[1] + wound[2]) / 1e-6
    motors = load[0] + wound[1], load[1] + first, load[2] + second
    jumps = [parameter.name.endswith(".coulomb") for parameter in model.parameters]
    columns = bending_columns(model, motors, np.where(jumps, 0.0, model.pi), period)
    changed = columns.values @ (columns.inertias / stiffness)
    expected = truth.smooth(load) - truth.smooth(motors)
    inside = slice(50, -50)
    assert np.abs(changed - expected)[inside].max() < 0.02 * np.abs(expected[inside]).max()


def arm_log(stiffness: float, seed: int, seconds: float = 20.0, rate: float = 250.0) -> Signals:
    """Return a log of the arm: its link on a spring, encoder and dry friction at the motor."""
    time = np.arange(round(seconds * rate)) / rate
    omega = 2.0 * np.pi * np.array([0.3, 0.9, 1.7, 2.4])
    angle = time[:, None] * omega + np.array([0.3, 2.1, 4.0, 5.5])
    size = 0.6 / omega
    orders = [size * omega**n * np.sin(angle + 0.5 * np.pi * n) for n in range(5)]
    x, v, a, jerk, snap = (order.sum(axis=1) for order in orders)
    wound = (INERTIA * a + VISCOUS * v - MOMENT * 9.81 * np.cos(x)) / stiffness
    rate_wound = (INERTIA * jerk + VISCOUS * a + MOMENT * 9.81 * np.sin(x) * v) / stiffness
    bend_wound = (
        INERTIA * snap + VISCOUS * jerk + MOMENT * 9.81 * (np.cos(x) * v**2 + np.sin(x) * a)
    ) / stiffness
    force = stiffness * wound + MOTOR * (a + bend_wound) + COULOMB * np.sign(v + rate_wound)
    force = force + 0.005 * np.random.default_rng(seed).standard_normal(len(time))
    channels = (
        Channel(quantity="position", channel="motor", values=x + wound, unit="rad"),
        Channel(quantity="force", channel="motor", values=force, unit="N m"),
    )
    return Signals(time=time, channels=channels)


def test_inertia_of_the_motor_bends_no_transmission() -> None:
    stiffness = 2_000.0
    options = tl.IdentificationOptions(
        preparation=PreparationOptions(decimation=2, standstill=1e-6, cutoff=60.0)
    )
    result = tl.identify(
        tl.Model(loads(ARM), evaluator=Interpreted()), arm_log(stiffness, seed=1), options
    )
    (bent,) = [term for term in result.identification.timing if term.kind == "bending"]
    assert bent.is_shown
    assert bent.inertias[0] == pytest.approx(INERTIA, rel=0.02)
    assert bent.stiffnesses[0] == pytest.approx(stiffness, rel=4.0 * bent.deviation / bent.value)
    assert bent.deviation < 0.05 * bent.value
    assert result.status.value == "doubtful"
    assert any(
        "its stiffness is" in problem.what and "N m/rad" in problem.what
        for problem in result.data_findings
    )


def test_no_columns_are_made_of_a_motion_that_is_not_at_hand() -> None:
    model = tl.Model(loads(ARM), evaluator=Interpreted())
    known = dict(
        zip((parameter.name for parameter in model.parameters), model.pi.tolist(), strict=True)
    )
    angle = np.sin(np.linspace(0.0, 20.0, 200))[:, None]
    bending = Bending(model, [(angle, angle, angle)])
    assert bending.columns(known, [201], 0.01) is None
    made = bending.columns(known, [150], 0.01)
    assert made is not None
    assert made.values.shape == (150, 1, 1)


def test_a_link_without_inertia_bends_no_transmission() -> None:
    model = tl.Model(loads(ARM), evaluator=Interpreted())
    angle = np.sin(np.linspace(0.0, 20.0, 200))[:, None]
    nothing = dict.fromkeys((parameter.name for parameter in model.parameters), 0.0)
    assert Bending(model, [(angle, angle, angle)]).columns(nothing, [200], 0.01) is None
