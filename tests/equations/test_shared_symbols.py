"""Symbols and energies that the programs of a machine share: built once, right at every state."""

from __future__ import annotations

from collections.abc import Callable

import casadi as ca
import numpy as np
import pytest

from tauloop.equations.assembly.loops import nominal
from tauloop.equations.formulations import FORMULATIONS, Formulation
from tauloop.equations.formulations.state_symbols import StateSymbols
from tauloop.equations.newton_euler import tree_forces
from tauloop.equations.tree import Configuration, TreeMotion, tree_motion
from tauloop.equations.values import Entries, dynamic_parameters
from tauloop.formats import load
from tauloop.mechanism.model import Mechanism
from tauloop.model import Model

#: Rounding of forces of order one, through a few hundred operations.
ROUNDING_ERROR = 1e-12


def machine() -> tuple[Mechanism, Entries, Callable[[np.random.Generator], TreeMotion]]:
    """Return a four-bar, its parameters, and a function that returns random motions."""
    mechanism = load("four_bar")
    topology, values = Model(mechanism).topology, nominal(mechanism)
    parameters = dynamic_parameters(mechanism, topology)
    entries = Entries(parameters, ca.SX([values.scalar(p.expression) for p in parameters]))

    def random_motion(rng: np.random.Generator) -> TreeMotion:
        q, v, a = (ca.SX(rng.normal(size=n)) for n in (topology.n_q, topology.n_v, topology.n_v))
        return tree_motion(topology, values, Configuration(q, {}), v, a)

    return mechanism, entries, random_motion


@pytest.mark.parametrize("formulation", FORMULATIONS[1:], ids=lambda formulation: formulation.name)
def test_forces_at_a_second_state_are_those_of_newton_and_euler(formulation: Formulation) -> None:
    """The second state uses the expressions of the first; Newton-Euler has no symbols of a state."""
    mechanism, entries, random_motion = machine()
    rng = np.random.default_rng(4)
    for _ in range(3):
        motion = random_motion(rng)
        expected = np.array(ca.DM(tree_forces(mechanism, motion, entries)))
        forces = np.array(ca.DM(formulation.forces(mechanism, motion, entries)))
        assert np.abs(forces - expected).max() < ROUNDING_ERROR * max(1.0, np.abs(expected).max())
        assert np.abs(expected).max() > 0.1


def test_motions_with_the_same_values_share_symbols_and_expressions() -> None:
    mechanism, entries, random_motion = machine()
    rng = np.random.default_rng(5)
    calls = []

    def derive(state: StateSymbols, mechanism: Mechanism, entries: Entries) -> ca.SX:
        calls.append(entries)
        return state.v * 2

    first, second = (StateSymbols.of(random_motion(rng)) for _ in range(2))
    assert first is second
    assert first.derived(derive, mechanism, entries) is second.derived(derive, mechanism, entries)
    assert calls == [entries]
    other = Entries(entries.parameters, 2 * entries.pi)
    first.derived(derive, mechanism, other)
    assert calls == [entries, other]
    _, _, of_another = machine()
    assert StateSymbols.of(of_another(rng)) is not first
