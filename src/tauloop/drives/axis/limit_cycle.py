"""Limit cycles of an axis with backlash, from the describing function or from a simulation.

Source: Gelb and Vander Velde 1968, Multiple-Input Describing Functions and Nonlinear System Design.
"""

from __future__ import annotations

from dataclasses import replace

import casadi as ca
import numpy as np
from scipy.optimize import root

from tauloop.common.errors import InputError, solving
from tauloop.common.records import dataclass
from tauloop.drives.axis.simulation import Record
from tauloop.drives.equations.elements import elastic_backlash
from tauloop.drives.equations.switches import Direct
from tauloop.drives.equations.system import build_system
from tauloop.equations.values import BatchFunction, Values
from tauloop.mechanism.drive_line import (
    DriveLine,
    ElasticBacklash,
    LineFriction,
    LuGre,
    Shaft,
    SingleDrive,
)
from tauloop.mechanism.expression import Leaf, Parameter, ParameterTable

#: Points on one period of a describing function, in the search for cycles.
SEARCH_POINTS = 96
#: Points on one period, for the result. The integrand has kinks, so the error falls with the square
#: of this number.
RESULT_POINTS = 4096
#: Range of the deflection beyond contact that is searched, relative to half the gap.
DEFLECTION_RANGE = (1e-3, 1e2)
#: Number of deflections that are searched.
DEFLECTION_POINTS = 64
#: Lowest frequency that is searched, rad/s.
MIN_FREQUENCY = 0.05
#: Highest frequency that is searched, as a multiple of the frequency of the fastest mode.
MAX_FREQUENCY_RATIO = 1.0
#: Number of frequencies that are searched.
FREQUENCY_POINTS = 192
#: Relative change of amplitude that decides whether a cycle is stable.
AMPLITUDE_CHANGE = 1e-3
#: Fraction of the record, at its end, in which a cycle is measured.
MEASURED_FRACTION = 0.5
#: Minimum number of periods in this part of the record.
MIN_PERIODS = 3
_STIFFNESS = "equivalent_stiffness"
_DAMPING = "equivalent_damping"


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitCycle:
    """Frequency and amplitude of a limit cycle.

    Attributes:
        frequency: frequency, Hz.
        amplitude: half of the range of the evaluated position, m or rad.
    """

    frequency: float
    amplitude: float


def describing_function(
    gap: float,
    stiffness: float,
    damping: float,
    amplitude: np.ndarray,
    frequency: np.ndarray,
    points: int = RESULT_POINTS,
) -> np.ndarray:
    """Return the describing function (N,) of an element with backlash for a deflection A sin(w t).

    N = 1/(pi A) integral of tau (sin + j cos) over one period. Without damping N is stiffness times
    g = 1 - 2/pi (asin(x) + x sqrt(1 - x^2)), x = gap/(2 A): the dead zone. With damping, N differs
    from (stiffness + j w damping) g because the contact never pulls (see `elastic_backlash`).

    Args:
        gap: total gap, m or rad.
        stiffness, damping: parameters of the contact.
        amplitude: amplitude A of the deflection (N,), m or rad.
        frequency: angular frequency w (N,), rad/s.
        points: number of points over one period.
    """
    phase = 2 * np.pi * (np.arange(points) + 0.5) / points
    D = np.outer(amplitude, np.sin(phase))
    w = np.outer(amplitude * frequency, np.cos(phase))
    columns = [np.full((D.size, 1), value) for value in (gap, stiffness, damping)]
    arguments = [*columns, D.reshape(-1, 1), w.reshape(-1, 1)]
    force = _backlash_function()(arguments, D.size)[0].reshape(D.shape)
    return np.asarray(2 * (force @ np.exp(-1j * phase) * 1j) / points / amplitude)


def _backlash_function() -> BatchFunction:
    """Return the force of an elastic backlash as a function of (gap, stiffness, damping, D, w)."""
    gap, stiffness, damping, D, w = symbols = [
        ca.SX.sym(name) for name in ("gap", "stiffness", "damping", "D", "w")
    ]
    force = elastic_backlash(gap, stiffness, damping, D, w, Direct(), "element")
    return BatchFunction(ca.Function("element", symbols, [force]))


@solving(InputError)
def predict_limit_cycles(
    line: DriveLine, parameters: dict[str, float] | None = None
) -> tuple[LimitCycle, ...]:
    """Return the stable limit cycles of an axis with one motor and an elastic backlash.

    G(jw) is the transfer function from the element's force to its deflection through the rest of
    the axis, and N(A, w) the describing function of the element. A cycle satisfies G N = 1. It is
    stable if the oscillation grows at a smaller amplitude and decays at a larger one. Dry friction
    and torque limits are neglected.

    Args:
        line: the axis.
        parameters: values of parameters that differ from the file, SI.

    Raises:
        InputError: the axis has LuGre friction, or does not have exactly one motor, exactly one
            elastic backlash and a continuous control.
    """
    names = [
        connection.name
        for connection in line.connections
        if isinstance(connection.compliance, ElasticBacklash)
    ]
    if (
        len(names) != 1
        or not isinstance(line.control.drive, SingleDrive)
        or line.control.sample_time is not None
    ):
        motors = "one motor" if isinstance(line.control.drive, SingleDrive) else "two motors"
        control = "continuous" if line.control.sample_time is None else "sampled"
        what = (
            "the describing function needs exactly one elastic backlash, one motor and continuous "
            f"control; {line.name} has {len(names)}, {motors} and {control} control"
        )
        raise InputError.of("limit cycle", what, "simulate the drive line instead")
    theta = line.parameters.values | (parameters or {})
    law = next(c.compliance for c in line.connections if c.name == names[0])
    assert isinstance(law, ElasticBacklash)
    gap, stiffness, damping = (
        float(Values(theta).scalar(x)) for x in (law.gap, law.stiffness, law.damping)
    )
    linear = _linear_part(line, names[0], theta)

    def residual(unknown: np.ndarray, points: int = RESULT_POINTS) -> np.ndarray:
        """Return the real and imaginary parts (N, 2) of 1 - G N.

        The columns of `unknown` are the logarithms of the deflection beyond contact, relative to
        half the gap, and of w.
        """
        amplitude = gap / 2 * (1 + np.exp(unknown[:, 0]))
        frequency = np.exp(unknown[:, 1])
        values = 1 - linear.response(frequency)[:, 0] * describing_function(
            gap, stiffness, damping, amplitude, frequency, points
        )
        return np.column_stack([values.real, values.imag])

    in_contact = linear.matrix + stiffness * np.outer(linear.input, linear.rows[0])
    highest = MAX_FREQUENCY_RATIO * np.abs(np.linalg.eigvals(in_contact)).max()
    axes = (
        np.log(np.geomspace(*DEFLECTION_RANGE, DEFLECTION_POINTS)),
        np.log(np.geomspace(MIN_FREQUENCY, highest, FREQUENCY_POINTS)),
    )
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    signs = np.sign(residual(grid.reshape(-1, 2), SEARCH_POINTS).reshape(grid.shape))
    corners = np.stack([signs[:-1, :-1], signs[1:, :-1], signs[:-1, 1:], signs[1:, 1:]])
    # Cells of the grid in which both the real and the imaginary part change their signs.
    cells = np.argwhere((np.abs(corners.sum(axis=0)) < 4).all(axis=-1))
    cycles: list[LimitCycle] = []
    for i, j in cells:
        solution = root(
            lambda x: residual(x[None, :])[0], (grid[i, j] + grid[i + 1, j + 1]) / 2, method="hybr"
        )
        x = solution.x
        if not solution.success or not (
            axes[0][0] <= x[0] <= axes[0][-1] and axes[1][0] <= x[1] <= axes[1][-1]
        ):
            continue
        amplitude = gap / 2 * (1 + np.exp(x[0]))
        frequency = np.exp(x[1])
        amplitudes = amplitude * np.array([1 - AMPLITUDE_CHANGE, 1.0, 1 + AMPLITUDE_CHANGE])
        below, at_cycle, above = describing_function(
            gap, stiffness, damping, amplitudes, np.full(3, frequency)
        )
        is_stable = linear.growth(complex(below), frequency) > 0
        is_stable = is_stable and linear.growth(complex(above), frequency) < 0
        response = linear.response(np.array([frequency]))[0, 1]
        cycle = LimitCycle(
            frequency=float(frequency / (2 * np.pi)),
            amplitude=float(abs(response * at_cycle) * amplitude),
        )
        is_known = any(
            abs(other.frequency / cycle.frequency - 1) < AMPLITUDE_CHANGE for other in cycles
        )
        if is_stable and not is_known:
            cycles.append(cycle)
    return tuple(sorted(cycles, key=lambda cycle: cycle.frequency))


@dataclass(frozen=True, slots=True, kw_only=True)
class _LinearPart:
    """Linear system without the backlash element: dx/dt = matrix x + input tau.

    Attributes:
        matrix: system matrix (n, n).
        input: input vector (n,) of the element's force tau.
        rows: output matrix (2, n): rows @ x is the deflection of the element and the evaluated
            position.
    """

    matrix: np.ndarray
    input: np.ndarray
    rows: np.ndarray

    def response(self, frequency: np.ndarray) -> np.ndarray:
        """Return deflection and evaluated position per force of the element (N, 2).

        Args:
            frequency: angular frequencies (N,), rad/s.
        """
        shifted = 1j * frequency[:, None, None] * np.eye(len(self.matrix)) - self.matrix
        return np.asarray(
            np.linalg.solve(shifted, np.tile(self.input[:, None], (len(frequency), 1, 1)))[..., 0]
            @ self.rows.T
        )

    def growth(self, describing: complex, frequency: float) -> float:
        """Return the growth rate of the oscillation with the element as linear spring and damper.

        The growth rate is the real part of the eigenvalue that is nearest to j w.

        Args:
            describing: describing function: stiffness + j w damping.
            frequency: angular frequency w, rad/s.
        """
        # time derivative of the deflection, which does not depend on the element's force
        deflection_rate = self.rows[0] @ self.matrix
        feedback = describing.real * self.rows[0] + describing.imag / frequency * deflection_rate
        eigenvalues = np.linalg.eigvals(self.matrix + np.outer(self.input, feedback))
        return float(eigenvalues[np.argmin(np.abs(eigenvalues - 1j * frequency))].real)


def _linear_part(line: DriveLine, name: str, theta: dict[str, float]) -> _LinearPart:
    """Return the linear axis without the named element, dry friction and limits."""
    shaft = Shaft(stiffness=Leaf(_STIFFNESS), damping=Leaf(_DAMPING))
    extra = tuple(Parameter(name=key, value=0.0) for key in (_STIFFNESS, _DAMPING))
    table = ParameterTable((*line.parameters, *extra))
    inertias = []
    for inertia in line.inertias:
        friction = inertia.friction
        if isinstance(friction, LuGre):
            remedy = "replace `lugre` with `friction`, or simulate the drive line"
            raise InputError.of(inertia.name, "LuGre friction is not linear", remedy)
        inertias.append(
            replace(inertia, friction=friction and LineFriction(viscous=friction.viscous))
        )
    connections = tuple(
        replace(c, compliance=shaft) if c.name == name else c for c in line.connections
    )
    system = build_system(
        replace(line, parameters=table, inertias=tuple(inertias), connections=connections)
    )
    arguments = system.rate.sx_in()
    y = arguments[0]
    n = y.numel() - 1  # without the integral of the torques
    signals = [signal.partition(" [")[0] for signal in system.signal_names]
    indices = [
        signals.index(signal)
        for signal in (f"{name}.deflection", f"{line.performance.of}.position")
    ]
    outputs = system.signals.function(*arguments)[indices]
    rates_and_outputs = ca.vertcat(system.rate(*arguments)[0][:n], outputs)
    jacobian = ca.Function("jacobian", arguments, [ca.jacobian(rates_and_outputs, y)[:, :n]])

    def jacobian_at(stiffness: float) -> np.ndarray:
        """Return the Jacobian (n + 2, n) with a shaft of this stiffness in place of the element."""
        values = theta | {_STIFFNESS: stiffness, _DAMPING: 0.0}
        zeros = [np.zeros(argument.numel()) for argument in arguments[:-1]]
        return np.array(jacobian(*zeros, np.array([values[key] for key in table.names])))

    # with unit stiffness the force is the deflection: the change of the Jacobian is the outer
    # product of input vector and deflection
    jacobian_without, jacobian_with = jacobian_at(0.0), jacobian_at(1.0)
    matrix, rows = jacobian_without[:n], jacobian_without[n:]
    deflection = rows[0]
    input_vector = (jacobian_with[:n] - matrix) @ deflection / (deflection @ deflection)
    return _LinearPart(matrix=matrix, input=input_vector, rows=rows)


def measure_limit_cycle(record: Record, evaluated: str) -> LimitCycle | None:
    """Return amplitude and frequency of the oscillation at the end of a record.

    Returns None if the end of the record has too few periods.

    Args:
        record: a run that is long enough for the step response to decay.
        evaluated: name of the evaluated inertia.
    """
    x = record.signal(f"{evaluated}.position")
    is_late = record.time >= (1 - MEASURED_FRACTION) * record.time[-1]
    time, x = record.time[is_late], x[is_late]
    middle = (x.max() + x.min()) / 2
    k = np.flatnonzero((x[:-1] < middle) & (x[1:] >= middle))
    if len(k) < MIN_PERIODS + 1:
        return None
    # times of the upward crossings, by linear interpolation
    crossings = time[k] + (middle - x[k]) / (x[k + 1] - x[k]) * (time[k + 1] - time[k])
    return LimitCycle(
        frequency=(len(crossings) - 1) / (crossings[-1] - crossings[0]),
        amplitude=(x.max() - x.min()) / 2,
    )
