"""Trajectories as C99 arrays for controllers."""

from __future__ import annotations

import numpy as np

from tauloop.motion.trajectory import Trajectory


def c_arrays(trajectory: Trajectory, time: np.ndarray, period: float, title: str) -> str:
    """Return the C99 text of actuator positions, velocities and forces, one row per sample (SI).

    Args:
        trajectory: the motion.
        time: times of the samples (N,), s.
        period: time between two samples, s.
        title: description of the motion, for the comment.
    """
    model = trajectory.stroke.model
    state = trajectory.states(time)
    forces = trajectory.forces(time)
    speeds = np.asarray(state.v) @ model.assembly.loops.transmission.T
    rows = np.concatenate([model.actuator_position(state.q), speeds, forces], axis=1)
    lines = []
    for row in rows:
        numbers = ", ".join(f"{value:.9g}" for value in row)
        lines.append(f"    {{{numbers}}}")
    return "\n".join(
        [
            f"/* {title}: for each sample, the positions, velocities and forces of all actuators",
            " * in the order of the machine file, in SI units (m or rad, N or N m). */",
            f"#define MOTION_ACTUATORS {forces.shape[1]}",
            f"#define MOTION_SAMPLES {len(rows)}",
            f"static const double motion_period = {period:.17g}; /* s */",
            "static const double motion[MOTION_SAMPLES][3 * MOTION_ACTUATORS] = {",
            ",\n".join(lines),
            "};",
            "",
        ]
    )
