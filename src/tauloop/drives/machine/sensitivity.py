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
    line_names = system.parameters.names
    problems = Problems()
    free = [name for name in names if name in table.names]
    size = len(line_names) + len(free)
    directions = starts((ports.position, ports.velocity), len(course.y), size)
    require_known(names, (*directions, *line_names, *table.names))
    for item in system.lines:
        line = item.line
        for encoder in line.encoders:
            if encoder.resolution is not None:
                what = "has a resolution, so the torque jumps at each count and has no derivative"
                where = f"{line.name}.drive.encoders.{encoder.name}"
                problems.add(where, what, "remove the resolution")
        constants = list(line.ratios().values())
        if line.control.sample_time is not None:
            constants.append(line.control.sample_time)
        for name in sorted(set(names) & set().union(*map(leaves, constants))):
            what = (
                f"changes ratios or the sample time of {line.name}, and with them the reference and "
                "the initial state"
            )
            problems.add(name, what, "use finite differences of runs")
    InputError.raise_if_any(problems)
    for name in {*line_names, *free}:
        parameter = system.parameters[name] if name in line_names else table[name]
        value = None
        parameter_direction = np.zeros(size)
        if name in free:
            parameter_direction[len(line_names) + free.index(name)] = 1.0
        if name in line_names:
            parameter_direction[line_names.index(name)] = 1.0
            value = float(course.p[line_names.index(name)])
        directions[name] = by_parameter(
            parameter, np.zeros(len(course.y)), parameter_direction, value
        )
    plant = system.plant.with_free_parameters(free)
    rate = independent_rate_program(
        plant.assembly, plant.platform.ports, plant.formulation, free=plant.free
    )
    system = replace(system, plant=plant, rate=rate)
    return system, tuple(directions[name] for name in names)
