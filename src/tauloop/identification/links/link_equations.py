"""Base parameters and link inertias as functions of a machine file's independent parameters."""

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
from tauloop.identification.regression.from_log import DYNAMIC_GROUPS
from tauloop.identification.regrouping.regrouping_columns import parsed
from tauloop.identification.values import si_value
from tauloop.mechanism.description.units import si_unit
from tauloop.mechanism.expression import Expression, Leaf, Parameter, leaves
from tauloop.mechanism.model import Mechanism
from tauloop.mechanism.suggestions import unknown_names
from tauloop.model import Model

#: Signs between a value and its standard deviation.
PLUS_MINUS = ("+-", "±")


class LinkEquations:
    """Equations t = w(x) + e of estimated and known values, and inertial parameters pi(x).

    The unknowns x are independent parameters of the machine file.

    Attributes:
        unknown: the unknown independent parameters x, followed by other parameters that occur in
            the estimates, such as those of a payload, whose value is NaN.
        parameters: the parameters pi, all inertial parameters of the machine.
        rows: names of the rows: base parameters by number, then measured values.
        estimated: number of rows that are base parameters.
        known: known values and their standard deviations, SI, by name.
        right: values t (m,) of the rows.
        covariance: covariance (m, m) of the errors e.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        estimates: BaseEstimates,
        known: Mapping[str, float | str | tuple[float, float]],
    ) -> None:
        """Set up the equations of a machine.

        Args:
            mechanism: the machine.
            estimates: base parameters with their covariance.
            known: known values by name, with or without a standard deviation.

        Raises:
            InputError: a known name is not a parameter of the machine, or its value has the wrong
                dimension; lists all problems.
        """
        table = {parameter.name: parameter for parameter in mechanism.parameters}
        dynamic = {parameter.name: parameter for parameter in Model(mechanism).parameters}
        self.parameters = tuple(
            parameter for parameter in dynamic.values() if parameter.group == "inertia"
        )
        fixed, measured = _fixed_and_measured(known, table, dynamic)
        self.known = {name: (value, 0.0) for name, value in fixed.items()}
        self.known |= {name: (value, deviation) for name, (_, value, deviation) in measured.items()}
        estimated = [_expression(mechanism, dynamic, name) for name in estimates.parameters]
        expressions = [expression for expression in estimated if expression is not None]
        expressions += [parameter.expression for parameter in self.parameters]
        expressions += [expression for expression, *_ in measured.values()]
        used = frozenset().union(*map(leaves, expressions))
        machine_unknowns = [
            replace(p, unit=si_unit(p.unit), scale=1.0)
            for p in mechanism.parameters
            if p.name in used and p.group in DYNAMIC_GROUPS and p.name not in fixed
        ]
        other_unknowns = [
            Parameter(name=name, value=float("nan"), unit="", group="other", status="chosen")
            for name, expression in zip(estimates.parameters, estimated, strict=True)
            if expression is None
        ]
        self.unknown: tuple[Parameter, ...] = (*machine_unknowns, *other_unknowns)
        self.estimated = len(estimates.values)
        base_names = [f"base parameter {k + 1}" for k in range(self.estimated)]
        self.rows = (*base_names, *measured)
        measured_values = [value for _, value, _ in measured.values()]
        self.right = np.concatenate([estimates.values, measured_values])
        measured_variances = [deviation**2 for *_, deviation in measured.values()]
        self.covariance = block_diag(estimates.covariance, np.diag(measured_variances))
        x = ca.SX.sym("x", len(self.unknown))
        symbols = {parameter.name: x[k] for k, parameter in enumerate(machine_unknowns)}
        values = Values({**mechanism.parameters.values, **fixed, **symbols})
        others = iter(x[len(machine_unknowns) + k] for k in range(len(other_unknowns)))
        estimated_values = [
            next(others) if expression is None else values.scalar(expression)
            for expression in estimated
        ]
        w = ca.vertcat(
            ca.mtimes(ca.DM(estimates.regrouping), ca.vertcat(*estimated_values)),
            *(values.scalar(expression) for expression, *_ in measured.values()),
        )
        pi = ca.vertcat(*(values.scalar(parameter.expression) for parameter in self.parameters))
        self._w = ca.Function("w", [x], [ca.densify(w), ca.densify(ca.jacobian(w, x))])
        self._pi = ca.Function("pi", [x], [ca.densify(pi)])

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Return the rows w (m,) at x."""
        return np.asarray(self._w(x)[0]).ravel()

    def jacobian(self, x: np.ndarray) -> np.ndarray:
        """Return the Jacobian dw/dx (m, n) at x."""
        return np.asarray(self._w(x)[1])

    def inertial(self, x: np.ndarray) -> np.ndarray:
        """Return the inertial parameters pi (n_pi,) at x."""
        return np.asarray(self._pi(x)).ravel()

    @cached_property
    def start(self) -> np.ndarray:
        """Values of the unknowns in the machine file; zero for unknowns that are not in it."""
        return np.array(
            [0.0 if np.isnan(parameter.value) else parameter.value for parameter in self.unknown]
        )

    @cached_property
    def sizes(self) -> np.ndarray:
        """Scales of the unknowns: absolute values in the machine file.

        The scale of a zero value is the median scale of the unknowns with the same unit.
        """
        sizes = np.abs(self.start)
        units = np.array([parameter.unit for parameter in self.unknown])
        medians = np.ones(len(sizes))
        for unit in np.unique(units):
            positive = sizes[(units == unit) & (sizes > 0.0)]
            if len(positive):
                medians[units == unit] = np.median(positive)
        return np.where(sizes > 0.0, sizes, medians)

    def links(self, k: int) -> tuple[str, ...]:
        """Return the elements whose inertia depends on the unknown with index k."""
        name = self.unknown[k].name
        return tuple(
            dict.fromkeys(p.element for p in self.parameters if name in leaves(p.expression))
        )


def _expression(
    mechanism: Mechanism, dynamic: Mapping[str, DynamicParameter], name: str
) -> Expression | None:
    """Return the expression of a name, which is a parameter or an expression in parameters.

    Returns:
        The expression; None if it contains names that are not parameters of the machine, such as
        the mass of a payload.
    """
    if name in mechanism.parameters.names:
        return Leaf(name)
    if name in dynamic:
        return dynamic[name].expression
    try:
        return parsed(mechanism, name).expression
    except InputError:
        return None


def _fixed_and_measured(
    known: Mapping[str, float | str | tuple[float, float]],
    table: Mapping[str, Parameter],
    dynamic: Mapping[str, DynamicParameter],
) -> tuple[dict[str, float], dict[str, tuple[Expression, float, float]]]:
    """Return the independent parameters that are fixed, and those that are measured.

    Returns:
        Fixed values, SI, by name; expression, value and standard deviation, SI, of each measured
        parameter by name.
    """
    units = {name: entry.unit for name, entry in dynamic.items()}
    units |= {name: entry.unit for name, entry in table.items()}
    remedy = "see `tauloop show MACHINE --table`"
    problems = Problems(
        unknown_names(known, units, "is not a parameter of the machine", "known {}", remedy)
    )
    fixed, measured = {}, {}
    for name in known:
        if name not in units:
            continue
        with problems.collecting(InputError):
            value, deviation = _value_and_deviation(name, known[name], units[name])
            if name in table and deviation == 0.0:
                fixed[name] = value
            else:
                expression = Leaf(name) if name in table else dynamic[name].expression
                measured[name] = (expression, value, deviation)
    InputError.raise_if_any(problems)
    return fixed, measured


def _value_and_deviation(
    name: str, stated: float | str | tuple[float, float], unit: str
) -> tuple[float, float]:
    """Return a known value and its standard deviation, SI."""
    if isinstance(stated, tuple):
        value, deviation = map(float, stated)
    elif isinstance(stated, str):
        sign = next((sign for sign in PLUS_MINUS if sign in stated), PLUS_MINUS[0])
        first, _, second = stated.partition(sign)
        value = si_value(f"known {name}", first.strip(), unit)
        deviation = si_value(f"known {name}", second.strip() or "0", unit)
    else:
        value = float(stated)
        deviation = 0.0
    if not (np.isfinite(value) and 0.0 <= deviation < np.inf):
        raise InputError.of(
            f"known {name}",
            f"is {value:g} with a standard deviation of {deviation:g}",
            "give a finite value, and a standard deviation of at least zero",
        )
    return value, deviation
