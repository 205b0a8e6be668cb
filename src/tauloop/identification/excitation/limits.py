"""Limits of an excitation, for the channels of the series and for quantities of the machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tauloop.common.errors import InputError, Problems
from tauloop.common.options import Options, option
from tauloop.common.records import dataclass
from tauloop.equations.assembly.freedoms.cut_freedoms import CutFreedoms
from tauloop.equations.named_values import numbers_of
from tauloop.equations.ports import coordinate_units, velocity_units
from tauloop.geometry.clearance import RodClearance
from tauloop.kinematics.singularities import least_distance
from tauloop.mechanism.description import units
from tauloop.mechanism.description.units import (
    ACCELERATION,
    ANGLE,
    ANGULAR_SPEED,
    LENGTH,
    SPEED,
    Dimension,
    quantity,
)
from tauloop.mechanism.suggestions import unknown_names
from tauloop.model import Model

#: Limits by channel: one number for all channels, or numbers by name; other channels have no limit.
PerChannel = float | Mapping[str, float]
#: Kinds of singularities that a motion avoids.
SINGULARITIES = ("parallel", "serial")
#: Dimension of an angular acceleration.
ANGULAR_ACCELERATION = ANGULAR_SPEED * ANGULAR_SPEED / ANGLE


def per_channel(
    where: str, *wanted: Dimension, is_one_enough: bool = True
) -> Callable[[str], PerChannel]:
    """Return a parser for one quantity that applies to all channels, or for ``NAME=QUANTITY,...``.

    Numbers without a unit are in SI units.
    """

    def read(text: str) -> PerChannel:
        if is_one_enough and "=" not in text:
            return quantity(where, text, *wanted)
        return numbers_of(text, where, *wanted)

    return read


def in_full(channels: tuple[str, ...], values: Mapping[str, float]) -> dict[str, float]:
    """Return values by full channel names.

    A key may be the last component of a channel's name if no other channel has this component.
    """
    endings = [channel.rpartition(".")[2] for channel in channels]
    full = {
        ending: channel
        for ending, channel in zip(endings, channels, strict=True)
        if endings.count(ending) == 1
    }
    full |= {channel: channel for channel in channels}
    return {full.get(name, name): value for name, value in values.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExcitationLimits(Options):
    """Limits in addition to those of the machine file (ranges, speeds, forces), which always apply.

    Attributes:
        stroke: largest distance of a channel from its center: a quantity for all, or 'name=0.1,...'
            (m, rad, or with a unit).
        max_velocity: largest velocity of a channel: a quantity for all, or 'name=0.1,...' (m/s,
            rad/s, or with a unit).
        max_acceleration: largest acceleration of a channel: a quantity for all, or 'name=0.1,...'
            (m/s^2, rad/s^2, or with a unit).
        force_share: fraction of the machine's force limits and largest tensions that may be used.
        singularity: smallest distance to singularities of both types (0 to 1, without unit; see
            `kinematics.singularities`). The default is 0.05, or half the distance of the reference
            pose if that is smaller.
        clearance: smallest distance between center lines of rods, such as 20mm; 0 for no limit.
    """

    stroke: PerChannel = option(
        factory=dict, read=per_channel("stroke", LENGTH, ANGLE), metavar="LIMIT"
    )
    max_velocity: PerChannel = option(
        factory=dict,
        read=per_channel("max_velocity", SPEED, ANGULAR_SPEED),
        metavar="LIMIT",
    )
    max_acceleration: PerChannel = option(
        factory=dict,
        read=per_channel("max_acceleration", ACCELERATION, ANGULAR_ACCELERATION),
        metavar="LIMIT",
    )
    force_share: float = option(1.0, least=1e-3)
    singularity: float | None = option(None, least=0.0, most=0.999)
    clearance: float = option(0.0, least=0.0, metavar="LENGTH", unit=units.LENGTH)

    def of_channels(self, channels: tuple[str, ...]) -> np.ndarray:
        """Return the limits (3, n) of stroke, speed and acceleration; infinite without a limit.

        Raises:
            InputError: a name is not a channel, or a limit is not positive; lists all problems.
        """
        problems = Problems()
        rows = []
        for name, limit in (
            ("stroke", self.stroke),
            ("max_velocity", self.max_velocity),
            ("max_acceleration", self.max_acceleration),
        ):
            values = limit if isinstance(limit, Mapping) else dict.fromkeys(channels, limit)
            values = in_full(channels, values)
            problems += unknown_names(values, channels, "{!r} is not a channel", name)
            for channel, value in values.items():
                if not value > 0:
                    problems.add(
                        name,
                        f"must be positive for {channel}, got {value:g}",
                        "give it in SI units",
                    )
            rows.append([values.get(channel, np.inf) for channel in channels])
        InputError.raise_if_any(problems)
        return np.array(rows, dtype=float)


@dataclass(frozen=True, slots=True)
class Bound:
    """The limits of a quantity.

    Attributes:
        kind: "position", "speed", "motor speed", "force", "tension", "singularity" or "clearance".
        of: name of the coordinate, velocity, actuator or cable; kind of singularity; "rods".
        unit: unit of the quantity.
        lower: lower limit; minus infinity without a limit.
        upper: upper limit; infinity without a limit.
    """

    kind: str
    of: str
    unit: str
    lower: float = -np.inf
    upper: float = np.inf

    @staticmethod
    def up_to(kind: str, of: str, unit: str, size: float) -> Bound:
        """Return limits of the absolute value of a quantity."""
        return Bound(kind, of, unit, -size, size)

    @property
    def is_floor(self) -> bool:
        """Whether this is the lower limit of a distance."""
        return self.upper == np.inf and self.kind in ("singularity", "clearance")

    @property
    def middle(self) -> float:
        """Middle of the range; zero if one side has no limit."""
        if np.isfinite(self.lower) and np.isfinite(self.upper):
            return 0.5 * (self.lower + self.upper)
        return 0.0

    @property
    def half(self) -> float:
        """Half of the range; with a single limit, its absolute value, or 1 if it is zero."""
        if np.isfinite(self.lower) and np.isfinite(self.upper):
            return 0.5 * (self.upper - self.lower)
        return abs(self.lower if np.isfinite(self.lower) else self.upper) or 1.0

    @property
    def scaled(self) -> tuple[float, float]:
        """Limits of the scaled quantity (value - `middle`) / `half`."""
        return (self.lower - self.middle) / self.half, (self.upper - self.middle) / self.half

    @property
    def name(self) -> str:
        """Name for tables."""
        if self.kind == "singularity":
            return f"distance to {self.of} singularity"
        if self.kind == "clearance":
            return "distance between rods"
        return f"{self.kind} of {self.of}"


def bounds(
    model: Model, limits: ExcitationLimits, clearance: RodClearance | None, cuts: CutFreedoms
) -> tuple[Bound, ...]:
    """Return all finite limits of a machine, and the distances that `limits` requires.

    Args:
        model: the machine; the limits of its file always apply.
        limits: limits of the excitation.
        clearance: distances between rods; None if they are not limited.
        cuts: freedoms of cut joints, whose limits apply too.
    """
    topology, actuators = model.topology, model.mechanism.actuators
    result = []
    for i, freedom in enumerate(topology.freedoms):
        if i in model.assembly.frozen:
            continue
        iq = topology.q_of_v[i]
        if iq >= 0:
            name, unit = topology.coordinate_names[iq], coordinate_units(topology, [iq])[0]
            result.append(Bound("position", name, unit, freedom.lower, freedom.upper))
        name, unit = topology.velocity_names[i], velocity_units(topology, (i,))[0]
        result.append(Bound.up_to("speed", name, unit, freedom.speed))
    for name, unit, freedom in zip(cuts.names, cuts.units, cuts.freedoms, strict=True):
        result.append(Bound("position", name, unit, freedom.lower, freedom.upper))
        result.append(Bound.up_to("speed", name, f"{unit}/s", freedom.speed))
    for actuator, name, unit in zip(actuators, *model.output_ports("actuators"), strict=True):
        speed_unit = "rad/s" if topology.is_rotary(actuator) else "m/s"
        result.append(Bound.up_to("motor speed", name, speed_unit, actuator.speed))
        result.append(Bound.up_to("force", name, unit, limits.force_share * actuator.force))
    for name, tension in model.mechanism.cables.items():
        result.append(
            Bound("tension", name, "N", tension.least, limits.force_share * tension.greatest)
        )
    if limits.singularity != 0.0 and model.assembly.rows:
        distance = least_distance(model, limits.singularity, SINGULARITIES)
        result += [Bound("singularity", kind, "", distance) for kind in SINGULARITIES]
    if clearance is not None and len(clearance.pairs):
        result.append(Bound("clearance", "rods", "m", limits.clearance))
    return tuple(bound for bound in result if np.isfinite([bound.lower, bound.upper]).any())


def quantities(
    model: Model,
    cuts: Mapping[str, tuple[Any, Any]],
    q: Any,
    v: Any,
    motors: Any,
    force: Any,
    tension: Any,
) -> dict[tuple[str, str], Any]:
    """Return positions, speeds, forces and tensions by `Bound.kind` and `Bound.of`.

    The arguments can be arrays or symbols.

    Args:
        model: the machine.
        cuts: positions and speeds of cut joints by name.
        q, v: coordinates and velocities (n, ...).
        motors, force: speeds and forces of the actuators (n_u, ...).
        tension: tensions of the cables (k, ...).
    """
    columns = {("position", name): q[i] for i, name in enumerate(model.topology.coordinate_names)}
    columns |= {("speed", name): v[i] for i, name in enumerate(model.topology.velocity_names)}
    for name, (position, speed) in cuts.items():
        columns |= {("position", name): position, ("speed", name): speed}
    for i, actuator in enumerate(model.mechanism.actuators):
        columns |= {("motor speed", actuator.name): motors[i], ("force", actuator.name): force[i]}
    return columns | {
        ("tension", name): tension[i] for i, name in enumerate(model.mechanism.cables)
    }


def use(bounded: tuple[Bound, ...], values: np.ndarray) -> np.ndarray:
    """Return the used fractions (..., n) of limits for values (..., n), at most 1 within limits.

    For a distance, the fraction is the limit divided by the value.
    """
    fractions = []
    for bound, value in zip(bounded, np.moveaxis(values, -1, 0), strict=True):
        if bound.is_floor:
            fractions.append(bound.lower / np.maximum(value, 1e-300))
            continue
        lower, upper = bound.scaled
        scaled = (value - bound.middle) / bound.half
        above = scaled - upper + 1.0 if np.isfinite(upper) else np.full_like(scaled, -np.inf)
        below = lower - scaled + 1.0 if np.isfinite(lower) else np.full_like(scaled, -np.inf)
        fractions.append(np.maximum(np.maximum(above, below), 0.0))
    return np.stack(fractions, axis=-1) if fractions else np.zeros(values.shape)
