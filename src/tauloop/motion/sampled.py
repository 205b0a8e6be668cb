"""A motion sampled in time."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from tauloop.common.names.deprecated import old_attribute
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.equations.ports import Port
from tauloop.logs.log import build_log, port_channels

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledMotion(ReprMixin):
    """Positions, velocities and accelerations at sample times.

    Attributes:
        time: times (N,), s.
        position: positions (N, n), m or rad.
        velocity: velocities (N, n), m/s or rad/s.
        acceleration: accelerations (N, n), m/s^2 or rad/s^2.
    """

    time: np.ndarray
    position: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray
    rates = old_attribute("rates", "states")

    @property
    def states(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Positions, velocities and accelerations, as arguments of functions of a motion."""
        return self.position, self.velocity, self.acceleration

    def part(self, samples: slice | np.ndarray) -> SampledMotion:
        """Return some of the samples."""
        return SampledMotion(
            time=self.time[samples],
            position=self.position[samples],
            velocity=self.velocity[samples],
            acceleration=self.acceleration[samples],
        )

    def log(self, ports: Mapping[str, Port]) -> xr.Dataset:
        """Return a log with the names and units of ports, such as those of the platform."""
        kinds = (
            port_channels(kind, p.columns, p.units, getattr(self, kind))
            for kind, p in ports.items()
        )
        return build_log(self.time, chain.from_iterable(kinds))
