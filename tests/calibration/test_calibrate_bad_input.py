"""Every kind of bad measurements that issue 6 names: what is said, and what to do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from calibration_sessions import encoders, home, machine, measured, part_errors, written

import tauloop as tl
from tauloop import Model
from tauloop.calibration import (
    Calibration,
    CalibrationOptions,
    Contact,
    Position,
    Series,
    calibrate,
)
from tauloop.common.errors import InputError, TauloopError
from tauloop.common.result import Status

NAME, NOISE, POSES = "gantry_tau_3dof", 2e-5, 176
Spoil = Callable[[Series], Series]


@pytest.fixture(scope="module")
def session() -> Series:
    draw = np.random.default_rng(3)
    true = part_errors(NAME, ("track*.length",), 2e-4, draw)
    return measured(NAME, true, Position(name="t"), encoders(NAME, POSES, draw), NOISE)


def calibrated(series: Series, path: Path, *parameters: str) -> Calibration:
    options = CalibrationOptions(noise="0.02 mm", parameters=parameters or ("track*.length",))
    return calibrate(machine(NAME), written(series, path / "t.csv"), options)


def readings(series: Series, change: Callable[[np.ndarray], np.ndarray]) -> Series:
    return replace(series, readings=change(series.readings.copy()))


def positions(series: Series, change: Callable[[np.ndarray], np.ndarray]) -> Series:
    return replace(series, encoders=change(series.encoders.copy()))


def some(rows: slice, factor: float) -> Callable[[np.ndarray], np.ndarray]:
    def change(values: np.ndarray) -> np.ndarray:
        values[rows] *= factor
        return values

    return change


def off(row: int, column: int, by: float) -> Callable[[np.ndarray], np.ndarray]:
    def change(values: np.ndarray) -> np.ndarray:
        values[row, column] += by
        return values

    return change


def along_x(series: Series) -> Series:
    """All carts together."""
    carts = home(NAME) + np.linspace(-0.1, 0.1, 20)[:, None]
    return measured(NAME, {}, Position(name="t"), carts, NOISE)


CASES: dict[str, tuple[Spoil, tuple[str, ...], str, str]] = {
    "fewer data than parameters": (
        lambda s: s.take(np.arange(2)),
        ("track*.length", "track*.offset_?"),
        "6 residuals of 2 poses cannot determine 12 unknowns",
        "measure more poses, estimate fewer parameters, or give priors from tolerances",
    ),
    "collinear poses": (
        along_x,
        (),
        "all poses lie on one line",
        "spread the poses over the whole workspace",
    ),
    "a pose out of reach": (
        lambda s: positions(s, off(40, 1, 2.0)),
        (),
        "pose 41 (line 42): out of reach of the nominal geometry",
        "check the units, signs and order of the encoder columns",
    ),
    "an encoder beyond its range": (
        lambda s: positions(s, off(40, 0, 3.0)),
        (),
        "beyond its range of -1500 to 1500 mm; 1 of 176 poses are beyond a range",
        "check the encoders of this pose, their unit and zero",
    ),
    "one unit for another": (
        lambda s: readings(s, lambda y: 1e3 * y),
        (),
        "mm read as m?",
        "give the unit of the columns",
    ),
    "two units in one table": (
        lambda s: readings(s, some(slice(4, 9), 1e3)),
        (),
        "two units in one table?",
        "convert all rows to the same unit",
    ),
    "encoders in another unit": (
        lambda s: positions(s, lambda p: 1e-3 * p),
        (),
        "when multiplied by 1000",
        "give the unit of the encoder columns",
    ),
    "copied rows": (
        lambda s: s.take(np.repeat(np.arange(40), 2)),
        (),
        "tracker: 40 rows of 80 are exact copies of others, such as of pose ",
        "remove the copies",
    ),
    "a mirrored tracker frame": (
        lambda s: readings(s, lambda y: y * [1.0, -1.0, 1.0]),
        ("track*.length", "tracker.frame.*"),
        "the readings are mirrored",
        "the instrument's frame is left-handed: invert the sign of one column, or swap two columns",
    ),
    "swapped readings": (
        lambda s: readings(s, lambda y: y[:, [0, 2, 1]]),
        (),
        "columns look swapped",
        "assign the columns in the order xzy",
    ),
    "swapped encoders": (
        lambda s: positions(s, lambda p: p[:, [0, 2, 1]]),
        (),
        "track2.motor and track3.motor look swapped",
        "swap the two columns",
    ),
    "a gross outlier among 176": (
        lambda s: readings(s, off(57, 1, 0.3)),
        (),
        "tracker, pose 58 (line 59): error of 300 mm with the nominal geometry",
        "measure this pose again, remove it, or use a robust loss",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_it_is_named_with_what_to_do(session, tmp_path, case):
    spoil, parameters, message, remedy = CASES[case]
    with pytest.raises(TauloopError) as refused:
        calibrated(spoil(session), tmp_path, *parameters)
    assert any(
        message in f"{p.where}: {p.what}" and remedy in p.remedy for p in refused.value.problems
    )


def test_a_smaller_outlier_among_176_is_named_after_the_fit(session, tmp_path):
    result = calibrated(readings(session, off(57, 1, 30 * NOISE)), tmp_path)
    assert result.status is Status.DOUBTFUL
    (outlier,) = result.outliers
    assert (outlier.label, outlier.quantity) == ("tracker, pose 58 (line 59)", "y")
    assert outlier.error == pytest.approx(-30 * NOISE, rel=0.2)
    assert any(
        "measure these poses again, remove them, or use a robust loss" in line
        for line in result.advice
    )


def test_a_plane_touched_on_one_line_and_swaps_that_cannot_be_seen(tmp_path):
    """The printer's bed: towers are alike, so no swap of its columns can be told from its contacts."""
    name = "linear_delta"
    start = encoders(name, 1, np.random.default_rng(0), 0.0)[0]
    spread = start + np.random.default_rng(1).uniform(-0.02, 0.02, (30, 3))
    model = Model(machine(name))
    side = np.column_stack([np.linspace(-0.05, 0.05, 20), np.zeros(20), np.full(20, 0.01)])
    line = model.actuator_position(model.platform.evaluate(side).q)
    options = CalibrationOptions(
        measure="contact", noise="0.02 mm", parameters=("tower*.end_stop",)
    )

    def touched(poses: np.ndarray) -> Path:
        return written(
            measured(name, {}, Contact(name="bed"), poses, NOISE), tmp_path / "bed.csv", name
        )

    with pytest.raises(TauloopError) as refused:
        calibrate(machine(name), touched(line), options)
    (problem,) = [
        p for p in refused.value.problems if "the plane is touched only along one line" in p.what
    ]
    assert "touch the plane in two directions" in problem.remedy
    exchanges = calibrate(machine(name), touched(spread), options).exchanges
    assert exchanges is not None
    assert ("tower1.motor", "tower2.motor") in exchanges.pairs


def test_a_table_in_memory_is_read_as_its_csv_file(tmp_path) -> None:
    rng = np.random.default_rng(1)
    motors = rng.uniform([1.6, 1.2], [1.9, 1.5], (12, 2))
    state = tl.Model("five_bar").forward_kinematics(motors)
    columns = {f"encoder.motor_{k + 1} [deg]": np.rad2deg(motors[:, k]) for k in range(2)}
    columns |= {f"measured.{c} [mm]": 1e3 * state.coordinate(f"platform.{c}") for c in "xy"}
    frame = pd.DataFrame(columns)
    frame.to_csv(tmp_path / "poses.csv", index=False)
    options = tl.CalibrationOptions(parameters=("crank_length",), noise="0.01 mm")
    by_frame, by_file = (
        tl.calibrate("five_bar", source, options) for source in (frame, tmp_path / "poses.csv")
    )
    assert by_frame.to_pandas()["correction"].tolist() == pytest.approx(
        by_file.to_pandas()["correction"].tolist(), abs=1e-12
    )
    with pytest.raises(InputError, match=r"of type float"):
        tl.calibrate("five_bar", pd.Series([1.0]), options)
