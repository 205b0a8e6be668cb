"""Identified values in the formulas of link parameters: of another machine, and by least squares in their columns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from planar_arm import MACHINE, arm_log, arm_motion

import tauloop as tl
from tauloop.common.errors import InputError
from tauloop.display.tables.identification.machine_identification_tables import formula_table
from tauloop.formats.library import loads
from tauloop.identification import (
    MeasuredLog,
    OrdinaryLeastSquares,
    PreparationOptions,
    RegressionData,
    fit_regression,
)
from tauloop.identification.estimation.error_models import IndependentErrors
from tauloop.identification.regrouping.formula_values import formula_values

#: Filters and differences of positions leave so much of a noise-free log, over the largest value.
FILTERED = 1e-3
#: Two bases of one least-squares problem.
SAME = 1e-8


def noise_free(model: tl.Model, count: int = 2400) -> MeasuredLog:
    motion = arm_motion(count, 0.0)
    forces = model.actuators.inverse_dynamics(*motion[1:]).force
    return MeasuredLog(name="log", log=arm_log(motion, forces).dataset())


def test_the_values_are_those_of_the_machine_that_made_the_log() -> None:
    """Which is another than the file's: the formulas at its parameters by `tl.symbolic_base_parameters`."""
    mechanism = loads(MACHINE)
    masses = {
        name: 1.3 * value
        for name, value in mechanism.parameters.values.items()
        if name.endswith(".mass")
    }
    assert masses
    made = mechanism.with_values(masses)
    options = tl.IdentificationOptions(
        regroup=True, preparation=PreparationOptions(cutoff=30.0, trim=60, decimation=2)
    )
    result = tl.identify(mechanism, noise_free(tl.Model(made)), options)
    expected = tl.symbolic_base_parameters(made).base_values
    assert expected is not None
    values = np.array([item.value for item in result.formulas], dtype=float)
    assert np.abs(values - expected).max() < FILTERED * np.abs(expected).max()
    assert [item.file for item in result.formulas] == pytest.approx(
        tl.symbolic_base_parameters(mechanism).base_values
    )
    assert len(formula_table(result.formulas).cells) == len(expected)
    assert result.as_dict()["formulas"][0]["formula"] == result.formulas[0].formula


def test_values_and_deviations_are_those_of_least_squares_in_the_formulas_columns() -> None:
    """A fit with the columns in another order has other representatives; a formula that no data show has no value."""
    regrouping = tl.symbolic_base_parameters(tl.load("four_bar"))
    rng = np.random.default_rng(4)
    names = [item.name for item in regrouping.parameters]
    own = rng.normal(size=(400, len(regrouping.base)))
    Y = own @ regrouping.matrix()
    f = own @ rng.normal(size=own.shape[1]) + 1e-3 * rng.normal(size=400)
    order = rng.permutation(len(names))
    data = RegressionData(
        regressor=Y[:, None, order],
        forces=f[:, None],
        parameters=tuple(names[j] for j in order),
        parameter_units=tuple(regrouping.parameters[j].unit for j in order),
        outputs=("motor",),
        output_units=("N m",),
    )
    fitted = fit_regression(data, None, OrdinaryLeastSquares(), errors=IndependentErrors())
    assert {item.representative for item in fitted.base.base} != {
        item.representative for item in regrouping.base
    }
    formulas = formula_values(fitted, regrouping)
    values, (squares,), *_ = np.linalg.lstsq(own, f)
    covariance = squares / (400 - own.shape[1]) * np.linalg.inv(own.T @ own)
    assert [item.value for item in formulas] == pytest.approx(values, rel=SAME)
    assert [item.deviation for item in formulas] == pytest.approx(
        np.sqrt(np.diag(covariance)), rel=1e-6
    )
    first = regrouping.base[0].representative
    without = replace(
        data, regressor=np.where(np.array(data.parameters) == first, 0.0, data.regressor)
    )  # its column is gone, and with it the formula
    lacking = formula_values(
        fit_regression(without, None, OrdinaryLeastSquares(), errors=IndependentErrors()),
        regrouping,
    )
    assert [item.value is None for item in lacking] == [item.deviation is None for item in lacking]
    assert lacking[0].value is None


def test_leaf_parameters_have_no_such_formulas() -> None:
    with pytest.raises(InputError, match="regroup"):
        tl.IdentificationOptions(regroup=True, unknowns="file")
