"""Axial forces, stress and buckling of the beams of a machine."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tauloop.common.records import dataclass
from tauloop.elasticity.frame.assembled import AssembledStructure
from tauloop.elasticity.frame.beams import Array
from tauloop.elasticity.frame.reduction import BALL
from tauloop.elasticity.frame.statics import (
    axial_forces,
    buckling_factors,
    rod_buckling_load,
    section_loads,
)
from tauloop.elasticity.frame.structure import Element
from tauloop.elasticity.machine.beams import equivalent_stress
from tauloop.elasticity.machine.structure import MachineStructure


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BeamLoads:
    """Loads of the b beams of a machine at N poses; for the attributes see `Stiffness`."""

    names: tuple[str, ...]
    axial: Array
    stress: Array
    yield_safety: Array
    buckling_safety: Array
    load_factor: Array


def beam_stress(
    elastic_machine: MachineStructure, element: Element, load: Array, gravity: Array | None = None
) -> tuple[Array, Array] | None:
    """Return the largest equivalent stress (N,) in a beam, and the strength at its section, Pa.

    The result is None for elements without sections, and for composite sections.

    Args:
        elastic_machine: the machine.
        element: a beam or another element.
        load: (N, external) loads on its attachments, see `end_loads`.
        gravity: (3,) acceleration in the axes of the base, m/s^2; None to neglect the weight.
    """
    section = elastic_machine.strengths.get(element.name)
    if element.beam is None or section is None:
        return None
    index = element.beam.segment_index
    pieces = np.append(index, index[-1])
    values = equivalent_stress(section, section_loads(element, load, gravity), pieces)
    worst = np.argmax(values / section.strength[pieces], axis=-1)
    return values.max(axis=-1), section.strength[pieces][worst]


def beam_loads(
    elastic_machine: MachineStructure,
    assembled: AssembledStructure,
    at_ends: Mapping[str, Array],
    gravity: Array,
    geometric: Array,
) -> BeamLoads:
    """Return axial forces, stresses and safety factors of all beams.

    Args:
        elastic_machine: the machine.
        assembled: its structure in minimal coordinates.
        at_ends: (N, external) loads on the attachments of each element, see `end_loads`.
        gravity: (3,) acceleration in the axes of the base, m/s^2.
        geometric: (N, n, n) geometric stiffness due to all loads.
    """
    axial = axial_forces(assembled, at_ends)
    elements = [element for element in elastic_machine.structure.elements if element.name in axial]
    shape = (assembled.samples, len(elements))
    forces, stress, strength, euler = (np.full(shape, np.nan) for _ in range(4))
    for column, element in enumerate(elements):
        force = np.broadcast_to(axial[element.name], shape[:1])
        forces[:, column] = force
        beam = element.beam
        if beam is not None and not set(BALL) & {*beam.start, *beam.end}:
            euler[:, column] = rod_buckling_load(element)
        stress_and_strength = beam_stress(elastic_machine, element, at_ends[element.name], gravity)
        if stress_and_strength is not None:
            stress[:, column], strength[:, column] = stress_and_strength
    compression = np.maximum(-forces, 0.0)
    with np.errstate(divide="ignore"):
        yield_safety = np.where(np.isnan(strength), np.nan, strength / stress)
        buckling_safety = np.where(np.isnan(euler), np.nan, euler / compression)
    # The structure has no bending coordinates for rods with ball joints, so that it does not
    # contain their buckling.
    single = buckling_safety.min(axis=1, initial=np.inf, where=~np.isnan(euler))
    load_factor = np.minimum(single, buckling_factors(assembled, geometric)[:, 0])
    return BeamLoads(
        names=tuple(element.name for element in elements),
        axial=forces,
        stress=stress,
        yield_safety=yield_safety,
        buckling_safety=buckling_safety,
        load_factor=load_factor,
    )
