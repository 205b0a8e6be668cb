"""What a machine file's own parameters make of base parameters and of its links' inertias."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property

import casadi as ca
import numpy as np
from scipy.linalg import block_diag

from tauloop.common.errors import InputError, Problems
from tauloop.equations.values import DynamicParameter, Values
from tauloop.identification.parameters.base_estimates import BaseEstimates
from tauloop.identification.parameters.regrouping_columns import parsed
from tauloop.identification.regression.from_log import DYNAMIC_GROUPS
from tauloop.identification.values import si_value
from tauloop.mechanism.description.units import si_unit
from tauloop.mechanism.expression import Expression, Leaf, Parameter, leaves
from tauloop.mechanism.model import Mechanism
from tauloop.mechanism.suggestions import unknown_names
from tauloop.model import Model

#: Between a value and its standard deviation.
PLUS_MINUS = ("+-", "±")


class LinkEquations:
    """Rows t = w(x) + e of what is measured or known, and inertial parameters pi(x), of unknown leaf parameters x.

    Attributes:
        unknown: the leaf parameters x; then, with NaN for a value, whatever else the estimates are
            made of.
        parameters: of pi: all inertial ones of the machine.
        rows: names of the rows: base parameters by number, then what is known by measurement.
        estimated: how many of them are base parameters.
        known: values and standard deviations, SI, of what is known.
        right: t (m,).
        covariance: of e (m, m).
    """

    def __init__(
        self,
        mechanism: Mechanism,
        estimates: BaseEstimates,
        known: Mapping[str, float | str | tuple[float, float]],
    ) -> None:
        """Of a machine.

        Raises:
            InputError: a known name is no parameter of the machine, or its value no quantity of its
                dimension; all.
        """
        table = {parameter.name: parameter for parameter in mechanism.parameters}
        dynamic = {parameter.name: parameter for parameter in Model(mechanism).parameters}
        self.parameters = tuple(
            parameter for parameter in dynamic.values() if parameter.group == "inertia"
        )
        fixed, measured = _stated(known, table, dynamic)
        self.known = {name: (value, 0.0) for name, value in fixed.items()}
        self.known |= {name: (value, deviation) for name, (_, value, deviation) in measured.items()}
        combined = [_expression(mechanism, dynamic, name) for name in estimates.parameters]
        asked = [
            *combined,
            *(p.expression for p in self.parameters),
            *(expression for expression, *_ in measured.values()),
        ]
        used = frozenset().union(
            *(leaves(expression) for expression in asked if expression is not None)
        )
        own = [
            replace(p, unit=si_unit(p.unit), scale=1.0)
            for p in mechanism.parameters
            if p.name in used and p.group in DYNAMIC_GROUPS and p.name not in fixed
        ]
        foreign = [
            name
            for name, expression in zip(estimates.parameters, combined, strict=True)
            if expression is None
        ]
        others = [
            Parameter(name=name, value=float("nan"), unit="", group="other", status="chosen")
            for name in foreign
        ]
        self.unknown: tuple[Parameter, ...] = (*own, *others)
        self.estimated = len(estimates.values)
        self.rows = (*(f"base parameter {k + 1}" for k in range(len(estimates.values))), *measured)
        self.right = np.concatenate(
            [estimates.values, [value for _, value, _ in measured.values()]]
        )
        self.covariance = block_diag(
            estimates.covariance, np.diag([d**2 for *_, d in measured.values()])
        )
        x = ca.SX.sym("x", len(self.unknown))
        values = Values(
            {
                **mechanism.parameters.values,
                **fixed,
                **{parameter.name: x[k] for k, parameter in enumerate(own)},
            }
        )
        extra = iter(x[len(own) + k] for k in range(len(foreign)))
        u = ca.vertcat(
            *(
                next(extra) if expression is None else values.scalar(expression)
                for expression in combined
            )
        )
        w = ca.vertcat(
            ca.mtimes(ca.DM(estimates.regrouping), u),
            *(values.scalar(e) for e, *_ in measured.values()),
        )
        pi = ca.vertcat(*(values.scalar(parameter.expression) for parameter in self.parameters))
        self._w = ca.Function("w", [x], [ca.densify(w), ca.densify(ca.jacobian(w, x))])
        self._pi = ca.Function("pi", [x], [ca.densify(pi)])

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Rows w (m,) at x."""
        return np.asarray(self._w(x)[0]).ravel()

    def jacobian(self, x: np.ndarray) -> np.ndarray:
        """Slopes dw/dx (m, n) at x."""
        return np.asarray(self._w(x)[1])

    def inertial(self, x: np.ndarray) -> np.ndarray:
        """Inertial parameters pi (n_pi,) at x."""
        return np.asarray(self._pi(x)).ravel()

    @cached_property
    def start(self) -> np.ndarray:
        """Values of the machine file; zero for what is not in it."""
        return np.array(
            [0.0 if np.isnan(parameter.value) else parameter.value for parameter in self.unknown]
        )

    @cached_property
    def sizes(self) -> np.ndarray:
        """Sizes of the unknowns: their values, or where these are zero the median of those of the same unit."""
        own, units = np.abs(self.start), np.array([parameter.unit for parameter in self.unknown])
        like = [own[(units == unit) & (own > 0.0)] for unit in units]
        return np.where(own > 0.0, own, [np.median(sizes) if len(sizes) else 1.0 for sizes in like])

    def links(self, k: int) -> tuple[str, ...]:
        """Elements whose inertia the unknown number k is of."""
        name = self.unknown[k].name
        return tuple(
            dict.fromkeys(p.element for p in self.parameters if name in leaves(p.expression))
        )


def _expression(
    mechanism: Mechanism, dynamic: Mapping[str, DynamicParameter], name: str
) -> Expression | None:
    """Of a name or expression in the machine's parameters; None for what is none of these, as a payload's mass."""
    if name in mechanism.parameters.names:
        return Leaf(name)
    if name in dynamic:
        return dynamic[name].expression
    try:
        return parsed(mechanism, name).expression
    except InputError:
        return None


def _stated(
    known: Mapping[str, float | str | tuple[float, float]],
    table: Mapping[str, Parameter],
    dynamic: Mapping[str, DynamicParameter],
) -> tuple[dict[str, float], dict[str, tuple[Expression, float, float]]]:
    """Leaf parameters that are fixed, and further rows: expression, value and standard deviation, SI, by name."""
    units = {name: entry.unit for name, entry in dynamic.items()} | {
        name: entry.unit for name, entry in table.items()
    }
    remedy = "see `tauloop show MACHINE --table`"
    problems = Problems(
        unknown_names(known, units, "is no parameter of the machine", "known {}", remedy)
    )
    fixed, measured = {}, {}
    for name in (name for name in known if name in units):
        with problems.collecting(InputError):
            value, deviation = _value_and_deviation(name, known[name], units[name])
            if name in table and deviation == 0.0:
                fixed[name] = value
            else:
                measured[name] = (
                    (Leaf(name) if name in table else dynamic[name].expression),
                    value,
                    deviation,
                )
    InputError.raise_if_any(problems)
    return fixed, measured


def _value_and_deviation(
    name: str, stated: float | str | tuple[float, float], unit: str
) -> tuple[float, float]:
    if isinstance(stated, tuple):
        value, deviation = map(float, stated)
    elif isinstance(stated, str):
        sign = next((sign for sign in PLUS_MINUS if sign in stated), PLUS_MINUS[0])
        first, _, second = stated.partition(sign)
        value = si_value(f"known {name}", first.strip(), unit)
        deviation = si_value(f"known {name}", second.strip() or "0", unit)
    else:
        value, deviation = float(stated), 0.0
    if not (np.isfinite(value) and 0.0 <= deviation < np.inf):
        what = f"is {value:g} with a standard deviation of {deviation:g}"
        raise InputError.of(
            f"known {name}", what, "give a number, and a standard deviation of at least zero"
        )
    return value, deviation
