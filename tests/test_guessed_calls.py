"""Calls that users of other libraries guess without the documentation: accepted, or refused by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import tauloop as tl
from tauloop.common.names.suggestions import PEER_NAMES
from tauloop.common.options import NamedFields

POSE = {"x": 0.01, "y": 0.0, "z": -0.5}
ROW = [0.01, 0.0, -0.5]
REST = [0.0, 0.0, 0.0]
#: The pose in an order that is not that of the machine.
SHUFFLED = {"z": -0.5, "x": 0.01, "y": 0.0}


@pytest.fixture(scope="module")
def model() -> tl.Model:
    return tl.Model("delta")


#: A row, a text, names in another order, and axes with labels in another order.
FEW_FORMS = [
    ROW,
    "x=10 mm, y=0, z=-0.5",
    SHUFFLED,
    xr.DataArray([-0.5, 0.01, 0.0], {"axis": ["z", "x", "y"]}, ["axis"]),
]
MORE_FORMS = [
    tuple(ROW),
    np.array(ROW),
    np.array(ROW, dtype=object),
    ["10 mm", 0.0, "-50 cm"],
    {"platform.z": "-500 mm", "platform.x": "1 cm", "platform.y": 0},
    pd.Series(SHUFFLED),
    pd.Series(ROW),
    pd.DataFrame([SHUFFLED]).iloc[0],
    xr.Dataset(SHUFFLED),
    xr.DataArray(ROW),
]


@pytest.mark.parametrize("pose", [*FEW_FORMS, *MORE_FORMS], ids=lambda pose: type(pose).__name__)
def test_a_pose_has_any_form_and_labels_count_more_than_the_order(
    model: tl.Model, pose: object
) -> None:
    """Oracle: the pose by its names."""
    expected = tl.inverse_kinematics(model, POSE).actuators
    assert tl.inverse_kinematics(model, pose).actuators.tolist() == expected.tolist()
    force = tl.inverse_dynamics(model, POSE, REST, REST).force
    assert tl.inverse_dynamics(model, pose=pose).force.tolist() == force.tolist()  # type: ignore[arg-type]
    assert tl.jacobian(model, pose).q.tolist() == tl.jacobian(model, POSE).q.tolist()


@pytest.mark.parametrize(
    "pose",
    [*FEW_FORMS, *(pytest.param(form, marks=pytest.mark.nightly) for form in MORE_FORMS)],
    ids=lambda pose: type(pose).__name__,
)
def test_a_start_has_any_form_as_well(model: tl.Model, pose: object) -> None:
    """In options, starts and ends, all of which are read by the same function."""
    fall = tl.simulate(model, duration=1e-3, pose=pose)  # type: ignore[arg-type]
    assert fall.to_pandas()["position.platform.x"].iloc[0] == pytest.approx(0.01, abs=1e-12)
    ends = {"start": pose, "end": {"x": 0.05}, "duration": 0.1}
    stroke = tl.plan_stroke(model, **ends).trajectory  # type: ignore[arg-type]
    assert stroke.stroke.columns == ("platform.x",)


@pytest.mark.parametrize("shuffle", [pd.DataFrame, xr.Dataset], ids=["DataFrame", "Dataset"])
def test_tables_of_many_poses_are_read_by_their_labels(
    model: tl.Model, shuffle: Callable[[Any], object]
) -> None:
    rows = np.array([ROW, [0.0, 0.02, -0.55]])
    table = {name: rows[:, "xyz".index(name)] for name in SHUFFLED}
    labeled = shuffle(table if shuffle is pd.DataFrame else {k: ("n", v) for k, v in table.items()})
    expected = model.mass_matrix(rows)
    np.testing.assert_array_equal(model.mass_matrix(labeled), expected)
    assert model.mass_matrix(pd.Series(SHUFFLED)).tolist() == expected[0].tolist()


def test_a_pose_in_millimetres_is_refused_with_the_unit_of_bare_numbers(model: tl.Model) -> None:
    with pytest.raises(tl.PoseError, match="numbers without a unit are in m and rad"):
        tl.inverse_kinematics(model, [0.0, 0.0, -500])
    with pytest.raises(tl.PoseError, match=r"back into the workspace$"):
        tl.inverse_kinematics(model, [0.0, 0.0, -0.9])


def test_labels_that_are_no_coordinates_are_refused(model: tl.Model) -> None:
    with pytest.raises(tl.InputError, match=r"unknown columns q; missing columns platform\.z"):
        model.mass_matrix(pd.Series({"x": 0.0, "y": 0.0, "q": -0.5}))
    with pytest.raises(tl.InputError, match="pose: has 2 values, needs 3"):
        tl.inverse_kinematics(model, ["1 cm", 0.0])


@pytest.mark.parametrize(
    ("call", "where", "remedy"),
    [
        (lambda m: tl.simulate(m, t_final=1.0), "t_final", "did you mean duration?"),
        (lambda m: tl.simulate(m, dt=1e-3), "dt", "did you mean fixed_step?"),
        (lambda m: tl.simulate(m, x0=ROW), "x0", "did you mean pose?"),
        (lambda m: tl.simulate(m, start=ROW), "start", "did you mean pose?"),
        (lambda m: tl.simulate(m, forces=ROW), "forces", "did you mean force?"),
        (lambda m: tl.simulate(m, method="RK45"), "method", "did you mean integrator?"),
        (lambda m: tl.plan_stroke(m, goal=ROW), "goal", "did you mean end?"),
        (lambda m: tl.plan_stroke(m, end=ROW, max_speed=1), "max_speed", "max_velocity?"),
        (lambda m: tl.forward_kinematics(m, q=REST), "q", "did you mean actuators?"),
        (lambda m: tl.inverse_kinematics(m, target=ROW), "target", "did you mean pose?"),
        (lambda m: tl.forward_dynamics(m, tau=REST), "tau", "did you mean force?"),
        (
            lambda m: tl.inverse_dynamics(m, formulation="lagrange"),
            "formulation",
            r"tauloop.Model(machine, formulation=...)?",
        ),
        (lambda m: tl.workspace(m, limits={}), "limits", "did you mean ranges?"),
        (lambda m: tl.calibrate(m, "a.csv", n_jobs=2), "n_jobs", "did you mean workers?"),
        (lambda m: tl.convert(m, "a.xml", format="mujoco"), "format", "did you mean mjcf?"),
        (lambda m: tl.identify(m, {"t": [0]}), "logs", "give a path"),
        (lambda m: tl.calibrate(m, pd.Series([0.0])), "measurements", "a path"),
        (lambda m: tl.calibrate(m, pd.DataFrame({"t": [0]})), "noise", "standard deviation"),
        (lambda _: tl.Payload(mass=1.0, com=REST), "com", "did you mean center?"),
        (lambda _: tl.Payload(0.5), "Payload", "as keyword arguments"),
        (lambda _: tl.PathOptions(), "stroke", "give stroke=..."),
        (lambda _: tl.Frame(positon=REST), "positon", "did you mean position?"),
    ],
)
def test_a_wrong_guess_is_refused_with_the_name_that_is_meant(
    model: tl.Model, call: Callable[[tl.Model], object], where: str, remedy: str
) -> None:
    with pytest.raises(tl.InputError) as refused:
        call(model)
    remedies = {problem.where: problem.remedy for problem in refused.value.problems}
    assert remedy in remedies[where]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("rnea", "inverse_dynamics"),
        ("crba", "mass_matrix"),
        ("nonlinear_effects", "bias"),
        ("frame_placement", "tool_pose"),
        ("nq", "model.topology.coordinate_names"),
        ("regressor", "model.platform.regressor"),
    ],
)
def test_attributes_of_other_libraries_are_refused_with_those_of_tauloop(
    model: tl.Model, name: str, meant: str
) -> None:
    with pytest.raises(AttributeError, match=f"'Model' object has no attribute '{name}'.*{meant}?"):
        getattr(model, name)
    if name in ("rnea", "crba"):
        with pytest.raises(AttributeError, match=f"'tauloop' has no attribute '{name}'.*{meant}"):
            getattr(tl, name)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("CalcMassMatrix", "mass_matrix"),
        ("forwardKinematics", "forward_kinematics"),
        ("computeJointJacobians", "jacobian"),
        ("GetBodyByName", "model.mechanism.body"),
        ("num_positions", "model.topology.coordinate_names"),
        ("random_configuration", "tauloop.kinematics.random_states"),
        ("dof", "model.assembly.mobility"),
        ("simulate", "tauloop.simulate"),
        ("export_c", "tauloop.export_c"),
        ("teach", "tauloop.view"),
        ("G", "gravity_forces"),
    ],
)
def test_spellings_and_functions_of_other_libraries_lead_to_those_of_tauloop(
    model: tl.Model, name: str, meant: str
) -> None:
    with pytest.raises(AttributeError) as raised:
        getattr(model, name)
    assert str(raised.value).endswith(f"has no attribute {name!r}: did you mean {meant}?")


def test_a_machine_and_the_package_name_what_computes() -> None:
    """Machines have no methods for it: functions of the package and methods of a model do."""
    machine = tl.load("delta")
    for owner, name, meant in [
        (machine, "forward_kinematics", "tauloop.forward_kinematics"),
        (machine, "computeMassMatrix", "tauloop.Model(machine).mass_matrix"),
        (tl, "mass_matrix", "tauloop.Model(machine).mass_matrix"),
        (tl, "MultibodyPlant", "tauloop.load"),
        (tl.Model(machine).inverse_kinematics(ROW), "actuators", "model.actuator_position or"),
    ]:
        with pytest.raises(AttributeError) as raised:
            getattr(owner, name)
        assert f"did you mean {meant}" in str(raised.value)
    assert not hasattr(machine, "no_such_thing")


def test_an_error_inside_a_property_is_not_hidden() -> None:
    class Broken(tl.common.shown.ReprMixin):
        @property
        def value(self) -> object:
            return None.nothing  # type: ignore[attr-defined]

    with pytest.raises(AttributeError, match="'NoneType' object has no attribute 'nothing'"):
        _ = Broken().value
    with pytest.raises(AttributeError, match="'Broken' object has no attribute 'vaule'"):
        _ = Broken().vaule  # type: ignore[attr-defined]


def test_names_of_other_libraries_lead_to_names_that_exist(model: tl.Model) -> None:
    """A name without a point is that of a function, an argument, a field or an attribute."""
    known = {*tl.__all__}
    for name in tl.__all__:
        value = getattr(tl, name)
        if isinstance(value, FunctionType | type):
            known |= {*dir(value)}
        if is_dataclass(value):
            known |= {field.name for field in fields(value)}
        if isinstance(value, FunctionType) or (
            isinstance(value, type) and issubclass(value, NamedFields)
        ):
            known |= {*inspect.signature(value).parameters}
    known |= {*dir(tl.dynamics.MotionForces), *dir(tl.kinematics.named_kinematics.Poses)}
    known |= {*dir(tl.check(model)), *dir(tl.jacobian(model, ROW))}
    known |= {*dir(tl.simulation.Simulation), *dir(tl.kinematics.Workspace)}
    for word, names in PEER_NAMES.items():
        assert word == word.lower()
        for name in names:
            first, *attributes = name.partition("(")[0].split(".")
            value: Any = {"model": model, "tauloop": tl}.get(first)
            assert bool(attributes) == (value is not None), name
            for attribute in attributes:
                value = getattr(value, attribute)
            assert attributes or name in known, f"{word}: {name}"


def test_parameters_are_keywords_too() -> None:
    machine = tl.load("delta")
    longer = machine.with_values(arm_length="300 mm", plate_mass=0.2)
    assert longer == machine.with_values({"arm_length": 0.3, "plate_mass": "200 g"})
    with pytest.raises(tl.InputError, match=r"arm_lenght.*\n.*did you mean arm_length"):
        machine.with_values(arm_lenght=0.3)


def test_results_have_the_names_that_users_guess(model: tl.Model) -> None:
    forces = tl.inverse_dynamics(model, ROW, REST, REST)
    assert forces.force is forces.forces.force
    assert tl.plan_stroke(model, end={"x": 0.05}, duration="0.3 s").duration == 0.3
    assert tl.check("delta").status == "ok"


def error_of(call: Callable[[], object]) -> Exception | None:
    """Return the error of a call; None without one."""
    try:
        call()
    except Exception as error:
        return error
    return None


def every_class_and_function() -> list[str]:
    return [name for name in tl.__all__ if callable(getattr(tl, name)) and name != "doctor"]


@pytest.mark.parametrize("name", every_class_and_function())
def test_a_call_without_arguments_gives_an_object_or_states_what_is_missing(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Classes that the library creates may raise the TypeError of Python, which names them."""
    monkeypatch.chdir(tmp_path)
    made = getattr(tl, name)
    is_created_by_users = isinstance(made, FunctionType) or issubclass(made, NamedFields)
    error = error_of(made)
    if isinstance(error, tl.InputError):
        assert all(problem.where and problem.remedy for problem in error.problems)
    elif error is not None:
        assert isinstance(error, TypeError)
        assert not is_created_by_users
        assert "__init__() missing" in str(error)
        assert name in str(error) or issubclass(made, tl.TauloopError)
