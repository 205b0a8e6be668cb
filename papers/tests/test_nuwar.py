"""Strokes of NUWAR: torques by a few lines from Newton's laws, reach by a formula, and round trips."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tauloop as tl
from tauloop.common.result import Status, plain
from tauloop.motion import Seconds, plan, stroke
from tauloop.simulation import IndependentCoordinates
from tauloop_papers.nuwar.results import Strokes
from tauloop_papers.nuwar.settings import SETTINGS
from tauloop_papers.nuwar.strokes import (
    COLUMNS,
    ellipse,
    fastest,
    paths,
    printed_ellipse,
    run,
    torques,
    trip,
)
from tauloop_papers.nuwar.strokes_figures import CAPTIONS, figures

#: Angular accelerations by central differences over 1 µs of rates of 30 rad/s: 1e-16 · 30 / 1e-6 of
#: rounding, rad/s².
DIFFERENCE, STEP = 1e-6, 1e-6
GRAVITY = np.array([0.0, 0.0, -9.81])


def pose(time: np.ndarray, total: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The scaled ellipse with the 3-4-5 polynomial: position, velocity and acceleration (N, 3)."""
    x = time / total
    s, ds = 10 * x**3 - 15 * x**4 + 6 * x**5, (30 * x**2 - 60 * x**3 + 30 * x**4) / total
    dds = (60 * x - 180 * x**2 + 120 * x**3) / total**2
    angle, rate, bend = np.pi * s, np.pi * ds, np.pi * dds
    c, s = np.cos(angle), np.sin(angle)
    p = np.stack([0 * c, -0.144 * c, -0.648 + 0.288 * s], axis=1)
    along, inward = (
        np.stack([0 * c, 0.144 * s, 0.288 * c], axis=1),
        np.stack([0 * c, 0.144 * c, -0.288 * s], axis=1),
    )
    return p, along * rate[:, None], along * bend[:, None] + inward * rate[:, None] ** 2


def by_newton(time: np.ndarray, total: float, alpha: float, beta: float) -> np.ndarray:
    """Torques (N, 3) of Miller's machine: slender forearms with forces at their ends, arms about their motors."""
    arm, forearm, inertia, rod = 0.26, 0.48, 0.01822 + 0.0099 * 0.26**2, 0.0296
    moment = 0.977 * 0.13 + 0.0099 * 0.26

    def leg(number: int, time: np.ndarray) -> tuple[np.ndarray, ...]:
        """Ways u of the forearm, tangents t of the elbow, its angle's cosine direction, and the angle's rate."""
        turn = 2 * np.pi * number / 3
        radial = np.array([np.cos(turn), np.sin(turn), 0.0])
        side = np.array([-np.sin(turn), np.cos(turn), 0.0])
        out, across = (
            np.cos(beta) * radial + np.sin(beta) * side,
            np.cos(beta) * side - np.sin(beta) * radial,
        )
        axis = np.cos(alpha) * across + np.sin(alpha) * np.array([0.0, 0.0, 1.0])
        down = np.cross(axis, out)
        p, v, _ = pose(time, total)
        d = p - (0.194 - 0.03) * radial
        # |d - arm (cos out + sin down)|² = forearm²: a cos + b sin = c
        a, b = d @ out, d @ down
        c = ((d * d).sum(axis=1) + arm**2 - forearm**2) / (2 * arm)
        angle = np.arctan2(b, a) - np.arccos(c / np.hypot(a, b))  # the elbow that lies outside
        reach = np.cos(angle)[:, None] * out + np.sin(angle)[:, None] * down
        tangent = np.cos(angle)[:, None] * down - np.sin(angle)[:, None] * out
        u = d - arm * reach
        rate = (u * v).sum(axis=1) / (arm * (u * tangent).sum(axis=1))
        return u, tangent, reach, rate

    _, _, acceleration = pose(time, total)
    ways, levers, loads, swings = [], [], [], []
    plate = 0.2807 * (acceleration - GRAVITY)
    for number in range(3):
        u, tangent, reach, rate = leg(number, time)
        swing = (leg(number, time + DIFFERENCE)[3] - leg(number, time - DIFFERENCE)[3]) / (
            2 * DIFFERENCE
        )
        elbow = arm * (tangent * swing[:, None] - reach * rate[:, None] ** 2)
        plate = plate + rod / 3 * acceleration + rod / 6 * elbow - rod / 2 * GRAVITY
        ways.append(u)
        levers.append(tangent)
        loads.append(rod / 3 * elbow + rod / 6 * acceleration - rod / 2 * GRAVITY)
        swings.append(inertia * swing - moment * (tangent @ GRAVITY))
    pushes = np.linalg.solve(np.stack(ways, axis=2), plate[..., None])[..., 0]
    return np.stack(
        [
            swing + arm * (lever * (load + push[:, None] * way)).sum(axis=1)
            for swing, lever, load, push, way in zip(
                swings, levers, loads, pushes.T, ways, strict=True
            )
        ],
        axis=1,
    )


@pytest.mark.parametrize(
    ("name", "alpha", "beta"), [("nuwar", np.arctan(0.5**0.5), np.pi / 3), ("delta", 0.0, 0.0)]
)
def test_torques_of_figure_2_follow_from_newtons_laws(name: str, alpha: float, beta: float) -> None:
    result = torques(tl.Model(tl.load(name)), ellipse(SETTINGS, SETTINGS.scale), SETTINGS, name)
    there = result.time < result.one_way * (1 - STEP)
    expected = by_newton(result.time[there], result.one_way, alpha, beta)
    assert result.torque[there] == pytest.approx(expected, abs=1e-6 * result.peak)
    assert result.peak == pytest.approx(np.abs(expected).max(), rel=1e-3)  # between samples too
    assert result.spread < 1e-10 * result.peak
    assert result.peak < SETTINGS.limit


def test_the_printed_ellipse_is_out_of_reach_by_what_a_formula_says() -> None:
    """A forearm misses what the nearest point of its elbow's circle is too far away."""
    fits, misses = printed_ellipse(tl.Model(tl.load("delta")), SETTINGS)

    def gaps(scale: float) -> list[float]:
        ends = scale * np.array([[0.0, -0.2, -0.9], [0.0, 0.2, -0.9]])
        rows = []
        for turn in 2 * np.pi * np.arange(3) / 3:
            radial, side = (
                np.array([np.cos(turn), np.sin(turn), 0]),
                np.array([-np.sin(turn), np.cos(turn), 0]),
            )
            d = ends - (0.194 - 0.03) * radial
            rows.append(
                float(np.max(np.hypot(np.hypot(d @ radial, d[:, 2]) - 0.26, d @ side) - 0.48))
            )
        return rows

    for miss, gap in zip(misses, gaps(1.0), strict=True):
        assert f"out of reach by {1e3 * gap:.1f} mm" in miss
    assert max(gaps(fits)) == pytest.approx(0.0, abs=2e-4)


def test_no_torques_within_the_limit_accelerate_more_than_those_of_a_corner() -> None:
    """From rest on the axis, by inverse dynamics: of random accelerations of that size all need more torque."""
    model = tl.Model(tl.load("nuwar"))
    most = fastest(model, SETTINGS)
    rng = np.random.default_rng(5)
    way = rng.normal(size=(400, 3))
    way *= 1.001 * most / np.linalg.norm(way, axis=1, keepdims=True)
    position = np.zeros((400, 3))
    position[:, 2] = SETTINGS.scale * (SETTINGS.bottom + SETTINGS.rise * rng.uniform(0.0, 1.0, 400))
    torque = model.platform.inverse_dynamics(position, np.zeros((400, 3)), way).force
    assert (np.abs(torque).max(axis=1) > SETTINGS.limit).all()


def test_shapes_lie_in_the_plane_of_the_stroke_within_reach() -> None:
    model = tl.Model(tl.load("nuwar"))
    for path in paths(SETTINGS).values():
        placed = stroke(model, path, COLUMNS)
        points = path.at(np.linspace(0.0, 1.0, 11)).position
        assert np.abs(points[:, 0]).max() < 1e-12
        assert plan(placed, tl.motion.POLYNOMIAL_345, Seconds(1.0)).total == 1.0


def test_a_stroke_comes_back_through_forward_dynamics() -> None:
    model = tl.Model(tl.load("nuwar"))
    short = replace(SETTINGS, tolerance=(1e-9, 1e-10))
    result = trip(
        model,
        "line",
        paths(SETTINGS)["straight line"],
        "3-4-5",
        "",
        IndependentCoordinates(),
        short,
    )
    assert result.largest < 1e-7
    assert result.one_way == pytest.approx(np.sqrt(0.288 * 10 / np.sqrt(3) / 294.82), rel=1e-6)


@pytest.mark.nightly
@pytest.mark.parametrize("of", ["the paper", "a file"])
def test_the_whole_experiment_is_in_order(of: str, tmp_path: Path) -> None:
    steps: list[str] = []
    settings = replace(SETTINGS, turns=(0.0,), samples=101)
    if of == "a file":
        values = {"arm_length": 0.27, "plate_mass": 0.3}
        made = tl.new_machine("mine", settings.machine, tl.NewMachineOptions(values=values))
        made.write(tmp_path / "mine.yaml")
        settings = replace(settings, machine=str(tmp_path / "mine.yaml"))
    result = run(steps.append, settings)
    assert isinstance(result, Strokes)
    assert result.status is Status.OK
    assert len(result.trips) == 2 + 11
    assert [item.machine for item in result.runs] == [settings.machine, settings.other]
    assert {name.lower() for name in figures(result)} == set(CAPTIONS)
    json.dumps(plain(result), allow_nan=False)
    # Miller's way takes fewer operations than Lagrange's, as the paper says; how many is ours
    assert result.operations["hamilton, sampled"] < 0.75 * result.operations["lagrange"]
