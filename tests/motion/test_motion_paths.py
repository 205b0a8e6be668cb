"""Paths and laws: derivatives against differences, hand-computed points, curvature that does not jump, bad input."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.integrate import quad, solve_ivp
from scipy.spatial.transform import Rotation, Slerp
from scipy.special import fresnel

from tauloop.common.errors import InputError
from tauloop.motion import (
    LAWS,
    POLYNOMIAL_345,
    POLYNOMIAL_4567,
    AxisTurn,
    Clothoid,
    CombinedPath,
    Ellipse,
    Line,
    Multisine,
    Parabolic,
    SampledPath,
    Trapezoidal,
    polyline,
    sheared_ellipse,
    turn_between,
)
from tauloop.motion.excitation.fading import Faded, FadedPath
from tauloop.motion.paths.clothoids import clothoid_between

#: Central differences with this step err by about step^2 times the third derivative and by rounding
#: over the step.
STEP, DIFFERENCES = 1e-5, 2e-6
#: Rounding of a few operations on numbers about one.
ROUNDING = 1e-12
#: Two sides of a joint between pieces of a chain, this far apart in u, differ by the next
#: derivative times that.
SIDE = 1e-9
CORNERS = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 2.0, 0.5], [0.0, 2.0, 3.0]])
UNIT = np.array([0.5, 0.5, -0.5, 0.5])

SINES = Multisine(
    center=np.array([1.0, 2.0]),
    amplitude=np.array([0.1, 0.2]),
    frequency=np.full((2, 1), 4.0),
    phase=np.array([0.1, 2]),
)
PATHS = {
    "line": Line([1.0, 2.0, 3.0], [0.0, 2.5, -1.0]),
    "ellipse": Ellipse([1.0, 2.0], [0.5, 0.1], [0.2, 0.9], 0.3, 4.0),
    "sheared ellipse": sheared_ellipse([0.0, 0.0], [1.0, 0.0], [0.0, 2.0], 0.7),
    "clothoid": Clothoid(
        start=[1.0, 2.0],
        direction=[0.6, 0.8],
        normal=[-0.8, 0.6],
        length=2.0,
        curvature=(-1.5, 3.0),
    ),
    "polyline": polyline(CORNERS, 0.4),
    "spline": SampledPath([[0.0, 0.0], [1.0, 0.3], [1.2, 1.0], [0.5, 2.0]]),
    "closed spline": SampledPath([[0.0, 0.0], [1.0, 0.3], [1.2, 1.0], [0.0, 0.0]]),
    "turn": AxisTurn(UNIT, [0.3, -2.0, 1.0]),
    "clothoid between": clothoid_between(np.array([0.1, 0.2]), np.array([1.0, 0.9]), (-0.4, 1.5)),
    "faded multisine": FadedPath(
        motion=Faded(motion=SINES, center=SINES.center, duration=2.0, fade=0.5), highest=0.7
    ),
    "line beside turn": CombinedPath((Line([0.0], [1.0]), AxisTurn(UNIT, [0.1, 0.2, 0.3]))),
}


@pytest.mark.parametrize("name", PATHS)
@given(seed=st.integers(0, 2**31))
def test_derivatives_of_paths_are_those_of_their_points(name, seed):
    path = PATHS[name]
    u = np.random.default_rng(seed).uniform(2 * STEP, 1 - 2 * STEP, 20)
    here, ahead, behind = (path.at(u + step) for step in (0.0, STEP, -STEP))
    assert here.position.shape == (20, path.size)
    scale = 1 + np.abs(here.second_derivative).max()
    assert (
        np.abs((ahead.position - behind.position) / (2 * STEP) - here.derivative).max()
        < DIFFERENCES * scale
    )
    # the third derivative of a chain jumps inside a piece's end, so its second may differ by that
    # times the step
    loose = 100 if name == "polyline" else 1
    assert (
        np.abs((ahead.derivative - behind.derivative) / (2 * STEP) - here.second_derivative).max()
        < loose * DIFFERENCES * scale
    )


def test_a_half_ellipse_by_hand():
    """From (-2, 1) over (0, 4) to (2, 1); at the top it goes along x and bends down."""
    path = Ellipse([0.0, 1.0], [-2.0, 0.0], [0.0, 3.0], 0.0, np.pi)
    curve = path.at(np.array([0.0, 0.5, 1.0]))
    assert curve.position == pytest.approx(np.array([[-2.0, 1.0], [0.0, 4.0], [2.0, 1.0]]))
    assert curve.derivative[1] == pytest.approx([2 * np.pi, 0.0])
    assert curve.second_derivative[1] == pytest.approx([0.0, -3 * np.pi**2])


@given(st.floats(-3, 3))
def test_a_sheared_ellipse_is_the_ellipse_after_a_shear(shear):
    u = np.linspace(0, 1, 30)
    straight = Ellipse([0.0, 0.0], [1.5, 0.0], [0.0, 2.0]).at(u).position
    sheared = sheared_ellipse([0.0, 0.0], [1.5, 0.0], [0.0, 2.0], shear).at(u).position
    matrix = np.array([[1.0, shear * 1.5 / 2.0], [0.0, 1.0]])
    assert sheared == pytest.approx(straight @ matrix.T, abs=ROUNDING * 10)


@given(st.floats(0.1, 9.0), st.floats(0.2, 3.0))
def test_a_clothoid_from_straight_is_fresnels(curvature, length):
    """theta = k s^2 / (2 L): x = a C(s / a), y = a S(s / a) with a = sqrt(pi L / k)."""
    path = Clothoid(
        start=np.zeros(2),
        direction=np.eye(2)[0],
        normal=np.eye(2)[1],
        length=length,
        curvature=(0.0, curvature),
    )
    u = np.linspace(0, 1, 12)
    a = np.sqrt(np.pi * length / curvature)
    S, C = fresnel(u * length / a)
    assert path.at(u).position == pytest.approx(a * np.stack([C, S], axis=1), abs=ROUNDING * 10)


def test_a_clothoid_of_constant_curvature_is_an_arc():
    path = Clothoid(
        start=np.zeros(2),
        direction=np.eye(2)[0],
        normal=np.eye(2)[1],
        length=np.pi,
        curvature=(1.0, 1.0),
    )
    assert path.at(np.array([0.5, 1.0])).position == pytest.approx(
        np.array([[1.0, 1.0], [0.0, 2.0]])
    )


@given(seed=st.integers(0, 2**31))
def test_a_clothoid_between_two_headings_is_where_its_curvature_leads(seed):
    """x' = cos theta, y' = sin theta, theta'' constant, integrated by SciPy, lead to the point and the direction."""
    rng = np.random.default_rng(seed)
    (start, end), headings = rng.normal(size=(2, 2)), rng.uniform(-3, 3, 2)
    clothoid = clothoid_between(start, end, (headings[0], headings[1]))
    (first, last), length = clothoid.curvature, clothoid.length
    way = solve_ivp(
        lambda s, x: [np.cos(x[2]), np.sin(x[2]), first + (last - first) * s / length],
        (0, length),
        [*start, headings[0]],
        rtol=1e-10,
        atol=1e-10,
    ).y
    assert way[:2, -1] == pytest.approx(end, abs=1e-7 * (1 + length))
    assert np.cos(way[2, -1] - headings[1]) == pytest.approx(1.0, abs=1e-12)
    assert np.ptp(way[2]) < 2 * np.pi  # no loop


def test_a_clothoid_between_equal_headings_along_the_chord_is_the_line():
    clothoid = clothoid_between(np.zeros(2), np.array([3.0, 4.0]), (np.arctan2(4, 3),) * 2)
    assert (clothoid.length, clothoid.curvature) == (
        pytest.approx(5.0),
        pytest.approx((0.0, 0.0), abs=ROUNDING),
    )
    with pytest.raises(InputError, match="plane"):
        clothoid_between(np.zeros(3), np.ones(3), (0.0, 0.0))


def test_a_blended_polyline_has_no_jump_up_to_the_curvature():
    path = polyline(CORNERS, 0.4)
    total = sum(path.lengths)
    knots = np.cumsum(path.lengths)[:-1] / total
    before, after = path.at(knots - SIDE), path.at(knots + SIDE)
    for kind in ("position", "derivative", "second_derivative"):
        assert getattr(before, kind) == pytest.approx(getattr(after, kind), abs=1e4 * SIDE)
    assert np.abs(path.at(np.linspace(0, 1, 500)).second_derivative).max() > 1.0  # it does bend
    ends = path.at(np.array([0.0, 1.0]))
    assert ends.position == pytest.approx(CORNERS[[0, -1]])


def test_a_blended_polyline_runs_by_its_arc_length_and_leaves_lines_at_the_blends():
    path = polyline(CORNERS, 0.4)
    speed = np.linalg.norm(path.at(np.linspace(0, 1, 301)).derivative, axis=1)
    assert speed == pytest.approx(np.full(301, sum(path.lengths)))
    length = quad(lambda u: np.linalg.norm(path.at(np.array([u])).derivative), 0, 1)[0]
    chord = np.linalg.norm(
        np.diff(path.at(np.linspace(0, 1, 20001)).position, axis=0), axis=1
    ).sum()
    assert length == pytest.approx(chord, rel=1e-6)
    first_line = path.lengths[0]
    assert first_line == pytest.approx(1.0 - 0.4)
    assert path.at(np.array([first_line / sum(path.lengths)])).position[0] == pytest.approx(
        [0.6, 0.0, 0.0]
    )


def test_a_straight_corner_is_none():
    path = polyline([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]], 0.3)
    assert len(path.pieces) == 2
    assert path.at(np.array([0.25])).position[0] == pytest.approx([0.5, 0.0])


def test_a_spline_goes_through_its_points_and_closes():
    points = np.array([[0.0, 0.0], [1.0, 0.3], [1.2, 1.0], [0.0, 0.0]])
    path = SampledPath(points)
    assert path.at(path.spline.x).position == pytest.approx(points, abs=ROUNDING)
    ends = path.at(np.array([0.0, 1.0]))
    assert ends.derivative[0] == pytest.approx(ends.derivative[1])
    assert ends.second_derivative[0] == pytest.approx(ends.second_derivative[1])


@given(st.integers(0, 2**31))
def test_a_turn_between_orientations_is_slerp(seed):
    orientations = Rotation.random(2, rng=np.random.default_rng(seed))
    start, end = (np.roll(r.as_quat(), 1) for r in orientations)
    u = np.linspace(0, 1, 9)
    path = turn_between(start, end).at(u)
    expected = np.roll(Slerp([0.0, 1.0], orientations)(u).as_quat(), 1, axis=1)
    same = np.abs((path.position * expected).sum(axis=1))
    assert same == pytest.approx(np.ones(9))
    assert np.linalg.norm(path.position, axis=1) == pytest.approx(np.ones(9))


@pytest.mark.parametrize(
    ("make", "wheres"),
    [
        (lambda: Line([0.0, 1.0], [0.0]), ["end"]),
        (lambda: Line([0.0, np.nan], [0.0, np.inf]), ["start", "end"]),
        (lambda: Line([1.0, 1.0], [1.0, 1.0]), ["end"]),
        (lambda: Ellipse([0.0], [0.0], [0.0], 1.0, 1.0), ["semi_axis_a", "end"]),
        (lambda: polyline([[0.0, 0.0]], 0.1), ["points"]),
        (lambda: polyline(CORNERS, 0.0), ["blend"]),
        (lambda: polyline([[0.0, 0.0], [0.0, 0.0], [1.0, 0.0]], 0.1), ["points[1]"]),
        (lambda: polyline([[0.0, 0.0], [1.0, 0.0], [0.0, 0.0]], 0.1), ["points[1]"]),
        (lambda: polyline(CORNERS, 1.2), ["points[0] to points[1]", "points[1] to points[2]"]),
        (lambda: SampledPath([[0.0, 1.0]]), ["points"]),
        (lambda: SampledPath([[0.0], [1.0], [1.0]]), ["points[2]"]),
        (lambda: AxisTurn([1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0]), ["start"]),
        (lambda: AxisTurn([1.0, 0.0, 0.0], [0.0, 0.0, 1.0]), ["start"]),
        (lambda: Trapezoidal(0.6), ["ramp"]),
        (
            lambda: Clothoid(
                start=[0.0, 0.0],
                direction=[1.0, 0.0],
                normal=[1.0, 0.0],
                length=-1.0,
                curvature=(0.0, np.nan),
            ),
            ["normal", "length", "curvature"],
        ),
    ],
)
def test_what_makes_no_path_is_refused(make, wheres):
    with pytest.raises(InputError) as caught:
        make()
    assert [problem.where for problem in caught.value.problems] == wheres


# Motion laws


@pytest.mark.parametrize(
    "law", [*LAWS.values(), Trapezoidal(0.5), Trapezoidal(0.1)], ids=lambda law: repr(law)[:40]
)
def test_laws_go_from_rest_to_rest_with_their_derivatives(law):
    ends = law.at(np.array([0.0, 1.0]))
    assert ends.s == pytest.approx([0.0, 1.0])
    assert ends.derivative == pytest.approx([0.0, 0.0], abs=ROUNDING * 100)
    x = np.linspace(0.01, 0.99, 197)
    x = x[np.abs(x[:, None] - np.array([*law.breaks, -1.0])).min(axis=1) > 2 * STEP]
    here, ahead, behind = (law.at(x + step) for step in (0.0, STEP, -STEP))
    assert (ahead.s - behind.s) / (2 * STEP) == pytest.approx(here.derivative, abs=1e-7)
    assert (ahead.derivative - behind.derivative) / (2 * STEP) == pytest.approx(
        here.second_derivative, abs=1e-6
    )
    mirrored = law.at(1.0 - x)
    assert mirrored.s == pytest.approx(1.0 - here.s)
    assert mirrored.derivative == pytest.approx(here.derivative)
    for jump in law.breaks:
        sides = law.at(np.array([np.nextafter(jump, 0.0), jump]))
        assert abs(np.diff(sides.second_derivative)[0]) > 1.0
        assert np.diff(sides.derivative)[0] == pytest.approx(0.0, abs=ROUNDING)


@pytest.mark.parametrize(
    ("law", "speed", "acceleration"),
    [
        (Parabolic(), 2.0, 4.0),
        (LAWS["cycloidal"], 2.0, 2 * np.pi),
        (POLYNOMIAL_345, 15 / 8, 10 / np.sqrt(3)),
        (POLYNOMIAL_4567, 35 / 16, 84 / (5 * np.sqrt(5))),
        (Trapezoidal(0.25), 4 / 3, 16 / 3),
        (Trapezoidal(0.5), 2.0, 4.0),
    ],
    ids=["parabolic", "cycloidal", "3-4-5", "4-5-6-7", "trapezoidal", "without plateau"],
)
def test_peaks_of_laws_are_those_of_the_books(law, speed, acceleration):
    result = law.at(np.linspace(0, 1, 100001))
    assert result.derivative.max() == pytest.approx(speed, rel=1e-8)
    assert np.abs(result.second_derivative).max() == pytest.approx(acceleration, rel=1e-8)
