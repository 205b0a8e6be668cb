"""The file of a study: machine, variations, calculation, and stored results.

format: tauloop-study/1
machine: delta
samples: 1000
seed: 1
vary:
  arm_length: {normal: 20 um}
compute: {result: accuracy, options: {poses: 1000}}
yield: {largest: {most: 0.1 mm}}
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tauloop.common.errors import InputError, TauloopError
from tauloop.common.keywords import keywords
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.drives import DriveLine
from tauloop.drives.reader import drive_text, read_drive
from tauloop.formats.library import format_of, is_shipped_name, load, loads, source_path
from tauloop.formats.writing.yaml_writer import dumps
from tauloop.mechanism.description.cursor import (
    Choice,
    Cursor,
    Either,
    ListOf,
    MapOf,
    Shape,
    Text,
    Whole,
    field,
    need,
)
from tauloop.mechanism.description.documents import contents
from tauloop.mechanism.description.structure import document
from tauloop.mechanism.description.units import ONE, UnitError, literal, parse_unit, read_quantity
from tauloop.mechanism.description.values import ValueReader
from tauloop.mechanism.description.yaml_nodes import parse_nodes, read_text
from tauloop.mechanism.model import Mechanism
from tauloop.mechanism.suggestions import unknown_names
from tauloop.study.calculations import CALCULATIONS, LOG, OPTION, Command, current_path
from tauloop.study.option_texts import options_from
from tauloop.study.variations import DRAWN, VariedInput, count_of

STUDY_FORMAT = "tauloop-study/1"
#: Maximum number of samples of a study.
MAX_STUDY_SAMPLES = 10**9 - 1
#: Default quantiles of the report.
DEFAULT_QUANTILES = (0.05, 0.5, 0.95, 0.99)
_TEXT = Text(is_needed=True)
_TEXT_OR_LIST = Either(kinds=(_TEXT, ListOf(item=_TEXT)))
VARIATION = Shape(
    name="variation",
    doc="Variation of one input: exactly one of `normal`, `uniform`, `grid`, `list`, `numbers`.",
    fields=(
        field("normal", _TEXT, "standard deviation of a normal distribution"),
        field("uniform", _TEXT, "half-width of a uniform distribution"),
        field("about", _TEXT, "mean of the distribution; by default the value in the machine file"),
        field("grid", ListOf(item=_TEXT, length=2), "first and last value of a grid"),
        field(
            "steps",
            Whole(least=2, most=1_000_000),
            "number of values of the grid, including the first and the last",
        ),
        field("list", ListOf(item=_TEXT), "list of values"),
        field(
            "numbers",
            Whole(least=1, most=1_000_000),
            "number of integers from 0 on, such as seeds of an option",
        ),
    ),
)
COMPUTE = Shape(
    name="calculation",
    doc="Calculation for each sample.",
    fields=(
        need(
            "result",
            Choice(options=tuple(CALCULATIONS)),
            "accuracy, or the name of a command",
        ),
        field(
            "options",
            MapOf(item=_TEXT_OR_LIST, key="option", is_known=True),
            "options of the command, as on the command line",
        ),
    ),
)
LIMIT = Shape(
    name="limit",
    doc="Limits within which a sample passes.",
    fields=(field("least", _TEXT, "lower limit"), field("most", _TEXT, "upper limit")),
)
STUDY = Shape(
    name="study",
    doc="A study.",
    fields=(
        need("format", Choice(options=(STUDY_FORMAT,)), "format and version"),
        field("description", Text(), "purpose of the study"),
        need("machine", _TEXT, "a shipped machine or drive line, or a file next to this one"),
        field(
            "samples",
            Whole(least=1, most=MAX_STUDY_SAMPLES),
            "number of draws for each combination of grids and lists; 1 by default",
        ),
        field("seed", Whole(least=0, most=MAX_STUDY_SAMPLES), "seed of the draws; 0 by default"),
        field(
            "design",
            Choice(options=("random", "sobol")),
            "sobol: design for Sobol indices; random by default",
        ),
        field(
            "vary",
            MapOf(item=VARIATION, key="input", is_known=True),
            "parameters of the machine, `log`, `options.NAME`, and `options.NAME.KEY` for KEY=VALUE options",
        ),
        need("compute", COMPUTE, "the calculation"),
        field(
            "keep",
            MapOf(item=_TEXT, key="scalar", is_known=True),
            "stored numbers of the result, such as `diagnostics/NAME/value`",
        ),
        field(
            "whole",
            ListOf(item=Whole(least=0, most=MAX_STUDY_SAMPLES)),
            "indices of samples whose complete results are stored",
        ),
        field(
            "yield",
            MapOf(item=LIMIT, key="scalar", is_known=True),
            "limits within which a sample passes",
        ),
        field("quantiles", ListOf(item=_TEXT), "quantiles of the report, 0 to 1"),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Study(ReprMixin):
    """A study, with all data that a worker needs to compute a sample.

    Attributes:
        machine: name of the machine.
        machine_text: text of the machine file.
        variations: varied inputs; a grid is stored as the list of its values.
        samples: number of random draws for each combination of values of grids and lists; the total
            number of samples is `count`.
        seed: seed of the draws.
        design: "random" or "sobol".
        result: name of the calculation.
        options: options of the calculation, as texts.
        keep: paths of stored numbers of the result, by name; empty to store the numbers that the
            calculation defines.
        whole: indices of samples whose complete results are stored.
        limits: lower and upper limit within which a sample passes, by scalar, SI.
        quantiles: quantiles of the report.

    Examples:
        >>> from tauloop.study import loads_study
        >>> text = "{format: tauloop-study/1, machine: delta, compute: {result: check}, keep: {n: mobility}}"
        >>> loads_study(text).count
        1
    """

    machine: str
    machine_text: str
    variations: tuple[VariedInput, ...] = ()
    samples: int = 1
    seed: int = 0
    design: str = "random"
    result: str = "accuracy"
    options: Mapping[str, Any]
    keep: Mapping[str, str]
    whole: tuple[int, ...] = ()
    limits: Mapping[str, tuple[float, float]]
    quantiles: tuple[float, ...] = DEFAULT_QUANTILES

    @property
    def drawn(self) -> tuple[VariedInput, ...]:
        """Variations with a random distribution, as opposed to lists and grids."""
        return tuple(item for item in self.variations if item.is_drawn)

    @property
    def parameters(self) -> tuple[str, ...]:
        """Independent parameters that vary."""
        return tuple(
            v.name for v in self.variations if v.name != LOG and not v.name.startswith(OPTION)
        )

    @property
    def scalars(self) -> dict[str, str]:
        """Names of the stored numbers, with their SI units ("" if unknown)."""
        if self.keep:
            return dict.fromkeys(self.keep, "")
        return dict(CALCULATIONS[self.result].units)

    @property
    def count(self) -> int:
        """Total number of samples."""
        if self.design == "sobol":
            return self.samples * (len(self.drawn) + 2)
        return count_of(self.variations, self.samples)

    @property
    def mechanism(self) -> Mechanism | DriveLine:
        """The machine, or the drive line."""
        if CALCULATIONS[self.result].is_line:
            return read_drive(self.machine_text, self.machine)
        return loads(self.machine_text, self.machine)

    @property
    def content(self) -> str:
        """All data that determine the results, as JSON."""
        variations = []
        for v in self.variations:
            values = [repr(value) for value in v.values]
            variations.append([v.name, v.kind, v.about.hex(), v.spread.hex(), values])
        data = {
            "machine": self.machine_text,
            "variations": variations,
            "samples": self.samples,
            "seed": self.seed,
            "design": self.design,
            "result": self.result,
            "options": self.options,
            "keep": self.keep,
            "whole": list(self.whole),
        }
        return json.dumps(data, sort_keys=True)

    @property
    def digest(self) -> str:
        """Hash of the content."""
        return hashlib.sha256(self.content.encode()).hexdigest()[:24]


@keywords()
def load_study(path: str | Path) -> Study:
    """Read a study.

    Args:
        path: the YAML file; paths of machines and logs are relative to its folder.

    Returns:
        The study, checked and without results.

    Raises:
        DescriptionError: all errors, with lines.

    Examples:
        >>> import tauloop as tl
        >>> tl.load_study("examples/delta_tolerances/study.yaml").count
        100000
    """
    path = Path(path)
    return loads_study(read_text(path), str(path), path.parent)


def loads_study(text: str, file: str = "<text>", folder: Path | None = None) -> Study:
    """Return a study from its text.

    Args:
        text: text of a study file.
        file: name of the file, for messages.
        folder: folder of the machines and logs that the text refers to.

    Raises:
        DescriptionError: all errors, with lines.
    """
    root = document(parse_nodes(text, file), file, STUDY, folder)
    root.collector.raise_any()  # entries with a wrong form cannot be processed further
    content = contents(root, ValueReader(None)) or {}
    command = CALCULATIONS.get((content.get("compute") or {}).get("result") or "")
    is_line = command is not None and command.is_line
    mechanism, machine_text = _read_machine(root.get("machine"), folder or Path(), is_line)
    variations = []
    for name, cursor in root.entries_of("vary"):
        variation = None if mechanism is None else _variation(name, cursor, mechanism, folder)
        if variation is not None:
            variations.append(variation)
    if command is not None:
        compute = content["compute"]
        options = compute.get("options") or {}
        _note_old_options(root, command)
        compute["options"] = {command.current_name(name): text for name, text in options.items()}
        variations = [replace(item, name=_current_name(command, item.name)) for item in variations]
    if command is not None and mechanism is not None:
        _check_calculation(root, content, [item.name for item in variations])
    _check_samples(root, content, variations)
    paths = {name: path for name, path in (content.get("keep") or {}).items() if path}
    keep = {name: current_path(path) for name, path in paths.items()}
    for name, cursor in root.entries_of("keep"):
        if keep.get(name) != paths.get(name):
            root.collector.note_old_key(f"keep {paths[name]}", keep[name], cursor.line)
    scalars = keep if keep or command is None else command.units
    limits: dict[str, tuple[float, float]] = {}
    for name, cursor in root.entries_of("yield"):
        if scalars and name not in scalars:
            cursor.problem("is not a stored scalar", f"choose among {', '.join(scalars)}")
        else:
            limits[name] = _limits(cursor, scalars.get(name, "") if scalars is not keep else "")
    quantiles = [_quantile(item) for item in root.items_of("quantiles")]
    root.collector.raise_any()
    assert mechanism is not None
    return Study(
        machine=mechanism.name,
        machine_text=machine_text,
        variations=tuple(variations),
        samples=content.get("samples", 1),
        seed=content.get("seed", 0),
        design=content.get("design", "random"),
        result=content["compute"]["result"],
        options=content["compute"].get("options", {}),
        keep=keep,
        whole=tuple(content.get("whole", ())),
        limits=limits,
        quantiles=tuple(quantiles) or DEFAULT_QUANTILES,
    )


def _read_machine(
    cursor: Cursor | None, folder: Path, is_line: bool
) -> tuple[Mechanism | DriveLine | None, str]:
    """Return the machine or drive line, and the text of its file.

    Files of other tools are converted to machine files. A file that refers to other files is
    rejected, because workers receive only its text. If the machine is missing or has problems,
    which are recorded, the result is None and "".
    """
    name = cursor.text if cursor is not None else None
    if cursor is None or not name:
        return None, ""
    try:
        if is_line:
            text, _ = drive_text(name if name.isidentifier() else folder / name)
            return read_drive(text, name), text
        path: str | Path = name if is_shipped_name(name) else folder / name
        mechanism = load(path)
        source = source_path(path)
        is_machine_file = is_shipped_name(name) or format_of(source).name == "yaml"
        text = read_text(source) if is_machine_file else dumps(mechanism)
        return loads(text, name), text
    except TauloopError as error:
        for problem in error.problems:
            cursor.problem(
                str(problem),
                "use a machine that comes with Tauloop, or a file next to this one that does not "
                "refer to other files",
            )
        return None, ""


def _variation(
    name: str, cursor: Cursor, mechanism: Mechanism | DriveLine, folder: Path | None
) -> VariedInput | None:
    """Return one variation; None if it cannot be read, which is recorded as a problem."""
    content = contents(cursor, ValueReader(None)) or {}
    kinds = [kind for kind in ("normal", "uniform", "grid", "list", "numbers") if kind in content]
    if len(kinds) != 1:
        cursor.problem(
            "needs exactly one of normal, uniform, grid, list and numbers", "give one of them"
        )
        return None
    kind = kinds[0]
    for key, suitable_kinds in {"about": DRAWN, "steps": ("grid",)}.items():
        if key in content and kind not in suitable_kinds:
            cursor.problem(f"{key} has no effect with {kind}", "remove it", key)
    is_parameter = name != LOG and not name.startswith(OPTION)
    if is_parameter and isinstance(mechanism, DriveLine):
        cursor.problem(
            "parameters of a drive line vary as options.values", 'write list: ["kp=150", "kp=160"]'
        )
        return None
    if is_parameter and name not in mechanism.parameters.names:
        cursor.problem(f"{mechanism.name} has no such parameter", mechanism.parameters.near(name))
        return None
    if name == LOG and kind not in ("list", "numbers"):
        cursor.problem("logs can only be given as a list", "write list: [...]")
        return None
    if kind == "numbers":
        if is_parameter or name == LOG:
            cursor.problem(
                "`numbers` can only vary options, such as seeds and counts",
                "write list: [...]" if name == LOG else "write grid: [first, last] and steps: N",
            )
            return None
        return VariedInput(
            name=name, kind="list", values=tuple(map(str, range(content["numbers"] or 1)))
        )
    if kind == "list" and not is_parameter:
        texts = [str(value) for value in content["list"]]
        if name == LOG and folder is not None:
            texts = [
                str((folder / text).absolute()) for text in texts
            ]  # workers may have another working directory
        return VariedInput(name=name, kind="list", values=tuple(texts))
    if isinstance(mechanism, Mechanism) and is_parameter:
        parameter = mechanism.parameters[name]
        nominal = parameter.value
        dimension = parse_unit(parameter.unit).dimension if parameter.unit else ONE
    else:  # an option: the dimension of the first number
        try:
            first_text = content["grid"][0] if kind == "grid" else content[kind]
            dimension = literal(first_text or "").dimension
        except UnitError as error:
            cursor.problem(error.what, error.remedy, kind)
            return None
        nominal = math.nan
        if kind != "grid" and "about" not in content:
            cursor.problem(
                "a distribution of an option needs a mean", "add `about: VALUE`, the mean", kind
            )

    def read(text: str | None, key: str) -> float:
        """Return a number in SI units; NaN if it has a problem, which is recorded."""
        try:
            return read_quantity(text or "", dimension).value
        except UnitError as error:
            cursor.problem(error.what, error.remedy, key)
            return math.nan

    unit = "" if dimension == ONE else str(dimension)
    if kind == "list":
        return VariedInput(
            name=name,
            kind="list",
            values=tuple(read(text, "list") for text in content["list"]),
            unit=unit,
        )
    if kind == "grid":
        if "steps" not in content:
            cursor.problem("a grid needs a number of values", "give `steps`")
            return None
        first = read(content["grid"][0], "grid")
        last = read(content["grid"][1], "grid")
        n = max(content["steps"] or 2, 2)  # smaller numbers are recorded as a problem
        values = tuple(first + (last - first) * (k / (n - 1)) for k in range(n))
        return VariedInput(name=name, kind="list", values=values, unit=unit)
    about = read(content["about"], "about") if "about" in content else nominal
    spread = read(content[kind], kind)
    if spread <= 0.0:
        cursor.problem("must be positive", f"give a positive value, or remove {name}", kind)
    return VariedInput(name=name, kind=kind, about=about, spread=spread, unit=unit)


def _note_old_options(root: Cursor, command: Command) -> None:
    """Warn of old names of options, and record a problem if the new name is given too."""
    compute = root.get("compute")
    assert compute is not None
    options = compute.entries_of("options")
    current = [command.current_name(name) for name, _ in options]
    for (name, cursor), new in zip(options, current, strict=True):
        if new != name and current.count(new) > 1:
            cursor.problem(f"is the old name of {new}, which is also given", f"give only {new}")
    varied = [
        (name.removeprefix(OPTION).partition(".")[0], cursor)
        for name, cursor in root.entries_of("vary")
        if name.startswith(OPTION)
    ]
    for name, cursor in [*options, *varied]:
        new = command.current_name(name)
        if new != name:
            root.collector.note_old_key(f"option {name} of a study", new, cursor.line)


def _current_name(command: Command, name: str) -> str:
    """Return the name of a variation, with the current name of its option."""
    if not name.startswith(OPTION):
        return name
    option, dot, key = name.removeprefix(OPTION).partition(".")
    return f"{OPTION}{command.current_name(option)}{dot}{key}"


def _check_calculation(root: Cursor, content: Mapping[str, Any], names: list[str]) -> None:
    """Record problems of inputs and options that do not suit the calculation."""
    compute = root.get("compute")
    assert compute is not None
    result = content["compute"]["result"]
    command = CALCULATIONS[result]
    known = command.option_names
    for name in names:
        option, _, key = name.removeprefix(OPTION).partition(".")
        if name.startswith(OPTION) and option not in known:
            root.problem(
                f"{result} has no option {option!r}", f"choose among {', '.join(known)}", "vary"
            )
        elif key and OPTION + option in names:
            root.problem(
                f"both {option} and its {key} vary", "remove one of the variations", "vary"
            )
        elif result == "accuracy" and (name == LOG or name.startswith(OPTION)):
            root.problem(f"accuracy cannot vary {name}", "vary parameters of the machine", "vary")
    if command.has_log != (LOG in names):
        if command.has_log:
            root.problem(f"{result} needs logs", "give vary: {log: {list: [...]}}")
        else:
            root.problem(f"{result} does not use a log", "remove log")
    if result != "accuracy" and not content.get("keep"):
        root.problem(
            f"no number of the result of {result} is stored",
            "give keep: {NAME: PATH}, such as diagnostics/NAME/value",
        )
    if result == "accuracy" and content.get("keep"):
        root.problem(
            "accuracy always stores the same numbers",
            f"remove keep; the numbers are {', '.join(command.units)}",
            "keep",
        )
    texts = content["compute"].get("options") or {}
    try:
        InputError.raise_if_any(unknown_names(texts, known, f"is not an option of {result}"))
        if not any(name.startswith(OPTION) for name in names):
            options_from(
                command.options,
                {k: text for k, text in texts.items() if k not in command.arguments},
            )
    except InputError as error:
        for problem in error.problems:
            compute.problem(f"{problem.where}: {problem.what}", problem.remedy, "options")


def _check_samples(root: Cursor, content: Mapping[str, Any], variations: list[VariedInput]) -> None:
    """Record problems of the number of samples, and of designs for Sobol indices."""
    lists = [item.name for item in variations if not item.is_drawn]
    drawn = [item.name for item in variations if item.is_drawn]
    samples = content.get("samples") or 1
    is_sobol = content.get("design") == "sobol"
    count = samples * (len(drawn) + 2) if is_sobol else count_of(variations, samples)
    if count > MAX_STUDY_SAMPLES:
        root.problem(
            f"{count} samples are more than {MAX_STUDY_SAMPLES}",
            "use fewer samples, or shorter lists",
            "samples",
        )
    if samples > 1 and not drawn and len(lists) == len(root.entries_of("vary")) and not is_sobol:
        root.problem(
            f"nothing is random, so all {samples} samples would be equal",
            "add a distribution, or remove samples",
            "samples",
        )
    for number in content.get("whole") or ():
        if number is not None and number >= count:
            root.problem(
                f"there is no sample {number}", f"use numbers from 0 to {count - 1}", "whole"
            )
    if is_sobol and not root.has("vary"):
        root.problem(
            "Sobol indices need varied inputs", "add `vary` with normal or uniform distributions"
        )
    elif is_sobol and lists:
        root.problem(
            f"Sobol indices need normal or uniform distributions, which {', '.join(lists)} lack",
            "use normal or uniform",
            "vary",
        )
    if is_sobol and (samples < 2 or samples & (samples - 1)):
        root.problem(
            f"{samples} is not a power of two (2 or more)",
            f"write {1 << samples.bit_length()}",
            "samples",
        )


def _limits(cursor: Cursor, unit: str) -> tuple[float, float]:
    """Return the lower and upper limit within which a sample passes, SI.

    If the unit is unknown (""), any dimension is allowed.
    """
    limits = {"least": -math.inf, "most": math.inf}
    for key in limits:
        text = cursor.word(key)
        if not text:
            continue
        try:
            if unit:
                quantity = read_quantity(text, parse_unit(unit).dimension, is_si=True)
            else:
                quantity = literal(text)
            limits[key] = quantity.value
        except UnitError as error:
            cursor.problem(error.what, error.remedy, key)
    if limits["least"] > limits["most"]:
        cursor.problem(
            f"no sample can pass: `least` is {limits['least']:g} and `most` is {limits['most']:g} (SI)",
            "swap the two limits",
        )
    return limits["least"], limits["most"]


def _quantile(cursor: Cursor) -> float:
    """Return a quantile, and record a problem if it is not between 0 and 1."""
    try:
        fraction = float(cursor.text or "")
    except ValueError:
        fraction = math.nan
    if not 0.0 <= fraction <= 1.0:
        cursor.problem("is not a quantile between 0 and 1", "write a number from 0 to 1")
    return fraction
