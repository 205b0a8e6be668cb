"""Wrong units, zeros, gear ratios and torque constants are found with their sizes and alternatives.

The torques come from the closed formulae of `planar_arm`.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from identifying import identified
from mujoco_arms import THREE_JOINTS, described
from planar_arm import FRICTION, MACHINE, TRUE, arm_log, arm_regressor

from tauloop import Model, load
from tauloop.formats import loads
from tauloop.identification.faults import zeros_and_scales as zeros_and_scales_module
from tauloop.logs import Signals
from tauloop.logs.log import Channel
from tauloop.motion import random_multisine

RATE, DURATION = 200.0, 20.0  # Hz, s
TIME = np.arange(round(RATE * DURATION)) / RATE
OPTIONS: dict[str, Any] = {"cutoff": 30.0, "trim": 60, "decimation": 2}


@pytest.fixture(scope="module")
def model() -> Model:
    return Model(loads(MACHINE))


def sound(seed: int = 1) -> Signals:
    w, size = (
        np.array([[2.1, 4.3, 7.9], [3.1, 5.9, 9.1]]),
        np.array([[0.6, 0.35, 0.15], [0.7, 0.3, 0.12]]),
    )
    angle = w * TIME[:, None, None] + np.arange(3)
    parts = size * np.sin(angle), size * w * np.cos(angle), -size * w**2 * np.sin(angle)
    q, v, a = (part.sum(axis=2) for part in parts)
    forces = arm_regressor(q, v, a) @ TRUE + FRICTION * (v + np.sign(v))
    return arm_log((TIME, q), forces, noise=0.1, encoder=1e-5, rng=np.random.default_rng(seed))


def changed(changes: dict[str, tuple[float, float]]) -> Signals:
    """Return the log with some channels multiplied by a factor, plus an offset."""
    log = sound()
    channels = tuple(
        replace(channel, values=channel.values * factor + offset)
        for channel in log.channels
        for factor, offset in [changes.get(channel.name, (1.0, 0.0))]
    )
    return replace(log, channels=channels)


def findings(model: Model, log: Signals, **options: Any) -> dict[str, str]:
    document = identified(model, log, **OPTIONS | options)
    return {
        finding["where"]: f"{finding['what']} remedy: {finding['remedy']}"
        for finding in document["findings"]
    }


def number(pattern: str, text: str) -> float:
    matched = re.search(pattern.replace("#", r"([-+.e0-9]+)"), text)
    assert matched, text
    return float(matched.group(1))


@pytest.mark.parametrize(
    ("factor", "unit"),
    [(180.0 / np.pi, "deg"), (0.5 / np.pi, "rev"), (1e3, "mrad")],
    ids=["deg", "rev", "mrad"],
)
@pytest.mark.parametrize("names", [("motor_1", "motor_2"), ("motor_2",)], ids=["all", "one"])
def test_positions_in_another_unit_than_declared(
    model: Model, factor: float, unit: str, names: tuple[str, ...]
) -> None:
    problems = findings(model, changed({f"position.{name}": (factor, 0.0) for name in names}))
    where = " and ".join(f"position.{name}" for name in names)
    assert f"to be in {unit}, but the log states rad" in problems[where]
    assert f"[{unit}]'" in problems[where]


@pytest.mark.parametrize(("name", "degrees"), [("motor_1", 5.0), ("motor_1", -8.0)])
def test_a_zero_that_is_off(model: Model, name: str, degrees: float) -> None:
    (text,) = findings(model, changed({f"position.{name}": (1.0, np.radians(degrees))})).values()
    assert number("zero error of # \\+-", text) == pytest.approx(degrees, abs=0.7)


def test_what_forces_do_not_show_is_stated(model: Model) -> None:
    """A rotated frame of the last link replaces its joint's zero; gravity shows the first zero."""
    for log in (sound(), changed({"position.motor_2": (1.0, np.radians(5.0))})):
        document = identified(model, log, **OPTIONS)
        assert document["status"] == "ok"
        assert [text.partition(":")[0] for text in document["not_shown"]] == [
            "the zero of position.motor_2"
        ]


@pytest.mark.parametrize(("name", "factor"), [("motor_1", 1.2), ("motor_2", 0.8), ("motor_2", 1.5)])
def test_a_wrong_gear_ratio(model: Model, name: str, factor: float) -> None:
    """The ratio is wrong for the position alone, or for position and force."""
    problems = findings(model, changed({f"position.{name}": (factor, 0.0)}))
    assert number(
        "is # \\+- .* times as large as the other", problems[f"position.{name}"]
    ) == pytest.approx(factor, rel=0.03)
    both = changed({f"position.{name}": (factor, 0.0), f"force.{name}": (1.0 / factor, 0.0)})
    text = findings(model, both)[f"position.{name}"]
    assert "is based on a wrong gear ratio" in text
    assert number("it is # \\+-", text) == pytest.approx(factor, rel=0.03)


@pytest.mark.parametrize(
    ("name", "factor"), [("motor_1", 1.2), ("motor_2", 1.2), ("motor_1", 1.0 / 1.2)]
)
def test_a_wrong_torque_constant_and_the_drives_that_forces_do_not_distinguish(
    model: Model, name: str, factor: float
) -> None:
    (text,) = findings(model, changed({f"force.{name}": (factor, 0.0)})).items()
    whole = " ".join(text)
    assert "forces do not distinguish this from" in whole
    other = "motor_2" if name == "motor_1" else "motor_1"
    sizes = {
        place: float(size)
        for place, size in re.findall(r"force\.(motor_\d) is ([.0-9]+) \+-", whole)
    }
    assert sizes[name] == pytest.approx(factor, rel=0.03)
    assert sizes[other] == pytest.approx(1.0 / factor, rel=0.03)


@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_said_of_sound_logs(model: Model, seed: int) -> None:
    assert findings(model, sound(seed)) == {}


@pytest.fixture(scope="module")
def spatial(tmp_path_factory: pytest.TempPathFactory) -> tuple[Model, Signals]:
    """Return an arm of three joints with friction, and its log at 500 Hz with an encoder of 19 bits."""
    path = tmp_path_factory.mktemp("arm") / "arm.xml"
    path.write_text(described(THREE_JOINTS), encoding="utf-8")
    model = Model(load(path))
    time = np.arange(10_000) / 500.0
    rng = np.random.default_rng(3)
    motion = random_multisine(
        np.zeros(3), np.full(3, 0.8), rng, terms=5, lowest=0.2, highest=1.6
    ).sample(time)
    forces = model.actuators.inverse_dynamics(
        motion.position, motion.velocity, motion.acceleration
    ).force
    forces = forces + 0.02 * np.sqrt(np.mean(forces**2, axis=0)) * rng.standard_normal(forces.shape)
    step = 2.0 * np.pi / 2**19
    position = step * np.round(motion.position / step)
    channels = tuple(
        Channel(quantity=quantity, channel=actuator.name, values=column.copy(), unit=unit)
        for quantity, unit, values in (("position", "rad", position), ("force", "N m", forces))
        for actuator, column in zip(model.mechanism.actuators, values.T, strict=True)
    )
    return model, Signals(time=time, channels=channels)


@pytest.mark.parametrize(
    ("factor", "offset", "pattern", "size", "tolerance"),
    [
        (1.1, 0.0, "^is # \\+- .* times as large as the other", 1.1, 0.01),
        (1.0, np.radians(5.0), "^has a zero error of # \\+-", 5.0, 1.0),
        (1.0, 0.0, "", 0.0, 0.0),
    ],
    ids=["ratio", "zero", "sound"],
)
def test_a_ratio_and_a_zero_are_not_taken_for_friction_or_accelerations(
    spatial: tuple[Model, Signals],
    factor: float,
    offset: float,
    pattern: str,
    size: float,
    tolerance: float,
) -> None:
    """The ratio looks like presliding friction of another joint, the zero like bad accelerations."""
    model, log = spatial
    channels = tuple(
        replace(channel, values=channel.values * factor + offset)
        if channel.name == "position.shoulder_motor"
        else channel
        for channel in log.channels
    )
    document = identified(model, replace(log, channels=channels), trim=100, decimation=5)
    reported = {finding["where"]: finding["what"] for finding in document["findings"]}
    if not pattern:
        assert reported == {}
        return
    assert list(reported) == ["position.shoulder_motor"]
    assert number(pattern, reported["position.shoulder_motor"]) == pytest.approx(
        size, abs=tolerance
    )


def test_the_reported_deviation_is_that_of_fits_without_each_block() -> None:
    """The direct route fits all parameters again without each of the twelve blocks."""
    rng = np.random.default_rng(4)
    blocks = zeros_and_scales_module.DEVIATION_BLOCKS
    design = rng.standard_normal((40 * blocks, 2, 5)) * np.linspace(1.0, 3.0, 5)
    column = rng.standard_normal((40 * blocks, 2)) + design[:, :, 0]
    forces = design.sum(axis=2) + 0.7 * column + 0.1 * rng.standard_normal(column.shape)
    comparison = object.__new__(zeros_and_scales_module._Comparison)
    comparison._present = np.ones(column.shape)
    comparison._weights = np.ones(2)
    comparison._basis = np.linalg.qr(design.reshape(-1, 5))[0]
    flat = forces.ravel()
    fitted = comparison._basis @ (comparison._basis.T @ flat)
    comparison._residual = (flat - fitted).reshape(forces.shape)
    columns = np.column_stack([design.reshape(-1, 5), column.ravel()])
    number = np.repeat(np.arange(blocks), 80)
    sizes = [
        np.linalg.lstsq(columns[number != block], flat[number != block], rcond=None)[0][-1]
        for block in range(blocks)
    ]
    expected = 1.12 * np.sqrt((blocks - 1) * np.var(sizes))
    assert comparison._reported_deviation(column) == pytest.approx(expected, rel=1e-9)
