"""Formulations near singular poses: they agree to rounding times the condition number, which goes up to 1e5 here."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from tauloop import Model, PoseError, load
from tauloop.compiler.c.calling.evaluator import Interpreted
from tauloop.equations.formulations import FORMULATIONS

#: Largest relative difference of forces, over the rounding of a number times the pose's condition
#: number.
OF_CONDITION = 10.0
#: Distances to the edge of reach, as shares of the way to it: condition numbers grow with their
#: root.
GAPS = (1e-2, 1e-4, 1e-6, 1e-8, 1e-10)
#: Angles of a five-bar's cranks from where its links are stretched, rad.
ANGLES = (1e-2, 1e-3, 1e-4, 1e-5)
#: Condition numbers between the farthest and the nearest pose grow by at least this.
WORSE = 300.0
#: Bisections of the way to the edge: to the last places.
HALVINGS = 55


@functools.cache
def models(name: str) -> tuple[Model, ...]:
    return tuple(
        Model(load(name), formulation=f.name, evaluator=Interpreted()) for f in FORMULATIONS
    )


def share_of_the_way(model: Model, origin: np.ndarray, direction: np.ndarray) -> float:
    """How far a platform reaches in a direction."""
    near, far = 0.0, 2.0
    for _ in range(HALVINGS):
        middle = (near + far) / 2
        try:
            model.platform.kinematics(origin + middle * direction)
        except PoseError:
            far = middle
        else:
            near = middle
    return near


def check_agreement(condition: np.ndarray, batches: list[list[np.ndarray]]) -> None:
    """All formulations (outer list) on all samples, by force, multiplier and tree force (inner list)."""
    assert condition[-1] > WORSE * condition[0]
    tolerance = OF_CONDITION * np.finfo(float).eps * condition
    for other in batches[1:]:
        for ours, theirs in zip(other, batches[0], strict=True):
            assert (
                np.abs(ours - theirs).max(axis=1) < tolerance * np.abs(theirs).max(axis=1)
            ).all()


@pytest.mark.parametrize(("name", "freedoms"), [("delta", 3), ("rcid", 3), ("five_bar", 2)])
def test_where_a_leg_is_stretched(name: str, freedoms: int) -> None:
    first, *_ = models(name)
    rng, origin = np.random.default_rng(1), first.platform_position(first.assembly.q)
    direction = np.zeros(len(origin))
    direction[:freedoms] = rng.normal(size=freedoms)
    direction /= np.linalg.norm(direction)
    reach = share_of_the_way(first, origin, direction)
    position = origin + reach * (1 - np.array(GAPS))[:, None] * direction
    velocity, acceleration = rng.normal(size=(2, len(GAPS), first.platform.ports.velocity.size))
    results = [m.platform.inverse_dynamics(position, velocity, acceleration) for m in models(name)]
    condition = first.platform.condition(results[0].state.q)
    check_agreement(condition, [[r.force, r.closure_force, r.tree_force] for r in results])


def test_where_the_actuators_do_not_hold_the_platform() -> None:
    """Both links of a five-bar stretched: multipliers grow without bound, alike in all formulations."""
    first, *_ = models("five_bar")
    angles = np.array(ANGLES)
    position = np.column_stack([np.pi - angles, angles])
    start = np.repeat(first.actuators.kinematics(position[:1]).q, len(angles), axis=0)
    velocity, acceleration = np.random.default_rng(2).normal(size=(2, len(angles), 2))
    results = [
        m.actuators.inverse_dynamics(position, velocity, acceleration, start=start)
        for m in models("five_bar")
    ]
    condition = first.actuators.condition(results[0].state.q)
    check_agreement(condition, [[r.force, r.closure_force, r.tree_force] for r in results])
    size = np.abs(results[0].closure_force).max(axis=1)
    assert size[-1] > WORSE * size[0]
