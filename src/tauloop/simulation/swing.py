"""The conservative swing: a machine without friction, held in its workspace by springs at its drives, left to itself.

Its energy must not change, whatever the machine: what does change is the error of equations and
integrator.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tauloop.common.errors import InputError, PoseError, Problem, solving
from tauloop.common.records import dataclass
from tauloop.compiler.c.calling.evaluator import Evaluator
from tauloop.mechanism.expression import Constant
from tauloop.mechanism.model import Freedom, Mechanism, Spring
from tauloop.model import Model

#: Frequency that each spring gives to the inertia that its drive feels at the reference pose, Hz.
FREQUENCY = 4.0
#: Amplitude that the first swing would have at this frequency: rad, or characteristic lengths of
#: the machine.
AMPLITUDE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class DriveSpring:
    """The spring at one drive.

    Attributes:
        freedom: name of the driven freedom.
        stiffness: N/m or N m/rad.
        rest: where it is slack, m or rad: so that it carries the machine's weight at the reference
            pose.
        unit: of the stiffness.
    """

    freedom: str
    stiffness: float
    rest: float
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Swing:
    """A machine that is ready to swing.

    Attributes:
        model: without friction, with springs at its drives.
        springs: these springs.
        q, v: the start: the reference pose, in motion.
    """

    model: Model
    springs: tuple[DriveSpring, ...]
    q: np.ndarray
    v: np.ndarray


@solving(PoseError)
def swing(
    mechanism: Mechanism,
    *,
    frequency: float = FREQUENCY,
    amplitude: float = AMPLITUDE,
    evaluator: Evaluator | None = None,
) -> Swing:
    """Take the friction from a machine, hang it into springs, and push it.

    At every driven freedom k = (2 pi f)^2 m with m its inertia when the other drives are free to
    follow their own unit motion (the diagonal of the mass matrix in drive coordinates); the rest
    position makes the reference pose an equilibrium. The push gives every drive the speed amplitude
    2 pi f, with another sign and size for each.

    Args:
        mechanism: the machine.
        frequency: f, Hz.
        amplitude: rad, or characteristic lengths.
        evaluator: of the model; `Model`'s own without it.

    Raises:
        InputError: a frequency or amplitude that is not positive.
        AssemblyError: the machine does not assemble, or no actuator moves some of its freedoms.
    """
    InputError.raise_if_any(
        Problem(
            where=name, what=f"must be positive, got {value:g}", remedy="give a positive number"
        )
        for name, value in (("frequency", frequency), ("amplitude", amplitude))
        if not 0 < value < np.inf
    )
    free = mechanism.without_friction()
    model = Model(free, evaluator=evaluator)
    springs = _springs(model, frequency)
    hung = Model(with_springs(free, springs), evaluator=evaluator)
    assembly, entry = model.assembly, model.platform.ports
    position = model.platform_position(assembly.q)
    G = model.platform.embedding(position, start=assembly.q)
    driven = list(assembly.driven)
    pattern = np.cos(1.3 * np.arange(len(driven)))
    push = amplitude * 2 * np.pi * frequency * pattern * assembly.loops.velocity_scale[driven]
    velocity = np.linalg.lstsq(G[driven], push, rcond=None)[0]
    state = hung.platform.kinematics(position, velocity, start=assembly.q)
    if len(velocity) != entry.velocity.size:
        raise AssertionError("one velocity for each independent freedom")
    return Swing(model=hung, springs=springs, q=state.q, v=np.asarray(state.v))


def with_springs(mechanism: Mechanism, springs: tuple[DriveSpring, ...]) -> Mechanism:
    """The same machine with further springs, beside those that it has."""
    by_name = {spring.freedom: spring for spring in springs}

    def hung(name: str, freedom: Freedom) -> Freedom:
        if name not in by_name:
            return freedom
        k, rest = by_name[name].stiffness, by_name[name].rest
        if freedom.spring is not None:
            own = mechanism.value(freedom.spring.stiffness)
            rest = (k * rest + own * mechanism.value(freedom.spring.rest)) / (k + own)
            k += own
        return replace(freedom, spring=Spring(stiffness=Constant(k), rest=Constant(rest)))

    return mechanism.with_freedoms(hung)


def _springs(model: Model, frequency: float) -> tuple[DriveSpring, ...]:
    assembly, shape = model.assembly, model.topology
    position = model.platform_position(assembly.q)
    zero = np.zeros(model.platform.ports.velocity.size)
    M = model.platform.mass_matrix(position, start=assembly.q)
    driven = list(assembly.driven)
    J = model.platform.embedding(position, start=assembly.q)[driven]
    inverse = np.linalg.pinv(J)
    felt = np.diag(inverse.T @ M @ inverse)
    held = model.platform.inverse_dynamics(position, zero, zero, start=assembly.q).force
    load = assembly.loops.transmission[:, driven].T @ held
    stiffness = (2 * np.pi * frequency) ** 2 * felt
    rest = assembly.q[[shape.q_of_v[i] for i in driven]] + load / stiffness
    return tuple(
        DriveSpring(
            freedom=shape.velocity_names[i],
            stiffness=float(stiffness[k]),
            rest=float(rest[k]),
            unit="N m/rad" if shape.angular[i] else "N/m",
        )
        for k, i in enumerate(driven)
    )
