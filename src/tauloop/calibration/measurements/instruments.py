"""Instruments: what each kind of measurement reads at a pose, and the unknowns that it brings along itself.

An instrument gives expressions: its readings as they should be at coordinates q, less what was
read. Frames, targets, centres and zero points of instruments are *nuisance* parameters with names
of their own (``tracker.frame.x``); they are fixed at their start values unless a calibration names
them among its unknowns.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import MISSING, field, fields, replace
from typing import Any, ClassVar

import casadi as ca
import numpy as np

from tauloop.calibration.measurements.surfaces import Plane, Surface, Vector3
from tauloop.common.errors import InputError, Problem, Problems
from tauloop.common.records import dataclass
from tauloop.equations.assembly.loops import nominal
from tauloop.equations.topology import Topology
from tauloop.equations.tree import TreeMotion, quaternion_rotation, symbolic_motion
from tauloop.equations.values import Values
from tauloop.mechanism.model import Mechanism
from tauloop.mechanism.suggestions import unknown_names

ORIGIN: Vector3 = (0.0, 0.0, 0.0)
#: Usual sizes of corrections: of a length (m), an angle (rad) and a plain number.
TYPICAL = {"m": 1e-3, "rad": 1e-3, "1": 1e-3}
#: Distances in both rows of a pair that differ by more than this, m, are two.
SAME_DISTANCE = 1e-9
_QUATERNION = (("qw", "1"), ("qx", "1"), ("qy", "1"), ("qz", "1"))
_TURN = (("turn x", "rad"), ("turn y", "rad"), ("turn z", "rad"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Nuisance:
    """An unknown that belongs to an instrument and not to the machine.

    Attributes:
        name: such as ``tracker.frame.x``.
        value: start value, SI.
        unit: m, rad or 1.
    """

    name: str
    value: float
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """The machine at symbolic coordinates, as instruments see it.

    Attributes:
        mechanism, topology, values, motion: the machine, its parameters and where its bodies are.
        nuisances: values or symbols of all nuisance parameters by name.
        others: the same machine at the further poses that a reading belongs to, for instruments
            with several `poses`.
    """

    mechanism: Mechanism
    topology: Topology
    values: Values
    motion: TreeMotion
    nuisances: Mapping[str, Any]
    others: tuple[Scene, ...] = ()

    def vector(self, prefix: str, letters: tuple[str, ...] = ("x", "y", "z")) -> ca.SX:
        """Nuisance parameters ``prefix.x`` and so on as a vector."""
        return ca.SX(ca.vertcat(*(self.nuisances[f"{prefix}.{letter}"] for letter in letters)))

    def target(self, name: str) -> ca.SX:
        """Point (3,) in the base frame that an instrument looks at: its target's offset from the tool centre point."""
        R_tool, p_tool = self.values.placement(self.mechanism.platform.tool)
        body = self.motion.bodies[self.mechanism.platform.tool.body]
        return body.p + body.R @ (p_tool + R_tool @ self.vector(f"{name}.target"))

    @property
    def tool_rotation(self) -> ca.SX:
        """Orientation (3, 3) of the tool frame in the base frame."""
        R_tool, _ = self.values.placement(self.mechanism.platform.tool)
        return self.motion.bodies[self.mechanism.platform.tool.body].R @ R_tool


def nominal_scene(
    mechanism: Mechanism, topology: Topology, instrument: Instrument
) -> tuple[ca.SX, Scene]:
    """Symbols of the coordinates of all poses of a reading, one after the other, and the machine there.

    The machine is at rest, with nominal parameters and start values.
    """
    values = nominal(mechanism)
    nuisances = {nuisance.name: nuisance.value for nuisance in instrument.nuisances()}
    scenes = [
        Scene(
            mechanism=mechanism,
            topology=topology,
            values=values,
            motion=symbolic_motion(topology, values, is_moving=False),
            nuisances=nuisances,
        )
        for _ in range(instrument.poses)
    ]
    return ca.vertcat(*(scene.motion.q for scene in scenes)), replace(
        scenes[0], others=tuple(scenes[1:])
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Instrument(ABC):
    """One kind of measurement; to add one, say its columns, its nuisance parameters and its errors.

    Attributes:
        name: prefix of its nuisance parameters; one name for each real instrument.
        kind, usual_name: what files and the command line call it, and its name where nobody gives
            it one.
        touches: whether it is read at poses where its one error is zero: a contact.
        reads: name and SI unit of every number that it reads, where that is the same for all of its
            kind.
    """

    kind: ClassVar[str] = ""
    usual_name: ClassVar[str] = "instrument"
    touches: ClassVar[bool] = False
    reads: ClassVar[tuple[tuple[str, str], ...]] = ()
    name: str

    @property
    def poses(self) -> int:
        """Number of poses that one reading belongs to: one, but for distances between poses and the like."""
        return 1

    def at_poses(self, count: int) -> Instrument:
        """The instrument where a table has so many poses for each reading; the same for most kinds."""
        return self

    @property
    def assumed(self) -> float | None:
        """The reading where a table has no column of it; None where there must be one."""
        return None

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        """Name and SI unit of every number that is read."""
        return self.reads

    @property
    def row_columns(self) -> tuple[tuple[str, str], ...]:
        """Name and SI unit of every number that a table has in the row of one pose."""
        return self.columns

    def gathered(self, rows: np.ndarray) -> np.ndarray:
        """Readings (N, n_columns) from what the rows of their poses hold (N, `poses`, n_row_columns)."""
        return rows[:, 0]

    def readings_at(self, errors: np.ndarray) -> np.ndarray:
        """Readings (N, n_columns) that are predicted, from the errors (N, n_errors) at readings of zero.

        From the unit quaternion the error of a turn by a about e is 2 sin(a/2) e, twice the vector
        part of the quaternion that would be read.
        """
        first = self.quaternion_column
        if first is None:
            return errors
        half = errors[:, first : first + 3] / 2
        real = np.sqrt(np.maximum(1.0 - (half**2).sum(axis=1, keepdims=True), 0.0))
        return np.concatenate([errors[:, :first], real, half], axis=1)

    @property
    def errors(self) -> tuple[tuple[str, str], ...]:
        """Name and SI unit of every error; as the columns, but a turn in place of a quaternion."""
        first = self.quaternion_column
        return self.columns if first is None else (*self.columns[:first], *_TURN)

    @property
    def position_columns(self) -> tuple[int, ...]:
        """Indices of x, y and z among the columns (and errors); empty where not all three are read."""
        names = [name for name, _ in self.columns]
        return tuple(names.index(letter) for letter in "xyz") if set("xyz") <= set(names) else ()

    @property
    def quaternion_column(self) -> int | None:
        """Index of qw among the columns, and of the first error of the turn; None without a quaternion."""
        return next((i for i, (name, _) in enumerate(self.columns) if name == "qw"), None)

    @abstractmethod
    def nuisances(self) -> tuple[Nuisance, ...]:
        """The unknowns of the instrument with their start values."""

    @abstractmethod
    def error(self, scene: Scene, reading: ca.SX) -> ca.SX:
        """Errors (n_errors,): what should have been read less what was read (n_columns,)."""

    def check(self, mechanism: Mechanism, topology: Topology) -> list[Problem]:
        """What is wrong with this instrument on this machine."""
        return []


_TURN_LETTERS = ("rx", "ry", "rz")


def _nuisances(prefix: str, *rows: tuple[str, float, str]) -> tuple[Nuisance, ...]:
    """Unknowns ``prefix.NAME`` by name, start value and unit."""
    return tuple(
        Nuisance(name=f"{prefix}.{name}", value=value, unit=unit) for name, value, unit in rows
    )


def _vector(prefix: str, start: Vector3) -> tuple[Nuisance, ...]:
    return _nuisances(
        prefix, *((letter, value, "m") for letter, value in zip("xyz", start, strict=True))
    )


def _turn(prefix: str) -> tuple[Nuisance, ...]:
    return _nuisances(prefix, *((letter, 0.0, "rad") for letter in _TURN_LETTERS))


def _turned(rho: ca.SX, start: tuple[float, float, float, float]) -> ca.SX:
    """R(rho) R_0 (3, 3) with the quaternion (1, rho/2) made to length one: the rotation vector up to third order."""
    q = ca.vertcat(1, rho / 2)
    return quaternion_rotation(q / ca.sqrt(ca.dot(q, q))) @ quaternion_rotation(ca.SX(list(start)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """Start pose of an instrument's frame in the base frame: origin (m) and unit quaternion (w, x, y, z).

    Examples:
        >>> import tauloop as tl
        >>> tl.Frame(position=(1.0, 0.0, 0.5)).quaternion
        (1.0, 0.0, 0.0, 0.0)
    """

    position: Vector3 = ORIGIN
    quaternion: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Framed(Instrument):
    """An instrument that reads in a frame of its own: y = R_F^T (p - t_F).

    The unknown turn ``frame.rx, ry, rz`` is R_F = R(rho) R_0.

    Attributes:
        frame: start pose of that frame in the base frame.
        target: start value of the target's offset from the tool centre point, in the tool frame, m.
    """

    usual_name: ClassVar[str] = "tracker"
    frame: Frame = field(default_factory=Frame)
    target: Vector3 = ORIGIN

    def check(self, mechanism: Mechanism, topology: Topology) -> list[Problem]:
        """The frame's quaternion has length one."""
        return _not_unit(f"{self.name}.frame", self.frame.quaternion)

    def nuisances(self) -> tuple[Nuisance, ...]:
        """Frame (6) and target (3)."""
        return (
            *_vector(f"{self.name}.frame", self.frame.position),
            *_turn(f"{self.name}.frame"),
            *_vector(f"{self.name}.target", self.target),
        )

    def _frame_rotation(self, scene: Scene) -> ca.SX:
        return _turned(scene.vector(f"{self.name}.frame", _TURN_LETTERS), self.frame.quaternion)

    def _position(self, scene: Scene) -> ca.SX:
        offset = scene.target(self.name) - scene.vector(f"{self.name}.frame")
        return self._frame_rotation(scene).T @ offset


def _not_unit(where: str, quaternion: tuple[float, float, float, float]) -> list[Problem]:
    size = math.sqrt(sum(number * number for number in quaternion))
    if abs(size - 1.0) < 1e-6:
        return []
    what = f"the quaternion has length {size:.6g}"
    return [Problem(where=where, what=what, remedy="give a unit quaternion (w, x, y, z)")]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Oriented(Framed):
    """An instrument that reads the orientation of a target on the tool: R_F^T R_tool R_T.

    The unknown turn ``target.rx, ry, rz`` is R_T = R(rho) R_0, from the tool's axes to the target's
    own.

    Attributes:
        target_quaternion: start orientation R_0 of the target in the tool frame (w, x, y, z).
    """

    target_quaternion: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0)

    def nuisances(self) -> tuple[Nuisance, ...]:
        """Frame (6) and target (6)."""
        return (*Framed.nuisances(self), *_turn(f"{self.name}.target"))

    def check(self, mechanism: Mechanism, topology: Topology) -> list[Problem]:
        """Both quaternions have length one."""
        return [
            *Framed.check(self, mechanism, topology),
            *_not_unit(f"{self.name}.target", self.target_quaternion),
        ]

    def _turn_error(self, scene: Scene, quaternion: ca.SX) -> ca.SX:
        """Rotation vector (3,) from the measured to the predicted orientation: 2 sin(angle/2) along the axis."""
        measured = quaternion_rotation(quaternion / ca.sqrt(ca.dot(quaternion, quaternion)))
        target = _turned(scene.vector(f"{self.name}.target", _TURN_LETTERS), self.target_quaternion)
        E = measured.T @ self._frame_rotation(scene).T @ scene.tool_rotation @ target
        twice_sine = ca.vertcat(E[2, 1] - E[1, 2], E[0, 2] - E[2, 0], E[1, 0] - E[0, 1])
        return twice_sine / ca.sqrt(1 + ca.trace(E))


@dataclass(frozen=True, slots=True, kw_only=True)
class Position(Framed):
    """Position of a target on the tool, as a laser tracker reads it: all components or some.

    Attributes:
        components: which of x, y, z were measured.
    """

    kind: ClassVar[str] = "position"
    components: str = "xyz"

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        """The measured components, m."""
        return tuple((letter, "m") for letter in self.components)

    def error(self, scene: Scene, reading: ca.SX) -> ca.SX:
        """Predicted less measured position in the instrument's frame."""
        predicted = self._position(scene)
        return ca.vertcat(*(predicted["xyz".index(letter)] for letter in self.components)) - reading

    def check(self, mechanism: Mechanism, topology: Topology) -> list[Problem]:
        """Components are distinct letters, and the frame is one."""
        wrong = Framed.check(self, mechanism, topology)
        if (
            self.components
            and set(self.components) <= set("xyz")
            and len(set(self.components)) == len(self.components)
        ):
            return wrong
        remedy = "give distinct letters of x, y and z"
        return [
            *wrong,
            Problem(where=f"{self.name}.components", what=f"is {self.components!r}", remedy=remedy),
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Orientation(_Oriented):
    """Orientation of a target on the tool as a unit quaternion (w, x, y, z)."""

    kind: ClassVar[str] = "orientation"
    reads: ClassVar[tuple[tuple[str, str], ...]] = _QUATERNION

    def error(self, scene: Scene, reading: ca.SX) -> ca.SX:
        """Rotation vector in the target's frame."""
        return self._turn_error(scene, reading)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pose(_Oriented):
    """Position and orientation of a target on the tool."""

    kind: ClassVar[str] = "pose"
    reads: ClassVar[tuple[tuple[str, str], ...]] = (
        ("x", "m"),
        ("y", "m"),
        ("z", "m"),
        *_QUATERNION,
    )

    def error(self, scene: Scene, reading: ca.SX) -> ca.SX:
        """Predicted less measured position, and the rotation vector."""
        return ca.vertcat(self._position(scene) - reading[:3], self._turn_error(scene, reading[3:]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Distance(Instrument):
    """Distance from a fixed centre to a target on the tool, as a ball bar reads it.

    Attributes:
        center: start value of the centre in the base frame, m.
        target: start value of the target's offset from the tool centre point, in the tool frame, m.
    """

    kind: ClassVar[str] = "distance"
    reads: ClassVar[tuple[tuple[str, str], ...]] = (("distance", "m"),)
    usual_name: ClassVar[str] = "bar"
    center: Vector3
    target: Vector3 = ORIGIN

    def nuisances(self) -> tuple[Nuisance, ...]:
        """Centre (3), target (3) and a constant error of the bar's length."""
        return (
            *_vector(f"{self.name}.center", self.center),
            *_vector(f"{self.name}.target", self.target),
            *_nuisances(self.name, ("offset", 0.0, "m")),
        )

    def error(self, scene: Scene, reading: ca.SX) -> ca.SX:
        """Predicted less measured distance."""
        d = scene.target(self.name) - scene.vector(f"{self.name}.center")
        return ca.sqrt(ca.dot(d, d)) + scene.nuisances[f"{self.name}.offset"] - reading


@dataclass(frozen=True, slots=True, kw_only=True)
class Contact(Instrument):
    """A target on the tool touches a known surface; what is read is the gap, which is zero at contact.

    Attributes:
        surface: a plane, sphere or cylinder.
        target: start value of the touching point's offset from the tool centre point, in the tool
            frame, m.
    """

    kind: ClassVar[str] = "contact"
    reads: ClassVar[tuple[tuple[str, str], ...]] = (("gap", "m"),)
    usual_name: ClassVar[str] = "surface"
    touches: ClassVar[bool] = True
    surface: Surface = field(default_factory=Plane)
    target: Vector3 = ORIGIN

    @property
    def assumed(self) -> float | None:
        """No gap."""
        return 0.0

    def nuisances(self) -> tuple[Nuisance, ...]:
        """Place of the surface, and target (3)."""
        return (
            *_nuisances(self.name, *self.surface.unknowns()),
            *_vector(f"{self.name}.target", self.target),
        )

    def error(self, scene: Scene, reading: ca.SX) -> ca.SX:
        """Signed distance from the surface less the gap."""
        place = {
            name: scene.nuisances[f"{self.name}.{name}"] for name, _, _ in self.surface.unknowns()
        }
        return self.surface.distance(scene.target(self.name), place) - reading

    def check(self, mechanism: Mechanism, topology: Topology) -> list[Problem]:
        """The surface has a direction and a size."""
        return [
            Problem(
                where=f"{self.name}.surface.{where}",
                what=what,
                remedy="give a direction or a size above zero",
            )
            for where, what in self.surface.faults()
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inclinometer(Instrument):
    """Two angles of the tool frame against the vertical: roll atan2(u_y, u_z) and pitch -asin(u_x).

    u is the upward vertical (against gravity) in the tool frame.
    """

    kind: ClassVar[str] = "inclinometer"
    reads: ClassVar[tuple[tuple[str, str], ...]] = (("roll", "rad"), ("pitch", "rad"))
    usual_name: ClassVar[str] = "level"

    def nuisances(self) -> tuple[Nuisance, ...]:
        """Zero offsets of both angles."""
        return _nuisances(self.name, ("roll", 0.0, "rad"), ("pitch", 0.0, "rad"))

    def error(self, scene: Scene, reading: ca.SX) -> ca.SX:
        """Predicted less measured angles."""
        gravity = scene.values.vector(scene.mechanism.gravity)
        u = -scene.tool_rotation.T @ gravity / ca.sqrt(ca.dot(gravity, gravity))
        predicted = ca.vertcat(ca.atan2(u[1], u[2]), -ca.asin(u[0]))
        return predicted + scene.vector(self.name, ("roll", "pitch")) - reading

    def check(self, mechanism: Mechanism, topology: Topology) -> list[Problem]:
        """There must be gravity to tell the vertical."""
        if any(mechanism.value(component) != 0.0 for component in mechanism.gravity):
            return []
        return [
            Problem(
                where=self.name,
                what="gravity is zero, so there is no vertical",
                remedy="state gravity",
            )
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class JointSensor(Instrument):
    """A sensor on one more joint of the machine: what was read is the coordinate times a scale plus an offset.

    Redundant sensors let a machine calibrate itself.

    Attributes:
        coordinate: name of a scalar coordinate (see `tauloop show`).
        unit: m or rad.
    """

    kind: ClassVar[str] = "joint"
    usual_name: ClassVar[str] = "sensor"
    coordinate: str
    unit: str = "rad"

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        """The reading."""
        return ((self.coordinate, self.unit),)

    def nuisances(self) -> tuple[Nuisance, ...]:
        """Scale and offset."""
        return _nuisances(self.name, ("scale", 1.0, "1"), ("offset", 0.0, self.unit))

    def error(self, scene: Scene, reading: ca.SX) -> ca.SX:
        """Predicted less measured reading."""
        q = scene.motion.configuration.q[scene.topology.coordinate_names.index(self.coordinate)]
        return (
            scene.nuisances[f"{self.name}.scale"] * q
            + scene.nuisances[f"{self.name}.offset"]
            - reading
        )

    def check(self, mechanism: Mechanism, topology: Topology) -> list[Problem]:
        """The coordinate is there and is a scalar of that unit."""
        units = {
            topology.coordinate_names[j]: "rad" if topology.is_angle[j] else "m"
            for j in topology.q_of_v
            if j >= 0
        }
        remedy = f"scalar coordinates are {', '.join(units)}"
        what, where = "{!r} is no scalar coordinate", f"{self.name}.coordinate"
        problems = Problems(unknown_names([self.coordinate], units, what, where, remedy))
        if (unit := units.get(self.coordinate, self.unit)) != self.unit:
            problems.add(
                f"{self.name}.unit", f"is {self.unit!r}", f"{self.coordinate} is in {unit}"
            )
        return problems


@dataclass(frozen=True, slots=True, kw_only=True)
class Between(Instrument):
    """Distance between two poses of a target on the tool: a width of a printed part, a gauge block, a ball bar.

    What is read is scale |p_B - p_A| + offset, or scale |e.(p_B - p_A)| + offset along a direction
    e. It does not depend on where the base frame is.

    Attributes:
        length: of a gauge or ball bar, m: the reading where a table has none.
        target: start value of the target's offset from the tool centre point, in the tool frame, m.
        direction: of the measurement in the base frame, of any length, as of a caliper across two
            walls; none for the distance itself.
    """

    kind: ClassVar[str] = "between"
    reads: ClassVar[tuple[tuple[str, str], ...]] = (("distance", "m"),)
    usual_name: ClassVar[str] = "caliper"
    length: float | None = None
    target: Vector3 = ORIGIN
    direction: Vector3 | None = None

    @property
    def poses(self) -> int:
        """Two: both ends."""
        return 2

    @property
    def assumed(self) -> float | None:
        """The length of the gauge."""
        return self.length

    def gathered(self, rows: np.ndarray) -> np.ndarray:
        """The distance, which the rows of both ends hold alike.

        Raises:
            InputError: they do not.
        """
        problems = Problems()
        for i in np.flatnonzero(np.abs(np.diff(rows[:, :, 0], axis=1)[:, 0]) > SAME_DISTANCE):
            first, second = (1e3 * float(value) for value in rows[i, :, 0])
            what = (
                f"both ends of distance {i + 1} have other numbers: {first:.6g} and {second:.6g} mm"
            )
            problems.add(
                f"{self.name}.distance", what, "give both rows of a pair the same distance"
            )
        InputError.raise_if_any(problems)
        return rows[:, 0]

    def nuisances(self) -> tuple[Nuisance, ...]:
        """Target (3), a constant error (both probe radii, the width of a line) and a scale (shrinkage)."""
        return (
            *_vector(f"{self.name}.target", self.target),
            *_nuisances(self.name, ("offset", 0.0, "m"), ("scale", 1.0, "1")),
        )

    def error(self, scene: Scene, reading: ca.SX) -> ca.SX:
        """Predicted less measured distance."""
        (end,) = scene.others
        d = end.target(self.name) - scene.target(self.name)
        if self.direction is None:
            distance = ca.sqrt(ca.dot(d, d))
        else:
            e = np.asarray(self.direction) / np.linalg.norm(self.direction)
            distance = ca.fabs(ca.dot(ca.DM(e), d))
        return (
            scene.nuisances[f"{self.name}.scale"] * distance
            + scene.nuisances[f"{self.name}.offset"]
            - reading
        )

    def check(self, mechanism: Mechanism, topology: Topology) -> list[Problem]:
        """A direction has a length, and a gauge a positive one."""
        problems = Problems()
        if self.direction is not None and not np.linalg.norm(self.direction) > 0.0:
            what = "has no direction: all three numbers are zero"
            problems.add(f"{self.name}.direction", what, "give a vector, or leave it out")
        if self.length is not None and not self.length > 0.0:
            problems.add(
                f"{self.name}.length",
                f"is {1e3 * self.length:g} mm",
                "give the length of the gauge",
            )
        return problems


@dataclass(frozen=True, slots=True, kw_only=True)
class StepGauge(Instrument):
    """Places of several touches along a step gauge or scale that lies anywhere, as its certificate has them.

    With the direction e from the first to the last touch, scale e.p_k is the place y_k but for a
    constant: where the gauge begins is unknown. Of the K differences d_k the K - 1 Helmert
    contrasts are the errors:

        (d_1 + ... + d_k - k d_(k+1)) / sqrt(k (k + 1)),

    which have the noise of one touch and are independent of each other where the touches are.

    Attributes:
        count: number K of touches in one placement of the gauge.
        target: start value of the touching point's offset from the tool centre point, in the tool
            frame, m.
    """

    kind: ClassVar[str] = "steps"
    usual_name: ClassVar[str] = "gauge"
    count: int = 2
    target: Vector3 = ORIGIN

    @property
    def poses(self) -> int:
        """All touches of one placement."""
        return self.count

    def at_poses(self, count: int) -> Instrument:
        """The same gauge with another number of touches."""
        return replace(self, count=count)

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        """Places along the gauge."""
        return tuple((f"place {k + 1}", "m") for k in range(self.count))

    @property
    def row_columns(self) -> tuple[tuple[str, str], ...]:
        """The place of one touch."""
        return (("place", "m"),)

    @property
    def errors(self) -> tuple[tuple[str, str], ...]:
        """Helmert contrasts of the differences."""
        return tuple((f"step {k + 1}", "m") for k in range(self.count - 1))

    def gathered(self, rows: np.ndarray) -> np.ndarray:
        """The places of all touches."""
        return rows[:, :, 0]

    def readings_at(self, errors: np.ndarray) -> np.ndarray:
        """Places whose mean is zero: the contrasts do not depend on it."""
        return errors @ _contrasts(self.count)

    def nuisances(self) -> tuple[Nuisance, ...]:
        """Target (3) and a scale (expansion of the gauge)."""
        return (
            *_vector(f"{self.name}.target", self.target),
            *_nuisances(self.name, ("scale", 1.0, "1")),
        )

    def error(self, scene: Scene, reading: ca.SX) -> ca.SX:
        """Contrasts of predicted less measured places."""
        points = [place.target(self.name) for place in (scene, *scene.others)]
        line = points[-1] - points[0]
        e = line / ca.sqrt(ca.dot(line, line))
        scale = scene.nuisances[f"{self.name}.scale"]
        differences = ca.vertcat(*(scale * ca.dot(e, point) for point in points)) - reading
        return ca.DM(_contrasts(self.count)) @ differences

    def check(self, mechanism: Mechanism, topology: Topology) -> list[Problem]:
        """At least two touches."""
        if self.count >= 2:
            return []
        what = f"{self.count} touch of the gauge shows no step"
        return [
            Problem(where=f"{self.name}.count", what=what, remedy="touch it at two places or more")
        ]


def _contrasts(count: int) -> np.ndarray:
    """Helmert's orthonormal rows (count - 1, count), each across a constant."""
    rows = np.zeros((count - 1, count))
    for k in range(1, count):
        rows[k - 1, :k] = 1.0
        rows[k - 1, k] = -k
        rows[k - 1] /= math.sqrt(k * (k + 1))
    return rows


#: Instruments by kind.
INSTRUMENTS: dict[str, type[Instrument]] = {
    kind.kind: kind
    for kind in (
        Position,
        Pose,
        Orientation,
        Distance,
        Between,
        StepGauge,
        Contact,
        Inclinometer,
        JointSensor,
    )
}


def needed(kind: type[Instrument]) -> tuple[str, ...]:
    """Names of the attributes, besides its name, without which an instrument of a kind cannot be made."""
    return tuple(
        item.name
        for item in fields(kind)
        if item.default is MISSING and item.default_factory is MISSING and item.name != "name"
    )


def require_instruments(
    instruments: list[Instrument], mechanism: Mechanism, topology: Topology
) -> None:
    """Refuse instruments that cannot work on a machine, all problems at once.

    Raises:
        InputError: with every problem.
    """
    problems = Problems(
        problem for instrument in instruments for problem in instrument.check(mechanism, topology)
    )
    by_name: dict[str, Instrument] = {}
    for instrument in instruments:
        if by_name.setdefault(instrument.name, instrument) != instrument:
            what = f"two different instruments are called {instrument.name!r}"
            problems.add("name", what, "give each instrument a name of its own")
    InputError.raise_if_any(problems)
