"""A planar arm of two revolute joints by hand: its regressor, and samples with noise, to test identification."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tauloop.identification import RegressionData
from tauloop.logs.log import Channel, Signals

LENGTH, GRAVITY = 0.4, 9.81
NAMES = ("link1.m", "link1.mx", "link1.my", "link1.I", "link2.m", "link2.mx", "link2.my", "link2.I")
UNITS = ("kg", "kg m", "kg m", "kg m^2") * 2
#: Of two links of 3 kg and 2 kg with the mass centre near mid-length.
TRUE = np.array([3.0, 0.6, 0.05, 0.2, 2.0, 0.35, -0.04, 0.09])
#: Motors of the machine file, and their friction: N m s/rad and N m.
DRIVES, FRICTION = ("motor_1", "motor_2"), 0.1
#: The same arm as a machine file: mass centres, moments of inertia about them, gravity along -y,
#: friction.
MACHINE = """
format: tauloop-machine/1
name: planar_arm
provenance: {status: chosen, source: a test}
gravity: [0, -9.81 m/s^2, 0]
bodies:
  link1:
    mass: 3 kg
    center: [0.2 m, 0.05 m / 3, 0]
    inertia: {xx: 0.04 kg m^2, yy: 0.0791666666666667 kg m^2, zz: 0.0791666666666667 kg m^2}
  link2:
    mass: 2 kg
    center: [0.175 m, -0.02 m, 0]
    inertia: {xx: 0.02 kg m^2, yy: 0.02795 kg m^2, zz: 0.02795 kg m^2}
joints:
  shoulder:
    {type: revolute, axis: z, parent: base, child: link1, friction: {viscous: 0.1 N m s/rad, coulomb: 0.1 N m}}
  elbow:
    type: revolute
    axis: z
    parent: {on: link1, at: [0.4 m, 0, 0]}
    child: link2
    friction: {viscous: 0.1 N m s/rad, coulomb: 0.1 N m}
actuators:
  motor_1: {on: shoulder}
  motor_2: {on: elbow}
platform:
  body: link2
  independent: [shoulder, elbow]
"""
OUTPUTS, OUTPUT_UNITS = ("shoulder", "elbow"), ("N m", "N m")


def true_base() -> np.ndarray:
    """Base parameters of the arm (6,), by hand."""
    return np.array([TRUE[1] + LENGTH * TRUE[4], TRUE[2], TRUE[3] + LENGTH**2 * TRUE[4], *TRUE[5:]])


def arm_regressor(q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Y (N, 2, 8) of joint torques = Y p, from the Lagrangian.

    T = (I1 + m2 L^2) w1^2 / 2 + I2 (w1 + w2)^2 / 2 + L w1 (w1 + w2) (mx2 c2 - my2 s2),
    V = g ((mx1 + m2 L) s1 + my1 c1 + mx2 s12 + my2 c12), parameters about each joint.
    """
    (v1, v2), (a1, a2) = v.T, a.T
    s1, c1, s2, c2 = np.sin(q[:, 0]), np.cos(q[:, 0]), np.sin(q[:, 1]), np.cos(q[:, 1])
    s12, c12 = np.sin(q.sum(axis=1)), np.cos(q.sum(axis=1))
    mixed, swing = 2 * a1 + a2, v2 * (2 * v1 + v2)
    zero = np.zeros(len(q))
    g, length = GRAVITY, LENGTH
    shoulder = [
        zero,
        g * c1,
        -g * s1,
        a1,
        length**2 * a1 + g * length * c1,
        length * (c2 * mixed - s2 * swing) + g * c12,
        length * (-s2 * mixed - c2 * swing) - g * s12,
        a1 + a2,
    ]
    elbow = [
        zero,
        zero,
        zero,
        zero,
        zero,
        length * (c2 * a1 + s2 * v1**2) + g * c12,
        length * (-s2 * a1 + c2 * v1**2) - g * s12,
        a1 + a2,
    ]
    return np.stack([np.stack(shoulder, axis=1), np.stack(elbow, axis=1)], axis=1)


def arm_motion(count: int, phase: float = 0.0, rate: float = 200.0) -> tuple[np.ndarray, ...]:
    """Time (N,) and q, v, a (N, 2) of a sum of sines."""
    t = np.arange(count) / rate
    frequencies = np.array([[1.1, 2.3, 3.9], [1.7, 2.9, 5.1]])
    sizes = np.array([[0.7, 0.4, 0.15], [0.8, 0.3, 0.12]])
    angles = frequencies[None] * t[:, None, None] + phase + np.arange(3)
    q = np.sum(sizes * np.sin(angles), axis=2)
    v = np.sum(sizes * frequencies * np.cos(angles), axis=2)
    a = -np.sum(sizes * frequencies**2 * np.sin(angles), axis=2)
    return t, q, v, a


def arm_data(
    count: int = 2500,
    *,
    noise: tuple[float, float] = (0.0, 0.0),
    phase: float = 0.0,
    rng: np.random.Generator | None = None,
    **changes: object,
) -> RegressionData:
    """Samples of the arm with white noise (N m) on the torques of shoulder and elbow."""
    t, q, v, a = arm_motion(count, phase)
    regressor = arm_regressor(q, v, a)
    rng = rng or np.random.default_rng(1)
    fields = {
        "regressor": regressor,
        "forces": regressor @ TRUE + np.array(noise) * rng.standard_normal((count, 2)),
        "parameters": NAMES,
        "parameter_units": UNITS,
        "outputs": OUTPUTS,
        "output_units": OUTPUT_UNITS,
        "time": t,
    }
    return RegressionData(**{**fields, **changes})


def arm_log(
    motion: tuple[np.ndarray, ...],
    forces: np.ndarray,
    *,
    noise: float = 0.02,
    encoder: float = 1e-6,
    rng: np.random.Generator | None = None,
) -> Signals:
    """A log of the arm's machine file with white noise of torques (N m) and positions (rad)."""
    t, q, *_ = motion
    rng = rng or np.random.default_rng(3)
    measured = {
        "position": (q + encoder * rng.standard_normal(q.shape), "rad"),
        "force": (forces + noise * rng.standard_normal(forces.shape), "N m"),
    }
    channels = tuple(
        Channel(
            quantity=quantity, channel=name, values=np.ascontiguousarray(values[:, k]), unit=unit
        )
        for quantity, (values, unit) in measured.items()
        for k, name in enumerate(DRIVES)
    )
    return Signals(time=t, channels=channels)


def arm_forces(motion: tuple[np.ndarray, ...]) -> np.ndarray:
    """Torques (N, 2) of the formulae, with the friction of the machine file."""
    _, q, v, a = motion
    return arm_regressor(q, v, a) @ TRUE + FRICTION * (v + np.sign(v))


def with_channel(log: Signals, name: str, values: np.ndarray) -> Signals:
    """The log with other values in one channel."""
    channels = tuple(
        replace(channel, values=values) if channel.name == name else channel
        for channel in log.channels
    )
    return replace(log, channels=channels)
