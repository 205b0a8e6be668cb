"""Rods that cross at the reference pose without a common joint."""

from __future__ import annotations

import numpy as np
import pytest

import tauloop as tl
from tauloop.geometry.clearance import rod_clearance

#: Each rod leads from its slide to the far side of the plate; all three meet on the axis.
CROSSED = """
format: tauloop-machine/1
name: crossed_slides
provenance: {status: chosen, source: test}
gravity: [0, 0, -9.81 m/s^2]
parameters:
  base_radius: 250 mm
  plate_radius: -50 mm
  rod_length: 0.4 m
  height: sqrt(rod_length^2 - (base_radius - plate_radius)^2)
bodies:
  plate: {mass: 5 kg}
legs:
  - name: leg
    repeat: 3
    each:
      phi: [0 deg, 120 deg, 240 deg]
    frames:
      sector: {on: base, turn: [{z: phi}]}
      plate_sector: {on: plate, turn: [{z: phi}]}
    bodies:
      carriage: {mass: 0.8 kg}
    joints:
      slide:
        type: prismatic
        axis: z
        parent: {on: sector, at: [base_radius, 0, 0]}
        child: carriage
    rods:
      rod:
        from: carriage
        to: {on: plate_sector, at: [plate_radius, 0, 0]}
        length: rod_length
        model: massless
    actuators:
      motor: {on: slide, force: 100 N}
platform:
  body: plate
  motion: translational
  independent: [x, y, z]
  reference: {at: [0, 0, -height]}
"""


def test_rods_that_cross_have_no_clearance() -> None:
    model = tl.Model(tl.loads(CROSSED))
    rods = rod_clearance(model)
    assert len(rods.pairs) == 3
    assert rods.distances(model.assembly.q[None])[0] == pytest.approx(np.zeros(3), abs=1e-9)
    result = tl.certify(model, ranges="x=-0.01:0.01", clearance="1mm")
    assert result.verdict == "refuted"
    assert result.violated is not None
    assert result.violated.startswith("clearance")


def test_rods_with_a_common_joint_are_not_compared() -> None:
    """The three rods of this machine end at the same point of its plate."""
    assert len(rod_clearance(tl.Model("gantry_tau_3dof")).pairs) == 0
