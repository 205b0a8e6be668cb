"""Tables of a synthesis: structures, designs, motors, and neighbors of each design."""

from __future__ import annotations

from collections.abc import Iterator

from tauloop.common.counts import counted
from tauloop.design.synthesis.evaluation import UNKNOWN_VIOLATION
from tauloop.design.synthesis.workflow import (
    ExcludingRequirement,
    Synthesis,
    SynthesizedDesign,
    SynthesizedStructure,
)
from tauloop.display.pieces import Paragraph, Printed
from tauloop.display.tables import doubts, table
from tauloop.mechanism.description.units import with_usual_unit


def synthesis_tables(result: Synthesis) -> Iterator[Printed]:
    """Yield the comparison of several structures, and the designs of each."""
    if len(result.structures) > 1:
        yield _comparison(result)
    for structure in result.structures:
        yield from _structure(structure)
    yield from doubts(result)


def _comparison(result: Synthesis) -> Printed:
    names = result.structures[0].objective_names
    rows = []
    for structure in result.structures:
        first = structure.designs[0] if structure.designs else None
        objectives = [""] * len(names)
        if first is not None:
            objectives = _objective_texts(structure, first)
        if structure.exclusion is not None:
            limit = _failure(structure.exclusion)
        else:
            assert first is not None
            limit = "; ".join(first.active) or "none"
        meets = "no" if first is None else "yes"
        rows.append((structure.name, structure.machine, meets, *objectives, limit))
    note = "objectives and active limits of the first design of each structure"
    heads = ("structure", "machine", "meets the task", *names, "limit")
    return table("Structures for the task", *heads, rows=rows, note=note)


def _objective_texts(structure: SynthesizedStructure, design: SynthesizedDesign) -> list[str]:
    return [
        with_usual_unit(design.objectives[name], unit)
        for name, unit in zip(structure.objective_names, structure.objective_units, strict=True)
    ]


def _structure(structure: SynthesizedStructure) -> Iterator[Printed]:
    heading = f"{structure.name} ({structure.machine})"
    yield Paragraph(
        text=heading if structure.name != structure.machine else structure.name, tone="heading"
    )
    yield (
        f"{counted(structure.screened + structure.evaluated, 'candidate')}, "
        f"{len(structure.front)} of them not dominated"
    )
    if structure.exclusion is not None:
        yield from _exclusion(structure)
        return
    yield _designs(structure)
    if structure.note:
        yield Paragraph(text=structure.note, tone="note")
    for design in structure.designs:
        yield from _design(structure, design)


def _exclusion(structure: SynthesizedStructure) -> Iterator[Printed]:
    exclusion = structure.exclusion
    assert exclusion is not None
    yield Paragraph(text=f"no candidate meets the task: {_failure(exclusion)}", tone="failed")
    yield f"smallest violation: {exclusion.text}"
    for text in exclusion.others:
        yield Paragraph(text=f"equal violation: {text}", tone="item")
    yield table(
        "Candidate with the smallest violation",
        "variable",
        "value",
        rows=_variables(structure, exclusion.variables),
    )


def _failure(exclusion: ExcludingRequirement) -> str:
    """Return a text that states by how much a requirement fails."""
    if exclusion.violation >= UNKNOWN_VIOLATION:
        return f"{exclusion.name} cannot be computed"
    return f"{exclusion.name} fails by {100.0 * exclusion.violation:.3g} %"


def _variables(
    structure: SynthesizedStructure, values: dict[str, float]
) -> Iterator[tuple[str, str]]:
    units = dict(zip(structure.variable_names, structure.variable_units, strict=True))
    for name, value in values.items():
        yield name, with_usual_unit(value, units[name])


def _designs(structure: SynthesizedStructure) -> Printed:
    rows = []
    for design in structure.designs:
        values = [text for _, text in _variables(structure, design.variables)]
        rows.append(
            (
                design.name,
                *values,
                *_objective_texts(structure, design),
                design.machine.certificate,
            )
        )
    heads = ("design", *structure.variable_names, *structure.objective_names, "certificate")
    return table("Designs", *heads, rows=rows, note="certificate: its verdict on the box")


def _design(structure: SynthesizedStructure, design: SynthesizedDesign) -> Iterator[Printed]:
    machine = design.machine
    yield Paragraph(text=f"{structure.name}, {design.name}", tone="heading")
    for text in design.active or ("no requirement is active",):
        yield Paragraph(text=f"active: {text}" if design.active else text, tone="item")
    yield f"certificate: {machine.certificate} ({machine.note})"
    if machine.duration is not None and machine.position_error is not None:
        yield (
            f"motion of {machine.duration:.3g} s, simulated by forward dynamics to within "
            f"{1e6 * machine.position_error:.2g} um"
        )
    yield from (Paragraph(text=text, tone="doubtful") for text in machine.problems)
    if machine.motors:
        yield table(
            "Motors",
            "actuator",
            "peak force",
            "RMS force",
            "motor",
            "gear",
            "use",
            rows=[
                (
                    motor.actuator,
                    f"{motor.peak_force:.4g} {motor.unit}",
                    f"{motor.rms_force:.4g} {motor.unit}",
                    motor.motor,
                    motor.gear,
                    "" if motor.use is None else f"{100.0 * motor.use:.0f} % of {motor.limited_by}",
                )
                for motor in machine.motors
            ],
        )
    units = dict(zip(structure.variable_names, structure.variable_units, strict=True))
    yield table(
        "Neighbors",
        "variable",
        "value",
        "compared with the design",
        rows=[
            (
                item.variable,
                with_usual_unit(item.value, units[item.variable]),
                item.reason,
            )
            for item in design.neighbors
        ],
    )
    if design.files:
        yield Paragraph(text=f"written: {', '.join(design.files)}", tone="note")
