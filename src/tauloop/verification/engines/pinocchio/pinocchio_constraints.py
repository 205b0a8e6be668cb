"""Forward and inverse dynamics from Pinocchio's proximal constraint solver and mimic joints.

The accelerations do not depend on `tauloop.verification.engines.trees.constraints`, which only
computes the residuals afterwards. Pinocchio closes loops by coinciding points and by welds. A cut
revolute joint becomes two points on its axis, which gives six rows instead of five, and the welds
of parallel linkages are redundant. Therefore the solver needs the regularization mu. The
proximal iterations remove the bias due to mu: the values 1e-6 and 1e-12 give the same
accelerations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import EngineError, Problems
from tauloop.mechanism.poses import Array
from tauloop.verification.engines.engine import NO_ACTION_NEEDED
from tauloop.verification.engines.least_squares import LeastSquares, times
from tauloop.verification.engines.pinocchio.in_pinocchio import PinocchioEngine
from tauloop.verification.engines.pinocchio.pinocchio_mimics import mimic_solver
from tauloop.verification.engines.results import EngineAccelerations, EngineForces, TreeStates
from tauloop.verification.engines.trees.rigid_tree import GROUND, Anchor, Constraint

#: Regularization mu. Without it, the solver returns wrong results for redundant rows without an
#: error; for other machines it costs one more iteration.
MU = 1e-8
#: Residual at which the proximal iteration stops.
PROXIMAL_TOLERANCE = 1e-14
#: Maximum number of steps of the proximal iteration.
MAX_PROXIMAL_STEPS = 50
#: Scaled condition number above which Pinocchio cannot invert the tree's mass matrix.
MAX_MASS_CONDITION = 1e12
#: Scaled condition number of the actuators' accelerations per force above which forces are not
#: unique.
MAX_ACTUATOR_CONDITION = 1e10
#: Distance of the second point of a revolute joint along its axis, m; a typical size of machines.
AXIS_LENGTH = 0.1
#: Two unit vectors are equal if they differ by less than this value.
UNIT_VECTOR_TOLERANCE = 1e-12

#: Label of accelerations from the constraint solver.
SOLVER = "constraint solver"
#: Label of accelerations from mimic joints.
MIMICS = "mimic joints"


def constrained_dynamics(
    engine: PinocchioEngine, states: TreeStates, forces: Array, wrench: Array | None = None
) -> EngineAccelerations:
    """Return the accelerations of the tree from `constraintDynamics`, or from mimic joints.

    Args:
        engine: Pinocchio with the machine.
        states: positions and velocities.
        forces: actuator forces (N, n_u), N or N m.
        wrench: (6,) force and moment at the tool center point in the base frame, N and N m.

    Raises:
        EngineError: loops cannot be closed by points and welds, rotors couple joints, the tree has
            parts without inertia, or the solver returns values that are not finite.
    """
    a = _solver(engine, states)(
        _applied_forces(engine, states, forces) + engine.tool_forces(states, wrench)
    )
    return EngineAccelerations(
        names=states.names, accelerations=a, residuals=states.moving(a), method=_method(engine)
    )


def constrained_inverse_dynamics(engine: PinocchioEngine, states: TreeStates) -> EngineForces:
    """Return the actuator forces for the actuators' accelerations, using only forward dynamics.

    Accelerations are affine in the actuator forces u: a(u) = a(0) + B u. Therefore n_u + 1 runs of
    forward dynamics give a(0) and B. The forces follow from A B u = A (a - a(0)) with the
    prescribed accelerations a, and the matrix A from velocities to actuator velocities. An
    additional run corrects u. Accelerations of passive joints are not prescribed, as in hybrid
    inverse dynamics. The forces of redundant actuators have the smallest sum of squares.

    Args:
        engine: Pinocchio with the machine.
        states: positions, velocities and accelerations; only the accelerations of actuators matter.

    Raises:
        EngineError: see `constrained_dynamics`; or actuators can work against each other.
    """
    solve = _solver(engine, states)
    loads = engine.tree.loads
    A = loads.transmission
    samples = len(states.q)

    def accelerations(u: Array) -> Array:
        """Return the accelerations (N, n_v) for actuator forces (N, n_u)."""
        return solve(_applied_forces(engine, states, u))

    u = np.zeros((samples, len(A)))
    start = accelerations(u)
    columns = [accelerations(u + unit) - start for unit in np.eye(len(A))]
    response = np.stack([column @ A.T for column in columns], axis=2)
    if len(A) > LeastSquares.of(states.jacobian).max_nullity():
        inverse = np.linalg.pinv(response, rcond=1 / MAX_ACTUATOR_CONDITION, hermitian=True)
    else:
        _require_unique(engine, response)
        inverse = np.linalg.inv(response)
    solution = start
    for _ in range(2):
        u = u + times(np.asarray(inverse), (states.a - solution) @ A.T)
        solution = accelerations(u)
    M = engine.whole_mass_matrix(states)
    imbalance = times(M, states.a - solution)
    inertial_forces = times(M, states.a)
    largest = np.maximum(np.abs(inertial_forces).max(axis=1), np.abs(u @ A).max(axis=1))
    return EngineForces(
        actuators=loads.actuators,
        forces=u,
        residuals=states.moving(solution),
        balance=np.abs(imbalance).max(axis=1) / np.maximum(largest, np.finfo(float).tiny),
        method=_method(engine),
    )


def _require_unique(engine: PinocchioEngine, response: Array) -> None:
    """Check that actuator forces are unique.

    Raises:
        EngineError: actuators can work against each other.
    """
    if _worst_condition(response) > MAX_ACTUATOR_CONDITION:
        what = (
            f"can work against each other without moving {engine.tree.name}, so that their forces "
            "are not unique"
        )
        remedy = "compare poses away from singularities"
        where = f"actuators {', '.join(engine.tree.loads.actuators)}"
        raise EngineError.of(where, what, remedy)


def _worst_condition(matrices: Array) -> float:
    """Return the largest condition number of matrices (N, n, n), scaled to unit diagonals."""
    scale = np.sqrt(np.abs(np.diagonal(matrices, axis1=1, axis2=2)))
    scale = np.where(scale > 0.0, scale, 1.0)
    scaled = matrices / (scale[:, :, None] * scale[:, None, :])
    return float(np.max(np.linalg.cond(scaled)))


def _method(engine: PinocchioEngine) -> str:
    """Return the label of the algorithm for this machine."""
    return MIMICS if len(engine.tree.loads.gears) else SOLVER


def _applied_forces(engine: PinocchioEngine, states: TreeStates, forces: Array) -> Array:
    """Return the forces (N, n_v) of actuators and springs on the machine file's velocities."""
    loads = engine.tree.loads
    return np.asarray(forces @ loads.transmission - loads.springs(states.q))


def _solver(engine: PinocchioEngine, states: TreeStates) -> Callable[[Array], Array]:
    """Return the function from forces (N, n_v) to accelerations (N, n_v).

    Forces and accelerations belong to the machine file's velocities.
    """
    _require_representable(engine, states)
    if len(engine.tree.loads.gears):
        return mimic_solver(engine, states)
    return _proximal_solver(engine, states)


def _proximal_solver(engine: PinocchioEngine, states: TreeStates) -> Callable[[Array], Array]:
    """Return the function from forces to accelerations that uses the proximal solver."""
    pin = engine.library
    model = pin.Model(engine.model)
    armature = np.zeros(model.nv)
    armature[engine.v_order] = np.diag(engine.tree.loads.inertia)
    model.armature = armature
    contacts = pin.StdVec_RigidConstraintModel()
    contacts.extend(_contacts(engine, states, model))
    workspaces = pin.StdVec_RigidConstraintData()
    workspaces.extend(contact.createData() for contact in contacts)
    settings = pin.ProximalSettings(PROXIMAL_TOLERANCE, MU, MAX_PROXIMAL_STEPS)
    data = model.createData()
    pin.initConstraintDynamics(model, data, contacts, workspaces)

    def solve(tau: Array) -> Array:
        samples = engine.model_states(states, tau)
        a = np.array(
            [
                pin.constraintDynamics(model, data, *each, contacts, workspaces, settings)
                for each in samples
            ]
        )
        if not np.all(np.isfinite(a)):
            failed = np.sum(~np.isfinite(a).all(axis=1))
            what = f"Pinocchio's solver returns non-finite values in {failed} of {counted(len(a), 'sample')}"
            raise EngineError.of(engine.tree.name, what, "avoid poses near singularities")
        # Orthogonal blocks map velocities and forces between the two sets of axes, so the same map
        # applies to accelerations.
        return engine.file_forces(states, a[:, engine.v_order])

    return solve


def _require_representable(engine: PinocchioEngine, states: TreeStates) -> None:
    """Check that Pinocchio's solvers can represent the machine.

    Raises:
        EngineError: the solvers cannot represent the machine; lists all reasons.
    """
    tree = engine.tree
    problems = Problems()
    for constraint in tree.constraints:
        if not (_is_weld(constraint) or _is_point(constraint) or _axis(constraint) is not None):
            what = (
                f"requires {len(constraint.position_directions)} rows of points and "
                f"{len(constraint.orthogonal_pairs)} of directions, but Pinocchio closes loops only by "
                "coinciding points and welds"
            )
            problems.add(constraint.name, what, NO_ACTION_NEEDED)
    if len(tree.loads.gears) and tree.constraints:
        what = (
            "couple coordinates of a machine with loops, but Pinocchio's constraint solver does "
            "not support mimic joints"
        )
        problems.add("couplings", what, NO_ACTION_NEEDED)
    if tree.loads.curves:
        what = "follow curves of other coordinates, but Pinocchio's mimic joints are linear"
        problems.add("couplings", what, NO_ACTION_NEEDED)
    if np.any(tree.loads.inertia != np.diag(np.diag(tree.loads.inertia))):
        problems.add(
            "rotors",
            "couple joints, but Pinocchio has one rotor for each joint",
            NO_ACTION_NEEDED,
        )
    if _worst_condition(engine.whole_mass_matrix(states)) > MAX_MASS_CONDITION:
        what = "has parts without inertia, so that its mass matrix cannot be inverted"
        problems.add(tree.name, what, "give every part a mass")
    EngineError.raise_if_any(problems)


def _is_point(constraint: Constraint) -> bool:
    """Return whether a constraint makes two points coincide."""
    return len(constraint.position_directions) == 3 and not len(constraint.orthogonal_pairs)


def _is_weld(constraint: Constraint) -> bool:
    """Return whether a constraint welds two frames."""
    return len(constraint.position_directions) == 3 and len(constraint.orthogonal_pairs) == 3


def _axis(constraint: Constraint) -> Array | None:
    """Return the axis (3,) of a revolute joint in its second frame; None for other joints.

    The axis is the common second direction of both pairs.
    """
    if len(constraint.position_directions) != 3 or len(constraint.orthogonal_pairs) != 2:
        return None
    first, second = constraint.orthogonal_pairs[:, 1]
    return np.asarray(first) if np.max(np.abs(first - second)) < UNIT_VECTOR_TOLERANCE else None


def _contacts(engine: PinocchioEngine, states: TreeStates, model: Any) -> Iterator[Any]:
    """Yield Pinocchio's constraints: a weld, a point, or two points on an axis."""
    pin = engine.library
    for constraint in engine.tree.constraints:
        origins = (np.zeros(3), np.zeros(3))
        offset_pairs = [origins]
        axis = _axis(constraint)
        if axis is not None:
            first_axis = np.cross(
                constraint.orthogonal_pairs[0, 0], constraint.orthogonal_pairs[1, 0]
            )
            offset_pairs.append(
                (
                    AXIS_LENGTH
                    * _axis_sign(engine, states, constraint, first_axis, axis)
                    * first_axis,
                    AXIS_LENGTH * axis,
                )
            )
        kind = pin.ContactType.CONTACT_6D if _is_weld(constraint) else pin.ContactType.CONTACT_3D
        for offsets in offset_pairs:
            ends: list[Any] = []
            for anchor, offset in zip((constraint.first, constraint.second), offsets, strict=True):
                joint, link = _joint_of_anchor(engine, anchor)
                pose = pin.SE3(anchor.pose.rotation, anchor.pose.position)
                frame = pose * pin.SE3(np.eye(3), offset)
                ends += [joint, link * frame]
            yield pin.RigidConstraintModel(kind, model, *ends, pin.ReferenceFrame.LOCAL)


def _joint_of_anchor(engine: PinocchioEngine, anchor: Anchor) -> tuple[int, Any]:
    """Return the joint that carries an anchor's link, and the pose of the link on this joint."""
    if anchor.link == GROUND:
        return 0, engine.library.SE3.Identity()
    frame = engine.model.frames[engine.frames[engine.tree.anchored.index(anchor.link)]]
    return frame.parentJoint, frame.placement


def _axis_sign(
    engine: PinocchioEngine,
    states: TreeStates,
    constraint: Constraint,
    first_axis: Array,
    axis: Array,
) -> float:
    """Return +1 if the axes in the first and second frame have equal directions, -1 if opposite.

    The loops must be closed.
    """
    motion = engine.link_motion(*engine.own(states)[:2])
    index_of = {link: i for i, link in enumerate(engine.tree.anchored)}
    directions = []
    for anchor, direction in ((constraint.first, first_axis), (constraint.second, axis)):
        R = np.eye(3) if anchor.link == GROUND else motion.rotation[0, index_of[anchor.link]]
        directions.append(R @ anchor.pose.rotation @ direction)
    return float(np.sign(directions[0] @ directions[1]))
