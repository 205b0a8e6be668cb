"""How a machine file's parameters follow from the inertias of its links: sums, mass centres, central inertias.

The file's unknown parameters leave inertial parameters pi free in some coordinates y only, pi = T y
+ o: equal legs share theirs, and what is known is not free. T and o are found from draws of the
parameters, and so is what kind of function of y each parameter is.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.equations.values import BODY_SUFFIXES
from tauloop.identification.parameters.cones import Cone, cones
from tauloop.identification.parameters.link_equations import LinkEquations
from tauloop.mechanism.description.units import parse_unit

#: Values that agree to this share of their size over all draws are the same function.
SAME = 1e-9
#: Directions of draws below this share of the largest are rounding.
ROUNDING = 1e-9
#: Draws of the unknowns, as shares of the machine file's values; those of zero are drawn about it.
DRAWN = (0.5, 1.5)
#: A pseudo-inertia whose least eigenvalue is below this share of its trace is none that a body can
#: have.
INCOMPLETE = -1e-9
#: J about an axis and the first moments across it, by their places among a body's ten parameters.
_AXES = (("Ixx", "mcy", "mcz"), ("Iyy", "mcx", "mcz"), ("Izz", "mcx", "mcy"))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinkQuantity(ReprMixin):
    """A parameter as offset + factor f(y), where f is one of three functions of the coordinates.

    Attributes:
        kind: "sum": f = a.(y, 1); "centre": f = h/m; "central inertia": f = J - h.h/m.
        offset, factor: of the value.
        moments: functionals of (y, 1): a; h; or J and then every h, (k, n + 1).
        mass: functional m (n + 1,); zeros for a sum.
    """

    kind: str
    offset: float
    factor: float
    moments: np.ndarray
    mass: np.ndarray

    def __call__(self, y: np.ndarray) -> float:
        """Its value at (y, 1)."""
        values = self.moments @ y
        if self.kind == "centre":
            values = values / (self.mass @ y)
        elif self.kind == "central inertia":
            values = values[:1] - (values[1:] ** 2).sum() / (self.mass @ y)
        return self.offset + self.factor * float(values[0])


class LinkQuantities:
    """Coordinates y of a machine's inertial parameters, and what depends on them how.

    Attributes:
        equations: the machine's.
        parameters: functionals (n_pi, n + 1) of (y, 1) for every inertial parameter.
        unknown: for every unknown its `LinkQuantity`; None for one that is none of the three kinds.
        rows: for every row of the equations a functional (n + 1,); None for one that is not linear
            in y.
        matrices: (k, k, n + 1) functionals that are positive semidefinite for links that can exist.
    """

    def __init__(self, equations: LinkEquations, rng: np.random.Generator) -> None:
        """Find the coordinates by draws of the unknowns."""
        self.equations = equations
        count = 2 * (len(equations.unknown) + len(equations.parameters)) + 4
        spread = rng.uniform(*DRAWN, size=(count, len(equations.unknown)))
        own = equations.start
        self._draws = np.where(own == 0.0, spread - 1.0, spread * np.sign(own)) * equations.sizes
        self._pi = np.array([equations.inertial(x) for x in self._draws])
        rows = np.array([equations(x) for x in self._draws])
        whole = np.column_stack([self._pi, rows[:, : equations.estimated]])
        sizes = np.abs(whole).max(axis=0)
        U, s, _ = np.linalg.svd(
            (whole - whole.mean(axis=0)) / np.where(sizes > 0.0, sizes, 1.0), full_matrices=False
        )
        self._y = np.column_stack([np.sqrt(count) * U[:, s > ROUNDING * s[0]], np.ones(count)])
        self.parameters = np.linalg.lstsq(self._y, self._pi)[0].T
        self.rows = [self.functional(column) for column in rows.T]
        self.unknown = [self._quantity(column) for column in self._draws.T]

    @property
    def size(self) -> int:
        """Number of coordinates with the constant, n + 1."""
        return int(self._y.shape[1])

    def functional(self, values: np.ndarray) -> np.ndarray | None:
        """The functional of (y, 1) that has these values over the draws; None if there is none."""
        result = np.asarray(np.linalg.lstsq(self._y, values)[0])
        return (
            result
            if np.abs(self._y @ result - values).max() <= SAME * np.abs(values).max()
            else None
        )

    @cached_property
    def matrices(self) -> list[np.ndarray]:
        """Pseudo-inertias; masses in the file; of a lamina or a rod, whose file leaves moments out, what there is."""
        result = []
        for cone in self._cones:
            own = cone.matrix(self.equations.inertial(self.equations.start))
            if np.linalg.eigvalsh(own)[0] >= INCOMPLETE * np.trace(own):
                result.append(np.einsum("jn,jkl->kln", self.parameters[cone.columns], cone.basis))
            else:
                result += [
                    arrow(self.parameters[[J, *h]], self.parameters[m])
                    for J, h, m in _about_axes(cone)
                ]
        kilogram = parse_unit("kg").dimension
        for values, parameter in zip(self._draws.T, self.equations.unknown, strict=True):
            is_mass = parameter.group == "inertia" and parse_unit(
                parameter.unit or "1"
            ).dimension.matches(kilogram)
            if is_mass and (mass := self.functional(values)) is not None:
                result.append(mass[None, None])
        return [_scaled(matrix) for matrix in result]

    @cached_property
    def _cones(self) -> tuple[Cone, ...]:
        return cones(self.equations.parameters)

    def _quantity(self, values: np.ndarray) -> LinkQuantity | None:
        """How an unknown of these values over the draws follows from y."""
        if (result := self.functional(values)) is not None:
            return LinkQuantity(
                kind="sum", offset=0.0, factor=1.0, moments=result[None], mass=np.zeros(self.size)
            )
        for cone in self._cones:
            m = self._pi[:, cone.columns[0]]
            if not (m > 0.0).all():
                continue
            mass = self.parameters[cone.columns[0]]
            for h in cone.columns[1 : 4 if cone.kind == "body" else 2]:
                if line := _line(self._pi[:, h] / m, values):
                    return LinkQuantity(
                        kind="centre", **line, moments=self.parameters[[h]], mass=mass
                    )
            for J, h, _ in _about_axes(cone):
                line = _line(self._pi[:, J] - (self._pi[:, h] ** 2).sum(axis=1) / m, values)
                if line and line["factor"] > 0.0:
                    return LinkQuantity(
                        kind="central inertia", **line, moments=self.parameters[[J, *h]], mass=mass
                    )
        return None


def arrow(moments: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """Functionals (k, k, n + 1) of [[J, h^T], [h, m 1]], which is positive semidefinite where J >= h.h/m."""
    result = np.zeros((len(moments), len(moments), len(mass)))
    result[0], result[:, 0] = moments, moments
    for k in range(1, len(moments)):
        result[k, k] = mass
    return result


def _about_axes(cone: Cone) -> list[tuple[int, list[int], int]]:
    """Places of J, of the first moments across its axis, and of the mass; for a slender part about its end."""
    places = [int(k) for k in cone.columns]
    if cone.kind == "slender":
        return [(places[2], [places[1]], places[0])]
    at = dict(zip(BODY_SUFFIXES, places, strict=True))
    return [(at[J], [at[name] for name in h], at["m"]) for J, *h in _AXES]


def _scaled(matrix: np.ndarray) -> np.ndarray:
    """With ones on the diagonal at the middle of the draws, for the solver's sake."""
    diagonal = np.abs(np.diagonal(matrix[:, :, -1]))
    scale = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    return np.asarray(matrix * scale[:, None, None] * scale[None, :, None])


def _line(x: np.ndarray, values: np.ndarray) -> dict[str, float]:
    """Offset and factor of values = offset + factor x; nothing where that is not so."""
    columns = np.column_stack([np.ones(len(x)), x])
    offset, factor = np.linalg.lstsq(columns, values)[0].tolist()
    is_so = (
        factor != 0.0
        and np.abs(columns @ [offset, factor] - values).max() <= SAME * np.abs(values).max()
    )
    return {"offset": offset, "factor": factor} if is_so else {}
