"""A G-code program that moves a machine's axes: lines, arcs, and corners of the workspace."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from tauloop.common.errors import InputError
from tauloop.common.records import dataclass
from tauloop.export.linuxcnc.machine import MM, MachineLayout, WorldAxis, platform_positions
from tauloop.model.model import Model

#: Half the travel of a linear axis without a range in the machine file, mm.
DEFAULT_LINEAR_TRAVEL = 20.0
#: Half the travel of an angular axis without a range in the machine file, deg.
DEFAULT_ROTATION = 5.0
#: Fractions of the ranges that are tried, in this order.
RANGE_FRACTIONS = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1)
#: Number of points checked on each line and arc.
CHECKED_POINTS = 12
#: Fraction of a range by which a limit may be exceeded.
LIMIT_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A line, or an arc in the plane of X and Y.

    Attributes:
        end: position of the tool in the world at the end (6,), mm and deg.
        center: center of the arc relative to its start (2,), mm; None for a line.
    """

    end: tuple[float, ...]
    center: tuple[float, float] | None = None


def reachable_moves(
    model: Model, layout: MachineLayout
) -> tuple[tuple[float, ...], tuple[Move, ...]]:
    """Return the start and the moves of a program over the largest reachable part of the ranges.

    All ranges are multiplied by the same fraction.

    Raises:
        InputError: even 10 % of the ranges exceeds the joint limits.
    """
    for at_home in (False, True):
        for fraction in RANGE_FRACTIONS:
            start, moves = _moves(layout.axes, fraction, at_home=at_home)
            if _is_reached(model, layout, _points(start, moves)):
                return start, moves
    message = "even 10 % of the ranges exceeds the joint limits"
    remedy = "give the platform ranges that it can reach (see `tauloop workspace`)"
    raise InputError.of("platform.limits", message, remedy)


def program_text(
    note: str, layout: MachineLayout, start: Sequence[float], moves: Sequence[Move], feed: float
) -> str:
    """Return the moves as G-code.

    Args:
        note: comment at the top.
        layout: joints and axes of the machine.
        start: start of the first move (6,), mm and deg.
        moves: moves in their order.
        feed: feed, mm/min; deg/min for moves of angular axes only.
    """
    lines = [f"({note})", "G21 G90 G94 G17 G61", f"G1 F{feed:.12g}", f"G1 {_words(layout, start)}"]
    for move in moves:
        if move.center is None:
            lines.append(f"G1 {_words(layout, move.end)}")
        else:
            lines.append(
                f"G2 {_words(layout, move.end)} I{move.center[0]:.6f} J{move.center[1]:.6f}"
            )
    return "\n".join([*lines, "M2", ""])


def _words(layout: MachineLayout, position: Sequence[float]) -> str:
    return " ".join(f"{axis.letter}{position[axis.number]:.6f}" for axis in layout.axes)


def _moves(
    axes: Sequence[WorldAxis], fraction: float, *, at_home: bool
) -> tuple[tuple[float, ...], tuple[Move, ...]]:
    """Return the home position, and moves to four corners, a circle, the ends of z, and rotations."""
    middle, half = np.zeros(6), np.zeros(6)
    home = np.zeros(6)
    for axis in axes:
        home[axis.number] = middle[axis.number] = axis.home
        half[axis.number] = DEFAULT_LINEAR_TRAVEL if axis.number < 3 else DEFAULT_ROTATION
        if np.isfinite([axis.lower, axis.upper]).all():
            middle[axis.number] = axis.home if at_home else (axis.lower + axis.upper) / 2
            half[axis.number] = (axis.upper - axis.lower) / 2
    half *= fraction
    corners = [(-1, -1), (1, -1), (1, 1), (-1, 1), (-1, -1)]
    ends = [middle + half * np.array([x, y, 0, 0, 0, 0]) for x, y in corners]
    moves = [Move(end=_rounded(end)) for end in (middle, *ends, middle)]
    radius = float(half[:2].min()) / 2
    if radius > 0:
        right = middle + radius * (np.arange(6) == 0)
        moves += [
            Move(end=_rounded(right)),
            Move(end=_rounded(right), center=(-radius, 0.0)),
            Move(end=_rounded(middle)),
        ]
    for axis in axes:
        if axis.number >= 2:
            offset = half * (np.arange(6) == axis.number)
            moves += [Move(end=_rounded(end)) for end in (middle + offset, middle - offset, middle)]
    return _rounded(home), (*moves, Move(end=_rounded(home)))


def _rounded(numbers: np.ndarray) -> tuple[float, ...]:
    """Return a position, rounded to the digits of the program."""
    return tuple(round(float(number), 6) + 0.0 for number in numbers)


def _points(start: Sequence[float], moves: Sequence[Move]) -> np.ndarray:
    """Return positions (N, 6) along the moves."""
    fraction = np.linspace(0.0, 1.0, CHECKED_POINTS)[:, None]
    points = []
    for before, move in pairwise([Move(end=tuple(start)), *moves]):
        first, last = np.array(before.end), np.array(move.end)
        points.append(first + fraction * (last - first))
        if move.center is not None:
            angle = 2 * np.pi * fraction[:, 0]
            radius = -move.center[
                0
            ]  # each arc is a full circle that starts on the x-axis of its center
            offset = radius * np.stack([np.cos(angle), -np.sin(angle)], axis=1)
            points[-1][:, :2] = first[:2] + np.array(move.center) + offset
    return np.concatenate(points)


def _is_reached(model: Model, layout: MachineLayout, points: np.ndarray) -> bool:
    """Return whether the machine reaches all positions (N, 6), regular and within all limits."""
    position = platform_positions(layout, points)
    state = model.platform.evaluate(position)
    if not (state.health.is_reached & state.health.is_regular).all():
        return False
    margin = model.limits.room(state.q) + MM * 1e-6  # tolerance: the last digit of the program
    return bool((margin / model.limits.scale).min(initial=0.0) >= -LIMIT_TOLERANCE)
