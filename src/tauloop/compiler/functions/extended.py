"""Programs in all coordinates (the extended space): accelerations, multipliers, projections.

    [ M  -K^T ] [ a      ]   [ S u + J^T w - h                  ]
    [ K    0  ] [ lambda ] = [ k - 2 alpha K v - beta^2 psi     ]

a are the accelerations of all coordinates, M a + h are the tree forces, S u + J^T w the actuator
forces and the wrench at the tool as generalized forces, psi = 0 the loop equations, and k the value
of K a that keeps them. This system is also regular at leg-side singularities, where the independent
coordinates fail. K is the Jacobian of the independent loop equations for the moving velocities.
With alpha = beta = 0, only the projection after each step keeps the loops closed.

Source: Baumgarte 1972, Stabilization of constraints and integrals of motion in dynamical systems.
"""

from __future__ import annotations

from collections.abc import Iterable

import casadi as ca
import numpy as np

from tauloop.common.errors import InputError
from tauloop.compiler.builder import ProgramBuilder
from tauloop.compiler.expressions import Expressions, column, require_moved_inertia
from tauloop.compiler.functions.rates import Acting, RateProgram, coordinate_rate
from tauloop.compiler.program import Program
from tauloop.equations.assembly.assembly import Assembly
from tauloop.equations.energy import kinetic_energy, potential_energy
from tauloop.equations.formulations import NEWTON_EULER, Formulation
from tauloop.equations.tree import Configuration

#: A mass matrix counts as singular if its smallest eigenvalue is below this fraction of the largest
#: (in dimensionless coordinates).
MASS_TOLERANCE = 1e-12


class _Full(Expressions):
    """A program under construction whose inputs are all coordinates and velocities."""

    def __init__(
        self,
        assembly: Assembly,
        name: str,
        formulation: Formulation = NEWTON_EULER,
        free: tuple[str, ...] = (),
    ) -> None:
        values = np.tile(assembly.mechanism.parameters.vector(free), (len(assembly.states), 1))
        builder = ProgramBuilder(name, {"q": assembly.states, "theta": values})
        theta = builder.input("theta", len(free))
        super().__init__(
            assembly, builder, formulation, {leaf: theta[i] for i, leaf in enumerate(free)}
        )
        self.q = self.builder.input("q", self.topology.n_q)
        self.configuration = Configuration(self.q, {})

    def velocities(self, name: str = "v") -> ca.SX:
        """Declare the velocities (n_v,) as an input; return them with constant ones set to zero."""
        return self.full(self.builder.input(name, self.topology.n_v)[self.moving])

    def full(self, moving: ca.SX) -> ca.SX:
        """Return all velocities (n_v,) from the moving velocities."""
        result = self.at_rest
        result[self.moving] = moving
        return result

    def jacobian(self) -> ca.SX:
        """Return K of psi for the moving velocities."""
        v = ca.SX.sym("v", self.topology.n_v)
        return ca.jacobian(column(row.psi_rate for row in self.rows(v)), v)[:, self.moving]

    def scales(self) -> ca.SX:
        """Return scales (c,); multipliers of phi = psi / scale are those of psi times scale."""
        return column(row.scale for row in self.rows(self.at_rest))

    def with_loops(
        self, M: ca.SX, forces: ca.SX, required: ca.SX, what: str
    ) -> tuple[ca.SX, ca.SX]:
        """Return x and y of [M -K^T; K 0] [x; y] = [forces; required] for the moving velocities."""
        K = self.jacobian()
        A = ca.blockcat([[M, -K.T], [K, ca.SX(K.size1(), K.size1())]])
        solution = self.builder.solve(A, ca.vertcat(forces, required), what)
        return solution[: len(self.moving), :], solution[len(self.moving) :, :]

    def accelerations(
        self, v: ca.SX, M: ca.SX, forces: ca.SX, alpha: float, beta: float
    ) -> tuple[ca.SX, ca.SX]:
        """Return accelerations of the moving velocities, and multipliers of psi."""
        rows = self.rows(v)
        required = -column(row.psi_acceleration for row in rows)
        if alpha or beta:
            required -= column(2 * alpha * row.psi_rate + beta**2 * row.psi for row in rows)
        return self.with_loops(M, forces, required, "accelerations and multipliers")

    def rate_program(
        self, part: tuple[str, int], rate: ca.SX, v: ca.SX, applied: Acting
    ) -> RateProgram:
        """Return the rate program of a state with all coordinates and a second component.

        Args:
            part: name and size of the second component.
            rate: time derivative of the second component.
            v: velocities (n_v,).
            applied: applied forces.
        """
        q_rate = coordinate_rate(self.topology, self.q, v)
        outputs = {"rate": ca.vertcat(q_rate, rate, applied.powers(v)), "all_q": self.q, "all_v": v}
        starts = tuple(iq for iq, _ in self.topology.quaternions)
        state = (("q", self.topology.n_q), part)
        return RateProgram(program=self.builder.finish(outputs), state=state, quaternions=starts)


def extended_rate_program(
    assembly: Assembly,
    alpha: float = 0.0,
    beta: float = 0.0,
    *,
    formulation: Formulation = NEWTON_EULER,
    with_wrench: bool = False,
    free: tuple[str, ...] = (),
) -> RateProgram:
    """Return the program of the time derivatives of all coordinates and velocities.

    The equations are q' = N v and M a + h = S u + J^T w + K^T lambda, where the loop equations
    determine K a.

    Args:
        assembly: the machine.
        alpha, beta: Baumgarte's factors, 1/s; zero for none.
        formulation: formulation of the forces.
        with_wrench: whether a wrench at the tool is an input.
        free: names of the independent parameters that are inputs, `theta`; the others are
            constants.
    """
    state = _Full(assembly, "extended_rate", formulation, free)
    v, moving = state.velocities(), state.moving
    M = state.mass_matrix(v)[moving, moving]
    rows = ca.vertcat(M, state.jacobian())
    require_moved_inertia(
        state.topology.velocity_names[i]
        for k, i in enumerate(moving)
        if not ca.sparsify(rows[:, k]).nnz()
    )
    applied = Acting(state, with_wrench=with_wrench)
    forces = (applied.generalized - state.forces(v, state.at_rest))[moving]
    acceleration, _ = state.accelerations(v, M, forces, alpha, beta)
    return state.rate_program(("v", state.topology.n_v), state.full(acceleration), v, applied)


def multiplier_program(
    assembly: Assembly, formulation: Formulation = NEWTON_EULER, *, with_wrench: bool = False
) -> Program:
    """Return the program of multipliers (c,), N or N m, of the independent loop equations.

    Args:
        assembly: the machine.
        formulation: formulation of the forces.
        with_wrench: whether a wrench at the tool is an input.
    """
    state = _Full(assembly, "multipliers", formulation)
    v, moving = state.velocities(), state.moving
    M, h = state.mass_matrix(v)[moving, moving], state.forces(v, state.at_rest)
    applied = Acting(state, with_wrench=with_wrench)
    _, multipliers = state.accelerations(v, M, (applied.generalized - h)[moving], 0.0, 0.0)
    return state.builder.finish({"multipliers": multipliers * state.scales()})


def impact_program(assembly: Assembly, formulation: Formulation = NEWTON_EULER) -> Program:
    """Return the program of an impact: M (v' - v) = K^T s and K v' = -e (K v).

    e is the coefficient of restitution of each loop equation: a cable that becomes taut at K v > 0
    rebounds with the fraction e of its speed. s are the impulses, N s.

    Source: Newton's law of impact, as in Pfeiffer and Glocker, "Multibody Dynamics with Unilateral
    Contacts", 1996.
    """
    state = _Full(assembly, "impact", formulation)
    v, moving = state.velocities()[state.moving], state.moving
    restitution = state.builder.input("restitution", len(assembly.rows))
    M = state.mass_matrix(state.at_rest)[moving, moving]
    required = -(1 + restitution) * (state.jacobian() @ v)
    change, impulse = state.with_loops(M, ca.SX(len(moving), 1), required, "impact")
    return state.builder.finish(
        {"v_after": state.full(v + change), "impulse": impulse * state.scales()}
    )


def hamilton_rate_program(
    assembly: Assembly,
    alpha: float,
    beta: float,
    *,
    with_wrench: bool = False,
    free: tuple[str, ...] = (),
) -> RateProgram:
    """Return the program of Hamilton's equations of index two, with Baumgarte's stabilization.

    The equations are q' = N v with M v = p, and p' = L_q + S u + J^T w + K^T lambda, where L_q
    includes Poincare's term and friction. lambda follows from
    K v' = k - 2 alpha K v - beta^2 psi.

    Source: Miller (NUWAR paper), eqs. 3 to 8 and section 5.

    Args:
        assembly: the machine.
        alpha, beta: Baumgarte's factors, 1/s; zero for none.
        with_wrench: whether a wrench at the tool is an input.
        free: names of the independent parameters that are inputs, `theta`; the others are
            constants.

    Raises:
        InputError: the mass matrix of all coordinates is singular, so momenta do not determine
            velocities.
        DescriptionError: the kinetic energy of a rod is not a function of its velocity.
    """
    state = _Full(assembly, "hamilton_rate", free=free)
    moving, any_v = state.moving, ca.SX.sym("v", state.topology.n_v)
    p = state.builder.input("momentum", len(moving))
    M = ca.sparsify(ca.jacobian(state.canonical(any_v).momentum, any_v))[moving, moving]
    _require_mass(state, M)
    v = state.full(state.builder.solve_symmetric(M, p, "velocities from momenta"))
    terms = state.canonical(v)
    applied = Acting(state, with_wrench=with_wrench)
    forces = (applied.generalized - terms.remainder)[moving]
    transport = terms.rate[moving]  # M' v, because the motion has no accelerations
    _, multipliers = state.accelerations(v, M, forces - transport, alpha, beta)
    rate = forces + state.jacobian().T @ multipliers
    return state.rate_program(("momentum", len(moving)), rate, v, applied)


def _require_mass(state: _Full, M: ca.SX) -> None:
    """Raise an error if the mass matrix is singular, so that some coordinates have no momentum."""
    n = len(state.moving)
    scale = state.assembly.loops.velocity_scale[state.moving]
    sampled = state.builder.at_samples(M).reshape(-1, n, n) * np.outer(scale, scale)
    values, vectors = np.linalg.eigh(sampled)
    worst = int(np.argmin(values[:, 0] / values[:, -1]))
    if values[worst, 0] <= MASS_TOLERANCE * values[worst, -1]:
        names = [state.topology.velocity_names[i] for i in state.moving]
        massless = [names[i] for i in np.flatnonzero(np.abs(vectors[worst, :, 0]) > 0.1)]
        raise InputError.of(
            ", ".join(massless),
            (
                "this motion has no inertia when the loops are cut: the smallest eigenvalue of the "
                f"mass matrix is {values[worst, 0] / values[worst, -1]:.2g} times the largest, "
                "so momenta do not determine velocities"
            ),
            "use independent coordinates or projection, or give its bodies an inertia",
            file=state.mechanism.file,
        )


def momentum_map_program(assembly: Assembly, free: tuple[str, ...] = ()) -> Program:
    """Return the program of momenta p = dT/dv of the moving velocities, from a state.

    Args:
        assembly: the machine.
        free: names of the independent parameters that are inputs, `theta`; the others are
            constants.
    """
    state = _Full(assembly, "momentum_map", free=free)
    v = state.builder.input("v", state.topology.n_v)
    return state.builder.finish({"momentum": state.canonical(v).momentum[state.moving]})


def energy_program(assembly: Assembly) -> Program:
    """Return the program of the kinetic and potential energy, J, of a state (q, v).

    Raises:
        DescriptionError: the kinetic energy of a rod is not a function of its velocity.
    """
    state = _Full(assembly, "energy")
    parts = (
        state.mechanism,
        state.motion(state.builder.input("v", state.topology.n_v)),
        state.entries,
    )
    return state.builder.finish(
        {"kinetic": kinetic_energy(*parts), "potential": potential_energy(*parts)}
    )


def tree_inertias(assembly: Assembly, formulation: Formulation, q: np.ndarray) -> np.ndarray:
    """Return the diagonal of the tree's mass matrix (n_v,), kg m^2 or kg.

    Each entry is the inertia that one velocity moves while the others are zero.

    Args:
        assembly: the machine, at its nominal parameters.
        formulation: formulation of the forces.
        q: coordinates (n_q,).
    """
    state = _Full(assembly, "inertias", formulation)
    program = state.builder.finish({"inertias": ca.diag(state.mass_matrix(state.at_rest))})
    return program.run({"q": np.ascontiguousarray(q[None])}, 1)[0]["inertias"][0]


def projection_program(assembly: Assembly, free: tuple[str, ...] = ()) -> Program:
    """Return the program of a least-squares Gauss-Newton step onto phi = 0 and K v = 0.

    The step is dq = -W K^T y with K W K^T y = phi, where W are the squares of the unit
    displacements; the step of v is analogous. The step is repeated until `gap`, the largest
    residual before the step (characteristic lengths or dimensionless), is a rounding error. The
    residual after the step is about the square of the gap.

    Args:
        assembly: the machine.
        free: names of the independent parameters that are inputs, `theta`; the others are
            constants.
    """
    state = _Full(assembly, "projection", free=free)
    topology, v = state.topology, state.builder.input("v", state.topology.n_v)
    rows = state.rows(v)
    scales = column(row.scale for row in rows)
    K = ca.diag(1 / scales) @ state.jacobian() if rows else state.jacobian()
    W = ca.DM(assembly.loops.velocity_scale[state.moving] ** 2)
    weighted = ca.sparsify(ca.diag(ca.SX(W)) @ K.T)
    residual = column(row.residual for row in rows)
    rate = column(row.psi_rate for row in rows) / scales if rows else ca.SX(0, 1)
    solution = _solve(state, K @ weighted, ca.horzcat(residual, rate))
    q = state.q + coordinate_rate(topology, state.q, state.full(-weighted @ solution[:, 0]))
    q = normalized(q, (iq for iq, _ in topology.quaternions))
    corrected = state.full(v[state.moving] - weighted @ solution[:, 1])
    row_scale = assembly.loops.row_scale[list(assembly.rows)]
    gap = ca.mmax(ca.fabs(ca.DM(row_scale) * residual)) if rows else ca.SX(0)
    return state.builder.finish({"projected_q": q, "projected_v": corrected, "gap": gap})


def _solve(state: _Full, A: ca.SX, b: ca.SX) -> ca.SX:
    return state.builder.solve_symmetric(A, b, "projection") if A.numel() else ca.SX(*b.shape)


def normalized(q: ca.SX, quaternions: Iterable[int]) -> ca.SX:
    """Return coordinates with normalized quaternions, which start at the given indices."""
    q = ca.SX(q)
    for iq in quaternions:
        q[iq : iq + 4] = q[iq : iq + 4] / ca.norm_2(q[iq : iq + 4])
    return q
