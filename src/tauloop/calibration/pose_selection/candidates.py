"""Candidate poses for measurements: spread over the workspace, within limits and reach."""

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
from tauloop.common.shown import ReprMixin
from tauloop.equations.assembly.limits import coordinate_limits
from tauloop.equations.named_values import ranges_of
from tauloop.equations.ports import Port
from tauloop.geometry.clearance import rod_clearance
from tauloop.kinematics.singularities import SINGULARITY_KINDS, least_distance, singularities
from tauloop.kinematics.workspaces.map import section_axes
from tauloop.mechanism.description import units
from tauloop.mechanism.suggestions import unknown_names
from tauloop.model import Model

#: Maximum number of poses tried for each requested one.
MAX_TRIES = 30
#: Minimum number of poses drawn at once.
MIN_BATCH = 16
#: Default minimum distance between the center lines of rods, as a fraction of their mean length.
CLEARANCE_FRACTION = 0.02
#: Step of the search for the range of a platform position without limits, as a fraction of the
#: characteristic length.
RANGE_STEP = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class PoseLimits(Options):
    """Limits of the poses to measure.

    Attributes:
        ranges: ranges of platform positions, such as 'x=-0.4:0.4,z=100:300 mm' (in SI units if no
            unit is given); by default those of the machine file.
        singularity: smallest distance to singularities (0 to 1, dimensionless); by default 0.05, or
            half the distance of the reference pose if this is smaller.
        clearance: smallest distance between center lines of rods, such as 20mm; 0 for no limit; by
            default a fraction of the rods' length.
        max_rotation: largest rotation of the platform about each axis from its reference, rad.
        joint_ranges: whether poses must be within the ranges of joints and rods in the machine
            file.
    """

    ranges: Mapping[str, tuple[float, float]] | None = option(
        None, read=ranges_of, metavar="NAME=LOW:HIGH"
    )
    singularity: float | None = option(None, least=0.0, most=1.0)
    clearance: float | None = option(None, least=0.0, metavar="LENGTH", unit=units.LENGTH)
    max_rotation: float = option(0.15, least=0.0, metavar="ANGLE", unit=units.ANGLE)
    joint_ranges: bool = option(True, flag="")


LIMITS = PoseLimits()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidates(ReprMixin):
    """Poses that can be measured.

    Attributes:
        columns: names (n,) of the platform positions.
        position: platform positions (N, n), SI.
        q: all coordinates (N, n_q).
        encoders: actuator positions (N, n_u), m or rad.
        tried: number of poses that were tried.
        excluded: number of poses that were left out, by reason.
        clearance: minimum distance between the center lines of rods, m; None for a machine without
            pairs of rods.
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


def default_clearance(model: Model) -> float | None:
    """Return the default minimum distance between the center lines of rods, m.

    Machine files do not contain the thickness of rods. The thickness of slender rods is about 1/50
    of their mean length. The result is at most half the smallest distance at the reference pose, so
    that this pose is not excluded.

    Returns:
        The distance; None for a machine without pairs of rods.
    """
    clearance = rod_clearance(model)
    q = model.assembly.q[None]
    if not len(clearance.pairs):
        return None
    segments = clearance.segments(q)[0]
    lengths = np.linalg.norm(segments[:, 1] - segments[:, 0], axis=1)
    return float(min(CLEARANCE_FRACTION * lengths.mean(), clearance.distances(q).min() / 2))


def candidate_poses(
    model: Model,
    count: int,
    rng: np.random.Generator,
    *,
    limits: PoseLimits = LIMITS,
    touching: Instrument | None = None,
) -> Candidates:
    """Return poses that are spread uniformly over the workspace and satisfy the limits.

    The poses are drawn from a scrambled Halton sequence.

    Args:
        model: the machine.
        count: number of poses.
        rng: scrambles the sequence.
        limits: limits of the poses.
        touching: an instrument whose surface every pose must touch; positions are moved onto this
            surface.

    Raises:
        InputError: the count is below one, ranges are unknown or empty, or the platform cannot be
            moved onto a surface.
        PoseError: too few poses satisfy the limits; states the number that each limit excludes.
    """
    if count < 1:
        raise InputError.of("candidates", f"{count} are requested", "request one or more")
    port = model.platform.ports.position
    box = _box(model, limits)
    quaternion = _quaternion(port)
    clearance = default_clearance(model) if limits.clearance is None else limits.clearance
    limits = replace(limits, clearance=clearance or 0.0)
    gap = Gap(model, touching) if touching is not None else None
    halton = qmc.Halton(len(port.columns), rng=rng)
    positions: list[np.ndarray] = []
    coordinates: list[np.ndarray] = []
    excluded: Counter[str] = Counter()
    tried = 0
    accepted = 0
    while accepted < count and tried < MAX_TRIES * count:
        position = _positions_in_box(halton.random(max(count, MIN_BATCH)), box, quaternion)
        tried += len(position)
        if gap is not None:
            position = gap.close(position, box, excluded)
        q, valid = _within_limits(model, position, limits, excluded)
        accepted += len(valid)
        positions.append(position[valid])
        coordinates.append(q[valid])
    if accepted < count:
        reasons = ", ".join(f"{number} ({reason})" for reason, number in (+excluded).most_common())
        what = (
            f"only {accepted} of {tried} poses tried satisfy the limits, but {count} are requested; "
            f"excluded: {reasons}"
        )
        remedy = "widen the limits, narrow the ranges to the workspace, or request fewer candidates"
        raise PoseError.of("candidates", what, remedy)
    position = np.concatenate(positions)[:count]
    q = np.concatenate(coordinates)[:count]
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
    """Return the columns of the quaternion among platform positions; empty if there is none."""
    names = tuple(column.rpartition(".")[2] for column in port.columns)
    return tuple(names.index(name) for name in ("qw", "qx", "qy", "qz")) if "qw" in names else ()


def _box(model: Model, limits: PoseLimits) -> np.ndarray:
    """Return the lower and upper limits (n, 2) of the platform positions, SI.

    The limits of a quaternion's vector part are those of a rotation vector, rad.
    """
    ports = model.platform.ports
    port = ports.position
    full_names = {column.rpartition(".")[2]: column for column in port.columns}
    ranges = {full_names.get(name, name): range_ for name, range_ in (limits.ranges or {}).items()}
    problems = unknown_names(ranges, port.columns, "is not a platform position")
    problems += [
        Problem(where=name, what=f"range {low:g} to {high:g} is empty", remedy="give LOW:HIGH")
        for name, (low, high) in ranges.items()
        if not low < high
    ]
    InputError.raise_if_any(problems)
    quaternion = _quaternion(port)
    quaternion_names = [port.columns[i] for i in quaternion]
    for name, interval in ranges.items():
        unit = "rad" if name in quaternion_names else port.units[port.columns.index(name)]
        for bound in interval:
            units.require_unit(f"ranges {name}", bound, unit)
    lower, upper = coordinate_limits(model.topology)
    reference = ports.at(model.assembly.q)
    box = []
    for i, (name, unit) in enumerate(zip(port.columns, port.units, strict=True)):
        low, high = ranges.get(name, (lower[ports.q[i]], upper[ports.q[i]]))
        if np.isfinite([low, high]).all():
            box.append((low, high))
        elif i in quaternion:
            box.append((-limits.max_rotation, limits.max_rotation))
        elif unit in ("1", "rad"):
            # The rotation angle is twice a small component of a quaternion.
            half_range = limits.max_rotation
            if unit == "1":
                half_range /= 2
            box.append((reference[i] - half_range, reference[i] + half_range))
        else:
            axis = section_axes(model, (name,), RANGE_STEP * model.assembly.loops.length)[name]
            box.append((float(axis[0]), float(axis[-1])))
    return np.array(box)


def _positions_in_box(
    points: np.ndarray, box: np.ndarray, quaternion: tuple[int, ...]
) -> np.ndarray:
    """Return platform positions (N, n) from points of the unit cube."""
    position = box[:, 0] + points * np.ptp(box, axis=1)
    if quaternion:
        rotation = Rotation.from_rotvec(position[:, quaternion[1:]])
        position[:, quaternion] = rotation.as_quat(scalar_first=True)
    return np.asarray(position)


def _within_limits(
    model: Model, position: np.ndarray, limits: PoseLimits, excluded: Counter[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Return all coordinates (N, n_q), and the indices of poses within the limits.

    Poses outside the limits are counted in `excluded`, each by the first limit that it exceeds.
    """
    state = model.platform.evaluate(position)
    valid = np.flatnonzero(state.health.is_reached & np.isfinite(state.q).all(axis=1))
    excluded["out of reach"] += len(position) - len(valid)
    if limits.joint_ranges:
        ranges = model.limits
        platform_columns = set(model.platform.ports.q)
        # Ranges of the options replace those of the machine file, but not the stops of joints.
        is_replaced = np.zeros(len(ranges.names), dtype=bool)
        is_replaced[: len(ranges.columns)] = [i in platform_columns for i in ranges.columns]
        is_inside = ranges.margins(state.q[valid]) >= 0.0
        is_inside = (is_inside | is_replaced & ~ranges.is_stop).all(axis=1)
        excluded["joint range"] += int((~is_inside).sum())
        valid = valid[is_inside]
    if len(valid):
        distances = singularities(model, state.q[valid])
        min_distance = least_distance(model, limits.singularity)
        is_near = np.stack([distances.distance(kind) < min_distance for kind in SINGULARITY_KINDS])
        is_first_reason = is_near & (is_near.cumsum(axis=0) == 1)
        for kind, is_counted in zip(SINGULARITY_KINDS, is_first_reason, strict=True):
            excluded[f"{kind} singularity"] += int(is_counted.sum())
        valid = valid[~is_near.any(axis=0)]
    clearance = rod_clearance(model)
    if len(valid) and len(clearance.pairs) and limits.clearance:
        is_clear = clearance.distances(state.q[valid]).min(axis=1) >= limits.clearance
        excluded["interference of rods"] += int((~is_clear).sum())
        valid = valid[is_clear]
    return state.q, valid
