"""An assembled machine at another reference pose, with the same coordinates and loop equations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tauloop.common.errors import AssemblyError, Problems
from tauloop.equations.assembly.assembly import Assembly, common_rank
from tauloop.equations.assembly.closing import CLOSED, close_loops, open_loops, probed
from tauloop.equations.ports import numbers


def assembled_at(assembly: Assembly, q: np.ndarray) -> Assembly:
    """Return the assembly with its reference pose at other coordinates (n_q,), closed to rounding.

    Raises:
        AssemblyError: the loops do not close there (the message states their errors), or their rank
            differs.
    """
    loops, start = assembly.loops, numbers(q, "start")[None, :]
    closed, residual = close_loops(loops, start, held=(*assembly.independent, *assembly.locked))
    if residual[0] > CLOSED:
        closed, residual = close_loops(loops, start, held=assembly.locked)
    if residual[0] > CLOSED:
        raise AssemblyError(open_loops(loops, closed))
    probe = probed(loops, closed, assembly.locked)
    rank, _ = common_rank(probe.sigma, Problems())
    if rank != assembly.rank:
        raise AssemblyError.of(
            "start",
            f"is a pose where the loops have rank {rank}; at the reference pose it is "
            f"{assembly.rank}",
            "make it the reference pose of the machine file",
            file=loops.mechanism.file,
        )
    return replace(
        assembly, q=closed[0], residual=loops.length * float(residual[0]), states=probe.states
    )
