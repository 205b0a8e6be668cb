"""Do 95 % intervals cover 95 %? Monte Carlo on a five-bar, and the bias from noise of the positions.

    python benchmarks/interval_coverage.py [--runs 2000] [--noisy-runs 200] [--stressed-runs 60]
    [--json]

First only the torques are noisy: white noise, through a running mean (of the drive) and the
decimation that the torques of every log go through; "filter known" states both. Whole fits
(weighted least squares), all base parameters pooled, by each model of the errors. Then the encoders
are noisy too, and so is the regressor: least squares is biased, which no standard deviation shows,
so its bias is listed separately, together with instruments of the commanded motion
(`InstrumentalVariables`), which have none.

Last, four logs of 15 s with other motions, and a model that omits an effect (`STRESSES`):
differences between logs are covered by deviations clustered by log and by separate fits of logs;
errors that are the same in all logs are covered by none.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.stats import norm

from tauloop import Model, load
from tauloop.compiler.c import Compiled
from tauloop.identification import (
    AutocorrelatedErrors,
    ClusteredErrors,
    ErrorModel,
    Estimator,
    FilteredErrors,
    Identification,
    IndependentErrors,
    InstrumentalVariables,
    RegressionData,
    WeightedLeastSquares,
    compare_logs,
    fit_regression,
    merge_data,
    motion_regressor,
    parameter_ties,
    regression_data,
)
from tauloop.logs import Preparation, Sensors, decimate, measure
from tauloop.motion import SampledMotion, random_multisine

MACHINE = "five_bar"
RATE, SAMPLES, FACTOR = 400.0, 1500, 5
PREPARATION = Preparation(cutoff=30.0, decimation=FACTOR, trim=0)
#: Standard deviation of the white noise of torques, N m, and samples of the running mean that it
#: goes through.
NOISE, MEAN = 0.1, 12
#: Encoder noise of the second part, rad.
ENCODERS = (1e-4, 3e-4, 1e-3)
QUANTILE = float(norm.ppf(0.975))


class Arm:
    """The five-bar, its motion, exact regressor and true parameters."""

    def __init__(self) -> None:
        self.model = Model(load(MACHINE), evaluator=Compiled(at_least=0))
        self.ties = parameter_ties(self.model)
        center = self.model.actuator_position(self.model.assembly.q)
        multisine = random_multisine(
            center, np.full(2, 0.3), np.random.default_rng(1), terms=4, lowest=0.5, highest=2.5
        )
        self.motion: SampledMotion = multisine.sample(np.arange(SAMPLES) / RATE)
        self.outputs, self.units = self.model.output_ports("actuators")
        start = self.model.actuators.track(self.motion.position).q
        given = (self.motion.position, self.motion.velocity, self.motion.acceleration)
        whole = self.model.actuators.regressor(*given, start=start)
        self.forces = whole @ self.model.pi
        exact = decimate(whole, FACTOR)
        self.data = RegressionData(
            regressor=exact,
            forces=exact @ self.model.pi,
            parameters=tuple(p.name for p in self.model.parameters),
            parameter_units=tuple(p.unit for p in self.model.parameters),
            outputs=self.outputs,
            output_units=self.units,
            ties=self.ties,
        )
        first = fit_regression(
            self.with_noise(np.random.default_rng(0)), None, WeightedLeastSquares()
        )
        self.base = first.base
        leaves = [self.model.mechanism.parameters[name].value for name in self.ties.parameters]
        self.true = self.base.regroup(np.array(leaves))

    def with_noise(self, rng: np.random.Generator) -> RegressionData:
        """Return the exact regressor, and torques with noise that was decimated with them."""
        return replace(self.data, forces=self.data.forces + decimate(torque_errors(rng), FACTOR))

    def logged(self, encoder: float, rng: np.random.Generator) -> tuple[RegressionData, np.ndarray]:
        """Return data from noisy positions, and the regressor of the commanded motion prepared the same way."""
        units = self.model.actuators.ports.position.units
        exact = Sensors(resolution=np.zeros(2), force_noise=np.zeros(2))
        moved, forces = self.motion, self.forces + torque_errors(rng)
        logs = [
            measure(
                moved.time,
                moved.position + noise,
                forces,
                self.outputs,
                units,
                self.units,
                exact,
                rng,
            )
            for noise in (encoder * rng.standard_normal(moved.position.shape), 0.0)
        ]
        inner = slice(10, -10)  # without the end effects of filters
        data = regression_data(self.model, logs[0], PREPARATION, ties=self.ties)
        return data.part(inner), motion_regressor(self.model, logs[1], PREPARATION)[inner]

    def errors(self, result: Identification) -> tuple[np.ndarray, np.ndarray]:
        """Return errors of the base parameters, and the same in standard deviations."""
        return result.values - self.true, (result.values - self.true) / result.standard_deviations


def torque_errors(rng: np.random.Generator) -> np.ndarray:
    """Return white noise (SAMPLES, 2) through a running mean."""
    white = NOISE * rng.standard_normal((SAMPLES + MEAN, 2))
    sums = np.cumsum(white, axis=0)
    return (sums[MEAN:] - sums[:-MEAN]) / MEAN


def known_correlation() -> np.ndarray:
    """Return the correlation of these errors after the decimation, at lags 0, 1, ..."""
    running = sum(np.eye(SAMPLES, SAMPLES + MEAN - 1, k) for k in range(MEAN)) / MEAN
    rows = decimate(running, FACTOR)
    middle = len(rows) // 2
    correlation = rows[middle : middle + 40] @ rows[middle]
    return correlation / correlation[0]


def torque_noise(arm: Arm, runs: int) -> list[dict[str, object]]:
    """Return the coverage by each model of the errors; the regressor is exact."""
    models: dict[str, ErrorModel] = {
        "filter known": FilteredErrors(correlation=known_correlation()),
        "autocorrelated": AutocorrelatedErrors(),
        "independent": IndependentErrors(),
    }
    rng = np.random.default_rng(12)
    inside: dict[str, list[np.ndarray]] = {name: [] for name in models}
    for _ in range(runs):
        data = arm.with_noise(rng)
        for name, model in models.items():
            result = fit_regression(data, None, WeightedLeastSquares(), base=arm.base, errors=model)
            inside[name].append(np.abs(arm.errors(result)[1]) < QUANTILE)
    return [
        {
            "errors": name,
            "runs": runs,
            "parameters": arm.base.rank,
            "covered": float(np.mean(found)),
        }
        for name, found in inside.items()
    ]


def position_noise(arm: Arm, runs: int) -> list[dict[str, object]]:
    """Return bias and coverage of least squares and of instruments, where the regressor is noisy."""
    rng = np.random.default_rng(13)
    errors = AutocorrelatedErrors()
    rows = []
    for encoder in ENCODERS:
        found: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {
            "least squares": [],
            "instruments": [],
        }
        for _ in range(runs):
            data, commanded = arm.logged(encoder, rng)
            estimators: tuple[Estimator, ...] = (
                WeightedLeastSquares(),
                InstrumentalVariables(instruments_of=commanded),
            )
            for name, estimator in zip(found, estimators, strict=True):
                found[name].append(
                    arm.errors(fit_regression(data, None, estimator, base=arm.base, errors=errors))
                )
        for name, pairs in found.items():
            deviations = np.array([relative for _, relative in pairs])
            mean = np.mean([error for error, _ in pairs], axis=0)
            scatter = np.std([error for error, _ in pairs], axis=0)
            worst = int(np.argmax(np.abs(mean) / scatter))
            rows.append(
                {
                    "encoder_noise": encoder,
                    "estimator": name,
                    "runs": runs,
                    "largest_bias_in_scatters": float(np.abs(mean[worst]) / scatter[worst]),
                    "of": arm.base.base[worst].short_name(),
                    "relative_bias": float(mean[worst] / arm.true[worst]),
                    "covered": float(np.mean(np.abs(deviations) < QUANTILE)),
                }
            )
    return rows


#: Effects that a model omits: friction that falls by 10 to 40 % in each log and starts 20 % higher
#: or lower; drives whose scale differs by 2 % from log to log; a ripple of 3 % with a different
#: phase in each log; Stribeck friction of 5 %; forces 2 ms late; an elastic transmission with a
#: resonance at 12 Hz.
STRESSES = ("nothing", "drift", "scale", "ripple", "Stribeck", "late", "bending")
STRESSED_RATE, STRESSED_SECONDS, LOGS = 200.0, 15.0, 4
STRESSED = Preparation(cutoff=20.0, trim=40, decimation=5)


def stressed_log(arm: Arm, stress: str, seed: int, rng: np.random.Generator) -> RegressionData:
    """Return regression data of one log with the omitted effect."""
    model = arm.model
    center = model.actuator_position(model.assembly.q)
    multisine = random_multisine(
        center, np.full(2, 0.3), np.random.default_rng(seed), terms=5, lowest=0.2, highest=1.6
    )
    moved = multisine.sample(np.arange(round(STRESSED_RATE * STRESSED_SECONDS)) / STRESSED_RATE)
    start = model.actuators.track(moved.position).q
    regressor = model.actuators.regressor(
        moved.position, moved.velocity, moved.acceleration, start=start
    )
    rubbing = np.array([parameter.role in ("viscous", "coulomb") for parameter in model.parameters])
    friction, smooth = (regressor @ np.where(part, model.pi, 0.0) for part in (rubbing, ~rubbing))
    forces, time = friction + smooth, moved.time
    size, along = forces.std(axis=0), (time / time[-1])[:, None]
    added = {
        "nothing": lambda: 0.0,
        "drift": lambda: friction * (rng.uniform(-0.2, 0.2) - rng.uniform(0.1, 0.4) * along),
        "scale": lambda: forces * rng.normal(0.0, 0.02, 2),
        "ripple": lambda: 0.03 * size * np.sin(25.0 * moved.position + rng.uniform(0.0, 6.28)),
        "Stribeck": lambda: (
            0.05 * size * np.sign(moved.velocity) * np.exp(-np.abs(moved.velocity) / 0.2)
        ),
        "late": lambda: -2e-3 * np.gradient(smooth, time, axis=0),
        "bending": lambda: (
            -np.gradient(np.gradient(smooth, time, axis=0), time, axis=0)
            / (2.0 * np.pi * 12.0) ** 2
        ),
    }[stress]()
    sensors = Sensors(resolution=np.zeros(2), force_noise=0.01 * size)
    position = moved.position + 1e-5 * rng.standard_normal(moved.position.shape)
    units = model.actuators.ports.position.units
    log = measure(time, position, forces + added, arm.outputs, units, arm.units, sensors, rng)
    return regression_data(model, log, STRESSED, ties=arm.ties)


def stressed(arm: Arm, runs: int) -> list[dict[str, object]]:
    """Return the coverage where the model omits an effect, and how often logs are found to differ."""
    models: dict[str, ErrorModel] = {
        "independent": IndependentErrors(),
        "autocorrelated": AutocorrelatedErrors(),
        "blocks": ClusteredErrors(),
        "logs": ClusteredErrors(by="log"),
    }
    rows = []
    for stress in STRESSES:
        inside: dict[str, list[np.ndarray]] = {name: [] for name in (*models, "logs apart")}
        found_to_differ = 0
        for run in range(runs):
            rng = np.random.default_rng(1000 + run)
            parts = [stressed_log(arm, stress, 10 * run + k, rng) for k in range(LOGS)]
            everything = merge_data(parts)
            base = fit_regression(everything, None, WeightedLeastSquares()).base
            true = base.regroup(
                np.array([arm.model.mechanism.parameters[name].value for name in base.parameters])
            )
            for name, errors in models.items():
                result = fit_regression(
                    everything, None, WeightedLeastSquares(), base=base, errors=errors
                )
                inside[name].append(
                    np.abs(result.values - true) < QUANTILE * result.standard_deviations
                )
            apart = compare_logs(
                parts, list("abcd"), base, WeightedLeastSquares(), errors=AutocorrelatedErrors()
            )
            inside["logs apart"].append(
                np.abs(apart.means - true) < QUANTILE * apart.mean_deviations
            )
            found_to_differ += bool(apart.moved.any())
        covered = {name: float(np.mean(found)) for name, found in inside.items()}
        rows.append(
            {"left out": stress, "runs": runs, **covered, "found to differ": found_to_differ / runs}
        )
    return rows


def main(arguments: list[str] | None = None) -> int:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--runs", type=int, default=2000, help="with exact positions (default 2000)"
    )
    parser.add_argument(
        "--noisy-runs", type=int, default=200, help="with noisy positions (default 200)"
    )
    parser.add_argument(
        "--stressed-runs", type=int, default=60, help="with wrong models (default 60)"
    )
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    arm = Arm()
    first, second = torque_noise(arm, options.runs), position_noise(arm, options.noisy_runs)
    third = stressed(arm, options.stressed_runs)
    if options.json:
        print(
            json.dumps(
                {"torque_noise": first, "position_noise": second, "stressed": third}, indent=2
            )
        )
        return 0
    screen = Console()
    tables = (
        ("Noise of the torques alone", first),
        ("Noise of the positions too", second),
        (f"{LOGS} logs, and something left out", third),
    )
    for title, rows in tables:
        table = Table(*rows[0], title=title, title_justify="left")
        for row in rows:
            table.add_row(
                *(f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in row.values())
            )
        screen.print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
