"""Wrong units, dead and copied channels and impossible masses are reported, sound logs are not.

The logs come from the closed formulae of `planar_arm`, which share no code with the identified
machine.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from identifying import identified
from planar_arm import (
    DRIVES,
    FRICTION,
    MACHINE,
    TRUE,
    arm_forces,
    arm_log,
    arm_motion,
    arm_regressor,
    with_channel,
)

import tauloop as tl
from tauloop import Model
from tauloop.export.controller import ControllerOptions
from tauloop.export.controller.equations import controller_equations
from tauloop.formats import loads
from tauloop.identification import (
    OrdinaryLeastSquares,
    WeightedLeastSquares,
    fit_regression,
    regression_data,
)
from tauloop.identification.faults.channels import wrong_channels
from tauloop.identification.faults.measured_motion import measured_motion
from tauloop.identification.faults.recording.dead_channels import copied, dead
from tauloop.identification.faults.recording.time_unit import wrong_time_unit
from tauloop.identification.parameters.prior import compare_with_prior
from tauloop.identification.regression.from_log import parameter_ties
from tauloop.logs import Preparation, Signals, prepared_signals

PREPARATION = Preparation(cutoff=30.0, trim=40)
RAW = Preparation(cutoff=None, trim=5)
MOTION = arm_motion(3000)
#: Relative tolerance of ratios of estimates from noisy logs.
RATIO_TOLERANCE = 0.05


@pytest.fixture(scope="module")
def model() -> Model:
    return Model(loads(MACHINE))


@pytest.fixture(scope="module")
def sound() -> Signals:
    return arm_log(MOTION, arm_forces(MOTION))


def scaled(log: Signals, quantity: str, factor: float) -> Signals:
    channels = (
        replace(channel, values=channel.values * (factor if channel.quantity == quantity else 1.0))
        for channel in log.channels
    )
    return replace(log, channels=tuple(channels))


def sentences(model: Model, log: Signals) -> tuple[str, ...]:
    data = regression_data(model, log, PREPARATION)
    comparison = compare_with_prior(
        model, fit_regression(data, None, WeightedLeastSquares()), data.unknowns
    )
    return tuple(str(problem) for problem in comparison.findings)


@pytest.mark.parametrize(
    ("factor", "unit"), [(1e3, "milli units"), (1e-3, "kilo units"), (9.80665, "kgf")]
)
def test_forces_in_another_unit_are_told_by_the_factor_that_parameters_share(
    model: Model, sound: Signals, factor: float, unit: str
) -> None:
    assert sentences(model, sound) == ()
    (gauges,) = sentences(model, scaled(sound, "force", factor))
    assert unit in gauges


@pytest.mark.parametrize("stretch", [2.0, 0.5, 10.0])
def test_a_wrong_sampling_rate_is_named_with_the_right_one(
    model: Model, sound: Signals, stretch: float
) -> None:
    """Weight and inertia have masses in common, which determines the time scale."""

    def faults_of(log: Signals, factor: float = 1.0) -> tuple[str, ...]:
        preparation = replace(PREPARATION, cutoff=30.0 / factor)
        motion = measured_motion(model, prepared_signals(log, preparation))
        return tuple(str(problem) for problem in wrong_channels(model, motion))

    assert faults_of(sound) == ()
    period = sound.time[1] - sound.time[0]
    stretched = replace(sound, time=stretch * sound.time)
    (fault,) = faults_of(stretched, stretch)
    assert fault.startswith(f"time: has steps of {stretch * period:g} s, but they seem to be")
    assert f"{period:g} s long" in fault


def test_estimates_stand_beside_the_values_of_the_machine_file(
    model: Model, sound: Signals
) -> None:
    """The reference is least squares in NumPy with the formulae's regressor and regrouping."""
    data = regression_data(model, sound, PREPARATION)
    comparison = compare_with_prior(
        model, fit_regression(data, None, OrdinaryLeastSquares()), data.unknowns
    )
    rows = {str(row["name"]): row for row in comparison.rows()}
    m1x, m1y, inertia_1, m2, m2x, m2y, inertia_2 = TRUE[1:]
    expected = {
        "link1.mcx": m1x + 0.4 * m2,
        "link1.mcy": m1y,
        "link1.Izz": inertia_1 + 0.16 * m2,
        "link2.mcx": m2x,
        "link2.mcy": m2y,
        "link2.Izz": inertia_2,
        "shoulder.viscous": FRICTION,
        "elbow.coulomb": FRICTION,
    }
    for name, value in expected.items():
        (row,) = (row for key, row in rows.items() if key.split(" ")[0] == name)
        assert row["machine_file"] == pytest.approx(value, rel=1e-12)
        assert row["ratio"] is None or row["ratio"] == pytest.approx(1.0, abs=RATIO_TOLERANCE)
    assert "comparable base parameters are within a factor of 1.3" in comparison.remarks[0]


def test_a_machine_half_as_heavy_as_its_file_is_no_matter_of_units(model: Model) -> None:
    forces = arm_regressor(*MOTION[1:]) @ (TRUE * [1, 0.5, 0.6, 0.7, 1, 0.4, 0.8, 0.5])
    assert (
        sentences(model, arm_log(MOTION, forces + FRICTION * (MOTION[2] + np.sign(MOTION[2]))))
        == ()
    )


def test_a_negative_moment_of_inertia_is_named(model: Model) -> None:
    """The second link has a negative inertia: the sign of its whole column is changed."""
    less = TRUE - [0, 0, 0, 0, 0, 0, 0, 0.15]
    (gauges,) = sentences(model, arm_log(MOTION, arm_regressor(*MOTION[1:]) @ less))
    assert gauges.startswith("link2.Izz: is estimated as -0.0")
    assert "impossible" in gauges


def test_a_mass_beyond_all_that_the_file_has_is_named() -> None:
    """A cart on a rail has force = mass times acceleration plus a constant, 50 kg, not 0.5 kg."""
    text = """
format: tauloop-machine/1
name: carts
provenance: {status: chosen, source: a test}
gravity: [0, 0, -9.81 m/s^2]
bodies: {cart: {mass: 0.5 kg}, other: {mass: 0.5 kg}}
joints:
  rail: {type: prismatic, axis: x, parent: base, child: cart}
  across: {type: prismatic, axis: y, parent: cart, child: other}
actuators: {motor_1: {on: rail}, motor_2: {on: across}}
platform: {body: other, independent: [rail, across]}
"""
    _, _, _, a = MOTION
    forces = np.stack([50.5 * a[:, 0], 0.5 * a[:, 1]], axis=1)
    log = arm_log(MOTION, forces)
    units = {"position": "m", "force": "N"}
    log = replace(
        log,
        channels=tuple(replace(channel, unit=units[channel.quantity]) for channel in log.channels),
    )
    (sentence,) = sentences(Model(loads(text)), log)
    assert "cart.m" in sentence
    assert "impossible: the total mass in the file is 1 kg" in sentence


@pytest.mark.parametrize("factor", [1e3, 1e6], ids=["ms", "us"])
@pytest.mark.parametrize("heavier", [1.0, 2.0])
def test_time_in_another_unit_is_told_by_the_inertial_forces(
    model: Model, sound: Signals, factor: float, heavier: float
) -> None:
    def warnings_on(log: Signals) -> list[str]:
        return [
            str(problem)
            for problem in wrong_time_unit(
                model, measured_motion(model, prepared_signals(log, RAW))
            )
        ]

    inputs = scaled(sound, "force", heavier)
    assert warnings_on(inputs) == []
    (problem,) = warnings_on(replace(inputs, time=inputs.time * factor))
    assert f"in {'ms' if factor == 1e3 else 'us'}, but the log states s" in problem


def drives(log: Signals, kind: str) -> np.ndarray:
    return next(channel.values for channel in log.channels if channel.name == kind)


DEAD: dict[str, tuple[Callable[[Signals], Signals], str, str]] = {
    "no force": (
        lambda log: with_channel(log, "force.motor_2", np.zeros(3000)),
        "force.motor_2",
        "is 0 in all",
    ),
    "one force": (
        lambda log: with_channel(log, "force.motor_1", np.full(3000, 0.3)),
        "force.motor_1",
        "is 0.3 in all",
    ),
    "no position": (
        lambda log: with_channel(log, "position.motor_2", np.zeros(3000)),
        "position.motor_2",
        "--hold",
    ),
    "a copy": (
        lambda log: with_channel(log, "force.motor_2", drives(log, "force.motor_1")),
        "force.motor_2",
        "is a copy of force.motor_1",
    ),
    "a copy in degrees": (
        lambda log: with_channel(
            log, "position.motor_2", np.rad2deg(drives(log, "position.motor_1")) + 3.0
        ),
        "position.motor_2",
        "is a copy of position.motor_1",
    ),
    "a position as force": (
        lambda log: with_channel(log, "force.motor_1", drives(log, "position.motor_2")),
        "force.motor_1",
        "is a copy of position.motor_2",
    ),
}


@pytest.mark.parametrize("case", DEAD)
def test_dead_and_copied_channels_are_named(sound: Signals, case: str) -> None:
    assert dead(sound, DRIVES) == copied(sound, DRIVES) == ()
    spoil, where, what = DEAD[case]
    spoiled = spoil(sound)
    (problem,) = (*dead(spoiled, DRIVES), *copied(spoiled, DRIVES))
    assert problem.where == where
    assert what in str(problem)


def test_a_symmetric_motion_is_no_copy() -> None:
    """Two drives with equal motion have similar forces: their positions are equal, as commanded."""
    t, q, *_ = MOTION
    both = np.stack([q[:, 0], q[:, 0]], axis=1)
    log = arm_log((t, both), np.sin(both), encoder=0.0)
    assert copied(log, DRIVES) == ()


def test_a_log_in_milli_is_doubtful_and_says_so(sound: Signals) -> None:
    document = identified(loads(MACHINE), scaled(sound, "force", 1e3), cutoff=30.0, trim=40)
    assert document["status"] == "doubtful"
    assert any(
        "times their value in the machine file" in single["what"] for single in document["findings"]
    )
    assert {row["name"] for row in document["machine_file"]} == {
        row["name"] for row in document["base_parameters"]
    }


WRITTEN = {
    "crank_length: 0.25 m": "crank_length: 25 cm",
    "link_length: 0.35 m": "link_length: 350 mm",
    "crank_mass: 0.40 kg": "crank_mass: 400 g",
    "value: 0.30 kg, note": "value: 300 g, note",
    "value: 2.6e-3 kg m^2": "value: 26 kg cm^2",
    "rotor_inertia: 5.0e-4 kg m^2": "rotor_inertia: 5 kg cm^2",
    "viscous: 0.01 N m s/rad, coulomb: 0.05 N m": "viscous: 10 mN m s/rad, coulomb: 50 mN m",
}


def test_figures_in_si_stand_beside_si_units_however_the_file_is_written() -> None:
    """A crank of 400 g is identified as 0.4 kg: it was 0.4 g."""
    text = (Path(tl.__file__).parent / "mechanism/machines/five_bar.yaml").read_text(
        encoding="utf-8"
    )
    other = text
    for old, new in WRITTEN.items():
        assert old in other
        other = other.replace(old, new)
    machines = [loads(text), loads(other)]
    free = ("crank_length", "crank_mass", "shoulder_1.friction.coulomb")
    models = [Model(machine, free) for machine in machines]
    units = [parameter_ties(model, free[1:]).units for model in models]
    assert units[0] == units[1] == ("kg", "N m")
    assert [p.unit for p in machines[1].parameters if p.name in free] == ["cm", "g", "mN m"]
    written = [
        tl.write_equations(machine, tl.EquationOptions(keep=free, parts=("loops",))).as_dict()[
            "symbols"
        ]
        for machine in machines
    ]
    assert written[0] == written[1]
    for model in models:
        equations = controller_equations(model, ControllerOptions(deceleration=(50.0,)))
        assert [channel.units for channel in equations.parameters if channel.name == "machine"] == [
            ("m", "kg", "N m")
        ]


def test_lengths_in_millimetres_stand_in_formulas() -> None:
    path = Path(tl.__file__).parent / "mechanism/machines/pendulum_arm.yaml"
    text = re.sub(
        r"(upper_length: (?:{value: )?)0\.(\d+) m",
        r"\g<1>\g<2>0 mm",
        path.read_text(encoding="utf-8"),
    )
    machine = loads(text)
    assert machine.parameters["upper_length"].unit == "mm"
    in_millimeters = tl.symbolic_base_parameters(machine).base
    in_meters = tl.symbolic_base_parameters(tl.load("pendulum_arm")).base
    assert list(map(str, in_millimeters)) == list(map(str, in_meters))
