"""Hysteresis and friction of an actuator: the LuGre model for given velocities."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np


@dataclass(frozen=True, slots=True, kw_only=True)
class Bristles:
    """The LuGre friction model F = s0 z + s1 dz/dt + s2 v.

    dz/dt = v - s0 |v| z / g(v), g = coulomb + (static - coulomb) exp(-(v/stribeck)^2).

    Attributes:
        stiffness, damping, viscous: s0 (N/m), s1 and s2 (N s/m).
        coulomb, static: N; with a load, `coulomb` increases by load share times load.
        stribeck: Stribeck velocity, m/s.
        load_share: increase of friction per load on the actuator, dimensionless.
    Source: Canudas de Wit, Olsson, Astrom and Lischinsky 1995, eqs. 1 to 3.
    """

    stiffness: float
    damping: float
    viscous: float
    coulomb: float
    static: float
    stribeck: float
    load_share: float = 0.0

    def force(
        self, velocity: np.ndarray, rate: float, load: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the force (N, n) against friction in the steady state of a periodic motion.

        Between two samples v and g are constant, at their mean. Then dz/dt is linear in z with the
        exact solution z -> z exp(-a h) + v (1 - exp(-a h)) / a over the step h, where a = s0 |v| /
        g. A period forgets its initial state once the motion has reversed, so that the second of
        two periods is steady.

        Args:
            velocity: velocities v at the samples of one period (N, n), m/s.
            rate: sample rate, Hz.
            load: magnitude of the force on the actuator (N, n), N; none by default.
        """
        level = self.coulomb + (self.static - self.coulomb) * np.exp(
            -((velocity / self.stribeck) ** 2)
        )
        if load is not None:
            level = level + self.load_share * np.abs(load)
        decay = self.stiffness * np.abs(velocity) / level
        v, a = (0.5 * (x + np.roll(x, -1, axis=0)) for x in (velocity, decay))
        ah = a / rate
        kept = np.exp(-ah)
        # (1 - exp(-x)) / x tends to 1 at standstill
        gained = v / rate * np.where(ah > 0.0, -np.expm1(-ah) / np.where(ah > 0.0, ah, 1.0), 1.0)
        z = _recurrence(np.tile(kept, (2, 1)), np.tile(gained, (2, 1)))[len(velocity) :]
        # the recurrence returns z after the step; z at the sample is one step earlier
        z = np.roll(z, 1, axis=0)
        return np.asarray(
            self.stiffness * z + self.damping * (velocity - decay * z) + self.viscous * velocity
        )


def _recurrence(kept: np.ndarray, gained: np.ndarray) -> np.ndarray:
    """Return the states (N, n) after every step of z -> kept z + gained from zero."""
    count, size = kept.shape
    z, k, g = (ca.MX.sym(name, size) for name in "zkg")
    step = ca.Function("step", [z, k, g], [k * z + g])
    return np.asarray(step.mapaccum("steps", count)(np.zeros(size), kept.T, gained.T)).T
