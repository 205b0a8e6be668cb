"""A planned motion on a page: the machine as it moves, its stroke, and the forces that it asks for."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tauloop.motion.planning import PlannedMotion
from tauloop.report.pieces import STATES, Piece, channels_over_time, motion
from tauloop.simulation.fastest import FastestMotion


def motion_page(planned: PlannedMotion | FastestMotion) -> Iterator[Piece]:
    """What there is to see of it."""
    trajectory = planned.trajectory
    model, functions = trajectory.stroke.model, trajectory.stroke.functions
    time = np.linspace(0.0, trajectory.total, 2 * STATES + 1)
    states = trajectory.states(time)
    yield from motion(model, time, states.q)
    yield from channels_over_time(f"Stroke of the {functions.ports.name}", planned, "position")
    yield from channels_over_time("Actuator force", planned, "force")
