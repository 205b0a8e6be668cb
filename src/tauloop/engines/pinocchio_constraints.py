"""Pinocchio's own constrained forward dynamics: its proximal solver on points that coincide.

Nothing of `tauloop.engines.constraints` takes part in the accelerations; it only tells afterwards what is left open.
Pinocchio closes loops by points alone: a cut revolute joint becomes two points on its axis, six rows where five would
do, so that the solver's regularisation mu is needed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tauloop.engines.in_pinocchio import PinocchioEngine
from tauloop.engines.least_squares import times
from tauloop.engines.poses import Array
from tauloop.engines.results import EngineAccelerations, TreeStates
from tauloop.engines.rigid_tree import GROUND, Anchor, Constraint
from tauloop.errors import EngineError, Problem

#: Regularisation where rows are redundant: with none the solver silently gives nonsense.
REDUNDANT_MU = 1e-8
#: Where the proximal iteration stops, and after how many steps.
ACCURACY, MOST_ITERATIONS = 1e-14, 50
#: Condition number, free of units, beyond which Pinocchio cannot invert the tree's mass matrix.
MOST_CONDITION = 1e12
#: Distance of the second point of a revolute joint along its axis, m: of the size of machines.
AXIS_LENGTH = 0.1
#: Two directions are the same when they differ by less.
SAME_DIRECTION = 1e-12


def constrained_dynamics(engine: PinocchioEngine, states: TreeStates, forces: Array) -> EngineAccelerations:
    """Accelerations of the tree by `constraintDynamics`.

    Args:
        engine: Pinocchio with the machine.
        states: positions and velocities.
        forces: of the actuators (N, n_u), N or N m.

    Raises:
        EngineError: the loops need more than points that coincide, rotors couple joints, the tree has parts without
            inertia, or the solver gives no numbers.
    """
    _require_representable(engine, states)
    pin, loads = engine.library, engine.tree.loads
    model = pin.Model(engine.model)
    armature = np.zeros(model.nv)
    armature[engine.v_order] = np.diag(loads.inertia)
    model.armature = armature
    contacts = pin.StdVec_RigidConstraintModel()
    for point in _points(engine, states):
        contacts.append(pin.RigidConstraintModel(pin.ContactType.CONTACT_3D, model, *point[0], *point[1]))
    workspaces = pin.StdVec_RigidConstraintData()
    for contact in contacts:
        workspaces.append(contact.createData())
    is_redundant = np.linalg.matrix_rank(states.jacobian[0]) < 3 * len(contacts)
    settings = pin.ProximalSettings(ACCURACY, REDUNDANT_MU if is_redundant else 0.0, MOST_ITERATIONS)
    data = model.createData()
    pin.initConstraintDynamics(model, data, contacts, workspaces)
    applied = forces @ loads.transmission
    for i, j in enumerate(loads.q_index):
        if j >= 0:
            applied[:, i] -= loads.stiffness[i] * states.q[:, j] - loads.preload[i]
    samples = engine.model_states(states, applied)
    a = np.array([pin.constraintDynamics(model, data, *sample, contacts, workspaces, settings) for sample in samples])
    if not np.all(np.isfinite(a)):
        what = f"its solver gives no numbers in {np.sum(~np.isfinite(a).all(axis=1))} of {len(a)} samples"
        raise EngineError(Problem(where=engine.tree.name, what=what, remedy="look for poses near singularities"))
    # orthogonal blocks take velocities and forces between the two sets of axes, so one map serves both
    a = engine.file_forces(states, a[:, engine.v_order])
    open_rate = np.max(np.abs(times(states.jacobian, a) + states.bias), axis=1, initial=0.0)
    residuals = replace(states.residuals, closure_acceleration=open_rate)
    return EngineAccelerations(names=states.names, accelerations=a, residuals=residuals)


def _require_representable(engine: PinocchioEngine, states: TreeStates) -> None:
    tree, problems = engine.tree, []
    for constraint in tree.constraints:
        if len(constraint.points) != 3 or (len(constraint.directions) and _axis(constraint) is None):
            what = f"demands {len(constraint.points)} rows of points and {len(constraint.directions)} of directions"
            problems.append(
                Problem(where=constraint.name, what=what, remedy="Pinocchio closes loops by points that coincide alone")
            )
    if len(tree.loads.gears):
        problems.append(Problem(where="couplings", what="couple coordinates", remedy="Pinocchio cannot hold them"))
    if np.any(tree.loads.inertia != np.diag(np.diag(tree.loads.inertia))):
        problems.append(Problem(where="rotors", what="couple joints", remedy="Pinocchio has one rotor for each joint"))
    M = engine.whole_mass_matrix(states)
    size = np.sqrt(np.abs(np.diagonal(M, axis1=1, axis2=2)))
    size[size == 0.0] = 1.0
    if np.max(np.linalg.cond(M / (size[:, :, None] * size[:, None, :]))) > MOST_CONDITION:
        what = "has parts without inertia, so that its mass matrix cannot be inverted"
        problems.append(Problem(where=tree.name, what=what, remedy="give every part a mass"))
    if problems:
        raise EngineError(problems)


def _axis(constraint: Constraint) -> Array | None:
    """Axis (3,) of a revolute joint in its second frame: the one direction that both pairs share; else None."""
    if len(constraint.directions) != 2:
        return None
    first, second = constraint.directions[:, 1]
    return np.asarray(first) if np.max(np.abs(first - second)) < SAME_DIRECTION else None


def _points(engine: PinocchioEngine, states: TreeStates) -> list[tuple[tuple[int, Any], tuple[int, Any]]]:
    """(joint, placement) of both sides of each pair of points that coincide."""
    pin = engine.library
    found = []
    for constraint in engine.tree.constraints:
        origins = (np.zeros(3), np.zeros(3))
        places = [origins]
        axis = _axis(constraint)
        if axis is not None:
            across = np.cross(constraint.directions[0, 0], constraint.directions[1, 0])
            places.append((AXIS_LENGTH * _sense(engine, states, constraint, across, axis) * across, AXIS_LENGTH * axis))
        for one, two in places:
            ends = []
            for anchor, offset in ((constraint.first, one), (constraint.second, two)):
                joint, link = _carrier(engine, anchor)
                ends.append(
                    (joint, link * pin.SE3(anchor.at.rotation, anchor.at.position) * pin.SE3(np.eye(3), offset))
                )
            found.append((ends[0], ends[1]))
    return found


def _carrier(engine: PinocchioEngine, anchor: Anchor) -> tuple[int, Any]:
    """Joint that carries an anchor's link, and the link's frame on it."""
    if anchor.link == GROUND:
        return 0, engine.library.SE3.Identity()
    frame = engine.model.frames[engine.frames[engine.tree.anchored.index(anchor.link)]]
    return frame.parentJoint, frame.placement


def _sense(engine: PinocchioEngine, states: TreeStates, constraint: Constraint, across: Array, axis: Array) -> float:
    """Whether the axis in the first frame points as that in the second does (+1) or against it, loops closed."""
    moving = engine.link_motion(*engine.own(states)[:2])
    place = {link: i for i, link in enumerate(engine.tree.anchored)}
    directions = []
    for anchor, direction in ((constraint.first, across), (constraint.second, axis)):
        R = np.eye(3) if anchor.link == GROUND else moving.rotation[0, place[anchor.link]]
        directions.append(R @ anchor.at.rotation @ direction)
    return float(np.sign(directions[0] @ directions[1]))
