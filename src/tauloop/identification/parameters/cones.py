"""Cones of physically consistent parameters of bodies, slender rods and dissipative elements.

Source: Wensing, Kim and Slotine 2018, Linear matrix inequalities for physically consistent inertial
parameter identification.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np
from scipy.linalg import eigh

from tauloop.common.errors import IdentificationError
from tauloop.common.options import option, require
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.equations.values import BODY_SUFFIXES, SLENDER_SUFFIXES, DynamicParameter

#: Roles of parameters outside bodies and rods that cannot be negative. Offsets and preloads can
#: have either sign.
NONNEGATIVE_ROLES = ("inertia", "viscous", "coulomb", "stribeck", "stiffness")
#: A pseudo-inertia is singular if its smallest central second moment is below this fraction of its
#: trace.
SINGULARITY_TOLERANCE = 1e-6
#: Directions with a singular value below this fraction of the largest are outside the range of a
#: body's pseudo-inertias: for a mass at 1 m, a radius of gyration below 1e-5 m.
RANGE_TOLERANCE = 1e-10


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cone(ReprMixin):
    """The cone of one element's parameters p: P(p) = sum_j p_j E_j is positive semidefinite.

    Attributes:
        element: body, rod or part of a rod, coordinate, or actuator.
        kind: "body": P = [[S, h], [h^T, m]] (4, 4) with S = tr(I)/2 1 - I (Wensing, Kim and Slotine
            2018, Linear matrix inequalities for physically consistent inertial parameter
            identification), which includes the triangle inequality. "slender": P = [[J, h], [h, m]]
            (2, 2), the same for mass on a line. "number": P = p (1, 1), such as a friction
            coefficient.
        columns: indices of the parameters among the columns of the regressor.
        basis: matrices E_j (n, k, k), one for each parameter.
    """

    element: str
    kind: str
    columns: np.ndarray
    basis: np.ndarray

    @property
    def is_inertial(self) -> bool:
        """Whether the element is a body or a slender part, whose inertia has a prior from CAD."""
        return self.kind != "number"

    def matrix(self, parameters: np.ndarray) -> np.ndarray:
        """Return P (..., k, k) for all parameters of the regressor (..., n_p)."""
        values = np.asarray(parameters)[..., self.columns]
        return np.asarray(np.einsum("...j,jkl->...kl", values, self.basis))

    def parameters(self, matrix: np.ndarray) -> np.ndarray:
        """Return the parameters (..., n) of matrices P (..., k, k), the inverse of `matrix`."""
        flat = self.basis.reshape(len(self.basis), -1)
        values = np.linalg.lstsq(flat.T, matrix.reshape(-1, flat.shape[1]).T)[0].T
        return np.asarray(values.reshape(*matrix.shape[:-2], len(flat)))

    def mass(self, parameters: np.ndarray) -> float:
        """Return the mass, kg; zero for a cone of kind "number"."""
        return float(parameters[self.columns[0]]) if self.is_inertial else 0.0


def body_matrix(parameters: np.ndarray) -> np.ndarray:
    """Return the pseudo-inertia (4, 4) of a body's ten parameters m, m c, I about the origin."""
    m, hx, hy, hz, xx, xy, yy, xz, yz, zz = parameters
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    second_moments = 0.5 * np.trace(inertia) * np.eye(3) - inertia
    h = np.array([hx, hy, hz])
    return np.block([[second_moments, h[:, None]], [h[None, :], np.array([[m]])]])


def slender_matrix(parameters: np.ndarray) -> np.ndarray:
    """Return the pseudo-inertia (2, 2) of a slender part's m, h = m s and J about its end.

    The mass is the last diagonal entry, as in `body_matrix`.
    """
    m, h, J = parameters
    return np.array([[J, h], [h, m]])


_BODY_BASIS = np.stack([body_matrix(row) for row in np.eye(len(BODY_SUFFIXES))])
_SLENDER_BASIS = np.stack([slender_matrix(row) for row in np.eye(len(SLENDER_SUFFIXES))])
_NUMBER_BASIS = np.ones((1, 1, 1))


def consistency_cones(parameters: Sequence[DynamicParameter]) -> tuple[Cone, ...]:
    """Return the cones of a machine's parameters (`Model.parameters`), in the same order.

    Bodies and full rods have cones of ten parameters. Slender rods, and both parts of a telescope,
    have cones of their own. Drive inertia, viscous and Coulomb friction and stiffness cannot be
    negative.
    """
    result = []
    numbered = list(enumerate(parameters))
    inertial = [(j, p) for j, p in numbered if p.group == "inertia"]
    for (element, is_upper), group in groupby(
        inertial, key=lambda item: (item[1].element, item[1].role.startswith("upper_"))
    ):
        columns = np.array([j for j, _ in group])
        is_body = len(columns) == len(BODY_SUFFIXES)
        result.append(
            Cone(
                element=f"{element} (upper part)" if is_upper else element,
                kind="body" if is_body else "slender",
                columns=columns,
                basis=_BODY_BASIS if is_body else _SLENDER_BASIS,
            )
        )
    for j, p in numbered:
        if p.group != "inertia" and p.role in NONNEGATIVE_ROLES:
            result.append(
                Cone(element=p.name, kind="number", columns=np.array([j]), basis=_NUMBER_BASIS)
            )
    return tuple(result)


def restricted_cone(cone: Cone, relations: np.ndarray, offset: np.ndarray) -> Cone | None:
    """Return a cone restricted to the range of its matrices when some values are known.

    A point mass, whose inertia about its mass center is known to be zero, has a pseudo-inertia of
    rank 1 for every mass. Such matrices are on the boundary of the cone of bodies, but they are
    strictly positive if they are projected on their common range.

    Args:
        cone: cone of a body or a rod; a cone of kind "number" is returned unchanged.
        relations, offset: T (n_p, n_r) and o (n_p,) of the parameters p = T r + o.

    Returns:
        The restricted cone; None if the range is empty.
    """
    if not cone.is_inertial:
        return cone
    constant = np.tensordot(offset[cone.columns], cone.basis, axes=1)
    linear = np.einsum("ji,jab->iab", relations[cone.columns], cone.basis)
    matrices = np.concatenate([constant[None], linear])
    norms = np.linalg.norm(matrices, axis=(1, 2))
    if not norms.any():
        return None
    matrices = matrices[norms > 0.0] / norms[norms > 0.0, None, None]
    _, sizes, directions = np.linalg.svd(matrices.reshape(-1, matrices.shape[-1]))
    rank = int(np.sum(sizes > RANGE_TOLERANCE * sizes[0]))
    if rank == len(sizes):
        return cone
    Q = directions[:rank]
    return replace(cone, basis=np.einsum("ab,jbc,dc->jad", Q, cone.basis, Q))


@dataclass(frozen=True, slots=True, kw_only=True)
class Regularization:
    """The mass and inertia that are assigned to singular bodies of a prior.

    CAD models can contain points, lines and empty links, which have no volume or no mass.

    Attributes:
        mass_share: mass of a body without mass, as a fraction of the median mass of the others.
        radius_share: every central radius of gyration is at least this fraction of the median of
            the other bodies.
    """

    mass_share: float = option(0.01, above=0.0, most=1.0)
    radius_share: float = option(0.1, above=0.0, most=1.0)

    def __post_init__(self) -> None:
        """Check the ranges of the options."""
        require(self, IdentificationError)


@dataclass(frozen=True, slots=True, kw_only=True)
class RegularizedBody:
    """A singular body of the prior, with its values before and after regularization.

    Attributes:
        element: the body or part.
        mass_before, mass: mass before and after regularization, kg.
        radius_before, radius: smallest central radius of gyration of the pseudo-inertia before and
            after regularization, m. `radius_before` is 0 if the pseudo-inertia was singular or not
            physical.
    """

    element: str
    mass_before: float
    mass: float
    radius_before: float
    radius: float


def regularized_prior(
    prior: np.ndarray, cones: Sequence[Cone], options: Regularization
) -> tuple[np.ndarray, tuple[RegularizedBody, ...]]:
    """Return a prior (n_p,) with strictly positive inertias, and the bodies that were changed.

    Eigenvalues of the central second moments S_c = S - h h^T / m are raised to at least m r^2. The
    result does not depend on the choice of frames, because the eigenvalues of S_c are invariant.

    Raises:
        IdentificationError: no body of the prior is physical, so no typical mass and radius exist.
    """
    inertial = [cone for cone in cones if cone.is_inertial]
    masses, radii = np.zeros(len(inertial)), np.zeros(len(inertial))
    for i, cone in enumerate(inertial):
        masses[i] = max(cone.mass(prior), 0.0)
        if masses[i] > 0.0:
            matrix = cone.matrix(prior)
            smallest = np.linalg.eigvalsh(_central(matrix))[0]
            if smallest > SINGULARITY_TOLERANCE * np.trace(matrix[:-1, :-1]):
                radii[i] = np.sqrt(smallest / masses[i])
    is_regular = radii > 0.0
    if inertial and not is_regular.any():
        raise IdentificationError.of(
            "prior",
            f"none of its {len(inertial)} bodies has a mass and a positive inertia",
            "give masses and inertias in the machine file (from CAD, or estimated by hand)",
        )
    changed, values = [], np.array(prior, dtype=float)
    for cone, mass, radius in zip(inertial, masses, radii, strict=True):
        if radius > 0.0:
            continue
        min_radius = options.radius_share * float(np.median(radii[is_regular]))
        if mass > 0.0:
            matrix = cone.matrix(prior)
            new_mass, first = float(mass), matrix[:-1, -1]
            central = _central(matrix)
        else:
            new_mass = options.mass_share * float(np.median(masses[is_regular]))
            size = cone.basis.shape[-1] - 1
            first, central = np.zeros(size), np.zeros((size, size))
        moments, directions = np.linalg.eigh(central)
        central = (directions * np.maximum(moments, new_mass * min_radius**2)) @ directions.T
        second = central + np.outer(first, first) / new_mass
        regular = np.block([[second, first[:, None]], [first[None, :], np.array([[new_mass]])]])
        values[cone.columns] = cone.parameters(regular)
        changed.append(
            RegularizedBody(
                element=cone.element,
                mass_before=cone.mass(prior),
                mass=new_mass,
                radius_before=float(radius),
                radius=float(min_radius),
            )
        )
    return values, tuple(changed)


def _central(matrix: np.ndarray) -> np.ndarray:
    """Return the second moments about the center of mass of a pseudo-inertia.

    The mass is the last diagonal entry.
    """
    first = matrix[:-1, -1]
    return np.asarray(matrix[:-1, :-1] - np.outer(first, first) / matrix[-1, -1])


def divergence(matrix: np.ndarray, prior: np.ndarray) -> float:
    """Return the log-determinant divergence D(P || P_0) = -log det(P_0^-1 P) + tr(P_0^-1 P) - k.

    It is also called Bregman or Stein divergence. It is zero at P = P_0, infinite if P is singular,
    and the same in any frame and any units (Lee, Wensing and Park 2020, Geometric robot
    dynamic identification).

    Args:
        matrix, prior: P and P_0 (k, k), both strictly positive.
    """
    eigenvalues = eigh(matrix, prior, eigvals_only=True)
    return (
        float(np.sum(eigenvalues - np.log(eigenvalues)) - len(eigenvalues))
        if eigenvalues[0] > 0.0
        else float("inf")
    )
