"""Read measurements from a table with a header, or from a YAML file that describes tables.

format: tauloop-measurements/1
series:
  - path: bed.csv
    header: [a, b, c]                   # names of the columns, if the file has no header
    kind: contact                       # one of INSTRUMENT_KINDS
    name: bed
    encoders: {motor1: a, motor2: b, motor3: c}   # default: columns encoder.motor1, ...
    readings: {gap: d}                  # default: columns measured.gap, ...; contacts: zero gaps
    units: {encoders: 0.009375 mm}      # of the groups or of single columns
    loads: {fz: pull}                   # default: columns load.fx ... load.mz
    temperatures: {rod1: t1}            # default: columns temperature.PART, K above the reference
    temperature_noise: 0.1 K            # thermometers are exact without it
    reading_number: part                # for readings of several poses: column that numbers the
                                        # readings; rows with equal numbers form one reading
    noise: 0.04 mm
parameters: [tower*.end_stop]
tolerances: {length: 5 mm, angle: 0.5 deg}
bounds: {tower1.arm: 200 mm to 230 mm, tower*.end_stop: -5 mm to}
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from tauloop.calibration.measurements.conditions import (
    ConditionColumns,
    read_conditions,
    standard_loads,
    standard_temperatures,
)
from tauloop.calibration.measurements.firmware_logs import (
    CONFIGURATION_SUFFIX,
    LOG_SUFFIXES,
    read_firmware,
)
from tauloop.calibration.measurements.instruments import (
    INSTRUMENTS,
    Instrument,
    Position,
    required_fields,
)
from tauloop.calibration.measurements.measurement_grammar import INSTRUMENT, MEASUREMENTS
from tauloop.calibration.measurements.measurement_set import MeasurementSet
from tauloop.calibration.measurements.series import Series
from tauloop.calibration.measurements.surfaces import SURFACES, Plane
from tauloop.calibration.problem.unknowns import DIMENSIONS, Bounds, Tolerances, bounds_of
from tauloop.common.counts import counted
from tauloop.common.errors import InputError, LogError, Problems
from tauloop.logs.checks.findings import Findings
from tauloop.logs.checks.scales import find_scale
from tauloop.logs.files.opening import TableFrame, is_frame, open_table
from tauloop.logs.tables import CsvTable, LogTable
from tauloop.mechanism.description.cursor import Cursor
from tauloop.mechanism.description.documents import contents, is_whole, open_document
from tauloop.mechanism.description.units import TEMPERATURE, UnitError, named, quantity
from tauloop.mechanism.description.values import ValueReader
from tauloop.mechanism.model import Mechanism
from tauloop.mechanism.suggestions import suggestion, unknown_names

#: Column with the number of the reading, in tables of readings that belong to several poses.
READING_NUMBER_COLUMN = "reading"
#: Examples of standard deviations by SI unit, for messages.
_NOISE_EXAMPLES = {"m": "0.02 mm", "rad": "0.1 mrad"}
#: Messages name the lines of tables with fewer rows than this.
MAX_LABELED_ROWS = 1000


def read_measurements(
    path: str | Path | TableFrame,
    mechanism: Mechanism,
    *,
    kind: str = "position",
    noise: float | str | Sequence[float | str] | None = None,
    folder: str | Path | None = None,
    temperature_noise: float | str = 0.0,
) -> MeasurementSet:
    """Read measurements of a machine.

    Args:
        path: a YAML file as above; or a CSV, Parquet or MAT file with columns ``encoder.ACTUATOR``
            and ``measured.COLUMN`` and units in the header (``encoder.motor1 [mm]``, ``measured.x
            [mm]``), and of loads and temperatures (see `measurements.conditions`); or a Klipper
            configuration with ``[delta_calibrate]``, or a probing log (see
            `measurements.firmware_logs`). Also a `pandas.DataFrame` with the columns of a CSV file.
        mechanism: the machine with the actuators of the encoders.
        kind: kind of measurement in a table, an instrument that needs no attributes (such
            as position, pose, between, contact or inclinometer).
        noise: standard deviation of the readings in a table, SI, or a text such as ``0.02 mm``; for
            a pose one for each unit, such as ``0.02 mm,0.1 mrad``.
        folder: folder of the files that a YAML file refers to; by default that of the YAML file.
        temperature_noise: standard deviation of the temperatures in a table, K, or a text.

    Returns:
        The series of the file or table, with the unknowns and tolerances that it proposes.

    Raises:
        InputError, LogError: all problems, with files and lines.
        DescriptionError: the file is not plain YAML.
    """
    suffix, file = "", type(path).__name__
    if not is_frame(path):
        path = Path(path)
        suffix, file = path.suffix.lower(), str(path)
        if suffix in (".yaml", ".yml"):
            return _file(
                open_document(path, MEASUREMENTS),
                Path(folder) if folder is not None else path.parent,
                mechanism,
            )
    if noise is None:
        remedy = "give the standard deviation of the readings, such as '0.02 mm'"
        raise InputError.of("noise", "is not given", remedy, file=file)
    if not is_frame(path) and suffix in (CONFIGURATION_SUFFIX, *LOG_SUFFIXES):
        (deviation,) = _standard_deviations(noise, ("m",))
        return read_firmware(path, mechanism, deviation)
    table_kinds = [
        name for name, instrument in INSTRUMENTS.items() if not required_fields(instrument)
    ]
    if kind not in table_kinds:
        remedy = f"use one of {', '.join(table_kinds)}; describe others in a YAML file"
        what = f"measurements of kind {kind!r} cannot be read from a bare table"
        raise InputError.of(file, what, remedy)
    instrument = INSTRUMENTS[kind](name=INSTRUMENTS[kind].usual_name)
    deviations = _standard_deviations(noise, [unit for _, unit in instrument.errors])
    table = open_table(path)
    encoders, columns = _standard_encoders(mechanism), _standard_readings(table, instrument)
    if isinstance(instrument, Position):
        columns = {
            letter: name for letter, name in columns.items() if name in table.names
        } or columns
        instrument = Position(name="tracker", components="".join(columns))
    series = _series(
        table,
        instrument,
        encoders,
        columns,
        {},
        deviations,
        mechanism,
        ConditionColumns(
            loads=standard_loads(table),
            temperatures=standard_temperatures(table),
            noise=_temperature_noise(temperature_noise),
        ),
        _standard_number(table, instrument),
    )
    return MeasurementSet(series=(series,))


def _standard_deviations(
    noise: str | float | Sequence[str | float], units: Sequence[str]
) -> tuple[float, ...]:
    """Return one standard deviation, SI, or one for each error.

    Args:
        noise: numbers, or texts with units; a text may contain several, separated by commas.
        units: SI unit of each error.

    Raises:
        InputError: a value or its unit is wrong, or the number of values is.
    """
    values = noise.split(",") if isinstance(noise, str) else noise
    values = values if isinstance(values, Sequence) else (values,)
    different_units = tuple(dict.fromkeys(units))
    if len(values) == len(different_units) > 1:
        values = [values[different_units.index(unit)] for unit in units]
    if len(values) == 1 == len(different_units):
        values, units = values[:1], different_units
    if len(values) != len(units):
        what = (
            f"is {counted(len(values), 'value')}, but the {counted(len(units), 'error')} have "
            f"the units {', '.join(different_units)}"
        )
        example = ",".join(_NOISE_EXAMPLES.get(unit, f"0.1 {unit}") for unit in different_units)
        raise InputError.of("noise", what, f"give one value for each unit, such as '{example}'")
    return tuple(
        quantity("noise", value, DIMENSIONS[unit]) if isinstance(value, str) else float(value)
        for value, unit in zip(values, units, strict=True)
    )


def _temperature_noise(noise: float | str) -> float:
    """Return a standard deviation of temperatures, K, from a number or a text with a unit."""
    return quantity("temperature_noise", noise, TEMPERATURE) if isinstance(noise, str) else noise


def _standard_encoders(mechanism: Mechanism) -> dict[str, str]:
    """Return the columns of the encoders in a table with standard headers."""
    return {actuator.name: f"encoder.{actuator.name}" for actuator in mechanism.actuators}


def _standard_readings(table: LogTable, instrument: Instrument) -> dict[str, str]:
    """Return the columns of the readings in a table with standard headers.

    The result is empty if the table omits readings that have a default, such as gaps of contacts.
    """
    columns = {name: f"measured.{name}" for name, _ in instrument.row_columns}
    has_readings = any(column in table.names for column in columns.values())
    return {} if instrument.default_reading is not None and not has_readings else columns


def _standard_number(table: LogTable, instrument: Instrument) -> str:
    """Return the column that numbers the readings of several poses; empty if there is none."""
    has_numbers = instrument.poses > 1 and READING_NUMBER_COLUMN in table.names
    return READING_NUMBER_COLUMN if has_numbers else ""


def read_instrument(path: str | Path) -> Instrument:
    """Read an instrument from a YAML file with the keys of a series (kind, center, surface, ...).

    Returns:
        The instrument.

    Raises:
        InputError: all problems, with lines.
        DescriptionError: the file is not plain YAML.
    """
    root = open_document(path, INSTRUMENT)
    instrument = instrument_of(root, contents(root, ValueReader(None)) or {})
    root.collector.raise_any(InputError)
    if instrument is None:
        raise AssertionError("an instrument that cannot be read has a recorded problem")
    return instrument


def _series(
    table: LogTable,
    instrument: Instrument,
    encoders: dict[str, str],
    readings: dict[str, str],
    units: dict[str, str],
    noise: tuple[float, ...],
    mechanism: Mechanism,
    conditions: ConditionColumns,
    reading_number: str = "",
) -> Series:
    """Return the series in a table.

    Args:
        table: the table.
        instrument: the instrument.
        encoders: column of each actuator.
        readings: column of each reading; empty to use the default readings.
        units: units by group or column.
        noise: standard deviations of the errors, SI.
        mechanism: the machine.
        conditions: columns of loads and temperatures.
        reading_number: column that numbers the readings of several poses; empty if there is none.

    Raises:
        LogError: columns are missing or numbers are invalid; lists all problems.
        InputError: the rows of a reading do not match its number of poses.
    """
    findings = Findings()
    actuators = [actuator.name for actuator in mechanism.actuators]
    for problem in unknown_names(encoders, actuators, "no such actuator", "encoders.{}"):
        findings.add("actuators", problem.where, problem.what, problem.remedy, table.file)
    default = instrument.default_reading if not readings else None
    measured_columns = []
    if default is None:
        measured_columns = [name for name, _ in instrument.row_columns]
    series_columns = _SeriesColumns(table, instrument, units, findings)
    series_columns.add_all("encoders", actuators, encoders)
    series_columns.add_all("readings", measured_columns, readings)
    if reading_number:
        series_columns.add("reading_number", "column", reading_number)
    findings.raise_if_any()
    values = table.numbers(series_columns.indices, findings) * np.array(series_columns.factors)
    pose_conditions = read_conditions(table, len(values), conditions, units, findings)
    findings.raise_if_any()
    n_u = len(actuators)
    positions = values[:, :n_u]
    if default is None:
        measured_values = values[:, n_u : n_u + len(measured_columns)]
    else:
        measured_values = np.full((len(values), 1), default)
    has_labels = len(values) < MAX_LABELED_ROWS
    lines = [table.line(row) for row in range(len(values))] if has_labels else []
    labels = tuple(_pose_label(i, line) for i, line in enumerate(lines))
    if instrument.poses != 1:
        rows = _rows_of_readings(
            table, instrument, values[:, -1] if reading_number else None, len(values)
        )
        instrument = instrument.at_poses(rows.shape[1])
        pose_conditions = pose_conditions.rows(rows.ravel())
        positions = positions[rows.ravel()]
        measured_values = instrument.readings_from_rows(measured_values[rows])
        if lines:
            labels = tuple(_reading_label(i, lines, poses) for i, poses in enumerate(rows))
    return Series(
        instrument=instrument,
        encoders=positions,
        readings=measured_values,
        noise=noise,
        labels=labels,
        loads=pose_conditions.loads,
        thermometers=pose_conditions.thermometers,
        temperatures=pose_conditions.temperatures,
        temperature_noise=conditions.noise,
    )


class _SeriesColumns:
    """The columns of a table that a series needs, with the factors of their units to SI."""

    def __init__(
        self, table: LogTable, instrument: Instrument, units: dict[str, str], findings: Findings
    ) -> None:
        """Start without columns; problems are added to the findings."""
        self._table, self._instrument = table, instrument
        self._units, self._findings = units, findings
        self.indices: list[int] = []
        self.factors: list[float] = []

    def add_all(self, group: str, names: Iterable[str], columns: dict[str, str]) -> None:
        """Add the columns of the names of a group."""
        for name in names:
            if name in columns:
                self.add(group, name, columns[name])
            else:
                remedy = f"map {name} to a column"
                self._findings.add(
                    "missing", group, f"no column for {name}", remedy, self._table.file
                )

    def add(self, group: str, name: str, column: str) -> None:
        """Add a column by its name in the table."""
        table = self._table
        if column not in table.names:
            remedy = suggestion(column, table.names) or f"use one of {', '.join(table.names)}"
            where, what = f"{group}.{name}", f"no column {column!r}"
            self._findings.add("missing", where, what, remedy, table.file)
            return
        index = table.names.index(column)
        text = self._units.get(column, self._units.get(group, table.units[index]))
        has_no_unit = (
            group == "reading_number" or dict(self._instrument.row_columns).get(name) == "1"
        )
        if not text and has_no_unit:
            text = "1"
        scale = find_scale("position", text, table, index, self._findings)
        self.indices.append(index)
        self.factors.append(scale.factor if scale is not None else 1.0)


def _pose_label(pose: int, line: int | None) -> str:
    """Return the name of a pose, with its line in the table."""
    return f"pose {pose + 1}" + (f" (line {line})" if line is not None else "")


def _reading_label(reading: int, lines: list[int | None], rows: np.ndarray) -> str:
    """Return the name of a reading of several poses, with the lines of its rows in the table."""
    row_lines = [str(lines[row]) for row in rows if lines[row] is not None]
    return f"reading {reading + 1}" + (f" (lines {', '.join(row_lines)})" if row_lines else "")


def _rows_of_readings(
    table: LogTable, instrument: Instrument, reading_numbers: np.ndarray | None, count: int
) -> np.ndarray:
    """Return the rows (N, poses) of every reading.

    Args:
        table: the table.
        instrument: the instrument.
        reading_numbers: number of the reading of each row (count,); None if the rows of each
            reading are consecutive.
        count: number of rows.

    Raises:
        InputError: the rows of a reading do not match its number of poses.
    """
    accepts_any_count = instrument.at_poses(instrument.poses + 1) != instrument
    if reading_numbers is None:
        n_poses = count if accepts_any_count else instrument.poses
        if n_poses < 2 or count % n_poses:
            what = (
                f"has {counted(count, 'row')}, which is not a multiple of the {max(n_poses, 2)} poses of "
                "each reading"
            )
            remedy = (
                "give consecutive rows for the poses of each reading, or number the readings in a "
                f"column {READING_NUMBER_COLUMN!r}"
            )
            raise InputError.of("rows", what, remedy, file=table.file)
        return np.arange(count).reshape(-1, n_poses)
    _, first, group = np.unique(reading_numbers, return_index=True, return_inverse=True)
    pose_counts = np.bincount(group)
    n_poses = int(pose_counts[group[0]]) if accepts_any_count else instrument.poses
    problems = Problems()
    for k in np.flatnonzero((pose_counts != n_poses) | (pose_counts < 2)):
        line = table.line(int(first[k]))
        where = f"reading {reading_numbers[first[k]]:g}" + (
            f" (line {line})" if line is not None else ""
        )
        if accepts_any_count:
            remedy = (
                "give all readings of a series the same number of touches, at least 2, or split them "
                "into two series"
            )
        else:
            remedy = f"give each reading {counted(n_poses, 'row')} with its number"
        problems.add(
            where, f"has {pose_counts[k]} of {counted(n_poses, 'pose')}", remedy, file=table.file
        )
    InputError.raise_if_any(problems)
    order = np.argsort(first[group], kind="stable")
    return order.reshape(-1, n_poses)


def _file(root: Cursor, folder: Path, mechanism: Mechanism) -> MeasurementSet:
    """Return the measurement set of a YAML file.

    Raises:
        InputError: all problems, with lines.
    """
    values = ValueReader(None)
    content = contents(root, values) or {}
    series = [_series_of(cursor, values, folder, mechanism) for cursor in root.items_of("series")]
    tolerances = dict(content.get("tolerances") or {})
    if "named" in tolerances:
        tolerances["named"] = {
            name: amount.value for name, amount in tolerances["named"].items() if amount is not None
        }
    if "priors" in tolerances:
        tolerances["priors"] = _as_tuple(tolerances["priors"])
    bounds: dict[str, Bounds] = {}
    for name, cursor in root.entries_of("bounds"):
        try:
            bounds[name] = bounds_of(cursor.text or "", " to ")
        except UnitError as error:
            cursor.problem(error.what, f"{error.remedy}; omit one side if it has no bound")
    root.collector.raise_any(InputError)
    noise = content.get("encoder_noise")
    return MeasurementSet(
        series=tuple(item for item in series if item is not None),
        parameters=_as_tuple(content.get("parameters", ())),
        tolerances=Tolerances(**tolerances) if "tolerances" in content else None,
        encoder_noise=noise.value if noise is not None else 0.0,
        bounds=bounds,
    )


def _as_tuple(words: str | tuple[str, ...]) -> tuple[str, ...]:
    """Return one text or several texts as a tuple."""
    return (words,) if isinstance(words, str) else words


def _series_of(
    cursor: Cursor, values: ValueReader, folder: Path, mechanism: Mechanism
) -> Series | None:
    """Return one series; None if it has problems, which are recorded."""
    earlier_problems = cursor.collector.count
    entry = contents(cursor, values) or {}
    instrument = instrument_of(cursor, entry)
    noise = _noise(cursor, entry.get("noise"), instrument)
    if instrument is not None and instrument.poses == 1 and "reading_number" in entry:
        cursor.problem(
            f"is not a key of measurements of kind {instrument.kind}", "remove it", "reading_number"
        )
    if (
        cursor.collector.count > earlier_problems
        or instrument is None
        or not entry.get("path")
        or not noise
    ):
        return None
    try:
        path = folder / entry["path"]
        if "header" in entry:
            table: LogTable = CsvTable(path, _as_tuple(entry["header"]))
        else:
            table = open_table(path)
        encoders = entry.get("encoders", _standard_encoders(mechanism))
        readings = entry.get("readings", _standard_readings(table, instrument))
        reading_number = entry.get("reading_number", _standard_number(table, instrument))
        return _series(
            table,
            instrument,
            encoders,
            readings,
            entry.get("units", {}),
            noise,
            mechanism,
            ConditionColumns(
                loads=entry.get("loads", standard_loads(table)),
                temperatures=entry.get("temperatures", standard_temperatures(table)),
                noise=entry.get("temperature_noise") or 0.0,
            ),
            reading_number,
        )
    except (LogError, InputError) as error:
        cursor.collector.include(error.problems)
        return None


def _noise(cursor: Cursor, noise: Any, instrument: Instrument | None) -> tuple[float, ...]:
    """Return the given standard deviations of the errors, SI; empty if they have problems."""
    amounts = noise if isinstance(noise, tuple) else (noise,)
    if instrument is None or not is_whole(amounts):
        return ()
    units = [unit for _, unit in instrument.errors]
    if len(amounts) == 1 and len(set(units)) > 1:
        cursor.problem(
            f"is one value, but the errors have different units ({' and '.join(sorted(set(units)))})",
            "give a list",
            "noise",
        )
        return ()
    for amount, unit in zip(amounts, units, strict=False):
        if amount.value and not amount.dimension.suits(DIMENSIONS[unit]):
            what = f"is {named(amount.dimension)} where {named(DIMENSIONS[unit])} is needed"
            cursor.problem(what, "check the unit", "noise")
    return tuple(amount.value for amount in amounts)


def instrument_of(cursor: Cursor, entry: dict[str, Any]) -> Instrument | None:
    """Return the instrument of a series or of a separate file.

    It is None if the instrument has problems, which are recorded.
    """
    kind = INSTRUMENTS.get(entry.get("kind", ""))
    if kind is None or not is_whole(entry):
        return None
    docs = {item.name: item.doc for item in INSTRUMENT.fields}
    attributes = {item.name for item in fields(kind)}
    for key in docs.keys() & entry.keys() - attributes - {"kind"}:
        cursor.problem(f"is not a key of measurements of kind {kind.kind}", "remove it", key)
    missing = [key for key in required_fields(kind) if key not in entry]
    for key in missing:
        cursor.problem("is missing", f"add it ({docs[key]})", key)
    if missing:
        return None
    values = {key: entry[key] for key in docs.keys() & entry.keys() & attributes}
    if "surface" in values:
        surfaces = [SURFACES[name](**numbers) for name, numbers in values["surface"].items()]
        values["surface"] = surfaces[0] if surfaces else Plane()
    return kind(**{"name": kind.kind, **values})
