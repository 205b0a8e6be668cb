"""Plots of an identification: measured and predicted forces, residuals, spectra, parameters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

import numpy as np
from scipy.signal import welch

from tauloop.common.counts import counted
from tauloop.common.errors import AssemblyError, PoseError
from tauloop.common.records import dataclass
from tauloop.display.palette import TINT
from tauloop.display.pieces import Paragraph, Piece, Plot, PlotSpan, PlotTrace
from tauloop.display.plots.building import by_name, by_unit, motion, over_time, traces
from tauloop.identification import Identification, MachineIdentification, OutputFit, RegressionData

#: Maximum number of characters of a base parameter's name at an axis.
NAME_WIDTH = 38
#: Half length of error bars, in standard deviations.
BAR_DEVIATIONS = 2.0
#: Maximum number of samples of a segment for Welch's spectra.
SEGMENT_SAMPLES = 1024
#: Maximum number of logs whose forces are drawn.
MAX_LOGS = 4


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _ForceRecord:
    """Forces of one log, or of its held-out part.

    Attributes:
        label: text that distinguishes the record from others; empty if there is only one record.
        time: times (N,), s, or indices of samples.
        measured, residual: measured forces and residuals (N, n).
        fitted: number of samples at the start that were fitted.
        has_time: True if `time` are times, False if they are indices.
    """

    label: str
    time: np.ndarray
    measured: np.ndarray
    residual: np.ndarray
    fitted: int
    has_time: bool

    @property
    def spans(self) -> tuple[PlotSpan, ...]:
        """The held-out range."""
        if self.fitted == len(self.time):
            return ()
        start, end = float(self.time[self.fitted]), float(self.time[-1])
        return (PlotSpan(name="held out", start=start, end=end, color=TINT, opacity=1.0),)


def identification_scene(result: MachineIdentification) -> Iterator[Piece]:
    """Yield the machine in motion; for several logs, the motion of the first."""
    if result.motion is not None:
        time, position = result.motion
        # There is no scene if the measured motion cannot be tracked from sample to sample.
        with suppress(PoseError, AssemblyError):
            yield from motion(result.model, time, result.model.actuators.track(position).q)


def identification_plots(result: MachineIdentification) -> Iterator[Paragraph | Plot]:
    """Yield the forces of every output, residuals, their spectrum, and the parameters."""
    yield Paragraph(text=f"Logs: {', '.join(map(str, result.logs))}.", tone="note")
    yield from fit_plots(result.identification, result.training, result.held_out)
    yield from _parameters(result)


def fit_plots(
    identification: Identification,
    training: RegressionData,
    held_out: RegressionData | None = None,
) -> Iterator[Paragraph | Plot]:
    """Yield the forces of every output, residuals, and the spectrum of the residuals.

    Args:
        identification: result of `fit`.
        training, held_out: data for the fit, and data for its validation.
    """
    base = identification.base
    yield Paragraph(
        text=f"{counted(base.rank, 'base parameter')} of {counted(len(base.parameters), 'unknown')}, estimator "
        f"{type(identification.estimator).__name__}; condition number "
        f"{identification.condition:.3g} (unit-norm columns); RMSE in % of the largest measured "
        "force. Held-out samples are not used for the fit.",
        tone="note",
    )
    records = _records(identification, training, held_out)
    units = [item.unit for item in identification.training]
    names = [item.output for item in identification.training]
    for number, record in enumerate(records):
        for k, (name, unit) in enumerate(zip(names, units, strict=True)):
            force, error = record.measured[:, k], record.residual[:, k]
            drawn = traces(record.time, {"measured": force}, "measured")
            drawn += traces(record.time, {"predicted": force - error}, "predicted")
            yield Plot(
                title=f"{name}{record.label}: {_errors(identification, k)}",
                x="time [s]" if record.has_time else "sample",
                y=f"{_quantity(unit)} [{unit}]",
                traces=drawn,
                spans=record.spans,
                over_time=number == 0,
            )
        title = f"Residual: measured minus predicted{record.label}"
        yield from over_time(
            title, record.time, names, units, record.residual.T, style="thin", spans=record.spans
        )
    first = records[0]
    yield from _spectra(first.time[: first.fitted], first.residual[: first.fitted], names, units)


def _errors(identification: Identification, k: int) -> str:
    """Return the errors of an output on training and held-out data, as text."""
    texts = [f"training {_error(identification.training[k])}"]
    if identification.held_out:
        texts.append(f"held out {_error(identification.held_out[k])}")
    return ", ".join(texts)


def _error(fit: OutputFit) -> str:
    return f"RMSE {fit.rmse:.3g} {fit.unit} ({fit.rmse_percent:.1f} %)"


def _records(
    identification: Identification, training: RegressionData, held_out: RegressionData | None
) -> list[_ForceRecord]:
    """Return the records to draw; held-out samples follow the fitted samples of the same log."""
    logs = [None] if training.logs is None else list(dict.fromkeys(training.logs.tolist()))
    records = list[_ForceRecord]()
    for log in logs[:MAX_LOGS]:
        label = "" if len(logs) == 1 else f", log {len(records) + 1} of {len(logs)}"
        fitted = _record(identification, training, log, label)
        records.append(fitted)
        if held_out is None or not len(held_out):
            continue
        validation = _record(identification, held_out, log, f"{label}, held out")
        if not len(validation.time):
            continue
        if validation.has_time and fitted.has_time and validation.time[0] >= fitted.time[-1]:
            records[-1] = _joined(fitted, validation)
        else:
            records.append(
                _ForceRecord(
                    label=validation.label,
                    time=validation.time,
                    measured=validation.measured,
                    residual=validation.residual,
                    fitted=0,
                    has_time=validation.has_time,
                )
            )
    return records


def _record(
    identification: Identification, data: RegressionData, log: object, label: str
) -> _ForceRecord:
    """Return the record of a log, or of all data if `log` is None."""
    is_selected = np.full(len(data), True)
    if log is not None and data.logs is not None:
        is_selected = data.logs == log
    time = np.arange(float(len(data))) if data.time is None else data.time
    return _ForceRecord(
        label=label,
        time=time[is_selected],
        measured=data.forces[:, data.kept][is_selected],
        residual=identification.residual(data)[is_selected],
        fitted=int(is_selected.sum()),
        has_time=data.time is not None,
    )


def _joined(fitted: _ForceRecord, validation: _ForceRecord) -> _ForceRecord:
    return _ForceRecord(
        label=fitted.label,
        time=np.concatenate([fitted.time, validation.time]),
        measured=np.concatenate([fitted.measured, validation.measured]),
        residual=np.concatenate([fitted.residual, validation.residual]),
        fitted=fitted.fitted,
        has_time=True,
    )


def _quantity(unit: str) -> str:
    return "torque" if unit == "N m" else "force"


def _spectra(
    time: np.ndarray, residual: np.ndarray, names: Sequence[str], units: Sequence[str]
) -> Iterator[Plot]:
    """Yield the amplitude spectra of the residuals of fitted samples (Welch's averages)."""
    if len(time) < 16 or not time[-1] > time[0]:
        return
    sample_rate = (len(time) - 1) / (time[-1] - time[0])
    note = (
        "A flat spectrum is noise. A peak is a periodic effect that the model lacks: ripple, "
        "vibration, mains hum."
    )
    for unit, group in by_unit(names, units, residual.T).items():
        drawn: tuple[PlotTrace, ...] = ()
        for name, values in group.items():
            frequency, power = welch(values, sample_rate, nperseg=min(SEGMENT_SAMPLES, len(values)))
            drawn += traces(frequency[1:], {name: np.sqrt(power[1:])}, "thin")
        yield Plot(
            title="Spectrum of the residual",
            x="frequency [Hz]",
            y=f"amplitude [{unit}/√Hz]",
            traces=drawn,
            log_y=True,
            note=note,
        )


def _parameters(result: MachineIdentification) -> Iterator[Plot]:
    """Yield plots of the ratios of estimates to values of the machine file, and of deviations."""
    fit = result.identification
    names = tuple(
        f"{i + 1}  {parameter.short_name(NAME_WIDTH)}" for i, parameter in enumerate(fit.base.base)
    )
    prior = result.machine_file.prior
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(prior != 0, fit.values / prior, np.nan)
        relative = np.where(prior != 0, fit.standard_deviations / prior, np.nan)
        bar = BAR_DEVIATIONS * np.abs(relative)
    if np.isfinite(ratio).any():
        near = ratio[np.isfinite(ratio) & (np.abs(ratio - 1) < 3)]
        low, high = (min(0.0, *near), max(2.0, *near)) if len(near) else (0.0, 2.0)
        yield by_name(
            "Base parameters before and after",
            "estimate / value in the machine file [1]",
            names,
            {"estimate": ratio},
            deviation=np.nan_to_num(bar),
            style="points",
            y_range=(low - 0.1, high + 0.1),
            note=f"1 is the value in the machine file; bars are ±{BAR_DEVIATIONS:g} standard deviations.",
        )
    percentages = [
        np.nan if percent is None else percent for percent in fit.relative_standard_deviations
    ]
    yield by_name(
        "Accuracy of each parameter",
        "standard deviation [% of the value]",
        names,
        {"standard deviation": percentages},
        style="bars",
        log_y=True,
        note="A parameter above 30 % is hardly determined: excite it more, or leave it out (essential "
        "parameters).",
    )
