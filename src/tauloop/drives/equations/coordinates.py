"""Coordinates of a drive line: inertias joined rigidly share one."""

from __future__ import annotations

from collections.abc import Callable

import casadi as ca

from tauloop.common.errors import DescriptionError
from tauloop.common.records import dataclass
from tauloop.mechanism.drive_line import DriveLine, LineFriction, LuGre
from tauloop.mechanism.expression import Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class LineCoordinates:
    """The coordinate with which each inertia moves.

    Attributes:
        roots: the inertia that each coordinate is named after.
        index: coordinate by inertia.
        factor: motion of the inertia over its coordinate.
    """

    roots: tuple[str, ...]
    index: dict[str, int]
    factor: dict[str, ca.SX]


def coordinates(line: DriveLine, scalar: Callable[[Expression], ca.SX]) -> LineCoordinates:
    """Return the coordinates of the inertias.

    Args:
        line: the drive line.
        scalar: value of an expression.

    Raises:
        DescriptionError: rigid connections form a ring, or two bodies with dry friction stick as
            one.
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
        chain = [inertia.name]
        while chain:
            here = chain.pop()
            for joined in rigid:
                if joined.name in used or here not in (joined.first, joined.second):
                    continue
                used.add(joined.name)
                there = joined.second if here == joined.first else joined.first
                if there in index:
                    what = f"rigid connections join {joined.first} and {joined.second} in a ring"
                    raise _wrong(
                        line, f"connections.{joined.name}", what, "make one of them a shaft"
                    )
                ratio = scalar(joined.ratio)
                index[there] = index[here]
                factor[there] = factor[here] * (ratio if here == joined.first else 1 / ratio)
                chain.append(there)
    for k in range(len(roots)):
        dry = [i.name for i in line.inertias if index[i.name] == k and _is_dry(i.friction)]
        if len(dry) > 1:
            what = f"{' and '.join(dry)} are rigidly joined, and each has dry friction of its own"
            raise _wrong(
                line, "connections", what, "give one of them the friction of both, on its side"
            )
    return LineCoordinates(roots=tuple(roots), index=index, factor=factor)


def _is_dry(friction: LineFriction | LuGre | None) -> bool:
    """Return whether a body sticks; bristles give way, so that LuGre friction does not count."""
    return isinstance(friction, LineFriction) and friction.coulomb is not None


def _wrong(line: DriveLine, where: str, what: str, remedy: str) -> DescriptionError:
    return DescriptionError.of(where, what, remedy, file=line.file)
