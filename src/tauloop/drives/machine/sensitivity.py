"""Sensitivity directions of a machine with drive lines: its parameters and initial values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tauloop.common.errors import InputError, Problems
from tauloop.compiler.functions.rates import independent_rate_program
from tauloop.drives.machine.system import MachineSystem
from tauloop.integrate.sampled import SampledRun
from tauloop.integrate.sensitivity import SensitivityDirection, by_parameter, require_known, starts
from tauloop.mechanism.expression import leaves


def machine_directions(
    system: MachineSystem, course: SampledRun, names: Sequence[str]
) -> tuple[MachineSystem, tuple[SensitivityDirection, ...]]:
    """Return the system extended by the requested parameters, and a direction for each name.

    In the parameter vector, the parameters of the machine come after those of the drive lines.

    Args:
        system: machine and lines.
        course: inputs of a run of the system.
        names: names of parameters and of initial values with respect to which to differentiate.

    Raises:
        InputError: unknown names, encoders with a resolution, or parameters on which ratios or the
            sample time depend.
    """
    ports, table = system.plant.platform.ports, system.plant.mechanism.parameters
    own, problems = system.parameters.names, Problems()
    free = [name for name in names if name in table.names]
    size = len(own) + len(free)
    known = starts((ports.position, ports.velocity), len(course.y), size)
    require_known(names, (*known, *own, *table.names))
    for item in system.lines:
        line = item.line
        for encoder in line.encoders:
            if encoder.resolution is not None:
                what = "has a resolution, so the torque jumps at each count and has no derivative"
                place = f"{line.name}.drive.encoders.{encoder.name}"
                problems.add(place, what, "remove the resolution")
        fixed = [
            *line.ratios().values(),
            *([] if line.control.sample_time is None else [line.control.sample_time]),
        ]
        for name in sorted(set(names) & set().union(*map(leaves, fixed))):
            what = (
                f"changes ratios or the sample time of {line.name}, and with them the reference and "
                "the start"
            )
            problems.add(name, what, "use finite differences of runs")
    InputError.raise_if_any(problems)
    for name in {*own, *free}:
        parameter = system.parameters[name] if name in own else table[name]
        places = [own.index(name)] if name in own else []
        places += [len(own) + free.index(name)] if name in free else []
        row = np.zeros(size)
        row[places] = 1.0
        value = float(course.p[own.index(name)]) if name in own else None
        known[name] = by_parameter(parameter, np.zeros(len(course.y)), row, value)
    plant = system.plant.with_free_parameters(free)
    rate = independent_rate_program(
        plant.assembly, plant.platform.ports, plant.formulation, free=plant.free
    )
    system = replace(system, plant=plant, rate=rate)
    return system, tuple(known[name] for name in names)
