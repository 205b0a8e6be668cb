"""Thermal expansion of a machine with its motors held: error of the tool, and thermal forces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import ClassVar, TypeVar

import numpy as np

from tauloop.common.datasets import channels, in_table, numbered, several
from tauloop.common.errors import InputError, PoseError, Problem, Problems, solving
from tauloop.common.files import csv_text
from tauloop.common.keywords import keywords
from tauloop.common.options import Options, option
from tauloop.common.plain import OMITTED, in_json, json_keys
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, Result, diagnostic, provenance
from tauloop.elasticity.frame.assembled import AssembledStructure, assemble
from tauloop.elasticity.frame.beams import Array
from tauloop.elasticity.frame.thermal import (
    FreeExpansion,
    ThermalResponse,
    axial_rows,
    thermal_response,
)
from tauloop.elasticity.heat.measured_temperatures import measured_temperatures
from tauloop.elasticity.machine.poses import DIRECTIONS, TWIST_UNITS, PoseInput, machine_coordinates
from tauloop.elasticity.machine.structure import MachineStructure, machine_structure
from tauloop.elasticity.static_analysis.beam_loads import beam_stress
from tauloop.equations.named_values import numbers_of
from tauloop.mechanism.description.units import EXPANSION, TEMPERATURE, Dimension, quantity
from tauloop.mechanism.elastic.beams import Beam
from tauloop.mechanism.model import BASE, Mechanism, Rod, omission_diagnostics
from tauloop.mechanism.suggestions import listing, suggestion
from tauloop.model import Model
from tauloop.model.model import MachineSource, modeled

Value = TypeVar("Value")

#: Largest error, as a fraction of the machine's size, for which linear equations are accurate.
MAX_ERROR = 0.01
#: Largest temperature rise, K, for which coefficients of expansion are constant. Absolute room
#: temperatures exceed it.
MAX_RISE = 200.0
#: Largest residual generalized force, relative to the forces of fully constrained expansion.
MAX_UNBALANCE = 1e-6
#: Note on the parts that are not heated.
REFERENCE_NOTE = (
    "motors and encoders have their reference temperature; the travel of a slide expands with its"
    " parent, and the error refers to the base's origin"
)


def temperatures_of(text: str) -> float | dict[str, float]:
    """Return a temperature difference, or one per part, from a text such as ``link=2 K,base=1``."""
    return _one_or_named("temperatures", text, TEMPERATURE)


def expansions_of(text: str) -> float | dict[str, float]:
    """Return a coefficient of expansion, or one per part, from a text such as ``base=12e-6``."""
    return _one_or_named("expansions", text, EXPANSION)


def _one_or_named(where: str, text: str, dimension: Dimension) -> float | dict[str, float]:
    """Return a number, or numbers by name, from a text; `where` names the option in errors."""
    if "=" in text:
        return numbers_of(text, where, dimension)
    return quantity(where, text, dimension)


@dataclass(frozen=True, slots=True, kw_only=True)
class ThermalExpansionOptions(Options):
    """Temperatures and coefficients of expansion.

    A name such as ``leg`` refers to the part ``leg``, or to all parts ``leg.NAME``.

    Attributes:
        temperatures: temperature of each part relative to the reference temperature, K; a number
            for all parts that have a coefficient of expansion.
        expansions: coefficients of expansion by part, 1/K, instead of the file's; or one number
            for all parts for which the file states none. The base, and bodies without beams,
            expand uniformly if they have a coefficient.
        log: table of measured temperatures instead of `temperatures`, with columns
            ``temperature.PART [K]``; a row for each pose, or all rows for one pose.

    Examples:
        >>> import tauloop as tl
        >>> tl.ThermalExpansionOptions(temperatures={"rod": "2 K"}).temperatures
        {'rod': 2.0}
    """

    temperatures: float | Mapping[str, float] = option(
        1.0, unit=TEMPERATURE, below=np.inf, read=temperatures_of, metavar="VALUES"
    )
    expansions: float | Mapping[str, float] | None = option(
        None, unit=EXPANSION, below=np.inf, read=expansions_of, metavar="VALUES"
    )
    log: Path | None = option(None, metavar="FILE")


@dataclass(frozen=True, slots=True, kw_only=True)
class ThermalExpansion(Result):
    """The thermal error of a machine's tool at N poses, with its motors held.

    Twists are small translations and rotation vectors of the tool center point, in the axes of the
    base.

    Attributes:
        model: the machine.
        options: temperatures and coefficients.
        platform: (N, n) positions of the platform.
        tool: (N, 3) tool center points, m.
        parts: names of the p parts that expand.
        expansions: (p,) coefficients of expansion, 1/K.
        temperatures: (p,) temperatures relative to the reference, K; (N, p) if they come from a log.
        per_kelvin: (N, 6, p) twist of the tool per kelvin of each part, m/K and rad/K; NaN if rigid
            parts prevent the expansion of this part alone.
        error: (N, 6) twist of the tool at these temperatures, m and rad.
        beams: names of the b elastic rods and beams.
        axial: (N, b) axial forces in the beams at these temperatures, N; tension is positive.
        moment: (N, b) largest bending moments in the beams, N m.
        stress: (N, b) largest equivalent thermal stress in the beams, Pa; NaN for composite
            sections.
        yield_safety: (N, b) safety factor: strength over stress; NaN where no strength is stated.
        unexpanded: names of the parts without a coefficient of expansion.
        notes: assumptions about this machine.
    """

    quantity_order: ClassVar[tuple[str, ...]] = (
        "pose",
        "position",
        "error",
        "per_kelvin",
        "axial",
        "moment",
        "stress",
    )
    model: Model = field(metadata=json_keys(machine="mechanism.name"))
    options: ThermalExpansionOptions = field(metadata=OMITTED)
    platform: np.ndarray = field(
        metadata=several(
            numbered("pose"),
            channels("pose", port="model.platform.ports.position", name="position"),
        )
    )
    tool: np.ndarray = field(metadata=json_keys("tool_m"))
    parts: tuple[str, ...]
    expansions: np.ndarray = field(metadata=json_keys("expansions_1_K"))
    temperatures: np.ndarray = field(metadata=json_keys("temperatures_K"))
    per_kelvin: np.ndarray = field(metadata=json_keys(nullable=True))
    error: np.ndarray = field(metadata=channels("pose", names=DIRECTIONS, units=TWIST_UNITS))
    beams: tuple[str, ...]
    axial: np.ndarray = field(
        metadata=json_keys("axial_force_N") | channels("pose", names="beams", unit="N")
    )
    moment: np.ndarray = field(
        metadata=json_keys("moment_N_m") | channels("pose", names="beams", unit="N m")
    )
    stress: np.ndarray = field(
        metadata=json_keys("stress_Pa", nullable=True) | channels("pose", names="beams", unit="Pa")
    )
    yield_safety: np.ndarray = field(metadata=json_keys(nullable=True))
    unexpanded: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    @in_json()
    def distance(self) -> np.ndarray:
        """Distance (N,) by which the tool moves at these temperatures, m."""
        return np.asarray(np.linalg.norm(self.error[:, :3], axis=1))

    @property
    @in_table(channels("pose", names="parts", unit="m/K", name="per_kelvin"))
    def distance_per_kelvin(self) -> np.ndarray:
        """Distance (N, p) by which 1 K in each part moves the tool, m/K."""
        return np.asarray(np.linalg.norm(self.per_kelvin[:, :3], axis=1))

    @property
    def worst(self) -> tuple[str, ...]:
        """Part whose temperature moves the tool farthest, for each pose.

        If all temperatures are zero, 1 K is assumed for each part. Parts whose expansion alone is
        prevented are not compared; the name is "" if this applies to all parts.
        """
        rises = self.temperatures if self.temperatures.any() else np.ones(len(self.parts))
        distances = np.linalg.norm(self.per_kelvin[:, :3], axis=1) * np.abs(rises)
        comparable = np.nan_to_num(distances, nan=-1.0)
        names: list[str] = []
        for row in comparable:
            names.append(self.parts[int(np.argmax(row))] if row.max() >= 0.0 else "")
        return tuple(names)

    def to_csv(self) -> str:
        """Return a CSV text: the tool error due to each part, per kelvin and at its temperature."""
        units = ("m",) * 3 + ("rad",) * 3
        heads = [f"{name} [{unit}/K]" for name, unit in zip(DIRECTIONS, units, strict=True)]
        heads += [f"error.{name} [{unit}]" for name, unit in zip(DIRECTIONS, units, strict=True)]
        temperatures = np.broadcast_to(self.temperatures, (len(self.tool), len(self.parts)))
        rows: list[tuple[object, ...]] = []
        for pose, (effects, rises) in enumerate(
            zip(self.per_kelvin, temperatures, strict=True), start=1
        ):
            for part, effect, rise in zip(self.parts, effects.T, rises, strict=True):
                rows.append((pose, part, float(rise), *effect.tolist(), *(rise * effect).tolist()))
        return csv_text(("pose", "part", "temperature [K]", *heads), rows)


@keywords(ThermalExpansionOptions)
@solving(PoseError)
def thermal_expansion(
    machine: MachineSource,
    poses: PoseInput = None,
    options: ThermalExpansionOptions | None = None,
) -> ThermalExpansion:
    """Return the thermal error of a machine's tool, in total and per kelvin of each part, and forces.

    The free elongation α L ΔT of a beam is equivalent to forces E A α ΔT at its ends. Temperatures
    are uniform across sections, so that heat does not bend a free beam. Motors are held, and have
    their reference temperature. A rigid body or the base with a coefficient scales as a whole; the
    travel of a slide expands with its parent. The equations are linear in the temperatures.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        poses: poses of the platform; by default the reference pose. A single pose by names, such as
            ``{"x": "10 mm"}``, or rows (N, n) of its independent coordinates, SI.
        options: temperatures and coefficients of expansion.

    Raises:
        InputError: no part has a coefficient of expansion, or an argument is wrong.
        AssemblyError: a part can move without any deformation, or rigid parts prevent the
            expansion.
        PoseError: a pose is out of reach or singular.

    Examples:
        >>> import tauloop as tl
        >>> machine = tl.loads('''
        ... format: tauloop-machine/1
        ... name: arm
        ... provenance: {status: chosen, source: example}
        ... gravity: [0, 0, -9.81 m/s^2]
        ... bodies:
        ...   arm: {beams: {tube: {from: [0, 0, 0], to: elbow,
        ...     tube: {outer: 50 mm, wall: 3 mm, material: aluminium}}}}
        ... joints:
        ...   shoulder: {type: revolute, axis: z, parent: base, child: arm}
        ... frames: {elbow: {on: arm, at: [1 m, 0, 0]}}
        ... actuators: {motor: {on: shoulder, force: 10 N m}}
        ... platform: {body: arm, tool: {at: [1 m, 0, 0]}, independent: [shoulder]}
        ... ''')
        >>> result = tl.thermal_expansion(machine, temperatures={"arm.tube": 2.0})
        >>> print(f"{result.worst[0]}: {1e6 * result.error[0, 0]:.0f} um")
        arm.tube: 46 um
    """
    model, options = modeled(machine), options or ThermalExpansionOptions()
    mechanism = model.mechanism
    q, limit_diagnostics = machine_coordinates(model, poses)
    elastic_machine = machine_structure(model, q)
    parts = tuple(_parts(mechanism, elastic_machine))
    known = _coefficients(parts, options, mechanism.file)
    heated = tuple(part for part in parts if part.name in known)
    unexpanded = tuple(part.name for part in parts if part.name not in known)
    temperatures = _temperatures(heated, unexpanded, options, mechanism.file)
    q = _repeated(q, temperatures)
    if len(q) != elastic_machine.structure.samples:
        # The log has several rows for one pose, which was repeated for each row.
        elastic_machine = machine_structure(model, q)
        parts = tuple(_parts(mechanism, elastic_machine))
    coefficients = np.array([known[part.name] for part in heated])
    response = thermal_response(
        assemble(elastic_machine.structure), _free_expansion(parts, known, len(q))
    )
    response.require_closed(temperatures)
    motion = response.point_motion(elastic_machine.tool_body, elastic_machine.tool_point)
    error = by_temperatures(motion, temperatures)
    per_kelvin = np.where(response.is_prevented, np.nan, motion)
    carriers = {part.carrier for part in parts if part.length is not None}
    beams, axial, moment = _forces(response, carriers, temperatures)
    stress, yield_safety = _stresses(elastic_machine, response, beams, temperatures)
    names = tuple(part.name for part in heated)
    return ThermalExpansion(
        model=model,
        options=options,
        platform=model.platform_position(q),
        tool=elastic_machine.tool_point,
        parts=names,
        expansions=coefficients,
        temperatures=temperatures,
        per_kelvin=per_kelvin,
        error=error,
        beams=beams,
        axial=axial,
        moment=moment,
        stress=stress,
        yield_safety=yield_safety,
        unexpanded=unexpanded,
        notes=(
            *elastic_machine.notes,
            REFERENCE_NOTE,
            *_expansion_notes(names, unexpanded, response),
        ),
        diagnostics=(
            *_diagnostics(response, error),
            *rise_diagnostics(temperatures),
            *limit_diagnostics,
            *omission_diagnostics(mechanism),
        ),
        provenance=provenance(
            options={"temperatures": options.temperatures, "expansions": options.expansions},
            inputs={"machine": mechanism.name, "poses": len(q)},
        ),
    )


def _expansion_notes(
    names: tuple[str, ...], unexpanded: tuple[str, ...], response: ThermalResponse
) -> Iterator[str]:
    """Yield notes on parts that do not expand, and on parts whose expansion is prevented."""
    if unexpanded:
        yield f"without expansion: {listing(unexpanded)}"
    if response.is_prevented.any():
        prevented = np.array(names)[response.is_prevented]
        yield f"rigid parts prevent the separate expansion of {listing(prevented)}"


def free_expansion(
    mechanism: Mechanism,
    elastic_machine: MachineStructure,
    expansions: float | Mapping[str, float] | None = None,
) -> tuple[tuple[str, ...], FreeExpansion]:
    """Return the names of the parts with a coefficient of expansion, and their free expansion.

    Args:
        mechanism: the machine.
        elastic_machine: its structure at N poses.
        expansions: see `ThermalExpansionOptions`.

    Raises:
        InputError: a name is unknown.
    """
    parts = tuple(_parts(mechanism, elastic_machine))
    if expansions is None and all(part.stated is None for part in parts):
        return (), FreeExpansion(count=0, scaling={}, elongation={})
    options = ThermalExpansionOptions(expansions=expansions)
    known = _coefficients(parts, options, mechanism.file)
    names = tuple(part.name for part in parts if part.name in known)
    return names, _free_expansion(parts, known, elastic_machine.structure.samples)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _ExpandingPart:
    """A part that can expand.

    Attributes:
        name: name of the part.
        stated: coefficient of expansion that the file states, 1/K; None if it states none.
        carrier: name of the element, rigid link or rigid body of the structure that expands.
        length: (N,) length that expands, m; None for a rigid body, which scales.
        nodes: nodes at the ends of a body's beam.
    """

    name: str
    stated: float | None
    carrier: str
    length: Array | None = None
    nodes: tuple[str, ...] = ()


def _parts(mechanism: Mechanism, elastic_machine: MachineStructure) -> Iterator[_ExpandingPart]:
    """Yield all parts that can expand: rods, beams of bodies, rigid bodies and the base."""
    structure = elastic_machine.structure
    lengths = {
        link.name: np.linalg.norm(link.points[1] - link.points[0], axis=-1)
        for link in structure.links
    }
    for element in structure.elements:
        if len(element.attachments) == 2:
            start, end = (attachment.point for attachment in element.attachments)
            lengths[element.name] = np.linalg.norm(end - start, axis=-1)
    for rod in mechanism.rods:
        carrier = rod.name if rod.name in lengths else f"{rod.name}.length"
        # A rod that is neither an element nor a rigid link has a free length.
        if carrier in lengths:
            yield from _rod_parts(mechanism, rod, carrier, lengths[carrier])
    elements = {element.name: element for element in structure.elements}
    reduced = {item.body for item in mechanism.structures}
    for body in mechanism.bodies:
        if body.name == BASE or body.name in reduced:
            continue
        for beam in body.beams:
            name = f"{body.name}.{beam.name}"
            stated = _stated_expansion(mechanism, beam.beam)
            nodes = tuple(attachment.body for attachment in elements[name].attachments)
            yield _ExpandingPart(
                name=name, stated=stated, carrier=name, length=lengths[name], nodes=nodes
            )
        if not body.beams:
            yield _ExpandingPart(name=body.name, stated=None, carrier=body.name)
    if BASE not in reduced:
        yield _ExpandingPart(name=BASE, stated=None, carrier=BASE)


def _rod_parts(
    mechanism: Mechanism, rod: Rod, carrier: str, distance: Array
) -> Iterator[_ExpandingPart]:
    """Yield the parts of a rod that expand.

    In the overlap of a telescopic rod, both parts have the same strain.
    """
    lower, upper = rod.lower_beam, rod.upper_beam
    if lower is None or upper is None:
        stated = None if lower is None else _stated_expansion(mechanism, lower)
        yield _ExpandingPart(name=rod.name, stated=stated, carrier=carrier, length=distance)
        return
    value = mechanism.value
    first, second = value(lower.length), value(upper.length)
    overlap = first + second - distance
    EA = [value(beam.segments[0].start.properties.axial_stiffness) for beam in (lower, upper)]
    for label, beam, other, stiffness in (
        ("lower", lower, second, EA[0]),
        ("upper", upper, first, EA[1]),
    ):
        yield _ExpandingPart(
            name=f"{rod.name}.{label}",
            stated=_stated_expansion(mechanism, beam),
            carrier=carrier,
            length=distance - other + overlap * stiffness / sum(EA),
        )


def _stated_expansion(mechanism: Mechanism, beam: Beam) -> float | None:
    """Return the mean coefficient of expansion of a beam; None if a section has none."""
    total = length = 0.0
    for segment in beam.segments:
        section = segment.start
        material = section.material
        expansion = section.expansion if material is None else material.expansion
        if expansion is None:
            return None
        segment_length = mechanism.value(segment.length)
        total += segment_length * mechanism.value(expansion)
        length += segment_length
    return total / length


def _named(
    where: str, values: Mapping[str, Value], parts: tuple[str, ...], problems: Problems
) -> dict[str, Value]:
    """Return values by part from values by name; unknown and repeated names become problems.

    Args:
        where: option that contains the values, for problems.
        values: values by the name of a part, or of a group of parts.
        parts: names of all parts that can expand.
        problems: receives the problems.
    """
    result: dict[str, Value] = {}
    for name, value in values.items():
        matches = [part for part in parts if part == name or part.startswith(f"{name}.")]
        if not matches:
            remedy = suggestion(name, parts) or f"choose among {listing(parts, 20)}"
            problems.add(f"{where}.{name}", "is not a part that can expand", remedy)
        for part in matches:
            if part in result:
                what = f"includes {part}, which another name also includes"
                problems.add(f"{where}.{name}", what, "give each part once")
            result[part] = value
    return result


def _coefficients(
    parts: tuple[_ExpandingPart, ...], options: ThermalExpansionOptions, file: str
) -> dict[str, float]:
    """Return the coefficients of expansion, 1/K, by part; parts without a coefficient are omitted.

    Raises:
        InputError: unknown names, or no part has a coefficient.
    """
    known = {part.name: part.stated for part in parts if part.stated is not None}
    coefficients = options.expansions
    if isinstance(coefficients, Mapping):
        problems = Problems()
        known |= _named("expansions", coefficients, tuple(part.name for part in parts), problems)
        InputError.raise_if_any(problems)
    elif coefficients is not None:
        known = {part.name: float(coefficients) for part in parts} | known
    if not known:
        what = "no part has a coefficient of expansion"
        remedy = (
            "give the sections of rods and bodies a material with an `expansion`, or set the option"
            " `expansions`, such as {'base': 12e-6}"
        )
        raise InputError.of("machine", what, remedy, file=file)
    return known


def _temperatures(
    heated: tuple[_ExpandingPart, ...],
    unexpanded: tuple[str, ...],
    options: ThermalExpansionOptions,
    file: str,
) -> Array:
    """Return the temperatures (p,) of the parts that expand, K; (N, p) from a log of N rows.

    Raises:
        InputError: unknown names, or a name whose parts have no coefficient of expansion.
    """
    temperatures: float | Mapping[str, float | Array] = options.temperatures
    if options.log is not None:
        temperatures = measured_temperatures(options.log)
    if not isinstance(temperatures, Mapping):
        return np.full(len(heated), float(temperatures))
    names = tuple(part.name for part in heated)
    problems = Problems()
    by_part = _named("temperatures", temperatures, (*names, *unexpanded), problems)
    InputError.raise_if_any(problems)
    InputError.raise_if_any(_without_expansion(temperatures, names, unexpanded, file))
    rows = np.broadcast_arrays(*(by_part.get(name, 0.0) for name in names))
    return np.stack(rows, axis=-1).astype(float)


def _without_expansion(
    temperatures: Mapping[str, object],
    names: tuple[str, ...],
    unexpanded: tuple[str, ...],
    file: str,
) -> Iterator[Problem]:
    """Yield a problem for each name whose parts have no coefficient of expansion."""
    for name in temperatures:
        if any(part == name or part.startswith(f"{name}.") for part in names):
            continue
        parts = [part for part in unexpanded if part == name or part.startswith(f"{name}.")]
        what = f"{listing(parts)} has no coefficient of expansion"
        remedy = (
            f"give its material an `expansion`, or set expansions={{{parts[0]!r}: 12e-6}} (1/K)"
        )
        yield Problem(f"temperatures.{name}", what, remedy, file=file)


def _repeated(q: Array, temperatures: Array) -> Array:
    """Return the coordinates (N, n_q) for all rows of temperatures (N, p).

    A single pose is repeated for all rows.

    Raises:
        InputError: the number of poses is neither 1 nor the number of rows.
    """
    if temperatures.ndim == 1 or len(q) == len(temperatures):
        return q
    if len(q) > 1:
        what = f"has {len(temperatures)} rows for {len(q)} poses"
        raise InputError.of("log", what, "give a row for each pose, or one pose for all rows")
    return np.repeat(q, len(temperatures), axis=0)


def by_temperatures(per_kelvin: Array, temperatures: Array) -> Array:
    """Return the total effect (N, k) of temperatures (p,) or (N, p).

    Args:
        per_kelvin: (N, k, p) effects per kelvin of each part.
        temperatures: temperatures above the reference, K.
    """
    return np.asarray((per_kelvin @ temperatures[..., None])[..., 0])


def _free_expansion(
    parts: tuple[_ExpandingPart, ...], known: Mapping[str, float], samples: int
) -> FreeExpansion:
    """Return the free expansion per kelvin of each part that has a coefficient.

    Rigid offsets from a node of a body expand with the mean coefficient of the beams at that node.

    Args:
        parts: all parts.
        known: coefficients of expansion by part, 1/K.
        samples: number of poses N.
    """
    heated = [part.name for part in parts if part.name in known]
    scaling: dict[str, Array] = {}
    elongation: dict[str, Array] = {}
    at_nodes: dict[str, list[Array]] = {}
    for part in parts:
        unit = np.zeros(len(heated))
        if part.name in known:
            unit[heated.index(part.name)] = known[part.name]
        if part.length is None:
            scaling[part.carrier] = unit
            continue
        changes = np.broadcast_to(part.length, (samples,))[:, None] * unit
        elongation[part.carrier] = elongation.get(part.carrier, 0.0) + changes
        for node in part.nodes:
            at_nodes.setdefault(node, []).append(unit)
    scaling |= {node: np.mean(units, axis=0) for node, units in at_nodes.items()}
    return FreeExpansion(count=len(heated), scaling=scaling, elongation=elongation)


def _forces(
    response: ThermalResponse, carriers: set[str], temperatures: Array
) -> tuple[tuple[str, ...], Array, Array]:
    """Return the names of b rods and beams, and axial forces and bending moments (N, b) in them.

    A beam without loads between its ends has its largest moment at one of the ends.

    Args:
        response: the heated structure.
        carriers: names of the elements that are rods and beams.
        temperatures: (p,) of the parts, K.
    """
    names, axial, moment = [], [], []
    for element in response.structure.elements:
        if element.name not in carriers:
            continue
        load = by_temperatures(response.loads[element.name], temperatures)
        start, end = axial_rows(element)
        names.append(element.name)
        axial.append(0.5 * (load[:, end] - load[:, start]))
        at_ends = [np.zeros(len(load))]
        offset = 0
        for attachment in element.attachments:
            rows = [offset + i for i, freedom in enumerate(attachment.freedoms) if freedom > 3]
            at_ends.append(np.linalg.norm(load[:, rows], axis=1))
            offset += len(attachment.freedoms)
        moment.append(np.max(at_ends, axis=0))
    shape = (response.structure.samples, 0)
    if not names:
        return (), np.zeros(shape), np.zeros(shape)
    return tuple(names), np.stack(axial, axis=1), np.stack(moment, axis=1)


def _stresses(
    elastic_machine: MachineStructure,
    response: ThermalResponse,
    names: tuple[str, ...],
    temperatures: Array,
) -> tuple[Array, Array]:
    """Return the largest equivalent thermal stress (N, b), Pa, and yield safety (N, b)."""
    elements = {element.name: element for element in response.structure.elements}
    stress = np.full((response.structure.samples, len(names)), np.nan)
    strength = np.full_like(stress, np.nan)
    for column, name in enumerate(names):
        load = by_temperatures(response.loads[name], temperatures)
        stressed = beam_stress(elastic_machine, elements[name], load[:, : elements[name].external])
        if stressed is not None:
            stress[:, column], strength[:, column] = stressed
    with np.errstate(divide="ignore"):
        safety = np.where(np.isnan(strength), np.nan, strength / stress)
    return stress, safety


def heat_loads(
    mechanism: Mechanism,
    elastic_machine: MachineStructure,
    assembled: AssembledStructure,
    options: ThermalExpansionOptions,
) -> dict[str, Array]:
    """Return the thermal loads (N, external) on the attachments of each element, by name.

    Args:
        mechanism: the machine.
        elastic_machine: its structure.
        assembled: the same in minimal coordinates.
        options: temperatures and coefficients.

    Raises:
        InputError: see `thermal_expansion`.
        AssemblyError: rigid parts prevent the expansion.
    """
    parts = tuple(_parts(mechanism, elastic_machine))
    known = _coefficients(parts, options, mechanism.file)
    heated = tuple(part for part in parts if part.name in known)
    unexpanded = tuple(part.name for part in parts if part.name not in known)
    temperatures = _temperatures(heated, unexpanded, options, mechanism.file)
    response = thermal_response(assembled, _free_expansion(parts, known, assembled.samples))
    response.require_closed(temperatures)
    return {
        element.name: by_temperatures(response.loads[element.name], temperatures)[
            :, : element.external
        ]
        for element in elastic_machine.structure.elements
    }


def _diagnostics(response: ThermalResponse, error: Array) -> Iterator[Diagnostic]:
    """Yield diagnostics of the linearity and the equilibrium."""
    yield diagnostic(
        "largest error by heat, fraction of the machine's size",
        np.linalg.norm(error[:, :3], axis=1).max() / response.structure.length,
        at_most=MAX_ERROR,
        advice="the linear equations hold only for small displacements; reduce the temperature rises, "
        "or exclude singular poses",
    )
    yield diagnostic(
        "unbalanced thermal forces as a fraction of those of fully constrained expansion",
        response.unbalance,
        at_most=MAX_UNBALANCE,
        advice="check stiffnesses that differ by many orders of magnitude",
    )


def rise_diagnostics(temperatures: Array) -> Iterator[Diagnostic]:
    """Yield a diagnostic of the largest temperature rise, which detects absolute temperatures.

    Args:
        temperatures: rises above the reference temperature, K, of any shape.
    """
    yield diagnostic(
        "largest temperature rise above the reference",
        float(np.abs(temperatures).max(initial=0.0)),
        unit="K",
        at_most=MAX_RISE,
        advice="give rises above the reference temperature, not absolute temperatures; "
        "coefficients of expansion are constant only for small rises",
    )


def stated_expansions(
    mechanism: Mechanism, elastic_machine: MachineStructure
) -> dict[str, float | None]:
    """Return the coefficient of expansion, 1/K, of each part that can expand, by name.

    It is None for parts for which the file states no coefficient.
    """
    return {part.name: part.stated for part in _parts(mechanism, elastic_machine)}


def unit_expansion(
    mechanism: Mechanism, elastic_machine: MachineStructure, names: Sequence[str]
) -> FreeExpansion:
    """Return the free expansion of parts for a unit thermal strain α ΔT = 1 of each part.

    Args:
        mechanism: the machine.
        elastic_machine: its structure.
        names: the parts that expand, in the order of `stated_expansions`.
    """
    parts = tuple(_parts(mechanism, elastic_machine))
    return _free_expansion(parts, dict.fromkeys(names, 1.0), elastic_machine.structure.samples)
