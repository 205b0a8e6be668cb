"""What a user sees first: the names of a package, how objects show themselves, and what a wrong name says."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from importlib import metadata
from pathlib import Path
from types import FunctionType, ModuleType

import numpy as np
import pytest
from api_pages import API_PAGES, SHOWN, index
from simulation_machines import simulated

import tauloop
from tauloop import InputError, Mechanism, Model, load
from tauloop.common.result import Result
from tauloop.common.shown import MAX_REPR_LENGTH, ReprMixin
from tauloop.identification import OrdinaryLeastSquares, RegressionData, fit_regression
from tauloop.kinematics import random_states

ROOT = Path(__file__).parents[1]
#: Every package that has public names.
PACKAGES = tuple(
    package
    for package in (
        tauloop,
        *(
            importlib.import_module(m.name)
            for m in pkgutil.walk_packages(tauloop.__path__, "tauloop.")
            if m.ispkg
        ),
    )
    if hasattr(package, "__all__")
)


def contents(root: object) -> Iterator[object]:
    """An object of Tauloop and all those that it holds."""
    waiting, seen = [root], set()
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, tuple | list | dict):
            waiting.extend(value.values() if isinstance(value, dict) else value)
        elif type(value).__module__.startswith("tauloop."):
            yield value
            slots = (
                name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())
            )
            names = {*getattr(value, "__dict__", ()), *slots}
            waiting.extend(getattr(value, name) for name in names if hasattr(value, name))


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_a_package_lists_its_public_names_and_nothing_else(package: ModuleType):
    shown = [name for name in dir(package) if not isinstance(getattr(package, name), ModuleType)]
    assert shown == sorted(package.__all__)
    assert [name for name in package.__all__ if not hasattr(package, name)] == []


def test_the_tab_key_shows_the_packages_too():
    rooms = [name for name in dir(tauloop) if isinstance(getattr(tauloop, name), ModuleType)]
    assert {"drives", "logs", "motion", "display"} <= set(rooms)
    assert all(
        getattr(tauloop, name) is importlib.import_module(f"tauloop.{name}") for name in rooms
    )
    assert not {*rooms} & {*tauloop.__all__}


def test_no_public_name_means_two_things():
    meanings: dict[str, list[object]] = {}
    for package in PACKAGES:
        for name in package.__all__:
            value, known = getattr(package, name), meanings.setdefault(name, [])
            if not any(value is other for other in known):
                known.append(value)
    assert len(meanings) > 400
    assert [name for name, known in meanings.items() if len(known) > 1] == []


def test_every_public_name_is_on_one_page_of_the_api():
    pages = [
        path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs" / "api").glob("*.md"))
    ]
    shown = [name for page in pages for name in SHOWN.findall(page)]
    counted = Counter("".join(names) for names in shown)
    public = {name for package in PACKAGES for name in package.__all__}
    assert sorted(public - counted.keys()) == []  # `python tools/api_pages.py` brings them there
    assert [name for name, count in counted.items() if count > 1] == []
    elsewhere = {"Diagnostic", "Formulation", "Result", "Status", "Tabular", "Variable"}
    # of tauloop.common.result, tauloop.common.datasets and equations.formulations
    known = public | elsewhere
    assert sorted(counted.keys() - known) == []
    # every package is on the first page
    assert (API_PAGES / "index.md").read_text(encoding="utf-8") == index()


def test_every_public_constant_says_what_it_is():
    """In a comment `#:` above it, which the API's page shows."""
    source = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    constants = {
        name
        for package in PACKAGES
        for name in package.__all__
        if not isinstance(getattr(package, name), type | FunctionType | ModuleType)
    }
    assert len(constants) > 20
    assert [
        n
        for n in sorted(constants)
        if not re.search(rf"^#: .*\n(?:\w+, )*{n}\b.* = ", source, re.MULTILINE)
    ] == []


def test_the_version_is_that_of_the_distribution():
    assert tauloop.__version__ == metadata.version("tauloop")


def test_an_unknown_name_of_a_package_is_an_error_that_python_completes():
    with pytest.raises(AttributeError, match="'tauloop' has no attribute 'laod'") as caught:
        tauloop.laod  # noqa: B018
    assert (caught.value.name, caught.value.obj) == ("laod", tauloop)


@pytest.fixture(scope="module")
def model() -> Model:
    return Model(load("delta"))


@pytest.fixture(scope="module")
def results(model: Model) -> tuple[Result, ...]:
    states = random_states(model, 200, np.random.default_rng(1))
    motion = states.position, states.velocity, states.acceleration
    data = RegressionData(
        regressor=model.platform.regressor(*motion),
        forces=model.platform.inverse_dynamics(*motion).force
        + 1e-3 * np.sin(np.arange(600.0)).reshape(200, 3),
        parameters=tuple(parameter.name for parameter in model.parameters),
        parameter_units=tuple(parameter.unit for parameter in model.parameters),
        outputs=model.output_ports("actuators")[0],
        output_units=model.output_ports("actuators")[1],
    )
    return simulated(model, 0.01), fit_regression(data, None, OrdinaryLeastSquares())


def test_everything_that_a_model_or_a_result_holds_fits_on_a_screen(
    model: Model, results: tuple[Result, ...]
):
    held = [value for root in (model, *results) for value in contents(root)]
    assert {Mechanism, Model, tauloop.Assembly} <= {type(value) for value in held}
    assert {type(value).__name__ for value in held if len(repr(value)) > MAX_REPR_LENGTH} == set()


def test_every_result_shows_itself_in_short():
    kinds = [Result]
    for kind in kinds:
        kinds.extend(kind.__subclasses__())
    assert len(kinds) > 5
    assert [kind.__name__ for kind in kinds if kind.__repr__ is not ReprMixin.__repr__] == []


def test_a_repr_names_the_numbers_and_counts_the_rest(model: Model):
    assert repr(model.mechanism).startswith("Mechanism(name='delta'")
    assert "mobility=3" in repr(model)
    assert "array(37, 6)" in repr(model.assembly)


def test_a_notebook_shows_tables_and_no_text_of_a_file_becomes_markup(
    model: Model, results: tuple[Result, ...]
):
    hostile = replace(model.mechanism, name="<script>alert(1)</script>")
    page = hostile._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    for value in (model, *results):
        assert value._repr_html_().startswith(f"<table><caption>{type(value).__name__}</caption>")


@pytest.mark.parametrize(
    ("ask", "expected"),
    [
        (lambda model: model.parameters["plate.mm"], "did you mean plate.m"),
        (lambda model: model.mechanism.parameters["arm_lenght"], "did you mean arm_length"),
        (lambda model: model.mechanism.value("arm_lenght"), "did you mean arm_length"),
        (lambda model: model.mechanism.with_values({"arm_lenght": 1.0}), "did you mean arm_length"),
        (lambda model: model.mechanism.body("plat"), "did you mean plate"),
        (lambda model: model.mechanism.joint("leg1.sholder"), "did you mean leg1.shoulder"),
        (lambda model: model.mechanism.rod("leg1.forarm"), "did you mean leg1.forearm"),
        (
            lambda model: model.forward_kinematics([0.7] * 3).coordinate("platform.X"),
            "did you mean platform.x",
        ),
        (lambda model: model.output_ports("actuator"), "did you mean actuators"),
        (lambda model: model.measurable_output("joint"), "did you mean joints"),
        (lambda model: Model(model.mechanism, free=["arm_lenght"]), "did you mean arm_length"),
        (lambda model: Model(model.assembly.q), "of type ndarray"),
    ],
)
def test_a_wrong_name_says_what_may_have_been_meant(model: Model, ask, expected: str):
    with pytest.raises(InputError, match=expected):
        ask(model)


def test_parameters_are_found_by_index_slice_and_name(model: Model):
    first = model.parameters[0]
    assert model.parameters[first.name] is first
    assert model.parameters[:1] == (first,)
    assert model.mechanism.value("arm_length") == model.mechanism.parameters["arm_length"].value


#: What a field may be written as that can hold much.
MUCH = re.compile(
    r"ndarray|Array|Mapping|dict|list|State\b|Mechanism|Assembly|Model\b|tuple\[[A-Z]"
)


def test_every_public_dataclass_that_can_hold_much_shows_itself_in_short():
    kinds = {
        value
        for package in PACKAGES
        for name in package.__all__
        if is_dataclass(value := getattr(package, name))
    }
    long = [
        kind
        for kind in kinds
        if any(
            MUCH.search(str(item.type)) and "Callable" not in str(item.type)
            for item in fields(kind)
        )
        and "reproduce" not in kind.__module__  # papers have a distribution of their own
    ]
    assert len(long) > 50
    assert [kind.__name__ for kind in long if not issubclass(kind, ReprMixin)] == []


#: Modules whose algorithm somebody else has found, or printed first.
ALGORITHMS = """
equations/assembly/nearest
calibration/judging/gauges
calibration/judging/identifiability
calibration/judging/validation
calibration/pose_selection/selection
calibration/solving/losses
drives/axis/limit_cycle
drives/machine/circle
drives/tuning/methods
drives/tuning/pareto
equations/formulations/generalized_momentum
equations/formulations/hamilton
equations/formulations/lagrange
equations/newton_euler
identification/estimation/clustered_errors
identification/estimation/error_models
identification/estimation/errors_in_variables
identification/estimation/estimators
identification/estimation/robust
identification/estimation/whiteness
identification/excitation/criteria
identification/friction/presliding
identification/parameters/cones
identification/parameters/consistency
identification/preparation/two_runs
identification/regression/base_parameters
identification/regression/data
integrate/integrators
integrate/tableau
kinematics/homotopy/paths
kinematics/homotopy/monodromy
kinematics/singularities
mechanism/drive_line
motion/excitation/fourier
motion/laws
motion/excitation/multisine
compiler/functions/extended
simulation/events
simulation/routes
""".split()
#: The one form: `Source: authors year, title`, or a paper of ours with its equations.
SOURCE = re.compile(r"^ *Source: (?:[^\n]|\n(?! *\n| *\"))*", re.M)


@pytest.mark.parametrize("module", ALGORITHMS)
def test_an_algorithm_names_its_source(module: str):
    output = SOURCE.findall((ROOT / "src" / "tauloop" / f"{module}.py").read_text(encoding="utf-8"))
    assert output
    assert [
        text
        for text in output
        if not re.search(r"\b(1[89]|20)\d\d\b|paper|\bISO \d|section|eqs?\.|as of `", text)
    ] == []
