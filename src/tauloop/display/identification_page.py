"""An identification on a page: the motion, measured beside predicted, what is left and its spectrum, the parameters."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import numpy as np
from scipy.signal import welch

from tauloop.common.errors import AssemblyError, PoseError
from tauloop.display.pieces import (
    Piece,
    Plot,
    PlotTrace,
    by_name,
    by_unit,
    motion,
    over_time,
    traces,
)
from tauloop.identification import MachineIdentification

#: Characters of a base parameter's name at an axis.
NAME = 38
#: Bars of plus and minus this many standard deviations.
INTERVAL = 2.0
#: Samples of one stretch of a spectrum, at most.
SEGMENT = 1024


def identification_page(result: MachineIdentification) -> Iterator[Piece]:
    """What an engineer looks at first; of several logs the first."""
    if result.motion is not None:
        time, position = result.motion
        # what has been identified need not be followed from sample to sample
        with suppress(PoseError, AssemblyError):
            yield from motion(result.model, time, result.model.actuators.track(position).q)
    fit, parts = result.identification, [result.training, result.held_out]
    first = [
        np.full(len(part), True) if part.logs is None else part.logs == part.logs[0]
        for part in parts
    ]
    if len(first[1]) and result.held_out.time is not None and result.training.time is not None:
        is_beside = result.held_out.time[0] >= result.training.time[first[0]][-1]
        first[1] &= is_beside
    measured, residual, times = [], [], []
    for part, keep in zip(parts, first, strict=True):
        measured.append(part.forces[:, part.kept][keep])
        residual.append(fit.residual(part)[keep])
        times.append(np.arange(float(len(part)))[keep] if part.time is None else part.time[keep])
    time, force, error = (np.concatenate(columns) for columns in (times, measured, residual))
    note = (
        f"Held out, and so predicted without having been fitted: from {times[1][0]:.4g} s on."
        if len(times[1])
        else ""
    )
    units = [item.unit for item in fit.training]
    names = [item.output for item in fit.training]
    for k, (name, unit) in enumerate(zip(names, units, strict=True)):
        drawn = traces(time, {"measured": force[:, k]}, "measured")
        drawn += traces(time, {"predicted": force[:, k] - error[:, k]}, "predicted")
        yield Plot(
            title=name,
            x="time [s]",
            y=f"{_quantity(unit)} [{unit}]",
            traces=drawn,
            over_time=True,
            note=note,
        )
        note = ""
    yield from over_time(
        "Residual: measured less predicted", time, names, units, error.T, look="thin"
    )
    yield from _spectra(times[0], residual[0], names, units)
    yield from _parameters(result)


def _quantity(unit: str) -> str:
    return "torque" if unit == "N m" else "force"


def _spectra(
    time: np.ndarray, residual: np.ndarray, names: list[str], units: list[str]
) -> Iterator[Plot]:
    """Amplitudes of what is left over frequency, of the fitted part (Welch's averages)."""
    if len(time) < 16 or not time[-1] > time[0]:
        return
    rate = (len(time) - 1) / (time[-1] - time[0])
    note = "Flat is noise. A line is something periodic that the model lacks: a ripple, a vibration, the mains."
    for unit, group in by_unit(names, units, residual.T).items():
        drawn: tuple[PlotTrace, ...] = ()
        for name, values in group.items():
            frequency, power = welch(values, rate, nperseg=min(SEGMENT, len(values)))
            drawn += traces(frequency[1:], {name: np.sqrt(power[1:])}, "thin")
        label = f"amplitude [{unit}/√Hz]"
        yield Plot(
            title="Spectrum of the residual",
            x="frequency [Hz]",
            y=label,
            traces=drawn,
            log_y=True,
            note=note,
        )


def _parameters(result: MachineIdentification) -> Iterator[Plot]:
    """Estimates beside the machine file, and how well each is determined."""
    fit = result.identification
    names = tuple(
        f"{i + 1}  {parameter.short_name(NAME)}" for i, parameter in enumerate(fit.base.base)
    )
    prior = result.machine_file.prior
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(prior != 0, fit.values / prior, np.nan)
        bar = INTERVAL * np.abs(np.where(prior != 0, fit.standard_deviations / prior, np.nan))
    if np.isfinite(ratio).any():
        near = ratio[np.isfinite(ratio) & (np.abs(ratio - 1) < 3)]
        low, high = (min(0.0, *near), max(2.0, *near)) if len(near) else (0.0, 2.0)
        yield by_name(
            *(
                "Base parameters before and after",
                "estimate over value of the machine file [1]",
                names,
            ),
            {"estimate": ratio},
            deviation=np.nan_to_num(bar),
            look="points",
            y_range=(low - 0.1, high + 0.1),
            note=f"1 is as in the machine file; bars are ±{INTERVAL:g} standard deviations.",
        )
    yield by_name(
        *("How well each is determined", "standard deviation [% of the value]", names),
        {
            "standard deviation": [
                np.nan if share is None else share for share in fit.relative_standard_deviations
            ]
        },
        look="bars",
        log_y=True,
        note="Above 30 % a value says little: excite it more, or leave it out (essential parameters).",
    )
