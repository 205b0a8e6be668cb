"""Columns for analytic regrouping: products of a machine file's parameters, and sets of combinations of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

import numpy as np

from tauloop.common.errors import IdentificationError, InputError, PoseError, Problem
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.identification.parameters.regrouping import ColumnParameter
from tauloop.kinematics.states import RandomStates, random_states
from tauloop.mechanism.description import parser
from tauloop.mechanism.description.units import parse_unit
from tauloop.mechanism.expression import Expression, Leaf, evaluate, leaves
from tauloop.mechanism.model import Mechanism
from tauloop.mechanism.suggestions import suggestion, unknown_names
from tauloop.model import Model

#: States over which columns are stacked.
STATES = 30
#: Seed of the states: the same columns for the same lengths.
SEED = 0
#: A column of the standard parameters below this share of the largest has no effect.
NO_EFFECT = 1e-10
#: Standard parameters must be sums of the products, and columns combinations of a set, to this
#: share.
LINEAR = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """An expression over a machine's leaf parameters, with its SI unit and its text."""

    text: str
    unit: str
    expression: Expression


def parsed(mechanism: Mechanism, text: str) -> Parsed:
    """An expression in a machine's parameters, such as ``m1 * d_c1^2``.

    Raises:
        InputError: it cannot be read, or names no parameter of the machine.
    """
    table = mechanism.parameters

    def lookup(name: str) -> parser.Quantity:
        if name not in table.names:
            remedy = suggestion(name, table.names) or "name leaf parameters of the machine"
            raise InputError.of(text, f"{name!r} is no parameter of the machine", remedy)
        return parser.Quantity(Leaf(name), parse_unit(table[name].unit).dimension)

    try:
        quantity = parser.resolve(parser.parse(text), lookup)
    except parser.ExpressionError as error:
        raise InputError.of(text, error.what, error.remedy) from error
    if quantity is None:
        raise InputError.of(text, "has no value", "write a product of parameters")
    return Parsed(text=text, unit=str(quantity.dimension), expression=quantity.expression)


class StandardColumns:
    """A machine's regressor in its standard parameters over random states, for any lengths; remembers what it made.

    Lengths stay arguments of one model where its loops have no equation too many and no coordinate
    that their lengths keep still. Elsewhere lengths must fit each other, and the machine is
    assembled anew for each set of them.
    """

    def __init__(self, mechanism: Mechanism) -> None:
        """Of one machine; assembling it takes most of the time, so all sets of products should share this."""
        self.mechanism = mechanism
        self._models: dict[tuple[str, ...], tuple[Model, RandomStates]] = {}
        self._known: dict[tuple[tuple[str, float], ...], tuple[Model, np.ndarray]] = {}

    def __call__(self, lengths: Mapping[str, float]) -> tuple[Model, np.ndarray]:
        """The machine, with these lengths (m) or with lengths that are free, and its stacked regressor (m, n_pi)."""
        key = tuple(sorted(lengths.items()))
        if key not in self._known:
            model, Y = self._made(lengths)
            self._known[key] = model, Y.reshape(-1, Y.shape[-1])
        return self._known[key]

    def _made(self, lengths: Mapping[str, float]) -> tuple[Model, np.ndarray]:
        if tuple(lengths) not in self._models:
            self._models[tuple(lengths)] = _with_states(Model(self.mechanism, lengths))
        model, states = self._models[tuple(lengths)]
        if not (model.assembly.dropped or model.assembly.frozen):
            with suppress(PoseError):  # a state is out of reach with these lengths
                return model, _regressor(model, states, np.array([*lengths.values()]))
        model, states = _with_states(Model(self.mechanism.with_values(dict(lengths))))
        return model, _regressor(model, states)


def _with_states(model: Model) -> tuple[Model, RandomStates]:
    return model, random_states(model, STATES, np.random.default_rng(SEED))


def _regressor(model: Model, states: RandomStates, theta: np.ndarray | None = None) -> np.ndarray:
    motion = states.position, states.velocity, states.acceleration
    return model.platform.regressor(*motion, start=states.q, theta=theta)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProductColumns(ReprMixin):
    """A machine's regressor in products of its parameters: call it with lengths for the stacked columns (m, n).

    Attributes:
        standard: the machine's regressor.
        products: the n products; the standard parameters that have an effect are linear in them.
        placed: standard parameters by name that another model describes otherwise, as expressions:
            with a mass elsewhere, for one.
    """

    standard: StandardColumns
    products: tuple[Parsed, ...]
    placed: Mapping[str, Parsed]

    @staticmethod
    def of(
        standard: StandardColumns, products: Sequence[str], placed: Mapping[str, str] | None = None
    ) -> ProductColumns:
        """Read the expressions.

        Raises:
            InputError: an expression cannot be read, or names no parameter of the machine.
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
        """The products with their units; ``m1 * d_c1`` is written ``m1 d_c1``."""
        return tuple(
            ColumnParameter(name=product.text.replace(" * ", " "), unit=product.unit)
            for product in self.products
        )

    def values(self, parameters: Mapping[str, float] | None = None) -> np.ndarray:
        """Values (n,) of the products, SI, for values of all leaf parameters by name; the machine's without them."""
        leaf_values = self.mechanism.parameters.values if parameters is None else parameters
        return np.array([evaluate(product.expression, leaf_values) for product in self.products])

    def __call__(self, lengths: Mapping[str, float]) -> np.ndarray:
        """Stacked columns (m, n) over random states of the machine with these lengths, SI.

        Raises:
            IdentificationError: a standard parameter is not linear in the products; all of them.
        """
        model, Y = self.standard(lengths)
        return np.asarray(Y @ self.shares(model, Y, lengths))

    def shares(
        self, model: Model, regressor: np.ndarray, lengths: Mapping[str, float]
    ) -> np.ndarray:
        """A (n_pi, n): standard parameters with an effect are A times the products.

        Args:
            model: the machine with these lengths.
            regressor: its stacked regressor (m, n_pi).
            lengths: by name; they keep their values, all other parameters in the products vary.

        Raises:
            IdentificationError: a standard parameter is not linear in the products; all of them.
        """
        expressions = [
            self.placed[parameter.name].expression
            if parameter.name in self.placed
            else parameter.expression
            for parameter in model.parameters
        ]
        norms = np.linalg.norm(regressor, axis=0)
        effective = [int(k) for k in np.flatnonzero(norms > NO_EFFECT * norms.max())]
        varied = sorted(
            frozenset().union(*(leaves(product.expression) for product in self.products))
            - set(lengths)
        )
        rng = np.random.default_rng(SEED)
        nominal = {**self.mechanism.parameters.values, **lengths}
        draws = [
            {**nominal, **{name: nominal[name] * rng.uniform(0.5, 1.5) for name in varied}}
            for _ in range(2 * len(self.products) + 2)
        ]
        P = np.array(
            [[evaluate(product.expression, draw) for product in self.products] for draw in draws]
        )
        values = np.array([[evaluate(expressions[k], draw) for k in effective] for draw in draws])
        sizes = np.linalg.norm(P, axis=0)
        solution = np.linalg.lstsq(P / sizes, values, rcond=None)[0] / sizes[:, None]
        misfit = np.abs(P @ solution - values).max(axis=0)
        allowed = LINEAR * np.abs(values).max(axis=0)
        IdentificationError.raise_if_any(
            Problem(
                model.parameters[k].name,
                f"is no sum of the products: {error:.3g} of {size / LINEAR:.3g} {model.parameters[k].unit} left",
                "name the products that it is made of",
            )
            for k, error, size in zip(effective, misfit, allowed, strict=True)
            if error > size
        )
        A = np.zeros((len(expressions), len(self.products)))
        A[effective] = solution.T
        return A


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SetColumns(ReprMixin):
    """A regressor in a set of combinations of products, such as a printed minimal set: Y_products = Y_set E.

    Attributes:
        products: the columns it stands for.
        members: combination -> product -> coefficient, an expression in lengths.
        units: of the combinations.
    """

    products: ProductColumns
    members: Mapping[str, Mapping[str, Parsed]]
    units: Mapping[str, str]

    @staticmethod
    def of(
        products: ProductColumns, members: Mapping[str, Mapping[str, str]], units: Mapping[str, str]
    ) -> SetColumns:
        """Read the expressions.

        Raises:
            InputError: an expression cannot be read, or a product is none of the columns'.
        """
        known = [product.text for product in products.products]
        named = [name for terms in members.values() for name in terms]
        InputError.raise_if_any(unknown_names(named, known, "is none of the products"))
        return SetColumns(
            products=products,
            members={
                name: {term: parsed(products.mechanism, str(text)) for term, text in terms.items()}
                for name, terms in members.items()
            },
            units=dict(units),
        )

    @property
    def quantities(self) -> tuple[ColumnParameter, ...]:
        """The combinations with their units."""
        return tuple(ColumnParameter(name=name, unit=self.units[name]) for name in self.members)

    def coefficients(self, lengths: Mapping[str, float]) -> np.ndarray:
        """E (k, n): the k combinations as sums of the n products."""
        values = {**self.products.mechanism.parameters.values, **lengths}
        known = [quantity.text for quantity in self.products.products]
        E = np.zeros((len(self.members), len(known)))
        for row, terms in zip(E, self.members.values(), strict=True):
            for product, coefficient in terms.items():
                row[known.index(product)] = evaluate(coefficient.expression, values)
        return E

    def misfit(self, lengths: Mapping[str, float]) -> float:
        """Share of the products' columns that no columns of the set can give: zero when forces need only the set."""
        W = self.products(lengths)
        return float(
            np.linalg.norm(W - self(lengths) @ self.coefficients(lengths)) / np.linalg.norm(W)
        )

    def __call__(self, lengths: Mapping[str, float]) -> np.ndarray:
        """Columns (m, k) of the set: the least-squares solution of Y_products = Y_set E (see `misfit`)."""
        return np.asarray(
            np.linalg.lstsq(self.coefficients(lengths).T, self.products(lengths).T, rcond=None)[0].T
        )
