"""The two-run method: delays, noise and forces, compared with the formulas of the logs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from tauloop.common.errors import InputError, LogError
from tauloop.common.result import Status
from tauloop.identification.preparation.measured_log import MeasuredLog
from tauloop.identification.preparation.two_runs import (
    CONNECTED_FORCE,
    OWN_FORCE,
    SubtractionOptions,
    TwoRuns,
    subtract_actuator_forces,
)
from tauloop.logs import Preparation, read_log, read_signals, samples, write_log
from tauloop.logs.log import TIME, Channel, build_log
from tauloop.motion import Multisine

NAMES = ("a", "b", "held")
RATE, PERIOD = 100.0, 4.0
#: Error of the Fourier series of motions that it describes exactly: rounding.
ROUNDING_TOLERANCE = 1e-9
#: Error of a cubic spline through 100 samples a second of motions up to 2 Hz, as a share of the
#: amplitude.
SPLINE_TOLERANCE = 1e-5
#: Error of interpolated friction, which reverses within about ten samples, as a share of the error
#: of runs that are not aligned.
MAX_INTERPOLATION_SHARE = 0.06
#: Relative tolerance of a standard deviation from about 2 000 samples: five times its error of
#: 1.6 %.
NOISE_TOLERANCE = 0.08


@dataclass(frozen=True)
class Bench:
    """Two moving actuators and one that is held.

    The actuators' own force is 30 tanh(v / 0.3) + 5 a, that of the structure 40 q + 3 cos(q).
    """

    noise: float = 0.0
    seed: int = 0

    def log(
        self, delay: float, periods: int, connected: bool, names: tuple[str, ...] = NAMES
    ) -> xr.Dataset:
        rng = np.random.default_rng([self.seed, connected])
        time = np.arange(round(PERIOD * RATE * periods)) / RATE
        motion = Multisine(
            center=np.array([0.3, -0.1, 0.7]),
            amplitude=np.array([0.05, 0.08, 0.0]),
            frequency=2 * np.pi / PERIOD * np.array([[1, 4, 7], [2, 3, 8], [1, 2, 3]]),
            phase=np.array([0.2, 1.3, 0.0]),
        ).sample(time - delay)
        force = 30.0 * np.tanh(motion.velocity / 0.3) + 5.0 * motion.acceleration
        force = force + (self.structure(motion.position) if connected else 0.0)
        force = force + self.noise * rng.normal(size=force.shape)
        chosen = [NAMES.index(name) for name in names]
        return build_log(
            time,
            [
                Channel(quantity=quantity, channel=NAMES[k], values=values[:, k].copy(), unit=unit)
                for quantity, values, unit in (
                    ("position", motion.position, "m"),
                    ("force", force, "N"),
                )
                for k in chosen
                if not (quantity == "force" and NAMES[k] == "held")
            ],
        )

    @staticmethod
    def structure(position: np.ndarray) -> np.ndarray:
        return np.asarray(40.0 * position + 3.0 * np.cos(position))


def force_error(runs: TwoRuns) -> float:
    """Return the largest error of the structure's force."""
    truth = Bench.structure(samples(runs.log, "position", ("a", "b")))
    return float(np.abs(samples(runs.log, "force", ("a", "b")) - truth).max())


def test_runs_at_once_leave_the_structure_to_rounding() -> None:
    bench = Bench()
    structure = subtract_actuator_forces(bench.log(0.0, 1, True), bench.log(0.0, 1, False))
    assert structure.delay == pytest.approx(0.0, abs=1e-12)
    assert force_error(structure) < ROUNDING_TOLERANCE
    assert len(structure.log[TIME]) == round(PERIOD * RATE)
    together = samples(structure.log, "force") + samples(structure.log, OWN_FORCE)
    assert np.abs(together - samples(structure.log, CONNECTED_FORCE)).max() < ROUNDING_TOLERANCE
    assert set(structure.removed) == {"a", "b"}
    assert structure.noise == {}
    assert structure.status is Status.OK


@pytest.mark.parametrize("delay", [-0.731, 0.0042, 0.3])
def test_a_late_run_is_found_without_a_period(delay: float) -> None:
    bench = Bench()
    structure = subtract_actuator_forces(bench.log(0.0, 2, True), bench.log(delay, 2, False))
    assert structure.delay == pytest.approx(delay, abs=1e-6)
    assert max(structure.motion_mismatch.values()) < SPLINE_TOLERANCE
    # Only samples that both runs have are left.
    assert len(structure.log[TIME]) == pytest.approx(2 * PERIOD * RATE - abs(delay) * RATE, abs=1.0)
    unaligned = bench.log(delay, 2, False)["force.a"] - bench.log(0.0, 2, False)["force.a"]
    assert force_error(structure) < MAX_INTERPOLATION_SHARE * float(np.abs(unaligned).max())


@pytest.mark.parametrize("delay", [-0.55, 0.0137])
def test_periods_are_averaged_and_the_noise_is_carried_on(delay: float) -> None:
    bench = Bench(noise=2.0)
    structure = subtract_actuator_forces(
        bench.log(0.0, 16, True),
        bench.log(delay, 4, False, ("a", "b")),
        SubtractionOptions(period=PERIOD),
    )
    assert structure.periods == (16, 4)
    assert structure.delay == pytest.approx(delay, abs=1e-9)
    expected = 2.0 * np.sqrt(1 / 16 + 1 / 4)
    for name in ("a", "b"):
        assert structure.noise[name] == pytest.approx(expected, rel=NOISE_TOLERANCE)
    # The reference: the error of the forces is the noise, to which the Fourier shift adds nothing.
    quiet = Bench()
    exact = subtract_actuator_forces(
        quiet.log(0.0, 2, True),
        quiet.log(delay, 2, False, ("a", "b")),
        SubtractionOptions(period=PERIOD),
    )
    scatter = samples(structure.log, "force") - samples(exact.log, "force")
    assert scatter.std(axis=0) == pytest.approx([expected] * 2, rel=0.15)


def test_positions_of_all_actuators_stay_and_forces_of_one_run_go() -> None:
    bench = Bench()
    structure = subtract_actuator_forces(bench.log(0.0, 1, True), bench.log(0.0, 1, False, ("a",)))
    assert structure.unmatched == ("b",)
    assert set(structure.removed) == {"a"}
    assert "position.held" in structure.log
    assert "force.b" not in structure.log


def test_velocities_of_the_connected_run_stay_and_what_goes_is_said() -> None:
    bench = Bench()
    connected = bench.log(0.0, 2, True)
    speed = np.gradient(connected["position.a"].to_numpy(), 1.0 / RATE)
    for quantity in ("velocity", "temperature"):
        attributes = {"quantity": quantity, "channel": "a", "units": "m/s", "source": "a test"}
        connected = connected.assign({f"{quantity}.a": (("time",), speed, attributes)})
    structure = subtract_actuator_forces(connected, bench.log(0.0, 2, False))
    assert np.array_equal(structure.log["velocity.a"].to_numpy(), speed)
    assert structure.dropped == ("temperature.a",)


def test_other_motions_are_refused() -> None:
    bench = Bench()
    other = bench.log(0.0, 1, False)
    other["position.a"] = other["position.a"] * 1.3
    with pytest.raises(
        LogError, match=r"position\.a: differs between the runs by .* of its stroke"
    ):
        subtract_actuator_forces(bench.log(0.0, 1, True), other)


def test_motions_a_little_apart_are_doubtful() -> None:
    bench = Bench()
    other = bench.log(0.0, 1, False)
    other["position.a"] = other["position.a"] * 1.03
    structure = subtract_actuator_forces(bench.log(0.0, 1, True), other)
    assert structure.status is Status.DOUBTFUL
    assert "belong to another motion" in structure.advice[0]


def test_a_delay_beyond_the_search_is_refused() -> None:
    bench = Bench()
    with pytest.raises(LogError, match="allow a larger delay"):
        subtract_actuator_forces(
            bench.log(0.0, 2, True),
            bench.log(0.5, 2, False),
            SubtractionOptions(max_delay=0.05),
        )


def test_logs_that_do_not_belong_together_are_refused() -> None:
    bench = Bench()
    connected, disconnected = bench.log(0.0, 1, True), bench.log(0.0, 1, False)
    with pytest.raises(LogError, match="no channel has position and force in both runs"):
        subtract_actuator_forces(connected, disconnected.drop_vars(["force.a", "force.b"]))
    stretched = disconnected.assign_coords({TIME: disconnected[TIME] * 1.1})
    with pytest.raises(InputError, match="record both runs at the same rate"):
        subtract_actuator_forces(connected, stretched)
    disconnected["force.a"].attrs["units"] = disconnected["position.b"].attrs["units"] = "lb"
    with pytest.raises(LogError) as caught:
        subtract_actuator_forces(connected, disconnected)
    assert len(caught.value.problems) == 2
    still = connected.copy()
    for name in ("a", "b"):
        still[f"position.{name}"] = still[f"position.{name}"] * 0.0
    with pytest.raises(LogError, match="no actuator moves"):
        subtract_actuator_forces(still, bench.log(0.0, 1, False))
    with pytest.raises(InputError, match="fewer than two periods"):
        subtract_actuator_forces(
            connected, bench.log(0.0, 1, False), SubtractionOptions(period=PERIOD)
        )


def test_the_structure_is_written_with_its_noise(tmp_path: Path) -> None:
    bench = Bench(noise=1.0)
    connected = write_log(tmp_path / "connected.csv", bench.log(0.0, 4, True))
    disconnected = write_log(tmp_path / "disconnected.csv", bench.log(0.02, 4, False))
    out = tmp_path / "structure.csv"
    structure = subtract_actuator_forces(connected, disconnected, SubtractionOptions(period=PERIOD))
    document = structure.as_dict()
    assert document["delay"] == pytest.approx(0.02, abs=1e-9)
    assert document["noise"]["a"] == pytest.approx(np.sqrt(0.5), rel=NOISE_TOLERANCE)
    log = read_log(write_log(out, structure.log_with_noise()))
    assert np.array_equal(samples(log, "force"), samples(structure.log, "force"))
    # The log contains the noise of the average, by which `identify --period` weights it.
    noise = samples(log, "force_noise")
    assert noise == pytest.approx(np.tile(list(document["noise"].values()), (len(noise), 1)))
    measured = MeasuredLog(
        name="structure.csv", log=read_signals(out), preparation=Preparation(cutoff=None)
    )
    average = measured.averaged(PERIOD, 5.0).average
    assert average.periods == 1
    assert average.noise == pytest.approx(
        {f"force.{name}": value for name, value in document["noise"].items()}
    )
