"""Triangles of many logs give what one machine finds with all samples before it."""

from __future__ import annotations

import zipfile
from dataclasses import replace
from functools import reduce
from itertools import pairwise
from operator import add
from pathlib import Path

import numpy as np
import pytest
from planar_arm import arm_data

from tauloop.common.errors import IdentificationError
from tauloop.identification import (
    AutocorrelatedErrors,
    ClusteredErrors,
    FilteredErrors,
    OrdinaryLeastSquares,
    ScoreDirections,
    WeightedLeastSquares,
    decimation_correlation,
    fit_regression,
    fold_all,
    fold_log,
    identify_folded,
    merge_data,
    merge_triangles,
    read_triangle,
    score_spread,
    score_sums,
    split_each,
    with_autocorrelation,
    write_triangle,
)
from tauloop.identification.estimation.base_columns import BaseRegression
from tauloop.identification.estimation.error_models import fading_correlation, residual_lags
from tauloop.identification.regression.folded_scores import NoiseFloor, noise_spread, residual_sums
from tauloop.logs.signals import low_pass

#: Of issue 18: what is folded equals what one machine finds.
SAME = 1e-10
#: Errors of forces that were decimated by five.
CORRELATION = decimation_correlation(5)
LOGS = tuple(
    arm_data(n, noise=(0.3, 0.1), phase=0.3 * k, rng=np.random.default_rng(k))
    for k, n in enumerate((500, 300, 700, 450, 620))
)


@pytest.mark.parametrize(
    "estimator", [OrdinaryLeastSquares(), WeightedLeastSquares()], ids=lambda e: type(e).__name__
)
@pytest.mark.parametrize("correlation", [np.ones(1), CORRELATION], ids=["white", "filtered"])
def test_folded_logs_give_what_one_machine_finds_with_all_of_them(estimator, correlation):
    folded = identify_folded(
        fold_all(fold_log(log, share=0.7, correlation=correlation) for log in LOGS), estimator
    )
    training, held_out = split_each(LOGS, 0.7)
    whole = fit_regression(
        merge_data(training),
        merge_data(held_out),
        estimator,
        errors=FilteredErrors(correlation=correlation),
    )
    assert tuple(folded.base.independent) == tuple(whole.base.independent)
    np.testing.assert_allclose(folded.estimate.values, whole.values, rtol=SAME)
    np.testing.assert_allclose(
        folded.estimate.standard_deviations, whole.standard_deviations, rtol=SAME
    )
    np.testing.assert_allclose(
        folded.training, [judged.rmse for judged in whole.training], rtol=SAME
    )
    np.testing.assert_allclose(
        folded.held_out, [judged.rmse for judged in whole.held_out], rtol=SAME
    )


@pytest.mark.parametrize(("by", "blocks"), [("log", 1), ("block", 12)])
def test_errors_of_any_correlation_in_logs_or_blocks_need_no_second_reading(
    by, blocks, tmp_path: Path
):
    triangle = fold_all(fold_log(log, share=0.7, blocks=blocks) for log in LOGS)
    errors, estimator = ClusteredErrors(by=by, blocks=12), WeightedLeastSquares()
    folded = identify_folded(
        read_triangle(write_triangle(triangle, tmp_path / "t")), estimator, errors=errors
    )
    training, held_out = split_each(LOGS, 0.7)
    whole = fit_regression(merge_data(training), merge_data(held_out), estimator, errors=errors)
    np.testing.assert_allclose(
        folded.estimate.standard_deviations, whole.standard_deviations, rtol=SAME
    )
    with pytest.raises(IdentificationError, match="contains 0 clusters"):
        identify_folded(fold_log(LOGS[0]), estimator, errors=errors)


def test_unknown_correlation_is_that_of_one_machine_when_logs_are_read_again():
    rng, estimator = np.random.default_rng(5), WeightedLeastSquares()
    logs = []
    for log in LOGS:  # errors that remember: their deviations are twice those of white ones
        noise = rng.normal(size=log.forces.shape)
        for n in range(1, len(noise)):
            noise[n] += 0.7 * noise[n - 1]
        logs.append(replace(log, forces=log.forces + 0.3 * noise))
    folded = identify_folded(fold_all(fold_log(log, share=0.7) for log in logs), estimator)
    directions = ScoreDirections.of(folded)
    sums = reduce(add, (score_sums(log, directions, 0.7) for log in logs))
    spreads = [score_spread(log, directions, sums.kernel, 0.7) for log in logs]
    again = with_autocorrelation(folded, sums, spreads)
    training, held_out = split_each(logs, 0.7)
    whole = fit_regression(
        merge_data(training), merge_data(held_out), estimator, errors=AutocorrelatedErrors()
    )
    assert len(sums.kernel) > 5
    np.testing.assert_allclose(
        again.estimate.standard_deviations, whole.standard_deviations, rtol=SAME
    )
    assert np.median(whole.standard_deviations / folded.estimate.standard_deviations) > 1.2
    turned = fit_regression(
        merge_data(training[::-1]), None, estimator, base=whole.base, errors=AutocorrelatedErrors()
    )
    np.testing.assert_allclose(turned.standard_deviations, whole.standard_deviations, rtol=SAME)


def test_no_variance_is_below_that_of_the_residuals_correlation_in_folded_logs_either():
    rng, estimator, lobe = np.random.default_rng(7), WeightedLeastSquares(), 4.0
    logs = [log.part(slice(0, 90)) for log in LOGS]
    filtered = []
    for log in logs:
        noise = low_pass(rng.normal(size=(len(log) + 40, log.forces.shape[1])), 0.5 / lobe)[20:-20]
        filtered.append(replace(log, forces=log.forces + noise))
    folded = identify_folded(fold_all(fold_log(log) for log in filtered), estimator)
    directions = ScoreDirections.of(folded)
    sums = reduce(add, (score_sums(log, directions) for log in filtered))
    spreads = [score_spread(log, directions, sums.kernel) for log in filtered]
    products = sum(residual_sums(log, directions, residual_lags(lobe)) for log in filtered)
    correlation = fading_correlation(products)
    noise_spreads = sum(noise_spread(log, directions, correlation) for log in filtered)
    floor = NoiseFloor(squares=products[0], spread=noise_spreads)
    deviations = with_autocorrelation(folded, sums, spreads, floor).estimate.standard_deviations
    whole = fit_regression(
        merge_data(filtered), None, estimator, errors=AutocorrelatedErrors(lobe=lobe)
    )
    expected = np.sqrt(
        np.diag(
            AutocorrelatedErrors(lobe=lobe).covariance(equations_of(whole, merge_data(filtered)))
        )
    )
    np.testing.assert_allclose(deviations, expected, rtol=SAME)
    without = with_autocorrelation(folded, sums, spreads).estimate.standard_deviations
    assert (deviations >= without * (1.0 - SAME)).all()
    assert (deviations > 1.01 * without).any()


def equations_of(whole, data):
    """Return the equations of a fit, whose own covariance counts more than the errors' correlation."""
    size = len(data.unknowns)
    regression = BaseRegression(
        data=data, base=whole.base, triangles=data.triangles[:, :, [*whole.base.independent, size]]
    )
    return whole.estimator.equations(regression, whole.estimate)


def test_one_log_may_be_cut_anywhere():
    whole = fold_log(LOGS[2], correlation=CORRELATION)
    for cuts in ((350,), (3, 10), (100, 101, 400)):
        ends = (0, *cuts, len(LOGS[2]))
        parts = [
            fold_log(LOGS[2].part(slice(a, b)), correlation=CORRELATION) for a, b in pairwise(ends)
        ]
        together = parts[0]
        for part in parts[1:]:
            together = merge_triangles(together, part, one_log=True)
        assert together.logs == 1
        np.testing.assert_allclose(
            together.spread, whole.spread, rtol=1e-9, atol=1e-9 * np.abs(whole.spread).max()
        )
        np.testing.assert_array_equal(together.head, whole.head)
        np.testing.assert_array_equal(together.tail, whole.tail)


def test_a_log_that_comes_later_is_folded_into_a_saved_triangle(tmp_path: Path):
    parts = [fold_log(log, share=0.8, correlation=CORRELATION) for log in LOGS]
    path = write_triangle(fold_all(parts[:4]), tmp_path / "t.npz")
    saved = read_triangle(path)
    assert saved.logs == 4
    later, at_once = merge_triangles(saved, parts[4]), fold_all(parts)
    first, second = (
        identify_folded(triangle, WeightedLeastSquares()) for triangle in (later, at_once)
    )
    np.testing.assert_allclose(first.estimate.values, second.estimate.values, rtol=SAME)
    np.testing.assert_allclose(
        first.estimate.covariance, second.estimate.covariance, rtol=SAME, atol=0
    )
    np.testing.assert_allclose(first.held_out, second.held_out, rtol=SAME)


def test_what_is_no_triangle_or_does_not_belong_is_refused(tmp_path: Path):
    with pytest.raises(IdentificationError, match="different correlations of the errors"):
        merge_triangles(fold_log(LOGS[0]), fold_log(LOGS[1], correlation=CORRELATION))
    with pytest.raises(IdentificationError, match="there are no condensed logs"):
        fold_all([])
    for content in (b"", b"PK\x03\x04 and so on", b"\x93NUMPY"):
        (tmp_path / "bad.npz").write_bytes(content)
        with pytest.raises(IdentificationError):
            read_triangle(tmp_path / "bad.npz")
    np.savez(tmp_path / "other.npz", format=np.array(["tauloop-triangle/1"]))
    with pytest.raises(IdentificationError, match="is not a file of condensed logs"):
        read_triangle(tmp_path / "other.npz")
    pickled = tmp_path / "pickled.npz"
    np.savez(pickled, format=np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(IdentificationError, match="is not a file of condensed logs"):
        read_triangle(pickled)


@pytest.mark.parametrize("head", [b"{'descr': (", b"{'descr' '<f8'}", b"\xff"])
def test_a_damaged_head_of_an_array_is_refused(head, tmp_path: Path):
    """NumPy reads it as Python's own text, and raises what Python raises."""
    with zipfile.ZipFile(tmp_path / "t.npz", "w") as archive:
        archive.writestr(
            "format.npy", b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head
        )
    with pytest.raises(IdentificationError, match="is not a file of condensed logs"):
        read_triangle(tmp_path / "t.npz")


def test_an_archive_that_cannot_be_unpacked_is_refused(tmp_path: Path):
    path = write_triangle(fold_log(LOGS[0]), tmp_path / "t.npz")
    content = bytearray(path.read_bytes())
    content[content.rindex(b"PK\x01\x02") + 10] = 99  # method of packing of the last array
    path.write_bytes(content)
    with pytest.raises(IdentificationError, match="is not a file of condensed logs"):
        read_triangle(path)
