"""Loops that are closed by iteration, as differentiable expressions with numerical solutions.

Let z_0 be the solution of R(z, x) = 0 at x_0, and B the inverse of dR/dz there. Then

    z <- z - B R(z, x),  applied twice from z_0,

is a function of x with the value and the first and second derivatives of the solution at x_0. Each
application makes another order exact. The derivatives therefore use the implicit function theorem,
not the solver's iterations.

Source: Griewank, Walther 2008, Evaluating Derivatives, chapter 15 (derivatives of implicit
functions).
"""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca
import numpy as np

from tauloop.common.errors import PoseError
from tauloop.compiler.catalogue import KINEMATICS
from tauloop.compiler.program import Newton
from tauloop.compiler.state import solve_diagnostics
from tauloop.equations.values import BatchFunction
from tauloop.model import Model
from tauloop.model.faces.casadi_face import unfolded
from tauloop.motion.free.chart import Chart
from tauloop.motion.strokes.stroke import Stroke

#: Number of applications of the iteration. Each application makes another order of derivatives
#: exact.
PASSES = 2
#: Largest accepted difference between the solutions of the loops and the coordinates of a path, in
#: characteristic lengths, rad or dimensionless.
LOOP_TOLERANCE = 1e-6


class IteratedLoops:
    """The loops of a machine that are closed by iteration, in the assembly mode of a nearby path.

    Attributes:
        symbols: symbols in expressions at a point (k,): solutions of all blocks, followed by the
            inverses of their Jacobians.
    """

    def __init__(self, model: Model, chart: Chart, ends: np.ndarray) -> None:
        """Prepare the loops of the functions that take platform positions.

        Args:
            model: the machine.
            chart: free coordinates of the motion.
            ends: coordinates (2, n_q) at the start and the end of the motion.
        """
        self._chart = chart
        self._runner = model.platform.runner
        self._program = self._runner.program(KINEMATICS[0])
        self._blocks = [step for step in self._program.steps if isinstance(step, Newton)]
        names = [name for block in self._blocks for name in block.unknowns]
        self._columns = [model.topology.coordinate_names.index(name) for name in names]
        self._solutions = {block.unknowns: ca.SX.sym("z", block.size) for block in self._blocks}
        self._inverses = {
            block.unknowns: ca.SX.sym("B", block.size, block.size) for block in self._blocks
        }
        parts = (*self._solutions.values(), *map(ca.vec, self._inverses.values()))
        self.symbols = ca.SX(ca.vertcat(ca.SX(0, 1), *parts))
        self._grid = np.array([0.0, 1.0])
        self._q = ends
        self._jacobian_function = self._build_jacobian_function() if self._blocks else None
        start_jacobians = self._jacobians(self._runner.ports.at(ends[:1]), ends[:1])
        #: Signs of the determinants of the Jacobians. They change at singularities.
        self._signs = [float(np.sign(np.linalg.det(matrix[0]))) for matrix in start_jacobians]

    def _build_jacobian_function(self) -> BatchFunction:
        """Return dR/dz of all blocks as a function of positions, start and solutions."""
        sizes = self._runner.empty_inputs()
        jacobians: list[ca.SX] = []
        inputs = {name: ca.SX.sym(name, sizes[name].shape[1]) for name in ("position", "start")}

        def store_jacobian(block: Newton, known: Sequence[ca.SX]) -> ca.SX:
            """Store the Jacobian of a block, and return the symbol of its solution."""
            z = self._solutions[block.unknowns]
            residual = block.function.function(z, *known)[0]
            jacobians.append(ca.densify(ca.vec(ca.jacobian(residual, z))))
            return z

        theta = ca.SX(ca.DM(self._runner.nominal["theta"]))
        unfolded(self._program, {**inputs, "theta": theta}, store_jacobian)
        arguments = [*inputs.values(), ca.vertcat(*self._solutions.values())]
        return BatchFunction(ca.Function("slopes", arguments, ca.cse(jacobians)))

    def _jacobians(self, position: np.ndarray, q: np.ndarray) -> list[np.ndarray]:
        """Return dR/dz of all blocks (N, k, k) at positions (N, n) and coordinates (N, n_q)."""
        if self._jacobian_function is None:
            return []
        columns = self._jacobian_function([position, q, q[:, self._columns]], len(q))
        return [
            column.reshape(-1, block.size, block.size).swapaxes(1, 2)
            for column, block in zip(columns, self._blocks, strict=True)
        ]

    def solution(self, block: Newton, known: Sequence[ca.SX]) -> ca.SX:
        """Return the solution of a block as an expression with exact first and second derivatives.

        This function is an argument of `unfolded`.
        """
        z = self._solutions[block.unknowns]
        for _ in range(PASSES):
            z = z - self._inverses[block.unknowns] @ block.function.function(z, *known)[0]
        return ca.SX(z)

    def follow(self, u: np.ndarray, q: np.ndarray) -> None:
        """Use coordinates (N, n_q) at parameters u (N,) of a path as start values of the loops."""
        self._grid = u
        self._q = q

    def at(self, u: np.ndarray, free: np.ndarray, *, follows: bool = False) -> np.ndarray:
        """Return the values of the symbols (N, k) at parameters u (N,) and free coordinates (N, m).

        The values are NaN where the loops do not close, or where they only close beyond a
        singularity (the determinant of a Jacobian has the opposite sign).

        Args:
            u: parameters (N,).
            free: free coordinates (N, m).
            follows: whether the solutions become the start values of the loops for the next call.
        """
        if not self._blocks:
            return np.zeros((len(u), 0))
        n = len(u)
        start = np.stack([np.interp(u, self._grid, column) for column in self._q.T], axis=1)
        zero = np.zeros_like(free)
        position = self._chart.curve(free, zero, zero).position
        theta = np.tile(self._runner.nominal["theta"], (n, 1))
        outputs, diagnostics = self._program.run(
            {"position": position, "start": start, "theta": theta}, n
        )
        q = outputs["q"]
        is_closed = solve_diagnostics(self._program, diagnostics).is_reached
        inverses = []
        for matrix, sign in zip(self._jacobians(position, q), self._signs, strict=True):
            is_closed &= np.sign(np.linalg.det(np.nan_to_num(matrix))) == sign
            invertible = np.where(is_closed[:, None, None], matrix, np.eye(matrix.shape[1]))
            inverses.append(np.linalg.inv(invertible).swapaxes(1, 2).reshape(n, -1))
        if follows and is_closed.all():
            self.follow(u, q)
        values = np.concatenate([q[:, self._columns], *inverses], axis=1)
        values[~is_closed] = np.nan
        return values

    def require_same_assembly_mode(self, stroke: Stroke, u: np.ndarray, free: np.ndarray) -> None:
        """Use a path as start values, and reject it if its loops are in another assembly mode.

        Args:
            stroke: the path.
            u: parameters (N,) at which the solutions before and after are compared.
            free: free coordinates (N, m) at these parameters.

        Raises:
            PoseError: the assembly modes differ. The message states where on the path.
        """
        k = len(self._columns)
        previous = self.at(u, free)
        self.follow(stroke.grid, stroke.q)
        scale = self._runner.assembly.loops.coordinate_scale[self._columns]
        difference = (np.abs(self.at(u, free) - previous)[:, :k] / scale).max(axis=1, initial=0.0)
        if not (difference < LOOP_TOLERANCE).all():
            worst = int(np.argmax(np.nan_to_num(difference, nan=np.inf)))
            what = f"leaves its assembly mode at {stroke.place(float(u[worst]))}"
            raise PoseError.of(
                "motion",
                what,
                "move the start and the end closer to each other, or lower the largest allowed "
                "condition number",
            )


class ClosedLoops(ca.Callback):
    """`IteratedLoops` at fixed parameters as a CasADi function: (m, N) to (k, N)."""

    def __init__(self, loops: IteratedLoops, u: np.ndarray, freedoms: int) -> None:
        """Store the loops, parameters (N,) and the number of free coordinates m."""
        ca.Callback.__init__(self)
        self._loops = loops
        self._u = u
        self._m = freedoms
        self._last = b"", ca.DM()
        self.construct("loops", {})

    def get_n_in(self) -> int:  # noqa: D102
        return 1

    def get_n_out(self) -> int:  # noqa: D102
        return 1

    def get_sparsity_in(self, _: int) -> ca.Sparsity:  # noqa: D102
        return ca.Sparsity.dense(self._m, len(self._u))

    def get_sparsity_out(self, _: int) -> ca.Sparsity:  # noqa: D102
        return ca.Sparsity.dense(self._loops.symbols.numel(), len(self._u))

    def eval(self, arg: Sequence[ca.DM]) -> list[ca.DM]:
        """Return the values of the symbols.

        The value, Jacobian and Hessian evaluations request the same values in turn, so the last
        result is stored.
        """
        free = arg[0].full().T
        key = free.tobytes()
        if self._last[0] != key:
            self._last = key, ca.DM(self._loops.at(self._u, free, follows=True).T)
        return [self._last[1]]
