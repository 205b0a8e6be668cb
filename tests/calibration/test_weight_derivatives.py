"""Derivatives of an elastic machine's weight, from machines that share their geometry."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import tauloop as tl
from tauloop.calibration.problem import deflection
from tauloop.calibration.problem.deflection import Deflection
from tauloop.calibration.problem.loaded_machine import ElasticMachine
from tauloop.elasticity.frame.assembled import assemble
from tauloop.elasticity.frame.statics import gravity_load
from tauloop.elasticity.machine.poses import gravity_vector
from tauloop.elasticity.machine.structure import machine_structure
from tauloop.geometry import machine_geometry

GANTRY = Path(__file__).parents[2] / "examples" / "elastic" / "gantry_tau.yaml"
#: A mass of a body, and a dimension of the section of all beams.
NAMES = ("m_p", "tube_wall")


def weight(machine: tl.Mechanism, q: np.ndarray) -> np.ndarray:
    """Return the generalized weight (M, n) of a machine that is built from scratch."""
    model = tl.Model(machine)
    options = deflection.STRUCTURE_OPTIONS
    assembled = assemble(machine_structure(model, q, options).structure)
    return gravity_load(assembled, gravity_vector(machine))


def empty_deflection(machine: tl.Mechanism) -> Deflection:
    """Return the deflection of a machine without unknowns."""
    elastic = ElasticMachine(elastic=(), parts={}, expansions={})
    return Deflection(machine, (), elastic)


def test_the_derivative_is_that_of_machines_built_from_scratch() -> None:
    machine = tl.load(GANTRY)
    q = tl.Model(machine).assembly.q[None]
    shared = deflection._stand_in(machine)
    for name in NAMES:
        change = empty_deflection(machine).weight_derivative(shared, q, name)
        value = machine.parameters[name].value
        # Another step: the weight is at most quadratic in these parameters.
        upper, lower = (
            weight(machine.with_values({name: factor * value}), q) for factor in (1.01, 0.99)
        )
        expected = (upper - lower) / (0.02 * value)
        assert np.abs(expected).max() > 0.0
        np.testing.assert_allclose(change, expected, atol=1e-7 * np.abs(expected).max())


def test_the_geometry_is_built_once_for_all_parameters(monkeypatch) -> None:
    machine = tl.load(GANTRY)
    q = tl.Model(machine).assembly.q[None]
    built = []
    shape = machine_geometry._shape
    monkeypatch.setattr(
        machine_geometry, "_shape", lambda loops: built.append(loops) or shape(loops)
    )
    shared = deflection._stand_in(machine)
    for name in NAMES:
        empty_deflection(machine).weight_derivative(shared, q, name)
    assert len(built) == 1


def test_no_weight_is_a_parameter_of_the_geometry() -> None:
    machine = tl.load(GANTRY)
    weights = deflection._weight_parameters(machine)
    geometric = deflection.geometric_parameters(machine)
    lengths = {name for name in weights if name.endswith(".length")}
    assert len(lengths) == 6  # the mass of a rod depends on its length
    assert lengths <= geometric
    q = tl.Model(machine).assembly.q[None]
    nominal = machine_geometry.machine_geometry(tl.Model(machine), q)
    changes = {name: 1.1 * machine.parameters[name].value for name in weights - geometric}
    changed = machine_geometry.machine_geometry(tl.Model(machine.with_values(changes)), q)
    np.testing.assert_array_equal(changed.origins, nominal.origins)
    np.testing.assert_array_equal(changed.rotations, nominal.rotations)
