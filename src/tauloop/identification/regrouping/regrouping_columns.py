"""Regressor columns for analytic regrouping: products of a machine's parameters and their sums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

import numpy as np

from tauloop.common.errors import IdentificationError, InputError, PoseError, Problem
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.identification.regrouping.regrouping import ColumnParameter
from tauloop.kinematics.states import RandomStates, random_states
from tauloop.mechanism.description import parser
from tauloop.mechanism.description.units import parse_unit
from tauloop.mechanism.expression import Expression, Leaf, evaluate, leaves
from tauloop.mechanism.model import Mechanism
from tauloop.mechanism.suggestions import suggestion, unknown_names
from tauloop.model import Model

#: Number of random states over which columns are stacked.
RANDOM_STATES = 30
#: Seed of the states, so that the same lengths give the same columns.
STATE_SEED = 0
#: A standard parameter has no effect if its column is below this fraction of the largest.
NO_EFFECT_TOLERANCE = 1e-10
#: Relative accuracy to which standard parameters must be linear in the products.
LINEARITY_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """An expression in a machine's independent parameters, with its SI unit and its text."""

    text: str
    unit: str
    expression: Expression


def parsed(mechanism: Mechanism, text: str) -> Parsed:
    """Parse an expression in a machine's parameters, such as ``m1 * d_c1^2``.

    Returns:
        The expression with its unit.

    Raises:
        InputError: the expression cannot be read, or contains a name that is not a parameter.
    """
    table = mechanism.parameters

    def lookup(name: str) -> parser.Quantity:
        if name not in table.names:
            remedy = suggestion(name, table.names) or "name independent parameters of the machine"
            raise InputError.of(text, f"{name!r} is not a parameter of the machine", remedy)
        return parser.Quantity(Leaf(name), parse_unit(table[name].unit).dimension)

    try:
        syntax = parser.parse(text)
        known = {name: lookup(name) for name in parser.names(syntax)}
        quantity = parser.resolve(syntax, known)
    except parser.ExpressionError as error:
        raise InputError.of(text, error.what, error.remedy) from error
    if quantity is None:
        raise InputError.of(text, "has no value", "write a product of parameters")
    return Parsed(text=text, unit=str(quantity.dimension), expression=quantity.expression)


class StandardColumns:
    """A machine's regressor in standard parameters over random states, as a function of lengths.

    Results are cached. The lengths are free parameters of one model if the machine's loops have no
    redundant equations and no constant coordinates. Otherwise lengths must be consistent with each
    other, and the machine is assembled again for each set of lengths.
    """

    def __init__(self, mechanism: Mechanism) -> None:
        """Store the machine.

        Assembly takes most of the time, so all sets of products should share one instance.
        """
        self.mechanism = mechanism
        self._models: dict[tuple[str, ...], tuple[Model, RandomStates]] = {}
        self._known: dict[tuple[tuple[str, float], ...], tuple[Model, np.ndarray]] = {}

    def __call__(self, lengths: Mapping[str, float]) -> tuple[Model, np.ndarray]:
        """Return the model and its stacked regressor (m, n_pi) at given lengths.

        Args:
            lengths: lengths by name, m.

        Returns:
            A model with these lengths, or with free lengths; the regressor at these lengths.
        """
        key = tuple(sorted(lengths.items()))
        if key not in self._known:
            model, Y = self._compute(lengths)
            self._known[key] = model, Y.reshape(-1, Y.shape[-1])
        return self._known[key]

    def _compute(self, lengths: Mapping[str, float]) -> tuple[Model, np.ndarray]:
        if tuple(lengths) not in self._models:
            self._models[tuple(lengths)] = _with_states(Model(self.mechanism, lengths))
        model, states = self._models[tuple(lengths)]
        if not (model.assembly.dropped or model.assembly.frozen):
            # Some states can be out of reach with these lengths.
            with suppress(PoseError):
                return model, _regressor(model, states, np.array([*lengths.values()]))
        model, states = _with_states(Model(self.mechanism.with_values(dict(lengths))))
        return model, _regressor(model, states)


def _with_states(model: Model) -> tuple[Model, RandomStates]:
    return model, random_states(model, RANDOM_STATES, np.random.default_rng(STATE_SEED))


def _regressor(model: Model, states: RandomStates, theta: np.ndarray | None = None) -> np.ndarray:
    motion = states.position, states.velocity, states.acceleration
    return model.platform.regressor(*motion, start=states.q, theta=theta)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProductColumns(ReprMixin):
    """A machine's regressor in products of its parameters, as a function of lengths.

    Attributes:
        standard: the machine's regressor in standard parameters.
        products: the n products; the standard parameters that have an effect are linear in them.
        placed: expressions that replace standard parameters, by name, to compare with a model that
            describes these parameters differently, for example with a mass at another point.
    """

    standard: StandardColumns
    products: tuple[Parsed, ...]
    placed: Mapping[str, Parsed]

    @staticmethod
    def of(
        standard: StandardColumns, products: Sequence[str], placed: Mapping[str, str] | None = None
    ) -> ProductColumns:
        """Parse the expressions of products and replaced parameters.

        Returns:
            Columns of the products.

        Raises:
            InputError: an expression cannot be read, or contains a name that is not a parameter.
        """
        mechanism = standard.mechanism
        return ProductColumns(
            standard=standard,
            products=tuple(parsed(mechanism, text) for text in products),
            placed={name: parsed(mechanism, text) for name, text in (placed or {}).items()},
        )

    @property
    def mechanism(self) -> Mechanism:
        """The machine."""
        return self.standard.mechanism

    @property
    def quantities(self) -> tuple[ColumnParameter, ...]:
        """The names and units of the products; ``m1 * d_c1`` has the name ``m1 d_c1``."""
        return tuple(
            ColumnParameter(name=product.text.replace(" * ", " "), unit=product.unit)
            for product in self.products
        )

    def values(self, parameters: Mapping[str, float] | None = None) -> np.ndarray:
        """Return the values (n,) of the products, SI.

        Args:
            parameters: values of all independent parameters by name, SI; by default those of the
                machine.
        """
        values = self.mechanism.parameters.values if parameters is None else parameters
        return np.array([evaluate(product.expression, values) for product in self.products])

    def __call__(self, lengths: Mapping[str, float]) -> np.ndarray:
        """Return the stacked columns (m, n) over random states of the machine, SI.

        Raises:
            IdentificationError: standard parameters are not linear in the products; lists them.
        """
        model, Y = self.standard(lengths)
        return np.asarray(Y @ self.shares(model, Y, lengths))

    def shares(
        self, model: Model, regressor: np.ndarray, lengths: Mapping[str, float]
    ) -> np.ndarray:
        """Return the matrix A (n_pi, n) of the standard parameters p = A times the products.

        Rows of standard parameters without effect are zero.

        Args:
            model: the machine with these lengths.
            regressor: its stacked regressor (m, n_pi).
            lengths: lengths by name. They are constant, while all other parameters in the products
                vary.

        Raises:
            IdentificationError: standard parameters are not linear in the products; lists them.
        """
        expressions = [
            self.placed[parameter.name].expression
            if parameter.name in self.placed
            else parameter.expression
            for parameter in model.parameters
        ]
        norms = np.linalg.norm(regressor, axis=0)
        effective = [int(k) for k in np.flatnonzero(norms > NO_EFFECT_TOLERANCE * norms.max())]
        product_expressions = [product.expression for product in self.products]
        varied = sorted(frozenset().union(*map(leaves, product_expressions)) - set(lengths))
        rng = np.random.default_rng(STATE_SEED)
        nominal = {**self.mechanism.parameters.values, **lengths}
        product_rows, value_rows = [], []
        for _ in range(2 * len(self.products) + 2):
            draw = dict(nominal)
            for name in varied:
                draw[name] = nominal[name] * rng.uniform(0.5, 1.5)
            product_rows.append([evaluate(expression, draw) for expression in product_expressions])
            value_rows.append([evaluate(expressions[k], draw) for k in effective])
        P = np.array(product_rows)
        values = np.array(value_rows)
        norms = np.linalg.norm(P, axis=0)
        solution = np.linalg.lstsq(P / norms, values, rcond=None)[0] / norms[:, None]
        misfit = np.abs(P @ solution - values).max(axis=0)
        largest = np.abs(values).max(axis=0)
        IdentificationError.raise_if_any(
            Problem(
                model.parameters[k].name,
                f"is not a sum of the products: a remainder of {error:.3g} of {size:.3g} "
                f"{model.parameters[k].unit} is left",
                "add the missing products",
            )
            for k, error, size in zip(effective, misfit, largest, strict=True)
            if error > LINEARITY_TOLERANCE * size
        )
        A = np.zeros((len(expressions), len(self.products)))
        A[effective] = solution.T
        return A


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SetColumns(ReprMixin):
    """A regressor in a set of combinations of products: Y_products = Y_set E.

    The set can be a published minimal set.

    Attributes:
        products: the regressor in products.
        members: coefficients, as expressions in lengths, by combination and product.
        units: units of the combinations.
    """

    products: ProductColumns
    members: Mapping[str, Mapping[str, Parsed]]
    units: Mapping[str, str]

    @staticmethod
    def of(
        products: ProductColumns, members: Mapping[str, Mapping[str, str]], units: Mapping[str, str]
    ) -> SetColumns:
        """Parse the expressions of the coefficients.

        Returns:
            Columns of the set.

        Raises:
            InputError: an expression cannot be read, or a product is not one of the columns.
        """
        known = [product.text for product in products.products]
        named = [name for terms in members.values() for name in terms]
        InputError.raise_if_any(unknown_names(named, known, "is not one of the products"))
        coefficients = {}
        for name, terms in members.items():
            coefficients[name] = {
                term: parsed(products.mechanism, str(text)) for term, text in terms.items()
            }
        return SetColumns(products=products, members=coefficients, units=dict(units))

    @property
    def quantities(self) -> tuple[ColumnParameter, ...]:
        """The names and units of the combinations."""
        return tuple(ColumnParameter(name=name, unit=self.units[name]) for name in self.members)

    def coefficients(self, lengths: Mapping[str, float]) -> np.ndarray:
        """Return E (k, n), the coefficients of the k combinations in the n products."""
        values = {**self.products.mechanism.parameters.values, **lengths}
        known = [quantity.text for quantity in self.products.products]
        E = np.zeros((len(self.members), len(known)))
        for row, terms in zip(E, self.members.values(), strict=True):
            for product, coefficient in terms.items():
                row[known.index(product)] = evaluate(coefficient.expression, values)
        return E

    def misfit(self, lengths: Mapping[str, float]) -> float:
        """Return the fraction of the products' columns that the set cannot reproduce.

        The result is zero if the forces depend only on the combinations.
        """
        W = self.products(lengths)
        remainder = W - self(lengths) @ self.coefficients(lengths)
        return float(np.linalg.norm(remainder) / np.linalg.norm(W))

    def __call__(self, lengths: Mapping[str, float]) -> np.ndarray:
        """Return the columns (m, k) of the set, the least-squares solution of Y_set."""
        E = self.coefficients(lengths)
        W = self.products(lengths)
        return np.asarray(np.linalg.lstsq(E.T, W.T, rcond=None)[0].T)
