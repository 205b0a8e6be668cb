"""Candidates for the driven joints of a machine whose file does not specify its motors."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import Problem
from tauloop.equations.assembly.assembly import Assembly, null_space
from tauloop.equations.assembly.freedoms.coordinates import SINGULAR, conditions, independent_rows
from tauloop.equations.values import quantile
from tauloop.formats.library import motor_remedy
from tauloop.mechanism.model import BASE
from tauloop.mechanism.suggestions import listing

#: Maximum number of sets to compare; if there are more, one set is chosen by pivoting.
MAX_SETS = 2000
#: Number of sets that a message lists.
SHOWN_SETS = 5


def motor_candidates(assembly: Assembly) -> list[tuple[str, ...]]:
    """Return sets of joints whose motors would drive the machine, the best set first.

    Each set has full rank at the assembled states. Sets with more joints on the base come first,
    because motors are usually there. Otherwise, better conditioned sets come first.
    """
    topology, loops = assembly.topology, assembly.loops
    names = [name for name in assembly.mechanism.unstated_motors if name in topology.velocity_names]
    free = [i for i in range(topology.n_v) if i not in assembly.locked]
    motions = null_space(loops.scaled(loops.residuals(assembly.states)[1]), assembly.rank, free)
    rows = motions[:, [topology.velocity_names.index(name) for name in names]]
    sigma = np.linalg.svd(rows, compute_uv=False)
    rank = int((sigma > 1.0 / SINGULAR).sum(axis=1).max(initial=0))
    if not rank:
        return []
    sets = [independent_rows(rows, rank)]
    if comb(len(names), rank) <= MAX_SETS:
        sets = [*combinations(range(len(names)), rank)]
    on_base = {joint.name for joint in assembly.mechanism.joints if joint.parent.body == BASE}
    ranked: list[tuple[int, float, tuple[str, ...]]] = []
    for chosen in sets:
        condition = quantile(_conditions(rows[:, list(chosen)], rank), 0.5)
        if condition < SINGULAR:
            joints = tuple(names[i] for i in sorted(chosen))
            ranked.append((-len(on_base.intersection(joints)), float(condition), joints))
    return [joints for _, _, joints in sorted(ranked, key=lambda item: item[:2])]


def _conditions(rows: np.ndarray, rank: int) -> np.ndarray:
    """Return condition numbers (N,) of rows (N, k, m) of this rank."""
    if rows.shape[2] == rank:
        return conditions(rows)
    sigma = np.linalg.svd(rows, compute_uv=False)
    with np.errstate(divide="ignore"):
        return np.asarray(sigma[:, 0] / sigma[:, rank - 1])


def unstated_motors(assembly: Assembly) -> Problem:
    """Return the problem that the file does not specify the motors; the remedy lists candidates."""
    joints, mobility = assembly.mechanism.unstated_motors, assembly.mobility
    freedoms = counted(mobility, "degree of freedom")
    what = (
        f"the file does not specify which joints have motors: there are {len(joints)} candidates "
        f"({listing(joints)}), and the machine has {freedoms}"
    )
    sets = motor_candidates(assembly)
    remedy = motor_remedy(assembly.mechanism.file)
    if sets:
        has_option = "--motors" in remedy
        choices = [
            f"`--motors {','.join(chosen)}`" if has_option else " and ".join(chosen)
            for chosen in sets
        ]
        more = f" (and {len(sets) - SHOWN_SETS} more sets)" if len(sets) > SHOWN_SETS else ""
        listed = (", " if has_option else " or ").join(choices[:SHOWN_SETS])
        remedy = f"name them; these move every degree of freedom: {listed}{more}" + (
            "" if has_option else f"; {remedy}"
        )
    return Problem(where="actuators", what=what, remedy=remedy, file=assembly.mechanism.file)
