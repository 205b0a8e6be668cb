"""Repeated calls of kinematics with one model build the machine's equations once."""

from __future__ import annotations

import numpy as np

import tauloop as tl
from tauloop.geometry import machine_geometry


def test_poses_of_one_model_share_its_shape(monkeypatch):
    model = tl.Model(tl.load("delta"))
    first = tl.inverse_kinematics(model, [0.0, 0.0, -0.5])
    built = []
    monkeypatch.setattr(machine_geometry, "_shape", lambda loops: built.append(loops))
    again = tl.inverse_kinematics(model, [0.05, 0.0, -0.5])
    back = tl.forward_kinematics(model, again.actuators)
    assert not built
    np.testing.assert_allclose(again.tool[0], [0.05, 0.0, -0.5], atol=1e-12)
    np.testing.assert_allclose(back.tool, again.tool, atol=1e-9)
    assert not np.allclose(first.tool, again.tool)


def test_models_with_other_dimensions_have_other_shapes():
    delta = tl.load("delta")
    longer = delta.with_values({"arm_length": "250 mm"})
    short, long = (
        machine_geometry.machine_geometry(tl.Model(machine), tl.Model(machine).assembly.q)
        for machine in (delta, longer)
    )
    assert not np.allclose(short.size, long.size)
