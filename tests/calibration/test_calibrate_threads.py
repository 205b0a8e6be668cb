"""Fits to parts of the poses on several processes: the same numbers to the last bit, in the same order."""

from __future__ import annotations

import numpy as np

import tauloop as tl


def test_no_number_depends_on_the_number_of_processes():
    nominal, rng = tl.load("five_bar"), np.random.default_rng(1)
    true = nominal.with_values({"crank_length": nominal.parameters["crank_length"].value + 1e-3})
    motors = rng.uniform([1.6, 1.2], [1.9, 1.5], (16, 2))
    state = tl.Model(true).forward_kinematics(motors)
    exact = np.stack(
        [state.coordinate("platform.x"), state.coordinate("platform.y"), np.zeros(16)], axis=1
    )
    tracker = tl.calibration.Position(name="tracker")
    read = exact + 1e-5 * rng.normal(size=exact.shape)
    series = tl.calibration.Series(instrument=tracker, encoders=motors, readings=read, noise=1e-5)

    def calibrated(processes: int) -> tuple[tl.Calibration, list[tuple[str, int, int]]]:
        reports: list[tuple[str, int, int]] = []
        options = tl.CalibrationOptions(
            parameters=("crank_length",),
            compare_with=("crank_length", "encoder.*.offset"),
            random_splits=2,
            replicates=12,
            leave_one_out=True,
            workers=processes,
        )
        result = tl.calibrate(
            nominal, series, options, progress=lambda *report: reports.append(report)
        )
        return result, reports

    (alone, reports), (shared, same_reports) = calibrated(1), calibrated(2)
    assert reports == same_reports
    assert alone.as_dict() == shared.as_dict()
    assert np.array_equal(alone.bootstrap.corrections, shared.bootstrap.corrections)
    assert np.array_equal(alone.leave_one_out.residuals, shared.leave_one_out.residuals)
    for a, b in zip(alone.comparison.models, shared.comparison.models, strict=True):
        assert np.array_equal(a.fold_rms, b.fold_rms)
        assert np.array_equal(a.leave_one_out.errors, b.leave_one_out.errors)
