"""Residuals of calibrations: right readings, exact derivatives, right weights, and two ways that agree."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from calibration_sessions import P21, encoders, machine, measured, part_errors
from scipy.spatial.transform import Rotation

from tauloop.calibration import (
    Contact,
    Cylinder,
    Distance,
    ForwardKinematics,
    Frame,
    Inclinometer,
    Instrument,
    JointSensor,
    LoopEquations,
    Orientation,
    Plane,
    Pose,
    Position,
    Series,
    Sphere,
    Tolerances,
    aligned,
    calibration_problem,
    select_unknowns,
    solve_calibration,
)
from tauloop.calibration.judging.statistics import covariance
from tauloop.common.errors import InputError, PoseError
from tauloop.compiler.c import Compiled
from tauloop.compiler.c.calling.compiler import find_compiler

#: Kinematics of two codes: Newton's tolerance over the smallest noise used (m).
SAME_READING = 1e-9
#: Central differences of residuals with steps of 1e-6: truncation and rounding.
DIFFERENCES = 1e-5
#: Correlated noise of 300 residuals: their mean square lies this near one.
NOISE = 0.25

#: A tilted frame far from the base, so that a mix-up of frames cannot pass.
FRAME = Frame(
    position=(2.0, -1.0, 0.5),
    quaternion=tuple(np.roll(Rotation.from_rotvec([0.3, -0.5, 1.1]).as_quat(), 1).tolist()),
)
INSTRUMENTS: dict[str, tuple[str, Instrument, tuple[str, ...]]] = {
    "position": (
        "gantry_tau_3dof",
        Position(name="t", frame=FRAME, target=(0.01, 0.02, 0.03)),
        ("track1.length", "t.frame.*"),
    ),
    "partial": (
        "gantry_tau_3dof",
        Position(name="t", components="zx"),
        ("track*.length", "track1.gain"),
    ),
    "tilting position": (
        "gantry_tau_6link",
        Position(name="t", frame=FRAME),
        ("triple*.B_z", "pair*.length"),
    ),
    "pose": (
        "gantry_tau_6link",
        Pose(name="t", frame=FRAME),
        ("*.length", "t.target.*", "t.frame.*"),
    ),
    "orientation": (
        "gantry_tau_6link",
        Orientation(name="t", frame=FRAME),
        ("*.length", "t.frame.r*"),
    ),
    "hexapod pose": ("hexapod", Pose(name="t"), ("encoder.*",)),
    "ball bar": (
        "gantry_tau_3dof",
        Distance(name="bar", center=(0.2, 0.1, -0.5)),
        ("track*.length", "bar.*"),
    ),
    "plane": ("linear_delta", Contact(name="bed"), ("tower*.arm", "bed.*")),
    "tilted plane": (
        "linear_delta",
        Contact(name="bed", surface=Plane(point=(0, 0, 0.01), normal=(0.1, 0.2, 1))),
        ("tower*.arm", "bed.offset"),
    ),
    "sphere": (
        "linear_delta",
        Contact(name="ball", surface=Sphere(center=(0.0, 0.0, -0.2), radius=0.02)),
        ("tower*.radius", "ball.*"),
    ),
    "inclinometer": ("gantry_tau_6link", Inclinometer(name="level"), ("triple*.length", "level.*")),
    "joint sensor": (
        "gantry_tau_3dof",
        JointSensor(name="s", coordinate="platform.y", unit="m"),
        ("track*.length", "s.*", "encoder.*.offset"),
    ),
}


def series_of(
    case: str, count: int = 12, noise: float = 1e-5
) -> tuple[str, Series, tuple[str, ...]]:
    name, instrument, parameters = INSTRUMENTS[case]
    rng = np.random.default_rng(3)
    stroke = {"hexapod": 0.02, "linear_delta": 0.03}.get(name, 0.12)
    positions = encoders(name, count, rng, stroke)
    true = part_errors(name, tuple(p for p in parameters if not p.startswith("encoder")), 5e-4, rng)
    return name, measured(name, true, instrument, positions, noise), parameters


@pytest.mark.parametrize("case", INSTRUMENTS)
def test_an_instrument_reads_what_the_kinematics_say(case):
    """A machine measured without noise: no errors at its own geometry, although other code worked the readings out."""
    name, instrument, parameters = INSTRUMENTS[case]
    rng = np.random.default_rng(1)
    true = part_errors(name, ("*.length", "tower*.arm"), 1e-3, rng)
    positions = encoders(name, 5, rng, 0.02)
    series = replace(measured(name, true, instrument, positions, 1e-300), noise=1.0)
    own, nominal = (
        calibration_problem(mechanism, [series], parameters)
        for mechanism in (machine(name).with_values(true), machine(name))
    )
    zero = np.zeros(len(own.free))
    assert np.abs(own.evaluate(zero).residual).max() < SAME_READING
    if true:
        assert np.abs(nominal.evaluate(zero).residual).max() > 1e3 * SAME_READING


@pytest.mark.parametrize(
    "kind", [ForwardKinematics(), LoopEquations()], ids=["kinematics", "loops"]
)
@pytest.mark.parametrize("case", INSTRUMENTS)
def test_derivatives_are_those_of_the_residuals(case, kind):
    name, series, parameters = series_of(case, count=6)
    problem = calibration_problem(
        machine(name), [series], parameters, residuals=kind, encoder_noise=1e-6
    )
    rng = np.random.default_rng(5)
    at = 3e-4 * rng.standard_normal(len(problem.free))
    evaluation = problem.evaluate(at)
    assert evaluation.is_reached
    J = problem.jacobian(evaluation)
    direction = 1e-6 * rng.standard_normal(len(at))
    forth, back = (problem.evaluate(at + sign * direction, evaluation).residual for sign in (1, -1))
    difference = (forth - back) / 2
    assert J.shape == (len(problem.pose_of_row), len(at))
    np.testing.assert_allclose(
        J @ direction, difference, atol=DIFFERENCES * np.abs(difference).max()
    )


@pytest.mark.parametrize(
    "name", ["delta", "five_bar", "gantry_tau_5dof", "pendulum_arm", "spidermill"]
)
def test_any_machine_can_be_calibrated(name):
    """Turning motors, planar machines, telescopes, no loops at all, redundant loops: exact derivatives everywhere."""
    rng = np.random.default_rng(2)
    positions = encoders(name, 4, rng, 0.01)
    series = Series(
        instrument=Position(name="t"), encoders=positions, readings=np.zeros((4, 3)), noise=1.0
    )
    problem = calibration_problem(machine(name), [series], ("*",))
    evaluation = problem.evaluate(np.zeros(len(problem.free)))
    direction = 1e-6 * rng.standard_normal(len(problem.free))
    forth, back = (problem.evaluate(sign * direction, evaluation).residual for sign in (1, -1))
    difference = (forth - back) / 2
    assert evaluation.is_reached
    assert np.abs(difference).max() > 1e-8
    np.testing.assert_allclose(
        problem.jacobian(evaluation) @ direction,
        difference,
        atol=DIFFERENCES * np.abs(difference).max(),
    )


def test_loop_equations_read_off_a_hexapod_need_no_forward_kinematics():
    """A full pose gives all coordinates but the legs': as many residuals as loops."""
    name, series, parameters = series_of("hexapod pose")
    problem = calibration_problem(machine(name), [series], parameters, residuals=LoopEquations())
    assert problem.measured_poses[0].n_rows == 6
    assert problem.measured_poses[0].elimination.closing.shape[1] == 0


def test_what_nobody_measured_is_eliminated():
    """Positions of a plate that tilts: three of six loops find the three angles, three are left."""
    name, series, parameters = series_of("tilting position")
    problem = calibration_problem(machine(name), [series], parameters, residuals=LoopEquations())
    assert problem.measured_poses[0].elimination.closing.shape[1:] == (3, 6)
    assert problem.measured_poses[0].n_rows == 3


@pytest.mark.parametrize("name", ["gantry_tau_3dof", "gantry_tau_6link"])
def test_both_kinds_of_residuals_find_the_same_geometry(name):
    """To first order they are the same estimate: within a hundredth of the standard deviations."""
    rng = np.random.default_rng(7)
    parameters = (
        P21
        if name == "gantry_tau_3dof"
        else ("triple*.length", "pair*.length", "single1.length", "*.B_z")
    )
    positions = encoders(name, 60, rng)
    true = part_errors(name, parameters, 3e-4, rng)
    series = measured(name, true, Position(name="t"), positions, 1e-5)
    rows = []
    for kind in (ForwardKinematics(), LoopEquations()):
        problem = calibration_problem(
            machine(name), [series], parameters, residuals=kind, encoder_noise=1e-5
        )
        rows.append(solve_calibration(problem))
    deviations = np.sqrt(np.diag(covariance(rows[0], 1.0, problem.tolerances)))
    assert np.abs((rows[0].correction - rows[1].correction) / deviations).max() < 0.05


@pytest.mark.parametrize(
    "kind", [ForwardKinematics(), LoopEquations()], ids=["kinematics", "loops"]
)
def test_noise_of_instrument_and_encoders_is_weighted_rightly(kind):
    """At the true geometry whitened residuals have variance one, with noise in both."""
    name, noise, encoder_noise = "gantry_tau_3dof", 2e-5, 5e-5
    rng = np.random.default_rng(11)
    positions = encoders(name, 100, rng)
    series = measured(name, {}, Position(name="t"), positions, noise)
    noisy = replace(
        series, encoders=positions + encoder_noise * rng.standard_normal(positions.shape)
    )
    problem = calibration_problem(
        machine(name), [noisy], ("track1.length",), residuals=kind, encoder_noise=encoder_noise
    )
    residual = problem.evaluate(np.zeros(1)).residual
    assert np.mean(residual**2) == pytest.approx(1.0, abs=NOISE)
    blind = calibration_problem(machine(name), [noisy], ("track1.length",), residuals=kind)
    assert np.mean(blind.evaluate(np.zeros(1)).residual ** 2) > 2.0


def test_a_frame_is_found_by_alignment():
    """Both a position and an orientation place the frame from which readings were made."""
    positions = encoders("gantry_tau_6link", 8, np.random.default_rng(2))
    for instrument in (Pose(name="t", frame=FRAME), Position(name="t", frame=FRAME)):
        series = measured("gantry_tau_6link", {}, instrument, positions, 1e-9)
        lost = replace(series, instrument=replace(instrument, frame=Frame()))
        frame = aligned(machine("gantry_tau_6link"), lost).instrument.frame
        np.testing.assert_allclose(frame.position, FRAME.position, atol=1e-7)
        assert abs(np.dot(frame.quaternion, FRAME.quaternion)) == pytest.approx(1.0, abs=1e-12)
    instrument = Orientation(name="t", frame=FRAME)
    series = measured("gantry_tau_6link", {}, instrument, positions, 1e-9)
    start = Frame(
        quaternion=tuple(np.roll(Rotation.from_rotvec([0.2, -0.4, 1.0]).as_quat(), 1).tolist())
    )
    frame = aligned(
        machine("gantry_tau_6link"), replace(series, instrument=replace(instrument, frame=start))
    )
    assert abs(np.dot(frame.instrument.frame.quaternion, FRAME.quaternion)) == pytest.approx(
        1.0, abs=1e-12
    )


def test_other_readings_of_the_same_poses():
    name, series, parameters = series_of("position")
    readings = series.readings + 1e-3 * np.arange(series.readings.size).reshape(
        series.readings.shape
    )
    once, anew = (
        calibration_problem(machine(name), [case], parameters)
        for case in (series, replace(series, readings=readings))
    )
    x = 1e-4 * np.arange(len(once.free))
    np.testing.assert_allclose(
        once.reading(readings).evaluate(x).residual, anew.evaluate(x).residual, atol=1e-9
    )
    with pytest.raises(ValueError, match="shorter"):
        once.reading()


def test_some_poses_and_some_unknowns_of_a_problem():
    name, series, parameters = series_of("position")
    problem = calibration_problem(machine(name), [series, series], parameters)
    x = 1e-4 * np.arange(len(problem.free))
    part = problem.take(np.array([1, 5, 13]))
    whole = problem.evaluate(x).residual.reshape(-1, 3)
    np.testing.assert_allclose(
        part.evaluate(x).residual.reshape(-1, 3), whole[[1, 5, 13]], atol=1e-6
    )
    single = problem.only(["t.frame.x"])
    J = problem.jacobian(problem.evaluate(np.zeros(len(x))))
    column = problem.names.index("t.frame.x")
    np.testing.assert_allclose(single.jacobian(single.evaluate(np.zeros(1)))[:, 0], J[:, column])
    with pytest.raises(InputError, match="not among the unknowns"):
        problem.only(["t.frame.q"])


@pytest.mark.skipif(find_compiler() is None, reason="needs a C compiler")
def test_machine_code_gives_the_same_numbers(tmp_path):
    name, series, parameters = series_of("position")
    plain, fast = (
        calibration_problem(machine(name), [series], parameters, evaluator=how)
        for how in (None, Compiled(at_least=0, folder=tmp_path))
    )
    x = 1e-4 * np.arange(len(plain.free))
    single, other = plain.evaluate(x), fast.evaluate(x)
    np.testing.assert_allclose(single.residual, other.residual, atol=1e-6)
    np.testing.assert_allclose(plain.jacobian(single), fast.jacobian(other), rtol=1e-9, atol=1e-6)
    assert list(tmp_path.iterdir())


# Unknowns


def test_patterns_ties_and_tolerances():
    mechanism = machine("linear_delta")
    unknowns = select_unknowns(
        mechanism,
        Contact(name="bed").nuisances(),
        ("radius=tower*.radius", "tower1.angle", "tower*.end_stop", "bed.slope_?"),
        Tolerances(length=2e-3, named={"radius": 5e-3}, priors=("*",)),
    )
    assert [u.name for u in unknowns][:2] == ["radius", "tower1.angle"]
    assert unknowns[0].members == ("tower1.radius", "tower2.radius", "tower3.radius")
    assert [u.tolerance for u in unknowns] == [5e-3, 1e-3, 2e-3, 2e-3, 2e-3, 1e-3, 1e-3]
    assert [u.has_prior for u in unknowns] == [True] * 5 + [False] * 2
    assert unknowns[1].unit == "rad"
    everything = select_unknowns(mechanism, (), ("*",), Tolerances())
    assert {mechanism.parameters[u.name].group for u in everything} <= {"geometry", "drive"}
    # a rotor's inertia belongs to the drive, too, but no measured pose shows it
    cranks = machine("five_bar")
    assert "rotor_inertia" in {p.name for p in cranks.parameters}
    assert {u.unit for u in select_unknowns(cranks, (), ("*",), Tolerances())} <= {"m", "rad", "1"}
    assert select_unknowns(cranks, (), ("rotor_inertia",), Tolerances())[0].unit == "kg m^2"


def test_a_tie_moves_its_members_together():
    name, series, _ = series_of("plane")
    problem = calibration_problem(machine(name), [series], ("radius=tower*.radius",))
    values = problem.values(np.array([1e-3]))
    assert values == {f"tower{i}.radius": pytest.approx(0.173) for i in (1, 2, 3)}
    apart = calibration_problem(machine(name), [series], ("tower*.radius",))
    np.testing.assert_allclose(
        problem.evaluate(np.array([1e-3])).residual,
        apart.evaluate(np.full(3, 1e-3)).residual,
        atol=1e-6,
    )


@pytest.mark.parametrize(
    ("patterns", "message"),
    [
        (("tower1.radios",), "did you mean"),
        (("nothing*",), "no parameter has this name"),
        (("tower1.arm", "tower*.arm"), "already named"),
        (("x=tower1.*",), "ties parameters in"),
        ((), "none is selected"),
    ],
)
def test_unknowns_that_cannot_be_meant(patterns, message):
    with pytest.raises(InputError, match=message):
        select_unknowns(machine("linear_delta"), (), patterns, Tolerances())


# Bad measurements


def test_all_faults_of_a_series_are_told_at_once():
    bad = np.array([[0.1, np.nan, 0.2]])
    with pytest.raises(InputError) as caught:
        Series(
            instrument=Position(name="t"),
            encoders=bad,
            readings=np.zeros((2, 2)),
            noise=-1.0,
            labels=("a", "b"),
        )
    assert len(caught.value.problems) == 4


def test_poses_out_of_reach_are_named_with_the_loop():
    name, series, parameters = series_of("position")
    far = series.encoders.copy()
    far[[3, 7], 0] += 6.0
    with pytest.raises(PoseError) as caught:
        calibration_problem(machine(name), [replace(series, encoders=far)], parameters)
    assert [problem.where[-6:] for problem in caught.value.problems] == ["pose 4", "pose 8"]
    problems = caught.value.problems[0].what
    gap = float(problems.partition("stays open by ")[2].removesuffix(" mm"))
    # 6 m of travel leave a gap of decimetres at least, and no more than themselves
    assert 100 < gap < 6e3
    assert "units" in caught.value.problems[0].remedy
    assert len(caught.value.problems) == 2  # no swap of columns brings these within reach


def test_swapped_columns_that_put_poses_out_of_reach_are_named():
    name = "gantry_tau_3dof"
    series = measured(
        name, {}, Position(name="tracker"), encoders(name, 12, np.random.default_rng(3)), 2e-5
    )
    with pytest.raises(PoseError) as caught:
        calibration_problem(
            machine(name),
            [replace(series, encoders=series.encoders[:, [1, 0, 2]])],
            ("track1.length",),
        )
    problems = [problem.what for problem in caught.value.problems]
    assert any("columns of track1.motor and track2.motor swapped" in what for what in problems)
    assert not any("columns of track1.motor and track3.motor swapped" in what for what in problems)


def test_instruments_that_do_not_fit_the_machine():
    name, series, parameters = series_of("position")
    cases = [
        (Position(name="t", components="xq"), np.zeros((12, 2)), "distinct letters"),
        (JointSensor(name="s", coordinate="elbow"), np.zeros((12, 1)), "not a scalar coordinate"),
        (JointSensor(name="s", coordinate="platform.x"), np.zeros((12, 1)), "set the unit to m"),
        (
            Position(name="t", frame=Frame(quaternion=(1, 1, 0, 0))),
            np.zeros((12, 3)),
            "has length 1.41",
        ),
        (Contact(name="c", surface=Plane(normal=(0, 0, 0))), np.zeros((12, 1)), "has no direction"),
        (
            Contact(name="c", surface=Sphere(center=(0, 0, 0), radius=0.0)),
            np.zeros((12, 1)),
            "radius: must be positive, got 0 m",
        ),
    ]
    for instrument, values, message in cases:
        other = Series(instrument=instrument, encoders=series.encoders, readings=values, noise=1.0)
        with pytest.raises(InputError, match=message):
            calibration_problem(machine(name), [other], ("track1.length",))
    two = replace(
        series,
        instrument=replace(series.instrument, components="xy"),
        readings=series.readings[:, :2],
    )
    with pytest.raises(InputError, match="two different instruments"):
        calibration_problem(machine(name), [series, two], parameters)
    with pytest.raises(InputError, match="2 columns for 3 actuators"):
        calibration_problem(
            machine(name), [replace(series, encoders=series.encoders[:, :2])], parameters
        )
    with pytest.raises(InputError, match="at least one series"):
        calibration_problem(machine(name), [], parameters)


def test_a_cylinder_is_touched_at_its_radius():
    surface = Cylinder(point=(0, 0, 1), axis=(0, 0, 2), radius=0.1)
    import casadi as ca

    distance = surface.distance(ca.SX([0.3, 0.4, 7.0]), {"radius": 0.1})
    assert float(ca.DM(ca.evalf(distance))) == pytest.approx(0.4)


def test_loop_equations_refuse_more_readings_than_coordinates():
    """A bar's length and two actuators' positions are not three coordinates of the plate; a pose twice is too many."""
    name = "gantry_tau_6link"
    positions = encoders(name, 4, np.random.default_rng(0))
    series = measured(name, {}, Pose(name="t"), positions, 1e-5)
    problem = calibration_problem(
        machine(name), [series], ("single1.length",), residuals=LoopEquations()
    )
    # full pose and carts: nine readings for nine coordinates
    assert problem.measured_poses[0].n_rows == 6
    sensor = JointSensor(name="s", coordinate="track1.slide", unit="m")
    again = Series(instrument=sensor, encoders=positions, readings=positions[:, :1], noise=1e-5)
    with pytest.raises(InputError, match="not independent"):
        calibration_problem(machine(name), [again], ("single1.length",), residuals=LoopEquations())
