"""Distances between poses, step gauges and ball bars: readings that belong to several poses.

Truth is the closed form of a linear Delta in NumPy: carriages at given points of the nozzle.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from calibration_sessions import machine

from tauloop import Model
from tauloop.calibration import (
    Between,
    Calibration,
    CalibrationOptions,
    Instrument,
    LoopEquations,
    PosePlanOptions,
    Series,
    StepGauge,
    calibrate,
    calibration_problem,
    identifiability,
    plan_poses,
    read_measurements,
    simulated_readings,
    simulated_series,
)
from tauloop.common.errors import InputError
from tauloop.common.result import Status
from tauloop.kinematics import random_states

NAME, NOISE = "linear_delta", 1e-5
ANGLES = np.radians([210.0, 330.0, 90.0])
RADIUS, ARM, END_STOP = 0.172, 0.340, 0.333
#: What the printer of these tests differs in.
TRUE_RADII = RADIUS + np.array([0.8e-3, -0.3e-3, 0.2e-3])
TRUE_ARM = ARM + 0.6e-3
#: The first tower's end stop is held, for no distance shows where the bed is.
UNKNOWNS = ("tower2.end_stop", "tower3.end_stop", "tower*.radius", "arm=tower*.arm")
TRUTH = {f"tower{i + 1}.radius": float(radius) for i, radius in enumerate(TRUE_RADII)} | {
    "arm": TRUE_ARM
}
#: Standard deviations within which estimates must lie.
SURE = 4.5


def carriages(points: np.ndarray) -> np.ndarray:
    """Carriage positions (N, 3) of the true machine for points (N, 3) of the nozzle, counted down from the end stops.

    With all carriages at their stops the nozzle is at the height `end_stop` above the centre.
    """
    towers = TRUE_RADII[:, None] * np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1)
    across = np.linalg.norm(points[:, None, :2] - towers, axis=2)
    return (
        END_STOP
        + np.sqrt(TRUE_ARM**2 - TRUE_RADII**2)
        - points[:, 2:]
        - np.sqrt(TRUE_ARM**2 - across**2)
    )


def spread(count: int, rng: np.random.Generator) -> np.ndarray:
    return rng.uniform([-0.07, -0.07, 0.0], [0.07, 0.07, 0.1], (count, 3))


def pairs(
    count: int, rng: np.random.Generator, noise: float = NOISE
) -> tuple[np.ndarray, np.ndarray]:
    """Encoders (2 N, 3) of pairs, and their distances (N, 1)."""
    points = spread(2 * count, rng)
    distances = np.linalg.norm(points[1::2] - points[::2], axis=1, keepdims=True)
    return carriages(points), distances + noise * rng.standard_normal((count, 1))


def fitted(series: Series, *parameters: str) -> Calibration:
    return calibrate(machine(NAME), series, CalibrationOptions(parameters=parameters or UNKNOWNS))


def require_truth(result: Calibration) -> None:
    assert result.status is Status.OK, result.advice
    for estimate in result.estimates:
        truth = TRUTH.get(estimate.name, END_STOP)
        assert abs(estimate.value - truth) < SURE * estimate.deviation, estimate.name
        assert estimate.deviation < 5e-4


def test_distances_between_poses_give_the_geometry():
    encoders, distances = pairs(60, np.random.default_rng(1))
    result = fitted(
        Series(instrument=Between(name="bar"), encoders=encoders, readings=distances, noise=NOISE)
    )
    require_truth(result)
    assert result.degrees_of_freedom == 60 - len(result.estimates)
    assert result.to_xarray().sizes["pose"] == 60


def test_distances_show_no_place_of_the_base():
    """All end stops together lift the bed: a gauge freedom of distances."""
    encoders, distances = pairs(60, np.random.default_rng(1))
    series = Series(
        instrument=Between(name="bar"), encoders=encoders, readings=distances, noise=NOISE
    )
    result = fitted(series, "tower*.end_stop", "tower*.radius", "arm=tower*.arm")
    assert len(result.identifiability.gauge) == 1
    assert "end_stop" in result.identifiability.left_out[0].name


def test_widths_of_a_printed_part_along_directions_with_a_line_width():
    """Walls 20 to 120 mm apart along x, y and a diagonal, each measured across; the caliper adds the line's 0.42 mm."""
    rng = np.random.default_rng(2)
    across, readings, encoders = (
        {"x": (1.0, 0.0, 0.0), "y": (0.0, 2.0, 0.0), "xy": (1.0, 1.0, 0.0)},
        {},
        {},
    )
    for name, direction in across.items():
        e = np.array(direction) / np.linalg.norm(direction)
        middle = rng.uniform([-0.01, -0.01, 0.01], [0.01, 0.01, 0.03], (30, 3))
        width = rng.uniform(0.02, 0.12, 30)
        aside = np.cross(e, [0.0, 0.0, 1.0]) * rng.uniform(-0.03, 0.03, (30, 1))
        ends = np.stack(
            [middle + 0.5 * width[:, None] * e, middle - 0.5 * width[:, None] * e + aside], axis=1
        )
        encoders[name] = carriages(ends.reshape(-1, 3))
        readings[name] = (width + 0.42e-3 + NOISE * rng.standard_normal(30))[:, None]
    series = [
        Series(
            instrument=Between(name=f"wall_{name}", direction=direction),
            encoders=encoders[name],
            readings=readings[name],
            noise=NOISE,
        )
        for name, direction in across.items()
    ]
    options = CalibrationOptions(
        parameters=("tower*.radius", "arm=tower*.arm", "line=wall_*.offset")
    )
    result = calibrate(machine(NAME), series, options)
    assert result.status is Status.OK, result.advice
    values = {estimate.name: estimate for estimate in result.estimates}
    assert abs(values["line"].value - 0.42e-3) < SURE * values["line"].deviation
    for name, truth in TRUTH.items():
        assert abs(values[name].value - truth) < SURE * values[name].deviation, name


def gauge(placements: int, places: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Points (N K, 3) of a step gauge that lies anywhere, each touched with the noise of one touch along it."""
    points = []
    for _ in range(placements):
        e = rng.normal(size=3) * [1.0, 1.0, 0.5]
        e /= np.linalg.norm(e)
        start = rng.uniform([-0.02, -0.02, 0.02], [0.02, 0.02, 0.06]) - 0.5 * places[-1] * e
        touched = places + NOISE * rng.standard_normal(len(places))
        points.append(start + touched[:, None] * e)
    return np.concatenate(points)


def test_a_step_gauge_gives_the_geometry_and_its_noise_is_that_of_one_touch():
    rng = np.random.default_rng(3)
    places = 0.02 * np.arange(6)
    points = gauge(30, places, rng)
    series = Series(
        instrument=StepGauge(name="gauge", count=6),
        encoders=carriages(points),
        readings=np.tile(places, (30, 1)),
        noise=NOISE,
    )
    result = fitted(series)
    require_truth(result)
    assert result.degrees_of_freedom == 30 * 5 - len(result.estimates)
    assert result.variance_factor == pytest.approx(1.0, abs=0.4)


def test_derivatives_are_those_of_the_residuals():
    rng = np.random.default_rng(4)
    encoders, distances = pairs(5, rng, 0.0)
    places = 0.02 * np.arange(4)
    series = [
        Series(instrument=Between(name="bar"), encoders=encoders, readings=distances, noise=NOISE),
        Series(
            instrument=StepGauge(name="gauge", count=4),
            encoders=carriages(gauge(3, places, rng)),
            readings=np.tile(places, (3, 1)),
            noise=NOISE,
        ),
    ]
    unknowns = (
        *UNKNOWNS,
        "bar.offset",
        "bar.scale",
        "bar.target.x",
        "gauge.scale",
        "encoder.tower1.motor.scale",
    )
    problem = calibration_problem(machine(NAME), series, unknowns, encoder_noise=1e-6)
    at = 1e-4 * rng.standard_normal(len(problem.free))
    linear = problem.linearized(problem.evaluate(at))
    for k in range(len(at)):
        step = 1e-6 * np.eye(len(at))[k]
        above, below = (problem.evaluate(at + sign * step).residual for sign in (1.0, -1.0))
        assert np.allclose((above - below) / 2e-6, linear.jacobian[:, k], rtol=1e-5, atol=1e-3)


def test_encoder_noise_is_that_of_both_poses():
    """Of a distance along one carriage's line: twice the variance of one end."""
    heights = np.array([[0.0, 0.0, 0.02], [0.0, 0.0, 0.09]])
    series = Series(
        instrument=Between(name="bar"),
        encoders=carriages(heights),
        readings=np.array([[0.07]]),
        noise=1e-9,
    )
    problem = calibration_problem(machine(NAME), [series], ["bar.offset"], encoder_noise=1e-5)
    (J,) = problem.pose_jacobians(problem.evaluate(np.zeros(1)))
    # near the axis a nozzle's height is the mean of the carriages': a third of the variance at each
    # end
    assert 1.0 / abs(float(J[0, 0, 0])) == pytest.approx(1e-5 * np.sqrt(2.0 / 3.0), rel=0.02)


@pytest.mark.parametrize(
    "instrument", [Between(name="bar"), StepGauge(name="gauge", count=3)], ids=["between", "steps"]
)
def test_simulated_readings_fit_their_own_machine(instrument: Instrument):
    model = Model(machine(NAME))
    q = random_states(model, 12, np.random.default_rng(5)).q
    readings = simulated_readings(model, instrument, q)
    assert readings.shape == (12 // instrument.poses, len(instrument.columns))
    series = simulated_series(model, instrument, q, NOISE)
    problem = calibration_problem(machine(NAME), [series], ["tower1.radius"])
    assert np.abs(problem.evaluate(np.zeros(1)).residual).max() < 1e-6
    noisy = simulated_series(model, instrument, q, NOISE, np.random.default_rng(6))
    draw = np.random.default_rng(6).standard_normal((len(readings), len(instrument.errors)))
    assert np.allclose(noisy.readings, readings + instrument.readings_at(NOISE * draw), atol=1e-12)
    with pytest.raises(InputError, match="each reading belongs to"):
        simulated_readings(model, instrument, q[:11])


def test_parts_of_the_readings_are_taken_with_their_poses():
    """Leave-one-out and a bootstrap of pairs, and the order of rows in a part of them."""
    encoders, distances = pairs(20, np.random.default_rng(6))
    series = Series(
        instrument=Between(name="bar"), encoders=encoders, readings=distances, noise=NOISE
    )
    part = series.take(np.array([3, 1]))
    assert np.array_equal(part.encoders, encoders[[6, 7, 2, 3]])
    assert part.label(0) == "reading 4"
    options = CalibrationOptions(parameters=UNKNOWNS, leave_one_out=True, replicates=20)
    result = calibrate(machine(NAME), series, options)
    assert result.leave_one_out.rms < 3 * NOISE
    assert result.bootstrap.corrections.shape == (20, len(result.estimates))


def test_a_wrong_distance_is_an_outlier_by_its_name():
    encoders, distances = pairs(40, np.random.default_rng(7))
    distances[11] += 40 * NOISE
    result = fitted(
        Series(instrument=Between(name="bar"), encoders=encoders, readings=distances, noise=NOISE)
    )
    (outlier,) = result.outliers
    assert outlier.label == "bar, reading 12"


def table(path: Path, rows: np.ndarray, *columns: str) -> Path:
    header = [f"encoder.{actuator.name} [mm]" for actuator in machine(NAME).actuators]
    np.savetxt(
        path, rows, delimiter=",", header=",".join([*header, *columns]), comments="", fmt="%.9f"
    )
    return path


def test_a_table_of_pairs_is_read_in_order_and_by_numbers(tmp_path):
    encoders, distances = pairs(30, np.random.default_rng(8))
    rows = 1e3 * np.hstack([encoders, np.repeat(distances, 2, axis=0)])
    options = CalibrationOptions(measure="between", noise="0.01 mm", parameters=UNKNOWNS)
    in_order = calibrate(
        machine(NAME), table(tmp_path / "order.csv", rows, "measured.distance [mm]"), options
    )
    require_truth(in_order)
    numbered = np.hstack([rows, np.repeat(np.arange(30), 2)[:, None]])
    mixed = numbered[np.random.default_rng(9).permutation(60)]
    path = table(tmp_path / "mixed.csv", mixed, "measured.distance [mm]", "reading")
    by_number = calibrate(machine(NAME), path, options)
    for estimate, again in zip(in_order.estimates, by_number.estimates, strict=True):
        assert estimate.value == pytest.approx(again.value, abs=1e-9)


def test_a_described_ball_bar_of_given_length_and_a_step_gauge(tmp_path):
    rng = np.random.default_rng(10)
    e = rng.normal(size=(40, 3))
    e /= np.linalg.norm(e, axis=1, keepdims=True)
    middle = rng.uniform([-0.03, -0.03, 0.03], [0.03, 0.03, 0.07], (40, 3))
    length = 0.08 + NOISE * rng.standard_normal((40, 1))
    ends = np.stack([middle - 0.5 * length * e, middle + 0.5 * length * e], axis=1).reshape(-1, 3)
    table(
        tmp_path / "bar.csv",
        np.hstack([1e3 * carriages(ends), np.repeat(np.arange(40), 2)[:, None]]),
        "reading",
    )
    places = 0.02 * np.arange(5)
    rows = np.hstack([1e3 * carriages(gauge(8, places, rng)), 1e3 * np.tile(places, 8)[:, None]])
    marked = np.hstack([rows, np.repeat(np.arange(8), 5)[:, None]])
    table(tmp_path / "gauge.csv", marked, "measured.place [mm]", "placement")
    described = tmp_path / "both.yaml"
    described.write_text(
        """
format: tauloop-measurements/1
series:
  - {path: bar.csv, kind: between, name: bar, length: 80 mm, noise: 0.01 mm}
  - {path: gauge.csv, kind: steps, name: gauge, reading_number: placement, noise: 0.01 mm}
parameters: [tower2.end_stop, tower3.end_stop, tower*.radius, arm=tower*.arm]
""",
        encoding="utf-8",
    )
    measured = read_measurements(described, machine(NAME))
    assert [len(series) for series in measured.series] == [40, 8]
    assert measured.series[1].instrument == StepGauge(name="gauge", count=5)
    assert measured.series[0].labels[1] == "reading 2 (lines 4, 5)"
    require_truth(calibrate(machine(NAME), described, CalibrationOptions()))


def test_tables_whose_rows_do_not_belong_together_are_refused(tmp_path):
    encoders, distances = pairs(4, np.random.default_rng(11))
    rows = 1e3 * np.hstack([encoders, np.repeat(distances, 2, axis=0)])
    odd = table(tmp_path / "odd.csv", rows[:7], "measured.distance [mm]")

    def refused(path: Path, kind: str = "between") -> str:
        with pytest.raises(InputError) as error:
            read_measurements(path, machine(NAME), kind=kind, noise=NOISE)
        return str(error.value)

    assert "7 rows, which is not a multiple of the 2 poses of each reading" in refused(odd)
    numbered = np.hstack([rows, np.array([0, 0, 1, 1, 1, 2, 2, 3])[:, None]])
    path = table(tmp_path / "numbers.csv", numbered, "measured.distance [mm]", "reading")
    assert "reading 1 (line 4): has 3 of 2 poses" in refused(path)
    assert "reading 3 (line 9): has 1 of 2 poses" in refused(path)
    rows[2, 3] += 0.5
    unequal = table(tmp_path / "unequal.csv", rows, "measured.distance [mm]")
    assert "both ends of distance 2 have different values" in refused(unequal)
    places = np.hstack(
        [rows[:, :3], np.arange(8.0)[:, None], np.array([0, 0, 0, 1, 1, 1, 1, 1])[:, None]]
    )
    steps = table(tmp_path / "steps.csv", places, "measured.place [mm]", "reading")
    assert "has 5 of 3 poses" in refused(steps, "steps")


def test_what_reads_several_poses_is_refused_where_it_makes_no_sense(tmp_path):
    encoders, distances = pairs(4, np.random.default_rng(12))
    with pytest.raises(InputError, match="7 rows, but each reading belongs to 2 poses"):
        Series(
            instrument=Between(name="bar"),
            encoders=encoders[:7],
            readings=distances[:3],
            noise=NOISE,
        )
    for wrong in (Between(name="bar", direction=(0.0, 0.0, 0.0)), Between(name="bar", length=-0.1)):
        series = Series(instrument=wrong, encoders=encoders, readings=distances, noise=NOISE)
        with pytest.raises(InputError, match="bar"):
            calibration_problem(machine(NAME), [series], ["tower1.radius"])
    with pytest.raises(InputError, match="poses are chosen one by one"):
        plan_poses(
            machine(NAME),
            PosePlanOptions(parameters=("tower*.radius",), measure="between", count=6),
        )
    described = tmp_path / "bed.yaml"
    described.write_text(
        "format: tauloop-measurements/1\nseries: [{path: a.csv, kind: contact, reading_number: a, noise: 1 mm}]\n",
        encoding="utf-8",
    )
    with pytest.raises(InputError, match="is not a key of measurements of kind contact"):
        read_measurements(described, machine(NAME))


def test_loop_equations_and_poses_that_coincide_are_refused():
    encoders, distances = pairs(30, np.random.default_rng(13))
    series = Series(
        instrument=Between(name="bar"), encoders=encoders, readings=distances, noise=NOISE
    )
    options = CalibrationOptions(parameters=UNKNOWNS, residuals=LoopEquations())
    with pytest.raises(InputError, match="ForwardKinematics"):
        calibrate(machine(NAME), series, options)
    encoders[9] = encoders[8]
    with pytest.raises(
        InputError, match="reading 5: the reading has no derivative because its poses coincide"
    ):
        fitted(replace(series, encoders=encoders))


def test_identifiability_counts_readings_and_not_poses():
    encoders, distances = pairs(30, np.random.default_rng(14))
    series = Series(
        instrument=Between(name="bar"), encoders=encoders, readings=distances, noise=NOISE
    )
    problem = calibration_problem(machine(NAME), [series], UNKNOWNS)
    assert identifiability(problem, np.random.default_rng(0)).equations == 30
    assert problem.n_poses == 30
    assert replace(series, readings=distances).rows(np.array([2])).tolist() == [4, 5]
