"""Cables that pass the negative x axis of their drum, where their computed length jumps.

The computed length has a branch cut there: it jumps by the length of one revolution on the drum.
"""

from __future__ import annotations

import math

import numpy as np

from tauloop.common.errors import Problem
from tauloop.common.result import Diagnostic, diagnostic
from tauloop.equations.assembly.assembly import Assembly
from tauloop.equations.assembly.loops import line_angles

_REMEDY = (
    "rotate the frame of the drum about its z axis, so that x points to the middle of the motion"
)


def drum_jumps(assembly: Assembly, q: np.ndarray) -> tuple[Problem, ...]:
    """Return a problem for each cable on a drum whose computed length jumps.

    Each pose is compared with the reference pose.

    The end of a cable is assumed to move from its angle at the reference pose by the shorter
    rotation.

    Args:
        assembly: the machine.
        q: coordinates of the poses (N, n_q).
    """
    loops, mechanism = assembly.loops, assembly.mechanism
    if all(rod.drum is None for rod in mechanism.rods):
        return ()
    angles = line_angles(loops, np.concatenate([assembly.q[None], q]))
    problems: list[Problem] = []
    for rod in mechanism.rods:
        if rod.drum is None:
            continue
        start, *others = np.degrees(angles[rod.name]).tolist()
        passed = [angle for angle in others if abs(angle - start) > 180.0]
        if passed:
            jump = 2.0 * math.pi * mechanism.value(rod.drum.radius)
            what = (
                f"its end passes the negative x axis of its drum between the reference pose, at "
                f"{start:.4g} deg, and {len(passed)} of {len(others)} poses, for example at "
                f"{passed[0]:.4g} deg: its computed length jumps by {jump:.4g} m"
            )
            problems.append(
                Problem(
                    where=f"rods.{rod.name}.drum", what=what, remedy=_REMEDY, file=mechanism.file
                )
            )
    return tuple(problems)


def drum_diagnostics(assembly: Assembly, q: np.ndarray) -> tuple[Diagnostic, ...]:
    """Return a diagnostic of the number of cables whose computed length jumps; empty if none."""
    problems = drum_jumps(assembly, q)
    if not problems:
        return ()
    advice = "; ".join(f"{item.where}: {item.what}" for item in problems)
    return (
        diagnostic(
            "cables whose computed length jumps at the negative x axis of their drum",
            len(problems),
            at_most=0.0,
            advice=f"{advice}. To avoid it, {_REMEDY}",
        ),
    )
