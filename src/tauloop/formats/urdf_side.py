"""The side file of a URDF: what URDF cannot say, as YAML.

.. code-block:: yaml

    format: tauloop-urdf-side/1
    provenance: {status: given, source: data sheet}     # of every value below that has none of its own; or chosen
    gravity: [0, 0, -9.81 m/s^2]                        # in the frame of the root link
    platform:
      body: tool0
      tool: {at: [0, 0, 0.1 m], turn: [{z: 90 deg}]}    # tool centre point on that body
      independent: [joint_1, joint_2]                   # default: every joint
    offsets: {joint_2: -90 deg}                         # URDF's coordinate = measured coordinate + offset
    joints:
      joint_1: {friction: {viscous: 0 N m s/rad, coulomb: 0 N m, offset: 0 N m}, inertia: 0 kg m^2}
      joint_2: {spring: {stiffness: 9 N m/rad, rest: 10 deg}, limits: [-inf, 90 deg]}   # of the measured coordinate
      joint_3: {limits: {drawing: [-90 deg, 90 deg]}}   # which it may leave; a list alone, and URDF's own, are stops
    floating:                                           # the frame on the parent that its coordinates are counted from
      platform: {at: [0, 0, 0.1 m], turn: [], freedoms: {x: {limits: [-1 m, 1 m]}, wx: {friction: {viscous: 0}}}}
    couplings:
      belt: {of: {joint_1: 1, joint_2: 2, joint_3: -1}, offset: 5 deg}    # sum of ratio_j q_j = offset
      clamp: {of: {joint_4: 1}, offset: 30 deg}                           # a joint that is held
    losses:
      cable: {of: {joint_1: 1, joint_2: -1}, friction: {viscous: 0 N m s/rad}}    # friction of a combination of joints
    actuators:
      motor_1: {on: joint_1, ratio: 32, inertia: 0 kg m^2, friction: {coulomb: 0 N m}, force: 4 N m, speed: 3000 rpm}
      motor_2: {drives: {joint_1: 1, joint_2: -1}}      # p = sum of ratio_j q_j

    closed_loop: [[frame_A, frame_B]]                   # loops, as in Gepetto's robot.yaml (`loop_side`)
    type: [6d]

A motor may be called as the joint that it alone drives. A value is a literal ``NUMBER UNIT`` or ``{value, status,
source, bounds, note}``; ``provenance`` may stand in any mapping. Friction, rotor inertia and ratios are leaf parameters
even where they are zero: they are unknowns to be identified. Offsets go into the joints' frames, so that the
mechanism's coordinates are the measured ones.

A file of Gepetto's form, without ``format``, is read too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tauloop.errors import DescriptionError
from tauloop.formats.loop_side import (
    CLOSURE_KEYS,
    KEYS,
    is_loop_side,
    read_closures,
    read_motors,
    with_joint_types,
)
from tauloop.formats.side_freedoms import SLIDING, TURNING, FreedomReader, Motion
from tauloop.formats.side_values import Origin, SideValues, unlimited
from tauloop.formats.urdf_builder import Floating, JointExtra
from tauloop.formats.urdf_parts import UrdfJoint, UrdfLoop, UrdfTree, identifier, rotation
from tauloop.mechanism import units, yaml_nodes
from tauloop.mechanism.expression import ONE, ZERO, Expression, evaluate
from tauloop.mechanism.model import (
    JOINT_KINDS,
    Actuator,
    AxisName,
    Coupling,
    Loss,
    Parameter,
    Placement,
    Turn,
    Vector,
)
from tauloop.mechanism.rotation import rotation_matrix
from tauloop.mechanism.suggestions import listing, suggestion

FORMAT = "tauloop-urdf-side/1"
_TOP = (
    "format",
    "gravity",
    "platform",
    "offsets",
    "joints",
    "floating",
    "couplings",
    "losses",
    "actuators",
    *CLOSURE_KEYS,
)
_AXES: tuple[AxisName, ...] = ("x", "y", "z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """What a side file says; `actuators`, `motors`, `tool` and `independent` are None where it does not say.

    `motors` are the joints that have a motor of ratio 1, where that is all the file says about motors. `convention` is
    whose gravity holds where the file says none; empty where it has none of its own. `tree` is the URDF, with joints of
    other kinds where the file puts them.
    """

    tree: UrdfTree
    gravity: Vector | None = None
    tool: Placement | None = None
    independent: tuple[str, ...] | None = None
    joints: Mapping[str, JointExtra] = field(default_factory=dict)
    couplings: tuple[Coupling, ...] = ()
    losses: tuple[Loss, ...] = ()
    actuators: tuple[Actuator, ...] | None = None
    parameters: tuple[Parameter, ...] = ()
    loops: tuple[UrdfLoop, ...] = ()
    motors: tuple[str, ...] | None = None
    convention: str = ""
    notes: tuple[str, ...] = ()


def read_side(path: str | Path, tree: UrdfTree) -> Side:
    """Read the side file of a URDF.

    Args:
        path: the YAML file.
        tree: the URDF, whose names the side file uses.

    Raises:
        DescriptionError: everything that is wrong, each with key path and line.
    """
    values = SideValues(str(path))
    node = yaml_nodes.parse_nodes(yaml_nodes.read_text(Path(path)), str(path))
    side = _loop_side(node, tree, values) if is_loop_side(node) else _SideReader(values, tree).side(node)
    if values.problems:
        raise DescriptionError(sorted(values.problems, key=lambda problem: problem.line or 0))
    return side


def _loop_side(node: yaml_nodes.Node, tree: UrdfTree, values: SideValues) -> Side:
    found, _ = values.fields(node, "", KEYS, Origin())
    tree = with_joint_types(found, tree, values)
    return Side(
        tree=tree,
        loops=read_closures(found, tree, values),
        motors=read_motors(found, tree, values),
        convention="Pinocchio",
    )


class _SideReader:
    """One pass over the sections."""

    def __init__(self, values: SideValues, tree: UrdfTree) -> None:
        self._values = values
        self._acting = FreedomReader(values)
        self._tree = tree
        self._motions = {
            joint.name: TURNING if joint.kind == "revolute" else SLIDING
            for joint in tree.joints
            if joint.kind in ("revolute", "prismatic")
        }

    def side(self, node: yaml_nodes.Node) -> Side:
        name = Path(self._values.file).name
        top, origin = self._values.fields(node, "", _TOP, Origin(source=name))
        notes: list[str] = []
        if isinstance(node, yaml_nodes.Mapping):
            self._check_format(node)
            if node.get("provenance") is None:
                notes.append(f"{name} states no provenance: its values are {origin.status}")
        offsets = self._offsets(top.get("offsets"), origin)
        tool, independent = self._platform(top.get("platform"), origin)
        return Side(
            tree=self._tree,
            notes=tuple(notes),
            gravity=self._vector(top["gravity"], "gravity", units.ACCELERATION, "gravity", origin)
            if "gravity" in top
            else None,
            tool=tool,
            independent=independent,
            joints=self._joints(top.get("joints"), offsets, origin) | self._floating(top.get("floating"), origin),
            couplings=self._couplings(top.get("couplings"), origin),
            losses=self._losses(top.get("losses"), origin),
            actuators=self._actuators(top["actuators"], origin) if "actuators" in top else None,
            parameters=tuple(self._values.parameters),
            loops=read_closures(top, self._tree, self._values),
        )

    def _check_format(self, node: yaml_nodes.Mapping) -> None:
        found = node.get("format")
        if not isinstance(found, yaml_nodes.Scalar) or found.text != FORMAT:
            what = "missing" if found is None else f"is not {FORMAT}"
            self._values.problem(found or node, "format", what, f"write `format: {FORMAT}`")

    def _vector(
        self, node: yaml_nodes.Node, where: str, dimension: units.Dimension, group: str, origin: Origin
    ) -> Vector:
        numbers: list[Expression] = [ZERO, ZERO, ZERO]
        for k, item in enumerate(self._values.items(node, where, 3)):
            quantity = self._values.quantity(item, f"{where}[{k}]", [dimension], origin)
            if quantity is not None:
                numbers[k] = self._values.structural(f"{where}[{k}]", quantity, group)
        x, y, z = numbers
        return x, y, z

    def _known(self, name: str, known: Iterable[str], node: yaml_nodes.Node, where: str, kind: str) -> bool:
        known = tuple(known)
        if name in known:
            return True
        remedy = suggestion(name, known) or f"there are {listing(known) or 'none'}"
        self._values.problem(node, where, f"there is no {kind} {name!r}", remedy)
        return False

    def _platform(
        self, node: yaml_nodes.Node | None, origin: Origin
    ) -> tuple[Placement | None, tuple[str, ...] | None]:
        found, origin = self._values.fields(node, "platform", ("body", "tool", "independent"), origin)
        links = [link.name for link in self._tree.links if link.name != self._tree.root]
        tool = independent = None
        if "body" in found:
            body = self._values.text(found["body"], "platform.body")
            name = self._tree.link_name(body)
            if body and self._known(name, links, found["body"], "platform.body", "moving link"):
                tool = self._tool(name, found.get("tool"), origin)
        elif node is not None:
            self._values.problem(node, "platform.body", "missing", f"name one of {listing(links)}")
        if "independent" in found:
            where, velocities = "platform.independent", self._velocities()
            items = self._values.items(found["independent"], where)
            names = [self._values.text(item, f"{where}[{k}]") for k, item in enumerate(items)]
            for k, (name, item) in enumerate(zip(names, items, strict=True)):
                if name and self._known(name, velocities, item, f"{where}[{k}]", "coordinate") and name in names[:k]:
                    self._values.problem(item, f"{where}[{k}]", f"{name!r} is listed twice", "remove one")
            independent = tuple(names)
        return tool, independent

    def _velocities(self) -> list[str]:
        return [
            f"{joint.name}.{suffix}" if suffix else joint.name
            for joint in self._tree.joints
            for suffix in JOINT_KINDS[joint.kind].velocities
        ]

    def _tool(self, body: str, node: yaml_nodes.Node | None, origin: Origin) -> Placement:
        found, origin = self._values.fields(node, "platform.tool", ("at", "turn"), origin)
        return self._placement(body, found, "platform.tool", origin)

    def _placement(self, body: str, found: Mapping[str, yaml_nodes.Node], path: str, origin: Origin) -> Placement:
        placement = Placement(body=body)
        if "at" in found:
            at = self._vector(found["at"], f"{path}.at", units.LENGTH, "geometry", origin)
            placement = Placement(body=body, position=at)
        if "turn" not in found:
            return placement
        turns = []
        for k, item in enumerate(self._values.items(found["turn"], f"{path}.turn")):
            where = f"{path}.turn[{k}]"
            turn, origin_of_turn = self._values.fields(item, where, _AXES, origin)
            for axis in _AXES:
                if axis in turn:
                    angle = self._values.quantity(turn[axis], f"{where}.{axis}", [units.ANGLE], origin_of_turn)
                    if angle is not None and angle.value != 0.0:
                        turns.append(Turn(axis, self._values.leaf(f"{where}.{axis}", angle, "geometry")))
            if len(turn) != 1:
                self._values.problem(item, where, f"turns about {len(turn)} axes", "write one axis a turn: {z: 90 deg}")
        return Placement(body=body, position=placement.position, turns=tuple(turns))

    def _offsets(self, node: yaml_nodes.Node | None, origin: Origin) -> dict[str, tuple[Expression, float]]:
        found, origin = self._values.fields(node, "offsets", self._motions, origin)
        offsets = {}
        for name, item in found.items():
            where = f"offsets.{name}"
            quantity = self._values.quantity(item, where, [self._motions[name].coordinate], origin)
            if quantity is not None:
                offsets[name] = (self._values.structural(where, quantity, "geometry"), quantity.value)
        return offsets

    def _joints(
        self, node: yaml_nodes.Node | None, offsets: Mapping[str, tuple[Expression, float]], origin: Origin
    ) -> dict[str, JointExtra]:
        found, origin = self._values.fields(node, "joints", self._motions, origin)
        extras = {}
        for name, motion in self._motions.items():
            where = f"joints.{name}"
            extra, extra_origin = self._values.fields(
                found.get(name), where, ("friction", "inertia", "spring", "limits"), origin
            )
            offset, value = offsets.get(name, (ZERO, 0.0))
            friction = self._acting.friction(extra.get("friction"), where, name, motion, extra_origin)
            inertia = self._acting.inertia(extra.get("inertia"), where, name, motion, extra_origin)
            extras[name] = JointExtra(
                offset=offset,
                offset_value=value,
                friction=friction,
                inertia=inertia,
                spring=self._acting.spring(extra.get("spring"), where, name, motion, extra_origin),
                limits=self._acting.limits(extra.get("limits"), where, motion, extra_origin),
            )
        return extras

    def _floating(self, node: yaml_nodes.Node | None, origin: Origin) -> dict[str, JointExtra]:
        joints = {joint.name: joint for joint in self._tree.joints if joint.kind == "free"}
        found, origin = self._values.fields(node, "floating", joints, origin)
        extras = {}
        for name, item in found.items():
            where = f"floating.{name}"
            parts, own = self._values.fields(item, where, ("at", "turn", "freedoms"), origin)
            frame = self._placement("", parts, where, own)
            words = JOINT_KINDS["free"].velocities
            nodes, own = self._values.fields(parts.get("freedoms"), f"{where}.freedoms", words, own)
            freedoms = tuple(
                self._acting.freedom(nodes.get(word), f"{where}.freedoms.{word}", f"{name}.{word}", motion, own)
                for word, motion in zip(words, (SLIDING,) * 3 + (TURNING,) * 3, strict=True)
            )
            reference = self._start(frame, joints[name])
            extras[name] = JointExtra(floating=Floating(frame=frame, reference=reference, freedoms=freedoms))
        return extras

    def _start(self, frame: Placement, joint: UrdfJoint) -> tuple[float, ...]:
        """Coordinates (7,) of a floating joint, counted from a frame, where the URDF puts it."""
        from scipy.spatial.transform import Rotation  # all of scipy.spatial, for a rare case

        known = {parameter.name: parameter.value for parameter in self._values.parameters}
        R = rotation_matrix([(turn.axis, float(evaluate(turn.angle, known))) for turn in frame.turns])
        at = np.array([float(evaluate(x, known)) for x in frame.position])
        x, y, z = (float(value) for value in R.T @ (np.array(joint.xyz) - at))
        turn = Rotation.from_matrix(R.T @ rotation(joint.rpy)).as_quat(canonical=True, scalar_first=True)
        return (x, y, z, *(float(value) for value in turn))

    def _couplings(self, node: yaml_nodes.Node | None, origin: Origin) -> tuple[Coupling, ...]:
        names = [entry.key for entry in node.entries] if isinstance(node, yaml_nodes.Mapping) else []
        found, origin = self._values.fields(node, "couplings", names, origin)
        couplings = []
        for name, item in found.items():
            where = f"couplings.{name}"
            parts, own = self._values.fields(item, where, ("of", "offset"), origin)
            remedy = "write `belt: {of: {joint_1: 1, joint_2: -2}}`, one kind of sum; with one joint it is held"
            found_terms = self._combination(item, parts.get("of"), name, where, remedy, own)
            if found_terms is None:
                continue
            terms, total = found_terms
            offset: Expression = ZERO
            if "offset" in parts:
                quantity = self._values.quantity(parts["offset"], f"{where}.offset", [total], own)
                if quantity is not None:
                    offset = self._values.structural(f"{name}.offset", quantity, "geometry")
            couplings.append(Coupling(name=name, terms=terms, offset=offset, turns=total == units.ANGLE))
        return tuple(couplings)

    def _losses(self, node: yaml_nodes.Node | None, origin: Origin) -> tuple[Loss, ...]:
        names = [entry.key for entry in node.entries] if isinstance(node, yaml_nodes.Mapping) else []
        found, origin = self._values.fields(node, "losses", names, origin)
        losses = []
        for name, item in found.items():
            where = f"losses.{name}"
            parts, own = self._values.fields(item, where, ("of", "friction"), origin)
            remedy = "write `cable: {of: {joint_1: 1, joint_2: -1}, friction: {coulomb: 2 N m}}`, one kind of sum"
            combination = self._combination(item, parts.get("of"), name, where, remedy, own)
            if "friction" not in parts:
                self._values.problem(item, f"{where}.friction", "missing", remedy)
            elif combination is not None:
                terms, total = combination
                motion = TURNING if total == units.ANGLE else SLIDING
                friction = self._acting.friction(parts["friction"], where, name, motion, own)
                losses.append(Loss(name=name, terms=terms, friction=friction, turns=total == units.ANGLE))
        return tuple(losses)

    def _combination(
        self, node: yaml_nodes.Node, of: yaml_nodes.Node | None, name: str, where: str, remedy: str, origin: Origin
    ) -> tuple[tuple[tuple[str, Expression], ...], units.Dimension] | None:
        """Joints with their ratios, and the dimension of the sum; None where it is none, which is noted."""
        terms, sums = [], set()
        ratios, origin = self._values.fields(of, f"{where}.of", self._motions, origin)
        for joint, item in ratios.items():
            coordinate = self._motions[joint].coordinate
            ratio, dimension = self._ratio(item, f"{name}.of.{joint}", f"{where}.of.{joint}", coordinate, origin)
            terms.append((joint, ratio))
            sums.add(dimension)
        if len(sums) != 1 or identifier(name) != name:
            what = "adds angles to lengths" if len(sums) > 1 else "names no joint"
            what = what if identifier(name) == name else f"{name!r} is not a name"
            self._values.problem(node, where, what, remedy)
            return None
        return tuple(terms), sums.pop()

    def _actuators(self, node: yaml_nodes.Node, origin: Origin) -> tuple[Actuator, ...]:
        names = [entry.key for entry in node.entries] if isinstance(node, yaml_nodes.Mapping) else []
        found, origin = self._values.fields(node, "actuators", names, origin)
        taken = {link.name for link in self._tree.links} | {joint.name for joint in self._tree.joints}
        actuators: list[Actuator] = []
        for name, item in found.items():
            where = f"actuators.{name}"
            if identifier(name) != name:
                self._values.problem(item, where, f"{name!r} is not a name", "use letters, digits and _")
            actuator = self._actuator(item, where, name, origin)
            if name in taken and [joint for joint, _ in actuator.drives] != [name]:
                what = f"{name!r} is the name of a link, or of a joint that it does not drive alone"
                self._values.problem(item, where, what, "choose another name")
            for other in actuators:
                if len(actuator.drives) == 1 and [d[0] for d in other.drives] == [d[0] for d in actuator.drives]:
                    what = f"drives {actuator.drives[0][0]}, and so does {other.name}"
                    self._values.problem(item, where, what, "give a coordinate one motor")
            actuators.append(actuator)
        return tuple(actuators)

    def _actuator(self, node: yaml_nodes.Node, where: str, name: str, origin: Origin) -> Actuator:
        keys = ("on", "drives", "ratio", "inertia", "friction", "force", "speed")
        found, origin = self._values.fields(node, where, keys, origin)
        drives, motion = self._drives(node, found, where, name, origin)
        stem = f"{name}.motor" if name in self._motions else name  # what acts on the joint has its name alone
        friction = (
            self._acting.friction(found["friction"], where, stem, motion, origin) if "friction" in found else None
        )
        return Actuator(
            name=name,
            drives=drives,
            inertia=self._acting.inertia(found.get("inertia"), where, stem, motion, origin),
            friction=friction,
            force=unlimited(self._acting.limit(found.get("force"), f"{where}.force", motion.force, origin)),
            speed=unlimited(self._acting.limit(found.get("speed"), f"{where}.speed", motion.speed, origin)),
        )

    def _drives(
        self, node: yaml_nodes.Node, found: Mapping[str, yaml_nodes.Node], where: str, name: str, origin: Origin
    ) -> tuple[tuple[tuple[str, Expression], ...], Motion]:
        """Coordinates with their ratios, and whether the motor turns or slides."""
        if ("on" in found) == ("drives" in found):
            self._values.problem(
                node, where, "needs either `on` or `drives`", "write `on: joint` or `drives: {joint: ratio}`"
            )
            return (), TURNING
        drives: list[tuple[str, Expression]] = []
        motors: set[units.Dimension] = set()
        if "on" in found:
            joint = identifier(self._values.text(found["on"], f"{where}.on"))
            if not joint or not self._known(joint, self._motions, found["on"], f"{where}.on", "moving joint"):
                return (), TURNING
            ratios = {joint: (found.get("ratio"), f"{name}.ratio", f"{where}.ratio")}
        else:
            nodes, origin = self._values.fields(found["drives"], f"{where}.drives", self._motions, origin)
            ratios = {
                joint: (item, f"{name}.drives.{joint}", f"{where}.drives.{joint}") for joint, item in nodes.items()
            }
            if "ratio" in found:
                self._values.problem(
                    found["ratio"], f"{where}.ratio", "stands beside `drives`", "write the ratios there"
                )
        for joint, (item, leaf, path) in ratios.items():
            ratio, motor = self._ratio(item, leaf, path, self._motions[joint].coordinate, origin)
            drives.append((joint, ratio))
            motors.add(motor)
        if len(motors) > 1:
            what = "some ratios make the motor turn and some make it slide"
            self._values.problem(node, where, what, "give ratios from a length with units, such as 200 rad/m")
        return tuple(drives), SLIDING if motors == {units.LENGTH} else TURNING

    def _ratio(
        self, node: yaml_nodes.Node | None, leaf: str, where: str, coordinate: units.Dimension, origin: Origin
    ) -> tuple[Expression, units.Dimension]:
        """The ratio and the dimension of the motor's position, ratio times coordinate."""
        if node is None:
            return ONE, coordinate
        across = units.ANGLE_PER_LENGTH if coordinate == units.LENGTH else units.LENGTH_PER_ANGLE
        quantity = self._values.quantity(node, where, [units.ONE, across], origin)
        if quantity is None:
            return ONE, coordinate
        if quantity.value == 0.0:
            self._values.problem(node, where, "a ratio of zero drives nothing", "leave it out")
        return self._values.leaf(leaf, quantity, "drive"), coordinate * quantity.unit.dimension
