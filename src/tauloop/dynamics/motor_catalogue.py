"""Catalogues of motors and gears in YAML.

format: tauloop-motors/1
source: data sheets or other sources of the numbers
motors:
  servo_400: {rated_torque: 1.27 N m, peak_torque: 3.8 N m, rated_speed: 3000 rpm,
              max_speed: 6000 rpm, inertia: 0.26e-4 kg m^2, mass: 1.2 kg}
gears:
  planetary_10: {ratio: 10, efficiency: 0.94, inertia: 0.03e-4 kg m^2, mass: 1.4 kg}
  screw_10: {lead: 10 mm, efficiency: 0.9}
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tauloop.common.errors import InputError, Problems
from tauloop.common.keywords import keywords
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.mechanism.description import units
from tauloop.mechanism.description.cursor import (
    Choice,
    ListOf,
    MapOf,
    Shape,
    Text,
    field,
    need,
    value,
)
from tauloop.mechanism.description.documents import contents
from tauloop.mechanism.description.structure import document
from tauloop.mechanism.description.values import ValueReader
from tauloop.mechanism.description.yaml_nodes import parse_nodes, read_text

CATALOGUE_FORMAT = "tauloop-motors/1"
_TORQUE = value(units.TORQUE, sign="positive")
_SPEED = value(units.ANGULAR_SPEED, sign="positive")
_INERTIA = value(units.INERTIA, sign="not negative")
_CATALOGUE_MASS = value(units.MASS, sign="not negative")
CURVE_POINT = Shape(
    name="point of a torque curve",
    doc="A torque at a speed.",
    fields=(
        need("speed", value(units.ANGULAR_SPEED, sign="not negative"), "speed of the motor"),
        need("torque", value(units.TORQUE, sign="not negative"), "torque at that speed"),
    ),
)
MOTOR = Shape(
    name="motor",
    doc="A rotary motor with its drive.",
    fields=(
        need("rated_torque", _TORQUE, "continuous torque up to the rated speed"),
        need("peak_torque", _TORQUE, "largest torque for a short time"),
        need("rated_speed", _SPEED, "speed up to which both torques are available"),
        need("max_speed", _SPEED, "largest speed"),
        need("inertia", _INERTIA, "inertia of the rotor, and of a brake if there is one"),
        field("mass", _CATALOGUE_MASS, "mass of the motor; unknown if absent"),
        field(
            "continuous",
            ListOf(item=CURVE_POINT),
            "continuous torque over speed, linear between the points; default: constant up to the "
            "rated speed, then proportional to 1/speed",
        ),
        field(
            "peak",
            ListOf(item=CURVE_POINT),
            "peak torque over speed, linear between the points; default: constant up to the rated "
            "speed, then linear down to the continuous torque at the largest speed",
        ),
    ),
)
GEAR = Shape(
    name="gear",
    doc="A gear between a motor and a joint, or a screw between a motor and a slide.",
    fields=(
        field("ratio", value(units.ONE, sign="positive"), "motor speed over joint speed"),
        field("lead", value(units.LENGTH, sign="positive"), "travel per revolution of a screw"),
        field("efficiency", value(units.ONE, sign="positive"), "at most 1; 1 if absent"),
        field("inertia", _INERTIA, "inertia on the motor side; 0 if absent"),
        field("rated_torque", _TORQUE, "continuous torque on the joint side"),
        field("peak_torque", _TORQUE, "largest torque on the joint side"),
        field("rated_force", value(units.FORCE, sign="positive"), "continuous force of a screw"),
        field("peak_force", value(units.FORCE, sign="positive"), "largest force of a screw"),
        field("max_speed", _SPEED, "largest speed on the motor side"),
        field("mass", _CATALOGUE_MASS, "mass of the gear; unknown if absent"),
    ),
)
CATALOGUE = Shape(
    name="catalogue",
    doc="Motors and gears to choose from.",
    fields=(
        need("format", Choice(options=(CATALOGUE_FORMAT,)), "format and version"),
        need("source", Text(is_needed=True), "data sheets or other sources of the numbers"),
        need("motors", MapOf(item=MOTOR, may_be_empty=False), "motors by name"),
        field("gears", MapOf(item=GEAR), "gears and screws by name; direct drive if absent"),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MotorEntry(ReprMixin):
    """A motor of a catalogue.

    Attributes:
        name: name in the catalogue.
        inertia: inertia of the rotor, kg m^2.
        mass: mass of the motor, kg; None if unknown.
        max_speed: largest speed, rad/s.
        continuous, peak: curves of the continuous and the peak torque as rows (speed, torque),
            rad/s and N m.

    Examples:
        >>> import tauloop as tl
        >>> motor = tl.load_motors("examples/motors.yaml").motors[0]
        >>> motor.name, round(float(motor.continuous_torque(0.0)), 2)
        ('servo_100w', 0.32)
    """

    name: str
    inertia: float
    mass: float | None
    max_speed: float
    continuous: np.ndarray
    peak: np.ndarray

    def continuous_torque(self, speed: Any) -> np.ndarray:
        """Return the continuous torque (N,), N m, at speeds (N,), rad/s; zero beyond the last."""
        return _on_curve(self.continuous, speed)

    def peak_torque(self, speed: Any) -> np.ndarray:
        """Return the peak torque (N,), N m, at speeds (N,), rad/s; zero beyond the last."""
        return _on_curve(self.peak, speed)


def _on_curve(curve: np.ndarray, speed: Any) -> np.ndarray:
    return np.asarray(np.interp(np.abs(speed), curve[:, 0], curve[:, 1], right=0.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class GearEntry(ReprMixin):
    """A gear or screw of a catalogue.

    Attributes:
        name: name in the catalogue.
        ratio: motor angle per joint angle (dimensionless), or per travel (rad/m) for a screw.
        is_linear: whether the entry is a screw.
        efficiency: ratio of output power to input power, for both directions of power.
        inertia: inertia on the motor side, kg m^2.
        mass: mass of the gear, kg; None if unknown.
        rated, peak: continuous and largest force on the joint side, N m or N; infinite if not
            given.
        max_speed: largest speed on the motor side, rad/s; infinite if not given.
    """

    name: str
    ratio: float
    is_linear: bool = False
    efficiency: float = 1.0
    inertia: float = 0.0
    mass: float | None = 0.0
    rated: float = np.inf
    peak: float = np.inf
    max_speed: float = np.inf


#: A motor that drives a joint without a gear.
DIRECT = GearEntry(name="direct", ratio=1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class MotorCatalogue(ReprMixin):
    """Motors and gears to choose from.

    Attributes:
        source: data sheets or other sources of the numbers.
        motors: motors in the order of the file.
        gears: gears in the order of the file; only a direct drive if the file has no gears.
    """

    source: str
    motors: tuple[MotorEntry, ...]
    gears: tuple[GearEntry, ...]


@keywords()
def load_motors(path: str | Path) -> MotorCatalogue:
    """Return a catalogue of motors and gears from a YAML file (tauloop-motors/1).

    Args:
        path: the file.

    Raises:
        DescriptionError: the file has errors; all are listed with line numbers.

    Examples:
        >>> import tauloop as tl
        >>> len(tl.load_motors("examples/motors.yaml").motors)
        5
    """
    file = str(path)
    root = document(parse_nodes(read_text(Path(path)), file), file, CATALOGUE)
    root.collector.raise_any()
    content = contents(root, ValueReader(None)) or {}
    root.collector.raise_any()
    problems = Problems()
    motors, gears = [], []
    for name, data in content["motors"].items():
        with problems.collecting(InputError):
            motors.append(_motor(name, data, file))
    for name, data in (content.get("gears") or {}).items():
        with problems.collecting(InputError):
            gears.append(_gear(name, data, file))
    InputError.raise_if_any(problems)
    return MotorCatalogue(
        source=content["source"], motors=tuple(motors), gears=tuple(gears) or (DIRECT,)
    )


def _motor(name: str, data: dict[str, Any], file: str) -> MotorEntry:
    """Return a motor.

    Raises:
        InputError: values contradict each other.
    """
    rated, peak = data["rated_torque"], data["peak_torque"]
    rated_speed, max_speed = data["rated_speed"], data["max_speed"]
    problems = Problems()
    where = f"motors.{name}"
    if peak < rated:
        what = f"the peak torque {peak:g} N m is below the rated torque {rated:g} N m"
        problems.add(where, what, "check both", file=file)
    if max_speed < rated_speed:
        what = (
            f"the largest speed {max_speed:g} rad/s is below the rated speed {rated_speed:g} rad/s"
        )
        problems.add(where, what, "check both", file=file)
    InputError.raise_if_any(problems)
    speeds = np.linspace(rated_speed, max_speed, FIELD_WEAKENING_POINTS)
    weakened = [(speed, rated * rated_speed / speed) for speed in speeds]
    lowest = rated * rated_speed / max_speed
    return MotorEntry(
        name=name,
        inertia=data["inertia"],
        mass=data.get("mass"),
        max_speed=max_speed,
        continuous=_curve(data.get("continuous"), [(0.0, rated), *weakened], where, file),
        peak=_curve(
            data.get("peak"), [(0.0, peak), (rated_speed, peak), (max_speed, lowest)], where, file
        ),
    )


#: Number of points of the hyperbola of constant power above the rated speed.
FIELD_WEAKENING_POINTS = 17


def _curve(
    points: tuple[dict[str, float], ...] | None,
    default: list[tuple[float, float]],
    where: str,
    file: str,
) -> np.ndarray:
    """Return rows (speed, torque) with increasing speeds.

    Raises:
        InputError: the speeds do not increase.
    """
    if not points:
        return np.array(default)
    curve = np.array([(point["speed"], point["torque"]) for point in points])
    if len(curve) < 2 or (np.diff(curve[:, 0]) <= 0).any():
        what = "a torque curve needs two or more points with increasing speeds"
        raise InputError.of(where, what, "sort the points by speed", file=file)
    return curve


def _gear(name: str, data: dict[str, Any], file: str) -> GearEntry:
    """Return a gear or screw.

    Raises:
        InputError: neither or both of ratio and lead are given, or the efficiency is above 1.
    """
    ratio, lead = data.get("ratio"), data.get("lead")
    problems = Problems()
    where = f"gears.{name}"
    if (ratio is None) == (lead is None):
        what = "neither ratio nor lead is given" if ratio is None else "ratio and lead are given"
        problems.add(where, what, "give ratio for a gear, lead for a screw", file=file)
    efficiency = data.get("efficiency", 1.0)
    if efficiency > 1.0:
        problems.add(
            where, f"the efficiency {efficiency:g} is above 1", "give a fraction", file=file
        )
    other = ("rated_force", "peak_force") if lead is None else ("rated_torque", "peak_torque")
    for key in other:
        if data.get(key) is not None:
            remedy = "give rated_torque and peak_torque for a gear, rated_force and peak_force for a screw"
            problems.add(
                f"{where}.{key}", "does not belong to this kind of gear", remedy, file=file
            )
    InputError.raise_if_any(problems)
    unit = "torque" if lead is None else "force"
    return GearEntry(
        name=name,
        ratio=float(ratio or 0.0) if lead is None else 2 * np.pi / lead,
        is_linear=lead is not None,
        efficiency=efficiency,
        inertia=data.get("inertia") or 0.0,
        mass=data.get("mass"),
        rated=data.get(f"rated_{unit}") or np.inf,
        peak=data.get(f"peak_{unit}") or np.inf,
        max_speed=data.get("max_speed") or np.inf,
    )
