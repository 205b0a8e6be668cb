"""Records from JSON files, whoever wrote these: all that is wrong with one is said at once."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import MISSING, fields, replace
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from tauloop.common.errors import InputError, Problem, Problems
from tauloop.common.files import unreadable
from tauloop.display.page_records import FORMAT, KEY, PageRecord
from tauloop.display.pieces import (
    LOOKS,
    PIECES,
    TONES,
    MotionScene,
    Piece,
    Plot,
    PlotTrace,
    Rows,
    Words,
)
from tauloop.mechanism.suggestions import suggestion

#: Largest file that is read, bytes: a hundred times that of a long log's identification.
LARGEST = 100_000_000
#: Problems that are listed of one file.
MOST = 20


def read_record(path: str | Path) -> PageRecord:
    """The record in a result's JSON file.

    Raises:
        InputError: no such file, no JSON, no record in it, or one that is damaged: everything that
            is wrong with it.
    """
    path = Path(path)
    if wrong := unreadable(path):
        raise InputError.of(str(path), *wrong)
    if path.stat().st_size > LARGEST:
        raise InputError.of(
            str(path), f"has more than {LARGEST / 1e6:.0f} MB", "give the file of one result"
        )
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError, OSError) as error:
        what = f"is no JSON: {str(error) or 'nested too deep'}"
        raise InputError.of(
            str(path), what, "give a JSON file that a command wrote with --out"
        ) from error
    content = data.get(KEY) if isinstance(data, dict) else None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        what = f"has no record of the format {FORMAT}"
        if isinstance(content, dict):
            what += f": it says {content.get('format')!r}"
        remedy = "write the result with --out FILE.json (what --json prints has figures alone), by this version of Tauloop"
        raise InputError.of(str(path), what, remedy)
    problems = Problems()
    record = PageRecord(
        kind=_read(str, content.get("kind"), "kind", problems),
        title=_read(str, content.get("title"), "title", problems),
        status=_read(str, content.get("status"), "status", problems),
        pieces=pieces_of(content.get("pieces"), "pieces", problems),
        made=pieces_of(content.get("made"), "made", problems),
    )
    if more := max(len(problems) - MOST, 0):
        problems[MOST:] = [Problem(KEY, f"has {more} more faults")]
    remedy = "write the result again, with --out FILE.json"
    InputError.raise_if_any(replace(problem, file=str(path), remedy=remedy) for problem in problems)
    return record


def pieces_of(value: object, where: str, problems: Problems) -> tuple[Piece, ...]:
    """Pieces of a page from plain data; what is wrong is put to the problems."""
    if not isinstance(value, list):
        problems.add(where, "is no list")
        return ()
    pieces = []
    for i, item in enumerate(value):
        place = f"{where}[{i}]"
        kind = item.get("piece") if isinstance(item, dict) else None
        if not isinstance(kind, str) or kind not in PIECES:
            hint = suggestion(str(kind), PIECES) if isinstance(kind, str) else ""
            problems.add(place, f"is no piece of a page: {kind!r} {hint}".rstrip())
            continue
        before = len(problems)
        piece = _built(
            PIECES[kind],
            {name: part for name, part in item.items() if name != "piece"},
            place,
            problems,
        )
        if len(problems) == before:
            _check(piece, place, problems)
            pieces.append(piece)
    return tuple(pieces)


def _check(piece: Any, where: str, problems: Problems) -> None:
    """What fits its types, and yet does not fit together."""
    if isinstance(piece, Words) and piece.tone not in TONES:
        problems.add(f"{where}.tone", f"{piece.tone!r} is none of {', '.join(TONES)}")
    if isinstance(piece, Rows):
        widths = {len(row) for row in piece.cells} | (
            {len(piece.numeric)} if piece.numeric else set()
        )
        if widths - {len(piece.heads)}:
            problems.add(
                where, f"has rows of {sorted(widths)} cells below {len(piece.heads)} heads"
            )
    for i, trace in enumerate(getattr(piece, "traces", ())):
        sizes = {len(trace.x), len(trace.y)} | {
            len(part) for part in (trace.deviation, trace.labels) if part
        }
        if len(sizes) > 1:
            problems.add(f"{where}.traces[{i}]", f"has columns of {sorted(sizes)} values")
        if trace.look not in LOOKS:
            problems.add(
                f"{where}.traces[{i}].look", f"{trace.look!r} is none of {', '.join(LOOKS)}"
            )
    if isinstance(piece, Plot):
        wide, (rows, columns) = (
            {len(row) for row in piece.grid},
            (len(piece.grid_y), len(piece.grid_x)),
        )
        if (wide or rows or columns) and (len(piece.grid) != rows or wide != {columns}):
            what = f"has {len(piece.grid)} rows of {sorted(wide)} values over axes of {rows} and {columns}"
            problems.add(f"{where}.grid", what)
        if len(piece.y_range) not in (0, 2):
            problems.add(f"{where}.y_range", f"has {len(piece.y_range)} numbers, not two")
    if isinstance(piece, MotionScene) and (
        len(piece.q) != len(piece.time) or len(set(map(len, piece.q))) > 1
    ):
        counts = sorted(set(map(len, piece.q)))
        problems.add(
            where, f"has {len(piece.q)} states of {counts} coordinates at {len(piece.time)} times"
        )


def _built(kind: Any, data: object, where: str, problems: Problems) -> Any:
    """An object of a dataclass from a mapping; None where something is wrong, which is said."""
    if not isinstance(data, Mapping):
        problems.add(where, f"is {_named(data)}, no mapping")
        return None
    before, hints, values = len(problems), get_type_hints(kind), {}
    for name in data.keys() - hints.keys():
        problems.add(f"{where}.{name}", f"is unknown {suggestion(name, hints)}".rstrip())
    for item in fields(kind):
        if item.name in data:
            values[item.name] = _read(
                hints[item.name], data[item.name], f"{where}.{item.name}", problems
            )
        elif item.default is MISSING:
            problems.add(f"{where}.{item.name}", "is missing")
    return kind(**values) if len(problems) == before else None


def _read(hint: Any, value: object, where: str, problems: Problems) -> Any:
    """A value of a type: text, flag, number, several of these, or objects of dataclasses."""
    if get_origin(hint) is tuple:
        inner = get_args(hint)[0]
        if not isinstance(value, list):
            problems.add(where, f"is {_named(value)}, no list")
            return ()
        return tuple(
            item if _fits(inner, item) else _read(inner, item, f"{where}[{i}]", problems)
            for i, item in enumerate(value)
        )
    if hint is PlotTrace:
        return _built(hint, value, where, problems)
    if not _fits(hint, value):
        problems.add(where, f"is {_named(value)}, which it cannot be")
    return value


def _fits(hint: Any, value: object) -> bool:
    """Whether a value is a text, a flag, or a finite number, as the type says."""
    if isinstance(hint, UnionType):
        return any(_fits(kind, value) for kind in get_args(hint))
    if hint is float:
        return (
            isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        )
    return isinstance(value, hint) if hint in (str, bool, type(None)) else False


def _named(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
