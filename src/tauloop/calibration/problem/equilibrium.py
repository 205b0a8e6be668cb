"""Static equilibrium equations of a pose, for underconstrained machines that hang freely.

Such a machine has more degrees of freedom than actuators; weight and springs determine the rest of
its pose. With all actuators held, velocities satisfy J v = 0 with J = (K; A), where K is the
Jacobian of the loop equations and A that of the leading encoders. A machine at rest is in
equilibrium if the forces J^T mu of loops and actuators support all forces tau(q) of weight and
springs: tau = J^T mu with multipliers mu. Velocities are scaled by D, so that angles count as
lengths: J_s = J D^-1, tau_s = D^-1 tau. With

    mu = (J_s J_s^T)^-1 J_s tau_s,    r = tau_s - J_s^T mu,

r is zero at equilibrium. The number of its independent components is the number of open degrees of
freedom. The equations are the rows of r that are independent at the reference pose. They are
multiplied by the characteristic length and divided by the weight, so that they are lengths.

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
from tauloop.mechanism.cables import winch_names


@dataclass(frozen=True, slots=True, kw_only=True)
class Equilibrium:
    """The selected equations of static equilibrium and their scale.

    Attributes:
        rows: indices of the velocities whose components of the force balance are the equations.
        force: norm of the forces at the reference pose, N, by which the force balance is divided.
        length: the machine's characteristic length, m, by which the equations are multiplied.
    """

    rows: tuple[int, ...]
    force: float
    length: float


def equilibrium_of(assembly: Assembly, loop_rows: Sequence[int]) -> Equilibrium:
    """Choose the equations of equilibrium of a machine at its reference pose.

    Args:
        assembly: the machine.
        loop_rows: indices of the independent loop equations of the machine.

    Returns:
        Indices of the chosen equations, with the scales of force and length.

    Raises:
        InputError: the actuators leave no degree of freedom open, or no force acts at the
            reference pose.
    """
    topology = assembly.topology
    length = assembly.mechanism.characteristic_length
    count = topology.n_v - len(loop_rows) - len(assembly.leading)
    where = "equilibrium"
    if count <= 0:
        problem = "the actuators leave no degree of freedom open, so the pose does not depend on the weight"
        remedy = "omit the option, because encoders and loops determine the pose"
        raise InputError.of(where, problem, remedy)
    motion = symbolic_motion(topology, nominal(assembly.mechanism), is_moving=False)
    J, tau = _scaled(assembly, motion, loop_rows)
    values = ca.Function("balance", [motion.q], [ca.densify(J), ca.densify(tau)])(assembly.q)
    J_value, tau_value = (np.array(ca.DM(value).full()) for value in values)
    _, _, directions = np.linalg.svd(J_value)
    open_directions = directions[-count:]
    force = float(np.linalg.norm(tau_value))
    if not force > 0.0:
        remedy = "add gravity and masses to the machine file, or omit the option"
        raise InputError.of(where, "no weight or spring acts at the reference pose", remedy)
    _, pivots = scipy.linalg.qr(open_directions, mode="r", pivoting=True)
    return Equilibrium(
        rows=tuple(sorted(int(i) for i in pivots[:count])), force=force, length=length
    )


def equilibrium_equations(
    assembly: Assembly, motion: TreeMotion, loop_rows: Sequence[int], equilibrium: Equilibrium
) -> ca.SX:
    """Return the equations of equilibrium at a pose at rest, m."""
    J, tau = _scaled(assembly, motion, loop_rows)
    balance = tau - J.T @ _multipliers(J, tau)
    return ca.SX(equilibrium.length / equilibrium.force * balance[list(equilibrium.rows)])


def cable_tensions(
    assembly: Assembly, motion: TreeMotion, loop_rows: Sequence[int]
) -> tuple[tuple[str, ...], ca.SX]:
    """Return the names of all cables and their tensions at a pose at rest, N.

    A tension is the negative multiplier of the cable's equation. Cables are rods with a bounded
    tension, and lines over pulleys, which are named after their winches.
    """
    J, tau = _scaled(assembly, motion, loop_rows)
    multipliers = _multipliers(J, tau)
    elements = assembly.loops.elements
    mechanism = assembly.mechanism
    cable_rods = {rod.name for rod in mechanism.rods if rod.tension is not None}
    row_of_cable = {
        elements[row]: k for k, row in enumerate(loop_rows) if elements[row] in cable_rods
    }
    winches = winch_names(mechanism)
    for k, i in enumerate(assembly.leading):
        actuator = mechanism.actuators[i]
        if actuator.name in winches and not assembly.topology.is_rotary(actuator):
            row_of_cable[actuator.name] = len(loop_rows) + k
    return tuple(row_of_cable), ca.densify(-multipliers[list(row_of_cable.values())])


def _multipliers(J: ca.SX, tau: ca.SX) -> ca.SX:
    return ca.SX(ca.solve(J @ J.T, J @ tau))


def _scaled(
    assembly: Assembly, motion: TreeMotion, loop_rows: Sequence[int]
) -> tuple[ca.SX, ca.SX]:
    """Return J_s (r, n_v) of loops and leading encoders, and tau_s (n_v,), N, at a pose at rest."""
    mechanism = assembly.mechanism
    topology = assembly.topology
    q = motion.q
    equations = closure(mechanism, motion)
    phi, _, _ = stacked(tuple(equations[i] for i in loop_rows))
    K = ca.jacobian(phi, q) @ coordinate_rates(topology, q)
    A = transmission(mechanism, topology, motion.values)
    parameters = dynamic_parameters(mechanism, topology)
    pi = ca.vertcat(
        *(ca.SX(motion.values.scalar(parameter.expression)) for parameter in parameters)
    )
    tau = tree_forces(mechanism, motion, Entries(parameters, pi))
    inverse = ca.DM(velocity_scale(assembly))
    return ca.vertcat(K, A[list(assembly.leading), :]) @ ca.diag(inverse), ca.SX(inverse * tau)


def velocity_scale(assembly: Assembly) -> np.ndarray:
    """Return the diagonal (n_v,) of D^-1: 1 for lengths, 1/(characteristic length) for angles."""
    length = assembly.mechanism.characteristic_length
    return np.where(np.array(assembly.topology.angular, dtype=bool), 1.0 / length, 1.0)


def least_stiffness(
    assembly: Assembly, equilibrium: Equilibrium, kinematic: np.ndarray, balance: np.ndarray
) -> np.ndarray:
    """Return the smallest eigenvalue (N,) of the stiffness, divided by weight per length.

    H is the stiffness against motions with held actuators. The machine hangs in a stable
    equilibrium if H is positive definite. Let Z (n_v, k) be an orthonormal basis of J_s Z = 0, let
    R select the rows of `equilibrium`, and let L and F be its length and force. Then the
    derivatives of the equations are (L/F) R Z H Z^T. The result belongs to (L/F) H.

    Args:
        assembly: the machine.
        equilibrium: equations of equilibrium of the machine.
        kinematic: velocity derivatives (N, r, n_v) of loops and leading encoders.
        balance: velocity derivatives (N, k, n_v) of the equations of equilibrium.
    """
    inverse = velocity_scale(assembly)
    count = balance.shape[1]
    _, _, directions = np.linalg.svd(kinematic * inverse)
    Z = directions[:, -count:].transpose(0, 2, 1)
    stiffness = np.linalg.solve(Z[:, list(equilibrium.rows)], (balance * inverse) @ Z)
    return np.asarray(np.linalg.eigvalsh(0.5 * (stiffness + stiffness.transpose(0, 2, 1)))[:, 0])
