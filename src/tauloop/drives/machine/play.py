"""Effect of backlash: displacement of the tool while all motors rest, over the workspace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from itertools import product

import casadi as ca
import numpy as np
import xarray as xr

from tauloop.common.counts import counted
from tauloop.common.datasets import Variable, tabulated_by
from tauloop.common.errors import InputError, PoseError, Problem, solving
from tauloop.common.names.deprecated import old_attribute
from tauloop.common.plain import OMITTED, in_json
from tauloop.common.progress import Progress, Stages
from tauloop.common.records import dataclass
from tauloop.common.result import Result, diagnostic, provenance
from tauloop.compiler.functions.tool import tool_twist
from tauloop.equations.assembly.limits import coordinate_limits
from tauloop.equations.assembly.loops import nominal
from tauloop.equations.tree import symbolic_motion
from tauloop.equations.values import BatchFunction
from tauloop.kinematics.workspaces.map import Workspace, workspace_grid
from tauloop.kinematics.workspaces.pose_axes import pose_axes
from tauloop.mechanism.suggestions import unknown_names
from tauloop.model import Model

#: Default backlash of an actuator, m or rad.
DEFAULT_BACKLASH = 10e-6
#: Number of poses at which the Jacobian is compared with forward kinematics at both ends of the
#: backlash.
CHECKED_POSES = 64
#: Largest accepted difference between the Jacobian and forward kinematics, as a fraction of the
#: largest displacement. Curvature and rounding cause a small difference.
MAX_DIFFERENCE = 1e-4
#: Maximum number of actuators. It is limited because all combinations of directions are tried.
MAX_ACTUATORS = 12


def dataset_variables(data: xr.Dataset) -> Iterator[Variable]:
    """Yield the variables of a dataset, with their dimensions and units."""
    for name, values in data.variables.items():
        dimensions = tuple(map(str, values.dims))
        unit = values.attrs.get("units", "")
        yield Variable(name=str(name), values=values.to_numpy(), over=dimensions, unit=unit)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayMap(Result):
    """Displacement of the tool center point from one end of the backlash to the other.

    Attributes:
        data: displacements over the axes of the grid, m, NaN where the machine cannot work: `each`
            (actuator, ...) for the backlash of one actuator, `worst` for all actuators in the worst
            combination of directions.
        backlash: backlash of the actuators by name, m or rad.
        workspace: workspace map, which states where the machine can work.
        machine: name of the machine.
        units: units of the actuators' positions, by name.
        volume: limits of the platform positions by name, including positions that this map does
            not vary.
    """

    data: xr.Dataset = field(metadata=OMITTED | tabulated_by(dataset_variables))
    backlash: Mapping[str, float]
    workspace: Workspace = field(metadata=OMITTED)
    machine: str
    units: Mapping[str, str] = field(metadata=OMITTED)
    volume: Mapping[str, tuple[float, float]]

    @property
    @in_json()
    def unit(self) -> str:
        """Unit of the displacements."""
        return "m"

    @property
    @in_json()
    def excluded_by(self) -> dict[str, int]:
        """Number of poses that are excluded, by reason."""
        return self.workspace.excluded_by()

    @property
    @in_json()
    def tool(self) -> dict[str, dict[str, float]]:
        """Statistics of the displacement of the tool (see `displacements`)."""
        return self.displacements()

    figures = old_attribute("figures", "displacements")
    play = old_attribute("play", "backlash")
    space = old_attribute("space", "workspace")

    def displacements(self) -> dict[str, dict[str, float]]:
        """Return the smallest, median and largest displacement of the tool over the usable poses.

        Returns:
            Displacements, m, by actuator, and for all (`worst`).
        """
        rows = dict(zip(self.backlash, self.data["each"].to_numpy(), strict=True)) | {
            "worst": self.data["worst"].to_numpy()
        }
        displacements = {}
        for name, values in rows.items():
            usable = values[np.isfinite(values)]
            if len(usable):
                displacements[name] = {
                    "least": float(usable.min()),
                    "median": float(np.median(usable)),
                    "largest": float(usable.max()),
                }
        return displacements


class ToolSensitivity:
    """Velocity of the tool center point per actuator velocity, in batches."""

    def __init__(self, model: Model) -> None:
        """Build the Jacobian of the tool with respect to all velocities.

        Raises:
            InputError: the actuators do not determine the motion, or there are too many.
        """
        actuators = len(model.mechanism.actuators)
        freedoms = model.platform.ports.velocity.size
        if actuators != freedoms or actuators > MAX_ACTUATORS:
            what = (
                f"has {counted(actuators, 'actuator')} and {counted(freedoms, 'degree of freedom')}"
            )
            raise InputError.of(
                model.mechanism.name,
                what,
                f"use a machine with equal numbers of both, at most {MAX_ACTUATORS}",
            )
        self._model = model
        mechanism = model.mechanism
        motion = symbolic_motion(model.topology, nominal(mechanism))
        velocity = tool_twist(motion, mechanism)[:3]
        point = motion.point(mechanism.platform.tool).p
        jacobian = ca.densify(ca.jacobian(velocity, motion.v))
        self._functions = BatchFunction(
            ca.Function("tool", [motion.q], [ca.vec(jacobian), ca.densify(point)])
        )

    def at(self, q: np.ndarray) -> np.ndarray:
        """Return tool displacements per actuator displacement (N, 3, n_u) at q (N, n_q)."""
        jacobian = self._functions([q], len(q))[0].reshape(len(q), -1, 3).transpose(0, 2, 1)
        G = self._model.actuators.embedding(self._model.actuator_position(q), start=q)
        return np.asarray(jacobian @ G)

    def tool(self, q: np.ndarray) -> np.ndarray:
        """Return the position of the tool center point (N, 3), m, at poses q (N, n_q)."""
        return self._functions([q], len(q))[1]


def worst_combination(displacements: np.ndarray) -> np.ndarray:
    """Return the largest norm (N,) of a sum of the n columns with any choice of their signs.

    The sign of a column states at which end of its backlash the actuator is.

    Args:
        displacements: displacements of the tool, one column for each actuator (N, 3, n).
    """
    n = displacements.shape[2]
    signs = np.array([(1, *rest) for rest in product((1, -1), repeat=n - 1)], dtype=float)
    return np.linalg.norm(displacements @ signs.T, axis=1).max(axis=1)


def workspace_axes(model: Model, points: int = 15) -> dict[str, np.ndarray]:
    """Return values over the range of each platform position in m, from the machine file.

    Args:
        model: the machine.
        points: number of values of each position.

    Returns:
        Values (points,) by name; their grid covers the workspace.

    Raises:
        InputError: the file has no range of a platform position in m.
    """
    lower, upper = coordinate_limits(model.topology)
    ports = model.platform.ports
    axes = {}
    for iq, name, unit in zip(ports.q, ports.position.columns, ports.position.units, strict=True):
        if unit == "m" and np.isfinite([lower[iq], upper[iq]]).all():
            axes[name] = np.linspace(lower[iq], upper[iq], points)
    if not axes:
        what = f"no range in m of {', '.join(ports.position.columns)}"
        remedy = "add limits of one of them to the machine file, or give the ranges of the map"
        raise InputError.of(model.mechanism.name, what, remedy)
    return axes


@solving(PoseError)
def play_map(
    model: Model,
    axes: Mapping[str, np.ndarray],
    *,
    backlash: float | Mapping[str, float] = DEFAULT_BACKLASH,
    fixed: Mapping[str, float] | None = None,
    progress: Progress | None = None,
) -> PlayMap:
    """Map the tool displacement that backlash at the actuators allows.

    J_i is the velocity of the tool center point per velocity of actuator i. The backlash p_i of a
    single actuator lets the tool move by |J_i| p_i. The backlash of all actuators lets it move by
    the maximum of |sum of +-J_i p_i| over all signs.

    Args:
        model: the machine.
        axes: values of the platform positions that vary, by name (one to three).
        backlash: total backlash (full gap) of the actuators, m or rad: one number for all, or by
            name of the actuator.
        fixed: values of positions that do not vary; the others keep their reference values.
        progress: called with the work done and the total work.

    Returns:
        Displacements of the tool for the backlash of each actuator and of all, at every pose.

    Raises:
        InputError: unknown names, backlash that is negative or zero everywhere, or actuators that
            do not determine the machine's motion.
    """
    names = tuple(actuator.name for actuator in model.mechanism.actuators)
    backlash_by_name = _backlash_by_actuator(backlash, names)
    gaps = np.array(list(backlash_by_name.values()))
    sensitivity = ToolSensitivity(model)
    stages = Stages(progress, 2)
    workspace = workspace_grid(model, axes, fixed=fixed, refined=False, progress=stages.part)
    stages.done()
    usable = workspace.usable.ravel()
    pose = pose_axes(model)
    positions = pose.positions(pose.grid(axes, workspace.fixed))[usable]
    each = np.full((len(names), len(usable)), np.nan)
    worst = np.full(len(usable), np.nan)
    difference: float | None = None
    if len(positions):
        q = model.platform.follow(positions).q
        displacement = sensitivity.at(q) * gaps
        each[:, usable] = np.linalg.norm(displacement, axis=1).T
        worst[usable] = worst_combination(displacement)
        difference = _difference(model, sensitivity, q, displacement, gaps)
    stages.done()
    shape = workspace.usable.shape
    dims = tuple(str(name) for name in workspace.data.dims)
    data = xr.Dataset(
        {
            "each": (("actuator", *dims), each.reshape(len(names), *shape), {"units": "m"}),
            "worst": (dims, worst.reshape(shape), {"units": "m"}),
        },
        coords={**workspace.data.coords, "actuator": list(names)},
        attrs=workspace.data.attrs,
    )
    return PlayMap(
        data=data,
        backlash=backlash_by_name,
        workspace=workspace,
        machine=model.mechanism.name,
        units=dict(zip(names, model.actuators.ports.position.units, strict=False)),
        volume={name: (float(values[0]), float(values[-1])) for name, values in axes.items()},
        diagnostics=(
            *workspace.diagnostics,
            diagnostic(
                "difference to forward kinematics at both ends of the play, of the largest displacement",
                difference,
                at_most=MAX_DIFFERENCE,
                advice="reduce the backlash, which is too large for a linear map, or exclude poses "
                "close to a singularity",
            ),
        ),
        provenance=provenance(
            options={
                "play": backlash_by_name,
                "axes": {name: len(values) for name, values in axes.items()},
            },
            inputs={"machine": model.mechanism.name},
        ),
    )


def _backlash_by_actuator(
    backlash: float | Mapping[str, float], names: Sequence[str]
) -> dict[str, float]:
    """Return the backlash of each actuator, m or rad.

    Raises:
        InputError: unknown names, or a backlash that is negative or zero everywhere.
    """
    if isinstance(backlash, Mapping):
        amounts = {name: float(backlash.get(name, 0.0)) for name in names}
        problems = unknown_names(backlash, names, "is not an actuator")
    else:
        amounts = dict.fromkeys(names, float(backlash))
        problems = []
    for name, value in amounts.items():
        if not 0 <= value < np.inf:
            what = f"must be finite and not negative, got {value:g}"
            problems.append(Problem(f"backlash of {name}", what, "give zero or more, in m or rad"))
    if not problems and not any(amounts.values()):
        remedy = "give a backlash above zero, such as 10e-6 m"
        problems.append(Problem("backlash", "is zero everywhere", remedy))
    InputError.raise_if_any(problems)
    return amounts


def _difference(
    model: Model,
    sensitivity: ToolSensitivity,
    q: np.ndarray,
    displacement: np.ndarray,
    gaps: np.ndarray,
) -> float:
    """Return the largest difference between linear displacements and forward kinematics.

    Forward kinematics gives the tool positions at both ends of each actuator's backlash. The
    difference is a fraction of the largest displacement.
    """
    sample = np.unique(np.linspace(0, len(q) - 1, CHECKED_POSES).astype(int))
    q, displacement = q[sample], displacement[sample]
    actuator_position = model.actuator_position(q)
    numeric = np.empty_like(displacement)
    for i, gap in enumerate(gaps):
        ends = []
        for side in (0.5, -0.5):
            position = actuator_position.copy()
            position[:, i] += side * gap
            ends.append(sensitivity.tool(model.actuators.kinematics(position, start=q).q))
        numeric[:, :, i] = ends[0] - ends[1]
    return float(np.abs(numeric - displacement).max() / np.abs(displacement).max())
