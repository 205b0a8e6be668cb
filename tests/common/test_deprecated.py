"""Names of earlier versions: each works with a warning that names the new one, at the caller's line."""

from __future__ import annotations

import importlib
from types import SimpleNamespace

import pytest

import tauloop as tl
from tauloop.common.deprecated import ATTRIBUTES, MODULES, NAMES
from tauloop.common.result import Result


@pytest.mark.parametrize(("old", "new"), NAMES.items())
def test_an_old_name_is_the_new_one_with_a_warning(old: str, new: str) -> None:
    package, _, name = old.rpartition(".")
    module = importlib.import_module(package) if package else tl
    if new not in module.__all__:
        places = (
            tl.identification,
            tl.simulation,
            tl.simulation.observers,
            tl.compiler,
            tl.display,
            importlib.import_module("tauloop.common.result"),
            importlib.import_module("tauloop.calibration.problem.measured_poses"),
        )
        module = next(place for place in places if hasattr(place, new))
    expected = f"{module.__name__}.{name} is deprecated .* use {module.__name__}.{new}"
    with pytest.warns(DeprecationWarning, match=expected) as caught:
        value = getattr(module, name)
    assert value is getattr(module, new)
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("module", "name", "new"),
    [
        ("tauloop.simulation", "cycle", "plan_cycle"),
        ("tauloop.motion", "plan_motion", "plan_stroke"),
        ("tauloop.drives", "play", "backlash_map"),
        ("tauloop.estimation", "detect_hit", "simulate_collision_detection"),
        ("tauloop.identification.excitation", "excite", "plan_excitation"),
        ("tauloop.calibration.problem.pose_equations", "StationFunctions", "MeasuredPoseFunctions"),
        ("tauloop.calibration.problem.stations", "StationState", "MeasuredPoseState"),
        ("tauloop.calibration.problem.stations", "MeasuredPose", "MeasuredPose"),
    ],
)
def test_packages_know_the_old_names_too(module: str, name: str, new: str) -> None:
    with pytest.warns(DeprecationWarning, match=new):
        value = getattr(importlib.import_module(module), name)
    assert value.__name__ == new


@pytest.mark.parametrize(("old", "new"), ATTRIBUTES.items())
def test_an_old_attribute_is_the_new_one_with_a_warning(old: str, new: str) -> None:
    owner, _, old_attribute = old.partition(".")
    _, _, new_attribute = new.partition(".")
    owners = (tl.calibration.CalibrationProblem, tl.Model, tl.identification.TwoRuns, Result)
    classes = {item.__name__: item for item in owners}
    renamed = vars(classes[owner])[old_attribute]
    expected = rf"\.{old_attribute} is deprecated .* use SimpleNamespace\.{new_attribute}$"
    with pytest.warns(DeprecationWarning, match=expected):
        assert renamed.fget(SimpleNamespace(**{new_attribute: "value"})) == "value"
    assert hasattr(classes[owner], new_attribute) or new_attribute in fields_of(classes[owner])


def fields_of(owner: type) -> set[str]:
    """Return the names of the annotated attributes of a class and its bases."""
    return {name for base in owner.__mro__ for name in vars(base).get("__annotations__", {})}


def test_a_package_has_no_renamed_name_of_another() -> None:
    with pytest.raises(AttributeError, match=r"'tauloop.logs' has no attribute 'tune'"):
        _ = tl.logs.tune  # type: ignore[attr-defined]


def test_no_new_name_is_an_old_one() -> None:
    assert {name for name in tl.__all__ if name in NAMES} == set()
    assert "tauloop.motion" not in MODULES
