"""Tool accuracy of machines whose parameters differ from those in their controller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tauloop.common.errors import InputError
from tauloop.common.names.deprecated import old_attribute
from tauloop.common.options import Options, option
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.compiler.c.calling.evaluator import compiled_diagnostics
from tauloop.compiler.c.printing.batch_source import LANES
from tauloop.compiler.catalogue import TOOL
from tauloop.kinematics.states import random_states
from tauloop.mechanism.model import Mechanism
from tauloop.model import Model

#: Number of poses computed at once, so that their data fits in the processor's cache.
POSES_PER_BLOCK = 16_384


@dataclass(frozen=True, slots=True, kw_only=True)
class AccuracyOptions(Options):
    """Poses at which the accuracy of a machine is computed.

    Attributes:
        poses: number of random poses within the machine's limits; poses are repeated if the search
            reaches fewer.
        pose_seed: seed of the poses.

    Examples:
        >>> from tauloop.study import AccuracyOptions
        >>> AccuracyOptions(poses=200).pose_seed
        0
    """

    poses: int = option(1000, least=1, most=1_000_000)
    pose_seed: int = option(0, least=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoseErrors(ReprMixin):
    """Tool errors over all poses of N machines (N,); NaN if a pose is out of reach or singular.

    Attributes:
        mean: mean distance of the tool from its nominal position, m.
        rms: root mean square of this distance, m.
        largest: largest value of this distance, m.
        rotation: largest angle between the tool's orientation and its nominal orientation, rad.
    """

    mean: np.ndarray
    rms: np.ndarray
    largest: np.ndarray
    rotation: np.ndarray

    turn = old_attribute("turn", "rotation")


class Accuracy:
    """Tool errors of machines that differ in some parameters, under the nominal controller.

    The nominal inverse kinematics gives the actuator positions of every pose. The tool poses of
    every other machine follow from its forward kinematics, which are compiled with the parameters
    as inputs. Nothing is linearized.
    """

    def __init__(
        self, mechanism: Mechanism, names: Sequence[str], options: AccuracyOptions | None = None
    ) -> None:
        """Choose the poses, and compile the kinematics.

        Args:
            mechanism: the nominal machine, which the controller assumes.
            names: independent parameters in which other machines differ.
            options: the poses.

        Raises:
            InputError: a parameter does not exist.
            AssemblyError: the machine does not assemble.
            PoseError: no pose is within reach.
            EngineError: there is no compiler.
        """
        options = options or AccuracyOptions()
        model = Model(mechanism, names)
        states = random_states(model, options.poses, np.random.default_rng(options.pose_seed))
        # `np.resize` repeats states if fewer than requested were reached.
        q = np.resize(states.q, (options.poses, states.q.shape[1]))
        motion = model.actuators
        self.names = tuple(names)
        self.poses = len(q)
        self._kernel = motion.compiled(TOOL, ("place", "rotation"))
        # Poses are padded so that each block of vectorized samples belongs to one machine.
        rows = -(-len(q) // LANES) * LANES
        self._rows = np.minimum(np.arange(rows), len(q) - 1)
        known_inputs = {"position": model.actuator_position(q), "start": q}
        sizes = {port.name: port.size for port in self._kernel.function.inputs}
        self._poses = {
            name: np.ascontiguousarray(known_inputs.get(name, np.zeros((len(q), size)))[self._rows])
            for name, size in sizes.items()
            if name != "theta"
        }
        nominal = np.array([[mechanism.parameters[name].value for name in self.names]])
        nominal = nominal.reshape(1, -1)
        position, rotation, is_valid = self._run(nominal)
        if not is_valid.all():
            problem = "the nominal machine does not return to its own poses"
            raise InputError.of("poses", problem, "report this as a bug in Tauloop")
        self._position = position[0]
        self._rotation = rotation[0]
        self._can_rotate = len(q) == 1 or bool(np.ptp(self._rotation, axis=0).any())

    def _run(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the tool's pose for parameters theta (N, t) of N machines.

        Returns:
            Positions (N, poses, 3), rotation matrices (N, poses, 9), and whether each pose is
            within reach and regular (N, poses).
        """
        rows = len(self._rows)
        poses = self.poses
        n = len(theta) * rows
        inputs = {name: np.tile(array, (len(theta), 1)) for name, array in self._poses.items()}
        inputs["theta"] = np.repeat(theta, rows, axis=0)
        names = [port.name for port in self._kernel.function.inputs]
        outputs = self._kernel.batch({name: inputs[name] for name in names}, n)
        health = compiled_diagnostics(outputs["health"])
        is_valid = (health.is_reached & health.is_regular).reshape(-1, rows)[:, :poses]
        position = outputs["place"].reshape(len(theta), rows, -1)[:, :poses]
        rotation = outputs["rotation"].reshape(len(theta), rows, -1)[:, :poses]
        return position, rotation, is_valid

    def __call__(self, values: Mapping[str, np.ndarray]) -> PoseErrors:
        """Return the errors of machines for values of their parameters.

        Args:
            values: arrays (N,) by name, SI.
        """
        # If no parameter varies, there is one machine.
        count = len(next(iter(values.values()), [0.0]))
        columns = [np.zeros((count, 0)), *(values[name] for name in self.names)]
        theta = np.ascontiguousarray(np.column_stack(columns))
        errors = np.full((4, len(theta)), np.nan)
        machines_per_block = max(POSES_PER_BLOCK // len(self._rows), 1)
        for first in range(0, len(theta), machines_per_block):
            machines = slice(first, min(first + machines_per_block, len(theta)))
            position, rotation, is_valid = self._run(theta[machines])
            squares = ((position - self._position) ** 2).sum(axis=2)
            squares[~is_valid] = np.nan
            errors[0, machines] = np.sqrt(squares).mean(axis=1)
            errors[1, machines] = np.sqrt(squares.mean(axis=1))
            errors[2, machines] = np.sqrt(squares.max(axis=1))
            errors[3, machines] = self._largest_angles(rotation, is_valid)
        return PoseErrors(**dict(zip(("mean", "rms", "largest", "rotation"), errors, strict=True)))

    def _largest_angles(self, rotation: np.ndarray, is_valid: np.ndarray) -> np.ndarray:
        """Return the largest rotation error (N,) over the poses.

        Between orientations R and R0, |R - R0| = 2 sqrt(2) sin(angle / 2) in the Frobenius norm.
        """
        if not self._can_rotate:
            return np.where(is_valid.all(axis=1), 0.0, np.nan)
        squares = ((rotation - self._rotation) ** 2).sum(axis=2)
        squares[~is_valid] = np.nan
        return 2.0 * np.arcsin(np.minimum(np.sqrt(squares.max(axis=1) / 8.0), 1.0))


def accuracy(
    mechanism: Mechanism, values: Mapping[str, np.ndarray], options: AccuracyOptions | None = None
) -> PoseErrors:
    """Return the tool errors of machines whose parameters differ from those in their controller.

    Args:
        mechanism: the nominal machine, which the controller assumes.
        values: parameters of the machines, arrays (N,) by name, SI.
        options: the poses.

    Raises:
        InputError: a parameter does not exist.
        AssemblyError, PoseError: the machine does not assemble, or no pose is within reach.
        EngineError: there is no compiler.

    Examples:
        >>> import numpy as np, tauloop as tl
        >>> from tauloop.study import AccuracyOptions, accuracy
        >>> longer = {"arm_length": np.array([0.26, 0.2601])}
        >>> accuracy(tl.load("delta"), longer, AccuracyOptions(poses=20)).largest.round(5).tolist()[0]
        0.0
    """
    return Accuracy(mechanism, tuple(values), options)(values)
