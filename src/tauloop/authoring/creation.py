"""New machine files with the user's dimensions: writing, check, and remedies if unsuitable."""

from __future__ import annotations

import contextlib
import itertools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from types import MappingProxyType

import numpy as np

from tauloop.authoring.scaling import scaled_defaults, smaller_work_volumes
from tauloop.authoring.templates import TEMPLATES
from tauloop.authoring.text import NamedValue, named_values, with_values
from tauloop.common.datasets import tabulated
from tauloop.common.errors import DescriptionError, InputError, PoseError, Problem, TauloopError
from tauloop.common.files import write_text
from tauloop.common.keywords import keywords
from tauloop.common.names.deprecated import old_attribute
from tauloop.common.options import Options, option, pairs_reader
from tauloop.common.plain import OMITTED, json_keys
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, Result, diagnostic, provenance
from tauloop.formats.library import FORMATS, format_of, is_shipped_name, load, source_path
from tauloop.formats.options import ImportOptions
from tauloop.kinematics.inspection import Inspection, check
from tauloop.kinematics.workspaces.map import Reason, workspace_grid
from tauloop.mechanism.description.reader import read_machine
from tauloop.mechanism.description.schema import EDITOR_LINE, SCHEMA_FILE, json_schema
from tauloop.mechanism.description.structure import IDENTIFIER
from tauloop.mechanism.description.units import UnitError, literal
from tauloop.mechanism.description.yaml_nodes import read_text
from tauloop.mechanism.suggestions import suggestion
from tauloop.model import Model

#: Number of poses along each axis of the work volume (the required workspace) that a machine must
#: reach.
POSES_PER_AXIS = 3
#: Factors that are tried for each dimension.
REMEDY_FACTORS = (1.25, 0.8, 2.0, 0.5)
#: Maximum number of reported remedies.
MAX_REMEDIES = 3
#: Number of bisections between a sufficient and the insufficient value.
REMEDY_BISECTIONS = 3
#: Effects that are reported with a remedy.
REACHES_VOLUME = "the machine reaches its whole work volume"
CLOSES = "the loops close"
#: SI units of values that may be tried: lengths and angles.
_GEOMETRY = ("m", "rad")


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMachineOptions(Options):
    """Options of a machine file that is created from another.

    Attributes:
        values: change parameters of the source, such as "arm_length=0.3 m"; numbers without a
            unit are in SI units. Other lengths, masses, inertias, forces and speeds of a template
            are scaled with the given lengths; values of other sources do not change.
        side: side file of a URDF.
        reading: import options of a URDF or MJCF.

    Examples:
        >>> import tauloop as tl
        >>> tl.NewMachineOptions(values={"arm_length": "250 mm"}).values
        {'arm_length': '250 mm'}
    """

    values: Mapping[str, str | float] = option(
        factory=dict,
        flag="--set",
        metavar="NAME=VALUE",
        read=pairs_reader("values", "arm_length=0.3m"),
        repeated=True,
        names="parameters",
    )
    side: Path | None = option(None, flag="")
    reading: ImportOptions | None = option(None, flag="")


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMachine(Result):
    """A new machine file with the result of its check.

    Attributes:
        text: text of the file.
        source: the template or file from which it was created.
        dimensions: named values of the file.
        changed: names of the values that the user has set.
        scaled: names of the template's values that were scaled with the user's lengths.
        inspection: result of `check`.
        remedies: changes of a single dimension with which the machine reaches its work volume.
        folder: folder of the files that its text refers to.
    """

    text: str = field(metadata=OMITTED)
    source: str
    dimensions: tuple[NamedValue, ...]
    changed: tuple[str, ...]
    scaled: tuple[str, ...]
    inspection: Inspection = field(
        metadata=json_keys("check", machine="model.mechanism.name")
        | tabulated("model.mechanism.parameters")
    )
    remedies: tuple[Problem, ...]
    folder: Path = field(metadata=OMITTED)

    cures = old_attribute("cures", "remedies")

    def write(self, path: str | Path) -> tuple[Path, ...]:
        """Write the machine file, and next to it the schema for editors.

        Returns:
            Paths of the machine file and of the schema.

        Raises:
            DescriptionError: files (drive lines, meshes) that the text refers to do not exist
                relative to the new folder.
            InputError: the folder does not exist or cannot be written.
        """
        path = Path(path)
        read_machine(self.text, path.name, path.parent)
        schema = json.dumps(json_schema(), indent=1) + "\n"
        return write_text(path, self.text), write_text(path.parent / SCHEMA_FILE, schema)


def dimensions(
    source: str | Path, stated: Mapping[str, str | float] = MappingProxyType({})
) -> tuple[NamedValue, ...]:
    """Return the values of a source with bounds and notes; all named values if none has bounds.

    Args:
        source: a template's name, a shipped machine, or a file.
        stated: values of the user; other values of a template are scaled with its lengths.

    Raises:
        DescriptionError: there is no such source, or it is invalid.
    """
    text = _source(source, NewMachineOptions(), "machine")[0]
    if str(source) in TEMPLATES:
        text = with_values(text, "machine", scaled_defaults(text, stated))
    items = [item for item, _ in named_values(text).values()]
    described = [item for item in items if item.bounds and item.note]
    if described:
        return tuple(described)
    return tuple(item for item in items if item.value is not None and "." not in item.name)


@keywords(NewMachineOptions)
def new_machine(
    name: str,
    source: str | Path,
    options: NewMachineOptions | None = None,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> NewMachine:
    """Return a machine file with the user's dimensions, and its check.

    Closure, mobility, units and reach over the work volume are checked. The work volume is the box
    of the platform's limits, or of the limits of the actuated joints if the platform has none.

    Args:
        name: name of the new machine.
        source: a template's name (`TEMPLATES`), a shipped machine, a machine file, a URDF or an
            MJCF.
        options: values of named parameters, and how the source is read.
        progress: function (completed trials, all trials), called if the machine does not reach its
            work volume and remedies are searched.

    Raises:
        DescriptionError: the source cannot be read.
        InputError: the name is invalid; a value is unknown, has another dimension or is out of
            bounds; or the loops do not close with these values. The message then lists the
            single values whose change would make it close.

    Examples:
        >>> import tauloop as tl
        >>> new = tl.new_machine("mine", "delta", values={"arm_length": 0.25})
        >>> new.status.value, new.inspection.model.assembly.mobility
        ('ok', 3)
    """
    options = options or NewMachineOptions()
    if not IDENTIFIER.fullmatch(name):
        raise InputError.of(
            "name",
            f"{name!r} is not a valid name",
            "use letters, digits and _, and start with a letter",
        )
    stated = dict(options.values)
    draft, scaled = _scaled_draft(name, source, options)
    text = draft.written(stated)
    remedies: tuple[Problem, ...] = ()
    try:
        inspection = check(draft.model(stated))
        reach, excluded_by = _reach(inspection.model)
    except TauloopError as error:
        is_out_of_bounds = any(problem.where.endswith(".bounds") for problem in error.problems)
        if not is_out_of_bounds:
            remedies = _find_remedies(draft.text, stated, draft.reaches, REACHES_VOLUME, progress)
            remedies = remedies or _find_remedies(
                draft.text, stated, draft.closes, CLOSES, progress
            )
        raise InputError([*error.problems, *remedies]) from None
    if reach is not None and reach < 1.0:
        remedies = _find_remedies(draft.text, stated, draft.reaches, REACHES_VOLUME, progress)
    return NewMachine(
        diagnostics=_diagnostics(inspection, reach, excluded_by, remedies),
        provenance=provenance(options={"values": stated}, inputs={"source": str(source)}),
        text=text,
        source=str(source),
        dimensions=tuple(item for item, _ in named_values(text).values()),
        changed=tuple(stated),
        scaled=tuple(scaled),
        inspection=inspection,
        remedies=remedies,
        folder=draft.folder,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draft:
    """The text of a source, to which values of the user are added.

    Attributes:
        name: name of the new machine.
        text: text of the source.
        folder: folder of the source, to which paths in the text are relative.
        origin: name of the source's file; empty for a template.
    """

    name: str
    text: str
    folder: Path
    origin: str

    def written(self, values: Mapping[str, str | float]) -> str:
        """Return the text of the machine file with values."""
        text = with_values(self.text, self.name, values, self.origin)
        return EDITOR_LINE + re.sub(r"\A# yaml-language-server:.*\n", "", text)

    def model(self, values: Mapping[str, str | float]) -> Model:
        """Return the model of the machine with values.

        Raises:
            TauloopError: the machine is invalid with these values, or does not close.
        """
        return Model(read_machine(self.written(values), f"{self.name}.yaml", self.folder))

    def closes(self, values: Mapping[str, str | float]) -> bool:
        """Return whether the loops of the machine close with values."""
        try:
            return not self.model(values).assembly.findings
        except TauloopError:
            return False

    def reaches(self, values: Mapping[str, str | float]) -> bool:
        """Return whether the machine with values closes and reaches its whole work volume."""
        try:
            model = self.model(values)
            return not model.assembly.findings and _reach(model)[0] in (None, 1.0)
        except TauloopError:
            return False


def _scaled_draft(
    name: str, source: str | Path, options: NewMachineOptions
) -> tuple[_Draft, dict[str, str]]:
    """Return the text of a source, and the values of a template that were scaled.

    A template's values are scaled with the lengths that the user states. If the scaled machine does
    not reach its work volume, the work volume is reduced.
    """
    text, folder, origin = _source(source, options, name)
    draft = _Draft(name=name, text=text, folder=folder, origin=origin)
    if str(source) not in TEMPLATES:
        return draft, {}
    scaled: dict[str, str] = {}
    # units of other dimensions are reported when the values are written
    with contextlib.suppress(UnitError):
        scaled = scaled_defaults(text, options.values)
    draft = replace(draft, text=with_values(text, name, scaled))
    stated = dict(options.values)
    if scaled and not draft.reaches(stated):
        for smaller in smaller_work_volumes(draft.text, stated):
            if draft.reaches({**smaller, **stated}):
                draft = replace(draft, text=with_values(draft.text, name, smaller))
                return draft, scaled | smaller
    return draft, scaled


def _diagnostics(
    inspection: Inspection,
    reach: float | None,
    excluded_by: Mapping[str, int],
    remedies: Sequence[Problem],
) -> tuple[Diagnostic, ...]:
    """Return the diagnostics of a new machine: its reach and its problems.

    Args:
        inspection: the check of the machine.
        reach: usable fraction of the work volume.
        excluded_by: number of poses that each element excludes.
        remedies: changes of single dimensions with which the machine works.
    """
    exclusions = ", ".join(
        f"{element} excludes {count}" for element, count in itertools.islice(excluded_by.items(), 3)
    )
    remedy = (
        " or ".join(item.remedy for item in remedies)
        or "no single dimension suffices: change several, or the stroke"
    )
    problems = [f"{item.where}: {item.what}: {item.remedy}" for item in inspection.problems]
    return (
        diagnostic(
            "reachable fraction of the work volume",
            reach,
            at_least=1.0,
            advice=f"{exclusions} of the tested poses; {remedy}",
        ),
        diagnostic(
            "problems of the machine", len(problems), at_most=0.0, advice="; ".join(problems)
        ),
    )


def _source(source: str | Path, options: NewMachineOptions, name: str) -> tuple[str, Path, str]:
    """Return the text of a machine file, its folder, and its name if it is not a template.

    Raises:
        DescriptionError: there is no such source, or it is invalid.
        InputError: the source is only the name of a format.
    """
    word = str(source)
    if word in TEMPLATES:
        path = TEMPLATES[word]
        return read_text(path), path.parent, ""
    if word in FORMATS and not Path(word).exists():
        extensions = " or ".join(FORMATS[word].endings)
        raise InputError.of(
            "source",
            f"{word} is the name of a format",
            f"give a file with the extension {extensions}",
        )
    try:
        path, mechanism = source_path(source), load(source, options.side, options=options.reading)
    except DescriptionError as error:
        if not is_shipped_name(source):
            raise
        what = "there is neither a template nor a shipped machine with this name"
        remedy = (
            suggestion(word, TEMPLATES)
            or f"templates: {', '.join(TEMPLATES)}; shipped machines: see `tauloop list`"
        )
        raise DescriptionError.of(word, what, f"{remedy}, or give a file") from error
    if is_shipped_name(source) or format_of(path).name == "yaml":
        return read_text(path), path.parent, path.name
    from tauloop.formats.writing.yaml_writer import dumps  # slow to import

    return dumps(replace(mechanism, name=name)), path.parent, path.name


def _reach(model: Model) -> tuple[float | None, dict[str, int]]:
    """Return the usable fraction of the work volume, and the excluded poses of each element.

    The fraction is None if there are no loops, or if no limits define a work volume.
    """
    limits, assembly = model.limits, model.assembly
    if not assembly.loops.names or assembly.findings:
        return None, {}
    columns = model.platform.ports.position.columns
    axes = {
        name: np.linspace(low, high, POSES_PER_AXIS)
        for name, low, high in zip(limits.names, limits.lower, limits.upper, strict=True)
        if name in columns and np.isfinite([low, high]).all()
    }
    if 0 < len(axes) <= 3:
        grid = workspace_grid(model, axes, refined=False)
        return float((grid.reason == Reason.USABLE).mean()), grid.excluded_by()
    driven = {model.topology.q_of_v[i] for i in assembly.driven}
    ranges = [
        (column, low, high)
        for column, low, high in zip(limits.columns, limits.lower, limits.upper, strict=False)
        if column in driven and np.isfinite([low, high]).all()
    ]
    if axes or len(ranges) != len(driven) or not 0 < len(ranges) <= 3:
        return None, {}
    vertices = np.array(list(itertools.product(*((low, high) for _, low, high in ranges))))
    q = np.tile(assembly.q, (len(vertices), 1))
    q[:, [column for column, _, _ in ranges]] = vertices
    excluded_by: dict[str, int] = {}
    reached_count = 0
    for position in model.actuator_position(q):
        try:
            model.forward_kinematics(position[None])
            reached_count += 1
        except PoseError as error:
            for problem in error.problems:
                excluded_by[problem.where] = excluded_by.get(problem.where, 0) + 1
    return reached_count / len(vertices), excluded_by


def _find_remedies(
    text: str,
    user_values: Mapping[str, str | float],
    works: Callable[[Mapping[str, str | float]], bool],
    effect: str,
    progress: Callable[[int, int], None] | None,
) -> tuple[Problem, ...]:
    """Return changes of single dimensions with which the machine works.

    Each new value is the sufficient one nearest to the current value, up to `REMEDY_BISECTIONS`.
    Values that the user specifies belong to a real machine. They are changed only if no change of
    another dimension by `REMEDY_FACTORS` helps. Then each is changed towards the value of the
    source.

    Args:
        text: text of the source.
        user_values: values that the user specifies.
        works: function that returns whether the machine works with values.
        effect: text for the result of a changed dimension.
        progress: function (completed trials, all trials).
    """
    source_dimensions = _dimensions(text)
    user_dimensions = _dimensions(with_values(text, "trial", user_values))
    # trials: dimension, insufficient factor and possibly sufficient factor
    user_trials = [
        (item, _value(user_dimensions[name]) / _value(item), 1.0)
        for name, item in source_dimensions.items()
        if name in user_values
    ]
    other_names = [
        name for name, item in user_dimensions.items() if item.bounds and name not in user_values
    ]
    other_trials = [
        (user_dimensions[name], 1.0, factor) for factor in REMEDY_FACTORS for name in other_names
    ]
    remedies: dict[str, Problem] = {}
    for first_trial, trials in ((0, other_trials), (len(other_trials), user_trials)):
        for done, (item, insufficient, sufficient) in enumerate(trials, first_trial):
            if progress is not None:
                progress(done, len(other_trials) + len(user_trials))
            if item.name in remedies or not works(
                {**user_values, item.name: item.scaled(sufficient)}
            ):
                continue
            for _ in range(REMEDY_BISECTIONS):
                midpoint = (sufficient + insufficient) / 2
                if works({**user_values, item.name: item.scaled(midpoint)}):
                    sufficient = midpoint
                else:
                    insufficient = midpoint
            what = f"is {user_dimensions[item.name].text}; with {item.scaled(sufficient)} {effect}"
            remedies[item.name] = Problem(
                item.name, what, f"set {item.name} to {item.scaled(sufficient)}"
            )
            if len(remedies) == MAX_REMEDIES:
                break
        if remedies:
            break
    return tuple(remedies.values())


def _dimensions(text: str) -> dict[str, NamedValue]:
    """Return the lengths and angles among the named values of a text, without formulas."""
    return {
        item.name: item
        for item, _ in named_values(text).values()
        if _value(item) and _unit(item) in _GEOMETRY
    }


def _value(item: NamedValue) -> float:
    """Return the value of a dimension, SI; zero for a formula of other values."""
    return item.value or 0.0


def _unit(item: NamedValue) -> str:
    return str(literal(item.text).dimension)
