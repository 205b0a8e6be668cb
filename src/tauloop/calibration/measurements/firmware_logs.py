"""Measurements made by the firmware of 3D printers: probed heights and distances.

After DELTA_CALIBRATE, Klipper's ``printer.cfg`` (section ``delta_calibrate``) contains the poses
as motor steps from the end stops. A probing log contains points as computed by the firmware. Motor
positions are computed from these points with the nominal machine, which must have the geometry that
was configured in the firmware.

- ``height0`` and ``height0_pos``, or ``manual_height0`` and ``manual_height0_pos``: the nozzle is
  at this height (mm).
- ``distance0``, ``distance0_pos1`` and ``distance0_pos2``: distance of the nozzle between two
  poses (mm).
- ``probe at 10.0,20.0 is z=0.12`` (Klipper) or ``Bed X: 10 Y: 20 Z: 0.12`` (Marlin): contact with
  the plane z = 0.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from tauloop.calibration.measurements.instruments import Between, Contact
from tauloop.calibration.measurements.measurement_set import MeasurementSet
from tauloop.calibration.measurements.series import Series
from tauloop.common.errors import DescriptionError, InputError, PoseError
from tauloop.formats.printers.from_machine import end_stops
from tauloop.formats.printers.klipper import KlipperConfig
from tauloop.mechanism.description.yaml_nodes import read_text
from tauloop.mechanism.model import Mechanism

#: File extension of configurations of Klipper.
CONFIGURATION_SUFFIX = ".cfg"
#: File extensions of probing logs.
LOG_SUFFIXES = (".log", ".txt")
_MM = 1e-3
_NUMBER = r"(-?[0-9]*\.?[0-9]+)"
_PROBED = (
    re.compile(rf"probe at {_NUMBER},\s*{_NUMBER} is z=\s*{_NUMBER}"),
    re.compile(rf"Bed X:\s*{_NUMBER}\s+Y:\s*{_NUMBER}\s+Z:\s*{_NUMBER}"),
)
_SECTION = "delta_calibrate"


def read_firmware(path: Path, mechanism: Mechanism, noise: float) -> MeasurementSet:
    """Return the measurements of a configuration or log of a printer.

    Args:
        path: a Klipper configuration (``.cfg``), or a probing log (``.log`` or ``.txt``).
        mechanism: the nominal machine.
        noise: standard deviation of heights and distances, m.

    Raises:
        InputError: there are no measurements.
        DescriptionError: the configuration is invalid, or the machine has no end stops.
        PoseError: a probed point is out of reach of the machine.
    """
    if path.suffix.lower() == CONFIGURATION_SUFFIX:
        return _calibration_points(path, mechanism, noise)
    return _probed_points(path, mechanism, noise)


def _calibration_points(path: Path, mechanism: Mechanism, noise: float) -> MeasurementSet:
    config = KlipperConfig(path)
    letters = "abc"
    steps = np.array([config.step(f"stepper_{letter}") for letter in letters])
    is_angle = config.word("printer", "kinematics") == "rotary_delta"
    if not is_angle:
        steps = _MM * steps
    stops, senses = end_stops(mechanism)

    def position(option: str) -> np.ndarray:
        """Return the motor positions (3,), m or rad, of an option with three step counts."""
        words = config.word(_SECTION, option).split(",")
        try:
            counts = np.array([float(word) for word in words])
        except ValueError:
            counts = np.zeros(0)
        if counts.shape != (3,):
            what = f"is {config.word(_SECTION, option)!r}, not three step counts"
            remedy = "give three numbers, separated by commas"
            config.problems.add(f"{_SECTION}.{option}", what, remedy, file=str(path))
            return stops
        return np.asarray(stops + senses * counts * steps)

    height_poses, heights, height_labels = [], [], []
    for prefix in ("height", "manual_height"):
        for k in _numbered(config, prefix):
            height_poses.append(position(f"{prefix}{k}_pos"))
            heights.append(_MM * config.number(_SECTION, f"{prefix}{k}"))
            height_labels.append(f"{prefix}{k}")
    end_poses, distances, distance_labels = [], [], []
    for k in _numbered(config, "distance"):
        end_poses += [position(f"distance{k}_pos{end}") for end in (1, 2)]
        distances.append(_MM * config.number(_SECTION, f"distance{k}"))
        distance_labels.append(f"distance{k}")
    DescriptionError.raise_if_any(config.problems)
    series = []
    if heights:
        series.append(_series(Contact(name="bed"), height_poses, heights, noise, height_labels))
    if distances:
        series.append(_series(Between(name="object"), end_poses, distances, noise, distance_labels))
    if not series:
        what = f"has no heights and no distances in [{_SECTION}]"
        remedy = "run DELTA_CALIBRATE and SAVE_CONFIG, or give a probing log"
        raise InputError.of("measurements", what, remedy, file=str(path))
    return MeasurementSet(series=tuple(series))


def _numbered(config: KlipperConfig, prefix: str) -> list[int]:
    """Return the numbers of options ``PREFIX0``, ``PREFIX1`` and so on."""
    pattern = re.compile(rf"{prefix}(\d+)$")
    matches = (pattern.match(option) for option in config.sections.get(_SECTION, {}))
    return sorted(int(match[1]) for match in matches if match)


def _probed_points(path: Path, mechanism: Mechanism, noise: float) -> MeasurementSet:
    # Imported here because only probing logs need a model.
    from tauloop.model import Model

    text = read_text(path)
    probed = [match for pattern in _PROBED for match in pattern.finditer(text)]
    points = [_MM * np.array(match.groups(), dtype=float) for match in probed]
    if not points:
        what = (
            "has no line such as 'probe at 10.000,20.000 is z=0.123' or 'Bed X: 10 Y: 20 Z: 0.123'"
        )
        raise InputError.of("measurements", what, "give a probing log", file=str(path))
    model = Model(mechanism)
    columns = [name.rpartition(".")[2] for name in model.platform.ports.position.columns]
    if columns != ["x", "y", "z"]:
        what = f"the platform of {mechanism.name} has {', '.join(columns)}, but the log has x, y, z"
        raise InputError.of(
            "machine", what, "give the machine file of this printer", file=str(path)
        )
    try:
        q = model.inverse_kinematics(np.array(points)).q
    except PoseError as error:
        what = f"a probed point is out of reach: {error.problems[0].what}"
        remedy = "give the machine file of the printer that recorded this log"
        raise InputError.of("measurements", what, remedy, file=str(path)) from None
    encoders = model.actuators.ports.at(q)
    labels = [f"({x / _MM:g}, {y / _MM:g})" for x, y, _ in points]
    series = _series(Contact(name="bed"), list(encoders), [0.0] * len(points), noise, labels)
    return MeasurementSet(series=(series,))


def _series(
    instrument: Contact | Between,
    encoders: list[np.ndarray],
    readings: list[float],
    noise: float,
    labels: list[str],
) -> Series:
    return Series(
        instrument=instrument,
        encoders=np.array(encoders),
        readings=np.array(readings),
        noise=noise,
        labels=tuple(labels),
    )
