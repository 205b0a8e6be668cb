"""Loops, couplings and motors of an MJCF: ``<equality>``, ``<tendon>`` and ``<actuator>``."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence, Set
from dataclasses import field, replace

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.records import dataclass
from tauloop.formats.imported.leaves import Leaves
from tauloop.formats.mjcf.settings import (
    ACTUATORS,
    FORCE_RANGE,
    FORCE_SWITCH,
    SERVOS,
    MjcfReader,
)
from tauloop.formats.mjcf.tendons import SpatialTendon, SpatialTendonReader
from tauloop.formats.mjcf.tree import Bodies, TreeReader
from tauloop.formats.urdf.builder import closing_joint
from tauloop.formats.urdf.parts import identifier
from tauloop.formats.xml.nodes import XmlNode
from tauloop.mechanism.curves import Curve, CurvePolynomial
from tauloop.mechanism.expression import ONE, ZERO, Constant, Expression, add, multiply
from tauloop.mechanism.model import (
    BASE,
    Actuator,
    Body,
    CombinedFriction,
    Coupling,
    Freedom,
    Friction,
    Joint,
    Placement,
    Rod,
    Spring,
    Tension,
)
from tauloop.mechanism.outputs import Output
from tauloop.mechanism.poses import FramePose
from tauloop.mechanism.suggestions import a, listing

#: Attributes of the losses and inertia of a tendon length, which become those of its motor.
_TENDON_LOSSES = ("armature", "damping", "frictionloss")
MINUS_ONE = Constant(-1.0)
#: Kind of actuator whose force acts at contacts.
_CONTACT_ACTUATOR = "adhesion"
#: Kinds of joints with one coordinate.
_SCALAR_JOINT_KINDS = ("revolute", "prismatic")
#: Attributes that name the joint or tendon that an actuator drives.
_TRANSMISSIONS = ("joint", "jointinparent", "tendon")
#: Values of gain and bias attributes of an ideal motor.
_IDEAL_MOTOR_LAWS = ("", "none", "fixed")


@dataclass(frozen=True, slots=True, kw_only=True)
class TendonLengths:
    """Elements of a machine that represent tendon lengths.

    Attributes:
        joints: joints whose coordinates are tendon lengths.
        bodies: massless bodies of these joints.
        couplings: couplings of these joints with the joints of the tendons.
        losses: losses of tendon lengths without such a joint.
        rods: lines of spatial tendons.
        outputs: lengths of spatial tendons that are not a single coordinate.
    """

    bodies: list[Body] = field(default_factory=list)
    joints: list[Joint] = field(default_factory=list)
    couplings: list[Coupling] = field(default_factory=list)
    losses: list[CombinedFriction] = field(default_factory=list)
    rods: list[Rod] = field(default_factory=list)
    outputs: list[Output] = field(default_factory=list)


class ConstraintReader:
    """Reader of the sections after the worldbody."""

    def __init__(self, reader: MjcfReader, leaves: Leaves, tree: TreeReader) -> None:
        """Create a reader without elements.

        Args:
            reader: provides compiler settings and default classes, and collects problems.
            leaves: receives the independent parameters.
            tree: reader of the worldbody, which has been read.
        """
        self._reader = reader
        self._leaves = leaves
        self._tree = tree
        self._bodies: Bodies = tree.bodies
        self._names: set[str] = set()
        self._tendons: dict[str, list[tuple[str, float]]] = {}
        self._losses: dict[str, dict[str, float]] = {}
        self._springs: dict[str, tuple[float, float]] = {}
        self._ranges: dict[str, tuple[float, float]] = {}
        self._force_ranges: dict[str, tuple[float, float]] = {}
        self._spatial: dict[str, SpatialTendon] = {}
        self._can_push: dict[str, bool] = {}
        self._coupled_tendons: set[str] = set()
        self._tensions: dict[str, Tension] = {}
        self._lines = SpatialTendonReader(reader=reader, leaves=leaves, tree=tree)
        self._motor_terms: list[tuple[str, Sequence[tuple[str, float]], bool]] = []
        self._motor_tendons: dict[str, str] = {}

    # Equality

    def equality(self, root: XmlNode) -> tuple[tuple[Joint, ...], tuple[Coupling, ...]]:
        """Return loop closures and couplings; the notes list other constraints."""
        joints: list[Joint] = []
        couplings: list[Coupling] = []
        for section in root.all("equality"):
            for number, element in enumerate(section.children, 1):
                node = self._reader.resolved(element, "")
                name = self._name(node, f"{node.tag}_{number}")
                settings = self._reader.resolved(replace(node, tag="equality"), "")
                self._reader.use(node, "active", "class")
                if settings.attributes.get("active", "true") == "false":
                    self._reader.notes.append(f"{name}: an inactive equality is omitted")
                elif node.tag in ("connect", "weld"):
                    loop = self._loop(node, name)
                    if loop is not None:
                        joints.append(loop)
                elif node.tag in ("joint", "tendon"):
                    coupling = self._coupling(node, name)
                    if coupling is not None:
                        couplings.append(coupling)
                else:
                    what = f"<{node.tag}> in <equality> is not supported; it removes degrees of freedom"
                    self._reader.problem(
                        node, name, what, "remove it, or use connect, weld, joint or tendon"
                    )
        return tuple(joints), tuple(couplings)

    def _name(self, node: XmlNode, fallback: str) -> str:
        """Return an unused name for an equality."""
        name = identifier(self._reader.word(node, "name")) or fallback
        used_names = {*self._bodies.world, *self._bodies.joint_names.values(), *self._names}
        while name in used_names:
            name = f"{name}_{node.tag}"
        self._names.add(name)
        return name

    def _loop(self, node: XmlNode, name: str) -> Joint | None:
        """Return the joint that a connect or weld describes; None if it is omitted or invalid."""
        ends = (
            self._site_ends(node, name)
            if "site1" in node.attributes
            else self._body_ends(node, name)
        )
        if ends is None:
            return None
        (first, first_pose), (second, second_pose) = ends
        if first == second:
            self._reader.problem(
                node, name, f"both ends are on {first!r}", "join two different bodies"
            )
            return None
        for body in (first, second):
            if body in self._bodies.prescribed:
                pull = f"the pull of {name} towards the externally moved body {body} (mocap)"
                self._reader.omitted.append(pull)
                return None
        kind = "spherical" if node.tag == "connect" else "fixed"
        if kind == "spherical":
            first_pose = FramePose(position=first_pose.position)
            second_pose = FramePose(position=second_pose.position)
        parent = self._tree.placement(first, first_pose, f"{name}.body1")
        child = self._tree.placement(second, second_pose, f"{name}.body2")
        return closing_joint(name, kind, parent, child)

    def _site_ends(
        self, node: XmlNode, name: str
    ) -> tuple[tuple[str, FramePose], tuple[str, FramePose]] | None:
        """Return the body and frame of both sites of a loop, or None after adding a problem."""
        sites = []
        for key in ("site1", "site2"):
            word = self._reader.word(node, key)
            what, remedy = f"there is no site {word!r}", "define it on a body"
            known = self._bodies.sites
            sites.append(self._reader.look_up(node, name, word, known, what, remedy))
        first, second = sites
        return None if first is None or second is None else (first, second)

    def _body_ends(
        self, node: XmlNode, name: str
    ) -> tuple[tuple[str, FramePose], tuple[str, FramePose]] | None:
        """Return both bodies of a loop, each with the frame that coincides with the other.

        If the file gives one frame, the other follows from the initial pose.
        """
        reader = self._reader
        bodies = []
        for word in (reader.word(node, "body1"), reader.word(node, "body2") or "world"):
            what, remedy = f"there is no body {word!r}", "name a body of the worldbody"
            known = self._bodies.body_names
            bodies.append(reader.look_up(node, name, word, known, what, remedy))
        first, second = bodies
        if first is None or second is None:
            return None
        first_in_second = self._bodies.world[second].inverse() @ self._bodies.world[first]
        if node.tag == "connect":
            if "anchor" not in node.attributes:
                reader.problem(node, name, "has no anchor", 'add anchor="x y z", a point of body1')
            anchor = FramePose(position=reader.triple(node, name, "anchor"))
            return (first, anchor), (second, first_in_second @ anchor)
        anchor = FramePose(position=reader.triple(node, name, "anchor"))
        if reader.value(node, name, "torquescale", 1.0) == 0.0:
            what = "torquescale=0 leaves all rotations free, so it is not a weld"
            reader.problem(node, name, what, "write <connect> with its anchor on body1")
        numbers = reader.numbers(node, name, "relpose") or (0.0,) * 7
        if len(numbers) != 7:
            reader.problem(
                node,
                name,
                f"relpose has {counted(len(numbers), 'number')}, not 7",
                "give a position and a quaternion",
            )
            return None
        if not any(numbers[3:]):  # a weld at the initial pose, where any point can be its anchor
            return (first, first_in_second.inverse()), (second, FramePose())
        quaternion = replace(node, attributes={"quat": " ".join(map(repr, numbers[3:]))})
        R = reader.orientation(quaternion, name)
        # relpose contains the anchor's position in body1
        pose = FramePose(position=np.array(numbers[:3]), rotation=R)
        return (first, pose), (second, anchor)

    def _coupling(self, node: XmlNode, name: str) -> Coupling | None:
        """Return a coupling of two joints or tendons, or None after adding a problem.

        x1 - x1_0 = a0 + a1 d + ... + a4 d^4 with d = x2 - x2_0, where x1_0 and x2_0 are the
        positions at the file's pose. If the element names only one joint or fixed tendon, it stays at
        its position. Powers above 1 require that x2 is a single joint, or a tendon of one joint.
        """
        reader = self._reader
        keys = (f"{node.tag}1", f"{node.tag}2")
        sides = [self._side(node, name, key) for key in keys if key in node.attributes]
        if f"{node.tag}1" not in node.attributes:
            reader.problem(node, name, f"has no {node.tag}1", f'add {node.tag}1="..."')
            return None
        if not all(sides):
            return None
        coefficients = reader.numbers(node, name, "polycoef") or (0.0, 1.0, 0.0, 0.0, 0.0)
        # missing coefficients have MuJoCo's defaults
        slope = coefficients[1] if len(coefficients) > 1 else 1.0
        is_curve = len(sides) == 2 and any(coefficients[2:])
        if is_curve and (len(sides[1]) != 1 or sides[1][0][0] in dict(sides[0])):
            terms = ", ".join(f"{coefficient:g}" for coefficient in coefficients[2:])
            what = f"polycoef has nonlinear terms ({terms}), but the second side is a sum of joints"
            remedy = "name one other joint as the second, or leave these terms zero"
            reader.problem(node, name, what, remedy)
            return None
        ratios: dict[str, float] = {}
        factors = (1.0, 0.0 if is_curve else -slope)
        for factor, side in zip(factors, sides, strict=False):
            for joint, ratio in side:
                ratios[joint] = ratios.get(joint, 0.0) + factor * ratio
        first_joint, _ = sides[0][0]
        is_angular = self._is_angular(first_joint)
        unit = "rad" if is_angular else "m"
        offset: Expression = self._leaves.structural(
            f"{name}.offset", coefficients[0], unit, "geometry"
        )
        coupled: list[tuple[str, Expression]] = []
        for joint, ratio in ratios.items():
            if not ratio:
                continue
            factor_expression: Expression = ONE
            if ratio != 1.0:
                factor_expression = self._leaves.leaf(f"{name}.of.{joint}", ratio, "", "drive")
            coupled.append((joint, factor_expression))
            offset = add(offset, multiply(factor_expression, self._reference(joint)))
        curves: tuple[tuple[str, Curve], ...] = ()
        if is_curve:
            powers = (0.0, slope, *coefficients[2:])
            curves = (self._polynomial(name, sides[1][0], powers, unit),)
        return Coupling(
            name=name, terms=tuple(coupled), offset=offset, is_angular=is_angular, curves=curves
        )

    def _polynomial(
        self, name: str, side: tuple[str, float], coefficients: Sequence[float], unit: str
    ) -> tuple[str, Curve]:
        """Return a joint and the polynomial in its displacement from the reference.

        Args:
            name: name of the coupling.
            side: the joint, and its coefficient in a tendon.
            coefficients: coefficients of the powers of the tendon's or joint's displacement.
            unit: unit of the polynomial's value.
        """
        joint, ratio = side
        joint_unit = "rad" if self._is_angular(joint) else "m"
        terms: list[Expression] = []
        for power, coefficient in enumerate(coefficients):
            value = coefficient * ratio**power
            term: Expression = ZERO
            if value:
                parameter = f"{name}.curves.{joint}.polynomial[{power}]"
                term_unit = unit + _divisor(joint_unit, power)
                term = self._leaves.leaf(parameter, value, term_unit, "geometry")
            terms.append(term)
        curve = CurvePolynomial(coefficients=tuple(terms), about=self._reference(joint))
        return joint, curve

    def _side(self, node: XmlNode, name: str, key: str) -> list[tuple[str, float]]:
        """Return (joint, coefficient) pairs for one side of a coupling; empty if invalid."""
        if node.tag == "joint":
            joint = self._scalar(node, name, key)
            return [] if joint is None else [(joint, 1.0)]
        word = self._reader.word(node, key)
        if word in self._spatial and not self._tendons[word]:
            what = f"the tendon {word!r} {self._reason_without_lines(word)}"
            self._reader.problem(node, name, what, "name a tendon of sites that move")
            return []
        self._coupled_tendons.add(word)
        what, remedy = f"there is no tendon {word!r}", "name a tendon"
        return self._reader.look_up(node, name, word, self._tendons, what, remedy) or []

    def _reason_without_lines(self, tendon: str) -> str:
        """Return the reason why a spatial tendon has no coordinates."""
        if geoms := self._spatial[tendon].geoms:
            return f"runs around {listing(geoms)}, which is not modelled"
        return "has a constant length"

    def _is_angular(self, coordinate: str) -> bool:
        """Return whether a coordinate is an angle; the coordinate of a rod is its length."""
        return coordinate not in self._lines.rods and self._bodies.kinds[coordinate] == "revolute"

    def _reference(self, coordinate: str) -> Expression:
        """Return the coordinate of a hinge, slide or rod at the file's pose."""
        if coordinate in self._lines.rods and coordinate not in self._bodies.references:
            length = self._lines.lengths[coordinate]
            leaf = self._leaves.structural(f"{coordinate}.ref", length, "m", "geometry")
            self._bodies.references[coordinate] = leaf
        return self._bodies.references[coordinate]

    def _scalar(self, node: XmlNode, name: str, key: str) -> str | None:
        """Return the hinge or slide that an attribute names, or None after adding a problem."""
        word = self._reader.word(node, key)
        what, remedy = f"there is no joint {word!r}", "name a joint of the worldbody"
        joint = self._reader.look_up(node, name, word, self._bodies.joint_names, what, remedy)
        if joint is not None and self._bodies.kinds[joint] not in _SCALAR_JOINT_KINDS:
            self._reader.problem(
                node, name, f"{word!r} is not a hinge or slide", "name a joint with one coordinate"
            )
            return None
        return joint

    # Actuators

    def actuators(self, root: XmlNode) -> tuple[Actuator, ...]:
        """Return motors on joints and tendons.

        The forces of other actuators are listed as omitted, except those that act at contacts.
        """
        actuators: list[Actuator] = []
        for section in root.all("actuator"):
            for number, element in enumerate(section.children, 1):
                node = self._reader.resolved(element, "")
                name = identifier(self._reader.word(node, "name")) or f"{node.tag}_{number}"
                if any(actuator.name == name for actuator in actuators):
                    self._reader.problem(
                        node, name, "another actuator has this name", "rename one of the two"
                    )
                if node.tag not in ACTUATORS:
                    continue  # `MjcfReader` lists it with the unknown elements
                if node.tag == _CONTACT_ACTUATOR:
                    self._reader.use(node, "body")
                    self._reader.notes.append(f"{name}: an actuator at contacts is omitted")
                    continue
                terms = self._drives(node, name)
                self._note_whether_it_pushes(node, name)
                if not terms or self._is_same_motor(node, name, terms):
                    continue
                drives = self._expressions(name, terms)
                motor = self._motor_name(node, name)
                self._motor_tendons[motor] = node.attributes.get("tendon", "")
                actuators.append(self._actuator(node, motor, drives))
        return tuple(actuators)

    def with_transmitted_limits(self, actuators: Sequence[Actuator]) -> tuple[Actuator, ...]:
        """Return actuators within the limits of the forces at joints and tendons.

        MuJoCo limits the sum of the forces of all actuators at a joint after the gear, and at a
        tendon before it. Actuators that share a limit get parts of it: each limit is reduced by
        the factor with which the sum of the largest forces is the limit of the sum.
        """
        limits = {actuator.name: actuator.force for actuator in actuators}
        shared_limits = (*self._limits_at_tendons(actuators), *self._limits_at_joints(actuators))
        for where, largest, arms in shared_limits:
            forces = {name: min(limits[name] * arm, largest) for name, arm in arms.items()}
            total = sum(forces.values())
            factor = largest / total if total > largest else 1.0
            for name, arm in arms.items():
                limits[name] = min(limits[name], forces[name] * factor / arm)
            if factor < 1.0:
                parts = ", ".join(f"{limits[name]:g}" for name in arms)
                self._reader.notes.append(
                    f"{where} limits the sum of the forces of {listing(arms)} to {largest:g}, so "
                    f"each motor gets a part of it: {parts}"
                )
        return tuple(replace(actuator, force=limits[actuator.name]) for actuator in actuators)

    def _limits_at_tendons(
        self, actuators: Sequence[Actuator]
    ) -> Iterator[tuple[str, float, dict[str, float]]]:
        """Yield the tendons that limit forces, with the limit and the arm of each motor."""
        for tendon, ends in self._force_ranges.items():
            names = [motor.name for motor in actuators if self._tendon_of(motor) == tendon]
            if names:
                largest = self._larger_end(tendon, listing(names), FORCE_RANGE, ends)
                yield f"tendon {tendon}", largest, dict.fromkeys(names, 1.0)

    def _limits_at_joints(
        self, actuators: Sequence[Actuator]
    ) -> Iterator[tuple[str, float, dict[str, float]]]:
        """Yield the joints that limit forces, with the limit and the arm of each motor."""
        value = self._leaves.value
        for joint, ends in self._bodies.force_ranges.items():
            ratios = {motor.name: dict(motor.drives).get(joint, ZERO) for motor in actuators}
            arms = {name: abs(value(ratio)) for name, ratio in ratios.items() if value(ratio)}
            if arms:
                yield f"joint {joint}", self._larger_end("", listing(arms), FORCE_RANGE, ends), arms

    def _tendon_of(self, actuator: Actuator) -> str:
        """Return the tendon of an actuator of the file; empty if it drives a joint."""
        return self._motor_tendons.get(actuator.name, "")

    def _is_same_motor(self, node: XmlNode, name: str, terms: Sequence[tuple[str, float]]) -> bool:
        """Return whether an actuator drives the same coordinates as an earlier one.

        This is the case for a servo and another actuator that belong to one control law: a position
        and a velocity servo on one joint are the usual form of a PD controller.
        """
        is_servo = self._is_servo(node)
        if "armature" not in node.attributes:
            for other, other_terms, is_other_servo in self._motor_terms:
                if (is_servo or is_other_servo) and _are_proportional(terms, other_terms):
                    note = (
                        f"{name} drives the same joints as {other}, so both are read as one motor"
                    )
                    self._reader.notes.append(note)
                    return True
        self._motor_terms.append((name, terms, is_servo))
        return False

    def _is_servo(self, node: XmlNode) -> bool:
        """Return whether an actuator has a control law beyond an ideal motor."""
        laws = ("dyntype", "gaintype", "biastype")
        is_ideal = all(self._reader.word(node, key) in _IDEAL_MOTOR_LAWS for key in laws)
        return node.tag in SERVOS or not is_ideal

    def tendon_lengths(self) -> TendonLengths:
        """Return losses, springs, inertia and limits of tendon lengths s = sum of c_i q_i.

        Losses and inertia that belong to a motor are excluded. Losses become losses of a
        combination of joints. With a spring, an inertia or limits, s becomes the coordinate of a
        joint of a massless body, and a coupling relates s to the joints. If a spatial tendon is a
        single line, its losses, spring, inertia and limits act on its rod.
        """
        lengths = TendonLengths()
        self._make_cables()
        for tendon, terms in self._tendons.items():
            losses = self._losses[tendon]
            spring = self._springs.get(tendon)
            limits = self._ranges.get(tendon)
            if not terms or not (losses or spring or limits):
                continue
            is_line = tendon in self._spatial and len(terms) == 1 and terms[0][1] == 1.0
            name = terms[0][0] if is_line else self._free_name(f"{tendon}_length")
            is_angular = not self._is_length(terms)
            ratios: list[tuple[str, Expression]] = []
            if not is_line:
                for joint, ratio, unit in self._with_units(terms):
                    leaf = self._leaves.leaf(f"{name}.of.{joint}", ratio, unit, "drive")
                    ratios.append((joint, leaf))
            viscous = losses.get("damping", 0.0)
            coulomb = losses.get("frictionloss", 0.0)
            friction = Friction(
                **self._leaves.friction(name, is_angular, viscous=viscous, coulomb=coulomb)
            )
            armature = losses.get("armature", 0.0)
            if not (spring or armature or limits or is_line):
                lengths.losses.append(
                    CombinedFriction(
                        name=name, terms=tuple(ratios), friction=friction, is_angular=is_angular
                    )
                )
                continue
            lower, upper = limits or (-math.inf, math.inf)
            freedom = Freedom(
                friction=friction if viscous or coulomb else None,
                spring=self._spring(name, *spring, is_angular=is_angular) if spring else None,
                inertia=self._leaves.rotor(name, armature, is_angular),
                lower=lower,
                upper=upper,
            )
            if is_line:
                self._lines.set_elements(name, freedom)
            else:
                self._add_length(lengths, name, tuple(ratios), freedom, is_angular=is_angular)
        for tendon, path in self._spatial.items():
            is_used = self._is_used(tendon)
            is_line = len(path.terms) == 1 and path.terms[0][1] == 1.0 and not path.constant
            if is_used:
                lengths.rods.extend(self._lines.rods[rod] for rod, _ in path.terms)
            if path.output is not None and not (is_used and is_line):
                lengths.outputs.append(path.output)
        return lengths

    def _is_used(self, tendon: str) -> bool:
        """Return whether a force or limit acts on a spatial tendon, or a coupling refers to it."""
        users = (self._springs, self._ranges, self._can_push, self._coupled_tendons, self._tensions)
        return bool(self._losses[tendon]) or any(tendon in names for names in users)

    def _make_cables(self) -> None:
        """Convert spatial tendons to cables.

        A tendon is a cable if its actuators only pull, or if `mjcf.writer` wrote it as a cable.
        """
        for tendon in self._spatial:
            terms = self._tendons[tendon]
            if tendon in self._tensions:
                for rod, _ in terms:
                    self._lines.set_tension(rod, self._tensions[tendon])
                continue
            if not terms or tendon not in self._can_push:
                continue
            if self._can_push[tendon]:
                self._reader.notes.append(
                    f"tendon {tendon}: its actuator may push, so it is a strut; a cable needs "
                    "a force range that only pulls"
                )
            elif len(terms) == 1 or not (tendon in self._springs or tendon in self._ranges):
                for rod, _ in terms:
                    self._lines.set_tension(rod, Tension(least=0.0))

    def _note_whether_it_pushes(self, node: XmlNode, name: str) -> None:
        """Record whether the actuator of a spatial tendon can push."""
        tendon = node.attributes.get("tendon", "")
        if tendon not in self._spatial:
            return
        gear = (self._reader.numbers(node, name, "gear") or (1.0,))[0]
        ranges = [self._reader.limits(node, name, "forcerange", "forcelimited")]
        ranges.append(self._force_ranges.get(tendon))
        if node.tag == "motor":
            ranges.append(self._reader.limits(node, name, "ctrlrange", "ctrllimited"))
        is_muscle = "muscle" in (node.tag, node.attributes.get("gaintype", ""))
        largest = [max(gear * ends[0], gear * ends[1]) for ends in ranges if ends is not None]
        only_pulls = is_muscle or min(largest, default=np.inf) <= 0.0
        self._can_push[tendon] = self._can_push.get(tendon, False) or not only_pulls

    def _add_length(
        self,
        lengths: TendonLengths,
        name: str,
        ratios: tuple[tuple[str, Expression], ...],
        freedom: Freedom,
        *,
        is_angular: bool,
    ) -> None:
        """Add a joint whose coordinate is the length of a tendon."""
        value = self._leaves.value
        start = sum(value(ratio) * value(self._reference(joint)) for joint, ratio in ratios)
        end = self._free_name(f"{name}_end")
        lengths.bodies.append(Body(name=end))
        lengths.joints.append(
            Joint(
                name=name,
                kind="revolute" if is_angular else "prismatic",
                parent=Placement(body=BASE),
                child=Placement(body=end),
                axes=("x",),
                reference=(start,),
                freedoms=(freedom,),
            )
        )
        lengths.couplings.append(
            Coupling(
                name=f"{name}_of_joints", terms=((name, MINUS_ONE), *ratios), is_angular=is_angular
            )
        )

    def _free_name(self, preferred: str) -> str:
        """Return the preferred name, with underscores appended until it is unused."""
        name = identifier(preferred)
        joints = self._bodies.joint_names.values()
        used_names = {*self._bodies.world, *joints, *self._names, *self._lines.rods}
        while name in used_names:
            name += "_"
        self._names.add(name)
        return name

    def _spring(self, name: str, stiffness: float, rest: float, *, is_angular: bool) -> Spring:
        """Return a spring with its stiffness and rest position as parameters."""
        stiffness_unit, rest_unit = ("N m/rad", "rad") if is_angular else ("N/m", "m")
        return Spring(
            stiffness=self._leaves.leaf(
                f"{name}.spring.stiffness", stiffness, stiffness_unit, "spring"
            ),
            rest=self._leaves.structural(f"{name}.spring.rest", rest, rest_unit, "spring"),
        )

    def _motor_name(self, node: XmlNode, name: str) -> str:
        """Return the name of a motor, changed if a joint with losses has the same name."""
        has_losses = (
            any(self._losses.get(node.attributes.get("tendon", ""), ()))
            or "armature" in node.attributes
            or any(self._reader.stored_friction("actuator", node).values())
        )
        joints = {*self._bodies.joint_names.values(), *self._lines.rods}
        if not has_losses or name not in joints:
            return name
        self._reader.notes.append(
            f"the motor {name} is renamed to {name}_motor, because {name} is a joint with losses"
        )
        return f"{name}_motor"

    def read_tendons(self, root: XmlNode) -> None:
        """Read tendons: coordinates with coefficients, losses, springs and limits."""
        sections = tuple(root.all("tendon"))
        elements = [element for section in sections for element in section.children]
        names_in_file = {element.attributes.get("name", "") for element in elements}
        for element in elements:
            if element.tag not in ("fixed", "spatial"):
                continue
            node = replace(
                self._reader.resolved(replace(element, tag="tendon"), ""), tag=element.tag
            )
            name = self._reader.word(node, "name") or self._unnamed_tendon(names_in_file)
            if element.tag == "fixed":
                self._read_fixed(node, name)
            else:
                self._read_spatial(node, name)

    def _unnamed_tendon(self, names_in_file: Set[str]) -> str:
        """Return an unused name for a tendon without a name in the file."""
        name, number = "tendon", 1
        while name in names_in_file or name in self._tendons:
            number += 1
            name = f"tendon_{number}"
        return name

    def _read_fixed(self, node: XmlNode, name: str) -> None:
        """Read a fixed tendon: a linear combination of joint coordinates."""
        terms = []
        for element in node.all("joint"):
            joint = self._scalar(element, name, "joint")
            coefficient = self._reader.value(element, name, "coef", 1.0)
            if joint is not None:
                terms.append((joint, coefficient))
        self._tendons[name] = terms
        self._read_losses(node, name)
        self._reader.use(node, "range", "limited")
        if "range" in node.attributes:
            self._reader.notes.append(f"tendon {name}: its limits are omitted")
        default_rest = sum(c * self._bodies.rests.get(joint, 0.0) for joint, c in terms)
        self._read_spring(node, name, default_rest)

    def _read_losses(self, node: XmlNode, name: str) -> None:
        """Read the nonzero losses, the inertia and the force limit of a tendon's length."""
        forces = self._reader.limits(node, name, FORCE_RANGE, FORCE_SWITCH)
        if forces is not None:
            self._force_ranges[name] = forces
        values = {key: self._reader.value(node, name, key) for key in _TENDON_LOSSES}
        self._losses[name] = {key: value for key, value in values.items() if value}

    def _read_spatial(self, node: XmlNode, name: str) -> None:
        """Read a tendon over sites and pulleys; a tendon around geoms is listed as omitted."""
        path = self._lines.read(node, name, self._free_name(name))
        if path is None:
            return
        self._spatial[name] = path
        self._tendons[name] = list(path.terms)
        self._read_tension(node, name)
        length = self._reader.extra("tendon", node, "length")
        if length and path.terms:
            self._lines.set_fixed_length(path.terms[0][0], length)
            self._losses[name] = {}
            self._reader.use(node, "range", "stiffness", "damping", "springlength")
            return
        if not path.terms:
            self._omit_tendon(node, name)
            return
        self._read_losses(node, name)
        ends = self._reader.limits(node, name, "range", "limited")
        if ends is not None:
            # a length is never negative, so a negative end is not a limit
            lower = ends[0] - path.constant if ends[0] > 0.0 else -math.inf
            self._ranges[name] = (lower, ends[1] - path.constant)
        self._read_spring(node, name, path.initial_length if self._is_spring_pose() else None)
        if name in self._springs:
            stiffness, rest = self._springs[name]
            self._springs[name] = (stiffness, rest - path.constant)

    def _read_tension(self, node: XmlNode, name: str) -> None:
        """Read the tension bounds of a cable that `mjcf.writer` stored in ``<custom>``."""
        numbers = {
            key: self._reader.extra("tendon", node, key, math.nan)
            for key in ("least", "greatest", "stiffness", "damping", "restitution")
        }
        if math.isnan(numbers["least"]):
            return
        leaves: dict[str, Expression] = {}
        for key, unit in (("stiffness", "N/m"), ("damping", "N s/m")):
            if not math.isnan(numbers[key]):
                leaves[key] = self._leaves.leaf(
                    f"{name}.tension.{key}", numbers[key], unit, "spring"
                )
        greatest, restitution = numbers["greatest"], numbers["restitution"]
        self._tensions[name] = Tension(
            least=numbers["least"],
            greatest=math.inf if math.isnan(greatest) else greatest,
            restitution=None if math.isnan(restitution) else restitution,
            **leaves,
        )

    def _omit_tendon(self, node: XmlNode, name: str) -> None:
        """Add a note on a tendon without coordinates, and list its forces as omitted."""
        self._losses[name] = {}
        reason = self._reason_without_lines(name)
        self._reader.notes.append(f"tendon {name} is omitted: it {reason}")
        keys = (*_TENDON_LOSSES, "stiffness")
        nonzero_keys = [key for key in keys if self._reader.value(node, name, key)]
        if nonzero_keys and self._spatial[name].geoms:
            what = f"{', '.join(nonzero_keys)} of the spatial tendon {name}, which {reason}"
            self._reader.omitted.append(what)

    def _is_spring_pose(self) -> bool:
        """Return whether the springs of all joints are at rest in the file's pose."""
        value = self._leaves.value
        return all(
            self._bodies.rests.get(joint, 0.0) == value(reference)
            for joint, reference in self._bodies.references.items()
            if joint not in self._lines.rods
        )

    def _read_spring(self, node: XmlNode, name: str, default_rest: float | None) -> None:
        """Read the stiffness and rest length of a tendon.

        Args:
            node: element of the tendon.
            name: name of the tendon.
            default_rest: length of the tendon at the rest positions of the joints' springs, used if
                the file states no rest length; None if unknown.
        """
        stiffness = self._reader.value(node, name, "stiffness")
        ends = self._reader.numbers(node, name, "springlength")
        if not stiffness:
            return
        if len(ends) == 2 and ends[0] != ends[1]:
            what = f"the spring of tendon {name}, which is slack between lengths {ends[0]:g} and {ends[1]:g}"
            self._reader.omitted.append(what)
            return
        rest = ends[0] if ends and ends[0] >= 0.0 else default_rest
        if rest is None:
            what = (
                f"the spring of the spatial tendon {name}, whose rest length MuJoCo computes "
                "from springref (state springlength)"
            )
            self._reader.omitted.append(what)
            return
        self._springs[name] = (stiffness, rest)

    def _drives(self, node: XmlNode, name: str) -> list[tuple[str, float]]:
        """Return coordinates with their ratios; empty if the actuator is omitted or invalid."""
        reader = self._reader
        gear = (reader.numbers(node, name, "gear") or (1.0,))[0]
        key = next((key for key in _TRANSMISSIONS if key in node.attributes), "")
        word = reader.word(node, key) if key else ""
        reason = self._reason_to_omit(key, word)
        if reason:
            reader.omitted.append(f"the force of the actuator {name}, {reason}")
            return []
        if key == "tendon":
            terms = self._tendons[word]
        else:
            joint = self._scalar(node, name, key)
            terms = [(joint, 1.0)] if joint is not None else []
        if gear**2 == 0.0 or any(ratio == 0.0 for _, ratio in terms):
            reader.problem(
                node,
                name,
                "the gear, or a coefficient of the tendon, is zero",
                "give nonzero `gear` and `coef`, or remove the actuator",
            )
        return [(joint, gear * ratio) for joint, ratio in terms]

    def _expressions(
        self, name: str, terms: Sequence[tuple[str, float]]
    ) -> tuple[tuple[str, Expression], ...]:
        """Return (coordinate, ratio expression) pairs; ratios other than 1 are parameters."""
        drives: list[tuple[str, Expression]] = []
        for joint, ratio, unit in self._with_units(terms):
            expression: Expression = ONE
            if ratio != 1.0 or unit:
                leaf = f"{name}.drives.{joint}"
                expression = self._leaves.leaf(leaf, ratio, unit, "drive")
            drives.append((joint, expression))
        return tuple(drives)

    def _reason_to_omit(self, key: str, word: str) -> str:
        """Return the reason why the force of an actuator is omitted; empty if it is not omitted.

        Args:
            key: attribute that names the joint or tendon; empty if there is none.
            word: value of the attribute.
        """
        if not key:
            return "which drives no joint and no tendon"
        if key == "tendon" and word in self._spatial and not self._tendons[word]:
            return f"on tendon {word!r}, which {self._reason_without_lines(word)}"
        if key == "tendon":
            return "" if word in self._tendons else f"on tendon {word!r}"
        joint = self._bodies.joint_names.get(word)
        if joint is not None and self._bodies.kinds[joint] not in _SCALAR_JOINT_KINDS:
            return f"on {word!r}, which is not a hinge or slide"
        return ""

    def _is_length(self, terms: Sequence[tuple[str, float]]) -> bool:
        """Return whether a combination of joints is a length, because one of them slides."""
        return any(not self._is_angular(joint) for joint, _ in terms)

    def _with_units(self, terms: Sequence[tuple[str, float]]) -> list[tuple[str, float, str]]:
        """Return (joint, ratio, unit of the ratio) for a combination of joints."""
        is_length = self._is_length(terms)
        return [
            (joint, ratio, "m/rad" if is_length and self._is_angular(joint) else "")
            for joint, ratio in terms
        ]

    def _actuator(
        self, node: XmlNode, name: str, drives: tuple[tuple[str, Expression], ...]
    ) -> Actuator:
        """Return an ideal motor with the losses, inertia and limits of an actuator."""
        reader = self._reader
        if self._is_servo(node):
            reader.notes.append(
                f"{name}: {a(node.tag)} actuator is read as an ideal motor without its control law"
            )
        force = self._limit(node, name, "forcerange", "forcelimited")
        if node.tag == "motor":
            force = min(force, self._limit(node, name, "ctrlrange", "ctrllimited"))
        is_angular = all(self._is_angular(joint) for joint, _ in drives)
        losses = self._losses.get(node.attributes.get("tendon", ""), {})
        gear = abs((reader.numbers(node, name, "gear") or (1.0,))[0])
        if gear**2 == 0.0:  # `_drives` has reported a zero gear
            gear = 1.0
        inertia = reader.value(node, name, "armature") + losses.pop("armature", 0.0) / gear**2
        friction = self._leaves.friction(
            name,
            is_angular,
            viscous=losses.pop("damping", 0.0) / gear**2,
            coulomb=losses.pop("frictionloss", 0.0) / gear,
            **reader.stored_friction("actuator", node),
        )
        offset = reader.extra("actuator", node, "offset", 0.0)
        unit = "rad" if is_angular else "m"
        return Actuator(
            name=name,
            drives=drives,
            offset=self._leaves.structural(f"{name}.offset", offset, unit, "drive"),
            is_rotary=is_angular,
            inertia=self._leaves.rotor(name, inertia, is_angular),
            friction=Friction(**friction) if friction else None,
            force=force,
            speed=reader.extra("actuator", node, "speed", math.inf),
            rated_force=reader.extra("actuator", node, "rated_force", math.inf),
        )

    def _limit(self, node: XmlNode, name: str, key: str, switch: str) -> float:
        """Return the larger magnitude of the ends of an actuator's range."""
        ends = self._reader.limits(node, name, key, switch)
        if ends is None:
            return math.inf
        return self._larger_end(node.attributes.get("tendon", ""), name, key, ends)

    def _larger_end(self, tendon: str, name: str, key: str, ends: tuple[float, float]) -> float:
        """Return the larger magnitude of a range's ends; a motor has one limit for both directions."""
        is_pull = self._can_push.get(tendon) is False
        if -ends[0] != ends[1] and not is_pull:
            self._reader.notes.append(
                f"{name}: the limit is the larger end of {key} {ends[0]:g} to {ends[1]:g}"
            )
        return max(abs(ends[0]), abs(ends[1]))


def _are_proportional(
    terms: Sequence[tuple[str, float]], others: Sequence[tuple[str, float]]
) -> bool:
    """Return whether two transmissions differ only by a factor."""
    if [joint for joint, _ in terms] != [joint for joint, _ in others]:
        return False
    first = np.array([ratio for _, ratio in terms])
    second = np.array([ratio for _, ratio in others])
    return np.allclose(np.outer(first, second), np.outer(second, first), rtol=1e-12, atol=0.0)


def _divisor(unit: str, power: int) -> str:
    """Return the divisor in the unit of a polynomial's coefficient: "", "/rad", "/rad^2" ..."""
    if power == 0:
        return ""
    return f"/{unit}" if power == 1 else f"/{unit}^{power}"
