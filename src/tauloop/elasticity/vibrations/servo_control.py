"""Linear position control of a motor, from gains or from the control of a drive line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase

import numpy as np

from tauloop.common.errors import InputError, Problems
from tauloop.common.records import dataclass
from tauloop.elasticity.frame.beams import Array
from tauloop.mechanism.description.units import FREQUENCY, TIME, quantity
from tauloop.mechanism.drive_line import Control, Pid
from tauloop.mechanism.expression import Expression
from tauloop.mechanism.model import Mechanism
from tauloop.mechanism.suggestions import listing, suggestion

#: Gains of an actuator: gain of the position loop (1/s), gain of the speed loop (N s/m or N m
#: s/rad), and integral time of the speed loop (s).
GAIN_NAMES = ("position", "speed", "integral_time")
#: Gains by name: numbers in SI units, or texts with a unit.
Gains = Mapping[str, str | float | Mapping[str, str | float]] | str
#: Mean delay of a sampled control, in periods. Its output is constant during a period.
SAMPLED_DELAY = 0.5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ServoLaw:
    """A linear law ẋ = A x + B (r, y, v), u = C x + D (r, y, v).

    r is the position reference, y the position and v the speed at the encoders, u the force or
    torque of the motor.

    Attributes:
        A, B, C, D: matrices (s, s), (s, 3), (s,) and (3,).
    """

    A: Array
    B: Array
    C: Array
    D: Array

    @property
    def states(self) -> int:
        """Number of states s."""
        return len(self.C)

    def response(self, frequencies: Array) -> Array:
        """Return the responses (f, 3) of u to r, y and v at frequencies (f,), Hz."""
        s = 2j * np.pi * frequencies[:, None, None]
        states = np.linalg.solve(s * np.eye(self.states) - self.A, self.B[None].astype(complex))
        return np.asarray(self.C @ states + self.D)


def cascade(position: float, speed: float, integral_time: float | None) -> ServoLaw:
    """Return a position loop with an inner speed loop: u = k (1 + 1/(T s)) (p (r - y) - v).

    Args:
        position: gain p of the position loop, 1/s.
        speed: gain k of the speed loop, N s/m or N m s/rad.
        integral_time: integral time T of the speed loop, s; None for no integral part.
    """
    error = np.array([position, -position, -1.0])
    if integral_time is None:
        return ServoLaw(A=np.zeros((0, 0)), B=np.zeros((0, 3)), C=np.zeros(0), D=speed * error)
    return ServoLaw(
        A=np.zeros((1, 1)), B=error[None] / integral_time, C=np.array([speed]), D=speed * error
    )


def line_law(control: Control, value: Callable[[Expression], float]) -> ServoLaw:
    """Return the linear law of a drive line's control; limits are neglected.

    The delay of a sampled control is a second-order Padé approximation.
    """
    law = _in_series(_pid(control.position, value), np.array([1.0, -1.0, 0.0]))
    if control.speed is not None:
        law = _with_inner(law, _pid(control.speed, value))
    if control.sample_time is not None:
        law = _delayed(law, SAMPLED_DELAY * value(control.sample_time))
    return law


def _pid(law: Pid, value: Callable[[Expression], float]) -> tuple[Array, Array, Array, float]:
    """Return A, B (s,), C (s,) and D of K (1 + 1/(T_i s) + T_d s / (1 + s T_d / N))."""
    gain = value(law.gain)
    A, B, C, D = np.zeros((0, 0)), np.zeros(0), np.zeros(0), gain
    if law.integral_time is not None:
        A, B, C = np.zeros((1, 1)), np.array([1.0 / value(law.integral_time)]), np.array([gain])
    if law.derivative_time is not None:
        N = value(law.filter)
        pole = N / value(law.derivative_time)
        A = np.block([[A, np.zeros((len(B), 1))], [np.zeros((1, len(B))), np.array([[-pole]])]])
        B = np.append(B, pole)
        C = np.append(C, -gain * N)
        D += gain * N
    return A, B, C, D


def _in_series(loop: tuple[Array, Array, Array, float], error: Array) -> ServoLaw:
    """Return the law of a loop whose input is a linear combination, `error` (3,), of r, y and v."""
    A, B, C, D = loop
    return ServoLaw(A=A, B=np.outer(B, error), C=C, D=D * error)


def _with_inner(outer: ServoLaw, inner: tuple[Array, Array, Array, float]) -> ServoLaw:
    """Return the law of a speed loop whose reference is the output of the position loop."""
    A, B, C, D = inner
    feedthrough = outer.D - np.array([0.0, 0.0, 1.0])
    zero = np.zeros((outer.states, len(C)))
    return ServoLaw(
        A=np.block([[outer.A, zero], [np.outer(B, outer.C), A]]),
        B=np.concatenate([outer.B, np.outer(B, feedthrough)]),
        C=np.concatenate([D * outer.C, C]),
        D=D * feedthrough,
    )


def _delayed(law: ServoLaw, delay: float) -> ServoLaw:
    """Return a law whose output is delayed by T: (1 - sT/2 + s²T²/12) / (1 + sT/2 + s²T²/12)."""
    A = np.array([[0.0, 1.0], [-12.0 / delay**2, -6.0 / delay]])
    B = np.array([0.0, 1.0])
    C = np.array([0.0, -12.0 / delay])
    zero = np.zeros((law.states, 2))
    return ServoLaw(
        A=np.block([[law.A, zero], [np.outer(B, law.C), A]]),
        B=np.concatenate([law.B, np.outer(B, law.D)]),
        C=np.concatenate([law.C, C]),
        D=law.D,
    )


def read_gains(mechanism: Mechanism, gains: Gains | None) -> dict[str, dict[str, float]]:
    """Return the gains by actuator and name, in SI units.

    Args:
        mechanism: the machine.
        gains: ``{"motor": {"position": 50.0, "speed": 2e4}}``, or flat with names such as
            ``motor.position`` or ``*.speed``; or as text, ``motor.position=50,motor.speed=2e4``.

    Raises:
        InputError: an actuator or gain is unknown, a value is not positive, or the actuator has a
            drive line, which contains its control.
    """
    problems = Problems()
    with_drive_line = {
        actuator.name for actuator in mechanism.actuators if actuator.drive is not None
    }
    names = [actuator.name for actuator in mechanism.actuators]
    gains_of: dict[str, dict[str, float]] = {}
    for key, text in _flat(gains, problems).items():
        pattern, _, gain = key.rpartition(".")
        where = f"servo_gains.{key}"
        matches = [name for name in names if fnmatchcase(name, pattern)]
        if gain not in GAIN_NAMES:
            remedy = suggestion(gain, GAIN_NAMES) or f"use one of {', '.join(GAIN_NAMES)}"
            problems.add(where, f"there is no gain {gain!r}", remedy)
            continue
        if not matches:
            remedy = suggestion(pattern, names) or f"use one of {listing(names)}"
            problems.add(where, f"there is no actuator {pattern!r}", remedy)
        for name in matches:
            if name in with_drive_line:
                what = f"the drive line of {name} already contains a control"
                problems.add(where, what, "change the control in the file, or omit the gain")
        number = _number(where, gain, text, problems)
        if number is not None:
            for name in matches:
                gains_of.setdefault(name, {})[gain] = number
    InputError.raise_if_any(problems)
    return gains_of


def _flat(gains: Gains | None, problems: Problems) -> dict[str, str | float]:
    """Return gains by full names such as ``motor.position``."""
    from tauloop.common.options import pairs

    if gains is None:
        return {}
    if isinstance(gains, str):
        return dict(pairs("servo_gains", gains, problems, "motor.position=50"))
    flat: dict[str, str | float] = {}
    for name, item in gains.items():
        if isinstance(item, Mapping):
            flat |= {f"{name}.{gain}": value for gain, value in item.items()}
        else:
            flat[name] = item
    return flat


def _number(where: str, gain: str, value: str | float, problems: Problems) -> float | None:
    """Return a positive number in SI units; None if a problem was added."""
    try:
        if not isinstance(value, str):
            number = float(value)
        elif gain == "speed":
            number = float(value)
        else:
            number = quantity(where, value, TIME if gain == "integral_time" else FREQUENCY)
    except InputError as error:
        for problem in error.problems:
            problems.add(problem.where, problem.what, problem.remedy)
        return None
    except (TypeError, ValueError):
        problems.add(where, f"must be a number, got {value!r}", "give a number in SI units")
        return None
    if not np.isfinite(number):
        problems.add(where, f"must be finite, got {number:g}", "give a finite number")
        return None
    if number <= 0.0:
        problems.add(where, f"must be positive, got {number:g}", "give a positive number")
        return None
    return number
