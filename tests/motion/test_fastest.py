"""The fastest law along a path: known cases, limits by inverse dynamics of the motion itself, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from python_sweeps import reference_sweep

import tauloop as tl
from tauloop.formats import loads, machine_path
from tauloop.formats.writing.yaml_writer import dumps
from tauloop.model.tool import Payload
from tauloop.motion import (
    POLYNOMIAL_345,
    Ellipse,
    Line,
    PathLimits,
    PathRows,
    ProfileLaw,
    fastest_law,
    fastest_rate,
    law_rate,
    limited_law,
    polyline,
    stroke,
)
from tauloop.motion.fastest import sweeps
from tauloop.motion.fastest.changes import changes_taken
from tauloop.motion.strokes.stroke import Stroke

PLATE = ("platform.x", "platform.y", "platform.z")
DELTA = tl.Model(tl.load("delta"))
#: Start and end of the pick-and-place path of the bars.
START, END = np.array([-0.1525, 0.0, -0.525]), np.array([0.1525, 0.0, -0.525])
#: What rounding leaves of limits, by inverse dynamics on a grid ten times finer.
KEPT = 1e-6
#: What the interval in which an acceleration turns costs, of a hundred.
SWITCH = 1e-4
#: Digits of a sweep in machine code beside HiGHS.
ALIKE = 1e-6


def ellipse() -> Stroke:
    middle = 0.5 * (START + END)
    return stroke(
        DELTA, Ellipse(middle, START - middle, np.array([0.0, 0.0, 0.025]), 0.0, np.pi), PLATE
    )


def corners() -> Stroke:
    up = np.array([0.0, 0.0, 0.025])
    return stroke(DELTA, polyline(np.array([START, START + up, END + up, END]), 0.012), PLATE)


def forces(
    placed: Stroke, law: ProfileLaw, duration: float, payload: Payload | None = None
) -> np.ndarray:
    x = np.linspace(0.0, 1.0, 10_001)
    progress = law.at(x)
    motion = placed.motion(progress, 1.0 / duration, x * duration)
    start = placed.start(progress.s)
    return np.asarray(
        placed.functions.inverse_dynamics(*motion.states, start=start, payload=payload).force
    )


def test_a_line_under_a_bound_of_the_tools_acceleration_takes_two_roots() -> None:
    placed = stroke(DELTA, Line([-0.05, 0.0, -0.5], [0.05, 0.0, -0.5]), PLATE)
    best = fastest_law(PathRows(placed, PathLimits(tool_acceleration=5.0)), intervals=100)
    assert best.duration == pytest.approx(2.0 * np.sqrt(0.1 / 5.0), rel=SWITCH)


@pytest.mark.parametrize(
    ("path", "gain"), [(ellipse, 0.42), pytest.param(corners, 0.58, marks=pytest.mark.nightly)]
)
def test_the_bars_of_pick_and_place_are_reached(path: object, gain: float) -> None:
    placed = path()  # type: ignore[operator]
    best = fastest_law(PathRows(placed, PathLimits()))
    assert isinstance(best.law, ProfileLaw)
    share = np.abs(forces(placed, best.law, best.duration)).max(axis=1) / 41.76
    assert share.max() < 1.0 + KEPT
    assert np.median(share) > 0.999  # one motor or another is at its limit
    assert 1.0 - best.duration * fastest_rate(placed, POLYNOMIAL_345) > gain


def test_fixed_laws_have_the_rate_that_their_own_planner_finds() -> None:
    placed = ellipse()
    rows = PathRows(placed, PathLimits(force=0.8, speed=0.8))
    assert law_rate(rows, POLYNOMIAL_345, 10.0) == pytest.approx(
        fastest_rate(placed, POLYNOMIAL_345, force=0.8, speed=0.8), rel=1e-8
    )


def test_machine_code_sweeps_as_highs_does() -> None:
    rng, n, m = np.random.default_rng(1), 12, 6
    rows = rng.normal(size=(n + 1, m, 3))
    rows[:, :, 2] = rng.uniform(0.5, 1.5, (n + 1, m))
    rows = np.concatenate([rows, rows * [1.0, -1.0, 1.0]], axis=1)
    grid = np.sort(np.concatenate([[0.0, 1.0], rng.uniform(size=n - 1)]))
    for is_constant in (np.zeros(n), np.ones(n)):
        made = [
            sweep(grid, rows[:-1], rows[1:], np.full(n + 1, 2.0), is_constant)
            for sweep in (sweeps.sweep, reference_sweep)
        ]
        assert made[0].x == pytest.approx(made[1].x, abs=ALIKE)


def test_rows_that_rounding_alone_bends_have_a_profile() -> None:
    """A circle of bounds of the tool's acceleration, on a line whose curvature is rounding."""
    n, angle = 12, np.linspace(0.0, np.pi, 65)
    right = np.stack([8.7e-9 * np.sin(angle), 0.25 * np.cos(angle), np.ones(65)], axis=1)
    rows = np.tile(right * [0.0, 1.0, 1.0], (n, 1, 1)), np.tile(right, (n, 1, 1))
    grid = np.linspace(0.0, 1.0, n + 1)
    for is_constant in (np.zeros(n), np.ones(n)):
        profile = sweeps.sweep(grid, *rows, np.full(n + 1, 1e6), is_constant)
        assert profile.x[n // 2] == pytest.approx(2.0 * 4.0 * 0.5, rel=1e-6)


def test_a_laws_derivatives_are_those_of_its_progress() -> None:
    best = fastest_law(PathRows(ellipse(), PathLimits()), intervals=100)
    x = np.linspace(0.013, 0.987, 41)
    h = 1e-6
    low, here, high = (best.law.at(x + k * h) for k in (-1, 0, 1))
    assert (high.s - low.s) / (2 * h) == pytest.approx(here.derivative, abs=1e-6)
    assert (high.derivative - low.derivative) / (2 * h) == pytest.approx(
        here.second_derivative, rel=1e-3, abs=1e-4
    )
    ends = best.law.at(np.array([0.0, 1.0]))
    assert ends.s == pytest.approx([0.0, 1.0], abs=1e-12)
    assert ends.derivative == pytest.approx([0.0, 0.0], abs=1e-9)


def test_every_payload_from_none_to_the_heaviest_keeps_the_limits() -> None:
    placed, heaviest = ellipse(), Payload(mass=0.6, center=(0.0, 0.0, -0.03))
    best = fastest_law(PathRows(placed, PathLimits(force=0.9, payload=heaviest)), intervals=300)
    assert isinstance(best.law, ProfileLaw)
    for load in (None, replace(heaviest, mass=0.2), heaviest):
        share = np.abs(forces(placed, best.law, best.duration, load)).max() / 41.76
        assert share < 0.9 * (1.0 + KEPT)


def test_motors_keep_their_curve_over_speed() -> None:
    placed, curve = ellipse(), ((0.0, 1.0), (10.0, 1.0), (30.0, 0.2))
    best = fastest_law(PathRows(placed, PathLimits(motor_curve=curve)), intervals=300)
    assert isinstance(best.law, ProfileLaw)
    x = np.linspace(0.0, 1.0, 10_001)
    progress = best.law.at(x)
    motion = placed.motion(progress, 1.0 / best.duration, x)
    state = placed.functions.kinematics(*motion.states, start=placed.start(progress.s))
    speed = np.abs(np.asarray(state.v) @ DELTA.assembly.loops.transmission.T)
    left = np.interp(speed, *np.array(curve).T)
    share = np.abs(forces(placed, best.law, best.duration)) / 41.76 / left
    assert 0.999 < share.max() < 1.0 + KEPT
    assert speed.max() > 10.0


def test_rods_keep_their_bounds() -> None:
    placed = ellipse()
    best = fastest_law(PathRows(placed, PathLimits(tension=150.0, compression=60.0)), intervals=300)
    x = np.linspace(0.0, 1.0, 10_001)
    progress = best.law.at(x)
    motion = placed.motion(progress, 1.0 / best.duration, x)
    solution = placed.functions.inverse_dynamics(*motion.states, start=placed.start(progress.s))
    rods = [k for k, name in enumerate(solution.closure_names) if "forearm" in name]
    push = solution.closure_force[:, rods]
    assert -150.0 * (1.0 + KEPT) < push.min() < -149.0 or 59.0 < push.max() < 60.0 * (1.0 + KEPT)
    assert push.max() < 60.0 * (1.0 + KEPT)
    assert push.min() > -150.0 * (1.0 + KEPT)


@pytest.mark.nightly
def test_speeds_of_joints_are_kept_and_told() -> None:
    options = tl.PathOptions(stroke=tl.StrokeOptions(end={"z": 0.12}), intervals=100)
    motion = tl.plan_path(tl.load("rcid"), options)
    assert any("speed" in part.limit for part in motion.active)
    assert motion.active[0].limit.endswith("drive")
    assert motion.status.value == "ok"


@pytest.mark.nightly
def test_the_way_back_keeps_limits_against_friction_too() -> None:
    model = tl.Model(tl.load("five_bar"))
    there = fastest_law(
        PathRows(stroke(model, Line([-0.08, 0.4], [0.08, 0.4]), PLATE[:2]), PathLimits())
    )
    both = fastest_law(PathRows(there.rows.stroke, PathLimits(), returns=True))
    assert both.duration > there.duration
    assert there.rows.at(np.array([0.5]), 1.0).g.any()  # viscous friction
    back = forces(there.rows.stroke, both.law, -both.duration)  # type: ignore[arg-type]
    assert np.abs(back).max() < 8.0 * (1.0 + KEPT)


def test_the_command_says_what_is_active_and_tries_it_out() -> None:
    stroke = tl.StrokeOptions(start={"y": -0.1}, end={"y": 0.1})
    motion = tl.plan_path(DELTA, tl.PathOptions(stroke=stroke, payload=0.1, intervals=200))
    assert motion.status.value == "ok"
    assert [run.payload for run in motion.tried] == [0.0, 0.1]
    rated = dumps(tl.load("delta")).replace(
        "  body: plate\n", "  body: plate\n  payload: 0.1 kg\n", 1
    )
    options = tl.PathOptions(stroke=stroke, intervals=200)
    assert tl.plan_path(loads(rated), options).duration == motion.duration
    assert tl.plan_path(loads(rated), replace(options, payload=0.0)).duration < motion.duration
    assert max(run.peak_share for run in motion.tried) < 1.0
    assert motion.without_reserve < motion.duration < min(motion.laws.values())
    assert motion.active[0].start <= 0.01 * motion.duration
    text = motion.c_array(2000.0)
    rows = text.count("    {")
    assert f"#define MOTION_SAMPLES {rows}\n" in text
    assert rows == int(np.ceil(motion.duration * 2000.0 - 1e-9)) + 1


def test_the_fastest_law_is_one_of_a_strokes_laws() -> None:
    options = tl.StrokeOptions(start={"y": -0.1}, end={"y": 0.1}, law="fastest")
    motion = tl.plan_stroke(DELTA, options)
    assert motion.tightest_limit is not None
    assert motion.tightest_limit[1] == pytest.approx(1.0, abs=KEPT)
    assert (
        motion.trajectory.duration
        < tl.plan_stroke(DELTA, replace(options, law="parabolic")).trajectory.duration
    )


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("path", "ends", "gain"),
    [
        (ellipse, "braked", 0.36),
        (corners, "braked", 0.46),
        (ellipse, "held", 0.31),
        (corners, "held", 0.43),
    ],
)
def test_a_full_reversal_of_torque_in_20_ms_leaves_most_of_the_gain(
    path: object, ends: str, gain: float
) -> None:
    placed = path()  # type: ignore[operator]
    limits = PathLimits(reversal=0.02, ends=ends)
    best = limited_law(fastest_law(PathRows(placed, limits)))
    assert 1.0 - best.duration * fastest_rate(placed, POLYNOMIAL_345) > gain
    assert changes_taken(best.rows, best.law, 1.0 / best.duration, best.unit)[0].max() < 1.0 + KEPT
    torque = forces(placed, best.law, best.duration)  # type: ignore[arg-type]
    change = np.abs(np.diff(torque[::10], axis=0)).max() * 1000 / best.duration
    assert change < 2 * 41.76 / 0.02 * 1.01
    assert np.abs(torque).max() < 41.76 * (1.0 + KEPT)


@pytest.mark.parametrize(
    ("machine", "words"),
    [
        ("cable_robot", "^cable_robot: has cables"),
        ("four_bar", "limits: nothing limits the acceleration"),
    ],
)
def test_what_has_no_fastest_law_says_why(machine: str, words: str) -> None:
    text = machine_path(machine).read_text(encoding="utf-8")
    model = tl.Model(tl.loads(text.replace(", force: 5 N m", "")))
    name = model.platform.ports.position.columns[0]
    at = float(model.platform.ports.at(model.assembly.q)[0])
    with pytest.raises(tl.InputError, match=words):
        PathRows(stroke(model, Line([at], [at + 0.01]), (name,)), PathLimits())


def test_a_load_that_motors_cannot_hold_is_refused_with_its_place() -> None:
    with pytest.raises(tl.PoseError, match=r"no speed satisfies all limits.*needs"):
        fastest_law(PathRows(ellipse(), PathLimits(payload=Payload(mass=40.0))), intervals=50)


@pytest.mark.parametrize(
    "curve", [((0.0, 1.0),), ((1.0, 1.0), (2.0, 0.5)), ((0.0, 1.0), (1.0, 0.2), (2.0, 0.1))]
)
def test_curves_of_motors_that_are_none_are_refused(curve: tuple[tuple[float, float], ...]) -> None:
    with pytest.raises(tl.InputError, match="motor_curve"):
        PathLimits(motor_curve=curve)


def test_a_duration_is_refused_beside_the_fastest_motion() -> None:
    with pytest.raises(tl.InputError, match="cannot be given: the planner determines it"):
        tl.PathOptions(stroke=tl.StrokeOptions(end={"x": 0.05}, duration=1.0))


def test_a_path_may_have_thousands_of_rows() -> None:
    """Repeated rows change nothing, and are more than fit into any fixed memory."""
    n = 4
    grid = np.linspace(0.0, 1.0, n + 1)
    rows = np.tile([[0.2, 1.0, 1.0], [-0.1, -1.0, 1.0], [1.0, 0.0, 3.0]], (n, 1, 1))
    top, is_constant = np.full(n + 1, 2.0), np.array([0.0, 1.0, 0.0, 1.0])
    expected = sweeps.sweep(grid, rows, rows, top, is_constant)
    many = np.tile(rows, (1, 2000, 1))
    profile = sweeps.sweep(grid, many, many, top, is_constant)
    assert profile.x == pytest.approx(expected.x, rel=1e-12)
    assert profile.first == pytest.approx(expected.first, rel=1e-12)
