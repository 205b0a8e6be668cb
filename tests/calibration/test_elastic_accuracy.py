"""Accuracy of calibrations under loads and temperatures, on a plant of independent frame deflections."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tauloop as tl
from tauloop.calibration import FitOptions, Position, Series, predicted_readings
from tauloop.calibration.fitting import fit_geometry
from tauloop.calibration.judging.base_combinations import base_combinations
from tauloop.calibration.judging.statistics import (
    covariance,
    degrees_of_freedom,
    interval_factor,
    variance_factor,
)
from tauloop.calibration.problem.problem import CalibrationProblem, calibration_problem
from tauloop.calibration.problem.unknowns import Tolerances
from tauloop.calibration.solving.solver import Solution, solve_calibration
from tests.calibration.loaded_gantry import (
    FORCE,
    NOISE,
    RODS,
    Plant,
    encoders_at,
    forces,
    loaded_series,
    measured,
    plant_of,
    single_parts_text,
)

#: The page that states the bounds of Cramer and Rao for compliances that loads determine.
PAGE = Path(__file__).parents[2] / "docs" / "elastic-machines.md"
#: Deviations of the prior of a compliance, m/N: as large as its value. Steps of differences.
GIVE, ROD = 0.05e-6, 0.04e-6
RELATIVE_STEP, LENGTH_STEP = 1e-3, 1e-5
ELASTIC = ("*.c", "*.give")
LENGTHS = ("triple*.length", "pair*.length", "single*.length")
COMPLIANCES = (*(f"{rod}.c" for rod in RODS), *(f"track{k}.give" for k in (1, 2, 3)))
POSES, HELD_OUT = 20, 40
#: Number of held-out poses of the bounds on the page.
HELD_OUT_OF_BOUNDS = 100
#: Root mean square errors of a coordinate of the tool after calibration, and least before, m.
ELASTIC_BAR, RIGID_ERROR = 5e-6, 20e-6
HEAT_BAR, COLD_ERROR = 10e-6, 55e-6
#: Draws of the noise of one session; errors are pooled over them.
DRAWS = 3
#: Errors of estimates over their standard deviations, with a probability of 4e-4 for six estimates.
MAX_DEVIATIONS = 4.0
#: Largest change of deflections with the corrected geometry, over the noise.
MIXED_BAR = 0.1
#: Parts are softer than the drawing by these fractions.
SOFTER = (0.5, 1.5)
#: Noise of thermometers and their offsets, K; relative errors of coefficients of expansion.
THERMOMETER_NOISE, THERMOMETER_OFFSET, EXPANSION_ERROR = 0.1, 0.5, 0.1


@pytest.fixture(scope="module")
def machine() -> tl.Mechanism:
    return tl.loads(single_parts_text())


def rms(errors: np.ndarray) -> float:
    """Return the root mean square error of a coordinate."""
    return float(np.sqrt(np.mean(errors**2)))


def loaded_problem(
    machine: tl.Mechanism, plant: Plant, rng: np.random.Generator, *names: str
) -> CalibrationProblem:
    """Return a calibration from 20 poses with forces of 500 N along x, y and z at each."""
    encoders = np.repeat(encoders_at(tl.Model(machine), POSES, rng), 3, axis=0)
    series = loaded_series(machine, plant, encoders, forces(POSES), rng)
    return calibration_problem(machine, [series], names, tolerances=Tolerances(elastic=1.0))


def held_out_loads(
    machine: tl.Mechanism, plant: Plant, rng: np.random.Generator, count: int = HELD_OUT
) -> tuple[Series, np.ndarray]:
    """Return other poses under forces in random directions, and the plant's tool there."""
    encoders = encoders_at(tl.Model(machine), count, rng)
    directions = rng.standard_normal((count, 3))
    loads = np.zeros((count, 6))
    loads[:, :3] = FORCE * directions / np.linalg.norm(directions, axis=1)[:, None]
    series = loaded_series(machine, plant, encoders, loads)
    return series, series.readings


class Session:
    """A calibration of compliances, which is solved anew for each draw of the noise of its readings."""

    def __init__(self, machine: tl.Mechanism) -> None:
        self.rng = np.random.default_rng(5)
        self.plant = plant_of(machine, compliances=self.rng.uniform(*SOFTER, 9))
        self.problem = loaded_problem(machine, self.plant, self.rng, *ELASTIC)
        self._exact = exact_readings(machine, self.plant, self.problem)
        self.held_out = held_out_loads(machine, self.plant, self.rng)
        self._solved: list[tuple[CalibrationProblem, Solution]] = []

    def solved(self, draws: int) -> list[tuple[CalibrationProblem, Solution]]:
        """Return the problems with noise and their solutions; no draw is solved twice."""
        while len(self._solved) < draws:
            noise = NOISE * self.rng.standard_normal(self._exact.shape)
            noisy = self.problem.reading(self._exact + noise)
            self._solved.append((noisy, solve_calibration(noisy)))
        return self._solved[:draws]


@pytest.fixture(scope="module")
def session(machine: tl.Mechanism) -> Session:
    return Session(machine)


def test_compliances_predict_other_poses_and_loads(machine: tl.Mechanism, session: Session) -> None:
    series, truth = session.held_out
    assert rms(predicted_readings(machine, series) - truth) > RIGID_ERROR
    errors = []
    for noisy, solution in session.solved(DRAWS):
        values = noisy.values(solution.correction)
        errors.append(predicted_readings(machine.with_values(values), series) - truth)
    assert rms(np.array(errors)) < ELASTIC_BAR


def test_compliances_and_lengths_are_estimated_together(machine: tl.Mechanism) -> None:
    rng = np.random.default_rng(5)
    longer = rng.normal(0.0, 0.3e-3, 6)
    plant = plant_of(machine, compliances=rng.uniform(*SOFTER, 9), longer=longer)
    problem = loaded_problem(machine, plant, rng, *ELASTIC, *LENGTHS)
    result = fit_geometry(problem, rng, options=FitOptions(swap_search_time=0.0))
    lengths = np.array([result.values[f"{rod}.length"] for rod in RODS])
    deviations = {item.name: item.deviation for item in result.estimates}
    for rod, length, true in zip(RODS, lengths, plant.lengths, strict=True):
        deviation = deviations[f"{rod}.length"]
        assert deviation is not None
        assert abs(length - true) < MAX_DEVIATIONS * deviation
    (mixed,) = (item for item in result.diagnostics if "derivatives leave out" in item.name)
    assert mixed.value < MIXED_BAR


def exact_readings(machine: tl.Mechanism, plant: Plant, problem: CalibrationProblem) -> np.ndarray:
    """Return the readings (N, 3) of a loaded plant without noise."""
    (series,) = problem.series
    return measured(machine, plant, series.encoders, loads=series.loads)


def covered(session: Session, draws: int) -> tuple[int, int]:
    """Return how many intervals of base combinations contain the truth, and their number."""
    problem = session.problem
    truth = dict(zip(COMPLIANCES, session.plant.compliances, strict=True))
    start = np.array([unknown.value for unknown in problem.estimated])
    error = np.array([truth[name] for name in problem.names]) - start
    inside = total = 0
    for noisy, solution in session.solved(draws):
        factor = variance_factor(solution)
        assert factor is not None
        C = covariance(solution, factor, problem.tolerances)
        wide = interval_factor(degrees_of_freedom(solution), known_noise=False)
        combinations = base_combinations(noisy, solution.correction - error, C, wide)
        inside += sum(abs(item.value) <= item.half_width for item in combinations)
        total += len(combinations)
    return inside, total


def test_intervals_of_base_combinations_cover_the_truth(session: Session) -> None:
    inside, total = covered(session, 4)
    assert total == 36
    assert inside >= 29  # fewer have a probability of 0.001


@pytest.mark.nightly
def test_intervals_of_base_combinations_cover_95_percent(session: Session) -> None:
    inside, total = covered(session, 120)
    assert 0.93 <= inside / total <= 0.97


def heated_series(
    machine: tl.Mechanism,
    plant: Plant,
    count: int,
    offsets: np.ndarray,
    rng: np.random.Generator,
) -> tuple[Series, np.ndarray]:
    """Return readings at random temperatures within 3 K, and the plant's tool without noise."""
    encoders = encoders_at(tl.Model(machine), count, rng)
    rises = rng.uniform(-3.0, 3.0, (count, 6))
    truth = measured(machine, plant, encoders, rises=rises)
    read = rises - offsets + THERMOMETER_NOISE * rng.standard_normal(rises.shape)
    series = Series(
        instrument=Position(name="tracker"),
        encoders=encoders,
        readings=truth + NOISE * rng.standard_normal(truth.shape),
        noise=NOISE,
        thermometers=RODS,
        temperatures=read,
        temperature_noise=THERMOMETER_NOISE,
    )
    return series, truth


def test_expansions_predict_other_temperatures(machine: tl.Mechanism) -> None:
    rng = np.random.default_rng(8)
    expansions = EXPANSION_ERROR * rng.choice([-1.0, 1.0], 6)
    plant = plant_of(machine, expansions=expansions)
    offsets = THERMOMETER_OFFSET * rng.standard_normal(6)
    series, _ = heated_series(machine, plant, 60, offsets, rng)
    names = (*LENGTHS, "*.alpha", "thermometer.*")
    problem = calibration_problem(machine, [series], names, tolerances=Tolerances(elastic=0.2))
    result = fit_geometry(problem, rng, options=FitOptions(swap_search_time=0.0))
    assert {item.name for item in result.identifiability.left_out} == {
        f"thermometer.{rod}.offset" for rod in RODS
    }
    other, truth = heated_series(machine, plant, HELD_OUT, offsets, rng)
    cold = replace(other, temperatures=np.zeros_like(other.temperatures))
    assert rms(predicted_readings(machine, cold) - truth) > COLD_ERROR
    assert rms(predicted_readings(result.mechanism, other) - truth) < HEAT_BAR
    assert rms(predicted_readings(machine, other) - truth) > 1.5 * rms(
        predicted_readings(result.mechanism, other) - truth
    )


def bound(*, with_lengths: bool, has_prior: bool) -> float:
    """Return the root mean square error (m) of a coordinate that no unbiased estimate is below."""
    machine = tl.loads(single_parts_text())
    rng = np.random.default_rng(5)
    longer = rng.normal(0.0, 0.3e-3, 6) if with_lengths else np.zeros(6)
    plant = plant_of(machine, compliances=rng.uniform(*SOFTER, 9), longer=longer)
    names = (*ELASTIC, *LENGTHS) if with_lengths else ELASTIC
    problem = loaded_problem(machine, plant, rng, *names)
    series, _ = held_out_loads(machine, plant, rng, HELD_OUT_OF_BOUNDS)
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


@pytest.mark.nightly
@pytest.mark.parametrize(("with_lengths", "row"), [(False, "six rods"), (True, "these and")])
def test_bounds_are_those_of_the_page(with_lengths: bool, row: str) -> None:
    stated = re.search(rf"\| {row}[^|]*\| ([\d.]+) um \|", PAGE.read_text(encoding="utf-8"))
    assert stated is not None
    computed = 1e6 * bound(with_lengths=with_lengths, has_prior=True)
    assert computed == pytest.approx(float(stated[1]), abs=0.06)


@pytest.mark.nightly
def test_bounds_without_prior_are_those_of_the_page() -> None:
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    stated = re.search(r"without it they are ([\d.]+) and ([\d.]+) um", text)
    assert stated is not None
    for value, with_lengths in zip(stated.groups(), (False, True), strict=True):
        computed = 1e6 * bound(with_lengths=with_lengths, has_prior=False)
        assert computed == pytest.approx(float(value), abs=0.06)
