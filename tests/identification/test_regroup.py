"""Base parameters as formulas: of invented columns, and of a four-bar by hand."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from printed import printed

import tauloop as tl
from tauloop.common.errors import IdentificationError, InputError
from tauloop.display.tables.identification.regrouping_tables import regrouping_tables
from tauloop.identification import AnalyticRegrouping, analytic_regrouping
from tauloop.identification.regrouping.regrouping import ColumnParameter, Monomial
from tauloop.identification.regrouping.regrouping_columns import (
    RANDOM_STATES,
    STATE_SEED,
    StandardColumns,
)
from tauloop.kinematics.states import random_states

#: Sums of some ten terms.
ALGEBRA = 1e-9


def invented(lengths: dict[str, float]) -> np.ndarray:
    """Columns of which the third and the fourth depend on the first two by formulas of two lengths."""
    rng = np.random.default_rng(5)
    a, b = rng.normal(size=(2, 40))
    p, q = lengths["p"], lengths["q"]
    return np.column_stack([a, b, (p**2 - 2 / 3 * q**2) * a + p * b, q / p * b, 0 * a])


QUANTITIES = tuple(
    ColumnParameter(name=name, unit=unit)
    for name, unit in (("A", "kg m^2"), ("B", "kg m"), ("C", "kg"), ("D", "kg m"), ("E", "kg"))
)


def regrouped(
    columns: Any = invented, quantities: tuple[ColumnParameter, ...] = QUANTITIES
) -> AnalyticRegrouping:
    return analytic_regrouping(columns, quantities, {"p": 0.7, "q": 1.9}, np.random.default_rng(0))


def test_sums_fractions_and_quotients_are_found() -> None:
    result = regrouped()
    assert [parameter.name for parameter in result.base] == [
        "A + (-2/3 q^2 + p^2) C",
        "B + p C + q/p D",
    ]
    assert result.no_effect == ("E",)
    assert result.dependent["D"] == "q/p B"
    # the numerical regrouping at another geometry
    at = {"p": 1.3, "q": 0.6}
    W = invented(at)
    direct = np.linalg.lstsq(W[:, [0, 1]], W, rcond=None)[0]
    assert result.matrix(at) == pytest.approx(direct, abs=ALGEBRA)
    assert np.abs(W @ result.directions(at).T).max() < ALGEBRA
    assert result.directions(at).shape == (3, 5)


def test_a_factor_that_is_no_simple_fraction_is_a_decimal() -> None:
    def slanted(lengths: dict[str, float]) -> np.ndarray:
        W = invented(lengths)
        W[:, 2] = np.cos(0.8) * lengths["p"] * W[:, 1] + lengths["q"] ** 2 * W[:, 0]
        return W

    result = regrouped(slanted)
    assert [parameter.name for parameter in result.base] == [
        "A + q^2 C",
        "B + 0.696707 p C + q/p D",
    ]
    assert result.matrix()[1, 2] == pytest.approx(np.cos(0.8) * 0.7, rel=ALGEBRA)
    assert result.status.value == "ok"


def test_what_is_no_formula_is_refused() -> None:
    def curved(lengths: dict[str, float]) -> np.ndarray:
        W = invented(lengths)
        W[:, 3] = np.sin(lengths["p"]) * W[:, 1]
        return W

    with pytest.raises(IdentificationError, match="is not a sum of simple monomials"):
        regrouped(curved)
    wrong = (*QUANTITIES[:3], ColumnParameter(name="D", unit="N s"), QUANTITIES[4])
    with pytest.raises(IdentificationError, match="is not an integer power of a length"):
        regrouped(quantities=wrong)


def test_monomials_are_written_and_worked_out() -> None:
    cases = {
        (1, 1, ()): ("1", 1.0),
        (-1, 2, (("p", 1), ("q", -2))): ("-1/2 p/q^2", -1 / 9),
        (3, 1, (("p", 2),)): ("3 p^2", 12.0),
        (1, 1, (("q", -1),)): ("1/q", 1 / 3),
    }
    for (numerator, denominator, powers), (text, value) in cases.items():
        single = Monomial(numerator=numerator, denominator=denominator, powers=powers)
        assert single.factor == Fraction(numerator, denominator)
        assert str(single) == text
        assert single.value({"p": 2.0, "q": 3.0}) == pytest.approx(value)


@pytest.fixture(scope="module")
def four_bar() -> AnalyticRegrouping:
    return tl.symbolic_base_parameters(tl.load("four_bar"))


def test_a_four_bar_is_regrouped_as_by_hand(four_bar: AnalyticRegrouping) -> None:
    """The coupler's mass splits into its ends, m - mcx/l at the crank and mcx/l at the rocker; Izz - l mcx stays."""
    assert [parameter.name for parameter in four_bar.base] == [
        "crank.mcx + crank_length coupler.m - crank_length/coupler_length coupler.mcx",
        "crank.mcy",
        "crank.Izz + crank_length^2 coupler.m - crank_length^2/coupler_length coupler.mcx",
        "coupler.mcy",
        "coupler.Izz - coupler_length coupler.mcx",
        "rocker.mcx + rocker_length/coupler_length coupler.mcx",
        "rocker.mcy",
        "rocker.Izz + rocker_length^2/coupler_length coupler.mcx",
    ]
    mechanism = tl.load("four_bar")
    value = {
        single.name: mechanism.value(single.expression) for single in tl.Model(mechanism).parameters
    }
    length = mechanism.parameters.values
    assert four_bar.base_values is not None
    assert four_bar.base_values[4] == pytest.approx(
        value["coupler.Izz"] - length["coupler_length"] * value["coupler.mcx"], rel=ALGEBRA
    )


def test_the_table_shows_the_formulas(four_bar: AnalyticRegrouping) -> None:
    shown = printed(regrouping_tables(four_bar))
    assert "8 base parameters of 30" in shown
    assert "coupler.Izz - coupler_length coupler.mcx" in shown


def test_unknown_lengths_and_products_are_refused() -> None:
    with pytest.raises(InputError, match="no parameter 'crank_lenght'"):
        tl.symbolic_base_parameters(
            tl.load("four_bar"), tl.SymbolicBaseOptions(lengths=("crank_lenght",))
        )


def test_lengths_that_stay_free_give_the_columns_of_a_machine_that_has_them() -> None:
    machine = tl.load("delta")
    lengths = {p.name: 1.05 * p.value for p in machine.parameters if p.unit == "m" and p.value}
    model, columns = StandardColumns(machine)(lengths)
    assert model.free == tuple(lengths)
    states = random_states(model, RANDOM_STATES, np.random.default_rng(STATE_SEED))
    built = tl.Model(machine.with_values(lengths)).platform
    Y = built.regressor(states.position, states.velocity, states.acceleration)
    assert columns == pytest.approx(Y.reshape(columns.shape), abs=ALGEBRA)


def test_lengths_of_loops_with_equations_too_many_make_a_machine_of_their_own() -> None:
    machine = tl.load("four_bar")
    model, _ = StandardColumns(machine)({"crank_length": 0.11})
    assert model.assembly.dropped
    assert model.mechanism.parameters.values["crank_length"] == 0.11
