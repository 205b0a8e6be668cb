"""Natural frequencies, mode shapes, clusters of modes, and frequency responses of a structure."""

from __future__ import annotations

import numpy as np

from tauloop.common.errors import AssemblyError, InputError
from tauloop.common.records import dataclass
from tauloop.elasticity.frame.assembled import AssembledStructure
from tauloop.elasticity.frame.beams import Array

#: A rigid-body mode counts as massless if its modal mass, relative to the largest, is below this
#: value.
MASSLESS_TOLERANCE = 1e-12
#: Frequencies with at most this relative distance form a cluster, in which the shapes of single modes
#: are sensitive to small changes.
CLUSTER_TOLERANCE = 0.01
#: A motion of the loaded machine counts as a rigid-body mode if its squared frequency, relative to the
#: square of the lowest elastic frequency of the unloaded machine, is below this value.
ZERO_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class VibrationModes:
    """Modes of a structure at N poses.

    Attributes:
        frequencies: (N, k) natural frequencies in ascending order, Hz; zero for rigid-body modes.
        shapes: (N, n, k) mode shapes in minimal coordinates, with unit modal mass.
        free: number of rigid-body modes (free motions), which cause no deformation.
    """

    frequencies: Array
    shapes: Array
    free: int

    @property
    def angular(self) -> Array:
        """Angular frequencies (N, k), rad/s."""
        return 2.0 * np.pi * self.frequencies

    def clusters(self, sample: int = 0) -> tuple[tuple[int, ...], ...]:
        """Return groups of consecutive modes of one pose with almost the same frequency."""
        groups: list[list[int]] = []
        frequencies = self.frequencies[sample]
        for index, value in enumerate(frequencies):
            is_close = index > 0 and value - frequencies[index - 1] <= CLUSTER_TOLERANCE * value
            if is_close:
                groups[-1].append(index)
            else:
                groups.append([index])
        return tuple(tuple(group) for group in groups)


def natural_modes(
    assembled: AssembledStructure,
    count: int | None = None,
    *,
    geometric: Array | None = None,
    may_be_free: bool = False,
) -> VibrationModes:
    """Return the modes with the lowest frequencies.

    The modes solve M x = μ K x with μ = 1/ω² on the motions that cause deformation. Rigid-body modes
    (free motions) cause no deformation and have the frequency zero. The other modes are orthogonal to
    them.

    Args:
        assembled: the structure.
        count: number of modes; by default all modes of finite frequency.
        geometric: (N, n, n) geometric stiffness that is added. It may stabilize a rigid-body mode,
            such as that of a pendulum.
        may_be_free: whether rigid-body modes are allowed; otherwise they are an error.

    Raises:
        AssemblyError: a rigid-body mode is not allowed or has no mass, or the loads exceed the
            buckling load.
    """
    if not may_be_free:
        assembled.require_no_mechanism()
    free = assembled.mechanisms
    if geometric is not None and free.shape[-1]:
        return _loaded_modes(assembled, count, geometric)
    M = assembled.mass
    K = assembled.stiffness if geometric is None else assembled.stiffness + geometric
    basis = np.broadcast_to(np.eye(assembled.size), K.shape)
    rigid = np.zeros((assembled.samples, assembled.size, 0))
    if free.shape[-1]:
        rigid = _mass_normalized(assembled, free)
        K, M, basis = _orthogonal_to_rigid(rigid, K, M)
    try:
        L = np.linalg.cholesky(K)
    except np.linalg.LinAlgError as error:
        what = "the stiffness matrix is not positive definite: a load exceeds the buckling load"
        raise AssemblyError.of("structure", what, "reduce the preload or the load") from error
    L_inverse = np.linalg.inv(L)
    L_inverse_T = np.swapaxes(L_inverse, -1, -2)
    mu, vectors = np.linalg.eigh(L_inverse @ M @ L_inverse_T)
    mu, vectors = mu[:, ::-1], vectors[:, :, ::-1]
    rounding = assembled.size * np.finfo(float).eps * mu[:, :1]
    # Modes with μ = 0 have an infinite frequency.
    elastic = int((mu > rounding).sum(axis=1).min())
    if count is not None:
        elastic = min(max(count - free.shape[-1], 0), elastic)
    omega = 1.0 / np.sqrt(mu[:, :elastic])
    shapes = basis @ (L_inverse_T @ vectors[:, :, :elastic]) * omega[:, None, :]
    zeros = np.zeros((assembled.samples, free.shape[-1]))
    frequencies = np.concatenate([zeros, omega / (2.0 * np.pi)], axis=1)
    shapes = np.concatenate([rigid, shapes], axis=-1)
    return VibrationModes(
        frequencies=frequencies[:, :count], shapes=shapes[:, :, :count], free=free.shape[-1]
    )


def _loaded_modes(
    assembled: AssembledStructure, count: int | None, geometric: Array
) -> VibrationModes:
    """Return the modes of a loaded structure that has rigid-body modes without the loads.

    The modes solve (K + σ M) x = (ω² + σ) M x. The shift σ is the lowest squared elastic frequency
    of the unloaded structure.

    Raises:
        AssemblyError: the pose is unstable under the loads.
    """
    unloaded = natural_modes(assembled, may_be_free=True)
    shift = unloaded.angular[:, unloaded.free, None] ** 2
    K = assembled.stiffness + geometric
    what = "the pose is unstable under its loads"
    try:
        L = np.linalg.cholesky(K + shift[..., None] * assembled.mass)
    except np.linalg.LinAlgError as error:
        raise AssemblyError.of("structure", what, "hold the motors, or reverse the load") from error
    L_inverse = np.linalg.inv(L)
    L_inverse_T = np.swapaxes(L_inverse, -1, -2)
    mu, vectors = np.linalg.eigh(L_inverse @ assembled.mass @ L_inverse_T)
    chosen = unloaded.frequencies.shape[1] if count is None else count
    mu, vectors = mu[:, ::-1][:, :chosen], vectors[:, :, ::-1][:, :, :chosen]
    squared = 1.0 / mu - shift
    is_free = np.abs(squared) <= ZERO_TOLERANCE * shift
    if np.any((squared < 0.0) & ~is_free):
        growth = float(np.sqrt(-squared.min()))
        what = f"{what}: a motion grows by exp({growth:.3g} t), t in seconds"
        raise AssemblyError.of("structure", what, "hold the motors, or reverse the load")
    return VibrationModes(
        frequencies=np.sqrt(np.where(is_free, 0.0, squared)) / (2.0 * np.pi),
        shapes=L_inverse_T @ vectors / np.sqrt(mu)[:, None, :],
        free=int(is_free.sum(axis=1).min(initial=chosen)),
    )


def _mass_normalized(assembled: AssembledStructure, motions: Array) -> Array:
    """Return a basis X (N, n, d) of the same rigid-body modes with Xᵀ M X = 1.

    Raises:
        AssemblyError: a rigid-body mode has zero modal mass.
    """
    inertia = np.swapaxes(motions, -1, -2) @ assembled.mass @ motions
    values, vectors = np.linalg.eigh(inertia)
    if np.any(values <= MASSLESS_TOLERANCE * np.abs(values).max(initial=0.0)):
        what = "a rigid-body mode has zero modal mass"
        raise AssemblyError.of("structure", what, "lock this motion, or give its bodies a mass")
    return np.asarray(motions @ vectors / np.sqrt(values)[:, None, :])


def _orthogonal_to_rigid(rigid: Array, K: Array, M: Array) -> tuple[Array, Array, Array]:
    """Return stiffness, mass and basis of the motions that are M-orthogonal to rigid-body modes."""
    momentum = M @ rigid
    Q, _ = np.linalg.qr(momentum, mode="complete")
    basis = Q[..., rigid.shape[-1] :]
    left = np.swapaxes(basis, -1, -2)
    return left @ K @ basis, left @ M @ basis, basis


def subspace_cosines(first: Array, second: Array, mass: Array) -> Array:
    """Return the cosines (min(a, b),) of the principal angles between two subspaces of shapes.

    Args:
        first, second: shapes (n, a) and (n, b) with unit modal mass.
        mass: (n, n) mass matrix that defines the angles.
    """
    return np.asarray(np.linalg.svd(first.T @ mass @ second, compute_uv=False))


def frequency_response(
    modes: VibrationModes,
    output: Array,
    source: Array,
    frequencies: Array,
    *,
    damping: Array | float | None = None,
    loss_factor: float | None = None,
    static: Array | None = None,
) -> Array:
    """Return the response (N, f, o, i) of outputs to unit harmonic forces.

    It is Σ_k (C φ_k) (B φ_k)ᵀ / (ω_k² - ω² + 2 i ζ_k ω_k ω) with the mode shapes φ_k. A loss factor η
    replaces the damping term 2 i ζ_k ω_k ω by i η ω_k².

    Args:
        modes: natural modes of the structure.
        output: C (N, o, n), motions of the outputs, such as the twist of the tool.
        source: B (N, i, n), motions on which the forces act.
        frequencies: (f,) frequencies of the forces, Hz.
        damping: damping ratios ζ: a number for all modes, or (k,).
        loss_factor: loss factor η of the structure.
        static: (N, o, i) static response of all modes. If it is given, the modes that are not in
            `modes` contribute their static response.

    Raises:
        InputError: no damping is given, both kinds are given, or a value is not positive.
    """
    require_damping(damping, loss_factor)
    squared = modes.angular**2
    at_output, at_source = output @ modes.shapes, source @ modes.shapes
    response = modal_response(
        squared, at_output, at_source, frequencies, damping=damping, loss_factor=loss_factor
    )
    if static is not None:
        with np.errstate(divide="ignore"):
            modal_compliance = np.where(squared > 0.0, 1.0 / squared, 0.0)
        static_of_modes = (at_output * modal_compliance[:, None]) @ np.swapaxes(at_source, -1, -2)
        response = response + (static - static_of_modes)[:, None]
    return response


def require_damping(damping: Array | float | None, loss_factor: float | None) -> None:
    """Check the damping of a frequency response.

    Raises:
        InputError: no damping is given, both kinds are given, or a value is not positive.
    """
    if (damping is None) == (loss_factor is None):
        what = "no damping is given" if damping is None else "both kinds of damping are given"
        remedy = "give either damping (ratios of the modes) or loss_factor"
        raise InputError.of("damping", what, remedy)
    ratios = np.asarray(damping if loss_factor is None else loss_factor, dtype=float)
    if np.any(ratios <= 0.0):
        where = "damping" if loss_factor is None else "loss_factor"
        raise InputError.of(
            where, f"must be positive, got {ratios.min():g}", "give positive numbers"
        )


def padded_ratios(damping: Array | float | None, count: int) -> Array:
    """Return damping ratios (count,); further modes have the last ratio."""
    ratios = np.atleast_1d(np.asarray(damping, dtype=float))
    missing = np.repeat(ratios[-1:], max(count - len(ratios), 0))
    return np.concatenate([ratios, missing])[:count]


def modal_response(
    squared: Array,
    at_output: Array,
    at_source: Array,
    frequencies: Array,
    *,
    damping: Array | float | None,
    loss_factor: float | None,
) -> Array:
    """Return the response (N, f, o, i) of modes to harmonic forces.

    Args:
        squared: (N, k) squared angular frequencies; modes with negative values have no damping.
        at_output, at_source: (N, o, k), (N, i, k) motions of outputs and sources in the modes.
        frequencies: (f,) frequencies, Hz.
        damping, loss_factor: see `frequency_response`.
    """
    omega = 2.0 * np.pi * np.asarray(frequencies, dtype=float)[:, None]
    positive = np.maximum(squared, 0.0)[:, None]
    if loss_factor is None:
        ratios = padded_ratios(damping, squared.shape[1])
        damping_term = 2.0 * ratios * np.sqrt(positive) * omega
    else:
        damping_term = loss_factor * positive
    receptance = 1.0 / (squared[:, None] - omega**2 + 1j * damping_term)
    o, i = at_output.shape[1], at_source.shape[1]
    pairs = (at_output[:, :, None] * at_source[:, None]).reshape(len(squared), o * i, -1)
    response = receptance @ np.swapaxes(pairs, -1, -2)
    return np.asarray(response.reshape(len(squared), len(omega), o, i))
