"""Coordinates of a drive line: inertias that are rigidly connected share a coordinate."""

from __future__ import annotations

from collections.abc import Callable

import casadi as ca

from tauloop.common.errors import DescriptionError
from tauloop.common.records import dataclass
from tauloop.mechanism.drive_line import DriveLine, LineFriction, LuGre
from tauloop.mechanism.expression import Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class LineCoordinates:
    """The coordinate of each inertia.

    Attributes:
        roots: inertia whose position is the coordinate, for each coordinate.
        index: index of the coordinate, by inertia.
        factor: motion of the inertia per motion of its coordinate, by inertia.
    """

    roots: tuple[str, ...]
    index: dict[str, int]
    factor: dict[str, ca.SX]


def coordinates(line: DriveLine, scalar: Callable[[Expression], ca.SX]) -> LineCoordinates:
    """Return the coordinates of the inertias.

    Args:
        line: the drive line.
        scalar: function that returns the value of an expression.

    Raises:
        DescriptionError: rigid connections form a ring, or two rigidly connected inertias have dry
            friction.
    """
    index: dict[str, int] = {}
    factor: dict[str, ca.SX] = {}
    roots: list[str] = []
    rigid = [connection for connection in line.connections if connection.compliance is None]
    used: set[str] = set()
    for inertia in line.inertias:
        if inertia.name in index:
            continue
        index[inertia.name], factor[inertia.name] = len(roots), ca.SX(1)
        roots.append(inertia.name)
        stack = [inertia.name]
        while stack:
            name = stack.pop()
            for connection in rigid:
                ends = (connection.first, connection.second)
                if connection.name in used or name not in ends:
                    continue
                used.add(connection.name)
                is_forward = name == connection.first
                neighbor = connection.second if is_forward else connection.first
                if neighbor in index:
                    where = f"connections.{connection.name}"
                    what = f"rigid connections join {' and '.join(ends)} in a ring"
                    raise _error(line, where, what, "make one of the connections a shaft")
                ratio = scalar(connection.ratio)
                index[neighbor] = index[name]
                factor[neighbor] = factor[name] * (ratio if is_forward else 1 / ratio)
                stack.append(neighbor)
    for k in range(len(roots)):
        dry = [i.name for i in line.inertias if index[i.name] == k and _is_dry(i.friction)]
        if len(dry) > 1:
            what = f"{' and '.join(dry)} are rigidly connected, and each has dry friction"
            raise _error(
                line,
                "connections",
                what,
                "assign the total friction, converted with the ratios, to one of the inertias",
            )
    return LineCoordinates(roots=tuple(roots), index=index, factor=factor)


def _is_dry(friction: LineFriction | LuGre | None) -> bool:
    """Return whether an inertia can stick; LuGre friction has no sticking, since bristles bend."""
    return isinstance(friction, LineFriction) and friction.coulomb is not None


def _error(line: DriveLine, where: str, what: str, remedy: str) -> DescriptionError:
    return DescriptionError.of(where, what, remedy, file=line.file)
