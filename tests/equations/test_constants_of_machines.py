"""Constant matrices and scales of a machine, which are computed once."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import tauloop as tl
from tauloop.equations.ports import ACTUATORS, PLATFORM, entry_ports


@pytest.mark.parametrize("name", ["delta", "gantry_tau_5dof"])
def test_the_given_motion_solves_the_matrices_of_the_ports(name: str) -> None:
    assembly = tl.Model(name).assembly
    rng = np.random.default_rng(3)
    q = rng.normal(size=(4, assembly.topology.n_q))
    v = rng.normal(size=(4, assembly.topology.n_v))
    for entry in (PLATFORM, ACTUATORS):
        ports = entry_ports(assembly, entry)
        position = np.linalg.solve(ports.to_q, (q[:, list(ports.q)] - ports.offset).T).T
        velocity = np.linalg.solve(ports.to_v, v[:, list(ports.v)].T).T
        for same in (
            ports,
            ports,
            pickle.loads(pickle.dumps(ports)),
        ):  # also from the stored inverse
            np.testing.assert_allclose(same.at(q), position, rtol=1e-13, atol=1e-13)
            np.testing.assert_allclose(same.rates(v), velocity, rtol=1e-13, atol=1e-13)


def test_scales_of_loops_cannot_be_changed() -> None:
    loops = tl.Model("delta").assembly.loops
    for scale in (loops.row_scale, loops.velocity_scale, loops.coordinate_scale):
        with pytest.raises(ValueError, match="read-only"):
            scale[0] = 2.0
    assert loops.row_scale is loops.row_scale
    is_length = np.array(loops.is_length)
    np.testing.assert_array_equal(loops.row_scale[is_length], 1.0 / loops.length)


def test_a_changed_machine_has_its_own_characteristic_length() -> None:
    machine = tl.load("delta")
    before = machine.characteristic_length
    lengths = {"arm_length": 2.0 * machine.parameters["arm_length"].value}
    longer = machine.with_values(lengths)
    assert longer.characteristic_length == tl.loads(tl.dumps(longer)).characteristic_length
    assert longer.characteristic_length != before
    assert machine.characteristic_length == before == tl.load("delta").characteristic_length
