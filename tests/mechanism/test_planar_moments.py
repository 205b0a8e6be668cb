"""Bodies of planar machines, whose files often state the moment about the normal alone."""

from __future__ import annotations

import numpy as np
import pytest

import tauloop as tl

PENDULUM = """
format: tauloop-machine/1
name: pendulum
provenance: {status: chosen, source: a test}
gravity: [0, -9.81 m/s^2, 0]
bodies:
  bar: {mass: 2 kg, center: [0.3 m, 0, 0], inertia: {zz: 0.05 kg m^2}}
joints:
  pin: {type: revolute, axis: z, parent: base, child: bar}
actuators: {motor: {on: pin}}
platform: {body: bar, independent: [pin]}
"""


def test_a_single_moment_is_rejected_with_a_remedy_that_works() -> None:
    with pytest.raises(tl.DescriptionError) as caught:
        tl.loads(PENDULUM)
    (problem,) = caught.value.problems
    assert problem.where == "bodies.bar.inertia"
    assert "write `unchecked: yes` next to `mass`" in problem.remedy
    model = tl.Model(tl.loads(PENDULUM.replace("mass: 2 kg", "mass: 2 kg, unchecked: yes")))
    q, a = 0.4, 1.5
    torque = (0.05 + 2 * 0.3**2) * a + 2 * 9.81 * 0.3 * np.cos(q)
    assert model.inverse_dynamics([q], [0.7], [a]).force == pytest.approx([torque], rel=1e-12)
