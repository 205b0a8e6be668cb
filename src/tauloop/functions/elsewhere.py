"""The same machine at another assembled pose: decided once, its coordinates and rows stay; its branches are new."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tauloop.errors import AssemblyError, Problem
from tauloop.functions.assembly import Assembly
from tauloop.functions.closing import CLOSED, RANK_FLOOR, close_loops, open_loops, random_walk


def assembled_at(assembly: Assembly, q: np.ndarray) -> Assembly:
    """The assembly with its reference at other coordinates (n_q,), which are closed to rounding.

    Raises:
        AssemblyError: the loops do not close there: which, by how much; or their rank is another one there.
    """
    loops, start = assembly.loops, q[None, :]
    closed, residual = close_loops(loops, start, held=(*assembly.independent, *assembly.locked))
    if residual[0] > CLOSED:
        closed, residual = close_loops(loops, start, held=assembly.locked)
    if residual[0] > CLOSED:
        raise AssemblyError(open_loops(loops, closed))
    states = random_walk(loops, closed, np.random.default_rng(0), locked=assembly.locked)
    _require_rank(assembly, states)
    return replace(assembly, q=closed[0], residual=float(residual[0]), states=states)


def _require_rank(assembly: Assembly, states: np.ndarray) -> None:
    loops = assembly.loops
    if not loops.names:
        return
    K = loops.scaled(loops.residuals(states)[1])
    K[:, :, list(assembly.locked)] = 0.0
    sigma = np.linalg.svd(K, compute_uv=False)
    rank = int((sigma > RANK_FLOOR * sigma[:, :1]).sum(axis=1).max())
    if rank != assembly.rank:
        raise AssemblyError(
            Problem(
                where="start",
                what=f"lies where the loops have rank {rank}; at the reference pose it is {assembly.rank}",
                remedy="make it the reference pose of the machine file",
                file=loops.mechanism.file,
            )
        )
