"""Functions of an actuator map as C, in double and in single precision, with a test program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tauloop.compiler.c.calling.signature import CPort
from tauloop.compiler.c.printing import single
from tauloop.compiler.c.printing.source import CFunction
from tauloop.compiler.limits import CONVERGED, SMALLEST_PIVOT
from tauloop.compiler.program import Program
from tauloop.dynamics import ActuatorMap
from tauloop.export.c.export import TEST_SAMPLES, Export, ExportOptions, finished_export
from tauloop.export.c.export_texts import Case, HeaderNotes
from tauloop.export.c.single_accuracy import SingleAccuracy, single_accuracy

#: Number of states at which single precision is compared with double.
ACCURACY_SAMPLES = 400
#: Fraction of the joints' ranges from which test states are drawn. Near the limits, the mechanism may
#: not close.
TEST_RANGE = 0.9
_STATUS_TEXT = """\
/* Status of a sample of {stem}: read it after every call. Values with a status above 0 are not valid. */
#ifndef {guard}_STATUS_H
#define {guard}_STATUS_H

enum {stem}_status {{
    {guard}_SUCCESS = 0,
    {guard}_UNREACHABLE = 3,   /* the loops cannot close, or a number is not finite */
    {guard}_NOT_CONVERGED = 4, /* Newton's method found no position */
    {guard}_SINGULAR = 5,      /* velocities or efforts are not determined */
    {guard}_OTHER_MODE = 6     /* a singular pose lies between this pose and the reference pose */
}};

/* `health` and `mode` are the outputs of {stem}_joint_to_actuator or {stem}_actuator_to_joint. */
static inline int {stem}_status({real} const health[4], {real} const mode[1])
{{
    if (!(health[0] >= {zero}))
        return {guard}_UNREACHABLE;
    if (!(health[2] < {converged}))
        return {guard}_NOT_CONVERGED;
    if (!(health[1] > {pivot}))
        return {guard}_SINGULAR;
    return mode[0] > {zero} ? {guard}_SUCCESS : {guard}_OTHER_MODE;
}}

#endif
"""


def c_export(
    actuator_map: ActuatorMap, stem: str, source: Mapping[str, object], *, precision: str, seed: int
) -> Export:
    """Return source, header, status, test program and manifest of the map's functions.

    Args:
        actuator_map: the map.
        stem: prefix of every name.
        source: description of the machine and its names, for the manifest.
        precision: "double" or "single".
        seed: seed of the states of the test program.

    Raises:
        EngineError: single precision needs a C compiler, and none was found.
    """
    is_single = precision == "single"
    samples = _samples(actuator_map, TEST_SAMPLES, np.random.default_rng(seed), is_single=is_single)
    cases = [
        _case(function, meaning, samples)
        for function, meaning in _functions(actuator_map, stem, is_single=is_single)
    ]
    mechanism = actuator_map.model.mechanism
    notes = HeaderNotes(
        made_from=f"the machine {mechanism.name!r}",
        description=mechanism.description,
        given="the joints or the motors",
        baked_in=list(mechanism.parameters),
    )
    accuracy = _accuracy(actuator_map, cases, seed) if is_single else None
    options = ExportOptions(precision=precision)
    export = finished_export(stem, cases, notes, source, None, options=options, accuracy=accuracy)
    status = _STATUS_TEXT.format(
        stem=stem,
        guard=stem.upper(),
        real="float" if is_single else "double",
        zero="0.0f" if is_single else "0.0",
        converged=f"{single.CONVERGED}f" if is_single else repr(CONVERGED),
        pivot=f"{single.SMALLEST_PIVOT}f" if is_single else repr(SMALLEST_PIVOT),
    )
    return replace(export, files={**export.files, f"{stem}_status.h": status})


def _functions(
    actuator_map: ActuatorMap, stem: str, *, is_single: bool
) -> list[tuple[CFunction, str]]:
    """Return the functions, each with a description."""
    ports = _ports(actuator_map)
    joint_ports = [ports[name] for name in ("joint_position", "joint_velocity", "joint_effort")]
    motor_ports = [
        ports[name] for name in ("actuator_position", "actuator_velocity", "actuator_effort")
    ]
    descriptions = (
        (
            "joint_to_actuator",
            "positions, velocities and efforts of the motors from those of the joints",
            actuator_map.to_actuators,
            _renamed(joint_ports),
            [*motor_ports, ports["jacobian"], ports["mode"]],
        ),
        (
            "actuator_to_joint",
            "positions, velocities and efforts of the joints from those of the motors",
            actuator_map.to_joints,
            _renamed(motor_ports),
            [*joint_ports, ports["jacobian"], ports["mode"]],
        ),
        (
            "reflected_inertia",
            "inertia of the motors, and of cranks and rods, in joint coordinates",
            actuator_map.inertia,
            _renamed(joint_ports[:1]),
            [ports["motor_inertia"], ports["link_inertia"]],
        ),
    )
    functions = []
    for name, meaning, program, inputs, outputs in descriptions:
        function = CFunction(
            name=f"{stem}_{name}", program=program, inputs=tuple(inputs), outputs=tuple(outputs)
        )
        if is_single:
            function = replace(
                function,
                last_step=single.SINGLE_STEP_TOLERANCE,
                max_steps=single.NEWTON_ITERATIONS,
                largest=single.LARGEST,
            )
        functions.append((function, meaning))
    return functions


def _renamed(ports: list[CPort]) -> list[CPort]:
    """Return ports of joints or motors with the names of inputs: position, velocity, effort."""
    return [replace(port, name=port.name.rpartition("_")[2]) for port in ports]


def _ports(actuator_map: ActuatorMap) -> dict[str, CPort]:
    """Return the ports of all functions, by name."""
    joints = actuator_map.joint_motion.ports
    motors = actuator_map.actuator_motion.ports
    ports = []
    for side, noun, entry in (("joint", "joints", joints), ("actuator", "motors", motors)):
        for name, port in (
            ("position", entry.position),
            ("velocity", entry.velocity),
            ("effort", entry.effort),
        ):
            ports.append((f"{side}_{name}", port.columns, port.units, f"{name} of the {noun}"))
    joint_units = [unit.removesuffix("/s") for unit in joints.velocity.units]
    motor_units = [unit.removesuffix("/s") for unit in motors.velocity.units]
    ports.append(
        (
            "jacobian",
            _pairs(actuator_map.actuators, actuator_map.joints),
            tuple(f"({row})/({column})" for row in motor_units for column in joint_units),
            "motor velocities per joint velocity, by rows",
        )
    )
    mode = "determinant of the Jacobian relative to the reference pose; not positive: another mode"
    ports.append(("mode", ("mode",), ("1",), mode))
    for name, meaning in (
        ("motor_inertia", "inertia that the motors add, by rows"),
        ("link_inertia", "inertia that cranks and rods add, by rows"),
    ):
        units = tuple(
            f"({effort} s^2)/({unit})" for effort in joints.effort.units for unit in joint_units
        )
        ports.append((name, _pairs(actuator_map.joints, actuator_map.joints), units, meaning))
    return {
        name: CPort(name=name, size=len(columns), columns=columns, units=units, meaning=meaning)
        for name, columns, units, meaning in ports
    }


def _pairs(rows: tuple[str, ...], columns: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of the entries of a matrix, row by row."""
    return tuple(f"{row} / {column}" for row in rows for column in columns)


def _samples(
    actuator_map: ActuatorMap, count: int, rng: np.random.Generator, *, is_single: bool
) -> dict[str, np.ndarray]:
    """Return random states of joints and motors (count, n), by port.

    With `is_single`, all numbers are exactly representable in single precision.
    """
    middle = actuator_map.joint_range.mean(axis=1)
    half = 0.5 * np.ptp(actuator_map.joint_range, axis=1)
    joints = middle + TEST_RANGE * half * rng.uniform(-1.0, 1.0, size=(64 * count, len(middle)))
    states = actuator_map.joint_to_actuator(joints)
    chosen = np.resize(np.flatnonzero(states.is_valid), count)
    samples = {
        "joint_position": joints[chosen],
        "actuator_position": states.position[chosen],
        **{
            f"{side}_{name}": rng.normal(size=(count, len(middle)))
            for side in ("joint", "actuator")
            for name in ("velocity", "effort")
        },
    }
    if is_single:
        samples = {name: array.astype(np.float32).astype(float) for name, array in samples.items()}
    return samples


def _inputs(function: CFunction, samples: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the inputs of a function at the samples."""
    side = "actuator" if function.name.endswith("actuator_to_joint") else "joint"
    return {
        port.name: np.ascontiguousarray(samples[f"{side}_{port.name}"]) for port in function.inputs
    }


def _case(function: CFunction, meaning: str, samples: Mapping[str, np.ndarray]) -> Case:
    """Return a test case: a function, inputs, and the outputs that the interpreter computes."""
    inputs = _inputs(function, samples)
    expected = _expected(function.program, inputs)
    return Case(
        function=function,
        meaning=meaning,
        inputs=inputs,
        expected={port.name: expected[port.name] for port in function.outputs},
    )


def _expected(program: Program, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the outputs of a program."""
    return program.run(inputs, len(inputs["position"]))[0]


def _accuracy(actuator_map: ActuatorMap, cases: list[Case], seed: int) -> SingleAccuracy:
    """Return the errors of single precision over the range of the joints.

    Raises:
        EngineError: no C compiler was found.
    """
    rng = np.random.default_rng(seed + 1)
    samples = _samples(actuator_map, ACCURACY_SAMPLES, rng, is_single=True)
    to_actuators, to_joints, inertia = cases
    forward = single_accuracy(
        [to_actuators.function, inertia.function], _inputs(to_actuators.function, samples)
    )
    backward = single_accuracy([to_joints.function], _inputs(to_joints.function, samples))
    return replace(
        forward,
        refused=forward.refused + backward.refused,
        outputs=(*forward.outputs, *backward.outputs),
    )
