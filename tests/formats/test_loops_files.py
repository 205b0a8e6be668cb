"""URDF with loops: Gepetto's robot.yaml, GRBDA's loops and gears, Drake's ball constraint, mimic; against Pinocchio."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml
from extras import extra
from hypothesis import given, strategies as st
from mjcf_texts import EVERYTHING
from slider_cranks import BALL, SIDE, slider_crank
from tree_numbers import OpenTree

from tauloop.common.errors import DescriptionError, InputError
from tauloop.common.result import Status
from tauloop.compiler.c import Interpreted
from tauloop.equations.assembly.loops import Loops, loops
from tauloop.formats import load, loads
from tauloop.formats.options import ImportOptions, RodRecognition
from tauloop.formats.urdf.parts import identifier
from tauloop.formats.urdf.writer import write_urdf
from tauloop.kinematics import check, random_states
from tauloop.mechanism.expression import Constant, Leaf
from tauloop.mechanism.model import BASE, Coupling, Mechanism
from tauloop.model import Model
from tauloop.verification.engines import NamedMotion, mujoco_engine, pinocchio_engine

GEPETTO = ("5bar_linkage_iso3d", "5bar_linkage_iso6d", "robot_delta", "digit_like")
GRBDA = ("four_bar", "six_bar", "planar_leg_linkage", "revolute_rotor_chain")
#: Two programs sum the same products of some twenty factors of size one; exporters' angles are off
#: right ones by 1e-12.
AGREEMENT = 1e-10
#: Products of a few rotations.
ROUNDING = 1e-12
STATES = 5


def model(shared: Path, name: str) -> tuple[Path, Path | None]:
    """URDF and side file of one of the models that others wrote."""
    if name in GEPETTO:
        folder = shared / "models" / "example_parallel_robots" / name
        urdf, side = folder / "robot.urdf", folder / "robot.yaml"
    else:
        urdf, side = shared / "models" / "grbda" / f"{name}.urdf", None
    if not urdf.is_file():
        pytest.skip(f"needs {urdf.relative_to(shared)} of the shared data, which is not here")
    return urdf, side


@pytest.mark.parametrize("name", [*GEPETTO, *GRBDA])
def test_the_tree_is_that_of_pinocchio(shared: Path, name: str) -> None:
    pin = extra("pinocchio")
    urdf, side = model(shared, name)
    mechanism = load(urdf, side)
    tree = OpenTree(mechanism)
    other = pin.buildModelFromUrdf(str(urdf))
    data = other.createData()
    column = {identifier(other.names[j]): other.joints[j].idx_v for j in range(1, other.njoints)}
    order = [column[joint] for joint in tree.shape.velocity_names]
    assert sorted(order) == list(range(other.nv))
    frames = {
        identifier(frame.name): k
        for k, frame in enumerate(other.frames)
        if frame.type == pin.FrameType.BODY
    }
    random = np.random.default_rng(11)
    for _ in range(STATES):
        q, v, a = random.uniform(-2, 2, size=(3, other.nv))
        theirs = pin.integrate(other, pin.neutral(other), q)
        tau = pin.rnea(other, data, theirs, v, a)
        pin.framesForwardKinematics(other, data, theirs)
        mine, poses = tree(q[order], v[order], a[order])
        assert np.abs(mine - tau[order]).max() < AGREEMENT * (1.0 + np.abs(tau).max())
        for body, T in poses.items():
            assert np.abs(T - data.oMf[frames[body]].homogeneous).max() < AGREEMENT, body
    by_name = {
        identifier(node.get("name", "")): float(mass.get("value", "nan"))
        for node in ElementTree.parse(urdf).iter("link")
        if (mass := node.find("inertial/mass")) is not None
    }
    for group in welded(urdf):
        # the links of a rigid body have one inertia together, and none where they are welded to the
        # base
        heavy = [
            body for body in mechanism.bodies if body.name in group and body.inertia is not None
        ]
        expected = sum(by_name.get(name, 0.0) for name in group)
        if not group <= {body.name for body in mechanism.bodies}:  # the root's
            assert heavy == []
        elif any(name in by_name for name in group):
            (body,) = heavy
            assert body.inertia is not None
            assert mechanism.value(body.inertia.mass) == pytest.approx(expected, rel=ROUNDING)


def welded(urdf: Path) -> list[set[str]]:
    """Links in groups that fixed joints make, by the file alone."""
    robot = ElementTree.parse(urdf).getroot()
    groups = {node.get("name", ""): {node.get("name", "")} for node in robot.iter("link")}
    for node in robot.iter("joint"):
        ends = [node.find(tag) for tag in ("parent", "child")]
        if node.get("type") == "fixed":
            single, two = (groups[end.get("link", "")] for end in ends if end is not None)
            for name in two:
                groups[name] = single
            single |= two
    return [
        {identifier(name) for name in group}
        for group in {id(group): group for group in groups.values()}.values()
    ]


def carrier_rotation(other: Any, data: Any, gaps: Loops, element: str) -> np.ndarray:
    """Return the orientation in Pinocchio of the body in whose frame a loop is closed."""
    (cut,) = [cut for cut in gaps.topology.cuts if cut.name == element]
    carrier, _ = gaps.topology.loop(cut.parent.body, cut.child.body)
    if carrier == BASE:
        return np.eye(3)
    frames = {identifier(frame.name): index for index, frame in enumerate(other.frames)}
    return np.asarray(data.oMf[frames[carrier]].rotation)


@pytest.mark.parametrize("name", GEPETTO)
def test_loops_miss_by_what_the_frames_miss_in_pinocchio(shared: Path, name: str) -> None:
    pin = extra("pinocchio")
    urdf, side = model(shared, name)
    mechanism = load(urdf, side)
    gaps = loops(mechanism)
    other = pin.buildModelFromUrdf(str(urdf))
    data = other.createData()
    assert side is not None
    content = yaml.safe_load(side.read_text())
    assert [joint.name for joint in mechanism.joints if joint.is_cut] == [
        f"{identifier(a)}_to_{identifier(b)}" for a, b in content["closed_loop"]
    ]
    assert [actuator.name for actuator in mechanism.actuators] == [
        identifier(name) for name in content["name_mot"]
    ]
    column = {identifier(other.names[j]): other.joints[j].idx_v for j in range(1, other.njoints)}
    order = [column[joint] for joint in gaps.topology.velocity_names]
    random = np.random.default_rng(5)
    for _ in range(STATES):
        q = random.uniform(-1, 1, size=other.nv)
        pin.framesForwardKinematics(other, data, pin.integrate(other, pin.neutral(other), q))
        phi, _ = gaps.residuals(q[order][None])
        residual = dict(zip(gaps.names, phi[0], strict=True))
        for (a, b), kind in zip(content["closed_loop"], content["type"], strict=True):
            A, B = (data.oMf[other.getFrameId(frame)] for frame in (a, b))
            element = f"{identifier(a)}_to_{identifier(b)}"
            offset = [residual[f"{element}: {letter}"] for letter in "xyz"]
            gap = carrier_rotation(other, data, gaps, element).T @ (B.translation - A.translation)
            assert np.abs(offset - gap).max() < AGREEMENT
            cosines = [residual.get(f"{element}: {u} across {w}") for u, w in ("xy", "yz", "zx")]
            if kind == "3d":
                assert cosines == [None] * 3
            else:
                R = A.rotation.T @ B.rotation
                assert np.abs(np.array(cosines) - [R[0, 1], R[1, 2], R[2, 0]]).max() < AGREEMENT


# Small files, one matter each

TAIL = '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>'


def link(name: str) -> str:
    return f'<link name="{name}">{TAIL}'


def joint(
    name: str, parent: str, child: str, inside: str = "", kind: str = "continuous", more: str = ""
) -> str:
    ends = f'<parent link="{parent}"/><child link="{child}"/><axis xyz="0 0 1"/>'
    return f'<joint name="{name}" type="{kind}" {more}>{ends}{inside}</joint>'


def chain(*elements: str) -> str:
    """Three links in a row on a base, and what is added, one element a line; the first addition is on line 9."""
    parts = [
        '<robot name="chain" xmlns:drake="http://drake.mit.edu">',
        '<link name="ground"/>',
        *(link(f"link{k}") for k in (1, 2, 3)),
        joint("one", "ground", "link1"),
        joint("two", "link1", "link2", '<origin xyz="0.5 0 0"/>'),
        joint("three", "ground", "link3", '<origin xyz="1 0 0"/>'),
        *elements,
        "</robot>",
    ]
    return "\n".join(parts)


def read(folder: Path, text: str, side: str | None = None, **options: object) -> Mechanism:
    path = folder / "machine.urdf"
    path.write_text(text)
    if side is not None:
        (folder / "robot.yaml").write_text(side)
    return load(
        path, None if side is None else folder / "robot.yaml", options=ImportOptions(**options)
    )


def problems(
    folder: Path, text: str, side: str | None = None, **options: object
) -> list[tuple[str, str, int | None]]:
    with pytest.raises(DescriptionError) as caught:
        read(folder, text, side, **options)
    return [(p.where, p.what, p.line) for p in caught.value.problems]


LOOP = """<loop name="loop" type="revolute">
<predecessor link="link2"><origin xyz="0.7 0.1 0" rpy="0 0 0.3"/></predecessor>
<successor link="link3"><origin xyz="0.4 0 0"/></successor>
<axis xyz="0 0 1"/></loop>"""


def test_a_loop_of_grbda_is_a_cut_joint(tmp_path: Path) -> None:
    mechanism = read(tmp_path, chain(LOOP))
    cut = mechanism.joint("loop")
    assert (cut.kind, cut.is_cut, cut.axes) == ("revolute", True, ("z",))
    assert (cut.parent.body, cut.child.body) == ("link2", "link3")
    assert cut.parent.position == (
        Leaf("loop.predecessor.xyz[0]"),
        Leaf("loop.predecessor.xyz[1]"),
        Constant(0.0),
    )
    assert mechanism.value(cut.parent.turns[0].angle) == 0.3
    gaps = loops(mechanism)
    assert gaps.topology.cuts == (cut,)
    phi, _ = gaps.residuals(np.zeros((1, 3)))
    # by hand: the far end of link2 is at (1.2, 0.1), that of link3 at (1.4, 0); both axes point up
    assert np.allclose(phi[0], [0.2, -0.1, 0.0, 0.0, 0.0], atol=ROUNDING)
    assert "9.81 m/s^2 along -z" in mechanism.description
    assert mechanism.platform.independent == ()
    assert "not used" not in mechanism.description


def test_a_ball_constraint_of_drake_is_a_ball_joint(tmp_path: Path) -> None:
    ball = """<drake:ball_constraint>
<drake:ball_constraint_body_A name="link2"/><drake:ball_constraint_p_AP value="0.7 0.1 0.2"/>
<drake:ball_constraint_body_B name="ground"/><drake:ball_constraint_p_BQ value="1 0 0"/>
</drake:ball_constraint>"""
    mechanism = read(tmp_path, chain(ball), gravity=(0.0, -9.81, 0.0))
    cut = mechanism.joint("ball_constraint_1")
    assert (cut.kind, cut.is_cut, cut.parent.body, cut.child.body) == (
        "spherical",
        True,
        "link2",
        BASE,
    )
    phi, _ = loops(mechanism).residuals(np.zeros((1, 3)))
    assert np.allclose(phi[0], [-0.2, -0.1, -0.2], atol=ROUNDING)
    assert [mechanism.value(g) for g in mechanism.gravity] == [0.0, -9.81, 0.0]


def test_a_gear_of_grbda_counts_the_joints_from_the_common_ancestor(tmp_path: Path) -> None:
    mechanism = read(tmp_path, chain(gear("link2", "link3", '<ratio value="6"/>')))
    terms = (("one", Leaf("g.of.one")), ("two", Leaf("g.of.two")), ("three", Constant(-1.0)))
    assert mechanism.couplings == (Coupling(name="g", terms=terms),)
    without_type = gear("link2", "link3", '<ratio value="6"/>').replace(' type="rolling"', "")
    assert read(tmp_path, chain(without_type)).couplings == mechanism.couplings
    gaps = loops(mechanism)
    columns = [gaps.topology.velocity_names.index(name) for name in ("one", "two", "three")]
    q = np.zeros((1, 3))
    q[0, columns] = [0.1, 0.2, 0.3]
    phi, K = gaps.residuals(q)
    assert phi[0] == pytest.approx([6 * 0.3 - 0.3])
    assert K[0, 0, columns].tolist() == [6.0, 6.0, -1.0]


def test_a_joint_that_mimics_another_is_coupled_with_it(tmp_path: Path) -> None:
    text = chain().replace(
        '"three" type="continuous" >',
        '"three" type="continuous" ><mimic joint="two" multiplier="-2" offset="0.5"/>',
    )
    mechanism = read(tmp_path, text, gravity=(0.0, 0.0, -9.81), platform_body="link2")
    (coupling,) = mechanism.couplings
    assert (coupling.name, mechanism.value(coupling.offset)) == ("three_mimic", 0.5)
    assert [(name, mechanism.value(ratio)) for name, ratio in coupling.terms] == [
        ("three", 1.0),
        ("two", 2.0),
    ]
    # what follows another joint has no motor and is not independent
    assert [actuator.name for actuator in mechanism.actuators] == ["one", "two"]
    assert mechanism.platform.independent == ("one", "two")


def test_independent_joints_of_the_file_and_of_the_options(tmp_path: Path) -> None:
    text = chain(LOOP).replace(
        '"two" type="continuous" ', '"two" type="continuous" independent="false"'
    )
    text = text.replace(
        '"three" type="continuous" ', '"three" type="continuous" independent="false"'
    )
    mechanism = read(tmp_path, text)
    assert (mechanism.platform.independent, [a.name for a in mechanism.actuators]) == (
        ("one",),
        ["one"],
    )
    assert read(tmp_path, text, independent=("three",)).platform.independent == ("three",)
    assert read(tmp_path, text, platform_body="link1").platform.body == "link1"
    assert read(tmp_path, text).platform.body == "link3"
    refusals = [
        where
        for where, _, _ in problems(tmp_path, text, independent=("four",), platform_body="ground")
    ]
    assert refusals == ["options.independent", "options.platform_body"]


def test_a_side_file_closes_loops_between_links_and_joints(tmp_path: Path) -> None:
    side = "closed_loop: [[link2, three], [ground, two]]\ntype: [6d, 3d]\nname_mot: [three, one]\n"
    mechanism = read(tmp_path, chain(), side)
    first, second = (joint for joint in mechanism.joints if joint.is_cut)
    # the frame of a joint is that of its child link
    assert (first.kind, first.parent.body, first.child.body) == ("fixed", "link2", "link3")
    assert (second.kind, second.parent.body, second.child.body) == ("spherical", BASE, "link2")
    assert [actuator.name for actuator in mechanism.actuators] == ["three", "one"]
    own = (
        "format: tauloop-urdf-side/1\nprovenance: {status: chosen}\ngravity: [0, 0, -9.81 m/s^2]\n"
    )
    mechanism = read(
        tmp_path,
        chain(),
        own + "platform: {body: link2}\nclosed_loop: [[link2, link3]]\ntype: [revolute]\n",
    )
    (cut,) = (joint for joint in mechanism.joints if joint.is_cut)
    assert (cut.name, cut.kind, cut.axes) == ("link2_to_link3", "revolute", ("z",))


BAD_SIDES = {
    "nothing to close": ("type: [3d]", [("type", 1)]),
    "no types": ("closed_loop: [[link1, link3]]", [("type", 1)]),
    "numbers differ": ("closed_loop: [[link1, link3]]\ntype: [3d, 6d]", [("type", 2)]),
    "unknown frames and types": (
        "closed_loop: [[link1, link9], [link1, link1]]\ntype: [3d, 5d]\nname_mot: [nine, one, one]",
        [("closed_loop[0]", 1), ("type[1]", 2), ("name_mot[0]", 3), ("name_mot[2]", 3)],
    ),
    "not pairs": (
        "closed_loop: [link1, [link1]]\ntype: [3d, 3d]",
        [("closed_loop[0]", 1), ("closed_loop[1]", 1)],
    ),
    "one link": ("closed_loop: [[link1, one]]\ntype: [3d]", [("closed_loop[0]", 1)]),
    "twice": (
        "closed_loop: [[link1, link3], [link1, link3]]\ntype: [3d, 3d]",
        [("closed_loop[1]", 1)],
    ),
    "unknown key": (
        "closed_loop: [[link1, link3]]\ntype: [3d]\nname_motor: [one]",
        [("name_motor", 3)],
    ),
}


@pytest.mark.parametrize("case", BAD_SIDES)
def test_a_wrong_side_file_is_refused_with_all_its_lines(tmp_path: Path, case: str) -> None:
    text, expected = BAD_SIDES[case]
    assert [(where, line) for where, _, line in problems(tmp_path, chain(), text)] == expected


def gear(text: str, two: str, ratio: str, kind: str = "rolling") -> str:
    return f'<coupling name="g" type="{kind}"><predecessor link="{text}"/><successor link="{two}"/>{ratio}</coupling>'


BAD_ELEMENTS = {
    "loop of an unknown type": (LOOP.replace("revolute", "hinge"), [("loop", 9)]),
    "loop to nowhere": (LOOP.replace("link3", "link7"), [("loop", 11)]),
    "loop without an end": (LOOP.replace("successor", "follower"), [("loop", 9)]),
    "loop within a link": (LOOP.replace("link3", "link2"), [("loop", 9)]),
    "loop with a taken name": (LOOP.replace('"loop"', '"one"'), [("one", 6)]),
    "zero axis": (LOOP.replace("0 0 1", "0 0 0"), [("loop", 12)]),
    "gear of zero": (
        gear("link1", "link3", '<ratio value="0"/>'),
        [("g", 9)],
    ),
    "gear without ratio, unknown type": (
        gear("link1", "link3", "", kind="belt"),
        [("g", 9), ("g", 9)],
    ),
    "gear along one chain": (
        gear("link1", "link2", '<ratio value="2"/>'),
        [("g", 9)],
    ),
    "ball without points": (
        '<drake:ball_constraint><drake:ball_constraint_body_A name="link1"/></drake:ball_constraint>',
        [("ball_constraint_1", 9)] * 3,
    ),
    "mimic of itself, of nothing, by a ball": (
        link("link4")
        + joint("four", "link3", "link4", '<mimic joint="four"/>')
        + link("link5")
        + joint("five", "link3", "link5", '<mimic joint="six"/>')
        + link("link6")
        + joint("fly", "link3", "link6", '<mimic joint="one"/>', kind="floating"),
        [("four", 9), ("five", 9), ("fly", 9)],
    ),
}


@pytest.mark.parametrize("case", BAD_ELEMENTS)
def test_a_wrong_loop_or_gear_is_refused_with_its_line(tmp_path: Path, case: str) -> None:
    text, expected = BAD_ELEMENTS[case]
    assert [
        (where, line) for where, _, line in problems(tmp_path, chain(text), gravity=(0, 0, 0))
    ] == expected


def test_side_file_and_options_belong_to_imported_files_only(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="side"):
        load("delta", tmp_path / "robot.yaml")
    with pytest.raises(
        InputError, match="platform_body: delta is a machine file, which refers to no other files"
    ):
        load("delta", options=ImportOptions(platform_body="plate"))


# Gears and cut joints are part of the machine file too

GEARED = """format: tauloop-machine/1
name: geared
provenance: {status: chosen, source: test}
gravity: [0, -9.81 m/s^2, 0]
bodies:
  arm: {mass: 2 kg, center: [0.2 m, 0, 0], inertia: {xx: 0.01 kg m^2, yy: 0.05 kg m^2, zz: 0.05 kg m^2}}
  rotor: {mass: 0.3 kg, inertia: {xx: 1e-4 kg m^2, yy: 1e-4 kg m^2, zz: 2e-4 kg m^2}}
  slider: {mass: 1 kg}
joints:
  hinge: {type: revolute, axis: z, parent: base, child: arm}
  spin: {type: revolute, axis: z, parent: {on: arm, at: [0.1 m, 0, 0]}, child: rotor, reference: 2 rad}
  slide: {type: prismatic, axis: y, parent: base, child: slider}
couplings:
  gear: {of: {hinge: 5, spin: -1}, offset: -2 rad}
  rack: {of: {slide: 20 rad/m, hinge: 1}}
actuators:
  motor: {on: spin}
platform: {body: arm, independent: [hinge]}
"""


def test_a_gear_carries_inertia_and_force_through_its_ratio() -> None:
    mechanism = loads(GEARED)
    model = Model(mechanism, evaluator=Interpreted())
    assert (model.assembly.mobility, model.assembly.rank, model.assembly.findings) == (1, 2, ())
    # linear: no iteration
    assert all(block.method == "quadratic" for block in model.platform.blocks)
    q, v, a = np.array([[0.3]]), np.array([[0.7]]), np.array([[-1.1]])
    force = model.platform.inverse_dynamics(q, v, a).force[0, 0]
    # by hand, with w = hinge rate: rotor turns at 6 w in the base, slider moves at -w/20; power of
    # the motor = 5 w u
    inertia = 0.05 + 2 * 0.2**2 + 0.3 * 0.1**2 + 2e-4 * 6**2 + 1.0 / 20**2
    weight = 9.81 * ((2 * 0.2 + 0.3 * 0.1) * np.cos(0.3) - 1.0 / 20)
    assert force == pytest.approx((inertia * -1.1 + weight) / 5, rel=ROUNDING)


@pytest.mark.parametrize("engine", ["pinocchio", "mujoco"])
def test_gears_and_cuts_agree_with_engines(engine: str) -> None:
    extra(engine)
    mechanism = loads(GEARED)
    model = Model(mechanism, evaluator=Interpreted())
    states = random_states(model, STATES, np.random.default_rng(2))
    mine = model.platform.inverse_dynamics(
        states.position, states.velocity, states.acceleration
    ).force
    names = model.topology.velocity_names
    columns = [
        {name: x[:, i] for i, name in enumerate(names)} for x in (states.q, states.v, states.a)
    ]
    made = pinocchio_engine(mechanism) if engine == "pinocchio" else mujoco_engine(mechanism)
    theirs = made.inverse_dynamics(NamedMotion(q=columns[0], v=columns[1], a=columns[2]))
    assert np.abs(theirs.forces - mine).max() < AGREEMENT * (1 + np.abs(mine).max())
    assert theirs.residuals.closure.max() < AGREEMENT


def test_the_file_says_which_joint_is_cut() -> None:
    tie = "  tie: {type: fixed, parent: slider, child: {on: base, at: [0, 0.1 m, 0]}, cut: yes}\n"
    text = GEARED.replace("couplings:", f"{tie}couplings:")
    mechanism = loads(text)
    assert [joint.name for joint in mechanism.joints if joint.is_cut] == ["tie"]
    gaps = loops(mechanism)
    assert [joint.name for joint in gaps.topology.cuts] == ["tie"]
    assert set(gaps.topology.velocity_names) == {"hinge", "spin", "slide"}


WRONG_GEARS = {
    "unknown coordinate": ("hinge: 5", "hing: 5", "couplings.gear.of.hing"),
    "units that do not go together": ("20 rad/m", "20", "couplings.rack.of"),
    "an offset of the wrong dimension": ("-2 rad", "-2 m", "couplings.gear.offset"),
    "a ratio of zero": ("hinge: 5", "hinge: 0", "couplings.gear.of.hinge"),
    "no coordinates": (
        "{of: {hinge: 5, spin: -1}, offset: -2 rad}",
        "{offset: -2 rad}",
        "couplings.gear.of",
    ),
    "cut is yes or no": ("child: arm}", "child: arm, cut: maybe}", "joints.hinge.cut"),
    "a cut joint holds nothing": ("child: arm}", "child: arm, cut: yes}", "bodies.arm"),
}


@pytest.mark.parametrize("case", WRONG_GEARS)
def test_a_wrong_gear_or_cut_is_refused(case: str) -> None:
    old, new, where = WRONG_GEARS[case]
    with pytest.raises(DescriptionError) as caught:
        loads(GEARED.replace(old, new, 1))
    assert where in [problem.where for problem in caught.value.problems]


# Files that somebody has damaged

WORDS = (
    "nan",
    "inf",
    "-1",
    "0",
    "1e400",
    "",
    "a",
    "0 0 0",
    "1 2",
    "world",
    "true",
    "link1",
    "1 0 0 0",
    "1e308 0 0",
)


def damaged(text: str, random: np.random.Generator) -> str:
    """A few attributes removed or replaced, and elements removed or copied elsewhere."""
    for _ in range(random.integers(1, 5)):
        pattern = random.choice([r'[\w:]+="[^"]*"', r"<[^!?/][^<>]*/>"])
        places = list(re.finditer(pattern, text))
        if not places:
            continue
        here, there = (places[k] for k in random.integers(len(places), size=2))
        key, equals, _ = here.group().partition("=")
        new = random.choice(
            [
                "",
                f'{key}="{random.choice(WORDS)}"'
                if equals and "<" not in key
                else there.group() * 2,
            ]
        )
        text = text[: here.start()] + new + text[here.end() :]
    return text


@given(seed=st.integers(0, 2**32 - 1))
def test_a_damaged_file_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    random = np.random.default_rng(seed)
    urdf = chain(LOOP, gear("link2", "link3", '<ratio value="6"/>'), "<drake:ball_constraint/>")
    rods = ImportOptions(gravity=(0.0, 0.0, -9.81), rods=RodRecognition())
    folder, refused = tmp_path_factory.mktemp("damaged"), []
    for name, text, options in (
        ("a.urdf", urdf, rods),
        ("a.xml", EVERYTHING, ImportOptions(rods=RodRecognition())),
    ):
        for _ in range(2):
            (folder / name).write_text(damaged(text, random))
            try:
                load(folder / name, options=options)
            except DescriptionError as error:
                refused += error.problems
    # gravity is missing where nothing says it: that is about the call and not about a line
    assert all(problem.what and (problem.file or problem.where == "gravity") for problem in refused)


def test_a_check_says_what_was_done_on_the_way(tmp_path: Path) -> None:
    text = re.sub('"block"', '"the-block"', slider_crank(hinges=BALL))
    (tmp_path / "machine.urdf").write_text(text)
    (tmp_path / "robot.yaml").write_text(SIDE)
    options = ImportOptions(rods=RodRecognition())
    checked = check(load(tmp_path / "machine.urdf", tmp_path / "robot.yaml", options=options))
    assert checked.status is Status.OK
    notes = checked.as_dict()["import"]
    assert "link 'the-block' is renamed to 'the_block'" in notes
    assert any(note.startswith("rod is a slender rod; its spin is locked") for note in notes)
    assert not check(load("delta")).as_dict()["import"]


@pytest.mark.parametrize("name", ["five_bar", "delta"])
def test_a_written_urdf_has_its_loops_as_constraints_too(tmp_path: Path, name: str) -> None:
    """Alone it closes as many loops as with the side file, which takes each of them once."""
    side, *_ = write_urdf(load(name), tmp_path / "m.urdf")[0]
    alone, both = load(tmp_path / "m.urdf"), load(tmp_path / "m.urdf", side)
    cuts = [
        {joint.name: joint.kind for joint in machine.joints if joint.is_cut}
        for machine in (alone, both)
    ]
    assert cuts[0] == cuts[1] != {}
    without = re.sub(
        r"<constraint.*?</constraint>", "", (tmp_path / "m.urdf").read_text(), flags=re.DOTALL
    )
    (tmp_path / "m.urdf").write_text(without)
    assert {joint.name for joint in load(tmp_path / "m.urdf", side).joints if joint.is_cut} == {
        *cuts[0]
    }
