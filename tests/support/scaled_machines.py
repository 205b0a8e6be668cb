"""Machines read in other units: every length, mass and time is multiplied by a factor, whatever the quantity."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from tauloop import Mechanism, load
from tauloop.equations.ports import coordinate_units, velocity_units
from tauloop.equations.topology import Topology
from tauloop.formats import library
from tauloop.mechanism.description import parser, units
from tauloop.mechanism.description.units import UNITS, parse_unit


class Scale(NamedTuple):
    """What one metre, one kilogram and one second of a file become, in SI."""

    length: float = 1.0
    mass: float = 1.0
    time: float = 1.0

    def factor(self, unit: str) -> float:
        """Return the factor of a quantity by its SI unit, such as N m/rad."""
        return self.of(parse_unit(unit).dimension)

    def factors(self, names: tuple[str, ...]) -> np.ndarray:
        """Return the factors (n,) of quantities by their SI units; 1 for pure numbers."""
        return np.array([self.factor(unit or "1") for unit in names])

    def of(self, dimension: units.Dimension) -> float:
        """Return the factor of a quantity by its dimension."""
        powers = (dimension.length, dimension.mass, dimension.time)
        return float(
            np.prod([base ** float(power) for base, power in zip(self, powers, strict=True)])
        )

    def coordinates(self, topology: Topology) -> np.ndarray:
        """Return the factors (n_q,) of a machine's coordinates."""
        return self.factors(coordinate_units(topology))

    def velocities(self, topology: Topology) -> np.ndarray:
        """Return the factors (n_v,) of its velocities."""
        return self.factors(velocity_units(topology))


def scaled(machine: str, scale: Scale) -> Mechanism:
    """Return a machine, by name or path, with every quantity of its file multiplied by the factor of its dimension."""
    with _other_units(scale):
        return load(machine)


@contextmanager
def _other_units(scale: Scale) -> Iterator[None]:
    """Read files in units of another size: gravity, limits, and numbers within expressions are scaled as well."""
    usual = dict(UNITS)
    UNITS.update(
        {name: (size * scale.of(dimension), dimension) for name, (size, dimension) in usual.items()}
    )
    _forget_what_was_read()
    try:
        yield
    finally:
        UNITS.update(usual)
        _forget_what_was_read()


def _forget_what_was_read() -> None:
    for function in (units.parse_unit, units.literal, parser.parse):
        function.cache_clear()
    library.shipped_machine.cache_clear()
