"""Observability indices: five measures of how well a set of poses determines the parameters.

With the singular values s_1 >= ... >= s_m of the stacked, dimensionless Jacobian of N poses
(residuals in standard deviations, parameters in tolerances):

    O1 = (s_1 s_2 ... s_m)^(1/m) / sqrt(N)
    O2 = s_m / s_1
    O3 = s_m
    O4 = s_m^2 / s_1
    O5 = 1 / (1/s_1 + ... + 1/s_m)

- O1 is the volume, a geometric mean over all directions (Borm and Menq 1989).
- O2 is the eccentricity, the inverse of the condition number (Driels and Pathre 1990).
- O3 is that of the worst direction (Nahvi, Hollerbach and Hayward 1994).
- O4 is the noise amplification index (Nahvi and Hollerbach 1996).
- O5 is the harmonic mean divided by m (Sun and Hollerbach 2008).

O1 ranks designs as D-optimality does and O3 as E-optimality. O5 sums 1/s, whereas A-optimality sums
1/s^2. All indices grow with better poses.
"""

from __future__ import annotations

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import IdentificationError, InputError
from tauloop.common.names.deprecated import old_attribute
from tauloop.common.records import dataclass

#: Singular values below this fraction of the largest count as zero: no pose determines their
#: directions. For 51 parameters of a six-link machine, the smallest nonzero value was 4e-11 to
#: 2e-10 in 18 sessions, and zeros were below 1e-15.
NULL_TOLERANCE = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Observability:
    """Observability indices of one set of poses.

    Attributes:
        O1: geometric mean of the singular values, divided by sqrt(N).
        O2: inverse condition number.
        O3: smallest singular value.
        O4: noise amplification index.
        O5: inverse of the sum of inverse singular values.
        singular_values: nonzero singular values (m,), largest first.
        n_unobservable: number of directions that no pose determines; they are not in the indices.
        poses: number of poses N.
    """

    O1: float
    O2: float
    O3: float
    O4: float
    O5: float
    singular_values: tuple[float, ...]
    n_unobservable: int
    poses: int

    silent = old_attribute("silent", "n_unobservable")


def observability(jacobians: np.ndarray, *, null: float = NULL_TOLERANCE) -> Observability:
    """Return the observability indices of a set of poses.

    Args:
        jacobians: Jacobians (N, r, n) of the whitened residuals of every pose with respect to the
            parameters in tolerances.
        null: fraction of the largest singular value below which a direction counts as unobservable.

    Raises:
        InputError: the array has another shape, or numbers that are not finite.
        IdentificationError: all Jacobians are zero.
    """
    J = require_jacobians(jacobians)
    all_values = np.linalg.svd(J.reshape(-1, J.shape[2]), compute_uv=False)
    if not all_values.max(initial=0.0) > 0.0:
        raise IdentificationError.of(
            "poses", "do not depend on any of the parameters", "measure more components"
        )
    nonzero = all_values[all_values > null * all_values[0]]
    return Observability(
        O1=float(np.exp(np.log(nonzero).mean()) / np.sqrt(len(J))),
        O2=float(nonzero[-1] / nonzero[0]),
        O3=float(nonzero[-1]),
        O4=float(nonzero[-1] ** 2 / nonzero[0]),
        O5=float(1.0 / (1.0 / nonzero).sum()),
        singular_values=tuple(float(value) for value in nonzero),
        n_unobservable=J.shape[2] - len(nonzero),
        poses=len(J),
    )


def observable_directions(jacobians: np.ndarray, *, null: float = NULL_TOLERANCE) -> np.ndarray:
    """Return an orthonormal basis (n, m) of the parameter combinations that the poses determine."""
    J = require_jacobians(jacobians)
    triangle = np.linalg.qr(J.reshape(-1, J.shape[2]), mode="r")
    _, singular_values, Vt = np.linalg.svd(triangle)
    rank = int((singular_values > null * singular_values.max(initial=0.0)).sum())
    return np.asarray(Vt[:rank].T)


def require_jacobians(jacobians: np.ndarray) -> np.ndarray:
    """Return the Jacobians as a checked array of floats.

    Raises:
        InputError: the array has another shape, or numbers that are not finite.
    """
    J = np.asarray(jacobians, dtype=float)
    if J.ndim != 3 or 0 in J.shape:
        remedy = "give a nonempty array (poses, residuals of a pose, parameters)"
        raise InputError.of("jacobians", f"have shape {J.shape}", remedy)
    is_invalid = ~np.isfinite(J).all(axis=(1, 2))
    if is_invalid.any():
        what = (
            f"contain non-finite numbers in {int(is_invalid.sum())} of {counted(len(J), 'pose')}, "
            f"the first in pose {int(is_invalid.argmax()) + 1}"
        )
        raise InputError.of("jacobians", what, "remove unreachable and singular poses")
    return J
