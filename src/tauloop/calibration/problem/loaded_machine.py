"""Elastic and thermal data of a machine that is measured under loads or at temperatures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tauloop.calibration.measurements.instruments import Nuisance
from tauloop.calibration.measurements.series import Series
from tauloop.calibration.problem.unknowns import Unknown
from tauloop.common.errors import AssemblyError, InputError, Problem, Problems
from tauloop.common.records import dataclass
from tauloop.elasticity.frame.assembled import assemble
from tauloop.elasticity.frame.thermal import thermal_response
from tauloop.elasticity.heat.expansion import stated_expansions, unit_expansion
from tauloop.elasticity.machine.poses import require_elastic_data
from tauloop.elasticity.machine.structure import (
    MachineStructure,
    StructureOptions,
    machine_structure,
)
from tauloop.elasticity.static_analysis.gradients import elastic_parameters
from tauloop.mechanism.expression import ParameterTable
from tauloop.mechanism.model import Mechanism
from tauloop.mechanism.suggestions import listing, suggestion
from tauloop.model import Model

#: Options without bending modes of single rods, because these do not move the tool.
STRUCTURE_OPTIONS = StructureOptions(has_rod_modes=False)


def thermometer_offset(thermometer: str) -> str:
    """Return the name of the offset of a thermometer: temperature = reading + offset."""
    return f"thermometer.{thermometer}.offset"


def thermometer_nuisances(series: Sequence[Series]) -> tuple[Nuisance, ...]:
    """Return the offsets of all thermometers, K."""
    names = dict.fromkeys(name for item in series for name in item.thermometers)
    return tuple(Nuisance(name=thermometer_offset(name), value=0.0, unit="K") for name in names)


@dataclass(frozen=True, slots=True, kw_only=True)
class ElasticMachine:
    """Elastic and thermal data of a machine that is measured under loads or at temperatures.

    Attributes:
        elastic: parameters that affect the compliance only through the stiffness.
        expansions: coefficients of expansion by part, 1/K; None if the file does not contain one.
        parts: parts that belong to each thermometer, by the name of the thermometer.
    """

    elastic: tuple[str, ...]
    expansions: Mapping[str, float | None]
    parts: Mapping[str, tuple[str, ...]]


def elastic_machine(mechanism: Mechanism, series: Sequence[Series]) -> ElasticMachine | None:
    """Return the elastic and thermal data of a machine; None without loads and temperatures.

    Raises:
        InputError: loads act on a machine without elastic data, or a temperature belongs to a part
            that does not exist or has no coefficient of expansion.
    """
    has_loads = any(item.loads is not None for item in series)
    thermometers = tuple(dict.fromkeys(name for item in series for name in item.thermometers))
    if not has_loads and not thermometers:
        return None
    model = Model(mechanism)
    built = machine_structure(model, model.assembly.q, STRUCTURE_OPTIONS)
    if has_loads:
        try:
            require_elastic_data(mechanism, built)
        except InputError as error:
            (problem,) = error.problems
            raise InputError([replace(problem, where="load columns")]) from None
    expansions = stated_expansions(mechanism, built)
    problems = Problems()
    parts = {name: _parts_of(name, expansions, problems) for name in thermometers}
    InputError.raise_if_any(problems)
    names = tuple(dict.fromkeys(part for group in parts.values() for part in group))
    InputError.raise_if_any(_prevented_expansions(mechanism, built, names))
    return ElasticMachine(
        elastic=elastic_parameters(mechanism, built.laws) if has_loads else (),
        expansions=expansions,
        parts=parts,
    )


def _parts_of(
    name: str, expansions: Mapping[str, float | None], problems: Problems
) -> tuple[str, ...]:
    """Return the parts of a thermometer; add problems of unknown names and missing coefficients."""
    parts = [part for part in expansions if part == name or part.startswith(f"{name}.")]
    if not parts:
        remedy = suggestion(name, expansions) or f"choose among {listing(expansions, 20)}"
        what = "is not a part that can expand"
        problems.add(f"temperature.{name}", what, f"{remedy}, or remove this column")
    missing = [part for part in parts if expansions[part] is None]
    if parts and len(missing) == len(parts):
        what = f"{listing(missing)} has no coefficient of thermal expansion"
        remedy = "give its section or material an `expansion`, or remove this column"
        problems.add(f"temperature.{name}", what, remedy)
    return tuple(part for part in parts if expansions[part] is not None)


def _prevented_expansions(
    mechanism: Mechanism, built: MachineStructure, names: tuple[str, ...]
) -> list[Problem]:
    """Return a problem for each part whose expansion is prevented by rigid parts."""
    if not names:
        return []
    expansion = unit_expansion(mechanism, built, names)
    is_prevented = thermal_response(assemble(built.structure), expansion).is_prevented
    ordered = [part for part in stated_expansions(mechanism, built) if part in names]
    remedy = "give joints, rods or drives of its loops a stiffness, which allows the expansion"
    return [
        Problem(f"temperature.{name}", "rigid parts prevent the expansion of this part", remedy)
        for name, is_fixed in zip(ordered, is_prevented, strict=True)
        if is_fixed
    ]


def require_load_columns(
    unknowns: Sequence[Unknown], mechanism: Mechanism, machine: ElasticMachine | None
) -> None:
    """Check that all unknowns of stiffness and expansion affect the measurements.

    Raises:
        InputError: a stiffness is unknown but there are no loads, or a coefficient of expansion is
            unknown but the temperature of its parts is not measured.
    """
    if not any(parameter.group == "elasticity" for parameter in mechanism.parameters):
        return
    elastic_names, expansions = _known_names(mechanism)
    problems = Problems()
    loaded_names = set() if machine is None else set(machine.elastic)
    heated_parts = (
        set() if machine is None else {p for group in machine.parts.values() for p in group}
    )
    for unknown in unknowns:
        members = set(unknown.members)
        if members & elastic_names and not loaded_names:
            what = "is a stiffness or compliance, but no series has load columns: it is not identifiable"
            remedy = (
                "measure under known loads (columns load.fx ... load.mz), or do not estimate it"
            )
            problems.add(unknown.name, what, remedy)
        parts = {part for name in members for part in expansions.get(name, ())}
        if parts and not parts & heated_parts:
            what = (
                f"is the thermal expansion of {listing(parts)}, whose temperature is not measured"
            )
            remedy = f"add columns such as temperature.{min(parts)} [K], or do not estimate it"
            problems.add(unknown.name, what, remedy)
    InputError.raise_if_any(problems)


def _known_names(mechanism: Mechanism) -> tuple[set[str], dict[str, tuple[str, ...]]]:
    """Return the parameters of stiffness, and the parts affected by each parameter of expansion."""
    model = Model(mechanism)
    try:
        built = machine_structure(model, model.assembly.q, STRUCTURE_OPTIONS)
    except (InputError, AssemblyError):
        return set(), {}
    elastic = set(elastic_parameters(mechanism, built.laws))
    expansions = stated_expansions(mechanism, built)
    affected_parts: dict[str, tuple[str, ...]] = {}
    for parameter in mechanism.parameters:
        if parameter.unit != "1/K":
            continue
        name = parameter.name
        changed_expansions = stated_expansions(
            with_any_values(mechanism, {name: 2.0 * parameter.value}), built
        )
        affected_parts[name] = tuple(
            part for part, value in changed_expansions.items() if value != expansions[part]
        )
    return elastic, affected_parts


def with_any_values(mechanism: Mechanism, values: Mapping[str, float]) -> Mechanism:
    """Return the machine with other values of parameters, without a check of their bounds."""
    table = ParameterTable(
        tuple(
            replace(parameter, value=values[parameter.name])
            if parameter.name in values
            else parameter
            for parameter in mechanism.parameters
        )
    )
    return replace(mechanism, parameters=table)
