"""A study as a file: a machine, what varies, what is computed, what is kept.

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
from pathlib import Path
from typing import Any

from tauloop.common.errors import InputError, TauloopError
from tauloop.common.keywords import keywords
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.drives import DriveLine
from tauloop.drives.reader import drive_text, read_drive
from tauloop.formats.library import format_of, load, loads
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
from tauloop.mechanism.shipped import is_shipped_name, source_path
from tauloop.mechanism.suggestions import unknown_names
from tauloop.study.calculations import CALCULATIONS, LOG, OPTION
from tauloop.study.option_texts import options_from
from tauloop.study.variations import DRAWN, VariedInput, count_of

FORMAT = "tauloop-study/1"
#: Most samples of a study.
MOST = 10**9 - 1
#: Shares of samples below quantiles that are reported, where a file names none.
QUANTILES = (0.05, 0.5, 0.95, 0.99)
_TEXT = Text(is_needed=True)
_TEXTS = Either(kinds=(_TEXT, ListOf(item=_TEXT)))
VARIATION = Shape(
    name="variation",
    doc="What one input is from sample to sample: exactly one of `normal`, `uniform`, `grid`, `list`, `numbers`.",
    fields=(
        field("normal", _TEXT, "standard deviation of a normal distribution"),
        field("uniform", _TEXT, "half of the width of a uniform distribution"),
        field("about", _TEXT, "middle of the distribution; that of the machine if absent"),
        field("grid", ListOf(item=_TEXT, length=2), "first and last value of a grid"),
        field("steps", Whole(least=2, most=1_000_000), "values of the grid"),
        field("list", ListOf(item=_TEXT), "values, one after the other"),
        field(
            "numbers",
            Whole(least=1, most=1_000_000),
            "so many whole numbers from 0 on, such as seeds of an option",
        ),
    ),
)
COMPUTE = Shape(
    name="calculation",
    doc="What is computed of each sample.",
    fields=(
        need(
            "result",
            Choice(options=tuple(CALCULATIONS)),
            "accuracy, or the command whose result it is",
        ),
        field(
            "options",
            MapOf(item=_TEXTS, key="option", is_known=True),
            "its options, as the command line has them",
        ),
    ),
)
LIMIT = Shape(
    name="limit",
    doc="Between which values a sample passes.",
    fields=(field("least", _TEXT, "lower end"), field("most", _TEXT, "upper end")),
)
STUDY = Shape(
    name="study",
    doc="A study.",
    fields=(
        need("format", Choice(options=(FORMAT,)), "format and version"),
        field("description", Text(), "what is asked"),
        need("machine", _TEXT, "a shipped machine or drive line, or a file beside this one"),
        field(
            "samples",
            Whole(least=1, most=MOST),
            "draws, of each combination of grids and lists; 1 if absent",
        ),
        field("seed", Whole(least=0, most=MOST), "of the draws; 0 if absent"),
        field(
            "design",
            Choice(options=("random", "sobol")),
            "sobol: for Sobol indices; random if absent",
        ),
        field(
            "vary",
            MapOf(item=VARIATION, key="input", is_known=True),
            "parameters of the machine, `log`, `options.NAME`, and `options.NAME.KEY` where it has KEY=VALUE",
        ),
        need("compute", COMPUTE, "what is computed"),
        field(
            "keep",
            MapOf(item=_TEXT, key="scalar", is_known=True),
            "numbers of the result: `diagnostics/NAME/value`",
        ),
        field(
            "whole", ListOf(item=Whole(least=0, most=MOST)), "samples whose results are kept whole"
        ),
        field(
            "yield",
            MapOf(item=LIMIT, key="scalar", is_known=True),
            "limits within which a sample passes",
        ),
        field("quantiles", ListOf(item=_TEXT), "shares of samples, 0 to 1"),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Study(ReprMixin):
    """A study, with all that a worker needs to compute a sample.

    Attributes:
        machine: its name.
        machine_text: its machine file.
        variations: what varies.
        samples: draws of each combination of lists.
        seed: of the draws.
        design: "random" or "sobol".
        result: name of the calculation.
        options: texts of its options.
        keep: paths of numbers of the result, by name; empty for the calculation's own.
        whole: samples whose results are kept whole.
        limits: least and greatest value with which a sample passes, by scalar, SI.
        quantiles: shares of samples.

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
    quantiles: tuple[float, ...] = QUANTILES

    @property
    def drawn(self) -> tuple[VariedInput, ...]:
        """Variations that are drawn."""
        return tuple(item for item in self.variations if item.is_drawn)

    @property
    def parameters(self) -> tuple[str, ...]:
        """Leaf parameters that vary."""
        return tuple(
            v.name for v in self.variations if v.name != LOG and not v.name.startswith(OPTION)
        )

    @property
    def scalars(self) -> dict[str, str]:
        """Names of the numbers that are kept, with their SI units ("" where nothing is known)."""
        return (
            dict(CALCULATIONS[self.result].units) if not self.keep else dict.fromkeys(self.keep, "")
        )

    @property
    def count(self) -> int:
        """Number of samples."""
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
        """All that decides the numbers, as JSON."""
        data = {
            "machine": self.machine_text,
            "variations": [
                [v.name, v.kind, v.about.hex(), v.spread.hex(), [repr(value) for value in v.values]]
                for v in self.variations
            ],
            **{
                name: getattr(self, name)
                for name in ("samples", "seed", "design", "result", "options", "keep")
            },
            "whole": list(self.whole),
        }
        return json.dumps(data, sort_keys=True)

    @property
    def digest(self) -> str:
        """Hash of it."""
        return hashlib.sha256(self.content.encode()).hexdigest()[:24]


@keywords()
def load_study(path: str | Path) -> Study:
    """Read a study.

    Args:
        path: the YAML file; machines and logs that it names lie beside it.

    Raises:
        DescriptionError: everything that is wrong, with lines.

    Examples:
        >>> import tauloop as tl
        >>> tl.load_study("examples/delta_tolerances/study.yaml").count
        100000
    """
    path = Path(path)
    return loads_study(read_text(path), str(path), path.parent)


def loads_study(text: str, file: str = "<text>", folder: Path | None = None) -> Study:
    """A study from its text.

    Args:
        text: of a study file.
        file: a name for it, for messages.
        folder: where machines and logs lie that it names.

    Raises:
        DescriptionError: everything that is wrong, with lines.
    """
    root = document(parse_nodes(text, file), file, STUDY, folder)
    root.collector.raise_any()  # what does not have its form cannot be read any further
    content = contents(root, ValueReader(None)) or {}
    command = CALCULATIONS.get((content.get("compute") or {}).get("result") or "")
    is_line = command is not None and command.is_line
    mechanism, machine_text = _described(root.get("machine"), folder or Path(), is_line)
    variations = []
    for name, place in root.entries_of("vary"):
        if (
            mechanism is not None
            and (variation := _variation(name, place, mechanism, folder)) is not None
        ):
            variations.append(variation)
    if command is not None and mechanism is not None:
        _check_calculation(root, content, [item.name for item in variations])
    _check_samples(root, content, variations)
    keep = {name: path for name, path in (content.get("keep") or {}).items() if path}
    scalars = keep if keep or command is None else command.units
    limits: dict[str, tuple[float, float]] = {}
    for name, place in root.entries_of("yield"):
        if scalars and name not in scalars:
            place.problem("is no scalar that is kept", f"there are {', '.join(scalars)}")
        else:
            limits[name] = _limits(place, scalars.get(name, "") if scalars is not keep else "")
    quantiles = [_share(item) for item in root.items_of("quantiles")]
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
        quantiles=tuple(quantiles) or QUANTILES,
    )


def _described(
    place: Cursor | None, folder: Path, is_line: bool
) -> tuple[Mechanism | DriveLine | None, str]:
    """The machine, or the drive line, and the text of its file; written anew where it is another tool's. None without.

    A file that names others is refused: workers get its text alone.
    """
    name = place.text if place is not None else None
    if place is None or not name:
        return None, ""
    try:
        if is_line:
            text, _ = drive_text(name if name.isidentifier() else folder / name)
            return read_drive(text, name), text
        path: str | Path = name if is_shipped_name(name) else folder / name
        mechanism, source = load(path), source_path(path)
        is_own = is_shipped_name(name) or format_of(source).name == "yaml"
        text = read_text(source) if is_own else dumps(mechanism)
        return loads(text, name), text
    except TauloopError as error:
        for problem in error.problems:
            place.problem(
                str(problem),
                "one that comes with Tauloop, or a file beside this one that stands alone",
            )
        return None, ""


def _variation(
    name: str, place: Cursor, mechanism: Mechanism | DriveLine, folder: Path | None
) -> VariedInput | None:
    """One variation; None where it cannot be read, which is noted."""
    content = contents(place, ValueReader(None)) or {}
    kinds = [kind for kind in ("normal", "uniform", "grid", "list", "numbers") if kind in content]
    if len(kinds) != 1:
        place.problem(
            "has not exactly one of normal, uniform, grid, list and numbers", "give one of them"
        )
        return None
    kind = kinds[0]
    for key, kinds_with in {"about": DRAWN, "steps": ("grid",)}.items():
        if key in content and kind not in kinds_with:
            place.problem(f"{key} says nothing beside {kind}", "leave it out", key)
    is_parameter = name != LOG and not name.startswith(OPTION)
    if is_parameter and isinstance(mechanism, DriveLine):
        place.problem(
            "parameters of a drive line vary as options.values", 'write list: ["kp=150", "kp=160"]'
        )
        return None
    if is_parameter and name not in mechanism.parameters.names:
        place.problem(f"{mechanism.name} has no such parameter", mechanism.parameters.near(name))
        return None
    if name == LOG and kind not in ("list", "numbers"):
        place.problem("logs can only be listed", "write list: [...]")
        return None
    if kind == "numbers":
        if is_parameter or name == LOG:
            place.problem("numbers are seeds and counts of options", "write grid: [first, last]")
            return None
        return VariedInput(
            name=name, kind="list", values=tuple(map(str, range(content["numbers"] or 1)))
        )
    if kind == "list" and not is_parameter:
        texts = [str(value) for value in content["list"]]
        if name == LOG and folder is not None:
            texts = [str((folder / text).absolute()) for text in texts]  # workers may be elsewhere
        return VariedInput(name=name, kind="list", values=tuple(texts))
    if isinstance(mechanism, Mechanism) and is_parameter:
        parameter = mechanism.parameters[name]
        nominal, dimension = (
            parameter.value,
            parse_unit(parameter.unit).dimension if parameter.unit else ONE,
        )
    else:  # an option's: what the first number says
        try:
            dimension = literal(
                (content["grid"][0] if kind == "grid" else content[kind]) or ""
            ).dimension
        except UnitError as error:
            place.problem(error.what, error.remedy, kind)
            return None
        nominal = math.nan
        if kind != "grid" and "about" not in content:
            place.problem("a distribution of an option has no middle", "give about", kind)

    def read(text: str | None, key: str) -> float:
        try:
            return read_quantity(text or "", dimension).value
        except UnitError as error:
            place.problem(error.what, error.remedy, key)
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
            place.problem("a grid has no number of values", "give steps")
            return None
        first, last = (read(text, "grid") for text in content["grid"])
        n = max(content["steps"] or 2, 2)  # less is noted
        values = tuple(first + (last - first) * (k / (n - 1)) for k in range(n))
        return VariedInput(name=name, kind="list", values=values, unit=unit)
    about = read(content["about"], "about") if "about" in content else nominal
    spread = read(content[kind], kind)
    if spread <= 0.0:
        place.problem("must be positive", f"write the size of {kind}, or leave {name} out", kind)
    return VariedInput(name=name, kind=kind, about=about, spread=spread, unit=unit)


def _check_calculation(root: Cursor, content: Mapping[str, Any], names: list[str]) -> None:
    """Note what does not go together with the calculation."""
    compute = root.get("compute")
    assert compute is not None
    result, command = content["compute"]["result"], CALCULATIONS[content["compute"]["result"]]
    known = command.option_names
    for name in names:
        option, _, key = name.removeprefix(OPTION).partition(".")
        if name.startswith(OPTION) and option not in known:
            root.problem(
                f"{result} has no option {option!r}", f"there are {', '.join(known)}", "vary"
            )
        elif key and OPTION + option in names:
            root.problem(
                f"{option} varies as a whole and by its {key}", "leave one of them out", "vary"
            )
        elif result == "accuracy" and (name == LOG or name.startswith(OPTION)):
            root.problem(f"accuracy cannot vary {name}", "vary parameters of the machine", "vary")
    if command.has_log != (LOG in names):
        what = f"{result} needs logs" if command.has_log else f"{result} takes no log"
        root.problem(
            what, "give vary: {log: {list: [...]}}" if command.has_log else "leave log out"
        )
    if result != "accuracy" and not content.get("keep"):
        root.problem(
            f"nothing of the result of {result} is kept",
            "give keep: {NAME: PATH}, such as diagnostics/NAME/value",
        )
    if result == "accuracy" and content.get("keep"):
        root.problem(
            "accuracy keeps its own numbers",
            f"leave it out; there are {', '.join(command.units)}",
            "keep",
        )
    texts = content["compute"].get("options") or {}
    try:
        InputError.raise_if_any(unknown_names(texts, known, f"is no option of {result}"))
        if not any(name.startswith(OPTION) for name in names):
            options_from(
                command.options,
                {k: text for k, text in texts.items() if k not in command.arguments},
            )
    except InputError as error:
        for problem in error.problems:
            compute.problem(f"{problem.where}: {problem.what}", problem.remedy, "options")


def _check_samples(root: Cursor, content: Mapping[str, Any], variations: list[VariedInput]) -> None:
    """Note what is wrong with the number of samples, and what Sobol indices cannot do with."""
    listed, drawn = (
        [item.name for item in variations if item.is_drawn is kind] for kind in (False, True)
    )
    samples, is_sobol = content.get("samples") or 1, content.get("design") == "sobol"
    count = samples * (len(drawn) + 2) if is_sobol else count_of(variations, samples)
    if count > MOST:
        root.problem(
            f"these are {count} samples, more than {MOST}",
            "take fewer of them, or shorter lists",
            "samples",
        )
    if samples > 1 and not drawn and len(listed) == len(root.entries_of("vary")) and not is_sobol:
        root.problem(
            f"nothing is drawn: {samples} samples would all be the same",
            "draw, or leave it out",
            "samples",
        )
    for number in content.get("whole") or ():
        if number is not None and number >= count:
            root.problem(
                f"there is no sample {number}", f"they are numbered from 0 to {count - 1}", "whole"
            )
    if is_sobol and (listed or not root.has("vary")):
        root.problem(
            f"Sobol indices are of distributions; {', '.join(listed) or 'what varies'} is none",
            "draw it",
            "vary",
        )
    if is_sobol and (samples < 2 or samples & (samples - 1)):
        root.problem(
            f"{samples} is no power of two from 2 on",
            f"write {1 << samples.bit_length()}",
            "samples",
        )


def _limits(place: Cursor, unit: str) -> tuple[float, float]:
    """Least and greatest value, of any dimension where the scalar's unit is not known."""
    at = {"least": -math.inf, "most": math.inf}
    for key in filter(place.word, at):
        try:
            text = str(place.word(key))
            at[key] = (
                read_quantity(text, parse_unit(unit).dimension, is_si=True)
                if unit
                else literal(text)
            ).value
        except UnitError as error:
            place.problem(error.what, error.remedy, key)
    if at["least"] > at["most"]:
        place.problem(
            f"nothing passes: least is {at['least']:g}, most {at['most']:g} (SI)", "turn them round"
        )
    return at["least"], at["most"]


def _share(place: Cursor) -> float:
    try:
        share = float(place.text or "")
    except ValueError:
        share = math.nan
    if not 0.0 <= share <= 1.0:
        place.problem("is no share of the samples", "write a number from 0 to 1")
    return share
