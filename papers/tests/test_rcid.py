"""The RCID: strokes by the paper's closed form, tasks against formulas, a surface that acts by the tool's motion."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import tauloop as tl
from tauloop.common.result import Status, plain
from tauloop_papers.rcid.momentum import READINGS, reach, run, touch
from tauloop_papers.rcid.momentum_figures import CAPTIONS, FILMS, figures, films
from tauloop_papers.rcid.settings import SETTINGS

#: The stroke is told in tenths of a millimetre, m.
TENTH = 1e-4
#: A surface's force begins within a step of the integrator, which costs so much of the energy: 2e-5
#: seen.
KINK = 1e-4


@pytest.fixture(scope="module")
def model() -> tl.Model:
    return tl.Model(tl.load("rcid"))


def heights(position: np.ndarray, turned: Rotation) -> np.ndarray:
    """Heights (N, 6) of the carriages by the paper: l = e_z - sqrt(L² - e_x² - e_y²), home in mid-stroke."""
    base, plate, length = (
        np.deg2rad([15, 105, 135, 225, 255, 345]),
        np.deg2rad([60, 60, 180, 180, 300, 300]),
        0.09798,
    )
    across = np.hypot(
        0.08 * np.cos(base[0]) - 0.04 * np.cos(plate[0]),
        0.08 * np.sin(base[0]) - 0.04 * np.sin(plate[0]),
    )
    home = np.array([0.0, 0.0, 0.035 + np.sqrt(length**2 - across**2)])
    rows = []
    for b, p in zip(base, plate, strict=True):
        joint = turned.apply(0.04 * np.array([np.cos(p), np.sin(p), 0.0]))
        e = home + position + joint - 0.08 * np.array([np.cos(b), np.sin(b), 0.0])
        rows.append(e[:, 2] - np.sqrt(length**2 - e[:, 0] ** 2 - e[:, 1] ** 2))
    return np.stack(rows, axis=1)


@pytest.mark.parametrize(
    ("name", "stroke"),
    [
        pytest.param(name, stroke, marks=pytest.mark.nightly if number else ())
        for number, (name, stroke) in enumerate(
            zip(READINGS, (0.0518, 0.0701, 0.0721), strict=True)
        )
    ],
)
def test_no_pose_of_the_set_needs_more_than_the_stroke_and_some_nearly_all(
    model: tl.Model, name: str, stroke: float
) -> None:
    """Random poses by the closed form come up to the stroke from below; extremes are at the borders of the set."""
    balls = READINGS[name]
    result = reach(model, name, balls, replace(SETTINGS, poses=500))
    assert result.stroke == pytest.approx(stroke, abs=TENTH)
    rng = np.random.default_rng(3)
    parts = []
    for is_ball in balls:
        part = rng.uniform(-1, 1, (40_000, 3))
        norm = np.linalg.norm(part, axis=1, keepdims=True)
        parts.append(part / norm if is_ball else np.clip(2 * part, -1, 1))
    turns = SETTINGS.turn * parts[1]
    turned = Rotation.from_rotvec(turns) if balls[1] else Rotation.from_euler("ZYX", turns)
    sampled = heights(SETTINGS.radius * parts[0], turned)
    assert (sampled.max(axis=0) <= result.high + 1e-9).all()
    assert (sampled.min(axis=0) >= result.low - 1e-9).all()
    assert np.ptp(sampled) > 0.97 * result.stroke


def test_the_platform_is_like_the_tasks_mass_and_springs(model: tl.Model) -> None:
    """Force control, until the platform has touched."""
    result = touch(model, SETTINGS.tasks[1], replace(SETTINGS, end=0.07))
    assert result.miss < 1e-6
    assert result.pressure.max() > 5.0
    assert result.place[:, 2].max() > SETTINGS.surface
    assert result.energy_error < KINK


@pytest.mark.nightly
def test_the_whole_experiment_is_in_order() -> None:
    steps: list[str] = []
    result = run(steps.append, replace(SETTINGS, poses=500))
    assert len(steps) == 6
    assert result.status is Status.OK
    assert set(figures(result)) == set(CAPTIONS)
    assert set(films(result)) == set(FILMS)
    assert result.masses == pytest.approx(9.7)
    json.dumps(plain(result), allow_nan=False)
    forces = [item.pressure[-1] for item in result.touches]
    assert forces == pytest.approx([2e3 * 2e4 / 2.2e4 * 0.003, 20.0], rel=1e-3)
    total = [sum(result.counts[method]["all, added up"]) for method in result.counts]
    assert total[1] < 0.2 * total[0]
