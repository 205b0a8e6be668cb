"""Compliance at many poses from one function of the coordinates."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from elastic_machines import DELTA, FOUR_BAR, PRPAR, PUU, hexapod

import tauloop as tl
from tauloop.elasticity import compliance_matrices

TUBES = Path(__file__).parents[2] / "examples" / "elastic" / "gantry_tau.yaml"
#: Largest difference, in units of the diagonal: rounding errors of K, whose condition number is up to
#: 1e4 in these units.
TOLERANCE = 1e-10
#: Processor time of 1 000 compliances, s: 2.4 ms were measured, and test machines differ.
LONGEST = 0.02


def around(model: tl.Model, count: int) -> np.ndarray:
    """Return poses around the reference pose."""
    reference = model.platform_position(model.assembly.q[None])
    steps = 0.01 * np.random.default_rng(2).uniform(-1.0, 1.0, (count, reference.shape[1]))
    if reference.shape[1] == 7:
        steps[:, 3:] = 0.0
    return np.asarray(reference + steps)


@pytest.mark.parametrize(
    "machine",
    [
        lambda: TUBES,
        lambda: tl.loads(DELTA),
        lambda: hexapod(drives="30 N/um", sections=True),
        lambda: tl.loads(PUU),
        lambda: tl.loads(PRPAR),
        lambda: tl.loads(FOUR_BAR),
    ],
    ids=["gantry", "delta", "hexapod", "universal", "overconstrained", "four-bar"],
)
@pytest.mark.parametrize("shear", [False, True])
def test_it_is_the_compliance_of_single_poses(machine: Callable[[], object], shear: bool) -> None:
    model = tl.Model(machine())
    poses = around(model, 5)
    expected = tl.stiffness(model, poses, shear=shear, weightless=True).compliance
    computed = compliance_matrices(model, poses, shear=shear)
    size = np.sqrt(np.diagonal(expected, axis1=1, axis2=2))
    size[size == 0.0] = 1.0
    assert np.abs((computed - expected) / size[:, :, None] / size[:, None]).max() < TOLERANCE
    assert compliance_matrices(model, shear=shear).shape == (1, 6, 6)


def test_a_thousand_poses_are_compiled_and_quick() -> None:
    model = tl.Model(TUBES)
    poses = around(model, 1000)
    computed = compliance_matrices(model, poses)
    few = compliance_matrices(model, poses[::100])
    assert computed[::100] == pytest.approx(few, rel=1e-9, abs=1e-20)
    durations = []
    for _ in range(20):
        start = time.process_time()
        compliance_matrices(model, poses)
        durations.append(time.process_time() - start)
    assert min(durations) < LONGEST


def test_a_mechanism_and_a_rigid_machine_are_refused() -> None:
    with pytest.raises(tl.InputError, match="rigid"):
        compliance_matrices("delta")
    loose = """
format: tauloop-machine/1
name: loose
provenance: {status: chosen, source: test}
gravity: [0, 0, -9.81 m/s^2]
bodies: {cart: {mass: 2 kg}, pin: {mass: 1 kg}}
joints:
  rail: {type: prismatic, axis: x, parent: base, child: cart}
  axle: {type: revolute, axis: z, parent: cart, child: pin}
actuators: {motor: {on: rail, force: 10 N, stiffness: 5 N/um}}
platform: {body: pin, independent: [rail, axle]}
"""
    with pytest.raises(tl.TauloopError, match="without any deformation"):
        compliance_matrices(tl.loads(loose))
