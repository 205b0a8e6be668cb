"""Control laws for a machine on a trajectory, and their sampling."""

from __future__ import annotations

import enum
import reprlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import final

import numpy as np

from tauloop.common.errors import Problems
from tauloop.common.names.deprecated import old_attribute, renew_overrides
from tauloop.common.options import Options, option
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.equations.ports import numbers
from tauloop.integrate.events import Event
from tauloop.integrate.integrators import Method
from tauloop.integrate.sensitivity import SensitivityDirection
from tauloop.integrate.tableau import chained
from tauloop.mechanism.description.units import FREQUENCY, quantity
from tauloop.model import Model

SPACES = ("joint", "platform")

#: Function from time, measured positions, speeds and forces (n_u,) of a sample to the forces to
#: apply (n_u,). The result replaces the forces; it is not an increment.
ForceCallback = Callable[[float, np.ndarray, np.ndarray, np.ndarray], np.ndarray]


#: The classical Runge-Kutta method of fourth order.
RUNGE_KUTTA_4 = chained(places=(0.5, 0.5, 1.0), weights=(1 / 6, 1 / 3, 1 / 3, 1 / 6))
#: Heun's method of third order: three stages instead of four.
HEUN_3 = chained(places=(1 / 3, 2 / 3), weights=(0.25, 0.0, 0.75))


def read_bandwidth(text: str) -> float:
    """Return the bandwidth of a text in rad/s; a frequency in Hz is multiplied by 2 pi."""
    bandwidth = quantity("bandwidth", text, FREQUENCY)
    return 2 * np.pi * bandwidth if text.strip().endswith("Hz") else bandwidth


class Compensation(enum.Enum):
    """The dynamics that a controller compensates with its model at each sample."""

    NONE = "none"
    GRAVITY = "gravity"
    ACCELERATION = "acceleration"


@dataclass(frozen=True, slots=True, kw_only=True)
class Controller(Options, ABC):
    """A law of the actuator forces, based on the errors e = x_ref - x and e' = v_ref - v.

    In joint space, x are the positions of the actuators. In platform space, x is the pose of the
    platform, computed from the measured actuators by forward kinematics. Rotation errors are twice
    the vector part of the quaternion between the poses. Platform forces f give actuator forces u
    with J^T u = f, where J is the actuator Jacobian.

    All laws derive their gains from a bandwidth w and a damping ratio z. With an exact model,
    errors decay as e'' + 2 z w e' + w^2 e = 0. Laws without a model use the diagonal of the mass
    matrix at the start of the motion: K_p = w^2 diag(M), K_d = 2 z w diag(M).

    Attributes:
        bandwidth: bandwidth w, rad/s.
        damping: damping ratio z.
        space: "joint" or "platform".
    """

    bandwidth: float = option(above=0.0, below=np.inf)
    damping: float = option(1.0, above=0.0, below=np.inf)
    space: str = option("joint", choices=SPACES)

    correction = old_attribute("correction", "force_callback")

    def __init_subclass__(cls) -> None:
        """Accept the old names in derived classes, with a warning."""
        renew_overrides(cls)

    @property
    def title(self) -> str:
        """Name in tables of a law that is not in `CONTROLLERS`; the class name by default."""
        return type(self).__name__

    @property
    def feeds_forward(self) -> bool:
        """Whether inverse dynamics along the reference is added to the forces; False by default."""
        return False

    @property
    def compensation(self) -> Compensation:
        """The dynamics compensated by the model at each sample; none by default."""
        return Compensation.NONE

    @abstractmethod
    def force_callback(self, loop: Loop) -> ForceCallback | None:
        """Return a function that changes the forces in Python; None for no change.

        The function receives the sum of the feedback and model forces. It returns the forces to
        apply, not an increment. Examples are an integral term, a disturbance observer or a
        user-defined law. The function is created for each run and called at each sample as
        (time, measured, speed, force) -> force, with positions, speeds and forces of the actuators
        (n_u,).

        Args:
            loop: the control loop. Its attributes include `gains`, K_p and K_d (2, n); `reference`,
                positions, velocities and accelerations at each sample (N, n); `period`, s; `limit`,
                the largest forces (n_u,), which are enforced afterwards; and `model`, the machine
                that the controller assumes.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop(ReprMixin):
    """The inputs of a run of the control loop.

    Attributes:
        plant: the simulated machine.
        model: the machine that the controller assumes.
        controller: the control law.
        method: the integrator between samples.
        max_steps: maximum number of integration steps.
        substeps: number of substeps per sample period. A method without error control takes one
            integration step per substep.
        delay: delay from measurement to force, in substeps.
        period: sample period, s.
        position, velocity: platform position (n_position,) and velocity (n,) at the start.
        q: all coordinates at the start (n_q,).
        reference: reference positions, velocities and accelerations in the controller's space,
            (N, ...) each; in platform space the positions hold all coordinates q (N, n_q).
        feedforward: feed-forward forces at each sample (N, n_u).
        initial_force: forces (n_u,) that act until the forces of the first sample take effect.
        gains: proportional and derivative gains (2, n).
        limit: largest forces (n_u,); infinite without a limit.
        resolution: resolution of the encoders (n_u,).
        uses_velocity_differences: whether speeds are differences of measured positions.
        theta: values of the plant's free parameters.
        load: wrench (6) and inertial parameters of the payload (10) at the tool, held from each
            sample to the next (N, 16); None if neither is given.
        events: events to detect.
        directions: parameter and start directions along which sensitivities are integrated.
    """

    plant: Model
    model: Model
    controller: Controller
    method: Method
    max_steps: int
    substeps: int
    delay: int
    period: float
    position: np.ndarray
    velocity: np.ndarray
    q: np.ndarray
    reference: tuple[np.ndarray, np.ndarray, np.ndarray]
    feedforward: np.ndarray
    initial_force: np.ndarray
    gains: np.ndarray
    limit: np.ndarray
    resolution: np.ndarray
    uses_velocity_differences: bool
    theta: np.ndarray
    load: np.ndarray | None = None
    events: tuple[Event, ...] = ()
    directions: tuple[SensitivityDirection, ...] = ()

    first = old_attribute("first", "initial_force")
    differences = old_attribute("differences", "uses_velocity_differences")
    forward = old_attribute("forward", "feedforward")


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledLaw(Controller):
    """A law that runs entirely in machine code."""

    def force_callback(self, loop: Loop) -> ForceCallback | None:
        """Return None: no change in Python."""
        return None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PD(CompiledLaw):
    """u = K_p e + K_d e'."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FeedForward(CompiledLaw):
    """u = K_p e + K_d e' + tau(x_ref, v_ref, a_ref), with inverse dynamics along the reference."""

    @property
    def feeds_forward(self) -> bool:
        """True."""
        return True


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GravityCompensation(CompiledLaw):
    """u = K_p e + K_d e' + tau(x, 0, 0): gravity and springs at the measured position."""

    @property
    def compensation(self) -> Compensation:
        """Gravity and springs."""
        return Compensation.GRAVITY


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ComputedTorque(CompiledLaw):
    """u = tau(x, v, a_ref + 2 z w e' + w^2 e): inverse dynamics at the measured state."""

    @property
    def compensation(self) -> Compensation:
        """The complete dynamics."""
        return Compensation.ACCELERATION


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling(Options):
    """Sampling, measurement and actuation of a controlled machine.

    Attributes:
        frequency: samples per second, Hz; forces are held between them.
        delay: time from a measurement to the resulting force, s; rounded to whole
            integration steps.
        resolution: resolution of the encoders, m or rad: one number, or one per actuator (n_u,);
            zero for exact measurement.
        velocity_differences: whether speeds are differences of measured positions (as from encoders) instead
            of exact values.
        saturates: whether forces are limited to the actuators' limits.
    """

    frequency: float = option(1000.0, above=0.0, below=np.inf)
    delay: float = option(0.0, least=0.0, below=np.inf)
    resolution: float | np.ndarray = 0.0
    velocity_differences: bool = False
    saturates: bool = True

    def _note_mismatches(self, problems: Problems) -> None:
        """Report negative resolutions."""
        resolution = numbers(self.resolution, "resolution")
        if resolution.ndim > 1 or not (np.isfinite(resolution).all() and (resolution >= 0).all()):
            problem = "must be one non-negative number, or one per actuator, got "
            problem += reprlib.repr(self.resolution)
            problems.add("resolution", problem, "give zero for exact measurement")
