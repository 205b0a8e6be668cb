"""Cyclic motions: legs beside their planner, heat beside quadrature and brute force, conveyors in the world frame."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from page_tables import numbers, page_table

import tauloop as tl
from conftest import ROOT
from tauloop.common.errors import DescriptionError, InputError, PoseError
from tauloop.model.tool import Payload
from tauloop.motion import (
    CycleList,
    CycleStation,
    PathLimits,
    PathRows,
    PlannedCycle,
    cycle_trajectory,
    fastest_law,
    limited_law,
    load_cycle,
    loads_cycle,
    polyline,
    stroke,
)
from tauloop.motion.cycles.heat import CycleHeat
from tauloop.motion.cycles.ways import LegPath, WayPath
from tauloop.motion.laws import POLYNOMIAL_345

DELTA = tl.Model(tl.load("delta"))
LIMITS = PathLimits(force=0.9, reversal=0.01)
LIFT = (0.0, 0.0, 0.025)
#: Intervals of laws: coarse, and hence quick.
FEW = 24
#: Mirrored legs on a coarse grid, which is not mirrored.
ALIKE = 0.02
#: Sums of squares at 601 points of a leg beside 4001 of the cycle.
SUMMED = 1e-3
#: Differences of positions beside the derivatives of paths.
DIFFERENCES = 1e-6
BELTS = """
format: tauloop-cycle/1
blend: 12 mm
stations:
  - {name: pick, at: {x: -60 mm, y: -20 mm, z: -0.525}, lift: {z: 25 mm}, dwell: 40 ms, payload: 0.2 kg,
     velocity: {y: 0.3 m/s}, pitch: 150 mm}
  - {name: place, at: {x: 60 mm, z: -0.525}, lift: {z: 25 mm}, dwell: 40 ms, velocity: {y: -0.1 m/s}}
"""


def station(name: str, *position: float, **more: Any) -> CycleStation:
    rows: dict[str, Any] = {
        key: np.array(value) if isinstance(value, tuple) else value for key, value in more.items()
    }
    return CycleStation(name=name, position=np.array(position), **rows)


@pytest.fixture(scope="module")
def belts() -> PlannedCycle:
    return cycle_trajectory(DELTA, loads_cycle(BELTS, DELTA), LIMITS, intervals=FEW)


def test_a_cycle_of_mirrored_stations_is_twice_the_fastest_motion_between_them() -> None:
    ends = [np.array([x, 0.0, -0.525]) for x in (-0.1, 0.1)]
    listed = CycleList(
        stations=tuple(station(f"s{k}", *p, lift=LIFT) for k, p in enumerate(ends)), blend=0.012
    )
    planned = cycle_trajectory(DELTA, listed, LIMITS, intervals=FEW)
    corners = np.array([ends[0], ends[0] + LIFT, ends[1] + LIFT, ends[1]])
    placed = stroke(DELTA, polyline(corners, 0.012), ("platform.x", "platform.y", "platform.z"))
    transfer = limited_law(fastest_law(PathRows(placed, LIMITS), intervals=400), points=FEW)
    assert planned.durations[0] == pytest.approx(transfer.duration, rel=1e-6)
    assert planned.time == pytest.approx(2 * transfer.duration, rel=ALIKE)
    assert planned.reason == "limits"
    assert planned.time == planned.fastest


def test_conveyors_are_met_in_the_world_frame_without_acceleration(belts: PlannedCycle) -> None:
    trajectory, interval = belts.trajectory(), 0.15 / 0.3
    assert belts.time == pytest.approx(belts.items * interval, rel=1e-12)
    for k, (y, speed) in enumerate(((-0.02, 0.3), (0.0, -0.1))):
        start = float(belts.meetings[k])
        time = start + np.linspace(0.0, 0.04, 9)
        motion = trajectory.at(time)
        assert motion.position[:, 1] == pytest.approx(y + speed * time, abs=1e-12)
        assert motion.velocity == pytest.approx(np.tile([0.0, speed, 0.0], (9, 1)), abs=1e-10)
        before = trajectory.at(np.array([start - 1e-9 if k else belts.time]))
        assert np.abs(before.acceleration).max() < 1e-2
    assert belts.durations == pytest.approx(
        belts.durations.clip(min=[leg.least for leg in belts.legs])
    )


def test_positions_velocities_and_accelerations_of_a_cycle_are_those_of_its_positions(
    belts: PlannedCycle,
) -> None:
    """By differences, the last sample being the first of the next cycle."""
    trajectory, n = belts.trajectory(), 40_000
    motion = trajectory.at(np.linspace(0.0, belts.time, n + 1))
    step = belts.time / n
    drift = 0.3 * belts.time  # the next item's place is where this one's was
    assert motion.position[-1] == pytest.approx(motion.position[0], abs=1e-12)
    assert drift == pytest.approx(belts.items * 0.15)
    for lower, upper in (
        (motion.position, motion.velocity),
        (motion.velocity, motion.acceleration),
    ):
        around = np.concatenate([lower[-2:-1], lower[:-1], lower[:1]])
        slope = (around[2:] - around[:-2]) / (2 * step)
        assert np.abs(slope - upper[:-1]).max() < 2e-3 * np.abs(upper).max()
    assert (
        np.abs(np.diff(motion.acceleration, axis=0)).max()
        < 0.01 * np.abs(motion.acceleration).max()
    )


def test_mean_squares_are_those_of_the_forces_of_the_trajectory(belts: PlannedCycle) -> None:
    time = (np.arange(4000) + 0.5) * belts.time / 4000
    rms = np.sqrt(np.mean(belts.trajectory().forces(time) ** 2, axis=0)) / 41.76
    # less a margin of the places
    assert belts.heat.shares(belts.durations) == pytest.approx(rms, rel=5e-3)
    even = belts.heat.least * (belts.time - belts.heat.dwell) / belts.heat.least.sum()
    assert belts.heat.shares(belts.durations).max() <= belts.heat.shares(even).max() + 1e-12


def test_legs_between_moving_places_have_the_derivatives_of_their_positions() -> None:
    way = WayPath(start=np.array([0.0, 1.0]), end=np.array([2.0, 1.0]))
    arguments = {"leaves": np.array([0.3, 0.1]), "arrives": np.array([-0.2, 0.4])}
    leg = LegPath(way=way, law=POLYNOMIAL_345, duration=0.7, **arguments)
    u, h = np.linspace(0.01, 0.99, 41), 1e-5
    there, low, high = leg.at(u), leg.at(u - h), leg.at(u + h)
    assert (high.position - low.position) / (2 * h) == pytest.approx(
        there.derivative, abs=DIFFERENCES
    )
    assert (high.derivative - low.derivative) / (2 * h) == pytest.approx(
        there.second_derivative, abs=DIFFERENCES
    )
    ends = leg.at(np.array([0.0, 1.0]))
    assert ends.derivative / 0.7 == pytest.approx(np.stack(list(arguments.values())))
    assert ends.second_derivative == pytest.approx(0.0, abs=1e-12)


def random_heat(seed: int) -> CycleHeat:
    rng = np.random.default_rng(seed)
    legs = rng.uniform(0.0, 1.0, (5, 2, 3)) * np.array([0.05, 0.1, 0.5, 0.5, 3.0])[:, None, None]
    return CycleHeat(
        names=("a", "b", "c"),
        least=rng.uniform(0.1, 0.3, 2),
        legs=legs,
        held=rng.uniform(0.0, 0.005, 3),
        dwell=0.05,
    )


@pytest.mark.parametrize("seed", range(5))
def test_the_shortest_and_the_coolest_cycles_are_those_of_brute_force(seed: int) -> None:
    heat = random_heat(seed)
    shortest = heat.shortest()
    assert heat.shares(shortest).max() <= 1 + 1e-9
    assert shortest.sum() <= heat.evenly().sum() * (1 + 1e-12)
    total = float(shortest.sum()) * 1.2
    first = np.linspace(heat.least[0], total - heat.least[1], 4001)
    tried = [float(heat.shares(np.array([t, total - t])).max()) for t in first]
    coolest = heat.coolest(total + heat.dwell)
    assert coolest.sum() == pytest.approx(total)
    assert float(heat.shares(coolest).max()) <= min(tried) * (1 + 1e-6)
    less = [
        min(
            float(heat.shares(np.array([t, s - t])).max())
            for t in np.linspace(heat.least[0], s - heat.least[1], 801)
        )
        for s in shortest.sum() * np.array([0.995, 0.9])
        if s > heat.least.sum()
    ]
    assert all(share > 1.0 for share in less)


def test_what_motors_never_bear_is_refused() -> None:
    heat = random_heat(0)
    heavy = CycleHeat(
        names=heat.names, least=heat.least, legs=heat.legs + 2.0, held=heat.held, dwell=0.0
    )
    with pytest.raises(PoseError, match="times the force that holds the machine"):
        heavy.evenly()


WRONG = """
format: tauloop-cycle/1
stations:
  - {name: pick, at: {w: 1}, dwell: -1 s}
  - {name: place, at: {x: 0.1}, lift: {q: 10 mm}, payload: 3 mm}
  - {name: over, at: {x: 0}, blend: 10 mm, dwell: 1 s}
  - {name: last, at: {x: 0}, pitch: 100 mm}
"""


def test_all_that_is_wrong_with_a_list_is_told_at_once_with_lines() -> None:
    with pytest.raises(DescriptionError) as caught:
        loads_cycle(WRONG, DELTA)
    lines = {problem.line for problem in caught.value.problems}
    assert lines == {4, 5, 6, 7}
    text = str(caught.value)
    for words in (
        "'w'",
        "negative",
        "'q'",
        "a point with a blend cannot have lift, dwell",
        "give a positive pitch and the conveyor's velocity",
    ):
        assert words in text


def test_lists_that_lead_nowhere_are_refused() -> None:
    alone = station("here", 0.0, 0.0, 0.0)
    with pytest.raises(InputError, match="fewer than two stops"):
        CycleList(stations=(alone,))
    belts = [station(f"b{v}", 0.0, 0.0, 0.0, velocity=(0.0, v, 0.0), pitch=0.1) for v in (0.1, 0.2)]
    with pytest.raises(InputError, match="at different times"):
        CycleList(stations=tuple(belts))
    with pytest.raises(InputError, match="accelerations would jump"):
        cycle_trajectory(
            DELTA, CycleList(stations=(alone, replace(alone, name="there"))), PathLimits()
        )
    with pytest.raises(InputError, match="the list of stations states the payloads"):
        tl.CycleOptions(payload=1.0)
    with pytest.raises(InputError, match="here is in the list twice"):
        CycleList(stations=(alone, alone))
    same = tuple(station(name, 0.0, 0.0, -0.5) for name in "ab")
    with pytest.raises(InputError, match="has no length"):
        cycle_trajectory(DELTA, CycleList(stations=same), LIMITS)


def test_a_machine_that_nobody_tuned_carries_past_a_point_and_runs_periodically() -> None:
    """Simulated: in limits, periodic, and with the mean squares of inverse dynamics."""
    listed = CycleList(
        stations=(
            station("left", -0.05, 0.42, dwell=0.02, payload=Payload(mass=0.2)),
            station("over", 0.0, 0.45, blend=0.02),
            station("right", 0.05, 0.42, dwell=0.02),
        )
    )
    result = tl.plan_cycle(
        tl.load("five_bar"),
        listed,
        tl.CycleOptions(intervals=FEW, duration=0.6, rated=0.9, reserve=0.2),
    )
    assert result.status.value == "ok", result.advice
    assert result.reason == "time"
    assert result.time == pytest.approx(0.6)
    assert result.picks_per_minute == pytest.approx(100.0)
    assert [run.payload for run in result.tried] == [0.2, 0.0]
    for motor in result.motors:
        assert motor.simulated == pytest.approx(motor.rms, rel=0.02)
    text = result.c_array(4000.0)
    rows = np.array([row.split(",") for row in re.findall(r"^    \{(.*)\},?$", text, re.M)], float)
    speed, force = rows[:, 2:4], rows[:, 4:6]
    for i, motor in enumerate(result.motors):
        assert motor.peak_force == pytest.approx(np.abs(force[:, i]).max(), rel=2e-3)
        assert motor.peak_speed == pytest.approx(np.abs(speed[:, i]).max(), rel=2e-3)
        assert motor.peak_power == pytest.approx(np.abs(force * speed)[:, i].max(), rel=2e-3)
    text = result.c_array(1000.0)
    assert "#define MOTION_SAMPLES 600" in text
    log = result.log(1000.0)
    assert len(log["time"]) == 601


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("row", "dwell", "rated"),
    [("no dwell", 0.0, None), ("50 ms at", 0.05, None), ("no dwell, motors", 0.0, 0.35)],
)
def test_times_on_the_page_are_those_of_the_function(
    row: str, dwell: float, rated: float | None
) -> None:
    """To the last figure but one."""
    listed = load_cycle(ROOT / "examples" / "cycles" / "adept.yaml", DELTA)
    stations = tuple(replace(place, dwell=dwell) for place in listed.stations)
    result = tl.plan_cycle(DELTA, replace(listed, stations=stations), tl.CycleOptions(rated=rated))
    assert result.status.value == "ok", result.advice
    cells = next(
        cells
        for cells in page_table("cycles.md", "| delta, 25-305-25").rows
        if cells[0].startswith(row)
    )
    time, picks, rms = (float(numbers(cell)[0]) for cell in cells[1:])
    assert 1e3 * result.time == pytest.approx(time, rel=2e-3)
    assert result.picks_per_minute == pytest.approx(picks, rel=3e-3)
    assert result.motors[0].rms == pytest.approx(rms, rel=5e-3)


def test_changes_of_forces_do_not_count_friction_of_joints_at_rest() -> None:
    """Lifted straight up, the telescopes of the machine stay as long as they are, but for rounding."""
    model = tl.Model(tl.load("gantry_tau_5dof"))
    here = model.platform.ports.at(model.assembly.q)[:3]
    path = polyline(here + np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 0.01], [0.02, 0.0, 0.01]]), 0.003)
    rows = PathRows(stroke(model, path, ("platform.x", "platform.y", "platform.z")), LIMITS)
    u = np.linspace(0.0, 1.0, 2001)
    (even,) = rows.even_quantities(u, 1.0)
    steps = np.abs(np.diff(even.rest, axis=0)).max(axis=0)
    assert steps.max() < 0.01 * np.ptp(even.rest, axis=0).max()
    (uneven,) = rows.quantities(u, 1.0)
    assert np.abs(np.diff(uneven.rest, axis=0)).max() > 10.0 * steps.max()
    smooth = tl.Model(model.mechanism.without_friction())
    (without,) = PathRows(
        stroke(smooth, path, ("platform.x", "platform.y", "platform.z")), LIMITS
    ).quantities(u, 1.0)
    assert even.rest == pytest.approx(without.rest, abs=1e-6 * np.abs(without.rest).max())
