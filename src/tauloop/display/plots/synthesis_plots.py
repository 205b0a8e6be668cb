"""Plots of a synthesis: objectives on the Pareto front, and machines in motion."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tauloop.design.synthesis.workflow import Synthesis, SynthesizedStructure
from tauloop.display.pieces import MotionScene, Piece, Plot, PlotTrace

#: Displayed unit for an SI unit, with the factor from SI.
_DISPLAY_UNITS = {"m": ("mm", 1e3), "rad": ("deg", 180.0 / np.pi), "N/m": ("N/um", 1e-6)}


def synthesis_plots(result: Synthesis) -> Iterator[Plot]:
    """Yield the Pareto front of the first two objectives, with one trace for each structure."""
    structures = [item for item in result.structures if len(item.front) and item.front.shape[1] > 1]
    if not structures:
        return
    traces: list[PlotTrace] = []
    for structure in structures:
        order = np.argsort(structure.front[:, 0])
        traces.append(_trace(structure, structure.name, structure.front[order], "linked"))
        if structure.designs:
            objectives = [list(design.objectives.values()) for design in structure.designs]
            labels = tuple(design.name for design in structure.designs)
            traces.append(
                _trace(
                    structure, f"{structure.name}: designs", np.array(objectives), "rings", labels
                )
            )
    first = structures[0]
    names = first.objective_names
    heads = [_head(name, unit) for name, unit in zip(names, first.objective_units, strict=True)]
    yield Plot(
        title="Pareto front of the objectives",
        x=heads[0],
        y=heads[1],
        traces=tuple(traces),
    )


def synthesis_scene(result: Synthesis) -> Iterator[Piece]:
    """Yield the machine of every design in motion."""
    for structure in result.structures:
        for design in structure.designs:
            machine = design.machine
            if len(machine.time) > 1:
                yield MotionScene(
                    title=f"{structure.name}, {design.name}",
                    machine=machine.text,
                    time=tuple(map(float, machine.time)),
                    q=tuple(tuple(map(float, row)) for row in machine.poses),
                    note="; ".join(design.active),
                )


def _head(name: str, unit: str) -> str:
    display_unit, _ = _DISPLAY_UNITS.get(unit, (unit, 1.0))
    return f"{name} [{display_unit}]" if display_unit else name


def _trace(
    structure: SynthesizedStructure,
    name: str,
    points: np.ndarray,
    style: str,
    labels: tuple[str, ...] = (),
) -> PlotTrace:
    factors = [_DISPLAY_UNITS.get(unit, ("", 1.0))[1] for unit in structure.objective_units[:2]]
    x, y = (points[:, :2] * factors).T
    return PlotTrace(
        name=name, x=tuple(x.tolist()), y=tuple(y.tolist()), style=style, labels=labels
    )
