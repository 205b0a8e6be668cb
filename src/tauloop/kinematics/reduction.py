"""Reduced models: the sequence of reduction steps, and the error of the reduced dynamics."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import field, replace
from functools import partial
from itertools import permutations

import numpy as np

from tauloop.common.datasets import item_rows
from tauloop.common.errors import InputError, PoseError, Problem, Problems, TauloopError, solving
from tauloop.common.keywords import keywords
from tauloop.common.options import Options, option
from tauloop.common.plain import OMITTED, in_json, json_keys
from tauloop.common.progress import Progress, Stages
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, Result, diagnostic, plain, provenance
from tauloop.common.shown import ReprMixin
from tauloop.formats.library import mechanism_of
from tauloop.kinematics.alike import ALIKE, body_motions, mass_center, parallel_rods
from tauloop.kinematics.states import random_states
from tauloop.mechanism.cables import struts
from tauloop.mechanism.description import units
from tauloop.mechanism.inertia import principal_moments
from tauloop.mechanism.model import BASE, Inertia, Mechanism, omission_diagnostics
from tauloop.mechanism.reduction import (
    BodyMotions,
    Step,
    carriers,
    concentrate_mass,
    distribute_bar,
    distribute_rod,
    drop_rod_inertia,
    gather_joints,
    group_parallel_links,
    hold_platform,
    is_behind,
    is_planar,
    links_as_rods,
    lump_pinned_body,
    lump_rods,
    lump_translating_body,
    merge_rods,
    parallel_couplings,
    parallel_joints,
    planar_inertia,
    point_masses,
    share_parameters,
    total_mass,
    without_unused_parameters,
)
from tauloop.model import Model
from tauloop.model.model import MachineSource

#: Number of states at which the motions of bodies and rods are compared.
MOTION_STATES = 64
#: Largest change of a force by an exact reduction, relative to the largest force.
EXACT_TOLERANCE = 1e-12
#: Name of the step that merges parallel links in one plane with parallel links behind them.
BEFORE_AND_BEHIND = "group links before and behind"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReductionOptions(Options):
    """Approximations in addition to the exact steps, and the measurement of the error.

    Attributes:
        massless_rods: names of rods whose inertia is left out.
        lumped_rods: names of slender rods whose mass is lumped at their two ends.
        share_parameters: let equal legs share parameters with equal nominal values.
        states: number of random consistent states at which the error is computed.
        velocity_spread: standard deviation of the states' velocities, such as 0.5 or 30deg/s; rad/s
            and characteristic lengths per second. The accelerations use the same number.
        seed: seed of the random states.

    Examples:
        >>> import tauloop as tl
        >>> tl.ReductionOptions(massless_rods=("leg1.forearm",), states=5).states
        5
    """

    massless_rods: tuple[str, ...] = option((), metavar="ROD")
    lumped_rods: tuple[str, ...] = option((), metavar="ROD")
    share_parameters: bool = option(False)
    states: int = option(200, least=1)
    velocity_spread: float = option(
        1.0,
        least=0.0,
        metavar="QUANTITY",
        unit=(units.ANGULAR_SPEED, units.FREQUENCY),
    )
    seed: int = option(0, least=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ActuatorError:
    """Error of the reduced inverse dynamics at one actuator, relative to the largest force.

    Attributes:
        actuator: name of the actuator.
        largest: largest force of the full model, N or N m.
        rms, maximum: RMS and largest error of the force.
        gravity, inertia, velocity: largest errors of the parts of the force that depend on the
            position, the acceleration and the velocity.
        unit: unit of the actuator's position, m or rad.
        offset: mean difference between the actuator's positions in the two models, m or rad.
        motion: largest deviation of the difference from its mean, m or rad.
    """

    actuator: str
    unit: str = field(metadata=OMITTED)
    largest: float = field(metadata=json_keys("largest_force"))
    rms: float = field(metadata=json_keys("rms_error"))
    maximum: float = field(metadata=json_keys("largest_error"))
    gravity: float = field(metadata=json_keys("gravity_error"))
    inertia: float = field(metadata=json_keys("inertia_error"))
    velocity: float = field(metadata=json_keys("velocity_error"))
    offset: float = field(metadata=json_keys("position_offset"))
    motion: float = field(metadata=json_keys("position_deviation"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReductionComparison(ReprMixin):
    """Comparison of a reduced machine with the full one over random states.

    Attributes:
        errors: errors of each actuator.
        mass: total masses of the full and of the reduced machine, kg.
        center_shift: mean displacement (3,) of the reduced machine's mass center, m.
        center_deviation: largest deviation of the displacement from its mean, m.
        states: number of states.
    """

    errors: tuple[ActuatorError, ...]
    mass: tuple[float, float]
    center_shift: np.ndarray
    center_deviation: float
    states: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NewtonEulerCount:
    """Number of Newton-Euler equations of free links, without those of telescopic rods.

    Attributes:
        stage: "full", "in the plane" (planar, with parallel links behind each other merged) or
            "reduced".
        links: number of bodies and rods of fixed length with a moment of inertia; a point mass
            counts as a part of its neighbor.
        equations: number of equations: six for each link, or three in the plane.
    """

    stage: str
    links: int
    equations: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoneStep:
    """A step that was undone.

    Attributes:
        name: name of the step.
        elements: bodies and rods that the step would have removed or changed.
        reason: change of the machine's motion that the step caused, as text.
    """

    name: str
    elements: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reduction(Result):
    """A reduced machine with its steps and its error.

    Attributes:
        full, mechanism: the full and the reduced machine.
        steps: the steps in order; each reports what it preserved and what it approximated.
        undone: steps that were undone because they changed the mobility, each with the reason.
        comparison: comparison of the reduced machine with the full one.
        coordinates: numbers of coordinates before and after.
        equations: numbers of loop equations, without those of couplings, before and after.
        couplings: numbers of couplings before and after.
        newton_euler: number of Newton-Euler equations at each stage.
    """

    full: Mechanism = field(metadata=json_keys(machine="name"))
    mechanism: Mechanism = field(metadata=OMITTED)
    steps: tuple[Step, ...]
    undone: tuple[UndoneStep, ...]
    comparison: ReductionComparison = field(
        metadata=json_keys(
            mass_kg="mass",
            mass_center_shift_m="center_shift",
            mass_center_deviation_m="center_deviation",
            states="states",
            actuators="errors",
        )
        | item_rows(
            "actuator",
            "rms",
            "maximum",
            "gravity",
            "inertia",
            "velocity",
            label="actuator",
            path="errors",
        )
    )
    coordinates: tuple[int, int]
    equations: tuple[int, int] = field(metadata=json_keys("loop_equations"))
    couplings: tuple[int, int]
    newton_euler: tuple[NewtonEulerCount, ...]

    @property
    @in_json()
    def is_exact(self) -> bool:
        """Whether no step approximates anything."""
        return all(step.is_exact for step in self.steps)

    @property
    @in_json()
    def seed(self) -> object:
        """Seed of the random states."""
        return self.provenance.options["seed"]


@keywords(ReductionOptions)
@solving(PoseError)
def reduce_model(
    machine: MachineSource,
    options: ReductionOptions | None = None,
    *,
    progress: Progress | None = None,
) -> Reduction:
    """Return a smaller machine with the same motion, and the error of its inverse dynamics.

    These exact steps are applied where possible:

    - the rotations of a platform that does not rotate are removed;
    - parallel rods are merged, and so are parallel links;
    - bars that rotate as another body does are replaced by couplings of angles;
    - pinned bodies and coupling elements that never rotate become point masses at a joint;
    - joints on the platform are moved to one point;
    - bodies that never rotate, or rotate as another body does, keep only their mass;
    - planar machines keep only planar inertia;
    - links between two revolute joints become rods.

    The approximations in the options follow. A step that changes the mobility is undone and listed
    in `undone`.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        options: approximations, and the measurement of the error.
        progress: called with the number of finished steps and their total.

    Raises:
        AssemblyError: the machine does not assemble or does not work as described.
        InputError: an option names an unknown rod.

    Source: Kroneis, Müller and Liu (SpiderMill), section 2.3.

    Examples:
        >>> import tauloop as tl
        >>> reduced = tl.reduce_model("four_bar", states=5)
        >>> reduced.is_exact
        True
        >>> bool(reduced.to_pandas()["maximum"].max() < 1e-9)
        True
    """
    original = mechanism_of(machine)
    InputError.raise_if_any(
        Problem(
            where=f"rods.{rod.name}.drum",
            what="winds onto a drum, which reductions do not support",
            remedy="reduce the machine without its drums",
            file=original.file,
        )
        for rod in original.rods
        if rod.drum is not None
    )
    mechanism = replace(original, outputs=()) if original.outputs else original
    options = options or ReductionOptions()
    rng = np.random.default_rng(options.seed)
    full = Model(mechanism)
    stages = Stages(progress, 3)
    applied = _apply_steps(full, rng, options)
    steps = applied.done
    result = without_unused_parameters(applied.mechanism)
    stages.done()
    reduced = Model(result)
    stages.done()
    comparison = compare_reduction(
        full, reduced, rng, states=options.states, speed=options.velocity_spread
    )
    stages.done()
    limit = EXACT_TOLERANCE if all(step.is_exact for step in steps) else None
    advice = (
        "all steps are exact, so bodies whose motions differ were treated as moving alike: check "
        "tolerances"
    )
    return Reduction(
        full=original,
        mechanism=result,
        steps=tuple(steps),
        undone=(*dict.fromkeys(applied.undone), *_removed_outputs(original)),
        comparison=comparison,
        coordinates=(full.topology.n_q, reduced.topology.n_q),
        equations=(_loop_equations(full), _loop_equations(reduced)),
        couplings=(len(mechanism.couplings), len(result.couplings)),
        newton_euler=tuple(_newton_euler(mechanism, applied.planar_mechanism, result)),
        diagnostics=(
            diagnostic(
                "largest error of a force, fraction of the largest force",
                max((e.maximum for e in comparison.errors), default=None),
                at_most=limit,
                advice=advice,
            ),
            *omission_diagnostics(mechanism),
            *_motion_diagnostics(comparison, advice),
        ),
        provenance=provenance(options=plain(options), inputs={"machine": mechanism.name}),
    )


def _removed_outputs(mechanism: Mechanism) -> tuple[UndoneStep, ...]:
    """Return the removal of the machine's outputs as a note; empty if the machine has none."""
    names = tuple(output.name for output in mechanism.outputs)
    reason = "a reduced machine has no outputs, because it may lack their bodies and coordinates"
    if not names:
        return ()
    return (UndoneStep(name="outputs", elements=names, reason=reason),)


def _motion_diagnostics(comparison: ReductionComparison, advice: str) -> Iterator[Diagnostic]:
    """Yield the largest changes of the motions of linear and of rotary actuators."""
    for unit, words in (("m", "an actuator that slides"), ("rad", "an actuator that turns")):
        changes = [error.motion for error in comparison.errors if error.unit == unit]
        if changes:
            yield diagnostic(
                f"largest change of the motion of {words}",
                max(changes),
                at_most=ALIKE,
                unit=unit,
                advice=advice,
            )


class _StepRecord:
    """The steps of a reduction; steps that change the machine's mobility are undone.

    Attributes:
        mechanism: the machine after the steps so far.
        planar_mechanism: the machine after parallel links behind each other were merged, so that
            all links are in one plane.
        done: the steps that were applied.
        undone: the steps that were undone, each with its reason.
    """

    def __init__(self, full: Model) -> None:
        self.mechanism = full.mechanism
        self.planar_mechanism = full.mechanism
        self.mobility = full.assembly.mobility
        self.done: list[Step] = []
        self.undone: list[UndoneStep] = []

    def apply(self, outcome: tuple[Mechanism, Step]) -> bool:
        """Apply a step unless it changes the mobility; return whether the machine has changed."""
        after, step = outcome
        if not (step.kept or step.removed):
            return False
        reason = self.motion_change(after)
        if reason:
            self.undone.append(
                UndoneStep(name=step.name, elements=step.removed or step.kept, reason=reason)
            )
            return False
        self.mechanism = after
        self.done.append(step)
        if step.name == BEFORE_AND_BEHIND:
            self.planar_mechanism = after
        return True

    def motion_change(self, after: Mechanism) -> str:
        """Return the change of the machine's motion by a step as text; empty if there is none."""
        try:
            assembly = Model(without_unused_parameters(after)).assembly
        except TauloopError as error:
            return str(error)
        if assembly.mobility != self.mobility:
            return f"it changes the mobility from {self.mobility} to {assembly.mobility}"
        return "; ".join(f"{finding.where}: {finding.what}" for finding in assembly.findings)


def _apply_steps(full: Model, rng: np.random.Generator, options: ReductionOptions) -> _StepRecord:
    """Apply all possible exact steps, then the requested approximations."""
    steps = _StepRecord(full)
    states = random_states(full, MOTION_STATES, rng).q
    motions = body_motions(full, states)
    frozen = [full.topology.velocity_names[i] for i in full.assembly.frozen]
    constant = [name for name in frozen if name.startswith("platform.")]
    platform = full.mechanism.platform.body
    if platform in motions.translating and constant:
        steps.apply(hold_platform(steps.mechanism, constant, motions))
    # merge rods after the platform's rotations are locked, because single rods would free them
    for names in parallel_rods(full, states):
        steps.apply(merge_rods(steps.mechanism, names))
    for behind in (True, False):
        _merge_parallel_links(steps, motions, behind=behind)
    _couple_parallel_links(steps, motions)
    for body in [body.name for body in full.mechanism.bodies]:
        with suppress(InputError):  # the body is not pinned
            steps.apply(lump_pinned_body(steps.mechanism, body, motions))
    for body in [
        body.name
        for body in steps.mechanism.bodies
        if body.name in motions.translating - {platform}
    ]:
        with suppress(InputError):  # the body has a function of its own: a cart, a slide
            steps.apply(lump_translating_body(steps.mechanism, body, motions))
    if platform in motions.translating:
        with suppress(InputError):
            steps.apply(gather_joints(steps.mechanism, platform, motions))
    steps.apply(point_masses(steps.mechanism, motions))
    for group in motions.groups:
        for body in carriers(steps.mechanism, group - motions.translating)[1:]:
            with suppress(InputError):  # no other body can carry its moments
                steps.apply(concentrate_mass(steps.mechanism, body, motions))
    if is_planar(steps.mechanism):
        steps.apply(planar_inertia(steps.mechanism))
        steps.apply(links_as_rods(steps.mechanism))
    if options.massless_rods:
        steps.apply(drop_rod_inertia(steps.mechanism, options.massless_rods))
    if options.lumped_rods:
        steps.apply(lump_rods(steps.mechanism, options.lumped_rods))
    if options.share_parameters:
        steps.apply(share_parameters(without_unused_parameters(steps.mechanism)))
    return steps


def _couple_parallel_links(steps: _StepRecord, motions: BodyMotions) -> None:
    """Replace rods and bars that rotate like another body by couplings of angles."""
    for rod in steps.mechanism.rods:
        _couple(
            steps, motions, motions.rods.get(rod.name, frozenset()), partial(_without_rod, rod.name)
        )
    for body in steps.mechanism.bodies:
        _couple(
            steps, motions, motions.group(body.name) - {body.name}, partial(_without_bar, body.name)
        )


def _without_rod(
    name: str, mechanism: Mechanism, carrier: str, motions: BodyMotions
) -> tuple[Mechanism, Step]:
    return distribute_rod(mechanism, name, carrier, motions)


def _without_bar(
    name: str, mechanism: Mechanism, carrier: str, motions: BodyMotions
) -> tuple[Mechanism, Step]:
    return distribute_bar(mechanism, name, carrier, motions)


def _couple(
    steps: _StepRecord,
    motions: BodyMotions,
    group: frozenset[str],
    remove: Callable[[Mechanism, str, BodyMotions], tuple[Mechanism, Step]],
) -> None:
    """Remove a rod or bar; the first possible body carries its inertia.

    If the removal changes the mobility, the first coupling of angles that restores it is added.

    Args:
        steps: the steps so far.
        motions: bodies that translate, and groups of bodies that rotate alike.
        group: bodies that rotate like the rod or bar.
        remove: (machine, carrier, motions) -> the machine without the rod or bar, and the step.
    """
    for carrier in [*([BASE] if BASE in group else []), *carriers(steps.mechanism, group - {BASE})]:
        try:
            rest, step = remove(steps.mechanism, carrier, motions)
        except InputError:
            continue  # another body may carry its inertia
        present = {coupling.name for coupling in rest.couplings}
        candidates = [c for c in parallel_couplings(rest, motions) if c.name not in present]
        for added in ((), *((coupling,) for coupling in candidates)):
            coupled = replace(rest, couplings=(*rest.couplings, *added))
            if not steps.motion_change(coupled):
                names = tuple(coupling.name for coupling in added)
                steps.apply((coupled, replace(step, kept=(*step.kept, *names))))
                return
        steps.undone.append(
            UndoneStep(
                name=step.name,
                elements=step.removed,
                reason=f"{steps.motion_change(rest)}, and no coupling restores it",
            )
        )
        return


def _loop_equations(model: Model) -> int:
    """Return the number of equations that close loops, without those of couplings."""
    return len(model.assembly.loops.names) - len(model.mechanism.couplings)


def _newton_euler(
    full: Mechanism, flat: Mechanism, reduced: Mechanism
) -> Iterator[NewtonEulerCount]:
    """Yield the count of each stage; in `flat`, parallel links behind each other are merged."""
    is_flat = is_planar(full) and flat is full
    stages = [
        ("full", full, is_flat),
        *([("in the plane", flat, True)] if is_planar(reduced) and not is_flat else []),
    ]
    for stage, mechanism, in_plane in (*stages, ("reduced", reduced, is_planar(reduced))):
        inertias = [body.inertia for body in mechanism.bodies if body.inertia is not None]
        links = sum(_is_link(mechanism, inertia, in_plane=in_plane) for inertia in inertias)
        links += sum(rod.length is not None and rod.lower is not None for rod in mechanism.rods)
        yield NewtonEulerCount(stage=stage, links=links, equations=(3 if in_plane else 6) * links)


def _is_link(mechanism: Mechanism, inertia: Inertia, *, in_plane: bool) -> bool:
    """Return whether a body has more inertia than a point mass."""
    numbers = [mechanism.value(parameter) for parameter in inertia.parameters]
    if not any(numbers[4:]):
        return False
    principal = None if in_plane else principal_moments(numbers)
    return principal is None or bool(np.abs(principal[0]).max() > principal[1])


def _merge_parallel_links(steps: _StepRecord, motions: BodyMotions, *, behind: bool) -> None:
    """Merge pairs of parallel links until none can be merged.

    Of each pair, the link with more rods stays. With `behind`, only links in parallel planes, one
    behind the other, are merged.
    """
    while any(
        _group_one_pair(steps, group - motions.translating, motions, behind=behind)
        for group in motions.groups
    ):
        pass


def _group_one_pair(
    steps: _StepRecord, group: frozenset[str], motions: BodyMotions, *, behind: bool
) -> bool:
    """Merge the first two links of a group that can be merged; return whether two were merged."""
    mechanism = steps.mechanism
    present = [body.name for body in mechanism.bodies if body.name in group]
    for kept, removed in sorted(
        permutations(present, 2), key=lambda pair: _rod_count(mechanism, pair[1])
    ):
        if not parallel_joints(mechanism, kept, removed, motions):
            continue
        if behind and not is_behind(mechanism, kept, removed, motions):
            continue
        try:
            after, step = group_parallel_links(mechanism, kept, removed, motions)
        except InputError:
            continue  # the other link cannot carry an element of this one
        if steps.apply((after, replace(step, name=BEFORE_AND_BEHIND) if behind else step)):
            return True
    return False


def _rod_count(mechanism: Mechanism, body: str) -> int:
    return sum(body in (rod.start.body, rod.end.body) for rod in mechanism.rods)


def compare_reduction(
    full: Model, reduced: Model, rng: np.random.Generator, *, states: int = 200, speed: float = 1.0
) -> ReductionComparison:
    """Return the error of a reduced machine's inverse dynamics over random states.

    Cables are treated as rods that can also push. A reduction does not affect the choice of
    tensions within their bounds.

    Args:
        full, reduced: the two machines, with the same names of platform coordinates and actuators.
        rng: source of randomness.
        states: number of states.
        speed: standard deviation of velocities and accelerations, rad/s or characteristic lengths
            per second.

    Raises:
        InputError: coordinates or actuators differ.
        PoseError: the reduced machine does not reach a pose of the full machine.
    """
    _require_same_ports(full, reduced)
    full, reduced = _with_struts(full), _with_struts(reduced)
    sample = random_states(full, states, rng, speed=speed)
    full_motion = [sample.position, sample.velocity, sample.acceleration]
    reduced_motion = []
    for name, values in zip(("position", "velocity", "acceleration"), full_motion, strict=True):
        full_columns = full.platform.ports.motion[name].columns
        order = [full_columns.index(c) for c in reduced.platform.ports.motion[name].columns]
        reduced_motion.append(values[:, order])
    start = _start(full, reduced, sample.q)
    zero = np.zeros_like(sample.velocity)

    def forces(model: Model, motion: list[np.ndarray], q: np.ndarray) -> list[np.ndarray]:
        """Return forces of the whole motion, at rest, without acceleration, without velocity."""
        position, velocity, acceleration = motion
        pairs = ((velocity, acceleration), (zero, zero), (velocity, zero), (zero, acceleration))
        functions = model.platform
        return [functions.inverse_dynamics(position, v, a, start=q).force for v, a in pairs]

    reduced_names = [actuator.name for actuator in reduced.mechanism.actuators]
    columns = [reduced_names.index(actuator.name) for actuator in full.mechanism.actuators]
    u = forces(full, full_motion, sample.q)
    w = [force[:, columns] for force in forces(reduced, reduced_motion, start)]
    largest = np.abs(u[0]).max(axis=0)
    scale = np.where(largest > 0, largest, 1.0)
    whole = (w[0] - u[0]) / scale
    gravity = (w[1] - u[1]) / scale
    inertia = ((w[3] - w[1]) - (u[3] - u[1])) / scale
    velocity = ((w[2] - w[1]) - (u[2] - u[1])) / scale
    state = reduced.platform.kinematics(reduced_motion[0], start=start)
    difference = reduced.actuator_position(state.q)[:, columns] - full.actuator_position(sample.q)
    centers = mass_center(reduced, state.q) - mass_center(full, sample.q)
    shift = centers.mean(axis=0)
    return ReductionComparison(
        errors=tuple(
            ActuatorError(
                actuator=actuator.name,
                unit="rad" if full.topology.is_rotary(actuator) else "m",
                largest=float(largest[i]),
                rms=float(np.sqrt(np.mean(whole[:, i] ** 2))),
                maximum=float(np.abs(whole[:, i]).max()),
                gravity=float(np.abs(gravity[:, i]).max()),
                inertia=float(np.abs(inertia[:, i]).max()),
                velocity=float(np.abs(velocity[:, i]).max()),
                offset=float(difference[:, i].mean()),
                motion=float(np.abs(difference[:, i] - difference[:, i].mean()).max()),
            )
            for i, actuator in enumerate(full.mechanism.actuators)
        ),
        mass=(total_mass(full.mechanism), total_mass(reduced.mechanism)),
        center_shift=shift,
        center_deviation=float(np.abs(centers - shift).max()),
        states=len(sample.q),
    )


def _with_struts(model: Model) -> Model:
    mechanism = struts(model.mechanism)
    return model if mechanism is model.mechanism else Model(mechanism, evaluator=model.evaluator)


def _require_same_ports(full: Model, reduced: Model) -> None:
    problems = Problems()
    pairs = [
        ("platform", full.platform.ports.position.columns, reduced.platform.ports.position.columns),
        (
            "actuators",
            [a.name for a in full.mechanism.actuators],
            [a.name for a in reduced.mechanism.actuators],
        ),
    ]
    for where, full_names, reduced_names in pairs:
        if sorted(full_names) != sorted(reduced_names):
            problems.add(
                where,
                f"the full machine has {', '.join(full_names)}, "
                f"the reduced machine has {', '.join(reduced_names)}",
                "compare machines with the same platform coordinates and actuators",
            )
    InputError.raise_if_any(problems)


def _start(full: Model, reduced: Model, q: np.ndarray) -> np.ndarray:
    """Return start values of the reduced machine from the full machine's coordinates, by name."""
    names = list(full.topology.coordinate_names)
    start = np.repeat(reduced.assembly.q[None, :], len(q), axis=0)
    components = {i + k for i, _ in reduced.topology.quaternions for k in range(4)}
    for j, name in enumerate(reduced.topology.coordinate_names):
        if name in names:
            i = names.index(name)
            if j in components:
                start[:, j] = q[:, i]
            else:
                start[:, j] += q[:, i] - full.assembly.q[i]
    return start
