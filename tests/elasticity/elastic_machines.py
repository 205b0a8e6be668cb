"""Machines with elastic data, for tests."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

import tauloop as tl
from tauloop.formats import machine_path
from tauloop.mechanism.model import Mechanism

EXAMPLE = "examples/elastic/gantry_tau.yaml"

ALLOY = (
    "materials:\n  alloy: {young_modulus: 70 GPa, poisson_ratio: 0.3, density: 2700 kg/m^3,"
    " strength: 250 MPa}\n"
)
TUBE = "tube: {outer: 50 mm, wall: 3 mm, material: alloy}"


def gantry(stated: str = "") -> Mechanism:
    """Return the Gantry-Tau with aluminium tubes 50 x 3 mm and drives of 20 N/um.

    Args:
        stated: where the stated mass of the rods is; default: their mass is that of the tube.
    """
    text = machine_path("gantry_tau_6link").read_text(encoding="utf-8")
    keys = f"        model: slender\n        {TUBE}\n"
    if stated:
        text = text.replace("        model: slender\n", f"{keys}        {stated}\n")
    else:
        text = re.sub(r"        model: slender\n        link: \{.*\}\n", keys, text)
    text = text.replace("\nbodies:\n  plate", f"\n{ALLOY}bodies:\n  plate")
    return tl.loads(text.replace("force: 2500 N}", "force: 2500 N, stiffness: 20 N/um}"))


def hexapod(
    *, drives: str = "", sections: bool = False, fittings: Mapping[str, str] | None = None
) -> Mechanism:
    """Return the hexapod with elastic drives, and tubes with fittings for the parts of its struts."""
    text = machine_path("hexapod").read_text(encoding="utf-8")
    if drives:
        text = re.sub(r"(motor: \{on: strut)", rf"\1, stiffness: {drives}", text)
    if sections:
        part = r"(        {name}:\n)(?:          .*\n)+"
        for name, length, outer in (("lower", 300, 30), ("upper", 250, 20)):
            tube = f"tube: {{outer: {outer} mm, wall: 3 mm, material: alloy}}"
            if name in (fittings or {}):
                tube += f"\n          fittings: {fittings[name]}"
            text = re.sub(
                part.format(name=name),
                rf"\g<1>          length: {length} mm\n          {tube}\n",
                text,
            )
        text = text.replace("\nbodies:\n", f"\n{ALLOY}bodies:\n")
    return tl.loads(text)


DELTA = f"""
format: tauloop-machine/1
name: elastic_delta
provenance: {{status: chosen, source: test}}
gravity: [0, 0, -9.81 m/s^2]
{ALLOY}
bodies:
  plate:
    mass: 0.5 kg
    inertia: {{xx: 4e-4 kg m^2, yy: 4e-4 kg m^2, zz: 8e-4 kg m^2}}
legs:
  - name: leg
    repeat: 3
    each:
      phi: [0 deg, 120 deg, 240 deg]
    frames:
      sector: {{on: base, turn: [{{z: phi}}]}}
      plate_sector: {{on: plate, turn: [{{z: phi}}]}}
    bodies:
      arm:
        beams:
          bar:
            from: [0, 0, 0]
            to: [0.26 m, 0, 0]
            z_axis: [0, 0, 1]
            box: {{width: 40 mm, height: 25 mm, wall: 2 mm, material: alloy}}
    joints:
      shoulder:
        type: revolute
        axis: y
        parent: {{on: sector, at: [0.194 m, 0, 0]}}
        child: arm
        reference: 42.80316617795096 deg
    rods:
      left:
        from: {{on: arm, at: [0.26 m, 0.03 m, 0]}}
        to: {{on: plate_sector, at: [0.03 m, 0.03 m, 0]}}
        length: 0.48 m
        model: slender
        tube: {{outer: 12 mm, wall: 1 mm, material: alloy}}
      right:
        from: {{on: arm, at: [0.26 m, -0.03 m, 0]}}
        to: {{on: plate_sector, at: [0.03 m, -0.03 m, 0]}}
        length: 0.48 m
        model: slender
        tube: {{outer: 12 mm, wall: 1 mm, material: alloy}}
    actuators:
      motor: {{on: shoulder, force: 40 N m, stiffness: 8000 N m/rad}}
platform:
  body: plate
  motion: free
  tool: {{at: [0, 0, -0.05 m]}}
  independent: [x, y, z]
  reference: {{at: [0, 0, -0.5 m]}}
"""

#: What both Orthoglides have; a leg follows.
ORTHOGLIDE = f"""
format: tauloop-machine/1
name: elastic_orthoglide
provenance: {{status: chosen, source: test}}
gravity: [0, 0, -9.81 m/s^2]
parameters: {{rod: 0.31 m, plate_radius: 60 mm, width: 40 mm}}
{ALLOY}
bodies:
  plate: {{mass: 4.5 kg, inertia: {{xx: 0.01 kg m^2, yy: 0.01 kg m^2, zz: 0.01 kg m^2}}}}
platform: {{body: plate, motion: free, tool: {{at: [0.02 m, 0.01 m, -0.08 m]}}, independent: [x, y, z]}}
legs:
  - name: leg
    repeat: 3
    each:
      about_z: [0 deg, 90 deg, 0 deg]
      about_y: [0 deg, 0 deg, -90 deg]
    frames:
      way: {{on: base, turn: [{{z: about_z}}, {{y: about_y}}]}}
      plate_side: {{on: plate, turn: [{{z: about_z}}, {{y: about_y}}]}}
    actuators:
      motor: {{on: slide, force: 400 N, stiffness: 10 N/um}}
"""
SLIDE = "slide: {type: prismatic, axis: x, parent: {on: way, at: [-rod - plate_radius, 0, 0]}, child: carriage}"
#: 3-PUU: bars between universal joints, which transmit torsion.
PUU = (
    ORTHOGLIDE
    + f"""
    bodies:
      carriage: {{mass: 4 kg}}
      bar: {{beams: {{tube: {{from: [0, 0, 0], to: [rod, 0, 0], {TUBE.replace("50 mm", "30 mm")}}}}}}}
    joints:
      {SLIDE}
      near: {{type: universal, axes: [y, z], parent: carriage, child: bar}}
      far:
        type: universal
        axes: [z, y]
        parent: {{on: bar, at: [rod, 0, 0]}}
        child: {{on: plate_side, at: [-plate_radius, 0, 0]}}
"""
)
#: 3-PRPaR: parallelograms of two bars between revolute joints, overconstrained.
PRPAR = (
    ORTHOGLIDE
    + f"""
    bodies:
      carriage: {{mass: 4 kg}}
      fork: {{mass: 0.2 kg}}
      hand: {{mass: 0.2 kg}}
      left: {{beams: {{tube: {{from: [0, 0, 0], to: [rod, 0, 0], {TUBE.replace("50 mm", "16 mm")}}}}}}}
      right: {{beams: {{tube: {{from: [0, 0, 0], to: [rod, 0, 0], {TUBE.replace("50 mm", "16 mm")}}}}}}}
    joints:
      {SLIDE}
      near: {{type: revolute, axis: y, parent: carriage, child: fork}}
      near_left: {{type: revolute, axis: z, parent: {{on: fork, at: [0, width, 0]}}, child: left}}
      near_right: {{type: revolute, axis: z, parent: {{on: fork, at: [0, -width, 0]}}, child: right}}
      far_left:
        type: revolute
        axis: z
        parent: {{on: left, at: [rod, 0, 0]}}
        child: {{on: hand, at: [0, width, 0]}}
      far_right:
        type: revolute
        axis: z
        parent: {{on: right, at: [rod, 0, 0]}}
        child: {{on: hand, at: [0, -width, 0]}}
      far: {{type: revolute, axis: y, parent: hand, child: {{on: plate_side, at: [-plate_radius, 0, 0]}}}}
"""
)

FLAT = "z_axis: [0, 0, 1], rectangle: {width: 8 mm, height: 30 mm, material: steel}"
FOUR_BAR = f"""
format: tauloop-machine/1
name: flat_bars
provenance: {{status: chosen, source: test}}
gravity: [0, -9.81 m/s^2, 0]
bodies:
  crank: {{beams: {{bar: {{from: [0, 0, 0], to: [0.3 m, 0, 0], {FLAT}}}}}}}
  coupler: {{beams: {{bar: {{from: [0, 0, 0], to: [0.8 m, 0, 0], {FLAT}}}}}}}
  rocker: {{beams: {{bar: {{from: [0, 0, 0], to: [0.6 m, 0, 0], {FLAT}}}}}}}
joints:
  crank_pin: {{type: revolute, axis: z, parent: base, child: crank, reference: 60 deg}}
  coupler_pin:
    type: revolute
    axis: z
    parent: {{on: crank, at: [0.3 m, 0, 0]}}
    child: coupler
    reference: -30 deg
  rocker_pin:
    type: revolute
    axis: z
    parent: {{on: base, at: [0.7 m, 0, 0]}}
    child: rocker
    reference: 90 deg
  closing_pin:
    type: revolute
    axis: z
    parent: {{on: coupler, at: [0.8 m, 0, 0]}}
    child: {{on: rocker, at: [0.6 m, 0, 0]}}
    cut: yes
actuators:
  motor: {{on: crank_pin, force: 20 N m}}
platform: {{body: coupler, independent: [crank_pin]}}
"""


def loaded_samples(machine: Mechanism, force: float, reach: float) -> tuple[tl.Model, dict]:
    """Return poses and wrenches of a machine."""
    model, rng = tl.Model(machine), np.random.default_rng(5)
    position = np.tile(model.platform_position(model.assembly.q), (6, 1))
    position[:, :3] += rng.uniform(-reach, reach, (6, 3))
    wrench = rng.uniform(-1.0, 1.0, (6, 6)) * np.repeat([force, 0.05 * force], 3)
    start = np.tile(model.assembly.q, (6, 1))
    return model, {"position": position, "wrench": wrench, "start": start}
