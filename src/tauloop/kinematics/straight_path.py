"""Check whether a straight line of positions leads smoothly from the reference pose to a pose.

Newton's method finds a pose in which the loops close, but a motion from the reference pose may not
reach it. Beyond a singularity (a fold of the solution branch), the positions on the line have no
pose, or the machine would have to jump to another branch. Therefore the line is followed in steps
that are halved until the coordinates change smoothly.
"""

from __future__ import annotations

import numpy as np

from tauloop.common.result import Diagnostic, diagnostic
from tauloop.equations.assembly.reference_pose import displacement
from tauloop.model.motion import Motion

#: First and smallest step, as fractions of the line.
FIRST_STEP, MIN_STEP = 1 / 8, 1 / 8192
#: A step is smooth if the displacements in its two halves differ by less than this fraction of the
#: step, or by less than `ABSOLUTE_SMOOTHNESS`, rad or characteristic lengths.
RELATIVE_SMOOTHNESS, ABSOLUTE_SMOOTHNESS = 0.3, 1e-7
#: Largest difference of a coordinate between equal poses, rad or characteristic lengths.
SAME_POSE = 1e-5


def reached_along_line(
    motion: Motion, position: np.ndarray, q: np.ndarray
) -> tuple[np.ndarray, tuple[Diagnostic, ...]]:
    """Return the pose reached along the straight line from the reference pose, and a diagnostic.

    The diagnostic is the fraction of the line along which the loops stay closed. If all loops are
    solved in closed form, their branch determines the mode and the line is not followed.

    Args:
        motion: functions of the given motion (`model.platform` or `model.actuators`).
        position: given positions (n,).
        q: a pose (n_q,) at these positions.

    Returns:
        The pose (n_q,) at the end of the line if it is reached, otherwise `q`; and the diagnostic,
        if a line was followed.
    """
    runner = motion.runner
    if not runner.iterates:
        return q, ()
    line = _Line(motion, position)
    last_pose, fraction = _walk(line, runner.assembly.q)
    port = motion.ports.position
    last = zip(port.columns, motion.ports.at(last_pose), port.units, strict=True)
    last_position = ", ".join(f"{name} = {value:.4g} {unit}" for name, value, unit in last)
    diagnostics = diagnostic(
        "fraction of the straight line from the reference pose along which the loops stay closed",
        fraction,
        at_least=1.0,
        advice=f"the loops open after {last_position}, so the machine cannot move along this line "
        "to the pose, which may be in another assembly mode; move through other positions, or list "
        "all modes with --all-modes",
    )
    is_other = (
        fraction == 1.0 and np.abs(line.difference(last_pose, q)).max(initial=0.0) > SAME_POSE
    )
    return (last_pose if is_other else q), (diagnostics,)


class _Line:
    """The straight line of given positions from the reference pose to a position."""

    def __init__(self, motion: Motion, position: np.ndarray) -> None:
        runner, ports = motion.runner, motion.ports
        self._motion, self._loops = motion, runner.assembly.loops
        self._quaternions = ports.whole_quaternions(runner.topology)
        self._start, self._end = ports.at(runner.assembly.q), np.array(position, dtype=float)
        for i in self._quaternions:  # a quaternion and its negative are the same orientation
            if self._start[i : i + 4] @ self._end[i : i + 4] < 0.0:
                self._end[i : i + 4] *= -1.0
        scalar = np.array(runner.topology.q_of_v) >= 0
        self._is_angle = np.array(runner.topology.angular, dtype=bool) & scalar

    def pose(self, fraction: float, near: np.ndarray) -> np.ndarray | None:
        """Return the pose (n_q,) at a fraction of the line, solved from a nearby pose.

        None if the loops do not close there.
        """
        position = self._start + fraction * (self._end - self._start)
        for i in self._quaternions:
            position[i : i + 4] /= np.linalg.norm(position[i : i + 4])
        state = self._motion.evaluate(position[None], start=near[None])
        is_closed = bool(state.health.is_reached.all()) and bool(np.isfinite(state.q).all())
        return np.asarray(state.q[0]) if is_closed else None

    def difference(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the displacement (n_v,) between two poses without whole revolutions.

        The unit is rad or characteristic lengths.
        """
        unwrapped = displacement(self._loops, a[None], b[None])[0]
        wrapped = (unwrapped + np.pi) % (2 * np.pi) - np.pi
        return np.asarray(np.where(self._is_angle, wrapped, unwrapped))


def _walk(line: _Line, start: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the last pose that is reached smoothly along a line, and its fraction of the line."""
    q, fraction, step = start, 0.0, FIRST_STEP
    while fraction < 1.0:
        step = min(step, 1.0 - fraction)
        middle = line.pose(fraction + step / 2, q)
        end = None if middle is None else line.pose(fraction + step, middle)
        if middle is not None and end is not None:
            first, second = line.difference(q, middle), line.difference(middle, end)
            length = float(np.linalg.norm(first) + np.linalg.norm(second))
            if float(np.linalg.norm(second - first)) < max(
                RELATIVE_SMOOTHNESS * length, ABSOLUTE_SMOOTHNESS
            ):
                q, fraction, step = end, fraction + step, 2 * step
                continue
        step /= 2
        if step < MIN_STEP:
            return q, fraction
    return q, 1.0
