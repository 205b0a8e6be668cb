"""What acts on a machine while it is simulated: forces of the actuators as functions of time and state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Protocol, final

import numpy as np

from tauloop.common.errors import EngineError
from tauloop.common.records import dataclass
from tauloop.compiler.c.calling.evaluator import Compiled, compiled_diagnostics
from tauloop.compiler.catalogue import INVERSE_DYNAMICS
from tauloop.equations.named_values import TOOL, named_values
from tauloop.model import Model, ToolMotion
from tauloop.motion import SampledMotion


class MotionInTime(Protocol):
    """A motion that can be asked for any time, such as `motion.Trajectory` or `motion.Multisine`."""

    def at(self, time: np.ndarray) -> SampledMotion:
        """Positions, velocities and accelerations of the platform's entry at times (N,)."""


class ForceLaw(ABC):
    """Forces of the actuators."""

    @property
    def period(self) -> float | None:
        """Time between two samples of a law that is computed and held, s; None for one that acts continuously."""
        return None

    @property
    def needs_state(self) -> bool:
        """Whether the forces depend on coordinates and velocities (else on time alone, which is cheaper)."""
        return True

    @abstractmethod
    def force(self, time: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Forces u (n_u,), N or N m, at a time (s), coordinates (n_q,) and velocities (n_v,)."""


@final
@dataclass(frozen=True, slots=True)
class ConstantForce(ForceLaw):
    """Forces that never change.

    Attributes:
        values: u (n_u,), N or N m.
    """

    values: tuple[float, ...]

    @property
    def needs_state(self) -> bool:
        """No."""
        return False

    def force(self, time: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """The values."""
        return np.array(self.values)


@final
class InverseDynamicsForce(ForceLaw):
    """The forces that a motion needs, computed by inverse dynamics at every evaluation and never interpolated."""

    def __init__(self, model: Model, motion: MotionInTime) -> None:
        """Prepare.

        Args:
            model: the machine whose inverse dynamics is used; in machine code where its evaluator
                compiles.
            motion: of its platform.
        """
        self._model, self._motion = model, motion
        self._start = model.assembly.q
        self._bound = _bound_inverse_dynamics(model)

    @property
    def needs_state(self) -> bool:
        """No: there is no feedback."""
        return False

    def force(self, time: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Inverse dynamics of the motion at this time.

        Raises:
            PoseError: the motion is out of reach there, or singular.
        """
        wanted = self._motion.at(np.array([time]))
        if self._bound is not None:
            arrays, call = self._bound
            for name in ("position", "velocity", "acceleration"):
                arrays[name][:] = getattr(wanted, name)[0]
            if "start" in arrays:
                arrays["start"][:] = self._start
            call()
            health = compiled_diagnostics(arrays["health"][None, :])
            if health.is_reached[0] and health.is_regular[0]:
                self._start = arrays["q"].copy()
                return arrays["force"].copy()
        forces = self._model.platform.inverse_dynamics(
            wanted.position, wanted.velocity, wanted.acceleration, start=self._start
        )
        self._start = forces.state.q[0]
        return np.asarray(forces.force[0])


def _bound_inverse_dynamics(
    model: Model,
) -> tuple[Mapping[str, np.ndarray], Callable[[], None]] | None:
    """Inverse dynamics bound to fixed arrays; None where nothing is compiled, or inputs of its own are needed."""
    if not isinstance(model.evaluator, Compiled):
        return None
    try:
        function = model.platform.compiled(INVERSE_DYNAMICS, ("force", "q"))
    except EngineError:
        return None
    known = {"position", "velocity", "acceleration", "start", "theta"}
    return function.bind() if {port.name for port in function.function.inputs} <= known else None


@final
@dataclass(frozen=True, slots=True)
class Feedback(ForceLaw):
    """Forces by a function of time, coordinates and velocities; it should be smooth.

    Attributes:
        function: (time, q, v) -> u.
    """

    function: Callable[[float, np.ndarray, np.ndarray], np.ndarray]

    def force(self, time: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """What the function says."""
        return np.asarray(self.function(time, q, v), dtype=float)


@final
class SampledForce(ForceLaw):
    """A law that is computed and held, for whoever samples it: the forces of its last sample."""

    def __init__(self, law: ForceLaw, actuators: int) -> None:
        """Keep the law; no forces before the first sample."""
        self._law, self._values, self._count = law, np.zeros(actuators), 0

    @property
    def needs_state(self) -> bool:
        """No: between samples nothing changes."""
        return False

    def sample(self, time: float, q: np.ndarray, v: np.ndarray) -> float:
        """Sample at a time; returns that of the next sample, s."""
        self._values = np.asarray(self._law.force(time, q, v), dtype=float)
        self._count += 1
        return self._count * (self._law.period or np.inf)

    def force(self, time: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """The forces of the last sample."""
        return self._values


@final
@dataclass(frozen=True, slots=True)
class ToolForce:
    """Force and moment at the tool by its own motion: a surface that it touches, a process, a hand.

    Attributes:
        function: (time in s, motion of the tool) -> force and moment (6,) at the tool centre point
            in the base frame, N and N m; it should be smooth.
    """

    function: Callable[[float, ToolMotion], np.ndarray]

    def wrench(self, model: Model, time: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """What the function says of the tool's motion at coordinates (n_q,) and velocities (n_v,)."""
        velocity = v[list(model.platform.ports.v)]
        tool = model.platform.tool(model.platform_position(q), velocity, start=q)
        return np.asarray(self.function(time, tool), dtype=float)


#: Force and moment (6,) at the tool centre point in the base frame, N and N m: constant, or a
#: function of time.
Wrench = np.ndarray | Callable[[float], np.ndarray]


def wrench_at_tool(wrench: str | Mapping[str, str | float] | Wrench | None) -> Wrench | None:
    """A wrench as it is, or by the names of its numbers (`fx=10,mz=0.5`).

    Raises:
        InputError: names and numbers that are wrong.
    """
    return (
        named_values(TOOL, "wrench", wrench, np.zeros(TOOL.size))
        if isinstance(wrench, str | Mapping)
        else wrench
    )
