"""Faults of measured forces that least squares would swallow: clipping, delays, and wrong signs of drives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr

from tauloop.errors import InputError, Problem
from tauloop.identify.base_parameters import base_parameters
from tauloop.identify.condense import condense
from tauloop.identify.data import RegressionData
from tauloop.identify.estimators import weighted_solution
from tauloop.logs import channels, samples

#: So many neighbouring samples at exactly the largest value are a limit, not a peak.
PLATEAU = 5
#: A sign is wrong if turning it lessens the misfit of all outputs by this factor.
TURNED = 2.0
#: A friction coefficient that is negative by so many standard deviations is no matter of noise.
CERTAIN = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay:
    """Delay of one output's force behind the motion.

    Attributes:
        output: its name.
        samples: delay in samples, positive where the force comes late.
        rmse, rmse_without: RMS residual, SI, at this delay and at none, with parameters of this output alone.
    """

    output: str
    samples: float
    rmse: float
    rmse_without: float


def clipped(log: xr.Dataset, quantity: str = "force") -> tuple[Problem, ...]:
    """Channels that stay at exactly their largest or smallest value for several samples, as a limit makes them.

    Args:
        log: the log as measured, before any filter.
        quantity: which channels are looked at.

    Returns:
        One problem for each channel, with the value and how many samples are at it.
    """
    found = []
    for name in channels(log, quantity):
        values = samples(log, quantity, (name,))[:, 0]
        for limit, word in ((values.max(), "largest"), (values.min(), "smallest")):
            at = values == limit
            edges = np.flatnonzero(np.diff(at, prepend=False, append=False))
            lengths = edges[1::2] - edges[::2]
            count = int(lengths[lengths >= PLATEAU].sum())
            if count and not at.all() and limit != 0.0:
                found.append(
                    Problem(
                        where=f"{quantity}.{name}",
                        what=f"stays at its {word} value {limit:.6g} in {count} samples, {PLATEAU} or more in a row: "
                        "it is clipped",
                        remedy="excite less, raise the drive's limit, or leave these samples out",
                    )
                )
    return tuple(found)


def delays(data: RegressionData, largest: int = 10) -> tuple[Delay, ...]:
    """Delay of every measured output's force, by which shift its own least-squares residual is least.

    Every output is fitted by itself, so that one shifted channel does not spoil the others; between samples the
    minimum is that of a parabola.

    Args:
        data: evenly spaced samples.
        largest: samples to either side.

    Raises:
        InputError: fewer samples than ten times the largest shift.
    """
    count = len(data)
    if largest < 1 or count < 10 * largest:
        what = f"{count} samples are too few for shifts of {largest}"
        raise InputError(Problem(where="largest", what=what, remedy="give a smaller shift of at least 1 sample"))
    shifts = np.arange(-largest, largest + 1)
    inner = slice(largest, count - largest)
    found = []
    for k in data.kept:
        regressor, forces = data.regressor[:, k], data.forces[:, k]
        if data.ties is not None:
            forces = forces - regressor @ np.asarray(data.ties.offset)
            regressor = regressor @ data.ties.matrix
        columns = regressor[inner]
        norms = np.linalg.norm(columns, axis=0)
        left, sizes, _ = np.linalg.svd(columns[:, norms > 0.0] / norms[norms > 0.0], full_matrices=False)
        basis = left[:, sizes > 1e-8 * sizes[0]]
        shifted = np.stack([forces[largest + s : count - largest + s] for s in shifts], axis=1)
        squares = np.sum(shifted**2, axis=0) - np.sum((basis.T @ shifted) ** 2, axis=0)
        powers = np.maximum(squares, 0.0) / (count - 2 * largest)
        best = int(np.argmin(powers))
        shift, least = float(shifts[best]), float(powers[best])
        if 0 < best < len(shifts) - 1:
            before, here, after = powers[best - 1 : best + 2]
            bend = before - 2.0 * here + after
            if bend > 0.0:
                part = 0.5 * (before - after) / bend
                shift, least = shift + float(part), max(float(here - 0.25 * (before - after) * part), 0.0)
        found.append(
            Delay(
                output=data.outputs[k],
                samples=shift,
                rmse=float(np.sqrt(least)),
                rmse_without=float(np.sqrt(powers[largest])),
            )
        )
    return tuple(found)


def wrong_signs(data: RegressionData, dissipative: Sequence[str] = ()) -> tuple[Problem, ...]:
    """Outputs whose force has the wrong sign.

    Two signs of it: parameters that outputs share fit much better with one output turned round; or friction comes out
    negative beyond doubt, which also shows it where outputs share nothing, or all are turned.

    Args:
        data: the samples.
        dissipative: names of unknowns that cannot be negative, such as viscous and Coulomb friction.
    """
    triangles = condense(data)
    names = [data.outputs[k] for k in data.kept]
    base = base_parameters(triangles[:, :, :-1], data.unknowns, data.unknown_units)
    columns = [*base.independent, len(data.unknowns)]
    triangles = triangles[:, :, columns]
    weights = 1.0 / np.linalg.norm(triangles[:, :, -1], axis=1)
    signs = np.ones(len(names))
    misfit = first = _misfit(triangles, signs, weights)
    while True:
        trials = [
            _misfit(triangles, np.where(np.arange(len(signs)) == k, -signs, signs), weights) for k in range(len(signs))
        ]
        best = int(np.argmin(trials))
        if trials[best] * TURNED >= misfit:
            break
        signs[best] *= -1.0
        misfit = trials[best]
    if 2 * np.sum(signs < 0.0) > len(signs):
        signs = -signs  # the same misfit: say it with fewer
    found = [
        Problem(
            where=f"force.{names[k]}",
            what=f"has the wrong sign: with it turned the relative misfit of all outputs falls from {first:.3g} to "
            f"{misfit:.3g}",
            remedy="turn the sign in the column's unit ('-1 N m'), or the actuator's ratio in the machine file",
        )
        for k in np.flatnonzero(signs < 0.0)
    ]
    estimate = weighted_solution(signs_applied(triangles, signs), len(data), weights)
    for i, parameter in enumerate(base.base):
        ratio = estimate.values[i] / max(estimate.standard_deviations[i], np.finfo(float).tiny)
        if parameter.representative in dissipative and ratio < -CERTAIN:
            found.append(
                Problem(
                    where=parameter.representative,
                    what=f"comes out as {estimate.values[i]:.4g} {parameter.unit}, negative by {-ratio:.3g} standard "
                    "deviations: the drive would gain energy from friction",
                    remedy="look at the sign of this drive's force, or of all forces",
                )
            )
    return tuple(found)


def signs_applied(triangles: np.ndarray, signs: np.ndarray) -> np.ndarray:
    """Triangles (n_out, m, r + 1) with the forces of some outputs turned."""
    turned = triangles.copy()
    turned[:, :, -1] *= signs[:, None]
    return turned


def _misfit(triangles: np.ndarray, signs: np.ndarray, weights: np.ndarray) -> float:
    """Root mean square over outputs of the residual's share of the force."""
    rows = (weights[:, None, None] * signs_applied(triangles, signs)).reshape(-1, triangles.shape[-1])
    triangle = np.asarray(np.linalg.qr(rows, mode="r"))
    return float(abs(triangle[-1, -1]) / np.sqrt(len(signs))) if len(triangle) == triangles.shape[-1] else 0.0
