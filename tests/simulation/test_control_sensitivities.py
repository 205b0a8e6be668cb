"""Derivatives of control loops beside differences of loops without them."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from python_runs import InterpretedLoop

import tauloop as tl
from tauloop import Model, load
from tauloop.common.errors import InputError
from tauloop.integrate.integrators import DormandPrince
from tauloop.motion import POLYNOMIAL_345, Line, Seconds, StrokeOptions, plan, stroke
from tauloop.simulation.controllers.laws import (
    PD,
    ComputedTorque,
    FeedForward,
    GravityCompensation,
    Sampling,
)
from tauloop.simulation.controllers.run import follow

#: Central differences over a share of a value; speeds are themselves differences at 1 kHz, which
#: lose three digits.
CLOSE, SHARE, ROUNDING = 1e-6, 1e-4, 1e-11
#: Delayed by half a period, speeds from differences.
SAMPLING = Sampling(frequency=1000.0, delay=0.0005, velocity_differences=True)
BANDWIDTH = 100.0


@cache
def trajectory(name: str, seconds: float = 0.2):
    mechanism = load(name)
    model = Model(
        mechanism.with_values(
            dict.fromkeys((leaf for leaf in mechanism.parameters.names if "coulomb" in leaf), 0.0)
        )
    )
    here = model.platform.ports.at(model.assembly.q)
    shift = np.where(np.array(model.platform.ports.position.units) == "m", 0.002, 0.0)
    path = stroke(model, Line(here - shift, here + shift), model.platform.ports.position.columns)
    return plan(path, POLYNOMIAL_345, Seconds(seconds))


def require_differences(
    name: str, law, space: str, parameters: tuple[str, ...], kept=ROUNDING, **options
) -> None:
    """Derivatives by parameters of the machine and by both gains are those of differences."""
    made, gains = trajectory(name), {"bandwidth": BANDWIDTH, "damping": 0.9}
    mechanism, names = made.stroke.model.mechanism, (*parameters, *gains)
    by = follow(
        made, law(space=space, **gains), SAMPLING, sensitivities=names, **options
    ).sensitivities
    assert by is not None
    for name in names:
        value = gains.get(name) or mechanism.parameters[name].value
        h, ends = SHARE * value, []
        for end in (value + h, value - h):
            plant = None if name in gains else Model(mechanism.with_values({name: end}))
            changed = gains | ({name: end} if name in gains else {})
            ends.append(follow(made, law(space=space, **changed), SAMPLING, plant=plant, **options))
        for quantity in ("position", "velocity", "force"):
            result = by[quantity].sel(by=name).values
            differences = (getattr(ends[0], quantity) - getattr(ends[1], quantity)) / (2 * h)
            least = kept * np.abs(getattr(ends[0], quantity)).max() / h
            assert (
                np.abs(result - differences).max() <= CLOSE * np.abs(differences).max() + least
            ), (name, quantity)


@pytest.mark.nightly
def test_a_loop_changes_with_its_plant_and_its_gains():
    require_differences("five_bar", ComputedTorque, "joint", ("crank_length", "link_mass"))


@pytest.mark.nightly
@pytest.mark.parametrize("law", [PD, GravityCompensation, FeedForward, ComputedTorque])
@pytest.mark.parametrize("space", ["joint", "platform"])
def test_every_law_changes_as_differences_say(law, space):
    require_differences("nuwar", law, space, ("plate_mass", "arm_length", "motor_radius"))


@pytest.mark.nightly
def test_quaternions_and_newtons_loops_change_as_differences_say():
    require_differences("rcid", ComputedTorque, "platform", ("link_length", "plate_radius"))


@pytest.mark.nightly
def test_adaptive_steps_change_as_differences_say():
    require_differences(
        "five_bar",
        PD,
        "joint",
        ("crank_length",),
        kept=1e-10,
        method=DormandPrince(rtol=1e-11, atol=1e-13),
    )


@pytest.mark.nightly
def test_python_finds_what_machine_code_finds():
    made, names = trajectory("five_bar", 0.01), ("link_mass", "damping", "position.platform.x")
    law = ComputedTorque(bandwidth=BANDWIDTH)
    runs = [
        follow(made, law, SAMPLING, sensitivities=names, loop=loop)
        for loop in (None, InterpretedLoop())
    ]
    for quantity in ("position", "velocity", "force"):
        single, other = (run.sensitivities[quantity].values for run in runs)
        np.testing.assert_allclose(single, other, atol=1e-9 * np.abs(single).max())


def test_arrays_have_names_and_units():
    options = tl.ControlOptions(
        stroke=StrokeOptions(end={"platform.y": 0.31}, duration=0.01),
        controller=("pd",),
        sensitivities=("link_mass", "damping"),
    )
    by = tl.follow_path(trajectory("five_bar").stroke.model, options).runs["pd"].sensitivities
    assert by.position.dims == ("time", "position_of", "by")
    assert list(by["by_unit"].values) == ["kg", "1"]
    assert list(by["position_of"].values) == ["platform.x", "platform.y"]


def test_what_has_no_derivatives_is_refused_all_at_once():
    made, law = trajectory("five_bar"), PD(bandwidth=BANDWIDTH)
    with pytest.raises(InputError) as caught:
        follow(made, law, SAMPLING, sensitivities=("link_mas", "damp"))
    assert [problem.where for problem in caught.value.problems] == ["sensitivities"] * 2
    with pytest.raises(InputError, match="count in steps of 2e-05"):
        follow(made, law, Sampling(resolution=2e-5), sensitivities=("damping",))
    with pytest.raises(InputError, match="jumps at a reversal"):
        follow(made, law, SAMPLING, plant=Model(load("five_bar")), sensitivities=("damping",))
