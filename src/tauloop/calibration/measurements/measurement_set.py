"""Measurement sets: the measurements for one calibration, with proposed unknowns and tolerances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from tauloop.calibration.measurements.series import Series
from tauloop.calibration.problem.unknowns import Bounds, Tolerances
from tauloop.common.errors import InputError
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurementSet(ReprMixin):
    """The contents of a measurement file.

    Attributes:
        series: the measurements.
        parameters: proposed unknowns.
        tolerances: expected magnitudes of corrections; None if not given.
        encoder_noise: standard deviation of the encoders, SI.
        bounds: minimum and maximum values of unknowns by name or pattern, SI.
    """

    series: tuple[Series, ...]
    parameters: tuple[str, ...] = ()
    tolerances: Tolerances | None = None
    encoder_noise: float = 0.0
    bounds: Mapping[str, Bounds] = field(default_factory=dict)


def joined(sets: Sequence[MeasurementSet]) -> MeasurementSet:
    """Join several sets; tolerances and bounds are taken from the first set that has them.

    Returns:
        One set with all series.

    Raises:
        InputError: the sets state different values of the encoder noise.
    """
    noises = sorted({item.encoder_noise for item in sets})
    if len(noises) > 1:
        values = " and ".join(f"{noise:g}" for noise in noises)
        what = f"measurement sets state different values: {values} (SI)"
        raise InputError.of(
            "encoder_noise",
            what,
            "give the same value in all sets, because they share the encoders",
        )
    bounds: dict[str, Bounds] = {}
    for item in reversed(sets):
        bounds |= item.bounds
    return MeasurementSet(
        series=tuple(series for item in sets for series in item.series),
        parameters=tuple(dict.fromkeys(name for item in sets for name in item.parameters)),
        tolerances=next((item.tolerances for item in sets if item.tolerances is not None), None),
        encoder_noise=noises[0] if noises else 0.0,
        bounds=bounds,
    )
