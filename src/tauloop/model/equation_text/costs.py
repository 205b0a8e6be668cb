"""Operation counts of a machine by quantity, formulation, frame and part of the machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from tauloop.common.errors import TauloopError
from tauloop.common.progress import Progress, Stages
from tauloop.common.records import dataclass
from tauloop.compiler.c.printing.operations import (
    OPERATION_KINDS,
    Counts,
    ProgramOperations,
    function_operations,
    output_operations,
)
from tauloop.compiler.catalogue import (
    DERIVATIVES,
    FORWARD_DYNAMICS,
    INVERSE_DYNAMICS,
    KINEMATICS,
    MOMENTUM_FORCES,
    REGRESSORS,
)
from tauloop.compiler.expressions import Catalogue, ProgramSpec
from tauloop.compiler.functions.terms import velocity_matrices_program
from tauloop.compiler.program import Evaluate
from tauloop.equations.formulations import FORMULATIONS, NEWTON_EULER
from tauloop.equations.ports import PLATFORM, Entry, EntryPorts
from tauloop.mechanism.model import Mechanism
from tauloop.model.model import Model
from tauloop.model.platform_matrices import SIX_FREEDOMS, OwnMassMatrix, VirtualPlatforms

#: Counted quantities: name, program (its first output is counted), and whether the formulation
#: affects the count.
QUANTITIES = (
    ("positions", KINEMATICS[0], False),
    ("inverse dynamics", INVERSE_DYNAMICS, True),
    ("forward dynamics", FORWARD_DYNAMICS, True),
    ("regressor", REGRESSORS["actuators"], True),
)
#: Functions that are counted with all their Jacobians: name, program, and names of the
#: differentiated outputs.
DIFFERENTIATED = tuple(
    (f"{function.replace('_', ' ')} and Jacobians", specs[0], values)
    for (function, specs), values in zip(
        DERIVATIVES.items(), (("q", "v", "a"), ("force",), ("acceleration",)), strict=True
    )
)
#: Inverse dynamics along a sampled motion, without accelerations: momenta, their two-point
#: differences, forces.
SAMPLED = "hamilton, sampled"
#: Matrix V(x, x') of the platform's Coriolis and centripetal terms. It is counted for each part of
#: the machine.
VELOCITY_MATRIX = "velocity matrix"
#: Frames of the rotations in the velocity matrix: angular velocities in the base frame, or
#: derivatives of Euler angles.
BASE_FRAME = "base frame"
EULER = "Euler angles"
#: The formulation whose regressor has the longest code. This regressor is counted only on request.
LAGRANGE = "lagrange"
#: Lagrange's equations by differentiating the platform's mass matrix M(x), as in the RCID paper.
ON_PLATFORM = "lagrange on the platform"
#: All parts together, with shared expressions computed once.
ALL = "all"
#: Sum of the separate counts of the parts, in which each rod counts like the first rod.
ADDED_UP = "all, added up"

#: Formulations of velocity matrices.
VELOCITY_MATRIX_FORMULATIONS = (LAGRANGE, "generalized-momentum")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Operations of one quantity in one formulation; velocity matrices have a frame and a part."""

    quantity: str
    formulation: str
    frame: str
    part: str
    once: dict[str, int]
    each_iteration: dict[str, int]

    @property
    def total(self) -> int:
        """Number of all operations outside Newton loops."""
        return sum(self.once.values())


def costs(
    mechanism: Mechanism,
    entry: Entry = PLATFORM,
    *,
    derivatives: bool = False,
    on_platform: bool = False,
    lagrange_regressor: bool = False,
    progress: Progress | None = None,
) -> tuple[tuple[Cost, ...], dict[str, str]]:
    """Return the operation counts of all quantities and formulations, with constant parameters.

    Args:
        mechanism: the machine.
        entry: the motion that functions take; velocity matrices are always those of the platform.
        derivatives: whether to count functions with their Jacobians too.
        on_platform: whether to count Lagrange's equations in platform coordinates too.
        lagrange_regressor: whether to count the regressor by Lagrange's equations too.
        progress: function to call with the completed and the total work.

    Returns:
        The costs, and the quantities that could not be counted, each with the reason.

    Raises:
        AssemblyError: the machine does not work as described.
    """
    base = Model(mechanism)
    assembly, ports = base.assembly, base.functions(entry).ports
    # The programs of the default formulation are counted as they are generated.
    default = Catalogue(assembly, ports, NEWTON_EULER)
    catalogues = {
        formulation.name: default.with_formulation(formulation, share_expressions=False)
        for formulation in FORMULATIONS
    } | {NEWTON_EULER.name: default}
    tasks = _function_tasks(catalogues, lagrange_regressor)
    if derivatives:
        tasks += _derivative_tasks(default)
    tasks.append((f"inverse dynamics by {SAMPLED}", lambda _: [_sampled_cost(default)]))
    if entry is PLATFORM:
        tasks += _matrix_tasks(catalogues, base, _frames(ports), on_platform)
    stages = Stages(progress, len(tasks))
    rows: list[Cost] = []
    uncounted: dict[str, str] = {}
    for name, count in stages.over(tasks):
        try:
            rows += count(stages.part)
        except TauloopError as error:
            uncounted[name] = _reason(error)
    quantities = [quantity for quantity, *_ in (*QUANTITIES, *DIFFERENTIATED)] + [VELOCITY_MATRIX]
    frames = ("", BASE_FRAME, EULER)

    def order(cost: Cost) -> tuple[int, int]:
        return quantities.index(cost.quantity), frames.index(cost.frame)

    return tuple(sorted(rows, key=order)), uncounted


#: Name of a quantity with its formulation, and the function that counts it and reports progress.
Task = tuple[str, Callable[[Progress], Iterable[Cost]]]


def _function_tasks(catalogues: dict[str, Catalogue], lagrange_regressor: bool) -> list[Task]:
    """Return the tasks that count functions, for each formulation that affects their count."""
    tasks: list[Task] = []
    for formulation, catalogue in catalogues.items():
        for quantity, spec, has_formulations in QUANTITIES:
            is_wanted = has_formulations or formulation == NEWTON_EULER.name
            if spec is REGRESSORS["actuators"] and formulation == LAGRANGE:
                is_wanted = lagrange_regressor
            if is_wanted:
                count = partial(
                    _function_cost, catalogue, spec, spec.outputs[:1], quantity, formulation
                )
                tasks.append((f"{quantity} by {formulation}", count))
    return tasks


def _derivative_tasks(catalogue: Catalogue) -> list[Task]:
    """Return the tasks that count functions with their Jacobians."""
    tasks: list[Task] = []
    for quantity, spec, values in DIFFERENTIATED:
        outputs = tuple(name for name in spec.outputs if name.partition("_by_")[0] in values)
        count = partial(_function_cost, catalogue, spec, outputs, quantity, NEWTON_EULER.name)
        tasks.append((quantity, count))
    return tasks


def _matrix_tasks(
    catalogues: dict[str, Catalogue], model: Model, frames: tuple[str, ...], on_platform: bool
) -> list[Task]:
    """Return the tasks that count velocity matrices."""
    tasks: list[Task] = []
    for formulation in VELOCITY_MATRIX_FORMULATIONS:
        count = partial(_velocity_matrices, catalogues[formulation], formulation, frames)
        tasks.append((f"{VELOCITY_MATRIX} by {formulation}", count))
    if on_platform and EULER in frames:
        count_on_platform = partial(_matrices_on_platform, model)
        tasks.append((f"{VELOCITY_MATRIX} by {ON_PLATFORM}", count_on_platform))
    return tasks


def not_requested(
    rows: Iterable[Cost],
    *,
    derivatives: bool = False,
    on_platform: bool = False,
    lagrange_regressor: bool = False,
) -> dict[str, str]:
    """Return the quantities that are counted only on request, each with the option for it.

    Args:
        rows: the costs.
        derivatives: whether functions with their Jacobians were requested.
        on_platform: whether Lagrange's equations in platform coordinates were requested.
        lagrange_regressor: whether the regressor by Lagrange's equations was requested.
    """
    names = {}
    if not lagrange_regressor:
        names[f"regressor by {LAGRANGE}"] = "lagrange_regressor"
    if not derivatives:
        names |= {quantity: "derivatives" for quantity, _, _ in DIFFERENTIATED}
    if not on_platform and any(row.frame == EULER for row in rows):
        names[f"{VELOCITY_MATRIX} by {ON_PLATFORM}"] = "on_platform"
    return names


def _function_cost(
    catalogue: Catalogue,
    spec: ProgramSpec,
    outputs: tuple[str, ...],
    quantity: str,
    formulation: str,
    _: Progress,
) -> list[Cost]:
    """Return the cost of some outputs of a program."""
    counts = output_operations(catalogue.program(spec), *outputs)
    return [Cost(quantity=quantity, formulation=formulation, frame="", part=ALL, **counts)]


def _sampled_cost(catalogue: Catalogue) -> Cost:
    """Return the cost of the forces and momenta of one sample.

    The derivative of the momenta p is (p[n+1] - p[n-1]) (1 / 2 dt). This is Miller's method, whose
    error is of second order in dt.
    """
    program = catalogue.program(MOMENTUM_FORCES)
    counts = output_operations(program, "force", "momentum")
    momentum_steps = [
        step for step in program.steps if isinstance(step, Evaluate) and "momentum" in step.outputs
    ]
    momenta = sum(
        step.function.output_sizes[step.outputs.index("momentum")] for step in momentum_steps
    )
    for kind in ("additions", "multiplications"):
        counts["once"][kind] += momenta
    return Cost(quantity="inverse dynamics", formulation=SAMPLED, frame="", part=ALL, **counts)


def _frames(ports: EntryPorts) -> tuple[str, ...]:
    """Return the frames of velocity matrices; Euler angles only for six degrees of freedom."""
    names = tuple(name.rpartition(".")[2] for name in ports.velocity.columns)
    return (BASE_FRAME, EULER) if names == SIX_FREEDOMS else (BASE_FRAME,)


def _velocity_matrices(
    catalogue: Catalogue, formulation: str, frames: tuple[str, ...], _: Progress
) -> Iterator[Cost]:
    """Yield the costs of the velocity matrices in all frames, from one set of expressions."""
    state = catalogue.state("velocity_matrices", 1)
    by_momentum = formulation != LAGRANGE
    program, labels = velocity_matrices_program(state, by_momentum, EULER in frames)
    size = catalogue.ports.velocity.size**2
    outputs = {BASE_FRAME: "V", EULER: "V_euler"}
    indices_by_part = parts(labels)
    requests: list[tuple[str, list[int]]] = []
    for frame in frames:
        for indices in indices_by_part.values():
            entries = [i * size + j for i in indices for j in range(size)]
            requests.append((outputs[frame], entries))
    counts = ProgramOperations(program).of_entries(requests)
    for k, frame in enumerate(frames):
        frame_counts = counts[k * len(indices_by_part) : (k + 1) * len(indices_by_part)]
        counts_of = dict(zip(indices_by_part, frame_counts, strict=True))
        yield from _by_parts(labels, counts_of, formulation, frame)


def _matrices_on_platform(model: Model, progress: Progress) -> Iterator[Cost]:
    """Yield the costs of Lagrange's equations from the platform's mass matrix."""
    platforms = VirtualPlatforms(model, in_euler=True)
    own = OwnMassMatrix(platforms)
    indices_by_part = parts(platforms.labels)
    counts = {
        part: function_operations(own.velocity_matrix(indices))
        for part, indices in Stages(progress, len(indices_by_part)).over(indices_by_part.items())
    }
    yield from _by_parts(platforms.labels, counts, ON_PLATFORM, EULER)


def _by_parts(
    labels: tuple[tuple[str, str, str], ...],
    counts: dict[str, Counts],
    formulation: str,
    frame: str,
) -> Iterator[Cost]:
    """Yield the costs of the velocity matrices of each part and of all parts, and their sum."""
    rods = len({name for name, kind, _ in labels if kind == "rod"})
    copies = {part: rods if part.startswith("one ") else 1 for part in counts if part != ALL}
    added_up: Counts = {}
    for key in counts[ALL]:
        total = dict.fromkeys(OPERATION_KINDS, 0)
        for part, n in copies.items():
            for kind in OPERATION_KINDS:
                total[kind] += n * counts[part][key][kind]
        added_up[key] = total
    for part, counted in {**counts, ADDED_UP: added_up}.items():
        cost = Cost(
            quantity=VELOCITY_MATRIX, formulation=formulation, frame=frame, part=part, **counted
        )
        if part in (ALL, ADDED_UP) or cost.total:
            yield cost


def parts(labels: tuple[tuple[str, str, str], ...]) -> dict[str, list[int]]:
    """Return the indices of the virtual platforms of each part of the machine.

    All rods are assumed to be equal, so only the first rod is included.

    Args:
        labels: (name, kind, part) of each virtual platform.
    """
    first_rod = next((name for name, kind, _ in labels if kind == "rod"), "")
    membership = {
        "platform": lambda name, kind, part: kind == "platform",
        "bodies": lambda name, kind, part: kind == "body",
        "one rod's translation": lambda name, kind, part: (
            name == first_rod and kind == "rod" and part == "translation"
        ),
        "one rod's rotation": lambda name, kind, part: (
            name == first_rod and kind == "rod" and part == "rotation"
        ),
        "one whole rod": lambda name, kind, part: (
            name == first_rod and kind == "rod" and part == "whole"
        ),
        "rotors": lambda name, kind, part: kind == "rotor",
        ALL: lambda name, kind, part: True,
    }
    indices_of: dict[str, list[int]] = {}
    for name, is_member in membership.items():
        indices = [i for i, label in enumerate(labels) if is_member(*label)]
        if indices:
            indices_of[name] = indices
    return indices_of


def _reason(error: TauloopError) -> str:
    """Return the problems of an error in one line."""
    return "; ".join(problem.what for problem in error.problems)
