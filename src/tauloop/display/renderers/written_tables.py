"""Tables of results as LaTeX and Markdown, for papers and repositories.

Values with a standard deviation are written with it, rounded to two digits of the deviation.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tauloop.common.errors import InputError, Problems
from tauloop.common.records import dataclass
from tauloop.mechanism.description.units import UnitError, parse_unit

if TYPE_CHECKING:
    from tauloop.common.datasets import Tabular

#: Names of the column of standard deviations, and of the column of the values with these
#: deviations.
_DEVIATION, _VALUE = "deviation", "value"
#: Significant digits of a standard deviation.
_DEVIATION_DIGITS = 2
#: Numbers from 10^_MIN_EXPONENT to 10^_MAX_EXPONENT are written without an exponent.
_MIN_EXPONENT, _MAX_EXPONENT = -5, 6
_LATEX_CHARACTERS = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "·": r"\textperiodcentered{}",
}
_MARKDOWN_CHARACTERS = re.compile(r"([\\`*_\[\]|~#])")
_LABEL = re.compile(r"[A-Za-z0-9:._/-]*")
#: Units that siunitx typesets from their text: names, powers, and one slash for each divisor.
_PLAIN_UNIT = re.compile(r"[A-Za-z0-9^/ -]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Number:
    """A number as text: ``(value ± deviation) 10^exponent``.

    Attributes:
        value: digits of the value, or "inf".
        deviation: digits of its standard deviation; "" if it has none.
        exponent: exponent of 10.
    """

    value: str
    deviation: str = ""
    exponent: int = 0


def latex_table(
    item: Tabular,
    over: str = "",
    *,
    columns: Sequence[str] = (),
    units: Mapping[str, str] = MappingProxyType({}),
    digits: int = 4,
    caption: str = "",
    label: str = "",
) -> str:
    """Return a table of a result for LaTeX, with the packages booktabs and siunitx.

    Args:
        item: the result.
        over, columns, units, digits: see `markdown_table`.
        caption: caption; with a caption or a label, the result is a `table` environment.
        label: label, for references.

    Returns:
        The text; names are escaped, and siunitx typesets the numbers and units.

    Raises:
        InputError: the label has invalid characters; see also `markdown_table`.
    """
    if not _LABEL.fullmatch(label):
        what = f"{label!r} has characters that LaTeX does not allow in a label"
        raise InputError.of("label", what, "use letters, digits, and the characters : . - _ /")
    heads, rows = _cells(item, over, columns, units, digits)
    columns_format = "".join("r" if _is_numeric(rows, i) else "l" for i in range(len(heads)))
    lines = [rf"\begin{{tabular}}{{{columns_format}}}", r"\toprule"]
    lines.append(" & ".join(_latex_head(head) for head in heads) + r" \\")
    lines.append(r"\midrule")
    for row in rows:
        lines.append(" & ".join(_latex_cell(cell) for cell in row) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}"]
    if caption or label:
        lines = [
            r"\begin{table}",
            r"\centering",
            *([rf"\caption{{{_latex_text(caption)}}}"] if caption else []),
            *([rf"\label{{{label}}}"] if label else []),
            *lines,
            r"\end{table}",
        ]
    return "\n".join(["% Needs \\usepackage{booktabs} and \\usepackage{siunitx}.", *lines, ""])


def markdown_table(
    item: Tabular,
    over: str = "",
    *,
    columns: Sequence[str] = (),
    units: Mapping[str, str] = MappingProxyType({}),
    digits: int = 4,
) -> str:
    """Return a table of a result in the Markdown of GitHub and GitLab.

    Args:
        item: the result.
        over: dimension of the rows, such as ``parameter`` or ``time``; default: the dimension of
            the first quantity (see `to_pandas`).
        columns: names of the columns, in order; default: all. A column ``value`` includes the
            standard deviations of the column ``deviation``.
        units: units to show by SI unit, such as ``{"m": "mm", "rad": "deg"}``.
        digits: significant digits of numbers without a standard deviation.

    Returns:
        The text; names are escaped.

    Raises:
        InputError: there is no such dimension or column, or a unit has another dimension.
    """
    heads, rows = _cells(item, over, columns, units, digits)
    is_numeric = [_is_numeric(rows, i) for i in range(len(heads))]
    lines = ["| " + " | ".join(_markdown_head(head) for head in heads) + " |"]
    lines.append("|" + "|".join(" ---: " if item else " --- " for item in is_numeric) + "|")
    for row in rows:
        lines.append("| " + " | ".join(_markdown_cell(cell) for cell in row) + " |")
    return "\n".join([*lines, ""])


#: A head is a name and a unit; a cell is a text, a number, or a unit.
_Head = tuple[str, str]


@dataclass(frozen=True, slots=True)
class _Unit:
    text: str


_Cell = str | _Number | _Unit


def _cells(
    item: Tabular, over: str, columns: Sequence[str], units: Mapping[str, str], digits: int
) -> tuple[list[_Head], list[list[_Cell]]]:
    """Return heads and rows of a table.

    Raises:
        InputError: a wrong column, unit or number of digits.
    """
    frame = item.to_pandas(over)
    data = item.to_xarray()
    indices = [str(name) for name in frame.index.names]
    unit_column = f"{indices[0]}_unit"
    row_units = [str(unit) for unit in frame[unit_column]] if unit_column in frame else []
    names = [str(name) for name in frame.columns if name != unit_column]
    _check(columns, names, digits)
    default_names = [name for name in names if name != _DEVIATION or _VALUE not in names]
    shown_names = list(columns) or default_names
    display_units = _DisplayUnits(units)
    heads: list[_Head] = []
    column_cells: list[Iterable[_Cell]] = []
    for name in (*indices, *shown_names):
        values = frame.index.get_level_values(name) if name in indices else frame[name]
        unit = str(data[name].attrs.get("units", "")) if name in data else ""
        column_units = [unit] * len(frame) if unit or not row_units else row_units
        factors = [display_units.factor(row_unit) for row_unit in column_units]
        has_deviations = name == _VALUE and _DEVIATION in frame
        deviations = frame[_DEVIATION] if has_deviations else [math.nan] * len(frame)
        heads.append((name, display_units.shown(unit)))
        column_cells.append(_column(values, deviations, factors, digits))
    if row_units:
        heads.append(("unit", ""))
        column_cells.append([_Unit(display_units.shown(unit)) for unit in row_units])
    return heads, [list(row) for row in zip(*column_cells, strict=True)]


def _check(columns: Sequence[str], names: Sequence[str], digits: int) -> None:
    problems = Problems()
    for name in columns:
        if name not in names:
            problems.add(
                "columns", f"there is no column {name!r}", f"choose among {', '.join(names)}"
            )
    if not 1 <= digits <= 17:
        problems.add("digits", f"{digits} digits", "give 1 to 17")
    InputError.raise_if_any(problems)


class _DisplayUnits:
    """Conversion from SI units to displayed units."""

    def __init__(self, units: Mapping[str, str]) -> None:
        self._units = dict(units)
        self._factors: dict[str, float] = {}
        problems = Problems()
        for unit, shown in self._units.items():
            try:
                source, target = parse_unit(unit), parse_unit(shown)
            except UnitError as error:
                problems.add("units", error.what, error.remedy)
                continue
            if source.dimension != target.dimension:
                what = f"{shown} is not a unit for quantities in {unit}"
                problems.add("units", what, "give a unit of the same kind, such as mm for m")
            self._factors[unit] = source.scale / target.scale
        InputError.raise_if_any(problems)

    def factor(self, unit: str) -> float:
        """Return the factor from an SI unit to the displayed unit."""
        return self._factors.get(unit, 1.0)

    def shown(self, unit: str) -> str:
        """Return the displayed unit for an SI unit; "" for a pure number."""
        return self._units.get(unit, "" if unit == "1" else unit)


def _column(
    values: Iterable[Any], deviations: Iterable[float], factors: Iterable[float], digits: int
) -> Iterator[_Cell]:
    """Yield the cells of a column of texts or numbers."""
    for value, deviation, factor in zip(values, deviations, factors, strict=True):
        if isinstance(value, str):
            yield _text(value)
        else:
            yield _number(float(value) * factor, float(deviation) * factor, digits)


def _number(value: float, deviation: float, digits: int) -> _Cell:
    """Return a number and its standard deviation, rounded to two digits of the deviation.

    A number without a finite positive deviation has `digits` significant digits.
    """
    # `last_digit` is the decimal exponent of the last digit.
    if math.isnan(value):
        return ""
    if math.isinf(value):
        return _Number(value="inf" if value > 0 else "-inf")
    has_deviation = math.isfinite(deviation) and deviation > 0
    if has_deviation:
        exponent = _exponent(max(abs(value), deviation), digits)
        last_digit = _exponent(deviation, _DEVIATION_DIGITS) - _DEVIATION_DIGITS + 1
    else:
        exponent = _exponent(abs(value), digits)
        last_digit = exponent - digits + 1
    is_plain = _MIN_EXPONENT <= exponent < _MAX_EXPONENT and last_digit <= 0
    power = 0 if is_plain else exponent
    decimals = max(0, power - last_digit)
    scale = 10.0**-power
    if not has_deviation:
        return _Number(
            value=_without_trailing_zeros(f"{value * scale:.{decimals}f}"), exponent=power
        )
    return _Number(
        value=f"{value * scale:.{decimals}f}",
        deviation=f"{deviation * scale:.{decimals}f}",
        exponent=power,
    )


def _exponent(magnitude: float, digits: int) -> int:
    """Return the decimal exponent of a number after rounding to significant digits; 0 for zero."""
    return int(f"{magnitude:.{digits - 1}e}".partition("e")[2])


def _without_trailing_zeros(text: str) -> str:
    """Return the digits of a number without trailing zeros after the decimal point."""
    digits = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if digits == "-0" else digits


def _text(value: Any) -> str:
    return " ".join(str(value).split())


def _is_numeric(rows: Sequence[Sequence[_Cell]], column: int) -> bool:
    """Return whether a column contains numbers."""
    return any(isinstance(row[column], _Number) for row in rows)


def _latex_text(text: str) -> str:
    """Return text with all characters that LaTeX treats specially escaped."""
    return "".join(_LATEX_CHARACTERS.get(character, character) for character in text)


def _latex_head(head: _Head) -> str:
    name, unit = head
    return f"{_latex_text(name)} ({_latex_unit(unit)})" if unit else _latex_text(name)


def _latex_unit(unit: str) -> str:
    """Return a unit for siunitx, whose product sign is a full stop."""
    if not unit:
        return ""
    if unit == "deg":
        return r"\unit{\degree}"
    if not _PLAIN_UNIT.fullmatch(unit):
        return _latex_text(unit)
    return rf"\unit{{{'.'.join(unit.split())}}}"


def _latex_cell(cell: _Cell) -> str:
    if isinstance(cell, _Unit):
        return _latex_unit(cell.text)
    if isinstance(cell, str):
        return _latex_text(cell)
    if cell.value.endswith("inf"):
        return r"$-\infty$" if cell.value.startswith("-") else r"$\infty$"
    deviation = f" +- {cell.deviation}" if cell.deviation else ""
    exponent = f"e{cell.exponent}" if cell.exponent else ""
    return rf"\num{{{cell.value}{deviation}{exponent}}}"


def _markdown_text(text: str) -> str:
    """Return text with all characters escaped that Markdown or HTML treats specially."""
    return html.escape(_MARKDOWN_CHARACTERS.sub(r"\\\1", text), quote=False)


def _markdown_head(head: _Head) -> str:
    name, unit = head
    return _markdown_text(f"{name} ({unit})" if unit else name)


def _markdown_cell(cell: _Cell) -> str:
    if isinstance(cell, _Unit):
        return _markdown_text(cell.text)
    if isinstance(cell, str):
        return _markdown_text(cell)
    if cell.value.endswith("inf"):
        return cell.value.replace("inf", "∞")
    text = f"{cell.value} ± {cell.deviation}" if cell.deviation else cell.value
    if not cell.exponent:
        return text
    return f"({text})e{cell.exponent}" if cell.deviation else f"{text}e{cell.exponent}"
