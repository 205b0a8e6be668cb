"""The bound of Cramer and Rao for compliances that loads determine, as the page on elastic machines states it."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from loaded_gantry import NOISE, RODS, plant_of, single_parts_text
from test_elastic_accuracy import (
    COMPLIANCES,
    ELASTIC,
    LENGTHS,
    SOFTER,
    held_out_loads,
    loaded_problem,
)

import tauloop as tl

pytestmark = pytest.mark.nightly
PAGE = Path(__file__).parents[2] / "docs" / "elastic-machines.md"
#: Deviations of the prior of a compliance, m/N: as large as its value. Steps of differences.
GIVE, ROD = 0.05e-6, 0.04e-6
RELATIVE_STEP, LENGTH_STEP = 1e-3, 1e-5


def bound(*, with_lengths: bool, has_prior: bool) -> float:
    """Return the root mean square error (m) of a coordinate that no unbiased estimate is below."""
    machine = tl.loads(single_parts_text())
    rng = np.random.default_rng(5)
    longer = rng.normal(0.0, 0.3e-3, 6) if with_lengths else np.zeros(6)
    plant = plant_of(machine, compliances=rng.uniform(*SOFTER, 9), longer=longer)
    names = (*ELASTIC, *LENGTHS) if with_lengths else ELASTIC
    problem = loaded_problem(machine, plant, rng, *names)
    series, _ = held_out_loads(machine, plant, rng)
    true = dict(zip(COMPLIANCES, plant.compliances, strict=True))
    if with_lengths:
        true |= {f"{rod}.length": value for rod, value in zip(RODS, plant.lengths, strict=True)}
    at = machine.with_values(true)

    def sensitivity(measured: tl.calibration.Series) -> np.ndarray:
        columns = []
        for name, value in true.items():
            h = RELATIVE_STEP * value if name in COMPLIANCES else LENGTH_STEP
            above, below = (
                tl.calibration.predicted_readings(at.with_values({name: value + step}), measured)
                for step in (h, -h)
            )
            columns.append((above - below).ravel() / (2.0 * h))
        return np.array(columns).T

    J, H = sensitivity(problem.series[0]), sensitivity(series)
    size = np.linalg.norm(J, axis=0)
    information = (J / size).T @ (J / size) / NOISE**2
    if has_prior:
        deviations = [
            (GIVE if "give" in name else ROD) if name in COMPLIANCES else np.inf for name in true
        ]
        information += np.diag(1.0 / (np.array(deviations) * size) ** 2)
    covariance = np.linalg.inv(information)
    return float(np.sqrt(np.mean(np.einsum("ij,jk,ik->i", H / size, covariance, H / size))))


@pytest.mark.parametrize(("with_lengths", "row"), [(False, "six rods"), (True, "these and")])
def test_bounds_are_those_of_the_page(with_lengths: bool, row: str) -> None:
    stated = re.search(rf"\| {row}[^|]*\| ([\d.]+) um \|", PAGE.read_text(encoding="utf-8"))
    assert stated is not None
    computed = 1e6 * bound(with_lengths=with_lengths, has_prior=True)
    assert computed == pytest.approx(float(stated[1]), abs=0.06)


def test_bounds_without_prior_are_those_of_the_page() -> None:
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    stated = re.search(r"without it they are ([\d.]+) and ([\d.]+) um", text)
    assert stated is not None
    for value, with_lengths in zip(stated.groups(), (False, True), strict=True):
        computed = 1e6 * bound(with_lengths=with_lengths, has_prior=False)
        assert computed == pytest.approx(float(value), abs=0.06)
