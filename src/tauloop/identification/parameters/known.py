"""Known parameters, payloads that some logs carry, and gains of the drives.

Source: Khalil, Gautier and Lemoine 2007, Identification of the payload inertial parameters of
industrial manipulators; Gautier and Briot 2014, Global identification of joint drive gains and
dynamic parameters of robots.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from tauloop.common.errors import IdentificationError, Problem, Problems
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.equations.values import BODY_SUFFIXES
from tauloop.identification.estimation.base_columns import BaseRegression
from tauloop.identification.estimation.error_models import AutocorrelatedErrors
from tauloop.identification.estimation.estimators import Estimator, WeightedLeastSquares
from tauloop.identification.regression.base_parameters import base_parameters
from tauloop.identification.regression.columns import with_columns
from tauloop.identification.regression.data import RegressionData
from tauloop.mechanism.suggestions import unknown_names

#: Prefix of the names of a payload's parameters.
PAYLOAD = "payload"
#: Known parameters determine the scale of the forces if the unknown parameters cannot reproduce
#: more than this fraction of their forces.
MIN_INDEPENDENT_SHARE = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DriveGains(ReprMixin):
    """Factors by which the measured forces of the drives must be multiplied.

    Attributes:
        outputs: names of the measured drives.
        values: (n_kept,) gain of each drive.
        standard_deviations: (n_kept,) standard deviations for autocorrelated errors.
    """

    outputs: tuple[str, ...]
    values: np.ndarray
    standard_deviations: np.ndarray


def known_parameters(data: RegressionData, known: Mapping[str, float]) -> RegressionData:
    """Return regression data with some unknowns fixed at given values.

    Args:
        data: the samples.
        known: value, SI, by name of the unknown.

    Raises:
        IdentificationError: a name is not among the unknowns, or no unknown remains.
    """
    problems = unknown_names(known, data.unknowns, "is not one of the unknowns", "known {}")
    if not problems and len(known) == len(data.unknowns):
        problems.append(
            Problem(
                "known",
                f"all {len(known)} unknowns are given as known, so nothing remains to be identified",
                "omit the parameters that are to be identified",
            )
        )
    IdentificationError.raise_if_any(problems)
    return replace(data, ties=data.relations.without(known))


def known_rests(data: RegressionData, rests: Mapping[str, float]) -> RegressionData:
    """Return regression data with known rest positions of springs, so only stiffness is unknown.

    The force of a spring is stiffness q - preload. With a known rest position q_0, the preload
    follows from the stiffness: preload = stiffness q_0.

    Args:
        data: samples with the unknowns ``NAME.stiffness`` and ``NAME.preload``.
        rests: q_0, m or rad, by name of the element.

    Raises:
        IdentificationError: an element has no such unknowns; lists all problems.
    """
    indices = {name: k for k, name in enumerate(data.unknowns)}
    elements = [name.removesuffix(".preload") for name in indices if name.endswith(".preload")]
    springs = [element for element in elements if f"{element}.stiffness" in indices]
    IdentificationError.raise_if_any(
        unknown_names(
            rests,
            springs,
            "has no spring with unknown stiffness and preload",
            "known {}.rest",
            "name an element that has a spring, such as a joint",
        )
    )
    ties = data.relations
    matrix = ties.matrix.copy()
    for name, rest in rests.items():
        matrix[:, indices[f"{name}.stiffness"]] += rest * matrix[:, indices[f"{name}.preload"]]
    preloads = {f"{name}.preload": 0.0 for name in rests}
    return replace(data, ties=replace(ties, matrix=matrix).without(preloads))


def with_payload(
    logs: Sequence[RegressionData], body: str, carried: Sequence[bool]
) -> list[RegressionData]:
    """Return logs of a machine that carries an unknown rigid body in some of them.

    The payload is an additional body in the frame of one of the machine's bodies. It adds ten
    unknowns (``payload.m``, ``payload.mcx`` to ``payload.Izz``). In the logs with the payload their
    columns equal those of the machine's body; in the other logs they are zero. All logs together
    determine the machine, and their difference determines the payload (Khalil, Gautier and Lemoine
    2007, Identification of the payload inertial parameters of industrial manipulators).

    Args:
        logs: regression data of the machine without the payload, all prepared in the same way.
        body: name of the body that carries the payload; it must have the ten parameters of a rigid
            body.
        carried: True for each log with the payload.

    Raises:
        IdentificationError: there is no such body, or all logs or no log carry the payload.
    """
    bodies = [name.removesuffix(".Izz") for name in logs[0].parameters if name.endswith(".Izz")]
    problems = Problems(
        unknown_names([body], bodies, "is not a body of the machine", "payload on {}")
    )
    if not any(carried) or all(carried):
        problems.add(
            "payload",
            f"is carried in {sum(map(bool, carried))} of {len(logs)} logs, so it cannot be distinguished from the "
            "machine",
            "give a log with the payload and a log without it",
        )
    IdentificationError.raise_if_any(problems)
    columns = [logs[0].parameters.index(f"{body}.{suffix}") for suffix in BODY_SUFFIXES]
    names = [f"{PAYLOAD}.{suffix}" for suffix in BODY_SUFFIXES]
    units = [logs[0].parameter_units[k] for k in columns]
    return [
        with_columns(log, log.regressor[:, :, columns] * float(is_carried), names, units)
        for log, is_carried in zip(logs, carried, strict=True)
    ]


def drive_gains(data: RegressionData, estimator: Estimator | None = None) -> DriveGains:
    """Return the gains of the drives, from data in which known parameters determine the scale.

    With forces f of unknown scale, diag(f) g = Y p + Y p_known. The gains g are additional
    unknowns, and the forces of the known parameters are the right-hand side (Gautier and Briot
    2014, Global identification of joint drive gains and dynamic parameters of robots). Here force
    noise is noise in the regressor. It makes the gains too small by the ratio of the noise's power
    to the power of the forces.

    Args:
        data: samples with known parameters, such as from `known_parameters`.
        estimator: by default, weighted least squares. `TotalLeastSquares` takes noise in the
            regressor into account.

    Raises:
        IdentificationError: no parameter is known, or the known parameters do not determine the
            scale of some drive.
    """
    kept = data.kept
    known = np.zeros((len(data), len(data.outputs)))
    if data.ties is not None:
        known = data.regressor @ np.asarray(data.ties.offset)
        data = replace(data, ties=replace(data.ties, offset=None))
    _require_scale(data, known)
    names = [f"{data.outputs[k]}.gain" for k in kept]
    columns = np.zeros((len(data), len(data.outputs), len(kept)))
    columns[:, kept, np.arange(len(kept))] = -data.forces[:, kept]
    extended = replace(with_columns(data, columns, names, [""] * len(names)), forces=-known)
    triangles = extended.triangles
    base = base_parameters(triangles[:, :, :-1], extended.unknowns, extended.unknown_units)
    identifiable = {
        parameter.representative: i for i, parameter in enumerate(base.base) if not parameter.terms
    }
    IdentificationError.raise_if_any(
        Problem(
            name,
            "cannot be distinguished from the unknown parameters",
            "give more known parameters, or a log in which this drive moves the payload",
        )
        for name in names
        if name not in identifiable
    )
    regression = BaseRegression(
        data=extended,
        base=base,
        triangles=triangles[:, :, [*base.independent, len(extended.unknowns)]],
    )
    method = estimator or WeightedLeastSquares()
    estimate = method.estimate_from(regression)
    covariance = AutocorrelatedErrors().covariance(method.equations(regression, estimate))
    indices = [identifiable[name] for name in names]
    return DriveGains(
        outputs=tuple(data.outputs[k] for k in kept),
        values=estimate.values[indices],
        standard_deviations=np.sqrt(np.diag(covariance))[indices],
    )


def _require_scale(data: RegressionData, known: np.ndarray) -> None:
    """Raise an error if the known parameters do not determine the scale of the forces.

    Args:
        data: the samples.
        known: (N, n_out) forces of the known parameters, SI.
    """
    known_norm = float(np.linalg.norm(known[:, data.kept]))
    message = "no known parameter affects the forces, so every solution can be scaled arbitrarily"
    if known_norm > 0.0:
        rows = replace(data, forces=known).triangles.reshape(-1, len(data.unknowns) + 1)
        columns = rows[:, :-1]
        forces = rows[:, -1]
        values = np.linalg.lstsq(columns, forces, rcond=MIN_INDEPENDENT_SHARE)[0]
        fraction = float(np.linalg.norm(forces - columns @ values)) / known_norm
        if fraction > MIN_INDEPENDENT_SHARE:
            return
        message = f"unknown parameters can produce all but {fraction:.1g} of the forces of the known parameters"
    raise IdentificationError.of(
        "gains",
        message,
        "give known parameters whose effect on the forces is not a combination of those of unknown "
        "parameters, such as those of a payload in some of the logs",
    )


def scaled(data: RegressionData, gains: DriveGains) -> RegressionData:
    """Return regression data with the forces of the drives multiplied by their gains."""
    forces = data.forces.copy()
    forces[:, data.kept] *= gains.values
    return replace(data, forces=forces)
