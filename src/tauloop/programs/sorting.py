"""Block triangular form: which equations are solved for which unknowns, and in what order.

As Modelica compilers do; here by CasADi's Dulmage-Mendelsohn decomposition.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from tauloop.records import dataclass


@dataclass(frozen=True, slots=True)
class Block:
    """Equations (rows) to be solved together for as many unknowns (columns)."""

    rows: tuple[int, ...]
    columns: tuple[int, ...]

    @property
    def size(self) -> int:
        """Order of the block."""
        return len(self.rows)


def blocks(incidence: ca.Sparsity) -> tuple[Block, ...]:
    """Blocks of a square incidence pattern, each depending only on unknowns of itself and of blocks before it.

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
    found = [
        Block(
            tuple(sorted(row_order[row_start[b] : row_start[b + 1]])),
            tuple(sorted(column_order[column_start[b] : column_start[b + 1]])),
        )
        for b in range(count)
    ]
    return _in_order(found, np.array(ca.DM(incidence, 1).full(), dtype=bool))


def _in_order(found: list[Block], incidence: np.ndarray) -> tuple[Block, ...]:
    """Order the blocks so that each one needs only what was solved before; ties by the first row."""
    waiting = sorted(found, key=lambda block: block.rows)
    solved: set[int] = set()
    ordered: list[Block] = []
    while waiting:
        for block in waiting:
            needed = set(np.flatnonzero(incidence[list(block.rows)].any(axis=0))) - set(block.columns)
            if needed <= solved:
                break
        else:
            raise ValueError("structurally singular: the blocks depend on each other")
        waiting.remove(block)
        solved |= set(block.columns)
        ordered.append(block)
    return tuple(ordered)
