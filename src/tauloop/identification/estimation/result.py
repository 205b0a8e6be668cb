"""The result of an identification."""

from __future__ import annotations

from dataclasses import field
from typing import Any, ClassVar

import numpy as np

from tauloop.common.datasets import dimension, item_rows, quantity_over, several
from tauloop.common.errors import InputError, Problem
from tauloop.common.plain import OMITTED, in_json, json_keys, records
from tauloop.common.records import dataclass
from tauloop.common.result import Result
from tauloop.identification.estimation.estimators import Estimate, Estimator
from tauloop.identification.estimation.evaluation import OutputFit
from tauloop.identification.estimation.timing_terms import TimingTerm
from tauloop.identification.regression.base_parameters import BaseParameters
from tauloop.identification.regression.data import RegressionData

#: First entry of the JSON file. The number increases when the meaning of an entry changes.
IDENTIFICATION_FORMAT = "tauloop-identification/1"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Identification(Result):
    """Base parameters estimated from training data, with their errors on held-out data.

    Attributes:
        base: the base parameters, and the decision on their number (the rank).
        condition, condition_si: condition numbers of the base regressor on the training data, with
            unit-norm columns and in SI units.
        estimate: values, covariance, noise and weights.
        estimator: the estimator with its options.
        training: fit of every measured output on the training data.
        held_out: fit of every measured output on held-out data; empty without held-out data.
        parameters: (n_p,) values for all columns of the regressor that give the predicted forces.
            Each representative of a base parameter has the value of its combination, known
            parameters have their known values, and all other parameters are zero.
        regressor_parameters, outputs: names of the regressor's columns and rows.
        measured: (n_out,) True for outputs that were measured.
        timing: delays and compliant transmissions that were tested, and the parameter shifts that
            they cause.
    """

    json_format: ClassVar[str] = IDENTIFICATION_FORMAT
    base: BaseParameters = field(
        metadata=json_keys(alone="alone", no_effect="no_effect")
        | dimension("parameter", path="names")
    )
    condition: float = field(metadata=OMITTED)
    condition_si: float = field(metadata=OMITTED)
    estimate: Estimate = field(
        metadata=json_keys(covariance="covariance")
        | several(
            quantity_over("parameter", units="base.units", name="value", path="values"),
            quantity_over(
                "parameter", units="base.units", name="deviation", path="standard_deviations"
            ),
        )
    )
    estimator: Estimator = field(metadata=OMITTED)
    training: tuple[OutputFit, ...] = field(
        metadata=OMITTED | item_rows("output", "rmse", label="output", unit="unit")
    )
    held_out: tuple[OutputFit, ...] = field(metadata=OMITTED)
    parameters: np.ndarray = field(metadata=OMITTED)
    regressor_parameters: tuple[str, ...] = field(metadata=OMITTED)
    outputs: tuple[str, ...] = field(metadata=OMITTED)
    measured: np.ndarray = field(metadata=OMITTED)
    timing: tuple[TimingTerm, ...] = field(default=(), metadata=OMITTED)

    @property
    def timing_problems(self) -> tuple[Problem, ...]:
        """Findings about delays and compliant transmissions that the residuals show."""
        shown = [term for term in self.timing if term.is_shown]
        return tuple(
            term.problem(self.base, self.values, self.standard_deviations) for term in shown
        )

    @property
    def values(self) -> np.ndarray:
        """Values (r,) of the base parameters, SI."""
        return self.estimate.values

    @property
    def standard_deviations(self) -> np.ndarray:
        """Standard deviations (r,) of the base parameters, SI, for the error model of the fit."""
        return self.estimate.standard_deviations

    @property
    def relative_standard_deviations(self) -> tuple[float | None, ...]:
        """Standard deviations in percent of the values; None for a value of zero."""
        return tuple(
            100.0 * float(deviation) / abs(float(value)) if value != 0.0 else None
            for value, deviation in zip(self.values, self.standard_deviations, strict=True)
        )

    def predict(self, regressor: np.ndarray) -> np.ndarray:
        """Return the forces (N, n_out), SI, of all outputs for a regressor (N, n_out, n_p).

        Raises:
            InputError: the regressor has other outputs or parameters, or is not finite.
        """
        regressor = np.asarray(regressor, dtype=float)
        expected = (len(self.outputs), len(self.parameters))
        if regressor.ndim != 3 or regressor.shape[1:] != expected:
            remedy = f"give (samples, {expected[0]}, {expected[1]}), as in the training data"
            raise InputError.of("regressor", f"has shape {regressor.shape}", remedy)
        forces: np.ndarray = regressor @ self.parameters
        if not np.isfinite(forces).all():
            sample = int(np.argwhere(~np.isfinite(forces))[0, 0])
            raise InputError.of(
                "regressor",
                f"is not finite, first at sample {sample}",
                "repair or remove these samples",
            )
        return forces

    def residual(self, data: RegressionData) -> np.ndarray:
        """Return measured minus predicted forces (N, n_measured), SI, of the measured outputs."""
        difference: np.ndarray = (data.forces - self.predict(data.regressor))[:, self.measured]
        return difference

    @property
    @in_json("estimator")
    def estimator_text(self) -> object:
        """Name and options of the estimator, as in the provenance."""
        return self.provenance.options["estimator"]

    @property
    @in_json()
    def rank(self) -> dict[str, Any]:
        """The rank and the values on which the decision on the rank is based."""
        base = self.base
        return {
            "base_parameters": base.rank,
            "regressor_columns": len(base.parameters),
            "gap": base.gap,
            "singular_value_gap": base.singular_value_gap,
            "singular_values": base.singular_values,
            "remainders": base.remainders,
            "options": base.options,
        }

    @property
    @in_json("condition")
    def conditions(self) -> dict[str, float]:
        """Condition numbers of the base regressor."""
        return {"unit_norm_columns": self.condition, "si": self.condition_si}

    @property
    @in_json()
    def base_parameters(self) -> list[dict[str, Any]]:
        """The base parameters with values, standard deviations and terms."""
        base = self.base.base
        return records(
            name=[parameter.name for parameter in base],
            representative=[parameter.representative for parameter in base],
            unit=[parameter.unit for parameter in base],
            value=self.values,
            standard_deviation=self.standard_deviations,
            relative_standard_deviation_percent=self.relative_standard_deviations,
            terms=[parameter.terms for parameter in base],
        )

    @property
    @in_json("regressor_parameters")
    def named_parameters(self) -> dict[str, float]:
        """Values of the regressor's columns by name."""
        return dict(zip(self.regressor_parameters, self.parameters, strict=True))

    @property
    @in_json("outputs")
    def output_rows(self) -> list[dict[str, Any]]:
        """Weight, noise and fit of every measured output."""
        return records(
            name=[fit.output for fit in self.training],
            unit=[fit.unit for fit in self.training],
            weight=self.estimate.weights[: len(self.training)],
            noise=self.estimate.noise[: len(self.training)],
            training=self.training,
            held_out=self.held_out or (None,) * len(self.training),
        )
