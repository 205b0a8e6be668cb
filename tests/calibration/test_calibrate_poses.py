"""Observability indices, candidates, and optimal pose selection, each against a second route."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from printed import printed

from tauloop import Model, load
from tauloop.calibration import PosePlan, PosePlanOptions, plan_poses
from tauloop.calibration.judging.observability import observability, observable_directions
from tauloop.calibration.measurements.instruments import (
    Contact,
    Inclinometer,
    Instrument,
    Orientation,
    Pose,
    Position,
)
from tauloop.calibration.measurements.simulated import simulated_readings, simulated_series
from tauloop.calibration.measurements.surfaces import Plane, Sphere
from tauloop.calibration.pose_selection.candidates import (
    PoseLimits,
    candidate_poses,
    default_clearance,
)
from tauloop.calibration.pose_selection.selection import (
    CRITERIA,
    D_OPTIMAL,
    E_OPTIMAL,
    select_poses,
)
from tauloop.calibration.problem.problem import calibration_problem
from tauloop.calibration.problem.unknowns import Tolerances
from tauloop.calibration.solving.solver import solve_calibration
from tauloop.common.errors import IdentificationError, InputError, PoseError
from tauloop.display.tables.identification.poses_tables import poses_tables
from tauloop.geometry.clearance import rod_clearance
from tauloop.kinematics.singularities import SINGULARITY_KINDS, singularities

#: The same figure by two routes of linear algebra on well-conditioned matrices.
SAME = 1e-9
#: Positions that assembled coordinates give, by two routes of kinematics, m.
KINEMATICS = 1e-12
#: Exchange finds a local optimum: on these sets of 10 candidates it stays this near the best of all
#: subsets.
NEAR_BEST = 1.05
SEED = 7
#: A point of a level plane within reach of the RCID's tool.
RCID_PLANE = (0.0, 0.0, 0.132)


def random_jacobians(n_candidates: int, r: int, n: int, seed: int = SEED) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n_candidates, r, n))


@pytest.fixture(scope="module")
def tau() -> Model:
    return Model(load("gantry_tau_3dof"))


# Observability.


def test_indices_of_known_singular_values() -> None:
    J = np.diag([8.0, 4.0, 1.0]).reshape(3, 1, 3)
    indices = observability(J)
    assert indices.O1 == pytest.approx((8 * 4 * 1) ** (1 / 3) / np.sqrt(3), rel=SAME)
    assert indices.O2 == pytest.approx(1 / 8, rel=SAME)
    assert indices.O3 == pytest.approx(1.0, rel=SAME)
    assert indices.O4 == pytest.approx(1 / 8, rel=SAME)
    assert indices.O5 == pytest.approx(1 / (1 / 8 + 1 / 4 + 1), rel=SAME)
    assert (indices.n_unobservable, indices.poses) == (0, 3)


def test_silent_directions_are_counted_and_left_out() -> None:
    J = random_jacobians(6, 2, 5)
    J[:, :, 4] = J[:, :, 0] - J[:, :, 1]
    indices, basis = observability(J), observable_directions(J)
    assert indices.n_unobservable == 1
    assert basis.shape == (5, 4)
    assert np.abs(J @ np.array([1.0, -1.0, 0.0, 0.0, -1.0])).max() < SAME
    assert np.abs(basis.T @ np.array([1.0, -1.0, 0.0, 0.0, -1.0])).max() < SAME


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_indices_grow_with_another_pose_and_do_not_depend_on_axes(seed: int) -> None:
    J = random_jacobians(9, 2, 5, seed)
    turn = np.linalg.qr(random_jacobians(1, 5, 5, seed + 1)[0])[0]
    fewer, more, turned = observability(J[:-1]), observability(J), observability(J @ turn)
    assert more.O3 >= fewer.O3 * (1 - SAME)
    assert more.O5 >= fewer.O5 * (1 - SAME)
    assert more.O1 * 3 >= fewer.O1 * np.sqrt(8) * (1 - SAME)
    for index in ("O1", "O2", "O3", "O4", "O5"):
        assert getattr(turned, index) == pytest.approx(getattr(more, index), rel=SAME)


@pytest.mark.parametrize(
    "bad", [np.zeros((3, 2)), np.zeros((0, 2, 3)), np.full((2, 1, 2), np.nan)], ids=str
)
def test_bad_jacobians_are_refused(bad: np.ndarray) -> None:
    with pytest.raises(InputError, match="jacobians"):
        observability(bad)


def test_poses_that_show_nothing_are_refused() -> None:
    with pytest.raises(IdentificationError, match="do not depend on any of the parameters"):
        observability(np.zeros((3, 1, 2)))


# Selection.


def direct_value(name: str, M: np.ndarray) -> float:
    """The criteria from eigenvalues, another route than determinants and inverses."""
    variances = 1.0 / np.linalg.eigvalsh(M)
    figures = {"D": np.exp(np.log(variances).mean()), "A": variances.mean(), "E": variances.max()}
    return float(np.sqrt(figures[name]))


@pytest.mark.parametrize("name", CRITERIA)
@pytest.mark.parametrize("with_prior", [False, True])
def test_selection_is_near_the_best_of_all_subsets(name: str, with_prior: bool) -> None:
    J, count = random_jacobians(10, 2, 5), 4
    prior = np.full(5, 0.3) if with_prior else np.zeros(5)

    def value(subset: tuple[int, ...]) -> float:
        rows = J[list(subset)].reshape(-1, 5)
        return direct_value(name, rows.T @ rows + np.diag(prior))

    best = min(value(subset) for subset in itertools.combinations(range(10), count))
    selection = select_poses(
        J, count, criterion=CRITERIA[name], prior=prior if with_prior else None
    )
    assert selection.value == pytest.approx(value(selection.chosen), rel=SAME)
    assert best * (1 - SAME) <= selection.value <= best * NEAR_BEST
    assert selection.value <= selection.start_value * (1 + SAME)
    assert len(set(selection.chosen)) == count


@pytest.mark.parametrize("name", CRITERIA)
def test_the_best_addition_is_that_of_brute_force(name: str) -> None:
    J = random_jacobians(40, 3, 6)
    M = np.eye(6) + J[0].T @ J[0]
    allowed = np.ones(40, dtype=bool)
    allowed[:5] = False
    values = [
        direct_value(name, M + pose.T @ pose) if ok else np.inf
        for pose, ok in zip(J, allowed, strict=True)
    ]
    assert CRITERIA[name].best(M, J, allowed) == int(np.argmin(values))


@pytest.mark.parametrize("name", CRITERIA)
def test_no_single_exchange_betters_the_selection(name: str) -> None:
    J = random_jacobians(25, 2, 6)
    selection = select_poses(J, 8, criterion=CRITERIA[name])
    for place in range(8):
        for new in set(range(25)) - set(selection.chosen):
            some = [*selection.chosen[:place], new, *selection.chosen[place + 1 :]]
            rows = J[some].reshape(-1, 6)
            # rounds end when they gain less than a ten-thousandth
            assert direct_value(name, rows.T @ rows) >= selection.value * (1 - 1e-3)


def test_a_direction_that_nobody_shows_is_left_out() -> None:
    J = random_jacobians(30, 2, 5)
    J[:, :, 4] = 0.0
    selection, without = select_poses(J, 6), select_poses(J[:, :, :4], 6)
    assert selection.n_unobservable == 1
    assert selection.chosen == without.chosen
    assert selection.value == pytest.approx(without.value, rel=SAME)


def test_repeated_poses_where_one_shows_most() -> None:
    J = np.array([[[10.0, 0.0]], [[0.0, 10.0]], [[1.0, 1.0]]])
    assert select_poses(J, 4, repeated=True).chosen == (0, 0, 1, 1)


def test_too_few_poses_are_refused() -> None:
    J = random_jacobians(10, 2, 7)
    with pytest.raises(IdentificationError, match="none of them has an effect on the measurements"):
        select_poses(np.zeros((20, 3, 2)), 4)
    with pytest.raises(
        IdentificationError, match="3 poses with 2 residuals each cannot determine 7 directions"
    ):
        select_poses(J, 3)
    with pytest.raises(InputError, match="11 of 10 candidates"):
        select_poses(J, 11)
    assert len(select_poses(J, 3, prior=np.ones(7)).chosen) == 3


# Candidates and readings.


def test_candidates_keep_all_limits() -> None:
    model = Model(load("gantry_tau_6link"))
    limits = PoseLimits(
        singularity=0.3,
        clearance=0.1,
        ranges={"platform.x": (-0.6, 0.6), "platform.y": (-0.4, 0.4)},
    )
    candidates = candidate_poses(model, 60, np.random.default_rng(SEED), limits=limits)
    measures = singularities(model, candidates.q)
    assert all((measures.distance(kind) >= 0.3).all() for kind in SINGULARITY_KINDS)
    assert rod_clearance(model).distances(candidates.q).min() >= 0.1
    assert np.abs(candidates.encoders).max() <= 1.5
    assert len(candidates) == 60
    assert candidates.tried == 60 * (candidates.tried // 60)
    # each limit did its work
    assert {"out of reach", "interference of rods"} <= set(candidates.excluded)
    assert (
        "serial singularity" in candidates.excluded or "parallel singularity" in candidates.excluded
    )
    again = model.forward_kinematics(candidates.encoders).q
    assert np.abs(again - candidates.q).max() < KINEMATICS * 1e3


def test_limits_that_cannot_be_kept_are_named(tau: Model) -> None:
    with pytest.raises(PoseError, match=r"excluded: .*singularity"):
        candidate_poses(tau, 10, np.random.default_rng(SEED), limits=PoseLimits(singularity=0.99))
    with pytest.raises(InputError, match="not a platform position"):
        candidate_poses(
            tau,
            10,
            np.random.default_rng(SEED),
            limits=PoseLimits(ranges={"platform.u": (0.0, 1.0)}),
        )


def test_a_platform_that_turns_gets_unit_quaternions() -> None:
    candidates = candidate_poses(
        Model(load("rcid")), 20, np.random.default_rng(SEED), limits=PoseLimits(max_rotation=0.1)
    )
    quaternion = candidates.position[:, 3:]
    assert np.abs(np.linalg.norm(quaternion, axis=1) - 1).max() < KINEMATICS
    assert 0.02 < np.abs(quaternion[:, 1:]).max() <= 0.05


@pytest.mark.parametrize(
    "instrument",
    [
        Position(name="t", target=(0.01, 0.02, 0.03)),
        Pose(name="t"),
        Orientation(name="t"),
        Inclinometer(name="t"),
    ],
    ids=lambda instrument: type(instrument).__name__,
)
def test_simulated_readings_leave_no_residual(instrument: Instrument) -> None:
    model = Model(load("rcid"))
    poses = candidate_poses(model, 8, np.random.default_rng(SEED))
    series = simulated_series(model, instrument, poses.q, 1e-5)
    problem = calibration_problem(model.mechanism, [series], ["encoder.leg1.drive.offset"])
    assert np.abs(problem.evaluate(np.zeros(1)).states[0].errors).max() < 1e-9


def test_position_readings_are_the_tool_centre_point(tau: Model) -> None:
    poses = candidate_poses(tau, 8, np.random.default_rng(SEED))
    readings = simulated_readings(tau, Position(name="t"), poses.q)
    assert np.abs(readings - poses.position - np.array([0.0, 0.0, -0.2])).max() < KINEMATICS


def test_noise_has_its_size_and_quaternions_stay_units() -> None:
    model = Model(load("rcid"))
    q = np.repeat(model.assembly.q[None], 4000, axis=0)
    exact = simulated_readings(model, Pose(name="t"), q)
    noisy = simulated_series(
        model, Pose(name="t"), q, (1e-3,) * 3 + (2e-3,) * 3, np.random.default_rng(SEED)
    ).readings
    assert np.abs(np.linalg.norm(noisy[:, 3:], axis=1) - 1).max() < KINEMATICS
    # 4 000 draws scatter by 1.1 %
    assert np.std(noisy[:, :3] - exact[:, :3], axis=0) == pytest.approx(1e-3, rel=0.05)
    assert 2 * np.std(noisy[:, 4:], axis=0) == pytest.approx(2e-3, rel=0.05)


# The plan.


def planned(model: Model, parameters: tuple[str, ...], **more: Any) -> PosePlan:
    """A plan for a position tracker of 20 um; tolerances of 1 mm and 1 mrad are no priors."""
    options: dict[str, Any] = {"seed": SEED, "noise": 2e-5, "tolerance_priors": False, **more}
    return plan_poses(model, PosePlanOptions(parameters=parameters, **options))


def test_a_plan_expects_what_a_fit_would_have(tau: Model) -> None:
    parameters = ("track*.length", "track*.yaw", "track*.pitch", "track*.gain", "track*.offset_?")
    plan = planned(tau, parameters, count=20, candidates=150, counts=(6, 12, 40))
    chosen = np.array(plan.selection.chosen)
    problem = plan.problem.take(chosen)
    J = problem.jacobian(problem.evaluate(np.zeros(21)))
    scale = plan.problem.tolerances
    covariance = np.linalg.inv((J * scale).T @ (J * scale)) * np.outer(scale, scale)
    # conditioned to about 1e8, hence the looser comparison
    assert plan.deviations == pytest.approx(np.sqrt(np.diag(covariance)), rel=1e-4)
    everywhere = plan.problem.jacobian(plan.problem.evaluate(np.zeros(21)))
    expected = np.sqrt(np.einsum("ij,jk,ik->i", everywhere, covariance, everywhere).mean())
    assert plan.error == pytest.approx(expected, rel=1e-4)
    # 6 poses have 18 residuals for 21 unknowns
    assert [point.count for point in plan.curve] == [12, 40]
    assert plan.curve[0].error > plan.error > plan.curve[1].error
    assert all(
        point.random_error is not None and point.random_error > point.error for point in plan.curve
    )


def test_the_expected_error_is_that_of_simulated_fits(tau: Model) -> None:
    parameters = ("track*.length", "track*.yaw", "track*.offset_?")
    tracker, noise, draws = Position(name="tracker"), 2e-5, 8
    plan = planned(tau, parameters, count=15, candidates=100)
    everywhere = plan.problem.jacobian(plan.problem.evaluate(np.zeros(15)))
    q = plan.candidates.q[list(plan.selection.chosen)]
    squares = []
    for seed in range(draws):
        series = simulated_series(tau, tracker, q, noise, np.random.default_rng(seed))
        problems = solve_calibration(calibration_problem(tau.mechanism, [series], parameters))
        squares.append(((everywhere @ problems.correction) ** 2).mean())
    # 8 draws of 15 unknowns: the mean square scatters by 13 %, its root by half of that, three of
    # which are allowed
    assert np.sqrt(np.mean(squares)) == pytest.approx(plan.error, rel=0.2)


def test_what_no_pose_shows_has_no_deviation(tau: Model) -> None:
    def deviations(*priors: str) -> np.ndarray:
        tolerances = Tolerances(named={"*": 1e-3}, priors=priors)
        parameters = ("track1.length", "track1.offset_?", "tracker.frame.?")
        return planned(tau, parameters, count=20, candidates=60, tolerances=tolerances).deviations

    # the whole machine moves with the tracker
    with_offsets = ("track?.offset_?", "tracker.frame.?")
    plan = planned(tau, with_offsets, count=20, candidates=60)
    assert plan.selection.n_unobservable == 3
    assert np.isinf(plan.deviations).all()
    assert np.isfinite(deviations()).all()
    assert (deviations("track*", "tracker*") < deviations()).all()


def test_e_optimal_is_best_in_its_own_criterion() -> None:
    J = random_jacobians(200, 3, 10) * np.logspace(0, -1.5, 10)
    chosen = {
        name: list(select_poses(J, 15, criterion=criterion).chosen)
        for name, criterion in CRITERIA.items()
    }
    worst = {name: observability(J[some]).O3 for name, some in chosen.items()}
    volume = {name: observability(J[some]).O1 for name, some in chosen.items()}
    assert max(worst, key=lambda name: worst[name]) == "E"
    assert max(volume, key=lambda name: volume[name]) == "D"
    assert E_OPTIMAL.value(np.diag([4.0, 9.0])) == pytest.approx(0.5, rel=SAME)
    assert D_OPTIMAL.value(np.diag([4.0, 9.0])) == pytest.approx(1 / np.sqrt(6), rel=SAME)


def test_all_bad_options_are_refused_at_once() -> None:
    with pytest.raises(InputError) as caught:
        PosePlanOptions(measure="smell", count=0)
    assert {problem.where for problem in caught.value.problems} == {
        "measure",
        "count",
        "parameters",
    }


# Contacts, ball bars and joint sensors.


@pytest.mark.parametrize(
    ("name", "contact"),
    [
        ("linear_delta", Contact(name="bed")),
        (
            "gantry_tau_3dof",
            Contact(name="t", surface=Plane(point=(0, 0, -0.2), normal=(0.1, 0.2, 1.0))),
        ),
        ("gantry_tau_3dof", Contact(name="t", surface=Sphere(center=(0.0, 0.0, -0.3), radius=0.1))),
        ("rcid", Contact(name="t", surface=Plane(point=RCID_PLANE), target=(0.01, 0.0, 0.02))),
    ],
    ids=["bed", "tilted plane", "sphere", "turning platform"],
)
def test_candidates_of_a_contact_touch_its_surface(name: str, contact: Contact) -> None:
    """Gaps worked out by the kinematics of `Model`, apart from the code that closed them."""
    model = Model(load(name))
    candidates = candidate_poses(model, 25, np.random.default_rng(SEED), touching=contact)
    tool_point = Position(name="t", target=contact.target)
    points = simulated_readings(model, tool_point, model.forward_kinematics(candidates.encoders).q)
    surface = contact.surface
    if isinstance(surface, Plane):
        gaps = (points - surface.point) @ np.array(surface.normal) / np.linalg.norm(surface.normal)
    else:
        assert isinstance(surface, Sphere)
        gaps = np.linalg.norm(points - surface.center, axis=1) - surface.radius
    assert np.abs(gaps).max() < KINEMATICS * 1e3
    assert np.ptp(points, axis=0)[:2].min() > 0.005


def test_a_surface_that_cannot_be_touched_is_told() -> None:
    far = Contact(name="bed", surface=Plane(point=(0.0, 0.0, 5.0)))
    with pytest.raises(PoseError, match="outside the ranges"):
        candidate_poses(Model(load("linear_delta")), 10, np.random.default_rng(SEED), touching=far)


def test_rods_keep_a_sensible_distance_unless_told_otherwise() -> None:
    model = Model(load("hexapod"))
    usual = default_clearance(model)
    clearance = rod_clearance(model)
    assert usual is not None
    segments = clearance.segments(model.assembly.q[None])[0]
    lengths = np.linalg.norm(segments[:, 1] - segments[:, 0], axis=1)
    assert usual == pytest.approx(
        min(0.02 * lengths.mean(), clearance.distances(model.assembly.q[None]).min() / 2)
    )
    wild = PoseLimits(max_rotation=1.5, joint_ranges=False, singularity=0.0)
    kept, close = (
        candidate_poses(model, 150, np.random.default_rng(0), limits=replace(wild, clearance=least))
        for least in (None, 0.0)
    )
    assert kept.clearance == usual
    assert clearance.distances(kept.q).min() >= usual > clearance.distances(close.q).min()
    assert "interference of rods" in kept.excluded
    assert "interference of rods" not in close.excluded
    assert default_clearance(Model(load("pendulum_arm"))) is None


@pytest.mark.parametrize(
    ("name", "parameters", "options"),
    [
        ("linear_delta", ("tower*.radius", "tower*.end_stop"), {"measure": "contact"}),
        (
            "gantry_tau_3dof",
            ("track*.length",),
            {"measure": "distance", "ball_center": (0.0, 0.1, -0.6)},
        ),
        (
            "delta",
            ("arm_length", "forearm_length"),
            {"measure": "joint", "coordinate": "platform.z"},
        ),
    ],
)
def test_contacts_bars_and_joint_sensors_are_planned(
    name: str, parameters: tuple[str, ...], options: dict[str, Any]
) -> None:
    plan = plan_poses(
        Model(load(name)),
        PosePlanOptions(parameters=parameters, count=12, candidates=40, **options),
    )
    assert len(plan.selection.chosen) == 12
    assert np.isfinite(plan.deviations).all()
    text = printed(poses_tables(plan))
    assert f"{options['measure']} measured" in text
    assert (
        "interference of rods was not checked" in text
        or "rods have no thickness in machine files" in text
    )


def test_an_instrument_may_be_described_by_a_file(tau: Model, tmp_path: Path) -> None:
    path = tmp_path / "ball.yaml"
    path.write_text(
        "kind: contact\nsurface: {sphere: {center: [0 m, 0 m, -0.3 m], radius: 10 cm}}\n",
        encoding="utf-8",
    )
    options = PosePlanOptions(
        parameters=("track*.length",), count=8, candidates=30, instrument=path
    )
    points = np.array(plan_poses(tau, options).as_dict()["positions"])
    tool = np.array([0.0, 0.0, -0.2])  # the tool centre point
    assert np.linalg.norm(points + tool - [0.0, 0.0, -0.3], axis=1) == pytest.approx(0.1, abs=1e-9)
    path.write_text("kind: contakt\nnoise: 1 mm\n", encoding="utf-8")
    with pytest.raises(InputError) as caught:
        plan_poses(tau, options)
    assert any("did you mean contact" in problem.remedy for problem in caught.value.problems)
    assert any("unknown key" in problem.what for problem in caught.value.problems)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"measure": "distance"}, "give the fixed center of the bar"),
        ({"measure": "joint"}, "name the coordinate or output that is read: platform.x"),
        ({"measure": "joint", "coordinate": "elbow"}, "is not a scalar coordinate"),
    ],
)
def test_what_is_missing_of_an_instrument_is_told(
    tau: Model, options: dict[str, str], message: str
) -> None:
    with pytest.raises(InputError) as caught:
        plan_poses(tau, PosePlanOptions(parameters=("track1.length",), **options))
    assert message in " ".join(
        f"{problem.what} {problem.remedy}" for problem in caught.value.problems
    )
