"""A task of dimensional synthesis, and its file.

format: tauloop-synthesis/1
machine: delta
free: {arm_length: [100 mm, 400 mm], forearm_length: [200 mm, 900 mm]}
box: {cylinder: {radius: 150 mm, height: 100 mm}, center: {z: "-700 mm:-300 mm"}}
requirements: {stops: drawing, condition_number: {most: 4}}
objectives: {size: {minimize: arm_length + forearm_length}}
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

from tauloop.common.errors import InputError, TauloopError
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.design.synthesis.task_grammar import TASK
from tauloop.equations.named_values import full_name
from tauloop.formats.library import dumps, is_shipped_name, load
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
)
from tauloop.mechanism.description.values import ValueReader
from tauloop.mechanism.description.yaml_nodes import parse_nodes, read_text
from tauloop.mechanism.expression import Expression, Leaf
from tauloop.mechanism.suggestions import listing, suggestion
from tauloop.model import Model

#: Quantities that objectives may name, with their SI units.
QUANTITIES = {
    "condition_number": "",
    "largest_velocity_factor": "",
    "smallest_velocity_factor": "",
    "joint_speed": "",
    "clearance": "m",
    "footprint": "m^2",
    "mass": "kg",
    "stiffness": "N/m",
    "first_mode": "Hz",
    "accuracy": "m",
}
#: Quantities that take more than a batch of poses in compiled code.
EXPENSIVE = ("stiffness", "first_mode", "accuracy")
#: Quantities that are parts of requirements, of which the first names the requirement.
REACH, RANGE = "reach", "range"
DEFAULT_POSES = 1000
#: Part of a rod's length and of a range that is kept free, so that the box can be certified.
RESERVE = 1e-3
_AREA = units.LENGTH**2


@dataclass(frozen=True, slots=True, kw_only=True)
class DesignVariable(ReprMixin):
    """A number that the search chooses.

    Attributes:
        name: parameter, pattern of parameters, or ``center.AXIS``.
        unit: unit of the machine file.
        scale: SI value of one such unit.
        lower, upper: bounds, SI.
        parameters: independent parameters that have its value; none for a center.
        axis: column of the pose's axes; None for parameters.
    """

    name: str
    unit: str
    scale: float
    lower: float
    upper: float
    parameters: tuple[str, ...] = ()
    axis: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DesignRequirement(ReprMixin):
    """A limit of one quantity.

    Attributes:
        name: name in tables.
        quantity: the limited quantity.
        limit: the limit, SI.
        is_upper: whether it is an upper limit.
        scale: size by which violations are relative.
        unit: SI unit.
        is_range: whether the quantity is a distance from the middle of a range.
    """

    name: str
    quantity: str
    limit: float
    is_upper: bool = True
    scale: float
    unit: str = ""
    is_range: bool = False

    def violation(self, values: np.ndarray) -> np.ndarray:
        """Return relative violations (N,): positive where the limit is not kept."""
        sign = 1.0 if self.is_upper else -1.0
        return np.asarray(sign * (values - self.limit) / self.scale)

    def value_at(self, violation: float) -> float:
        """Return the value at a relative violation."""
        return self.limit + (self.scale if self.is_upper else -self.scale) * violation


@dataclass(frozen=True, slots=True, kw_only=True)
class DesignObjective(ReprMixin):
    """An objective.

    Attributes:
        name: name of the objective in the task file.
        text: quantity or expression.
        quantity: the quantity; "" for an expression.
        expression: expression of parameters; None for a quantity.
        is_minimized: whether less is better.
        unit: SI unit.
    """

    name: str
    text: str
    quantity: str = ""
    expression: Expression | None = None
    is_minimized: bool = True
    unit: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DesignTask(ReprMixin):
    """A machine with free parameters, and what it must do.

    Attributes:
        name: name of the structure.
        description: purpose.
        model: the machine at its nominal parameters.
        variables: what the search chooses.
        axes: axes of poses.
        center: center of the box (m,) where it is not chosen.
        half: half widths of the box along the axes (m,), zero where it does not extend.
        radius: radius of the cylinder, m; None for a box.
        count: number of poses.
        requirements: limits.
        objectives: quantities to minimize or maximize.
        ranges: limits of coordinates by name, SI.
        speeds: linear and angular speed of the platform for the speed of actuators.
        tolerances: options of the accuracy.
        catalogue: catalogue of motors; None without one.
        reserve: fraction of the motors' limits that is kept free.
        cycle: list of stations; None for a stroke.
        duration: duration of the stroke, s; None for the shortest.
        payload: mass at the tool, as text.
        population, generations, seed, designs: size of the search.
        has_drawing_stops: whether ranges for drawing count as stops.
    """

    name: str
    description: str
    model: Model
    variables: tuple[DesignVariable, ...]
    axes: PoseAxes
    center: np.ndarray
    half: np.ndarray
    radius: float | None
    count: int
    requirements: tuple[DesignRequirement, ...]
    objectives: tuple[DesignObjective, ...]
    ranges: Mapping[str, tuple[float, float]]
    speeds: tuple[float, float] = (0.0, 0.0)
    tolerances: Mapping[str, str] = field(default_factory=dict)
    catalogue: Path | None = None
    reserve: float = 0.0
    cycle: Path | None = None
    duration: float | None = None
    payload: str = ""
    population: int = 100
    generations: int = 60
    seed: int = 0
    designs: int = 5
    has_drawing_stops: bool = False

    @property
    def bounds(self) -> np.ndarray:
        """Lower and upper bounds (2, d) of the variables."""
        lower = [variable.lower for variable in self.variables]
        return np.array([lower, [variable.upper for variable in self.variables]])

    @property
    def parameters(self) -> tuple[str, ...]:
        """All independent parameters that vary."""
        return tuple(name for variable in self.variables for name in variable.parameters)

    def theta(self, x: np.ndarray) -> np.ndarray:
        """Return parameters (N, t) of variables (N, d)."""
        places = [i for i, variable in enumerate(self.variables) for _ in variable.parameters]
        return np.asarray(x[:, places])

    def centers(self, x: np.ndarray) -> np.ndarray:
        """Return centers of the box (N, m) of variables (N, d)."""
        centers = np.tile(self.center, (len(x), 1))
        for i, variable in enumerate(self.variables):
            if variable.axis is not None:
                centers[:, variable.axis] = x[:, i]
        return centers

    def values(self, x: np.ndarray) -> dict[str, float]:
        """Return parameters by name for variables (d,)."""
        return dict(zip(self.parameters, self.theta(x[None])[0].tolist(), strict=True))

    @property
    def digest(self) -> str:
        """Hash of all that determines the search."""
        data = {
            "machine": dumps(self.model.mechanism),
            "variables": [[v.name, v.lower.hex(), v.upper.hex()] for v in self.variables],
            "box": [self.center.tolist(), self.half.tolist(), self.radius, self.count],
            "requirements": [[r.name, r.limit.hex(), r.is_upper] for r in self.requirements],
            "objectives": [[o.name, o.text, o.is_minimized] for o in self.objectives],
            "ranges": {name: list(ends) for name, ends in self.ranges.items()},
            "speeds": list(self.speeds),
            "tolerances": dict(self.tolerances),
            "search": [self.population, self.seed],
        }
        return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:24]


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
        requirements = self._requirements(model, ranges)
        objectives = self._objectives(model)
        if self._root.collector.count > before:
            return None
        wanted = self._content.get("requirements") or {}
        motion, search = self._content.get("motion") or {}, self._content.get("search") or {}
        speed, motors = wanted.get("joint_speed") or {}, wanted.get("motors") or {}
        accuracy = wanted.get("accuracy") or {}
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
            speeds=(speed.get("tool_speed") or 0.0, speed.get("turning_speed") or 0.0),
            tolerances={key: text for key, text in accuracy.items() if key != "most"},
            catalogue=self._file(motors.get("catalogue")),
            reserve=motors.get("reserve") or 0.0,
            cycle=self._file(motion.get("cycle")),
            duration=motion.get("duration"),
            payload=motion.get("payload") or "",
            population=search.get("population") or 100,
            generations=search.get("generations") or 60,
            seed=search.get("seed") or 0,
            designs=search.get("designs") or 5,
            has_drawing_stops=wanted.get("stops") == "drawing",
        )

    def _file(self, name: str | None) -> Path | None:
        return None if name is None else self._folder / name

    def _machine(self) -> Model | None:
        place = self._own.get("machine")
        name = place.text if place is not None else None
        if place is None or not name:
            return None
        try:
            return Model(load(name if is_shipped_name(name) else self._folder / name))
        except TauloopError as error:
            for problem in error.problems:
                place.problem(str(problem), "use a shipped machine, or a file next to this one")
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
        if not ends[0] < ends[1]:
            place.problem(f"the range from {ends[0]:g} to {ends[1]:g} is empty", "order its ends")
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
            except UnitError as error:
                place.problem(error.what, error.remedy)
                continue
            variables.append(
                DesignVariable(
                    name=f"center.{name}",
                    unit="mm",
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
            is_wanted = limits.is_stop[k] or wanted.get("stops") == "drawing"
            if "stops" in wanted and is_wanted and column not in given_positions:
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
            stated = self._ends(place, units.ANGLE if is_angle else units.LENGTH)
            if stated is not None:
                ranges |= dict.fromkeys([names[i] for i in chosen], stated)
        infinite = [name for name, ends in ranges.items() if not np.isfinite(ends).all()]
        return {name: ends for name, ends in ranges.items() if name not in infinite}

    def _requirements(
        self, model: Model, ranges: Mapping[str, tuple[float, float]]
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
        is_linear = set(model.actuator_units) == {"m"}
        speed = units.SPEED if is_linear else units.ANGULAR_SPEED
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
        return tuple(result)

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
        objectives = []
        for name, place in own or self._root.entries_of("objectives"):
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
            if needed is not None and needed not in wanted:
                place.problem(f"{text} is not defined", f"give requirements.{needed}")
                return None
            unit = QUANTITIES[text]
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
