"""Checks of arguments of models and motions, in addition to those of ports (`equations.ports`)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tauloop.common.errors import InputError
from tauloop.equations.ports import Port, checked, numbers
from tauloop.equations.topology import Topology


def text_names(names: object, where: str) -> tuple[str, ...]:
    """Return names from a text or from several texts.

    Raises:
        InputError: they are not texts.
    """
    if isinstance(names, str):
        return (names,)
    listed: tuple[object, ...] = (names,)
    if isinstance(names, Iterable) and not isinstance(names, bytes):
        listed = tuple(names)
    wrong = [name for name in listed if not isinstance(name, str)]
    if wrong:
        what = f"holds {wrong[0]!r:.80}, which is of type {type(wrong[0]).__name__}"
        raise InputError.of(where, what, "give a name, or several as texts in a tuple")
    return tuple(map(str, listed))


def require_type(argument: object, kind: type, where: str, remedy: str) -> None:
    """Raise if an argument has another type.

    Raises:
        InputError: the message contains the argument's name.
    """
    if not isinstance(argument, kind):
        raise InputError.of(where, f"is of type {type(argument).__name__}", remedy)


def full_coordinates(q: object, topology: Topology, where: str = "q") -> np.ndarray:
    """Return coordinates (..., n_q) as an array; samples out of reach may be NaN.

    Raises:
        InputError: they are not real numbers, or their number is wrong.
    """
    array = numbers(q, where)
    names = topology.coordinate_names
    if not array.ndim or array.shape[-1] != len(names):
        what = f"has shape {array.shape}, needs ({len(names)},) or (N, {len(names)})"
        raise InputError.of(where, what, f"the numbers of a sample are: {', '.join(names)}")
    return array


def assembled_poses(q: object, topology: Topology, where: str = "q") -> tuple[np.ndarray, bool]:
    """Return coordinates (N, n_q) of poses, finite, and whether a single pose (n_q,) was given.

    Raises:
        InputError: wrong shapes or values.
    """
    names = topology.coordinate_names
    arrays, single = checked(
        {where: Port(name=where, columns=names, units=("",) * len(names))}, {where: q}
    )
    return arrays[where], single
