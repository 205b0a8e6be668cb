"""Pinocchio's constrained forward dynamics in C++, integrated under given forces: its speed and its error."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from peers import pinocchio_cpp
from peers.bodies import peer_tree
from peers.comparison import closing_engine
from peers.mujoco_rollout import Rollout
from peers.states import tree_states
from tauloop.mechanism.poses import Array
from tauloop.model import Model
from tauloop.verification.engines import NamedMotion


def rollout(
    program: Path,
    model: Model,
    q: Array,
    force: Array,
    actuated: Array,
    period: float,
    seconds: float,
) -> Rollout:
    """Run under forces held over periods, from rest: one step of Runge-Kutta 4 for each period.

    Args:
        program: the built C++ program.
        model: the machine; its actuators drive one joint each.
        q: coordinates at the start (n_q,).
        force: actuator forces (N, n_u).
        actuated: actuator positions at the ends of the periods (N, n_u), to compare with.
        period: s.
        seconds: how long to measure.

    Raises:
        EngineError: no engine supports the machine.
        NotComparable: Pinocchio's own constraints do not close its loops, or links are massless.
    """
    shape, engine = model.topology, closing_engine(model.mechanism)
    still = {name: np.zeros(1) for name in shape.velocity_names}
    start = NamedMotion(
        q={name: q[i : i + 1] for i, name in enumerate(shape.coordinate_names)}, v=still, a=still
    )
    states = tree_states(engine, start)
    found = pinocchio_cpp.rollout(program, peer_tree(engine.tree), states, force, period, seconds)
    names = [engine.tree.velocity_names[i] for i in states.driven]
    order = [names.index(shape.velocity_names[i]) for i in model.assembly.driven]
    ratio = np.diagonal(model.assembly.loops.transmission[:, list(model.assembly.driven)])
    error = float(np.abs(found.driven[:, order] * ratio - actuated).max())
    return Rollout(
        method=f"{found.version}, Runge-Kutta 4, 1 step", seconds=found.seconds, error=error
    )
