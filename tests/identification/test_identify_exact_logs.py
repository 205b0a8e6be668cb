"""Sound logs of several machines have no finding at any noise, also without any noise.

The motions are sums of sines, so that positions and forces are exact. What remains as error without
noise is left by the preparation: filters, differentiation, and reversals between two samples.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from identifying import options_of

import tauloop as tl
from tauloop.identification import identify
from tauloop.logs import Sensors, measure

RATE, DURATION = 500.0, 10.0  # Hz, s
#: Frequencies of the motion, rad/s; every actuator has its own multiple of them.
FREQUENCIES = np.array([1.9, 4.4, 8.2])
#: Amplitudes at these frequencies, as shares of the amplitude of the actuator.
AMPLITUDES = np.array([0.7, 0.3, 0.12])
#: Noise of the forces as a share of the RMS force, and with it resolution of the encoders, rad or m.
NOISES = ((0.0, 0.0), (1e-6, 0.0), (1e-4, 1e-6), (1e-2, 1e-5))
#: An arm with two parallel vertical axes and a quill, with friction in all joints.
SCARA = """
format: tauloop-machine/1
name: scara
provenance: {status: chosen, source: a test}
gravity: [0, 0, -9.81 m/s^2]
bodies:
  arm: {mass: 4 kg, center: [0.15 m, 0, 0], inertia: {xx: 0.01 kg m^2, yy: 0.05 kg m^2, zz: 0.05 kg m^2}}
  forearm: {mass: 2.5 kg, center: [0.1 m, 0.01 m, 0], inertia: {xx: 0.01 kg m^2, yy: 0.03 kg m^2, zz: 0.03 kg m^2}}
  quill: {mass: 0.8 kg, center: [0, 0, 0.05 m], inertia: {xx: 0.002 kg m^2, yy: 0.002 kg m^2, zz: 0.001 kg m^2}}
joints:
  shoulder: {type: revolute, axis: z, parent: base, child: arm, friction: {viscous: 0.3 N m s/rad, coulomb: 0.8 N m}}
  elbow:
    type: revolute
    axis: z
    parent: {on: arm, at: [0.3 m, 0, 0]}
    child: forearm
    friction: {viscous: 0.2 N m s/rad, coulomb: 0.4 N m}
  slide:
    type: prismatic
    axis: z
    parent: {on: forearm, at: [0.25 m, 0, 0]}
    child: quill
    friction: {viscous: 5 N s/m, coulomb: 3 N}
actuators:
  shoulder_motor: {on: shoulder}
  elbow_motor: {on: elbow}
  slide_motor: {on: slide}
platform:
  body: quill
  independent: [shoulder, elbow, slide]
"""
#: Amplitude of the actuators, rad or m.
STROKES = {
    "five_bar": (0.3, 0.3),
    "delta": (0.3, 0.3, 0.3),
    "serial": (0.7, 0.4, 0.5, 0.8, 0.6, 1.0),
    "scara": (0.8, 0.9, 0.08),
}


#: Model, times (N,), positions (N, n) and forces (N, n) of a machine.
ExactLog = tuple[tl.Model, np.ndarray, np.ndarray, np.ndarray]


@pytest.fixture(scope="module", params=STROKES)
def exact(request: pytest.FixtureRequest) -> ExactLog:
    """Return a model with exact positions and forces along sines about its reference pose."""
    name = request.param
    if name == "scara":
        mechanism = tl.loads(SCARA)
    elif name == "serial":
        mechanism = tl.loads(tl.new_machine("serial", "serial").text)
    else:
        mechanism = tl.load(name)
    model = tl.Model(mechanism)
    strokes = np.array(STROKES[name])
    numbers = np.arange(len(strokes))
    time = np.arange(round(RATE * DURATION)) / RATE
    w = FREQUENCIES * (1.0 + 0.13 * numbers[:, None])
    sizes = AMPLITUDES * strokes[:, None]
    angle = w * time[:, None, None] + np.arange(3) + 0.7 * numbers[:, None]
    q = model.actuator_position(model.assembly.q[None, :])[0] + np.sum(
        sizes * np.sin(angle), axis=2
    )
    v = np.sum(sizes * w * np.cos(angle), axis=2)
    a = -np.sum(sizes * w**2 * np.sin(angle), axis=2)
    start = model.actuators.track(q).q if model.assembly.rows else None
    return model, time, q, model.actuators.inverse_dynamics(q, v, a, start=start).force


def findings(
    exact: ExactLog, noise: float = 0.0, resolution: float = 0.0, **options: Any
) -> list[str]:
    """Return the findings of a log with noise of the forces, as a share of their RMS."""
    model, time, q, forces = exact
    names, units = model.output_ports("actuators")
    sensors = Sensors(
        resolution=np.full(len(names), resolution),
        force_noise=noise * np.sqrt(np.mean(forces**2, axis=0)),
    )
    position_units = model.actuators.ports.position.units
    rng = np.random.default_rng(5)
    log = measure(time, q, forces, names, position_units, units, sensors, rng)
    result = identify(model, [log], options_of(**options))
    return [f"{problem.where}: {problem.what}" for problem in result.findings]


@pytest.mark.parametrize(("noise", "resolution"), NOISES)
def test_a_sound_log_has_no_finding(exact: ExactLog, noise: float, resolution: float) -> None:
    assert findings(exact, noise, resolution, trim=20, cutoff=40.0) == []
