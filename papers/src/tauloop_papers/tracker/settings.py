"""Section 3 of the paper with a simulated tracker: its values, and our choices; SI."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tauloop.calibration import PoseLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """Values stated by others, with their sources.

    Attributes:
        error: mean position error after calibration, m.
        error_by: source of the error.
        ranks_by: source of the ranks.
        rank_poses, rank_positions: ranks of the full model at the nominal geometry, by kind of
            measurement.
        rank_with_errors: rank with positions, away from the nominal geometry.
        unobservable: number of directions with a standard deviation above
            `TrackerSettings.practical_tolerance`.
    """

    error: float
    error_by: str
    ranks_by: str
    rank_poses: int
    rank_positions: int
    rank_with_errors: int
    unobservable: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackerSettings:
    """Values of the paper, and our choices; SI.

    Attributes:
        machine, model: the machine as built, and the machine of the simple model.
        poses: number of measured poses.
        seed: seed of all random numbers.
        limits: limits of the poses.
        noise, pose_turn_noise: noise of the tracker, m; and of orientations, for the ranks with
            complete poses, rad.
        part_errors: standard deviations by pattern of parameter names.
        error_scales, scale_draws: factors of the part errors for the simple model's curve, and
            number of draws for each.
        loose_priors: factor of loosened priors, to show their effect.
        chains: prefixes of the simple model's chains, in the order of the actuators.
        links: links of the machine that each chain represents.
        model_parameters, machine_parameters: unknowns of both models.
        practical_tolerance: correction (m, rad, 1) above which a direction counts as unobservable.
        ranks_ranges: a smaller volume, in which ranks are also computed.
        stated: values of others.
    """

    machine: str
    model: str
    poses: int
    seed: int
    limits: PoseLimits
    noise: float
    pose_turn_noise: float
    part_errors: Mapping[str, float]
    error_scales: tuple[float, ...]
    scale_draws: int
    loose_priors: float
    chains: tuple[str, ...]
    links: Mapping[str, tuple[str, ...]]
    model_parameters: tuple[str, ...]
    machine_parameters: tuple[str, ...]
    practical_tolerance: float
    ranks_ranges: Mapping[str, tuple[float, float]]
    stated: Stated


SETTINGS = TrackerSettings(
    # the machine as built has all six links, with errors; eq. 1 describes it by one link per
    # cluster
    machine="gantry_tau_6link",
    model="gantry_tau_3dof",
    # the paper measured a full-size prototype: beyond the machine file's work volume, as far as
    # reach and rods allow
    poses=176,
    limits=PoseLimits(
        ranges={"platform.x": (-0.5, 0.5), "platform.y": (-0.3, 0.3), "platform.z": (-0.3, 0.3)},
        singularity=0.1,
        clearance=0.05,
    ),
    seed=1,
    noise=20e-6,
    pose_turn_noise=20e-6,
    # drawn once; the priors of the 51-parameter fit
    part_errors={
        "*.length": 0.2e-3,
        "*.A_?": 0.2e-3,
        "*.B_?": 0.2e-3,
        "track*.yaw": 0.2e-3,
        "track*.pitch": 0.2e-3,
        "track*.gain": 0.2e-3,
    },
    # the fit of eq. 1 with scaled part errors, and the full fit with priors scaled to nearly
    # none
    error_scales=(0.25, 0.5, 1, 2, 3, 4, 6),
    scale_draws=128,
    loose_priors=1000,
    # eq. 1: per chain length, offset (3) and c (3) = (cos yaw cos pitch, sin yaw cos pitch, -sin
    # pitch) / gain
    chains=("track1", "track2", "track3"),
    # the linear start of the fit of all links assumes equal links of a cluster
    links={
        "track1": ("triple1", "triple2", "triple3"),
        "track2": ("pair1", "pair2"),
        "track3": ("single1",),
    },
    model_parameters=(
        "track*.length",
        "track*.offset_x",
        "track*.offset_y",
        "track*.offset_z",
        "track*.yaw",
        "track*.pitch",
        "track*.gain",
    ),
    machine_parameters=("*.length", "*.A_?", "*.B_?", "track*.yaw", "track*.pitch", "track*.gain"),
    practical_tolerance=1e-3,
    # the work volume of the notes, in which they may have computed the ranks
    ranks_ranges={
        "platform.x": (-0.2, 0.2),
        "platform.y": (-0.15, 0.15),
        "platform.z": (-0.15, 0.15),
    },
    stated=Stated(
        error=140e-6,
        error_by="paper, Figure 4",
        ranks_by="project notes",
        rank_poses=33,
        rank_positions=30,
        rank_with_errors=48,
        unobservable=22,
    ),
)
