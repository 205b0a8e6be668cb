"""Free motion of a machine without friction, with springs at its drives, after a push.

The energy of such a machine is constant. A change of the computed energy is therefore an error of
the equations or of the integrator.
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

#: Natural frequency of each spring with the inertia at its drive in the reference pose, Hz.
FREQUENCY = 4.0
#: Amplitude of the first oscillation at this frequency: rad for rotary drives, characteristic
#: lengths of the machine for linear drives.
AMPLITUDE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class DriveSpring:
    """The spring at a drive.

    Attributes:
        freedom: name of the driven degree of freedom.
        stiffness: stiffness, N/m or N m/rad.
        rest: position without spring force, m or rad, at which the springs balance the weight in
            the reference pose.
        unit: unit of the stiffness.
    """

    freedom: str
    stiffness: float
    rest: float
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FreeMotionSetup:
    """A frictionless machine with springs and a start state.

    Attributes:
        model: the machine without friction, with springs at its drives.
        springs: springs that are added to the machine.
        q, v: start state: the reference pose with the velocities of the push.
    """

    model: Model
    springs: tuple[DriveSpring, ...]
    q: np.ndarray
    v: np.ndarray


@solving(PoseError)
def free_motion_setup(
    mechanism: Mechanism,
    *,
    frequency: float = FREQUENCY,
    amplitude: float = AMPLITUDE,
    evaluator: Evaluator | None = None,
) -> FreeMotionSetup:
    """Return a machine without friction, with springs at its drives, and the state after a push.

    Each drive gets a spring of stiffness k = (2 pi f)^2 m, where m is the inertia at this drive:
    the diagonal element of the mass matrix in drive coordinates. The rest positions make the
    reference pose an equilibrium. The push gives each drive a speed of up to 2 pi f times the
    amplitude; its sign and magnitude differ from drive to drive.

    Args:
        mechanism: the machine.
        frequency: frequency f of the springs, Hz.
        amplitude: amplitude of the oscillation, rad or characteristic lengths.
        evaluator: evaluator of the model; the default of `Model` if omitted.

    Raises:
        InputError: the frequency or the amplitude is not positive.
        AssemblyError: the machine does not assemble, or has degrees of freedom without actuators.
    """
    InputError.raise_if_any(
        Problem(
            where=name, what=f"must be positive, got {value:g}", remedy="give a positive number"
        )
        for name, value in (("frequency", frequency), ("amplitude", amplitude))
        if not 0 < value < np.inf
    )
    frictionless = mechanism.without_friction()
    model = Model(frictionless, evaluator=evaluator)
    springs = _springs(model, frequency)
    model_with_springs = Model(with_springs(frictionless, springs), evaluator=evaluator)
    assembly, ports = model.assembly, model.platform.ports
    position = model.platform_position(assembly.q)
    G = model.platform.embedding(position, start=assembly.q)
    driven = list(assembly.driven)
    pattern = np.cos(1.3 * np.arange(len(driven)))
    push = amplitude * 2 * np.pi * frequency * pattern * assembly.loops.velocity_scale[driven]
    velocity = np.linalg.lstsq(G[driven], push, rcond=None)[0]
    state = model_with_springs.platform.kinematics(position, velocity, start=assembly.q)
    if len(velocity) != ports.velocity.size:
        raise AssertionError("expected one velocity per independent degree of freedom")
    return FreeMotionSetup(
        model=model_with_springs, springs=springs, q=state.q, v=np.asarray(state.v)
    )


def with_springs(mechanism: Mechanism, springs: tuple[DriveSpring, ...]) -> Mechanism:
    """Return the machine with additional springs, combined with its existing springs."""
    by_name = {spring.freedom: spring for spring in springs}

    def with_spring(name: str, freedom: Freedom) -> Freedom:
        if name not in by_name:
            return freedom
        k, rest = by_name[name].stiffness, by_name[name].rest
        if freedom.spring is not None:
            stiffness = mechanism.value(freedom.spring.stiffness)
            rest = (k * rest + stiffness * mechanism.value(freedom.spring.rest)) / (k + stiffness)
            k += stiffness
        return replace(freedom, spring=Spring(stiffness=Constant(k), rest=Constant(rest)))

    return mechanism.with_freedoms(with_spring)


def _springs(model: Model, frequency: float) -> tuple[DriveSpring, ...]:
    """Return the springs at the drives for a natural frequency, Hz."""
    assembly, topology = model.assembly, model.topology
    position = model.platform_position(assembly.q)
    zero = np.zeros(model.platform.ports.velocity.size)
    M = model.platform.mass_matrix(position, start=assembly.q)
    driven = list(assembly.driven)
    J = model.platform.embedding(position, start=assembly.q)[driven]
    inverse = np.linalg.pinv(J)
    drive_inertia = np.diag(inverse.T @ M @ inverse)
    holding_force = model.platform.inverse_dynamics(position, zero, zero, start=assembly.q).force
    load = assembly.loops.transmission[:, driven].T @ holding_force
    stiffness = (2 * np.pi * frequency) ** 2 * drive_inertia
    rest = assembly.q[[topology.q_of_v[i] for i in driven]] + load / stiffness
    return tuple(
        DriveSpring(
            freedom=topology.velocity_names[i],
            stiffness=float(stiffness[k]),
            rest=float(rest[k]),
            unit="N m/rad" if topology.angular[i] else "N/m",
        )
        for k, i in enumerate(driven)
    )
