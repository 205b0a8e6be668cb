"""A log as plain arrays says the same as one of labelled arrays, wherever logs are taken."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tauloop import Model, load
from tauloop.common.errors import LogError
from tauloop.compiler.c import Interpreted
from tauloop.identification import (
    OrdinaryLeastSquares,
    fit_regression,
    regression_data,
    scan_filters,
)
from tauloop.identification.faults.recording.signals import clipped_channels
from tauloop.logs import (
    Preparation,
    Signals,
    channels,
    prepare,
    prepared_signals,
    read_log,
    read_signals,
    sample_period,
    samples,
    units,
    write_log,
)
from tauloop.logs.log import Channel, as_signals

RATE = 100.0
#: Sums over twice as many samples are rounded otherwise.
SAME = 1e-9
ORDINARY = OrdinaryLeastSquares()
PREPARATION = Preparation(cutoff=20.0, trim=5, decimation=2)


@pytest.fixture(scope="module")
def model() -> Model:
    return Model(load("pendulum_arm"), evaluator=Interpreted())


@pytest.fixture(scope="module")
def recorded(model, tmp_path_factory) -> Path:
    """A log of all actuators, their forces, and a lag of the controller; the first force is clipped."""
    rng = np.random.default_rng(7)
    time = np.arange(400) / RATE
    names, force_units = model.output_ports("actuators")
    position = model.actuator_position(model.assembly.q)
    for _ in range(2):  # in a single sine accelerations are positions, up to a factor
        position = position + 0.15 * np.sin(
            np.outer(time, rng.uniform(2.0, 6.0, size=len(names))) + rng.uniform(size=len(names))
        )
    forces = rng.normal(size=position.shape)
    forces[50:60, 0] = forces[:, 0].max() + 1.0
    rows = [
        *(
            Channel(
                quantity=quantity, channel=name, values=values[:, i], unit=unit, source="made here"
            )
            for quantity, values, known in (
                ("position", position, model.actuators.ports.position.units),
                ("force", forces, force_units),
            )
            for i, (name, unit) in enumerate(zip(names, known, strict=True))
        ),
        Channel(quantity="lag", channel="motor", values=rng.normal(size=len(time)), unit="s"),
    ]
    log = Signals(time=time, channels=tuple(rows))
    return write_log(tmp_path_factory.mktemp("log") / "log.csv", log.dataset())


def test_both_hold_the_same(recorded):
    plain, labeled = read_signals(recorded), read_log(recorded)
    assert plain.dataset().identical(labeled)
    again = as_signals(labeled)
    assert as_signals(plain) is plain
    assert np.array_equal(again.time, plain.time)
    for case, other in zip(again.channels, plain.channels, strict=True):
        assert (case.name, case.unit, case.source) == (other.name, other.unit, other.source)
        assert np.array_equal(case.values, other.values)


def test_both_are_asked_alike(recorded):
    plain, labeled = read_signals(recorded), read_log(recorded)
    assert sample_period(plain) == sample_period(labeled)
    for quantity in ("position", "force", "lag"):
        assert channels(plain, quantity) == channels(labeled, quantity) != ()
        assert units(plain, quantity) == units(labeled, quantity)
        assert np.array_equal(samples(plain, quantity), samples(labeled, quantity))
    assert clipped_channels(plain) == clipped_channels(labeled) != ()
    for log in (plain, labeled):
        with pytest.raises(LogError, match="does not have this quantity"):
            samples(log, "posture")
        with pytest.raises(LogError, match="not in the log"):
            samples(log, "lag", ("engine",))


def test_both_are_prepared_alike(recorded):
    plain, labeled = read_signals(recorded), read_log(recorded)
    rows, expected = prepared_signals(plain, PREPARATION).dataset(), prepare(labeled, PREPARATION)
    assert rows.equals(expected)
    assert {name: case.attrs for name, case in rows.items()} == {
        name: case.attrs for name, case in expected.items()
    }
    assert expected.attrs["period"] == pytest.approx(1.0 / RATE)
    assert len(rows.time) == len(labeled.time) - 2 * PREPARATION.trim


def test_both_are_identified_alike(model, recorded):
    data = [
        regression_data(model, log, PREPARATION)
        for log in (read_signals(recorded), read_log(recorded))
    ]
    assert np.array_equal(data[0].regressor, data[1].regressor)
    assert np.array_equal(data[0].forces, data[1].forces)
    values = [fit_regression(part, None, ORDINARY).estimate.values for part in data]
    assert np.array_equal(*values)


def test_filters_are_scanned_on_one_log_or_several(model, recorded):
    """One log of either kind, and the same one twice: every sample counts double, which changes no estimate."""
    errors = []
    for log in (read_signals(recorded), read_log(recorded), [read_signals(recorded)] * 2):
        preparation = [PREPARATION] * 2 if isinstance(log, list) else PREPARATION
        result = scan_filters(
            model, log, preparation, orders=[2], cutoffs=[10.0, 20.0], estimator=ORDINARY
        )
        errors.append([trial.validation_error for trial in result.trials])
    assert errors[0] == errors[1]
    assert errors[2] == pytest.approx(errors[0], rel=SAME)


def test_labelled_arrays_of_someone_else_need_not_say_their_source(recorded):
    log = read_log(recorded)
    for variable in log.data_vars.values():
        del variable.attrs["source"]
    assert all(channel.source == "" for channel in as_signals(log).channels)
