"""Description of a log from another program: its columns by quantity and actuator, and their units.

Columns are recognized by their names. Units follow from the headers, from the machine (positions
that it can reach) and from the data (a velocity is the derivative of its position). A unit that
nothing determines is reported as unknown, not guessed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path

import numpy as np
import yaml

from tauloop.common.errors import InputError, LogError, PoseError, Problems
from tauloop.common.keywords import keywords
from tauloop.common.options import Options, option, pairs_reader
from tauloop.common.plain import OMITTED, plain
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, Result, diagnostic, provenance
from tauloop.common.shown import ReprMixin
from tauloop.logs.checks.findings import Findings
from tauloop.logs.files.opening import open_table
from tauloop.logs.files.reading import LogFile, read_log
from tauloop.logs.recording import LOG_FORMAT
from tauloop.logs.tables import LogTable
from tauloop.mechanism.description.units import (
    ANGLE,
    FORCE,
    FREQUENCY,
    LENGTH,
    TIME,
    TORQUE,
    Dimension,
    UnitError,
    parse_unit,
)
from tauloop.model import Model
from tauloop.model.model import MachineSource, modeled

#: Words in the names of columns, by quantity.
QUANTITY_WORDS: Mapping[str, frozenset[str]] = {
    "position": frozenset("position pos q angle theta phi encoder enc".split()),
    "velocity": frozenset("velocity vel qd dq qdot omega speed rate".split()),
    "acceleration": frozenset("acceleration acc accel qdd ddq qddot".split()),
    "force": frozenset("force torque tau effort trq tq moment current cur curr load".split()),
}
#: Words in the names of columns with motor currents. Their unit is declared as a force per ampere.
CURRENT_WORDS = frozenset("current cur curr".split())
TIME_WORDS = frozenset("time t stamp timestamp clock".split())
#: Words in the names of columns with commanded values.
COMMAND_WORDS = frozenset(
    "des desired d cmd command commanded ref reference target setpoint set goal nominal".split()
)
#: Words in the names of columns with measured values.
MEASURED_WORDS = frozenset("act actual meas measured measurement fb feedback".split())
#: Words in the names of columns with other quantities.
OTHER_WORDS = frozenset("err error temp temperature voltage volt status state flag valid".split())
#: Units in other spellings.
_UNIT_SPELLINGS = {
    "nm": "N m",
    "n.m": "N m",
    "n*m": "N m",
    "n·m": "N m",
    "degree": "deg",
    "degrees": "deg",
    "°": "deg",
    "°/s": "deg/s",
    "radian": "rad",
    "radians": "rad",
    "sec": "s",
    "secs": "s",
    "seconds": "s",
    "msec": "ms",
    "usec": "us",
    "µs": "us",
}
#: Lowest plausible sample rate of a log, Hz.
_LEAST_RATE = 5.0
#: Highest plausible sample rate of a log, Hz.
_LARGEST_RATE = 20_000.0
_TIME_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
#: Usual units of positions and velocities, by whether the actuator is rotational.
_POSITION_UNITS = {True: ("rad", "deg"), False: ("m", "mm")}
_VELOCITY_UNITS = {True: ("rad/s", "deg/s", "rpm"), False: ("m/s", "mm/s", "mm/min")}
#: Number of columns that a message lists.
_LISTED = 12
#: Number of samples at which it is tested whether the machine can reach the positions.
_TRIED_SAMPLES = 40
#: A unit is possible if the machine reaches at least this fraction of the positions with it.
_POSSIBLE = 0.9
#: A unit is excluded if the machine reaches at most this fraction of the positions with it.
_EXCLUDED = 0.1
#: Largest relative deviation of a velocity from the derivative of its position.
_DERIVATIVE_DEVIATION = 0.1
_NAME_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_LEADING_NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[-+]?\d+)?\s", re.IGNORECASE)
_NAMED_COLUMN = re.compile(r"(?P<quantity>[a-z]+)\.(?P<channel>.+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDescriptionOptions(Options):
    """Options of the description of a log.

    Attributes:
        columns: columns of the file by quantity and actuator, such as position.motor_1=Joint_1, if
            their names do not state quantity and actuator.
        units: units by quantity or column, if nothing else determines them, such as
            force='N m',time=ms; a unit may contain a factor: current='0.0523 N m'.
        time: name of the time column.
        sample_rate: sample rate of a log without a time column.
        folder: folder in which the description will be saved. Paths of the log are relative to it;
            by default it is the folder of the log.

    Examples:
        >>> import tauloop as tl
        >>> dict(tl.LogDescriptionOptions(units={"force": "N m"}).units)
        {'force': 'N m'}
    """

    columns: Mapping[str, str] = option(
        factory=dict, read=pairs_reader("a column"), repeated=True, metavar="NAME=COLUMN"
    )
    units: Mapping[str, str] = option(
        factory=dict, read=pairs_reader("a unit"), repeated=True, metavar="NAME=UNIT"
    )
    time: str = option("", metavar="COLUMN")
    sample_rate: float | None = option(None, above=0.0, unit=FREQUENCY)
    folder: Path | None = option(None, flag="")


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedColumn(ReprMixin):
    """The meaning of a column.

    Attributes:
        column: name of the column in the file.
        quantity: position, velocity, acceleration, force or time.
        channel: name of the actuator; "" for the time.
        unit: unit; "" if nothing determines it.
        basis: source of the unit: "option", "header", "name", "reach", "derivative", "rate" or
            "unknown".
    """

    column: str
    quantity: str
    channel: str
    unit: str
    basis: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDescription(Result):
    """The description of a log as a YAML file, and how the unit of each column was determined.

    Attributes:
        columns: columns that the description uses.
        unused: columns of the files that the description does not use.
        unknown_units: possible units of each quantity whose unit nothing determines.
        currents: columns of forces whose names indicate currents. Their unit must be the force per
            ampere, which only the user can know.
        problems: problems that occur when the log is read with the description.
        text: content of the YAML file.
    """

    needs_forces = False
    columns: tuple[DescribedColumn, ...]
    unused: tuple[str, ...]
    unknown_units: Mapping[str, tuple[str, ...]]
    currents: tuple[str, ...]
    problems: tuple[str, ...]
    text: str = field(metadata=OMITTED)


@keywords(LogDescriptionOptions)
def describe_log(
    machine: MachineSource,
    logs: str | Path | Sequence[str | Path],
    options: LogDescriptionOptions | None = None,
) -> LogDescription:
    """Describe a log from another program, as a YAML file that `identify` and other functions read.

    Quantities and actuators are recognized by the columns' names: position, pos, q, angle, torque,
    tau, effort, ..., and the names or numbers of the machine's actuators. Measured columns are
    preferred to commanded columns. A unit follows from the options, from the header (``q1 [deg]``,
    ``q1_deg``), from the positions that the machine can reach, or from the derivative of the
    positions. If none of these determines a unit, it is unknown and the result is doubtful.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        logs: the files of one recording, merged row by row.
        options: columns and units that the files do not state.

    Returns:
        The description, with diagnostics of missing columns and units.

    Raises:
        InputError: options name columns or quantities that do not exist.
        LogError: a file cannot be read.

    Examples:
        >>> import tauloop as tl
        >>> import numpy as np
        >>> samples = [(0.01 * i, 60 + i, 0.1) for i in range(20)]
        >>> np.savetxt("log.csv", samples, delimiter=",", header="time,q1_deg,tau1", comments="")
        >>> described = tl.describe_log("four_bar", "log.csv", units={"force": "N m"})
        >>> [(item.column, item.quantity, item.unit) for item in described.columns]
        [('time', 'time', 's'), ('q1_deg', 'position', 'deg'), ('tau1', 'force', 'N m')]
    """
    options = options or LogDescriptionOptions()
    model = modeled(machine)
    paths = [Path(logs)] if isinstance(logs, str | Path) else [Path(item) for item in logs]
    if not paths:
        raise InputError.of("logs", "no file was given", "give at least one file of a log")
    tables = [open_table(path) for path in paths]
    return _Describer(model, paths, tables, options).result()


@dataclass(frozen=True, slots=True)
class _LogColumn:
    """A column of one of the files, with the words of its name."""

    file: int
    index: int
    name: str
    unit: str
    words: tuple[str, ...]

    @property
    def is_measured(self) -> bool:
        return not set(self.words) & COMMAND_WORDS

    @property
    def is_other(self) -> bool:
        return bool(set(self.words) & OTHER_WORDS)


def words_of(name: str) -> tuple[str, ...]:
    """Return the words and numbers in a column's name, in lower case."""
    return tuple(word.lower() for word in _NAME_WORD.findall(name))


class _Describer:
    """Recognizes columns and units, and writes the description."""

    def __init__(
        self,
        model: Model,
        paths: Sequence[Path],
        tables: Sequence[LogTable],
        options: LogDescriptionOptions,
    ) -> None:
        self._model = model
        self._paths = paths
        self._tables = tables
        self._options = options
        #: Whether each actuator is rotational, by name.
        self._is_rotational = {
            item.name: unit == "rad"
            for item, unit in zip(model.mechanism.actuators, model.actuator_units, strict=True)
        }
        self._columns = [
            _LogColumn(file, index, name, unit, words_of(name))
            for file, table in enumerate(tables)
            for index, (name, unit) in enumerate(zip(table.names, table.units, strict=True))
        ]
        #: Columns by quantity and channel.
        self._chosen: dict[tuple[str, str], _LogColumn] = {}
        self._values: dict[tuple[int, int], np.ndarray | None] = {}
        self._check_options()

    def result(self) -> LogDescription:
        """Return the description."""
        self._choose_stated()
        self._choose_time()
        for quantity in QUANTITY_WORDS:
            self._choose(quantity)
        units = self._units()
        described = tuple(
            DescribedColumn(
                column=column.name,
                quantity=quantity,
                channel=channel,
                unit=units[quantity, channel][0],
                basis=units[quantity, channel][1],
            )
            for (quantity, channel), column in self._chosen.items()
        )
        unknown = {
            quantity: self._candidates(quantity, channel)
            for (quantity, channel), (unit, _) in units.items()
            if not unit
        }
        text = self._text(units)
        is_complete = not unknown and not self._missing()
        problems = self._problems_of_reading(units) if is_complete else ()
        chosen = set(self._chosen.values())
        return LogDescription(
            columns=described,
            unused=tuple(column.name for column in self._columns if column not in chosen),
            unknown_units=unknown,
            currents=tuple(self._currents()),
            problems=problems,
            text=text,
            diagnostics=self._diagnostics(unknown, problems),
            provenance=provenance(
                options=plain(self._options),
                inputs={
                    "machine": self._model.mechanism.name,
                    "logs": [str(p) for p in self._paths],
                },
                packages=("numpy",),
            ),
        )

    # Columns

    def _check_options(self) -> None:
        problems = Problems()
        names = [column.name for column in self._columns]
        for key, column in self._options.columns.items():
            match = _NAMED_COLUMN.fullmatch(key)
            if match is None or match["quantity"] not in QUANTITY_WORDS:
                what = f"{key!r} is not of the form QUANTITY.ACTUATOR"
                problems.add(
                    "columns",
                    what,
                    f"write it as position.{next(iter(self._is_rotational), 'motor')}",
                )
            elif match["channel"] not in self._is_rotational:
                what = f"{match['channel']!r} is not an actuator of this machine"
                problems.add("columns", what, _listing(list(self._is_rotational)))
            if column not in names:
                problems.add("columns", f"there is no column {column!r}", _listing(names))
        if self._options.time and self._options.time not in names:
            what = f"there is no column {self._options.time!r}"
            problems.add("time", what, _listing(names))
        for key, unit in self._options.units.items():
            if key not in names and key not in (*QUANTITY_WORDS, "time"):
                what = f"{key!r} is neither a quantity nor a column"
                problems.add("units", what, _listing([*QUANTITY_WORDS, "time", *names]))
            if not _spelled(unit):
                problems.add("units", f"{unit!r} is not a unit", "give a unit such as 'N m' or deg")
        InputError.raise_if_any(problems)

    def _choose_stated(self) -> None:
        """Choose the columns that the options name."""
        by_name = {column.name: column for column in self._columns}
        for key, name in self._options.columns.items():
            quantity, _, channel = key.partition(".")
            self._chosen[quantity, channel] = by_name[name]
        if self._options.time:
            self._chosen["time", ""] = by_name[self._options.time]

    def _choose_time(self) -> None:
        """Choose the first column with a word for time in its name and increasing values."""
        if ("time", "") in self._chosen or self._options.sample_rate is not None:
            return
        for column in self._columns:
            if not set(column.words) & TIME_WORDS or set(column.words) & _quantity_words():
                continue
            values = self._read(column)
            if values is not None and len(values) > 1 and float(np.median(np.diff(values))) > 0:
                self._chosen["time", ""] = column
                return

    def _choose(self, quantity: str) -> None:
        """Choose the columns of a quantity.

        Columns with similar names form groups. The group that covers most actuators is chosen;
        groups of measured columns are preferred.
        """
        wanted = [name for name in self._is_rotational if (quantity, name) not in self._chosen]
        used = set(self._chosen.values())
        candidates = [
            column
            for column in self._columns
            if column not in used and not column.is_other and self._has_quantity(column, quantity)
        ]
        best: dict[str, _LogColumn] = {}
        for is_measured in (True, False):
            groups: dict[tuple[str, ...], list[_LogColumn]] = {}
            for column in candidates:
                if column.is_measured is is_measured:
                    groups.setdefault(self._stem(column), []).append(column)
            ordered = sorted(groups.values(), key=lambda group: not _is_marked_measured(group[0]))
            for group in ordered:
                matched = self._by_actuator(group, wanted)
                if len(matched) > len(best):
                    best = matched
            if best:
                break
        for channel in wanted:
            if channel in best:
                self._chosen[quantity, channel] = best[channel]

    def _has_quantity(self, column: _LogColumn, quantity: str) -> bool:
        """Return whether a column's name, or its file's name, contains a word of a quantity."""
        words = set(column.words) - set(_flattened(self._actuator_words().values()))
        named_quantities = {name for name, known in QUANTITY_WORDS.items() if words & known}
        if named_quantities:
            return named_quantities == {quantity} or (
                quantity in named_quantities and self._first_quantity(column) == quantity
            )
        stem = Path(self._tables[column.file].file).name.partition(".")[0]
        file_words = set(words_of(stem))
        file_quantities = {name for name, known in QUANTITY_WORDS.items() if file_words & known}
        return file_quantities == {quantity} and not set(column.words) & TIME_WORDS

    def _first_quantity(self, column: _LogColumn) -> str:
        """Return the quantity of the first word of a column's name that belongs to a quantity."""
        for word in column.words:
            for name, known in QUANTITY_WORDS.items():
                if word in known:
                    return name
        return ""

    def _actuator_words(self) -> dict[str, tuple[str, ...]]:
        """Return the words of each actuator's name."""
        return {name: words_of(name) for name in self._is_rotational}

    def _stem(self, column: _LogColumn) -> tuple[str, ...]:
        """Return the file and the words of a column's name without numbers, actuators and units.

        Columns with the same result belong to one group.
        """
        left_out = set(_flattened(self._actuator_words().values()))
        words = [
            word
            for word in column.words
            if not (word.isdigit() or word in left_out or _unit_text(word))
        ]
        return (str(column.file), *words)

    def _by_actuator(
        self, group: Sequence[_LogColumn], wanted: Sequence[str]
    ) -> dict[str, _LogColumn]:
        """Return the columns of a group by actuator.

        Actuators are assigned by their names, by numbers in the columns' names, or in order.
        """
        named: dict[str, _LogColumn] = {}
        words = self._actuator_words()
        for name in wanted:
            matches = [column for column in group if _contains(column.words, words[name])]
            if len(matches) == 1:
                named[name] = matches[0]
        if len(named) == len(wanted):
            return named
        actuators = list(self._is_rotational)
        numbers = [_last_number(column.words) for column in group]
        if len(group) == len(actuators) and None not in numbers:
            in_order = sorted(zip(numbers, group, strict=True), key=lambda pair: pair[0] or 0)
            first = in_order[0][0] or 0
            if [number for number, _ in in_order] == list(range(first, first + len(group))):
                columns = [column for _, column in in_order]
                return {
                    name: column
                    for name, column in zip(actuators, columns, strict=True)
                    if name in wanted
                }
        if not named and len(group) == len(wanted) == 1:
            return {wanted[0]: group[0]}
        return named

    def _read(self, column: _LogColumn) -> np.ndarray | None:
        """Return the values of a column (N,); None if it contains text or gaps."""
        key = column.file, column.index
        if key not in self._values:
            findings = Findings()
            try:
                values = self._tables[column.file].numbers([column.index], findings)[:, 0]
            except LogError:
                values = np.empty(0)
            is_sound = not findings.total and len(values) > 0
            self._values[key] = np.asarray(values, dtype=float) if is_sound else None
        return self._values[key]

    # Units

    def _units(self) -> dict[tuple[str, str], tuple[str, str]]:
        """Return unit and basis of each chosen column; the unit is "" if nothing determines it."""
        units = {
            key: self._written_unit(key[0], key[1], column) for key, column in self._chosen.items()
        }
        for key in list(units):
            if key[0] == "time" and not units[key][0]:
                units[key] = self._unit_by_rate(self._chosen[key])
        positions = [key for key in units if key[0] == "position" and not units[key][0]]
        if positions:
            unit = self._unit_by_reach(units)
            for key in positions:
                name = unit.get(key[1], "")
                units[key] = (name, "reach" if name else "unknown")
        for key in units:
            if key[0] == "velocity" and not units[key][0]:
                units[key] = self._unit_by_derivative(key[1], units)
        return units

    def _candidates(self, quantity: str, channel: str) -> tuple[str, ...]:
        """Return the usual units of a quantity."""
        if quantity == "time":
            return tuple(_TIME_UNITS)
        is_angular = self._is_rotational[channel]
        if quantity == "position":
            return _POSITION_UNITS[is_angular]
        if quantity == "velocity":
            return _VELOCITY_UNITS[is_angular]
        if quantity == "acceleration":
            return ("rad/s^2", "deg/s^2") if is_angular else ("m/s^2", "mm/s^2")
        return ("N m",) if is_angular else ("N",)

    def _dimension(self, quantity: str, channel: str) -> Dimension:
        """Return the dimension of a quantity of an actuator."""
        if quantity == "time":
            return TIME
        is_angular = self._is_rotational[channel]
        if quantity == "force":
            return TORQUE if is_angular else FORCE
        dimension = ANGLE if is_angular else LENGTH
        order = {"position": 0, "velocity": 1, "acceleration": 2}[quantity]
        for _ in range(order):
            dimension = dimension / TIME
        return dimension

    def _written_unit(self, quantity: str, channel: str, column: _LogColumn) -> tuple[str, str]:
        """Return the unit from the options, the header or the column's name, and its source."""
        stated = self._options.units
        for key in (column.name, quantity):
            if key in stated:
                return _spelled(stated[key]), "option"
        dimension = self._dimension(quantity, channel)
        if column.unit:
            unit = _unit_text(column.unit)
            if unit and parse_unit(unit).dimension.matches(dimension):
                return unit, "header"
        parts = [part for part in re.split(r"[_\s.()]+", column.name) if part]
        for count in (2, 1):
            ending = parts[-count:]
            is_unit = len(parts) > count and all(_unit_text(part) for part in ending)
            unit = _unit_text("/".join(ending)) if is_unit else ""
            if unit and parse_unit(unit).dimension.matches(dimension):
                return unit, "name"
        return "", "unknown"

    def _unit_by_rate(self, column: _LogColumn) -> tuple[str, str]:
        """Return unit and basis of a time column, if only one unit gives a plausible rate."""
        values = self._read(column)
        if values is None or len(values) < 2:
            return "", "unknown"
        step = float(np.median(np.diff(values)))
        is_count = step == 1.0 and bool((values == np.round(values)).all())
        plausible = [
            unit
            for unit, scale in _TIME_UNITS.items()
            if step > 0 and _LEAST_RATE <= 1.0 / (step * scale) <= _LARGEST_RATE
        ]
        return (plausible[0], "rate") if len(plausible) == 1 and not is_count else ("", "unknown")

    def _unit_by_reach(self, units: Mapping[tuple[str, str], tuple[str, str]]) -> dict[str, str]:
        """Return units of positions by actuator if the machine reaches them only in these units."""
        names = [name for name in self._is_rotational if ("position", name) in self._chosen]
        columns = [self._read(self._chosen["position", name]) for name in names]
        needed = self._model.actuators.ports.position.columns
        if any(column is None for column in columns) or not set(needed) <= set(names):
            return {}
        count = min(len(column) for column in columns if column is not None)
        rows = np.unique(np.linspace(0, count - 1, _TRIED_SAMPLES).astype(int))
        reached: dict[int, float] = {}
        for choice in range(2):
            scales = []
            for name in names:
                written = units["position", name][0]
                unit = written or _POSITION_UNITS[self._is_rotational[name]][choice]
                scales.append(_scale(unit))
            samples = np.stack(
                [
                    column[rows] * scale
                    for column, scale in zip(columns, scales, strict=True)
                    if column is not None
                ],
                axis=1,
            )
            reached[choice] = self._fraction_reached(samples, names)
        possible = [choice for choice, fraction in reached.items() if fraction >= _POSSIBLE]
        excluded = [choice for choice, fraction in reached.items() if fraction <= _EXCLUDED]
        if len(possible) != 1 or len(excluded) != 1:
            return {}
        return {name: _POSITION_UNITS[self._is_rotational[name]][possible[0]] for name in names}

    def _fraction_reached(self, samples: np.ndarray, names: Sequence[str]) -> float:
        """Return the fraction of positions that the machine reaches within its stops."""
        port_names = self._model.actuators.ports.position.columns
        indices = [list(names).index(name) for name in port_names]
        count = 0
        for sample in samples:
            try:
                state = self._model.forward_kinematics(sample[indices])
            except PoseError:
                continue
            count += not self._model.limits.beyond(np.asarray(state.q).reshape(-1))
        return count / len(samples)

    def _unit_by_derivative(
        self, channel: str, units: Mapping[tuple[str, str], tuple[str, str]]
    ) -> tuple[str, str]:
        """Return unit and basis of a velocity, from the derivative of its position."""
        position = self._chosen.get(("position", channel))
        time = self._stamps(units)
        velocity = self._read(self._chosen["velocity", channel])
        unit = units.get(("position", channel), ("", ""))[0]
        values = None if position is None else self._read(position)
        if values is None or velocity is None or time is None or not unit:
            return "", "unknown"
        if len({len(values), len(velocity), len(time)}) > 1 or not np.any(velocity):
            return "", "unknown"
        with np.errstate(all="ignore"):
            derivative = np.gradient(values * _scale(unit), time)
        derivative = np.where(np.isfinite(derivative), derivative, 0.0)
        factor = float(derivative @ velocity / (velocity @ velocity))
        for candidate in _VELOCITY_UNITS[self._is_rotational[channel]]:
            scale = _scale(candidate)
            for sign, text in ((1.0, candidate), (-1.0, f"-1 {candidate}")):
                if abs(factor - sign * scale) <= _DERIVATIVE_DEVIATION * scale:
                    return text, "derivative"
        return "", "unknown"

    def _stamps(self, units: Mapping[tuple[str, str], tuple[str, str]]) -> np.ndarray | None:
        """Return the times of the samples, s; None if they are not known."""
        if self._options.sample_rate is not None:
            count = max((len(v) for v in self._values.values() if v is not None), default=0)
            return np.arange(count) / self._options.sample_rate
        unit = units.get(("time", ""), ("", ""))[0]
        values = self._read(self._chosen["time", ""]) if unit else None
        return None if values is None else values * _scale(unit)

    # The description

    def _currents(self) -> list[str]:
        """Return the columns of forces whose names indicate currents."""
        return [
            column.name
            for (quantity, _), column in self._chosen.items()
            if quantity == "force" and set(column.words) & CURRENT_WORDS
        ]

    def _missing(self) -> list[str]:
        """Return the names of required channels for which there is no column."""
        missing = [
            f"{quantity}.{name}"
            for quantity in ("position", "force")
            for name in self._is_rotational
            if (quantity, name) not in self._chosen
        ]
        if ("time", "") not in self._chosen and self._options.sample_rate is None:
            missing.append("time")
        return missing

    def _files(self, units: Mapping[tuple[str, str], tuple[str, str]]) -> list[LogFile]:
        """Return the files with their columns, for `read_log`."""
        files = []
        for file, path in enumerate(self._paths):
            columns: dict[str, dict[str, str]] = {}
            named: dict[str, str] = {}
            time = None
            for (quantity, channel), column in self._chosen.items():
                if column.file != file:
                    continue
                if quantity == "time":
                    time = column.name
                else:
                    columns.setdefault(quantity, {})[channel] = column.name
                if units[quantity, channel][0]:
                    named[column.name] = units[quantity, channel][0]
            if columns or time:
                files.append(
                    LogFile(path=path, columns=columns, units=_grouped(named, columns), time=time)
                )
        return files

    def _text(self, units: Mapping[tuple[str, str], tuple[str, str]]) -> str:
        """Return the YAML file."""
        folder = self._options.folder
        content: dict[str, object] = {"format": LOG_FORMAT}
        content["description"] = f"A log of {self._model.mechanism.name}"
        if self._options.sample_rate is not None:
            content["sample_rate"] = f"{self._options.sample_rate:g} Hz"
        files = []
        for file in self._files(units):
            path = Path(file.path)
            shown = str(path) if folder is None else os.path.relpath(path, folder)
            entry: dict[str, object] = {"path": shown}
            if file.time:
                entry["time"] = file.time
            entry["columns"] = {name: dict(group) for name, group in (file.columns or {}).items()}
            if file.units:
                entry["units"] = dict(file.units)
            files.append(entry)
        content["files"] = files
        text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=100)
        missing = self._missing()
        unknown = sorted({key[0] for key, (unit, _) in units.items() if not unit})
        lines = [f"# State the unit of {name} in `units`." for name in unknown]
        lines += [f"# No column was found for {name}." for name in missing]
        return "\n".join([*lines, text])

    def _problems_of_reading(
        self, units: Mapping[tuple[str, str], tuple[str, str]]
    ) -> tuple[str, ...]:
        """Return the problems that occur when the log is read with this description."""
        try:
            read_log(*self._files(units), sample_rate=self._options.sample_rate)
        except LogError as error:
            return tuple(str(problem) for problem in error.problems)
        return ()

    def _diagnostics(
        self, unknown: Mapping[str, tuple[str, ...]], problems: Sequence[str]
    ) -> tuple[Diagnostic, ...]:
        missing = self._missing()
        names = ", ".join(missing)
        options = [f"--units {name}='{units[0]}'" for name, units in unknown.items()]
        advice = f"give the units, for example {' '.join(options)}"
        currents = self._currents()
        if currents and "force" in unknown:
            unit = unknown["force"][0]
            advice = (
                f"{currents[0]} is a current: give the actuator's force per ampere, such as "
                f"--units force='0.05 {unit}' for 0.05 {unit}/A"
            )
            others = [option for option in options if not option.startswith("--units force=")]
            advice += f"; {' '.join(others)}" if others else ""
        commanded = [
            f"{quantity}.{channel}={column.name}"
            for (quantity, channel), column in self._chosen.items()
            if not column.is_measured and f"{quantity}.{channel}" not in self._options.columns
        ]
        return (
            diagnostic(
                "quantities without a column",
                len(missing),
                at_most=0.0,
                advice=f"specify the columns of {names} with --columns, --time or --sample-rate",
            ),
            diagnostic(
                "quantities without a unit",
                len(unknown),
                at_most=0.0,
                advice=advice,
            ),
            diagnostic(
                "columns of commands",
                len(commanded),
                at_most=0.0,
                advice="give the measured columns or, to use the commanded values as measurements, pass "
                f"--columns {','.join(commanded)}",
            ),
            diagnostic(
                "problems of the log",
                len(problems),
                at_most=0.0,
                advice="fix each listed problem with the options of the command that reads the log",
            ),
        )


def _grouped(units: Mapping[str, str], columns: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Return units by quantity, or by column for quantities whose columns have different units."""
    grouped = dict(units)
    for quantity, group in columns.items():
        group_units = {units.get(name, "") for name in group.values()}
        unit = next(iter(group_units))
        if len(group_units) == 1 and unit and quantity not in units:
            for name in group.values():
                grouped.pop(name, None)
            grouped[quantity] = unit
    return grouped


def _unit_text(text: str) -> str:
    """Return a unit in Tauloop's spelling; "" if the text is not a unit or only a number."""
    if not re.search(r"[^\W\d]|°", text):
        return ""
    spelled = _UNIT_SPELLINGS.get(text.strip().lower(), text.strip())
    try:
        parse_unit(spelled)
    except UnitError:
        return ""
    return spelled


def _spelled(unit: str) -> str:
    """Return a unit, with its factor if any, in Tauloop's spelling; "" if it is not a unit."""
    unit = unit.strip()
    match = _LEADING_NUMBER.match(unit)
    factor = match[0] if match is not None else ""
    name = _unit_text(unit[len(factor) :])
    return f"{factor.strip()} {name}".strip() if name else ""


def _scale(unit: str) -> float:
    """Return the size of a unit, which may have a factor, in SI units."""
    match = _LEADING_NUMBER.match(unit)
    if match is None:
        return parse_unit(unit).scale
    return float(match[0]) * parse_unit(unit[match.end() :]).scale


def _flattened(items: Iterable[Iterable[str]]) -> list[str]:
    return [item for group in items for item in group]


def _quantity_words() -> frozenset[str]:
    return frozenset().union(*QUANTITY_WORDS.values())


def _is_marked_measured(column: _LogColumn) -> bool:
    """Return whether a column's name contains a word for measured values."""
    return bool(set(column.words) & MEASURED_WORDS)


def _contains(words: Sequence[str], part: Sequence[str]) -> bool:
    """Return whether `words` contain `part` as consecutive words in the same order."""
    length = len(part)
    return length > 0 and any(
        tuple(words[i : i + length]) == tuple(part) for i in range(len(words) - length + 1)
    )


def _last_number(words: Sequence[str]) -> int | None:
    numbers = [int(word) for word in words if word.isdigit()]
    return numbers[-1] if numbers else None


def _listing(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_LISTED])
    return f"choose among {shown}" + (", ..." if len(names) > _LISTED else "")
