"""Errors of the tool that remain after a calibration, to first order.

An instrument measures positions of the tool. The calibration estimates some parameters by least
squares, with their tolerances as prior. It attributes the effects of all other errors on the readings
to these parameters.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tauloop.common.records import dataclass
from tauloop.design.tolerances.error_equations import Array
from tauloop.design.tolerances.tolerance_map import (
    ToleranceMapOptions,
    error_sources,
    map_coordinates,
)
from tauloop.elasticity.machine.poses import PoseInput
from tauloop.kinematics.states import random_states
from tauloop.model import Model


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CalibratedEffects:
    """Errors of the tool after a calibration.

    Attributes:
        per_unit: (N, 6) largest error per unit of each parameter that is not calibrated and of each
            encoder, by source.
        deviation: (N, 6) standard deviation of the error due to the remaining errors of the calibrated
            parameters.
    """

    per_unit: dict[str, Array]
    deviation: Array


def calibrated_effects(
    model: Model,
    poses: PoseInput,
    options: ToleranceMapOptions,
    calibrated: Mapping[str, float],
    noise: float,
    readings: int,
) -> CalibratedEffects:
    """Return the errors of the tool that remain after a calibration.

    The readings are J c + J_o o + n, with calibrated parameters c, other errors o, and noise n. The
    estimate of c is K (J c + J_o o + n) with K = P J^T / sigma^2 and
    P = (D^-1 + J^T J / sigma^2)^-1, where D contains the variances of uniform distributions within the
    tolerances. The twist of the tool is T c + T_o o. After the calibration, the other errors cause the
    twist (T_o - T K J_o) o. The errors of c and n cause a twist with the covariance T P T^T.

    Args:
        model: the machine.
        poses: poses at which the errors are evaluated, as in `tolerance_map`.
        options: the sources of error.
        calibrated: tolerances of calibrated parameters, m or rad.
        noise: standard deviation sigma of each measured component of the tool's position, m.
        readings: number of measured poses, at random within the limits.

    Source: Kay 1993, Fundamentals of statistical signal processing: estimation theory, theorem 11.1.
    """
    sources, equations = error_sources(model, options)
    q, _ = map_coordinates(model, poses, options)
    generator = np.random.default_rng(options.seed + 1)
    measured_q = np.asarray(random_states(model, readings, generator).q)
    owners = list(sources.parts.owners.values())
    names = [*sources.parts.owners, *sources.encoders]
    is_calibrated = np.array(
        [i < len(owners) and owners[i] in calibrated for i in range(len(names))], dtype=bool
    )
    estimated = np.flatnonzero(is_calibrated)
    others = np.flatnonzero(~is_calibrated)
    J = equations.first_order(measured_q).twist[:, :3].reshape(3 * readings, -1)
    variances = np.array([calibrated[owners[i]] ** 2 / 3.0 for i in estimated])
    P, K = _estimator(J[:, estimated], variances, noise)
    twist = equations.first_order(q).twist
    T = twist[:, :, estimated]
    remaining = twist[:, :, others] - T @ (K @ J[:, others])
    variance = np.einsum("ndi,ij,ndj->nd", T, P, T)
    return CalibratedEffects(
        per_unit={names[i]: np.abs(remaining[:, :, j]) for j, i in enumerate(others)},
        deviation=np.sqrt(np.maximum(variance, 0.0)),
    )


def _estimator(J: Array, variances: Array, noise: float) -> tuple[Array, Array]:
    """Return the covariance (p, p) of the estimates and the matrix K (p, r) of the estimator.

    The parameters are scaled by their standard deviations. Combinations of parameters that the readings
    do not determine keep their prior.
    """
    deviations = np.sqrt(variances)
    scaled = J * deviations / noise
    inverse = np.linalg.inv(np.eye(len(variances)) + scaled.T @ scaled)
    covariance = inverse * np.outer(deviations, deviations)
    return covariance, covariance @ J.T / noise**2
