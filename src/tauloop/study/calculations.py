"""What a study computes of each sample: the accuracy of many machines at once, or the result of any other command."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, final

import numpy as np

from tauloop.common.deprecated import JSON_KEYS, warn
from tauloop.common.errors import InputError, TauloopError
from tauloop.common.records import dataclass
from tauloop.common.result import plain
from tauloop.drives import DriveLine
from tauloop.mechanism.description.quantities import pairs_reader
from tauloop.mechanism.model import Mechanism
from tauloop.model import Model
from tauloop.study.option_texts import option_names, options_from
from tauloop.study.pose_accuracy import Accuracy, AccuracyOptions

#: What an input is called that is no parameter: the log of `identify`, and options by their names.
LOG, OPTION = "log", "options."


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputedSamples:
    """What a calculation makes of some samples.

    Attributes:
        values: numbers (N,) by name; not a number where there is none.
        problems: why not, "" for samples that went well.
        whole: results as JSON, by place among the samples.
    """

    values: Mapping[str, np.ndarray]
    problems: tuple[str, ...]
    whole: Mapping[int, str]


class Calculation(ABC):
    """What is computed of samples."""

    @abstractmethod
    def run(self, inputs: Mapping[str, np.ndarray], whole: Sequence[int]) -> ComputedSamples:
        """Compute samples.

        Args:
            inputs: arrays (N,) by name.
            whole: places of samples whose results are kept whole.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command whose results a study can compute.

    Attributes:
        place: package, function and options.
        units: SI units of the scalars that it has of itself.
        has_log: whether its second argument is a log, or another file of measurements.
        arguments: of its others, those that are given among the options.
        is_line: whether it takes a drive line instead of a machine.
        shares_model: whether it takes a model, which is then made once for all samples of the
            machine itself.
    """

    place: tuple[str, str, str]
    units: Mapping[str, str]
    has_log: bool = False
    arguments: tuple[str, ...] = ()
    is_line: bool = False
    shares_model: bool = False

    @property
    def options(self) -> type:
        """The class of its options."""
        return getattr(import_module(f"tauloop.{self.place[0]}"), self.place[2])

    @property
    def option_names(self) -> tuple[str, ...]:
        """Names that a file may give, arguments among them."""
        return (*self.arguments, *option_names(self.options))

    @property
    def function(self) -> Callable[..., Any]:
        """What computes it."""
        return getattr(import_module(f"tauloop.{self.place[0]}"), self.place[1])


#: Commands whose second argument is a file.
WITH_FILES = (
    *(
        "fold",
        "fold-scores",
        "bootstrap",
        "identify",
        "calibrate",
        "link-parameters",
        "cycle",
        "fit-plant",
    ),
    "forces",
)
#: Commands that take arguments from the options, which all take a model; and others that take one.
ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("modes", "working-modes"), ("position",)),
    **{"fk": ("actuators",), "ik": ("platform",), "jacobian": ("platform", "actuators")},
}
WITH_MODELS = (*ARGUMENTS, "fold", "fold-scores", "bootstrap")
#: Commands that take a drive line.
OF_LINES = ("drive", "tune", "fit-plant")
#: By the names of the commands.
CALCULATIONS: Mapping[str, Command] = {
    "accuracy": Command(
        place=("study", "accuracy", "AccuracyOptions"),
        units={"mean": "m", "rms": "m", "largest": "m", "turn": "rad"},
    ),
    **{
        name: Command(
            place=place,
            units={},
            has_log=name in WITH_FILES,
            arguments=ARGUMENTS.get(name, ()),
            is_line=name in OF_LINES,
            shares_model=name in WITH_MODELS,
        )
        for name, place in {
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
            "reduce": ("kinematics", "reduce", "ReductionOptions"),
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
            "forces": (
                "identification.online",
                "estimate_external_wrench",
                "ExternalWrenchOptions",
            ),
            "detect-hit": (
                "simulation.observers",
                "simulate_collision_detection",
                "CollisionDetectionOptions",
            ),
            "ballbar": ("drives", "ballbar", "BallbarOptions"),
            "play": ("drives", "backlash_map", "BacklashOptions"),
            "verify": ("verification.engines", "verify", "VerifyOptions"),
        }.items()
    },
}


@final
class AccuracyOfMany(Calculation):
    """Tool errors of machines that differ in leaf parameters (`tauloop.study.pose_accuracy`)."""

    def __init__(
        self, mechanism: Mechanism, names: Sequence[str], options: AccuracyOptions
    ) -> None:
        """Compile; see `Accuracy`."""
        self._accuracy = Accuracy(mechanism, names, options)
        self._bounds = [mechanism.parameters[name] for name in names]

    def run(self, inputs: Mapping[str, np.ndarray], whole: Sequence[int]) -> ComputedSamples:
        """See `Calculation`; a machine that does not reach a pose, or is none by its bounds, has no accuracy."""
        errors = self._accuracy(inputs)
        beyond = [(inputs[p.name] < p.lower) | (inputs[p.name] > p.upper) for p in self._bounds]
        outside = np.any([np.zeros(len(errors.rms)), *beyond], axis=0)
        values = {
            name: np.where(outside, np.nan, getattr(errors, name))
            for name in CALCULATIONS["accuracy"].units
        }
        reached = np.where(np.isfinite(errors.rms), "", "a pose is out of reach")
        problems = tuple(np.where(outside, "a parameter is outside its bounds", reached).tolist())
        kept = {
            k: json.dumps({name: plain(array[k]) for name, array in values.items()}) for k in whole
        }
        return ComputedSamples(values=values, problems=problems, whole=kept)


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
        """Keep what is the same in all samples."""
        self._command, self._mechanism, self._texts, self._keep = (
            command,
            mechanism,
            dict(texts),
            dict(keep),
        )
        self._same: Mechanism | DriveLine | Model = mechanism
        if command.shares_model and isinstance(mechanism, Mechanism):
            self._same = Model(mechanism)

    def run(self, inputs: Mapping[str, np.ndarray], whole: Sequence[int]) -> ComputedSamples:
        """See `Calculation`; of a sample that is refused the first problem is kept."""
        n = len(next(iter(inputs.values()))) if inputs else 1
        values = {name: np.full(n, np.nan) for name in self._keep}
        problems, kept = [""] * n, {}
        for k in range(n):
            try:
                data = self._result({name: array[k] for name, array in inputs.items()})
                for name, path in self._keep.items():
                    values[name][k] = scalar(data, path)
            except TauloopError as error:
                problems[k] = str(error.problems[0])
            else:
                if k in whole:
                    kept[k] = json.dumps(data)
        return ComputedSamples(values=values, problems=tuple(problems), whole=kept)

    def _result(self, sample: Mapping[str, Any]) -> Any:
        changed = {k: float(v) for k, v in sample.items() if k != LOG and not k.startswith(OPTION)}
        machine = self._same
        if changed and isinstance(self._mechanism, Mechanism):
            machine = self._mechanism.with_values(changed)
        logs = [str(sample[LOG])] if LOG in sample else []
        texts = dict(self._texts)
        for name, value in sample.items():
            if name.startswith(OPTION):
                option, _, key = name.removeprefix(OPTION).partition(".")
                texts[option] = _with_pair(texts.get(option, ()), key, value) if key else value
        others = {name: texts.pop(name) for name in self._command.arguments if name in texts}
        made = options_from(self._command.options, texts)
        return plain(self._command.function(machine, *logs, options=made, **others).as_dict())


def _with_pair(texts: Any, key: str, value: str) -> str:
    """The text of an option of several names with one of them changed, or added."""
    return ",".join(
        f"{name}={text}" for name, text in (pairs_reader("options")(texts) | {key: value}).items()
    )


def scalar(data: Any, path: str) -> float:
    """A number within plain data.

    Args:
        data: of a result.
        path: keys, numbers in lists, and names of what is in lists, with ``/`` between them, such
            as ``diagnostics/residual/value``.

    Raises:
        InputError: there is none.
    """
    at = data
    first, slash, rest = path.partition("/")
    if first in JSON_KEYS:
        warn(f"keep {path}", f"{JSON_KEYS[first]}{slash}{rest}", stacklevel=2)
        path = JSON_KEYS[first] + slash + rest
    for depth, key in enumerate(path.split("/")):
        if isinstance(at, list) and not key.isdecimal():
            at = {str(item.get("name")): item for item in at if isinstance(item, dict)}
        try:
            at = at[int(key)] if isinstance(at, list) else at[key]
        except (KeyError, IndexError, TypeError):
            there = "/".join(path.split("/")[:depth]) or "the result"
            known = (
                ", ".join(at)
                if isinstance(at, dict)
                else f"{len(at)} items"
                if isinstance(at, list)
                else "a value"
            )
            raise InputError.of(
                f"keep {path}", f"there is no {key!r} in {there}", f"there is: {known:.300}"
            ) from None
    if isinstance(at, bool) or at is None or isinstance(at, int | float):
        return float("nan") if at is None else float(at)
    raise InputError.of(
        f"keep {path}", f"is no number but {at!r:.60}", "name a number of the result"
    )


def calculation(
    name: str,
    mechanism: Mechanism | DriveLine,
    names: Sequence[str],
    texts: Mapping[str, Any],
    keep: Mapping[str, str],
) -> Calculation:
    """What computes samples.

    Args:
        name: of `CALCULATIONS`.
        mechanism: the machine, or the drive line.
        names: leaf parameters that vary.
        texts: options, the same in all samples.
        keep: paths of the scalars that are kept, by name.

    Raises:
        InputError: unknown options, or values that they refuse.
    """
    if name == "accuracy" and isinstance(mechanism, Mechanism):
        return AccuracyOfMany(mechanism, names, options_from(AccuracyOptions, texts))
    return OneByOne(CALCULATIONS[name], mechanism, texts, keep)
