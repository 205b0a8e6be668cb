"""A machine as LinuxCNC sees it: joints and axes in its units, and pins for the geometry."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from scipy.spatial.transform import Rotation

from tauloop.common.errors import InputError, Problems
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.mechanism.description.units import si_unit
from tauloop.mechanism.model import Mechanism
from tauloop.model.model import Model

#: SI values of LinuxCNC's units.
MM, DEG = 1e-3, np.pi / 180.0
#: Units of pins by SI unit, and the SI value of one.
_UNITS = {"m": ("mm", MM), "rad": ("deg", DEG)}
#: Most joints of LinuxCNC's motion module, and most signs of a name in HAL.
MOST_JOINTS, LONGEST_NAME = 16, 46
#: Axes of the world by the coordinate of the platform that each is.
_AXES = {"platform.x": 0, "platform.y": 1, "platform.z": 2, "platform.angle": 5}
_QUATERNION = tuple(f"platform.q{part}" for part in "wxyz")
#: Letters of the axes in G-code, by number.
LETTERS = "XYZABC"
#: Turns of the platform (as a sine) and ways of its tool (m) that are rounding.
NO_TURN = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """A figure of the geometry on a HAL pin.

    Attributes:
        name: of the pin, behind the component's.
        parameter: its name in the machine file; "tool.x" and so on for the tool.
        value: in the pin's unit.
        unit: mm, deg or 1.
        si: SI value of that unit.
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
        name: of the actuator.
        turns: whether it is angular.
        home: position in the reference pose, mm or deg.
        lower, upper: its range, mm or deg; infinite without any.
        is_stop: whether the range is of stops; else it serves drawing.
        speed: largest, mm/s or deg/s; infinite without any.
    """

    name: str
    turns: bool
    home: float
    lower: float
    upper: float
    is_stop: bool
    speed: float

    @property
    def si(self) -> float:
        """SI value of its unit."""
        return DEG if self.turns else MM


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldAxis:
    """An axis of the world that the machine moves.

    Attributes:
        number: among X, Y, Z, A, B, C.
        home: in the reference pose, mm or deg.
        lower, upper: range of the platform's coordinate, carried over to the tool, mm or deg;
            infinite without any.
    """

    number: int
    home: float
    lower: float
    upper: float

    @property
    def letter(self) -> str:
        """Its letter in G-code."""
        return LETTERS[self.number]


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineLayout(ReprMixin):
    """Joints, axes and tool of a machine.

    Attributes:
        turns: 0 where no axis turns, 1 where C does, 2 where A, B and C do.
        world: axis of each number of the platform's position; 3 for the numbers of a quaternion.
        joints: in the order of the actuators.
        axes: in the order of the letters.
        tool: the tool from the platform's origin, mm, in the platform's frame (in the base's where
            no axis turns); empty where the platform turns by itself, and its origin is the tool.
    """

    turns: int
    world: tuple[int, ...]
    joints: tuple[MachineJoint, ...]
    axes: tuple[WorldAxis, ...]
    tool: tuple[float, ...]


def machine_layout(model: Model) -> MachineLayout:
    """A machine's joints and axes.

    Raises:
        InputError: what LinuxCNC cannot drive: redundant actuators or passive freedoms, a platform
            whose pose is no part of x, y and z with its whole rotation or none, a tool beside the
            origin of a platform that turns by itself.
    """
    columns = model.platform.ports.position.columns
    world = tuple(3 if name in _QUATERNION else _AXES.get(name, -1) for name in columns)
    problems = Problems()
    if -1 in world or world.count(3) not in (0, 4):
        what = f"its pose is {', '.join(columns)}, which are no axes X, Y, Z, A, B, C"
        problems.add(
            "platform",
            what,
            "LinuxCNC drives x, y and z, or some of them, with the whole rotation or none",
        )
    _note_unfit_actuators(model, problems)
    InputError.raise_if_any(problems)
    turns = 2 if 3 in world else int(5 in world)
    tool, offset = _tool(model, turns)
    return MachineLayout(
        turns=turns,
        world=world,
        joints=_joints(model),
        axes=_axes(model, world, turns, offset),
        tool=tool,
    )


#: Pins of the module beside those of the geometry.
OWN_PINS = (
    *("refused", "geometry.is", "geometry.asked"),
    *(
        f"{way}.{what}"
        for way in ("inverse", "forward")
        for what in ("reach", "pivot", "residual", "iterations")
    ),
)


def geometry_pins(
    module: str, mechanism: Mechanism, layout: MachineLayout, names: Sequence[str]
) -> tuple[Pin, ...]:
    """Pins of leaf parameters, in their order, and of the tool behind them.

    Args:
        module: name of the component.
        mechanism: the machine, whose values the pins get.
        layout: of it.
        names: of the leaf parameters.
    """
    longest = LONGEST_NAME - len(module) - 1
    taken = set(OWN_PINS)
    pins = []
    for name in names:
        parameter = mechanism.parameters[name]
        unit, si = _UNITS.get(si_unit(parameter.unit), ("1", 1.0))
        value = _in_unit(parameter.value, si)
        pins.append(
            Pin(name=pin_name(name, taken, longest), parameter=name, value=value, unit=unit, si=si)
        )
    for axis, value in zip("xyz", layout.tool, strict=False):
        name = f"tool.{axis}"
        pins.append(
            Pin(name=pin_name(name, taken, longest), parameter=name, value=value, unit="mm", si=MM)
        )
    return tuple(pins)


def _in_unit(value: float, si: float) -> float:
    """A figure in a unit, without the digits that the conversion leaves behind."""
    figure = value / si
    if not np.isfinite(figure):
        return figure
    short = float(f"{figure:.14g}")
    return short if abs(short - figure) <= 4.0 * np.finfo(float).eps * abs(figure) else figure


def pin_name(text: str, taken: set[str], longest: int) -> str:
    """A name for a HAL pin from any text: letters, digits, points and hyphens, short enough, and no name twice.

    Args:
        text: what it is made of.
        taken: names that there are, to which it is added.
        longest: most signs.
    """
    parts = (re.sub(r"[^A-Za-z0-9]+", "-", part).strip("-") for part in re.split(r"[.\[\]]", text))
    plain = ".".join(filter(None, parts))[:longest].strip(".-") or "pin"
    name, count = plain, 1
    while name in taken:
        count += 1
        name = f"{plain[: longest - 4].strip('.-')}-{count}"
    taken.add(name)
    return name


def platform_positions(layout: MachineLayout, world: np.ndarray) -> np.ndarray:
    """Tauloop's positions of the platform (N, n), SI, at places of the tool in the world (N, 6), mm and deg.

    x = x_tool - R t with R = Rz(c) Ry(b) Rx(a) and the tool t in the platform's frame.

    Examples:
        >>> import numpy as np, tauloop as tl
        >>> layout = tl.export.linuxcnc.machine_layout(tl.Model(tl.load("gantry_tau_3dof")))
        >>> pose = np.array([[10.0, 0.0, -200.0, 0.0, 0.0, 0.0]])
        >>> tl.export.linuxcnc.platform_positions(layout, pose).round(6).tolist()
        [[0.01, 0.0, 0.0]]
    """
    angles = world[:, 3:] * (layout.turns == 2) + world[:, 3:] * [0, 0, layout.turns == 1]
    R = Rotation.from_euler("xyz", angles, degrees=True)
    places = world[:, :3] * MM
    if layout.tool:
        places = places - R.apply(np.array(layout.tool) * MM)
    columns = [places[:, k] if k < 3 else DEG * world[:, k] for k in layout.world if k != 3]
    turn = R.as_quat(scalar_first=True) if layout.turns == 2 else np.empty((len(world), 0))
    return np.hstack([np.reshape(columns, (-1, len(world))).T, turn])


def _note_unfit_actuators(model: Model, problems: Problems) -> None:
    """Note actuators that are no joints of LinuxCNC."""
    assembly, count = model.assembly, len(model.mechanism.actuators)
    if assembly.is_redundant:
        what = f"{count} actuators share {len(assembly.leading)} freedoms"
        problems.add("actuators", what, "export a machine without those that follow the others")
    if assembly.passive:
        what = f"{', '.join(assembly.passive_names)} move freely, so that joints do not give the platform's pose"
        problems.add("actuators", what, "drive them, or hold them in the machine file")
    if not 1 <= count <= MOST_JOINTS:
        problems.add("actuators", f"there are {count}", f"LinuxCNC has 1 to {MOST_JOINTS} joints")
    tied = [
        model.topology.velocity_names[i]
        for i in assembly.driven
        if i not in assembly.leading_driven
    ]
    if tied and not assembly.is_redundant:
        what = f"{', '.join(tied)}: driven by a motor that drives other coordinates too, to which a coupling ties it"
        problems.add(
            "couplings",
            what,
            "let the motor drive one of the coordinates; the coupling moves the others",
        )


def _joints(model: Model) -> tuple[MachineJoint, ...]:
    """Actuators, with ranges and speeds where each drives a coordinate of its own."""
    topology, limits = model.topology, model.limits
    places = {column: k for k, column in enumerate(limits.columns)}
    joints = []
    homes = np.atleast_1d(model.actuator_position(model.assembly.q))
    for actuator, row, home in zip(
        model.mechanism.actuators, model.assembly.loops.transmission, homes, strict=True
    ):
        si = DEG if (turns := topology.motor_turns(actuator)) else MM
        lower, upper, speed, k = -np.inf, np.inf, actuator.speed, None
        if len(driven := np.flatnonzero(row)) == 1:
            ratio, v = float(row[driven[0]]), int(driven[0])
            speed = min(speed, abs(ratio) * topology.freedoms[v].speed)
            if (k := places.get(topology.q_of_v[v])) is not None:
                lower, upper = sorted(
                    (ratio * float(limits.lower[k]), ratio * float(limits.upper[k]))
                )
        joint = MachineJoint(
            name=actuator.name,
            turns=turns,
            home=_in_unit(float(home), si),
            lower=_in_unit(lower, si),
            upper=_in_unit(upper, si),
            is_stop=k is not None and bool(limits.is_stop[k]),
            speed=speed / si,
        )
        joints.append(joint)
    return tuple(joints)


def _axes(
    model: Model, world: Sequence[int], turns: int, offset: np.ndarray
) -> tuple[WorldAxis, ...]:
    """Axes that the machine moves; the tool's offset (3,) at the reference pose, m, shifts those that slide."""
    columns, q, limits = model.platform.ports.q, model.assembly.q, model.limits
    places = {column: k for k, column in enumerate(limits.columns)}
    axes = {}
    for axis, column in zip(world, columns, strict=True):
        if axis == 3:
            continue
        si, shift = (MM, float(offset[axis])) if axis < 3 else (DEG, 0.0)
        k = places.get(column)
        lower, upper = (
            (-np.inf, np.inf) if k is None else (float(limits.lower[k]), float(limits.upper[k]))
        )
        home, lower, upper = (
            _in_unit(value + shift, si) for value in (float(q[column]), lower, upper)
        )
        axes[axis] = WorldAxis(number=axis, home=home, lower=lower, upper=upper)
    if turns == 2:
        angles = Rotation.from_quat(q[list(columns[-4:])], scalar_first=True).as_euler(
            "xyz", degrees=True
        )
        for axis, angle in zip((3, 4, 5), angles, strict=True):
            axes[axis] = WorldAxis(number=axis, home=float(angle), lower=-np.inf, upper=np.inf)
    return tuple(axes[axis] for axis in sorted(axes))


def _tool(model: Model, turns: int) -> tuple[tuple[float, ...], np.ndarray]:
    """The tool in the frame that the axes turn, mm, and from the platform's origin at the reference pose (3,), m.

    Raises:
        InputError: the platform turns though no axis turns it, and its tool is not at its origin.
    """
    mechanism, names, q = model.mechanism, model.topology.coordinate_names, model.assembly.states
    tool = np.array([mechanism.value(component) for component in mechanism.platform.tool.position])
    if turns == 2:
        R = Rotation.from_quat(q[0, [names.index(name) for name in _QUATERNION]], scalar_first=True)
        return tuple(_in_unit(float(value), MM) for value in tool), R.apply(tool)
    if turns == 1:
        R = Rotation.from_rotvec([0.0, 0.0, q[0, names.index("platform.angle")]])
        return tuple(_in_unit(float(value), MM) for value in tool), R.apply(tool)
    rotations = [
        k for k, name in enumerate(names) if name == "platform.angle" or name in _QUATERNION
    ]
    if np.ptp(q[:, rotations], axis=0).max(initial=0.0) > NO_TURN:
        if np.abs(tool).max() > NO_TURN:
            what = f"lies {1e3 * np.linalg.norm(tool):.4g} mm from the origin of a platform that turns as it moves"
            raise InputError.of(
                "platform.tool", what, "put the frame of the platform's body at the tool"
            )
        return (), tool
    if tool.any():  # in the base's frame, which a platform that only slides may be turned against
        place = model.platform.tool(model.platform_position(q[:1]), start=q[:1]).place[0]
        tool = place - [q[0, names.index(f"platform.{axis}")] for axis in "xyz"]
    return tuple(_in_unit(float(value), MM) for value in tool), tool
