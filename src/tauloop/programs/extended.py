"""Programs in the full coordinates of the extended space: accelerations and multipliers together, and projections.

    [ M  -K^T ] [ a      ]   [ S u + J^T w - h                  ]
    [ K    0  ] [ lambda ] = [ k - 2 alpha K v - beta^2 psi     ]

holds through leg-side singularities, where the independent coordinates fail. K is that of the kept loop equations on
the moving velocities; with alpha = beta = 0 nothing holds the loops together but the projection after each step.

Source: Baumgarte 1972, Stabilization of constraints and integrals of motion in dynamical systems.
"""

from __future__ import annotations

from collections.abc import Iterable

import casadi as ca
import numpy as np

from tauloop.assembly.loops import ClosureRow, closure, nominal
from tauloop.equations.formulations.hamilton import canonical_terms
from tauloop.equations.tree import Configuration, TreeMotion, tree_motion
from tauloop.errors import InputError
from tauloop.programs.builder import ProgramBuilder
from tauloop.programs.machine import Machine
from tauloop.programs.motion import column, moving_velocities, parameter_entries, parameter_values, refuse_idle
from tauloop.programs.program import Program
from tauloop.programs.rates import Acting, RateProgram, coordinate_rate

#: A mass matrix with a smaller eigenvalue than this share of its largest, free of units, has no inverse.
NO_MASS = 1e-12


class _Full:
    """A program that starts from all coordinates, and the expressions of its state."""

    def __init__(self, machine: Machine, name: str) -> None:
        self.machine = machine
        self.mechanism, self.shape = machine.assembly.loops.mechanism, machine.assembly.loops.topology
        self.builder = ProgramBuilder(name, {"q": machine.assembly.states})
        self.values = nominal(self.mechanism)
        self.q = self.builder.input("q", self.shape.n_q)
        self.configuration = Configuration(self.q, {})
        self.moving = moving_velocities(machine.assembly)

    def motion(self, v: ca.SX, a: ca.SX) -> TreeMotion:
        return tree_motion(self.shape, self.values, self.configuration, v, a)

    def rows(self, v: ca.SX) -> list[ClosureRow]:
        """The kept loop equations, without accelerations."""
        residuals = closure(self.mechanism, self.shape, self.values, self.motion(v, ca.SX(self.shape.n_v, 1)))
        return [residuals[i] for i in self.machine.assembly.rows]

    def full(self, moving: ca.SX) -> ca.SX:
        """Velocities (n_v,) from the moving ones."""
        result = ca.SX(self.shape.n_v, 1)
        result[self.moving] = moving
        return result

    def jacobian(self) -> ca.SX:
        """K of psi on the moving velocities."""
        v = ca.SX.sym("v", self.shape.n_v)
        return ca.jacobian(column(row.psi_rate for row in self.rows(v)), v)[:, self.moving]

    def accelerations(self, v: ca.SX, M: ca.SX, forces: ca.SX, stabilisation: tuple[float, float]) -> ca.SX:
        """Accelerations and multipliers of psi below each other, for the moving velocities."""
        rows = self.rows(v)
        K, c = self.jacobian(), len(rows)
        alpha, beta = stabilisation
        demanded = -column(row.psi_acceleration for row in rows)
        if alpha or beta:
            demanded -= column(2 * alpha * row.psi_rate + beta**2 * row.psi for row in rows)
        A = ca.blockcat([[M, -K.T], [K, ca.SX(c, c)]])
        return self.builder.solve(A, ca.vertcat(forces, demanded), "accelerations and multipliers")


def extended_rate_program(
    machine: Machine, alpha: float = 0.0, beta: float = 0.0, *, with_wrench: bool = False
) -> RateProgram:
    """Rates of all coordinates and velocities: q' = N v and M a + h = S u + J^T w + K^T lambda with the loops' K a.

    Args:
        machine: the machine.
        alpha, beta: Baumgarte's factors, 1/s; zero for none.
        with_wrench: whether a wrench at the tool is an input.
    """
    state = _Full(machine, "extended_rate")
    shape, n_v = state.shape, state.shape.n_v
    v = state.builder.input("v", n_v)
    held = state.full(v[state.moving])
    pi = parameter_values(machine, state.values)
    a = ca.SX.sym("a", n_v)
    parts = (state.mechanism, shape, state.values)
    tau = machine.formulation.forces(*parts, state.motion(held, a), machine.parameters, pi)
    M = ca.sparsify(ca.jacobian(tau, a))[state.moving, state.moving]
    bound = ca.vertcat(M, state.jacobian())
    idle = [i for k, i in enumerate(state.moving) if not ca.sparsify(bound[:, k]).nnz()]
    refuse_idle([shape.velocity_names[i] for i in idle])
    h = machine.formulation.forces(*parts, state.motion(held, ca.SX(n_v, 1)), machine.parameters, pi)
    acting = Acting(state.builder, machine, state.values, state.configuration, with_wrench=with_wrench)
    solution = state.accelerations(held, M, (acting.generalized - h)[state.moving], (alpha, beta))
    acceleration = state.full(solution[: len(state.moving)])
    program = state.builder.finish(
        {
            "rate": ca.vertcat(coordinate_rate(shape, state.q, held), acceleration, acting.powers(held)),
            "all_q": state.q,
            "all_v": held,
        }
    )
    starts = tuple(iq for iq, _ in shape.quaternions)
    return RateProgram(program=program, state=(("q", shape.n_q), ("v", n_v)), quaternions=starts)


def multiplier_program(machine: Machine, *, with_wrench: bool = False) -> Program:
    """Program of the multipliers (c,) of the kept loop equations at a state under forces: N, or N m for directions.

    Args:
        machine: the machine.
        with_wrench: whether a wrench at the tool is an input.
    """
    state = _Full(machine, "multipliers")
    held = state.full(state.builder.input("v", state.shape.n_v)[state.moving])
    M, h = _tree_dynamics(state, held)
    acting = Acting(state.builder, machine, state.values, state.configuration, with_wrench=with_wrench)
    solution = state.accelerations(held, M, (acting.generalized - h)[state.moving], (0.0, 0.0))
    scales = column(row.scale for row in state.rows(held))
    return state.builder.finish({"multipliers": solution[len(state.moving) :] * scales})


def impact_program(machine: Machine) -> Program:
    """Program of an impact on the loop equations: M (v' - v) = K^T s and K v' = -e (K v), e for every equation.

    A cable that is tautened at K v > 0 rebounds with the share e of its speed; s are the impulses, N s.
    Source: Newton's law of impact, as in Pfeiffer and Glocker, "Multibody Dynamics with Unilateral Contacts", 1996.
    """
    state = _Full(machine, "impact")
    v = state.builder.input("v", state.shape.n_v)
    restitution = state.builder.input("restitution", len(machine.assembly.rows))
    M, _ = _tree_dynamics(state, ca.SX(state.shape.n_v, 1))
    K, c, moving = state.jacobian(), len(machine.assembly.rows), v[state.moving]
    A = ca.blockcat([[M, -K.T], [K, ca.SX(c, c)]])
    still = ca.SX(len(state.moving), 1)
    solution = state.builder.solve(A, ca.vertcat(still, -(1 + restitution) * (K @ moving)), "impact")
    scales = column(row.scale for row in state.rows(ca.SX(state.shape.n_v, 1)))
    after = state.full(moving + solution[: len(state.moving)])
    return state.builder.finish({"v_after": after, "impulse": solution[len(state.moving) :] * scales})


def _tree_dynamics(state: _Full, v: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Mass matrix on the moving velocities, and h (n_v,), at velocities (n_v,)."""
    a = ca.SX.sym("a", state.shape.n_v)
    machine, parts = state.machine, (state.mechanism, state.shape, state.values)
    pi = parameter_values(machine, state.values)
    tau = machine.formulation.forces(*parts, state.motion(v, a), machine.parameters, pi)
    h = machine.formulation.forces(*parts, state.motion(v, ca.SX(state.shape.n_v, 1)), machine.parameters, pi)
    return ca.sparsify(ca.jacobian(tau, a))[state.moving, state.moving], h


def hamilton_rate_program(machine: Machine, alpha: float, beta: float, *, with_wrench: bool = False) -> RateProgram:
    """Hamilton's equations of index two in the extended space, their loops stabilised after Baumgarte.

    q' = N v with M v = p, and p' = L_q + S u + J^T w + K^T lambda (Poincare's term and friction included); lambda from
    K v' = k - 2 alpha K v - beta^2 psi. Source: Miller (NUWAR paper), eqs. 3 to 8 and section 5.

    Args:
        machine: the machine.
        alpha, beta: Baumgarte's factors, 1/s; zero for none.
        with_wrench: whether a wrench at the tool is an input.

    Raises:
        InputError: the mass matrix of the extended space has no inverse, so that momenta give no velocities.
        DescriptionError: a rod has no kinetic energy.
    """
    state = _Full(machine, "hamilton_rate")
    shape, n_v, moving = state.shape, state.shape.n_v, state.moving
    p = state.builder.input("momentum", len(moving))
    entries = parameter_entries(machine, state.values)
    zero, any_v = ca.SX(n_v, 1), ca.SX.sym("v", n_v)
    parts = (state.mechanism, shape, state.values)
    M = ca.sparsify(ca.jacobian(canonical_terms(*parts, state.motion(any_v, zero), entries).momentum, any_v))
    M = M[moving, moving]
    _require_mass(state, M)
    v = state.full(state.builder.solve_symmetric(M, p, "velocities from momenta"))
    terms = canonical_terms(*parts, state.motion(v, zero), entries)
    acting = Acting(state.builder, machine, state.values, state.configuration, with_wrench=with_wrench)
    forces = (acting.generalized - terms.remainder)[moving]
    transport = terms.rate[moving]  # M' v: the motion has no accelerations
    solution = state.accelerations(v, M, forces - transport, (alpha, beta))
    rate = forces + state.jacobian().T @ solution[len(moving) :, :]
    program = state.builder.finish(
        {
            "rate": ca.vertcat(coordinate_rate(shape, state.q, v), rate, acting.powers(v)),
            "all_q": state.q,
            "all_v": v,
        }
    )
    starts = tuple(iq for iq, _ in shape.quaternions)
    return RateProgram(program=program, state=(("q", shape.n_q), ("momentum", len(moving))), quaternions=starts)


def _require_mass(state: _Full, M: ca.SX) -> None:
    """Refuse a mass matrix without an inverse: coordinates to which no inertia belongs have no momentum."""
    n = len(state.moving)
    scale = state.machine.assembly.loops.velocity_scale[state.moving]
    sampled = state.builder.at_samples(M).reshape(-1, n, n) * np.outer(scale, scale)
    values, vectors = np.linalg.eigh(sampled)
    worst = int(np.argmin(values[:, 0] / values[:, -1]))
    if values[worst, 0] <= NO_MASS * values[worst, -1]:
        names = [state.shape.velocity_names[i] for i in state.moving]
        massless = [names[i] for i in np.flatnonzero(np.abs(vectors[worst, :, 0]) > 0.1)]
        raise InputError.of(
            ", ".join(massless),
            (
                "no inertia belongs to this motion when the loops are cut open: the least eigenvalue of the mass "
                f"matrix is {values[worst, 0] / values[worst, -1]:.2g} of the largest, so momenta give no velocities"
            ),
            "use independent coordinates or projection, or give its bodies an inertia",
            file=state.mechanism.file,
        )


def momentum_map_program(machine: Machine) -> Program:
    """Program of the momenta of the moving velocities, p = dT/dv, from all coordinates and velocities."""
    state = _Full(machine, "momentum_map")
    v = state.builder.input("v", state.shape.n_v)
    motion = state.motion(v, ca.SX(state.shape.n_v, 1))
    terms = canonical_terms(
        state.mechanism, state.shape, state.values, motion, parameter_entries(machine, state.values)
    )
    return state.builder.finish({"momentum": terms.momentum[state.moving]})


def projection_program(machine: Machine) -> Program:
    """One Gauss-Newton step back onto phi = 0 and K v = 0, by least squares in unit-free displacements.

    dq = -W K^T y with K W K^T y = phi, and likewise for v; W holds the squares of the unit displacements. Repeated
    until `gap`, the largest residual before the step (m or pure number), is rounding; the loops are then closed to its
    square.
    """
    state = _Full(machine, "projection")
    shape = state.shape
    v = state.builder.input("v", shape.n_v)
    rows = state.rows(v)
    scales = column(row.scale for row in rows)
    K = ca.diag(1 / scales) @ state.jacobian() if rows else state.jacobian()
    W = ca.DM(machine.assembly.loops.velocity_scale[state.moving] ** 2)
    weighted = ca.sparsify(ca.diag(ca.SX(W)) @ K.T)
    residual = column(row.residual for row in rows)
    rate = column(row.psi_rate for row in rows) / scales if rows else ca.SX(0, 1)
    both = _solved(state, K @ weighted, ca.horzcat(residual, rate))
    q = state.q + coordinate_rate(shape, state.q, state.full(-weighted @ both[:, 0]))
    q = normalised(q, (iq for iq, _ in shape.quaternions))
    corrected = state.full(v[state.moving] - weighted @ both[:, 1])
    gap = ca.mmax(ca.fabs(residual)) if rows else ca.SX(0)
    return state.builder.finish({"projected_q": q, "projected_v": corrected, "gap": gap})


def _solved(state: _Full, A: ca.SX, b: ca.SX) -> ca.SX:
    return state.builder.solve_symmetric(A, b, "projection") if A.numel() else ca.SX(*b.shape)


def normalised(q: ca.SX, quaternions: Iterable[int]) -> ca.SX:
    """Coordinates with unit quaternions, which begin at the given places."""
    q = ca.SX(q)
    for iq in quaternions:
        q[iq : iq + 4] = q[iq : iq + 4] / ca.norm_2(q[iq : iq + 4])
    return q
