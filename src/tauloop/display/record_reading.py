"""Reading of records from untrusted JSON files; all problems of a file are reported at once."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import MISSING, fields, replace
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from tauloop.common.counts import counted
from tauloop.common.errors import InputError, Problem, Problems
from tauloop.common.files import unreadable
from tauloop.display.page_records import KEY, RECORD_FORMAT, PageRecord
from tauloop.display.pieces import (
    PIECES,
    TONES,
    TRACE_STYLES,
    KeyNumbers,
    MotionScene,
    Paragraph,
    Piece,
    Plot,
    PlotClass,
    PlotSpan,
    PlotTrace,
    Table,
)
from tauloop.mechanism.suggestions import suggestion

#: Largest file that is read, bytes: about 100 times the record of a long log's identification.
MAX_RECORD_BYTES = 100_000_000
#: Maximum number of problems of a file that are listed.
MAX_PROBLEMS = 20
#: The format of earlier versions, and its names of pieces and fields with the current names.
OLD_FORMAT = "tauloop-report/1"
OLD_NAMES: Mapping[str, str] = {"words": "paragraph", "rows": "table", "look": "style"}
#: Pattern of a color, such as #16324f.
COLOR = re.compile("#[0-9a-f]{6}")


def read_record(path: str | Path) -> PageRecord:
    """Return the record in a result's JSON file.

    Raises:
        InputError: the file is missing, is not JSON, contains no record, or contains a damaged
            record; the message lists its problems.
    """
    path = Path(path)
    if wrong := unreadable(path):
        raise InputError.of(str(path), *wrong)
    if path.stat().st_size > MAX_RECORD_BYTES:
        raise InputError.of(
            str(path),
            f"is larger than {MAX_RECORD_BYTES / 1e6:.0f} MB",
            "give the file of one result",
        )
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError, OSError) as error:
        what = f"is not valid JSON: {str(error) or 'nested too deep'}"
        raise InputError.of(
            str(path), what, "give a JSON file that a command wrote with --out"
        ) from error
    content = data.get(KEY) if isinstance(data, dict) else None
    if isinstance(content, dict) and content.get("format") == OLD_FORMAT:
        content = _with_current_names(content)
    if not isinstance(content, dict) or content.get("format") != RECORD_FORMAT:
        what = f"has no record of the format {RECORD_FORMAT}"
        if isinstance(content, dict):
            what += f", but {content.get('format')!r}"
        remedy = (
            "write the result with this version of Tauloop and --out FILE.json (the output of --json "
            "has no record)"
        )
        raise InputError.of(str(path), what, remedy)
    problems = Problems()
    record = PageRecord(
        kind=_read(str, content.get("kind"), "kind", problems),
        title=_read(str, content.get("title"), "title", problems),
        status=_read(str, content.get("status"), "status", problems),
        pieces=pieces_of(content.get("pieces"), "pieces", problems),
        made=pieces_of(content.get("made"), "made", problems),
    )
    if excess := max(len(problems) - MAX_PROBLEMS, 0):
        problems[MAX_PROBLEMS:] = [Problem(KEY, f"has {counted(excess, 'more fault')}")]
    remedy = "write the result again, with --out FILE.json"
    InputError.raise_if_any(replace(problem, file=str(path), remedy=remedy) for problem in problems)
    return record


def _with_current_names(content: dict[str, Any]) -> dict[str, Any]:
    """Return a record of an earlier version with the current names of pieces and fields."""
    renamed: dict[str, Any] = dict(content, format=RECORD_FORMAT)
    for key in ("pieces", "made"):
        if isinstance(content.get(key), list):
            renamed[key] = [_piece_with_current_names(item) for item in content[key]]
    return renamed


def _piece_with_current_names(item: object) -> object:
    if not isinstance(item, dict):
        return item
    piece = dict(item)
    if isinstance(kind := piece.get("piece"), str):
        piece["piece"] = OLD_NAMES.get(kind, kind)
    if isinstance(traces := piece.get("traces"), list):
        piece["traces"] = [_trace_with_current_names(trace) for trace in traces]
    return piece


def _trace_with_current_names(trace: object) -> object:
    if not isinstance(trace, dict):
        return trace
    return {OLD_NAMES.get(name, name): value for name, value in trace.items()}


def pieces_of(value: object, where: str, problems: Problems) -> tuple[Piece, ...]:
    """Return the pieces of a page from plain data, and add faults to `problems`."""
    if not isinstance(value, list):
        problems.add(where, "is not a list")
        return ()
    pieces = []
    for i, item in enumerate(value):
        location = f"{where}[{i}]"
        kind = item.get("piece") if isinstance(item, dict) else None
        if not isinstance(kind, str) or kind not in PIECES:
            hint = suggestion(str(kind), PIECES) if isinstance(kind, str) else ""
            problems.add(location, f"is not a piece of a page: {kind!r} {hint}".rstrip())
            continue
        count = len(problems)
        attributes = {name: content for name, content in item.items() if name != "piece"}
        piece = _read_object(PIECES[kind], attributes, location, problems)
        if len(problems) == count:
            _check(piece, location, problems)
            pieces.append(piece)
    return tuple(pieces)


def _check(piece: Any, where: str, problems: Problems) -> None:
    """Add problems for values of the right types that are inconsistent with each other."""
    if isinstance(piece, Paragraph) and piece.tone not in TONES:
        problems.add(f"{where}.tone", f"{piece.tone!r} is not one of {', '.join(TONES)}")
    if isinstance(piece, KeyNumbers) and {len(row) for row in piece.rows} - {3}:
        problems.add(f"{where}.rows", "has rows that are not name, value and remark")
    if isinstance(piece, Table):
        widths = {len(row) for row in piece.cells}
        if piece.numeric:
            widths.add(len(piece.numeric))
        if widths - {len(piece.heads)}:
            problems.add(where, f"has {len(piece.heads)} heads, and rows of {sorted(widths)} cells")
    for i, trace in enumerate(getattr(piece, "traces", ())):
        optional = [trace.deviation, trace.labels, trace.base]
        lengths = {len(trace.x), len(trace.y)} | {len(values) for values in optional if values}
        if len(lengths) > 1:
            problems.add(f"{where}.traces[{i}]", f"has columns of {sorted(lengths)} values")
        if trace.style not in TRACE_STYLES:
            what = f"{trace.style!r} is not one of {', '.join(TRACE_STYLES)}"
            problems.add(f"{where}.traces[{i}].style", what)
    if isinstance(piece, Plot):
        _check_plot(piece, where, problems)
    if isinstance(piece, MotionScene) and (
        len(piece.q) != len(piece.time) or len(set(map(len, piece.q))) > 1
    ):
        counts = sorted(set(map(len, piece.q)))
        problems.add(
            where,
            f"has {len(piece.q)} states of {counts} coordinates, but {len(piece.time)} times",
            "give one state per time, all with the same number of coordinates",
        )


def _check_plot(plot: Plot, where: str, problems: Problems) -> None:
    """Add problems for inconsistent sizes, classes, ranges and colors."""
    rows, columns = len(plot.grid_y), len(plot.grid_x)
    for name, grid in (("grid", plot.grid), ("class_grid", plot.class_grid)):
        widths = {len(row) for row in grid}
        is_absent = not grid and (name == "class_grid" or not (rows or columns))
        if not is_absent and (len(grid) != rows or widths != {columns}):
            what = (
                f"has {len(grid)} rows of {sorted(widths)} values, but axes of {rows} and {columns}"
            )
            problems.add(f"{where}.{name}", what)
    indices = {None, *map(float, range(len(plot.classes)))}
    if any(value not in indices for row in plot.class_grid for value in row):
        problems.add(
            f"{where}.class_grid", f"has indices beyond those of {len(plot.classes)} classes"
        )
    for name, values in (("y_range", plot.y_range), ("grid_range", plot.grid_range)):
        if len(values) not in (0, 2):
            problems.add(f"{where}.{name}", f"has {len(values)} numbers, not two")
    if plot.polar and len(plot.y_range) != 2:
        problems.add(f"{where}.y_range", "is missing for a polar plot")
    colors = {
        "traces": [trace.color or "#000000" for trace in plot.traces],
        "spans": [span.color for span in plot.spans],
        "classes": [item.color for item in plot.classes],
    }
    for name, texts in colors.items():
        for i, text in enumerate(texts):
            if not COLOR.fullmatch(text):
                what = f"{text!r} is not a color such as #16324f"
                problems.add(f"{where}.{name}[{i}].color", what)


def _read_object(kind: Any, data: object, where: str, problems: Problems) -> Any:
    """Return an object of a dataclass from a mapping; None, and problems, if the data are wrong."""
    if not isinstance(data, Mapping):
        problems.add(where, f"is {_value_text(data)}, not a mapping")
        return None
    count = len(problems)
    hints = get_type_hints(kind)
    values = {}
    for name in data.keys() - hints.keys():
        problems.add(f"{where}.{name}", "is unknown", suggestion(name, hints) or "remove it")
    for item in fields(kind):
        if item.name in data:
            values[item.name] = _read(
                hints[item.name], data[item.name], f"{where}.{item.name}", problems
            )
        elif item.default is MISSING:
            problems.add(f"{where}.{item.name}", "is missing")
    return kind(**values) if len(problems) == count else None


def _read(hint: Any, value: object, where: str, problems: Problems) -> Any:
    """Return a value of a type: a string, bool, number, tuple, or object of a dataclass."""
    if get_origin(hint) is tuple:
        inner = get_args(hint)[0]
        if not isinstance(value, list):
            problems.add(where, f"is {_value_text(value)}, not a list")
            return ()
        return tuple(
            item if _has_type(inner, item) else _read(inner, item, f"{where}[{i}]", problems)
            for i, item in enumerate(value)
        )
    if hint in (PlotTrace, PlotSpan, PlotClass):
        return _read_object(hint, value, where, problems)
    if not _has_type(hint, value):
        problems.add(where, f"{_value_text(value)} has the wrong type")
    return value


def _has_type(hint: Any, value: object) -> bool:
    """Return whether a value has a type; numbers must be finite."""
    if isinstance(hint, UnionType):
        return any(_has_type(kind, value) for kind in get_args(hint))
    if hint is float:
        return (
            isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        )
    return isinstance(value, hint) if hint in (str, bool, type(None)) else False


def _value_text(value: object) -> str:
    """Return a value as text of at most 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
