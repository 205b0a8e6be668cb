"""Reading of a task of dimensional synthesis; all errors are reported at once, with their lines."""

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
USERS_OF_LOADS = ("motor_force", "deflection", "joint_force")


def _has(place: Cursor | None, key: str) -> bool:
    """Return whether a place has a key; an absent one has none."""
    return place is not None and place.has(key)


def read_task(path: str | Path) -> tuple[DesignTask, ...]:
    """Return the tasks of a file: one, or one for each structure.

    Args:
        path: the YAML file; names of machines and further files are relative to its folder.

    Raises:
        DescriptionError: all errors, with lines.
        AssemblyError: a machine does not close.
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
        own = content["structures"]
        tasks = [
            _TaskReader(root, content, place, own[name], folder).task(name)
            for name, place in structures
        ]
    else:
        tasks = [_TaskReader(root, content, root, content, folder).task("")]
    root.collector.raise_any()
    return tuple(task for task in tasks if task is not None)


class _TaskReader:
    """Reader of the task of one structure; problems are noted at their places."""

    def __init__(
        self,
        root: Cursor,
        content: Mapping[str, Any],
        own: Cursor,
        own_content: Mapping[str, Any],
        folder: Path,
    ) -> None:
        self._root, self._content = root, content
        self._own, self._own_content, self._folder = own, own_content, folder

    def task(self, name: str) -> DesignTask | None:
        """Return the task; None if it is wrong, which is noted."""
        before = self._root.collector.count
        model = self._machine()
        if model is None:
            return None
        axes = pose_axes(model)
        variables = self._parameters(model)
        center, chosen = self._center(axes)
        half, radius = self._half(axes)
        ranges = self._ranges(model)
        motion = self._motion()
        requirements = self._requirements(model, ranges, motion)
        objectives = self._objectives(model)
        loads = self._loads(axes)
        self._require_users(model)
        if self._root.collector.count > before:
            return None
        wanted = self._content.get("requirements") or {}
        speed, accuracy = self._wanted("joint_speed"), self._wanted("accuracy")
        return DesignTask(
            name=name or model.mechanism.name,
            description=self._content.get("description") or "",
            model=model,
            variables=(*variables, *chosen),
            axes=axes,
            center=center,
            half=half,
            radius=radius,
            count=self._content["box"].get("poses") or DEFAULT_POSES,
            requirements=requirements,
            objectives=objectives,
            ranges=ranges,
            radian_length=wanted.get("radian_length") or 0.0,
            speeds=(speed.get("tool_speed") or 0.0, speed.get("turning_speed") or 0.0),
            tolerances={key: text for key, text in accuracy.items() if key != "most"},
            loads=loads,
            motion=motion,
            search=SearchSize(**(self._content.get("search") or {})),
        )

    def _motion(self) -> TaskMotion:
        """Return the motion and the catalogue; problems are noted."""
        motion, motors = self._place("motion"), self._place("requirements", "motors")
        stated = [key for key in ("cycle", "trajectory", "duration") if _has(motion, key)]
        if motion is not None and len(stated) > 1:
            what = f"{' and '.join(stated)} are different motions"
            motion.problem(what, "give one of them")
        self._require_payload(motion)
        reserve = self._wanted("motors").get("reserve") or 0.0
        if motors is not None and not reserve < 1.0:
            place = motors.get("reserve") or motors
            place.problem(f"is {reserve:g}", "give a fraction at least 0 and below 1")
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
        """Note that the payload is not a mass at the tool."""
        place = motion.get("payload") if motion is not None else None
        if place is None:
            return
        try:
            payload = read_payload(place.text or "")
            if not isinstance(payload, Payload):
                Payload(mass=payload)
        except InputError as error:
            for problem in error.problems:
                place.problem(problem.what, problem.remedy)

    def _place(self, *keys: str) -> Cursor | None:
        """Return the place of nested keys of the task; None if it is absent."""
        place: Cursor | None = self._root
        for key in keys:
            place = place.get(key) if place is not None else None
        return place

    def _wanted(self, key: str) -> Mapping[str, Any]:
        """Return the content of a requirement, empty if it is absent."""
        return (self._content.get("requirements") or {}).get(key) or {}

    def _require_users(self, model: Model) -> None:
        """Note definitions that no requirement and no objective uses."""
        objectives = self._content.get("objectives") or {}
        texts = {text for item in objectives.values() for text in item.values()}
        own = self._own_content.get("objectives") or {}
        texts |= {text for item in own.values() for text in item.values()}
        for key in ("joint_speed", "accuracy"):
            place = self._place("requirements", key)
            if place is not None and not place.has("most") and key not in texts:
                place.problem("limits nothing", f"give most, or an objective with {key}")
        loads, wanted = self._root.get("loads"), set(self._content.get("requirements") or {})
        is_used = bool((wanted | texts) & set(USERS_OF_LOADS))
        if loads is not None and self._content.get("loads") and not is_used:
            what = "no requirement and no objective uses the load cases"
            loads.problem(what, f"give one of {listing(USERS_OF_LOADS)}, or remove loads")
        speed = self._place("requirements", "joint_speed")
        rates = set(model.platform.ports.velocity.units)
        for key, unit, moves in (
            ("tool_speed", "m/s", "only turns"),
            ("turning_speed", "rad/s", "does not turn"),
        ):
            place = speed.get(key) if speed is not None else None
            if place is not None and unit not in rates:
                place.problem(f"the platform of {model.mechanism.name} {moves}", "remove it")

    def _loads(self, axes: PoseAxes) -> tuple[ToolLoadCase, ...]:
        """Return the load cases."""
        cases = []
        contents = self._content.get("loads") or {}
        for name, place in self._root.entries_of("loads"):
            offset, stated = np.zeros((1, len(axes.columns))), place.entries_of("at")
            for axis, item in stated:
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
                    offset=offset if stated else None,
                )
            )
        return tuple(cases)

    def _file(self, owner: Cursor | None, key: str) -> Path | None:
        """Return a file next to the task; None if it is not stated. A missing one is noted."""
        place = owner.get(key) if owner is not None else None
        if place is None or not place.text:
            return None
        path = self._folder / place.text
        if not path.is_file():
            place.problem(f"there is no such file: {path}", "check the path")
        return path

    def _machine(self) -> Model | None:
        place = self._own.get("machine")
        name = place.text if place is not None else None
        if place is None or not name:
            return None
        try:
            return Model(load(name if is_shipped_name(name) else self._folder / name))
        except TauloopError as error:
            for problem in error.problems:
                place.problem(f"{problem.where or name}: {problem.what}", problem.remedy)
            return None

    def _parameters(self, model: Model) -> tuple[DesignVariable, ...]:
        """Return the variables of parameters."""
        table = model.mechanism.parameters
        variables, taken = [], dict[str, str]()
        for pattern, place in self._own.entries_of("free"):
            parameters = [name for name in table.names if fnmatchcase(name, pattern)]
            if not parameters:
                place.problem(f"{model.mechanism.name} has no such parameter", table.near(pattern))
                continue
            first = table[parameters[0]]
            si = si_unit(first.unit)
            others = [name for name in parameters if si_unit(table[name].unit) != si]
            if others:
                place.problem(
                    f"{first.name} in {si} and {others[0]} in {si_unit(table[others[0]].unit)} "
                    "cannot have one value",
                    "free parameters of one unit by each pattern",
                )
                continue
            dimension = parse_unit(first.unit).dimension if first.unit else units.ONE
            ends = self._ends(place, dimension)
            if ends is None:
                continue
            for name in parameters:
                if name in taken:
                    place.problem(f"{name} is free twice", f"remove it here or from {taken[name]}")
                elif not (table[name].allows(ends[0]) and table[name].allows(ends[1])):
                    place.problem(
                        f"the bounds of {name} in the machine file are narrower", "narrow these"
                    )
                taken[name] = pattern
            variables.append(
                DesignVariable(
                    name=pattern,
                    unit=first.unit,
                    si_unit="" if si == "1" else si,
                    scale=first.scale,
                    lower=ends[0],
                    upper=ends[1],
                    parameters=tuple(parameters),
                )
            )
        return tuple(variables)

    def _ends(self, place: Cursor, *wanted: Dimension) -> tuple[float, float] | None:
        """Return lower and upper ends of a list of two texts; None if they are wrong."""
        ends = []
        for item in place.items():
            try:
                ends.append(read_quantity(item.text or "", *wanted).value)
            except UnitError as error:
                item.problem(error.what, error.remedy)
        if len(ends) < 2:
            return None
        if ends[0] == ends[1]:
            place.problem("both ends are the same", "give different ends, or leave it out")
            return None
        if not ends[0] < ends[1]:
            place.problem(
                f"the range from {ends[0]:g} to {ends[1]:g} is empty", "give the lower end first"
            )
            return None
        return ends[0], ends[1]

    def _axis(self, axes: PoseAxes, name: str, place: Cursor) -> int | None:
        """Return the column of an axis by its name; None if it is unknown, which is noted."""
        try:
            return axes.columns.index(full_name(axes.columns, name, name))
        except InputError as error:
            for problem in error.problems:
                place.problem(problem.what, problem.remedy)
            return None

    def _center(self, axes: PoseAxes) -> tuple[np.ndarray, tuple[DesignVariable, ...]]:
        """Return the fixed center of the box, and the variables of a chosen one."""
        center, variables = axes.reference.copy(), []
        box = self._root.get("box")
        places = self._own.entries_of("center") if self._own is not self._root else []
        if not places:
            places = box.entries_of("center") if box is not None else []
        for name, place in places:
            column = self._axis(axes, name, place)
            if column is None:
                continue
            if axes.units[column] != "m":
                place.problem("the box has its center at the reference orientation", "remove it")
                continue
            text = place.text or ""
            try:
                if ":" not in text:
                    center[column] = read_quantity(text, units.LENGTH).value
                    continue
                ends = interval(text, ":", units.LENGTH)
                if not 0.0 < ends.upper - ends.lower < np.inf:
                    place.problem("needs two different ends", "write LOW:HIGH, or one value")
                    continue
            except UnitError as error:
                place.problem(error.what, error.remedy)
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
        """Return half widths of the box, whose center is moved to the middle, and a radius."""
        half = np.zeros(len(axes.columns))
        box = self._root.get("box")
        assert box is not None
        cylinder = (self._content["box"] or {}).get("cylinder")
        for name, place in box.entries_of("ranges"):
            column = self._axis(axes, name, place)
            if column is None:
                continue
            is_angle = axes.units[column] == "rad"
            ends = self._ends(place, units.ANGLE if is_angle else units.LENGTH)
            if ends is None:
                continue
            if abs(ends[0] + ends[1]) > 1e-9 * (ends[1] - ends[0]):
                place.problem(
                    "is not symmetric about the center", "give -HALF and HALF, and center"
                )
            if cylinder and not is_angle:
                place.problem("the cylinder defines the positions", "remove one of them")
            half[column] = 0.5 * (ends[1] - ends[0])
        if not cylinder:
            if not half.any():
                box.problem("has no extent", "give the range of one axis at least")
            return half, None
        for name, size in (("x", cylinder["radius"]), ("y", cylinder["radius"])):
            column = self._axis(axes, name, box)
            if column is not None:
                half[column] = size
        if cylinder.get("height"):
            column = self._axis(axes, "z", box)
            if column is not None:
                half[column] = 0.5 * cylinder["height"]
        return half, cylinder["radius"]

    def _ranges(self, model: Model) -> dict[str, tuple[float, float]]:
        """Return limits of coordinates by name."""
        limits, topology = model.limits, model.topology
        names, wanted = topology.coordinate_names, self._content.get("requirements") or {}
        given_positions = set(model.platform.ports.q)
        ranges = {}
        for k, column in enumerate(limits.columns):
            is_drawing = wanted.get("stops") == "drawing" and column not in given_positions
            if "stops" in wanted and (limits.is_stop[k] or is_drawing):
                ranges[names[column]] = (float(limits.lower[k]), float(limits.upper[k]))
        places = self._own.entries_of("joint_ranges") if self._own is not self._root else []
        requirements = self._root.get("requirements")
        if not places and requirements is not None:
            places = requirements.entries_of("joint_ranges")
        for pattern, place in places:
            chosen = [i for i, name in enumerate(names) if fnmatchcase(name, pattern)]
            if not chosen:
                remedy = suggestion(pattern, names) or f"known: {listing(names, 20)}"
                place.problem("there is no such coordinate", remedy)
                continue
            is_angle = bool(topology.is_angle[chosen[0]])
            if any(bool(topology.is_angle[i]) != is_angle for i in chosen):
                what = "fits angles and lengths, which cannot have one range"
                place.problem(what, f"give narrower patterns; known: {listing(names, 20)}")
                continue
            stated = self._ends(place, units.ANGLE if is_angle else units.LENGTH)
            if stated is not None:
                ranges |= dict.fromkeys([names[i] for i in chosen], stated)
        for name, ends in ranges.items():
            if np.isfinite(ends).sum() == 1 and requirements is not None:
                requirements.problem(
                    f"the range of {name} in the machine file has one end only",
                    f"give both: joint_ranges: {{{name}: [LOW, HIGH]}}",
                )
        return {name: ends for name, ends in ranges.items() if np.isfinite(ends).all()}

    def _requirements(
        self, model: Model, ranges: Mapping[str, tuple[float, float]], motion: TaskMotion
    ) -> tuple[DesignRequirement, ...]:
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
        slides = set(model.actuator_units) == {"m"}
        speed = units.SPEED if slides else units.ANGULAR_SPEED
        force = units.FORCE if slides else units.TORQUE
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
        """Note limits that no machine keeps."""
        limits = {item.quantity: item.limit for item in requirements}
        condition = self._place("requirements", "condition_number", "most")
        if condition is not None and limits.get("condition_number", 1.0) < 1.0:
            what = f"is {limits['condition_number']:g}, and no condition number is below 1"
            condition.problem(what, "give at least 1")
        factors = self._place("requirements", "velocity_factors")
        least = limits.get("smallest_velocity_factor", 0.0)
        if factors is not None and least > limits.get("largest_velocity_factor", np.inf):
            factors.problem("least is above most", "swap or correct them")

    def _require_loads(self) -> None:
        """Note that a deflection needs loads."""
        requirements = self._root.get("requirements")
        place = requirements.get("deflection") if requirements is not None else None
        if place is not None and not self._content.get("loads"):
            place.problem("there are no load cases", "give loads: {NAME: {force: [FX, FY, FZ]}}")

    def _require_one_unit(self, model: Model) -> None:
        """Note that one limit cannot hold for actuators that turn and actuators that slide."""
        requirements = self._root.get("requirements")
        if requirements is None or len(set(model.actuator_units)) < 2:
            return
        for key in ("joint_speed", "motor_force", "motor_rms", "motor_speed"):
            place = requirements.get(key)
            if place is not None:
                place.problem(
                    f"some actuators of {model.mechanism.name} turn and others slide",
                    f"leave out {key}: one limit has one unit",
                )

    def _limit(self, key: str, bound: str, dimension: Dimension) -> float | None:
        """Return a positive limit of the requirements; None if it is absent or wrong."""
        requirements = self._root.get("requirements")
        place = requirements.get(key) if requirements is not None else None
        limit = place.get(bound) if place is not None else None
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
        own = self._own.entries_of("objectives") if self._own is not self._root else []
        common = self._root.entries_of("objectives")
        names_of_task = [name for name, _ in common]
        if own and [name for name, _ in own] != names_of_task:
            self._own.problem(
                f"has other objectives than the task: {', '.join(names_of_task)}",
                "define the same names in this order, so that structures can be compared",
            )
        objectives = []
        for name, place in own or common:
            both = [key for key in ("minimize", "maximize") if place.has(key)]
            if len(both) != 1:
                place.problem("needs exactly one of minimize and maximize", "remove one of them")
                continue
            text = place.word(both[0]) or ""
            objective = self._objective(model, name, place, text, both[0] == "minimize")
            if objective is not None:
                objectives.append(objective)
        return tuple(objectives)

    def _objective(
        self, model: Model, name: str, place: Cursor, text: str, is_minimized: bool
    ) -> DesignObjective | None:
        """Return an objective; None if it is wrong, which is noted."""
        if text in QUANTITIES:
            wanted = self._content.get("requirements") or {}
            needed = {"joint_speed": "joint_speed", "accuracy": "accuracy"}.get(text)
            if text == "deflection" and not self._content.get("loads"):
                place.problem("deflection is not defined", "give loads")
                return None
            if needed is not None and needed not in wanted:
                place.problem(f"{text} is not defined", f"give requirements.{needed}")
                return None
            unit, slides = QUANTITIES[text], set(model.actuator_units) == {"m"}
            if text in ("joint_speed", "motor_speed"):
                unit = "m/s" if slides else "rad/s"
            if text in ("motor_force", "motor_rms"):
                unit = "N" if slides else "N m"
            if text == "motor_use" and "catalogue" not in self._wanted("motors"):
                place.problem("motor_use is not defined", "give requirements.motors")
                return None
            return DesignObjective(
                name=name, text=text, quantity=text, is_minimized=is_minimized, unit=unit
            )
        known = {
            item.name: Quantity(
                Leaf(item.name), parse_unit(item.unit).dimension if item.unit else units.ONE
            )
            for item in model.mechanism.parameters
        }
        try:
            syntax = parse(text)
            for word in names(syntax):
                if word not in known:
                    choices = (*QUANTITIES, *known)
                    remedy = suggestion(word, choices) or f"known: {listing(choices, 30)}"
                    place.problem(f"{word!r} is neither a quantity nor a parameter", remedy)
                    return None
            quantity = resolve(syntax, known)
        except ExpressionError as error:
            place.problem(error.what, error.remedy)
            return None
        assert quantity is not None
        return DesignObjective(
            name=name,
            text=text,
            expression=quantity.expression,
            is_minimized=is_minimized,
            unit="" if quantity.dimension == units.ONE else str(quantity.dimension),
        )
