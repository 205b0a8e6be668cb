"""Certified boxes of a machine whose legs contain ball joints, against Newton's solutions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from extras import extra
from scipy.spatial.transform import Rotation

import tauloop as tl
from tauloop.common.result import Status

#: A plate on three legs, each with a driven crank, a ball joint, and a hinge on the plate.
CRANKS = """
format: tauloop-machine/1
name: three_cranks
provenance: {status: chosen, source: test}
gravity: [0, 0, -9.81 m/s^2]
parameters: {motor_radius: 0.3 m, arm_length: 0.26 m, link_length: 0.4 m, plate_radius: 0.15 m}
bodies:
  plate: {mass: 1 kg, inertia: {xx: 0.01 kg m^2, yy: 0.01 kg m^2, zz: 0.01 kg m^2}}
legs:
  - name: leg
    repeat: 3
    each:
      phi: [0 deg, 120 deg, 240 deg]
    frames:
      sector: {on: base, turn: [{z: phi}]}
      plate_sector: {on: plate, turn: [{z: phi}]}
    bodies:
      arm: {mass: 1 kg}
      link: {mass: 1 kg}
    joints:
      shoulder:
        type: revolute
        axis: y
        parent: {on: sector, at: [motor_radius, 0, 0]}
        child: arm
        reference: -30 deg
      elbow:
        type: spherical
        parent: {on: arm, at: [arm_length, 0, 0]}
        child: link
      knee:
        type: revolute
        axis: y
        parent: {on: plate_sector, at: [plate_radius, 0, 0]}
        child: {on: link, at: [0, 0, link_length]}
        cut: yes
    actuators:
      motor: {on: shoulder, force: 50 N m}
platform:
  body: plate
  motion: free
  independent: [z, wx, wy]
  reference: {at: [0, 0, 0.4 m]}
"""

MOTOR, ARM, LINK, PLATE = 0.3, 0.26, 0.4, 0.15
HALF = {"z": 0.0005, "rx": 0.001, "ry": 0.001}


def elbows_from_hinges(unknowns: np.ndarray, pose: np.ndarray) -> np.ndarray:
    """Return the six equations (6,) of place, spin and cranks of the plate at z, rx, ry.

    Each elbow is in the plane of its hinge, at the length of the link from it.
    """
    x, y, spin = unknowns[:3]
    turn = Rotation.from_rotvec([pose[1], pose[2], spin])
    rest = []
    for leg, angle in enumerate(unknowns[3:]):
        sector = Rotation.from_euler("z", 120.0 * leg, degrees=True)
        elbow = sector.apply([MOTOR + ARM * np.cos(angle), 0.0, -ARM * np.sin(angle)])
        hinge = turn.apply(sector.apply([PLATE, 0.0, 0.0])) + np.array([x, y, pose[0]])
        axis = turn.apply(sector.apply([0.0, 1.0, 0.0]))
        offset = elbow - hinge
        rest += [axis @ offset, offset @ offset - LINK**2]
    return np.array(rest)


def solution(pose: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Return place, spin and cranks (6,) by Newton's method with central differences."""
    unknowns = start.copy()
    for _ in range(6):
        steps = 1e-6 * np.eye(6)
        J = np.array([elbows_from_hinges(unknowns + s, pose) for s in steps])
        J -= np.array([elbows_from_hinges(unknowns - s, pose) for s in steps])
        unknowns = unknowns - np.linalg.solve(J.T / 2e-6, elbows_from_hinges(unknowns, pose))
    assert np.abs(elbows_from_hinges(unknowns, pose)).max() < 1e-12
    return unknowns


def test_ball_joints_in_legs_are_enclosed(tmp_path: Path) -> None:
    """Solutions at the middles of boxes are those of the proof, which holds in arb."""
    extra("flint")
    model = tl.Model(tl.loads(CRANKS))
    middle = {"z": 0.4, "rx": 0.0, "ry": 0.0}
    ranges = {name: (middle[name] - half, middle[name] + half) for name, half in HALF.items()}
    result = tl.certify(model, ranges=ranges, parallel=0.3)
    assert result.verdict == "proved"
    path = result.write_proof(tmp_path / "cranks.json")
    assert tl.check_certificate(model, path).status is Status.OK
    names = [*(f"platform.{axis}" for axis in ("x", "y", "rz"))]
    names += [f"leg{leg}.shoulder" for leg in (1, 2, 3)]
    columns = [result.problem.unknowns.index(name) for name in names]
    proof = result.proof
    widths = 0.5**proof.level
    shares = (proof.index + 0.5) * widths
    poses = np.array(list(middle.values())) + (2.0 * shares - 1.0) * np.array(list(HALF.values()))
    start = result.problem.reference[1][columns]
    for pose, unknowns in zip(poses[:8], proof.solutions[:8, columns], strict=True):
        assert np.allclose(solution(pose, start), unknowns, atol=1e-9)
