"""Matrices of every body, rod and rotor as an equivalent virtual platform, on batches (RCID paper).

`formulations.lagrange` differentiates on the tree, where mass matrices are sparse, and projects.
The RCID paper's Lagrange differentiates M(x) of the platform, which holds the closed loops: V x' is
the same, the work is not (`OwnMassMatrix` counts it).
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from tauloop.common.errors import InputError, PoseError
from tauloop.common.records import dataclass
from tauloop.compiler.functions.terms import platform_matrices_program
from tauloop.compiler.program import Evaluate, Program
from tauloop.model.model import Model

#: The independent velocities of a platform on which Euler angles can be put.
SIX_FREEDOMS = ("x", "y", "z", "wx", "wy", "wz")
#: Below this cosine of theta, velocity terms in Euler coordinates have lost more than half of their
#: digits.
SMALLEST_COSINE = 1e-4
EULER_RATES = ("x", "y", "z", "psi", "theta", "phi")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformMatrices:
    """What each inertia asks of the platform: f = M x'' + V x' + G, friction and springs apart.

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
        """Sums M (N, m, m), V (N, m, m) and G (N, m) over all virtual platforms, or those of one kind or part.

        Args:
            kind: one of the labels' kinds; all of them without it.
            part: one of the labels' parts; all of them without it.
        """
        chosen = [
            i
            for i, label in enumerate(self.labels)
            if kind in ("", label[1]) and part in ("", label[2])
        ]
        M, V, gravity = (
            self.M[..., chosen, :, :],
            self.V[..., chosen, :, :],
            self.gravity[..., chosen, :],
        )
        return M.sum(axis=-3), V.sum(axis=-3), gravity.sum(axis=-2)


class VirtualPlatforms:
    """The function from platform motion to `PlatformMatrices`. Built once per model; constant afterwards."""

    def __init__(self, model: Model, *, by_momentum: bool = True, in_euler: bool = False) -> None:
        """Build the program.

        Args:
            model: the assembled machine.
            by_momentum: by generalized momentum; else by energies in Koditschek's form, with M' - 2
                V skew.
            in_euler: on the rates of x, y, z, psi, theta, phi with R = R_z(psi) R_y(theta)
                R_x(phi); else on the platform's own velocities (the base frame).

        Raises:
            InputError: Euler angles were asked for a platform without six freedoms.
            DescriptionError: a rod has no kinetic energy (by energies only).
        """
        self._runner = model.platform.runner
        names = model.platform.ports.velocity.columns
        if in_euler and tuple(name.rpartition(".")[2] for name in names) != SIX_FREEDOMS:
            what = f"Euler angles need a free platform with six independent freedoms; here they are {', '.join(names)}"
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
        """Names of the velocities x' that the matrices are on."""
        return self._names

    @property
    def labels(self) -> tuple[tuple[str, str, str], ...]:
        """(name, kind, part) of each virtual platform, in the order in which the program gives their matrices."""
        return self._labels

    def __call__(
        self, position: object, velocity: object, *, start: object | None = None
    ) -> PlatformMatrices:
        """Matrices along a motion of the platform.

        Args:
            position, velocity: motion (N, n) as `model.platform` takes it, twists also where the
                matrices are in Euler coordinates.
            start: start values for Newton blocks.

        Raises:
            InputError: wrong names, shapes or values.
            PoseError: out of reach or singular; with Euler angles also where theta is +-90 degrees.
        """
        outputs, _, single = self._runner.run(
            self._program, {"position": position, "velocity": velocity}, start=start
        )
        bad = np.flatnonzero(outputs["cos_theta"][:, 0] < SMALLEST_COSINE)
        if len(bad):
            where = f"{len(bad)} of {len(outputs['q'])} samples (the first is sample {bad[0]})"
            what = f"theta is +-90 degrees, where Euler angles are singular, in {where}"
            raise PoseError.of("platform motion", what, "use the base frame (in_euler=False) there")
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
    """Mass matrices M(x) of virtual platforms in x = (x, y, z, psi, theta, phi), written out with their kinematics.

    Attributes:
        x, rate: symbols of the coordinates and of their rates (6,).
    """

    def __init__(self, platforms: VirtualPlatforms) -> None:
        """Write the matrices on symbols.

        Args:
            platforms: in Euler coordinates.

        Raises:
            InputError: kinematics need Newton's method, or parameters are free, so that M(x) is no
                plain expression.
        """
        steps = platforms.program.steps
        if (
            len(steps) != 1
            or not isinstance(steps[0], Evaluate)
            or set(steps[0].inputs) - {"position", "velocity"}
        ):
            what = "has no closed form in platform coordinates: loops need Newton's method, or a parameter is free"
            raise InputError.of("mass matrix", what, "take the form on the tree")
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
