"""Comparison of Tauloop with other engines: dynamics and Jacobians at random consistent states."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from tauloop.common.errors import EngineError, Problems, TauloopError, solving
from tauloop.common.progress import Progress, Stages
from tauloop.common.records import dataclass
from tauloop.compiler.functions.extended import tree_inertias
from tauloop.compiler.functions.rates import independent_rate_program
from tauloop.kinematics import RandomStates, random_states
from tauloop.mechanism.cables import struts
from tauloop.mechanism.expression import Constant
from tauloop.mechanism.model import Mechanism, Turn
from tauloop.model import Model
from tauloop.verification.engines.comparison import (
    ACTUATOR_JACOBIAN,
    EMBEDDING,
    ENGINES,
    FORWARD_DYNAMICS,
    INVERSE_DYNAMICS,
    OWN_FORWARD,
    OWN_INVERSE,
    OWN_UNDER_WRENCH,
    UNDER_WRENCH,
    EngineComparison,
    Verification,
    acceleration_comparison,
    force_comparison,
    frictionless,
    velocity_comparisons,
    verification,
    with_location,
)
from tauloop.verification.engines.engine import NO_ACTION_NEEDED, Engine
from tauloop.verification.engines.motion import NamedMotion
from tauloop.verification.engines.pinocchio.in_pinocchio import PinocchioEngine
from tauloop.verification.engines.pinocchio.pinocchio_constraints import (
    constrained_dynamics,
    constrained_inverse_dynamics,
)
from tauloop.verification.engines.results import EngineAccelerations, EngineForces

#: Range of the random factors that multiply the forces of inverse dynamics for forward dynamics.
#: Without them, forward dynamics would only invert inverse dynamics.
FORCE_FACTORS = (0.5, 1.5)

#: Default of the largest condition number of a compared state.
MAX_STATE_CONDITION = 1e3

#: Smallest inertia (relative to the largest) from which the scale of an acceleration is computed.
MIN_RELATIVE_INERTIA = 1e-6

Comparer = Callable[[Engine], tuple[EngineComparison, ...]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Subject:
    """Input of a comparison.

    Attributes:
        model: the machine.
        states: N random states.
        motion: the same states by name.
        forces: actuator forces (N, n_u) of inverse dynamics.
        driving: actuator forces (N, n_u) for forward dynamics: `forces` times random factors.
    """

    model: Model
    states: RandomStates
    motion: NamedMotion
    forces: np.ndarray
    driving: np.ndarray

    def by_mass_matrix(
        self, engine: Engine, wrench: np.ndarray | None = None
    ) -> EngineAccelerations:
        """Return the accelerations from an engine's mass matrix, without its constraint solver."""
        return engine.forward_dynamics(self.motion, self.driving, wrench)

    def by_solver(self, engine: Engine, wrench: np.ndarray | None = None) -> EngineAccelerations:
        """Return the accelerations from an engine's constraint solver."""
        return constrained_dynamics(
            _with_solver(engine), engine.states(self.motion), self.driving, wrench
        )

    def inverse(self, quantity: str) -> Comparer:
        """Return the comparison of the actuator forces of inverse dynamics."""

        def solve(engine: Engine) -> EngineForces:
            if quantity == INVERSE_DYNAMICS:
                return engine.inverse_dynamics(self.motion)
            return constrained_inverse_dynamics(_with_solver(engine), engine.states(self.motion))

        return lambda engine: (force_comparison(quantity, engine, solve(engine), self.forces),)

    def under_wrench(self, quantity: str, wrench: np.ndarray) -> Comparer:
        """Return the comparison of the independent accelerations under a wrench at the tool.

        Tauloop's accelerations are computed as in simulations.
        """
        states = self.states
        model = self.model
        ports = model.platform.ports
        program = independent_rate_program(
            model.assembly, ports, model.formulation, with_wrench=True
        ).program
        n = len(states.q)
        inputs = {
            "position": states.position,
            "velocity": states.velocity,
            "force": self.driving,
            "wrench": np.broadcast_to(wrench, (n, len(wrench))),
            "start": states.q,
            "theta": np.empty((n, 0)),
        }
        outputs, _ = program.run({name: np.ascontiguousarray(x) for name, x in inputs.items()}, n)
        first = states.position.shape[1]
        independent = list(ports.v)
        a = outputs["rate"][:, first : first + len(independent)]
        names = tuple(model.topology.velocity_names[i] for i in independent)
        scale = _unit_accelerations(model)[independent]
        solve = self.by_mass_matrix if quantity == UNDER_WRENCH else self.by_solver
        return lambda engine: (
            acceleration_comparison(quantity, engine, solve(engine, wrench), names, a, scale),
        )

    def forward(self, quantity: str) -> Comparer:
        """Return the comparison of the accelerations of forward dynamics."""
        states, model = self.states, self.model
        solution = model.platform.forward_dynamics(
            states.position, states.velocity, self.driving, start=states.q
        )
        names = model.topology.velocity_names
        scale = _unit_accelerations(model)
        a = np.asarray(solution.a)
        solve = self.by_mass_matrix if quantity == FORWARD_DYNAMICS else self.by_solver
        return lambda engine: (
            acceleration_comparison(quantity, engine, solve(engine), names, a, scale),
        )

    def jacobians(self) -> Comparer:
        """Return the comparison of the embedding and the actuator Jacobian."""
        states, model = self.states, self.model
        names = model.topology.velocity_names
        scale = model.assembly.loops.velocity_scale
        independent = tuple(names[i] for i in model.platform.ports.v)
        G = model.platform.embedding(states.position, start=states.q)
        J = model.platform.actuator_jacobian(states.position, start=states.q)
        return lambda engine: velocity_comparisons(
            engine, engine.velocities(self.motion, independent), names, independent, G, J, scale
        )


def _with_solver(engine: Engine) -> PinocchioEngine:
    """Return an engine whose constraint solver is exact enough for comparisons.

    Raises:
        EngineError: the engine's constraints are soft.
    """
    if isinstance(engine, PinocchioEngine):
        return engine
    what = "the constraints of this engine are soft, so its own dynamics are not a reference"
    raise EngineError.of("constraints", what, NO_ACTION_NEEDED)


def _unit_accelerations(model: Model) -> np.ndarray:
    """Return the scale (n_v,) of each acceleration, which is larger for smaller inertias.

    For example, joint spheres of 1e-11 kg m^2 next to links of 1e-5 kg m^2 amplify rounding errors
    of the links' forces by a factor of a million.
    """
    unit = model.assembly.loops.velocity_scale
    inertia = tree_inertias(model.assembly, model.formulation, model.assembly.q) * unit**2
    return np.asarray(unit / np.sqrt(np.maximum(inertia / inertia.max(), MIN_RELATIVE_INERTIA)))


@solving(EngineError)
def check_with_engines(
    mechanism: Mechanism,
    states: int,
    rng: np.random.Generator,
    *,
    wrench: np.ndarray | None = None,
    condition: float = MAX_STATE_CONDITION,
    engines: Mapping[str, Callable[[Mechanism], Engine]] = ENGINES,
    progress: Progress | None = None,
) -> Verification:
    """Compare Tauloop's dynamics and Jacobians with those of every installed engine.

    The engines receive positions, velocities and accelerations (or forces) of the machine and close
    all loops themselves, without Tauloop's equations. Both sides neglect friction and bounds of
    tensions.

    Args:
        mechanism: the machine.
        states: number of random states.
        rng: random generator of the states.
        wrench: (6,) force and moment at the tool center point in the base frame, N and N m; adds
            comparisons under this wrench.
        condition: largest condition number of a state's linear blocks; it amplifies the rounding
            errors of both sides. States with larger condition numbers are not compared.
        engines: functions that create engines, by name.
        progress: called with the completed and the total number of steps.

    Returns:
        Comparisons with every engine, and the engines that did not run.

    Raises:
        AssemblyError: the machine cannot be assembled as described.
        EngineError: nothing could be compared; the error lists all reasons.
    """
    simplified = struts(frictionless(mechanism))
    comparisons: list[EngineComparison] = []
    problems = Problems()
    if mechanism.cables:
        what = "the engines do not support tension bounds"
        remedy = (
            "cables are compared as rods that can also push; redundant winches share forces with "
            "the smallest norm"
        )
        problems.add("cable tensions in all engines", what, remedy)
    preparations: dict[str, Callable[[], Comparer]] = {
        INVERSE_DYNAMICS: lambda: subject.inverse(INVERSE_DYNAMICS),
        OWN_INVERSE: lambda: subject.inverse(OWN_INVERSE),
        FORWARD_DYNAMICS: lambda: subject.forward(FORWARD_DYNAMICS),
        OWN_FORWARD: lambda: subject.forward(OWN_FORWARD),
        f"{EMBEDDING}, {ACTUATOR_JACOBIAN}": lambda: subject.jacobians(),
    }
    if wrench is not None:
        preparations[UNDER_WRENCH] = lambda: subject.under_wrench(UNDER_WRENCH, wrench)
        preparations[OWN_UNDER_WRENCH] = lambda: subject.under_wrench(OWN_UNDER_WRENCH, wrench)
    if not simplified.actuators:
        what = "the machine has no actuator whose force could be compared"
        remedy = "no action needed: the rows of forward dynamics compare the accelerations"
        for quantity in (INVERSE_DYNAMICS, OWN_INVERSE):
            problems.add(f"all engines, {quantity}", what, remedy)
            del preparations[quantity]
    stages = Stages(progress, 1 + len(engines) + len(preparations))
    model = _with_locked_joints_fixed(Model(simplified))
    subject = _subject(model, states, rng, condition)
    stages.done()
    usable = dict(_usable_engines(stages.over(engines.items()), model.mechanism, problems))
    for quantity, prepare in stages.over(preparations.items()):
        try:
            compare = prepare()
        except TauloopError as error:
            problems += with_location(f"all engines, {quantity}", error)
            continue
        for name, engine in usable.items():
            try:
                comparisons += compare(engine)
            except EngineError as error:
                problems += with_location(f"{name}, {quantity}", error)
    distinct = subject.states.distinct_states
    result = verification(mechanism, states, comparisons, problems, distinct)
    return replace(result, q=subject.states.q[:distinct])


def _with_locked_joints_fixed(model: Model) -> Model:
    """Return the model with fixed joints instead of locked revolute joints.

    The engines do not support locked joints.
    """
    assembly, topology, mechanism = model.assembly, model.topology, model.mechanism
    angles = {
        topology.velocity_names[i]: float(assembly.q[topology.q_of_v[i]]) for i in assembly.locked
    }
    if not angles:
        return model
    references = {
        tree.joint.name: tuple(map(float, assembly.q[list(tree.q)])) for tree in topology.tree
    }
    joints = []
    for joint in mechanism.joints:
        if joint.name in angles and joint.kind == "revolute":
            turns = (*joint.parent.turns, Turn(joint.axes[0], Constant(angles[joint.name])))
            parent = replace(joint.parent, turns=turns)
            joint = replace(joint, kind="fixed", parent=parent, axes=(), reference=(), freedoms=())
        elif joint.name in references:
            joint = replace(joint, reference=references[joint.name])
        joints.append(joint)
    return Model(replace(mechanism, joints=tuple(joints)))


def _subject(model: Model, states: int, rng: np.random.Generator, condition: float) -> _Subject:
    """Return random states of a model with their forces."""
    samples = random_states(model, states, rng, condition=condition)
    topology = model.topology
    if model.assembly.passive:
        samples, forces = _with_passive_accelerations(model, samples)
    else:
        motion = (samples.position, samples.velocity, samples.acceleration)
        forces = model.platform.inverse_dynamics(*motion, start=samples.q).force
    return _Subject(
        model=model,
        states=samples,
        motion=NamedMotion(
            q={name: samples.q[:, i] for i, name in enumerate(topology.coordinate_names)},
            v={name: samples.v[:, i] for i, name in enumerate(topology.velocity_names)},
            a={name: samples.a[:, i] for i, name in enumerate(topology.velocity_names)},
        ),
        forces=forces,
        driving=forces * rng.uniform(*FORCE_FACTORS, forces.shape),
    )


def _with_passive_accelerations(
    model: Model, states: RandomStates
) -> tuple[RandomStates, np.ndarray]:
    """Return the states with accelerations of passive coordinates, and actuator forces (N, n_u).

    Position, velocity and acceleration of a state come from the same evaluation. Near a dead
    center, coordinates that are computed from actuator positions differ slightly from the original
    coordinates, so that accelerations of one set would not close the loops of the other set.
    """
    ports = model.actuators.ports
    acceleration = ports.rates(states.a)[:, : len(model.assembly.leading)]
    solution = model.hybrid.inverse_dynamics(
        ports.at(states.q), ports.rates(states.v), acceleration, start=states.q
    )
    state = solution.forces.state
    rates = model.platform.ports.rates
    q = np.asarray(state.q)
    v = np.asarray(state.v)
    a = np.asarray(state.a)
    position = model.platform_position(q)
    moved_states = replace(
        states, q=q, v=v, a=a, position=position, velocity=rates(v), acceleration=rates(a)
    )
    return moved_states, solution.forces.force


def _usable_engines(
    engines: Iterable[tuple[str, Callable[[Mechanism], Engine]]],
    mechanism: Mechanism,
    problems: Problems,
) -> Iterator[tuple[str, Engine]]:
    """Yield the engines that can represent the machine; the others add problems."""
    for name, make in engines:
        try:
            yield name, make(mechanism)
        except EngineError as error:
            problems += with_location(name, error)
