"""Koditschek's velocity matrix by differentiating the platform's own mass matrix, to count what that takes.

`formulations.lagrange` differentiates on the tree, where mass matrices are sparse, and projects. The RCID paper's
Lagrange differentiates M(x) of the platform, which holds the closed loops: V x' is the same, the work is not.
"""

from __future__ import annotations

import casadi as ca

from tauloop.errors import InputError, Problem
from tauloop.model.platform_matrices import SIX_FREEDOMS, VirtualPlatforms
from tauloop.programs.program import Evaluate


class OwnMassMatrix:
    """Mass matrices M(x) of virtual platforms in x = (x, y, z, psi, theta, phi), written out with their kinematics.

    Attributes:
        x, rate: symbols of the coordinates and of their rates (6,).
    """

    def __init__(self, platforms: VirtualPlatforms) -> None:
        """Write the matrices on symbols.

        Args:
            platforms: in Euler coordinates.

        Raises:
            InputError: kinematics need Newton's method, or parameters are free, so that M(x) is no plain expression.
        """
        steps = platforms.program.steps
        if len(steps) != 1 or not isinstance(steps[0], Evaluate) or set(steps[0].inputs) - {"position", "velocity"}:
            raise InputError(
                Problem(
                    where="mass matrix",
                    what="has no closed form in the platform's coordinates: some loops need Newton's method, or "
                    "parameters are free",
                    remedy="take the form on the tree",
                )
            )
        size = len(SIX_FREEDOMS)
        self.x, self.rate = ca.SX.sym("x", size), ca.SX.sym("rate", size)
        position = ca.vertcat(self.x[:3], _quaternion(self.x[3:]))
        given = {"position": position, "velocity": ca.SX.zeros(size)}
        results = steps[0].function.function.call([given[name] for name in steps[0].inputs])
        numbers = results[steps[0].outputs.index("M")]
        self._matrices = [ca.reshape(part, size, size) for part in ca.vertsplit(numbers, size * size)]

    def velocity_matrix(self, indices: list[int]) -> ca.Function:
        """Function (x, x') -> V (6, 6) of some virtual platforms together.

        V = (M' + U^T - U)/2 with U_ij = sum_k x'_k dM_kj/dx_i (Koditschek 1984): M' - 2 V is skew.

        Args:
            indices: places of the virtual platforms in `VirtualPlatforms.labels`.
        """
        size = self.x.numel()
        M = sum((self._matrices[i] for i in indices), ca.SX(size, size))
        M_rate = ca.reshape(ca.jtimes(ca.densify(ca.vec(M)), self.x, self.rate), size, size)
        U = ca.jacobian(M @ self.rate, self.x).T
        (V,) = ca.cse([ca.densify((M_rate + U.T - U) / 2)])
        return ca.Function("velocity_matrix", [self.x, self.rate], [V])


def _quaternion(angles: ca.SX) -> ca.SX:
    """Unit quaternion (w, x, y, z) of R_z(psi) R_y(theta) R_x(phi)."""
    (a, b, c), (d, e, f) = (ca.vertsplit(function(angles / 2)) for function in (ca.cos, ca.sin))
    return ca.vertcat(
        a * b * c + d * e * f,
        a * b * f - d * e * c,
        a * e * c + d * b * f,
        d * b * c - a * e * f,
    )
