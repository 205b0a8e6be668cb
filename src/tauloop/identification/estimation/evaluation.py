"""Errors of predicted forces, for each output."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import IdentificationError
from tauloop.common.records import dataclass
from tauloop.identification.regression.data import RegressionData


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputFit:
    """The agreement of measured and predicted force in one output.

    The residual is the measured minus the predicted force.

    Attributes:
        output: name of the output.
        unit: unit of the output.
        samples: number of samples.
        rmse: root mean square of the residual, SI.
        bias: mean residual, SI.
        largest_residual: largest absolute residual, SI.
        scale: force that `rmse_percent` refers to, SI. It is the largest absolute measured force of
            training and held-out data together, so that their percentages are comparable.
        rmse_percent: `rmse` in percent of `scale`.
        relative_error_percent: |residual| / |measured| in percent, with Euclidean norms over the
            samples.
        residual_correlation: correlation of the residual with itself one sample later, near zero
            for white noise; None if the residual is zero.
    """

    output: str
    unit: str
    samples: int
    rmse: float
    bias: float
    largest_residual: float
    scale: float
    rmse_percent: float
    relative_error_percent: float
    residual_correlation: float | None


def evaluate(
    measured: np.ndarray,
    predicted: np.ndarray,
    outputs: Sequence[str],
    units: Sequence[str],
    *,
    scale: np.ndarray | None = None,
    where: str = "forces",
) -> tuple[OutputFit, ...]:
    """Return the agreement of measured and predicted forces, for each output.

    Args:
        measured, predicted: (N, n_out), SI.
        outputs, units: name and unit of each column.
        scale: (n_out,) forces that percentages refer to; by default the largest absolute measured
            forces.
        where: name of the samples in error messages.

    Raises:
        IdentificationError: shapes differ, or an output's measured force is zero throughout.
    """
    if (
        measured.ndim != 2
        or not len(measured)
        or not measured.shape == predicted.shape == (len(measured), len(outputs))
    ):
        raise IdentificationError.of(
            where,
            f"the shapes do not match: measured {measured.shape}, predicted {predicted.shape}, "
            f"{len(outputs)} outputs",
            "give (samples, outputs) for both, with at least one sample",
        )
    residual = measured - predicted
    rmse = np.sqrt(np.mean(residual**2, axis=0))
    largest = np.abs(measured).max(axis=0)
    zero_outputs = [
        f"{name} [{unit}]"
        for name, unit, force in zip(outputs, units, largest, strict=True)
        if force == 0.0
    ]
    if zero_outputs:
        raise IdentificationError.of(
            where,
            f"the measured force is zero in all {counted(len(measured), 'sample')}: "
            f"{', '.join(zero_outputs)}",
            "check the column of the force, or mark the output as not measured",
        )
    scale = largest if scale is None else scale
    relative = np.linalg.norm(residual, axis=0) / np.linalg.norm(measured, axis=0)
    power = np.sum(residual**2, axis=0)
    neighbors = np.sum(residual[1:] * residual[:-1], axis=0)
    return tuple(
        OutputFit(
            output=name,
            unit=units[k],
            samples=len(measured),
            rmse=float(rmse[k]),
            bias=float(residual[:, k].mean()),
            largest_residual=float(np.abs(residual[:, k]).max()),
            scale=float(scale[k]),
            rmse_percent=float(100.0 * rmse[k] / scale[k]),
            relative_error_percent=float(100.0 * relative[k]),
            residual_correlation=float(neighbors[k] / power[k]) if power[k] > 0.0 else None,
        )
        for k, name in enumerate(outputs)
    )


def judge(
    where: str, data: RegressionData, parameters: np.ndarray, scale: np.ndarray
) -> tuple[OutputFit, ...]:
    """Return the agreement of the measured outputs of regression data with a prediction.

    Args:
        where: name of the samples in error messages.
        data: the samples.
        parameters: (n_p,) values of the regressor's columns, SI.
        scale: (n_out,) forces that percentages refer to.

    Raises:
        IdentificationError: an output's measured force is zero throughout.
    """
    predicted = data.regressor @ parameters
    # Outputs with missing samples are evaluated one by one, since their samples differ.
    groups = [data.kept] if data.present is None else [np.array([k]) for k in data.kept]
    fits: list[OutputFit] = []
    for outputs in groups:
        samples = np.ix_(data.rows(outputs[0]), outputs)
        fits += evaluate(
            data.forces[samples],
            predicted[samples],
            [data.outputs[k] for k in outputs],
            [data.output_units[k] for k in outputs],
            scale=scale[outputs],
            where=where,
        )
    return tuple(fits)


def judge_both(
    training: RegressionData, held_out: RegressionData | None, parameters: np.ndarray
) -> tuple[tuple[OutputFit, ...], tuple[OutputFit, ...]]:
    """Return the agreement with training and with held-out data; see `judge`.

    Percentages refer to the largest force of training and held-out data together.
    """
    available = [training] if held_out is None else [training, held_out]
    scale = np.max([np.abs(data.forces).max(axis=0) for data in available], axis=0)
    held_out_fit = () if held_out is None else judge("held-out", held_out, parameters, scale)
    return judge("training", training, parameters, scale), held_out_fit


def largest_loss(constrained: Sequence[OutputFit], free: Sequence[OutputFit]) -> float | None:
    """Return the largest ratio of RMSE between two fits of the same outputs.

    Args:
        constrained: the fits with the larger RMSE, such as those with constrained parameters.
        free: the fits to compare with, such as those without the constraints.

    Returns:
        The ratio; None if all fits in `free` are exact.
    """
    pairs = zip(constrained, free, strict=True)
    ratios = (fit.rmse / reference.rmse for fit, reference in pairs if reference.rmse > 0)
    return max(ratios, default=None)


def overall(errors: np.ndarray) -> float:
    """Return the root mean square over all entries of `errors`."""
    return float(np.sqrt(np.mean(errors**2)))
