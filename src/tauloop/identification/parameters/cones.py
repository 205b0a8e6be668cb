"""Physical consistency as cones: pseudo-inertias that a body, a slender rod or a dissipative element can have.

Source: Wensing, Kim and Slotine 2018, Linear matrix inequalities for physically consistent inertial
parameter identification.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np
from scipy.linalg import eigh

from tauloop.common.errors import IdentificationError
from tauloop.common.options import option, require
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.equations.values import BODY_SUFFIXES, SLENDER_SUFFIXES, DynamicParameter

#: Roles outside bodies and rods that cannot be negative; offsets and preloads have either sign.
NONNEGATIVE = ("inertia", "viscous", "coulomb", "stribeck", "stiffness")
#: A pseudo-inertia whose least central second moment is below this share of its trace is singular.
SINGULAR = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cone(ReprMixin):
    """One element's parameters p and the matrix P(p) = sum_j p_j E_j that is positive semidefinite for a real element.

    Attributes:
        element: body, rod or part of a rod, coordinate, or actuator.
        kind: "body": P = [[S, h], [h^T, m]] (4, 4) with S = tr(I)/2 1 - I (Wensing, Kim and Slotine
            2018, Linear matrix inequalities for physically consistent inertial parameter
            identification), which includes the triangle inequality; "slender": P = [[J, h], [h, m]]
            (2, 2), the same for mass on a line; "number": P = p (1, 1), such as a friction
            coefficient.
        columns: places of the parameters among the columns of the regressor.
        basis: E (n, k, k).
    """

    element: str
    kind: str
    columns: np.ndarray
    basis: np.ndarray

    @property
    def is_inertial(self) -> bool:
        """Whether it is the inertia of a body or a slender part, for which CAD gives a prior."""
        return self.kind != "number"

    def matrix(self, parameters: np.ndarray) -> np.ndarray:
        """P (..., k, k) of all parameters of the regressor (..., n_p)."""
        return np.asarray(
            np.einsum("...j,jkl->...kl", np.asarray(parameters)[..., self.columns], self.basis)
        )

    def parameters(self, matrix: np.ndarray) -> np.ndarray:
        """Parameters (..., n) of symmetric matrices P (..., k, k); the inverse of `matrix`."""
        flat = self.basis.reshape(len(self.basis), -1)
        values = np.linalg.lstsq(flat.T, matrix.reshape(-1, flat.shape[1]).T)[0].T
        return np.asarray(values.reshape(*matrix.shape[:-2], len(flat)))

    def mass(self, parameters: np.ndarray) -> float:
        """Mass, kg; zero for what is no body."""
        return float(parameters[self.columns[0]]) if self.is_inertial else 0.0


def body_matrix(parameters: np.ndarray) -> np.ndarray:
    """Pseudo-inertia (4, 4) of a body's ten parameters m, m c, I about the frame's origin."""
    m, hx, hy, hz, xx, xy, yy, xz, yz, zz = parameters
    about = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    h = np.array([hx, hy, hz])
    return np.block(
        [[0.5 * np.trace(about) * np.eye(3) - about, h[:, None]], [h[None, :], np.array([[m]])]]
    )


def slender_matrix(parameters: np.ndarray) -> np.ndarray:
    """Pseudo-inertia (2, 2) of a slender part's m, h = m s and J about its end; the mass stands last, as above."""
    m, h, J = parameters
    return np.array([[J, h], [h, m]])


_BODY = np.stack([body_matrix(row) for row in np.eye(len(BODY_SUFFIXES))])
_SLENDER = np.stack([slender_matrix(row) for row in np.eye(len(SLENDER_SUFFIXES))])
_NUMBER = np.ones((1, 1, 1))


def cones(parameters: Sequence[DynamicParameter]) -> tuple[Cone, ...]:
    """The cones of a machine's parameters (`Model.parameters`), in their order.

    Bodies and full rods have ten-parameter cones, slender rods and each part of a telescope cones
    of their own; drive inertia, viscous and Coulomb friction and stiffness are not negative.
    """
    blocks = []
    numbered = list(enumerate(parameters))
    inertial = [(j, p) for j, p in numbered if p.group == "inertia"]
    for (element, is_upper), group in groupby(
        inertial, key=lambda item: (item[1].element, item[1].role.startswith("upper_"))
    ):
        columns = np.array([j for j, _ in group])
        is_body = len(columns) == len(BODY_SUFFIXES)
        blocks.append(
            Cone(
                element=f"{element} (upper part)" if is_upper else element,
                kind="body" if is_body else "slender",
                columns=columns,
                basis=_BODY if is_body else _SLENDER,
            )
        )
    for j, p in numbered:
        if p.group != "inertia" and p.role in NONNEGATIVE:
            blocks.append(Cone(element=p.name, kind="number", columns=np.array([j]), basis=_NUMBER))
    return tuple(blocks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Regularisation:
    """What a prior body is given that has no volume, or no mass: CAD models hold points, lines and empty links.

    Attributes:
        mass_share: a body without mass gets this share of the median mass of the others.
        radius_share: every central radius of gyration is at least this share of the median of the
            other bodies'.
    """

    mass_share: float = option(0.01, above=0.0, most=1.0)
    radius_share: float = option(0.1, above=0.0, most=1.0)

    def __post_init__(self) -> None:
        """Refuse what is out of range."""
        require(self, IdentificationError)


@dataclass(frozen=True, slots=True, kw_only=True)
class RegularisedBody:
    """A body of the prior that was singular, and what it was given.

    Attributes:
        element: the body or part.
        mass_before, mass: kg.
        radius_before, radius: least central radius of gyration of the pseudo-inertia, m; 0 before
            where it was singular or not that of a body.
    """

    element: str
    mass_before: float
    mass: float
    radius_before: float
    radius: float


def regularised(
    prior: np.ndarray, cones: Sequence[Cone], options: Regularisation
) -> tuple[np.ndarray, tuple[RegularisedBody, ...]]:
    """A prior (n_p,) whose inertias are strictly positive, and which bodies had to be changed.

    Second moments are floored about the mass centre, in principal directions, so that the choice of
    frames does not matter: S_c = S - h h^T / m, eigenvalues at least m r^2.

    Raises:
        IdentificationError: no body of the prior is one that can exist, so there is nothing to take
            a size from.
    """
    inertial = [cone for cone in cones if cone.is_inertial]
    masses, radii = np.zeros(len(inertial)), np.zeros(len(inertial))
    for i, cone in enumerate(inertial):
        masses[i] = max(cone.mass(prior), 0.0)
        if masses[i] > 0.0:
            moments = np.linalg.eigvalsh(_central(cone.matrix(prior)))
            whole = np.trace(cone.matrix(prior)[:-1, :-1])
            radii[i] = np.sqrt(moments[0] / masses[i]) if moments[0] > SINGULAR * whole else 0.0
    good = radii > 0.0
    if inertial and not good.any():
        raise IdentificationError.of(
            "prior",
            f"none of its {len(inertial)} bodies has a mass and a positive inertia, so it says nothing",
            "give masses and inertias in the machine file (from CAD, or estimates by hand)",
        )
    changed, values = [], np.array(prior, dtype=float)
    for cone, mass, radius in zip(inertial, masses, radii, strict=True):
        if radius > 0.0:
            continue
        least = options.radius_share * float(np.median(radii[good]))
        matrix = cone.matrix(prior)
        new = mass if mass > 0.0 else options.mass_share * float(np.median(masses[good]))
        first = matrix[:-1, -1] if mass > 0.0 else np.zeros(len(matrix) - 1)
        central = _central(matrix) if mass > 0.0 else np.zeros((len(matrix) - 1,) * 2)
        sizes, directions = np.linalg.eigh(central)
        central = (directions * np.maximum(sizes, new * least**2)) @ directions.T
        lifted = np.block(
            [
                [central + np.outer(first, first) / new, first[:, None]],
                [first[None, :], np.array([[new]])],
            ]
        )
        values[cone.columns] = cone.parameters(lifted)
        changed.append(
            RegularisedBody(
                element=cone.element,
                mass_before=cone.mass(prior),
                mass=float(new),
                radius_before=float(radius),
                radius=float(least),
            )
        )
    return values, tuple(changed)


def _central(matrix: np.ndarray) -> np.ndarray:
    """Second moments about the mass centre, from a pseudo-inertia with its mass at the end."""
    first = matrix[:-1, -1]
    return np.asarray(matrix[:-1, :-1] - np.outer(first, first) / matrix[-1, -1])


def divergence(matrix: np.ndarray, prior: np.ndarray) -> float:
    """Log-determinant (Bregman, Stein) divergence D(P || P_0) = -log det(P_0^-1 P) + tr(P_0^-1 P) - k.

    Zero at P = P_0, infinite where P is singular, and the same in any frame and any units (Lee,
    Wensing and Park 2020, Geometric robot dynamic identification).

    Args:
        matrix, prior: P and P_0 (k, k), both strictly positive.
    """
    sizes = eigh(matrix, prior, eigvals_only=True)
    return float(np.sum(sizes - np.log(sizes)) - len(sizes)) if sizes[0] > 0.0 else float("inf")
