"""A recording described in a YAML file: which files, which columns are what, the sample rate, and the preparation.

format: tauloop-log/1
sample_rate: 5000 Hz
files:
  - path: positions.csv.gz
    columns: {position: {motor_1: Joint_1, motor_2: Joint_2}}
    units: {position: rad}
known_forces: {motor_1: {polynomial: [2 N m, 5 N m/rad], about: 0.1 rad}}   # taken off the forces
preparation: {cutoff: 100 Hz, order: 4, standstill: 1e-6, trim: 200, decimation: 10}   # cutoffs: {motor_2: 40 Hz}
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tauloop.errors import InputError, LogError, Problems
from tauloop.logs.known_forces import KnownForce, Polynomial, Table
from tauloop.logs.preparation import Preparation
from tauloop.logs.reading import LogFile
from tauloop.mechanism.suggestions import suggestion
from tauloop.mechanism.units import ANGLE, FORCE, FREQUENCY, LENGTH, TORQUE, Dimension, UnitError, parse_unit
from tauloop.mechanism.yaml_nodes import Mapping, Node, Scalar, Sequence, parse_nodes, read_text
from tauloop.shown import Shown

FORMAT = "tauloop-log/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording(Shown):
    """Files of one recording, ready for `read_log`.

    Attributes:
        files: the files with their columns.
        sample_rate: Hz; None where a file has a time column.
        preparation: how positions are to be filtered; None where the file does not say.
        known_forces: what forces hold for things that the machine's description has not.
    """

    files: tuple[LogFile, ...]
    sample_rate: float | None
    preparation: Preparation | None
    known_forces: tuple[KnownForce, ...] = ()


def load_recording(path: str | Path, folder: str | Path | None = None) -> Recording:
    """Read the description of a recording.

    Args:
        path: the YAML file.
        folder: where its data files lie; the folder of the YAML file without it.

    Raises:
        LogError: everything that is wrong, with lines.
        DescriptionError: the file is no plain YAML.
    """
    path = Path(path)
    reader = _Reader(str(path), Path(folder) if folder is not None else path.parent)
    recording = reader.recording(parse_nodes(read_text(path), str(path)))
    LogError.raise_if_any(reader.problems)
    return recording


class _Reader:
    """Turns nodes into a recording and keeps all problems."""

    def __init__(self, file: str, folder: Path) -> None:
        self.problems = Problems()
        self._file, self._folder = file, folder

    def _fault(self, where: str, node: Node | None, what: str, remedy: str) -> None:
        line = node.line if node is not None else None
        self.problems.add(where, what, remedy, file=self._file, line=line)

    def _mapping(
        self, where: str, node: Node | None, known: tuple[str, ...], required: tuple[str, ...] = ()
    ) -> Mapping:
        """The node as a mapping with known keys; an empty one where it is something else."""
        if not isinstance(node, Mapping):
            self._fault(where, node, "is not a mapping", f"give keys {', '.join(known) or 'and values'}")
            return Mapping((), node.line if node is not None else 0)
        for entry in node.entries:
            if known and entry.key not in known:
                remedy = suggestion(entry.key, known) or f"keys are {', '.join(known)}"
                self._fault(f"{where}.{entry.key}".lstrip("."), entry.value, "unknown key", remedy)
        for key in required:
            if node.get(key) is None:
                self._fault(f"{where}.{key}".lstrip("."), node, "is missing", "add it")
        return node

    def _text(self, where: str, node: Node | None) -> str:
        if isinstance(node, Scalar) and node.text:
            return node.text
        self._fault(where, node, "is not a text", "give a name")
        return ""

    def _texts(self, where: str, node: Node | None) -> dict[str, str]:
        mapping = self._mapping(where, node, ())
        return {entry.key: self._text(f"{where}.{entry.key}", entry.value) for entry in mapping.entries}

    def _frequency(self, where: str, node: Node) -> float | None:
        text = node.text if isinstance(node, Scalar) else ""
        number, _, name = text.strip().partition(" ")
        try:
            unit = parse_unit(name)
            value = float(number) * unit.scale
        except (UnitError, ValueError):
            self._fault(where, node, f"{text!r} is not a frequency", "such as 100 Hz")
            return None
        if unit.dimension != FREQUENCY or not 0 < value < float("inf"):
            self._fault(where, node, f"{text!r} is not a frequency above zero", "such as 100 Hz")
            return None
        return value

    def _frequencies(self, where: str, node: Node) -> dict[str, float | None]:
        mapping = self._mapping(where, node, ())
        return {entry.key: self._frequency(f"{where}.{entry.key}", entry.value) for entry in mapping.entries}

    def _whole(self, where: str, node: Node) -> int | None:
        text = node.text if isinstance(node, Scalar) else ""
        if text.isascii() and text.isdecimal() and len(text) < 10:
            return int(text)
        self._fault(where, node, f"{text!r} is not a whole number", "such as 4")
        return None

    def _number(self, where: str, node: Node) -> float | None:
        text = node.text if isinstance(node, Scalar) else ""
        try:
            return float(text)
        except ValueError:
            self._fault(where, node, f"{text!r} is not a number", "such as 1e-6")
            return None

    def recording(self, node: Node) -> Recording:
        root = self._mapping(
            "",
            node,
            ("format", "description", "sample_rate", "files", "known_forces", "preparation"),
            ("format", "files"),
        )
        stated = root.get("format")
        if stated is not None and not (isinstance(stated, Scalar) and stated.text == FORMAT):
            self._fault("format", stated, "is not known", f"write {FORMAT}")
        rate = root.get("sample_rate")
        files = root.get("files")
        items = files.items if isinstance(files, Sequence) else ()
        if files is not None and not items:
            self._fault("files", files, "is not a list of files", "begin each file with '- path: ...'")
        preparation, known = root.get("preparation"), root.get("known_forces")
        laws = self._mapping("known_forces", known, ()).entries if known is not None else ()
        return Recording(
            files=tuple(self._log_file(f"files[{i}]", item) for i, item in enumerate(items)),
            sample_rate=self._frequency("sample_rate", rate) if rate is not None else None,
            preparation=self._preparation(preparation) if preparation is not None else None,
            known_forces=tuple(law for entry in laws if (law := self._known_force(entry.key, entry.value)) is not None),
        )

    def _known_force(self, name: str, node: Node) -> KnownForce | None:
        where, before = f"known_forces.{name}", len(self.problems)
        entry = self._mapping(where, node, ("of", "table", "polynomial", "about"))
        of, table, polynomial, about = (entry.get(key) for key in ("of", "table", "polynomial", "about"))
        if (table is None) == (polynomial is None):
            self._fault(where, node, "is no table and no polynomial, or both", "give table or polynomial")
            return None
        channel = name if of is None else self._text(f"{where}.of", of)
        law = self._polynomial(where, polynomial, about) if table is None else self._table(f"{where}.table", table)
        if law is None or len(self.problems) > before:
            return None
        return KnownForce(channel=name, of=channel, law=law[0], units=law[1])

    def _table(self, where: str, node: Node) -> tuple[Table, tuple[str, str]] | None:
        pair = self._mapping(where, node, ("position", "force"), ("position", "force"))
        position, force = (self._quantities(f"{where}.{key}", pair.get(key)) for key in ("position", "force"))
        found = self._units(where, node, [unit for _, unit in force], [unit for _, unit in position])
        if found is None:
            return None
        try:
            table = Table(position=tuple(value for value, _ in position), force=tuple(value for value, _ in force))
        except InputError as error:
            for problem in error.problems:
                self._fault(where, node, problem.what, problem.remedy)
            return None
        return table, found

    def _polynomial(
        self, where: str, node: Node | None, about: Node | None
    ) -> tuple[Polynomial, tuple[str, str]] | None:
        terms = self._quantities(f"{where}.polynomial", node)
        shift = [] if about is None else self._quantities(f"{where}.about", Sequence((about,), about.line))
        found = self._units(where, node, [unit for _, unit in terms], [unit for _, unit in shift], powers=True)
        if found is None or not terms:
            return None
        coefficients = tuple(value for value, _ in terms)
        return Polynomial(coefficients=coefficients, about=shift[0][0] if shift else 0.0), found

    def _quantities(self, where: str, node: Node | None) -> list[tuple[float, Dimension]]:
        """Numbers with units, SI, such as ``[0 mm, 10 mm]``; what is none is noted."""
        if not isinstance(node, Sequence):
            self._fault(where, node, "is no list", "give numbers with units, such as [0 N, 12 N]")
            return []
        found = []
        for item in node.items:
            text = item.text if isinstance(item, Scalar) else ""
            number, _, name = text.strip().partition(" ")
            try:
                unit = parse_unit(name)
                value = float(number) * unit.scale
            except (UnitError, ValueError):
                self._fault(where, item, f"{text!r} is no number with a unit", "such as 12 N")
                continue
            if math.isfinite(value):
                found.append((value, unit.dimension))
            else:
                self._fault(where, item, f"{text!r} is not finite", "such as 12 N")
        return found

    def _units(
        self,
        where: str,
        node: Node | None,
        forces: list[Dimension],
        positions: list[Dimension],
        powers: bool = False,
    ) -> tuple[str, str] | None:
        """Units of position and force that all dimensions suit, "" where several do; None where none do, noted."""
        suits: list[tuple[str, str]] = []
        for way, way_unit in ((LENGTH, "m"), (ANGLE, "rad")):
            for force, force_unit in ((FORCE, "N"), (TORQUE, "N m")):
                wanted = [force] * len(forces)
                for k in range(1, len(wanted) if powers else 0):
                    wanted[k] = wanted[k - 1] / way
                if all(map(Dimension.matches, forces, wanted)) and all(one.matches(way) for one in positions):
                    suits.append((way_unit, force_unit))
        if not suits:
            what = "has units that are not those of a force, or a torque, by a position"
            self._fault(where, node, what, "such as [2 N, 30 N/m] and 0.1 m, or [1 N m, 4 N m/rad] and 0.2 rad")
            return None
        sides = ({pair[side] for pair in suits} for side in (0, 1))
        first, second = (side.pop() if len(side) == 1 else "" for side in sides)
        return first, second

    def _log_file(self, where: str, node: Node) -> LogFile:
        entry = self._mapping(where, node, ("path", "columns", "units", "time"), ("path",))
        columns, units, time = (entry.get(key) for key in ("columns", "units", "time"))
        path = entry.get("path")
        quantities = self._mapping(f"{where}.columns", columns, ()) if columns is not None else None
        return LogFile(
            path=self._folder / (self._text(f"{where}.path", path) if path is not None else ""),
            columns=None
            if quantities is None
            else {q.key: self._texts(f"{where}.columns.{q.key}", q.value) for q in quantities.entries},
            units=self._texts(f"{where}.units", units) if units is not None else {},
            time=self._text(f"{where}.time", time) if time is not None else None,
        )

    def _preparation(self, node: Node) -> Preparation | None:
        entry = self._mapping("preparation", node, tuple(_STEPS))
        values: dict[str, Any] = {"cutoff": None}
        before = len(self.problems)
        for key, read in _STEPS.items():
            if (value := entry.get(key)) is not None:
                values[key] = read(self, f"preparation.{key}", value)
        if len(self.problems) > before:
            return None
        try:
            return Preparation(**values)
        except InputError as error:
            for problem in error.problems:
                place = entry.get(problem.where.partition(".")[0])
                self._fault(f"preparation.{problem.where}", place, problem.what, problem.remedy)
            return None


#: Keys of a preparation and how their values are read.
_STEPS: dict[str, Callable[[_Reader, str, Node], Any]] = {
    "cutoff": _Reader._frequency,
    "cutoffs": _Reader._frequencies,
    "velocity": _Reader._text,
    "velocities": _Reader._texts,
    "order": _Reader._whole,
    "standstill": _Reader._number,
    "trim": _Reader._whole,
    "decimation": _Reader._whole,
}
