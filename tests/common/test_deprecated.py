"""Names of earlier versions: each works with a warning that names the new one, at the caller's line."""

from __future__ import annotations

import copy
import importlib
import inspect
import pickle
import pkgutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import tauloop as tl
from tauloop.calibration.judging.statistics import ErrorStatistics, Outlier
from tauloop.calibration.solving.exchanges import Exchanges
from tauloop.common.names.deprecated import ATTRIBUTES, KEYWORDS, MODULES, NAMES
from tauloop.common.options import NamedFields
from tauloop.common.result import Result
from tauloop.drives.axis.sensitivity import CriteriaGradients
from tauloop.drives.criteria import Criteria
from tauloop.drives.machine.circle import Lap
from tauloop.drives.machine.play import PlayMap
from tauloop.kinematics.workspaces.map import Workspace
from tauloop.mechanism.drive_line import LineInertia
from tauloop.mechanism.model import CombinedFriction, Coupling
from tauloop.mechanism.solids.solid import Solid
from tauloop.model.forces.hybrid import HybridFunctions
from tauloop.model.motion import Motion
from tauloop.model.positions.encoder_fit import ActuatorFit
from tauloop.motion.sampled import SampledMotion
from tauloop.simulation.controllers.run import ControlledMotion
from tauloop.simulation.observers import EncoderFit
from tauloop.viewer.viewer import Viewer


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
    owners = (
        CriteriaGradients,
        Solid,
        *(tl.calibration.CalibrationProblem, tl.Model, tl.identification.TwoRuns, Result),
        tl.motion.Obstacle,
        tl.simulation.Controller,
        tl.simulation.Loop,
        tl.motion.Path,
        tl.motion.Ellipse,
        tl.viewer.View,
        type(tl.load("delta").actuators[0]),
        tl.authoring.NewMachine,
        tl.drives.ParetoFront,
        tl.calibration.Tolerances,
        tl.dynamics.ActuatorLoad,
        tl.study.PoseErrors,
        tl.identification.LinkParameters,
        ErrorStatistics,
        Outlier,
        tl.identification.ElementMotion,
        tl.identification.MeasuredLog,
        tl.compiler.c.Precision,
        Coupling,
        CombinedFriction,
        LineInertia,
        tl.calibration.Observability,
        tl.calibration.Selection,
        tl.calibration.Instrument,
        tl.motion.FreePlanner,
        tl.export.linuxcnc.MachineJoint,
        tl.export.linuxcnc.MachineLayout,
        tl.kinematics.RandomStates,
        tl.verification.engines.Verification,
        tl.verification.engines.VerifiedMachine,
        tl.identification.Condensed,
        tl.identification.ConsistentIdentification,
        EncoderFit,
        ActuatorFit,
        HybridFunctions,
        Motion,
        SampledMotion,
        Viewer,
        tl.simulation.Transfer,
        Exchanges,
        Lap,
        ControlledMotion,
        PlayMap,
        Workspace,
    )
    classes = {item.__name__: item for item in owners}
    renamed = vars(classes[owner])[old_attribute]
    expected = rf"\.{old_attribute} is deprecated .* use SimpleNamespace\.{new_attribute}$"
    with pytest.warns(DeprecationWarning, match=expected):
        assert renamed.fget(SimpleNamespace(**{new_attribute: "value"})) == "value"
    assert hasattr(classes[owner], new_attribute) or new_attribute in fields_of(classes[owner])


def test_a_derived_class_may_override_an_attribute_under_its_old_name() -> None:
    with pytest.warns(DeprecationWarning, match="Probe.assumed is deprecated .*default_reading"):

        class Probe(tl.calibration.Position):
            @property
            def assumed(self) -> float | None:
                return 2.0

    assert Probe(name="probe").default_reading == 2.0
    assert tl.calibration.Position(name="tracker").default_reading is None


def test_a_controller_and_a_path_may_override_methods_under_their_old_names() -> None:
    expected = "Held.correction is deprecated .*use force_callback"
    with pytest.warns(DeprecationWarning, match=expected) as caught:

        @dataclass(frozen=True, slots=True, kw_only=True)
        class Held(tl.simulation.Controller):
            def correction(self, loop: object) -> Callable[..., object]:
                return lambda time, measured, speed, force: 2.0 * force

    assert len(caught) == 1
    callback = Held(bandwidth=1.0).force_callback(None)  # type: ignore[arg-type]
    assert callback(0.0, np.zeros(1), np.zeros(1), np.array([3.0])) == 6.0
    with pytest.warns(DeprecationWarning, match="Coarse.looks is .*use n_shape_points"):

        class Coarse(tl.motion.Line):
            @property
            def looks(self) -> int:
                return 12

    assert Coarse([0.0], [1.0]).n_shape_points == 12


def fields_of(owner: type) -> set[str]:
    """Return the names of the annotated attributes of a class and its bases."""
    return {name for base in owner.__mro__ for name in vars(base).get("__annotations__", {})}


def test_a_package_has_no_renamed_name_of_another() -> None:
    with pytest.raises(AttributeError, match=r"'tauloop.logs' has no attribute 'tune'"):
        _ = tl.logs.tune  # type: ignore[attr-defined]


def test_no_new_name_is_an_old_one() -> None:
    assert {name for name in tl.__all__ if name in NAMES} == set()
    assert "tauloop.motion" not in MODULES


#: Required fields of the classes of options that have some.
STROKE = tl.StrokeOptions(end={"x": 0.1})
REQUIRED: dict[str, dict[str, object]] = {
    "Actuator": {"name": "motor", "drives": (("pin", 1.0),)},
    "CollisionDetectionOptions": {"stroke": STROKE, "wrench": {"fx": 20}},
    "ControlOptions": {"stroke": STROKE},
    "Curve": {"position": None, "derivative": None, "second_derivative": None},
    "CycleOptions": {},
    "DriveLineFitOptions": {"bounds": {"gap": (1e-4, 1e-3)}},
    "Ellipse": {
        "center": np.zeros(1),
        "semi_axis_a": np.array([1.0]),
        "semi_axis_b": np.array([2.0]),
    },
    "LawSample": {"s": None, "derivative": None, "second_derivative": None},
    "Observation": {
        "name": "step",
        "parameters": {},
        "step": 0.1,
        "measured": {"rise_time": 1.7},
        "tolerances": {"rise_time": 0.1},
        "scales": {"rise_time": 1.0},
    },
    "PosePlanOptions": {"parameters": ("track*.length",)},
    "StrokeOptions": {"end": {"x": 0.1}},
    "TransferOptions": {"end": {"x": 0.1}},
    "TuningOptions": {"bounds": {"kp": (1.0, 2.0)}, "scales": {"rise_time": 1.0}},
}


def classes_of_options() -> dict[str, type[NamedFields]]:
    """Return all classes of options, and others that check the names of their fields, by name."""
    for package in pkgutil.walk_packages(tl.__path__, "tauloop."):
        if package.ispkg:
            for name in getattr(importlib.import_module(package.name), "__all__", ()):
                getattr(importlib.import_module(package.name), name)
    waiting, classes = [NamedFields], dict[str, type[NamedFields]]()
    while waiting:
        for kind in waiting.pop().__subclasses__():
            # A class with slots is a copy, whose original may not have been collected yet.
            if vars(sys.modules[kind.__module__]).get(kind.__name__) is kind:
                classes.setdefault(kind.__name__, kind)
            waiting.append(kind)
    return classes


CLASSES = classes_of_options()
OLD_FIELDS = [
    (owner, old, new)
    for owner, names in KEYWORDS.items()
    if owner[0].isupper() and "." not in owner
    for old, new in names.items()
]


@pytest.mark.parametrize(("owner", "old", "new"), OLD_FIELDS)
def test_an_old_field_is_the_new_one_with_a_warning(owner: str, old: str, new: str) -> None:
    kind = CLASSES[owner]
    names = {item.name for item in fields(kind)}
    assert new in names
    if old in names:  # another field has the name now
        assert owner == "DriveLineFitOptions"
        return
    assert old not in inspect.signature(kind).parameters
    plain = kind(**REQUIRED.get(owner, {}))
    value = getattr(plain, new)
    others = {name: item for name, item in REQUIRED.get(owner, {}).items() if name != new}
    expected = rf"^{owner}\({old}=...\) is deprecated .*: use {new}=...$"
    with pytest.warns(DeprecationWarning, match=expected) as caught:
        assert kind(**others, **{old: value}) == plain
    assert [item.filename for item in caught] == [__file__]
    with pytest.warns(DeprecationWarning, match=rf"{owner}\.{old} is .*: use {owner}\.{new}$") as (
        caught
    ):
        assert getattr(plain, old) is value
    assert [item.filename for item in caught] == [__file__]
    with pytest.warns(DeprecationWarning, match=expected) as caught:
        assert replace(plain, **{old: value}) == plain
    assert [item.filename for item in caught] == [__file__]
    with pytest.raises(tl.InputError, match=f"{old}: is the old name of {new}"):
        kind(**{**others, old: value, new: value})


def test_a_from_import_warns_once() -> None:
    """Python asks for the name twice if the module is a package."""
    for statement in ("from tauloop import plan_motion", "from tauloop.errors import InputError"):
        code = compile(statement, "user.py", "exec")
        with pytest.warns(DeprecationWarning, match="tauloop.*: use tauloop") as caught:
            exec(code, {})
        assert [item.filename for item in caught] == ["user.py"], statement


def test_an_old_package_still_has_names_that_are_in_no_table() -> None:
    with pytest.warns(DeprecationWarning, match="use tauloop.export.gpu.Precision"):
        assert importlib.import_module("tauloop.gpu").Precision is tl.export.gpu.Precision


@pytest.mark.parametrize(
    "owner", [name for name, pairs in KEYWORDS.items() if "machine" in pairs.values()]
)
def test_the_machine_of_a_function_was_called_otherwise(owner: str) -> None:
    (old,) = (name for name, new in KEYWORDS[owner].items() if new == "machine")
    function = getattr(tl, owner)
    others = {name: "x" for name in ("measurements", "target", "estimates")}
    others = {name: others[name] for name in inspect.signature(function).parameters & others.keys()}
    with (
        pytest.warns(DeprecationWarning, match=rf"{owner}\({old}=...\) .*: use machine=") as caught,
        pytest.raises(tl.TauloopError) as refused,
    ):
        function(**{old: "nowhere"}, **others)
    with pytest.raises(tl.TauloopError) as expected:
        function("nowhere", **others)
    assert [item.filename for item in caught] == [__file__]
    assert refused.value.problems == expected.value.problems
    with pytest.raises(tl.InputError, match=f"{old}: is the old name of machine, which is also"):
        function(machine="delta", **{old: "delta"}, **others)


@pytest.mark.parametrize(
    "owner",
    [
        name
        for name, pairs in KEYWORDS.items()
        if hasattr(tl, name) and name.islower() and "machine" not in pairs.values()
    ],
)
def test_an_old_keyword_of_a_function_is_the_new_one_with_a_warning(owner: str) -> None:
    function = getattr(tl, owner)
    for old, new in KEYWORDS[owner].items():
        assert old not in inspect.signature(function).parameters
        with pytest.warns(
            DeprecationWarning, match=rf"{owner}\({old}=...\) .*: use {new}=...$"
        ) as (caught):
            result = function("four_bar", **{old: {}})
        assert caught[0].filename == __file__
        assert result.as_dict() == function("four_bar", **{new: {}}).as_dict()
        with pytest.raises(tl.InputError, match=f"{old}: is the old name of {new}, which is also"):
            function("four_bar", **{old: {}, new: {}})


@pytest.mark.parametrize("owner", [name for name in KEYWORDS if name.startswith("Motion.")])
def test_an_old_keyword_of_a_method_is_the_new_one_with_a_warning(owner: str) -> None:
    platform = tl.Model("four_bar").platform
    method = getattr(platform, owner.removeprefix("Motion."))
    current = {
        "position": [0.2],
        "velocity": [0.1],
        "acceleration_or_force": [0.3],
        "factors": [1.0],
        "directions": {"position": [1.0]},
    }
    names = set(inspect.signature(method).parameters)
    arguments = {name: value for name, value in current.items() if name in names}
    expected = repr(method("inverse_dynamics", **arguments))
    for old, new in KEYWORDS[owner].items():
        assert old not in names
        renamed = {old if name == new else name: value for name, value in arguments.items()}
        with pytest.warns(
            DeprecationWarning, match=rf"{owner}\({old}=...\) .*: use {new}=...$"
        ) as caught:
            result = method("inverse_dynamics", **renamed)
        assert caught[0].filename == __file__
        assert repr(result) == expected
        with pytest.raises(tl.InputError, match=f"{old}: is the old name of {new}, which is also"):
            method("inverse_dynamics", **arguments, **{old: 0.0})


def test_a_field_by_position_and_by_an_old_name_is_refused() -> None:
    with (
        pytest.warns(DeprecationWarning, match="use semi_axis_a="),
        pytest.raises(tl.InputError, match="semi_axis_a: is given twice, by position and by name"),
    ):
        tl.motion.Ellipse([0.0], [1.0], semi_axis_b=[2.0], first=[1.0])


def test_old_keys_of_files_are_read(tmp_path: Path) -> None:
    text = tl.dumps(tl.load("four_bar")).replace("force: ", "copper: 0.3 W/N^2/m^2, force: ", 1)
    old = tmp_path / "old.yaml"
    old.write_text(text)
    with pytest.warns(DeprecationWarning, match="copper is deprecated .*use copper_loss") as caught:
        machine = tl.load(old)
    assert caught[0].filename == str(old)
    assert "copper: 0.3" in text.splitlines()[caught[0].lineno - 1]
    assert machine.actuators[0].copper_loss == 0.3
    assert tl.loads(text.replace("copper:", "copper_loss:")).actuators == machine.actuators


def test_two_old_names_of_a_new_one_are_refused_together() -> None:
    """`draws` and `machines` are both `error_samples` now."""
    with (
        pytest.warns(DeprecationWarning, match="draws=...") as caught,
        pytest.raises(tl.InputError, match="machines: is the old name of error_samples"),
    ):
        tl.CollisionDetectionOptions(stroke=STROKE, wrench={"fx": 20}, draws=2, machines=3)
    assert len(caught) == 1


@pytest.mark.parametrize("combination", ["sum", "worst"])
def test_the_scales_of_criteria_were_called_weights(combination: str) -> None:
    names = ("rise_time", "energy")
    steps = dict.fromkeys((item.name for item in fields(Criteria)), np.zeros(1))
    criteria = Criteria(**{**steps, "rise_time": np.array([3.0]), "energy": np.array([8.0])})
    gradients = CriteriaGradients(
        criteria=criteria, gradients=dict(zip(names, np.eye(2)[:, None], strict=True))
    )
    scales, expected = {"rise_time": 2.0, "energy": 4.0}, {"sum": 3.5, "worst": 2.0}
    slopes = {"sum": [[0.5, 0.25]], "worst": [[0.0, 0.25]]}
    with pytest.warns(DeprecationWarning, match=f"use tauloop.drives.scaled_{combination}$"):
        function = getattr(tl.drives, f"weighted_{combination}")
    with pytest.warns(DeprecationWarning, match=f"scaled_{combination}.weights=.*use scales=") as (
        caught
    ):
        assert function(criteria, weights=scales) == expected[combination]
    assert caught[0].filename == __file__
    method = getattr(gradients, f"scaled_{combination}")
    with pytest.warns(DeprecationWarning, match=f"scaled_{combination}.weights=.*use scales="):
        assert method(weights=scales).tolist() == slopes[combination]


def test_old_fields_of_nested_options_are_keywords_too() -> None:
    with pytest.warns(DeprecationWarning, match="is deprecated") as caught:
        old = tl.simulate("four_bar", duration=0.01, rtol=1e-8, watch=("crank_pin<0",))
    new = tl.simulate("four_bar", duration=0.01, tolerance=1e-8, record=("crank_pin<0",))
    assert old.as_dict() == new.as_dict()
    assert [str(item.message).rpartition(" ")[2] for item in caught] == [
        "tolerance=...",
        "record=...",
    ]
    assert {item.filename for item in caught} == {__file__}


def test_an_old_name_that_is_current_in_a_class_has_its_current_meaning() -> None:
    """The old `tolerance` of measured values, refused as the relative tolerance of integration."""
    bounds = {"gap": (1e-4, 1e-3)}
    assert tl.DriveLineFitOptions(bounds=bounds, tolerance=1e-6).tolerance == 1e-6
    with pytest.raises(tl.InputError, match=r"tolerance: is 0.01\n.*value_tolerance"):
        tl.DriveLineFitOptions(bounds=bounds, tolerance=0.01)


def test_an_unknown_attribute_of_options_is_still_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'StrokeOptions' object has no attribute 'nothing'"):
        _ = STROKE.nothing
    assert copy.deepcopy(STROKE) == pickle.loads(pickle.dumps(STROKE)) == STROKE
