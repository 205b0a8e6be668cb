"""Frequency responses of a machine, from forces at the tool and from motors."""

from __future__ import annotations

from dataclasses import field

import numpy as np

from tauloop.common.datasets import Tabular, channels, dimension, in_table, quantity_over
from tauloop.common.errors import InputError
from tauloop.common.plain import OMITTED, in_json, json_keys
from tauloop.common.records import dataclass
from tauloop.elasticity.frame.beams import Array
from tauloop.elasticity.frame.modes import (
    VibrationModes,
    frequency_response,
    natural_modes,
    require_damping,
)
from tauloop.elasticity.vibrations.machine_modes import MachineModes, stated_damping
from tauloop.elasticity.vibrations.servo_drives import motion_row
from tauloop.elasticity.vibrations.servo_modes import servo_response
from tauloop.mechanism.description.units import FREQUENCY, UnitError, interval
from tauloop.mechanism.model import Mechanism

#: Separator between the first and the last frequency of a range, as in 1..200.
RANGE = ".."
#: Number of frequencies in a range.
RANGE_COUNT = 200
#: Frequencies as numbers, Hz, or as a range.
Frequencies = str | tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FrequencyResponses(Tabular):
    """Responses of a machine at N poses to harmonic inputs at f frequencies.

    Responses G are complex: the output for a unit input cos(2 π f t) is Re(G exp(2 i π f t)).

    Attributes:
        frequency: (f,) frequencies, Hz.
        tool: (N, f, 6, 6) twist of the tool per wrench at the tool, in the axes of the base.
        actuators: names of the u actuators with encoders; empty if motors are locked.
        encoder: (N, f, u, u) positions at the encoders per force of the motors, with open position
            loops; None if motors are locked.
        reference: (N, f, u, u) positions at the encoders per reference of the position loops; None
            if there are no loops.
    """

    frequency: np.ndarray = field(
        metadata=json_keys("frequency_Hz") | dimension("frequency", unit="Hz")
    )
    tool: np.ndarray = field(metadata=OMITTED)
    actuators: tuple[str, ...]
    encoder: np.ndarray | None = field(metadata=OMITTED)
    reference: np.ndarray | None = field(metadata=OMITTED)

    @property
    @in_table(channels("pose", "frequency", names=("x", "y", "z"), unit="m/N"))
    @in_json()
    def tool_amplitude(self) -> np.ndarray:
        """Amplitude (N, f, 3) of the tool per force in the same direction, m/N."""
        return np.abs(np.diagonal(self.tool[..., :3, :3], axis1=-2, axis2=-1))

    @property
    @in_json()
    def tool_phase(self) -> np.ndarray:
        """Phase (N, f, 3) of the same responses, rad."""
        return np.asarray(np.angle(np.diagonal(self.tool[..., :3, :3], axis1=-2, axis2=-1)))

    @property
    def dynamic_stiffness(self) -> np.ndarray:
        """Force over amplitude (N, f, 3) in the same direction, N/m; infinite where rigid."""
        return _inverse(self.tool_amplitude)

    @property
    @in_table(quantity_over("pose", "frequency", name="dynamic_stiffness", unit="N/m"))
    def worst_dynamic_stiffness(self) -> np.ndarray:
        """Smallest ratio (N, f) of force to amplitude over all directions of the force, N/m."""
        return _inverse(np.linalg.norm(self.tool[..., :3, :3], ord=2, axis=(-2, -1)))

    @property
    @in_json(nullable=True)
    def least_dynamic_stiffness(self) -> np.ndarray:
        """Smallest dynamic stiffness (N,) over all directions and frequencies, N/m."""
        return np.asarray(self.worst_dynamic_stiffness.min(axis=1))

    @property
    @in_json("least_at_Hz")
    def least_at(self) -> np.ndarray:
        """Frequency (N,) at which the dynamic stiffness is smallest, Hz."""
        return np.asarray(self.frequency[np.argmin(self.worst_dynamic_stiffness, axis=1)])


def _inverse(values: Array) -> Array:
    """Return 1 / x; infinite for zero."""
    return np.divide(1.0, values, out=np.full(values.shape, np.inf), where=values > 0.0)


def read_frequencies(frequencies: object) -> Array:
    """Return frequencies (f,), Hz, from numbers or a range such as ``1..200`` or ``5 Hz..1 kHz``.

    The frequencies of a range are spaced evenly on a logarithmic scale.

    Raises:
        InputError: the frequencies are negative, not finite, or not a range.
    """
    if isinstance(frequencies, str):
        try:
            if RANGE in frequencies:
                ends = interval(frequencies, RANGE, FREQUENCY, is_si=True)
                is_range = 0.0 < ends.lower < ends.upper < np.inf
                frequencies = np.geomspace(ends.lower, ends.upper, RANGE_COUNT) if is_range else ()
            else:
                frequencies = [FREQUENCY.read(part) for part in frequencies.split(",")]
        except UnitError as error:
            raise InputError.of("frequencies", error.what, error.remedy) from error
    try:
        values = np.atleast_1d(np.asarray(frequencies, dtype=float))
    except (TypeError, ValueError):
        values = np.array([np.nan])
    if values.ndim != 1 or not len(values) or not np.all((values >= 0.0) & np.isfinite(values)):
        what = "must be numbers that are finite and not negative, or a range of positive numbers"
        raise InputError.of("frequencies", what, "give frequencies in Hz, or a range: 1..200")
    return values


def chosen_damping(
    mechanism: Mechanism, count: int, damping: object | None, loss_factor: float | None
) -> tuple[Array | None, float | None]:
    """Return damping ratios or a loss factor, from the call or else from the machine file.

    Args:
        mechanism: the machine.
        count: number of modes.
        damping: damping ratios of the call.
        loss_factor: loss factor of the call.

    Raises:
        InputError: neither the call nor the file states a damping, or a value is wrong.
    """
    if damping is None and loss_factor is None:
        return stated_damping(mechanism, count)
    ratios = None if damping is None else np.asarray(damping, dtype=float)
    require_damping(ratios, loss_factor)
    return ratios, loss_factor


def tool_responses(
    result: MachineModes,
    motion: Array,
    frequencies: Array,
    damping: Array | None,
    loss_factor: float | None,
) -> Array:
    """Return the twists (N, f, 6, 6) of the tool per harmonic wrench; see `Vibration`.

    Args:
        result: modes of the machine.
        motion: matrix (N, 6, n) from minimal coordinates to the twist of the tool.
        frequencies: (f,) frequencies, Hz.
        damping: damping ratios of the modes.
        loss_factor: loss factor, instead of damping ratios.
    """
    if (result.servo is not None or result.modes.free) and not frequencies.min() > 0.0:
        what = "free motors do not resist a constant force"
        raise InputError.of("frequencies", f"contain zero: {what}", "give positive numbers")
    if result.servo is not None:
        return servo_response(
            result.servo.plant,
            motion,
            motion,
            frequencies,
            damping=damping,
            loss_factor=loss_factor,
        )
    modes, static = result.modes, None
    if modes.free:
        modes = _all_modes(result)
    else:
        static = motion @ np.linalg.solve(result.stiffness, np.swapaxes(motion, -1, -2))
    return frequency_response(
        modes,
        motion,
        motion,
        frequencies,
        damping=damping,
        loss_factor=loss_factor,
        static=static,
    )


def frequency_responses(
    mechanism: Mechanism,
    result: MachineModes,
    frequencies: Array,
    damping: Array | None,
    loss_factor: float | None,
) -> FrequencyResponses:
    """Return all responses of a machine; see `FrequencyResponses`.

    Args:
        mechanism: the machine.
        result: modes of the machine.
        frequencies: (f,) frequencies, Hz.
        damping: damping ratios of the modes.
        loss_factor: loss factor, instead of damping ratios.
    """
    built, assembled = result.built, result.assembled
    motion = assembled.point_motion(built.tool_body, built.tool_point)
    tool = tool_responses(result, motion, frequencies, damping, loss_factor)
    names: tuple[str, ...] = ()
    encoder = reference = None
    if result.servo is not None:
        plant = result.servo.plant
        names = tuple(drive.actuator for drive in built.drives)
        encoder = servo_response(
            plant,
            plant.position,
            plant.torque,
            frequencies,
            damping=damping,
            loss_factor=loss_factor,
            is_open=True,
        )
        reference = servo_response(
            plant,
            plant.position,
            plant.torque,
            frequencies,
            damping=damping,
            loss_factor=loss_factor,
            reference=True,
        )
    elif not result.settings.are_motors_held:
        names = tuple(actuator.name for actuator in mechanism.actuators)
        rows = []
        for actuator in mechanism.actuators:
            terms = tuple((name, mechanism.value(ratio)) for name, ratio in actuator.drives)
            rows.append(motion_row(assembled, built.lengths, terms))
        position = np.stack(rows, axis=1)
        encoder = frequency_response(
            _all_modes(result),
            position,
            position,
            frequencies,
            damping=damping,
            loss_factor=loss_factor,
        )
    return FrequencyResponses(
        frequency=frequencies,
        tool=tool,
        actuators=names,
        encoder=encoder,
        reference=reference,
    )


def _all_modes(result: MachineModes) -> VibrationModes:
    """Return all modes of finite frequency, also above the requested number."""
    return natural_modes(result.assembled, geometric=result.geometric, may_be_free=True)
