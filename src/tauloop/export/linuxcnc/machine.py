"""Description of a machine for LinuxCNC: joints and axes in its units, HAL pins of the geometry."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import InputError, Problems
from tauloop.common.names.deprecated import old_attribute
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.mechanism.description.units import si_unit
from tauloop.mechanism.model import Mechanism
from tauloop.model.model import Model

#: SI value of a millimeter.
MM = 1e-3
#: SI value of a degree.
DEG = np.pi / 180.0
#: Unit of a pin by SI unit, with its SI value.
_PIN_UNITS = {"m": ("mm", MM), "rad": ("deg", DEG)}
#: Maximum number of joints in LinuxCNC's motion module.
MAX_JOINTS = 16
#: Maximum number of characters in a HAL name.
MAX_HAL_NAME_LENGTH = 46
#: Number of the world axis of each platform coordinate.
_WORLD_AXES = {"platform.x": 0, "platform.y": 1, "platform.z": 2, "platform.angle": 5}
_QUATERNION = tuple(f"platform.q{component}" for component in "wxyz")
#: Letters of the axes in G-code, by number.
LETTERS = "XYZABC"
#: Rotations of the platform (quaternion components, rad) and tool offsets (m) below this value are
#: treated as zero.
ROTATION_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """A parameter of the geometry on a HAL pin.

    Attributes:
        name: name of the pin, after the component's name.
        parameter: name in the machine file; "tool.x" and so on for the tool.
        value: value in the pin's unit.
        unit: mm, deg or 1.
        si: SI value of one unit.
    """

    name: str
    parameter: str
    value: float
    unit: str
    si: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineJoint:
    """A joint of LinuxCNC: an actuator.

    Attributes:
        name: name of the actuator.
        is_angular: whether it is angular.
        home: position in the reference pose, mm or deg.
        lower, upper: range, mm or deg; infinite if unlimited.
        is_stop: whether the range ends at mechanical stops; otherwise it is the nominal range.
        speed: largest speed, mm/s or deg/s; infinite if unlimited.
    """

    name: str
    is_angular: bool
    turns = old_attribute("turns", "is_angular")
    home: float
    lower: float
    upper: float
    is_stop: bool
    speed: float

    @property
    def si(self) -> float:
        """SI value of the joint's unit."""
        return DEG if self.is_angular else MM


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldAxis:
    """A world axis along or about which the machine moves the tool.

    Attributes:
        number: index of the axis among X, Y, Z, A, B, C.
        home: position in the reference pose, mm or deg.
        lower, upper: range of the platform's coordinate, shifted to the tool, mm or deg; infinite
            if unlimited.
    """

    number: int
    home: float
    lower: float
    upper: float

    @property
    def letter(self) -> str:
        """Axis letter in G-code."""
        return LETTERS[self.number]


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineLayout(ReprMixin):
    """Joints, axes and tool of a machine.

    Attributes:
        rotation_mode: 0 without an angular axis, 1 with axis C, 2 with axes A, B and C.
        world: index of the world axis of each platform coordinate; 3 for a quaternion component.
        joints: joints in the order of the actuators.
        axes: axes in the order of the letters.
        tool: position of the tool relative to the platform's origin, mm, in the platform's frame
            (in the base frame if there is no angular axis). It is empty if the platform rotates
            but the machine has no axis A, B or C; the tool must then be at the platform's origin.
    """

    rotation_mode: int
    turns = old_attribute("turns", "rotation_mode")
    world: tuple[int, ...]
    joints: tuple[MachineJoint, ...]
    axes: tuple[WorldAxis, ...]
    tool: tuple[float, ...]


def machine_layout(model: Model) -> MachineLayout:
    """Return a machine's joints and axes.

    Raises:
        InputError: LinuxCNC cannot drive the machine. It has redundant actuators or passive degrees
            of freedom; its pose coordinates are not a subset of x, y and z with either all three
            rotations or none; or the platform rotates without an axis A, B or C and the tool is not
            at its origin.
    """
    columns = model.platform.ports.position.columns
    world = tuple(3 if name in _QUATERNION else _WORLD_AXES.get(name, -1) for name in columns)
    problems = Problems()
    if -1 in world or world.count(3) not in (0, 4):
        message = f"its pose coordinates ({', '.join(columns)}) do not correspond to the axes X, Y, Z, A, B, C"
        problems.add(
            "platform",
            message,
            "use a platform that moves in some of x, y and z, with all rotations or none",
        )
    _report_unsupported_actuators(model, problems)
    InputError.raise_if_any(problems)
    rotation_mode = 2 if 3 in world else int(5 in world)
    tool, offset = _tool(model, rotation_mode)
    return MachineLayout(
        rotation_mode=rotation_mode,
        world=world,
        joints=_joints(model),
        axes=_axes(model, world, rotation_mode, offset),
        tool=tool,
    )


#: Pins of the module in addition to those of the geometry.
MODULE_PINS = (
    *("refused", "geometry.is", "geometry.asked"),
    *(f"inverse.{quantity}" for quantity in ("reach", "pivot", "residual", "iterations")),
    *(f"forward.{quantity}" for quantity in ("reach", "pivot", "residual", "iterations")),
)


def geometry_pins(
    module: str, mechanism: Mechanism, layout: MachineLayout, names: Sequence[str]
) -> tuple[Pin, ...]:
    """Return the pins of independent parameters in their order, followed by the tool's pins.

    Args:
        module: name of the component.
        mechanism: the machine with the values of the pins.
        layout: joints, axes and tool of the machine.
        names: names of the independent parameters.
    """
    max_length = MAX_HAL_NAME_LENGTH - len(module) - 1
    taken = set(MODULE_PINS)
    pins = []
    for name in names:
        parameter = mechanism.parameters[name]
        unit, si = _PIN_UNITS.get(si_unit(parameter.unit), ("1", 1.0))
        value = _in_unit(parameter.value, si)
        pin = pin_name(name, taken, max_length)
        pins.append(Pin(name=pin, parameter=name, value=value, unit=unit, si=si))
    for axis, value in zip("xyz", layout.tool, strict=False):
        name = f"tool.{axis}"
        pin = pin_name(name, taken, max_length)
        pins.append(Pin(name=pin, parameter=name, value=value, unit="mm", si=MM))
    return tuple(pins)


def _in_unit(value: float, si: float) -> float:
    """Return an SI value in a unit, without the rounding error of the conversion.

    `si` is the SI value of the unit.
    """
    converted = value / si
    if not np.isfinite(converted):
        return converted
    short = float(f"{converted:.14g}")
    rounding = 4.0 * np.finfo(float).eps * abs(converted)
    return short if abs(short - converted) <= rounding else converted


def pin_name(text: str, taken: set[str], max_length: int) -> str:
    """Return a unique name for a HAL pin: letters, digits, dots and hyphens.

    Args:
        text: text from which the name is formed.
        taken: existing names; the new name is added.
        max_length: maximum number of characters.
    """
    words = (re.sub(r"[^A-Za-z0-9]+", "-", word).strip("-") for word in re.split(r"[.\[\]]", text))
    plain = ".".join(filter(None, words))[:max_length].strip(".-") or "pin"
    name, count = plain, 1
    while name in taken:
        count += 1
        name = f"{plain[: max_length - 4].strip('.-')}-{count}"
    taken.add(name)
    return name


def platform_positions(layout: MachineLayout, world: np.ndarray) -> np.ndarray:
    """Return the platform positions (N, n), SI, at tool positions in the world (N, 6), mm and deg.

    x = x_tool - R t with R = Rz(c) Ry(b) Rx(a) and the tool t in the platform's frame.

    Examples:
        >>> import numpy as np, tauloop as tl
        >>> layout = tl.export.linuxcnc.machine_layout(tl.Model(tl.load("gantry_tau_3dof")))
        >>> pose = np.array([[10.0, 0.0, -200.0, 0.0, 0.0, 0.0]])
        >>> tl.export.linuxcnc.platform_positions(layout, pose).round(6).tolist()
        [[0.01, 0.0, 0.0]]
    """
    from scipy.spatial.transform import Rotation  # SciPy is an optional dependency

    angles = np.zeros((len(world), 3))
    if layout.rotation_mode == 2:
        angles = world[:, 3:]
    elif layout.rotation_mode == 1:
        angles[:, 2] = world[:, 5]
    R = Rotation.from_euler("xyz", angles, degrees=True)
    origins = world[:, :3] * MM
    if layout.tool:
        origins = origins - R.apply(np.array(layout.tool) * MM)
    columns = [origins[:, k] if k < 3 else DEG * world[:, k] for k in layout.world if k != 3]
    quaternion = np.empty((len(world), 0))
    if layout.rotation_mode == 2:
        quaternion = R.as_quat(scalar_first=True)
    return np.hstack([np.reshape(columns, (-1, len(world))).T, quaternion])


def _report_unsupported_actuators(model: Model, problems: Problems) -> None:
    """Report actuators that cannot be joints of LinuxCNC."""
    assembly, count = model.assembly, len(model.mechanism.actuators)
    if assembly.is_redundant:
        freedoms = counted(len(assembly.leading), "degree of freedom")
        message = f"{counted(count, 'actuator', 'share')} {freedoms}"
        problems.add("actuators", message, "export a machine without the redundant actuators")
    if assembly.passive:
        names = ", ".join(assembly.passive_names)
        message = f"the joints do not determine the platform's pose: passive coordinates {names}"
        problems.add("actuators", message, "drive or lock these coordinates in the machine file")
    if not 1 <= count <= MAX_JOINTS:
        problems.add(
            "actuators",
            f"the machine has {count} actuators",
            f"use a machine with 1 to {MAX_JOINTS} actuators; LinuxCNC has at most {MAX_JOINTS} joints",
        )
    tied = [
        model.topology.velocity_names[i]
        for i in assembly.driven
        if i not in assembly.leading_driven
    ]
    if tied and not assembly.is_redundant:
        message = (
            f"{', '.join(tied)}: driven by a motor that also drives other coordinates, and "
            "constrained to them by a coupling"
        )
        problems.add(
            "couplings",
            message,
            "let the motor drive one of the coordinates; the coupling moves the others",
        )


def _joints(model: Model) -> tuple[MachineJoint, ...]:
    """Return the joints. Only actuators of a single coordinate have a range."""
    topology, limits = model.topology, model.limits
    limit_index = {column: k for k, column in enumerate(limits.columns)}
    joints = []
    homes = np.atleast_1d(model.actuator_position(model.assembly.q))
    loops = model.assembly.loops
    for actuator, row, offset, home in zip(
        model.mechanism.actuators, loops.transmission, loops.actuator_offsets, homes, strict=True
    ):
        is_angular = topology.is_rotary(actuator)
        si = DEG if is_angular else MM
        lower, upper = -np.inf, np.inf
        speed = actuator.speed
        k = None
        driven = np.flatnonzero(row)
        if len(driven) == 1:
            ratio, v = float(row[driven[0]]), int(driven[0])
            speed = min(speed, abs(ratio) * topology.freedoms[v].speed)
            k = limit_index.get(topology.q_of_v[v])
            if k is not None:
                ends = (float(limits.lower[k]), float(limits.upper[k]))
                lower, upper = sorted(ratio * end + float(offset) for end in ends)
        joint = MachineJoint(
            name=actuator.name,
            is_angular=is_angular,
            home=_in_unit(float(home), si),
            lower=_in_unit(lower, si),
            upper=_in_unit(upper, si),
            is_stop=k is not None and bool(limits.is_stop[k]),
            speed=speed / si,
        )
        joints.append(joint)
    return tuple(joints)


def _axes(
    model: Model, world: Sequence[int], rotation_mode: int, offset: np.ndarray
) -> tuple[WorldAxis, ...]:
    """Return the driven axes, shifted by the tool's offset in the reference pose (3,), m."""
    from scipy.spatial.transform import Rotation  # SciPy is an optional dependency

    columns, q, limits = model.platform.ports.q, model.assembly.q, model.limits
    limit_index = {column: k for k, column in enumerate(limits.columns)}
    axes = {}
    for axis, column in zip(world, columns, strict=True):
        if axis == 3:
            continue
        si, shift = (MM, float(offset[axis])) if axis < 3 else (DEG, 0.0)
        k = limit_index.get(column)
        lower, upper = -np.inf, np.inf
        if k is not None:
            lower, upper = float(limits.lower[k]), float(limits.upper[k])
        axes[axis] = WorldAxis(
            number=axis,
            home=_in_unit(float(q[column]) + shift, si),
            lower=_in_unit(lower + shift, si),
            upper=_in_unit(upper + shift, si),
        )
    if rotation_mode == 2:
        angles = Rotation.from_quat(q[list(columns[-4:])], scalar_first=True).as_euler(
            "xyz", degrees=True
        )
        for axis, angle in zip((3, 4, 5), angles, strict=True):
            axes[axis] = WorldAxis(number=axis, home=float(angle), lower=-np.inf, upper=np.inf)
    return tuple(axes[axis] for axis in sorted(axes))


def _tool(model: Model, rotation_mode: int) -> tuple[tuple[float, ...], np.ndarray]:
    """Return the tool's position relative to the platform's origin, in two frames.

    The first result is in the rotating frame, mm; the second is in the base frame at the reference
    pose, m.

    Raises:
        InputError: the platform rotates without an axis A, B or C, and the tool is not at its origin.
    """
    from scipy.spatial.transform import Rotation  # SciPy is an optional dependency

    mechanism, names, q = model.mechanism, model.topology.coordinate_names, model.assembly.states
    tool = np.array([mechanism.value(component) for component in mechanism.platform.tool.position])
    if rotation_mode == 2:
        R = Rotation.from_quat(q[0, [names.index(name) for name in _QUATERNION]], scalar_first=True)
        return tuple(_in_unit(float(value), MM) for value in tool), R.apply(tool)
    if rotation_mode == 1:
        R = Rotation.from_rotvec([0.0, 0.0, q[0, names.index("platform.angle")]])
        return tuple(_in_unit(float(value), MM) for value in tool), R.apply(tool)
    rotations = [
        k for k, name in enumerate(names) if name == "platform.angle" or name in _QUATERNION
    ]
    if np.ptp(q[:, rotations], axis=0).max(initial=0.0) > ROTATION_TOLERANCE:
        if np.abs(tool).max() > ROTATION_TOLERANCE:
            distance = 1e3 * np.linalg.norm(tool)
            message = f"is {distance:.4g} mm from the origin of a platform that rotates as it moves"
            raise InputError.of(
                "platform.tool", message, "put the frame of the platform's body at the tool"
            )
        return (), tool
    if tool.any():
        # the frame of a platform without rotations may be rotated relative to the base frame
        position = model.platform.tool(model.platform_position(q[:1]), start=q[:1]).place[0]
        tool = position - [q[0, names.index(f"platform.{axis}")] for axis in "xyz"]
    return tuple(_in_unit(float(value), MM) for value in tool), tool
