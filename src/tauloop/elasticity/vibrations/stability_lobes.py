"""Stability lobes: the depth of cut above which a machine chatters, as a function of spindle speed.

Sources: Tlusty and Polacek 1963 (one cutting edge); Altintas and Budak 1995, Analytical prediction
of stability lobes in milling, CIRP Annals 44 (zero-order solution).
"""

from __future__ import annotations

from dataclasses import field

import numpy as np

from tauloop.common.datasets import Tabular, dimension, quantity_over
from tauloop.common.errors import InputError
from tauloop.common.plain import in_json, json_keys
from tauloop.common.records import dataclass
from tauloop.elasticity.frame.beams import Array

#: Number of frequencies around each mode.
MODE_COUNT = 401
#: Half-width of these frequencies, relative to the natural frequency.
MODE_RANGE = 0.5
#: Clustering factor of their sinh spacing, which concentrates them near the natural frequency.
MODE_FOCUS = 8.0
#: Number of frequencies between and beyond the modes.
BROAD_COUNT = 400
#: Lowest of these frequencies, relative to the lowest natural frequency.
LOWEST_MULTIPLE = 0.2
#: Highest of these frequencies, relative to the highest natural frequency.
HIGHEST_MULTIPLE = 4.0
#: Number of lobes.
LOBES = 30
#: Number of spindle speeds in a diagram.
SPEED_COUNT = 600
#: Unit vectors of the named directions.
AXES = {axis: np.eye(3)[k] for k, axis in enumerate("xyz")}
Direction = str | tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StabilityLobes(Tabular):
    """Limits of the depth of cut at one pose.

    Attributes:
        cutting_coefficient: force per area of the chip, N/m^2.
        teeth: number of teeth; 0 for turning with a single edge.
        chatter_frequency: (f,) chatter frequencies, Hz.
        depth: (f,) depth of cut at which the machine begins to chatter at this frequency, m; NaN if
            it does not.
        speed: (l, f) spindle speeds of the lobes, revolutions per second.
        spindle_speed: (s,) spindle speeds of the diagram, revolutions per second.
        limit: (s,) largest stable depth of cut at these speeds, m; infinite where there is no lobe.
    """

    cutting_coefficient: float
    teeth: int
    chatter_frequency: np.ndarray = field(metadata=json_keys("chatter_frequency_Hz"))
    depth: np.ndarray = field(metadata=json_keys("depth_m", nullable=True))
    speed: np.ndarray = field(metadata=json_keys("speed_per_s", nullable=True))
    spindle_speed: np.ndarray = field(
        metadata=json_keys("spindle_speed_per_s") | dimension("spindle_speed", unit="Hz")
    )
    limit: np.ndarray = field(
        metadata=json_keys("limit_m", nullable=True) | quantity_over("spindle_speed", unit="m")
    )

    @property
    @in_json("least_depth_m", nullable=True)
    def least_depth(self) -> float:
        """Depth of cut that is stable at every speed, m; infinite if the machine never chatters."""
        return float(np.nanmin(self.depth, initial=np.inf))

    def limit_at(self, speed: float | Array) -> Array:
        """Return the largest stable depth (s,) at spindle speeds (s,), revolutions per second."""
        return _envelope(self.speed, self.depth, np.atleast_1d(np.asarray(speed, dtype=float)))


def chatter_frequencies(natural: Array) -> Array:
    """Return frequencies (f,), Hz, that resolve the responses near natural frequencies (k,), Hz."""
    steps = np.linspace(-1.0, 1.0, MODE_COUNT)
    offsets = MODE_RANGE * np.sinh(MODE_FOCUS * steps) / np.sinh(MODE_FOCUS)
    near = np.outer(natural, 1.0 + offsets).ravel()
    lowest, highest = LOWEST_MULTIPLE * natural.min(), HIGHEST_MULTIPLE * natural.max()
    broad = np.geomspace(lowest, highest, BROAD_COUNT)
    return np.unique(np.concatenate([near, broad]))


def unit_direction(name: str, direction: Direction) -> Array:
    """Return the unit vector (3,) of an axis such as ``x``, or of three numbers.

    Args:
        name: name of the argument, for errors.
        direction: axis name, text with three numbers, or three numbers.

    Raises:
        InputError: the direction is neither an axis name nor three finite numbers, or has length 0.
    """
    remedy = "give x, y, z, or three numbers such as 1,0,1"
    if isinstance(direction, str):
        if direction.strip() in AXES:
            return np.asarray(AXES[direction.strip()])
        try:
            vector = np.array([float(part) for part in direction.split(",")])
        except ValueError:
            what = f"{direction!r} is neither an axis nor three numbers"
            raise InputError.of(name, what, remedy) from None
    else:
        vector = np.asarray(direction, dtype=float)
    norm = float(np.linalg.norm(vector))
    if vector.shape != (3,) or not (np.isfinite(norm) and norm > 0.0):
        what = f"{direction!r} is not three finite numbers with a length above zero"
        raise InputError.of(name, what, remedy)
    return np.asarray(vector / norm)


def turning_lobes(
    frequency: Array, response: Array, cutting_coefficient: float, normal: Array, force: Array
) -> StabilityLobes:
    """Return the stability lobes of a single cutting edge.

    The stability limit is 1 + K b (1 - exp(-i ω T)) G_nf(ω) = 0 with the oriented response
    G_nf = nᵀ G f. This gives b = -1 / (2 K Re G_nf) where Re G_nf is negative.

    Args:
        frequency: (f,) frequencies, Hz, increasing.
        response: G (f, 3, 3), displacement of the tool per force, m/N.
        cutting_coefficient: K, force per area of the chip, N/m^2.
        normal: n (3,), direction in which the tool moves to make the chip thinner.
        force: direction f (3,) of the cutting force on the tool.
    """
    oriented = np.einsum("i,fij,j->f", normal, response, force)
    depth = _limit(oriented.real, 2.0 * cutting_coefficient)
    # 1 - exp(-i ε) has the phase π/2 - ε/2. Its product with G_nf must be a negative real number.
    phase = np.mod(2.0 * np.angle(oriented) - np.pi, 2.0 * np.pi)
    return _lobes(frequency, depth, phase, cutting_coefficient, 0)


def _limit(real: Array, factor: float) -> Array:
    """Return -1 / (factor · real) where `real` is negative, else NaN."""
    return np.divide(-1.0, factor * real, out=np.full(real.shape, np.nan), where=real < 0.0)


def milling_lobes(
    frequency: Array,
    response: Array,
    cutting_coefficient: float,
    teeth: int,
    *,
    radial_ratio: float,
    start_angle: float,
    exit_angle: float,
) -> StabilityLobes:
    """Return the stability lobes of a milling cutter with averaged directional factors A.

    The stability limit is det(1 + Λ A G) = 0 with Λ = -(z / 4 π) b K_t (1 - exp(-i ω T)).

    Args:
        frequency: (f,) frequencies, Hz, increasing.
        response: G (f, 2, 2), displacement of the tool per force along feed and normal, m/N.
        cutting_coefficient: K_t, tangential force per area of the chip, N/m^2.
        teeth: number of teeth z.
        radial_ratio: radial force over tangential force.
        start_angle, exit_angle: angles at which a tooth enters and leaves the workpiece, from the
            normal towards the feed, rad.
    """
    A = directional_factors(radial_ratio, start_angle, exit_angle)
    product = A @ response
    # 1 / Λ are the eigenvalues of -A G.
    inverse = _continuous(np.asarray(np.linalg.eigvals(-product), dtype=complex))
    values = np.divide(1.0, inverse, out=np.full(inverse.shape, np.nan + 0j), where=inverse != 0.0)
    real, imaginary = values.real, values.imag
    with np.errstate(divide="ignore", invalid="ignore"):
        kappa = imaginary / real
        depth = -2.0 * np.pi * real * (1.0 + kappa**2) / (teeth * cutting_coefficient)
    depth = np.where(real < 0.0, depth, np.nan)
    phase = np.pi - 2.0 * np.arctan(kappa)
    first = _lobes(frequency, depth[:, 0], phase[:, 0], cutting_coefficient, teeth)
    second = _lobes(frequency, depth[:, 1], phase[:, 1], cutting_coefficient, teeth)
    speeds = np.geomspace(
        min(first.spindle_speed[0], second.spindle_speed[0]),
        max(first.spindle_speed[-1], second.spindle_speed[-1]),
        SPEED_COUNT,
    )
    return StabilityLobes(
        cutting_coefficient=cutting_coefficient,
        teeth=teeth,
        chatter_frequency=np.concatenate([frequency, frequency]),
        depth=np.concatenate([first.depth, second.depth]),
        speed=np.concatenate([first.speed, second.speed], axis=1),
        spindle_speed=speeds,
        limit=np.minimum(first.limit_at(speeds), second.limit_at(speeds)),
    )


def _continuous(pairs: np.ndarray) -> np.ndarray:
    """Return pairs of eigenvalues (f, 2), ordered so that both columns are continuous."""
    change = np.abs(np.diff(pairs, axis=0)).sum(axis=1)
    change_if_swapped = np.abs(pairs[1:] - pairs[:-1, ::-1]).sum(axis=1)
    is_swapped = np.concatenate([[0], np.cumsum(change_if_swapped < change) % 2]).astype(bool)
    return np.where(is_swapped[:, None], pairs[:, ::-1], pairs)


def directional_factors(radial_ratio: float, start_angle: float, exit_angle: float) -> Array:
    """Return the integrated directional factors (2, 2) of milling; Altintas and Budak 1995."""

    def integrals(angle: float) -> Array:
        cos, sin, r = np.cos(2.0 * angle), np.sin(2.0 * angle), radial_ratio
        return 0.5 * np.array(
            [
                [cos - 2.0 * r * angle + r * sin, -sin - 2.0 * angle + r * cos],
                [-sin + 2.0 * angle + r * cos, -cos - 2.0 * r * angle - r * sin],
            ]
        )

    return integrals(exit_angle) - integrals(start_angle)


def _lobes(
    frequency: Array, depth: Array, phase: Array, cutting_coefficient: float, teeth: int
) -> StabilityLobes:
    """Return the lobes from the phase (f,) between the waves of successive tooth passes, rad."""
    waves = phase[None, :] / (2.0 * np.pi) + np.arange(LOBES)[:, None]
    tooth_frequency = np.divide(
        frequency, waves, out=np.full(waves.shape, np.nan), where=waves > 0.0
    )
    speed = np.where(np.isfinite(depth), tooth_frequency / max(teeth, 1), np.nan)
    lobe_speeds = speed[np.isfinite(speed)]
    chatter = frequency[np.isfinite(depth)]
    lowest = float(lobe_speeds.min()) if len(lobe_speeds) else 1.0
    highest_chatter = float(chatter.max()) if len(chatter) else 1.0
    highest = 2.0 * highest_chatter / max(teeth, 1)
    speeds = np.geomspace(lowest, max(highest, 2.0 * lowest), SPEED_COUNT)
    return StabilityLobes(
        cutting_coefficient=cutting_coefficient,
        teeth=teeth,
        chatter_frequency=frequency,
        depth=depth,
        speed=speed,
        spindle_speed=speeds,
        limit=_envelope(speed, depth, speeds),
    )


def _envelope(speed: Array, depth: Array, at: Array) -> Array:
    """Return the smallest depth (s,) of all lobes at spindle speeds (s,), by linear interpolation.

    Args:
        speed: (l, f) spindle speeds of the lobes.
        depth: (f,) depths of cut.
        at: (s,) spindle speeds.
    """
    order = np.argsort(at)
    ordered = at[order]
    start, end = speed[:, :-1], speed[:, 1:]
    is_line = np.isfinite(start) & np.isfinite(end) & (start != end)
    ends = np.stack([start[is_line], end[is_line]])
    depths = np.stack(
        [np.broadcast_to(values, start.shape)[is_line] for values in (depth[:-1], depth[1:])]
    )
    first = np.searchsorted(ordered, ends.min(axis=0), side="left")
    last = np.searchsorted(ordered, ends.max(axis=0), side="right")
    counts = last - first
    line = np.repeat(np.arange(len(counts)), counts)
    position = np.arange(len(line)) - np.repeat(np.cumsum(counts) - counts, counts) + first[line]
    fraction = (ordered[position] - ends[0, line]) / (ends[1, line] - ends[0, line])
    limit = np.full(at.shape, np.inf)
    np.minimum.at(
        limit, order[position], depths[0, line] + fraction * (depths[1, line] - depths[0, line])
    )
    return limit
