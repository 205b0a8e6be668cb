"""A G-code program that shows a machine's axes: lines, arcs, and the four corners of its work space."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from tauloop.common.errors import InputError
from tauloop.common.records import dataclass
from tauloop.export.linuxcnc.machine import MM, MachineLayout, WorldAxis, platform_positions
from tauloop.model.model import Model

#: Half the width of the way along an axis whose range the file does not say, mm; turns of those
#: that turn, deg.
WAY, TURN = 20.0, 5.0
#: Shares of the ranges that are tried, the largest first.
SHARES = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1)
#: Points of each line and arc at which the machine must be in reach, and by what share of it it may
#: pass a limit.
POINTS, ROOM = 12, 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A line, or an arc in the plane of X and Y.

    Attributes:
        end: of the tool in the world (6,), mm and deg.
        center: of the arc, from its start (2,), mm; None for a line.
    """

    end: tuple[float, ...]
    center: tuple[float, float] | None = None


def reachable_moves(
    model: Model, layout: MachineLayout
) -> tuple[tuple[float, ...], tuple[Move, ...]]:
    """Start of a program and its moves, over as much of the axes' ranges as the machine reaches within its limits.

    Raises:
        InputError: it reaches no tenth of them.
    """
    for at_home in (False, True):
        for share in SHARES:
            start, moves = _moves(layout.axes, share, at_home=at_home)
            if _is_reached(model, layout, _points(start, moves)):
                return start, moves
    what = "a tenth of its work space is not reached within the limits of all joints"
    raise InputError.of(
        "platform.limits", what, "give the platform ranges that it reaches (`tauloop workspace`)"
    )


def program_text(
    note: str, layout: MachineLayout, start: Sequence[float], moves: Sequence[Move], feed: float
) -> str:
    """The moves as G-code.

    Args:
        note: for the comment at the top.
        layout: whose axes are named.
        start: where the first move begins (6,), mm and deg.
        moves: the moves.
        feed: mm/min, or deg/min where only turning axes move.
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


def _words(layout: MachineLayout, place: Sequence[float]) -> str:
    return " ".join(f"{axis.letter}{place[axis.number]:.6f}" for axis in layout.axes)


def _moves(
    axes: Sequence[WorldAxis], share: float, *, at_home: bool
) -> tuple[tuple[float, ...], tuple[Move, ...]]:
    """Home, the four corners, a circle, the middles of all sides of the box, and turns."""
    middle, half = np.zeros(6), np.zeros(6)
    home = np.zeros(6)
    for axis in axes:
        home[axis.number] = middle[axis.number] = axis.home
        half[axis.number] = WAY if axis.number < 3 else TURN
        if np.isfinite([axis.lower, axis.upper]).all():
            middle[axis.number] = axis.home if at_home else (axis.lower + axis.upper) / 2
            half[axis.number] = (axis.upper - axis.lower) / 2
    half *= share
    corners = [(-1, -1), (1, -1), (1, 1), (-1, 1), (-1, -1)]
    ends = [middle + half * np.array([x, y, 0, 0, 0, 0]) for x, y in corners]
    moves = [Move(end=_place(end)) for end in (middle, *ends, middle)]
    if (radius := float(half[:2].min()) / 2) > 0:
        right = middle + radius * (np.arange(6) == 0)
        moves += [
            Move(end=_place(right)),
            Move(end=_place(right), center=(-radius, 0.0)),
            Move(end=_place(middle)),
        ]
    for axis in axes:
        if axis.number >= 2:
            away = half * (np.arange(6) == axis.number)
            moves += [Move(end=_place(end)) for end in (middle + away, middle - away, middle)]
    return _place(home), (*moves, Move(end=_place(home)))


def _place(numbers: np.ndarray) -> tuple[float, ...]:
    """A place as the program writes it."""
    return tuple(round(float(number), 6) + 0.0 for number in numbers)


def _points(start: Sequence[float], moves: Sequence[Move]) -> np.ndarray:
    """Places (N, 6) along the moves."""
    share = np.linspace(0.0, 1.0, POINTS)[:, None]
    points = []
    for before, move in pairwise([Move(end=tuple(start)), *moves]):
        first, last = np.array(before.end), np.array(move.end)
        points.append(first + share * (last - first))
        if move.center is not None:
            angle = 2 * np.pi * share[:, 0]
            arm = -np.array(move.center)
            turned = np.stack([np.cos(angle) * arm[0], -np.sin(angle) * arm[0]], axis=1)
            points[-1][:, :2] = first[:2] + np.array(move.center) + turned
    return np.concatenate(points)


def _is_reached(model: Model, layout: MachineLayout, points: np.ndarray) -> bool:
    """Whether the machine is in reach, regular and within all its limits at places (N, 6)."""
    position = platform_positions(layout, points)
    state = model.platform.evaluate(position)
    if not (state.health.is_reached & state.health.is_regular).all():
        return False
    room = model.limits.room(state.q) + MM * 1e-6  # the last digit of a program
    return bool((room / model.limits.scale).min(initial=0.0) >= -ROOM)
