"""The control law of a drive line as C, with the rates of its states."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import casadi as ca
import numpy as np

from tauloop.common.errors import InputError
from tauloop.compiler.c.calling.signature import CPort
from tauloop.compiler.c.printing.source import CFunction, c_name
from tauloop.compiler.program import Evaluate, Program
from tauloop.drives.equations.control import control_law
from tauloop.drives.equations.switches import Direct
from tauloop.equations.values import BatchFunction, Values
from tauloop.export.c.export import Export, finished_export
from tauloop.export.c.export_texts import Case, HeaderNotes
from tauloop.mechanism.drive_line import Control, DriveLine, LineInertia
from tauloop.mechanism.expression import leaves
from tauloop.mechanism.suggestions import unknown_names

#: Number of samples in the test program.
TEST_SAMPLES = 8
#: Size of the steps in the test program, m or rad.
TEST_STEP = 0.1


def export_control(
    line: DriveLine,
    parameters: Mapping[str, float] | None = None,
    *,
    name: str | None = None,
    folder: str | Path | None = None,
) -> Export:
    """Export a drive line's control law as C, with the same files as `export_c`.

    The function is torque, loop_rate = control(reference, before, position, speed, loop). `before`
    is the reference before its last step. `speed` is an input only if there is a speed loop. `loop`
    contains the states of the loops, which start at zero; the caller adds loop_rate times the
    sample time to them. With a derivative part, the sample time must be well below T_d / N, the
    time constant of the derivative filter.

    Args:
        line: the drive line.
        parameters: values of parameters that replace those of the file, by name, SI.
        name: first part of all C names; default: the line's name followed by `_control`.
        folder: folder for the files; without it the result only has the texts.

    Returns:
        The exported files with the accuracy of their functions.

    Raises:
        InputError: a parameter is unknown, the name cannot be turned into a C identifier, or the
            folder cannot be written.
    """
    parameters = parameters or {}
    InputError.raise_if_any(
        unknown_names(parameters, line.parameters.names, "not a parameter of the drive line")
    )
    values = line.parameters.values | dict(parameters)
    states = _loop_states(line.control)
    ports = _input_ports(line, states)
    program, outputs = _control_program(line, values, ports, states)
    stem = c_name(f"{line.name}_control" if name is None else name)
    inputs = _samples(ports)
    case = Case(
        function=CFunction(
            name=stem,
            program=program,
            inputs=tuple(ports.values()),
            outputs=tuple(outputs.values()),
        ),
        meaning="requested motor torques, and rates of the loops' states",
        inputs=inputs,
        expected=program.run(inputs, TEST_SAMPLES)[0],
    )
    notes = HeaderNotes(
        made_from=f"the drive line {line.name!r}",
        description=line.description,
        given="the reference and the measurements of the controller",
        baked_in=[
            replace(p, value=values[p.name])
            for p in line.parameters
            if p.name in leaves(line.control)
        ],
    )
    return finished_export(stem, [case], notes, {"drive": {"name": line.name}}, folder)


def _loop_states(control: Control) -> tuple[str, ...]:
    """Return the names of the states of the position and the speed loop."""
    return tuple(
        f"{loop}.{state}"
        for loop, law in (("position", control.position), ("speed", control.speed))
        for state, key in (("integral", "integral_time"), ("lag", "derivative_time"))
        if getattr(law, key, None) is not None
    )


def _input_ports(line: DriveLine, states: tuple[str, ...]) -> dict[str, CPort]:
    """Return the inputs of the control law: reference, measurements, and states of the loops."""
    control = line.control
    on = {encoder.name: line.inertia(encoder.on) for encoder in line.encoders}
    unit = _unit(on[control.encoder])
    ports = {
        "reference": _port("reference", ("reference",), unit, "reference position of the axis"),
        "before": _port("before", ("before",), unit, "the reference before its last step"),
        "position": _port("position", (control.encoder,), unit, "encoder reading"),
    }
    if control.speed is not None and control.speed_encoder is not None:
        rate = f"{_unit(on[control.speed_encoder])}/s"
        ports["speed"] = _port(
            "speed", (control.speed_encoder,), rate, "rate of the speed loop's encoder reading"
        )
    if states:
        ports["loop"] = _port("loop", states, "1", "states of the loops, zero at first")
    return ports


def _control_program(
    line: DriveLine,
    values: Mapping[str, float],
    ports: Mapping[str, CPort],
    states: tuple[str, ...],
) -> tuple[Program, dict[str, CPort]]:
    """Return the program of the control law and its outputs: torques and rates of the states."""
    symbols = {key: ca.SX.sym(key, port.size) for key, port in ports.items()}
    law = control_law(
        line.control,
        symbols["position"],
        symbols.get("speed", ca.SX(0)),
        symbols["reference"],
        symbols["before"],
        symbols.get("loop", ca.SX(0, 1)),
        Values(values),
        Direct(),
    )
    motors = {motor.name: _force(line.inertia(motor.on)) for motor in line.motors}
    torques = _port("torque", tuple(motors), "", "requested torques of the motors")
    outputs = {"torque": replace(torques, units=tuple(motors.values()))}
    results = [ca.vertcat(*(law.torques.get(motor, 0) for motor in motors))]
    if states:
        outputs["loop_rate"] = _port("loop_rate", states, "1/s", "rates of the states")
        results.append(law.rates)
    function = ca.Function(
        "control", list(symbols.values()), [ca.cse(ca.densify(item)) for item in results]
    )
    program = Program(
        name="control",
        steps=(
            Evaluate(function=BatchFunction(function), inputs=tuple(ports), outputs=tuple(outputs)),
        ),
        outputs=tuple(outputs),
        closed_forms=(),
        pivots=(),
    )
    return program, outputs


def _port(name: str, columns: tuple[str, ...], unit: str, meaning: str) -> CPort:
    return CPort(
        name=name, size=len(columns), columns=columns, units=(unit,) * len(columns), meaning=meaning
    )


def _unit(inertia: LineInertia) -> str:
    return "rad" if inertia.is_rotary else "m"


def _force(inertia: LineInertia) -> str:
    return "N m" if inertia.is_rotary else "N"


def _samples(ports: Mapping[str, CPort]) -> dict[str, np.ndarray]:
    """Return steps in both directions, with positions from far away to the reference."""
    rng = np.random.default_rng(0)
    samples = {
        key: TEST_STEP * rng.normal(size=(TEST_SAMPLES, port.size)) for key, port in ports.items()
    }
    step = samples["reference"] - samples["before"]
    remaining = np.linspace(0.0, 1.0, TEST_SAMPLES)[:, None]
    samples["position"] = samples["reference"] - remaining * step
    return {key: np.ascontiguousarray(array) for key, array in samples.items()}
