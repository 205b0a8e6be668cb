"""The shipped machine files: printed figures, closure at the reference, mobility, and what their descriptions claim.

Kinematics are worked out here from the files' numbers with NumPy alone (positions and central
differences), so that they are a second route beside the toolkit's own equations.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.spatial.transform import Rotation

from tauloop.formats import load
from tauloop.mechanism import shipped_machines
from tauloop.mechanism.expression import STATUSES
from tauloop.mechanism.model import BASE, Joint, Mechanism, Placement, Rod

#: Mobility of each machine, counted by hand in its description.
MOBILITY = {
    "nuwar": 3,
    "rcid": 6,
    "gantry_tau_3dof": 3,
    "gantry_tau_6link": 3,
    "gantry_tau_5dof": 5,
    "spidermill": 2,
    "hexapod": 6,
    "linear_delta": 3,
    "five_bar": 2,
}
#: Loops at the reference are closed by formulae or by angles with 13 digits; what is left is
#: rounding, m or rad.
REFERENCE_CLOSURE = 1e-12
#: Central differences with a step of 1e-6 leave errors of about 1e-9 in a Jacobian of size one.
DIFFERENCE_STEP = 1e-6
#: A singular value below this share of the largest is a zero blurred by the differences.
RANK_TOLERANCE = 1e-7
#: Worst condition number of the independent coordinates' choice: a poor choice has 1e6 and more.
GOOD_CHOICE = 1e4


@pytest.fixture(scope="module")
def machines() -> dict[str, Mechanism]:
    return {name: load(name) for name in MOBILITY}


# --- kinematics from numbers
# ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Frame:
    """Position and rotation matrix in the base."""

    p: np.ndarray
    R: np.ndarray

    def then(self, p: np.ndarray, R: np.ndarray) -> Frame:
        return Frame(self.p + self.R @ p, self.R @ R)


State = dict[str, np.ndarray]


def axis_vector(axis: str) -> np.ndarray:
    return np.eye(3)["xyz".index(axis)]


def turn_about(axis: str, angle: float) -> np.ndarray:
    return Rotation.from_rotvec(angle * axis_vector(axis)).as_matrix()


def local_frame(mechanism: Mechanism, placement: Placement) -> tuple[np.ndarray, np.ndarray]:
    R = np.eye(3)
    for turn in placement.turns:
        R = R @ turn_about(turn.axis, mechanism.value(turn.angle))
    return np.array([mechanism.value(x) for x in placement.position]), R


def joint_motion(joint: Joint, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    match joint.kind:
        case "fixed":
            return np.zeros(3), np.eye(3)
        case "revolute":
            return np.zeros(3), turn_about(joint.axes[0], q[0])
        case "prismatic":
            return q[0] * axis_vector(joint.axes[0]), np.eye(3)
        case "translational":
            return q, np.eye(3)
        case "planar":
            return np.array([q[0], q[1], 0.0]), turn_about("z", q[2])
        case "free":
            return q[:3], Rotation.from_quat(q[3:], scalar_first=True).as_matrix()
    raise NotImplementedError(joint.kind)


def reference_state(mechanism: Mechanism) -> State:
    state = {
        joint.name: np.array(joint.reference, float)
        for joint in mechanism.joints
        if joint.reference
    }
    state |= {
        rod.name: np.array([rod.telescope.reference]) for rod in mechanism.rods if rod.telescope
    }
    return state


def spanning_tree(mechanism: Mechanism) -> tuple[list[Joint], list[Joint]]:
    """Joints that reach the bodies from the base, in order (the platform's own comes first), and those left over."""
    waiting = sorted(mechanism.joints, key=lambda joint: joint.name != "platform")
    reached, tree = {BASE}, []
    while step := [j for j in waiting if j.parent.body in reached and j.child.body not in reached]:
        tree.append(step[0])
        waiting.remove(step[0])
        reached.add(step[0].child.body)
    assert reached == {BASE, *(body.name for body in mechanism.bodies)}
    return tree, waiting


def body_frames(mechanism: Mechanism, state: State) -> dict[str, Frame]:
    frames = {BASE: Frame(np.zeros(3), np.eye(3))}
    for joint in spanning_tree(mechanism)[0]:
        at_parent = frames[joint.parent.body].then(*local_frame(mechanism, joint.parent))
        moved = at_parent.then(*joint_motion(joint, state.get(joint.name, np.empty(0))))
        p, R = local_frame(mechanism, joint.child)
        frames[joint.child.body] = moved.then(-R.T @ p, R.T)
    return frames


def ends(
    mechanism: Mechanism, rod: Rod, frames: Mapping[str, Frame]
) -> tuple[np.ndarray, np.ndarray]:
    a, b = (
        frames[place.body].then(*local_frame(mechanism, place)).p for place in (rod.start, rod.end)
    )
    return a, b


def closure(mechanism: Mechanism, state: State) -> np.ndarray:
    """Rod lengths and left-over revolute joints, m and rad."""
    frames = body_frames(mechanism, state)
    rows: list[float] = []
    for rod in mechanism.rods:
        a, b = ends(mechanism, rod, frames)
        length = state[rod.name][0] if rod.telescope else mechanism.value(rod.length)
        rows.append(np.linalg.norm(b - a) - length)
    for joint in spanning_tree(mechanism)[1]:
        assert joint.kind == "revolute"
        parent, child = (
            frames[f.body].then(*local_frame(mechanism, f)) for f in (joint.parent, joint.child)
        )
        relative = parent.R.T @ child.R
        rows.extend(parent.R.T @ (child.p - parent.p))
        rows.extend(np.cross(axis_vector(joint.axes[0]), relative @ axis_vector(joint.axes[0])))
    return np.array(rows)


def velocities(mechanism: Mechanism) -> list[str]:
    """Names of the velocities of the tree's joints and of the rods' lengths."""
    names = [name for joint in spanning_tree(mechanism)[0] for name in joint.velocity_names]
    return names + [rod.name for rod in mechanism.rods if rod.telescope]


def moved(mechanism: Mechanism, state: State, step: Mapping[str, float]) -> State:
    """The state after small steps along some velocities (of a free body: rotations in base axes)."""
    result = dict(state)
    for joint in mechanism.joints:
        dv = np.array([step.get(name, 0.0) for name in joint.velocity_names])
        if joint.kind == "free":
            turned = Rotation.from_rotvec(dv[3:]) * Rotation.from_quat(
                state[joint.name][3:], scalar_first=True
            )
            result[joint.name] = np.concatenate(
                [state[joint.name][:3] + dv[:3], turned.as_quat(scalar_first=True)]
            )
        elif dv.size:
            result[joint.name] = state[joint.name] + dv
    return result | {
        r.name: state[r.name] + step.get(r.name, 0.0) for r in mechanism.rods if r.telescope
    }


def jacobian(mechanism: Mechanism, state: State) -> np.ndarray:
    columns = [
        (
            closure(mechanism, moved(mechanism, state, {name: DIFFERENCE_STEP}))
            - closure(mechanism, moved(mechanism, state, {name: -DIFFERENCE_STEP}))
        )
        / (2 * DIFFERENCE_STEP)
        for name in velocities(mechanism)
    ]
    return np.stack(columns, axis=1)


def rank(matrix: np.ndarray) -> int:
    return int(np.linalg.matrix_rank(matrix, tol=RANK_TOLERANCE * np.linalg.norm(matrix, 2)))


def assembled(mechanism: Mechanism, state: State) -> State:
    """Newton's iteration on the dependent velocities."""
    names = velocities(mechanism)
    dependent = [k for k, name in enumerate(names) if name not in mechanism.platform.independent]
    for _ in range(8):
        residual = closure(mechanism, state)
        if np.abs(residual).max() < REFERENCE_CLOSURE:
            break
        step = np.linalg.lstsq(
            jacobian(mechanism, state)[:, dependent], -residual, rcond=RANK_TOLERANCE
        )[0]
        state = moved(mechanism, state, {names[k]: s for k, s in zip(dependent, step, strict=True)})
    return state


# --- all machines
# -----------------------------------------------------------------------------------------------------


def test_the_nine_machines_are_shipped() -> None:
    assert set(MOBILITY) <= set(shipped_machines())


@pytest.mark.parametrize("name", MOBILITY)
def test_every_value_has_a_status_and_a_source(machines: dict[str, Mechanism], name: str) -> None:
    mechanism = machines[name]
    assert mechanism.name == name
    assert len(mechanism.parameters) > 5
    for parameter in mechanism.parameters:
        assert parameter.status in STATUSES, parameter.name
        assert parameter.source.strip(), parameter.name
    assert re.search("chosen|assumed", mechanism.description, re.IGNORECASE)


@pytest.mark.parametrize("name", MOBILITY)
def test_reference_closes_the_loops(machines: dict[str, Mechanism], name: str) -> None:
    mechanism = machines[name]
    assert np.abs(closure(mechanism, reference_state(mechanism))).max() < REFERENCE_CLOSURE


@pytest.mark.parametrize("name", MOBILITY)
def test_mobility_actuators_and_independent_coordinates_agree(
    machines: dict[str, Mechanism], name: str
) -> None:
    mechanism = machines[name]
    names = velocities(mechanism)
    K = jacobian(mechanism, reference_state(mechanism))
    assert len(names) - rank(K) == MOBILITY[name]
    assert len(mechanism.actuators) == len(mechanism.platform.independent) == MOBILITY[name]
    driven = {coordinate for actuator in mechanism.actuators for coordinate, _ in actuator.drives}
    for chosen in (set(mechanism.platform.independent), driven):
        rest = K[:, [k for k, n in enumerate(names) if n not in chosen]]
        values = np.linalg.svd(rest, compute_uv=False)
        assert chosen <= set(names)
        assert values[0] / values[rest.shape[1] - 1] < GOOD_CHOICE, chosen


@pytest.mark.parametrize("name", MOBILITY)
def test_the_corners_of_the_work_space_are_reached_within_the_joints_limits(
    machines: dict[str, Mechanism], name: str
) -> None:
    mechanism = machines[name]
    platform = mechanism.joint("platform")
    boxed = {
        coordinate: (f.lower, f.upper)
        for coordinate, f in zip(platform.velocity_names, platform.freedoms, strict=True)
        if np.isfinite(f.lower)
    }
    start = reference_state(mechanism)
    assert len(boxed) >= 2
    for corner in itertools.product(*boxed.values()):
        index = [platform.velocity_names.index(coordinate) for coordinate in boxed]
        step = np.array(corner) - start["platform"][index]
        state = assembled(mechanism, moved(mechanism, start, dict(zip(boxed, step, strict=True))))
        assert np.abs(closure(mechanism, state)).max() < 1e-9
        for joint in mechanism.joints:
            if len(joint.freedoms) == 1 and joint in spanning_tree(mechanism)[0]:
                assert joint.freedoms[0].lower <= state[joint.name][0] <= joint.freedoms[0].upper, (
                    joint.name
                )
        for rod in mechanism.rods:
            if rod.telescope:
                freedom = rod.telescope.freedom
                assert freedom.lower <= state[rod.name][0] <= freedom.upper, rod.name


# --- printed figures
# --------------------------------------------------------------------------------------------------

GIVEN = {
    "nuwar": {
        "arm_length": 0.26,
        "arm_mass": 0.977,
        "forearm_length": 0.48,
        "forearm_mass": 0.0296,
        "motor_radius": 0.194,
        "plate_radius": 0.03,
        "plate_mass": 0.2807,
        "elbow_mass": 0.0099,
        "alpha": np.arctan(1 / np.sqrt(2)),
        "beta": np.pi / 3,
    },
    "rcid": {
        "base_radius": 0.080,
        "plate_radius": 0.040,
        "phi_B": np.deg2rad(15.0),
        "phi_P": 0.0,
        "link_length": 0.09798,
        "total_mass": 9.7,
        "payload_mass": 5.0,
    },
    "gantry_tau_5dof": {
        "m_p": 11.790,
        "mc_px": 0.0,
        "mc_pz": 0.0,
        "I_pyy": 0.0614,
        "m_s": 3.970,
        "I_sxx": 0.3931,
        "I_syy": 0.3931,
        "I_szz": 0.0020,
        "m_l": 4.220,
        "I_lxx": 0.5495,
        "I_lyy": 0.5495,
        "I_lzz": 0.0021,
        "m_t": 10.370,
        "I_txx": 1.3503,
        "I_tyy": 1.3503,
        "I_tzz": 0.0187,
    },
    "gantry_tau_3dof": {"m_p": 11.790, "m_s": 3.970, "I_s": 0.3931, "m_l": 4.220, "I_l": 0.5495},
    "gantry_tau_6link": {
        "m_p": 11.790,
        "m_s": 3.970,
        "I_s": 0.3931,
        "m_l": 4.220,
        "I_l": 0.5495,
        "I_pyy": 0.0614,
    },
    "spidermill": {
        "m1": 50.9597,
        "m2": 7.9538,
        "m3": 14.5773,
        "m4": 12.4560,
        "d_c1": 0.565,
        "d_c3": 0.515,
        "I_c1": 6.3195,
        "I_c3": 1.6173,
    },
    "linear_delta": {
        **{f"tower{k}.radius": 0.172 for k in (1, 2, 3)},
        **{f"tower{k}.arm": 0.340 for k in (1, 2, 3)},
        **{f"tower{k}.end_stop": 0.333 for k in (1, 2, 3)},
        **{f"tower{k}.angle": np.deg2rad(a) for k, a in ((1, 210.0), (2, 330.0), (3, 90.0))},
    },
}


@pytest.mark.parametrize("name", GIVEN)
def test_given_figures_are_the_papers(machines: dict[str, Mechanism], name: str) -> None:
    table = machines[name].parameters
    by_name = {
        p.name: p.value for p in table if p.status == "given" and not p.name.startswith("gravity")
    }
    assert by_name == pytest.approx(GIVEN[name], rel=1e-12)


def test_motor_limit_of_nuwar(machines: dict[str, Mechanism]) -> None:
    assert {actuator.force for actuator in machines["nuwar"].actuators} == {41.76}


def test_nuwar_arm_inertia_is_about_the_motor_axis(machines: dict[str, Mechanism]) -> None:
    mechanism = machines["nuwar"]
    inertia = [mechanism.value(x) for x in mechanism.body("leg1.arm").inertia.parameters]
    assert inertia[0] == pytest.approx(0.977 + 0.0099)
    assert inertia[1] == pytest.approx(0.977 * 0.13 + 0.0099 * 0.26)
    assert inertia[6] == pytest.approx(0.01822 + 0.0099 * 0.26**2)


def shoulder_frames(mechanism: Mechanism) -> list[Frame]:
    return [
        Frame(*local_frame(mechanism, mechanism.joint(f"leg{k}.shoulder").parent))
        for k in (1, 2, 3)
    ]


def test_nuwar_motor_axes_are_mutually_orthogonal(machines: dict[str, Mechanism]) -> None:
    axes = np.array([frame.R[:, 1] for frame in shoulder_frames(machines["nuwar"])])
    assert axes @ axes.T == pytest.approx(np.eye(3), abs=1e-14)


def test_nuwar_elbows_follow_the_written_convention(machines: dict[str, Mechanism]) -> None:
    mechanism = machines["nuwar"]
    alpha, beta = (mechanism.parameters[name].value for name in ("alpha", "beta"))
    e_z = np.array([0.0, 0.0, 1.0])
    for k, angle in itertools.product((1, 2, 3), (-0.5, 0.2, 1.4)):
        phi = (k - 1) * 2 * np.pi / 3
        e_r, e_t = (
            np.array([np.cos(phi), np.sin(phi), 0.0]),
            np.array([-np.sin(phi), np.cos(phi), 0.0]),
        )
        u = np.cos(beta) * e_r + np.sin(beta) * e_t
        axis = np.cos(alpha) * (-np.sin(beta) * e_r + np.cos(beta) * e_t) + np.sin(alpha) * e_z
        elbow = 0.194 * e_r + 0.26 * (np.cos(angle) * u + np.sin(angle) * np.cross(axis, u))
        state = reference_state(mechanism) | {f"leg{k}.shoulder": np.array([angle])}
        rod = mechanism.rod(f"leg{k}.forearm")
        assert ends(mechanism, rod, body_frames(mechanism, state))[0] == pytest.approx(
            elbow, abs=1e-14
        )


def test_nuwar_without_tilt_is_the_delta(machines: dict[str, Mechanism]) -> None:
    delta, level = load("delta"), machines["nuwar"].with_values({"alpha": 0.0, "beta": 0.0})
    angles = (0.3, 0.7, -0.1)
    seen = []
    for mechanism in (delta, level):
        joints = [j for j in mechanism.joints if j.kind == "revolute"]
        state = reference_state(mechanism) | {
            j.name: np.array([a]) for j, a in zip(joints, angles, strict=True)
        }
        state["platform"] = np.array([0.02, -0.03, -0.5])
        frames = body_frames(mechanism, state)
        rods = [np.concatenate(ends(mechanism, rod, frames)) for rod in mechanism.rods]
        inertia = [[mechanism.value(x) for x in rod.lower.parameters] for rod in mechanism.rods]
        lengths = [mechanism.value(rod.length) for rod in mechanism.rods]
        plate = mechanism.value(mechanism.body(mechanism.platform.body).inertia.mass)
        arms = [mechanism.body(j.child.body).inertia for j in joints]
        moments = [
            [mechanism.value(x) for x in (arm.mass, arm.first_moment[0], arm.second_moment[2])]
            for arm in arms
        ]
        seen.append(
            np.concatenate([np.ravel(rods), np.ravel(inertia), lengths, [plate], np.ravel(moments)])
        )
    assert seen[1] == pytest.approx(seen[0], abs=1e-12)


def test_rcid_joints_lie_at_the_printed_angles(machines: dict[str, Mechanism]) -> None:
    mechanism = machines["rcid"]
    frames = body_frames(mechanism, reference_state(mechanism))
    a, b = (np.array([ends(mechanism, rod, frames)[k] for rod in mechanism.rods]) for k in (0, 1))
    assert np.rad2deg(np.arctan2(a[:, 1], a[:, 0])) % 360 == pytest.approx(
        [15, 105, 135, 225, 255, 345]
    )
    assert np.rad2deg(np.arctan2(b[:, 1], b[:, 0])) % 360 == pytest.approx(
        [60, 60, 180, 180, 300, 300]
    )
    assert np.hypot(a[:, 0], a[:, 1]) == pytest.approx(np.full(6, 0.080))
    assert np.hypot(b[:, 0], b[:, 1]) == pytest.approx(np.full(6, 0.040))


def test_rcid_masses_add_up_to_the_printed_total(machines: dict[str, Mechanism]) -> None:
    mechanism = machines["rcid"]
    bodies = sum(mechanism.value(body.inertia.mass) for body in mechanism.bodies)
    rods = sum(mechanism.value(rod.lower.mass) for rod in mechanism.rods)
    assert bodies + rods - 5.0 == pytest.approx(9.7)
    assert mechanism.value(mechanism.body("housing").inertia.mass) > 5.0
    strokes = {
        (j.freedoms[0].lower, j.freedoms[0].upper)
        for j in mechanism.joints
        if j.kind == "prismatic"
    }
    assert strokes == {(0.0, 0.07)}


def test_rcid_reaches_its_prescribed_turns(machines: dict[str, Mechanism]) -> None:
    """A sphere of 10 mm and 15 degrees about any axis need about 70 mm of stroke (the paper); about, not exactly."""
    mechanism = machines["rcid"]
    turns = [np.deg2rad(15.0) * axis for axis in (*np.eye(3), *-np.eye(3))]
    for turn in turns:
        state = reference_state(mechanism)
        for _ in range(3):
            state = assembled(mechanism, moved(mechanism, state, _rotation_step(turn / 3)))
        for k in range(1, 7):
            assert 0.0 <= state[f"leg{k}.slide"][0] <= 0.07


def _rotation_step(turn: np.ndarray) -> dict[str, float]:
    return dict(zip(("platform.wx", "platform.wy", "platform.wz"), turn, strict=True))


def test_linear_delta_has_the_logs_formula(machines: dict[str, Mechanism]) -> None:
    """Carriage joint height = end stop + sqrt(arm^2 - radius^2) - travel, at the effective radius."""
    mechanism = machines["linear_delta"]
    travel = np.array([0.05, 0.11, 0.31])
    state = reference_state(mechanism) | {
        f"tower{k + 1}.slide": travel[k : k + 1] for k in range(3)
    }
    frames = body_frames(mechanism, state)
    for k, angle in enumerate(np.deg2rad([210.0, 330.0, 90.0])):
        a, b = ends(mechanism, mechanism.rod(f"tower{k + 1}.link"), frames)
        assert a[2] == pytest.approx(0.333 + np.sqrt(0.340**2 - 0.172**2) - travel[k])
        radial = 0.172 * np.array([np.cos(angle), np.sin(angle)])
        assert (a - b)[:2] + state["platform"][:2] == pytest.approx(radial)


# --- claims of the descriptions: Gantry-Tau
# ---------------------------------------------------------------------------

#: Length that makes rotations comparable with translations, m.
CHARACTERISTIC_LENGTH = 0.2
#: Work volume asked for: x does not matter on parallel tracks along x.
VOLUME = np.linspace(-0.15, 0.15, 13)


@dataclass(frozen=True)
class GantryTau:
    """Tracks, joints on carts (A) and plate (B), lengths and carts of the links, as numbers of the file."""

    track: np.ndarray
    A: np.ndarray
    B: np.ndarray
    length: np.ndarray
    cart: np.ndarray
    side: np.ndarray

    @classmethod
    def of(cls, mechanism: Mechanism) -> GantryTau:
        rods = mechanism.rods
        track = np.array(
            [
                local_frame(mechanism, mechanism.joint(f"track{k}.slide").parent)[0]
                for k in (1, 2, 3)
            ]
        )
        for k in (1, 2, 3):
            assert local_frame(mechanism, mechanism.joint(f"track{k}.slide").parent)[
                1
            ] == pytest.approx(np.eye(3))
        return cls(
            track=track,
            A=np.array([local_frame(mechanism, rod.start)[0] for rod in rods]),
            B=np.array([local_frame(mechanism, rod.end)[0] for rod in rods]),
            length=np.array(
                [
                    rod.telescope.reference if rod.telescope else mechanism.value(rod.length)
                    for rod in rods
                ]
            ),
            cart=np.array([int(rod.start.body[5]) - 1 for rod in rods]),
            side=np.sign([mechanism.joint(f"track{k}.slide").reference[0] for k in (1, 2, 3)]),
        )

    def pose(
        self, X: np.ndarray, R: np.ndarray, first: tuple[int, ...]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Link vectors from cart to plate and arms on the plate, the carts found from one fixed link each."""
        arms = self.B @ R.T
        d = X + arms - self.A - self.track[self.cart]
        q = np.array(
            [
                d[j, 0] + self.side[k] * np.sqrt(self.length[j] ** 2 - d[j, 1:] @ d[j, 1:])
                for k, j in enumerate(first)
            ]
        )
        d[:, 0] -= q[self.cart]
        return d, arms


def translation_jacobian(d: np.ndarray) -> np.ndarray:
    """Cart rates over plate velocity for parallel links: rows u / u_x."""
    return d / d[:, :1]


def scan(tau: GantryTau, first: tuple[int, ...]) -> list[np.ndarray]:
    return [
        tau.pose(np.array([0.0, y, z]), np.eye(3), first)[0]
        for y, z in itertools.product(VOLUME, VOLUME)
    ]


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("gantry_tau_3dof", (0, 1, 2)),
        ("gantry_tau_6link", (0, 3, 5)),
        ("gantry_tau_5dof", (0, 3, 5)),
    ],
)
def test_three_carts_are_well_conditioned(
    machines: dict[str, Mechanism], name: str, first: tuple[int, ...]
) -> None:
    tau = GantryTau.of(machines[name])
    worst = max(np.linalg.cond(translation_jacobian(d[list(first)])) for d in scan(tau, first))
    assert worst == pytest.approx(2.26, abs=0.005)
    for d in scan(tau, first):
        assert np.linalg.norm(d, axis=1) == pytest.approx(tau.length, abs=1e-12)


def test_the_middle_of_the_simplified_machine(machines: dict[str, Mechanism]) -> None:
    tau = GantryTau.of(machines["gantry_tau_3dof"])
    d, _ = tau.pose(np.zeros(3), np.eye(3), (0, 1, 2))
    assert np.linalg.cond(translation_jacobian(d)) == pytest.approx(1.57, abs=0.005)


@pytest.mark.parametrize("name", ["gantry_tau_6link", "gantry_tau_5dof"])
def test_clusters_are_parallelograms(machines: dict[str, Mechanism], name: str) -> None:
    tau = GantryTau.of(machines[name])
    for cluster in ((0, 1, 2), (3, 4), (5,)):
        assert np.ptp(tau.A[cluster, :] - tau.B[cluster, :], axis=0) == pytest.approx(
            np.zeros(3), abs=1e-15
        )
        assert np.ptp(tau.length[list(cluster)]) == 0.0


def test_three_simplified_chains_are_those_of_the_six_links(machines: dict[str, Mechanism]) -> None:
    simple, full = (
        GantryTau.of(machines["gantry_tau_3dof"]),
        GantryTau.of(machines["gantry_tau_6link"]),
    )
    lines = (full.track[full.cart] + full.A - full.B)[[0, 3, 5]]
    assert simple.track[:, 1:] == pytest.approx(lines[:, 1:])
    assert simple.length == pytest.approx(full.length[[0, 3, 5]])
    masses = [
        sum(machines[name].value(rod.lower.mass) for rod in machines[name].rods)
        for name in ("gantry_tau_3dof", "gantry_tau_6link")
    ]
    assert masses[0] == pytest.approx(masses[1])


def test_lengths_and_moments_of_inertia_belong_together(machines: dict[str, Mechanism]) -> None:
    """I = m L^2 / 12 to Table 3's four decimals."""
    value = machines["gantry_tau_5dof"].parameters.values
    for kind, length in (("s", value["single1.length"]), ("l", value["pair1.length"]), ("t", 1.25)):
        assert round(value[f"m_{kind}"] * length**2 / 12, 4) == value[f"I_{kind}xx"]


def plate_directions(d: np.ndarray, arms: np.ndarray) -> np.ndarray:
    """Rows of the links over plate velocity and rotation times the characteristic length."""
    u = d / np.linalg.norm(d, axis=1, keepdims=True)
    return np.hstack([u, np.cross(arms, u) / CHARACTERISTIC_LENGTH])


def test_six_links_hold_the_plate(machines: dict[str, Mechanism]) -> None:
    tau = GantryTau.of(machines["gantry_tau_6link"])
    worst = max(np.linalg.cond(plate_directions(d, tau.B)) for d in scan(tau, (0, 3, 5)))
    assert worst == pytest.approx(4.45, abs=0.005)


def five_freedom_rates(tau: GantryTau, d: np.ndarray, arms: np.ndarray) -> np.ndarray:
    """Plate velocity and scaled rotation (6) over the rates of three carts and two lengths."""
    u_x = d[:, 0] / np.linalg.norm(d, axis=1)
    drive = np.zeros((6, 5))
    drive[np.arange(6), tau.cart] = u_x
    drive[[1, 2], [3, 4]] = 1.0
    return np.linalg.solve(plate_directions(d, arms), drive)


def tilted(
    tau: GantryTau, X: np.ndarray, tilt: tuple[float, float]
) -> tuple[np.ndarray, np.ndarray]:
    """Link vectors and plate arms with two turns given (x, then y) and the third found from the pair of links."""

    def rotation(third: float) -> np.ndarray:
        return Rotation.from_euler("XYZ", [*tilt, third]).as_matrix()

    def second_of_the_pair(third: float) -> float:
        d, _ = tau.pose(X, rotation(third), (0, 3, 5))
        return float(np.linalg.norm(d[4]) - tau.length[4])

    third = brentq(second_of_the_pair, -0.5, 0.5, xtol=1e-13) if any(tilt) else 0.0
    return tau.pose(X, rotation(third), (0, 3, 5))


@pytest.mark.parametrize(("degrees", "claim"), [(0, 3.03), (5, 3.83), (10, 5.26), (15, 7.96)])
def test_five_freedoms_are_well_conditioned(
    machines: dict[str, Mechanism], degrees: int, claim: float
) -> None:
    """Below 10 over the work volume; the description's figures to the digits that it gives."""
    tau = GantryTau.of(machines["gantry_tau_5dof"])
    angles = np.deg2rad([-degrees, 0.0, degrees]) if degrees else np.zeros(1)
    places = VOLUME if degrees == 0 else VOLUME[::3]
    worst, lengths = 0.0, []
    for y, z, tilt in itertools.product(places, places, itertools.product(angles, angles)):
        d, arms = tilted(tau, np.array([0.0, y, z]), tilt)
        rates = five_freedom_rates(tau, d, arms)
        worst = max(worst, np.linalg.cond(rates[:5]))
        lengths.extend(np.linalg.norm(d[1:3], axis=1))
    assert worst < 10.0
    assert worst == pytest.approx(claim, abs=0.005)
    limits = machines["gantry_tau_5dof"].rod("telescope1.link").telescope.freedom
    assert limits.lower < min(lengths) <= max(lengths) < limits.upper


def test_the_two_independent_rotations_are_the_best_pair(machines: dict[str, Mechanism]) -> None:
    tau = GantryTau.of(machines["gantry_tau_5dof"])
    worst = [
        max(
            np.linalg.cond(np.delete(five_freedom_rates(tau, d, tau.B), 3 + axis, axis=0))
            for d in scan(tau, (0, 3, 5))
        )
        for axis in range(3)
    ]
    assert [worst[0], worst[2]] == pytest.approx([3.20, 3.03], abs=0.005)
    assert worst[1] > 600.0
    assert machines["gantry_tau_5dof"].platform.independent[3:] == ("platform.wx", "platform.wy")


def test_telescopes_in_the_pair_would_be_singular(machines: dict[str, Mechanism]) -> None:
    """The reason for the choice: three actuators would then drive the two links of one cluster."""
    tau = GantryTau.of(machines["gantry_tau_5dof"])
    d, arms = tau.pose(np.zeros(3), np.eye(3), (0, 3, 5))
    u_x = d[:, 0] / np.linalg.norm(d, axis=1)
    drive = np.zeros((6, 5))
    drive[np.arange(6), tau.cart] = u_x
    drive[[3, 4], [3, 4]] = 1.0
    assert np.linalg.cond(np.linalg.solve(plate_directions(d, arms), drive)) > 1e10


def test_universal_joints_stay_away_from_their_links(machines: dict[str, Mechanism]) -> None:
    mechanism = machines["gantry_tau_5dof"]
    tau = GantryTau.of(mechanism)
    first = np.array([[mechanism.value(x) for x in rod.first_axis] for rod in mechanism.rods])
    assert np.linalg.norm(first, axis=1) == pytest.approx(np.ones(6))
    angles = np.deg2rad([-15.0, 0.0, 15.0])
    nearest = np.inf
    for y, z, tilt in itertools.product(
        VOLUME[::6], VOLUME[::6], itertools.product(angles, angles)
    ):
        d, _ = tilted(tau, np.array([0.0, y, z]), tilt)
        cosine = np.abs(np.sum(first * d, axis=1)) / np.linalg.norm(d, axis=1)
        nearest = min(nearest, np.rad2deg(np.arccos(cosine)).min())
    assert nearest > 50.0


# --- claims of the descriptions: the others
# ---------------------------------------------------------------------------


def test_hexapod_is_well_conditioned_at_home(machines: dict[str, Mechanism]) -> None:
    mechanism = machines["hexapod"]
    frames = body_frames(mechanism, reference_state(mechanism))
    pairs = np.array([ends(mechanism, rod, frames) for rod in mechanism.rods])
    d = pairs[:, 1] - pairs[:, 0]
    condition = np.linalg.cond(plate_directions(d, pairs[:, 1] - frames["plate"].p))
    assert condition == pytest.approx(2.27, abs=0.005)
    for rod, vector in zip(mechanism.rods, d, strict=True):
        first = np.array([mechanism.value(x) for x in rod.first_axis])
        angle = np.rad2deg(np.arccos(abs(first @ vector) / np.linalg.norm(vector)))
        assert angle == pytest.approx(62.2, abs=0.1)


Pin = tuple[int, np.ndarray]  # which moving body (-1 is the base), and where on it


@dataclass(frozen=True)
class CranksAsRods:
    """The SpiderMill in the plane: eight two-point cranks on nine coordinates (x, y, angle of three bodies)."""

    home: np.ndarray
    starts: list[Pin]
    ends: list[Pin]
    lengths: list[float]

    @classmethod
    def of(cls, mechanism: Mechanism) -> CranksAsRods:
        frames = body_frames(mechanism, reference_state(mechanism))
        order = ["side1.coupling", "side2.coupling", "plate"]
        cranks = [
            (mechanism.joint(f"side{k}.{first}"), mechanism.joint(f"side{k}.{last}"))
            for k in (1, 2)
            for first, last in (
                ("base_inner_pin", "coupling_inner_pin"),
                ("base_outer_pin", "coupling_outer_pin"),
                ("upper_inner_pin", "plate_inner_pin"),
                ("upper_outer_pin", "plate_outer_pin"),
            )
        ]

        def pin(placement: Placement) -> Pin:
            index = order.index(placement.body) if placement.body in order else -1
            return index, local_frame(mechanism, placement)[0][:2]

        return cls(
            home=np.concatenate(
                [
                    [*frames[b].p[:2], np.arctan2(frames[b].R[1, 0], frames[b].R[0, 0])]
                    for b in order
                ]
            ),
            starts=[pin(first.parent) for first, _ in cranks],
            ends=[pin(last.child) for _, last in cranks],
            lengths=[local_frame(mechanism, last.parent)[0][0] for _, last in cranks],
        )

    def closure(self, x: np.ndarray) -> np.ndarray:
        def place(pin: Pin) -> np.ndarray:
            body, point = pin
            if body < 0:
                return point
            u, v, angle = x[3 * body : 3 * body + 3]
            return np.array([u, v]) + turn_about("z", angle)[:2, :2] @ point

        spans = [
            np.linalg.norm(place(b) - place(a)) for a, b in zip(self.starts, self.ends, strict=True)
        ]
        return np.array(spans) - self.lengths

    def jacobian(self, x: np.ndarray) -> np.ndarray:
        steps = DIFFERENCE_STEP * np.eye(len(x))
        return np.stack(
            [(self.closure(x + s) - self.closure(x - s)) / (2 * DIFFERENCE_STEP) for s in steps],
            axis=1,
        )


def test_spidermill_has_eight_equations_of_rank_seven(machines: dict[str, Mechanism]) -> None:
    cranks = CranksAsRods.of(machines["spidermill"])
    assert cranks.closure(cranks.home) == pytest.approx(np.zeros(8), abs=REFERENCE_CLOSURE)
    assert rank(cranks.jacobian(cranks.home)) == 7


def test_spidermill_locks_with_a_tenth_of_a_millimetre(machines: dict[str, Mechanism]) -> None:
    """With one joint moved by 0.1 mm the eight equations are independent: one freedom is left instead of two."""
    cranks = CranksAsRods.of(machines["spidermill"])
    body, point = cranks.starts[0]
    cranks = replace(cranks, starts=[(body, point + np.array([1e-4, 0.0])), *cranks.starts[1:]])
    x = cranks.home
    for _ in range(5):
        x = x - np.linalg.lstsq(cranks.jacobian(x), cranks.closure(x), rcond=RANK_TOLERANCE)[0]
    assert np.abs(cranks.closure(x)).max() < 1e-10
    assert rank(cranks.jacobian(x)) == 8


def test_spidermill_cranks_are_pairs_of_the_printed_parts(machines: dict[str, Mechanism]) -> None:
    mechanism = machines["spidermill"]
    for level, mass, length, inertia in (
        ("lower", 50.9597, 1.13, 6.3195),
        ("upper", 14.5773, 1.03, 1.6173),
    ):
        pair = [mechanism.body(f"side1.{level}_{which}").inertia for which in ("inner", "outer")]
        m, moment, second = (
            sum(mechanism.value(x) for x in xs)
            for xs in (
                [i.mass for i in pair],
                [i.first_moment[0] for i in pair],
                [i.second_moment[5] for i in pair],
            )
        )
        assert m == pytest.approx(mass)
        assert moment == pytest.approx(mass * length / 2)
        assert second == pytest.approx(inertia + mass * length**2 / 4)
