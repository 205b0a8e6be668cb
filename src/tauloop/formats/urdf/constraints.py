"""Extensions of URDF by GRBDA, Drake and Isaac Sim that close loops or couple joints.

`urdf.cut_elements` reads ``<constraint>``.

.. code-block:: xml

    <loop name="loop1" type="revolute">                        <!-- of GRBDA (ROAM-Lab-ND/generalized_rbda) -->
      <predecessor link="link2"><origin xyz="1 0 0"/></predecessor>
      <successor link="link3"><origin xyz="0.5 0 0"/></successor>
      <axis xyz="0 0 1"/>
    </loop>
    <coupling name="gear1" type="rolling">                     <!-- ratio * predecessor - successor = 0 -->
      <predecessor link="link1"/> <successor link="rotor1"/> <ratio value="6"/>
    </coupling>
    <drake:ball_constraint>
      <drake:ball_constraint_body_A name="link2"/> <drake:ball_constraint_p_AP value="1 0 0"/>
      <drake:ball_constraint_body_B name="link3"/> <drake:ball_constraint_p_BQ value="0.5 0 0"/>
    </drake:ball_constraint>
    <loop_joint name="loop1" type="spherical">                 <!-- of Isaac Sim, which writes the tag link1 twice -->
      <link1 link="link2" xyz="1 0 0" rpy="0 0 0"/>
      <link1 link="link3" xyz="0.5 0 0" rpy="0 0 0"/>
    </loop_joint>

In a coupling, a link stands for the joints between the nearest common ancestor of both links and
this link. URDF's own ``<mimic>``, q = multiplier * q_other + offset, is also read as a coupling.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tauloop.common.counts import counted
from tauloop.common.records import dataclass
from tauloop.formats.urdf.cut_elements import CONSTRAINT_TAG, read_cut
from tauloop.formats.urdf.parts import (
    LinkFrame,
    UrdfCoupling,
    UrdfJoint,
    UrdfLoop,
    UrdfReader,
    identifier,
)
from tauloop.formats.xml.nodes import XmlNode
from tauloop.mechanism.suggestions import suggestion

BALL_TAG = "drake:ball_constraint"
LOOP_JOINT_TAG = "loop_joint"
#: Elements of a ball constraint that contain the names of the bodies.
BALL_BODIES = (f"{BALL_TAG}_body_A", f"{BALL_TAG}_body_B")
#: Elements of a ball constraint that contain a point on each body.
BALL_POINTS = (f"{BALL_TAG}_p_AP", f"{BALL_TAG}_p_BQ")
LOOP_ELEMENTS = ("loop", "coupling", CONSTRAINT_TAG, BALL_TAG, LOOP_JOINT_TAG)
#: Ends of Isaac Sim's element. Its documentation repeats the first tag; other tools write both.
_LOOP_JOINT_ENDS = ("link1", "link2")
#: Name of the first of two links whose origins coincide, in the convention of onshape-to-robot.
_CLOSING = re.compile(r"(closing_.+)_1")
#: Kind of loop by GRBDA's type.
_LOOP_KINDS = {
    kind: kind for kind in ("revolute", "prismatic", "cylindrical", "spherical", "fixed")
}
_LOOP_KINDS["continuous"] = "revolute"


def read_loops(
    reader: UrdfReader, robot: XmlNode, links: Mapping[str, XmlNode], joints: Sequence[UrdfJoint]
) -> tuple[UrdfLoop, ...]:
    """Return all loop closures in file order; problems are added to the reader."""
    loops: list[UrdfLoop] = []
    for node in robot.children:
        if node.tag == "loop":
            name = reader.name(node)
            kind = reader.kind(node, name, _LOOP_KINDS, "type of loop")
            ends = [_end(reader, node, name, tag, links) for tag in ("predecessor", "successor")]
            loop = UrdfLoop(
                name=name,
                kind=kind,
                predecessor=ends[0],
                successor=ends[1],
                axis=reader.axis(node, name) if node.first("axis") is not None else (0.0, 0.0, 1.0),
            )
        elif node.tag == BALL_TAG:
            name = f"ball_constraint_{1 + sum(loop.name.startswith('ball_constraint_') for loop in loops)}"
            first, second = (
                _point(reader, node, name, body, point, links)
                for body, point in zip(BALL_BODIES, BALL_POINTS, strict=True)
            )
            loop = UrdfLoop(name=name, kind="spherical", predecessor=first, successor=second)
        elif node.tag in (CONSTRAINT_TAG, LOOP_JOINT_TAG):
            read = read_cut if node.tag == CONSTRAINT_TAG else _loop_joint
            loop = read(reader, node, links)
            name = loop.name
        else:
            continue
        if loop.predecessor.link and loop.predecessor.link == loop.successor.link:
            reader.problem(
                node,
                name,
                f"both ends are on {loop.predecessor.link!r}",
                "name two different links",
            )
        loops.append(loop)
    return (*loops, *closing_frames(reader, loops, links, joints))


def closing_frames(
    reader: UrdfReader,
    loops: Sequence[UrdfLoop],
    links: Mapping[str, XmlNode],
    joints: Sequence[UrdfJoint],
) -> list[UrdfLoop]:
    """Return the loops of pairs of links ``closing_NAME_1``, ``closing_NAME_2`` (onshape-to-robot).

    The origins of each pair coincide. A pair is omitted if another element connects one of its
    links.
    """
    linked = _links_in_loops(loops, joints)
    closures: list[UrdfLoop] = []
    for first in links:
        match = _CLOSING.fullmatch(first)
        if match is None or first in linked:
            continue
        second = f"{match[1]}_2"
        if second not in links:
            reader.note(
                first, f"its name is that of one of two coincident frames, but there is no {second}"
            )
        elif second not in linked:
            name = match[1] if match[1] not in links else f"{match[1]}_loop"
            reader.note(
                name,
                f"a ball joint connects {first} and {second}, according to their names",
            )
            ends = (LinkFrame(link=first), LinkFrame(link=second))
            closures.append(
                UrdfLoop(name=name, kind="spherical", predecessor=ends[0], successor=ends[1])
            )
    return closures


def without_repeated_closures(
    loops: Sequence[UrdfLoop], others: Sequence[UrdfLoop], joints: Sequence[UrdfJoint]
) -> tuple[UrdfLoop, ...]:
    """Return loops without the closures of `closing_frames` whose links are also in other loops."""
    linked = _links_in_loops(others, joints)
    return tuple(
        loop
        for loop in loops
        if not (
            _CLOSING.fullmatch(loop.predecessor.link)
            and {loop.predecessor.link, loop.successor.link} & linked
        )
    )


def _links_in_loops(loops: Sequence[UrdfLoop], joints: Sequence[UrdfJoint]) -> set[str]:
    """Return the links of loops, and the links to which they are fixed."""
    fixed_to = {joint.child: joint.parent for joint in joints if joint.kind == "fixed"}
    joined: set[str] = set()
    for loop in loops:
        for end in (loop.predecessor, loop.successor):
            link = end.link
            while link not in joined:
                joined.add(link)
                link = fixed_to.get(link, link)
    return joined


def _loop_joint(reader: UrdfReader, node: XmlNode, links: Mapping[str, XmlNode]) -> UrdfLoop:
    """Return Isaac Sim's ``<loop_joint>``, which is a ball joint; other types are rejected."""
    name = reader.name(node)
    kind = reader.text(node, name, "type")
    if kind and kind != "spherical":
        what = f"a <{LOOP_JOINT_TAG}> of type {kind!r} is not supported; Isaac Sim only has spherical ones"
        reader.problem(
            node,
            name,
            what,
            f'use <{CONSTRAINT_TAG} type="{kind}"> instead, or close the loop in a side file',
        )
    ends = [child for child in node.children if child.tag in _LOOP_JOINT_ENDS]
    if len(ends) != 2:
        what = f"has {counted(len(ends), 'element')} <link1> or <link2>"
        reader.problem(
            node,
            name,
            what,
            'it needs two: <link1 link="..." xyz="..." rpy="..."/> and <link2 .../>',
        )
        return UrdfLoop(
            name=name,
            kind="spherical",
            predecessor=LinkFrame(link=""),
            successor=LinkFrame(link=""),
        )
    frames: list[LinkFrame] = []
    for end in ends:
        origin_node = XmlNode(
            tag=end.tag, attributes={}, line=end.line, children=[replace(end, tag="origin")]
        )
        xyz, rpy = reader.origin(origin_node, name)
        frames.append(LinkFrame(link=reader.link(end, name, "link", links), xyz=xyz, rpy=rpy))
    return UrdfLoop(name=name, kind="spherical", predecessor=frames[0], successor=frames[1])


def _end(
    reader: UrdfReader, node: XmlNode, name: str, tag: str, links: Mapping[str, XmlNode]
) -> LinkFrame:
    link = reader.end(node, name, tag, links)
    end = node.first(tag)
    if end is None:
        return LinkFrame(link="")
    xyz, rpy = reader.origin(end, name)
    return LinkFrame(link=link, xyz=xyz, rpy=rpy)


def _point(
    reader: UrdfReader,
    node: XmlNode,
    name: str,
    body_tag: str,
    point_tag: str,
    links: Mapping[str, XmlNode],
) -> LinkFrame:
    link = reader.end(node, name, body_tag, links, attribute="name")
    point = node.first(point_tag)
    if point is None:
        reader.problem(node, name, f"has no <{point_tag}>", f'add <{point_tag} value="0 0 0"/>')
        return LinkFrame(link=link)
    reader.text(point, name, "value")
    x, y, z = reader.vector(point, name, "value", (0.0, 0.0, 0.0))
    return LinkFrame(link=link, xyz=reader.without_rounding_errors((x, y, z), name))


def read_couplings(
    reader: UrdfReader,
    robot: XmlNode,
    joint_nodes: Mapping[str, XmlNode],
    joints: Sequence[UrdfJoint],
    links: Mapping[str, XmlNode],
) -> tuple[UrdfCoupling, ...]:
    """Return all couplings of a file: GRBDA's, then ``<mimic>``."""
    couplings: list[UrdfCoupling] = []
    chains = _Chains(joint_above={joint.child: joint for joint in joints if joint.child})
    for node in robot.all("coupling"):
        name = reader.name(node)
        kind = node.attributes.get("type", "rolling")  # GRBDA only reads the ratio
        if kind != "rolling":
            reader.problem(node, name, f"{kind!r} is not a type of coupling", "write rolling")
        ratio_node = node.first("ratio")
        if ratio_node is None:
            reader.problem(node, name, "has no <ratio>", 'add <ratio value="..."/>')
        ratio = 1.0 if ratio_node is None else reader.number(ratio_node, name, "value")
        if ratio == 0.0:
            reader.problem(node, name, "the ratio is zero", "remove the coupling")
        first, second = (reader.end(node, name, tag, links) for tag in ("predecessor", "successor"))
        if not (first and second):
            continue
        first_chain, second_chain = chains.from_common_ancestor(first, second)
        terms = tuple((joint.name, ratio) for joint in first_chain) + tuple(
            (joint.name, -1.0) for joint in second_chain
        )
        unsuitable = [
            joint.name
            for joint in (*first_chain, *second_chain)
            if joint.kind not in ("revolute", "prismatic")
        ]
        if unsuitable or not first_chain or not second_chain:
            what = (
                f"{', '.join(unsuitable)}: neither revolute nor prismatic"
                if unsuitable
                else f"there is no joint between the common ancestor of {first!r} and {second!r} and one of them"
            )
            reader.problem(
                node, name, what, "couple links that move by revolute or prismatic joints"
            )
            continue
        couplings.append(UrdfCoupling(name=name, terms=terms))
    return (*couplings, *_mimics(reader, joint_nodes, joints))


def _mimics(
    reader: UrdfReader, joint_nodes: Mapping[str, XmlNode], joints: Sequence[UrdfJoint]
) -> tuple[UrdfCoupling, ...]:
    """Return the couplings of ``<mimic>``: q = multiplier q_other + offset."""
    known = {joint.name: joint for joint in joints}
    scalar_joints = [joint.name for joint in joints if joint.kind in ("revolute", "prismatic")]
    couplings: list[UrdfCoupling] = []
    for name, node in joint_nodes.items():
        mimic = node.first("mimic")
        if mimic is None:
            continue
        if known[name].kind == "fixed":
            reader.note(name, "a fixed joint cannot follow another, so its <mimic> is omitted")
            continue
        other = identifier(reader.text(mimic, name, "joint"))
        other = f"{other}_joint" if other not in known and f"{other}_joint" in known else other
        if other not in scalar_joints:
            remedy = suggestion(other, scalar_joints) or "name a revolute or prismatic joint"
            reason = "does not rotate or slide" if other in known else "is not a joint of the file"
            reader.problem(mimic, name, f"it mimics {other!r}, which {reason}", remedy)
            continue
        if name not in scalar_joints or other == name:
            what = (
                "it mimics itself"
                if other == name
                else "only a joint that rotates or slides can mimic another"
            )
            reader.problem(mimic, name, what, "remove <mimic>")
            continue
        multiplier = reader.number(mimic, name, "multiplier", 1.0)
        offset = reader.number(mimic, name, "offset", 0.0)
        terms: tuple[tuple[str, float], ...] = ((name, 1.0), (other, -multiplier))
        if multiplier == 0.0:
            reader.note(name, "it mimics with multiplier zero, so it is held at the offset")
            terms = terms[:1]
        couplings.append(
            UrdfCoupling(name=f"{name}_mimic", terms=terms, offset=offset, mimics=True)
        )
    return tuple(couplings)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chains:
    """The joint above each link, that is, between the link and its parent."""

    joint_above: Mapping[str, UrdfJoint]

    def from_common_ancestor(
        self, first: str, second: str
    ) -> tuple[list[UrdfJoint], list[UrdfJoint]]:
        """Return the joints from the nearest common ancestor to each of two links."""
        first_path, second_path = self._up(first), self._up(second)
        while first_path and second_path and first_path[-1] is second_path[-1]:
            first_path.pop()
            second_path.pop()
        return first_path[::-1], second_path[::-1]

    def _up(self, link: str) -> list[UrdfJoint]:
        path: list[UrdfJoint] = []
        while link in self.joint_above and self.joint_above[link] not in path:
            path.append(self.joint_above[link])
            link = self.joint_above[link].parent
        return path
