"""Least energy and least wear: closed solutions of a table on a rail, figures by hand, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from machine_texts import shipped_text
from scipy.optimize import root

import tauloop as tl

TABLE = """
format: tauloop-machine/1
name: table
provenance: {status: chosen, source: a test}
gravity: [0, 0, -9.81 m/s^2]
bodies:
  table: {mass: 2 kg}
joints:
  rail: {type: prismatic, axis: x, parent: {on: base}, child: table}
actuators:
  motor: {on: rail, force: 20 N, copper_loss: 0.3 W/N^2}
platform: {body: table, motion: translational, independent: [x]}
"""
MASS, FORCE, COPPER, WAY = 2.0, 20.0, 0.3, 0.1
MODEL = tl.Model(tl.loads(TABLE))
#: What a cubic spline of 40 intervals costs beside the optimum, whose force has no bound on its
#: slope.
SPLINE = 0.02
RACK = Path(__file__).parents[2] / "examples" / "gantry_tau_racks" / "rack.yaml"


def planned(
    goal: str, longest: float, machine: object = MODEL, **more: object
) -> tl.simulation.Transfer:
    ends = {"start": {"x": 0.0}, "end": {"x": WAY}}
    options = {
        "optimize": goal,
        "max_duration": longest,
        "reserve": 0.0,
        "intervals": 40,
        **more,
    }
    return tl.plan_transfer(machine, tl.TransferOptions(**ends, **options))  # type: ignore[arg-type]


def least_wear(exponent: float, duration: float) -> float:
    """The optimum's first integral: |u/U|^p = min(1, l (1/v - 1/V)) with force u and largest speed V."""
    middle = (np.arange(20_000) + 0.5) / 20_000

    def half(l: float, top: float) -> tuple[float, float, float]:
        v, dv = (
            top * np.sin(np.pi / 2 * middle),
            top * np.pi / 2 * np.cos(np.pi / 2 * middle) / len(middle),
        )
        share = np.minimum(1.0, (l * (1.0 / v - 1.0 / top)) ** (1.0 / exponent))
        dt = dv * MASS / FORCE / share
        return float(dt.sum()), float((dt * v).sum()), float((share**exponent * v * dt).sum())

    def misses(z: np.ndarray) -> np.ndarray:
        time, way, _ = half(*np.exp(z))
        return np.array([2 * time / duration, 2 * way / WAY]) - 1.0

    top = 1.5 * WAY / duration
    solution = root(misses, np.log([top * (4 * WAY / duration**2 * MASS / FORCE) ** exponent, top]))
    assert solution.success
    return 2.0 * half(*np.exp(solution.x))[2]


@pytest.mark.parametrize(("exponent", "duration"), [(3.0, 0.4), (10 / 3, 0.3), (1.5, 0.4)])
def test_least_wear_is_that_of_the_optimums_first_integral(
    exponent: float, duration: float
) -> None:
    result = planned("wear", duration, exponent=exponent)
    best = least_wear(exponent, duration)
    assert best < result.wear < best * (1.0 + SPLINE)
    assert result.duration == pytest.approx(duration, rel=1e-4)


def test_least_energy_is_that_of_a_cubic() -> None:
    result = planned("energy", 0.4)
    assert result.energy == pytest.approx(12.0 * COPPER * MASS**2 * WAY**2 / 0.4**3, rel=1e-3)
    assert planned("energy", 0.4, copper_loss=0.6).energy == pytest.approx(
        2.0 * result.energy, rel=1e-3
    )


def test_energy_leaves_out_what_a_spring_gives_back() -> None:
    elements = "child: table, spring: {stiffness: 60 N/m, rest: 0 m}, "
    elements += "friction: {viscous: 3 N s/m, coulomb: 1 N, offset: -0.5 N}}"
    result = planned(
        "time", 0.4, tl.loads(TABLE.replace("child: table}", elements)), copper_loss=1e-3
    )
    time = np.linspace(0.0, result.duration, 8001)
    motion = result.trajectory.at(time)
    x, v, a = motion.position[:, 0], motion.velocity[:, 0], motion.acceleration[:, 0]
    friction = 3.0 * v + np.sign(v)
    force = MASS * a + friction - 0.5 + 60.0 * x
    assert result.energy == pytest.approx(
        np.trapezoid(1e-3 * force**2 + friction * v, time), rel=1e-2
    )


def test_energy_counts_inertias_and_friction_of_a_drive_line() -> None:
    """Two motors and pinions by hand, and the optimum: v = A (1 - cosh(k (t - T/2)) / cosh(k T / 2))."""
    mechanism = tl.loads(TABLE.replace("force: 20 N", f"force: 2 kN, drive: {{file: {RACK}}}"))
    result = planned("energy", 0.4, mechanism, copper_loss=0.002)
    mass, viscous, coulomb = (
        MASS + 2 * (4e-4 * 100**2 + 2e-3 * 20**2),
        2 * 2e-3 * 100**2,
        2 * 0.02 * 100,
    )
    time = np.linspace(0.0, result.duration, 4001)
    motion = result.trajectory.at(time)
    v, a = motion.velocity[:, 0], motion.acceleration[:, 0]
    force = mass * a + viscous * v + coulomb
    spent = np.trapezoid(0.002 * force**2 + (viscous * v + coulomb) * v, time)
    assert result.energy == pytest.approx(spent, rel=5e-3)
    k = np.sqrt((0.002 * viscous**2 + viscous) / 0.002) / mass
    shape = 1.0 - np.cosh(k * (time - 0.2)) / np.cosh(k * 0.2)
    best = shape * WAY / np.trapezoid(shape, time)
    assert np.abs(v - best).max() < 0.02 * best.max()


@pytest.mark.nightly
def test_wear_of_a_machine_is_what_forces_and_speeds_say() -> None:
    model = tl.Model(tl.load("delta"))
    ends = {
        "start": {"x": -0.1},
        "end": {"x": 0.1},
        "max_duration": 0.1,
        "copper_loss": 0.02,
        "reserve": 0.0,
    }
    worn = {}
    for goal in ("wear", "energy"):
        result = tl.plan_transfer(model, tl.TransferOptions(optimize=goal, **ends))  # type: ignore[arg-type]
        time = np.linspace(0.0, result.duration, 4001)
        speed = np.asarray(result.trajectory.states(time).v) @ model.assembly.loops.transmission.T
        share = np.abs(result.trajectory.forces(time)) / np.array(
            [a.force for a in model.mechanism.actuators]
        )
        worn[goal] = np.trapezoid((share**3 * np.abs(speed)).sum(axis=1), time)
        assert result.wear == pytest.approx(worn[goal], rel=1e-2)
    assert worn["wear"] < 0.9 * worn["energy"]


def five_bar(old: str, new: str) -> tl.Model:
    return tl.Model(tl.loads(shipped_text("five_bar", (old, new))))


def test_more_motors_than_freedoms_share_their_forces_within_limits() -> None:
    third = "actuators:\n  motor_3: {on: elbow_1, inertia: rotor_inertia, force: 3 N m}\n"
    model = five_bar("actuators:\n", third)
    stroke = tl.StrokeOptions(end={"x": 0.05})
    results = (
        tl.plan_path(model, tl.PathOptions(stroke=stroke, intervals=100)),
        tl.plan_transfer(model, tl.TransferOptions(end={"x": 0.05}, intervals=12)),
    )
    for result in results:
        time = np.linspace(0.0, result.duration, 1001)
        share = np.abs(result.trajectory.forces(time)) / np.array(
            [a.force for a in model.mechanism.actuators]
        )
        assert 0.9 * (1.0 - 5e-3) < share.max() < 0.9 * (1.0 + 1e-3)
        assert result.status.value == "ok"
        assert all(run.peak_share < 1.0 and not run.end for run in result.tried)
        assert len(result.tried) == 1
    assert results[1].duration < 1.01 * results[0].duration


def test_passive_freedoms_are_named() -> None:
    model = five_bar("  motor_2: {on: shoulder_2, inertia: rotor_inertia, force: 8 N m}\n", "")
    with pytest.raises(
        tl.AssemblyError, match=r"no actuator moves 1 of the 2 degrees of freedom.*passive: elbow_2"
    ):
        tl.plan_path(model, tl.PathOptions(stroke=tl.StrokeOptions(end={"x": 0.05})))
    with pytest.raises(
        tl.AssemblyError, match=r"no actuator moves 1 of the 2 degrees of freedom.*passive: elbow_2"
    ):
        tl.plan_transfer(model, tl.TransferOptions(end={"x": 0.05}))


def test_goals_that_a_file_does_not_say_enough_for_are_refused() -> None:
    endless = tl.loads(TABLE.replace("force: 20 N, ", ""))
    with pytest.raises(
        tl.InputError, match=r"wear needs the largest forces, which are missing for motor"
    ):
        planned("wear", 0.4, endless, tool_acceleration=10.0)
    with pytest.raises(
        tl.InputError,
        match=r"copper_loss: the energy needs the winding losses of the motors, .* motor",
    ):
        planned("energy", 0.4, tl.loads(TABLE.replace(", copper_loss: 0.3 W/N^2", "")))
    with pytest.raises(tl.DescriptionError, match=r"copper_loss.*a winding loss per squared force"):
        tl.loads(TABLE.replace("0.3 W/N^2", "0.3 N"))


def test_a_motors_heat_is_written_as_it_is_read() -> None:
    text = tl.dumps(MODEL.mechanism)
    assert "copper_loss: 0.3 W/N^2" in text
    assert tl.loads(text).actuators[0].copper_loss == COPPER
