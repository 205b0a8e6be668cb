"""Defaults of templates in proportion to the user's lengths: similar machines, and all usable."""

from __future__ import annotations

import numpy as np
import pytest

import tauloop as tl
from tauloop.authoring import dimensions
from tauloop.authoring.text import NamedValue
from tauloop.mechanism.description.units import literal

#: Three digits of every length: positions and weights of a similar machine, relative.
DIGITS = 0.03


def structure(template: str) -> list[NamedValue]:
    """Return the lengths of a template that are not those of its work volume."""
    return [
        item
        for item in dimensions(template)
        if str(literal(item.text).dimension) == "m" and not item.name.startswith("stroke")
    ]


@pytest.mark.parametrize(
    ("template", "ratio"),
    [
        ("delta", 0.3),
        ("delta", 3.0),
        ("linear-delta", 2.5),
        ("hexapod", 0.4),
        ("five-bar", 0.2),
        ("gantry-tau", 1.7),
        ("cable", 3.0),
        ("spherical", 2.0),
        ("serial", 0.5),
    ],
)
def test_one_stated_length_makes_a_similar_machine_that_works(template: str, ratio: float) -> None:
    """Forces at rest grow by s^3, torques by s^4; angles and shares of the work volume stay."""
    first = max(structure(template), key=lambda item: item.value or 0.0)
    result = tl.new_machine("mine", template, values={first.name: first.scaled(ratio)})
    assert result.status.value == "ok", result.advice
    stated = {item.name: item for item in result.dimensions}
    s = (stated[first.name].value or 0.0) / (first.value or 1.0)
    for item in structure(template):
        if item.value:
            assert (stated[item.name].value or 0.0) / item.value == pytest.approx(s, rel=DIGITS)
    assert first.name not in result.scaled
    models = [
        tl.new_machine("mine", template).inspection.model,
        result.inspection.model,
    ]
    if models[0].mechanism.cables:
        return  # tensions have bounds of their own
    forces = []
    for model in models:
        position = model.platform_position(model.assembly.q)
        rates = np.zeros(model.platform.ports.velocity.size)
        forces.append(model.platform.inverse_dynamics(position, rates, rates).force)
    units = models[0].output_ports("actuators")[1]
    powers = np.array([3.0 if unit == "N" else 4.0 for unit in units])
    largest = np.abs(forces[0]).max()
    assert forces[1] / s**powers == pytest.approx(forces[0], rel=5 * DIGITS, abs=DIGITS * largest)


def test_a_larger_work_volume_enlarges_the_machine_and_a_smaller_one_does_not() -> None:
    large = tl.new_machine("mine", "delta", values={"stroke_width": "900 mm"})
    assert large.status.value == "ok"
    values = {item.name: item.text for item in large.dimensions}
    assert values["arm_length"] == "720 mm"
    assert values["arm_mass"] == "21.6 kg"
    assert values["motor_torque"] == "3240 N m"
    small = tl.new_machine("mine", "delta", values={"stroke_width": "30 mm"})
    assert small.scaled == ()
    assert small.status.value == "ok"


def test_a_work_volume_that_nobody_stated_gives_way() -> None:
    """Long arms at a fixed depth leave a smaller box; the user's own lengths stay."""
    values = {"arm_length": "240 mm", "forearm_length": "520 mm", "depth": "660 mm"}
    values |= {"motor_radius": "200 mm", "plate_radius": "45 mm"}
    result = tl.new_machine("mine", "delta", values=values)
    assert result.status.value == "ok", result.advice
    named = {item.name: item for item in result.dimensions}
    for name, text in values.items():
        assert named[name].text == text
    assert (named["stroke_width"].value or 1.0) < 0.29


def test_bounds_hold_and_other_sources_keep_their_values() -> None:
    """A frame of 190 m: forces end at their bounds. A shipped machine is a real one."""
    large = tl.new_machine("mine", "cable", values={"frame_length": "190 m"})
    for item in large.dimensions:
        if item.bounds and item.value is not None:
            low, high = (literal(end).value for end in item.bounds)
            assert low <= item.value <= high
    copied = tl.new_machine("mine", "linear_delta", values={"plate_radius": "60 mm"})
    assert copied.scaled == ()
    assert copied.inspection.model.mechanism.parameters["plate_mass"].value == 0.18


def test_questions_propose_values_in_proportion_to_answers() -> None:
    """A terminal asks one value after the other; the first arm makes the others twice as long."""
    before = {item.name: item.value for item in dimensions("delta")}
    after = {item.name: item.value for item in dimensions("delta", {"arm_length": "480 mm"})}
    assert after["forearm_length"] == pytest.approx(2.0 * (before["forearm_length"] or 0.0))
    assert after["arm_length"] == before["arm_length"]
    assert dimensions("linear_delta", {"plate_radius": "60 mm"}) == dimensions("linear_delta")
