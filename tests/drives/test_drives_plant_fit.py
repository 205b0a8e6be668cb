"""Unknown figures of a drive line from printed criteria, on plants that are known; and the tuning experiment."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tauloop.common.errors import InputError
from tauloop.compiler.c.calling.compiler import find_compiler
from tauloop.drives import LINE_INTEGRATOR, Axis, load_drive, simulate_axis
from tauloop.drives.machine.lines import with_motors
from tauloop.drives.plant_search import (
    Observation,
    PlantUnknown,
    assess_plant,
    predicted,
    search_plant,
    slopes,
)
from tauloop.drives.tuning.evaluations import box_differences

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="needs a C compiler")

#: Events and steps of the integrator make criteria smooth to about 1e-6; the fits stop within a few
#: of their steps.
FOUND = 1e-3
TRUTH = {"cart_viscous": 2400.0, "preload": 8.5, "first_step": 0.12}
UNKNOWNS = (
    PlantUnknown(name="cart_viscous", lower=1000.0, upper=6000.0),
    PlantUnknown(name="preload", lower=5.0, upper=12.0, logarithmic=False),
    PlantUnknown(name="first_step", lower=0.05, upper=0.3),
)
GAINS = {"kp": 150.0, "ti": 1.8}


@pytest.fixture(scope="module")
def axis() -> Axis:
    return Axis(load_drive("dual_motor_axis"))


@pytest.fixture(scope="module")
def observations(axis: Axis) -> tuple[Observation, ...]:
    """Two steps of the true plant, simulated one by one (the fit's batches are another route)."""
    plant = {name: value for name, value in TRUTH.items() if name in axis.names}
    first = simulate_axis(axis, {**plant, **GAINS}, step=TRUTH["first_step"])
    second = simulate_axis(axis, plant, step=0.1)
    scales = {"rise_time": 2.0, "energy": 1000.0}
    cost = float(second.rise_time[0] / 2.0 + second.energy[0] / 1000.0)
    printed = {"rise_time": float(first.rise_time[0]), "energy": float(first.energy[0])}
    return (
        Observation(
            name="first",
            parameters=GAINS,
            step="first_step",
            measured=printed,
            tolerances={name: 0.01 * value for name, value in printed.items()},
            scales={},
        ),
        Observation(
            name="second",
            parameters={},
            step=0.1,
            measured={"cost": cost, "energy": float(second.energy[0])},
            tolerances={"cost": 0.01 * cost, "energy": 0.01 * float(second.energy[0])},
            scales=scales,
        ),
        Observation(
            name="held out",
            parameters={"ti": 2.0},
            step=0.1,
            measured={
                "rise_time": float(simulate_axis(axis, {**plant, "ti": 2.0}, step=0.1).rise_time[0])
            },
            tolerances={"rise_time": 0.01},
            scales={},
            held_out=True,
        ),
    )


def shares(values: dict[str, float]) -> np.ndarray:
    rows = []
    for unknown in UNKNOWNS:
        low, high, value = unknown.lower, unknown.upper, values[unknown.name]
        log = unknown.logarithmic
        rows.append(
            np.log(value / low) / np.log(high / low) if log else (value - low) / (high - low)
        )
    return np.array(rows)


def test_prediction_of_a_batch_is_that_of_single_runs(
    axis: Axis, observations: tuple[Observation, ...]
) -> None:
    true = shares(TRUTH)
    result = predicted(axis, UNKNOWNS, observations, np.stack([true, np.full(3, 0.5), true]))
    printed = [value for observation in observations for value in observation.measured.values()]
    # values pass through shares of their ranges: rounding moves the steps of the integrator
    # (relative tolerance 1e-7)
    np.testing.assert_allclose(result[0], printed, rtol=1e-8)
    np.testing.assert_array_equal(result[0], result[2])
    assert not np.allclose(result[1], printed, rtol=0.01)


def test_plant_is_found_from_its_own_figures(
    axis: Axis, observations: tuple[Observation, ...]
) -> None:
    fit = search_plant(
        axis,
        UNKNOWNS,
        observations,
        seed=0,
        generations=0,
        start=shares(TRUTH) + np.array([0.08, -0.1, 0.06]),
    )
    for name, value in TRUTH.items():
        assert fit.values[name] == pytest.approx(value, rel=FOUND), name
    for name, _, printed, ours, held_out in fit.rows:
        assert ours == pytest.approx(printed, rel=FOUND)
        assert held_out == (name == "held out")
    assert len(fit.undetermined) == 0


def test_a_fit_along_exact_gradients_ends_at_the_same_plant(
    axis: Axis, observations: tuple[Observation, ...]
) -> None:
    """The first step has no exact gradient: differences stand in for its column."""
    start = shares(TRUTH) + np.array([0.08, -0.1, 0.06])
    fit = search_plant(axis, UNKNOWNS, observations, seed=0, generations=0, start=start, exact=True)
    assert fit.values == pytest.approx(TRUTH, rel=FOUND)


def test_slopes_of_printed_figures_are_those_of_differences(axis: Axis) -> None:
    """Costs, an overshoot that is printed and not there (what is lacking at the end), parameters by their names."""
    rows = (
        Observation(
            name="cost",
            parameters={"kp": "gain"},
            step=0.1,
            measured={"cost": 1},
            tolerances={},
            scales={"energy": 9},
        ),
        Observation(
            name="creeps",
            parameters={
                "motor_inertia": 0.0044,
                "motor_viscous": 0.087,
                "gap": 1.2e-4,
                "cart_mass": 10.8,
                "cart_coulomb": 26.8,
                "feed_forward_share": 0.485,
                "ti": 1.2,
            },
            step=0.1,
            measured={"overshoot": 1e-4},
            tolerances={},
            scales={},
            motors="preloaded",
        ),
        Observation(
            name="settles",
            parameters={"kp": 150},
            step=0.1,
            measured={"settling_time": 1},
            tolerances={},
            scales={},
        ),
    )
    unknowns = (
        PlantUnknown(name="gain", lower=100.0, upper=400.0),
        PlantUnknown(name="preload", lower=5.0, upper=12.0, logarithmic=False),
        PlantUnknown(name="band", lower=1e-4, upper=1e-2),
        PlantUnknown(name="cart_viscous", lower=100.0, upper=1500.0),
    )
    share, integrator = (
        np.array([0.4, 0.6, 0.7, 0.5]),
        replace(LINE_INTEGRATOR, rtol=1e-10, atol=1e-12),
    )
    exact = slopes(axis, unknowns, rows, share, integrator)

    def figures(shares: np.ndarray) -> np.ndarray:
        return predicted(axis, unknowns, rows, shares, integrator, signed=True)

    assert figures(share[None])[0, 1] < 0
    np.testing.assert_allclose(exact, box_differences(figures, share, 1e-5).T, rtol=2e-4, atol=1e-8)
    np.testing.assert_array_equal(exact == 0, [[0, 0, 1, 0], [1, 0, 1, 0], [1, 0, 0, 0]])


def test_search_from_afar_ends_at_the_same_plant(
    axis: Axis, observations: tuple[Observation, ...]
) -> None:
    integrator = replace(LINE_INTEGRATOR, rtol=1e-6, atol=1e-8)
    fit = search_plant(
        axis, UNKNOWNS, observations, seed=1, generations=12, population=12, integrator=integrator
    )
    assert fit.values == pytest.approx(TRUTH, rel=FOUND)


def test_what_nothing_tells_is_named(axis: Axis, observations: tuple[Observation, ...]) -> None:
    """The settling band has no part in rise times and energies: one direction, along it, is open."""
    unknowns = (*UNKNOWNS, PlantUnknown(name="band", lower=1e-4, upper=1e-2))
    start = np.append(shares(TRUTH), 0.3)
    fit = search_plant(axis, unknowns, observations, seed=0, generations=0, start=start)
    assert fit.undetermined.shape == (1, 4)
    np.testing.assert_allclose(np.abs(fit.undetermined[0]), [0.0, 0.0, 0.0, 1.0], atol=1e-9)
    assert fit.shares[3] == pytest.approx(0.3)


def test_known_figures_are_no_unknowns(axis: Axis, observations: tuple[Observation, ...]) -> None:
    """A figure that is known, the step of an observation among them, is as one whose place in its range is given."""
    true = shares(TRUTH)
    everything = predicted(axis, UNKNOWNS, observations, true[None])
    known = {"cart_viscous": TRUTH["cart_viscous"], "first_step": TRUTH["first_step"]}
    some = predicted(axis, UNKNOWNS[1:2], observations, true[None, 1:2], known=known)
    np.testing.assert_allclose(some, everything, rtol=1e-8)
    fit = search_plant(
        axis,
        UNKNOWNS[1:2],
        observations,
        seed=0,
        generations=3,
        population=5,
        start=true[1:2] + 0.1,
        spread=0.05,
        known=known,
    )
    assert fit.values == pytest.approx({"preload": TRUTH["preload"]}, rel=FOUND)
    assert fit.loss < 1e-3
    with pytest.raises(InputError, match="is both a known value and an unknown"):
        search_plant(axis, UNKNOWNS, observations, seed=0, known=known)


def test_directions_are_named_by_their_largest_parts(
    axis: Axis, observations: tuple[Observation, ...]
) -> None:
    fit = assess_plant(axis, UNKNOWNS, observations, shares(TRUTH))
    assert fit.named(np.array([0.6, -0.8, 0.1])) == "-0.80 preload, +0.60 cart_viscous"
    assert fit.loss == pytest.approx(0.0, abs=1e-6)
    assert fit.evaluations == 7


def test_bad_input_is_refused_with_all_problems_at_once(
    axis: Axis, observations: tuple[Observation, ...]
) -> None:
    with pytest.raises(InputError) as error:
        search_plant(axis, (), (), seed=0)
    assert [problem.where for problem in error.value.problems] == ["unknowns", "observations"]
    wrong = (
        PlantUnknown(name="cart_viscous", lower=-1.0, upper=6000.0),
        PlantUnknown(name="preload", lower=5.0, upper=5.0),
        PlantUnknown(name="colour", lower=1.0, upper=2.0),
    )
    bad = replace(observations[1], tolerances={}, scales={})
    with pytest.raises(InputError) as error:
        search_plant(axis, wrong, (observations[0], bad), seed=0)
    text = str(error.value)
    for part in (
        "cart_viscous: has a logarithmic range that starts at -1",
        "preload: ranges from 5 to 5",
        "colour: is not used by the drive line or by an observation",
        "first_step: is in an observation, but is not an unknown",
        "second: has the tolerance None for cost",
        "second: has a measured value of cost",
    ):
        assert part in text


def test_steps_of_other_motors_are_those_of_the_other_line(axis: Axis) -> None:
    """A slave that pulls back all the time, and none: as the lines that `with_motors` makes, one at a time."""
    for motors in ("preloaded", "one"):
        alone = simulate_axis(
            Axis(with_motors(axis.line, motors)), GAINS | {"cart_viscous": 2400.0}, step=0.1
        )
        row = Observation(
            name=motors,
            parameters=GAINS | {"cart_viscous": 2400.0, "switch_min": 0.02},
            step=0.1,
            measured={"rise_time": 1.0, "energy": 1.0},
            tolerances={"rise_time": 0.01, "energy": 0.01},
            scales={},
            motors=motors,
        )
        both = predicted(axis, UNKNOWNS[1:2], [row], np.array([[UNKNOWNS[1].share(10.2)]]))[0]
        np.testing.assert_allclose(both, [alone.rise_time[0], alone.energy[0]], rtol=1e-6)
