"""Reader of a URDF file as plain numbers: links with inertia, and the joints of the tree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from tauloop.formats.imported.motor_elements import ROS2_CONTROL, TRANSMISSION, read_motor_elements
from tauloop.formats.lengths import largest_length
from tauloop.formats.options import ImportOptions
from tauloop.formats.sdf.nested import WORLD
from tauloop.formats.urdf import visuals as urdf_visuals
from tauloop.formats.urdf.constraints import BALL_POINTS, LOOP_ELEMENTS, read_couplings, read_loops
from tauloop.formats.urdf.gazebo.changes import read_gazebo
from tauloop.formats.urdf.gazebo.joints import read_gazebo_joints
from tauloop.formats.urdf.parts import (
    UNLIMITED,
    UrdfJoint,
    UrdfLink,
    UrdfReader,
    UrdfTree,
    identifier,
    rotation,
)
from tauloop.formats.urdf.refused import refuse_other_formats, refuse_parts, refuse_repeats
from tauloop.formats.xml.foreign_elements import inventory, read_tags, refuse
from tauloop.formats.xml.nodes import XmlNode, impossible_inertia, unused_notes
from tauloop.formats.xml.xacro import read_source
from tauloop.mechanism.links.rigid_tree import LinkInertia
from tauloop.mechanism.model import BASE

#: Kind of joint in Tauloop by URDF's type.
KIND_OF_JOINT_TYPE = {
    "revolute": "revolute",
    "continuous": "revolute",
    "prismatic": "prismatic",
    "fixed": "fixed",
    "floating": "free",
    "planar": "planar",
}
#: Elements that are read; the notes list all others.
_READ_TAGS: dict[str, set[str]] = {**read_tags("urdf"), **urdf_visuals.VISUAL_ELEMENTS}
_MOMENT_ATTRIBUTES = ("ixx", "ixy", "iyy", "ixz", "iyz", "izz")
#: Attributes that are read, by element. Other elements have the common attributes.
_READ_ATTRIBUTES = {
    "robot": {"name", "version"},
    "joint": {"name", "type", "independent"},
    "inertia": {*_MOMENT_ATTRIBUTES},
    "limit": {"lower", "upper", "effort", "velocity"},
    "dynamics": {"damping", "friction"},
    "mimic": {"joint", "multiplier", "offset"},
    **urdf_visuals.VISUAL_ATTRIBUTES,
}
_COMMON_ATTRIBUTES = {"name", "type", "link", "value", "xyz", "rpy", "quat_xyzw"}
#: Elements that give a link a shape.
_SHAPE_ELEMENTS = ("visual", "collision")


def read_urdf_tree(path: str | Path, options: ImportOptions = ImportOptions()) -> UrdfTree:  # noqa: B008 (frozen)
    """Read a URDF file, also in xacro form, and check that it is a single tree.

    Returns:
        Links and joints of the tree, with notes.

    Raises:
        DescriptionError: all problems, each with its line.
        InputError: the arguments of a xacro are invalid.
    """
    source = read_source(path, options)
    largest = largest_length(_positions(source.root))
    tree = tree_of(source.root, source.file, largest, options.package_folders)
    return replace(tree, notes=(*source.notes, *tree.notes))


def _positions(robot: XmlNode) -> Iterator[str]:
    """Yield the positions of frames and points as text, without shapes and axes."""
    for node in robot.children:
        if node.tag == "link":
            inertial = node.first("inertial")
            elements = () if inertial is None else inertial.walk()
        else:
            elements = node.walk()
        for child in elements:
            if not child.tag.endswith("axis"):
                yield child.attributes.get("xyz", "")
            if child.tag in BALL_POINTS:
                yield child.attributes.get("value", "")


def tree_of(
    robot: XmlNode, file: str, largest: float, packages: tuple[str | Path, ...] = ()
) -> UrdfTree:
    """Return the tree in the root element of a URDF.

    Args:
        robot: the root element.
        file: file name for messages; paths of meshes are relative to its folder.
        largest: largest length of the file, m.
        packages: folders of packages that may contain meshes.

    Raises:
        DescriptionError: all problems, each with its line.
    """
    reader = _TreeReader(file, largest, packages)
    tree = reader.tree(robot)
    reader.raise_any()
    return tree


class _TreeReader(UrdfReader):
    """Reader of one file; it reads each element once."""

    def __init__(self, file: str, largest: float, packages: tuple[str | Path, ...]) -> None:
        super().__init__(file, largest)
        self._packages = packages
        self._unread: Counter[str] = Counter()
        self._unread_attributes: Counter[str] = Counter()

    def tree(self, robot: XmlNode) -> UrdfTree:
        if refuse_other_formats(self, robot):
            return UrdfTree(name="", file=self.file, root="", links=(), joints=(), notes=())
        links: dict[str, XmlNode] = {}
        joints: dict[str, XmlNode] = {}
        self._rename_base(robot)
        for node in robot.all("link"):
            self._register(node, links, used_names=())
        for node in robot.all("joint"):
            self._register(node, joints, used_names=links)
        is_world_implied = self._add_implied_world(robot, links)
        if not links:
            self.problem(robot, "robot", "there is no <link>", "give a model with links and joints")
        is_world_a_child = any(_names_world(joint.first("child")) for joint in robot.all("joint"))
        read_links = tuple(
            self._world(node) if name == WORLD and not is_world_a_child else self._link(name, node)
            for name, node in links.items()
        )
        read_joints = tuple(self._joint(name, node, links) for name, node in joints.items())
        if is_world_implied:
            read_joints += self._floating(read_joints, links)
        base = self._root(read_joints, links, joints) if links else ""
        extensions = read_gazebo(self, robot)
        gazebo = read_gazebo_joints(self, robot, links, read_joints, base)
        loops = (*read_loops(self, robot, links, read_joints), *gazebo.loops)
        couplings = read_couplings(self, robot, joints, read_joints, links)
        moving = [joint.name for joint in read_joints if joint.kind in ("revolute", "prismatic")]
        followers = [coupling.terms[0][0] for coupling in couplings if coupling.mimics]
        motors = read_motor_elements(self.file, robot, moving, followers)
        couplings = (*couplings, *motors.couplings)
        self._reject_used_names(
            robot,
            (*(loop.name for loop in loops), *(c.name for c in couplings)),
            {**links, **joints},
        )
        self._list_unread(robot)
        name = identifier(robot.attributes.get("name", "").replace(".", "_")) or "robot"
        elements = inventory("urdf", robot)
        loop_tags = ", ".join(f"<{tag}>" for tag in LOOP_ELEMENTS)
        refuse(self, elements.refused, f"close loops by {loop_tags}, or in a side file")
        refuse_parts(self, robot)
        refuse_repeats(self, robot)
        for link in read_links:
            has_shape = any(links[link.name].first(tag) is not None for tag in _SHAPE_ELEMENTS)
            if has_shape and link.inertial is None and link.name != base:
                self.note(link.name, "it has a shape but no <inertial>, so it is massless")
        visuals = urdf_visuals.VisualReader(self.file, robot, self._largest, self._packages)
        solids = [
            solid
            for name, node in links.items()
            for solid in visuals.solids(BASE if name == base else name, node)
        ]
        notes = [
            *self.listed(),
            *visuals.notes(),
            *unused_notes(self._unread, self._unread_attributes),
            *motors.notes,
        ]
        return UrdfTree(
            name=name,
            file=self.file,
            root=base,
            links=read_links,
            joints=read_joints,
            loops=loops,
            couplings=couplings,
            independent=self._independent(joints),
            notes=tuple(notes),
            solids=tuple(solids),
            renamed=self.renamed,
            motors=motors,
            weightless=extensions.weightless,
            omitted_forces=(
                *extensions.omitted_forces,
                *gazebo.omitted_forces,
                *self._older_losses(joints),
            ),
            unknown_elements=(*elements.unknown_texts(), *gazebo.unknown_elements),
        )

    def _add_implied_world(self, robot: XmlNode, links: dict[str, XmlNode]) -> bool:
        """Add Drake's implicit link ``world`` if joints need it; return whether it was added."""
        if WORLD in links:
            return False
        with_world_as_child = [
            joint for joint in robot.all("joint") if _names_world(joint.first("child"))
        ]
        for joint in with_world_as_child:
            name = joint.attributes.get("name", "joint")
            what = "its child is the world, which does not move"
            self.problem(joint, name, what, "swap <parent> and <child>")
        with_world_as_parent = [
            joint for joint in robot.all("joint") if _names_world(joint.first("parent"))
        ]
        if not with_world_as_parent and not with_world_as_child:
            return False
        self.note(WORLD, "this link is not in the file; it is the immovable world, as in Drake")
        links[WORLD] = XmlNode(
            tag="link",
            attributes={"name": WORLD},
            line=(with_world_as_parent or with_world_as_child)[0].line,
        )
        return not with_world_as_child

    def _floating(
        self, joints: Sequence[UrdfJoint], links: Mapping[str, XmlNode]
    ) -> tuple[UrdfJoint, ...]:
        """Return floating joints from the world to links that are not attached, as in Drake."""
        attached = {joint.child for joint in joints}
        unattached = [link for link in links if link not in attached and link != WORLD]
        for link in unattached:
            self.note(link, "it is not attached to anything, and moves freely, as in Drake")
        return tuple(
            UrdfJoint(
                name=f"{link}.free",
                kind="free",
                parent=WORLD,
                child=link,
                xyz=(0.0, 0.0, 0.0),
                rpy=(0.0, 0.0, 0.0),
                axis=(0.0, 0.0, 1.0),
            )
            for link in unattached
        )

    def _rename_base(self, robot: XmlNode) -> None:
        """Rename a link that has the name of the immovable base, unless it is the root."""
        children = [
            child.attributes.get("link", "").strip()
            for joint in robot.all("joint")
            for child in joint.all("child")
        ]
        if not any(identifier(name) == BASE for name in children):
            return
        used_names = {identifier(node.attributes.get("name", "")) for node in robot.children}
        name = f"{BASE}_frame"
        while name in used_names:
            name += "_"
        self.renamed[BASE] = name

    def _older_losses(self, joints: Mapping[str, XmlNode]) -> list[str]:
        """Return the nonzero losses of ``<joint_properties>``."""
        losses: list[str] = []
        for name, node in joints.items():
            for properties in node.all("joint_properties"):
                values = {
                    key: self.number(properties, name, key, 0.0) for key in ("damping", "friction")
                }
                losses += [
                    f"{key} in <joint_properties> of joint {name}"
                    for key, value in values.items()
                    if value
                ]
        return losses

    def _independent(self, joints: Mapping[str, XmlNode]) -> tuple[str, ...]:
        """Return the joints that are not marked as dependent, if any joint is marked (GRBDA)."""
        words = {name: node.attributes.get("independent", "") for name, node in joints.items()}
        for name, word in words.items():
            if word not in ("", "true", "false"):
                self.problem(
                    joints[name],
                    name,
                    f"independent={word!r} is neither true nor false",
                    "write true or false",
                )
        if not any(words.values()):
            return ()
        return tuple(name for name, word in words.items() if word != "false")

    def _reject_used_names(
        self, robot: XmlNode, names: tuple[str, ...], used_names: Mapping[str, XmlNode]
    ) -> None:
        """Add a problem for each loop or coupling whose name is already used."""
        for index, name in enumerate(names):
            if name in used_names or name in names[:index]:
                self.problem(
                    used_names.get(name, robot),
                    name,
                    "a loop or coupling has the same name",
                    "rename one of them",
                )

    def _register(
        self, node: XmlNode, known: dict[str, XmlNode], used_names: Iterable[str]
    ) -> None:
        """Register a node by its identifier; a missing or repeated name is a problem.

        Args:
            node: a link or joint.
            known: registered nodes of the same kind by name.
            used_names: names of other elements; a joint with such a name is renamed.
        """
        original = self.text(node, node.tag, "name")
        name = identifier(original)
        if not name and original:
            self.problem(node, original, "the name has no letter", f"rename the {node.tag}")
        if not name:
            return
        if node.tag == "link":
            name = self.renamed.get(name, name)
        if name in used_names:  # in URDF, a joint and a link may have the same name
            name += "_joint"
        if name in known:
            what = f"this name is already used by the {node.tag} on line {known[name].line}"
            self.problem(node, original, what, "rename one of the two")
            return
        if name != original:
            self.note("", f"{node.tag} {original!r} is renamed to {name!r}")
        known[name] = node

    def _link(self, name: str, node: XmlNode) -> UrdfLink:
        inertial = node.first("inertial")
        if inertial is None:
            return UrdfLink(name=name, inertial=None)
        mass_node, inertia_node = inertial.first("mass"), inertial.first("inertia")
        for child, tag in ((mass_node, "mass"), (inertia_node, "inertia")):
            if child is None:
                self.problem(
                    inertial,
                    name,
                    f"<inertial> has no <{tag}>",
                    f"add <{tag} .../> or remove <inertial>",
                )
        if mass_node is None or inertia_node is None:
            return UrdfLink(name=name, inertial=None)
        mass = self.number(mass_node, name, "value")
        moments = [self.number(inertia_node, name, key) for key in _MOMENT_ATTRIBUTES]
        xx, xy, yy, xz, yz, zz = moments
        xyz, rpy = self.origin(inertial, name)
        moments_matrix = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        if mass < 0.0:
            self.problem(mass_node, name, f"the mass is {mass:g} kg", "give a mass of zero or more")
        elif np.isfinite(moments_matrix).all():
            self._note_inertia(name, mass, moments_matrix)
        inertia = moments_matrix
        if rpy != (0.0, 0.0, 0.0):  # otherwise the numbers of the file are preserved exactly
            inertia = rotation(rpy) @ moments_matrix @ rotation(rpy).T + 0.0
        return UrdfLink(
            name=name, inertial=LinkInertia(mass=mass, center=np.array(xyz), about_center=inertia)
        )

    def _world(self, node: XmlNode) -> UrdfLink:
        """Return the unattached link ``world``, which is immovable; ignore its ``<inertial>``."""
        if node.first("inertial") is not None:
            self.note(WORLD, "its <inertial> has no effect, because the world does not move")
        return UrdfLink(name=WORLD, inertial=None)

    def _note_inertia(self, name: str, mass: float, inertia: np.ndarray) -> None:
        if mass == 0.0:
            self.note(name, "the mass is zero")
        if not inertia.any():
            self.note(name, "the inertia about the mass center is zero")
        elif what := impossible_inertia(inertia):
            self.note(name, what)

    def _joint(self, name: str, node: XmlNode, links: Mapping[str, XmlNode]) -> UrdfJoint:
        """Return a joint of the tree."""
        kind = self.kind(node, name, KIND_OF_JOINT_TYPE, "joint type")
        original = node.attributes.get("type", "").strip()
        ends = [self.end(node, name, tag, links) for tag in ("parent", "child")]
        if ends[0] and ends[0] == ends[1]:
            self.problem(
                node, name, f"parent and child are both {ends[0]!r}", "name two different links"
            )
            ends = ["", ""]
        xyz, rpy = self.origin(node, name)
        axis = (0.0, 0.0, 1.0)
        if original in ("revolute", "continuous", "prismatic", "planar"):
            axis = self.axis(node, name)
        limit, dynamics = node.first("limit"), node.first("dynamics")
        lower, upper = -np.inf, np.inf
        locked_at: float | None = None
        if limit is not None and kind in ("revolute", "prismatic") and original != "continuous":
            lower = self.number(limit, name, "lower", 0.0)
            upper = self.number(limit, name, "upper", 0.0)
            if lower <= -UNLIMITED:
                lower = -np.inf
            if upper >= UNLIMITED:
                upper = np.inf
            if lower > upper:
                self.problem(
                    limit,
                    name,
                    f"lower limit {lower:g} is above upper limit {upper:g}",
                    "swap the two limits",
                )
            if lower == upper:
                if {"lower", "upper"} & limit.attributes.keys():
                    locked_at = lower
                lower, upper = -np.inf, np.inf
                self.note(name, "lower and upper limit are equal, which is read as no limits")
        return UrdfJoint(
            name=name,
            kind=kind,
            parent=ends[0],
            child=ends[1],
            xyz=xyz,
            rpy=rpy,
            axis=axis,
            lower=lower,
            upper=upper,
            effort=self._limit(limit, name, "effort"),
            velocity=self._limit(limit, name, "velocity") or np.inf,
            damping=self._loss(dynamics, name, "damping"),
            friction=self._loss(dynamics, name, "friction"),
            locked_at=locked_at,
        )

    def _loss(self, dynamics: XmlNode | None, name: str, attribute: str) -> float:
        value = 0.0 if dynamics is None else self.number(dynamics, name, attribute, 0.0)
        if dynamics is not None and value < 0.0:
            self.problem(
                dynamics, name, f"{attribute} is {value:g}", "give zero or a positive number"
            )
        return value

    def _limit(self, limit: XmlNode | None, name: str, attribute: str) -> float | None:
        """Return an effort or speed limit; None if absent, infinite if it means unlimited."""
        if limit is None or attribute not in limit.attributes:
            return None
        value = self.number(limit, name, attribute)
        if value < 0.0:
            self.problem(limit, name, f"{attribute} is {value:g}", "give a positive number")
        return np.inf if value >= UNLIMITED else value

    def _root(
        self, joints: tuple[UrdfJoint, ...], links: dict[str, XmlNode], nodes: dict[str, XmlNode]
    ) -> str:
        """Return the link without a parent; report second parents, cycles and separate trees."""
        joint_above: dict[str, UrdfJoint] = {}
        for joint in joints:
            if joint.child in joint_above:
                other = joint_above[joint.child].name
                what = f"its child {joint.child!r} is already the child of {other!r}"
                remedy = "URDF only describes trees; use a machine file for a machine with loops"
                self.problem(nodes[joint.name], joint.name, what, remedy)
            elif joint.child:
                joint_above[joint.child] = joint
        self._report_cycles(joint_above, nodes)
        roots = [link for link in links if link not in joint_above]
        # with other problems, a separate tree may only be the result of a broken reference
        if all(joint.child for joint in joints):
            for other in roots[1:]:
                what = (
                    f"neither this link nor {roots[0]!r} is the child of a joint: these are "
                    "separate trees"
                )
                self.problem(links[other], other, what, "connect them, or remove one")
        return roots[0] if roots else ""

    def _report_cycles(self, joint_above: dict[str, UrdfJoint], nodes: dict[str, XmlNode]) -> None:
        visited: set[str] = set()
        for start in joint_above:
            chain: dict[str, UrdfJoint] = {}
            link = start
            while link in joint_above and link not in chain and link not in visited:
                chain[link] = joint_above[link]
                link = joint_above[link].parent
            visited.update(chain)
            if link in chain:
                cycle = list(chain)[list(chain).index(link) :]
                joint = chain[cycle[-1]]
                path = " <- ".join([*cycle, link])
                self.problem(
                    nodes[joint.name],
                    joint.name,
                    f"closes a cycle of parents: {path}",
                    "cut the cycle there",
                )

    def _list_unread(self, node: XmlNode) -> None:
        for attribute in node.attributes:
            is_read = attribute in _READ_ATTRIBUTES.get(node.tag, _COMMON_ATTRIBUTES)
            if not is_read and not attribute.startswith("xmlns"):
                self._unread_attributes[f"{attribute} of {node.tag}"] += 1
        for child in node.children:
            if child.tag in (ROS2_CONTROL, TRANSMISSION):
                continue  # `read_motor_elements` lists their contents
            if child.tag == "gazebo" and {inner.tag for inner in child.children} == {"joint"}:
                continue  # `read_gazebo_joints` reads them
            if child.tag in _READ_TAGS.get(node.tag, ()):
                self._list_unread(child)
            else:
                self._unread[
                    child.tag if node.tag == "robot" else f"{child.tag} of {node.tag}"
                ] += 1


def _names_world(end: XmlNode | None) -> bool:
    return end is not None and end.attributes.get("link", "").strip() == WORLD
