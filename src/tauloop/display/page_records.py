"""The record of a result: what a page of a report is made of, as plain data."""

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
from tauloop.display.parts import parts_of
from tauloop.display.pieces import Paragraph, Piece, Table
from tauloop.display.titles import result_title

#: First entry of a record; a change of its meaning changes the number.
FORMAT = "tauloop-report/2"
#: The key of a record in a result's JSON file.
KEY = "report"
#: Largest file that is asked for the names of others in it, bytes.
DESCRIPTION = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRecord(PlainData, ReprMixin):
    """What a page shows of a result.

    Attributes:
        kind: class of the result.
        title: heading.
        status: of the result, ``ok`` or ``doubtful``.
        pieces: what is shown, in order.
        made: how it was made: command, files with their hashes, versions, options.
    """

    json_format: ClassVar[str] = FORMAT
    kind: str
    title: str
    status: str
    pieces: tuple[Piece, ...] = field(metadata=OMITTED)
    made: tuple[Piece, ...] = field(metadata=OMITTED)

    @property
    @in_json("pieces")
    def tagged_pieces(self) -> list[dict[str, Any]]:
        """The pieces as plain data, each with its kind."""
        return [tagged(item) for item in self.pieces]

    @property
    @in_json("made")
    def tagged_origin(self) -> list[dict[str, Any]]:
        """The pieces of `made` as plain data, each with its kind."""
        return [tagged(item) for item in self.made]

    def write_json(self, path: str | Path, data: Mapping[str, Any]) -> Path:
        """Write it next to a result's plain data, from where `read_record` reads it."""
        return write_json(path, {**data, KEY: self.as_dict()})


def tagged(piece: Piece) -> dict[str, Any]:
    """Return a piece as plain data, with its name under ``piece``."""
    return {"piece": type(piece).__name__.lower(), **plain(piece)}


def page_record(
    result: Any, command: Sequence[str] = (), outputs: Collection[Path] = ()
) -> PageRecord:
    """What a page shows of a result.

    Args:
        result: of any workflow.
        command: the words that made it, ``tauloop`` first; the files that they name are listed with
            their hashes.
        outputs: files that it writes, which are no input.
    """
    kind, status = type(result).__name__, getattr(result, "status", Status.OK)
    pieces = [piece for part in parts_of(result) for piece in part.pieces(result)]
    if diagnostics := getattr(result, "diagnostics", ()):
        pieces.append(_diagnostics(diagnostics))
    return PageRecord(
        kind=kind,
        title=result_title(result),
        status=getattr(status, "value", str(status)),
        pieces=tuple(pieces),
        made=tuple(_made(result, command, fingerprints(command, outputs))),
    )


def _diagnostics(diagnostics: Sequence[Diagnostic]) -> Table:
    figures = (
        ("not defined" if e.value is None else f"{e.value:.4g}", e.unit, e.limits, e.is_good)
        for e in diagnostics
    )
    cells = (
        (item.name, value, unit, limits, ("good" if is_good else "doubtful") if limits else "")
        for item, (value, unit, limits, is_good) in zip(diagnostics, figures, strict=True)
    )
    heads = ("figure", "value", "unit", "good where", "verdict")
    note = "Each is computed apart from what it judges."
    numeric = (False, True, False, False, False)
    return Table(title="Diagnostics", heads=heads, cells=tuple(cells), numeric=numeric, note=note)


def _made(result: Any, command: Sequence[str], files: Mapping[str, str]) -> Iterator[Piece]:
    """Yield how the result was made: command, files, versions, options and input."""
    if command:
        yield Paragraph(text=shlex.join(command), tone="code")
    else:
        yield Paragraph(text="Made by a program in Python, which no command repeats.")
    if files:
        yield Table(title="Files", heads=("file", "SHA-256"), cells=tuple(files.items()))
    made = getattr(result, "provenance", None)
    if made is None:
        return
    yield Table(title="Versions", heads=("of", "version"), cells=tuple(made.versions.items()))
    for title, data in (("Options", made.options), ("Input", made.inputs)):
        if cells := tuple(_flat(plain(data))):
            yield Table(title=title, heads=("name", "value"), cells=cells)


def _flat(data: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    """Yield plain data as names and texts; empty and false values are left out, long texts are cut."""
    for name, value in data.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name}.")
        elif value not in (None, "", [], False):
            text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            yield f"{before}{name}", text if len(text) <= 120 else f"{text[:117]}..."


def fingerprints(command: Sequence[str], outputs: Collection[Path] = ()) -> dict[str, str]:
    """Return the SHA-256 of the files that a command's words name, and of those that their descriptions (YAML) name."""
    hashes: dict[str, str] = {}
    for word in command:
        for path in (Path(word), Path(word.partition("=")[2])):
            if path not in outputs:
                _fingerprint(path, hashes)
    return hashes


def _fingerprint(path: Path, hashes: dict[str, str]) -> None:
    try:
        if str(path) in hashes or not path.is_file():
            return
        with path.open("rb") as stream:
            hashes[str(path)] = hashlib.file_digest(stream, "sha256").hexdigest()
        if path.suffix.lower() in (".yaml", ".yml") and path.stat().st_size <= DESCRIPTION:
            for name in re.findall(
                r"[\w./-]+\.\w+", path.read_text(encoding="utf-8", errors="replace")
            ):
                _fingerprint(path.parent / name, hashes)
    except OSError:  # words that name no file, whatever else they are
        return
