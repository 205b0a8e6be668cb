"""Names of earlier versions work for one release, each with a warning that states the new name."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest

import tauloop as tl
from tauloop.common.execution.stopping import MESSAGES, StopReason
from tauloop.common.names.deprecated import JSON_KEYS, MEMBERS, NAMES
from tauloop.common.result import diagnostic, plain
from tauloop.compiler import Forces, SolveDiagnostics, State
from tauloop.drives import Outcome
from tauloop.integrate.outcome import StepOutcome
from tauloop.kinematics.homotopy.paths import PathEnding
from tauloop.simulation import Ending
from tauloop.simulation.controllers.loop import _reported
from tauloop.study.calculations import current_path, scalar

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


@pytest.mark.parametrize("enumeration", [Ending, Outcome])
def test_old_members_of_an_enumeration_are_the_new_ones(enumeration: type[StopReason]):
    renamed = {old: new for old, new in MEMBERS.items() if old.startswith(enumeration.__name__)}
    assert len(renamed) == 4
    for old, new in renamed.items():
        with pytest.warns(
            DeprecationWarning, match=f"{old} is deprecated .*: use {new}$"
        ) as warned:
            member = getattr(enumeration, old.partition(".")[2])
        assert member is enumeration[new.partition(".")[2]]
        assert warned[0].filename == __file__
    with pytest.raises(AttributeError, match="has no member 'NOTHING'"):
        _ = enumeration.NOTHING


def test_all_layers_name_the_same_reasons_alike_and_have_a_message_for_each():
    for enumeration in (StepOutcome, Ending, Outcome, PathEnding):
        members = list(enumeration)
        assert {item.name for item in members} <= MESSAGES.keys()
        assert all(item.message for item in members)
        assert next(item.name for item in members if item.is_success) == "SUCCESS"
    assert Outcome.MAX_STEPS.message == Ending.MAX_STEPS.message == "too many steps"
    assert np.isin(np.array([0, 1, 5]), (Outcome.SUCCESS, Outcome.EVENT)).tolist() == [
        True,
        False,
        True,
    ]
    assert plain(Outcome.EVENT) == 5
    assert {item.label for item in Outcome} >= {"ok", "too_long", "ended", "invalid", "diverged"}


def test_an_unknown_name_is_still_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = import_module("tauloop.common.result").Nothing
    # as tools that look through all modules ask, without a warning
    assert not hasattr(import_module("tauloop.result"), "__file__")


def test_results_states_and_forces_have_their_diagnostics_under_the_old_name():
    model = tl.Model(tl.load("delta"))
    result = tl.inverse_dynamics(model, tl.DynamicsOptions(pose=TOOL))
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
    assert not JSON_KEYS.keys() & data.keys()
    data |= dict.fromkeys(JSON_KEYS.values(), data["diagnostics"])
    for old, new in JSON_KEYS.items():
        if "/" in old:
            assert current_path(old.replace("*", "motor")) == new.replace("*", "motor")
            continue
        value = scalar(data, current_path(f"{old}/largest loop residual/value"))
        assert value == scalar(data, f"{new}/largest loop residual/value")


def test_a_correction_reports_under_the_old_name_of_its_method():
    class Before:
        def evidence(self):
            return (diagnostic("share", 0.5),)

    class Now:
        def diagnostics(self):
            return (diagnostic("share", 0.5),)

    with pytest.warns(DeprecationWarning, match=r"Before\.evidence .*: use Before\.diagnostics$"):
        assert _reported(Before()) == _reported(Now())
    assert _reported(object()) == ()
