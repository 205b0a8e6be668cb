"""Tables of results for papers: digits of values with a deviation, escaped names, units."""

import math
import re
from collections.abc import Iterator

import numpy as np
import pytest

import tauloop as tl
from tauloop.common.datasets import Tabular, Variable, rows
from tauloop.common.errors import InputError
from tauloop.common.records import dataclass


@dataclass(frozen=True)
class Estimates(Tabular):
    """Estimates with standard deviations, as those of an identification."""

    names: tuple[str, ...] = ("a",)
    units: tuple[str, ...] = ("m",)
    values: tuple[float, ...] = (1.0,)
    deviations: tuple[float, ...] = (0.1,)

    def variables(self) -> Iterator[Variable]:
        return rows(
            "parameter", self.names, self.units, value=self.values, deviation=self.deviations
        )


def cells(text: str) -> list[list[str]]:
    """Return the cells of a Markdown table below its headings."""
    lines = text.splitlines()[2:]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


@pytest.mark.parametrize(
    ("value", "deviation", "written"),
    [
        (1.23456, 0.0123, "1.235 ± 0.012"),
        (0.25, 0.0000996, "0.25000 ± 0.00010"),
        (12.3456, 3.0, "12.3 ± 3.0"),
        (-1.23456e-9, 3.4e-12, "(-1.2346 ± 0.0034)e-9"),
        (12345.678, 99.6, "(1.235 ± 0.010)e4"),
        (0.0, 0.1, "0.00 ± 0.10"),
        (2e-7, 3.0, "0.0 ± 3.0"),
        (1.23456789, math.nan, "1.235"),
        (1.23456789, 0.0, "1.235"),
        (99999.99, math.nan, "1e5"),
        (1e-20, math.nan, "1e-20"),
        (0.5, math.nan, "0.5"),
        (-0.0, math.nan, "0"),
        (math.inf, math.nan, "∞"),
        (math.nan, math.nan, ""),
    ],
)
def test_values_are_rounded_to_their_deviation(
    value: float, deviation: float, written: str
) -> None:
    (row,) = cells(Estimates(values=(value,), deviations=(deviation,)).to_markdown())
    assert row == ["a", written, "m"]


def test_a_rounded_value_is_within_a_twentieth_of_its_deviation() -> None:
    rng = np.random.default_rng(3)
    values = rng.normal(size=200) * 10.0 ** rng.uniform(-8, 8, 200)
    deviations = np.abs(values) * 10.0 ** rng.uniform(-6, 2, 200)
    names = tuple(f"p{i}" for i in range(200))
    table = Estimates(names, ("m",) * 200, tuple(values), tuple(deviations)).to_markdown()
    for value, deviation, (_, text, _) in zip(values, deviations, cells(table), strict=True):
        number, _, rest = text.strip("(").partition(" ± ")
        spread, _, exponent = rest.partition(")e")
        factor = 10.0 ** float(exponent or 0)
        assert abs(float(number) * factor - value) <= 0.051 * deviation
        assert abs(float(spread) * factor - deviation) <= 0.051 * deviation


def test_units_are_converted_and_checked() -> None:
    estimates = Estimates(("a", "b"), ("m", "kg m^2"), (0.25, 2.0), (1e-4, 0.1))
    table = cells(estimates.to_markdown(units={"m": "mm", "kg m^2": "kg mm^2"}))
    assert table == [["a", "250.00 ± 0.10", "mm"], ["b", "(2.00 ± 0.10)e6", "kg mm^2"]]
    with pytest.raises(InputError, match="kg is not a unit for quantities in m"):
        estimates.to_markdown(units={"m": "kg"})
    with pytest.raises(InputError, match="length"):
        estimates.to_latex(units={"m": "length"})
    with pytest.raises(InputError, match="there is no column 'valeu'"):
        estimates.to_latex(columns=["valeu"])
    with pytest.raises(InputError, match="0 digits"):
        estimates.to_latex(digits=0)
    with pytest.raises(InputError, match="does not allow in a label"):
        estimates.to_latex(label="}\\input{x}")


NASTY = "50% & #1 $x_1^2$ ~{a}\\input{b} <b>|`*"


def test_names_are_escaped() -> None:
    markdown = Estimates(names=(NASTY,)).to_markdown()
    assert len(cells(markdown)) == 1
    assert "<b>" not in markdown
    assert r"\`\*" in markdown
    latex = Estimates(names=(NASTY,)).to_latex(caption=NASTY)
    body = re.sub(
        r"\\(textbackslash|textasciicircum|textasciitilde|textless|textgreater)\{\}", "", latex
    )
    assert r"\input" not in body.replace(r"\{", "").replace(r"\}", "")
    for sign in "%&#$_":
        escaped = rf"\{sign}"
        assert NASTY.count(sign) * 2 <= body.count(escaped)
    unescaped = re.sub(r"\\[{}%&#$_]", "", body)
    assert unescaped.count("{") == unescaped.count("}")


def test_a_table_over_time_has_units_in_its_heads() -> None:
    fall = tl.simulate("four_bar", duration="10 ms")
    text = fall.to_markdown(columns=["position.crank_pin", "force.motor"])
    assert text.splitlines()[0] == (r"| time (s) | position.crank\_pin (rad) | force.motor (N m) |")
    assert len(cells(text)) == len(fall.to_pandas())
    assert r"force.motor (\unit{N.m})" in fall.to_latex()


def test_parameters_of_every_shipped_machine_are_written() -> None:
    for name in tl.shipped_machines():
        parameters = tl.load(name).parameters
        table = cells(parameters.to_markdown(columns=["value"], digits=12))
        assert [float(row[1]) for row in table] == pytest.approx(
            [item.value for item in parameters], rel=1e-11
        )
