"""The record of a result: the contents of its report page, as plain data."""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, ClassVar

from tauloop.common.plain import OMITTED, PlainData, in_json
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, Status, plain, write_json
from tauloop.common.shown import ReprMixin
from tauloop.display.key_numbers import key_numbers
from tauloop.display.parts import parts_of
from tauloop.display.pieces import Paragraph, Piece, Table
from tauloop.display.titles import result_title

#: Format of a record; its number changes when the meaning of the contents changes.
RECORD_FORMAT = "tauloop-report/2"
#: The key of a record in a result's JSON file.
KEY = "report"
#: Largest YAML file that is searched for the names of other files, bytes.
MAX_DESCRIPTION_BYTES = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRecord(PlainData, ReprMixin):
    """Contents of a page for one result.

    Attributes:
        kind: name of the class of the result.
        title: heading.
        status: status of the result, ``ok`` or ``doubtful``.
        pieces: contents, in order.
        made: origin of the result, at the end of the page: diagnostics and provenance (command,
            files with their hashes, versions, options).
    """

    json_format: ClassVar[str] = RECORD_FORMAT
    kind: str
    title: str
    status: str
    pieces: tuple[Piece, ...] = field(metadata=OMITTED)
    made: tuple[Piece, ...] = field(metadata=OMITTED)

    @property
    @in_json("pieces")
    def tagged_pieces(self) -> list[dict[str, Any]]:
        """Return the pieces as plain data, each with its kind."""
        return [tagged(item) for item in self.pieces]

    @property
    @in_json("made")
    def tagged_origin(self) -> list[dict[str, Any]]:
        """Return diagnostics and provenance (`made`) as plain data, each piece with its kind."""
        return [tagged(item) for item in self.made]

    def write_json(self, path: str | Path, data: Mapping[str, Any]) -> Path:
        """Write a result's plain data together with the record, for `read_record`.

        Args:
            path: JSON file.
            data: plain data of the result.

        Returns:
            The path.
        """
        return write_json(path, {**data, KEY: self.as_dict()})


def tagged(piece: Piece) -> dict[str, Any]:
    """Return a piece as plain data, with its name under ``piece``."""
    return {"piece": type(piece).__name__.lower(), **plain(piece)}


def page_record(
    result: Any, command: Sequence[str] = (), outputs: Collection[Path] = ()
) -> PageRecord:
    """Return the record of a result.

    Args:
        result: result of any workflow.
        command: words of the command line, ``tauloop`` first; the files that they name are listed
            with their hashes.
        outputs: files that the command writes; they are not listed.
    """
    kind, status = type(result).__name__, getattr(result, "status", Status.OK)
    numbers = key_numbers(result)
    pieces: list[Piece] = [] if numbers is None else [numbers]
    pieces += [piece for part in parts_of(result) for piece in part.pieces(result)]
    diagnostics = getattr(result, "diagnostics", ())
    tables = [_diagnostics(diagnostics)] if diagnostics else []
    origin = _provenance_pieces(result, command, fingerprints(command, outputs))
    return PageRecord(
        kind=kind,
        title=result_title(result),
        status=getattr(status, "value", str(status)),
        pieces=tuple(pieces),
        made=(*tables, *origin),
    )


def _diagnostics(diagnostics: Sequence[Diagnostic]) -> Table:
    cells = tuple(_diagnostic_row(item) for item in diagnostics)
    headers = ("diagnostic", "value", "unit", "pass if", "verdict")
    note = "Each value is computed independently of the algorithm that produced the result."
    numeric = (False, True, False, False, False)
    return Table(title="Diagnostics", heads=headers, cells=cells, numeric=numeric, note=note)


def _diagnostic_row(item: Diagnostic) -> tuple[str, ...]:
    """Return name, value, unit, limits and verdict; a diagnostic without limits has no verdict."""
    value = "not defined" if item.value is None else f"{item.value:.4g}"
    verdict = ""
    if item.limits:
        verdict = "good" if item.is_good else "doubtful"
    return item.name, value, item.unit, item.limits, verdict


def _provenance_pieces(
    result: Any, command: Sequence[str], files: Mapping[str, str]
) -> Iterator[Piece]:
    """Yield the provenance of a result: command, hashes of files, versions, options and inputs."""
    if command:
        yield Paragraph(text=shlex.join(command), tone="code")
    else:
        yield Paragraph(text="Created from Python; no command line reproduces it.")
    if files:
        yield Table(title="Files", heads=("file", "SHA-256"), cells=tuple(files.items()))
    origin = getattr(result, "provenance", None)
    if origin is None:
        return
    versions = tuple(origin.versions.items())
    yield Table(title="Versions", heads=("package", "version"), cells=versions)
    for title, data in (("Options", origin.options), ("Input", origin.inputs)):
        if cells := tuple(_flattened(plain(data))):
            yield Table(title=title, heads=("name", "value"), cells=cells)


def _flattened(data: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield dotted names and texts of nested data, without empty and false values."""
    for name, value in data.items():
        if isinstance(value, Mapping):
            yield from _flattened(value, f"{prefix}{name}.")
        elif value not in (None, "", [], False):
            text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            yield f"{prefix}{name}", text if len(text) <= 120 else f"{text[:117]}..."


def fingerprints(command: Sequence[str], outputs: Collection[Path] = ()) -> dict[str, str]:
    """Return the SHA-256 of all files in a command line, and of the files that YAML files name.

    Args:
        command: words of the command line.
        outputs: files to omit.

    Returns:
        The hashes by path.
    """
    hashes: dict[str, str] = {}
    for word in command:
        option_value = word.partition("=")[2]  # of a word such as --log=run.csv
        for path in (Path(word), Path(option_value)):
            if path not in outputs:
                _fingerprint(path, hashes)
    return hashes


def _fingerprint(path: Path, hashes: dict[str, str]) -> None:
    """Add the hash of a file to `hashes`, and the hashes of the files that a YAML file names."""
    try:
        if str(path) in hashes or not path.is_file():
            return
        with path.open("rb") as stream:
            hashes[str(path)] = hashlib.file_digest(stream, "sha256").hexdigest()
        if (
            path.suffix.lower() in (".yaml", ".yml")
            and path.stat().st_size <= MAX_DESCRIPTION_BYTES
        ):
            description = path.read_text(encoding="utf-8", errors="replace")
            # Words with an extension, such as meshes/link.stl; most others are not files.
            for name in re.findall(r"[\w./-]+\.\w+", description):
                _fingerprint(path.parent / name, hashes)
    except OSError:  # the word does not name a file
        return
