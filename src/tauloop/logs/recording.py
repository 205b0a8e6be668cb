"""Description of a recording in a YAML file: files, columns, sample rate and preparation.

format: tauloop-log/1
sample_rate: 5000 Hz
files:
  - path: positions.csv.gz
    columns: {position: {motor_1: Joint_1, motor_2: Joint_2}}
    units: {position: rad}
known_forces: {motor_1: {polynomial: [2 N m, 5 N m/rad], about: 0.1 rad}}   # subtracted
# Single channels may have other cutoffs: `cutoffs: {motor_2: 40 Hz}`.
preparation: {cutoff: 100 Hz, order: 4, standstill: 1e-6, trim: 200, decimation: 10}
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tauloop.common.errors import InputError, LogError
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.logs.checks.known_forces import ForceTable, KnownForce, Polynomial
from tauloop.logs.checks.time_base import INTERPOLATIONS
from tauloop.logs.files.reading import LogFile, read_log
from tauloop.logs.preparation import Preparation
from tauloop.mechanism.description.cursor import (
    Choice,
    Cursor,
    ListOf,
    MapOf,
    Shape,
    Text,
    Value,
    Whole,
    field,
    need,
)
from tauloop.mechanism.description.documents import Amount, contents, is_whole, open_document
from tauloop.mechanism.description.units import ANGLE, FORCE, FREQUENCY, LENGTH, ONE, TORQUE
from tauloop.mechanism.description.values import ValueReader

if TYPE_CHECKING:
    import xarray as xr

LOG_FORMAT = "tauloop-log/1"
_FREQUENCY_VALUE = Value(linear=FREQUENCY, sign="positive")
_TEXT = Text(is_needed=True)
_COUNT = Whole(least=0, most=999_999_999)
_CHANNEL_TEXTS = MapOf(item=_TEXT, key="channel", is_known=True)
_AMOUNTS = ListOf(item=Value(linear=None))
LOG_FILE = Shape(
    name="log file",
    doc="A file of a recording.",
    fields=(
        need("path", _TEXT, "file or bag folder, relative to this file"),
        field(
            "columns",
            MapOf(item=_CHANNEL_TEXTS, key="quantity", is_known=True),
            "column of each channel, by quantity; if absent, columns have standard names",
        ),
        field("units", _CHANNEL_TEXTS, "units by quantity or column, if the header has none"),
        field("time", _TEXT, "time column"),
        field(
            "between",
            Choice(options=tuple(INTERPOLATIONS)),
            "for a bag: interpolation of other topics between their messages",
        ),
    ),
)
TABLE = Shape(
    name="table",
    doc="Forces at positions, with linear interpolation.",
    fields=(
        need("position", _AMOUNTS, "increasing positions"),
        need("force", _AMOUNTS, "force at each position"),
    ),
)
KNOWN_FORCE = Shape(
    name="known force",
    doc="A force that depends on position and is subtracted: a table, or a polynomial of position - about.",
    fields=(
        field("of", _TEXT, "channel whose position is used; the force's own channel if absent"),
        field("table", TABLE, "forces at positions"),
        field("polynomial", _AMOUNTS, "coefficients, the constant first"),
        field(
            "about",
            Value(linear=None),
            "position that is subtracted in the polynomial; zero if absent",
        ),
    ),
)
PREPARATION = Shape(
    name="preparation",
    doc="Computation of velocities and accelerations from positions (`Preparation`).",
    fields=(
        field("cutoff", _FREQUENCY_VALUE, "cutoff frequency of the filter of positions"),
        field(
            "cutoffs",
            MapOf(item=_FREQUENCY_VALUE, key="channel", is_known=True),
            "cutoff frequencies of single channels",
        ),
        field("velocity", _TEXT, "source of velocities"),
        field("velocities", _CHANNEL_TEXTS, "sources of velocities of single channels"),
        field("order", _COUNT, "order of the filter"),
        field(
            "standstill",
            Value(linear=ONE),
            "fraction of the largest speed below which a channel counts as at rest",
        ),
        field("trim", _COUNT, "number of samples removed at each end"),
        field("decimation", _COUNT, "decimation factor"),
    ),
)
RECORDING = Shape(
    name="recording",
    doc="A description of measured files.",
    fields=(
        need("format", Choice(options=(LOG_FORMAT,)), "format and version"),
        field("description", Text(), "what was measured"),
        field("sample_rate", _FREQUENCY_VALUE, "sampling rate of files without a time column"),
        need("files", ListOf(item=LOG_FILE), "the files"),
        field(
            "known_forces",
            MapOf(item=KNOWN_FORCE, key="channel", is_known=True),
            "forces that the machine's description does not contain, by channel",
        ),
        field("preparation", PREPARATION, "preparation of the log"),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording(ReprMixin):
    """Files of one recording, for `read_log`.

    Attributes:
        files: the files with their columns.
        sample_rate: sampling rate, Hz; None if a file has a time column.
        preparation: preparation of the log; None if the file specifies none.
        known_forces: known forces of elements that the machine's description does not contain.
    """

    files: tuple[LogFile, ...]
    sample_rate: float | None
    preparation: Preparation | None
    known_forces: tuple[KnownForce, ...] = ()


def load_recording(path: str | Path, folder: str | Path | None = None) -> Recording:
    """Read the description of a recording.

    Args:
        path: the YAML file.
        folder: folder of the data files; by default that of the YAML file.

    Returns:
        The description, with the paths of its files.

    Raises:
        LogError: all problems, with lines.
        DescriptionError: the file is not plain YAML.
    """
    root, values = open_document(path, RECORDING), ValueReader(None)
    folder = Path(folder) if folder is not None else Path(path).parent
    content = contents(root, values) or {}
    preparation = _preparation(root.get("preparation"), content.get("preparation"))
    laws = root.get("known_forces")
    known_forces: list[KnownForce | None] = []
    if laws is not None:
        known_forces = [_known_force(name, cursor, values) for name, cursor in laws.entries()]
    root.collector.raise_any(LogError)
    return Recording(
        files=tuple(
            LogFile(**entry | {"path": folder / entry["path"]}) for entry in content["files"]
        ),
        sample_rate=content.get("sample_rate"),
        preparation=preparation,
        known_forces=tuple(force for force in known_forces if force is not None),
    )


def read_recorded(path: str | Path) -> xr.Dataset:
    """Return the log of a table, or of a YAML file that describes a recording, as measured.

    Time steps may differ, as in a simulation with variable steps.

    Raises:
        LogError: all problems, with lines.
        DescriptionError: the file is not plain YAML.
    """
    if Path(path).suffix.lower() not in (".yaml", ".yml"):
        return read_log(path, uneven=True)
    recording = load_recording(path)
    return read_log(*recording.files, sample_rate=recording.sample_rate, uneven=True)


def _preparation(place: Cursor | None, content: dict[str, Any] | None) -> Preparation | None:
    if place is None or content is None or not is_whole(content):
        return None
    try:
        return Preparation(**{"cutoff": None, **content})
    except InputError as error:
        for problem in error.problems:
            place.problem(problem.what, problem.remedy, problem.where)
        return None


def _known_force(name: str, place: Cursor, values: ValueReader) -> KnownForce | None:
    """Return the force law of one channel, or None after adding a problem."""
    content = contents(place, values) or {}
    if ("table" in content) == ("polynomial" in content):
        place.problem("needs exactly one of table and polynomial", "give `table` or `polynomial`")
        return None
    table, about = content.get("table") or {}, content.get("about")
    forces: tuple[Amount, ...] = content.get("polynomial") or table.get("force") or ()
    positions: tuple[Amount, ...] = table.get("position") or (() if about is None else (about,))
    if not forces or None in forces or None in positions or ("about" in content and about is None):
        return None
    units = _units(place, forces, positions, powers=not table)
    if units is None:
        return None
    law: ForceTable | Polynomial
    if not table:
        origin = about.value if about is not None else 0.0
        law = Polynomial(coefficients=tuple(term.value for term in forces), about=origin)
    else:
        try:
            law = ForceTable(
                position=tuple(x.value for x in positions), force=tuple(f.value for f in forces)
            )
        except InputError as error:
            for problem in error.problems:
                place.problem(problem.what, problem.remedy, "table")
            return None
    return KnownForce(channel=name, of=content.get("of", name), law=law, units=units)


def _units(
    place: Cursor, forces: Sequence[Amount], positions: Sequence[Amount], powers: bool
) -> tuple[str, str] | None:
    """Return the units of position and force that match all dimensions, or None if invalid.

    A unit is "" if several units match.

    Args:
        place: location of the law, for the problem.
        forces: forces of a table, or coefficients of a polynomial.
        positions: positions.
        powers: whether `forces` are coefficients of a polynomial.
    """
    matches: list[tuple[str, str]] = []
    for coordinate, coordinate_unit in ((LENGTH, "m"), (ANGLE, "rad")):
        for force, force_unit in ((FORCE, "N"), (TORQUE, "N m")):
            wanted = [force] * len(forces)
            if powers:
                for k in range(1, len(wanted)):
                    wanted[k] = wanted[k - 1] / coordinate
            is_force = all(
                unit.dimension.matches(other) for unit, other in zip(forces, wanted, strict=True)
            )
            if is_force and all(unit.dimension.matches(coordinate) for unit in positions):
                matches.append((coordinate_unit, force_unit))
    if not matches:
        what = "the units are not those of a force or torque as a function of position"
        place.problem(
            what, "write, for example, [2 N, 30 N/m] and 0.1 m, or [1 N m, 4 N m/rad] and 0.2 rad"
        )
        return None
    position_units = {position_unit for position_unit, _ in matches}
    force_units = {force_unit for _, force_unit in matches}
    return (
        position_units.pop() if len(position_units) == 1 else "",
        force_units.pop() if len(force_units) == 1 else "",
    )
