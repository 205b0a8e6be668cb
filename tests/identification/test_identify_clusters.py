"""Standard deviations clustered by block and log, and separate fits of logs.

They are compared with a jackknife in NumPy and with SciPy's statistics.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from identifying import identified, options_of, tables_of
from planar_arm import MACHINE, TRUE, arm_data, arm_forces, arm_log, arm_motion

from tauloop.common.errors import IdentificationError, InputError, TauloopError
from tauloop.formats import loads
from tauloop.identification import (
    AutocorrelatedErrors,
    ClusteredErrors,
    Identification,
    OrdinaryLeastSquares,
    RegressionData,
    compare_logs,
    fit_regression,
    identify,
    merge_data,
)
from tauloop.logs import write_log

NOISE = (0.3, 0.2)  # N m
#: Relative difference of two calculations of the same value: rounding times the condition number.
ROUNDING_TOLERANCE = 1e-7
#: Tolerance of the coverage of 60 simulated sets of logs. The standard deviation of a share of 0.95
#: of 360 intervals is 0.01, but the intervals of one set are correlated.
COVERAGE_TOLERANCE = 0.06


def logs_of(
    rng: np.random.Generator, count: int, gain: float = 0.0, samples: int = 600
) -> list[RegressionData]:
    """Return logs of the arm with white noise, each with torques multiplied by a random gain."""
    rows = []
    for k in range(count):
        data = arm_data(samples, phase=float(3.0 * k), noise=NOISE, rng=rng)
        rows.append(replace(data, forces=data.forces * (1.0 + gain * rng.standard_normal())))
    return rows


def ordinary(data: RegressionData, errors: ClusteredErrors) -> Identification:
    return fit_regression(data, None, OrdinaryLeastSquares(), errors=errors)


@pytest.mark.parametrize("by", ["block", "log"])
def test_clustered_deviations_are_the_jackknife(by: str) -> None:
    """The reference fits the base columns without each cluster by `numpy.linalg.lstsq`."""
    data = merge_data(logs_of(np.random.default_rng(4), 3, gain=0.05))
    result = ordinary(data, ClusteredErrors(by=by, blocks=5))
    columns, forces = data.regressor[:, :, result.base.independent], data.forces
    logs = np.array_split(np.arange(len(data)), 3)
    clusters = logs if by == "log" else [block for log in logs for block in np.array_split(log, 5)]
    left_out = []
    for cluster in clusters:
        remaining = np.setdiff1d(np.arange(len(data)), cluster)
        left_out.append(
            np.linalg.lstsq(
                columns[remaining].reshape(-1, columns.shape[2]),
                forces[remaining].ravel(),
                rcond=None,
            )[0]
        )
    count = len(clusters)
    jackknife = (count - 1) / count * np.sum((left_out - np.mean(left_out, axis=0)) ** 2, axis=0)
    few = scipy.stats.t.ppf(0.975, count - 1) / scipy.stats.norm.ppf(0.975)
    assert result.standard_deviations == pytest.approx(
        few * np.sqrt(jackknife), rel=ROUNDING_TOLERANCE
    )


def test_intervals_clustered_by_log_cover_what_differs_from_log_to_log() -> None:
    """95 % intervals of six logs with different scales (2 %) contain the truth in 95 % of cases."""
    rng = np.random.default_rng(9)
    inside: dict[str, list[np.ndarray]] = {"autocorrelated": [], "log": [], "mean": []}
    for _ in range(60):
        parts = logs_of(rng, 6, gain=0.02, samples=400)
        data = merge_data(parts)
        for name, errors in (
            ("autocorrelated", AutocorrelatedErrors()),
            ("log", ClusteredErrors(by="log")),
        ):
            result = fit_regression(data, None, OrdinaryLeastSquares(), errors=errors)
            off = np.abs(result.values - result.base.regroup(TRUE))
            inside[name].append(off < 1.96 * result.standard_deviations)
        apart = compare_logs(
            parts,
            list("abcdef"),
            result.base,
            OrdinaryLeastSquares(),
            errors=AutocorrelatedErrors(),
        )
        inside["mean"].append(
            np.abs(apart.means - result.base.regroup(TRUE)) < 1.96 * apart.mean_deviations
        )
    covered = {name: float(np.mean(outcome)) for name, outcome in inside.items()}
    assert covered["autocorrelated"] < 0.85
    assert covered["log"] == pytest.approx(0.95, abs=COVERAGE_TOLERANCE)
    assert covered["mean"] == pytest.approx(0.95, abs=COVERAGE_TOLERANCE)


def test_logs_apart_are_compared_by_the_textbook_figures() -> None:
    """Cochran's Q with SciPy's chi squared; Paule and Mandel's scatter by SciPy's root finder."""
    parts = logs_of(np.random.default_rng(2), 4, gain=0.03)
    base = ordinary(merge_data(parts), ClusteredErrors()).base
    apart = compare_logs(
        parts, list("abcd"), base, OrdinaryLeastSquares(), errors=AutocorrelatedErrors()
    )
    fits = [
        fit_regression(part, None, OrdinaryLeastSquares(), base=base, errors=AutocorrelatedErrors())
        for part in parts
    ]
    for k in range(base.rank):
        value = np.array([single.values[k] for single in fits])
        deviation = np.array([single.standard_deviations[k] for single in fits])

        def cochran(
            square: float, value: np.ndarray = value, deviation: np.ndarray = deviation
        ) -> float:
            weight = 1.0 / (deviation**2 + square)
            return float(np.sum(weight * (value - np.average(value, weights=weight)) ** 2))

        assert apart.probabilities[k] == pytest.approx(
            scipy.stats.chi2.sf(cochran(0.0), 3), rel=1e-6
        )
        if cochran(0.0) > 3.0:
            root = scipy.optimize.brentq(
                lambda square: cochran(square) - 3.0, 0.0, 100.0 * np.var(value), xtol=1e-18
            )
            assert apart.scatter[k] ** 2 == pytest.approx(root, rel=1e-5)
        else:
            assert apart.scatter[k] == 0.0
        weight = 1.0 / (deviation**2 + apart.scatter[k] ** 2)
        assert apart.means[k] == pytest.approx(np.average(value, weights=weight), rel=1e-9)
        expected = scipy.stats.t.ppf(0.975, 3) / scipy.stats.norm.ppf(0.975)
        spread = cochran(float(apart.scatter[k] ** 2)) / 3.0
        assert apart.mean_deviations[k] ** 2 == pytest.approx(
            max(expected**2 * spread, 1.0) / weight.sum(), rel=1e-6
        )


def test_the_parameter_that_differs_from_log_to_log_is_named_and_no_other() -> None:
    """The second log has another load on link 2: its first moment and its moment of inertia."""
    rng = np.random.default_rng(6)
    for changed in (False, True):
        parts = [arm_data(1500, phase=p, noise=NOISE, rng=rng) for p in (0.0, 1.0, 2.0)]
        if changed:
            loaded = TRUE + np.array([0, 0, 0, 0, 0, 0.3, 0, 0.1])
            parts[1] = replace(
                parts[1], forces=parts[1].forces + parts[1].regressor @ (loaded - TRUE)
            )
        base = ordinary(merge_data(parts), ClusteredErrors()).base
        apart = compare_logs(
            parts,
            ["one", "two", "three"],
            base,
            OrdinaryLeastSquares(),
            errors=AutocorrelatedErrors(),
        )
        moved = {base.base[k].representative for k in np.flatnonzero(apart.moved)}
        assert moved == ({"link2.mx", "link2.I"} if changed else set())
        assert len(apart.problems) == int(changed)
    assert "2 of 6 base parameters differ between logs" in apart.problems[0].what


def test_a_log_that_does_not_tell_all_is_left_out_and_named() -> None:
    parts = logs_of(np.random.default_rng(2), 3)
    resting = replace(parts[1], regressor=parts[1].regressor * np.array([1.0] * 5 + [0.0] * 3))
    base = ordinary(merge_data(parts), ClusteredErrors()).base
    apart = compare_logs([parts[0], resting, parts[2]], list("abc"), base, OrdinaryLeastSquares())
    assert apart.logs == ("a", "c")
    assert apart.problems[0].where.startswith("b: ")
    with pytest.raises(IdentificationError, match="1 of 2 logs determine all parameters"):
        compare_logs([parts[0], resting], list("ab"), base, OrdinaryLeastSquares())


@pytest.mark.parametrize(
    ("errors", "what"),
    [
        ({"by": "day"}, "'day' is unknown"),
        ({"blocks": 1}, "is 1"),
        ({"by": "log"}, "errors clustered by log need at least 2 logs, got 1"),
    ],
)
def test_clusters_that_cannot_be(errors: dict[str, object], what: str) -> None:
    with pytest.raises(IdentificationError, match=what):
        ordinary(arm_data(300, noise=NOISE), ClusteredErrors(**errors))  # type: ignore[arg-type]


def test_logs_are_compared(tmp_path: Path) -> None:
    paths = []
    for k, scale in enumerate((1.0, 1.0, 1.1)):
        motion = arm_motion(2500, phase=float(k))
        log = arm_log(motion, scale * arm_forces(motion), rng=np.random.default_rng(k))
        paths.append(write_log(tmp_path / f"log_{k}.csv", log.dataset()))
    options = options_of(cutoff=30.0, trim=60, decimation=2, compare_logs=True, errors="logs")
    result = identify(loads(MACHINE), paths, options)
    document = result.as_dict()
    assert document["status"] == "doubtful"
    rows = document["log_comparison"]["base_parameters"]
    assert document["log_comparison"]["logs"] == ["log_0.csv", "log_1.csv", "log_2.csv"]
    (heavy,) = (row for row in rows if row["name"].startswith("link1.mcx"))
    assert heavy["moved"]
    assert heavy["model_error_share"] > 0.99
    assert any(
        "base parameters differ between logs" in single["what"] for single in document["findings"]
    )
    assert "Separate fits of each log" in tables_of(result)
    assert identify(loads(MACHINE), paths[:2], options).status.value == "ok"
    with pytest.raises(InputError, match="only one log, so there is nothing to compare"):
        identified(loads(MACHINE), paths[0], cutoff=30.0, compare_logs=True)


def test_a_log_given_twice_is_refused_and_problems_of_one_of_several_name_it(
    tmp_path: Path,
) -> None:
    paths = []
    for k in range(2):
        motion = arm_motion(600, phase=float(k))
        log = arm_log(motion, arm_forces(motion), rng=np.random.default_rng(k))
        paths.append(str(write_log(tmp_path / f"log_{k}.csv", log.dataset())))
    (tmp_path / "copy.csv").write_bytes(Path(paths[0]).read_bytes())
    rows = Path(paths[1]).read_text(encoding="utf-8").splitlines()
    (tmp_path / "short.csv").write_text("\n".join(rows[:2]) + "\n", encoding="utf-8")

    def refused(*logs: str, **options: str) -> str:
        with pytest.raises(TauloopError) as caught:
            identified(loads(MACHINE), *logs, cutoff=30.0, trim=60, **options)
        return str(caught.value)

    assert "copy.csv (log 2): is identical to log_0.csv (log 1) in all 600 samples" in refused(
        paths[0], str(tmp_path / "copy.csv")
    )
    assert "is identical to" in refused(*paths, validation=paths[0])
    assert "short.csv: log: 1 sample is too few" in refused(paths[0], str(tmp_path / "short.csv"))
