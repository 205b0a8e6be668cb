"""Arguments of all public methods of models and motions: wrong ones are refused by the argument's name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
import pytest

import tauloop as tl
from tauloop.common.errors import InputError
from tauloop.compiler.c import Interpreted
from tauloop.equations.assembly.freedoms.locks import DEFAULT_LOCKS
from tauloop.model import Payload
from tauloop.model.forces.force_sharing import ForceSharing
from tauloop.model.motion import Motion

#: A machine with cables has tensions; derivatives are for the other one.
MACHINES = ("five_bar", "cable_robot")
WITHOUT_CABLES = ("derivatives", "products", "casadi")
WITH_CABLES = ("tension_margin", "weakest_cables", "tension_terms")
#: Inputs of `derivatives` and `products` have the name that the function gives to its last one.
ALSO = {"acceleration_or_force": "acceleration"}
#: Texts that are no names of anything; where names are asked for they are named themselves.
UNKNOWN = ("x", "1", "2", "zz")


@cache
def model(name: str) -> tl.Model:
    return tl.Model(tl.load(name), evaluator=Interpreted())


def methods(name: str) -> dict[str, tuple[Callable[..., Any], dict[str, Any]]]:
    """Methods with arguments that they accept."""
    machine = model(name)
    motion, q = machine.platform, machine.assembly.q
    position, rest = motion.ports.at(q), np.zeros(motion.ports.velocity.size)
    force, acting = (
        np.zeros(len(machine.mechanism.actuators)),
        {"wrench": np.zeros(6), "payload": Payload(mass=1.0)},
    )
    placed = {"position": position, "start": q}
    moving = placed | {"velocity": rest}
    moved = moving | {"acceleration": rest}
    sharing, called = ForceSharing(), {"function": "inverse_dynamics"}
    last = called | moving | {"acceleration_or_force": rest, "sharing": sharing}
    parameter = machine.mechanism.parameters.names[0]
    arguments: dict[str, dict[str, Any]] = {
        "kinematics": moved,
        "evaluate": moved,
        "follow": placed,
        "track": placed | {"position": position[None]},
        "with_continuous_angles": {"state": motion.kinematics(position[None])},
        **dict.fromkeys(
            ("embedding", "actuator_jacobian", "platform_jacobian", "tool_jacobian"), placed
        ),
        **dict.fromkeys(("mass_matrix", "gravity", "potential_energy"), placed),
        **dict.fromkeys(("coriolis", "bias", "kinetic_energy", "tool"), moving),
        "inverse_dynamics": moved | {"sharing": sharing} | acting,
        "forward_dynamics": moving | {"force": force} | acting,
        "derivatives": last | {"wrt": "position"} | acting,
        "products": last | {"factors": force, "directions": {"position": rest}},
        "regressor": moved | {"output": "actuators"},
        "regressor_reads_start": {"output": "actuators"},
        "condition": {"q": q},
        "program": {"program": "inverse_dynamics"},
        "compiled": {"program": "inverse_dynamics", "outputs": ("force",)},
        "source_function": {"program": "inverse_dynamics", "outputs": ("force",)},
        "casadi": called | {"compiled": False},
        "weights": {"sharing": sharing},
        "tension_margin": moved | {"wrenches": [np.zeros(6)]},
        "weakest_cables": moved | {"wrenches": [np.zeros(6)]},
        "tension_terms": moved,
    }
    absent = WITH_CABLES if name == "five_bar" else WITHOUT_CABLES
    cases = {
        key: (getattr(motion, key), accepted)
        for key, accepted in arguments.items()
        if key not in absent
    }
    of_models: dict[str, dict[str, Any]] = {
        "at": {"q": q},
        "with_free_parameters": {"names": [parameter]},
        "parameter_map": {"names": [parameter]},
        "functions": {"coordinates": tl.equations.assembly.PLATFORM},
        "output_ports": {"output": "actuators"},
        "measurable_output": {"output": "actuators"},
        "platform_position": {"q": q},
        "actuator_position": {"q": q},
        "inverse_kinematics": {"position": position, "start": q},
        "forward_kinematics": {"position": machine.actuators.ports.at(q), "start": q},
    }
    cases |= {
        f"Model.{key}": (getattr(machine, key), accepted) for key, accepted in of_models.items()
    }
    settings = {
        "free": (parameter,),
        "formulation": "newton-euler",
        "evaluator": Interpreted(),
        "locks": DEFAULT_LOCKS,
    }
    return cases | {"Model": (tl.Model, {"machine": machine.mechanism} | settings)}


CASES = [(machine, method) for machine in MACHINES for method in methods(machine)]
#: Neither numbers, nor names, nor objects of Tauloop.
NOTHING: Mapping[str, object] = {
    "text": "x",
    "bytes": b"12",
    "function": len,
    "set": {1, 2},
    "mapping": {"zz": 1},
    "complex": np.array([0.1 + 1j, 0.1]),
    "masked": np.ma.masked_array([0.1, 0.2], mask=[True, True]),
    "objects": np.array([object(), object()]),
    "texts": np.array(["1", "2"]),
    "ragged": [[0.1], [0.1, 0.2]],
    "Nones": [None, None],
    "three axes": np.zeros((2, 2, 1)),
    "scalar": 0.5,
}


def refused(
    method: Callable[..., Any], arguments: Mapping[str, Any], key: str, spoiled: object
) -> None:
    with pytest.raises(InputError) as caught:
        method(**{**arguments, key: spoiled})
    places = {
        problem.where.partition("[")[0].partition(".")[0] for problem in caught.value.problems
    }
    assert places & {key, ALSO.get(key, key), *UNKNOWN}, (key, spoiled, caught.value)
    assert all(problem.remedy for problem in caught.value.problems)


@pytest.mark.parametrize(
    ("machine", "name"), CASES, ids=[f"{machine}-{name}" for machine, name in CASES]
)
def test_what_an_argument_cannot_be_is_refused_by_its_name(machine: str, name: str) -> None:
    method, arguments = methods(machine)[name]
    method(**arguments)
    for key in arguments:
        for spoiled in NOTHING.values():
            # text is the name of a machine
            if key != "machine" or not isinstance(spoiled, str):
                refused(method, arguments, key, spoiled)


@pytest.mark.parametrize(
    ("machine", "name"), CASES, ids=[f"{machine}-{name}" for machine, name in CASES]
)
def test_arrays_of_other_shapes_and_without_numbers_are_refused_by_name(
    machine: str, name: str
) -> None:
    method, arguments = methods(machine)[name]
    arrays = {
        key: accepted for key, accepted in arguments.items() if isinstance(accepted, np.ndarray)
    }
    for key, accepted in arrays.items():
        count = accepted.shape[-1]
        wrong = [
            np.zeros(count + 1),
            np.zeros((3, count + 1)),
            np.zeros((2, 0)),
            np.array(0.5),
            [0.1] * (count + 3),
        ]
        # samples that were not reached have NaN
        if name not in ("Model.platform_position", "Model.actuator_position"):
            wrong += [np.full(count, np.nan), np.full((2, count), np.inf), [np.nan] * count]
        for spoiled in wrong:
            refused(method, arguments, key, spoiled)


@pytest.mark.parametrize(
    "name", ["kinematics", "evaluate", "inverse_dynamics", "tool", "condition", "Model.at"]
)
def test_a_missing_position_is_refused_by_name(name: str) -> None:
    method, arguments = methods("five_bar")[name]
    refused(method, arguments, next(iter(arguments)), None)


def test_every_public_method_of_motions_is_tested() -> None:
    public = {
        name
        for name, _ in inspect.getmembers(Motion, inspect.isfunction)
        if not name.startswith("_")
    }
    of_other_packages, inner = {"as_jax", "as_torch"}, {"forces"}
    of_machines_with_outputs = {"outputs"}  # tests/mechanism/test_outputs.py
    assert public - of_machines_with_outputs - of_other_packages - inner <= {
        name for _, name in CASES
    }


def test_conditions_of_one_pose_and_of_many() -> None:
    machine = model("five_bar")
    q = machine.assembly.q
    single = machine.platform.condition(q)
    assert single.shape == (1,)
    assert np.array_equal(machine.platform.condition(np.stack([q, q])), np.repeat(single, 2))
