"""The generated controller as an FMU, with the C text of `tauloop export controller`."""

from __future__ import annotations

import re

import casadi as ca
import numpy as np

from tauloop.compiler.c.printing.c_helpers import c_file
from tauloop.export.controller.controller import FLAGS, controller_values
from tauloop.export.controller.equations import (
    ControllerChannel,
    ControllerEquations,
    controller_equations,
)
from tauloop.export.controller.options import ControllerOptions
from tauloop.export.controller.source import (
    SAMPLE_FLAGS,
    controller_header,
    controller_source,
    memory_size,
)
from tauloop.export.fmu.plant import FmuFunctions
from tauloop.export.fmu.variables import FmuVariable, FmuVariables, parameter_variable
from tauloop.integrate.routine import Routine, own_call, straight
from tauloop.integrate.system import HybridSystem
from tauloop.model import Model

#: Types and functions that the controller's text and the FMU's text both define.
_DEFINED_TWICE = ("tl_own", "tl_data", "tl_run", "tl_healthy")
_STAMP_MEANING = "0: every sample is a new measurement; otherwise a number that changes with each new measurement"


def controller_functions(model: Model, options: ControllerOptions, name: str) -> FmuFunctions:
    """Return the FMU functions of a machine's generated controller.

    The forces are computed at each sample and held until the next sample. The controller's memory is
    part of the FMU's state.

    Args:
        model: the controller's model of the machine; its free parameters stay parameters.
        options: the law, its gains and its sampling rate.
        name: prefix of all names in the controller's text.

    Raises:
        InputError: see `controller_equations`.
    """
    equations = controller_equations(model, options)
    inputs = _inputs(equations)
    parameters = _parameters(equations)
    n_in, n_p = len(inputs), len(parameters)
    held = equations.forces.size + 1 + len(FLAGS)
    memory = 1 + memory_size(equations)
    reads = straight(
        "seen_by_control", {"p": n_p, "in": n_in}, lambda p, x: {"seen": ca.SX(ca.vertcat(p, x))}
    )
    sample = own_call(("&time", 1), ("seen", n_p + n_in), ("z", held + memory))
    outputs = straight("held_by_control", {"held": held}, lambda forces: {"rate": forces})
    restart = straight(
        "control_anew", {"p": n_p}, lambda _: {"z": ca.SX(ca.DM([0.0] * (held + memory)))}
    )
    return FmuFunctions(
        system=HybridSystem(
            states=0,
            held=held,
            kept=memory,
            inputs=n_in,
            rate=Routine(),
            sample=Routine(calls=(reads, sample), own={"seen": n_p + n_in}),
            constants=n_p,
        ),
        front=_text(equations, name),
        values=controller_values(equations),
        begin=Routine(calls=(restart,)),
        outputs=Routine(calls=(outputs,)),
        loops="the machine",
        variables=FmuVariables(parameters=parameters, inputs=inputs, outputs=_outputs(equations)),
        constants=tuple(parameter.name for parameter in parameters),
        guess=np.zeros(0),
        period=options.period,
    )


def _text(equations: ControllerEquations, name: str) -> str:
    """Return the C text of the controller with its sample function; it undefines all its macros."""
    values = controller_values(equations)
    sample = (
        c_file("tauloop.export.fmu", "controller.c")
        .replace("@NAME@", name)
        .replace("@UP@", name.upper())
    )
    files = [write(name, equations, values) for write in (controller_header, controller_source)]
    text = "\n".join([*(f"#define {word} control_{word}" for word in _DEFINED_TWICE), *files])
    defined = dict.fromkeys(re.findall(r"^ *# *define +(\w+)", text, re.MULTILINE))
    macros = [f"#define TL_FLAGS {len(FLAGS)}", "#define TL_OWN tl_control"]
    return "\n".join([text, *macros, sample, *(f"#undef {word}" for word in defined)])


def _inputs(equations: ControllerEquations) -> tuple[FmuVariable, ...]:
    """Return all inputs of a sample, except the time: the controller uses the FMU's time."""
    q = equations.model.assembly.q
    is_drive = equations.options.controller == "drive"
    starts = {"position": equations.readings(q), "reference": equations.model.platform.ports.at(q)}
    names = {
        "stamp": "{}",
        "position": "{}" if is_drive else "{}.position",
        "speed": "{}.velocity",
        "reference": "reference.{}",
        "reference_speed": "reference.{}.velocity",
        "reference_acceleration": "reference.{}.acceleration",
    }
    return tuple(
        FmuVariable(
            name=names[channel.name].format(column),
            causality="input",
            unit=unit,
            start=float(start),
            meaning=_STAMP_MEANING if channel.name == "stamp" else "",
        )
        for channel in equations.inputs
        if channel.name != "time"
        for column, unit, start in zip(
            channel.columns,
            channel.units,
            starts.get(channel.name, np.zeros(channel.size)),
            strict=True,
        )
    )


def _parameters(equations: ControllerEquations) -> tuple[FmuVariable, ...]:
    """Return all parameters in order; the machine's parameters are named as in its file."""
    defaults = iter(equations.defaults.tolist())
    return tuple(
        _parameter(channel, column, unit, next(defaults), equations)
        for channel in equations.parameters
        for column, unit in zip(channel.columns, channel.units, strict=True)
    )


def _parameter(
    channel: ControllerChannel, column: str, unit: str, value: float, equations: ControllerEquations
) -> FmuVariable:
    """Return the variable of a parameter: of the machine, or a gain or limit of the controller."""
    if channel.name == "machine":
        return parameter_variable(equations.model.mechanism.parameters[column])
    return FmuVariable(
        name=column if channel.columns == (channel.name,) else f"{channel.name}.{column}",
        causality="parameter",
        variability="tunable",
        unit="1" if " or " in unit else unit,
        start=value,
        least=0.0,
        nominal=value or None,
        meaning=channel.meaning,
    )


def _outputs(equations: ControllerEquations) -> tuple[FmuVariable, ...]:
    """Return the forces of the actuators (or torques of the motors), and the flags.

    The variable `flags` is the sum of all flags, and each flag is also a variable.
    """
    suffix = "torque_asked" if equations.options.controller == "drive" else "force"
    forces = zip(equations.forces.columns, equations.forces.units, strict=True)
    flags = (
        FmuVariable(name=f"flag.{name.lower()}", meaning=SAMPLE_FLAGS[name][1]) for name in FLAGS
    )
    return (
        *(FmuVariable(name=f"{column}.{suffix}", unit=unit) for column, unit in forces),
        FmuVariable(name="flags", meaning="sum of the bits of all flags; 0 if none is set"),
        *flags,
    )
