"""Operations on uniformly sampled signals: zero-phase filter, derivatives, decimation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from tauloop.common.counts import counted
from tauloop.common.errors import InputError
from tauloop.logs.log import Log, as_signals

#: Largest deviation of time stamps from a uniform grid between the first and the last stamp, in
#: sampling periods. Coarse clocks do not exceed it; changing sampling rates do.
UNEVEN_PERIODS = 1.0
#: Half length of the decimation filter in samples, per unit of the factor (as in
#: `scipy.signal.decimate`).
_HALF_LENGTH = 10
#: Number of decimated samples computed at a time.
_OUTPUTS_AT_ONCE = 512
#: Number of decimated samples per matrix product. It is small, because the matrix is banded, but
#: large enough to use the processor efficiently.
_OUTPUTS_PER_PRODUCT = 16
#: Minimum number of samples for central differences.
MIN_DIFFERENCE_SAMPLES = 3
#: Minimum number of samples to filter at a time.
MIN_PIECE_SAMPLES = 16_384
#: Relative size to which the filter's impulse response decays over the overlap between pieces.
PIECE_TOLERANCE = 1e-10
#: Records with more samples than this are low-passed in pieces.
MAX_WHOLE_RECORD = 131_072
#: Largest automatic cutoff as a fraction of the sampling rate. A signal with a higher cutoff is
#: not filtered.
HIGHEST_CUTOFF = 0.45


def sample_period(log: Log) -> float:
    """Return the mean time between samples, s.

    Raises:
        InputError: there are fewer than two samples, or the time stamps are not evenly spaced.
    """
    time = as_signals(log).time
    if len(time) < 2:
        raise InputError.of(
            "log",
            f"{counted(len(time), 'sample', 'do')} not define a sampling rate",
            "record a longer log",
        )
    period = (time[-1] - time[0]) / (len(time) - 1)
    deviations = np.abs(time - time[0] - period * np.arange(len(time)))
    worst = int(deviations.argmax())
    if deviations[worst] > UNEVEN_PERIODS * period:
        what = (
            f"not evenly sampled: the stamp at {time[worst]:.6g} s deviates by "
            f"{deviations[worst]:.3g} s from an even grid of "
            f"{period:.6g} s"
        )
        raise InputError.of(
            "time", what, "resample the log evenly, or use a part with one sampling rate"
        )
    return float(period)


def butterworth(x: np.ndarray, *, rate: float, cutoff: float, order: int) -> np.ndarray:
    """Return samples after a Butterworth low-pass that runs forwards and backwards (zero phase).

    The two passes of the digital filter (bilinear transform) have zero phase and, at a frequency f,
    the gain 1 / (1 + (tan(pi f / rate) / tan(pi cutoff / rate))^(2 order)) (Oppenheim and Schafer,
    Discrete-time signal processing, 3rd ed., section 7.2):

    - First, the record is padded at its end with reflected samples to a length that suits the fast
      Fourier transform.
    - The record minus the line from its first to its last sample is expanded in sines. This is
      equivalent to extending both ends by odd reflection.
    - The coefficients of the sines are multiplied by the gain.

    Long records are filtered in overlapping pieces, which changes results by a fraction of about
    1e-10. Away from the ends, the result equals `scipy.signal.sosfiltfilt`, but this method works
    for any order and cutoff. Also, importing `scipy.signal` takes longer than an identification.

    Args:
        x: evenly spaced samples (N, ...).
        rate: samples per second, Hz.
        cutoff: -3 dB frequency of one pass, Hz.
        order: order of one pass.

    Returns:
        Filtered samples (N, ...).

    Raises:
        InputError: the cutoff is not between zero and half the rate, or there are too few samples.
    """
    import scipy.fft  # SciPy is an optional dependency, which reading most logs does not need

    require_filter(len(x), rate, cutoff, order)
    smooth = np.empty(x.shape)
    columns = x.reshape(len(x), -1)
    outputs = smooth.reshape(len(x), -1)
    pieces = [(slice(0, len(x)), slice(0, len(x)))]
    if len(x) > MAX_WHOLE_RECORD:
        pieces = list(pieces_of_record(len(x), rate / cutoff, order))
    gains: dict[int, np.ndarray] = {}
    for piece, valid in pieces:
        last = scipy.fft.next_fast_len(piece.stop - piece.start - 1)
        # position in the padded record, and frequency of the sines relative to half the rate
        fraction = np.linspace(0.0, 1.0, last + 1)
        if last not in gains:
            gains[last] = gain_of_sines(fraction, rate=rate, cutoff=cutoff, order=order)
        inside = slice(valid.start - piece.start, valid.stop - piece.start)
        # column by column, to save memory
        for column, output in zip(columns[piece].T, outputs[valid].T, strict=True):
            output[:] = _low_passed(column, fraction, gains[last])[inside]
    return smooth


def pieces_of_record(count: int, cutoff_period: float, order: int) -> Iterator[tuple[slice, slice]]:
    """Yield the pieces of a record that are filtered separately, and the valid samples of each.

    Short transforms fit in the processor's cache. Pieces overlap by the length of the filter's
    impulse response, whose slowest pole decays as exp(-2 pi sin(pi / (2 order)) t / cutoff_period).

    Args:
        count: number of samples.
        cutoff_period: 1 / cutoff, in samples.
        order: order of the filter.
    """
    decay_rate = 2.0 * np.pi * np.sin(0.5 * np.pi / order) / cutoff_period
    margin = int(-np.log(PIECE_TOLERANCE) / decay_rate) + 1
    length = max(MIN_PIECE_SAMPLES, 4 * margin)
    start = 0
    while start < count:
        stop = min(start + length, count)
        if count - stop < margin:
            stop = count
        yield slice(max(start - margin, 0), min(stop + margin, count)), slice(start, stop)
        start = stop


def require_filter(count: int, rate: float, cutoff: float, order: int) -> None:
    """Reject a cutoff that is impossible at this sampling rate, or a record that is too short.

    Raises:
        InputError: the cutoff is not between zero and half the rate, or there are too few samples.
    """
    require_cutoff(rate, cutoff)
    needed = 3 * (order + 1) + 1
    if count < needed:
        samples = counted(count, "sample", "are")
        what = f"{samples} too few for a filter of order {order}, which needs {needed}"
        raise InputError.of("log", what, "record a longer log, or lower the order")


def require_cutoff(rate: float, cutoff: float) -> None:
    """Reject a cutoff that is not between zero and half the sampling rate.

    Raises:
        InputError: the cutoff is not between zero and half the rate.
    """
    if not 0.0 < cutoff < 0.5 * rate:
        what = f"{cutoff:g} Hz is not between zero and half the sampling rate, {0.5 * rate:g} Hz"
        raise InputError.of(
            "cutoff",
            what,
            "choose a lower cutoff, or omit it to have it chosen from the noise; if the rate is wrong, "
            "check the unit of the time column",
        )


def gain_of_sines(frequencies: np.ndarray, *, rate: float, cutoff: float, order: int) -> np.ndarray:
    """Return the gain (N - 2,) of a two-way Butterworth filter for every sine of a record.

    The sines at both ends of the frequency range are zero and have no gain.

    Args:
        frequencies: frequencies of the sines, relative to half the sampling rate (N,): from zero to
            one in equal steps, including both ends.
        rate, cutoff, order: as for `butterworth`.
    """
    with np.errstate(over="ignore"):  # far above the cutoff the gain is zero
        gain = np.tan(0.5 * np.pi * frequencies[1:-1])
        gain /= np.tan(np.pi * cutoff / rate)
        gain = _to_power(gain, 2 * order)
        gain += 1.0
        return np.asarray(np.reciprocal(gain, out=gain))


def _to_power(x: np.ndarray, exponent: int) -> np.ndarray:
    """Return x to a positive whole power by repeated squaring, much faster than `numpy.power`."""
    result: np.ndarray | None = None
    while True:
        if exponent % 2:
            result = x.copy() if result is None else np.multiply(result, x, out=result)
        exponent //= 2
        if not exponent:
            break
        x = x * x
    return np.asarray(result)


def _low_passed(x: np.ndarray, position: np.ndarray, gain: np.ndarray) -> np.ndarray:
    """Return samples (N,) after multiplying their sines by the gain (see `butterworth`).

    Args:
        x: samples (N,).
        position: position in the padded record (M,), from zero to one.
        gain: gain of each sine (M - 2,).
    """
    import scipy.fft

    padding = len(position) - len(x)
    # odd reflection about the last sample
    reflected = 2.0 * x[-1] - x[len(x) - 1 - padding : -1][::-1]
    padded = np.concatenate([x, reflected])
    line = padded[0] * (1.0 - position) + padded[-1] * position
    sines = scipy.fft.dst((padded - line)[1:-1], type=1, overwrite_x=True)
    sines *= gain
    line[1:-1] += scipy.fft.idst(sines, type=1, overwrite_x=True)
    return line[: len(x)]


def central_differences(x: np.ndarray, period: float) -> np.ndarray:
    """Return the derivative (x[k+1] - x[k-1]) / (2 T); the ends have second-order accuracy too.

    Args:
        x: samples (N, ...), N >= 3.
        period: sampling period T, s.

    Returns:
        Derivatives (N, ...).

    Raises:
        InputError: there are fewer than three samples.
    """
    if len(x) < MIN_DIFFERENCE_SAMPLES:
        what = f"{counted(len(x), 'sample', 'are')} too few for central differences"
        raise InputError.of("x", what, f"give at least {MIN_DIFFERENCE_SAMPLES}")
    return np.asarray(np.gradient(x, period, axis=0, edge_order=2))


def integrated(velocity: np.ndarray, period: float) -> np.ndarray:
    """Return the integral (N,) by the trapezoidal rule, starting at zero."""
    return np.concatenate([[0.0], np.cumsum(0.5 * period * (velocity[1:] + velocity[:-1]))])


def decimate(x: np.ndarray, factor: int, cutoff: float | None = None) -> np.ndarray:
    """Return every `factor`-th sample after a zero-phase low-pass at half the new rate.

    The filter is that of ``scipy.signal.decimate(x, factor, ftype="fir", zero_phase=True)``: a
    Hamming-windowed sinc with 20 factor + 1 taps, with zeros beyond the ends. It is applied to all
    columns at once by matrix products, which only compute the returned samples. With `cutoff`, the
    result is filtered again (`low_pass`).

    Args:
        x: samples (N, ...) with any number of columns, such as a regressor (N, outputs,
            parameters).
        factor: decimation factor; 1 returns every sample.
        cutoff: cutoff of `low_pass`, as a fraction of the sampling rate of x.

    Returns:
        Samples (ceil(N / factor), ...); sample k belongs to the time of sample k * factor of x.

    Raises:
        InputError: the factor is not a positive integer, or there are fewer samples than taps (for
            a factor above 1).
    """
    _require_taps(len(x), factor)
    decimated = x if factor == 1 else decimate_in_parts(lambda part: x[part], len(x), factor)
    return decimated if cutoff is None else low_pass(decimated, cutoff * factor)


def low_pass(x: np.ndarray, cutoff: float) -> np.ndarray:
    """Return samples after a zero-phase low-pass: the filter of `decimate` for any cutoff.

    The cutoff corresponds to a decimation factor of 1 / (2 cutoff).

    Args:
        x: samples (N, ...). Samples beyond the ends count as zero.
        cutoff: -6 dB frequency as a fraction of the sampling rate; `HIGHEST_CUTOFF` and higher
            values do not filter.
    """
    if cutoff >= HIGHEST_CUTOFF:
        return x
    return _filtered_in_parts(lambda part: x[part], len(x), 1, 0.5 / cutoff)


def decimate_in_parts(evaluate: Callable[[slice], np.ndarray], n: int, factor: int) -> np.ndarray:
    """Return the result of `decimate` for samples that are computed in parts.

    Args:
        evaluate: function that returns the samples (M, ...) of a slice of M samples. Slices
            overlap by the length of the filter.
        n: total number of samples.
        factor: decimation factor, at least 1.

    Raises:
        InputError: the factor is not a positive integer, or there are fewer samples than taps (for
            a factor above 1).
    """
    _require_taps(n, factor)
    return _filtered_in_parts(evaluate, n, factor, factor)


def _filtered_in_parts(
    evaluate: Callable[[slice], np.ndarray], n: int, factor: int, half_period: float
) -> np.ndarray:
    """Return every `factor`-th sample after a low-pass.

    Args:
        evaluate, n, factor: as for `decimate_in_parts`.
        half_period: half of 1 / cutoff of the low-pass, in samples.
    """
    band = _band(factor, half_period)
    step = _OUTPUTS_PER_PRODUCT * factor
    half = _half_length(half_period)
    count = -(-n // factor)
    decimated: np.ndarray | None = None
    for first in range(0, count, _OUTPUTS_AT_ONCE):
        outputs = min(_OUTPUTS_AT_ONCE, count - first)
        start = first * factor - half
        stop = start + (-(-outputs // _OUTPUTS_PER_PRODUCT) - 1) * step + band.shape[1]
        x = evaluate(slice(max(0, start), min(n, stop)))
        columns = x.reshape(len(x), -1)
        # many columns of a regressor are zero
        used = np.flatnonzero(columns.any(axis=0))
        if len(used) < columns.shape[1]:
            columns = np.take(columns, used, axis=1)
        if start < 0 or stop > n:
            columns = np.pad(columns, ((max(0, -start), max(0, stop - n)), (0, 0)))
        # (products, columns, inputs)
        windows = sliding_window_view(columns, band.shape[1], axis=0)[::step]
        filtered = band @ windows.transpose(0, 2, 1)
        if decimated is None:  # the shape of the samples is known only now
            decimated = np.zeros((count, *x.shape[1:]))
        # the number of rows is explicit, because it cannot be inferred without columns
        rows = filtered.shape[0] * filtered.shape[1]
        part = decimated[first : first + outputs].reshape(outputs, -1)
        part[:, used] = filtered.reshape(rows, len(used))[:outputs]
    return np.empty(0) if decimated is None else decimated


@lru_cache(maxsize=4)
def _band(factor: int, half_period: float) -> np.ndarray:
    """Return the matrix (outputs, inputs) from samples to consecutive filtered samples."""
    half = _half_length(half_period)
    offsets = np.arange(-half, half + 1)
    impulse_response = np.hamming(len(offsets)) * np.sinc(offsets / half_period)
    impulse_response /= impulse_response.sum()
    outputs = np.arange(_OUTPUTS_PER_PRODUCT)
    band = np.zeros((len(outputs), factor * (len(outputs) - 1) + len(impulse_response)))
    band[outputs[:, None], factor * outputs[:, None] + np.arange(len(impulse_response))] = (
        impulse_response
    )
    band.flags.writeable = False
    return band


def _half_length(half_period: float) -> int:
    """Return half the length of a low-pass, in samples, for half its cutoff period."""
    return int(np.ceil(_HALF_LENGTH * half_period))


def filter_reach(factor: int, cutoff: float | None = None) -> int:
    """Return the number of decimated samples at each end that depend on zeros beyond the log.

    Args:
        factor, cutoff: as for `decimate`.
    """
    decimation_reach = 0 if factor == 1 else _HALF_LENGTH
    if cutoff is None or cutoff * factor >= HIGHEST_CUTOFF:
        return decimation_reach
    return decimation_reach + _half_length(0.5 / (cutoff * factor))


def _require_taps(n: int, factor: int) -> None:
    if not isinstance(factor, int) or factor < 1:
        raise InputError.of(
            "factor",
            f"must be a whole number of at least 1, got {factor}",
            "give 1 for no decimation",
        )
    if factor > 1 and n < taps(factor):
        what = (
            f"{counted(n, 'sample', 'are')} too few for decimation by {factor}: the filter has "
            f"{taps(factor)} taps"
        )
        raise InputError.of("x", what, "record a longer log, or decimate less")


def taps(factor: int) -> int:
    """Return the length of the filter of `decimate`, in samples."""
    return 2 * _HALF_LENGTH * factor + 1
