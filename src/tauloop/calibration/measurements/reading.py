"""Measurements from files: a table with a header, or a YAML that says which columns of which file are what.

format: tauloop-measurements/1
series:
  - path: bed.csv
    header: [a, b, c]                       # names of the columns, where the file has none
    kind: contact                           # one of KINDS
    name: bed
    encoders: {motor1: a, motor2: b, motor3: c}   # left out: columns encoder.motor1, ...
    readings: {gap: d}                      # left out: columns measured.gap, ...; of contacts without them: zero gaps
    units: {encoders: 0.009375 mm}          # of the groups or of single columns
    noise: 0.04 mm
parameters: [tower*.end_stop]
tolerances: {length: 5 mm, angle: 0.5 deg}
bounds: {tower1.arm: 200 mm to 230 mm, tower*.end_stop: -5 mm to}
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tauloop.calibration.measurements.instruments import (
    Contact,
    Distance,
    Inclinometer,
    Instrument,
    JointSensor,
    Orientation,
    Pose,
    Position,
    Vector3,
)
from tauloop.calibration.measurements.measurement_set import MeasurementSet
from tauloop.calibration.measurements.series import Series
from tauloop.calibration.measurements.surfaces import Cylinder, Plane, Sphere, Surface
from tauloop.calibration.problem.unknowns import DIMENSIONS, Bounds, Tolerances, bounds_of
from tauloop.errors import InputError, LogError, Problem, Problems
from tauloop.logs.findings import Findings
from tauloop.logs.scales import find_scale
from tauloop.logs.tables import Table, open_table
from tauloop.mechanism.model import Mechanism
from tauloop.mechanism.quantities import quantity, read_quantity
from tauloop.mechanism.suggestions import suggestion
from tauloop.mechanism.units import ANGLE, LENGTH, ONE, Dimension, UnitError
from tauloop.mechanism.yaml_nodes import Mapping, Node, Scalar, parse_nodes, read_text
from tauloop.mechanism.yaml_nodes import Sequence as List

FORMAT = "tauloop-measurements/1"
#: Kinds of measurements by the name that files and the command line use.
KINDS = ("position", "pose", "orientation", "distance", "contact", "inclinometer", "joint")


class _HeadlessTable(Table):
    """A CSV of numbers without a header, whose column names are given."""

    def __init__(self, path: Path, names: Sequence[str]) -> None:
        try:
            self._values = np.loadtxt(path, delimiter=",", ndmin=2)
        except (OSError, ValueError, UnicodeDecodeError) as error:
            what = f"is no table of numbers: {error}"
            raise LogError(Problem(where="", what=what, remedy="check path and contents", file=str(path))) from None
        super().__init__(str(path), names, brackets_are_units=True)
        if self._values.shape[1] != len(names):
            what = f"has {self._values.shape[1]} columns, and the header names {len(names)}"
            raise LogError(Problem(where="header", what=what, remedy="name every column", file=str(path)))

    def numbers(self, columns: Sequence[int], findings: Findings) -> np.ndarray:
        chosen = self._values[:, list(columns)]
        self._report_not_finite(chosen, columns, findings)
        return chosen


def read_measurements(
    path: str | Path,
    mechanism: Mechanism,
    *,
    kind: str = "position",
    noise: float | str | None = None,
    folder: str | Path | None = None,
) -> MeasurementSet:
    """Read measurements of a machine.

    Args:
        path: a YAML as above; or a CSV, Parquet or MAT file whose columns are ``encoder.ACTUATOR`` and
            ``measured.COLUMN`` with units in the header (``encoder.motor1 [mm]``, ``measured.x [mm]``).
        mechanism: the machine, whose actuators the encoders belong to.
        kind: what a bare table holds, one of `KINDS` that need no more than columns.
        noise: standard deviation of its readings, SI, or such as ``0.02 mm``.
        folder: where the files named in a YAML lie; beside it without this.

    Raises:
        InputError, LogError: everything that is wrong, with files and lines.
        DescriptionError: the file is no plain YAML.
    """
    path = Path(path)
    if path.suffix.lower() in (".yaml", ".yml"):
        reader = _Reader(str(path), Path(folder) if folder is not None else path.parent, mechanism)
        found = reader.file(parse_nodes(read_text(path), str(path)))
        if reader.problems or found is None:
            raise InputError(reader.problems)
        return found
    if noise is None:
        remedy = "give the standard deviation of the readings, such as '0.02 mm'"
        raise InputError(Problem(where="noise", what="is not stated", remedy=remedy, file=str(path)))
    plain: dict[str, Callable[[], Instrument]] = {
        "position": lambda: Position(name="tracker"),
        "pose": lambda: Pose(name="tracker"),
        "orientation": lambda: Orientation(name="tracker"),
        "contact": lambda: Contact(name="surface"),
        "inclinometer": lambda: Inclinometer(name="level"),
    }
    if kind not in plain:
        remedy = f"one of {', '.join(plain)}; describe others in a YAML file"
        raise InputError(Problem(where="measure", what=f"{kind!r} cannot be read from a bare table", remedy=remedy))
    instrument = plain[kind]()
    if isinstance(noise, str):
        noise = quantity("noise", noise, DIMENSIONS[instrument.errors[0][1]])
    table = open_table(path)
    encoders, columns = _standard_encoders(mechanism), _standard_readings(table, instrument)
    if isinstance(instrument, Position):
        columns = {letter: name for letter, name in columns.items() if name in table.names} or columns
        instrument = Position(name="tracker", components="".join(columns))
    return MeasurementSet(series=(_series(table, instrument, encoders, columns, {}, (noise,), mechanism),))


def _standard_encoders(mechanism: Mechanism) -> dict[str, str]:
    """Columns of the encoders in a table with standard headers."""
    return {actuator.name: f"encoder.{actuator.name}" for actuator in mechanism.actuators}


def _standard_readings(table: Table, instrument: Instrument) -> dict[str, str]:
    """Columns of the readings in a table with standard headers; none for contacts whose gaps are left out."""
    columns = {name: f"measured.{name}" for name, _ in instrument.columns}
    is_zero = isinstance(instrument, Contact) and not any(column in table.names for column in columns.values())
    return {} if is_zero else columns


def read_instrument(path: str | Path, mechanism: Mechanism) -> Instrument:
    """An instrument from a YAML with the keys that a series of measurements has for it (kind, center, surface, ...).

    Raises:
        InputError: everything that is wrong, with lines.
        DescriptionError: the file is no plain YAML.
    """
    path = Path(path)
    reader = _Reader(str(path), path.parent, mechanism)
    entry = reader.mapping("", parse_nodes(read_text(path), str(path)), INSTRUMENT_KEYS)
    instrument = reader.instrument("instrument", entry)
    if reader.problems or instrument is None:
        raise InputError(reader.problems)
    return instrument


def _series(
    table: Table,
    instrument: Instrument,
    encoders: dict[str, str],
    readings: dict[str, str],
    units: dict[str, str],
    noise: tuple[float, ...],
    mechanism: Mechanism,
) -> Series:
    findings = Findings()

    def channel(group: str, name: str, column: str) -> tuple[int, float]:
        if column not in table.names:
            remedy = suggestion(column, table.names) or f"the file has {', '.join(table.names)}"
            what = f"no column {column!r}"
            findings.add("missing", where=f"{group}.{name}", what=what, remedy=remedy, file=table.file)
            return 0, 1.0
        index = table.names.index(column)
        text = units.get(column, units.get(group, table.units[index]))
        if not text and dict(instrument.columns).get(name) == "1":
            text = "1"
        scale = find_scale("position", text, table, index, findings)
        return index, scale.factor if scale is not None else 1.0

    for name in encoders:
        if name not in [actuator.name for actuator in mechanism.actuators]:
            remedy = suggestion(name, [a.name for a in mechanism.actuators]) or "see `tauloop show`"
            findings.add("actuators", where=f"encoders.{name}", what="no such actuator", remedy=remedy, file=table.file)
    chosen = []
    for actuator in mechanism.actuators:
        if actuator.name not in encoders:
            what = f"no column for {actuator.name}"
            findings.add("missing", where="encoders", what=what, remedy="map every actuator", file=table.file)
            continue
        chosen.append(channel("encoders", actuator.name, encoders[actuator.name]))
    gaps_are_zero = isinstance(instrument, Contact) and not readings
    for name, _ in () if gaps_are_zero else instrument.columns:
        if name not in readings:
            findings.add("missing", where="readings", what=f"no column for {name}", remedy="map it", file=table.file)
            continue
        chosen.append(channel("readings", name, readings[name]))
    findings.raise_if_any()
    values = table.numbers([index for index, _ in chosen], findings) * np.array([factor for _, factor in chosen])
    findings.raise_if_any()
    n_u = len(mechanism.actuators)
    lines = [table.line(row) for row in range(len(values))] if len(values) < 1000 else []
    labels = tuple(f"pose {i + 1}" + (f" (line {line})" if line is not None else "") for i, line in enumerate(lines))
    return Series(
        instrument=instrument,
        encoders=values[:, :n_u],
        readings=np.zeros((len(values), 1)) if gaps_are_zero else values[:, n_u:],
        noise=noise,
        labels=labels,
    )


INSTRUMENT_KEYS = ("kind", "name", "components", "center", "target", "coordinate", "unit", "surface")
_SERIES_KEYS = ("path", "header", "encoders", "readings", "units", "noise", *INSTRUMENT_KEYS)


class _Reader:
    """Turns nodes into measurements and keeps all problems."""

    def __init__(self, file: str, folder: Path, mechanism: Mechanism) -> None:
        self.problems = Problems()
        self._file, self._folder, self._mechanism = file, folder, mechanism

    def _fault(self, where: str, node: Node | None, what: str, remedy: str) -> None:
        line = node.line if node is not None else None
        self.problems.add(where, what, remedy, file=self._file, line=line)

    def mapping(self, where: str, node: Node | None, known: Sequence[str] = ()) -> dict[str, Node]:
        if not isinstance(node, Mapping):
            self._fault(where, node, "is not a mapping", f"give keys {', '.join(known) or 'and values'}")
            return {}
        for entry in node.entries:
            if known and entry.key not in known:
                remedy = suggestion(entry.key, known) or f"keys are {', '.join(known)}"
                self._fault(f"{where}.{entry.key}".lstrip("."), entry.value, "unknown key", remedy)
        return {entry.key: entry.value for entry in node.entries}

    def _text(self, where: str, node: Node | None, default: str = "") -> str:
        if node is None and default:
            return default
        if isinstance(node, Scalar) and node.text:
            return node.text
        self._fault(where, node, "is not a text" if node is not None else "is missing", "give it")
        return ""

    def _texts(self, where: str, node: Node | None) -> tuple[str, ...]:
        if isinstance(node, List):
            return tuple(self._text(f"{where}[{i}]", item) for i, item in enumerate(node.items))
        return (self._text(where, node),)

    def _quantity(self, where: str, node: Node | None, *wanted: Dimension) -> float:
        text = self._text(where, node)
        try:
            return read_quantity(text, *wanted).value if text else 1.0
        except UnitError as error:
            self._fault(where, node, error.what, error.remedy)
            return 1.0

    def _vector(self, where: str, node: Node | None, dimension: Dimension, default: Vector3) -> Vector3:
        if node is None:
            return default
        if not isinstance(node, List) or len(node.items) != 3:
            self._fault(where, node, "is not a list of three", "such as [0 mm, 0 mm, 10 mm]")
            return default
        x, y, z = (self._quantity(f"{where}[{i}]", item, dimension) for i, item in enumerate(node.items))
        return (x, y, z)

    def file(self, node: Node) -> MeasurementSet | None:
        keys = ("format", "description", "series", "parameters", "tolerances", "encoder_noise", "bounds")
        root = self.mapping("", node, keys)
        if self._text("format", root.get("format")) not in (FORMAT, ""):
            self._fault("format", root["format"], "is not known", f"write {FORMAT}")
        items = root.get("series")
        if not isinstance(items, List) or not items.items:
            self._fault("series", items, "is not a list of series", "begin each with '- path: ...'")
            return None
        series = [self._series(f"series[{i}]", item) for i, item in enumerate(items.items)]
        tolerances = self._tolerances(root["tolerances"]) if "tolerances" in root else None
        noise = root.get("encoder_noise")
        encoder_noise = self._quantity("encoder_noise", noise, LENGTH, ANGLE) if noise is not None else 0.0
        parameters = self._texts("parameters", root["parameters"]) if "parameters" in root else ()
        bounds = self._bounds(root["bounds"]) if "bounds" in root else {}
        if self.problems:
            return None
        return MeasurementSet(
            series=tuple(item for item in series if item is not None),
            parameters=parameters,
            tolerances=tolerances,
            encoder_noise=encoder_noise,
            bounds=bounds,
        )

    def _bounds(self, node: Node) -> dict[str, Bounds]:
        found = {}
        for name, item in self.mapping("bounds", node).items():
            text = self._text(f"bounds.{name}", item)
            try:
                found[name] = bounds_of(text, " to ")
            except UnitError as error:
                self._fault(f"bounds.{name}", item, error.what, error.remedy)
        return found

    def _tolerances(self, node: Node) -> Tolerances:
        entry = self.mapping("tolerances", node, ("length", "angle", "ratio", "named", "priors"))
        values: dict[str, Any] = {}
        for key, dimension in (("length", LENGTH), ("angle", ANGLE), ("ratio", ONE)):
            if key in entry:
                values[key] = self._quantity(f"tolerances.{key}", entry[key], dimension)
        if "named" in entry:
            values["named"] = {
                name: self._quantity(f"tolerances.named.{name}", item, *DIMENSIONS.values())
                for name, item in self.mapping("tolerances.named", entry["named"]).items()
            }
        if "priors" in entry:
            values["priors"] = self._texts("tolerances.priors", entry["priors"])
        return Tolerances(**values)

    def _series(self, where: str, node: Node) -> Series | None:
        entry = self.mapping(where, node, _SERIES_KEYS)
        before = len(self.problems)
        instrument = self.instrument(where, entry)
        path = self._folder / self._text(f"{where}.path", entry.get("path"))
        groups: dict[str, dict[str, str]] = {}
        for group in ("encoders", "readings", "units"):
            found = self.mapping(f"{where}.{group}", entry[group]) if group in entry else {}
            groups[group] = {key: self._text(f"{where}.{group}.{key}", item) for key, item in found.items()}
        noise = self._noise(where, entry.get("noise"), instrument)
        header = self._texts(f"{where}.header", entry["header"]) if "header" in entry else ()
        if len(self.problems) > before or instrument is None:
            return None
        try:
            table = _HeadlessTable(path, header) if header else open_table(path)
            encoders = groups["encoders"] if "encoders" in entry else _standard_encoders(self._mechanism)
            readings = groups["readings"] if "readings" in entry else _standard_readings(table, instrument)
            return _series(table, instrument, encoders, readings, groups["units"], noise, self._mechanism)
        except (LogError, InputError) as error:
            self.problems += error.problems
            return None

    def _noise(self, where: str, node: Node | None, instrument: Instrument | None) -> tuple[float, ...]:
        if instrument is None:
            return ()
        texts = node.items if isinstance(node, List) else (node,)
        units = [unit for _, unit in instrument.errors]
        if len(texts) == 1 and len(set(units)) > 1:
            self._fault(
                f"{where}.noise", node, f"is one for errors in {' and '.join(sorted(set(units)))}", "give a list"
            )
            return ()
        return tuple(
            self._quantity(f"{where}.noise", item, DIMENSIONS[unit]) for item, unit in zip(texts, units, strict=False)
        )

    def instrument(self, where: str, entry: dict[str, Node]) -> Instrument | None:
        kind = self._text(f"{where}.kind", entry.get("kind"))
        name = self._text(f"{where}.name", entry.get("name"), default=kind or "instrument")
        target = self._vector(f"{where}.target", entry.get("target"), LENGTH, (0.0, 0.0, 0.0))
        if kind == "position":
            components = self._text(f"{where}.components", entry.get("components"), default="xyz")
            return Position(name=name, target=target, components=components)
        if kind == "pose":
            return Pose(name=name, target=target)
        if kind == "orientation":
            return Orientation(name=name)
        if kind == "distance":
            if "center" not in entry:
                self._fault(f"{where}.center", None, "is missing", "give the fixed centre of the bar, [x, y, z]")
            center = self._vector(f"{where}.center", entry.get("center"), LENGTH, (0.0, 0.0, 0.0))
            return Distance(name=name, center=center, target=target)
        if kind == "contact":
            return Contact(name=name, target=target, surface=self._surface(where, entry.get("surface")))
        if kind == "inclinometer":
            return Inclinometer(name=name)
        if kind == "joint":
            coordinate = self._text(f"{where}.coordinate", entry.get("coordinate"))
            unit = self._text(f"{where}.unit", entry.get("unit"), default="rad")
            return JointSensor(name=name, coordinate=coordinate, unit=unit)
        if kind:
            remedy = suggestion(kind, KINDS) or f"kinds are {', '.join(KINDS)}"
            self._fault(f"{where}.kind", entry.get("kind"), f"{kind!r} is not known", remedy)
        return None

    def _surface(self, where: str, node: Node | None) -> Surface:
        if node is None:
            return Plane()
        found = self.mapping(f"{where}.surface", node, ("plane", "sphere", "cylinder"))
        origin = (0.0, 0.0, 0.0)
        for name, value in found.items():
            place = f"{where}.surface.{name}"
            if name == "plane":
                entry = self.mapping(place, value, ("point", "normal"))
                point = self._vector(f"{place}.point", entry.get("point"), LENGTH, origin)
                return Plane(
                    point=point, normal=self._vector(f"{place}.normal", entry.get("normal"), ONE, (0.0, 0.0, 1.0))
                )
            if name == "sphere":
                entry = self.mapping(place, value, ("center", "radius"))
                center = self._vector(f"{place}.center", entry.get("center"), LENGTH, origin)
                return Sphere(center=center, radius=self._quantity(f"{place}.radius", entry.get("radius"), LENGTH))
            if name == "cylinder":
                entry = self.mapping(place, value, ("point", "axis", "radius"))
                point = self._vector(f"{place}.point", entry.get("point"), LENGTH, origin)
                axis = self._vector(f"{place}.axis", entry.get("axis"), ONE, (0.0, 0.0, 1.0))
                radius = self._quantity(f"{place}.radius", entry.get("radius"), LENGTH)
                return Cylinder(point=point, axis=axis, radius=radius)
        return Plane()
