"""Programs of a given motion: coordinates, forces and regressors.

Each program starts from the state of the kinematics, with the velocities and accelerations that the
catalogue specifies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import casadi as ca

from tauloop.common.errors import AssemblyError
from tauloop.common.names.lazy import lazy_functions
from tauloop.compiler.builder import ProgramBuilder
from tauloop.compiler.expressions import MotionState, require_inertia
from tauloop.compiler.program import Program
from tauloop.equations.assembly.assembly import Assembly
from tauloop.equations.ports import ACTUATORS, Entry
from tauloop.formats.library import motor_remedy

if TYPE_CHECKING:
    from tauloop.compiler.functions.bounded_forces import bounded_forces_program
    from tauloop.equations.outputs import output_values
else:
    (bounded_forces_program,) = lazy_functions(
        "tauloop.compiler.functions.bounded_forces", "bounded_forces_program"
    )
    (output_values,) = lazy_functions("tauloop.equations.outputs", "output_values")


def diagnosis_program(state: MotionState) -> Program:
    """Return the program that diagnoses unreachable poses.

    See `tauloop.model.positions.diagnosis.gaps`.
    """
    return state.builder.finish({"extremes": state.builder.extremes})


def kinematics_program(state: MotionState, levels: int) -> Program:
    """Return the program of all coordinates and, up to `levels`, velocities and accelerations."""
    outputs = {"q": state.configuration.q, "v": state.v, "a": state.a}
    return state.builder.finish(dict(list(outputs.items())[: levels + 1]))


def outputs_program(state: MotionState) -> Program:
    """Return the program of the outputs that the machine file defines.

    Raises:
        AssemblyError: the machine file defines no outputs.
    """
    if not state.mechanism.outputs:
        remedy = "add outputs to the machine file, such as `outputs: {height: z(tool)}`"
        raise AssemblyError.of("outputs", "the machine file defines no outputs", remedy)
    motion = state.motion(state.at_rest)
    outputs = output_values(state.mechanism, motion)
    return state.builder.finish({"q": state.configuration.q, "outputs": outputs})


def embedding_program(state: MotionState) -> Program:
    """Return the program of G (n_v, m), by columns: all velocities per unit of the given ones."""
    return state.builder.finish({"q": state.configuration.q, "G": ca.vec(state.embedding)})


def jacobian_program(state: MotionState, *, of: Entry) -> Program:
    """Return the program of the Jacobian from given velocities to actuator or platform velocities.

    The output "J" contains the matrix by rows. `of` selects actuators or platform.
    """
    G = state.embedding
    J = state.transmission @ G if of is ACTUATORS else G[list(state.assembly.independent), :]
    return state.builder.finish({"q": state.configuration.q, "J": ca.vec(J.T)})


def forward_dynamics_program(state: MotionState, *, loaded: bool = False) -> Program:
    """Return the program of accelerations under actuator forces u.

    The outputs are the accelerations of the given coordinates and those of all coordinates.

    Inverse dynamics is affine in the accelerations a = G a_given + gamma, where gamma are the
    accelerations of all coordinates at a_given = 0. So M_r a_given = G^T (S u - M gamma - h) with
    M_r = G^T M G, which is solved by L D L^T. If `loaded`, payload and wrench at the tool are
    inputs.
    """
    force = state.builder.input("force", len(state.mechanism.actuators))
    G, bias = state.embedding, state.drift()
    if loaded:
        state.add_loads()
    reduced, acceleration = free_accelerations(state, force, G, bias)
    mass_matrix = ca.SX(0, 1)
    if acceleration.numel():
        mass_matrix = ca.vec(ca.tril2symm(ca.tril(reduced)))
    return state.builder.finish(
        {
            "q": state.configuration.q,
            "v": state.v,
            "acceleration": acceleration,
            "a": G @ acceleration + bias,
            "mass_matrix": mass_matrix,
        }
    )


def free_accelerations(
    state: MotionState, force: ca.SX, G: ca.SX, bias: ca.SX
) -> tuple[ca.SX, ca.SX]:
    """Return the reduced mass matrix M_r (m, m) and the given accelerations (m,) under forces."""
    reduced = G.T @ (state.mass_matrix(state.v) @ G)
    require_inertia(reduced, state.ports)
    tau = state.transmission.T @ force - state.forces(state.v, bias)
    return reduced, state.builder.solve_symmetric(reduced, G.T @ tau, "accelerations")


def inverse_dynamics_program(state: MotionState, *, loaded: bool = False) -> Program:
    """Return the program of forces u and multipliers lambda: S u + K^T lambda = M a + h.

    The balance is that of the moving coordinates. With redundant actuation, u minimizes the sum of
    w u^2 with weights w as an input. If `loaded`, payload and wrench at the tool are inputs.

    Raises:
        AssemblyError: there are passive degrees of freedom, whose motion the actuators cannot
            produce.
    """
    if loaded:
        state.add_loads()
    tau = state.forces(state.v, state.a)
    known = {"q": state.configuration.q, "v": state.v, "a": state.a, "tree_force": tau}
    return _with_actuator_forces(state, tau, known)


def regressor_program(state: MotionState, output: str) -> Program:
    """Return the program of the regressor Y, by rows: forces = Y pi.

    Args:
        state: state of the given motion.
        output: "actuators" for actuator forces u (n_u rows); "joints" for the forces A^T u on the
            driven coordinates; "leading" and "leading_joints" for the resultants R^T u (m rows) on
            the motions of the leading actuators, or on the coordinates that these drive. Preloads
            do not change the resultants.
    """
    assembly, moving, n_u = state.assembly, state.moving, len(state.mechanism.actuators)
    pi = ca.SX.sym("pi", len(state.parameters))
    tau = state.forces(state.v, state.a, pi)
    require_actuated(assembly)
    Y_tree = ca.jacobian(tau[moving], pi)
    if not assembly.rows and output == "joints":
        Y = Y_tree[[moving.index(i) for i in assembly.driven], :]
        return state.builder.finish({"regressor": ca.vec(Y.T)})
    if output in ("leading", "leading_joints"):
        Y = _leading_map(state, output)[:, moving] @ Y_tree
        return state.builder.finish({"regressor": ca.vec(Y.T)})
    if assembly.is_redundant:
        R = state.transmission @ state.embedding
        projection = shared_forces(state.builder, R, state.embedding[moving, :].T, ca.SX.ones(n_u))
    else:
        unit = ca.vertcat(ca.SX(ca.DM.eye(n_u)), ca.SX(len(moving) - n_u, n_u))
        projection = state.builder.solve(force_map(state).T, unit, "actuator forces").T
    if output == "joints":
        projection = state.transmission.T[list(assembly.driven), :] @ projection
    return state.builder.finish({"regressor": ca.vec((projection @ Y_tree).T)})


def _leading_map(state: MotionState, output: str) -> ca.SX:
    """Return the matrix (m, n_v) from forces on all coordinates to those on leading motions w.

    The matrix is G_w^T with v = G_w w. For the given velocities x, v = G x and w = L x, so
    G_w = G L^-1. By virtual work, the actuator forces u have the resultants R^T u on w, where
    R = A G_w are the actuator velocities per unit of w. The resultants of preload are zero.
    """
    assembly, G = state.assembly, state.embedding
    leading = state.transmission[list(assembly.leading), :]
    L = leading @ G if output == "leading" else G[list(assembly.leading_driven), :]
    if L.is_constant():  # the leading motions themselves are given
        return ca.SX(ca.inv(ca.DM(L)).T) @ G.T
    return state.builder.solve(L.T, G.T, "leading motions")


def _with_actuator_forces(state: MotionState, tau: ca.SX, known: dict[str, ca.SX]) -> Program:
    """Return the program with actuator forces u (n_u,) and multipliers (c,) for tree forces tau."""
    require_actuated(state.assembly)
    if state.mechanism.cables:
        R, t = state.transmission @ state.embedding, state.embedding.T @ tau
        return bounded_forces_program(state, (tau, R, t), known)
    force, raw = balanced_forces(state, tau)
    return state.builder.finish({**known, "force": force, "closure_force": raw * state.scale})


def balanced_forces(state: MotionState, tau: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return actuator forces u (n_u,) and multipliers (c,) of psi for tree forces tau = M a + h."""
    n_u = len(state.mechanism.actuators)
    if state.assembly.is_redundant:
        R, weight = state.transmission @ state.embedding, state.builder.input("weight", n_u)
        force = shared_forces(state.builder, R, state.embedding.T @ tau, weight)
        return force, state.loop_forces(tau - state.transmission.T @ force)
    forces = state.builder.solve(force_map(state), tau[state.moving], "actuator forces")
    return forces[:n_u, :], forces[n_u:, :]


def require_actuated(assembly: Assembly) -> None:
    """Raise an error if actuators alone cannot produce a given motion.

    Raises:
        AssemblyError: there are passive degrees of freedom.
    """
    mechanism = assembly.mechanism
    if assembly.passive and not mechanism.actuators:
        what = "nothing is driven: the machine has no actuator, so no forces produce a motion"
        raise AssemblyError.of("actuators", what, motor_remedy(mechanism.file), file=mechanism.file)
    if assembly.passive:
        raise AssemblyError.of(
            "actuators",
            (
                f"no actuator moves {len(assembly.passive)} of the {assembly.mobility} degrees of "
                "freedom of the machine, so their motion cannot be given; passive: "
                f"{', '.join(assembly.passive_names)}"
            ),
            (
                "use hybrid inverse dynamics with the actuators' motion (`model.hybrid`, --coordinates "
                "actuators), which computes the passive accelerations; or lock the passive degrees "
                "of freedom"
            ),
            file=mechanism.file,
        )


def shared_forces(builder: ProgramBuilder, R: ca.SX, generalized: ca.SX, weight: ca.SX) -> ca.SX:
    """Return forces u = W^-1 R (R^T W^-1 R)^-1 t, which solve R^T u = t with minimal sum of w u^2.

    Args:
        builder: program to which the solution is added.
        R: actuator velocities per unit of the given velocities (n_u, m), of rank m.
        generalized: forces t (m, k) on the given velocities.
        weight: w (n_u,), positive.
    """
    weighted = R / ca.repmat(weight, 1, R.size2())
    return weighted @ builder.solve_symmetric(R.T @ weighted, generalized, "actuator forces")


def force_map(state: MotionState) -> ca.SX:
    """Return the matrix [S K^T] (n, n) of the moving coordinates."""
    return ca.horzcat(state.transmission.T[state.moving, :], state.K[:, state.moving].T)


def momentum_program(state: MotionState) -> Program:
    """Return the program of momenta p = dT/dv (n_v,) from positions and velocities."""
    momentum = state.canonical(state.v).momentum
    return state.builder.finish({"q": state.configuration.q, "momentum": momentum})


def momentum_forces_program(state: MotionState) -> Program:
    """Return the program of forces and multipliers from the time derivative of the momenta.

    S u + K^T lambda = p' + dH/dq. The momenta are also an output, because the differences of a
    sampled motion need the momenta of the samples before and after.
    """
    rate = state.builder.input("momentum_rate", state.topology.n_v)
    terms = state.canonical(state.v)
    tau = rate + terms.remainder
    known = {
        "q": state.configuration.q,
        "v": state.v,
        "tree_force": tau,
        "momentum": terms.momentum,
    }
    return _with_actuator_forces(state, tau, known)
