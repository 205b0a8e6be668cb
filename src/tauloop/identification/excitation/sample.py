"""One sample of a motion as a differentiable function: regressor and bounded quantities.

The function evaluates the steps of the machine's programs in sequence. For a step that uses
Newton's method, the unknowns become arguments and the residual becomes an output. The optimizer
then closes these loops itself: the loop equations are constraints with exact gradients. For
machines with cables, the forces of the redundant winches are additional arguments and their balance
is an additional output, so that the optimizer also distributes the forces.
"""

from __future__ import annotations

from collections.abc import Mapping

import casadi as ca
import numpy as np

from tauloop.common.records import dataclass
from tauloop.compiler.catalogue import EMBEDDING, KINEMATICS, REGRESSORS, TENSIONS
from tauloop.compiler.program import Newton, Program
from tauloop.equations.assembly.freedoms.cut_freedoms import cut_motions
from tauloop.geometry.clearance import RodClearance
from tauloop.identification.excitation.limits import Bound, quantities
from tauloop.model import Model, Motion
from tauloop.model.faces.casadi_face import unfolded


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleFunction:
    """A sample of a motion as a function.

    Attributes:
        function: maps (position, velocity, acceleration, open) to (regressor, row by row; residual;
            bounded).
        coordinates: names of the coordinates that Newton's method would find; empty if all loops
            have a closed form.
        open: names of these coordinates, and of the actuators whose forces are arguments.
        lower, upper: (n,) scaled limits of `bounded`.
    """

    function: ca.Function
    coordinates: tuple[str, ...]
    open: tuple[str, ...]
    lower: np.ndarray
    upper: np.ndarray


def sample_function(
    model: Model,
    functions: Motion,
    output: str,
    bounded: tuple[Bound, ...],
    clearance: RodClearance | None,
    unit: float = 1.0,
) -> SampleFunction:
    """Return the sample of a machine's motion as a differentiable function.

    Args:
        model: the machine.
        functions: functions for motions of the actuators or the platform (see `Model`).
        output: rows of the regressor: "actuators" or "joints".
        bounded: limits of the excitation (see `limits.bounds`).
        clearance: distances between rods; None if they are not limited.
        unit: force that scales the winch forces among the arguments, N or N m.
    """
    entry = functions.ports
    lengths = {
        "position": entry.position.size,
        "velocity": entry.velocity.size,
        "acceleration": entry.velocity.size,
    }
    motion = {name: ca.SX.sym(name, size) for name, size in lengths.items()}
    loops = _OpenLoops()
    arguments = motion | {
        "start": ca.SX(ca.DM(model.assembly.q)),
        "theta": ca.SX(ca.DM(model.mechanism.parameters.vector(model.free))),
        "weight": ca.SX.ones(len(model.mechanism.actuators)),
    }
    expressions: dict[str, ca.SX] = {}
    for spec in (KINEMATICS[2], REGRESSORS[output], REGRESSORS["actuators"], EMBEDDING):
        outputs = loops.outputs(functions.program(spec), arguments)
        expressions |= {f"{spec}.{key}": value for key, value in outputs.items()}
    regressor = expressions[f"regressor_{output}.regressor"]
    Y = ca.reshape(expressions["regressor_actuators.regressor"], len(model.parameters), -1).T
    force = ca.SX(Y @ ca.DM(model.pi))
    forces = _OpenForces(ca.SX(0, 1), ca.SX(0, 1), ca.SX(0, 1))
    if model.mechanism.cables:
        terms = loops.outputs(functions.program(TENSIONS), arguments)
        forces = _open_forces(terms, len(model.mechanism.actuators), unit)
        force = unit * forces.unknowns
    q = expressions["kinematics_2.q"]
    v = expressions["kinematics_2.v"]
    G = ca.reshape(expressions["embedding.G"], model.topology.n_v, -1)
    cuts = cut_motions(model.mechanism, model.topology, q, v)
    motors = ca.DM(model.assembly.loops.transmission) @ v
    known = quantities(model, cuts, q, v, motors, force, forces.tension)
    values = []
    for bound in bounded:
        if bound.kind == "singularity":
            values.append(_singularity(bound, model, ca.SX(G)))
        elif bound.kind == "clearance":
            values.append(_clearance(bound, clearance, q))
        else:
            values.append((known[bound.kind, bound.of] - bound.middle) / bound.half)
    counts = np.array([value.numel() for value in values], dtype=int)
    limits = np.array([_scaled_limits(bound) for bound in bounded]).reshape(-1, 2)
    lower, upper = np.repeat(limits, counts, axis=0).T
    residual = ca.vertcat(loops.residual, forces.residual)
    opened = ca.vertcat(loops.unknowns, forces.unknowns)
    bounded_values = ca.vertcat(ca.SX(0, 1), *values)
    results = [ca.SX(ca.densify(x)) for x in (regressor, residual, bounded_values)]
    actuators = [actuator.name for actuator in model.mechanism.actuators]
    winches = actuators[: forces.unknowns.numel()]
    return SampleFunction(
        function=ca.Function("sample", [*motion.values(), opened], ca.cse(results)),
        coordinates=loops.names,
        open=(*loops.names, *winches),
        lower=lower,
        upper=upper,
    )


@dataclass(frozen=True, slots=True)
class _OpenForces:
    """Actuator forces that the optimizer chooses, their balance, and cable tensions (k,), N."""

    unknowns: ca.SX
    residual: ca.SX
    tension: ca.SX


def _open_forces(terms: Mapping[str, ca.SX], actuators: int, unit: float) -> _OpenForces:
    """Return open forces u with the balance R^T u = t and the tensions T_0 - C u.

    Args:
        terms: expressions of the tension program by name.
        actuators: number of actuators.
        unit: force that scales u, N or N m.
    """
    u = ca.SX.sym("u", actuators)
    R = ca.reshape(terms["map"], actuators, -1)
    C = ca.reshape(terms["pulls"], -1, actuators)
    return _OpenForces(u, R.T @ u - terms["needed"] / unit, terms["unforced"] - unit * (C @ u))


def _scaled_limits(bound: Bound) -> tuple[float, float]:
    """Return the limits of the scaled value of a bound in `sample_function`."""
    if bound.kind == "singularity":
        return 0.0, np.inf
    if bound.kind == "clearance":
        return 1.0, np.inf
    return bound.scaled


class _OpenLoops:
    """Evaluates programs with symbols; unknowns of Newton's method become free symbols.

    A block that occurs in several programs has the same symbols in all of them.
    """

    def __init__(self) -> None:
        self._blocks: dict[tuple[str, ...], ca.SX] = {}
        self._residuals: list[ca.SX] = []

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the open coordinates."""
        return tuple(name for names in self._blocks for name in names)

    @property
    def unknowns(self) -> ca.SX:
        """Symbols of the open coordinates."""
        return ca.vertcat(ca.SX(0, 1), *self._blocks.values())

    @property
    def residual(self) -> ca.SX:
        """Residuals of the open loops, m or without unit."""
        return ca.vertcat(ca.SX(0, 1), *self._residuals)

    def outputs(self, program: Program, inputs: dict[str, ca.SX]) -> dict[str, ca.SX]:
        """Return the outputs of a program by name."""
        values = unfolded(program, inputs, self._open)
        return {name: values[name] for name in program.outputs}

    def _open(self, step: Newton, known: list[ca.SX]) -> ca.SX:
        """Return symbols for the unknowns of a Newton step, and store its residual."""
        if step.unknowns not in self._blocks:
            symbol = ca.SX.sym("_".join(step.unknowns), step.size)
            self._blocks[step.unknowns] = symbol
            self._residuals.append(step.function.function.call([symbol, *known])[0])
        return self._blocks[step.unknowns]


def _clearance(bound: Bound, clearance: RodClearance | None, q: ca.SX) -> ca.SX:
    """Return the squared distance of each pair of rods, divided by its squared lower limit.

    See `tauloop.geometry.clearance`.
    """
    assert clearance is not None
    assert clearance.ends is not None
    ends = clearance.ends.function(q)
    points = [ends[3 * k : 3 * k + 3] for k in range(ends.numel() // 3)]
    ratios = []
    for i, j in clearance.pairs.tolist():
        first = points[2 * i : 2 * i + 2]
        second = points[2 * j : 2 * j + 2]
        ratios.append(squared_distance(*first, *second) / bound.lower**2)
    return ca.vertcat(*ratios)


def _singularity(bound: Bound, model: Model, G: ca.SX) -> ca.SX:
    """Return the pivots of G^T (A^T A - d^2) G, divided by the pivots of G^T G.

    A maps scaled velocities to those of the actuators (parallel singularities) or of the platform
    (serial). All pivots are positive if the smallest stretch |A v| / |v| over all possible
    velocities v exceeds d. The ratios are at most about 1.
    """
    G = ca.DM(np.diag(1.0 / model.assembly.loops.velocity_scale)) @ G
    A = ca.DM(stretched(model, bound.of))
    metric = G.T @ G
    return _pivots(ca.mtimes(A, G).T @ ca.mtimes(A, G) - bound.lower**2 * metric) / _pivots(metric)


def stretched(model: Model, kind: str) -> np.ndarray:
    """Return the map A (n, n_v) of scaled velocities v that measures singularities of one kind.

    The distance to a singularity is the smallest |A v| / |v| over all possible velocities.
    """
    loops = model.assembly.loops
    if kind == "serial":
        return np.asarray(np.eye(loops.topology.n_v)[list(model.assembly.independent)])
    A = loops.transmission * loops.velocity_scale
    return np.asarray(A / np.maximum(np.linalg.norm(A, axis=1, keepdims=True), 1e-300))


def _pivots(matrix: ca.SX) -> ca.SX:
    """Return the pivots (n,) of L D L^T without row exchanges."""
    remainder = matrix
    pivots = []
    for _ in range(matrix.size1()):
        pivots.append(remainder[0, 0])
        update = remainder[1:, 0] @ remainder[0, 1:] / remainder[0, 0]
        remainder = remainder[1:, 1:] - update
    return ca.vertcat(*pivots)


def squared_distance(a: ca.SX, b: ca.SX, c: ca.SX, d: ca.SX) -> ca.SX:
    """Return the squared distance between the segments ab and cd as an expression.

    See `tauloop.geometry.clearance.segment_distances`.
    """
    u, w, r = b - a, d - c, a - c
    uu, ww, uw, ur, wr = ca.dot(u, u), ca.dot(w, w), ca.dot(u, w), ca.dot(u, r), ca.dot(w, r)
    determinant = uu * ww - uw**2
    is_skew = determinant > 1e-12 * uu * ww
    divisor = ca.if_else(is_skew, determinant, 1.0)
    s = ca.if_else(is_skew, (uw * wr - ww * ur) / divisor, 0.0)
    t = _clipped((uw * _clipped(s) + wr) / ww)
    s = _clipped((uw * t - ur) / uu)
    return ca.sumsqr(r + s * u - t * w)


def _clipped(value: ca.SX) -> ca.SX:
    """Return a value limited to the range from 0 to 1."""
    return ca.fmin(ca.fmax(value, 0.0), 1.0)
