"""The control law of a drive line as C: what it measures in, torques and the rates of its states out."""

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
from tauloop.mechanism.drive_line import DriveLine, LineInertia
from tauloop.mechanism.expression import leaves
from tauloop.mechanism.suggestions import unknown_names

#: Samples that the test program holds, and the size of the steps in them, m or rad.
SAMPLES, STEP = 8, 0.1


def export_control(
    line: DriveLine,
    parameters: Mapping[str, float] | None = None,
    *,
    name: str | None = None,
    folder: str | Path | None = None,
) -> Export:
    """C source, header, test program and manifest of a drive line's control law, as `export_c` makes them.

    torque, rate = control(reference, before, position, speed, loop): `before` is the reference
    before its step, `speed` is there where a speed loop reads it, and `loop` are the states of the
    loops, zero at first. The caller adds their rates times the sample time to them; a derivative
    part asks for a sample time well below T_d / N.

    Args:
        line: the drive line.
        parameters: other values, by name, SI.
        name: first part of all names in C; the line's with `_control` without it.
        folder: where the files are written; they stay texts without it.

    Raises:
        InputError: parameters that the line does not have, a name that gives no C identifier, or a
            folder that cannot be written.
    """
    parameters = parameters or {}
    InputError.raise_if_any(
        unknown_names(parameters, line.parameters.names, "is no parameter of the drive line")
    )
    control = line.control
    values = line.parameters.values | dict(parameters)
    figures = Values(values)
    on = {encoder.name: line.inertia(encoder.on) for encoder in line.encoders}
    unit = _unit(on[control.encoder])
    ports = {
        "reference": _port("reference", ("reference",), unit, "where the axis shall be"),
        "before": _port("before", ("before",), unit, "the reference before its last step"),
        "position": _port("position", (control.encoder,), unit, "what the encoder says"),
    }
    if control.speed is not None and control.speed_encoder is not None:
        rate = f"{_unit(on[control.speed_encoder])}/s"
        ports["speed"] = _port(
            "speed", (control.speed_encoder,), rate, "rate of what the speed loop's encoder says"
        )
    states = tuple(
        f"{loop}.{part}"
        for loop, law in (("position", control.position), ("speed", control.speed))
        for part, key in (("integral", "integral_time"), ("lag", "derivative_time"))
        if getattr(law, key, None) is not None
    )
    if states:
        ports["loop"] = _port("loop", states, "1", "states of the loops, zero at first")
    symbols = {key: ca.SX.sym(key, port.size) for key, port in ports.items()}
    law = control_law(
        *(
            control,
            symbols["position"],
            symbols.get("speed", ca.SX(0)),
            symbols["reference"],
            symbols["before"],
        ),
        *(symbols.get("loop", ca.SX(0, 1)), figures, Direct()),
    )
    motors = {motor.name: _force(line.inertia(motor.on)) for motor in line.motors}
    outputs = {
        "torque": replace(
            _port("torque", tuple(motors), "", "asked of the motors"), units=tuple(motors.values())
        )
    }
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
    stem = c_name(f"{line.name}_control" if name is None else name)
    inputs = _samples(ports)
    case = Case(
        function=CFunction(
            name=stem,
            program=program,
            inputs=tuple(ports.values()),
            outputs=tuple(outputs.values()),
        ),
        meaning="torques asked of the motors, and rates of the loops' states",
        inputs=inputs,
        expected=program.run(inputs, SAMPLES)[0],
    )
    notes = HeaderNotes(
        made_from=f"the drive line {line.name!r}",
        description=line.description,
        given="what the control measures",
        baked_in=[
            replace(p, value=values[p.name])
            for p in line.parameters
            if p.name in leaves(line.control)
        ],
    )
    return finished_export(stem, [case], notes, {"drive": {"name": line.name}}, folder)


def _port(name: str, columns: tuple[str, ...], unit: str, meaning: str) -> CPort:
    return CPort(
        name=name, size=len(columns), columns=columns, units=(unit,) * len(columns), meaning=meaning
    )


def _unit(inertia: LineInertia) -> str:
    return "rad" if inertia.turns else "m"


def _force(inertia: LineInertia) -> str:
    return "N m" if inertia.turns else "N"


def _samples(ports: Mapping[str, CPort]) -> dict[str, np.ndarray]:
    """Steps in both directions, from far of the reference to near it, with states of the size of the errors."""
    rng = np.random.default_rng(0)
    samples = {key: STEP * rng.normal(size=(SAMPLES, port.size)) for key, port in ports.items()}
    way = samples["reference"] - samples["before"]
    samples["position"] = samples["reference"] - np.linspace(0.0, 1.0, SAMPLES)[:, None] * way
    return {key: np.ascontiguousarray(array) for key, array in samples.items()}
