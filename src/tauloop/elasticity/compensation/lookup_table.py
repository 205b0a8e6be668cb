"""Lookup tables of motor corrections over poses, with the interpolation error of each table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field

import numpy as np

from tauloop.common.datasets import Variable, columns
from tauloop.common.errors import InputError, PoseError, Problems, solving
from tauloop.common.files import csv_text
from tauloop.common.keywords import keywords
from tauloop.common.options import Options, option
from tauloop.common.plain import OMITTED, json_keys
from tauloop.common.progress import Progress, Stages
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, Result, diagnostic, provenance
from tauloop.compiler.state import solve_diagnostics
from tauloop.elasticity.compensation.compensation_program import (
    ACTUATOR_OUTPUT,
    TEMPERATURES,
    CompensationProgram,
    compensation_program,
)
from tauloop.elasticity.frame.beams import Array
from tauloop.elasticity.heat.expansion import expansions_of
from tauloop.equations.named_values import TOOL_PORT, by_column, named_values, ranges_of
from tauloop.equations.ports import motor_port
from tauloop.mechanism.description import units
from tauloop.mechanism.description.units import EXPANSION, TEMPERATURE
from tauloop.mechanism.suggestions import listing
from tauloop.model import Model
from tauloop.model.model import MachineSource, modeled

#: Number of points per axis of the first grid.
FIRST_POINTS = 3
#: Maximum number of points of a grid.
MAX_TABLE_POINTS = 20_000
#: The refinement stops if the error extrapolated to MAX_TABLE_POINTS exceeds the tolerance by this
#: factor.
GIVE_UP_FACTOR = 4.0
#: Number of random sign combinations of the largest loads at which the error is calculated, in
#: addition to no load and all largest loads.
LOAD_SIGNS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class CompensationTableOptions(Options):
    """Poses, loads and accuracy of a lookup table.

    Attributes:
        ranges: ranges of platform positions, such as 'x=-0.4:0.4,z=100:300 mm' (SI without a unit);
            default: the limits in the machine file.
        table_tolerance: largest error of the tool due to interpolation, m.
        wrench: wrench at the tool, such as 'fx=10,mz=0.5' (N, N m, base frame).
        max_temperature: largest change of the temperature of a part, K.
        expansions: coefficients of expansion by part, 1/K, instead of the file's; or one number
            for all parts for which the file states none. The base, and bodies without beams,
            expand uniformly if they have a coefficient.
        weightless: neglect the weight of the machine.

    Examples:
        >>> import tauloop as tl
        >>> tl.CompensationTableOptions(table_tolerance="2 um").table_tolerance
        2e-06
    """

    ranges: Mapping[str, tuple[float, float]] | None = option(
        None,
        read=ranges_of,
        metavar="NAME=LOW:HIGH",
        unit=(units.LENGTH, units.ANGLE, units.ONE),
    )
    table_tolerance: float = option(1e-6, above=0.0, metavar="LENGTH", unit=units.LENGTH)
    wrench: str | Mapping[str, str | float] | tuple[float, ...] | None = option(
        None, read=str, metavar="VALUES"
    )
    max_temperature: float = option(5.0, above=0.0, unit=TEMPERATURE)
    expansions: float | Mapping[str, float] | None = option(
        None, unit=EXPANSION, below=np.inf, read=expansions_of, metavar="VALUES"
    )
    weightless: bool = option(False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompensationTable(Result):
    """Corrections of motors on a grid of poses: correction = c + C w + H T.

    The wrench w acts at the tool, T are the temperature changes of the parts. Positions between
    grid points are interpolated linearly along each axis.

    Attributes:
        model: the machine.
        options: poses, loads and accuracy.
        axes: names of the platform positions that vary (a positions); the others have their values
            at the reference pose.
        grid: values of each axis, m or rad.
        position: (N, a) grid points, the last axis varies fastest.
        correction: (N, n_u) corrections c for weight, m or rad.
        by_wrench: (N, n_u, 6) corrections C per unit wrench.
        by_temperature: (N, n_u, p) corrections H per kelvin of each part.
        parts: names of the parts that expand (p parts).
        interpolation_error: largest error of the tool's position at midpoints of the grid, with the
            largest loads and temperatures, m.
    """

    model: Model = field(metadata=json_keys(machine="mechanism.name"))
    options: CompensationTableOptions = field(metadata=OMITTED)
    axes: tuple[str, ...]
    grid: tuple[np.ndarray, ...]
    position: np.ndarray
    correction: np.ndarray
    by_wrench: np.ndarray
    by_temperature: np.ndarray
    parts: tuple[str, ...]
    interpolation_error: float = field(metadata=json_keys("interpolation_error_m"))

    def interpolated(self, position: Array, wrench: Array, temperatures: Array) -> Array:
        """Return the corrections (N, n_u) of the actuators, m or rad.

        Args:
            position: positions (N, a) of `axes`, in the ranges of the table, SI.
            wrench: wrenches (N, 6) at the tool, N and N m.
            temperatures: temperatures (N, p) of `parts` relative to the reference temperature, K.

        Raises:
            InputError: a position is outside the ranges of the table.
        """
        for name, axis, column in zip(self.axes, self.grid, np.atleast_2d(position).T, strict=True):
            outside = np.flatnonzero(~((axis[0] <= column) & (column <= axis[-1])))
            if len(outside):
                what = f"is {column[outside[0]]:g} at row {outside[0] + 1}, outside the table"
                remedy = f"give values from {axis[0]:g} to {axis[-1]:g}, or compute a larger table"
                raise InputError.of(f"position {name}", what, remedy)
        count, motors = self.correction.shape
        by_wrench = self.by_wrench.reshape(count, 6 * motors)
        by_heat = self.by_temperature.reshape(count, len(self.parts) * motors)
        values = np.concatenate([self.correction, by_wrench, by_heat], axis=1)
        sizes = [len(axis) for axis in self.grid]
        interpolated = _interpolated(self.grid, values.reshape(*sizes, -1), np.atleast_2d(position))
        c, C, H = np.split(interpolated, [motors, 7 * motors], axis=1)
        total = c + (C.reshape(-1, motors, 6) @ np.atleast_2d(wrench)[..., None])[..., 0]
        rises = np.atleast_2d(temperatures)[..., None]
        by_heat = H.reshape(len(interpolated), motors, len(self.parts)) @ rises
        return np.asarray(total + by_heat[..., 0])

    def _columns(self) -> Iterator[tuple[str, str, Array]]:
        """Yield the name, unit and values (N,) of each column of corrections."""
        motors = motor_port(self.model.assembly, "position", "rad", "m")
        for k, (motor, unit) in enumerate(zip(motors.columns, motors.units, strict=True)):
            yield f"correction.{motor}", unit, self.correction[:, k]
            for i, name in enumerate(TOOL_PORT.columns):
                load_unit = TOOL_PORT.units[i]
                divisor = f"({load_unit})" if " " in load_unit else load_unit
                yield f"{name}.{motor}", f"{unit}/{divisor}", self.by_wrench[:, k, i]
            for i, part in enumerate(self.parts):
                yield f"{part}.{motor}", f"{unit}/K", self.by_temperature[:, k, i]

    def variables(self) -> Iterator[Variable]:
        """Yield positions and corrections over the points of the grid."""
        over = ("point",)
        numbers = np.arange(1, len(self.position) + 1)
        yield Variable(name="point", values=numbers, over=over)
        port = self.model.platform.ports.position
        unit_of = dict(zip(port.columns, port.units, strict=True))
        axis_units = tuple(unit_of[name] for name in self.axes)
        yield from columns("position", self.axes, axis_units, self.position, over)
        for name, unit, values in self._columns():
            yield Variable(name=name, values=values, unit=unit, over=over)

    def to_csv(self) -> str:
        """Return a CSV text: positions, corrections, and corrections per load and temperature."""
        exported = [item for item in self.variables() if item.name != "point"]
        headers = tuple(f"{item.name} [{item.unit}]" for item in exported)
        values = np.column_stack([item.array() for item in exported])
        return csv_text(headers, [tuple(row) for row in values.tolist()])


@keywords(CompensationTableOptions)
@solving(PoseError)
def compensation_table(
    machine: MachineSource,
    options: CompensationTableOptions | None = None,
    *,
    progress: Progress | None = None,
) -> CompensationTable:
    """Return a lookup table of motor corrections over a grid of poses.

    Corrections are linear in wrench and temperatures. The grid is refined until the interpolated
    corrections agree with those of the compensation program (see `export_compensation`): for the
    largest loads, the tool's error at midpoints of the grid must be below the tolerance.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        options: ranges, tolerance, and the largest wrench and temperatures.
        progress: called with the completed and the total number of steps.

    Raises:
        InputError: 20 000 points are not enough for the tolerance, a range is given for a component
            of a quaternion (the components cannot vary independently), there is no range, or
            the machine has no elastic data.
        PoseError: a pose of the grid is out of reach or singular.

    Examples:
        >>> import tauloop as tl
        >>> machine = tl.loads('''
        ... format: tauloop-machine/1
        ... name: slide
        ... provenance: {status: chosen, source: example}
        ... gravity: [0, 0, -9.81 m/s^2]
        ... bodies: {cart: {mass: 2 kg}}
        ... joints: {rail: {type: prismatic, axis: x, parent: base, child: cart}}
        ... actuators: {motor: {on: rail, force: 10 N, stiffness: 5 N/um}}
        ... platform: {body: cart, independent: [rail]}
        ... ''')
        >>> table = tl.compensation_table(machine, ranges={"rail": (0.0, 0.2)})
        >>> len(table.position), f"{table.by_wrench[0, 0, 0]:.1e}"
        (3, '-2.0e-07')
    """
    model = modeled(machine)
    options = options or CompensationTableOptions()
    program = compensation_program(
        model, expansions=options.expansions, is_weightless=options.weightless
    )
    wrench = named_values(TOOL_PORT, "wrench", options.wrench, np.zeros(6))
    corrections = _Corrections(model, program, np.asarray(wrench, float), options.max_temperature)
    names, ranges = _axes(model, options)
    stages = Stages(progress, 1)
    first_error = 0.0
    counts = [FIRST_POINTS] * len(names)
    while True:
        grid = tuple(
            np.linspace(low, high, count) for (low, high), count in zip(ranges, counts, strict=True)
        )
        values = corrections.coefficients(names, grid)
        errors = corrections.errors(names, grid, values)
        if max(errors) <= options.table_tolerance:
            break
        first_error = max(first_error, *errors)
        needed_reduction = np.log(first_error / options.table_tolerance)
        stages.part(np.log(first_error / max(errors)), needed_reduction)
        worst = int(np.argmax(errors[: len(names)]))
        points = int(np.prod(counts))
        counts[worst] = 2 * counts[worst] - 1
        # The error of linear interpolation is proportional to the square of the grid spacing.
        expected_error = max(errors) * (points / MAX_TABLE_POINTS) ** (2.0 / len(names))
        is_hopeless = expected_error > GIVE_UP_FACTOR * options.table_tolerance
        if is_hopeless or np.prod(counts) > MAX_TABLE_POINTS:
            what = f"cannot be met: the error is {max(errors):.3g} m with {points} points"
            remedy = "give a larger tolerance, smaller ranges or smaller loads"
            raise InputError.of("table_tolerance", what, remedy)
    stages.done()
    count = int(np.prod(counts))
    motors = len(model.mechanism.actuators)
    parts = len(program.parts)
    flat = values.reshape(count, -1)
    c, C, H = np.split(flat, [motors, 7 * motors], axis=1)
    return CompensationTable(
        model=model,
        options=options,
        axes=names,
        grid=grid,
        position=_points(grid),
        correction=c,
        by_wrench=C.reshape(count, motors, 6),
        by_temperature=H.reshape(count, motors, parts),
        parts=program.parts,
        interpolation_error=max(errors),
        diagnostics=tuple(_diagnostics(max(errors), options)),
        provenance=provenance(
            options={"tolerance": options.table_tolerance, "wrench": wrench.tolist()},
            inputs={"machine": model.mechanism.name, "points": count},
        ),
    )


def _diagnostics(error: float, options: CompensationTableOptions) -> Iterator[Diagnostic]:
    """Yield a diagnostic of the interpolation error."""
    yield diagnostic(
        "largest error of the tool at midpoints of the grid",
        error,
        at_most=options.table_tolerance,
        unit="m",
        advice="give smaller ranges",
    )


def _axes(
    model: Model, options: CompensationTableOptions
) -> tuple[tuple[str, ...], list[tuple[float, float]]]:
    """Return the names of the positions that vary, and their ranges.

    Raises:
        InputError: there is no range, or a range belongs to a component of a quaternion.
    """
    port = model.platform.ports.position
    ranges: Mapping[str, tuple[float, float]]
    if options.ranges is not None:
        unit_of = dict(zip(port.columns, port.units, strict=True))
        ranges = by_column(unit_of, options.ranges, "ranges")
    else:
        limits = model.limits
        limit_of_coordinate = {column: k for k, column in enumerate(limits.columns)}
        coordinates = zip(port.columns, model.platform.ports.q, strict=True)
        limit_indices = {name: limit_of_coordinate.get(column) for name, column in coordinates}
        ranges = {
            name: (float(limits.lower[k]), float(limits.upper[k]))
            for name, k in limit_indices.items()
            if k is not None and np.isfinite([limits.lower[k], limits.upper[k]]).all()
        }
    problems = Problems()
    if not ranges:
        problems.add("ranges", "are not given, and the file has none", "give 'x=-0.1:0.1'")
    quaternion_columns = {
        port.columns[start + i]
        for start in model.platform.ports.whole_quaternions(model.topology)
        for i in range(4)
    }
    for name in quaternion_columns & set(ranges):
        what = "is a component of a quaternion, which cannot vary alone"
        problems.add(f"ranges.{name}", what, "compute one table per reference orientation")
    InputError.raise_if_any(problems)
    names = tuple(name for name in port.columns if name in ranges)
    return names, [ranges[name] for name in names]


def _points(grid: tuple[Array, ...]) -> Array:
    """Return the points (N, a) of a grid, the last axis fastest."""
    return np.stack(np.meshgrid(*grid, indexing="ij"), axis=-1).reshape(-1, len(grid))


def _interpolated(grid: tuple[Array, ...], values: Array, points: Array) -> Array:
    """Return values (N, k) at points (N, a) of a grid, by linear interpolation along each axis.

    Args:
        grid: values of the a axes.
        values: (n_1, ..., n_a, k) values at the points of the grid.
        points: (N, a) points inside the grid.
    """
    from scipy.interpolate import RegularGridInterpolator

    return np.asarray(RegularGridInterpolator(grid, values)(points))


class _Corrections:
    """Corrections of a machine, computed with the compensation program."""

    def __init__(
        self, model: Model, program: CompensationProgram, wrench: Array, temperature: float
    ) -> None:
        """Set the steps of the central differences, and the loads for the interpolation error.

        The step of a load component is its largest value, or a small value if this is zero.

        Args:
            model: the machine.
            program: program that computes the corrections.
            wrench: (6,) largest wrench.
            temperature: largest temperature change, K.
        """
        self.model = model
        self.program = program.program
        magnitude = np.abs(wrench)
        wrench_steps = np.where(magnitude > 0.0, magnitude, max(magnitude.max(), 1.0) * 1e-2)
        self.parts = len(program.parts)
        self.load_steps = np.concatenate([wrench_steps, np.full(self.parts, temperature)])
        signs = np.random.default_rng(0).choice([-1.0, 1.0], (LOAD_SIGNS, 6 + self.parts))
        largest = np.concatenate([magnitude, np.full(self.parts, temperature)])
        self.loads = np.concatenate([[0.0 * largest, largest], signs * largest])

    def at(self, names: tuple[str, ...], points: Array, loads: Array) -> Array:
        """Return corrections (L, N, n_u) at points (N, a) and loads (L, 6 + p).

        Raises:
            PoseError: a point is out of reach or singular.
        """
        port = self.model.platform.ports.position
        reference = self.model.platform_position(self.model.assembly.q)
        position = np.tile(reference, (len(points), 1))
        position[:, [port.columns.index(name) for name in names]] = points
        rigid = self.model.actuator_position(self.model.inverse_kinematics(position).q)
        count = len(points)
        corrections = []
        for load in loads:
            inputs = {
                "position": position,
                "wrench": np.tile(load[:6], (count, 1)),
                TEMPERATURES: np.tile(load[6:] if self.parts else np.zeros(1), (count, 1)),
                "start": np.tile(self.model.assembly.q, (count, 1)),
                "theta": np.zeros((count, 0)),
            }
            values, diagnostics = self.program.run(inputs, count)
            state = solve_diagnostics(self.program, diagnostics)
            is_failed = ~(state.is_reached & state.is_regular)
            if is_failed.any():
                first = points[is_failed][0]
                point = listing(
                    f"{name}={value:.4g}" for name, value in zip(names, first, strict=True)
                )
                failures = int(is_failed.sum())
                what = f"the pose is out of reach or singular at {failures} points, such as {point}"
                raise PoseError.of("ranges", what, "give smaller ranges")
            corrections.append(values[ACTUATOR_OUTPUT] - rigid)
        return np.stack(corrections)

    def coefficients(self, names: tuple[str, ...], grid: tuple[Array, ...]) -> Array:
        """Return the values of c, C and H on a grid, (n_1, ..., n_a, n_u (1 + 6 + p)).

        C and H are central differences with respect to the loads.
        """
        points = _points(grid)
        steps = np.diag(self.load_steps)
        count = len(steps)
        no_load = np.zeros((1, count))
        runs = self.at(names, points, np.concatenate([no_load, steps, -steps]))
        plus = runs[1 : 1 + count]
        minus = runs[1 + count :]
        slopes = (plus - minus) / (2.0 * self.load_steps[:, None, None])
        motors = runs.shape[-1]
        by_wrench = np.moveaxis(slopes[:6], 0, -1).reshape(len(points), 6 * motors)
        by_heat = np.moveaxis(slopes[6:], 0, -1).reshape(len(points), self.parts * motors)
        flat = np.concatenate([runs[0], by_wrench, by_heat], axis=1)
        return flat.reshape(*(len(axis) for axis in grid), -1)

    def errors(self, names: tuple[str, ...], grid: tuple[Array, ...], values: Array) -> list[float]:
        """Return the tool's largest errors, m, at points between the grid points.

        The first values, one for each axis, are errors at midpoints along this axis only. The last
        value is the error at the centers of the cells.
        """
        midpoints = [0.5 * (axis[1:] + axis[:-1]) for axis in grid]
        between = []
        for k in range(len(grid)):
            axes = list(grid)
            axes[k] = midpoints[k]
            between.append(axes)
        between.append(midpoints)
        return [self._error(names, grid, values, _points(tuple(axes))) for axes in between]

    def _error(
        self, names: tuple[str, ...], grid: tuple[Array, ...], values: Array, points: Array
    ) -> float:
        """Return the largest error of the tool's position at points (N, a), m."""
        motors = len(self.model.mechanism.actuators)
        count = len(points)
        c, C, H = np.split(_interpolated(grid, values, points), [motors, 7 * motors], axis=1)
        by_load = np.concatenate(
            [C.reshape(count, motors, 6), H.reshape(count, motors, self.parts)], axis=2
        )
        total = c + np.einsum("nmk,lk->lnm", by_load, self.loads)
        actuator_errors = total - self.at(names, points, self.loads)
        port = self.model.platform.ports.position
        position = np.tile(self.model.platform_position(self.model.assembly.q), (len(points), 1))
        position[:, [port.columns.index(name) for name in names]] = points
        platform_per_actuator = np.linalg.pinv(self.model.platform.actuator_jacobian(position))
        J = self.model.platform.tool_jacobian(position)[:, :3]
        tool_errors = np.einsum("nij,lnj->lni", J @ platform_per_actuator, actuator_errors)
        return float(np.linalg.norm(tool_errors, axis=-1).max())
