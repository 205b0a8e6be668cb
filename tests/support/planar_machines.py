"""Machine files of planar linkages with round numbers, for tests against plane geometry."""

from __future__ import annotations

import numpy as np


def five_bar_text(*, base: float, link: float, angle: float = 1.4) -> str:
    """A symmetric five-bar with motors at (0, 0) and (base, 0), four equal links; the tip slides in x and y.

    Args:
        base: distance of the motors, m.
        link: length of every link, m.
        angle: of the left crank at the reference pose, rad; the right one mirrors it, the tip is
            above the elbows.
    """
    half = base / 2 - link * np.cos(angle)
    height = link * np.sin(angle) + np.sqrt(link**2 - half**2)
    left, right = angle, np.pi - angle
    return f"""
format: tauloop-machine/1
name: plane
provenance: {{status: chosen, source: a test}}
gravity: [0, 0, 0]
bodies:
  crank_1: {{mass: 1 kg}}
  crank_2: {{mass: 1 kg}}
  slider: {{mass: 1 kg}}
  tip: {{mass: 1 kg}}
joints:
  tip_x: {{type: prismatic, axis: x, parent: base, child: slider, reference: {base / 2!r} m}}
  tip_y: {{type: prismatic, axis: y, parent: slider, child: tip, reference: {float(height)!r} m}}
  motor_1:
    {{type: revolute, axis: z, parent: base, child: crank_1, reference: {left!r} rad, inertia: 0.1 kg m^2}}
  motor_2:
    type: revolute
    axis: z
    parent: {{on: base, at: [{base!r} m, 0, 0]}}
    child: crank_2
    reference: {right!r} rad
    inertia: 0.1 kg m^2
rods:
  rod_1:
    from: {{on: crank_1, at: [{link!r} m, 0, 0]}}
    to: {{on: tip, at: [0, 0, 0]}}
    length: {link!r} m
    model: massless
  rod_2:
    from: {{on: crank_2, at: [{link!r} m, 0, 0]}}
    to: {{on: tip, at: [0, 0, 0]}}
    length: {link!r} m
    model: massless
actuators:
  left: {{on: motor_1}}
  right: {{on: motor_2}}
platform:
  body: tip
  independent: [tip_x, tip_y]
"""
