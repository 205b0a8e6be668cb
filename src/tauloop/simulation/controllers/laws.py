"""Controllers of a machine on a trajectory: what they compute at each sample, and how they are sampled."""

from __future__ import annotations

import enum
import reprlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import final

import numpy as np

from tauloop.common.errors import Problems
from tauloop.common.options import Options, option
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.equations.ports import numbers
from tauloop.integrate.events import Event
from tauloop.integrate.integrators import Method
from tauloop.integrate.sensitivity import SensitivityDirection
from tauloop.integrate.tableau import chained
from tauloop.mechanism.description.quantities import quantity
from tauloop.mechanism.description.units import FREQUENCY
from tauloop.model import Model

SPACES = ("joint", "platform")

#: (time, measured positions, speeds, forces) of one sample, (n_u,) each -> forces (n_u,).
Correction = Callable[[float, np.ndarray, np.ndarray, np.ndarray], np.ndarray]


#: The classical method of fourth order.
RUNGE_KUTTA_4 = chained(places=(0.5, 0.5, 1.0), weights=(1 / 6, 1 / 3, 1 / 3, 1 / 6))
#: Heun's method of third order: a quarter cheaper.
HEUN_3 = chained(places=(1 / 3, 2 / 3), weights=(0.25, 0.0, 0.75))


def read_bandwidth(text: str) -> float:
    """A bandwidth in rad/s, of which text in Hz is 2 pi times as many."""
    width = quantity("bandwidth", text, FREQUENCY)
    return 2 * np.pi * width if text.strip().endswith("Hz") else width


class Compensation(enum.Enum):
    """What a controller's model adds to the gains at each sample."""

    NONE = "none"
    GRAVITY = "gravity"
    ACCELERATION = "acceleration"


@dataclass(frozen=True, slots=True, kw_only=True)
class Controller(Options, ABC):
    """A law for the actuator forces, from the errors e = x_ref - x and e' = v_ref - v of a measured motion.

    In joint space x are the actuators' positions. In platform space x is the platform's pose, found
    from the measured actuators by forward kinematics; rotations enter by the vector part of the
    quaternion between them, and forces f on the platform by J^T u = f with J the actuator Jacobian.

    All laws have their gains from one bandwidth w and damping ratio z: an error decays as e'' + 2 z
    w e' + w^2 e = 0 where the model is right. Laws without a model use the diagonal of the mass
    matrix at the start of the motion: K_p = w^2 diag(M), K_d = 2 z w diag(M).

    Attributes:
        bandwidth: w, rad/s.
        damping: z.
        space: "joint" or "platform".
    """

    bandwidth: float = option(above=0.0, below=np.inf)
    damping: float = option(1.0, above=0.0, below=np.inf)
    space: str = option("joint", choices=SPACES)

    @property
    def title(self) -> str:
        """What tables call a law that is no entry of `CONTROLLERS`; its class unless it says another."""
        return type(self).__name__

    @property
    def feeds_forward(self) -> bool:
        """Whether the forces of inverse dynamics along the reference are added; not unless a law says so."""
        return False

    @property
    def compensation(self) -> Compensation:
        """What the model computes from the measured state at each sample; nothing unless a law says so."""
        return Compensation.NONE

    @abstractmethod
    def correction(self, loop: Loop) -> Correction | None:
        """What the law makes in Python of the forces that gains and model give, made anew for each run; None: nothing.

        An integral term, a disturbance observer, a law of one's own: (time, measured, speed, force)
        -> force at each sample, of positions, speeds and forces of the actuators (n_u,).

        Args:
            loop: `gains` K_p and K_d (2, n); `reference`, the positions, velocities and
                accelerations to be followed, (N, n) each, sample by sample; `period`, s; `limit`,
                the largest forces (n_u,), which are kept afterwards; `model`, what the controller
                believes in.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop(ReprMixin):
    """Everything that a run of the control loop needs.

    Attributes:
        plant: the machine that moves.
        model: the machine that the controller believes in.
        controller: the law.
        method: the integrator between samples.
        max_steps: after which it is given up.
        substeps: parts of a sample, in which the delay is counted: the steps of a method without an
            error.
        delay: from measurement to force, in such parts.
        period: s.
        position, velocity: start of the platform's motion (n_position,) and (n,).
        q: full coordinates there (n_q,).
        reference: positions, velocities, accelerations to be followed, in the controller's space,
            (N, ...) each; in platform space the positions are all coordinates.
        forward: forces to add at each sample (N, n_u).
        first: forces before the first sample takes effect (n_u,).
        gains: proportional and derivative (2, n).
        limit: largest forces (n_u,), infinite without limit.
        resolution: of the encoders (n_u,).
        differences: whether speeds are differences of measured positions.
        theta: values of the plant's free parameters.
        load: wrench and payload at the tool from each sample on (N, 16); None where nothing acts
            there.
        events: to look for.
        directions: to differentiate by.
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
    forward: np.ndarray
    first: np.ndarray
    gains: np.ndarray
    limit: np.ndarray
    resolution: np.ndarray
    differences: bool
    theta: np.ndarray
    load: np.ndarray | None = None
    events: tuple[Event, ...] = ()
    directions: tuple[SensitivityDirection, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledLaw(Controller):
    """A law that is all in machine code."""

    def correction(self, loop: Loop) -> Correction | None:
        """Nothing."""
        return None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PD(CompiledLaw):
    """u = K_p e + K_d e'."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FeedForward(CompiledLaw):
    """u = K_p e + K_d e' + tau(x_ref, v_ref, a_ref): inverse dynamics of the reference, known beforehand."""

    @property
    def feeds_forward(self) -> bool:
        """Yes."""
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
    """u = tau(x, v, a_ref + 2 z w e' + w^2 e): inverse dynamics of the measured state."""

    @property
    def compensation(self) -> Compensation:
        """All of the dynamics."""
        return Compensation.ACCELERATION


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling(Options):
    """How a controller sees and drives the machine.

    Attributes:
        frequency: samples per second, Hz; forces are held between them.
        delay: time from a measurement to the force that follows from it, s; rounded to whole
            integration steps.
        resolution: step of the encoders, m or rad, one number or one per actuator (n_u,); zero
            measures exactly.
        differences: whether speeds are differences of measured positions (as from encoders) instead
            of exact.
        saturates: whether forces end at the actuators' limits.
    """

    frequency: float = option(1000.0, above=0.0, below=np.inf)
    delay: float = option(0.0, least=0.0, below=np.inf)
    resolution: float | np.ndarray = 0.0
    differences: bool = False
    saturates: bool = True

    def _note_mismatches(self, problems: Problems) -> None:
        """Note resolutions below zero."""
        resolution = numbers(self.resolution, "resolution")
        if resolution.ndim > 1 or not (np.isfinite(resolution).all() and (resolution >= 0).all()):
            what = f"is not one number from zero on, or one for each actuator: {reprlib.repr(self.resolution)}"
            problems.add("resolution", what, "zero measures exactly")
