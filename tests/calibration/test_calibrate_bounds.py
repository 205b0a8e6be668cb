"""Bounds on unknowns: in Python, as texts and in files."""

from __future__ import annotations

import numpy as np
import pytest
from calibration_sessions import encoders, machine, measured, part_errors

from tauloop.calibration import (
    Bounds,
    CalibrationProblem,
    FitOptions,
    Position,
    bootstrap,
    calibration_problem,
    fit_geometry,
)
from tauloop.calibration.measurements.reading import read_measurements
from tauloop.calibration.problem.unknowns import read_bounds
from tauloop.common.errors import InputError
from tauloop.common.result import Status

NAME, NOISE = "gantry_tau_3dof", 2e-5
PARAMETERS = ("track*.length", "track1.yaw")
#: The search by trust regions keeps off bounds by a little, in tolerances.
NEAR = 1e-3


@pytest.fixture(scope="module")
def problem() -> CalibrationProblem:
    draw = np.random.default_rng(8)
    true = part_errors(NAME, PARAMETERS, 3e-4, draw)
    series = measured(NAME, true, Position(name="t"), encoders(NAME, 25, draw), NOISE)
    return calibration_problem(machine(NAME), [series], PARAMETERS)


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def half_way(problem: CalibrationProblem) -> tuple[str, Bounds, float]:
    """The largest correction, bounds that allow half of it, and the bound."""
    result = fit_geometry(problem, rng())
    largest = max(result.estimates[:3], key=lambda e: abs(e.correction))
    edge = largest.nominal + largest.correction / 2
    bounds = Bounds(lower=edge) if largest.correction < 0 else Bounds(upper=edge)
    return largest.name, bounds, edge


@pytest.mark.parametrize("way", ["problem", "fit"])
def test_a_bound_holds_and_is_told(problem, way):
    name, bounds, edge = half_way(problem)
    if way == "fit":
        result = fit_geometry(problem, rng(), options=FitOptions(bounds={name: bounds}))
    else:
        made = calibration_problem(machine(NAME), problem.series, PARAMETERS, bounds={name: bounds})
        result = fit_geometry(made, rng())
    held = {estimate.name: estimate for estimate in result.estimates}
    assert held[name].value == pytest.approx(edge, abs=NEAR * held[name].tolerance)
    assert held[name].bound == edge
    assert all(estimate.bound is None for other, estimate in held.items() if other != name)
    assert result.status is Status.DOUBTFUL
    assert any("at a bound" in line and name in line for line in result.advice)
    # a second route: the bounded parameter put there and not estimated at all
    fixed = machine(NAME).with_values({name: edge})
    others = [parameter for parameter in problem.names if parameter != name]
    again = fit_geometry(calibration_problem(fixed, problem.series, others), rng())
    for estimate in again.estimates:
        assert held[estimate.name].value == pytest.approx(
            estimate.value, abs=0.1 * estimate.deviation
        )


def test_bounds_that_do_not_bind_change_nothing(problem):
    free = fit_geometry(problem, rng())
    bounds = {
        "track*.length": Bounds(lower=0.1, upper=5.0),
        "track1.yaw": Bounds(upper=1.0, unit="rad"),
    }
    bounded = fit_geometry(problem, rng(), options=FitOptions(bounds=bounds))
    assert [e.value for e in bounded.estimates] == [e.value for e in free.estimates]
    assert bounded.status is free.status
    assert bounded.provenance.options["bounds"]["track1.yaw"] == [None, 1.0]


def test_bootstrap_keeps_bounds(problem):
    name, bounds, _ = half_way(problem)
    result = fit_geometry(problem, rng(), options=FitOptions(bounds={name: bounds}))
    drawn = bootstrap(result.problem, result.solution, rng(), replicates=20)
    column = drawn.names.index(name)
    values = drawn.corrections[:, column] + result.estimates[column].nominal
    slack = NEAR * result.estimates[column].tolerance
    assert (values >= bounds.lower - slack).all()
    assert (values <= bounds.upper + slack).all()


@pytest.mark.parametrize(
    ("name", "bounds", "message"),
    [
        ("track1.lenght", Bounds(upper=2.0), "did you mean track1.length"),
        ("track1.length", Bounds(lower=2.0, upper=1.0), "2 to 1 is an empty range"),
        ("track1.length", Bounds(lower=3.0), "starts at"),
        ("track1.yaw", Bounds(lower=-1.0, unit="m"), "is a length, but track1.yaw is an angle"),
    ],
)
def test_bounds_that_cannot_be_meant(problem, name, bounds, message):
    with pytest.raises(InputError, match=message) as caught:
        problem.bounded({name: bounds})
    assert all(item.remedy for item in caught.value.problems)


def test_all_wrong_bounds_are_told_at_once(problem):
    wrong = {
        "nothing": Bounds(upper=1.0),
        "track1.length": Bounds(lower=9.0),
        "track2.length": Bounds(upper=0.0),
    }
    with pytest.raises(InputError) as caught:
        problem.bounded(wrong)
    assert len(caught.value.problems) == 3


# Texts and files


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("track1.length", "is not LOW:HIGH"),
        ("track1.length=1 m:200 deg", "have different dimensions"),
        ("track1.length=1:2", "is a plain number, but track1.length is a length"),
        ("track1.length=1 kg:", "is a mass (kg) where a length (m) or an angle"),
        ("=1 m:2 m", "has no name of an unknown"),
    ],
)
def test_bounds_that_cannot_be_read(problem, text, message):
    with pytest.raises(InputError) as caught:
        problem.bounded(read_bounds(text))
    assert message in caught.value.problems[0].what
    assert caught.value.problems[0].remedy


def test_bounds_are_read_with_their_units():
    assert read_bounds("track1.length=1200 mm:,track*.yaw=-5 deg:5 deg") == {
        "track1.length": Bounds(lower=1.2, unit="m"),
        "track*.yaw": Bounds(lower=-np.radians(5), upper=np.radians(5), unit="rad"),
    }


def test_a_file_states_bounds(tmp_path):
    (tmp_path / "a.csv").write_text("m1 [mm],m2 [mm],m3 [mm]\n1,2,3\n", encoding="utf-8")
    start = (
        "format: tauloop-measurements/1\nseries:\n  - {path: a.csv, kind: contact, noise: 1 mm, "
        "encoders: {track1.motor: m1, track2.motor: m2, track3.motor: m3}}\n"
    )
    path = tmp_path / "m.yaml"
    path.write_text(
        start + "bounds: {track1.length: 1 m to 1.5 m, track*.yaw: to 2 deg}\n", encoding="utf-8"
    )
    measurements = read_measurements(path, machine(NAME)).bounds
    assert measurements["track1.length"] == Bounds(lower=1.0, upper=1.5, unit="m")
    assert measurements["track*.yaw"] == Bounds(upper=np.radians(2), unit="rad")
    path.write_text(start + "bounds: {track1.length: 1 m}\n", encoding="utf-8")
    with pytest.raises(InputError, match="is not LOW to HIGH"):
        read_measurements(path, machine(NAME))
