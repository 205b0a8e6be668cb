"""Static equilibrium as equations of a pose: machines that hang freely in the freedoms that their actuators leave.

With all actuators held, velocities satisfy J v = 0, J = (K; A): loops and leading encoders. A
machine at rest hangs still where loops and actuators carry all forces tau(q) that it needs (weight,
springs), tau = J^T mu. Velocities are scaled by D, so that angles count as lengths: J_s = J D^-1,
tau_s = D^-1 tau. With

    mu = (J_s J_s^T)^-1 J_s tau_s,    r = tau_s - J_s^T mu,

r is zero at equilibrium. It has as many independent components as the machine has open freedoms.
Rows of it that are independent at the reference pose are the equations; the characteristic length
over the weight makes them lengths.

Source: Abbasnejad and Carricato 2015, Direct geometrico-static problem of underconstrained
cable-driven parallel robots with n cables.
"""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca
import numpy as np
import scipy.linalg

from tauloop.common.errors import InputError
from tauloop.common.records import dataclass
from tauloop.equations.assembly.assembly import Assembly
from tauloop.equations.assembly.loops import closure, nominal, stacked
from tauloop.equations.newton_euler import transmission, tree_forces
from tauloop.equations.tree import TreeMotion, coordinate_rates, symbolic_motion
from tauloop.equations.values import Entries, dynamic_parameters
from tauloop.mechanism.bodies import called_winches


@dataclass(frozen=True, slots=True, kw_only=True)
class Equilibrium:
    """Which equations say that a machine hangs still, and their scale.

    Attributes:
        rows: velocities whose components of the balance are the equations.
        force: of the machine at its reference pose, N: what makes the equations plain numbers.
        length: the machine's characteristic length, m.
    """

    rows: tuple[int, ...]
    force: float
    length: float


def equilibrium_of(assembly: Assembly, kept: Sequence[int]) -> Equilibrium:
    """Choose the equations of equilibrium of a machine at its reference pose.

    Args:
        assembly: the machine.
        kept: its independent loop equations.

    Raises:
        InputError: the actuators leave no freedom open, or no force acts on what is open.
    """
    shape, length = assembly.topology, assembly.mechanism.characteristic_length
    count = shape.n_v - len(kept) - len(assembly.leading)
    where = "equilibrium"
    if count <= 0:
        what = "the actuators leave no freedom open, so the pose does not depend on the weight"
        raise InputError.of(where, what, "leave the option out: encoders and loops give the pose")
    motion = symbolic_motion(shape, nominal(assembly.mechanism), is_moving=False)
    J, tau = _scaled(assembly, motion, kept)
    values = ca.Function("balance", [motion.q], [ca.densify(J), ca.densify(tau)])(assembly.q)
    J_value, tau_value = (np.array(ca.DM(value).full()) for value in values)
    _, _, directions = np.linalg.svd(J_value)
    open_directions = directions[-count:]
    force = float(np.linalg.norm(tau_value))
    if not force > 0.0:
        remedy = "state gravity and masses, or leave the option out"
        raise InputError.of(where, "no weight or spring acts at the reference pose", remedy)
    _, pivots = scipy.linalg.qr(open_directions, mode="r", pivoting=True)
    return Equilibrium(
        rows=tuple(sorted(int(i) for i in pivots[:count])), force=force, length=length
    )


def equilibrium_equations(
    assembly: Assembly, motion: TreeMotion, kept: Sequence[int], equilibrium: Equilibrium
) -> ca.SX:
    """Equations of equilibrium at a pose at rest, m."""
    J, tau = _scaled(assembly, motion, kept)
    balance = tau - J.T @ _multipliers(J, tau)
    return ca.SX(equilibrium.length / equilibrium.force * balance[list(equilibrium.rows)])


def cable_tensions(
    assembly: Assembly, motion: TreeMotion, kept: Sequence[int]
) -> tuple[tuple[str, ...], ca.SX]:
    """Names of all cables and their tensions at a pose at rest, N: minus the multipliers of their equations.

    Cables are rods with bounds of their tension, and lines over pulleys, by the winches that let
    them out.
    """
    J, tau = _scaled(assembly, motion, kept)
    multipliers = _multipliers(J, tau)
    elements, mechanism = assembly.loops.elements, assembly.mechanism
    rods = {rod.name for rod in mechanism.rods if rod.tension is not None}
    pulling = {elements[row]: k for k, row in enumerate(kept) if elements[row] in rods}
    winches = called_winches(mechanism)
    for k, i in enumerate(assembly.leading):
        actuator = mechanism.actuators[i]
        if actuator.name in winches and not assembly.topology.motor_turns(actuator):
            pulling[actuator.name] = len(kept) + k
    return tuple(pulling), ca.densify(-multipliers[list(pulling.values())])


def _multipliers(J: ca.SX, tau: ca.SX) -> ca.SX:
    return ca.SX(ca.solve(J @ J.T, J @ tau))


def _scaled(assembly: Assembly, motion: TreeMotion, kept: Sequence[int]) -> tuple[ca.SX, ca.SX]:
    """J_s (r, n_v) of loops and leading encoders, and tau_s (n_v,), N, at a pose at rest."""
    mechanism, shape, q = assembly.mechanism, assembly.topology, motion.q
    equations = closure(mechanism, motion)
    phi, _, _ = stacked(tuple(equations[i] for i in kept))
    K = ca.jacobian(phi, q) @ coordinate_rates(shape, q)
    A = transmission(mechanism, shape, motion.values)
    parameters = dynamic_parameters(mechanism, shape)
    pi = ca.vertcat(
        *(ca.SX(motion.values.scalar(parameter.expression)) for parameter in parameters)
    )
    tau = tree_forces(mechanism, motion, Entries(parameters, pi))
    inverse = ca.DM(velocity_scale(assembly))
    return ca.vertcat(K, A[list(assembly.leading), :]) @ ca.diag(inverse), ca.SX(inverse * tau)


def velocity_scale(assembly: Assembly) -> np.ndarray:
    """Diagonal (n_v,) of D^-1: one for lengths, one over the characteristic length for angles."""
    shape, length = assembly.topology, assembly.mechanism.characteristic_length
    return np.where(np.array(shape.angular, dtype=bool), 1.0 / length, 1.0)


def least_stiffness(
    assembly: Assembly, equilibrium: Equilibrium, kinematic: np.ndarray, balance: np.ndarray
) -> np.ndarray:
    """Least eigenvalue (N,) of the stiffness against motions with held actuators, over weight per length.

    Positive where the machine hangs in a stable equilibrium. With directions Z of J_s Z = 0 and the
    chosen rows R, the rates of the equations are (L/F) R Z H Z^T, H the stiffness.

    Args:
        assembly: the machine.
        equilibrium: its equations.
        kinematic: derivatives (N, r, n_v) of loops and leading encoders in the velocities.
        balance: derivatives (N, k, n_v) of the equations of equilibrium.
    """
    inverse = velocity_scale(assembly)
    count = balance.shape[1]
    _, _, directions = np.linalg.svd(kinematic * inverse)
    Z = directions[:, -count:].transpose(0, 2, 1)
    stiffness = np.linalg.solve(Z[:, list(equilibrium.rows)], (balance * inverse) @ Z)
    return np.asarray(np.linalg.eigvalsh(0.5 * (stiffness + stiffness.transpose(0, 2, 1)))[:, 0])
