"""Every kind of bad input that issue 6 names, through the command: what is said, and what to do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from calibration_sessions import encoders, home, machine, measured, part_errors
from typer.testing import CliRunner

from tauloop import Model
from tauloop.calibration import Contact, Position, Series
from tauloop.cli.app import app

NAME, NOISE, POSES = "gantry_tau_3dof", 2e-5, 176
Spoil = Callable[[Series], Series]


@pytest.fixture(scope="module")
def session() -> Series:
    draw = np.random.default_rng(3)
    true = part_errors(NAME, ("track*.length",), 2e-4, draw)
    return measured(NAME, true, Position(name="t"), encoders(NAME, POSES, draw), NOISE)


def written(series: Series, path: Path) -> Path:
    header = [f"encoder.{a.name} [m]" for a in machine(NAME).actuators] + [f"measured.{c} [m]" for c in "xyz"]
    values = np.hstack([series.encoders, series.readings])
    np.savetxt(path, values, delimiter=",", header=",".join(header), comments="", fmt="%.12f")
    return path


def run(machine_name: str, path: Path, *arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["calibrate", machine_name, str(path), *arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, " ".join(result.output.split())


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
        ("-p", "track*.length,track*.offset_?"),
        "6 residuals of 2 poses cannot give 12 unknowns",
        "measure more poses, estimate fewer parameters, or give priors from tolerances",
    ),
    "collinear poses": (along_x, (), "all poses lie on one line", "spread the poses over the whole work volume"),
    "a pose out of reach": (
        lambda s: positions(s, off(40, 1, 2.0)),
        (),
        "pose 41 (line 42): out of reach of the nominal geometry",
        "check the units, signs and order of the encoder columns",
    ),
    "an encoder beyond its range": (
        lambda s: positions(s, off(40, 0, 3.0)),
        (),
        "beyond its range of -1500 to 1500 mm; 1 of 176 are like that",
        "check the encoders of this pose, their unit and zero",
    ),
    "one unit for another": (
        lambda s: readings(s, lambda y: 1e3 * y),
        (),
        "mm read as m?",
        "state the unit of the columns",
    ),
    "two units in one table": (
        lambda s: readings(s, some(slice(4, 9), 1e3)),
        (),
        "two units in one table?",
        "bring all rows to one unit",
    ),
    "encoders in another unit": (
        lambda s: positions(s, lambda p: 1e-3 * p),
        (),
        "when multiplied by 1000",
        "state the unit of the encoder columns",
    ),
    "a mirrored tracker frame": (
        lambda s: readings(s, lambda y: y * [1.0, -1.0, 1.0]),
        ("-p", "track*.length,tracker.frame.*"),
        "the readings are a mirror image",
        "turn the sign of one column, or swap two columns: the instrument's frame is left-handed",
    ),
    "swapped readings": (
        lambda s: readings(s, lambda y: y[:, [0, 2, 1]]),
        (),
        "columns look swapped",
        "map the columns in the order xzy",
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
        "tracker, pose 58 (line 59): 300 mm off with the nominal geometry",
        "measure this pose again or leave it out, or use a robust loss",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_command_names_it_and_says_what_to_do(session, tmp_path, case):
    spoil, arguments, message, remedy = CASES[case]
    words = arguments or ("-p", "track*.length")
    code, text = run(NAME, written(spoil(session), tmp_path / "t.csv"), "--noise", "0.02 mm", *words)
    assert code == 2
    assert message in text
    assert remedy in text


def test_a_smaller_outlier_among_176_is_named_after_the_fit(session, tmp_path):
    path = written(readings(session, off(57, 1, 30 * NOISE)), tmp_path / "t.csv")
    code, text = run(NAME, path, "--noise", "0.02 mm", "-p", "track*.length")
    assert code == 1
    assert "outlier: tracker, pose 58 (line 59): y off by -0.6" in text
    assert "measure these poses again or leave them out, or use a robust loss" in text


def test_a_plane_touched_on_one_line_and_swaps_that_cannot_be_seen(tmp_path):
    """The printer's bed: towers are alike, so no swap of its columns can be told from its contacts."""
    name = "linear_delta"
    names = [actuator.name for actuator in machine(name).actuators]
    start = encoders(name, 1, np.random.default_rng(0), 0.0)[0]
    draw = np.random.default_rng(1)
    spread = start + draw.uniform(-0.02, 0.02, (30, 3))
    model = Model(machine(name))
    side = np.column_stack([np.linspace(-0.05, 0.05, 20), np.zeros(20), np.full(20, 0.01)])
    line = model.actuator_position(model.platform.evaluate(side).q)
    for poses, code, message in (
        (line, 2, "the plane is touched on one line only"),
        (spread, None, "a swap of the encoders of tower1.motor and tower2.motor cannot be seen in these data"),
    ):
        path = tmp_path / "bed.csv"
        header = [f"encoder.{n} [m]" for n in names] + ["measured.gap [m]"]
        gaps = measured(name, {}, Contact(name="bed"), poses, 2e-5).readings
        np.savetxt(path, np.hstack([poses, gaps]), delimiter=",", header=",".join(header), comments="", fmt="%.12f")
        result, text = run(name, path, "--measure", "contact", "--noise", "0.02 mm", "-p", "tower*.end_stop")
        assert message in text
        if code is None:
            assert "check the wiring by hand" in text
        else:
            assert (result, "touch the plane in two directions" in text) == (code, True)
