"""Whether readings support error bars: degrees of freedom, singular fits, curvature, far corrections and trends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from calibration_sessions import encoders, home, machine, measured

from tauloop import Model
from tauloop.calibration import (
    Calibration,
    CalibrationOptions,
    Contact,
    FitOptions,
    Position,
    Series,
    Tolerances,
    calibrate,
)
from tauloop.calibration.fitting import MAX_RELATIVE_CORRECTION, MIN_TREND_P, VARIANCE_FACTOR_RANGE
from tauloop.calibration.judging.curvature import second_order_share
from tauloop.calibration.judging.statistics import undetermined, variance_range
from tauloop.calibration.solving.solver import Solution
from tauloop.common.result import Diagnostic, Status
from tauloop.display.tables.identification.calibration_tables import calibration_tables

PRINTER, GANTRY = "linear_delta", "gantry_tau_3dof"
#: Carriages of 7 contacts of a printer with unequal arms (340.5, 340.0, 339.8 mm) and a radius of
#: 173 mm, mm.
SEVEN = (
    (381.3605, 306.7232, 341.4879),
    (381.3454, 341.4957, 306.7001),
    (341.7558, 381.1746, 306.7175),
    (307.0818, 381.1540, 341.5050),
    (307.0459, 341.5106, 381.1906),
    (341.7805, 306.7310, 381.2229),
    (333.3034, 332.9857, 332.9990),
)
SEVEN_UNKNOWNS = (
    "tower*.end_stop",
    "radius=tower*.radius",
    "arm=tower*.arm",
    "tower1.angle",
    "tower2.angle",
)


def touches(carriages: Sequence[Sequence[float]], noise: float = 1e-5) -> Series:
    contact = Contact(name="bed")
    return Series(
        instrument=contact,
        encoders=1e-3 * np.array(carriages),
        readings=np.zeros((len(carriages), 1)),
        noise=noise,
    )


def printer(series: Series, *parameters: str, **more: object) -> Calibration:
    options = CalibrationOptions(
        parameters=parameters, fit=FitOptions(swap_search_time=0.0), **more
    )
    return calibrate(machine(PRINTER), series, options)


def figure(result: Calibration, beginning: str) -> Diagnostic:
    (item,) = [item for item in result.diagnostics if item.name.startswith(beginning)]
    return item


def test_seven_readings_for_seven_unknowns_leave_no_error_bars():
    result = printer(touches(SEVEN), *SEVEN_UNKNOWNS)
    assert result.degrees_of_freedom == 0
    assert result.status is Status.DOUBTFUL
    assert not figure(result, "degrees of freedom").is_good
    assert all(
        estimate.deviation is None and estimate.half_width is None for estimate in result.estimates
    )
    assert result.covariance is None
    assert result.variance_factor is None
    document = result.as_dict()
    assert {row["deviation"] for row in document["parameters"]} == {None}
    assert np.isnan(result.to_pandas()["deviation"]).all()
    assert "no standard deviation" in result.mechanism.parameters["tower1.arm"].source
    result.plot()
    assert list(calibration_tables(result))


def test_priors_give_seven_readings_degrees_of_freedom():
    result = printer(touches(SEVEN), *SEVEN_UNKNOWNS, priors=("*",))
    assert result.degrees_of_freedom == 7
    (arm,) = [estimate for estimate in result.estimates if estimate.name == "arm"]
    assert abs(arm.value - 0.3401) < arm.half_width
    assert arm.half_width > 0.5e-3


def test_a_correction_far_above_its_tolerance_is_doubtful_and_one_of_that_size_is_not():
    positions = encoders(GANTRY, 30, np.random.default_rng(2))
    length = machine(GANTRY).parameters["track1.length"].value
    series = measured(GANTRY, {"track1.length": length + 0.04}, Position(name="t"), positions, 2e-5)
    options = CalibrationOptions(parameters=("track*.length",))
    result = calibrate(machine(GANTRY), series, options)
    item = figure(
        result, "largest correction of the machine relative to its tolerance (track1.length)"
    )
    assert item.value == pytest.approx(40.0, rel=0.02)
    assert not item.is_good
    stated = replace(options, tolerances=Tolerances(length=0.02))
    assert calibrate(machine(GANTRY), series, stated).status is Status.OK


def test_a_frame_may_start_anywhere():
    positions = encoders(GANTRY, 30, np.random.default_rng(2))
    series = measured(GANTRY, {}, Position(name="t"), positions, 2e-5)
    moved = replace(series, readings=series.readings + np.array([0.3, -0.2, 0.1]))
    options = CalibrationOptions(
        parameters=("track*.length", "t.frame.x", "t.frame.y", "t.frame.z")
    )
    assert calibrate(machine(GANTRY), moved, options).status is Status.OK


def test_a_clear_trend_of_residuals_is_doubtful():
    """A drift over the session of one and a half times the noise: half a micrometre per pose."""
    positions = encoders(GANTRY, 60, np.random.default_rng(5))
    series = measured(GANTRY, {}, Position(name="t"), positions, 2e-5)
    options = CalibrationOptions(parameters=("track*.length",))
    assert figure(
        calibrate(machine(GANTRY), series, options), "p-value of the most significant trend"
    ).is_good
    drift = np.linspace(-3e-5, 3e-5, 60)[:, None] * [0.0, 1.0, 0.0]
    result = calibrate(machine(GANTRY), replace(series, readings=series.readings + drift), options)
    item = figure(result, "p-value of the most significant trend")
    assert "y of t with order" in item.name
    assert 0.0 <= item.value < 1e-6
    assert result.status is Status.DOUBTFUL


def test_intervals_of_one_degree_of_freedom_cover_the_truth():
    """Four contacts and three end stops, 72 times: an interval of 1.96 deviations would cover 0.70 of them."""
    model = Model(machine(PRINTER))
    place = np.array([[0.05, 0.0, 0.0], [-0.03, 0.04, 0.0], [-0.03, -0.05, 0.0], [0.01, 0.01, 0.0]])
    draw = np.random.default_rng(4)
    covered = []
    for _ in range(24):
        height = place + [0.0, 0.0, 1.0] * (1e-5 * draw.standard_normal((4, 1)))
        carriages = model.actuator_position(model.platform.evaluate(height).q)
        result = printer(touches(1e3 * carriages), "tower*.end_stop")
        assert result.degrees_of_freedom == 1
        covered += [abs(estimate.correction) < estimate.half_width for estimate in result.estimates]
    assert np.mean(covered) > 0.85


def test_a_variance_factor_that_chance_explains_is_believed():
    """Chi squared with one degree of freedom is below 0.01 in 8 of 100 sound sessions."""
    least, largest = variance_range(1, (0.25, 4.0))
    assert least < 0.01
    assert largest > 6.0
    assert variance_range(200, (0.25, 4.0)) == (0.25, 4.0)


def test_an_unknown_that_the_optimum_does_not_determine_is_found():
    """The pseudo-inverse gives a lost direction no variance at all; one of small information keeps its own."""
    lost = np.array([1.0, 1.0, 0.0, 0.0]) / np.sqrt(2)
    rows = np.vstack(
        [100.0 * np.array([1.0, -1.0, 0.0, 0.0]), [0.0, 0.0, 50.0, 0.0], [0.0, 0.0, 0.0, 1e-3]]
    )
    scale = np.array([1e-3, 1e-3, 2e-3, 1e-3])
    solution = Solution(
        correction=np.zeros(4),
        evaluation=None,  # type: ignore[arg-type]
        jacobian=(rows + 1e-12 * lost) / scale,
        prior=np.zeros(4),
        weights=np.ones(3),
        evaluations=1,
    )
    assert undetermined(solution, scale).tolist() == [True, True, False, False]


def test_second_order_effects_are_those_of_the_closed_form():
    """A frame turned by a about z shows x cos(a) + y sin(a): near a = 0 and y = 0 mostly by its square."""
    model = Model(machine("five_bar"))
    start = home("five_bar")
    state = model.forward_kinematics(start[None, :])
    x, y = (float(state.coordinate(f"platform.{letter}")[0]) for letter in "xy")
    turn = np.arctan2(y, x) + 0.02
    frame = np.array([[np.cos(turn) * x + np.sin(turn) * y]])
    many = np.repeat(frame, 6, axis=0) + 1e-3 * np.array(
        [[1.0], [-1.0], [0.5], [-0.5], [0.2], [-0.2]]
    )
    series = Series(
        instrument=Position(name="t", components="x"),
        encoders=np.repeat(start[None, :], 6, axis=0),
        readings=many,
        noise=1e-3,
    )
    options = CalibrationOptions(
        parameters=("t.frame.rz",),
        tolerances=Tolerances(angle=10.0),
        fit=FitOptions(reject_implausible=False, swap_search_time=0.0),
    )
    result = calibrate(machine("five_bar"), series, options)
    (estimate,) = result.estimates
    share = second_order_share(result.problem, result.solution, np.array([estimate.half_width]))

    def seen(angle: float) -> float:
        """The rotation of `Framed`: the quaternion (1, angle/2) made to length one."""
        half = np.arctan(angle / 2.0)
        return float(np.cos(2.0 * half) * x + np.sin(2.0 * half) * y)

    a, h = estimate.value, 1e-5
    first = (seen(a + h) - seen(a - h)) / (2.0 * h)
    second = (seen(a + h) - 2.0 * seen(a) + seen(a - h)) / h**2
    assert abs(0.5 * second / first * estimate.half_width) == pytest.approx(share, rel=0.2)
    assert share > 1.0
    item = figure(result, "second-order effect")
    assert item.value == share
    assert result.status is Status.DOUBTFUL


def test_limits_on_the_page_are_those_of_the_code():
    page = (Path(__file__).parents[2] / "docs" / "calibration.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| ")]

    def limit(words: str) -> str:
        (row,) = [line for line in rows if words in line]
        return row.split("|")[2].strip()

    assert limit("relative to its tolerance") == f"at most {MAX_RELATIVE_CORRECTION:g}"
    assert limit("trend of the residuals") == f"at least {MIN_TREND_P:.0e}".replace("e-06", "e-6")
    assert limit("weighted sum of squares").startswith(
        f"{VARIANCE_FACTOR_RANGE[0]:g} to {VARIANCE_FACTOR_RANGE[1]:g}"
    )


@pytest.mark.parametrize(("unit", "share"), [("N/m", 0.3), ("N m/rad", 0.3), ("kg", 1e-3)])
def test_stiffness_is_less_well_known_than_other_parameters(unit: str, share: float) -> None:
    assert Tolerances().tolerance("cable", unit, 1.5e4) == pytest.approx(share * 1.5e4)
