"""MuJoCo with the loops closed by its own (soft) constraints: `mj_inverse` and `mj_forward`, through its Python module.

The time of a call in C is that of the call from Python minus that of a call of the same signature
that does nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np

from peers.bodies import PeerBody, PeerEnd, PeerTree
from peers.states import NotComparable, PeerStates
from peers.timing import LOOP, seconds_per_call
from tauloop.mechanism.poses import Array, rotation_quaternion
from tauloop.verification.engines import Engine
from tauloop.verification.engines.optional import engine_module
from tauloop.verification.engines.trees.rigid_tree import GROUND

#: Repetitions of a call in one state: sweeps of a millisecond, because longer ones are rarely
#: undisturbed.
REPEATS = 10
#: Number of data structures, each in a different state, that a measurement cycles through.
PLACES = 16


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MujocoResult:
    """Results; times in seconds for a state.

    Attributes:
        version: of MuJoCo.
        inverse, forward: of `mj_inverse` and `mj_forward` in C; the latter None where the tree's
            mass matrix cannot be inverted.
        overhead: of a Python call that does nothing, left out of these two.
        loop: of a Python loop that sets a state, calls `mj_inverse` and reads the forces.
        tree_forces: M a + h (N, n_v) on the tree's velocities, the soft constraint forces added
            back.
    """

    version: str
    inverse: float
    forward: float | None
    overhead: float
    loop: float
    tree_forces: Array


def run(peer: PeerTree, states: PeerStates, seconds: float) -> MujocoResult:
    """Measure, each of four measurements for `seconds`.

    Raises:
        EngineError: MuJoCo is not installed.
        NotComparable: rotor inertias that couple joints.
    """
    mj = engine_module("mujoco", "MuJoCo")
    # Massless links make MuJoCo write a warning of a singular mass matrix into a file in the current folder.
    before = mj.get_mju_user_warning()
    mj.set_mju_user_warning(_ignored)
    try:
        return _run(mj, peer, states, seconds)
    finally:
        mj.set_mju_user_warning(before)


def file_forces(engine: Engine, states: PeerStates, tau: Array) -> Array:
    """Return forces (N, n_v) on the engine's velocities as forces on the machine file's."""
    return engine.file_forces(states.in_file, tau)


def _ignored(message: str) -> None:
    """Ignore a warning of MuJoCo."""


def _run(mj: Any, peer: PeerTree, states: PeerStates, seconds: float) -> MujocoResult:
    model, q_order, v_order = mujoco_model(mj, peer)
    q = np.zeros((len(states.q), model.nq))
    v, a = np.zeros((len(q), model.nv)), np.zeros((len(q), model.nv))
    q[:, q_order], v[:, v_order], a[:, v_order] = states.q, states.v, states.a

    data = mj.MjData(model)
    tau = np.empty_like(v)
    for i in range(len(q)):
        data.qpos[:], data.qvel[:], data.qacc[:] = q[i], v[i], a[i]
        mj.mj_inverse(model, data)
        tau[i] = data.qfrc_inverse + data.qfrc_constraint

    def loop() -> None:
        qpos, qvel, qacc, inverse = data.qpos, data.qvel, data.qacc, mj.mj_inverse
        for q_i, v_i, a_i in zip(q[:LOOP], v[:LOOP], a[:LOOP], strict=True):
            qpos[:], qvel[:], qacc[:] = q_i, v_i, a_i
            inverse(model, data)
            data.qfrc_inverse.copy()

    places = [mj.MjData(model) for _ in range(min(PLACES, len(q)))]
    for i, place in enumerate(places):
        place.qpos[:], place.qvel[:], place.qacc[:] = q[i], v[i], a[i]

    def called(function: Callable[[Any, Any], None]) -> float:
        def work() -> None:
            for place in places:
                for _ in repeat(None, REPEATS):
                    function(model, place)

        return seconds_per_call(work, seconds, REPEATS * len(places))

    # No actuator is in the model, so this one returns at once.
    overhead = called(mj.mj_transmission)
    inverse = called(mj.mj_inverse) - overhead
    forward = called(mj.mj_forward) - overhead if states.is_regular else None
    return MujocoResult(
        version=mj.__version__,
        inverse=inverse,
        forward=forward,
        overhead=overhead,
        loop=seconds_per_call(loop, seconds, min(LOOP, len(q))),
        tree_forces=tau[:, v_order],
    )


def mujoco_model(mj: Any, peer: PeerTree) -> tuple[Any, Array, Array]:
    """Return the model, and the indices of the tree's coordinates and velocities in it.

    As in `tauloop.verification.engines`, it is compiled with unit masses, then given the true ones:
    the compiler rejects rods without an axial moment of inertia.
    """
    loads = peer.tree.loads
    if np.any(loads.inertia != np.diag(np.diag(loads.inertia))):
        raise NotComparable("rotors that couple joints")
    spec = mj.MjSpec()
    spec.option.gravity = peer.tree.gravity
    bodies = {GROUND: spec.worldbody}
    moments: list[Array] = []
    for i, body in enumerate(peer.bodies):
        own, axes = np.linalg.eigh(body.inertia.about_center)
        axes[:, 2] *= np.sign(np.linalg.det(axes))
        moments.append(own)
        bodies[i] = bodies[body.parent].add_body(
            name=f"body {i}",
            pos=body.at.position,
            quat=rotation_quaternion(body.at.rotation),
            mass=1.0,
            ipos=body.inertia.center,
            iquat=rotation_quaternion(axes),
            inertia=np.ones(3),
            explicitinertial=True,
        )
        _add_joints(mj, bodies[i], i, body)
    for i, constraint in enumerate(peer.constraints):
        names = [f"{side} {i}" for side in ("first", "second")]
        for name, end in zip(names, (constraint.first, constraint.second), strict=True):
            _add_site(bodies, name, end)
        spec.add_equality(
            type=mj.mjtEq.mjEQ_CONNECT,
            name1=names[0],
            name2=names[1],
            objtype=mj.mjtObj.mjOBJ_SITE,
            name=f"loop {i}",
        )
    model = spec.compile()
    for i, body in enumerate(peer.bodies):
        number = model.body(f"body {i}").id
        model.body_mass[number], model.body_inertia[number] = body.inertia.mass, moments[i]
    q_order, v_order = _orders(model, peer)
    for tree, own in enumerate(v_order):
        joint = model.dof_jntid[own]
        model.dof_armature[own] = loads.inertia[tree, tree]
        if loads.stiffness[tree] != 0.0:
            model.jnt_stiffness[joint] = loads.stiffness[tree]
            model.qpos_spring[model.jnt_qposadr[joint]] = (
                loads.preload[tree] / loads.stiffness[tree]
            )
    mj.mj_setConst(model, mj.MjData(model))  # what the compiler derived from the unit masses
    return model, q_order, v_order


def _is_free(body: PeerBody) -> bool:
    """Return whether its joints are MuJoCo's free joint, which is relative to the world."""
    return (
        body.parent == GROUND
        and body.kinds == ("slide", "slide", "slide", "ball")
        and not body.primitives[3].is_reversed
        and np.array_equal(body.axes[:3], np.eye(3))
        and np.array_equal(body.at.rotation, np.eye(3))
        and not np.any(body.at.position)
    )


def _add_joints(mj: Any, body: Any, i: int, peer: PeerBody) -> None:
    if _is_free(peer):
        body.add_joint(name=f"joint {i} 0", type=mj.mjtJoint.mjJNT_FREE)
        return
    kinds = {
        "hinge": mj.mjtJoint.mjJNT_HINGE,
        "slide": mj.mjtJoint.mjJNT_SLIDE,
        "ball": mj.mjtJoint.mjJNT_BALL,
    }
    for k, primitive in enumerate(peer.primitives):
        body.add_joint(name=f"joint {i} {k}", type=kinds[primitive.kind], axis=primitive.axis)


def _add_site(bodies: dict[int, Any], name: str, end: PeerEnd) -> None:
    bodies[end.body].add_site(
        name=name, pos=end.at.position, quat=rotation_quaternion(end.at.rotation)
    )


def _orders(model: Any, peer: PeerTree) -> tuple[Array, Array]:
    tree = peer.tree
    q_order = np.zeros(len(tree.coordinate_names), dtype=int)
    v_order = np.zeros(len(tree.velocity_names), dtype=int)
    for i, body in enumerate(peer.bodies):
        for k, primitive in enumerate(body.primitives):
            # a free joint has its three distances and its quaternion in the order of the primitives
            joint, skip = (
                (model.joint(f"joint {i} 0"), k)
                if _is_free(body)
                else (model.joint(f"joint {i} {k}"), 0)
            )
            n_q, n_v = len(primitive.coordinates), len(primitive.velocities)
            q_order[body.q[k] : body.q[k] + n_q] = joint.qposadr[0] + skip + np.arange(n_q)
            v_order[body.v[k] : body.v[k] + n_v] = joint.dofadr[0] + skip + np.arange(n_v)
    return q_order, v_order
