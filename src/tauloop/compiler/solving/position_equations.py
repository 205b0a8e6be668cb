"""Equations of the position level, their order of solution, and the revolutions of angles.

The equations are the kept loop equations and norms of quaternions, with angles by cosine and sine.
Blocks are found as in Modelica compilers, by CasADi's Dulmage-Mendelsohn decomposition. The full
revolutions of an angle follow from the start values at a single pose, and from the previous sample
along a motion: the angle nearest to them, a + 2 pi floor((near - a) / 2 pi + 1/2).

Source: Davis 2006, Direct Methods for Sparse Linear Systems, for the sorting into blocks.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from tauloop.common.records import dataclass
from tauloop.equations.assembly.loops import closure
from tauloop.equations.topology import Topology
from tauloop.equations.tree import Configuration, tree_motion
from tauloop.equations.values import Values
from tauloop.mechanism.model import Mechanism


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionEquations:
    """Position equations with symbols for every coordinate, cosine and sine.

    Attributes:
        q: coordinates (n_q,).
        c, s: cosines and sines (n_q,), used where the coordinate is an angle.
        psi, scales: kept loop equations, then norms of unknown quaternions; phi = psi / scale.
        sizes: unit of each phi: the characteristic length, m, or one.
        names, elements: name and element of each phi.
        differences: d from A to B and length L where a row is a rod's, d.d = L^2; else None.
        redundant: name, element and residual, a pure number, of every other loop equation.
    """

    q: ca.SX
    c: ca.SX
    s: ca.SX
    psi: ca.SX
    scales: ca.SX
    sizes: np.ndarray
    names: tuple[str, ...]
    elements: tuple[str, ...]
    differences: tuple[tuple[ca.SX, ca.SX] | None, ...]
    redundant: tuple[tuple[str, str, ca.SX], ...]


def position_equations(
    mechanism: Mechanism,
    topology: Topology,
    values: Values,
    rows: tuple[int, ...],
    unknown: tuple[int, ...],
) -> PositionEquations:
    """Return the kept loop equations, and a norm for every quaternion with an unknown component."""
    n = topology.n_q
    q, c, s = ca.SX.sym("q", n), ca.SX.sym("c", n), ca.SX.sym("s", n)
    pairs = {i: (c[i], s[i]) for i in range(n) if topology.is_angle[i]}
    zero = ca.SX(topology.n_v, 1)
    equations = (
        closure(mechanism, tree_motion(topology, values, Configuration(q, pairs), zero, zero))
        if rows
        else []
    )
    kept = [equations[i] for i in rows]
    length = mechanism.characteristic_length
    psi = [row.psi for row in kept]
    scales = [row.scale for row in kept]
    sizes = [length if row.is_length else 1.0 for row in kept]
    names = [row.name for row in kept]
    elements = [row.element for row in kept]
    differences = [None if row.difference is None else (row.difference, row.scale) for row in kept]
    for iq, _ in topology.quaternions:
        if set(range(iq, iq + 4)) & set(unknown):
            psi.append((ca.sumsqr(q[iq : iq + 4]) - 1) / 2)
            scales.append(ca.SX(1))
            sizes.append(1.0)
            differences.append(None)
            elements.append(topology.coordinate_names[iq].removesuffix(".qw"))
            names.append(f"{elements[-1]}: unit quaternion")
    return PositionEquations(
        q=q,
        c=c,
        s=s,
        psi=ca.vertcat(ca.SX(0, 1), *psi),
        scales=ca.vertcat(ca.SX(0, 1), *scales),
        sizes=np.array(sizes, dtype=float),
        names=tuple(names),
        elements=tuple(elements),
        differences=tuple(differences),
        redundant=tuple(
            (row.name, row.element, row.residual / (length if row.is_length else 1.0))
            for i, row in enumerate(equations)
            if i not in rows
        ),
    )


def incidence(
    equations: PositionEquations, topology: Topology, unknown: tuple[int, ...]
) -> ca.Sparsity:
    """Return which equation contains which unknown; an angle occurs by its cosine or sine."""
    angles = _at_angles(equations, topology)
    return ca.sparsify(ca.jacobian(angles, equations.q)[:, list(unknown)]).sparsity()


def _at_angles(equations: PositionEquations, topology: Topology) -> ca.SX:
    """Return numerators in terms of q alone."""
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
    """Return angles that gear equations contain directly, not by cosine and sine."""
    used = {symbol.element_hash() for symbol in ca.symvar(equations.psi)}
    return {
        i
        for i in range(topology.n_q)
        if topology.is_angle[i] and equations.q[i].element_hash() in used
    }


@dataclass(frozen=True, slots=True)
class Block:
    """Equations (rows) and unknowns (columns) of the same number, to be solved together."""

    rows: tuple[int, ...]
    columns: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of equations."""
        return len(self.rows)


def blocks(incidence: ca.Sparsity) -> tuple[Block, ...]:
    """Return the blocks of a square incidence pattern, each depending on itself and earlier blocks.

    Args:
        incidence: pattern (n, n) of which equation contains which unknown.

    Raises:
        ValueError: the pattern is structurally singular.
    """
    n = incidence.size1()
    if n == 0:
        return ()
    count, row_order, column_order, row_start, column_start, _, _ = incidence.btf()
    row_sizes, column_sizes = np.diff(row_start[: count + 1]), np.diff(column_start[: count + 1])
    if incidence.size2() != n or (row_sizes != column_sizes).any():
        raise ValueError("structurally singular: some equations contain too few unknowns")
    listed = [
        Block(
            tuple(sorted(row_order[row_start[b] : row_start[b + 1]])),
            tuple(sorted(column_order[column_start[b] : column_start[b + 1]])),
        )
        for b in range(count)
    ]
    return _in_order(listed, np.array(ca.DM(incidence, 1).full(), dtype=bool))


def _in_order(blocks: list[Block], incidence: np.ndarray) -> tuple[Block, ...]:
    """Return the blocks sorted so that each needs only earlier ones; ties by the first row."""
    waiting = sorted(blocks, key=lambda block: block.rows)
    solved: set[int] = set()
    ordered: list[Block] = []
    while waiting:
        for block in waiting:
            needed = set(np.flatnonzero(incidence[list(block.rows)].any(axis=0))) - set(
                block.columns
            )
            if needed <= solved:
                break
        else:
            raise ValueError("structurally singular: the blocks depend on each other")
        waiting.remove(block)
        solved |= set(block.columns)
        ordered.append(block)
    return tuple(ordered)


TURN = 2.0 * np.pi


def nearest_turn(angle: ca.SX, near: ca.SX) -> ca.SX:
    """Return an angle plus full revolutions, nearest to another angle (rad)."""
    return angle + TURN * ca.floor((near - angle) * (1.0 / TURN) + 0.5)


def nearest_turns(q: np.ndarray, near: np.ndarray, turning: tuple[int, ...]) -> np.ndarray:
    """Return coordinates (N, n_q) with some angles on the revolution nearest to others."""
    q = q.copy()
    turn_near(q, near, turning)
    return q


def turn_near(q: np.ndarray, near: np.ndarray, turning: tuple[int, ...]) -> None:
    """Do the same as `nearest_turns`, in place."""
    columns = list(turning)
    turns = np.round((q[:, columns] - near[..., columns]) / TURN)
    if turns.any():
        q[:, columns] -= TURN * turns


def continued(q: np.ndarray, turning: tuple[int, ...]) -> np.ndarray:
    """Return coordinates (N, n_q) of consecutive samples, with continuous angles by index."""
    q, columns = q.copy(), list(turning)
    turns = np.round(np.diff(q[:, columns], axis=0) / TURN)
    q[1:, columns] -= TURN * np.cumsum(turns, axis=0)
    return q
