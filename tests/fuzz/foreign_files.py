"""Random URDF, SDF and MJCF files with every element of the table of foreign elements, and what must come of them.

One plain machine (a tree, in part of the cases with a loop and a gear) is written in each of the
three formats by the few lines below, not by Tauloop's writers. Elements that are read are part of
some of these files. Harmless and refused elements are put into them: `SNIPPETS` has a text for
each, by format, parent and tag as in the table.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np
from extras import extra
from tree_numbers import OpenTree

from fuzz.targets import FaultFound
from tauloop.common.errors import TauloopError
from tauloop.equations.topology import topology
from tauloop.formats import load
from tauloop.formats.options import ImportOptions
from tauloop.formats.xml.foreign_elements import (
    ANY_PARENT,
    ELEMENT_ROWS,
    ElementRow,
    Treatment,
    row_of,
)
from tauloop.mechanism.model import Mechanism

#: Namespaces of the prefixes in the files.
NAMESPACES = {"drake": "http://drake.mit.edu", "tauloop": "https://tauloop.invalid/sdf"}
#: Extensions of files by format.
ENDINGS = {"urdf": ".urdf", "sdf": ".sdf", "mjcf": ".xml"}
#: Forces of two readings of one machine, or of Tauloop and an engine, of the largest: some twenty
#: factors each.
AGREEMENT = 1e-10
#: States at which forces are compared.
STATES = 4
#: A place of the table: format, parent, tag.
Place = tuple[str, str, str]


def parsed(text: str) -> Element:
    """Return an element whose tags keep their prefixes."""
    names = " ".join(f'xmlns:{prefix}="{uri}"' for prefix, uri in NAMESPACES.items())
    element = ElementTree.fromstring(f"<top {names}>{text}</top>")[0]
    for node in element.iter():
        for prefix, uri in NAMESPACES.items():
            node.tag = node.tag.replace(f"{{{uri}}}", f"{prefix}:")
    return element


def text_of(root: Element) -> str:
    """Return the text of a file."""
    copy = ElementTree.fromstring(ElementTree.tostring(root)) if not _has_prefixes(root) else root
    if copy is root:
        for prefix, uri in NAMESPACES.items():
            root.set(f"xmlns:{prefix}", uri)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def _has_prefixes(root: Element) -> bool:
    return any(":" in node.tag for node in root.iter())


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainJoint:
    """A joint and the link that it carries: origin on the parent, axis, losses, and the link's inertia."""

    name: str
    kind: str
    parent: str
    child: str
    xyz: np.ndarray
    rpy: np.ndarray
    axis: np.ndarray
    damping: float
    friction: float
    mass: float
    center: np.ndarray
    moments: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainMachine:
    """A tree of joints; in part of the cases one loop, at points that coincide in the pose of the file, and a gear.

    Attributes:
        joints: parents before children.
        loop: two links, and the point on each.
        gear: follower, leader and ratio.
        choice: random number that decides between elements of one meaning.
    """

    joints: tuple[PlainJoint, ...]
    loop: tuple[tuple[str, np.ndarray], tuple[str, np.ndarray]] | None
    gear: tuple[str, str, float] | None
    choice: int

    @property
    def movable(self) -> tuple[str, ...]:
        """Names of the joints that turn or slide."""
        return tuple(joint.name for joint in self.joints if joint.kind != "fixed")

    @property
    def is_in_world(self) -> bool:
        """Whether the model of an SDF is in a world; alone it has SDF's own gravity."""
        return bool(self.choice % 4)

    @property
    def has_wrist_gear(self) -> bool:
        """Whether the second axis of the wrist of an SDF follows the first."""
        return bool(self.choice % 5 == 0)


def plain_machine(rng: np.random.Generator) -> PlainMachine:
    """Return a random plain machine."""
    joints: list[PlainJoint] = []
    count = int(rng.integers(3, 7))
    for k in range(count):
        kind = (
            "revolute" if k < 2 else str(rng.choice(["revolute", "revolute", "prismatic", "fixed"]))
        )
        axis = np.eye(3)[rng.integers(3)] if rng.random() < 0.5 else rng.normal(size=3)
        points = 0.2 * rng.normal(size=(6, 3))
        moments = sum(p @ p * np.eye(3) - np.outer(p, p) for p in points)
        # branches from the base and from links, and never from what is welded to the base
        names = ["base", *(joint.child for joint in joints)]
        parent = names[-1] if rng.random() < 0.6 else str(rng.choice(names))
        joints.append(
            PlainJoint(
                name=f"j{k}",
                kind=kind,
                parent=parent,
                child=f"link{k}",
                xyz=0.4 * rng.normal(size=3),
                rpy=rng.uniform(-1.0, 1.0, size=3),
                axis=axis / np.linalg.norm(axis),
                damping=float(rng.uniform(0.1, 1.0)),
                friction=float(rng.uniform(0.1, 1.0)),
                mass=float(rng.uniform(0.5, 2.0)),
                center=0.2 * rng.normal(size=3),
                moments=np.asarray(moments),
            )
        )
    choice = int(rng.integers(1_000_000))
    has_loop, has_gear = rng.random() < 0.5, rng.random() < 0.5
    loop = None
    if has_loop:
        poses = file_poses(joints)
        first, second = joints[0].child, joints[-1].child
        at = 0.2 * rng.normal(size=3)
        there = poses[first] @ np.array([*at, 1.0])
        loop = ((first, at), (second, (np.linalg.inv(poses[second]) @ there)[:3]))
        if first == second or sum(joint.kind != "fixed" for joint in joints) < 4:
            loop = None
    turning = [joint for joint in joints if joint.kind == "revolute"]
    gear = (turning[1].name, turning[0].name, float(rng.uniform(-2.0, 2.0))) if has_gear else None
    return PlainMachine(joints=tuple(joints), loop=loop, gear=gear, choice=choice)


def rotation(rpy: np.ndarray) -> np.ndarray:
    """Return Rz(yaw) Ry(pitch) Rx(roll)."""
    (cr, cp, cy), (sr, sp, sy) = np.cos(rpy), np.sin(rpy)
    about_x = np.array([[1, 0, 0], [0, cr, -sr], [0, sr, cr]])
    about_y = np.array([[cp, 0, sp], [0, 1, 0], [-sp, 0, cp]])
    about_z = np.array([[cy, -sy, 0], [sy, cy, 0], [0, 0, 1]])
    return np.asarray(about_z @ about_y @ about_x)


def file_poses(joints: list[PlainJoint]) -> dict[str, np.ndarray]:
    """Return the poses (4, 4) of all links where all joints are at zero."""
    poses = {"base": np.eye(4)}
    for joint in joints:
        across = np.eye(4)
        across[:3, :3], across[:3, 3] = rotation(joint.rpy), joint.xyz
        poses[joint.child] = poses[joint.parent] @ across
    return poses


def words(values: np.ndarray) -> str:
    """Return numbers with spaces between."""
    return " ".join(repr(float(value)) for value in values)


# Writers of the plain machine


def urdf(machine: PlainMachine) -> Element:
    """Return the machine as a URDF."""
    robot = Element("robot", name="plain")
    robot.append(parsed('<material name="red"><color rgba="1 0 0 1"/></material>'))
    robot.append(parsed('<link name="base"/>'))
    for joint in machine.joints:
        (xx, xy, xz), (_, yy, yz), (_, _, zz) = joint.moments
        robot.append(
            parsed(
                f'<link name="{joint.child}"><inertial><origin xyz="{words(joint.center)}" rpy="0 0 0"/>'
                f'<mass value="{joint.mass!r}"/><inertia ixx="{xx!r}" ixy="{xy!r}" ixz="{xz!r}" iyy="{yy!r}" '
                f'iyz="{yz!r}" izz="{zz!r}"/></inertial><visual><geometry><sphere radius="0.1"/></geometry></visual>'
                "</link>".replace("np.float64(", "").replace(")", "")
            )
        )
        kind = "continuous" if joint.kind == "revolute" else joint.kind
        limit = (
            '<limit lower="-1" upper="1" effort="50" velocity="3"/>'
            if joint.kind == "prismatic"
            else ""
        )
        moves = (
            ""
            if joint.kind == "fixed"
            else f'<axis xyz="{words(joint.axis)}"/>{limit}{_urdf_losses(joint)}'
        )
        robot.append(
            parsed(
                f'<joint name="{joint.name}" type="{kind}"><parent link="{joint.parent}"/><child link="{joint.child}"/>'
                f'<origin xyz="{words(joint.xyz)}" rpy="{words(joint.rpy)}"/>{moves}</joint>'
            )
        )
    robot.extend(_urdf_loop(machine))
    robot.extend(_urdf_gear(machine, robot))
    robot.append(_urdf_motors(machine))
    return robot


def _urdf_losses(joint: PlainJoint) -> str:
    return f'<dynamics damping="{joint.damping!r}" friction="{joint.friction!r}"/>'


def _urdf_loop(machine: PlainMachine) -> list[Element]:
    if machine.loop is None:
        return []
    (first, at), (second, there) = machine.loop
    kind = machine.choice % 4
    if kind == 0:
        ends = ((("predecessor", first, at)), ("successor", second, there))
        inner = "".join(
            f'<{tag} link="{link}"><origin xyz="{words(p)}"/></{tag}>' for tag, link, p in ends
        )
        return [parsed(f'<loop name="closing" type="spherical">{inner}<axis xyz="0 0 1"/></loop>')]
    if kind == 1:
        return [
            parsed(
                f'<constraint name="closing" type="spherical"><parent link="{first}"/><child link="{second}"/>'
                f'<parent_origin xyz="{words(at)}"/><child_origin xyz="{words(there)}"/>'
                '<parent_axis xyz="0 0 1"/><child_axis xyz="0 0 1"/></constraint>'
            )
        ]
    if kind == 2:
        ends = "".join(
            f'<link{k} link="{link}" xyz="{words(p)}" rpy="0 0 0"/>'
            for k, link, p in ((1, first, at), (2, second, there))
        )
        return [parsed(f'<loop_joint name="closing" type="spherical">{ends}</loop_joint>')]
    return [_drake_ball(machine, '<{tag} {key}="{value}"/>')]


def _drake_ball(machine: PlainMachine, form: str) -> Element:
    """Return Drake's element for a ball joint, whose values are attributes in URDF and texts in SDF."""
    assert machine.loop is not None
    ball = "drake:ball_constraint"
    inner = ""
    for (link, point), body, place in zip(machine.loop, ("A", "B"), ("p_AP", "p_BQ"), strict=True):
        inner += form.format(tag=f"{ball}_body_{body}", key="name", value=link)
        inner += form.format(tag=f"{ball}_{place}", key="value", value=words(point))
    return parsed(f"<{ball}>{inner}</{ball}>")


def _urdf_gear(machine: PlainMachine, robot: Element) -> list[Element]:
    if machine.gear is None:
        return []
    follower, leader, ratio = machine.gear
    links = {joint.name: joint.child for joint in machine.joints}
    parents = {joint.name: joint.parent for joint in machine.joints}
    if machine.choice % 2 and parents[follower] == parents[leader]:
        ends = f'<predecessor link="{links[leader]}"/><successor link="{links[follower]}"/>'
        return [
            parsed(
                f'<coupling name="gear" type="rolling">{ends}<ratio value="{ratio!r}"/></coupling>'
            )
        ]
    (joint,) = (node for node in robot.iter("joint") if node.get("name") == follower)
    joint.append(parsed(f'<mimic joint="{leader}" multiplier="{ratio!r}" offset="0"/>'))
    return []


def _urdf_motors(machine: PlainMachine) -> Element:
    name = machine.movable[0]
    if machine.choice % 2:
        return parsed(
            f'<transmission name="t"><type>transmission_interface/SimpleTransmission</type><joint name="{name}"/>'
            f'<actuator name="motor"><mechanicalReduction>5</mechanicalReduction></actuator></transmission>'
        )
    return parsed(
        f'<ros2_control name="c" type="system"><joint name="{name}"><command_interface name="effort"/></joint>'
        "</ros2_control>"
    )


def sdf(machine: PlainMachine) -> Element:
    """Return the machine as SDF, in a world or alone."""
    root = Element("sdf", version="1.9")
    outer = root
    if machine.is_in_world:
        outer = ElementTree.SubElement(root, "world", name="w")
        outer.append(parsed("<gravity>0 0 -9.81</gravity>"))
    model = ElementTree.SubElement(outer, "model", name="plain")
    model.append(parsed("<pose>0 0 0 0 0 0</pose>"))
    model.append(parsed("<static>false</static>"))
    model.append(parsed('<link name="base"><inertial><mass>1</mass></inertial></link>'))
    model.append(
        parsed('<joint name="fix" type="fixed"><parent>world</parent><child>base</child></joint>')
    )
    model.append(
        parsed('<frame name="somewhere"><pose relative_to="base">0 0 1 0 0 0</pose></frame>')
    )
    for joint in machine.joints:
        moments = "".join(
            f"<i{'xyz'[i]}{'xyz'[j]}>{float(joint.moments[i, j])!r}</i{'xyz'[i]}{'xyz'[j]}>"
            for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
        )
        shape = "<geometry><sphere><radius>0.1</radius></sphere></geometry>"
        model.append(
            parsed(
                f'<link name="{joint.child}"><pose relative_to="{joint.parent}">{words(joint.xyz)} {words(joint.rpy)}'
                f"</pose><gravity>true</gravity><inertial><pose>{words(joint.center)} 0 0 0</pose>"
                f"<mass>{joint.mass!r}</mass><density>900</density><inertia>{moments}</inertia></inertial>"
                f'<visual name="v">{shape}</visual><collision name="c">{shape}</collision></link>'
            )
        )
        model.append(_sdf_joint(machine, joint))
    if machine.loop is not None:
        model.append(_sdf_loop(machine))
    if machine.choice % 3:
        model.append(_urdf_motors(machine))
    model.append(parsed(_SDF_WRIST))
    gear = (
        '<mimic joint="wrist_joint" axis="axis"><multiplier>2</multiplier></mimic>'
        * machine.has_wrist_gear
    )
    model.append(parsed(_SDF_WRIST_JOINT.format(parent=machine.joints[-1].child, gear=gear)))
    model.append(parsed('<link name="flying"><tauloop:massless/></link>'))
    model.append(parsed('<tauloop:free name="flight" parent="base" child="flying"/>'))
    return root


#: A link on a universal joint at the end of every SDF, for the second axis. Numbers of screws and
#: gears have no effect on such a joint.
_SDF_WRIST = '<link name="wrist"><tauloop:massless/></link>'
_SDF_WRIST_JOINT = """<joint name="wrist_joint" type="universal"><parent>{parent}</parent><child>wrist</child>
<axis><xyz>1 0 0</xyz><limit><effort>0</effort></limit></axis>
<axis2><xyz>0 1 0</xyz><limit><effort>0</effort></limit><dynamics/><initial_position>0</initial_position>
<use_parent_model_frame>0</use_parent_model_frame>{gear}</axis2>
<thread_pitch>9</thread_pitch><screw_thread_pitch>9</screw_thread_pitch>
<gearbox_ratio>9</gearbox_ratio><gearbox_reference_body>base</gearbox_reference_body></joint>"""


def _sdf_joint(machine: PlainMachine, joint: PlainJoint) -> Element:
    ends = f"<pose>0 0 0 0 0 0</pose><parent>{joint.parent}</parent><child>{joint.child}</child>"
    if joint.kind == "fixed":
        return parsed(f'<joint name="{joint.name}" type="fixed">{ends}</joint>')
    limit = "<lower>-1</lower><upper>1</upper>" if joint.kind == "prismatic" else ""
    effort = "<effort>50</effort>" if joint.name == machine.movable[0] else "<effort>0</effort>"
    gear, drake_gear = "", ""
    if machine.gear is not None and machine.gear[0] == joint.name:
        _, leader, ratio = machine.gear
        numbers = f"<multiplier>{ratio!r}</multiplier><offset>0</offset><reference>0</reference>"
        gear = f'<mimic joint="{leader}">{numbers}</mimic>'
        if machine.choice % 2:
            gear, drake_gear = (
                "",
                f'<drake:mimic joint="{leader}" multiplier="{ratio!r}" offset="0"/>',
            )
    rotor = "<drake:rotor_inertia>0</drake:rotor_inertia><drake:gear_ratio>1</drake:gear_ratio>"
    return parsed(
        f'<joint name="{joint.name}" type="{joint.kind}">{ends}{drake_gear}{rotor}<axis><xyz>{words(joint.axis)}</xyz>'
        f"<limit>{limit}{effort}<velocity>3</velocity></limit><dynamics><damping>{joint.damping!r}</damping>"
        f"<friction>{joint.friction!r}</friction><spring_stiffness>0</spring_stiffness>"
        f"<spring_reference>0</spring_reference></dynamics>{gear}<initial_position>0</initial_position>"
        "<use_parent_model_frame>0</use_parent_model_frame></axis></joint>"
    )


def _sdf_loop(machine: PlainMachine) -> Element:
    assert machine.loop is not None
    if machine.choice % 3 == 0:
        return _drake_ball(machine, "<{tag}>{value}</{tag}>")
    (first, _), (second, there) = machine.loop
    return parsed(
        f'<joint name="closing" type="ball"><pose>{words(there)} 0 0 0</pose><parent>{first}</parent>'
        f"<child>{second}</child>{'<tauloop:cut/>' * (machine.choice % 3 == 1)}</joint>"
    )


#: Motors of MJCF; each takes its turn, and MuJoCo reads all of them.
_MJCF_MOTORS = (
    '<motor name="motor" joint="{joint}" gear="5"/>',
    '<general name="motor" joint="{joint}"/>',
    '<position name="motor" joint="{joint}" kp="10"/>',
    '<velocity name="motor" joint="{joint}" kv="10"/>',
    '<intvelocity name="motor" joint="{joint}" kp="10" actrange="-1 1"/>',
    '<damper name="motor" joint="{joint}" kv="10" ctrlrange="0 1"/>',
    '<cylinder name="motor" joint="{joint}" area="0.1"/>',
    '<muscle name="motor" tendon="cord" lengthrange="0 1"/>',
    '<adhesion name="motor" body="link0" ctrlrange="0 1" gain="1"/>',
    '<dcmotor name="motor" joint="{joint}" motorconst="1" resistance="1"/>',
)


def mjcf(machine: PlainMachine) -> Element:
    """Return the machine as MJCF."""
    root = Element("mujoco", model="plain")
    root.append(parsed('<compiler angle="radian" eulerseq="XYZ" autolimits="true"/>'))
    root.append(parsed('<option gravity="0 0 -9.81"><flag gravity="enable"/></option>'))
    root.append(parsed('<default><geom contype="0" conaffinity="0"/></default>'))
    root.append(parsed('<custom><numeric name="n" data="1"/><text name="t" data="word"/></custom>'))
    vertices = "0 0 0 0.1 0 0 0 0.1 0 0 0 0.1"
    assets = f'<mesh name="m" vertex="{vertices}"/><material name="red" rgba="1 0 0 1"/>'
    root.append(parsed(f"<asset>{assets}</asset>"))
    world = ElementTree.SubElement(root, "worldbody")
    bodies = {"base": world}
    for joint in machine.joints:
        body = parsed(
            f'<body name="{joint.child}" pos="{words(joint.xyz)}" euler="{words(joint.rpy)}">{_mjcf_joint(joint)}'
            f'<inertial pos="{words(joint.center)}" mass="{joint.mass!r}" fullinertia="{_mjcf_moments(joint)}"/>'
            '<frame><geom type="mesh" mesh="m" material="red"/></frame></body>'
        )
        bodies[joint.parent].append(body)
        bodies[joint.child] = body
    bodies["link0"].append(parsed('<site name="P"/>'))
    bodies["link1"].append(parsed('<site name="Q"/>'))
    world.append(parsed('<body name="ship"><freejoint name="sea"/><geom size="0.1"/></body>'))
    equality = ElementTree.SubElement(root, "equality")
    if machine.loop is not None:
        for (link, point), site in zip(machine.loop, ("A", "B"), strict=True):
            bodies[link].append(parsed(f'<site name="{site}" pos="{words(point)}"/>'))
        equality.append(parsed('<connect name="closing" site1="A" site2="B"/>'))
    if machine.gear is not None:
        follower, leader, ratio = machine.gear
        polynomial = f"0 {ratio!r} 0 0 0"
        equality.append(
            parsed(f'<joint joint1="{follower}" joint2="{leader}" polycoef="{polynomial}"/>')
        )
    equality.append(parsed('<weld name="off" body1="ship" active="false"/>'))
    name = machine.movable[0]
    root.append(
        parsed(f'<tendon><fixed name="cord"><joint joint="{name}" coef="2"/></fixed></tendon>')
    )
    motor = _MJCF_MOTORS[machine.choice % len(_MJCF_MOTORS)].format(joint=name)
    root.append(parsed(f"<actuator>{motor}</actuator>"))
    root.append(parsed('<keyframe><key name="home"/></keyframe>'))
    root.append(parsed("<deformable/>"))
    return root


def _mjcf_joint(joint: PlainJoint) -> str:
    if joint.kind == "fixed":
        return ""
    kind, limit = ("hinge", "") if joint.kind == "revolute" else ("slide", 'range="-1 1"')
    losses = f'damping="{joint.damping!r}" frictionloss="{joint.friction!r}"'
    return f'<joint name="{joint.name}" type="{kind}" axis="{words(joint.axis)}" {losses} {limit}/>'


def _mjcf_moments(joint: PlainJoint) -> str:
    places = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
    return words(np.array([joint.moments[place] for place in places]))


WRITERS: Mapping[str, Callable[[PlainMachine], Element]] = {"urdf": urdf, "sdf": sdf, "mjcf": mjcf}


# Elements that are harmless or refused

_DRAKE_LOOKS = {
    tag: f"<drake:{tag}/>"
    for tag in (
        *(
            "proximity_properties",
            "perception_properties",
            "illustration_properties",
            "accepting_renderer",
        ),
        *(
            "diffuse_map",
            "ellipsoid",
            "capsule",
            "declare_convex",
            "visual",
            "deformable_properties",
        ),
    )
}


def _snippets(file_format: str, parent: str, **texts: str) -> dict[Place, str]:
    """Return texts of elements by place; tags are keywords with `__` for the colon, and an empty text is `<tag/>`."""
    made: dict[Place, str] = {}
    for word, text in texts.items():
        tag = word.replace("__", ":")
        made[file_format, parent, tag] = text or f"<{tag}/>"
    return made


def _looks(file_format: str, *parents: str) -> dict[Place, str]:
    return {
        (file_format, parent, f"drake:{tag}"): text
        for parent in parents
        for tag, text in _DRAKE_LOOKS.items()
    }


_TIE = '<drake:body_A name="link0"/><drake:body_B name="link1"/>'
_DRAKE_TIES = {
    "drake:linear_bushing_rpy": '<drake:bushing_frameA name="link0"/><drake:bushing_frameC name="link1"/>',
    "drake:linear_spring_damper": _TIE,
    "drake:weld_constraint": _TIE,
    "drake:distance_constraint": _TIE,
    "drake:tendon_constraint": '<drake:tendon_constraint_joint name="j0" a="1"/>',
    "drake:coupler_constraint": '<drake:joint0 name="j0"/><drake:joint1 name="j1"/>',
    "drake:joint": '<drake:parent>link0</drake:parent><drake:child link="link1"/>',
}


def _drake_ties(file_format: str, parent: str) -> dict[Place, str]:
    attributes = ' name="extra" type="ball"'
    return {
        (file_format, parent, tag): f"<{tag}{attributes * (tag == 'drake:joint')}>{inner}</{tag}>"
        for tag, inner in _DRAKE_TIES.items()
    }


_SHAPE = "<geometry><sphere><radius>0.1</radius></sphere></geometry>"
#: A text for every element of the table that is harmless or refused, by format, parent and tag.
SNIPPETS: dict[Place, str] = {
    **_looks("urdf", "robot", "link"),
    **_looks("sdf", "model", "link"),
    **_drake_ties("urdf", "robot"),
    **_drake_ties("sdf", "model"),
    **_snippets(
        "urdf",
        "robot",
        fixed_frame="<fixed_frame/>",
        gazebo='<gazebo reference="link0"><mu1>0.2</mu1><material>Gazebo/Red</material></gazebo>',
        mujoco="<mujoco><compiler/></mujoco>",
        compiler="",
        sensor='<sensor name="s"/>',
        camera="",
        light="",
        drake__collision_filter_group='<drake:collision_filter_group name="g"/>',
        self_collision_checking="",
        disable_collisions='<disable_collisions link1="link0" link2="link1" reason="Never"/>',
        contact="",
        group='<group name="arm"><joint name="j0"/></group>',
        group_state='<group_state name="home" group="arm"/>',
        end_effector="",
        virtual_joint='<virtual_joint name="v" type="fixed"/>',
        passive_joint='<passive_joint name="j1"/>',
        chain="",
        author="<author>someone</author>",
        license="",
        description="",
        publications="",
        publication="",
        version="",
        verbose="",
        capability="",
        loop_joint=(
            '<loop_joint name="extra" type="hinge"><link1 link="link0" xyz="0 0 0"/><link2 link="link1" xyz="0 0 0"/>'
            "</loop_joint>"
        ),
    ),
    **_snippets(
        "urdf",
        "link",
        sensor='<sensor name="s"/>',
        light="",
        origin='<origin xyz="0 0 0" rpy="0 0 0"/>',
        audio_source="",
        collision='<collision><geometry><box size="1 1 1"/></geometry></collision>',
        contact='<contact><lateral_friction value="1"/></contact>',
        self_collision_checking="",
        collision_checking="",
        capsule="",
        verbose="",
    ),
    **_snippets(
        "urdf",
        "joint",
        joint_properties='<joint_properties damping="0" friction="0"/>',
        calibration='<calibration rising="0"/>',
        safety_controller='<safety_controller k_velocity="10"/>',
        safety="",
        drake__controller_gains='<drake:controller_gains p="1" d="1"/>',
        property="",
        hardwareInterface="",
        sensor="",
        verbose="",
        drake__screw_thread_pitch='<drake:screw_thread_pitch value="0.1"/>',
        drake__rotor_inertia='<drake:rotor_inertia value="1e-4"/>',
        drake__gear_ratio='<drake:gear_ratio value="10"/>',
    ),
    **_snippets("sdf", "sdf", light='<light name="sun"/>', actor='<actor name="man"/>'),
    **_snippets("sdf", "sdf", include="<include><uri>model://other</uri></include>"),
    **_snippets(
        "sdf",
        "world",
        light='<light name="sun"/>',
        actor='<actor name="man"/>',
        include="<include><uri>model://ground_plane</uri></include>",
        road='<road name="r"/>',
        population='<population name="p"/>',
        state='<state world_name="w"/>',
        frame='<frame name="corner"/>',
        physics='<physics type="ode"><max_step_size>0.001</max_step_size></physics>',
        scene="",
        gui="",
        audio="",
        wind="<wind><linear_velocity>0 0 0</linear_velocity></wind>",
        magnetic_field="<magnetic_field>0 0 1</magnetic_field>",
        atmosphere='<atmosphere type="adiabatic"/>',
        spherical_coordinates="",
        plugin='<plugin name="physics" filename="gz-sim-physics-system"/>',
        joint='<joint name="tie" type="fixed"><parent>plain</parent><child>other</child></joint>',
    ),
    **_snippets(
        "sdf",
        "model",
        plugin='<plugin name="states" filename="gz-sim-joint-state-publisher-system"/>',
        gazebo="<gazebo/>",
        model_state='<model_state name="plain"/>',
        self_collide="<self_collide>false</self_collide>",
        allow_auto_disable="<allow_auto_disable>true</allow_auto_disable>",
        enable_wind="<enable_wind>true</enable_wind>",
        drake__collision_filter_group='<drake:collision_filter_group name="g"/>',
        model='<model name="inner"><link name="l"/></model>',
        include="<include><uri>model://arm</uri></include>",
        gripper='<gripper name="g"><gripper_link>link0</gripper_link></gripper>',
    ),
    **_snippets(
        "sdf",
        "link",
        sensor='<sensor name="s" type="imu"/>',
        camera="",
        frame='<frame name="on_link"/>',
        light='<light name="lamp"/>',
        projector="",
        audio_sink="",
        audio_source="",
        battery='<battery name="b"/>',
        particle_emitter='<particle_emitter name="e"/>',
        self_collide="<self_collide>false</self_collide>",
        must_be_base_link="<must_be_base_link>false</must_be_base_link>",
        enable_wind="<enable_wind>true</enable_wind>",
        velocity_decay="<velocity_decay><linear>0</linear><angular>0</angular></velocity_decay>",
        kinematic="<kinematic>false</kinematic>",
    ),
    **_snippets(
        "sdf",
        "inertial",
        auto_inertia_params="",
        frame='<frame name="on_inertial"/>',
        fluid_added_mass="<fluid_added_mass><xx>0</xx></fluid_added_mass>",
    ),
    **_snippets(
        "sdf",
        "joint",
        physics="<physics><ode/></physics>",
        frame='<frame name="on_joint"/>',
        sensor='<sensor name="s" type="force_torque"/>',
        drake__controller_gains='<drake:controller_gains p="1" d="1"/>',
        drake__acceleration="<drake:acceleration>1</drake:acceleration>",
        drake__screw_thread_pitch="<drake:screw_thread_pitch>1</drake:screw_thread_pitch>",
    ),
    **_snippets(
        "sdf",
        "limit",
        stiffness="<stiffness>1e8</stiffness>",
        dissipation="<dissipation>1</dissipation>",
        drake__acceleration="<drake:acceleration>1</drake:acceleration>",
    ),
    **_snippets("sdf", "dynamics", drake__controller_gains='<drake:controller_gains p="1" d="1"/>'),
    **_snippets(
        "mjcf",
        "actuator",
        plugin='<plugin joint="j0" plugin="mujoco.pid"/>',
    ),
    **_snippets("mjcf", "geom", plugin='<plugin plugin="mujoco.sdf.torus"/>'),
    **_snippets("mjcf", "mesh", plugin='<plugin plugin="mujoco.sdf.torus"/>'),
    **_snippets(
        "mjcf",
        ANY_PARENT,
        visual="<visual><global/><quality/><headlight/><map/><scale/><rgba/></visual>",
        statistic='<statistic extent="1"/>',
        size='<size memory="1M"/>',
        camera='<camera name="eye"/>',
        light='<light name="sun"/>',
        texture='<texture name="sky" type="skybox" builtin="gradient" width="8" height="8" rgb1="1 1 1" rgb2="0 0 0"/>',
        layer='<material name="paper"><layer texture="sky" role="rgb"/></material>',
        hfield='<hfield name="hills" nrow="2" ncol="2" size="1 1 1 1"/>',
        skin='<skin name="coat"/>',
        bone='<skin name="coat"><bone body="link0"/></skin>',
        model='<model name="other" file="other.xml"/>',
        contact='<contact><exclude body1="link0" body2="link1"/></contact>',
        pair='<contact><pair geom1="a" geom2="b"/></contact>',
        exclude='<contact><exclude body1="link0" body2="link1"/></contact>',
        sensor='<sensor><jointpos joint="j0"/></sensor>',
        extension="<extension/>",
        tuple='<custom><tuple name="set"><element objtype="body" objname="link0" prm="0"/></tuple></custom>',
        element='<custom><tuple name="set"><element objtype="body" objname="link0" prm="0"/></tuple></custom>',
        user='<sensor><user dim="1"/></sensor>',
        lengthrange='<compiler><lengthrange mode="none"/></compiler>',
        pid='<actuator><pid joint="j0"/></actuator>',
        orientation='<actuator><orientation joint="j0"/></actuator>',
        spatial='<tendon><spatial name="rope"><site site="P"/><site site="Q"/></spatial></tendon>',
        pulley=(
            '<tendon><spatial name="rope"><site site="P"/><site site="Q"/><pulley divisor="2"/><site site="P"/>'
            '<site site="Q"/></spatial></tendon>'
        ),
        include='<include file="other.xml"/>',
        replicate='<replicate count="2"><geom size="0.1"/></replicate>',
        composite='<composite type="cable" count="5 1 1" curve="s" size="1"/>',
        flexcomp='<flexcomp name="cloth" type="grid" count="2 2 1"/>',
        attach='<attach model="other" prefix="p"/>',
        plugin='<plugin plugin="mujoco.elasticity.cable"/>',
        flex='<deformable><flex name="f" body="link0" vertex="0 0 0" element="0"/></deformable>',
        flexvert='<equality><flexvert flex="f"/></equality>',
        flexstrain='<equality><flexstrain flex="f"/></equality>',
        pin='<deformable><flex name="f"><pin id="0"/></flex></deformable>',
    ),
    **{
        ("mjcf", ANY_PARENT, tag): f"<visual><{tag}/></visual>"
        for tag in ("global", "quality", "headlight", "map", "scale", "rgba")
    },
}
#: Where an element of MJCF goes that is not a section of the file; of others, the root element.
_MJCF_PARENTS = {
    **dict.fromkeys(
        ("camera", "light", "replicate", "composite", "flexcomp", "attach", "plugin"), "body"
    ),
    **dict.fromkeys(("texture", "layer", "hfield", "skin", "bone", "model"), "asset"),
}


def rows_by_place() -> dict[Place, ElementRow]:
    """Return the rows of the table by place."""
    return {(row.file_format, row.parent, tag): row for row in ELEMENT_ROWS for tag in row.tags}


def places_in(file_format: str, root: Element) -> set[Place]:
    """Return the places of the table at which a file has elements."""
    places: set[Place] = set()
    for node in root.iter():
        for parent in (node.tag, ANY_PARENT):
            places |= {(file_format, parent, child.tag) for child in node}
    return places | {(file_format, ANY_PARENT, root.tag)}


def read_apart(root: Element) -> set[int]:
    """Return the ids of elements in transmissions and ros2_control, on which the table has no rows."""
    tops = [*root.iter("transmission"), *root.iter("ros2_control")]
    return {id(node) for top in tops for node in top.iter()}


def with_element(rng: np.random.Generator, root: Element, place: Place) -> str:
    """Put the element of a place into a file, and return its text."""
    file_format, parent, tag = place
    text = SNIPPETS[place]
    parent = parent if parent != ANY_PARENT else _MJCF_PARENTS.get(tag, root.tag)
    apart = read_apart(root)
    candidates = [node for node in root.iter(parent) if id(node) not in apart]
    if not candidates:  # of a world, in a model alone
        return ""
    # Gazebo's type of a joint decides on these, and it has an axis
    if file_format == "sdf" and parent == "joint":
        candidates = [node for node in candidates if node.find("axis") is not None]
    candidates[rng.integers(len(candidates))].append(parsed(text))
    return text


def read(file_format: str, text: str) -> Mechanism:
    """Return the machine of a file's text.

    Raises:
        TauloopError: it is refused.
        FaultFound: another exception came.
    """
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        path = Path(folder) / f"machine{ENDINGS[file_format]}"
        path.write_text(text, encoding="utf-8")
        try:
            return load(path, options=ImportOptions(platform_body="link0"))
        except TauloopError:
            raise
        except Exception as error:
            raise FaultFound(f"{file_format}: {type(error).__name__}: {error}") from error


@lru_cache(maxsize=2)
def read_plain(file_format: str, text: str) -> Mechanism:
    """Return the machine of a text that is compared with many others. See `read`."""
    return read(file_format, text)


def forces_by_name(machine: Mechanism, seed: int) -> dict[str, np.ndarray]:
    """Return the forces of the open tree on its scalar coordinates, by their names, at states that the seed decides."""
    tree = OpenTree(machine)
    shape = tree.shape
    reference: dict[str, float] = {}
    for joint in machine.joints:
        reference |= dict(zip(joint.coordinate_names, joint.reference, strict=False))
    forces: dict[str, list[float]] = {}
    for k in range(STATES):
        q = np.array([state(seed, k, name)[0] for name in shape.coordinate_names])
        for i, name in enumerate(shape.coordinate_names):
            if name not in shape.velocity_names:
                q[i] = reference[name]
        numbers = np.array([state(seed, k, name) for name in shape.velocity_names])
        tau, _ = tree(q, numbers[:, 1], numbers[:, 2])
        for name, force in zip(shape.velocity_names, tau, strict=True):
            forces.setdefault(name, []).append(float(force))
    return {name: np.array(values) for name, values in forces.items()}


def state(seed: int, number: int, name: str) -> np.ndarray:
    """Return position, speed and acceleration of a coordinate in one of the states of a seed."""
    return np.random.default_rng([seed, number, *name.encode()]).uniform(-1.0, 1.0, size=3)


def require_same_forces(
    what: str, first: Mapping[str, np.ndarray], second: Mapping[str, np.ndarray]
) -> None:
    """Compare the forces on coordinates that both have.

    Raises:
        FaultFound: they differ, or there are none.
    """
    names = sorted(first.keys() & second.keys())
    if not names:
        raise FaultFound(f"{what}: no coordinate in common: {sorted(first)}, {sorted(second)}")
    largest = max(float(np.abs(first[name]).max()) for name in names)
    for name in names:
        difference = float(np.abs(first[name] - second[name]).max())
        if difference > AGREEMENT * (1.0 + largest):
            raise FaultFound(
                f"{what}: forces on {name} differ by {difference:.2e}, of {largest:.3g}"
            )


def mujoco_forces(text: str, seed: int, names: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Return the forces on joints of one freedom by MuJoCo's own reading: M a + bias - passive + dry friction."""
    mujoco = extra("mujoco")
    engine = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(engine)
    forces: dict[str, list[float]] = {name: [] for name in names}
    for k in range(STATES):
        mujoco.mj_resetData(engine, data)
        a = np.zeros(engine.nv)
        for name in names:
            joint = engine.joint(name)
            q, v, a[joint.dofadr[0]] = state(seed, k, name)
            data.qpos[joint.qposadr[0]], data.qvel[joint.dofadr[0]] = q, v
        mujoco.mj_forward(engine, data)
        mass = np.zeros((engine.nv, engine.nv))
        mujoco.mj_fullM(engine, data, mass)
        tau = (
            mass @ a
            + data.qfrc_bias
            - data.qfrc_passive
            + engine.dof_frictionloss * np.sign(data.qvel)
        )
        for name in names:
            forces[name].append(float(tau[engine.joint(name).dofadr[0]]))
    return {name: np.array(values) for name, values in forces.items()}


def pinocchio_forces(text: str, seed: int, names: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Return the same by Pinocchio's own reading of a URDF, with the losses that the file states."""
    pin = extra("pinocchio")
    engine = pin.buildModelFromXML(text)
    data = engine.createData()
    losses = {
        node.get("name", ""): node.find("dynamics")
        for node in ElementTree.fromstring(text).findall("joint")
    }
    forces: dict[str, list[float]] = {name: [] for name in names}
    for k in range(STATES):
        x, v, a = np.zeros((3, engine.nv))
        columns = {name: engine.joints[engine.getJointId(name)].idx_v for name in names}
        for name, column in columns.items():
            x[column], v[column], a[column] = state(seed, k, name)
        tau = pin.rnea(engine, data, pin.integrate(engine, pin.neutral(engine), x), v, a)
        for name, column in columns.items():
            node = losses[name]
            assert node is not None
            damping, dry = float(node.get("damping", "0")), float(node.get("friction", "0"))
            forces[name].append(float(tau[column] + damping * v[column] + dry * np.sign(v[column])))
    return {name: np.array(values) for name, values in forces.items()}


def try_read(seed: int) -> str:
    """Read one plain machine in the three formats, and compare with engines and with each other.

    Raises:
        FaultFound: a file is refused, or forces differ.
    """
    machine = plain_machine(np.random.default_rng(seed))
    forces: dict[str, dict[str, np.ndarray]] = {}
    for file_format, write in WRITERS.items():
        text = text_of(write(machine))
        try:
            mechanism = read(file_format, text)
            forces[file_format] = forces_by_name(mechanism, seed)
        except TauloopError as refusal:
            raise FaultFound(f"{file_format} of seed {seed}: {refusal}") from refusal
        engine = {"mjcf": mujoco_forces, "urdf": pinocchio_forces}.get(file_format)
        if engine is not None:
            theirs = engine(text, seed, machine.movable)
            require_same_forces(
                f"{file_format} of seed {seed} and the engine", forces[file_format], theirs
            )
        gears = (machine.gear is not None) + (file_format == "sdf" and machine.has_wrist_gear)
        for what, count, expected in (
            ("loops", len(topology(mechanism).cuts), machine.loop is not None),
            ("gears", len(mechanism.couplings), gears),
        ):
            if count != expected:
                raise FaultFound(f"{file_format} of seed {seed}: {count} {what}, not {expected}")
    if machine.is_in_world:
        require_same_forces(f"sdf and urdf of seed {seed}", forces["sdf"], forces["urdf"])
    return "read"


def try_harmless(seed: int) -> str:
    """Read a file with some harmless elements: the machine is that of the plain file.

    Raises:
        FaultFound: it is refused, or another machine.
    """
    rng = np.random.default_rng(seed)
    machine = plain_machine(rng)
    for file_format in WRITERS:
        places = places_of(file_format, Treatment.HARMLESS)
        chosen = [places[k] for k in rng.permutation(len(places))[:4]]
        require_same_machine(file_format, machine, chosen, rng)
    return "the same"


def require_same_machine(
    file_format: str, machine: PlainMachine, places: list[Place], rng: np.random.Generator
) -> None:
    """Put harmless elements into a file, and compare the machine with that of the file without. See `try_harmless`."""
    plain, root = WRITERS[file_format](machine), WRITERS[file_format](machine)
    texts = [with_element(rng, root, place) for place in places]
    try:
        first, second = read_plain(file_format, text_of(plain)), read(file_format, text_of(root))
    except TauloopError as refusal:
        raise FaultFound(f"{file_format} with {texts}: {refusal}") from refusal
    names = [item.name for item in fields(first) if item.name not in _TEXTS]
    unlike = [name for name in names if getattr(first, name) != getattr(second, name)]
    if unlike:
        raise FaultFound(f"{file_format}: {texts} change {', '.join(unlike)}")


#: Fields of a mechanism that harmless elements may change: notes, and shapes that are drawn.
_TEXTS = ("description", "file", "solids")


def places_of(file_format: str, treatment: Treatment) -> list[Place]:
    """Return the places of the elements of a format that get a treatment."""
    rows = rows_by_place().items()
    return [place for place, row in rows if place[0] == file_format and row.treatment is treatment]


def try_refused(seed: int) -> str:
    """Read a file with one refused element for each format.

    Raises:
        FaultFound: it is read, or the refusal does not name the element and its line.
    """
    rng = np.random.default_rng(seed)
    machine = plain_machine(rng)
    for file_format, write in WRITERS.items():
        places = places_of(file_format, Treatment.REFUSED)
        require_refusal(file_format, write(machine), places[rng.integers(len(places))], rng)
    return "refused"


def require_refusal(
    file_format: str, root: Element, place: Place, rng: np.random.Generator
) -> None:
    """Put a refused element into a file, and read it. See `try_refused`."""
    text = with_element(rng, root, place)
    if not text:
        return
    rows = (row_of(file_format, place[1], node.tag) for node in parsed(text).iter())
    names = {
        tag
        for row in rows
        if row is not None and row.treatment is Treatment.REFUSED
        for tag in row.tags
    }
    try:
        read(file_format, text_of(root))
    except TauloopError as refusal:
        message = str(refusal)
        if not any(f"<{name}>" in message for name in names) or "line " not in message:
            raise FaultFound(
                f"{file_format}: {text} is refused without its name and line: {message}"
            ) from refusal
        return
    raise FaultFound(f"{file_format}: {text} is read, and is in the list of refused elements")


def try_unknown(seed: int) -> str:
    """Read a file with one element that no row of the table knows.

    Raises:
        FaultFound: it is passed over.
    """
    rng = np.random.default_rng(seed)
    machine = plain_machine(rng)
    for file_format, write in WRITERS.items():
        root = write(machine)
        parents = sorted(
            {
                row.parent
                for row in ELEMENT_ROWS
                if row.file_format == file_format and row.parent != ANY_PARENT
            }
        )
        if file_format == "mjcf":
            parents = ["mujoco", "body", "actuator", "equality", "worldbody"]
        apart = read_apart(root)
        nodes = [node for parent in parents for node in root.iter(parent) if id(node) not in apart]
        node = nodes[rng.integers(len(nodes))]
        tag = "".join(chr(97 + k) for k in rng.integers(26, size=9))
        node.append(Element(tag))
        try:
            known = read(file_format, text_of(root)).unknown_elements
        except TauloopError as refusal:
            known = (str(refusal),)
        if not any(f"<{tag}>" in text for text in known):
            raise FaultFound(
                f"{file_format} of seed {seed}: <{tag}> of <{node.tag}> is passed over: {known}"
            )
    return "a finding"


#: What is tried with files of others, by name.
TRIALS: Mapping[str, Callable[[int], str]] = {
    "read": try_read,
    "harmless": try_harmless,
    "refused": try_refused,
    "unknown": try_unknown,
}
