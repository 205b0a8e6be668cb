"""Blows at a moving platform: noticed or not, and what the thresholds come from."""

import numpy as np
import pytest
from page_tables import page_table

import tauloop as tl
from tauloop.simulation.observers import CollisionDetectionOptions, simulate_collision_detection
from tauloop.simulation.observers.collision_detection import _thresholds

STROKE = tl.StrokeOptions(end={"x": 0.05}, duration=0.2)


def test_a_blow_is_noticed_sooner_the_harder_it_is_and_not_below_the_threshold():
    machine = tl.load("five_bar")
    common = {
        "stroke": STROKE,
        "error_samples": 4,
        "quantization": 2e-5,
        "collision_duration": 0.05,
    }
    hard, weak = (
        simulate_collision_detection(
            machine, CollisionDetectionOptions(wrench={"fx": push}, **common)
        )
        for push in (60.0, 0.02)
    )
    assert hard.status.value == "ok"
    assert hard.observers["momentum"].detected == 1.0
    assert weak.status.value == "doubtful"
    assert weak.observers["momentum"].quantile(0.5) is None
    assert "identify masses" in weak.advice[0]
    # thresholds come from runs without the blow
    assert hard.observers["momentum"].threshold == pytest.approx(
        weak.observers["momentum"].threshold
    )
    assert 0.02 < hard.observers["momentum"].threshold[0] < 60.0
    # the lag pays: without it encoders' steps decide
    assert (
        hard.observers["momentum, no lag"].threshold > 3 * hard.observers["momentum"].threshold
    ).all()
    table = hard.to_pandas()
    assert table["force.platform.x"].max() == pytest.approx(60.0)
    assert {"momentum.platform.x", "differences_no_lag.platform.x"} <= set(table.columns)


@pytest.mark.nightly
def test_figures_of_the_page_are_those_of_its_command():
    """Times are whole samples; forces have the page's two digits."""
    stroke = tl.StrokeOptions(end={"x": 0.1}, duration=0.5)
    options = CollisionDetectionOptions(
        stroke=stroke,
        wrench={"fx": 3.0},
        collision_duration=0.1,
        quantization=1e-5,
        error_samples=8,
    )
    assert (options.alarms, options.mass_error) == (1.0, 0.05)
    result = simulate_collision_detection(tl.load("delta"), options)
    rows = page_table("estimators.md", "| at one false alarm").rows
    names = (("momentum",), ("differences",), ("momentum, no lag", "differences, no lag"))
    for (_, forces, noise, times), each in zip(rows, names, strict=True):
        for watched in (result.observers[name] for name in each):
            least = [float(text.split()[0]) for text in forces.split(",")]
            assert watched.threshold[[0, 2]] == pytest.approx(least, rel=0.02)
            assert watched.noise[0] == pytest.approx(float(noise.split()[0]), rel=0.1)
            expected = (
                [1e-3 * float(text.split()[0]) for text in times.split(",")]
                if "," in times
                else [None, None]
            )
            assert [watched.quantile(share) for share in (0.5, 0.9)] == pytest.approx(expected)


def test_a_payload_is_noticed_and_wrong_masses_hide_it():
    machine = tl.load("delta")
    common = {
        "stroke": tl.StrokeOptions(end={"x": 0.05}, duration=0.3),
        "error_samples": 4,
        "payload": 0.3,
    }
    right, wrong = (
        simulate_collision_detection(machine, CollisionDetectionOptions(mass_error=share, **common))
        for share in (0.01, 0.1)
    )
    assert right.observers["momentum"].detected == 1.0
    # the bias of a wrong mass is its weight: ten times as wrong, about ten times the threshold
    ratio = wrong.observers["momentum"].threshold[2] / right.observers["momentum"].threshold[2]
    assert ratio == pytest.approx(10.0, rel=0.3)
    assert "plate_mass" in right.varied


def test_the_threshold_is_exceeded_as_often_as_asked():
    """Largest values by Gumbel's law itself, of a million strokes."""
    rng = np.random.default_rng(3)
    threshold = _thresholds(rng.gumbel(2.0, 0.1, size=(4000, 1)), 1e-3)
    assert np.mean(rng.gumbel(2.0, 0.1, size=1_000_000) > threshold[0]) == pytest.approx(
        1e-3, rel=0.3
    )


def test_what_makes_no_blow_is_refused():
    with pytest.raises(tl.InputError, match="no force or payload is given"):
        CollisionDetectionOptions(stroke=STROKE)
    with pytest.raises(tl.InputError, match="a time within the stroke"):
        simulate_collision_detection(
            tl.load("five_bar"),
            CollisionDetectionOptions(stroke=STROKE, wrench={"fx": 1.0}, collision_time=3.0),
        )


def test_the_bandwidths_of_observers_and_of_the_controller_have_different_names() -> None:
    stroke = tl.StrokeOptions(end={"x": 0.02}, duration=0.3)
    with pytest.warns(DeprecationWarning, match="controller_bandwidth"):
        options = tl.CollisionDetectionOptions(
            stroke=stroke, wrench={"fx": 20.0}, bandwidth=200.0, stiffness=120.0
        )
    assert (options.bandwidth, options.controller_bandwidth) == (200.0, 120.0)
