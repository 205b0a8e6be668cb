"""Deltas of Marlin and RepRapFirmware: ``Configuration.h``, and lines of M665, M666 and M669.

Sources: Marlin's documentation of M665 and M666 and the comments in its Configuration.h; Duet3D's
documentation of M665, M666 and M669. Both firmwares measure the tower angles from 210, 330 and 90
degrees. Marlin's end stop adjustments (M666, at most zero) lower the homed carriage; adjustments of
RepRapFirmware raise its end stop.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import DescriptionError, Problems
from tauloop.formats.printers.geometry import TOWER_ANGLES, LinearDelta, Printer, Winches
from tauloop.mechanism.description.yaml_nodes import read_text

_DECIMAL = r"-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
_WORD = re.compile(rf"([A-Z])\s*({_DECIMAL}(?::{_DECIMAL})*)")
_DEFINE = re.compile(r"^\s*#define\s+(DELTA_[A-Z_]+)\s+(.+?)\s*(?://.*|/\*.*)?$")
_DECIMAL_PATTERN = re.compile(_DECIMAL)
_TOWERS = "ABC"
_AXIS_LETTERS = "XYZ"


def read_reprap(path: Path) -> Printer:
    """Return the geometry of a RepRapFirmware file: a delta (M665, M666) or Hangprinter (M669 K6).

    Raises:
        DescriptionError: all problems of the file.
    """
    lines = _lines(path)
    kinematics = lines.get("M669", {}).get("K", (3.0 if "M665" in lines else 0.0,))[0]
    problems = Problems()
    if kinematics == 6.0:
        printer: Printer = _hangprinter(lines["M669"], problems, path)
    elif "M665" in lines:
        printer = _reprap_delta(lines, problems, path)
    else:
        raise _missing(
            path, "M665", "the file has no M665 (delta) or M669 K6 (Hangprinter) command"
        )
    DescriptionError.raise_if_any(problems)
    return printer


def read_marlin(path: Path) -> Printer:
    """Return the geometry of a ``Configuration.h``, or of M665 and M666 lines as printed by M503.

    Raises:
        DescriptionError: all problems of the file.
    """
    defines = _defines(path)
    if not defines:
        lines = _lines(path)
        if "M665" not in lines:
            raise _missing(
                path,
                "DELTA_RADIUS",
                "the file has neither DELTA_... definitions nor an M665 command",
            )
        defines = _as_defines(lines)
    problems = Problems()

    def length(name: str) -> float:
        values = defines.get(name, ())
        if len(values) != 1 or values[0] <= 0.0:
            what = "is missing" if not values else f"is {values[0]:g}"
            problems.add(name, what, "give a length above zero", file=str(path))
            return 1.0
        return values[0]

    def trims(name: str) -> tuple[float, ...]:
        values = defines.get(name, (0.0, 0.0, 0.0))
        if len(values) != 3:
            problems.add(
                name,
                f"has {counted(len(values), 'number')}, not 3",
                "give one for each tower",
                file=str(path),
            )
            return (0.0, 0.0, 0.0)
        return values

    radius = length("DELTA_RADIUS")
    arm = length("DELTA_DIAGONAL_ROD")
    height = length("DELTA_HEIGHT")
    adjustments = trims("DELTA_ENDSTOP_ADJ")
    printer = LinearDelta(
        radius=tuple(radius + trim for trim in trims("DELTA_RADIUS_TRIM_TOWER")),
        angle=_tower_directions(trims("DELTA_TOWER_ANGLE_TRIM")),
        arm=tuple(arm + trim for trim in trims("DELTA_DIAGONAL_ROD_TRIM_TOWER")),
        end_stop=tuple(height - adjustment for adjustment in adjustments),
        print_radius=defines.get("DELTA_PRINTABLE_RADIUS", (radius,))[0],
    )
    DescriptionError.raise_if_any(problems)
    return printer


def marlin_text(printer: Printer) -> tuple[str, tuple[str, ...]]:
    """Return definitions for Configuration.h with M665 and M666, and notes on the differences.

    Raises:
        DescriptionError: the printer is not a linear delta.
    """
    delta = _linear_delta(printer, "Marlin")
    height = min(delta.end_stop)
    rod, radius = float(np.mean(delta.arm)), float(np.mean(delta.radius))
    triples = {
        "DELTA_ENDSTOP_ADJ": [height - stop for stop in delta.end_stop],
        "DELTA_TOWER_ANGLE_TRIM": _trims(delta.angle),
        "DELTA_RADIUS_TRIM_TOWER": [value - radius for value in delta.radius],
        "DELTA_DIAGONAL_ROD_TRIM_TOWER": [value - rod for value in delta.arm],
    }
    values = {
        "DELTA_PRINTABLE_RADIUS": delta.print_radius,
        "DELTA_DIAGONAL_ROD": rod,
        "DELTA_HEIGHT": height,
        "DELTA_RADIUS": radius,
    }
    lines = [f"#define {name} {_text(value)}" for name, value in values.items()]
    for name, numbers in triples.items():
        lines.append(f"#define {name} {{ {', '.join(map(_text, numbers))} }}")
    angles = _words(_AXIS_LETTERS, triples["DELTA_TOWER_ANGLE_TRIM"])
    rods = _words(_TOWERS, triples["DELTA_DIAGONAL_ROD_TRIM_TOWER"])
    lines.append(f"// M665 L{_text(rod)} R{_text(radius)} H{_text(height)} {angles} {rods}")
    lines.append(f"// M666 {_words(_AXIS_LETTERS, triples['DELTA_ENDSTOP_ADJ'])}")
    notes = ["the file only has the delta's definitions: copy them into your Configuration.h"]
    return "\n".join(lines) + "\n", tuple(notes)


def reprap_text(printer: Printer) -> tuple[str, tuple[str, ...]]:
    """Return M665 and M666 of a delta or M669 of a Hangprinter, and notes on the differences.

    Raises:
        DescriptionError: the printer is neither a linear delta nor a Hangprinter.
    """
    notes = ["the file only has the geometry: copy it into your config.g"]
    if isinstance(printer, Winches):
        words = []
        for name, anchor in zip(printer.names, printer.anchors, strict=True):
            words.append(f"{name.upper()}{':'.join(map(_text, anchor))}")
        return f"M669 K6 {' '.join(words)}\n", tuple(notes)
    delta = _linear_delta(printer, "RepRapFirmware")
    radius = float(np.mean(delta.radius))
    spread = max(delta.radius) - min(delta.radius)
    if spread > 1e-6:
        notes.append(f"R is one radius for all towers, but their radii differ by {spread:.4g} mm")
    height = float(np.mean(delta.end_stop))
    diagonals = ":".join(map(_text, delta.arm))
    lines = [
        f"M665 L{diagonals} R{_text(radius)} H{_text(height)} B{_text(delta.print_radius)} "
        + _words(_AXIS_LETTERS, _trims(delta.angle)),
        f"M666 {_words(_AXIS_LETTERS, [stop - height for stop in delta.end_stop])}",
    ]
    return "\n".join(lines) + "\n", tuple(notes)


def _linear_delta(printer: Printer, firmware: str) -> LinearDelta:
    if isinstance(printer, LinearDelta):
        return printer
    what = f"{firmware} does not support these kinematics"
    raise DescriptionError.of("machine", what, "write a delta with three towers, or choose Klipper")


def _lines(path: Path) -> dict[str, dict[str, tuple[float, ...]]]:
    """Return the numbers of each code by letter; later lines replace earlier values."""
    codes: dict[str, dict[str, tuple[float, ...]]] = {}
    for line in read_text(path).splitlines():
        text = line.split(";")[0].removeprefix("echo:").strip().upper()
        code, _, rest = text.partition(" ")
        if code not in ("M665", "M666", "M669"):
            continue
        words = codes.setdefault(code, {})
        for letter, numbers in _WORD.findall(rest):
            words[letter] = tuple(map(float, numbers.split(":")))
    return codes


def _defines(path: Path) -> dict[str, tuple[float, ...]]:
    """Return the numbers of the first definition of each name in a Configuration.h."""
    numbers: dict[str, tuple[float, ...]] = {}
    for line in read_text(path).splitlines():
        match = _DEFINE.match(line)
        values = tuple(map(float, _DECIMAL_PATTERN.findall(match[2]))) if match else ()
        if match and values:
            numbers.setdefault(match[1], values)
    return numbers


def _as_defines(
    lines: Mapping[str, Mapping[str, tuple[float, ...]]],
) -> dict[str, tuple[float, ...]]:
    """Return the values of Marlin's M665 and M666 by the names in its Configuration.h."""
    geometry, stops = lines["M665"], lines.get("M666", {})
    defines = {
        name: geometry[letter]
        for name, letter in (
            ("DELTA_DIAGONAL_ROD", "L"),
            ("DELTA_RADIUS", "R"),
            ("DELTA_HEIGHT", "H"),
        )
        if letter in geometry
    }
    defines["DELTA_TOWER_ANGLE_TRIM"] = _numbers_by_letter(geometry, _AXIS_LETTERS)
    defines["DELTA_DIAGONAL_ROD_TRIM_TOWER"] = _numbers_by_letter(geometry, _TOWERS)
    defines["DELTA_ENDSTOP_ADJ"] = _numbers_by_letter(stops, _AXIS_LETTERS)
    return defines


def _numbers_by_letter(words: Mapping[str, tuple[float, ...]], letters: str) -> tuple[float, ...]:
    """Return the first number of each letter, 0 if it is absent."""
    return tuple(words.get(letter, (0.0,))[0] for letter in letters)


def _reprap_delta(
    lines: Mapping[str, Mapping[str, tuple[float, ...]]], problems: Problems, path: Path
) -> LinearDelta:
    geometry, stops = lines["M665"], lines.get("M666", {})
    for letter, what in (("L", "diagonal rods"), ("R", "radius"), ("H", "homed height")):
        if letter not in geometry:
            problems.add("M665", f"has no {letter} ({what})", "add it", file=str(path))
    DescriptionError.raise_if_any(problems)
    if any(word in stops for word in "AB") and any(_numbers_by_letter(stops, "AB")):
        problems.add(
            "M666",
            "specifies a tilt of the bed (A, B)",
            "level the bed, and remove A and B",
            file=str(path),
        )
    diagonals = geometry["L"] if len(geometry["L"]) == 3 else geometry["L"][:1] * 3
    radius, height = geometry["R"][0], geometry["H"][0]
    printer = LinearDelta(
        radius=(radius,) * 3,
        angle=_tower_directions(_numbers_by_letter(geometry, _AXIS_LETTERS)),
        arm=tuple(diagonals),
        end_stop=tuple(
            height + adjustment for adjustment in _numbers_by_letter(stops, _AXIS_LETTERS)
        ),
        print_radius=geometry.get("B", (radius,))[0],
    )
    return printer


def _hangprinter(words: Mapping[str, tuple[float, ...]], problems: Problems, path: Path) -> Winches:
    names: list[str] = []
    anchors: list[tuple[float, float, float]] = []
    for letter in "ABCDEIJLO":
        if letter not in words:
            continue
        values = words[letter]
        if len(values) == 1:  # the last anchor may be only a height above the center
            values = (0.0, 0.0, values[0])
        if len(values) != 3:
            what = f"anchor {letter} has {counted(len(values), 'number')}, not 3"
            problems.add("M669", what, f"write {letter}x:y:z", file=str(path))
            continue
        names.append(letter.lower())
        anchors.append((values[0], values[1], values[2]))
    if len(anchors) < 3:
        what = f"has {len(anchors)} anchors, but needs at least 3"
        problems.add("M669", what, "add the missing anchors, such as A, B, C and D", file=str(path))
    return Winches(names=tuple(names), anchors=tuple(anchors))


def _missing(path: Path, where: str, what: str) -> DescriptionError:
    return DescriptionError.of(where, what, "give a file with the delta's geometry", file=str(path))


def _tower_directions(trims: tuple[float, ...]) -> tuple[float, ...]:
    """Return the directions of the towers, deg, from their deviations."""
    return tuple(angle + trim for angle, trim in zip(TOWER_ANGLES, trims, strict=True))


def _trims(angles: tuple[float, ...]) -> list[float]:
    """Return the deviations of towers from their nominal directions, deg in (-180, 180]."""
    pairs = zip(angles, TOWER_ANGLES, strict=True)
    return [180.0 - (180.0 - (angle - nominal)) % 360.0 for angle, nominal in pairs]


def _words(letters: str, values: list[float]) -> str:
    return " ".join(
        f"{letter}{_text(value)}" for letter, value in zip(letters, values, strict=True)
    )


def _text(value: float) -> str:
    """Return a number with a resolution of 1 nm; a zero has no sign."""
    return f"{round(value, 6) + 0.0:.6f}"
