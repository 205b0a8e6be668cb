"""Errors of the tool due to tolerances of parts, encoders, clearances, heat and loads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from fnmatch import fnmatchcase
from typing import ClassVar

import numpy as np

from tauloop.common.datasets import channels, numbered, quantity_over, several
from tauloop.common.errors import InputError, PoseError, Problems, solving
from tauloop.common.keywords import keywords
from tauloop.common.options import Options, listed, option
from tauloop.common.plain import OMITTED, in_json, json_keys
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, Result, diagnostic, provenance
from tauloop.design.tolerances.coupled_errors import (
    CoupledWorst,
    ErrorCoupling,
    assembly_fit,
    coupled_worst,
    coupling,
)
from tauloop.design.tolerances.error_bounds import SecondOrderBounds, second_order_bounds
from tauloop.design.tolerances.error_equations import (
    Array,
    ErrorEquations,
    FirstOrder,
    PartParameters,
    part_parameters,
)
from tauloop.design.tolerances.error_groups import (
    CLEARANCE,
    ENCODER,
    HEAT,
    PARAMETER,
    WRENCH,
    ErrorGroup,
    SecondOrder,
    interval_group,
    second_order,
    worst_sizes,
)
from tauloop.design.tolerances.sources import (
    Amounts,
    Candidate,
    amounts,
    geometric_candidates,
    joint_candidates,
)
from tauloop.elasticity.heat.expansion import (
    ThermalExpansionOptions,
    temperatures_of,
    thermal_expansion,
)
from tauloop.elasticity.machine.constants import machine_constants
from tauloop.elasticity.machine.poses import CoordinateRows, PoseInput, machine_coordinates
from tauloop.elasticity.static_analysis.stiffness import (
    DIRECTIONS,
    TWIST_UNITS,
    StiffnessOptions,
    stiffness,
)
from tauloop.equations.named_values import TOOL_PORT, named_values
from tauloop.equations.ports import motor_port
from tauloop.kinematics.states import random_states
from tauloop.mechanism.description.units import TEMPERATURE
from tauloop.mechanism.model import Mechanism, omission_diagnostics
from tauloop.mechanism.suggestions import listing, suggestion
from tauloop.model import Model
from tauloop.model.model import MachineSource, modeled

#: Largest second-order part of the errors, as a fraction of the largest error.
MAX_SECOND_ORDER = 0.05
#: Largest residual of redundant loops, as a fraction of the errors of the tool.
MAX_MISMATCH = 1e-6
#: Smallest motion of the tool due to passive degrees of freedom that is noted (see `passive_motion`).
PASSIVE_MOTION = 1e-6
#: Largest residual of the loops of a machine with errors, as a fraction of its size.
MAX_LOOP_RESIDUAL = 1e-9
#: Whether the errors of parameters, encoders and clearances adapt themselves so that an
#: over-constrained machine can be assembled. Only joint centers within their clearances do.
ADAPTS = (False, False, True)
#: Number of random poses where none are given.
DEFAULT_POSES = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ToleranceMapOptions(Options):
    """Largest deviations by name or pattern: ± values, with units.

    Attributes:
        tolerances: tolerances of independent geometric parameters, such as 'arm_length=0.05mm'.
        encoders: errors of the actuator encoders.
        clearances: joint clearances: radius of the sphere in which the center of a joint, or of a rod
            end (``ROD.start`` or ``ROD.end``), can move.
        temperatures: temperature of each part relative to the reference temperature, K; a number
            for all parts that have a coefficient of expansion.
        wrench: wrench at the tool, such as 'fx=10,mz=0.5' (N, N m, base frame); each component varies
            between plus and minus this value.
        common: parameters, by name or pattern, whose error is the same in all parts; others have an
            error for each leg.
        samples: number of random poses within the limits of the machine, if no poses are given.
        seed: seed of the random poses.

    Examples:
        >>> import tauloop as tl
        >>> tl.ToleranceMapOptions(tolerances={"arm_length": "0.05 mm"}).samples
        200
    """

    tolerances: Amounts | None = option(None, read=str, metavar="VALUES")
    encoders: Amounts | None = option(None, read=str, metavar="VALUES")
    clearances: Amounts | None = option(None, read=str, metavar="VALUES")
    temperatures: float | Mapping[str, float] | None = option(
        None, unit=TEMPERATURE, below=np.inf, read=temperatures_of, metavar="VALUES"
    )
    wrench: str | Mapping[str, str | float] | tuple[float, ...] | None = option(
        None, read=str, metavar="VALUES"
    )
    common: tuple[str, ...] = option((), read=listed, metavar="NAMES")
    samples: int = option(DEFAULT_POSES, least=1, most=1_000_000)
    seed: int = option(0, least=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToleranceMap(Result):
    """Errors of the tool at N poses due to p sources of error, with the actuators held.

    Twists are small translations and rotation vectors of the tool center point, in the axes of the
    base, m and rad.

    Attributes:
        model: the machine.
        options: the tolerances.
        platform: (N, n) positions of the platform.
        tool: (N, 3) tool center points, m.
        sources: names of the sources; ``NAME@PART`` is the parameter NAME of one part.
        kinds: kind of each source: parameter, encoder, clearance, heat or wrench.
        units: SI unit of each tolerance.
        tolerances: (p,) largest deviations, SI.
        contributions: (N, 6, p) largest error due to each source alone.
        worst: (N, 6) largest error in each direction due to all sources together. In over-constrained
            machines only errors are considered with which the redundant loops close.
        root_sum_square: (N, 6) root of the sum of the squares of the contributions.
        worst_distance: (N,) upper bound of the distance of the tool from its position, m. It is at most
            0.4 % too large, except where redundant loops couple the errors.
        worst_angle: (N,) upper bound of the rotation of the tool, rad, with the same accuracy.
        second_order: (N, 6) difference between the exact and the first-order error, at the errors that
            are worst in each direction, m and rad.
        remainder: (N, 6) proved bound of this difference due to parameters, encoders and clearances,
            for all errors within the tolerances with which the machine can be assembled; NaN where no
            bound is proved.
        notes: assumptions about this machine.
    """

    quantity_order: ClassVar[tuple[str, ...]] = (
        "pose",
        "position",
        "worst",
        "root_sum_square",
        "second_order",
        "remainder",
        "worst_distance",
        "worst_angle",
    )
    model: Model = field(metadata=json_keys(machine="mechanism.name"))
    options: ToleranceMapOptions = field(metadata=OMITTED)
    platform: np.ndarray = field(
        metadata=several(
            numbered("pose"),
            channels("pose", port="model.platform.ports.position", name="position"),
        )
    )
    tool: np.ndarray = field(metadata=json_keys("tool_m"))
    sources: tuple[str, ...]
    kinds: tuple[str, ...]
    units: tuple[str, ...]
    tolerances: np.ndarray
    contributions: np.ndarray = field(metadata=OMITTED)
    worst: np.ndarray = field(metadata=channels("pose", names=DIRECTIONS, units=TWIST_UNITS))
    root_sum_square: np.ndarray = field(
        metadata=channels("pose", names=DIRECTIONS, units=TWIST_UNITS)
    )
    worst_distance: np.ndarray = field(
        metadata=json_keys("worst_distance_m") | quantity_over("pose", unit="m")
    )
    worst_angle: np.ndarray = field(
        metadata=json_keys("worst_angle_rad") | quantity_over("pose", unit="rad")
    )
    second_order: np.ndarray = field(metadata=channels("pose", names=DIRECTIONS, units=TWIST_UNITS))
    remainder: np.ndarray = field(
        metadata=json_keys(nullable=True) | channels("pose", names=DIRECTIONS, units=TWIST_UNITS)
    )
    notes: tuple[str, ...]

    @property
    def proved_worst(self) -> np.ndarray:
        """Upper bound (N, 6) of the error in each direction that no machine exceeds, m and rad.

        It includes terms of all orders for parameters, encoders and clearances, and first-order terms
        for heat and loads. It is NaN where no bound is proved.
        """
        return np.asarray(self.worst + self.remainder)

    @property
    @in_json()
    def worst_pose(self) -> int:
        """Index of the pose with the largest distance."""
        return int(self.worst_distance.argmax())

    @property
    @in_json()
    def largest_contributions(self) -> dict[str, float]:
        """Displacement of the tool due to each source alone at the worst pose, largest first, m."""
        displacements = np.linalg.norm(self.contributions[self.worst_pose, :3], axis=0)
        order = np.argsort(-displacements, kind="stable")
        return {self.sources[i]: float(displacements[i]) for i in order}


@keywords(ToleranceMapOptions)
@solving(PoseError)
def tolerance_map(
    machine: MachineSource,
    poses: PoseInput = None,
    options: ToleranceMapOptions | None = None,
) -> ToleranceMap:
    """Return the largest errors of the tool due to tolerances, over poses, with the actuators held.

    The equations of loops and encoders are f(q, e) = 0 with the errors e. The twist of the tool is S e
    with S = T_e - T_v f_v⁻¹ f_e, where T_e, T_v, f_e and f_v are derivatives of the tool's pose and of f
    by errors and velocities. The worst error along d is Σ |d·sᵢ| tᵢ over errors in ±tᵢ (sᵢ is column i of
    S), plus Σ r ‖Sᵀ d‖ over joint centers in balls of radius r. The redundant loops of over-constrained
    machines couple the errors: M e = 0. Then the worst error is the maximum over these errors, by linear
    programming.

    `second_order` measures the nonlinearity: it compares with Newton's solution for the worst errors.
    `remainder` is a proof: interval arithmetic bounds the nonlinear terms for all errors within the
    tolerances.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        poses: poses of the platform; by default random poses within the machine's limits. A single pose
            by names, such as ``{"x": "10 mm"}``, or rows (N, n) of its independent coordinates, SI.
        options: the tolerances.

    Raises:
        InputError: no tolerance is given, or a name, unit or value is wrong.
        PoseError: a pose is out of reach or singular.

    Examples:
        >>> import tauloop as tl
        >>> result = tl.tolerance_map("delta", {"z": "-0.5 m"}, tolerances={"arm_length": "0.05 mm"})
        >>> result.sources
        ('arm_length@leg1', 'arm_length@leg2', 'arm_length@leg3')
    """
    model = modeled(machine)
    options = options or ToleranceMapOptions()
    q, limit_diagnostics = map_coordinates(model, poses, options)
    stated, equations = error_sources(model, options)
    first = equations.first_order(q)
    geometric = _geometric_groups(stated, first)
    groups = (*geometric, *_elastic_groups(model, q, options))
    stated_groups = tuple(group.with_tolerances for group in groups)
    contributions = np.concatenate([group.contributions for group in stated_groups], axis=2)
    tolerances = np.concatenate([group.tolerances for group in stated_groups])
    distance, angle = worst_sizes(groups)
    second = second_order(equations, first, q, geometric)
    errors = coupling(geometric, first.mismatch, ADAPTS)
    coupled = coupled_worst(errors)
    bounds = second_order_bounds(equations, q, _largest_errors(stated), first)
    remainder = _remainder(bounds, coupled)
    worst = coupled.worst
    for group in groups[len(geometric) :]:
        worst = worst + group.contributions.sum(axis=2)
    _, position, _ = equations.value(q, np.zeros((len(q), equations.count)))
    return ToleranceMap(
        model=model,
        options=options,
        platform=model.platform_position(q),
        tool=position,
        sources=tuple(name for group in stated_groups for name in group.names),
        kinds=tuple(group.kind for group in stated_groups for _ in group.names),
        units=tuple(unit for group in stated_groups for unit in group.units),
        tolerances=tolerances,
        contributions=contributions,
        worst=worst,
        root_sum_square=np.linalg.norm(contributions, axis=2),
        worst_distance=distance,
        worst_angle=angle,
        second_order=second.twist,
        remainder=remainder,
        notes=tuple(_notes(model, equations, q)),
        diagnostics=(
            *_diagnostics(model, worst, second),
            *_fit_diagnostics(model, errors, bounds, worst),
            diagnostic(
                "poses without a proven bound on the errors",
                int(np.isnan(remainder).any(axis=1).sum()),
            ),
            *limit_diagnostics,
            *omission_diagnostics(model.mechanism),
        ),
        provenance=provenance(
            options={"seed": options.seed},
            inputs={"machine": model.mechanism.name, "poses": len(q)},
        ),
    )


def map_coordinates(
    model: Model, poses: PoseInput, options: ToleranceMapOptions
) -> tuple[Array, tuple[Diagnostic, ...]]:
    """Return the coordinates (N, n_q) of poses, or of random ones, and their diagnostics.

    Raises:
        PoseError: a pose is out of reach or singular.
    """
    if poses is not None:
        return machine_coordinates(model, poses)
    generator = np.random.default_rng(options.seed)
    return np.asarray(random_states(model, options.samples, generator).q), ()


def error_sources(
    model: Model, options: ToleranceMapOptions
) -> tuple[StatedTolerances, ErrorEquations]:
    """Return the tolerances of geometric sources of error, and the machine with these errors.

    Raises:
        InputError: no tolerance is given, or a name, unit or value is wrong.
    """
    stated = _stated(model.assembly.mechanism, model, options)
    return stated, ErrorEquations(model, stated.parts, tuple(stated.clearances))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StatedTolerances:
    """Tolerances by name, SI.

    Attributes:
        parts: the machine in which each part has its own parameters.
        parameters: tolerances of these parameters.
        parameter_units: units of these parameters.
        encoders: tolerances of the encoders of all actuators; zero if not stated.
        encoder_units: units of the encoders.
        clearances: radii by joint or end of a rod.
    """

    parts: PartParameters
    parameters: Array
    parameter_units: tuple[str, ...]
    encoders: Mapping[str, float]
    encoder_units: tuple[str, ...]
    clearances: Mapping[str, float]


def _stated(mechanism: Mechanism, model: Model, options: ToleranceMapOptions) -> StatedTolerances:
    """Return the tolerances by name.

    Raises:
        InputError: no tolerance is given, or a name, unit or value is wrong; the error lists all
            problems.
    """
    problems = Problems()
    candidates = geometric_candidates(mechanism)
    motors = motor_port(model.assembly, "position", "rad", "m")
    encoders = tuple(
        Candidate(name=actuator.name, unit=unit)
        for actuator, unit in zip(mechanism.actuators, motors.units, strict=True)
    )
    parameters = amounts("tolerances", options.tolerances, candidates, problems)
    readings = amounts("encoders", options.encoders, encoders, problems)
    clearances = amounts("clearances", options.clearances, joint_candidates(mechanism), problems)
    names = [candidate.name for candidate in candidates]
    for pattern in options.common:
        if not any(fnmatchcase(name, pattern) for name in names):
            remedy = suggestion(pattern, names) or f"known: {listing(names, 20)}"
            problems.add("common", f"no name matches {pattern!r}", remedy)
    has_others = options.temperatures is not None or options.wrench is not None
    if not (parameters or readings or clearances or has_others or problems):
        remedy = "give tolerances, encoders, clearances, temperatures or a wrench"
        problems.add("tolerances", "no tolerance is given", remedy)
    InputError.raise_if_any(problems)
    is_common = {name for name in names for pattern in options.common if fnmatchcase(name, pattern)}
    parts = part_parameters(mechanism, tuple(parameters), is_common)
    units = {candidate.name: candidate.unit for candidate in candidates}
    return StatedTolerances(
        parts=parts,
        parameters=np.array([parameters[owner] for owner in parts.owners.values()], dtype=float),
        parameter_units=tuple(units[owner] for owner in parts.owners.values()),
        encoders={item.name: readings.get(item.name, 0.0) for item in encoders},
        encoder_units=tuple(item.unit for item in encoders),
        clearances=clearances,
    )


def _geometric_groups(stated: StatedTolerances, first: FirstOrder) -> tuple[ErrorGroup, ...]:
    """Return the errors of parameters, encoders and joint centers, in the order of the equations."""
    count = len(stated.parts.owners)
    motors = len(stated.encoders)
    parameter_twist = first.twist[:, :, :count]
    encoder_twist = first.twist[:, :, count : count + motors]
    joint_twist = first.twist[:, :, count + motors :]
    vectors = joint_twist.reshape(len(joint_twist), 6, len(stated.clearances), 3)
    radii = np.array([*stated.clearances.values()], dtype=float)
    return (
        interval_group(
            PARAMETER,
            tuple(stated.parts.owners),
            stated.parameter_units,
            stated.parameters,
            parameter_twist,
        ),
        interval_group(
            ENCODER,
            tuple(stated.encoders),
            stated.encoder_units,
            np.array([*stated.encoders.values()], dtype=float),
            encoder_twist,
        ),
        ErrorGroup(
            kind=CLEARANCE,
            names=tuple(stated.clearances),
            units=("m",) * len(radii),
            tolerances=radii,
            effects=np.swapaxes(vectors, 1, 2),
        ),
    )


def _largest_errors(stated: StatedTolerances) -> Array:
    """Return the largest deviations of all components of geometric errors."""
    clearances = np.repeat([*stated.clearances.values()], 3)
    return np.concatenate([stated.parameters, [*stated.encoders.values()], clearances])


def _remainder(bounds: SecondOrderBounds, coupled: CoupledWorst) -> Array:
    """Return the proved bounds (N, 6) of the nonlinear terms; NaN where no bound is proved.

    If redundant loops close exactly, their first-order residual is at most the bound R of their
    nonlinear terms. With the multipliers y of the coupled errors, this adds |y|·R to the bound.
    """
    if not coupled.multipliers.any():
        return bounds.twist
    by_loops = np.einsum("ndc,nc->nd", np.abs(coupled.multipliers), bounds.loops)
    return np.asarray(bounds.twist + by_loops)


def _elastic_groups(model: Model, q: Array, options: ToleranceMapOptions) -> Iterator[ErrorGroup]:
    """Yield the errors due to temperatures and to a wrench."""
    rows = CoordinateRows(q)
    if options.temperatures is not None:
        heat = thermal_expansion(
            model, rows, ThermalExpansionOptions(temperatures=options.temperatures)
        )
        if np.isnan(heat.per_kelvin).any():
            what = "rigid parts prevent the expansion of a part alone"
            remedy = "give these parts elastic data, or omit their temperatures"
            raise InputError.of("temperatures", what, remedy)
        yield interval_group(
            HEAT, heat.parts, ("K",) * len(heat.parts), np.abs(heat.temperatures), heat.per_kelvin
        )
    if options.wrench is not None:
        wrench = np.abs(named_values(TOOL_PORT, "wrench", options.wrench, np.zeros(6)))
        compliance = stiffness(model, rows, StiffnessOptions()).compliance
        yield interval_group(WRENCH, TOOL_PORT.columns, TOOL_PORT.units, wrench, compliance)


def _notes(model: Model, equations: ErrorEquations, q: Array) -> Iterator[str]:
    """Yield notes on the assumptions about this machine."""
    assembly = model.assembly
    if assembly.passive:
        largest_motion = float(equations.passive_motion(q).max())
        text = "passive degrees of freedom are constant"
        if largest_motion > PASSIVE_MOTION:
            text += "; they move the tool, and these motions are not included in the errors"
        yield text
    if assembly.spare:
        names = listing([assembly.mechanism.actuators[i].name for i in assembly.spare])
        yield f"errors of {names} are without effect: other actuators determine the motion"


def _error_scale(model: Model, worst: Array) -> float:
    """Return the largest error of the tool, with rotations times the characteristic length, m."""
    weight = np.repeat([1.0, float(machine_constants(model).shape.length)], 3)
    return float((worst * weight).max()) or 1.0


def _diagnostics(model: Model, worst: Array, second: SecondOrder) -> Iterator[Diagnostic]:
    """Yield diagnostics of the accuracy of first-order errors."""
    length = float(machine_constants(model).shape.length)
    weight = np.repeat([1.0, length], 3)
    yield diagnostic(
        "second-order part of the errors, fraction of the largest",
        float((second.twist * weight).max()) / _error_scale(model, worst),
        at_most=MAX_SECOND_ORDER,
        advice="these tolerances are too wide for first-order errors; narrow them, or exclude poses "
        "near singularities",
    )
    yield diagnostic(
        "residual of the loops of a machine with errors, fraction of its size",
        float(second.residual.max(initial=0.0)) / length,
        at_most=MAX_LOOP_RESIDUAL,
        advice="a machine at the limits of its tolerances cannot be assembled; narrow the tolerances, "
        "or exclude poses near singularities",
    )


def _fit_diagnostics(
    model: Model, errors: ErrorCoupling, bounds: SecondOrderBounds, worst: Array
) -> Iterator[Diagnostic]:
    """Yield diagnostics: whether every machine within the tolerances can be assembled."""
    scale = _error_scale(model, worst)
    fits = assembly_fit(errors)
    yield diagnostic(
        "opening of redundant loops, fraction of the largest error",
        float(fits.opening.max(initial=0.0)) / scale,
        at_most=MAX_MISMATCH,
        advice="the machine is over-constrained: parts with these errors fit only if they deform "
        "or have clearance, which these errors of the tool do not include; state clearances",
    )
    if fits.clearance_fraction.any():
        yield diagnostic(
            "clearance that parts with errors need, fraction of the clearance",
            float(fits.clearance_fraction.max()),
            at_most=1.0,
            advice="some machines within the tolerances cannot be assembled and are excluded; widen "
            "the clearances, or narrow the tolerances",
        )
    if bounds.loops.any():
        yield diagnostic(
            "bound on the residual of redundant loops beyond first order, relative to the largest error",
            float(np.nan_to_num(bounds.loops, nan=np.inf).max()) / scale,
        )
