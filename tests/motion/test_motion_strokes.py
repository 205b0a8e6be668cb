"""Strokes, limits and durations: rates against differences, limits against a dense search, refusals with the place."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tauloop import Model, load
from tauloop.common.errors import InputError, PoseError
from tauloop.equations.ports import ACTUATORS
from tauloop.motion import (
    LAWS,
    POLYNOMIAL_345,
    AxisTurn,
    CombinedPath,
    Ellipse,
    Line,
    MachineLimits,
    Parabolic,
    PeakAcceleration,
    PeakSpeed,
    SampledPath,
    Seconds,
    fastest_rate,
    plan,
    polyline,
    stroke,
    tightest_limit,
)
from tauloop.motion.rate_limits.peaks import refined
from tauloop.motion.rate_limits.scaling import Quadratics, largest_rate
from tauloop.motion.rate_limits.stroke_limits import limits_of

#: Central differences in time; Newton's method leaves about 1e-12 of the positions, which the step
#: divides.
STEP, DIFFERENCES = 1e-5, 2e-6
#: A limit is kept to rounding through three inverse dynamics; found by a dense search only to the
#: spacing squared.
KEPT, REACHED = 1e-8, 1e-4
PLATE = ("platform.x", "platform.y", "platform.z")
#: Largest acceleration of the plate in the NUWAR paper, m/s^2, and by how much its stroke is scaled
#: to be in reach.
PEAK_ACCELERATION, SCALE = 294.82, 0.72


@cache
def model(name: str) -> Model:
    return Model(load(name))


def pick_and_place(scale: float = SCALE) -> Ellipse:
    return Ellipse(
        [0.0, 0.0, -0.9 * scale], [0.0, -0.2 * scale, 0.0], [0.0, 0.0, 0.4 * scale], 0.0, np.pi
    )


@cache
def strokes() -> dict:
    hexapod, tau, arm, five_bar = (
        model(n) for n in ("hexapod", "gantry_tau_5dof", "pendulum_arm", "five_bar")
    )
    pose, tilted = (m.platform.ports.at(m.assembly.q) for m in (hexapod, tau))
    return {
        "delta": stroke(model("delta"), pick_and_place(), PLATE),
        "hexapod": stroke(
            hexapod,
            CombinedPath(
                (
                    Line(pose[:3], pose[:3] + np.array([0.03, -0.02, 0.02])),
                    AxisTurn([1.0, 0.0, 0.0, 0.0], [0.1, -0.15, 0.2]),
                )
            ),
            hexapod.platform.ports.position.columns,
        ),
        "part of a rotation": stroke(
            tau,
            CombinedPath(
                (Line(tilted[:3] - 0.05, tilted[:3] + 0.05), Line([-0.05, 0.02], [0.06, 0.05]))
            ),
            tau.platform.ports.position.columns,
        ),
        "joints": stroke(
            arm,
            polyline([[0.0, 0.0, 0.6], [0.8, -0.5, 1.0], [1.0, -1.0, 0.7]], 0.2),
            ("waist", "shoulder", "elbow"),
        ),
        "motors": stroke(
            five_bar,
            SampledPath([[2.28, 0.86], [2.2, 0.95], [2.25, 1.0]]),
            ("motor_1", "motor_2"),
            entry=ACTUATORS,
        ),
    }


@pytest.mark.parametrize("name", ["delta", "hexapod", "part of a rotation", "joints", "motors"])
def test_velocities_and_accelerations_are_those_of_the_actuators_positions(name):
    """Two routes: positions closed at neighboring times, and the chain from the path's derivatives to the motors."""
    made = strokes()[name]
    trajectory = plan(made, POLYNOMIAL_345, Seconds(0.8), returns=True)
    A = made.model.assembly.loops.transmission
    time = np.array([0.11, 0.3, 0.47, 0.77, 0.9, 1.33])

    def motors(t):
        motion = trajectory.at(t)
        x = t / trajectory.duration
        start = made.start(trajectory.law.at(np.where(x > 1, 2 - x, x)).s)
        state = made.functions.kinematics(
            motion.position, motion.velocity, motion.acceleration, start=start
        )
        return made.model.actuator_position(state.q), state.v @ A.T, state.a @ A.T

    here, ahead, behind = (motors(time + step) for step in (0.0, STEP, -STEP))
    for kind in (0, 1):
        quotient = (ahead[kind] - behind[kind]) / (2 * STEP)
        size = np.abs(here[2]).max() + np.abs(here[1]).max()
        assert np.abs(quotient - here[kind + 1]).max() < DIFFERENCES * size
        assert np.abs(here[kind + 1]).max() > 1e-2


def test_what_is_not_moved_stays():
    made = stroke(model("delta"), Line([-0.1], [0.1]), ["platform.x"])
    motion = plan(made, POLYNOMIAL_345, Seconds(1.0)).sample(100.0)
    assert np.ptp(motion.position[:, 1:], axis=0) == pytest.approx([0.0, 0.0])
    assert motion.position[[0, -1], 0] == pytest.approx([-0.1, 0.1])


# Limits


coefficients = st.lists(
    st.tuples(
        *(
            st.floats(-3, 3, allow_subnormal=False) | st.sampled_from([0.0, -1.0, 1.0])
            for _ in range(3)
        )
    ),
    min_size=1,
    max_size=6,
)


@given(coefficients)
def test_the_largest_rate_is_the_last_at_which_all_quadratics_hold(rows):
    """Against every root by NumPy: at it nothing is positive, and between and beyond later roots something is."""
    a, b, c = np.round(np.array(rows), 3).T
    limits = Quadratics(a=a, b=b, c=c)
    rate = largest_rate(limits)
    roots = np.concatenate(
        [[0.0], *(np.roots(row) for row in np.stack([a, b, c], axis=1) if row[:2].any())]
    )
    roots = np.sort(roots[(np.abs(roots.imag) < 1e-6) & (roots.real >= 0)].real)
    probes = np.concatenate([0.5 * (roots[1:] + roots[:-1]), [roots[-1] + 1.0]])
    if np.isfinite(rate):
        assert limits.at(rate).max() <= 1e-6 * (1 + rate**2) or rate == 0.0
        later = probes[probes > rate + 1e-5 * (1 + rate)]
        assert all(limits.at(probe).max() > -1e-9 for probe in later)
        assert len(later)
    else:
        assert limits.at(roots[-1] + 1.0).max() <= 0


def test_a_rate_beyond_a_forbidden_one_is_found_by_hand():
    """(r - 1)(r - 2) is negative between 1 and 2; -(r - 3)(r - 1.2) is positive between 1.2 and 3."""
    limits = Quadratics(a=np.array([1.0, -1.0]), b=np.array([-3.0, 4.2]), c=np.array([2.0, -3.6]))
    assert largest_rate(limits) == pytest.approx(1.2)


@given(st.lists(st.floats(-5, 5), min_size=3, max_size=3), st.floats(0.1, 10.0))
def test_three_values_make_the_quadratic(parts, rate):
    a, b, c = (np.array([x]) for x in parts)
    result = Quadratics.around(rate, lambda r: c + r * b + r * r * a)
    assert result.a * rate**2 == pytest.approx(a * rate**2, abs=1e-10)
    assert result.b * rate == pytest.approx(b * rate, abs=1e-10)
    assert result.c == pytest.approx(c, abs=1e-10)


def test_peaks_between_grid_points_are_found():
    grid = np.linspace(0, 1, 12)
    places, heights = refined(lambda x: np.sin(7 * x) ** 2, grid, np.sin(7 * grid) ** 2)
    tops = np.pi / 14 * np.array([1.0, 3.0])
    # a parabola's top is flat: its place is known to the root of its height's rounding
    assert places[:2] == pytest.approx(tops, abs=1e-6)
    assert heights[:2] == pytest.approx([1.0, 1.0], abs=1e-12)


@pytest.mark.parametrize("returns", [False, True], ids=["there", "there and back"])
@pytest.mark.parametrize("law", ["3-4-5", "parabolic"])
@pytest.mark.parametrize("name", ["delta", "part of a rotation", "joints", "motors"])
def test_limits_are_reached_and_not_exceeded(name, law, returns):
    """Shares of all limits over 4001 samples, from inverse dynamics at the rate found and just above it."""
    made = strokes()[name]
    rate = fastest_rate(made, LAWS[law], returns=returns)
    limits = limits_of(made.model)
    progress = LAWS[law].at(np.linspace(0, 1, 4001))
    most = max(
        np.abs(limits.demand(made, progress, sign * rate)).max()
        for sign in ((1, -1) if returns else (1,))
    )
    assert 1 - REACHED < most < 1 + KEPT
    above = max(
        np.abs(limits.demand(made, progress, sign * rate)).max()
        for sign in ((1.01, -1.01) if returns else (1.01,))
    )
    assert above > 1.005


def test_friction_makes_the_way_back_slower_or_equal():
    made = strokes()["joints"]
    assert fastest_rate(made, POLYNOMIAL_345, returns=True) <= fastest_rate(
        made, POLYNOMIAL_345
    ) * (1 + KEPT)


def test_the_limit_that_binds_is_named():
    """The hexapod's struts are limited to 0.6 m/s, and reach that before their force."""
    made = strokes()["hexapod"]
    rate = fastest_rate(made, POLYNOMIAL_345)
    name, share = tightest_limit(made, POLYNOMIAL_345, rate)
    assert share == pytest.approx(1.0, abs=KEPT)
    time = np.linspace(0, 1 / rate, 4001)
    motion = plan(made, POLYNOMIAL_345, Seconds(1 / rate)).at(time)
    state = made.functions.inverse_dynamics(
        motion.position, motion.velocity, motion.acceleration
    ).state
    speed = np.abs(state.v).max(axis=0)[
        list(made.model.topology.velocity_names).index(name.removesuffix(" speed"))
    ]
    assert speed == pytest.approx(0.6, rel=REACHED)


def test_a_share_of_the_limits_takes_longer():
    made = strokes()["delta"]
    whole, half = (plan(made, POLYNOMIAL_345, MachineLimits(force=share)) for share in (1.0, 0.5))
    assert half.duration > whole.duration
    assert max(abs(peak.force) for peak in half.peak_forces()) == pytest.approx(
        0.5 * 41.76, rel=KEPT
    )
    assert max(abs(peak.force) for peak in whole.peak_forces()) == pytest.approx(41.76, rel=KEPT)


def test_a_load_that_cannot_be_held_is_told_with_its_figure():
    heavy = Model(load("delta").with_values({"plate_mass": 60.0}))
    made = stroke(heavy, pick_and_place(), PLATE)
    with pytest.raises(PoseError) as caught:
        fastest_rate(made, POLYNOMIAL_345)
    problem = caught.value.problems[0]
    assert problem.where.endswith("motor")
    assert "however slow" in problem.what
    assert "41.76 N m" in problem.what
    assert "% of the path" in problem.what
    still = heavy.platform.inverse_dynamics(
        made.position(made.grid), *[np.zeros((len(made.grid), 3))] * 2
    )
    figure = float(problem.what.split()[1])
    assert figure == pytest.approx(np.abs(still.force).max(axis=0)[0], rel=1e-3)


def test_a_machine_without_limits_needs_a_duration():
    mechanism = load("delta")
    free = Model(
        replace(mechanism, actuators=tuple(replace(a, force=np.inf) for a in mechanism.actuators))
    )
    with pytest.raises(InputError, match="nothing in the machine file limits the rate"):
        fastest_rate(stroke(free, pick_and_place(), PLATE), POLYNOMIAL_345)


# Durations by peaks


def test_durations_by_peak_speed_and_acceleration():
    """A straight stroke of 0.2 m: 2 L / T at the peak of the parabolic law, 4 L / T^2 all the way."""
    made = stroke(model("delta"), Line([-0.1], [0.1]), ["platform.y"])
    assert plan(made, Parabolic(), PeakSpeed(0.5)).duration == pytest.approx(2 * 0.2 / 0.5)
    assert plan(made, Parabolic(), PeakAcceleration(5.0)).duration == pytest.approx(
        np.sqrt(4 * 0.2 / 5.0)
    )
    assert plan(made, Parabolic(), Seconds(0.7)).duration == 0.7


def test_the_ellipse_reaches_the_peak_acceleration_between_samples():
    trajectory = plan(
        strokes()["delta"], POLYNOMIAL_345, PeakAcceleration(PEAK_ACCELERATION), returns=True
    )
    motion = trajectory.sample(100_000.0)
    size = np.linalg.norm(motion.acceleration, axis=1)
    assert size.max() == pytest.approx(PEAK_ACCELERATION, rel=1e-6)
    assert size.max() <= PEAK_ACCELERATION * (1 + ROUND)
    assert motion.time[-1] >= trajectory.total
    assert motion.position[-1] == pytest.approx(motion.position[0])


#: Rounding of the largest of many samples.
ROUND = 1e-12


def test_the_machine_rests_before_and_after():
    trajectory = plan(strokes()["delta"], Parabolic(), Seconds(0.2))
    motion = trajectory.at(np.array([-1.0, 0.1, 5.0]))
    assert not motion.velocity[[0, 2]].any()
    assert not motion.acceleration[[0, 2]].any()
    assert motion.position[2] == pytest.approx([0.0, 0.2 * SCALE, -0.9 * SCALE])
    assert motion.velocity[1].any()


@pytest.mark.parametrize(
    "timing", [lambda: Seconds(0.0), lambda: PeakSpeed(-1.0), lambda: PeakAcceleration(np.inf)]
)
def test_durations_that_are_not_positive_are_refused(timing):
    with pytest.raises(InputError, match="above 0"):
        timing()


def test_a_frequency_too_low_for_the_motion_is_refused():
    trajectory = plan(strokes()["delta"], Parabolic(), Seconds(0.2))
    for frequency in (0.0, np.nan, 3.0):
        with pytest.raises(InputError, match="Hz"):
            trajectory.sample(frequency)
    with pytest.raises(InputError, match="must be positive"):
        fastest_rate(trajectory.stroke, Parabolic(), force=0.0)


# Strokes that are refused


def test_the_printed_ellipse_is_out_of_reach_and_says_where_and_by_how_much():
    with pytest.raises(PoseError) as caught:
        stroke(model("nuwar"), pick_and_place(1.0), PLATE)
    first, *legs = caught.value.problems
    assert (
        "0.0 % of the path (platform.x = 0 m, platform.y = -0.2 m, platform.z = -0.9 m)"
        in first.what
    )
    assert all("out of reach by" in leg.what for leg in legs)


def test_a_stroke_through_a_singularity_is_refused_between_samples_too():
    """The five-bar's distal links lie in one line when the tip is between the elbows, at y = 0."""
    short, through = (Line([0.0, 0.42], [0.0, end]) for end in (0.1, -0.2))
    made = stroke(model("five_bar"), short, ("platform.x", "platform.y"), ranges=False)
    assert 1 < made.condition < 100
    with pytest.raises(
        PoseError,
        match=r"passes through a singularity \(dead center: .* stands still\) at 67\.7 % of the path",
    ):
        stroke(model("five_bar"), through, ("platform.x", "platform.y"), ranges=False)


def test_a_stroke_beyond_a_range_is_refused_with_the_coordinate():
    with pytest.raises(
        PoseError, match=r"leg1.slide: reaches 0.0817\d+ m, 0.0117\d+ beyond its stop at 0.07"
    ):
        stroke(model("rcid"), Line([0.113], [0.16]), ["platform.z"])
    assert stroke(model("rcid"), Line([0.113], [0.16]), ["platform.z"], ranges=False).condition > 1


@pytest.mark.parametrize(
    ("columns", "options", "where"),
    [
        (("platform.x",), {}, "columns"),
        (("platform.x", "platform.w"), {}, "platform.w"),
        (("platform.x", "platform.x"), {}, "columns"),
        (("platform.x", "platform.y"), {"entry": "legs"}, "coordinates"),
        (("platform.x", "platform.y"), {"base": [0.0]}, "base"),
    ],
)
def test_columns_that_do_not_fit_are_refused(columns, options, where):
    with pytest.raises(InputError) as caught:
        stroke(model("delta"), Line([0.0, 0.0], [0.1, 0.1]), columns, **options)
    assert where in [problem.where for problem in caught.value.problems]
