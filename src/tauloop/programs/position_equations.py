"""Equations of the position level: kept loop equations and norms of quaternions, angles by cosine and sine."""

from __future__ import annotations

import casadi as ca

from tauloop.equations.closure import closure
from tauloop.equations.topology import Topology
from tauloop.equations.tree import Configuration, tree_motion
from tauloop.equations.values import Values
from tauloop.mechanism.model import Mechanism
from tauloop.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionEquations:
    """Position equations with one symbol for every coordinate, and for the cosine and sine of every angle.

    Attributes:
        q: coordinates (n_q,).
        c, s: cosines and sines (n_q,), used where the coordinate is an angle.
        psi, scales: of the kept loop equations, then of the norms of unknown quaternions.
        names, elements: of the same.
        differences: d from A to B and length L where a row is a rod's, d.d = L^2; else None.
    """

    q: ca.SX
    c: ca.SX
    s: ca.SX
    psi: ca.SX
    scales: ca.SX
    names: tuple[str, ...]
    elements: tuple[str, ...]
    differences: tuple[tuple[ca.SX, ca.SX] | None, ...]


def position_equations(
    mechanism: Mechanism, topology: Topology, values: Values, rows: tuple[int, ...], unknown: tuple[int, ...]
) -> PositionEquations:
    """The kept loop equations, and one norm for every quaternion of which a component is unknown."""
    n = topology.n_q
    q, c, s = ca.SX.sym("q", n), ca.SX.sym("c", n), ca.SX.sym("s", n)
    pairs = {i: (c[i], s[i]) for i in range(n) if topology.is_angle[i]}
    kept = []
    if rows:
        zero = ca.SX(topology.n_v, 1)
        motion = tree_motion(topology, values, Configuration(q, pairs), zero, zero)
        equations = closure(mechanism, topology, values, motion)
        kept = [equations[i] for i in rows]
    psi = [row.psi for row in kept]
    scales = [row.scale for row in kept]
    names = [row.name for row in kept]
    elements = [row.element for row in kept]
    differences = [None if row.difference is None else (row.difference, row.scale) for row in kept]
    for iq, _ in topology.quaternions:
        if set(range(iq, iq + 4)) & set(unknown):
            psi.append((ca.sumsqr(q[iq : iq + 4]) - 1) / 2)
            scales.append(ca.SX(1))
            differences.append(None)
            elements.append(topology.coordinate_names[iq].removesuffix(".qw"))
            names.append(f"{elements[-1]}: unit quaternion")
    return PositionEquations(
        q=q,
        c=c,
        s=s,
        psi=ca.vertcat(ca.SX(0, 1), *psi),
        scales=ca.vertcat(ca.SX(0, 1), *scales),
        names=tuple(names),
        elements=tuple(elements),
        differences=tuple(differences),
    )


def incidence(equations: PositionEquations, topology: Topology, unknown: tuple[int, ...]) -> ca.Sparsity:
    """Which equation contains which unknown, an angle through its cosine or sine."""
    angles = _at_angles(equations, topology)
    return ca.sparsify(ca.jacobian(angles, equations.q)[:, list(unknown)]).sparsity()


def _at_angles(equations: PositionEquations, topology: Topology) -> ca.SX:
    """Numerators in terms of q alone."""
    angle = [i for i in range(topology.n_q) if topology.is_angle[i]]
    if not angle:
        return equations.psi
    q = equations.q[angle]
    return ca.SX(
        ca.substitute(
            [equations.psi],
            [equations.c[angle], equations.s[angle]],
            [ca.cos(q), ca.sin(q)],
        )[0]
    )


def entering_by_value(equations: PositionEquations, topology: Topology) -> set[int]:
    """Angles that stand in the equations themselves, not by cosine and sine only: those that gears couple."""
    return {i for i in range(topology.n_q) if topology.is_angle[i] and ca.depends_on(equations.psi, equations.q[i])}
