"""Operations on evenly spaced samples: zero-phase filter, derivatives, decimation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from tauloop.common.counts import counted
from tauloop.common.errors import InputError
from tauloop.logs.log import Log, as_signals

#: Largest deviation of stamps from the even grid between the first and last stamp, in periods.
#: Coarse clocks do not exceed it; changing rates do.
UNEVEN_PERIODS = 1.0
#: Half length of the decimation filter in samples, per unit of the factor (as in
#: `scipy.signal.decimate`).
_HALF_LENGTH = 10
#: Number of decimated samples computed at a time, and per matrix product. The latter is small,
#: because the matrix is banded, but large enough to use the processor efficiently.
_OUTPUTS_AT_ONCE = 512
_OUTPUTS_PER_PRODUCT = 16
LEAST_FOR_DIFFERENCES = 3
#: Minimum number of samples to filter at a time, and the factor to which the filter's memory
#: decays over the overlap of pieces.
MIN_PIECE_SAMPLES, PIECE_COUPLING = 16_384, 1e-10
#: Records with more samples than this are low-passed in pieces.
MAX_WHOLE_RECORD = 131_072
#: Largest automatic cut-off as a fraction of the sampling rate; with a higher one nothing is
#: filtered.
HIGHEST_CUTOFF = 0.45


def sample_period(log: Log) -> float:
    """Return the mean time between samples, s.

    Raises:
        InputError: there are fewer than two samples, or the stamps are not evenly spaced.
    """
    time = as_signals(log).time
    if len(time) < 2:
        raise InputError.of(
            "log",
            f"{counted(len(time), 'sample', 'do')} not define a sampling rate",
            "record longer",
        )
    period = (time[-1] - time[0]) / (len(time) - 1)
    off = np.abs(time - time[0] - period * np.arange(len(time)))
    worst = int(off.argmax())
    if off[worst] > UNEVEN_PERIODS * period:
        what = (
            f"not evenly sampled: the stamp at {time[worst]:.6g} s deviates by {off[worst]:.3g} s from an even grid of "
            f"{period:.6g} s"
        )
        raise InputError.of(
            "time", what, "resample the log evenly, or use a part with one sampling rate"
        )
    return float(period)


def butterworth(x: np.ndarray, *, rate: float, cutoff: float, order: int) -> np.ndarray:
    """Return low-passed samples without phase shift: a Butterworth filter run both ways.

    The two passes of the digital filter (bilinear transform) have zero phase and, at a frequency f,
    the gain 1 / (1 + (tan(pi f / rate) / tan(pi cutoff / rate))^(2 order)) (Oppenheim and Schafer,
    Discrete-time signal processing, 3rd ed., section 7.2). This gain is applied to a sine series of
    the record minus the line from its first to its last sample. This continues both ends by odd
    reflection. Long records are filtered in overlapping pieces, which changes results by a fraction
    of about 1e-10. Before, a few reflected samples extend the record at its end to a length that suits
    the fast Fourier transform. Away from the ends, the result equals `scipy.signal.sosfiltfilt`,
    but this method works for any order and cut-off. Also, importing `scipy.signal` takes longer
    than an identification.

    Args:
        x: evenly spaced samples (N, ...).
        rate: samples per second, Hz.
        cutoff: -3 dB frequency of one pass, Hz.
        order: order of one pass.

    Returns:
        Filtered samples (N, ...).

    Raises:
        InputError: the cut-off is not below half the rate, or there are too few samples.
    """
    import scipy.fft  # SciPy is an optional dependency, which reading most logs does not need

    require_filter(len(x), rate, cutoff, order)
    smooth = np.empty(x.shape)
    columns, passed = x.reshape(len(x), -1), smooth.reshape(len(x), -1)
    pieces = [(slice(0, len(x)), slice(0, len(x)))]
    if len(x) > MAX_WHOLE_RECORD:
        pieces = list(pieces_of_record(len(x), rate / cutoff, order))
    gains: dict[int, np.ndarray] = {}
    for part, kept in pieces:
        last = scipy.fft.next_fast_len(part.stop - part.start - 1)
        along = np.linspace(0.0, 1.0, last + 1)
        if last not in gains:
            gains[last] = gain_of_sines(along, rate=rate, cutoff=cutoff, order=order)
        inside = slice(kept.start - part.start, kept.stop - part.start)
        # column by column, to save memory
        for own, filtered in zip(columns[part].T, passed[kept].T, strict=True):
            filtered[:] = _passed(own, along, gains[last])[inside]
    return smooth


def pieces_of_record(count: int, length: float, order: int) -> Iterator[tuple[slice, slice]]:
    """Yield the pieces of a record that are filtered separately, and the valid samples of each.

    Short transforms fit in the processor's cache. Pieces overlap by the memory of the filter, whose
    slowest pole decays as exp(-2 pi sin(pi / (2 order)) t / length).

    Args:
        count: number of samples.
        length: period of the cut-off, in samples.
        order: order of the filter.
    """
    margin = int(-np.log(PIECE_COUPLING) / (2.0 * np.pi * np.sin(0.5 * np.pi / order)) * length) + 1
    size = max(MIN_PIECE_SAMPLES, 4 * margin)
    start = 0
    while start < count:
        stop = min(start + size, count)
        if count - stop < margin:
            stop = count
        yield slice(max(start - margin, 0), min(stop + margin, count)), slice(start, stop)
        start = stop


def require_filter(count: int, rate: float, cutoff: float, order: int) -> None:
    """Reject a low-pass that is impossible at this rate, or that has too few samples.

    Raises:
        InputError: the cut-off is not below half the rate, or there are too few samples.
    """
    require_cutoff(rate, cutoff)
    needed = 3 * (order + 1) + 1
    if count < needed:
        samples = counted(count, "sample", "are")
        what = f"{samples} too few for a filter of order {order}, which needs {needed}"
        raise InputError.of("log", what, "record longer")


def require_cutoff(rate: float, cutoff: float) -> None:
    """Reject a cut-off that is not below half the rate.

    Raises:
        InputError: the cut-off is not between zero and half the rate.
    """
    if not 0.0 < cutoff < 0.5 * rate:
        what = f"{cutoff:g} Hz is not between zero and half the sampling rate, {0.5 * rate:g} Hz"
        raise InputError.of(
            "cutoff",
            what,
            "choose a lower cutoff, or omit it: then the noise determines it; check the unit of the "
            "time column if the rate is wrong",
        )


def gain_of_sines(along: np.ndarray, *, rate: float, cutoff: float, order: int) -> np.ndarray:
    """Return the gain (N - 2,) of a two-way Butterworth filter for every sine of a record.

    Args:
        along: frequencies of the sines divided by half the rate (N,): from zero to one in even
            steps, including both ends.
        rate, cutoff, order: as for `butterworth`.
    """
    with np.errstate(over="ignore"):  # far above the cutoff the gain is zero
        gain = np.tan(0.5 * np.pi * along[1:-1])
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


def _passed(x: np.ndarray, along: np.ndarray, gain: np.ndarray) -> np.ndarray:
    """Return one column (N,) after multiplying its sines by the gain (see `butterworth`)."""
    import scipy.fft

    more = len(along) - len(x)
    longer = np.concatenate([x, 2.0 * x[-1] - x[len(x) - 1 - more : -1][::-1]])
    line = longer[0] * (1.0 - along) + longer[-1] * along
    sines = scipy.fft.dst((longer - line)[1:-1], type=1, overwrite_x=True)
    sines *= gain
    line[1:-1] += scipy.fft.idst(sines, type=1, overwrite_x=True)
    return line[: len(x)]


def central_differences(x: np.ndarray, period: float) -> np.ndarray:
    """Return the derivative (x[k+1] - x[k-1]) / (2 T); also of second order at the ends.

    Args:
        x: samples (N, ...), N >= 3.
        period: sampling period T, s.

    Returns:
        Derivatives (N, ...).

    Raises:
        InputError: there are fewer than three samples.
    """
    if len(x) < LEAST_FOR_DIFFERENCES:
        what = f"{counted(len(x), 'sample', 'are')} too few for central differences"
        raise InputError.of("x", what, f"give at least {LEAST_FOR_DIFFERENCES}")
    return np.asarray(np.gradient(x, period, axis=0, edge_order=2))


def integrated(velocity: np.ndarray, period: float) -> np.ndarray:
    """Return the integral (N,) by the trapezoidal rule, starting at zero."""
    return np.concatenate([[0.0], np.cumsum(0.5 * period * (velocity[1:] + velocity[:-1]))])


def decimate(x: np.ndarray, factor: int, cutoff: float | None = None) -> np.ndarray:
    """Return every `factor`-th sample after a zero-phase low-pass at half the new rate.

    With `cutoff`, the samples pass a second low-pass filter.

    The filter is that of ``scipy.signal.decimate(x, factor, ftype="fir", zero_phase=True)``: 20
    factor + 1 taps of a Hamming window, with zeros beyond the ends. It is applied to all columns at
    once by matrix products, which only compute the returned samples.

    Args:
        x: samples (N, ...) with any number of columns, such as a regressor (N, outputs,
            parameters).
        factor: decimation factor; 1 returns every sample.
        cutoff: cut-off of `low_pass`, as a fraction of the rate of x.

    Returns:
        Samples (ceil(N / factor), ...); sample k belongs to the time of sample k * factor of x.

    Raises:
        InputError: the factor is below one, or there are fewer samples than taps.
    """
    _require_taps(len(x), factor)
    thinned = x if factor == 1 else decimate_in_parts(lambda part: x[part], len(x), factor)
    return thinned if cutoff is None else low_pass(thinned, cutoff * factor)


def low_pass(x: np.ndarray, cutoff: float) -> np.ndarray:
    """Return samples after a zero-phase low-pass: the filter of `decimate` for any cut-off.

    The cut-off corresponds to a decimation factor of 1 / (2 cutoff).

    Args:
        x: samples (N, ...); they count as zero beyond the ends.
        cutoff: -6 dB frequency as a fraction of the sampling rate; `HIGHEST_CUTOFF` and higher
            values do not filter.
    """
    if cutoff >= HIGHEST_CUTOFF:
        return x
    return _filtered_in_parts(lambda part: x[part], len(x), 1, 0.5 / cutoff)


def decimate_in_parts(evaluate: Callable[[slice], np.ndarray], n: int, factor: int) -> np.ndarray:
    """Return the result of `decimate` for samples that are computed in parts.

    Args:
        evaluate: function that returns the samples (size, ...) of a slice; slices overlap by the
            length of the filter.
        n: total number of samples.
        factor: decimation factor, at least 1.

    Raises:
        InputError: the factor is not a positive whole number, or there are fewer samples than taps.
    """
    _require_taps(n, factor)
    return _filtered_in_parts(evaluate, n, factor, factor)


def _filtered_in_parts(
    evaluate: Callable[[slice], np.ndarray], n: int, factor: int, stretch: float
) -> np.ndarray:
    """Return every `factor`-th sample after a filter with cut-off period 2 `stretch`."""
    band = _band(factor, stretch)
    step, half = _OUTPUTS_PER_PRODUCT * factor, _half_length(stretch)
    count = -(-n // factor)
    thinned = np.empty(0)
    for first in range(0, count, _OUTPUTS_AT_ONCE):
        outputs = min(_OUTPUTS_AT_ONCE, count - first)
        start = first * factor - half
        stop = start + (-(-outputs // _OUTPUTS_PER_PRODUCT) - 1) * step + band.shape[1]
        x = evaluate(slice(max(0, start), min(n, stop)))
        columns = x.reshape(len(x), -1)
        # many columns of a regressor are zero
        used = np.flatnonzero(columns.any(axis=0))
        columns = columns if len(used) == columns.shape[1] else np.take(columns, used, axis=1)
        if start < 0 or stop > n:
            columns = np.pad(columns, ((max(0, -start), max(0, stop - n)), (0, 0)))
        # (products, columns, inputs)
        windows = sliding_window_view(columns, band.shape[1], axis=0)[::step]
        filtered = band @ windows.transpose(0, 2, 1)
        thinned = thinned if first else np.zeros((count, *x.shape[1:]))
        # the number of rows is explicit, because it cannot be inferred without columns
        rows = filtered.shape[0] * filtered.shape[1]
        part = thinned[first : first + outputs].reshape(outputs, -1)
        part[:, used] = filtered.reshape(rows, len(used))[:outputs]
    return thinned


@lru_cache(maxsize=4)
def _band(factor: int, stretch: float) -> np.ndarray:
    """Return the matrix (outputs, inputs) from samples to consecutive filtered samples."""
    half = _half_length(stretch)
    reach = np.arange(-half, half + 1)
    impulse_response = np.hamming(len(reach)) * np.sinc(reach / stretch)
    impulse_response /= impulse_response.sum()
    outputs = np.arange(_OUTPUTS_PER_PRODUCT)
    band = np.zeros((len(outputs), factor * (len(outputs) - 1) + len(impulse_response)))
    band[outputs[:, None], factor * outputs[:, None] + np.arange(len(impulse_response))] = (
        impulse_response
    )
    band.flags.writeable = False
    return band


def _half_length(stretch: float) -> int:
    return int(np.ceil(_HALF_LENGTH * stretch))


def filter_reach(factor: int, cutoff: float | None = None) -> int:
    """Return the number of decimated samples at each end that depend on zeros beyond the log."""
    own = 0 if factor == 1 else _HALF_LENGTH
    if cutoff is None or cutoff * factor >= HIGHEST_CUTOFF:
        return own
    return own + _half_length(0.5 / (cutoff * factor))


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
        raise InputError.of("x", what, "record longer or decimate less")


def taps(factor: int) -> int:
    """Return the length of the filter of `decimate`, in samples."""
    return 2 * _HALF_LENGTH * factor + 1
