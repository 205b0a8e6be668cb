"""Limits that an excitation keeps: of the series' channels, and of everything that the loops make of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tauloop.common.errors import InputError, Problems
from tauloop.common.options import Options, option
from tauloop.common.records import dataclass
from tauloop.equations.assembly.cut_freedoms import CutFreedoms
from tauloop.equations.named_values import numbers_of
from tauloop.equations.ports import coordinate_units, velocity_units
from tauloop.geometry.clearance import RodClearance
from tauloop.kinematics.singularities import least_distance
from tauloop.mechanism.bodies import cables
from tauloop.mechanism.description import units
from tauloop.mechanism.description.quantities import quantity
from tauloop.mechanism.description.units import (
    ACCELERATION,
    ANGLE,
    ANGULAR_SPEED,
    LENGTH,
    SPEED,
    Dimension,
)
from tauloop.mechanism.suggestions import unknown_names
from tauloop.model import Model

#: Limits by channel: one number for all, or one for each by name; channels not named have none.
PerChannel = float | Mapping[str, float]
#: Kinds of singularities from which a motion keeps away.
SINGULARITIES = ("parallel", "serial")


ANGULAR_ACCELERATION = ANGULAR_SPEED * ANGULAR_SPEED / ANGLE


def per_channel(
    where: str, *wanted: Dimension, is_one_enough: bool = True
) -> Callable[[str], PerChannel]:
    """A reader of one quantity for all channels, or of ``NAME=QUANTITY,...``; numbers alone are in SI units."""

    def read(text: str) -> PerChannel:
        if is_one_enough and "=" not in text:
            return quantity(where, text, *wanted)
        return numbers_of(text, where, *wanted)

    return read


def in_full(channels: tuple[str, ...], values: Mapping[str, float]) -> dict[str, float]:
    """The same by whole names, where the last part of one was given and only one channel ends so."""
    ends = [channel.rpartition(".")[2] for channel in channels]
    full = {
        end: channel for end, channel in zip(ends, channels, strict=True) if ends.count(end) == 1
    }
    return {
        name if name in channels else full.get(name, name): value for name, value in values.items()
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class ExcitationLimits(Options):
    """Limits beside those of the machine file (ranges, speeds, forces), which always hold.

    Attributes:
        stroke: largest distance of a channel from its center: a quantity for all, or 'name=0.1,...'
            (m, rad, or with a unit).
        speed: largest velocity of a channel: a quantity for all, or 'name=0.1,...' (m/s, rad/s, or
            with a unit).
        acceleration: largest acceleration of a channel: a quantity for all, or 'name=0.1,...'
            (m/s^2, rad/s^2, or with a unit).
        force: share of the machine's force limits, and of greatest tensions, that may be used.
        singularity: smallest distance to singularities of both types (0 to 1, free of units; see
            `kinematics.singularities`); without it 0.05, or half of that of the reference pose
            where that is less.
        clearance: smallest distance between center lines of rods, such as 20mm; 0 for none.
    """

    stroke: PerChannel = option(
        factory=dict, read=per_channel("stroke", LENGTH, ANGLE), metavar="LIMIT"
    )
    speed: PerChannel = option(
        factory=dict,
        read=per_channel("speed", SPEED, ANGULAR_SPEED),
        metavar="LIMIT",
        flag="--max-velocity",
    )
    acceleration: PerChannel = option(
        factory=dict,
        read=per_channel("acceleration", ACCELERATION, ANGULAR_ACCELERATION),
        metavar="LIMIT",
        flag="--max-acceleration",
    )
    force: float = option(1.0, least=1e-3, flag="--force-share")
    singularity: float | None = option(None, least=0.0, most=0.999)
    clearance: float = option(0.0, least=0.0, metavar="LENGTH", unit=units.LENGTH)

    def of_channels(self, channels: tuple[str, ...]) -> np.ndarray:
        """Stroke, speed and acceleration (3, n), infinite where there is none.

        Raises:
            InputError: a name is no channel, or a limit is not positive; all problems.
        """
        problems, rows = Problems(), []
        for name, limit in (
            ("stroke", self.stroke),
            ("speed", self.speed),
            ("acceleration", self.acceleration),
        ):
            values = limit if isinstance(limit, Mapping) else dict.fromkeys(channels, limit)
            values = in_full(channels, values)
            problems += unknown_names(values, channels, "{!r} is no channel", name)
            for channel, value in values.items():
                if not value > 0:
                    problems.add(name, f"of {channel} must be positive, got {value:g}", "SI units")
            rows.append([values.get(channel, np.inf) for channel in channels])
        InputError.raise_if_any(problems)
        return np.array(rows, dtype=float)


@dataclass(frozen=True, slots=True)
class Bound:
    """One bounded quantity.

    Attributes:
        kind: "position", "speed", "motor speed", "force", "tension", "singularity" or "clearance".
        of: name of the coordinate, velocity, actuator or cable; kind of singularity; "rods".
        unit: its unit.
        lower, upper: the limits.
    """

    kind: str
    of: str
    unit: str
    lower: float = -np.inf
    upper: float = np.inf

    @staticmethod
    def up_to(kind: str, of: str, unit: str, size: float) -> Bound:
        """A size, in both directions."""
        return Bound(kind, of, unit, -size, size)

    @property
    def is_floor(self) -> bool:
        """Whether it bounds from below only: a distance."""
        return self.upper == np.inf and self.kind in ("singularity", "clearance")

    @property
    def middle(self) -> float:
        """Middle of the range; zero where one side is open."""
        return (
            0.5 * (self.lower + self.upper)
            if np.isfinite(self.lower) and np.isfinite(self.upper)
            else 0.0
        )

    @property
    def half(self) -> float:
        """Half of the range; where one side is open, the size of the other limit (one for zero)."""
        if np.isfinite(self.lower) and np.isfinite(self.upper):
            return 0.5 * (self.upper - self.lower)
        return abs(self.lower if np.isfinite(self.lower) else self.upper) or 1.0

    @property
    def scaled(self) -> tuple[float, float]:
        """Limits of the quantity less its middle, over its half."""
        return (self.lower - self.middle) / self.half, (self.upper - self.middle) / self.half

    @property
    def name(self) -> str:
        """Name for tables."""
        return {
            "singularity": f"distance to {self.of} singularity",
            "clearance": "distance of rods",
        }.get(self.kind, f"{self.kind} of {self.of}")


def bounds(
    model: Model, limits: ExcitationLimits, clearance: RodClearance | None, cuts: CutFreedoms
) -> tuple[Bound, ...]:
    """All finite limits of the machine file, of cut joints too, and the distances that `limits` asks for."""
    shape, actuators = model.topology, model.mechanism.actuators
    listed = []
    for i, freedom in enumerate(shape.freedoms):
        if i not in model.assembly.frozen:
            if (iq := shape.q_of_v[i]) >= 0:
                unit = coordinate_units(shape, [iq])[0]
                listed.append(
                    Bound(
                        "position", shape.coordinate_names[iq], unit, freedom.lower, freedom.upper
                    )
                )
            listed.append(
                Bound.up_to(
                    "speed", shape.velocity_names[i], velocity_units(shape, (i,))[0], freedom.speed
                )
            )
    for name, unit, freedom in zip(cuts.names, cuts.units, cuts.freedoms, strict=True):
        listed.append(Bound("position", name, unit, freedom.lower, freedom.upper))
        listed.append(Bound.up_to("speed", name, f"{unit}/s", freedom.speed))
    for actuator, name, unit in zip(actuators, *model.output_ports("actuators"), strict=True):
        rate = "rad/s" if shape.motor_turns(actuator) else "m/s"
        listed.append(Bound.up_to("motor speed", name, rate, actuator.speed))
        listed.append(Bound.up_to("force", name, unit, limits.force * actuator.force))
    for name, tension in cables(model.mechanism).items():
        listed.append(Bound("tension", name, "N", tension.least, limits.force * tension.greatest))
    if limits.singularity != 0.0 and model.assembly.rows:
        least = least_distance(model, limits.singularity, SINGULARITIES)
        listed += [Bound("singularity", kind, "", least) for kind in SINGULARITIES]
    if clearance is not None and len(clearance.pairs):
        listed.append(Bound("clearance", "rods", "m", limits.clearance))
    return tuple(bound for bound in listed if np.isfinite([bound.lower, bound.upper]).any())


def quantities(
    model: Model,
    cuts: Mapping[str, tuple[Any, Any]],
    q: Any,
    v: Any,
    motors: Any,
    force: Any,
    tension: Any,
) -> dict[tuple[str, str], Any]:
    """Positions, speeds, forces and tensions by kind and name of a `Bound`, of arrays or symbols.

    Args:
        model: the machine.
        cuts: positions and speeds of cut joints by name.
        q, v: coordinates and velocities, one after the other (n, ...).
        motors, force: speeds and forces of the actuators (n_u, ...).
        tension: of the cables (k, ...).
    """
    columns = {("position", name): q[i] for i, name in enumerate(model.topology.coordinate_names)}
    columns |= {("speed", name): v[i] for i, name in enumerate(model.topology.velocity_names)}
    for name, (position, speed) in cuts.items():
        columns |= {("position", name): position, ("speed", name): speed}
    for i, actuator in enumerate(model.mechanism.actuators):
        columns |= {("motor speed", actuator.name): motors[i], ("force", actuator.name): force[i]}
    return columns | {
        ("tension", name): tension[i] for i, name in enumerate(cables(model.mechanism))
    }


def use(bounded: tuple[Bound, ...], values: np.ndarray) -> np.ndarray:
    """Shares (..., n) of the limits that values (..., n) take: at most one where they are kept.

    Distances from below count as limit over value.
    """
    shares = []
    for bound, value in zip(bounded, np.moveaxis(values, -1, 0), strict=True):
        if bound.is_floor:
            shares.append(bound.lower / np.maximum(value, 1e-300))
            continue
        lower, upper = bound.scaled
        scaled = (value - bound.middle) / bound.half
        above = scaled - upper + 1.0 if np.isfinite(upper) else np.full_like(scaled, -np.inf)
        below = lower - scaled + 1.0 if np.isfinite(lower) else np.full_like(scaled, -np.inf)
        shares.append(np.maximum(np.maximum(above, below), 0.0))
    return np.stack(shares, axis=-1) if shares else np.zeros(values.shape)
