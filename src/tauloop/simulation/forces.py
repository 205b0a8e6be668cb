"""Actuator forces and wrenches in a simulation, as functions of time and state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Protocol, final

import numpy as np

from tauloop.common.errors import EngineError
from tauloop.common.records import dataclass
from tauloop.compiler.c.calling.evaluator import Compiled, compiled_diagnostics
from tauloop.compiler.catalogue import INVERSE_DYNAMICS
from tauloop.equations.named_values import TOOL_PORT, named_values
from tauloop.model import Model, ToolMotion
from tauloop.motion import SampledMotion


class MotionInTime(Protocol):
    """A motion that can be evaluated at any time, such as `motion.Trajectory` or `motion.Multisine`."""

    def at(self, time: np.ndarray) -> SampledMotion:
        """Return positions, velocities and accelerations of the platform at times (N,)."""


class ForceLaw(ABC):
    """The actuator forces as a function of time and state."""

    @property
    def period(self) -> float | None:
        """Sample period, s, of a law whose forces are constant between samples; None if continuous."""
        return None

    @property
    def needs_state(self) -> bool:
        """Whether the forces depend on coordinates and velocities; otherwise runs are faster."""
        return True

    @abstractmethod
    def force(self, time: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return forces u (n_u,), N or N m, at a time (s) and a state q (n_q,), v (n_v,)."""


@final
@dataclass(frozen=True, slots=True)
class ConstantForce(ForceLaw):
    """Constant forces.

    Attributes:
        values: forces u (n_u,), N or N m.
    """

    values: tuple[float, ...]

    @property
    def needs_state(self) -> bool:
        """False: constant forces do not depend on the state."""
        return False

    def force(self, time: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return the constant values."""
        return np.array(self.values)


@final
class InverseDynamicsForce(ForceLaw):
    """The forces of a motion from inverse dynamics, computed at every evaluation."""

    def __init__(self, model: Model, motion: MotionInTime) -> None:
        """Prepare inverse dynamics.

        Args:
            model: the machine. Its inverse dynamics runs in machine code if its evaluator compiles.
            motion: motion of the platform.
        """
        self._model, self._motion = model, motion
        self._start = model.assembly.q
        self._bound = _bound_inverse_dynamics(model)

    @property
    def needs_state(self) -> bool:
        """False: there is no feedback."""
        return False

    def force(self, time: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return the forces of the motion at this time from inverse dynamics.

        Raises:
            PoseError: the motion is out of reach or singular at this time.
        """
        motion = self._motion.at(np.array([time]))
        if self._bound is not None:
            arrays, call = self._bound
            for name in ("position", "velocity", "acceleration"):
                arrays[name][:] = getattr(motion, name)[0]
            if "start" in arrays:
                arrays["start"][:] = self._start
            call()
            health = compiled_diagnostics(arrays["health"][None, :])
            if health.is_reached[0] and health.is_regular[0]:
                self._start = arrays["q"].copy()
                return arrays["force"].copy()
        forces = self._model.platform.inverse_dynamics(
            motion.position, motion.velocity, motion.acceleration, start=self._start
        )
        self._start = forces.state.q[0]
        return np.asarray(forces.force[0])


def _bound_inverse_dynamics(
    model: Model,
) -> tuple[Mapping[str, np.ndarray], Callable[[], None]] | None:
    """Return arrays of inputs and outputs, and a function that runs inverse dynamics on them.

    The result is None if inverse dynamics is not compiled or needs further inputs.
    """
    if not isinstance(model.evaluator, Compiled):
        return None
    try:
        function = model.platform.compiled(INVERSE_DYNAMICS, ("force", "q"))
    except EngineError:
        return None
    supported = {"position", "velocity", "acceleration", "start", "theta"}
    if {port.name for port in function.function.inputs} <= supported:
        return function.bind()
    return None


@final
@dataclass(frozen=True, slots=True)
class Feedback(ForceLaw):
    """Forces from a function of time, coordinates and velocities.

    Attributes:
        function: (time, q, v) -> u; it should be smooth.
    """

    function: Callable[[float, np.ndarray, np.ndarray], np.ndarray]

    def force(self, time: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return the value of the function."""
        return np.asarray(self.function(time, q, v), dtype=float)


@final
class SampledForce(ForceLaw):
    """A law that holds the forces of its last sample. The caller samples it."""

    def __init__(self, law: ForceLaw, actuators: int) -> None:
        """Store the law. The forces are zero before the first sample."""
        self._law = law
        self._values = np.zeros(actuators)
        self._count = 0

    @property
    def needs_state(self) -> bool:
        """False: forces are constant between samples."""
        return False

    def sample(self, time: float, q: np.ndarray, v: np.ndarray) -> float:
        """Sample the law at a time, and return the time of the next sample, s."""
        self._values = np.asarray(self._law.force(time, q, v), dtype=float)
        self._count += 1
        return self._count * (self._law.period or np.inf)

    def force(self, time: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return the forces of the last sample."""
        return self._values


@final
@dataclass(frozen=True, slots=True)
class ToolForce:
    """Force and moment at the tool that depend on its motion, for example in a contact.

    Attributes:
        function: function from time (s) and the motion of the tool to force and moment (6,) at the
            tool center point in the base frame, N and N m; it should be smooth.
    """

    function: Callable[[float, ToolMotion], np.ndarray]

    def wrench(self, model: Model, time: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return force and moment (6,) at coordinates (n_q,) and velocities (n_v,)."""
        velocity = v[list(model.platform.ports.v)]
        tool = model.platform.tool(model.platform_position(q), velocity, start=q)
        return np.asarray(self.function(time, tool), dtype=float)


#: Force and moment (6,) at the tool center point in the base frame, N and N m: constant, or a
#: function of time.
Wrench = np.ndarray | Callable[[float], np.ndarray]


def wrench_at_tool(
    wrench: str | Mapping[str, str | float] | tuple[str | float, ...] | Wrench | None,
) -> Wrench | None:
    """Return a wrench from a sequence of numbers or from named components such as `fx=10`.

    Arrays and functions are returned unchanged.

    Raises:
        InputError: a name or a number is wrong.
    """
    if isinstance(wrench, str | Mapping | tuple):
        return named_values(TOOL_PORT, "wrench", wrench, np.zeros(TOOL_PORT.size))
    return wrench
