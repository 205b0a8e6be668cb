"""Workspace maps: for every pose of a grid, whether the machine can work there, or why not."""

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
#: Number of poses handled together.
MAP_CHUNK = 8192
#: Poses along the longest axis of a grid whose resolution is not given, and the step to which its
#: length is measured: rad, or of the power of ten above the characteristic length.
FINENESS, ROUGH = 120, 1e-3
#: Distance of a logarithm from a whole number, and fraction of a step, that count as rounding.
GRID_TOLERANCE = 1e-9
#: Largest number of poses of a grid.
LARGEST_GRID = 10_000_000
#: Measure of singularity below which tensions are not evaluated and postures not determined.
SOUND = 1e-6
#: Number of steps in which loops solved by Newton's method are followed from the reference pose.
FOLLOWING_STEPS = 24


class Reason(enum.IntEnum):
    """Reason why a pose cannot be used; the first that applies."""

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
        singularity: least measure of every kind of singularity (see `Singularities`); zero for
            none. Without it 0.05, or half of what the reference pose has where that is less; of a
            finished map what it kept.
        clearance: least distance of the center lines of two rods, m; zero for none.
        ranges: whether stops of joints and rods in the machine file must be kept.
        tension: least margin of the tensions of cables to their bounds, N (see
            `Motion.tension_margin`); -inf for none.
        wrenches: forces and moments (6,) that act at the tool, one at a time, while the machine
            rests; N and N m.
        connected: whether a pose must be connected with the reference pose; poses beyond a
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
        name: its name among the figures of the map.
        label: what its scale is called, without the unit.
        unit: SI unit.
        shown_unit: unit of pictures and tables.
        factor: factor from the SI unit to that unit.
        worst: its worst value over the usable poses, also between the points of the grid; NaN
            without usable poses.
        worst_pose: values of the axes at the worst value.
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
        figures: over the grid, by name: `reason` (see `Reason`), `blame` (index into `elements` of
            the loop, coordinate or pair of rods that excludes the pose, -1 for none), `serial`,
            `parallel` and `constraint` (see `Singularities`), `clearance` (m), `tension` (N, the
            margin of cables), and the outputs of the machine file (`output.NAME`); NaN where the
            loops do not close.
        axes: values of the positions that vary, by name, in the order of the grid's axes.
        units: their units.
        reference: their values at the reference pose.
        elements: names that `blame` points to.
        fixed: the positions that do not vary.
        fixed_units: their units.
        limits: requirements on a usable pose.
        border: where usable poses end between the points of the grid.
        model: model of the machine, to draw it.
        quantities: further quantities among the figures, see `elastic_map`.
    """

    needs_forces: ClassVar[bool] = False
    figures: Mapping[str, np.ndarray] = field(metadata=OMITTED)
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

    def variables(self) -> Iterator[Variable]:
        """Return the axes, and the figures over them."""
        for (name, axis), unit in zip(self.axes.items(), self.units, strict=True):
            yield Variable(name=name, values=axis, over=(name,), unit=unit)
        units = {**_AXIS_UNITS, **output_units(self.model)}
        units |= {quantity.name: quantity.unit for quantity in self.quantities}
        for name, unit in units.items():
            yield Variable(name=name, values=self.figures[name], over=tuple(self.axes), unit=unit)

    @property
    def held(self) -> str:
        """Positions that do not vary, in words; angles in degrees."""
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
        """Reasons over the grid."""
        return self.figures["reason"]

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
        """Usable size in words; angles in degrees."""
        (size, unit), turned = self.size, [name for name in self.units if name == "rad"]
        if len(turned) == len(self.units):
            size, unit = size * np.degrees(1.0) ** len(turned), unit.replace("rad", "deg")
        return f"{size:.{4 if size < 1e4 else 6}g} {unit}"

    def section(self) -> Workspace | None:
        """Return the map over the first two varying positions; None for a map over a line.

        Other positions are next to their reference.
        """
        shape = {name: len(axis) for name, axis in self.axes.items()}
        names = [name for name, count in shape.items() if count > 1][:2]
        if len(names) < 2:
            return None
        units = dict(zip(self.axes, self.units, strict=True))
        reference = dict(zip(self.axes, self.reference, strict=True))
        place = {
            name: int(np.abs(axis - reference[name]).argmin())
            for name, axis in self.axes.items()
            if name not in names
        }
        index = tuple(place.get(name, slice(None)) for name in self.axes)
        fixed = {name: float(self.axes[name][i]) for name, i in place.items()}
        fixed_units = [units[name] for name in place]
        cut_at = [i for name, i in place.items() if shape[name] > 1]
        return replace(
            self,
            figures={name: values[index] for name, values in self.figures.items()},
            axes={name: self.axes[name] for name in names},
            units=tuple(units[name] for name in names),
            reference=tuple(reference[name] for name in names),
            fixed=self.fixed | fixed,
            fixed_units=(*self.fixed_units, *fixed_units),
            border=self.border.section(cut_at),
        )

    def walk(self, count: int) -> np.ndarray:
        """Return the coordinates (N, n_q) of at most `count` poses along the longest border.

        On a line they are along the line.
        """
        section = self.section() or self
        points = np.stack(np.meshgrid(*self.axes.values(), indexing="ij"), axis=-1)[self.usable]
        if len(section.border.axes) == 2:
            points = section.border.lines[0][0] if section.border.lines else points[:0]
        way = np.cumsum(np.linalg.norm(np.diff(points, axis=0, prepend=points[:1]), axis=1))
        chosen = (
            points[np.unique(np.searchsorted(way, np.linspace(0.0, way[-1], count)))]
            if len(points)
            else points
        )
        poses = _Poses(self.model)
        values = np.tile(poses.axes.reference, (len(chosen), 1))
        for name, at in section.fixed.items():
            values[:, poses.axes.columns.index(name)] = at
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
        """Least values of the measures over the usable poses, where all are finite."""
        measures = {name: self.figures[name][self.usable] for name in MEASURES}
        return {
            name: values.min()
            for name, values in measures.items()
            if len(values) and np.isfinite(values).all()
        }

    @property
    @in_json()
    def output_ranges(self) -> dict[str, tuple[float, float]]:
        """Least and largest values of the outputs of the machine file over the usable poses, SI."""
        ranges = {}
        for name in output_units(self.model):
            values = self.figures[name][self.usable]
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
        counts = np.bincount(self.figures["blame"].ravel() + 1, minlength=len(self.elements) + 1)[
            1:
        ]
        order = np.argsort(-counts, kind="stable")
        return {self.elements[i]: int(counts[i]) for i in order if counts[i]}


def _connected_component(usable: np.ndarray, first: Sequence[np.intp]) -> np.ndarray:
    """Return where usable poses are connected with given ones by edges of simplices."""
    left = np.pad(usable, 1)
    strides = [stride // left.itemsize for stride in left.strides]
    ways = [sum(chosen) for n in range(1, usable.ndim + 1) for chosen in combinations(strides, n)]
    steps = [sign * way for way in ways for sign in (-1, 1)]
    flat, order = left.reshape(-1), np.zeros(left.size, dtype=int)
    front = np.array([np.ravel_multi_index([i + 1 for i in first], left.shape)])
    while len(front := front[flat[front]]):
        flat[front], order[front] = False, np.arange(len(front))
        front = front[order[front] == np.arange(len(front))]  # each once
        front = (front[:, None] + steps).ravel()
    return usable & ~left[(slice(1, -1),) * usable.ndim]


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
        fixed: values of others; those not named keep their reference values.
        limits: what a usable pose must keep.
        refined: whether the border of usable poses is sought between the points of the grid, by
            bisection along the edges of its simplices; half way between two of them without.
        progress: called with what is done and what there is to do.

    Raises:
        InputError: unknown or repeated names, empty axes, values that are not finite; wrenches or a
            margin where the machine has no cables; or cables where freedoms are passive, so that
            they hold no pose.
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
    judge, stages = _PoseClassifier(model, limits), Stages(progress, 2 if refined else 1)
    parts, at_once = [], judge.prepared(len(positions))
    for first in range(0, len(positions), at_once):
        parts.append(judge(positions[first : first + at_once]))
        stages.part(min(first + at_once, len(positions)), len(positions))
    stages.done()
    figures = {}
    for name in (*_AXIS_UNITS, *output_units(model), SIDE):
        figures[name] = np.concatenate([part[name] for part in parts]).reshape(shape)
    varied = [columns.index(name) for name in axes]
    if limits.connected:
        _cut_off(figures, axes, reference[varied], judge.side(reference[None]))
    del figures[SIDE]
    share = float((figures["reason"] == Reason.USABLE).mean())
    moved = [columns.index(name) for name, values in axes.items() if len(values) > 1]

    def kinds(values: np.ndarray, near: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        whole = np.tile(positions[:1], (len(values), 1))
        whole[:, moved] = values
        return judge.kinds(whole, near)

    border = bordered(
        tuple(axes.values()),
        _ignore_thin_rims(figures["reason"]),
        kinds if refined else None,
        stages.part,
    )
    if refined:
        stages.done()
    return Workspace(
        figures=figures,
        axes={name: np.asarray(values, dtype=float) for name, values in axes.items()},
        units=tuple(pose.units[i] for i in varied),
        reference=tuple(float(reference[i]) for i in varied),
        elements=judge.elements,
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
                judge.residual,
                at_most=CONVERGED * model.assembly.loops.length,
                unit="m",
            ),
            diagnostic(
                "usable fraction of the grid",
                share,
                at_least=1e-12,
                advice="no pose of the grid can be used: look at the reasons",
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
    """Reject a grid that would exceed the memory, before it is created."""
    poses = math.prod(map(float, shape))
    if poses > LARGEST_GRID:
        sizes = " x ".join(f"{size:g}" for size in shape)
        what = f"a grid of {sizes} = {poses:.3g} poses; there is room for {LARGEST_GRID:.3g}"
        raise InputError.of("resolution", what, "use coarser steps, smaller ranges or fewer axes")


def _cut_off(
    figures: dict[str, np.ndarray],
    axes: Mapping[str, np.ndarray],
    reference: np.ndarray,
    side: np.ndarray,
) -> None:
    """Exclude usable poses that are not connected with the pose nearest to the reference."""
    usable = (figures["reason"] == Reason.USABLE) & (figures[SIDE] == side)
    if usable.any():
        grid = np.stack(np.meshgrid(*axes.values(), indexing="ij"), axis=-1)
        distance = np.where(usable, np.linalg.norm(grid - reference, axis=-1), np.inf)
        usable = _connected_component(usable, np.unravel_index(np.argmin(distance), distance.shape))
    figures["reason"][(figures["reason"] == Reason.USABLE) & ~usable] = Reason.CUT_OFF


def _ignore_thin_rims(reason: np.ndarray) -> np.ndarray:
    """Return the reasons over a grid without thin rims of singular poses.

    Such a rim, thinner than the grid, counts as out of reach, as the poses next to it.
    """
    is_beyond = (reason == Reason.SINGULAR) | (reason == Reason.CUT_OFF)
    thick, edge = is_beyond, reason == Reason.OUT_OF_REACH
    for axis in range(reason.ndim):  # blocks of two points along every axis that lie within
        thick = np.delete(thick, 0, axis) & np.delete(thick, -1, axis)
    for axis in range(reason.ndim):
        before = [(int(i == axis), 0) for i in range(reason.ndim)]
        behind = [(0, wide) for wide, _ in before]
        thick = np.pad(thick, before) | np.pad(thick, behind)
        edge = (
            edge
            | np.delete(np.pad(edge, before), -1, axis)
            | np.delete(np.pad(edge, behind), 0, axis)
        )
    return np.where(is_beyond & ~thick & edge, int(Reason.OUT_OF_REACH), reason)


#: Side of all singularities on which a pose is: the signs of the determinants that change there, as a
#: number.
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


#: Prefix of the names of outputs among the figures of a map.
OUTPUT = "output."


def output_units(model: Model) -> dict[str, str]:
    """Return the units of the outputs of a machine file by their names among the figures."""
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
            problems.add(name, "values are empty or do not increase", "give a rising axis")
    for name, value in fixed.items():
        if not np.isfinite(value):
            problems.add(name, f"is {value}", "give a finite number")
    InputError.raise_if_any(problems)


class _Poses:
    """Poses of one machine, and whether its loops close there."""

    def __init__(self, model: Model) -> None:
        self._model, self.axes = model, pose_axes(model)
        self._reference = self.axes.reference[None]
        # not from the diagnostics of a state: machine code reports only the worst of all loops
        self.elements = model.platform.program(KINEMATICS[0]).loop_names

    def state(self, values: np.ndarray, near: np.ndarray | None = None) -> State:
        """Return the states of poses.

        Loops without closed forms start from nearby states (N, n_q) or are followed.
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
            on_the_way = self.axes.positions(
                self._reference + fraction * (values[active] - self._reference)
            )
            solution = functions.evaluate(on_the_way, start=current[active])
            active = active[solution.health.is_reached]
            current[active] = solution.q[solution.health.is_reached]
        return functions.evaluate(positions, start=current)

    @staticmethod
    def margins(state: State) -> np.ndarray:
        """Return the margins (N, k) of the elements; a negative one keeps the loops from closing.

        Margins from machine code belong to no element; it reports only states whose loops close.
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
        """Return whether the loops close (N,) in a determined posture.

        Where loops are followed, rounding decides where a path arrives that has passed a singular
        pose. So it has to arrive on the side of the serial singularities on which the reference
        pose is.
        """
        state, reference = self.state(values), self._model.assembly.q[None]
        is_closed = (
            state.health.is_reached
            & ~(self.margins(state) < 0).any(axis=1)
            & np.isfinite(state.q).all(axis=1)
        )
        distances = singularities(self._model, np.where(is_closed[:, None], state.q, np.nan))
        is_closed &= np.nan_to_num(distances.constraint) > SOUND
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
        # with more actuators than freedoms, no determinant shows when they lose control
        self._parallel_side = len(model.assembly.leading) == len(model.mechanism.actuators)

    def _pairs_of_rods(self) -> list[str]:
        """Return the names of the pairs of rods whose clearance is checked."""
        rods = self._clearance.rods
        return [f"{rods[i]} and {rods[j]}" for i, j in self._clearance.pairs]

    def side(self, values: np.ndarray) -> np.ndarray:
        """Return the sides (N,) of poses."""
        return self._sides(singularities(self._model, self._poses.state(values).q))

    def _sides(self, distances: Singularities) -> np.ndarray:
        parallel = (
            np.nan_to_num(np.sign(distances.parallel_determinant)) if self._parallel_side else 0.0
        )
        return np.asarray(3.0 * parallel + np.nan_to_num(np.sign(distances.serial_determinant)))

    def kinds(self, values: np.ndarray, near: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Return the reasons with sides (N,) of poses, and their states (N, n_q), from states near."""
        figures, q = self.figures(values, near)
        side = (
            np.where(figures["reason"] == Reason.USABLE, figures[SIDE], 0.0)
            if self._limits.connected
            else 0.0
        )
        q = np.where(np.isfinite(q), q, self._model.assembly.q)
        return len(Reason) * (side + 4.0) + figures["reason"], q

    def prepared(self, poses: int, least: int = MIN_COMPILED_POSES) -> int:
        """Return the number of poses handled together.

        From `least` on, machine code is used if available.
        """
        self._kernel = None
        if poses >= least and not isinstance(self._model.evaluator, Interpreted):
            axes = self._poses.axes
            kernel = PoseKernel(self._model, axes, self._clearance, FOLLOWING_STEPS, poses)
            self._kernel = kernel if kernel.is_there else None
        return MAP_CHUNK if self._kernel is None else AT_ONCE

    def __call__(self, values: np.ndarray) -> dict[str, np.ndarray]:
        """Return the properties of poses by name, at values (N, n) of the axes (see `PoseAxes`)."""
        figures, q = self.figures(values, None)
        is_closed = figures["reason"] != Reason.OUT_OF_REACH
        outputs = self._model.outputs(np.where(is_closed[:, None], q, np.nan))
        return figures | {f"{OUTPUT}{name}": values for name, values in outputs.items()}

    def figures(
        self, values: np.ndarray, near: np.ndarray | None
    ) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Return the properties of poses, and their coordinates (N, n_q).

        Machine code is used if available, except for tensions of cables.
        """
        if self._kernel is None:
            state = self._poses.state(values, near)
            return self._judged(values, state), state.q
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
        usable = self._held(
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
        """Return the distance from singularities that is kept."""
        return max(self._limits.singularity or 0.0, SOUND if self._cables else 0.0)

    def _judged(self, values: np.ndarray, state: State) -> dict[str, np.ndarray]:
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
        # where two joint centers meet, a leg closes at every angle: no posture, and a serial
        # singularity of measure 0
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
                apart = self._clearance.distances(q)
                result["clearance"][good] = apart.min(axis=1)
                exclude(apart - self._limits.clearance, first + 3, Reason.INTERFERENCE, good)
            usable = self._held(good[reason[good] == Reason.USABLE], state.q, reason, blame, result)
            if len(usable):
                loops = self._model.assembly.loops
                left = loops.largest_residual(loops.residuals(state.q[usable])[0])
                self.residual = max(self.residual, float(left.max()))
        return result | {"reason": reason, "blame": blame}

    def _held(
        self,
        poses: np.ndarray,
        q: np.ndarray,
        reason: np.ndarray,
        blame: np.ndarray,
        result: dict[str, np.ndarray],
    ) -> np.ndarray:
        """Return the poses that cables hold; the others are marked."""
        if not (self._cables and len(poses)):
            return poses
        loose = self._tension(poses, q[poses], result["tension"])
        slack = poses[loose >= 0]
        reason[slack], blame[slack] = (
            Reason.TENSION,
            len(self.elements) - len(self._cables) + loose[loose >= 0],
        )
        return poses[loose < 0]

    def _tension(self, poses: np.ndarray, q: np.ndarray, margins: np.ndarray) -> np.ndarray:
        """Store the margins of poses and return the responsible cables (N,), -1 where held."""
        wrenches = self._limits.wrenches
        margin, cable = self._model.platform.weakest_cables(
            self._model.platform_position(q), start=q, wrenches=wrenches
        )
        margins[poses] = margin
        return np.where(margin < self._limits.tension, np.maximum(cable, 0), -1)


def usable_states(workspace: Workspace, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return whether poses of a map can be used (N,), and their coordinates (N, n_q).

    Whether they are connected with the reference pose is not checked.

    Args:
        workspace: the map.
        values: (N, d) of the positions that vary.
    """
    judge = _PoseClassifier(workspace.model, workspace.limits)
    axes = pose_axes(workspace.model)
    whole = np.tile(axes.reference, (len(values), 1))
    for name, value in workspace.fixed.items():
        whole[:, axes.columns.index(name)] = value
    whole[:, [axes.columns.index(name) for name in workspace.axes]] = values
    usable, coordinates = (
        [np.zeros(0, dtype=bool)],
        [np.zeros((0, workspace.model.assembly.q.size))],
    )
    at_once = judge.prepared(len(values))
    for first in range(0, len(values), at_once):
        figures, q = judge.figures(whole[first : first + at_once], None)
        usable.append(figures["reason"] == Reason.USABLE)
        coordinates.append(q)
    return np.concatenate(usable), np.concatenate(coordinates)


def _require_cables(model: Model, names: tuple[str, ...], limits: WorkspaceLimits) -> None:
    """Reject cable options without cables, and cables that do not hold a pose.

    Raises:
        InputError: see `workspace`.
    """
    problems = Problems()
    if not names and (limits.tension > 0.0 or limits.wrenches != NO_WRENCH):
        remedy = "give rods `tension` in the machine file, or leave wrenches and the margin out"
        problems.add("tension", "no rod of the machine is a cable", remedy)
    if names and model.assembly.passive:
        passive = ", ".join(model.assembly.passive_names)
        what = f"nothing moves {passive}, so that cables do not hold poses, and none can be judged by their tensions"
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
        resolution: step, m or rad; where it is None a round one for lengths and one for angles,
            which make some 120 of the longest axis of each.
        ranges: lower and upper end by name; default: the largest range in which the machine closes along
            that axis from the reference pose, and a tenth more on both sides, and of angles no more
            than half a turn in all.

    Raises:
        InputError: a step that is not positive, or a range that is empty.
        PoseError: the machine does not close around the reference pose.
    """
    if resolution is not None and not 0 < resolution < np.inf:
        raise InputError.of("resolution", f"is {resolution}", "give a positive step, m or rad")
    ends, poses = dict(ranges or {}), _Poses(model)
    angles, units = poses.axes.angles, dict(zip(poses.axes.columns, poses.axes.units, strict=True))
    turns = max(sum(name in angles for name in names), 1)
    for name in names:
        if name not in ends:
            low, high = _reach(model, poses, name)
            if (
                name in angles
            ):  # a rotation beyond half a revolution is a shorter one in the other direction
                low, high = max(low, -np.pi / np.sqrt(turns)), min(high, np.pi / np.sqrt(turns))
            ends[name] = low, high
        low, high = ends[name]
        if not high > low:
            raise InputError.of(name, f"range {low} to {high} is empty", "give LOW:HIGH")

    def steps(name: str, step: float) -> tuple[float, float]:
        low, high = ends[name]
        # an end on the grid is its last line, regardless of rounding of the quotient
        return float(np.floor(low / step + GRID_TOLERANCE)), float(
            np.ceil(high / step - GRID_TOLERANCE)
        )

    def extent(name: str) -> float:
        step = ROUGH * (_decade(model.assembly.loops.length) if units[name] == "m" else 1.0)
        first, last = steps(name, step)
        return (last - first) * step

    def resolution_of(name: str) -> float:
        if resolution is not None:
            return resolution
        widest = max(extent(other) for other in names if units[other] == units[name])
        # a step halfway between two round ones becomes the longer one, whatever rounding makes of
        # it
        return float(f"{(1.0 + GRID_TOLERANCE) * widest / FINENESS:.1g}")

    spans = {name: steps(name, resolution_of(name)) for name in names}
    _require_size([last + 1 - first for first, last in spans.values()])
    grid = {
        name: np.arange(first, last + 1) * resolution_of(name)
        for name, (first, last) in spans.items()
    }
    turned = {
        name
        for name in names
        if name not in (ranges or {}) and np.isclose(np.subtract(*ends[name]), -2 * np.pi)
    }
    # a revolution without a further step
    return grid | {name: np.linspace(*ends[name], len(grid[name])) for name in turned}


def _decade(length: float) -> float:
    """Return the power of ten above a length, m, which scales with the machine."""
    return float(10.0 ** (np.floor(np.log10(length) + GRID_TOLERANCE) + 1.0))


def _reach(model: Model, poses: _Poses, name: str) -> tuple[float, float]:
    """Return how far the machine closes along an axis, plus a tenth on both sides.

    Angles extend at most over a revolution.
    """
    columns, units, reference = poses.axes.columns, poses.axes.units, poses.axes.reference
    if name not in columns:
        raise InputError.of(name, "is not a platform position", f"choose: {', '.join(columns)}")
    column = columns.index(name)
    largest = 4.0 * model.assembly.loops.length if units[column] == "m" else np.pi
    offsets = np.linspace(-largest, largest, 801)
    # rounding does not affect a dead center at a round fraction of the length
    offsets[1:-1] *= 1.0 - GRID_TOLERANCE
    values = np.tile(reference, (len(offsets), 1))
    values[:, column] += offsets
    closed, middle = poses.closes(values), len(offsets) // 2
    if not closed[middle]:
        raise PoseError.of(
            name, "the machine does not close at its reference pose", "see `tauloop check`"
        )
    if model.platform.runner.iterates:  # no path leads beyond a gap
        behind, ahead = np.flatnonzero(~closed[:middle]), np.flatnonzero(~closed[middle:])
        closed[: behind.max(initial=-1) + 1] = False
        closed[middle + ahead.min(initial=len(offsets)) :] = False
    low, high = offsets[closed].min(), offsets[closed].max()
    margin = 0.0 if units[column] == "rad" and closed[[0, -1]].all() else 0.1 * (high - low)
    return float(reference[column] + low - margin), float(reference[column] + high + margin)
