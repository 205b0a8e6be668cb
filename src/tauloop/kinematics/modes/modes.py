"""All assembly modes and all working modes of a machine, by polynomial continuation.

An assembly mode is a pose in which the machine can be put together at given actuator positions (a
solution of forward kinematics); a working mode is a posture of the legs at a given pose of the
platform (a solution of inverse kinematics).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, field, replace
from typing import ClassVar

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.datasets import (
    channels,
    in_table,
    item_rows,
    numbered,
    several,
)
from tauloop.common.errors import AssemblyError, PoseError, TauloopError, solving
from tauloop.common.keywords import keywords
from tauloop.common.options import Options, option
from tauloop.common.plain import OMITTED, PlainData, in_json, json_keys
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, Result, diagnostic, provenance
from tauloop.equations.assembly.freedoms.coordinates import conditions
from tauloop.equations.assembly.limits import Limits, LimitViolation
from tauloop.equations.named_values import named_values
from tauloop.equations.ports import (
    ACTUATORS,
    PLATFORM,
    Entry,
    EntryPorts,
    coordinate_units,
    entry_ports,
)
from tauloop.kinematics.actuator_positions import actuator_values, agreement
from tauloop.kinematics.homotopy.blocks import BlockCount, solve_blocks
from tauloop.kinematics.homotopy.code import PathFollower
from tauloop.kinematics.homotopy.monodromy import (
    MAX_TRACE_NONLINEARITY,
    MonodromyOptions,
    Report,
    repeated,
    unreported,
)
from tauloop.kinematics.modes.equations import PositionProblem, Variables, position_problem
from tauloop.model import Model
from tauloop.model.model import MachineSource, modeled

#: Largest residual of a mode's loops, characteristic lengths, as for other closed loops.
MODE_RESIDUAL = 1e-9
#: Largest difference of the two unit axes of a cut joint, which coincide if the joint is closed.
#: Opposite axes differ by 2.
AXIS_TOLERANCE = 1e-4
#: Condition number from which a pose counts as singular. A double solution is accurate only to the
#: square root of rounding, and its condition number is 1e7 or more. Two modes of the five-bar that
#: are 9e-7 rad apart have a condition number of 2e6; at 3e-5 rad it is 7e4.
SINGULAR_CONDITION = 1e6
#: Largest difference of a coordinate between equal modes, characteristic lengths or rad.
SAME_POSE = 1e-6
#: Decimal places of the coordinates by which modes are sorted, characteristic lengths or rad.
SORT_DECIMALS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class ModeOptions(Options):
    """Options of the search for modes.

    Attributes:
        seed: seed of the homotopy paths; it determines the paths, not the solutions they end at.
        thorough: also test the completeness of modes of blocks with many angles; takes minutes.
        monodromy: options of the search for complex solutions.
        max_modes: maximum number of real solutions; more are an error.

    Examples:
        >>> import tauloop as tl
        >>> tl.ModeOptions(seed=3).seed
        3
    """

    seed: int = option(0, least=0)
    thorough: bool = option(False)
    monodromy: MonodromyOptions = option(factory=MonodromyOptions, flag="")
    max_modes: int = option(10_000, least=1, flag="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode(PlainData):
    """One assembly mode or working mode: a pose in which all loops close.

    Attributes:
        q: coordinates (n_q,), m, rad, or components of unit quaternions.
        residual: largest residual of all loop equations, m; dimensionless residuals are multiplied
            by the characteristic length.
        condition: condition number of the dimensionless loop equations in the unknown coordinates;
            infinite where modes coincide.
        is_reference: whether the mode is regular and the machine reaches it from its reference pose
            without passing through a singularity.
        beyond: limit violations; whole revolutions of unknown angles are not violations.
    """

    q: np.ndarray
    residual: float
    condition: float = field(metadata=json_keys(nullable=True))
    is_reference: bool
    beyond: tuple[LimitViolation, ...] = field(metadata=json_keys("beyond_stops"))

    @property
    @in_json()
    def within_limits(self) -> bool:
        """Whether all coordinates are within their stops."""
        return not self.beyond

    @property
    @in_json()
    def is_singular(self) -> bool:
        """Whether modes coincide here, or nearly so.

        Rounding limits the accuracy of a double solution to 1e-8 and its condition number to 1e7.
        """
        return not self.condition < SINGULAR_CONDITION


@dataclass(frozen=True, slots=True, kw_only=True)
class Modes(Result):
    """All modes at one position.

    Attributes:
        machine: name of the machine.
        entry: `ACTUATORS` (assembly modes) or `PLATFORM` (working modes).
        columns, units: names and units of the given position.
        position: the given position (n,).
        coordinate_names, coordinate_units: names and units of the coordinates of every mode.
        unknown: indices of the coordinates that are not given.
        modes: the modes; the nearest to the reference pose comes first.
        blocks: counts of the search in every block of the position problem.
        left_out: number of real solutions that are not modes, by reason.
        model: model of the machine, to draw it.
    """

    quantity_order: ClassVar[tuple[str, ...]] = (
        "mode",
        "coordinate",
        "condition",
        "residual",
        "is_reference",
        "within_limits",
    )
    needs_forces: ClassVar[bool] = False
    machine: str
    entry: Entry = field(metadata=json_keys(given="name"))
    columns: tuple[str, ...] = field(metadata=OMITTED)
    units: tuple[str, ...] = field(metadata=OMITTED)
    position: np.ndarray = field(metadata=OMITTED)
    coordinate_names: tuple[str, ...] = field(metadata=json_keys("coordinates"))
    coordinate_units: tuple[str, ...]
    unknown: tuple[int, ...] = field(metadata=OMITTED)
    modes: tuple[Mode, ...] = field(
        metadata=item_rows(
            "mode",
            "condition",
            "residual",
            "is_reference",
            "within_limits",
            label="",
            units={"residual": "m"},
        )
    )
    blocks: tuple[BlockCount, ...]
    left_out: dict[str, int]
    model: Model = field(metadata=OMITTED)

    @property
    @in_table(
        several(
            numbered("mode"),
            channels("mode", names="coordinate_names", units="coordinate_units", name="coordinate"),
        )
    )
    def q(self) -> np.ndarray:
        """Coordinates of all modes (M, n_q)."""
        return np.array([mode.q for mode in self.modes]).reshape(
            len(self.modes), len(self.coordinate_names)
        )

    @property
    def reference(self) -> int | None:
        """Index of the mode that the machine reaches from its reference pose, or None."""
        return next((i for i, mode in enumerate(self.modes) if mode.is_reference), None)

    def within_limits(self) -> Modes:
        """Return the modes within all stops; the others are counted in `left_out`.

        Raises:
            PoseError: no mode is within the stops; the message lists the limit violations of the
                mode nearest to the reference pose.
        """
        kept = tuple(mode for mode in self.modes if mode.within_limits)
        if not kept and self.modes:
            what = (
                "; ".join(map(str, self.modes[0].beyond))
                + f"; {counted(len(self.modes), 'mode')}, and none is within the stops"
            )
            remedy = (
                "give another position, or correct the machine file: "
                "{drawing: [lower, upper]} is a range without stops"
            )
            raise PoseError.of(self.machine, what, remedy)
        left_out = dict(self.left_out)
        if len(kept) < len(self.modes):
            left_out["something is beyond a stop"] = len(self.modes) - len(kept)
        return replace(self, modes=kept, left_out=left_out)

    @property
    @in_json("position")
    def named_position(self) -> dict[str, float]:
        """The given position by name."""
        return dict(zip(self.columns, self.position, strict=True))

    @property
    @in_json("units")
    def named_units(self) -> dict[str, str]:
        """Units of the given position by name."""
        return dict(zip(self.columns, self.units, strict=True))


@keywords(ModeOptions)
def assembly_modes(
    machine: MachineSource,
    actuators: object | None = None,
    options: ModeOptions | None = None,
    *,
    report: Report | None = None,
) -> Modes:
    """Return all poses in which the loops close at given actuator positions.

    The result contains all isolated solutions. Monodromy finds all complex solutions of a random
    system of the same family, and paths lead from these to the solutions of the machine's system.
    The diagnostics show how thoroughly completeness was tested. A general hexapod has 40 complex
    solutions (Raghavan 1993), which can all be real (Dietmaier 1998).

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        actuators: actuator positions (n_u,), m or rad; or a mapping from names, or a text such as
            ``motor_1=20deg``. Actuators that are not named are at the reference pose.
        options: options of the search.
        report: called with the progress of the search.

    Raises:
        AssemblyError: the actuators do not determine the pose, or the machine does not work as
            described.
        PoseError: there are more solutions than the options allow.
        InputError: the position is not a row of finite numbers.

    Examples:
        >>> import tauloop as tl
        >>> modes = tl.assembly_modes(tl.load("four_bar"))
        >>> len(modes.modes), modes.reference
        (2, 0)
        >>> modes.to_pandas()["is_reference"].tolist()
        [1.0, 0.0]
    """
    return _modes(
        modeled(machine), ACTUATORS, actuators, options or ModeOptions(), report or unreported
    )


@keywords(ModeOptions)
def working_modes(
    machine: MachineSource,
    pose: object | None = None,
    options: ModeOptions | None = None,
    *,
    report: Report | None = None,
) -> Modes:
    """Return all postures of the legs at a given position of the platform.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        pose: positions of the independent coordinates (n,), columns as in
            `model.platform.ports`; or a mapping from names, or a text such as ``x=50mm,rz=10deg``.
            Coordinates that are not named are at the reference pose.
        options: options of the search.
        report: called with the progress of the search.

    Raises:
        AssemblyError: the platform's position does not determine the posture, or the machine does
            not work as described.
        PoseError: there are more solutions than the options allow.
        InputError: the position is not a row of finite numbers.

    Examples:
        >>> import tauloop as tl
        >>> len(tl.working_modes(tl.load("four_bar")).modes)
        2
    """
    return _modes(modeled(machine), PLATFORM, pose, options or ModeOptions(), report or unreported)


@solving(PoseError)
def _modes(
    model: Model,
    entry: Entry,
    position: object | None,
    options: ModeOptions,
    report: Report,
) -> Modes:
    assembly, rng = model.assembly, np.random.default_rng(options.seed)
    AssemblyError.raise_if_any(assembly.findings)
    ports = entry_ports(assembly, entry)
    fit = None
    if entry is ACTUATORS:
        values, fit = actuator_values(model, position, where="actuators")
    else:
        values = named_values(ports.position, "pose", position, ports.at(assembly.q))
    monodromy = options.monodromy
    if options.thorough:
        monodromy = replace(monodromy, traced_angles=len(model.topology.is_angle))
    start = np.array(assembly.q)
    start[list(ports.q)] = ports.given_coordinates(values)
    problem = position_problem(assembly, ports.q, ports.v, start)
    known = problem.variables.values(start[None, :])[0]
    w, counts = solve_blocks(
        problem.blocks, known, rng, monodromy, report, follow=PathFollower(model.evaluator)
    )
    if len(w) > options.max_modes:
        what = f"has {len(w)} real solutions; the options allow {options.max_modes}"
        raise PoseError.of(model.mechanism.name, what, "raise ModeOptions.max_modes")
    q = _normalized(model, problem.variables.coordinates(w))
    q[:, list(ports.q)] = start[list(ports.q)]
    q = _without_repeats(model, q)
    q, left_out = _select_modes(model, q)
    modes = _modes_of_solutions(model, ports, values, q, problem)
    return Modes(
        machine=model.mechanism.name,
        entry=ports.entry,
        columns=ports.position.columns,
        units=ports.position.units,
        position=values,
        coordinate_names=model.topology.coordinate_names,
        coordinate_units=coordinate_units(model.topology),
        unknown=problem.unknown,
        modes=modes,
        blocks=counts,
        left_out=left_out,
        model=model,
        diagnostics=(
            *agreement(fit),
            *_search_diagnostics(
                modes, counts, model.assembly.loops.length, options.monodromy.quiet_loops
            ),
        ),
        provenance=provenance(options=asdict(options), inputs={"machine": model.mechanism.name}),
    )


def _search_diagnostics(
    modes: Sequence[Mode], counts: Sequence[BlockCount], length: float, quiet_loops: int
) -> tuple[Diagnostic, ...]:
    """Return the diagnostics of the loops and of the search for complex solutions.

    Args:
        modes: the real solutions.
        counts: the search of each block.
        length: characteristic length of the loops, m.
        quiet_loops: number of loops without a new solution after which the search ends.
    """
    return (
        diagnostic(
            "largest loop residual of a mode",
            max((mode.residual for mode in modes), default=None),
            at_most=MODE_RESIDUAL * length,
            unit="m",
            advice="a mode is too close to a singularity to be refined: change the given "
            "position slightly",
        ),
        diagnostic(
            "trace test: deviation of the summed complex solutions from a straight line",
            max((count.trace for count in counts if count.trace is not None), default=None),
            at_most=MAX_TRACE_NONLINEARITY,
            advice="complex solutions are missing, so modes may be missing too: allow more "
            "rounds in MonodromyOptions, or try another seed",
        ),
        diagnostic(
            "blocks whose trace test lost a path on every line",
            sum(count.trace is None and count.lost_lines > 0 for count in counts),
            at_most=0.0,
            advice="this machine is nearly degenerate, so modes may be missing: try another seed",
        ),
        diagnostic(
            "consecutive monodromy loops without a new complex solution (blocks without a "
            "trace test)",
            min(
                (
                    float(count.quiet_loops)
                    for count in counts
                    if count.trace is None and not count.lost_lines
                ),
                default=None,
            ),
            at_least=float(quiet_loops),
        ),
        diagnostic(
            "complex solutions without their conjugate",
            sum(count.unpaired for count in counts),
            at_most=0.0,
            advice="a path was lost: try another seed or a smaller tolerance",
        ),
        diagnostic(
            "paths that met another one",
            sum(count.met for count in counts),
            at_most=0.0,
            advice="two modes differ by less than 1e-5 (relative), or a path jumped: try "
            "another seed",
        ),
        diagnostic(
            "paths that end at multiple or not isolated solutions",
            sum(count.singular for count in counts),
            at_most=0.0,
            advice="modes coincide at this position, or the machine moves with its actuators "
            "locked; compare with the modes at a nearby position",
        ),
    )


def _normalized(model: Model, q: np.ndarray) -> np.ndarray:
    """Return the quaternions with a positive first nonzero component.

    q and -q describe the same orientation.
    """
    q = np.array(q)
    for q0, _ in model.topology.quaternions:
        quaternion = q[:, q0 : q0 + 4]
        first = np.argmax(np.abs(quaternion) > SAME_POSE, axis=1)
        sign = np.where(np.take_along_axis(quaternion, first[:, None], axis=1) < 0, -1.0, 1.0)
        q[:, q0 : q0 + 4] = sign * quaternion
    return q


def _without_repeats(model: Model, q: np.ndarray) -> np.ndarray:
    """Return each pose once; different free angles of gears can give the same pose."""
    if not model.mechanism.couplings:
        return q
    points = Variables.of(model.topology, model.assembly.loops.length).values(q)
    return np.asarray(np.delete(q, repeated(points.astype(complex))[:, 1], axis=0))


def _select_modes(model: Model, q: np.ndarray) -> tuple[np.ndarray, dict[str, int]]:
    """Return the real solutions that are modes, and the numbers of rejected ones by reason."""
    loops = model.assembly.loops
    lengths = [i for _, i, _ in model.topology.telescopes]
    has_lengths = (q[:, lengths] > 0).all(axis=1)
    phi, _ = loops.residuals(q)
    strict = loops.aligned
    is_closed = loops.openings(phi) < MODE_RESIDUAL
    is_aligned = strict.openings(strict.residuals(q)[0]) < AXIS_TOLERANCE
    is_mode = has_lengths & is_closed & is_aligned
    left_out = {
        "a telescopic rod would have a negative length": int((~has_lengths).sum()),
        "an equation that is redundant at the reference pose does not hold": int(
            (has_lengths & ~is_closed).sum()
        ),
        "a joint that closes a loop would be turned over": int(
            (has_lengths & is_closed & ~is_aligned).sum()
        ),
    }
    return q[is_mode], {reason: count for reason, count in left_out.items() if count}


def _modes_of_solutions(
    model: Model, ports: EntryPorts, position: np.ndarray, q: np.ndarray, problem: PositionProblem
) -> tuple[Mode, ...]:
    """Return the modes with their properties, the nearest to the reference pose first."""
    assembly = model.assembly
    loops, topology = assembly.loops, model.topology
    unit = np.where(topology.is_angle, 1.0, problem.variables.scale)
    is_angle = np.array(topology.is_angle, dtype=bool)

    def distance(target: np.ndarray) -> np.ndarray:
        difference = q - _normalized(model, target[None, :])
        difference[:, is_angle] = (difference[:, is_angle] + np.pi) % (2 * np.pi) - np.pi
        return np.asarray(np.abs(difference / unit).max(axis=1))

    # round the distances, so that rounding errors do not affect the order of equally distant modes
    sort_keys = np.column_stack(
        [np.cos(q[:, is_angle]), np.sin(q[:, is_angle]), (q / unit)[:, ~is_angle]]
    )
    distances = np.round(distance(assembly.q), SORT_DECIMALS)
    q = q[np.lexsort((*np.round(sort_keys, SORT_DECIMALS).T[::-1], distances))]
    phi, K = loops.residuals(q)
    residual = loops.largest_residual(phi)
    moving = [i for i in range(topology.n_v) if i not in ports.v]
    condition = conditions(loops.scaled(K)[:, list(problem.rows)][:, :, moving])
    is_free_angle = is_angle & ~np.isin(np.arange(topology.n_q), ports.q)
    in_ranges = _moved_into_ranges(model.limits, q, is_free_angle)
    reachable_pose = _reachable_pose(model, ports, position)
    is_reference = np.zeros(len(q), dtype=bool)
    if reachable_pose is not None:
        is_reference = distance(reachable_pose) < SAME_POSE
    is_reference &= condition < SINGULAR_CONDITION
    return tuple(
        Mode(
            q=q[i],
            residual=float(residual[i]),
            condition=float(condition[i]),
            is_reference=bool(is_reference[i]),
            beyond=model.limits.beyond(in_ranges[i]),
        )
        for i in range(len(q))
    )


def _moved_into_ranges(limits: Limits, q: np.ndarray, free: np.ndarray) -> np.ndarray:
    """Return the poses (M, n_q) with free angles moved by whole revolutions into their ranges.

    Each angle is in the revolution nearest to the middle of its range.
    """
    q = np.array(q)
    # cut joints are last
    for i, lower, upper in zip(limits.columns, limits.lower, limits.upper, strict=False):
        if free[i]:
            middle = 0.5 * (max(lower, upper - 2 * np.pi) + min(upper, lower + 2 * np.pi))
            q[:, i] -= 2 * np.pi * np.round((q[:, i] - middle) / (2 * np.pi))
    return q


def _reachable_pose(model: Model, ports: EntryPorts, position: np.ndarray) -> np.ndarray | None:
    """Return the pose (n_q,) at a position that the machine reaches from its reference pose.

    The result is None if the straight line to the position passes a singularity.
    """
    assembly, q = model.assembly, list(ports.q)
    gap = (
        np.abs(assembly.q[q] - ports.given_coordinates(position))
        / assembly.loops.coordinate_scale[q]
    )
    if gap.max(initial=0.0) < SAME_POSE:
        return np.asarray(assembly.q)
    try:
        functions = model.functions(ports.entry)
        return np.asarray(functions.follow(position).q)
    except TauloopError:
        return None
