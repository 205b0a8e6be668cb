"""Loops whose every joint has friction, a spring, an inertia or a motor: against geometry, and identified."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from identifying import identified

from tauloop import Model, load
from tauloop.common.errors import IdentificationError, InputError
from tauloop.formats import loads, machine_path
from tauloop.formats.writing.yaml_writer import dumps
from tauloop.identification import (
    RegressionData,
    WeightedLeastSquares,
    fit_regression,
    friction_columns,
    parameter_ties,
    regression_data,
    split_data,
    with_columns,
)
from tauloop.logs import Preparation, Sensors, measure
from tauloop.motion import SampledMotion, random_multisine

#: The same equations with and without a coordinate of the last joint, as a share of the largest
#: number.
SAME = 1e-10
#: Second differences of a step of 2e-4 rad, against forces of some N m.
BY_DIFFERENCES = 1e-5
#: Estimates lie within this many standard deviations of the truth.
DEVIATIONS = 5.0
PINS = ("crank_pin", "coupler_pin", "rocker_pin", "closing_pin")
VISCOUS, COULOMB, STIFFNESS, REST, INERTIA = 0.02, 0.05, 0.4, 0.3, 2e-3
LOADS = (
    f"    friction: {{viscous: {VISCOUS} N m s/rad, coulomb: {COULOMB} N m}}\n"
    f"    spring: {{stiffness: {STIFFNESS} N m/rad, rest: {REST} rad}}\n    inertia: {INERTIA} kg m^2\n"
)


def text_of(name: str, loads_of: dict[str, str]) -> str:
    """A shipped machine with other lines about what acts on its joints."""
    output = machine_path(name).read_text(encoding="utf-8").splitlines(keepends=True)
    lines = [
        line for line in output if not (name == "four_bar" and line.startswith("    friction:"))
    ]
    text = "".join(lines)
    for joint, more in loads_of.items():
        head = f"  {joint}:\n    type: revolute\n"
        assert text.count(head) == 1
        text = text.replace(head, head + more)
    return text


def loaded(name: str, loads_of: dict[str, str]) -> Model:
    return Model(loads(text_of(name, loads_of)))


def pin_angles(crank: np.ndarray) -> np.ndarray:
    """Angles (N, 4) of the four-bar's pins, by the triangle B C D."""
    a, b, c, ground = 0.10, 0.28, 0.22, 0.30  # crank, coupler, rocker, ground, m
    B = a * np.stack([np.cos(crank), np.sin(crank)], axis=1)
    d = np.array([ground, 0.0]) - B
    distance = np.linalg.norm(d, axis=1)
    inner = np.arccos((distance**2 + b**2 - c**2) / (2 * distance * b))
    coupler = np.arctan2(d[:, 1], d[:, 0]) + inner
    C = B + b * np.stack([np.cos(coupler), np.sin(coupler)], axis=1)
    rocker = np.arctan2(C[:, 1], C[:, 0] - ground)
    return np.stack([crank, coupler - crank, rocker, rocker - coupler], axis=1)


def test_what_acts_on_all_pins_of_a_loop_reaches_the_motor_by_virtual_work() -> None:
    model, plain = loaded("four_bar", dict.fromkeys(PINS, LOADS)), loaded("four_bar", {})
    assert set(PINS) <= set(model.topology.velocity_names)
    assert len(plain.topology.velocity_names) == len(PINS) - 1  # the last one is cut
    crank = np.linspace(0.4, 1.6, 25)
    speed, acceleration = 1.0 + np.sin(3.0 * crank), 5.0 * np.cos(2.0 * crank)
    inputs = tuple(x[:, None] for x in (crank, speed, acceleration))
    forces = model.actuators.inverse_dynamics(*inputs)
    step = 2e-4
    behind, angles, ahead = (pin_angles(crank + shift) for shift in (-step, 0.0, step))
    first, second = (ahead - behind) / (2 * step), (ahead - 2 * angles + behind) / step**2
    columns = [model.topology.coordinate_names.index(pin) for pin in PINS]
    assert np.abs(forces.state.q[:, columns] - angles).max() < SAME
    v = first * speed[:, None]
    a = first * acceleration[:, None] + second * speed[:, None] ** 2
    force = VISCOUS * v + COULOMB * np.sign(v) + STIFFNESS * (angles - REST) + INERTIA * a
    expected = plain.actuators.inverse_dynamics(*inputs).force[:, 0] + (first * force).sum(axis=1)
    assert np.abs(forces.force[:, 0] - expected).max() < BY_DIFFERENCES


def test_a_motor_on_the_joint_that_would_be_cut_does_the_same_work() -> None:
    text = text_of("four_bar", dict.fromkeys(PINS[:3], LOADS)).replace("inertia: 1e-4 kg m^2, ", "")
    here, there = Model(loads(text)), Model(loads(text.replace("on: crank_pin", "on: closing_pin")))
    assert "closing_pin" not in here.topology.velocity_names
    motion = (np.linspace(0.4, 1.6, 9)[:, None], np.full((9, 1), 2.0), np.full((9, 1), -3.0))
    powers = []
    for model, pin in ((here, "crank_pin"), (there, "closing_pin")):
        forces = model.platform.inverse_dynamics(*motion)
        powers.append(
            forces.force[:, 0] * forces.state.v[:, model.topology.velocity_names.index(pin)]
        )
    assert np.abs(powers[0] - powers[1]).max() < SAME * np.abs(powers[0]).max()


def test_the_description_stays_as_it_was() -> None:
    model = loaded("four_bar", dict.fromkeys(PINS, LOADS))
    assert {body.name for body in model.mechanism.bodies} == {
        body.name for body in load("four_bar").bodies
    }
    assert ".end" not in dumps(model.mechanism)
    assert any(body.name == "closing_pin.end" for body in model.assembly.loops.mechanism.bodies)


RATE, NOISE = 250.0, 0.002  # Hz, N m
ELBOWS = {"elbow_1": (0.02, 0.04), "elbow_2": (0.03, 0.06), "tip": (0.01, 0.03)}
PREPARATION = Preparation(cutoff=None, trim=5)


@pytest.fixture(scope="module")
def five_bar() -> Model:
    """A five-bar with friction in all joints."""
    return loaded(
        "five_bar",
        {
            joint: f"    friction: {{viscous: {viscous} N m s/rad, coulomb: {coulomb} N m}}\n"
            for joint, (viscous, coulomb) in ELBOWS.items()
        },
    )


@pytest.fixture(scope="module")
def moved(five_bar: Model) -> SampledMotion:
    center = five_bar.actuator_position(five_bar.assembly.q)
    excitation = random_multisine(
        center, np.full(2, 0.3), np.random.default_rng(1), terms=3, lowest=0.4, highest=1.2
    )
    return excitation.sample(np.arange(round(15.0 * RATE)) / RATE)


def log_of(moved: SampledMotion, forces: np.ndarray) -> xr.Dataset:
    sensors = Sensors(resolution=np.full(2, 1e-6), force_noise=np.full(2, NOISE))
    names, units = ("motor_1", "motor_2"), (["rad"] * 2, ["N m"] * 2)
    return measure(
        moved.time, moved.position, forces, names, *units, sensors, np.random.default_rng(2)
    )


def require_truth(data: RegressionData, truth: dict[str, float]) -> None:
    """Fit, and compare the parameters that stand alone in a base parameter."""
    result = fit_regression(*split_data(data), WeightedLeastSquares())
    alone = {base.name: k for k, base in enumerate(result.base.base)}
    for name, value in truth.items():
        k = alone[name]
        assert abs(result.values[k] - value) < DEVIATIONS * result.standard_deviations[k], name


def test_friction_of_all_joints_of_a_loop_is_identified(
    five_bar: Model, moved: SampledMotion
) -> None:
    forces = five_bar.actuators.inverse_dynamics(
        moved.position, moved.velocity, moved.acceleration
    ).force
    data = regression_data(five_bar, log_of(moved, forces), PREPARATION)
    truth = {f"{joint}.viscous": viscous for joint, (viscous, _) in ELBOWS.items()}
    truth |= {f"{joint}.coulomb": coulomb for joint, (_, coulomb) in ELBOWS.items()}
    require_truth(data, truth)


@pytest.mark.parametrize("output", ["actuators", "joints"])
def test_asymmetric_and_stribeck_friction_of_passive_joints(
    five_bar: Model, moved: SampledMotion, output: str
) -> None:
    """The forces by virtual work with differences of the tracked angles, the columns by the embedding."""
    plain = five_bar.actuators.inverse_dynamics(moved.position, moved.velocity, moved.acceleration)
    step = 1e-5
    names, slopes, speeds = ("tip", "elbow_2"), {}, {}
    columns = [five_bar.topology.coordinate_names.index(name) for name in names]
    turned = [
        [
            five_bar.actuators.kinematics(moved.position + sign * step * axis).q[:, columns]
            for sign in (1.0, -1.0)
        ]
        for axis in np.eye(2)
    ]
    for k, name in enumerate(names):
        slopes[name] = np.stack([(a[:, k] - b[:, k]) / (2 * step) for a, b in turned], axis=1)
        speeds[name] = (slopes[name] * moved.velocity).sum(axis=1)
    forces = plain.force + slopes["tip"] * (0.02 * np.abs(speeds["tip"]) + 0.03)[:, None]
    stribeck = 0.05 * np.sign(speeds["elbow_2"]) * np.exp(-((speeds["elbow_2"] / 0.2) ** 2))
    forces += slopes["elbow_2"] * stribeck[:, None]
    log = log_of(moved, forces)
    data = regression_data(five_bar, log, PREPARATION, output=output, ties=parameter_ties(five_bar))
    added = friction_columns(
        five_bar, log, PREPARATION, asymmetric=["tip"], stribeck={"elbow_2": 0.2}, output=output
    )
    assert added[1:] == (
        ("tip.coulomb_asymmetry", "tip.viscous_asymmetry", "elbow_2.stribeck"),
        ("N m", "N m s/rad", "N m"),
    )
    truth = {"tip.viscous_asymmetry": 0.02, "tip.coulomb_asymmetry": 0.03, "elbow_2.stribeck": 0.05}
    require_truth(with_columns(data, *added), truth)


def test_friction_of_what_has_no_coordinate_is_refused(
    five_bar: Model, moved: SampledMotion
) -> None:
    log = log_of(moved, np.zeros((len(moved.time), 2)))
    with pytest.raises(IdentificationError, match="tip_1"):
        friction_columns(five_bar, log, PREPARATION, asymmetric=["tip_1"])
    with pytest.raises(IdentificationError, match="not positive"):
        friction_columns(five_bar, log, PREPARATION, stribeck={"tip": 0.0})
    with pytest.raises(IdentificationError, match="no element"):
        friction_columns(five_bar, log, PREPARATION)


def test_such_friction_is_identified(five_bar: Model, moved: SampledMotion) -> None:
    forces = five_bar.actuators.inverse_dynamics(
        moved.position, moved.velocity, moved.acceleration
    ).force
    speed = moved.velocity[:, 0]
    forces[:, 0] += 0.02 * np.abs(speed) + 0.04 * np.sign(speed) * np.exp(-((speed / 0.3) ** 2))
    laws = {"asymmetric": ("shoulder_1",), "stribeck": {"motor_1": "0.3 rad/s"}}
    document = identified(five_bar, log_of(moved, forces), trim=5, **laws)
    assert document["status"] == "ok"
    by_name = {row["name"]: row for row in document["base_parameters"]}
    for name, truth in (
        ("shoulder_1.viscous_asymmetry", 0.02),
        ("motor_1.stribeck", 0.04),
        ("tip.coulomb", 0.03),
    ):
        assert (
            abs(by_name[name]["value"] - truth) < DEVIATIONS * by_name[name]["standard_deviation"]
        ), name
    with pytest.raises(InputError, match="an angular speed"):
        identified(five_bar, log_of(moved, forces), trim=5, stribeck={"tip": "1 m/s"})
