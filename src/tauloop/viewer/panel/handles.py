"""Handles that move a machine: one number for each position of the platform or of the actuators."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from tauloop.common.errors import InputError, PoseError
from tauloop.common.records import dataclass
from tauloop.equations.assembly.limits import coordinate_limits
from tauloop.model import Model, Motion

#: Largest displacement from the first value of a handle, in characteristic lengths.
MAX_TRAVEL = 4.0
#: Largest rotation from the first value of a handle, deg.
MAX_ANGLE = 180.0
#: Largest change of a dimensionless handle from its first value.
MAX_NUMBER = 1.0
#: Number of tested values of a handle. Its range is the interval around the first value in which
#: all tested values are in reach.
RANGE_SAMPLES = 81
#: Number of bisections between the last value in reach and the next value.
RANGE_HALVINGS = 8
#: Margin around the range, as a fraction of the range.
RANGE_MARGIN = 0.05
#: The ends of ranges are multiples of these steps, so that they are short numbers.
RANGE_STEPS = {"m": 1e-3, "deg": 0.1, "1": 1e-2}
#: Largest component of a rotation vector, deg; beyond it rotations repeat.
HALF_TURN = 180.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Handle:
    """A number that moves a machine.

    Attributes:
        name: name of the position. The rotation of a free platform has the handles ``.rx``, ``.ry``
            and ``.rz``, which form a rotation vector in the base frame.
        unit: "m", "deg" or "1".
        lower, upper: range in reach if only this handle moves, within the limits of the machine
            file.
    """

    name: str
    unit: str
    lower: float
    upper: float


class Handles:
    """The handles of the platform or of the actuators of a machine."""

    def __init__(self, model: Model, functions: Motion, q: np.ndarray) -> None:
        """Determine the handles and their ranges.

        Args:
            model: the machine.
            functions: `model.platform` or `model.actuators`, whose positions the handles move.
            q: assembled coordinates (n_q,) at the center of the ranges.
        """
        self._model, self._functions = model, functions
        port, topology = functions.ports.position, model.topology
        self._scale = np.array([np.pi / 180 if unit == "rad" else 1.0 for unit in port.units])
        names = [topology.coordinate_names[q0 : q0 + 4] for q0, _ in topology.quaternions]
        #: Columns of the first component of each quaternion in the position.
        self._quaternions = [
            port.columns.index(group[0]) for group in names if set(group) <= set(port.columns)
        ]
        in_quaternion = [i for first in self._quaternions for i in range(first, first + 4)]
        self._scalar_columns = [i for i in range(port.size) if i not in in_quaternion]
        labels = [port.columns[i] for i in self._scalar_columns]
        units = ["deg" if port.units[i] == "rad" else port.units[i] for i in self._scalar_columns]
        for first in self._quaternions:
            labels += [
                f"{port.columns[first].rpartition('.')[0]}.{name}" for name in ("rx", "ry", "rz")
            ]
            units += ["deg"] * 3
        lower, upper = self._ranges(units, q)
        self.handles = tuple(
            Handle(name=name, unit=unit, lower=float(low), upper=float(high))
            for name, unit, low, high in zip(labels, units, lower, upper, strict=True)
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the handles."""
        return tuple(handle.name for handle in self.handles)

    def values(self, q: np.ndarray) -> np.ndarray:
        """Return the values of the handles (..., h), in their units, at coordinates (..., n_q)."""
        position = self._functions.ports.at(q)
        values = [(position / self._scale)[..., self._scalar_columns]]
        for first in self._quaternions:
            quaternion = position[..., first : first + 4]
            rotation = Rotation.from_quat(quaternion, scalar_first=True)
            values.append(rotation.as_rotvec(degrees=True))
        return np.concatenate(values, axis=-1)

    def moved(self, q: np.ndarray, number: int, value: float) -> np.ndarray:
        """Return coordinates (n_q,) after moving one handle; the other handles stay.

        Args:
            q: coordinates (n_q,) from which the solution is tracked.
            number: index of the handle.
            value: new value in the handle's unit.

        Raises:
            PoseError: the pose is out of reach or singular; the message states the loop.
            AssemblyError: q is not on the solution branch that these handles follow.
        """
        values = self.values(q)
        values[number] = value
        return self.at(q, values)

    def at(self, q: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return coordinates (n_q,) at values of all handles.

        Args:
            q: coordinates (n_q,) from which the solution is tracked.
            values: values of the handles (h,), in their units.

        Raises:
            PoseError: the pose is out of reach or singular; the message states the loop.
            AssemblyError: q is not on the solution branch that these handles follow.
        """
        try:
            return np.asarray(self._functions.follow(self._position(values), start=q).q)
        except InputError as error:  # a step diverged, so the start of the next one is not finite
            changed = np.flatnonzero(np.abs(values - self.values(q)) > 0.0)
            target = ", ".join(
                f"{self.handles[i].name} = {values[i]:.5g} {self.handles[i].unit}" for i in changed
            )
            message = f"the path to {target} cannot be followed: the iteration diverges"
            remedy = "move in smaller steps, or stay inside the workspace"
            raise PoseError.of("pose", message, remedy) from error

    def _position(self, values: np.ndarray) -> np.ndarray:
        """Return the positions (..., n) of platform or actuators at handles (..., h)."""
        position = np.zeros((*values.shape[:-1], self._functions.ports.position.size))
        count = len(self._scalar_columns)
        position[..., self._scalar_columns] = (
            values[..., :count] * self._scale[self._scalar_columns]
        )
        for k, first in enumerate(self._quaternions):
            vector = values[..., count + 3 * k : count + 3 * k + 3]
            quaternion = Rotation.from_rotvec(vector, degrees=True).as_quat(scalar_first=True)
            position[..., first : first + 4] = quaternion
        return position

    def _ranges(self, units: list[str], q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return lower and upper ends of the ranges (h,), within the limits of the machine file.

        The range of a handle contains the values in reach from q while the other handles stay.
        """
        center = self.values(q)
        travel = {"m": MAX_TRAVEL * self._model.assembly.loops.length, "deg": MAX_ANGLE}
        largest = np.array([travel.get(unit, MAX_NUMBER) for unit in units])
        middle = RANGE_SAMPLES // 2
        directions = np.eye(len(units))
        offsets = np.linspace(-1.0, 1.0, RANGE_SAMPLES) * largest[:, None]
        is_reached = self._is_reached(center + offsets[..., None] * directions[:, None], q)
        last = np.cumprod(is_reached[:, middle + 1 :], axis=1).sum(axis=1)
        first = np.cumprod(is_reached[:, :middle][:, ::-1], axis=1).sum(axis=1)
        step = largest / middle
        inside = np.stack([-first, last], axis=1) * step[:, None]
        next_first, next_last = np.minimum(first + 1, middle), np.minimum(last + 1, middle)
        outside = np.stack([-next_first, next_last], axis=1) * step[:, None]
        for _ in range(RANGE_HALVINGS):
            midpoints = 0.5 * (inside + outside)
            is_inside = self._is_reached(center + midpoints[..., None] * directions[:, None], q)
            inside = np.where(is_inside, midpoints, inside)
            outside = np.where(is_inside, outside, midpoints)
        margin = RANGE_MARGIN * np.ptp(inside, axis=1)
        lower, upper = center + inside[:, 0] - margin, center + inside[:, 1] + margin
        step_size = np.array([RANGE_STEPS[unit] for unit in units])
        lower = np.round(np.floor(lower / step_size) * step_size, 6)
        upper = np.round(np.ceil(upper / step_size) * step_size, 6)
        low, high = self._limits(len(units), *coordinate_limits(self._model.topology))
        lower, upper = np.maximum(lower, low), np.minimum(upper, high)
        return np.minimum(lower, center), np.maximum(upper, center)

    def _is_reached(self, values: np.ndarray, q: np.ndarray) -> np.ndarray:
        """Return whether handle values (..., h) give a regular pose within the limits (...).

        Limits that are already exceeded at q (n_q,) are ignored.
        """
        flat = self._position(values.reshape(-1, values.shape[-1]))
        states = self._functions.evaluate(flat, start=np.tile(q, (len(flat), 1)))
        limits = self._model.limits
        is_within = ((limits.room(states.q) >= 0.0) | (limits.room(q[None]) < 0.0)).all(axis=1)
        is_reached = states.health.is_reached & states.health.is_regular & is_within
        return np.asarray(is_reached.reshape(values.shape[:-1]))

    def _limits(
        self, count: int, low: np.ndarray, high: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return lower and upper limits (h,) of the handles.

        A handle that moves a single coordinate has the limits of this coordinate. Components of
        rotation vectors are limited to ±180 deg. Other handles have no limits.

        Args:
            count: number of handles.
            low, high: limits of the coordinates (n_q,).
        """
        ports = self._functions.ports
        lower, upper = np.full(count, -np.inf), np.full(count, np.inf)
        lower[len(self._scalar_columns) :], upper[len(self._scalar_columns) :] = (
            -HALF_TURN,
            HALF_TURN,
        )
        for k, i in enumerate(self._scalar_columns):
            (rows,) = np.nonzero(ports.to_q[:, i])
            if len(rows) == 1 and np.count_nonzero(ports.to_q[rows[0]]) == 1:
                j = ports.q[rows[0]]
                bounds = [limit[j] - ports.offset[rows[0]] for limit in (low, high)]
                lower[k], upper[k] = sorted(
                    bound / ports.to_q[rows[0], i] / self._scale[i] for bound in bounds
                )
        return lower, upper
