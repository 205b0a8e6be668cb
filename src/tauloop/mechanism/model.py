"""The machine as data: a frozen `Mechanism` of bodies, joints, rods and actuators in any graph.

Every physical value is an `Expression` of the independent parameters of one `ParameterTable`
(theta). Geometry, inertia, friction and drives can therefore be symbols or numbers. Values that only
control a computation (start values, limits) are plain floats in SI units.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tauloop.common.errors import InputError, Problem, Problems, TauloopError
from tauloop.common.extensions import Registry
from tauloop.common.names.deprecated import old_attribute
from tauloop.common.options import NamedFields
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, diagnostic
from tauloop.common.shown import ReprMixin
from tauloop.mechanism.curves import Curve
from tauloop.mechanism.description.units import ONE, UnitError, parse_unit, read_quantity
from tauloop.mechanism.expression import (
    ZERO,
    Expression,
    Leaf,
    Parameter,
    ParameterTable,
    add,
    evaluate,
    leaves,
    negate,
)
from tauloop.mechanism.placement import (
    ZERO_VECTOR as ZERO_VECTOR,
    AxisName as AxisName,
    Placement as Placement,
    Turn as Turn,
    Vector as Vector,
)
from tauloop.mechanism.solids.solid import Solid
from tauloop.mechanism.suggestions import by_name

if TYPE_CHECKING:  # drive_line imports the parameter table of machines
    from tauloop.mechanism.drive_line import DriveLine
    from tauloop.mechanism.elastic.beams import Beam, BodyBeam, Compliance, Damping
    from tauloop.mechanism.elastic.sections import Material
    from tauloop.mechanism.elastic.structures import ReducedStructure
    from tauloop.mechanism.outputs import Output

#: Row and column of each of the six moments of an `Inertia`, in their order.
MOMENT_ENTRIES = ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))
#: Lengths below this fraction of the largest length count as zero in the characteristic length.
_ZERO_LENGTH = 1e-9

#: Name of the fixed body of a machine.
BASE = "base"
#: Name of the joint that connects a platform with its own coordinates to the base.
PLATFORM_JOINT = "platform"

#: Kinds of limits of a coordinate. "stop": hard stop, which the machine cannot exceed. "drawing":
#: range used for drawing and sampling, which motions may leave.
LimitKind = Literal["stop", "drawing"]
LIMIT_KINDS: tuple[LimitKind, ...] = ("stop", "drawing")

#: Name of the diagnostic for forces of a source file that an imported machine lacks.
OMITTED_FORCES = "forces of the source file that are left out"
_OMISSION_REMEDY = (
    "remove them from the source if they are unintended, or add equivalent elements to a machine "
    "file"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Inertia:
    """Ten inertial parameters about the origin of a frame (Pinocchio's order, see `parameters`).

    Attributes:
        mass: m, kg.
        first_moment: m c, kg m.
        second_moment: I_xx, I_xy, I_yy, I_xz, I_yz, I_zz about the frame's origin, kg m^2.
    """

    mass: Expression
    first_moment: Vector = ZERO_VECTOR
    second_moment: tuple[Expression, Expression, Expression, Expression, Expression, Expression] = (
        ZERO,
    ) * 6

    @classmethod
    def of(cls, parameters: Iterable[Expression]) -> Inertia:
        """Return the inertia with these ten `parameters`."""
        m, hx, hy, hz, xx, xy, yy, xz, yz, zz = parameters
        return cls(mass=m, first_moment=(hx, hy, hz), second_moment=(xx, xy, yy, xz, yz, zz))

    @property
    def parameters(self) -> tuple[Expression, ...]:
        """(m, mc_x, mc_y, mc_z, I_xx, I_xy, I_yy, I_xz, I_yz, I_zz)."""
        return (self.mass, *self.first_moment, *self.second_moment)


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """A rigid body; a body without inertia is massless and only connects other bodies.

    Attributes:
        name: unique name.
        inertia: inertia about the body's origin; None for a massless body.
        beams: elastic beams between points of the body, used in calculations of elasticity.
        is_distributed: whether the stated mass that exceeds the beams' is spread along them.
    """

    name: str
    inertia: Inertia | None = None
    beams: tuple[BodyBeam, ...] = ()
    is_distributed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Friction:
    """Friction force F (N or N m) of one coordinate with velocity v, which opposes v.

    F = viscous v + viscous_asymmetry |v| + (coulomb + (static - coulomb) exp(-(v / stribeck)^2))
    sign(v) + coulomb_asymmetry |sign(v)| + offset (Stribeck's curve as in Armstrong-Helouvry,
    Dupont and Canudas de Wit 1994, A survey of models, analysis tools and compensation methods for
    the control of machines with friction, eq. 7).

    Attributes:
        viscous, coulomb, offset: coefficients; None if absent.
        viscous_asymmetry, coulomb_asymmetry: amounts by which `viscous` and `coulomb` are larger
            for forward motion and smaller for backward motion.
        static: friction at the onset of motion; requires `coulomb` and `stribeck`.
        stribeck: Stribeck velocity, at which the excess of static over Coulomb friction has fallen
            to 1 / e, m/s or rad/s.
    """

    viscous: Expression | None = None
    coulomb: Expression | None = None
    offset: Expression | None = None
    viscous_asymmetry: Expression | None = None
    coulomb_asymmetry: Expression | None = None
    static: Expression | None = None
    stribeck: Expression | None = None

    @property
    def excess(self) -> Expression | None:
        """Static friction in excess of Coulomb friction; None without static friction."""
        return None if self.static is None else add(self.static, negate(self.coulomb or ZERO))

    @property
    def reversed(self) -> Friction:
        """The same friction for a coordinate with the opposite sign."""
        negated: dict[str, Expression] = {}
        for name in ("offset", "viscous_asymmetry", "coulomb_asymmetry"):
            value = getattr(self, name)
            if value is not None:
                negated[name] = negate(value)
        return replace(self, **negated)


def given_friction(element: str) -> str:
    """Return the name of the parameter that contains an element's given dry friction.

    See `Mechanism.with_given_dry_friction`.
    """
    return f"{element}.friction.given"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spring:
    """A spring on one coordinate q, with the restoring force stiffness * (q - rest)."""

    stiffness: Expression
    rest: Expression = ZERO


@dataclass(frozen=True, slots=True, kw_only=True)
class Freedom:
    """Limits, friction, spring and inertia of one degree of freedom of a joint or telescopic rod.

    Attributes:
        friction: friction of this degree of freedom.
        spring: elastic element.
        inertia: inertia that moves only with this coordinate (rotor on the joint side), kg m^2 or
            kg.
        lower, upper: range of the coordinate, m or rad.
        limit: kind of the range (see `LIMIT_KINDS`).
        speed: largest speed, m/s or rad/s.
    """

    friction: Friction | None = None
    spring: Spring | None = None
    inertia: Expression | None = None
    lower: float = -np.inf
    upper: float = np.inf
    limit: LimitKind = "stop"
    speed: float = np.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class JointKind:
    """A kind of joint: names of its coordinates and velocities, and the motion of the child.

    A suffix is appended to the joint's name with a dot; an empty suffix stands for the joint's name
    itself. There are more coordinates than velocities if the coordinates include a quaternion.

    A kind that a plugin defines (see `docs/extending.md`) gives its `placement`; velocities,
    accelerations and their derivatives follow from it by differentiation. Its coordinates are
    scalars, whose rates are its velocities.

    Attributes:
        coordinates, velocities: suffixes of the names.
        axes: number of axes in the file, 0 to 2.
        angular: whether each velocity is a rotation.
        reversible: whether the spanning tree may traverse the joint from its child to its parent.
        placement: (axes, x) -> (R, p): orientation (3, 3) and origin (3,) of the child's frame in
            the parent's, as CasADi expressions of the coordinates x (n,) and of the unit vectors
            (3,) of the axes; identity and zero at x = 0. None for Tauloop's own kinds.
    """

    coordinates: tuple[str, ...]
    velocities: tuple[str, ...]
    axes: int
    angular: tuple[bool, ...]
    reversible: bool = True
    placement: Callable[[Sequence[Any], Any], tuple[Any, Any]] | None = None

    @property
    def scalars(self) -> int:
        """Number of scalar coordinates; a quaternion follows them."""
        return sum(not name.startswith("q") for name in self.coordinates)

    @property
    def neutral(self) -> tuple[float, ...]:
        """Coordinates at which both frames coincide: zeros, and (1, 0, 0, 0) for a quaternion."""
        return tuple(float(name == "qw") for name in self.coordinates)


def _builtin_kind(
    scalars: dict[str, bool], *, axes: int = 0, is_ball: bool = False, reversible: bool = True
) -> JointKind:
    """Return a built-in joint kind with scalar coordinates and optionally a quaternion.

    `scalars` maps each suffix to whether the coordinate is an angle.
    """
    quaternion: tuple[str, ...] = ()
    angular_velocity: tuple[str, ...] = ()
    if is_ball:
        quaternion = ("qw", "qx", "qy", "qz")
        angular_velocity = ("wx", "wy", "wz")
    return JointKind(
        coordinates=(*scalars, *quaternion),
        velocities=(*scalars, *angular_velocity),
        axes=axes,
        angular=(*scalars.values(), *(True for _ in angular_velocity)),
        reversible=reversible,
    )


_PLANE = {"x": False, "y": False}
_SPACE = {"x": False, "y": False, "z": False}
_BUILTIN_KINDS = {
    "fixed": _builtin_kind({}),
    "revolute": _builtin_kind({"": True}, axes=1),
    "prismatic": _builtin_kind({"": False}, axes=1),
    "cylindrical": _builtin_kind({"angle": True, "slide": False}, axes=1),
    "universal": _builtin_kind({"first": True, "second": True}, axes=2),
    "spherical": _builtin_kind({}, is_ball=True),
    "planar": _builtin_kind({**_PLANE, "angle": True}, reversible=False),
    "schoenflies": _builtin_kind({**_SPACE, "angle": True}, reversible=False),
    "translational": _builtin_kind(_SPACE),
    "free": _builtin_kind(_SPACE, is_ball=True, reversible=False),
}
#: All joint kinds: the built-in ones, then those of installed plugins.
JOINT_KINDS: Mapping[str, JointKind] = Registry("tauloop.joints", JointKind, _BUILTIN_KINDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Joint:
    """A joint between a frame on its parent body and a frame on its child body.

    Attributes:
        name: unique name; prefix of its coordinates' names.
        kind: key of `JOINT_KINDS`.
        parent, child: frames on the two bodies; they coincide at zero coordinates.
        axes: axis of a revolute, prismatic or cylindrical joint, in both frames; the two axes of a
            universal joint, the first fixed to the parent frame and the second to the child frame.
            A planar joint moves in the x-y plane of the parent frame and rotates about its z axis;
            a Schoenflies joint moves along z too.
        reference: start values of the coordinates (m, rad, quaternion w x y z); they also select
            the assembly mode.
        freedoms: one `Freedom` per velocity.
        is_cut: whether the description specifies that this joint closes a loop and has no
            coordinates. Tauloop chooses the other loop-closing joints.
        compliance: compliance of the joint's bearings in calculations of elasticity; None if rigid.
    """

    name: str
    kind: str
    parent: Placement
    child: Placement
    axes: tuple[AxisName, ...] = ()
    reference: tuple[float, ...] = ()
    freedoms: tuple[Freedom, ...] = ()
    is_cut: bool = False
    compliance: Compliance | None = None

    @property
    def bodies(self) -> tuple[str, str]:
        """The two bodies."""
        return self.parent.body, self.child.body

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        """Full names of the coordinates."""
        return tuple(
            f"{self.name}.{s}" if s else self.name for s in JOINT_KINDS[self.kind].coordinates
        )

    @property
    def velocity_names(self) -> tuple[str, ...]:
        """Full names of the velocities."""
        return tuple(
            f"{self.name}.{s}" if s else self.name for s in JOINT_KINDS[self.kind].velocities
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SlenderPart:
    """Inertia of a slender link, without axial inertia, about one of its ends.

    Attributes:
        mass: m, kg.
        first_moment: h = m s, with s the distance of the mass center from that end, kg m.
        second_moment: J about an axis through that end perpendicular to the link, kg m^2.
    """

    mass: Expression
    first_moment: Expression
    second_moment: Expression

    @classmethod
    def of(cls, parameters: Iterable[Expression]) -> SlenderPart:
        """Return the inertia with these three `parameters`."""
        m, h, J = parameters
        return cls(mass=m, first_moment=h, second_moment=J)

    @property
    def parameters(self) -> tuple[Expression, ...]:
        """(m, h, J)."""
        return (self.mass, self.first_moment, self.second_moment)


@dataclass(frozen=True, slots=True, kw_only=True)
class Telescope:
    """The length of a telescopic rod as a coordinate: start value (m), and its `Freedom`."""

    reference: float
    freedom: Freedom = field(default_factory=Freedom)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tension:
    """Tension bounds of a cable: a rod that only pulls.

    Attributes:
        least, greatest: bounds of the tension, N; `least` is not negative.
        stiffness: N/m. In a simulation the cable pulls with max(0, stiffness x + damping x'), where
            x is its stretch. None for a cable that does not stretch.
        damping: N s/m; None if there is none.
        restitution: fraction of the speed with which a cable that does not stretch rebounds when it
            becomes taut (0 to 1); None if unknown.
    """

    least: float
    greatest: float = math.inf
    stiffness: Expression | None = None
    damping: Expression | None = None
    restitution: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Drum:
    """A drum or sprocket about the z axis of a rod's start frame, onto which the line winds.

    Attributes:
        radius: radius to the center line of the cable or chain, m.
        is_clockwise: whether the line runs clockwise about z from its fixed end on the drum to the
            point where it leaves the drum.
    """

    radius: Expression
    is_clockwise: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Rod:
    """A two-point link from a point on one body to a point on another.

    Attributes:
        name: unique name; also the name of the length coordinate of a telescopic rod.
        start, end: frames at the joint centers A and B; only their origins matter, except with a
            drum.
        length: fixed length, m; None for a telescopic rod.
        telescope: the length coordinate of a telescopic rod; None for a fixed rod.
        lower: inertia of the link, or of the part at A: `SlenderPart` (slender), `Inertia` about A
            in the rod frame (full), or None (massless).
        upper: the part at B of a telescopic rod: `SlenderPart` measured from B towards A, or
            `Inertia` about B in the rod frame.
        spin: rotation of a full rod about its own axis: "universal" (imposed by a universal joint
            at A) or "none" (no spin, the convention of the RCID paper).
        first_axis: first axis h of the universal joint at A, in coordinates of the start body. The
            rod frame has z along the rod from A to B and y along h x z.
        tension: tension bounds of a cable; None for a rod that also pushes.
        drum: drum at A onto which the line winds; its length is then that of the free tangent plus
            radius times wrap angle (see `tauloop.equations.assembly.drums`). None for a straight
            rod.
        lower_beam: elastic beam of the link, or of the part at A, starting at A; None if not
            stated.
        upper_beam: elastic beam of the part at B of a telescopic rod, starting at B.
        contact: stiffnesses of the ball joints at A and B along the rod, N/m; None if rigid.
    """

    name: str
    start: Placement
    end: Placement
    length: Expression | None = None
    telescope: Telescope | None = None
    lower: SlenderPart | Inertia | None = None
    upper: SlenderPart | Inertia | None = None
    spin: Literal["universal", "none"] = "none"
    first_axis: Vector | None = None
    tension: Tension | None = None
    drum: Drum | None = None
    lower_beam: Beam | None = None
    upper_beam: Beam | None = None
    contact: tuple[Expression | None, Expression | None] = (None, None)

    @property
    def bodies(self) -> tuple[str, str]:
        """The two bodies."""
        return self.start.body, self.end.body

    @property
    def is_full(self) -> bool:
        """Whether the rod has a full inertia and hence a rod frame."""
        return isinstance(self.lower, Inertia) or isinstance(self.upper, Inertia)


@dataclass(frozen=True, slots=True, kw_only=True)
class Actuator(NamedFields):
    """A motor with a transmission: its position is p = offset + sum of ratio_j q_j.

    A motor force u exerts the force ratio_j u on coordinate j.

    Attributes:
        name: unique name.
        drives: (coordinate name, ratio) pairs; a coordinate is a scalar joint coordinate or a
            telescopic rod.
        offset: position of the actuator when the driven coordinates are zero, rad or m.
        inertia: inertia on the motor side, kg m^2 (or kg for a linear motor).
        friction: friction on the motor side.
        is_rotary: whether the motor is rotary (rad, N m) or linear (m, N); None: the same as the
            coordinates that it drives.
        force: largest force or torque of the motor, N or N m.
        rated_force: largest RMS force or torque that the motor can deliver continuously.
        speed: largest motor speed, rad/s or m/s.
        copper_loss: coefficient R/k^2 with the torque constant k: winding losses per squared
            force, W/N^2 or W/(N m)^2.
        drive: drive line between motors and actuator; None if the motor acts directly.
        stiffness: stiffness with the motor locked, reflected to the actuator's position, N/m or
            N m/rad; None if not stated (see `tauloop.mechanism.elastic.drives.drive_stiffness`).
    """

    name: str
    drives: tuple[tuple[str, Expression], ...]
    offset: Expression = ZERO
    is_rotary: bool | None = None
    inertia: Expression | None = None
    friction: Friction | None = None
    force: float = np.inf
    rated_force: float = np.inf
    speed: float = np.inf
    copper_loss: float | None = None
    drive: DriveLine | None = None
    stiffness: Expression | None = None

    copper = old_attribute("copper", "copper_loss")
    turns = old_attribute("turns", "is_rotary")


@dataclass(frozen=True, slots=True, kw_only=True)
class Coupling:
    """A gear, belt or cam between coordinates, without losses or compliance.

    sum of ratio_j q_j = offset + sum of curve_i(q_i).

    Attributes:
        name: unique name.
        terms: (coordinate name, ratio) pairs; a coordinate is a scalar joint coordinate or a
            telescopic rod.
        offset: value of the sum without curves, rad or m.
        is_angular: whether the sum is an angle (rad) or a length (m).
        curves: (coordinate name, curve) pairs; empty for a gear.
    """

    name: str
    terms: tuple[tuple[str, Expression], ...]
    offset: Expression = ZERO
    is_angular: bool = True
    curves: tuple[tuple[str, Curve], ...] = ()

    turns = old_attribute("turns", "is_angular")

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Names of the coordinates in terms and curves."""
        return tuple(name for name, _ in (*self.terms, *self.curves))


@dataclass(frozen=True, slots=True, kw_only=True)
class CombinedFriction:
    """Friction of a combination of coordinates, sum of ratio_j q_j, such as the travel of a belt.

    Attributes:
        name: unique name.
        terms: (coordinate name, ratio) pairs; a coordinate is a scalar joint coordinate or a
            telescopic rod.
        friction: friction F at the speed of the combination; the force on coordinate j is ratio_j
            F.
        is_angular: whether the combination is an angle (rad, N m) or a length (m, N).
    """

    name: str
    terms: tuple[tuple[str, Expression], ...]
    friction: Friction
    is_angular: bool = True

    turns = old_attribute("turns", "is_angular")


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """The moving platform with its tool frame and the independent coordinates.

    Attributes:
        body: name of the body.
        tool: frame of the tool on that body.
        independent: full velocity names of the independent coordinates, such as ``platform.x``.
            They are joint coordinates if the platform has no coordinates of its own.
        payload: rated payload of the tool, kg.
    """

    body: str
    tool: Placement
    independent: tuple[str, ...] = ()
    payload: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Mechanism(ReprMixin):
    """A machine: checked, frozen and complete.

    The data does not guarantee that the machine can be assembled.

    Attributes:
        outputs: quantities of a pose that the file defines.
        unstated_motors: coordinates that may have motors, if an imported file does not state which
            ones do. The machine then has no actuators, and force calculations raise an error.
        omitted_forces: forces of an imported description that this machine lacks.
        unknown_elements: elements of an imported description whose effect is unknown.
        materials: materials of the file, and those of Tauloop's table that it uses.
        damping: damping of vibrations; None if not stated.
        structures: frame and bodies as reduced finite-element models.

    Examples:
        >>> import tauloop as tl
        >>> machine = tl.load("delta")
        >>> machine.parameters["arm_length"].value
        0.26
        >>> machine.with_values({"arm_length": 0.3}).parameters["arm_length"].value
        0.3
    """

    name: str
    description: str = ""
    parameters: ParameterTable
    gravity: Vector
    bodies: tuple[Body, ...]
    joints: tuple[Joint, ...]
    rods: tuple[Rod, ...] = ()
    couplings: tuple[Coupling, ...] = ()
    actuators: tuple[Actuator, ...] = ()
    unstated_motors: tuple[str, ...] = ()
    losses: tuple[CombinedFriction, ...] = ()
    platform: Platform
    solids: tuple[Solid, ...] = ()
    outputs: tuple[Output, ...] = ()
    omitted_forces: tuple[str, ...] = ()
    unknown_elements: tuple[str, ...] = ()
    materials: tuple[Material, ...] = ()
    damping: Damping | None = None
    structures: tuple[ReducedStructure, ...] = ()
    file: str = ""

    def body(self, name: str) -> Body:
        """Return the body with this name."""
        return by_name(self.bodies, name, "body")

    def joint(self, name: str) -> Joint:
        """Return the joint with this name."""
        return by_name(self.joints, name, "joint")

    def rod(self, name: str) -> Rod:
        """Return the rod with this name."""
        return by_name(self.rods, name, "rod")

    @property
    def combined(self) -> frozenset[str]:
        """Names of the coordinates in couplings, losses and outputs."""
        in_outputs = {name for output in self.outputs for name in output.coordinates}
        in_couplings = {name for coupling in self.couplings for name in coupling.coordinates}
        in_losses = {name for loss in self.losses for name, _ in loss.terms}
        return frozenset(in_outputs | in_couplings | in_losses)

    @property
    def freedoms(self) -> dict[str, Freedom]:
        """The `Freedom` of each velocity of joints and telescopic rods, by name, where defined."""
        joints = (zip(joint.velocity_names, joint.freedoms, strict=False) for joint in self.joints)
        lengths = {
            rod.name: rod.telescope.freedom for rod in self.rods if rod.telescope is not None
        }
        return {name: freedom for joint in joints for name, freedom in joint} | lengths

    @property
    def has_elastic_data(self) -> bool:
        """Whether the file contains elastic data, which only calculations of elasticity use."""
        return bool(
            self.materials
            or self.structures
            or self.damping is not None
            or any(body.beams for body in self.bodies)
            or any(joint.compliance is not None for joint in self.joints)
            or any(rod.lower_beam or rod.upper_beam or any(rod.contact) for rod in self.rods)
            or any(actuator.stiffness is not None for actuator in self.actuators)
        )

    @property
    def cables(self) -> dict[str, Tension]:
        """Tension bounds of the cables, by rod name."""
        return {rod.name: rod.tension for rod in self.rods if rod.tension is not None}

    @cached_property
    def characteristic_length(self) -> float:
        """Typical dimension of the machine, m.

        This is the median of the nonzero rod lengths and joint offsets; 1 m if there are none.
        """
        lengths = [self.value(rod.length) for rod in self.rods if rod.length is not None]
        lengths += [rod.telescope.reference for rod in self.rods if rod.telescope is not None]
        frames = [frame for joint in self.joints for frame in (joint.parent, joint.child)]
        frames += [frame for rod in self.rods for frame in (rod.start, rod.end)]
        for frame in frames:
            position = [self.value(component) for component in frame.position]
            lengths.append(float(np.linalg.norm(position)))
        threshold = _ZERO_LENGTH * max(lengths, default=0.0)
        lengths = sorted(length for length in lengths if length > threshold) or [1.0]
        return 0.5 * (lengths[(len(lengths) - 1) // 2] + lengths[len(lengths) // 2])

    def with_freedoms(self, change: Callable[[str, Freedom], Freedom]) -> Mechanism:
        """Return the machine with the `Freedom` of each joint velocity and telescopic rod replaced.

        Args:
            change: function (velocity name, freedom) -> new freedom.
        """

        def joint(old: Joint) -> Joint:
            freedoms = old.freedoms or (Freedom(),) * len(old.velocity_names)
            changed = tuple(map(change, old.velocity_names, freedoms))
            return replace(old, freedoms=changed) if changed != freedoms else old

        def rod(old: Rod) -> Rod:
            if old.telescope is None:
                return old
            return replace(
                old,
                telescope=replace(old.telescope, freedom=change(old.name, old.telescope.freedom)),
            )

        return replace(self, joints=tuple(map(joint, self.joints)), rods=tuple(map(rod, self.rods)))

    def without_friction(self) -> Mechanism:
        """Return the machine without any friction in joints, rods and actuators."""
        return self._with_friction(lambda _name, _friction: None)

    def with_given_dry_friction(self, names: Iterable[str]) -> Mechanism:
        """Return the machine with the dry friction of some elements as independent parameters.

        These elements have no Coulomb, static or Stribeck friction. Instead, an independent
        parameter of each element (see `given_friction`) is its dry friction force at any speed. Its
        nominal value is zero.

        Args:
            names: names of velocities, actuators and losses that have friction.
        """
        chosen = set(names)
        no_dry_friction = dict.fromkeys(("coulomb", "coulomb_asymmetry", "static", "stribeck"))

        def changed(name: str, friction: Friction | None) -> Friction | None:
            if friction is None or name not in chosen:
                return friction
            offset = add(friction.offset or ZERO, Leaf(given_friction(name)))
            return replace(friction, offset=offset, **no_dry_friction)

        parameters = tuple(
            Parameter(name=given_friction(name), value=0.0, group="friction") for name in names
        )
        machine = self._with_friction(changed)
        return replace(machine, parameters=ParameterTable((*self.parameters, *parameters)))

    def _with_friction(
        self, change: Callable[[str, Friction | None], Friction | None]
    ) -> Mechanism:
        """Return the machine with friction laws changed by a function (name, law) -> new law."""

        def freedom(name: str, old: Freedom) -> Freedom:
            return replace(old, friction=change(name, old.friction))

        losses = ((loss, change(loss.name, loss.friction)) for loss in self.losses)
        return replace(
            self.with_freedoms(freedom),
            actuators=tuple(
                replace(actuator, friction=change(actuator.name, actuator.friction))
                for actuator in self.actuators
            ),
            losses=tuple(replace(loss, friction=friction) for loss, friction in losses if friction),
        )

    def is_loaded(self, joint: Joint) -> bool:
        """Return whether a force acts on a joint or an element refers to its coordinates.

        This includes losses, springs, rotors, motors, gears, outputs and independent coordinates.

        Joint kinds of plugins always count as loaded, because their motion is defined by their
        coordinates.
        """
        driven = {name for actuator in self.actuators for name, _ in actuator.drives}
        referenced = self.combined | driven | set(self.platform.independent)
        has_forces = any(
            f.friction is not None or f.spring is not None or f.inertia is not None
            for f in joint.freedoms
        )
        is_from_plugin = JOINT_KINDS[joint.kind].placement is not None
        is_referenced = not referenced.isdisjoint(joint.velocity_names)
        return has_forces or is_from_plugin or is_referenced

    def value(self, expression: Expression | str) -> float:
        """Return the nominal value of an expression or (by name) independent parameter, SI."""
        if isinstance(expression, str):
            return self.parameters[expression].value
        return float(evaluate(expression, self.parameters.values))

    def without_unused_parameters(self) -> Mechanism:
        """Return the machine without the independent parameters that nothing depends on."""
        used = leaves(self)
        return replace(
            self, parameters=ParameterTable(tuple(p for p in self.parameters if p.name in used))
        )

    def with_values(
        self, values: Mapping[str, float | str] = MappingProxyType({}), /, **named: float | str
    ) -> Mechanism:
        """Return the machine with new nominal values of some independent parameters.

        Their status becomes "chosen", and their source states the change.

        Args:
            values: new values by parameter name: numbers in SI units, or texts with units such as
                ``"300 mm"``.
            **named: more values, as keywords.

        Raises:
            InputError: a name is not an independent parameter, or a value is not a finite number,
                has another unit, is outside its bounds, or makes a wall thicker than its section
                allows. All problems are reported at once.
        """
        if not hasattr(values, "items"):
            what = f"{values!r:.80} is of type {type(values).__name__}"
            raise InputError.of("values", what, "give values by name: {'name': value}")
        values = {**values, **named}
        problems = Problems()
        numbers: dict[str, float] = {}
        for name, value in values.items():
            if name not in self.parameters.names:
                remedy = self.parameters.near(name) if isinstance(name, str) else ""
                problems.add(str(name), "is not an independent parameter", remedy, file=self.file)
                continue
            parameter = self.parameters[name]
            try:
                number = _si_value(value, parameter.unit)
            except (UnitError, TypeError) as error:
                what = getattr(error, "what", f"{value!r:.80} is not a number")
                problems.add(name, what, getattr(error, "remedy", "give a number"), file=self.file)
                continue
            if not parameter.allows(number):
                bounds = f"{parameter.lower:g} to {parameter.upper:g} (SI)"
                what = f"{number:g} is outside its bounds, {bounds}"
                remedy = "give a value within the bounds, or change them in the machine file"
                problems.add(name, what, remedy, file=self.file)
            numbers[name] = number
        InputError.raise_if_any(problems)
        table = tuple(
            p.changed_to(numbers[p.name]) if p.name in numbers else p for p in self.parameters
        )
        changed = replace(self, parameters=ParameterTable(table))
        InputError.raise_if_any(changed._wall_problems())
        return changed

    def _wall_problems(self) -> Problems:
        """Return a problem for each rod or body with a section whose wall is too thick."""
        beams = [(rod.name, beam) for rod in self.rods for beam in (rod.lower_beam, rod.upper_beam)]
        beams += [(body.name, item.beam) for body in self.bodies for item in body.beams]
        problems = Problems()
        for name, beam in beams:
            for segment in () if beam is None else beam.segments:
                for section in (segment.start, segment.end):
                    excess = section.excessive_wall(self.value)
                    if excess is not None:
                        wall, largest_wall = excess
                        comparison = f"{1e3 * wall:g} mm > {1e3 * largest_wall:g} mm"
                        what = f"the wall of its section is too thick: {comparison}"
                        remedy = "correct the wall or the outer dimensions"
                        problems.add(name, what, remedy, file=self.file)
                        break
        return problems

    def at_values(self, values: Mapping[str, float]) -> Mechanism:
        """Return the machine with new values of independent parameters, without any check.

        Calculations use it to vary parameters.

        Args:
            values: values by the names of independent parameters, SI.
        """
        table = ParameterTable(
            tuple(
                replace(p, value=float(values[p.name])) if p.name in values else p
                for p in self.parameters
            )
        )
        return replace(self, parameters=table)


def _si_value(value: float | str, unit: str) -> float:
    """Return a number in SI units.

    Raises:
        UnitError: the text is not a number of this dimension.
        TypeError: the value is neither a number nor a text.
    """
    if isinstance(value, str):
        return read_quantity(value, parse_unit(unit).dimension if unit else ONE, is_si=True).value
    return float(value)


#: Sort key of joints that are otherwise equal, computed from the depth of the near body and the
#: joint's index in the file.
Order = Callable[[int, int], tuple[int, ...]]


def spanning_joints(
    mechanism: Mechanism,
    error: type[TauloopError],
    order: Order,
    *,
    turns_around: Callable[[Joint], bool] = lambda _: True,
) -> list[tuple[Joint, bool]]:
    """Return the joints of a spanning tree from the base outwards, each with its direction.

    The direction is True if the tree traverses the joint from its child to its parent.

    The tree is grown by Prim's algorithm with this order of preference: the joint `PLATFORM_JOINT`,
    fixed joints, joints that need a coordinate (see `Mechanism.is_loaded`), joints with few degrees
    of freedom.

    Args:
        mechanism: the machine; joints with `is_cut` are never in the tree.
        error: type of the error for bodies without a chain of joints to the base.
        order: sort key for joints that are otherwise equal.
        turns_around: whether a joint may be traversed from its child to its parent.

    Raises:
        TauloopError: of the given type; some bodies have no chain of joints to the base.
    """
    depth = {BASE: 0}
    edges: list[tuple[Joint, bool]] = []
    costs = {
        joint.name: (
            joint.name != PLATFORM_JOINT,
            bool(JOINT_KINDS[joint.kind].velocities),
            not mechanism.is_loaded(joint),
            len(JOINT_KINDS[joint.kind].velocities),
        )
        for joint in mechanism.joints
    }
    remaining = {index: joint for index, joint in enumerate(mechanism.joints) if not joint.is_cut}
    while True:
        candidates = []
        for index, joint in remaining.items():
            has_parent = joint.parent.body in depth
            has_child = joint.child.body in depth
            if has_parent != has_child and (has_parent or turns_around(joint)):
                near_body = joint.parent.body if has_parent else joint.child.body
                candidates.append((costs[joint.name], order(depth[near_body], index), index))
        if not candidates:
            break
        _, _, index = min(candidates)
        joint = remaining.pop(index)
        is_reversed = joint.child.body in depth
        inner, outer = (joint.child, joint.parent) if is_reversed else (joint.parent, joint.child)
        depth[outer.body] = depth[inner.body] + 1
        edges.append((joint, is_reversed))
    error.raise_if_any(
        Problem(
            where=f"bodies.{body.name}",
            what="no joint that can carry coordinates leads from the base to this body",
            remedy="connect it by a joint that is not `cut` and whose parent is closer to the base, "
            "or give the platform a `motion`",
            file=mechanism.file,
        )
        for body in mechanism.bodies
        if body.name not in depth
    )
    return edges


def omission_diagnostics(mechanism: Mechanism) -> tuple[Diagnostic, ...]:
    """Return a diagnostic of omitted forces, which make results doubtful; or an empty tuple."""
    if not mechanism.omitted_forces:
        return ()
    advice = f"{'; '.join(mechanism.omitted_forces)}: {_OMISSION_REMEDY}"
    return (diagnostic(OMITTED_FORCES, len(mechanism.omitted_forces), at_most=0.0, advice=advice),)


def omission_problems(mechanism: Mechanism) -> tuple[Problem, ...]:
    """Return a problem for each omitted force and for each element of unknown effect."""
    omitted = (
        Problem(
            where="omitted_forces",
            what=f"the source file has {force}, which this machine lacks",
            remedy=_OMISSION_REMEDY,
        )
        for force in mechanism.omitted_forces
    )
    unknown = (
        Problem(
            where=element,
            what="has an unknown effect, which may change the machine",
            remedy="remove it if it does not affect the motion, or replace it by a supported element",
        )
        for element in mechanism.unknown_elements
    )
    return tuple(
        Problem(where=problem.where, what=problem.what, remedy=problem.remedy, file=mechanism.file)
        for problem in (*omitted, *unknown)
    )
