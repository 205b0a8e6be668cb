"""Closed position loops of a machine: poles, complex modes, and frequency responses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tauloop.common.errors import AssemblyError
from tauloop.common.records import dataclass
from tauloop.elasticity.frame.assembled import AssembledStructure
from tauloop.elasticity.frame.beams import Array
from tauloop.elasticity.frame.modes import modal_response, padded_ratios, require_damping
from tauloop.elasticity.vibrations.servo_control import ServoLaw
from tauloop.elasticity.vibrations.servo_drives import RodLength, ServoDrive, Terms, motion_row

#: A pole is oscillatory if its imaginary part relative to its magnitude is above this value.
OSCILLATION_TOLERANCE = 1e-6
#: Factor by which the shift grows until the shifted stiffness is positive definite.
SHIFT_FACTOR = 100.0
#: Maximum number of shifts that are tried.
MAX_SHIFTS = 8


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ServoPlant:
    """A machine with free motors in m modes, and the motions that its position loops use.

    Attributes:
        squared: (N, m) squared angular frequencies; negative for motions that loads make unstable.
        shapes: (N, n, m) mode shapes in minimal coordinates, with unit modal mass.
        torque: (N, u, n) motions that the u motors drive.
        position, speed: (N, u, n) motions that the encoders measure.
        dampers: (N, d, n) motions with viscous damping.
        damping: (d,) damping coefficients of these motions.
        laws: control laws of the u motors.
        shift: (N,) squared frequency σ that makes K + σ M positive definite.
        stiffness, mass: (N, n, n) matrices K and M of the machine with free motors.
    """

    squared: Array
    shapes: Array
    torque: Array
    position: Array
    speed: Array
    dampers: Array
    damping: Array
    laws: tuple[ServoLaw, ...]
    shift: Array
    stiffness: Array
    mass: Array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ServoModes:
    """Modes of the closed loops at N poses.

    Attributes:
        plant: the machine with free motors.
        poles: (N, k) poles of the oscillating modes, the slowest first, 1/s; NaN if a pose has
            fewer.
        shapes: (N, n, k) complex mode shapes in minimal coordinates, with unit modal mass.
        growth: (N,) largest real part of all poles, 1/s.
    """

    plant: ServoPlant
    poles: Array
    shapes: Array
    growth: Array

    @property
    def frequencies(self) -> Array:
        """Natural frequencies (N, k), Hz: magnitude of the pole over 2 π."""
        return np.asarray(np.abs(self.poles) / (2.0 * np.pi))

    @property
    def damping_ratio(self) -> Array:
        """Damping ratios (N, k)."""
        return np.asarray(-self.poles.real / np.abs(self.poles))


def servo_rows(
    assembled: AssembledStructure, lengths: Mapping[str, RodLength], drives: tuple[ServoDrive, ...]
) -> tuple[Array, Array, Array]:
    """Return the motions (N, u, n) of motor torques, of position encoders and of speed encoders."""

    def rows(terms: Sequence[Terms]) -> Array:
        return np.stack([motion_row(assembled, lengths, item) for item in terms], axis=1)

    return (
        rows([item.torque for item in drives]),
        rows([item.position for item in drives]),
        rows([item.speed for item in drives]),
    )


def servo_plant(
    assembled: AssembledStructure,
    lengths: Mapping[str, RodLength],
    drives: tuple[ServoDrive, ...],
    geometric: Array | None = None,
) -> ServoPlant:
    """Return the modes of a machine with free motors, and the motions of its loops.

    All modes of finite frequency are included, so that the modal form is exact.

    Args:
        assembled: the structure, with free motors.
        lengths: telescopic rods without elastic parts.
        drives: the controlled motors.
        geometric: (N, n, n) geometric stiffness that is added; None to neglect it.

    Raises:
        AssemblyError: a degree of freedom has neither stiffness nor inertia.
    """
    K = assembled.stiffness if geometric is None else assembled.stiffness + geometric
    M = assembled.mass
    shift = _shift(K, M)
    L_inverse = np.linalg.inv(np.linalg.cholesky(K + shift[:, None, None] * M))
    L_inverse_T = np.swapaxes(L_inverse, -1, -2)
    mu, vectors = np.linalg.eigh(L_inverse @ M @ L_inverse_T)
    mu, vectors = mu[:, ::-1], vectors[:, :, ::-1]
    rounding = assembled.size * np.finfo(float).eps * mu[:, :1]
    mode_count = int((mu > rounding).sum(axis=1).min())
    mu = mu[:, :mode_count]
    torque, position, speed = servo_rows(assembled, lengths, drives)
    dampers = [pair for item in drives for pair in item.dampers]
    rows = [motion_row(assembled, lengths, terms) for terms, _ in dampers]
    empty = np.zeros((assembled.samples, 0, assembled.size))
    return ServoPlant(
        squared=1.0 / mu - shift[:, None],
        shapes=L_inverse_T @ vectors[:, :, :mode_count] / np.sqrt(mu)[:, None, :],
        torque=torque,
        position=position,
        speed=speed,
        dampers=np.stack(rows, axis=1) if rows else empty,
        damping=np.array([coefficient for _, coefficient in dampers]),
        laws=tuple(item.law for item in drives),
        shift=shift,
        stiffness=K,
        mass=M,
    )


def _shift(K: Array, M: Array) -> Array:
    """Return squared frequencies σ (N,) for which K + σ M is positive definite.

    Raises:
        AssemblyError: a degree of freedom has neither stiffness nor inertia.
    """
    scale = np.trace(K, axis1=1, axis2=2) / np.trace(M, axis1=1, axis2=2)
    shift = 1e-3 * np.where(scale > 0.0, scale, 1.0)
    for _ in range(MAX_SHIFTS):
        try:
            np.linalg.cholesky(K + shift[:, None, None] * M)
        except np.linalg.LinAlgError:
            shift = SHIFT_FACTOR * shift
            continue
        return shift
    what = "a degree of freedom has neither stiffness nor inertia"
    raise AssemblyError.of("structure", what, "give its bodies a mass or its motor a rotor inertia")


def modal_rates(plant: ServoPlant, ratios: Array | float) -> Array:
    """Return 2 ζ ω (N, m) of the modes with free motors; zero for rigid-body modes."""
    omega = np.sqrt(np.maximum(plant.squared, 0.0))
    return np.asarray(2.0 * padded_ratios(ratios, omega.shape[1]) * omega)


def closed_loop_matrix(plant: ServoPlant, rates: Array | None = None) -> Array:
    """Return the matrix A (N, s, s) of ẋ = A x.

    The state x contains the modal coordinates, their velocities, and the states of the controllers.

    Args:
        plant: the machine and its loops.
        rates: 2 ζ ω (N, m) of the modes; None for undamped modes.
    """
    shapes = plant.shapes
    samples, m = plant.squared.shape
    torque, position, speed = plant.torque @ shapes, plant.position @ shapes, plant.speed @ shapes
    D = np.array([law.D for law in plant.laws])
    size = 2 * m + sum(law.states for law in plant.laws)
    A = np.zeros((samples, size, size))
    modes, velocities = slice(0, m), slice(m, 2 * m)
    A[:, modes, velocities] = np.eye(m)
    forces = np.swapaxes(torque, -1, -2)
    A[:, velocities, modes] = forces @ (D[:, 1, None] * position)
    A[:, range(m, 2 * m), range(m)] -= plant.squared
    A[:, velocities, velocities] = forces @ (D[:, 2, None] * speed)
    local = plant.dampers @ shapes
    A[:, velocities, velocities] -= np.swapaxes(local, -1, -2) @ (plant.damping[:, None] * local)
    if rates is not None:
        A[:, range(m, 2 * m), range(m, 2 * m)] -= rates
    start = 2 * m
    for k, law in enumerate(plant.laws):
        control = slice(start, start + law.states)
        start += law.states
        A[:, velocities, control] = forces[:, :, k, None] * law.C
        A[:, control, modes] = law.B[:, 1, None] * position[:, k, None, :]
        A[:, control, velocities] = law.B[:, 2, None] * speed[:, k, None, :]
        A[:, control, control] = law.A
    return A


def servo_modes(plant: ServoPlant, count: int, rates: Array | None = None) -> ServoModes:
    """Return the slowest oscillating modes of the closed loops.

    Args:
        plant: the machine and its loops.
        count: maximum number of modes.
        rates: 2 ζ ω (N, m) of the modes with free motors; None for undamped modes.
    """
    A = closed_loop_matrix(plant, rates)
    # Modal velocities are divided by a typical frequency, so that all states have similar
    # magnitudes.
    m = plant.squared.shape[1]
    omega = np.sqrt(np.abs(plant.squared).max(axis=1, initial=1.0))
    scale = np.ones(A.shape[:2])
    scale[:, m : 2 * m] = omega[:, None]
    values, vectors = np.linalg.eig(A * scale[:, None, :] / scale[:, :, None])
    is_mode = values.imag > OSCILLATION_TOLERANCE * np.abs(values)
    order = np.argsort(np.where(is_mode, np.abs(values), np.inf), axis=1)
    mode_count = min(count, int(is_mode.sum(axis=1).max(initial=0)))
    chosen = order[:, :mode_count]
    poles = np.take_along_axis(values, chosen, axis=1)
    poles = np.where(np.take_along_axis(is_mode, chosen, axis=1), poles, np.nan)
    modal = np.take_along_axis(vectors[:, :m], chosen[:, None, :], axis=2)
    modal = modal / np.linalg.norm(modal, axis=1, keepdims=True)
    # Rotate each mode to the phase at which its real part is largest.
    phase = np.exp(-0.5j * np.angle(np.sum(modal**2, axis=1, keepdims=True)))
    return ServoModes(
        plant=plant,
        poles=poles,
        shapes=plant.shapes @ (modal * phase),
        growth=values.real.max(axis=1, initial=-np.inf),
    )


def servo_response(
    plant: ServoPlant,
    output: Array,
    source: Array,
    frequencies: Array,
    *,
    damping: Array | float | None = None,
    loss_factor: float | None = None,
    reference: bool = False,
    is_open: bool = False,
) -> Array:
    """Return the response (N, f, o, i) of outputs to harmonic forces in the closed loops.

    Args:
        plant: the machine and its loops.
        output: (N, o, n) motions of the outputs.
        source: (N, i, n) motions on which the forces act.
        frequencies: (f,) frequencies, Hz.
        damping: damping ratios of the modes with free motors: a number for all modes, or for each.
        loss_factor: loss factor of all stiffnesses, instead of damping ratios.
        reference: whether the inputs are the u references of the position loops instead of forces;
            `source` is then not used.
        is_open: whether the position loops are open.
    """
    require_damping(damping, loss_factor)
    inputs = np.concatenate([source, plant.torque, plant.dampers], axis=1)
    outputs = np.concatenate([output, plant.position, plant.speed, plant.dampers], axis=1)
    P = _plant_response(plant, outputs, inputs, frequencies, damping, loss_factor)
    o, i, u = output.shape[1], source.shape[1], len(plant.laws)
    s = 2j * np.pi * frequencies
    gains = np.stack([law.response(frequencies) for law in plant.laws], axis=1)
    gains = np.zeros_like(gains) if is_open else gains
    d = len(plant.damping)
    # Forces u of motors and dampers from measured motions z and references r: u = -Z z + R r.
    Z = np.zeros((len(frequencies), u + d, 2 * u + d), dtype=complex)
    motors, lines = np.arange(u), np.arange(d)
    Z[:, motors, motors] = -gains[:, :, 1]
    Z[:, motors, u + motors] = -gains[:, :, 2] * s[:, None]
    Z[:, u + lines, 2 * u + lines] = plant.damping * s[:, None]
    R = np.zeros((len(frequencies), u + d, u), dtype=complex)
    R[:, motors, motors] = gains[:, :, 0]
    loop = np.eye(u + d) + Z @ P[:, :, o:, i:]
    if reference:
        forces = np.linalg.solve(loop, np.broadcast_to(R, (*loop.shape[:-1], u)))
        return np.asarray(P[:, :, :o, i:] @ forces)
    forces = -np.linalg.solve(loop, Z @ P[:, :, o:, :i])
    return np.asarray(P[:, :, :o, :i] + P[:, :, :o, i:] @ forces)


def _plant_response(
    plant: ServoPlant,
    output: Array,
    source: Array,
    frequencies: Array,
    damping: Array | float | None,
    loss_factor: float | None,
) -> Array:
    """Return the response (N, f, o, i) with free motors; massless modes respond statically."""
    at_output, at_source = output @ plant.shapes, source @ plant.shapes
    response = modal_response(
        plant.squared,
        at_output,
        at_source,
        frequencies,
        damping=damping,
        loss_factor=loss_factor,
    )
    shifted = plant.stiffness + plant.shift[:, None, None] * plant.mass
    static = output @ np.linalg.solve(shifted, np.swapaxes(source, -1, -2))
    modal_compliance = 1.0 / (plant.squared + plant.shift[:, None])
    static_of_modes = (at_output * modal_compliance[:, None]) @ np.swapaxes(at_source, -1, -2)
    return np.asarray(response + (static - static_of_modes)[:, None])
