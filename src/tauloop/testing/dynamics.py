"""Checks of formulations of dynamics."""

from __future__ import annotations

import numpy as np

from tauloop.common.errors import Problems
from tauloop.equations.formulations import Formulation
from tauloop.kinematics import random_states
from tauloop.model import Model
from tauloop.testing.conformance import ConformanceError, compare
from tauloop.testing.machines import planar_loop, serial_chain, six_legs

#: Largest relative difference between two formulations on well-conditioned machines.
FORCE_TOLERANCE = 1e-9


def check_formulation(formulation: Formulation, *, seeds: int = 1) -> None:
    """Check a formulation on random machines: its forces against Newton-Euler, and its regressor.

    Args:
        formulation: the formulation, as passed to `Model`.
        seeds: number of random machines of each kind.

    Raises:
        ConformanceError: lists the machines for which the results differ, and the differences.
    """
    problems = Problems()
    for name in ("name", "idea", "valid", "choose", "source"):
        if not getattr(formulation, name):
            problems.add(name, "is empty", "set it; the table of formulations shows it")
    for make in (serial_chain, six_legs, planar_loop):
        for seed in range(seeds):
            mechanism = make(np.random.default_rng(seed))
            reference = Model(mechanism)
            model = Model(mechanism, formulation=formulation)
            states = random_states(reference, 8, np.random.default_rng(seed))
            motion = (states.position, states.velocity, states.acceleration)
            expected = reference.platform.inverse_dynamics(*motion, start=states.q).force
            where = f"{make.__name__}, seed {seed}"
            remedy = "return M a + h for every velocity, equal to Newton-Euler"
            actual = model.platform.inverse_dynamics(*motion, start=states.q).force
            compare(problems, where, actual, expected, tolerance=FORCE_TOLERANCE, remedy=remedy)
            product = model.platform.regressor(*motion, start=states.q) @ model.pi
            compare(
                problems,
                f"{where}, regressor",
                product,
                expected,
                tolerance=FORCE_TOLERANCE,
                remedy="make the regressor linear in pi",
            )
    ConformanceError.raise_if_any(problems)
