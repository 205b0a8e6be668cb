"""Curves of couplings in a machine file."""

from __future__ import annotations

from tauloop.common.counts import counted
from tauloop.mechanism.curves import Curve, CurvePolynomial, CurveTable
from tauloop.mechanism.description.cursor import Cursor
from tauloop.mechanism.description.grammar import MAX_ORDER, MAX_POINTS
from tauloop.mechanism.description.units import ANGLE, LENGTH, named, shown
from tauloop.mechanism.description.values import ValueReader
from tauloop.mechanism.expression import ZERO
from tauloop.mechanism.model import Freedom

#: Minimum number of points of a table; fewer than three have no curvature.
MIN_POINTS = 3


def read_curve(
    cursor: Cursor,
    values: ValueReader,
    is_angular: bool,
    is_value_angular: bool,
    freedom: Freedom | None,
) -> Curve | None:
    """Return a curve, or None after adding a problem.

    Args:
        cursor: position of the curve in the file.
        values: reader of values.
        is_angular: whether its coordinate is an angle.
        is_value_angular: whether its value is an angle.
        freedom: limits of the coordinate, which must lie within a table; None if they are unknown.
    """
    if cursor.has("polynomial") == cursor.has("table"):
        what = (
            "both `polynomial` and `table`"
            if cursor.has("table")
            else "neither `polynomial` nor `table`"
        )
        cursor.problem(f"the curve has {what}", "write one of them")
        return None
    others = ("periodic", "interpolation") if cursor.has("polynomial") else ("about",)
    for key in others:
        if cursor.has(key):
            kind = "polynomial" if cursor.has("polynomial") else "table"
            cursor.problem(f"a {kind} has no {key}", "remove it", key)
    if cursor.has("polynomial"):
        return _polynomial(cursor, values, is_angular, is_value_angular)
    table = _table(cursor, values, is_angular, is_value_angular)
    if table is not None and not table.periodic and freedom is not None:
        _require_limits(cursor, table, freedom, is_angular)
    return table


def _polynomial(
    cursor: Cursor, values: ValueReader, is_angular: bool, is_value_angular: bool
) -> CurvePolynomial | None:
    """Return a polynomial of the coordinate, or None after adding a problem."""
    x, y = ANGLE if is_angular else LENGTH, ANGLE if is_value_angular else LENGTH
    items = cursor.items_of("polynomial")
    if len(items) > MAX_ORDER + 1:
        cursor.problem(
            f"the polynomial has degree {len(items) - 1}, more than {MAX_ORDER}",
            "use a table",
            "polynomial",
        )
        return None
    coefficients = []
    for k, item in enumerate(items):
        quantity = values.quantity(item)
        if quantity is None:
            return None
        expected = y / x**k
        if not (quantity.is_zero or quantity.dimension.matches(expected)):
            item.problem(
                f"the coefficient of power {k} is {named(quantity.dimension)}, not {named(expected)}",
                f"give it the unit of {named(expected)}",
            )
            return None
        coefficients.append(quantity.expression)
    about = values.expression(cursor.get("about"), is_angular)
    if about is None and cursor.has("about"):
        return None
    return CurvePolynomial(coefficients=tuple(coefficients), about=ZERO if about is None else about)


def _table(
    cursor: Cursor, values: ValueReader, is_angular: bool, is_value_angular: bool
) -> CurveTable | None:
    """Return a table over the coordinate, or None after adding a problem."""
    rows = cursor.items_of("table")
    table_cursor = cursor.get("table") or cursor
    if not MIN_POINTS <= len(rows) <= MAX_POINTS:
        table_cursor.problem(
            f"the table has {counted(len(rows), 'point')}",
            f"give {MIN_POINTS} to {MAX_POINTS} of them",
        )
        return None
    points = []
    for row in rows:
        numbers = []
        for item, is_angle in zip(row.items(), (is_angular, is_value_angular), strict=False):
            quantity = values.quantity(item)
            expected = ANGLE if is_angle else LENGTH
            if quantity is None:
                return None
            if not quantity.fits(expected):
                item.problem(
                    f"this is {named(quantity.dimension)}, not {named(expected)}",
                    "write m or mm for a distance, rad or deg for an angle",
                )
                return None
            numbers.append(values.nominal(quantity.expression))
        if len(numbers) != 2:
            return None
        points.append((numbers[0], numbers[1]))
    dimension = ANGLE if is_angular else LENGTH
    for (previous, _), (current, _), row in zip(points[:-1], points[1:], rows[1:], strict=True):
        if current <= previous:
            row.problem(
                f"{shown(current, dimension)} is not above {shown(previous, dimension)}",
                "sort the points by coordinate, without duplicates",
            )
            return None
    periodic = cursor.word("periodic") == "yes"
    monotone = cursor.word("interpolation") == "monotone"
    first, last = points[0][1], points[-1][1]
    if periodic and first != last:
        units = ANGLE if is_value_angular else LENGTH
        table_cursor.problem(
            f"a periodic table begins with {shown(first, units)} and ends with {shown(last, units)}",
            "repeat the first value at the end",
        )
        return None
    return CurveTable(points=tuple(points), periodic=periodic, monotone=monotone)


def _require_limits(cursor: Cursor, table: CurveTable, freedom: Freedom, is_angular: bool) -> None:
    """Report a coordinate that can leave its table."""
    if table.lower <= freedom.lower and freedom.upper <= table.upper:
        return
    dimension = ANGLE if is_angular else LENGTH
    table_range = f"{shown(table.lower, dimension)} to {shown(table.upper, dimension)}"
    cursor.problem(
        f"the coordinate can leave the table, which covers {table_range}",
        "give the coordinate limits within the table, or make the table periodic",
        "table",
    )
