"""MJCF import: the same tree, inertia, loops and motors as MuJoCo itself reads from the file; everything wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from extras import extra
from mjcf_texts import EVERYTHING
from scipy.spatial.transform import Rotation
from tree_numbers import OpenTree

from tauloop.common.errors import DescriptionError
from tauloop.equations.assembly.loops import loops
from tauloop.formats import load
from tauloop.formats.options import ImportOptions
from tauloop.formats.xml import nodes as xml_nodes
from tauloop.mechanism.expression import ONE
from tauloop.mechanism.model import BASE, Mechanism

#: Two programs sum the same products of some ten factors of size one.
AGREEMENT = 1e-10
#: MuJoCo writes six digits; some ten such numbers multiply.
SIX_DIGITS = 1e-4
STATES = 4


def read(folder: Path, text: str, **options: object) -> Mechanism:
    path = folder / "machine.xml"
    path.write_text(text)
    return load(path, options=ImportOptions(**options))


def without_mesh(text: str) -> str:
    """MuJoCo wants to see the mesh; the body has an inertia of its own, so nothing changes."""
    return text.replace('<geom type="mesh" mesh="absent"/>', "")


class MuJoCo:
    """A file in MuJoCo, without its soft constraints."""

    def __init__(self, text: str) -> None:
        self.library = extra("mujoco")
        self.model = self.library.MjModel.from_xml_string(without_mesh(text))
        self.model.opt.disableflags |= self.library.mjtDisableBit.mjDSBL_CONSTRAINT
        self.data = self.library.MjData(self.model)

    def joints(self) -> dict[str, tuple[int, int, int]]:
        """Type, and start in qpos and qvel, of every joint by name."""
        names = [self.model.joint(j).name for j in range(self.model.njnt)]
        columns = zip(
            self.model.jnt_type, self.model.jnt_qposadr, self.model.jnt_dofadr, strict=True
        )
        return {
            name: (int(t), int(q), int(v)) for name, (t, q, v) in zip(names, columns, strict=True)
        }


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Mechanism:
    return read(tmp_path_factory.mktemp("mjcf"), EVERYTHING)


def random_state(
    tree: OpenTree, mine: Mechanism, random: np.random.Generator
) -> tuple[np.ndarray, ...]:
    q = random.uniform(-1.5, 1.5, size=tree.shape.n_q)
    for start, _ in tree.shape.quaternions:
        q[start : start + 4] /= np.linalg.norm(q[start : start + 4])
    v, a = random.uniform(-2, 2, size=(2, tree.shape.n_v))
    return q, v, a


def put_in(tree: OpenTree, other: MuJoCo, state: tuple[np.ndarray, ...]) -> dict[str, np.ndarray]:
    """Put a state into MuJoCo, where balls and free bodies turn in their own axes; gives R of each by joint."""
    q, v, a = state
    d, turned = other.data, {}
    for name, (kind, iq, iv) in other.joints().items():
        edge = next(edge for edge in tree.shape.tree if edge.joint.name == name)
        qi, vi = list(edge.q), list(edge.v)
        n_q, n_v = len(qi), len(vi)
        d.qpos[iq : iq + n_q], d.qvel[iv : iv + n_v], d.qacc[iv : iv + n_v] = q[qi], v[vi], a[vi]
        if kind in (0, 1):
            R = Rotation.from_quat(np.roll(q[qi][-4:], -1)).as_matrix()
            for numbers in (d.qvel, d.qacc):
                numbers[iv + n_v - 3 : iv + n_v] = R.T @ numbers[iv + n_v - 3 : iv + n_v]
            turned[name] = R
    return turned


def test_the_tree_is_that_of_mujoco(everything: Mechanism) -> None:
    named = '<joint name="e_joint2" type="slide"/>'  # as it is called here
    tree, other = OpenTree(everything), MuJoCo(EVERYTHING.replace('<joint type="slide"/>\n', named))
    assert [edge.joint.name for edge in tree.shape.tree if edge.joint.kind == "fixed"] == ["f_weld"]
    assert len(tree.shape.tree) == other.model.njnt + 1
    random = np.random.default_rng(3)
    for _ in range(STATES):
        state = random_state(tree, everything, random)
        turned = put_in(tree, other, state)
        other.library.mj_inverse(other.model, other.data)
        mine, poses = tree(*state)
        for body, T in poses.items():
            if body in ("a", "b", "c", "d", "e", "f"):
                result = other.data.body(body)
                assert np.abs(T[:3, 3] - result.xpos).max() < AGREEMENT, body
                assert np.abs(T[:3, :3] - result.xmat.reshape(3, 3)).max() < AGREEMENT, body
        for edge in tree.shape.tree:
            if edge.joint.kind == "fixed":
                continue
            kind, _, iv = other.joints()[edge.joint.name]
            expected = other.data.qfrc_inverse[iv : iv + len(edge.v)].copy()
            if kind in (0, 1):
                expected[-3:] = turned[edge.joint.name] @ expected[-3:]
            assert np.abs(mine[list(edge.v)] - expected).max() < AGREEMENT * (
                1.0 + np.abs(expected).max()
            ), edge.joint


def test_what_mujoco_writes_out_is_the_same_machine(tmp_path: Path, everything: Mechanism) -> None:
    other = MuJoCo(EVERYTHING)
    other.model.opt.disableflags = 0
    other.library.mj_saveLastXML(str(tmp_path / "saved.xml"), other.model)
    single, two = OpenTree(everything), OpenTree(load(tmp_path / "saved.xml"))
    assert single.shape.velocity_names == two.shape.velocity_names
    state = random_state(single, everything, np.random.default_rng(6))
    (mine, _), (theirs, _) = single(*state), two(*state)
    assert np.abs(mine - theirs).max() < SIX_DIGITS * np.abs(mine).max()


def test_masses_and_centres_are_those_of_mujoco(everything: Mechanism) -> None:
    other = MuJoCo(EVERYTHING).model
    assert everything.body("f").inertia is None  # welded to e, which has the inertia of both
    for name in "abcde":
        body, inertia = other.body(name), everything.body(name).inertia
        assert inertia is not None
        mass, moment = float(body.mass[0]), body.mass[0] * body.ipos
        if name == "e":
            welded = other.body("f")
            mass, moment = (
                mass + float(welded.mass[0]),
                moment + welded.mass[0] * (welded.pos + welded.ipos),
            )
        m, *first = (everything.value(x) for x in (inertia.mass, *inertia.first_moment))
        assert m == pytest.approx(mass, rel=AGREEMENT)
        assert np.allclose(first, moment, atol=AGREEMENT)


def test_loops_miss_by_what_they_miss_in_mujoco(everything: Mechanism) -> None:
    other = MuJoCo(EVERYTHING)
    model, data, mujoco = other.model, other.data, other.library
    model.opt.disableflags = 0
    gaps = loops(everything)
    initial = np.array([gaps.topology.reference])
    phi, _ = gaps.residuals(initial)
    residual = dict(zip(gaps.names, phi[0], strict=True))
    mujoco.mj_resetData(model, data)
    mujoco.mj_forward(model, data)
    # where the file gives one end, the initial pose gives the other
    for name in ("loop", "initial"):
        assert (
            max(abs(value) for key, value in residual.items() if key.startswith(f"{name}:"))
            < AGREEMENT
        )
    tip, far = data.site("tip").xpos, data.site("other").xpos
    (cut,) = [cut for cut in gaps.topology.cuts if cut.name == "points"]
    carrier, _ = gaps.topology.loop(cut.parent.body, cut.child.body)
    in_carrier = data.body(carrier).xmat.reshape(3, 3).T @ (far - tip)
    assert np.allclose([residual[f"points: {x}"] for x in "xyz"], in_carrier, atol=AGREEMENT)
    d, e = data.body("d"), data.body("e")
    relpose = Rotation.from_quat([2, 3, 4, 1]).as_matrix()
    R = d.xmat.reshape(3, 3) @ relpose
    target = d.xpos + d.xmat.reshape(3, 3) @ [0.1, 0.2, 0.3]
    assert np.allclose([residual[f"weld: {x}"] for x in "xyz"], e.xpos - target, atol=AGREEMENT)
    cosines = R.T @ e.xmat.reshape(3, 3)
    expected = [cosines[0, 1], cosines[1, 2], cosines[2, 0]]
    assert np.allclose(
        [residual[f"weld: {u} across {w}"] for u, w in ("xy", "yz", "zx")], expected, atol=AGREEMENT
    )
    # couplings by MuJoCo's own residuals, at the initial pose and away from it
    by_name = {model.equality(k).name: k for k in range(model.neq)}
    for step in (0.0, 0.3):
        q = initial.copy()
        for k, name in enumerate(("ja", "jb", "js")):
            column = gaps.topology.coordinate_names.index(name)
            q[0, column] += (k + 1) * step
            data.qpos[model.joint(name).qposadr] = q[0, column]
        mujoco.mj_forward(model, data)
        residual = dict(zip(gaps.names, gaps.residuals(q)[0][0], strict=True))
        rows = {int(data.efc_id[k]): float(data.efc_pos[k]) for k in range(data.ne)}
        for name in ("gear", "belt", "held"):
            assert residual[f"{name}: gear"] == pytest.approx(rows[by_name[name]], abs=AGREEMENT)
    assert [joint.name for joint in everything.joints if joint.is_cut] == [
        "loop",
        "weld",
        "initial",
        "points",
    ]


def test_motors_have_the_gears_that_mujoco_gives_them(everything: Mechanism) -> None:
    model = MuJoCo(EVERYTHING).model
    for actuator in everything.actuators:
        coefficients = (
            {"ja": 2.0, "jb": -1.0}
            if actuator.name == "g"
            else dict.fromkeys("ja js e_joint1".split(), 1.0)
        )
        gear = float(model.actuator(actuator.name).gear[0])
        for name, ratio in actuator.drives:
            assert everything.value(ratio) == gear * coefficients[name]


def test_what_is_carried_over_and_what_is_not(everything: Mechanism) -> None:
    assert everything.name == "every_thing"
    assert [everything.value(x) for x in everything.gravity] == [0.5, 0.0, -9.7]
    (ja,) = everything.joint("ja").freedoms
    assert (ja.lower, ja.upper) == pytest.approx((-np.pi / 2, np.pi / 2))
    assert everything.parameters["ja.inertia"].value == 0.01
    assert everything.parameters["js.spring.rest"].value == 0.2
    assert everything.joint("jb").reference == (pytest.approx(np.radians(20)),)
    drives = {
        a.name: [(name, everything.value(r)) for name, r in a.drives] for a in everything.actuators
    }
    assert drives == {
        "m": [("ja", 3.0)],
        "g": [("ja", 8.0), ("jb", -4.0)],
        "p": [("js", 3.0)],
        "servo": [("e_joint1", 3.0)],
    }
    assert {a.name: (a.force, a.is_rotary) for a in everything.actuators} == {
        "m": (5.0, True),
        "g": (2.0, True),
        "p": (np.inf, False),
        "servo": (np.inf, True),
    }
    assert everything.description.splitlines() == [
        "Imported from machine.xml.",
        "- idle: an inactive equality is omitted",
        "- p: a position actuator is read as an ideal motor without its control law",
        "- servo: a general actuator is read as an ideal motor without its control law",
        "- mass and inertia follow from solid geoms: a, b, d",
        "- geoms that are not drawn: plane (1)",
        "- c: there is no mesh 'absent' (line 34); the shape is not drawn",
        "- not used: light (1)",
        "- attributes not used: biasprm of general (1), gainprm of general (1), kp of position (1), "
        "timestep of option (1)",
        "- omitted: the force of the actuator ball, on 'jd', which is not a hinge or slide",
        "- e includes the inertia of the bodies welded to it: f",
        "- the platform is f; the file does not state it",
    ]


def test_the_platform_may_be_a_body_or_a_site(tmp_path: Path, everything: Mechanism) -> None:
    assert everything.platform.body == "f"
    assert everything.platform.independent == ()
    tool = read(tmp_path, EVERYTHING, platform_body="tip", independent=("ja",)).platform
    assert (tool.body, tool.independent) == ("b", ("ja",))
    assert [everything.value(x) if not hasattr(x, "name") else None for x in tool.tool.position][
        1:
    ] == [0.0, 0.0]
    serial = '<mujoco><worldbody><body><joint/><geom size="0.1"/></body></worldbody></mujoco>'
    mechanism = read(tmp_path, serial)
    assert (mechanism.name, mechanism.bodies[0].name, mechanism.joints[0].name) == (
        "mujoco",
        "body_1",
        "body_1_joint",
    )
    assert mechanism.platform.independent == ("body_1_joint",)
    assert mechanism.joints[0].parent.body == BASE
    assert [mechanism.value(x) for x in mechanism.gravity] == [0.0, 0.0, -9.81]
    assert mechanism.actuators == ()


def test_bodies_without_mass_are_listed(tmp_path: Path) -> None:
    mechanism = read(
        tmp_path,
        world('<body name="a"><joint/><body name="b"><joint/><geom size="0.1"/></body></body>'),
    )
    assert "- bodies without mass: a" in mechanism.description.splitlines()
    assert mechanism.body("a").inertia is None


def test_a_gear_of_one_is_no_parameter(tmp_path: Path) -> None:
    serial = (
        '<mujoco><worldbody><body><joint name="j"/><geom size="0.1"/></body></worldbody>'
        '<actuator><motor joint="j"/></actuator></mujoco>'
    )
    (actuator,) = read(tmp_path, serial).actuators
    assert (actuator.name, actuator.drives) == ("motor_1", (("j", ONE),))


BODY = '<body name="a"><joint name="j"/><geom size="0.1"/></body>'


def world(*inside: str, behind: str = "") -> str:
    """A file with one element a line: the first inside the world is on line 3."""
    return "\n".join(["<mujoco>", "<worldbody>", *inside, "</worldbody>", behind, "</mujoco>"])


#: Files with the places of all their problems: (where, line).
WRONG = {
    "not MJCF": ("<mujoco2/>", None),
    "empty world": (world(), [("worldbody", 1)]),
    "names twice": (world(BODY, BODY), [("a", 4), ("j", 4)]),
    "unknown words": (
        world(
            '<body name="a"><joint name="j" type="hinged"/><geom type="blob" size="0.1"/></body>'
        ),
        [("a", 3), ("j", 3)],
    ),
    "numbers": (
        world(
            '<body name="a" pos="1 2" quat="0 0 0 0"><joint name="j" axis="0 0 0" limited="true" range="2 1"/>',
            '<geom size="x"/></body>',
        ),
        [("a", 3), ("a", 3), ("j", 3), ("j", 3), ("a", 4), ("a", 4)],
    ),
    "two orientations": (
        world('<body name="a" quat="1 0 0 0" euler="1 2 3"><joint/></body>'),
        [("a", 3)],
    ),
    "unknown class": (world('<body name="a" childclass="b"><joint name="j"/></body>'), [("b", 3)]),
    "mesh without inertia": (
        world('<body name="a"><joint/><geom type="mesh" mesh="m"/></body>'),
        [("a", 3)],
    ),
    "no mass, two inertias": (
        world(
            '<body name="a"><joint/><inertial pos="0 0 0" diaginertia="1 1 1" fullinertia="1 1 1 0 0 0"/></body>'
        ),
        [("a", 3), ("a", 3)],
    ),
    "negative mass": (
        world(
            '<body name="a"><joint/><inertial pos="0 0 0" mass="-1" diaginertia="1 1 1"/></body>'
        ),
        [("a", 3)],
    ),
    "only parts that are not shown": (
        world('<replicate count="3"/>'),
        [("replicate", 3)],
    ),
    "a world that moves": (
        world('<frame><joint name="w"/></frame>', "<freejoint/>", '<inertial pos="0 0 0"/>', BODY),
        [("joint", 3), ("freejoint", 4), ("inertial", 5)],
    ),
    "elements in the wrong place": (
        world(
            BODY,
            '<motor joint="j"/>',
            '<connect body1="b" anchor="0 0 0"/>',
            '<compiler angle="radian"/>',
            behind='<joint name="z"/><body name="y"/>',
        ),
        [("motor", 4), ("connect", 5), ("compiler", 6), ("z", 8), ("y", 8)],
    ),
    "two inertias in frames": (
        world(
            '<body name="a"><joint/><frame>'
            + 2 * '<inertial pos="0 0 0" mass="1"/>'
            + "</frame></body>"
        ),
        [("a", 3)],
    ),
    "parts that are not shown": (
        world(BODY, '<replicate count="3"/>', behind='<composite type="cable"/>'),
        [("replicate", 4), ("composite", 6)],
    ),
    "files that are not there": (
        world(BODY, '<include file="robot.xml"/>', behind='<include file="other.xml"/>'),
        [("include", 4), ("include", 6)],
    ),
    "free joint inside": (
        world('<body name="a"><joint/><body name="b"><freejoint/></body></body>'),
        [("b_joint", 3)],
    ),
    "loops to nowhere": (
        world(
            BODY,
            behind='<equality><connect body1="b" anchor="0 0 0"/><weld site1="s" site2="t"/>'
            '<connect body1="a"/></equality>',
        ),
        [("connect_1", 5), ("weld_2", 5), ("weld_2", 5), ("connect_3", 5)],
    ),
    "loop within a body": (
        world(BODY, behind='<equality><weld body1="a" body2="a"/></equality>'),
        [("weld_1", 5)],
    ),
    "relpose": (
        world(BODY, behind='<equality><weld body1="a" relpose="1 2"/></equality>'),
        [("weld_1", 5)],
    ),
    "joint equalities": (
        world(
            BODY,
            behind='<equality><joint joint1="j" joint2="j" polycoef="0 1 1"/><joint joint1="k"/><joint/>'
            '<tendon tendon1="t"/></equality>',
        ),
        [("joint_1", 5), ("joint_2", 5), ("joint_3", 5), ("tendon_4", 5)],
    ),
    "actuators": (
        world(
            BODY,
            behind='<actuator><motor name="m" joint="k"/><motor name="n" joint="j" gear="0"/></actuator>',
        ),
        [("m", 5), ("n", 5)],
    ),
    "compiler": (
        world(BODY, behind='<compiler angle="turn" eulerseq="xyw"/>'),
        [("compiler.angle", 5), ("compiler.eulerseq", 5)],
    ),
    "gravity": (world(BODY, behind='<option gravity="0 0"/>'), [("option", 5), ("gravity", 1)]),
}


@pytest.mark.parametrize("case", WRONG)
def test_everything_wrong_is_told_at_once_with_its_line(tmp_path: Path, case: str) -> None:
    text, expected = WRONG[case]
    with pytest.raises(DescriptionError) as caught:
        read(tmp_path, text)
    problems = [(p.where, p.line) for p in caught.value.problems]
    assert all(p.what and p.file for p in caught.value.problems)
    if expected is not None:
        assert sorted(problems, key=str) == sorted(expected, key=str)


def test_a_crowd_of_bodies_is_refused_where_it_gets_too_large(tmp_path: Path) -> None:
    """2 MB of small bodies are no large file, but no machine either."""
    crowd = "".join(
        f'\n<body name="b{i}"><joint/><geom size="0.1"/></body>'
        for i in range(xml_nodes.MAX_BODIES + 5)
    )
    with pytest.raises(DescriptionError, match="more than 2000 bodies") as caught:
        read(tmp_path, f"<mujoco><worldbody>{crowd}</worldbody></mujoco>")
    assert caught.value.problems[0].line == xml_nodes.MAX_BODIES + 2


def test_entities_and_depth_and_size_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bomb = '<!DOCTYPE m [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]>\n<mujoco model="&b;"/>'
    with pytest.raises(DescriptionError, match="document type"):
        read(tmp_path, bomb)
    with pytest.raises(DescriptionError, match="nested"):
        read(tmp_path, "<mujoco>" + "<body>" * 10_000)
    large = tmp_path / "large.xml"
    with large.open("wb") as stream:  # a file of 50 MB with nothing in it
        stream.truncate(50_000_000)
    with pytest.raises(DescriptionError, match=r"is 50\.0 MB; the limit is 20 MB"):
        load(large)
    monkeypatch.setattr(xml_nodes, "MAX_FILE_BYTES", 100)
    with pytest.raises(DescriptionError, match="MB; the limit is"):
        read(tmp_path, world(BODY))


def test_unknown_elements_are_listed_whether_or_not_they_have_attributes(tmp_path: Path) -> None:
    inside = '<foo/><wibble><inner x="1"/></wibble><joint/><geom size="0.1"/>'
    text = f"<mujoco><worldbody><body>{inside}</body></worldbody></mujoco>"
    assert (
        "- not used: unknown foo (1), unknown wibble (1)"
        in read(tmp_path, text).description.splitlines()
    )


def test_what_stands_in_custom_is_checked(tmp_path: Path) -> None:
    """Figures of ours that MJCF has no place for; those of others are none of ours."""
    text = """<mujoco><worldbody><body name="b"><joint name="j" axis="0 0 1"/>
    <inertial mass="1" pos="0 0 0" diaginertia="1 1 1"/></body></worldbody><custom>
    <numeric name="others" data="1 2 3"/>
    <numeric name="tauloop.joint.j.friction.offset" data="{}"/>
    <text name="tauloop.platform" data="{}"/><text name="tauloop.independent" data="{}"/></custom></mujoco>"""
    file = tmp_path / "m.xml"
    file.write_text(text.format("0.25", "b", "j"))
    machine = load(file)
    friction = machine.joint("j").freedoms[0].friction
    assert friction is not None
    assert friction.offset is not None
    assert machine.value(friction.offset) == 0.25
    assert machine.platform.independent == ("j",)
    file.write_text(text.format("much", "c", "j k"))
    with pytest.raises(DescriptionError) as caught:
        load(file)
    assert {problem.where for problem in caught.value.problems} == {
        "tauloop.joint.j.friction.offset",
        "custom.platform",
        "custom.independent",
    }
