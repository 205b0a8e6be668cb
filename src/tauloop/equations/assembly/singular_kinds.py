"""Kind of singularity of a pose of an assembled machine."""

from __future__ import annotations

import numpy as np

from tauloop.equations.assembly.assembly import Assembly, null_space
from tauloop.equations.assembly.closing import RANK_FLOOR
from tauloop.equations.assembly.freedoms.coordinates import Actuation
from tauloop.equations.assembly.reference_pose import in_words, lost, maps_of, standing


def singular_kind(assembly: Assembly, q: np.ndarray) -> str:
    """Return a text on the kinds of singularity at coordinates (n_q,).

    The kinds are parallel, serial, dead center and constraint.
    """
    loops, locked = assembly.loops, list(assembly.locked)
    states = np.concatenate([q[None, :], assembly.states])
    K = loops.scaled(loops.residuals(states)[1])
    if not np.isfinite(K).all():
        return "of unknown kind, because its coordinates are unknown"
    K[:, :, locked] = 0.0
    if assembly.rank:
        sigma = np.linalg.svd(K[:1], compute_uv=False)[0]
        rank = int((sigma > RANK_FLOOR * sigma[0]).sum())
        if rank < assembly.rank:
            return in_words(
                ("constraint",), f"the loops have rank {rank} there, elsewhere {assembly.rank}"
            )
    free = [i for i in range(loops.topology.n_v) if i not in assembly.locked]
    actuation = Actuation(leading=assembly.leading, passive=assembly.passive)
    maps = maps_of(loops, null_space(K, assembly.rank, free), assembly.independent, actuation)
    kinds, still = lost(maps)
    return in_words(kinds, standing(still))
