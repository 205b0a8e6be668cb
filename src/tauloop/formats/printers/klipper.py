"""Klipper's ``printer.cfg``: reading and writing of deltas, rotary deltas and winches.

Sources: Klipper's Config_Reference.md and Delta_Calibrate.md. Options that SAVE_CONFIG has appended
(``#*#``) replace the same options above.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from tauloop.common.errors import DescriptionError, Problems
from tauloop.formats.printers.geometry import (
    SHOULDER_ANGLES,
    TOWER_ANGLES,
    LinearDelta,
    Printer,
    RotaryDelta,
    Winches,
)
from tauloop.mechanism.description.yaml_nodes import read_text

#: Default number of motor steps per revolution.
_FULL_STEPS = 200.0
_SAVED = "#*#"
_KINEMATICS = ("delta", "rotary_delta", "winch")
_SECTION = re.compile(r"\[([^\]]+)\]\s*$")
_OPTION = re.compile(r"([A-Za-z0-9_]+)\s*[:=]\s*(.*)$")


class KlipperConfig:
    """Sections and options of a file; the last value of an option is used."""

    def __init__(self, path: Path) -> None:
        """Read a file.

        Raises:
            DescriptionError: the file cannot be read.
        """
        self.path = path
        self.problems = Problems()
        self.sections: dict[str, dict[str, str]] = {}
        section = ""
        for line in read_text(path).splitlines():
            text = line.removeprefix(_SAVED).strip() if line.startswith(_SAVED) else line
            text = re.split(r"(?:^|\s)[#;]", text, maxsplit=1)[0].rstrip()
            header, option = _SECTION.match(text.strip()), _OPTION.match(text)
            if header:
                section = header[1].strip()
                self.sections.setdefault(section, {})
            elif option and section:
                self.sections[section][option[1].lower()] = option[2].strip()

    def word(self, section: str, option: str) -> str:
        """Return an option; "" if it is missing."""
        return self.sections.get(section, {}).get(option, "")

    def number(self, section: str, option: str, default: float | None = None) -> float:
        """Return a number; NaN after adding a problem if it is missing or not a number."""
        word = self.word(section, option)
        where = f"{section}.{option}"
        if not word:
            if default is None:
                self.problems.add(where, "is missing", "add it", file=str(self.path))
                return float("nan")
            return default
        try:
            value = float(word)
        except ValueError:
            value = float("nan")
        if not np.isfinite(value):
            self.problems.add(
                where, f"{word!r} is not a number", "give a finite number", file=str(self.path)
            )
        return value

    def positive(self, section: str, option: str, default: float | None = None) -> float:
        """Return a number; add a problem if it is not above zero."""
        value = self.number(section, option, default)
        if value <= 0.0:  # NaN has been reported
            where = f"{section}.{option}"
            self.problems.add(
                where, f"is {value:g}", "give a length above zero", file=str(self.path)
            )
        return value

    def step(self, section: str) -> float:
        """Return the displacement per motor step: mm, or rad for a rotary delta."""
        steps = self.positive(section, "full_steps_per_rotation", _FULL_STEPS)
        steps *= self.positive(section, "microsteps")
        gears = self.word(section, "gear_ratio")
        ratio = 1.0
        for pair in filter(None, gears.split(",")):
            first, _, second = pair.partition(":")
            try:
                ratio *= float(first) / float(second)
            except (ValueError, ZeroDivisionError):
                what = f"{pair.strip()!r} is not a ratio such as 80:16"
                remedy = "write the numbers of teeth, such as 80:16; separate stages by commas"
                self.problems.add(f"{section}.gear_ratio", what, remedy, file=str(self.path))
        is_angle = self.word("printer", "kinematics") == "rotary_delta"
        travel = 2.0 * np.pi if is_angle else self.number(section, "rotation_distance")
        return travel / (steps * ratio)


def read_klipper(path: Path) -> Printer:
    """Return the geometry of a printer.

    Raises:
        DescriptionError: all problems of the file.
    """
    config = KlipperConfig(path)
    kinematics = config.word("printer", "kinematics")
    if kinematics not in _KINEMATICS:
        what = f"is {kinematics!r}" if kinematics else "is missing"
        remedy = f"give a file with one of {', '.join(_KINEMATICS)}"
        raise DescriptionError.of("printer.kinematics", what, remedy, file=str(path))
    if kinematics == "delta":
        printer: Printer = _delta(config)
    elif kinematics == "rotary_delta":
        printer = _rotary(config)
    else:
        printer = _winches(config)
    DescriptionError.raise_if_any(config.problems)
    return printer


def _tower_lengths(config: KlipperConfig, option: str) -> tuple[float, ...]:
    """Return a length of all three towers; b and c have the value of a by default."""
    first = config.positive("stepper_a", option)
    others = (config.positive(f"stepper_{letter}", option, first) for letter in "bc")
    return (first, *others)


def _angles(config: KlipperConfig, defaults: tuple[float, ...]) -> tuple[float, ...]:
    """Return the angles of the towers or shoulders, deg."""
    pairs = zip("abc", defaults, strict=True)
    return tuple(config.number(f"stepper_{letter}", "angle", angle) for letter, angle in pairs)


def _end_stops(config: KlipperConfig) -> tuple[float, ...]:
    """Return the heights of the end stops, mm; b and c have the value of a by default."""
    first = config.number("stepper_a", "position_endstop")
    others = (config.number(f"stepper_{letter}", "position_endstop", first) for letter in "bc")
    return (first, *others)


def _delta(config: KlipperConfig) -> LinearDelta:
    """Return the geometry of a linear delta."""
    radius = config.positive("printer", "delta_radius")
    arms = _tower_lengths(config, "arm_length")
    return LinearDelta(
        radius=(radius,) * 3,
        angle=_angles(config, TOWER_ANGLES),
        arm=arms,
        end_stop=_end_stops(config),
        print_radius=config.positive("printer", "print_radius", radius),
    )


def _rotary(config: KlipperConfig) -> RotaryDelta:
    """Return the geometry of a rotary delta."""
    return RotaryDelta(
        radius=config.positive("printer", "shoulder_radius"),
        height=config.positive("printer", "shoulder_height"),
        angle=_angles(config, SHOULDER_ANGLES),
        upper=_tower_lengths(config, "upper_arm_length"),
        lower=_tower_lengths(config, "lower_arm_length"),
        end_stop=_end_stops(config),
    )


def _winches(config: KlipperConfig) -> Winches:
    """Return the anchors of all winches of a cable robot."""
    letters = [
        letter for letter in "abcdefghijklmnopqrstuvwxyz" if f"stepper_{letter}" in config.sections
    ]
    anchors: list[tuple[float, float, float]] = []
    for letter in letters:
        x, y, z = (config.number(f"stepper_{letter}", f"anchor_{axis}") for axis in "xyz")
        anchors.append((x, y, z))
    if not letters:
        config.problems.add(
            "stepper_a", "is missing", "add a section for each winch", file=str(config.path)
        )
        return Winches(names=(), anchors=())
    return Winches(names=tuple(letters), anchors=tuple(anchors))


def klipper_text(printer: Printer) -> tuple[str, tuple[str, ...]]:
    """Return the sections of the kinematics, and notes on what the file cannot represent."""
    notes = ["the file only has the kinematics: copy it into your printer.cfg"]
    names: tuple[str, ...] = ("a", "b", "c")
    if isinstance(printer, LinearDelta):
        printer_options = {
            "kinematics": "delta",
            "delta_radius": _mean(printer.radius, "delta_radius", notes),
        }
        printer_options["print_radius"] = _text(printer.print_radius)
        steppers = _rows(
            position_endstop=printer.end_stop, arm_length=printer.arm, angle=printer.angle
        )
    elif isinstance(printer, RotaryDelta):
        printer_options = {
            "kinematics": "rotary_delta",
            "shoulder_radius": _text(printer.radius),
            "shoulder_height": _text(printer.height),
        }
        if printer.height <= 0.0:
            notes.append("Klipper needs a shoulder_height above zero: move the origin to the bed")
        steppers = _rows(
            position_endstop=printer.end_stop,
            upper_arm_length=printer.upper,
            lower_arm_length=printer.lower,
            angle=printer.angle,
        )
    else:
        printer_options, names = {"kinematics": "winch"}, printer.names
        keys = ("anchor_x", "anchor_y", "anchor_z")
        steppers = [dict(zip(keys, anchor, strict=True)) for anchor in printer.anchors]
    sections: list[tuple[str, Mapping[str, str]]] = [("printer", printer_options)]
    for name, values in zip(names, steppers, strict=True):
        sections.append((f"stepper_{name}", {key: _text(value) for key, value in values.items()}))
    blocks = []
    for name, options in sections:
        lines = [f"[{name}]", *(f"{key}: {value}" for key, value in options.items())]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks) + "\n", tuple(notes)


def _rows(**columns: tuple[float, ...]) -> list[dict[str, float]]:
    """Return the values of each tower by key, from those of all towers."""
    rows = zip(*columns.values(), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def _mean(values: tuple[float, ...], name: str, notes: list[str]) -> str:
    """Return the mean of the towers' values as text, with a note if they differ."""
    mean = float(np.mean(values))
    spread = max(values) - min(values)
    if spread > 1e-6:
        notes.append(
            f"{name} is one number for all towers, but their values differ by {spread:.4g} mm"
        )
    return _text(mean)


def _text(value: float) -> str:
    """Return a length in mm, to the nanometer, or an angle in deg, as Klipper reads it."""
    return f"{value:.6f}"
