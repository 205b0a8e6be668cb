"""Observability indices: how well a set of poses shows the parameters, as one number of five kinds.

With the singular values s_1 >= ... >= s_m of the stacked Jacobian of N poses, made free of units
(residuals in standard deviations, parameters in tolerances):

    O1 = (s_1 s_2 ... s_m)^(1/m) / sqrt(N)     volume: the mean of what the directions show (Borm and Menq 1989)
    O2 = s_m / s_1                             eccentricity: inverse condition number (Driels and Pathre 1990)
    O3 = s_m                                   the direction that shows least (Nahvi, Hollerbach and Hayward 1994)
    O4 = s_m^2 / s_1                           noise amplification index (Nahvi and Hollerbach 1996)
    O5 = 1 / (1/s_1 + ... + 1/s_m)             harmonic mean (Sun and Hollerbach 2008)

O1 ranks designs as D-optimality does and O3 as E-optimality; A-optimality has the sum of 1/s^2
where O5 has that of 1/s. All grow with better poses.
"""

from __future__ import annotations

import numpy as np

from tauloop.common.errors import IdentificationError, InputError
from tauloop.common.records import dataclass

#: Singular values below this share of the largest are zero: directions that no pose shows. Of 51
#: parameters of a six-link machine the last that is not comes out as 4e-11 to 2e-10, zeros as below
#: 1e-15 (18 sessions).
NULL = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Observability:
    """Indices of one set of poses.

    Attributes:
        O1, O2, O3, O4, O5: see the module.
        singular_values: (m,), largest first, of the directions that count.
        silent: number of directions that are not shown at all and do not count.
        poses: N.
    """

    O1: float
    O2: float
    O3: float
    O4: float
    O5: float
    singular_values: tuple[float, ...]
    silent: int
    poses: int


def observability(jacobians: np.ndarray, *, null: float = NULL) -> Observability:
    """Observability indices of a set of poses.

    Args:
        jacobians: Jacobians (N, r, n) of the whitened residuals of every pose in the parameters in
            tolerances.
        null: share of the largest singular value below which a direction is silent.

    Raises:
        InputError: an array of another shape, or numbers that are not finite.
        IdentificationError: no pose shows anything.
    """
    J = require_jacobians(jacobians)
    sizes = np.linalg.svd(J.reshape(-1, J.shape[2]), compute_uv=False)
    if not sizes.max(initial=0.0) > 0.0:
        raise IdentificationError.of(
            "poses", "show none of the parameters", "measure more components"
        )
    kept = sizes[sizes > null * sizes[0]]
    return Observability(
        O1=float(np.exp(np.log(kept).mean()) / np.sqrt(len(J))),
        O2=float(kept[-1] / kept[0]),
        O3=float(kept[-1]),
        O4=float(kept[-1] ** 2 / kept[0]),
        O5=float(1.0 / (1.0 / kept).sum()),
        singular_values=tuple(float(size) for size in kept),
        silent=J.shape[2] - len(kept),
        poses=len(J),
    )


def shown_directions(jacobians: np.ndarray, *, null: float = NULL) -> np.ndarray:
    """Orthonormal basis (n, m) of the parameter combinations that at least one pose shows."""
    J = require_jacobians(jacobians)
    triangle = np.linalg.qr(J.reshape(-1, J.shape[2]), mode="r")
    _, sizes, Vt = np.linalg.svd(triangle)
    return np.asarray(Vt[: int((sizes > null * sizes.max(initial=0.0)).sum())].T)


def require_jacobians(jacobians: np.ndarray) -> np.ndarray:
    """The Jacobians as an array of floats, checked.

    Raises:
        InputError: an array of another shape, or numbers that are not finite.
    """
    J = np.asarray(jacobians, dtype=float)
    if J.ndim != 3 or 0 in J.shape:
        what, remedy = (
            f"have shape {J.shape}",
            "give (poses, residuals of a pose, parameters), none of them zero",
        )
        raise InputError.of("jacobians", what, remedy)
    bad = ~np.isfinite(J).all(axis=(1, 2))
    if bad.any():
        what = (
            f"{int(bad.sum())} of {len(J)} poses have numbers that are not finite, first pose "
            f"{int(bad.argmax()) + 1}"
        )
        raise InputError.of("jacobians", what, "leave unreachable and singular poses out")
    return J
