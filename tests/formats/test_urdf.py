"""URDF import: the same motion and inertia as the file says, by another route; side files; everything that is wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from extras import extra
from hypothesis import given, strategies as st
from scipy.spatial.transform import Rotation

from tauloop.common.errors import DescriptionError, InputError
from tauloop.formats import load_urdf
from tauloop.formats.xml import nodes as xml_nodes
from tauloop.mechanism.expression import Constant, Leaf
from tauloop.mechanism.model import BASE, Mechanism, Placement

ROOT = Path(__file__).resolve().parents[2]
DOWN = (0.0, 0.0, -9.81)
#: Products of a few rotations and sums of numbers of order one.
ROUNDING = 1e-13
#: Right angles in the measured arm's file are printed to twelve digits (5e-12 rad off) and are
#: taken as exact here.
PRINTED_RIGHT_ANGLES = 1e-10

UNIT_INERTIA = '<inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/>'


def link(
    name: str,
    *,
    mass: str = "1",
    xyz: str = "0 0 0",
    rpy: str = "0 0 0",
    inertia: str = UNIT_INERTIA,
) -> str:
    origin = f'<origin xyz="{xyz}" rpy="{rpy}"/>'
    return (
        f'<link name="{name}"><inertial>{origin}<mass value="{mass}"/>{inertia}</inertial></link>'
    )


def joint(name: str, parent: str, child: str, *, kind: str = "revolute", inside: str = "") -> str:
    return f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>{inside}</joint>'


def robot(*elements: str, name: str = "arm") -> str:
    """A model with one element a line: the first on line 2."""
    return "\n".join([f'<robot name="{name}">', *elements, "</robot>"])


def load(folder: Path, text: str, side: str | None = None, **options: object) -> Mechanism:
    urdf = folder / "arm.urdf"
    urdf.write_text(text)
    if side is None:
        return load_urdf(urdf, **{"gravity": DOWN, **options})
    (folder / "side.yaml").write_text(f"format: tauloop-urdf-side/1\n{PROVENANCE}\n{side}")
    return load_urdf(urdf, folder / "side.yaml", **options)


PROVENANCE = "provenance: {status: given, source: data sheet}"
GRAVITY = "gravity: [0, 0, -9.81 m/s^2]\n"


def problems_of(
    folder: Path, text: str, side: str | None = None, **options: object
) -> list[tuple[str, str, int | None]]:
    with pytest.raises(DescriptionError) as caught:
        load(folder, text, side, **options)
    return [(p.where, p.what, p.line) for p in caught.value.problems]


# Poses by two routes: the mechanism's placements, and URDF's own definition


def placed(mechanism: Mechanism, placement: Placement) -> np.ndarray:
    T = np.eye(4)
    T[:3, 3] = [mechanism.value(x) for x in placement.position]
    for turn in placement.turns:
        T[:3, :3] = (
            T[:3, :3] @ Rotation.from_euler(turn.axis, mechanism.value(turn.angle)).as_matrix()
        )
    return T


def moved(kind: str, axes: tuple[str, ...], q: float) -> np.ndarray:
    T = np.eye(4)
    if kind == "revolute":
        T[:3, :3] = Rotation.from_euler(axes[0], q).as_matrix()
    elif kind == "prismatic":
        T[:3, 3] = q * np.eye(3)["xyz".index(axes[0])]
    return T


def poses(mechanism: Mechanism, q: dict[str, float]) -> dict[str, np.ndarray]:
    result = {BASE: np.eye(4)}
    for element in mechanism.joints:  # the tests write parents first
        motion = moved(element.kind, element.axes, q.get(element.name, 0.0))
        child = np.linalg.inv(placed(mechanism, element.child))
        result[element.child.body] = (
            result[element.parent.body] @ placed(mechanism, element.parent) @ motion @ child
        )
    return result


def urdf_step(
    xyz: np.ndarray, rpy: np.ndarray, kind: str, axis: np.ndarray, q: float
) -> np.ndarray:
    """Definition of URDF: origin, then turn about or slide along the axis; rpy about the fixed x, y, z."""
    axis = axis / np.linalg.norm(axis)
    T = np.eye(4)
    T[:3, 3] = xyz
    T[:3, :3] = Rotation.from_euler("xyz", rpy).as_matrix()
    motion = np.eye(4)
    if kind in ("revolute", "continuous"):
        motion[:3, :3] = Rotation.from_rotvec(axis * q).as_matrix()
    elif kind == "prismatic":
        motion[:3, 3] = axis * q
    return T @ motion


def words(vector: np.ndarray) -> str:
    return " ".join(repr(float(x)) for x in vector)


SPECIAL_AXES = [*np.eye(3), *-np.eye(3), np.array([0.6, 0.0, -0.8]), np.array([3.0, -4.0, 12.0])]
KINDS = ("revolute", "continuous", "prismatic", "fixed")


@given(
    joints=st.lists(
        st.tuples(st.sampled_from(KINDS), st.integers(0, len(SPECIAL_AXES))), min_size=1, max_size=4
    ),
    seed=st.integers(0, 2**32 - 1),
)
def test_links_are_where_urdf_puts_them_with_and_without_offsets(tmp_path_factory, joints, seed):
    random = np.random.default_rng(seed)
    elements, steps, offsets = ['<link name="root"/>'], [], {}
    expected = {"root": np.eye(4)}
    q = {}
    for k, (kind, special) in enumerate(joints):
        axis = SPECIAL_AXES[special] if special < len(SPECIAL_AXES) else random.normal(size=3)
        xyz, rpy = (
            random.normal(size=3),
            random.uniform(-3, 3, size=3) * random.integers(0, 2, size=3),
        )
        parent = "root" if k == 0 else f"link{random.integers(k)}"
        name, child = f"j{k}", f"link{k}"
        inside = f'<origin xyz="{words(xyz)}" rpy="{words(rpy)}"/><axis xyz="{words(axis)}"/>'
        elements += [joint(name, parent, child, kind=kind, inside=inside), link(child)]
        steps.append((name, parent, child, xyz, rpy, kind, axis))
        q[name] = random.uniform(-3, 3)
        if kind != "fixed":
            offsets[name] = random.uniform(-2, 2)
    for name, parent, child, xyz, rpy, kind, axis in steps:
        expected[child] = expected[parent] @ urdf_step(xyz, rpy, kind, axis, q[name])

    folder = tmp_path_factory.mktemp("urdf")
    side = GRAVITY + "platform: {body: link0}\n"
    plain = poses(load(folder, robot(*elements), side), q)
    unit = {name: "m" if kind == "prismatic" else "rad" for name, *_, kind, _ in steps}
    side += (
        "offsets: {"
        + ", ".join(f"{name}: {value!r} {unit[name]}" for name, value in offsets.items())
        + "}\n"
    )
    measured = {name: value - offsets.get(name, 0.0) for name, value in q.items()}
    shifted = poses(load(folder, robot(*elements), side), measured)
    for _, _, child, *_ in steps:
        assert np.abs(plain[child] - expected[child]).max() < 100 * ROUNDING
        assert np.abs(shifted[child] - expected[child]).max() < 100 * ROUNDING


@given(seed=st.integers(0, 2**32 - 1))
def test_inertia_is_that_of_the_same_points_of_mass(tmp_path_factory, seed):
    # A body of random points: its inertia in turned axes about its mass centre goes into the file,
    # and the sums over the points in link axes must come out.
    random = np.random.default_rng(seed)
    points, masses = random.normal(size=(6, 3)), random.uniform(0.1, 1.0, size=6)
    rpy = random.uniform(-3, 3, size=3)
    center = masses @ points / masses.sum()
    turned = (points - center) @ Rotation.from_euler("xyz", rpy).as_matrix()
    xx, xy, xz, yy, yz, zz = second_moments(turned, masses)
    inertia = (
        f'<inertia ixx="{xx!r}" ixy="{xy!r}" ixz="{xz!r}" iyy="{yy!r}" iyz="{yz!r}" izz="{zz!r}"/>'
    )
    body = link(
        "body", mass=repr(float(masses.sum())), xyz=words(center), rpy=words(rpy), inertia=inertia
    )
    text = robot('<link name="root"/>', joint("j", "root", "body", kind="continuous"), body)
    mechanism = load(tmp_path_factory.mktemp("urdf"), text)
    xx, xy, xz, yy, yz, zz = second_moments(points, masses)
    expected = [masses.sum(), *(masses @ points), xx, xy, yy, xz, yz, zz]
    rows = [mechanism.value(p) for p in mechanism.body("body").inertia.parameters]
    assert np.abs(np.array(rows) - expected).max() < 100 * ROUNDING


def second_moments(points: np.ndarray, masses: np.ndarray) -> list[float]:
    I = np.einsum(
        "k,kij->ij", masses, np.einsum("ka,ka->k", points, points)[:, None, None] * np.eye(3)
    ) - np.einsum("k,ki,kj->ij", masses, points, points)
    return [float(I[i, j]) for i, j in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))]


def test_every_figure_is_a_named_leaf_and_zeros_of_geometry_are_structure(tmp_path):
    origin = '<origin xyz="0 0.2 0" rpy="0 0 1.5"/><axis xyz="0 0 1"/>'
    limits = '<limit lower="-1" upper="2" effort="30" velocity="4"/><dynamics damping="0.5" friction="0"/>'
    mechanism = load(
        tmp_path,
        robot(
            '<link name="root"/>',
            joint("j", "root", "body", inside=origin + limits),
            link("body", xyz="0 0 0.3"),
        ),
    )
    assert mechanism.parameters.values == {
        "body.mass": 1.0,
        **{f"body.center[{k}]": value for k, value in enumerate((0.0, 0.0, 0.3))},
        **{
            f"body.inertia.{moment}": 0.1 * (moment[0] == moment[1])
            for moment in ("xx", "xy", "yy", "xz", "yz", "zz")
        },
        "j.origin.xyz[1]": 0.2,
        "j.origin.rpy[2]": 1.5,
        "j.friction.viscous": 0.5,
        "gravity[2]": -9.81,
    }
    groups = {p.group for p in mechanism.parameters}
    assert groups == {"inertia", "geometry", "friction", "gravity"}
    assert {p.source for p in mechanism.parameters} == {"arm.urdf", "argument `gravity`"}
    assert mechanism.joint("j").parent.position == (
        Constant(0.0),
        Leaf("j.origin.xyz[1]"),
        Constant(0.0),
    )
    (freedom,) = mechanism.joint("j").freedoms
    assert (freedom.lower, freedom.upper, freedom.speed) == (-1.0, 2.0, 4.0)
    (actuator,) = mechanism.actuators
    assert (actuator.name, actuator.drives, actuator.force) == ("j", (("j", Constant(1.0)),), 30.0)
    assert (mechanism.platform.body, mechanism.platform.independent) == ("body", ("j",))


def test_other_joints_and_the_default_axis(tmp_path):
    mechanism = load(
        tmp_path,
        robot(
            '<link name="root"/>',
            joint(
                "slide",
                "root",
                "a",
                kind="prismatic",
                inside='<limit lower="0.2" upper="0.6" effort="0"/>',
            ),
            '<link name="a"/>',
            joint("plane", "a", "b", kind="planar", inside='<axis xyz="0 -1 0"/>'),
            link("b"),
            joint("fly", "b", "c", kind="floating"),
            link("c"),
        ),
    )
    slide, plane, fly = mechanism.joints
    assert (slide.axes, slide.reference) == (("x",), (pytest.approx(0.4),))
    assert (plane.kind, plane.reference) == ("planar", (0.0, 0.0, 0.0))
    assert (fly.kind, fly.reference) == ("free", (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0))
    assert mechanism.body("a").inertia is None
    assert mechanism.actuators[0].force == np.inf
    assert mechanism.platform.independent[:4] == ("slide", "plane.x", "plane.y", "plane.angle")
    assert len(mechanism.platform.independent) == 10


@pytest.mark.parametrize("axis", SPECIAL_AXES, ids=words)
def test_a_planar_joint_moves_across_its_axis(tmp_path, axis):
    plane = joint("j", "root", "a", kind="planar", inside=f'<axis xyz="{words(axis)}"/>')
    mechanism = load(tmp_path, robot('<link name="root"/>', plane, link("a")))
    parent, child = (
        placed(mechanism, end) for end in (mechanism.joints[0].parent, mechanism.joints[0].child)
    )
    assert np.abs(parent[:3, 2] - axis / np.linalg.norm(axis)).max() < ROUNDING
    assert np.abs(parent - child).max() < ROUNDING


def test_what_was_found_on_the_way_is_in_the_description(tmp_path):
    zero = '<inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/>'
    impossible = '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="3"/>'
    mechanism = load(
        tmp_path,
        robot(
            link("base"),
            '<material name="grey"/>',
            joint("a", "base", "a", inside='<axis xyz="0 0 2"/><limit lower="0" upper="0"/>'),
            link("a", mass="0", inertia=zero).replace("</link>", "<visual/><visual/></link>"),
            joint("to-b", "a", "b", inside='<origin rpy="1.57079632679 0 0"/>'),
            link("b", inertia=impossible),
            '<transmission name="t"/>',
        ),
    )
    notes = mechanism.description.splitlines()
    assert notes == [
        "Imported from arm.urdf.",
        "- the root link 'base' is the immovable base; its inertia has no effect",
        "- joint 'a' is renamed to 'a_joint'",
        "- joint 'to-b' is renamed to 'to_b'",
        "- a: the mass is zero",
        "- a: the inertia about the mass center is zero",
        "- b: no rigid body has the principal moments of inertia 1, 1, 3 kg m^2",
        "- a_joint: the axis has length 2 and is normalized",
        "- a_joint: lower and upper limit are equal, which is read as no limits",
        "- angles with few digits are read as exact right angles: to_b",
        "- a: <visual> has none of the shapes box, cylinder, capsule, sphere, mesh (line 5); the shape is not drawn",
        "- not used: transmission (1)",
        "- the file states no motors, so every joint that rotates or slides has one, a_joint, to_b",
    ]
    assert mechanism.parameters["to_b.origin.rpy[0]"].value == np.pi / 2
    assert [body.name for body in mechanism.bodies] == ["a", "b"]


# Side files

TWO_JOINTS = robot(
    '<link name="root"/>',
    joint(
        "turn",
        "root",
        "a",
        inside='<limit lower="-1" upper="2" effort="9"/><dynamics damping="0.5" friction="0.25"/>',
    ),
    link("a"),
    joint("slide", "a", "b", kind="prismatic", inside='<axis xyz="0 0 1"/>'),
    link("b"),
)


def test_a_side_file_says_what_urdf_cannot(tmp_path):
    side = """
gravity: [0, 0, {value: -9.81 m/s^2, status: chosen, source: textbook}]
platform:
  body: a
  tool: {at: [0, 0, 10 mm], turn: [{z: 90 deg}, {x: 0}]}
  independent: [turn]
offsets: {turn: -90 deg}
joints:
  provenance: {status: chosen, source: unknown}
  turn: {friction: {viscous: 0 N m s/rad, offset: 0 N m}, inertia: 0 kg m^2}
  slide: {inertia: {value: 2 kg, bounds: [1 kg, 5 kg]}}
actuators:
  one: {on: slide, ratio: 200 rad/m, inertia: 1e-4 kg m^2, friction: {coulomb: 0.1 N m}, force: 3 N m, speed: 3000 rpm}
  two: {drives: {turn: -48, slide: 2 rad/mm}}
"""
    mechanism = load(tmp_path, TWO_JOINTS, side)
    table = mechanism.parameters
    leaf = table["gravity[2]"]
    assert (leaf.value, leaf.status, leaf.source, leaf.group) == (
        -9.81,
        "chosen",
        "textbook",
        "gravity",
    )
    assert mechanism.gravity == (Constant(0.0), Constant(0.0), Leaf("gravity[2]"))
    assert mechanism.platform.body == "a"
    assert mechanism.platform.independent == ("turn",)
    assert [mechanism.value(x) for x in mechanism.platform.tool.position] == [0.0, 0.0, 0.01]
    assert [(t.axis, mechanism.value(t.angle)) for t in mechanism.platform.tool.turns] == [
        ("z", np.pi / 2)
    ]
    turn, slide = (j.freedoms[0] for j in mechanism.joints)
    assert (turn.lower, turn.upper) == (-1.0 + np.pi / 2, 2.0 + np.pi / 2)
    assert mechanism.joint("turn").reference == (np.pi / 2,)
    # zeros that are to be identified are leaves; what the side file does not say stays as URDF says
    assert turn.friction.viscous == Leaf("turn.friction.viscous")
    assert table["turn.friction.viscous"].value == 0.0
    assert table["turn.friction.coulomb"].value == 0.25
    assert (table["turn.friction.coulomb"].source, table["turn.inertia"].source) == (
        "arm.urdf",
        "unknown",
    )
    assert turn.friction.offset == Leaf("turn.friction.offset")
    assert turn.inertia == Leaf("turn.inertia")
    assert (slide.friction, slide.inertia) == (None, Leaf("slide.inertia"))
    assert (
        table["slide.inertia"].lower,
        table["slide.inertia"].upper,
        table["slide.inertia"].group,
    ) == (
        1.0,
        5.0,
        "drive",
    )
    single, two = mechanism.actuators
    assert single.drives == (("slide", Leaf("one.ratio")),)
    assert (mechanism.value(single.inertia), mechanism.value(single.friction.coulomb)) == (
        1e-4,
        0.1,
    )
    assert (single.force, single.speed) == (3.0, pytest.approx(100 * np.pi))
    assert [(name, mechanism.value(ratio)) for name, ratio in two.drives] == [
        ("turn", -48.0),
        ("slide", 2000.0),
    ]
    assert table["two.drives.slide"].unit == "rad/mm"
    assert table["one.ratio"].source == "data sheet"


def test_everything_wrong_in_a_side_file_is_said_at_once(tmp_path):
    side = """
gravity: [0, 0, 9.81 m/s]
platform: {body: c, independent: [turn, turn, sliding]}
offsets: {slide: 90 deg, turn: 3}
joints:
  turn: {friction: {viscus: 0, coulomb: -1 N m}, inertia: [1]}
  rotate: {inertia: 0}
actuators:
  slide: {on: turn, ratio: 0}
  m1: {on: turn}
  m2: {on: turn, drives: {slide: 1}}
  m3: {drives: {turn: 1, slide: 2}, ratio: 3}
  m4: {on: slide, inertia: {status: guessed, value: 3 kg, bounds: [5 kg, 4 kg]}, speed: fast}
spring: {}
"""
    result = problems_of(tmp_path, TWO_JOINTS, side)
    assert sorted((line, where, what) for where, what, line in result) == [
        (4, "gravity[2]", "'9.81 m/s' is a speed (m/s) where an acceleration (m/s^2) is needed"),
        (5, "platform.body", "there is no moving link 'c'"),
        (5, "platform.independent[1]", "'turn' is listed twice"),
        (5, "platform.independent[2]", "there is no coordinate 'sliding'"),
        (6, "offsets.slide", "'90 deg' is an angle (rad) where a length (m) is needed"),
        (6, "offsets.turn", "'3' has no unit where an angle (rad) is needed"),
        (8, "joints.turn.friction.coulomb", "must be not negative, got -1 N m"),
        (8, "joints.turn.friction.viscus", "unknown key in a friction"),
        (8, "joints.turn.inertia", "this is a list"),
        (9, "joints.rotate", "unknown key in a joint"),
        (
            11,
            "actuators.slide",
            "'slide' is the name of a link, or of a joint that it does not drive",
        ),
        (11, "actuators.slide.ratio", "must not be zero, got 0"),
        (13, "actuators.m2", "turn is already driven by m1"),
        (13, "actuators.m2.drives", "the actuator has both `on` and `drives`"),
        (
            14,
            "actuators.m3.drives",
            "the terms of the actuator have different units: rotary for one coordinate, linear for another",
        ),
        (
            14,
            "actuators.m3.ratio",
            "`drives` gives a ratio for each coordinate, so `ratio` has no meaning",
        ),
        (15, "actuators.m4.inertia.bounds", "the lower end 5 kg is not below the upper end 4 kg"),
        (15, "actuators.m4.inertia.status", "'guessed' is not a valid value"),
        (15, "actuators.m4.speed", "unknown name fast"),
        (16, "spring", "unknown key in a side file"),
    ]


def test_a_side_file_names_its_format(tmp_path):
    (tmp_path / "arm.urdf").write_text(TWO_JOINTS)
    side = tmp_path / "side.yaml"
    for text, expected in (
        ("format: tauloop-machine/1\ngravity: [0, 0, 0]\n", {"format"}),
        ("gravity: [0, 0, 0]\n", {"format"}),
        ("- 1\n", {""}),
    ):
        side.write_text(text)
        with pytest.raises(DescriptionError) as caught:
            load_urdf(tmp_path / "arm.urdf", side)
        assert {p.where for p in caught.value.problems} == expected


@pytest.mark.parametrize(
    ("side", "gravity", "what"),
    [
        (None, (0.0, 9.81), "are not three finite numbers"),
        (GRAVITY, DOWN, "in the side file"),
    ],
)
def test_gravity_is_said_once_at_most(tmp_path, side, gravity, what):
    ((where, result, _),) = problems_of(tmp_path, TWO_JOINTS, side, gravity=gravity)
    assert where == "gravity"
    assert what in result
    with pytest.raises(InputError, match="gravity: is not a number"):
        load(tmp_path, TWO_JOINTS, gravity=(0.0, 0.0, np.nan))


def test_a_branching_tree_needs_its_platform_named(tmp_path):
    text = robot(
        '<link name="root"/>',
        joint("a", "root", "b"),
        link("b"),
        joint("c", "root", "d"),
        link("d"),
    )
    ((where, what, _),) = problems_of(tmp_path, text)
    assert (where, what) == (
        "platform",
        "the tree has 2 leaf links (b, d), so the platform is ambiguous",
    )
    assert load(tmp_path, text, GRAVITY + "platform: {body: d}").platform.body == "d"


# Damaged files


@pytest.mark.parametrize(
    ("elements", "expected"),
    [
        (["<link/>", '<link name="a"/>', '<link name="a"/>'], [("link", 2), ("a", 4)]),
        ([link("a").replace('value="1"', "")], [("a", 2)]),
        ([link("a", mass="-1")], [("a", 2)]),
        (
            [link("a", mass="heavy", xyz="0 0", inertia=UNIT_INERTIA.replace('iyz="0"', ""))],
            [("a", 2)] * 3,
        ),
        (['<link name="a"><inertial/></link>'], [("a", 2)] * 2),
        (['<link name="a"/>', joint("j", "a", "b"), '<link name="bb"/>'], [("j", 3)]),
        (
            [
                '<link name="a"/>',
                '<joint name="j" type="revolut"><child link="b"/></joint>',
                '<link name="b"/>',
            ],
            [("j", 3)] * 2,
        ),
        (['<link name="a"/>', joint("j", "a", "a")], [("j", 3)]),
        (
            [
                '<link name="a"/>',
                joint("j", "b", "c"),
                joint("k", "c", "b"),
                '<link name="b"/>',
                '<link name="c"/>',
            ],
            [("k", 4)],
        ),
        (
            ['<link name="a"/>', '<link name="b"/>', joint("j", "a", "b"), joint("k", "a", "b")],
            [("k", 5)],
        ),
        (['<link name="a"/>', '<link name="b"/>'], [("b", 3)]),
        (
            [
                joint("j", "a", "b", inside='<axis xyz="0 0 0"/>'),
                '<link name="a"/>',
                '<link name="b"/>',
            ],
            [("j", 2)],
        ),
        (
            [
                joint(
                    "j",
                    "a",
                    "b",
                    inside='<limit lower="1" upper="-1" effort="-2"/>\n<mimic joint="k"/>',
                ),
                '<link name="a"/>',
                '<link name="b"/>',
            ],
            [("j", 2), ("j", 2), ("j", 3)],
        ),
        ([], [("robot", 1)]),
    ],
)
def test_what_is_wrong_in_a_urdf_is_named_by_line(tmp_path, elements, expected):
    assert [(where, line) for where, _, line in problems_of(tmp_path, robot(*elements))] == expected


def test_unknown_names_get_a_suggestion(tmp_path):
    text = robot(
        '<link name="upper_arm"/>',
        joint("j", "uper_arm", "hand", kind="revolut"),
        '<link name="hand"/>',
    )
    with pytest.raises(DescriptionError) as caught:
        load(tmp_path, text)
    assert {p.remedy for p in caught.value.problems} == {
        "did you mean upper_arm?",
        "did you mean revolute?",
    }


@pytest.mark.parametrize(
    ("text", "what", "line"),
    [
        ("", "the file is empty", None),
        ("<robot>\n<link>\n</robot>", "mismatched tag", 3),
        ("<sdf/>", "the root element is <sdf>, not <robot>", 1),
        (
            '\n<!DOCTYPE robot SYSTEM "file:///etc/passwd">\n<robot/>',
            "declarations are rejected",
            2,
        ),
        (
            '<!DOCTYPE r [<!ENTITY a "x"><!ENTITY b "&a;&a;">]>\n<robot name="&b;"/>',
            "declarations are rejected",
            1,
        ),
        ("<robot>" + "<a>" * 300 + "</a>" * 300 + "</robot>", "nested more than", 1),
    ],
)
def test_files_that_are_no_urdf(tmp_path, text, what, line):
    ((_, result, found_line),) = problems_of(tmp_path, text)
    assert what in result
    assert found_line == line


def test_missing_and_huge_files(tmp_path, monkeypatch):
    with pytest.raises(DescriptionError, match="no such file"):
        load_urdf(tmp_path / "none.urdf", gravity=DOWN)
    large = tmp_path / "large.urdf"
    with large.open("wb") as stream:  # a file of 50 MB with nothing in it
        stream.truncate(50_000_000)
    with pytest.raises(DescriptionError, match=r"is 50\.0 MB; the limit is 20 MB"):
        load_urdf(large, gravity=DOWN)
    (tmp_path / "small.urdf").write_text(TWO_JOINTS, encoding="utf-8")
    with pytest.raises(DescriptionError, match="larger than 2 MB"):
        load_urdf(tmp_path / "small.urdf", large)
    monkeypatch.setattr(xml_nodes, "MAX_FILE_BYTES", 100)
    ((_, what, _),) = problems_of(tmp_path, TWO_JOINTS)
    assert "MB; the limit is" in what
    monkeypatch.setattr(xml_nodes, "MAX_FILE_BYTES", 10**6)
    monkeypatch.setattr(xml_nodes, "MAX_BODIES", 2)
    ((_, what, _),) = problems_of(tmp_path, TWO_JOINTS)
    assert what == "there are more than 2 bodies"


def test_a_chain_of_many_links_is_read(tmp_path):
    # anything quadratic in the number of links would take minutes
    count = 1_900
    elements = [joint(f"j{k}", f"l{k}", f"l{k + 1}", kind="fixed") for k in range(count)]
    elements += [f'<link name="l{k}"/>' for k in range(count)] + [
        f'<link name="l{count}"/>' for _ in range(2)
    ]
    result = problems_of(tmp_path, robot(*elements))
    assert [where for where, _, _ in result] == [f"l{count}"]


# The measured arm

ARM_RATIOS = np.diag([32.0, 32.0, 45.0, -48.0, 45.0, 32.0])
ARM_RATIOS[5, 4] = 32.0


def arm_stand_in() -> str:
    """A URDF with the names of the measured arm, so that its side file is read where the data are absent."""
    names = ["base_link", *(f"link_{k}" for k in range(1, 7))]
    elements = [link(name) for name in names]
    elements += [joint(f"joint_{k}", names[k - 1], names[k]) for k in range(1, 7)]
    return robot(
        *elements, '<link name="tool0"/>', joint("joint_6-tool0", "link_6", "tool0", kind="fixed")
    )


def check_arm(mechanism: Mechanism) -> None:
    ratios = np.zeros((6, 6))
    for row, actuator in enumerate(mechanism.actuators):
        for name, ratio in actuator.drives:
            ratios[row, int(name[-1]) - 1] = mechanism.value(ratio)
    assert (ratios == ARM_RATIOS).all()
    joints = mechanism.joints[:6]
    inertial = 10 * sum(body.inertia is not None for body in mechanism.bodies)
    friction = sum(
        term is not None
        for element in (*(j.freedoms[0] for j in joints), *mechanism.actuators)
        for term in (
            element.inertia,
            *(
                (element.friction.viscous, element.friction.coulomb, element.friction.offset)
                if element.friction
                else ()
            ),
        )
    )
    assert (inertial, friction) == (60, 27)  # the 87 columns of the data's description
    zeros = {
        p.name for p in mechanism.parameters if p.value == 0.0 and p.group in ("friction", "drive")
    }
    assert len(zeros) == 27
    assert mechanism.platform.body == "tool0"


def test_the_side_file_of_the_measured_arm_fits_its_names(tmp_path):
    (tmp_path / "arm.urdf").write_text(arm_stand_in())
    check_arm(load_urdf(tmp_path / "arm.urdf", ROOT / "examples" / "tx40" / "side.yaml"))


@pytest.fixture(scope="module")
def arm_files(shared):
    return shared / "data" / "tx40" / "tx40_nomesh.urdf", ROOT / "examples" / "tx40" / "side.yaml"


def test_the_measured_arm(arm_files):
    mechanism = load_urdf(*arm_files)
    check_arm(mechanism)
    assert "link_6: the inertia about the mass center is zero" in mechanism.description
    # its log starts with all of URDF's angles at zero: motors at (0, 50.265, -70.685, 0, 0, 0) rad
    start = np.linalg.solve(ARM_RATIOS, [0.0, 50.265, -70.685, 0.0, 0.0, 0.0])
    zero_pose = poses(load_urdf(arm_files[0], gravity=DOWN), {})["tool0"]
    measured = poses(mechanism, {f"joint_{k + 1}": value for k, value in enumerate(start)})["tool0"]
    # the log prints five digits: 50.265 / 32 is 5e-5 rad off
    assert np.abs(measured - zero_pose).max() < 1e-4


def test_the_measured_arm_is_the_one_that_pinocchio_reads(arm_files):
    pinocchio = extra("pinocchio")
    mechanism = load_urdf(*arm_files)
    model = pinocchio.buildModelFromUrdf(str(arm_files[0]))
    data = model.createData()
    for k in range(1, 7):
        rows = [mechanism.value(p) for p in mechanism.body(f"link_{k}").inertia.parameters]
        assert np.abs(model.inertias[k].toDynamicParameters() - rows).max() < PRINTED_RIGHT_ANGLES
    random = np.random.default_rng(0)
    for _ in range(5):
        q = random.uniform(-3, 3, size=6)
        pinocchio.forwardKinematics(model, data, q)
        measured = q - [0.0, -np.pi / 2, np.pi / 2, 0.0, 0.0, 0.0]
        rows = poses(mechanism, {f"joint_{k + 1}": value for k, value in enumerate(measured)})
        for k in range(1, 7):
            assert np.abs(data.oMi[k].homogeneous - rows[f"link_{k}"]).max() < PRINTED_RIGHT_ANGLES


def test_springs_couplings_and_floating_joints_that_are_wrong_are_all_named(tmp_path):
    text = robot(
        '<link name="root"/>',
        joint("fly", "root", "p", kind="floating"),
        link("p"),
        joint("turn", "p", "a"),
        link("a"),
        joint("slide", "a", "b", kind="prismatic", inside='<axis xyz="0 0 1"/>'),
        link("b"),
    )
    side = """
gravity: [0, 0, 0]
joints:
  turn: {spring: {rest: 1 rad}, limits: [2 rad, 1 rad]}
  slide: {spring: {stiffness: -3 N/m}, limits: [1 m]}
floating:
  fly: {at: [0, 0, 1 kg], freedoms: {x: {limits: [-inf, inf, 0]}, wx: {friction: {viscous: 1 N m}}}}
  turn: {}
couplings:
  alone: {of: {}}
  mixed: {of: {turn: 1, slide: 2}}
"""
    assert sorted(
        (line, where, what) for where, what, line in problems_of(tmp_path, text, side)
    ) == [
        (
            6,
            "joints.turn.limits",
            "the lower end 114.592 deg is not below the upper end 57.2958 deg",
        ),
        (6, "joints.turn.spring.stiffness", "this key of a spring is missing"),
        (7, "joints.slide.limits", "the list has 1 item, not 2"),
        (7, "joints.slide.spring.stiffness", "must be not negative, got -3 N/m"),
        (9, "floating.fly.at[2]", "'1 kg' is a mass (kg) where a length (m) is needed"),
        (
            9,
            "floating.fly.freedoms.wx.friction.viscous",
            "'1 N m' is a torque (N m) where a viscous coefficient (N m s/rad) is needed",
        ),
        (9, "floating.fly.freedoms.x.limits", "the list has 3 items, not 2"),
        (10, "floating.turn", "unknown key in a floating joint"),
        (12, "couplings.alone.of", "the mapping is empty"),
        (
            13,
            "couplings.mixed.of",
            "the terms of the gear have different units: rotary for one coordinate, linear for another",
        ),
    ]


def test_names_keep_their_dots_and_stay_apart(tmp_path):
    """Of other characters nothing is kept; leaf parameters of ``a`` and of ``a.center`` do not mix."""
    text = robot(
        '<link name="root"/>',
        joint("leg1.turn", "root", "a"),
        link("a"),
        joint("leg-2.turn.", "a", "a.center"),
        link("a.center"),
    )
    machine = load(tmp_path, text, gravity=(0.0, 0.0, 0.0))
    assert [item.name for item in machine.joints] == ["leg1.turn", "leg_2.turn_"]
    assert [body.name for body in machine.bodies] == ["a", "a.center"]
    assert len(set(machine.parameters.names)) == len(machine.parameters)
    assert "joint 'leg-2.turn.' is renamed to 'leg_2.turn_'" in machine.description
