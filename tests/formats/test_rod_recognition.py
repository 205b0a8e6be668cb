"""Rods among imported bodies: recognised where they are exact, and then of the same dynamics as in Pinocchio."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from extras import extra
from scipy.optimize import least_squares
from slider_cranks import BALL, ROD, SIDE, TILTED, UNIVERSAL, joint, link, slider_crank

from tauloop import convert
from tauloop.common.result import Status
from tauloop.compiler.c import Interpreted
from tauloop.formats import load
from tauloop.formats.mjcf.writer import to_mjcf
from tauloop.formats.options import ImportOptions, RodRecognition
from tauloop.formats.urdf.parts import identifier
from tauloop.kinematics import random_states
from tauloop.mechanism.model import BASE, Mechanism
from tauloop.model import Model

#: Forces of the recognised machine and of Pinocchio's, whose loops are closed by least squares.
AGREEMENT = 1e-9
#: What neither motors nor loops can supply there, by the largest force: zero where the spin's
#: conservation holds.
BALANCE = 1e-10
STATES = 4


def write(folder: Path, urdf: str, side: str = SIDE) -> tuple[Path, Path]:
    (folder / "robot.urdf").write_text(urdf)
    (folder / "robot.yaml").write_text(side)
    return folder / "robot.urdf", folder / "robot.yaml"


def recognized(
    files: tuple[Path, Path], *, platform: str = "block", lock_spins: bool = True, **more: Any
) -> Mechanism:
    return load(
        *files,
        options=ImportOptions(
            platform_body=platform, rods=RodRecognition(lock_spins=lock_spins), **more
        ),
    )


class InPinocchio:
    """The file in Pinocchio: frames that coincide as hard constraints, the spin of some links held at zero rate."""

    def __init__(
        self, files: tuple[Path, Path], resting: tuple[str, ...], upright: tuple[str, ...] = ()
    ) -> None:
        self.pin = extra("pinocchio")
        self.model = self.pin.buildModelFromUrdf(str(files[0]))
        self.data = self.model.createData()
        side = yaml.safe_load(files[1].read_text())
        rows = {"3d": 3, "6d": 6}
        self.loops = [
            (self.model.getFrameId(a), self.model.getFrameId(b), rows[kind])
            for (a, b), kind in zip(side["closed_loop"], side["type"], strict=True)
        ]
        frames = {identifier(frame.name): k for k, frame in enumerate(self.model.frames)}
        self.resting = [frames[name] for name in resting]
        self.upright = [self.column(name) for name in upright]
        self.motors = [self.column(name) for name in side["name_mot"]]

    def column(self, name: str) -> int:
        """Velocity index of a joint, by its name here or in the file."""
        names = [identifier(known) for known in self.model.names]
        return int(self.model.joints[names.index(identifier(name))].idx_v)

    def configuration(self, angles: np.ndarray) -> np.ndarray:
        return np.asarray(self.pin.integrate(self.model, self.pin.neutral(self.model), angles))

    def gaps(self, angles: np.ndarray) -> np.ndarray:
        """Twist that would close each loop, as seen from its first frame."""
        self.pin.framesForwardKinematics(self.model, self.data, self.configuration(angles))
        return np.concatenate(
            [self.pin.log6(self.data.oMf[a].actInv(self.data.oMf[b])).vector[:n] if n == 6
             else self.data.oMf[a].actInv(self.data.oMf[b]).translation for a, b, n in self.loops]
        )  # fmt: skip

    def rows(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Constraint rows K and their bias at (q, v): K a + bias = 0. The loops come first, then the resting spins."""
        pin, model, data = self.pin, self.model, self.data
        aligned, local = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED, pin.ReferenceFrame.LOCAL
        pin.forwardKinematics(model, data, q, v, np.zeros(model.nv))
        pin.computeJointJacobians(model, data, q)
        pin.updateFramePlacements(model, data)
        K, bias = [], []
        for a, b, n in self.loops:
            J = [pin.getFrameJacobian(model, data, frame, aligned)[:n] for frame in (a, b)]
            drift = [
                pin.getFrameClassicalAcceleration(model, data, frame, aligned).vector[:n]
                for frame in (a, b)
            ]
            K.append(J[1] - J[0])
            bias.append(drift[1] - drift[0])
        for frame in self.resting:
            K.append(pin.getFrameJacobian(model, data, frame, local)[5:])
            bias.append(pin.getFrameAcceleration(model, data, frame, local).vector[5:])
        return np.concatenate(K), np.concatenate(bias)

    def forces(self, known: dict[str, tuple[float, float, float]]) -> tuple[np.ndarray, float]:
        """Motor forces for a motion of which some coordinates are known, and what remains unbalanced."""
        model, pin = self.model, self.pin
        columns = {self.column(name): values for name, values in known.items()}
        unknown = [i for i in range(model.nv) if i not in columns]
        angles, v, a = np.zeros((3, model.nv))
        for i, (angle, rate, acceleration) in columns.items():
            angles[i], v[i], a[i] = angle, rate, acceleration

        def gap(x: np.ndarray) -> np.ndarray:
            angles[unknown] = x
            return self.gaps(angles)

        # a universal joint has two solutions, and one turns the rod over
        starts = np.random.default_rng(0).uniform(-2, 2, size=(8, len(unknown)))
        for start in (np.zeros(len(unknown)), *starts):
            solution = least_squares(gap, start, xtol=1e-15, ftol=1e-15, gtol=1e-15)
            angles[unknown] = solution.x
            if solution.cost < AGREEMENT**2 and (np.cos(angles[self.upright]) > 0).all():
                break
        assert np.abs(gap(solution.x)).max() < AGREEMENT
        q = self.configuration(angles)
        K, _ = self.rows(q, v)
        v[unknown] = np.linalg.lstsq(K[:, unknown], -K @ v, rcond=1e-10)[0]
        K, bias = self.rows(q, v)
        a[unknown] = np.linalg.lstsq(K[:, unknown], -K @ a - bias, rcond=1e-10)[0]
        assert np.abs(K @ v).max() < AGREEMENT * (1 + np.abs(v).max())
        assert np.abs(K @ a + bias).max() < AGREEMENT * (1 + np.abs(a).max())
        tau = pin.rnea(model, self.data, q, v, a)
        loops = K[: len(K) - len(self.resting)]
        S = np.eye(model.nv)[:, self.motors]
        A = np.hstack([S, loops.T])
        x = np.linalg.lstsq(A, tau, rcond=1e-10)[0]
        return x[: len(self.motors)], float(np.abs(A @ x - tau).max() / np.abs(tau).max())


def compare(
    files: tuple[Path, Path],
    mechanism: Mechanism,
    resting: tuple[str, ...],
    upright: tuple[str, ...] = (),
    lengths: dict[str, tuple[float, float]] | None = None,
) -> None:
    """Forces of the machine beside Pinocchio's of the file; `lengths`: s and c of telescopic rods, l = s q + c."""
    model = Model(mechanism, evaluator=Interpreted())
    assert model.assembly.findings == ()
    states = random_states(model, STATES, np.random.default_rng(4))
    mine = model.platform.inverse_dynamics(
        states.position, states.velocity, states.acceleration, start=states.q
    ).force
    other = InPinocchio(files, resting, upright)
    names = model.topology.coordinate_names
    for k in range(STATES):
        known = {
            name: (states.q[k, i], states.v[k, i], states.a[k, i]) for i, name in enumerate(names)
        }
        for name, (sense, shift) in (lengths or {}).items():
            length, rate, acceleration = known[name]
            known[name] = sense * (length - shift), sense * rate, sense * acceleration
        forces, missing = other.forces(known)
        assert missing < BALANCE
        assert np.abs(mine[k] - forces).max() < AGREEMENT * (1 + np.abs(forces).max())


def test_a_link_between_balls_moves_as_a_slender_rod(tmp_path: Path) -> None:
    files = write(tmp_path, slider_crank(hinges=BALL))
    mechanism = recognized(files, independent=("slide",))
    (rod,) = mechanism.rods
    assert (rod.name, rod.start.body, rod.end.body, rod.spin) == ("rod", "arm", "eye", "none")
    # by hand: m, m s and I + m s^2 of the file's figures
    assert rod.lower is not None
    assert [mechanism.value(p) for p in rod.lower.parameters] == pytest.approx(
        [1.2, 0.3, 0.02 + 1.2 * 0.0625]
    )
    assert rod.length is not None
    assert mechanism.value(rod.length) == pytest.approx(0.6)
    assert [body.name for body in mechanism.bodies] == ["arm", "block", "eye"]
    assert not any(joint.is_cut for joint in mechanism.joints)
    assert "0.004 kg m^2 has no effect" in mechanism.description
    # what the rod does not need of the file is gone
    left = [
        p.name
        for p in mechanism.parameters
        if p.name.startswith(("rod", "turn", "to_tip", "hinge"))
    ]
    assert left == [
        "turn0.origin.xyz[0]",
        "rod.rod.mass",
        "rod.rod.center",
        "rod.rod.inertia",
        "rod.rod.length",
    ]
    compare(files, mechanism, resting=("rod",))


def test_a_link_between_a_universal_and_a_ball_is_a_full_rod(tmp_path: Path) -> None:
    files = write(tmp_path, slider_crank(hinges=UNIVERSAL, center="0.01 0.02 0.25", inertia=TILTED))
    mechanism = recognized(files, independent=("slide",))
    (rod,) = mechanism.rods
    assert (rod.spin, rod.start.body, rod.is_full) == ("universal", "arm", True)
    compare(files, mechanism, resting=(), upright=("turn1",))


def test_the_rods_of_digit_like_shrink_its_blocks(shared: Path) -> None:
    folder = shared / "models" / "example_parallel_robots" / "digit_like"
    if not folder.is_dir():
        pytest.skip(
            "needs models/example_parallel_robots/digit_like of the shared data, which is not here"
        )
    files = (folder / "robot.urdf", folder / "robot.yaml")
    mechanism = recognized(files, platform="")
    assert mechanism.platform.body == "foot"
    assert [rod.name for rod in mechanism.rods] == ["toe_b_1_2", "toe_b_1_2_2", "toe_a_1_2"]
    model = Model(mechanism, evaluator=Interpreted())
    assert sorted(len(block.unknowns) for block in model.actuators.blocks) == [1, 2]
    assert (model.assembly.mobility, model.assembly.rank) == (6, 3)
    compare(files, mechanism, resting=("toe_b_1_2", "toe_b_1_2_2", "toe_a_1_2"))


def jack(
    *,
    hinges: tuple[str, ...],
    axis: str = "0 0 1",
    inertia: str = ROD,
    aside: float = 0.0,
    more: str = "",
    lower: str = "",
) -> str:
    """A lever about y, pushed by a leg of two links on a slide; its foot stands on hinges through one point."""
    inner = [f"hinge{k}" for k in range(1, len(hinges))]
    chain = ["ground", *inner, "tube"]
    steps = zip(hinges, chain[:-1], chain[1:], strict=True)
    slide = joint("slide", "prismatic", "tube", "piston", axis, f"{aside} 0 0.2").replace(
        "-0.15", lower or "-0.15"
    )
    return "".join(
        [
            '<robot name="jack"><link name="ground"/>',
            link("lever", 2.0, "0.3 0.01 0.02"),
            link("tube", 1.5, f"{aside} {aside} 0.12", inertia),
            link("piston", 0.7, f"{aside / 2} 0 0.15", inertia),
            *(f'<link name="{name}"/>' for name in (*inner, "tip", "eye")),
            joint("pivot", "continuous", "ground", "lever", "0 1 0", "0 0 0.5"),
            *(
                joint(
                    f"turn{k}",
                    "continuous",
                    parent,
                    child,
                    about,
                    "0.5 0.03 0" if k == 0 else "0 0 0",
                )
                for k, (about, parent, child) in enumerate(steps)
            ),
            slide,
            joint("to_tip", "fixed", "piston", "tip", "1 0 0", "0 0 0.3"),
            joint("to_eye", "fixed", "lever", "eye", "1 0 0", "0.55 0.02 0.04"),
            more,
            "</robot>",
        ]
    )


PUSHED = SIDE.replace("crank", "slide")


@pytest.mark.parametrize(("axis", "sense"), [("0 0 1", 1.0), ("0 0 -1", -1.0)])
@pytest.mark.parametrize("hinges", ["ball", "universal"])
def test_two_links_on_a_slide_are_a_telescopic_rod(
    tmp_path: Path, hinges: str, axis: str, sense: float
) -> None:
    """Slender where it may spin (held in Pinocchio), full with the spin that the universal joint forces otherwise."""
    is_ball = hinges == "ball"
    files = write(
        tmp_path,
        jack(hinges=BALL, axis=axis)
        if is_ball
        else jack(hinges=UNIVERSAL, axis=axis, inertia=TILTED),
        PUSHED,
    )
    mechanism = recognized(files, platform="lever", independent=("pivot",))
    (rod,) = mechanism.rods
    assert (rod.name, rod.start.body, rod.end.body, rod.is_full) == (
        "slide",
        "base",
        "eye",
        not is_ball,
    )
    assert rod.telescope is not None
    # joint centres 0.5 m apart at the start, where the slide may go 0.15 m either way
    assert rod.telescope.reference == pytest.approx(0.5)
    assert (rod.telescope.freedom.lower, rod.telescope.freedom.upper) == pytest.approx((0.35, 0.65))
    assert mechanism.value(mechanism.actuators[0].drives[0][1]) == sense
    assert [body.name for body in mechanism.bodies] == ["lever", "eye"]
    shift = 0.5
    compare(
        files,
        mechanism,
        ("tube",) if is_ball else (),
        () if is_ball else ("turn1",),
        {"slide": (sense, shift)},
    )


@pytest.mark.parametrize(("axis", "sense"), [("0 0 1", 1.0), ("0 0 -1", -1.0)])
def test_a_motor_with_an_offset_keeps_its_zero_on_the_slide(
    tmp_path: Path, axis: str, sense: float
) -> None:
    """p = 20 (slide - 0.05), where the slide's coordinate is sense (length - 0.5)."""
    element = (
        '<transmission name="t"><type>transmission_interface/SimpleTransmission</type>'
        '<joint name="slide"><offset>0.05</offset></joint><actuator name="motor">'
        "<mechanicalReduction>20</mechanicalReduction></actuator></transmission></robot>"
    )
    text = jack(hinges=BALL, axis=axis).replace("</robot>", element)
    side = "\n".join(line for line in PUSHED.splitlines() if not line.startswith("name_mot"))
    machine = recognized(write(tmp_path, text, side), platform="lever", independent=("pivot",))
    assert "motor offset unchanged" in machine.description
    model = Model(machine)
    q = model.inverse_kinematics([0.1]).q
    length = q[model.topology.coordinate_names.index("slide")]
    expected = 20.0 * (sense * (length - 0.5) - 0.05)
    assert model.actuator_position(q) == pytest.approx([expected], rel=1e-9)


NO_LEGS = {
    "beside the line": (jack(hinges=UNIVERSAL, aside=0.01), "does not lie on the line"),
    "universal joints at both ends": (
        jack(hinges=UNIVERSAL)
        .replace('<link name="tip"/>', '<link name="tip"/><link name="cross"/><link name="end"/>')
        .replace(
            "</robot>",
            joint("knee1", "continuous", "tip", "cross", "1 0 0")
            + joint("knee2", "continuous", "cross", "end", "0 1 0")
            + "</robot>",
        ),
        "universal joints at both ends",
    ),
    "through nothing": (
        jack(hinges=UNIVERSAL, lower="-0.6"),
        "at its limit the distance between its joint centers is -0.1 m",
    ),
    "not round": (jack(hinges=BALL, inertia=TILTED), "not axisymmetric"),
    "something hangs on it": (
        jack(
            hinges=BALL,
            more=link("more", 1.0) + joint("hang", "continuous", "tube", "more", "1 0 0"),
        ),
        "",
    ),
}


@pytest.mark.parametrize("case", NO_LEGS)
def test_what_is_no_telescopic_rod_stays_two_bodies(tmp_path: Path, case: str) -> None:
    urdf, note = NO_LEGS[case]
    side = PUSHED
    if case == "universal joints at both ends":
        side = "closed_loop: [[end, eye]]\ntype: [6d]\nname_mot: [slide]\n"
    files = write(tmp_path, urdf, side)
    mechanism = recognized(files, platform="lever")
    plain = load(*files, options=ImportOptions(platform_body="lever"))
    assert mechanism.rods == ()
    assert mechanism.joints == plain.joints
    assert note in mechanism.description


LOADED = """
<mujoco><compiler angle="radian"/><option gravity="0 0.4 -9.81"/><worldbody>
  <body name="lever" pos="0 0 0.5"><joint name="pivot" axis="0 1 0"/>
    <inertial mass="2" pos="0.3 0.01 0.02" diaginertia="0.1 0.2 0.3"/><site name="eye" pos="0.55 0.02 0.04"/></body>
  <body name="tube" pos="0.5 0.03 0"><joint name="swing" axis="0 1 0"/><joint name="lean" axis="1 0 0"/>
    <inertial mass="1.5" pos="0.01 0.02 0.12" fullinertia="0.02 0.023 0.006 0.001 0 0"/>
    <body name="piston" pos="0 0 0.2">
      <joint name="slide" type="slide" axis="0 0 -1" ref="0.1" range="-0.05 0.25" stiffness="300" springref="0.15"
        damping="3" frictionloss="2" armature="0.4"/>
      <inertial mass="0.7" pos="0 0.01 0.15" fullinertia="0.02 0.023 0.006 0.001 0 0"/><site name="tip" pos="0 0 0.3"/>
    </body></body></worldbody>
  <equality><connect site1="tip" site2="eye"/></equality>
  <actuator><motor joint="slide" gear="5"/></actuator>
</mujoco>
"""


def test_what_acts_on_a_slide_goes_over_to_the_length(tmp_path: Path) -> None:
    """Spring, losses, rotor, limits and motor of a slide that shrinks as it counts up: the same forces as before."""
    (tmp_path / "jack.xml").write_text(LOADED)
    options = ImportOptions(platform_body="lever", independent=("pivot",))
    bodies = load(tmp_path / "jack.xml", options=options)
    rods = load(tmp_path / "jack.xml", options=replace(options, rods=RodRecognition()))
    (telescope,) = (rod.telescope for rod in rods.rods)
    assert telescope is not None
    assert (telescope.freedom.lower, telescope.freedom.upper) == pytest.approx((0.35, 0.65))
    assert "0.6 m - joint coordinate" in rods.description
    model, two = (Model(m, evaluator=Interpreted()) for m in (bodies, rods))
    states = random_states(two, STATES, np.random.default_rng(5))
    motion = (states.position, states.velocity, states.acceleration)
    force = two.platform.inverse_dynamics(*motion, start=states.q).force
    wanted = model.platform.inverse_dynamics(*motion).force
    assert np.abs(force - wanted).max() < AGREEMENT * np.abs(wanted).max()


def test_legs_come_back_through_mjcf(tmp_path: Path) -> None:
    """As bodies on slides and as telescopic rods they move alike; the lengths are those of the machine again."""
    machine = load("hexapod")
    (tmp_path / "machine.xml").write_text(to_mjcf(machine).text)
    names = [f"platform.{x}" for x in "xyz"] + [f"platform.turn.w{x}" for x in "xyz"]
    options = ImportOptions(platform_body="tool", independent=tuple(names))
    bodies = load(tmp_path / "machine.xml", options=options)
    rods = load(tmp_path / "machine.xml", options=replace(options, rods=RodRecognition()))
    assert bodies.rods == ()
    assert [rod.telescope is not None for rod in rods.rods] == [True] * 6
    models = [Model(m, evaluator=Interpreted()) for m in (machine, rods)]
    states = random_states(models[0], STATES, np.random.default_rng(8))
    motion = (states.position, states.velocity, states.acceleration)
    mine, theirs = (model.platform.inverse_dynamics(*motion) for model in models)
    scale = np.abs(mine.force).max()
    assert np.abs(mine.force - theirs.force).max() < AGREEMENT * scale
    unreduced = Model(bodies, evaluator=Interpreted()).platform.inverse_dynamics(*motion)
    assert np.abs(unreduced.force - theirs.force).max() < AGREEMENT * scale


UNCHANGED = {
    "it may spin": (slider_crank(hinges=BALL), {"lock_spins": False}, "may spin"),
    "not axisymmetric": (slider_crank(hinges=BALL, inertia=TILTED), {}, "not axisymmetric"),
    "mass centre beside the line": (
        slider_crank(hinges=BALL, center="0.01 0 0.25"),
        {},
        "not axisymmetric",
    ),
    "second axis along the rod": (
        slider_crank(hinges=("1 0 0", "0 0 1")),
        {},
        "not perpendicular to the rod",
    ),
    "hinges that are parallel": (slider_crank(hinges=("1 0 0", "1 0 0", "0 0 1")), {}, ""),
    "a hinge alone": (slider_crank(hinges=("0 1 0",)), {}, ""),
    "it is the platform": (slider_crank(hinges=BALL), {"platform": "rod"}, ""),
    "a hinge is independent": (slider_crank(hinges=BALL), {"independent": ("turn1",)}, ""),
    "something hangs on it": (
        slider_crank(
            hinges=BALL,
            more=link("more", 1.0) + joint("hang", "continuous", "rod", "more", "1 0 0", "0 0 0.2"),
        ),
        {},
        "",
    ),
}


@pytest.mark.parametrize("case", UNCHANGED)
def test_what_is_no_rod_stays_a_body(tmp_path: Path, case: str) -> None:
    urdf, options, note = UNCHANGED[case]
    files = write(tmp_path, urdf)
    mechanism = recognized(files, **options)
    plain = load(*files, options=ImportOptions(platform_body="block"))
    assert mechanism.rods == ()
    assert mechanism.bodies == plain.bodies
    assert mechanism.joints == plain.joints
    assert mechanism.parameters == plain.parameters
    assert note in mechanism.description


def test_a_body_on_rods_alone_gets_coordinates_of_its_own(tmp_path: Path) -> None:
    # the plate hangs in the tree on the first rod; without that it stands where the reference pose
    # has it
    parts = ['<robot name="table"><link name="ground"/>', link("plate", 1.0)]
    for k in range(6):
        angle = 2 * np.pi * k / 6
        here = f"{np.cos(angle):.12g} {np.sin(angle):.12g} 0"
        parts += [link(f"rod{k}", 0.5, "0 0 0.25", ROD), f'<link name="a{k}"/><link name="b{k}"/>']
        parts += [
            joint(f"x{k}", "continuous", "ground", f"a{k}", "1 0 0", here),
            joint(f"y{k}", "continuous", f"a{k}", f"b{k}", "0 1 0"),
            joint(f"z{k}", "continuous", f"b{k}", f"rod{k}", "0 0 1"),
        ]
    parts += [
        '<link name="c"/><link name="d"/>',
        joint("x", "continuous", "rod0", "c", "1 0 0", "0 0 0.5"),
        joint("y", "continuous", "c", "d", "0 1 0"),
        joint("z", "continuous", "d", "plate", "0 0 1"),
    ]
    for k in range(1, 6):
        angle = 2 * np.pi * k / 6
        parts += [
            f'<link name="tip{k}"/><link name="eye{k}"/>',
            joint(f"t{k}", "fixed", f"rod{k}", f"tip{k}", "1 0 0", "0 0 0.5"),
        ]
        there = f"{np.cos(angle) - 1:.12g} {np.sin(angle):.12g} 0"
        parts.append(joint(f"e{k}", "fixed", "plate", f"eye{k}", "1 0 0", there))
    pairs = ", ".join(f"[tip{k}, eye{k}]" for k in range(1, 6))
    side = f"closed_loop: [{pairs}]\ntype: [3d, 3d, 3d, 3d, 3d]\nname_mot: []\n"
    mechanism = recognized(write(tmp_path, "".join([*parts, "</robot>"]), side), platform="plate")
    assert len(mechanism.rods) == 6
    (free,) = (joint for joint in mechanism.joints if joint.kind == "free")
    assert (free.name, free.parent.body, free.child.body) == ("platform", BASE, "plate")
    assert free.reference == pytest.approx((1, 0, 0.5, 1, 0, 0, 0))
    assert "plate is connected only to rods" in mechanism.description


@pytest.mark.parametrize("name", ["delta", "gantry_tau_3dof", "linear_delta"])
def test_rods_come_back_through_mjcf(tmp_path: Path, name: str) -> None:
    # the writer makes a body on two hinges and a `connect` of each rod
    machine = load(name)
    (tmp_path / "machine.xml").write_text(to_mjcf(machine).text)
    independent = tuple(identifier(coordinate) for coordinate in machine.platform.independent)
    options = ImportOptions(platform_body="tool", rods=RodRecognition(), independent=independent)
    back = load(tmp_path / "machine.xml", options=options)
    assert len(back.rods) == len(machine.rods)
    assert [rod.is_full for rod in back.rods] == [rod.is_full for rod in machine.rods]
    model, two = (Model(m, evaluator=Interpreted()) for m in (machine, back))
    states = random_states(model, STATES, np.random.default_rng(8))
    mine = model.platform.inverse_dynamics(
        states.position, states.velocity, states.acceleration, start=states.q
    )
    names = [identifier(coordinate) for coordinate in model.topology.coordinate_names]
    start = states.q[
        :, [names.index(identifier(coordinate)) for coordinate in two.topology.coordinate_names]
    ]
    theirs = two.platform.inverse_dynamics(
        states.position, states.velocity, states.acceleration, start=start
    )
    order = [identifier(actuator.name) for actuator in machine.actuators]
    columns = [order.index(actuator.name) for actuator in back.actuators]
    scale = 1.0 + np.abs(mine.force).max()
    assert np.abs(mine.force[:, columns] - theirs.force).max() < AGREEMENT * scale


def hexapod(lower: str, upper: str, count: int = 6) -> str:
    """Return an MJCF of a plate on six legs or less; the plate comes first, each leg is two bodies."""
    inertial = '<inertial pos="0 0 0.1" mass="0.5" diaginertia="2e-3 2e-3 1e-4"/>'
    legs, loops = [], []
    for k in range(count):
        foot = np.radians(60.0 * (k // 2 * 2) + (10.0 if k % 2 else -10.0))
        head = np.radians(60.0 * (k // 2 * 2) + (50.0 if k % 2 else -50.0))
        A = np.array([0.5 * np.cos(foot), 0.5 * np.sin(foot), 0.0])
        d = np.array([0.2 * np.cos(head), 0.2 * np.sin(head), 0.6]) - A
        place = " ".join(map(repr, A.tolist()))
        line = " ".join(map(repr, d.tolist()))
        legs.append(
            f'<body name="lower{k}" pos="{place}" zaxis="{line}">{lower % k}{inertial}'
            f'<body name="upper{k}" pos="0 0 {float(np.linalg.norm(d)) - 0.2!r}">{upper % k}{inertial}'
            "</body></body>"
        )
        loops.append(f'<connect body1="upper{k}" body2="plate" anchor="0 0 0.2"/>')
    motors = "".join(f'<motor joint="s{k}"/>' for k in range(count))
    plate = (
        '<body name="plate" pos="0 0 0.6"><freejoint name="free"/>'
        '<inertial pos="0 0 0" mass="5" diaginertia=".05 .05 .1"/></body>'
    )
    return f"""<mujoco><compiler angle="radian"/><worldbody>{plate}{"".join(legs)}</worldbody>
<equality>{"".join(loops)}</equality><actuator>{motors}</actuator></mujoco>"""


@pytest.mark.parametrize(
    "lower",
    [
        '<joint name="b%d" type="ball"/>',
        '<joint name="u%d" axis="1 0 0"/><joint axis="0 1 0"/>',
    ],
)
def test_the_platform_is_not_a_part_of_a_telescopic_leg(tmp_path: Path, lower: str) -> None:
    """The last body of the file is half of a leg, whose spin would be a coordinate."""
    slide = '<joint name="s%d" type="slide" axis="0 0 1" range="-0.2 0.3"/>'
    (tmp_path / "hexapod.xml").write_text(hexapod(lower, slide), encoding="utf-8")
    mechanism = load(tmp_path / "hexapod.xml")
    assert mechanism.platform.body == "plate"
    assembly = Model(mechanism).assembly
    assert assembly.mobility == 6
    assert all(name.startswith("free.") for name in assembly.independent_names)


@pytest.mark.parametrize("ending", ["xml", "sdf"])
def test_a_machine_with_locked_spins_reads_back_as_it_was_written(
    tmp_path: Path, ending: str
) -> None:
    """The axes on which spins are locked follow from random poses: they differ by 1e-7 of forces."""
    slide = '<joint name="s%d" type="slide" axis="0 0 1" range="-0.2 0.3"/>'
    text = hexapod('<joint name="b%d" type="ball"/>', slide, 3)
    (tmp_path / "hexapod.xml").write_text(text, encoding="utf-8")
    written = convert(load(tmp_path / "hexapod.xml"), tmp_path / f"again.{ending}")
    assert written.status is Status.OK
    forces = written.diagnostics[0]
    assert forces.value is not None
