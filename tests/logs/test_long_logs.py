"""Logs that are longer than what is followed at a time. Oracles: the whole motion at once; SciPy's decimation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.signal
from extras import extra

from tauloop import Model, load
from tauloop.common.errors import PoseError
from tauloop.compiler.c import Compiled
from tauloop.identification.regression.from_log import FOLLOWED_AT_ONCE, regression_data
from tauloop.logs import LogFile, Preparation, Signals, prepared_signals, read_signals
from tauloop.logs.files.reading_process import ROWS_AT_ONCE
from tauloop.logs.log import Channel, samples

MOTORS = ("motor_1", "motor_2")
COUNT = FOLLOWED_AT_ONCE + 12_345
FACTOR = 500


@pytest.fixture(scope="module")
def model() -> Model:
    return Model(load("five_bar"))


def long_log(model: Model) -> Signals:
    time = np.arange(COUNT) / 1000.0
    center = model.actuator_position(model.assembly.q)
    phases = 2.0 * np.pi * np.outer(time, (0.31, 0.47))
    positions = center + 0.3 * np.sin(phases)
    channels = [
        Channel(quantity="position", channel=n, values=p, unit="rad")
        for n, p in zip(MOTORS, positions.T, strict=True)
    ]
    channels += [
        Channel(quantity="force", channel=n, values=np.cos(p), unit="N m")
        for n, p in zip(MOTORS, phases.T, strict=True)
    ]
    return Signals(time=time, channels=tuple(channels))


def test_a_log_followed_part_by_part_has_the_regressor_of_the_whole(model: Model) -> None:
    log, preparation = long_log(model), Preparation(cutoff=20.0, decimation=FACTOR)
    result = regression_data(model, log, preparation)
    prepared = prepared_signals(log, preparation)
    motion = [samples(prepared, kind, MOTORS) for kind in ("position", "velocity", "acceleration")]
    whole = model.actuators.regressor(*motion, start=model.actuators.track(motion[0]).q)
    by_scipy = scipy.signal.decimate(whole, FACTOR, ftype="fir", axis=0, zero_phase=True)
    assert result.regressor == pytest.approx(by_scipy, abs=1e-9 * np.abs(whole).max())


def test_a_pose_out_of_reach_behind_the_first_part_is_counted_from_the_beginning() -> None:
    machine, bad = (
        Model(load("linear_delta"), evaluator=Compiled(at_least=0)),
        FOLLOWED_AT_ONCE + 4_000,
    )
    names = machine.actuators.ports.position.columns
    positions = np.tile(machine.actuator_position(machine.assembly.q), (COUNT, 1))
    positions[bad:, 0] += np.linspace(0.0, 3.0, COUNT - bad)
    channels = [
        Channel(quantity="position", channel=n, values=p, unit="m")
        for n, p in zip(names, positions.T, strict=True)
    ]
    channels.append(Channel(quantity="force", channel=names[0], values=positions[:, 0], unit="N"))
    log = Signals(time=np.arange(COUNT) / 1000.0, channels=tuple(channels))
    with pytest.raises(PoseError, match="counted from 0") as caught:
        regression_data(machine, log, Preparation(cutoff=None, decimation=10))
    words = (word.strip("(),.:;") for word in str(caught.value).split())
    assert any(bad < int(word) < COUNT for word in words if word.isdecimal()), str(caught.value)


def test_a_parquet_file_is_read_in_parts_and_by_whole_names(tmp_path: Path) -> None:
    pyarrow, parquet = extra("pyarrow"), extra("pyarrow.parquet")
    count = ROWS_AT_ONCE + 321
    time, values = np.arange(count) / 100.0, np.random.default_rng(0).normal(size=count)
    columns = {
        "time.of day": 0.0 * time,
        "time": time,
        "position.a [rad]": values,
        "position": values + 1.0,
    }
    path = tmp_path / "log.parquet"
    parquet.write_table(pyarrow.table(columns), path)
    names = {"position": {"a": "position.a", "b": "position"}}
    log = read_signals(
        LogFile(path=path, columns=names, units={"time": "s", "position": "rad"}, time="time")
    )
    assert np.array_equal(log.time, time)
    assert np.array_equal(
        samples(log, "position", ("a", "b")), np.stack([values, values + 1.0], axis=1)
    )
