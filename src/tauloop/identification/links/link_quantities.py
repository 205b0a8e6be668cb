"""Parameters of a machine file as functions of the inertias of its links.

They are sums, centers of mass and central inertias.

The inertial parameters pi depend on a smaller number of coordinates y, pi = T y + o, because equal
legs share their inertias and known values are constant. T and o follow from random draws of the
file's unknown parameters. The draws also show which kind of function of y each parameter is.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.equations.values import BODY_SUFFIXES
from tauloop.identification.links.link_equations import LinkEquations
from tauloop.identification.parameters.cones import Cone, consistency_cones
from tauloop.mechanism.description.units import parse_unit

#: Two functions are the same if their values agree within this fraction of their size for all
#: draws.
LINEARITY_TOLERANCE = 1e-9
#: Directions of the draws with a singular value below this fraction of the largest are zero.
COORDINATE_TOLERANCE = 1e-9
#: Range of the draws as a fraction of the machine file's values. Draws of values that are zero are
#: centered at zero.
DRAW_RANGE = (0.5, 1.5)
#: A pseudo-inertia is not physical if its smallest eigenvalue is below this fraction of its trace.
MIN_EIGENVALUE_SHARE = -1e-9
#: Moment of inertia about an axis and the first moments across it, by the suffixes of a body's ten
#: parameters.
_AXIS_MOMENTS = (("Ixx", "mcy", "mcz"), ("Iyy", "mcx", "mcz"), ("Izz", "mcx", "mcy"))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinkQuantity(ReprMixin):
    """A parameter as offset + factor f(y), where f is one of three functions of the coordinates.

    Attributes:
        kind: "sum": f = a.(y, 1); "center": f = h/m; "central inertia": f = J - h.h/m, with mass m,
            first moment h and moment of inertia J.
        offset, factor: offset and factor of the value.
        moments: (k, n + 1) linear functionals of (y, 1): a for a sum; h for a center; J followed by
            the components of h for a central inertia.
        mass: (n + 1,) linear functional m; zeros for a sum.
    """

    kind: str
    offset: float
    factor: float
    moments: np.ndarray
    mass: np.ndarray

    def __call__(self, y: np.ndarray) -> float:
        """Return the value at (y, 1)."""
        values = self.moments @ y
        if self.kind == "center":
            values = values / (self.mass @ y)
        elif self.kind == "central inertia":
            values = values[:1] - (values[1:] ** 2).sum() / (self.mass @ y)
        return self.offset + self.factor * float(values[0])


class LinkQuantities:
    """Coordinates y of a machine's inertial parameters, and the functions of these coordinates.

    Attributes:
        equations: equations of the machine.
        parameters: functionals (n_pi, n + 1) of (y, 1) for every inertial parameter.
        unknown: `LinkQuantity` of every unknown; None for an unknown of another kind.
        rows: functional (n + 1,) of every row of the equations; None for a row that is not linear
            in y.
        matrices: functionals (k, k, n + 1) that are positive semidefinite for physically possible
            links.
    """

    def __init__(self, equations: LinkEquations, rng: np.random.Generator) -> None:
        """Find the coordinates from random draws of the unknowns."""
        self.equations = equations
        count = 2 * (len(equations.unknown) + len(equations.parameters)) + 4
        spread = rng.uniform(*DRAW_RANGE, size=(count, len(equations.unknown)))
        start = equations.start
        scaled_draws = np.where(start == 0.0, spread - 1.0, spread * np.sign(start))
        self._draws = scaled_draws * equations.sizes
        self._pi = np.array([equations.inertial(x) for x in self._draws])
        rows = np.array([equations(x) for x in self._draws])
        samples = np.column_stack([self._pi, rows[:, : equations.estimated]])
        scales = np.abs(samples).max(axis=0)
        centered = samples - samples.mean(axis=0)
        U, s, _ = np.linalg.svd(centered / np.where(scales > 0.0, scales, 1.0), full_matrices=False)
        coordinates = np.sqrt(count) * U[:, s > COORDINATE_TOLERANCE * s[0]]
        self._y = np.column_stack([coordinates, np.ones(count)])
        self.parameters = np.linalg.lstsq(self._y, self._pi)[0].T
        self.rows = [self.functional(column) for column in rows.T]
        self.unknown = [self._quantity(column) for column in self._draws.T]

    @property
    def size(self) -> int:
        """Number of coordinates including the constant, n + 1."""
        return int(self._y.shape[1])

    def functional(self, values: np.ndarray) -> np.ndarray | None:
        """Return the functional (n + 1,) of (y, 1) that has given values at the draws.

        The result is None if the values are not linear in (y, 1).
        """
        result = np.asarray(np.linalg.lstsq(self._y, values)[0])
        error = np.abs(self._y @ result - values).max()
        return result if error <= LINEARITY_TOLERANCE * np.abs(values).max() else None

    @cached_property
    def matrices(self) -> list[np.ndarray]:
        """Functionals of matrices that must be positive semidefinite: pseudo-inertias and masses.

        If the file omits moments, as for a lamina or a rod, the pseudo-inertia in the file is not
        physical. Then only the moments of inertia about the axes are bounded (`arrow`).
        """
        result = []
        for cone in self._cones:
            matrix = cone.matrix(self.equations.inertial(self.equations.start))
            if np.linalg.eigvalsh(matrix)[0] >= MIN_EIGENVALUE_SHARE * np.trace(matrix):
                result.append(np.einsum("jn,jkl->kln", self.parameters[cone.columns], cone.basis))
            else:
                for J, h, m in _about_axes(cone):
                    result.append(arrow(self.parameters[[J, *h]], self.parameters[m]))
        kilogram = parse_unit("kg").dimension
        for values, parameter in zip(self._draws.T, self.equations.unknown, strict=True):
            dimension = parse_unit(parameter.unit or "1").dimension
            if parameter.group != "inertia" or not dimension.matches(kilogram):
                continue
            mass = self.functional(values)
            if mass is not None:
                result.append(mass[None, None])
        return [_scaled(matrix) for matrix in result]

    @cached_property
    def _cones(self) -> tuple[Cone, ...]:
        """The cones of the machine's inertial parameters."""
        return consistency_cones(self.equations.parameters)

    def _quantity(self, values: np.ndarray) -> LinkQuantity | None:
        """Return an unknown as a function of y, from its values at the draws; None if not found."""
        linear = self.functional(values)
        if linear is not None:
            return LinkQuantity(
                kind="sum", offset=0.0, factor=1.0, moments=linear[None], mass=np.zeros(self.size)
            )
        for cone in self._cones:
            m = self._pi[:, cone.columns[0]]
            if not (m > 0.0).all():
                continue
            mass = self.parameters[cone.columns[0]]
            first_moments = cone.columns[1:4] if cone.kind == "body" else cone.columns[1:2]
            for h in first_moments:
                line = _affine_fit(self._pi[:, h] / m, values)
                if line:
                    return LinkQuantity(
                        kind="center", **line, moments=self.parameters[[h]], mass=mass
                    )
            for J, h, _ in _about_axes(cone):
                central = self._pi[:, J] - (self._pi[:, h] ** 2).sum(axis=1) / m
                line = _affine_fit(central, values)
                if line and line["factor"] > 0.0:
                    return LinkQuantity(
                        kind="central inertia", **line, moments=self.parameters[[J, *h]], mass=mass
                    )
        return None


def arrow(moments: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """Return the functionals (k, k, n + 1) of [[J, h^T], [h, m 1]].

    The matrix is positive semidefinite if J >= h.h/m.

    Args:
        moments: (k, n + 1) functionals of J and then of every h.
        mass: (n + 1,) functional of m.
    """
    result = np.zeros((len(moments), len(moments), len(mass)))
    result[0] = moments
    result[:, 0] = moments
    for k in range(1, len(moments)):
        result[k, k] = mass
    return result


def _about_axes(cone: Cone) -> list[tuple[int, list[int], int]]:
    """Return the indices of J, of the first moments across its axis, and of the mass.

    There is one entry for each axis of a body, and one for a slender part, about its end.
    """
    columns = [int(k) for k in cone.columns]
    if cone.kind == "slender":
        return [(columns[2], [columns[1]], columns[0])]
    index = dict(zip(BODY_SUFFIXES, columns, strict=True))
    result = []
    for J, *first_moments in _AXIS_MOMENTS:
        result.append((index[J], [index[name] for name in first_moments], index["m"]))
    return result


def _scaled(matrix: np.ndarray) -> np.ndarray:
    """Return the matrix scaled to a unit diagonal at the mean of the draws, for the solver."""
    diagonal = np.abs(np.diagonal(matrix[:, :, -1]))
    scale = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    return np.asarray(matrix * scale[:, None, None] * scale[None, :, None])


def _affine_fit(x: np.ndarray, values: np.ndarray) -> dict[str, float]:
    """Return offset and factor of values = offset + factor x; empty if the values do not fit."""
    columns = np.column_stack([np.ones(len(x)), x])
    offset, factor = np.linalg.lstsq(columns, values)[0].tolist()
    error = np.abs(columns @ [offset, factor] - values).max()
    is_affine = factor != 0.0 and error <= LINEARITY_TOLERANCE * np.abs(values).max()
    return {"offset": offset, "factor": factor} if is_affine else {}
