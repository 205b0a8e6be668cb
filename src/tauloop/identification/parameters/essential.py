"""Essential parameters: stepwise elimination of base parameters that the data do not determine.

Source: Khalil and Dombre 2002, Modeling, Identification and Control of Robots, section 12.5.
"""

from __future__ import annotations

from dataclasses import field

import numpy as np

from tauloop.common.datasets import dimension, quantity_over
from tauloop.common.errors import IdentificationError
from tauloop.common.records import dataclass
from tauloop.common.result import Result, diagnostic, provenance
from tauloop.identification.estimation.estimators import Estimate, weighted_solution
from tauloop.identification.estimation.evaluation import OutputFit, judge_both, largest_loss
from tauloop.identification.estimation.result import Identification
from tauloop.identification.regression.base_parameters import BaseParameters
from tauloop.identification.regression.data import RegressionData


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """A base parameter that was eliminated.

    Attributes:
        parameter: name of the parameter.
        relative_deviation: standard deviation of the parameter divided by its absolute value,
            before the elimination.
        held_out_error: held-out RMSE divided by the noise, after the elimination; root mean square
            over the outputs.
    """

    parameter: str
    relative_deviation: float
    held_out_error: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EssentialParameters(Result):
    """The essential base parameters with their values.

    Attributes:
        names: names of the r' essential parameters.
        units: units of the essential parameters.
        values: (r',) values, SI.
        standard_deviations: (r',) standard deviations, SI.
        removed: the eliminated parameters, in the order of elimination.
        parameters: (n_p,) values of the regressor's columns that give the predicted forces.
        training, held_out: fit of every measured output to training and held-out data.
        full_held_out: fit of every measured output to the held-out data with all base parameters.
    """

    names: tuple[str, ...] = field(metadata=dimension("parameter"))
    units: tuple[str, ...]
    values: np.ndarray = field(metadata=quantity_over("parameter", units="units", name="value"))
    standard_deviations: np.ndarray = field(
        metadata=quantity_over("parameter", units="units", name="deviation")
    )
    removed: tuple[Removal, ...]
    parameters: np.ndarray
    training: tuple[OutputFit, ...]
    held_out: tuple[OutputFit, ...]
    full_held_out: tuple[OutputFit, ...]


def essential_parameters(
    identification: Identification,
    training: RegressionData,
    held_out: RegressionData,
    *,
    largest_deviation: float = 0.3,
) -> EssentialParameters:
    """Eliminate the least determined base parameters until all others are known well enough.

    The method is the stepwise reduction of Khalil and Dombre 2002, Modeling, Identification and
    Control of Robots, section 12.5. After every step the remaining parameters are estimated again,
    with the weights of the identification. Standard deviations are computed for independent errors
    and multiplied by the factor by which the error model of the identification increased them. The
    identification should therefore use `errors=AutocorrelatedErrors()`.

    Args:
        identification: identification of all base parameters, the result of
            `fit_regression(training, held_out, ...)`.
        training, held_out: the data of this identification.
        largest_deviation: largest standard deviation of an essential parameter, as a fraction of
            its absolute value.

    Returns:
        The remaining parameters with standard deviations, and the removed parameters.

    Raises:
        IdentificationError: the data are not those of the identification, or no parameter would
            remain.
    """
    base = identification.base
    _require_suitable(base, training, largest_deviation)
    factors, remaining, estimate, removed = _eliminated(
        identification, training, held_out, largest_deviation
    )
    values = np.zeros(base.rank)
    values[remaining] = estimate.values
    parameters = training.expand(base.spread(values))
    training_fit, held_out_fit = judge_both(training, held_out, parameters)
    return EssentialParameters(
        names=tuple(base.base[k].name for k in remaining),
        units=tuple(base.base[k].unit for k in remaining),
        values=estimate.values,
        standard_deviations=factors[remaining] * estimate.standard_deviations,
        removed=tuple(removed),
        parameters=parameters,
        training=training_fit,
        held_out=held_out_fit,
        full_held_out=identification.held_out,
        diagnostics=(
            diagnostic(
                "largest ratio of held-out RMSE to that of all base parameters",
                largest_loss(held_out_fit, identification.held_out),
                at_most=1.05,
                advice="relevant parameters were eliminated: allow larger deviations",
            ),
        ),
        provenance=provenance(
            packages=("numpy", "scipy"),
            options={"largest_deviation": largest_deviation},
            inputs={"base_parameters": base.rank, "kept": len(remaining)},
        ),
    )


def _require_suitable(
    base: BaseParameters, training: RegressionData, largest_deviation: float
) -> None:
    """Reject a deviation that is not positive, and data of another identification."""
    if not 0.0 < largest_deviation:
        raise IdentificationError.of(
            "essential",
            f"the maximum relative standard deviation must be positive, got {largest_deviation:g}",
            "give a fraction such as 0.3",
        )
    if base.parameters != training.unknowns:
        raise IdentificationError.of(
            "training",
            f"the {len(training.unknowns)} unknowns are not those of the identification",
            "give the data of the identification",
        )


def _eliminated(
    identification: Identification,
    training: RegressionData,
    held_out: RegressionData,
    largest_deviation: float,
) -> tuple[np.ndarray, np.ndarray, Estimate, list[Removal]]:
    """Eliminate the least determined base parameters one by one.

    Returns:
        Factors (r,) of the standard deviations, indices of the remaining base parameters, their
        estimate, and the removed parameters.

    Raises:
        IdentificationError: no parameter would remain.
    """
    base = identification.base
    columns = [*base.independent, len(training.unknowns)]
    weights = identification.estimate.weights
    noise = identification.estimate.noise
    triangles = training.triangles[:, :, columns]
    held_out_triangles = held_out.triangles[:, :, columns]
    estimate = weighted_solution(triangles, training.counts, weights)
    full_deviations = np.maximum(estimate.standard_deviations, np.finfo(float).tiny)
    factors = identification.standard_deviations / full_deviations
    remaining = np.arange(base.rank)
    removed: list[Removal] = []
    while True:
        deviations = factors[remaining] * estimate.standard_deviations
        relative_deviations = deviations / np.maximum(np.abs(estimate.values), np.finfo(float).tiny)
        worst = int(np.argmax(relative_deviations))
        if relative_deviations[worst] <= largest_deviation:
            return factors, remaining, estimate, removed
        if len(remaining) == 1:
            raise IdentificationError.of(
                "training",
                f"no base parameter is known to {100 * largest_deviation:g} % of its value",
                "record a motion that excites more, or allow larger deviations",
            )
        name = base.base[remaining[worst]].name
        remaining = np.delete(remaining, worst)
        estimate = weighted_solution(
            triangles[:, :, [*remaining, base.rank]], training.counts, weights
        )
        predicted = held_out_triangles[:, :, remaining] @ estimate.values
        misfit = predicted - held_out_triangles[:, :, -1]
        errors = np.linalg.norm(misfit, axis=1) / np.sqrt(len(held_out)) / noise
        removed.append(
            Removal(
                parameter=name,
                relative_deviation=float(min(relative_deviations[worst], 1e12)),
                held_out_error=float(np.sqrt(np.mean(errors**2))),
            )
        )
