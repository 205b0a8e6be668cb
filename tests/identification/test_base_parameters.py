"""Base parameters: rank, representatives, regrouping, names."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, strategies as st
from planar_arm import LENGTH, NAMES, TRUE, UNITS, arm_data, arm_motion, arm_regressor

from tauloop.common.errors import IdentificationError
from tauloop.identification import (
    BaseParameter,
    BaseParameters,
    ParameterTerm,
    RankOptions,
    base_parameters,
)
from tauloop.identification.regression.data import SAMPLES_AT_ONCE

#: Forces by two routes; the condition numbers here are below 1e3, so rounding stays far below.
SAME_FORCES = 1e-10
#: Keeping the given order costs conditioning; over 300 random matrices 5.7 times that of column
#: pivoting at most.
ORDER_COST = 8.0


def letters(count: int) -> tuple[str, ...]:
    return tuple(f"p{k}" for k in range(count))


def find(
    matrix: np.ndarray, names: tuple[str, ...] | None = None, **options: float
) -> BaseParameters:
    names = names or letters(matrix.shape[-1])
    return base_parameters(matrix, names, ("kg",) * len(names), RankOptions(**options))


def test_planar_arm_has_the_base_parameters_of_the_textbook():
    """Moving the elbow's mass to the first link: mx1 + L m2 and I1 + L^2 m2; m1 never acts."""
    base = base_parameters(arm_data().regressor, NAMES, UNITS)
    assert base.names == (
        "link1.mx + 0.4 link2.m",
        "link1.my",
        "link1.I + 0.16 link2.m",
        *NAMES[5:],
    )
    assert base.no_effect == ("link1.m",)
    assert base.alone == ("link1.my", "link2.mx", "link2.my", "link2.I")
    assert base.combined == ("link1.mx", "link1.I", "link2.m")
    assert [parameter.unit for parameter in base.base] == [
        "kg m",
        "kg m",
        "kg m^2",
        "kg m",
        "kg m",
        "kg m^2",
    ]
    expected = [TRUE[1] + LENGTH * TRUE[4], TRUE[2], TRUE[3] + LENGTH**2 * TRUE[4], *TRUE[5:]]
    np.testing.assert_allclose(base.regroup(TRUE), expected, rtol=1e-12)


def test_known_dependences_are_named():
    rng = np.random.default_rng(0)
    a, b, c = rng.standard_normal((3, 200))
    matrix = np.column_stack([a, 0.5 * a, b, -b, c, a - 2.0 * c + 1e-9 * a, np.zeros(200)])
    names = ("m_platform", "m_rod", "I_a", "I_b", "k", "J", "unused")
    base = find(matrix, names)
    assert base.names == ("m_platform + 0.5 m_rod + J", "I_a - I_b", "k - 2 J")
    assert base.no_effect == ("unused",)
    assert base.combined == names[:6]


def test_tiny_terms_stay_in_the_regrouping_but_not_in_the_name():
    a, b = np.random.default_rng(0).standard_normal((2, 100))
    base = find(np.column_stack([a, b, b + 1e-7 * a]))
    assert base.names == ("p0", "p1 + p2")
    np.testing.assert_allclose(base.regrouping[0, 2], 1e-7, rtol=1e-6)
    assert find(np.column_stack([a, b, b + 1e-7 * a]), smallest_share=1e-8).names == (
        "p0 + 1e-07 p2",
        "p1 + p2",
    )


def test_names_hold_four_digits_and_no_rounding_dust():
    assert str(ParameterTerm(parameter="m", coefficient=0.050625 + 1e-16)) == str(
        ParameterTerm(parameter="m", coefficient=0.050625 - 1e-16)
    )
    assert str(ParameterTerm(parameter="m", coefficient=-1.0 + 1e-13)) == "- m"
    assert str(ParameterTerm(parameter="m", coefficient=12345.678)) == "+ 1.235e+04 m"


def test_long_names_are_shortened_and_say_by_how_much():
    terms = tuple(
        ParameterTerm(parameter=f"body_{k}.mass", coefficient=0.25 * (k + 2)) for k in range(12)
    )
    parameter = BaseParameter(representative="platform.mass", unit="kg", terms=terms)
    assert parameter.name.count("body") == 12
    assert (
        parameter.short_name(60) == "platform.mass + 0.5 body_0.mass + 0.75 body_1.mass … 10 more"
    )
    assert len(parameter.short_name(60)) <= 60
    assert parameter.short_name(1000) == parameter.name
    # never shorter than its representative
    assert parameter.short_name(5) == "platform.mass … 12 more"


def test_earlier_columns_represent_later_ones():
    a, b = np.random.default_rng(0).standard_normal((2, 100))
    assert find(np.column_stack([a, b, a])).names == ("p0 + p2", "p1")
    assert find(np.column_stack([b, a, a])).names == ("p0", "p1 + p2")
    assert find(np.column_stack([a, a + b, b])).names == ("p0 - p2", "p1 + p2")


def test_the_given_order_gives_way_to_conditioning():
    """Of a, a + 0.001 b and b, the first two would be 2 000 times worse conditioned than the first and third."""
    a, b = np.random.default_rng(0).standard_normal((2, 1000))
    matrix = np.column_stack([a, a + 1e-3 * b, b])
    # each of the two means is enough
    for options in ({}, {"preference": 1e-6}, {"largest_share": 1e6}):
        base = find(matrix, **options)
        assert list(base.independent) == [0, 2]
        assert base.condition < 1.2
    assert list(find(matrix, preference=1e-6, largest_share=1e6).independent) == [0, 1]


def test_a_column_of_rounding_dust_has_no_effect():
    a, b = np.random.default_rng(0).standard_normal((2, 100))
    base = find(np.column_stack([a, 1e-14 * b]))
    assert (base.rank, base.no_effect) == (1, ("p1",))
    assert find(np.column_stack([a, 1e-6 * b])).rank == 2


@st.composite
def rank_deficient(draw: st.DrawFn) -> np.ndarray:
    """A product of random factors, its columns in units that differ by six decades, some columns zero."""
    columns = draw(st.integers(2, 14))
    rank = draw(st.integers(1, columns))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    matrix = rng.standard_normal((60, rank)) @ np.hstack(
        [np.eye(rank), rng.uniform(-2, 2, (rank, columns - rank))]
    )
    zero = np.zeros((60, draw(st.integers(0, 2))))
    matrix = np.hstack([matrix * 10.0 ** rng.uniform(-3, 3, columns), zero])
    return matrix[:, rng.permutation(matrix.shape[1])]


@given(rank_deficient())
def test_rank_and_forces_of_random_matrices(matrix):
    base = find(matrix)
    norms = np.linalg.norm(matrix, axis=0)
    unit = matrix[:, norms > 0] / norms[norms > 0]
    assert base.rank == np.linalg.matrix_rank(unit, tol=1e-8)
    parameters = np.random.default_rng(0).standard_normal(matrix.shape[1])
    forces = matrix @ parameters
    tolerance = SAME_FORCES * np.abs(matrix) @ np.abs(parameters)
    assert np.all(
        np.abs(matrix[:, base.independent] @ base.regroup(parameters) - forces) <= tolerance
    )
    assert np.all(np.abs(matrix @ base.spread(base.regroup(parameters)) - forces) <= tolerance)
    assert sorted([*base.alone, *base.combined, *base.no_effect]) == sorted(base.parameters)
    assert list(base.independent) == sorted(base.independent)
    assert base.mismatch(matrix) < SAME_FORCES


@given(rank_deficient(), st.randoms(use_true_random=False))
def test_order_of_the_columns_changes_names_only(matrix, random):
    order = list(range(matrix.shape[1]))
    random.shuffle(order)
    parameters = np.random.default_rng(0).standard_normal(matrix.shape[1])
    shuffled = find(matrix[:, order])
    assert shuffled.rank == find(matrix).rank
    forces = matrix[:, order][:, shuffled.independent] @ shuffled.regroup(parameters[order])
    np.testing.assert_allclose(
        forces, matrix @ parameters, atol=SAME_FORCES * np.abs(matrix @ parameters).max()
    )


def test_conditioning_is_near_that_of_column_pivoting():
    rng = np.random.default_rng(3)
    for _ in range(50):
        matrix = (
            rng.standard_normal((80, 12)) @ rng.standard_normal((12, 30)) * rng.uniform(0.1, 10, 30)
        )
        base = find(matrix)
        unit = matrix / np.linalg.norm(matrix, axis=0)
        _, _, pivots = scipy.linalg.qr(unit, mode="economic", pivoting=True)
        assert base.condition < ORDER_COST * np.linalg.cond(unit[:, pivots[:12]])
        np.testing.assert_allclose(
            base.condition, np.linalg.cond(unit[:, base.independent]), rtol=1e-8
        )
        np.testing.assert_allclose(
            base.condition_si, np.linalg.cond(matrix[:, base.independent]), rtol=1e-8
        )


def test_diagnostics_of_the_rank():
    rng = np.random.default_rng(0)
    matrix = rng.standard_normal((300, 5)) @ rng.standard_normal((5, 8))
    base = find(matrix)
    assert base.gap > 1e10
    assert base.singular_value_gap > 1e10
    unit = matrix / np.linalg.norm(matrix, axis=0)
    np.testing.assert_allclose(
        base.singular_values[:5], np.linalg.svd(unit, compute_uv=False)[:5], rtol=1e-10
    )
    full = find(matrix[:, :5])
    assert full.gap is None
    assert full.singular_value_gap is None


def test_condensed_data_give_the_same_base_parameters():
    data = arm_data(SAMPLES_AT_ONCE * 2 + 77)
    whole = base_parameters(data.regressor, data.parameters, data.parameter_units)
    small = base_parameters(data.triangles[:, :, :-1], data.parameters, data.parameter_units)
    assert whole.names == small.names
    np.testing.assert_allclose(whole.regrouping, small.regrouping, atol=1e-10)


def test_regrouping_from_a_poor_motion_does_not_fit_a_rich_one():
    """With the elbow locked, everything behind the shoulder is one body."""
    _, q, v, a = arm_motion(500)
    locked = arm_regressor(*(x * np.array([1.0, 0.0]) for x in (q, v, a)))[:, :1]
    base = base_parameters(locked, NAMES, UNITS)
    assert base.rank == 3
    assert base.mismatch(locked.reshape(-1, 8)) < SAME_FORCES
    assert base.mismatch(arm_regressor(q, v, a).reshape(-1, 8)) > 0.1


def test_zero_regressor_is_refused():
    with pytest.raises(IdentificationError, match=r"zero in all columns \(p0, p1.*rank is 0"):
        find(np.zeros((20, 3)))


def test_unclear_rank_is_refused_with_its_figures():
    rng = np.random.default_rng(0)
    left, right = (
        np.linalg.qr(rng.standard_normal((60, 12)))[0],
        np.linalg.qr(rng.standard_normal((12, 12)))[0],
    )
    matrix = left @ np.diag(10.0 ** -np.arange(12.0)) @ right
    with pytest.raises(
        IdentificationError,
        match=r"ambiguous numerical rank at the tolerance 1e-08: .* by a factor of",
    ) as caught:
        find(matrix, least_gap=100.0)
    assert "excites more" in str(caught.value)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"regressor": np.ones((3,))}, "has shape (3,)"),
        ({"regressor": np.ones((0, 3))}, "has shape (0, 3)"),
        ({"names": ("a",)}, "names: has 1 entry"),
        ({"units": ()}, "units: has 0 entries"),
        ({"regressor": np.array([[1.0, np.nan, 1.0]])}, "1 of 3 numbers are not finite"),
    ],
)
def test_wrong_input_is_refused(change, text):
    arguments = {"regressor": np.eye(3), "names": letters(3), "units": ("kg",) * 3, **change}
    with pytest.raises(IdentificationError) as caught:
        base_parameters(**arguments)
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tolerance", 0.0),
        ("least_gap", 1.0),
        ("preference", 1.5),
        ("largest_share", 0.5),
        ("no_effect", -1.0),
        ("smallest_share", float("nan")),
    ],
)
def test_wrong_options_are_refused(name, value):
    with pytest.raises(IdentificationError, match=f"RankOptions.{name}"):
        RankOptions(**{name: value})


def test_all_wrong_options_are_told_at_once():
    with pytest.raises(IdentificationError) as caught:
        RankOptions(tolerance=2.0, preference=0.0)
    assert len(caught.value.problems) == 2
    assert dataclasses.asdict(RankOptions())["tolerance"] == 1e-8
