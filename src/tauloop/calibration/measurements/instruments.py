"""Instruments: the readings of each kind of measurement at a pose, and their nuisance parameters.

An instrument provides the expression of its errors: predicted readings at coordinates q minus
measured readings. Frames, targets, centers and zero points of instruments are *nuisance*
parameters, with names such as ``tracker.frame.x``. They are fixed at their start values unless they
are unknowns of a calibration.
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
from tauloop.common.names.deprecated import old_attribute, renew_overrides
from tauloop.common.options import NamedFields
from tauloop.common.records import dataclass
from tauloop.equations.assembly.loops import nominal
from tauloop.equations.outputs import output_values
from tauloop.equations.topology import Topology
from tauloop.equations.tree import TreeMotion, quaternion_rotation, symbolic_motion
from tauloop.equations.values import Values
from tauloop.mechanism.model import Mechanism
from tauloop.mechanism.suggestions import unknown_names

ORIGIN: Vector3 = (0.0, 0.0, 0.0)
#: Expected magnitudes of corrections of a length (m), an angle (rad) and a dimensionless number.
TYPICAL_CORRECTIONS = {"m": 1e-3, "rad": 1e-3, "1": 1e-3}
#: Largest difference between the distances in both rows of a pair, m.
DISTANCE_TOLERANCE = 1e-9
#: Largest deviation of a unit quaternion's length from 1.
UNIT_LENGTH_TOLERANCE = 1e-6
_QUATERNION_COLUMNS = (("qw", "1"), ("qx", "1"), ("qy", "1"), ("qz", "1"))
_ROTATION_ERRORS = (("turn x", "rad"), ("turn y", "rad"), ("turn z", "rad"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Nuisance:
    """A parameter of an instrument, such as a coordinate of its frame.

    Attributes:
        name: name of the parameter, such as ``tracker.frame.x``.
        value: start value, SI.
        unit: m, rad or 1.
    """

    name: str
    value: float
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """The machine at symbolic coordinates, as seen by instruments.

    Attributes:
        mechanism: the machine.
        topology: its coordinates.
        values: values or symbols of its parameters.
        motion: its symbolic coordinates and the poses of its bodies.
        nuisances: values or symbols of all nuisance parameters by name.
        others: the same machine at the other poses of a reading, for instruments with several
            `poses`.
        twist: deflection (6,) of the tool center point due to loads and heat, in the axes of the
            base, m and rad; None for a machine without deflection.
    """

    mechanism: Mechanism
    topology: Topology
    values: Values
    motion: TreeMotion
    nuisances: Mapping[str, Any]
    others: tuple[Scene, ...] = ()
    twist: ca.SX | None = None

    def vector(self, prefix: str, letters: tuple[str, ...] = ("x", "y", "z")) -> ca.SX:
        """Return the nuisance parameters ``prefix.x``, ``prefix.y`` ... as a vector."""
        return ca.SX(ca.vertcat(*(self.nuisances[f"{prefix}.{letter}"] for letter in letters)))

    def target(self, name: str) -> ca.SX:
        """Return the point (3,) in the base frame that an instrument measures.

        This is the tool center point plus the offset of the instrument's target.
        """
        R_tool, p_tool = self.values.placement(self.mechanism.platform.tool)
        body = self.motion.bodies[self.mechanism.platform.tool.body]
        offset = self.vector(f"{name}.target")
        if self.twist is None:
            return body.p + body.R @ (p_tool + R_tool @ offset)
        rotated_offset = _rotated(self.twist[3:]) @ body.R @ R_tool @ offset
        return body.p + body.R @ p_tool + self.twist[:3] + rotated_offset

    @property
    def tool_rotation(self) -> ca.SX:
        """Orientation (3, 3) of the tool frame in the base frame."""
        R_tool, _ = self.values.placement(self.mechanism.platform.tool)
        rotation = ca.SX(self.motion.bodies[self.mechanism.platform.tool.body].R @ R_tool)
        return rotation if self.twist is None else _rotated(self.twist[3:]) @ rotation


def nominal_scene(
    mechanism: Mechanism, topology: Topology, instrument: Instrument
) -> tuple[ca.SX, Scene]:
    """Return the stacked symbolic coordinates of all poses of a reading, and the machine at them.

    The machine is at rest, with nominal parameters and start values of the nuisance parameters.
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
    """Base class of one kind of measurement.

    A derived class defines columns, nuisance parameters and errors.

    Attributes:
        name: prefix of the nuisance parameters; every physical instrument needs its own name.
        kind: name of the kind in files and on the command line.
        usual_name: default name of an instrument of this kind.
        is_contact: whether the instrument is read at contact, where its only error is zero.
        reads: name and SI unit of every number in a reading, if they are the same for all
            instruments of the kind.
    """

    kind: ClassVar[str] = ""
    usual_name: ClassVar[str] = "instrument"
    is_contact: ClassVar[bool] = False
    reads: ClassVar[tuple[tuple[str, str], ...]] = ()
    name: str

    assumed = old_attribute("assumed", "default_reading")
    gathered = old_attribute("gathered", "readings_from_rows")
    touches = old_attribute("touches", "is_contact")

    def __init_subclass__(cls) -> None:
        """Accept the old names in derived classes, with a warning."""
        renew_overrides(cls)

    @property
    def poses(self) -> int:
        """Number of poses of one reading; more than one for instruments that compare poses."""
        return 1

    def at_poses(self, count: int) -> Instrument:
        """Return the instrument with a number of poses for each reading.

        Most kinds have a fixed number of poses and return themselves.
        """
        return self

    @property
    def default_reading(self) -> float | None:
        """The reading that is assumed if a table does not contain it.

        None if the table must contain it.
        """
        return None

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        """Name and SI unit of every number in a reading."""
        return self.reads

    @property
    def row_columns(self) -> tuple[tuple[str, str], ...]:
        """Name and SI unit of every number in the table row of one pose."""
        return self.columns

    def readings_from_rows(self, rows: np.ndarray) -> np.ndarray:
        """Return readings (N, n_columns) from rows of their poses (N, `poses`, n_row_columns)."""
        return rows[:, 0]

    def readings_at(self, errors: np.ndarray) -> np.ndarray:
        """Return predicted readings (N, n_columns) from the errors (N, n_errors) at zero readings.

        A zero reading of an orientation is the unit quaternion. Its error for a rotation by an
        angle alpha about the axis e is 2 sin(alpha/2) e, twice the vector part of the predicted
        quaternion.
        """
        first = self.quaternion_column
        if first is None:
            return errors
        half = errors[:, first : first + 3] / 2
        real = np.sqrt(np.maximum(1.0 - (half**2).sum(axis=1, keepdims=True), 0.0))
        return np.concatenate([errors[:, :first], real, half], axis=1)

    @property
    def errors(self) -> tuple[tuple[str, str], ...]:
        """Name and SI unit of every error: the columns, with a rotation instead of a quaternion."""
        first = self.quaternion_column
        return self.columns if first is None else (*self.columns[:first], *_ROTATION_ERRORS)

    @property
    def position_columns(self) -> tuple[int, ...]:
        """Indices of x, y and z among the columns (and errors); empty unless all three are read."""
        names = [name for name, _ in self.columns]
        return tuple(names.index(letter) for letter in "xyz") if set("xyz") <= set(names) else ()

    @property
    def quaternion_column(self) -> int | None:
        """Index of qw among the columns, and of the first rotation error; None if there is none."""
        return next((i for i, (name, _) in enumerate(self.columns) if name == "qw"), None)

    @abstractmethod
    def nuisances(self) -> tuple[Nuisance, ...]:
        """Return the nuisance parameters of the instrument with their start values."""

    @abstractmethod
    def error(self, scene: Scene, reading: ca.SX) -> ca.SX:
        """Return the errors (n_errors,): predicted minus measured reading (n_columns,)."""

    def check(self, mechanism: Mechanism, topology: Topology) -> list[Problem]:
        """Return the problems of this instrument on a machine."""
        return []


_ROTATION_LETTERS = ("rx", "ry", "rz")


def _nuisances(prefix: str, *rows: tuple[str, float, str]) -> tuple[Nuisance, ...]:
    """Return nuisance parameters ``prefix.NAME`` from names, start values and units."""
    return tuple(
        Nuisance(name=f"{prefix}.{name}", value=value, unit=unit) for name, value, unit in rows
    )


def _vector(prefix: str, start: Vector3) -> tuple[Nuisance, ...]:
    """Return the nuisance parameters of a vector, m."""
    return _nuisances(
        prefix, *((letter, value, "m") for letter, value in zip("xyz", start, strict=True))
    )


def _rotation_vector(prefix: str) -> tuple[Nuisance, ...]:
    """Return the nuisance parameters of a rotation vector, rad."""
    return _nuisances(prefix, *((letter, 0.0, "rad") for letter in _ROTATION_LETTERS))


def _rotated(rho: ca.SX, start: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0)) -> ca.SX:
    """Return R(rho) R_0 (3, 3) for a small rotation rho and an initial quaternion.

    R(rho) has the normalized quaternion (1, rho/2), so rho equals the rotation vector up to terms
    of third order.
    """
    q = ca.vertcat(1, rho / 2)
    return quaternion_rotation(q / ca.sqrt(ca.dot(q, q))) @ quaternion_rotation(ca.SX(list(start)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame(NamedFields):
    """Initial pose of an instrument's frame in the base frame.

    Attributes:
        position: origin, m.
        quaternion: orientation as a unit quaternion (w, x, y, z).

    Examples:
        >>> import tauloop as tl
        >>> tl.Frame(position=(1.0, 0.0, 0.5)).quaternion
        (1.0, 0.0, 0.0, 0.0)
    """

    position: Vector3 = ORIGIN
    quaternion: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Framed(Instrument):
    """An instrument that reads in its own frame: y = R_F^T (p - t_F).

    The unknown rotation ``frame.rx, ry, rz`` is R_F = R(rho) R_0.

    Attributes:
        frame: initial pose of the instrument's frame in the base frame.
        target: start value of the target's offset from the tool center point, in the tool frame, m.
    """

    usual_name: ClassVar[str] = "tracker"
    frame: Frame = field(default_factory=Frame)
    target: Vector3 = ORIGIN

    def check(self, mechanism: Mechanism, topology: Topology) -> list[Problem]:
        """Return a problem if the frame's quaternion is not a unit quaternion."""
        return _not_unit(f"{self.name}.frame", self.frame.quaternion)

    def nuisances(self) -> tuple[Nuisance, ...]:
        """Return the parameters of frame (6) and target (3)."""
        return (
            *_vector(f"{self.name}.frame", self.frame.position),
            *_rotation_vector(f"{self.name}.frame"),
            *_vector(f"{self.name}.target", self.target),
        )

    def _frame_rotation(self, scene: Scene) -> ca.SX:
        """Return the orientation (3, 3) of the frame in the base frame."""
        rho = scene.vector(f"{self.name}.frame", _ROTATION_LETTERS)
        return _rotated(rho, self.frame.quaternion)

    def _position(self, scene: Scene) -> ca.SX:
        """Return the position (3,) of the target in the instrument's frame, m."""
        offset = scene.target(self.name) - scene.vector(f"{self.name}.frame")
        return self._frame_rotation(scene).T @ offset


def _not_unit(where: str, quaternion: tuple[float, float, float, float]) -> list[Problem]:
    """Return a problem if a quaternion does not have unit length."""
    length = math.sqrt(sum(number * number for number in quaternion))
    if abs(length - 1.0) < UNIT_LENGTH_TOLERANCE:
        return []
    what = f"the quaternion has length {length:.6g}"
    return [Problem(where=where, what=what, remedy="give a unit quaternion (w, x, y, z)")]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Oriented(Framed):
    """An instrument that reads the orientation of a target on the tool: R_F^T R_tool R_T.

    The unknown rotation ``target.rx, ry, rz`` is R_T = R(rho) R_0, from the tool frame to the
    target frame.

    Attributes:
        target_quaternion: initial orientation R_0 of the target in the tool frame (w, x, y, z).
    """

    target_quaternion: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0)

    def nuisances(self) -> tuple[Nuisance, ...]:
        """Return the parameters of frame (6) and target (6)."""
        return (*Framed.nuisances(self), *_rotation_vector(f"{self.name}.target"))

    def check(self, mechanism: Mechanism, topology: Topology) -> list[Problem]:
        """Return a problem for each quaternion that is not a unit quaternion."""
        return [
            *Framed.check(self, mechanism, topology),
            *_not_unit(f"{self.name}.target", self.target_quaternion),
        ]

    def _rotation_error(self, scene: Scene, quaternion: ca.SX) -> ca.SX:
        """Return the rotation (3,) from the measured to the predicted orientation.

        Its length is 2 sin(angle/2); its direction is the axis in the target's frame.
        """
        measured = quaternion_rotation(quaternion / ca.sqrt(ca.dot(quaternion, quaternion)))
        rho = scene.vector(f"{self.name}.target", _ROTATION_LETTERS)
        target = _rotated(rho, self.target_quaternion)
        E = measured.T @ self._frame_rotation(scene).T @ scene.tool_rotation @ target
        twice_sine = ca.vertcat(E[2, 1] - E[1, 2], E[0, 2] - E[2, 0], E[1, 0] - E[0, 1])
        return twice_sine / ca.sqrt(1 + ca.trace(E))


@dataclass(frozen=True, slots=True, kw_only=True)
class Position(Framed):
    """Position of a target on the tool, as read by a laser tracker: all components or some.

    Attributes:
        components: measured components among x, y, z.
    """

    kind: ClassVar[str] = "position"
    components: str = "xyz"

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        """Name and unit of the measured components, m."""
        return tuple((letter, "m") for letter in self.components)

    def error(self, scene: Scene, reading: ca.SX) -> ca.SX:
        """Return the predicted minus the measured position in the instrument's frame."""
        predicted = self._position(scene)
        return ca.vertcat(*(predicted["xyz".index(letter)] for letter in self.components)) - reading

    def check(self, mechanism: Mechanism, topology: Topology) -> list[Problem]:
        """Return problems of the frame, and of components that are not distinct letters."""
        problems = Framed.check(self, mechanism, topology)
        letters = set(self.components)
        if letters and letters <= set("xyz") and len(letters) == len(self.components):
            return problems
        remedy = "give distinct letters of x, y and z"
        return [
            *problems,
            Problem(where=f"{self.name}.components", what=f"is {self.components!r}", remedy=remedy),
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Orientation(_Oriented):
    """Orientation of a target on the tool as a unit quaternion (w, x, y, z)."""

    kind: ClassVar[str] = "orientation"
    reads: ClassVar[tuple[tuple[str, str], ...]] = _QUATERNION_COLUMNS

    def error(self, scene: Scene, reading: ca.SX) -> ca.SX:
        """Return the rotation from the measured orientation, in the target's frame."""
        return self._rotation_error(scene, reading)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pose(_Oriented):
    """Position and orientation of a target on the tool."""

    kind: ClassVar[str] = "pose"
    reads: ClassVar[tuple[tuple[str, str], ...]] = (
        ("x", "m"),
        ("y", "m"),
        ("z", "m"),
        *_QUATERNION_COLUMNS,
    )

    def error(self, scene: Scene, reading: ca.SX) -> ca.SX:
        """Return the predicted minus the measured position, and the rotation."""
        position_error = self._position(scene) - reading[:3]
        return ca.vertcat(position_error, self._rotation_error(scene, reading[3:]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Distance(Instrument):
    """Distance from a fixed center to a target on the tool, as measured by a telescoping ballbar.

    Attributes:
        center: start value of the center in the base frame, m.
        target: start value of the target's offset from the tool center point, in the tool frame, m.
    """

    kind: ClassVar[str] = "distance"
    reads: ClassVar[tuple[tuple[str, str], ...]] = (("distance", "m"),)
    usual_name: ClassVar[str] = "bar"
    center: Vector3
    target: Vector3 = ORIGIN

    def nuisances(self) -> tuple[Nuisance, ...]:
        """Return the parameters: center (3), target (3), constant error of the bar's length."""
        return (
            *_vector(f"{self.name}.center", self.center),
            *_vector(f"{self.name}.target", self.target),
            *_nuisances(self.name, ("offset", 0.0, "m")),
        )

    def error(self, scene: Scene, reading: ca.SX) -> ca.SX:
        """Return the predicted minus the measured distance."""
        d = scene.target(self.name) - scene.vector(f"{self.name}.center")
        return ca.sqrt(ca.dot(d, d)) + scene.nuisances[f"{self.name}.offset"] - reading


@dataclass(frozen=True, slots=True, kw_only=True)
class Contact(Instrument):
    """Gap between a target on the tool and a known surface; the gap is zero at contact.

    Attributes:
        surface: a plane, sphere or cylinder.
        target: start value of the offset of the contact point from the tool center point, in the
            tool frame, m.
    """

    kind: ClassVar[str] = "contact"
    reads: ClassVar[tuple[tuple[str, str], ...]] = (("gap", "m"),)
    usual_name: ClassVar[str] = "surface"
    is_contact: ClassVar[bool] = True
    surface: Surface = field(default_factory=Plane)
    target: Vector3 = ORIGIN

    @property
    def default_reading(self) -> float | None:
        """Zero: the tool touches the surface."""
        return 0.0

    def nuisances(self) -> tuple[Nuisance, ...]:
        """Return the parameters of the surface and of the target (3)."""
        return (
            *_nuisances(self.name, *self.surface.unknowns()),
            *_vector(f"{self.name}.target", self.target),
        )

    def error(self, scene: Scene, reading: ca.SX) -> ca.SX:
        """Return the signed distance from the surface minus the gap."""
        location = {
            name: scene.nuisances[f"{self.name}.{name}"] for name, _, _ in self.surface.unknowns()
        }
        return self.surface.distance(scene.target(self.name), location) - reading

    def check(self, mechanism: Mechanism, topology: Topology) -> list[Problem]:
        """Return problems of a surface whose direction is zero or whose radius is not positive."""
        return [
            Problem(
                where=f"{self.name}.surface.{where}",
                what=what,
                remedy=remedy,
            )
            for where, what, remedy in self.surface.faults()
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inclinometer(Instrument):
    """Inclination of the tool frame: roll atan2(u_y, u_z) and pitch -asin(u_x).

    Here u is the upward vertical (opposite to gravity) in the tool frame.
    """

    kind: ClassVar[str] = "inclinometer"
    reads: ClassVar[tuple[tuple[str, str], ...]] = (("roll", "rad"), ("pitch", "rad"))
    usual_name: ClassVar[str] = "level"

    def nuisances(self) -> tuple[Nuisance, ...]:
        """Return the zero offsets of both angles."""
        return _nuisances(self.name, ("roll", 0.0, "rad"), ("pitch", 0.0, "rad"))

    def error(self, scene: Scene, reading: ca.SX) -> ca.SX:
        """Return the predicted minus the measured angles."""
        gravity = scene.values.vector(scene.mechanism.gravity)
        u = -scene.tool_rotation.T @ gravity / ca.sqrt(ca.dot(gravity, gravity))
        predicted = ca.vertcat(ca.atan2(u[1], u[2]), -ca.asin(u[0]))
        return predicted + scene.vector(self.name, ("roll", "pitch")) - reading

    def check(self, mechanism: Mechanism, topology: Topology) -> list[Problem]:
        """Return a problem if gravity is zero, so that there is no vertical."""
        if any(mechanism.value(component) != 0.0 for component in mechanism.gravity):
            return []
        return [
            Problem(
                where=self.name,
                what="gravity is zero, so there is no vertical",
                remedy="set `gravity` in the machine file",
            )
        ]


def sensor_units(mechanism: Mechanism, topology: Topology) -> dict[str, str]:
    """Return the units of the quantities that a joint sensor may read, by name."""
    units = {
        output.name: output.unit
        for output in mechanism.outputs
        if output.unit in TYPICAL_CORRECTIONS
    }
    for j in topology.q_of_v:
        if j >= 0:
            units[topology.coordinate_names[j]] = "rad" if topology.is_angle[j] else "m"
    return units


@dataclass(frozen=True, slots=True, kw_only=True)
class JointSensor(Instrument):
    """A sensor of an additional joint coordinate, or of an output of the machine file.

    Its reading is the coordinate or output times a scale plus an offset. With redundant sensors, a
    machine can be calibrated without external instruments.

    Attributes:
        coordinate: name of a scalar coordinate (see `tauloop show`) or of an output.
        unit: m or rad; 1 for an output that is a plain number.
    """

    kind: ClassVar[str] = "joint"
    usual_name: ClassVar[str] = "sensor"
    coordinate: str
    unit: str = "rad"

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        """Name and unit of the coordinate or output."""
        return ((self.coordinate, self.unit),)

    def nuisances(self) -> tuple[Nuisance, ...]:
        """Return scale and offset."""
        return _nuisances(self.name, ("scale", 1.0, "1"), ("offset", 0.0, self.unit))

    def error(self, scene: Scene, reading: ca.SX) -> ca.SX:
        """Return the predicted minus the measured reading."""
        names = scene.topology.coordinate_names
        if self.coordinate in names:
            value = scene.motion.configuration.q[names.index(self.coordinate)]
        else:
            value = output_values(scene.mechanism, scene.motion, (self.coordinate,))
        return (
            scene.nuisances[f"{self.name}.scale"] * value
            + scene.nuisances[f"{self.name}.offset"]
            - reading
        )

    def check(self, mechanism: Mechanism, topology: Topology) -> list[Problem]:
        """Return problems of an unknown coordinate or a wrong unit."""
        units = sensor_units(mechanism, topology)
        problems = Problems(
            unknown_names(
                [self.coordinate],
                units,
                "{!r} is not a scalar coordinate or output",
                f"{self.name}.coordinate",
                f"use one of the scalar coordinates and outputs {', '.join(units)}",
            )
        )
        unit = units.get(self.coordinate, self.unit)
        if unit != self.unit:
            problems.add(
                f"{self.name}.unit",
                f"is {self.unit!r}, but {self.coordinate} is measured in {unit}",
                f"set the unit to {unit}, the unit of {self.coordinate}",
            )
        return problems


@dataclass(frozen=True, slots=True, kw_only=True)
class Between(Instrument):
    """Distance between two poses of a target on the tool, such as the width of a printed part.

    Other examples are gauge blocks and ball bars. The reading is scale |p_B - p_A| + offset, or
    scale |e.(p_B - p_A)| + offset along a direction e. It does not depend on the base frame.

    Attributes:
        length: length of a gauge or ball bar, m. It is the reading if a table does not contain it.
        target: start value of the target's offset from the tool center point, in the tool frame, m.
        direction: direction of the measurement in the base frame, of any length, such as that of a
            caliper across two walls; None for the distance between the points.
    """

    kind: ClassVar[str] = "between"
    reads: ClassVar[tuple[tuple[str, str], ...]] = (("distance", "m"),)
    usual_name: ClassVar[str] = "caliper"
    length: float | None = None
    target: Vector3 = ORIGIN
    direction: Vector3 | None = None

    @property
    def poses(self) -> int:
        """Two: both ends of the distance."""
        return 2

    @property
    def default_reading(self) -> float | None:
        """Length of the gauge, m; None if it is not given."""
        return self.length

    def readings_from_rows(self, rows: np.ndarray) -> np.ndarray:
        """Return the distances; the rows of both ends contain the same distance.

        Raises:
            InputError: the rows of both ends contain different distances.
        """
        problems = Problems()
        differences = np.abs(np.diff(rows[:, :, 0], axis=1)[:, 0])
        for i in np.flatnonzero(differences > DISTANCE_TOLERANCE):
            first, second = (1e3 * float(value) for value in rows[i, :, 0])
            what = f"both ends of distance {i + 1} have different values: {first:.6g} and {second:.6g} mm"
            problems.add(
                f"{self.name}.distance", what, "give both rows of a pair the same distance"
            )
        InputError.raise_if_any(problems)
        return rows[:, 0]

    def nuisances(self) -> tuple[Nuisance, ...]:
        """Return the parameters: target (3), a constant error and a scale.

        The constant error covers probe radii or the width of an extruded line; the scale covers
        shrinkage.
        """
        return (
            *_vector(f"{self.name}.target", self.target),
            *_nuisances(self.name, ("offset", 0.0, "m"), ("scale", 1.0, "1")),
        )

    def error(self, scene: Scene, reading: ca.SX) -> ca.SX:
        """Return the predicted minus the measured distance."""
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
        """Return problems of a zero direction, or of a gauge length that is not positive."""
        problems = Problems()
        if self.direction is not None and not np.linalg.norm(self.direction) > 0.0:
            what = "has no direction: all three numbers are zero"
            problems.add(f"{self.name}.direction", what, "give a nonzero vector, or omit it")
        if self.length is not None and not self.length > 0.0:
            problems.add(
                f"{self.name}.length",
                f"must be positive, got {1e3 * self.length:g} mm",
                "give the length of the gauge, or omit it if a table contains the readings",
            )
        return problems


@dataclass(frozen=True, slots=True, kw_only=True)
class StepGauge(Instrument):
    """Positions of several contacts along a calibrated step gauge or scale at any location.

    Let e be the direction from the first to the last touch. Then scale e.p_k equals the position
    y_k on the gauge plus a constant, because the location of the gauge's start is unknown. The
    errors are the K - 1 Helmert contrasts of the K differences d_k:

        (d_1 + ... + d_k - k d_(k+1)) / sqrt(k (k + 1)).

    Their noise is that of one touch. They are independent if the touches are independent.

    Attributes:
        count: number K of touches in one location of the gauge.
        target: start value of the offset of the contact point from the tool center point, in the
            tool frame, m.
    """

    kind: ClassVar[str] = "steps"
    usual_name: ClassVar[str] = "gauge"
    count: int = 2
    target: Vector3 = ORIGIN

    @property
    def poses(self) -> int:
        """Number of touches in one location of the gauge."""
        return self.count

    def at_poses(self, count: int) -> Instrument:
        """Return the same gauge with another number of touches."""
        return replace(self, count=count)

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        """Name and unit of the positions along the gauge."""
        return tuple((f"place {k + 1}", "m") for k in range(self.count))

    @property
    def row_columns(self) -> tuple[tuple[str, str], ...]:
        """Name and unit of the position of one touch."""
        return (("place", "m"),)

    @property
    def errors(self) -> tuple[tuple[str, str], ...]:
        """Name and unit of the Helmert contrasts of the differences."""
        return tuple((f"step {k + 1}", "m") for k in range(self.count - 1))

    def readings_from_rows(self, rows: np.ndarray) -> np.ndarray:
        """Return the positions of all touches."""
        return rows[:, :, 0]

    def readings_at(self, errors: np.ndarray) -> np.ndarray:
        """Return positions with mean zero, because the contrasts do not depend on the mean."""
        return errors @ _contrasts(self.count)

    def nuisances(self) -> tuple[Nuisance, ...]:
        """Return the parameters: target (3) and a scale (expansion of the gauge)."""
        return (
            *_vector(f"{self.name}.target", self.target),
            *_nuisances(self.name, ("scale", 1.0, "1")),
        )

    def error(self, scene: Scene, reading: ca.SX) -> ca.SX:
        """Return the contrasts of predicted minus measured positions."""
        points = [pose.target(self.name) for pose in (scene, *scene.others)]
        line = points[-1] - points[0]
        e = line / ca.sqrt(ca.dot(line, line))
        scale = scene.nuisances[f"{self.name}.scale"]
        differences = ca.vertcat(*(scale * ca.dot(e, point) for point in points)) - reading
        return ca.DM(_contrasts(self.count)) @ differences

    def check(self, mechanism: Mechanism, topology: Topology) -> list[Problem]:
        """Return a problem for fewer than two touches."""
        if self.count >= 2:
            return []
        what = f"a step needs two touches of the gauge, but the count is {self.count}"
        remedy = "touch the gauge at two positions or more"
        return [Problem(where=f"{self.name}.count", what=what, remedy=remedy)]


def _contrasts(count: int) -> np.ndarray:
    """Return the orthonormal Helmert contrasts (count - 1, count); each row sums to zero."""
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


def required_fields(kind: type[Instrument]) -> tuple[str, ...]:
    """Return the names of the required attributes of an instrument kind, except its name."""
    return tuple(
        item.name
        for item in fields(kind)
        if item.default is MISSING and item.default_factory is MISSING and item.name != "name"
    )


def require_instruments(
    instruments: list[Instrument], mechanism: Mechanism, topology: Topology
) -> None:
    """Reject instruments that do not suit a machine.

    Raises:
        InputError: lists all problems.
    """
    problems = Problems(
        problem for instrument in instruments for problem in instrument.check(mechanism, topology)
    )
    by_name: dict[str, Instrument] = {}
    for instrument in instruments:
        if by_name.setdefault(instrument.name, instrument) != instrument:
            what = f"two different instruments are called {instrument.name!r}"
            problems.add("name", what, "give each instrument a different name")
    InputError.raise_if_any(problems)
