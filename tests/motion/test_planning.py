"""Planned motions: their tables go through inverse dynamics; every shape and choice, and what makes no motion."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from scipy.spatial.transform import Rotation

from tauloop import DynamicsOptions, Model, StrokeOptions, inverse_dynamics, load, plan_stroke
from tauloop.common.errors import AssemblyError, TauloopError
from tauloop.equations.ports import ACTUATORS
from tauloop.logs import samples, write_log

STROKE: dict[str, Any] = {
    "shape": "ellipse",
    "start": {"y": -0.144, "z": -0.648},
    "via": ({"y": 0, "z": -0.36},),
    "end": {"y": 0.144, "z": -0.648},
}
CLOTHOID: dict[str, Any] = {"shape": "clothoid", "start_heading": 0.0, "end_heading": 1.0}
MULTISINE: dict[str, Any] = {"shape": "multisine", "end": {"z": -0.5}}
MOTION_UNITS = {"position": "m", "velocity": "m/s", "acceleration": "m/s^2"}
#: A table at 1 kHz misses the peak between two samples.
BETWEEN_SAMPLES = 2e-3


@pytest.fixture(scope="module")
def nuwar() -> Model:
    return Model(load("nuwar"))


@pytest.fixture(scope="module")
def delta() -> Model:
    return Model(load("delta"))


def log_of(machine: Model, frequency: float = 1000.0, **options: Any) -> xr.Dataset:
    return plan_stroke(machine, StrokeOptions(**options)).log(frequency)


def test_the_table_is_input_of_inverse_dynamics_and_has_the_same_peaks(nuwar, tmp_path):
    planned = plan_stroke(nuwar, StrokeOptions(**STROKE, max_acceleration=294.82, returns=True))
    assert planned.peak_acceleration == pytest.approx(294.82)
    assert planned.trajectory.total == pytest.approx(2 * planned.trajectory.duration)
    table = write_log(tmp_path / "stroke.csv", planned.log())
    force = np.abs(inverse_dynamics(nuwar, DynamicsOptions(motion=table)).forces.force).max(axis=0)
    peaks = np.array([abs(item.force) for item in planned.forces])
    assert force == pytest.approx(peaks, rel=BETWEEN_SAMPLES)
    assert (force <= peaks * (1 + 1e-12)).all()


def test_without_a_duration_the_machine_sets_it(nuwar):
    for share in (1.0, 0.5):
        planned = plan_stroke(nuwar, StrokeOptions(**STROKE, share=share))
        assert planned.tightest_limit == ("leg3.motor", pytest.approx(share))
        assert max(abs(item.force) for item in planned.forces) == pytest.approx(share * 41.76)


@pytest.mark.parametrize(
    "shape",
    [
        {
            "shape": "polyline",
            "start": {"y": -0.1},
            "via": ({"y": -0.1, "z": -0.42}, "y=0.1,z=-0.42"),
        },
        {"shape": "spline", "start": {"y": -0.1}, "via": ("x=0.02,y=0",)},
        {"law": "trapezoidal"},
    ],
    ids=["polyline", "spline", "line"],
)
def test_every_shape_ends_where_it_was_told(delta, shape):
    log = log_of(delta, **shape, end={"y": 0.1}, duration=0.4)
    assert samples(log, "position", ("platform.y", "platform.z"))[-1] == pytest.approx([0.1, -0.5])
    assert samples(log, "velocity")[[0, -1]] == pytest.approx(np.zeros((2, 3)), abs=1e-12)


def test_a_clothoid_leaves_and_arrives_as_it_was_told(delta):
    ends: dict[str, Any] = {"start": {"x": 0, "y": -0.1}, "end": {"x": 0, "y": 0.1}}
    log = log_of(
        delta, shape="clothoid", **ends, start_heading="45deg", end_heading=2.0, duration=0.5
    )
    speed = samples(log, "velocity", ("platform.x", "platform.y"))
    heading = np.arctan2(speed[:, 1], speed[:, 0])
    assert heading[[2, -3]] == pytest.approx([np.pi / 4, 2.0], abs=1e-3)  # a few samples from rest


def test_a_multisine_stays_in_its_band_and_stroke_and_rests_at_its_ends():
    time, start = 60.0, {"motor_1": "100deg", "motor_2": "70deg"}
    options = StrokeOptions(
        shape="multisine",
        start=start,
        end={"motor_1": "110deg", "motor_2": "75deg"},
        frequencies=(0.5, 2.0),
        seed=2,
        duration=time,
        coordinates=ACTUATORS,
    )
    planned = plan_stroke(load("five_bar"), options)
    assert planned.trajectory.duration == time
    log = planned.log(100.0)
    moved = samples(log, "position") - np.radians([100.0, 70.0])
    speed, pull = (samples(log, kind) for kind in ("velocity", "acceleration"))
    assert (np.abs(moved).max(axis=0) < np.radians([10.0, 5.0])).all()
    for values in (moved, speed, pull):
        assert values[[0, -1]] == pytest.approx(np.zeros((2, 2)), abs=1e-9)
    assert np.gradient(moved, 0.01, axis=0)[5:-5] == pytest.approx(speed[5:-5], abs=3e-3)
    assert np.gradient(speed, 0.01, axis=0)[5:-5] == pytest.approx(pull[5:-5], abs=0.1)
    power = np.abs(np.fft.rfft(moved * np.hanning(len(moved))[:, None], axis=0)) ** 2
    inside = (np.fft.rfftfreq(len(moved), 0.01) > 0.4) & (np.fft.rfftfreq(len(moved), 0.01) < 2.1)
    assert (power[inside].sum(axis=0) > 0.999 * power.sum(axis=0)).all()


def test_a_spline_from_a_table_and_a_turn(tmp_path):
    points = tmp_path / "points.csv"
    points.write_text("time [s],position.platform.z [mm]\n0,350\n1,360\n2,355\n", encoding="utf-8")
    planned = plan_stroke(
        load("hexapod"), StrokeOptions(points=points, rotation=(0.0, 0.0, 0.2), duration=0.5)
    )
    assert planned.trajectory.stroke.columns == tuple(
        f"platform.{name}" for name in ("z", "qw", "qx", "qy", "qz")
    )


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("nuwar", {}, "end: no end of the path"),
        ("nuwar", {"end": {"z": -0.5}}, "has no length"),
        ("nuwar", {"end": {"q": 1}}, "no coordinate"),
        ("nuwar", {"end": {"z": -0.9}}, "out of reach by 211.1 mm"),
        (
            "nuwar",
            {"end": {"z": -0.4}, "duration": 1.0, "max_velocity": 1.0},
            "given in addition to duration",
        ),
        ("nuwar", {"end": {"z": -0.4}, "duration": -1.0}, "above 0"),
        ("nuwar", {"end": {"z": -0.4}, "via": ({"x": 0},)}, "needs 0"),
        ("nuwar", {"end": {"z": -0.4}, "rotation": (0.0, 0.0, 1.0)}, "no free orientation"),
        ("hexapod", {"end": {"z": 0.36}, "rotation": (0.0, 1.0)}, "is not three numbers"),
        ("nuwar", {"end": {"z": -0.4}, "shape": "star", "law": "none"}, "'star' is unknown"),
        (
            "nuwar",
            {"shape": "clothoid", "start": {"x": 0}, "end": {"y": 0.1}},
            "end_heading: a clothoid has no direction",
        ),
        ("nuwar", {"end": {"z": -0.4}, "start_heading": 1.0}, "is only for a clothoid"),
        ("hexapod", {**CLOTHOID, "end": {"x": 0.1}}, "are not two coordinates in m"),
        ("nuwar", {**MULTISINE, "max_velocity": 1.0}, "do not determine it"),
        ("nuwar", {**MULTISINE, "duration": 1.0, "frequencies": (2.0, 1.0)}, "is not a range"),
        (
            "hexapod",
            {"shape": "multisine", "end": {"qx": 0.1}, "duration": 1.0},
            "components of a quaternion",
        ),
        ("hexapod", {"end": {"qx": 0.1}, "duration": 1.0}, "end: has the norm 1.00498756, not 1"),
        (
            "hexapod",
            {"shape": "spline", "end": {"rx": "8 deg"}, "via": ("rx=4deg",)},
            "components of a quaternion",
        ),
        (
            "gantry_tau_5dof",
            {"shape": "polyline", "end": {"x": 0.1}, "via": ("x=0.05,qx=0.05",)},
            "cannot be blended",
        ),
    ],
)
def test_what_makes_no_motion_is_refused(name, options, says):
    with pytest.raises(TauloopError) as refused:
        plan_stroke(load(name), StrokeOptions(**options))
    assert any(
        says in f"{p.where}: {p.what} {p.remedy}" and p.remedy for p in refused.value.problems
    )


def test_inverse_dynamics_of_a_table_through_a_singularity_is_refused(tmp_path: Path):
    """The five-bar's distal links lie in one line at y = 0, which no row of the table hits."""
    table = tmp_path / "through.csv"
    y = np.linspace(0.42, -0.05, 42)
    assert np.abs(y).min() > 1e-3
    header = [
        f"{kind}.platform.{axis} [{unit}]" for kind, unit in MOTION_UNITS.items() for axis in "xy"
    ]
    rows = [
        ",".join(f"{value:.9g}" for value in (k / 41, 0, y[k], 0, -0.47, 0, 0)) for k in range(42)
    ]
    table.write_text("\n".join([",".join(["time [s]", *header]), *rows]), encoding="utf-8")
    with pytest.raises(AssemblyError) as refused:
        inverse_dynamics(load("five_bar"), DynamicsOptions(motion=table))
    (problem,) = refused.value.problems
    assert "passes a parallel singularity" in problem.what
    assert float(problem.where.removeprefix("sample ")) == pytest.approx(0.42 / 0.47 * 41, abs=0.01)


@pytest.mark.parametrize("end", [{"z": 0.36, "rx": "12 deg", "rz": "-5 deg"}, {"ry": "15 deg"}])
def test_a_platform_that_turns_along_a_line_stays_rigid(end):
    """Legs measured at the turned joints: between numbers of quaternions the plate would shrink by half a percent."""
    model = Model(load("hexapod"))
    trajectory = plan_stroke(model, StrokeOptions(end=end, max_acceleration=1.0)).trajectory
    time = np.linspace(0.0, trajectory.duration, 21)
    motion = trajectory.at(time)
    x, q = np.split(motion.position, [3], axis=1)
    rotation = Rotation.from_quat(np.roll(q, -1, axis=1))
    home, spread = np.deg2rad([0, 120, 120, 240, 240, 360]), np.deg2rad([10, -10, 10, -10, 10, -10])
    angles = home + spread, np.deg2rad([60, 60, 180, 180, 300, 300]) - spread
    base, plate = (
        r * np.c_[np.cos(a), np.sin(a), 0 * a] for r, a in zip((0.35, 0.2), angles, strict=True)
    )
    legs = np.stack(
        [
            np.linalg.norm(x + rotation.apply(b) - a, axis=1)
            for a, b in zip(base, plate, strict=True)
        ],
        axis=1,
    )
    assert model.actuator_position(model.inverse_kinematics(motion.position).q) == pytest.approx(
        legs, abs=1e-12
    )
    last = Rotation.from_rotvec(
        np.deg2rad([float(end.get(axis, "0 deg").split()[0]) for axis in ("rx", "ry", "rz")])
    )
    assert (rotation[-1] * last.inv()).magnitude() < 1e-12
    # it turns about one axis
    assert (
        np.ptp(np.cross(rotation.as_rotvec()[1:], rotation.as_rotvec()[-1]), axis=0).max() < 1e-12
    )
