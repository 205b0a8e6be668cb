"""The fastest law beside TOPP-RA on random paths: never slower, and limits between points of the grid kept."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from toppra_paths import BOXES, limits_of, random_stroke, toppra_duration

import tauloop as tl
from tauloop.motion import PathLimits, PathRows, fastest_law
from tauloop.motion.fastest.planning import fastest_profile

#: Points of both grids, and of the peer's when it has converged.
POINTS, CONVERGED = 1000, 8000
#: By which share ours may be slower: the issue's bar.
SLOWER = 1e-3
#: What rounding leaves of a limit on a grid ten times finer.
EXCESS = 1e-8
PATHS = 100
#: Friction of both motors' joints where it is dry alone, and the number of such paths.
DRY, DRY_PATHS = {"coulomb": 1.0, "viscous": 0.0}, 25


@cache
def model(name: str) -> tl.Model:
    return tl.Model(tl.load(name))


def compare(name: str, seed: int) -> tuple[float, float, float]:
    """Excess on a grid ten times finer; our duration over the peer's at as many points, and over its converged one."""
    rows = limits_of(random_stroke(model(name), name, seed))
    unit = rows.unit()
    profile, _ = fastest_profile(rows, unit, POINTS)
    parts = np.linspace(0.0, 1.0, 11)[:-1]
    k = np.repeat(np.arange(len(profile.first)), len(parts))
    w = np.tile(parts, len(profile.first)) * np.diff(profile.grid)[k]
    x, a = profile.at(k, w)
    excess = float(rows.at(profile.grid[k] + w, unit).excess(x, a).max())
    duration = float(profile.times().sum()) / unit
    beside = [duration / toppra_duration(rows, unit, points)[0] for points in (POINTS, CONVERGED)]
    return excess, beside[0], beside[1]


@pytest.mark.parametrize(("name", "seed"), [("delta", 0), ("nuwar", 19)])
def test_a_random_path_is_no_slower_than_the_peers(name: str, seed: int) -> None:
    """The second has an interval that taking off its limits makes worse."""
    excess, beside, converged = compare(name, seed)
    assert excess < EXCESS
    assert max(beside, converged) < 1.0 + SLOWER


def dry_ratio(seed: int) -> float:
    """A whole law's duration over the peer's, for a five-bar with an eighth of its torque as Coulomb friction alone."""
    shoulders = {
        f"shoulder_{i}.friction.{key}": value for i in (1, 2) for key, value in DRY.items()
    }
    placed = random_stroke(tl.Model(tl.load("five_bar").with_values(shoulders)), "five_bar", seed)
    rows = PathRows(placed, PathLimits())
    best = fastest_law(rows, intervals=POINTS)
    return best.duration / min(
        toppra_duration(rows, best.unit, points)[0] for points in (POINTS, CONVERGED)
    )


@pytest.mark.parametrize("seed", [1, 3])
def test_a_whole_law_with_dry_friction_is_no_slower_than_the_peers(seed: int) -> None:
    assert dry_ratio(seed) < 1.0 + SLOWER


@pytest.mark.nightly
def test_many_whole_laws_with_dry_friction_are_no_slower_than_the_peers() -> None:
    assert max(dry_ratio(seed) for seed in range(1, DRY_PATHS + 1)) < 1.0 + SLOWER


@pytest.mark.nightly
@pytest.mark.parametrize("name", BOXES)
def test_a_hundred_random_paths_are_no_slower_than_the_peers(name: str) -> None:
    results = np.array([compare(name, seed) for seed in range(1, PATHS + 1)])
    assert results[:, 0].max() < EXCESS
    assert results[:, 1:].max() < 1.0 + SLOWER
