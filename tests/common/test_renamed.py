"""Names of earlier versions work for one release, each with a warning that states the new name."""

from __future__ import annotations

from importlib import import_module

import pytest

import tauloop as tl
from tauloop.common.deprecated import JSON_KEYS, NAMES
from tauloop.common.result import plain
from tauloop.compiler import Forces, SolveDiagnostics, State
from tauloop.study.calculations import scalar

TOOL = {"z": -0.5}


@pytest.mark.parametrize(
    ("package", "old"),
    [
        ("tauloop.common.result", "Evidence"),
        ("tauloop.compiler", "Health"),
        ("tauloop.compiler.state", "Health"),
        ("tauloop.programs", "Health"),
        ("tauloop.result", "Evidence"),
    ],
)
def test_the_old_name_of_a_class_is_the_new_class(package: str, old: str):
    new = NAMES[old]
    with pytest.warns(DeprecationWarning, match=rf"{package}.{old} is deprecated .*: use .*{new}$"):
        old_class = getattr(import_module(package), old)
    assert old_class.__name__ == new


def test_an_unknown_name_is_still_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = import_module("tauloop.common.result").Nothing


def test_results_states_and_forces_have_their_diagnostics_under_the_old_name():
    model = tl.Model(tl.load("delta"))
    result = tl.inverse_dynamics(model, tl.DynamicsOptions(position=TOOL))
    for owner in (result, result.forces, result.forces.state):
        assert isinstance(owner, tl.dynamics.MotionForces | Forces | State)
        name = type(owner).__name__
        with pytest.warns(
            DeprecationWarning, match=f"{name}.evidence is deprecated .*: use {name}.diagnostics$"
        ) as warned:
            assert owner.evidence == owner.diagnostics
        assert warned[0].filename == __file__
    assert isinstance(result.forces.state.health, SolveDiagnostics)


def test_paths_into_results_may_have_old_keys():
    data = plain(tl.inverse_kinematics(tl.load("delta"), TOOL).as_dict())
    for old, new in JSON_KEYS.items():
        assert old not in data
        assert data[new][0]["name"] == "largest loop residual"
        with pytest.warns(DeprecationWarning, match=f"use {new}/largest loop residual/value"):
            value = scalar(data, f"{old}/largest loop residual/value")
        assert value == scalar(data, f"{new}/largest loop residual/value")
