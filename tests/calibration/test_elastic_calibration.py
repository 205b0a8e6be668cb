"""Calibration under loads and temperatures: derivatives, gauges, and refusals by name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tauloop as tl
from tauloop.calibration import Position, Series
from tauloop.calibration.fitting import fit_geometry
from tauloop.calibration.judging.identifiability import identifiability
from tauloop.calibration.measurements.reading import read_measurements
from tauloop.calibration.problem.problem import CalibrationProblem, calibration_problem
from tauloop.common.errors import InputError, LogError
from tests.calibration.loaded_gantry import (
    NOISE,
    RODS,
    cart_positions,
    encoders_at,
    forces,
    loaded_series,
    measured,
    plant_of,
    single_parts_text,
)

ELASTIC = ("*.c", "*.give")
LENGTHS = ("triple*.length", "pair*.length", "single*.length")
#: Central differences of the residuals with steps of 1e-4 tolerances, relative to a whole column.
DIFFERENCE_TOLERANCE = 1e-6
#: Change of a deflection with a length, which derivatives leave out, relative to the column.
MIXED_TOLERANCE = 5e-3
#: Linear elasticity on both sides, so that only rounding differs, m.
ROUNDING = 1e-12


@pytest.fixture(scope="module")
def machine() -> tl.Mechanism:
    return tl.loads(single_parts_text())


def series_of(
    machine: tl.Mechanism, *, poses: int = 6, loads: bool = True, heat: bool = False
) -> Series:
    """Return readings of the nominal machine at some poses, under forces along x, y and z."""
    rng = np.random.default_rng(3)
    encoders = np.repeat(encoders_at(tl.Model(machine), poses, rng), 3, axis=0)
    rises = rng.uniform(-3.0, 3.0, (3 * poses, 6)) if heat else None
    wrenches = forces(poses) if loads else None
    readings = measured(machine, plant_of(machine), encoders, loads=wrenches, rises=rises)
    return Series(
        instrument=Position(name="tracker"),
        encoders=encoders,
        readings=readings,
        noise=NOISE,
        loads=wrenches,
        thermometers=RODS if heat else (),
        temperatures=rises,
        temperature_noise=0.1,
    )


def problem_of(machine: tl.Mechanism, series: Series, *names: str) -> CalibrationProblem:
    return calibration_problem(machine, [series], names)


def test_predictions_under_loads_and_weight_are_those_of_an_independent_frame(
    machine: tl.Mechanism,
) -> None:
    problem = problem_of(machine, series_of(machine), "triple1.c")
    (state,) = problem.evaluate(np.zeros(1)).states
    assert np.abs(state.errors).max() < ROUNDING
    assert np.abs(state.twist[:, :3]).max() > 20e-6


def test_without_a_load_the_weight_alone_deflects(machine: tl.Mechanism) -> None:
    series = series_of(machine)
    idle = replace(series, loads=np.zeros_like(series.loads))
    (state,) = problem_of(machine, idle, "triple1.c").evaluate(np.zeros(1)).states
    plant, carts = plant_of(machine), cart_positions(machine, idle.encoders)
    for twist, cart in zip(state.twist, carts, strict=True):
        heavy, light = (
            plant.tool(cart, np.zeros(6), np.zeros(6), is_heavy=is_heavy)
            for is_heavy in (True, False)
        )
        assert heavy[2] < light[2]
        assert np.abs(twist[:3] - (heavy - light)).max() < ROUNDING


def test_derivatives_are_those_of_the_residuals(machine: tl.Mechanism) -> None:
    """One unknown of each kind: every difference builds two structures."""
    series = series_of(machine, poses=3, heat=True)
    names = (*ELASTIC, *LENGTHS, "*.alpha", "thermometer.*", "m_p")
    problem = problem_of(machine, series, *names)
    x = 0.3 * problem.tolerances * np.random.default_rng(1).standard_normal(len(problem.free))
    at = problem.evaluate(x)
    J = problem.jacobian(at)
    kinds = {name.rpartition(".")[2]: i for i, name in enumerate(problem.names)}
    assert kinds.keys() == {"c", "give", "length", "alpha", "offset", "m_p"}
    for i in kinds.values():
        name = problem.names[i]
        step = np.zeros(len(x))
        step[i] = 1e-4 * problem.tolerances[i]
        both = (problem.evaluate(x + sign * step, at).residual for sign in (1.0, -1.0))
        difference = np.subtract(*both) / (2.0 * step[i])
        error = np.abs(difference - J[:, i]).max() / np.abs(difference).max()
        limit = MIXED_TOLERANCE if name.endswith("length") else DIFFERENCE_TOLERANCE
        assert error < (1e-4 if name == "m_p" else limit), name


def test_offsets_of_thermometers_are_gauges_with_the_lengths(machine: tl.Mechanism) -> None:
    series = series_of(machine, loads=False, heat=True)
    problem = problem_of(machine, series, *LENGTHS, "*.alpha", "thermometer.*")
    result = identifiability(problem, np.random.default_rng(0))
    names = {gauge.name for gauge in result.gauge}
    assert names == {
        f"thermometer.{rod}.offset cannot be distinguished from {rod}.length" for rod in RODS
    }
    left_out = {item.name for item in result.left_out}
    assert left_out == {f"thermometer.{rod}.offset" for rod in RODS}


def test_offsets_can_be_seen_where_lengths_are_known(machine: tl.Mechanism) -> None:
    series = series_of(machine, loads=False, heat=True)
    problem = problem_of(machine, series, "thermometer.*")
    assert not identifiability(problem, np.random.default_rng(0)).gauge


def refusal(machine: tl.Mechanism | str, series: Series, *names: str) -> str:
    with pytest.raises(InputError) as caught:
        calibration_problem(
            tl.load(machine) if isinstance(machine, str) else machine, [series], names
        )
    return str(caught.value)


def test_loads_on_a_rigid_machine_are_refused(machine: tl.Mechanism) -> None:
    series = series_of(machine)
    text = refusal("gantry_tau_6link", series, "triple1.length")
    assert "load columns" in text
    assert "is rigid" in text


def test_temperatures_of_unknown_and_rigid_parts_are_refused(machine: tl.Mechanism) -> None:
    series = series_of(machine, heat=True)
    text = refusal(
        machine, replace(series, thermometers=("tripel1", "plate", *RODS[2:])), "triple1.c"
    )
    assert "temperature.tripel1: is not a part that can expand" in text
    assert "triple1.link" in text
    assert "temperature.plate: plate has no coefficient of thermal expansion" in text


def test_compliances_without_loads_are_refused(machine: tl.Mechanism) -> None:
    series = series_of(machine, loads=False)
    text = refusal(machine, series, "triple1.c", "track1.give", "single1.alpha")
    assert "triple1.c: is a stiffness or compliance, but no series has load columns" in text
    assert "not identifiable" in text
    assert "track1.give" in text
    assert "single1.alpha: is the thermal expansion of single1.link" in text


def test_series_check_shapes_of_loads_and_temperatures(machine: tl.Mechanism) -> None:
    series = series_of(machine, heat=True)
    with pytest.raises(InputError, match=r"tracker\.loads: have shape \(18, 3\)"):
        replace(series, loads=series.loads[:, :3])
    with pytest.raises(InputError, match="are missing for triple1"):
        replace(series, temperatures=None)
    with pytest.raises(InputError, match="temperature_noise: is -1"):
        replace(series, temperature_noise=-1.0)


def test_calibrated_stiffnesses_are_in_the_machine_file(machine: tl.Mechanism) -> None:
    plant = plant_of(machine, compliances=np.full(9, 0.2))
    rng = np.random.default_rng(2)
    encoders = np.repeat(encoders_at(tl.Model(machine), 6, rng), 3, axis=0)
    series = loaded_series(machine, plant, encoders, forces(6))
    problem = problem_of(machine, series, "rods=*.c", "drives=*.give")
    result = fit_geometry(problem, np.random.default_rng(0))
    assert result.mechanism.parameters["pair2.c"].value == pytest.approx(1.2 * 0.04e-6, rel=1e-5)
    assert result.mechanism.parameters["track2.give"].status == "calibrated"
    softer = tl.stiffness(result.mechanism).compliance / tl.stiffness(machine).compliance
    assert softer[0, 2, 2] == pytest.approx(1.2, rel=1e-5)
    assert len(result.base_combinations) == 2


HEADERS = ("load.fx [N]", "load.fz [kN]", "temperature.triple1 [K]")


def table_of(path: Path, series: Series, headers: tuple[str, ...] = HEADERS) -> Path:
    """Write a table of measurements with given headers of fx, fz and the first temperature."""
    assert series.loads is not None
    assert series.temperatures is not None
    motors = [f"encoder.track{k}.motor [m]" for k in (1, 2, 3)]
    measured_columns = [f"measured.{axis} [m]" for axis in "xyz"]
    rows = [",".join([*motors, *measured_columns, *headers])]
    for i in range(len(series)):
        state = (series.loads[i, 0], 1e-3 * series.loads[i, 2], series.temperatures[i, 0])
        numbers = (*series.encoders[i], *series.readings[i], *state)
        rows.append(",".join(f"{number:.12g}" for number in numbers))
    path.write_text("\n".join(rows) + "\n")
    return path


def test_tables_have_columns_of_loads_and_temperatures(
    machine: tl.Mechanism, tmp_path: Path
) -> None:
    series = series_of(machine, heat=True)
    path = table_of(tmp_path / "loaded.csv", series)
    (read,) = read_measurements(path, machine, noise="20 um", temperature_noise="0.1 K").series
    assert read.loads == pytest.approx(series.loads * [1, 0, 1, 0, 0, 0])
    assert read.thermometers == ("triple1",)
    assert read.temperatures[:, 0] == pytest.approx(series.temperatures[:, 0])
    assert read.temperature_noise == pytest.approx(0.1)
    described = tmp_path / "loaded.yaml"
    described.write_text(
        "format: tauloop-measurements/1\nseries:\n  - path: loaded.csv\n    kind: position\n"
        "    noise: 20 um\n    loads: {fy: load.fz}\n    temperatures: {single1: temperature.triple1}\n"
        "    temperature_noise: 0.2 K\ntolerances: {elastic: 0.5, temperature: 2 K}\n"
        "bounds: {triple1.c: 0.01 um/N to 0.2 um/N}\n"
    )
    stated = read_measurements(described, machine)
    (other,) = stated.series
    assert other.loads[:, 1] == pytest.approx(series.loads[:, 2])
    assert other.thermometers == ("single1",)
    assert stated.tolerances.elastic == pytest.approx(0.5)
    assert stated.bounds["triple1.c"].upper == pytest.approx(2e-7)


@pytest.mark.parametrize(
    ("headers", "text"),
    [
        (("load.fx [N]", "load.f_z [kN]", "temperature.triple1 [K]"), "load.f_z"),
        (("load.fx [N m]", "load.fz [kN]", "temperature.triple1 [K]"), "force at the tool"),
        (
            ("load.fx [N]", "load.fz [kN]", "temperature.triple1 [degC]"),
            "above the reference are differences",
        ),
        (("load.fx [N]", "load.fz", "temperature.triple1 [K]"), "has no unit"),
    ],
)
def test_wrong_columns_of_loads_and_temperatures_are_refused(
    machine: tl.Mechanism, tmp_path: Path, headers: tuple[str, ...], text: str
) -> None:
    path = table_of(tmp_path / "wrong.csv", series_of(machine, heat=True), headers)
    with pytest.raises(LogError) as caught:
        read_measurements(path, machine, noise=NOISE)
    assert text in str(caught.value)
