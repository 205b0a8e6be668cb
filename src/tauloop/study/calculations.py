"""The calculations of a study: pose accuracy of many machines at once, or results of a command."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, final

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import InputError, TauloopError
from tauloop.common.names.deprecated import JSON_KEYS, old_keywords
from tauloop.common.options import pairs_reader
from tauloop.common.records import dataclass
from tauloop.common.result import plain
from tauloop.drives import DriveLine
from tauloop.mechanism.model import Mechanism
from tauloop.model import Model
from tauloop.study.option_texts import option_names, options_classes, options_from
from tauloop.study.pose_accuracy import Accuracy, AccuracyOptions

#: Name of the input for a log.
LOG = "log"
#: Prefix of the names of inputs for options.
OPTION = "options."


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputedSamples:
    """Results of a calculation for some samples.

    Attributes:
        values: stored numbers (N,) by name; NaN if a sample has no such number.
        problems: message of the problem of each sample; "" for successful samples.
        whole: complete results as JSON text, by index among the N samples; only for requested
            samples.
    """

    values: Mapping[str, np.ndarray]
    problems: tuple[str, ...]
    whole: Mapping[int, str]


class Calculation(ABC):
    """A calculation for the samples of a study."""

    @abstractmethod
    def run(self, inputs: Mapping[str, np.ndarray], whole: Sequence[int]) -> ComputedSamples:
        """Compute samples.

        Args:
            inputs: arrays (N,) by name.
            whole: indices, among the N samples, of those whose complete results are stored.

        Returns:
            Values and problems of the samples.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command whose results a study can compute.

    Attributes:
        location: package, function and options class.
        units: SI units, by name, of the numbers that the calculation always stores.
        has_log: whether the second argument of the function is a log or another file of
            measurements.
        arguments: names of additional arguments of the function, which a study gives among the
            options.
        is_line: whether the first argument of the function is a drive line instead of a machine.
        shares_model: whether the first argument can be a model, which is then built once for all
            samples of the unchanged machine.
    """

    location: tuple[str, str, str]
    units: Mapping[str, str]
    has_log: bool = False
    arguments: tuple[str, ...] = ()
    is_line: bool = False
    shares_model: bool = False

    @property
    def options(self) -> type:
        """The class of the command's options."""
        return getattr(import_module(f"tauloop.{self.location[0]}"), self.location[2])

    @property
    def option_names(self) -> tuple[str, ...]:
        """Names of options allowed in a study file, including arguments."""
        return (*self.arguments, *option_names(self.options))

    def current_name(self, option: str) -> str:
        """Return the current name of an option, which may be an old one."""
        old_names = old_keywords(self.location[1], *options_classes(self.options))
        current = self.option_names
        new = old_names.get(option, option)
        return option if option in current or new not in current else new

    @property
    def function(self) -> Callable[..., Any]:
        """The function of the calculation."""
        return getattr(import_module(f"tauloop.{self.location[0]}"), self.location[1])


#: Commands whose second argument is a file.
FILE_COMMANDS = (
    "fold",
    "fold-scores",
    "bootstrap",
    "identify",
    "calibrate",
    "link-parameters",
    "cycle",
    "fit-plant",
    "forces",
)
#: Commands with arguments among the options.
ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "modes": ("actuators",),
    "working-modes": ("pose",),
    "fk": ("actuators",),
    "ik": ("pose",),
    "jacobian": ("pose", "actuators"),
}
#: Commands whose functions accept a model, which is then built once for all samples.
MODEL_COMMANDS = (*ARGUMENTS, "fold", "fold-scores", "bootstrap")
#: Commands whose first argument is a drive line instead of a machine.
DRIVE_LINE_COMMANDS = ("drive", "tune", "fit-plant")
#: Package, function and options class of the commands, by name.
COMMAND_LOCATIONS: Mapping[str, tuple[str, str, str]] = {
    "fold": ("identification", "fold_file", "IdentificationOptions"),
    "fold-scores": ("identification", "read_scores", "ScoreOptions"),
    "bootstrap": ("identification", "bootstrap_log", "BootstrapOptions"),
    "fk": ("kinematics", "forward_kinematics", "KinematicsOptions"),
    "ik": ("kinematics", "inverse_kinematics", "KinematicsOptions"),
    "jacobian": ("kinematics", "jacobian", "JacobianOptions"),
    "modes": ("kinematics", "assembly_modes", "ModeOptions"),
    "working-modes": ("kinematics", "working_modes", "ModeOptions"),
    "drive": ("drives", "simulate_drive_line", "DriveOptions"),
    "tune": ("drives", "tune_drive_line", "TuningOptions"),
    "fit-plant": ("drives", "fit_drive_line", "DriveLineFitOptions"),
    "check": ("kinematics", "check", "CheckOptions"),
    "show": ("kinematics", "describe", "DescribeOptions"),
    "workspace": ("kinematics", "workspace", "WorkspaceOptions"),
    "dynamics": ("dynamics", "inverse_dynamics", "DynamicsOptions"),
    "reduce": ("kinematics", "reduce_model", "ReductionOptions"),
    "cost": ("model", "count_operations", "CountOptions"),
    "motion": ("motion", "plan_stroke", "StrokeOptions"),
    "fastest": ("simulation", "plan_path", "PathOptions"),
    "transfer": ("simulation", "plan_transfer", "TransferOptions"),
    "cycle": ("simulation", "plan_cycle", "CycleOptions"),
    "simulate": ("simulation", "simulate", "SimulationOptions"),
    "control": ("simulation", "follow_path", "ControlOptions"),
    "excite": ("identification", "plan_excitation", "ExcitationOptions"),
    "identify": ("identification", "identify", "IdentificationOptions"),
    "regroup": ("identification", "symbolic_base_parameters", "SymbolicBaseOptions"),
    "link-parameters": ("identification", "link_parameters", "LinkOptions"),
    "calibrate": ("calibration", "calibrate", "CalibrationOptions"),
    "poses": ("calibration", "plan_poses", "PosePlanOptions"),
    "forces": ("identification.online", "estimate_external_wrench", "ExternalWrenchOptions"),
    "detect-hit": (
        "simulation.observers",
        "simulate_collision_detection",
        "CollisionDetectionOptions",
    ),
    "ballbar": ("drives", "ballbar", "BallbarOptions"),
    "play": ("drives", "backlash_map", "BacklashOptions"),
    "verify": ("verification.engines", "verify", "VerifyOptions"),
}


def _command(name: str, location: tuple[str, str, str]) -> Command:
    """Return a command with its properties from the lists above."""
    return Command(
        location=location,
        units={},
        has_log=name in FILE_COMMANDS,
        arguments=ARGUMENTS.get(name, ()),
        is_line=name in DRIVE_LINE_COMMANDS,
        shares_model=name in MODEL_COMMANDS,
    )


#: Calculations by the names of their commands.
CALCULATIONS: Mapping[str, Command] = {
    "accuracy": Command(
        location=("study", "accuracy", "AccuracyOptions"),
        units={"mean": "m", "rms": "m", "largest": "m", "rotation": "rad"},
    ),
    **{name: _command(name, location) for name, location in COMMAND_LOCATIONS.items()},
}


@final
class AccuracyOfMany(Calculation):
    """Tool errors of machines that differ in independent parameters (see `pose_accuracy`)."""

    def __init__(
        self, mechanism: Mechanism, names: Sequence[str], options: AccuracyOptions
    ) -> None:
        """Compile the calculation; see `Accuracy`."""
        self._accuracy = Accuracy(mechanism, names, options)
        self._bounds = [mechanism.parameters[name] for name in names]

    def run(self, inputs: Mapping[str, np.ndarray], whole: Sequence[int]) -> ComputedSamples:
        """Compute samples; NaN if a pose is out of reach or a parameter exceeds its bounds.

        Returns:
            Values and problems of the samples.
        """
        errors = self._accuracy(inputs)
        is_outside = np.zeros(len(errors.rms), dtype=bool)
        for p in self._bounds:
            is_outside |= (inputs[p.name] < p.lower) | (inputs[p.name] > p.upper)
        values = {
            name: np.where(is_outside, np.nan, getattr(errors, name))
            for name in CALCULATIONS["accuracy"].units
        }
        texts = np.where(np.isfinite(errors.rms), "", "a pose is out of reach")
        texts = np.where(is_outside, "a parameter is outside its bounds", texts)
        results = {}
        for k in whole:
            results[k] = json.dumps({name: plain(array[k]) for name, array in values.items()})
        return ComputedSamples(values=values, problems=tuple(texts.tolist()), whole=results)


@final
class OneByOne(Calculation):
    """A function of the library, called with the machine of each sample."""

    def __init__(
        self,
        command: Command,
        mechanism: Mechanism | DriveLine,
        texts: Mapping[str, Any],
        keep: Mapping[str, str],
    ) -> None:
        """Store the data that all samples share; see `calculation`."""
        self._command = command
        self._mechanism = mechanism
        self._texts = dict(texts)
        self._keep = {name: current_path(path) for name, path in keep.items()}
        self._unchanged: Mechanism | DriveLine | Model = mechanism
        if command.shares_model and isinstance(mechanism, Mechanism):
            self._unchanged = Model(mechanism)

    def run(self, inputs: Mapping[str, np.ndarray], whole: Sequence[int]) -> ComputedSamples:
        """Compute samples one after the other; for a rejected sample, store the first problem.

        Returns:
            Values and problems of the samples.
        """
        n = len(next(iter(inputs.values()))) if inputs else 1
        values = {name: np.full(n, np.nan) for name in self._keep}
        problems = [""] * n
        results = {}
        for k in range(n):
            try:
                data = self._result({name: array[k] for name, array in inputs.items()})
                for name, path in self._keep.items():
                    values[name][k] = scalar(data, path)
            except TauloopError as error:
                problems[k] = str(error.problems[0])
            else:
                if k in whole:
                    results[k] = json.dumps(data)
        return ComputedSamples(values=values, problems=tuple(problems), whole=results)

    def _result(self, sample: Mapping[str, Any]) -> Any:
        """Return the result of one sample as plain data."""
        parameter_values = {
            name: float(value)
            for name, value in sample.items()
            if name != LOG and not name.startswith(OPTION)
        }
        machine = self._unchanged
        if parameter_values and isinstance(self._mechanism, Mechanism):
            machine = self._mechanism.with_values(parameter_values)
        logs = [str(sample[LOG])] if LOG in sample else []
        texts = dict(self._texts)
        for name, value in sample.items():
            if name.startswith(OPTION):
                option, _, key = name.removeprefix(OPTION).partition(".")
                if key:
                    value = _with_pair(texts.get(option, ()), key, value)
                texts[option] = value
        arguments = {name: texts.pop(name) for name in self._command.arguments if name in texts}
        options = options_from(self._command.options, texts)
        result = self._command.function(machine, *logs, options=options, **arguments)
        return plain(result.as_dict())


def _with_pair(texts: Any, key: str, value: str) -> str:
    """Return an option of KEY=VALUE pairs as text, with one pair changed or added."""
    pairs = pairs_reader("options")(texts) | {key: value}
    return ",".join(f"{name}={text}" for name, text in pairs.items())


def current_path(path: str) -> str:
    """Return the path of a number in a result with the current names of its keys."""
    keys = path.split("/")
    for old, new in JSON_KEYS.items():
        pattern = old.split("/")
        pairs = zip(pattern, keys, strict=False)
        if len(pattern) <= len(keys) and all(a in (b, "*") for a, b in pairs):
            keys[len(pattern) - 1] = new.rpartition("/")[2]
    return "/".join(keys)


def scalar(data: Any, path: str) -> float:
    """Return a number in plain data.

    Args:
        data: plain data of a result.
        path: keys, list indices, and names of list items, separated by ``/``, such as
            ``diagnostics/residual/value``.

    Raises:
        InputError: there is no number at the path.
    """
    item = data
    for depth, key in enumerate(path.split("/")):
        if isinstance(item, list) and not key.isdecimal():
            item = {str(entry.get("name")): entry for entry in item if isinstance(entry, dict)}
        try:
            item = item[int(key)] if isinstance(item, list) else item[key]
        except (KeyError, IndexError, TypeError):
            parent = "/".join(path.split("/")[:depth]) or "the result"
            problem = f"there is no {key!r} in {parent}"
            remedy = f"use one of {_contents(item):.300}"
            raise InputError.of(f"keep {path}", problem, remedy) from None
    if item is None:
        return float("nan")
    if isinstance(item, bool | int | float):
        return float(item)
    problem = f"is not a number: {item!r:.60}"
    raise InputError.of(f"keep {path}", problem, "give the path of a number in the result")


def _contents(item: Any) -> str:
    """Return a description of the contents of plain data, for a message."""
    if isinstance(item, dict):
        return ", ".join(item)
    if isinstance(item, list):
        return counted(len(item), "item")
    return "a value"


def calculation(
    name: str,
    mechanism: Mechanism | DriveLine,
    names: Sequence[str],
    texts: Mapping[str, Any],
    keep: Mapping[str, str],
) -> Calculation:
    """Return the calculation of a study.

    Args:
        name: name in `CALCULATIONS`.
        mechanism: the machine, or the drive line.
        names: independent parameters that vary.
        texts: options that all samples share.
        keep: paths of the stored scalars, by name.

    Raises:
        InputError: options are unknown or have invalid values.
    """
    if name == "accuracy" and isinstance(mechanism, Mechanism):
        return AccuracyOfMany(mechanism, names, options_from(AccuracyOptions, texts))
    return OneByOne(CALCULATIONS[name], mechanism, texts, keep)
