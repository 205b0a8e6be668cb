"""Natural frequencies and mode shapes of a structure, clusters of modes, and frequency responses."""

from __future__ import annotations

import numpy as np

from tauloop.common.errors import AssemblyError, InputError
from tauloop.common.records import dataclass
from tauloop.elasticity.frame.assembled import AssembledStructure
from tauloop.elasticity.frame.beams import Array

#: Inertia of a motion without stiffness, relative to the largest, below which it counts as none.
MASSLESS_TOLERANCE = 1e-12
#: Frequencies whose relative distance is at most this form a cluster, in which shapes may mix.
CLUSTER_TOLERANCE = 0.01
#: Squared frequency, relative to the lowest one of the unloaded machine with an elastic deformation,
#: below which a loaded motion counts as free.
ZERO_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class VibrationModes:
    """Modes of a structure at N poses.

    Attributes:
        frequencies: (N, k) in ascending order, Hz; zero for motions that deform nothing.
        shapes: (N, n, k) coordinates of the modes, with unit modal mass.
        free: number of motions that deform nothing.
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

    M x = μ K x with μ = 1/ω², on the motions that deform something; those that deform nothing are
    modes of frequency zero, to which the others are orthogonal.

    Args:
        assembled: the structure.
        count: number of modes; default: all that have mass.
        geometric: (N, n, n) geometric stiffness that is added. It may hold motions that deform
            nothing, such as a pendulum.
        may_be_free: whether motions that deform nothing are modes of frequency zero; they are
            refused otherwise.

    Raises:
        AssemblyError: a motion deforms nothing and may not be free, or has no inertia; or the
            geometric stiffness exceeds the elastic one.
    """
    if not may_be_free:
        assembled.require_no_mechanism()
    free = assembled.mechanisms
    if geometric is not None and free.shape[-1]:
        return _held_by_loads(assembled, count, geometric)
    M = assembled.mass
    K = assembled.stiffness if geometric is None else assembled.stiffness + geometric
    basis = np.broadcast_to(np.eye(assembled.size), K.shape)
    rigid = np.zeros((assembled.samples, assembled.size, 0))
    if free.shape[-1]:
        rigid = _mass_normalized(assembled, free)
        K, M, basis = _without(rigid, K, M)
    try:
        L = np.linalg.cholesky(K)
    except np.linalg.LinAlgError as error:
        what = "the stiffness is not positive: a load exceeds the buckling load"
        raise AssemblyError.of("structure", what, "reduce the preload or the load") from error
    L_inverse = np.linalg.inv(L)
    back = np.swapaxes(L_inverse, -1, -2)
    mu, vectors = np.linalg.eigh(L_inverse @ M @ back)
    mu, vectors = mu[:, ::-1], vectors[:, :, ::-1]
    floor = assembled.size * np.finfo(float).eps * mu[:, :1]
    massive = int((mu > floor).sum(axis=1).min())
    elastic = massive if count is None else min(max(count - free.shape[-1], 0), massive)
    omega = 1.0 / np.sqrt(mu[:, :elastic])
    shapes = basis @ (back @ vectors[:, :, :elastic]) * omega[:, None, :]
    zeros = np.zeros((assembled.samples, free.shape[-1]))
    frequencies = np.concatenate([zeros, omega / (2.0 * np.pi)], axis=1)
    shapes = np.concatenate([rigid, shapes], axis=-1)
    return VibrationModes(
        frequencies=frequencies[:, :count], shapes=shapes[:, :, :count], free=free.shape[-1]
    )


def _held_by_loads(
    assembled: AssembledStructure, count: int | None, geometric: Array
) -> VibrationModes:
    """Return the modes of a structure with motions that loads alone hold, or nothing.

    (K + σ M) x = (ω² + σ) M x, with the lowest ω² of an elastic deformation as σ.

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
        raise AssemblyError.of("structure", what, "hold the motors, or turn the load") from error
    L_inverse = np.linalg.inv(L)
    back = np.swapaxes(L_inverse, -1, -2)
    mu, vectors = np.linalg.eigh(L_inverse @ assembled.mass @ back)
    chosen = unloaded.frequencies.shape[1] if count is None else count
    mu, vectors = mu[:, ::-1][:, :chosen], vectors[:, :, ::-1][:, :, :chosen]
    squared = 1.0 / mu - shift
    is_free = np.abs(squared) <= ZERO_TOLERANCE * shift
    if np.any((squared < 0.0) & ~is_free):
        growth = float(np.sqrt(-squared.min()))
        what = f"{what}: a motion grows by exp({growth:.3g} t), t in seconds"
        raise AssemblyError.of("structure", what, "hold the motors, or turn the load")
    return VibrationModes(
        frequencies=np.sqrt(np.where(is_free, 0.0, squared)) / (2.0 * np.pi),
        shapes=back @ vectors / np.sqrt(mu)[:, None, :],
        free=int(is_free.sum(axis=1).min(initial=chosen)),
    )


def _mass_normalized(assembled: AssembledStructure, motions: Array) -> Array:
    """Return motions (N, n, d) with Xᵀ M X = 1.

    Raises:
        AssemblyError: one of them has no inertia.
    """
    inertia = np.swapaxes(motions, -1, -2) @ assembled.mass @ motions
    values, vectors = np.linalg.eigh(inertia)
    if np.any(values <= MASSLESS_TOLERANCE * np.abs(values).max(initial=0.0)):
        what = "a motion that deforms nothing has no inertia either"
        raise AssemblyError.of("structure", what, "lock it, or give its bodies a mass")
    return np.asarray(motions @ vectors / np.sqrt(values)[:, None, :])


def _without(rigid: Array, K: Array, M: Array) -> tuple[Array, Array, Array]:
    """Return stiffness and mass on motions that are M-orthogonal to rigid ones, and their basis."""
    momentum = M @ rigid
    Q, _ = np.linalg.qr(momentum, mode="complete")
    basis = Q[..., rigid.shape[-1] :]
    left = np.swapaxes(basis, -1, -2)
    return left @ K @ basis, left @ M @ basis, basis


def modal_assurance(first: Array, second: Array, mass: Array) -> Array:
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
    """Return the response (N, f, o, i) of outputs by unit harmonic forces.

    Σ_k (C φ_k) (φ_kᵀ B) / (ω_k² - ω² + 2 i ζ_k ω_k ω), or ω_k² (1 + i η) with a loss factor η.

    Args:
        modes: natural modes of the structure.
        output: C (N, o, n), such as the twist of the tool.
        source: B (N, i, n) motions on which the forces act.
        frequencies: (f,) of the forces, Hz.
        damping: ratios ζ of the modes, one for all or (k,).
        loss_factor: η of the whole structure.
        static: (N, o, i) static response of all modes, which completes that of the modes given.

    Raises:
        InputError: no damping is given, both kinds are, or a value is not positive.
    """
    require_damping(damping, loss_factor)
    squared = modes.angular**2
    at_output, at_source = output @ modes.shapes, source @ modes.shapes
    response = modal_response(
        squared, at_output, at_source, frequencies, damping=damping, loss_factor=loss_factor
    )
    if static is not None:
        with np.errstate(divide="ignore"):
            softness = np.where(squared > 0.0, 1.0 / squared, 0.0)
        covered = (at_output * softness[:, None]) @ np.swapaxes(at_source, -1, -2)
        response = response + (static - covered)[:, None]
    return response


def require_damping(damping: Array | float | None, loss_factor: float | None) -> None:
    """Check the damping of a frequency response.

    Raises:
        InputError: no damping is given, both kinds are, or a value is not positive.
    """
    if (damping is None) == (loss_factor is None):
        what = "no damping is given" if damping is None else "both kinds of damping are given"
        remedy = "give one of damping (ratios of the modes) and loss_factor"
        raise InputError.of("damping", what, remedy)
    ratios = np.asarray(damping if loss_factor is None else loss_factor, dtype=float)
    if np.any(ratios <= 0.0):
        where = "damping" if loss_factor is None else "loss_factor"
        raise InputError.of(where, f"is {ratios.min():g}", "give positive numbers")


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
        squared: (N, k) squared angular frequencies; those below zero have no damping.
        at_output, at_source: (N, o, k), (N, i, k) motion of outputs and sources in the modes.
        frequencies: (f,), Hz.
        damping, loss_factor: see `frequency_response`.
    """
    omega = 2.0 * np.pi * np.asarray(frequencies, dtype=float)[:, None]
    positive = np.maximum(squared, 0.0)[:, None]
    if loss_factor is None:
        lag = 2.0 * padded_ratios(damping, squared.shape[1]) * np.sqrt(positive) * omega
    else:
        lag = loss_factor * positive
    receptance = 1.0 / (squared[:, None] - omega**2 + 1j * lag)
    o, i = at_output.shape[1], at_source.shape[1]
    pairs = (at_output[:, :, None] * at_source[:, None]).reshape(len(squared), o * i, -1)
    response = receptance @ np.swapaxes(pairs, -1, -2)
    return np.asarray(response.reshape(len(squared), len(omega), o, i))
