"""Programs of vector products with first and second derivatives.

For a function f of inputs x with Jacobian J, a direction d and weights w, the products are J d (a
tangent), w^T J (an adjoint), and the gradient of w^T J d (a second-order adjoint). They cost a few
times as much as f, for any sizes. The unknowns
X (displacements, velocities, accelerations, forces) satisfy residuals r(X) = 0, stage by stage. A
is the matrix of a stage, as in the function itself, and D is the derivative along X_d:

    A X_d = -D r                      tangents; J d is among them
    A^T mu = -(w + mu D_X r)          adjoints, the last stage first; w^T J = mu^T D_x r
    A^T nu = -(D_X (mu^T D r) + ...)  those of second order; gradient = D_x (mu^T D r + nu^T r)

So Newton's loops are never differentiated. The gradient is taken with respect to displacements,
with constant components of d. For rotations, which do not commute, the matrix of second derivatives
is not symmetric.

Source: Griewank, Walther 2008, Evaluating Derivatives, chapters 5 (second-order adjoints) and 15.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter

import casadi as ca
import numpy as np

from tauloop.common.records import dataclass
from tauloop.compiler.derivatives.derivatives import Differentiation, require_smooth
from tauloop.compiler.expressions import MotionState, column
from tauloop.compiler.functions.motion import balanced_forces, force_map, free_accelerations
from tauloop.compiler.program import Program
from tauloop.equations.ports import direction_name, directional_name, factor_of, jacobian_name

_Solve = Callable[[ca.SX], ca.SX]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stage:
    """Residuals r (k,) that determine the unknowns at indices (k,): A x = b, and A^T y = c."""

    residual: ca.SX
    unknown: list[int]
    solve: _Solve
    transposed: _Solve


class _Products:
    """Unknowns X of a state, displacements first, with the stages that determine them."""

    def __init__(self, state: MotionState, v: ca.SX, a: ca.SX, levels: int) -> None:
        """Add the loops at positions and, up to `levels`, at velocities and accelerations."""
        self.state, self.parts, self.moving = state, Differentiation(state, v, a), state.moving
        K = state.K[:, state.dependent]
        unit = ca.SX(ca.DM.eye(len(state.dependent)))
        self._inverse = (
            ca.sparsify(state.builder.solve(K, unit, "products")) if state.dependent else unit
        )
        self.dependent = [self.moving.index(i) for i in state.dependent]
        self._symbols, self._symbols_by_X = self._motion_symbols()
        self.stages: list[_Stage] = []
        self.residuals = [column(map(attrgetter(name), self.parts.rows)) for name in _RESIDUALS]
        for level, residual in enumerate(self.residuals[: levels + 1]):
            unknown = [level * len(self.moving) + i for i in self.dependent]
            self.stages.append(
                _Stage(
                    residual=residual,
                    unknown=unknown,
                    solve=self.dependent_velocities,
                    transposed=self.dependent_multipliers,
                )
            )

    def dependent_velocities(self, right: ca.SX) -> ca.SX:
        """Return the dependent velocities x with K_d x = b."""
        return self._inverse @ right

    def dependent_multipliers(self, loads: ca.SX) -> ca.SX:
        """Return the multipliers y with K_d^T y = c."""
        return self._inverse.T @ loads

    def _motion_symbols(self) -> tuple[ca.SX, ca.SX]:
        """Return symbols (s,) of the motion and their derivatives with respect to X.

        The derivatives are N for q, and -s and c for cosines and sines.
        """
        parts, topology, n = self.parts, self.state.topology, len(self.moving)
        q, pairs = parts.configuration.q, parts.configuration.pairs
        symbols: list[ca.SX] = []
        entries: list[tuple[int, int, ca.SX]] = []
        for k, i in enumerate(self.moving):
            iq = topology.q_of_v[i]
            if iq >= 0:
                entries.append((len(symbols), k, ca.SX(1)))
                symbols.append(q[iq])
                if iq in pairs:
                    c, s = pairs[iq]
                    entries += [(len(symbols), k, -s), (len(symbols) + 1, k, c)]
                    symbols += [c, s]
        for q0, v0 in topology.quaternions:
            angular_velocity = [v0 + k for k in range(3)]
            if set(angular_velocity) & set(self.moving):
                w, xyz = q[q0], q[q0 + 1 : q0 + 4]
                rate = 0.5 * ca.vertcat(-xyz.T, w * ca.SX(ca.DM.eye(3)) - ca.skew(xyz))
                for k, i in enumerate(angular_velocity):
                    if i in self.moving:
                        entries += [
                            (len(symbols) + j, self.moving.index(i), rate[j, k]) for j in range(4)
                        ]
                symbols += ca.vertsplit(q[q0 : q0 + 4])
        into = ca.SX(len(symbols), n)
        for row, k, entry in entries:
            into[row, k] = entry
        rates = ca.SX(ca.DM.eye(2 * n))
        return ca.vertcat(*symbols, parts.v[self.moving], parts.a[self.moving]), ca.diagcat(
            into, rates
        )

    def add_unknowns(self, actual: ca.SX) -> tuple[ca.SX, list[int]]:
        """Add unknowns (k,) with these values; return their symbols and indices."""
        first, made = self._symbols_by_X.size2(), self.parts.symbols(actual)
        self._symbols = ca.vertcat(self._symbols, made)
        self._symbols_by_X = ca.diagcat(self._symbols_by_X, ca.SX(ca.DM.eye(made.numel())))
        return made, list(range(first, first + made.numel()))

    def given_unknowns(self, level: int) -> tuple[list[int], ca.SX]:
        """Return the indices of a level's given unknowns, and the matrix from the port to them."""
        ports = self.state.ports
        rows = [(k, self.moving.index(i)) for k, i in enumerate(ports.v) if i in self.moving]
        indices = [level * len(self.moving) + i for _, i in rows]
        return indices, ca.SX(ca.DM(ports.to_v[[k for k, _ in rows], :]))

    def _directional(self, residual: ca.SX, tangent: ca.SX) -> ca.SX:
        return ca.jtimes(residual, self._symbols, self._symbols_by_X @ tangent)

    def _adjoint(self, residual: ca.SX, factors: ca.SX) -> ca.SX:
        """Return D_X of a residual times factors, at the state."""
        weights = self.parts.symbols(factors)
        return self.parts.at_state(
            [self._symbols_by_X.T @ ca.jtimes(residual, self._symbols, weights, True)]
        )[0]

    def results(
        self,
        sources: Mapping[str, tuple[list[int], ca.SX]],
        result: tuple[str, list[int], np.ndarray],
    ) -> dict[str, ca.SX]:
        """Return tangents, adjoints and second-order adjoints.

        Args:
            sources: indices of the unknowns that each input sets, and the matrix from the input to
                them, by name.
            result: name of the output, indices of its unknowns, and their matrix.
        """
        builder = self.state.builder
        name, output, matrix = result
        stages = [stage for stage in self.stages if stage.unknown]
        tangent = ca.SX(self._symbols_by_X.size2(), 1)
        adjoint_sum = ca.SX(self._symbols_by_X.size2(), 1)
        for source, (at, entry) in sources.items():
            tangent[at] = entry @ builder.input(direction_name(source), entry.size2())
        for stage in stages:
            (right,) = self.parts.at_state(
                [self._directional(stage.residual, self.parts.symbols(tangent))]
            )
            tangent[stage.unknown] = -stage.solve(right)
        adjoint_sum[output] = ca.DM(matrix).T @ builder.input(factor_of(name), matrix.shape[0])
        adjoints = []
        for stage in reversed(stages):
            adjoints.append(-stage.transposed(adjoint_sum[stage.unknown]))
            adjoint_sum += self._adjoint(stage.residual, adjoints[-1])
        direction = self.parts.symbols(tangent)
        work = ca.SX(0)
        for stage, adjoint in zip(reversed(stages), adjoints, strict=True):
            work += ca.dot(
                self.parts.symbols(adjoint), self._directional(stage.residual, direction)
            )
        (second,) = self.parts.at_state([self._symbols_by_X.T @ ca.gradient(work, self._symbols)])
        for stage in reversed(stages):
            second += self._adjoint(stage.residual, -stage.transposed(second[stage.unknown]))
        return {
            directional_name(name): ca.DM(matrix) @ tangent[output],
            **{
                jacobian_name("slope", source): entry.T @ adjoint_sum[at]
                for source, (at, entry) in sources.items()
            },
            **{
                jacobian_name("bend", source): entry.T @ second[at]
                for source, (at, entry) in sources.items()
            },
        }


_RESIDUALS = ("psi", "psi_rate", "psi_acceleration")


def inverse_dynamics_products_program(state: MotionState) -> Program:
    """Return the program of actuator forces and products with their derivatives.

    Raises:
        AssemblyError, InputError: see `inverse_dynamics_derivatives_program`.
    """
    require_smooth(state)
    force, raw = balanced_forces(state, state.forces(state.v, state.a))
    products = _Products(state, state.v, state.a, 2)
    u, u_indices = products.add_unknowns(force)
    multipliers, multiplier_indices = products.add_unknowns(raw)
    balance = products.parts.balance(u, multipliers)
    make = _shared if state.assembly.is_redundant else _determined
    products.stages.append(make(products, balance, u, [*u_indices, *multiplier_indices]))
    sources = {
        name: products.given_unknowns(level)
        for level, name in enumerate(("position", "velocity", "acceleration"))
    }
    made = products.results(sources, ("force", u_indices, np.eye(len(u_indices))))
    return state.builder.finish({"q": state.configuration.q, "force": force, **made})


def _determined(products: _Products, balance: ca.SX, u: ca.SX, unknown: list[int]) -> _Stage:
    """Add M a + h - S u - K^T lambda = 0 for forces and multipliers that the motion determines."""
    state = products.state
    inverse = -state.builder.solve(force_map(state), ca.SX(ca.DM.eye(len(unknown))), "products")
    return _Stage(
        residual=balance,
        unknown=unknown,
        solve=lambda b: inverse @ b,
        transposed=lambda c: inverse.T @ c,
    )


def _shared(products: _Products, balance: ca.SX, u: ca.SX, unknown: list[int]) -> _Stage:
    """Add the equations of the forces of redundant actuators, which minimize the sum of w u^2.

    The equations are W u = A z and K z = 0. With z = G m + p, K p = b and R = A G, they become
    R^T W^-1 R m = -G^T b_1 - R^T W^-1 (b_2 + A p). The matrix is symmetric up to the order and the
    signs of its rows.
    """
    state, n, c = products.state, len(products.moving), len(products.dependent)
    G, A = state.embedding[products.moving, :], state.transmission[:, products.moving]
    weight, size, R = state.builder.declared("weight"), u.numel(), A @ G
    weighted = R / ca.repmat(weight, 1, R.size2())
    reduced = state.builder.solve_symmetric(R.T @ weighted, ca.SX(ca.DM.eye(R.size2())), "products")
    z, places = products.add_unknowns(G @ (reduced @ (R.T @ products.parts.at_state([u])[0])))
    rates, v = products.residuals[1], products.parts.v[products.moving]
    closed = ca.substitute([rates], [v], [z])[0]

    def solve(b: ca.SX) -> ca.SX:
        p = ca.SX(n, 1)
        p[products.dependent] = products.dependent_velocities(b[n + size :])
        shifted = b[n : n + size] + A @ p
        z = G @ -(reduced @ (G.T @ b[:n] + weighted.T @ shifted)) + p
        u = (b[n : n + size] + A @ z) / weight
        return ca.vertcat(
            u, -products.dependent_multipliers((b[:n] + A.T @ u)[products.dependent]), z
        )

    def transposed(right: ca.SX) -> ca.SX:
        y = solve(ca.vertcat(right[size + c :], right[:size], -right[size : size + c]))
        return ca.vertcat(y[size + c :], y[:size], -y[size : size + c])

    residual = ca.vertcat(balance, weight * u - A @ z, closed)
    return _Stage(
        residual=residual, unknown=[*unknown, *places], solve=solve, transposed=transposed
    )


def forward_dynamics_products_program(state: MotionState) -> Program:
    """Return the program of accelerations under forces and products with their derivatives.

    M a + h - S u - K^T lambda = 0 and K a = k for all accelerations and multipliers: a = G x + p
    with K_d p = b_2, M_r x = G^T (b_1 - M p).
    """
    force = state.builder.input("force", len(state.mechanism.actuators))
    G, bias = state.embedding, state.drift()
    reduced, acceleration = free_accelerations(state, force, G, bias)
    inverse = state.builder.solve_symmetric(reduced, ca.SX(ca.DM.eye(reduced.size1())), "products")
    a = G @ acceleration + bias
    raw = state.loop_forces(state.forces(state.v, a) - state.transmission.T @ force)
    products = _Products(state, state.v, a, 1)
    n, moving = len(products.moving), products.moving
    u, u_indices = products.add_unknowns(force)
    multipliers, multiplier_indices = products.add_unknowns(raw)
    residual = ca.vertcat(products.parts.balance(u, multipliers), products.residuals[2])
    M, G = state.mass_matrix(state.v)[moving, moving], G[moving, :]

    def solve(b: ca.SX, M: ca.SX = M) -> ca.SX:
        p = ca.SX(n, 1)
        p[products.dependent] = products.dependent_velocities(b[n:])
        x = G @ (inverse @ (G.T @ (b[:n] - M @ p))) + p
        return ca.vertcat(x, -products.dependent_multipliers((b[:n] - M @ x)[products.dependent]))

    def transposed(c: ca.SX) -> ca.SX:
        # with rods of full inertia, M is symmetric only for closed loops
        y = solve(ca.vertcat(c[:n], -c[n:]), M.T)
        return ca.vertcat(y[:n], -y[n:])

    unknown = [*range(2 * n, 3 * n), *multiplier_indices]
    products.stages.append(
        _Stage(residual=residual, unknown=unknown, solve=solve, transposed=transposed)
    )
    sources = {
        name: products.given_unknowns(level) for level, name in enumerate(("position", "velocity"))
    }
    sources["force"] = u_indices, ca.SX(ca.DM.eye(len(u_indices)))
    accelerations, to_accelerations = products.given_unknowns(2)
    from_accelerations = np.linalg.inv(np.asarray(ca.DM(to_accelerations)))
    made = products.results(sources, ("acceleration", accelerations, from_accelerations))
    return state.builder.finish({"q": state.configuration.q, "acceleration": acceleration, **made})
