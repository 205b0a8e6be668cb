"""Wrong arguments of every public function: refused by name, never an error from inside.

Other arguments are such that a function would fail soon after it has read them, so that nothing
long runs where a check is missing.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import pytest

import tauloop as tl
from tauloop.common.keywords import keyword_arguments

FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: getattr(tl, name) for name in tl.__all__ if isinstance(getattr(tl, name), FunctionType)
}
#: A small machine, by its name.
MACHINE = "four_bar"
#: Values that no argument takes.
WRONG = (object(), 3.5j, b"text", print)
#: What else is given of required arguments: names of files that are not there, and others.
GIVEN: dict[str, object] = {
    "machine": MACHINE,
    "measurements": "missing.csv",
    "target": "missing/machine.urdf",
    "path": "missing/page.html",
    "log": "missing.csv",
    "motion": "missing.csv",
    "logs": "missing.csv",
    "connected": "missing.csv",
    "disconnected": "missing.csv",
    "folder": "missing",
    "estimates": "missing.json",
    "fit": "missing.json",
    "name_or_path": "missing.yaml",
    "text": "name: mine",
    "name": "mine",
    "source": MACHINE,
    "stations": "missing.csv",
    "study": "missing.yaml",
    "task": "missing.yaml",
    "steps": "missing.yaml",
    "results": (),
    "line": None,
    "workspace": None,
    "rated_load": 100.0,
    "options": None,
    "coupling": None,
}
#: Arguments that take any object: of formats, and of a page.
ANY = {("write_report", "results"), ("plot", "names")}
#: Options that take functions of time.
LAWS = ("force", "wrench")
#: Positions, velocities and forces of a machine with one freedom that have wrong shapes or values.
SHAPES = (
    np.zeros((2, 3, 4)),
    np.zeros(17),
    [],
    [[1.0], [1.0, 2.0]],
    ["a"],
    [np.nan],
    [np.inf],
    [1j],
    "x=abc",
    "nothing=1",
    {"nothing": 1.0},
    {"crank": None},
    {3: 1.0},
    True,
)


@cache
def checked() -> object:
    return tl.check(MACHINE)


@cache
def assembled() -> tl.Model:
    return tl.Model(MACHINE)


def required(function: Callable[..., Any]) -> dict[str, object]:
    """What is given of a function's required arguments."""
    parameters = inspect.signature(inspect.unwrap(function)).parameters.values()
    arguments = GIVEN if function is not tl.plot else {"result": checked()}
    return {
        parameter.name: arguments[parameter.name]
        for parameter in parameters
        if parameter.default is parameter.empty
        and parameter.kind is not parameter.VAR_POSITIONAL
        and not (parameter.name == "options" and getattr(function, "options_classes", ()))
    }


def own_arguments() -> Iterator[tuple[str, str]]:
    for name, function in FUNCTIONS.items():
        for argument in inspect.signature(inspect.unwrap(function)).parameters:
            if (name, argument) not in ANY:
                yield name, argument


def option_arguments() -> Iterator[tuple[str, str]]:
    for name, function in FUNCTIONS.items():
        own = inspect.signature(inspect.unwrap(function)).parameters
        for kind in getattr(function, "options_classes", ())[:1]:
            for keyword in keyword_arguments(kind):
                if keyword.name not in own:
                    yield name, keyword.name


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in an empty folder, in which no file is."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("name", "argument"), [*own_arguments()])
def test_an_argument_of_a_wrong_type_is_refused_by_name(name: str, argument: str) -> None:
    function = FUNCTIONS[name]
    others = required(function)
    if "machine" in others:
        others["machine"] = assembled()
    for value in WRONG:
        if value is print and argument in ("announce", "progress", "report", "watcher"):
            continue
        with pytest.raises(tl.TauloopError) as caught:
            function(**{**others, argument: value})
        assert argument in str(caught.value), str(caught.value)


@pytest.mark.parametrize("name", sorted({name for name, _ in option_arguments()}))
def test_options_of_wrong_types_are_refused_by_name(name: str) -> None:
    function = FUNCTIONS[name]
    arguments = [argument for other, argument in option_arguments() if other == name]
    for argument, value in itertools.product(arguments, WRONG):
        if value is print and argument in LAWS:
            continue
        with pytest.raises(tl.InputError) as caught:
            function(**{**required(function), argument: value})
        wheres = [problem.where for problem in caught.value.problems]
        assert any(where.startswith(argument) for where in wheres), (argument, value, wheres)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_misspelt_keyword_is_refused_with_what_may_have_been_meant(name: str) -> None:
    function = FUNCTIONS[name]
    for known in inspect.signature(function).parameters:
        misspelled = f"{known}q"
        with pytest.raises(tl.InputError) as caught:
            function(**{**required(function), misspelled: 1})
        problems = {problem.where: problem.remedy for problem in caught.value.problems}
        assert misspelled in problems
        assert known in problems[misspelled] or len(known) < 3


@pytest.mark.parametrize("name", FUNCTIONS)
def test_too_many_and_missing_arguments_are_refused_by_name(name: str) -> None:
    function = FUNCTIONS[name]
    parameters = inspect.signature(inspect.unwrap(function)).parameters.values()
    if all(parameter.kind is not parameter.VAR_POSITIONAL for parameter in parameters):
        with pytest.raises(tl.InputError, match="positional"):
            function(*[None] * 12)
    for argument in required(function):
        arguments = {**required(function)}
        del arguments[argument]
        with pytest.raises(tl.InputError, match=f"{argument}: is missing"):
            function(**arguments)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_swapped_arguments_are_refused(name: str) -> None:
    function = FUNCTIONS[name]
    arguments = list(required(function).values())
    if len(arguments) >= 2:
        with pytest.raises(tl.TauloopError):
            function(arguments[1], arguments[0], *arguments[2:])
    elif arguments and arguments[0] == MACHINE:
        with pytest.raises(tl.TauloopError):
            function([0.1], MACHINE)


@pytest.mark.parametrize(
    ("name", "argument"),
    [
        ("forward_kinematics", "actuators"),
        ("inverse_kinematics", "pose"),
        ("jacobian", "pose"),
        ("jacobian", "actuators"),
        ("assembly_modes", "actuators"),
        ("working_modes", "pose"),
        ("inverse_dynamics", "position"),
        ("inverse_dynamics", "velocity"),
        ("inverse_dynamics", "acceleration"),
        ("forward_dynamics", "position"),
        ("forward_dynamics", "velocity"),
        ("forward_dynamics", "force"),
        ("simulate", "pose"),
        ("simulate", "force"),
        ("plan_stroke", "start"),
        ("plan_stroke", "end"),
        ("view", "pose"),
    ],
)
def test_wrong_shapes_and_values_of_samples_are_refused_by_name(
    name: str, argument: str, model: tl.Model
) -> None:
    further = {"end": {"crank_pin": 0.6}} if name == "plan_stroke" else {}
    for value in SHAPES:
        with pytest.raises(tl.TauloopError) as caught:
            FUNCTIONS[name](model, **{**further, argument: value})
        assert argument in str(caught.value), f"{value!r}: {caught.value}"


METHODS = {
    "inverse_kinematics": 1,
    "forward_kinematics": 1,
    "inverse_dynamics": 3,
    "forward_dynamics": 3,
    "jacobian": 1,
    "tool_pose": 1,
    "mass_matrix": 1,
    "bias": 2,
    "gravity_forces": 1,
    "kinetic_energy": 2,
    "potential_energy": 1,
}


@pytest.fixture(scope="module")
def model() -> tl.Model:
    return tl.Model(MACHINE)


@pytest.mark.parametrize("name", METHODS)
def test_wrong_arguments_of_a_model_are_refused_by_name(model: tl.Model, name: str) -> None:
    method = getattr(model, name)
    names = list(inspect.signature(method).parameters)
    for place in range(METHODS[name]):
        for value in (*SHAPES, *WRONG):
            arguments: list[Any] = [[0.5]] * METHODS[name]
            arguments[place] = value
            with pytest.raises(tl.TauloopError) as caught:
                method(*arguments)
            assert names[place] in str(caught.value), f"{value!r}: {caught.value}"
    for argument in names[METHODS[name] :]:
        for value in WRONG:
            with pytest.raises(tl.TauloopError) as caught:
                method(*[[0.5]] * METHODS[name], **{argument: value})
            assert argument in str(caught.value), f"{value!r}: {caught.value}"


@pytest.mark.parametrize("value", [*WRONG, None, 3, [], {}, np.zeros(3)])
def test_what_is_not_a_machine_is_refused_everywhere(value: object) -> None:
    makers: list[Callable[[object], object]] = [tl.Model, tl.check, tl.describe, tl.dumps]
    for make in makers:
        with pytest.raises(tl.InputError, match=r"(?s)machine: .* type .*(Model|Mechanism)"):
            make(value)


@pytest.mark.parametrize("name", ["Model", *METHODS])
def test_misspelt_keywords_of_a_model_are_refused_by_name(model: tl.Model, name: str) -> None:
    method = tl.Model if name == "Model" else getattr(model, name)
    for known in inspect.signature(method).parameters:
        with pytest.raises(tl.InputError, match=rf"{known}q: is not an argument of {name}"):
            method(**{f"{known}q": 1})


@pytest.mark.parametrize("name", [name for name in tl.__all__ if name.endswith("Options")])
def test_misspelt_fields_of_options_are_refused_by_name(name: str) -> None:
    kind = getattr(tl, name)
    for known in inspect.signature(kind).parameters:
        with pytest.raises(tl.InputError, match=rf"{known}q: is not a field of {name}"):
            kind(**{f"{known}q": 1})
    with pytest.raises(tl.InputError, match="positional"):
        kind(1)
