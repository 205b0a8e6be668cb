"""The settings of a tracker experiment, read from its file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tauloop.calibration.pose_selection.candidates import PoseLimits
from tauloop.reproduce.experiments import Experiment


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """What others state, and who.

    Attributes:
        error: mean position error after calibration, m.
        error_by, small_errors: who says so, and what else was found.
        ranks_by: who states the ranks.
        rank_poses, rank_positions: of the full model at the nominal geometry, by what is measured.
        rank_with_errors: with positions, away from the nominal geometry.
        unobservable: directions with a standard deviation above `TrackerSettings.practical_tolerance`.
    """

    error: float
    error_by: str
    small_errors: str
    ranks_by: str
    rank_poses: int
    rank_positions: int
    rank_with_errors: int
    unobservable: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackerSettings:
    """Everything that the paper says or leaves open; SI.

    Attributes:
        machine, model: the machine as it is built, and the one that the simple model takes it for.
        model_values: values of the simple model that make both nominal machines one.
        poses: how many are measured.
        seed: of all random numbers.
        limits: what poses must keep.
        noise, pose_turn_noise: of the tracker, m; of orientations, for the ranks with complete poses, rad.
        part_errors: standard deviations by pattern of parameter names.
        error_scales, scale_draws: factors of the part errors for the simple model's curve, and draws for each.
        loose_priors: factor of the priors that shows what they do.
        chains: prefixes of the simple model's chains, in the order of the actuators.
        links: the links of the machine that each chain stands for.
        model_parameters, machine_parameters: unknowns of both models.
        practical_tolerance: correction (m, rad, 1) above which a direction counts as unobservable.
        ranks_ranges: the smaller volume in which the ranks are looked at too.
        stated: what others say.
    """

    machine: str
    model: str
    model_values: Mapping[str, float]
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


def tracker_settings(experiment: Experiment) -> TrackerSettings:
    """The settings of an experiment's file."""
    given = dict(experiment.settings)
    limits = PoseLimits(
        ranges={name: (low, high) for name, (low, high) in given.pop("ranges").items()},
        singularity=given.pop("singularity"),
        clearance=given.pop("clearance"),
    )
    given["ranks_ranges"] = {name: (low, high) for name, (low, high) in given["ranks_ranges"].items()}
    given["links"] = {chain: tuple(links) for chain, links in given["links"].items()}
    lists = ("error_scales", "chains", "model_parameters", "machine_parameters")
    given |= {name: tuple(given[name]) for name in lists}
    return TrackerSettings(limits=limits, stated=Stated(**given.pop("stated")), **given)
