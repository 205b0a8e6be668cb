"""Checks of what is added to the equations: formulations of dynamics."""

from __future__ import annotations

import numpy as np

from tauloop.common.errors import Problems
from tauloop.equations.formulations import Formulation
from tauloop.kinematics import random_states
from tauloop.model import Model
from tauloop.testing.conformance import ConformanceError, compare
from tauloop.testing.machines import planar_loop, serial_chain, six_legs

#: Two routes to the same forces of a well conditioned machine.
SAME = 1e-9


def check_formulation(formulation: Formulation, *, seeds: int = 1) -> None:
    """Check a formulation: the forces of Newton and Euler on random machines, and a regressor that gives its own.

    Args:
        formulation: as it is handed to `Model`.
        seeds: random machines of each kind.

    Raises:
        ConformanceError: on which machines it differs, and by how much.
    """
    problems = Problems()
    for name in ("name", "idea", "valid", "choose", "source"):
        if not getattr(formulation, name):
            problems.add(name, "is empty", "the table of formulations has a column for it")
    for make in (serial_chain, six_legs, planar_loop):
        for seed in range(seeds):
            mechanism = make(np.random.default_rng(seed))
            reference, model = Model(mechanism), Model(mechanism, formulation=formulation)
            states = random_states(reference, 8, np.random.default_rng(seed))
            motion = states.position, states.velocity, states.acceleration
            expected = reference.platform.inverse_dynamics(*motion, start=states.q).force
            where, remedy = (
                f"{make.__name__}, seed {seed}",
                "M a + h of every velocity, as Newton and Euler have it",
            )
            actual = model.platform.inverse_dynamics(*motion, start=states.q).force
            compare(problems, where, actual, expected, tolerance=SAME, remedy=remedy)
            product = model.platform.regressor(*motion, start=states.q) @ model.pi
            compare(
                problems,
                f"{where}, regressor",
                product,
                expected,
                tolerance=SAME,
                remedy="be linear in pi",
            )
    ConformanceError.raise_if_any(problems)
