"""MuJoCo's `rollout` of a machine with loops under given forces: its speed and its error.

Loops are closed by its soft constraints, made as stiff as its documentation allows for the step
(time constant of two steps), and nearly rigid (impedance 0.9999).
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from peers.bodies import peer_tree
from peers.comparison import closing_engine
from peers.mujoco_peer import mujoco_model
from peers.states import tree_states
from tauloop.mechanism.poses import Array
from tauloop.model import Model
from tauloop.verification.engines import NamedMotion
from tauloop.verification.engines.optional import engine_module

#: Time constant of the constraints in steps (just above the least that is allowed), and their
#: impedance.
CONSTANT, IMPEDANCE = 2.1, 0.9999
#: Integrators by name, and steps per held force.
INTEGRATORS = {
    "Euler": "mjINT_EULER",
    "implicit": "mjINT_IMPLICITFAST",
    "Runge-Kutta 4": "mjINT_RK4",
}
STEPS = (1, 10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """One integrator.

    Attributes:
        method: integrator and steps per held force.
        seconds: best time of the whole motion.
        error: largest difference of the actuated coordinates from the reference, m or rad.
    """

    method: str
    seconds: float
    error: float


def rollouts(
    model: Model, q: Array, force: Array, actuated: Array, period: float, seconds: float
) -> list[Rollout]:
    """Run under forces held over periods, from rest.

    Args:
        model: the machine; its actuators drive one joint each.
        q: coordinates at the start (n_q,).
        force: actuator forces (N, n_u).
        actuated: actuator positions at the ends of the periods (N, n_u), to compare with.
        period: s.
        seconds: how long to measure each.

    Raises:
        EngineError: MuJoCo is not installed.
        NotComparable: the machine cannot be given to it.
    """
    mj = engine_module("mujoco", "MuJoCo")
    from mujoco import rollout

    shape, engine = model.topology, closing_engine(model.mechanism)
    still = {name: np.zeros(1) for name in shape.velocity_names}
    start = NamedMotion(
        q={name: q[i : i + 1] for i, name in enumerate(shape.coordinate_names)}, v=still, a=still
    )
    peer, states = peer_tree(engine.tree), tree_states(engine, start)
    made, q_order, v_order = mujoco_model(mj, peer)
    S = engine.tree.loads.transmission
    names = list(engine.tree.coordinate_names)
    driven = [q_order[names.index(shape.velocity_names[i])] for i in model.assembly.driven]
    ratio = np.diagonal(model.assembly.loops.transmission[:, list(model.assembly.driven)])
    found = []
    for label, integrator in INTEGRATORS.items():
        for steps in STEPS:
            made.opt.integrator, made.opt.timestep = (
                getattr(mj.mjtIntegrator, integrator),
                period / steps,
            )
            made.eq_solref[:] = [CONSTANT * made.opt.timestep, 1.0]
            made.eq_solimp[:] = [IMPEDANCE, IMPEDANCE, 1e-3, 0.5, 2.0]
            data = mj.MjData(made)
            data.qpos[q_order] = states.q[0]
            mj.mj_forward(made, data)
            kind = mj.mjtState.mjSTATE_FULLPHYSICS
            state = np.zeros(mj.mj_stateSize(made, kind))
            mj.mj_getState(made, data, state, kind)
            applied = np.zeros((len(force) * steps, made.nv))
            applied[:, v_order] = np.repeat(force @ S, steps, axis=0)
            times, until = [], time.perf_counter() + seconds
            while time.perf_counter() < until or not times:
                begin = time.perf_counter()
                out, _ = rollout.rollout(
                    made,
                    data,
                    state,
                    applied[None],
                    control_spec=int(mj.mjtState.mjSTATE_QFRC_APPLIED),
                )
                times.append(time.perf_counter() - begin)
            # a state is the time, then the coordinates
            reached = out[0, steps - 1 :: steps, 1 : 1 + made.nq][:, driven] * ratio
            error = float(np.abs(reached - actuated).max())
            found.append(
                Rollout(
                    method=f"{label}, {steps} step{'s' if steps > 1 else ''}",
                    seconds=min(times),
                    error=error,
                )
            )
    return found
