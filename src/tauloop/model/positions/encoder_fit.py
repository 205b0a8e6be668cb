"""Poses from redundant encoders by least squares, and detection of wrong readings.

Encoders measure positions p_m with standard deviations sigma, and the model predicts positions
p(q). The leading actuators are a minimal set whose motion determines that of all coordinates. From
a state q with closed loops, a Gauss-Newton step of their displacements delta is

    delta = (H^T P H)^-1 H^T P (p_m - p(q)),    H = dp/dv G,    P = diag(1 / sigma^2).

dp/dv are the derivatives of the readings with respect to displacements of all coordinates. G are
the velocities of all coordinates per unit velocity of the leading actuators. A wrong reading has a
large standardized residual r_i / (sigma_i sqrt(Q_ii)) with the residual r and its projector Q:

    r = p_m - p(q),    Q = 1 - H (H^T P H)^-1 H^T P.

An error r_i / Q_ii of only this reading would explain the residual. With only one redundant
reading, the standardized residuals of all readings are equal, so the wrong reading cannot be
identified.

Source: Baarda 1968, A testing procedure for use in geodetic networks (the standardized residual).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tauloop.common.errors import InputError, PoseError, Problems
from tauloop.common.names.deprecated import old_attribute
from tauloop.common.options import pairs
from tauloop.common.records import dataclass
from tauloop.compiler.catalogue import EMBEDDING
from tauloop.compiler.state import State
from tauloop.equations.assembly.assembly import Assembly
from tauloop.equations.named_values import full_name
from tauloop.equations.ports import Port, checked, motor_port
from tauloop.mechanism.description.units import parse_unit, quantity

if TYPE_CHECKING:
    from tauloop.model.motion import Motion

#: Default standard deviation of an encoder: rad, or a fraction of the machine's characteristic
#: length.
DEFAULT_DEVIATION = 1e-5
#: Largest standardized residual of a reading that counts as consistent with the others.
MAX_STANDARDIZED_RESIDUAL = 4.0
#: Maximum number of Gauss-Newton steps.
MAX_GAUSS_NEWTON_STEPS = 8
#: Size of a Gauss-Newton step at convergence, rad or characteristic lengths.
GAUSS_NEWTON_TOLERANCE = 1e-12
#: An error of an encoder cannot be detected if its redundancy number Q_ii is below this.
MIN_REDUNDANCY = 1e-6
#: Readings whose standardized residuals exceed this fraction of the largest cannot be
#: distinguished.
INDISTINGUISHABLE_RATIO = 0.99
#: Number of continuation steps on the straight line from the readings at the start to the given
#: ones.
CONTINUATION_STEPS = 12
#: Readings determine the positions of the leading actuators if all singular values of the map from
#: these positions to the readings exceed this fraction of the largest.
ENCODER_RANK_TOLERANCE = 1e-8


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingFit:
    """Least-squares fits of states to N sets of n_e readings.

    Attributes:
        position: positions of leading actuators and passive coordinates (N, m).
        q: coordinates (N, n_q).
        residual: reading minus model (N, n_e), m or rad.
        standardized: ratio of the residual to its standard deviation (N, n_e); zero without
            redundancy.
        single_error: estimated error of each reading (N, n_e), m or rad, under the assumption that
            all other readings are correct; zero without redundancy.
        projector: Q (N, n_e, n_e), residuals per error of each reading.
    """

    position: np.ndarray
    q: np.ndarray
    residual: np.ndarray
    standardized: np.ndarray
    single_error: np.ndarray
    projector: np.ndarray


def least_squares(
    motion: Motion,
    reading_jacobian: np.ndarray,
    model_readings: Callable[[np.ndarray], np.ndarray],
    readings: np.ndarray,
    deviations: np.ndarray,
    position: np.ndarray,
    q: np.ndarray,
    *,
    moving: int,
    steps: int = MAX_GAUSS_NEWTON_STEPS,
) -> ReadingFit:
    """Return the states near a start that fit readings best.

    Args:
        motion: functions of the actuators' motion.
        reading_jacobian: derivatives dp/dv of the readings with respect to displacements of all
            coordinates (n_e, n_v).
        model_readings: function that returns the model's readings p(q) at coordinates (N, n_q).
        readings: measured readings (N, n_e), m or rad.
        deviations: standard deviations of the readings (n_e,), m or rad.
        position, q: start positions of leading actuators and passive coordinates (N, m), and
            coordinates (N, n_q) near this pose.
        moving: number of leading columns of `position` to adjust; the columns after these are
            fixed.
        steps: maximum number of Gauss-Newton steps.

    Raises:
        PoseError: out of reach or singular.
    """
    n = motion.ports.velocity.size
    length = motion.runner.assembly.loops.length
    scale = np.array(
        [length if unit == "m/s" else 1.0 for unit in motion.ports.velocity.units[:moving]]
    )
    step = 0
    while True:
        arguments: dict[str, object] = {
            "position": position,
            "velocity": np.zeros((len(position), n)),
        }
        outputs, _, _ = motion.runner.run(EMBEDDING, arguments, start=q)
        q = outputs["q"]
        G = outputs["G"].reshape(len(q), n, -1).transpose(0, 2, 1)
        residual = readings - model_readings(q)
        H = reading_jacobian @ G[:, :, :moving]
        weighted = H / deviations[:, None] ** 2
        normal = weighted.transpose(0, 2, 1) @ H
        correction = np.linalg.solve(normal, weighted.transpose(0, 2, 1) @ residual[:, :, None])[
            :, :, 0
        ]
        step += 1
        if (np.abs(correction) / scale).max(initial=0.0) < GAUSS_NEWTON_TOLERANCE or step == steps:
            break
        position = np.concatenate([position[:, :moving] + correction, position[:, moving:]], axis=1)
    fitted_covariance = H @ np.linalg.solve(normal, H.transpose(0, 2, 1))
    projector = np.eye(len(deviations)) - fitted_covariance / deviations**2
    redundancy = np.einsum("kii->ki", projector)
    is_redundant = redundancy > MIN_REDUNDANCY
    divisor = np.maximum(redundancy, MIN_REDUNDANCY)
    return ReadingFit(
        position=position,
        q=q,
        residual=residual,
        standardized=np.where(is_redundant, residual / (deviations * np.sqrt(divisor)), 0.0),
        single_error=np.where(is_redundant, residual / divisor, 0.0),
        projector=projector,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ActuatorFit:
    """A pose from the positions of redundant actuators.

    Attributes:
        names, units: names and units of the actuators that are used.
        state: the pose.
        position: positions of the leading actuators and passive degrees of freedom, as for forward
            kinematics.
        residual: given position minus the position in the pose (N, n) or (n,), m or rad.
        standardized: ratio of the residual to its standard deviation.
        single_error: estimated error of each position if only this position is wrong, m or rad.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    state: State
    position: np.ndarray
    residual: np.ndarray
    standardized: np.ndarray
    single_error: np.ndarray
    standardised = old_attribute("standardised", "standardized")
    alone = old_attribute("alone", "single_error")

    @property
    def largest(self) -> float:
        """The largest absolute standardized residual."""
        return float(np.abs(self.standardized).max(initial=0.0))

    @property
    def disagreement(self) -> str:
        """The positions that disagree most with the others, and their errors, as text."""
        magnitudes = np.abs(np.atleast_2d(self.standardized))
        errors = np.atleast_2d(self.single_error)
        sample = int(magnitudes.max(axis=1).argmax())
        is_suspect = magnitudes[sample] >= INDISTINGUISHABLE_RATIO * magnitudes[sample].max()
        amounts = [
            f"{self.names[i]} (by {errors[sample, i]:.3g} {self.units[i]})"
            for i in np.flatnonzero(is_suspect)
        ]
        where = f" in sample {sample}" if len(magnitudes) > 1 else ""
        if len(amounts) == 1:
            return f"{amounts[0]} disagrees with the other actuators{where}"
        return (
            f"one of these positions is wrong{where}, and only further encoders could identify it: "
            f"{', '.join(amounts)}"
        )


def all_positions(assembly: Assembly, position: Port) -> Port:
    """Return the port of the positions of all actuators and of the passive degrees of freedom."""
    actuators = motor_port(assembly, "position", "rad", "m")
    count = len(assembly.leading)
    return Port(
        name="position",
        columns=actuators.columns + position.columns[count:],
        units=actuators.units + position.units[count:],
    )


def encoder_deviations(
    assembly: Assembly, noise: float | str | Mapping[str, float | str] | None
) -> np.ndarray:
    """Return the standard deviations of all actuators' positions (n_u,), m or rad.

    Args:
        assembly: the machine.
        noise: a number in SI units or a string with a unit, for all actuators or by name; the
            default is `DEFAULT_DEVIATION`.

    Raises:
        InputError: a name is not the name of an actuator, a unit is wrong, or a number is not
            positive.
    """
    port = motor_port(assembly, "position", "rad", "m")
    result = np.array(
        [
            DEFAULT_DEVIATION * (1.0 if unit == "rad" else assembly.loops.length)
            for unit in port.units
        ]
    )
    problems = Problems()
    if isinstance(noise, str):
        if "=" in noise:
            noise = pairs("encoder_noise", noise, problems)
        else:
            noise = dict.fromkeys(port.columns, noise)
    if isinstance(noise, Mapping):
        for name, text in noise.items():
            with problems.collecting(InputError):
                column = port.columns.index(full_name(port.columns, name, "encoder_noise"))
                word = text if isinstance(text, str) else f"{float(text):.17g}"
                dimension = parse_unit(port.units[column]).dimension
                result[column] = quantity(f"encoder_noise {name}", word, dimension)
    elif noise is not None:
        result[:] = noise
    if not (np.isfinite(result).all() and (result > 0.0).all()):
        problems.add(
            "encoder_noise", f"is {result.min():g}", "give standard deviations above zero, m or rad"
        )
    InputError.raise_if_any(problems)
    return result


def fit_actuators(
    motion: Motion,
    position: object,
    start: object | None = None,
    *,
    deviations: np.ndarray | None = None,
    used: Sequence[int] | None = None,
) -> ActuatorFit:
    """Return the pose that fits all actuator positions best, by continuation from another pose.

    Args:
        motion: functions of the actuators' motion.
        position: positions of all actuators and passive degrees of freedom (N, n) or (n,), m or
            rad.
        start: coordinates (n_q,) of the assembled pose; the default is the reference pose.
        deviations: standard deviations of all actuators' positions (n_u,); see
            `encoder_deviations`.
        used: indices of the actuators to use; the default is all.

    Raises:
        InputError: wrong names, shapes or values; or actuators that do not determine the pose.
        PoseError: out of reach or singular.
    """
    assembly = motion.assembly
    actuators = motor_port(assembly, "position", "rad", "m")
    count = len(assembly.leading)
    arrays, single = checked(
        {"position": all_positions(assembly, motion.ports.position)}, {"position": position}
    )
    target, passive = np.split(arrays["position"], [actuators.size], axis=1)
    chosen = list(range(actuators.size) if used is None else used)
    sigma = (encoder_deviations(assembly, None) if deviations is None else deviations)[chosen]
    A = assembly.loops.transmission
    driven = list(assembly.driven)
    coordinates = [assembly.topology.q_of_v[i] for i in driven]

    def readings(q: np.ndarray) -> np.ndarray:
        positions = q[:, coordinates] @ A[np.ix_(chosen, driven)].T
        return np.asarray(positions + assembly.loops.actuator_offsets[chosen])

    origin = assembly.q if start is None else motion.runner.pose(start)
    q = np.broadcast_to(origin, (len(target), len(origin))).copy()
    fitted_position = np.array(motion.ports.at(q))
    first_readings = readings(q)
    first_passive = fitted_position[:, count:]

    def fit_at(fraction: float, steps: int) -> ReadingFit:
        """Return the fit at a fraction of the line from the start to the given readings."""
        passive_waypoint = first_passive + fraction * (passive - first_passive)
        waypoint = first_readings + fraction * (target[:, chosen] - first_readings)
        position = np.concatenate([fitted_position[:, :count], passive_waypoint], axis=1)
        return least_squares(
            motion, A[chosen], readings, waypoint, sigma, position, q, moving=count, steps=steps
        )

    def unbatched(array: np.ndarray) -> np.ndarray:
        """Return the only sample of an array if the given positions have no sample axis."""
        return np.asarray(array[0] if single else array)

    for fraction in np.linspace(0.0, 1.0, CONTINUATION_STEPS + 1)[1:-1]:
        waypoint_fit = fit_at(float(fraction), 2)
        fitted_position, q = waypoint_fit.position, waypoint_fit.q
    result = fit_at(1.0, MAX_GAUSS_NEWTON_STEPS)
    state = motion.kinematics(result.position, start=result.q)
    return ActuatorFit(
        names=tuple(actuators.columns[i] for i in chosen),
        units=tuple(actuators.units[i] for i in chosen),
        state=state.single() if single else state,
        position=unbatched(result.position),
        residual=unbatched(result.residual),
        standardized=unbatched(result.standardized),
        single_error=unbatched(result.single_error),
    )


def determines_pose(motion: Motion, used: Sequence[int]) -> bool:
    """Return whether the actuators with these indices determine the reference pose."""
    assembly = motion.assembly
    G = motion.embedding(motion.ports.at(assembly.q), start=assembly.q)[:, : len(assembly.leading)]
    rows = assembly.loops.transmission[list(used)] @ G
    sigma = np.linalg.svd(
        rows / np.abs(rows).max(axis=1, initial=1e-300, keepdims=True), compute_uv=False
    )
    return len(sigma) == G.shape[1] and bool(sigma[-1] > ENCODER_RANK_TOLERANCE * sigma[0])


def require_agreement(fit: ActuatorFit) -> State:
    """Return the pose of a fit, if its positions agree.

    Raises:
        PoseError: positions disagree by more than their standard deviations allow.
    """
    if fit.largest > MAX_STANDARDIZED_RESIDUAL:
        what = (
            f"do not belong to one pose: {fit.disagreement}; "
            f"standardized residual {fit.largest:.3g} > {MAX_STANDARDIZED_RESIDUAL:g}"
        )
        remedy = (
            "correct the position that disagrees, or use `Model.fit_actuators` with the encoders' "
            "noise, which returns the residuals"
        )
        raise PoseError.of("position", what, remedy)
    return fit.state
