"""Random states on the loops' manifold, with consistent velocities and accelerations."""

from __future__ import annotations

from functools import partial

import numpy as np

from tauloop.common.errors import PoseError, solving
from tauloop.common.names.deprecated import old_attribute
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.equations.assembly.closing import random_walk
from tauloop.model import Model

#: Number of parallel walks for many states.
PARALLEL_WALKS = 64
#: Difference below which two states count as equal, characteristic lengths or rad.
STATE_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomStates(ReprMixin):
    """States (N, ...) that satisfy phi = 0, K v = 0 and K a = k.

    Attributes:
        q, v, a: coordinates (N, n_q), velocities and accelerations (N, n_v).
        position, velocity, acceleration: motion of the platform coordinates in these states.
        distinct_states: number of distinct states; states repeat if the walks found fewer than N.
    """

    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    position: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray
    distinct_states: int
    different = old_attribute("different", "distinct_states")


@solving(PoseError)
def random_states(
    model: Model,
    n: int,
    rng: np.random.Generator,
    *,
    step: float = 0.05,
    speed: float = 1.0,
    condition: float = 1e3,
) -> RandomStates:
    """Return random states reached by walks from the reference pose.

    The states are within limits and away from singularities.

    Args:
        model: the machine.
        n: number of states.
        rng: source of randomness.
        step: length of a step of the walk, rad or characteristic lengths.
        speed: standard deviation of velocities and accelerations, rad/s or characteristic lengths
            per second.
        condition: largest accepted condition number of the linear blocks.

    Returns:
        n states; states are repeated if the walks found fewer.

    Raises:
        PoseError: the walks found no regular state, or only the reference pose.
    """
    assembly = model.assembly
    steps = -(-2 * n // PARALLEL_WALKS) + 2
    walk = partial(
        random_walk,
        assembly.loops,
        assembly.q[None, :],
        rng,
        walks=PARALLEL_WALKS,
        steps=steps,
        step=step,
        locked=assembly.locked,
    )
    q = walk()
    if (assembly.loops.gaps(assembly.q, q) < STATE_TOLERANCE).all():
        q = walk(mirrored=True)
    entry = model.platform.ports
    scale = assembly.loops.velocity_scale[list(entry.v)]
    q = q[rng.permutation(len(q))]
    velocity = rng.normal(size=(len(q), len(entry.v))) * scale * speed
    acceleration = rng.normal(size=(len(q), len(entry.v))) * scale * speed
    position = model.platform_position(q)
    state = model.platform.evaluate(position, velocity, acceleration, start=q)
    conditions = model.platform.condition(q)
    good = state.health.is_reached & (conditions < condition)
    # the closed forms must have the branch of the walk
    good &= assembly.loops.gaps(q, state.q) < STATE_TOLERANCE
    chosen = np.flatnonzero(good)[:n]
    if len(chosen) == 0:
        what = (
            f"none of {len(q)} states around the reference pose is regular: the loops of "
            f"{state.health.is_reached.sum()} close, and the smallest condition number is "
            f"{conditions.min():.3g} (limit {condition:.3g})"
        )
        remedy = (
            "choose a reference pose away from singularities, or allow larger condition numbers"
        )
        raise PoseError.of(model.mechanism.name, what, remedy)
    if (
        assembly.mobility
        and (assembly.loops.gaps(assembly.q, state.q[good]) < STATE_TOLERANCE).all()
    ):
        what = (
            f"all {len(chosen)} regular states are the reference pose: walks with steps of "
            f"{step:g} do not leave it within the limits"
        )
        remedy = (
            "take shorter steps, widen the limits, or choose a reference pose away from the limits"
        )
        raise PoseError.of(model.mechanism.name, what, remedy)
    distinct_states = len(chosen)
    chosen = np.resize(chosen, n)
    return RandomStates(
        distinct_states=distinct_states,
        q=state.q[chosen],
        v=np.asarray(state.v)[chosen],
        a=np.asarray(state.a)[chosen],
        position=position[chosen],
        velocity=velocity[chosen],
        acceleration=acceleration[chosen],
    )
