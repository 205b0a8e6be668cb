"""Grammar of a task file (tauloop-synthesis/1)."""

from __future__ import annotations

from tauloop.mechanism.description import units
from tauloop.mechanism.description.cursor import (
    Choice,
    ListOf,
    MapOf,
    Shape,
    Text,
    Whole,
    field,
    need,
    value,
)

TASK_FORMAT = "tauloop-synthesis/1"
#: Maximum number of poses, members of a population, and generations.
MAX_POSES, MAX_POPULATION, MAX_GENERATIONS = 100_000, 100_000, 100_000
_RANGE = ListOf(item=Text(is_needed=True), length=2)
_FREE = MapOf(item=_RANGE, key="parameter", is_known=True, may_be_empty=False)
_AXES = MapOf(item=_RANGE, key="axis", is_known=True)
CYLINDER = Shape(
    name="cylinder",
    doc="Cylinder along z about the center of the box.",
    fields=(
        need("radius", value(units.LENGTH, sign="positive"), "radius"),
        field("height", value(units.LENGTH, sign="not negative"), "height; 0 if absent"),
    ),
)
MOST = Shape(
    name="upper limit",
    doc="An upper limit.",
    fields=(need("most", Text(is_needed=True), "largest value"),),
)
LEAST = Shape(
    name="lower limit",
    doc="A lower limit.",
    fields=(need("least", Text(is_needed=True), "smallest value"),),
)
FACTORS = Shape(
    name="velocity factors",
    doc="Limits of the singular values of the Jacobian from platform to actuator velocities.",
    fields=(
        field("least", Text(is_needed=True), "smallest value"),
        field("most", Text(is_needed=True), "largest value"),
    ),
    one_of=("least", "most"),
)
JOINT_SPEED = Shape(
    name="joint speed",
    doc="Largest speed of an actuator while the platform moves in any direction.",
    fields=(
        field("tool_speed", value(units.SPEED, sign="positive"), "speed of the platform"),
        field(
            "turning_speed",
            value(units.ANGULAR_SPEED, sign="positive"),
            "angular speed of the platform",
        ),
        field("most", Text(is_needed=True), "largest speed of an actuator"),
    ),
    one_of=("tool_speed", "turning_speed"),
)
ACCURACY = Shape(
    name="accuracy",
    doc="Largest position error of the tool due to tolerances (`accuracy tolerances`).",
    fields=(
        field("most", Text(is_needed=True), "largest position error"),
        field("tolerances", Text(is_needed=True), "such as arm_length=0.05mm"),
        field("encoders", Text(is_needed=True), "such as *=0.01deg"),
        field("clearances", Text(is_needed=True), "such as *=0.02mm"),
    ),
    one_of=("tolerances", "encoders", "clearances"),
)
MOTORS = Shape(
    name="motors",
    doc="A catalogue in which every actuator must find a motor with a gear.",
    fields=(
        need("catalogue", Text(is_needed=True), "file of `design motors`, next to this one"),
        field(
            "reserve",
            value(units.ONE, sign="not negative"),
            "safety margin, as a fraction of the motor limits",
        ),
    ),
)
REQUIREMENTS = Shape(
    name="set of requirements",
    doc="What every pose of the box, and the machine, must satisfy; reach is always required.",
    fields=(
        field(
            "stops",
            Choice(options=("stops", "drawing")),
            "ranges of the machine file to enforce: mechanical stops only, or also the ranges for "
            "drawing; none if absent",
        ),
        field(
            "joint_ranges", MapOf(item=_RANGE, key="coordinate", is_known=True), "further ranges"
        ),
        field(
            "radian_length",
            value(units.LENGTH, sign="positive"),
            "characteristic length that makes rotations and translations comparable in singular "
            "values; required if the machine has both rotary and linear actuators",
        ),
        field("condition_number", MOST, "of the Jacobian from platform to actuator velocities"),
        field("velocity_factors", FACTORS, "singular values of that Jacobian"),
        field("joint_speed", JOINT_SPEED, "speed of the actuators"),
        field("clearance", LEAST, "distance between center lines of rods"),
        field("footprint", MOST, "area of the rectangle around joints and rod ends, from above"),
        field("mass", MOST, "of all bodies and rods"),
        field("stiffness", LEAST, "against a force in any direction, with the motors held"),
        field("first_mode", LEAST, "lowest natural frequency, with the motors held"),
        field("accuracy", ACCURACY, "position error of the tool due to tolerances"),
        field("motors", MOTORS, "motors and gears for the motion"),
        field("motor_force", MOST, "largest force of an actuator, under loads and over the motion"),
        field("motor_rms", MOST, "largest root mean square of an actuator's force over the motion"),
        field("motor_speed", MOST, "largest speed of an actuator over the motion"),
        field("deflection", MOST, "largest displacement of the tool under the load cases alone"),
        field(
            "joint_force", MOST, "largest force in a joint or rod end under weight and load cases"
        ),
    ),
)
OBJECTIVE = Shape(
    name="objective",
    doc="An objective: exactly one of `minimize` and `maximize`.",
    fields=(
        field("minimize", Text(is_needed=True), "a quantity, or an expression of parameters"),
        field("maximize", Text(is_needed=True), "a quantity, or an expression of parameters"),
    ),
    one_of=("minimize", "maximize"),
)
WORK_BOX = Shape(
    name="box",
    doc="Poses that the machine must reach.",
    fields=(
        field("ranges", _AXES, "ranges of x, y, z about the center, and of rotations rx, ry, rz"),
        field("cylinder", CYLINDER, "in place of ranges of x, y and z"),
        field(
            "center",
            MapOf(item=Text(is_needed=True), key="axis", is_known=True),
            "center of the box: a value, or a range LOW:HIGH in which the search chooses it; the "
            "reference pose if absent",
        ),
        field("poses", Whole(least=8, most=MAX_POSES), "number of poses; 1000 by default"),
    ),
    one_of=("ranges", "cylinder"),
)
STRUCTURE = Shape(
    name="structure",
    doc="A machine that is compared with the others for the same task.",
    fields=(
        need("machine", Text(is_needed=True), "a shipped machine, or a file next to this one"),
        need("free", _FREE, "its free parameters with lower and upper bounds"),
        field("objectives", MapOf(item=OBJECTIVE, is_known=True), "its own objectives, by name"),
        field(
            "center",
            MapOf(item=Text(is_needed=True), key="axis", is_known=True),
            "its own center of the box",
        ),
        field("joint_ranges", MapOf(item=_RANGE, key="coordinate", is_known=True), "its ranges"),
    ),
)
LOAD_CASE = Shape(
    name="load case",
    doc="A force and a moment that act on the tool at rest, in the axes of the base.",
    fields=(
        field("force", ListOf(item=value(units.FORCE), length=3), "force; zero if absent"),
        field("moment", ListOf(item=value(units.TORQUE), length=3), "moment; zero if absent"),
        field(
            "at",
            MapOf(item=Text(is_needed=True), key="axis", is_known=True),
            "position at which the load acts, relative to the center of the box; every pose of the "
            "box if absent",
        ),
    ),
    one_of=("force", "moment"),
)
SEARCH = Shape(
    name="search",
    doc="Size of the search.",
    fields=(
        field("population", Whole(least=8, most=MAX_POPULATION), "members; 100 by default"),
        field("generations", Whole(least=1, most=MAX_GENERATIONS), "generations; 60 by default"),
        field("seed", Whole(least=0, most=999_999_999), "seed of random numbers; 0 by default"),
        field("designs", Whole(least=1, most=50), "number of machine files; 5 by default"),
    ),
)
MOTION = Shape(
    name="motion",
    doc="Motion for which motors are sized; by default a stroke along the longest side of the box.",
    fields=(
        field("cycle", Text(is_needed=True), "list of stations (`plan cycle`), next to this file"),
        field(
            "trajectory",
            Text(is_needed=True),
            "CSV or Parquet file with times and a motion of the platform, next to this file",
        ),
        field("duration", value(units.TIME, sign="positive"), "duration of the stroke"),
        field("payload", Text(is_needed=True), "mass at the tool, such as 0.5kg"),
    ),
)
TASK = Shape(
    name="task",
    doc="A task of dimensional synthesis.",
    fields=(
        need("format", Choice(options=(TASK_FORMAT,)), "format and version"),
        field("description", Text(), "purpose of the machine"),
        field("machine", Text(is_needed=True), "a shipped machine, or a file next to this one"),
        field("free", _FREE, "free parameters with lower and upper bounds"),
        field("structures", MapOf(item=STRUCTURE), "machines to compare, in place of `machine`"),
        need("box", WORK_BOX, "poses that the machine must reach"),
        field("requirements", REQUIREMENTS, "further requirements"),
        need("objectives", MapOf(item=OBJECTIVE, may_be_empty=False), "objectives by name"),
        field("loads", MapOf(item=LOAD_CASE), "load cases by name"),
        field("motion", MOTION, "motion for which motors are sized"),
        field("search", SEARCH, "size of the search"),
    ),
)
