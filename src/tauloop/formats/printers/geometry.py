"""Geometry of printers as in their firmware, in mm and degrees, and the machine files of printers.

Firmware places the joints of the effector at its center. Therefore the radius in the firmware is
the radius of the towers or shoulders minus the radius of the effector's joints.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import numpy as np

from tauloop.common.records import dataclass

#: Half edge of the square inscribed in the print circle, relative to the print radius.
_SQUARE_IN_CIRCLE = float(np.sqrt(0.5))
#: Start height of the nozzle, as a fraction of the height at the end stops.
_START_HEIGHT = 0.4
#: Angles of the towers in Klipper, Marlin and RepRapFirmware, deg.
TOWER_ANGLES = (210.0, 330.0, 90.0)
#: Angles of the shoulders of a rotary delta in Klipper, deg.
SHOULDER_ANGLES = (30.0, 150.0, 270.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearDelta:
    """A delta with carriages on vertical towers.

    The carriage of a tower is at z + sqrt(arm^2 - (x - X)^2 - (y - Y)^2) for the nozzle at (x, y, z),
    with X = radius cos(angle) and Y = radius sin(angle).

    Attributes:
        radius: distance of each tower from the center, mm.
        angle: direction of each tower, deg from x towards y.
        arm: length of the arms of each tower, mm.
        end_stop: height of a nozzle at the center for which the carriage of a tower is at its end
            stop, mm.
        print_radius: radius of the bed, mm.
    """

    radius: tuple[float, ...]
    angle: tuple[float, ...]
    arm: tuple[float, ...]
    end_stop: tuple[float, ...]
    print_radius: float

    @property
    def carriage_stop(self) -> tuple[float, ...]:
        """Height of each carriage at its end stop, mm."""
        triples = zip(self.end_stop, self.arm, self.radius, strict=True)
        return tuple(stop + float(np.sqrt(arm**2 - radius**2)) for stop, arm, radius in triples)


@dataclass(frozen=True, slots=True, kw_only=True)
class RotaryDelta:
    """A delta with arms on shoulders.

    Attributes:
        radius, height: distance of the shoulders from the center, and their height, mm.
        angle: direction of each shoulder, deg.
        upper, lower: lengths of the arms of each leg, mm.
        end_stop: height of a nozzle at the center for which an arm is at its end stop, mm.
    """

    radius: float
    height: float
    angle: tuple[float, ...]
    upper: tuple[float, ...]
    lower: tuple[float, ...]
    end_stop: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Winches:
    """Cables from anchors to the nozzle.

    Attributes:
        names: letters of the winches.
        anchors: points (n, 3), mm, at which the cables leave their pulleys.
    """

    names: tuple[str, ...]
    anchors: tuple[tuple[float, float, float], ...]


Printer = LinearDelta | RotaryDelta | Winches


def geometry_problems(printer: Printer) -> list[tuple[str, str, str]]:
    """Return (where, what is wrong, remedy) for each invalid number of a printer."""
    if isinstance(printer, LinearDelta):
        return [*_tower_problems(printer)]
    if isinstance(printer, RotaryDelta):
        return [*_shoulder_problems(printer)]
    problems = []
    for name, anchor in zip(printer.names, printer.anchors, strict=True):
        if not np.isfinite(anchor).all() or not np.any(anchor):
            problems.append(
                (
                    f"anchor {name}",
                    "is at the origin, or is not finite",
                    "give its measured position",
                )
            )
    return problems


def _tower_problems(printer: LinearDelta) -> Iterator[tuple[str, str, str]]:
    columns = (printer.radius, printer.angle, printer.arm, printer.end_stop)
    for number, (radius, angle, arm, stop) in enumerate(zip(*columns, strict=True), 1):
        if not np.isfinite([radius, angle, arm, stop]).all():
            yield f"tower {number}", "has a number that is not finite", "give finite numbers"
        elif not arm > radius > 0.0:
            what = f"has arms of {arm:g} mm at a radius of {radius:g} mm"
            yield (
                f"tower {number}",
                what,
                "give arms longer than the radius, and a radius above zero",
            )
        elif stop <= 0.0:
            what = f"has its end stop at a nozzle height of {stop:g} mm"
            yield (
                f"tower {number}",
                what,
                "give the height of the nozzle at the end stop, above the bed",
            )
    if not 0.0 < printer.print_radius < np.inf:
        yield "print radius", f"is {printer.print_radius:g} mm", "give a finite radius above zero"


def _shoulder_problems(printer: RotaryDelta) -> Iterator[tuple[str, str, str]]:
    for leg, stop in enumerate(printer.end_stop):
        for z in (stop, _START_HEIGHT * min(printer.end_stop)):
            distance = np.hypot(printer.radius, printer.height - z)
            upper, lower = printer.upper[leg], printer.lower[leg]
            is_finite = np.isfinite([distance, upper, lower, printer.angle[leg]]).all()
            if not is_finite or not abs(upper - lower) < distance < upper + lower:
                what = f"does not reach the center at a height of {z:g} mm"
                yield (
                    f"leg {leg + 1}",
                    what,
                    "correct its arm lengths, or the shoulder's radius or height",
                )
                break


def machine_text(printer: Printer, name: str, source: str) -> str:
    """Return the text of the machine file of a printer.

    Args:
        printer: geometry of the printer.
        name: name of the machine.
        source: name of the firmware file.
    """
    if isinstance(printer, LinearDelta):
        body = _linear(printer)
    elif isinstance(printer, RotaryDelta):
        body = _rotary(printer)
    else:
        body = _winches(printer)
    description = f"Imported from {source}. Firmware states no masses: "
    description += "give the bodies masses before you compute forces."
    # A file name may contain quotes and line breaks; strings of JSON are strings of YAML.
    return (
        f"format: tauloop-machine/1\nname: {name}\ndescription: {json.dumps(description)}\n"
        f"provenance: {{status: given, source: {json.dumps(source)}}}\n"
        "gravity: [0, 0, -9.81 m/s^2]\n" + body
    )


def _linear(printer: LinearDelta) -> str:
    """Return the body of the machine file of a linear delta."""
    has_equal_radii = len(set(printer.radius)) == 1
    start = _START_HEIGHT * min(printer.end_stop)
    half_width = _SQUARE_IN_CIRCLE * printer.print_radius
    radius = (
        "[delta_radius, delta_radius, delta_radius]"
        if has_equal_radii
        else _listed(printer.radius, "mm")
    )
    parameters = (
        f"parameters:\n  delta_radius: {printer.radius[0]!r} mm\n" if has_equal_radii else ""
    )
    return f"""{parameters}bodies: {{effector: {{mass: 0 kg}}}}
legs:
  - name: tower
    repeat: 3
    each:
      angle: {_listed(printer.angle, "deg")}
      radius: {radius}
      arm: {_listed(printer.arm, "mm")}
      # height of the nozzle with the carriage at its end stop, from which the carriage position decreases
      end_stop: {_listed(printer.end_stop, "mm")}
    frames:
      sector: {{on: base, turn: [{{z: angle}}]}}
    bodies: {{carriage: {{mass: 0 kg}}}}
    joints:
      slide:
        type: prismatic
        axis: -z
        parent: {{on: sector, at: [radius, 0, end_stop + sqrt(arm^2 - radius^2)]}}
        child: carriage
        reference: end_stop - {start!r} mm
        limits: [0 mm, end_stop + sqrt(arm^2 - radius^2)]
    rods:
      link: {{from: carriage, to: effector, length: arm, model: massless}}
    actuators:
      motor: {{on: slide}}
platform:
  body: effector
  motion: translational
  independent: [x, y, z]
  reference: {{at: [0, 0, {start!r} mm]}}
  limits:
    x: {{drawing: [{-half_width!r} mm, {half_width!r} mm]}}
    y: {{drawing: [{-half_width!r} mm, {half_width!r} mm]}}
    z: {{drawing: [0 mm, {min(printer.end_stop)!r} mm]}}
"""


def _rotary(printer: RotaryDelta) -> str:
    """Return the body of the machine file of a rotary delta."""
    start = _START_HEIGHT * min(printer.end_stop)
    angles = [elevation(printer, leg, start) for leg in range(3)]
    stops = [elevation(printer, leg, printer.end_stop[leg]) for leg in range(3)]
    lowered = _listed([stop - angle for stop, angle in zip(stops, angles, strict=True)], "deg")
    return f"""parameters:
  shoulder_radius: {printer.radius!r} mm
  shoulder_height: {printer.height!r} mm
bodies: {{effector: {{mass: 0 kg}}}}
legs:
  - name: leg
    repeat: 3
    each:
      angle: {_listed(printer.angle, "deg")}
      upper_arm: {_listed(printer.upper, "mm")}
      lower_arm: {_listed(printer.lower, "mm")}
      # height of the nozzle with the arm at its end stop, from which the arm angle decreases
      end_stop: {_listed(printer.end_stop, "mm")}
      start: {lowered}
    parameters:
      drop: shoulder_height - end_stop
      stop_angle: >-
        atan2(-drop, -shoulder_radius) + acos((upper_arm^2 + shoulder_radius^2 + drop^2 - lower_arm^2)
        / (2 * upper_arm * sqrt(shoulder_radius^2 + drop^2)))
    frames:
      sector: {{on: base, turn: [{{z: angle}}]}}
    bodies: {{arm: {{mass: 0 kg}}}}
    joints:
      shoulder:
        type: revolute
        axis: y
        parent: {{on: sector, at: [shoulder_radius, 0, shoulder_height], turn: [{{y: -stop_angle}}]}}
        child: arm
        reference: start
        limits: [0 deg, stop_angle + 90 deg]
    rods:
      forearm: {{from: {{on: arm, at: [upper_arm, 0, 0]}}, to: effector, length: lower_arm, model: massless}}
    actuators:
      motor: {{on: shoulder}}
platform:
  body: effector
  motion: translational
  independent: [x, y, z]
  reference: {{at: [0, 0, {start!r} mm]}}
"""


def _winches(printer: Winches) -> str:
    """Return the body of the machine file of a cable robot."""
    x, y, z = zip(*printer.anchors, strict=True)
    return f"""bodies: {{nozzle: {{mass: 0 kg}}}}
legs:
  - name: line
    repeat: {len(printer.anchors)}
    each:
      anchor_x: {_listed(x, "mm")}
      anchor_y: {_listed(y, "mm")}
      anchor_z: {_listed(z, "mm")}
    rods:
      cable:
        from: {{on: base, at: [anchor_x, anchor_y, anchor_z]}}
        to: nozzle
        telescopic: {{reference: sqrt(anchor_x^2 + anchor_y^2 + anchor_z^2)}}
        model: massless
        tension: {{least: 0 N}}
    actuators:
      winch: {{on: cable}}
platform:
  body: nozzle
  motion: translational
  independent: [x, y, z]
  reference: {{at: [0, 0, 0]}}
"""


def elevation(printer: RotaryDelta, leg: int, z: float) -> float:
    """Return the angle (deg) of an arm above the horizontal for the nozzle at (0, 0, z)."""
    drop = printer.height - z
    distance = np.hypot(printer.radius, drop)
    upper, lower = printer.upper[leg], printer.lower[leg]
    cosine = (upper**2 + distance**2 - lower**2) / (2.0 * upper * distance)
    direction = np.arctan2(-drop, -printer.radius)
    return float(np.rad2deg(direction + np.arccos(cosine)))


def _listed(values: Sequence[float], unit: str) -> str:
    """Return values with their unit as a YAML list."""
    return "[" + ", ".join(f"{float(value)!r} {unit}" for value in values) + "]"
