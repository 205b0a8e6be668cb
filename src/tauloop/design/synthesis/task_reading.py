"""Read a task of dimensional synthesis; all errors are reported at once, with line numbers."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

from tauloop.common.errors import InputError, TauloopError
from tauloop.design.synthesis.task import (
    DEFAULT_POSES,
    QUANTITIES,
    RANGE,
    REACH,
    RESERVE,
    DesignObjective,
    DesignRequirement,
    DesignTask,
    DesignVariable,
    SearchSize,
    TaskMotion,
    ToolLoadCase,
)
from tauloop.design.synthesis.task_grammar import TASK
from tauloop.equations.named_values import full_name
from tauloop.formats.library import is_shipped_name, load
from tauloop.kinematics.workspaces.pose_axes import PoseAxes, pose_axes
from tauloop.mechanism.description import units
from tauloop.mechanism.description.cursor import Cursor
from tauloop.mechanism.description.documents import contents
from tauloop.mechanism.description.parser import ExpressionError, Quantity, names, parse, resolve
from tauloop.mechanism.description.structure import document
from tauloop.mechanism.description.units import (
    Dimension,
    UnitError,
    interval,
    parse_unit,
    read_quantity,
    si_unit,
)
from tauloop.mechanism.description.values import ValueReader
from tauloop.mechanism.description.yaml_nodes import parse_nodes, read_text
from tauloop.mechanism.expression import Leaf
from tauloop.mechanism.suggestions import listing, suggestion
from tauloop.model import Model, Payload
from tauloop.model.tool import read_payload

_AREA = units.LENGTH**2
#: Quantities that depend on load cases.
LOAD_DEPENDENT = ("motor_force", "deflection", "joint_force")


def _has(cursor: Cursor | None, key: str) -> bool:
    """Return whether a node has a key; False for an absent node."""
    return cursor is not None and cursor.has(key)


def read_task(path: str | Path) -> tuple[DesignTask, ...]:
    """Return the tasks of a file: a single task, or a task for each structure.

    Args:
        path: the YAML file; paths of machines and further files are relative to its folder.

    Raises:
        DescriptionError: all errors, with lines.
        AssemblyError: the loops of a machine do not close.
    """
    path = Path(path)
    return loads_task(read_text(path), str(path), path.parent)


def loads_task(
    text: str, file: str = "<text>", folder: Path | None = None
) -> tuple[DesignTask, ...]:
    """Return the tasks of a text (see `read_task`)."""
    root = document(parse_nodes(text, file), file, TASK, folder)
    root.collector.raise_any()
    content = contents(root, ValueReader(None)) or {}
    structures = root.entries_of("structures")
    if bool(structures) == ("machine" in content):
        what, remedy = "needs exactly one of machine and structures", "give one of them"
        root.problem(what, remedy)
        root.collector.raise_any()
    free = root.get("free")
    if structures and free is not None:
        free.problem("is not used with structures", "give every structure its own")
    if not structures and "free" not in content:
        root.problem("no parameter is free", "give free: {PARAMETER: [LOW, HIGH]}")
    root.collector.raise_any()
    folder = folder or Path()
    if structures:
        contents_by_name = content["structures"]
        tasks = [
            _TaskReader(root, content, cursor, contents_by_name[name], folder).task(name)
            for name, cursor in structures
        ]
    else:
        tasks = [_TaskReader(root, content, root, content, folder).task("")]
    root.collector.raise_any()
    return tuple(task for task in tasks if task is not None)


class _TaskReader:
    """Reader of the task of a single structure; problems are collected with their positions."""

    def __init__(
        self,
        root: Cursor,
        content: Mapping[str, Any],
        structure: Cursor,
        structure_content: Mapping[str, Any],
        folder: Path,
    ) -> None:
        """Store the nodes of the file.

        Args:
            root: root of the file.
            content: contents of the root.
            structure: node of the structure; the root for a task without structures.
            structure_content: contents of this node.
            folder: folder of the file.
        """
        self._root = root
        self._content = content
        self._structure = structure
        self._structure_content = structure_content
        self._folder = folder

    def task(self, name: str) -> DesignTask | None:
        """Return the task; None if it has errors, which are collected."""
        problem_count = self._root.collector.count
        model = self._machine()
        if model is None:
            return None
        axes = pose_axes(model)
        variables = self._parameters(model)
        center, center_variables = self._center(axes)
        half, radius = self._half(axes)
        ranges = self._ranges(model)
        motion = self._motion()
        requirements = self._requirements(model, ranges, motion)
        objectives = self._objectives(model)
        loads = self._loads(axes)
        self._require_users(model)
        if self._root.collector.count > problem_count:
            return None
        requirement_contents = self._content.get("requirements") or {}
        speed = self._requirement("joint_speed")
        accuracy = self._requirement("accuracy")
        return DesignTask(
            name=name or model.mechanism.name,
            description=self._content.get("description") or "",
            model=model,
            variables=(*variables, *center_variables),
            axes=axes,
            center=center,
            half=half,
            radius=radius,
            count=self._content["box"].get("poses") or DEFAULT_POSES,
            requirements=requirements,
            objectives=objectives,
            ranges=ranges,
            radian_length=requirement_contents.get("radian_length") or 0.0,
            speeds=(speed.get("tool_speed") or 0.0, speed.get("turning_speed") or 0.0),
            tolerances={key: text for key, text in accuracy.items() if key != "most"},
            loads=loads,
            motion=motion,
            search=SearchSize(**(self._content.get("search") or {})),
        )

    def _motion(self) -> TaskMotion:
        """Return the motion and the catalogue; problems are collected."""
        motion = self._node("motion")
        motors = self._node("requirements", "motors")
        motion_keys = [key for key in ("cycle", "trajectory", "duration") if _has(motion, key)]
        if motion is not None and len(motion_keys) > 1:
            what = f"{' and '.join(motion_keys)} are different motions"
            motion.problem(what, "give one of them")
        self._require_payload(motion)
        reserve = self._requirement("motors").get("reserve") or 0.0
        if motors is not None and not reserve < 1.0:
            cursor = motors.get("reserve") or motors
            cursor.problem(f"is {reserve:g}", "give a fraction at least 0 and below 1")
        contents = self._content.get("motion") or {}
        return TaskMotion(
            catalogue=self._file(motors, "catalogue"),
            reserve=reserve,
            cycle=self._file(motion, "cycle"),
            trajectory=self._file(motion, "trajectory"),
            duration=contents.get("duration"),
            payload=contents.get("payload") or "",
        )

    def _require_payload(self, motion: Cursor | None) -> None:
        """Check that the payload is a mass at the tool."""
        cursor = motion.get("payload") if motion is not None else None
        if cursor is None:
            return
        try:
            payload = read_payload(cursor.text or "")
            if not isinstance(payload, Payload):
                Payload(mass=payload)
        except InputError as error:
            for problem in error.problems:
                cursor.problem(problem.what, problem.remedy)

    def _node(self, *keys: str) -> Cursor | None:
        """Return the cursor of nested keys of the task; None if a key is absent."""
        cursor: Cursor | None = self._root
        for key in keys:
            cursor = cursor.get(key) if cursor is not None else None
        return cursor

    def _requirement(self, key: str) -> Mapping[str, Any]:
        """Return the contents of a requirement; empty if it is absent."""
        return (self._content.get("requirements") or {}).get(key) or {}

    def _require_users(self, model: Model) -> None:
        """Add a problem for each definition that no requirement and no objective uses."""
        texts: set[str] = set()
        for content in (self._content, self._structure_content):
            for item in (content.get("objectives") or {}).values():
                texts |= set(item.values())
        for key in ("joint_speed", "accuracy"):
            cursor = self._node("requirements", key)
            if cursor is not None and not cursor.has("most") and key not in texts:
                cursor.problem("limits nothing", f"give most, or an objective with {key}")
        loads = self._root.get("loads")
        requirements = set(self._content.get("requirements") or {})
        is_used = bool((requirements | texts) & set(LOAD_DEPENDENT))
        if loads is not None and self._content.get("loads") and not is_used:
            what = "no requirement and no objective uses the load cases"
            loads.problem(what, f"give one of {listing(LOAD_DEPENDENT)}, or remove loads")
        speed = self._node("requirements", "joint_speed")
        velocity_units = set(model.platform.ports.velocity.units)
        for key, unit, motion in (
            ("tool_speed", "m/s", "only rotates"),
            ("turning_speed", "rad/s", "does not rotate"),
        ):
            cursor = speed.get(key) if speed is not None else None
            if cursor is not None and unit not in velocity_units:
                what = f"the platform of {model.mechanism.name} {motion}"
                cursor.problem(what, f"remove {key}")

    def _loads(self, axes: PoseAxes) -> tuple[ToolLoadCase, ...]:
        """Return the load cases."""
        cases = []
        contents = self._content.get("loads") or {}
        for name, cursor in self._root.entries_of("loads"):
            offset = np.zeros((1, len(axes.columns)))
            displacements = cursor.entries_of("at")
            for axis, item in displacements:
                column = self._axis(axes, axis, item)
                if column is None:
                    continue
                is_angle = axes.units[column] == "rad"
                try:
                    dimension = units.ANGLE if is_angle else units.LENGTH
                    offset[0, column] = read_quantity(item.text or "", dimension).value
                except UnitError as error:
                    item.problem(error.what, error.remedy)
            content = contents[name]
            force = content.get("force") or (0.0, 0.0, 0.0)
            moment = content.get("moment") or (0.0, 0.0, 0.0)
            cases.append(
                ToolLoadCase(
                    name=name,
                    wrench=np.array([*force, *moment], dtype=float),
                    offset=offset if displacements else None,
                )
            )
        return tuple(cases)

    def _file(self, owner: Cursor | None, key: str) -> Path | None:
        """Return the path of a file next to the task; None if none is stated or it does not exist."""
        cursor = owner.get(key) if owner is not None else None
        if cursor is None or not cursor.text:
            return None
        path = self._folder / cursor.text
        if not path.is_file():
            cursor.problem(f"there is no such file: {path}", "check the path")
        return path

    def _machine(self) -> Model | None:
        """Return the machine; None if it cannot be loaded."""
        cursor = self._structure.get("machine")
        name = cursor.text if cursor is not None else None
        if cursor is None or not name:
            return None
        try:
            return Model(load(name if is_shipped_name(name) else self._folder / name))
        except TauloopError as error:
            for problem in error.problems:
                cursor.problem(f"{problem.where or name}: {problem.what}", problem.remedy)
            return None

    def _parameters(self, model: Model) -> tuple[DesignVariable, ...]:
        """Return the variables of parameters."""
        table = model.mechanism.parameters
        variables: list[DesignVariable] = []
        pattern_of: dict[str, str] = {}
        for pattern, cursor in self._structure.entries_of("free"):
            parameters = [name for name in table.names if fnmatchcase(name, pattern)]
            if not parameters:
                cursor.problem(f"{model.mechanism.name} has no such parameter", table.near(pattern))
                continue
            first_parameter = table[parameters[0]]
            si = si_unit(first_parameter.unit)
            mismatched = [name for name in parameters if si_unit(table[name].unit) != si]
            if mismatched:
                cursor.problem(
                    f"{first_parameter.name} in {si} and {mismatched[0]} in {si_unit(table[mismatched[0]].unit)} "
                    "cannot have one value",
                    "free parameters of one unit by each pattern",
                )
                continue
            dimension = (
                parse_unit(first_parameter.unit).dimension if first_parameter.unit else units.ONE
            )
            bounds = self._interval(cursor, dimension)
            if bounds is None:
                continue
            for name in parameters:
                if name in pattern_of:
                    remedy = f"remove it here or from {pattern_of[name]}"
                    cursor.problem(f"{name} is free twice", remedy)
                elif not (table[name].allows(bounds[0]) and table[name].allows(bounds[1])):
                    cursor.problem(
                        f"the bounds of {name} in the machine file are narrower",
                        "give bounds within those of the machine file",
                    )
                pattern_of[name] = pattern
            variables.append(
                DesignVariable(
                    name=pattern,
                    unit=first_parameter.unit,
                    si_unit="" if si == "1" else si,
                    scale=first_parameter.scale,
                    lower=bounds[0],
                    upper=bounds[1],
                    parameters=tuple(parameters),
                )
            )
        return tuple(variables)

    def _interval(self, cursor: Cursor, *dimensions: Dimension) -> tuple[float, float] | None:
        """Return the lower and upper limit of a list of two quantities; None if they are wrong."""
        limits = []
        for item in cursor.items():
            try:
                limits.append(read_quantity(item.text or "", *dimensions).value)
            except UnitError as error:
                item.problem(error.what, error.remedy)
        if len(limits) < 2:
            return None
        if limits[0] == limits[1]:
            cursor.problem("both ends are the same", "give different ends, or omit the range")
            return None
        if not limits[0] < limits[1]:
            cursor.problem(
                f"the range from {limits[0]:g} to {limits[1]:g} is empty",
                "give the lower end first",
            )
            return None
        return limits[0], limits[1]

    def _axis(self, axes: PoseAxes, name: str, cursor: Cursor) -> int | None:
        """Return the column of an axis by its name; None if the name is unknown."""
        try:
            return axes.columns.index(full_name(axes.columns, name, name))
        except InputError as error:
            for problem in error.problems:
                cursor.problem(problem.what, problem.remedy)
            return None

    def _center(self, axes: PoseAxes) -> tuple[np.ndarray, tuple[DesignVariable, ...]]:
        """Return the center of the box, and variables for the coordinates that the search chooses."""
        center = axes.reference.copy()
        variables: list[DesignVariable] = []
        box = self._root.get("box")
        cursors = self._structure.entries_of("center") if self._structure is not self._root else []
        if not cursors:
            cursors = box.entries_of("center") if box is not None else []
        for name, cursor in cursors:
            column = self._axis(axes, name, cursor)
            if column is None:
                continue
            if axes.units[column] != "m":
                cursor.problem("the box has its center at the reference orientation", "remove it")
                continue
            text = cursor.text or ""
            try:
                if ":" not in text:
                    center[column] = read_quantity(text, units.LENGTH).value
                    continue
                ends = interval(text, ":", units.LENGTH)
                if not 0.0 < ends.upper - ends.lower < np.inf:
                    cursor.problem("needs two different ends", "write LOW:HIGH, or one value")
                    continue
            except UnitError as error:
                cursor.problem(error.what, error.remedy)
                continue
            variables.append(
                DesignVariable(
                    name=f"center.{name}",
                    unit="mm",
                    si_unit="m",
                    scale=1e-3,
                    lower=ends.lower,
                    upper=ends.upper,
                    axis=column,
                )
            )
        return center, tuple(variables)

    def _half(self, axes: PoseAxes) -> tuple[np.ndarray, float | None]:
        """Return half widths (m,) of the box about its center, and the radius of a cylinder."""
        half = np.zeros(len(axes.columns))
        box = self._root.get("box")
        assert box is not None
        cylinder = (self._content["box"] or {}).get("cylinder")
        for name, cursor in box.entries_of("ranges"):
            column = self._axis(axes, name, cursor)
            if column is None:
                continue
            is_angle = axes.units[column] == "rad"
            limits = self._interval(cursor, units.ANGLE if is_angle else units.LENGTH)
            if limits is None:
                continue
            if abs(limits[0] + limits[1]) > 1e-9 * (limits[1] - limits[0]):
                cursor.problem(
                    "is not symmetric about the center", "give -HALF and HALF, and center"
                )
            if cylinder and not is_angle:
                cursor.problem(
                    "the cylinder also defines the positions", "remove the cylinder or this range"
                )
            half[column] = 0.5 * (limits[1] - limits[0])
        if not cylinder:
            if not half.any():
                box.problem("has no extent", "give the range of one axis at least")
            return half, None
        for name, radius in (("x", cylinder["radius"]), ("y", cylinder["radius"])):
            column = self._axis(axes, name, box)
            if column is not None:
                half[column] = radius
        if cylinder.get("height"):
            column = self._axis(axes, "z", box)
            if column is not None:
                half[column] = 0.5 * cylinder["height"]
        return half, cylinder["radius"]

    def _ranges(self, model: Model) -> dict[str, tuple[float, float]]:
        """Return limits of coordinates by name."""
        limits = model.limits
        topology = model.topology
        names = topology.coordinate_names
        requirement_contents = self._content.get("requirements") or {}
        platform_columns = set(model.platform.ports.q)
        includes_drawing = requirement_contents.get("stops") == "drawing"
        ranges = {}
        for k, column in enumerate(limits.columns):
            is_drawing_limit = includes_drawing and column not in platform_columns
            if "stops" in requirement_contents and (limits.is_stop[k] or is_drawing_limit):
                ranges[names[column]] = (float(limits.lower[k]), float(limits.upper[k]))
        cursors = (
            self._structure.entries_of("joint_ranges") if self._structure is not self._root else []
        )
        requirements = self._root.get("requirements")
        if not cursors and requirements is not None:
            cursors = requirements.entries_of("joint_ranges")
        for pattern, cursor in cursors:
            indices = [i for i, name in enumerate(names) if fnmatchcase(name, pattern)]
            if not indices:
                remedy = suggestion(pattern, names) or f"known: {listing(names, 20)}"
                cursor.problem("there is no such coordinate", remedy)
                continue
            is_angle = bool(topology.is_angle[indices[0]])
            if any(bool(topology.is_angle[i]) != is_angle for i in indices):
                what = "fits angles and lengths, which cannot have one range"
                cursor.problem(what, f"give narrower patterns; known: {listing(names, 20)}")
                continue
            stated_range = self._interval(cursor, units.ANGLE if is_angle else units.LENGTH)
            if stated_range is not None:
                ranges |= dict.fromkeys([names[i] for i in indices], stated_range)
        for name, ends in ranges.items():
            if np.isfinite(ends).sum() == 1 and requirements is not None:
                requirements.problem(
                    f"the range of {name} in the machine file has only one end",
                    f"give both ends: joint_ranges: {{{name}: [LOW, HIGH]}}",
                )
        return {name: ends for name, ends in ranges.items() if np.isfinite(ends).all()}

    def _requirements(
        self, model: Model, ranges: Mapping[str, tuple[float, float]], motion: TaskMotion
    ) -> tuple[DesignRequirement, ...]:
        """Return the requirements: reach, ranges of coordinates, and limits of quantities."""
        reach = DesignRequirement(name="reach", quantity=REACH, limit=-RESERVE, scale=1.0)
        result = [reach]
        topology = model.topology
        for name, (low, high) in ranges.items():
            half = 0.5 * (high - low)
            is_angle = topology.is_angle[topology.coordinate_names.index(name)]
            result.append(
                DesignRequirement(
                    name=f"range of {name}",
                    quantity=f"{RANGE} {name}",
                    limit=(1.0 - RESERVE) * half,
                    scale=half,
                    unit="rad" if is_angle else "m",
                    is_range=True,
                )
            )
        is_linear = set(model.actuator_units) == {"m"}
        speed = units.SPEED if is_linear else units.ANGULAR_SPEED
        force = units.FORCE if is_linear else units.TORQUE
        self._require_one_unit(model)
        for key, bound, quantity, dimension in (
            ("condition_number", "most", "condition_number", units.ONE),
            ("velocity_factors", "least", "smallest_velocity_factor", units.ONE),
            ("velocity_factors", "most", "largest_velocity_factor", units.ONE),
            ("joint_speed", "most", "joint_speed", speed),
            ("clearance", "least", "clearance", units.LENGTH),
            ("footprint", "most", "footprint", _AREA),
            ("mass", "most", "mass", units.MASS),
            ("stiffness", "least", "stiffness", units.STIFFNESS),
            ("first_mode", "least", "first_mode", units.FREQUENCY),
            ("accuracy", "most", "accuracy", units.LENGTH),
            ("motor_force", "most", "motor_force", force),
            ("motor_rms", "most", "motor_rms", force),
            ("motor_speed", "most", "motor_speed", speed),
            ("deflection", "most", "deflection", units.LENGTH),
            ("joint_force", "most", "joint_force", units.FORCE),
        ):
            limit = self._limit(key, bound, dimension)
            if limit is not None:
                result.append(
                    DesignRequirement(
                        name=quantity.replace("_", " "),
                        quantity=quantity,
                        limit=limit,
                        is_upper=bound == "most",
                        scale=limit,
                        unit=str(dimension) if dimension != units.ONE else "",
                    )
                )
        self._require_loads()
        self._require_possible_limits(result)
        if motion.catalogue is not None and motion.has_time_law and motion.reserve < 1.0:
            limit = 1.0 - motion.reserve
            result.append(
                DesignRequirement(name="motor use", quantity="motor_use", limit=limit, scale=limit)
            )
        return tuple(result)

    def _require_possible_limits(self, requirements: list[DesignRequirement]) -> None:
        """Check that the limits of condition number and velocity factors can be met."""
        limits = {item.quantity: item.limit for item in requirements}
        condition = self._node("requirements", "condition_number", "most")
        if condition is not None and limits.get("condition_number", 1.0) < 1.0:
            what = f"is {limits['condition_number']:g}, and no condition number is below 1"
            condition.problem(what, "give at least 1")
        factors = self._node("requirements", "velocity_factors")
        smallest_factor = limits.get("smallest_velocity_factor", 0.0)
        if factors is not None and smallest_factor > limits.get("largest_velocity_factor", np.inf):
            factors.problem("least is above most", "give a value of least below most")

    def _require_loads(self) -> None:
        """Check that there are load cases if the deflection is limited."""
        requirements = self._root.get("requirements")
        cursor = requirements.get("deflection") if requirements is not None else None
        if cursor is not None and not self._content.get("loads"):
            cursor.problem("there are no load cases", "give loads: {NAME: {force: [FX, FY, FZ]}}")

    def _require_one_unit(self, model: Model) -> None:
        """Check that no limit applies to both rotary and linear actuators."""
        requirements = self._root.get("requirements")
        if requirements is None or len(set(model.actuator_units)) < 2:
            return
        for key in ("joint_speed", "motor_force", "motor_rms", "motor_speed"):
            cursor = requirements.get(key)
            if cursor is not None:
                cursor.problem(
                    f"{model.mechanism.name} has both rotary and linear actuators",
                    f"omit {key}: its limit has a single unit",
                )

    def _limit(self, key: str, bound: str, dimension: Dimension) -> float | None:
        """Return a positive limit of the requirements; None if it is absent or wrong."""
        requirements = self._root.get("requirements")
        cursor = requirements.get(key) if requirements is not None else None
        limit = cursor.get(bound) if cursor is not None else None
        if limit is None:
            return None
        try:
            number = read_quantity(limit.text or "", dimension).value
        except UnitError as error:
            limit.problem(error.what, error.remedy)
            return None
        if not number > 0.0:
            limit.problem(f"is {number:g}", "give a positive limit")
            return None
        return number

    def _objectives(self, model: Model) -> tuple[DesignObjective, ...]:
        """Return the objectives of the structure, or else those of the task."""
        structure_objectives = []
        if self._structure is not self._root:
            structure_objectives = self._structure.entries_of("objectives")
        task_objectives = self._root.entries_of("objectives")
        names_of_task = [name for name, _ in task_objectives]
        if structure_objectives and [name for name, _ in structure_objectives] != names_of_task:
            self._structure.problem(
                f"has other objectives than the task: {', '.join(names_of_task)}",
                "define the same names in this order, so that structures can be compared",
            )
        objectives = []
        for name, cursor in structure_objectives or task_objectives:
            keys = [key for key in ("minimize", "maximize") if cursor.has(key)]
            if len(keys) != 1:
                cursor.problem("needs exactly one of minimize and maximize", "remove one of them")
                continue
            text = cursor.word(keys[0]) or ""
            objective = self._objective(model, name, cursor, text, keys[0] == "minimize")
            if objective is not None:
                objectives.append(objective)
        return tuple(objectives)

    def _objective(
        self, model: Model, name: str, cursor: Cursor, text: str, is_minimized: bool
    ) -> DesignObjective | None:
        """Return an objective; None if it has errors, which are collected."""
        if text in QUANTITIES:
            requirement_contents = self._content.get("requirements") or {}
            if text == "deflection" and not self._content.get("loads"):
                cursor.problem("deflection is not defined", "give loads")
                return None
            if text in ("joint_speed", "accuracy") and text not in requirement_contents:
                cursor.problem(f"{text} is not defined", f"give requirements.{text}")
                return None
            unit = QUANTITIES[text]
            is_linear = set(model.actuator_units) == {"m"}
            if text in ("joint_speed", "motor_speed"):
                unit = "m/s" if is_linear else "rad/s"
            if text in ("motor_force", "motor_rms"):
                unit = "N" if is_linear else "N m"
            if text == "motor_use" and "catalogue" not in self._requirement("motors"):
                cursor.problem("motor_use is not defined", "give requirements.motors")
                return None
            return DesignObjective(
                name=name, text=text, quantity=text, is_minimized=is_minimized, unit=unit
            )
        parameters = {
            item.name: Quantity(
                Leaf(item.name), parse_unit(item.unit).dimension if item.unit else units.ONE
            )
            for item in model.mechanism.parameters
        }
        try:
            syntax = parse(text)
            for word in names(syntax):
                if word not in parameters:
                    choices = (*QUANTITIES, *parameters)
                    remedy = suggestion(word, choices) or f"known: {listing(choices, 30)}"
                    cursor.problem(f"{word!r} is neither a quantity nor a parameter", remedy)
                    return None
            quantity = resolve(syntax, parameters)
        except ExpressionError as error:
            cursor.problem(error.what, error.remedy)
            return None
        assert quantity is not None
        return DesignObjective(
            name=name,
            text=text,
            expression=quantity.expression,
            is_minimized=is_minimized,
            unit="" if quantity.dimension == units.ONE else str(quantity.dimension),
        )
