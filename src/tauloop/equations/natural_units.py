"""Natural units of a machine: a typical length, mass and time, for tolerances at any scale."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tauloop.common.records import dataclass
from tauloop.equations.topology import Topology
from tauloop.mechanism.description.units import parse_unit
from tauloop.mechanism.model import Inertia, Mechanism


@dataclass(frozen=True, slots=True, kw_only=True)
class NaturalUnits:
    """Typical sizes of a machine, SI.

    Attributes:
        length: the characteristic length, m.
        mass: total mass of bodies and rods, kg; 1 kg for a machine without mass.
        time: time of a free fall over half the characteristic length, s; 1 s without gravity.
    """

    length: float
    mass: float
    time: float

    def sizes(self, units: Iterable[str]) -> np.ndarray:
        """Return the typical size (n,) of quantities with these SI units; 1 for rad and "1"."""
        dimensions = [parse_unit(unit or "1").dimension for unit in units]
        powers = np.array(
            [[float(d.length), float(d.mass), float(d.time)] for d in dimensions]
        ).reshape(-1, 3)
        return np.asarray(np.prod(np.array([self.length, self.mass, self.time]) ** powers, axis=1))


def natural_units(mechanism: Mechanism) -> NaturalUnits:
    """Return the natural units of a machine at its nominal parameters."""
    length = mechanism.characteristic_length
    inertias: list[Inertia] = [
        body.inertia for body in mechanism.bodies if body.inertia is not None
    ]
    parts = [part for rod in mechanism.rods for part in (rod.lower, rod.upper) if part is not None]
    mass = sum(mechanism.value(part.mass) for part in (*inertias, *parts))
    gravity = float(np.linalg.norm([mechanism.value(component) for component in mechanism.gravity]))
    return NaturalUnits(
        length=length,
        mass=mass if mass > 0.0 else 1.0,
        time=float(np.sqrt(length / gravity)) if gravity > 0.0 else 1.0,
    )


def stribeck_speeds(mechanism: Mechanism, topology: Topology) -> np.ndarray:
    """Return the Stribeck speeds (n,) of all friction, characteristic lengths or rad per second."""
    length = mechanism.characteristic_length
    freedoms = zip(topology.freedoms, topology.angular, strict=True)
    laws = [(freedom.friction, angular) for freedom, angular in freedoms]
    laws += [(motor.friction, topology.is_rotary(motor)) for motor in mechanism.actuators]
    laws += [(loss.friction, loss.is_angular) for loss in mechanism.losses]
    return np.array(
        [
            mechanism.value(friction.stribeck) / (1.0 if is_angular else length)
            for friction, is_angular in laws
            if friction is not None and friction.stribeck is not None
        ]
    )
