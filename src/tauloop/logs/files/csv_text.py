"""Format of numbers in a text table: cell delimiters and decimal commas."""

from __future__ import annotations

import codecs
import re

DELIMITERS = (",", ";", "\t")
_DECIMAL_COMMA = re.compile(r"[+-]?\d{1,40},\d{1,40}([eE][+-]?\d{1,4})?")
#: Number with a comma that may also be a thousands separator.
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")
#: Number of rows that are searched for decimal commas.
_INSPECTED_ROWS = 1000


def as_utf8(data: bytes) -> bytes:
    """Return a text with UTF-16 encoding and its byte order mark, as Excel writes it, in UTF-8."""
    if not data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data
    try:
        return data.decode("utf-16").encode("utf-8")
    except UnicodeDecodeError:
        return data


def is_number(cell: str) -> bool:
    """Return whether a cell is a number in Python's notation, without underscores."""
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def has_decimal_comma(cell: str) -> bool:
    """Return whether a cell is a number with a decimal comma."""
    return _DECIMAL_COMMA.fullmatch(cell.strip()) is not None


def delimiter_of(line: str) -> str:
    """Return the most frequent of comma, semicolon and tab, without counting decimal commas."""
    for delimiter in DELIMITERS[1:]:
        cells = line.split(delimiter)
        if len(cells) > 1 and all(is_number(cell) or has_decimal_comma(cell) for cell in cells):
            return delimiter
    return max(DELIMITERS, key=line.count)


def with_decimal_points(data: bytes, skipped: int, delimiter: str) -> bytes:
    """Return the text with decimal commas replaced by points, if the commas are unambiguous.

    The commas are unambiguous if they do not separate cells, no number has a point, and the first
    rows contain a number whose comma cannot be a thousands separator (as in ``1,234``).

    Args:
        data: the file.
        skipped: number of lines above the samples, which are not changed.
        delimiter: cell delimiter.
    """
    if delimiter == ",":
        return data
    lines = data.split(b"\n", skipped)
    if len(lines) <= skipped:
        return data
    rows = lines[skipped]
    if b"," not in rows or b"." in rows:
        return data
    text = rows.split(b"\n", _INSPECTED_ROWS)[:_INSPECTED_ROWS]
    cells = (
        cell.strip().strip('"') for row in text for cell in row.decode("utf-8").split(delimiter)
    )
    if not any(has_decimal_comma(cell) and not _THOUSANDS.fullmatch(cell) for cell in cells):
        return data
    lines[skipped] = rows.replace(b",", b".")
    return b"\n".join(lines)
