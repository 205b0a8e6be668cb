"""A mass that hangs on a line: its machine, and its numbers."""

from __future__ import annotations

import numpy as np

import tauloop
from tauloop.compiler.c import Interpreted
from tauloop.model import Model
from tauloop.simulation import DormandPrince

G, LENGTH, MASS = 9.81, 1.5, 2.0

FINE = DormandPrince(rtol=1e-10, atol=1e-12)


def ball(tension: str, *, winch: str = "") -> Model:
    """A mass that hangs on a line below the origin and moves in a vertical plane; a winch may wind the line."""
    line = "telescopic: {reference: 1.5 m}" if winch else "length: 1.5 m"
    actuators = f"actuators:\n  winch: {{on: line{winch.removeprefix('bare')}}}\n" if winch else ""
    text = f"""\
format: tauloop-machine/1
name: ball
provenance: {{status: chosen, source: a test}}
gravity: [0, 0, -9.81 m/s^2]
bodies: {{slide: massless, bob: {{mass: 2 kg}}}}
joints:
  x: {{type: prismatic, axis: x, parent: base, child: slide}}
  z: {{type: prismatic, axis: z, parent: slide, child: bob, reference: -1.5 m}}
rods:
  line: {{from: base, to: bob, {line}, model: massless, tension: {{least: 0 N{tension}}}}}
{actuators}platform: {{body: bob, independent: [{"x, z" if winch else "x"}]}}
"""
    return Model(tauloop.loads(text), evaluator=Interpreted())


def moving(model: Model, **rates: float) -> np.ndarray:
    """Velocities by name, the others zero."""
    return np.array([rates.get(name, 0.0) for name in model.topology.velocity_names])
