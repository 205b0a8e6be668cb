"""The engines against hand-made dynamics on machines with rods: d'Alembert's principle, exact reduction of rods."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from engine_machines import (
    ARM,
    ARM_CENTER,
    ARM_INERTIA,
    ARM_MASS,
    BASE_POINTS,
    FIRST_AXIS,
    FOREARM,
    FULL,
    HAND_MASS,
    LEG_AXIS,
    PAYLOAD,
    ROD_H,
    ROD_J,
    ROD_MASS,
    ROUND,
    SLENDER,
    THIN,
    THIN_UPPER,
    TOP_POINTS,
    UPPER,
    elbow,
    four_bar,
    four_bar_angles,
    rod_frame,
    six_leg_poses,
    six_leg_states,
    six_legs,
    three_arm_motion,
    three_arm_poses,
    three_arms,
)
from engine_mechanics import (
    BY_DIFFERENCES,
    CLOSED,
    EXACT,
    FIRST,
    GRAVITY,
    MAKERS,
    SECOND,
    STEP,
    about_origin,
    assert_all_near,
    assert_near,
    both,
    dalembert,
    machine,
    motion_of,
    place,
    pose_of,
    shifted,
    vector,
)
from extras import extra
from scipy.spatial.transform import Rotation

from tauloop.mechanism.expression import Constant
from tauloop.mechanism.model import Actuator, Body, Joint, Rod, Telescope
from tauloop.verification.engines import NamedMotion, pinocchio_engine
from tauloop.verification.engines.trees.building import rigid_tree

extra("pinocchio")
extra("mujoco")


def test_slender_rods_agree_with_their_exact_reduction() -> None:
    """machines.md, two-point rods: f_A = m_AA (a_A - g) + m_AB (a_B - g), f_B = m_AB (a_A - g) + m_BB (a_B - g)."""
    mechanism, _ = three_arms({"lower": SLENDER}, THIN)
    motion, hand = three_arm_motion(20)
    L = FOREARM
    m_AA, m_AB, m_BB = (
        ROD_MASS - 2 * ROD_H / L + ROD_J / L**2,
        ROD_H / L - ROD_J / L**2,
        ROD_J / L**2,
    )
    wanted = []
    for p, v, a in hand:
        on_hand, directions, torques, pulls = HAND_MASS * (a - GRAVITY), [], [], []
        for i in range(3):
            _, _, second, e_theta, d, a_A = elbow(i, p, v, a)
            f_A = m_AA * (a_A - GRAVITY) + m_AB * (a - GRAVITY)
            on_hand = on_hand + m_AB * (a_A - GRAVITY) + m_BB * (a - GRAVITY)
            directions.append(d / L)
            pulls.append(d @ e_theta / L)
            torques.append(
                ARM_INERTIA * second
                - ARM_MASS * ARM_CENTER / ARM * (e_theta @ GRAVITY)
                + e_theta @ f_A
            )
        multipliers = np.linalg.solve(np.array(directions).T, on_hand)
        wanted.append(np.array(torques) + multipliers * pulls)
    assert_all_near(both(mechanism, motion), np.array(wanted), 1e-11)


@pytest.mark.parametrize("model", ["massless", "slender", "full", "round without spin"])
def test_rods_of_fixed_length_agree_with_dalembert(model: str) -> None:
    rods: dict[str, tuple[dict[str, Any], Any]] = {
        "massless": ({}, (0.0, np.zeros(3), np.zeros((3, 3)))),
        "slender": ({"lower": SLENDER}, THIN),
        "full": (
            {"lower": about_origin(*FULL), "spin": "universal", "first_axis": vector(FIRST_AXIS)},
            FULL,
        ),
        # its axial inertia has no effect: the hand-made rod, which spins as a universal joint makes
        # it, has none
        "round without spin": (
            {"lower": about_origin(*ROUND)},
            (0.15, ROUND[1], np.diag([2e-3, 2e-3, 0.0])),
        ),
    }
    mechanism, solids = three_arms(*rods[model])
    motion, hand = three_arm_motion(4)
    wanted = []
    for p, v, a in hand:
        tau = dalembert(lambda x, p=p: three_arm_poses(p + x), solids, v, a)
        legs = [elbow(i, p, v, a) for i in range(3)]
        J = np.array([d / (d @ e_theta) for *_, e_theta, d, _ in legs])
        wanted.append(np.linalg.solve(J.T, tau))
    assert_all_near(both(mechanism, motion), np.array(wanted), BY_DIFFERENCES)


@pytest.mark.parametrize("from_platform", [False, True])
@pytest.mark.parametrize("model", ["massless", "slender", "full"])
def test_telescopic_rods_agree_with_dalembert(model: str, from_platform: bool) -> None:
    nothing = (0.0, np.zeros(3), np.zeros((3, 3)))
    inertias = {"lower": about_origin(*FULL), "upper": about_origin(*UPPER)}
    full = inertias | {"spin": "universal", "first_axis": vector(LEG_AXIS)}
    rods: dict[str, tuple[dict[str, Any], Any, Any]] = {
        "massless": ({}, nothing, nothing),
        "slender": (
            {"lower": SLENDER, "upper": THIN_UPPER},
            THIN,
            (0.4, np.array([0, 0, -0.15]), np.diag([3e-3, 3e-3, 0.0])),
        ),
        "full": (full, FULL, UPPER),
    }
    rod, lower, upper = rods[model]
    motion, states = six_leg_states(4)
    solids = [PAYLOAD, *[lower] * 6, *[upper] * 6]
    wanted = []
    for p, turn, v, a, second, J in states:
        tau = dalembert(six_leg_poses(p, turn, from_platform), solids, v, a)
        wanted.append(np.linalg.solve(J.T, tau) + 0.3 * second)
    mechanism = six_legs(rod, from_platform=from_platform)
    assert_all_near(both(mechanism, motion), np.array(wanted), BY_DIFFERENCES)


def test_lengths_of_rods_need_not_be_given() -> None:
    mechanism = six_legs({"lower": SLENDER, "upper": THIN_UPPER}, from_platform=False)
    motion, _ = six_leg_states(5)
    poor = NamedMotion(
        **{
            part: {k: x for k, x in getattr(motion, part).items() if "leg" not in k}
            for part in "qva"
        }
    )
    wanted = pinocchio_engine(mechanism).inverse_dynamics(motion).forces
    for result in both(mechanism, poor).values():
        assert_near(result.forces, wanted, EXACT)


@pytest.mark.parametrize("is_flipped", [False, True])
@pytest.mark.parametrize("engine", MAKERS)
def test_orientation_is_found_from_lengths_alone(engine: str, is_flipped: bool) -> None:
    """A plate on a ball and three telescopic rods: forward kinematics from the reference pose."""
    rng = np.random.default_rng(6)
    ends = [place("base", (0, 0, 0.5), ("x", 0.1)), place("plate", (0, 0, -0.1), ("z", 0.2))]
    if is_flipped:
        ends.reverse()
    ball = Joint(name="wrist", kind="spherical", parent=ends[0], child=ends[1])
    pairs = list(zip(BASE_POINTS[::2], TOP_POINTS[::2], strict=True))
    rods = tuple(
        Rod(
            name=f"leg{i}",
            start=place("base", A),
            end=place("plate", B),
            telescope=Telescope(reference=0.7),
            lower=SLENDER,
        )
        for i, (A, B) in enumerate(pairs)
    )
    actuators = tuple(
        Actuator(name=f"m{i}", drives=((f"leg{i}", Constant(1.0)),)) for i in range(3)
    )
    bodies = (Body(name="plate", inertia=about_origin(*PAYLOAD)),)
    mechanism = machine(bodies=bodies, joints=(ball,), rods=rods, actuators=actuators)
    times = STEP * np.arange(-2, 3)
    lengths, wanted = [], []
    for _ in range(5):
        q = np.roll(Rotation.from_rotvec(rng.normal(scale=0.15, size=3)).as_quat(), 1)
        v, a = rng.normal(size=(2, 3))

        def poses(x: np.ndarray, q: np.ndarray = q) -> list[np.ndarray]:
            across = (
                pose_of(ball.parent)
                @ motion_of(ball, shifted(ball, q, x))
                @ np.linalg.inv(pose_of(ball.child))
            )
            plate = np.linalg.inv(across) if is_flipped else across
            legs = [rod_frame(A, (plate @ [*B, 1])[:3], LEG_AXIS, A) for A, B in pairs]
            return [plate, *legs]

        def spans(x: np.ndarray, poses: Any = poses) -> np.ndarray:
            return np.array([np.linalg.norm((poses(x)[0] @ [*B, 1])[:3] - A) for A, B in pairs])

        path = np.array([spans(v * t + a * t * t / 2) for t in times])
        J = np.array(
            [FIRST @ np.array([spans(row * t) for t in times]) / STEP for row in np.eye(3)]
        ).T
        lengths.append([path[2], FIRST @ path / STEP, SECOND @ path / STEP**2])
        wanted.append(np.linalg.solve(J.T, dalembert(poses, [PAYLOAD, *[THIN] * 3], v, a)))
    columns = np.array(lengths).transpose(1, 2, 0)
    motion = NamedMotion(
        **{part: {f"leg{i}": x for i, x in enumerate(columns[k])} for k, part in enumerate("qva")}
    )
    forces = MAKERS[engine](mechanism).inverse_dynamics(motion)
    assert_near(forces.forces, np.array(wanted), BY_DIFFERENCES)
    assert np.max(forces.residuals.closure) < CLOSED


def test_many_states_are_worked_on_in_pieces() -> None:
    mechanism, _ = three_arms({"lower": SLENDER}, THIN)
    motion, _ = three_arm_motion(600)
    sample = NamedMotion(
        **{part: {k: x[555:556] for k, x in getattr(motion, part).items()} for part in "qva"}
    )
    engine = pinocchio_engine(mechanism)
    forces = engine.inverse_dynamics(motion)
    assert forces.forces.shape == (600, 3)
    assert_near(engine.inverse_dynamics(sample).forces, forces.forces[555:556], 1e-13)
    assert np.max(forces.residuals.closure) < 1e-14


@pytest.mark.parametrize("machine_name", ["arms", "legs", "bar"])
def test_start_is_exact_on_the_manifold(machine_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Newton: what is missing is worked out from the poses of the bodies, which the given joints determine."""
    if machine_name == "arms":
        mechanism, motion = three_arms({"lower": SLENDER}, THIN)[0], three_arm_motion(5)[0]
    elif machine_name == "legs":
        mechanism, motion = (
            six_legs({"lower": SLENDER, "upper": THIN_UPPER}, from_platform=True),
            six_leg_states(5)[0],
        )
        motion = NamedMotion(
            **{
                part: {k: x for k, x in getattr(motion, part).items() if "leg" not in k}
                for part in "qva"
            }
        )
    else:
        mechanism = four_bar()[0]
        angles = dict(
            zip(("shoulder", "elbow", "wrist"), four_bar_angles(0.6)[:, None], strict=False)
        )
        rest = {name: np.zeros(1) for name in angles}
        motion = NamedMotion(q=angles, v=rest, a=rest)
        assert "foot" in rigid_tree(mechanism).tree
    monkeypatch.setattr("tauloop.verification.engines.engine.MAX_STEPS", 0)
    assert np.max(pinocchio_engine(mechanism).inverse_dynamics(motion).residuals.closure) < 1e-14
