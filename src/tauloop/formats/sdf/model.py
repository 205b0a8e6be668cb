"""A model of an SDF file: links and joints with their frames, at the pose of the file.

SDF (Gazebo) gives the pose of each link relative to other frames, with all joints at zero. A joint
is defined in a frame of its child, which coincides with a frame of its parent at this pose. Loops
are native: a link may be the child of several joints. The rules follow http://sdformat.org/spec
(1.5 to 1.12).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace

import numpy as np

from tauloop.common.errors import Problem
from tauloop.common.records import dataclass
from tauloop.formats.lengths import largest_length
from tauloop.formats.sdf.include import version_note, version_problem
from tauloop.formats.sdf.nested import MODEL, WORLD, flattened, has_joint
from tauloop.formats.sdf.screws import SCREW, without_screws
from tauloop.formats.urdf.constraints import BALL_BODIES, BALL_POINTS, BALL_TAG
from tauloop.formats.urdf.parts import roll_pitch_yaw, rotation
from tauloop.formats.xml.foreign_elements import inventory, plugins, refuse
from tauloop.formats.xml.nodes import XmlNode, XmlReader
from tauloop.mechanism.poses import IDENTITY, FramePose, quaternion_rotation
from tauloop.mechanism.suggestions import listing, suggestion

_MODEL = MODEL
#: Kind of joint by SDF's type.
KIND_OF_SDF_TYPE = {
    "revolute": "revolute",
    "continuous": "revolute",
    "prismatic": "prismatic",
    "fixed": "fixed",
    "ball": "spherical",
    "universal": "universal",
    "revolute2": "universal",
}
#: Type of a joint that couples two other joints.
_GEARBOX = "gearbox"
#: Tauloop's element for a free joint, which SDF lacks.
FREE_TAG = "tauloop:free"
#: Tauloop's element for a massless link.
MASSLESS_TAG = "tauloop:massless"
#: Tauloop's element that marks a joint as one that closes a loop.
CUT_TAG = "tauloop:cut"
#: Elements of an axis for losses and springs.
LOSS_AND_SPRING_TAGS = ("damping", "friction", "spring_stiffness")
#: Drake's elements of a joint.
ROTOR = "drake:rotor_inertia"
GEAR_RATIO = "drake:gear_ratio"
DRAKE_MIMIC = "drake:mimic"
_AXIS_TAGS = ("axis", "axis2")
#: Elements of a model that define a frame. Their names must be unique among each other.
_FRAME_TAGS = ("link", "joint", "frame")
#: Default gravity of a world, m/s^2.
SDF_GRAVITY = (0.0, 0.0, -9.8)
#: Axes count as perpendicular if the cosine of the angle between them is smaller than this.
_RIGHT_ANGLE_COSINE = 1e-9
#: A limit of this size or larger counts as unlimited.
_UNLIMITED = 1e15
_NO_POSE = (0.0,) * 6
#: Smallest distance between a joint's frames that is reported, as a fraction of the largest length.
_MIN_REPORTED_DISTANCE = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class SdfJoint:
    """A joint between two links.

    Attributes:
        name: name of the joint.
        kind: a value of `KIND_OF_SDF_TYPE`, or "free".
        node: element of the joint in the file.
        parent, child: names of the joint's links.
        frames: frame of the joint in the parent link and in the child link.
        axes: unit vectors (3,) along the axes, in the joint's frame.
        is_cut: whether the joint only closes a loop.
        is_reversed: whether parent and child are swapped relative to the file.
    """

    name: str
    kind: str
    node: XmlNode
    parent: str
    child: str
    frames: tuple[FramePose, FramePose]
    axes: tuple[np.ndarray, ...] = ()
    is_cut: bool = False
    is_reversed: bool = False

    def coordinate(self, index: int) -> str:
        """Return the suffix of the name of the coordinate about axis 0 or 1 of the file."""
        if len(self.axes) == 1:
            return ""
        return (".first", ".second")[index ^ self.is_reversed]

    @property
    def has_rotor(self) -> bool:
        """Whether the joint has a rotor inertia, in Drake's element."""
        rotor = self.node.first(ROTOR)
        return rotor is not None and not is_zero(rotor.content)

    def texts(self) -> tuple[str, ...]:
        """Return the texts of the joint's losses, stiffnesses and rotor inertia."""
        nodes = [
            descend(self.node, axis, "dynamics", tag)
            for axis in _AXIS_TAGS
            for tag in LOSS_AND_SPRING_TAGS
        ]
        nodes.append(self.node.first(ROTOR))
        return tuple(node.content for node in nodes if node is not None and node.content)

    @property
    def is_loaded(self) -> bool:
        """Whether losses, a spring or a rotor act on the joint."""
        return not all(is_zero(text) for text in self.texts())

    def limit(self, tag: str, axis: str = "axis") -> str | None:
        """Return the text of a limit; None if there is none or its value means unlimited."""
        node = descend(self.node, axis, "limit", tag)
        if node is None:
            return None
        try:
            value = float(node.content)
        except ValueError:
            return node.content  # the reader of the number reports the fault
        is_negative_bound = tag in ("effort", "velocity") and value < 0.0
        is_unlimited = abs(value) >= _UNLIMITED or is_negative_bound
        return None if is_unlimited else node.content


@dataclass(frozen=True, slots=True, kw_only=True)
class SdfMimic:
    """A gear between two coordinates: q_follower = multiplier q_leader + offset.

    Attributes:
        node: element of the gear in the file.
        follower, leader: (joint, axis index).
        multiplier: ratio of the velocities.
        offset: coordinate of the follower if that of the leader is zero, rad or m.
        mimics: whether the follower is passive, as with `<mimic>`.
    """

    node: XmlNode
    follower: tuple[str, int]
    leader: tuple[str, int]
    multiplier: float
    offset: float
    mimics: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SdfModel:
    """A model after its checks.

    Attributes:
        name: name of the model.
        node: element of the model.
        links: link elements by name.
        poses: poses of the links in the model's frame.
        joints: joints in the order of the file.
        gravity: gravity (3,), m/s^2, in the model's frame.
        notes: notes for the user on what is omitted or assumed.
        mimics: gears between coordinates.
        weightless: names of links on which gravity does not act.
        omitted_forces, unknown_elements: as in `Mechanism`.
        largest_length: largest length among the positions of frames, m.
    """

    name: str
    node: XmlNode
    links: Mapping[str, XmlNode]
    poses: Mapping[str, FramePose]
    joints: tuple[SdfJoint, ...]
    gravity: tuple[float, float, float]
    notes: tuple[str, ...]
    mimics: tuple[SdfMimic, ...] = ()
    weightless: tuple[str, ...] = ()
    omitted_forces: tuple[str, ...] = ()
    unknown_elements: tuple[str, ...] = ()
    largest_length: float = 0.0


def is_zero(text: str) -> bool:
    """Return whether a text is the number zero; False if it is not a number."""
    try:
        return float(text) == 0.0
    except ValueError:
        return False


def descend(node: XmlNode | None, *tags: str) -> XmlNode | None:
    """Return the element at a path of tags."""
    for tag in tags:
        node = None if node is None else node.first(tag)
    return node


def _positions(model: XmlNode) -> Iterator[str]:
    """Yield the positions of link and joint frames, mass centers and ball constraints."""
    for node in model.children:
        if node.tag in _FRAME_TAGS:
            parts = (node, *node.all("inertial"))
            yield from (pose.content for part in parts for pose in part.all("pose"))
        elif node.tag == BALL_TAG:
            yield from (point.content for point in node.children if point.tag in BALL_POINTS)


class SdfReader(XmlReader):
    """Reader of one model, which collects notes and problems."""

    def __init__(
        self,
        file: str,
        model_name: str = "",
        include_problems: Mapping[str, Problem] | None = None,
    ) -> None:
        """Create a reader without notes and problems.

        Args:
            file: name of the file for messages.
            model_name: name of the model, if a world has several machines.
            include_problems: problems of includes in worlds, by URI.
        """
        super().__init__(file)
        self.notes: list[str] = []
        self._model_name = model_name
        self._include_problems = include_problems or {}
        self._omitted: list[str] = []
        self._frames: dict[str, _Frame] = {}
        self._poses: dict[str, FramePose] = {}
        self._largest_length = 0.0

    def model(self, root: XmlNode) -> SdfModel | None:
        """Return the model of a file; None if problems prevent it."""
        if root.tag != "sdf":
            self.problem(
                root, root.tag, f"the root element is <{root.tag}>, not <sdf>", "give an SDF file"
            )
            return None
        model = self._machine(root)
        if model is None:
            return None
        world = next((world for world in root.all("world") if model in world.children), None)
        if what := version_problem(root):
            self.problem(root, "sdf", what, "convert the file with `gz sdf --print FILE`")
            return None
        if note := version_note(root):
            self.notes.append(note)
        if self._include_problems:
            self.notes.append(
                f"omitted includes of the world: {listing(list(self._include_problems), 10)}"
            )
        model = without_screws(self, flattened(self, model), MASSLESS_TAG)
        unknown = self._reject_connections(root, world, model)
        self._largest_length = largest_length(_positions(model))
        if self.flag(model.first("static"), "static"):
            self.problem(
                model,
                model.attributes.get("name", "model"),
                "a static model does not move",
                "remove <static>",
            )
        links = self._named(model, "link")
        self._reject_repeated_names(model)
        self._register_frames(model)
        gearboxes = {
            name: node
            for name, node in self._named(model, "joint").items()
            if node.attributes.get("type", "").strip().lower() == _GEARBOX
        }
        results = [
            self._joint(name, node, links)
            for name, node in self._named(model, "joint").items()
            if name not in gearboxes
        ]
        results += [self._free(node, links) for node in model.all(FREE_TAG)]
        ball_nodes = enumerate(model.all(BALL_TAG), 1)
        results += [self._ball(number, node, model, links) for number, node in ball_nodes]
        joints = tuple(joint for joint in results if joint is not None)
        if not links:
            self.problem(model, "model", "there is no <link>", "give a model with links and joints")
        weightless = self._read_surroundings(world, model, links)
        gravity = self._gravity(world)
        pose = self._pose_in_world(model)
        self._note_pose_in_world(pose)
        # adding zero converts -0.0 to 0.0
        x, y, z = (pose.rotation.T @ np.array(gravity) + 0.0).tolist()
        return SdfModel(
            name=model.attributes.get("name", ""),
            node=model,
            links=links,
            poses={name: self.resolved(name, node) for name, node in links.items()},
            joints=joints,
            gravity=(x, y, z),
            mimics=(*self._mimics(joints), *self._gears(gearboxes, joints, links)),
            weightless=weightless,
            notes=tuple(self.notes),
            omitted_forces=tuple(self._omitted),
            unknown_elements=unknown,
            largest_length=self._largest_length,
        )

    def _gravity(self, world: XmlNode | None) -> tuple[float, ...]:
        """Return the gravity (3,) of a world in the world's frame, m/s^2."""
        node = None if world is None else world.first("gravity")
        if node is None:
            self.notes.append("gravity is SDF's default, 9.8 m/s^2 along -z")
            return SDF_GRAVITY
        return self.numbers(node, "gravity", SDF_GRAVITY)

    def frame_in(self, model: XmlNode, name: str) -> FramePose:
        """Return the pose of a frame of a model in the model's own frame."""
        reader = SdfReader(self.file)
        reader.problems = self.problems
        reader._register_frames(model)
        return reader.resolved(name, model)

    def _reject_repeated_names(self, model: XmlNode) -> None:
        """Add a problem for each element with the same name as an earlier element of its kind."""
        first: dict[tuple[str, str], XmlNode] = {}
        for node in model.children:
            name = node.attributes.get("name", "").strip()
            if node.tag not in _FRAME_TAGS or not name:
                continue
            other = first.setdefault((node.tag, name), node)
            if other is not node:
                what = f"this name is already used by the {node.tag} on line {other.line}"
                self.problem(node, name, what, "rename one of them")

    def _register_frames(self, model: XmlNode) -> None:
        """Register the links, joints and frames of a model by their names."""
        for tag in _FRAME_TAGS:
            for name, node in self._named(model, tag).items():
                if name in self._frames or name in (WORLD, _MODEL):
                    self.problem(node, name, "this name is already used", "rename one of them")
                self._frames[name] = self._frame(tag, node)

    def _machine(self, root: XmlNode) -> XmlNode | None:
        """Return the machine: the model with the name in the options, or the model with joints."""
        models = [
            *root.all("model"),
            *(model for world in root.all("world") for model in world.all("model")),
        ]
        names = [model.attributes.get("name", "?") for model in models]
        if self._model_name:
            what = f"there is no model {self._model_name!r}"
            remedy = f"use one of {listing(names)}" if names else "give a file with a model"
            if self._model_name not in names:
                self.problem(
                    root, "options.model_name", what, suggestion(self._model_name, names) or remedy
                )
                self.problems += self._include_problems.values()
                return None
            return models[names.index(self._model_name)]
        moving = [model for model in models if not self.flag(model.first("static"), "static")]
        if self._include_problems and not moving:
            # the machine is probably in a file that cannot be read
            self.problems += self._include_problems.values()
            return None
        if not models:
            self.problem(
                root, "sdf", "there is no <model>", "give a file with a model, the machine"
            )
            return None
        jointed = [model for model in moving if has_joint(model)]
        machines = jointed or moving or models
        if len(machines) > 1:
            listed = listing([model.attributes.get("name", "?") for model in machines])
            self.problem(
                root,
                "sdf",
                f"there are {len(machines)} models: {listed}",
                "name the machine: --model-name NAME",
            )
            return None
        if len(models) > 1:
            others = [
                name for name, model in zip(names, models, strict=True) if model is not machines[0]
            ]
            self.notes.append(f"other models of the world are omitted: {listing(others, 10)}")
        return machines[0]

    def _reject_connections(
        self, root: XmlNode, world: XmlNode | None, model: XmlNode
    ) -> tuple[str, ...]:
        """Add problems for elements and plugins that connect links, other than joints.

        Unused elements without effect on the motion are listed in the notes.

        Returns:
            Texts of the elements with an unknown effect.
        """
        sections = [
            replace(
                root,
                children=[node for node in root.children if node.tag not in ("world", "model")],
            ),
            model,
        ]
        if world is not None:
            sections.append(
                replace(world, children=[node for node in world.children if node.tag != "model"])
            )
        elements = inventory("sdf", *sections)
        refuse(
            self,
            elements.refused,
            "use joints for loops, <mimic> for gears, and <dynamics> for springs",
        )
        for section in sections:
            for plugin, effect in plugins(section):
                name = plugin.attributes.get("name") or plugin.attributes.get("filename", "plugin")
                if effect == "tie":
                    what = f"the plugin {name!r} connects links during the simulation"
                    self.problem(
                        plugin,
                        name,
                        what,
                        "remove it, or add the joint or gear that it represents",
                    )
                else:
                    self._omitted.append(f"the forces of the plugin {name!r}")
        if elements.harmless:
            tags = sorted(elements.harmless.items())
            counts = ", ".join(f"{tag} ({count})" for tag, count in tags)
            self.notes.append(f"not used: {counts}")
        return elements.unknown_texts()

    def _read_surroundings(
        self, world: XmlNode | None, model: XmlNode, links: Mapping[str, XmlNode]
    ) -> tuple[str, ...]:
        """List fluid forces, reject kinematic links, and return the weightless links."""
        wind = descend(world, "wind", "linear_velocity")
        has_wind = wind is not None and any(self.numbers(wind, "wind", (0.0, 0.0, 0.0)))
        acts_on_all_links = self.flag(model.first("enable_wind"), "enable_wind")
        weightless = []
        for name, node in links.items():
            gravity = node.first("gravity")
            if gravity is not None and gravity.content and not self.flag(gravity, name):
                weightless.append(name)
            acts_on_link = acts_on_all_links or self.flag(node.first("enable_wind"), name)
            if has_wind and acts_on_link:
                self._omitted.append(f"the wind on link {name}")
            for path, what in (
                (("velocity_decay",), "the drag (velocity_decay)"),
                (("inertial", "fluid_added_mass"), "the added mass of a fluid"),
            ):
                numbers = descend(node, *path)
                if numbers is not None and not all(
                    is_zero(child.content) for child in numbers.children
                ):
                    self._omitted.append(f"{what} of link {name}")
            if self.flag(node.first("kinematic"), name):
                what = "a kinematic link follows a prescribed motion, regardless of forces"
                self.problem(node, name, what, "remove <kinematic>")
        return tuple(weightless)

    def _pose_in_world(self, model: XmlNode) -> FramePose:
        """Return the pose of the model's frame in the world."""
        element = model.first("pose")
        reference = "" if element is None else element.attributes.get("relative_to", "").strip()
        if reference not in ("", WORLD):
            what = f"the pose of the model is relative to {reference!r}, which is not supported"
            self.problem(
                model, model.attributes.get("name", "model"), what, "give the pose in the world"
            )
        placement_frame = model.attributes.get("placement_frame", "").strip()
        pose = self.pose(model, "model")
        if not placement_frame:
            return pose
        return pose @ self.resolved(placement_frame, model).inverse()

    def _note_pose_in_world(self, pose: FramePose) -> None:
        """Add a note if the model's frame, the reference of all positions, is not the world's."""
        if pose.is_identity:
            return
        text = " ".join(f"{number:.4g}" for number in (*pose.position, *roll_pitch_yaw(pose)))
        self.notes.append(
            f"positions and gravity refer to the frame of the model, which is at {text} (m; roll, "
            "pitch and yaw, rad) in the world"
        )

    def _named(self, model: XmlNode, tag: str) -> dict[str, XmlNode]:
        """Return the elements with a tag by name; an element without a name gets its line."""
        named: dict[str, XmlNode] = {}
        for node in model.all(tag):
            named.setdefault(
                node.attributes.get("name", "").strip() or f"{tag} on line {node.line}", node
            )
        return named

    # Poses

    def numbers(self, node: XmlNode, where: str, default: tuple[float, ...]) -> tuple[float, ...]:
        """Return the numbers of an element, with the same length as the default."""
        text = node.content
        return self._numbers(node, where, "the text", text, len(default)) if text else default

    def flag(self, node: XmlNode | None, where: str) -> bool:
        """Return whether the text of an element is true."""
        return node is not None and node.content.lower() in ("true", "1")

    def pose(self, node: XmlNode, where: str) -> FramePose:
        """Return the pose in an element as written, relative to the frame that it names."""
        pose = node.first("pose")
        if pose is None or not pose.content:
            return IDENTITY
        if pose.attributes.get("rotation_format", "euler_rpy") == "quat_xyzw":
            x, y, z, *quaternion = self.numbers(pose, where, (*_NO_POSE[:3], 0.0, 0.0, 0.0, 1.0))
            length = float(np.linalg.norm(quaternion))
            if not 0.999 < length < 1.001:
                self.problem(
                    pose,
                    where,
                    f"the quaternion has length {length:.6g}",
                    "give a unit quaternion x y z w",
                )
                return IDENTITY
            R = quaternion_rotation(np.array([quaternion[3], *quaternion[:3]]) / length)
        else:
            x, y, z, roll, pitch, yaw = self.numbers(pose, where, _NO_POSE)
            if self._is_in_degrees(pose):
                roll, pitch, yaw = map(math.radians, (roll, pitch, yaw))
            R = np.eye(3) if roll == pitch == yaw == 0.0 else rotation((roll, pitch, yaw))
        if not np.isfinite([x, y, z, *R.ravel()]).all():
            return IDENTITY
        return FramePose(R, np.array([x, y, z]))

    def pose_on(self, link: str, node: XmlNode) -> FramePose:
        """Return the pose of an element of a link, in the link's frame."""
        element = node.first("pose")
        attributes = {} if element is None else element.attributes
        reference = attributes.get("relative_to", attributes.get("frame", "")).strip()
        pose = self.pose(node, link)
        if not reference:
            return pose
        return self.resolved(link, node).inverse() @ self.resolved(reference, node) @ pose

    def _is_in_degrees(self, pose: XmlNode) -> bool:
        return pose.attributes.get("degrees", "false").lower() in ("true", "1")

    def _frame(self, tag: str, node: XmlNode) -> _Frame:
        """Return the frame that an element defines.

        By default its pose refers to the child link of a joint, or to the model's frame.
        """
        pose = node.first("pose")
        attributes = {} if pose is None else pose.attributes
        relative = attributes.get("relative_to", attributes.get("frame", "")).strip()
        child = node.first("child")
        attached = node.attributes.get("attached_to", "").strip() if tag == "frame" else ""
        if not relative and tag == "joint" and child is not None:
            relative = child.content
        return _Frame(node=node, relative=relative or attached or _MODEL, attached=attached)

    def resolved(self, name: str, where: XmlNode, visited: tuple[str, ...] = ()) -> FramePose:
        """Return the pose of a frame in the model's frame; the identity after a problem."""
        if name in (_MODEL, WORLD):
            return IDENTITY
        if name in self._poses:
            return self._poses[name]
        frame = self._frames.get(name)
        if frame is None or name in visited:
            what = (
                "poses depend on each other in a cycle" if frame else f"there is no frame {name!r}"
            )
            self.problem(where, name, what, "correct `relative_to`")
            return IDENTITY
        reference_pose = self.resolved(frame.relative, frame.node, (*visited, name))
        pose = reference_pose @ self.pose(frame.node, name)
        self._poses[name] = pose
        return pose

    def _link_of(self, name: str, node: XmlNode, links: Mapping[str, XmlNode]) -> str:
        """Return the link with a name, or the link to which the frame with this name is attached.

        The result is empty after a problem.
        """
        visited: list[str] = []
        start = name
        while name in self._frames and name not in links and name not in visited:
            visited.append(name)
            frame = self._frames[name]
            child = frame.node.first("child")
            name = (
                child.content if frame.node.tag == "joint" and child is not None else frame.attached
            )
        if name in links or name == WORLD:
            return name
        self.problem(
            node,
            node.attributes.get("name", node.tag),
            f"{start!r} is neither a link nor a frame on one",
            "name a link",
        )
        return ""

    # Joints

    def joint_between(self, node: XmlNode, links: Mapping[str, FramePose]) -> SdfJoint | None:
        """Return a new joint between links at these poses in the model; None on an error."""
        name = self.text(node, node.tag, "name")
        if name in links or not name:
            if name:
                self.problem(node, name, "a link has the same name", "rename one of them")
            return None
        self._poses |= links
        self._frames |= {link: _Frame(node=node, relative=_MODEL) for link in links}
        self._frames[name] = self._frame("joint", node)
        return self._joint(name, node, dict.fromkeys(links, node))

    def _joint(self, name: str, node: XmlNode, links: Mapping[str, XmlNode]) -> SdfJoint | None:
        """Return the joint of an element, or None after adding a problem."""
        word = self.text(node, name, "type")
        remedy = f"use one of {listing((*KIND_OF_SDF_TYPE, SCREW, _GEARBOX), 10)}"
        what = f"joints of type {word!r} are not supported"
        kind = (
            self.look_up(node, name, word.lower(), KIND_OF_SDF_TYPE, what, remedy) if word else None
        )
        ends = []
        for tag in ("parent", "child"):
            element = node.first(tag)
            if element is None or not element.content:
                self.problem(node, name, f"has no <{tag}>", f"add <{tag}>LINK</{tag}>")
                ends.append("")
            else:
                ends.append(self._link_of(element.content, node, links))
        parent, child = ends
        if child == WORLD:
            self.problem(
                node,
                name,
                "its child is the world, which SDF does not allow",
                "swap <parent> and <child>, and adapt the pose and axis of the joint",
            )
            return None
        if parent and parent == child:
            self.problem(
                node,
                name,
                f"connects {parent!r} to {child!r}",
                "name two different links",
            )
            return None
        if kind is None or not parent or not child:
            return None
        joint_pose = self.resolved(name, node)
        frames = (
            self.resolved(parent, node).inverse() @ joint_pose,
            self.resolved(child, node).inverse() @ joint_pose,
        )
        pose, element = node.first("pose"), node.first("child")
        if (
            element is not None
            and element.content == child
            and self._frames[name].relative == child
        ):
            frames = (frames[0], self.pose(node, name) if pose is not None else IDENTITY)
        count = {"revolute": 1, "prismatic": 1, "universal": 2}.get(kind, 0)
        axes = tuple(self._axis(node, name, tag, joint_pose) for tag in _AXIS_TAGS[:count])
        if count == 2 and abs(axes[0] @ axes[1]) > _RIGHT_ANGLE_COSINE:
            what = "its two axes are not perpendicular"
            self.problem(node, name, what, "write two revolute joints with a link between them")
        self._note_frame_distance(name, node, joint_pose, links)
        return SdfJoint(
            name=name,
            kind=kind,
            node=node,
            parent=parent,
            child=child,
            frames=frames,
            axes=axes,
            is_cut=node.first(CUT_TAG) is not None,
        )

    def _note_frame_distance(
        self, name: str, node: XmlNode, joint_pose: FramePose, links: Mapping[str, XmlNode]
    ) -> None:
        """Add a note if <parent> names a frame that does not coincide with the joint.

        In SDF, a joint without a pose is at the child's frame.
        """
        parent, child = node.first("parent"), node.first("child")
        if parent is None or child is None or parent.content in (*links, WORLD, _MODEL):
            return
        if node.first("pose") is not None:
            return
        parent_pose = self.resolved(parent.content, node)
        distance = float(np.linalg.norm(parent_pose.position - joint_pose.position))
        if distance > _MIN_REPORTED_DISTANCE * self._largest_length:
            self.notes.append(
                f"joint {name}: the distance between its frames {parent.content!r} and "
                f"{child.content!r} is {distance:.4g} m in the file's pose; as in SDF, the joint is "
                "at the child's frame"
            )

    def _free(self, node: XmlNode, links: Mapping[str, XmlNode]) -> SdfJoint | None:
        """Return the free joint of Tauloop's element, between frames of two links."""
        name = self.text(node, FREE_TAG, "name")
        parent = self.text(node, FREE_TAG, "parent")
        child = self.text(node, FREE_TAG, "child")
        if child not in links or parent not in (*links, WORLD) or child == parent:
            self.problem(
                node,
                name or FREE_TAG,
                f"{parent!r} and {child!r} are not two different links",
                "correct <parent> and <child>",
            )
            return None
        start = self.resolved(parent, node).inverse() @ self.resolved(child, node)
        return SdfJoint(
            name=name, kind="free", node=node, parent=parent, child=child, frames=(start, IDENTITY)
        )

    def _axis(self, node: XmlNode, name: str, tag: str, joint_pose: FramePose) -> np.ndarray:
        """Return a joint's axis (3,) as a unit vector in the joint's frame."""
        xyz = descend(node, tag, "xyz")
        if xyz is None:
            self.notes.append(f"joint {name}: <{tag}> has no <xyz>; SDF's default is z")
        axis = np.array(
            [0.0, 0.0, 1.0] if xyz is None else self.numbers(xyz, name, (0.0, 0.0, 1.0))
        )
        length = float(np.linalg.norm(axis))
        if not length > 0.0:
            self.problem(
                xyz or node, name, "the axis has length zero", "give a direction, such as 0 0 1"
            )
            return np.array([0.0, 0.0, 1.0])
        frame = "" if xyz is None else xyz.attributes.get("expressed_in", "").strip()
        if self.flag(descend(node, tag, "use_parent_model_frame"), name):
            frame = _MODEL
        if length != 1.0:
            axis = axis / length
        if not frame:
            return axis
        return joint_pose.rotation.T @ self.resolved(frame, node).rotation @ axis

    # Gears and loops of Drake

    def _ball(
        self, number: int, node: XmlNode, model: XmlNode, links: Mapping[str, XmlNode]
    ) -> SdfJoint | None:
        """Return Drake's ball constraint as a joint that closes a loop."""
        name = f"ball_constraint_{number}"
        while name in self._frames:
            name += "_"
        ends: list[str] = []
        frames: list[FramePose] = []
        for body_tag, point_tag in zip(BALL_BODIES, BALL_POINTS, strict=True):
            body, point = node.first(body_tag), node.first(point_tag)
            if body is None or point is None:
                tag = body_tag if body is None else point_tag
                self.problem(node, name, f"has no <{tag}>", f"add <{tag}>")
                return None
            link = self._link_of(body.content, node, links)
            frame = FramePose(position=np.array(self.numbers(point, name, (0.0, 0.0, 0.0))))
            if body.content == WORLD:
                frame = self._pose_in_world(model).inverse() @ frame
            elif link and body.content != link:
                frame = (
                    self.resolved(link, node).inverse() @ self.resolved(body.content, node) @ frame
                )
            ends.append(link)
            frames.append(frame)
        if not all(ends):
            return None
        if ends[0] == ends[1]:
            self.problem(node, name, f"both ends are on {ends[0]!r}", "name two different links")
            return None
        parent, child = ends
        pair = (frames[0], frames[1])
        if child == WORLD:
            parent, child, pair = child, parent, (pair[1], pair[0])
        return SdfJoint(
            name=name,
            kind="spherical",
            node=node,
            parent=parent,
            child=child,
            frames=pair,
            is_cut=True,
        )

    def _mimics(self, joints: Sequence[SdfJoint]) -> tuple[SdfMimic, ...]:
        """Return the gears of all joints, from SDF's <mimic> and Drake's <drake:mimic>."""
        known = {joint.name: joint for joint in joints if joint.axes}
        mimics: list[SdfMimic] = []
        for joint in joints:
            drake = joint.node.first(DRAKE_MIMIC) if joint.node.tag == "joint" else None
            if drake is not None and joint.axes:
                multiplier = self.number(drake, joint.name, "multiplier", 1.0)
                offset = self.number(drake, joint.name, "offset", 0.0)
                leader = (self.text(drake, joint.name, "joint"), 0)
                mimics += self._mimic(drake, (joint.name, 0), leader, multiplier, offset, known)
            for index, tag in enumerate(_AXIS_TAGS[: len(joint.axes)]):
                node = descend(joint.node, tag, "mimic")
                if node is None:
                    continue
                axis = node.attributes.get("axis", "axis").strip()
                if axis not in _AXIS_TAGS:
                    self.problem(
                        node, joint.name, f"{axis!r} is not an axis", "write axis or axis2"
                    )
                    continue
                leader = (self.text(node, joint.name, "joint"), _AXIS_TAGS.index(axis))
                multiplier = self.child_number(node, joint.name, "multiplier", 1.0)
                offset = self.child_number(node, joint.name, "offset", 0.0)
                reference = self.child_number(node, joint.name, "reference", 0.0)
                offset -= multiplier * reference
                mimics += self._mimic(node, (joint.name, index), leader, multiplier, offset, known)
            follows = joint.node.tag == "joint" and (
                drake is not None or descend(joint.node, "axis", "mimic")
            )
            if follows and not joint.axes:
                what = f"a {joint.kind} joint cannot follow another"
                self.problem(
                    joint.node,
                    joint.name,
                    what,
                    "remove <mimic>; only joints that rotate or slide can follow another",
                )
        return tuple(mimics)

    def _mimic(
        self,
        node: XmlNode,
        follower: tuple[str, int],
        leader: tuple[str, int],
        multiplier: float,
        offset: float,
        known: Mapping[str, SdfJoint],
    ) -> list[SdfMimic]:
        """Return one checked gear (empty after adding a problem)."""
        name = follower[0]
        other, index = leader
        if not other:
            return []
        if other not in known:
            remedy = suggestion(other, known) or "name a joint that rotates or slides"
            self.problem(
                node,
                name,
                f"it mimics {other!r}, which is not a joint that rotates or slides",
                remedy,
            )
            return []
        if index >= len(known[other].axes):
            self.problem(
                node,
                name,
                f"it mimics the second axis of {other!r}, which has only one axis",
                'write axis="axis"',
            )
            return []
        if follower == leader:
            self.problem(node, name, "it mimics itself", "remove <mimic>")
            return []
        return [
            SdfMimic(
                node=node, follower=follower, leader=leader, multiplier=multiplier, offset=offset
            )
        ]

    def _gears(
        self,
        gearboxes: Mapping[str, XmlNode],
        joints: Sequence[SdfJoint],
        links: Mapping[str, XmlNode],
    ) -> tuple[SdfMimic, ...]:
        """Return the gears of gearbox joints, each between two revolute joints of a reference body.

        theta_2 = -gearbox_ratio theta_1, with the angles theta_1 of the parent about `axis` and
        theta_2 of the child about `axis2`, both relative to the reference body.

        Source: SDF specification, elements gearbox_ratio and gearbox_reference_body of a joint.
        """
        gears: list[SdfMimic] = []
        for name, node in gearboxes.items():
            elements = [node.first(tag) for tag in ("gearbox_reference_body", "parent", "child")]
            if any(element is None or not element.content for element in elements):
                what = "a gearbox without <gearbox_reference_body>, <parent> or <child>"
                self.problem(node, name, what, "name the three links")
                continue
            bodies = [
                self._link_of(element.content, node, links) for element in elements if element
            ]
            if not all(bodies):
                continue
            base, *ends = bodies
            pose = self.resolved(name, node)
            hinges = []
            for end, tag in zip(ends, _AXIS_TAGS, strict=True):
                direction = pose.rotation @ self._axis(node, name, tag, pose)
                hinges.append(self._hinge_between(node, name, base, end, direction, joints))
            first, second = hinges
            if first is None or second is None:
                continue
            leader, leader_sign = first
            follower, follower_sign = second
            ratio = self.child_number(node, name, "gearbox_ratio", 1.0)
            gears.append(
                SdfMimic(
                    node=node,
                    follower=(follower, 0),
                    leader=(leader, 0),
                    multiplier=-ratio * leader_sign / follower_sign,
                    offset=0.0,
                    mimics=False,
                )
            )
        return tuple(gears)

    def _hinge_between(
        self,
        node: XmlNode,
        name: str,
        base: str,
        end: str,
        direction: np.ndarray,
        joints: Sequence[SdfJoint],
    ) -> tuple[str, float] | None:
        """Return the revolute joint of a gearbox between two links, and the sign of its angle.

        Args:
            node: element of the gearbox.
            name: name of the gearbox.
            base: reference body.
            end: the other link.
            direction: axis (3,) of the angle in the model's frame.
            joints: joints of the model.
        """
        for joint in joints:
            if joint.kind != "revolute" or {joint.parent, joint.child} != {base, end}:
                continue
            axis = self.resolved(joint.name, node).rotation @ joint.axes[0]
            cosine = float(axis @ direction) * (1.0 if joint.parent == base else -1.0)
            if abs(abs(cosine) - 1.0) < _RIGHT_ANGLE_COSINE:
                return joint.name, math.copysign(1.0, cosine)
        what = f"no hinge along the given axis connects {end!r} to the reference body {base!r}"
        self.problem(node, name, what, "replace the gear by <mimic> of a joint axis")
        return None

    def child_number(self, node: XmlNode, where: str, tag: str, default: float) -> float:
        """Return the number in a child element; the default if there is none."""
        child = node.first(tag)
        return default if child is None else self.numbers(child, where, (default,))[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Frame:
    """A frame of a model.

    Attributes:
        node: element that defines the frame.
        relative: name of the frame to which its pose refers.
        attached: name of the frame to which it is attached; empty except for <frame>.
    """

    node: XmlNode
    relative: str
    attached: str = field(default="")
