"""A geared arm with an elastic drive: its machine file, and logs from two masses integrated here alone."""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.integrate import solve_ivp

from tauloop.logs.log import Channel, Signals

RATIO, OFFSET = 4.0, 0.3
GEARED_ARM = f"""
format: tauloop-machine/1
name: geared_arm
provenance: {{status: chosen, source: test}}
gravity: [0, -9.81 m/s^2, 0]
bodies:
  arm: {{mass: 3 kg, center: [0.2 m, 0, 0], inertia: {{xx: 0.1 kg m^2, yy: 0.1 kg m^2, zz: 0.1 kg m^2}}}}
joints: {{hinge: {{type: revolute, axis: z, parent: base, child: arm}}}}
actuators:
  motor: {{on: hinge, ratio: {RATIO}, offset: {OFFSET} rad, force: 50 N m, stiffness: 90 N m/rad}}
platform: {{body: arm, independent: [hinge]}}
"""
#: Stiffness and damping of the drive, inertia and friction of the motor.
K, D, J_MOTOR, VISCOUS, COULOMB = 80.0, 0.05, 0.01, 0.02, 0.1
J_ARM, GRAVITY_TORQUE = 0.1 + 3.0 * 0.2**2, 3.0 * 9.81 * 0.2
RATE = 2000.0
#: Frequencies (Hz) and torques (N m) of the excitation, and gains that hold the arm near its start.
WAVES = ((0.7, 1.0), (1.9, 1.2), (3.3, 1.5), (7.1, 2.0), (11.3, 2.0))
GAIN, RATE_GAIN = 15.0, 0.2


def torque(t: np.ndarray | float, p: np.ndarray, rate: np.ndarray) -> np.ndarray:
    """Return the torque of the motor."""
    waves = sum(np.sin(2.0 * np.pi * f * t + 0.7 * f) * a for f, a in WAVES)
    return np.asarray(waves - GAIN * (p - OFFSET) - RATE_GAIN * rate)


@cache
def exact_motion() -> tuple[np.ndarray, np.ndarray]:
    """Return times, and positions and speeds of motor and arm: two masses on a damped spring."""

    def rates(t: float, y: np.ndarray) -> list[float]:
        p, q, dp, dq = y
        twist, twist_rate = p - RATIO * q - OFFSET, dp - RATIO * dq
        drive = K * twist + D * twist_rate
        friction = VISCOUS * dp + COULOMB * np.tanh(dp / 1e-2)
        a_motor = (float(torque(t, p, dp)) - drive - friction) / J_MOTOR
        a_arm = (RATIO * drive - GRAVITY_TORQUE * np.cos(q)) / J_ARM
        return [dp, dq, a_motor, a_arm]

    time = np.arange(0.0, 6.0, 1.0 / RATE)
    solved = solve_ivp(
        rates,
        (0.0, time[-1]),
        [OFFSET, 0.0, 0.0, 0.0],
        t_eval=time,
        method="LSODA",
        rtol=1e-8,
        atol=1e-10,
    )
    return time, solved.y


def simulated(noise: float, *, seed: int = 1) -> Signals:
    """Return a log of motor and arm with noise (rad, and 100 times as many N m)."""
    rng = np.random.default_rng(seed)
    time, exact = exact_motion()
    p, q = exact[:2] + noise * rng.normal(size=(2, len(time)))
    force = torque(time, exact[0], exact[2]) + 100.0 * noise * rng.normal(size=len(time))
    columns = (("position", "motor", p, "rad"), ("position", "hinge", q, "rad"))
    columns += (("force", "motor", force, "N m"),)
    return Signals(
        time=time,
        channels=tuple(
            Channel(quantity=quantity, channel=channel, values=values, unit=unit)
            for quantity, channel, values, unit in columns
        ),
    )
