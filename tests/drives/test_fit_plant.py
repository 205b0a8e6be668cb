"""Parameters of a drive line from a file of measured steps."""

from __future__ import annotations

from pathlib import Path

import pytest
from tabulated import assert_tabulated

import tauloop as tl
from tauloop.common.errors import InputError
from tauloop.compiler.c.calling.compiler import find_compiler
from tauloop.drives import (
    Axis,
    DriveLineFitOptions,
    FittedPlant,
    load_drive,
    load_steps,
    simulate_axis,
)

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="needs a C compiler")

#: Criteria are written with five digits, and are smooth to some 1e-6.
SAME = 1e-3
TRUTH = {"cart_viscous": 40.0, "preload": 9.0}
OPTIONS = DriveLineFitOptions(
    bounds={"cart_viscous": (10.0, 100.0), "preload": (5.0, 12.0)}, generations=0
)


def step(axis: Axis, name: str, size: str, gains: str, more: str = "") -> str:
    """A step of the true plant as an entry of the file."""
    values = {key: float(value) for key, value in (pair.split(": ") for pair in gains.split(", "))}
    samples = simulate_axis(axis, {**TRUTH, **values}, step=float(size.split()[0]) / 1e3)
    measured = (
        f"rise_time: {1e3 * samples.rise_time[0]:.5g} ms, energy: {samples.energy[0]:.5g} N^2 m^2 s"
    )
    return f"  {name}: {{step: {size}, set: {{{gains}}}, measured: {{{measured}}}{more}}}\n"


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    axis, path = (
        Axis(load_drive("dual_motor_axis")),
        tmp_path_factory.mktemp("steps") / "steps.yaml",
    )
    rows = (
        step(axis, "slow", "100 mm", "kp: 150, ti: 1.8"),
        step(axis, "fast", "100 mm", "kp: 250, ti: 1.2", ", tolerances: {rise_time: 1 ms}"),
        step(axis, "judge", "50 mm", "kp: 200, ti: 1.5", ", held_out: yes"),
    )
    path.write_text("format: tauloop-steps/1\nsteps:\n" + "".join(rows), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def fitted(steps: Path) -> FittedPlant:
    return tl.fit_drive_line(load_drive("dual_motor_axis"), steps, OPTIONS)


def test_the_true_plant_is_found_and_meets_what_was_held_out(fitted: FittedPlant) -> None:
    assert dict(fitted.fit.values) == pytest.approx(TRUTH, rel=SAME)
    assert fitted.status.value == "ok"
    assert fitted.findings == ()
    held_out = [row for row in fitted.fit.rows if row[4]]
    assert [row[:2] for row in held_out] == [("judge", "rise_time"), ("judge", "energy")]
    for _, _, measured, ours, _ in held_out:
        assert ours == pytest.approx(measured, rel=SAME)


def test_what_no_step_shows_is_a_finding(steps: Path) -> None:
    """Neither of the measured criteria knows the band."""
    options = DriveLineFitOptions(
        bounds={"band": (1e-4, 2e-4), "preload": (5.0, 12.0)},
        values={"cart_viscous": 40.0},
        generations=0,
    )
    fitted = tl.fit_drive_line(load_drive("dual_motor_axis"), steps, options)
    assert [finding.where for finding in fitted.findings] == ["+1.00 band"]


def test_steps_are_read_with_units_and_tolerances(steps: Path) -> None:
    slow, fast, judge = load_steps(steps, tolerance=0.02)
    assert (slow.step, judge.step) == (0.1, 0.05)
    assert slow.tolerances["rise_time"] == pytest.approx(0.02 * slow.measured["rise_time"])
    assert fast.tolerances["rise_time"] == 1e-3
    assert (slow.held_out, judge.held_out) == (False, True)


def test_all_that_is_wrong_is_said_at_once(steps: Path) -> None:
    with pytest.raises(InputError) as error:
        DriveLineFitOptions(
            bounds={"gap": (2.0, 1.0)}, values={"gap": 1.0}, population=2, value_tolerance=-1.0
        )
    assert {problem.where for problem in error.value.problems} == {
        "bounds",
        "values",
        "population",
        "value_tolerance",
    }
    with pytest.raises(InputError, match="no parameter 'cart_viscos'"):
        tl.fit_drive_line(
            load_drive("dual_motor_axis"),
            steps,
            DriveLineFitOptions(bounds={"cart_viscos": (1.0, 2.0)}),
        )


def test_measured_and_fitted_figures_are_a_table(fitted: FittedPlant) -> None:
    assert_tabulated(fitted, "measured", "fitted", "before")
    assert fitted.to_xarray()["value"].to_numpy().tolist() == list(fitted.fit.values.values())
