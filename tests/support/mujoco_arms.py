"""Logs of small arms that MuJoCo moves: coarse encoders, tachometers, and Dahl's friction by NumPy as a further torque.

The controller is a computed torque with gains; what it commands is what the log records. Friction
is integrated next to MuJoCo's steps: z' = v / length (1 - z sign v), exact over a step of constant
speed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from extras import extra

from tauloop.logs.log import Channel, Signals

RATE, SUBSTEPS = 1000.0, 4
#: Gains of the controller, 1/s^2 and 1/s.
STIFFNESS, DAMPING = 900.0, 60.0

TWO_JOINTS = """
<mujoco model="two_joints">
  <compiler angle="radian" autolimits="true"/>
  <option timestep="0.00025"/>
  <worldbody>
    <body name="upper">
      <inertial pos="0.14 0.01 0.02" mass="3.1" diaginertia="0.006 0.031 0.030"/>
      <joint name="shoulder" axis="0 1 0" {friction}/>
      <body name="lower" pos="0.3 0 0">
        <inertial pos="0.12 -0.01 0.015" mass="1.7" diaginertia="0.003 0.012 0.011"/>
        <joint name="elbow" axis="0 1 0" {friction}/>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor name="shoulder_motor" joint="shoulder"/>
    <motor name="elbow_motor" joint="elbow"/>
  </actuator>
</mujoco>
"""

THREE_JOINTS = """
<mujoco model="three_joints">
  <compiler angle="radian" autolimits="true"/>
  <option timestep="0.00025"/>
  <worldbody>
    <body name="column">
      <inertial pos="0.01 0.02 0.1" mass="4.0" diaginertia="0.03 0.03 0.025"/>
      <joint name="waist" axis="0 0 1" {friction}/>
      <body name="upper" pos="0 0.05 0.25">
        <inertial pos="0.15 0.01 0.02" mass="2.6" diaginertia="0.005 0.027 0.026"/>
        <joint name="shoulder" axis="0 1 0" {friction}/>
        <body name="lower" pos="0.32 0 0">
          <inertial pos="0.11 -0.02 0.015" mass="1.3" diaginertia="0.002 0.009 0.009"/>
          <joint name="elbow" axis="0 1 0" {friction}/>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor name="waist_motor" joint="waist"/>
    <motor name="shoulder_motor" joint="shoulder"/>
    <motor name="elbow_motor" joint="elbow"/>
  </actuator>
</mujoco>
"""


def described(arm: str) -> str:
    """Return the MJCF that is identified, whose joints have friction of some size."""
    return arm.format(friction='damping="0.1" frictionloss="0.1"')


@dataclass(frozen=True, kw_only=True)
class Friction:
    """Friction of every joint.

    Attributes:
        sliding: size, N m.
        lengths: over which it turns round, rad.
        viscous: N m s/rad.
    """

    sliding: Sequence[float]
    lengths: Sequence[float]
    viscous: Sequence[float]


@dataclass(frozen=True, kw_only=True)
class Moved:
    """An arm's motion as it was, without any sensor: time (N,), and positions, velocities and torques (N, n)."""

    motors: tuple[str, ...]
    time: np.ndarray
    position: np.ndarray
    velocity: np.ndarray
    torque: np.ndarray


def multisine(
    joints: int, seed: int, stroke: float, highest: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return amplitudes (n, terms), phases (n, terms) and angular frequencies (terms,)."""
    rng = np.random.default_rng(seed)
    frequencies = highest * np.array([0.1, 0.26, 0.47, 0.71, 1.0])
    sizes = rng.uniform(0.4, 1.0, (joints, len(frequencies))) / frequencies
    sizes *= stroke / sizes.sum(axis=1, keepdims=True)
    return sizes, rng.uniform(0.0, 2.0 * np.pi, sizes.shape), 2.0 * np.pi * frequencies


def moved(
    arm: str,
    friction: Friction,
    *,
    seed: int,
    seconds: float = 24.0,
    stroke: float = 0.9,
    highest: float = 1.2,
) -> Moved:
    """Return an arm that follows a multisine."""
    mujoco = extra("mujoco")
    model = mujoco.MjModel.from_xml_string(arm.format(friction=""))
    data = mujoco.MjData(model)
    count = model.nv
    sizes, phases, omega = multisine(count, seed, stroke, highest)
    step = 1.0 / (RATE * SUBSTEPS)
    ready = np.arange(round(seconds * RATE * SUBSTEPS)) * step
    angle = ready[:, None, None] * omega + phases
    wanted = (sizes * np.sin(angle)).sum(axis=2)
    wanted_v = (sizes * omega * np.cos(angle)).sum(axis=2)
    wanted_a = (-sizes * omega**2 * np.sin(angle)).sum(axis=2)
    sliding, lengths, viscous = (
        np.array(x) for x in (friction.sliding, friction.lengths, friction.viscous)
    )
    data.qpos[:], data.qvel[:] = wanted[0], wanted_v[0]
    mass = np.zeros((count, count))
    z = np.sign(wanted_v[0])
    rows = []
    for number in range(len(ready)):
        mujoco.mj_forward(model, data)
        mujoco.mj_fullM(model, data, mass)
        pull = STIFFNESS * (wanted[number] - data.qpos) + DAMPING * (wanted_v[number] - data.qvel)
        torque = mass @ (wanted_a[number] + pull) + data.qfrc_bias
        if number % SUBSTEPS == 0:
            rows.append(np.concatenate([data.qpos, data.qvel, torque]))
        towards = np.sign(data.qvel)
        data.qfrc_applied[:] = torque - sliding * z - viscous * data.qvel
        z = towards + (z - towards) * np.exp(-np.abs(data.qvel) * step / lengths)
        mujoco.mj_step(model, data)
    position, velocity, torques = np.split(np.array(rows), 3, axis=1)
    names = tuple(model.actuator(k).name for k in range(count))
    return Moved(
        motors=names, time=ready[::SUBSTEPS], position=position, velocity=velocity, torque=torques
    )


def recorded(
    run: Moved, *, step: float, noise: float, tachometer: float | None = None, seed: int = 0
) -> Signals:
    """Return what instruments record of a motion.

    Args:
        run: the motion.
        step: of the encoders, rad; none where zero.
        noise: of the torques, as a share of each motor's root mean square torque.
        tachometer: noise of the velocities, rad/s; None without tachometers.
        seed: of the noise.
    """
    rng = np.random.default_rng(seed)
    position = run.position if step == 0.0 else step * np.round(run.position / step)
    scale = noise * np.sqrt(np.mean(run.torque**2, axis=0))
    torque = run.torque + scale * rng.standard_normal(run.torque.shape)
    values = [("position", "rad", position), ("force", "N m", torque)]
    if tachometer is not None:
        velocity = run.velocity + tachometer * rng.standard_normal(run.velocity.shape)
        values.append(("velocity", "rad/s", velocity))
    channels = [
        Channel(quantity=quantity, channel=name, values=np.ascontiguousarray(column), unit=unit)
        for quantity, unit, columns in values
        for name, column in zip(run.motors, columns.T, strict=True)
    ]
    return Signals(time=run.time, channels=tuple(channels))
