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
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

import numpy as np

from tauloop.common.records import dataclass
from tauloop.common.result import content
from tauloop.common.shown import ReprMixin
from tauloop.formats.library import dumps
from tauloop.kinematics.workspaces.pose_axes import PoseAxes
from tauloop.mechanism.expression import Expression
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
    "deflection": "m",
    "joint_force": "N",
    "motor_force": "",
    "motor_rms": "",
    "motor_speed": "",
    "motor_use": "",
}
#: Elastic quantities, which are computed for a batch of candidates.
ELASTIC = ("stiffness", "first_mode")
#: Quantities that are computed candidate by candidate.
ONE_BY_ONE = ("accuracy", "deflection", "joint_force")
#: Quantities that are computed at a few poses of the box.
EXPENSIVE = (*ELASTIC, *ONE_BY_ONE)
#: Quantities of the actuators under load cases and over the motion.
ACTUATOR_QUANTITIES = ("motor_force", "motor_rms", "motor_speed", "motor_use")
#: Quantities that the compiled batch over the poses of the box does not compute.
NOT_IN_BATCH = (*EXPENSIVE, *ACTUATOR_QUANTITIES)
#: Quantities that are differentiated by finite differences, over a batch of candidates.
WITH_DIFFERENCES = (*ELASTIC, "motor_force", "motor_rms", "motor_speed")
#: Quantities without derivatives.
WITHOUT_SLOPES = (*ONE_BY_ONE, "motor_use")
#: Quantity of the requirement of reach.
REACH = "reach"
#: Prefix of the quantities of ranges of coordinates: "range NAME".
RANGE = "range"
#: Default number of poses of the box.
DEFAULT_POSES = 1000
#: Fraction of a rod's length and of a range that is not used, so that the box can be certified.
RESERVE = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class DesignVariable(ReprMixin):
    """A number that the search chooses.

    Attributes:
        name: parameter, pattern of parameters, or ``center.AXIS``.
        unit: unit of the machine file, in which messages state bounds.
        si_unit: SI unit of the values.
        scale: SI value of one unit of the file.
        lower, upper: bounds, SI.
        parameters: independent parameters that have this value; empty for a center.
        axis: column of the pose's axes for a center; None for parameters.
    """

    name: str
    unit: str
    si_unit: str
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
        scale: value that divides violations to make them relative.
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
        """Return relative violations (N,), which are positive if the limit is exceeded."""
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
        is_minimized: whether the objective is minimized.
        unit: SI unit.
    """

    name: str
    text: str
    quantity: str = ""
    expression: Expression | None = None
    is_minimized: bool = True
    unit: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskMotion(ReprMixin):
    """Motion and catalogue for which the motors of a design are sized.

    Attributes:
        catalogue: file of motors and gears; None without a catalogue.
        reserve: fraction of the motors' limits that remains unused.
        cycle: file with a list of stations; None without a cycle.
        trajectory: file with times and a motion of the platform; None without a trajectory. Without a
            cycle and a trajectory the motion is a stroke along the box.
        duration: duration of the stroke, s; None for the shortest.
        payload: mass at the tool, as text; "" without a payload.
    """

    catalogue: Path | None = None
    reserve: float = 0.0
    cycle: Path | None = None
    trajectory: Path | None = None
    duration: float | None = None
    payload: str = ""

    @property
    def has_time_law(self) -> bool:
        """Whether the motion is known before the search."""
        return not (self.duration is None and self.cycle is None and self.trajectory is None)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ToolLoadCase(ReprMixin):
    """A force and a moment that act on the tool at rest.

    Attributes:
        name: key of the case in the task file.
        wrench: force and moment (6,) at the tool center point, base frame, N and N m.
        offset: displacement (1, m) from the center of the box to the pose at which the load acts; None
            if it acts at all poses of the box.
    """

    name: str
    wrench: np.ndarray
    offset: np.ndarray | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSize(ReprMixin):
    """Size of a search.

    Attributes:
        population: number of members of a generation.
        generations: number of generations.
        seed: seed of the random numbers.
        designs: maximum number of machine files.
    """

    population: int = 100
    generations: int = 60
    seed: int = 0
    designs: int = 5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DesignTask(ReprMixin):
    """A machine with free parameters, its requirements and its objectives.

    Attributes:
        name: name of the structure.
        description: purpose of the machine.
        model: the machine at its nominal parameters.
        variables: variables of the search.
        axes: axes of poses.
        center: center of the box (m,), for the coordinates that the search does not choose.
        half: half widths of the box along the axes (m,), zero where it does not extend.
        radius: radius of the cylinder, m; None for a box.
        count: number of poses of the grid in the box.
        requirements: limits.
        objectives: quantities to minimize or maximize.
        ranges: limits of coordinates by name, SI.
        speeds: linear and angular speed of the platform for the speed of actuators.
        radian_length: length by which rotations are multiplied in singular values, m; 0 for the
            machine's length.
        tolerances: options of `tolerance_map` for the accuracy.
        loads: load cases.
        motion: motion and catalogue for which motors are sized.
        search: size of the search.
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
    radian_length: float = 0.0
    tolerances: Mapping[str, str] = field(default_factory=dict)
    loads: tuple[ToolLoadCase, ...] = ()
    motion: TaskMotion = field(default_factory=TaskMotion)
    search: SearchSize = field(default_factory=SearchSize)

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
        columns: list[int] = []
        for i, variable in enumerate(self.variables):
            columns += [i] * len(variable.parameters)
        return np.asarray(x[:, columns])

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
    def _file_hashes(self) -> list[str]:
        """Hashes of the files of the motion and of the catalogue."""
        paths = (self.motion.catalogue, self.motion.cycle, self.motion.trajectory)
        existing = [path for path in paths if path is not None and path.is_file()]
        return [hashlib.sha256(path.read_bytes()).hexdigest() for path in existing]

    @property
    def digest(self) -> str:
        """Hash of everything that determines the search."""
        box = (self.center, self.half, self.radius, self.count)
        objectives = [(item.name, item.text, item.is_minimized) for item in self.objectives]
        limits = (self.requirements, self.ranges, self.speeds, self.radian_length, self.tolerances)
        loads = [(load.name, load.wrench, load.offset) for load in self.loads]
        motion = (self.motion.reserve, self.motion.duration, self.motion.payload)
        search = (self.search.population, self.search.seed, loads, motion, self._file_hashes)
        machine = dumps(self.model.mechanism)
        text = content((machine, self.variables, box, objectives, limits, search))
        return hashlib.sha256(text.encode()).hexdigest()[:24]
