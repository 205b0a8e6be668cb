"""How numbers are written in a text table: what stands between cells, and a decimal comma."""

from __future__ import annotations

import re

DELIMITERS = (",", ";", "\t")
_DECIMAL_COMMA = re.compile(r"[+-]?\d{1,40},\d{1,40}([eE][+-]?\d{1,4})?")
#: What may as well be a thousand with its separator.
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")
#: Rows that are looked at for commas within numbers.
_INSPECTED_ROWS = 1000


def is_number(cell: str) -> bool:
    """Return whether Python reads the cell as a number (of no underscores)."""
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def has_decimal_comma(cell: str) -> bool:
    """Return whether the cell is a number with a comma before its decimals."""
    return _DECIMAL_COMMA.fullmatch(cell.strip()) is not None


def delimiter_of(line: str) -> str:
    """Return what separates the cells of a row: the commonest of comma, semicolon and tab; commas may be those of decimals."""
    for delimiter in DELIMITERS[1:]:
        cells = line.split(delimiter)
        if len(cells) > 1 and all(is_number(cell) or has_decimal_comma(cell) for cell in cells):
            return delimiter
    return max(DELIMITERS, key=line.count)


def with_decimal_points(data: bytes, skipped: int, delimiter: str) -> bytes:
    """Return the text with points in place of decimal commas, where these can be nothing else.

    That is: commas do not separate cells, no number has a point, and among the first rows some
    number with a comma cannot be a thousand with its separator (``1,234``).

    Args:
        data: the file.
        skipped: lines above the samples, left as they are.
        delimiter: what separates cells.
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
