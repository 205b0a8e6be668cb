"""Key numbers of results: duration, peaks with their place and time, errors, and what passed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tauloop as tl
from tauloop.display import page_record
from tauloop.display.key_numbers import key_numbers
from tauloop.display.pieces import MotionScene, Plot, Table
from tauloop.logs import Sensors, measure, write_log
from tauloop.motion import random_multisine


def rows(result: object) -> dict[str, tuple[str, str]]:
    numbers = key_numbers(result)
    assert numbers is not None
    return {name: (value, remark) for name, value, remark in numbers.rows}


def test_a_simulation_has_its_duration_and_its_peaks_with_place_and_time() -> None:
    run = tl.simulate("five_bar", duration=0.1)
    shown = rows(run)
    assert shown["duration"] == ("0.1 s", "")
    table = {item.name: item for item in run.variables()}
    names = [name for name, item in table.items() if item.quantity == "velocity"]
    linear = [name for name in names if table[name].unit == "m/s"]
    values = np.abs([table[name].array() for name in linear])
    name, sample = np.unravel_index(values.argmax(), values.shape)
    value, remark = shown["peak velocity"]
    assert value == f"{values.max():.4g} m/s"
    assert remark == f"{linear[name].partition('.')[2]} at {run.time[sample]:.3g} s"
    limited = [item for item in run.diagnostics if item.limits]
    assert shown["diagnostics within limits"][0] == f"{len(limited)} of {len(limited)}"


def test_peaks_of_a_planned_motion_are_those_of_its_table() -> None:
    planned = tl.plan_stroke("delta", end={"x": 0.1, "z": -0.45})
    shown = rows(planned)
    largest = max(planned.forces, key=lambda peak: abs(peak.force))
    value, remark = shown["peak torque of a motor"]
    assert value == f"{abs(largest.force):.4g} N m"
    assert remark.startswith(largest.actuator)
    assert f"limit {largest.limit:.4g} N m" in remark
    assert shown["peak speed"][0] == f"{planned.peak_speed:.4g} m/s"


def test_a_result_without_time_shows_its_diagnostics() -> None:
    area = tl.workspace("five_bar", resolution=0.06)
    shown = rows(area)
    for item in area.diagnostics:
        assert shown[item.name][0] == f"{item.value:.3g} {item.unit}".strip()


def test_a_page_begins_with_numbers_and_its_own_plots_and_folds_the_diagnostics() -> None:
    shown = page_record(tl.simulate("five_bar", duration=0.02))
    kinds = [type(piece).__name__ for piece in shown.pieces]
    assert kinds[0] == "KeyNumbers"
    assert isinstance(shown.pieces[1], MotionScene)
    titles = [piece.title for piece in shown.pieces if isinstance(piece, Plot)]
    assert titles[-1] == "Conditioning along the motion"
    assert isinstance(shown.made[0], Table)
    assert shown.made[0].title == "Diagnostics"
    assert "Diagnostics" not in [p.title for p in shown.pieces if isinstance(p, Table)]


@pytest.mark.parametrize("count", [2, 4])
def test_damaged_key_numbers_are_refused(count: int) -> None:
    from tauloop.common.errors import Problems
    from tauloop.display.record_reading import pieces_of

    problems = Problems()
    pieces_of([{"piece": "keynumbers", "rows": [["a"] * count]}], "pieces", problems)
    assert "not name, value and remark" in str(problems[0])


def test_motor_sizing_begins_with_loads_and_the_lightest_motor() -> None:
    stroke = tl.plan_stroke("delta", start={"x": -0.1}, end={"x": 0.1}, duration="0.3 s")
    table = stroke.trajectory.sample(500.0)
    states = (table.position, table.velocity, table.acceleration)
    motion = tl.inverse_dynamics("delta", *states, time=table.time)
    sizing = tl.size_motors("delta", motion, catalogue="examples/motors.yaml")
    shown = rows(sizing)
    largest = max(sizing.loads, key=lambda load: load.peak_force)
    assert shown["peak torque of a motor"] == (f"{largest.peak_force:.4g} N m", largest.name)
    best = sizing.for_all(is_rotary=True)[0]
    assert shown["lightest motor and gear"][0] == f"{best.motor}, {best.gear}"
    with pytest.warns(DeprecationWarning, match=r"for_all\(turns=...\) is .*: use is_rotary="):
        assert sizing.for_all(turns=True)[0].motor == best.motor  # type: ignore[call-arg]
    fastest = max(load.peak_speed for load in sizing.loads) * 30 / np.pi
    assert shown["peak speed of a motor"][0] == f"{fastest:.4g} rpm"


def test_an_identification_begins_with_its_errors(tmp_path: Path) -> None:
    model = tl.Model("five_bar")
    rng = np.random.default_rng(1)
    sines = random_multisine(
        model.actuator_position(model.assembly.q),
        np.full(2, 0.4),
        rng,
        terms=3,
        lowest=0.2,
        highest=2.0,
    )
    motion = sines.sample(np.arange(0.0, 4.0, 0.005))
    states = (motion.position, motion.velocity, motion.acceleration)
    force = model.actuators.inverse_dynamics(*states).force
    sensors = Sensors(resolution=np.full(2, 1e-5), force_noise=np.full(2, 0.02))
    units = ("rad",) * 2, ("N m",) * 2
    names = ("motor_1", "motor_2")
    log = measure(motion.time, motion.position, force, names, *units, sensors, rng)
    write_log(tmp_path / "log.csv", log)
    options = {"unknowns": "file", "cutoff": 20.0, "order": 4, "standstill": 1e-6}
    result = tl.identify("five_bar", tmp_path / "log.csv", trim=40, decimation=5, **options)
    shown = rows(result)
    fit = result.identification
    worst = max(fit.held_out, key=lambda output: output.rmse_percent)
    value, remark = shown["held-out error"]
    assert value == f"{worst.rmse:.3g} N m"
    assert worst.output in remark
    assert shown["base parameters"][0] == str(fit.base.rank)
