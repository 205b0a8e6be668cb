"""An SDF model as URDF elements: a spanning tree of its joints, and loops for the other joints.

In URDF, a link's frame is at its joint; in SDF, it can be anywhere. Links keep their frames and
numbers; `child_frame` is the pose of a joint on its child.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import field, replace

import numpy as np

from tauloop.common.records import dataclass
from tauloop.formats.imported.motor_elements import driven_names, motor_nodes
from tauloop.formats.sdf.inertia import collision_inertia, is_automatic
from tauloop.formats.sdf.model import MASSLESS_TAG, SdfJoint, SdfModel, SdfReader, descend, is_zero
from tauloop.formats.sdf.nested import WORLD
from tauloop.formats.urdf.parts import UNLIMITED, identifier, roll_pitch_yaw
from tauloop.formats.writing.expression_writer import number
from tauloop.formats.xml.nodes import XmlNode
from tauloop.mechanism.expression import steps_from
from tauloop.mechanism.links.rigid_tree import LinkInertia
from tauloop.mechanism.poses import IDENTITY, FramePose

#: Order in which joints enter the tree: those with few degrees of freedom first.
_TREE_RANKS = {"free": 0, "fixed": 1, "revolute": 2, "prismatic": 2, "universal": 3, "spherical": 4}
_URDF_TYPES = {"free": "floating", "spherical": "fixed", "universal": "fixed"}
_URDF_CUT_TYPES = {"fixed": "link"}
#: An unlimited range in URDF's form.
_OPEN_ENDS = {"lower": f"{-UNLIMITED:g}", "upper": f"{UNLIMITED:g}"}
_DEFAULT_MOMENTS = {"ixx": "1", "iyy": "1", "izz": "1", "ixy": "0", "ixz": "0", "iyz": "0"}
#: For each shape, SDF's elements with URDF's attribute names.
_URDF_SHAPES = {
    "box": ("size",),
    "sphere": ("radius",),
    "cylinder": ("radius", "length"),
    "capsule": ("radius", "length"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SdfTree:
    """An SDF model in URDF's form.

    Attributes:
        robot: the root element.
        joints: joints of the tree, in the order of its elements.
        root: name of the link that is the base.
        notes: notes for the user on what is omitted or assumed.
        omitted_forces: as in `Mechanism`.
    """

    robot: XmlNode
    joints: tuple[SdfJoint, ...]
    root: str
    notes: tuple[str, ...]
    omitted_forces: tuple[str, ...]


def urdf_elements(
    reader: SdfReader, model: SdfModel, wanted: Collection[str] = frozenset()
) -> SdfTree:
    """Return the model as URDF elements; problems are added to the reader.

    Args:
        reader: collects the problems.
        model: SDF model to convert.
        wanted: coordinates to which the caller refers. Their joints close a loop only if no other
            joint can close it.
    """
    joints = {coordinate.removesuffix(".first").removesuffix(".second") for coordinate in wanted}
    return _SdfTreeBuilder(reader, model, frozenset(joints)).tree()


@dataclass(slots=True)
class _SdfTreeBuilder:
    """Builder of the URDF elements of one model.

    Attributes:
        reader: collects the problems.
        model: the SDF model.
        wanted: joints whose coordinates the caller refers to.
        notes: notes for the user.
        frames: pose of each URDF link frame in the SDF link.
        fixed_links: links that are fixed to the base.
        automatic: links whose inertia is computed from collisions.
        omitted: forces that URDF lacks.
    """

    reader: SdfReader
    model: SdfModel
    wanted: frozenset[str]
    notes: list[str] = field(default_factory=list)
    frames: dict[str, FramePose] = field(default_factory=dict)
    fixed_links: frozenset[str] = frozenset()
    automatic: list[str] = field(default_factory=list)
    omitted: list[str] = field(default_factory=list)

    def tree(self) -> SdfTree:
        joints, root = self._joints_and_root()
        links = [*self.model.links] if root != WORLD else [WORLD, *self.model.links]
        tree_joints, cut_joints = self._split_joints(joints, links, root)
        # the base has the model's frame instead of its link's; all other links keep their frames
        self.frames = {root: IDENTITY if root == WORLD else self.model.poses[root].inverse()}
        self.frames |= {joint.child: IDENTITY for joint in tree_joints}
        welds = ((joint.parent, joint.child) for joint in tree_joints if joint.kind == "fixed")
        self.fixed_links = frozenset(steps_from(root, welds))
        robot = XmlNode(
            tag="robot", attributes={"name": self.model.name or "model"}, line=self.model.node.line
        )
        for name in sorted(links, key=lambda name: name != root):
            node = self.model.links.get(name)
            robot.children.append(
                _element("link", self.model.node, name=name)
                if node is None
                else self._link(name, node)
            )
        robot.children.extend([self._joint(joint) for joint in tree_joints])
        robot.children.extend([self._cut(joint) for joint in cut_joints])
        robot.children.extend(motor_nodes(self.model.node))
        if self.automatic:
            self.notes.append(
                f"mass and inertia are computed from collisions: {', '.join(self.automatic)}"
            )
        for joint in tree_joints:
            if joint.kind == "universal" and joint.is_reversed:
                self.notes.append(
                    f"joint {joint.name}: its child {joint.parent!r} is nearer to the base, so its "
                    f"<axis> is {joint.name}{joint.coordinate(0)} here and its <axis2> is "
                    f"{joint.name}{joint.coordinate(1)}"
                )
            if joint.kind == "universal" and joint.has_rotor:
                self.omitted.append(f"the rotor inertia of the universal joint {joint.name}")
        return SdfTree(
            robot=robot,
            joints=tuple(tree_joints),
            root=root,
            notes=tuple(self.notes),
            omitted_forces=tuple(self.omitted),
        )

    def _joints_and_root(self) -> tuple[list[SdfJoint], str]:
        """Return the joints without a joint that only fixes the base, and the base link's name."""
        joints = list(self.model.joints)
        grounded = [joint for joint in joints if joint.parent == WORLD and not joint.is_cut]
        if len(grounded) == 1 and grounded[0].kind == "fixed":
            joints.remove(grounded[0])
            root = grounded[0].child
            world_pose = self.model.poses[root].inverse()
            return [
                joint if joint.parent != WORLD else _moved_to_link(joint, root, world_pose)
                for joint in joints
            ], root
        if grounded or not self.model.links:
            return joints, WORLD
        root = self.model.node.attributes.get("canonical_link", "").strip()
        root = root if root in self.model.links else next(iter(self.model.links))
        self.notes.append(
            f"no joint connects a link to the world, so {root!r}, the model's canonical link, is the base"
        )
        return joints, root

    def _split_joints(
        self, joints: Sequence[SdfJoint], links: Sequence[str], root: str
    ) -> tuple[list[SdfJoint], list[SdfJoint]]:
        """Return the joints of a spanning tree from the root outwards, and the other joints.

        The tree is grown by Kruskal's algorithm in the order of preference of the joints. A joint
        that the tree enters at its child is reversed.
        """
        group = {name: name for name in links}

        def top(name: str) -> str:
            while group[name] != name:
                name = group[name]
            return name

        coupled = {
            name for mimic in self.model.mimics for name, _ in (mimic.follower, mimic.leader)
        }
        driven = driven_names(motor_nodes(self.model.node))

        def order(joint: SdfJoint) -> tuple[int, bool, bool]:
            """Return the sort key: joints with gear, motor or load precede others of equal rank."""
            has_motor = joint.name in driven or identifier(joint.name) in self.wanted
            is_needed = joint.is_loaded or (joint.name in coupled) or has_motor
            rank = min(_TREE_RANKS[joint.kind], 2) if is_needed else _TREE_RANKS[joint.kind]
            is_passive = is_zero(joint.limit("effort") or "-1")
            return (
                rank,
                not (joint.name in coupled or has_motor),
                is_passive and not joint.is_loaded,
            )

        spanning: list[SdfJoint] = []
        for joint in sorted((joint for joint in joints if not joint.is_cut), key=order):
            first, second = top(joint.parent), top(joint.child)
            if first != second:
                group[second] = first
                spanning.append(joint)
        outward_joints: list[SdfJoint] = []
        reached_links, remaining = [root], [joint for joint in joints if joint in spanning]
        while len(reached_links) < len(links):
            next_joint = next(
                (
                    joint
                    for joint in remaining
                    if (joint.parent in reached_links) != (joint.child in reached_links)
                ),
                None,
            )
            if next_joint is None:
                name = next(name for name in links if name not in reached_links)
                next_joint = self._free_joint(name, root)
            else:
                remaining.remove(next_joint)
            outward_joints.append(
                next_joint if next_joint.parent in reached_links else _reversed(next_joint)
            )
            reached_links.append(outward_joints[-1].child)
        cut = [joint for joint in joints if joint not in spanning]
        for joint in cut:
            if joint.name in coupled:
                what = "it closes a loop, so it has no coordinate, but a gear needs one"
                remedy = "close the loop at another joint, for example by making it a ball joint"
                self.reader.problem(joint.node, joint.name, what, remedy)
        return outward_joints, cut

    def _free_joint(self, name: str, root: str) -> SdfJoint:
        """Return a free joint for a link without joints."""
        self.notes.append(f"link {name!r} is not attached to anything and moves freely")
        node, pose = self.model.links[name], self.model.poses[name]
        start = pose if root == WORLD else self.model.poses[root].inverse() @ pose
        return SdfJoint(
            name=f"{name}.free",
            kind="free",
            node=node,
            parent=root,
            child=name,
            frames=(start, IDENTITY),
        )

    def _link(self, name: str, node: XmlNode) -> XmlNode:
        link = _element("link", node, name=name)
        # a fixed link does not move, so its inertia has no effect
        needs_no_inertia = name in self.fixed_links and is_automatic(node.first("inertial"))
        if node.first(MASSLESS_TAG) is None and not needs_no_inertia:
            link.children.append(self._inertial(name, node))
        for tag in ("visual", "collision"):
            for shape in node.all(tag):
                pose = self.frames[name].inverse() @ self.reader.pose_on(name, shape)
                link.children.append(
                    _element(tag, shape, [origin_element(pose, shape), *_shape_elements(shape)])
                )
        return link

    def _inertial(self, name: str, link: XmlNode) -> XmlNode:
        """Return mass and inertia; SDF's defaults are 1 kg and 1 kg m^2."""
        node = link.first("inertial")
        if node is None:
            self.notes.append(
                f"{name}: without <inertial>, SDF gives it 1 kg and 1 kg m^2 about each axis"
            )
        elif not is_automatic(node):
            for tag, default in (
                ("mass", "a mass of 1 kg"),
                ("inertia", "moments of inertia of 1 kg m^2"),
            ):
                if node.first(tag) is None:
                    self.notes.append(f"{name}: without <{tag}>, SDF gives it {default}")
        source = node or link
        if node is not None and is_automatic(node):
            computed = collision_inertia(self.reader, name, link, node)
            return (
                _element("inertial", node)
                if computed is None
                else self._computed(name, node, computed)
            )
        mass, inertia = source.first("mass"), source.first("inertia")
        moments = dict(_DEFAULT_MOMENTS)
        for key in moments:
            moment = None if inertia is None else inertia.first(key)
            moments[key] = moments[key] if moment is None else moment.content
        pose = (
            IDENTITY if node is None else self.frames[name].inverse() @ self.reader.pose(node, name)
        )
        return _element(
            "inertial",
            source,
            [
                origin_element(pose, source),
                _element("mass", mass or source, value="1" if mass is None else mass.content),
                replace(_element("inertia", inertia or source), attributes=moments),
            ],
        )

    def _computed(self, name: str, node: XmlNode, computed: LinkInertia) -> XmlNode:
        """Return an ``<inertial>`` with a computed inertia about the mass center."""
        self.automatic.append(name)
        pose = self.frames[name].inverse() @ FramePose(position=computed.center)
        inertia = pose.rotation @ computed.about_center @ pose.rotation.T
        moments = {
            key: number(float(inertia["xyz".index(key[1]), "xyz".index(key[2])]) + 0.0)
            for key in _DEFAULT_MOMENTS
        }
        return _element(
            "inertial",
            node,
            [
                origin_element(FramePose(position=pose.position), node),
                _element("mass", node, value=number(computed.mass)),
                replace(_element("inertia", node), attributes=moments),
            ],
        )

    def _joint(self, joint: SdfJoint) -> XmlNode:
        """Return a joint of the tree; the axes of a universal joint are x and y of its frame."""
        pose = self.frames[joint.parent].inverse() @ joint.frames[0] @ _axes_rotation(joint)
        kind = _URDF_TYPES.get(joint.kind, joint.kind)
        limits = {tag: joint.limit(tag) for tag in ("lower", "upper", "effort", "velocity")}
        has_range = (
            joint.kind == "prismatic" or limits["lower"] is not None or limits["upper"] is not None
        )
        if joint.kind == "revolute" and not has_range:
            kind = "continuous"
        children = [
            origin_element(pose, joint.node),
            _element("parent", joint.node, link=joint.parent),
            _element("child", joint.node, link=joint.child),
        ]
        if joint.axes and joint.kind != "universal":
            children.append(_element("axis", joint.node, xyz=_text(joint.axes[0])))
            limit_attributes = {tag: text for tag, text in limits.items() if text is not None}
            if has_range:
                limit_attributes = _OPEN_ENDS | limit_attributes
            children.append(replace(_element("limit", joint.node), attributes=limit_attributes))
            losses = {
                tag: descend(joint.node, "axis", "dynamics", tag) for tag in ("damping", "friction")
            }
            loss_attributes = {
                tag: node.content
                for tag, node in losses.items()
                if node is not None and node.content
            }
            children.append(replace(_element("dynamics", joint.node), attributes=loss_attributes))
        return _element("joint", joint.node, children, name=joint.name, type=kind)

    def _cut(self, joint: SdfJoint) -> XmlNode:
        """Return a joint that closes a loop."""
        if joint.is_loaded:
            self.omitted.append(
                f"the losses, springs and rotor of joint {joint.name}, which closes a loop"
            )
        if joint.limit("lower"):
            self.notes.append(f"{joint.name}: its limits are omitted, because it closes a loop")
        children = []
        for side, link, frame in zip(
            ("parent", "child"), (joint.parent, joint.child), joint.frames, strict=True
        ):
            pose = self.frames[link].inverse() @ frame
            children += [
                _element(side, joint.node, link=link),
                replace(origin_element(pose, joint.node), tag=f"{side}_origin"),
            ]
        # a joint with one axis has the same axis on both sides
        for side, axis in zip(("parent", "child"), (joint.axes * 2)[:2], strict=False):
            children.append(_element(f"{side}_axis", joint.node, xyz=_text(axis)))
        kind = _URDF_CUT_TYPES.get(joint.kind, joint.kind)
        return _element("constraint", joint.node, children, name=joint.name, type=kind)


def _moved_to_link(joint: SdfJoint, link: str, world_pose: FramePose) -> SdfJoint:
    """Return a joint on the world as a joint on a link that is fixed to the world."""
    return replace(joint, parent=link, frames=(world_pose @ joint.frames[0], joint.frames[1]))


def child_frame(joint: SdfJoint) -> FramePose:
    """Return the frame of a tree joint on its child; x and y are the axes of a universal joint."""
    return joint.frames[1] @ _axes_rotation(joint)


def _reversed(joint: SdfJoint) -> SdfJoint:
    """Return the same joint from its child to its parent; its coordinate keeps its sign."""
    axes = tuple(-axis for axis in reversed(joint.axes))
    frames = (joint.frames[1], joint.frames[0])
    return replace(
        joint, parent=joint.child, child=joint.parent, frames=frames, axes=axes, is_reversed=True
    )


def _axes_rotation(joint: SdfJoint) -> FramePose:
    """Return the rotation from a universal joint's frame to a frame with its axes as x and y.

    The rotation is the identity for other joints.
    """
    if joint.kind != "universal":
        return IDENTITY
    return FramePose(
        np.column_stack([*joint.axes, np.cross(joint.axes[0], joint.axes[1])]), np.zeros(3)
    )


def _element(
    tag: str, source: XmlNode, children: Sequence[XmlNode] = (), **attributes: str
) -> XmlNode:
    """Return a new element with the file and line of a source element."""
    return XmlNode(
        tag=tag, attributes=attributes, line=source.line, children=list(children), file=source.file
    )


def _text(values: np.ndarray) -> str:
    return " ".join(number(float(value) + 0.0) for value in values)


def origin_element(pose: FramePose, source: XmlNode) -> XmlNode:
    """Return a pose as URDF's ``<origin>``."""
    return _element(
        "origin", source, xyz=_text(pose.position), rpy=_text(np.array(roll_pitch_yaw(pose)))
    )


def _shape_elements(node: XmlNode) -> list[XmlNode]:
    """Return elements for the geometry and color of a visual."""
    shapes = []
    for shape in (descend(node, "geometry") or node).children:
        texts = {child.tag: child.content for child in shape.children}
        if shape.tag == "mesh":
            shapes.append(
                _element(
                    "mesh", shape, filename=texts.get("uri", ""), scale=texts.get("scale", "1 1 1")
                )
            )
        elif shape.tag in _URDF_SHAPES:
            attributes = {key: texts[key] for key in _URDF_SHAPES[shape.tag] if key in texts}
            shapes.append(replace(_element(shape.tag, shape), attributes=attributes))
    elements = [_element("geometry", node, shapes)]
    diffuse = descend(node, "material", "diffuse")
    if diffuse is not None:
        rgba = diffuse.content if len(diffuse.content.split()) != 3 else f"{diffuse.content} 1"
        elements.append(
            _element("material", diffuse, [_element("color", diffuse, rgba=rgba)], name="")
        )
    return elements
