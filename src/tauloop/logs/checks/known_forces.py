"""Forces known as functions of position (cables, springs, counterweights), to be subtracted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import InputError, LogError, Problems
from tauloop.common.records import dataclass
from tauloop.logs.log import Log, Signals, as_signals, by_channel, units
from tauloop.mechanism.suggestions import listing, suggestion

#: A position beyond a table's end by up to this fraction of its range counts as at the end, because
#: numbers in files are rounded.
TABLE_END_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class ForceTable:
    """A force that is piecewise linear between points and undefined outside them.

    Attributes:
        position: increasing positions, m or rad.
        force: forces at these positions, N or N m.
    """

    position: tuple[float, ...]
    force: tuple[float, ...]

    def __post_init__(self) -> None:
        """Reject points that are not in increasing order.

        Raises:
            InputError: there are fewer than two points, the numbers of positions and forces differ,
                a number is not finite, or the positions do not increase.
        """
        position = np.asarray(self.position, dtype=float)
        force = np.asarray(self.force, dtype=float)
        what = ""
        if len(position) < 2 or len(position) != len(force):
            what = f"has {counted(len(position), 'position')} and {counted(len(force), 'force')}"
        elif (
            not (np.isfinite(position).all() and np.isfinite(force).all())
            or not (np.diff(position) > 0.0).all()
        ):
            what = "has positions that do not increase, or numbers that are not finite"
        if what:
            raise InputError.of("table", what, "give two or more pairs with increasing positions")

    def at(self, position: np.ndarray) -> np.ndarray:
        """Return the force (N,) at positions (N,)."""
        return np.interp(position, self.position, self.force)

    def known(self) -> tuple[float, float]:
        """Return the smallest and largest position at which the force is known."""
        return self.position[0], self.position[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Polynomial:
    """The force sum over k of coefficients[k] (p - about)^k.

    Attributes:
        coefficients: coefficients in N, N/m, N/m^2, ... or N m, N m/rad, ...
        about: position at which all terms except the constant one are zero, m or rad.
    """

    coefficients: tuple[float, ...]
    about: float = 0.0

    def at(self, position: np.ndarray) -> np.ndarray:
        """Return the force (N,) at positions (N,)."""
        return np.asarray(
            np.polynomial.polynomial.polyval(position - self.about, np.asarray(self.coefficients))
        )

    def known(self) -> tuple[float, float]:
        """Return the smallest and largest position at which the force is known."""
        return -np.inf, np.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownForce:
    """A force of an actuator that is due to an element missing from the machine's description.

    Attributes:
        channel: name of the actuator; the sign is that of its force channel.
        of: position channel on which the force depends.
        law: force as a function of position.
        units: units of position and force in the law; "" if not given.
    """

    channel: str
    of: str
    law: ForceTable | Polynomial
    units: tuple[str, str] = ("", "")


def without_known_forces(log: Log, known: Sequence[KnownForce]) -> tuple[Signals, tuple[str, ...]]:
    """Return the log with the forces u - f(p), and notes on the subtracted forces f(p).

    The positions p are used as measured. The resulting forces are filtered and decimated later, as
    usual.

    Raises:
        LogError: channels are missing, units differ, or positions exceed a table.
    """
    signals = as_signals(log)
    logged_units = {quantity: units(signals, quantity) for quantity in ("position", "force")}
    problems = Problems()
    for known_force in known:
        where = f"known_forces.{known_force.channel}"
        names = (known_force.of, known_force.channel)
        for (quantity, units_by_name), name, unit in zip(
            logged_units.items(), names, known_force.units, strict=True
        ):
            if name not in units_by_name:
                remedy = suggestion(name, units_by_name) or f"choose among {listing(units_by_name)}"
                problems.add(where, f"{quantity}.{name} is not in the log", remedy)
            elif unit and unit != units_by_name[name]:
                what = f"the law is in {unit}, but {quantity}.{name} is in {units_by_name[name]}"
                problems.add(where, what, "correct the units of the law or of the channel")
    LogError.raise_if_any(problems)
    values = by_channel(signals, "force")
    notes = []
    for known_force in known:
        position = by_channel(signals, "position")[known_force.of]
        low, high = known_force.law.known()
        tolerance = TABLE_END_TOLERANCE * (high - low) if np.isfinite(high - low) else 0.0
        unit = logged_units["position"][known_force.of]
        if position.min() < low - tolerance or position.max() > high + tolerance:
            what = f"position.{known_force.of} ranges from {position.min():.6g} to {position.max():.6g} {unit}, "
            what += f"but the table only from {low:.6g} to {high:.6g}"
            problems.add(
                f"known_forces.{known_force.channel}",
                what,
                "extend the table, or remove these samples",
            )
            continue
        force = known_force.law.at(position)
        values[known_force.channel] = values[known_force.channel] - force
        unit = logged_units["force"][known_force.channel]
        notes.append(
            f"force.{known_force.channel}: a known function of position.{known_force.of} was subtracted, "
            f"from {force.min():.3g} to {force.max():.3g} {unit}"
        )
    LogError.raise_if_any(problems)
    new_channels = tuple(
        replace(channel, values=values[channel.channel]) if channel.quantity == "force" else channel
        for channel in signals.channels
    )
    return replace(signals, channels=new_channels), tuple(notes)
