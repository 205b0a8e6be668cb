"""What is known, and what is carried in some logs only: fixed parameters, a payload, gains of the drives.

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

#: What the parameters of a payload are called before the last dot.
PAYLOAD = "payload"
#: Known forces set no scale when unknown parameters can ask for the same but for this share.
HIDDEN = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DriveGains(ReprMixin):
    """Factors by which the forces of the drives have to be multiplied.

    Attributes:
        outputs: names of the measured drives.
        values: (n_kept,), a number for each.
        standard_deviations: of them, counting the residuals' correlation.
    """

    outputs: tuple[str, ...]
    values: np.ndarray
    standard_deviations: np.ndarray


def known_parameters(data: RegressionData, known: Mapping[str, float]) -> RegressionData:
    """Regression data in which some unknowns have given values and leave the unknowns.

    Args:
        data: samples.
        known: value, SI, by name of the unknown.

    Raises:
        IdentificationError: a name is no unknown, or nothing is left unknown.
    """
    problems = unknown_names(known, data.unknowns, "is none of the unknowns", "known {}")
    if not problems and len(known) == len(data.unknowns):
        problems.append(
            Problem("known", "all unknowns are known", "leave out what is to be identified")
        )
    IdentificationError.raise_if_any(problems)
    return replace(data, ties=data.relations.without(known))


def known_rests(data: RegressionData, rests: Mapping[str, float]) -> RegressionData:
    """Regression data in which springs have a known rest, so that only their stiffness is unknown.

    A spring pulls back with stiffness q - preload; with the rest q_0 known, preload = stiffness q_0
    is no unknown.

    Args:
        data: samples with the unknowns ``NAME.stiffness`` and ``NAME.preload``.
        rests: q_0, m or rad, by name of the element.

    Raises:
        IdentificationError: an element has no such unknowns; all problems.
    """
    places = {name: k for k, name in enumerate(data.unknowns)}
    elements = [name.removesuffix(".preload") for name in places if name.endswith(".preload")]
    springs = [element for element in elements if f"{element}.stiffness" in places]
    what = "has no spring whose stiffness and preload are unknown"
    remedy = "name the element of a spring, such as a joint"
    IdentificationError.raise_if_any(unknown_names(rests, springs, what, "known {}.rest", remedy))
    ties = data.relations
    matrix = ties.matrix.copy()
    for name, rest in rests.items():
        matrix[:, places[f"{name}.stiffness"]] += rest * matrix[:, places[f"{name}.preload"]]
    tied = replace(ties, matrix=matrix).without(
        dict.fromkeys((f"{name}.preload" for name in rests), 0.0)
    )
    return replace(data, ties=tied)


def with_payload(
    logs: Sequence[RegressionData], body: str, carried: Sequence[bool]
) -> list[RegressionData]:
    """Logs of a machine that carries an unknown rigid body in some of them.

    The payload is a second body in the frame of one of the machine's: ten further unknowns
    (``payload.m``, ``payload.mcx`` to ``payload.Izz``), whose columns are those of that body in the
    logs in which it is carried and zero in the others. So what both logs tell of the machine is
    common, and the payload is their difference (Khalil, Gautier and Lemoine 2007, Identification of
    the payload inertial parameters of industrial manipulators).

    Args:
        logs: prepared alike, of the machine without the payload.
        body: name of the body on which the payload sits, which has the ten parameters of a rigid
            body.
        carried: for each log.

    Raises:
        IdentificationError: no such body, or a log with and a log without the payload are not both
            there.
    """
    bodies = [name.removesuffix(".Izz") for name in logs[0].parameters if name.endswith(".Izz")]
    problems = Problems(unknown_names([body], bodies, "is no body of the machine", "payload on {}"))
    if not any(carried) or all(carried):
        what = f"is carried in {sum(map(bool, carried))} of {len(logs)} logs: nothing tells it from the machine then"
        problems.add("payload", what, "give a log with it and a log without it")
    IdentificationError.raise_if_any(problems)
    places = [logs[0].parameters.index(f"{body}.{suffix}") for suffix in BODY_SUFFIXES]
    names = [f"{PAYLOAD}.{suffix}" for suffix in BODY_SUFFIXES]
    units = [logs[0].parameter_units[k] for k in places]
    return [
        with_columns(log, log.regressor[:, :, places] * float(there), names, units)
        for log, there in zip(logs, carried, strict=True)
    ]


def drive_gains(data: RegressionData, estimator: Estimator | None = None) -> DriveGains:
    """Gains of the drives, from data in which known parameters set the scale.

    With forces f of unknown scale, diag(f) g = Y p + Y p_known: the gains g are unknowns beside p,
    and what the known parameters ask for is measured (Gautier and Briot 2014, Global identification
    of joint drive gains and dynamic parameters of robots). Noise of the forces is noise in the
    regressor here and makes gains too small, by its share of the forces' power.

    Args:
        data: with known parameters, such as of `known_parameters`.
        estimator: weighted least squares without it; for noise in the regressor compare
            `TotalLeastSquares`.

    Raises:
        IdentificationError: nothing is known, or the known parameters do not set the scale of some
            drive.
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
    whole = replace(with_columns(data, columns, names, [""] * len(names)), forces=-known)
    triangles = whole.triangles
    base = base_parameters(triangles[:, :, :-1], whole.unknowns, whole.unknown_units)
    alone = {
        parameter.representative: i for i, parameter in enumerate(base.base) if not parameter.terms
    }
    IdentificationError.raise_if_any(
        Problem(
            name,
            "is not told apart from the unknown parameters",
            "give more known parameters, or a log in which this drive feels the payload",
        )
        for name in names
        if name not in alone
    )
    regression = BaseRegression(
        data=whole, base=base, triangles=triangles[:, :, [*base.independent, len(whole.unknowns)]]
    )
    method = estimator or WeightedLeastSquares()
    estimate = method.estimate_from(regression)
    covariance = AutocorrelatedErrors().covariance(method.equations(regression, estimate))
    places = [alone[name] for name in names]
    return DriveGains(
        outputs=tuple(data.outputs[k] for k in kept),
        values=estimate.values[places],
        standard_deviations=np.sqrt(np.diag(covariance))[places],
    )


def _require_scale(data: RegressionData, known: np.ndarray) -> None:
    """Refuse known parameters that the forces do not feel, or that unknown ones can take the place of."""
    size = float(np.linalg.norm(known[:, data.kept]))
    what = "no parameter is known that the forces feel, so every solution could be scaled at will"
    if size > 0.0:
        rows = replace(data, forces=known).triangles.reshape(-1, len(data.unknowns) + 1)
        columns, asked = rows[:, :-1], rows[:, -1]
        left = (
            float(
                np.linalg.norm(asked - columns @ np.linalg.lstsq(columns, asked, rcond=HIDDEN)[0])
            )
            / size
        )
        what = f"unknown parameters can ask for the same forces as the known ones do, but for {left:.1g} of them"
        if left > HIDDEN:
            return
    remedy = "give known parameters that no unknown one can replace, such as those of a payload in some of the logs"
    raise IdentificationError.of("gains", what, remedy)


def scaled(data: RegressionData, gains: DriveGains) -> RegressionData:
    """Regression data with the forces of the drives multiplied by their gains."""
    forces = data.forces.copy()
    forces[:, data.kept] *= gains.values
    return replace(data, forces=forces)
