"""Numbers by which a person moves a machine: one for each position of the platform or of the actuators."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from tauloop.common.errors import InputError, PoseError
from tauloop.common.records import dataclass
from tauloop.equations.assembly.limits import coordinate_limits
from tauloop.model import Model, Motion

#: How far a handle may go from where it stands at first: characteristic lengths, degrees, pure
#: numbers.
LONGEST, WIDEST, LARGEST = 4.0, 180.0, 1.0
#: Tries over that range, of which those in reach without a gap make the range; how often the way
#: from the last of them to the next is halved; and a margin around the range.
TRIES, HALVINGS, MARGIN = 81, 8, 0.05
#: Ranges end at multiples of these, which read well.
RANGE_STEPS = {"m": 1e-3, "deg": 0.1, "1": 1e-2}
#: How many degrees a rotation, given as a vector, has about each axis at most: it repeats beyond.
HALF_TURN = 180.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Handle:
    """One number.

    Attributes:
        name: of the position; a free platform's turn is ``.rx``, ``.ry``, ``.rz``: angle times
            axis, in the base frame.
        unit: "m", "deg" or "1".
        lower, upper: range worth trying: what is in reach of this handle alone, within the file's
            limits.
    """

    name: str
    unit: str
    lower: float
    upper: float


class Handles:
    """The handles of one entry of a machine."""

    def __init__(self, model: Model, functions: Motion, q: np.ndarray) -> None:
        """Find the handles and their ranges.

        Args:
            model: the machine.
            functions: its entry: `model.platform` or `model.actuators`.
            q: assembled coordinates (n_q,) around which ranges are sought.
        """
        self._model, self._functions = model, functions
        port, shape = functions.ports.position, model.topology
        self._scale = np.array([np.pi / 180 if unit == "rad" else 1.0 for unit in port.units])
        names = [shape.coordinate_names[q0 : q0 + 4] for q0, _ in shape.quaternions]
        self._turns = [
            port.columns.index(four[0])
            for four in names
            if all(name in port.columns for name in four)
        ]
        self._in_turn = [i for first in self._turns for i in range(first, first + 4)]
        self._single = [i for i in range(port.size) if i not in self._in_turn]
        labels = [port.columns[i] for i in self._single]
        units = ["deg" if port.units[i] == "rad" else port.units[i] for i in self._single]
        for first in self._turns:
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
        """Names of the handles."""
        return tuple(handle.name for handle in self.handles)

    def values(self, q: np.ndarray) -> np.ndarray:
        """The handles (..., h), in their units, at coordinates (..., n_q)."""
        position = self._functions.ports.at(q)
        parts = [(position / self._scale)[..., self._single]]
        for first in self._turns:
            quaternion = position[..., first : first + 4]
            turn = Rotation.from_quat(quaternion, scalar_first=True).as_rotvec(degrees=True)
            parts.append(turn)
        return np.concatenate(parts, axis=-1)

    def moved(self, q: np.ndarray, number: int, value: float) -> np.ndarray:
        """Coordinates (n_q,) after one handle has been moved while the others stay; followed from q.

        Raises:
            PoseError: out of reach or singular: which loop, by how much.
            AssemblyError: q is not on the branch that this entry follows.
        """
        values = self.values(q)
        values[number] = value
        return self.at(q, values)

    def at(self, q: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Coordinates (n_q,) where all handles have these values (h,), in their units; followed from q.

        Raises:
            PoseError: out of reach or singular: which loop, by how much.
            AssemblyError: q is not on the branch that this entry follows.
        """
        try:
            return np.asarray(self._functions.follow(self._position(values), start=q).q)
        except InputError as error:  # the start of a later step of the way is not finite
            far = np.flatnonzero(np.abs(values - self.values(q)) > 0.0)
            ends = ", ".join(
                f"{self.handles[i].name} = {values[i]:.5g} {self.handles[i].unit}" for i in far
            )
            what = f"the way to {ends} cannot be followed: the iteration diverges"
            raise PoseError.of(
                "pose", what, "move it in smaller steps, or stay in the workspace"
            ) from error

    def _position(self, values: np.ndarray) -> np.ndarray:
        """Positions of the entry (..., n) from handles (..., h)."""
        position = np.zeros((*values.shape[:-1], self._functions.ports.position.size))
        count = len(self._single)
        position[..., self._single] = values[..., :count] * self._scale[self._single]
        for k, first in enumerate(self._turns):
            turn = values[..., count + 3 * k : count + 3 * k + 3]
            quaternion = Rotation.from_rotvec(turn, degrees=True).as_quat(scalar_first=True)
            position[..., first : first + 4] = quaternion
        return position

    def _ranges(self, units: list[str], q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper values (h,): each handle's own reach from q, the others at rest, within the file's limits."""
        here = self.values(q)
        largest = np.array(
            [
                {"m": LONGEST * self._model.assembly.loops.length, "deg": WIDEST}.get(u, LARGEST)
                for u in units
            ]
        )
        middle = TRIES // 2
        directions = np.eye(len(units))
        offsets = np.linspace(-1.0, 1.0, TRIES) * largest[:, None]
        reached = self._reached(here + offsets[..., None] * directions[:, None], q)
        last = np.cumprod(reached[:, middle + 1 :], axis=1).sum(axis=1)
        first = np.cumprod(reached[:, :middle][:, ::-1], axis=1).sum(axis=1)
        step = largest / middle
        ends = np.stack([-first, last], axis=1) * step[:, None]
        beyond = (
            np.stack([-np.minimum(first + 1, middle), np.minimum(last + 1, middle)], axis=1)
            * step[:, None]
        )
        for _ in range(HALVINGS):
            tried = 0.5 * (ends + beyond)
            within = self._reached(here + tried[..., None] * directions[:, None], q)
            ends, beyond = np.where(within, tried, ends), np.where(within, beyond, tried)
        margin = MARGIN * np.ptp(ends, axis=1)
        lower, upper = here + ends[:, 0] - margin, here + ends[:, 1] + margin
        grid = np.array([RANGE_STEPS[unit] for unit in units])
        lower, upper = (
            np.round(np.floor(lower / grid) * grid, 6),
            np.round(np.ceil(upper / grid) * grid, 6),
        )
        low, high = self._limits(len(units), *coordinate_limits(self._model.topology))
        lower, upper = np.maximum(lower, low), np.minimum(upper, high)
        return np.minimum(lower, here), np.maximum(upper, here)

    def _reached(self, values: np.ndarray, q: np.ndarray) -> np.ndarray:
        """Whether handles (..., h) have a pose that is regular and keeps the limits which q (n_q,) keeps."""
        flat = self._position(values.reshape(-1, values.shape[-1]))
        states = self._functions.evaluate(flat, start=np.tile(q, (len(flat), 1)))
        limits = self._model.limits
        kept = ((limits.room(states.q) >= 0.0) | (limits.room(q[None]) < 0.0)).all(axis=1)
        reached = states.health.is_reached & states.health.is_regular & kept
        return np.asarray(reached.reshape(values.shape[:-1]))

    def _limits(
        self, count: int, low: np.ndarray, high: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Limits (h,) of handles that move one coordinate alone, from those of coordinates (n_q,); others have none."""
        entry = self._functions.ports
        lower, upper = np.full(count, -np.inf), np.full(count, np.inf)
        lower[len(self._single) :], upper[len(self._single) :] = -HALF_TURN, HALF_TURN
        for k, i in enumerate(self._single):
            (rows,) = np.nonzero(entry.to_q[:, i])
            if len(rows) == 1 and np.count_nonzero(entry.to_q[rows[0]]) == 1:
                j = entry.q[rows[0]]
                ends = [limit[j] - entry.offset[rows[0]] for limit in (low, high)]
                lower[k], upper[k] = sorted(
                    end / entry.to_q[rows[0], i] / self._scale[i] for end in ends
                )
        return lower, upper
