"""Workspace maps: the usable poses of a grid, and the reasons why other poses are not usable."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import combinations
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tauloop.common.datasets import Variable
from tauloop.common.errors import InputError, PoseError, Problems, solving
from tauloop.common.names.deprecated import old_attribute
from tauloop.common.plain import OMITTED, in_json, json_keys
from tauloop.common.progress import Stages
from tauloop.common.records import dataclass
from tauloop.common.result import Result, diagnostic, provenance
from tauloop.compiler.c.calling.evaluator import Interpreted
from tauloop.compiler.catalogue import KINEMATICS
from tauloop.compiler.limits import CONVERGED
from tauloop.compiler.state import State
from tauloop.equations.ports import numbers
from tauloop.geometry.clearance import rod_clearance
from tauloop.kinematics.singularities import (
    SINGULARITY_KINDS,
    Singularities,
    least_distance,
    singularities,
)
from tauloop.kinematics.workspaces.border import Border, bordered
from tauloop.kinematics.workspaces.code import AT_ONCE, MIN_COMPILED_POSES, PoseKernel
from tauloop.kinematics.workspaces.pose_axes import pose_axes
from tauloop.mechanism.suggestions import unknown_names
from tauloop.model import Model
from tauloop.model.forces.tension_terms import NO_WRENCH

if TYPE_CHECKING:
    import xarray as xr

#: Properties of a pose that may color a map.
MEASURES = ("serial", "parallel", "constraint", "clearance", "tension")
#: Number of poses that are classified together.
MAP_CHUNK = 8192
#: Number of poses along the longest axis of a grid without a given resolution.
DEFAULT_POSES_PER_AXIS = 120
#: Step to which the length of an axis is rounded for the default resolution: rad; for lengths, a
#: fraction of the power of ten above the characteristic length.
EXTENT_STEP = 1e-3
#: Rounding error of a ratio of a range to a step, and of a decimal logarithm.
GRID_TOLERANCE = 1e-9
#: Maximum number of poses of a grid.
MAX_GRID_POSES = 10_000_000
#: Distance from singularities below which tensions and postures are not determined.
MIN_REGULAR_DISTANCE = 1e-6
#: Number of steps in which loops solved by Newton's method are followed from the reference pose.
FOLLOWING_STEPS = 24


class Reason(enum.IntEnum):
    """Whether a pose is usable, or the first reason why it is not."""

    USABLE = 0
    OUT_OF_REACH = 1
    JOINT_LIMIT = 2
    SINGULAR = 3
    INTERFERENCE = 4
    TENSION = 5
    CUT_OFF = 6

    @property
    def text(self) -> str:
        """Description in words."""
        return self.name.lower().replace("_", " ")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceLimits:
    """Requirements on a usable pose.

    Attributes:
        singularity: smallest distance from every kind of singularity (see `Singularities`); zero
            for no limit. None means 0.05, or half of the reference pose's distance if that is less
            than 0.05. A finished map contains the value that was used.
        clearance: smallest distance between the center lines of two rods, m; zero for no limit.
        ranges: whether poses beyond stops of joints and rods are excluded.
        tension: smallest margin between the cables' tensions and their bounds, N (see
            `Motion.tension_margin`); -inf for no limit.
        wrenches: wrenches (6,) that act at the tool, N and N m. Each is a separate load case with
            the machine at rest.
        connected: whether a pose must be connected with the reference pose. Poses beyond a
            singularity or beyond excluded poses are cut off.
    """

    singularity: float | None = None
    clearance: float = 0.0
    ranges: bool = True
    tension: float = 0.0
    wrenches: tuple[tuple[float, ...], ...] = NO_WRENCH
    connected: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class MapQuantity:
    """A further quantity over the poses of a map, with its worst value.

    Attributes:
        name: name of the quantity in `Workspace.arrays`.
        label: label of the color scale, without the unit.
        unit: SI unit.
        shown_unit: unit in plots and tables.
        factor: factor from the SI unit to `shown_unit`.
        worst: worst value over the usable poses, also between the points of the grid; NaN if no
            pose is usable.
        worst_pose: values of the axes at the worst value, by name.
    """

    name: str
    label: str
    unit: str
    shown_unit: str = field(metadata=OMITTED)
    factor: float = field(metadata=OMITTED)
    worst: float = field(metadata=json_keys(nullable=True))
    worst_pose: Mapping[str, float] = field(metadata=json_keys(nullable=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace(Result):
    """A workspace map.

    Attributes:
        arrays: arrays over the grid, by name: `reason` (see `Reason`), `blame` (index into
            `elements` of the loop, coordinate or pair of rods that excludes the pose, -1 for none),
            `serial`, `parallel` and `constraint` (see `Singularities`), `clearance` (m), `tension`
            (margin of the cables, N), and the outputs of the machine file (`output.NAME`). Values
            are NaN where the loops do not close.
        axes: values of the positions that vary, by name, in the order of the grid's axes.
        units: units of `axes`.
        reference: values of the positions that vary at the reference pose.
        elements: names to which `blame` refers.
        fixed: values of the positions that do not vary, by name.
        fixed_units: units of `fixed`.
        limits: requirements on a usable pose.
        border: border of the usable poses between the points of the grid.
        model: model of the machine, for drawing it.
        quantities: further quantities in `arrays`, see `elastic_map`.
    """

    needs_forces: ClassVar[bool] = False
    arrays: Mapping[str, np.ndarray] = field(metadata=OMITTED)
    axes: Mapping[str, np.ndarray]
    units: tuple[str, ...] = field(metadata=OMITTED)
    reference: tuple[float, ...] = field(metadata=OMITTED)
    elements: tuple[str, ...] = field(metadata=OMITTED)
    fixed: dict[str, float]
    fixed_units: tuple[str, ...] = field(metadata=OMITTED)
    limits: WorkspaceLimits
    border: Border = field(metadata=json_keys(connected_usable="size"))
    model: Model = field(metadata=OMITTED)
    quantities: tuple[MapQuantity, ...] = ()

    figures = old_attribute("figures", "arrays")

    def variables(self) -> Iterator[Variable]:
        """Yield the axes, and the arrays over them."""
        for (name, axis), unit in zip(self.axes.items(), self.units, strict=True):
            yield Variable(name=name, values=axis, over=(name,), unit=unit)
        units = {**_AXIS_UNITS, **output_units(self.model)}
        units |= {quantity.name: quantity.unit for quantity in self.quantities}
        for name, unit in units.items():
            yield Variable(name=name, values=self.arrays[name], over=tuple(self.axes), unit=unit)

    @property
    def held(self) -> str:
        """Positions that do not vary, as text; angles in degrees."""
        shown = [
            (name, f"{np.degrees(value):.4g} deg" if unit == "rad" else f"{value:.4g} {unit}")
            for (name, value), unit in zip(self.fixed.items(), self.fixed_units, strict=True)
        ]
        return ", ".join(f"{name} = {value}" for name, value in shown)

    @property
    def data(self) -> xr.Dataset:
        """Properties of the poses over the axes, with units; created on every access."""
        return self.to_xarray().assign_attrs(reference=list(self.reference))

    @property
    def reason(self) -> np.ndarray:
        """`Reason` of every pose of the grid."""
        return self.arrays["reason"]

    @property
    def usable(self) -> np.ndarray:
        """Whether the machine can work at each pose."""
        return np.asarray(self.reason == Reason.USABLE)

    @property
    def size(self) -> tuple[float, str]:
        """Usable length, area or volume within the border, and its unit; angles in rad."""
        units = [
            unit for axis, unit in zip(self.axes.values(), self.units, strict=True) if len(axis) > 1
        ]
        powers = {unit: units.count(unit) for unit in sorted(set(units))}
        return self.border.size, " ".join(
            unit if n == 1 else f"{unit}^{n}" for unit, n in powers.items()
        )

    @property
    def size_text(self) -> str:
        """Usable size with its unit, as text; in degrees if all axes are angles."""
        size, unit = self.size
        if all(axis_unit == "rad" for axis_unit in self.units):
            size *= np.degrees(1.0) ** len(self.units)
            unit = unit.replace("rad", "deg")
        digits = 4 if size < 1e4 else 6
        return f"{size:.{digits}g} {unit}"

    def section(self) -> Workspace | None:
        """Return the map over the first two varying positions; None for a map over a line.

        The other positions are the grid values nearest to the reference pose.
        """
        shape = {name: len(axis) for name, axis in self.axes.items()}
        names = [name for name, count in shape.items() if count > 1][:2]
        if len(names) < 2:
            return None
        units = dict(zip(self.axes, self.units, strict=True))
        reference = dict(zip(self.axes, self.reference, strict=True))
        cut_index = {
            name: int(np.abs(axis - reference[name]).argmin())
            for name, axis in self.axes.items()
            if name not in names
        }
        index = tuple(cut_index.get(name, slice(None)) for name in self.axes)
        fixed = {name: float(self.axes[name][i]) for name, i in cut_index.items()}
        fixed_units = [units[name] for name in cut_index]
        cut_at = [i for name, i in cut_index.items() if shape[name] > 1]
        return replace(
            self,
            arrays={name: values[index] for name, values in self.arrays.items()},
            axes={name: self.axes[name] for name in names},
            units=tuple(units[name] for name in names),
            reference=tuple(reference[name] for name in names),
            fixed=self.fixed | fixed,
            fixed_units=(*self.fixed_units, *fixed_units),
            border=self.border.section(cut_at),
        )

    def walk(self, count: int) -> np.ndarray:
        """Return the coordinates (N, n_q) of at most `count` poses along the longest border.

        For a map over a line, the poses are on the line.
        """
        section = self.section() or self
        points = np.stack(np.meshgrid(*self.axes.values(), indexing="ij"), axis=-1)[self.usable]
        if len(section.border.axes) == 2:
            points = section.border.lines[0][0] if section.border.lines else points[:0]
        lengths = np.linalg.norm(np.diff(points, axis=0, prepend=points[:1]), axis=1)
        path_length = np.cumsum(lengths)
        chosen = points
        if len(points):
            wanted = np.linspace(0.0, path_length[-1], count)
            chosen = points[np.unique(np.searchsorted(path_length, wanted))]
        poses = _Poses(self.model)
        values = np.tile(poses.axes.reference, (len(chosen), 1))
        for name, value in section.fixed.items():
            values[:, poses.axes.columns.index(name)] = value
        values[:, [poses.axes.columns.index(name) for name in section.axes]] = chosen
        state = poses.state(values)
        return np.asarray(state.q[state.health.is_reached & np.isfinite(state.q).all(axis=1)])

    @property
    @in_json()
    def machine(self) -> object:
        """Name of the machine."""
        return self.provenance.inputs["machine"]

    @property
    @in_json()
    def connected_usable_unit(self) -> str:
        """Unit of the usable size."""
        return self.size[1]

    @property
    @in_json()
    def poses(self) -> dict[str, int]:
        """Number of poses by reason."""
        return {reason.text: int((self.reason == reason).sum()) for reason in Reason}

    @property
    @in_json()
    def least(self) -> dict[str, float]:
        """Smallest value of each of `MEASURES` over the usable poses; only if all are finite."""
        measures = {name: self.arrays[name][self.usable] for name in MEASURES}
        return {
            name: values.min()
            for name, values in measures.items()
            if len(values) and np.isfinite(values).all()
        }

    @property
    @in_json()
    def output_ranges(self) -> dict[str, tuple[float, float]]:
        """Smallest and largest values of the machine file's outputs over the usable poses, SI."""
        ranges = {}
        for name in output_units(self.model):
            values = self.arrays[name][self.usable]
            if len(values):
                ranges[name.removeprefix(OUTPUT)] = float(values.min()), float(values.max())
        return ranges

    @property
    @in_json("excluded_by")
    def exclusions(self) -> dict[str, int]:
        """See `excluded_by`."""
        return self.excluded_by()

    def excluded_by(self) -> dict[str, int]:
        """Return the number of poses that each element excludes, the most frequent first."""
        counts = np.bincount(self.arrays["blame"].ravel() + 1, minlength=len(self.elements) + 1)[1:]
        order = np.argsort(-counts, kind="stable")
        return {self.elements[i]: int(counts[i]) for i in order if counts[i]}


def _connected_component(usable: np.ndarray, first: Sequence[np.intp]) -> np.ndarray:
    """Return which usable poses are connected with the pose at index `first`.

    Neighbors are connected by edges of simplices.
    """
    remaining = np.pad(usable, 1)
    strides = [stride // remaining.itemsize for stride in remaining.strides]
    edges = [sum(chosen) for n in range(1, usable.ndim + 1) for chosen in combinations(strides, n)]
    steps = [sign * edge for edge in edges for sign in (-1, 1)]
    flat = remaining.reshape(-1)
    order = np.zeros(remaining.size, dtype=int)
    front = np.array([np.ravel_multi_index([i + 1 for i in first], remaining.shape)])
    while len(front := front[flat[front]]):
        flat[front] = False
        # remove repeated indices
        order[front] = np.arange(len(front))
        front = front[order[front] == np.arange(len(front))]
        front = (front[:, None] + steps).ravel()
    return usable & ~remaining[(slice(1, -1),) * usable.ndim]


@solving(PoseError)
def workspace_grid(
    model: Model,
    axes: Mapping[str, np.ndarray],
    *,
    fixed: Mapping[str, float] | None = None,
    limits: WorkspaceLimits | None = None,
    refined: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> Workspace:
    """Return a map over a grid of platform positions.

    Args:
        model: the machine.
        axes: values of the positions that vary, by name (one to three; names as in
            `model.platform.ports`, angles rx, ry, rz in place of a quaternion: see `PoseAxes`).
        fixed: values of other positions, by name; the rest keep their reference values.
        limits: requirements on a usable pose.
        refined: whether to locate the border between the points of the grid by bisection along the
            edges of its simplices; otherwise it is halfway between two points.
        progress: called with the number of finished poses and their total.

    Raises:
        InputError: unknown or repeated names, empty axes, or values that are not finite; wrenches
            or a tension margin for a machine without cables; or cables in a machine with passive
            degrees of freedom, which they cannot hold in place.
    """
    limits = limits or WorkspaceLimits()
    limits = replace(limits, singularity=least_distance(model, limits.singularity))
    fixed = dict(fixed or {})
    pose = pose_axes(model)
    columns, reference = pose.columns, pose.reference
    _require_axes(columns, axes, fixed)
    shape = tuple(len(values) for values in axes.values())
    _require_size(shape)
    positions = pose.grid(axes, fixed)
    classifier, stages = _PoseClassifier(model, limits), Stages(progress, 2 if refined else 1)
    parts, at_once = [], classifier.prepared(len(positions))
    for first in range(0, len(positions), at_once):
        parts.append(classifier(positions[first : first + at_once]))
        stages.part(min(first + at_once, len(positions)), len(positions))
    stages.done()
    arrays = {}
    for name in (*_AXIS_UNITS, *output_units(model), SIDE):
        arrays[name] = np.concatenate([part[name] for part in parts]).reshape(shape)
    varied = [columns.index(name) for name in axes]
    if limits.connected:
        _cut_off(arrays, axes, reference[varied], classifier.side(reference[None]))
    del arrays[SIDE]
    usable_fraction = float((arrays["reason"] == Reason.USABLE).mean())
    varying = [columns.index(name) for name, values in axes.items() if len(values) > 1]

    def labels(values: np.ndarray, near: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        whole = np.tile(positions[:1], (len(values), 1))
        whole[:, varying] = values
        return classifier.labels(whole, near)

    border = bordered(
        tuple(axes.values()),
        _ignore_thin_rims(arrays["reason"]),
        labels if refined else None,
        stages.part,
    )
    if refined:
        stages.done()
    return Workspace(
        arrays=arrays,
        axes={name: np.asarray(values, dtype=float) for name, values in axes.items()},
        units=tuple(pose.units[i] for i in varied),
        reference=tuple(float(reference[i]) for i in varied),
        elements=classifier.elements,
        fixed={name: float(positions[0, i]) for i, name in enumerate(columns) if name not in axes},
        fixed_units=tuple(
            unit for name, unit in zip(columns, pose.units, strict=True) if name not in axes
        ),
        limits=limits,
        border=border,
        model=model,
        diagnostics=(
            diagnostic(
                "largest loop residual of usable poses",
                classifier.residual,
                at_most=CONVERGED * model.assembly.loops.length,
                unit="m",
            ),
            diagnostic(
                "usable fraction of the grid",
                usable_fraction,
                at_least=1e-12,
                advice="no pose of the grid is usable: see the reasons",
            ),
        ),
        provenance=provenance(
            options={
                "limits": limits,
                "axes": {name: len(values) for name, values in axes.items()},
            },
            inputs={"machine": model.mechanism.name},
        ),
    )


def _require_size(shape: Sequence[float]) -> None:
    """Reject a grid that is too large, before it is created."""
    poses = math.prod(map(float, shape))
    if poses > MAX_GRID_POSES:
        sizes = " x ".join(f"{size:g}" for size in shape)
        what = f"the grid has {sizes} = {poses:.3g} poses; at most {MAX_GRID_POSES:.3g} are allowed"
        raise InputError.of("resolution", what, "use coarser steps, smaller ranges or fewer axes")


def _cut_off(
    arrays: dict[str, np.ndarray],
    axes: Mapping[str, np.ndarray],
    reference: np.ndarray,
    side: np.ndarray,
) -> None:
    """Exclude usable poses that are not connected with the grid pose nearest to the reference."""
    usable = (arrays["reason"] == Reason.USABLE) & (arrays[SIDE] == side)
    if usable.any():
        grid = np.stack(np.meshgrid(*axes.values(), indexing="ij"), axis=-1)
        distance = np.where(usable, np.linalg.norm(grid - reference, axis=-1), np.inf)
        usable = _connected_component(usable, np.unravel_index(np.argmin(distance), distance.shape))
    arrays["reason"][(arrays["reason"] == Reason.USABLE) & ~usable] = Reason.CUT_OFF


def _ignore_thin_rims(reason: np.ndarray) -> np.ndarray:
    """Return the reasons over a grid, with thin rims of singular or cut-off poses out of reach.

    Such a rim is thinner than the grid's step and next to poses out of reach.
    """
    is_beyond = (reason == Reason.SINGULAR) | (reason == Reason.CUT_OFF)
    # blocks of two points along every axis that consist of such poses
    thick = is_beyond
    edge = reason == Reason.OUT_OF_REACH
    for axis in range(reason.ndim):
        thick = np.delete(thick, 0, axis) & np.delete(thick, -1, axis)
    for axis in range(reason.ndim):
        before = [(int(i == axis), 0) for i in range(reason.ndim)]
        after = [(0, width) for width, _ in before]
        thick = np.pad(thick, before) | np.pad(thick, after)
        edge = (
            edge
            | np.delete(np.pad(edge, before), -1, axis)
            | np.delete(np.pad(edge, after), 0, axis)
        )
    return np.where(is_beyond & ~thick & edge, int(Reason.OUT_OF_REACH), reason)


#: Name of the array that states on which side of the singularities a pose is: the signs of the two
#: determinants, combined in one number.
SIDE = "side"
_AXIS_UNITS = {
    "reason": "",
    "blame": "",
    "serial": "",
    "parallel": "",
    "constraint": "",
    "clearance": "m",
    "tension": "N",
}


#: Prefix of the names of outputs in `Workspace.arrays`.
OUTPUT = "output."


def output_units(model: Model) -> dict[str, str]:
    """Return the units of a machine file's outputs, by their names in `Workspace.arrays`."""
    return {f"{OUTPUT}{output.name}": output.unit for output in model.mechanism.outputs}


def _require_axes(
    columns: tuple[str, ...], axes: Mapping[str, np.ndarray], fixed: Mapping[str, float]
) -> None:
    problems = Problems()
    if not 1 <= len(axes) <= 3:
        problems.add("axes", f"{len(axes)} positions vary", "vary one, two or three")
    problems += unknown_names((*axes, *fixed), columns, "is not a platform position")
    for name in set(axes) & set(fixed):
        problems.add(name, "both varies and is fixed", "choose one")
    for name, values in axes.items():
        array = numbers(values, name)
        if (
            array.ndim != 1
            or not len(array)
            or not np.isfinite(array).all()
            or (np.diff(array) <= 0).any()
        ):
            problems.add(name, "values are empty or do not increase", "give increasing values")
    for name, value in fixed.items():
        if not np.isfinite(value):
            problems.add(name, f"is {value}", "give a finite number")
    InputError.raise_if_any(problems)


class _Poses:
    """Solver of the loops of one machine at the poses of a map."""

    def __init__(self, model: Model) -> None:
        self._model, self.axes = model, pose_axes(model)
        self._reference = self.axes.reference[None]
        # not from the diagnostics of a state: machine code reports only the worst of all loops
        self.elements = model.platform.program(KINEMATICS[0]).loop_names

    def state(self, values: np.ndarray, near: np.ndarray | None = None) -> State:
        """Return the states of poses at values (N, n) of the axes.

        Loops solved by Newton's method start from nearby coordinates (N, n_q). Without these, they
        are followed in steps from the reference pose.
        """
        functions, positions = self._model.platform, self.axes.positions(values)
        if near is not None:
            return functions.evaluate(positions, start=near)
        state = functions.evaluate(positions)
        if not functions.runner.iterates:
            return state
        current = np.tile(self._model.assembly.q, (len(positions), 1))
        active = np.arange(len(positions))
        for fraction in np.linspace(0.0, 1.0, FOLLOWING_STEPS + 1)[1:-1]:
            if not len(active):
                break
            waypoints = self.axes.positions(
                self._reference + fraction * (values[active] - self._reference)
            )
            solution = functions.evaluate(waypoints, start=current[active])
            active = active[solution.health.is_reached]
            current[active] = solution.q[solution.health.is_reached]
        return functions.evaluate(positions, start=current)

    @staticmethod
    def margins(state: State) -> np.ndarray:
        """Return the margins (N, k) of the loops; a loop with a negative margin does not close.

        Margins from machine code belong to no single loop, but it reports only states whose loops
        close.
        """
        health = state.health
        with np.errstate(invalid="ignore"):
            least = np.concatenate(
                [
                    np.where(np.isfinite(health.discriminants), health.discriminants, -1.0),
                    *(
                        (CONVERGED - np.abs(residual))[:, None]
                        for residual in health.residuals.values()
                    ),
                ],
                axis=1,
            )
        return np.where(np.isnan(least), -1.0, least)

    def closes(self, values: np.ndarray) -> np.ndarray:
        """Return whether the loops close at poses (N,), and the posture of the legs is unique.

        If loops are followed and a path passes a singular pose, rounding decides on which branch it
        continues. So the pose must be on the same side of the serial singularities as the
        reference pose.
        """
        state, reference = self.state(values), self._model.assembly.q[None]
        is_closed = (
            state.health.is_reached
            & ~(self.margins(state) < 0).any(axis=1)
            & np.isfinite(state.q).all(axis=1)
        )
        distances = singularities(self._model, np.where(is_closed[:, None], state.q, np.nan))
        is_closed &= np.nan_to_num(distances.constraint) > MIN_REGULAR_DISTANCE
        if self._model.platform.runner.iterates:
            side = np.sign(singularities(self._model, reference).serial_determinant)
            is_closed &= np.sign(distances.serial_determinant) == side
        return np.asarray(is_closed)


class _PoseClassifier:
    """Classifier of batches of poses of one machine."""

    def __init__(self, model: Model, limits: WorkspaceLimits) -> None:
        self._model, self._limits, self._poses = model, limits, _Poses(model)
        self._clearance = rod_clearance(model)
        self._cables = tuple(model.mechanism.cables) if limits.tension > -np.inf else ()
        _require_cables(model, self._cables, limits)
        self._bounded = np.flatnonzero(model.limits.is_stop)
        self.elements = (
            *self._poses.elements,
            *(model.limits.names[i] for i in self._bounded),
            "type 1 (serial) singularity",
            "type 2 (parallel) singularity",
            "constraint singularity",
            *self._pairs_of_rods(),
            *(f"tension of {name}" for name in self._cables),
        )
        self.residual = 0.0
        self._kernel: PoseKernel | None = None
        # with redundant actuators, the parallel determinant is not defined
        self._parallel_side = len(model.assembly.leading) == len(model.mechanism.actuators)

    def _pairs_of_rods(self) -> list[str]:
        """Return the names of the pairs of rods whose clearance is checked."""
        rods = self._clearance.rods
        return [f"{rods[i]} and {rods[j]}" for i, j in self._clearance.pairs]

    def side(self, values: np.ndarray) -> np.ndarray:
        """Return the side of the singularities on which each pose is (N,), see `SIDE`."""
        return self._sides(singularities(self._model, self._poses.state(values).q))

    def _sides(self, distances: Singularities) -> np.ndarray:
        parallel: np.ndarray | float = 0.0
        if self._parallel_side:
            parallel = np.nan_to_num(np.sign(distances.parallel_determinant))
        return np.asarray(3.0 * parallel + np.nan_to_num(np.sign(distances.serial_determinant)))

    def labels(self, values: np.ndarray, near: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Return labels (N,) of poses, from reasons and sides, and the poses' coordinates (N, n_q).

        Loops solved by Newton's method start from nearby coordinates (N, n_q).
        """
        properties, q = self.properties(values, near)
        side: np.ndarray | float = 0.0
        if self._limits.connected:
            side = np.where(properties["reason"] == Reason.USABLE, properties[SIDE], 0.0)
        q = np.where(np.isfinite(q), q, self._model.assembly.q)
        return len(Reason) * (side + 4.0) + properties["reason"], q

    def prepared(self, poses: int, least: int = MIN_COMPILED_POSES) -> int:
        """Prepare machine code for this number of poses; return the number of poses per call.

        Machine code is used from `least` poses on, if available.
        """
        self._kernel = None
        if poses >= least and not isinstance(self._model.evaluator, Interpreted):
            axes = self._poses.axes
            kernel = PoseKernel(self._model, axes, self._clearance, FOLLOWING_STEPS, poses)
            self._kernel = kernel if kernel.is_available else None
        return MAP_CHUNK if self._kernel is None else AT_ONCE

    def __call__(self, values: np.ndarray) -> dict[str, np.ndarray]:
        """Return the properties of poses by name, at values (N, n) of the axes (see `PoseAxes`)."""
        properties, q = self.properties(values, None)
        is_closed = properties["reason"] != Reason.OUT_OF_REACH
        outputs = self._model.outputs(np.where(is_closed[:, None], q, np.nan))
        return properties | {f"{OUTPUT}{name}": values for name, values in outputs.items()}

    def properties(
        self, values: np.ndarray, near: np.ndarray | None
    ) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Return the properties of poses, and their coordinates (N, n_q).

        Machine code is used if available, except for tensions of cables.
        """
        if self._kernel is None:
            state = self._poses.state(values, near)
            return self._classified(values, state), state.q
        limits = self._limits
        verdicts = self._kernel(
            values,
            near,
            self._least,
            limits.clearance,
            ranges=limits.ranges,
            parallel=self._parallel_side,
        )
        result = {
            name: np.ascontiguousarray(verdicts.measures[:, i])
            for i, name in enumerate(SINGULARITY_KINDS)
        }
        result |= {
            "clearance": verdicts.clearance,
            "tension": np.full(len(values), np.nan),
            SIDE: verdicts.side,
        }
        usable = self._supported_by_cables(
            np.flatnonzero(verdicts.reason == Reason.USABLE),
            verdicts.q,
            verdicts.reason,
            verdicts.blame,
            result,
        )
        self.residual = max(self.residual, float(verdicts.residual[usable].max(initial=0.0)))
        return result | {"reason": verdicts.reason, "blame": verdicts.blame}, verdicts.q

    @property
    def _least(self) -> float:
        """Smallest accepted distance from singularities."""
        return max(self._limits.singularity or 0.0, MIN_REGULAR_DISTANCE if self._cables else 0.0)

    def _classified(self, values: np.ndarray, state: State) -> dict[str, np.ndarray]:
        n = len(values)
        result = {
            name: np.full(n, np.nan) for name in _AXIS_UNITS if name not in ("reason", "blame")
        }
        result[SIDE] = np.zeros(n)
        reason = np.full(n, Reason.USABLE, dtype=int)
        blame = np.full(n, -1)

        def exclude(margin: np.ndarray, first: int, why: Reason, where: np.ndarray) -> None:
            """Exclude poses with a negative margin (N, k); the worst column is reported."""
            if not margin.shape[1]:
                return
            bad = (reason[where] == Reason.USABLE) & (margin < 0).any(axis=1)
            reason[where[bad]] = why
            blame[where[bad]] = first + np.argmin(margin[bad], axis=1)

        exclude(self._poses.margins(state), 0, Reason.OUT_OF_REACH, np.arange(n))
        reason[(reason == Reason.USABLE) & ~state.health.is_reached] = Reason.OUT_OF_REACH
        first = len(self._poses.elements)
        # where two joint centers coincide, a leg closes at every angle: the posture is
        # undetermined, and the distance from a serial singularity is 0
        undetermined = np.flatnonzero((reason == Reason.USABLE) & ~np.isfinite(state.q).all(axis=1))
        reason[undetermined], blame[undetermined] = Reason.SINGULAR, first + len(self._bounded)
        result["serial"][undetermined] = 0.0
        good = np.flatnonzero(reason == Reason.USABLE)
        q = state.q[good]
        if len(good) and self._limits.ranges:
            exclude(
                self._model.limits.margins(q)[:, self._bounded], first, Reason.JOINT_LIMIT, good
            )
        first += len(self._bounded)
        if len(good):
            distances = singularities(self._model, q)
            result[SIDE][good] = self._sides(distances)
            measures = np.stack(
                [distances.serial, distances.parallel, distances.constraint], axis=1
            )
            for i, name in enumerate(("serial", "parallel", "constraint")):
                result[name][good] = measures[:, i]
            exclude(measures - self._least, first, Reason.SINGULAR, good)
            if len(self._clearance.pairs):
                clearances = self._clearance.distances(q)
                result["clearance"][good] = clearances.min(axis=1)
                exclude(clearances - self._limits.clearance, first + 3, Reason.INTERFERENCE, good)
            usable = self._supported_by_cables(
                good[reason[good] == Reason.USABLE], state.q, reason, blame, result
            )
            if len(usable):
                loops = self._model.assembly.loops
                residual = loops.largest_residual(loops.residuals(state.q[usable])[0])
                self.residual = max(self.residual, float(residual.max()))
        return result | {"reason": reason, "blame": blame}

    def _supported_by_cables(
        self,
        poses: np.ndarray,
        q: np.ndarray,
        reason: np.ndarray,
        blame: np.ndarray,
        result: dict[str, np.ndarray],
    ) -> np.ndarray:
        """Return the indices of the poses that the cables can hold; exclude the others."""
        if not (self._cables and len(poses)):
            return poses
        failing_cable = self._tension(poses, q[poses], result["tension"])
        fails = failing_cable >= 0
        reason[poses[fails]] = Reason.TENSION
        blame[poses[fails]] = len(self.elements) - len(self._cables) + failing_cable[fails]
        return poses[~fails]

    def _tension(self, poses: np.ndarray, q: np.ndarray, margins: np.ndarray) -> np.ndarray:
        """Store the tension margins of poses; return the failing cables (N,), -1 for none."""
        wrenches = self._limits.wrenches
        margin, cable = self._model.platform.weakest_cables(
            self._model.platform_position(q), start=q, wrenches=wrenches
        )
        margins[poses] = margin
        return np.where(margin < self._limits.tension, np.maximum(cable, 0), -1)


def usable_states(workspace: Workspace, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return whether poses of a map are usable (N,), and their coordinates (N, n_q).

    Whether the poses are connected with the reference pose is not checked.

    Args:
        workspace: the map.
        values: values (N, d) of the positions that vary.
    """
    classifier = _PoseClassifier(workspace.model, workspace.limits)
    axes = pose_axes(workspace.model)
    whole = np.tile(axes.reference, (len(values), 1))
    for name, value in workspace.fixed.items():
        whole[:, axes.columns.index(name)] = value
    whole[:, [axes.columns.index(name) for name in workspace.axes]] = values
    usable = [np.zeros(0, dtype=bool)]
    coordinates = [np.zeros((0, workspace.model.assembly.q.size))]
    at_once = classifier.prepared(len(values))
    for first in range(0, len(values), at_once):
        properties, q = classifier.properties(whole[first : first + at_once], None)
        usable.append(properties["reason"] == Reason.USABLE)
        coordinates.append(q)
    return np.concatenate(usable), np.concatenate(coordinates)


def _require_cables(model: Model, names: tuple[str, ...], limits: WorkspaceLimits) -> None:
    """Reject cable options without cables, and cables that do not determine whether a pose is held.

    Raises:
        InputError: see `workspace`.
    """
    problems = Problems()
    if not names and (limits.tension > 0.0 or limits.wrenches != NO_WRENCH):
        remedy = (
            "define `tension` for rods in the machine file, or omit the wrenches and the margin"
        )
        problems.add("tension", "no rod of the machine is a cable", remedy)
    if names and model.assembly.passive:
        passive = ", ".join(model.assembly.passive_names)
        what = (
            f"nothing drives {passive}, so cable tensions do not determine whether a pose is held"
        )
        problems.add("tension", what, "lock these degrees of freedom, or add winches")
    InputError.raise_if_any(problems)


def section_axes(
    model: Model,
    names: tuple[str, ...],
    resolution: float | None,
    ranges: Mapping[str, tuple[float, float]] | None = None,
) -> dict[str, np.ndarray]:
    """Return the axes of a grid.

    Args:
        model: the machine.
        names: platform positions that vary.
        resolution: step, m or rad. None for a round step for lengths and one for angles, with about
            120 steps along the longest axis of each unit.
        ranges: lower and upper end, by name. The default is the range in which the loops close
            along the axis through the reference pose, extended by 10 % at both ends. Rotation
            vectors within the default ranges are at most half a revolution long.

    Raises:
        InputError: a step that is not positive, or a range that is empty.
        PoseError: the loops do not close around the reference pose.
    """
    if resolution is not None and not 0 < resolution < np.inf:
        raise InputError.of("resolution", f"is {resolution}", "give a positive step, m or rad")
    ends, poses = dict(ranges or {}), _Poses(model)
    angles, units = poses.axes.angles, dict(zip(poses.axes.columns, poses.axes.units, strict=True))
    turns = max(sum(name in angles for name in names), 1)
    for name in names:
        if name not in ends:
            low, high = _reach(model, poses, name)
            if name in angles:
                # a rotation by more than half a revolution equals a shorter one in the other
                # direction
                low, high = max(low, -np.pi / np.sqrt(turns)), min(high, np.pi / np.sqrt(turns))
            ends[name] = low, high
        low, high = ends[name]
        if not high > low:
            raise InputError.of(
                name, f"range {low} to {high} is empty", "give LOW:HIGH with LOW below HIGH"
            )

    def steps(name: str, step: float) -> tuple[float, float]:
        low, high = ends[name]
        # the tolerance keeps an end that is a multiple of the step from adding a step by rounding
        return float(np.floor(low / step + GRID_TOLERANCE)), float(
            np.ceil(high / step - GRID_TOLERANCE)
        )

    def extent(name: str) -> float:
        step = EXTENT_STEP * (_decade(model.assembly.loops.length) if units[name] == "m" else 1.0)
        first, last = steps(name, step)
        return (last - first) * step

    def resolution_of(name: str) -> float:
        if resolution is not None:
            return resolution
        widest = max(extent(other) for other in names if units[other] == units[name])
        # the tolerance rounds a step halfway between two round ones up, regardless of rounding
        # errors
        return float(f"{(1.0 + GRID_TOLERANCE) * widest / DEFAULT_POSES_PER_AXIS:.1g}")

    spans = {name: steps(name, resolution_of(name)) for name in names}
    _require_size([last + 1 - first for first, last in spans.values()])
    grid = {
        name: np.arange(first, last + 1) * resolution_of(name)
        for name, (first, last) in spans.items()
    }
    whole_revolutions = {
        name
        for name in names
        if name not in (ranges or {}) and np.isclose(np.subtract(*ends[name]), -2 * np.pi)
    }
    # an axis over a whole revolution ends exactly after the revolution
    return grid | {name: np.linspace(*ends[name], len(grid[name])) for name in whole_revolutions}


def _decade(length: float) -> float:
    """Return the power of ten above a length, m."""
    return float(10.0 ** (np.floor(np.log10(length) + GRID_TOLERANCE) + 1.0))


def _reach(model: Model, poses: _Poses, name: str) -> tuple[float, float]:
    """Return the range in which the loops close along an axis, extended by 10 % at both ends.

    Ranges of angles are at most one revolution.
    """
    columns, units, reference = poses.axes.columns, poses.axes.units, poses.axes.reference
    if name not in columns:
        raise InputError.of(
            name, "is not a platform position", f"choose one of {', '.join(columns)}"
        )
    column = columns.index(name)
    largest = 4.0 * model.assembly.loops.length if units[column] == "m" else np.pi
    offsets = np.linspace(-largest, largest, 801)
    # avoid dead centers at round fractions of the length, where rounding would decide
    offsets[1:-1] *= 1.0 - GRID_TOLERANCE
    values = np.tile(reference, (len(offsets), 1))
    values[:, column] += offsets
    closed = poses.closes(values)
    middle = len(offsets) // 2
    if not closed[middle]:
        raise PoseError.of(
            name, "the loops do not close at the reference pose", "see `tauloop check`"
        )
    if model.platform.runner.iterates:  # no path leads beyond a gap
        gaps_below = np.flatnonzero(~closed[:middle])
        gaps_above = np.flatnonzero(~closed[middle:])
        closed[: gaps_below.max(initial=-1) + 1] = False
        closed[middle + gaps_above.min(initial=len(offsets)) :] = False
    low, high = offsets[closed].min(), offsets[closed].max()
    margin = 0.0 if units[column] == "rad" and closed[[0, -1]].all() else 0.1 * (high - low)
    return float(reference[column] + low - margin), float(reference[column] + high + margin)
