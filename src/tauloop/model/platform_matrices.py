"""Matrices of every body, rod and rotor as an equivalent virtual platform (RCID paper).

`formulations.lagrange` differentiates the sparse mass matrices on the tree, and then projects onto
the platform. The Lagrange formulation of the RCID paper differentiates the platform's mass matrix
M(x), which contains the closed loops. V x' is the same, but the number of operations differs
(`OwnMassMatrix`).
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import InputError, PoseError
from tauloop.common.records import dataclass
from tauloop.compiler.functions.terms import platform_matrices_program
from tauloop.compiler.program import Evaluate, Program
from tauloop.model.model import Model

#: Independent velocities of a platform for which Euler angles are available.
SIX_FREEDOMS = ("x", "y", "z", "wx", "wy", "wz")
#: Minimum cosine of theta. Below it, velocity terms in Euler coordinates lose more than half of
#: their digits.
MIN_COSINE = 1e-4
EULER_RATES = ("x", "y", "z", "psi", "theta", "phi")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformMatrices:
    """Platform forces of each inertia, f = M x'' + V x' + G, without friction and springs.

    Attributes:
        velocity_names: names of x' (m).
        labels: (name, kind, part) of each of the k virtual platforms; kind is platform, body, rod
            or rotor, part is translation, rotation or whole.
        M, V: inertia matrices and velocity terms (N, k, m, m); (k, m, m) for a single sample.
        gravity: gravity vectors G (N, k, m) or (k, m).
    """

    velocity_names: tuple[str, ...]
    labels: tuple[tuple[str, str, str], ...]
    M: np.ndarray
    V: np.ndarray
    gravity: np.ndarray

    def total(self, kind: str = "", part: str = "") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the sums M (N, m, m), V (N, m, m) and G (N, m) over virtual platforms.

        Args:
            kind: kind of the virtual platforms; by default all.
            part: part of the virtual platforms; by default all.
        """
        chosen = [
            i
            for i, label in enumerate(self.labels)
            if kind in ("", label[1]) and part in ("", label[2])
        ]
        M = self.M[..., chosen, :, :].sum(axis=-3)
        V = self.V[..., chosen, :, :].sum(axis=-3)
        return M, V, self.gravity[..., chosen, :].sum(axis=-2)


class VirtualPlatforms:
    """The function from platform motion to `PlatformMatrices`, which is constant once it is built."""

    def __init__(self, model: Model, *, by_momentum: bool = True, in_euler: bool = False) -> None:
        """Build the program.

        Args:
            model: the assembled machine.
            by_momentum: whether to use generalized momentum; otherwise energies in Koditschek's
                form, with skew-symmetric M' - 2 V.
            in_euler: whether x' are the rates of x, y, z, psi, theta, phi with R = R_z(psi)
                R_y(theta) R_x(phi); otherwise they are the platform's velocities (base frame).

        Raises:
            InputError: Euler angles for a platform without six degrees of freedom.
            DescriptionError: the kinetic energy of a rod is not a function of its velocity; only if
                energies are used.
        """
        self._runner = model.platform.runner
        names = model.platform.ports.velocity.columns
        if in_euler and tuple(name.rpartition(".")[2] for name in names) != SIX_FREEDOMS:
            what = (
                "Euler angles need a free platform with six independent degrees of freedom; this "
                f"platform has {', '.join(names)}"
            )
            raise InputError.of("in_euler", what, "use the base frame for this machine")
        self._names = EULER_RATES if in_euler else names
        state = self._runner.catalogue.state("platform_matrices", 1)
        self._program, self._labels = platform_matrices_program(state, by_momentum, in_euler)

    @property
    def program(self) -> Program:
        """The program, for counting its operations."""
        return self._program

    @property
    def velocity_names(self) -> tuple[str, ...]:
        """Names of the velocities x' of the matrices."""
        return self._names

    @property
    def labels(self) -> tuple[tuple[str, str, str], ...]:
        """(name, kind, part) of each virtual platform, in the order of their matrices."""
        return self._labels

    def __call__(
        self, position: object, velocity: object, *, start: object | None = None
    ) -> PlatformMatrices:
        """Return the matrices along a motion of the platform.

        Args:
            position, velocity: motion (N, n) in the coordinates of `model.platform`, with twists
                also for matrices in Euler coordinates.
            start: start values for Newton blocks.

        Raises:
            InputError: wrong names, shapes or values.
            PoseError: out of reach or singular; with Euler angles also where theta is +-90 degrees.
        """
        outputs, _, single = self._runner.run(
            self._program, {"position": position, "velocity": velocity}, start=start
        )
        singular = np.flatnonzero(outputs["cos_theta"][:, 0] < MIN_COSINE)
        if len(singular):
            sample_count = counted(len(outputs["q"]), "sample")
            what = (
                "theta is +-90 degrees, where Euler angles are singular, in "
                f"{len(singular)} of {sample_count} (the first is sample {singular[0]})"
            )
            raise PoseError.of("platform motion", what, "use the base frame (in_euler=False)")
        m = len(self._names)
        samples = () if single else (len(outputs["q"]),)
        shape = (*samples, len(self._labels), m)
        M, V = (outputs[name].reshape(*shape, m).swapaxes(-1, -2) for name in ("M", "V"))
        return PlatformMatrices(
            velocity_names=self._names,
            labels=self._labels,
            M=M,
            V=V,
            gravity=outputs["gravity"].reshape(shape),
        )


class OwnMassMatrix:
    """Mass matrices M(x) of virtual platforms as expressions of x = (x, y, z, psi, theta, phi).

    The expressions include the kinematics of the closed loops.

    Attributes:
        x, rate: symbols of the coordinates and of their rates (6,).
    """

    def __init__(self, platforms: VirtualPlatforms) -> None:
        """Build the expressions.

        Args:
            platforms: virtual platforms in Euler coordinates.

        Raises:
            InputError: kinematics need Newton's method, or parameters are free, so that M(x) is not
                an expression of x.
        """
        steps = platforms.program.steps
        if (
            len(steps) != 1
            or not isinstance(steps[0], Evaluate)
            or set(steps[0].inputs) - {"position", "velocity"}
        ):
            what = (
                "has no closed form in platform coordinates: loops need Newton's method, or a "
                "parameter is free"
            )
            raise InputError.of("mass matrix", what, "use the formulation 'lagrange'")
        size = len(SIX_FREEDOMS)
        self.x, self.rate = ca.SX.sym("x", size), ca.SX.sym("rate", size)
        position = ca.vertcat(self.x[:3], _quaternion(self.x[3:]))
        values = {"position": position, "velocity": ca.SX.zeros(size)}
        results = steps[0].function.function.call([values[name] for name in steps[0].inputs])
        numbers = results[steps[0].outputs.index("M")]
        self._matrices = [
            ca.reshape(part, size, size) for part in ca.vertsplit(numbers, size * size)
        ]

    def velocity_matrix(self, indices: list[int]) -> ca.Function:
        """Return the function (x, x') -> V (6, 6) of the sum of some virtual platforms.

        V = (M' + U^T - U)/2 with U_ij = sum_k x'_k dM_kj/dx_i (Koditschek 1984): M' - 2 V is skew.

        Args:
            indices: indices of the virtual platforms in `VirtualPlatforms.labels`.
        """
        size = self.x.numel()
        M = sum((self._matrices[i] for i in indices), ca.SX(size, size))
        M_rate = ca.reshape(ca.jtimes(ca.densify(ca.vec(M)), self.x, self.rate), size, size)
        U = ca.jacobian(M @ self.rate, self.x).T
        (V,) = ca.cse([ca.densify((M_rate + U.T - U) / 2)])
        return ca.Function("velocity_matrix", [self.x, self.rate], [V])


def _quaternion(angles: ca.SX) -> ca.SX:
    """Return the unit quaternion (w, x, y, z) of R_z(psi) R_y(theta) R_x(phi)."""
    (a, b, c), (d, e, f) = (ca.vertsplit(function(angles / 2)) for function in (ca.cos, ca.sin))
    return ca.vertcat(
        a * b * c + d * e * f,
        a * b * f - d * e * c,
        a * e * c + d * b * f,
        d * b * c - a * e * f,
    )
