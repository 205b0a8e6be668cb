"""Candidate poses for measuring: spread over the work volume, within reach, limits, and away from singularities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import field, replace

import numpy as np
from scipy.spatial.transform import Rotation
from scipy.stats import qmc

from tauloop.calibration.measurements.instruments import Instrument
from tauloop.calibration.pose_selection.contact import Gap
from tauloop.common.errors import InputError, PoseError, Problem
from tauloop.common.options import Options, option
from tauloop.common.plain import OMITTED, in_json
from tauloop.common.records import dataclass
from tauloop.common.shown import Shown
from tauloop.equations.assembly.limits import coordinate_limits
from tauloop.equations.named_values import ranges_of
from tauloop.equations.ports import Port
from tauloop.geometry.clearance import rod_clearance
from tauloop.kinematics.singularities import KINDS, least_distance, singularities
from tauloop.kinematics.workspaces.map import section_axes
from tauloop.mechanism.description import units
from tauloop.mechanism.suggestions import unknown_names
from tauloop.model import Model

#: Poses tried for each one that is wanted, at most.
TRIES = 30
#: Share of the rods' mean length that their centre lines keep apart where nobody says more.
SLENDER = 0.02
#: StepGauge of the range in which a platform position without limits is tried, as a share of the
#: characteristic length.
FINENESS = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class PoseLimits(Options):
    """What a measuring pose must keep.

    Attributes:
        ranges: ranges of platform positions, such as 'x=-0.4:0.4,z=100:300 mm' (SI without a unit);
            those of the machine file without it.
        singularity: smallest distance to singularities (0 to 1, free of units); without it 0.05, or
            half of that of the reference pose where that is less.
        clearance: smallest distance between center lines of rods, such as 20mm; 0 for none; a share
            of the rods' length without it.
        turn: largest turn of a platform that can turn about each axis from its reference, rad.
        joint_ranges: whether ranges of joints and rods in the machine file must be kept.
    """

    ranges: Mapping[str, tuple[float, float]] | None = option(
        None, read=ranges_of, metavar="NAME=LOW:HIGH"
    )
    singularity: float | None = option(None, least=0.0, most=1.0)
    clearance: float | None = option(None, least=0.0, metavar="LENGTH", unit=units.LENGTH)
    turn: float = option(0.15, least=0.0, flag="--max-rotation", metavar="ANGLE", unit=units.ANGLE)
    joint_ranges: bool = option(True, flag="")


LIMITS = PoseLimits()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidates(Shown):
    """Poses that can be measured.

    Attributes:
        columns: names of the platform positions.
        position: platform positions (N, n), SI.
        q: all coordinates (N, n_q).
        encoders: actuator positions (N, n_u), m or rad.
        tried: how many poses were tried.
        excluded: how many of them were left out, by reason.
        clearance: distance that centre lines of rods keep, m; None for a machine without pairs of
            rods.
    """

    columns: tuple[str, ...] = field(metadata=OMITTED)
    position: np.ndarray = field(metadata=OMITTED)
    q: np.ndarray = field(metadata=OMITTED)
    encoders: np.ndarray = field(metadata=OMITTED)
    tried: int
    excluded: Mapping[str, int]
    clearance: float | None = None

    def __len__(self) -> int:
        """Number of poses."""
        return len(self.position)

    @property
    @in_json()
    def number(self) -> int:
        """Number of poses."""
        return len(self)


def usual_clearance(model: Model) -> float | None:
    """Distance that centre lines of rods keep where nobody says more, m; None for a machine without pairs of rods.

    Machine files give rods no thickness. A fiftieth of their mean length is about what slender rods
    are thick, and half of the least distance at the reference pose is allowed at any rate, so that
    it is never left out itself.
    """
    clearance, q = rod_clearance(model), model.assembly.q[None]
    if not len(clearance.pairs):
        return None
    ends = clearance.segments(q)[0]
    lengths = np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1)
    return float(min(SLENDER * lengths.mean(), clearance.distances(q).min() / 2))


def candidate_poses(
    model: Model,
    count: int,
    rng: np.random.Generator,
    *,
    limits: PoseLimits = LIMITS,
    touching: Instrument | None = None,
) -> Candidates:
    """Poses spread evenly (a scrambled Halton sequence) over the work volume, those that break a limit left out.

    Args:
        model: the machine.
        count: how many poses are wanted.
        rng: scrambles the sequence.
        limits: what the poses must keep.
        touching: an instrument whose surface every pose touches: positions are moved onto it.

    Raises:
        InputError: a count below one, unknown or empty ranges, or a platform that cannot be moved
            onto a surface.
        PoseError: too few poses keep the limits; which limits left out how many.
    """
    if count < 1:
        raise InputError.of("candidates", f"{count} are asked for", "ask for one or more")
    port = model.platform.ports.position
    box = _box(model, limits)
    turned = _quaternion(port)
    clearance = usual_clearance(model) if limits.clearance is None else limits.clearance
    kept_apart = replace(limits, clearance=clearance or 0.0)
    gap = Gap(model, touching) if touching is not None else None
    halton = qmc.Halton(len(port.columns), rng=rng)
    batches: list[tuple[np.ndarray, np.ndarray]] = []
    excluded: Counter[str] = Counter()
    tried = kept = 0
    while kept < count and tried < TRIES * count:
        position = _spread(halton.random(max(count, 16)), box, turned)
        tried += len(position)
        if gap is not None:
            position = gap.closed(position, box, excluded)
        q, good = _kept(model, position, kept_apart, excluded)
        kept += len(good)
        batches.append((position[good], q[good]))
    if kept < count:
        reasons = ", ".join(f"{reason} {number}" for reason, number in (+excluded).most_common())
        what = f"only {kept} of {tried} poses tried keep the limits, {count} are wanted; left out: {reasons}"
        remedy = (
            "widen the limits, narrow the ranges to the work volume, or ask for fewer candidates"
        )
        raise PoseError.of("candidates", what, remedy)
    position, q = (np.concatenate(parts)[:count] for parts in zip(*batches, strict=True))
    return Candidates(
        columns=port.columns,
        position=position,
        q=q,
        encoders=model.actuator_position(q),
        tried=tried,
        excluded=dict(+excluded),
        clearance=clearance,
    )


def _quaternion(port: Port) -> tuple[int, ...]:
    """Columns of a whole quaternion, if there is one."""
    ends = tuple(column.rpartition(".")[2] for column in port.columns)
    return tuple(ends.index(name) for name in ("qw", "qx", "qy", "qz")) if "qw" in ends else ()


def _box(model: Model, limits: PoseLimits) -> np.ndarray:
    """From and to of every platform position (n, 2); of a quaternion's columns, rotations about its axes, rad."""
    port, entry = model.platform.ports.position, model.platform.ports
    full = {column.rpartition(".")[2]: column for column in port.columns}
    ranges = {full.get(name, name): range_ for name, range_ in (limits.ranges or {}).items()}
    problems = unknown_names(ranges, port.columns, "is no platform position")
    problems += [
        Problem(where=name, what=f"range {low:g} to {high:g} is empty", remedy="give LOW:HIGH")
        for name, (low, high) in ranges.items()
        if not low < high
    ]
    InputError.raise_if_any(problems)
    lower, upper = coordinate_limits(model.topology)
    reference = entry.at(model.assembly.q)
    turned = _quaternion(port)
    box = []
    for i, (name, unit) in enumerate(zip(port.columns, port.units, strict=True)):
        low, high = ranges.get(name, (lower[entry.q[i]], upper[entry.q[i]]))
        if np.isfinite([low, high]).all():
            box.append((low, high))
        elif i in turned:
            box.append((-limits.turn, limits.turn))
        elif unit in ("1", "rad"):
            # a quaternion's component turns by twice its size
            turn = limits.turn / 2 if unit == "1" else limits.turn
            box.append((reference[i] - turn, reference[i] + turn))
        else:
            axis = section_axes(model, (name,), FINENESS * model.assembly.loops.length)[name]
            box.append((float(axis[0]), float(axis[-1])))
    return np.array(box)


def _spread(unit: np.ndarray, box: np.ndarray, turned: tuple[int, ...]) -> np.ndarray:
    """Platform positions (N, n) from points of the unit cube."""
    position = box[:, 0] + unit * np.ptp(box, axis=1)
    if turned:
        rotation = Rotation.from_rotvec(position[:, turned[1:]])
        position[:, turned] = rotation.as_quat(scalar_first=True)
    return np.asarray(position)


def _kept(
    model: Model, position: np.ndarray, limits: PoseLimits, excluded: Counter[str]
) -> tuple[np.ndarray, np.ndarray]:
    """All coordinates (N, n_q), and indices of the poses that keep the limits; the others are counted by reason."""
    state = model.platform.evaluate(position)
    good = np.flatnonzero(state.health.is_reached & np.isfinite(state.q).all(axis=1))

    excluded["out of reach"] += len(position) - len(good)
    if limits.joint_ranges:
        ranges, held = model.limits, set(model.platform.ports.q)
        # `--ranges` takes the place of the ranges in which a given coordinate is drawn
        is_named = np.zeros(len(ranges.names), dtype=bool)
        is_named[: len(ranges.columns)] = [i in held for i in ranges.columns]
        is_inside = ((ranges.margins(state.q[good]) >= 0.0) | is_named & ~ranges.is_stop).all(
            axis=1
        )
        excluded["joint range"] += int((~is_inside).sum())
        good = good[is_inside]
    if len(good):
        singular = singularities(model, state.q[good])
        least = least_distance(model, limits.singularity)
        near = np.stack([singular.distance(kind) < least for kind in KINDS])
        for kind, is_first in zip(KINDS, near & (near.cumsum(axis=0) == 1), strict=True):
            excluded[f"{kind} singularity"] += int(is_first.sum())
        good = good[~near.any(axis=0)]
    clearance = rod_clearance(model)
    if len(good) and len(clearance.pairs) and limits.clearance:
        is_apart = clearance.distances(state.q[good]).min(axis=1) >= limits.clearance
        excluded["interference of rods"] += int((~is_apart).sum())
        good = good[is_apart]
    return state.q, good
