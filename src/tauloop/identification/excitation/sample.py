"""One sample of a motion as a differentiable function: its regressor, and every quantity that a limit bounds.

The steps of the machine's programs are called one after the other. Where Newton's method stands,
its unknowns become arguments and its residual an output, so that an optimiser closes these loops
while it improves the motion (the loop equations are constraints, and gradients through them are
exact). Where cables hold the machine, the forces that its redundant winches share are such
arguments too, and their balance is such an output: the optimiser shares them itself.
"""

from __future__ import annotations

from collections.abc import Mapping

import casadi as ca
import numpy as np

from tauloop.common.records import dataclass
from tauloop.compiler.catalogue import EMBEDDING, KINEMATICS, REGRESSORS, TENSIONS
from tauloop.compiler.program import Newton, Program
from tauloop.equations.assembly.cut_freedoms import cut_motions
from tauloop.geometry.clearance import RodClearance
from tauloop.identification.excitation.limits import Bound, quantities
from tauloop.mechanism.bodies import cables
from tauloop.model import Model, Motion
from tauloop.model.faces.casadi_face import unfolded


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleFunction:
    """A sample of a motion.

    Attributes:
        function: (position, velocity, acceleration, open) -> (regressor by rows, residual,
            bounded).
        coordinates: names of those that Newton's method would find; none where all loops close in
            closed form.
        open: these, and the actuators whose forces keep cables within bounds.
        lower, upper: limits of `bounded` (n,), free of units.
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
    """The differentiable sample of one machine and entry.

    Args:
        model: the machine.
        functions: its entry.
        output: rows of the regressor: "actuators" or "joints".
        bounded: limits that are to be kept (see `excitation_limits.bounds`).
        clearance: distances of rods; None where no limit asks for them.
        unit: what forces of winches are counted in where they are open.
    """
    entry = functions.ports
    sizes = {
        "position": entry.position.size,
        "velocity": entry.velocity.size,
        "acceleration": entry.velocity.size,
    }
    motion = {name: ca.SX.sym(name, size) for name, size in sizes.items()}
    closing = _Closing()
    arguments = motion | {
        "start": ca.SX(ca.DM(model.assembly.q)),
        "theta": ca.SX(ca.DM(model.mechanism.parameters.vector(model.free))),
        "weight": ca.SX.ones(len(model.mechanism.actuators)),
    }
    expressions: dict[str, ca.SX] = {}
    for spec in (KINEMATICS[2], REGRESSORS[output], REGRESSORS["actuators"], EMBEDDING):
        outputs = closing.outputs(functions.program(spec), arguments)
        expressions |= {f"{spec}.{key}": value for key, value in outputs.items()}
    regressor = expressions[f"regressor_{output}.regressor"]
    Y = ca.reshape(expressions["regressor_actuators.regressor"], len(model.parameters), -1).T
    force, shared = ca.SX(Y @ ca.DM(model.pi)), _Shared(ca.SX(0, 1), ca.SX(0, 1), ca.SX(0, 1))
    if cables(model.mechanism):
        shared = _shared(
            closing.outputs(functions.program(TENSIONS), arguments),
            len(model.mechanism.actuators),
            unit,
        )
        force = unit * shared.unknowns
    q, v = expressions["kinematics_2.q"], expressions["kinematics_2.v"]
    G = ca.reshape(expressions["embedding.G"], model.topology.n_v, -1)
    cuts, motors = (
        cut_motions(model.mechanism, model.topology, q, v),
        ca.DM(model.assembly.loops.transmission) @ v,
    )
    known = quantities(model, cuts, q, v, motors, force, shared.tension)
    values = []
    for bound in bounded:
        if bound.kind == "singularity":
            values.append(_singularity(bound, model, ca.SX(G)))
        elif bound.kind == "clearance":
            values.append(_clearance(bound, clearance, q))
        else:
            values.append((known[bound.kind, bound.of] - bound.middle) / bound.half)
    counts = np.array([value.numel() for value in values], dtype=int)
    lower, upper = np.repeat(
        np.array([_range(bound) for bound in bounded]).reshape(-1, 2), counts, axis=0
    ).T
    residual, opened = (
        ca.vertcat(closing.residual, shared.residual),
        ca.vertcat(closing.unknowns, shared.unknowns),
    )
    made = [ca.SX(ca.densify(x)) for x in (regressor, residual, ca.vertcat(ca.SX(0, 1), *values))]
    winches = tuple(actuator.name for actuator in model.mechanism.actuators)[
        : shared.unknowns.numel()
    ]
    return SampleFunction(
        function=ca.Function("sample", [*motion.values(), opened], ca.cse(made)),
        coordinates=closing.names,
        open=(*closing.names, *winches),
        lower=lower,
        upper=upper,
    )


@dataclass(frozen=True, slots=True)
class _Shared:
    """Forces of actuators that an optimiser chooses, their balance, and tensions of cables (k,), N."""

    unknowns: ca.SX
    residual: ca.SX
    tension: ca.SX


def _shared(terms: Mapping[str, ca.SX], actuators: int, unit: float) -> _Shared:
    """Open forces u, counted in a unit, with R^T u = t and tensions T_0 - C u."""
    u = ca.SX.sym("u", actuators)
    R, C = ca.reshape(terms["map"], actuators, -1), ca.reshape(terms["pulls"], -1, actuators)
    return _Shared(u, R.T @ u - terms["needed"] / unit, terms["unforced"] - unit * (C @ u))


def _range(bound: Bound) -> tuple[float, float]:
    """Limits of what `sample_function` makes of a bound."""
    if bound.kind == "singularity":
        return 0.0, np.inf
    return (1.0, np.inf) if bound.kind == "clearance" else bound.scaled


class _Closing:
    """Calls programs with symbols; the blocks that Newton's method would solve stay open, each once."""

    def __init__(self) -> None:
        self._blocks: dict[tuple[str, ...], ca.SX] = {}
        self._residuals: list[ca.SX] = []

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the open coordinates."""
        return tuple(name for names in self._blocks for name in names)

    @property
    def unknowns(self) -> ca.SX:
        """Their symbols."""
        return ca.vertcat(ca.SX(0, 1), *self._blocks.values())

    @property
    def residual(self) -> ca.SX:
        """Residuals of their loops, m or pure numbers."""
        return ca.vertcat(ca.SX(0, 1), *self._residuals)

    def outputs(self, program: Program, inputs: dict[str, ca.SX]) -> dict[str, ca.SX]:
        """Outputs of a program by name."""
        values = unfolded(program, inputs, self._open)
        return {name: values[name] for name in program.outputs}

    def _open(self, step: Newton, known: list[ca.SX]) -> ca.SX:
        if step.unknowns not in self._blocks:
            symbol = ca.SX.sym("_".join(step.unknowns), step.size)
            self._blocks[step.unknowns] = symbol
            self._residuals.append(step.function.function.call([symbol, *known])[0])
        return self._blocks[step.unknowns]


def _clearance(bound: Bound, clearance: RodClearance | None, q: ca.SX) -> ca.SX:
    """Squared distances over the squared least distance, pair by pair (see `kinematics.clearance`)."""
    assert clearance is not None
    assert clearance.ends is not None
    ends = clearance.ends.function(q)
    points = [ends[3 * k : 3 * k + 3] for k in range(ends.numel() // 3)]
    return ca.vertcat(
        *(
            squared_distance(points[2 * i], points[2 * i + 1], points[2 * j], points[2 * j + 1])
            / bound.lower**2
            for i, j in clearance.pairs.tolist()
        )
    )


def _singularity(bound: Bound, model: Model, G: ca.SX) -> ca.SX:
    """Pivots of G^T (A^T A - d^2) G, all positive where the least stretch of A over all motions is above d.

    A maps unit-free velocities to those of the actuators (parallel) or of the platform (serial).
    The pivots, over those of G^T G, are at most about one.
    """
    G = ca.DM(np.diag(1.0 / model.assembly.loops.velocity_scale)) @ G
    A = ca.DM(stretched(model, bound.of))
    metric = G.T @ G
    return _pivots(ca.mtimes(A, G).T @ ca.mtimes(A, G) - bound.lower**2 * metric) / _pivots(metric)


def stretched(model: Model, kind: str) -> np.ndarray:
    """Map A (n, n_v) from unit-free velocities, whose least stretch measures singularities of one kind."""
    loops = model.assembly.loops
    if kind == "serial":
        return np.asarray(np.eye(loops.topology.n_v)[list(model.assembly.independent)])
    A = loops.transmission * loops.velocity_scale
    return np.asarray(A / np.maximum(np.linalg.norm(A, axis=1, keepdims=True), 1e-300))


def _pivots(matrix: ca.SX) -> ca.SX:
    """Pivots (n,) of L D L^T without row exchanges."""
    rest, pivots = matrix, []
    for _ in range(matrix.size1()):
        pivots.append(rest[0, 0])
        rest = rest[1:, 1:] - rest[1:, 0] @ rest[0, 1:] / rest[0, 0]
    return ca.vertcat(*pivots)


def squared_distance(a: ca.SX, b: ca.SX, c: ca.SX, d: ca.SX) -> ca.SX:
    """Squared distance of the segments ab and cd; as `kinematics.clearance.segment_distances`, for symbols."""
    u, w, r = b - a, d - c, a - c
    uu, ww, uw, ur, wr = ca.dot(u, u), ca.dot(w, w), ca.dot(u, w), ca.dot(u, r), ca.dot(w, r)
    determinant = uu * ww - uw**2
    apart = determinant > 1e-12 * uu * ww
    s = ca.if_else(apart, (uw * wr - ww * ur) / ca.if_else(apart, determinant, 1.0), 0.0)
    t = _clipped((uw * _clipped(s) + wr) / ww)
    s = _clipped((uw * t - ur) / uu)
    return ca.sumsqr(r + s * u - t * w)


def _clipped(value: ca.SX) -> ca.SX:
    return ca.fmin(ca.fmax(value, 0.0), 1.0)
