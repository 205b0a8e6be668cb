"""The fit of encoder readings as C: a fixed number of Gauss-Newton steps, and residuals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import casadi as ca
import numpy as np

from tauloop.common.errors import InputError, Problems
from tauloop.compiler.c.calling.signature import CPort
from tauloop.compiler.c.printing.source import CFunction, c_name
from tauloop.compiler.catalogue import EMBEDDING
from tauloop.compiler.functions.rates import actuator_motion
from tauloop.compiler.program import Evaluate, Newton, Program
from tauloop.equations.values import BatchFunction
from tauloop.export.c.export import Export, finished_export
from tauloop.export.c.export_texts import Case, HeaderNotes
from tauloop.mechanism.suggestions import unknown_names
from tauloop.model import Model
from tauloop.model.c_ports import c_ports
from tauloop.model.model import MachineSource, modeled
from tauloop.model.positions.encoder_fit import MIN_REDUNDANCY
from tauloop.simulation.observers.encoders import encoder_units, sensing

#: Number of samples in the test program.
TEST_SAMPLES = 5
#: Standard deviation of the reading errors in the test program, in standard deviations of the noise.
READING_ERRORS = 3.0
#: Number of Gauss-Newton steps per sample.
GAUSS_NEWTON_STEPS = 3


def export_encoder_fit(
    machine: MachineSource,
    encoders: Sequence[str],
    *,
    noise: float | Mapping[str, float] = 1e-5,
    name: str | None = None,
    folder: str | Path | None = None,
) -> Export:
    """Export the fit of encoder readings as C, with the same files as `export_c`.

    The function is q, reading_residual, standardized, move = encoder_fit(reading, start). Like
    `fit_encoders`, it returns the coordinates q that close the loops and agree best with all
    readings. It makes three Gauss-Newton steps from the state that the actuators' encoders give.
    `start` is q of the previous sample. `move` is the largest component of the last step. It is close
    to rounding errors if the readings agree within their noise.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        encoders: names of actuators and coordinates, including all leading actuators.
        noise: standard deviation of a reading, m or rad, for all readings or by name.
        name: first part of all C names; default: the machine's name.
        folder: folder for the files; without it the result only has the texts.

    Returns:
        The exported files with the accuracy of their functions.

    Raises:
        InputError: an encoder's name is unknown, a leading actuator is missing, the machine has
            free parameters, the noise is not positive, `name` cannot be turned into a C identifier,
            or the folder cannot be written.

    Examples:
        >>> import tauloop as tl
        >>> encoders = ("motor_1", "motor_2", "platform.x")
        >>> fit = tl.export.microcontroller.export_encoder_fit(tl.load("five_bar"), encoders)
        >>> [port["name"] for port in fit.manifest["functions"][0]["outputs"]]
        ['q', 'reading_residual', 'standardized', 'move']
    """
    model, names = modeled(machine), tuple(encoders)
    deviations = _deviations(model, names, noise)
    stem = c_name(model.mechanism.name if name is None else name)
    ports, units = c_ports(model, model.actuators), encoder_units(model)
    reading_units = tuple(units[encoder] for encoder in names)
    reading = CPort(
        name="reading",
        size=len(names),
        columns=names,
        units=reading_units,
        meaning="encoder readings",
    )
    last = "largest component of the last step"
    outputs = (
        ports["q"],
        CPort(
            name="reading_residual",
            size=len(names),
            columns=names,
            units=reading_units,
            meaning="readings minus the values at q",
        ),
        CPort(
            name="standardized",
            size=len(names),
            columns=names,
            units=("1",) * len(names),
            meaning="residuals divided by their standard deviations: above 4 the encoder disagrees",
        ),
        CPort(name="move", size=1, columns=("move",), units=("m or rad",), meaning=last),
    )
    program = _program(model, names, deviations)
    inputs = _samples(model, names, deviations)
    case = Case(
        function=CFunction(
            name=f"{stem}_encoder_fit",
            program=program,
            inputs=(reading, ports["start"]),
            outputs=outputs,
        ),
        meaning="the state that agrees best with all encoders, and the residual of each",
        inputs=inputs,
        expected=program.run(inputs, TEST_SAMPLES)[0],
    )
    notes = HeaderNotes(
        made_from=f"the machine {model.mechanism.name!r}",
        description=model.mechanism.description,
        given="the readings of the encoders",
        baked_in=list(model.mechanism.parameters),
    )
    source = {
        "machine": {"name": model.mechanism.name},
        "noise": dict(zip(names, deviations.tolist(), strict=True)),
    }
    return finished_export(stem, [case], notes, source, folder)


def _deviations(
    model: Model, names: tuple[str, ...], noise: float | Mapping[str, float]
) -> np.ndarray:
    """Return the standard deviations of the readings (n_e,).

    Raises:
        InputError: see `export_encoder_fit`.
    """
    problems = Problems(
        unknown_names(names, encoder_units(model), "no actuator or coordinate {!r}", "known are {}")
    )
    for leading in model.actuators.ports.position.columns:
        if leading not in names:
            problems.add(
                "encoders",
                f"the leading actuator {leading} is missing",
                "name the encoders of all actuators",
            )
    if len(set(names)) < len(names):
        problems.add("encoders", "a name occurs twice", "name each encoder once")
    deviations = np.array(
        [noise.get(name, np.nan) if isinstance(noise, Mapping) else noise for name in names]
    )
    if model.free:
        problems.add(
            "machine", "has free parameters", "export its mechanism, with constant parameters"
        )
    if not (np.isfinite(deviations).all() and (deviations > 0).all()):
        problems.add(
            "noise",
            "is missing or not positive for an encoder",
            "give a standard deviation, m or rad",
        )
    InputError.raise_if_any(problems)
    return deviations


def _program(model: Model, names: tuple[str, ...], deviations: np.ndarray) -> Program:
    """Return the program that alternates forward kinematics, with its Jacobian G, and steps."""
    embedding, leading = model.actuators.program(EMBEDDING), model.actuators.ports.position.columns
    n, n_e = len(leading), len(names)
    reading = ca.SX.sym("reading", n_e)
    first = ca.vertcat(*(reading[names.index(column)] for column in leading))
    steps: list[Evaluate | Newton] = [
        _evaluate("begin", {"reading": reading}, {"at_0": first, "velocity": ca.SX(ca.DM.zeros(n))})
    ]
    for k in range(GAUSS_NEWTON_STEPS + 1):
        ending = f"_{k}" if k < GAUSS_NEWTON_STEPS else ""
        start = f"q_{k - 1}" if k else "start"
        steps += _renamed_steps(embedding, {"position": f"at_{k}", "start": start}, ending)
        steps.append(_step(model, names, deviations, k))
    return Program(
        name="encoder_fit",
        steps=tuple(steps),
        outputs=("q", "reading_residual", "standardized", "move"),
        closed_forms=embedding.closed_forms,
        pivots=embedding.pivots,
        linear_blocks=embedding.linear_blocks,
    )


def _renamed_steps(
    program: Program, names: Mapping[str, str], ending: str
) -> list[Evaluate | Newton]:
    """Return a program's steps with renamed inputs, and a suffix on the names of their outputs."""
    known, steps = dict(names), list[Evaluate | Newton]()
    for step in program.steps:
        assert isinstance(step, Evaluate | Newton), "kinematics has no cables to share"
        read = tuple(known.get(name, name) for name in step.inputs)
        if isinstance(step, Newton):
            known |= {
                step.solution: f"{step.solution}{ending}",
                step.pivot_values: f"{step.pivot_values}{ending}",
            }
            start = known.get(step.start, step.start)
            steps.append(replace(step, inputs=read, start=start, solution=known[step.solution]))
        else:
            known |= {name: f"{name}{ending}" for name in step.outputs}
            steps.append(
                replace(step, inputs=read, outputs=tuple(known[name] for name in step.outputs))
            )
    return steps


def _step(model: Model, names: tuple[str, ...], deviations: np.ndarray, k: int) -> Evaluate:
    """Return the step to the next actuator positions; the last step returns the residuals."""
    topology, n = model.topology, len(model.actuators.ports.velocity.columns)
    q, G = ca.SX.sym("q", topology.n_q), ca.SX.sym("G", topology.n_v * n)
    reading, position = ca.SX.sym("reading", len(names)), ca.SX.sym("at", n)
    before = ca.SX.sym("before", n)
    driven, _ = actuator_motion(model.assembly, q, ca.SX(topology.n_v, 1))
    actuators = [actuator.name for actuator in model.mechanism.actuators]
    state = [
        driven[actuators.index(name)]
        if name in actuators
        else q[topology.coordinate_names.index(name)]
        for name in names
    ]
    residual = reading - ca.vertcat(*state)
    H = ca.DM(sensing(model, names)) @ ca.reshape(G, topology.n_v, n)
    weighted = H / ca.repmat(ca.DM(deviations**2), 1, n)
    D, L, order = ca.ldl(ca.densify(weighted.T @ H))
    ending = f"_{k}" if k < GAUSS_NEWTON_STEPS else ""
    if k < GAUSS_NEWTON_STEPS:
        move = ca.ldl_solve(weighted.T @ residual, D, L, order)
        return _evaluate(
            f"fit_{k}",
            {"reading": reading, f"at_{k}": position, f"q{ending}": q, f"G{ending}": G},
            {f"at_{k + 1}": position + move},
        )
    covariance = ca.ldl_solve(ca.DM.eye(n), D, L, order)
    redundancy = ca.vertcat(
        *(
            1 - H[i, :] @ covariance @ H[i, :].T / float(deviation) ** 2
            for i, deviation in enumerate(deviations)
        )
    )
    deviation = ca.DM(deviations) * ca.sqrt(ca.fmax(redundancy, MIN_REDUNDANCY))
    return _evaluate(
        "fit",
        {"reading": reading, f"at_{k}": position, f"at_{k - 1}": before, "q": q, "G": G},
        {
            "reading_residual": residual,
            "standardized": ca.if_else(redundancy > MIN_REDUNDANCY, residual / deviation, 0),
            "move": ca.norm_inf(position - before),
        },
    )


def _evaluate(name: str, inputs: Mapping[str, ca.SX], outputs: Mapping[str, ca.SX]) -> Evaluate:
    function = ca.Function(
        name, list(inputs.values()), [ca.cse(ca.densify(item)) for item in outputs.values()]
    )
    return Evaluate(function=BatchFunction(function), inputs=tuple(inputs), outputs=tuple(outputs))


def _samples(model: Model, names: tuple[str, ...], deviations: np.ndarray) -> dict[str, np.ndarray]:
    """Return the inputs of the test program: readings with errors, near closed states."""
    rng = np.random.default_rng(0)
    q = np.resize(model.assembly.states, (TEST_SAMPLES, model.topology.n_q))
    driven = dict(
        zip((a.name for a in model.mechanism.actuators), model.actuator_position(q).T, strict=True)
    )
    columns = dict(zip(model.topology.coordinate_names, q.T, strict=True)) | driven
    exact = np.stack([columns[name] for name in names], axis=1)
    readings = exact + READING_ERRORS * deviations * rng.normal(size=exact.shape)
    return {"reading": np.ascontiguousarray(readings), "start": np.ascontiguousarray(q)}
