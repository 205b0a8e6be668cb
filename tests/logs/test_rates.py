"""Rates of positions by sine series: what they lose, their ends, and the cut-off that the noise allows."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.signal

from tauloop.common.errors import InputError
from tauloop.logs import (
    Preparation,
    common_cutoff,
    decimate,
    prepared_signals,
    smooth_rates,
    with_cutoffs,
)
from tauloop.logs.log import Channel, Signals
from tauloop.logs.rates import (
    HIGHEST_CUTOFF,
    allowed_cutoff,
    amplitude_loss,
    top_of_motion,
)
from tauloop.logs.signals import (
    MAX_WHOLE_RECORD,
    MIN_PIECE_SAMPLES,
    butterworth,
    central_differences,
    filter_reach,
    low_pass,
)

RATE = 200.0
TIME = np.arange(4000) / RATE
#: Two sines, Hz: of the second central differences take 0.33 % of the acceleration.
SLOW, FAST = 0.7, 2.8
#: Rounding of a transform, as a share of the largest value; of a second derivative.
ROUNDING, ROUNDED_RATES = 1e-9, 1e-7


def motion(time: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    slow, fast = 2.0 * np.pi * SLOW, 2.0 * np.pi * FAST
    position = 1.0 + 0.3 * np.sin(slow * time + 1.0) + 0.1 * np.sin(fast * time)
    velocity = 0.3 * slow * np.cos(slow * time + 1.0) + 0.1 * fast * np.cos(fast * time)
    acceleration = -0.3 * slow**2 * np.sin(slow * time + 1.0) - 0.1 * fast**2 * np.sin(fast * time)
    return position, velocity, acceleration


def share(values: np.ndarray, true: np.ndarray) -> float:
    return float(np.abs(values - true).max() / np.abs(true).max())


def test_rates_lose_nothing_that_central_differences_lose() -> None:
    position, velocity, acceleration = motion(TIME)
    inside = slice(200, -200)
    smooth, first, second = smooth_rates(position, rate=RATE, cutoffs=(60.0, 60.0, 60.0), order=4)
    assert share(smooth[inside], position[inside]) < ROUNDING
    assert share(first[inside], velocity[inside]) < ROUNDED_RATES
    assert share(second[inside], acceleration[inside]) < ROUNDED_RATES
    differences = central_differences(central_differences(position, 1.0 / RATE), 1.0 / RATE)
    assert share(differences[inside], acceleration[inside]) > 1e-3


def test_ends_are_as_good_as_the_record_is_smooth() -> None:
    position, _, acceleration = motion(TIME)
    *_, second = smooth_rates(position, rate=RATE, cutoffs=(20.0, 20.0, 20.0), order=4)
    # an odd continuation would have lost all of it at both ends
    assert share(second, acceleration) < 0.02


def test_the_low_pass_is_that_of_butterworth_inside() -> None:
    noise = np.random.default_rng(1).normal(size=4000)
    (smooth,) = smooth_rates(noise, rate=RATE, cutoffs=(15.0,), order=3)
    filtered = butterworth(noise, rate=RATE, cutoff=15.0, order=3)
    assert share(smooth[400:-400], filtered[400:-400]) < ROUNDING


def test_pieces_of_a_long_record_join() -> None:
    noise = np.cumsum(np.random.default_rng(2).normal(size=3 * MIN_PIECE_SAMPLES))
    whole = smooth_rates(noise, rate=RATE, cutoffs=(10.0, 10.0, 20.0), order=2)
    seam = slice(MIN_PIECE_SAMPLES - 3000, MIN_PIECE_SAMPLES + 3000)
    alone = smooth_rates(noise[seam], rate=RATE, cutoffs=(10.0, 10.0, 20.0), order=2)
    for long, short in zip(whole, alone, strict=True):
        assert share(long[seam][1500:-1500], short[1500:-1500]) < ROUNDED_RATES


def test_a_long_record_is_low_passed_in_pieces() -> None:
    """Away from its ends it equals the filter that runs both ways, sample by sample."""
    noise = np.random.default_rng(4).normal(size=(MAX_WHOLE_RECORD + 5000, 2)).cumsum(axis=0)
    ours = butterworth(noise, rate=RATE, cutoff=20.0, order=3)
    sections = scipy.signal.butter(3, 20.0, fs=RATE, output="sos")
    other = scipy.signal.sosfiltfilt(sections, noise, axis=0)
    assert share(ours[500:-500], other[500:-500]) < ROUNDING


@pytest.mark.parametrize("bits", [19, 16, 12])
def test_the_noise_of_an_encoder_allows_a_cut_off_at_which_accelerations_are_good(
    bits: int,
) -> None:
    position, _, acceleration = motion(TIME)
    step = 2.0 * np.pi / 2**bits
    read = step * np.round(position / step)
    cutoff = allowed_cutoff(read, rate=RATE, order=4)
    assert 1.5 * FAST < cutoff < 40.0
    *_, second = smooth_rates(read, rate=RATE, cutoffs=(cutoff,) * 3, order=4)
    errors = (second - acceleration)[200:-200]
    assert errors.std() < {19: 0.003, 16: 0.01, 12: 0.1}[bits] * acceleration.std()


def test_a_log_without_noise_or_motion_keeps_all_frequencies() -> None:
    position, *_ = motion(TIME)
    assert allowed_cutoff(position, rate=RATE, order=4) == pytest.approx(HIGHEST_CUTOFF * RATE)
    assert allowed_cutoff(np.full(4000, 0.3), rate=RATE, order=4) == pytest.approx(
        HIGHEST_CUTOFF * RATE
    )


def test_what_the_low_pass_takes_at_the_top_of_the_motion_is_known() -> None:
    position, *_ = motion(TIME)
    top = top_of_motion(position, rate=RATE, order=4)
    assert top == pytest.approx(FAST, rel=0.2)
    loss = amplitude_loss(FAST, rate=RATE, cutoff=3.0, order=2)
    *_, second = smooth_rates(
        np.sin(2.0 * np.pi * FAST * TIME), rate=RATE, cutoffs=(3.0, 3.0, 6.0), order=2
    )
    assert second[1000:3000].max() == pytest.approx(
        (1.0 - loss) * (2.0 * np.pi * FAST) ** 2, rel=1e-3
    )


def test_forces_and_a_regressor_pass_one_filter() -> None:
    """A second stage behind the decimation: what passes both is the product of both gains."""
    impulse = np.zeros((4001, 1))
    impulse[2000] = 1.0
    both = decimate(impulse, 5, 0.02)
    np.testing.assert_allclose(both, low_pass(decimate(impulse, 5), 0.1), atol=0.0)
    assert filter_reach(5, 0.02) == 10 + 50
    nonzero = np.flatnonzero(both)
    assert nonzero.max() - 400 <= filter_reach(5, 0.02)
    gain = np.abs(np.fft.rfft(low_pass(impulse[:, 0], 0.1)))
    frequency = np.fft.rfftfreq(4001)
    assert gain[np.argmin(np.abs(frequency - 0.1))] == pytest.approx(0.5, abs=0.01)
    assert low_pass(impulse, HIGHEST_CUTOFF) is impulse


def log_of(*positions: np.ndarray) -> Signals:
    channels = (
        Channel(quantity="position", channel=f"motor_{k}", values=values, unit="rad")
        for k, values in enumerate(positions, start=1)
    )
    return Signals(time=TIME, channels=tuple(channels))


def test_channels_without_a_cut_off_have_their_own_and_the_lowest_is_common() -> None:
    position, *_ = motion(TIME)
    coarse = 1e-3 * np.round(position / 1e-3)
    log = log_of(position, coarse)
    settled = with_cutoffs(log, Preparation(cutoff=None))
    assert settled.cutoffs["motor_1"] > settled.cutoffs["motor_2"]
    assert common_cutoff(log, settled) == pytest.approx(settled.cutoffs["motor_2"] / RATE)
    assert with_cutoffs(log, settled) == settled
    assert common_cutoff(log, Preparation(cutoff=None)) is None
    stated = with_cutoffs(log, Preparation(cutoff=None, cutoffs={"motor_2": 12.0}))
    assert stated.cutoffs["motor_2"] == 12.0


def test_a_reversal_stays_where_it_is_when_friction_bends_the_velocity() -> None:
    """A velocity whose slope jumps at its reversal: behind 10 Hz it would reverse 6 ms early."""
    time = TIME - 10.0
    position = np.where(time < 0.0, 0.5 * time**2, 0.5 * 6.0 * time**2) * np.exp(-np.abs(time))
    prepared = prepared_signals(log_of(position), Preparation(cutoff=10.0))
    velocity = next(
        channel.values for channel in prepared.channels if channel.quantity == "velocity"
    )
    near = slice(1900, 2100)
    assert np.abs(time[near][np.argmin(np.abs(velocity[near]))]) < 1.5 / RATE
    _, slow = smooth_rates(position, rate=RATE, cutoffs=(10.0, 10.0), order=4)
    assert np.abs(time[near][np.argmin(np.abs(slow[near]))]) > 1.5 / RATE


def test_too_few_samples_are_refused() -> None:
    with pytest.raises(InputError, match="2 samples are too few to differentiate"):
        smooth_rates(np.zeros(2), rate=RATE, cutoffs=(20.0,), order=4)
